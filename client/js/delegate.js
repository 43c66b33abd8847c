// Work that an agent gives to others. In two phases: agent.send_task is
// answered at once, and delegation.result says what came of it, whenever that
// is; maybe before the answer was looked at. So a delegation is in the book
// before it is sent, under an id that is its own over all restarts, and stays
// there until its result has come, however often the connection breaks
// meanwhile. The server tells a result until it hears that it was had.
import { closed } from './calls.js';
import { SignalboxError, shortly } from './errors.js';
import { newKey } from './reply.js';

const DELEGATION_MS = 180000;
const TOOL_MS = 60000; // of delegateToAgent, as the server has it
const REPEAT_MS = 1000; // before the same is sent again
const REMEMBERED = 1000; // ids of results without a waiting caller

/** Await it for the result; `accepted` tells when the server has it. */
export class Delegation {
  #accept;
  #refuse;
  #resolve;
  #reject;
  #result;

  constructor(id, onChunk) {
    this.id = id;
    this.taskId = null;
    this.onChunk = onChunk;
    this.accepted = new Promise(
      (yes, no) => ([this.#accept, this.#refuse] = [yes, no]),
    );
    this.#result = new Promise(
      (yes, no) => ([this.#resolve, this.#reject] = [yes, no]),
    );
    // Who looks at one of them only need not hear of the other.
    this.accepted.catch(() => {});
    this.#result.catch(() => {});
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

  // For the book, from here on.

  onAccepted(answer) {
    this.taskId = answer?.task_id ?? null;
    this.#accept(answer);
  }

  onResult(result) {
    this.taskId = result.task_id ?? this.taskId;
    this.#accept({ status: 'accepted', task_id: this.taskId });
    if (result.status === 'completed') this.#resolve(result);
    else this.#reject(failureOf(result));
  }

  onError(e) {
    this.#refuse(e);
    this.#reject(e);
  }
}

/** {original_id, task_id, status, text, metadata, …} */
function resultOf(params) {
  return { text: '', metadata: {}, ...params };
}

function failureOf(r) {
  const said = r.error ?? {};
  const words = typeof said === 'string' ? said : said.message;
  const code = r.error_code ?? said.code ?? r.status ?? 'failed';
  return new SignalboxError(code, words ?? `the task is ${code}`, r);
}

function add(set, key) {
  if (set.size >= REMEMBERED) set.delete(set.values().next().value);
  set.add(key);
}

/** All of one connection's. */
export class Delegations {
  onResult = null; // (result), for results without a waiting caller
  onChunk = null; // (chunk): likewise
  #o;
  #calls;
  #own = newKey(); // ids that begin so are of this process
  #lastId = 0;
  #pending = new Map(); // id -> Delegation
  #late = new Set(); // ids whose time was over
  #giving = new Set(); // ids that onResult is being given
  #had = new Set(); // and was
  #told = new Set(); // ids that were warned of
  #acking = new Map(); // id -> promise
  #tools = new Set(); // of delegateToAgent, that hear chunks

  constructor(o, calls) {
    this.#o = o;
    this.#calls = calls;
  }

  delegate(agentName, skill, message, options = {}) {
    const { timeoutMs, onChunk } = options;
    const d = new Delegation(`${this.#own}-${++this.#lastId}`, onChunk);
    if (this.#pending.size >= this.#o.maxKept) {
      d.onError(new SignalboxError('overloaded', 'too much is delegated'));
      return d;
    }
    // Now: its result may come in the same breath as the answer, or before.
    this.#pending.set(d.id, d);
    this.#limit(d, timeoutMs ?? DELEGATION_MS);
    this.#send(d, {
      agent_id: agentName,
      message,
      skill_id: skill,
      session_id: options.sessionId,
      task_id: options.taskId,
      parent_task_id: options.parentTaskId,
      timeoutMs: timeoutMs || undefined,
      stream: onChunk ? true : undefined,
      onDisconnect: options.onDisconnect,
      metadata: options.metadata,
      max_cost_micros: options.maxCostMicros,
    });
    return d;
  }

  #limit(d, ms) {
    if (!ms) return;
    d.timer = setTimeout(() => {
      add(this.#late, d.id);
      this.#take(d);
      const words = `nothing came of the delegation within ${ms} ms`;
      d.onError(new SignalboxError('timeout', words, { task_id: d.taskId }));
    }, ms);
  }

  /**
   * The same again on the next connection, until it is answered; and when the
   * server does not know itself whether it has it.
   */
  async #send(d, params) {
    const how = { id: d.id, onAnswer: (answer) => d.onAccepted(answer) };
    while (this.#pending.get(d.id) === d) {
      try {
        await this.#calls.ask('agent.send_task', params, how);
        return;
      } catch (e) {
        if (e.code === 'outcome_unknown') {
          await new Promise((yes) => setTimeout(yes, REPEAT_MS));
          continue;
        }
        this.#take(d);
        d.onError(e);
      }
    }
  }

  #take(d) {
    clearTimeout(d.timer);
    this.#pending.delete(d.id);
    // Said again, it would be another one.
    this.#calls.forget(d.id);
  }

  /** delegation.result */
  heard(params) {
    const which = params.original_id ?? params.sessionKey ?? params.task_id;
    const id = String(which);
    const d = this.#pending.get(id);
    if (d) {
      this.#take(d);
      d.onResult(resultOf(params));
      this.#ack(id, params);
    } else if (this.#isHad(id)) {
      this.#ack(id, params); // the last time it was not heard
    } else {
      this.#onOther(id, params);
    }
  }

  #isHad(id) {
    if (this.#had.has(id)) return true;
    return id.startsWith(`${this.#own}-`) && !this.#late.has(id);
  }

  /** Of a process that was here before, of an async one, or too late. */
  async #onOther(id, params) {
    if (!this.onResult) return this.#onUnwanted(id, params);
    if (this.#giving.has(id)) return undefined;
    this.#giving.add(id);
    try {
      await this.onResult(resultOf(params));
      this.#late.delete(id);
      add(this.#had, id);
      this.#ack(id, params);
    } catch (e) {
      this.#o.log?.(`the result of delegation ${id} is kept: ${shortly(e)}`);
    }
    this.#giving.delete(id);
    return undefined;
  }

  #onUnwanted(id, params) {
    if (this.#late.has(id)) {
      this.#o.log?.(`the result of delegation ${id} came too late`);
      this.#late.delete(id);
      return this.#ack(id, params);
    }
    if (!this.#told.has(id))
      this.#o.log?.(
        `delegation ${id} is ${params.status}, but no caller waits for it: ` +
          'the server keeps it for onDelegationResult',
      );
    add(this.#told, id);
    return undefined;
  }

  #ack(id, params) {
    if (!this.#acking.has(id)) this.#acking.set(id, this.#sayAck(id, params));
  }

  async #sayAck(id, { original_id, sessionKey, task_id }) {
    const params = { original_id, sessionKey, task_id };
    const patienceMs = this.#o.callTimeoutMs;
    await new Promise((yes) => setTimeout(yes, 0)); // who waited has it by then
    try {
      const onAnswer = () => this.#acking.delete(id);
      const how = { patienceMs, onAnswer };
      await this.#calls.ask('delegation.ack', params, how);
    } catch {
      this.#acking.delete(id); // it is told again, and acknowledged again
    }
  }

  /** delegation.chunk */
  heardChunk(params) {
    const id = String(params.original_id ?? params.sessionKey);
    const d = this.#pending.get(id);
    const isFor = (tool) => tool.names.has(params.agent);
    const tell = d ?? [...this.#tools].find(isFor) ?? this;
    try {
      tell.onChunk?.(params);
    } catch (e) {
      this.#o.log?.(`onChunk failed: ${e?.stack ?? e}`);
    }
  }

  /** agent.delegate: one, or a list of up to 16. */
  async tool(what, { onChunk, parentTaskId, taskSession } = {}) {
    const isList = Array.isArray(what);
    const of = { parent_task_id: parentTaskId };
    if (taskSession) of.session_id = taskSession;
    const one = (t) => (parentTaskId ? { ...of, ...t } : t);
    const all = (isList ? what : [what]).map(one);
    const tool = { onChunk, names: new Set(all.map((t) => t?.agentId)) };
    const waitMs = (t) => (t?.mode === 'async' ? 0 : t?.timeoutMs ?? TOOL_MS);
    const timeoutMs =
      Math.max(0, ...all.map(waitMs)) + this.#o.callTimeoutMs;
    // Not on the next connection: said again, it would be another one.
    const how = { timeoutMs, isOnce: true };
    if (onChunk) this.#tools.add(tool);
    try {
      const params = isList ? { tasks: all } : all[0];
      const answer = await this.#calls.ask('agent.delegate', params, how);
      return isList ? answer.results : answer;
    } finally {
      this.#tools.delete(tool);
    }
  }

  /** Until the server knows what was had, or time is over. */
  async finish(graceMs) {
    if (!this.#acking.size || !graceMs) return;
    let timer;
    const limit = new Promise((yes) => (timer = setTimeout(yes, graceMs)));
    await Promise.race([Promise.all(this.#acking.values()), limit]);
    clearTimeout(timer);
  }

  dropAll(error) {
    for (const d of [...this.#pending.values()]) {
      this.#take(d);
      d.onError(error ?? closed());
    }
  }
}
