// The real server as a child, in a folder of its own, on a free port.
//
//     const server = await serve({ agents: 'demo' });
//     const { status, body } = await server.api('GET', '/api/agents');
//     await server.restart();   // the same port and data
//     await server.stop();      // must end well
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import readline from 'node:readline';

const BINARY = process.env.SIGNALBOX_BIN ?? process.env.SIGNALBOX;
const DEADLINE_MS = 60_000;
const SHM = '/dev/shm';
const SHM_BYTES = 2 ** 31;

// In memory where there is room: what a disk keeps is for test/crash to say.
function temporary() {
  const shm = fs.statfsSync(SHM, { bigint: false, throwIfNoEntry: false });
  const roomy = shm && shm.bavail * shm.bsize > SHM_BYTES;
  return fs.mkdtempSync(path.join(roomy ? SHM : os.tmpdir(), 'signalbox-web-'));
}

function environment() {
  const mine = ([name]) => !name.startsWith('SIGNALBOX') && !name.startsWith('OPENAI_');
  return Object.fromEntries(Object.entries(process.env).filter(mine));
}

// The command line for what is asked: the demo, or a server of one's own, whose
// configuration is an object, a list of agents, or nothing.
function command(folder, agents, pace) {
  if (agents === 'demo')
    return ['demo', '--json', '--pace', String(pace), '--data', path.join(folder, 'data')];
  const line = ['serve', '--json', '--data', path.join(folder, 'data')];
  if (!agents)
    return line;
  const config = Array.isArray(agents) ? { agents: { list: agents } } : agents;
  const file = path.join(folder, 'test.jsonc');
  fs.writeFileSync(file, JSON.stringify(config));
  return [...line, '--config', file];
}

// None outlives the test, however that ends.
const children = new Set();
process.on('exit', () => children.forEach((child) => child.kill('SIGKILL')));

class Server {
  #child;
  #ended;
  #line;

  constructor(folder, line) {
    this.folder = folder;
    this.#line = line;
  }

  async start(listen = '127.0.0.1:0') {
    const errors = fs.openSync(path.join(this.folder, 'stderr'), 'a');
    this.#child = spawn(BINARY, [...this.#line, '--set', `listen=${listen}`],
      { cwd: this.folder, env: environment(), stdio: ['ignore', 'pipe', errors] });
    fs.closeSync(errors);
    const child = this.#child;
    children.add(child);
    this.#ended = once(child, 'exit').finally(() => children.delete(child));
    const said = await this.#listening();
    this.url = said.url;
    this.token ??= said.token;
    return this;
  }

  // The one line it prints once it can be reached.
  async #listening() {
    const lines = readline.createInterface({ input: this.#child.stdout });
    const late = AbortSignal.timeout(DEADLINE_MS);
    const line = await Promise.race([
      once(lines, 'line', { signal: late }).then(([text]) => text, () => null),
      this.#ended.then(() => null),
    ]);
    lines.close();
    this.#child.stdout.resume();
    if (line === null)
      throw new Error(`the server did not start: ${this.said()}`);
    return JSON.parse(line);
  }

  said() {
    return fs.readFileSync(path.join(this.folder, 'stderr'), 'utf8');
  }

  // One call of the API; token: null sends none.
  async api(method, to, body, { token = this.token, headers = {} } = {}) {
    const answer = await fetch(this.url + to, {
      method,
      headers: {
        ...(token && { authorization: `Bearer ${token}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: AbortSignal.timeout(DEADLINE_MS),
    });
    const text = await answer.text();
    const kind = answer.headers.get('content-type') ?? '';
    return {
      status: answer.status,
      headers: answer.headers,
      body: text && kind.includes('json') ? JSON.parse(text) : text,
    };
  }

  // The same, where anything but success is a mistake of the test: the body.
  async ask(method, to, body, options) {
    const answer = await this.api(method, to, body, options);
    if (answer.status >= 300)
      throw new Error(`${method} ${to}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  }

  // A new user with a token of its own: the token.
  async user(name, fields = {}) {
    await this.ask('POST', '/api/users', { name, role: 'user', ...fields });
    return (await this.ask('POST', '/api/tokens', { user: name })).token;
  }

  get isRunning() {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  // As a crash would end it.
  async kill9() {
    if (this.isRunning)
      this.#child.kill('SIGKILL');
    await this.#ended;
  }

  async #end() {
    this.#child.kill('SIGTERM');
    const [status, signal] = await this.#ended;
    if (status !== 0)
      throw new Error(`the server ended with ${status ?? signal}: ${this.said()}`);
  }

  // Again with the same data and at the same address, where pages look for it.
  async restart() {
    if (this.isRunning)
      await this.#end();
    return this.start(new URL(this.url).host);
  }

  async stop() {
    try {
      if (this.isRunning)
        await this.#end();
    } finally {
      await this.kill9();
      fs.rmSync(this.folder, { recursive: true, force: true });
    }
  }
}

// pace: how long the demo's agents take, in percent.
export async function serve({ agents, args = [], pace = 0 } = {}) {
  const folder = temporary();
  const server = new Server(folder, [...command(folder, agents, pace), ...args]);
  try {
    return await server.start();
  } catch (e) {
    await server.kill9();
    fs.rmSync(folder, { recursive: true, force: true });
    throw e;
  }
}
