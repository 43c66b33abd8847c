// Shared by the pages of holds: the feed types that concern them, and how long a
// hold has waited and may still wait.
import { Bar, html } from '../lib/ui.js';
import { now } from '../lib/api.js';
import { age, duration } from '../lib/format.js';

// gate.routed is left out: most messages go at once, and do not concern holds.
export const GATE = ['gate.held', 'gate.paused', 'gate.escalated', 'gate.released', 'gate.expired', 'escalation.',
  'task.cancelled', 'task.expired'];
export const MET = [...GATE, 'gate.routed', 'task.completed', 'agent.'];
export const LOOK_MS = 30000; // in case the feed missed something

/** The time a hold has waited, as a share of its target. */
export function Waited({ hold }) {
  const ms = Math.max(0, now() - hold.since_ms);
  if (!hold.sla_ms) return html`<span>${duration(ms)}</span>`;
  const share = ms / hold.sla_ms;
  const tone = share >= 1 ? 'bad' : share >= 0.75 ? 'warn' : 'accent';
  const text = `${age(ms)} of ${age(hold.sla_ms)}${share >= 1 ? ', late' : ''}`;
  return html`<span class="waited"><${Bar} value=${ms} max=${hold.sla_ms} label="Waited" text=${text} tone=${tone}/>
    <span class="waited-words ${share >= 1 ? 'is-late' : ''}">${text}</span></span>`;
}

const ENDS = { expire: 'then it expires', escalate: 'then it is escalated', route: 'then it goes anyway' };
export const leftOf = (hold) => duration(Math.max(0, hold.held_until_ms - now()));
export const endOf = (hold) => ENDS[hold.on_expiry] || 'then it ends';
