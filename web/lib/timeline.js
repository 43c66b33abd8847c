// A tree of tasks as rows over one time axis. A task waits until its agent has it
// (hatched), then the agent works on it (solid). While it waits for delegated
// tasks, the solid part is striped and names their agents.
import { Name, Status, Text, html } from './ui.js';
import { isOver } from './tasks.js';
import { duration, money } from './format.js';

/** The tasks from the top down, each with its level and the position of its bars. */
export function rows(tree, nowMs) {
  const list = [];
  const add = (task, level) => {
    list.push({ task, level });
    for (const kid of task.children) add(kid, level + 1);
  };
  add(tree, 0);
  const from = Math.min(...list.map(({ task }) => task.began_ms));
  const to = Math.max(from + 1, ...list.map(({ task }) => endOf(task, nowMs)));
  const share = (ms) => Math.max(0, Math.min(1, (ms - from) / (to - from)));
  for (const row of list) Object.assign(row, bars(row.task, share, nowMs));
  return { list, from, to };
}

const endOf = (task, nowMs) => task.finished_ms || Math.max(nowMs, task.began_ms);

function bars(task, share, nowMs) {
  const over = endOf(task, nowMs), given = task.started_ms || over;
  const waits = task.started_ms ? waitsOf(task, share, nowMs) : [];
  const forMs = waits.reduce((sum, w) => sum + w.to - w.from, 0);
  return {
    start: share(task.began_ms), given: share(given), end: share(over), waits,
    waitedMs: Math.max(0, given - task.began_ms), forMs, workedMs: task.started_ms ? Math.max(0, over - given - forMs)
      : null,
  };
}

/** The times a task waited for its children, merged where they overlap. It does not wait for a child of mode async. */
function waitsOf(task, share, nowMs) {
  const over = endOf(task, nowMs), waits = [];
  const kids = task.children.filter((kid) => kid.mode !== 'async' && kid.parent_task_id === task.task_id);
  for (const kid of kids.sort((a, b) => a.began_ms - b.began_ms)) {
    const from = Math.max(task.started_ms, kid.began_ms), to = Math.min(over, endOf(kid, nowMs));
    const last = waits.at(-1);
    if (to <= from) continue;
    if (last && from < last.to) Object.assign(last, { to: Math.max(last.to, to),
      agents: [...new Set([...last.agents, kid.agent])] });
    else waits.push({ from, to, agents: [kid.agent] });
  }
  return waits.map((w) => ({ ...w, start: share(w.from), end: share(w.to), who: w.agents.join(', ') }));
}

const percent = (share) => `${(share * 100).toFixed(3)}%`;
const at = (start, end) => ({ left: percent(start), width: `max(2px, ${percent(end - start)})` });

function words({ waitedMs, workedMs, waits }) {
  const parts = [`waited ${duration(waitedMs)}`, workedMs === null ? 'not started'
    : `worked ${duration(workedMs)}`];
  for (const w of waits) parts.push(`waited ${duration(w.to - w.from)} for ${w.who}`);
  return parts.join(', ');
}

function Track({ row }) {
  const text = words(row);
  return html`<span class="track" role="img" aria-label=${text} title=${text}>
    ${row.given > row.start && html`<span class="track-waited" style=${at(row.start, row.given)}></span>`}
    ${row.task.started_ms && html`<span class="track-worked tone-${toneOf(row.task)} ${isOver(row.task) ? ''
      : 'is-open'}" style=${at(row.given, row.end)}></span>`}
    ${row.waits.map((w, i) => html`<span class="track-for" key=${i}
      style=${at(w.start, w.end)}><span class="track-name"><${Text} text=${`for ${w.who}`} max=${40}
        line=${true}/></span></span>`)}
  </span>`;
}

const TONES = { completed: 'good', failed: 'bad', expired: 'bad', cancelled: 'calm', dropped: 'calm' };
const toneOf = (task) => TONES[task.status] || 'busy';

function Ticks({ span }) {
  const steps = span < 8 ? [0, 1] : [0, 0.25, 0.5, 0.75, 1]; // too few milliseconds for five ticks
  return html`<span class="ticks" aria-hidden="true">${steps.map((s) =>
    html`<span key=${s} style=${{ left: percent(s) }} class=${s === 1 ? 'is-last' : s === 0 ? 'is-first' : s === 0.5
      ? '' : 'not-phone'}>${duration(Math.round(span * s))}</span>`)}</span>`;
}

/** `current`: the id of the task to highlight; actions(task) renders at the end of its row. */
export function Timeline({ tree, nowMs, current, actions }) {
  const { list, from, to } = rows(tree, nowMs);
  return html`<div class="table-box" tabindex="0" role="region" aria-label="Timeline"><table class="timeline">
    <caption class="off-screen">The delegated tasks: how long each waited and was worked on, and what it cost</caption>
    <thead><tr><th scope="col">Task</th><th scope="col" class="track-head">
      <span class="off-screen">From start to end</span><${Ticks} span=${to - from}/></th>
      <th scope="col" class="right not-phone" title="until its agent received it">Waited</th>
        <th scope="col" class="right not-phone" title="without the time it waited for delegated tasks">Worked</th>
          <th scope="col" class="right not-phone" title="waited for delegated tasks">Delegated</th>
            <th scope="col" class="right not-phone">Cost</th><th scope="col" class="right not-phone"
              title="with all tasks below it">Branch cost</th>
              <th class="not-phone"><span class="off-screen">Actions</span></th></tr></thead>
    <tbody>${list.map((row) => html`<${Row} key=${row.task.task_id} row=${row} isCurrent=${row.task.task_id === current}
      actions=${actions}/>`)}</tbody>
  </table></div>`;
}

function Row({ row, isCurrent, actions }) {
  const { task, level } = row;
  const to = `#/tasks/${encodeURIComponent(task.task_id)}`;
  const hasBranch = task.branch.tasks > 1;
  return html`<tr class=${isCurrent ? 'is-current' : ''} aria-current=${isCurrent ? 'true' : undefined}>
    <th scope="row"><span class="branch" style=${{ '--level': Math.min(level, 12) }}>
      <span class="branch-who"><${Name} agent=${task.agent}/> <${Status} status=${task.status}/></span>
      <a class="branch-text" href=${to} title="Open the task">
        <${Text} text=${task.text || task.task_id} max=${90} line=${true}/></a>
      <span class="phone-only">${(task.captured_micros || task.price_micros) ? cost(task)
        : ''} ${actions?.(task)}</span>
      ${task.error && html`<span class="field-error"><${Text} text=${`${task.error.code}: ${task.error.message}`}
        max=${160}/></span>`}</span></th>
    <td class="track-cell"><${Track} row=${row}/></td>
    <td class="right not-phone">${duration(row.waitedMs)}</td><td class="right not-phone">${duration(row.workedMs)}</td>
    <td class="right not-phone">${row.forMs ? duration(row.forMs) : html`<span class="faint">–</span>`}</td>
    <td class="right not-phone">${task.captured_micros || task.price_micros ? cost(task)
      : html`<span class="faint">–</span>`}</td>
    <td class="right not-phone">${hasBranch && (task.branch.captured_micros || task.branch.price_micros)
      ? cost(task.branch) : html`<span class="faint">–</span>`}</td>
    <td class="right not-phone">${actions?.(task)}</td>
  </tr>`;
}

/** The amount charged; the price in parentheses if nothing is charged yet. */
export function cost({ captured_micros: paid, price_micros: price }) {
  if (paid || !price) return money(paid);
  return html`<span class="faint"
    title="the price: not charged yet, or released">(${money(price)})</span>`;
}
