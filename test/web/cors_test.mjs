// CORS in a real browser: a page of http.allowedOrigins calls the API, a page
// of any other origin does not.
import assert from 'node:assert/strict';
import http from 'node:http';
import { stage, test } from './stage.mjs';

/** A site that serves one empty page, and can be reached under two names. */
async function site() {
  const server = http.createServer((request, reply) => {
    reply.setHeader('Content-Type', 'text/html');
    reply.end('<!doctype html><title>a site</title><body>');
  });
  await new Promise((ready) => { server.listen(0, '127.0.0.1', ready); });
  server.unref();
  return server.address().port;
}
const port = await site();
const ours = `http://127.0.0.1:${port}`;
const others = [`http://localhost:${port}`, `http://127.0.0.1:${await site()}`];
const server = await stage({ agents: { http: { allowedOrigins: [ours] },
  agents: { list: [{ id: 'echo', url: 'echo:' }] } } });

/** What comes of every kind of call, made by a page of that origin. */
async function callsFrom(origin) {
  const own = await server.newPage({ token: null });
  const page = await own.context().newPage();
  await page.goto(`${origin}/`);
  return page.evaluate(async ([url, token]) => {
    const found = {};
    const auth = { Authorization: `Bearer ${token}` };
    const attempt = async (name, where, options, read = (r) => r.status) => {
      found[name] = await fetch(url + where, options).then(read, () => 'refused');
    };
    await attempt('simple', '/healthz', {}, (r) => r.json().then((b) => b.status));
    await attempt('list', '/api/agents', { headers: auth }, (r) => r.json().then((b) => b.items[0].name));
    await attempt('message', '/api/messages', { method: 'POST', headers: { ...auth,
      'Content-Type': 'application/json', 'Idempotency-Key': 'from-a-page',
      traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' },
    body: JSON.stringify({ text: 'from a page', executor: { name: 'echo' } }) },
    (r) => r.json().then((b) => b.text));
    await attempt('register', '/api/agents/paged', { method: 'PUT', headers: { ...auth,
      'Content-Type': 'application/json', 'If-None-Match': '*' },
    body: JSON.stringify({ name: 'paged', description: 'of a page' }) },
    (r) => `${r.status} ${r.headers.has('etag')}`);
    await attempt('change', '/api/agents/paged', { method: 'PATCH', headers: { ...auth,
      'Content-Type': 'application/merge-patch+json' }, body: '{"description":"of a page, changed"}' });
    await attempt('remove', '/api/agents/paged', { method: 'DELETE', headers: auth });
    await attempt('missing', '/api/nothing', { headers: auth });
    await attempt('no token', '/api/agents', {});
    await attempt('stream', '/api/feed?last=1', { headers: { ...auth, Accept: 'text/event-stream',
      'Last-Event-ID': '0' } }, async (r) => {
      const reader = r.body.getReader();
      const { value } = await reader.read();
      await reader.cancel();
      return value.length > 0;
    });
    await attempt('cookies', '/api/agents', { headers: auth, credentials: 'include' });
    await attempt('another header', '/api/agents', { headers: { ...auth, 'X-Other': '1' } });
    return found;
  }, [server.url, server.token]);
}

test('a page of an allowed origin calls the API as any client does', async () => {
  const found = await callsFrom(ours);
  assert.deepEqual(found, { simple: 'ok', list: 'echo', message: 'from a page', register: '201 true', change: 200,
    remove: 204, missing: 404, 'no token': 401, stream: true,
    // Neither is ever allowed: a browser must not add what it knows of the user.
    cookies: 'refused', 'another header': 'refused' });
});

for (const origin of others) {
  test(`a page of ${new URL(origin).hostname === 'localhost' ? 'another name' : 'another port'} calls nothing`,
    async () => {
      const tasks = async () => (await server.ask('GET', '/api/tasks')).items.length;
      const before = await tasks();
      const found = await callsFrom(origin);
      assert.deepEqual(Object.entries(found).filter(([, what]) => what !== 'refused'), []);
      assert.equal(await tasks(), before);
    });
}
