// A figure in a box: what it is, what it should be, and a word more.
import { Badge, html } from './ui.js';

/** The same words for every target: `isMet` null where nobody can tell, for which `open` has a word. */
function Target({ isMet, words, open = 'not known' }) {
  const isOpen = isMet === null || isMet === undefined;
  return html`<div class="target"><${Badge} tone=${isOpen ? 'calm' : isMet ? 'good' : 'bad'}>${isOpen ? open : isMet ? '✓ met' : '✗ missed'}<//>
    <span class="faint">${words}</span></div>`;
}

/** target: {isMet, words: 'target under 30 min', open}; tone: 'is-bad' for a figure to be looked at. */
export function Figure({ name, value, more, target, tone = '', hint }) {
  return html`<div class="figure-box" title=${hint}><div class="value ${tone}" data-figure=${name}>${value}</div><div class="name">${name}</div>
    ${target && html`<${Target} ...${target}/>`}${more && html`<div class="hint">${more}</div>`}</div>`;
}
