// Choosing an agent by a part of its name: of ten thousand the server finds
// the few that fit. Names are shown through Text, so no list of the browser's
// own, which would show what hides in them as it likes.
import { Button, Field, Text, html, useEffect, useState } from './ui.js';
import { get } from './api.js';

const PAUSE_MS = 200;
const ASKED = 20;
const OFFERED = 6;

const isAmong = (name, names) => names.some((n) => n?.toLowerCase() === name.toLowerCase());

/** Those whose name has this text in it, less some: [{name, state}]; null until the first answer. */
function useAgents(text, except) {
  const [found, setFound] = useState(null);
  useEffect(() => {
    const stop = new AbortController();
    const timer = setTimeout(() => get('/api/agents', { q: text.trim(), brief: true, limit: ASKED },
      { signal: stop.signal })
      .then(({ items }) => setFound(items), () => {}), PAUSE_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [text]);
  return found && found.filter((a) => !isAmong(a.name, except));
}

/** One agent: typed, or one of those that fit. `sign(agent)`: what stands beside a name, else its state. */
export function AgentChoice({ value, onChange, except = [], sign, error, label = 'Another agent' }) {
  const found = useAgents(value, except);
  return html`<div class="stack-of agent-choice">
    <${Field} label=${label} error=${error} hint="a part of its name finds it">
      <input value=${value} onInput=${(e) => onChange(e.target.value)} spellcheck=${false} autocomplete="off"
        maxlength="128"/><//>
    <div class="choices" role="group" aria-label="Agents that could have it">
      ${(found || []).slice(0, OFFERED).map((a) => html`
      <button type="button" class="chip" key=${a.name} aria-pressed=${a.name === value}
        onClick=${() => onChange(a.name)}><${Text} text=${a.name} max=${40} line=${true}/> ${
        sign?.(a) || html`<span class="faint">${a.state}</span>`}</button>`)}
      ${found?.length === 0 && html`<span class="faint" role="status">no agent’s name has this in it</span>`}</div>
  </div>`;
}

/** The same with a button that does it: onChoose(name) may return a promise. */
export function OtherAgent({ onChoose, action = 'Correct', ...more }) {
  const [name, setName] = useState('');
  const choose = () => name.trim() && onChoose(name.trim());
  const key = (e) => {
    if (e.key !== 'Enter' || e.target.tagName !== 'INPUT') return;
    e.preventDefault();
    e.currentTarget.querySelector('.choose')?.click();
  };
  return html`<div class="another" onKeyDown=${key}>
    <${AgentChoice} value=${name} onChange=${setName} ...${more}/>
    <${Button} className="choose" onClick=${choose} disabled=${!name.trim()}>${action}<//></div>`;
}
