// A decision, drawn: how sure it is, and every candidate with its four signals,
// their shares of the score, and the limit they are compared with. With
// routing.threshold "auto" every candidate has its own floor for the semantic
// signal. With a number as threshold, it applies to every score.
import { Badge, Bar, Button, Name, Text, html } from './ui.js';
import { count, num } from './format.js';

const SIGNALS = [
  ['semantic', 'how similar the text is to the agent’s card and examples'],
  ['performance', 'how well the agent did with similar messages'],
  ['keyword', 'whether the text contains one of the agent’s keywords'],
  ['recency', 'whether the agent did well recently'],
];
const USUAL = { semantic: 0.6, performance: 0.2, keyword: 0.15, recency: 0.05 };

const WHY = {
  explicit: 'the message names its agent', prefix: 'the message starts with the agent’s name',
    sticky: 'the conversation already has an agent',
  binding: 'a binding matches the source', intent: 'a language model chose the agent',
    semantic: 'the agent has the best score',
    default: 'no agent fits well, so the default agent gets it',
  none: 'no agent was chosen',
};

/** In the order in which they are tried. */
export const LAYERS = Object.keys(WHY);

const layerWords = (layer) => WHY[layer] || layer;

// How sure a decision is.

const BANDS = {
  confident: { word: 'confident', tone: 'good', why: 'The message is clearly for this agent.' },
  unsure: { word: 'unsure', tone: 'warn', why: 'An agent comes close, but not close enough to be sure.' },
  out_of_scope: { word: 'out of scope', tone: 'calm', why: 'No agent does what the message asks for.' },
};

/** The three bands in a row, the decision's own highlighted. Nothing if no agents were compared. */
export function Bands({ band }) {
  if (!BANDS[band]) return null;
  return html`<ol class="bands" aria-label="How sure the decision is">
    ${Object.entries(BANDS).map(([key, { word, tone, why }]) => html`<li key=${key} class="band tone-${tone}"
      title=${why} aria-current=${key === band ? 'true' : undefined}>${word}</li>`)}</ol>`;
}

/** A badge for lists; only unsure decisions have one. */
export const BandMark = ({ decision: d }) => (d.unsure || d.band === 'unsure'
  ? html`<${Badge} tone="warn" title=${BANDS.unsure.why}>unsure<//>` : null);

const isNumber = (x) => typeof x === 'number' && Number.isFinite(x);

/** Whether floors decide. A refusal has no rules: its threshold is a number only if numbers decide. */
const isAuto = (d) => d.rules?.auto
  ?? ((d.candidates || []).some((c) => isNumber(c.floor)) || !isNumber(d.threshold));

/** The candidate that was chosen by its score, otherwise the nearest one. */
export const nearestOf = (d) => (d.candidates || []).find((c) => d.layer === 'semantic' && c.agent === d.agent)
  || d.candidates?.[0];

const ofAgents = (d) => {
  const n = d.rules?.n || d.considered;
  return n ? ` (${n === 1 ? 'the only agent' : `one of ${count(n, 'agent')}`})` : '';
};

/** How close the next agent is counts too. This says so where it decided. */
function leadWords(d, c) {
  if (d.band === 'confident' && c.semantic < c.floor) return '; its lead over the next agent makes up the difference';
  return d.band === 'unsure' && c.semantic >= c.floor ? '; but the next agent is too close' : '';
}

/** "semantic 0.41, floor 0.36 (one of 5 agents)" */
function semanticWords(d) {
  const c = nearestOf(d);
  if (!c) return '';
  const whose = d.agent && d.layer !== 'semantic' ? `nearest ${c.agent}: ` : '';
  return whose + (isNumber(c.floor)
    ? `semantic ${num(c.semantic, 2)}, floor ${num(c.floor, 2)}${ofAgents(d)}${leadWords(d, c)}`
    : `semantic ${num(c.semantic, 2)}; the floor of this agent is not known yet`);
}

/** The figures that decided, in one line; empty if none did. */
export function figuresOf(d) {
  const isScored = d.score !== null && d.score !== undefined;
  if (d.layer === 'intent' && isScored)
    return `confidence ${num(d.score, 2)} · threshold ${num(d.threshold, 2)}`;
  if (!d.candidates?.length || (!d.band && !isScored)) return '';
  const score = isScored ? d.score : nearestOf(d).score;
  const ahead = isNumber(d.margin) && d.candidates.length > 1 && d.agent
    ? `${num(d.margin, 3)} ahead of the second` : '';
  const parts = isAuto(d) ? [semanticWords(d), `score ${num(score, 3)}`, ahead]
    : [`score ${num(score, 3)}`, isNumber(d.threshold) && `threshold ${num(d.threshold, 2)}`, ahead];
  return parts.filter(Boolean).join(' · ');
}

/** The candidates of a decision, at most `limit`; the chosen one is marked. With `onSend(agent)` each has a button. */
export function Candidates({ decision, limit = 8, onSend }) {
  const weights = decision.weights || USUAL;
  const rows = (decision.candidates || []).slice(0, limit);
  if (!rows.length) return html`<p class="faint">No agents were compared: ${layerWords(decision.layer)}.</p>`;
  const left = (decision.considered || rows.length) - rows.length;
  const threshold = isAuto(decision) ? null : decision.threshold;
  return html`<ol class="candidates" aria-label="Candidates, best first">
    ${rows.map((c) => html`<${Candidate} key=${c.agent} candidate=${c} weights=${weights} threshold=${threshold}
      isChosen=${!!decision.agent && c.agent === decision.agent} onSend=${onSend}/>`)}
  </ol>${left > 0 && html`<p class="faint">and ${left} more with lower scores</p>`}`;
}

/** How a candidate compares: its score with the threshold, or its semantic signal with its floor. */
function comparison(c, threshold) {
  if (threshold !== null) return { isSure: c.score >= threshold, words: c.score < threshold && 'below',
    title: `${c.score >= threshold ? 'reaches' : 'below'} the threshold of ${num(threshold, 2)}` };
  if (!isNumber(c.floor)) return { isSure: false, title: 'the floor of this agent is not known yet' };
  const isSure = c.semantic >= c.floor;
  return { isSure, title: `semantic ${num(c.semantic, 3)}, floor ${num(c.floor, 3)}` };
}

function Candidate({ candidate: c, weights, threshold, isChosen, onSend }) {
  const compared = comparison(c, threshold);
  const hasFloor = threshold === null && isNumber(c.floor);
  return html`<li class="candidate ${isChosen ? 'is-chosen' : ''}">
    <div class="candidate-head">
      <span>${isChosen && html`<span class="chosen-mark" title="chosen" aria-label="chosen">➜ </span>`}
        <${Name} agent=${c.agent}/>
        ${c.best_skill_id && html` <span class="faint">· <${Text} text=${c.best_skill_id} max=${40}
          line=${true}/></span>`}</span>
      <span class="score" title=${compared.title}>${num(c.score, 3)}
          ${compared.words && html`<span class="faint"> ${compared.words}</span>`}</span>
    </div>
    <${Stack} candidate=${c} weights=${weights} threshold=${threshold}/>
    <div class="signals">${SIGNALS.map(([key, why]) =>
      html`<div key=${key} class="signal" title=${`${key}: ${why}; weight ${num(weights[key], 2)}`}>
      <span class="signal-name"><i class="dot s-${key}"></i>${key}</span>
        <${Bar} value=${c[key]} label=${key} text=${num(c[key], 3)} tone=${`s-${key}`}
          mark=${key === 'semantic' && hasFloor ? c.floor : undefined}/>
          <span class="figure">${num(c[key], 2)}</span></div>`)}</div>
    ${hasFloor && html`<p class="small ${compared.isSure ? 'good' : 'faint'}">semantic ${num(c.semantic, 2)}
      ${compared.isSure ? ' reaches' : ' is below'} the floor of ${num(c.floor, 2)}</p>`}
    ${c.matched_keyword && html`<p class="faint small">its keyword “<${Text} text=${c.matched_keyword} max=${60}
      line=${true}/>” is in the text</p>`}
    ${c.taught && html`<p class="small good">an override assigned this text to it</p>`}
    ${onSend && html`<${SendAnyway} agent=${c.agent} onSend=${onSend}/>`}
  </li>`;
}

/** "Send to devops anyway" */
export const SendAnyway = ({ agent, onSend, word = ' anyway' }) => html`<${Button} className="small"
  onClick=${() => onSend(agent)}>Send to <${Text} text=${agent} max=${40} line=${true}/>${word}<//>`;

/** The score as a sum of four lengths, and the threshold as a line if it is a number. */
function Stack({ candidate, weights, threshold }) {
  const share = (x) => `${Math.max(0, Math.min(1, x)) * 100}%`;
  const said = SIGNALS.map(([key]) => `${key} ${num(candidate[key] * weights[key], 3)}`).join(', ');
  const line = threshold === null ? '' : `; threshold ${num(threshold, 2)}`;
  return html`<div class="stack" role="img" aria-label=${`score ${num(candidate.score, 3)}: ${said}${line}`}>
    ${SIGNALS.map(([key]) => html`<span key=${key} class="stack-part s-${key}"
      style=${{ width: share(candidate[key] * weights[key]) }}></span>`)}
    ${threshold !== null && html`<span class="stack-line" style=${{ left: share(threshold) }}></span>`}
  </div>`;
}

/** The agent, the reason, and the figures that decided. */
export function Verdict({ decision: d, isTrial }) {
  const figures = figuresOf(d);
  return html`<div class="verdict">
    ${d.agent ? html`<p class="verdict-head">${isTrial ? 'would go to ' : 'went to '}
      <strong><${Name} agent=${d.agent}/></strong></p>`
      : html`<p class="verdict-head"><strong>no agent</strong>${nearestOf(d)
        && html`<span class="faint">; the nearest is </span><${Name} agent=${nearestOf(d).agent}/>`}</p>`}
    <p class="verdict-why"><span class="layer layer-${d.layer}">${d.layer}</span> <${Text}
      text=${d.reason || layerWords(d.layer)}/></p>
    <${Bands} band=${d.band}/>
    ${figures && html`<p class="faint small"><${Text} text=${figures}/></p>`}
  </div>`;
}
