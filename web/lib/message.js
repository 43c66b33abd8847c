// One message as it was sent: an envelope between agents, or a person's text.
import { Facts, Name, Text, Time, html } from './ui.js';

/** The envelope in a task's text; null if the text is a person's message. */
export function envelopeOf(text) {
  if (!text?.startsWith('{')) return null;
  try {
    const value = JSON.parse(text);
    return typeof value.to === 'string' && typeof value.type === 'string' ? value : null;
  } catch {
    return null;
  }
}

// A record cuts a long envelope off. Its first fields can still be read.
function field(text, name) {
  const found = new RegExp(`"${name}":("(?:[^"\\\\]|\\\\.)*")`).exec(text);
  try {
    return found && JSON.parse(found[1]);
  } catch {
    return null;
  }
}

/** One line for a list. For an envelope: its type, reference and context. */
export function brief(text) {
  if (!text?.startsWith('{')) return text;
  const { to, type, reference, context } = envelopeOf(text) || Object.fromEntries(['to', 'type', 'reference',
    'context'].map((name) => [name, field(text, name)]));
  return to && type ? [[type, reference].filter(Boolean).join(' / '), context].filter(Boolean).join(' · ') : text;
}

const when = (text) => Date.parse(text) || 0;

export function Envelope({ envelope, from }) {
  const { payload } = envelope;
  return html`<div class="stack-of">
    <${Facts} facts=${[
      ['From', html`<${Text} text=${envelope.from || from}/>`], ['To', html`<${Name} agent=${envelope.to}/>`],
        ['Type', html`<${Text} text=${envelope.type}/>`],
      ['Reference', envelope.reference && html`<${Text} text=${envelope.reference}/>`],
        ['Priority', String(envelope.priority || 'NORMAL').toLowerCase()],
      ['Sent', envelope.timestamp && html`<${Time} ms=${when(envelope.timestamp)}/>`],
        ['Message id', envelope.message_id && html`<${Text} text=${envelope.message_id}/>`],
      ['Context', envelope.context && html`<${Text} text=${envelope.context}/>`]]}/>
    ${payload && Object.keys(payload).length > 0 && html`<div><h3>Payload</h3><${Payload} payload=${payload}/></div>`}
  </div>`;
}

/** Plain values one by one; nested values as JSON. */
function Payload({ payload }) {
  const entries = Object.entries(payload);
  if (entries.length > 24) return html`<pre><${Text} text=${JSON.stringify(payload, null, 2)}/></pre>`;
  return html`<dl class="facts">${entries.map(([key, value]) =>
    html`<div key=${key}><dt><${Text} text=${key} max=${80}/></dt><dd>${
    value !== null && typeof value === 'object' ? html`<pre><${Text} text=${JSON.stringify(value, null, 2)}/></pre>`
      : html`<${Text} text=${typeof value === 'string' ? value : JSON.stringify(value)}/>`}</dd></div>`)}</dl>`;
}

export function Message({ text, from }) {
  const envelope = envelopeOf(text);
  return envelope ? html`<${Envelope} envelope=${envelope} from=${from}/>`
    : html`<p class="said-whole"><${Text} text=${text}/></p>`;
}
