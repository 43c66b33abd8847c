// "Wrong agent?": one click opens the others, the next one teaches, and what
// that changed is shown. Fetched with the first answer.
import { Button, Card, Text, html, useEffect, useRef, useState } from '../lib/ui.js';
import { path, post } from '../lib/api.js';
import { OtherAgent } from '../lib/choice.js';
import { Learnt, lookAgain } from '../lib/learnt.js';

const OFFERED = 6; // of those that were compared; the rest by a part of their name

export function Correct({ turn, onCorrected }) {
  const [isOpen, open] = useState(false);
  const [isOther, other] = useState(false);
  // Who came by the keyboard stays where they were, whatever took its place.
  const place = useRef(null);
  useEffect(() => { if (isOpen) place.current?.querySelector('input, button')?.focus(); }, [isOpen, isOther]);
  useEffect(() => { if (turn.corrected) place.current?.focus(); }, [turn.corrected]);
  const teach = async (agent) => {
    await post(path`/api/decisions/${turn.decision.id}/override`, { agent });
    turn.corrected = agent;
    onCorrected(await lookAgain(turn.decision, agent, turn.text));
  };
  if (turn.corrected) return html`<span class="faint" ref=${place} tabindex="-1"
    role="status">corrected to <${Text} text=${turn.corrected} line=${true}/></span>`;
  if (!isOpen) return html`<${Button} className="small" onClick=${() => open(true)}>Wrong agent?<//>`;
  const known = (turn.decision.candidates || []).map((c) => c.agent).filter((name) => name !== turn.decision.agent)
    .slice(0, OFFERED);
  const isAsked = isOther || !known.length;
  return html`<div class="choices" ref=${place} role="group"
    aria-label="Which agent should have had it?">should have been
    ${isAsked ? html`<${OtherAgent} label="Agent" except=${[turn.decision.agent]} onChoose=${teach}/>`
      : known.map((name) => html`
      <${Button} key=${name} className="small" onClick=${() => teach(name)}><${Text} text=${name} line=${true}/><//>`)}
    ${!isAsked && html`<${Button} className="small" onClick=${() => other(true)}>another…<//>`}
    <${Button} className="small" onClick=${() => { open(false); other(false); }}>Cancel<//></div>`;
}

export function WhatWasLearnt({ learnt }) {
  return html`<${Card} title="What was learnt" className="learnt"><${Learnt} learnt=${learnt}/><//>`;
}
