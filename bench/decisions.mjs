// A million decisions: how long a page of the list takes, wherever it is and
// however rare what is looked for, and how long others wait meanwhile.
//
//     SIGNALBOX=build-bench/signalbox node bench/decisions.mjs [DECISIONS]
//
// Two real ones are made by the server and copied in its store as often as is
// asked for, one in ten with candidates, spread over thirty days.
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { serve } from '../test/web/server.mjs';

const PAGE_GOAL_MS = 100; // the median of its pages
const BESIDE_GOAL_MS = 50; // 99 of 100 calls
const DAYS_MS = 30 * 86400e3;
const AGENTS = [
  { id: 'engineer', url: 'echo:', visibility: 'public', description: 'Finds bugs in programs' },
  { id: 'writer', url: 'echo:', visibility: 'public', description: 'Writes letters' },
];
const RARE = 'quagga'; // is in the oldest alone

function fill(file, wanted) {
  const db = new DatabaseSync(file);
  const columns = db.prepare('SELECT name FROM pragma_table_info(\'decision\')').all().map((c) => c.name);
  const made = { seq: 'n', id: "'dec_' || printf('%026d', n)", at_ms: `d.at_ms - (${wanted} - n) * ${DAYS_MS} / ${wanted}`, text: `d.text || ' number ' || n || CASE n WHEN 3 THEN ' ${RARE}' ELSE '' END` };
  db.exec('PRAGMA synchronous = OFF');
  db.exec(`WITH RECURSIVE t(n) AS (SELECT 3 UNION ALL SELECT n + 1 FROM t WHERE n < ${wanted})
    INSERT INTO decision(${columns.join()}) SELECT ${columns.map((c) => made[c] ?? `d.${c}`).join()} FROM t JOIN decision d ON d.seq = CASE t.n % 10 WHEN 0 THEN 2 ELSE 1 END`);
  const { n } = db.prepare('SELECT count(*) AS n FROM decision').get();
  db.close();
  return n;
}

async function timed(server, params) {
  const began = performance.now();
  const { items, next_cursor: cursor } = await server.ask('GET', `/api/decisions?${new URLSearchParams(params)}`);
  return { ms: performance.now() - began, items, cursor };
}

// Page after page until so many were found, or all were looked through.
async function walk(server, params, enough) {
  const times = [];
  let found = 0, cursor;
  do {
    const page = await timed(server, { ...params, limit: 100, ...(cursor && { cursor }) });
    times.push(page.ms);
    found += page.items.length;
    cursor = page.cursor;
  } while (cursor && found < enough);
  return { found, times };
}

// How long the smallest call takes, again and again, until it is told to end.
function beside(server) {
  const waits = [];
  let isOver = false;
  const done = (async () => {
    while (!isOver) {
      const began = performance.now();
      await server.ask('GET', '/api/me');
      waits.push(performance.now() - began);
    }
  })();
  return async () => { isOver = true; await done; return waits; };
}

const at = (times, share) => [...times].sort((a, b) => a - b)[Math.min(times.length - 1, Math.floor(times.length * share))];

const wanted = Number(process.argv[2] ?? 1_000_000);
const server = await serve({ agents: { rate: { perUser: 0 }, agents: { list: AGENTS } } });
await server.ask('POST', '/api/messages', { text: 'find the bug', executor: { name: 'engineer' } });
await server.ask('POST', '/api/messages', { text: 'find the bug' });
await server.kill9();
const n = fill(path.join(server.folder, 'data', 'signalbox.db'), wanted);
await server.restart();
let isMissed = false;
console.log(`decisions: ${n.toLocaleString('en')} of them, pages of 100`);
for (const [name, params, enough] of [
  ['the newest 10 000', {}, 10_000], ['a word of all of them', { q: 'bug' }, 1000], ['an agent of all of them', { agent: 'engineer' }, 1000],
  ['decided by meaning, one in ten', { layer: 'semantic' }, 1000], ['a word of the oldest alone', { q: RARE }, 1], ['a word of none', { q: 'okapi' }, 1]]) {
  const end = beside(server);
  const { found, times } = await walk(server, params, enough);
  const waits = await end();
  const all = times.reduce((a, b) => a + b, 0);
  isMissed ||= at(times, 0.5) >= PAGE_GOAL_MS || at(waits, 0.99) >= BESIDE_GOAL_MS;
  console.log(`  ${name.padEnd(31)} ${String(found).padStart(6)} found, ${String(times.length).padStart(3)} pages in ${(all / 1000).toFixed(2)} s: ${at(times, 0.5).toFixed(1)} ms each, the longest ${at(times, 1).toFixed(0)} ms; others waited ${at(waits, 0.99).toFixed(1)} ms, at most ${at(waits, 1).toFixed(0)} ms`);
}
console.log(`  goal: half of the pages under ${PAGE_GOAL_MS} ms, 99 of 100 other calls under ${BESIDE_GOAL_MS} ms: ${isMissed ? 'MISSED' : 'reached'}`);
await server.stop();
process.exit(isMissed ? 1 : 0);
