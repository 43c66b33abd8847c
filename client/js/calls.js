// What is asked of the server, each until it is answered: what was on its way
// when the connection broke is said again on the next.
import { SignalboxError, errorOf } from './errors.js';

/**
 * What the server can read. JSON.stringify writes half of a surrogate pair,
 * which is no character, as an escape; it becomes U+FFFD.
 */
export function toJson(what) {
  const text = JSON.stringify(what);
  if (!text.includes('\\ud')) return text;
  return text.replace(/\\(ud[89a-f][0-9a-f]{2}|.)/g, (all, one) =>
    one.length > 1 ? '\ufffd' : all,
  );
}

const WINDOW = 64; // under way at once; the others wait their turn
const TOO_BIG = 1009; // close code

export class Calls {
  #o;
  #link;
  #lastId = 0;
  #all = new Map(); // id -> call, in the order they were made
  #unsent = []; // of them
  #nSent = 0;
  #bytes = 0;

  constructor(o, link) {
    this.#o = o;
    this.#link = link;
    this.isReady = true;
  }

  /**
   * A promise of the answer. timeoutMs 0: however long it takes. isFirst: at
   * once, on this connection, and not on another. onAnswer hears of the answer
   * before anything that came behind it is looked at. patienceMs: a limit too,
   * but of the time on one connection alone. isOnce: not on another
   * connection, once it was said on one. id: its own, else one is made.
   */
  ask(method, params, how = {}) {
    const { timeoutMs = 0, patienceMs = 0, isFirst = false, onAnswer } = how;
    const id = how.id ?? String(++this.#lastId);
    const text = toJson({ jsonrpc: '2.0', id, method, params });
    const isTooMuch =
      this.#all.size >= this.#o.maxKept ||
      this.#bytes + text.length > this.#o.maxKeptBytes;
    return new Promise((resolve, reject) => {
      if (this.#link.isOver) return reject(closed());
      if (isTooMuch && !isFirst) return reject(tooMuch());
      const c = { id, text, isFirst, isSent: false, onAnswer, resolve, reject };
      c.patienceMs = patienceMs;
      c.isOnce = how.isOnce;
      if (timeoutMs)
        c.timer = setTimeout(() => this.#drop(id, late(timeoutMs)), timeoutMs);
      this.#all.set(id, c);
      this.#bytes += text.length;
      if (isFirst) this.#send(c);
      else this.#unsent.push(c);
      return this.flush();
    });
  }

  #send(c) {
    c.isSent = true;
    this.#nSent++;
    this.#link.socket?.send(c.text);
    if (c.patienceMs)
      c.patience = setTimeout(() => this.#onLate(c), c.patienceMs);
  }

  #onLate(c) {
    this.#drop(c.id, late(c.patienceMs));
    this.flush();
  }

  /** Sends what waits; nothing while isReady is false. */
  flush() {
    while (this.isReady && this.#link.socket && this.#nSent < WINDOW) {
      const c = this.#unsent.shift();
      if (!c) return;
      if (this.#all.has(c.id)) this.#send(c);
    }
  }

  /** The connection has gone. */
  lost(code) {
    if (code === TOO_BIG) this.#giveUpLargest();
    const words = 'the connection broke';
    for (const { id, isFirst, isOnce, isSent } of [...this.#all.values()])
      if (isFirst || (isOnce && isSent))
        this.#drop(id, new SignalboxError('disconnected', words));
    this.#unsent = [...this.#all.values()];
    for (const c of this.#unsent) {
      c.isSent = false;
      clearTimeout(c.patience);
    }
    this.#nSent = 0;
  }

  /** The server ended the connection because of it, and would again. */
  #giveUpLargest() {
    let most = null;
    for (const c of this.#all.values())
      if (c.isSent && c.text.length > (most?.text.length ?? 0)) most = c;
    if (!most) return;
    const words = `the server takes no message of ${most.text.length} bytes`;
    this.#drop(most.id, new SignalboxError('too_large', words));
  }

  answered({ id, result, error }) {
    const c = this.#take(String(id));
    if (error) c?.reject(errorOf(error));
    else {
      c?.onAnswer?.(result);
      c?.resolve(result);
    }
    this.flush();
  }

  /** Its answer is of no use any more, and it is not said again. */
  forget(id) {
    if (this.#take(id)) this.flush();
  }

  dropAll(error) {
    for (const id of [...this.#all.keys()]) this.#drop(id, error ?? closed());
  }

  #take(id) {
    const c = this.#all.get(id);
    if (!c) return null;
    this.#all.delete(id);
    this.#bytes -= c.text.length;
    clearTimeout(c.timer);
    clearTimeout(c.patience);
    if (c.isSent) this.#nSent--;
    return c;
  }

  #drop(id, error) {
    this.#take(id)?.reject(error);
  }
}

export function closed() {
  return new SignalboxError('closed', 'the connection was closed');
}

function tooMuch() {
  const words = 'too much waits for the server to answer';
  return new SignalboxError('overloaded', words);
}

function late(ms) {
  const words = `the server did not answer within ${ms} ms`;
  return new SignalboxError('timeout', words);
}
