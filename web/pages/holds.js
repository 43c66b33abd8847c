// What waits, for what, since when and against which time; what a person must
// decide, and what was decided. One of them is hold.js, the rules holds_rules.js.
import { Age, Empty, Field, Name, Page, Status, Tabs, Text, html, useGet } from '../lib/ui.js';
import { useRefresh } from '../lib/live.js';
import { List, usePages } from '../lib/list.js';
import { duration, num } from '../lib/format.js';
import { EmExample } from '../lib/example.js';
import { Figure, Target, meanHold } from '../lib/figure.js';
import { filtersAt } from '../lib/filters.js';
import { useTick } from '../lib/timers.js';
import { Hold } from './hold.js';
import { GATE, Waited, endOf, leftOf } from './holds_parts.js';
import { Rules } from './holds_rules.js';

/** What it is about: kind and reference, and its first words below. */
function About({ item }) {
  return html`<span class="two-lines"><span><strong><${Text} text=${item.type || 'MESSAGE'} max=${60}
    line=${true}/></strong></span>
    <span class="faint"><${Text} text=${[item.reference, item.text || item.reason].filter(Boolean).join(' · ')}
      max=${200} line=${true}/></span></span>`;
}

function Way({ item }) {
  return html`<span class="two-lines"><span><${Text} text=${item.from || item.requester} max=${60}
    line=${true}/> →</span><span><${Name} agent=${item.agent}/></span></span>`;
}

// That what has happened may become too old meanwhile is nothing to wait for.
const waitsFor = (hold) => hold.waits_words.filter((_, i) => hold.waits_for[i] !== 'time').join(', ') || 'its turn';

const WAITING = [
  { key: 'what', title: 'Message', width: 'minmax(11rem, 1.4fr)', phone: 'minmax(0, 1.4fr)',
    render: (h) => html`<${About} item=${h}/>` },
  { key: 'way', title: 'From → to', width: 'minmax(6rem, .7fr)', render: (h) => html`<${Way} item=${h}/>` },
  { key: 'for', title: 'Waits for', width: 'minmax(12rem, 1.5fr)', phone: false,
    render: (h) => html`<span class="two-lines"><span><${Text} text=${waitsFor(h)} max=${200} line=${true}/></span>
    <span class="faint"><${Text} text=${h.rule || ''} max=${100} line=${true}/></span></span>` },
  { key: 'priority', title: 'Priority', width: '5.5rem', phone: false, render: (h) => html`<${Priority} item=${h}/>` },
  { key: 'since', title: 'Waited, of its target', width: 'minmax(8rem, .9fr)',
    render: (h) => html`<${Waited} hold=${h}/>` },
  { key: 'end', title: 'At the latest in', width: 'minmax(9rem, .9fr)', phone: false,
    render: (h) => html`<span class="two-lines"><span>${leftOf(h)}</span>
      <span class="faint" title=${endOf(h)}>${endOf(h)}</span></span>` },
];

const Priority = ({ item }) => html`<span class=${item.priority === 'URGENT' ? 'is-late' : ''}>
  ${String(item.priority).toLowerCase()}</span>`;

function Waiting() {
  const pages = usePages('/api/holds');
  useRefresh(GATE, pages.reload);
  useTick();
  return html`<${List} pages=${pages} columns=${WAITING} rowKey=${(h) => h.task_id} rowHeight=${56}
    href=${(h) => `#/holds/${encodeURIComponent(h.task_id)}`} label="What waits, the longest first"
    empty=${html`<${EmExample} title="Nothing waits"
      envelope="1-too-early">Messages that may not go yet appear here: with what they wait for, and how long they
        have.<//>`}/>`;
}

// What people decide.

const KINDS = { rule: 'a rule says so', dead: 'its agent is dead', expired: 'held too long', late: 'answered late' };
const ASKED = [
  { key: 'what', title: 'Message', width: 'minmax(11rem, 1.3fr)', phone: 'minmax(0, 1.4fr)',
    render: (e) => html`<${About} item=${e}/>` },
  { key: 'way', title: 'From → to', width: 'minmax(6rem, .7fr)', render: (e) => html`<${Way} item=${e}/>` },
  { key: 'kind', title: 'Why', width: 'minmax(8rem, .8fr)', phone: false,
    render: (e) => html`<span class="two-lines"><span>${KINDS[e.kind] || e.kind}</span>
      <span class="faint"><${Text} text=${e.rule || ''} max=${100} line=${true}/></span></span>` },
  { key: 'priority', title: 'Priority', width: '5.5rem', phone: false, render: (e) => html`<${Priority} item=${e}/>` },
];
const OPEN = [...ASKED,
  { key: 'since', title: 'Waits for you', width: 'minmax(6rem, .6fr)',
    render: (e) => html`<span class="two-lines"><span><${Age} ms=${e.at_ms} suffix=""/></span>
      <span class="faint">${e.reminded ? `reminded ${e.reminded}×` : ''}</span></span>` },
  { key: 'offer', title: 'Could have it', width: 'minmax(6rem, .6fr)', phone: false,
    render: (e) => html`<${Name} agent=${e.offer}/>` }];
const DECIDED = [...ASKED,
  { key: 'status', title: 'Decided', width: 'minmax(6rem, .6fr)',
    render: (e) => html`<${Status} status=${e.status}/>` },
  { key: 'by', title: 'By', width: 'minmax(7rem, .8fr)', phone: false,
    render: (e) => html`<span class="two-lines"><span><${Text} text=${e.by || '–'} max=${60} line=${true}/>, <${Age}
      ms=${e.decided_ms}/></span><span class="faint"><${Text} text=${e.comment || ''} max=${100}
        line=${true}/></span></span>` }];

const toAsked = (e) => `#/escalations/${encodeURIComponent(e.id)}`;

function ToDecide() {
  const pages = usePages('/api/escalations', { status: 'open' });
  useRefresh(GATE, pages.reload);
  return html`<${List} pages=${pages} columns=${OPEN} rowHeight=${56} href=${toAsked}
    label="What a person must decide, the newest first"
    empty=${html`<${EmExample} title="Nobody has to decide anything"
      envelope="5-not-sure">What the rules want a person to see appears here: approve it, reject it, or send it to
        another agent.<//>`}/>`;
}

const STATUSES = [['', 'All that were decided'], ['approved', 'Approved'], ['rejected', 'Rejected'],
  ['redirected', 'Redirected'], ['expired', 'Nobody answered'], ['resolved', 'Resolved by itself']];

function Decided({ status, set }) {
  const all = usePages('/api/escalations', { status });
  useRefresh(['escalation.'], all.reload);
  const pages = { ...all, rows: all.rows.filter((e) => e.status !== 'open') };
  return html`<div class="stack-of">
    <div class="filters"><${Field} label="Decided as"><select value=${status}
      onChange=${(e) => set({ status: e.target.value })}>${STATUSES.map(([id, name]) =>
        html`<option key=${id} value=${id}>${name}</option>`)}</select><//></div>
    <${List} pages=${pages} columns=${DECIDED} rowHeight=${56} href=${toAsked}
      label="What was decided, the newest first"
      empty=${html`<${Empty}
        title="Nothing was decided yet">Who approved, rejected or redirected what, when, and in which words. What is <a
          href="#/holds?tab=decide">to decide</a> comes here then.<//>`}/>
  </div>`;
}

// All of it.

function Figures() {
  const { data, reload } = useGet('/api/gate');
  useRefresh(GATE, reload, 2000);
  if (!data) return null;
  const { figures, now: at } = data;
  return html`<div class="figures" role="group" aria-label=${figures ? 'The gate in figures'
    : 'What waits of yours, in figures'}>
    <${Figure} name=${at.held === 1 ? 'waits now' : 'wait now'} value=${num(at.held)}/>
      <${Figure} name="for people to decide" value=${num(at.escalations_open)}/>
    ${figures && html`<${Target} name="held on average, 24 h" figure=${meanHold(figures.hold_ms)} show=${duration}
      bound="at most" open="none yet"/>
      <${Target} name="escalations, 24 h" figure=${figures.escalations_per_day} show=${(v) => num(v)}
        bound="fewer than"/>`}
  </div>`;
}

const TABS = [{ id: 'waiting', label: 'Waiting' }, { id: 'decide', label: 'To decide' },
  { id: 'decided', label: 'Decided' }, { id: 'rules', label: 'The rules' }];

export default function Holds({ args, query, go }) {
  const tab = TABS.some((t) => t.id === query.tab) ? query.tab : 'waiting';
  const set = filtersAt('/holds', go);
  if (args[0]) return html`<${Hold} key=${args[0]} task=${args[0]} go=${go}/>`;
  return html`<${Page} title="Holds and escalations"
    lead="What may not go yet and for what it waits; what a person must decide.">
    <${Figures}/>
    <${Tabs} label="Holds and escalations" tabs=${TABS} current=${tab} onChange=${(id) => go(`/holds?tab=${id}`)}/>
    ${tab === 'waiting' && html`<${Waiting}/>`}
    ${tab === 'decide' && html`<${ToDecide}/>`}
    ${tab === 'decided' && html`<${Decided} status=${query.status || ''} set=${set}/>`}
    ${tab === 'rules' && html`<${Rules} reference=${query.reference || ''} set=${set}/>`}
  <//>`;
}
