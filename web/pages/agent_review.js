// Review of an agent's card: the differences between the proposed and the active
// card, the reports of users, and the dialogs that ask for a reason. Everything
// in a card is shown as text.
import { Age, Button, Card, Field, Problem, Text, Time, confirm, html, toast, useGet,
  useState } from '../lib/ui.js';
import { can, del, me, path, post } from '../lib/api.js';
import { useRefresh } from '../lib/live.js';
import { differences, ownFields } from '../lib/card.js';
import { FormDialog } from '../lib/form.js';
import { bytesOf, count, money, num } from '../lib/format.js';
import { isAbout } from './agent_recent.js';

const REASON_BYTES = 1000;

// Dialogs with a reason.

function ReasonDialog({ title, action, kind, label = 'Reason', hint, isNeeded, send, onClose, children }) {
  const [reason, setReason] = useState('');
  const said = reason.trim();
  const over = bytesOf(said) - REASON_BYTES;
  const submit = () => {
    if (over > 0) throw new Error(`The reason is too long by ${count(over, 'byte')}.`);
    if (isNeeded && !said) throw new Error('Describe briefly what is wrong.');
    return send(said ? { reason: said } : {});
  };
  return html`<${FormDialog} title=${title} action=${action} kind=${kind} send=${submit} onClose=${onClose}>
    ${children}
    <${Field} label=${label} hint=${hint} error=${over > 0 && `At most ${REASON_BYTES} bytes; this is ${
      count(over, 'byte')} too long.`}><textarea rows="4" required=${isNeeded} value=${reason}
      onInput=${(e) => setReason(e.target.value)}></textarea><//><//>`;
}

/** A button that opens the dialog. `send(said)` submits it; then the dialog closes. */
function Asking({ words, kind, send, ...more }) {
  const [isOpen, open] = useState(false);
  const done = async (said) => {
    await send(said);
    open(false);
  };
  return html`<${Button} kind=${kind} onClick=${() => open(true)}>${words}<//>
    ${isOpen && html`<${ReasonDialog} ...${more} kind=${kind} send=${done} onClose=${() => open(false)}/>`}`;
}

export function Hide({ card, reload }) {
  const send = async (said) => {
    await post(path`/api/agents/${card.name}/hide`, said);
    toast(`${card.name} was hidden.`);
    reload();
  };
  return html`<${Asking} words="Hide…" kind="danger" title=${`Hide ${card.name}?`} action="Hide it" send=${send}
    hint="The creator can read it."><p>Only its creator and admins will see it, whatever its creator changes, until an
      admin approves it.${card.reports > 0 && ' Its reports will be dismissed.'}</p><//>`;
}

export function Report({ card }) {
  const send = async (said) => {
    await post(path`/api/agents/${card.name}/report`, said);
    toast(`Your report about ${card.name} was sent to the admins.`);
  };
  return html`<${Asking} words="Report…" title=${`Report ${card.name}`} action="Send report" send=${send}
    label="What is wrong with it?" isNeeded=${true}
    hint="Admins can read this, with your name. It replaces your earlier report about this agent."/>`;
}

// Differences.

const MOST = 40;
const MOST_OF_LIST = 10;

function Whole({ n, what, onClick }) {
  return html`<button type="button" class="link" onClick=${onClick}>show all ${num(n)} ${what}</button>`;
}

function Lines({ list }) {
  const [isWhole, setWhole] = useState(list.length <= MOST_OF_LIST);
  return html`<ul class="plain-list">${(isWhole ? list : list.slice(0, MOST_OF_LIST)).map((x, i) =>
    html`<li key=${i}><${Text} text=${x} max=${200}/></li>`)}</ul>
    ${!isWhole && html`<${Whole} n=${list.length} what="lines" onClick=${() => setWhole(true)}/>`}`;
}

function Value({ value, name }) {
  if (isNothing(value) || value === '' || value.length === 0)
    return html`<span class="faint">nothing</span>`;
  if (Array.isArray(value) && value.every((x) => typeof x !== 'object')) return html`<${Lines} list=${value}/>`;
  const text = /_micros$/.test(name) && /^-?\d+$/.test(value) ? money(value)
    : typeof value === 'object' ? JSON.stringify(value, null, 2) : value;
  return html`<${Text} text=${text} max=${400}/>`;
}

const isNothing = (value) => value === undefined || value === null;
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

function Change({ at, was, is }) {
  const value = (text, v) => html`<div><dt>${text}</dt><dd><${Value} value=${v} name=${at.at(-1)}/></dd></div>`;
  return html`<li><h4>${at.map((part, i) => html`${i > 0 && ' › '}<code class="field-name" key=${i}><${Text}
    text=${part} max=${128} line=${true}/></code>`)}</h4>${
  same(was, is) ? html`<p class="faint">Changed, but not shown: a credential, or an order.</p>`
    : html`<dl class="change">${isNothing(was) ? value('Added', is) : isNothing(is) ? value('Removed', was)
      : html`${value('Current', was)}${value('Proposed', is)}`}</dl>`}</li>`;
}

function Changes({ card, wanted, changed }) {
  const [isWhole, setWhole] = useState(false);
  const list = differences(card, wanted, changed);
  if (!list.length) return null;
  return html`<h3>Changes</h3><ul class="changes">${(isWhole ? list : list.slice(0, MOST)).map((one) =>
    html`<${Change} key=${JSON.stringify(one.at)} ...${one}/>`)}</ul>
    ${!isWhole && list.length > MOST && html`<${Whole} n=${list.length} what="changes"
      onClick=${() => setWhole(true)}/>`}`;
}

// The state of the review.

const isMe = (name) => !!name && name.toLowerCase() === me()?.user.toLowerCase();

const reasonOf = ({ reason }) => (reason ? html`: <${Text} text=${reason} max=${1000}/>` : '. No reason was given.');

const whenOf = ({ at_ms: ms }) => html`<${Time} ms=${ms}/> (<${Age} ms=${ms}/>)`;

const whoOf = ({ by: name }) => html`by <${Text} text=${name || 'the server'} max=${128} line=${true}/>`;

const SEEN = {
  public: 'Others still see the approved card.',
  shared: 'Until an admin approves it, only users it is shared with see it.',
};

const STATES = {
  waiting: ['Waiting for review', ({ card, who }) => html`<p>Waiting for review since ${whenOf(card.review)}.
    ${' '}${SEEN[card.visibility] || `Until an admin approves it, only ${who} and admins see it.`}</p>`],
  rejected: ['Rejected', ({ card, isMine }) => html`<p>Rejected ${whoOf(card.review)}, ${whenOf(card.review)}${
    reasonOf(card.review)}</p><p>${card.visibility === 'public' && 'Others still see the approved card. '}${isMine
    ? 'Change the card to submit it again.' : 'It waits for review again once its creator changes it.'}</p>`],
  hidden: ['Hidden', ({ card, who }) => html`<p>Hidden ${whoOf(card.review)}, ${whenOf(card.review)}${
    reasonOf(card.review)}</p><p>Only ${who} and admins see it, until an admin approves it.</p>`],
};

/** The agent is not public yet, so an approval makes the whole card public, not just the changes. */
const isNew = (card) => card.visibility !== 'public' && card.review.card.visibility === 'public';

// An admin approves what they have read: if the card changes meanwhile, they must
// confirm that they have read it again.
function useRead(card) {
  const words = JSON.stringify([ownFields(card), ownFields(card.review.card)]);
  const [read, setRead] = useState(words);
  return { isOther: words !== read, accept: () => setRead(words) };
}

/** Approve or reject, unless the agent has changed meanwhile: then say so and show the current card. */
async function judge(card, what, body, done, reload) {
  try {
    await post(path`/api/agents/${card.name}/${what}`, { revision: card.revision, ...body });
    toast(`${card.name} was ${done}.`);
  } catch (error) {
    if (error.status !== 412) throw error;
    toast(`${card.name} has changed in the meantime and was not ${done}. Read it again.`, 'bad');
  }
  reload();
}

function Judge({ card, isOther, reload }) {
  const reject = (said) => judge(card, 'reject', said, 'rejected', reload);
  return html`<${Button} kind="main" disabled=${isOther}
      onClick=${() => judge(card, 'approve', {}, 'approved', reload)}>Approve<//>
    ${card.review.state === 'waiting' && html`<${Asking} words="Reject…" kind="danger" send=${reject}
      title=${`Reject the card of ${card.name}?`} action="Reject it" hint="The creator can read it.">
      <p>${card.visibility === 'public' ? 'The approved card stays active.'
        : 'Its visibility does not change.'} Its creator can change the card, which submits it again.</p><//>`}`;
}

export function Review({ card, reload }) {
  const { isOther, accept } = useRead(card);
  const [title, Words] = STATES[card.review.state] || [card.review.state, () => null];
  const isMine = isMe(card.creator_id);
  const isJudge = can('admin');
  return html`<${Card} title=${title} className="review" actions=${isJudge
    && html`<${Judge} card=${card} isOther=${isOther} reload=${reload}/>`}>
    <${Words} card=${card} isMine=${isMine} who=${isMine ? 'you' : 'its creator'}/>
    ${isJudge && isOther && html`<div class="note spread actions" role="alert"><p>The card has changed since you opened
      this page. Read it again before you approve it.</p> <${Button} className="small"
        onClick=${accept}>I have read it<//></div>`}
    ${isJudge && isNew(card) && html`<p>Once you approve it, everyone sees the whole card below, not only the
      changes.</p>`}
    <${Changes} card=${card} wanted=${card.review.card} changed=${card.review.changed}/><//>`;
}

// Reports of users.

export function Reports({ card, reload }) {
  const where = path`/api/agents/${card.name}/reports`;
  const { data, error, reload: again } = useGet(where);
  useRefresh(['agent.report'], again, 1000, isAbout(card.name));
  const dismiss = async () => {
    const sure = await confirm({ title: `Dismiss the reports of ${card.name}?`, action: 'Dismiss them', kind: 'main',
      text: 'They are deleted, and cannot be read afterwards. Users may report it again.' });
    if (!sure) return;
    try {
      await del(where);
      toast(`The reports of ${card.name} were dismissed.`);
    } finally {
      reload();
    }
  };
  return html`<${Card} title=${count(card.reports, 'report')} actions=${html`<${Button}
    onClick=${dismiss}>Dismiss<//>`}>
    ${error && html`<${Problem} error=${error} onRetry=${again}/>`}
    <ul class="plain-list reports">${data?.items.map((r) => html`<li key=${r.user}>
      <strong><${Text} text=${r.user} max=${128} line=${true}/></strong> <span class="faint"><${Age}
        ms=${r.at_ms}/></span><br/><${Text} text=${r.reason} max=${400}/></li>`)}</ul><//>`;
}
