// Live updates: server-sent events over fetch, since EventSource cannot send a
// token. A stream resumes where it broke off. All pages share one stream of the
// feed.
import { useEffect, useRef, useState } from '../vendor/hooks.js';
import { ApiError, ask, can, get, me, onSession, path } from './api.js';

const EVENT_BYTES = 64 * 1024 * 1024; // the largest result, escaped
const PAUSES_MS = [300, 1000, 2000, 5000, 10000];

/** Returns a function that takes pieces of text/event-stream. onEvent({id, type, data}) is called for each event. */
export function sseParser(onEvent) {
  let rest = '', id = '', type = '', data = [], size = 0;
  const line = (text) => {
    if (text === '') {
      if (data.length || id) onEvent({ id, type: type || 'message', data: data.join('\n') });
      type = ''; data = []; size = 0;
    } else if (text[0] !== ':') {
      const colon = text.indexOf(':');
      const name = colon < 0 ? text : text.slice(0, colon);
      const value = colon < 0 ? '' : text.slice(colon + (text[colon + 1] === ' ' ? 2 : 1));
      if (name === 'data') { data.push(value); size += value.length; }
      else if (name === 'event') type = value;
      else if (name === 'id') id = value;
    }
  };
  return (text) => {
    const lines = (rest + text).split(/\r?\n/);
    rest = lines.pop();
    lines.forEach(line);
    if (rest.length + size > EVENT_BYTES) throw new ApiError(0, 'too_large', 'an event exceeds the size limit');
  };
}

async function readEvents(reply, onEvent) {
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  const feed = sseParser(onEvent);
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    feed(value);
  }
}

const isForGood = (e) => e instanceof ApiError && e.status >= 400 && e.status < 500 && e.status !== 429
  && e.status !== 408;

/**
 * Follow a stream until the returned function is called or an event's type is in `ends`.
 *   method, body, headers   of the request; a POST needs an idempotency key, since it is sent again after a break
 *   after                   the id to start after
 *   resume(lastId)          the {where, method} to continue with after a break, if the first request was a POST
 *   onEvent({id,type,data}) data is parsed
 *   onState(state, error)   'open', 'lost' (reconnecting), 'refused' (given up), 'over'
 */
export function stream(where, { method = 'GET', body, headers, after = '', ends = [], resume, onEvent,
  onState = () => {} }) {
  const stop = new AbortController();
  let last = after, isOver = false, tries = 0;
  const take = (e) => {
    if (e.id) last = e.id;
    if (!e.data || isOver) return;
    tries = 0;
    isOver = ends.includes(e.type);
    onEvent({ ...e, data: JSON.parse(e.data) });
  };
  const once = async () => {
    const again = resume?.(last) || { where, method, body, headers };
    const reply = await ask(again.method || 'GET', again.where, {
      body: again.body, accept: 'text/event-stream', signal: stop.signal,
      // Tells the server that this client can answer questions. A token that only reads cannot.
      headers: { ...(can('send') && { 'Signalbox-Answers': 'input' }), ...again.headers,
        ...(last && { 'Last-Event-ID': last }) },
    });
    onState('open');
    await readEvents(reply, take);
  };
  const run = async () => {
    while (!stop.signal.aborted) {
      try {
        await once();
        if (isOver) return onState('over');
        onState('lost', null);
      } catch (e) {
        if (stop.signal.aborted) return;
        if (isOver) return onState('over');
        if (isForGood(e)) return onState('refused', e);
        onState('lost', e);
      }
      await pause(PAUSES_MS[Math.min(tries++, PAUSES_MS.length - 1)], stop.signal);
    }
  };
  run();
  return () => stop.abort();
}

// The pause is randomized, so that pages do not all reconnect at once. It ends
// early when the browser reports that the network is back.
function pause(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms * (0.7 + 0.6 * Math.random()));
    function done() {
      clearTimeout(timer);
      removeEventListener('online', done);
      resolve();
    }
    addEventListener('online', done);
    signal.addEventListener('abort', done, { once: true });
  });
}

// Questions of agents, on a stream.

function heardInput(list, type, { input }) {
  const at = list.findIndex((i) => i.input_id === input.input_id);
  if (at < 0) return type === 'input' ? [...list, input] : list;
  return list.map((i, n) => (n === at ? { ...i, ...input } : i));
}

/** The list with its open questions ended, or with those of them that isAbout selects. */
export const endInputs = (list, outcome, isAbout = () => true) =>
  list.map((i) => (!i.outcome && isAbout(i) ? { ...i, outcome } : i));

/**
 * The questions on a task's stream, kept correct across breaks. `onChange(list)` is called when they change.
 *   taskId()        the id of the task, once it is known
 *   take(event)     call it with each event of the stream
 *   back()          call it when the stream opens, also after a break
 */
export function questions(taskId, onChange) {
  let list = [];
  const put = (next) => { list = next; onChange(list); };
  // Only a question that was open before this call can have ended unnoticed: the stream reports newer ones.
  const compare = async () => {
    const before = new Set(list.filter((i) => !i.outcome).map((i) => i.input_id));
    if (!before.size) return;
    const { inputs } = await get(path`/api/tasks/${taskId()}`);
    for (const { input_id } of inputs) before.delete(input_id);
    put(endInputs(list, 'missed', (i) => before.has(i.input_id)));
  };
  const back = () => compare().catch(() => {}); // the stream broke again, and will call this again
  return {
    back,
    take({ type, data }) {
      if (type === 'input' || type === 'input_over') put(heardInput(list, type, data));
      else if (type === 'gap') back();
      else if (type === 'result') put(endInputs(list, 'withdrawn'));
    },
  };
}

// The feed.

const RECENT = 500;
export const feed = { state: 'connecting', recent: [], newest: 0, seen: 0 };
const readers = new Set();
let close = null;

function tell(entry) {
  if (entry) {
    feed.seen++;
    feed.newest = entry.seq;
    feed.recent.push(entry);
    if (feed.recent.length > RECENT * 2) feed.recent.splice(0, RECENT);
  }
  for (const reader of [...readers]) reader(entry);
}

function open() {
  close?.();
  close = stream('/api/feed', {
    onEvent: (e) => tell(e.type === 'gap' ? { type: 'gap', seq: e.data.newest, data: e.data } : e.data),
    onState: (state, error) => {
      if (feed.state === state) return;
      Object.assign(feed, { state, error });
      tell(null);
    },
  });
}

// One stream for the user who is signed in.
let whose = null;
onSession(({ state }) => {
  const user = state === 'out' ? null : me()?.user;
  if (user === whose) return;
  whose = user;
  feed.recent = [];
  if (user) open();
  else close?.();
});

/** Calls onEntry with every entry from now on, and with null when the connection changes. */
export function useFeed(onEntry) {
  const latest = useRef(onEntry);
  latest.current = onEntry;
  useEffect(() => {
    const reader = (entry) => latest.current(entry);
    readers.add(reader);
    return () => readers.delete(reader);
  }, []);
}

/** The state of the feed's connection. */
export function useFeedState() {
  const [state, setState] = useState(feed.state);
  useFeed((entry) => entry || setState(feed.state));
  useEffect(() => setState(feed.state), []); // it may have opened since the first render
  return state;
}

/**
 * Reload after feed entries whose type starts with one of `types` and that isAbout accepts, and after a break. At most
 * once per `ms`.
 */
export function useRefresh(types, reload, ms = 1000, isAbout = () => true) {
  const latest = useRef(reload);
  const timer = useRef(0);
  latest.current = reload;
  useEffect(() => () => clearTimeout(timer.current), []);
  useFeed((entry) => {
    const concerns = entry ? (types.some((t) => entry.type.startsWith(t)) && isAbout(entry)) || entry.type === 'gap'
      : feed.state === 'open';
    if (concerns && !timer.current)
      timer.current = setTimeout(() => { timer.current = 0; latest.current(); }, ms);
  });
}
