// One escalation with everything needed to decide it: the message, the reason, the
// history, and the rules that depend on it. If two people decide at once, the
// first decision counts and the other person sees it.
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
const WHY = { rule: 'A rule requires a person to decide.', dead: 'The agent of this message is dead.',
  expired: 'The message was held for the longest time allowed.',
    late: 'The message was not answered in time. The work continues.' };
const DONE = { approved: 'approved it', rejected: 'rejected it', redirected: 'redirected it',
  expired: 'let it expire', resolved: 'resolved it' };

/** "ann approved it 3 s ago: “fine”" */
function wordsOf(e) {
  const who = e.by === 'signalbox' ? 'Signalbox' : e.by || 'Someone';
  return `${who} ${DONE[e.status] || e.status} ${age(now() - e.decided_ms)} ago${e.redirected_to
    ? `, to ${e.redirected_to}` : ''}${e.comment ? `: “${e.comment}”` : '.'}`;
}

// Deciding.

/** Its sender, and all agents that have it or had it. */
const notTo = (escalation) => [escalation.agent, escalation.from, ...(escalation.task?.chain || [])];

function Decide({ escalation, onDone, onOther }) {
  const [comment, setComment] = useState('');
  const [agent, setAgent] = useState(escalation.offer || '');
  const [isChoosing, choose] = useState(false);
  const [wrong, setWrong] = useState({});
  const isLate = escalation.kind === 'late';
  const sign = (a) => a.name === escalation.offer && html`<${Badge} tone="good">backup<//>`;
  const say = (verb, body, done) => async () => {
    setWrong({});
    if (verb === 'reject' && !comment.trim()) {
      setWrong({ comment: 'Give a reason. The sender can read it.' });
      return;
    }
    if (verb === 'redirect' && !agent.trim()) { setWrong({ agent: 'Choose an agent.' }); return; }
    if (bytesOf(comment) > COMMENT_BYTES) { setWrong({ comment: `At most ${COMMENT_BYTES} bytes; this comment has `
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
    <p>${isLate ? 'Acknowledging it lets the work continue. Rejecting it ends the work.'
      : html`If you approve it, it goes to <${Name} agent=${escalation.agent}/> ${escalation.kind === 'dead'
        ? 'as soon as the agent is back' : 'unchanged'}. If you reject it, it ends here.`}</p>
    <${Field} label="Comment" hint="Stored with the decision. Required to reject."
      error=${wrong.comment}><textarea rows="3" value=${comment}
        onInput=${(e) => setComment(e.target.value)}></textarea><//>
    <div class="actions">
      <${Button} kind="main"
        onClick=${say('approve', {}, isLate ? 'Acknowledged.' : 'Approved. The message continues.')}>
        ${isLate ? 'Acknowledge' : 'Approve'}<//>
      <${Button} kind="danger" onClick=${say('reject', {}, 'Rejected. The sender is notified.')}>Reject<//>
      <${Button} aria-expanded=${isChoosing} onClick=${() => choose(!isChoosing)}>Redirect…<//>
    </div>
    ${escalation.offer && !isChoosing && html`<p class="note">
      <${Name} agent=${escalation.offer}/> is the backup of <${Text} text=${escalation.agent}
        line=${true}/> and can take it. <button type="button" class="link"
          onClick=${() => choose(true)}>Redirect it</button></p>`}
    ${isChoosing && html`<div class="stack-of"><${AgentChoice} value=${agent} onChange=${setAgent}
      except=${notTo(escalation)} sign=${sign} error=${wrong.agent}/>
      <div class="actions"><${Button} kind="main" onClick=${say('redirect', { agent: agent.trim() },
        `Redirected to ${agent.trim()}.`)}>Redirect it<//></div></div>`}
  <//>`;
}

function Decided({ escalation }) {
  return html`<${Card} title="Decided"><${Facts} facts=${[
    ['Decision', html`<${Status} status=${escalation.status}/>`], ['By', html`<${Text} text=${escalation.by || '–'}/>`],
      ['Time', html`<span>
        <${Time} ms=${escalation.decided_ms}/>, after ${duration(escalation.decided_ms - escalation.at_ms)}</span>`],
    ['To', escalation.redirected_to && html`<${Name} agent=${escalation.redirected_to}/>`],
      ['Comment', escalation.comment && html`<${Text} text=${escalation.comment}/>`],
    ['Task status', escalation.task && html`<${Status} status=${escalation.task.status}/>`]]}/><//>`;
}

// Everything needed to decide.

function Why({ escalation: e }) {
  return html`<${Card} title="Reason">
    <p><strong>${WHY[e.kind] || e.kind}</strong></p>
    <${Facts} facts=${[
      ['Reason', html`<${Text} text=${e.reason || '–'}/>`], ['Rule',
        html`<${Text} text=${e.rule || 'none in the rules file'}/>`],
          ['Since', html`<span><${Time} ms=${e.at_ms}/> (<${Age} ms=${e.at_ms}/>)</span>`],
      ['Reminded', e.reminded ? `${e.reminded}×` : null], ['Next reminder',
        e.remind_ms && html`<${Time} ms=${e.remind_ms}/>`],
      ['Expires', e.expires_ms && html`<${Time} ms=${e.expires_ms}/>`],
        ['Requester', html`<${Text} text=${e.requester}/>`],
          ['Task', html`<${Id} id=${e.task_id} to=${`/tasks/${e.task_id}`}/>`]]}/>
  <//>`;
}

const HISTORY = [
  { key: 'at', title: 'Time', render: (v) => html`<${Time} ms=${v.at_ms}/>` },
  { key: 'what', title: 'Type', render: (v) => html`<${Text} text=${v.type} max=${80}/>
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
    ${data.reference && html`<${Card} title="History of this reference">
      <${Table} label="History of the reference" rows=${[...data.history].reverse()} columns=${HISTORY}
      empty=${html`<p class="faint">No recorded events.</p>`}/><//>`}
    <${Card} title="Dependencies"><${Graph} graph=${data} only=${!!data.task}/><//>`;
}

/** Shown when another person decided first, or the feed reports a decision. */
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
  const title = 'Escalation';
  if (!id) return html`<${Page} title=${title}><p>Choose one from the <a href="#/holds?tab=decide">list</a>.</p><//>`;
  if (error && !data) return html`<${Missing} title=${title} error=${error} onRetry=${reload} to="/holds?tab=decide"
    label="All open escalations"/>`;
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
        <${Card} title="Message">${data.envelope ? html`<${Envelope} envelope=${data.envelope} from=${data.from}/>`
          : data.task ? html`<${Message} text=${data.task.text} from=${data.requester}/>`
            : html`<p class="faint">Deleted by retention.</p>`}<//>
        <${Context} key=${data.task ? data.task_id : data.reference} escalation=${data}/>
      </div>
      <div class="side">${!isOpen ? html`<${Decided} escalation=${data}/>`
        : can('escalations') ? html`<${Decide} key=${data.offer || ''} escalation=${data}
          onDone=${() => { setMine(true); reload(); }} onOther=${() => { setTold(true); reload(); }}/>`
        : html`<${Card}
          title="Decide">
            <p>Deciding needs the scope <code>escalations</code>, which this token does not have.</p><//>`}</div>
    </div>
  <//>`;
}
