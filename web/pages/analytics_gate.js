// How the gate is doing: its figures, each beside what the rules say it should be.
import { Bar, Card, Facts, Link, Loading, Problem, Text, Time, html, useGet } from '../lib/ui.js';
import { useRefresh } from '../lib/live.js';
import { count, duration, num } from '../lib/format.js';
import { Target, meanHold } from '../lib/figure.js';

const heldWords = (hold, now) => `${count(hold.holds, 'hold')} ended in 24 hours${hold.holds
  ? `, the longest ${duration(hold.longest)}` : ''}${now.held ? `; ${count(now.held, 'waits', 'wait')} now` : ''}`;

const KINDS = [['immediate', 'delivered at once', 'good'], ['hold', 'held', 'warn'], ['pause', 'paused', 'warn'],
  ['escalate', 'escalated', 'bad'], ['drop', 'dropped', 'calm']];

function ByKind({ kinds }) {
  const all = KINDS.reduce((sum, [id]) => sum + (kinds[id] || 0), 0);
  return html`<table
    class="small-table"><caption class="off-screen">Decisions of the gate in 24 hours, by kind</caption>
      <tbody>${KINDS.map(([id, name, tone]) => html`<tr key=${id}><th scope="row">${name}</th>
    <td class="wide-cell"><${Bar} value=${kinds[id]} max=${all || 1} label=${name} text=${num(kinds[id])}
      tone=${tone}/></td><td class="right">${num(kinds[id])}</td></tr>`)}</tbody></table>`;
}

/** An hour in which little came misses nothing: there was no more to route. */
function routedWords({ is_met: isMet, came, average_24h: average }) {
  const day = `${num(average, average < 10 ? 1 : 0)} an hour over a day`;
  return isMet === null ? `no verdict: ${count(came, 'message')} came; ${day}` : day;
}

function Now({ gate: { now, rules } }) {
  return html`<${Card} title="Now"><${Facts} facts=${[
    ['Held', html`<${Link} to="/holds">${num(now.held)}<//>`],
      ['Open escalations', html`<${Link} to="/holds?tab=decide">${num(now.escalations_open)}<//>`],
    ['Rules', rules.state === 'none' ? 'none: everything goes at once' : `${num(rules.count)}, ${rules.state}`],
      ['File', rules.file && html`<${Text} text=${rules.file} max=${200}/>`],
    ['Problem', rules.problem && html`<${Text} text=${typeof rules.problem === 'string' ? rules.problem
      : JSON.stringify(rules.problem)}/>`],
  ]}/><//>`;
}

export function GateFigures() {
  const { data, error, reload } = useGet('/api/gate');
  useRefresh(['gate.', 'escalation.'], reload);
  if (error) return html`<${Problem} error=${error} onRetry=${reload}/>`;
  if (!data) return html`<${Loading}/>`;
  const f = data.figures;
  if (!f) return html`<div class="grid"><${Now} gate=${data}/></div>
    <p class="hint">What everybody’s messages did together, beside the targets, is for admins.</p>`;
  return html`<div class="figures">
      <${Target} name="messages routed in the last hour" figure=${f.routed_per_hour} show=${(v) => num(v)}
        bound="at least" open="a quiet hour" more=${routedWords(f.routed_per_hour)}/>
      <${Target} name="mean hold, priority NORMAL" figure=${meanHold(f.hold_ms)} show=${duration} bound="at most"
        open="none yet" more=${heldWords(f.hold_ms, data.now)}/>
      <${Target} name="escalations in 24 hours" figure=${f.escalations_per_day} show=${(v) => num(v)}
        bound="fewer than"/>
      <${Target} name="messages lost" figure=${f.lost} show=${(v) => num(v)} bound=""
        more=${f.lost.audited_ms ? html`audited <${Time} ms=${f.lost.audited_ms}/>` : 'no audit has finished yet'}/>
    </div>
    <div class="grid"><${Card} title="Decisions of the gate in 24 hours"><${ByKind} kinds=${f.decisions_24h}/>
        <p class="hint">
          ${num(f.released_24h)} released, ${num(f.expired_24h)} expired, ${num(f.late_24h)} answered late.</p><//>
      <${Now} gate=${data}/></div>`;
}
