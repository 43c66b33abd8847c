// The contribution of each signal, and the keywords that mislead.
import { Bar, Card, Empty, Name, Text, html } from '../lib/ui.js';
import { Table } from '../lib/list.js';
import { num, pct } from '../lib/format.js';
import { Csv } from './analytics_csv.js';

const share = (r, key) => (r.decisions ? r[key] / r.decisions : 0);
const COLUMNS = [
  { key: 's', title: 'Signal', align: 'keep', render: (r) =>
    html`<i class="dot s-${r.signal}"></i>${r.signal}` },
  { key: 'd', title: 'Would differ without it', align: 'keep',
    render: (r) => html`<span class="share"><${Bar} value=${share(r, 'would_differ')} label="would differ"
      text=${pct(share(r, 'would_differ'), 1)} tone=${`s-${r.signal}`}/>
        <span class="figure">
          ${num(r.would_differ)} <span class="faint">(${pct(share(r, 'would_differ'))})</span></span></span>` },
  { key: 'h', title: 'Helped', align: 'right', render: (r) => num(r.helped) },
  { key: 'x', title: 'Hurt', align: 'right', render: (r) => num(r.hurt) },
  { key: 'v', title: 'Result', align: 'keep', render: (r) => verdict(r) },
];

function verdict(r) {
  if (!r.would_differ) return html`<span class="faint">changes nothing</span>`;
  if (!r.helped && !r.hurt) return html`<span class="faint">unknown</span>`;
  return r.helped > r.hurt ? html`<span class="good">▲ helped more than it hurt</span>` : r.helped < r.hurt
    ? html`<span class="bad">▼ hurt more than it helped</span>` : 'helped as often as it hurt';
}

export function Signals({ data, params }) {
  const n = data.signals[0]?.decisions || 0;
  return html`<${Card} title="What each signal contributes" actions=${html`<${Csv} table="signals" params=${params}/>`}>
    ${!n ? html`<${Empty}
      title="No decisions by score in this period">For each signal, this shows how many decisions would have gone to
        another agent without it.<//>`
      : html`<p class="hint">${num(n)} decisions by score: how many would have gone to another agent without the
        signal, and whether the signal was right.</p>
        <${Table} columns=${COLUMNS} rows=${data.signals} rowKey=${(r) => r.signal} label="Signals"/>`}
  <//>`;
}

const find = (keyword) => `#/decisions?${new URLSearchParams({ q: keyword })}`;
const KEYWORDS = [
  { key: 'k', title: 'Keyword', render: (r) => html`<a href=${find(r.keyword)}>
    <${Text} text=${r.keyword} max=${60} line=${true}/></a>` },
  { key: 'a', title: 'Agent', render: (r) => html`<${Name} agent=${r.agent}/>` },
  { key: 'f', title: 'In messages', align: 'right', render: (r) => num(r.fired) },
  { key: 'w', title: 'Agent got it', align: 'right', render: (r) => num(r.won) },
  { key: 'p', title: 'Decided by it', align: 'right', render: (r) => num(r.pulled) },
  { key: 'r', title: 'Right', align: 'right', render: (r) => num(r.right) },
  { key: 'x', title: 'Wrong', align: 'right', render: (r) =>
    (r.wrong ? html`<strong class="bad">${num(r.wrong)}</strong>` : '0') },
];

export function Keywords({ data, params }) {
  return html`<${Card} title="Keywords" actions=${html`<${Csv} table="keywords" params=${params}/>`}>
    ${!data.keywords.length ? html`<${Empty} title="No keyword was in any message"
      command="build/signalbox lint">This table counts the keywords of cards that occur in messages, misleading
        ones first. To find keywords that say little, or that several agents share, run:<//>`
      : html`<p class="hint">Most often wrong first. A keyword that is wrong as often as right is too general, such as
        “write” or “data”.</p>
        <${Table} columns=${KEYWORDS} rows=${data.keywords.slice(0, 100)} rowKey=${(r) => `${r.keyword} ${r.agent}`}
          label="Keywords, misleading first"/>
        ${data.keywords.length > 100
          && html`<p class="hint">and ${num(data.keywords.length - 100)} more in the CSV</p>`}`}
  <//>`;
}
