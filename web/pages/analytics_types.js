// Agents by query type as a heat map, and the types that no agent covers well.
import { Bar, Card, Empty, Field, Link, Name, Text, html, useMemo, useState } from '../lib/ui.js';
import { me } from '../lib/api.js';
import { duration, marked, num, pct } from '../lib/format.js';
import { Csv } from './analytics_csv.js';

const ROWS = 15, COLUMNS = 8;

const well = (c) => (c.positive + c.negative ? c.positive / (c.positive + c.negative) : null);
const WAYS = [
  { id: 'decisions', name: 'decisions', value: (c, most) => c.decisions / most, text: (c) => num(c.decisions),
    tone: 'accent' },
  { id: 'well', name: 'share of good outcomes', value: well, text: (c) => pct(well(c)), tone: 'good' },
  { id: 'confidence', name: 'confidence', value: (c) => c.confidence, text: (c) => num(c.confidence, 2),
    tone: 's-semantic' },
  { id: 'overridden', name: 'share of corrections', value: (c) => c.override_rate,
    text: (c) => pct(c.override_rate), tone: 'bad' },
];

function typeName(r) {
  if (r.name) return html`<${Text} text=${r.name} max=${60} line=${true}/>`;
  return r.type ? `type ${r.type}` : html`<span class="faint">no type yet</span>`;
}

function add(map, key, row) {
  if (!map.has(key)) map.set(key, { n: 0, key, row });
  map.get(key).n += row.decisions;
}

const most = (map, count) => [...map.values()].sort((a, b) => b.n - a.n).slice(0, count);

/** Rows are types, columns are agents, most decisions first. */
function matrix(items) {
  const types = new Map(), agents = new Map(), cells = new Map();
  for (const row of items) {
    add(types, row.type, row);
    add(agents, row.agent, row);
    cells.set(JSON.stringify([row.type, row.agent]), row);
  }
  return { types, agents, cell: (type, agent) => cells.get(JSON.stringify([type, agent])),
    top: Math.max(1, ...items.map((r) => r.decisions)) };
}

const said = (c, type) => `${num(c.decisions)} of ${marked(c.name || '') || (type ? `type ${type}` : 'no type')}`
  + ` to ${c.agent}: ${num(c.positive)} good, ${num(c.negative)} bad, ${num(c.overrides)} corrected,`
  + ` confidence ${num(c.confidence, 2)}`;

function Cell({ cell, way, top, type }) {
  if (!cell) return html`<td class="heat-none"><span class="off-screen">none</span></td>`;
  const value = way.value(cell, top);
  const share = value === null ? 0 : Math.round(Math.max(0, Math.min(1, value)) * 45);
  return html`<td class="heat-cell" title=${said(cell, type)}
    style=${{ background: `color-mix(in srgb, var(--${way.tone}) ${share}%, var(--card))` }}>
      <a href=${`#/decisions?${new URLSearchParams({ type: type || 0, agent: cell.agent })}`}
        aria-label=${`${way.text(cell)}: ${said(cell, type)}`}>${way.text(cell)}</a></td>`;
}

export function Types({ data, params }) {
  const [wayId, setWay] = useState('decisions');
  const [isAll, showAll] = useState(false);
  const m = useMemo(() => matrix(data.types), [data]);
  const way = WAYS.find((w) => w.id === wayId);
  const types = most(m.types, isAll ? 200 : ROWS), agents = most(m.agents, isAll ? 50 : COLUMNS);
  const hidden = m.types.size - types.length + m.agents.size - agents.length;
  if (!data.types.length) return html`<${Card} title="Agents by query type">
    <${Empty} title="No message was compared by meaning in this period">Query types are learned from messages that
      name no agent.<//><//>`;
  return html`<${Card} title="Agents by query type" actions=${html`<${Csv} table="types" params=${params}/>`}>
    <div class="heat-way"><${Field} label="Show">
      <select value=${wayId} onChange=${(e) => setWay(e.target.value)}>
        ${WAYS.map((w) => html`<option key=${w.id} value=${w.id}>${w.name}</option>`)}</select><//></div>
    <div class="table-box" tabindex="0" role="region" aria-label="Agents by query type">
      <table class="heat">
      <caption class="off-screen">Query types by agent: ${way.name}</caption>
      <thead><tr><th scope="col">Query type</th>${agents.map((a) =>
        html`<th key=${a.key} scope="col"><${Name} agent=${a.key}/></th>`)}
          <th scope="col" class="right">all</th></tr></thead>
      <tbody>${types.map((t) => html`<tr key=${t.key}><th scope="row">${typeName(t.row)}</th>
        ${agents.map((a) => html`<${Cell} key=${a.key} cell=${m.cell(t.key, a.key)} way=${way} top=${m.top}
          type=${t.key}/>`)}<td class="right">${num(t.n)}</td></tr>`)}</tbody>
    </table></div>
    ${hidden > 0 && html`<p><button type="button" class="link"
      onClick=${() => showAll(true)}>show all</button></p>`}
    ${!data.types.some((r) => r.type)
      && html`<p class="hint">Query types are learned from outcomes. They appear once the first decisions
        are judged: ${duration(data.follow_up_ms)} after the answer, or when a user gives a verdict.</p>`}
    ${me()?.role !== 'admin'
      && html`<p class="hint">Only admins see the names of types, because they contain users’ words.</p>`}
  <//>`;
}

function Gap({ gap }) {
  const find = (text) => `/decisions?${new URLSearchParams({ q: text.slice(0, 60) })}`;
  return html`<li class="gap">
    <div class="gap-head"><strong><${Link} to=${`/decisions?type=${gap.type || 0}`}>${typeName(gap)}<//></strong>
      <span class="faint">${num(gap.decisions)} unsure, ${num(gap.to_default)} to the default agent</span></div>
    <div class="gap-score"><span>best score ${num(gap.best_score, 2)}</span>
      <${Bar} value=${gap.best_score} label="mean of the best scores" text=${num(gap.best_score, 2)} tone="warn"/>
        <span class="faint">nearest <${Name} agent=${gap.nearest_agent}/></span></div>
    <ul class="samples">
      ${gap.samples.map((s) => html`<li key=${s}><${Link} to=${find(s)}><${Text} text=${s} max=${160}/><//></li>`)}</ul>
  </li>`;
}

export function Gaps({ data, params }) {
  return html`<${Card} title="Gaps: requests that no agent covers well"
      actions=${html`<${Csv} table="gaps" params=${params}/>`}>
    ${data.gaps.length === 0
      ? html`<${Empty}
        title="No gaps: every choice was confident">Messages that went to the default agent, or whose best score was
          close to the threshold or to the second score, appear here.<//>`
      : html`<p class="hint">No agent reached the threshold, or two were nearly as good. A new agent, a better
        description or an example on a card closes a gap: <${Link} to="/agents">agents<//>.</p>
          <ul class="gaps">${data.gaps.slice(0, 30).map((g) => html`<${Gap} key=${g.type} gap=${g}/>`)}</ul>`}
  <//>`;
}
