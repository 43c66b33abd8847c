// The playground: the decision as it forms, the answer as it comes, and what a
// correction teaches.
import assert from 'node:assert/strict';
import { allow, axe, eventually, shot, stage, test } from './stage.mjs';

// A number as threshold: what "auto" shows is in bands_test.
const server = await stage({ agents: 'demo', args: ['--set', 'routing.threshold=0.3'] });
const candidates = (page) => page.getByRole('list', { name: 'Candidates, best first' }).getByRole('listitem');
const message = (page) => page.getByLabel('Message', { exact: true });
const turns = (page) => page.getByRole('listitem', { name: 'A message and its answer' });

test('the decision forms while a message is typed, and nothing is sent', async () => {
  const page = await server.newPage();
  await page.getByRole('button', { name: 'why is my query slow?' }).click();
  await page.getByText('would go to').waitFor();
  const first = candidates(page).first();
  await first.getByText('engineer').waitFor();
  assert.equal(await candidates(page).count(), 4);
  for (const signal of ['semantic', 'performance', 'keyword', 'recency'])
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
  for (const [text, agent] of [['why is my query slow?', 'engineer'], ['draft a blog post', 'content-writer'],
    ['remind me', 'automation-operator']]) {
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
  await page.getByRole('heading', { name: 'What the router learned' }).waitFor();
  const row = page.getByRole('row', { name: /automation-operator/ });
  const [before, after] = (await row.getByRole('cell').allInnerTexts()).slice(1, 3).map(parseFloat);
  assert.ok(after > before, `${before} before, ${after} after`);
  const { items } = await server.ask('GET', '/api/decisions?overridden=true');
  assert.equal(items[0].overridden_to, 'automation-operator');
  assert.equal(items[0].text, text);
});

test('every message is decided anew, unless it goes on with the last one', async () => {
  const page = await server.newPage();
  await message(page).fill('why is my query slow?');
  await message(page).press('Enter');
  await turns(page).first().getByText('completed').waitFor();
  await turns(page).first().getByText('engineer').first().waitFor();
  await message(page).fill('draft a blog post about it');
  await candidates(page).first().getByText('content-writer').waitFor();
  await page.getByLabel('continue the last conversation').check();
  await page.getByText('sticky', { exact: true }).waitFor();
  await message(page).press('Enter');
  await turns(page).nth(1).getByText('completed').waitFor();
  const { items } = await server.ask('GET', '/api/tasks?limit=2');
  assert.equal(items[0].conversation_id, items[1].conversation_id);
  await page.getByRole('button', { name: 'Clear' }).click();
  assert.equal(await turns(page).count(), 0);
});

test('the three suggestions, one after the other, go to three agents', async () => {
  const page = await server.newPage();
  for (const [n, [text, agent]] of [['why is my query slow?', 'engineer'],
    ['draft a blog post about office trends, with facts', 'content-writer'],
    ['remind me tomorrow at nine to call the plumber', 'automation-operator']].entries()) {
    await page.getByRole('button', { name: text }).click();
    await message(page).press('Enter');
    await turns(page).nth(n).getByText('completed').waitFor();
    await turns(page).nth(n).locator('.answer').getByText(agent, { exact: true }).first().waitFor();
    assert.equal(await page.getByRole('button', { name: text }).count(), 0);
  }
});

test('what was said is still there after a look at another page', async () => {
  const page = await server.newPage();
  await message(page).fill('why is my query slow?');
  await message(page).press('Enter');
  await turns(page).getByText('completed').waitFor();
  await turns(page).getByRole('link', { name: 'decision' }).click();
  await page.getByRole('heading', { name: 'Decision', exact: true }).waitFor();
  await page.goBack();
  await turns(page).getByText('Slow is measurable').waitFor();
});

test('where nobody was compared, any agent can be named as the right one', async () => {
  const page = await server.newPage();
  await message(page).fill('/researcher when is the next train?');
  await message(page).press('Enter');
  await turns(page).getByText('completed').waitFor();
  await page.getByRole('button', { name: 'Wrong agent?' }).click();
  await page.getByLabel('Agent', { exact: true }).fill('operator');
  await page.getByRole('group', { name: 'Matching agents' })
    .getByRole('button', { name: 'automation-operator' }).click();
  await page.getByRole('button', { name: 'Override', exact: true }).click();
  await page.getByText('overridden to automation-operator').waitFor();
});

test('by keyboard, a correction leaves nobody lost', async () => {
  const page = await server.newPage();
  await message(page).fill('is there a quieter keyboard?');
  await message(page).press('Enter');
  await turns(page).getByText('completed').waitFor();
  const focused = () => page.evaluate(() => document.activeElement?.textContent);
  await page.getByRole('button', { name: 'Wrong agent?' }).focus();
  await page.keyboard.press('Enter');
  await eventually(async () => (await server.ask('GET', '/api/agents')).items.some((a) => a.name === 'engineer')
    && /^(engineer|content-writer|automation-operator)$/.test(await focused()), 'the first choice has the focus');
  const chosen = await focused();
  await page.keyboard.press('Enter');
  await eventually(async () => await focused() === `overridden to ${chosen}`, 'what was done has it');
});

test('a token that may only read says so calmly, and one that may only send sends', async () => {
  await server.user('reader');
  const { token: reading } = await server.ask('POST', '/api/tokens', { user: 'reader', scopes: ['read'] });
  const page = await server.newPage({ token: reading });
  await page.getByPlaceholder('This token can read but not send.').waitFor();
  assert.equal(await message(page).isDisabled(), true);
  assert.equal(await page.getByRole('alert').count(), 0);
  const { token: sending } = await server.ask('POST', '/api/tokens', { user: 'reader', scopes: ['send'] });
  const other = await server.newPage({ token: sending });
  allow(other, /403/);
  await message(other).fill('why is my query slow?');
  await message(other).press('Enter');
  await turns(other).getByText('completed').waitFor();
  await other.goto(`${server.url}/#/feed`);
  await other.getByText('This token cannot read').waitFor();
  assert.equal(await other.getByRole('alert').count(), 0);
});

test('what is refused is said in words, and nothing is half done', async () => {
  const page = await server.newPage();
  allow(page, /40[04]|422/);
  await message(page).fill('/missing-agent hello');
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
  await page.getByRole('navigation').getByText('reconnecting').waitFor();
  await own.restart();
  await turns(page).getByText('completed').waitFor();
  await turns(page).locator('.answer').getByText('are you there?').waitFor();
  assert.equal((await own.ask('GET', '/api/tasks')).items.length, 1);
});

test('words of an answer are there before it is over', async () => {
  const own = await stage({ agents: 'demo', pace: 1000, args: ['--set', 'routing.threshold=0.3'] });
  const page = await own.newPage();
  await message(page).fill('why is my query slow?');
  await message(page).press('Enter');
  await turns(page).getByText('Slow is').waitFor();
  const { items } = await own.ask('GET', '/api/tasks');
  assert.ok(['dispatched', 'working', 'queued'].includes(items[0].status), items[0].status);
  assert.equal(await turns(page).getByText('completed').count(), 0);
});

test('a message that the server is not there for is sent once it is, and lost by nothing', async () => {
  const own = await stage({ agents: [{ id: 'echo', url: 'echo:' }] });
  const page = await own.newPage();
  allow(page, /ERR_|Failed to (load|fetch)|network/);
  await page.getByRole('navigation', { name: 'Pages' }).getByText('live').waitFor();
  await own.kill9();
  await message(page).fill('/echo hello in there');
  await message(page).press('Enter');
  await turns(page).getByText('sending').waitFor();
  await turns(page).getByText('server unreachable; not sent yet').waitFor();
  await page.getByRole('link', { name: 'Settings' }).click();
  await page.getByRole('link', { name: 'Playground' }).click();
  await turns(page).getByText('sending').waitFor();
  await own.restart();
  await turns(page).getByText('completed').waitFor();
  assert.equal((await own.ask('GET', '/api/tasks')).items.length, 1);
});

test('what nobody accepted is in the box again after loading anew, and what was refused can be edited', async () => {
  const own = await stage({ agents: [{ id: 'echo', url: 'echo:' }, { id: 'other', url: 'echo:' }],
    args: ['--set', 'routing.threshold=1'] });
  const page = await own.newPage();
  allow(page, /ERR_|Failed to (load|fetch)|network|40[04]|422/);
  await page.route('**/api/messages', (route) => route.abort('connectionrefused'));
  await message(page).fill('/echo not yet');
  await message(page).press('Enter');
  await turns(page).getByText('sending').waitFor();
  await page.reload();
  await eventually(async () => await message(page).inputValue() === '/echo not yet', 'it is back');
  await page.unroute('**/api/messages');
  await message(page).fill('no one fits this');
  await message(page).press('Enter');
  await turns(page).getByText('not sent').waitFor();
  await page.getByRole('button', { name: 'Edit and send again' }).click();
  assert.equal(await message(page).inputValue(), 'no one fits this');
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
  await page.getByText('No agents yet').waitFor();
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

test('what a message may cost is shown, and may be said', async () => {
  await server.ask('POST', '/api/agents', { name: 'notary', url: 'echo:', visibility: 'public',
    description: 'Certifies', pricing: { amount_micros: 1500000 } });
  await server.ask('POST', '/api/ledger/topup', { user: 'admin', amount_micros: 5000000 });
  const page = await server.newPage();
  await message(page).fill('/notary certify this');
  await page.getByText('costs 1.50, at most 1.60 with its delegations').waitFor();
  await page.getByLabel('at most').fill('1.00');
  await page.getByText('notary costs 1.50, and max_cost_micros allows 1.00').waitFor();
  await page.getByLabel('at most').fill('2');
  await page.getByText('at most 2.00 with its delegations').waitFor();
  await axe(page);
  await message(page).press('Enter');
  await turns(page).getByText('completed').waitFor();
  const { items: [task] } = await server.ask('GET', '/api/tasks?limit=1');
  assert.equal(task.price_micros, 1500000);
});
