// What waits, for what, since when and against which time; what a person must
// decide, and what was decided; and the rules that say so.
import { Age, Bar, Button, Card, Copy, Empty, Facts, Field, Id, Loading, Name, Page, Problem, Status, Tabs, Text, Time, confirm, html, toast, useEffect, useGet, useReducer, useRef } from '../lib/ui.js';
import { can, now, path, post } from '../lib/api.js';
import { useRefresh } from '../lib/live.js';
import { List, usePages } from '../lib/list.js';
import { age, duration, num } from '../lib/format.js';
import { EmExample } from '../lib/example.js';
import { Graph } from '../lib/graph.js';
import { Missing } from '../lib/missing.js';
import { Target, meanHold } from '../lib/target.js';

// What is let go at once concerns nothing here, and is most of what happens.
const GATE = ['gate.held', 'gate.paused', 'gate.escalated', 'gate.released', 'gate.expired', 'escalation.', 'task.cancelled', 'task.expired'];
const MET = [...GATE, 'gate.routed', 'task.completed', 'agent.'];
const LOOK_MS = 10000; // how agents are is not told in the feed

/** Drawn again every second: times go on while nothing happens. */
function useTick(ms = 1000) {
  const [, tick] = useReducer((n) => n + 1, 0);
  useEffect(() => {
    const timer = setInterval(tick, ms);
    return () => clearInterval(timer);
  }, [ms]);
}

/** Asked again every so often, while somebody looks. */
function useEvery(ms, ask) {
  const latest = useRef(ask);
  latest.current = ask;
  useEffect(() => {
    const timer = setInterval(() => document.hidden || latest.current(), ms);
    return () => clearInterval(timer);
  }, [ms]);
}

/** How much of the time that a hold should take it has taken. */
function Waited({ hold }) {
  const ms = Math.max(0, now() - hold.since_ms);
  if (!hold.sla_ms) return html`<span>${duration(ms)}</span>`;
  const share = ms / hold.sla_ms;
  const tone = share >= 1 ? 'bad' : share >= 0.75 ? 'warn' : 'accent';
  const text = `${age(ms)} of ${age(hold.sla_ms)}${share >= 1 ? ', late' : ''}`;
  return html`<span class="waited"><${Bar} value=${ms} max=${hold.sla_ms} label="Waited" text=${text} tone=${tone}/><span class="waited-words ${share >= 1 ? 'is-late' : ''}">${text}</span></span>`;
}

const ENDS = { expire: 'then it expires', escalate: 'then a person must see it', route: 'then it goes anyway' };
const leftOf = (hold) => duration(Math.max(0, hold.held_until_ms - now()));
const endOf = (hold) => ENDS[hold.on_expiry] || 'then it ends';

/** What it is about: kind and reference, and its first words below. */
function About({ item }) {
  return html`<span class="two-lines"><span><strong><${Text} text=${item.type || 'MESSAGE'} max=${60} line=${true}/></strong></span>
    <span class="faint"><${Text} text=${[item.reference, item.text || item.reason].filter(Boolean).join(' · ')} max=${200} line=${true}/></span></span>`;
}

function Way({ item }) {
  return html`<span class="two-lines"><span><${Text} text=${item.from || item.requester} max=${60} line=${true}/> →</span><span><${Name} agent=${item.agent}/></span></span>`;
}

// That what has happened may become too old meanwhile is nothing to wait for.
const waitsFor = (hold) => hold.waits_words.filter((_, i) => hold.waits_for[i] !== 'time').join(', ') || 'its turn';

const WAITING = [
  { key: 'what', title: 'Message', width: 'minmax(11rem, 1.4fr)', phone: 'minmax(0, 1.4fr)', render: (h) => html`<${About} item=${h}/>` },
  { key: 'way', title: 'From → to', width: 'minmax(6rem, .7fr)', render: (h) => html`<${Way} item=${h}/>` },
  { key: 'for', title: 'Waits for', width: 'minmax(12rem, 1.5fr)', phone: false, render: (h) => html`<span class="two-lines"><span><${Text} text=${waitsFor(h)} max=${200} line=${true}/></span>
    <span class="faint"><${Text} text=${h.rule || ''} max=${100} line=${true}/></span></span>` },
  { key: 'priority', title: 'Priority', width: '5.5rem', phone: false, render: (h) => html`<${Priority} item=${h}/>` },
  { key: 'since', title: 'Waited, of its target', width: 'minmax(8rem, .9fr)', render: (h) => html`<${Waited} hold=${h}/>` },
  { key: 'end', title: 'At the latest in', width: 'minmax(9rem, .9fr)', phone: false, render: (h) => html`<span class="two-lines"><span>${leftOf(h)}</span><span class="faint" title=${endOf(h)}>${endOf(h)}</span></span>` },
];

const Priority = ({ item }) => html`<span class=${item.priority === 'URGENT' ? 'is-late' : ''}>${String(item.priority).toLowerCase()}</span>`;

function Waiting() {
  const pages = usePages('/api/holds');
  useRefresh(GATE, pages.reload);
  useTick();
  return html`<${List} pages=${pages} columns=${WAITING} rowKey=${(h) => h.task_id} rowHeight=${56} href=${(h) => `#/holds/${encodeURIComponent(h.task_id)}`} label="What waits, the longest first"
    empty=${html`<${EmExample} title="Nothing waits" envelope="1-too-early">Messages that may not go yet appear here: with what they wait for, and how long they have.<//>`}/>`;
}

// What people decide.

const KINDS = { rule: 'a rule says so', dead: 'its agent is dead', expired: 'held too long', late: 'answered late' };
const ASKED = [
  { key: 'what', title: 'Message', width: 'minmax(11rem, 1.3fr)', phone: 'minmax(0, 1.4fr)', render: (e) => html`<${About} item=${e}/>` },
  { key: 'way', title: 'From → to', width: 'minmax(6rem, .7fr)', render: (e) => html`<${Way} item=${e}/>` },
  { key: 'kind', title: 'Why', width: 'minmax(8rem, .8fr)', phone: false, render: (e) => html`<span class="two-lines"><span>${KINDS[e.kind] || e.kind}</span><span class="faint"><${Text} text=${e.rule || ''} max=${100} line=${true}/></span></span>` },
  { key: 'priority', title: 'Priority', width: '5.5rem', phone: false, render: (e) => html`<${Priority} item=${e}/>` },
];
const OPEN = [...ASKED,
  { key: 'since', title: 'Waits for you', width: 'minmax(6rem, .6fr)', render: (e) => html`<span class="two-lines"><span><${Age} ms=${e.at_ms} suffix=""/></span><span class="faint">${e.reminded ? `reminded ${e.reminded}×` : ''}</span></span>` },
  { key: 'offer', title: 'Could have it', width: 'minmax(6rem, .6fr)', phone: false, render: (e) => html`<${Name} agent=${e.offer}/>` }];
const DECIDED = [...ASKED,
  { key: 'status', title: 'Decided', width: 'minmax(6rem, .6fr)', render: (e) => html`<${Status} status=${e.status}/>` },
  { key: 'by', title: 'By', width: 'minmax(7rem, .8fr)', phone: false, render: (e) => html`<span class="two-lines"><span><${Text} text=${e.by || '–'} max=${60} line=${true}/>, <${Age} ms=${e.decided_ms}/></span><span class="faint"><${Text} text=${e.comment || ''} max=${100} line=${true}/></span></span>` }];

const toAsked = (e) => `#/escalations/${encodeURIComponent(e.id)}`;

function ToDecide() {
  const pages = usePages('/api/escalations', { status: 'open' });
  useRefresh(GATE, pages.reload);
  return html`<${List} pages=${pages} columns=${OPEN} rowHeight=${56} href=${toAsked} label="What a person must decide, the newest first"
    empty=${html`<${EmExample} title="Nobody has to decide anything" envelope="5-not-sure">What the rules want a person to see appears here: approve it, reject it, or send it to another agent.<//>`}/>`;
}

const STATUSES = [['', 'All that were decided'], ['approved', 'Approved'], ['rejected', 'Rejected'], ['redirected', 'Redirected'], ['expired', 'Nobody answered'], ['resolved', 'Resolved by itself']];

function Decided({ status, set }) {
  const all = usePages('/api/escalations', { status });
  useRefresh(['escalation.'], all.reload);
  const pages = { ...all, rows: all.rows.filter((e) => e.status !== 'open') };
  return html`<div class="stack-of">
    <div class="filters"><${Field} label="Decided as"><select value=${status} onChange=${(e) => set({ status: e.target.value })}>${STATUSES.map(([id, name]) => html`<option key=${id} value=${id}>${name}</option>`)}</select><//></div>
    <${List} pages=${pages} columns=${DECIDED} rowHeight=${56} href=${toAsked} label="What was decided, the newest first"
      empty=${html`<${Empty} title="Nothing was decided yet">Who approved, rejected or redirected what, when, and in which words. What is <a href="#/holds?tab=decide">to decide</a> comes here then.<//>`}/>
  </div>`;
}

// The rules.

function Rules({ reference, set }) {
  const { data, error, loading, reload } = useGet('/api/gate/graph', { reference });
  useRefresh(MET, reload, 2000);
  useEvery(LOOK_MS, reload);
  return html`<${Card} title="Who must have said what before what may go">
    <form class="inline-form" role="search" onSubmit=${(e) => { e.preventDefault(); set({ reference: e.target.reference.value.trim() }); }}>
      <${Field} label="For a reference"><input name="reference" data-search type="search" value=${reference} placeholder="SUBM-C042-001" spellcheck=${false} maxlength="200"/><//>
      <${Button} type="submit">Show what has happened<//></form>
    ${error && html`<${Problem} error=${error} onRetry=${reload}/>`}
    ${loading && html`<${Loading}/>`}
    ${data && (data.edges.length ? html`<${Graph} graph=${data}/>` : html`<${EmExample} title="No rules that wait for anything">A file of rules, named by “rules” in the configuration, says what may go when. examples/em has a complete one.<//>`)}
  <//>`;
}

// One that waits.

function Hold({ task, go }) {
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
    if (!await confirm({ title: 'Cancel this message?', text: 'It does not go any more, and whoever sent it is told so.', action: 'Cancel it' })) return;
    await post(path`/api/tasks/${task}/cancel`).then(() => toast('It was cancelled.'), (e) => { if (e.status !== 409) throw e; toast('It went, or was over, before it could be cancelled.', 'warn'); });
    about.reload();
    list.reload();
  };
  if (error || about.error) return html`<${Missing} title="A message that waits" error=${error || about.error} onRetry=${all} to="/holds" label="All that waits"/>`;
  if (!data || !about.data) return html`<${Page} title="A message that waits"><${Loading}/><//>`;
  const isHeld = about.data.status === 'held';
  return html`<${Page} title="A message that waits" lead=${html`<${Text} text=${`${data.task.type} from ${data.task.from} to ${data.task.to}`} max=${200}/>`}
      actions=${html`<${Button} onClick=${() => go(`/tasks/${encodeURIComponent(task)}`)}>The task<//>${isHeld && can('send') && html`<${Button} kind="danger" onClick=${cancel}>Cancel it<//>`}`}>
    ${!isHeld && html`<p class="note" role="status">It does not wait any more: it is <${Status} status=${about.data.status}/></p>`}
    <div class="grid">
      <${Card} title="Why">${hold ? html`<${Facts} facts=${[
        ['Decision', html`<${Status} status=${hold.routing_decision}/>`], ['Reason', html`<${Text} text=${hold.reason}/>`], ['Rule', html`<${Text} text=${hold.rule || 'none of the file'}/>`],
        ['Waits for', html`<ul class="bare">${hold.waits_words.map((w, i) => hold.waits_for[i] !== 'time' && html`<li key=${i}><${Text} text=${w}/> <span class="faint id"><${Text} text=${hold.waits_for[i]}/></span></li>`)}</ul>`],
        ['Waited', html`<${Waited} hold=${hold}/>`], ['At the latest', html`<span>in ${leftOf(hold)} (<${Time} ms=${hold.held_until_ms}/>), ${endOf(hold)}</span>`]]}/>`
        : html`<p class="faint">${isHeld && list.loading ? 'Looking…' : 'Nothing holds it.'}</p>`}<//>
      <${Card} title="The message"><${Facts} facts=${[
        ['From', html`<${Text} text=${data.task.from}/>`], ['To', html`<${Name} agent=${data.task.to}/>`], ['Kind', html`<${Text} text=${data.task.type}/>`],
        ['Reference', reference && html`<${Text} text=${reference}/>`], ['Priority', data.task.priority.toLowerCase()], ['Sent', html`<${Time} ms=${about.data.created_ms}/>`],
        ['Words', hold?.text && html`<${Text} text=${hold.text}/>`], ['Task', html`<${Id} id=${task} to=${`/tasks/${task}`}/> <${Copy} text=${task}/>`]]}/><//>
    </div>
    <${Card} title="What it depends on"><${Graph} graph=${data} only=${true}/><//>
  <//>`;
}

// All of it.

function Figures() {
  const { data, reload } = useGet('/api/gate');
  useRefresh(GATE, reload, 2000);
  if (!data) return null;
  const { figures, now: at } = data;
  const box = (name, value) => html`<div class="figure-box" key=${name}><div class="value">${value}</div><div class="name">${name}</div></div>`;
  return html`<div class="figures" role="group" aria-label=${figures ? 'The gate in figures' : 'What waits of yours, in figures'}>
    ${box(at.held === 1 ? 'waits now' : 'wait now', num(at.held))}${box('for people to decide', num(at.escalations_open))}
    ${figures && html`<${Target} name="mean hold, priority NORMAL, 24 h" figure=${meanHold(figures.hold_ms)} show=${duration} bound="at most" open="none yet"/>
      <${Target} name="escalations, 24 h" figure=${figures.escalations_per_day} show=${(v) => num(v)} bound="fewer than"/>`}
  </div>`;
}

const TABS = [{ id: 'waiting', label: 'Waiting' }, { id: 'decide', label: 'To decide' }, { id: 'decided', label: 'Decided' }, { id: 'rules', label: 'The rules' }];

export default function Holds({ args, query, go }) {
  const tab = TABS.some((t) => t.id === query.tab) ? query.tab : 'waiting';
  const set = (more) => go(`/holds?${new URLSearchParams(Object.entries({ tab, ...more }).filter(([, v]) => v))}`);
  if (args[0]) return html`<${Hold} key=${args[0]} task=${args[0]} go=${go}/>`;
  return html`<${Page} title="Holds and escalations" lead="What may not go yet and for what it waits; what a person must decide.">
    <${Figures}/>
    <${Tabs} label="Holds and escalations" tabs=${TABS} current=${tab} onChange=${(id) => go(`/holds?tab=${id}`)}/>
    ${tab === 'waiting' && html`<${Waiting}/>`}
    ${tab === 'decide' && html`<${ToDecide}/>`}
    ${tab === 'decided' && html`<${Decided} status=${query.status || ''} set=${set}/>`}
    ${tab === 'rules' && html`<${Rules} key=${query.reference || ''} reference=${query.reference || ''} set=${set}/>`}
  <//>`;
}
