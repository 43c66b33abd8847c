// Settings: every tab and every action, with a real server.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { allow, axe, eventually, shot, stage, test } from './stage.mjs';

// The file is a link into a folder that is not watched: it is read again when
// the page asks for it, and not before.
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'signalbox-settings-'));
process.on('exit', () => fs.rmSync(folder, { recursive: true, force: true }));
const write = (name, value) => {
  const file = path.join(folder, name);
  fs.writeFileSync(`${file}.new`, typeof value === 'string' ? value : JSON.stringify(value));
  fs.renameSync(`${file}.new`, file);
  return file;
};
const rules = write('rules.json', { channels: {
  '#kept': { takes: ['decisions', 'alerts'], file: { path: 'kept.jsonl' } },
  '#broken': { takes: ['decisions'], webhook: { url: 'http://127.0.0.1:9/services/SECRET', form: 'slack' } },
}, escalations: [{ rule: 'a person looks', match: { to: 'echo', type: 'MESSAGE' } }], agents: { echo: {} } });
const config = {
  rules, retention: { days: 7 }, outgoing: { allow: ['127.0.0.0/8'] },
  models: { small: { baseUrl: 'http://127.0.0.1:1/v1?key=SECRET', model: 'x', keyVariable: 'NOT_SET_KEY' } },
  processes: { code: { command: ['cat', 'SECRET'], env: { API_TOKEN: 'SECRET' } } },
  bindings: [{ agentId: 'echo', match: { channel: 'telegram', peer: { kind: 'group', id: '-100' } } }],
  agents: { default: 'echo', list: [{ id: 'echo', url: 'echo:' }, { id: 'quick', url: 'echo:' }] },
};
write('real.jsonc', config);
fs.mkdirSync(path.join(folder, 'here'));
fs.symlinkSync(path.join(folder, 'real.jsonc'), path.join(folder, 'here/test.jsonc'));
const args = ['--config', path.join(folder, 'here/test.jsonc'), '--set', 'stopGraceMs=500'];
const server = await stage({ args });
const anna = await server.user('anna', { org: 'acme' });
await server.ask('POST', '/api/agents', { name: 'drafts', description: 'Writes drafts', url: 'echo:',
  visibility: 'shared' });

const at = (tab, more) => server.newPage({ at: `#/settings/${tab}`, ...more });
const row = (page, table, words) => page.getByRole('table', { name: table }).getByRole('row')
  .filter({ hasText: words });
const me = (token) => server.api('GET', '/api/me', undefined, { token });

// Tokens.

async function makeToken(page, fill) {
  await page.getByRole('button', { name: 'Create a token' }).click();
  const dialog = page.getByRole('dialog', { name: 'Create a token' });
  await fill(dialog);
  await dialog.getByRole('button', { name: 'Create', exact: true }).click();
}

test('a token is made with its scopes, told once, and revoked', async () => {
  const page = await at('tokens', { permissions: ['clipboard-read', 'clipboard-write'] });
  await row(page, 'Tokens', 'this one').waitFor(); // there is one of them
  await makeToken(page, async (dialog) => {
    await dialog.getByLabel('Label').fill('night \u202e report');
    await dialog.getByLabel(/^agents/).uncheck();
    await dialog.getByLabel(/^escalations/).uncheck();
    await dialog.getByLabel('Expires').selectOption('in 1 hour');
    await axe(page);
    await shot(page, 'settings-token-new');
  });
  const told = page.getByRole('dialog', { name: 'Copy it now' });
  const secret = await told.locator('[data-secret]').textContent();
  await axe(page);
  await shot(page, 'settings-token-made');
  await page.keyboard.press('Escape'); // it would be gone
  assert.ok(await told.isVisible());
  await told.getByRole('button', { name: /^Copy token/ }).click();
  await told.getByText('Copied', { exact: true }).waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), secret);
  const { body } = await me(secret);
  assert.deepEqual([body.user, body.scopes], ['admin', ['send', 'read']]);
  const left = body.expires_ms - Date.now();
  assert.ok(left > 3500e3 && left <= 3600e3, `${left}`);
  await told.getByRole('button', { name: 'I copied it' }).click();
  await told.waitFor({ state: 'detached' });
  assert.ok(!(await page.content()).includes(secret));
  const mine = row(page, 'Tokens', 'night');
  await mine.getByRole('img', { name: 'right-to-left override' }).waitFor();
  await mine.getByRole('button', { name: /^Revoke/ }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
  await mine.waitFor({ state: 'detached' });
  assert.equal((await me(secret)).status, 401);
});

test('a token without a scope is none, and what the server refuses is said', async () => {
  const page = await at('tokens');
  allow(page, /404|400/);
  await makeToken(page, async (dialog) => {
    for (const scope of ['send', 'read', 'agents', 'escalations'])
      await dialog.getByLabel(new RegExp(`^${scope}`)).uncheck();
  });
  const dialog = page.getByRole('dialog', { name: 'Create a token' });
  await dialog.getByRole('alert').filter({ hasText: 'at least one scope' }).waitFor();
  await dialog.getByLabel(/^read/).check();
  await dialog.getByRole('textbox', { name: /^User/ }).fill('missing-here');
  await dialog.getByRole('button', { name: 'Create', exact: true }).click();
  await dialog.getByRole('alert').filter({ hasText: /user/ }).waitFor();
  await dialog.getByRole('textbox', { name: /^User/ }).fill('anna');
  await dialog.getByRole('button', { name: 'Create', exact: true }).click();
  await page.getByRole('button', { name: 'I copied it' }).click();
  await page.getByRole('searchbox', { name: 'User' }).fill('anna');
  await page.getByRole('searchbox', { name: 'User' }).press('Enter');
  await page.waitForURL(/user=anna/);
  await eventually(async () => (await row(page, 'Tokens', 'anna').count()) === 2
    && (await row(page, 'Tokens', 'admin').count()) === 0, 'both of hers, and no one else’s');
});

test('what is being typed stays while the list is read again', async () => {
  const page = await at('tokens');
  await row(page, 'Tokens', 'this one').waitFor();
  await page.getByRole('searchbox', { name: 'User' }).pressSequentially('ann');
  await server.ask('POST', '/api/tokens', { label: 'meanwhile' });
  await row(page, 'Tokens', 'meanwhile').waitFor();
  assert.equal(await page.getByRole('searchbox', { name: 'User' }).inputValue(), 'ann');
});

test('who revokes the token they are signed in with is signed out', async () => {
  const { token } = await server.ask('POST', '/api/tokens', { label: 'short' });
  const page = await at('tokens', { token });
  allow(page, /401/); // of a call that was under way when the token went
  const mine = row(page, 'Tokens', 'this one');
  await mine.getByRole('button', { name: /^Revoke/ }).click();
  const sure = page.getByRole('dialog');
  await sure.getByText('You will be signed out').waitFor();
  await sure.getByRole('button', { name: 'Revoke' }).click();
  await page.getByText('You have revoked the token').waitFor();
  assert.equal((await me(token)).status, 401);
});

test('the last token of an admin goes after a second question', async () => {
  const own = await stage();
  const page = await own.newPage({ at: '#/settings/tokens' });
  allow(page, /412|401/);
  const revoke = async () => {
    await row(page, 'Tokens', 'this one').getByRole('button', { name: /^Revoke/ }).click();
    await page.getByRole('dialog').getByText('You will be signed out').waitFor();
    await page.getByRole('button', { name: 'Revoke', exact: true }).click();
    await page.getByRole('heading', { name: 'Revoke the last token of an admin?' }).waitFor();
  };
  await revoke();
  await shot(page, 'revoke-last-admin');
  await axe(page);
  await page.getByRole('button', { name: 'Go back' }).click();
  assert.equal((await own.api('GET', '/api/me')).status, 200);
  await revoke();
  await page.getByRole('button', { name: 'Revoke the last one' }).click();
  await page.getByText('You have revoked the token').waitFor();
  assert.equal((await own.api('GET', '/api/me')).status, 401);
});

// Users.

test('a user is made with a token, changed and removed', async () => {
  const page = await at('users');
  allow(page, /409/);
  await page.getByRole('button', { name: 'Create a user' }).click();
  const dialog = page.getByRole('dialog', { name: 'Create a user' });
  await dialog.getByLabel('Name').fill('anna');
  await dialog.getByRole('button', { name: 'Create', exact: true }).click();
  await dialog.getByRole('alert').filter({ hasText: 'there is a user of that name' }).waitFor();
  await dialog.getByLabel('Name').fill('clerk');
  await dialog.getByLabel('Role').selectOption('agent');
  await dialog.getByLabel('Owner').fill('anna');
  assert.equal(await dialog.getByRole('textbox', { name: /^Org/ }).count(), 0);
  await dialog.getByRole('button', { name: 'Create', exact: true }).click();
  const token = page.getByRole('dialog', { name: 'Create a token' });
  assert.equal(await token.getByRole('textbox', { name: /^User/ }).inputValue(), 'clerk');
  assert.equal(await token.getByRole('checkbox').count(), 2); // what the role may
  await token.getByRole('button', { name: 'Create', exact: true }).click();
  const secret = await page.locator('[data-secret]').textContent();
  assert.equal((await me(secret)).body.owner, 'anna');
  await page.getByRole('button', { name: 'I copied it' }).click();
  await row(page, 'Users', 'clerk').filter({ hasText: 'acme' }).waitFor();

  await row(page, 'Users', 'clerk').getByRole('button', { name: 'Change clerk' }).click();
  const edit = page.getByRole('dialog', { name: 'Change clerk' });
  await edit.getByLabel('Role').selectOption('user');
  await edit.getByRole('textbox', { name: /^Org/ }).fill('partner');
  await edit.getByRole('button', { name: 'Save' }).click();
  await row(page, 'Users', 'clerk').filter({ hasText: 'partner' }).waitFor();
  const { items } = await server.ask('GET', '/api/users');
  const { role, org, owner } = items.find((u) => u.name === 'clerk');
  assert.deepEqual([role, org, owner], ['user', 'partner', null]);

  await row(page, 'Users', 'clerk').getByRole('button', { name: 'Create a token for clerk' }).click();
  assert.equal(await token.getByRole('checkbox').count(), 3); // of the new role
  await token.getByRole('button', { name: 'Cancel' }).click();
  await row(page, 'Users', 'clerk').getByRole('button', { name: 'Remove clerk' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Go back' }).click();
  await row(page, 'Users', 'clerk').getByRole('button', { name: 'Remove clerk' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Remove', exact: true }).click();
  await row(page, 'Users', 'clerk').waitFor({ state: 'detached' });
  assert.equal((await me(secret)).status, 401);
});

test('the last admin stays, in the server’s words', async () => {
  const page = await at('users');
  allow(page, /403/);
  await row(page, 'Users', 'you').getByRole('button', { name: 'Remove admin' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Remove', exact: true }).click();
  await page.getByRole('status').filter({ hasText: /last admin|another admin|admin/ }).first().waitFor();
  assert.ok((await server.ask('GET', '/api/users')).items.some((u) => u.name === 'admin'));
});

// Grants.

test('a grant is given to a user and to an org, and taken back', async () => {
  const page = await at('grants');
  allow(page, /400|404/);
  await page.getByText('build/signalbox grants add AGENT --user NAME').waitFor();
  await page.getByRole('button', { name: 'Grant', exact: true }).click();
  let dialog = page.getByRole('dialog', { name: 'Grant access to an agent' });
  await dialog.getByLabel('Agent').fill('drafts');
  await dialog.getByRole('textbox', { name: /^User/ }).fill('missing-here');
  await dialog.getByRole('button', { name: 'Grant' }).click();
  await dialog.getByRole('alert').filter({ hasText: /user/ }).waitFor();
  await dialog.getByRole('textbox', { name: /^User/ }).fill('anna');
  await dialog.getByLabel('Expires').selectOption('in 7 days');
  await dialog.getByRole('button', { name: 'Grant' }).click();
  await row(page, 'Grants', 'anna').waitFor();
  const see = await server.api('GET', '/api/agents/drafts', undefined, { token: anna });
  assert.equal(see.status, 200);

  await page.getByRole('button', { name: 'Grant', exact: true }).click();
  dialog = page.getByRole('dialog', { name: 'Grant access to an agent' });
  await dialog.getByLabel('Agent').fill('quick');
  await dialog.getByLabel('For').selectOption('org');
  await dialog.getByRole('textbox', { name: /^Org/ }).fill('partner');
  await dialog.getByRole('button', { name: 'Grant' }).click();
  await page.getByText('quick is visible to partner. The agent is public').waitFor();
  await row(page, 'Grants', 'partner').waitFor();

  await row(page, 'Grants', 'anna').getByRole('button', { name: /Revoke/ }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
  await row(page, 'Grants', 'anna').waitFor({ state: 'detached' });
  assert.equal((await server.api('GET', '/api/agents/drafts', undefined, { token: anna })).status, 404);
  await page.getByRole('searchbox', { name: 'Agent' }).fill('drafts');
  await page.getByRole('searchbox', { name: 'Agent' }).press('Enter');
  await page.getByText('No grants for this agent').waitFor();
});

// Channels.

test('channels show how far they are, and what is wrong with one', async () => {
  await server.ask('POST', '/api/messages', { text: 'look', executor: { name: 'echo' }, wait_ms: 0 });
  const page = await at('channels');
  const kept = page.getByRole('row').filter({ hasText: '#kept' });
  await kept.filter({ hasText: 'kept.jsonl' }).filter({ hasText: 'ok' }).waitFor();
  await eventually(async () => (await kept.getByRole('cell').nth(3).textContent()) === '1', 'an entry in the file');
  const broken = page.getByRole('row').filter({ hasText: '#broken' });
  await broken.filter({ hasText: 'failing' }).filter({ hasText: 'http://127.0.0.1:9/…set…' }).waitFor();
  assert.ok(!(await page.content()).includes('SECRET'));
});

test('a server without any of it says what to do', async () => {
  const bare = await stage();
  const page = await bare.newPage({ at: '#/settings/channels' });
  await page.getByText('No channels').waitFor();
  await page.getByText('signalbox serve --set rules=routing_rules.json').waitFor();
  await shot(page, 'settings-channels-none');
  await page.goto(`${bare.url}/#/settings/configuration`);
  await page.getByText('would be read if it existed').waitFor();
  await page.goto(`${bare.url}/#/settings/grants`);
  await page.getByText('build/signalbox grants add AGENT --user NAME').waitFor();
});

// Configuration.

const setting = (page, name) => page.locator('.setting').filter({ has: page.getByText(name, { exact: true }) });

test('each value says where it is from, and is found by its name', async () => {
  const page = await at('configuration');
  const days = setting(page, 'retention.days');
  await days.filter({ hasText: '7 days' }).filter({ hasText: 'default 30' }).filter({ hasText: 'test.jsonc:1:' })
    .waitFor();
  await setting(page, 'stopGraceMs').filter({ hasText: '--set stopGraceMs' }).waitFor();
  const all = await page.locator('.setting').count();
  assert.ok(all > 100);
  await page.getByLabel('Show').selectOption('changed settings');
  await page.waitForURL(/show=set/);
  await page.getByText(new RegExp(`of ${all} settings`)).waitFor();
  assert.equal(await page.locator('.setting').filter({ hasText: /^log\./ }).count(), 0);
  await page.locator('body').press('/');
  const entries = await page.evaluate(() => history.length);
  await page.keyboard.type('retention ', { delay: 40 });
  await page.waitForURL(/q=retention$/);
  await page.keyboard.type('d'); // the space before it is not lost
  await page.waitForURL(/q=retention\+d$/);
  assert.equal(await page.evaluate(() => history.length), entries + 1); // Back is not letter by letter
  await eventually(async () => (await page.locator('.setting').count()) === 1, 'one setting is left');
  await page.getByLabel('Search').fill('no such thing at all');
  await page.getByRole('button', { name: 'Show all' }).click();
  await eventually(async () => (await page.locator('.setting').count()) === all, 'all of them again');
  await page.getByRole('region', { name: 'Models' }).getByText('NOT_SET_KEY').first().waitFor();
  await page.getByRole('region', { name: 'Programs' }).getByText('API_TOKEN').first().waitFor();
  await page.getByRole('region', { name: 'Bindings' }).getByText('channel telegram').first().waitFor();
  assert.ok(!(await page.content()).includes('SECRET'));
});

test('it is read again: what changed, what waits, and what is wrong, whole or not at all', async () => {
  const page = await at('configuration');
  allow(page, /422/);
  const again = page.getByRole('button', { name: 'Reload' });
  write('real.jsonc', { ...config, retention: { days: 8 }, node: 'other' });
  await again.click();
  const note = page.getByRole('status').filter({ hasText: 'Reloaded' });
  await note.filter({ hasText: 'node, retention.days' }).filter({ hasText: 'Waiting for a restart: node' }).waitFor();
  await setting(page, 'retention.days').filter({ hasText: '8 days' }).waitFor();
  await setting(page, 'node').filter({ hasText: 'main' }).filter({ hasText: 'after a restart' })
    .filter({ hasText: 'other' }).waitFor();

  write('real.jsonc', '{\n  "retention": { "days": 0 }, "node": "third"\n}');
  await again.click();
  await page.getByRole('alert').filter({ hasText: 'The previous configuration stays' })
    .filter({ hasText: 'test.jsonc:2:26' }).filter({ hasText: 'retention.days must be' }).waitFor();
  await setting(page, 'retention.days').filter({ hasText: '8 days' }).waitFor();
  await shot(page, 'settings-configuration-refused');
  // Anyone who comes later is told too.
  const later = await at('configuration');
  await later.getByRole('alert').filter({ hasText: 'was rejected' }).waitFor();

  write('real.jsonc', config);
  await again.click();
  await note.filter({ hasText: 'Changed: node, retention.days' }).waitFor();
  await later.getByRole('alert').waitFor({ state: 'detached' }); // by itself
  assert.equal(await page.getByRole('alert').count(), 0);
});

// Others.

test('who is no admin sees what is theirs, and is told of the rest', async () => {
  const page = await at('tokens', { token: anna });
  await row(page, 'Tokens', 'this one').waitFor();
  assert.equal(await row(page, 'Tokens', 'admin').count(), 0);
  assert.deepEqual(await page.getByRole('tab').allTextContents(), ['Tokens', 'Grants', 'About']);
  await page.getByRole('button', { name: 'Create a token' }).click();
  assert.equal(await page.getByRole('dialog').getByRole('checkbox').count(), 3);
  assert.equal(await page.getByRole('dialog').getByRole('textbox', { name: /^User/ }).count(), 0);
  await page.keyboard.press('Escape');
  for (const tab of ['users', 'channels', 'configuration']) {
    await page.goto(`${server.url}/#/settings/${tab}`);
    await page.getByText(`Only admins see ${tab}`).waitFor();
    assert.equal(await page.locator('[role=tabpanel] .command').count(), 0); // no token could
  }
  await page.goto(`${server.url}/#/settings/about`);
  await page.getByText('Signalbox 0.').waitFor();
  await page.getByText('acme').waitFor();
  // With the keys: the tabs are one stop, and arrows move.
  await page.getByRole('tab', { name: 'About' }).focus();
  await page.keyboard.press('ArrowLeft');
  await page.waitForURL(/settings\/grants/);
});

test('who has the role and another token is told how to make one', async () => {
  const { token } = await server.ask('POST', '/api/tokens', { label: 'sends', scopes: ['send'] });
  const page = await at('users', { token });
  allow(page, /403/); // nor may it read the feed
  await page.getByText('build/signalbox token create --user admin --scopes send,read,admin', { exact: true }).waitFor();
  await page.goto(`${server.url}/#/settings/grants`);
  await page.getByText('build/signalbox token create --user admin --scopes send,read', { exact: true }).waitFor();
  await page.goto(`${server.url}/#/settings/no-such-tab`);
  await page.getByRole('tab', { name: 'Tokens', selected: true }).waitFor();
  assert.equal(await page.getByRole('alert').count(), 0);
});

test('on a phone a user has a role, gets a token and goes', async () => {
  await server.ask('POST', '/api/users', { name: 'fay', role: 'user' });
  const page = await at('users', { width: 360, height: 740 });
  await row(page, 'Users', 'fay').getByText('user', { exact: true }).waitFor();
  await shot(page, 'settings-users-phone-row');
  await row(page, 'Users', 'fay').getByRole('button', { name: 'Change fay' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Create a token for them' }).click();
  await page.getByRole('dialog', { name: /token/i }).getByRole('button', { name: 'Cancel' }).click();
  await row(page, 'Users', 'fay').getByRole('button', { name: 'Change fay' }).click();
  await shot(page, 'settings-users-phone-change');
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
  await page.getByRole('dialog', { name: 'Remove this user?' }).getByRole('button', { name: 'Remove', exact: true })
    .click();
  await row(page, 'Users', 'fay').waitFor({ state: 'detached' });
});

const TABS = ['tokens', 'users', 'grants', 'channels', 'configuration', 'about'];
for (const [name, wishes] of Object.entries({ light: {}, dark: { theme: 'dark' }, phone: { width: 360, height: 740 } }))
  test(`the settings, ${name}`, async () => {
    const page = await at('tokens', wishes);
    for (const tab of TABS) {
      await page.goto(`${server.url}/#/settings/${tab}`);
      await page.locator(`[role=tabpanel] :is(.list, .card, .empty)`).first().waitFor();
      await axe(page);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${tab} is too wide`);
      await shot(page, `settings-${tab}-${name}`);
    }
  });
