// The server, as those see it who are connected to it: what may be asked, and
// what becomes of what it says.
import { Agent } from './agent.js';
import { Calls, closed, toJson } from './calls.js';
import { Delegations } from './delegate.js';
import { SignalboxError, errorOf } from './errors.js';
import { Link } from './link.js';
import { Reply, newKey } from './reply.js';

const METHOD_NOT_FOUND = -32601;

export class Hub {
  #o;
  #link;
  #calls;
  #delegations;
  #agent = null;
  #replies = new Set(); // not over
  #closed;

  constructor(o) {
    let end;
    this.#o = o;
    this.#closed = new Promise((yes, no) => (end = { yes, no }));
    this.#link = new Link(o, {
      open: () => this.#onOpen(),
      message: (text) => this.#onMessage(text),
      lost: (code) => this.#onLost(code),
      over: (e) => {
        this.#onOver(e);
        if (e) end.no(e);
        else end.yes();
      },
    });
    this.#calls = new Calls(o, this.#link);
    this.#delegations = new Delegations(o, this.#calls);
  }

  /** For connect(). */
  async begin() {
    await this.#link.begin();
    return this;
  }

  /** The name of the agent that this connection is; null: of none. */
  get agent() {
    return this.#agent?.name ?? null;
  }

  get isConnected() {
    return this.#link.socket !== null;
  }

  /**
   * Resolves after close(); rejects when the connection ended for good in
   * another way: the token is not good any more, another took over.
   */
  get closed() {
    return this.#closed;
  }

  // What the link tells.

  async #onOpen() {
    if (this.#agent) await this.#agent.register();
    for (const r of this.#replies) if (r.taskId) this.#follow(r, 0);
    this.#calls.isReady = true;
    this.#calls.flush();
  }

  #onLost(code) {
    this.#calls.isReady = false; // an agent is one again before it says more
    this.#calls.lost(code);
  }

  #onOver(error) {
    const e = error ?? closed();
    this.#delegations.dropAll(e);
    this.#calls.dropAll(e);
    for (const r of this.#replies) r.onError(e);
    this.#agent?.cancelAll(e.message);
  }

  #onMessage(text) {
    let said;
    try {
      said = JSON.parse(text);
    } catch {
      this.#o.log?.('the server said something that is not JSON');
      return;
    }
    for (const m of Array.isArray(said) ? said : [said])
      if (m?.method !== undefined) this.#onCall(m);
      else if (m?.id !== undefined && m.id !== null) this.#calls.answered(m);
      else if (m?.error) this.#onNotUnderstood(m.error);
  }

  /** It could not read what was said, nor whose call it was. */
  #onNotUnderstood(error) {
    this.#o.log?.(`the server did not understand: ${errorOf(error).message}`);
  }

  #onCall({ id, method, params = {} }) {
    if (method === 'task.execute') return this.#onExecute(id, params);
    if (method === 'task.cancel')
      return this.#agent?.onCancel(params.task_id, params.reason);
    if (method.startsWith('task.')) return this.#onReply(method, params);
    if (method === 'delegation.result') return this.#delegations.heard(params);
    if (method === 'delegation.chunk')
      return this.#delegations.heardChunk(params);
    const message = `there is no method ${method} here`;
    return this.#answer(id, { error: { code: METHOD_NOT_FOUND, message } });
  }

  #answer(id, what) {
    if (id === undefined) return;
    this.#link.socket?.send(toJson({ jsonrpc: '2.0', id, ...what }));
  }

  #onExecute(id, params) {
    // A client that leaves starts no work: the next one gets the task.
    if (!this.#agent || this.#agent.isClosing) return;
    const data = { code: 'agent_busy' };
    if (this.#agent.onExecute(params))
      this.#answer(id, { result: { status: 'working' } });
    else
      this.#answer(id, { error: { code: -32000, message: 'I am busy', data } });
  }

  // Being an agent.

  /**
   * Becomes that agent, and works on its tasks with handler(task), so many at
   * once. The handler returns the answer, or {text, metadata}, or is an async
   * generator of its words; what it throws is the task's error.
   */
  async register(card, handler, { concurrency = 16 } = {}) {
    if (typeof handler !== 'function')
      throw new TypeError('register needs a card and a handler');
    if (this.#agent)
      throw new SignalboxError('exists', `this is ${this.agent} already`);
    if (this.#link.isOver) throw closed();
    const agent = new Agent(this.#o, this.#link, this.#calls, {
      card,
      handler,
      concurrency,
      others: {
        delegations: this.#delegations,
        send: (text, options) => this.send(text, options),
      },
    });
    // Now: work may come in the same breath as the answer.
    this.#agent = agent;
    if (this.isConnected) this.#registerNow(agent);
    return agent.registered;
  }

  async #registerNow(agent) {
    try {
      await agent.register();
    } catch (e) {
      if (e.code === 'disconnected') return; // it is done on the next
      this.#agent = null;
      agent.onRefused(e);
    }
  }

  /** Changes fields of the agent's card. */
  async update(card) {
    const answer = await this.call('agent.update', { card });
    if (this.#agent) Object.assign(this.#agent.card, card);
    return answer;
  }

  /**
   * Says how the agent is: IDLE, BUSY, SLOW, ERROR …; and of when the data is
   * that it works with, "2025-02-15T09:00:00Z" or milliseconds.
   */
  setState(state, { dataAt } = {}) {
    return this.call('agent.state', { state, data_at: dataAt });
  }

  // Talking to others.

  /** Asks for any method of the server's. */
  call(method, params = {}, { timeoutMs = this.#o.callTimeoutMs } = {}) {
    return this.#calls.ask(method, params, { timeoutMs });
  }

  /** Agents that can do it, best first. */
  async search(query, options = {}) {
    const found = await this.call('agent.search', { query, ...options });
    return found.agents;
  }

  /**
   * Sends a message. Await it for the result, or iterate over it for the
   * words as they come. options: to, skill, conversation, task, priority,
   * timeoutMs, metadata, key, maxCostMicros (what it and all that is delegated
   * because of it may cost), parentTaskId. Of an agent it is on behalf of what
   * it works on: in a handler, task.send says of which task.
   */
  send(text, options = {}) {
    const { to, skill, conversation, task, priority, metadata } = options;
    return this.#send({
      text,
      executor: to === undefined ? undefined : { name: to },
      skill,
      conversation_id: conversation,
      task_id: task,
      priority,
      timeout_ms: options.timeoutMs,
      metadata,
      max_cost_micros: options.maxCostMicros,
      parent_task_id: options.parentTaskId,
      idempotency_key: options.key ?? newKey(),
    });
  }

  /**
   * Sends a message from an agent to another: an object of to, type and, as
   * may be, from, priority, timestamp, reference, payload, context,
   * max_cost_micros and message_id. What was decided of it is `routing` of `accepted`; await it
   * for the result, however long it is held before.
   */
  sendEnvelope(envelope) {
    return this.#send({ envelope: { message_id: newKey(), ...envelope } });
  }

  #send(params) {
    const reply = new Reply(params);
    this.#replies.add(reply);
    this.#follow(reply, this.#o.callTimeoutMs);
    return reply;
  }

  /** What is kept already is listened to; the same key gives the same task,
   * however often it is sent. */
  async #follow(reply, timeoutMs) {
    const { taskId, params, lastEventId: after } = reply;
    const onAnswer = taskId ? undefined : (a) => reply.onAccepted(a);
    const ask = (method, p) =>
      this.#calls.ask(method, p, { timeoutMs, onAnswer });
    if (reply.isFollowed) return;
    reply.isFollowed = true;
    try {
      if (taskId) await ask('task.listen', { task_id: taskId, after });
      else await ask('message.send', params);
    } catch (e) {
      reply.onError(e);
    }
    reply.isFollowed = false;
    if (reply.isOver) this.#replies.delete(reply);
  }

  #onReply(method, params) {
    for (const r of this.#replies) {
      if (r.taskId !== params.task_id) continue;
      r.onNews(method, params);
      if (r.isOver) this.#replies.delete(r);
    }
  }

  // Giving work to others, as the agent that this is.

  /**
   * Gives work to another agent. Await it for the result: {text, metadata,
   * task_id}. However often the connection breaks, it is one task, and its
   * result comes. options: sessionId, taskId (a further turn of it),
   * parentTaskId, timeoutMs (180 000; 0: none), onChunk({agent, text, …}),
   * onDisconnect ("keep" or "cancel"), metadata, maxCostMicros (its price).
   * task.delegate is the same, on behalf of that task.
   */
  delegate(agentName, skill, message, options = {}) {
    return this.#delegations.delegate(agentName, skill, message, options);
  }

  /**
   * The tool: {agentId, task, mode, timeoutMs, stream, …}, or a list of up to
   * 16. Resolves with {status, response, sessionKey, task_id}, or a list of
   * those; what went wrong with one is its status and error. Is not said
   * again when the connection breaks: that is the error `disconnected`.
   * options: onChunk({agent, text, …}), with `stream`.
   */
  delegateToAgent(what, options = {}) {
    return this.#delegations.tool(what, options);
  }

  /** How that delegation is now. */
  delegation(sessionKey) {
    return this.call('delegation.get', { sessionKey });
  }

  /**
   * handler(result) for results of delegations without a waiting caller:
   * of one with mode "async", or of this agent before it was started again.
   * The server keeps them until the handler is done with them. To be set
   * before `register`.
   */
  onDelegationResult(handler) {
    this.#delegations.onResult = handler;
  }

  /** handler({agent, text, task_id, …}) for text that no other handler takes. */
  onDelegationChunk(handler) {
    this.#delegations.onChunk = handler;
  }

  /**
   * The tools as JSON Schemas, for those who have a model of their own, as
   * "openai" or as "anthropic" takes them; or both, by these names.
   */
  tools(format) {
    return this.#link.get('/api/tools', format && { format });
  }

  getTask(id) {
    return this.call('task.get', { task_id: id });
  }

  cancelTask(id) {
    return this.call('task.cancel', { task_id: id });
  }

  /**
   * Takes no more work, gives what is going on graceMs to end and its results
   * to be kept, and leaves.
   */
  async close({ graceMs = 5000 } = {}) {
    if (this.#link.isOver) return;
    await this.#agent?.finish(graceMs);
    await this.#delegations.finish(graceMs);
    const { socket } = this.#link;
    this.#link.end(null);
    socket?.close();
    await socket?.closed;
  }
}
