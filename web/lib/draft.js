// Drafts: what a user has typed and not yet sent, kept per window and user.
// Signing out deletes them.
import { me } from './api.js';

const keyOf = (what) => `signalbox.draft.${me()?.user}.${what}`;

/** The kept draft; null if there is none, or it cannot be parsed. */
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
  } catch { /* storage is full: the draft lives as long as the page */ }
}

export const dropDraft = (what) => sessionStorage.removeItem(keyOf(what));
