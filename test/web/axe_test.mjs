// Every page with something on it: axe-core finds nothing serious, also of the
// colours in the dark, and a phone need not scroll sideways. Dialogs are for the
// tests of each page.
import assert from 'node:assert/strict';
import { axe, shot, test } from './stage.mjs';
import { pagesOf, see, town } from './town.mjs';

const server = await town();
const LOOKS = [
  ['light', { theme: 'light', height: 1000 }, {}],
  ['dark', { theme: 'dark', height: 1000 }, { only: ['color-contrast'] }],
  ['phone', { theme: 'light', width: 360, height: 740 }, { only: ['target-size', 'scrollable-region-focusable'] }],
];

for (const [look, wishes, rules] of LOOKS) {
  test(`all pages, ${look}`, async () => {
    const page = await server.newPage(wishes);
    const wrong = [];
    for (const one of pagesOf(server)) {
      try {
        await see(page, server, one);
        await shot(page, `all-${one[0]}-${look}`);
        await axe(page, rules);
      } catch (e) {
        wrong.push(`${one[0]}: ${e.message}`);
      }
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (over > 0)
        wrong.push(`${one[0]} is ${over} px too wide`);
    }
    assert.deepEqual(wrong, []);
  });
}
