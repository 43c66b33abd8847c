// Transfers. A request keeps its idempotency key until it is answered, across lost
// connections and closed dialogs, so pressing the button twice pays once.
import { Field, Link, Tabs, html, useState } from '../lib/ui.js';
import { ApiError, newKey, path, post } from '../lib/api.js';
import { micros, money } from '../lib/format.js';
import { FormDialog, Line } from '../lib/form.js';
import { NAME } from './settings_parts.js';

const MOST = 10n ** 18n; // micro-units in one posting
const KEPT = 'signalbox.unanswered';

// The keys of unanswered requests, by request.
function unanswered() {
  try {
    return JSON.parse(sessionStorage.getItem(KEPT)) || {};
  } catch {
    return {};
  }
}
function keep(keys) {
  sessionStorage.setItem(KEPT, JSON.stringify(keys));
}

/** The same request is the same posting until it is answered. */
async function moveOnce(where, body) {
  const what = `${where} ${Object.entries(body).map(([k, v]) => `${k}=${v}`).join('&')}`;
  const key = unanswered()[what] || newKey();
  keep({ ...unanswered(), [what]: key });
  const forget = () => {
    const { [what]: gone, ...others } = unanswered();
    keep(others);
  };
  try {
    const done = await post(where, { ...body, idempotency_key: key });
    forget();
    return done;
  } catch (e) {
    // A rejection is an answer: nothing was posted. After any other error the
    // transfer may have happened.
    if (e instanceof ApiError && e.status >= 400 && e.status < 500) forget();
    else throw new ApiError(e.status || 0, e.code,
      'No answer arrived, so the transfer may have happened. Press again: it is made only once.');
    throw e;
  }
}

const KINDS = {
  topup: { title: 'Top up', action: 'Top up', hint: 'Adds money to the user’s balance.' },
  refund: { title: 'Refund', action: 'Refund', hint: 'Pays part of the balance back to the user.' },
  payout: { title: 'Pay out', action: 'Pay out', hint: 'Pays out a creator’s earnings.' },
};
const DONE = {
  topup: (p) => `${p.user} was topped up by ${money(p.amount_micros)}. Balance: ${money(p.balance_micros)}.`,
  refund: (p) => `${money(p.amount_micros)} refunded${p.task_id ? ` to ${p.user}` : ''}.`,
  payout: (p) => `${money(p.amount_micros)} paid out to ${p.user}. Left: ${money(p.balance_micros)}.`,
};

function amountOf(text) {
  const amount = micros(text);
  if (amount === null)
    throw new Error('The amount must be a number such as 25, 0.5 or 1.000001, with up to six decimal places.');
  if (amount < 1n || amount > MOST) throw new Error(`The amount must be from 0.000001 to ${money(MOST)}.`);
  return amount;
}

/** Shows the exact amount while the user types. */
function Amount({ value, onInput, isPart = false }) {
  const read = micros(value);
  const hint = read !== null && read > 0n && read <= MOST
    ? `${money(read)} units, ${read.toLocaleString('en')} micro-units`
      : isPart ? 'Empty: the whole charge.' : 'Up to six decimal places.';
  return html`<${Field} label="Amount" hint=${hint}><input value=${value} onInput=${(e) => onInput(e.target.value)}
    inputmode="decimal" required=${!isPart} autocomplete="off" placeholder=${isPart ? '' : '25.00'}/><//>`;
}

const said = (p) => (p.is_repeat ? 'This transfer had already been made; it was not repeated. ' : '');

/** With `task`, its charge or a part of it is refunded to the payer. */
export function Move({ what, user: preset, task: aTask = '', turn, onDone, onClose }) {
  const [kind, setKind] = useState(aTask ? 'task' : 'user');
  const [user, setUser] = useState(preset);
  const [amount, setAmount] = useState('');
  const [task, setTask] = useState(aTask);
  const [note, setNote] = useState('');
  const isOfTask = what === 'refund' && kind === 'task';
  const send = async () => {
    const body = isOfTask ? { task_id: task.trim() } : { user: user.trim(), amount_micros: amountOf(amount) };
    if (isOfTask && amount.trim()) body.amount_micros = amountOf(amount);
    if (isOfTask && turn && task.trim() === aTask) body.turn = turn;
    if (note.trim()) body.note = note.trim();
    const posting = await moveOnce(path`/api/ledger/${what}`, body);
    onDone(said(posting) + DONE[what](posting));
  };
  return html`<${FormDialog} title=${KINDS[what].title} action=${KINDS[what].action} send=${send} onClose=${onClose}>
    ${what === 'refund' && html`<${Tabs} label="What is refunded"
      tabs=${[{ id: 'user', label: 'An amount' }, { id: 'task', label: 'A task' }]} current=${kind}
        onChange=${setKind}/>`}
    <p class="hint">
      ${isOfTask ? `Refunds ${turn ? `the charge for turn ${turn}` : 'the last charge'} to its payer. If the creator was
        already paid out, the platform covers the refund and the creator owes it. A charge is refunded once.`
        : KINDS[what].hint}</p>
    ${isOfTask ? html`<${Line} label="Task" value=${task} onInput=${setTask} required pattern="\\s*task_[0-9a-z]+\\s*"
      placeholder="task_…"
        hint=${task && html`<${Link} to=${`/tasks/${encodeURIComponent(task.trim())}`}>Open the task<//>`}/>
        <${Amount} value=${amount} onInput=${setAmount} isPart=${true}/>`
      : html`<${Line} label="User" value=${user} onInput=${setUser} required pattern=${NAME}/>
        <${Amount} value=${amount} onInput=${setAmount}/>`}
    <${Line} label="Note" hint="Shown in the statement. Up to 256 bytes." value=${note} onInput=${setNote}
      maxlength="256" placeholder="invoice 4711"/><//>`;
}
