// A page whose one thing did not come: why, and the way to the others.
import { Link, Page, Problem, html } from './ui.js';

const FOR_GOOD = [403, 404]; // asking again helps nobody

export function Missing({ title, error, onRetry, to, label }) {
  return html`<${Page} title=${title}><${Problem} error=${error}
    onRetry=${FOR_GOOD.includes(error.status) ? undefined : onRetry}/>
    <p><${Link} to=${to}>${label}<//></p><//>`;
}
