// What happens now. Entries come faster than anybody reads: they are kept
// aside and drawn once per frame, newest first, and only the rows in view are
// in the document.
import { Age, Badge, Button, Empty, Field, Id, Name, Page, Problem, Text, html, useEffect, useMemo, useReducer, useRef, useState } from '../lib/ui.js';
import { get } from '../lib/api.js';
import { feed, useFeed } from '../lib/live.js';
import { List } from '../lib/list.js';
import { count } from '../lib/format.js';

const MOST = 2000; // entries kept; the server has all of them
const PAGE = 200;

const TONES = [[/completed|approved|restarted|resolved|released/, 'good'], [/failed|expired|rejected|dropped|restart_failed/, 'bad'],
  [/held|paused|escalated|late|overridden|out$/, 'warn'], [/accepted|routed|registered|created/, 'busy']];
const toneOf = (type) => TONES.find(([pattern]) => pattern.test(type))?.[1] || 'calm';

const GROUPS = [['', 'Everything'], ['task.', 'Tasks'], ['decision.', 'Corrections'], ['gate.', 'Gate'], ['escalation.', 'Escalations'],
  ['agent.', 'Agents'], ['conversation.', 'Conversations'], ['grant.', 'Grants'], ['user.', 'Users'], ['token.', 'Tokens']];

/** What an entry says, in a few words, from whatever its type has. */
function words({ data = {} }) {
  const parts = [data.reason, data.comment, data.error_code, data.by && `by ${data.by}`,
    data.from && data.to && `${data.from} → ${data.to}`, data.routing_decision, data.status,
    data.changed && `changed: ${[].concat(data.changed).join(', ')}`, data.reference, data.user && `user ${data.user}`];
  return parts.filter(Boolean).slice(0, 3).join(' · ');
}

const decisionOf = (e) => e.data?.decision_id || e.data?.overrides;

function matches(entry, filter) {
  if (filter.type && !entry.type.startsWith(filter.type)) return false;
  if (filter.agent && entry.agent !== filter.agent && entry.data?.target !== filter.agent) return false;
  if (filter.conversation && entry.conversation_id !== filter.conversation) return false;
  if (filter.decision && decisionOf(entry) !== filter.decision) return false;
  return !filter.q || JSON.stringify(entry).toLowerCase().includes(filter.q.toLowerCase());
}

/** The newest entries first, drawn at most once a frame; `pause` lets them wait. */
function useEntries(isPaused) {
  const all = useRef([]);
  const fresh = useRef([]);
  const frame = useRef(0);
  const [, draw] = useReducer((n) => n + 1, 0);
  const [error, setError] = useState(null);
  const settle = () => {
    frame.current = 0;
    if (fresh.current.length) all.current = fresh.current.reverse().concat(all.current).slice(0, MOST);
    fresh.current = [];
    draw();
  };
  const load = () => get('/api/feed', { last: PAGE }).then(({ items }) => {
    const seen = new Set(items.map((e) => e.seq));
    all.current = [...items].reverse();
    fresh.current = fresh.current.filter((e) => !seen.has(e.seq));
    setError(null);
    settle();
  }, setError);
  useFeed((entry) => {
    if (!entry) return;
    if (entry.type === 'gap') { load(); return; }
    fresh.current.push(entry);
    if (fresh.current.length > MOST) fresh.current.shift();
    if (!isPaused && !frame.current) frame.current = requestAnimationFrame(settle);
  });
  useEffect(() => { load(); return () => cancelAnimationFrame(frame.current); }, []);
  useEffect(() => { if (!isPaused) settle(); else draw(); }, [isPaused]);
  return { rows: all.current, waiting: fresh.current.length, error, reload: load };
}

const place = (e) => (e.task_id ? `#/tasks/${encodeURIComponent(e.task_id)}` : e.agent ? `#/agents/${encodeURIComponent(e.agent)}` : '');

const COLUMNS = [
  { key: 'what', title: 'What', width: 'minmax(11rem, 1.1fr)', render: (e) => html`<${Badge} tone=${toneOf(e.type)}>${e.type}<//>` },
  { key: 'at', title: 'When', width: '6rem', render: (e) => html`<${Age} ms=${e.at_ms}/>` },
  { key: 'agent', title: 'Agent', width: 'minmax(8rem, 1fr)', render: (e) => html`<${Name} agent=${e.agent}/>` },
  { key: 'who', title: 'Who', width: 'minmax(5rem, .6fr)', phone: false, render: (e) => html`<${Text} text=${e.requester || e.data?.by || '–'} max=${40} line=${true}/>` },
  { key: 'words', title: 'Words', width: 'minmax(10rem, 2fr)', phone: false, render: (e) => html`<${Text} text=${words(e)} max=${200} line=${true}/>` },
  { key: 'links', title: 'Leads to', width: 'minmax(12rem, 1fr)', phone: false, render: (e) => html`
    ${decisionOf(e) && html`<${Id} id=${decisionOf(e)} to=${`/decisions/${decisionOf(e)}`}/> `}
    ${e.data?.escalation_id && html`<${Id} id=${e.data.escalation_id} to=${`/escalations/${e.data.escalation_id}`}/> `}
    ${e.conversation_id && html`<a class="id" href=${`#/feed?conversation=${encodeURIComponent(e.conversation_id)}`} title=${e.conversation_id}>thread</a>`}` },
];

function Filters({ filter, set }) {
  const input = (name, label) => html`<${Field} label=${label}><input value=${filter[name] || ''} onChange=${(e) => set({ [name]: e.target.value.trim() })} spellcheck=${false}/><//>`;
  return html`<div class="filters" role="search" aria-label="Filter the feed">
    <${Field} label="Search"><input type="search" data-search value=${filter.q || ''} onInput=${(e) => set({ q: e.target.value })}/><//>
    <${Field} label="Kind"><select value=${filter.type || ''} onChange=${(e) => set({ type: e.target.value })}>${GROUPS.map(([id, name]) => html`<option key=${id} value=${id}>${name}</option>`)}</select><//>
    ${input('agent', 'Agent')}${input('conversation', 'Conversation')}${input('decision', 'Decision')}
  </div>`;
}

export default function Feed({ query, go }) {
  const [isPaused, setPaused] = useState(false);
  const { rows, waiting, error, reload } = useEntries(isPaused);
  const filter = query;
  const set = (more) => {
    const next = Object.entries({ ...filter, ...more }).filter(([, v]) => v);
    go(`/feed${next.length ? `?${new URLSearchParams(next)}` : ''}`);
  };
  const shown = useMemo(() => (Object.keys(filter).length ? rows.filter((e) => matches(e, filter)) : rows), [rows, filter]);
  return html`<${Page} title="Feed" lead="Everything that happens, as it is committed." actions=${html`
      ${isPaused && waiting > 0 && html`<span role="status">${count(waiting, 'new entry', 'new entries')}</span>`}
      <${Button} onClick=${() => setPaused(!isPaused)} aria-pressed=${isPaused}>${isPaused ? 'Go on' : 'Pause'}<//>`}>
    <${Filters} filter=${filter} set=${set}/>
    ${error && html`<${Problem} error=${error} onRetry=${reload}/>`}
    <${List} rows=${shown} columns=${COLUMNS} rowKey=${(e) => e.seq} href=${place} label="Feed, the newest first"
      empty=${rows.length ? html`<${Empty} title="Nothing of the newest ${rows.length} entries fits this filter"><${Button} onClick=${() => go('/feed')}>Show everything<//><//>`
        : html`<${Empty} title="Nothing has happened yet" command=${['signalbox send "why is my query slow?"', 'signalbox feed --follow']}>Each message, decision, hold and change appears here the moment it is committed. Send one:<//>`}/>
    ${!feed.seen && rows.length > 0 && html`<p class="faint">These are from before; what is new comes in above.</p>`}
  <//>`;
}
