// One task in full: the message, the answer as it streams, and links to its
// decision, escalations and delegations.
import { Button, Card, Copy, Facts, Id, Loading, Name, Page, Status, Text, Time, html, toast, useEffect, useGet, useRef,
  useState } from '../lib/ui.js';
import { can, get, now, path } from '../lib/api.js';
import { Inputs } from '../lib/input.js';
import { endInputs, questions, stream, useRefresh } from '../lib/live.js';
import { duration, money } from '../lib/format.js';
import { cancelTask, isOver } from '../lib/tasks.js';
import { Message } from '../lib/message.js';
import { Missing } from '../lib/missing.js';
import { Move } from './ledger_move.js';

/** The stream of an open task: {text, voices, inputs, status, isLost}. */
function useEvents(id, isOpen, onOver) {
  const [heard, setHeard] = useState({ text: '', voices: [], inputs: [] });
  const over = useRef(onOver);
  over.current = onOver;
  useEffect(() => {
    if (!isOpen) return undefined;
    setHeard({ text: '', voices: [], inputs: [] });
    const take = ({ type, data }) => setHeard((h) => {
      if (type === 'chunk') return data.agent ? { ...h, voices: addVoice(h.voices, data) }
        : { ...h, text: h.text + data.text };
      if (type === 'gap') return { ...h, text: '', voices: [], hasGap: true };
      return type === 'status' ? { ...h, status: data.status } : h;
    });
    const asked = questions(() => id, (inputs) => setHeard((h) => ({ ...h, inputs })));
    return stream(path`/api/tasks/${id}/events`, {
      ends: ['result'], onEvent: (e) => { take(e); asked.take(e); if (e.type === 'result') over.current(); },
      onState: (state) => {
        setHeard((h) => ({ ...h, isLost: state === 'lost' }));
        if (state === 'open') asked.back();
      },
    });
  }, [id, isOpen]);
  return heard;
}

function addVoice(voices, { agent, text }) {
  const last = voices.at(-1);
  return last?.agent === agent ? [...voices.slice(0, -1), { agent, text: last.text + text }]
    : [...voices, { agent, text }];
}

function Answer({ task, heard }) {
  const isDone = isOver(task);
  const text = isDone ? task.result?.text : heard.text;
  return html`<${Card} title=${isDone ? 'Answer' : 'Answer so far'}>
    ${heard.voices.map((v, i) => html`<p class="voice" key=${i}>
      <span class="voice-name"><${Text} text=${v.agent} line=${true}/></span><${Text} text=${v.text}/></p>`)}
    <div aria-live="polite" aria-busy=${!isDone}>${text ? html`<${Text} text=${text}/>`
      : html`<span class="faint">${isDone ? 'No text.' : WAITS[heard.status || task.status] || 'Nothing yet.'}</span>`}
        ${
      !isDone && html`<span class="caret" aria-hidden="true"></span>`}</div>
    ${heard.isLost && !isDone && html`<p class="faint" role="status">Connection lost. Reconnecting…</p>`}
    ${task.result?.error && html`<p class="problem"><strong>
      <${Text} text=${task.result.error.code || 'error'} line=${true}/></strong> <${Text}
        text=${task.result.error.message || ''}/></p>`}
    <${Metadata} title="Metadata of the result" value=${task.result?.metadata}/>
  <//>`;
}

const WAITS = { held: 'The message is on hold. The details say why.',
  escalated: 'A person must decide first.', queued: 'Waiting for the agent.', dispatched: 'The agent has the task.',
    working: 'The agent is working.', input_required: 'The agent is waiting for input.' };

function Metadata({ title, value }) {
  if (!value || !Object.keys(value).length) return null;
  return html`<details><summary>${title}</summary><pre><${Text}
    text=${JSON.stringify(value, null, 2)}/></pre></details>`;
}

function Turns({ turns, total }) {
  if (!turns?.length) return null;
  return html`<${Card} title=${`Earlier turns (${total - 1})`}>
    <ol class="turns">${turns.map((t) => html`<li class="turn" key=${t.turn}>
    <p class="said"><${Text} text=${t.text} max=${1000}/></p>
    <div class="answer"><${Text} text=${t.result?.text || t.result?.error?.message || ''} max=${2000}/></div>
    <div class="turn-foot"><${Status} status=${t.status}/><span
      class="faint">turn ${t.turn}, ${duration(t.finished_ms - t.began_ms)}
        ${t.price_micros ? `, ${money(t.price_micros)}` : ''}</span></div></li>`)}</ol><//>`;
}

/** The decision, escalations and tree of the task, each loaded separately. */
function useAround(task) {
  const [around, setAround] = useState({});
  const id = task?.id, status = task?.status;
  useEffect(() => {
    if (!id) return;
    get('/api/decisions', { task_id: id, limit: 1 }).then(({ items }) =>
      setAround((a) => ({ ...a, decision: items[0] })), () => {});
  }, [id]);
  useEffect(() => {
    if (id) get('/api/escalations', { task_id: id, limit: 20 })
      .then(({ items }) => setAround((a) => ({ ...a, escalations: items })), () => {});
  }, [id, status]);
  useEffect(() => {
    if (id) get(path`/api/tasks/${id}/tree`).then((tree) => setAround((a) => ({ ...a, tree })), () => {});
  }, [id, status]);
  return around;
}

function About({ task, around }) {
  const isDone = isOver(task);
  const n = around.tree?.tasks || 1;
  return html`<${Card} title="Details"><${Facts} facts=${[
    ['Status', html`<${Status} status=${task.status}/>`], ['Agent', html`<${Name} agent=${task.agent}/>`],
      ['Skill', task.skill && html`<${Text} text=${task.skill}/>`],
    ['Requester', html`<${Text} text=${task.requester}/>`],
      ['On behalf of', task.root_user && task.root_user !== task.requester
        && html`<${Text} text=${task.root_user}/>`],
    ['Delegated by', task.by_agent && html`<span><${Name} agent=${task.by_agent}/> in <${Id} id=${task.parent_task_id}
      to=${`/tasks/${task.parent_task_id}`}/></span>`],
    ['Priority', String(task.priority).toLowerCase()], ['Turn', task.turn > 1 ? task.turn : null],
      ['Attempt', task.attempt > 1 ? task.attempt : null],
    [task.status === 'completed' ? 'Charge' : 'Price', task.price_micros ? money(task.price_micros) : null],
    ['Created', html`<${Time} ms=${task.created_ms}/>`], [isDone ? 'Duration' : 'Age',
      duration((task.finished_ms || now()) - task.created_ms)],
    ['Conversation',
      task.conversation_id && html`<a href=${`#/feed?conversation=${encodeURIComponent(task.conversation_id)}`}>
        <${Text} text=${task.conversation_id} max=${60} line=${true}/></a> <${Copy} text=${task.conversation_id}/>`],
    ['Decision', around.decision && html`<${Id} id=${around.decision.id} to=${`/decisions/${around.decision.id}`}/>`],
    ['Hold', task.status === 'held'
      && html`<a href=${`#/holds/${encodeURIComponent(task.id)}`}>reason and deadline</a>`],
    ['Escalations', around.escalations?.length > 0 && html`<ul class="bare">
      ${around.escalations.map((e) => html`<li key=${e.id}><a href=${`#/escalations/${encodeURIComponent(e.id)}`}>${
      e.status === 'open' ? 'decide it'
        : html`<${Text} text=${`${e.status}${e.by ? ` by ${e.by}` : ''}`}/>`}</a></li>`)}</ul>`],
    ['Delegations', n > 1 && html`<a href=${`#/delegations/${encodeURIComponent(task.id)}`}>
      ${n} tasks in the tree</a>`],
    ['Id', html`<span class="id"><${Text} text=${task.id}/></span> <${Copy} text=${task.id}/>`]]}/><//>`;
}

// The page may know that the task is over before the stream reports it.
const asked = (task, heard) => (isOver(task) ? endInputs(heard.inputs, 'withdrawn') : heard.inputs);

export default function Task({ args }) {
  const id = args[0];
  return id ? html`<${One} key=${id} id=${id}/>` : html`<${Page}
    title="Task"><p>Choose a task in the <a href="#/feed">feed</a>.</p><//>`;
}

const isCharged = (task) => can('ledger') && task.status === 'completed' && task.price_micros > 0;

function One({ id }) {
  const [isRefunding, setRefunding] = useState(false);
  const { data: task, error, reload } = useGet(path`/api/tasks/${id}`);
  const isOpen = !!task && !isOver(task);
  const heard = useEvents(id, isOpen, reload);
  const around = useAround(task);
  useRefresh(['task.', 'gate.', 'escalation.'], () => isOpen && reload());
  const cancel = async () => {
    const below = (around.tree?.open || 1) - 1;
    const text = `It will have no result${below > 0 ? ', and its open delegations are cancelled too' : ''}.`;
    if (await cancelTask(id, { title: 'Cancel this task?', text, action: 'Cancel the task' })) reload();
  };
  if (error && !task) return html`<${Missing} title="Task" error=${error} onRetry=${reload} to="/feed"
    label="Feed"/>`;
  if (!task) return html`<${Page} title="Task"><${Loading}/><//>`;
  return html`<${Page} title="Task" lead=${html`for <${Name} agent=${task.agent}/>`}
    actions=${html`<${Status} status=${heard.status && isOpen ? heard.status : task.status}/>
      ${isOpen && can('send') && html`<${Button} kind="danger" onClick=${cancel}>Cancel<//>`}
      ${isCharged(task) && html`<${Button} onClick=${() => setRefunding(true)}>Refund<//>`}`}>
    <div class="with-side">
      <div class="stack-of">
        <${Card} title=${task.turn > 1 ? `Message, turn ${task.turn}` : 'Message'}>
          <${Message} text=${task.text} from=${task.requester}/>
            <${Metadata} title="Metadata" value=${task.metadata}/><//>
        <${Inputs} list=${asked(task, heard)}/>
        <${Answer} task=${task} heard=${heard}/>
        <${Turns} turns=${task.turns} total=${task.turn}/>
      </div>
      <div class="side"><${About} task=${task} around=${around}/></div>
    </div>
    ${isRefunding && html`<${Move} what="refund" user=${task.root_user} task=${id} turn=${task.turn}
      onDone=${(words) => { setRefunding(false); toast(words); }} onClose=${() => setRefunding(false)}/>`}
  <//>`;
}
