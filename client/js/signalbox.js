// signalbox: write agents, and talk to those of others. client/README.md is
// the page to read.
//
//     const hub = await connect();
//     await hub.register({ name: 'echo', description: 'Says what it hears' },
//                        (task) => task.message);
import { SignalboxError } from './errors.js';
import { Hub } from './hub.js';

export { SignalboxError };

const HERE = 'http://127.0.0.1:8787';
const DEFAULTS = {
  connectTimeoutMs: 30000, // for the first connection
  callTimeoutMs: 30000, // for an answer of the server's
  retryMs: 250, // the first pause before reconnecting; doubled each time
  retryMaxMs: 30000,
  heartbeatMs: 90000, // silence that means the server is gone
  maxMessageBytes: 16 * 1024 * 1024, // that is taken from the server
  maxKept: 1000, // calls and results that are not answered yet
  maxKeptBytes: 64 * 1024 * 1024,
  log: (line) => console.warn(`signalbox: ${line}`),
};

function environment(name) {
  return globalThis.process?.env?.[name] || undefined;
}

/** http://host:8787 -> ws://host:8787/hub */
function hubUrl(text) {
  let url;
  try {
    url = new URL(text);
  } catch {
    throw new SignalboxError('usage', `"${text}" is not a URL`);
  }
  const kind = {
    'http:': 'ws:',
    'https:': 'wss:',
    'ws:': 'ws:',
    'wss:': 'wss:',
  }[url.protocol];
  if (!kind)
    throw new SignalboxError(
      'usage',
      `"${text}" does not begin with http://, https://, ws:// or wss://`,
    );
  url.protocol = kind; // which URL allows only among these
  url.hash = url.username = url.password = '';
  if (!/\/hub$/.test(url.pathname))
    url.pathname = url.pathname.replace(/\/*$/, '/hub');
  return url;
}

/**
 * connect(url, token, options) or connect({url, token, …}). What is not given
 * is taken from SIGNALBOX_URL, SIGNALBOX_TOKEN and SIGNALBOX_CA.
 */
export async function connect(url, token, options = {}) {
  if (url !== null && typeof url === 'object' && !(url instanceof URL))
    ({ url, token, ...options } = url);
  const o = { ...DEFAULTS, ...options };
  o.url = hubUrl(String(url ?? environment('SIGNALBOX_URL') ?? HERE));
  o.token = token ?? environment('SIGNALBOX_TOKEN');
  o.caFile = o.caFile ?? environment('SIGNALBOX_CA');
  if (!o.token)
    throw new SignalboxError(
      'unauthenticated',
      'a token is needed: give one, or set SIGNALBOX_TOKEN',
    );
  return new Hub(o).begin();
}
