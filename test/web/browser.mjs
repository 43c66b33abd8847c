// Starts the browser of Debian's packages that tests and benchmarks use.
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

const { chromium } = createRequire(path.join(import.meta.dirname, '../peers/package.json'))('playwright-core');
// The headless shell needs half the processes of the browser, and half the time to start.
const CHROMIUM = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium'];

// Open a link that signs in, and say yes. A token that is not good leads to the form instead.
export async function signIn(page, url, token) {
  await page.goto(`${url}/#token=${token}`);
  const yes = page.getByRole('button', { name: /^Sign in as / });
  await yes.or(page.getByLabel('Token')).waitFor();
  if (await yes.isVisible()) {
    await yes.click();
    await yes.waitFor({ state: 'detached' });
  }
}

export function launch() {
  return chromium.launch({
    executablePath: CHROMIUM.find((file) => fs.existsSync(file)),
    // Root cannot use the browser's sandbox; a small /dev/shm cannot hold its tabs.
    args: [...(process.getuid() === 0 ? ['--no-sandbox'] : []), '--disable-dev-shm-usage'],
  });
}
