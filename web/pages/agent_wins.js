// The routing test of an agent: its own examples, recent messages, and typed
// texts are each decided by the server like a message, without sending any. Three
// at a time and a bounded number, so that the test does not slow other users.
import { Bar, Badge, Button, Card, Field, Link, Loading, Name, Page, Problem, Text, html, useEffect, useReducer, useRef,
  useState } from '../lib/ui.js';
import { can, get, me, path, post } from '../lib/api.js';
import { Table } from '../lib/list.js';
import { count, num } from '../lib/format.js';

const AT_ONCE = 3;
const MOST = { example: 24, message: 20, typed: 20 };
const LOOKED_AT = 100;
const TEXT_CHARS = 2000;
// The layers that compare agents. A message that named an agent, or continued a
// conversation, does not test the routing.
const ASKED = ['intent', 'semantic', 'default'];
const KEPT_BYTES = 1024 - 3; // a decision stores 1024 bytes of a text, cut between characters
const SOURCES = { example: 'Its examples', message: 'Recent messages', typed: 'Your texts' };

/** The outcome for one text, from its decision. */
function verdictOf(name, decision) {
  const isIts = (c) => c.agent.toLowerCase() === name.toLowerCase();
  const candidates = decision.candidates || [];
  const own = candidates.find(isIts);
  const winner = candidates.find((c) => c.agent === decision.agent);
  const hasWon = !!decision.agent && decision.agent.toLowerCase() === name.toLowerCase();
  const rival = hasWon ? candidates.find((c) => !isIts(c)) : winner;
  const gap = own && rival ? own.score - rival.score : null;
  return { hasWon, agent: decision.agent, layer: decision.layer, score: own?.score ?? null,
    threshold: decision.rules?.auto ? null : decision.threshold, gap, rival: rival?.agent,
    considered: decision.considered };
}

async function judge(name, row) {
  try {
    return { ...row, state: 'done', ...verdictOf(name, await post('/api/route', { text: row.text })) };
  } catch (error) {
    if (error.code === 'no_route') return { ...row, state: 'done',
      ...verdictOf(name, { ...error.details, agent: null }) };
    return { ...row, state: 'failed', error };
  }
}

const isWhole = (d) => (d.text_is_cut === undefined ? new TextEncoder().encode(d.text).length < KEPT_BYTES
  : !d.text_is_cut);

/** The whole text, since half of it would be decided differently. Null if it is no longer stored. */
async function wholeText(decision) {
  if (isWhole(decision)) return decision.text;
  return get(path`/api/tasks/${decision.task_id}`).then((task) => task.text, () => null);
}

/** Recent messages that did not name an agent. */
async function askedLast() {
  const { items } = await get('/api/decisions', { limit: LOOKED_AT });
  const asked = items.filter((d) => d.text && ASKED.includes(d.layer)).slice(0, MOST.message);
  return (await Promise.all(asked.map(wholeText))).filter(Boolean);
}

/** A row for each text. Waiting rows are judged a few at a time while the page is open. */
function useJudged(name) {
  const rows = useRef([]);
  const going = useRef(0);
  const isThere = useRef(true);
  const [, draw] = useReducer((n) => n + 1, 0);
  useEffect(() => () => { isThere.current = false; }, []);
  const next = async () => {
    const at = rows.current.findIndex((r) => r.state === 'waits');
    if (at < 0 || going.current >= AT_ONCE || !isThere.current) return;
    const { key } = rows.current[at];
    going.current++;
    rows.current = rows.current.with(at, { ...rows.current[at], state: 'asked' });
    next();
    const done = await judge(name, rows.current[at]);
    going.current--;
    rows.current = rows.current.map((r) => (r.key === key ? done : r));
    if (isThere.current) draw();
    next();
  };
  const add = (source, texts) => {
    const there = new Set(rows.current.map((r) => r.text));
    const left = MOST[source] - rows.current.filter((r) => r.source === source).length;
    const fresh = [...new Set(texts.map((t) => t.trim()).filter((t) => t && !there.has(t)))].slice(0,
      Math.max(0, left));
    rows.current = rows.current.concat(fresh.map((text) => ({ key: `${source}:${text}`, source, text,
      state: 'waits' })));
    draw();
    next();
    return fresh.length;
  };
  return { rows: rows.current, add };
}

// Rendering.

function Outcome({ row, name }) {
  if (row.state === 'failed') return html`<span class="field-error">
    <${Text} text=${row.error.message} max=${200}/></span>`;
  if (row.state !== 'done') return html`<span class="faint">…</span>`;
  if (row.hasWon) return html`<${Badge} tone="good">wins<//>
    ${row.layer !== 'semantic' && html` <span class="faint">by ${row.layer}</span>`}`;
  if (!row.agent) return html`<${Badge} tone="warn">no agent<//> <span class="faint">no good match</span>`;
  return html`<${Badge} tone="bad">loses<//> to <${Name} agent=${row.agent}/>
    ${row.layer !== 'semantic' && html` <span class="faint">by ${row.layer}</span>`}`;
}

function Score({ row }) {
  if (row.state !== 'done') return null;
  if (row.score === null) return html`<span class="faint">not a top candidate</span>`;
  return html`<span class="score-cell"><${Bar} value=${row.score} label="score" text=${num(row.score, 3)}
    mark=${row.threshold ?? undefined} tone=${row.hasWon ? 'good' : 'accent'}/> <span
      class="figure">${num(row.score, 3)}</span></span>`;
}

function Gap({ row }) {
  if (row.state !== 'done' || row.gap === null) return html`<span class="faint">–</span>`;
  const words = row.gap >= 0 ? 'ahead of' : 'behind';
  return html`<span class="figure">${num(Math.abs(row.gap), 3)}</span> ${words} <${Text} text=${row.rival} max=${60}
    line=${true}/>`;
}

function Results({ rows, name, source }) {
  const mine = rows.filter((r) => r.source === source);
  if (!mine.length) return null;
  const done = mine.filter((r) => r.state === 'done');
  const won = done.filter((r) => r.hasWon).length;
  const columns = [
    { key: 'text', title: 'Text', render: (r) => html`<${Text} text=${r.text} max=${160}/>` },
    { key: 'outcome', title: 'Outcome', render: (r) => html`<${Outcome} row=${r} name=${name}/>` },
    { key: 'score', title: 'Its score', render: (r) => html`<${Score} row=${r}/>` },
    { key: 'gap', title: 'Lead', render: (r) => html`<${Gap} row=${r}/>` },
  ];
  return html`<${Card} title=${`${SOURCES[source]}: wins ${won} of ${done.length}`} className="wins">
    <${Table} columns=${columns} rows=${mine} rowKey=${(r) => r.key} label=${SOURCES[source]}/>
    ${done.length < mine.length && html`<p class="faint" role="status">
      ${count(mine.length - done.length, 'text')} to go…</p>`}<//>`;
}

function Ask({ add }) {
  const [text, setText] = useState('');
  const [word, say] = useState('');
  const ask = () => {
    const texts = text.split('\n').map((t) => t.slice(0, TEXT_CHARS));
    const n = add('typed', texts);
    say(n ? '' : `Nothing added: each text counts once, with at most ${MOST.typed} of your texts per visit.`);
    if (n) setText('');
  };
  return html`<${Card} title="Try your own"><form class="form" onSubmit=${(e) => { e.preventDefault(); ask(); }}>
    <${Field} label="Messages, one per line"
      hint=${word}><textarea data-search rows="3" value=${text}
        onInput=${(e) => setText(e.target.value)}></textarea><//>
    <div class="actions"><${Button} kind="main" type="submit"
      disabled=${!text.trim()}>Test<//></div></form><//>`;
}

/** The server routes differently for admins: see docs/protocol.md, POST /api/route. */
function Eyes({ card }) {
  if (me()?.role !== 'admin' || !card.creator_id || card.kind === 'platform') return null;
  return html`<p
    class="note">You are testing as an admin. For you, agents of users are outsiders: their keywords do not count, and a
      card that is similar to many others scores lower. The agent may win more for its creator,
        ${' '}<${Text} text=${card.creator_id} max=${60} line=${true}/>, and their org. Test with a token of theirs to
          see that.</p>`;
}

export default function AgentWins({ name }) {
  const [found, setFound] = useState({ card: null, error: null });
  const { rows, add } = useJudged(name);
  useEffect(() => {
    get(path`/api/agents/${name}`).then((card) => {
      setFound({ card, error: null });
      add('example', (card.skills || []).flatMap((s) => s.examples || []));
    }, (error) => setFound({ card: null, error }));
    askedLast().then((texts) => add('message', texts), () => {});
  }, [name]);
  const { card, error } = found;
  return html`<${Page} title=${`Routing test of ${name}`}
    lead="Each text is decided like a message, but not sent.">
    <p class="crumb"><${Link} to="/agents">All agents<//> › <${Link}
      to=${path`/agents/${name}`}><${Text} text=${name} max=${128} line=${true}/><//></p>
    ${error && html`<${Problem} error=${error}/>`}${!card && !error && html`<${Loading}/>`}
    ${!can('send') && html`<p class="note">The test needs a token with the scope <code>send</code>.</p>`}
    ${card && can('send') && html`<${Eyes} card=${card}/>
      ${card.routing?.routable === false
        && html`<p class="note">Its card says that it only gets messages that name it (routing.routable is false).</p>`}
      <${Ask} add=${add}/>
      ${['typed', 'example', 'message'].map((s) => html`<${Results} key=${s} rows=${rows} name=${name} source=${s}/>`)}
      ${!rows.length
        && html`<p class="faint">Its skills have no examples, and there are no recent messages. Type a message, or
          add examples to its skills.</p>`}`}
  <//>`;
}
