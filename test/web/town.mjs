// A server on which something has happened: the demo's four agents and those of
// examples/em, people who wrote to them, corrected them and paid, messages that
// wait and one that a person must see. And all the pages to look at it with.
import { eventually } from './stage.mjs';
import { em } from './em.mjs';

// From people, in an order that makes conversations.
const SAID = [
  ['anna', 'why is my query slow?'],
  ['anna', 'the test for the importer fails only on Mondays'],
  ['ben', 'draft a blog post about office trends, with facts'],
  ['ben', 'remind me to send the invoices every Friday'],
  ['anna', 'compare three vendors of standing desks'],
  ['ben', 'write a parser for this log format'],
  ['anna', 'is this safe with threads?'],
  ['ben', 'what changed in the labour law this year?'],
  ['anna', 'rewrite this paragraph so that it is friendlier'],
  ['anna', 'deploy the new version to staging at six'],
  ['ben', 'summarise what people say about our new office'],
  ['anna', 'build me a Laravel model with a factory and migration'],
  ['ben', 'draft a newsletter about the summer party, with facts'],
  ['anna', '/researcher how do others name their releases?'],
  ['ben', 'book the large meeting room for Thursday'],
  ['anna', 'look over this pull request'],
];

// Every fourth goes on with what they had asked before.
export async function talk(server, people, round = 1) {
  const sent = [];
  const lately = {};
  for (const [i, [who, text]] of SAID.entries()) {
    if (i % 4 !== 3 || !lately[who])
      lately[who] = `${who}-${round}-${i}`;
    sent.push(await server.ask('POST', '/api/messages', { text, conversation_id: lately[who], wait_ms: 60_000 },
      { token: people[who] }));
  }
  return sent;
}

export const tokenOf = (people, i) => people[SAID[i][0]];

async function judge(server, people, sent) {
  const say = (i, how, body) => server.ask('POST', `/api/decisions/${sent[i].decision.id}/${how}`, body,
    { token: tokenOf(people, i) });
  await say(0, 'feedback', { verdict: 'right' });
  await say(5, 'feedback', { verdict: 'right', comment: 'just what I needed' });
  await say(7, 'feedback', { verdict: 'wrong', comment: 'that was no answer' });
  const wrong = sent[10].agent === 'researcher' ? 'content-writer' : 'researcher';
  await say(10, 'override', { agent: wrong, comment: 'it is about finding out' });
}

// Envelopes of examples/em: what goes, what waits, and what a person must see.
async function gate(server) {
  const about = (reference, more) => ({ reference, payload: { consultant_id: reference, end_client: 'Contoso',
    vendor: 'TrueBlue', ...more } });
  await server.envelope('2-request', about('SUBM-C001', { confidence_score: 8.2 }));
  await server.envelope('3-submission', about('SUBM-C001'));
  const held = await server.envelope('1-too-early', about('SUBM-C042'));
  await server.envelope('1-too-early', about('SUBM-C043'));
  const asked = await server.envelope('5-not-sure', about('SUBM-C007', { confidence_score: 4.1 }));
  const decided = await server.envelope('5-not-sure', about('SUBM-C008', { confidence_score: 3.9 }));
  await server.ask('POST', `/api/escalations/${decided.escalation_id}/reject`, { comment: 'too little is known' });
  return { held, asked };
}

async function pay(server) {
  for (const [i, [user, amount, note]] of [['anna', 25_000_000, 'invoice 4711'], ['ben', 10_500_000, 'invoice 4712'],
    ['anna', 5_000_000, 'invoice 4720']].entries())
    await server.ask('POST', '/api/ledger/topup', { user, amount_micros: amount, note, idempotency_key: `town-${i}` });
}

// pace: how long the demo's agents take, in percent.
export async function town({ pace = 0 } = {}) {
  const server = await em({ isDemo: true, pace });
  const people = { anna: await server.user('anna', { org: 'acme' }), ben: await server.user('ben', { org: 'acme' }) };
  await pay(server);
  const sent = await talk(server, people);
  await judge(server, people, sent);
  const { held, asked } = await gate(server);
  const { items } = await server.ask('GET', '/api/trees');
  await eventually(async () => (await server.ask('GET', '/api/holds')).items.length === 2, 'two wait');
  return Object.assign(server, { people, sent, held, asked, tree: items[0].root_task_id });
}

// Name, address, and what is there once the page is whole.
export const pagesOf = ({ sent, held, asked, tree }) => [
  ['playground', '#/playground', 'main textarea'],
  ['feed', '#/feed', 'main [role=row] >> nth=8'],
  ['agents', '#/agents', 'main [role=row] >> nth=8'],
  ['agent', '#/agents/engineer', 'main h2 >> nth=2'],
  ['agent-wins', '#/agents/engineer/wins', 'main h1'],
  ['agent-edit', '#/agents/Jay/edit', 'main form'],
  ['agent-register', '#/agents?register=1', 'main form'],
  ['decisions', '#/decisions', 'main [role=row] >> nth=8'],
  ['decision', `#/decisions/${sent[10].decision.id}`, 'main h2 >> nth=1'],
  ['task', `#/tasks/${sent[2].task_id}`, 'main h2 >> nth=1'],
  ['holds', '#/holds', 'main [role=row] >> nth=1'],
  ['hold', `#/holds/${held.task_id}`, 'main svg.graph'],
  ['to-decide', '#/holds?tab=decide', 'main [role=row] >> nth=1'],
  ['escalation', `#/escalations/${asked.escalation_id}`, 'main svg.graph'],
  ['delegations', '#/delegations', 'main [role=row] >> nth=1'],
  ['delegation', `#/delegations/${tree}`, 'main .timeline'],
  ['analytics', '#/analytics', 'main table tbody tr'],
  ['analytics-types', '#/analytics?tab=types', 'main h2'],
  ['analytics-signals', '#/analytics?tab=signals', 'main h2'],
  ['analytics-threshold', '#/analytics?tab=threshold', 'main h2'],
  ['analytics-gate', '#/analytics?tab=gate', 'main h2'],
  ['ledger', '#/ledger?user=anna', 'main table tbody tr, main [role=row] >> nth=1'],
  ['settings-tokens', '#/settings/tokens', 'main [role=row] >> nth=1'],
  ['settings-users', '#/settings/users', 'main [role=row] >> nth=1'],
  ['settings-grants', '#/settings/grants', 'main h1'],
  ['settings-channels', '#/settings/channels', 'main h1'],
  ['settings-configuration', '#/settings/configuration', 'main h2'],
  ['settings-about', '#/settings/about', 'main dl'],
];

// Go there, and wait until all of it has come.
export async function see(page, server, [, at, sign]) {
  await page.goto(`${server.url}/${at}`);
  await page.locator(sign).first().waitFor();
  await page.waitForFunction(() => !document.querySelector('main .loading'));
  await drawn(page);
}

export const drawn = (page) =>
  page.evaluate(() => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); }));
