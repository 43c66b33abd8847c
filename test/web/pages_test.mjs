// Every page, with something on it, by day, by night and on a phone: what it
// looks like is kept in build/screens for people to see (`make screens` puts
// those of the README into docs/screens); axe finds nothing serious, and
// nothing needs scrolling sideways.
import assert from 'node:assert/strict';
import { em } from './em.mjs';
import { axe, eventually, shot, stage, test } from './stage.mjs';

const LOOKS = [
  { look: 'light', theme: 'light' },
  { look: 'dark', theme: 'dark' },
  { look: 'phone', theme: 'light', width: 360, height: 740 },
];

const demo = await stage({ agents: 'demo', args: ['--set', 'learning.followUpMs=0'] });
const office = await em();

// A morning's messages: some of each kind, one that was corrected, one that
// was delegated on, a few that fit nobody.
const ASKED = ['why is my query slow?', 'this test fails only on Mondays', 'review my pull request', 'fix the memory leak in the parser',
  'draft a blog post about our new office', 'write an announcement for the release', 'edit this paragraph', 'draft a newsletter',
  'what do we know about solid state batteries', 'compare PostgreSQL and SQLite', 'sum up the paper on retrieval',
  'remind me tomorrow at nine to call the plumber', 'schedule a backup every night', 'connect the calendar to the chat', 'zebra crossing sandwich', 'lorem ipsum'];
const decisions = [];
for (const text of ASKED)
  decisions.push((await demo.ask('POST', '/api/messages', { text })).decision);
await demo.ask('POST', `/api/decisions/${decisions[14].id}/override`, { agent: 'automation-operator' });
await demo.ask('POST', `/api/decisions/${decisions[0].id}/feedback`, { verdict: 'right' });
const delegated = await demo.ask('POST', '/api/messages', { text: 'draft a blog post about office trends, with facts' });
await demo.ask('POST', '/api/ledger/topup', { user: 'admin', amount_micros: 25000000, note: 'a start' });
await demo.ask('POST', '/api/learning/run', {});

const held = await office.envelope('1-too-early');
const open = await office.envelope('5-not-sure');
assert.equal(held.routing_decision, 'HOLD_PENDING_INPUT');
assert.equal(open.routing_decision, 'ESCALATE_TO_HUMAN');

// name: [server, address, what is there once it is drawn]
const PAGES = {
  playground: [demo, '#/playground', async (page) => {
    await page.getByLabel('Message', { exact: true }).fill('draft a blog post about office trends, with facts');
    await page.getByText('would go to').waitFor();
  }],
  feed: [demo, '#/feed', 'task.completed'],
  agents: [demo, '#/agents', 'automation-operator'],
  agent: [demo, '#/agents/engineer', 'Review code'],
  decisions: [demo, '#/decisions', 'lorem ipsum'],
  decision: [demo, `#/decisions/${decisions[4].id}`, 'What it was made from'],
  delegations: [demo, '#/delegations', 'content-writer'],
  delegation: [demo, `#/delegations/${delegated.task_id}`, 'Who waited for whom'],
  task: [demo, `#/tasks/${delegated.task_id}`, 'The answer'],
  analytics: [demo, '#/analytics', 'mean confidence'],
  threshold: [demo, '#/analytics?tab=threshold', 'Threshold'],
  types: [demo, '#/analytics?tab=types', 'Gaps'],
  ledger: [demo, '#/ledger', 'a start'],
  settings: [demo, '#/settings', 'admin'],
  configuration: [demo, '#/settings/configuration', 'allowPlaintext'],
  holds: [office, '#/holds', 'Leroy'],
  hold: [office, `#/holds/${held.task_id}`, 'What it depends on'],
  escalation: [office, `#/escalations/${open.escalation_id}`, 'Approve'],
};

async function drawn(page, what) {
  if (typeof what === 'function')
    return what(page);
  const seen = page.locator('main').getByText(what).first();
  return eventually(async () => await seen.count() > 0 && !await page.locator('main .loading').count(), `“${what}” is on ${page.url()}`);
}

for (const { look, ...wishes } of LOOKS) {
  test(`every page: ${look}`, async () => {
    const pages = new Map();
    for (const [name, [server, at, what]] of Object.entries(PAGES)) {
      if (!pages.has(server))
        pages.set(server, await server.newPage(wishes));
      const page = pages.get(server);
      await page.goto(`${server.url}/${at}`);
      await drawn(page, what);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert.ok(wide <= 0, `${name} is ${wide} px too wide`);
      await shot(page, `${name}-${look}`);
      if (look !== 'phone')
        await axe(page);
    }
  });
}

test('the playground with an answer, for the README', async () => {
  const page = await demo.newPage({ height: 860 });
  await page.getByLabel('Message', { exact: true }).fill('draft a blog post about office trends, with facts');
  await page.getByRole('button', { name: 'Send' }).click();
  await page.getByText('completed').first().waitFor();
  await page.getByText('researcher, asked by content-writer').waitFor();
  await shot(page, 'playground-sent');
});
