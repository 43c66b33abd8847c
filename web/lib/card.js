// Cards as people edit them: parts by their JSON pointer, what a change is as a
// merge patch, and where the server found something wrong. Pure.

// What the server says of an agent, and nobody sets in a form.
const SERVERS = ['revision', 'created_ms', 'updated_ms', 'state', 'state_reason', 'embedded', 'warnings', 'paused',
  'grants', 'changed', 'creator_id', 'org', 'kind'];

/** The card alone: what can be changed. */
export function ownFields(card) {
  return Object.fromEntries(Object.entries(card).filter(([key, value]) => !SERVERS.includes(key) && value !== null));
}

const keysOf = (pointer) => pointer.split('/').slice(1).map((k) => k.replaceAll('~1', '/').replaceAll('~0', '~'));

export const valueAt = (card, pointer) => keysOf(pointer).reduce((value, key) => value?.[key], card);

/** A copy with another value there; undefined takes it out. */
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

/** RFC 7396: what makes `after` of `before`; undefined where nothing does. Lists are replaced whole. */
export function mergePatch(before, after) {
  const patch = {};
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    if (isSame(before[key], after[key])) continue;
    if (after[key] === undefined) patch[key] = null;
    else patch[key] = isObject(before[key]) && isObject(after[key]) ? mergePatch(before[key], after[key]) : after[key];
  }
  return Object.keys(patch).length ? patch : undefined;
}

/** RFC 7396: the card with a patch in it. */
export function applyPatch(card, patch) {
  const next = isObject(card) ? { ...card } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete next[key];
    else next[key] = isObject(value) ? applyPatch(next[key], value) : value;
  }
  return next;
}

/** The top fields that are others in the two. */
export const changedFields = (a, b) => Object.keys(mergePatch(a, b) || {});

/** The first problem at a place, or anywhere below it where `isDeep`. */
export function problemAt(problems, pointer, isDeep) {
  return problems.find((p) => p.pointer === pointer || (isDeep && p.pointer.startsWith(`${pointer}/`)))?.message;
}
