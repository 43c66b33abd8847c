// The agents: the list and its figures, one of them, and everything that can be
// done to it, with agents that are programs, that connect, and that sleep.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { once } from 'node:events';
import { connect } from '../../client/js/signalbox.js';
import { allow, axe, eventually, shot, stage, test } from './stage.mjs';

const MANY = process.env.STRESS === 'full' ? 10_000 : 1000; // from 1001 on they are registered one by one
const server = await stage({ agents: 'demo' });
const rows = (page) => page.getByRole('table', { name: 'Agents, by name' }).locator('.row');
const row = (page, name) => rows(page).filter({ hasText: name });
const isListed = (page, ...names) => eventually(async () =>
  JSON.stringify(await rows(page).locator('.name').allTextContents()) === JSON.stringify(names),
    `${names} in the list`);
const button = (page, name) => page.getByRole('button', { name, exact: true });
const dialog = (page) => page.getByRole('dialog');
const figures = (page) => page.getByRole('region', { name: 'Now' });
const send = (to, text = 'hello', more = {}) => server.ask('POST', '/api/messages',
  { text, executor: { name: to }, ...more });

async function pages(at, name, check) {
  for (const [theme, width, height] of [['light', 1280, 800], ['dark', 1280, 800], ['light', 360, 740]]) {
    const page = await server.newPage({ at, theme, width, height });
    await check(page);
    await axe(page);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
      `${name} is wider than ${width}`);
    await shot(page, `${name}-${width < 500 ? 'phone' : theme}`, { whole: true });
    await page.context().close();
  }
}

test('every agent is listed with its state, its queue and its last hour', async () => {
  for (let i = 0; i < 3; i++) await send('engineer', 'why is my query slow?');
  await pages('#/agents', 'agents', async (page) => {
    await isListed(page, 'automation-operator', 'content-writer', 'engineer', 'researcher');
    await row(page, 'engineer').getByText('ACTIVE').waitFor();
    if (page.viewportSize().width < 500) return;
    await row(page, 'engineer').getByRole('img', { name: /^Latency in the last hour: \d/ }).waitFor();
    await row(page, 'engineer').getByRole('img', { name: 'Failed in the last hour: 0 of 3' }).waitFor();
    assert.equal(await row(page, 'researcher').getByRole('img').count(), 0);
    await page.getByRole('button', { name: 'all 4' }).waitFor();
  });
});

test('the list follows what happens', async () => {
  const page = await server.newPage({ at: '#/agents' });
  await row(page, 'researcher').getByText('IDLE').waitFor();
  await send('researcher', 'compare two laptops');
  await row(page, 'researcher').getByText('ACTIVE').waitFor();
  await server.ask('POST', '/api/agents', { name: 'newcomer', description: 'Is new', url: 'echo:' });
  await row(page, 'newcomer').waitFor();
  await server.ask('DELETE', '/api/agents/newcomer');
  await row(page, 'newcomer').waitFor({ state: 'detached' });
});

test('a card that will not work has its warnings on its page, and a dead agent says why', async () => {
  await server.ask('POST', '/api/agents', { name: 'thin', description: 'Writes code', url: 'model:nowhere' });
  await pages('#/agents/thin', 'agent-warnings', async (page) => {
    const warnings = page.getByRole('region', { name: 'Warnings' });
    await warnings.getByText('a description of 2 words').waitFor();
    await warnings.getByText('the model "nowhere" is not configured').waitFor();
    await page.getByText(/It is DEAD: .*"nowhere", which is not configured/).waitFor();
  });
  const skills = [{ id: 'c', name: 'Code', description: 'C' }];
  await server.ask('PATCH', '/api/agents/thin', { url: 'echo:', skills });
  const page = await server.newPage({ at: '#/agents/thin' });
  await page.getByRole('region', { name: 'Now' }).waitFor();
  assert.equal(await page.getByRole('region', { name: 'Warnings' }).count(), 0);
  await server.ask('DELETE', '/api/agents/thin');
});

test('by name, state and tag, in the address, and with the keyboard', async () => {
  const page = await server.newPage({ at: '#/agents' });
  await rows(page).first().waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('WRITER');
  await isListed(page, 'content-writer');
  assert.match(page.url(), /#\/agents\?q=WRITER$/);
  await page.getByLabel('Name or title').fill('nobody of that name');
  await page.getByText('No agent matches this filter').waitFor();
  await button(page, 'Show all').click();
  await row(page, 'engineer').waitFor();
  await page.getByLabel('Skill tag').fill('cron');
  await page.keyboard.press('Enter');
  await isListed(page, 'automation-operator');
  await page.goto(`${server.url}/#/agents`);
  await page.getByRole('button', { name: /^DEAD/ }).click();
  await page.getByText('No agent matches this filter').waitFor();
  await page.getByRole('button', { name: /^all/ }).click();
  await rows(page).first().waitFor();
  await page.getByRole('link', { name: 'engineer' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Engineer', level: 1 }).waitFor();
});

test('what is typed into a filter is not disturbed by what happens', async () => {
  const page = await server.newPage({ at: '#/agents' });
  await row(page, 'researcher').waitFor();
  await page.getByLabel('Creator').pressSequentially('half a wo');
  await send('content-writer', 'draft a post');
  await row(page, 'content-writer').getByText('ACTIVE').waitFor();
  assert.equal(await page.getByLabel('Creator').inputValue(), 'half a wo');
});

test('one agent: its card, figures, what it did, and who sees it', async () => {
  await send('engineer', 'why is my query slow?');
  await pages('#/agents/engineer', 'agent', async (page) => {
    await page.getByRole('heading', { name: 'Engineer', level: 1 }).waitFor();
    await figures(page).getByText('Median latency').waitFor();
    await page.getByRole('img', { name: /^Completed per minute: \d+ in total/ }).waitFor();
    await page.getByRole('img', { name: /^Mean latency per minute: \d/ }).waitFor();
    assert.deepEqual(await page.locator('.hour-plot').evaluateAll((all) =>
      all.map((plot) => plot.querySelector('.spark-bar, .spark-line:not(.is-faint), .spark-dot') !== null)),
      [true, false, true], 'completed and time have something to draw, failed has not');
    await page.getByRole('heading', { name: '3 skills' }).waitFor();
    await page.getByText('“why is my query slow”').waitFor();
    await page.getByText('everyone who may call this server.').waitFor();
    await page.getByRole('region', { name: 'Recent tasks of engineer' }).getByText('completed').first().waitFor();
    await page.getByRole('region', { name: 'Recent decisions for engineer' }).getByRole('link').first().waitFor();
  });
  const page = await server.newPage({ at: '#/agents/engineer' });
  await page.getByText(/^As JSON/).click();
  const card = JSON.parse(await page.getByLabel('The card as JSON').textContent());
  assert.equal(card.url, 'process:engineer');
});

test('a program is started again, and what it does afterwards is answered', async () => {
  const page = await server.newPage({ at: '#/agents/researcher' });
  await button(page, 'Restart').click();
  await dialog(page).getByText('delivered to it again').waitFor();
  await page.keyboard.press('Escape');
  await dialog(page).waitFor({ state: 'detached' });
  await button(page, 'Restart').click();
  await button(dialog(page), 'Restart it').click();
  await page.getByText('researcher was restarted').waitFor();
  assert.equal((await send('researcher', 'what is new?')).status, 'completed');
});

test('a pause holds what comes, says who and since when, and ends', async () => {
  const page = await server.newPage({ at: '#/agents/content-writer' });
  await button(page, 'Pause').click();
  await button(dialog(page), 'Pause it').click();
  await page.getByText(/^Paused by admin, since /).waitFor();
  const { task_id: id } = await send('content-writer', 'draft a post', { wait_ms: 0 });
  await figures(page).locator('.figure-box', { hasText: 'Queued' }).locator('.value', { hasText: '1' }).waitFor();
  await page.getByRole('region', { name: 'Recent tasks' }).getByText('queued').waitFor();
  await shot(page, 'agent-paused');
  await axe(page);
  const list = await server.newPage({ at: '#/agents' });
  await row(list, 'content-writer').getByText('paused').waitFor();
  await list.getByText('1 paused').waitFor();
  await button(page, 'Resume').click();
  await page.getByText(/^Paused by/).waitFor({ state: 'detached' });
  await eventually(async () => (await server.ask('GET', `/api/tasks/${id}`)).status === 'completed', 'its end');
});

test('an agent of the configuration is neither edited nor removed here', async () => {
  const page = await server.newPage({ at: '#/agents/engineer' });
  await button(page, 'Pause').waitFor();
  for (const name of ['Edit', 'Remove', 'Wake']) assert.equal(await button(page, name).count(), 0, name);
});

test('who does not own it is offered nothing, and is told no error of others', async () => {
  const anna = await server.user('anna');
  await server.ask('POST', '/api/agents', { name: 'hers', description: 'Hers', url: 'echo:', visibility: 'public' },
    { token: anna });
  const bob = await server.newPage({ token: await server.user('bob'), at: '#/agents/hers' });
  await figures(bob).waitFor();
  await button(bob, 'Test routing').waitFor();
  for (const name of ['Edit', 'Remove', 'Pause', 'Restart', 'Wake'])
    assert.equal(await button(bob, name).count(), 0, name);
  const hers = await server.newPage({ token: anna, at: '#/agents/hers' });
  await button(hers, 'Edit').waitFor();
  const { token } = await server.ask('POST', '/api/tokens', { scopes: ['read'] }, { token: anna });
  const reader = await server.newPage({ token, at: '#/agents/hers' });
  await figures(reader).waitFor();
  for (const name of ['Edit', 'Remove', 'Pause', 'Test routing'])
    assert.equal(await button(reader, name).count(), 0, name);
});

test('removed once it was confirmed, by one of two', async () => {
  await server.ask('POST', '/api/agents', { name: 'brief', description: 'Not for long', url: 'echo:' });
  const [one, two] = [await server.newPage({ at: '#/agents/brief' }), await server.newPage({ at: '#/agents/brief' })];
  await button(one, 'Remove').click();
  await button(dialog(one), 'Go back').click();
  await server.ask('GET', '/api/agents/brief');
  await button(one, 'Remove').click();
  await button(two, 'Remove').click();
  allow(two, /404/);
  await button(dialog(one), 'Remove it').click();
  await one.getByText('brief was removed.').waitFor();
  await one.getByRole('heading', { name: 'Agents', level: 1 }).waitFor();
  await button(dialog(two), 'Remove it').click();
  await two.getByRole('heading', { name: 'Agent not found' }).waitFor();
});

test('nobody of that name: the nearest are offered', async () => {
  const page = await server.newPage();
  allow(page, /404/);
  await page.goto(`${server.url}/#/agents/enginer`);
  await page.getByRole('heading', { name: 'Agent not found' }).waitFor();
  await page.getByRole('link', { name: 'engineer' }).click();
  await page.getByRole('heading', { name: 'Engineer', level: 1 }).waitFor();
});

test('an agent that connects itself comes, works, fails and goes', async () => {
  const hub = await connect(server.url, server.token);
  await hub.register({ name: 'visitor', description: 'Comes and goes' }, (task) => {
    if (task.message === 'fail') throw new Error('the oven is cold');
    return task.message;
  });
  const page = await server.newPage({ at: '#/agents/visitor' });
  await page.locator('.agent-lead').getByText('IDLE').waitFor();
  await send('visitor');
  await page.locator('.agent-lead').getByText('ACTIVE').waitFor();
  const bars = (what) => page.getByRole('img', { name: what }).locator('.spark-bar');
  await bars('Completed per minute: 1 in total').waitFor();
  assert.equal(await bars('Failed per minute: 0 in total').count(), 0);
  assert.equal((await send('visitor', 'fail')).status, 'failed');
  await page.getByText('the oven is cold').waitFor();
  await bars('Failed per minute: 1 in total').waitFor();
  await shot(page, 'agent-failed');
  await hub.close();
  await page.locator('.agent-lead').getByText('DEAD').waitFor();
});

test('one that sleeps is woken', async () => {
  const knocks = [];
  const bell = http.createServer((request, reply) => {
    request.on('data', (d) => knocks.push(JSON.parse(d))).on('end', () => reply.end());
  }).listen(0, '127.0.0.1');
  await once(bell, 'listening');
  const own = await stage({ agents: [{ id: 'sleeper', wake: { url: `http://127.0.0.1:${bell.address().port}/` } }] });
  const page = await own.newPage({ at: '#/agents/sleeper' });
  await button(page, 'Wake').click();
  await page.getByText('sleeper was woken').waitFor();
  assert.deepEqual(knocks, [{ agent: 'sleeper', reason: 'wake' }]);
  bell.close();
});

test('an address that changes while the page is first drawn is gone to', async () => {
  const page = await server.newPage();
  await page.addInitScript(() => {
    const watch = new MutationObserver(() => {
      if (!document.querySelector('#app main')) return;
      watch.disconnect();
      location.hash = '#/agents';
    });
    watch.observe(document, { childList: true, subtree: true });
  });
  await page.reload();
  await page.getByRole('heading', { name: 'Agents', level: 1 }).waitFor();
});

// What is wrong with one, and with the server.

const RULES = { agents: { Leroy: {}, Jay: {} }, dependencies: [{ rule: 'order', match: { to: 'Leroy', type: 'REQUEST' },
  after: [{ type: 'SUBMITTED', from: 'Jay' }], hold_for: '1h' }] };

test('what waits, what is held and what fails again and again: the same in the list and on its page', async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'signalbox-agents-'));
  fs.writeFileSync(path.join(folder, 'rules.json'), JSON.stringify(RULES));
  const own = await stage({ agents: { rules: path.join(folder, 'rules.json'),
    deliver: { retryMs: 1000, breakerFailures: 1000 },
    agents: { list: [{ id: 'Leroy', url: 'echo:' }, { id: 'Jay', url: 'http://127.0.0.1:9/' }] } } });
  await own.ask('POST', '/api/agents/Leroy/pause');
  await own.ask('POST', '/api/messages', { text: 'wait', executor: { name: 'Leroy' }, wait_ms: 0 });
  for (const reference of ['R-1', 'R-2'])
    await own.ask('POST', '/api/envelopes', { from: 'Jay', to: 'Leroy', type: 'REQUEST', priority: 'NORMAL', reference,
      payload: {}, context: 'Please do' });
  await own.ask('POST', '/api/messages', { text: 'are you there?', executor: { name: 'Jay' }, wait_ms: 0 });
  const page = await own.newPage({ at: '#/agents' });
  await row(page, 'Leroy').getByText('+ 2 held').waitFor();
  assert.match(await row(page, 'Leroy').innerText(), /1\s*\+ 2 held/);
  await row(page, 'Jay').getByText('attempts fail').waitFor();
  await shot(page, 'agents-wrong');
  await row(page, 'Leroy').getByRole('link').first().click();
  await eventually(async () => /1\s+Queued\s.*2\s+Held\s/s.test(await figures(page).innerText()), 'the same figures');
  // An envelope is shown in words.
  await page.getByRole('region', { name: 'Recent tasks of Leroy' }).getByText('REQUEST / R-2 · Please do').waitFor();
  await page.goto(`${own.url}/#/agents/Jay`);
  await figures(page).getByText(/attempts? failed/).waitFor();
  await page.getByText(/^Last failure/).waitFor();
  fs.rmSync(folder, { recursive: true });
});

test('states and the like that there are not narrow nothing', async () => {
  const page = await server.newPage({ at: '#/agents?state=FOO&visibility=bar' });
  for (const name of ['automation-operator', 'content-writer', 'engineer', 'researcher'])
    await row(page, name).first().waitFor();
  assert.equal(await page.getByRole('alert').count(), 0);
  assert.equal(await page.getByRole('button', { name: /^all/ }).getAttribute('aria-pressed'), 'true');
});

test('a long name without a break fits a phone', async () => {
  const name = 'n'.repeat(128);
  await server.ask('POST', '/api/agents', { name, title: 't'.repeat(128), description: 'd'.repeat(400), url: 'echo:',
    routing: { keywords: ['k'.repeat(64)] },
    skills: [{ id: 's'.repeat(128), name: 'S'.repeat(128), tags: ['g'.repeat(64)], examples: ['x'.repeat(200)] }] });
  for (const at of ['', `/${name}`, `/${name}/edit`, `/${name}/wins`]) {
    const page = await server.newPage({ at: `#/agents${at}`, width: 360, height: 740 });
    await page.getByText(name.slice(0, 20)).first().waitFor();
    await page.waitForLoadState();
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 360, at);
    await shot(page, `agent-long${at.slice(130) ? at.slice(129).replace('/', '-') : at ? '-one' : ''}`,
      { whole: true });
  }
  await server.ask('DELETE', `/api/agents/${name}`);
});

test('of a server that is away each page tells once', async () => {
  const own = await stage({ agents: [{ id: 'echo', url: 'echo:' }] });
  await own.ask('POST', '/api/ledger/topup', { user: 'admin', amount_micros: 5000000, idempotency_key: 'once' });
  const open = [];
  for (const [at, there] of [['agents', 'echo'], ['agents/echo', 'Visibility'], ['ledger', 'topup']]) {
    const page = await own.newPage({ at: `#/${at}` });
    allow(page, /./);
    await page.clock.install();
    await page.reload();
    await page.getByText(there).first().waitFor();
    open.push([at, page]);
  }
  await own.stop();
  for (const [at, page] of open) {
    if (at === 'ledger') await page.getByLabel('From (UTC)').fill('2001-01-01');
    await page.clock.runFor(16_000); // each asks again by then
    await page.getByText('cannot be reached').first().waitFor();
    assert.equal(await page.getByRole('alert').filter({ hasText: 'cannot be reached' }).count(), 1, at);
  }
});

// A page whose time stands still but for what it is told: nothing is asked for by the clock alone.
async function still(at) {
  const page = await server.newPage();
  await page.clock.install();
  await page.goto(`${server.url}/${at}`);
  const feed = () => page.evaluate(async () => {
    const main = document.querySelector('script[type=module]').src;
    const { feed: { state, newest } } = await import(main.replace('main.js', 'lib/live.js'));
    return { state, newest };
  });
  const isSeen = async () => {
    const { items } = await server.ask('GET', '/api/feed?last=1');
    await eventually(async () => (await feed()).newest >= items[0].seq, 'the page has heard of it');
  };
  await eventually(async () => (await feed()).state === 'open', 'the feed is open');
  await page.clock.runFor(3000);
  return { page, isSeen };
}

test('one agent’s page reads anew what is about that agent, and nothing for what others do', async () => {
  await send('engineer', 'mend the old lathe');
  const { page, isSeen } = await still('#/agents/engineer');
  const asked = [];
  page.on('request', (r) => r.url().includes('/api/tasks?agent=') && asked.push(r.url()));
  const tasks = page.getByRole('region', { name: 'Recent tasks of engineer' });
  await tasks.getByText('mend the old lathe').waitFor();
  await page.clock.runFor(3000); // what it was told meanwhile is read
  await tasks.getByText('mend the old lathe').waitFor();
  const before = asked.length;
  await send('researcher', 'compare two chairs');
  await isSeen();
  await page.clock.runFor(3000);
  assert.equal(asked.length, before);
  await send('engineer', 'mend the new lathe');
  await isSeen();
  await page.clock.runFor(3000);
  await tasks.getByText('mend the new lathe').waitFor();
  assert.ok(asked.length > before);
});

test('who comes and goes is seen because it is told, in the list and on its page', async () => {
  const states = async () => (await server.ask('GET', '/api/feed?last=50')).items
    .filter((e) => e.type === 'agent.state' && e.agent === 'guest').map((e) => e.data.to);
  const hub = await connect(server.url, server.token);
  await hub.register({ name: 'guest', description: 'Comes and goes' }, (task) => task.message);
  await eventually(async () => (await states()).includes('IDLE'), 'it came');
  const one = await still('#/agents/guest');
  const all = await still('#/agents?q=guest');
  const row = all.page.getByRole('row').filter({ hasText: 'guest' });
  await one.page.locator('.agent-lead').getByText('IDLE').waitFor();
  await row.getByText('IDLE').waitFor();
  await hub.close();
  await eventually(async () => (await states()).includes('DEAD'), 'it went');
  for (const { page, isSeen } of [one, all]) {
    await isSeen();
    await page.clock.runFor(3000);
  }
  await one.page.locator('.agent-lead').getByText('DEAD').waitFor();
  await row.getByText('DEAD').waitFor();
});

// Many.

async function fill(own, n) {
  let next = 0;
  const one = async () => {
    while (next < n) {
      const i = String(next++).padStart(5, '0');
      await own.ask('POST', '/api/agents', { name: `agent-${i}`, url: 'echo:', description: `Number ${i}` });
    }
  };
  await Promise.all(Array.from({ length: 32 }, one));
}

test(`of ${MANY} agents only those in view are drawn and asked about`, async () => {
  const name = (i) => `agent-${String(i).padStart(5, '0')}`;
  const listed = MANY <= 1000 && Array.from({ length: MANY }, (_, i) => ({ id: name(i), url: 'echo:' }));
  const own = await stage(listed ? { agents: listed } : {});
  if (!listed) await fill(own, MANY);
  const page = await own.newPage();
  const asked = [];
  page.on('request',
    (r) => r.url().includes('/api/fleet') && asked.push(new URL(r.url()).searchParams.get('names')?.split(',').length
      ?? 0));
  await page.goto(`${own.url}/#/agents`);
  await rows(page).first().waitFor();
  await page.getByRole('button', { name: `all ${MANY.toLocaleString('en')}` }).waitFor();
  const body = page.getByRole('rowgroup');
  await eventually(async () => {
    await body.evaluate((el) => { el.scrollTop = el.scrollHeight; });
    assert.ok(await rows(page).count() <= 60, 'the rows are bounded');
    return (await page.getByText('in total').count()) === 1;
  }, 'the end of the list');
  await body.evaluate((el) => { el.scrollTop = el.scrollHeight; });
  await row(page, name(MANY - 1)).waitFor();
  await row(page, name(MANY - 1)).getByText('IDLE').waitFor();
  assert.ok(asked.length > 0 && Math.max(...asked) <= 60, String(asked));
  await page.getByLabel('Name or title').fill(name(MANY - 7));
  await eventually(async () => (await rows(page).count()) === 1, 'the one that was meant');
  await shot(page, 'agents-many');
});
