// A decision, drawn: every candidate with its four signals, how each counts
// towards the score, and the line that the score must reach.
import { Bar, Name, Text, html } from './ui.js';
import { num } from './format.js';

const SIGNALS = [
  ['semantic', 'meaning', 'what the text means to the agent'],
  ['performance', 'record', 'how it has done with such before'],
  ['keyword', 'keyword', 'whether one of its keywords is in the text'],
  ['recency', 'recent', 'whether it did well lately'],
];
const USUAL = { semantic: 0.6, performance: 0.2, keyword: 0.15, recency: 0.05 };

const WHY = {
  explicit: 'the message names its agent', prefix: 'it begins with the agent’s name',
    sticky: 'the conversation has an agent already',
  binding: 'bound by where it came from', intent: 'a language model said so', semantic: 'it has the best score',
    default: 'nobody fits well: the default agent',
};

/** In the order in which they are asked. */
export const LAYERS = Object.keys(WHY);

const layerWords = (layer) => WHY[layer] || layer;

/** The candidates of a decision; `chosen` is marked, `limit` of them are drawn. */
export function Candidates({ decision, limit = 8 }) {
  const weights = decision.weights || USUAL;
  const rows = (decision.candidates || []).slice(0, limit);
  if (!rows.length) return html`<p class="faint">No agents were compared: ${layerWords(decision.layer)}.</p>`;
  const left = (decision.considered || rows.length) - rows.length;
  return html`<ol class="candidates" aria-label="Candidates, the best first">
    ${rows.map((c) => html`<${Candidate} key=${c.agent} candidate=${c} weights=${weights}
      threshold=${decision.threshold} isChosen=${c.agent === decision.agent}/>`)}
  </ol>${left > 0 && html`<p class="faint">and ${left} more that fit less well</p>`}`;
}

function Candidate({ candidate: c, weights, threshold, isChosen }) {
  const isEnough = c.score >= threshold;
  return html`<li class="candidate ${isChosen ? 'is-chosen' : ''}">
    <div class="candidate-head">
      <span>${isChosen && html`<span class="chosen-mark" title="chosen" aria-label="chosen">➜ </span>`}
        <${Name} agent=${c.agent}/>
        ${c.best_skill_id && html` <span class="faint">· <${Text} text=${c.best_skill_id} max=${40}
          line=${true}/></span>`}</span>
      <span class="score" title=${isEnough ? 'enough to be chosen'
        : `less than ${num(threshold, 2)}, which would be enough`}>${num(c.score, 3)}
          ${!isEnough && html`<span class="faint"> below</span>`}</span>
    </div>
    <${Stack} candidate=${c} weights=${weights} threshold=${threshold}/>
    <div class="signals">${SIGNALS.map(([key, word, why]) =>
      html`<div key=${key} class="signal" title=${`${why}; counts ${num(weights[key], 2)}`}>
      <span class="signal-name"><i class="dot s-${key}"></i>${word}</span>
        <${Bar} value=${c[key]} label=${word} text=${num(c[key], 3)} tone=${`s-${key}`}/>
          <span class="figure">${num(c[key], 2)}</span></div>`)}</div>
    ${c.matched_keyword && html`<p class="faint small">its keyword “<${Text} text=${c.matched_keyword} max=${60}
      line=${true}/>” is in the text</p>`}
  </li>`;
}

/** The score as a sum: four lengths one behind the other, and the threshold as a line. */
function Stack({ candidate, weights, threshold }) {
  const share = (x) => `${Math.max(0, Math.min(1, x)) * 100}%`;
  const said = SIGNALS.map(([key, word]) => `${word} ${num(candidate[key] * weights[key], 3)}`).join(', ');
  return html`<div class="stack" role="img"
    aria-label=${`score ${num(candidate.score, 3)}: ${said}; threshold ${num(threshold, 2)}`}>
    ${SIGNALS.map(([key]) => html`<span key=${key} class="stack-part s-${key}"
      style=${{ width: share(candidate[key] * weights[key]) }}></span>`)}
    <span class="stack-line" style=${{ left: share(threshold) }}></span>
  </div>`;
}

/** One sentence and the figures that matter. */
export function Verdict({ decision, isTrial }) {
  return html`<div class="verdict">
    <p class="verdict-head">${isTrial ? 'would go to ' : 'went to '}
      <strong><${Name} agent=${decision.agent}/></strong></p>
    <p class="verdict-why"><span class="layer layer-${decision.layer}">${decision.layer}</span> <${Text}
      text=${decision.reason || layerWords(decision.layer)}/></p>
    ${decision.score !== null && decision.score !== undefined
      && html`<p class="faint small">score ${num(decision.score, 3)} · ${num(decision.threshold, 2)} is enough${
      decision.margin !== null && decision.margin !== undefined ? ` · ${num(decision.margin, 3)} ahead of the second`
        : ''}</p>`}
  </div>`;
}
