// Forms: a dialog that is sent, and a line of input with its name.
import { Button, Dialog, Field, Problem, html, useState } from './ui.js';

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
      <div class="actions end"><${Button} onClick=${onClose}>Cancel<//>
        <${Button} kind=${kind} type="submit" disabled=${isBusy} aria-busy=${isBusy}>${action}<//></div>
    </form><//>`;
}

/** One line of input with its name. */
export function Line({ label, hint, value, onInput, ...more }) {
  return html`<${Field} label=${label} hint=${hint}><input value=${value} onInput=${(e) => onInput(e.target.value)}
    spellcheck=${false} autocomplete="off" ...${more}/><//>`;
}
