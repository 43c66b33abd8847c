// Every page with something on it: axe-core finds nothing serious, also of the
// colours in the dark, and a phone need not scroll sideways. Dialogs are for the
// tests of each page.
import assert from 'node:assert/strict';
import { axe, shot, test } from './stage.mjs';
import { drawn, pagesOf, see, town } from './town.mjs';

const server = await town();
const SCREEN = { width: 1280, height: 1000 };
const PHONE = { width: 360, height: 740 };

// One look after the other at the same page, as who turns a phone or dims the
// light would have them.
async function looks(page, name) {
  await shot(page, `all-${name}-light`, { always: true });
  await axe(page, { contrast: true });
  await page.emulateMedia({ colorScheme: 'dark' });
  await drawn(page);
  await shot(page, `all-${name}-dark`, { always: true });
  await axe(page, { only: ['color-contrast'] });
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize(PHONE);
  await drawn(page);
  await shot(page, `all-${name}-phone`, { always: true });
  const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(over <= 0, `${over} px too wide for a phone`);
  await page.setViewportSize(SCREEN);
}

const pages = pagesOf(server);
for (const part of [pages.slice(0, 15), pages.slice(15)]) {
  test(`from ${part[0][0]} to ${part.at(-1)[0]}: by day, by night, on a phone`, async () => {
    const page = await server.newPage(SCREEN);
    const wrong = [];
    for (const one of part) {
      try {
        await see(page, server, one);
        await looks(page, one[0]);
      } catch (e) {
        wrong.push(`${one[0]}: ${e.message}`);
      }
    }
    assert.deepEqual(wrong, []);
  });
}
