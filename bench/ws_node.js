// The hub that bench_ws measures against: the `ws` package and nothing in
// between. /echo sends every message back; /forward?pair=N joins two
// connections, and what one sends the other gets, byte for byte.
'use strict';
const { WebSocketServer } = require(process.argv[2]);

const pairs = new Map();

function join(socket, pair) {
  const other = pairs.get(pair);
  if (!other) {
    pairs.set(pair, socket);
    return;
  }
  pairs.delete(pair);
  other.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }));
  socket.on('message', (data, isBinary) => other.send(data, { binary: isBinary }));
}

const server = new WebSocketServer({
  host: '127.0.0.1',
  port: 0,
  perMessageDeflate: false,
  maxPayload: 2 * 1024 * 1024,
});
server.on('connection', (socket, request) => {
  const url = new URL(request.url, 'http://hub');
  if (url.pathname === '/forward') {
    join(socket, url.searchParams.get('pair'));
    return;
  }
  socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }));
});
server.on('listening', () => {
  console.log(`listening ws://127.0.0.1:${server.address().port}`);
});
