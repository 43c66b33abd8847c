// Cards as they are edited: what a change is as a merge patch, and where in a
// card a value or a problem is. No browser: web/lib/card.js is pure.
import assert from 'node:assert/strict';
import { applyPatch, changedFields, differences, mergePatch, ownFields, problemAt, valueAt,
  withValue } from '../../web/lib/card.js';
import { test } from './stage.mjs';

test('what is the same is no change', () => {
  assert.equal(mergePatch({ a: 1, b: { c: [1] } }, { a: 1, b: { c: [1] } }), undefined);
});

test('what is gone is null, lists are whole, objects are gone into', () => {
  const before = { title: 'A', version: '1', limits: { queue: 5, in_flight: 2 }, skills: [{ id: 'a' }, { id: 'b' }] };
  const after = { title: 'B', limits: { queue: 5 }, skills: [{ id: 'b' }], pricing: { amount_micros: 1 } };
  assert.deepEqual(mergePatch(before, after),
    { title: 'B', version: null, limits: { in_flight: null }, skills: [{ id: 'b' }], pricing: { amount_micros: 1 } });
  assert.deepEqual(changedFields(before, after), ['title', 'version', 'limits', 'skills', 'pricing']);
});

// Any two cards: the patch makes the one of the other.
test('a patch leads from any card to any other', () => {
  let seed = 7;
  const chance = (n) => { seed = (seed * 1103515245 + 12345) % 2147483648; return Math.floor(seed / 65536) % n; };
  const value = (depth) => {
    const kind = chance(depth > 2 ? 3 : 5);
    if (kind === 0) return chance(9);
    if (kind === 1) return `t${chance(9)}`;
    if (kind === 2) return [chance(3), { x: chance(3) }];
    return object(depth + 1);
  };
  const object = (depth) => Object.fromEntries(['a', 'b', 'c', 'd'].filter(() => chance(2))
    .map((k) => [k, value(depth)]));
  for (let i = 0; i < 2000; i++) {
    const [before, after] = [object(0), object(0)];
    assert.deepEqual(applyPatch(before, mergePatch(before, after) || {}), after, JSON.stringify([before, after]));
  }
});

test('what differs is told part by part, of lists with ids by their id', () => {
  const of = (before, after) => differences({ x: before }, { x: after }, ['x'])
    .map(({ at, was, is }) => [at.slice(1).join('/'), was, is]);
  assert.deepEqual(of('a', 'b'), [['', 'a', 'b']]);
  assert.deepEqual(of(null, 'b'), [['', undefined, 'b']]);
  assert.deepEqual(of({ a: 1, b: { c: 2, d: [3] } }, { b: { c: 2, d: [4] } }),
    [['a', 1, undefined], ['b/d', [3], [4]]]);
  assert.deepEqual(of([{ id: 'p', n: 1 }, { id: 'q', n: 2 }], [{ id: 'new', n: 0 }, { id: 'q', n: 3 }]),
    [['p/n', 1, undefined], ['q/n', 2, 3], ['new/n', undefined, 0]]);
  assert.deepEqual(of([{ id: 'p' }, { id: 'q' }], [{ id: 'q' }, { id: 'p' }]), [['', ['p', 'q'], ['q', 'p']]]);
  assert.deepEqual(of('…set…', '…set…'), [['', '…set…', '…set…']]); // it differs, the server says
  assert.deepEqual(of([{ id: 'a' }], ['a']), [['', [{ id: 'a' }], ['a']]]);
  // Of two with one id, a change of the first is seen.
  const [one, two] = [[{ id: 'a', n: 1 }, { id: 'a', n: 2 }], [{ id: 'a', n: 9 }, { id: 'a', n: 2 }]];
  assert.deepEqual(of(one, two), [['', one, two]]);
  // Names that objects have already are names like others.
  assert.deepEqual(of({}, JSON.parse('{"__proto__":{"a":1},"constructor":2}')),
    [['__proto__/a', undefined, 1], ['constructor', undefined, 2]]);
});

test('a value is found, put and taken out by its pointer, and the card stays as it was', () => {
  const card = { name: 'a', skills: [{ id: 'x', tags: ['t'] }, { id: 'y' }] };
  assert.equal(valueAt(card, '/skills/1/id'), 'y');
  assert.equal(valueAt(card, '/limits/queue'), undefined);
  assert.deepEqual(withValue(card, '/limits/queue', 3).limits, { queue: 3 });
  assert.deepEqual(withValue(card, '/skills/0', undefined).skills, [{ id: 'y' }]);
  assert.deepEqual(withValue(card, '/skills/0/tags', undefined).skills[0], { id: 'x' });
  assert.deepEqual(withValue({}, '/metadata/a~1b', 1), { metadata: { 'a/b': 1 } });
  assert.deepEqual(card, { name: 'a', skills: [{ id: 'x', tags: ['t'] }, { id: 'y' }] });
});

test('a problem is told at its place, and below it where that is asked for', () => {
  const problems = [{ pointer: '/skills/0/tags/3', message: 'too long' }, { pointer: '/skill', message: 'unknown' }];
  assert.equal(problemAt(problems, '/skills/0/tags', true), 'too long');
  assert.equal(problemAt(problems, '/skills/0/tags'), undefined);
  assert.equal(problemAt(problems, '/skills/0/tag', true), undefined);
});

test('what the server says of an agent is not the card’s', () => {
  assert.deepEqual(ownFields({ name: 'a', title: null, state: 'IDLE', paused: false, revision: 3, creator_id: 'x',
    url: 'echo:' }), { name: 'a', url: 'echo:' });
});
