// Calls to the server, with the token. Errors carry the server's message. A call
// that fails for its token waits until the user has signed in again. Only our
// own origin is called.

const KEPT = 'signalbox.token';

/** The server's refusal, or status 0 when it could not be reached. */
export class ApiError extends Error {
  constructor(status, code, message, details = {}) {
    super(message);
    Object.assign(this, { name: 'ApiError', status, code, details });
  }
}

// The session. `state`: 'out' (not signed in), 'in', 'again' (the token is no
// longer valid, and calls wait for another one).
const session = { token: '', me: null, state: 'out', reason: '' };
const watchers = new Set();
let waiting = []; // calls that continue after signing in again
let skew = 0; // the server's clock minus ours

export const me = () => session.me;
export const can = (scope) => !!session.me?.scopes.includes(scope);
export const now = () => Date.now() + skew;
export const sessionState = () => ({ state: session.state, reason: session.reason });

export function onSession(watcher) {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

function become(state, reason = '') {
  Object.assign(session, { state, reason });
  for (const watcher of [...watchers]) watcher(session);
}

// Paths.

/** path`/api/agents/${name}`: a value is encoded, so that it stays one segment of the path. */
export function path(strings, ...values) {
  return strings.reduce((all, part, i) => all + encodePart(values[i - 1]) + part);
}

function encodePart(value) {
  const text = String(value);
  if (text === '' || text === '.' || text === '..')
    throw new ApiError(0, 'bad_request', `“${text}” is not a valid name`);
  return encodeURIComponent(text.toWellFormed ? text.toWellFormed() : text);
}

function address(where, params) {
  const url = new URL(where, location.origin);
  if (url.origin !== location.origin || !/^\/(api\/|healthz$)/.test(url.pathname))
    throw new ApiError(0, 'bad_request', 'calls go to this server only');
  for (const [key, value] of Object.entries(params || {}))
    if (value !== undefined && value !== null && value !== '') url.searchParams.set(key, value);
  return url;
}

// Calls.

function noteClock(reply) {
  const date = Date.parse(reply.headers.get('Date') || '');
  // The header has whole seconds: a smaller skew cannot be measured.
  if (date) skew = Math.abs(date - Date.now()) > 2000 ? date + 500 - Date.now() : 0;
}

async function refusal(reply) {
  let error = {};
  try {
    error = (await reply.json()).error || {};
  } catch { /* not from our server: perhaps the page of a proxy */ }
  return new ApiError(reply.status, error.code || 'http_error',
    error.message || `The server answered with status ${reply.status}.`, error.details);
}

const UNREACHABLE = 'The server cannot be reached. It may be restarting; accepted work is not lost.';

/** A fetch with the token. If the token is no longer valid, the call waits for a new one and is sent again. */
export async function ask(method, where, { params, body, headers, signal, accept = 'application/json' } = {}) {
  const url = address(where, params);
  for (;;) {
    const used = session.token;
    let reply;
    try {
      reply = await fetch(url, {
        method, signal, cache: 'no-store', credentials: 'omit', redirect: 'error', referrerPolicy: 'no-referrer',
        headers: { Accept: accept, ...(used && { Authorization: `Bearer ${used}` }), ...headers },
        body: body === undefined ? undefined : jsonOf(body),
      });
    } catch (e) {
      if (signal?.aborted) throw e;
      throw new ApiError(0, 'unreachable', UNREACHABLE);
    }
    noteClock(reply);
    if (reply.status !== 401) {
      if (reply.ok) return reply;
      throw await refusal(reply);
    }
    if (used === session.token) lose(used, (await refusal(reply)).message);
    await signedInAgain(signal);
  }
}

function lose(token, reason) {
  if (session.state === 'in') become('again', reason);
  else if (session.state === 'out') throw new ApiError(401, 'unauthenticated', reason);
}

function signedInAgain(signal) {
  if (session.state === 'in') return Promise.resolve();
  return new Promise((resolve, reject) => {
    waiting.push({ resolve, reject });
    signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

async function json(method, where, options) {
  const reply = await ask(method, where, options);
  return reply.status === 204 ? null : exact(await reply.text());
}

// Amounts may be larger than a JavaScript number can hold exactly. Large ones
// are read as strings and sent as BigInt. A quote within a JSON string is
// escaped, so the pattern never matches text that a user wrote.
const LARGE = /("\w+_micros":\s*)(-?\d{16,})/g;
export const exact = (text) => JSON.parse(text.replace(LARGE, '$1"$2"'));
function jsonOf(body) {
  const parts = Object.entries(body);
  if (!parts.some(([, value]) => typeof value === 'bigint')) return JSON.stringify(body);
  return `{${parts.map(([key, value]) => `${JSON.stringify(key)}:${typeof value === 'bigint' ? value
    : JSON.stringify(value)}`).join()}}`;
}

export const get = (where, params, options) => json('GET', where, { ...options, params });
export const post = (where, body, options) => json('POST', where, { ...options, body });
export const put = (where, body, options) => json('PUT', where, { ...options, body });
export const patch = (where, body, options) => json('PATCH', where, { ...options, body });
export const del = (where, options) => json('DELETE', where, options);

/** An idempotency key. */
export const newKey = () => `web-${crypto.randomUUID ? crypto.randomUUID() : randomHex()}`;
function randomHex() { // plain HTTP from another machine has no randomUUID
  return [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, '0')).join('');
}

// Signing in and out.

const asToken = (text) => {
  const token = text.trim();
  if (!/^[\x21-\x7e]{8,256}$/.test(token)) throw new ApiError(0, 'bad_request',
    'A token begins with sbx_ and has no spaces.');
  return token;
};

/** The user of a token, as /api/me has it, without signing in. Throws an ApiError. */
export async function whoIs(text) {
  const token = asToken(text);
  let reply;
  try {
    reply = await fetch('/api/me', { headers: { Authorization: `Bearer ${token}` }, cache: 'no-store',
      credentials: 'omit', redirect: 'error' });
  } catch {
    throw new ApiError(0, 'unreachable', UNREACHABLE);
  }
  noteClock(reply);
  if (reply.status === 401) throw new ApiError(401, 'unauthenticated',
    'This token is unknown to this server or no longer valid.');
  if (!reply.ok) throw await refusal(reply);
  return reply.json();
}

/**
 * `who`: the answer of whoIs, if there is one already. Throws an ApiError. If another user was signed in before, the
 * calls that wait are rejected.
 */
export async function signIn(token, { stay = true, who } = {}) {
  const text = asToken(token);
  const found = who ?? await whoIs(text);
  const isAnother = session.me && session.me.user !== found.user;
  keep(text, stay);
  Object.assign(session, { token: text, me: found });
  const before = waiting;
  waiting = [];
  become('in');
  for (const call of before)
    if (isAnother) call.reject(new ApiError(401, 'unauthenticated', 'another user signed in'));
    else call.resolve();
  return found;
}

// For this window, or for all windows. A token in localStorage is never removed
// here: that would sign the other windows out.
function keep(token, stay) {
  if (stay) sessionStorage.removeItem(KEPT);
  (stay ? localStorage : sessionStorage).setItem(KEPT, token);
}

// Drafts are in sessionStorage, and go with the user who wrote them.
function forget(token) {
  if (localStorage.getItem(KEPT) === token) localStorage.removeItem(KEPT);
  sessionStorage.clear();
}

export function signOut(reason = '') {
  forget(session.token || keptToken());
  Object.assign(session, { token: '', me: null });
  for (const call of waiting) call.reject(new ApiError(401, 'unauthenticated', 'signed out'));
  waiting = [];
  become('out', reason);
}

export const keptToken = () => sessionStorage.getItem(KEPT) || localStorage.getItem(KEPT) || '';

// Signing out in one tab signs out all tabs.
addEventListener('storage', (e) => {
  if (e.key === KEPT && !e.newValue && e.oldValue === session.token) signOut('Signed out in another tab.');
});
