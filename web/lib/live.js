// What comes by itself: server-sent events over fetch (EventSource cannot send
// a token), coming back after every break from where they were, and the one
// stream of the feed that all pages share.
import { useEffect, useRef, useState } from '../vendor/hooks.js';
import { ApiError, ask, can, get, me, onSession, path } from './api.js';

const EVENT_BYTES = 64 * 1024 * 1024; // a result at its largest, escaped
const PAUSES_MS = [300, 1000, 2000, 5000, 10000];

/** Feed lines of text/event-stream in; onEvent({id, type, data}) for each event. */
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
    if (rest.length + size > EVENT_BYTES) throw new ApiError(0, 'too_large', 'an event is larger than any may be');
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
 * Follow a stream until `close` is called or an event's type is in `ends`.
 *   method, body, headers   of the request; a POST must carry an idempotency key, since it is sent again after a break
 *   after                   the id to begin behind
 *   resume(lastId)          another {where, method} to go on with after a break, where the first was a POST
 *   onEvent({id,type,data}) data is parsed
 *   onState(state, error)   'open', 'lost' (coming back), 'refused' (not coming back), 'over'
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
      // Who looks on may answer what agents ask; with a token that only reads nobody should wait for that.
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

// A little chance in it: not all pages come back in the same moment. Sooner
// where the browser says that there is a network again.
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

// What agents ask on a stream.

function heardInput(list, type, { input }) {
  const at = list.findIndex((i) => i.input_id === input.input_id);
  if (at < 0) return type === 'input' ? [...list, input] : list;
  return list.map((i, n) => (n === at ? { ...i, ...input } : i));
}

/** The questions with those that are still open, or those of them that it is about, at an end. */
export const endInputs = (list, outcome, isAbout = () => true) =>
  list.map((i) => (!i.outcome && isAbout(i) ? { ...i, outcome } : i));

/**
 * The questions of a task's stream, kept right over its breaks: `onChange(list)` with each news of them.
 *   taskId()        of the task, once it is known
 *   take(event)     each event of the stream
 *   back()          the stream is open, perhaps again
 */
export function questions(taskId, onChange) {
  let list = [];
  const put = (next) => { list = next; onChange(list); };
  // Only what was open before the server is asked can have ended unheard: what is new is told by the stream.
  const compare = async () => {
    const before = new Set(list.filter((i) => !i.outcome).map((i) => i.input_id));
    if (!before.size) return;
    const { inputs } = await get(path`/api/tasks/${taskId()}`);
    for (const { input_id } of inputs) before.delete(input_id);
    put(endInputs(list, 'missed', (i) => before.has(i.input_id)));
  };
  const back = () => compare().catch(() => {}); // away again, and so it comes back again
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

// One stream for whoever is signed in; none for nobody.
let whose = null;
onSession(({ state }) => {
  const user = state === 'out' ? null : me()?.user;
  if (user === whose) return;
  whose = user;
  feed.recent = [];
  if (user) open();
  else close?.();
});

/** Every entry from now on, and null when the connection changes. */
export function useFeed(onEntry) {
  const latest = useRef(onEntry);
  latest.current = onEntry;
  useEffect(() => {
    const reader = (entry) => latest.current(entry);
    readers.add(reader);
    return () => readers.delete(reader);
  }, []);
}

/** Whether the feed is open, as a value to draw. */
export function useFeedState() {
  const [state, setState] = useState(feed.state);
  useFeed((entry) => entry || setState(feed.state));
  useEffect(() => setState(feed.state), []); // it may have opened since the first drawing
  return state;
}

/**
 * Reload when the feed tells of types that begin so, of entries that are about it; at most once in so many ms, and
 * after a break.
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
