// The agents that are visible to the user, with their state and figures. Figures
// are loaded for the rows in view only, so that ten thousand agents cost as
// little as forty.
import { Badge, Button, Empty, Field, Loading, Page, Problem, State, Text, html, useEffect, useRef,
  useState } from '../lib/ui.js';
import { can, get, now } from '../lib/api.js';
import { useRefresh } from '../lib/live.js';
import { Choice, Exact, Search, filtersAt } from '../lib/filters.js';
import { List, usePages } from '../lib/list.js';
import { REVIEW_TYPES, ReviewBadges, reviewOptions, useToReview } from '../lib/review.js';
import { Spark, span, sum } from '../lib/spark.js';
import { count, duration, num } from '../lib/format.js';
import { Connect } from './agent_connect.js';

const PAGE = 200;
const REFRESH_MS = 15000; // the feed omits the tasks of other users, and the last hour moves on
const countEvery = (n) => (n > 2000 ? 15000 : 4000); // counting reads every agent, so it is not done each time
const NAMES = 60; // the most in view at once
const STATES = ['ACTIVE', 'IDLE', 'BUSY', 'SLOW', 'ERROR', 'DEAD'];

// The pages of an agent: #/agents/NAME, #/agents/NAME/edit, #/agents/NAME/wins, #/agents?register=1
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

// Figures of the agents in view.

/** {counts, of: name -> figures}, refreshed while the page is visible. */
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
    const soon = setTimeout(ask, 100); // while scrolling, the view changes again at once
    return () => clearTimeout(soon);
  }, [wanted.current]);
  useEffect(() => () => clearTimeout(timer.current), []);
  useRefresh(['task.', 'agent.', 'gate.'], ask);
  return { ...fleet, reload: ask };
}

// The columns. Figures arrive a moment after their rows.

const none = html`<span class="faint">–</span>`;

function AnswerTime({ figures }) {
  if (!figures) return none;
  const range = figures.hour && span(figures.hour.latency_ms);
  return html`<span class="spark-cell">${range && html`<${Spark} values=${figures.hour.latency_ms}
      label=${`Latency in the last hour: ${duration(range[0])} to ${duration(range[1])}`}/>`}
    <span class="figure">${duration(figures.latency_ms)}</span></span>`;
}

const HOUR_MS = 3600000;

/** Attempts fail and are retried. No task has ended yet, so the counts do not show it. */
const isFailing = (f) => f.failed_ms > now() - HOUR_MS;

function Errors({ figures }) {
  if (!figures) return none;
  if (!figures.hour && isFailing(figures)) return html`<${Badge} tone="bad">attempts failing<//>`;
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
    (a.review || a.reports > 0) && html`<span class="signs"><${ReviewBadges} state=${a.review}
      reports=${a.reports}/></span>`}${
    a.title && html`<span class="faint not-phone"><${Text} text=${a.title} max=${128} line=${true}/></span>`}</span>` },
  { key: 'state', title: 'State', width: '8.5rem', phone: '5.4rem',
    render: (a) => html`<${State} state=${(of.get(a.name) || a).state}/>
      ${(of.get(a.name) || a).paused && html` <${Badge} tone="warn">paused<//>`}` },
  { key: 'queued', title: 'Queued', width: '6.6rem', align: 'right', phone: false,
    render: (a) => waiting(of.get(a.name)) },
  { key: 'in_flight', title: 'In flight', width: '4.5rem', align: 'right', phone: '3.6rem',
    render: (a) => num(of.get(a.name)?.in_flight) },
  { key: 'latency', title: 'Latency', width: '11.5rem', phone: false,
    render: (a) => html`<${AnswerTime} figures=${of.get(a.name)}/>` },
  { key: 'errors', title: 'Errors', width: '9.5rem', phone: false,
    render: (a) => html`<${Errors} figures=${of.get(a.name)}/>` },
  { key: 'skills', title: 'Skills', width: '3.6rem', align: 'right', phone: false, render: (a) => num(a.skills) },
  { key: 'visibility', title: 'Visibility', width: '5.5rem', phone: false, render: (a) => a.visibility },
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
    <${Exact} label="Skill tag" ...${exact('tag')} maxlength="64"/>
    <${Field} label="Visibility"><select value=${query.visibility || ''}
      onChange=${(e) => set({ visibility: e.target.value })}>
      <option value="">any</option><option value="public">public</option>
        <option value="shared">shared</option><option value="private">private</option></select><//>
    <${Choice} label="Review" name="review" filter=${query} set=${set} options=${reviewOptions()}/>
    <${Exact} label="Creator" ...${exact('creator')} maxlength="128"/>
  </div>`;
}

const FILTERS = ['q', 'tag', 'visibility', 'creator', 'state', 'review'];
const VISIBILITIES = ['public', 'shared', 'private'];

/** The filters in the address; unknown values are ignored. */
function filterOf(query) {
  const known = { state: STATES, visibility: VISIBILITIES, review: reviewOptions().map(([id]) => id) };
  return Object.fromEntries(FILTERS.filter((k) => query[k] && (!known[k] || known[k].includes(query[k])))
    .map((k) => [k, query[k]]));
}

// For admins: the cards to review and the reported agents.
function ToReview() {
  const found = useToReview();
  const line = ({ n, isMore }, review, one, many) => n > 0
    && html`<a href=${`#/agents?review=${review}`}>${isMore ? 'more than ' : ''}${count(n, one, many)}</a>`;
  const lines = found && [line(found.waiting, 'waiting', 'card waits for review', 'cards wait for review'),
    line(found.reported, 'reported', 'agent is reported', 'agents are reported')].filter(Boolean);
  if (!lines?.length) return null;
  return html`<p class="note to-review" role="status">${lines.map((one, i) => html`${i > 0 && ', '}${one}`)}</p>`;
}

function Fleet({ query, go }) {
  const filter = filterOf(query);
  const isFiltered = Object.keys(filter).length > 0;
  const pages = usePages('/api/agents', { ...filter, brief: true }, PAGE);
  const [view, setView] = useState({ from: 0, to: 40 });
  const fleet = useFleet(pages.rows.slice(view.from, view.to).map((a) => a.name));
  const [isConnecting, connect] = useState(false);
  const isEmpty = !isFiltered && !pages.rows.length && pages.done && !pages.error;
  const wasEmpty = useRef(false); // the steps stay until the user leaves, since they show a token
  wasEmpty.current ||= isEmpty;
  // A long list is not reloaded, so that it keeps its scroll position.
  useRefresh(['agent.registered', 'agent.updated', 'agent.removed', ...REVIEW_TYPES],
    () => pages.rows.length <= 500 && pages.reload());
  const set = filtersAt('/agents', go);
  const actions = can('agents')
    && html`${!isEmpty && html`<${Button} onClick=${() => connect(true)}>Connect your own agent<//>`}
      <${Button} kind="main" onClick=${() => go('/agents?register=1')}>Register an agent<//>`;
  const noAgents = html`<${Empty}
    title="No agents yet">Every agent that is visible to you appears here, with its state, queue, latency and errors. ${
    can('agents') ? 'Connect the first one in three steps:'
      : 'Registering agents needs a token with the scope “agents”, which yours does not have.'}<//>`;
  const noMatch = html`<${Empty} title="No agent matches this filter">
    <${Button} onClick=${() => set(null)}>Show all<//><//>`;
  return html`<${Page} title="Agents" lead=${fleet.counts?.agents
    ? `${count(fleet.counts.agents, 'agent')} visible to you.` : 'All agents, with their state, queue and latency.'}
    actions=${actions}>
    ${can('admin') && html`<${ToReview}/>`}
    ${!isEmpty && html`<${StateChips} counts=${fleet.counts} query=${filter} set=${set}/>
      <${Filters} query=${filter} set=${set}/>`}
    ${fleet.error && !pages.error && html`<${Problem} error=${fleet.error} onRetry=${fleet.reload}/>`}
    <${List} pages=${pages} columns=${columnsFor(fleet.of)} rowKey=${(a) => a.name}
      href=${(a) => `#/agents/${encodeURIComponent(a.name)}`}
      label="Agents, by name" onView=${setView} empty=${isFiltered ? noMatch : noAgents}/>
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
