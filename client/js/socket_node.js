// A WebSocket over node:net and node:tls, as a client (RFC 6455, version 13,
// no extensions). Node 18 has none of its own, and those that came later send
// no Authorization header and tell nothing about a refusal.
//
// What the server sends is judged strictly and never gathered beyond
// maxMessageBytes. A socket has the same face as that of socket_web.js:
//
//     onMessage(text), closed (a promise of {code, reason}), heardAtMs,
//     send(text), drained(), ping(), close(code, reason), destroy()
import { createHash, randomBytes, randomFillSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import net from 'node:net';
import tls from 'node:tls';

const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const CONT = 0,
  TEXT = 1,
  BINARY = 2,
  CLOSE = 8,
  PING = 9,
  PONG = 10;
const HEAD_MAX = 16 * 1024;
const BODY_MAX = 64 * 1024; // of a refusal
const HIGH_WATER = 256 * 1024; // unsent, from which on writers wait
const CLOSE_MS = 2000; // for the other side's close frame

/** What the server said instead of becoming a WebSocket. */
export class Refusal extends Error {
  constructor(status, body) {
    super(`the server answered ${status}`);
    this.status = status;
    this.body = body;
  }
}

function trusted(o) {
  const ca = o.ca ?? (o.caFile && readFileSync(o.caFile));
  return ca ? { ca } : {};
}

/** A plain request: {status, body}. */
export function get(url, o) {
  const { request: ask } = url.protocol === 'https:' ? https : http;
  const headers = o.token ? { Authorization: `Bearer ${o.token}` } : {};
  const how = { headers, timeout: o.timeoutMs, agent: false, ...trusted(o) };
  return new Promise((resolve, reject) => {
    const req = ask(url, how, async (res) => {
      const parts = [];
      let n = 0;
      try {
        for await (const part of res) {
          parts.push(part);
          n += part.length;
          if (n > o.maxMessageBytes) throw new Error('the answer is too large');
        }
        const body = Buffer.concat(parts).toString('utf8');
        resolve({ status: res.statusCode, body });
      } catch (e) {
        reject(e);
      }
    });
    req.on('timeout', () =>
      req.destroy(new Error('the server did not answer in time')),
    );
    req.on('error', reject);
    req.end();
  });
}

function dial(url, o) {
  const isTls = url.protocol === 'wss:';
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const port = Number(url.port || (isTls ? 443 : 80));
  if (!isTls) return net.connect({ host, port });
  return tls.connect({
    host,
    port,
    servername: net.isIP(host) ? '' : host,
    ALPNProtocols: ['http/1.1'],
    ...trusted(o),
  });
}

function request(url, token, key) {
  return [
    `GET ${url.pathname}${url.search} HTTP/1.1`,
    `Host: ${url.host}`,
    'Upgrade: websocket',
    'Connection: Upgrade',
    `Sec-WebSocket-Key: ${key}`,
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Protocol: signalbox',
    ...(token ? [`Authorization: Bearer ${token}`] : []),
    '',
    '',
  ].join('\r\n');
}

function headOf(text) {
  const [line, ...rest] = text.split('\r\n');
  const m = /^HTTP\/1\.[01] (\d{3})/.exec(line);
  if (!m) throw new Error('this is not an HTTP server');
  const headers = {};
  for (const h of rest) {
    const at = h.indexOf(':');
    if (at > 0) headers[h.slice(0, at).toLowerCase()] = h.slice(at + 1).trim();
  }
  return { status: Number(m[1]), headers };
}

function checkAgreed(h, key) {
  const want = createHash('sha1')
    .update(key + GUID)
    .digest('base64');
  if (
    !/^websocket$/i.test(h.upgrade ?? '') ||
    !/\bupgrade\b/i.test(h.connection ?? '') ||
    h['sec-websocket-accept'] !== want ||
    h['sec-websocket-extensions'] ||
    (h['sec-websocket-protocol'] ?? 'signalbox') !== 'signalbox'
  )
    throw new Error("the server's answer is no agreement to speak WebSocket");
}

/** Opens one; o: token, timeoutMs, maxMessageBytes, ca, caFile. */
export function openSocket(url, o) {
  return new Promise((resolve, reject) => {
    const key = randomBytes(16).toString('base64');
    const raw = dial(url, o);
    let got = Buffer.alloc(0),
      head = null;
    const timer = setTimeout(
      () => fail(new Error('the server did not answer in time')),
      o.timeoutMs,
    );

    function stop() {
      clearTimeout(timer);
      raw.removeAllListeners();
      raw.on('error', () => {});
    }
    function fail(e) {
      stop();
      raw.destroy();
      reject(e);
    }
    function refused() {
      fail(new Refusal(head.status, got.toString('utf8')));
    }
    function onData(data) {
      got = Buffer.concat([got, data]);
      if (!head) {
        const at = got.indexOf('\r\n\r\n');
        if (at < 0 && got.length > HEAD_MAX)
          return fail(new Error('its headers are too long'));
        if (at < 0) return;
        head = headOf(got.toString('latin1', 0, at));
        got = got.subarray(at + 4);
      }
      if (head.status === 101) {
        checkAgreed(head.headers, key);
        stop();
        return resolve(new Socket(raw, got, o.maxMessageBytes));
      }
      if (
        got.length >=
        Math.min(Number(head.headers['content-length'] ?? BODY_MAX), BODY_MAX)
      )
        refused();
    }
    raw.setNoDelay(true);
    raw.on(url.protocol === 'wss:' ? 'secureConnect' : 'connect', () =>
      raw.write(request(url, o.token, key)),
    );
    raw.on('data', (data) => {
      try {
        onData(data);
      } catch (e) {
        fail(e);
      }
    });
    raw.on('error', fail);
    raw.on('close', () => (head ? refused() : fail(new Error('it hung up'))));
  });
}

class Broken extends Error {
  constructor(code, words) {
    super(words);
    this.code = code;
  }
}

/** Frames out of bytes. Nothing is joined before a whole frame is there. */
class Reader {
  #pieces = [];
  #n = 0;
  #need = 2;
  #max;

  constructor(max) {
    this.#max = max;
  }

  add(data) {
    this.#pieces.push(data);
    this.#n += data.length;
  }

  /**
   * {fin, opcode, payload}, or null: more is needed. `had` bytes of its
   * message are gathered already.
   */
  next(had) {
    if (this.#n < this.#need) return null;
    if (this.#pieces.length > 1) this.#pieces = [Buffer.concat(this.#pieces)];
    const b = this.#pieces[0];
    let n = b[1] & 0x7f,
      at = 2;
    if (n >= 126) {
      at = n === 126 ? 4 : 10;
      if (this.#n < at) return this.#wait(at);
      n =
        at === 4
          ? b.readUInt16BE(2)
          : b.readUInt32BE(2) * 2 ** 32 + b.readUInt32BE(6);
    }
    this.#check(b[0], b[1], n, had);
    if (this.#n < at + n) return this.#wait(at + n);
    this.#pieces = [b.subarray(at + n)];
    this.#n -= at + n;
    this.#need = 2;
    return {
      fin: b[0] >= 0x80,
      opcode: b[0] & 15,
      payload: b.subarray(at, at + n),
    };
  }

  #wait(need) {
    this.#need = need;
    return null;
  }

  #check(first, second, n, had) {
    const opcode = first & 15;
    if (first & 0x70) throw new Broken(1002, 'a reserved bit is set');
    if (second & 0x80) throw new Broken(1002, 'a server does not mask');
    if (opcode > PONG || (opcode > BINARY && opcode < CLOSE))
      throw new Broken(1002, 'an unknown opcode');
    if (opcode >= CLOSE && (n > 125 || first < 0x80))
      throw new Broken(1002, 'a control frame is short and whole');
    if (opcode < CLOSE && had + n > this.#max)
      throw new Broken(1009, 'the message is larger than this client takes');
  }
}

class Socket {
  heardAtMs = Date.now();
  onMessage = () => {};
  #raw;
  #reader;
  #parts = null; // of a message that is being gathered
  #gathered = 0;
  #said = null; // {code, reason} of the close frame that was sent
  #close;
  #timer = null;
  #drained = null;
  #masks = Buffer.alloc(4096);
  #maskAt = 4096;

  constructor(raw, early, maxMessageBytes) {
    this.#raw = raw;
    this.#reader = new Reader(maxMessageBytes);
    this.closed = new Promise((resolve) => (this.#close = resolve));
    raw.on('data', (data) => this.#onData(data));
    raw.on('drain', () => this.#wake());
    raw.on('end', () => raw.destroy());
    raw.on('close', () => this.#over(1006, 'the connection broke'));
    // Once there is a listener.
    if (early.length) setImmediate(() => this.#onData(early));
  }

  send(text) {
    if (!this.#said) this.#frame(TEXT, Buffer.from(text, 'utf8'));
  }

  /** When there is room again; at once if there is, or the connection is gone. */
  drained() {
    if (this.#raw.destroyed || this.#raw.writableLength < HIGH_WATER)
      return Promise.resolve();
    this.#drained ??= {};
    this.#drained.promise ??= new Promise(
      (resolve) => (this.#drained.resolve = resolve),
    );
    return this.#drained.promise;
  }

  ping() {
    if (!this.#said) this.#frame(PING, Buffer.alloc(0));
  }

  close(code = 1000, reason = '') {
    if (this.#said) return;
    this.#sayClose(code, reason);
    this.#timer = setTimeout(() => this.destroy(), CLOSE_MS);
  }

  destroy() {
    this.#raw.destroy();
    this.#over(1006, 'the connection was given up');
  }

  #over(code, reason) {
    clearTimeout(this.#timer);
    this.#wake();
    this.#close(this.#said ?? { code, reason });
  }

  #wake() {
    this.#drained?.resolve?.();
    this.#drained = null;
  }

  #mask() {
    if (this.#maskAt === this.#masks.length) {
      randomFillSync(this.#masks);
      this.#maskAt = 0;
    }
    this.#maskAt += 4;
    return this.#masks.subarray(this.#maskAt - 4, this.#maskAt);
  }

  #frame(opcode, payload) {
    const n = payload.length,
      more = n < 126 ? 0 : n < 65536 ? 2 : 8;
    const out = Buffer.allocUnsafe(2 + more + 4 + n),
      mask = this.#mask();
    const at = 6 + more;
    out[0] = 0x80 | opcode;
    out[1] = 0x80 | (more === 0 ? n : more === 2 ? 126 : 127);
    if (more === 2) out.writeUInt16BE(n, 2);
    if (more === 8) out.writeBigUInt64BE(BigInt(n), 2);
    mask.copy(out, 2 + more);
    for (let i = 0; i < n; i++) out[at + i] = payload[i] ^ mask[i & 3];
    this.#raw.write(out);
  }

  #sayClose(code, reason) {
    const body = Buffer.from('xx' + reason.slice(0, 40), 'utf8');
    body.writeUInt16BE(code, 0);
    this.#frame(CLOSE, code === 1005 ? Buffer.alloc(0) : body);
    this.#said = { code, reason };
  }

  #onData(data) {
    this.heardAtMs = Date.now();
    this.#reader.add(data);
    try {
      for (let f; (f = this.#reader.next(this.#gathered));) this.#onFrame(f);
    } catch (e) {
      if (!(e instanceof Broken)) throw e;
      if (!this.#said) this.#sayClose(e.code, e.message);
      this.#raw.destroySoon();
    }
  }

  #onFrame({ fin, opcode, payload }) {
    if (opcode === PING) {
      if (!this.#said) this.#frame(PONG, payload);
    } else if (opcode === CLOSE) {
      this.#onClose(payload);
    } else if (opcode !== PONG) {
      this.#onPart(fin, opcode, payload);
    }
  }

  #onPart(fin, opcode, payload) {
    if (opcode === BINARY) throw new Broken(1003, 'only text is spoken here');
    if ((opcode === CONT) === (this.#parts === null))
      throw new Broken(1002, 'fragments out of order');
    this.#parts ??= [];
    this.#parts.push(payload);
    this.#gathered += payload.length;
    if (!fin) return;
    const whole =
      this.#parts.length === 1 ? payload : Buffer.concat(this.#parts);
    this.#parts = null;
    this.#gathered = 0;
    let text;
    try {
      text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(
        whole,
      );
    } catch {
      throw new Broken(1007, 'a text is not UTF-8');
    }
    this.onMessage(text);
  }

  #onClose(payload) {
    const code = payload.length >= 2 ? payload.readUInt16BE(0) : 1005;
    const reason = payload.subarray(2).toString('utf8');
    if (!this.#said) this.#sayClose(code, '');
    this.#said = { code, reason };
    this.#raw.end();
    this.#timer ??= setTimeout(() => this.destroy(), CLOSE_MS);
  }
}
