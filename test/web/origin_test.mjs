// A hostile page cannot read or do anything through a browser that is signed
// in, and a hostile link cannot send the token anywhere.
import assert from 'node:assert/strict';
import http from 'node:http';
import { allow, eventually, problems, stage, test } from './stage.mjs';

const server = await stage({ agents: [{ id: 'echo', url: 'echo:' }] });

// Another user's site, and all that was ever asked of it.
const asked = [];
const evil = http.createServer((request, reply) => {
  let body = '';
  request.on('data', (bytes) => { body += bytes; });
  request.on('end', () => {
    asked.push(`${request.method} ${request.url} ${JSON.stringify(request.headers)} ${body}`);
    reply.setHeader('Access-Control-Allow-Origin', '*');
    reply.setHeader('Content-Type', 'text/html');
    reply.end('<!doctype html><title>evil</title><body>');
  });
});
await new Promise((ready) => { evil.listen(0, '127.0.0.1', ready); });
evil.unref();
const sites = [`http://127.0.0.1:${evil.address().port}`, `http://localhost:${evil.address().port}`];

/** A page of the hostile site in a browser whose other tab is signed in. */
async function visit(site) {
  const own = await server.newPage();
  await own.getByRole('navigation', { name: 'Pages' }).getByText('admin').waitFor();
  const page = await own.context().newPage();
  await page.goto(`${site}/`);
  return { own, page };
}
/** What comes of a WebSocket without a token, and of one with it. */
const webSockets = (page, url) => page.evaluate(([to, token]) =>
  Promise.all([['signalbox'], ['signalbox', `bearer.${token}`]].map((protocols) => new Promise((end) => {
  const ws = new WebSocket(`${to.replace('http', 'ws')}/hub`, protocols);
  ws.onopen = () => end('open');
  ws.onerror = () => end('refused');
}))), [url.url, url.token]);
const tasks = async () => (await server.ask('GET', '/api/tasks')).items.length;

for (const site of sites) {
  const from = new URL(site).hostname;

  test(`from ${from}: nothing can be read`, async () => {
    const { page } = await visit(site);
    const read = await page.evaluate(async ([url, token]) => {
      const found = {};
      const attempt = async (name, options, where = '/api/agents') => {
        found[name] = await fetch(url + where, options).then((r) => (r.type === 'opaque' ? 'opaque' : r.text()),
          () => 'refused');
      };
      await attempt('plain');
      await attempt('with cookies', { credentials: 'include' });
      await attempt('with a token', { headers: { Authorization: `Bearer ${token}` } });
      await attempt('the page', {}, '/');
      await attempt('metrics', {}, '/metrics');
      await attempt('without cors', { mode: 'no-cors' });
      return found;
    }, [server.url, server.token]);
    for (const [name, what] of Object.entries(read))
      assert.ok(what === 'refused' || (name === 'without cors' && what === 'opaque'), `${name}: ${what}`);
  });

  test(`from ${from}: nothing can be done`, async () => {
    const { page } = await visit(site);
    const before = await tasks();
    await page.evaluate(async ([url, token]) => {
      const body = JSON.stringify({ text: 'from evil', executor: { name: 'echo' } });
      for (const headers of [{}, { 'Content-Type': 'text/plain' }, { Authorization: `Bearer ${token}` },
        { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` }])
        for (const mode of ['cors', 'no-cors'])
          await fetch(`${url}/api/messages`, { method: 'POST', mode, headers, body,
            credentials: 'include' }).catch(() => {});
      navigator.sendBeacon(`${url}/api/messages`, body);
      const form = document.createElement('form');
      form.method = 'POST';
      form.enctype = 'text/plain';
      form.action = `${url}/api/messages`;
      form.target = 'there';
      const field = document.createElement('input');
      field.name = '{"text":"from a form","executor":{"name":"echo"},"metadata":{"x":"';
      field.value = '"}}';
      form.append(field);
      const frame = document.createElement('iframe');
      frame.name = 'there';
      document.body.append(frame, form);
      const loaded = new Promise((done) => { frame.addEventListener('load', done, { once: true }); });
      form.submit();
      await loaded;
    }, [server.url, server.token]);
    assert.equal(await tasks(), before);
  });

  test(`from ${from}: no WebSocket, with or without a token`, async () => {
    const { page } = await visit(site);
    const ends = await webSockets(page, server);
    assert.deepEqual(ends, ['refused', 'refused']);
  });

  test(`from ${from}: not in a frame, not as a script, not through another window`, async () => {
    const { page } = await visit(site);
    const { script } = await (await fetch(`${server.url}/`, { headers: { Accept: 'text/html' } })).text()
      .then((html) => /src="(?<script>[^"]+main\.js)"/.exec(html).groups);
    const seen = await page.evaluate(async ([url, main]) => {
      const frame = document.createElement('iframe');
      const shown = new Promise((done) => { frame.onload = () => done(true); });
      frame.src = `${url}/#/playground`;
      document.body.append(frame);
      await shown;
      let framed;
      try {
        // an error page of the browser's own is another origin too
        framed = frame.contentWindow.document.body.innerText;
      } catch {
        framed = 'not readable';
      }
      const asScript = (type, src) => new Promise((done) => {
        const s = Object.assign(document.createElement('script'), { src, type });
        s.onload = () => done('ran');
        s.onerror = () => done('refused');
        document.head.append(s);
      });
      return {
        framed,
        module: await asScript('module', url + main),
        classic: await asScript('', `${url}/api/agents`),
      };
    }, [server.url, script]);
    assert.deepEqual(seen, { framed: 'not readable', module: 'refused', classic: 'refused' });
    assert.equal(await page.frames()[1].locator('#app').count(), 0, 'the dashboard is not shown in a frame');

    const [popup] = await Promise.all([page.waitForEvent('popup'), page.evaluate((url) => {
      window.opened = window.open(`${url}/`);
    }, server.url)]);
    await popup.getByRole('navigation', { name: 'Pages' }).waitFor();
    const reach = await page.evaluate(() => {
      try {
        return [window.opened.closed, window.opened.length, String(window.opened.location.href)];
      } catch (e) {
        return e.name;
      }
    });
    assert.ok(reach === 'SecurityError' || reach[0] === true, `reached ${reach}`);
    assert.equal(await popup.evaluate(() => window.opener), null);
  });
}

test('control: a site that the server was told to trust gets through', async () => {
  const trusting = await stage({ agents: { http: { allowedOrigins: [sites[0]] },
    agents: { list: [{ id: 'echo', url: 'echo:' }] } } });
  const { page } = await visit(sites[0]);
  assert.deepEqual(await webSockets(page, trusting), ['refused', 'open']);
});

const LINKS = [
  '#token=sbx_bogus&to=//EVIL/', '#token=sbx_bogus&to=/..//EVIL', '#//EVIL/agents', '#/http:%2F%2FEVIL',
    '#/agents/..%2F..%2F..%2F%2FEVIL',
  '#/agents/%2e%2e%2f%2e%2e', '#/agents/http:%2F%2FEVIL%2Fx', '#/agents/@EVIL', '#/agents/%5c%5cEVIL%5cx',
    '#/tasks/..%2F..%2Fapi%2Fusers',
  '#/tasks/%00', '#/tasks/?token=x', '#/decisions/..%2f..%2fapi%2ftokens', '#/decisions/%0d%0aHost:EVIL',
    '#/escalations/..%2Fapprove',
  '#/delegations/task_x%2F..%2F..%2Ftokens', '#/feed?agent=http:%2F%2FEVIL&q=%3Cimg src=http:%2F%2FEVIL%3E',
    '#/settings/..%2f..%2f',
  '#/ledger?user=..%2F..%2FEVIL', '#javascript:fetch("http://EVIL")', '#/playground?text=<img src=http://EVIL>',
    '#/__proto__', '#/constructor/prototype', '#/%E0%A4%A',
];

test('a hostile link leads nowhere, sends the token to nobody, and changes nothing', async () => {
  const page = await server.newPage();
  allow(page, /40[0-9]|Failed to load/);
  await page.getByRole('navigation', { name: 'Pages' }).getByText('admin').waitFor();
  const before = asked.length;
  const calls = [];
  page.on('request', (r) => calls.push(`${r.method()} ${new URL(r.url()).origin}${new URL(r.url()).pathname}`));
  for (const link of LINKS) {
    await page.evaluate((hash) => { location.hash = hash; }, link.replaceAll('EVIL', new URL(sites[0]).host));
    await page.locator('main h1, main .loading').first().waitFor();
    if (link.startsWith('#token'))
      await page.getByText('The token in this link is no longer valid.').first().waitFor();
    await page.locator('main h1').first().waitFor();
    assert.equal(new URL(page.url()).origin, server.url, link);
  }
  await page.goto(`${server.url}/#/feed`);
  await page.getByRole('heading', { name: 'Feed' }).waitFor();
  assert.equal(asked.length, before, asked.slice(before).join('\n'));
  assert.deepEqual(calls.filter((c) => !c.includes(` ${server.url}/`)), []);
  assert.deepEqual(calls.filter((c) => !/^GET /.test(c) && !/POST \S+\/api\/route$/.test(c)), []);
  assert.deepEqual(problems(page), []);
});

test('nothing that was ever asked of the hostile site has a token in it', async () => {
  await eventually(() => asked.length > 0, 'it was visited');
  assert.deepEqual(asked.filter((line) => line.includes('sbx_')), []);
});
