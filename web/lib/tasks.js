// For every page that shows a task: whether it is finished, and how to cancel it.
import { confirm, toast } from './ui.js';
import { path, post } from './api.js';

const OVER = ['completed', 'failed', 'cancelled', 'expired', 'dropped'];
export const isOver = ({ status }) => OVER.includes(status);

/** Cancel a task after a confirmation. `question`: title, text, action. Returns false if the user declined. */
export async function cancelTask(id, question, done = 'The task was cancelled.') {
  if (!await confirm(question)) return false;
  try {
    await post(path`/api/tasks/${id}/cancel`);
    toast(done);
  } catch (error) {
    if (error.status !== 409) throw error;
    toast('The task finished before it could be cancelled.', 'warn');
  }
  return true;
}
