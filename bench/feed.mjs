// The feed page while a thousand things happen a second: how many rows are in
// the document, and how long the page is ever busy in one piece, from the
// browser's own trace.
//
//     SIGNALBOX=build-bench/signalbox node bench/feed.mjs [EVENTS-A-SECOND [SECONDS]]
//
// The messages come from a process of their own (this file with `send`), so
// that what sends them and what draws them are not one.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import http from 'node:http';
import { launch, signIn } from '../test/web/browser.mjs';
import { serve } from '../test/web/server.mjs';

const ROWS_GOAL = 100;
const TASK_GOAL_MS = 200;
const EVENTS_PER_MESSAGE = 2; // accepted, completed

// Sends messages evenly for so long, whatever the answers take.
async function send(url, token, perSecond, seconds) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 64 });
  const body = JSON.stringify({ text: 'tick', executor: { name: 'echo' }, wait_ms: 0 });
  const one = () => new Promise((done) => {
    const request = http.request(`${url}/api/messages`, { method: 'POST', agent, headers: { Authorization: `Bearer ${token}` } },
      (reply) => { reply.resume(); reply.on('end', () => done(reply.statusCode < 300)); });
    request.on('error', () => done(false));
    request.end(body);
  });
  const began = performance.now();
  const going = [];
  for (let sent = 0; sent < perSecond * seconds;) {
    const due = Math.min(perSecond * seconds, Math.floor((performance.now() - began) / 1000 * perSecond) + 1);
    for (; sent < due; sent += 1)
      going.push(one());
    await new Promise((next) => { setTimeout(next, 5); });
  }
  const answers = await Promise.all(going);
  console.log(JSON.stringify({ sent: answers.length, accepted: answers.filter(Boolean).length, ms: performance.now() - began }));
  process.exit(0);
}

// What ran longest in one piece on the page's own thread.
function longest(trace) {
  const events = JSON.parse(trace.toString()).traceEvents;
  const mains = new Set(events.filter((e) => e.name === 'thread_name' && e.args.name === 'CrRendererMain').map((e) => `${e.pid}:${e.tid}`));
  const tasks = events.filter((e) => /RunTask$/.test(e.name) && e.dur && mains.has(`${e.pid}:${e.tid}`));
  const most = (key) => tasks.reduce((top, e) => Math.max(top, (e[key] ?? 0) / 1000), 0);
  return { tasks: tasks.length, over50: tasks.filter((e) => e.dur > 50e3).length, longest: most('dur'), longestCpu: most('tdur'),
    busy: tasks.reduce((all, e) => all + (e.tdur ?? e.dur) / 1000, 0) };
}

function watchRows() {
  window.__rows = 0;
  window.__frames = 0;
  const look = () => {
    window.__rows = Math.max(window.__rows, document.querySelectorAll('.list .row').length);
    window.__frames += 1;
    requestAnimationFrame(look);
  };
  look();
}

async function measure(perSecond, seconds) {
  const server = await serve({ agents: { rate: { perUser: 0 }, agents: { list: [{ id: 'echo', url: 'echo:' }] } } });
  const browser = await launch();
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  await signIn(page, server.url, server.token);
  await page.goto(`${server.url}/#/feed`);
  await page.locator('.list .row').first().waitFor();
  await page.evaluate(watchRows);
  await browser.startTracing(page, { categories: ['toplevel', 'devtools.timeline'] });
  const sender = spawn(process.execPath, [import.meta.filename, 'send', server.url, server.token, perSecond / EVENTS_PER_MESSAGE, seconds],
    { stdio: ['ignore', 'pipe', 'inherit'] });
  let said = '';
  sender.stdout.on('data', (text) => { said += text; });
  await once(sender, 'exit');
  const trace = longest(await browser.stopTracing());
  const newest = (await (await fetch(`${server.url}/api/feed?last=1`, { headers: { Authorization: `Bearer ${server.token}` } })).json()).items[0].seq;
  await page.waitForFunction((seq) => import(document.querySelector('script[src]').src.replace('main.js', 'lib/live.js')).then(({ feed }) => feed.newest >= seq), newest);
  const { rows, frames } = await page.evaluate(() => ({ rows: window.__rows, frames: window.__frames }));
  await browser.close();
  await server.stop();
  return { ...JSON.parse(said), ...trace, rows, frames };
}

if (process.argv[2] === 'send') {
  const [url, token, perSecond, seconds] = process.argv.slice(3);
  await send(url, token, Number(perSecond), Number(seconds));
}
const perSecond = Number(process.argv[2] ?? 1000);
const seconds = Number(process.argv[3] ?? 20);
const m = await measure(perSecond, seconds);
const rate = (m.accepted * EVENTS_PER_MESSAGE) / (m.ms / 1000);
console.log(`feed: ${rate.toFixed(0)} events a second for ${(m.ms / 1000).toFixed(0)} s, all of them shown`);
console.log(`  rows in the document at most   ${m.rows} (goal under ${ROWS_GOAL}: ${m.rows < ROWS_GOAL ? 'reached' : 'MISSED'})`);
console.log(`  longest task of the page       ${m.longest.toFixed(0)} ms (goal under ${TASK_GOAL_MS}: ${m.longest < TASK_GOAL_MS ? 'reached' : 'MISSED'})`);
console.log(`  of its processor time          ${m.longestCpu.toFixed(0)} ms`);
console.log(`  tasks over 50 ms               ${m.over50} of ${m.tasks}`);
console.log(`  the page was busy              ${(m.busy / m.ms * 100).toFixed(0)} % of the time, ${(m.frames / (m.ms / 1000)).toFixed(0)} frames a second`);
process.exit(m.rows < ROWS_GOAL && m.longest < TASK_GOAL_MS ? 0 : 1);
