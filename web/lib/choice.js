// Choosing an agent by part of its name. The server searches, since there may be
// ten thousand agents. Names are shown through Text and not in a native datalist,
// which would not reveal hidden characters.
import { Button, Field, Text, html, useEffect, useState } from './ui.js';
import { get } from './api.js';

const PAUSE_MS = 200;
const ASKED = 20;
const OFFERED = 6;

const isAmong = (name, names) => names.some((n) => n?.toLowerCase() === name.toLowerCase());

/** Agents whose name contains the text, except some: [{name, state}]; null until the first answer. */
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

/** An agent: typed, or one of the matches. `sign(agent)`: shown with a name instead of its state. */
export function AgentChoice({ value, onChange, except = [], sign, error, label = 'Another agent' }) {
  const found = useAgents(value, except);
  return html`<div class="stack-of agent-choice">
    <${Field} label=${label} error=${error} hint="Type part of its name.">
      <input value=${value} onInput=${(e) => onChange(e.target.value)} spellcheck=${false} autocomplete="off"
        maxlength="128"/><//>
    <div class="choices" role="group" aria-label="Matching agents">
      ${(found || []).slice(0, OFFERED).map((a) => html`
      <button type="button" class="chip" key=${a.name} aria-pressed=${a.name === value}
        onClick=${() => onChange(a.name)}><${Text} text=${a.name} max=${40} line=${true}/> ${
        sign?.(a) || html`<span class="faint">${a.state}</span>`}</button>`)}
      ${found?.length === 0 && html`<span class="faint" role="status">no agent name contains this</span>`}</div>
  </div>`;
}

/** The same with a button: onChoose(name) may return a promise. */
export function OtherAgent({ onChoose, action = 'Override', ...more }) {
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
