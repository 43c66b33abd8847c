// Who there is: every agent that the caller sees, how it is and how it does.
// Figures are asked for what is in view and nothing else, so that ten thousand
// agents cost what forty do.
import { Badge, Button, Empty, Field, Loading, Page, Problem, State, Text, html, useEffect, useRef,
  useState } from '../lib/ui.js';
import { can, get, now } from '../lib/api.js';
import { useRefresh } from '../lib/live.js';
import { Exact, Search, filtersAt } from '../lib/filters.js';
import { List, usePages } from '../lib/list.js';
import { Spark, span, sum } from '../lib/spark.js';
import { count, duration, num } from '../lib/format.js';
import { Connect } from './agent_connect.js';

const PAGE = 200;
const REFRESH_MS = 15000; // what others give it is in nobody else's feed, and minutes pass
const countEvery = (n) => (n > 2000 ? 15000 : 4000); // counting looks at every agent: not each time
const NAMES = 60; // in view at once, at most
const STATES = ['ACTIVE', 'IDLE', 'BUSY', 'SLOW', 'ERROR', 'DEAD'];

// Which page of an agent: #/agents/NAME, #/agents/NAME/edit, #/agents/NAME/wins, #/agents?register=1
const PARTS = {
  show: () => import('./agent.js'),
  edit: () => import('./agent_edit.js'),
  wins: () => import('./agent_wins.js'),
};
const loaded = {};

function Part({ id, ...more }) {
  const [, draw] = useState(0);
  const found = loaded[id];
  useEffect(() => {
    if (!found) PARTS[id]().then((m) => { loaded[id] = m.default; draw(1); },
      (error) => { loaded[id] = () => html`<${Problem} error=${error}/>`; draw(1); });
  }, [id]);
  return found ? html`<${found} ...${more}/>` : html`<${Loading}/>`;
}

// Figures of those in view.

/** {counts, of: name -> figures}, kept up while somebody looks. */
function useFleet(names) {
  const [fleet, setFleet] = useState({ counts: null, of: new Map(), error: null });
  const wanted = useRef('');
  wanted.current = names.slice(0, NAMES).join(',');
  const timer = useRef(0);
  const counted = useRef(0);
  const total = useRef(0);
  const ask = async () => {
    const isToCount = !counted.current || performance.now() - counted.current > countEvery(total.current);
    clearTimeout(timer.current);
    timer.current = setTimeout(ask, REFRESH_MS);
    if (document.hidden) return;
    try {
      const { items, ...counts } = await get('/api/fleet', { names: wanted.current,
        ...(!isToCount && { counts: false }) });
      if (isToCount) { counted.current = performance.now(); total.current = counts.agents; }
      setFleet((f) => ({ counts: isToCount ? counts : f.counts, of: new Map(items.map((x) => [x.agent, x])),
        error: null }));
    } catch (error) {
      setFleet((f) => ({ ...f, error }));
    }
  };
  useEffect(() => {
    const soon = setTimeout(ask, 100); // who scrolls has another view in a moment
    return () => clearTimeout(soon);
  }, [wanted.current]);
  useEffect(() => () => clearTimeout(timer.current), []);
  useRefresh(['task.', 'agent.', 'gate.'], ask);
  return { ...fleet, reload: ask };
}

// The columns. Figures come a moment after their rows.

const none = html`<span class="faint">–</span>`;

function AnswerTime({ figures }) {
  if (!figures) return none;
  const range = figures.hour && span(figures.hour.latency_ms);
  return html`<span class="spark-cell">${range && html`<${Spark} values=${figures.hour.latency_ms}
      label=${`Time to answer in the last hour: ${duration(range[0])} to ${duration(range[1])}`}/>`}
    <span class="figure">${duration(figures.latency_ms)}</span></span>`;
}

const HOUR_MS = 3600000;

/** It fails and is tried again: nothing has ended, and nobody would see it. */
const isFailing = (f) => f.failed_ms > now() - HOUR_MS;

function Errors({ figures }) {
  if (!figures) return none;
  if (!figures.hour && isFailing(figures)) return html`<${Badge} tone="bad">attempts fail<//>`;
  const failed = figures.hour ? sum(figures.hour.failed) : 0;
  const ended = figures.hour ? failed + sum(figures.hour.completed) : 0;
  return html`<span class="spark-cell">${figures.hour && html`<${Spark} kind="bars" tone=${failed ? 'bad' : 'calm'}
    values=${figures.hour.failed}
      label=${`Failed in the last hour: ${failed} of ${ended}`}/>`}
    <span class="figure ${failed ? 'is-bad' : ''}" title=${ended ? `${failed} of ${ended} in the last hour`
      : 'no work in the last hour'}>${figures.hour ? num(failed) : '–'}</span></span>`;
}

const columnsFor = (of) => [
  { key: 'name', title: 'Agent', width: 'minmax(11rem, 2fr)', phone: 'minmax(0, 1fr)',
    render: (a) => html`<span class="agent-cell"><span class="name">
      <${Text} text=${a.name} max=${128} line=${true}/></span>${
    a.title && html`<span class="faint not-phone"><${Text} text=${a.title} max=${128} line=${true}/></span>`}</span>` },
  { key: 'state', title: 'State', width: '8.5rem', phone: '5.4rem',
    render: (a) => html`<${State} state=${(of.get(a.name) || a).state}/>
      ${(of.get(a.name) || a).paused && html` <${Badge} tone="warn">paused<//>`}` },
  { key: 'queued', title: 'Queued', width: '6.6rem', align: 'right', phone: false,
    render: (a) => waiting(of.get(a.name)) },
  { key: 'in_flight', title: 'In flight', width: '4.5rem', align: 'right', phone: '3.6rem',
    render: (a) => num(of.get(a.name)?.in_flight) },
  { key: 'latency', title: 'Time to answer', width: '11.5rem', phone: false,
    render: (a) => html`<${AnswerTime} figures=${of.get(a.name)}/>` },
  { key: 'errors', title: 'Errors', width: '9.5rem', phone: false,
    render: (a) => html`<${Errors} figures=${of.get(a.name)}/>` },
  { key: 'skills', title: 'Skills', width: '3.6rem', align: 'right', phone: false, render: (a) => num(a.skills) },
  { key: 'visibility', title: 'Seen by', width: '5.5rem', phone: false, render: (a) => a.visibility },
];

const waiting = (f) => html`${num(f?.queued)}${f?.held > 0 && html` <span class="faint">+ ${num(f.held)} held</span>`}`;

// Filters.

function StateChips({ counts, query, set }) {
  const chip = (state, word, n) => html`<button type="button" key=${word} class="chip"
    aria-pressed=${(query.state || '') === state} onClick=${() => set({ state })}>
      ${word} <span class="figure">${n === undefined ? '' : num(n)}</span></button>`;
  return html`<div class="chips" role="group" aria-label="Agents by state">${chip('', 'all', counts?.agents)}
    ${STATES.map((s) => chip(s, s, counts?.states[s]))}
    ${counts?.paused > 0 && html`<span class="faint">${num(counts.paused)} paused</span>`}</div>`;
}

function Filters({ query, set }) {
  const exact = (name) => ({ value: query[name], onChoose: (text) => set({ [name]: text }) });
  return html`<div class="filters" role="search" aria-label="Filter agents">
    <${Search} label="Name or title" value=${query.q} onSearch=${(q, goesOn) => set({ q }, goesOn)} data-search
      maxlength="128"/>
    <${Exact} label="Tag of a skill" ...${exact('tag')} maxlength="64"/>
    <${Field} label="Seen by"><select value=${query.visibility || ''}
      onChange=${(e) => set({ visibility: e.target.value })}>
      <option value="">any</option><option value="public">everybody (public)</option>
        <option value="shared">some (shared)</option><option value="private">its creator (private)</option></select><//>
    <${Exact} label="Creator" ...${exact('creator')} maxlength="128"/>
  </div>`;
}

const FILTERS = ['q', 'tag', 'visibility', 'creator', 'state'];
const VISIBILITIES = ['public', 'shared', 'private'];

/** What the address asks for; a state or visibility that there is not is none. */
function filterOf(query) {
  const known = { state: STATES, visibility: VISIBILITIES };
  return Object.fromEntries(FILTERS.filter((k) => query[k] && (!known[k] || known[k].includes(query[k])))
    .map((k) => [k, query[k]]));
}

function Fleet({ query, go }) {
  const filter = filterOf(query);
  const isFiltered = Object.keys(filter).length > 0;
  const pages = usePages('/api/agents', { ...filter, brief: true }, PAGE);
  const [view, setView] = useState({ from: 0, to: 40 });
  const fleet = useFleet(pages.rows.slice(view.from, view.to).map((a) => a.name));
  const [isConnecting, connect] = useState(false);
  const isEmpty = !isFiltered && !pages.rows.length && pages.done && !pages.error;
  const wasEmpty = useRef(false); // how to connect one stays until they leave: a token is told there
  wasEmpty.current ||= isEmpty;
  // Who is far down keeps their place: new names are found when they search.
  useRefresh(['agent.registered', 'agent.updated', 'agent.removed'], () => pages.rows.length <= 500 && pages.reload());
  const set = filtersAt('/agents', go);
  const actions = can('agents')
    && html`${!isEmpty && html`<${Button} onClick=${() => connect(true)}>Connect your own<//>`}
      <${Button} kind="main" onClick=${() => go('/agents?register=1')}>Register an agent<//>`;
  const nobody = html`<${Empty}
    title="No agents are here yet">Every agent that you may see is listed here, with its state, its queue, and how fast
      and how well it answers. ${
    can('agents') ? 'Three steps connect the first one to this server:'
      : 'Your token may not register any: who may sees here how one is connected.'}<//>`;
  const noneFits = html`<${Empty} title="No agent fits this filter">
    <${Button} onClick=${() => set(null)}>Show all<//><//>`;
  return html`<${Page} title="Agents" lead=${fleet.counts?.agents
    ? `${count(fleet.counts.agents, 'agent')} that you may see.` : 'Who there is, and how they do.'} actions=${actions}>
    ${!isEmpty && html`<${StateChips} counts=${fleet.counts} query=${filter} set=${set}/>
      <${Filters} query=${filter} set=${set}/>`}
    ${fleet.error && !pages.error && html`<${Problem} error=${fleet.error} onRetry=${fleet.reload}/>`}
    <${List} pages=${pages} columns=${columnsFor(fleet.of)} rowKey=${(a) => a.name}
      href=${(a) => `#/agents/${encodeURIComponent(a.name)}`}
      label="Agents, by name" onView=${setView} empty=${isFiltered ? noneFits : nobody}/>
    ${wasEmpty.current && can('agents') && html`<${Connect}/>`}
    ${isConnecting && html`<${Connect} onClose=${() => connect(false)}/>`}
  <//>`;
}

export default function Agents({ args: [name, part], query, go }) {
  if (name === undefined && query.register) return html`<${Part} id="edit" key="register" query=${query} go=${go}/>`;
  if (name === undefined) return html`<${Fleet} query=${query} go=${go}/>`;
  return html`<${Part} id=${PARTS[part] ? part : 'show'} key=${`${name}/${part}`} name=${name} query=${query}
    go=${go}/>`;
}
