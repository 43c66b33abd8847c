// The hub that bench_hub measures against: the `ws` package, a map of agents
// and a map of tasks, and nothing that outlives the process.
//
//     /agent?name=N  takes the tasks of N: task.execute; says task.chunk and
//                    task.result
//     /user          sends message.send, hears of its tasks
'use strict';
const { WebSocketServer } = require(process.argv[2]);

const agents = new Map();
const tasks = new Map();
let nTasks = 0;

function fromUser(socket, m) {
  const id = `task_${String(++nTasks).padStart(26, '0')}`;
  const agent = agents.get(m.params.executor.name);
  tasks.set(id, socket);
  agent.send(JSON.stringify({
    jsonrpc: '2.0',
    id: `${id}:1`,
    method: 'task.execute',
    params: { task_id: id, turn: 1, attempt: 1, message: m.params.text },
  }));
  socket.send(JSON.stringify({
    jsonrpc: '2.0', id: m.id, result: { task_id: id, status: 'queued' },
  }));
}

function fromAgent(socket, m, data) {
  if (!m.method) return; // an acknowledgement
  tasks.get(m.params.task_id).send(data, { binary: false });
  if (m.method !== 'task.result') return;
  tasks.delete(m.params.task_id);
  socket.send(JSON.stringify({ jsonrpc: '2.0', id: m.id, result: { recorded: true } }));
}

const server = new WebSocketServer({
  host: '127.0.0.1',
  port: 0,
  perMessageDeflate: false,
  maxPayload: 2 * 1024 * 1024,
});
server.on('connection', (socket, request) => {
  const url = new URL(request.url, 'http://hub');
  if (url.pathname === '/agent') {
    agents.set(url.searchParams.get('name'), socket);
    socket.on('message', (data) => fromAgent(socket, JSON.parse(data), data));
  } else {
    socket.on('message', (data) => fromUser(socket, JSON.parse(data)));
  }
});
server.on('listening', () => {
  console.log(`listening ws://127.0.0.1:${server.address().port}`);
});
