// What an agent does: begins tasks, so many at once, and says what comes of
// them until the server has it. A task that comes a second time, while the
// first is being worked on or its result is on its way, is not begun again.
import { toJson } from './calls.js';
import { SignalboxError, isPassing, shortly } from './errors.js';
import { Task, work } from './task.js';

const WAITING_MAX = 1000; // tasks that wait for others to end
const REPEAT_MS = 1000; // before a result that was refused goes again
const UNANSWERED_MAX = 3; // times that a result is said without an answer

export class Agent {
  isClosing = false;
  #o;
  #link;
  #calls;
  #others;
  #tasks = new Map(); // key -> {key, task, socket}, not over
  #waiting = []; // of them, those not begun
  #nWorking = 0;
  #results = new Set(); // keys: not acknowledged
  #nResultChars = 0;
  #idle = []; // who waits for all work to be done

  constructor(o, link, calls, { card, handler, concurrency, others }) {
    this.#o = o;
    this.#link = link;
    this.#calls = calls;
    this.#others = others;
    this.handler = handler;
    this.concurrency = concurrency;
    this.name = card.name;
    this.card = { ...card, limits: { in_flight: concurrency, ...card.limits } };
    this.registered = new Promise((yes, no) => {
      this.onRegistered = yes;
      this.onRefused = no;
    });
    this.registered.catch(() => {});
  }

  async register() {
    const { card } = this;
    const timeoutMs = this.#o.callTimeoutMs;
    const how = { timeoutMs, isFirst: true };
    const answer = await this.#calls.ask('agent.register', { card }, how);
    this.name = answer.agent ?? this.name;
    if (answer.heartbeat_s > 0)
      this.#link.heartbeatMs = answer.heartbeat_s * 1000;
    this.onRegistered(answer);
  }

  onExecute(params) {
    const key = `${params.task_id}:${params.turn ?? 1}`;
    const known = this.#tasks.get(key);
    if (known) {
      known.task.attempt = params.attempt ?? known.task.attempt;
      known.socket = this.#link.socket;
      known.task.flush();
    } else if (!this.#results.has(key)) {
      if (this.#waiting.length >= WAITING_MAX) return false;
      this.#begin(key, params);
    }
    return true;
  }

  #begin(key, params) {
    const entry = { key, socket: this.#link.socket };
    const say = (text) => this.#sayChunk(entry, text);
    const max = this.#o.maxKeptBytes / 4;
    entry.task = new Task(params, max, say, this.#others);
    this.#tasks.set(key, entry);
    this.#waiting.push(entry);
    this.#next();
  }

  /** The limit of results that were not taken: no work is started beyond it. */
  #isFull() {
    const { maxKept, maxKeptBytes } = this.#o;
    return this.#results.size >= maxKept || this.#nResultChars >= maxKeptBytes;
  }

  #next() {
    while (this.#nWorking < this.concurrency && this.#waiting.length) {
      if (this.#isFull()) return;
      this.#work(this.#waiting.shift());
    }
  }

  async #work({ key, task }) {
    let result;
    this.#nWorking++;
    try {
      result = { status: 'completed', ...(await work(this.handler, task)) };
    } catch (e) {
      result = this.#failed(task, e);
    }
    this.#nWorking--;
    if (!task.cancelled) {
      this.#tasks.delete(key);
      this.#sayResult(key, task, result);
    }
    this.#next();
    this.#lookIdle();
  }

  #failed(task, e) {
    const isWord =
      typeof e?.code === 'string' && /^[a-z][a-z0-9_]{0,63}$/.test(e.code);
    if (!task.cancelled)
      this.#o.log?.(`task ${task.id} failed: ${e?.stack ?? e}`);
    const error_code = isWord ? e.code : 'agent_failed';
    return { status: 'failed', error: shortly(e), error_code };
  }

  /** False: not now; it is said when the task comes again. */
  #sayChunk({ task, socket }, text) {
    if (!socket || socket !== this.#link.socket) return false;
    if (!text) return socket.drained();
    const { id, turn, attempt } = task;
    const params = { task_id: id, turn, attempt, text };
    const message = { jsonrpc: '2.0', method: 'task.chunk', params };
    socket.send(toJson(message));
    return true;
  }

  async #sayResult(key, { id, turn, attempt }, result) {
    const n = result.text?.length ?? 0;
    this.#results.add(key);
    this.#nResultChars += n;
    await this.#sayUntilKept({ task_id: id, turn, attempt }, result);
    this.#results.delete(key);
    this.#nResultChars -= n;
    this.#next();
    this.#lookIdle();
  }

  /**
   * What the server does not take, whatever it has against it, is a failed
   * task; otherwise its end would be lost. That is logged once.
   */
  async #sayUntilKept(which, first) {
    let result = first;
    let nUnanswered = 0;
    while (!this.#link.isOver) {
      const e = await this.#sayOnce({ ...which, ...result });
      if (!e) return;
      nUnanswered = e.code === 'timeout' ? nUnanswered + 1 : 0;
      if (isPassing(e) && nUnanswered < UNANSWERED_MAX) {
        const ms = nUnanswered ? 0 : REPEAT_MS;
        await new Promise((resolve) => setTimeout(resolve, ms));
      } else if (result !== first) {
        return;
      } else {
        result = notTaken(e);
        nUnanswered = 0;
      }
    }
  }

  /** What went wrong; null: it is kept. */
  async #sayOnce(params) {
    const patienceMs = this.#o.callTimeoutMs;
    try {
      await this.#calls.ask('task.result', params, { patienceMs });
      return null;
    } catch (e) {
      const words = `the result of task ${params.task_id} was not taken`;
      if (!this.#link.isOver) this.#o.log?.(`${words}: ${shortly(e)}`);
      return e;
    }
  }

  onCancel(taskId, reason = 'cancelled') {
    for (const [key, { task }] of this.#tasks) {
      if (task.id !== String(taskId)) continue;
      this.#tasks.delete(key);
      task.cancel(reason);
    }
    this.#waiting = this.#waiting.filter(({ task }) => !task.cancelled);
    this.#lookIdle();
  }

  cancelAll(reason) {
    for (const { task } of this.#tasks.values()) task.cancel(reason);
    this.#tasks.clear();
    this.#waiting = [];
    this.onRefused(new SignalboxError('closed', reason));
  }

  #isIdle() {
    return !this.#tasks.size && !this.#results.size && !this.#nWorking;
  }

  #lookIdle() {
    if (this.#isIdle()) for (const resolve of this.#idle.splice(0)) resolve();
  }

  /** Takes no more work; resolves when all is kept, or time is over. */
  async finish(graceMs) {
    this.isClosing = true;
    if (this.#isIdle() || !graceMs) return;
    await new Promise((resolve) => {
      const timer = setTimeout(resolve, graceMs);
      this.#idle.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }
}

function notTaken(e) {
  return {
    status: 'failed',
    error: `the answer was not taken: ${shortly(e)}`,
    error_code: e.code === 'too_large' ? e.code : 'agent_failed',
  };
}
