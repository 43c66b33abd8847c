// An agent's recent tasks and decisions that are visible to the user.
import { Age, Card, Empty, Id, Link, Problem, Status, Text, html, useGet } from '../lib/ui.js';
import { can, path } from '../lib/api.js';
import { useRefresh } from '../lib/live.js';
import { Table } from '../lib/list.js';
import { duration, num } from '../lib/format.js';
import { brief } from '../lib/message.js';

const MOST = 8;

const TASKS = [
  { key: 'text', title: 'Message', render: (t) => html`<${Text} text=${brief(t.text)} max=${90} line=${true}/>` },
  { key: 'status', title: 'Status', render: (t) => html`<${Status} status=${t.status}/>` },
  { key: 'took', title: 'Duration', align: 'right', render: (t) =>
    (t.finished_ms ? duration(t.finished_ms - t.created_ms) : '–') },
  { key: 'at', title: 'Time', render: (t) => html`<${Age} ms=${t.created_ms}/>` },
  { key: 'id', title: 'Task', render: (t) => html`<${Id} id=${t.id} to=${`/tasks/${t.id}`}/>` },
];

const DECISIONS = [
  { key: 'text', title: 'Message', render: (d) => html`<${Text} text=${brief(d.text)} max=${90} line=${true}/>` },
  { key: 'layer', title: 'Layer', render: (d) => d.layer },
  { key: 'score', title: 'Score', align: 'right', render: (d) => num(d.score, 3) },
  { key: 'verdict', title: 'Verdict', render: (d) => html`<${Status} status=${d.verdict}/>` },
  { key: 'at', title: 'Time', render: (d) => html`<${Age} ms=${d.at_ms}/>` },
  { key: 'id', title: 'Decision', render: (d) => html`<${Id} id=${d.id} to=${`/decisions/${d.id}`}/>` },
];

/** Selects feed entries about this agent, or about no agent. */
export const isAbout = (name) => (entry) => !entry.agent || entry.agent.toLowerCase() === name.toLowerCase();

function Part({ title, found, columns, label, empty, more }) {
  return html`<${Card} title=${title} actions=${more}>${found.error && !found.data
    && html`<${Problem} error=${found.error} onRetry=${found.reload}/>`}
    ${found.data && html`<${Table} columns=${columns} rows=${found.data.items} rowKey=${(r) => r.id} label=${label}
      empty=${empty}/>`}<//>`;
}

export function Recent({ name }) {
  const tasks = useGet('/api/tasks', { agent: name, limit: MOST });
  const decisions = useGet('/api/decisions', { agent: name, limit: MOST });
  useRefresh(['task.', 'decision.'], () => { tasks.reload(); decisions.reload(); }, 1000, isAbout(name));
  const send = `build/signalbox send --to ${name} "hello"`;
  return html`<div class="grid wide recent">
    <${Part} title="Recent tasks" found=${tasks} columns=${TASKS} label=${`Recent tasks of ${name}`}
      empty=${html`<${Empty} title="No tasks visible to you"
        command=${can('send') && send}>Messages sent to it appear here.<//>`}/>
    <${Part} title="Recent decisions" found=${decisions} columns=${DECISIONS}
      label=${`Recent decisions for ${name}`}
      more=${html`<${Link} to=${path`/decisions?agent=${name}`}>Show all<//>`}
      empty=${html`<${Empty}
        title="No decisions visible to you">When it gets a message, the decision and its reason appear here.<//>`}/>
  </div>`;
}
