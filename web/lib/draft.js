// What somebody has typed and not yet sent: kept for this window, by user, so
// that who goes away and comes back finds it. Signing out takes it along.
import { me } from './api.js';

const keyOf = (what) => `signalbox.draft.${me()?.user}.${what}`;

/** What was kept; null where there is nothing, or nothing that can be read. */
export function keptDraft(what) {
  try {
    return JSON.parse(sessionStorage.getItem(keyOf(what)));
  } catch {
    return null;
  }
}

export function keepDraft(what, value) {
  try {
    sessionStorage.setItem(keyOf(what), JSON.stringify(value));
  } catch { /* full: it lives as long as the page shows it */ }
}

export const dropDraft = (what) => sessionStorage.removeItem(keyOf(what));
