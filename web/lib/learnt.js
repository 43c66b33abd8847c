// The effect of one override: the same message decided again, and the scores of
// the two agents before and after.
import { Text, html } from './ui.js';
import { post } from './api.js';
import { cut, num } from './format.js';

/** Decide the message again, with its source; nothing is sent. `text`: the whole text, if the record was cut. */
export function decideAgain(decision, text = decision.text) {
  const { source } = decision;
  return post('/api/route', { text, ...(source && Object.keys(source).length && { source }) });
}

/** The value for <Learnt> after an override to an agent; an override to the decision's own agent removes it. */
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
    <p>${to && to === then.agent ? 'The override was removed.'
      : html`“<${Text} text=${cut(text, 160)} line=${true}/>” is now an example for <strong>
        <${Text} text=${to} line=${true}/></strong>.`}
      ${now && html` If you sent it again, it would go to <strong>
        <${Text} text=${now.agent} line=${true}/></strong>.`}</p>
    ${now && html`<table class="small-table"><caption class="off-screen">Scores then and now</caption>
      <thead><tr><th scope="col">Agent</th><th scope="col" class="right">then</th><th scope="col" class="right">now</th>
        <th scope="col"><span class="off-screen">change</span></th></tr></thead>
      <tbody>${rows.map((agent) => html`<${Row} key=${agent} agent=${agent} before=${scoreOf(then, agent)}
        after=${scoreOf(now, agent)}/>`)}</tbody></table>`}
  </div>`;
}
