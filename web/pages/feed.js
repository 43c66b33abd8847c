// The live feed. Entries may arrive faster than anyone can read: they are buffered
// and rendered a few times per second, newest first, and only the rows in view
// are in the document.
import { Age, Badge, Button, Empty, Field, Id, Name, Page, Text, html, useEffect, useMemo, useReducer, useRef,
  useState } from '../lib/ui.js';
import { get } from '../lib/api.js';
import { useFeed } from '../lib/live.js';
import { Exact, Search, filtersAt } from '../lib/filters.js';
import { List } from '../lib/list.js';
import { count as countOf, marked, money } from '../lib/format.js';

const MOST = 2000; // entries kept, unless the user loads older ones
const MOST_EVER = 50000;
const PAGE = 200;
const PACE_MS = 150; // between two renders: a single entry appears at once, many are rendered in batches
const STRETCH = 500;
const STRETCHES = 40;

const TONES = [[/completed|approved|restarted|resolved|released/, 'good'],
  [/failed|expired|rejected|hidden|dropped|restart_failed/, 'bad'],
  [/held|paused|escalated|late|overridden|out$|refused|submitted|reported/, 'warn'],
  [/accepted|routed|registered|created/, 'busy']];
// The tone of each reason for which an agent changes its state.
const HOW = { gone: 'bad', failing: 'bad', slow: 'warn', came: 'good', recovered: 'good' };
const toneOf = ({ type, data }) => (type === 'agent.state' && HOW[data?.why])
  || TONES.find(([pattern]) => pattern.test(type))?.[1] || 'calm';

const GROUPS = [['', 'Everything'], ['task.', 'Tasks'], ['message.', 'Refused'], ['decision.', 'Decisions'],
  ['gate.', 'Gate'], ['escalation.', 'Escalations'],
  ['agent.', 'Agents'], ['conversation.', 'Conversations'], ['ledger.', 'Ledger'], ['grant.', 'Grants'],
  ['user.', 'Users'], ['token.', 'Tokens'], ['config.', 'Configuration']];

const BANDS = { unsure: 'unsure', out_of_scope: 'out of scope' };

const refusal = ({ band, code }) => BANDS[band]
  || (code === 'agent_not_found' ? 'agent not found' : 'no agent could get it');

// Events of a review.
const REVIEWS = {
  'agent.submitted': 'waits for review', 'agent.withdrawn': 'withdrawn from review',
  'agent.approved': 'its card was approved',
  'agent.rejected': 'its card was rejected', 'agent.hidden': 'only its creator and admins see it now',
  'agent.reported': 'a user reported it', 'agent.reports_dismissed': 'its reports were dismissed',
};

const fields = (list) => [].concat(list || []).join(', ');

/** A short summary of an entry, from the fields that its type has. */
function words({ type, data = {} }) {
  const parts = [type === 'message.refused' && refusal(data), REVIEWS[type],
    fields(data.wanted) && `proposed: ${fields(data.wanted)}`, data.nearest && `nearest: ${data.nearest}`, data.reason,
    data.comment, data.why, data.amount_micros !== undefined && money(data.amount_micros),
    data.error_code, data.by && `by ${data.by}`,
    data.from && data.to && `${data.from} → ${data.to}`, data.routing_decision,
      data.layer && `layer ${data.layer}`, data.status,
    fields(data.changed) && `changed: ${fields(data.changed)}`,
    data.reference, data.user && `user ${data.user}`,
    type === 'learning.voided' && `the verdicts of ${data.of}`];
  return parts.filter(Boolean).slice(0, 3).join(' · ');
}

const decisionOf = (e) => e.data?.decision_id || e.data?.overrides;

// All values of an entry, without the field names.
const valuesOf = (value) => (value && typeof value === 'object' ? Object.values(value).flatMap(valuesOf) : [value]);
const said = (entry) => valuesOf(entry).join('\n').toLowerCase();

function matches(entry, filter) {
  if (filter.type && !entry.type.startsWith(filter.type)) return false;
  if (filter.agent && entry.agent !== filter.agent && entry.data?.target !== filter.agent) return false;
  if (filter.conversation && entry.conversation_id !== filter.conversation) return false;
  if (filter.decision && decisionOf(entry) !== filter.decision) return false;
  return !filter.q || said(entry).includes(filter.q.toLowerCase());
}

/** The entries, newest first; while paused, new ones are buffered. */
function useEntries(isPaused) {
  const state = useRef(null);
  const [, draw] = useReducer((n) => n + 1, 0);
  state.current ||= { all: [], fresh: [], frame: 0, drawn: 0, most: MOST, error: null, done: false, isLoading: false };
  const s = state.current;
  const isPausedNow = useRef(isPaused);
  isPausedNow.current = isPaused;
  const count = () => {
    Object.assign(s, { frame: 0, drawn: performance.now() });
    draw();
  };
  const settle = () => {
    if (s.fresh.length) s.all = s.fresh.reverse().concat(s.all).slice(0, s.most);
    s.fresh = [];
    count();
  };
  const load = async () => {
    try {
      const { items } = await get('/api/feed', { last: PAGE });
      const newest = items.at(-1)?.seq || 0;
      Object.assign(s, { all: [...items].reverse(), fresh: s.fresh.filter((e) => e.seq > newest), error: null,
        done: !items.length || items[0].seq <= 1 });
    } catch (error) {
      s.error = error;
    }
    settle();
  };
  const older = async () => {
    const oldest = s.all.at(-1)?.seq;
    if (s.isLoading || s.done || !oldest) return;
    s.isLoading = true;
    await readOlder(s, oldest).catch((error) => { s.error = error; s.done = true; });
    s.isLoading = false;
    draw();
  };
  useFeed((entry) => {
    if (!entry) return;
    if (entry.type === 'gap') { load(); return; }
    s.fresh.push(entry);
    if (s.fresh.length > s.most) s.fresh.shift();
    s.frame ||= setTimeout(() => (isPausedNow.current ? count() : settle()),
      Math.max(0, s.drawn + PACE_MS - performance.now()));
  });
  useEffect(() => { load(); return () => clearTimeout(s.frame); }, []);
  useEffect(() => { if (!isPaused) settle(); }, [isPaused]);
  return { rows: s.all, waiting: s.fresh.length, error: s.error, done: s.done, loading: s.isLoading, more: older,
    reload: load };
}

// The API reads the feed forwards, so older entries are read in stretches before
// the oldest one. A stretch may be empty, since entries that the user may not see
// are left out.
async function readOlder(s, oldest) {
  for (let upto = oldest, i = 0; i < STRETCHES && upto > 1; i++) {
    const after = Math.max(0, upto - 1 - STRETCH);
    const { items } = await get('/api/feed', { after, limit: STRETCH });
    const found = items.filter((e) => e.seq < upto).reverse();
    s.all = s.all.concat(found);
    s.most = Math.min(MOST_EVER, Math.max(s.most, s.all.length + MOST));
    s.done = after === 0 || s.all.length >= MOST_EVER;
    if (found.length) return;
    upto = after + 1;
  }
}

const place = (e) => (e.task_id ? `#/tasks/${encodeURIComponent(e.task_id)}` : e.agent
  ? `#/agents/${encodeURIComponent(e.agent)}` : e.type === 'message.refused' && decisionOf(e)
    ? `#/decisions/${encodeURIComponent(decisionOf(e))}` : '');

const COLUMNS = [
  { key: 'what', title: 'Event', width: 'minmax(11rem, 1.1fr)', phone: '9.6rem',
    render: (e) => html`<${Badge} tone=${toneOf(e)}>${e.type}<//>${e.data?.unsure
      && html` <${Badge} tone="warn">unsure<//>`}` },
  { key: 'at', title: 'Time', width: '6rem', phone: '4.6rem', render: (e) => html`<${Age} ms=${e.at_ms}/>` },
  { key: 'agent', title: 'Agent', width: 'minmax(8rem, 1fr)', render: (e) => html`<${Name} agent=${e.agent}/>` },
  { key: 'who', title: 'User', width: 'minmax(5rem, .6fr)', phone: false,
    render: (e) => html`<${Text} text=${e.requester || e.data?.by || '–'} max=${40} line=${true}/>` },
  { key: 'words', title: 'Details', width: 'minmax(10rem, 2fr)', phone: false,
    render: (e) => html`<${Text} text=${words(e)} max=${200} line=${true}/>` },
  { key: 'links', title: 'Links', width: 'minmax(12rem, 1fr)', phone: false, render: (e) => html`
    ${decisionOf(e) && html`<${Id} id=${decisionOf(e)} to=${`/decisions/${decisionOf(e)}`}/> `}
    ${e.data?.escalation_id && html`<${Id} id=${e.data.escalation_id} to=${`/escalations/${e.data.escalation_id}`}/> `}
    ${e.conversation_id && html`<a class="id" href=${`#/feed?conversation=${encodeURIComponent(e.conversation_id)}`}
      title=${marked(e.conversation_id)}>conversation</a>`}` },
];

function Filters({ filter, set }) {
  const exact = (name, label) => html`<${Exact} label=${label} value=${filter[name]}
    onChoose=${(text) => set({ [name]: text })}/>`;
  return html`<div class="filters" role="search" aria-label="Filter the feed">
    <${Search} label="Search" value=${filter.q} onSearch=${(q, goesOn) => set({ q }, goesOn)} data-search/>
    <${Field} label="Type"><select value=${filter.type || ''}
      onChange=${(e) => set({ type: e.target.value })}>${GROUPS.map(([id, name]) =>
        html`<option key=${id} value=${id}>${name}</option>`)}</select><//>
    ${exact('agent', 'Agent')}${exact('conversation', 'Conversation')}${exact('decision', 'Decision')}
  </div>`;
}

export default function Feed({ query, go }) {
  const [isHeld, hold] = useState(false);
  const [isTop, setTop] = useState(true);
  const entries = useEntries(isHeld || !isTop); // a list that is scrolled down does not move
  const { rows, waiting, error } = entries;
  const filter = query;
  const isFiltered = Object.keys(filter).length > 0;
  const set = filtersAt('/feed', go);
  const shown = useMemo(() => (isFiltered ? rows.filter((e) => matches(e, filter)) : rows), [rows, filter]);
  const pages = { ...entries, rows: shown, loading: entries.loading || (!rows.length && !entries.done && !error) };
  return html`<${Page} title="Feed" lead="Every event, as soon as it is committed." actions=${html`
      ${waiting > 0 && (isHeld || !isTop) && html`<span role="status">
        ${countOf(waiting, 'new entry', 'new entries')}</span>`}
      <${Button} onClick=${() => hold(!isHeld)} aria-pressed=${isHeld}>${isHeld ? 'Resume' : 'Pause'}<//>`}>
    <${Filters} filter=${filter} set=${set}/>
    <${List} pages=${pages} columns=${COLUMNS} rowKey=${(e) => e.seq} href=${place} label="Feed, newest first"
      onTop=${setTop}
      empty=${rows.length ? html`<${Empty} title=${`None of the newest ${rows.length} entries matches this filter`}>
          ${!entries.done && html`<${Button} onClick=${entries.more}>Look further back<//> `}
            <${Button} onClick=${() => set(null)}>Show all<//><//>`
        : html`<${Empty} title="No events yet" command=${['build/signalbox send "hello"',
          'build/signalbox feed --follow']}>Every message, decision, hold and change appears here as soon as it is
            committed. Send a message:<//>`}/>
  <//>`;
}
