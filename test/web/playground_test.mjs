// The playground: the decision as it forms, the answer as it comes, and what a
// correction teaches.
import assert from 'node:assert/strict';
import { allow, axe, eventually, shot, stage, test } from './stage.mjs';

const server = await stage({ agents: 'demo' });
const candidates = (page) => page.getByRole('list', { name: 'Candidates' }).getByRole('listitem');
const message = (page) => page.getByLabel('Message', { exact: true });
const turns = (page) => page.getByRole('listitem', { name: 'A message and its answer' });

test('the decision forms while a message is typed, and nothing is sent', async () => {
  const page = await server.newPage();
  await page.getByRole('button', { name: 'why is my query slow?' }).click();
  await page.getByText('would go to').waitFor();
  const first = candidates(page).first();
  await first.getByText('engineer').waitFor();
  assert.equal(await candidates(page).count(), 4);
  for (const signal of ['meaning', 'record', 'keyword', 'recent'])
    await first.getByRole('img', { name: new RegExp(`^${signal}: [01]\\.`) }).waitFor();
  await first.getByRole('img', { name: /threshold 0\.30/ }).waitFor();
  await shot(page, 'playground-typed');
  await axe(page);
  await message(page).fill('draft a blog post about our new office');
  await candidates(page).first().getByText('content-writer').waitFor();
  await message(page).fill('/researcher hello');
  await page.getByText('prefix', { exact: true }).waitFor();
  const { items } = await server.ask('GET', '/api/tasks');
  assert.deepEqual(items, []);
});

test('three messages are suggested, and each of them is answered', async () => {
  for (const [text, agent] of [['why is my query slow?', 'engineer'], ['draft a blog post', 'content-writer'], ['remind me', 'automation-operator']]) {
    const page = await server.newPage();
    await page.getByRole('button', { name: text }).click();
    await message(page).press('Enter');
    await turns(page).getByText('completed').waitFor();
    await page.getByText('went to').getByText(agent).waitFor();
    assert.equal(await message(page).inputValue(), '');
    await page.context().close();
  }
});

test('an agent that asks another is heard with it, marked', async () => {
  const page = await server.newPage();
  await message(page).fill('draft a blog post about office trends, with facts');
  await page.getByRole('button', { name: 'Send' }).click();
  await turns(page).getByText('completed').waitFor();
  await page.getByText('researcher, asked by content-writer').waitFor();
  await page.getByText('Three currents turn up').waitFor();
  assert.equal(await turns(page).locator('.answer').getByText('Three currents turn up').count(), 0);
  await shot(page, 'playground-answered', { whole: true });
  await axe(page);
});

test('a wrong agent is corrected with one click, and what was learnt is shown', async () => {
  const page = await server.newPage();
  const text = 'compare the two invoices from March';
  await message(page).fill(text);
  await message(page).press('Enter');
  await turns(page).getByText('completed').waitFor();
  await page.getByRole('button', { name: 'Wrong agent?' }).click();
  await page.getByRole('group', { name: 'Which agent' }).getByRole('button', { name: 'automation-operator' }).click();
  await page.getByRole('heading', { name: 'What was learnt' }).waitFor();
  const row = page.getByRole('row', { name: /automation-operator/ });
  const [before, after] = (await row.getByRole('cell').allInnerTexts()).slice(1).map(parseFloat);
  assert.ok(after > before, `${before} before, ${after} after`);
  const { items } = await server.ask('GET', '/api/decisions?overridden=true');
  assert.equal(items[0].overridden_to, 'automation-operator');
  assert.equal(items[0].text, text);
});

test('further messages stay in the conversation until a new one is begun', async () => {
  const page = await server.newPage();
  await message(page).fill('why is my query slow?');
  await message(page).press('Enter');
  await turns(page).first().getByText('completed').waitFor();
  await message(page).fill('draft a blog post about it');
  await page.getByText('sticky', { exact: true }).waitFor();
  await message(page).press('Enter');
  await turns(page).nth(1).getByText('completed').waitFor();
  const { items } = await server.ask('GET', '/api/tasks?limit=2');
  assert.equal(items[0].conversation_id, items[1].conversation_id);
  await page.getByRole('button', { name: 'New conversation' }).click();
  assert.equal(await turns(page).count(), 0);
});

test('what is refused is said in words, and nothing is half done', async () => {
  const page = await server.newPage();
  allow(page, /40[04]|422/);
  await message(page).fill('/nobody-like-that hello');
  await page.getByText(/would go to|no agent/).first().waitFor();
  await message(page).fill('x'.repeat(1024 * 1024 + 1));
  await page.getByRole('alert').getByText('at most 1 MiB').waitFor();
  assert.equal(await page.getByRole('button', { name: 'Send' }).isDisabled(), true);
  await message(page).fill('y'.repeat(1024 * 1024));
  await eventually(() => page.getByRole('button', { name: 'Send' }).isEnabled(), 'a message at the limit may go');
});

test('a message is sent once, though the server is killed while it is answered', async () => {
  const own = await stage({ agents: [{ id: 'slow', url: 'echo:1500' }, { id: 'other', url: 'echo:' }] });
  const page = await own.newPage();
  allow(page, /ERR_|Failed to (load|fetch)|401|network/);
  await message(page).fill('/slow are you there?');
  await message(page).press('Enter');
  await turns(page).getByText(/queued|dispatched|working/).waitFor();
  await eventually(async () => (await own.ask('GET', '/api/tasks')).items.length === 1, 'the task is there');
  await own.kill9();
  await page.getByText('coming back').first().waitFor();
  await own.restart();
  await turns(page).getByText('completed').waitFor();
  await turns(page).locator('.answer').getByText('are you there?').waitFor();
  assert.equal((await own.ask('GET', '/api/tasks')).items.length, 1);
});

test('what takes long can be taken back', async () => {
  const own = await stage({ agents: [{ id: 'slow', url: 'echo:60000' }] });
  const page = await own.newPage();
  await message(page).fill('/slow never mind');
  await message(page).press('Enter');
  await page.getByRole('button', { name: 'Cancel' }).click();
  await turns(page).getByText('cancelled', { exact: true }).first().waitFor();
  assert.equal((await own.ask('GET', '/api/tasks')).items[0].status, 'cancelled');
});

test('nobody there: the page says how to connect an agent', async () => {
  const own = await stage();
  const page = await own.newPage();
  allow(page, /422/);
  await page.getByText('No agents are here yet').waitFor();
  await message(page).fill('hello?');
  await page.getByRole('alert').first().waitFor();
  await shot(page, 'playground-empty');
  await axe(page);
});

test('a draft is still there after another page and after loading again', async () => {
  const page = await server.newPage();
  await message(page).fill('half a thought');
  await page.getByRole('link', { name: 'Feed' }).click();
  await page.getByRole('heading', { name: 'Feed' }).waitFor();
  await page.getByRole('link', { name: 'Playground' }).click();
  assert.equal(await message(page).inputValue(), 'half a thought');
  await page.reload();
  await page.getByText('would go to').waitFor();
  assert.equal(await message(page).inputValue(), 'half a thought');
});
