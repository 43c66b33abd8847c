// What narrows a list stands in the address, so that a reload, a bookmark and
// Back find it again; and the one field to search with.
import { Field, html, useEffect, useRef, useState } from './ui.js';
import { now } from './api.js';

const PAUSE_MS = 300;

/** The address with some of its filters changed, as it is now: another may have changed since the last drawing. */
export function withFilters(to, more) {
  const now = new URLSearchParams(location.hash.split('?')[1] || '');
  const next = Object.entries({ ...Object.fromEntries(now), ...more }).filter(([, value]) => value);
  return `${to}${next.length ? `?${new URLSearchParams(next)}` : ''}`;
}

/**
 * set(more, goesOn) for a page's filters; set(null) takes all away. What goes on
 * takes the place of what was there: Back does not go letter by letter.
 */
export function filtersAt(to, go) {
  return (more, goesOn) => {
    const next = more === null ? to : withFilters(to, more);
    if (goesOn) location.replace(`#${next}`);
    else go(next);
  };
}

/**
 * What is typed counts once the typing pauses, with Enter, and when it is left:
 * onSearch(text, goesOn), where goesOn says that it is the same search, longer.
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
    if (value === s.sent) return; // ours: what is being typed is not disturbed
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

/** A whole name, of which a part means nothing: it counts with Enter, or when it is left. */
export function Exact({ label, hint, value = '', onChoose, ...more }) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  return html`<${Field} label=${label} hint=${hint}><input type="search" value=${text} spellcheck=${false}
    autocomplete="off"
    onInput=${(e) => setText(e.target.value)} onChange=${(e) => onChoose(e.target.value.trim())} ...${more}/><//>`;
}

/** One of a few, or any: options are [id, word]. */
export function Choice({ label, name, filter, set, options }) {
  const choose = (e) => set({ [name]: e.target.value });
  return html`<${Field} label=${label}><select value=${filter[name] || ''} onChange=${choose}>
    <option value="">any</option>
    ${options.map(([id, word]) => html`<option key=${id} value=${id}>${word}</option>`)}</select><//>`;
}

// Times: a span before now, or a moment as a field for it has it.

const DAY_MS = 86400e3;
export const SPANS = [['1h', 'last hour', 3600e3], ['24h', 'last 24 hours', DAY_MS],
  ['7d', 'last 7 days', 7 * DAY_MS], ['30d', 'last 30 days', 30 * DAY_MS]];

export const timeOf = (text) => (text && !Number.isNaN(Date.parse(text)) ? Date.parse(text) : undefined);

/** As the server has it. Counted from now: kept by who asks, else every drawing would ask anew. */
export function sinceOf(value) {
  const span = SPANS.find(([id]) => id === value);
  return span ? Math.floor(now() - span[2]) : timeOf(value);
}
