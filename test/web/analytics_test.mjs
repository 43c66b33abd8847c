// Analytics: what the page says is what the server counted, table by table.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import path from 'node:path';
import { axe, eventually, shot, stage, test } from './stage.mjs';

const AGENTS = [
  { id: 'engineer', url: 'echo:', visibility: 'public',
    description: 'Builds and repairs software, finds bugs in programs and slow queries',
      routing: { keywords: ['bug', 'query'] } },
  { id: 'content-writer', url: 'echo:', visibility: 'public',
    description: 'Writes articles, letters, blog posts and marketing text',
      routing: { keywords: ['write', 'blog post'] } },
  { id: 'researcher', url: 'echo:', visibility: 'public', description: 'Finds facts, sources, studies and trends',
    routing: { keywords: ['data'] } },
  { id: 'helper', url: 'echo:', visibility: 'public', routing: { routable: false } },
];
const SAID = [
  'find the bug in this program, it crashes', 'why is this query slow in the program?',
    'repair the software that builds our programs', 'a bug in the slow query of the program',
  'write a letter to the marketing people', 'write articles about marketing', 'draft a blog post with marketing text',
    'write software that builds',
  'which studies have facts about trends?', 'find sources and facts for these trends', 'data about trends in studies',
  'zebra quagga okapi', 'what is the weather like?', 'sing me a song', 'program trends letter',
];
const CONFIG = { agents: { list: AGENTS, default: 'helper' }, learning: { followUpMs: 0, everyMs: 0 } };
const DAY_MS = 86400e3;

const server = await stage({ agents: CONFIG });
const made = [];
const say = async (round) => {
  for (const text of SAID) {
    const reply = await server.ask('POST', '/api/messages', { text: `${text}${'!'.repeat(round)}`, wait_ms: 30_000 });
    made.push({ text, conversation: reply.conversation_id, ...reply.decision });
  }
};
const of = (text) => made.find((d) => d.text === text);
await say(0);
await server.ask('POST', `/api/decisions/${of('write software that builds').id}/override`, { agent: 'engineer' });
await server.ask('POST', `/api/decisions/${of('sing me a song').id}/override`, { agent: 'content-writer' });
for (const text of [SAID[0], SAID[4], SAID[8]])
  await server.ask('POST', `/api/decisions/${of(text).id}/feedback`, { verdict: 'right' });
await server.ask('POST', '/api/learning/run'); // from now on there are types
await say(1);
await say(2);
// Counted, and no part of how well messages are routed.
for (const text of ['and this one?', 'thanks'])
  await server.ask('POST', '/api/messages', { text, conversation_id: of(SAID[0]).conversation });
await server.ask('POST', '/api/messages', { text: 'hello', executor: { name: 'helper' } });
await spread();

// As if they had come over the last days.
async function spread() {
  await server.kill9();
  const db = new DatabaseSync(path.join(server.folder, 'data', 'signalbox.db'));
  const all = db.prepare('SELECT seq, at_ms FROM decision ORDER BY seq').all();
  const move = db.prepare('UPDATE decision SET at_ms = ? WHERE seq = ?');
  all.forEach((d, i) => move.run(Math.round(d.at_ms - (all.length - 1 - i) * (6 * DAY_MS) / all.length), d.seq));
  db.close();
  await server.restart();
}

const open = async (tab = 'overview', wishes = {}) => {
  const page = await server.newPage({ at: `#/analytics?tab=${tab}&window=7d`, ...wishes });
  await page.locator('[role=tabpanel] .card, [role=tabpanel] .figure-box').first().waitFor();
  return page;
};
const table = (page, name) => page.getByRole('region', { name });
const cells = async (where) => (await where.locator('tbody tr').allInnerTexts())
  .map((row) => row.split('\t').map((c) => c.trim()));

// What a screen reader is told of every line that is drawn.
async function plotsAreRight(page) {
  const { hours } = await server.ask('GET', '/api/analytics/all?window=7d');
  const LINES = { Confidence: [['mean confidence', 'confidence', (v) => v.toFixed(2)],
    ['mean margin', 'margin', (v) => v.toFixed(2)]],
    'Corrections and errors': [['corrected', 'override_rate', share], ['errors', 'error_rate', share]] };
  assert.notDeepEqual(hours.map((h) => h.override_rate), hours.map((h) => h.error_rate));
  for (const [plot, lines] of Object.entries(LINES)) {
    const id = await page.getByRole('slider', { name: plot }).getAttribute('aria-describedby');
    const said = await page.locator(`[id="${id}"]`).innerText();
    for (const [label, key, show] of lines) {
      const all = hours.map((h) => h[key]).filter((v) => v !== null);
      const wanted = `${label}: between ${show(Math.min(...all))} and ${show(Math.max(...all))}, ending at `
        + `${show(all.at(-1))}`;
      assert.ok(said.includes(wanted), `${wanted} in ${said}`);
    }
  }
}
const share = (v) => `${(v * 100).toFixed(v > 0 && v < 0.1 ? 1 : 0)} %`;

test('who names an agent that is not there is not routed, and is said to have no row', async () => {
  const own = await stage({ agents: { agents: CONFIG.agents } });
  await own.ask('POST', '/api/messages', { text: SAID[0], wait_ms: 30_000 });
  await assert.rejects(own.ask('POST', '/api/messages', { text: 'hi', executor: { name: 'missing' } }), /404/);
  const page = await own.newPage({ at: '#/analytics' });
  await page.getByText('Messages that no agent got have no row').waitFor();
  const boxes = (await page.locator('.figure-box').allInnerTexts()).join('\n');
  assert.ok(boxes.includes('2\ndecisions') && boxes.includes('1\nrouted'), boxes);
  await page.getByRole('note').getByText('1 of 1 routed has no verdict yet').waitFor();
});

test('an answer is counted at once; what is not known yet is said to be so, and when it will be', async () => {
  const own = await stage({ agents: { agents: CONFIG.agents } });
  await own.ask('POST', '/api/messages', { text: SAID[0], wait_ms: 30_000 });
  const page = await own.newPage({ at: '#/analytics' });
  await page.getByRole('note').getByText('1 of 1 routed has no verdict yet. It is given 30 min after').waitFor();
  const boxes = await page.locator('.figure-box').allInnerTexts();
  for (const [value, name] of [['0.0 %', 'error rate'], [`${SAID[0].length} chars`, 'mean answer length'],
    ['\\d+ ms', 'mean time to answer']])
    assert.ok(boxes.some((b) => new RegExp(`^${value}\\s+${name}\\s+of 1 finished$`).test(b.trim())),
      `${name} in ${boxes}`);
  assert.ok(boxes.some((b) => /^–\s+good\s+0 bad, 0 neutral, 1 open$/.test(b.trim())), boxes.join('\n'));
  await axe(page);
  await shot(page, 'analytics-young', { whole: true });
  await page.getByRole('tab', { name: 'Query types' }).click();
  await page.getByText('30 min after the answer, or when a user gives').waitFor();
  await page.getByRole('tab', { name: 'Gate' }).click();
  await page.getByText('messages routed in the last hour').waitFor();
  const gate = await page.locator('.figure-box').allInnerTexts();
  assert.match(gate[0],
    /^1\s+messages routed[\s\S]*a quiet hour[\s\S]*target at least 100[\s\S]*0\.\d an hour over a day$/);
  assert.match(gate[1], /^–\s+mean hold[\s\S]*none yet[\s\S]*0 holds ended in 24 hours$/);
});

test('the figures are those of the server, and every plot can be read', async () => {
  const page = await open();
  const { items: [s] } = await server.ask('GET', '/api/analytics/summary?window=7d');
  const boxes = (await page.locator('.figure-box').allInnerTexts()).join('\n');
  for (const part of ['48\ndecisions', '45\nrouted\nby the text of the message',
    `${s.confidence.toFixed(3)}\nmean confidence`, '4.4 %\ncorrected\n2 of 45 routed'])
    assert.ok(boxes.includes(part), `${part} in ${boxes}`);
  assert.deepEqual(await page.getByRole('slider').evaluateAll((all) => all.map((p) => p.getAttribute('aria-label'))),
    ['Decisions', 'Confidence', 'Corrections and errors', 'Time to answer']);
  assert.equal((boxes.match(/of 45 finished/g) || []).length, 3, boxes);
  await page.getByText('Rates, means and verdicts cover routed messages').waitFor();
  await page.getByRole('note').getByText(`${s.open} of 45 routed have no verdict yet`).waitFor();
  await plotsAreRight(page);
  const plot = page.getByRole('slider', { name: 'Decisions' });
  await plot.focus();
  await page.keyboard.press('Home');
  const first = await plot.getAttribute('aria-valuetext');
  await page.keyboard.press('ArrowRight');
  await eventually(async () => await plot.getAttribute('aria-valuetext') !== first, 'the arrow key goes on');
  assert.match(first, /decisions \d+ · routed \d+$/);
  assert.ok(await plot.locator('canvas').count() === 1);
  const agents = await cells(table(page, /^Agents, most/));
  const { items } = await server.ask('GET', '/api/analytics/agents?window=7d');
  assert.deepEqual(agents.map((r) => r.slice(0, 3)),
    items.map((r) => [r.agent, String(r.decisions), String(r.routed)]));
  assert.ok(items.some((r) => r.routed < r.decisions), 'some were not routed');
  await axe(page);
  await shot(page, 'analytics-light', { whole: true });
});

test('another window counts another time, and the address keeps it', async () => {
  const page = await open();
  await page.getByLabel('Last').selectOption('24h');
  const { items: [s] } = await server.ask('GET', '/api/analytics/summary?window=24h');
  assert.ok(s.decisions > 0 && s.decisions < 48);
  await page.locator('.figure-box').filter({ hasText: new RegExp(`^\\s*${s.decisions}\\s*decisions`) }).waitFor();
  assert.match(page.url(), /window=24h/);
  await page.getByLabel('Last').selectOption('30d');
  await page.getByText('by day (UTC)').waitFor();
});

// The four lights: the figure of a cell, and what of the colour it has (1: all of it).
const judged = (r) => r.positive + r.negative;
const percent = (x) => `${(x * 100).toFixed(0)} %`;
const mostOf = (items) => Math.max(...items.map((r) => r.decisions));
const LIGHTS = {
  decisions: { text: (r) => String(r.decisions), share: (r, most) => r.decisions / most },
  well: { text: (r) => (judged(r) ? percent(r.positive / judged(r)) : '–'),
    share: (r) => (judged(r) ? r.positive / judged(r) : 0) },
  confidence: { text: (r) => (r.confidence === null ? '–' : r.confidence.toFixed(2)), share: (r) => r.confidence ?? 0 },
  overridden: { text: (r) => percent(r.override_rate), share: (r) => r.override_rate },
};

// How far a cell's colour is from the card's: none of the light, none of the distance.
const cellsOf = (heat) => heat.locator('.heat-cell').evaluateAll((all) => {
  const context = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const rgb = (colour) => {
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data];
  };
  const probe = document.body.appendChild(document.createElement('i'));
  probe.style.background = 'var(--card)';
  const ground = rgb(getComputedStyle(probe).backgroundColor);
  probe.remove();
  return all.map((cell) => ({ text: cell.innerText.trim(), to: cell.querySelector('a').getAttribute('href'),
    colour: Math.hypot(...rgb(getComputedStyle(cell).backgroundColor).map((v, i) => v - ground[i])) }));
});

async function eachLight(page, heat, items) {
  for (const [way, light] of Object.entries(LIGHTS)) {
    await page.getByLabel('Show').selectOption(way);
    const rowOf = (cell) =>
      items.find((r) => cell.to === `#/decisions?${new URLSearchParams({ type: r.type || 0, agent: r.agent })}`);
    const cells = (await cellsOf(heat)).map((cell) => ({ ...cell, row: rowOf(cell) }));
    assert.equal(cells.length, items.length);
    assert.deepEqual(cells.map((c) => c.text), cells.map((c) => light.text(c.row)), way);
    const shares = cells.map((c) => light.share(c.row, mostOf(items)));
    const full = Math.max(...cells.map((c, i) => c.colour / (shares[i] || 1)));
    assert.ok(new Set(shares).size > 1 && full > 20, `${way} has no colours: ${JSON.stringify(cells)}`);
    cells.forEach((c, i) => assert.ok(Math.abs(c.colour - full * shares[i]) < full * 0.08,
      `${way} ${c.text}: ${c.colour} of ${full}`));
  }
}

test('types of query by agents are a table, in any of four lights', async () => {
  const page = await open('types');
  const heat = page.getByRole('table', { name: /^Query types by agent/ });
  const { items } = await server.ask('GET', '/api/analytics/types?window=7d');
  const agents = [...new Set(items.map((r) => r.agent))];
  const heads = await heat.locator('thead th').allInnerTexts();
  assert.deepEqual(new Set(heads.slice(1, -1)), new Set(agents));
  const sum = async () => (await heat.locator('.heat-cell').allInnerTexts()).reduce((n, t) => n + Number(t), 0);
  assert.equal(await sum(), items.reduce((n, r) => n + r.decisions, 0));
  assert.ok(items.some((r) => r.type), 'types were found');
  await shot(page, 'analytics-types-light', { whole: true });
  const whole = (v) => (v === null ? '–' : `${(v * 100).toFixed(0)} %`);
  const WAYS = { well: (r) => whole(r.positive + r.negative ? r.positive / (r.positive + r.negative) : null),
    confidence: (r) => (r.confidence === null ? '–' : r.confidence.toFixed(2)),
      overridden: (r) => whole(r.override_rate) };
  for (const [way, figure] of Object.entries(WAYS)) {
    await page.getByLabel('Show').selectOption(way);
    assert.deepEqual((await heat.locator('.heat-cell').allInnerTexts()).sort(), items.map(figure).sort(), way);
    const colours = await heat.locator('.heat-cell').evaluateAll((all) =>
      all.map((c) => [c.innerText, getComputedStyle(c).backgroundColor]));
    const of = new Map(colours);
    assert.ok(colours.every(([text, colour]) => of.get(text) === colour) || way === 'confidence',
      `${way}: the same figure has the same colour`);
    assert.equal(new Set(of.values()).size > 1, of.size > 1, `${way}: another figure has another colour`);
  }
  await axe(page);
  const one = items.find((r) => r.type);
  await heat.getByRole('link', { name: new RegExp(`: ${one.decisions} of ${one.name} to ${one.agent}:`) }).click();
  const list = page.getByRole('table', { name: /^Decisions/ }).locator('.row');
  await eventually(async () => await list.count() === one.decisions, 'those of the cell');
  assert.match(page.url(), new RegExp(`type=${one.type}&agent=${one.agent}$`));
  await page.getByRole('button', { name: 'show all types' }).click();
  await eventually(async () => await list.count() > one.decisions, 'those of the agent');
});

test('gaps come with their samples, which lead to the decisions', async () => {
  const page = await open('types');
  const { items } = await server.ask('GET', '/api/analytics/gaps?window=7d');
  const gaps = page.locator('.gap');
  assert.equal(await gaps.count(), items.length);
  assert.equal(await page.locator('.samples li').count(), items.reduce((n, g) => n + g.samples.length, 0));
  const sample = page.locator('.samples a').first();
  const text = await sample.innerText();
  await sample.click();
  await page.getByRole('table', { name: /^Decisions/ }).getByText(text).first().waitFor();
});

test('signals and keywords say what they are worth', async () => {
  const page = await open('signals');
  const { items: signals } = await server.ask('GET', '/api/analytics/signals?window=7d');
  const rows = await cells(table(page, 'Signals'));
  assert.deepEqual(rows.map((r) => r[0]), ['semantic', 'performance', 'keyword', 'recency']);
  rows.forEach((r, i) => assert.ok(r[1].startsWith(`${signals[i].would_differ} `) && r[2] === String(signals[i].helped)
    && r[3] === String(signals[i].hurt), r));
  const { items: keywords } = await server.ask('GET', '/api/analytics/keywords?window=7d');
  const shown = await cells(table(page, /^Keywords, misleading/));
  assert.deepEqual(shown, keywords.map((k) => [k.keyword, k.agent,
    ...[k.fired, k.won, k.pulled, k.right, k.wrong].map(String)]));
  assert.equal(shown[0][0], 'write');
  await axe(page);
  await shot(page, 'analytics-signals-light', { whole: true });
});

test('the slider shows what another threshold would change', async () => {
  const page = await open('threshold');
  const slider = page.getByRole('slider', { name: 'Threshold', exact: true });
  assert.equal(await slider.inputValue(), '0.3');
  await page.getByText('current', { exact: true }).waitFor();
  const { items } = await server.ask('GET', '/api/analytics/thresholds?window=7d');
  await slider.focus();
  for (let i = 0; i < 15; i++) await page.keyboard.press('ArrowRight');
  assert.equal(await slider.inputValue(), '0.45');
  const row = items[45];
  assert.ok(row.changed > 0, JSON.stringify(row));
  await page.getByText(`${row.changed} of 48`).waitFor();
  const known = await page.getByRole('group', { name: /^Known effect/ }).innerText();
  assert.match(known.replace(/\n/g, ' '),
    new RegExp(`${row.better} better.*${row.worse} worse.*${row.unknown} unknown`));
  const changes = await server.ask('GET', '/api/analytics/changes?window=7d&at=0.45');
  const shown = table(page.locator('[aria-busy="false"]'), /^Decisions that a threshold of 0.45/);
  await shown.waitFor();
  assert.equal(await shown.locator('tbody tr').count(), changes.items.length);
  assert.equal(changes.items.length, row.changed);
  await page.getByText('build/signalbox replay --set routing.threshold=0.45').waitFor();
  await axe(page);
  await shot(page, 'analytics-threshold-light', { whole: true });
  await shown.getByRole('link', { name: changes.items[0].text }).first().click();
  await page.getByRole('heading', { name: 'Who got it, and why' }).waitFor();
});

test('a table is saved as CSV, of the time that is looked at', async () => {
  const fired = JSON.stringify((await server.ask('GET', '/api/analytics/keywords?window=24h')).items.map((k) =>
    String(k.fired)));
  const page = await open('signals');
  await page.getByLabel('Last').selectOption('24h'); // not what a call without a window counts
  await page.getByRole('button', { name: 'keywords as CSV' }).waitFor();
  const saved = page.waitForEvent('download');
  await page.getByRole('button', { name: 'keywords as CSV' }).click();
  const file = await saved;
  assert.equal(file.suggestedFilename(), 'signalbox-keywords.csv');
  const text = fs.readFileSync(await file.path(), 'utf8');
  const { body } = await server.api('GET', '/api/analytics/keywords?window=24h&format=csv');
  assert.equal(text, body);
  assert.notEqual(text, (await server.api('GET', '/api/analytics/keywords?window=7d&format=csv')).body);
});

test('the gate’s figures stand beside their targets', async () => {
  const page = await open('gate');
  const { figures } = await server.ask('GET', '/api/gate');
  const boxes = await page.locator('.figure-box').allInnerTexts();
  assert.equal(boxes.length, 4);
  assert.match(boxes[0],
    new RegExp(`${figures.routed_per_hour.value}\\s+messages routed[\\s\\S]*a quiet hour[\\s\\S]*target at least `
      + `100[\\s\\S]*no verdict: \\d+ messages came; \\d+\\.\\d an hour over a day`));
  assert.match(boxes[1], /mean hold[\s\S]*target at most 30 min/);
  assert.match(boxes[2], /escalations[\s\S]*met[\s\S]*target fewer than 5/);
  assert.match(boxes[3], /messages lost[\s\S]*target\s+0/);
  await axe(page);
  await shot(page, 'analytics-gate-light');
});

test('the gate’s figures are for admins; how much of theirs waits is told to everybody', async () => {
  const token = await server.user('carl');
  const page = await server.newPage({ token, at: '#/analytics?tab=gate' });
  await page.getByText('is for admins').waitFor();
  assert.equal(await page.locator('.figure-box').count(), 0);
  await page.getByText('Open escalations').waitFor();
});

test('before there is anything to count, the page says what will come', async () => {
  const own = await stage({ agents: CONFIG });
  const page = await own.newPage({ at: '#/analytics' });
  await page.getByText('No decisions in the last 7 days').waitFor();
  await page.getByText('build/signalbox decisions stats', { exact: true }).waitFor();
  await page.getByRole('tab', { name: 'Threshold' }).click();
  await page.getByText('No decisions in the last 7 days').waitFor();
  await axe(page);
});

test('users count their own, without the names of types', async () => {
  const token = await server.user('anna');
  await server.ask('POST', '/api/messages', { text: SAID[0] }, { token });
  const page = await server.newPage({ token, at: '#/analytics?tab=types' });
  await page.getByText('Only admins see the names').waitFor();
  const heat = page.getByRole('table', { name: /^Query types by agent/ });
  assert.equal(await heat.locator('tbody tr').count(), 1);
  assert.equal(await heat.locator('.heat-cell').innerText(), '1');
});

const TABS = { overview: 'Agents', types: 'Gaps: requests that no agent covers well', signals: 'Keywords',
  threshold: 'What would change at 0.30', gate: 'Decisions of the gate in 24 hours' };
for (const [name, wishes] of [['phone', { width: 360, height: 740 }], ['dark', { theme: 'dark' }]])
  test(`it looks right: ${name}`, async () => {
    const page = await open('overview', wishes);
    for (const [tab, last] of Object.entries(TABS)) {
      await page.goto(`${server.url}/#/analytics?tab=${tab}&window=7d`);
      await page.getByRole('region', { name: last, exact: true }).waitFor();
      await shot(page, `analytics-${tab}-${name}`, { whole: true });
      await axe(page);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
        `${tab}: no sideways scrolling`);
    }
  });
