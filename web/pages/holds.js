// Holds, open and decided escalations, and the rules. One hold is hold.js, one
// escalation escalation.js, the rules holds_rules.js.
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

/** The type, with the reference and the first words below. */
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

// The time after which an event is too old is not something a message waits for.
const waitsFor = (hold) => hold.waits_words.filter((_, i) => hold.waits_for[i] !== 'time').join(', ') || 'its turn';

const WAITING = [
  { key: 'what', title: 'Message', width: 'minmax(11rem, 1.4fr)', phone: 'minmax(0, 1.4fr)',
    render: (h) => html`<${About} item=${h}/>` },
  { key: 'way', title: 'From → to', width: 'minmax(6rem, .7fr)', render: (h) => html`<${Way} item=${h}/>` },
  { key: 'for', title: 'Waiting for', width: 'minmax(12rem, 1.5fr)', phone: false,
    render: (h) => html`<span class="two-lines"><span><${Text} text=${waitsFor(h)} max=${200} line=${true}/></span>
    <span class="faint"><${Text} text=${h.rule || ''} max=${100} line=${true}/></span></span>` },
  { key: 'priority', title: 'Priority', width: '5.5rem', phone: false, render: (h) => html`<${Priority} item=${h}/>` },
  { key: 'since', title: 'Time waited', width: 'minmax(8rem, .9fr)',
    render: (h) => html`<${Waited} hold=${h}/>` },
  { key: 'end', title: 'Time left', width: 'minmax(9rem, .9fr)', phone: false,
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
    href=${(h) => `#/holds/${encodeURIComponent(h.task_id)}`} label="Holds, longest wait first"
    empty=${html`<${EmExample} title="No messages on hold"
      envelope="1-too-early">Messages on hold appear here, with what they wait for and how much time is
        left.<//>`}/>`;
}

// Escalations.

const KINDS = { rule: 'a rule applies', dead: 'its agent is dead', expired: 'held too long', late: 'answered late' };
const ASKED = [
  { key: 'what', title: 'Message', width: 'minmax(11rem, 1.3fr)', phone: 'minmax(0, 1.4fr)',
    render: (e) => html`<${About} item=${e}/>` },
  { key: 'way', title: 'From → to', width: 'minmax(6rem, .7fr)', render: (e) => html`<${Way} item=${e}/>` },
  { key: 'kind', title: 'Reason', width: 'minmax(8rem, .8fr)', phone: false,
    render: (e) => html`<span class="two-lines"><span>${KINDS[e.kind] || e.kind}</span>
      <span class="faint"><${Text} text=${e.rule || ''} max=${100} line=${true}/></span></span>` },
  { key: 'priority', title: 'Priority', width: '5.5rem', phone: false, render: (e) => html`<${Priority} item=${e}/>` },
];
const OPEN = [...ASKED,
  { key: 'since', title: 'Time open', width: 'minmax(6rem, .6fr)',
    render: (e) => html`<span class="two-lines"><span><${Age} ms=${e.at_ms} suffix=""/></span>
      <span class="faint">${e.reminded ? `reminded ${e.reminded}×` : ''}</span></span>` },
  { key: 'offer', title: 'Backup', width: 'minmax(6rem, .6fr)', phone: false,
    render: (e) => html`<${Name} agent=${e.offer}/>` }];
const DECIDED = [...ASKED,
  { key: 'status', title: 'Decision', width: 'minmax(6rem, .6fr)',
    render: (e) => html`<${Status} status=${e.status}/>` },
  { key: 'by', title: 'Decided by', width: 'minmax(7rem, .8fr)', phone: false,
    render: (e) => html`<span class="two-lines"><span><${Text} text=${e.by || '–'} max=${60} line=${true}/>, <${Age}
      ms=${e.decided_ms}/></span><span class="faint"><${Text} text=${e.comment || ''} max=${100}
        line=${true}/></span></span>` }];

const toAsked = (e) => `#/escalations/${encodeURIComponent(e.id)}`;

function ToDecide() {
  const pages = usePages('/api/escalations', { status: 'open' });
  useRefresh(GATE, pages.reload);
  return html`<${List} pages=${pages} columns=${OPEN} rowHeight=${56} href=${toAsked}
    label="Open escalations, newest first"
    empty=${html`<${EmExample} title="No open escalations"
      envelope="5-not-sure">Messages that need a person’s decision appear here. Approve them, reject them, or redirect
        them to another agent.<//>`}/>`;
}

const STATUSES = [['', 'All'], ['approved', 'Approved'], ['rejected', 'Rejected'],
  ['redirected', 'Redirected'], ['expired', 'Expired'], ['resolved', 'Resolved']];

function Decided({ status, set }) {
  const all = usePages('/api/escalations', { status });
  useRefresh(['escalation.'], all.reload);
  const pages = { ...all, rows: all.rows.filter((e) => e.status !== 'open') };
  return html`<div class="stack-of">
    <div class="filters"><${Field} label="Decision"><select value=${status}
      onChange=${(e) => set({ status: e.target.value })}>${STATUSES.map(([id, name]) =>
        html`<option key=${id} value=${id}>${name}</option>`)}</select><//></div>
    <${List} pages=${pages} columns=${DECIDED} rowHeight=${56} href=${toAsked}
      label="Decided escalations, newest first"
      empty=${html`<${Empty}
        title="No decided escalations">Escalations appear here once they are decided, with the decision, the person and
          the comment. See the <a href="#/holds?tab=decide">open ones</a>.<//>`}/>
  </div>`;
}

// The page.

function Figures() {
  const { data, reload } = useGet('/api/gate');
  useRefresh(GATE, reload, 2000);
  if (!data) return null;
  const { figures, now: at } = data;
  return html`<div class="figures" role="group" aria-label=${figures ? 'Figures of the gate'
    : 'Figures of your messages'}>
    <${Figure} name="on hold" value=${num(at.held)}/>
      <${Figure} name="open escalations" value=${num(at.escalations_open)}/>
    ${figures && html`<${Target} name="mean hold, 24 h" figure=${meanHold(figures.hold_ms)} show=${duration}
      bound="at most" open="none yet"/>
      <${Target} name="escalations, 24 h" figure=${figures.escalations_per_day} show=${(v) => num(v)}
        bound="fewer than"/>`}
  </div>`;
}

const TABS = [{ id: 'waiting', label: 'On hold' }, { id: 'decide', label: 'Open escalations' },
  { id: 'decided', label: 'Decided escalations' }, { id: 'rules', label: 'Rules' }];

export default function Holds({ args, query, go }) {
  const tab = TABS.some((t) => t.id === query.tab) ? query.tab : 'waiting';
  const set = filtersAt('/holds', go);
  if (args[0]) return html`<${Hold} key=${args[0]} task=${args[0]} go=${go}/>`;
  return html`<${Page} title="Holds and escalations"
    lead="Messages on hold and what they wait for; escalations that a person must decide.">
    <${Figures}/>
    <${Tabs} label="Holds and escalations" tabs=${TABS} current=${tab} onChange=${(id) => go(`/holds?tab=${id}`)}/>
    ${tab === 'waiting' && html`<${Waiting}/>`}
    ${tab === 'decide' && html`<${ToDecide}/>`}
    ${tab === 'decided' && html`<${Decided} status=${query.status || ''} set=${set}/>`}
    ${tab === 'rules' && html`<${Rules} reference=${query.reference || ''} set=${set}/>`}
  <//>`;
}
