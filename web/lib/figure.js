// A figure in a box: what it is, what it should be, and a word more.
import { Badge, html } from './ui.js';

/** hint: said on pointing at it; tone: 'is-bad' for one to be looked at. */
export function Figure({ name, value, more, tone = '', hint, children }) {
  return html`<div class="figure-box" title=${hint}><div class="value ${tone}" data-figure=${name}>${value}</div>
    <div class="name">${name}</div>
    ${children}${more && html`<div class="hint">${more}</div>`}</div>`;
}

/**
 * One beside its target, as the gate tells it. open: what is said while nobody can tell whether it is met; such a
 * figure may be none at all.
 */
export function Target({ name, figure, show, bound, more, open = 'not known' }) {
  const isOpen = figure.is_met === null || figure.is_met === undefined;
  const tone = isOpen ? 'calm' : figure.is_met ? 'good' : 'bad';
  const word = isOpen ? open : figure.is_met ? '✓ met' : '✗ missed';
  return html`<${Figure} name=${name} value=${show(figure.value)} more=${more}>
    <div class="target"><${Badge} tone=${tone}>${word}<//> <span
      class="faint">target ${bound} ${show(figure.target)}</span></div><//>`;
}

/** Of nothing that was held there is no mean. */
export const meanHold = (hold) => (hold.holds && hold.is_met !== null ? hold : { ...hold, value: null, is_met: null });
