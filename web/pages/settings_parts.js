// Parts that several tabs of the settings share.
import { Badge, Field, Time, html } from '../lib/ui.js';
import { now } from '../lib/api.js';

export const NAME = '[A-Za-z0-9][A-Za-z0-9._@\\-]{0,127}';

const SPANS = [['3600', '1 hour'], ['86400', '1 day'], ['604800', '7 days'], ['2592000', '30 days'],
  ['7776000', '90 days'], ['', 'never']];

/** A lifetime. The empty value means no expiry. */
export function Lasts({ value, onChange, label = 'Expires' }) {
  return html`<${Field} label=${label}><select value=${value} onChange=${(e) => onChange(e.target.value)}>
    ${SPANS.map(([s, words]) => html`<option key=${s} value=${s}>
      ${words === 'never' ? words : `in ${words}`}</option>`)}</select><//>`;
}

export function Expires({ ms }) {
  if (!ms) return html`<span class="faint">never</span>`;
  return ms <= now() ? html`<${Badge} tone="bad">expired<//>` : html`<${Time} ms=${ms}/>`;
}
