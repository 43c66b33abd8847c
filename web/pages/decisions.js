// The list of decisions, searched and filtered by the server, page by page. One
// decision is pages/decision.js.
import { Age, Bar, Badge, Button, Empty, Field, Name, Page, Status, Text, html, useMemo, useState } from '../lib/ui.js';
import { useRefresh } from '../lib/live.js';
import { Choice, SPANS, Search, filtersAt, sinceOf, timeOf } from '../lib/filters.js';
import { List, usePages } from '../lib/list.js';
import { brief } from '../lib/message.js';
import { num } from '../lib/format.js';
import { BandMark, LAYERS } from '../lib/candidates.js';
import { Decision } from './decision.js';

const VERDICTS = ['open', 'positive', 'negative', 'neutral'];
const RARE = ['conversation', 'requester', 'since', 'until', 'min', 'max'];

/** The filters in the address, as parameters of the API. */
function paramsOf(f, since) {
  return { q: f.q, layer: f.layer, agent: f.agent, verdict: f.verdict, overridden: f.overridden,
    conversation_id: f.conversation, task_id: f.task,
    requester: f.requester, type: f.type, since, until: timeOf(f.until), min_score: f.min, max_score: f.max };
}

// The line marks the threshold. Floors are not on the scale of scores, so they have no line.
function Score({ d }) {
  if (d.score === null || d.score === undefined) return html`<span class="faint">–</span>`;
  const hasLine = typeof d.threshold === 'number' && (d.rules ? !d.rules.auto : !d.band || d.layer === 'intent');
  return html`<span class="score-cell"><span class="figure">${num(d.score, 3)}</span>
    <${Bar} value=${d.score} mark=${hasLine ? d.threshold : undefined} label="score"
      text=${`${num(d.score, 3)}${hasLine ? `, threshold ${num(d.threshold, 2)}` : ''}`}/></span>`;
}

const Outcome = ({ d }) => html`<${Status} status=${d.verdict}/>
  ${d.overridden_to && html` <${Badge} tone="warn" title=${`overridden to ${d.overridden_to}`}>overridden<//>`}`;

const COLUMNS = [
  { key: 'text', title: 'Message', width: 'minmax(12rem, 3fr)', phone: 'minmax(0, 1.5fr)',
    render: (d) => (d.unreadable ? html`<span class="faint">recorded by another version</span>`
      : html`<${Text} text=${brief(d.text)} max=${160} line=${true}/>`) },
  { key: 'agent', title: 'Agent', width: 'minmax(7rem, 1fr)', phone: 'minmax(0, 1fr)',
    render: (d) => (d.layer === 'none' ? html`<span class="faint">no agent</span>` : html`<${Name} agent=${d.agent}/>
      ${d.unsure && html`<span class="phone-only faint" title="unsure" aria-label="unsure"> ?</span>`}`) },
  { key: 'layer', title: 'Layer', width: '10rem', phone: false, render: (d) => d.layer
    && html`<span class="layer layer-${d.layer}">${d.layer}</span> <${BandMark} decision=${d}/>` },
  { key: 'score', title: 'Score', width: '8rem', phone: false, render: (d) => html`<${Score} d=${d}/>` },
  { key: 'verdict', title: 'Verdict', width: '11rem', phone: false, render: (d) => html`<${Outcome} d=${d}/>` },
  { key: 'at', title: 'Time', width: '6.5rem', phone: '4.4rem', render: (d) => html`<${Age} ms=${d.at_ms}/>` },
];

const Typed = ({ name, filter, set, ...more }) => html`<${Search} value=${filter[name]}
  onSearch=${(text, goesOn) => set({ [name]: text }, goesOn)} ...${more}/>`;

function Filters({ filter, set }) {
  const [isWide, widen] = useState(RARE.some((name) => filter[name]));
  const more = { filter, set };
  const isTime = filter.since && !SPANS.some(([id]) => id === filter.since);
  return html`<div role="search" aria-label="Search and filter decisions">
    <div class="filters">
      <${Typed} label="Words in the message" name="q" type="search" data-search maxlength="200" ...${more}/>
      <${Typed} label="Agent" name="agent" ...${more}/>
      <${Choice} label="Layer" name="layer" options=${LAYERS.map((l) => [l, l])} ...${more}/>
      <${Choice} label="Verdict" name="verdict" options=${VERDICTS.map((v) => [v, v])} ...${more}/>
      <${Choice} label="Overridden" name="overridden" options=${[['true', 'yes'], ['false', 'no']]} ...${more}/>
      <${Choice} label="Time" name="since" options=${[...SPANS, ...(isTime ? [[filter.since, 'since…']] : [])]}
        ...${more}/>
    </div>
    ${isWide && html`<div class="filters more-filters">
      <${Typed} label="Conversation" name="conversation" ...${more}/>
      <${Typed} label="Requester" name="requester" ...${more}/>
      <${Field} label="From"><input type="datetime-local" value=${isTime ? filter.since : ''}
        onChange=${(e) => set({ since: e.target.value })}/><//>
      <${Field} label="Until"><input type="datetime-local" value=${filter.until || ''}
        onChange=${(e) => set({ until: e.target.value })}/><//>
      <${Typed} label="Score at least" name="min" type="number" min="0" max="1" step="0.01" ...${more}/>
      <${Typed} label="Score at most" name="max" type="number" min="0" max="1" step="0.01" ...${more}/>
    </div>`}
    ${filter.type
      && html`<p class="filter-foot"><span>Only decisions ${filter.type === '0' ? 'without a query type'
        : `of query type ${filter.type}`}</span> <button type="button" class="link"
          onClick=${() => set({ type: '' })}>show all types</button></p>`}
    <p class="filter-foot"><button type="button" class="link" aria-expanded=${isWide}
      onClick=${() => widen(!isWide)}>${isWide ? 'fewer filters' : 'more filters'}</button>
      ${Object.values(filter).some(Boolean) && html` <button type="button" class="link"
        onClick=${() => set(null)}>show all</button>`}</p>
  </div>`;
}

function Nothing({ isFiltered, pages, set }) {
  if (!isFiltered) return html`<${Empty} title="No decisions yet"
    command=${['build/signalbox send "why is my query slow?"', 'build/signalbox decisions']}>
    Every message creates one: the agent that got it, the scores of the candidates, and the verdict. Send a message in
      the playground, or run:<//>`;
  return html`<${Empty} title=${pages.done ? 'No decision matches this filter' : 'No match among the newest decisions'}>
    ${!pages.done && html`<${Button} onClick=${pages.more}>Look further back<//> `}
      <${Button} onClick=${() => set(null)}>Show all<//><//>`;
}

function Decisions({ query, go }) {
  // relative to the time it was chosen; otherwise every render would send a new request
  const since = useMemo(() => sinceOf(query.since), [query.since]);
  const pages = usePages('/api/decisions', paramsOf(query, since));
  const [isTop, setTop] = useState(true);
  const isFiltered = Object.keys(query).length > 0;
  const set = filtersAt('/decisions', go);
  // A list that is scrolled down or searched is not reloaded.
  useRefresh(['task.accepted', 'message.refused', 'decision.'], () => { if (isTop && !query.q) pages.reload(); });
  return html`<${Page} title="Decisions" lead="Which agent got each message, which layer decided, and the verdict.">
    <${Filters} filter=${query} set=${set}/>
    <${List} pages=${pages} columns=${COLUMNS} rowHeight=${44} href=${(d) => `#/decisions/${encodeURIComponent(d.id)}`}
      label="Decisions, newest first" onTop=${setTop}
      empty=${html`<${Nothing} isFiltered=${isFiltered} pages=${pages} set=${set}/>`}/>
  <//>`;
}

export default function DecisionsPage({ args, query, go }) {
  return args[0] ? html`<${Decision} key=${args[0]} id=${args[0]} go=${go}/>`
    : html`<${Decisions} query=${query} go=${go}/>`;
}
