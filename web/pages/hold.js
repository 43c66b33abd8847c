// One held message: the reason, what it waits for, until when, and the rules it
// depends on.
import { Button, Card, Copy, Facts, Id, Loading, Name, Page, Status, Text, Time, html, useGet } from '../lib/ui.js';
import { can, path } from '../lib/api.js';
import { useRefresh } from '../lib/live.js';
import { Graph } from '../lib/graph.js';
import { Missing } from '../lib/missing.js';
import { cancelTask } from '../lib/tasks.js';
import { useEvery, useTick } from '../lib/timers.js';
import { LOOK_MS, MET, Waited, endOf, leftOf } from './holds_parts.js';

export function Hold({ task, go }) {
  const { data, error, reload } = useGet('/api/gate/graph', { task_id: task });
  const about = useGet(path`/api/tasks/${task}`);
  const reference = data?.reference;
  const list = useGet('/api/holds', { task_id: task });
  const all = () => { reload(); about.reload(); list.reload(); };
  useRefresh(MET, all);
  useEvery(LOOK_MS, all);
  useTick();
  const hold = list.data?.items[0];
  const cancel = async () => {
    const question = { title: 'Cancel this message?', text: 'It will not be delivered. Its sender is notified.',
      action: 'Cancel it' };
    if (!await cancelTask(task, question)) return;
    about.reload();
    list.reload();
  };
  if (error || about.error) return html`<${Missing} title="Held message" error=${error || about.error}
    onRetry=${all} to="/holds" label="All holds"/>`;
  if (!data || !about.data) return html`<${Page} title="Held message"><${Loading}/><//>`;
  const isHeld = about.data.status === 'held';
  return html`<${Page} title="Held message" lead=${html`<${Text}
    text=${`${data.task.type} from ${data.task.from} to ${data.task.to}`} max=${200}/>`}
      actions=${html`<${Button} onClick=${() => go(`/tasks/${encodeURIComponent(task)}`)}>Open the task<//>
        ${isHeld && can('send') && html`<${Button} kind="danger" onClick=${cancel}>Cancel it<//>`}`}>
    ${!isHeld && html`<p class="note" role="status">It is no longer on hold. Its status: <${Status}
      status=${about.data.status}/></p>`}
    <div class="grid">
      <${Card} title="Hold">${hold ? html`<${Facts} facts=${[
        ['Decision', html`<${Status} status=${hold.routing_decision}/>`],
          ['Reason', html`<${Text} text=${hold.reason}/>`], ['Rule',
            html`<${Text} text=${hold.rule || 'none in the rules file'}/>`],
        ['Waiting for',
          html`<ul class="bare">${hold.waits_words.map((w, i) => hold.waits_for[i] !== 'time'
            && html`<li key=${i}><${Text} text=${w}/> <span class="faint id">
              <${Text} text=${hold.waits_for[i]}/></span></li>`)}</ul>`],
        ['Waited', html`<${Waited} hold=${hold}/>`], ['Until',
          html`<span><${Time} ms=${hold.held_until_ms}/> (in ${leftOf(hold)}), ${endOf(hold)}</span>`]]}/>`
        : html`<p class="faint">${isHeld && list.loading ? 'Loading…' : 'It is not on hold.'}</p>`}<//>
      <${Card} title="Message"><${Facts} facts=${[
        ['From', html`<${Text} text=${data.task.from}/>`], ['To', html`<${Name} agent=${data.task.to}/>`],
          ['Type', html`<${Text} text=${data.task.type}/>`],
        ['Reference', reference && html`<${Text} text=${reference}/>`], ['Priority', data.task.priority.toLowerCase()],
          ['Sent', html`<${Time} ms=${about.data.created_ms}/>`],
        ['Text', hold?.text && html`<${Text} text=${hold.text}/>`],
          ['Task', html`<${Id} id=${task} to=${`/tasks/${task}`}/> <${Copy} text=${task}/>`]]}/><//>
    </div>
    <${Card} title="Dependencies"><${Graph} graph=${data} only=${true}/><//>
  <//>`;
}
