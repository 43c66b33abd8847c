// What one correction changed: the same message decided again, and the scores
// of those concerned beside those of before.
import { Text, html } from './ui.js';
import { post } from './api.js';
import { cut, num } from './format.js';

/**
 * The message decided now, from where it came from; nothing is sent. `text`: all of it, where the record has a part.
 */
export function decideAgain(decision, text = decision.text) {
  const { source } = decision;
  return post('/api/route', { text, ...(source && Object.keys(source).length && { source }) });
}

/** After a correction to an agent (its own: taken back): what <Learnt> shows. */
export async function lookAgain(decision, to, text = decision.text) {
  return { text, to, then: decision, now: await decideAgain(decision, text).catch(() => null) };
}

export const scoreOf = (decision, agent) => decision.candidates?.find((c) => c.agent === agent)?.score;

function change(before, after) {
  if (before === undefined || after === undefined) return '';
  return after > before ? '▲ higher' : after < before ? '▼ lower' : 'the same';
}

function Row({ agent, before, after }) {
  return html`<tr><td><${Text} text=${agent} line=${true}/></td><td class="right">${num(before, 3)}</td>
    <td class="right">${num(after, 3)}</td>
    <td class="faint">${change(before, after)}</td></tr>`;
}

export function Learnt({ learnt }) {
  if (!learnt) return null;
  const { text, to, then, now } = learnt;
  const rows = [...new Set([to, then.agent])].filter(Boolean);
  return html`<div class="learnt-box" role="status">
    <p>${to && to === then.agent ? 'The correction is taken back.'
      : html`“<${Text} text=${cut(text, 160)} line=${true}/>” is now an example for <strong>
        <${Text} text=${to} line=${true}/></strong>.`}
      ${now && html` Sent again, it would go to <strong><${Text} text=${now.agent} line=${true}/></strong>.`}</p>
    ${now && html`<table class="small-table"><caption class="off-screen">Scores when it was decided and now</caption>
      <thead><tr><th scope="col">Agent</th><th scope="col" class="right">then</th><th scope="col" class="right">now</th>
        <th scope="col"><span class="off-screen">change</span></th></tr></thead>
      <tbody>${rows.map((agent) => html`<${Row} key=${agent} agent=${agent} before=${scoreOf(then, agent)}
        after=${scoreOf(now, agent)}/>`)}</tbody></table>`}
  </div>`;
}
