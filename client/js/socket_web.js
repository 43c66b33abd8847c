// The runtime's own WebSocket, with the face that socket_node.js has. Browsers
// let no page set a header, so the token goes along as a subprotocol; and they
// do not tell why a connection was refused.
const HIGH_WATER = 256 * 1024;
const LOOK_MS = 50; // they do not tell either when there is room again

/** A plain request: {status, body}. */
export async function get(url, o) {
  const headers = o.token ? { Authorization: `Bearer ${o.token}` } : {};
  const answer = await fetch(url, {
    headers,
    signal: AbortSignal.timeout(o.timeoutMs),
  });
  return { status: answer.status, body: await answer.text() };
}

export function openSocket(url, o) {
  return new Promise((resolve, reject) => {
    const names = ['signalbox', ...(o.token ? [`bearer.${o.token}`] : [])];
    const raw = new o.WebSocket(url.href, names);
    const refused = () =>
      fail(
        new Error(
          'the connection failed: no server answers, or the token is not valid',
        ),
      );
    const timer = setTimeout(
      () => fail(new Error('the server did not answer in time')),
      o.timeoutMs,
    );

    function fail(e) {
      clearTimeout(timer);
      raw.onopen = raw.onclose = null;
      raw.onerror = () => {};
      raw.close();
      reject(e);
    }
    raw.onopen = () => {
      clearTimeout(timer);
      resolve(new Socket(raw));
    };
    raw.onerror = raw.onclose = refused;
  });
}

class Socket {
  heardAtMs = Date.now();
  onMessage = () => {};
  #raw;
  #close;

  constructor(raw) {
    this.#raw = raw;
    this.closed = new Promise((resolve) => (this.#close = resolve));
    raw.onmessage = (e) => {
      this.heardAtMs = Date.now();
      if (typeof e.data === 'string') this.onMessage(e.data);
      else this.close(3003, 'only text is spoken here');
    };
    raw.onerror = () => {};
    raw.onclose = (e) => this.#close({ code: e.code, reason: e.reason });
  }

  send(text) {
    if (this.#raw.readyState === 1) this.#raw.send(text);
  }

  async drained() {
    while (this.#raw.readyState === 1 && this.#raw.bufferedAmount > HIGH_WATER)
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }

  /** A page cannot, and does not see the server's: so it asks. */
  ping() {
    this.send('{"jsonrpc":"2.0","id":"ping","method":"ping"}');
  }

  close(code = 1000, reason = '') {
    this.#raw.close(code === 1000 || code >= 3000 ? code : 3000, reason);
  }

  destroy() {
    this.close();
    this.#close({ code: 1006, reason: 'the connection was given up' });
  }
}
