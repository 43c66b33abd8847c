// The hub that bench_ws measures against: the `ws` package and nothing in
// between. ws_hub.c is the same over our own net.
//
//     /echo        every message comes back
//     /hub?name=N  a message goes to the agent that its params.agent_id names
'use strict';
const { WebSocketServer } = require(process.argv[2]);

const guests = new Map();

function forward(data, isBinary) {
  const to = guests.get(JSON.parse(data).params.agent_id);
  to.send(data, { binary: isBinary });
}

const server = new WebSocketServer({
  host: '127.0.0.1',
  port: 0,
  perMessageDeflate: false,
  maxPayload: 2 * 1024 * 1024,
});
server.on('connection', (socket, request) => {
  const url = new URL(request.url, 'http://hub');
  if (url.pathname === '/hub') {
    const name = url.searchParams.get('name');
    guests.set(name, socket);
    socket.on('close', () => guests.delete(name));
    socket.on('message', forward);
    return;
  }
  socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }));
});
server.on('listening', () => {
  console.log(`listening ws://127.0.0.1:${server.address().port}`);
});
