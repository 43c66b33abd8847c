// How the gate is doing: its figures, each beside what the rules say it should be.
import { Badge, Bar, Card, Facts, Link, Loading, Problem, Text, Time, html, useGet } from '../lib/ui.js';
import { useRefresh } from '../lib/live.js';
import { count, duration, num } from '../lib/format.js';

/** isQuiet: what falls short of it is nobody's fault: no more was sent. */
function Target({ name, figure, show, bound, more, isQuiet }) {
  const isKnown = figure.is_met !== null && figure.is_met !== undefined;
  const isMissed = isKnown && !figure.is_met && !isQuiet;
  const tone = !isKnown || (!figure.is_met && isQuiet) ? 'calm' : isMissed ? 'bad' : 'good';
  const word = !isKnown ? 'not known' : figure.is_met ? '✓ met' : isMissed ? '✗ missed' : 'fewer were sent';
  return html`<div class="figure-box"><div class="value">${show(figure.value)}</div><div class="name">${name}</div>
    <div class="target"><${Badge} tone=${tone}>${word}<//> <span class="faint">target ${bound} ${show(figure.target)}</span></div>${more && html`<div class="hint">${more}</div>`}</div>`;
}

// Twenty a day are not none an hour.
const rate = (n) => (n >= 10 || !n ? num(n) : num(n, n < 0.1 ? 2 : 1));

// Without a single one there is no mean, and no target to meet.
const holdOf = (hold) => (hold.holds ? hold : { ...hold, value: null, is_met: null });
const heldSoFar = (hold, now) => `${count(hold.holds, 'hold')} ended in 24 hours${hold.holds ? `, the longest ${duration(hold.longest)}` : ''}${now.held ? `; ${num(now.held)} wait now` : ''}`;

const KINDS = [['immediate', 'went at once', 'good'], ['hold', 'held', 'warn'], ['pause', 'paused', 'warn'], ['escalate', 'to a person', 'bad'], ['drop', 'dropped', 'calm']];

function ByKind({ kinds }) {
  const all = KINDS.reduce((sum, [id]) => sum + (kinds[id] || 0), 0);
  return html`<table class="small-table"><caption class="off-screen">Decisions of the gate in 24 hours, by kind</caption><tbody>${KINDS.map(([id, name, tone]) => html`<tr key=${id}><th scope="row">${name}</th>
    <td class="wide-cell"><${Bar} value=${kinds[id]} max=${all || 1} label=${name} text=${num(kinds[id])} tone=${tone}/></td><td class="right">${num(kinds[id])}</td></tr>`)}</tbody></table>`;
}

export function GateFigures() {
  const { data, error, reload } = useGet('/api/gate');
  useRefresh(['gate.', 'escalation.'], reload);
  if (error) return html`<${Problem} error=${error} onRetry=${reload}/>`;
  if (!data) return html`<${Loading}/>`;
  const f = data.figures, r = data.rules;
  return html`<div class="figures">
      <${Target} name="messages routed in the last hour" figure=${f.routed_per_hour} show=${(v) => num(v)} bound="at least" isQuiet=${true} more=${`${rate(f.routed_per_hour.average_24h)} an hour over a day`}/>
      <${Target} name="mean hold, priority NORMAL" figure=${holdOf(f.hold_ms)} show=${duration} bound="under" more=${heldSoFar(f.hold_ms, data.now)}/>
      <${Target} name="escalations in 24 hours" figure=${f.escalations_per_day} show=${(v) => num(v)} bound="under"/>
      <${Target} name="messages lost" figure=${f.lost} show=${(v) => num(v)} bound="" more=${f.lost.audited_ms ? html`audited <${Time} ms=${f.lost.audited_ms}/>` : 'no audit has ended yet'}/>
    </div>
    <div class="grid"><${Card} title="What the gate decided in 24 hours"><${ByKind} kinds=${f.decisions_24h}/>
        <p class="hint">${num(f.released_24h)} released, ${num(f.expired_24h)} expired, ${num(f.late_24h)} answered late.</p><//>
      <${Card} title="Now"><${Facts} facts=${[
        ['Held', html`<${Link} to="/holds">${num(data.now.held)}<//>`], ['Wait for a person', html`<${Link} to="/holds">${num(data.now.escalations_open)}<//>`],
        ['Rules', r.state === 'none' ? 'none: everything goes at once' : `${num(r.count)}, ${r.state}`], ['File', r.file && html`<${Text} text=${r.file} max=${200}/>`],
        ['Problem', r.problem && html`<${Text} text=${typeof r.problem === 'string' ? r.problem : JSON.stringify(r.problem)}/>`],
      ]}/><//></div>`;
}
