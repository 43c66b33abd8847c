// The statement of an account, newest line first, also as CSV.
import { Badge, Button, Empty, Field, Id, Name, Text, Time, html, toast, useEffect } from '../lib/ui.js';
import { ask, can, me } from '../lib/api.js';
import { useRefresh } from '../lib/live.js';
import { List, usePages } from '../lib/list.js';
import { count, marked, money } from '../lib/format.js';
import { saveFile } from '../lib/save.js';

const CSV_LINES = 5000; // limit of one answer
const CSV_PAGES = 40;

const TONES = {
  topup: 'good', capture: 'good', charge: 'good', refund: 'busy', release: 'calm', reserve: 'calm', payout: 'busy',
};

/** The start of a day such as `2026-11-16`. The ledger's days are in UTC. */
const dayStart = (text) => (/^\d{4}-\d\d-\d\d$/.test(text || '') ? Date.parse(`${text}T00:00:00Z`) : undefined);
const DAY_MS = 86400000;

export function paramsOf(user, query) {
  const isWhole = /^(all$|user:|creator:|reserved$|platform$|outside$)/.test(query.account || '');
  const until = dayStart(query.until);
  return {
    ...(isWhole ? {} : { user }), account: query.account || '',
    after_ms: dayStart(query.since), before_ms: until === undefined ? undefined : until + DAY_MS,
  };
}

function Filters({ query, set, download }) {
  const day = (name, label) => html`<${Field} label=${label}>
    <input type="date" value=${query[name] || ''} onChange=${(e) => set({ [name]: e.target.value })}/><//>`;
  const known = ['', 'creator', 'all', 'platform', 'reserved', 'outside'];
  return html`<div class="filters" role="search" aria-label="Filter the statement">
    <${Field} label="Account"><select value=${query.account || ''} onChange=${(e) => set({ account: e.target.value })}>
      <option value="">spending</option><option value="creator">earnings of agents</option>
      ${can('ledger') && html`<option value="all">all accounts</option><option value="platform">platform</option>
        <option value="reserved">reserved</option><option value="outside">outside</option>`}
      ${!known.includes(query.account || '') && html`<option
        value=${query.account}>${marked(query.account)}</option>`}</select><//>
    ${day('since', 'From (UTC)')}${day('until', 'To, inclusive (UTC)')}
    <${Button} onClick=${download}>Download CSV<//></div>`;
}

/** The whole statement, page by page, with one header line. */
async function readCsv(params) {
  let text = '', cursor = '', pages = 0;
  do {
    const reply = await ask('GET', '/api/ledger/statement', { params: { ...params, format: 'csv', limit: CSV_LINES,
      cursor }, accept: 'text/csv' });
    const page = await reply.text();
    text += pages ? page.slice(page.indexOf('\n') + 1) : page;
    cursor = reply.headers.get('Next-Cursor') || '';
    pages += 1;
  } while (cursor && pages < CSV_PAGES);
  return { text, isCut: !!cursor };
}

async function downloadCsv(params, name) {
  const { text, isCut } = await readCsv(params);
  saveFile(name, text);
  if (isCut) toast(`There are more than ${count(CSV_LINES * CSV_PAGES,
    'line')}. The file has the newest; choose fewer days for the others.`, 'warn');
}

const what = (l) => html`${l.agent && html`<${Name} agent=${l.agent}/>`}
  ${l.skill && html` <span class="faint">${' '}<${Text} text=${l.skill} max=${60} line=${true}/></span>`}${
  l.note && html` <${Text} text=${l.note} max=${120} line=${true}/>`}
    ${l.by && html` <span class="faint">by <${Text} text=${l.by} max=${60} line=${true}/></span>`}`;

// A finished, paid reservation is a charge.
const kindOf = (l) => (l.state === 'charged' ? 'charge' : l.kind);

const columns = (isOne, onRefund) => [
  { key: 'at', title: 'Time', width: '10rem', phone: 'minmax(0, 1fr)', render: (l) => html`<${Time} ms=${l.at_ms}/>` },
  { key: 'kind', title: 'Type', width: '7rem', phone: '5.5rem',
    render: (l) => html`<${Badge} tone=${TONES[kindOf(l)] || 'calm'}>${kindOf(l)}<//>` },
  { key: 'amount', title: 'Amount', width: 'minmax(7rem, .8fr)', phone: 'minmax(0, 1fr)', align: 'right',
    render: (l) => html`<span class=${BigInt(l.amount_micros) < 0n ? '' : 'plus'}>
      ${BigInt(l.amount_micros) > 0n ? '+' : ''}${money(l.amount_micros)}</span>` },
  ...(isOne ? [] : [{ key: 'account', title: 'Account', width: 'minmax(7rem, 1fr)', phone: false,
    render: (l) => html`<${Text} text=${l.account} max=${80} line=${true}/>` }]),
  { key: 'for', title: 'For', width: 'minmax(9rem, 2fr)', phone: false, render: what },
  { key: 'task', title: 'Task', width: '9rem', phone: false,
    render: (l) => (l.task_id ? html`<${Id} id=${l.task_id} to=${`/tasks/${l.task_id}`}/>`
      : html`<span class="faint">–</span>`) },
  ...(can('ledger') ? [{ key: 'do', title: 'Actions', width: '5.5rem', phone: false, align: 'right',
    render: (l) => (/^(charge|capture)$/.test(kindOf(l)) && l.task_id
    ? html`<${Button} className="small" onClick=${() => onRefund(l.task_id, l.turn)}
      aria-label=${`Refund the task ${l.task_id}`}>Refund<//>` : '') }] : []),
];

function Nothing({ user, isNarrow, set }) {
  if (isNarrow) return html`<${Empty} title="No line matches"><${Button}
    onClick=${() => set({ account: '', since: '', until: '' })}>Show all lines<//><//>`;
  return html`<${Empty} title="No entries yet" command=${[`build/signalbox ledger topup ${user} 25`,
    `build/signalbox ledger statement ${user}`]}>
    <p>Each reservation, charge, refund and top-up appears here with its task and agent. Agents without a price are
      free; the price is <code>pricing.amount_micros</code> on the card.</p>
    ${!can('ledger') && html`<p>An admin can top up your balance.</p>`}<//>`;
}

export function Statement({ user, query, set, round, onRefund }) {
  const params = paramsOf(user, query);
  const pages = usePages('/api/ledger/statement', params);
  const isNarrow = !!(query.account || query.since || query.until);
  useRefresh(['task.', 'ledger.'], pages.reload);
  useEffect(() => { if (round) pages.reload(); }, [round]);
  const name = `signalbox-statement-${user || me().user}${query.account ? `-${query.account}`
    : ''}.csv`.replace(/[^A-Za-z0-9._@-]/g, '_');
  return html`
    <${Filters} query=${query} set=${set} download=${() => downloadCsv(params, name)}/>
    <${List} pages=${pages} columns=${columns(!query.account, onRefund)} rowKey=${(l) => `${l.seq} ${l.account}`}
      label="Statement, newest first"
      empty=${html`<${Nothing} user=${user || me().user} isNarrow=${isNarrow} set=${set}/>`}/>`;
}
