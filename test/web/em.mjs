// The four agents of examples/em on a server of their own: Jay, Z, Rick and
// Leroy, as they are shipped. `die` and `rise` are a name and Enter, where they
// run.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import readline from 'node:readline';
import { eventually, stage } from './stage.mjs';

const source = process.env.SIGNALBOX_SOURCE ?? path.join(import.meta.dirname, '../..');
const EM = path.join(source, 'examples/em');
const NAMES = ['Jay', 'Z', 'Rick', 'Leroy'];

const children = new Set();
process.on('exit', () => children.forEach((child) => child.kill('SIGKILL')));

// isDemo: beside the agents of the demo.
export async function em({ isDemo = false, pace = 0 } = {}) {
  const rules = path.join(EM, 'routing_rules.json');
  const server = await stage(isDemo ? { agents: 'demo', pace, args: ['--set', `rules=${rules}`, ...webFolder()] }
    : { agents: { rules }, args: webFolder() });
  const child = spawn('python3', [path.join(EM, 'agents.py')], {
    stdio: ['pipe', 'pipe', 'inherit'], env: { ...process.env, SIGNALBOX_URL: server.url,
      SIGNALBOX_TOKEN: server.token } });
  children.add(child);
  readline.createInterface({ input: child.stdout }).on('line', () => {});
  const state = async (name) => (await server.api('GET', `/api/agents/${name}`)).body.state;
  const type = (name) => child.stdin.write(`${name}\n`);
  const stop = server.stop;
  server.stop = async () => {
    child.stdin.end();
    child.kill('SIGKILL');
    await Promise.race([once(child, 'exit'), child.exitCode ?? child.signalCode ?? new Promise(() => {})]);
    await stop();
  };
  await eventually(async () => (await Promise.all(NAMES.map(state))).every((s) => s === 'IDLE' || s === 'ACTIVE'),
    'all four are here');
  await eventually(async () => dataOf(await server.ask('GET', '/api/gate/graph'), 'Z'),
    'Z has said how old its data is');
  return Object.assign(server, {
    die: async (name) => { type(name); await eventually(async () => await state(name) === 'DEAD', `${name} is dead`); },
    rise: async (name) => { type(name); await eventually(async () => await state(name) !== 'DEAD',
      `${name} is back`); },
    // One of the envelopes that are shipped, changed a little: what was decided.
    envelope: (name, more = {}) => server.ask('POST', '/api/envelopes', { ...shipped(name), ...more }),
  });
}

const dataOf = ({ nodes }, name) => nodes.find((n) => n.agent === name)?.data_at_ms;

// Without its time: it is of now.
function shipped(name) {
  const { timestamp, ...rest } = JSON.parse(fs.readFileSync(path.join(EM, 'envelopes', `${name}.json`), 'utf8'));
  return rest;
}

// While a page is being worked on: WEB_FOLDER=web serves it from the disk.
export function webFolder() {
  return process.env.WEB_FOLDER ? ['--set', `web.folder=${path.resolve(process.env.WEB_FOLDER)}`] : [];
}
