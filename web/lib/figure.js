// A figure in a box: its name, its value, its target, and a note.
import { Badge, html } from './ui.js';

/** hint: the tooltip; tone: 'is-bad' highlights a bad value. */
export function Figure({ name, value, more, tone = '', hint, children }) {
  return html`<div class="figure-box" title=${hint}><div class="value ${tone}" data-figure=${name}>${value}</div>
    <div class="name">${name}</div>
    ${children}${more && html`<div class="hint">${more}</div>`}</div>`;
}

/** A figure of the gate with its target. open: the badge while it is not known whether the target is met. */
export function Target({ name, figure, show, bound, more, open = 'unknown' }) {
  const isOpen = figure.is_met === null || figure.is_met === undefined;
  const tone = isOpen ? 'calm' : figure.is_met ? 'good' : 'bad';
  const word = isOpen ? open : figure.is_met ? '✓ met' : '✗ missed';
  return html`<${Figure} name=${name} value=${show(figure.value)} more=${more}>
    <div class="target"><${Badge} tone=${tone}>${word}<//> <span
      class="faint">target ${bound} ${show(figure.target)}</span></div><//>`;
}

/** Without holds there is no mean. */
export const meanHold = (hold) => (hold.holds && hold.is_met !== null ? hold : { ...hold, value: null, is_met: null });
