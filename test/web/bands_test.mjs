// How sure a decision is, as people see it: while a message is typed, in the
// answer, on the decision's page, in the lists and in the feed; and a message
// that no agent got. Where a test needs a certain band, it changes the server's
// answer on its way, so that no test hangs on what a model thinks of a text.
import assert from 'node:assert/strict';
import { allow, axe, eventually, shot, stage, test } from './stage.mjs';

const card = (id, description) => ({ id, url: 'echo:', description });
const FLEET = [card('devops', 'keeps prod up. deploys, kubernetes, monitoring, on call'),
  card('backend', 'our Go api and the postgres db, writes and fixes server code'),
  card('frontend', 'web app ui, react and css, makes the screens work and look ok'),
  card('support', 'answers customer tickets, helps users who are stuck in the app'),
  card('billing', 'invoices, refunds, subscriptions, failed card payments')];
const TEXT = 'which of these forms is for the new chairs';

const server = await stage({ agents: FLEET, args: ['--set', 'routing.threshold=0'] });
const asking = await stage({ agents: FLEET, args: ['--set', 'routing.threshold=1'] });
const demo = await stage({ agents: 'demo', args: ['--set', 'routing.threshold=0.3'] });

const message = (page) => page.getByLabel('Message', { exact: true });
const turns = (page) => page.getByRole('listitem', { name: 'A message and its answer' });
const candidates = (page) => page.getByRole('list', { name: 'Candidates' }).getByRole('listitem');
const bands = (page) => page.getByRole('list', { name: 'How sure the decision is' });
const current = (page) => bands(page).locator('[aria-current]');

// What the server answers, changed: `change` gets the body and returns another.
async function rewrite(page, pattern, change, status) {
  await page.route(pattern, async (route) => {
    const reply = await route.fetch();
    await route.fulfill({ response: reply, ...(status && { status }), json: change(await reply.json()) });
  });
}

// A decision of a band, with floors: the best candidate's meaning is 0.41.
const FLOORS = { confident: 0.36, unsure: 0.52, out_of_scope: 0.7 };
function ofBand(band, decision) {
  const list = decision.candidates.map((c, i) => ({ ...c, semantic: 0.41 - i / 20, floor: FLOORS[band] }));
  return { ...decision, band, unsure: band === 'unsure', threshold: FLOORS[band], candidates: list,
    ...(decision.rules && { rules: { ...decision.rules, auto: true, alpha: 0.5, n: 5 } }) };
}

const refusal = (band, decision) => ({ error: { code: 'no_route', message: 'no agent', details: {
  band, threshold: null, considered: 5, candidates: ofBand(band, decision).candidates } } });

// One decision in the store, and the page that shows it as `change` has it.
async function decisionPage(change, wishes) {
  const sent = await server.ask('POST', '/api/messages', { text: TEXT, wait_ms: 30_000 });
  const page = await server.newPage(wishes);
  await rewrite(page, `**/api/decisions/${sent.decision.id}`, change);
  await page.goto(`${server.url}/#/decisions/${sent.decision.id}`);
  await page.getByRole('heading', { name: 'Basis' }).waitFor();
  return { page, id: sent.decision.id };
}
const noAgent = (d) => ({ ...ofBand('out_of_scope', d), layer: 'none', agent: null, skill: null, score: null,
  task_id: null, gate: null, turn: null, conversation_id: null,
  reason: 'no agent does what this message asks for; the nearest is "devops"' });

// The playground.

test('each band is shown while the decision forms, with the floor of every candidate', async () => {
  const page = await server.newPage();
  for (const [band, word, said] of [['confident', 'confident', 'semantic 0.41 reaches the floor of 0.36'],
    ['unsure', 'unsure', 'semantic 0.41 is below the floor of 0.52']]) {
    await page.unrouteAll({ behavior: 'wait' });
    await rewrite(page, '**/api/route', (d) => ofBand(band, d));
    await message(page).fill(`${TEXT} ${band}`);
    await current(page).getByText(word, { exact: true }).waitFor();
    await candidates(page).first().getByText(said).waitFor();
    await page.getByText(`semantic 0.41, floor ${FLOORS[band]} (one of 5 agents)`).waitFor();
    assert.equal(await candidates(page).getByRole('img', { name: /threshold/ }).count(), 0);
    assert.equal(await candidates(page).locator('.bar-mark').count(), 5);
    await shot(page, `playground-${band}`);
  }
  await axe(page);
});

test('out of scope: the nearest are shown with a button that sends it all the same', async () => {
  const page = await server.newPage();
  allow(page, /422/);
  await rewrite(page, '**/api/route', (d) => refusal('out_of_scope', d), 422);
  await message(page).fill(TEXT);
  await current(page).getByText('out of scope').waitFor();
  await page.getByRole('alert').getByText('No agent does what this message asks for').waitFor();
  await shot(page, 'playground-out-of-scope');
  await axe(page);
  await candidates(page).getByRole('button', { name: 'Send to support anyway' }).click();
  await turns(page).getByText('completed').waitFor();
  const { items: [task] } = await server.ask('GET', '/api/tasks?limit=1');
  assert.deepEqual([task.agent, task.text], ['support', TEXT]);
  assert.equal(await message(page).inputValue(), '');
});

test('where the level of no card is known yet, nothing breaks', async () => {
  const page = await server.newPage();
  await rewrite(page, '**/api/route', (d) => ({ ...ofBand('unsure', d), threshold: null,
    candidates: d.candidates.map((c) => ({ ...c, floor: null })) }));
  await message(page).fill(TEXT);
  await page.getByText('the floor of this agent is not known yet').waitFor();
  await current(page).getByText('unsure').waitFor();
});

test('after a refusal the candidates stay, and one click sends the same text to one of them', async () => {
  const page = await asking.newPage();
  allow(page, /422/);
  await message(page).fill(TEXT);
  await message(page).press('Enter');
  await turns(page).getByText('not sent').waitFor();
  const offered = turns(page).getByRole('group', { name: 'The nearest agents' });
  await offered.waitFor();
  assert.equal(await offered.getByRole('button').count(), 3);
  assert.equal(await candidates(page).count(), 5);
  await page.getByText('no agent', { exact: true }).waitFor();
  await shot(page, 'playground-refused');
  await axe(page);
  const name = await candidates(page).nth(1).getByRole('link').innerText();
  await offered.getByRole('button', { name: `Send to ${name} anyway` }).click();
  await turns(page).nth(1).getByText('completed').waitFor();
  await turns(page).first().getByText(`sent to ${name}`).waitFor();
  assert.equal(await turns(page).getByRole('button', { name: /anyway/ }).count(), 0);
  const { items: [decision] } = await asking.ask('GET', '/api/decisions?limit=1');
  assert.deepEqual([decision.layer, decision.agent, decision.text], ['explicit', name, TEXT]);
});

test('an unsure answer is marked, and the agents that came next are offered', async () => {
  const page = await server.newPage();
  await rewrite(page, '**/api/decisions?task_id=*', ({ items, ...more }) => ({ ...more,
    items: items.map((d) => (d.layer === 'semantic' ? ofBand('unsure', d) : d)) }));
  await message(page).fill(TEXT);
  await message(page).press('Enter');
  const offered = turns(page).getByRole('group', { name: 'Other close matches' });
  await turns(page).getByText('unsure', { exact: true }).waitFor();
  await offered.waitFor();
  assert.equal(await offered.getByRole('button').count(), 2);
  await shot(page, 'playground-unsure-answer');
  await axe(page);
  const name = (await offered.getByRole('button').first().innerText()).replace(/^Send to (.*) instead$/, '$1');
  await offered.getByRole('button').first().click();
  await turns(page).nth(1).getByText('completed').waitFor();
  const { items: [task] } = await server.ask('GET', '/api/tasks?limit=1');
  assert.deepEqual([task.agent, task.text], [name, TEXT]);
  assert.equal(await turns(page).nth(1).getByText('unsure').count(), 0);
});

const SUGGESTED = ['why is my query slow?', 'draft a blog post about office trends, with facts',
  'remind me tomorrow at nine to call the plumber'];

// Where the end of the thread is, against the composer and the window.
const placed = (page) => page.evaluate(() => {
  const of = (what) => document.querySelector(what).getBoundingClientRect();
  const last = [...document.querySelectorAll('.turn')].at(-1).getBoundingClientRect();
  return { end: last.bottom, top: last.top, composer: of('.composer').top, foot: of('.composer').bottom,
    height: innerHeight };
});

for (const [name, size] of [['a desk', { width: 1280, height: 720 }], ['a phone', { width: 390, height: 844 }]])
  test(`on ${name} the composer stays in view, and the view follows the answers`, async () => {
    const page = await demo.newPage(size);
    for (const [n, text] of SUGGESTED.entries()) {
      await page.getByRole('button', { name: text }).click();
      await message(page).press('Enter');
      await turns(page).nth(n).getByText('completed').waitFor();
      await turns(page).nth(n).getByRole('button', { name: 'Wrong agent?' }).waitFor();
      await eventually(async () => {
        const at = await placed(page);
        return at.foot <= at.height + 1 && at.composer > 0 && at.end <= at.composer + 1 && at.end > 0;
      }, 'the end of the answer is above the composer, and the composer in the window');
    }
    await shot(page, `playground-followed-${size.width}`);
  });

test('a reader who scrolled up is left where they are until they send again', async () => {
  // High enough for the first answer's button: a click on what is out of view scrolls.
  const page = await demo.newPage({ width: 1280, height: 800 });
  for (const [n, text] of SUGGESTED.entries()) {
    await page.getByRole('button', { name: text }).click();
    await message(page).press('Enter');
    await turns(page).nth(n).getByText('completed').waitFor();
  }
  await page.evaluate(() => scrollTo(0, 0));
  await eventually(() => page.evaluate(() => scrollY === 0), 'the top is there');
  await turns(page).first().getByRole('button', { name: 'Wrong agent?' }).click(); // the thread grows
  await page.getByRole('group', { name: 'Which agent should' }).waitFor();
  assert.equal(await page.evaluate(() => scrollY), 0);
  await message(page).fill('why is my query slow?');
  await message(page).press('Enter');
  await turns(page).nth(3).getByText('completed').waitFor();
  await eventually(async () => (await page.evaluate(() => scrollY)) > 0, 'the new message is shown');
});

// A decision.

test('the page of a decision says how sure it is, by what, and how long it took', async () => {
  const { page } = await decisionPage((d) => ({ ...ofBand('confident', d), decide_us: 43 }));
  await current(page).getByText('confident').waitFor();
  await page.getByText('semantic 0.41, floor 0.36 (one of 5 agents)').waitFor();
  const facts = page.getByRole('region', { name: 'Basis' });
  await facts.getByText('43 µs').waitFor();
  await facts.getByText('auto: every agent has its own floor').waitFor();
  await facts.getByText('0.360').waitFor();
  await facts.getByText('5 agents, α = 0.50').waitFor();
  await shot(page, 'decision-confident', { whole: true });
  await axe(page);
});

test('the page of a decision says that the message is small talk', async () => {
  const { page } = await decisionPage((d) => ({ ...ofBand('out_of_scope', d),
    rules: { ...d.rules, auto: true, alpha: 0.2, n: 5, small_talk: true } }));
  await page.getByText('5 agents, α = 0.20, small talk').waitFor();
});

test('where a number decides, the page shows it and no floor', async () => {
  const { page } = await decisionPage((d) => ({ ...d, rules: { ...d.rules, auto: false, threshold: 0.3 },
    threshold: 0.3 }));
  await page.getByText(/score 0\.\d+ · threshold 0\.30/).waitFor();
  await candidates(page).first().getByRole('img', { name: /threshold 0\.30/ }).waitFor();
  assert.equal(await page.getByText('Floor', { exact: true }).count(), 0);
});

test('a message that no agent got has a page, and is corrected and sent from there', async () => {
  const { page, id } = await decisionPage(noAgent);
  await page.getByRole('heading', { name: 'Why no agent got it' }).waitFor();
  await page.getByText('no agent', { exact: true }).waitFor();
  await page.getByText('the message was refused, and no task was created').waitFor();
  await current(page).getByText('out of scope').waitFor();
  await shot(page, 'decision-none', { whole: true });
  await axe(page);
  const asked = [];
  await page.route(`**/api/decisions/${id}/override`, (route) => {
    asked.push(route.request().postDataJSON());
    return asked.length === 1
      ? route.fulfill({ status: 400,
        json: { error: { code: 'bad_request', message: 'send is no field', details: {} } } })
      : route.fulfill({ json: { id, overridden_to: 'support', task_id: 'task_01m7jtxhhd1fb46fyyv9z3ez72' } });
  });
  allow(page, /400/);
  const choices = page.getByRole('group', { name: 'Which agent should have received it?' });
  await choices.getByRole('button', { name: 'support' }).click();
  await page.getByText('send is no field').waitFor();
  await choices.getByRole('button', { name: 'support' }).click();
  await page.getByText('Overridden to support. The message was sent to it.').waitFor();
  await page.getByRole('link', { name: 'Open the task' }).waitFor();
  await page.getByText('If you sent it again, it would go to').waitFor();
  await page.getByLabel('and send the message to it').uncheck();
  await choices.getByRole('button', { name: 'billing' }).click();
  await eventually(() => asked.length === 3, 'it is corrected without sending');
  assert.deepEqual(asked, [{ agent: 'support', send: true }, { agent: 'support', send: true }, { agent: 'billing' }]);
});

test('a refused message is sent on by its own sender only, and once', async () => {
  for (const more of [{ requester: 'someone' }, { task_id: 'task_01m7jtxhhd1fb46fyyv9z3ez72',
    overridden_to: 'support' }]) {
    const { page } = await decisionPage((d) => ({ ...noAgent(d), ...more }));
    await page.getByRole('heading', { name: 'Which agent should have received it?' }).waitFor();
    assert.equal(await page.getByLabel('and send the message to it').count(), 0);
    if (more.task_id)
      await page.getByText('refused at first, then sent to').waitFor();
    await page.context().close();
  }
});

// Lists.

test('the list marks what was unsure, and what no agent got', async () => {
  await server.ask('POST', '/api/messages', { text: TEXT, wait_ms: 30_000 });
  await server.ask('POST', '/api/messages', { text: `${TEXT}?`, wait_ms: 30_000 });
  for (const wishes of [{}, { theme: 'dark' }, { width: 390, height: 844 }]) {
    const page = await server.newPage(wishes);
    await rewrite(page, '**/api/decisions?*', ({ items: [first, second, ...rest], ...more }) => ({ ...more, items: [
      { ...first, layer: 'none', agent: null, score: null, threshold: null, band: 'out_of_scope', task_id: null },
      { ...second, band: 'unsure', unsure: true, threshold: null }, ...rest] }));
    await page.goto(`${server.url}/#/decisions`);
    const rows = page.getByRole('row');
    await rows.nth(1).getByText('no agent').waitFor();
    if (!wishes.width)
      await rows.nth(2).getByText('unsure').waitFor();
    await shot(page, `decisions-bands-${wishes.theme ?? wishes.width ?? 'light'}`);
    await axe(page);
    await page.context().close();
  }
});

test('the feed has a refused message with the agent that came nearest, and marks an unsure one', async () => {
  await server.ask('POST', '/api/messages', { text: TEXT, wait_ms: 30_000 });
  const page = await server.newPage();
  await rewrite(page, '**/api/feed?*', ({ items, ...more }) => ({ ...more, items: [
    ...items.slice(0, -1).map((e) => (e.type === 'task.accepted' ? { ...e, data: { ...e.data, unsure: true } } : e)),
    { ...items.at(-1), type: 'message.refused', task_id: null, agent: null, conversation_id: null,
      data: { decision_id: 'dec_01m7jtxhhd1fb46fyyv9z3ez6z', band: 'out_of_scope', nearest: 'devops' } }] }));
  await page.goto(`${server.url}/#/feed`);
  const row = page.getByRole('row', { name: /message\.refused/ });
  await row.getByText('out of scope · nearest: devops').waitFor();
  assert.equal(await row.getByRole('link').first().getAttribute('href'),
    '#/decisions/dec_01m7jtxhhd1fb46fyyv9z3ez6z');
  await page.getByRole('row', { name: /task\.accepted/ }).first().getByText('unsure').waitFor();
  await page.getByLabel('Type').selectOption('Refused');
  await eventually(async () => await page.getByRole('row', { name: /task\.accepted/ }).count() === 0, 'it is filtered');
  await row.waitFor();
  await shot(page, 'feed-refused');
});
