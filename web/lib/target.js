// A figure of the gate beside what the rules say it should be.
import { Badge, html } from './ui.js';

/** open: what is said while nobody can tell whether it is met; such a figure may be none at all. */
export function Target({ name, figure, show, bound, more, open = 'not known' }) {
  const isOpen = figure.is_met === null || figure.is_met === undefined;
  const tone = isOpen ? 'calm' : figure.is_met ? 'good' : 'bad';
  const word = isOpen ? open : figure.is_met ? '✓ met' : '✗ missed';
  return html`<div class="figure-box"><div class="value">${show(figure.value)}</div><div class="name">${name}</div>
    <div class="target"><${Badge} tone=${tone}>${word}<//> <span class="faint">target ${bound} ${show(figure.target)}</span></div>${more && html`<div class="hint">${more}</div>`}</div>`;
}

/** Of nothing that was held there is no mean. */
export const meanHold = (hold) => (hold.is_met === null ? { ...hold, value: null } : hold);
