// Fifty hostile strings wherever somebody's words are shown: none of them does
// anything, and all can be read.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { allow, eventually, stage, test } from './stage.mjs';
import { webFolder } from './em.mjs';
import { BARE, STRINGS, seen } from './hostile_strings.mjs';

const source = process.env.SIGNALBOX_SOURCE ?? path.join(import.meta.dirname, '../..');
const { connect } = await import(pathToFileURL(path.join(source, 'client/js/signalbox.js')));

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'signalbox-hostile-'));
process.on('exit', () => fs.rmSync(folder, { recursive: true, force: true }));
const rules = path.join(folder, 'rules.json');
fs.writeFileSync(rules, JSON.stringify({
  agents: { parrot: {} },
  escalations: [{ rule: 'a person looks', match: { to: 'parrot', type: 'ASK' } }],
  dependencies: [{ rule: 'order', match: { to: 'parrot', type: 'LATER' }, after: [{ type: 'BEFORE' }], hold_for: '1d', on_expiry: 'expire' }],
}));
const server = await stage({ agents: { rules, agents: { list: [{ id: 'echo', url: 'echo:' }] }, rate: { perUser: 100000, perAddress: 100000 } }, args: webFolder() });
const join = () => connect({ url: server.url, token: server.token, log: () => {} });
const hub = await join();
const card = (name) => ({ name, description: `${name} says what it is told`, skills: [] });
await hub.register(card('parrot'), async (task) => {
  await task.write(task.message);
  return { text: task.message, metadata: { said: task.message, [task.message.slice(0, 60)]: 1 } };
});
const other = await join();
await other.register(card('grumbler'), async (task) => { throw new Error(task.message); });

// In tens, where a field takes a long text.
const TENS = Array.from({ length: 5 }, (_, i) => STRINGS.slice(i * 10, i * 10 + 10));
const bytes = (text) => Buffer.byteLength(text);
const begin = (text) => text.slice(0, 50); // of what is cut to fit a line
const flat = (text) => text.replace(/\s+/gu, ' ').trim();

const openPage = (at) => server.newPage({ at });
const goTo = (page, at) => page.goto(`${server.url}/${at}`);

// Lists draw only the rows in view: here all of them are.
async function goToList(page, at) {
  await page.setViewportSize({ width: 1280, height: 6000 });
  await goTo(page, at);
}
async function goBackFromList(page) {
  await page.setViewportSize({ width: 1280, height: 800 });
}

// All of them can be read, nothing hides, and nothing has happened.
async function shows(page, texts) {
  const wanted = texts.map((text) => flat(seen(text)));
  const missing = (list) => {
    for (const closed of document.querySelectorAll('main details:not([open])')) closed.open = true;
    const text = document.querySelector('main')?.textContent.replace(/\s+/gu, ' ') ?? '';
    return list.filter((one) => !text.includes(one));
  };
  let gone = await page.evaluate(missing, wanted);
  await eventually(async () => (gone = await page.evaluate(missing, wanted)).length === 0, 'all are shown').catch(async () => {
    assert.deepEqual(gone, [], `not shown at ${page.url()}: ${(await page.textContent('main')).slice(0, 3000)}`);
  });
  await harmless(page);
}

const FORBIDDEN = ['script', 'iframe', 'object', 'embed', 'base', 'meta', 'link', 'style', 'template', 'img', 'form[action]', 'animate',
  'math', '[onerror]', '[onload]', '[onfocus]', '[onclick]', '[ontoggle]', '[srcdoc]'].map((what) => `body ${what}:not(body > script)`).join(',');

async function harmless(page) {
  const found = await page.evaluate((forbidden) => ({
    pwned: window.__pwned,
    elements: [...document.querySelectorAll(forbidden)].map((e) => e.outerHTML.slice(0, 200)),
    links: [...document.querySelectorAll('a[href]')].map((a) => a.getAttribute('href')).filter((href) => !/^(#\/|#content$|https?:\/\/)/.test(href)),
    text: document.body.textContent,
    title: document.title,
    polluted: Object.keys(Object.prototype).concat(Object.keys(Array.prototype)),
  }), FORBIDDEN);
  const bare = BARE.exec(found.text);
  assert.deepEqual({ ...found, text: '', title: '' }, { pwned: undefined, elements: [], links: [], text: '', title: '', polluted: [] }, page.url());
  assert.equal(bare, null, `at ${page.url()} hides U+${bare?.[0].codePointAt(0).toString(16)}: ${found.text.slice(bare?.index - 40, bare?.index + 40)}`);
}

async function send(text, to, more = {}) {
  return server.ask('POST', '/api/messages', { text, executor: { name: to }, wait_ms: 30_000, ...more });
}

test('there are fifty, and each is another', () => {
  assert.equal(new Set(STRINGS).size, 50);
});

// Cards refuse what hides. What they take is shown on the agent's page, and the
// list of agents.
function hostileCard(name, text) {
  const short = bytes(text) <= 64 ? text : undefined;
  const line = bytes(text) <= 128 ? text : undefined;
  return {
    name, title: line, description: text, version: short, url: 'echo:', visibility: 'public',
    provider: { organization: text, url: 'https://example.com/' },
    metadata: { note: text, [text]: text }, capabilities: { [text]: true },
    skills: [{ id: 'skill', name: line ?? 'skill', description: text, tags: short && [short], examples: [text] }],
    routing: { keywords: short && [short], system_prompt: text },
  };
}

test('on cards: the agent, and the list of agents', async () => {
  const taken = [];
  for (const [i, text] of STRINGS.entries()) {
    const { status } = await server.api('POST', '/api/agents', hostileCard(`hostile-${i}`, text));
    assert.ok([201, 400].includes(status), `${status} for ${text}`);
    if (status === 201)
      taken.push([`hostile-${i}`, text]);
  }
  assert.ok(taken.length >= 44, `${taken.length} were taken`);
  const page = await openPage('#/playground');
  await goToList(page, '#/agents');
  await shows(page, taken.filter(([, text]) => bytes(text) <= 40).map(([, text]) => text));
  await goBackFromList(page);
  for (const [name, text] of taken) {
    await goTo(page, `#/agents/${name}`);
    await page.getByRole('heading', { level: 1 }).filter({ hasText: name }).or(page.getByText(name, { exact: true })).first().waitFor();
    await shows(page, [text]);
  }
});

test('in messages, answers, chunks and errors', async () => {
  const page = await openPage('#/feed');
  for (const ten of TENS) {
    const text = ten.join('\n');
    for (const to of ['parrot', 'grumbler']) {
      const { task_id: task } = await send(text, to);
      await goTo(page, `#/tasks/${task}`);
      await page.getByText(to === 'parrot' ? 'completed' : 'failed').first().waitFor();
      await shows(page, ten);
    }
  }
});

test('in the playground, as it is typed, answered and said wrong', async () => {
  const page = await openPage('#/playground');
  for (const ten of TENS) {
    const text = `/parrot ${ten.join('\n')}`;
    await page.getByLabel('Message', { exact: true }).fill(text);
    await page.getByLabel('Message', { exact: true }).press('Enter');
    await page.getByText('completed').first().waitFor();
    await shows(page, ten);
  }
});

test('in decisions and what is said of them, and in the feed', async () => {
  const conversations = STRINGS.filter((text) => !/\p{Cc}/u.test(text) && bytes(text) <= 128);
  const decided = [];
  for (const text of STRINGS) {
    const conversation = conversations.includes(text) ? text : undefined;
    const { decision: { id } } = await send(text, 'parrot', { conversation_id: conversation });
    decided.push([id, text]);
    const comment = await server.api('POST', `/api/decisions/${id}/feedback`, { verdict: 'wrong', comment: text });
    assert.ok([200, 400].includes(comment.status), JSON.stringify(comment.body));
  }
  const page = await openPage('#/playground');
  await goToList(page, '#/decisions');
  await shows(page, STRINGS.filter((text) => text.length <= 40));
  await goTo(page, '#/feed');
  await page.getByRole('row').nth(40).waitFor();
  await harmless(page);
  await goBackFromList(page);
  for (const [id, text] of decided) {
    await goTo(page, `#/decisions/${id}`);
    await shows(page, [text]);
  }
});

test('in envelopes that wait, and those that a person must see', async () => {
  const page = await openPage('#/holds');
  for (const [i, ten] of TENS.entries()) {
    const payload = Object.fromEntries(ten.map((text) => [text, text]));
    const envelope = { to: 'parrot', reference: `about-${i}`, context: ten.join('\n'), payload: { ...payload, nested: { list: ten } } };
    const held = await server.ask('POST', '/api/envelopes', { ...envelope, type: 'LATER' });
    assert.equal(held.status, 'held');
    await goTo(page, `#/holds/${held.task_id}`);
    await shows(page, ten.slice(0, 2)); // how it begins
    await goTo(page, `#/tasks/${held.task_id}`);
    await shows(page, ten);
    const { escalation_id: id } = await server.ask('POST', '/api/envelopes', { ...envelope, type: 'ASK' });
    await goTo(page, `#/escalations/${id}`);
    await shows(page, ten);
    await server.ask('POST', `/api/escalations/${id}/approve`, { comment: ten.join('\n') });
    await page.getByRole('heading', { name: 'Decided' }).waitFor();
    await shows(page, ten);
  }
  await goTo(page, '#/holds');
  await shows(page, ['about-0', 'about-4']);
  await goTo(page, '#/holds?tab=decided');
  await shows(page, ['about-0', 'about-4']);
});

test('in notes of the ledger', async () => {
  await server.user('anna');
  const taken = [];
  for (const [i, text] of STRINGS.entries()) {
    const { status } = await server.api('POST', '/api/ledger/topup', { user: 'anna', amount_micros: 1, note: text, idempotency_key: `key-${i}` });
    assert.ok([200, 201, 400].includes(status), `${status} for ${text}`);
    if (status !== 400)
      taken.push(text);
  }
  assert.ok(taken.length >= 40, `${taken.length} were taken`);
  const page = await openPage('#/playground');
  await goToList(page, '#/ledger?user=anna');
  await shows(page, taken);
});

test('as labels of tokens, and orgs of users and grants', async () => {
  const taken = { label: [], org: [], grant: [] };
  await server.ask('POST', '/api/agents', { name: 'lent', description: 'lent to many', url: 'echo:', visibility: 'shared' });
  for (const [i, text] of STRINGS.entries()) {
    const tries = {
      label: ['/api/tokens', { label: text }],
      org: ['/api/users', { name: `member-${i}`, org: text }],
      grant: ['/api/grants', { agent: 'lent', org: text }],
    };
    for (const [what, [to, body]] of Object.entries(tries)) {
      const { status } = await server.api('POST', to, body);
      assert.ok([201, 400].includes(status), `${status} for ${what} ${text}`);
      if (status === 201)
        taken[what].push(text);
    }
  }
  assert.ok(taken.label.length >= 40, `${taken.label.length} labels were taken`);
  const page = await openPage('#/playground');
  await goToList(page, '#/settings/tokens');
  await shows(page, taken.label.map(begin));
  await goTo(page, '#/settings/users');
  await shows(page, taken.org.map(begin));
  await goTo(page, '#/settings/grants');
  await shows(page, taken.grant.map(begin));
});

// Whatever an address says, the page stays here and asks nobody else.
test('in addresses', async () => {
  const page = await openPage('#/playground');
  allow(page, /status of 4\d\d/);
  const places = ['agents', 'decisions', 'tasks', 'holds', 'escalations', 'delegations', 'settings', 'analytics', 'ledger', 'feed', ''];
  for (const [i, text] of [...STRINGS, '..', '.', '%2e%2e/%2E', '%', '%ff', '%00'].entries()) {
    const place = places[i % places.length];
    for (const at of [`#/${place}?q=${encodeURIComponent(text)}&agent=${encodeURIComponent(text)}&user=${encodeURIComponent(text)}`, `#/${place}/${text}`]) {
      await page.evaluate((to) => { location.hash = to; }, at);
      await page.getByRole('main').getByRole('heading', { level: 1 }).first().waitFor();
      await harmless(page);
    }
  }
  assert.equal(new URL(page.url()).origin, server.url);
});
