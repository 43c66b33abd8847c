// Budgets of users, orgs and agents per day or month, and their use.
import { Badge, Bar, Button, Empty, Field, Text, Time, confirm, html, toast, useState } from '../lib/ui.js';
import { can, del, me, put } from '../lib/api.js';
import { useRefresh } from '../lib/live.js';
import { List, usePages } from '../lib/list.js';
import { marked, micros, money } from '../lib/format.js';
import { FormDialog, Line } from '../lib/form.js';

const MOST = 10n ** 18n; // micro-units
const NEAR = 0.8;

// Floating point is used for the bars only. The figures are exact.
export const share = (b) => (BigInt(b.limit_micros) === 0n ? 1
  : Number((BigInt(b.used_micros) * 10000n) / BigInt(b.limit_micros)) / 10000);
export const tone = (used) => (used >= 1 ? 'bad' : used >= NEAR ? 'warn' : 'accent');
const whose = (b) => (b.kind === 'self' ? `${b.name}, set by the user` : `${b.kind} ${b.name}`);
const keyOf = (b) => `${b.kind} ${b.name} ${b.period}`;

// Users set and remove their own budget without a name. An admin can only remove it.
const named = (b) => {
  if (!can('ledger')) return {};
  return b.kind === 'self' ? { user: b.name, kind: 'self' } : { [b.kind]: b.name };
};
const mayChange = (b) => (can('ledger') ? b.kind !== 'self' : b.kind === 'self');
const mayRemove = (b) => can('ledger') || b.kind === 'self';

function limitOf(text) {
  const limit = micros(text);
  if (limit === null || limit < 0n || limit > MOST)
    throw new Error(`The limit must be a number such as 25 or 0.5, from 0 to ${money(MOST)}.`);
  return limit;
}

function SetBudget({ budget, onDone, onClose }) {
  const [kind, setKind] = useState(budget?.kind || 'user');
  const [name, setName] = useState(budget?.name || me().user);
  const [period, setPeriod] = useState(budget?.period || 'day');
  const [limit, setLimit] = useState('');
  const send = async () => {
    const set = await put('/api/budgets', { ...(can('ledger') ? { [kind]: name.trim() } : {}), period,
      limit_micros: limitOf(limit) });
    onDone(`${whose(set)}: ${money(set.limit_micros)} a ${set.period}.`);
  };
  return html`<${FormDialog} title="Set a budget" action="Set" send=${send} onClose=${onClose}>
    ${can('ledger') ? html`<${Field} label="For"><select value=${kind} onChange=${(e) => setKind(e.target.value)}>
        <option value="user">a user</option><option value="org">all users of an org</option>
        <option value="agent">all work of an agent</option></select><//>
      <${Line} label="Name" value=${name} onInput=${setName} required maxlength="128"/>`
      : html`<p class="hint">Your own budget applies in addition to the admin’s.</p>`}
    <${Field} label="Period"><select value=${period} onChange=${(e) => setPeriod(e.target.value)}>
      <option value="day">day (UTC)</option><option value="month">month (UTC)</option></select><//>
    <${Line} label="Limit" value=${limit} onInput=${setLimit} required inputmode="decimal" placeholder="25.00"
      hint="Up to six decimal places. 0: nothing may be spent."/><//>`;
}

async function remove(b, reload) {
  const isSure = await confirm({ title: 'Remove this budget?', action: 'Remove',
    text: `${marked(whose(b))}: the limit of ${money(b.limit_micros)} a ${b.period} no longer applies.` });
  if (!isSure) return;
  await del('/api/budgets', { params: { ...named(b), period: b.period } });
  toast('Removed.');
  reload();
}

const columns = (reload, change) => [
  { key: 'whose', title: 'Budget', width: 'minmax(9rem, 1.4fr)', phone: 'minmax(0, 1.2fr)',
    render: (b) => html`<${Badge}>${b.kind}<//> <${Text} text=${b.name} max=${60} line=${true}/>` },
  { key: 'period', title: 'Period', width: '5rem', phone: false, render: (b) => b.period },
  { key: 'limit', title: 'Limit', width: 'minmax(6rem, .8fr)', phone: false, align: 'right',
    render: (b) => money(b.limit_micros) },
  { key: 'used', title: 'Used', width: 'minmax(8rem, 1.2fr)', phone: 'minmax(0, 1fr)',
    render: (b) => html`<${Bar} value=${Math.min(share(b), 1)} label="Used" tone=${tone(share(b))}
      text=${`${money(b.used_micros)} of ${money(b.limit_micros)}`}/>` },
  { key: 'left', title: 'Left', width: 'minmax(6rem, .8fr)', phone: false, align: 'right',
    render: (b) => money(b.left_micros) },
  { key: 'resets', title: 'Resets', width: '12rem', phone: false, render: (b) => html`<${Time} ms=${b.resets_ms}/>` },
  { key: 'do', title: 'Actions', width: '10rem', phone: false, align: 'right', render: (b) => html`
    ${mayChange(b) && html`<${Button} className="small" onClick=${() => change(b)}
      aria-label=${`Change ${marked(keyOf(b))}`}>Change<//>`}
    ${mayRemove(b) && html`<${Button} className="small" kind="danger" onClick=${() => remove(b, reload)}
      aria-label=${`Remove ${marked(keyOf(b))}`}>Remove<//>`}` },
];

export function Budgets() {
  const pages = usePages('/api/budgets');
  const [setting, setSetting] = useState(null);
  useRefresh(['task.', 'budget.'], pages.reload);
  const done = (words) => {
    setSetting(null);
    toast(words);
    pages.reload();
  };
  return html`<div class="actions spread"><p class="hint">Days and months are in UTC. Reservations of unfinished work
      count. At 80 % the feed shows a warning.</p>
      ${can('send') && html`<${Button} kind="main" onClick=${() => setSetting({})}>Set a budget<//>`}</div>
    <${List} pages=${pages} columns=${columns(pages.reload, setSetting)} rowKey=${keyOf} label="Budgets" empty=${html`
      <${Empty} title="No budgets" command=${can('ledger') ? 'build/signalbox budgets set day 25 --user NAME'
        : 'build/signalbox budgets set day 25'}>A budget limits what a user, an org or an agent may cost in a day or
        month. A message that would exceed it is rejected before any work begins.<//>`}/>
    ${setting && html`<${SetBudget} budget=${setting.kind ? setting : null} onDone=${done}
      onClose=${() => setSetting(null)}/>`}`;
}
