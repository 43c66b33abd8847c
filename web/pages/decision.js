// One decision in full: the message, the candidates, the settings, the gate's
// decision, and the outcome.
import { Age, Badge, Card, Facts, Id, Link, Loading, Name, Page, Problem, Status, Text, Time, html,
  useGet } from '../lib/ui.js';
import { path } from '../lib/api.js';
import { useRefresh } from '../lib/live.js';
import { Candidates, Verdict, nearestOf } from '../lib/candidates.js';
import { Envelope, envelopeOf } from '../lib/message.js';
import { count, duration, microseconds, num } from '../lib/format.js';
import { Judge, TryAgain, mayBeCut } from './decision_teach.js';

const GATES = { ROUTE_IMMEDIATELY: 'it could go at once', HOLD_PENDING_INPUT: 'a condition was not met yet',
  HOLD_PENDING_CAPACITY: 'the agent had no capacity',
  PAUSE_ALL_SUBMISSIONS: 'a safety gate was closed', ESCALATE_TO_HUMAN: 'a person had to decide',
    DROP_SILENTLY: 'it was a duplicate' };

function Gate({ d }) {
  if (!d.gate) return null;
  return html`<span><${Status} status=${d.gate}/> <span class="faint">${GATES[d.gate]}</span>
    ${d.gate_rule && html`<br/>rule <code><${Text} text=${d.gate_rule} max=${128}/></code>`}
      ${d.gate_reason && html`<br/><${Text} text=${d.gate_reason}/>`}</span>`;
}

function Override({ d }) {
  if (!d.overridden_to) return null;
  return html`<span>to <${Name} agent=${d.overridden_to}/>${d.overridden_by && html` by <${Text}
    text=${d.overridden_by} max=${64} line=${true}/>`}, <${Age} ms=${d.overridden_ms}/></span>`;
}

const known = (value, show) => (value === null || value === undefined ? null : show(value));

function Outcome({ d }) {
  const error = d.error_code && html`<${Badge} tone="bad">${d.error_code}<//>`;
  const isOpen = d.verdict === 'open' && !!d.agent;
  return html`<${Card} title="Outcome">
    <${Facts} facts=${[
      ['Delivered', !d.agent && (d.task_id ? html`refused at first, then sent to <${Name} agent=${d.overridden_to}/>`
        : 'no: the message was refused, and no task was created')],
      ['Verdict', html`<${Status} status=${d.verdict}/>${d.verdict_ms
        ? html` <span class="faint"><${Age} ms=${d.verdict_ms}/></span>` : ''}`],
      ['Override', d.overridden_to && html`<${Override} d=${d}/>`],
      ['Answer', known(d.answer_chars, (n) => `${num(n)} characters`)],
      ['Latency', known(d.latency_ms, duration)],
      ['Error', error],
      ['Followed up', d.followed ? 'yes, in time' : null],
      ['Gate', d.gate && html`<${Gate} d=${d}/>`],
    ]}/>
    ${isOpen && html`<p
      class="hint">Open until the time for a follow-up is over, or until someone gives feedback.</p>`}
  <//>`;
}

function About({ d }) {
  const source = Object.entries(d.source || {}), envelope = envelopeOf(d.text);
  return html`<${Card} title="Message">
    ${envelope ? html`<${Envelope} envelope=${envelope} from=${d.requester}/>`
      : html`<p class="message-text"><${Text} text=${d.text} max=${1200}/></p>`}
    ${mayBeCut(d) && html`<p class="hint">A decision stores the first 1024 bytes of its message${d.task_id
      ? html`. The <${Link} to=${`/tasks/${encodeURIComponent(d.task_id)}`}>task<//> has all of it` : ''}.</p>`}
    <${Facts} facts=${[
      ['From', html`<${Text} text=${d.requester} max=${64} line=${true}/>${d.by_agent ? ' (an agent)' : ''}
        ${d.org ? html` <span class="faint">of <${Text} text=${d.org} max=${64} line=${true}/></span>` : ''}`],
      ['Time', html`<${Time} ms=${d.at_ms}/> <span class="faint">(<${Age} ms=${d.at_ms}/>)</span>`],
      ['Task', d.task_id
        && html`<${Id} id=${d.task_id} to=${`/tasks/${d.task_id}`}/>${d.turn > 1 ? ` turn ${d.turn}` : ''}`],
      ['Conversation', d.conversation_id && html`<a class="id"
        href=${`#/decisions?conversation=${encodeURIComponent(d.conversation_id)}`}>
          <${Text} text=${d.conversation_id} max=${48} line=${true}/></a>`],
      ['Previous agent', d.stuck_to && html`<${Name} agent=${d.stuck_to}/>`],
      ['Named agent', d.executor && html`<${Name} agent=${d.executor}/>`],
      ['Source',
        source.length
          ? html`<${Text} text=${source.map(([k, v]) => `${k}: ${typeof v === 'string' ? v : JSON.stringify(v)}`)
            .join(', ')} max=${200}/>` : null],
    ]}/>
  <//>`;
}

function Intent({ intent }) {
  if (!intent) return null;
  return html`<span>${intent.good
    ? html`chose <${Name} agent=${intent.agent}/> with confidence ${num(intent.confidence, 2)}`
    : html`ignored: <${Text} text=${intent.why} max=${200}/>`}
    ${intent.reasoning && html`<br/><span class="faint"><${Text} text=${intent.reasoning} max=${300}/></span>`} <span
      class="faint">in ${duration(intent.took_ms)}</span></span>`;
}

const POLICIES = { default: 'the default agent gets the message', best: 'the nearest agent that you trust gets it',
  ask: 'it is refused, with a list of the nearest agents', refuse: 'it is refused',
  auto: 'the default agent gets the message; without one, the nearest agent that you trust' };

/** The limit for the best candidate: its own floor, or one number for all. */
function thresholdFacts(d) {
  const { rules: r } = d;
  if (!r.auto) return [['Threshold', num(r.threshold, 2)]];
  const floor = nearestOf(d)?.floor;
  return [['Threshold', 'auto: every agent has its own floor'],
    ['Floor', typeof floor === 'number' && html`${num(floor, 3)} <span class="faint">of <${Text}
      text=${nearestOf(d).agent} max=${64} line=${true}/></span>`],
    ['Computed for', r.n > 0 && `${count(r.n, 'agent')}, α = ${num(r.alpha, 2)}${r.small_talk ? ', small talk' : ''}`],
    ['If unsure', POLICIES[r.unsure] || r.unsure]];
}

/** Why that tier of a two-tier model decided. */
function tierWords(d) {
  if (d.tier === 'transformer') return ': the table was inconclusive';
  return d.tier_note ? `: ${d.tier_note}` : '';
}

function MadeFrom({ d }) {
  const { versions: v, rules: r, weights: w } = d;
  return html`<${Card} title="Basis">
    <${Facts} facts=${[
      ['Decided in', d.decide_us > 0 && microseconds(d.decide_us)],
      ...thresholdFacts(d),
      ['Weights', `semantic ${num(w.semantic, 2)}, performance ${num(w.performance, 2)}, keyword ${num(w.keyword,
        2)}, recency ${num(w.recency, 2)}`],
      ['Default agent', r.default_agent && html`<${Name} agent=${r.default_agent}/>`],
      ['Disabled layers', r.layers_off.length ? r.layers_off.join(', ') : null],
      ['Explored', d.explored ? 'yes: a close runner-up got it, to learn how it does' : null],
      ['Intent layer', d.intent && html`<${Intent} intent=${d.intent}/>`],
      ['Configuration', html`<code>${v.config}</code>`],
      ['Registry', v.registry === null ? null : `version ${num(v.registry)}`],
      ['Learning', v.learning === null ? null : `version ${num(v.learning)}`],
      ['Model', v.model && html`<span><${Text} text=${v.model} max=${64} line=${true}/> <code
        class="faint">${(v.model_hash || '').slice(0, 12)}</code></span>`],
      ['Tier', d.tier && `${d.tier}${tierWords(d)}`],
      ['Query type', d.type ? html`<${Link} to=${`/decisions?type=${d.type}`}>${d.type}<//> <span
        class="faint">(<${Link} to="/analytics?tab=types">all types<//>)</span>` : null],
    ]}/>
    <p class="hint">The record is enough to replay the decision exactly: <code>build/signalbox replay</code>.</p>
  <//>`;
}

export function Decision({ id }) {
  const { data: d, error, reload } = useGet(path`/api/decisions/${id}`);
  useRefresh(['decision.', 'task.'], reload, 1000, (entry) => (d?.task_id ? entry.task_id === d.task_id
    : entry.data?.decision_id === id || entry.data?.overrides === id));
  if (error) return html`<${Page} title="Decision"><${Problem} error=${error} onRetry=${reload}/>
    <p><${Link} to="/decisions">All decisions<//></p><//>`;
  if (!d) return html`<${Page} title="Decision"><${Loading}/><//>`;
  return html`<${Page} title="Decision" lead=${html`<${Link} to="/decisions">Decisions<//> · <code>${d.id}</code>`}>
    <div class="decision">
      <div class="stack-cards"><${About} d=${d}/>
        <${Card} title=${d.agent ? 'Who got it, and why' : 'Why no agent got it'}><${Verdict} decision=${d}/>
          <${Candidates} decision=${d} limit=${32}/><//>
        <${TryAgain} d=${d}/>
      </div>
      <div class="stack-cards"><${Outcome} d=${d}/><${Judge} d=${d} onSaid=${reload}/><${MadeFrom} d=${d}/></div>
    </div>
  <//>`;
}
