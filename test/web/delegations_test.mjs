// Delegations and tasks: the demo, whose content writer asks the researcher, and
// agents that wait until they are told, so that there is time to look.
import assert from 'node:assert/strict';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { allow, axe, eventually, shot, stage, test } from './stage.mjs';
import { webFolder } from './em.mjs';
import { duration, money } from '../../web/lib/format.js';

const source = process.env.SIGNALBOX_SOURCE ?? path.join(import.meta.dirname, '../..');
const { connect } = await import(pathToFileURL(path.join(source, 'client/js/signalbox.js')));
const DRAFT = 'draft a blog post about office trends, with facts';

const demo = await stage({ agents: 'demo', args: webFolder() });
const server = await stage({ agents: [{ id: 'never', url: 'echo:3600000' }, { id: 'echo', url: 'echo:' }],
  args: webFolder() });

// boss has left and right do what it is told; each is paid. left says what it
// is told to and goes on when it is let go.
const waiting = [];
const PRICE = { name: 'work', id: 'work', description: 'does it', pricing: { amount_micros: 50000 } };
async function agent(name, work) {
  const hub = await connect({ url: server.url, token: server.token, log: () => {} });
  await hub.register({ name, description: `${name} works`, skills: [PRICE] }, work);
  return hub;
}
await agent('left', async (task) => {
  await task.write('left begins. ');
  await new Promise((next) => { waiting.push(next); });
  return 'left is done';
});
await agent('quick', async (task) => task.message);
await agent('stuck', () => new Promise(() => {}));
await agent('boss', async (task) => {
  await task.write('let me ask. ');
  const asked = await Promise.allSettled(task.message.split(' ')
    .map((name) => task.delegate(name, 'work', `please, ${name}`, { onChunk: () => {} })));
  return asked.map((a) => a.value?.text ?? a.reason.message).join('; ');
});
await server.ask('POST', '/api/ledger/topup', { user: 'admin', amount_micros: 10_000_000 });
const send = (on, text, to) => on.ask('POST', '/api/messages',
  { text, wait_ms: 0, ...(to && { executor: { name: to } }) });
const statusOf = async (task, on = server) => (await on.ask('GET', `/api/tasks/${task}`)).status;
const letGo = () => waiting.splice(0).forEach((next) => next());
const treeOf = (task) => server.ask('GET', `/api/tasks/${task}/tree`);
const hasKids = (task, n) => eventually(async () => (await treeOf(task)).tasks === n + 1, 'they were asked');

test('where nobody gave anything to anybody, the page says how', async () => {
  const page = await demo.newPage({ at: '#/delegations' });
  await page.getByText('No delegations yet').waitFor();
  await page.getByText(`build/signalbox send --url ${demo.url} "${DRAFT}"`, { exact: true }).waitFor();
  await page.getByText(`agents of this server (${new URL(demo.url).host})`).waitFor();
  await axe(page);
});

test('delegations are narrowed by who took part, how they stand and since when', async () => {
  const { task_id: done } = await send(server, 'quick', 'boss');
  await eventually(async () => await statusOf(done) === 'completed', 'one is over');
  const { task_id: open } = await send(server, 'stuck', 'boss');
  await hasKids(open, 1);
  const page = await server.newPage({ at: '#/delegations' });
  const row = (task) => page.locator(`a[href$="${task}"]`).first();
  const narrow = page.getByRole('search', { name: 'Filter delegations' });
  await row(done).waitFor();
  await row(open).waitFor();
  await narrow.getByLabel('Agent involved').fill('STUCK');
  await narrow.getByLabel('Agent involved').press('Enter');
  await row(done).waitFor({ state: 'detached' });
  await row(open).waitFor();
  await page.waitForURL('**agent=STUCK');
  await narrow.getByLabel('Status').selectOption('completed');
  await page.getByText('No delegation matches this filter').waitFor();
  await page.getByRole('button', { name: 'Show all' }).click();
  await narrow.getByLabel('Status').selectOption('completed');
  await row(done).waitFor();
  await row(open).waitFor({ state: 'detached' });
  await narrow.getByLabel('Started').selectOption('last hour');
  await row(done).waitFor();
  await narrow.getByLabel('User').fill('missing-of-this-name');
  await narrow.getByLabel('User').press('Enter');
  await page.getByText('No delegation matches this filter').waitFor();
  await shot(page, 'delegations-filter');
  await axe(page);
  await server.ask('POST', `/api/tasks/${open}/cancel`);
});

test('the demo delegates, and the tree is a timeline', async () => {
  const page = await demo.newPage({ at: '#/delegations' });
  await page.getByText('No delegations yet').waitFor();
  const { task_id: task } = await send(demo, DRAFT);
  await page.getByRole('row').filter({ hasText: DRAFT }).getByText('completed').waitFor();
  await shot(page, 'delegations');
  await axe(page);
  await page.getByRole('row').filter({ hasText: DRAFT }).getByRole('link').first().click();
  await page.getByRole('heading', { name: 'Timeline' }).waitFor();
  assert.equal(await page.locator('.timeline tbody tr').count(), 2);
  await page.getByRole('img', { name: /worked .*, waited .* for research/i }).waitFor();
  // What it waited for the researcher is no work of its own.
  const { tree } = await demo.ask('GET', `/api/tasks/${task}/tree`);
  const [kid] = tree.children, others = kid.finished_ms - kid.began_ms;
  const cells = await page.locator('.timeline tbody tr').first().locator('td.right').allInnerTexts();
  assert.deepEqual(cells.slice(0, 3), [tree.started_ms - tree.began_ms, tree.finished_ms - tree.started_ms - others,
    others].map(duration));
  await shot(page, 'delegation');
  await axe(page);
  await page.locator('.timeline tbody tr').last().getByTitle('Open the task').click();
  await page.getByRole('heading', { name: 'Answer' }).waitFor();
  await page.getByText('2 tasks in the tree').waitFor();
  await shot(page, 'task');
  await axe(page);
  await page.getByRole('link', { name: '2 tasks in the tree' }).click();
  await page.locator('.timeline .is-current').waitFor();
  assert.equal(await statusOf(task, demo), 'completed');
});

test('one that goes on grows, is heard, and ends by itself', async () => {
  const { task_id: task } = await send(server, 'left quick', 'boss');
  await hasKids(task, 2);
  const page = await server.newPage({ at: `#/delegations/${task}`, height: 900 });
  const row = (name) => page.getByRole('row').filter({ has: page.getByRole('link', { name, exact: true }) });
  await row('left').getByText('working').waitFor();
  await row('quick').getByText('completed').waitFor();
  await row('left').getByRole('cell', { name: '(0.05)' }).waitFor(); // set aside
  await page.locator('.track-for').first().waitFor();
  await shot(page, 'delegation-open');
  const words = await server.newPage({ at: `#/tasks/${task}` });
  await words.getByText('let me ask.').waitFor();
  await words.getByText('left begins.').waitFor();
  await words.getByText('The agent is working.').waitFor({ state: 'hidden' });
  letGo();
  await row('left').getByText('completed').waitFor();
  await words.getByText('left is done; please, quick').waitFor();
  await page.getByRole('button', { name: 'Cancel everything' }).waitFor({ state: 'hidden' });
  assert.equal(await statusOf(task), 'completed');
  // Where bars lie, what each branch cost and how long all of it took are as the server says.
  const { tree } = await treeOf(task);
  const span = tree.finished_ms - tree.began_ms;
  await page.locator('.figure-box').filter({ hasText: 'from start to end' })
    .getByText(duration(tree.duration_ms), { exact: true }).waitFor();
  for (const kid of tree.children) {
    const style = await row(kid.agent).locator('.track-worked').getAttribute('style');
    assert.ok(style.includes(`left: ${Number((((kid.started_ms - tree.began_ms) / span) * 100).toFixed(3))}%`),
      `${kid.agent}: ${style}`);
    assert.deepEqual((await row(kid.agent).locator('td.right').allInnerTexts()).slice(3, 5), ['0.05', '–']);
  }
  assert.deepEqual((await row('boss').locator('td.right').allInnerTexts()).slice(3, 5), ['0.05', '0.15']);
});

// The tree is the server's; its times and costs are made such that no two are alike.
test('every task is drawn where it was, with what it waited, worked and cost, and its branch', async () => {
  const { task_id: task } = await send(server, 'quick quick', 'boss');
  await eventually(async () => await statusOf(task) === 'completed', 'it is done');
  const whole = await treeOf(task);
  const top = whole.tree, [one, two] = top.children, from = top.began_ms;
  const tell = (t, began, started, finished, paid, branch) => Object.assign(t, {
    began_ms: from + began, started_ms: from + started, finished_ms: from + finished, duration_ms: finished - began,
      captured_micros: paid, price_micros: paid,
    branch: { ...t.branch, captured_micros: branch, price_micros: branch } });
  tell(top, 0, 1000, 20000, 1000000, 6000000);
  tell(one, 2000, 5000, 8000, 2000000, 2000000);
  tell(two, 10000, 12000, 18000, 3000000, 3000000);
  const page = await server.newPage();
  await page.route(`**/api/tasks/${task}/tree`, (route) => route.fulfill({ json: { ...whole, captured_micros: 6000000,
    price_micros: 6000000 } }));
  await page.goto(`${server.url}/#/delegations/${task}`);
  await page.locator('.timeline tbody tr').nth(2).waitFor();
  const cells = await page.locator('.timeline tbody tr').evaluateAll((all) =>
    all.map((row) => [...row.querySelectorAll('td.right')].slice(0, 5).map((c) => c.innerText.trim())));
  assert.deepEqual(cells, [['1.0 s', '5.0 s', '14 s', '1.00', '6.00'], ['3.0 s', '3.0 s', '–', '2.00', '–'],
    ['2.0 s', '6.0 s', '–', '3.00', '–']]);
  const bars = await page.locator('.track').evaluateAll((all) => all.map((track) => {
    const box = track.getBoundingClientRect();
    const of = (what) => [...track.querySelectorAll(what)].map((bar) => bar.getBoundingClientRect())
      .map((b) => [b.left, b.right].map((x) => Math.round((x - box.left) / box.width * 20)));
    return { waited: of('.track-waited'), worked: of('.track-worked'), others: of('.track-for') };
  }));
  assert.deepEqual(bars, [
    { waited: [[0, 1]], worked: [[1, 20]], others: [[2, 8], [10, 18]] },
    { waited: [[2, 5]], worked: [[5, 8]], others: [] },
    { waited: [[10, 12]], worked: [[12, 18]], others: [] }]);
  assert.equal(await page.locator('.track').first().getAttribute('aria-label'),
    'waited 1.0 s, worked 5.0 s, waited 6.0 s for quick, waited 8.0 s for quick');
  const figures = (await page.getByRole('group', { name: 'Figures' }).locator('.figure-box').allInnerTexts())
    .map((t) => t.split('\n').map((w) => w.trim()).filter(Boolean).sort().join(' '));
  for (const [name, value] of [['tasks', '3'], ['open', '0'], ['from start to end', '20 s'], ['charged', '6.00']])
    assert.ok(figures.includes([name, value].sort().join(' ')), `${name} ${value} in ${figures}`);
});

test('what the server says a task and its branch cost is what is shown', async () => {
  const { task_id: task } = await send(server, 'quick quick', 'boss');
  await eventually(async () => await statusOf(task) === 'completed', 'it is done');
  const { tree } = await treeOf(task);
  assert.equal(tree.branch.captured_micros, tree.captured_micros + 2 * tree.children[0].captured_micros);
  assert.ok(tree.children[0].captured_micros > 0);
  const page = await server.newPage({ at: `#/delegations/${task}` });
  await page.locator('.timeline tbody tr').nth(2).waitFor();
  const shown = await page.locator('.timeline tbody tr').evaluateAll((all) =>
    all.map((row) => [...row.querySelectorAll('td.right')].slice(3, 5).map((c) => c.innerText.trim())));
  assert.deepEqual(shown, [tree, ...tree.children].map((t) =>
    [t.captured_micros ? money(t.captured_micros) : '–', t.branch.tasks > 1 ? money(t.branch.captured_micros) : '–']));
});

test('a branch is cancelled, and what is beside it goes on', async () => {
  const { task_id: task } = await send(server, 'left stuck', 'boss');
  await hasKids(task, 2);
  const page = await server.newPage({ at: `#/delegations/${task}` });
  await page.getByRole('button', { name: 'Cancel the task of stuck' }).click();
  await page.getByRole('button', { name: 'Go back' }).click();
  await page.getByRole('button', { name: 'Cancel the task of stuck' }).click();
  await page.getByRole('button', { name: 'Cancel this branch' }).click();
  await page.getByText('The branch was cancelled.').waitFor();
  await page.getByRole('row').filter({ hasText: 'please, stuck' }).getByText('cancelled', { exact: true }).waitFor();
  assert.equal(await statusOf(task), 'working');
  letGo();
  await eventually(async () => await statusOf(task) === 'completed', 'the rest is done');
});

test('the root is cancelled, and everything with it', async () => {
  const { task_id: task } = await send(server, 'stuck stuck', 'boss');
  await hasKids(task, 2);
  const page = await server.newPage({ at: `#/delegations/${task}` });
  await page.getByRole('button', { name: 'Cancel everything' }).click();
  await page.getByText('2 tasks below it will be cancelled too').waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel everything' }).click();
  await eventually(async () => (await treeOf(task)).open === 0, 'all are over');
  for (const status of await page.locator('.timeline tbody .badge').all())
    await status.and(page.getByText('cancelled')).waitFor();
});

test('in the dark and on a phone', async () => {
  const { task_id: task } = await send(server, 'left stuck', 'boss');
  await hasKids(task, 2);
  for (const [name, wishes] of [['dark', { theme: 'dark' }], ['phone', { width: 360, height: 740 }]]) {
    const page = await server.newPage({ ...wishes, at: '#/delegations' });
    await page.getByRole('row').filter({ hasText: 'left stuck' }).first().waitFor();
    await shot(page, `delegations-${name}`);
    await page.goto(`${server.url}/#/delegations/${task}`);
    await page.locator('.track-for').first().waitFor();
    await shot(page, `delegation-${name}`, { whole: true });
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
      'nothing to scroll sideways');
    await axe(page);
    await page.goto(`${server.url}/#/tasks/${task}`);
    await page.getByText('let me ask.').waitFor();
    await shot(page, `task-${name}`, { whole: true });
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
      'nothing to scroll sideways');
    await axe(page);
  }
  await server.ask('POST', `/api/tasks/${task}/cancel`);
  letGo();
});

test('a task is cancelled, after a question', async () => {
  const { task_id: task } = await send(server, 'for ever', 'never');
  const page = await server.newPage({ at: `#/tasks/${task}` });
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('button', { name: 'Cancel the task' }).click();
  await page.getByText('The task was cancelled.').waitFor();
  assert.equal(await statusOf(task), 'cancelled');
});

test('one that ends while it is being cancelled is told as over', async () => {
  const { task_id: task } = await send(server, 'left', 'boss');
  await hasKids(task, 1);
  const page = await server.newPage({ at: `#/tasks/${task}` });
  allow(page, /409/);
  await page.getByRole('button', { name: 'Cancel' }).click();
  letGo();
  await eventually(async () => await statusOf(task) === 'completed', 'it is done');
  await page.getByRole('button', { name: 'Cancel the task' }).click();
  await page.getByText('The task finished before it could be cancelled.').waitFor();
});

test('the turns before, a failure and its words', async () => {
  const first = await server.ask('POST', '/api/messages', { text: 'one <b>', executor: { name: 'echo' },
    conversation_id: 'talk' });
  await server.ask('POST', '/api/messages', { text: 'two', task_id: first.task_id, executor: { name: 'echo' } });
  const page = await server.newPage({ at: `#/tasks/${first.task_id}` });
  await page.getByRole('heading', { name: 'Earlier turns (1)' }).waitFor();
  await page.getByText('one <b>').first().waitFor();
  await axe(page);
});

test('a long text is folded, and shown whole when that is asked for', async () => {
  const MOST = 4000;
  for (const length of [MOST, MOST + 1]) {
    const text = `${'x'.repeat(length - 4)} end`;
    const { task_id: task } = await server.ask('POST', '/api/messages', { text, executor: { name: 'echo' } });
    const page = await server.newPage({ at: `#/tasks/${task}` });
    const answer = page.getByRole('region', { name: 'Answer', exact: true }).locator('.words').first();
    await answer.waitFor();
    const isFolded = length > MOST;
    assert.equal(await answer.getByRole('button').count(), isFolded ? 1 : 0);
    if (isFolded) {
      assert.ok((await answer.textContent()).startsWith(`${text.slice(0, MOST)}… `));
      await answer.getByRole('button', { name: 'show all 4,001 characters' }).click();
      await answer.getByRole('button').waitFor({ state: 'detached' });
    }
    assert.equal(await answer.textContent(), text);
  }
});

test('the server comes back, and the page goes on', async () => {
  const own = await stage({ agents: [{ id: 'never', url: 'echo:3600000' }], args: webFolder() });
  const { task_id: task } = await own.ask('POST', '/api/messages',
    { text: 'for ever', wait_ms: 0, executor: { name: 'never' } });
  const page = await own.newPage({ at: `#/tasks/${task}` });
  allow(page, /./); // it is away for a moment, and Chromium says so
  await page.getByRole('button', { name: 'Cancel' }).waitFor();
  await own.restart();
  await page.getByRole('navigation').getByText('live').waitFor();
  await own.ask('POST', `/api/tasks/${task}/cancel`);
  await page.getByRole('heading', { name: 'Answer', exact: true }).waitFor();
});
