// What comes of a message that was sent: await it for the result, or iterate
// over it for the words as they come.
import { SignalboxError } from './errors.js';

const UNREAD_MAX = 1024 * 1024; // characters that wait for a slow reader

const OVER = new Set([
  'completed',
  'failed',
  'cancelled',
  'expired',
  'dropped',
]);

/** Node 18 has no crypto at hand, nor has a page that is not secure. */
export function newKey() {
  const part = () => Math.random().toString(36).slice(2);
  return globalThis.crypto?.randomUUID?.() ?? `${part()}${part()}${part()}`;
}

export class Reply {
  #accepted;
  #accept;
  #refuse;
  #result;
  #resolve;
  #reject;
  #unread = [];
  #nUnread = 0;
  #hasChunks = false;
  #hasGap = false; // from here on only the result counts
  #read = ''; // what the reader was given
  #agent = null; // whose answer it is
  #wake = null;
  #isOver = false;

  constructor(params) {
    this.params = params;
    this.isFollowed = false; // there is a call about it
    this.#accepted = new Promise(
      (yes, no) => ([this.#accept, this.#refuse] = [yes, no]),
    );
    this.#result = new Promise(
      (yes, no) => ([this.#resolve, this.#reject] = [yes, no]),
    );
    // Who looks at one of them only need not hear of the other.
    this.#accepted.catch(() => {});
    this.#result.catch(() => {});
    this.taskId = null;
    this.lastEventId = undefined;
  }

  /** {task_id, conversation_id, agent, …}, once the server has kept it. */
  get accepted() {
    return this.#accepted;
  }

  then(yes, no) {
    return this.#result.then(yes, no);
  }

  catch(no) {
    return this.#result.catch(no);
  }

  finally(last) {
    return this.#result.finally(last);
  }

  async *[Symbol.asyncIterator]() {
    for await (const { agent, text } of this.pieces())
      if (agent === this.#agent) yield text;
  }

  /**
   * The words as they come, each with whose they are: {agent, text}. Those of
   * agents that this one asked for help, and shows, are among them; they are
   * no part of the answer.
   */
  async *pieces() {
    for (;;) {
      while (this.#unread.length) yield this.#take();
      if (this.#isOver) break;
      await new Promise((resolve) => (this.#wake = resolve));
    }
    // Words that were lost on the way, or never streamed, are in the result.
    const { text } = await this.#result;
    if (text?.startsWith(this.#read) && text.length > this.#read.length)
      yield { agent: this.#agent, text: text.slice(this.#read.length) };
  }

  #take() {
    const piece = this.#unread.shift();
    this.#nUnread -= piece.text.length;
    if (piece.agent === this.#agent) this.#read += piece.text;
    return piece;
  }

  #stir() {
    this.#wake?.();
    this.#wake = null;
  }

  // For the hub, from here on.

  get isOver() {
    return this.#isOver;
  }

  onAccepted(answer) {
    this.taskId = answer.task_id;
    this.#agent = answer.agent ?? null;
    this.#accept(answer);
    if (OVER.has(answer.status)) this.onResult(answer);
  }

  onNews(method, params) {
    const { event_id: eventId, status, text = '' } = params;
    if (method === 'task.result') return this.onResult(params);
    if (eventId) this.#sawEvent(eventId);
    if (method === 'task.chunk') return this.#onChunk(params.agent, text);
    // A new attempt may start its answer over.
    const isNew = status === 'queued' || status === 'dispatched';
    if (method === 'task.gap' || (isNew && this.#hasChunks))
      this.#hasGap = true;
    return undefined;
  }

  /** "3-14": the third start of the server, and its fourteenth event. */
  #sawEvent(id) {
    const start = (s) => s.split('-')[0];
    if (this.lastEventId && start(this.lastEventId) !== start(id))
      this.#hasGap ||= this.#hasChunks;
    this.lastEventId = id;
  }

  #onChunk(agent = this.#agent, text) {
    const isOwn = agent === this.#agent;
    const isTooMuch = this.#nUnread + text.length > UNREAD_MAX;
    if (isOwn) this.#hasChunks = true;
    if (this.#isOver || (isOwn && this.#hasGap)) return;
    if (isOwn) this.#hasGap = isTooMuch;
    if (isTooMuch) return;
    this.#unread.push({ agent, text });
    this.#nUnread += text.length;
    this.#stir();
  }

  onResult(r) {
    if (this.#isOver) return;
    this.#isOver = true;
    if (r.status === 'completed') this.#resolve(r);
    else this.#reject(failureOf(r));
    this.#stir();
  }

  onError(e) {
    this.#isOver = true;
    this.#refuse(e);
    this.#reject(e);
    this.#stir();
  }
}

function failureOf(r) {
  const { code = r.status, message = `the task is ${r.status}` } =
    r.error ?? {};
  return new SignalboxError(code, message, r);
}
