// Agents are registered and changed, by one or two at once; what one would win;
// and how to connect one's own, with the lines that the page shows.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { allow, axe, eventually, shot, stage, test } from './stage.mjs';

const ROOT = path.join(import.meta.dirname, '../..');
const server = await stage({ agents: 'demo' });
const button = (page, name) => page.getByRole('button', { name, exact: true });
const card = (name) => server.ask('GET', `/api/agents/${name}`);
const register = (fields, options) => server.ask('POST', '/api/agents',
  { url: 'echo:', description: 'For a test', ...fields }, options);
const field = (page, label) => page.getByLabel(label, { exact: true });

async function looks(at, name, check) {
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

test('an agent is registered with the form, and works', async () => {
  const page = await server.newPage({ at: '#/agents' });
  await button(page, 'Register an agent').click();
  await field(page, 'Name').first().fill('baker');
  await field(page, 'Title').fill('The baker');
  await field(page, 'Description').fill('Bakes bread and cakes');
  await field(page, 'Address').fill('echo:');
  await field(page, 'Keywords').fill('bread, cake ,, ');
  await field(page, 'Price per call').fill('0.0015');
  await field(page, 'In-flight limit').fill('4');
  await button(page, 'Add a skill').click();
  const skill = page.getByRole('group', { name: 'Skill 1' });
  await field(skill, 'Name').fill('Baking');
  await field(skill, 'Id').fill('bake');
  await field(skill, 'Examples, one per line').fill('bake me a cake\n\nhow long does sourdough rise');
  await field(skill, 'Tags').fill('bread, sweet');
  await shot(page, 'agent-register-filled', { whole: true });
  await button(page, 'Register').click();
  await page.getByText('baker was registered.').waitFor();
  await page.getByRole('heading', { name: 'The baker', level: 1 }).waitFor();
  const made = await card('baker');
  assert.deepEqual(made.routing.keywords, ['bread', 'cake']);
  assert.deepEqual(made.pricing, { amount_micros: 1500 });
  assert.deepEqual(made.limits, { in_flight: 4 });
  assert.deepEqual(made.skills, [{ id: 'bake', name: 'Baking', tags: ['bread', 'sweet'],
    examples: ['bake me a cake', 'how long does sourdough rise'] }]);
});

test('what is wrong is said at its field, all at once, and nothing typed is lost', async () => {
  const page = await server.newPage({ at: '#/agents?register=1' });
  allow(page, /400/);
  await field(page, 'Name').first().fill('no spaces');
  await field(page, 'Address').fill('ftp://x/');
  await field(page, 'In-flight limit').fill('0');
  await button(page, 'Add a skill').click();
  await button(page, 'Register').click();
  for (const [label, words] of [['Name', /must/], ['Description', /is missing|blank|must/], ['Address', /must/],
    ['In-flight limit', /must/]])
    await page.locator('.field.has-error').filter({ has: page.locator('.field-label',
      { hasText: new RegExp(`^${label}$`) }) }).first().locator('.field-error', { hasText: words }).waitFor();
  await page.getByRole('group', { name: 'Skill 1' }).locator('.field-error').first().waitFor();
  assert.equal(await field(page, 'Address').inputValue(), 'ftp://x/');
  await shot(page, 'agent-register-wrong', { whole: true });
  await axe(page);
  await field(page, 'Price per call').first().fill('much');
  await button(page, 'Register').click();
  await page.getByText('an amount, such as 0.0015').waitFor();
});

test('a name that is taken is refused in the server’s words', async () => {
  await register({ name: 'taken' });
  const page = await server.newPage({ at: '#/agents?register=1' });
  allow(page, /412|409/);
  await field(page, 'Name').first().fill('Taken');
  await field(page, 'Description').fill('Me too');
  await button(page, 'Register').click();
  await page.getByText('there is already one of that name').waitFor();
  assert.equal(await field(page, 'Description').inputValue(), 'Me too');
});

test('one is changed by the form, and by its JSON', async () => {
  const first = await register({ name: 'cook', title: 'Cook', metadata: { team: 'kitchen' },
    skills: [{ id: 'a', name: 'A' }, { id: 'b', name: 'B' }] });
  const page = await server.newPage({ at: '#/agents/cook' });
  await button(page, 'Edit').click();
  await field(page, 'Title').fill('Head cook');
  await page.getByRole('group', { name: 'Skill 1' }).getByRole('button', { name: 'Remove this skill' }).click();
  await button(page, 'Save').click();
  await page.getByText('cook was changed.').waitFor();
  let now = await card('cook');
  assert.deepEqual([now.title, now.skills, now.metadata, now.revision],
    ['Head cook', [{ id: 'b', name: 'B' }], { team: 'kitchen' }, first.revision + 1]);

  await button(page, 'Edit').click();
  await field(page, 'Description').first().fill('Cooks dinner');
  await page.getByRole('tab', { name: 'JSON' }).click();
  const text = JSON.parse(await field(page, 'Card').inputValue());
  assert.equal(text.description, 'Cooks dinner'); // what was typed into the form is there
  assert.equal(text.revision, undefined);
  await field(page, 'Card').fill('{ no');
  await button(page, 'Save').click();
  await page.getByText('This is not valid JSON').waitFor();
  allow(page, /400/);
  await field(page, 'Card').fill(JSON.stringify({ ...text, descripton: 'x' }));
  await button(page, 'Save').click();
  await page.getByText('did you mean "description"?').waitFor();
  const { title, ...rest } = text;
  await field(page, 'Card').fill(JSON.stringify({ ...rest, metadata: { team: 'kitchen', floor: 2 } }));
  await shot(page, 'agent-edit-json');
  await axe(page);
  await button(page, 'Save').click();
  await page.getByText('cook was changed.').first().waitFor();
  await page.getByRole('heading', { name: 'cook', level: 1 }).waitFor();
  now = await card('cook');
  assert.deepEqual([now.title, now.description, now.metadata], [null, 'Cooks dinner', { team: 'kitchen', floor: 2 }]);
});

test('what was typed is there when one comes back, until it is saved or dropped', async () => {
  await register({ name: 'keeper', title: 'Keeper' });
  const page = await server.newPage({ at: '#/agents' });
  await button(page, 'Register an agent').click();
  await field(page, 'Name').first().fill('halfway');
  await field(page, 'Title').fill('Half way'); // has the focus still: Back is no leaving of a field
  await page.goBack();
  await button(page, 'Register an agent').click();
  await page.getByText('your unsaved changes from before').waitFor();
  assert.deepEqual([await field(page, 'Name').first().inputValue(), await field(page, 'Title').inputValue()],
    ['halfway', 'Half way']);
  await page.goto(`${server.url}/#/agents/keeper/edit`);
  assert.equal(await field(page, 'Title').inputValue(), 'Keeper');
  assert.equal(await page.getByText('your unsaved changes from before').count(), 0);
  await page.getByRole('tab', { name: 'JSON' }).click();
  await field(page, 'Card').fill('{ half a card');
  await page.getByRole('link', { name: 'Feed', exact: true }).click();
  await page.getByRole('heading', { name: 'Feed', level: 1 }).waitFor();
  await page.goto(`${server.url}/#/agents/keeper/edit`);
  await eventually(async () => await field(page, 'Card').inputValue() === '{ half a card', 'the text of before');
  await page.reload();
  await eventually(async () => await field(page, 'Card').inputValue() === '{ half a card',
    'the text of before the reload');
  await button(page, 'Discard').click();
  await eventually(async () => await field(page, 'Title').inputValue() === 'Keeper', 'the card as it is');
  await field(page, 'Title').fill('Goalkeeper');
  await button(page, 'Save').click();
  await page.getByText('keeper was changed.').waitFor();
  await button(page, 'Edit').click();
  await eventually(async () => await field(page, 'Title').inputValue() === 'Goalkeeper', 'what was saved');
  assert.equal(await page.getByText('your unsaved changes from before').count(), 0);
  await field(page, 'Title').fill('Other');
  await page.getByRole('link', { name: 'Cancel' }).click();
  await page.getByRole('heading', { name: 'Goalkeeper', level: 1 }).waitFor();
  await button(page, 'Edit').click();
  await eventually(async () => await field(page, 'Title').inputValue() === 'Goalkeeper', 'nothing of what was dropped');
  const other = await server.newPage({ at: '#/agents?register=1' });
  assert.equal(await field(other, 'Name').first().inputValue(), '');
});

test('what is emptied is taken away, and what is wrong with a skill goes with it', async () => {
  await register({ name: 'tidy', version: '1', wake: { url: 'https://wake.example/', timeout_ms: 5000 },
    limits: { queue: 5 }, pricing: { amount_micros: 2000000 }, routing: { keywords: ['a'] } });
  const page = await server.newPage({ at: '#/agents/tidy/edit' });
  assert.equal(await field(page, 'Price per call').inputValue(), '2.00');
  for (const label of ['Version', 'Wake address', 'Queue limit', 'Price per call', 'Keywords'])
    await field(page, label).fill('');
  await button(page, 'Add a skill').click();
  const skill = page.getByRole('group', { name: 'Skill 1' });
  await field(skill, 'Price per call').fill('much');
  await button(page, 'Save').click();
  await skill.getByText('an amount, such as 0.0015').waitFor();
  await button(skill, 'Remove this skill').click();
  await button(page, 'Save').click();
  await page.getByText('tidy was changed.').waitFor();
  const now = await card('tidy');
  for (const key of ['version', 'wake', 'pricing']) assert.equal(now[key], undefined, key);
  assert.deepEqual([now.skills, now.limits?.queue, now.routing?.keywords], [[], undefined, undefined]);
});

test('two who edit at once: the second sees what the first did, and overwrites nothing', async () => {
  const { revision } = await register({ name: 'shared-one', title: 'Before' });
  const edit = async () => {
    const page = await server.newPage({ at: '#/agents/shared-one/edit' });
    allow(page, /412/);
    await field(page, 'Title').waitFor();
    return page;
  };
  const [one, two, three] = [await edit(), await edit(), await edit()];
  await field(one, 'Title').fill('The first');
  await button(one, 'Save').click();
  await one.getByText('shared-one was changed.').waitFor();
  await field(two, 'Version').fill('2.0');
  await button(two, 'Save').click();
  await two.getByText('Someone else has changed this agent').waitFor();
  await two.getByText(/They changed title; you changed version/).waitFor();
  await shot(two, 'agent-edit-conflict');
  await axe(two);
  await button(two, 'Apply my changes to theirs').click();
  await two.getByText('shared-one was changed.').waitFor();
  let now = await card('shared-one');
  assert.deepEqual([now.title, now.version, now.revision], ['The first', '2.0', revision + 2]);
  await field(three, 'Title').fill('The third');
  await button(three, 'Save').click();
  await three.getByText(/Both of you changed title/).waitFor();
  await button(three, 'Discard my changes').click();
  await eventually(async () => (await field(three, 'Title').inputValue()) === 'The first', 'their title in the form');
  now = await card('shared-one');
  assert.equal(now.revision, revision + 2);
});

test('the form looks as it should', () => looks('#/agents?register=1', 'agent-register', async (page) => {
  await button(page, 'Add a skill').click();
  await page.getByRole('group', { name: 'Skill 1' }).waitFor();
}));

// What would it win?

const outcome = (page, text) => page.getByRole('row').filter({ hasText: text }).first();

test('its examples, what was asked last and what is typed: who wins, and by how much', async () => {
  await server.ask('POST', '/api/messages', { text: 'draft a headline for the newsletter' });
  await looks('#/agents/engineer/wins', 'agent-wins', async (page) => {
    await page.getByRole('heading', { name: 'Its examples: wins 6 of 6' }).waitFor();
    await outcome(page, 'why is my query slow').getByText(/^0\.\d{3} ahead of/).waitFor();
    await outcome(page, 'draft a headline').getByText('loses').waitFor();
    await outcome(page, 'draft a headline').getByText(/behind content-writer/).waitFor();
  });
  const before = (await server.ask('GET', '/api/tasks')).items.length;
  const page = await server.newPage({ at: '#/agents/engineer/wins' });
  await field(page, 'Messages, one per line')
    .fill('fix the crash in my parser\nremind me tomorrow at nine\n\nfix the crash in my parser');
  await button(page, 'Test').click();
  await page.getByRole('heading', { name: 'Your texts: wins 1 of 2' }).waitFor();
  await outcome(page, 'remind me tomorrow').getByText('automation-operator').first().waitFor();
  assert.equal((await server.ask('GET', '/api/tasks')).items.length, before); // none was sent
});

test('only what was asked of nobody in particular counts, and whole', async () => {
  const own = await stage({ agents: [{ id: 'smith', url: 'echo:', description: 'Forges iron gates',
    skills: [{ id: 'forge', name: 'Forging', examples: ['forge an iron gate'] }] }, { id: 'Jay', url: 'echo:' }] });
  const say = (text, more) => own.ask('POST', '/api/messages', { text, ...more });
  // A decision keeps 1024 bytes of it.
  const of = (bytes) => `forge me an iron gate of ${bytes} bytes `.padEnd(bytes, 'and an iron gate ')
    .slice(0, bytes - 1).trimEnd().padEnd(bytes, '.');
  const whole = [of(1020), of(1024), of(1025), of(1500)];
  for (const text of whole) await say(text);
  await say('forge me a named gate', { executor: { name: 'smith' } });
  await say('/smith forge me a prefixed gate');
  await own.ask('POST', '/api/envelopes', { from: 'Jay', to: 'smith', type: 'REQUEST', priority: 'NORMAL',
    reference: 'R-1', payload: {}, context: 'Please forge' });
  const page = await own.newPage();
  const judged = [];
  page.on('request', (r) => r.url().endsWith('/api/route') && judged.push(r.postDataJSON().text));
  await page.goto(`${own.url}/#/agents/smith/wins`);
  await page.getByRole('heading', { name: 'Recent messages: wins 4 of 4' }).waitFor();
  assert.deepEqual(judged.filter((t) => t !== 'forge an iron gate').sort(), whole.sort());
});

test('a few at a time and a bounded number, and more are not taken', async () => {
  const page = await server.newPage({ at: '#/agents/engineer/wins' });
  let open = 0, most = 0, n = 0;
  const isTrial = (r) => r.url().endsWith('/api/route');
  page.on('request', (r) => { if (isTrial(r)) { n++; most = Math.max(most, ++open); } });
  page.on('requestfinished', (r) => { if (isTrial(r)) open--; });
  await page.getByRole('heading', { name: /^Its examples: wins 6 of 6/ }).waitFor();
  await field(page, 'Messages, one per line')
    .fill(Array.from({ length: 30 }, (_, i) => `text number ${i}`).join('\n'));
  await button(page, 'Test').click();
  await page.getByRole('heading', { name: /^Your texts: wins \d+ of 20/ }).waitFor();
  assert.ok(most <= 3, `${most} at once`);
  await field(page, 'Messages, one per line').fill('one more');
  await button(page, 'Test').click();
  await page.getByText('at most 20 of your texts').waitFor();
  assert.ok(n <= 24 + 20 + 20, `${n} in all`);
});

test('an admin is told that a user’s agent looks otherwise to its user', async () => {
  const token = await server.user('carla');
  await register({ name: 'carlas', visibility: 'public', skills: [{ id: 's', name: 'S',
    examples: ['knit me a scarf'] }] }, { token });
  const admin = await server.newPage({ at: '#/agents/carlas/wins' });
  await admin.getByText('You are testing as an admin').waitFor();
  const own = await server.newPage({ token, at: '#/agents/carlas/wins' });
  await own.getByRole('heading', { name: /^Its examples: wins 1 of 1/ }).waitFor();
  assert.equal(await own.getByText('You are testing as an admin').count(), 0);
});

test('where nobody is good enough, that is said, and how far it was', async () => {
  const own = await stage({ agents: [{ id: 'smith', url: 'echo:', description: 'Forges iron gates',
    skills: [{ id: 'forge', name: 'Forging', description: 'Iron gates and fences', examples: ['forge a gate'] }] }],
    args: ['--set', 'routing.threshold=0.3'] });
  const page = await own.newPage({ at: '#/agents/smith/wins' });
  allow(page, /422/);
  await page.getByRole('heading', { name: 'Its examples: wins 1 of 1' }).waitFor();
  await field(page, 'Messages, one per line').fill('zzz qqq');
  await button(page, 'Test').click();
  const row = outcome(page, 'zzz qqq');
  await row.getByText('no good match').waitFor();
  await row.getByRole('img', { name: /^score: 0\./ }).waitFor();
});

// One's own.

const codeOf = async (page, language) => {
  await page.getByRole('tab', { name: language, exact: true }).click();
  return page.locator('.code pre').textContent();
};

async function run(own, command, args, env) {
  const child = spawn(command, args, { cwd: ROOT, env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'] });
  const end = new Promise((resolve) => { child.on('exit', resolve); });
  await new Promise((resolve) => { child.stdout.once('data', resolve); });
  const said = await own.ask('POST', '/api/messages', { text: 'polly', executor: { name: 'parrot' } });
  assert.equal(said.text, 'polly');
  child.kill();
  await end;
  await own.ask('DELETE', '/api/agents/parrot');
}

test('where nobody is, the page says how to connect one, and its lines work', async () => {
  const own = await stage();
  const page = await own.newPage({ at: '#/agents' });
  await page.getByText('No agents yet').waitFor();
  await button(page, 'Create a token').click();
  const told = await page.getByText(/^export SIGNALBOX_URL=/).textContent();
  const [, url, token] = /SIGNALBOX_URL=(\S+) SIGNALBOX_TOKEN=(sbx_\S+)$/.exec(told);
  assert.equal(url, own.url);
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.locator('.command').filter({ hasText: told }).getByRole('button').click();
  await page.getByText('Copied').waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), told);
  assert.deepEqual((await own.ask('GET', '/api/me', undefined, { token })).scopes, ['send', 'read', 'agents']);
  await shot(page, 'agents-empty', { whole: true });
  await axe(page);
  // The lines are those of the file that the command runs. That of C is built and run with the C client's tests.
  const env = { SIGNALBOX_URL: url, SIGNALBOX_TOKEN: token,
    PATH: `${path.dirname(process.execPath)}:${process.env.PATH}` };
  for (const [language, file] of [['JavaScript', 'echo.js'], ['Python', 'echo.py'], ['C', 'echo.c']]) {
    const code = await codeOf(page, language);
    const example = fs.readFileSync(path.join(ROOT, 'examples', file), 'utf8').replace("'../client/js/signalbox.js'",
      "'signalbox'");
    assert.ok(example.endsWith(code), file);
    const command = await page.locator('.steps li').last().locator('.command code').first().textContent();
    if (language === 'C') break;
    await run(own, 'sh', ['-c', `exec env ${command}`], env);
    await page.getByText('An agent was just registered').waitFor();
    assert.equal(await page.getByText(told).count(), 1); // the token is told until they leave
  }
});

test('where nobody is and one may not register any, no token is offered', async () => {
  const own = await stage();
  const { token } = await own.ask('POST', '/api/tokens', { label: 'reads', scopes: ['read'] });
  const page = await own.newPage({ token, at: '#/agents' });
  await page.getByText('Registering agents needs a token').waitFor();
  assert.equal(await button(page, 'Create a token').count(), 0);
});

test('the same is a dialog where there are agents, and Escape closes it', async () => {
  const page = await server.newPage({ at: '#/agents', width: 360, height: 740 });
  await button(page, 'Connect your own agent').click();
  await page.getByRole('dialog', { name: 'Connect your own agent' }).waitFor();
  await shot(page, 'agent-connect-phone');
  await axe(page);
  await page.keyboard.press('Escape');
  await eventually(async () => (await page.getByRole('dialog').count()) === 0, 'the dialog is closed');
});
