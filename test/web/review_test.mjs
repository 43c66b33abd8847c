// Review: a user's card waits for an admin, who approves, rejects or hides it;
// what others see meanwhile; what they report; and that no one's words do more
// than be read.
import assert from 'node:assert/strict';
import { allow, axe, eventually, shot, stage, test } from './stage.mjs';
import { STRINGS, seen } from './hostile_strings.mjs';
import { webFolder } from './em.mjs';

const server = await stage({ agents: { registry: { review: true }, rate: { perUser: 100000, perAddress: 100000 } },
  args: webFolder() });
const anna = await server.user('anna', { org: 'acme' });
const otto = await server.user('otto', { org: 'other' });
const button = (page, name) => page.getByRole('button', { name, exact: true });
const field = (page, label) => page.getByLabel(label, { exact: true });
const region = (page, name) => page.getByRole('region', { name });
const dialog = (page) => page.getByRole('dialog');
const row = (page, name) => page.getByRole('table', { name: 'Agents, by name' }).locator('.row')
  .filter({ hasText: name });
const read = (name, token) => server.ask('GET', `/api/agents/${name}`, undefined, { token });
const act = (name, what, body) => server.ask('POST', `/api/agents/${name}/${what}`, body);
const change = (name, fields) => server.ask('PATCH', `/api/agents/${name}`, fields, { token: anna });
const report = (name, reason) => server.ask('POST', `/api/agents/${name}/report`, { reason }, { token: otto });
const SKILLS = [{ id: 'ode', name: 'Odes', description: 'Writes odes', pricing: { amount_micros: 5000 } },
  { id: 'haiku', name: 'Haiku', description: 'Writes haiku' }];

const submit = (name, fields = {}) => server.ask('POST', '/api/agents', { name, url: 'echo:', visibility: 'public',
  description: 'Writes poems', skills: SKILLS, ...fields }, { token: anna });

async function approved(name, fields) {
  const { revision } = await submit(name, fields);
  return act(name, 'approve', { revision });
}

// By day, by night and on a phone.
async function looks(at, name, check, wishes) {
  for (const [theme, width, height] of [['light', 1280, 800], ['dark', 1280, 800], ['light', 360, 740]]) {
    const page = await server.newPage({ at, theme, width, height, ...wishes });
    await check(page);
    await axe(page, { contrast: true });
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(over <= 0, `${name} is wider than ${width}`);
    await shot(page, `${name}-${width < 500 ? 'phone' : theme}`, { whole: true });
    await page.context().close();
  }
}

test('a card that is registered waits, an admin is told and approves it, and others see it', async () => {
  const admin = await server.newPage({ at: '#/agents' });
  await admin.getByText('No agents yet').waitFor();
  const hers = await server.newPage({ at: '#/agents?register=1', token: anna });
  await field(hers, 'Name').first().fill('poet');
  await field(hers, 'Description').first().fill('Writes poems');
  await field(hers, 'Address').fill('echo:');
  await field(hers, 'Visibility').selectOption('public');
  await button(hers, 'Register').click();
  await hers.getByText('poet was registered. An admin has to approve it before others see it.').waitFor();
  await region(hers, 'Waiting for review').getByText('only you and admins see it').waitFor();
  assert.equal(await button(hers, 'Approve').count(), 0);
  assert.equal(await button(hers, 'Report…').count(), 0);

  await admin.getByRole('link', { name: '1 card waits for review' }).click();
  await row(admin, 'poet').getByText('in review').waitFor();
  await eventually(async () => await field(admin, 'Review').inputValue() === 'waiting', 'the filter is set');
  await row(admin, 'poet').getByRole('link').click();
  const box = region(admin, 'Waiting for review');
  await box.getByText('only its creator and admins see it').waitFor();
  await box.getByText('everyone sees the whole card below').waitFor();
  assert.deepEqual(await box.locator('.changes dd').allInnerTexts(), ['private', 'public']);
  await button(box, 'Approve').click();
  await admin.getByText('poet was approved.').waitFor();
  await box.waitFor({ state: 'detached' });
  await region(hers, 'Waiting for review').waitFor({ state: 'detached' });
  assert.equal((await read('poet', otto)).visibility, 'public');
  await admin.goBack();
  await admin.getByText('No agent matches this filter').waitFor();
  assert.equal(await admin.getByText('waits for review').count(), 0);
});

test('a change is made of the card that waits, and an admin sees part by part what differs', async () => {
  await approved('smith', { skills: SKILLS });
  const hers = await server.newPage({ at: '#/agents/smith/edit', token: anna });
  await field(hers, 'Description').first().fill('Forges verses');
  await field(hers.getByRole('group', { name: 'Skill 1' }), 'Price per call').fill('5');
  await button(hers, 'Save').click();
  await hers.getByText('Saved. An admin has to approve it before others see the change.').waitFor();
  const box = region(hers, 'Waiting for review');
  await box.getByText('Others still see the approved card.').waitFor();
  const texts = (where) => box.locator(where).allInnerTexts();
  assert.deepEqual(await texts('.changes h4'), ['description', 'skills › ode › pricing › amount_micros']);
  assert.deepEqual(await texts('.changes dd'), ['Writes poems', 'Forges verses', '0.005', '5.00']);

  await button(hers, 'Edit').click();
  await hers.getByText('your card that waits for review').waitFor();
  assert.equal(await field(hers, 'Description').first().inputValue(), 'Forges verses');
  await field(hers, 'Title').fill('The smith');
  await button(hers, 'Save').click();
  await hers.getByText('Saved. An admin has to approve it').first().waitFor();
  const { review } = await read('smith', anna);
  assert.deepEqual(review.changed, ['title', 'description', 'skills']);

  const his = await server.newPage({ at: '#/agents/smith', token: otto });
  await his.getByText('Writes poems').first().waitFor();
  assert.equal(await his.getByText('Forges verses').count(), 0);
  assert.equal(await his.getByText(/review/i).count(), 0);
  assert.equal(await button(his, 'Edit').count(), 0);

  // An admin changes the card that serves, and what waits goes on waiting.
  const admin = await server.newPage({ at: '#/agents/smith/edit' });
  await admin.getByText('This is the active card').waitFor();
  assert.equal(await field(admin, 'Description').first().inputValue(), 'Writes poems');
  await field(admin, 'Version').fill('2');
  await button(admin, 'Save').click();
  await admin.getByText('smith was changed.').waitFor();
  const now = await read('smith', anna);
  assert.deepEqual([now.version, now.description, now.review.card.description], ['2', 'Writes poems', 'Forges verses']);
});

test('who edits while an admin approves goes on from what is there now', async () => {
  await approved('baker');
  await change('baker', { title: 'Before' });
  const hers = await server.newPage({ at: '#/agents/baker/edit', token: anna });
  allow(hers, /412/);
  await eventually(async () => (await field(hers, 'Title').inputValue()) === 'Before', 'the card that waits');
  await field(hers, 'Version').fill('3');
  await change('baker', { title: 'After' });
  await button(hers, 'Save').click();
  await hers.getByText(/They changed title; you changed version/).waitFor();
  await button(hers, 'Apply my changes to theirs').click();
  await hers.getByText('Saved. An admin has to approve it').waitFor();
  const { review: { card } } = await read('baker', anna);
  assert.deepEqual([card.title, card.version], ['After', '3']);
});

test('an admin approves what they have read: a card that has changed meanwhile is shown again', async () => {
  await submit('swap', { description: 'Good' });
  const admin = await server.newPage({ at: '#/agents/swap' });
  allow(admin, /412/);
  const box = region(admin, 'Waiting for review');
  await button(box, 'Approve').waitFor();
  // The change comes between the click and the server.
  await admin.route('**/api/agents/swap/approve', async (route) => {
    await change('swap', { description: 'Evil' });
    await route.continue();
  }, { times: 1 });
  await button(box, 'Approve').click();
  await admin.getByText('swap has changed in the meantime and was not approved. Read it again.').waitFor();
  await box.getByRole('alert').getByText('has changed since you opened this page').waitFor();
  await admin.getByText('Evil').first().waitFor();
  assert.equal(await button(box, 'Approve').isDisabled(), true);
  await shot(admin, 'review-changed', { whole: true });
  await button(box, 'I have read it').click();
  await button(box, 'Approve').click();
  await admin.getByText('swap was approved.').waitFor();
  assert.equal((await read('swap', otto)).description, 'Evil');
  await box.waitFor({ state: 'detached' });

  // The same where the page has heard of it before the click.
  await change('swap', { description: 'Worse' });
  await box.getByText('Worse').waitFor();
  await change('swap', { description: 'The worst' });
  await box.getByRole('alert').waitFor();
  assert.equal(await button(box, 'Approve').isDisabled(), true);
});

test('a rejection says who and why; the card changed goes in again', async () => {
  await approved('boast', { description: 'Does a thing' });
  await change('boast', { description: 'Does everything' });
  const hers = await server.newPage({ at: '#/agents/boast', token: anna });
  await region(hers, 'Waiting for review').waitFor();
  const admin = await server.newPage({ at: '#/agents/boast' });
  await button(admin, 'Reject…').click();
  await dialog(admin).getByRole('heading', { name: 'Reject the card of boast?' }).waitFor();
  await axe(admin);
  await shot(admin, 'review-reject');
  await field(admin, 'Reason').fill('é'.repeat(501));
  await dialog(admin).getByText('At most 1000 bytes; this is 2 bytes too long.').waitFor();
  await button(admin, 'Reject it').click();
  await dialog(admin).getByText('too long by 2 bytes').waitFor();
  await field(admin, 'Reason').fill('Nothing does.\nNobody either.');
  await button(admin, 'Reject it').click();
  await admin.getByText('boast was rejected.').waitFor();
  const box = region(hers, 'Rejected');
  await box.getByText(/^Rejected by admin, .*: Nothing does\.\s+Nobody either\.$/).waitFor();
  await box.getByText('Others still see the approved card. Change the card to submit it again.').waitFor();
  await region(admin, 'Rejected').getByText('once its creator changes it').waitFor();
  assert.equal(await button(admin, 'Reject…').count(), 0);
  await button(hers, 'Edit').click();
  await hers.getByText(/your card that was rejected.* Reason: Nothing does/s).waitFor();
  assert.equal(await field(hers, 'Description').first().inputValue(), 'Does everything');
  await button(hers, 'Save').click();
  await hers.getByText('Nothing was changed.').waitFor();
  await button(hers, 'Edit').click();
  await field(hers, 'Description').first().fill('Does two things');
  await button(hers, 'Save').click();
  await region(hers, 'Waiting for review').waitFor();
});

test('an agent that is hidden is gone for others, and stays so until an admin approves it', async () => {
  await approved('spam', { description: 'Sells pills' });
  const admin = await server.newPage({ at: '#/agents/spam' });
  await button(admin, 'Hide…').click();
  await field(admin, 'Reason').fill('Spam');
  await admin.keyboard.press('Escape');
  await dialog(admin).waitFor({ state: 'detached' });
  await button(admin, 'Hide…').click();
  assert.equal(await field(admin, 'Reason').inputValue(), '');
  await field(admin, 'Reason').fill('Spam');
  await shot(admin, 'review-hide');
  await button(admin, 'Hide it').click();
  await region(admin, 'Hidden').getByText('Only its creator and admins see it').waitFor();
  assert.equal(await button(admin, 'Hide…').count(), 0);
  assert.equal((await server.api('GET', '/api/agents/spam', undefined, { token: otto })).status, 404);
  const hers = await server.newPage({ at: '#/agents/spam', token: anna });
  await region(hers, 'Hidden').getByText(/^Hidden by admin, .*: Spam$/).waitFor();
  await region(hers, 'Hidden').getByText('Only you and admins see it').waitFor();
  await button(hers, 'Edit').click();
  await hers.getByText(/This agent is hidden, .* Reason: Spam/s).waitFor();
  assert.equal(await field(hers, 'Visibility').inputValue(), 'public');
  await field(hers, 'Description').first().fill('Sells nothing');
  await button(hers, 'Save').click();
  await hers.getByText('Saved. It stays hidden until an admin approves it.').waitFor();
  await region(admin, 'Hidden').getByRole('alert').waitFor();
  await button(admin, 'I have read it').click();
  await button(admin, 'Approve').click();
  await admin.getByText('spam was approved.').waitFor();
  assert.equal((await read('spam', otto)).description, 'Sells nothing');
});

test('users report, admins read and dismiss', async () => {
  await approved('liar', { description: 'Lies' });
  const his = await server.newPage({ at: '#/agents/liar', token: otto });
  await button(his, 'Report…').click();
  await axe(his);
  await shot(his, 'review-report');
  await field(his, 'What is wrong with it?').fill('   ');
  await button(his, 'Send report').click();
  await dialog(his).getByText('Describe briefly what is wrong.').waitFor();
  await field(his, 'What is wrong with it?').fill('It lies.');
  await button(his, 'Send report').click();
  await his.getByText('Your report about liar was sent to the admins.').waitFor();
  await dialog(his).waitFor({ state: 'detached' });
  assert.equal(await his.getByText('1 report').count(), 0);

  const list = await server.newPage({ at: '#/agents' });
  await list.getByRole('link', { name: '1 agent is reported' }).click();
  await row(list, 'liar').getByText('1 report').waitFor();
  const admin = await server.newPage({ at: '#/agents/liar' });
  const box = region(admin, /^\d+ reports?$/);
  await box.getByText('It lies.').waitFor();
  await box.getByText('otto').waitFor();
  assert.equal(await button(admin, 'Report…').count(), 0);
  await report('liar', 'It lies again.');
  await admin.reload(); // a report that is replaced has no feed entry
  await box.getByText('It lies again.').waitFor();
  await button(box, 'Dismiss').click();
  await button(admin, 'Dismiss them').click();
  await admin.getByText('The reports of liar were dismissed.').waitFor();
  await box.waitFor({ state: 'detached' });
  await list.getByText('No agent matches this filter').waitFor();
  await list.getByRole('link', { name: '1 agent is reported' }).waitFor({ state: 'detached' });
  const hers = await server.newPage({ at: '#/agents/liar', token: anna });
  await button(hers, 'Edit').waitFor();
  assert.equal(await button(hers, 'Report…').count(), 0);
});

test('only who may is offered it', async () => {
  await approved('closed');
  await change('closed', { title: 'Other' });
  const label = (scopes, user) => server.ask('POST', '/api/tokens', { user, label: 'reads', scopes });
  const his = await server.newPage({ at: '#/agents/closed', token: (await label(['read'], 'otto')).token });
  await his.getByRole('heading', { name: 'Details' }).waitFor();
  for (const name of ['Report…', 'Hide…', 'Approve']) assert.equal(await button(his, name).count(), 0, name);
  // Reports are an admin's: for others there is no such filter, also in the address.
  await his.goto(`${server.url}/#/agents?review=reported`);
  await row(his, 'closed').waitFor();
  assert.deepEqual(await field(his, 'Review').locator('option').allTextContents(),
    ['any', 'waiting for review', 'rejected', 'hidden']);
  assert.equal(await row(his, 'closed').getByText('in review').count(), 0);
  // A word that there is not is none.
  await his.goto(`${server.url}/#/agents?review=${encodeURIComponent('"><b>')}`);
  await row(his, 'closed').waitFor();
});

test('the list tells each state apart, and filters by it', async () => {
  await approved('one-hidden');
  await act('one-hidden', 'hide', {});
  await submit('one-rejected');
  await act('one-rejected', 'reject', {});
  await submit('one-waiting', { title: 'One with a title that is as long as a line in a list may be, and longer' });
  await approved('one-reported');
  await report('one-reported', 'Bad');
  await change('one-reported', { title: 'Another' }); // both at once
  await looks('#/agents?q=one-', 'review-agents', async (page) => {
    for (const [name, words] of [['one-hidden', 'hidden'], ['one-rejected', 'rejected'], ['one-waiting', 'in review'],
      ['one-reported', '1 report']])
      await row(page, name).getByText(words, { exact: true }).waitFor();
    for (const name of await page.locator('.agent-cell > .name').all())
      assert.ok((await name.boundingBox()).width > 60, 'a name can be read beside its signs');
    await page.getByRole('link', { name: /^\d+ cards wait for review$/ }).waitFor();
    await page.getByRole('link', { name: '1 agent is reported' }).waitFor();
  });
  const page = await server.newPage({ at: '#/agents?q=one-', token: anna });
  for (const [option, name] of [['waiting for review', 'one-reported,one-waiting'], ['rejected', 'one-rejected'],
    ['hidden', 'one-hidden']]) {
    await field(page, 'Review').selectOption(option);
    await eventually(async () => (await page.locator('.row .name').allTextContents()).join() === name, option);
  }
  assert.equal(await page.getByText('for review', { exact: false }).and(page.getByRole('link')).count(), 0);
});

test('the box looks as it should, with much that differs', async () => {
  const long = 'A sentence that goes on and on. '.repeat(60).trim();
  await approved('changeable', { title: 'As it was', metadata: { team: 'kitchen' } });
  await change('changeable', { title: 'As it is to be, with a few words more', description: long,
    url: `https://example.com/${'a-long-path/'.repeat(20)}`, authentication: { schemes: ['bearer'], credentials: 'k' },
    metadata: { team: 'cellar', [`a key of ${'many '.repeat(20)}`]: { in: ['a', 1, null] } },
    skills: [{ ...SKILLS[0], pricing: { amount_micros: 1500000 }, tags: ['verse', 'praise'] },
      { id: 'limerick', name: 'Limericks', description: 'Five lines',
        examples: Array.from({ length: 12 }, (_, i) => `a limerick number ${i}`) }] });
  await report('changeable', 'It promises much.\nIt holds little.');
  await looks('#/agents/changeable', 'review-box', async (page) => {
    const box = region(page, 'Waiting for review');
    await box.getByText('cellar').waitFor();
    await region(page, '1 report').getByText('It holds little.').waitFor();
    await button(box, `show all ${long.length.toLocaleString('en')} characters`).waitFor();
    await button(box, 'show all 12 lines').waitFor();
  });
  const page = await server.newPage({ at: '#/agents/changeable' });
  const box = region(page, 'Waiting for review');
  await button(box, 'show all 12 lines').click();
  await box.getByText('a limerick number 11').waitFor();
  await button(box, `show all ${long.length.toLocaleString('en')} characters`).click();
  await box.getByText(long).waitFor();
  assert.ok((await box.locator('.changes h4').allInnerTexts()).includes('skills › haiku › name'));
  // With the keyboard alone.
  await button(box, 'Approve').focus();
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await dialog(page).waitFor();
  await page.keyboard.press('Escape');
  await dialog(page).waitFor({ state: 'detached' });
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Reject…');
});

test('a credential that differs and many changes are said, not shown', async () => {
  await approved('keeper', { authentication: { schemes: ['bearer'], credentials: 'first-secret' } });
  await change('keeper', { authentication: { schemes: ['bearer'], credentials: 'second-secret' },
    metadata: Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`key-${i}`, i])) });
  const page = await server.newPage({ at: '#/agents/keeper' });
  const box = region(page, 'Waiting for review');
  await box.getByText('Changed, but not shown').waitFor();
  assert.doesNotMatch(await page.locator('main').innerText(), /(first|second)-secret/);
  assert.equal(await box.getByText('key-59').count(), 0);
  await button(box, 'show all 61 changes').click();
  await box.getByText('key-59').waitFor();
});

test('hostile words in a reason, a report and a card are only read', async () => {
  // A card has nothing that cannot be seen; a reason may have it.
  const bad = STRINGS.filter((text) => !/[\p{Cc}\p{Cf}]/u.test(text));
  const hidden = STRINGS.filter((text) => /\p{Cf}/u.test(text) && !/\p{Cc}/u.test(text));
  const flat = (text) => text.replace(/\s+/gu, ' ').trim();
  await approved('evil', { description: 'Is good' });
  await change('evil', { description: bad.join('\n'), metadata: Object.fromEntries([['__proto__', 1],
    ['constructor', 2], ['toString', { a: 1 }], ...bad.slice(0, 20).map((text) => [text, text])]),
  skills: [{ id: 'constructor', name: bad[0], description: bad[2] }] });
  const some = bad.slice(0, 12);
  const page = await server.newPage({ at: '#/agents/evil' });
  const hers = await server.newPage({ at: '#/agents/evil', token: anna });
  const feed = await server.newPage({ at: '#/feed' });
  const shows = async (where, texts) => {
    const wanted = texts.map((text) => flat(seen(text)));
    await eventually(async () => {
      const text = flat(await where.textContent());
      return wanted.every((one) => text.includes(one));
    }, 'all are shown');
  };
  const box = region(page, 'Waiting for review');
  await box.getByRole('button', { name: /^show all .* characters$/ }).first().click();
  await shows(box, bad);
  assert.ok((await box.locator('.changes h4').allInnerTexts()).includes('skills › constructor › name'));
  await report('evil', some.slice(0, 4).join('\n'));
  await shows(region(page, '1 report'), some.slice(0, 4));
  await act('evil', 'reject', { reason: [...some.slice(4, 9), ...hidden].join('\n') });
  await shows(region(hers, 'Rejected'), [...some.slice(4, 9), ...hidden]);
  await hers.goto(`${server.url}/#/agents/evil/edit`);
  await shows(hers.locator('main .note'), some.slice(4, 6));
  await act('evil', 'hide', { reason: some[9] });
  await shows(region(page, 'Hidden'), [some[9]]);
  await shows(feed.locator('main'), [some[9], some[0].slice(0, 40)]);
  for (const one of [page, hers, feed])
    assert.deepEqual(await one.evaluate(() => [window.__pwned, document.querySelectorAll('main img, main script, '
      + 'main iframe').length]), [undefined, 0]);
});

test('the feed says in words what became of a card', async () => {
  const page = await server.newPage({ at: '#/feed' });
  await approved('told');
  await change('told', { title: 'Told' });
  await act('told', 'reject', { reason: 'Too short' });
  await report('told', 'Boring');
  await server.ask('DELETE', '/api/agents/told/reports');
  await act('told', 'hide', {});
  for (const [type, words] of [['agent.submitted', 'waits for review · proposed: visibility'],
    ['agent.approved', 'its card was approved · by admin'],
    ['agent.rejected', 'its card was rejected · Too short · by admin'],
    ['agent.reported', 'a user reported it · Boring'],
    ['agent.reports_dismissed', 'its reports were dismissed · by admin'],
    ['agent.hidden', 'only its creator and admins see it now · by admin']])
    await page.locator('.row').filter({ hasText: 'told' }).filter({ hasText: type }).filter({ hasText: words })
      .first().waitFor();
  await shot(page, 'review-feed');
});
