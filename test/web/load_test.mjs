// What a browser fetches to show the page: little at first, and of the files
// nothing a second time.
import assert from 'node:assert/strict';
import { eventually, stage, test } from './stage.mjs';

const MAX_BYTES = 300_000;
const MAX_REQUESTS = 15;
const server = await stage({ agents: 'demo' });

// What went over the wire, as Chromium's network log has it: headers and bodies
// as they were sent. A stream goes on, and so has no end to wait for.
async function record(page) {
  const log = await page.context().newCDPSession(page);
  const seen = new Map();
  const of = (id) => seen.get(id) ?? {};
  log.on('Network.requestWillBeSent', ({ requestId, request }) =>
    seen.set(requestId, { url: request.url, bytes: 0, isOver: false, isKept: false }));
  log.on('Network.responseReceived', ({ requestId, response }) => {
    of(requestId).isOver ||= response.mimeType === 'text/event-stream';
    of(requestId).isKept ||= response.fromDiskCache;
    of(requestId).bytes = response.encodedDataLength;
  });
  log.on('Network.requestServedFromCache', ({ requestId }) => { of(requestId).isKept = true; });
  log.on('Network.loadingFinished', ({ requestId, encodedDataLength }) =>
    Object.assign(of(requestId), { bytes: encodedDataLength, isOver: true }));
  log.on('Network.loadingFailed', ({ requestId }) => { of(requestId).isOver = true; });
  await log.send('Network.enable');
  await log.send('Network.clearBrowserCache');
  return {
    // The page is there, and nothing is on its way.
    async settled() {
      await page.getByRole('textbox').first().waitFor();
      await eventually(() => [...seen.values()].every(({ isOver }) => isOver), 'all that was asked for has come');
      return [...seen.values()].filter(({ url }) => url.startsWith('http'));
    },
    forget: () => seen.clear(),
  };
}

const sent = (requests) => requests.filter(({ isKept }) => !isKept);
const show = (requests) => requests.map(({ url, bytes }) => `${bytes} ${new URL(url).pathname}`).join('\n');

test('the first load is small, and the second asks for no file again', async () => {
  const page = await server.newPage({ token: null });
  await page.goto('about:blank');
  const network = await record(page);

  // A user who stayed signed in, with an empty cache.
  await page.addInitScript((token) => localStorage.setItem('signalbox.token', token), server.token);
  await page.goto(server.url);
  const first = sent(await network.settled());
  const bytes = first.reduce((sum, r) => sum + r.bytes, 0);
  console.log(`first load: ${first.length} requests, ${bytes} bytes`);
  assert.ok(first.some(({ url }) => url.endsWith('/vendor/preact.js')), show(first));
  assert.ok(bytes > 10_000 && bytes < MAX_BYTES, `${bytes} bytes:\n${show(first)}`);
  assert.ok(first.length < MAX_REQUESTS, `${first.length} requests:\n${show(first)}`);

  network.forget();
  await page.reload();
  const second = sent(await network.settled());
  assert.ok(second.length > 0);
  assert.deepEqual(second.filter(({ url }) => url.includes('/assets/')), []);
});
