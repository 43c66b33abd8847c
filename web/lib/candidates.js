// A decision, drawn: how sure it is, and every candidate with its four signals,
// how each counts towards the score, and the figure it is held against. With
// routing.threshold "auto" that is a floor under each candidate's meaning, its
// own; where the threshold is a number, it is a line under every score.
import { Badge, Bar, Button, Name, Text, html } from './ui.js';
import { count, num } from './format.js';

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
  none: 'no agent was chosen',
};

/** In the order in which they are asked. */
export const LAYERS = Object.keys(WHY);

const layerWords = (layer) => WHY[layer] || layer;

// How sure a decision is.

const BANDS = {
  confident: { word: 'confident', tone: 'good', why: 'The message is clearly for this agent.' },
  unsure: { word: 'unsure', tone: 'warn', why: 'An agent is near, but not near enough to be sure.' },
  out_of_scope: { word: 'out of scope', tone: 'calm', why: 'No agent does what the message asks for.' },
};

/** The three bands in a row; the decision's own stands out. Nothing where agents were not compared. */
export function Bands({ band }) {
  if (!BANDS[band]) return null;
  return html`<ol class="bands" aria-label="How sure the decision is">
    ${Object.entries(BANDS).map(([key, { word, tone, why }]) => html`<li key=${key} class="band tone-${tone}"
      title=${why} aria-current=${key === band ? 'true' : undefined}>${word}</li>`)}</ol>`;
}

/** A mark for lists: only a decision that is not sure needs one. */
export const BandMark = ({ decision: d }) => (d.unsure || d.band === 'unsure'
  ? html`<${Badge} tone="warn" title=${BANDS.unsure.why}>unsure<//>` : null);

const isNumber = (x) => typeof x === 'number' && Number.isFinite(x);

/** Whether floors decide. A refusal has no rules: there a threshold is a number only where numbers decide. */
const isAuto = (d) => d.rules?.auto
  ?? ((d.candidates || []).some((c) => isNumber(c.floor)) || !isNumber(d.threshold));

/** The candidate that was chosen by its score, or else came nearest. */
export const nearestOf = (d) => (d.candidates || []).find((c) => d.layer === 'semantic' && c.agent === d.agent)
  || d.candidates?.[0];

const ofAgents = (d) => {
  const n = d.rules?.n || d.considered;
  return n ? ` (${n === 1 ? 'the only agent' : `one of ${count(n, 'agent')}`})` : '';
};

/** How near the next agent is counts too: where that decided, it is said. */
function leadWords(d, c) {
  if (d.band === 'confident' && c.semantic < c.floor) return '; its lead over the next agent makes up for the rest';
  return d.band === 'unsure' && c.semantic >= c.floor ? '; but the next agent is too near' : '';
}

/** "meaning 0.41, and 0.36 is sure (one of 5 agents)" */
function meaningWords(d) {
  const c = nearestOf(d);
  if (!c) return '';
  const whose = d.agent && d.layer !== 'semantic' ? `nearest ${c.agent}: ` : '';
  return whose + (isNumber(c.floor)
    ? `meaning ${num(c.semantic, 2)}, and ${num(c.floor, 2)} is sure${ofAgents(d)}${leadWords(d, c)}`
    : `meaning ${num(c.semantic, 2)}; what is sure for this agent is not known yet`);
}

/** The figures that decided, in one line; empty where none did. */
export function figuresOf(d) {
  const isScored = d.score !== null && d.score !== undefined;
  if (d.layer === 'intent' && isScored)
    return `confidence ${num(d.score, 2)} · ${num(d.threshold, 2)} is enough`;
  if (!d.candidates?.length || (!d.band && !isScored)) return '';
  const score = isScored ? d.score : nearestOf(d).score;
  const ahead = isNumber(d.margin) && d.candidates.length > 1 && d.agent
    ? `${num(d.margin, 3)} ahead of the second` : '';
  const parts = isAuto(d) ? [meaningWords(d), `score ${num(score, 3)}`, ahead]
    : [`score ${num(score, 3)}`, isNumber(d.threshold) && `${num(d.threshold, 2)} is enough`, ahead];
  return parts.filter(Boolean).join(' · ');
}

/** The candidates of a decision; `chosen` is marked, `limit` of them are drawn. `onSend(agent)`: each has a button. */
export function Candidates({ decision, limit = 8, onSend }) {
  const weights = decision.weights || USUAL;
  const rows = (decision.candidates || []).slice(0, limit);
  if (!rows.length) return html`<p class="faint">No agents were compared: ${layerWords(decision.layer)}.</p>`;
  const left = (decision.considered || rows.length) - rows.length;
  const threshold = isAuto(decision) ? null : decision.threshold;
  return html`<ol class="candidates" aria-label="Candidates, the best first">
    ${rows.map((c) => html`<${Candidate} key=${c.agent} candidate=${c} weights=${weights} threshold=${threshold}
      isChosen=${!!decision.agent && c.agent === decision.agent} onSend=${onSend}/>`)}
  </ol>${left > 0 && html`<p class="faint">and ${left} more that fit less well</p>`}`;
}

/** What a candidate's figure is held against: under its score, or beside its meaning. */
function heldAgainst(c, threshold) {
  if (threshold !== null) return { isSure: c.score >= threshold, words: c.score < threshold && 'below',
    title: c.score >= threshold ? 'enough to be chosen' : `less than ${num(threshold, 2)}, which would be enough` };
  if (!isNumber(c.floor)) return { isSure: false, title: 'what is sure for this agent is not known yet' };
  const isSure = c.semantic >= c.floor;
  return { isSure, title: `its meaning is ${num(c.semantic, 3)}, and ${num(c.floor, 3)} is sure` };
}

function Candidate({ candidate: c, weights, threshold, isChosen, onSend }) {
  const held = heldAgainst(c, threshold);
  const hasFloor = threshold === null && isNumber(c.floor);
  return html`<li class="candidate ${isChosen ? 'is-chosen' : ''}">
    <div class="candidate-head">
      <span>${isChosen && html`<span class="chosen-mark" title="chosen" aria-label="chosen">➜ </span>`}
        <${Name} agent=${c.agent}/>
        ${c.best_skill_id && html` <span class="faint">· <${Text} text=${c.best_skill_id} max=${40}
          line=${true}/></span>`}</span>
      <span class="score" title=${held.title}>${num(c.score, 3)}
          ${held.words && html`<span class="faint"> ${held.words}</span>`}</span>
    </div>
    <${Stack} candidate=${c} weights=${weights} threshold=${threshold}/>
    <div class="signals">${SIGNALS.map(([key, word, why]) =>
      html`<div key=${key} class="signal" title=${`${why}; counts ${num(weights[key], 2)}`}>
      <span class="signal-name"><i class="dot s-${key}"></i>${word}</span>
        <${Bar} value=${c[key]} label=${word} text=${num(c[key], 3)} tone=${`s-${key}`}
          mark=${key === 'semantic' && hasFloor ? c.floor : undefined}/>
          <span class="figure">${num(c[key], 2)}</span></div>`)}</div>
    ${hasFloor && html`<p class="small ${held.isSure ? 'good' : 'faint'}">meaning ${num(c.semantic, 2)}:
      ${held.isSure ? ` sure, from ${num(c.floor, 2)} on` : ` not sure, ${num(c.floor, 2)} would be`}</p>`}
    ${c.matched_keyword && html`<p class="faint small">its keyword “<${Text} text=${c.matched_keyword} max=${60}
      line=${true}/>” is in the text</p>`}
    ${c.taught && html`<p class="small good">a correction says that this text is for it</p>`}
    ${onSend && html`<${SendAnyway} agent=${c.agent} onSend=${onSend}/>`}
  </li>`;
}

/** "Send to devops anyway" */
export const SendAnyway = ({ agent, onSend, word = ' anyway' }) => html`<${Button} className="small"
  onClick=${() => onSend(agent)}>Send to <${Text} text=${agent} max=${40} line=${true}/>${word}<//>`;

/** The score as a sum: four lengths one behind the other, and the threshold as a line where it is a number. */
function Stack({ candidate, weights, threshold }) {
  const share = (x) => `${Math.max(0, Math.min(1, x)) * 100}%`;
  const said = SIGNALS.map(([key, word]) => `${word} ${num(candidate[key] * weights[key], 3)}`).join(', ');
  const line = threshold === null ? '' : `; threshold ${num(threshold, 2)}`;
  return html`<div class="stack" role="img" aria-label=${`score ${num(candidate.score, 3)}: ${said}${line}`}>
    ${SIGNALS.map(([key]) => html`<span key=${key} class="stack-part s-${key}"
      style=${{ width: share(candidate[key] * weights[key]) }}></span>`)}
    ${threshold !== null && html`<span class="stack-line" style=${{ left: share(threshold) }}></span>`}
  </div>`;
}

/** One sentence and the figures that matter. */
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
