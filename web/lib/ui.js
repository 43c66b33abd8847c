// The components of all pages. Text of agents and users is shown through Text or
// Name only: as text nodes, with hidden characters made visible.
import { cloneElement, createElement, render } from '../vendor/preact.js';
import { useCallback, useEffect, useId, useLayoutEffect, useMemo, useReducer, useRef,
  useState } from '../vendor/hooks.js';
import htm from '../vendor/htm.js';
import { ApiError, get, now } from './api.js';
import { age, cut, marked, visible, when } from './format.js';

export const html = htm.bind(createElement);
export { render, useCallback, useEffect, useId, useLayoutEffect, useMemo, useReducer, useRef, useState };

// Pages and their parts.

export function Page({ title, lead, actions, children }) {
  useEffect(() => { document.title = `${title} · Signalbox`; }, [title]);
  return html`<div class="page">
    <header class="page-head">
      <div><h1 tabindex="-1"><${Text} text=${title} max=${200}/></h1>${lead && html`<p class="lead">${lead}</p>`}</div>
      ${actions && html`<div class="actions">${actions}</div>`}
    </header>
    ${children}
  </div>`;
}

export function Card({ title, actions, className = '', children, ...more }) {
  const id = useId();
  return html`<section class="card ${className}" aria-labelledby=${title && id} ...${more}>
    ${title && html`<header class="card-head"><h2 id=${id}>${title}</h2>
      ${actions && html`<div class="actions">${actions}</div>`}</header>`}
    ${children}
  </section>`;
}

/** An empty state: what will appear, and commands to try. */
export function Empty({ title, command, children }) {
  return html`<div class="empty">
    <p class="empty-title">${title}</p>
    ${children && html`<div>${children}</div>`}
    ${[].concat(command || []).map((c) => html`<${Command} text=${c}/>`)}
  </div>`;
}

export function Problem({ error, onRetry }) {
  const text = error instanceof ApiError ? error.message : String(error?.message || error);
  const mayHelp = !(error instanceof ApiError) || error.status === 0 || error.status === 429 || error.status >= 500;
  return html`<div class="problem" role="alert">
    <p><${Text} text=${text}/></p>
    ${onRetry && mayHelp && html`<${Button} onClick=${onRetry}>Try again<//>`}
  </div>`;
}

export const Loading = ({ what = 'Loading' }) => html`<p class="loading" role="status">${what}…</p>`;

/** Pairs of name and value; pairs without a value are left out. */
export function Facts({ facts }) {
  const there = facts.filter(([, value]) => value !== undefined && value !== null && value !== '' && value !== false);
  return html`<dl class="facts">${there.map(([name, value]) =>
    html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

// Text.

const TEXT_MOST = 4000;

/** Text of a user or agent. `max`: characters before the rest is folded; `line`: on one line. */
export function Text({ text, max = TEXT_MOST, line }) {
  const [isWhole, setWhole] = useState(false);
  const all = text === null || text === undefined ? '' : String(text);
  const shown = isWhole ? all : cut(all, max);
  const parts = useMemo(() => visible(line ? shown.replace(/[\r\n\t]+/g, ' ') : shown), [shown, line]);
  return html`<bdi class="words ${line ? 'one-line' : ''}" dir="auto">${parts.map((p) => (typeof p === 'string' ? p
    : html`<span class="hidden-char" role="img" title=${`${p.name} (${p.code})`}
      aria-label=${p.name}>${p.code}</span>`))}${
    shown.length < all.length && (line ? '…' : html`… <button type="button" class="link"
      onClick=${() => setWhole(true)}>show all ${all.length.toLocaleString('en')} characters</button>`)}</bdi>`;
}

/** An agent's name, as a link. */
export function Name({ agent, plain }) {
  if (!agent) return html`<span class="faint">–</span>`;
  const words = html`<${Text} text=${agent} max=${128} line=${true}/>`;
  return plain ? words : html`<a class="name" href=${`#/agents/${encodeURIComponent(agent)}`}>${words}</a>`;
}

export function Link({ to, children, ...more }) {
  return html`<a href=${`#${to}`} ...${more}>${children}</a>`;
}

/** A shortened id, as a link. */
export function Id({ id, to }) {
  if (!id) return html`<span class="faint">–</span>`;
  const short = /^[a-z]+_[0-9a-z]{26}$/.test(id) ? `${id.slice(0, id.indexOf('_') + 1)}…${id.slice(-6)}` : id;
  return html`<a class="id" href=${`#${to}`} title=${marked(id)}><${Text} text=${short} max=${64} line=${true}/></a>`;
}

// Times, by the server's clock.

export function Time({ ms }) {
  if (!ms) return html`<span class="faint">–</span>`;
  return html`<time datetime=${new Date(ms).toISOString()} title=${new Date(ms).toISOString()}>
    ${when(ms, now())}</time>`;
}

const ticking = new Set();
setInterval(() => { for (const tick of ticking) tick(); }, 5000);

/** "3 min ago", updated as time passes. */
export function Age({ ms, suffix = ' ago' }) {
  const [, tick] = useReducer((n) => n + 1, 0);
  useEffect(() => {
    ticking.add(tick);
    return () => ticking.delete(tick);
  }, []);
  if (!ms) return html`<span class="faint">–</span>`;
  return html`<time datetime=${new Date(ms).toISOString()} title=${new Date(ms).toISOString()}>${age(now() - ms)}
    ${suffix}</time>`;
}

// Badges. Color is never the only sign: the word is always there.

const TONES = {
  ACTIVE: 'good', IDLE: 'calm', BUSY: 'busy', SLOW: 'warn', ERROR: 'bad', DEAD: 'bad', PAUSED: 'warn',
  completed: 'good', queued: 'calm', dispatched: 'busy', working: 'busy', held: 'warn', escalated: 'warn',
    input_required: 'warn',
  failed: 'bad', cancelled: 'calm', expired: 'bad', dropped: 'calm',
  positive: 'good', negative: 'bad', neutral: 'calm', open: 'calm', approved: 'good', rejected: 'bad',
    redirected: 'busy', resolved: 'good',
  ROUTE_IMMEDIATELY: 'good', HOLD_PENDING_INPUT: 'warn', HOLD_PENDING_CAPACITY: 'warn', PAUSE_ALL_SUBMISSIONS: 'warn',
    ESCALATE_TO_HUMAN: 'bad', DROP_SILENTLY: 'calm',
};

export function Badge({ tone = 'calm', children, ...more }) {
  return html`<span class="badge tone-${tone}" ...${more}>${children}</span>`;
}
export const Status = ({ status }) => (status ? html`<${Badge}
  tone=${TONES[status]}>${String(status).replace(/_/g, ' ').toLowerCase()}<//>` : html`<span class="faint">–</span>`);
export const State = ({ state }) => (state ? html`<${Badge} tone=${TONES[state]}>${state}<//>`
  : html`<span class="faint">–</span>`);

/** A share of a whole, with its value; `mark` draws a line. */
export function Bar({ value, max = 1, label, text, tone = 'accent', mark }) {
  const share = (x) => `${Math.max(0, Math.min(1, (x || 0) / (max || 1))) * 100}%`;
  return html`<span class="bar tone-${tone}" role="img" aria-label=${`${label}: ${text ?? value}`}
    title=${`${label}: ${text ?? value}`}>
    <span class="bar-fill" style=${{ width: share(value) }}></span>
    ${mark !== undefined && html`<span class="bar-mark" style=${{ left: share(mark) }}></span>`}
  </span>`;
}

// Controls.

/** Busy while the promise of onClick is pending. An error is shown as a toast. */
export function Button({ onClick, kind = 'plain', type = 'button', disabled, className = '', children, ...more }) {
  const [isBusy, setBusy] = useState(false);
  const isThere = useRef(true);
  useEffect(() => () => { isThere.current = false; }, []);
  const click = async (e) => {
    if (isBusy) return;
    const going = onClick?.(e);
    if (!going?.then) return;
    setBusy(true);
    try {
      await going;
    } catch (error) {
      toast(error.message, 'bad');
    }
    if (isThere.current) setBusy(false);
  };
  return html`<button type=${type} class="button ${kind} ${className}" onClick=${click} disabled=${disabled || isBusy}
    aria-busy=${isBusy} ...${more}>${children}</button>`;
}

export function Copy({ text, label = 'Copy' }) {
  const [isDone, setDone] = useState(false);
  const copy = async () => {
    await copyText(text);
    setDone(true);
    setTimeout(() => setDone(false), 2000);
  };
  return html`<${Button} className="small" onClick=${copy} aria-label=${`${isDone ? 'Copied'
    : label}: ${marked(cut(text, 60))}`}>${isDone ? 'Copied' : label}<//>`;
}

// Browsers have no clipboard API over plain HTTP from another machine.
async function copyText(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = Object.assign(document.createElement('textarea'), { value: text, className: 'off-screen' });
  document.body.append(area);
  area.select();
  const isDone = document.execCommand('copy');
  area.remove();
  if (!isDone) throw new Error('The browser does not allow this page to copy. Select the text and copy it yourself.');
  return undefined;
}

export function Command({ text }) {
  return html`<div class="command"><code>${text}</code><${Copy} text=${text}/></div>`;
}

/** A control with its label, hint and error. The control gets the id. */
export function Field({ label, hint, error, children }) {
  const id = useId();
  const about = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(' ');
  const control = cloneElement([].concat(children)[0], { id, 'aria-describedby': about || undefined,
    'aria-invalid': error ? 'true' : undefined });
  return html`<div class="field ${error ? 'has-error' : ''}"><label class="field-label" for=${id}>${label}</label>
    ${control}
    ${hint && html`<span class="hint" id=${`${id}-hint`}>${hint}</span>`}
    ${error && html`<span class="field-error" role="alert" id=${`${id}-error`}><${Text} text=${error}/></span>`}</div>`;
}

/** An input that commits on blur or Enter, so that renders in between do not disturb what is being typed. */
export function Typed({ value = '', onCommit, as = 'input', ...more }) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  return html`<${as} value=${text} onInput=${(e) => setText(e.target.value)} onChange=${(e) => onCommit(e.target.value)}
    ...${more}/>`;
}

/** Open for as long as it is rendered. Escape calls onClose and does not close it by itself. */
export function Dialog({ title, onClose, actions, wide, children }) {
  const box = useRef(null);
  const id = useId();
  useLayoutEffect(() => {
    const el = box.current;
    const before = document.activeElement;
    // Browsers close a dialog when Escape is pressed repeatedly, even if the
    // page prevents it.
    const reopen = () => el.isConnected && !el.open && el.showModal();
    el.showModal();
    el.addEventListener('close', reopen);
    return () => {
      el.removeEventListener('close', reopen);
      el.close(); // only then can an element behind it take the focus
      focusOn(before);
    };
  }, []);
  const escape = (e) => {
    if (e.key !== 'Escape' || e.defaultPrevented) return;
    e.preventDefault();
    onClose?.();
  };
  return html`<dialog ref=${box} class=${wide ? 'wide' : ''} aria-labelledby=${id} onKeyDown=${escape}
    onCancel=${(e) => { e.preventDefault(); onClose?.(); }}>
    <h2 id=${id}>${title}</h2>
    <div class="dialog-body">${children}</div>
    <footer class="actions">${actions}</footer>
  </dialog>`;
}

// If the element is gone, the page's heading gets the focus.
function focusOn(element) {
  if (element?.isConnected && element !== document.body) element.focus();
  else document.querySelector('main h1')?.focus();
}

/** Ask before an action that cannot be undone. Resolves to true if confirmed. */
export function confirm({ title, text, action, kind = 'danger' }) {
  return new Promise((resolve) => {
    const host = document.createElement('div');
    document.body.append(host);
    const end = (answer) => {
      render(null, host);
      host.remove();
      resolve(answer);
    };
    render(html`<${Dialog} title=${title} onClose=${() => end(false)} actions=${html`
      <${Button} onClick=${() => end(false)}>Go back<//><${Button} kind=${kind}
        onClick=${() => end(true)}>${action}<//>`}>
      <p><${Text} text=${text}/></p><//>`, host);
  });
}

// Toasts: results of actions, announced to screen readers.
const toasts = [];
let drawToasts = () => {};
export function toast(text, tone = 'good') {
  const one = { text, tone, id: Math.random() };
  toasts.push(one);
  if (toasts.length > 4) toasts.shift();
  drawToasts();
  setTimeout(() => dropToast(one), tone === 'bad' ? 12000 : 5000);
}
function dropToast(one) {
  const at = toasts.indexOf(one);
  if (at >= 0) toasts.splice(at, 1);
  drawToasts();
}
export function Toasts() {
  const [, draw] = useReducer((n) => n + 1, 0);
  drawToasts = draw;
  return html`<div class="toasts" role="status" aria-live="polite">${toasts.map((t) => html`
    <div key=${t.id} class="toast tone-${t.tone}"><${Text} text=${t.text} max=${600}/>
      <button type="button" class="link" aria-label="Close this message"
        onClick=${() => dropToast(t)}>✕</button></div>`)}</div>`;
}

export function Tabs({ tabs, current, onChange, label }) {
  const move = (e) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (!step) return;
    const at = tabs.findIndex((t) => t.id === current);
    const next = tabs[(at + step + tabs.length) % tabs.length];
    onChange(next.id);
    e.currentTarget.querySelector(`[data-tab="${next.id}"]`)?.focus();
  };
  const row = useRef(null);
  useEffect(() => { row.current.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest',
    inline: 'nearest' }); }, [current]);
  return html`<div class="tabs" ref=${row} role="tablist" aria-label=${label} onKeyDown=${move}>${tabs.map((t) => html`
    <button type="button" role="tab" key=${t.id} data-tab=${t.id} aria-selected=${t.id === current}
      tabindex=${t.id === current ? 0 : -1}
      onClick=${() => onChange(t.id)}>${t.label}${t.count !== undefined
        && html` <span class="tab-count">${t.count}</span>`}</button>`)}</div>`;
}

/** A module that is loaded when it is first wanted. */
export function useLater(isWanted, load) {
  const [module, setModule] = useState(null);
  useEffect(() => {
    if (isWanted && !module) load().then(setModule, () => {});
  }, [isWanted]);
  return module;
}

// A GET as state: {data, error, loading, reload}. The old data stays during a reload.

export function useGet(where, params) {
  const key = where && JSON.stringify([where, params]);
  const [found, setFound] = useState({ data: null, error: null, key: null });
  const [round, again] = useReducer((n) => n + 1, 0);
  useEffect(() => {
    if (!where) return undefined;
    const stop = new AbortController();
    get(where, params, { signal: stop.signal }).then(
      (data) => setFound({ data, error: null, key }),
      (error) => stop.signal.aborted || setFound((f) => ({ data: f.key === key ? f.data : null, error, key })));
    return () => stop.abort();
  }, [key, round]);
  const isCurrent = found.key === key;
  return { data: isCurrent ? found.data : null, error: isCurrent ? found.error : null, loading: !isCurrent,
    reload: again };
}

export const Logo = () => html`<svg class="logo" viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32"
  rx="7" class="logo-box"/><path d="M10 27V6" class="logo-mast"/><path d="M10 9l15-4v6l-15 4z" class="logo-arm"/>
  <circle cx="10" cy="21" r="3.4" class="logo-lamp"/></svg>`;
