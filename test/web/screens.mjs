// `make screens`: the pictures of docs/screens, from a server on which something
// has happened. Its agents take their time, so that there is something to see.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { stage, test } from './stage.mjs';
import { pagesOf, see, talk, tokenOf, town } from './town.mjs';

const source = process.env.SIGNALBOX_SOURCE ?? path.join(import.meta.dirname, '../..');
const { connect } = await import(pathToFileURL(path.join(source, 'client/js/signalbox.js')));
const folder = path.join(source, 'docs/screens');
const MOST_BYTES = 180 * 1024;
fs.mkdirSync(folder, { recursive: true });

// The playground as a newcomer finds it.
const demo = await stage({ agents: 'demo', pace: 10 });
const server = await town({ pace: 10 });

// Types of query are learnt from what people say of decisions; what comes after
// that is of one of them.
for (const [i, { decision }] of server.sent.entries())
  if (i !== 10 && i !== 7)
    await server.ask('POST', `/api/decisions/${decision.id}/feedback`, { verdict: 'right' },
      { token: tokenOf(server.people, i) });
for (const round of [2, 3])
  await talk(server, server.people, round);

// One that has others do its work, each for a price.
const takes = (ms, text) => () => new Promise((done) => { setTimeout(done, ms, text); });
async function agent(name, description, micros, work) {
  const hub = await connect({ url: server.url, token: server.token, log: () => {} });
  const skills = [{ id: 'work', name: 'Work', description, pricing: { amount_micros: micros } }];
  await hub.register({ name, description, skills, visibility: 'public' }, work);
}
await agent('translator', 'Translates contracts', 120_000, takes(900, 'Der Vertrag …'));
await agent('lawyer', 'Checks contracts', 400_000, takes(500, 'Clause 7 is unusual.'));
await agent('proofreader', 'Reads translations again', 60_000, takes(350, 'Two commas.'));
await agent('concierge', 'Has things done by others', 50_000, async (task) => {
  const ask = (to, what) => task.delegate(to, 'work', what);
  const [text] = await Promise.all([ask('translator', 'translate the contract into German'),
    ask('lawyer', 'is there anything unusual in it?')]);
  await ask('proofreader', 'read this once more');
  return text.text;
});
await server.ask('POST', '/api/ledger/topup', { user: 'admin', amount_micros: 50_000_000, note: 'invoice 4700',
  idempotency_key: 'screens' });
const contract = await server.ask('POST', '/api/messages',
  { text: 'Translate this contract into German, and tell me if anything in it is unusual',
    executor: { name: 'concierge' }, wait_ms: 60_000 });

async function picture(page, name) {
  const file = path.join(folder, `${name}.png`);
  await page.screenshot({ path: file, animations: 'disabled', caret: 'hide' });
  const { size } = fs.statSync(file);
  assert.ok(size < MOST_BYTES, `${name}.png has ${size} bytes`);
}

// A message with all that were compared for it, and what became of it.
for (const [name, wishes] of [
  ['playground', { height: 720 }],
  ['playground-dark', { height: 720, theme: 'dark' }],
  ['playground-phone', { width: 360, height: 740 }],
]) {
  test(name, async () => {
    const page = await demo.newPage({ ...wishes, at: '#/playground' });
    const message = page.getByLabel('Message', { exact: true });
    await message.fill('draft a blog post about office trends, with facts');
    await page.getByText('would go to').waitFor();
    await message.press('Enter');
    await page.getByRole('listitem', { name: 'A message and its answer' }).getByText('completed').waitFor();
    await picture(page, name);
  });
}

const other = (name) => pagesOf(server).find(([id]) => id === name);
for (const [name, page, height] of [
  ['feed', other('feed'), 760],
  ['agents', other('agents'), 640],
  ['decisions', other('decision'), 740],
  ['holds', other('hold'), 820],
  ['delegations', ['', `#/delegations/${contract.task_id}`, 'main .timeline'], 560],
  ['analytics', other('analytics-types'), 860],
]) {
  test(name, async () => {
    const view = await server.newPage({ height });
    await see(view, server, page);
    await picture(view, name);
  });
}
