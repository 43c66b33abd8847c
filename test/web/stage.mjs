// What tests of the dashboard stand on: the real server, and pages of Debian's
// Chromium that do not forgive.
//
//     import assert from 'node:assert/strict';
//     import { stage, test, shot, axe, allow } from './stage.mjs';
//
//     const server = await stage({ agents: 'demo' });   // until the file ends
//
//     test('a message is answered', async () => {
//       const page = await server.newPage({ at: '#/playground', theme: 'dark' });
//       await page.getByLabel('Message').fill('why is my query slow?');
//       ...
//       await shot(page, 'playground-dark');
//       await axe(page);
//     });
//
// `node run.mjs FILE [NAME-PART]` runs them one after the other. A test fails
// too when one of its pages saw what no one expects: an error in the console, a
// script's error, a request that failed or went elsewhere, a dialog, something
// that the content security policy refused. What a test does expect it allows:
// allow(page, /409/). Chromium says each refused call in the console.
//
// Nothing here sleeps: wait for what should be seen, with locators.
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { launch, signIn } from './browser.mjs';
import { serve } from './server.mjs';

const here = import.meta.dirname;
const peers = createRequire(path.join(here, '../peers/package.json'));
const screens = path.join(process.env.SIGNALBOX_SOURCE ?? path.join(here, '../..'), 'build/screens');
const DEADLINE_MS = Number(process.env.WEB_DEADLINE_MS ?? 60_000);

export const tests = [];
export function test(name, fn) {
  tests.push({ name, fn });
}

// What is open, and ends with the test that opened it, or with the file.
const open = { servers: new Set(), pages: new Map() };
let browser;

async function theBrowser() {
  browser ??= await launch();
  return browser;
}

// agents: 'demo', a list of agents, or a whole configuration.
// args: more words for the command line.
export async function stage(options) {
  const server = await serve(options);
  open.servers.add(server);
  server.newPage = (wishes) => newPage(server, wishes);
  const stop = server.stop.bind(server);
  server.stop = () => {
    open.servers.delete(server);
    return stop();
  };
  return server;
}

function watch(page, problems, origin) {
  const note = (what) => problems.push(what);
  page.on('console', (m) => m.type() === 'error' && note(`console: ${m.text()} (${m.location().url})`));
  page.on('pageerror', (e) => note(`script: ${e.stack ?? e}`));
  page.on('requestfailed', (r) => {
    // A stream that the page itself has closed, or that ended with the page.
    if (r.failure()?.errorText !== 'net::ERR_ABORTED')
      note(`request: ${r.method()} ${r.url()}: ${r.failure()?.errorText}`);
  });
  page.on('request', (r) => new URL(r.url()).origin !== origin && note(`elsewhere: ${r.url()}`));
  page.on('websocket', (w) => new URL(w.url()).host !== new URL(origin).host && note(`elsewhere: ${w.url()}`));
  page.on('popup', (p) => note(`popup: ${p.url()}`));
  page.on('crash', () => note('the page crashed'));
  page.on('dialog', (d) => {
    note(`dialog: ${d.message()}`);
    d.dismiss().catch(() => {});
  });
}

// A page of its own, signed in with the server's token or another; token: null
// opens it for a stranger. at: where to go then, '#/feed'.
async function newPage(server, wishes = {}) {
  const { token = server.token, theme = 'light', width = 1280, height = 800, at, ...more } = wishes;
  const context = await (await theBrowser()).newContext({
    viewport: { width, height },
    colorScheme: theme,
    locale: 'en-GB',
    timezoneId: 'UTC',
    reducedMotion: 'reduce',
    ...more,
  });
  context.setDefaultTimeout(DEADLINE_MS);
  const page = await context.newPage();
  // A page may close while a route of the test still waits for the server.
  const close = context.close.bind(context);
  context.close = async () => {
    if (!page.isClosed())
      await page.unrouteAll({ behavior: 'ignoreErrors' });
    return close();
  };
  const seen = { problems: [], allowed: [] };
  watch(page, seen.problems, server.url);
  await context.exposeBinding('__violation', (_, what) => seen.problems.push(`policy: ${what}`));
  await context.addInitScript(() => document.addEventListener('securitypolicyviolation',
    (e) => window.__violation(`${e.violatedDirective} ${e.blockedURI} ${e.sample}`)));
  open.pages.set(page, seen);
  if (token)
    await signIn(page, server.url, token);
  else
    await page.goto(`${server.url}/`);
  if (at)
    await page.goto(`${server.url}/${at}`);
  return page;
}

export function allow(page, ...patterns) {
  open.pages.get(page).allowed.push(...patterns);
}

// What the page has seen that no one allowed.
export function problems(page) {
  const { problems, allowed } = open.pages.get(page);
  return problems.filter((what) => !allowed.some((pattern) => pattern.test(what)));
}

// Wait for what no page shows; what a page shows, wait for with a locator.
export async function eventually(condition, what) {
  const end = Date.now() + DEADLINE_MS;
  while (!(await condition())) {
    if (Date.now() > end)
      throw new Error(`not within ${DEADLINE_MS} ms: ${what}`);
    await new Promise((next) => { setTimeout(next, 10); });
  }
}

// build/screens/NAME.png, of what is in view or of the whole page: with
// WEB_SHOTS=1, since a picture takes as long as what it is of. `always`: those
// of every page, which axe_test.mjs takes, and of a failure.
export async function shot(page, name, { whole = false, always = false } = {}) {
  if (!always && !process.env.WEB_SHOTS)
    return;
  fs.mkdirSync(screens, { recursive: true });
  await page.screenshot({ path: path.join(screens, `${name}.png`), fullPage: whole, animations: 'disabled',
    caret: 'hide' });
}

// axe-core finds nothing serious. The debugger puts it in: the product's policy
// stays as it is.
// only: some of its rules, by their names. contrast: that of colours too, which
// takes longer than all the rest; axe_test.mjs asks for it on every page.
export async function axe(page, { except = [], only, contrast = false } = {}) {
  if (!(await page.evaluate(() => typeof window.axe === 'object')))
    await page.evaluate(fs.readFileSync(peers.resolve('axe-core/axe.min.js'), 'utf8'));
  const how = only ? { runOnly: only } : { rules: { 'color-contrast': { enabled: contrast } } };
  const found = await page.evaluate((options) => window.axe.run(document, { resultTypes: ['violations'], ...options }),
    how);
  const bad = found.violations.filter((v) => ['serious', 'critical'].includes(v.impact) && !except.includes(v.id));
  const said = bad.flatMap((v) => v.nodes.map((n) => `${v.id} (${v.impact}): ${n.html}\n  ${n.failureSummary}`));
  if (said.length)
    throw new Error(`axe at ${page.url()}:\n${said.join('\n')}`);
}

// For run.mjs.

const fileName = (name) => `failed-${name.replace(/[^a-z0-9]+/gi, '-')}`;

async function closePages(name, failed) {
  const found = [];
  for (const page of open.pages.keys()) {
    const seen = problems(page);
    found.push(...seen);
    if (failed || seen.length)
      await shot(page, fileName(name), { always: true }).catch(() => {});
    await page.context().close();
  }
  open.pages.clear();
  return found;
}

// Runs one test: what went wrong, or null.
export async function runTest({ name, fn }) {
  const before = new Set(open.servers);
  let wrong = null;
  try {
    await fn();
  } catch (e) {
    wrong = e.stack ?? String(e);
  }
  const found = await closePages(name, wrong !== null);
  if (found.length)
    wrong = [wrong, 'its pages saw:', ...found].filter(Boolean).join('\n');
  for (const server of open.servers) {
    if (!before.has(server))
      await server.stop().catch((e) => { wrong ??= e.stack; });
  }
  return wrong;
}

export async function closeAll() {
  await browser?.close();
  const ends = await Promise.allSettled([...open.servers].map((server) => server.stop()));
  return ends.filter((end) => end.status === 'rejected').map((end) => String(end.reason.stack ?? end.reason));
}
