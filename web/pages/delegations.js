// Delegations: the trees of tasks, newest first, and one tree as a timeline.
import { Age, Badge, Button, Card, Empty, Facts, Id, Loading, Name, Page, Status, Text, Time, html, useGet,
  useMemo } from '../lib/ui.js';
import { can, now, path } from '../lib/api.js';
import { useRefresh } from '../lib/live.js';
import { Choice, Exact, SPANS, filtersAt, sinceOf } from '../lib/filters.js';
import { List, usePages } from '../lib/list.js';
import { count, duration, num } from '../lib/format.js';
import { Missing } from '../lib/missing.js';
import { Figure } from '../lib/figure.js';
import { cancelTask, isOver } from '../lib/tasks.js';
import { Timeline, cost } from '../lib/timeline.js';
import { useTick } from '../lib/timers.js';

const COLUMNS = [
  { key: 'text', title: 'Message', width: 'minmax(12rem, 2fr)',
    render: (t) => html`<${Text} text=${t.text || t.root_task_id} max=${160} line=${true}/>` },
  { key: 'agent', title: 'First agent', width: 'minmax(7rem, 1fr)', render: (t) => html`<${Name} agent=${t.agent}/>` },
  { key: 'status', title: 'Status', width: '7.5rem', render: (t) => html`<${Status} status=${t.status}/>` },
  { key: 'tasks', title: 'Tasks', width: '7rem', align: 'right', phone: false,
    render: (t) => html`${num(t.tasks)}${!t.is_whole ? '+' : ''}
      ${t.open ? html` <${Badge} tone="busy">${t.open} open<//>` : ''}` },
  { key: 'cost', title: 'Cost', width: '6rem', align: 'right', phone: false,
    render: (t) => (t.captured_micros || t.price_micros ? cost(t) : html`<span class="faint">–</span>`) },
  {
    key: 'took', title: 'Duration', width: '5.5rem', align: 'right', phone: false,
    render: (t) => duration(t.duration_ms),
  },
  { key: 'user', title: 'User', width: 'minmax(5rem, .6fr)', phone: false,
    render: (t) => html`<${Text} text=${t.root_user} max=${60} line=${true}/>` },
  { key: 'at', title: 'Started', width: '6rem', phone: false, render: (t) => html`<${Age} ms=${t.created_ms}/>` },
];

const STATUSES = ['queued', 'working', 'held', 'escalated', 'input_required', 'completed', 'failed', 'cancelled',
  'expired'];

function Filters({ filter, set }) {
  const exact = (name, label, more) => html`<${Exact} label=${label} value=${filter[name]}
    onChoose=${(text) => set({ [name]: text })} ...${more}/>`;
  return html`<div class="filters" role="search" aria-label="Filter delegations">
    ${exact('agent', 'Agent involved', { 'data-search': true, maxlength: 128 })}
    <${Choice} label="Status" name="status" options=${STATUSES.map((s) => [s, s])} filter=${filter} set=${set}/>
    <${Choice} label="Started" name="since" options=${SPANS} filter=${filter} set=${set}/>
    ${can('admin') && exact('user', 'User', { maxlength: 128 })}
  </div>`;
}

const EXAMPLE = 'draft a blog post about office trends, with facts';

function Nothing({ isFiltered, pages, set }) {
  if (isFiltered) return html`<${Empty} title=${pages.done ? 'No delegation matches this filter'
    : 'No match among the newest delegations'}>
    ${!pages.done && html`<${Button} onClick=${pages.more}>Look further back<//> `}
    <${Button} onClick=${() => set(null)}>Show all<//><//>`;
  return html`<${Empty} title="No delegations yet"
      command=${`build/signalbox send --url ${location.origin} "${EXAMPLE}"`}>
    Tasks that agents of this server (<code>${location.host}</code>) delegate to each other appear here. In the demo,
    the content writer delegates to the researcher when a message asks for facts. Try it in the <a
      href="#/playground">playground</a>, or with <code>SIGNALBOX_TOKEN</code> set:<//>`;
}

function Trees({ query, go }) {
  const since = useMemo(() => sinceOf(query.since), [query.since]);
  const { agent, status, user } = query;
  const pages = usePages('/api/trees', { agent, status, user, since }, 50);
  const isFiltered = Object.keys(query).length > 0;
  const set = filtersAt('/delegations', go);
  useRefresh(['task.'], pages.reload, 3000);
  return html`<${Page} title="Delegations"
      lead="Work that agents delegated to other agents, how long each waited, and what each branch cost.">
    ${(isFiltered || pages.rows.length > 0) && html`<${Filters} filter=${query} set=${set}/>`}
    <${List} pages=${pages} columns=${COLUMNS} rowKey=${(t) => t.root_task_id} label="Delegations, newest first"
      href=${(t) => `#/delegations/${encodeURIComponent(t.root_task_id)}`}
      empty=${html`<${Nothing} isFiltered=${isFiltered} pages=${pages} set=${set}/>`}/>
  <//>`;
}

async function cancelBranch(task, isRoot, reload) {
  const below = task.branch.tasks - 1;
  const who = isRoot ? '' : `It is the work of ${task.agent}. `;
  const text = below > 0
    ? `${count(below, 'task')} below it will be cancelled too, unless finished. Work completed until then is charged.`
      : 'It will have no result. The waiting agent or user is notified.';
  const question = { title: isRoot ? 'Cancel everything?' : 'Cancel this branch?', text: who + text,
    action: isRoot ? 'Cancel everything' : 'Cancel this branch' };
  if (await cancelTask(task.task_id, question, isRoot ? 'Everything was cancelled.' : 'The branch was cancelled.'))
    reload();
}

function Tree({ id }) {
  const { data, error, reload } = useGet(path`/api/tasks/${id}/tree`);
  const isOpen = data?.open > 0;
  useRefresh(['task.'], () => (isOpen || !data) && reload());
  useTick(500, isOpen);
  if (error && !data) return html`<${Missing} title="Delegation" error=${error} onRetry=${reload} to="/delegations"
    label="All delegations"/>`;
  if (!data) return html`<${Page} title="Delegation"><${Loading}/><//>`;
  const top = data.tree;
  const mayCancel = can('send');
  const actions = (task) => html`${!isOver(task) && mayCancel && task !== top
    && html`<${Button} className="small" kind="danger" onClick=${() => cancelBranch(task, false, reload)}
      aria-label=${`Cancel the task of ${task.agent}`}>Cancel<//>`}`;
  return html`<${Page} title="Delegation" lead=${html`<${Text} text=${top.text} max=${300}/>`}
      actions=${html`<${Status} status=${top.status}/>${!isOver(top) && mayCancel
        && html`<${Button} kind="danger" onClick=${() => cancelBranch(top, true, reload)}>Cancel everything<//>`}`}>
    <div class="figures" role="group" aria-label="Figures">
      ${[['tasks', data.tasks], ['open', data.open], ['from start to end',
        duration(isOver(top) ? top.duration_ms : now() - top.began_ms)],
          [isOpen ? 'charged or reserved' : 'charged', data.captured_micros || data.price_micros ? cost(data)
            : '–']].map(([name, value]) => html`
        <${Figure} key=${name} name=${name} value=${value}/>`)}
    </div>
    <${Card} title="Timeline" actions=${html`<span
      class="legend"><span class="key-waited"></span> waiting for its agent <span
        class="key-worked"></span> working <span class="key-for"></span> waiting for delegated tasks</span>`}>
      <${Timeline} tree=${top} nowMs=${now()} current=${data.task_id !== top.task_id ? data.task_id : null}
        actions=${actions}/>
    <//>
    <${Card} title="Details"><${Facts} facts=${[
      ['User', html`<${Text} text=${data.root_user}/>`], ['Started', html`<${Time} ms=${top.began_ms}/>`],
        ['First task', data.root_task_id && html`<${Id} id=${data.root_task_id}
          to=${`/tasks/${data.root_task_id}`}/>`],
      ['Command line', html`<code>build/signalbox tasks tree ${top.task_id}</code>`]]}/>
      ${!data.is_whole
        && html`<p class="note">This is only a part of the tree: you cannot see the tasks above it, or it has too many
          tasks.</p>`}<//>
  <//>`;
}

export default function Delegations({ args, query, go }) {
  return args[0] ? html`<${Tree} key=${args[0]} id=${args[0]}/>` : html`<${Trees} query=${query} go=${go}/>`;
}
