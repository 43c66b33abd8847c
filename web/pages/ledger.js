// The ledger: balance, budgets and statement of a user. With the scope ledger also
// all accounts, transfers and the consistency check.
import { Bar, Button, Card, Facts, Loading, Page, Problem, Tabs, Text, Time, html, toast,
  useGet, useState } from '../lib/ui.js';
import { can, me } from '../lib/api.js';
import { useRefresh } from '../lib/live.js';
import { marked, money } from '../lib/format.js';
import { Figure } from '../lib/figure.js';
import { Exact, withFilters } from '../lib/filters.js';
import { Statement } from './ledger_statement.js';
import { Accounts, Check } from './ledger_books.js';
import { Move } from './ledger_move.js';
import { Budgets as Limits, share as shareOf, tone } from './ledger_budgets.js';

const TABS = [
  { id: 'statement', label: 'Statement' },
  { id: 'budgets', label: 'Budgets' },
  { id: 'accounts', label: 'Accounts', scope: 'ledger' },
  { id: 'check', label: 'Check', scope: 'ledger' },
];

// Floating point is used for the bars only. The figures are exact.
const share = (part, whole) => Number((BigInt(part) * 10000n) / BigInt(whole)) / 10000;

const OF = { user: '', self: ', set by the user' };
const named = (b) => `a ${b.period}${OF[b.kind] ?? `, for the ${b.kind} ${marked(b.name)}`}`;

// A budget that the user's messages count towards.
const Limit = ({ budget }) => html`<div class="budget"><span><b>${money(budget.used_micros)}</b> of
    ${' '}${money(budget.limit_micros)} ${named(budget)}</span>
  <${Bar} value=${Math.min(shareOf(budget), 1)} label=${`Used ${named(budget)}`} tone=${tone(shareOf(budget))}
    text=${`${money(budget.used_micros)} of ${money(budget.limit_micros)}`}/>
  <span class="faint">${money(budget.left_micros)} left until <${Time} ms=${budget.resets_ms}/></span></div>`;

function Budgets({ budgets }) {
  const { spent_today_micros: spent, per_day_micros: day, left_today_micros: left,
    per_conversation_micros: conversation, per_root_micros: root } = budgets;
  const used = day === null ? 0 : share(spent, day);
  return html`<${Card} title="Budgets">
    ${day !== null && html`<div class="budget"><span>Today <b>${money(spent)}</b> of ${money(day)}</span>
      <${Bar} value=${used} label="Spent today" text=${`${money(spent)} of ${money(day)}`}
        tone=${used >= 1 ? 'bad' : used > 0.8 ? 'warn' : 'accent'}/>
      <span class="faint">${money(left)} left until midnight UTC</span></div>`}
    ${budgets.items.map((b) => html`<${Limit} key=${`${b.kind} ${b.period}`} budget=${b}/>`)}
    <${Facts} facts=${[['Per day', day === null ? 'no limit' : null],
      ['Spent today', day === null ? money(spent) : null],
      ['Per conversation', conversation === null ? 'no limit' : `at most ${money(conversation)}`],
        ['Per message, with all delegations', root === null ? 'no limit' : `at most ${money(root)}`]]}/>
    <p class="hint">Set
      by <code>ledger.perDay</code>, <code>ledger.perConversation</code> and <code>ledger.perRoot</code>, in
        micro-units.</p><//>`;
}

function Balance({ user, balance }) {
  const { data, error, reload } = balance;
  if (error && !data) return html`<${Problem} error=${error} onRetry=${reload}/>`;
  if (!data) return html`<${Loading}/>`;
  return html`<div class="grid">
    <${Card} title=${html`Balance of <${Text} text=${data.user} max=${60} line=${true}/>${user ? '' : ' (you)'}`}>
      <div class="figures of-money">
        <${Figure} name="Balance" value=${money(data.balance_micros)} hint="available"/>
        <${Figure} name="Reserved" value=${money(data.reserved_micros)} hint="for work in progress"/>
        <${Figure} name="Earned" value=${money(data.earned_micros)} hint="by their agents, not yet paid out"/>
        ${BigInt(data.owed_micros) > 0n && html`<${Figure} name="Owed" value=${money(data.owed_micros)}
          hint="for refunds after a payout; taken from later earnings"/>`}
      </div><//>
    <${Budgets} budgets=${data.budgets}/></div>`;
}

function Actions({ user, onMove }) {
  if (!can('ledger')) return null;
  const open = (what) => () => onMove({ what, user });
  return html`<${Button} kind="main" onClick=${open('topup')}>Top up<//><${Button} onClick=${open('refund')}>Refund<//>
    <${Button} onClick=${open('payout')}>Pay out<//>`;
}

export default function Ledger({ args, query, go }) {
  const user = can('ledger') ? query.user || '' : '';
  const offered = TABS.filter((t) => !t.scope || can(t.scope));
  const tab = offered.find((t) => t.id === args[0]) || offered[0];
  const balance = useGet('/api/ledger/balance', { user });
  // Without a balance there is no statement, and the error is shown above.
  const hasBalance = !balance.error || balance.data;
  const [moving, setMoving] = useState(null);
  const [round, setRound] = useState(0); // counts transfers, so that lists reload
  useRefresh(['task.', 'ledger.', 'budget.'], balance.reload);
  const set = (more, to = tab.id) => go(withFilters(`/ledger/${to}`, more));
  const moved = (words) => {
    setMoving(null);
    toast(words);
    balance.reload();
    setRound(round + 1);
  };
  return html`<${Page} title="Ledger" lead="What agents’ work costs, and who pays for it."
    actions=${html`<${Actions} user=${user || me().user} onMove=${setMoving}/>`}>
    ${can('ledger') && html`<div class="filters"><${Exact} label="User" value=${user}
      placeholder=${`${me().user} (you)`} onChoose=${(v) => set({ user: v })} data-search/></div>`}
    <${Balance} user=${user} balance=${balance}/>
    <${Tabs} label="Ledger" tabs=${offered} current=${tab.id} onChange=${(id) => set({}, id)}/>
    <div role="tabpanel" aria-label=${tab.label} class="form" key=${tab.id}>
      ${tab.id === 'statement' && hasBalance && html`<${Statement} user=${user} query=${query} set=${set} round=${round}
        onRefund=${(task, turn) => setMoving({ what: 'refund', user: user || me().user, task, turn })}/>`}
      ${tab.id === 'budgets' && html`<${Limits}/>`}
      ${tab.id === 'accounts' && html`<${Accounts} round=${round} go=${go}/>`}
      ${tab.id === 'check' && html`<${Check}/>`}
    </div>
    ${moving && html`<${Move} ...${moving} onDone=${moved} onClose=${() => setMoving(null)}/>`}<//>`;
}
