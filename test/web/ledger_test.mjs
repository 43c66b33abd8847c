// The ledger: balances, statements and money that moves exactly once.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { allow, axe, eventually, shot, stage, test } from './stage.mjs';

const server = await stage({ agents: {
  ledger: { feePpm: 100000, perDay: 50000000, perRoot: 9000000 },
  agents: { list: [{ id: 'echo', url: 'echo:' }, { id: 'house', url: 'echo:', pricing: { amountMicros: 1500000 } }] },
} });
const anna = await server.user('anna');
const zoe = await server.user('zoe');
await server.ask('POST', '/api/agents', { name: 'translator', description: 'Translates', url: 'echo:',
  visibility: 'public', pricing: { amount_micros: 250000 } });
// An admin's agent: what it earns is theirs to be paid out.

const at = (where, more) => server.newPage({ at: `#/ledger${where}`, ...more });
const figure = (page, name) => page.locator(`[data-figure="${name}"]`);
const balance = async (user) => (await server.ask('GET', `/api/ledger/balance?user=${user}`)).balance_micros;
const lines = (page) => page.getByRole('table', { name: /^Statement/ }).getByRole('row');

async function open(page, what) {
  await page.getByRole('button', { name: what, exact: true }).first().click();
  return page.getByRole('dialog', { name: what });
}
async function fill(dialog, values) {
  for (const [label, value] of Object.entries(values)) await dialog.getByLabel(label).fill(value);
}
const submit = (dialog, name) => dialog.getByRole('button', { name, exact: true }).click();

test('a balance that is empty says what to do', async () => {
  const page = await at('', { token: zoe });
  await page.getByText('No entries yet').waitFor();
  await page.getByText('build/signalbox ledger topup zoe 25', { exact: true }).waitFor();
  await page.getByText('An admin can top up your balance').waitFor();
  assert.equal(await figure(page, 'Balance').textContent(), '0.00');
  for (const name of ['Top up', 'Refund', 'Pay out']) assert.equal(await page.getByRole('button', { name }).count(), 0);
  assert.deepEqual(await page.getByRole('tab').allTextContents(), ['Statement', 'Budgets']);
  assert.equal(await page.getByRole('searchbox', { name: 'User' }).count(), 0);
});

test('a top-up is exact to the last digit, and a double click pays once', async () => {
  const page = await at('?user=anna');
  const dialog = await open(page, 'Top up');
  assert.equal(await dialog.getByLabel('User').inputValue(), 'anna');
  await fill(dialog, { Amount: '20.000001', Note: 'invoice 4711' });
  await dialog.getByText('20.000001 units, 20,000,001 micro-units').waitFor();
  await dialog.getByRole('button', { name: 'Top up' }).dblclick();
  await page.getByText('anna was topped up by 20.000001. Balance: 20.000001').waitFor();
  await figure(page, 'Balance').getByText('20.000001').waitFor();
  assert.equal(await balance('anna'), 20000001);
  await lines(page).filter({ hasText: 'invoice 4711' }).filter({ hasText: '+20.000001' }).waitFor();
  assert.equal(await lines(page).count(), 2); // with the head
});

test('what somebody else pays in is there by itself', async () => {
  const page = await at('', { token: zoe });
  await page.getByText('No entries yet').waitFor();
  await server.ask('POST', '/api/ledger/topup', { user: 'zoe', amount_micros: 1230000 });
  await figure(page, 'Balance').getByText('1.23').waitFor();
  await lines(page).filter({ hasText: '+1.23' }).waitFor();
  await server.ask('POST', '/api/ledger/refund', { user: 'zoe', amount_micros: 1230000 });
  await figure(page, 'Balance').getByText('0.00').waitFor();
});

test('what is no amount moves nothing', async () => {
  const page = await at('?user=zoe');
  const dialog = await open(page, 'Top up');
  for (const [text, words] of [['0', 'from 0.000001'], ['1.0000001', 'six decimal'], ['1e3', 'six decimal'],
    ['-5', 'six decimal'],
    ['1,5', 'six decimal'], ['1000000000000.000001', 'to 1,000,000,000,000.00'], ['12345678901234', 'six decimal']]) {
    await fill(dialog, { Amount: text });
    await submit(dialog, 'Top up');
    await dialog.getByRole('alert').filter({ hasText: words }).waitFor();
  }
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached' });
  assert.equal(await balance('zoe'), 0);
});

test('the largest amount there is goes and comes back exactly', async () => {
  await server.user('rich');
  const page = await at('?user=rich');
  const dialog = await open(page, 'Top up');
  await fill(dialog, { Amount: '9007199254.740993' }); // no JavaScript number
  await submit(dialog, 'Top up');
  await figure(page, 'Balance').getByText('9,007,199,254.740993', { exact: true }).waitFor();
  const again = await open(page, 'Top up');
  // Words that look like an amount stay words.
  await fill(again, { Amount: '1000000000000', Note: '"x_micros":12345678901234567890' });
  await submit(again, 'Top up');
  await figure(page, 'Balance').getByText('1,009,007,199,254.740993', { exact: true }).waitFor();
  await lines(page).filter({ hasText: '+1,000,000,000,000.00' }).getByText('"x_micros":12345678901234567890').waitFor();
});

// The server does it, and its answer is lost on the way.
async function loseOneAnswer(page) {
  allow(page, /ledger\/topup/);
  await page.route('**/api/ledger/topup', async (route) => {
    await route.fetch();
    await route.abort('connectionreset');
  }, { times: 1 });
}

test('an answer that is lost is asked for again and paid once, also from another dialog', async () => {
  const page = await at('?user=zoe');
  await loseOneAnswer(page);
  let dialog = await open(page, 'Top up');
  await fill(dialog, { Amount: '3', Note: 'lost' });
  await submit(dialog, 'Top up');
  await dialog.getByRole('alert').filter({ hasText: 'Press again: it is made only once' }).waitFor();
  assert.equal(await balance('zoe'), 3000000);
  await submit(dialog, 'Top up');
  await page.getByText('it was not repeated').waitFor();
  assert.equal(await balance('zoe'), 3000000);

  await loseOneAnswer(page);
  dialog = await open(page, 'Top up');
  await fill(dialog, { Amount: '4' });
  await submit(dialog, 'Top up');
  await dialog.getByRole('alert').waitFor();
  await submit(dialog, 'Cancel');
  await page.reload();
  dialog = await open(page, 'Top up');
  await fill(dialog, { Amount: '4' });
  await submit(dialog, 'Top up');
  await page.getByText('it was not repeated').waitFor();
  assert.equal(await balance('zoe'), 7000000);
  // Answered, it is over: the same once more is another one.
  dialog = await open(page, 'Top up');
  await fill(dialog, { Amount: '4' });
  await submit(dialog, 'Top up');
  await figure(page, 'Balance').getByText('11.00').waitFor();
});

test('who works is paid, budgets fill, and a task is refunded once', async () => {
  const send = (name) => server.ask('POST', '/api/messages', { text: 'hi', executor: { name } }, { token: anna });
  const { task_id: task } = await send('translator');
  await send('house');
  const page = await at('?user=anna');
  await page.getByRole('img', { name: 'Spent today: 1.75 of 50.00' }).waitFor();
  await page.getByText('48.25 left until midnight UTC').waitFor();
  await page.getByText('at most 9.00').waitFor();
  const before = await balance('anna');
  await lines(page).filter({ hasText: 'translator' }).getByRole('button', { name: `Refund the task ${task}` }).click();
  let dialog = page.getByRole('dialog', { name: 'Refund' });
  assert.equal(await dialog.getByLabel('Task').inputValue(), task);
  await submit(dialog, 'Refund');
  await page.getByText('0.25 refunded to anna').waitFor();
  assert.equal(await balance('anna'), before + 250000);
  await lines(page).filter({ hasText: 'refund' }).filter({ hasText: '+0.25' }).waitFor();

  dialog = await open(page, 'Refund');
  await dialog.getByRole('tab', { name: 'A task' }).click();
  await fill(dialog, { Task: task });
  await axe(page);
  await shot(page, 'ledger-refund');
  await submit(dialog, 'Refund');
  await page.getByText('This transfer had already been made').waitFor();
  assert.equal(await balance('anna'), before + 250000);
});

test('money goes back to its user, and to who earned it, never below nothing', async () => {
  await server.ask('POST', '/api/messages', { text: 'hi', executor: { name: 'translator' } }, { token: anna });
  const page = await at('?user=anna');
  allow(page, /402/);
  const before = await balance('anna');
  let dialog = await open(page, 'Refund');
  await fill(dialog, { Amount: '5', Note: 'account closed' });
  await submit(dialog, 'Refund');
  await page.getByText('5.00 refunded').waitFor();
  assert.equal(await balance('anna'), before - 5000000);

  dialog = await open(page, 'Pay out');
  await fill(dialog, { User: 'admin', Amount: '100' });
  await submit(dialog, 'Pay out');
  await dialog.getByRole('alert').filter({ hasText: /balance|less/ }).waitFor();
  await fill(dialog, { Amount: '0.1' });
  await submit(dialog, 'Pay out');
  await page.getByText('0.10 paid out to admin').waitFor();
  await page.getByRole('searchbox', { name: 'User' }).fill('admin');
  await page.getByRole('searchbox', { name: 'User' }).press('Enter');
  await page.getByLabel('Account').selectOption('creator');
  await lines(page).filter({ hasText: 'payout' }).filter({ hasText: '−0.10' }).waitFor();
});

test('a charge is refunded from its task, and a creator who was paid out owes it', async () => {
  const { task_id: task } = await server.ask('POST', '/api/messages', { text: 'hi', executor: { name: 'translator' } },
    { token: anna });
  const { earned_micros: earned } = await server.ask('GET', '/api/ledger/balance');
  await server.ask('POST', '/api/ledger/payout', { user: 'admin', amount_micros: earned });
  const before = await balance('anna');
  const page = await server.newPage({ at: `#/tasks/${task}` });
  await page.getByText('Charge', { exact: true }).waitFor();
  const dialog = await open(page, 'Refund');
  await dialog.getByText('Empty: the whole charge.').waitFor();
  await fill(dialog, { Amount: '0.1' });
  await axe(page);
  await shot(page, 'ledger-refund-task');
  await submit(dialog, 'Refund');
  await page.getByText('0.10 refunded to anna').waitFor();
  assert.equal(await balance('anna'), before + 100000);
  const books = await at('?user=admin');
  await figure(books, 'Owed').getByText('0.09').waitFor();
  await shot(books, 'ledger-owed');
  const theirs = await at('?user=anna');
  await lines(theirs).filter({ hasText: 'charge' }).first().waitFor();
  assert.equal(await lines(theirs).filter({ hasText: /reserve/ }).count(), 0);
});

test('a budget is set, warns, is changed and removed', async () => {
  await server.ask('POST', '/api/messages', { text: 'hi', executor: { name: 'translator' } }, { token: anna });
  const page = await at('/budgets');
  await page.getByText('No budgets').waitFor();
  const dialog = await open(page, 'Set a budget');
  await fill(dialog, { Name: 'translator', Limit: 'x' });
  await dialog.getByLabel('For').selectOption('agent');
  await submit(dialog, 'Set');
  await dialog.getByRole('alert').filter({ hasText: 'The limit must be a number' }).waitFor();
  await fill(dialog, { Limit: '5' });
  await dialog.getByLabel('Period').selectOption('month');
  await axe(page);
  await submit(dialog, 'Set');
  await page.getByText('agent translator: 5.00 a month.').waitFor();
  const rows = page.getByRole('table', { name: 'Budgets' }).getByRole('row');
  await rows.filter({ hasText: 'translator' }).filter({ hasText: '5.00' }).waitFor();
  await server.ask('PUT', '/api/budgets', { user: 'anna', period: 'day', limit_micros: 2500000 });
  await rows.filter({ hasText: 'anna' }).getByRole('img', { name: /^Used: / }).waitFor();
  await shot(page, 'ledger-budgets');
  await page.getByRole('button', { name: 'Change agent translator month' }).click();
  const again = page.getByRole('dialog', { name: 'Set a budget' });
  assert.equal(await again.getByLabel('Name').inputValue(), 'translator');
  await fill(again, { Limit: '6.5' });
  await submit(again, 'Set');
  await rows.filter({ hasText: '6.50' }).waitFor();
  await page.getByRole('button', { name: 'Remove agent translator month' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
  await rows.filter({ hasText: 'translator' }).waitFor({ state: 'detached' });
  // One's own, without a name; what an admin set is seen and not changed.
  const hers = await at('/budgets', { token: anna });
  const own = await open(hers, 'Set a budget');
  assert.equal(await own.getByLabel('Name').count(), 0);
  await fill(own, { Limit: '1' });
  await submit(own, 'Set');
  await hers.getByText('anna, set by the user: 1.00 a day.').waitFor();
  // Both stand beside the balance, and an admin can remove the one but not change it.
  await hers.getByRole('img', { name: /^Used a day: .* of 2.50$/ }).waitFor();
  await hers.getByRole('img', { name: /^Used a day, set by the user: .* of 1.00$/ }).waitFor();
  await axe(hers);
  await shot(hers, 'ledger-own-budget');
  await rows.filter({ hasText: 'self' }).waitFor();
  assert.equal(await page.getByRole('button', { name: 'Change self anna day' }).count(), 0);
  await page.getByRole('button', { name: 'Remove self anna day' }).click();
  await page.getByRole('dialog').getByText('anna, set by the user').waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
  await rows.filter({ hasText: 'self' }).waitFor({ state: 'detached' });
  await hers.getByRole('button', { name: 'Remove self anna day' }).waitFor({ state: 'detached' });
  await server.ask('PUT', '/api/budgets', { period: 'day', limit_micros: 1000000 }, { token: anna });
  await hers.getByRole('button', { name: 'Remove self anna day' }).click();
  await hers.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
  await hers.getByText('Removed.').waitFor();
  assert.equal(await hers.getByRole('button', { name: 'Change user anna day' }).count(), 0);
  await server.ask('DELETE', '/api/budgets?user=anna&period=day');
});

test('accounts lead to their lines, lines to a file, and the books add up', async () => {
  const page = await at('/accounts');
  const accounts = page.getByRole('table', { name: 'Accounts' });
  await accounts.getByRole('row').filter({ hasText: 'platform' }).waitFor();
  await accounts.getByRole('link', { name: 'user:anna' }).click();
  await page.waitForURL(/statement\?user=anna/);
  await lines(page).filter({ hasText: 'invoice 4711' }).waitFor();
  const [download] = await Promise.all([page.waitForEvent('download'),
    page.getByRole('button', { name: 'Download CSV' }).click()]);
  assert.equal(download.suggestedFilename(), 'signalbox-statement-anna.csv');
  const csv = fs.readFileSync(await download.path(), 'utf8').trimEnd().split('\r\n');
  assert.match(csv[0], /^seq,at_ms/);
  assert.equal(csv.length, await lines(page).count());
  assert.ok(csv.some((line) => line.includes('invoice 4711') && line.includes('20.000001')));

  await page.getByLabel('To, inclusive (UTC)').fill('2001-01-01');
  await page.getByText('No line matches').waitFor();
  await page.getByRole('button', { name: 'Show all lines' }).click();
  await lines(page).filter({ hasText: 'invoice 4711' }).waitFor();
  allow(page, /400/); // of no one's account
  await page.goto(`${server.url}/#/ledger?account=${encodeURIComponent('user:\u202egro.live')}`);
  await eventually(async () => (await page.getByLabel('Account').innerText()).includes('user:⟨U+202E⟩gro.live'),
    'the account is named, with what hides in it');
  await page.goto(`${server.url}/#/ledger?user=anna`);
  await page.getByLabel('Account').selectOption('all');
  await lines(page).filter({ hasText: 'outside' }).first().waitFor();

  await page.getByRole('tab', { name: 'Check' }).click();
  await page.getByRole('button', { name: 'Check', exact: true }).click();
  await page.getByText('no problems found').waitFor();
});

test('a long statement has few rows in the document, and all of them in its file', async () => {
  await server.user('busy');
  for (let i = 0; i < 150; i++) await server.ask('POST', '/api/ledger/topup', { user: 'busy', amount_micros: i + 1 });
  const page = await at('?user=busy');
  await lines(page).filter({ hasText: '+0.00015' }).waitFor();
  assert.ok(await lines(page).count() < 80);
  const body = page.getByRole('rowgroup', { name: /^Statement/ });
  await eventually(async () => {
    await body.evaluate((el) => { el.scrollTop = el.scrollHeight; });
    return (await lines(page).filter({ hasText: '+0.000001' }).count()) > 0;
  }, 'the first line of all');
  assert.ok(await lines(page).count() < 80);
  await page.getByText('150 in total').waitFor();
});

test('another’s money is not theirs to see', async () => {
  const page = await at('?user=admin', { token: anna });
  await page.getByText('Balance of anna').waitFor();
  await lines(page).filter({ hasText: 'invoice 4711' }).waitFor();
  await page.goto(`${server.url}/#/ledger/accounts`);
  await lines(page).first().waitFor();
});

test('who is not there is said once, and what hides in an account’s name is shown', async () => {
  const page = await server.newPage({ at: '#/ledger?user=missing-of-that-name' });
  allow(page, /404|403|400/);
  await page.getByRole('alert').first().waitFor();
  assert.equal(await page.getByRole('alert').count(), 1);
  const other = await server.newPage({ at: '#/ledger?account=user:%E2%80%AEgro.live' });
  allow(other, /404|403|400/);
  await eventually(async () => (await other.getByLabel('Account')
    .locator('option').allTextContents()).includes('user:⟨U+202E⟩gro.live'), 'the account, as it is');
});

const VIEWS = { statement: '?user=anna', accounts: '/accounts', check: '/check' };
for (const [name, wishes] of Object.entries({ light: {}, dark: { theme: 'dark' }, phone: { width: 360, height: 740 } }))
  test(`the ledger, ${name}`, async () => {
    const page = await at('', wishes);
    for (const [view, where] of Object.entries(VIEWS)) {
      await page.goto(`${server.url}/#/ledger${where}`);
      await page.locator('[role=tabpanel] :is(.list, .card)').first().waitFor();
      await figure(page, 'Balance').waitFor();
      await axe(page);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${view} is too wide`);
      await shot(page, `ledger-${view}-${name}`, { whole: view === 'statement' && name === 'phone' });
    }
    const dialog = await open(page, 'Top up');
    await axe(page);
    await shot(page, `ledger-topup-${name}`);
    await submit(dialog, 'Cancel');
  });
