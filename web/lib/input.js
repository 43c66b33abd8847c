// What an agent asks while it works, and the answer of whoever is first. The
// words are an agent's: buttons have them as text, and nothing else.
import { Button, Field, Name, Text, Time, html, useId, useState } from './ui.js';
import { can, path, post } from './api.js';
import { cut } from './format.js';

const OPTION_MOST = 600; // what a phone shows at once

const ENDED = {
  unheard: 'nobody was there for too long, so it was cancelled.',
  expired: 'the agent did not wait any longer.',
  withdrawn: 'it is not asked any more: what it belonged to is over.',
  missed: 'it was over before this page was back.',
};

function Ended({ input }) {
  return html`<p class="asked-over faint" role="status"><${Name} agent=${input.agent}/> asked <${Text}
    text=${`“${input.title || 'something'}”`} max=${200}/>: ${
    input.by ? html`<${Text} text=${input.by} max=${128} line=${true}/> ${input.outcome === 'answered' ? 'has answered.'
      : 'has cancelled it.'}` : ENDED[input.outcome]}</p>`;
}

function Choices({ input, say }) {
  if (input.kind === 'confirm')
    return html`<div class="actions"><${Button} kind="main" onClick=${() => say({ confirmed: true })}>Yes<//>
      <${Button} onClick=${() => say({ confirmed: false })}>No<//><${Nothing} say=${say}/></div>`;
  return html`<div class="actions"><div class="asked-options">${input.options.map((o, i) => html`<${Option} key=${i}
    text=${o} choose=${() => say({ value: o })}/>`)}</div><${Nothing} say=${say}/></div>`;
}

// Nobody agrees to words that were not shown: one that is folded cannot be chosen.
function Option({ text, choose }) {
  const [isWhole, setWhole] = useState(text.length <= OPTION_MOST);
  const id = useId();
  const button = html`<${Button} id=${id} className="option" onClick=${choose} disabled=${!isWhole}><${Text}
    text=${isWhole ? text : `${cut(text, OPTION_MOST)}…`} max=${Infinity}/><//>`;
  return text.length <= OPTION_MOST ? button : html`<div class="asked-folded">${button}
    <button type="button" class="link" aria-expanded=${isWhole} aria-controls=${id}
      onClick=${() => setWhole(!isWhole)}>${isWhole ? 'show less'
        : `show all ${text.length.toLocaleString('en')} characters, to choose it`}</button></div>`;
}

function Words({ input, say, error }) {
  const [value, setValue] = useState(input.prefill || '');
  const more = { value, onInput: (e) => setValue(e.target.value), placeholder: input.placeholder };
  return html`<form class="asked-words" onSubmit=${(e) => { e.preventDefault(); say({ value }); }}>
    <${Field} label="Your answer" error=${error}>${input.kind === 'editor'
      ? html`<textarea rows="6" ...${more}></textarea>` : html`<input autocomplete="off" ...${more}/>`}<//>
    <div class="actions"><${Button} kind="main" type="submit">Answer<//><${Nothing} say=${say}/></div></form>`;
}

const Nothing = ({ say }) => html`<${Button} className="small" onClick=${() => say({ cancelled: true })}>No answer<//>`;

/** One question with what it takes to answer it, or what became of it. */
function Asked({ input }) {
  const [error, setError] = useState('');
  const say = async (said) => {
    setError('');
    try {
      await post(path`/api/tasks/${input.task_id}/input`, { input_id: input.input_id, ...said });
    } catch (e) {
      setError(e.message); // also that somebody else was first, by name
    }
  };
  if (input.outcome) return html`<${Ended} input=${input}/>`;
  const isWords = input.kind === 'text' || input.kind === 'editor';
  return html`<section class="asked" aria-label="A question of the agent">
    <p class="asked-head"><${Name} agent=${input.agent}/> asks</p>
    <p class="asked-title"><${Text} text=${input.title || 'Go on?'} max=${1000}/></p>
    ${input.message && html`<p><${Text} text=${input.message}/></p>`}
    ${!can('send') ? html`<p class="faint">This token may read, and not answer.</p>`
      : isWords ? html`<${Words} input=${input} say=${say} error=${error}/>`
      : html`<${Choices} input=${input} say=${say}/>`}
    ${error && !isWords && html`<p class="field-error" role="alert"><${Text} text=${error}/></p>`}
    <p class="faint">It waits until <${Time} ms=${input.until_ms
      }/>, as long as somebody who may answer looks on; the time of the task goes on.</p>
  </section>`;
}

export const Inputs = ({ list }) => (list.length ? html`<div class="asked-all"
  aria-live="polite">${list.map((i) => html`<${Asked} key=${i.input_id} input=${i}/>`)}</div>` : null);
