// One message that waits: why, for what, until when, and on whom it depends.
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
    const question = { title: 'Cancel this message?', text: 'It does not go any more, and whoever sent it is told so.',
      action: 'Cancel it' };
    if (!await cancelTask(task, question)) return;
    about.reload();
    list.reload();
  };
  if (error || about.error) return html`<${Missing} title="A message that waits" error=${error || about.error}
    onRetry=${all} to="/holds" label="All that waits"/>`;
  if (!data || !about.data) return html`<${Page} title="A message that waits"><${Loading}/><//>`;
  const isHeld = about.data.status === 'held';
  return html`<${Page} title="A message that waits" lead=${html`<${Text}
    text=${`${data.task.type} from ${data.task.from} to ${data.task.to}`} max=${200}/>`}
      actions=${html`<${Button} onClick=${() => go(`/tasks/${encodeURIComponent(task)}`)}>The task<//>
        ${isHeld && can('send') && html`<${Button} kind="danger" onClick=${cancel}>Cancel it<//>`}`}>
    ${!isHeld && html`<p class="note" role="status">It does not wait any more: it is <${Status}
      status=${about.data.status}/></p>`}
    <div class="grid">
      <${Card} title="Why">${hold ? html`<${Facts} facts=${[
        ['Decision', html`<${Status} status=${hold.routing_decision}/>`],
          ['Reason', html`<${Text} text=${hold.reason}/>`], ['Rule',
            html`<${Text} text=${hold.rule || 'none of the file'}/>`],
        ['Waits for',
          html`<ul class="bare">${hold.waits_words.map((w, i) => hold.waits_for[i] !== 'time'
            && html`<li key=${i}><${Text} text=${w}/> <span class="faint id">
              <${Text} text=${hold.waits_for[i]}/></span></li>`)}</ul>`],
        ['Waited', html`<${Waited} hold=${hold}/>`], ['At the latest',
          html`<span>in ${leftOf(hold)} (<${Time} ms=${hold.held_until_ms}/>), ${endOf(hold)}</span>`]]}/>`
        : html`<p class="faint">${isHeld && list.loading ? 'Looking…' : 'Nothing holds it.'}</p>`}<//>
      <${Card} title="The message"><${Facts} facts=${[
        ['From', html`<${Text} text=${data.task.from}/>`], ['To', html`<${Name} agent=${data.task.to}/>`],
          ['Kind', html`<${Text} text=${data.task.type}/>`],
        ['Reference', reference && html`<${Text} text=${reference}/>`], ['Priority', data.task.priority.toLowerCase()],
          ['Sent', html`<${Time} ms=${about.data.created_ms}/>`],
        ['Words', hold?.text && html`<${Text} text=${hold.text}/>`],
          ['Task', html`<${Id} id=${task} to=${`/tasks/${task}`}/> <${Copy} text=${task}/>`]]}/><//>
    </div>
    <${Card} title="What it depends on"><${Graph} graph=${data} only=${true}/><//>
  <//>`;
}
