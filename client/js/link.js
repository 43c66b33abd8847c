// The connection, which reconnects whenever it breaks: after a pause that doubles,
// with jitter, and only as long as that is of use.
import { SignalboxError, isPassing, shortly } from './errors.js';

const TAKEN_OVER = 4001; // close code: another connection is this agent now

async function transport(o) {
  const isNode = Boolean(globalThis.process?.versions?.node);
  if (!o.WebSocket && isNode) return import('./socket_node.js');
  o.WebSocket ??= globalThis.WebSocket;
  return import('./socket_web.js');
}

function refusal(e, o) {
  let said;
  try {
    said = JSON.parse(e.body).error;
  } catch {
    // It is not our server's.
  }
  if (!e.status) {
    const words = `${o.url.origin} cannot be reached: ${shortly(e)}`;
    return new SignalboxError('unreachable', words);
  }
  const data = { ...said?.details, status: e.status };
  if (said?.code) return new SignalboxError(said.code, said.message, data);
  const code = e.status === 401 ? 'unauthenticated' : 'unreachable';
  return new SignalboxError(code, `${o.url.href} answered ${e.status}`, data);
}

// Trying again is of no use. Once it has worked, a proxy may say strange
// things while the server restarts.
function isForGood(e, isFirst) {
  const status = e.data?.status;
  if (!status) return e.code !== 'unreachable' && !isPassing(e);
  if (status === 401 || status === 403) return true;
  const isOurs = status >= 400 && status < 500;
  return isFirst && isOurs && ![408, 425, 429].includes(status);
}

export class Link {
  socket = null;
  isOver = false;
  #o;
  #on;
  #transport;
  #heartbeatMs;
  #watch = null;
  #pause = null; // {resolve, timer}

  /**
   * on.open(): say what has to be said first; rejects if it was refused.
   * on.message(text), on.lost(code), on.over(error or null).
   */
  constructor(o, on) {
    this.#o = o;
    this.#on = on;
    this.#heartbeatMs = o.heartbeatMs;
  }

  set heartbeatMs(ms) {
    this.#heartbeatMs = ms;
    this.#watchSilence();
  }

  async begin() {
    const until = Date.now() + this.#o.connectTimeoutMs;
    this.#transport = await transport(this.#o);
    for (let n = 0; ; n++) {
      try {
        await this.#join();
        break;
      } catch (e) {
        const ms = this.#pauseMs(n);
        if (isForGood(e, true) || Date.now() + ms > until) throw e;
        const s = (ms / 1000).toFixed(1);
        this.#o.log?.(`${e.message}; trying again in ${s} s`);
        await this.#sleep(ms);
      }
    }
    this.#live();
  }

  /** What the server's HTTP side has there, read as JSON. */
  async get(path, query = {}) {
    const url = new URL(this.#o.url);
    url.protocol = url.protocol === 'wss:' ? 'https:' : 'http:';
    url.pathname = url.pathname.replace(/\/hub$/, path);
    url.search = String(new URLSearchParams(query));
    const o = { ...this.#o, timeoutMs: this.#o.callTimeoutMs };
    try {
      const { status, body } = await this.#transport.get(url, o);
      if (status !== 200) throw Object.assign(new Error(), { status, body });
      return JSON.parse(body);
    } catch (e) {
      throw refusal(e, this.#o);
    }
  }

  /** For good: null when it was asked for. */
  end(error) {
    if (this.isOver) return;
    this.isOver = true;
    clearInterval(this.#watch);
    clearTimeout(this.#pause?.timer);
    this.#pause?.resolve();
    this.#on.over(error);
  }

  #pauseMs(n) {
    const { retryMs, retryMaxMs } = this.#o;
    const most = Math.min(retryMaxMs, retryMs * 2 ** Math.min(n, 20));
    return most / 2 + (Math.random() * most) / 2;
  }

  #sleep(ms) {
    return new Promise((resolve) => {
      this.#pause = { resolve, timer: setTimeout(resolve, ms) };
    });
  }

  async #join() {
    const o = { ...this.#o, timeoutMs: this.#o.callTimeoutMs };
    let socket;
    try {
      socket = await this.#transport.openSocket(this.#o.url, o);
    } catch (e) {
      throw refusal(e, this.#o);
    }
    if (this.isOver) return socket.destroy();
    this.socket = socket;
    socket.onMessage = (text) => {
      if (socket === this.socket) this.#on.message(text);
    };
    // Callers that wait for an answer on it are told that there will be none.
    socket.closed.then(({ code }) => this.#lost(socket, code));
    this.#watchSilence();
    try {
      await this.#on.open();
    } catch (e) {
      socket.destroy();
      this.#lost(socket);
      throw e;
    }
    return undefined;
  }

  #lost(socket, code) {
    if (this.socket !== socket) return;
    clearInterval(this.#watch);
    this.socket = null;
    this.#on.lost(code);
  }

  async #live() {
    for (let nFailed = 0; !this.isOver; nFailed++) {
      const sinceMs = Date.now();
      const why = await this.socket?.closed;
      if (this.isOver) return;
      if (why?.code === TAKEN_OVER) {
        const words =
          'another connection is this agent now: does it run twice?';
        return this.end(new SignalboxError('taken_over', words));
      }
      // One that lasted longer than the pause before it was a good one.
      if (Date.now() - sinceMs > this.#pauseMs(nFailed)) nFailed = 0;
      const error = await this.#comeBack(nFailed, why);
      if (error) return this.end(error);
    }
  }

  async #comeBack(n, why) {
    let words = why?.reason || `code ${why?.code}`;
    for (; !this.isOver; n++) {
      const ms = this.#pauseMs(n);
      const s = (ms / 1000).toFixed(1);
      this.#o.log?.(`lost the server (${words}); trying again in ${s} s`);
      await this.#sleep(ms);
      if (this.isOver) return null;
      try {
        await this.#join();
        return null;
      } catch (e) {
        if (isForGood(e, false)) return e;
        words = shortly(e);
      }
    }
    return null;
  }

  #watchSilence() {
    clearInterval(this.#watch);
    this.#watch = setInterval(() => {
      const ms = Date.now() - (this.socket?.heardAtMs ?? Date.now());
      if (ms > this.#heartbeatMs) this.socket.destroy();
      else if (ms > this.#heartbeatMs / 3) this.socket.ping();
    }, this.#heartbeatMs / 6);
  }
}
