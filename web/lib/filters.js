// A list's filters are kept in the address, so that they survive a reload, a
// bookmark and Back. Also the fields to filter with.
import { Field, html, useEffect, useRef, useState } from './ui.js';
import { now } from './api.js';

const PAUSE_MS = 300;

/** The address with some filters changed, as the browser has it now: it may have changed since the last render. */
export function withFilters(to, more) {
  const now = new URLSearchParams(location.hash.split('?')[1] || '');
  const next = Object.entries({ ...Object.fromEntries(now), ...more }).filter(([, value]) => value);
  return `${to}${next.length ? `?${new URLSearchParams(next)}` : ''}`;
}

/**
 * set(more, goesOn) for a page's filters; set(null) clears them. With goesOn the
 * history entry is replaced, so that Back does not go letter by letter.
 */
export function filtersAt(to, go) {
  return (more, goesOn) => {
    const next = more === null ? to : withFilters(to, more);
    if (goesOn) location.replace(`#${next}`);
    else go(next);
  };
}

/**
 * A search field. It applies when typing pauses, on Enter, and on blur:
 * onSearch(text, goesOn), where goesOn is true while the same search continues.
 */
export function Search({ label, hint, value = '', onSearch, type = 'search', ...more }) {
  const [text, setText] = useState(value);
  const state = useRef({ sent: value, timer: 0, isOn: false });
  const s = state.current;
  const forget = () => {
    clearTimeout(s.timer);
    s.timer = 0;
  };
  useEffect(() => {
    if (value === s.sent) return; // our own change: leave what is being typed alone
    forget();
    s.sent = value;
    setText(value);
  }, [value]);
  useEffect(() => forget, []);
  const tell = (typed) => {
    forget();
    const next = typed.trim();
    if (next === s.sent) return;
    s.sent = next;
    onSearch(next, s.isOn);
    s.isOn = true;
  };
  const input = (e) => {
    const typed = e.target.value;
    setText(typed);
    clearTimeout(s.timer);
    s.timer = setTimeout(() => tell(typed), PAUSE_MS);
  };
  const leave = (e) => {
    if (s.timer) tell(e.target.value);
    s.isOn = false;
  };
  return html`<${Field} label=${label} hint=${hint}><input type=${type} value=${text} spellcheck=${false}
    autocomplete="off" onInput=${input} onBlur=${leave}
    onKeyDown=${(e) => e.key === 'Enter' && tell(e.target.value)} ...${more}/><//>`;
}

/** A field for a complete name. It applies on Enter or on blur. */
export function Exact({ label, hint, value = '', onChoose, ...more }) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  return html`<${Field} label=${label} hint=${hint}><input type="search" value=${text} spellcheck=${false}
    autocomplete="off"
    onInput=${(e) => setText(e.target.value)} onChange=${(e) => onChoose(e.target.value.trim())} ...${more}/><//>`;
}

/** A select with "any" as its first option; options are [id, word]. */
export function Choice({ label, name, filter, set, options }) {
  const choose = (e) => set({ [name]: e.target.value });
  return html`<${Field} label=${label}><select value=${filter[name] || ''} onChange=${choose}>
    <option value="">any</option>
    ${options.map(([id, word]) => html`<option key=${id} value=${id}>${word}</option>`)}</select><//>`;
}

// Times: a span before now, or the value of a datetime-local input.

const DAY_MS = 86400e3;
export const SPANS = [['1h', 'last hour', 3600e3], ['24h', 'last 24 hours', DAY_MS],
  ['7d', 'last 7 days', 7 * DAY_MS], ['30d', 'last 30 days', 30 * DAY_MS]];

export const timeOf = (text) => (text && !Number.isNaN(Date.parse(text)) ? Date.parse(text) : undefined);

/** In ms, as the API takes it. Relative to now: callers must memoize it, or every render would send a new request. */
export function sinceOf(value) {
  const span = SPANS.find(([id]) => id === value);
  return span ? Math.floor(now() - span[2]) : timeOf(value);
}
