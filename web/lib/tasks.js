// What every page knows of a task: whether it is over, and how to cancel it.
import { confirm, toast } from './ui.js';
import { path, post } from './api.js';

const OVER = ['completed', 'failed', 'cancelled', 'expired', 'dropped'];
export const isOver = ({ status }) => OVER.includes(status);

/** Asks, cancels it, and says what came of that: whether it was asked for at all. `question`: title, text, action. */
export async function cancelTask(id, question, done = 'It was cancelled.') {
  if (!await confirm(question)) return false;
  try {
    await post(path`/api/tasks/${id}/cancel`);
    toast(done);
  } catch (error) {
    if (error.status !== 409) throw error;
    toast('It was over before it could be cancelled.', 'warn');
  }
  return true;
}
