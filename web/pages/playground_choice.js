// The decision in the playground: while a message is typed and once it was sent.
// If it was refused or is unsure, other agents are offered. Loaded with the first
// decision.
import { Badge, Link, Problem, Text, html } from '../lib/ui.js';
import { ApiError, can } from '../lib/api.js';
import { money } from '../lib/format.js';
import { Bands, Candidates, SendAnyway, Verdict } from '../lib/candidates.js';

// Replaces messages of the API that are written for programs.
const HERE = {
  no_route: 'No agent matches this message well enough, and there is no default agent. Start the message with / and '
    + 'an agent’s name to choose one yourself.',
  agent_offline: 'The agent for this message is not running, and cannot be woken. Start it, or start the message '
    + 'with / and another agent’s name.',
};
const NO_ROUTE = {
  unsure: 'It is not clear which agent this message is for. Choose one of the nearest, or start the message '
    + 'with / and an agent’s name.',
  out_of_scope: 'No agent does what this message asks for. You can still send it to one of the nearest, or '
    + 'start the message with / and an agent’s name.',
};
function inWords(error) {
  const { candidates, band } = error.details || {};
  const words = (error.code === 'no_route' && candidates?.length && NO_ROUTE[band]) || HERE[error.code];
  return words ? new ApiError(error.status, error.code, words, error.details) : error;
}

/** A refusal as a decision that chose none of its candidates. */
function refusalOf(error) {
  const { candidates, band, considered, threshold } = (error instanceof ApiError && error.details) || {};
  return candidates?.length ? { layer: 'none', agent: null, candidates, band, considered, threshold } : null;
}

const NEAREST = 3; // offered under a message

export function Refused({ turn, onSend }) {
  const { error } = turn;
  const near = error.details?.nearest || [];
  const best = refusalOf(error)?.candidates.slice(0, NEAREST) || [];
  return html`<div><${Problem} error=${inWords(error)}/>
    ${near.length > 0
      && html`<p class="faint">Similar names: ${near.map((n) =>
        html`<${Text} text=${n.name || n} line=${true}/> `)}</p>`}
    ${best.length > 0 && html`<${Offered} turn=${turn} names=${best.map((c) => c.agent)} onSend=${onSend}
      label="The nearest agents" word=" anyway"/>`}
    ${error.code === 'cost_ceiling' && error.details?.agent && html`<${Offered} turn=${turn}
      names=${[error.details.agent]} onSend=${onSend} label="The agent that costs more"
      word=${` for ${money(error.details.price_micros)}`}/>`}
    ${error.code === 'insufficient_funds' && html`<p>See your balance in the <${Link}
      to="/ledger">ledger<//>.</p>`}</div>`;
}

/** An answer that may be from the wrong agent, with the next best agents. */
export function Unsure({ turn, onSend }) {
  const names = (turn.decision.candidates || []).map((c) => c.agent).filter((name) => name !== turn.decision.agent)
    .slice(0, NEAREST - 1);
  return html`<div class="unsure"><p><${Badge} tone="warn">unsure<//> <${Text} text=${turn.decision.agent}
      line=${true}/> is the best match, but the message may be for another agent.</p>
    ${names.length > 0 && html`<${Offered} turn=${turn} names=${names} onSend=${onSend}
      label="Other close matches" word=" instead"/>`}</div>`;
}

/** A button for each of these agents; afterwards, the one that was chosen. */
function Offered({ turn, names, onSend, label, word }) {
  if (turn.sentTo) return html`<p class="faint" role="status">sent to <${Text} text=${turn.sentTo} line=${true}/></p>`;
  if (!can('send')) return null;
  return html`<div class="choices" role="group" aria-label=${label}>${names.map((name) => html`
    <${SendAnyway} key=${name} agent=${name} word=${word} onSend=${(to) => onSend(turn, to)}/>`)}</div>`;
}

// While a message is typed.

function Trial({ trial, onSend }) {
  const { decision, error, isOld } = trial;
  if (error) return html`<${Undecided} error=${error} onSend=${onSend}/>`;
  if (!decision) return html`<p class="faint">Deciding…</p>`;
  return html`<div class=${isOld ? 'is-old' : ''} aria-live="polite">
    <${Verdict} decision=${decision} isTrial=${true}/>
    ${decision.note && html`<p class="note"><${Text} text=${decision.note}/></p>`}
    <p class="faint">${decision.price_micros > 0 ? `costs ${money(decision.price_micros)}` : 'free'},
      at most ${money(decision.ceiling_micros)} with its delegations</p>
    <${Candidates} decision=${decision}/></div>`;
}

function Undecided({ error, onSend }) {
  const refused = refusalOf(error);
  const dear = error.code === 'cost_ceiling' && error.details;
  return html`<${Problem} error=${inWords(error)}/>${dear?.agent && onSend && html`<${SendAnyway} agent=${dear.agent}
    word=${` for ${money(dear.price_micros)}`} onSend=${onSend}/>`}${refused && html`<${Bands} band=${refused.band}/>
    <${Candidates} decision=${refused} onSend=${onSend}/>`}`;
}

/** The decision for the text being typed, otherwise for the last message. */
export function Shown({ trial, text, last, onSend, onSendAgain }) {
  if (text.trim()) return html`<${Trial} trial=${trial} onSend=${onSend}/>`;
  if (last.decision) return html`<${Verdict} decision=${last.decision}/><${Candidates} decision=${last.decision}/>`;
  const refused = refusalOf(last.error);
  if (!refused) return html`<p class="faint">The last message was not sent.</p>`;
  return html`<${Verdict} decision=${refused}/><${Candidates} decision=${refused}
    onSend=${!last.sentTo && can('send') && ((to) => onSendAgain(last, to))}/>`;
}
