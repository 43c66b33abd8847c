// Moving money. What is asked for has a key that stays the same until it was
// answered, over lost connections and closed dialogs: pressed twice, it is paid
// once.
import { Field, Link, Tabs, html, useState } from '../lib/ui.js';
import { ApiError, newKey, path, post } from '../lib/api.js';
import { micros, money } from '../lib/format.js';
import { FormDialog, Line } from '../lib/form.js';
import { NAME } from './settings_parts.js';

const MOST = 10n ** 18n; // micro-units in one posting
const KEPT = 'signalbox.unanswered';

// The keys of what was asked and not answered, by what was asked.
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

/** Asked again with the same words it is the same posting, until an answer came. */
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
    // A word of refusal is an answer: nothing was moved. Whatever else
    // happened, it may have been.
    if (e instanceof ApiError && e.status >= 400 && e.status < 500) forget();
    else throw new ApiError(e.status || 0, e.code,
      'The answer did not come. It may have been done: press again, and it is done once.');
    throw e;
  }
}

const KINDS = {
  topup: { title: 'Top up', action: 'Top up', hint: 'Money from outside, for them to spend.' },
  refund: { title: 'Refund', action: 'Refund', hint: 'Pays money back to its user, out of what they could spend.' },
  payout: { title: 'Pay out', action: 'Pay out', hint: 'Pays a creator what their agents earned.' },
};
const DONE = {
  topup: (p) => `${p.user} got ${money(p.amount_micros)} and has ${money(p.balance_micros)} now.`,
  refund: (p) => `${money(p.amount_micros)} were paid back${p.task_id ? ` to ${p.user}` : ''}.`,
  payout: (p) => `${p.user} was paid ${money(p.amount_micros)}; ${money(p.balance_micros)} are left.`,
};

function amountOf(text) {
  const amount = micros(text);
  if (amount === null)
    throw new Error('Write the amount in units with a point, up to six digits behind it: 25, 0.5, 1.000001.');
  if (amount < 1n || amount > MOST) throw new Error(`An amount is from 0.000001 to ${money(MOST)}.`);
  return amount;
}

/** Its exact reading, while it is typed. */
function Amount({ value, onInput, isPart = false }) {
  const read = micros(value);
  const hint = read !== null && read > 0n && read <= MOST
    ? `${money(read)} units, ${read.toLocaleString('en')} micro-units`
      : isPart ? 'Empty: all of the charge.' : 'In units, with up to six digits behind the point.';
  return html`<${Field} label="Amount" hint=${hint}><input value=${value} onInput=${(e) => onInput(e.target.value)}
    inputmode="decimal" required=${!isPart} autocomplete="off" placeholder=${isPart ? '' : '25.00'}/><//>`;
}

const said = (p) => (p.is_repeat ? 'This had been done before: nothing was moved twice. ' : '');

/** `task`: its charge, or a part of it, goes back to who paid. */
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
        hint=${task && html`<${Link} to=${`/tasks/${encodeURIComponent(task.trim())}`}>Look at it<//>`}/>
        <${Amount} value=${amount} onInput=${setAmount} isPart=${true}/>`
      : html`<${Line} label="User" value=${user} onInput=${setUser} required pattern=${NAME}/>
        <${Amount} value=${amount} onInput=${setAmount}/>`}
    <${Line} label="Note" hint="Stands in the statement; up to 256 bytes." value=${note} onInput=${setNote}
      maxlength="256" placeholder="invoice 4711"/><//>`;
}
