// The npm package `ws` as a peer of the tests. As an echo:
//
//   node ws_npm.js serve [--cert FILE --key FILE]
//   node ws_npm.js dial-echo URL [--ca FILE]
//
//   node ws_npm.js hear-close URL [--ca FILE]    sends one message first
//
// and as the one who sends, compares what comes back, and closes:
//
//   node ws_npm.js drive URL [--ca FILE] [--protocol NAME]
//   node ws_npm.js drive-server [--cert FILE --key FILE]
//
// with --code N for the close and --deflate no where permessage-deflate is not
// to be offered.
//
// A server prints `listening URL`. Who drives prints a line for each thing it
// tried, and ends with status 1 if any was not as it must be.
'use strict';
const assert = require('assert');
const fs = require('fs');
const http = require('http');
const https = require('https');
const { once } = require('events');
const WebSocket = require('ws');

const [mode, ...rest] = process.argv.slice(2);
const options = {};
const names = [];
while (rest.length) {
  const word = rest.shift();
  if (word.startsWith('--')) options[word.slice(2)] = rest.shift();
  else names.push(word);
}

const MAX_PAYLOAD = Number(options['max-message'] || 4 * 1024 * 1024);

function echo(ws) {
  ws.on('message', (data, isBinary) => ws.send(data, { binary: isBinary }));
  ws.on('error', () => {}); // its close says why
}

// A server whose WebSockets go to each(). It offers permessage-deflate, which
// is no one's duty to accept.
function listen(each) {
  const server = options.cert
    ? https.createServer({ cert: fs.readFileSync(options.cert),
                           key: fs.readFileSync(options.key) })
    : http.createServer((rq, rs) => { rs.statusCode = 426; rs.end(); });
  const sockets = new WebSocket.Server({
    server, maxPayload: MAX_PAYLOAD,
    perMessageDeflate: options.deflate !== 'no',
    path: options.path,
    handleProtocols: (asked) => asked.has('echo') ? 'echo' : false });
  sockets.on('connection', each);
  server.listen(0, '127.0.0.1', () => {
    const scheme = options.cert ? 'wss' : 'ws';
    console.log(`listening ${scheme}://127.0.0.1:${server.address().port}`);
  });
}

function dial() {
  return new WebSocket(names[0], options.protocol ? [options.protocol] : [], {
    ca: options.ca && fs.readFileSync(options.ca),
    perMessageDeflate: options.deflate !== 'no',
    maxPayload: MAX_PAYLOAD });
}

// What comes, in order, as promises.
class Inbox {
  constructor(ws) {
    this.come = [];
    this.waiting = [];
    ws.on('message', (data, isBinary) => this.put({ data, isBinary }));
    ws.on('pong', (data) => this.put({ pong: data.toString() }));
    ws.on('close', (code, reason) =>
      this.put({ code, reason: reason.toString() }));
    ws.on('error', (error) => this.put({ error: String(error) }));
  }

  put(event) {
    if (this.waiting.length) this.waiting.shift()(event);
    else this.come.push(event);
  }

  next() {
    if (this.come.length) return Promise.resolve(this.come.shift());
    return new Promise((resolve) => this.waiting.push(resolve));
  }
}

async function sameComesBack(ws, inbox, what, message) {
  ws.send(message);
  const got = await inbox.next();
  assert.deepStrictEqual(Object.keys(got), ['data', 'isBinary'], String(got));
  assert.strictEqual(got.isBinary, typeof message !== 'string', what);
  assert.ok(got.data.equals(Buffer.from(message)), what);
  console.log(what);
}

async function fragmentsComeBack(ws, inbox, what, parts) {
  parts.forEach((part, i) =>
    ws.send(part, { fin: i === parts.length - 1 }));
  const got = await inbox.next();
  const joined = Buffer.concat(parts.map((part) => Buffer.from(part)));
  assert.ok(got.data.equals(joined), what);
  console.log(what);
}

async function drive(ws) {
  const inbox = new Inbox(ws);
  if (ws.readyState === WebSocket.CONNECTING) await once(ws, 'open');
  assert.strictEqual(ws.extensions, '');
  console.log('no extension');
  if (options.protocol) {
    assert.strictEqual(ws.protocol, options.protocol);
    console.log(`protocol ${ws.protocol}`);
  }
  const text = 'Grüße €😀 ';
  await sameComesBack(ws, inbox, 'text', text);
  await sameComesBack(ws, inbox, 'empty text', '');
  await sameComesBack(ws, inbox, 'binary', Buffer.from([0, 255, 128, 1]));
  await sameComesBack(ws, inbox, 'empty binary', Buffer.alloc(0));
  for (const size of [125, 126, 65535, 65536, 65537, 1 << 20]) {
    await sameComesBack(ws, inbox, `text of ${size}`, 'x'.repeat(size));
    await sameComesBack(ws, inbox, `binary of ${size}`,
                        Buffer.alloc(size, 0xfe));
  }
  await fragmentsComeBack(ws, inbox, 'fragments', ['a', 'b', 'c']);
  await fragmentsComeBack(ws, inbox, 'fragments of binary',
                          [Buffer.alloc(70000, 1), Buffer.alloc(70000, 2)]);
  ws.ping('are you there');
  assert.deepStrictEqual(await inbox.next(), { pong: 'are you there' });
  console.log('pong');
  for (let i = 0; i < 500; i++) ws.send(`${i}`);
  for (let i = 0; i < 500; i++)
    assert.strictEqual((await inbox.next()).data.toString(), `${i}`);
  console.log('500 in a row');
  const code = Number(options.code || 4321);
  ws.close(code, 'that was all');
  assert.strictEqual((await inbox.next()).code, code);
  console.log(`closed with ${code}`);
}

function orFail(promise) {
  promise.then(() => process.exit(0), (error) => {
    console.log(`FAILED ${error.stack}`);
    process.exit(1);
  });
}

const modes = {
  'serve': () => listen(echo),
  'dial-echo': () => {
    const ws = dial();
    echo(ws);
    ws.on('close', (code, reason) => console.log(`closed ${code} ${reason}`));
  },
  'hear-close': () => {
    const ws = dial();
    ws.on('open', () => ws.send('please'));
    ws.on('close', (code, reason) => console.log(`closed ${code} ${reason}`));
  },
  'drive': () => orFail(drive(dial())),
  'drive-server': () => listen((ws) => orFail(drive(ws))),
};
process.on('SIGTERM', () => process.exit(0));
modes[mode]();
