// The ledger: what somebody has, what it may cost, every line of it; and for
// those who keep the books all accounts, moving money, and whether it adds up.
import { Bar, Button, Card, Facts, Loading, Page, Problem, Tabs, Text, html, toast, useGet,
  useState } from '../lib/ui.js';
import { can, me } from '../lib/api.js';
import { useRefresh } from '../lib/live.js';
import { money } from '../lib/format.js';
import { Figure } from '../lib/figure.js';
import { Exact, withFilters } from '../lib/filters.js';
import { Statement } from './ledger_statement.js';
import { Accounts, Check } from './ledger_books.js';
import { Move } from './ledger_move.js';
import { Budgets as Limits } from './ledger_budgets.js';

const TABS = [
  { id: 'statement', label: 'Statement' },
  { id: 'budgets', label: 'Budgets' },
  { id: 'accounts', label: 'Accounts', scope: 'ledger' },
  { id: 'check', label: 'Check', scope: 'ledger' },
];

// Shares are drawn, and only drawn, as numbers: the figures beside are exact.
const share = (part, whole) => Number((BigInt(part) * 10000n) / BigInt(whole)) / 10000;

function Budgets({ budgets }) {
  const { spent_today_micros: spent, per_day_micros: day, left_today_micros: left,
    per_conversation_micros: conversation, per_root_micros: root } = budgets;
  const used = day === null ? 0 : share(spent, day);
  return html`<${Card} title="Budgets">
    ${day !== null && html`<div class="budget"><span>Today <b>${money(spent)}</b> of ${money(day)}</span>
      <${Bar} value=${used} label="Spent today" text=${`${money(spent)} of ${money(day)}`}
        tone=${used >= 1 ? 'bad' : used > 0.8 ? 'warn' : 'accent'}/>
      <span class="faint">${money(left)} left until midnight UTC</span></div>`}
    <${Facts} facts=${[['A day', day === null ? 'no limit' : null], ['Spent today', day === null ? money(spent) : null],
      ['A conversation', conversation === null ? 'no limit' : `at most ${money(conversation)}`],
        ['A message and all it leads to', root === null ? 'no limit' : `at most ${money(root)}`]]}/>
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
        <${Figure} name="Balance" value=${money(data.balance_micros)} hint="can be spent"/>
        <${Figure} name="Reserved" value=${money(data.reserved_micros)} hint="promised to work that goes on"/>
        <${Figure} name="Earned" value=${money(data.earned_micros)} hint="by their agents, not paid out"/>
        ${BigInt(data.owed_micros) > 0n && html`<${Figure} name="Owed" value=${money(data.owed_micros)}
          hint="for refunds of what was paid out; later earnings pay it"/>`}
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
  // Without it there is no statement either, and it was said above.
  const hasBalance = !balance.error || balance.data;
  const [moving, setMoving] = useState(null);
  const [round, setRound] = useState(0); // one more for each movement: lists read again
  useRefresh(['task.', 'ledger.'], balance.reload);
  const set = (more, to = tab.id) => go(withFilters(`/ledger/${to}`, more));
  const moved = (words) => {
    setMoving(null);
    toast(words);
    balance.reload();
    setRound(round + 1);
  };
  return html`<${Page} title="Ledger" lead="What agents’ work costs, who pays, and every line of it."
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
