// Every page with something on it: axe-core finds nothing serious, in light and
// in dark, and a phone need not scroll sideways. What the tests of each page do
// for its dialogs is theirs.
import assert from 'node:assert/strict';
import { axe, shot, test } from './stage.mjs';
import { pagesOf, see, town } from './town.mjs';

const server = await town();
const LOOKS = [
  ['light', { theme: 'light', height: 1000 }],
  ['dark', { theme: 'dark', height: 1000 }],
  ['phone', { theme: 'light', width: 360, height: 740 }],
];

for (const [look, wishes] of LOOKS) {
  test(`all pages, ${look}`, async () => {
    const page = await server.newPage(wishes);
    const wrong = [];
    for (const one of pagesOf(server)) {
      try {
        await see(page, server, one);
        await shot(page, `all-${one[0]}-${look}`);
        await axe(page);
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
