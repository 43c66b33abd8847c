// Decisions: searched, filtered, one whole, judged, corrected, decided again.
import assert from 'node:assert/strict';
import { allow, axe, eventually, shot, stage, test } from './stage.mjs';

const AGENTS = [
  { id: 'engineer', url: 'echo:', visibility: 'public',
    description: 'Builds and repairs software, finds bugs in programs and slow queries',
    routing: { keywords: ['bug', 'query'] }, skills: [{ id: 'debug', name: 'Debugging',
      description: 'finds out why a program crashes' }] },
  { id: 'writer', url: 'echo:', visibility: 'public',
    description: 'Writes articles, letters, blog posts and marketing text',
      routing: { keywords: ['write', 'blog post'] } },
  { id: 'researcher', url: 'echo:', visibility: 'public', description: 'Finds facts, sources, studies and trends' },
  { id: 'helper', url: 'echo:', visibility: 'public', routing: { routable: false } },
];
const TEXTS = {
  code: 'find the bug in this program, it crashes with a segmentation fault',
  letter: 'write a letter to the marketing people about our articles',
  pulled: 'write software that builds',
  nothing: '=zebra "quagga", okapi',
  trends: 'which studies say something about trends in offices?',
};

// A number as threshold: what "auto" shows is in bands_test.
const server = await stage({ agents: { agents: { list: AGENTS, default: 'helper' }, routing: { threshold: 0.3 } } });
const made = {};
for (const [name, text] of Object.entries(TEXTS))
  made[name] = (await server.ask('POST', '/api/messages', { text, conversation_id: `c-${name}` })).decision;
const rows = (page) => page.getByRole('table', { name: /^Decisions/ }).locator('.row');
const there = (page, n) => eventually(async () => await rows(page).count() === n, `${n} rows`);
const open = (name, wishes = {}) => server.newPage({ at: `#/decisions/${made[name].id}`, ...wishes });

test('all are listed, the newest first, and lead to one whole', async () => {
  const page = await server.newPage({ at: '#/decisions' });
  await there(page, 5);
  assert.match(await rows(page).first().innerText(),
    /which studies say[\s\S]*researcher[\s\S]*semantic[\s\S]*0\.\d{3}[\s\S]*open/);
  await axe(page);
  await shot(page, 'decisions-light');
  await page.getByRole('link', { name: TEXTS.letter }).click();
  await page.getByRole('heading', { name: 'Who got it, and why' }).waitFor();
  assert.match(page.url(), new RegExp(`#/decisions/${made.letter.id}$`));
});

test('words, layers, agents and verdicts narrow the list, and the address keeps them', async () => {
  const page = await server.newPage({ at: '#/decisions' });
  await there(page, 5);
  await page.keyboard.press('/');
  await page.keyboard.type('WRITE letter');
  await there(page, 1);
  assert.match(await rows(page).innerText(), /write a letter/);
  assert.match(page.url(), /#\/decisions\?q=WRITE\+letter$/);
  await page.reload();
  await there(page, 1);
  await page.getByRole('button', { name: 'show all' }).click();
  await there(page, 5);
  await page.getByLabel('Layer').selectOption('default');
  await there(page, 1);
  assert.match(await rows(page).innerText(), /=zebra "quagga", okapi/);
  await page.getByRole('button', { name: 'show all' }).click();
  await page.getByLabel('Agent').fill('writer');
  await there(page, 2);
  await page.getByLabel('Verdict').selectOption('positive');
  await page.getByText('No decision matches this filter').waitFor();
  await page.getByRole('button', { name: 'Show all', exact: true }).click();
  await there(page, 5);
});

test('two filters at once do not undo each other, and a search is one step back', async () => {
  const page = await server.newPage({ at: '#/decisions' });
  await rows(page).first().waitFor();
  const before = await page.evaluate(() => history.length);
  await page.getByLabel('Words in the message').pressSequentially('bug program');
  await eventually(() => /q=bug/.test(page.url()), 'the words are in the address');
  await page.getByLabel('Agent', { exact: true }).fill('engineer');
  await page.getByLabel('Layer').selectOption('semantic');
  await eventually(() => ['q=bug', 'agent=engineer', 'layer=semantic'].every((part) => page.url().includes(part)),
    'all three are');
  assert.ok(await page.evaluate(() => history.length) - before <= 3, 'one entry for each');
});

test('time, score and conversation narrow it too', async () => {
  const page = await server.newPage({ at: '#/decisions' });
  await there(page, 5);
  await page.getByRole('combobox', { name: 'Time' }).selectOption('1h');
  await eventually(() => page.url().includes('since=1h'), 'the span is in the address');
  await page.getByRole('button', { name: 'more filters' }).click();
  await page.getByLabel('Conversation').fill('c-code');
  await there(page, 1);
  assert.match(await rows(page).innerText(), /segmentation fault/);
  await page.getByLabel('Conversation').fill('');
  await there(page, 5);
  await page.getByLabel('Score at least').fill('0.01');
  await there(page, 4);
  await page.getByLabel('Until').fill('2001-01-01T00:00');
  await page.getByText('No decision matches this filter').waitFor();
});

test('one is shown whole', async () => {
  const page = await open('code');
  const why = page.getByRole('region', { name: 'Who got it, and why' });
  await why.waitFor();
  assert.match(await why.innerText(), /went to engineer[\s\S]*semantic[\s\S]*0\.\d{3} is the best of 3/);
  assert.equal(await why.locator('.candidate').count(), 3);
  assert.equal(await why.locator('.candidate').first().locator('.signal').count(), 4);
  assert.match(await why.locator('.stack').first().getAttribute('aria-label'),
    /score 0\.\d{3}: semantic 0\.\d{3}, performance .* threshold 0\.30/);
  const from = await page.getByRole('region', { name: 'Basis' }).innerText();
  const whole = await server.ask('GET', `/api/decisions/${made.code.id}`);
  for (const part of [whole.versions.config, 'Registry', 'Learning', 'builtin', 'semantic 0.60', 'helper'])
    assert.ok(from.includes(part), `${part} in ${from}`);
  assert.match(whole.tier, /^(table|transformer)$/);
  assert.match(from, new RegExp(`Tier\\s+${whole.tier}: `));
  const message = page.getByRole('region', { name: 'Message' });
  assert.ok((await message.innerText()).includes(TEXTS.code));
  assert.equal(await message.getByRole('link', { name: /^task_/ }).getAttribute('href'), `#/tasks/${whole.task_id}`);
  assert.equal(await message.getByRole('link', { name: 'c-code' }).getAttribute('href'),
    '#/decisions?conversation=c-code');
  assert.equal(await why.getByRole('link', { name: 'engineer' }).first().getAttribute('href'), '#/agents/engineer');
  await axe(page);
  await shot(page, 'decision-light', { whole: true });
});

// Where things are drawn, as shares of what they are drawn in.
const drawn = (box, parts) => box.evaluate((el, what) => {
  const whole = el.getBoundingClientRect();
  return [...el.querySelectorAll(what)].map((part) => {
    const { left, width } = part.getBoundingClientRect();
    return { left: (left - whole.left) / whole.width, width: width / whole.width };
  });
}, parts);
const isNear = (a, b, what) => assert.ok(Math.abs(a - b) < 0.01, `${what}: ${a} for ${b}`);

test('every candidate is drawn with its own four signals, by their weights, and the line where the threshold is',
  async () => {
  const page = await open('code');
  const boxes = page.getByRole('region', { name: 'Who got it, and why' }).locator('.candidate');
  await boxes.nth(2).waitFor();
  const { candidates, weights, threshold } = await server.ask('GET', `/api/decisions/${made.code.id}`);
  const KEYS = { semantic: 'semantic', performance: 'performance', keyword: 'keyword', recency: 'recency' };
  assert.ok(new Set(Object.values(KEYS).map((key) => candidates[0][key])).size > 2, 'signals that can be told apart');
  for (const [i, c] of candidates.entries()) {
    const box = boxes.nth(i);
    assert.deepEqual(await box.locator('.signal').evaluateAll((all) =>
      all.map((s) => [s.querySelector('.signal-name').innerText, s.querySelector('[role=img]').ariaLabel,
        s.querySelector('.figure').innerText])),
      Object.entries(KEYS).map(([word, key]) => [word, `${word}: ${c[key].toFixed(3)}`, c[key].toFixed(2)]));
    const parts = await drawn(box.locator('.stack'), '.stack-part');
    let end = 0;
    for (const [n, key] of Object.values(KEYS).entries()) {
      isNear(parts[n].left, end, `where ${key} of ${c.agent} begins`);
      isNear(parts[n].width, c[key] * weights[key], `${key} of ${c.agent}`);
      end += parts[n].width;
    }
    isNear(end, c.score, `the score of ${c.agent}`);
    isNear((await drawn(box.locator('.stack'), '.stack-line'))[0].left, threshold, 'the threshold');
  }
});

test('right and wrong are said, and seen', async () => {
  const page = await open('letter');
  await page.getByRole('button', { name: 'Right' }).click();
  await page.getByRole('region', { name: 'Outcome' }).getByText('positive').waitFor();
  await page.getByText('Feedback recorded: right.').waitFor();
  await page.getByRole('button', { name: 'Right' }).click();
  await page.getByText('This feedback was already recorded.').waitFor();
  await page.getByRole('button', { name: 'Wrong' }).click();
  await page.getByRole('region', { name: 'Outcome' }).getByText('negative').waitFor();
  assert.equal((await server.ask('GET', `/api/decisions/${made.letter.id}`)).verdict, 'negative');
});

test('one click corrects it, shows what was learnt, and can be taken back', async () => {
  const page = await open('pulled');
  const judge = page.getByRole('region', { name: 'Was that right?' });
  await judge.getByRole('button', { name: 'engineer' }).click();
  await judge.getByText(/is now an example for/).waitFor();
  const learnt = await judge.getByRole('table').innerText();
  assert.match(learnt, /engineer\s+0\.\d{3}\s+0\.\d{3}\s+▲ higher/);
  await page.getByRole('region', { name: 'Outcome' }).getByText('to engineer').waitFor();
  assert.equal((await server.ask('GET', `/api/decisions/${made.pulled.id}`)).overridden_to, 'engineer');
  await shot(page, 'decision-corrected', { whole: true });
  await judge.getByRole('button', { name: 'Remove the override' }).click();
  await judge.getByText('The override was removed.').waitFor();
  assert.equal((await server.ask('GET', `/api/decisions/${made.pulled.id}`)).overridden_to, null);
});

test('it is corrected to somebody who was not compared, with a comment', async () => {
  const page = await open('trends');
  const judge = page.getByRole('region', { name: 'Was that right?' });
  await judge.getByRole('button', { name: 'other…' }).click();
  await judge.getByLabel('Comment').fill('nobody knows');
  await judge.getByLabel('Another agent').fill('missing');
  await judge.getByText('no agent name contains this').waitFor();
  await judge.getByLabel('Another agent').fill('ELPE');
  await judge.getByRole('button', { name: /^helper/ }).click();
  await judge.getByRole('button', { name: 'Override', exact: true }).click();
  await judge.getByText(/is now an example for/).waitFor();
  const { items } = await server.ask('GET', '/api/feed?last=20');
  assert.ok(items.some((e) => e.type === 'decision.overridden' && e.data.comment === 'nobody knows'),
    JSON.stringify(items.map((e) => e.type)));
  allow(page, /404/);
  await judge.getByLabel('Another agent').fill('missing-there');
  await judge.getByRole('button', { name: 'Override', exact: true }).click();
  await page.locator('.toast', { hasText: 'missing-there' }).waitFor();
});

test('it is decided again, side by side', async () => {
  const page = await open('code');
  await page.getByRole('button', { name: 'Decide again now' }).click();
  const both = page.getByRole('region', { name: 'Then and now' });
  await both.getByText('would go to').waitFor();
  assert.match(await both.innerText(), /Then\s+went to engineer[\s\S]*Now\s+would go to engineer/);
  const rows = (await both.getByRole('table').locator('tbody tr').allInnerTexts())
    .map((r) => r.split('\t').map((c) => c.trim()));
  const now = await server.ask('POST', '/api/route', { text: TEXTS.code });
  const then = await server.ask('GET', `/api/decisions/${made.code.id}`);
  const score = (d, agent) => d.candidates.find((c) => c.agent === agent).score.toFixed(3);
  assert.deepEqual(rows.map((r) => [r[0], r[1].replace('➜ ', ''), r[2].replace('➜ ', '')]),
    now.candidates.map((c) => [c.agent, score(then, c.agent), c.score.toFixed(3)]));
  assert.match(rows[0][1], /^➜/);
  await both.getByText('Current signals').click();
  assert.equal(await both.locator('.candidate').count(), 3);
  await shot(page, 'decision-then-now', { whole: true });
});

test('a message longer than its record is decided again whole, or not at all', async () => {
  const rest = ' and then write articles, letters, blog posts and marketing text'.repeat(40);
  const sent = {};
  for (const [name, text] of [['whole', `${TEXTS.code} ${'x'.repeat(1019 - TEXTS.code.length)}`],
    ['long', `${TEXTS.code}, please, ${'in the program '.repeat(65)}${rest}`]])
    sent[name] = (await server.ask('POST', '/api/messages', { text })).decision;
  const again = async (id) => {
    const page = await server.newPage({ at: `#/decisions/${id}` });
    await page.getByRole('button', { name: 'Decide again now' }).click();
    const both = page.getByRole('region', { name: 'Then and now' });
    await both.getByText('would go to').waitFor();
    const changes = (await both.getByRole('table').locator('tbody tr').allInnerTexts())
      .map((r) => r.split('\t').at(-1).trim());
    return { changes, isCut: await page.getByText('stores the first 1024 bytes').count() };
  };
  const then = await server.ask('GET', `/api/decisions/${sent.long.id}`);
  const part = await server.ask('POST', '/api/route', { text: then.text });
  assert.notEqual(part.candidates[0].score.toFixed(3), then.candidates[0].score.toFixed(3),
    'a part of it has other scores');
  assert.deepEqual(await again(sent.whole.id), { changes: ['0.000', '0.000', '0.000'], isCut: 0 });
  assert.deepEqual(await again(sent.long.id), { changes: ['0.000', '0.000', '0.000'], isCut: 1 });
  const page = await server.newPage({ at: `#/decisions/${sent.long.id}` });
  allow(page, /404/);
  await page.route('**/api/tasks/*', (route) => route.fulfill({ status: 404, contentType: 'application/json',
    body: '{"error":{"code":"not_found","message":"it is not kept any more"}}' }));
  await page.getByRole('button', { name: 'Decide again now' }).click();
  await page.getByText('A part of the message could be decided differently').waitFor();
});

test('an envelope is shown by what it says, also where its record is a part of it', async () => {
  const send = (more) => server.ask('POST', '/api/envelopes',
    { to: 'engineer', type: 'REQUEST', reference: 'SUBM-C042', context: 'please look at this', ...more });
  await send({ payload: { confidence: 8.2 } });
  await send({ reference: 'SUBM-LONG', payload: { rest: 'x'.repeat(2000) } });
  await server.ask('POST', '/api/messages', { text: '{"type":"of a person"} is JSON', executor: { name: 'engineer' } });
  const page = await server.newPage({ at: '#/decisions?agent=engineer' });
  const list = page.getByRole('table', { name: /^Decisions/ });
  await list.getByText('REQUEST / SUBM-LONG · please look at this').waitFor();
  await list.getByText('{"type":"of a person"} is JSON').waitFor();
  await list.getByText('REQUEST / SUBM-C042 · please look at this').click();
  const message = page.getByRole('region', { name: 'Message' });
  await message.getByText('please look at this', { exact: true }).waitFor();
  assert.match(await message.innerText(), /Type\s+REQUEST\s+Reference\s+SUBM-C042[\s\S]*confidence\s+8\.2/);
});

test('what others say of it is seen', async () => {
  const { decision } = await server.ask('POST', '/api/messages', { text: TEXTS.letter });
  const page = await server.newPage({ at: `#/decisions/${decision.id}` });
  const outcome = page.getByRole('region', { name: 'Outcome' });
  await outcome.getByText('open', { exact: true }).waitFor();
  await server.ask('POST', `/api/decisions/${decision.id}/feedback`, { verdict: 'right' });
  await outcome.getByText('positive').waitFor();
});

test('a new one appears by itself', async () => {
  const page = await server.newPage({ at: '#/decisions' });
  await rows(page).first().waitFor();
  await server.ask('POST', '/api/messages', { text: 'a bug that has just come' });
  await page.getByText('a bug that has just come').waitFor();
});

test('before there are any, the page says what will come', async () => {
  const own = await stage({ agents: AGENTS });
  const page = await own.newPage({ at: '#/decisions' });
  await page.getByText('No decisions yet').waitFor();
  await page.getByText('build/signalbox decisions', { exact: true }).waitFor();
  await axe(page);
});

test('users see their own, others are not there; who may only read is offered nothing', async () => {
  const token = await server.user('anna');
  const page = await server.newPage({ token, at: '#/decisions' });
  await page.getByText('No decisions yet').waitFor();
  allow(page, /404/);
  await page.goto(`${server.url}/#/decisions/${made.code.id}`);
  await page.locator('.problem').waitFor();
  const { token: reader } = await server.ask('POST', '/api/tokens', { user: 'admin', scopes: ['read'] });
  const other = await server.newPage({ token: reader, at: `#/decisions/${made.code.id}` });
  await other.getByRole('region', { name: 'Who got it, and why' }).waitFor();
  assert.equal(await other.getByRole('button', { name: 'Right' }).count(), 0);
  assert.equal(await other.getByRole('button', { name: 'Decide again now' }).count(), 0);
});

for (const [name, wishes] of [['phone', { width: 360, height: 740 }], ['dark', { theme: 'dark' }]])
  test(`it looks right: ${name}`, async () => {
    const page = await server.newPage({ at: '#/decisions', ...wishes });
    await rows(page).first().waitFor();
    await shot(page, `decisions-${name}`);
    await axe(page);
    await page.goto(`${server.url}/#/decisions/${made.code.id}`);
    await page.getByRole('region', { name: 'Basis' }).waitFor();
    await shot(page, `decision-${name}`, { whole: true });
    await axe(page);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'no sideways scrolling');
  });
