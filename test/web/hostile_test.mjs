// Fifty hostile strings wherever someone's words are shown: none of them does
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
const bytes = (text) => Buffer.byteLength(text);
const hasControl = (text) => /\p{Cc}/u.test(text);
// As many channels as there may be, and a model for each: what the files of the operator say.
const CHANNELS = STRINGS.map((text) => `#${text}`).filter((name) => bytes(name) <= 63 && !hasControl(name)).slice(-32);
const MODELS = STRINGS.filter((text) => bytes(text) <= 127 && !hasControl(text));
fs.writeFileSync(rules, JSON.stringify({
  agents: { parrot: {} },
  channels: Object.fromEntries(CHANNELS.map((name, i) => [name,
    { takes: ['alerts'], file: { path: `channel-${i}.jsonl` } }])),
  escalations: [{ rule: 'a person looks', match: { to: 'parrot', type: 'ASK' } }],
  dependencies: [{ rule: 'order', match: { to: 'parrot', type: 'LATER' }, after: [{ type: 'BEFORE' }], hold_for: '1d',
    on_expiry: 'expire' }],
}));
const server = await stage({ agents: { rules, agents: { default: 'echo',
  list: [{ id: 'echo', url: 'echo:', routing: { routable: false } }] },
  models: Object.fromEntries(MODELS.map((model, i) => [`m${i}`, { baseUrl: 'http://127.0.0.1:1/v1', model }])),
    rate: { perUser: 100000, perAddress: 100000 } }, args: webFolder() });
const join = () => connect({ url: server.url, token: server.token, log: () => {} });
const hub = await join();
const card = (name) => ({ name, description: `${name} says what it is told`, skills: [] });
await hub.register(card('parrot'), async (task) => {
  await task.write(task.message);
  return { text: task.message, metadata: { said: task.message, [task.message.slice(0, 60)]: 1 } };
});
const other = await join();
await other.register({ ...card('grumbler'), skills: [{ id: 'work', name: 'work', description: 'grumbles' }] },
  async (task) => { throw new Error(task.message); });
let given = []; // what the giver has the grumbler do
const third = await join();
await third.register(card('giver'), async (task) => {
  await Promise.allSettled(given.map((text) => task.delegate('grumbler', 'work', text)));
  return task.message;
});

// In tens, where a field takes a long text.
const TENS = Array.from({ length: 5 }, (_, i) => STRINGS.slice(i * 10, i * 10 + 10));
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
  await eventually(async () => (gone = await page.evaluate(missing, wanted)).length === 0,
    'all are shown').catch(async () => {
    assert.deepEqual(gone, [], `not shown at ${page.url()}: ${(await page.textContent('main')).slice(0, 3000)}`);
  });
  await harmless(page);
}

const FORBIDDEN = ['script', 'iframe', 'object', 'embed', 'base', 'meta', 'link', 'style', 'template', 'img',
  'form[action]', 'animate',
  'math', '[onerror]', '[onload]', '[onfocus]', '[onclick]', '[ontoggle]',
    '[srcdoc]'].map((what) => `body ${what}:not(body > script)`).join(',');

// What is read beside the text: the window's title, and what the pointer and screen readers are told.
const SAID = ['title', 'aria-label', 'aria-valuetext', 'aria-description', 'placeholder', 'alt', 'label'];

async function harmless(page) {
  const { words, ...found } = await page.evaluate(([forbidden, said]) => ({
    pwned: window.__pwned,
    elements: [...document.querySelectorAll(forbidden)].map((e) => e.outerHTML.slice(0, 200)),
    links: [...document.querySelectorAll('a[href]')].map((a) => a.getAttribute('href'))
      .filter((href) => !/^(#\/|#content$|https?:\/\/)/.test(href)),
    polluted: Object.keys(Object.prototype).concat(Object.keys(Array.prototype)),
    words: [document.body.textContent, document.title, ...[...document.querySelectorAll(said.map((a) => `[${a}]`)
      .join())].flatMap((e) => said.map((a) => e.getAttribute(a) ?? ''))],
  }), [FORBIDDEN, SAID]);
  assert.deepEqual(found, { pwned: undefined, elements: [], links: [], polluted: [] }, page.url());
  for (const text of words) {
    const bare = BARE.exec(text);
    assert.equal(bare, null,
      `at ${page.url()} hides U+${bare?.[0].codePointAt(0).toString(16)}: ${text.slice(Math.max(0, bare?.index - 40),
        bare?.index + 40)}`);
  }
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
    await page.getByRole('heading', { level: 1 }).filter({ hasText: name }).or(page.getByText(name, { exact: true }))
      .first().waitFor();
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
  const said = (await server.ask('GET', '/api/feed?last=200')).items.map((e) => e.data?.comment).filter(Boolean);
  assert.ok(said.length > 40, `${said.length} comments`);
  await goTo(page, '#/feed?type=decision.');
  await shows(page, said);
  await goBackFromList(page);
  for (const [id, text] of decided) {
    await goTo(page, `#/decisions/${id}`);
    await shows(page, [text]);
  }
});

test('in what agents give to agents, and what comes of it', async () => {
  const page = await openPage('#/playground');
  for (const ten of TENS) {
    given = ten;
    const { task_id: task } = await send(`begin ${ten[0]}`, 'giver');
    await goTo(page, `#/delegations/${task}`);
    await page.locator('.timeline tbody tr').nth(ten.length).waitFor();
    await shows(page, ten);
  }
  given = [STRINGS[0]];
  for (const text of STRINGS)
    await send(text, 'giver');
  await goToList(page, '#/delegations');
  await shows(page, STRINGS);
});

test('in every part of the analytics', async () => {
  for (const [i, ten] of TENS.entries()) {
    const keywords = ten.filter((text) => bytes(text) <= 64 && !/[\p{Cc}\p{Cf}]/u.test(text));
    const { status, body } = await server.api('POST', '/api/agents',
      { name: `keys-${i}`, url: 'echo:', description: 'knows words', visibility: 'public', routing: { keywords } });
    assert.equal(status, 201, JSON.stringify(body));
  }
  for (const text of STRINGS)
    await server.ask('POST', '/api/messages', { text, wait_ms: 0 }); // to the agent that fits
  await server.ask('POST', '/api/learning/run');
  const page = await openPage('#/analytics');
  const all = await server.ask('GET', '/api/analytics/all?window=7d');
  const samples = all.gaps.slice(0, 30).flatMap((gap) => gap.samples);
  assert.ok(samples.length > 2 && all.keywords.length > 10,
    `${samples.length} samples, ${all.keywords.length} keywords`);
  await page.getByRole('region', { name: 'Agents, most' }).waitFor();
  await harmless(page);
  await goTo(page, '#/analytics?tab=types');
  await shows(page, samples);
  await goTo(page, '#/analytics?tab=signals');
  await shows(page, all.keywords.slice(0, 100).map((k) => begin(k.keyword)));
  await goTo(page, '#/analytics?tab=threshold');
  const slider = page.getByRole('slider', { name: 'Threshold', exact: true });
  await slider.focus();
  await page.keyboard.press('End');
  const { items } = await server.ask('GET', `/api/analytics/changes?window=7d&at=${await slider.inputValue()}`);
  assert.ok(items.length > 0, 'something would change');
  await shows(page, items.slice(0, 20).map((d) => begin(d.text)));
  await goTo(page, '#/analytics?tab=gate');
  await page.locator('.figure-box').first().waitFor();
  await harmless(page);
});

test('as what an agent would win', async () => {
  const page = await openPage('#/playground');
  for (const [i, ten] of TENS.entries()) {
    const taken = [];
    for (const text of ten) {
      const { status } = await server.api('POST', '/api/agents',
        { name: `wins-${i}`, url: 'echo:', description: 'x',
          skills: [{ id: 's', name: 's', description: 'd', examples: [...taken, text] }] });
      if (status === 201) {
        taken.push(text);
        await server.ask('DELETE', `/api/agents/wins-${i}`);
      }
    }
    await server.ask('POST', '/api/agents', { name: `wins-${i}`, url: 'echo:', description: 'x',
      skills: [{ id: 's', name: 's', description: 'd', examples: taken }] });
    await goTo(page, `#/agents/wins-${i}/wins`);
    await shows(page, taken);
  }
});

test('in channels and the configuration', async () => {
  const page = await openPage('#/settings/channels');
  await shows(page, CHANNELS);
  await goTo(page, '#/settings/configuration');
  await shows(page, MODELS);
});

test('in envelopes that wait, and those that a person must see', async () => {
  const page = await openPage('#/holds');
  for (const [i, ten] of TENS.entries()) {
    const payload = Object.fromEntries(ten.map((text) => [text, text]));
    const envelope = { to: 'parrot', reference: `about-${i}`, context: ten.join('\n'),
      payload: { ...payload, nested: { list: ten } } };
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
    await goTo(page, '#/playground'); // and back: the page would learn it by itself, a second later
    await goTo(page, `#/escalations/${id}`);
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
    const { status } = await server.api('POST', '/api/ledger/topup',
      { user: 'anna', amount_micros: 1, note: text, idempotency_key: `key-${i}` });
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
  await server.ask('POST', '/api/agents', { name: 'lent', description: 'lent to many', url: 'echo:',
    visibility: 'shared' });
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

// Whatever an address says, the page stays here and asks no one else.
test('in addresses', async () => {
  const page = await openPage('#/playground');
  allow(page, /status of 4\d\d/);
  const places = ['agents', 'decisions', 'tasks', 'holds', 'escalations', 'delegations', 'settings', 'analytics',
    'ledger', 'feed', ''];
  for (const [i, text] of [...STRINGS, '..', '.', '%2e%2e/%2E', '%', '%ff', '%00'].entries()) {
    const place = places[i % places.length];
    const word = encodeURIComponent(text);
    const isOther = /[/?#%&]/.test(text); // than its encoded form, once an address is taken apart
    for (const at of [`#/${place}?q=${word}&agent=${word}&user=${word}&account=user:${word}&conversation=${word}`,
      `#/${place}/${word}`, ...(isOther ? [`#/${place}/${text}`] : [])]) {
      await page.evaluate((to) => { location.hash = to; }, at);
      await page.getByRole('main').getByRole('heading', { level: 1 }).first().waitFor();
      await harmless(page);
    }
  }
  assert.equal(new URL(page.url()).origin, server.url);
});
