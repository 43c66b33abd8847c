// What several tabs of the settings share.
import { Badge, Button, Dialog, Field, Problem, Time, Typed, html, useState } from '../lib/ui.js';
import { now } from '../lib/api.js';

export const NAME = '[A-Za-z0-9][A-Za-z0-9._@\\-]{0,127}';

const SPANS = [['3600', '1 hour'], ['86400', '1 day'], ['604800', '7 days'], ['2592000', '30 days'], ['7776000', '90 days'], ['', 'never']];

/** How long something is to last; the empty one is for ever. */
export function Lasts({ value, onChange, label = 'Expires' }) {
  return html`<${Field} label=${label}><select value=${value} onChange=${(e) => onChange(e.target.value)}>
    ${SPANS.map(([s, words]) => html`<option key=${s} value=${s}>${words === 'never' ? words : `in ${words}`}</option>`)}</select><//>`;
}

export function Expires({ ms }) {
  if (!ms) return html`<span class="faint">never</span>`;
  return ms <= now() ? html`<${Badge} tone="bad">expired<//>` : html`<${Time} ms=${ms}/>`;
}

/**
 * A dialog that is sent as a form. `send` does it and may throw: what the
 * server refuses is said above the buttons, and what was typed stays.
 */
export function FormDialog({ title, action, send, onClose, kind = 'main', children }) {
  const [error, setError] = useState(null);
  const [isBusy, setBusy] = useState(false);
  const submit = async (e) => {
    e.preventDefault();
    if (isBusy) return;
    setBusy(true);
    setError(null);
    try {
      await send();
    } catch (x) {
      setError(x);
      setBusy(false);
    }
  };
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <form class="form" onSubmit=${submit}>
      ${children}
      ${error && html`<${Problem} error=${error}/>`}
      <div class="actions end"><${Button} onClick=${onClose}>Leave it<//>
        <${Button} kind=${kind} type="submit" disabled=${isBusy} aria-busy=${isBusy}>${action}<//></div>
    </form><//>`;
}

/** One line of input with its name. */
export function Line({ label, hint, value, onInput, ...more }) {
  return html`<${Field} label=${label} hint=${hint}><input value=${value} onInput=${(e) => onInput(e.target.value)} spellcheck=${false} autocomplete="off" ...${more}/><//>`;
}

/** What narrows a list: it counts once it was typed, with Enter or by leaving it. */
export function Narrow({ label, value, onChange, ...more }) {
  return html`<${Field} label=${label}><${Typed} type="search" data-search value=${value} onCommit=${(text) => onChange(text.trim())} spellcheck=${false} autocomplete="off" ...${more}/><//>`;
}

/** The address with some of its filters changed, as it is now: another may have changed since the last drawing. */
export function withFilters(to, more) {
  const now = new URLSearchParams(location.hash.split('?')[1] || '');
  const next = Object.entries({ ...Object.fromEntries(now), ...more }).filter(([, value]) => value);
  return `${to}${next.length ? `?${new URLSearchParams(next)}` : ''}`;
}
