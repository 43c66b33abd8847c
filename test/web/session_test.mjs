// Who is signed in: links that bring a token, tokens that end, servers that
// restart, clocks that differ; nothing of what someone was doing is lost.
import assert from 'node:assert/strict';
import { allow, axe, eventually, shot, stage, test } from './stage.mjs';

const server = await stage({ agents: 'demo' });
const message = (page) => page.getByLabel('Message', { exact: true });
const menu = (page) => page.getByRole('navigation', { name: 'Pages' });
const isIn = (page, user) => menu(page).getByText(user, { exact: true }).waitFor();
const newToken = async (user, more = {}) => server.ask('POST', '/api/tokens', { user, ...more });

test('a link signs in once that was confirmed, and its token is in no address afterwards', async () => {
  const page = await server.newPage({ token: null });
  await page.goto(`${server.url}/#token=${server.token}`);
  await page.getByRole('button', { name: 'Sign in as admin' }).waitFor();
  assert.equal(page.url(), `${server.url}/#/playground`);
  await shot(page, 'sign-in-by-link');
  await axe(page);
  const offered = await page.locator('main').innerText();
  assert.match(offered, /User\s+admin \(role admin\)/);
  assert.ok(offered.includes(server.url), offered);
  await page.getByRole('button', { name: 'Sign in as admin' }).click();
  await isIn(page, 'admin');
  assert.equal(page.url(), `${server.url}/#/playground`);
  await page.goBack().catch(() => {});
  assert.ok(!page.url().includes('sbx_'), page.url());
  await page.reload();
  assert.ok(!page.url().includes('sbx_'));
});

test('a link that was not confirmed signs nobody in, now or later', async () => {
  const page = await server.newPage({ token: null });
  const asked = [];
  page.on('request', (r) => asked.push(new URL(r.url()).pathname));
  await page.goto(`${server.url}/#token=${server.token}&to=/settings`);
  await page.getByRole('button', { name: 'Sign in as admin' }).waitFor();
  assert.deepEqual(asked.filter((path) => path.startsWith('/api/') || path === '/hub'), ['/api/me']);
  assert.equal(await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }])
    .includes('sbx_')), false);
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByLabel('Token').waitFor();
  await page.reload();
  await page.getByLabel('Token').waitFor();
  assert.equal(await menu(page).count(), 0);
});

test('a link whose token is good no more says so', async () => {
  const page = await server.newPage({ token: null });
  allow(page, /401/);
  await page.goto(`${server.url}/#token=sbx_nobody-has-this-one`);
  await page.getByText('The token in this link is no longer valid.').waitFor();
  await page.getByLabel('Token').waitFor();
});

test('without a token the page asks for one, and says what is wrong with another', async () => {
  const page = await server.newPage({ token: null });
  allow(page, /401/);
  await page.getByLabel('Token').waitFor();
  await shot(page, 'sign-in');
  await axe(page);
  await page.getByLabel('Token').fill('sbx_nobody-has-this-one');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('alert').getByText('unknown to this server').waitFor();
  await page.getByLabel('Token').fill('two words');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('alert').getByText('no spaces').waitFor();
  await page.getByLabel('Token').fill(server.token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await isIn(page, 'admin');
});

test('only for this window: another one is not signed in, and loading again keeps it', async () => {
  const page = await server.newPage({ token: null });
  await page.getByLabel('Stay signed in').uncheck();
  await page.getByLabel('Token').fill(server.token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await isIn(page, 'admin');
  await page.reload();
  await isIn(page, 'admin');
  const other = await page.context().newPage();
  await other.goto(`${server.url}/`);
  await other.getByLabel('Token').waitFor();
});

test('a link with somebody else’s token asks first', async () => {
  await server.user('mallory');
  const { token } = await newToken('mallory');
  const page = await server.newPage();
  await isIn(page, 'admin');
  for (const answer of ['Stay', 'Use the link’s token']) {
    await page.evaluate((t) => { location.hash = `token=${t}`; }, token);
    await page.getByRole('heading', { name: 'Sign in with this link?' }).waitFor();
    assert.ok(!page.url().includes('sbx_'), 'taken out at once');
    await isIn(page, 'admin');
    assert.match(await page.getByRole('dialog').innerText(), /User\s+mallory \(role user\)/);
    await page.getByRole('button', { name: answer }).click();
  }
  await isIn(page, 'mallory');
});

test('a link that is opened anew while signed in asks too', async () => {
  await server.user('eve');
  const { token } = await newToken('eve');
  const page = await server.newPage();
  await isIn(page, 'admin');
  const again = await page.context().newPage();
  await again.goto(`${server.url}/#token=${token}`);
  await again.getByRole('heading', { name: 'Sign in with this link?' }).waitFor();
  await isIn(again, 'admin');
});

test('a revoked token: sign in again, and what was typed and asked goes on', async () => {
  await server.user('anna');
  const first = await newToken('anna');
  const page = await server.newPage({ token: first.token });
  allow(page, /401/);
  await message(page).fill('why is my query slow?');
  await page.getByText('would go to').waitFor();
  await server.ask('DELETE', `/api/tokens/${first.id}`);
  await page.getByRole('heading', { name: 'Sign in again' }).waitFor();
  await shot(page, 'sign-in-again');
  await axe(page);
  for (let i = 0; i < 8; i += 1)
    await page.keyboard.press('Escape'); // it stays: nothing behind it would work
  const second = await newToken('anna');
  await page.getByLabel('Token').fill(second.token);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.getByRole('heading', { name: 'Sign in again' }).waitFor({ state: 'detached' });
  assert.equal(await message(page).inputValue(), 'why is my query slow?');
  await message(page).press('Enter');
  await page.getByText('completed').first().waitFor();
});

test('a message that was on its way when the token ended is sent once, after signing in', async () => {
  await server.user('bert');
  const first = await newToken('bert');
  const page = await server.newPage({ token: first.token, at: '#/playground' });
  allow(page, /401/);
  await message(page).fill('/researcher are you there?');
  await page.getByText('prefix', { exact: true }).waitFor();
  await page.route('**/api/messages', async (route) => {
    await server.ask('DELETE', `/api/tokens/${first.id}`);
    await route.continue();
  }, { times: 1 });
  await message(page).press('Enter');
  await page.getByRole('heading', { name: 'Sign in again' }).waitFor();
  const second = await newToken('bert');
  await page.getByLabel('Token').fill(second.token);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.getByText('completed').first().waitFor();
  const { items } = await server.ask('GET', '/api/tasks?limit=500');
  assert.equal(items.filter((t) => t.requester === 'bert').length, 1);
});

test('an expired token is one that is good no more', async () => {
  await server.user('cleo');
  const { token } = await newToken('cleo', { expires_in_s: 3 });
  const page = await server.newPage({ token });
  allow(page, /401/);
  await page.getByText(/token is no longer valid/).first().waitFor(); // on a slow machine before the page was there
  await page.getByLabel('Token').waitFor();
});

test('signed out in one window is signed out in all', async () => {
  const page = await server.newPage();
  await isIn(page, 'admin');
  const other = await page.context().newPage();
  await other.goto(`${server.url}/`);
  await isIn(other, 'admin');
  await menu(page).getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel('Token').waitFor();
  await other.getByText('Signed out in another tab.').waitFor();
  await page.reload();
  await page.getByLabel('Token').waitFor();
});

test('somebody else who signs in finds nothing of who was here before', async () => {
  await server.user('dora');
  const first = await newToken('dora');
  const page = await server.newPage({ token: first.token });
  allow(page, /401/);
  await message(page).fill('dora’s own thoughts');
  await message(page).press('Enter');
  await page.getByText('completed').first().waitFor();
  await message(page).fill('half of another');
  await menu(page).getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel('Token').fill(server.token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await isIn(page, 'admin');
  await message(page).waitFor();
  assert.equal(await page.getByText('dora’s own thoughts').count(), 0);
  assert.equal(await message(page).inputValue(), '');
});

test('a server that is away at the start is waited for', async () => {
  const own = await stage();
  const page = await own.newPage();
  allow(page, /ERR_|Failed to (load|fetch)/);
  await isIn(page, 'admin');
  let calls = 0;
  await page.route('**/api/me', async (route) => {
    calls += 1;
    await (calls < 2 ? route.abort('connectionrefused') : route.continue());
  });
  await page.reload();
  await page.getByText('cannot be reached').waitFor();
  await isIn(page, 'admin');
});

for (const days of [-3, 3]) {
  test(`ages are the server’s, though the clock here is ${days} days off`, async () => {
    const page = await server.newPage();
    await page.clock.install({ time: new Date(Date.now() + days * 86400e3) });
    await server.ask('POST', '/api/messages', { text: 'now', executor: { name: 'researcher' } });
    await page.goto(`${server.url}/#/feed`);
    await page.reload();
    const first = page.getByRole('row').nth(1);
    await first.waitFor();
    await eventually(async () => {
      await page.clock.runFor(6000);
      return /\b([2-9]|[1-9]\d) (s|min) ago/.test(await first.innerText()); // more than the least there is
    }, 'an age of seconds, not of days, and growing');
  });
}

test('keys lead everywhere, and their help tells them', async () => {
  const page = await server.newPage();
  await isIn(page, 'admin');
  await page.getByRole('heading', { name: 'Playground' }).click();
  await page.keyboard.press('g');
  await page.keyboard.press('f');
  await page.getByRole('heading', { name: 'Feed' }).waitFor();
  await page.keyboard.press('/');
  await eventually(() => page.evaluate(() => document.activeElement?.matches('input[type=search]')),
    'the search has the focus');
  await page.getByRole('heading', { name: 'Feed' }).click();
  await page.keyboard.press('?');
  await page.getByRole('heading', { name: 'Keyboard shortcuts' }).waitFor();
  await axe(page);
  await page.keyboard.press('Escape');
  await page.getByRole('heading', { name: 'Keyboard shortcuts' }).waitFor({ state: 'detached' });
  const button = menu(page).getByRole('button', { name: 'Sign out' });
  await button.focus();
  await page.keyboard.press('?');
  await page.getByRole('heading', { name: 'Keyboard shortcuts' }).waitFor();
  await page.keyboard.press('Enter');
  await eventually(() => button.evaluate((el) => el === document.activeElement), 'the focus is where it was');
});

test('light, dark, and as the system has it', async () => {
  const page = await server.newPage({ theme: 'light' });
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const before = await paper();
  const button = menu(page).getByRole('button', { name: /^Color theme/ });
  await button.click(); // light
  assert.equal(await paper(), before);
  await button.click(); // dark
  assert.notEqual(await paper(), before);
  await page.reload();
  await isIn(page, 'admin');
  assert.notEqual(await paper(), before);
  await menu(page).getByRole('button', { name: /^Color theme: dark/ }).click();
  assert.equal(await paper(), before);
});

test('an address that leads nowhere says so', async () => {
  const page = await server.newPage({ at: '#/nowhere/at/all' });
  await page.getByRole('heading', { name: 'Page not found' }).waitFor();
});

test('a page of another version of the server says that it must be loaded again', async () => {
  const page = await server.newPage();
  allow(page, /404|Failed to fetch dynamically|MIME/);
  await isIn(page, 'admin');
  await page.route('**/pages/feed.js', (route) => route.fulfill({ status: 404, body: 'gone' }));
  await menu(page).getByRole('link', { name: 'Feed' }).click();
  await page.getByRole('heading', { name: 'This page could not be loaded' }).waitFor();
  await page.getByRole('button', { name: 'Reload' }).waitFor();
});

test('a page that could not be fetched is fetched again once the server is back', async () => {
  const own = await stage();
  const page = await own.newPage();
  allow(page, /ERR_|Failed to (load|fetch)|network/);
  await isIn(page, 'admin');
  await page.route('**/pages/feed.js', (route) => route.abort('connectionrefused'));
  await menu(page).getByRole('link', { name: 'Feed' }).click();
  await page.getByRole('heading', { name: 'This page could not be loaded' }).waitFor();
  await page.unroute('**/pages/feed.js');
  await own.kill9();
  await menu(page).getByText('reconnecting').waitFor();
  await own.restart();
  await page.getByRole('heading', { name: 'Feed' }).waitFor();
});
