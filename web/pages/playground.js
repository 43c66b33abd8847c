// Type a message, watch the decision form, send it, read the answer, and override
// the decision if the agent was wrong.
import { Badge, Button, Card, Empty, Link, Page, Status, Text, html, useEffect, useLater, useReducer, useRef,
  useState } from '../lib/ui.js';
import { can, get, me, newKey, path, post } from '../lib/api.js';
import { questions, stream } from '../lib/live.js';
import { bytesOf, duration } from '../lib/format.js';

const PAUSE_MS = 120; // from the last key to the call
const TEXT_BYTES = 1024 * 1024;
const MOST_TURNS = 50;
const draftKey = () => `signalbox.draft.${me()?.user}`;
const SUGGESTED = ['why is my query slow?', 'draft a blog post about office trends, with facts',
  'remind me tomorrow at nine to call the plumber'];

/** The decision for the text being typed; the last one stays until the next arrives. */
function useTrial(text, conversation, maxCost, round) {
  const [trial, setTrial] = useState({ decision: null, error: null, isOld: false });
  useEffect(() => {
    if (!text.trim() || bytesOf(text) > TEXT_BYTES) {
      setTrial({ decision: null, error: null });
      return undefined;
    }
    const stop = new AbortController();
    setTrial((t) => ({ ...t, isOld: true }));
    const timer = setTimeout(() => {
      const body = { text, ...(conversation && { conversation_id: conversation }), ...costOf(maxCost) };
      post('/api/route', body, { signal: stop.signal }).then(
        (decision) => setTrial({ decision, error: null, isOld: false }),
        (error) => stop.signal.aborted || setTrial({ decision: null, error, isOld: false }));
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [text, conversation, maxCost, round]);
  return trial;
}

const useChoice = (isWanted) => useLater(isWanted, () => import('./playground_choice.js'));
const useAsking = (isWanted) => useLater(isWanted, () => import('../lib/input.js'));
const useTeaching = (isWanted) => useLater(isWanted, () => import('./playground_teach.js'));

// Messages and their answers. They stay while the user visits other pages, and are
// dropped when another user signs in.

const talk = { user: '', turns: [], draw: () => {} };

function talkOf(user) {
  if (talk.user !== user) {
    talk.turns.forEach((t) => t.close());
    Object.assign(talk, { user, turns: [] });
  }
  return talk;
}

/** The typed cost limit, in micro-units; nothing if it is not an amount. */
function costOf(amount) {
  return /^\d{1,6}(\.\d{1,6})?$/.test(amount || '') ? { max_cost_micros: Math.round(Number(amount) * 1e6) } : {};
}

/**
 * `to`: the agent that the user chose; without it the server chooses. `quote`: of the decision shown for exactly this
 * text, so that the shown price is the one charged.
 */
function startTurn(text, { conversation, to, maxCost, quote } = {}) {
  const turn = { key: newKey(), text, conversation, maxCost, status: 'sending', parts: [], inputs: [], decision: null,
    error: null, since: performance.now() };
  const body = { text, idempotency_key: turn.key, ...(conversation && { conversation_id: conversation }),
    ...(to && { executor: { name: to } }), ...(quote && !to && { quote }), ...costOf(maxCost) };
  const set = (more) => { Object.assign(turn, more); talk.draw(); };
  const asked = questions(() => turn.task, (inputs) => set({ inputs }));
  turn.close = stream('/api/messages', {
    method: 'POST', body, ends: ['result'],
    resume: () => turn.task && { where: path`/api/tasks/${turn.task}/events` },
    onEvent: (e) => { takeEvent(turn, e, set); asked.take(e); },
    onState: (state, error) => {
      if (state === 'refused') set({ status: 'refused', error });
      else set({ isLost: state === 'lost' });
      if (state === 'open') asked.back();
    },
  });
  return turn;
}

function takeEvent(turn, { type, data }, set) {
  if (type === 'status') set({ task: data.task_id, status: data.status });
  else if (type === 'chunk') set({ parts: addWords(turn.parts, data.agent || null, data.text),
    ...(!data.agent && { status: 'working' }) });
  else if (type === 'gap') set({ parts: [] });
  else if (type === 'result')
    set({ task: data.task_id, status: data.status, error: data.error, conversation_id: data.conversation_id,
      parts: settled(turn.parts, data.text), took: performance.now() - turn.since, isOver: true });
  if (data.task_id && !turn.hasAsked) {
    turn.hasAsked = true;
    get('/api/decisions', { task_id: data.task_id, limit: 1, full: true })
      .then(({ items }) => items[0] && set({ decision: items[0] }), () => {});
  }
}

// The parts of the answer, in order: the agent's own text (agent: null), and
// between it the text of agents that it delegated to.
function addWords(parts, agent, text) {
  const last = parts.at(-1);
  return last?.agent === agent ? [...parts.slice(0, -1), { agent, text: last.text + text }]
    : [...parts, { agent, text }];
}

// The result is authoritative: if the streamed text differs, the result replaces it.
function settled(parts, text) {
  const own = parts.filter((p) => !p.agent).map((p) => p.text).join('');
  return text === null || text === undefined || own === text ? parts
    : [...parts.filter((p) => p.agent), { agent: null, text }];
}

function Turn({ turn, onCorrected, onEdit, onSend }) {
  const asking = useAsking(turn.inputs.length > 0);
  const isUnsure = turn.isOver && turn.decision?.unsure;
  const choice = useChoice(isUnsure || turn.status === 'refused');
  const by = turn.decision?.agent || 'the agent';
  const last = turn.parts.length - 1;
  const first = turn.parts.findIndex((p) => !p.agent && p.text.trim());
  return html`<li class="turn" aria-label="A message and its answer">
    <p class="said"><${Text} text=${turn.text} max=${2000}/></p>
    ${turn.status === 'refused' ? choice && html`<${choice.Refused} turn=${turn} onSend=${onSend}/>`
      : html`<div class="answers" aria-live="polite" aria-busy=${!turn.isOver}>
      ${turn.parts.map((p, i) => (p.agent ? html`<p class="voice"
        key=${i}><span class="voice-name"><${Text} text=${p.agent} line=${true}/>, asked by <${Text} text=${by}
          line=${true}/></span><${Text} text=${p.text.trim()}/></p>`
        : p.text.trim() && html`<div class="answer" key=${i}>
          ${i === first && turn.decision && html`<span class="voice-name"><${Text} text=${by} line=${true}/></span>`}
            <${Text} text=${p.text.trim()}/>${i === last && !turn.isOver && html`<${Caret}/>`}</div>`))}
      ${last < 0 && !turn.isOver && html`<div class="answer"><${Caret}/></div>`}</div>`}
    ${asking && html`<${asking.Inputs} list=${turn.inputs}/>`}
    ${turn.isOver && turn.error && html`<p class="problem"><${Text}
      text=${turn.error.message || turn.error.code}/></p>`}
    ${isUnsure && choice && html`<${choice.Unsure} turn=${turn} onSend=${onSend}/>`}
    <${TurnFoot} turn=${turn} onCorrected=${onCorrected} onEdit=${onEdit}/>
  </li>`;
}

const Caret = () => html`<span class="caret" aria-hidden="true"></span>`;

function TurnFoot({ turn, onCorrected, onEdit }) {
  const teaching = useTeaching(!!turn.decision && can('send'));
  const cancel = () => post(path`/api/tasks/${turn.task}/cancel`);
  const decisionId = turn.decision?.id || turn.error?.details?.decision_id; // a refusal has one too
  return html`<div class="turn-foot">
    ${turn.status === 'sending' ? html`<${Badge}>sending<//>` : turn.status === 'refused'
      ? html`<${Badge} tone="bad">not sent<//>` : html`<${Status} status=${turn.status}/>`}
    ${turn.isLost && !turn.isOver && html`<span class="faint"
      role="status">${turn.task ? 'connection lost; reconnecting…'
        : 'server unreachable; not sent yet, and will be sent exactly once'}</span>`}
    ${turn.status === 'refused' && html`<${Button} className="small"
      onClick=${() => onEdit(turn)}>Edit and send again<//>`}
    ${turn.took && html`<span class="faint">${duration(turn.took)}</span>`}
    ${turn.task && html`<${Link} to=${`/tasks/${turn.task}`}>task<//>`}
    ${decisionId && html`<${Link} to=${`/decisions/${encodeURIComponent(decisionId)}`}>decision<//>`}
    ${turn.parts.some((p) => p.agent) && html`<${Link} to=${`/delegations/${turn.task}`}>delegations<//>`}
    ${turn.task && !turn.isOver && html`<${Button} className="small" onClick=${cancel}>Cancel<//>`}
    ${teaching && html`<${teaching.Correct} turn=${turn} onCorrected=${onCorrected}/>`}
  </div>`;
}

// The page.

function readDraft() {
  try {
    return sessionStorage.getItem(draftKey()) || '';
  } catch {
    return '';
  }
}

function Suggestions({ agents, said, choose }) {
  const names = new Set((agents || []).map((a) => a.name));
  const own = (agents || []).flatMap((a) => (a.skills || []).flatMap((s) => s.examples || [])).slice(0, 3);
  const texts = (names.has('content-writer') && names.has('engineer') ? SUGGESTED : own)
    .filter((t) => !said.includes(t));
  if (!texts.length) return null;
  return html`<div class="suggestions" role="group" aria-label="Messages to try"><span class="faint">Try</span>
    ${texts.map((t) => html`
    <button type="button" key=${t} class="chip" onClick=${() => choose(t)}>
      <${Text} text=${t} max=${80} line=${true}/></button>`)}</div>`;
}

/** The turns. They are rendered again when one changes, also one from an earlier visit to the page. */
function useTalk() {
  const [, draw] = useReducer((n) => n + 1, 0);
  const mine = talkOf(me()?.user);
  useEffect(() => {
    talk.draw = draw;
    return () => { talk.draw = () => {}; };
  }, []);
  return { turns: mine.turns, draw };
}

// A message that the server has not accepted yet is still a draft: after a reload
// it is back in the input.
function useDraft(turns) {
  const unsent = turns.findLast((t) => !t.task && t.status === 'sending');
  const [text, setText] = useState(() => (unsent ? '' : readDraft()));
  const kept = text || unsent?.text || '';
  useEffect(() => {
    try {
      sessionStorage.setItem(draftKey(), kept.slice(0, 100000));
    } catch { /* storage is full: the draft lives as long as the page */ }
  }, [kept]);
  return [text, setText];
}

const SLACK_PX = 48; // so close to its end, the view follows the thread

/**
 * Keeps the end of the thread above the composer while answers grow. It stops when the user scrolls up, until the
 * returned function is called.
 */
function useFollowing(end, composer) {
  const isFollowing = useRef(true);
  useEffect(() => {
    const bottom = () => end.current.getBoundingClientRect().bottom;
    const hidden = () => bottom() - composer.current.getBoundingClientRect().top;
    let before = scrollY;
    // Only a user scrolls up. A scroll down by this hook may stop short of an end that has moved on.
    const moved = () => {
      if (hidden() <= SLACK_PX) isFollowing.current = true;
      else if (scrollY < before) isFollowing.current = false;
      before = scrollY;
    };
    const grown = new ResizeObserver(() => {
      if (isFollowing.current && (hidden() > 0 || bottom() < 0)) scrollBy(0, Math.ceil(hidden()));
    });
    grown.observe(end.current.parentElement);
    grown.observe(composer.current);
    addEventListener('scroll', moved, { passive: true });
    return () => {
      grown.disconnect();
      removeEventListener('scroll', moved);
    };
  }, []);
  return () => { isFollowing.current = true; };
}

export default function Playground() {
  const { turns, draw } = useTalk();
  const [text, setText] = useDraft(turns);
  const [isFollowUp, setFollowUp] = useState(false);
  const [learnt, setLearnt] = useState(null);
  const [agents, setAgents] = useState(null);
  const [round, setRound] = useState(0);
  const [maxCost, setMaxCost] = useState('');
  const before = turns.findLast((t) => t.conversation_id)?.conversation_id || '';
  const conversation = isFollowUp ? before : '';
  const trial = useTrial(can('send') ? text : '', conversation, maxCost, round);
  const isPriced = trial.decision?.price_micros > 0;
  const teaching = useTeaching(!!learnt);
  const last = turns.findLast((t) => t.decision || t.status === 'refused');
  const choice = useChoice(!!(trial.decision || trial.error || last));
  const box = useRef(null), end = useRef(null), composer = useRef(null);
  const goToEnd = useFollowing(end, composer);
  useEffect(() => {
    get('/api/agents', { limit: 20 }).then((p) => setAgents(p.items), () => {});
    box.current?.focus();
  }, []);

  const isTooLong = bytesOf(text) > TEXT_BYTES;
  const canGo = can('send') && text.trim() && !isTooLong;
  const begin = (turn) => {
    talk.turns = [...turns, turn].slice(-MOST_TURNS);
    goToEnd();
    draw();
  };
  const send = (to) => {
    if (!canGo) return;
    begin(startTurn(text, { conversation, to, maxCost,
      quote: isPriced && !trial.isOld ? trial.decision.quote : undefined }));
    setText('');
  };
  const sendAgain = (turn, to) => {
    turn.sentTo = to;
    begin(startTurn(turn.text, { conversation: turn.conversation, to,
      maxCost: turn.error?.code === 'cost_ceiling' ? '' : turn.maxCost }));
  };
  const key = (e) => {
    if (e.key !== 'Enter' || e.shiftKey || e.isComposing) return;
    e.preventDefault();
    send();
  };
  const corrected = (taught) => {
    setLearnt(taught);
    setRound((n) => n + 1); // the text being typed may get another agent now
    draw();
  };
  const edit = (turn) => {
    talk.turns = turns.filter((t) => t !== turn);
    setText(turn.text);
    box.current?.focus();
  };
  const clear = () => {
    turns.forEach((t) => t.close());
    talk.turns = [];
    setLearnt(null);
    setFollowUp(false);
    box.current?.focus();
  };
  return html`<${Page} title="Playground" lead="Type a message and see which agent would get it, and why."
    actions=${turns.length > 0 && html`<${Button} onClick=${clear}>Clear<//>`}>
    <div class="playground">
      <div class="talk">
        <div class="thread">
          ${agents && !agents.length && html`<${Empty} title="No agents yet" command="node examples/echo.js">
            Connect an agent, and messages typed here go to the one that fits best. Follow the steps in <${Link}
              to="/agents">Agents<//>, or set <code>SIGNALBOX_TOKEN</code> and run the smallest example:<//>`}
          ${turns.length > 0 && html`<ol class="turns">
            ${turns.map((t) => html`<${Turn} key=${t.key} turn=${t} onCorrected=${corrected} onEdit=${edit}
              onSend=${sendAgain}/>`)}</ol>`}
          ${learnt && teaching && html`<${teaching.WhatWasLearnt} learnt=${learnt}/>`}
          <div ref=${end}></div>
        </div>
        <form class="composer" ref=${composer} onSubmit=${(e) => { e.preventDefault(); send(); }}>
          <label for="message" class="off-screen">Message</label>
          <textarea id="message" data-search ref=${box} rows=${turns.length ? 2 : 3} disabled=${!can('send')}
            placeholder=${can('send') ? 'Ask anything. Enter sends, Shift+Enter adds a line.'
              : 'This token can read but not send.'}
            value=${text} onInput=${(e) => setText(e.target.value)} onKeyDown=${key}></textarea>
          ${isTooLong && html`<p class="field-error" role="alert">A message can have at most 1 MiB: shorten it.</p>`}
          <div class="composer-foot"><div class="composer-help">
              ${can('send') && html`<${Suggestions} agents=${agents} said=${turns.map((t) => t.text)}
                choose=${(t) => { setFollowUp(false); setText(t); box.current?.focus(); }}/>`}
              ${before && html`<label class="check">
                <input type="checkbox" checked=${isFollowUp} onChange=${(e) => setFollowUp(e.target.checked)}/>${' '}
                continue the last conversation, with the same agent</label>`}
              ${can('send') && html`<label class="check">pay at most <input id="max-cost" inputmode="decimal" size="8"
                placeholder="0.10" pattern="\\d{1,6}([.]\\d{1,6})?" value=${maxCost}
                onInput=${(e) => setMaxCost(e.target.value.trim())}/>${' '}
                for it and its delegations</label>`}
            </div><${Button} kind="main" type="submit" disabled=${!canGo}>Send<//></div>
        </form>
      </div>
      <${Card} title=${!text.trim() && turns.length ? 'Last decision' : 'Decision'}
        className="decision-card">
        ${choice && (last || text.trim()) ? html`<${choice.Shown} trial=${trial} text=${text} last=${last}
            onSend=${can('send') && ((to) => send(to))} onSendAgain=${sendAgain}/>`
          : html`<p class="faint">${text.trim() && can('send') ? 'Deciding…'
            : 'As you type, this shows which agent would get the message and why: the four signals of every candidate, '
              + 'and how sure the decision is.'}</p>`}
      <//>
    </div>
  <//>`;
}
