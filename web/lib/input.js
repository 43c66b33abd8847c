// Questions that an agent asks while it works. The first answer counts. The
// agent's words are shown as text only, also on buttons.
import { Button, Field, Name, Text, Time, html, useId, useState } from './ui.js';
import { can, path, post } from './api.js';
import { cut } from './format.js';

const OPTION_MOST = 600; // fits on a phone's screen

const ENDED = {
  unheard: 'cancelled, because no client that can answer was connected.',
  expired: 'the agent stopped waiting.',
  withdrawn: 'withdrawn, because the work it belonged to is over.',
  missed: 'it ended while this page was disconnected.',
};

function Ended({ input }) {
  return html`<p class="asked-over faint" role="status"><${Name} agent=${input.agent}/> asked <${Text}
    text=${`“${input.title || 'something'}”`} max=${200}/>: ${
    input.by ? html`<${Text} text=${input.by} max=${128} line=${true}/> ${input.outcome === 'answered' ? 'answered.'
      : 'cancelled it.'}` : ENDED[input.outcome]}</p>`;
}

function Choices({ input, say }) {
  if (input.kind === 'confirm')
    return html`<div class="actions"><${Button} kind="main" onClick=${() => say({ confirmed: true })}>Yes<//>
      <${Button} onClick=${() => say({ confirmed: false })}>No<//><${Nothing} say=${say}/></div>`;
  return html`<div class="actions"><div class="asked-options">${input.options.map((o, i) => html`<${Option} key=${i}
    text=${o} choose=${() => say({ value: o })}/>`)}</div><${Nothing} say=${say}/></div>`;
}

// A folded option cannot be chosen: users must see all of what they agree to.
function Option({ text, choose }) {
  const [isWhole, setWhole] = useState(text.length <= OPTION_MOST);
  const id = useId();
  const button = html`<${Button} id=${id} className="option" onClick=${choose} disabled=${!isWhole}><${Text}
    text=${isWhole ? text : `${cut(text, OPTION_MOST)}…`} max=${Infinity}/><//>`;
  return text.length <= OPTION_MOST ? button : html`<div class="asked-folded">${button}
    <button type="button" class="link" aria-expanded=${isWhole} aria-controls=${id}
      onClick=${() => setWhole(!isWhole)}>${isWhole ? 'show less'
        : `show all ${text.length.toLocaleString('en')} characters to choose it`}</button></div>`;
}

function Words({ input, say, error }) {
  const [value, setValue] = useState(input.prefill || '');
  const more = { value, onInput: (e) => setValue(e.target.value), placeholder: input.placeholder };
  return html`<form class="asked-words" onSubmit=${(e) => { e.preventDefault(); say({ value }); }}>
    <${Field} label="Your answer" error=${error}>${input.kind === 'editor'
      ? html`<textarea rows="6" ...${more}></textarea>` : html`<input autocomplete="off" ...${more}/>`}<//>
    <div class="actions"><${Button} kind="main" type="submit">Answer<//><${Nothing} say=${say}/></div></form>`;
}

const Nothing = ({ say }) => html`<${Button} className="small"
  onClick=${() => say({ cancelled: true })}>Don’t answer<//>`;

/** One question with the controls to answer it, or its outcome. */
function Asked({ input }) {
  const [error, setError] = useState('');
  const say = async (said) => {
    setError('');
    try {
      await post(path`/api/tasks/${input.task_id}/input`, { input_id: input.input_id, ...said });
    } catch (e) {
      setError(e.message); // also when another user was first, with their name
    }
  };
  if (input.outcome) return html`<${Ended} input=${input}/>`;
  const isWords = input.kind === 'text' || input.kind === 'editor';
  return html`<section class="asked" aria-label="Question from the agent">
    <p class="asked-head"><${Name} agent=${input.agent}/> asks</p>
    <p class="asked-title"><${Text} text=${input.title || 'Continue?'} max=${1000}/></p>
    ${input.message && html`<p><${Text} text=${input.message}/></p>`}
    ${!can('send') ? html`<p class="faint">This token can read but not answer.</p>`
      : isWords ? html`<${Words} input=${input} say=${say} error=${error}/>`
      : html`<${Choices} input=${input} say=${say}/>`}
    ${error && !isWords && html`<p class="field-error" role="alert"><${Text} text=${error}/></p>`}
    <p class="faint">The agent waits until <${Time} ms=${input.until_ms
      }/>, as long as a client that can answer is connected. The task’s deadline keeps running.</p>
  </section>`;
}

export const Inputs = ({ list }) => (list.length ? html`<div class="asked-all"
  aria-live="polite">${list.map((i) => html`<${Asked} key=${i.input_id} input=${i}/>`)}</div>` : null);
