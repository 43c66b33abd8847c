// The form for a card: the common fields, and skills. Problems are shown at their
// field, in the server's words.
import { Button, Field, Typed, html } from '../lib/ui.js';
import { can } from '../lib/api.js';
import { micros, money } from '../lib/format.js';
import { problemAt, valueAt, withValue } from '../lib/card.js';

/** One value of the card. read and write turn it into text and back; write may throw. */
function Part({ form, at, label, hint, as = 'input', read = (v) => v ?? '', write = (t) => t || undefined, deep,
  ...more }) {
  const set = (text) => form.set(at, () => write(text));
  const input = { value: read(valueAt(form.card, at)), name: at, ...more };
  const error = form.errors[at] || problemAt(form.problems, at, deep);
  const control = as === 'select' || as === 'textarea-live' || as === 'input-live'
    ? html`<${as.replace('-live', '')} onInput=${(e) => set(e.target.value)} ...${input}/>`
    : html`<${Typed} as=${as} onCommit=${set} ...${input}/>`;
  return html`<${Field} label=${label} hint=${hint} error=${error}>${control}<//>`;
}

const lines = (text) => { const list = text.split('\n').map((t) => t.trim()).filter(Boolean);
  return list.length ? list : undefined; };
const words = (text) => { const list = text.split(',').map((t) => t.trim()).filter(Boolean);
  return list.length ? list : undefined; };

const list = { read: (v) => (v || []).join(', '), write: words, deep: true };
const texts = { read: (v) => (v || []).join('\n'), write: lines, deep: true, as: 'textarea', rows: 3 };

const price = {
  read: (v) => (v ? money(v.amount_micros).replaceAll(',', '') : ''), deep: true, inputmode: 'decimal',
  write: (text) => {
    if (!text.trim()) return undefined;
    const amount = micros(text);
    if (amount === null) throw new Error('Enter an amount, such as 0.0015.');
    return { amount_micros: Number(amount) };
  },
};

const whole = {
  inputmode: 'numeric', read: (v) => v ?? '',
  write: (text) => {
    if (!text.trim()) return undefined;
    if (!/^-?\d{1,9}$/.test(text.trim())) throw new Error('Enter a whole number.');
    return Number(text);
  },
};

const IN_FORM = /^\/(name|title|visibility|description|url|version|pricing|routing\/(keywords|system_prompt)|limits\/(in_flight|queue)|wake|skills$|skills\/\d+\/(name|id|description|examples|tags|pricing))(\/|$)/;

/** Whether the form shows problems at this pointer at a field. */
export const isInForm = (pointer) => IN_FORM.test(pointer);

const VISIBILITIES = [['private', 'private: its creator'], ['shared', 'shared: its org, and those with a grant'],
  ['public', 'public: everyone who may call this server']];

export function CardForm({ form, isNew }) {
  return html`<div class="form-grid">
    ${isNew && html`<${Part} form=${form} at="/name" label="Name" as="input-live" required autocomplete="off"
      maxlength="128" spellcheck=${false} hint="Letters, digits, . _ and -. It cannot be changed later."/>`}
    <${Part} form=${form} at="/title" label="Title" maxlength="128" hint="One line, for people."/>
    <${Part} form=${form} at="/visibility" label="Visibility" as="select"
      children=${VISIBILITIES.map(([id, text]) => html`<option key=${id} value=${id}>${text}</option>`)}/>
    <div class="whole"><${Part} form=${form} at="/description" label="Description" as="textarea-live" rows="3" required
      hint="What it can do, in plain words. Messages are compared with this and with the skills."/></div>
    <${Part} form=${form} at="/url" label="Address" spellcheck=${false}
      hint=${`Leave empty if it connects by itself. Otherwise https://…${
        can('admin') ? ', process:NAME or model:NAME' : ''}`}/>
    <${Part} form=${form} at="/version" label="Version" maxlength="64"/>
    <${Part} form=${form} at="/routing/keywords" label="Keywords"
      hint="Separated by commas. A message with one of them scores higher." ...${list}/>
    <${Part} form=${form} at="/pricing" label="Price per call" hint="In units. Empty: free." ...${price}/>
    <${Part} form=${form} at="/limits/in_flight" label="In-flight limit" ...${whole}/>
    <${Part} form=${form} at="/limits/queue" label="Queue limit" ...${whole}/>
    <${Part} form=${form} at="/wake" label="Wake address" spellcheck=${false}
      hint="Called when it has work but is not connected." deep=${true}
      read=${(v) => v?.url ?? ''} write=${(t) => (t.trim() ? { ...form.card.wake, url: t.trim() } : undefined)}/>
    <div class="whole"><${Part} form=${form} at="/routing/system_prompt" label="System prompt" as="textarea" rows="3"
      hint="For agents that are models. Only its creator and admins see it."/></div>
  </div>
  <${Skills} form=${form}/>`;
}

function Skills({ form }) {
  const skills = form.card.skills || [];
  const add = () => form.set('/skills', () => [...skills, { id: freshId(skills), name: '' }]);
  return html`<h3>Skills</h3>
    <p class="hint">What it can do, one skill each. Examples of real messages matter most: give each skill a few.</p>
    ${form.problems.filter((p) => p.pointer === '/skills').map((p) =>
      html`<p class="field-error" role="alert">${p.message}</p>`)}
    ${skills.map((s, i) => html`<${Skill} key=${i} form=${form} i=${i}/>`)}
    <p><${Button} onClick=${add}>Add a skill<//></p>`;
}

function freshId(skills) {
  const taken = new Set(skills.map((s) => String(s.id).toLowerCase()));
  let n = skills.length + 1;
  while (taken.has(`skill-${n}`)) n++;
  return `skill-${n}`;
}

function Skill({ form, i }) {
  const at = `/skills/${i}`;
  return html`<fieldset class="skill-form"><legend>Skill ${i + 1}</legend><div class="form-grid">
    <${Part} form=${form} at=${`${at}/name`} label="Name" as="input-live" required maxlength="128"/>
    <${Part} form=${form} at=${`${at}/id`} label="Id" required maxlength="128" spellcheck=${false}/>
    <div class="whole"><${Part} form=${form} at=${`${at}/description`} label="Description" as="textarea"
      rows="2"/></div>
    <div class="whole"><${Part} form=${form} at=${`${at}/examples`} label="Examples, one per line"
      ...${texts}/></div>
    <${Part} form=${form} at=${`${at}/tags`} label="Tags" hint="Separated by commas." ...${list}/>
    <${Part} form=${form} at=${`${at}/pricing`} label="Price per call" hint="In units. Empty: the price of the agent."
      ...${price}/>
  </div><${Button} className="small" onClick=${() => form.set(at, () => undefined)}>Remove this skill<//></fieldset>`;
}

/** The form's model: the draft, its errors, and set(). */
export function formOf(draft, change) {
  return {
    ...draft,
    set: (at, make) => change((d) => {
      // Errors below it, and of later items of its list, are obsolete.
      const list = at.replace(/\/\d+$/, '');
      const errors = Object.fromEntries(Object.entries(d.errors)
        .filter(([e]) => e !== at && !e.startsWith(`${at}/`) && !(list !== at && e.startsWith(`${list}/`))));
      try {
        const card = withValue(d.card, at, make());
        return { ...d, errors, card, problems: d.problems.filter((p) => p.pointer !== at
          && !p.pointer.startsWith(`${at}/`)) };
      } catch (e) {
        return { ...d, errors: { ...errors, [at]: e.message } };
      }
    }),
  };
}
