/** code is for programs, message for people; data is what else was said. */
export class SignalboxError extends Error {
  constructor(code, message, data = {}) {
    super(message);
    this.name = 'SignalboxError';
    this.code = code;
    this.data = data;
  }
}

const STANDARD = {
  '-32700': 'invalid_json',
  '-32600': 'bad_request',
  '-32601': 'method_not_found',
  '-32602': 'bad_request',
  '-32603': 'internal',
};

/** What a JSON-RPC error says, as ours. */
export function errorOf({ code, message, data } = {}) {
  const word = data?.code ?? STANDARD[code] ?? 'error';
  return new SignalboxError(word, message ?? word, data ?? {});
}

/** The first line of what went wrong inside a handler, for the other side. */
export function shortly(e) {
  const text = e instanceof Error ? e.message || e.name : String(e);
  return text.split('\n', 1)[0].slice(0, 300) || 'the agent failed';
}

const PASSING = new Set([
  'busy',
  'disconnected',
  'internal',
  'io_error',
  'no_space',
  'out_of_memory',
  'outcome_unknown',
  'overloaded',
  'rate_limited',
  'stopping',
  'timeout',
]);

/** Whether the same may go well a little later. */
export function isPassing(e) {
  return PASSING.has(e.code);
}
