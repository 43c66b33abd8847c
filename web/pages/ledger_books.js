// All accounts, and the consistency check of the books.
import { Age, Badge, Button, Card, Empty, Facts, Problem, Text, html, useEffect, useState } from '../lib/ui.js';
import { get } from '../lib/api.js';
import { useRefresh } from '../lib/live.js';
import { List, usePages } from '../lib/list.js';
import { money, num } from '../lib/format.js';

const KINDS = { user: 'available to spend', creator: 'earned, not paid out', reserved: 'for work in progress',
  platform: 'fees, and cover for refunds that creators owe', outside: 'top-ups and payouts' };

const what = (a) => (a.account.startsWith('creator:') && BigInt(a.balance_micros) < 0n ? 'owed, for refunds'
  : KINDS[a.account.split(':')[0]] || '');

const COLUMNS = [
  { key: 'account', title: 'Account', width: 'minmax(10rem, 1.5fr)', phone: 'minmax(0, 1.4fr)',
    render: (a) => html`<${Text} text=${a.account} max=${140} line=${true}/>` },
  { key: 'what', title: 'Meaning', width: 'minmax(8rem, 1fr)', phone: false,
    render: (a) => html`<span class="faint">${what(a)}</span>` },
  { key: 'balance', title: 'Balance', width: 'minmax(8rem, 1fr)', phone: 'minmax(0, 1fr)', align: 'right',
    render: (a) => money(a.balance_micros) },
  { key: 'moved', title: 'Last entry', width: '8rem', phone: false, align: 'right',
    render: (a) => html`<${Age} ms=${a.updated_ms}/>` },
];

export function Accounts({ round }) {
  const pages = usePages('/api/ledger/accounts');
  useRefresh(['task.', 'ledger.'], pages.reload);
  useEffect(() => { if (round) pages.reload(); }, [round]);
  const statement = (a) =>
    (a.account.startsWith('user:') ? `#/ledger/statement?user=${encodeURIComponent(a.account.slice(5))}`
      : `#/ledger/statement?account=${encodeURIComponent(a.account)}`);
  return html`<${List} pages=${pages} columns=${COLUMNS} rowKey=${(a) => a.account} href=${statement} label="Accounts"
    empty=${html`
    <${Empty} title="No accounts"
      command="build/signalbox ledger topup USER 25">An account exists after its first entry: a user’s after a
        top-up, a creator’s after the first earning.<//>`}/>`;
}

export function Check() {
  const [found, setFound] = useState(null);
  const run = () => get('/api/ledger/check').then((report) => setFound({ report }), (error) => setFound({ error }));
  const r = found?.report;
  return html`<${Card} title="Check the books" actions=${html`<${Button} kind="main" onClick=${run}>Check<//>`}>
    <p>Reads every entry of the running server. Each balance must be the sum of its entries, each posting must add up to
      zero, and each turn must be reserved once and charged exactly if it was completed.</p>
    ${found?.error && html`<${Problem} error=${found.error} onRetry=${run}/>`}
    ${r && html`<div role="status"><p><${Badge} tone=${r.is_right ? 'good' : 'bad'}>
      ${r.is_right ? 'no problems found' : count(r.problems_total, 'problem')}<//></p>
      <${Facts} facts=${[['Accounts', num(r.accounts)], ['Postings', num(r.postings)], ['Entries', num(r.entries)],
        ['Turns', num(r.turns)], ['Reservations', num(r.reservations)], ['Reserved', money(r.reserved_micros)],
          ['Owed by creators', BigInt(r.owed_micros) > 0n ? money(r.owed_micros) : null]]}/>
      ${r.problems.length > 0
        && html`<ul class="problems">${r.problems.map((p, i) =>
          html`<li key=${i}><${Text} text=${typeof p === 'string' ? p : JSON.stringify(p)}/></li>`)}</ul>`}</div>`}
    <p class="hint">On the command line: <code>build/signalbox ledger check</code>.</p><//>`;
}
