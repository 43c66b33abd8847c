// What people read: figures, money, ages, and texts that hide something.
import assert from 'node:assert/strict';
import { age, bytes, count, cut, duration, marked, micros, money, num, visible, when } from '../../web/lib/format.js';
import { stage, test } from './stage.mjs';

test('money is exact, however much', () => {
  for (const [given, shown] of [[0, '0.00'], [1, '0.000001'], [1500000, '1.50'], [1234567, '1.234567'],
    [-2500000, '−2.50'],
    ['9223372036854775807', '9,223,372,036,854.775807'], [999999, '0.999999'], [null, '–']])
    assert.equal(money(given), shown);
  for (const [text, n] of [['1.5', 1500000n], ['0.000001', 1n], ['12', 12000000n], ['.5', null], ['1e3', null],
    ['-1', null], ['1.0000001', null], ['', null], ['1,5', null]])
    assert.equal(micros(text), n);
  for (let i = 0; i < 1000; i += 1) {
    const n = BigInt(Math.floor(Math.random() * 1e15));
    assert.equal(micros(money(n).replaceAll(',', '')), n);
  }
});

test('times and counts', () => {
  for (const [ms, shown] of [[0, '0 ms'], [999, '999 ms'], [4200, '4.2 s'], [59000, '59 s'], [60000, '1 min'],
    [65000, '1 min 5 s'], [3600e3 * 3 + 300e3, '3 h 5 min'], [86400e3 * 12, '12 d'], [null, '–']])
    assert.equal(duration(ms), shown);
  for (const [ms, shown] of [[-5000, '1 s'], [59999, '59 s'], [60000, '1 min'], [7200e3, '2 h'], [200e6, '2 d']])
    assert.equal(age(ms), shown);
  assert.equal(count(1, 'task'), '1 task');
  assert.equal(count(12000, 'entry', 'entries'), '12,000 entries');
  assert.equal(num(undefined), '–');
  assert.equal(bytes(2048), '2.0 KB');
  assert.equal(when(0), '–');
});

test('what hides in a text is named, and what is writing is left alone', () => {
  const marks = (text) => visible(text).filter((p) => typeof p !== 'string').map((p) => p.code);
  assert.deepEqual(marks('a\u202eb\u2066c\u200bd\ufeff'), ['U+202E', 'U+2066', 'U+200B', 'U+FEFF']);
  assert.deepEqual(marks('tag\u{e0041}s, lone \ud800 and \udc00'), ['U+E0041', 'U+D800', 'U+DC00']);
  assert.deepEqual(marks('x\u200dy'), ['U+200D']);
  for (const text of ['👨‍👩‍👧 family', '❤️ heart', 'مرحبا', 'नमस्ते', 'tab\tand\nline', 'Zürich', '日本語', '👩🏽‍💻'])
    assert.deepEqual([visible(text), marked(text)], [[text], text]);
  assert.equal(marked('safe\u202egnp\u0000'), 'safe⟨U+202E⟩gnp⟨U+0000⟩');
});

test('a cut never leaves half a character', () => {
  assert.equal(cut('ab😀c', 3), 'ab');
  assert.equal(cut('ab😀c', 4), 'ab😀');
  assert.equal(cut('ab', 5), 'ab');
});

test('events are the same however the bytes are cut', async () => {
  const server = await stage();
  const page = await server.newPage();
  const told = await page.evaluate(async () => {
    const folder = document.querySelector('script[src]').src.replace(/main\.js$/, '');
    const { sseParser } = await import(`${folder}lib/live.js`);
    const text = ': a comment\r\nid: 1\nevent: x\ndata: {"a":1}\n\ndata: one\ndata: two\r\n\r\nid: 7\n\nevent: '
      + 'y\ndata:no space\n\n';
    const read = (pieces) => {
      const found = [];
      const feed = sseParser((e) => e.data && found.push(e));
      pieces.forEach(feed);
      return JSON.stringify(found);
    };
    const whole = read([text]);
    const others = new Set();
    for (let i = 0; i < 2000; i += 1) {
      const pieces = [];
      for (let at = 0; at < text.length;) {
        const n = 1 + Math.floor(Math.random() * 9);
        pieces.push(text.slice(at, at + n));
        at += n;
      }
      others.add(read(pieces));
    }
    return { whole, others: [...others] };
  });
  assert.deepEqual(JSON.parse(told.whole).map((e) => [e.id, e.type, e.data]),
    [['1', 'x', '{"a":1}'], ['1', 'message', 'one\ntwo'], ['7', 'y', 'no space']]);
  assert.deepEqual(told.others, [told.whole]);
});
