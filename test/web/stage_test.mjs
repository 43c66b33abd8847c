// The stage itself: what it must catch, it catches.
import assert from 'node:assert/strict';
import { allow, eventually, problems, runTest, stage, test } from './stage.mjs';

const server = await stage({ agents: [{ id: 'echo', url: 'echo:' }] });
const STRANGER = { token: null };

test('a server answers, and a page of it opens', async () => {
  const me = await server.ask('GET', '/api/me');
  assert.equal(me.user, 'admin');
  const page = await server.newPage(STRANGER);
  assert.equal(new URL(page.url()).origin, server.url);
});

test('a server comes back at its address with its data', async () => {
  const own = await stage();
  const { url } = own;
  await own.user('anna');
  await own.restart();
  assert.equal(own.url, url);
  await own.kill9();
  await own.restart();
  const users = await own.ask('GET', '/api/users');
  assert.ok(users.items.some(({ name }) => name === 'anna'));
});

// The dashboard's policy lets no script go elsewhere; other answers have none.
const mischief = {
  'an error in the console': ['/', () => console.error('oops'), /^console: oops/],
  'an error of a script': ['/', () => setTimeout(() => { throw new Error('oops'); }), /^script: Error: oops/],
  'a request elsewhere': ['/healthz', () => fetch('http://localhost:1/').catch(() => {}),
    /^elsewhere: http:\/\/localhost:1\//],
  'a request that fails': ['/healthz', () => fetch('http://localhost:1/').catch(() => {}), /^request: GET .*net::ERR_/],
  'what the policy refuses': ['/', () => fetch('http://localhost:1/').catch(() => {}),
    /^policy: connect-src http:\/\/localhost:1\//],
  'a dialog': ['/', () => alert('oops'), /^dialog: oops/],
};
for (const [name, [at, act, pattern]] of Object.entries(mischief)) {
  test(`${name} is noticed, and may be allowed`, async () => {
    const page = await server.newPage(STRANGER);
    await page.goto(server.url + at);
    assert.deepEqual(problems(page), []);
    await page.evaluate(act);
    await eventually(() => problems(page).some((what) => pattern.test(what)), name);
    allow(page, /./);
    assert.deepEqual(problems(page), []);
  });
}

test('a test whose page saw something fails', async () => {
  const wrong = await runTest({
    name: 'inner',
    fn: async () => {
      const page = await server.newPage(STRANGER);
      await page.evaluate(() => console.error('oops'));
    },
  });
  assert.match(wrong, /its pages saw:\n(.*\n)*console: oops/);
});
