// What an agent's program asks while it works: shown where someone looks on,
// answered there, and told to the others. The program speaks pi's dialect.
import assert from 'node:assert/strict';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { allow, axe, eventually, shot, stage, test } from './stage.mjs';
import { STRINGS } from './hostile_strings.mjs';

const CHILD = path.join(process.env.SIGNALBOX_SOURCE, 'test/lib/pi_dialogs.py');
const { connect } = await import(pathToFileURL(path.join(process.env.SIGNALBOX_SOURCE, 'client/js/signalbox.js')));
const HOUSE = { agents: {
  deliver: { inputMs: 3600000 },
  agents: { list: [{ id: 'pi', process: { command: ['python3', CHILD], dialect: 'pi' } }] },
} };
const server = await stage(HOUSE);
const message = (page) => page.getByLabel('Message', { exact: true });
const question = (page) => page.getByRole('region', { name: 'Question from the agent' });
const button = (place, name) => place.getByRole('button', { name, exact: true });

async function send(page, ...shown) {
  await message(page).fill(`/pi ${JSON.stringify(shown)}`);
  await message(page).press('Enter');
}

const SELECT = { method: 'select', title: 'Allow rm -rf build?', options: ['Allow', 'Block'] };
const heard = (page, told) => page.locator('.answer').getByText(JSON.stringify(told).replaceAll(':',
  ': ').replaceAll(',', ', ')).waitFor();

test('each kind of question is asked in the playground and answered there', async () => {
  const page = await server.newPage();
  await send(page, SELECT, { method: 'confirm', title: 'Sure?', message: 'There is no way back.' },
    { method: 'input', title: 'Your name', placeholder: 'Ada' },
      { method: 'editor', title: 'The note', prefill: 'Line 1\nLine 2' });
  const one = (title) => question(page).filter({ hasText: title });
  await one('The note').waitFor();
  await shot(page, 'playground-asked', { whole: true });
  await axe(page, { contrast: true });
  await button(one('rm -rf'), 'Block').click();
  await page.getByText('admin answered.').waitFor();
  await button(one('Sure?'), 'Yes').click();
  await one('Your name').getByLabel('Your answer').fill('Grace');
  await one('Your name').getByLabel('Your answer').press('Enter');
  assert.equal(await one('The note').getByLabel('Your answer').inputValue(), 'Line 1\nLine 2');
  await button(one('The note'), 'Don’t answer').click();
  await heard(page, { 'd-0': [{ value: 'Block' }], 'd-1': [{ confirmed: true }], 'd-2': [{ value: 'Grace' }],
    'd-3': [{ cancelled: true }] });
  assert.equal(await question(page).count(), 0);
  await page.getByText('admin cancelled it.').waitFor();
});

test('the page of the task shows it to who comes later, and who was first', async () => {
  const one = await server.newPage();
  await send(one, SELECT);
  await question(one).waitFor();
  const { items: [{ id }] } = await server.ask('GET', '/api/tasks?limit=1');
  const two = await server.newPage({ at: `#/tasks/${id}` });
  await question(two).waitFor();
  await shot(two, 'task-asked', { whole: true });
  await axe(two);
  // Someone else was first, and this page has not heard of it yet.
  await two.route('**/input', async (route) => {
    const { inputs: [{ input_id }] } = await server.ask('GET', `/api/tasks/${id}`);
    await server.ask('POST', `/api/tasks/${id}/input`, { input_id, value: 'Allow' });
    await route.continue();
  });
  allow(two, /409/);
  await button(question(two), 'Block').click();
  await two.getByText('admin answered.').waitFor();
  await one.getByText('admin answered.').waitFor();
  await heard(one, { 'd-0': [{ value: 'Allow' }] });
});

test('the page of a task below shows what that asks, takes the answer, and says what came of it', async () => {
  const hub = await connect({ url: server.url, token: server.token, log: () => {} });
  await hub.register({ name: 'front', description: 'Has pi do it' }, async (task) =>
    (await task.delegateToAgent({ agentId: 'pi', task: JSON.stringify([SELECT]) })).response);
  const root = await server.newPage();
  await message(root).fill('/front do it');
  await message(root).press('Enter');
  await question(root).waitFor();
  const { items } = await server.ask('GET', '/api/tasks?limit=2');
  const below = items.find((t) => t.root_task_id).id;
  const pages = [];
  for (const [theme, width] of [['light', 1280], ['dark', 1280], ['light', 360]]) {
    const page = await server.newPage({ at: `#/tasks/${below}`, theme, width });
    await question(page).waitFor();
    await shot(page, `task-below-asked-${theme}-${width}`, { whole: true });
    pages.push(page);
  }
  await axe(pages[1], { contrast: true });
  await button(question(pages[2]), 'Block').click();
  for (const page of [root, ...pages])
    await page.getByText('admin answered.').waitFor();
  await heard(root, { 'd-0': [{ value: 'Block' }] });
  await hub.close();
});

test('who may only read sees it, and nobody waits for their answer', async () => {
  const one = await server.newPage();
  await send(one, SELECT);
  await question(one).waitFor();
  const { items: [{ id }] } = await server.ask('GET', '/api/tasks?limit=1');
  const { token } = await server.ask('POST', '/api/tokens', { user: 'admin', scopes: ['read'] });
  const says = async (page) => {
    const asked = page.waitForRequest('**/events');
    await page.goto(`${server.url}/#/tasks/${id}`);
    return (await (await asked).allHeaders())['signalbox-answers'];
  };
  const reader = await server.newPage({ token });
  assert.equal(await says(reader), undefined);
  await question(reader).getByText('This token can read but not answer.').waitFor();
  assert.equal(await question(reader).getByRole('button').count(), 0);
  assert.equal(await says(await server.newPage()), 'input');
  await button(question(one), 'Don’t answer').click();
  await reader.getByText('admin cancelled it.').waitFor();
});

// Each of n characters; only the last ones differ.
const alike = (n, ...ends) => ends.map((end) => `${'Write to /srv, and '.repeat(n).slice(0, n - end.length)}${end}`);

test('options that differ only at their ends are shown to the end', async () => {
  const page = await server.newPage();
  const options = alike(260, ' keep a copy', ' keep nothing');
  await send(page, { method: 'select', title: 'How?', options });
  await question(page).waitFor();
  for (const option of options) {
    const whole = button(question(page), option);
    await whole.waitFor();
    const { isCut, right } = await whole.evaluate((el) => ({ right: el.getBoundingClientRect().right - innerWidth,
      isCut: [el, ...el.querySelectorAll('*')].some((e) => e.clientWidth && e.scrollWidth > e.clientWidth) }));
    assert.ok(!isCut && right <= 0, 'all of it is in view');
  }
  await button(question(page), options[1]).click();
  await heard(page, { 'd-0': [{ value: options[1] }] });
});

for (const [theme, width] of [['light', 1280], ['dark', 1280], ['light', 360]]) {
  test(`what is too long to be shown at once is chosen after it was, ${theme}, ${width} wide`, async () => {
    const page = await server.newPage({ theme, width });
    const [atMost, ...more] = [...alike(600, ' and keep it'), ...alike(601, ' and keep it', ' and lose it')];
    await send(page, { method: 'select', title: 'How?', options: ['Not at all', ...alike(150, ' a', ' b'), atMost,
      ...more] });
    const option = question(page).locator('.option');
    const unfold = question(page).getByRole('button', { name: 'show all 601 characters', exact: false });
    await option.nth(5).waitFor();
    assert.deepEqual(await option.evaluateAll((all) => all.map((b) => b.disabled)),
      [false, false, false, false, true, true]);
    assert.equal(await unfold.count(), 2);
    await shot(page, `playground-options-${theme}-${width}`, { whole: true });
    await axe(page, { contrast: true });
    await unfold.nth(1).press('Enter');
    assert.deepEqual([await option.nth(4).isDisabled(), await option.nth(5).isDisabled()], [true, false]);
    await question(page).getByRole('button', { name: 'show less' }).press('Enter'); // the focus has stayed
    await unfold.nth(1).press('Enter');
    await shot(page, `playground-options-whole-${theme}-${width}`, { whole: true });
    await button(question(page), more[1]).click();
    await heard(page, { 'd-0': [{ value: more[1] }] });
  });
}

test('a question that is over is not asked any more', async () => {
  const page = await server.newPage();
  await send(page, SELECT);
  await question(page).waitFor();
  await page.getByRole('button', { name: 'Cancel', exact: true }).click();
  await page.getByText('the work it belonged to is over').waitFor();
  assert.equal(await question(page).count(), 0);
});

// The playground and the page of the task, with a question, when the server is killed.
async function cutOff(own) {
  const one = await own.newPage();
  await send(one, SELECT);
  await question(one).waitFor();
  const { items: [{ id }] } = await own.ask('GET', '/api/tasks?limit=1');
  const pages = [one, await own.newPage({ at: `#/tasks/${id}` })];
  await question(pages[1]).waitFor();
  for (const page of pages) {
    allow(page, /ERR_|Failed to (load|fetch)|network/);
    await page.route('**/events', (route) => route.abort('connectionrefused'));
  }
  await own.kill9();
  for (const page of pages)
    await page.getByRole('navigation').getByText('reconnecting').waitFor();
  await own.restart();
  return { id, pages };
}

const over = (page, words) => page.locator('.asked-over').getByText(words).waitFor();

test('a question that ended while nobody could be told is over when the line is back', async () => {
  const own = await stage(HOUSE);
  const { id, pages } = await cutOff(own);
  await eventually(async () => (await own.ask('GET', `/api/tasks/${id}`)).inputs.length, 'the next program asks again');
  for (const page of pages) {
    await page.unroute('**/events');
    await over(page, 'it ended while this page was disconnected');
    await shot(page, `asked-over-${page === pages[0] ? 'playground' : 'task'}`, { whole: true });
    await question(page).waitFor(); // one, the new one: waitFor wants no more
  }
  await button(question(pages[1]), 'Block').click();
  for (const page of pages)
    await over(page, 'admin answered.');
  await heard(pages[0], { 'd-0': [{ value: 'Block' }] });
});

test('a question of a task that ended while nobody could be told is over too', async () => {
  const own = await stage(HOUSE);
  const { id, pages } = await cutOff(own);
  await own.ask('POST', `/api/tasks/${id}/cancel`);
  for (const page of pages) {
    await page.unroute('**/events');
    await over(page, /it ended while this page was disconnected|the work it belonged to is over/);
    assert.equal(await question(page).count(), 0);
  }
});

test('whatever it asks is words and nothing else', async () => {
  const page = await server.newPage();
  const title = STRINGS.join(' ').slice(0, 4000);
  await send(page, { method: 'select', title, options: STRINGS.slice(0, 20) });
  await question(page).waitFor();
  await button(question(page), 'Don’t answer').click();
  await page.getByText('admin cancelled it.').waitFor();
});
