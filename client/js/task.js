// One piece of work, as its handler sees it; and what is said while it goes
// on. The text is kept as a whole, because a listener that was cut off in the middle
// can only be given all of it.
import { SignalboxError } from './errors.js';

const CHUNK_MAX = 64 * 1024; // characters

export class Task {
  #abort = new AbortController();
  #say;
  #written = [];
  #length = 0;
  #max;
  #unsaid = ''; // while the server does not listen
  #delegations;
  #send;
  #isTalking = false; // the session has a delegation that is not over

  constructor(params, max, say, { delegations, send }) {
    this.id = String(params.task_id);
    this.turn = params.turn ?? 1;
    this.message = params.message;
    this.skillId = params.skill_id ?? null;
    this.sessionId = params.session_id ?? null;
    this.deadlineMs = params.deadline_ms ?? null;
    this.metadata = params.metadata ?? {};
    this.envelope = params.envelope ?? null;
    this.attempt = params.attempt ?? 1;
    this.#max = max;
    this.#say = say;
    this.#delegations = delegations;
    this.#send = send;
  }

  /** Aborted when the task is cancelled, or its time is over. */
  get signal() {
    return this.#abort.signal;
  }

  get cancelled() {
    return this.#abort.signal.aborted;
  }

  /** All that was written so far. */
  get written() {
    if (this.#written.length > 1) this.#written = [this.#written.join('')];
    return this.#written[0] ?? '';
  }

  /**
   * Sends a piece of the answer on its way. Resolves when there is room for
   * more; rejects once the task is cancelled.
   */
  async write(text) {
    this.signal.throwIfAborted();
    if (typeof text !== 'string')
      throw new TypeError('task.write takes a string');
    this.#length += text.length;
    if (this.#length > this.#max)
      throw new SignalboxError(
        'too_large',
        `an answer has up to ${this.#max} characters`,
      );
    this.#written.push(text);
    this.#unsaid += text;
    await this.flush();
  }

  /**
   * As hub.delegate, on behalf of this task: its payer pays. It is
   * in the task's own session unless sessionId says another, or null for none.
   * A session takes one at a time, so what is given beside one has none.
   */
  delegate(agentName, skill, message, options = {}) {
    const o = { parentTaskId: this.id, ...options };
    const talks = this.#mayTalk(o);
    if (talks) o.sessionId = this.sessionId;
    const d = this.#delegations.delegate(agentName, skill, message, o);
    if (talks) this.#talk(d);
    return d;
  }

  /** As hub.send, on behalf of this task: its payer pays. */
  send(text, options = {}) {
    return this.#send(text, { parentTaskId: this.id, ...options });
  }

  #mayTalk({ sessionId, taskId, parentTaskId }) {
    if (this.#isTalking || !this.sessionId || sessionId !== undefined)
      return false;
    return !taskId && parentTaskId === this.id;
  }

  #talk(d) {
    const isOver = () => {
      this.#isTalking = false;
    };
    this.#isTalking = true;
    d.then(isOver, isOver);
  }

  /** As hub.delegateToAgent, on behalf of this task. */
  delegateToAgent(what, options = {}) {
    const of = { parentTaskId: this.id, taskSession: this.sessionId };
    return this.#delegations.tool(what, { ...of, ...options });
  }

  /** For the hub: say what is unsaid, if it can be now. */
  flush() {
    if (!this.#say('')) return undefined;
    const text = this.#unsaid;
    for (let at = 0, end; at < text.length; at = end) {
      end = Math.min(text.length, at + CHUNK_MAX);
      // The other half of a pair may come with the next; if not, the result
      // has it all.
      if (/[\uD800-\uDBFF]/.test(text[end - 1])) end--;
      if (end === at || !this.#say(text.slice(at, end))) {
        this.#unsaid = text.slice(at);
        return undefined;
      }
    }
    this.#unsaid = '';
    return this.#say('');
  }

  /** For the hub. */
  cancel(reason) {
    this.#abort.abort(
      new SignalboxError('cancelled', `the task is over: ${reason}`),
    );
  }
}

function isStream(out) {
  return typeof out?.[Symbol.asyncIterator] === 'function';
}

/** No list, no Map, no Date. */
function isPlain(value) {
  return Object.prototype.toString.call(value) === '[object Object]';
}

async function writeAll(task, stream) {
  const steps = stream[Symbol.asyncIterator]();
  for (;;) {
    const { done, value } = await steps.next();
    if (done) return value;
    try {
      await task.write(value);
    } catch (e) {
      await steps.return?.();
      throw e;
    }
  }
}

/** Runs a handler to its end: {text, metadata}. */
export async function work(handler, task) {
  let out = await handler(task);
  if (isStream(out)) out = await writeAll(task, out);
  if (out === undefined || out === null) return { text: task.written };
  if (typeof out === 'string') return { text: out };
  const { text = task.written, metadata = null } = out;
  if (typeof out !== 'object' || typeof text !== 'string')
    throw new TypeError('a handler returns a string or {text, metadata}');
  if (metadata !== null && !isPlain(metadata))
    throw new TypeError('metadata is an object of names and values');
  return metadata === null ? { text } : { text, metadata };
}
