// Forms: a dialog with a form, and a labeled input.
import { Button, Dialog, Field, Problem, html, useState } from './ui.js';

/**
 * A dialog with a form. `send` submits it and may throw: the error is shown
 * above the buttons, and the typed values stay.
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

/** A labeled input of one line. */
export function Line({ label, hint, value, onInput, ...more }) {
  return html`<${Field} label=${label} hint=${hint}><input value=${value} onInput=${(e) => onInput(e.target.value)}
    spellcheck=${false} autocomplete="off" ...${more}/><//>`;
}
