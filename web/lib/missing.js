// The page of a thing that could not be loaded: the error, and a link to the list.
import { Link, Page, Problem, html } from './ui.js';

const FOR_GOOD = [403, 404]; // trying again would not help

export function Missing({ title, error, onRetry, to, label }) {
  return html`<${Page} title=${title}><${Problem} error=${error}
    onRetry=${FOR_GOOD.includes(error.status) ? undefined : onRetry}/>
    <p><${Link} to=${to}>${label}<//></p><//>`;
}
