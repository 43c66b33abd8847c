// What an agent's program asks while it works: shown where somebody looks on,
// answered there, and told to the others. The program speaks pi's dialect.
import assert from 'node:assert/strict';
import path from 'node:path';
import { allow, axe, shot, stage, test } from './stage.mjs';
import { STRINGS } from './hostile_strings.mjs';

const CHILD = path.join(process.env.SIGNALBOX_SOURCE, 'test/lib/pi_dialogs.py');
const server = await stage({ agents: {
  deliver: { inputMs: 3600000 },
  agents: { list: [{ id: 'pi', process: { command: ['python3', CHILD], dialect: 'pi' } }] },
} });
const message = (page) => page.getByLabel('Message', { exact: true });
const question = (page) => page.getByRole('region', { name: 'A question of the agent' });
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
  await page.getByText('admin has answered.').waitFor();
  await button(one('Sure?'), 'Yes').click();
  await one('Your name').getByLabel('Your answer').fill('Grace');
  await one('Your name').getByLabel('Your answer').press('Enter');
  assert.equal(await one('The note').getByLabel('Your answer').inputValue(), 'Line 1\nLine 2');
  await button(one('The note'), 'No answer').click();
  await heard(page, { 'd-0': [{ value: 'Block' }], 'd-1': [{ confirmed: true }], 'd-2': [{ value: 'Grace' }],
    'd-3': [{ cancelled: true }] });
  assert.equal(await question(page).count(), 0);
  await page.getByText('admin has cancelled it.').waitFor();
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
  // Somebody else was first, and this page has not heard of it yet.
  await two.route('**/input', async (route) => {
    const { inputs: [{ input_id }] } = await server.ask('GET', `/api/tasks/${id}`);
    await server.ask('POST', `/api/tasks/${id}/input`, { input_id, value: 'Allow' });
    await route.continue();
  });
  allow(two, /409/);
  await button(question(two), 'Block').click();
  await two.getByText('admin has answered.').waitFor();
  await one.getByText('admin has answered.').waitFor();
  await heard(one, { 'd-0': [{ value: 'Allow' }] });
});

test('a question that is over is not asked any more', async () => {
  const page = await server.newPage();
  await send(page, SELECT);
  await question(page).waitFor();
  await page.getByRole('button', { name: 'Cancel', exact: true }).click();
  await page.getByText('it is not asked any more').waitFor();
  assert.equal(await question(page).count(), 0);
});

test('whatever it asks is words and nothing else', async () => {
  const page = await server.newPage();
  const title = STRINGS.join(' ').slice(0, 4000);
  await send(page, { method: 'select', title, options: STRINGS.slice(0, 20) });
  await question(page).waitFor();
  await button(question(page), 'No answer').click();
  await page.getByText('admin has cancelled it.').waitFor();
});
