// The server that bench_http measures against: Node's own http module, nothing
// in between, answering what our /healthz answers, byte for byte.
'use strict';
const http = require('http');

const started = process.hrtime.bigint();

const server = http.createServer((request, response) => {
  if (request.url !== '/healthz') {
    response.writeHead(404).end();
    return;
  }
  const uptime = (process.hrtime.bigint() - started) / 1000000n;
  const body = `{"status":"ok","version":"0.1.0","uptime_ms":${uptime}}\n`;
  response.writeHead(200, {
    'Content-Type': 'application/json',
    'Content-Length': body.length,
  });
  response.end(body);
});

server.keepAliveTimeout = 75000; // our default, and said in every reply
server.listen(0, '127.0.0.1', () => {
  console.log(`{"url":"http://127.0.0.1:${server.address().port}"}`);
});
