// Editing cards: values by JSON pointer, changes as a merge patch, and the
// problems that the server found. Pure.

// Fields that the server sets.
const SERVERS = ['revision', 'created_ms', 'updated_ms', 'state', 'state_reason', 'embedded', 'warnings', 'paused',
  'grants', 'changed', 'creator_id', 'org', 'kind', 'review', 'reports'];

/** The card without the server's fields. */
export function ownFields(card) {
  return Object.fromEntries(Object.entries(card).filter(([key, value]) => !SERVERS.includes(key) && value !== null));
}

const keysOf = (pointer) => pointer.split('/').slice(1).map((k) => k.replaceAll('~1', '/').replaceAll('~0', '~'));

export const valueAt = (card, pointer) => keysOf(pointer).reduce((value, key) => value?.[key], card);

/** A copy with another value at the pointer; undefined removes it. */
export function withValue(card, pointer, value) {
  const set = (whole, [key, ...rest]) => {
    const copy = Array.isArray(whole) ? [...whole] : { ...whole };
    const next = rest.length ? set(copy[key] ?? {}, rest) : value;
    if (next !== undefined) copy[key] = next;
    else if (Array.isArray(copy)) copy.splice(Number(key), 1);
    else delete copy[key];
    return copy;
  };
  return set(card, keysOf(pointer));
}

const isObject = (v) => typeof v === 'object' && v !== null && !Array.isArray(v);
const isSame = (a, b) => JSON.stringify(a) === JSON.stringify(b);

/** The merge patch (RFC 7396) from `before` to `after`; undefined if they are equal. Lists are replaced whole. */
export function mergePatch(before, after) {
  const patch = {};
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    if (isSame(before[key], after[key])) continue;
    if (after[key] === undefined) patch[key] = null;
    else patch[key] = isObject(before[key]) && isObject(after[key]) ? mergePatch(before[key], after[key]) : after[key];
  }
  return Object.keys(patch).length ? patch : undefined;
}

/** Applies a merge patch (RFC 7396). */
export function applyPatch(card, patch) {
  const next = isObject(card) ? { ...card } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete next[key];
    else next[key] = isObject(value) ? applyPatch(next[key], value) : value;
  }
  return next;
}

/** The top-level fields that differ. */
export const changedFields = (a, b) => Object.keys(mergePatch(a, b) || {});

// With a duplicate id, a change of the first item would be missed.
const isListOfIds = (v) => Array.isArray(v) && v.every((x) => isObject(x) && typeof x.id === 'string')
  && new Set(v.map((x) => x.id)).size === v.length;

// A list of items with ids is compared as an object, so that a new item or another order does not change all items.
function partsOf(value) {
  if (isListOfIds(value)) return Object.fromEntries(value.map(({ id, ...rest }) => [id, rest]));
  return isObject(value) ? value : null;
}

const own = (parts, key) => (parts && Object.hasOwn(parts, key) ? parts[key] : undefined);
const isNothing = (v) => v === undefined || v === null;

function apart(at, was, is) {
  if (isSame(was, is)) return [];
  const [a, b] = [partsOf(was), partsOf(is)];
  const isInParts = (a || b) && (a || isNothing(was)) && (b || isNothing(is));
  const keys = isInParts ? new Set([...Object.keys(a || {}), ...Object.keys(b || {})]) : [];
  const found = [...keys].flatMap((key) => apart([...at, key], own(a, key), own(b, key)));
  if (found.length) return found;
  if (isListOfIds(was) && isListOfIds(is)) return [{ at, was: was.map((x) => x.id), is: is.map((x) => x.id) }];
  return [{ at, was, is }];
}

/**
 * The differences in some fields, part by part: [{at: ['skills', 'ode', 'name'], was, is}]. A listed field whose values
 * look the same, such as a credential, is included.
 */
export const differences = (before, after, fields) => fields.flatMap((field) => {
  const [was, is] = [before[field] ?? undefined, after[field] ?? undefined];
  return isSame(was, is) ? [{ at: [field], was, is }] : apart([field], was, is);
});

/** The first problem at a pointer, with `isDeep` also below it. */
export function problemAt(problems, pointer, isDeep) {
  return problems.find((p) => p.pointer === pointer || (isDeep && p.pointer.startsWith(`${pointer}/`)))?.message;
}
