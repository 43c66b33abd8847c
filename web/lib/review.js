// Review of cards, for every page that shows it: the badges of a review's state,
// the card that an edit starts from, and the number of cards to review.
import { Badge, html, useEffect, useState } from './ui.js';
import { can, get } from './api.js';
import { useRefresh } from './live.js';
import { useEvery } from './timers.js';
import { count } from './format.js';

const STATES = { waiting: ['in review', 'warn'], rejected: ['rejected', 'bad'], hidden: ['hidden', 'bad'] };
const REPORTED = ['reported', 'reported by users'];

/** Options of a filter; only admins see reports. */
export const reviewOptions = () => [['waiting', 'waiting for review'], ['rejected', 'rejected'], ['hidden', 'hidden'],
  ...(can('admin') ? [REPORTED] : [])];

/** The feed's types for changes of a review. */
export const REVIEW_TYPES = ['agent.submitted', 'agent.withdrawn', 'agent.approved', 'agent.rejected', 'agent.hidden',
  'agent.report'];

/** The state of a review and the number of reports, if there are any. */
export function ReviewBadges({ state, reports }) {
  const [word, tone] = STATES[state] || [];
  return html`${word && html` <${Badge} tone=${tone}>${word}<//>`}${reports > 0
    && html` <${Badge} tone="warn">${count(reports, 'report')}<//>`}`;
}

/** The card that an edit starts from: the active one for an admin, the proposed one for the creator. */
export const cardToChange = (agent) => (agent?.review && !can('admin') ? agent.review.card : agent);

// The number of cards to review, for admins.

const PAGE = 100;
const EVERY_MS = 60000;

async function countOf(review) {
  const { items, next_cursor: next } = await get('/api/agents', { review, brief: true, limit: PAGE });
  return { n: items.length, isMore: !!next };
}

/** {waiting, reported}, each {n, isMore}, kept up to date; null for others than admins, and until it is known. */
export function useToReview() {
  const [found, setFound] = useState(null);
  const ask = async () => {
    if (!can('admin')) return;
    try {
      const [waiting, reported] = await Promise.all([countOf('waiting'), countOf('reported')]);
      setFound({ waiting, reported });
    } catch { /* the page itself reports that the server is unreachable */ }
  };
  useEffect(() => { ask(); }, []);
  useEvery(EVERY_MS, ask);
  useRefresh([...REVIEW_TYPES, 'agent.updated', 'agent.removed'], ask);
  return found;
}
