// The shell: the session, the route, and the page for it. Pages are loaded when
// they are first opened.
import { useErrorBoundary } from './vendor/hooks.js';
import { Badge, Button, Command, Dialog, Empty, Loading, Logo, Page, Problem, Text, Toasts, html, render, toast,
  useEffect, useReducer, useRef, useState } from './lib/ui.js';
import { can, get, keptToken, me, onSession, sessionState, signIn, signOut, whoIs } from './lib/api.js';
import { feed, useFeed, useFeedState } from './lib/live.js';
import { marked } from './lib/format.js';


const PAGES = [
  { id: 'playground', title: 'Playground', key: 'p', load: () => import('./pages/playground.js') },
  { id: 'feed', needs: 'read', title: 'Feed', key: 'f', load: () => import('./pages/feed.js') },
  { id: 'agents', needs: 'read', title: 'Agents', key: 'a', load: () => import('./pages/agents.js') },
  { id: 'decisions', needs: 'read', title: 'Decisions', key: 'd', load: () => import('./pages/decisions.js') },
  { id: 'holds', needs: 'read', title: 'Holds', key: 'h', load: () => import('./pages/holds.js') },
  { id: 'delegations', needs: 'read', title: 'Delegations', key: 't', load: () => import('./pages/delegations.js') },
  { id: 'analytics', needs: 'read', title: 'Analytics', key: 'n', load: () => import('./pages/analytics.js') },
  { id: 'ledger', needs: 'read', title: 'Ledger', key: 'l', load: () => import('./pages/ledger.js') },
  { id: 'settings', title: 'Settings', key: 's', load: () => import('./pages/settings.js') },
  { id: 'tasks', needs: 'read', under: 'feed', load: () => import('./pages/task.js') },
  { id: 'escalations', needs: 'read', under: 'holds', load: () => import('./pages/escalation.js') },
];

// Routes: #/page/part/part?name=value

function readRoute() {
  const [where, search = ''] = location.hash.replace(/^#\/?/, '').split('?', 2);
  const parts = where.split('/').filter(Boolean).map(decodePart);
  if (parts.some((part) => part === '.' || part === '..')) return { page: 'nowhere', args: [], query: {} };
  return { page: parts[0] || 'playground', args: parts.slice(1),
    query: Object.fromEntries(new URLSearchParams(search)) };
}

function decodePart(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

const go = (to) => { location.hash = to.replace(/^#/, ''); };

/** The token of a sign-in link. It is removed from the address before anything else happens. */
function takeToken() {
  const m = /^#token=([^&]+)(?:&to=(\/.*))?$/.exec(location.hash);
  if (!m) return '';
  history.replaceState(null, '', `${location.pathname}#${m[2] || '/playground'}`);
  return decodePart(m[1]);
}

// Pages.

const loaded = new Map();

function usePage(entry) {
  const [, draw] = useReducer((n) => n + 1, 0);
  const found = entry && loaded.get(entry.id);
  const load = () => entry.load().then(
    (module) => loaded.set(entry.id, { Page: module.default }),
    (error) => loaded.set(entry.id, { error }),
  ).then(draw);
  useEffect(() => { if (entry && !found?.Page) load(); }, [entry?.id]);
  return { ...found, load };
}

function Current({ route }) {
  const entry = PAGES.find((p) => p.id === route.page);
  const found = usePage(entry);
  const [broken, mend] = useErrorBoundary((error) => console.error(error));
  const place = JSON.stringify([route.page, route.args]);
  const wasAt = useRef(place);
  useEffect(() => {
    if (wasAt.current === place) return;
    wasAt.current = place;
    mend();
    document.querySelector('main h1')?.focus({ preventScroll: true });
    scrollTo(0, 0);
  }, [place, found.Page]);
  if (entry?.needs && !can(entry.needs)) return html`<${NotAllowed} entry=${entry}/>`;
  if (!entry) return html`<${Page} title="Page not found">
    <p>No page has this address. Choose one from the menu.</p><//>`;
  if (broken) return html`<${Page} title="This page failed"><${Problem} error=${broken} onRetry=${mend}/><//>`;
  if (found.error) return html`<${Moved} load=${found.load}/>`;
  return found.Page ? html`<${found.Page} key=${route.page} ...${route} go=${go}/>` : html`<${Loading}/>`;
}

function NotAllowed({ entry }) {
  return html`<${Page} title=${entry.title || 'Not allowed'}><${Empty} title="This token cannot read">
    This page needs the scope <code>${entry.needs}</code>. Sign in with a token that has it. The creator of your token
      can create another one:
  <${Command} text=${`build/signalbox token create --scopes send,${entry.needs}`}/><//><//>`;
}

// A page that cannot be fetched: the server is down, or runs another version
// now. The page is fetched again once the server is back.
function Moved({ load }) {
  const state = useFeedState();
  useEffect(() => { if (state === 'open') load(); }, [state]);
  return html`<${Page} title="This page could not be loaded">
    <p>The server is unreachable, or it was updated after you opened this window. Nothing is lost: what you typed on
      other pages is still there.</p>
    <p><${Button} kind="main" onClick=${() => location.reload()}>Reload<//></p><//>`;
}

// The frame.

const CONNECTION = { connecting: ['calm', 'connecting'], open: ['good', 'live'], lost: ['warn', 'reconnecting'],
  refused: ['bad', 'not allowed'], over: ['calm', 'ended'] };

function Connection() {
  const state = useFeedState();
  const [tone, word] = CONNECTION[state];
  return html`<span role="status" title=${feed.error?.message || ''}><${Badge} tone=${tone}>${word}<//></span>`;
}

/** The number of holds and open escalations, updated through the feed. Not fetched at once on the playground. */
function useWaiting(page) {
  const [waiting, setWaiting] = useState(null);
  const timer = useRef(0);
  const look = () => {
    timer.current = 0;
    get('/api/gate').then((g) => setWaiting(g.now), () => {});
  };
  const soon = (ms) => { timer.current ||= setTimeout(look, ms); };
  useEffect(() => {
    clearTimeout(timer.current); // leaving the playground ends its delay of ten seconds
    timer.current = 0;
    soon(page === 'playground' ? 10000 : 200);
  }, [page]);
  useFeed((entry) => { if (/^(gate|escalation)\./.test(entry?.type || '')) soon(1000); });
  return waiting;
}

function themeNow() {
  return document.documentElement.dataset.theme || 'auto';
}

function setTheme(theme) {
  if (theme === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem('signalbox.theme', theme);
  } catch { /* then the theme is for this window only */ }
}

function ThemeSwitch() {
  const [theme, choose] = useState(themeNow());
  const next = { auto: 'light', light: 'dark', dark: 'auto' }[theme];
  return html`<${Button} className="small" onClick=${() => { setTheme(next); choose(next); }}
    aria-label=${`Color theme: ${theme}. Switch to ${next}.`}>${{ auto: '◐', light: '☀', dark: '☾' }[theme]}<//>`;
}

function Menu({ route, isOpen, close }) {
  const waiting = useWaiting(route.page);
  const at = PAGES.find((p) => p.id === route.page)?.under || route.page;
  const n = waiting ? waiting.held + waiting.escalations_open : 0;
  return html`<nav class="menu ${isOpen ? 'is-open' : ''}" id="menu" aria-label="Pages">
    <a class="brand" href="#/playground" onClick=${close}><${Logo}/>Signalbox</a>
    <ul>${PAGES.filter((p) => p.title).map((p) => html`<li key=${p.id}>
      <a href=${`#/${p.id}`} aria-current=${p.id === at ? 'page' : undefined} onClick=${close}>
      ${p.title}${p.id === 'holds' && n > 0 && html` <${Badge} tone=${waiting.escalations_open ? 'bad' : 'warn'}
        title=${`${waiting.held} held, ${waiting.escalations_open} to decide`}>${n}<//>`}
    </a></li>`)}</ul>
    <div class="menu-foot">
      <${Connection}/>
      <span class="who" title=${`role ${me()?.role}${me()?.org ? `, ${marked(me().org)}` : ''}`}>
        <${Text} text=${me()?.user} max=${40} line=${true}/></span>
      <span class="actions"><${ThemeSwitch}/><${Button} className="small"
        onClick=${() => signOut('Signed out.')}>Sign out<//></span>
    </div>
  </nav>`;
}

// Keys.

const isTyping = (el) => el?.closest?.('input, textarea, select, [contenteditable]');

function useKeys(showHelp) {
  useEffect(() => {
    let wasG = 0;
    const press = (e) => {
      if (e.ctrlKey || e.metaKey || e.altKey || isTyping(e.target) || document.querySelector('dialog[open]')) return;
      const isGoing = Date.now() - wasG < 1500;
      wasG = e.key === 'g' ? Date.now() : 0;
      const page = isGoing && PAGES.find((p) => p.key === e.key);
      const search = e.key === '/' && document.querySelector('main [data-search]');
      if (page) go(`/${page.id}`);
      else if (search) search.focus();
      else if (e.key === '?') showHelp();
      else return;
      e.preventDefault();
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, []);
}

function KeysHelp({ onClose }) {
  const keys = [['?', 'show this help'], ['/', 'search this page'], ['Esc', 'close'],
    ...PAGES.filter((p) => p.key).map((p) => [`g ${p.key}`, p.title])];
  return html`<${Dialog} title="Keyboard shortcuts" onClose=${onClose} actions=${html`<${Button} kind="main"
    onClick=${onClose}>Close<//>`}>
    <dl class="keys">
      ${keys.map(([k, what]) => html`<div key=${k}><dt><kbd>${k}</kbd></dt><dd>${what}</dd></div>`)}</dl><//>`;
}

function Waiting({ text }) {
  return html`<main class="front"><div class="card"><h1><${Logo}/>Signalbox</h1>
    <p role="status">${text}</p></div></main>`;
}

/** A component of lib/sign_in.js by its name, once that file is loaded. */
function SignIn({ part, ...rest }) {
  const [parts, setParts] = useState(null);
  useEffect(() => { import('./lib/sign_in.js').then(setParts); }, []);
  return parts ? html`<${parts[part]} ...${rest}/>` : null;
}

function App({ linkToken }) {
  const [route, setRoute] = useState(readRoute());
  const [session, setSession] = useState(sessionState());
  const [offered, offer] = useState(null);
  const [isMenuOpen, openMenu] = useState(false);
  const [isHelp, showHelp] = useState(false);
  const [isStarting, setStarting] = useState(true);
  const [word, say] = useState('Signing in…');
  useKeys(() => showHelp(true));
  useEffect(() => onSession(() => setSession(sessionState())), []);
  useEffect(() => {
    const move = () => {
      const token = takeToken();
      if (token) arrive(token, offer);
      setRoute(readRoute());
    };
    addEventListener('hashchange', move);
    const late = takeToken(); // the address may have changed since the first render
    setRoute(readRoute());
    start(late || linkToken, offer, say).finally(() => setStarting(false));
    return () => removeEventListener('hashchange', move);
  }, []);
  if (isStarting) return html`<${Waiting} text=${word}/>`;
  const refuse = () => offer(null);
  if (session.state === 'out' && offered)
    return html`<${SignIn} part="SignInByLink" offered=${offered} done=${refuse}/>`;
  if (session.state === 'out') return html`<${SignIn} part="SignInPage" reason=${session.reason}/>`;
  return html`<div class="shell" key=${me().user}>
    <a class="skip" href="#content" onClick=${(e) => { e.preventDefault();
      document.querySelector('main h1')?.focus(); }}>Skip to content</a>
    <header class="top"><${Button} className="small" aria-expanded=${isMenuOpen} aria-controls="menu"
      onClick=${() => openMenu(!isMenuOpen)}>☰ Menu<//><span class="brand"><${Logo}/>Signalbox</span>
        <${Connection}/></header>
    <${Menu} route=${route} isOpen=${isMenuOpen} close=${() => openMenu(false)}/>
    <main id="content"><${Current} route=${route}/></main>
    ${session.state === 'again' && html`<${SignIn} part="SignInAgain" reason=${session.reason}/>`}
    ${offered && html`<${SignIn} part="SwitchUser" offered=${offered} done=${refuse}/>`}
    ${isHelp && html`<${KeysHelp} onClose=${() => showHelp(false)}/>`}
    <${Toasts}/>
  </div>`;
}

// A kept session goes on. The token of a link is only offered.
async function start(linkToken, offer, say) {
  const kept = keptToken();
  const options = { stay: !sessionStorage.getItem('signalbox.token') };
  if (kept) await insist(() => signIn(kept, options), 'Your token is no longer valid. Sign in again.', say);
  if (linkToken && linkToken !== kept) await arrive(linkToken, offer, say);
}

async function arrive(token, offer, say = () => {}) {
  const who = await insist(() => whoIs(token), 'The token in this link is no longer valid.', say);
  if (who) offer({ token, who });
}

/** Ask again until the server answers, however long it is unreachable. */
async function insist(ask, refusal, say) {
  for (;;) {
    try {
      return await ask();
    } catch (e) {
      if (e.status === 401 || e.code === 'bad_request') return refuseToken(refusal);
      say(`${e.message} Trying again…`);
    }
    await new Promise((resolve) => { setTimeout(resolve, 2000); });
  }
}

/** A bad token in a link does not end the current session. */
function refuseToken(reason) {
  if (me()) toast(reason, 'bad');
  else signOut(reason);
  return null;
}

try {
  setTheme(localStorage.getItem('signalbox.theme') || 'auto');
} catch { /* no storage: the theme of the system */ }
const linkToken = takeToken();
render(html`<${App} linkToken=${linkToken}/>`, document.getElementById('app'));
