// The feed: what happens appears, can be filtered, and leads on; however much
// there is, few rows are in the document.
import assert from 'node:assert/strict';
import { allow, axe, eventually, shot, stage, test } from './stage.mjs';

const server = await stage({ agents: [{ id: 'echo', url: 'echo:' }, { id: 'parrot', url: 'echo:' }] });
const rows = (page) => page.getByRole('table', { name: /^Feed/ }).getByRole('row')
  .filter({ has: page.getByRole('cell') });
const send = (text, agent, conversation = undefined) => server.ask('POST', '/api/messages',
  { text, executor: { name: agent }, conversation_id: conversation });

test('nothing yet: the page says what will appear, and how', async () => {
  const own = await stage();
  const page = await own.newPage({ at: '#/feed' });
  await page.getByText('user.created').first().waitFor(); // the first start is in it
  await shot(page, 'feed-first');
});

test('what happens appears by itself, the newest first, and leads on', async () => {
  const page = await server.newPage({ at: '#/feed' });
  await rows(page).first().waitFor();
  const { task_id: task, decision } = await send('hello', 'echo', 'c-1');
  await rows(page).first().getByText('task.completed').waitFor();
  await rows(page).nth(1).getByText('task.accepted').waitFor();
  assert.equal(await rows(page).first().getByRole('link').first().getAttribute('href'), `#/tasks/${task}`);
  assert.equal(await rows(page).nth(1).getByRole('link', { name: /^dec_/ }).getAttribute('href'),
    `#/decisions/${decision.id}`);
  assert.equal(await rows(page).first().getByRole('link', { name: 'echo' }).getAttribute('href'), '#/agents/echo');
  await shot(page, 'feed');
  await axe(page);
});

test('filters by agent, kind, conversation, decision and words; the address keeps them', async () => {
  const { decision } = await send('one', 'parrot', 'c-2');
  await send('two', 'echo', 'c-3');
  const page = await server.newPage({ at: '#/feed' });
  const shows = async (n, what) => eventually(async () => await rows(page).count() === n, `${what}: ${n} rows`);
  await page.getByLabel('Agent').fill('parrot');
  await page.getByLabel('Agent').press('Enter');
  await shows(3, 'registered, accepted and completed');
  await page.getByLabel('Type').selectOption('Tasks');
  await shows(2, 'tasks');
  assert.match(page.url(), /agent=parrot/);
  await page.reload();
  await shows(2, 'after loading again');
  await page.goto(`${server.url}/#/feed?conversation=c-3`);
  await shows(2, 'a conversation');
  await page.goto(`${server.url}/#/feed?decision=${decision.id}`);
  await shows(1, 'a decision');
  await page.goto(`${server.url}/#/feed?q=nothing-is-like-this`);
  await page.getByText(/None of the newest/).waitFor();
  await page.getByRole('button', { name: 'Show all' }).click();
  await rows(page).nth(5).waitFor();
});

test('typing is one entry of the history, and a filter undoes no other', async () => {
  await send('three', 'parrot', 'c-4');
  const page = await server.newPage({ at: '#/feed' });
  await rows(page).first().waitFor();
  const entries = await page.evaluate(() => history.length);
  await page.keyboard.press('/');
  await page.keyboard.type('comp');
  await page.waitForURL(/q=comp$/);
  await page.keyboard.type('leted');
  await page.waitForURL(/q=completed$/);
  assert.equal(await page.evaluate(() => history.length), entries + 1);
  await page.goBack();
  await page.waitForURL(/#\/feed$/);
  await eventually(async () => await page.getByLabel('Search').inputValue() === '', 'the search is as it was');
  await page.getByLabel('Agent').fill('parrot');
  await page.getByLabel('Search').fill('c-4');
  await page.evaluate(() => { // before anything is drawn again
    const kind = [...document.querySelectorAll('select')].find((s) => s.querySelector('[value="task."]'));
    kind.focus();
    kind.value = 'task.';
    kind.dispatchEvent(new Event('change', { bubbles: true }));
  });
  await page.waitForURL((url) => ['agent=parrot', 'q=c-4', 'type=task.'].every((part) => url.hash.includes(part)));
  await eventually(async () => await rows(page).count() === 2, 'accepted and completed');
});

test('paused, what is new waits and is counted', async () => {
  const page = await server.newPage({ at: '#/feed' });
  await rows(page).first().waitFor();
  await page.getByRole('button', { name: 'Pause' }).click();
  const before = await rows(page).first().innerText();
  await send('three', 'echo');
  await page.getByText('2 new entries').waitFor();
  assert.equal((await rows(page).first().innerText()).split('\n')[0], before.split('\n')[0]);
  await page.getByRole('button', { name: 'Resume' }).click();
  await rows(page).first().getByText('task.completed').waitFor();
});

test('what is being typed into a filter is not disturbed by what comes', async () => {
  const page = await server.newPage({ at: '#/feed' });
  await rows(page).first().waitFor();
  await page.getByLabel('Conversation').pressSequentially('half a wo');
  const { task_id: task } = await send('meanwhile', 'parrot');
  await rows(page).locator(`a[href="#/tasks/${task}"]`).first().waitFor();
  assert.equal(await page.getByLabel('Conversation').inputValue(), 'half a wo');
});

test('a thousand entries are few rows, and scrolling leads back to the first', async () => {
  const batch = (n) => Promise.all(Array.from({ length: n }, (_, i) => send(`m${i}`, 'echo')));
  for (let i = 0; i < 10; i += 1)
    await batch(50);
  const page = await server.newPage({ at: '#/feed' });
  await rows(page).first().waitFor();
  const box = page.getByRole('rowgroup', { name: /^Feed/ });
  await eventually(async () => {
    await box.evaluate((el) => { el.scrollTop = el.scrollHeight; });
    assert.ok(await rows(page).count() < 60, 'rows in the document are bounded');
    return await page.getByText('user.created').count() > 0;
  }, 'the oldest entry is reached');
});

test('who opens an entry far down and comes back finds the feed where it was', async () => {
  const page = await server.newPage({ at: '#/feed?type=task.' });
  await rows(page).first().waitFor();
  const box = page.getByRole('rowgroup', { name: /^Feed/ });
  await eventually(() => box.evaluate((el) => { el.scrollTop = 12000; return el.scrollTop === 12000; }), 'far down');
  const there = page.locator('.row[aria-rowindex="306"]').getByRole('link').first();
  const seen = await there.getAttribute('href');
  await there.click();
  await page.getByRole('heading', { name: 'Task', level: 1 }).waitFor();
  await page.goBack();
  await eventually(async () => await box.evaluate((el) => el.scrollTop) === 12000, 'as far down as before');
  assert.equal(await there.getAttribute('href'), seen);
  await page.getByRole('link', { name: 'Agents' }).click();
  await page.getByRole('link', { name: 'Feed', exact: true }).click();
  await rows(page).first().waitFor();
  assert.equal(await box.evaluate((el) => el.scrollTop), 0);
});

test('a server that comes back is found again, and nothing is missed', async () => {
  const own = await stage({ agents: [{ id: 'echo', url: 'echo:' }] });
  const page = await own.newPage({ at: '#/feed' });
  allow(page, /ERR_|Failed to (load|fetch)|network/);
  await page.getByRole('navigation').getByText('live').waitFor();
  await page.getByRole('table', { name: /^Feed/ }).getByText('user.created').waitFor();
  await own.kill9();
  await page.getByRole('navigation').getByText('reconnecting').waitFor();
  await own.restart();
  await own.ask('POST', '/api/messages', { text: 'back', executor: { name: 'echo' } });
  await page.getByRole('navigation').getByText('live').waitFor();
  await page.getByRole('table', { name: /^Feed/ }).getByText('task.completed').waitFor();
});
