// Holds and escalations, with the agents of examples/em: what waits and for
// what, and everything that a person may do about it.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { allow, axe, eventually, shot, stage, test } from './stage.mjs';
import { em, webFolder } from './em.mjs';

const server = await em();
const ann = await server.user('ann', { role: 'admin' });
let n = 0;
const about = () => `SUBM-C${String(++n).padStart(3, '0')}`;

// A payload of its own each time: no rule shall take it for the one before.
const envelope = (name, reference, more = {}) => server.envelope(name, {
  reference, payload: { consultant_id: reference, end_client: 'Contoso', vendor: 'TrueBlue', ...more.payload } });
const notSure = (reference) => envelope('5-not-sure', reference, { payload: { confidence_score: 4.1 } });
const statusOf = async (task) => (await server.ask('GET', `/api/tasks/${task}`)).status;

test('where nothing waits, the page says what will and how', async () => {
  const page = await server.newPage({ at: '#/holds' });
  await page.getByText('No messages on hold').waitFor();
  await page.getByText('build/signalbox send --envelope examples/em/envelopes/1-too-early.json').waitFor();
  await axe(page);
  await page.getByRole('tab', { name: 'Open escalations' }).click();
  await page.getByText('No open escalations').waitFor();
  await page.getByRole('tab', { name: 'Decided' }).click();
  await page.getByText('No decided escalations').waitFor();
  assert.equal(await page.getByText('signalbox serve').count(), 0); // these rules are here already
});

test('without rules it says that nothing will wait here, and where it would', async () => {
  const plain = await stage({ args: webFolder() });
  for (const [tab, title, file] of [['waiting', 'No messages on hold', '1-too-early'],
    ['decide', 'No open escalations', '5-not-sure'], ['rules', 'No rules that hold messages', '']]) {
    const page = await plain.newPage({ at: `#/holds?tab=${tab}`, height: 1000 });
    await page.getByText(title).waitFor();
    await page.getByText(`This server (${new URL(plain.url).host}) has no rules`).waitFor();
    await page.getByText('build/signalbox serve --config examples/em/signalbox.jsonc --listen 127.0.0.1:8790',
      { exact: true }).waitFor();
    await page.getByText('export SIGNALBOX_URL=http://127.0.0.1:8790 SIGNALBOX_TOKEN=', { exact: false }).waitFor();
    if (file) await page.getByText(`build/signalbox send --envelope examples/em/envelopes/${file}.json`,
      { exact: true }).waitFor();
    await shot(page, `holds-none-${tab}`);
    await axe(page);
  }
});

test('who sees nothing of it is told that nothing waits, in the menu too', async () => {
  const { task_id: task } = await envelope('1-too-early', about());
  await notSure(about());
  const own = await server.newPage({ at: '#/holds' });
  await own.getByRole('link', { name: 'Holds' }).getByTitle('1 held, 1 to decide').waitFor();
  const page = await server.newPage({ token: await server.user('carl'), at: '#/holds' });
  await page.getByText('No messages on hold').waitFor();
  const figures = page.getByRole('group', { name: 'Figures of your messages' });
  assert.match(await figures.innerText(), /^0\s+on hold\s+0\s+open escalations$/);
  assert.equal(await page.getByRole('link', { name: 'Holds' }).innerText(), 'Holds');
  await shot(page, 'holds-carl');
  await server.ask('POST', `/api/tasks/${task}/cancel`);
  const { items: [asked] } = await server.ask('GET', '/api/escalations?status=open');
  await server.ask('POST', `/api/escalations/${asked.id}/approve`, {});
});

test('what waits is shown with its time, and goes when all has happened', async () => {
  const page = await server.newPage({ at: '#/holds', height: 1000 });
  const reference = about();
  const { task_id: task } = await envelope('1-too-early', reference);
  const row = page.getByRole('row').filter({ hasText: reference });
  await row.getByText('s of 30 min').waitFor();
  await row.getByText('SUBMISSION for').waitFor();
  await row.getByText('then it is escalated').waitFor();
  await shot(page, 'holds');
  await row.click();
  await page.getByRole('heading', { name: 'Held message' }).waitFor();
  const entry = (words) => page.getByRole('listitem').filter({ hasText: words });
  await entry('SUBMISSION from Jay').getByText('blocking').waitFor();
  await entry('RESULT from Z that approves').getByText('blocking').waitFor();
  await entry('Z is not ERROR or DEAD').getByText('met').first().waitFor();
  assert.equal(await page.locator('svg.graph .graph-line.is-blocking').count(), 2);
  await axe(page);
  // Z approves: one of the two is met, by a task that the page leads to.
  const asked = await envelope('2-request', reference, { payload: { confidence_score: 8.2 } });
  await entry('RESULT from Z that approves').getByRole('link', { name: asked.task_id.slice(-6) }).waitFor();
  assert.equal(await page.locator('svg.graph .graph-line.is-blocking').count(), 1);
  await shot(page, 'hold-blocked');
  await envelope('3-submission', reference);
  await page.getByText('It is no longer on hold').waitFor();
  await eventually(async () => await statusOf(task) === 'completed', 'it was done');
});

// Figures that the page is told, where a day of real ones cannot be waited for.
test('the gate’s figures stand beside their targets, in and off them', async () => {
  const page = await server.newPage();
  const real = await server.ask('GET', '/api/gate');
  const boxes = page.getByRole('group', { name: 'Figures of the gate' }).locator('.figure-box');
  const told = (hold, escalations) => ({ ...real, now: { ...real.now, held: 7, escalations_open: 3 },
    figures: { ...real.figures, hold_ms: { ...real.figures.hold_ms, ...hold },
      escalations_per_day: { ...real.figures.escalations_per_day, ...escalations } } });
  const see = async (gate, words) => {
    await page.unroute('**/api/gate');
    await page.route('**/api/gate', (route) => route.fulfill({ json: gate }));
    await page.goto(`${server.url}/#/playground`);
    await boxes.first().waitFor({ state: 'detached' }); // those of before
    await page.goto(`${server.url}/#/holds`);
    await boxes.nth(3).waitFor();
    assert.deepEqual((await boxes.allInnerTexts()).map((t) => t.replace(/\s+/g, ' ').trim())
      .map((t) => words.find((w) => w.test(t))?.source ?? t), words.map((w) => w.source));
  };
  await see(told({ holds: 4, value: 60000, target: 1800000, is_met: true }, { value: 9, target: 5, is_met: false }),
    [/^7 on hold/, /^3 open escalations/, /^1 min mean hold.* ✓ met .*30 min/, /^9 escalations.* ✗ missed .*5$/]);
  await see(told({ holds: 4, value: 3600000, target: 1800000, is_met: false }, { value: 2, target: 5, is_met: true }),
    [/^7 on hold/, /^3 open escalations/, /^1 h mean hold.* ✗ missed .*30 min/, /^2 escalations.* ✓ met .*5$/]);
  await see(told({ holds: 0, value: 0, target: 1800000, is_met: true }, { value: 0, target: 5, is_met: true }),
    [/^7 on hold/, /^3 open escalations/, /^– mean hold, 24 h none yet .*30 min/, /^0 escalations.* ✓ met .*5$/]);
});

test('how much of its time a hold has taken is drawn, also when that is over', async () => {
  const held = await envelope('1-too-early', about());
  const { items } = await server.ask('GET', '/api/holds');
  const hold = items.find((h) => h.task_id === held.task_id);
  const page = await server.newPage();
  const shares = { 'is-a': 0.5, 'is-b': 0.8, 'is-c': 1.5 };
  const rows = Object.entries(shares).map(([task, share]) =>
    ({ ...hold, task_id: task, reference: task, sla_ms: 4 * 3600e3, since_ms: Date.now() - share * 4 * 3600e3 }));
  await page.route('**/api/holds?*', (route) => route.fulfill({ json: { items: rows, next_cursor: null } }));
  await page.route('**/api/holds', (route) => route.fulfill({ json: { items: rows, next_cursor: null } }));
  await page.goto(`${server.url}/#/holds`);
  for (const [name, words, share, tone] of [['is-a', '2 h of 4 h', 0.5, 'accent'], ['is-b', '3 h of 4 h', 0.8, 'warn'],
    ['is-c', '6 h of 4 h, late', 1, 'bad']]) {
    const waited = page.getByRole('row').filter({ hasText: name }).locator('.waited');
    await waited.getByText(words, { exact: true }).waitFor();
    const [whole, part] = await waited.getByRole('img', { name: 'Waited' }).evaluate((bar) =>
      [bar, bar.firstElementChild].map((e) => e.getBoundingClientRect().width));
    assert.ok(Math.abs(part / whole - share) < 0.02, `${name}: ${part} of ${whole}`);
    assert.match(await waited.getByRole('img', { name: 'Waited' }).evaluate((bar) => bar.outerHTML),
      new RegExp(`\\b(tone-)?${tone}\\b`));
  }
});

test('a hold in the dark and on a phone', async () => {
  const reference = about();
  const { task_id: task } = await envelope('1-too-early', reference);
  for (const [name, wishes] of [['dark', { theme: 'dark', height: 1000 }], ['phone', { width: 360, height: 740 }]]) {
    const page = await server.newPage({ ...wishes, at: '#/holds' });
    await page.getByRole('row').filter({ hasText: reference }).waitFor();
    await shot(page, `holds-${name}`);
    await page.goto(`${server.url}/#/holds/${task}`);
    await page.getByText('blocking').first().waitFor();
    await shot(page, `hold-${name}`, { whole: true });
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
      'nothing to scroll sideways');
    await axe(page);
  }
});

test('what is held waits in the list of agents too', async () => {
  await envelope('1-too-early', about());
  const { items: [{ queued, held }] } = await server.ask('GET', '/api/fleet?names=Rick');
  assert.ok(held > 0);
  const page = await server.newPage({ at: '#/agents' });
  const row = page.getByRole('table', { name: 'Agents, by name' }).locator('.row')
    .filter({ has: page.getByText('Rick', { exact: true }) });
  await row.getByText(`${queued} + ${held} held`).waitFor();
});

// In case that something was not told: a hold is looked at again while it is open.
test('a hold that is looked at is asked about again', async () => {
  const { task_id: task } = await envelope('1-too-early', about());
  const page = await server.newPage();
  allow(page, /ERR_FAILED/);
  await page.route('**/api/feed*', (route) => route.abort());
  await page.clock.install();
  await page.goto(`${server.url}/#/holds/${task}`);
  await page.reload();
  await page.getByText('blocking').first().waitFor();
  let asked = 0;
  page.on('request', (r) => { asked += r.url().includes('/api/gate/graph'); });
  await page.clock.runFor(31_000);
  await eventually(() => asked > 0, 'it is asked about again');
});

test('one that waits is cancelled, after a question', async () => {
  const { task_id: task } = await envelope('1-too-early', about());
  const page = await server.newPage({ at: `#/holds/${task}` });
  await page.getByRole('button', { name: 'Cancel it' }).click();
  await page.getByRole('button', { name: 'Go back' }).click();
  assert.equal(await statusOf(task), 'held');
  await page.getByRole('button', { name: 'Cancel it' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel it' }).click();
  await page.getByText('The task was cancelled.').waitFor();
  assert.equal(await statusOf(task), 'cancelled');
  await page.getByText('It is no longer on hold').waitFor();
});

test('the safety gate: its agent is dead, and back', async () => {
  const page = await server.newPage({ at: '#/holds', height: 1000 });
  await server.die('Z');
  const reference = about();
  const { task_id: task, routing_decision: decision } = await envelope('6-another-submission', reference);
  assert.equal(decision, 'PAUSE_ALL_SUBMISSIONS');
  await page.getByRole('row').filter({ hasText: reference }).getByText('Z to be healthy again').waitFor();
  await page.goto(`${server.url}/#/holds/${task}`);
  await page.getByRole('listitem').filter({ hasText: 'Z is not ERROR or DEAD' }).getByText('blocking').waitFor();
  await page.locator('svg.graph .graph-agent.state-DEAD').first().waitFor();
  await shot(page, 'hold-gate');
  await server.rise('Z');
  await page.getByText('It is no longer on hold').waitFor();
});

// While the call that a button makes is on its way, it says so and takes no other click.
async function isBusyMeanwhile(page, button, call) {
  let asked = 0, go;
  const letGo = new Promise((next) => { go = next; });
  await page.route(call, async (route) => {
    asked += 1;
    await letGo;
    await route.continue();
  });
  await button.click();
  await eventually(() => asked === 1, 'it is asked');
  await button.and(page.locator('[aria-busy=true]:disabled')).waitFor();
  await button.evaluate((b) => b.click());
  go();
  await button.waitFor({ state: 'detached' });
  assert.equal(asked, 1);
}

test('approved with a comment, it goes on', async () => {
  const reference = about();
  const { task_id: task, escalation_id: id } = await notSure(reference);
  const page = await server.newPage({ at: '#/holds?tab=decide', height: 1000 });
  await page.getByRole('row').filter({ hasText: reference }).waitFor();
  await shot(page, 'escalations');
  await axe(page);
  await page.getByRole('row').filter({ hasText: reference }).click();
  await page.getByText('The posting says little about the team').waitFor();
  await page.getByText('the rule not-sure-enough says that a person must see it').waitFor();
  await page.getByText('confidence_score').waitFor();
  await page.getByRole('heading', { name: 'Dependencies' }).waitFor();
  await shot(page, 'escalation');
  await axe(page);
  await page.getByLabel('Comment').fill('the client knows');
  await isBusyMeanwhile(page, page.getByRole('button', { name: 'Approve' }), '**/approve');
  await page.getByText('Approved. The message continues.').waitFor();
  await page.getByRole('heading', { name: 'Decided' }).waitFor();
  const decided = await server.ask('GET', `/api/escalations/${id}`);
  assert.deepEqual([decided.status, decided.by, decided.comment], ['approved', 'admin', 'the client knows']);
  await eventually(async () => await statusOf(task) === 'completed', 'Z has answered');
  await page.goto(`${server.url}/#/holds?tab=decided`);
  const row = page.getByRole('row').filter({ hasText: reference });
  await row.getByText('approved').waitFor();
  await row.getByText('the client knows').waitFor();
  await page.getByLabel('Decision').selectOption('rejected');
  await page.getByText('No decided escalations').waitFor();
});

test('rejecting takes a reason', async () => {
  const { task_id: task, escalation_id: id } = await notSure(about());
  const page = await server.newPage({ at: `#/escalations/${id}` });
  await page.getByRole('button', { name: 'Reject' }).click();
  await page.getByText('Give a reason. The sender can read it.').waitFor();
  assert.equal(await statusOf(task), 'escalated');
  await page.getByLabel('Comment').fill('no\u202e sir <b>');
  await page.getByRole('button', { name: 'Reject' }).click();
  await page.getByRole('heading', { name: 'Decided' }).waitFor();
  await page.getByLabel('right-to-left override').waitFor();
  assert.equal(await statusOf(task), 'cancelled');
});

test('redirected to another agent, found by a part of its name', async () => {
  const { task_id: task, escalation_id: id } = await notSure(about());
  const page = await server.newPage({ at: `#/escalations/${id}` });
  allow(page, /40[04]/);
  await page.getByRole('button', { name: 'Redirect…' }).click();
  await page.getByRole('button', { name: 'Redirect it' }).click();
  await page.getByText('Choose an agent.').waitFor();
  await page.getByLabel('Another agent').fill('missing');
  await page.getByRole('button', { name: 'Redirect it' }).click();
  await page.getByRole('alert').getByText('missing').waitFor(); // the server's words
  await page.getByLabel('Another agent').fill('ler');
  await page.getByRole('button', { name: /^Leroy/ }).click();
  assert.equal(await page.getByRole('button', { name: /^(Jay|Z) / }).count(), 0); // who sent it, who has it
  await page.getByRole('button', { name: 'Redirect it' }).click();
  await page.getByText('Redirected to Leroy.').waitFor();
  await eventually(async () => await statusOf(task) === 'completed', 'Leroy took it');
  assert.equal((await server.ask('GET', `/api/tasks/${task}`)).agent, 'Leroy');
});

test('of two people the first decides, and the other is told', async () => {
  const { escalation_id: id } = await notSure(about());
  const page = await server.newPage();
  allow(page, /409/, /ERR_FAILED/);
  // No feed: that someone was first is told by the refusal alone.
  await page.route('**/api/feed*', (route) => route.abort());
  await page.goto(`${server.url}/#/escalations/${id}`);
  await page.reload();
  await page.getByRole('button', { name: 'Approve' }).waitFor();
  await server.ask('POST', `/api/escalations/${id}/reject`, { comment: 'I was first' }, { token: ann });
  await page.getByRole('button', { name: 'Approve' }).click();
  await page.getByRole('alert').getByText(/ann rejected it \d+ s ago: “I was first”/).waitFor();
  await page.getByRole('heading', { name: 'Decided' }).waitFor();
  await shot(page, 'escalation-other');
  assert.equal((await server.ask('GET', `/api/escalations/${id}`)).by, 'ann');
});

test('a page that is open learns by itself that somebody decided', async () => {
  const { escalation_id: id } = await notSure(about());
  const page = await server.newPage({ at: `#/escalations/${id}` });
  await page.getByRole('button', { name: 'Approve' }).waitFor();
  await server.ask('POST', `/api/escalations/${id}/approve`, {}, { token: ann });
  await page.getByRole('alert').getByText(/ann approved it/).waitFor();
});

test('in the dark, on a phone, and who may not decide', async () => {
  const { escalation_id: id } = await notSure(about());
  for (const [name, wishes] of [['dark', { theme: 'dark', height: 1000 }], ['phone', { width: 360, height: 740 }]]) {
    const page = await server.newPage({ ...wishes, at: `#/escalations/${id}` });
    await page.getByRole('heading', { name: 'Dependencies' }).waitFor();
    await shot(page, `escalation-${name}`, { whole: true });
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
      'nothing to scroll sideways');
    await axe(page);
  }
  const bob = await server.user('bob');
  await server.ask('PATCH', '/api/agents/Z', { visibility: 'public' });
  const his = await server.ask('POST', '/api/envelopes', { to: 'Z', type: 'REQUEST', payload: { confidence_score: 1 } },
    { token: bob });
  const page = await server.newPage({ token: bob, at: `#/escalations/${his.escalation_id}` });
  await page.getByText('which this token does not have').waitFor();
  assert.equal(await page.getByRole('button', { name: 'Approve' }).count(), 0);
});

test('the rules are drawn, and what has happened for a reference', async () => {
  const reference = about();
  await envelope('2-request', reference, { payload: { confidence_score: 8.2 } });
  const page = await server.newPage({ at: '#/holds?tab=rules', height: 1100 });
  await page.getByText('must arrive before SUBMISSION_REQUEST to Rick can go').first().waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type(reference);
  await page.keyboard.press('Enter');
  await page.getByRole('listitem').filter({ hasText: 'RESULT from Z that approves' }).getByText('met').first()
    .waitFor();
  await page.getByRole('listitem').filter({ hasText: 'SUBMISSION from Jay' }).getByText('not yet').waitFor();
  await shot(page, 'rules', { whole: true });
  await axe(page);
});

test('an escalation, a hold and a task that are not there say so', async () => {
  const none = 'task_01m7h2gvrnbb2f0vjkyep5dzn3';
  for (const [at, others] of [['#/escalations/esc_01m7h2gxmh5j0pmev5ah436hft', 'All open escalations'],
    [`#/holds/${none}`, 'All holds'], ['#/tasks/x', 'Feed'],
    [`#/delegations/${none}`, 'All delegations']]) {
    const page = await server.newPage();
    allow(page, /404/);
    await page.goto(`${server.url}/${at}`);
    await page.getByRole('alert').waitFor();
    assert.equal(await page.getByRole('button', { name: 'Try again' }).count(), 0); // it would not help
    await page.locator('#content').getByRole('link', { name: others }).waitFor();
  }
});

test('a target that is missed is said so, and one of nothing is not judged', async () => {
  const file = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'rules-')), 'rules.json');
  fs.writeFileSync(file, JSON.stringify({ agents: { echo: {} }, targets: { escalations_per_day: 1 },
    escalations: [{ rule: 'ask', match: { to: 'echo' } }] }));
  const own = await stage({ agents: { rules: file, agents: { list: [{ id: 'echo', url: 'echo:' }] } },
    args: webFolder() });
  const page = await own.newPage({ at: '#/holds' });
  const box = (name) => page.locator('.figure-box').filter({ hasText: name });
  await box('escalations, 24 h').getByText('✓ met').waitFor();
  assert.match(await box('mean hold').innerText(),
    /^–\s+mean hold, 24 h\s+none yet target at most 30 min$/);
  await own.ask('POST', '/api/envelopes', { to: 'echo', type: 'NOTE' });
  await box('escalations, 24 h').getByText('✗ missed').waitFor();
  assert.match(await box('escalations, 24 h').innerText(), /target fewer than 1/);
});
