// One thing that a person must decide, with everything that it hangs on in
// view: the message, why it is here, what happened before, and what would
// follow. Of two people the first decides; the other is told.
import { Age, Badge, Button, Card, Facts, Field, Id, Loading, Name, Page, Problem, Status, Text, Time, html, toast,
  useEffect, useGet, useRef, useState } from '../lib/ui.js';
import { can, now, path, post } from '../lib/api.js';
import { useRefresh } from '../lib/live.js';
import { age, bytesOf, duration } from '../lib/format.js';
import { Table } from '../lib/list.js';
import { Missing } from '../lib/missing.js';
import { Graph } from '../lib/graph.js';
import { AgentChoice } from '../lib/choice.js';
import { Envelope, Message } from '../lib/message.js';

const COMMENT_BYTES = 2000;
const WHY = { rule: 'A rule says that a person must see it.', dead: 'The agent that it is for is dead.',
  expired: 'It was held for as long as it may be.',
    late: 'It was let go, and not answered in time. The work goes on.' };
const DONE = { approved: 'approved', rejected: 'rejected', redirected: 'redirected', expired: 'let it run out',
  resolved: 'resolved' };

/** "ann has approved it 3 s ago: “fine”" */
function wordsOf(e) {
  const who = e.by === 'signalbox' ? 'Signalbox' : e.by || 'Somebody';
  return `${who} has ${DONE[e.status] || e.status} it ${age(now() - e.decided_ms)} ago${e.redirected_to
    ? `, to ${e.redirected_to}` : ''}${e.comment ? `: “${e.comment}”` : '.'}`;
}

// Deciding.

/** Its sender, and all who have it or had it. */
const notTo = (escalation) => [escalation.agent, escalation.from, ...(escalation.task?.chain || [])];

function Decide({ escalation, onDone, onOther }) {
  const [comment, setComment] = useState('');
  const [agent, setAgent] = useState(escalation.offer || '');
  const [isChoosing, choose] = useState(false);
  const [wrong, setWrong] = useState({});
  const isLate = escalation.kind === 'late';
  const sign = (a) => a.name === escalation.offer && html`<${Badge} tone="good">stands in for it<//>`;
  const say = (verb, body, done) => async () => {
    setWrong({});
    if (verb === 'reject' && !comment.trim()) { setWrong({ comment: 'Say why: whoever sent it reads this.' }); return; }
    if (verb === 'redirect' && !agent.trim()) { setWrong({ agent: 'Which agent should have it?' }); return; }
    if (bytesOf(comment) > COMMENT_BYTES) { setWrong({ comment: `At most ${COMMENT_BYTES} bytes; these are `
      + `${bytesOf(comment)}.` }); return; }
    try {
      await post(path`/api/escalations/${escalation.id}/${verb}`,
        { ...(comment.trim() && { comment: comment.trim() }), ...body });
    } catch (error) {
      if (error.status === 409) { onOther(error); return; }
      setWrong(verb === 'redirect' ? { agent: error.message } : { comment: error.message });
      return;
    }
    toast(done);
    onDone();
  };
  return html`<${Card} title="Decide" className="decide-card">
    <p>${isLate ? 'Approving says that it was seen: the work goes on as it does. Rejecting ends it.'
      : html`Approved, it goes to <${Name} agent=${escalation.agent}/> ${escalation.kind === 'dead'
        ? 'once that is back' : 'exactly as it is'}. Rejected, it ends here.`}</p>
    <${Field} label="Comment" hint="Kept with the decision; needed to reject."
      error=${wrong.comment}><textarea rows="3" value=${comment}
        onInput=${(e) => setComment(e.target.value)}></textarea><//>
    <div class="actions">
      <${Button} kind="main" onClick=${say('approve', {}, isLate ? 'Seen.' : 'Approved: it goes on.')}>
        ${isLate ? 'It was seen' : 'Approve'}<//>
      <${Button} kind="danger" onClick=${say('reject', {}, 'Rejected: whoever sent it is told.')}>Reject<//>
      <${Button} aria-expanded=${isChoosing} onClick=${() => choose(!isChoosing)}>Redirect…<//>
    </div>
    ${escalation.offer && !isChoosing && html`<p class="note">
      <${Name} agent=${escalation.offer}/> stands in for <${Text} text=${escalation.agent}
        line=${true}/> and could have it. <button type="button" class="link"
          onClick=${() => choose(true)}>Redirect it</button></p>`}
    ${isChoosing && html`<div class="stack-of"><${AgentChoice} value=${agent} onChange=${setAgent}
      except=${notTo(escalation)} sign=${sign} error=${wrong.agent}/>
      <div class="actions"><${Button} kind="main" onClick=${say('redirect', { agent: agent.trim() },
        `Redirected to ${agent.trim()}.`)}>Redirect it<//></div></div>`}
  <//>`;
}

function Decided({ escalation }) {
  return html`<${Card} title="Decided"><${Facts} facts=${[
    ['As', html`<${Status} status=${escalation.status}/>`], ['By', html`<${Text} text=${escalation.by || '–'}/>`],
      ['When', html`<span>
        <${Time} ms=${escalation.decided_ms}/>, after ${duration(escalation.decided_ms - escalation.at_ms)}</span>`],
    ['To', escalation.redirected_to && html`<${Name} agent=${escalation.redirected_to}/>`],
      ['Comment', escalation.comment && html`<${Text} text=${escalation.comment}/>`],
    ['The task', escalation.task && html`<${Status} status=${escalation.task.status}/>`]]}/><//>`;
}

// What it hangs on.

function Why({ escalation: e }) {
  return html`<${Card} title="Why it is here">
    <p><strong>${WHY[e.kind] || e.kind}</strong></p>
    <${Facts} facts=${[
      ['Reason', html`<${Text} text=${e.reason || '–'}/>`], ['Rule',
        html`<${Text} text=${e.rule || 'none of the file'}/>`],
          ['Since', html`<span><${Time} ms=${e.at_ms}/> (<${Age} ms=${e.at_ms}/>)</span>`],
      ['Reminded', e.reminded ? `${e.reminded}×` : null], ['Next reminder',
        e.remind_ms && html`<${Time} ms=${e.remind_ms}/>`],
      ['Runs out', e.expires_ms && html`<${Time} ms=${e.expires_ms}/>`],
        ['Asked for by', html`<${Text} text=${e.requester}/>`],
          ['Task', html`<${Id} id=${e.task_id} to=${`/tasks/${e.task_id}`}/>`]]}/>
  <//>`;
}

const HISTORY = [
  { key: 'at', title: 'When', render: (v) => html`<${Time} ms=${v.at_ms}/>` },
  { key: 'what', title: 'What', render: (v) => html`<${Text} text=${v.type} max=${80}/>
    ${v.approved === true ? html` <${Badge} tone="good">approved<//>` : v.approved === false
      ? html` <${Badge} tone="bad">disapproved<//>` : ''}` },
  { key: 'way', title: 'From → to', render: (v) => html`<span>
    <${Text} text=${v.from} max=${80}/> → <${Text} text=${v.to || '–'} max=${80}/></span>` },
  { key: 'task', title: 'Task', render: (v) => html`<${Id} id=${v.task_id} to=${`/tasks/${v.task_id}`}/>` },
];

function Context({ escalation }) {
  const about = escalation.task ? { task_id: escalation.task_id } : { reference: escalation.reference };
  const isThere = escalation.task || escalation.reference;
  const { data, error, reload } = useGet(isThere ? '/api/gate/graph' : null, about);
  useRefresh(['gate.', 'agent.', 'task.completed'], () => isThere && reload(), 3000);
  if (!isThere) return null;
  if (error) return html`<${Problem} error=${error} onRetry=${reload}/>`;
  if (!data) return html`<${Loading}/>`;
  return html`
    ${data.reference && html`<${Card} title="What happened before, for the same reference">
      <${Table} label="History of the reference" rows=${[...data.history].reverse()} columns=${HISTORY}
      empty=${html`<p class="faint">Nothing that is remembered.</p>`}/><//>`}
    <${Card} title="What it depends on"><${Graph} graph=${data} only=${!!data.task}/><//>`;
}

/** Said when somebody else was first, here or in what the page learns by itself. */
function Other({ escalation, isTold }) {
  const box = useRef(null);
  useEffect(() => { if (isTold) box.current?.focus(); }, [isTold]);
  return html`<p class="note" role="alert" tabindex="-1" ref=${box}><${Text} text=${wordsOf(escalation)}/></p>`;
}

export default function Escalation({ args }) {
  const id = args[0];
  const { data, error, reload } = useGet(id ? path`/api/escalations/${id}` : null);
  const [isMine, setMine] = useState(false);
  const [isTold, setTold] = useState(false);
  const wasOpen = useRef(false);
  useRefresh(['escalation.', 'gate.released', 'gate.expired', 'task.cancelled', 'task.completed', 'task.failed'],
    reload);
  if (data?.status === 'open') wasOpen.current = true;
  const title = 'A message to decide';
  if (!id) return html`<${Page} title=${title}><p>Choose one from the <a href="#/holds?tab=decide">list</a>.</p><//>`;
  if (error && !data) return html`<${Missing} title=${title} error=${error} onRetry=${reload} to="/holds?tab=decide"
    label="All that is to decide"/>`;
  if (!data) return html`<${Page} title=${title}><${Loading}/><//>`;
  const isOpen = data.status === 'open';
  return html`<${Page} title=${title}
    lead=${html`<${Text} text=${`${data.type || 'MESSAGE'} from ${data.from
      || data.requester} to ${data.agent}${data.reference ? `, about ${data.reference}` : ''}`} max=${300}/>`}
      actions=${html`<${Status} status=${data.status}/>${isOpen
        && html`<span class="phone-only"><${Button} onClick=${() =>
          document.querySelector('.decide-card')?.scrollIntoView()}>Decide ↓<//></span>`}`}>
    ${!isOpen && !isMine && (isTold || wasOpen.current) && html`<${Other} escalation=${data} isTold=${isTold}/>`}
    <div class="with-side">
      <div class="stack-of">
        <${Why} escalation=${data}/>
        <${Card} title="The message">${data.envelope ? html`<${Envelope} envelope=${data.envelope} from=${data.from}/>`
          : data.task ? html`<${Message} text=${data.task.text} from=${data.requester}/>`
            : html`<p class="faint">Retention has taken it.</p>`}<//>
        <${Context} key=${data.task ? data.task_id : data.reference} escalation=${data}/>
      </div>
      <div class="side">${!isOpen ? html`<${Decided} escalation=${data}/>`
        : can('escalations') ? html`<${Decide} key=${data.offer || ''} escalation=${data}
          onDone=${() => { setMine(true); reload(); }} onOther=${() => { setTold(true); reload(); }}/>`
        : html`<${Card}
          title="Decide">
            <p>Somebody with the scope <code>escalations</code> decides; this token does not have it.</p><//>`}</div>
    </div>
  <//>`;
}
