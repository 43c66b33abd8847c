// Run one file of tests: `node run.mjs FILE [NAME-PART]`. Prints what failed
// and closes with `N passed, N failed`.
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { closeAll, runTest, tests } from './stage.mjs';

async function main(file, part = '') {
  let passed = 0;
  let failed = 0;
  const count = (name, wrong) => {
    if (wrong) {
      failed += 1;
      console.log(`not ok ${name}\n${wrong}`);
    } else {
      passed += 1;
      console.log(`ok ${name}`);
    }
  };
  try {
    await import(pathToFileURL(path.resolve(file)));
    for (const test of tests.filter(({ name }) => name.includes(part)))
      count(test.name, await runTest(test));
  } catch (e) {
    count(file, e.stack ?? String(e));
  }
  for (const wrong of await closeAll())
    count('the end of the servers', wrong);
  console.log(`${passed} passed, ${failed} failed`);
  return failed > 0 || passed === 0 ? 1 : 0;
}

for (const signal of ['SIGINT', 'SIGTERM'])
  process.once(signal, () => process.exit(1));
process.exit(await main(...process.argv.slice(2)));
