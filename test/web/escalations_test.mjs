// What else a person must see: an agent that is dead, with one that stands in
// for it, and an answer that is late.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { axe, eventually, shot, stage, test } from './stage.mjs';
import { webFolder } from './em.mjs';

const source = process.env.SIGNALBOX_SOURCE ?? path.join(import.meta.dirname, '../..');
const { connect } = await import(pathToFileURL(path.join(source, 'client/js/signalbox.js')));

const RULES = {
  agents: { Ada: { restart: { attempts: 0 }, backup: 'Bea' }, Bea: {}, slow: {} },
  sla: [{ rule: 'soon', match: { to: 'slow' }, within: '10ms' }],
};
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'signalbox-rules-'));
const rules = path.join(folder, 'rules.json');
fs.writeFileSync(rules, JSON.stringify(RULES));
process.on('exit', () => fs.rmSync(folder, { recursive: true, force: true }));
const server = await stage({ agents: { rules, agents: { list: [{ id: 'Bea', url: 'echo:' },
  { id: 'slow', url: 'echo:3600000' }] } }, args: webFolder() });

const statusOf = async (task) => (await server.ask('GET', `/api/tasks/${task}`)).status;
const ada = () => connect({ url: server.url, token: server.token, log: () => {} }).then(async (hub) => {
  await hub.register({ name: 'Ada', description: 'counts' }, async () => 'counted');
  return hub;
});
let n = 0;
const ask = async (to) => server.ask('POST', '/api/envelopes',
  { to, type: 'COUNT', reference: `C-${++n}`, context: 'how many are they?' });
const one = (task) => server.ask('GET', `/api/escalations?task_id=${task}`).then(({ items }) => items[0]);

async function dead() {
  const hub = await ada();
  await hub.close();
  await eventually(async () => (await server.ask('GET', '/api/agents/Ada')).state === 'DEAD', 'Ada is dead');
  const sent = await ask('Ada');
  assert.equal(sent.routing_decision, 'ESCALATE_TO_HUMAN');
  await eventually(async () => (await one(sent.task_id)).offer === 'Bea', 'Bea is offered');
  return sent;
}

test('who stands in for a dead agent is offered, and has it with two clicks', async () => {
  const { task_id: task, escalation_id: id } = await dead();
  const page = await server.newPage({ at: `#/escalations/${id}`, height: 900 });
  await page.getByText('The agent of this message is dead.').waitFor();
  await page.getByText('is the backup of').first().waitFor();
  await page.getByRole('button', { name: 'Redirect it' }).click();
  assert.equal(await page.getByLabel('Another agent').inputValue(), 'Bea');
  await page.getByRole('button', { name: /^Bea/ }).waitFor();
  await shot(page, 'escalation-dead');
  await axe(page);
  await page.getByRole('button', { name: 'Redirect it' }).click();
  await page.getByText('Redirected to Bea.').waitFor();
  await eventually(async () => await statusOf(task) === 'completed', 'Bea did it');
});

test('an agent that comes back resolves it by itself, and the page says so', async () => {
  const { escalation_id: id } = await dead();
  const page = await server.newPage({ at: `#/escalations/${id}` });
  await page.getByRole('button', { name: 'Approve' }).waitFor();
  const hub = await ada();
  await page.getByRole('alert').getByText(/Signalbox resolved it/).waitFor();
  await hub.close();
});

test('an answer that is late was seen, and the work goes on', async () => {
  const { task_id: task } = await ask('slow');
  await eventually(() => one(task), 'someone is told');
  const page = await server.newPage({ at: `#/tasks/${task}` });
  await page.getByRole('link', { name: 'decide it' }).click();
  await page.getByText('not answered in time').waitFor();
  await page.getByRole('button', { name: 'Acknowledge' }).click();
  await page.getByRole('heading', { name: 'Decided' }).waitFor();
  assert.equal((await one(task)).status, 'approved');
  assert.equal(await statusOf(task), 'working');
});
