// "Wrong agent?": one click shows the other agents, the next one overrides the
// decision, and the effect is shown. Loaded with the first answer.
import { Button, Card, Text, html, useEffect, useRef, useState } from '../lib/ui.js';
import { path, post } from '../lib/api.js';
import { OtherAgent } from '../lib/choice.js';
import { Learnt, lookAgain } from '../lib/learnt.js';

const OFFERED = 6; // candidates; other agents are found by part of their name

export function Correct({ turn, onCorrected }) {
  const [isOpen, open] = useState(false);
  const [isOther, other] = useState(false);
  // Keyboard users keep their place: the focus moves to what replaced the button.
  const place = useRef(null);
  useEffect(() => { if (isOpen) place.current?.querySelector('input, button')?.focus(); }, [isOpen, isOther]);
  useEffect(() => { if (turn.corrected) place.current?.focus(); }, [turn.corrected]);
  const teach = async (agent) => {
    await post(path`/api/decisions/${turn.decision.id}/override`, { agent });
    turn.corrected = agent;
    onCorrected(await lookAgain(turn.decision, agent, turn.text));
  };
  if (turn.corrected) return html`<span class="faint" ref=${place} tabindex="-1"
    role="status">overridden to <${Text} text=${turn.corrected} line=${true}/></span>`;
  if (!isOpen) return html`<${Button} className="small" onClick=${() => open(true)}>Wrong agent?<//>`;
  const known = (turn.decision.candidates || []).map((c) => c.agent).filter((name) => name !== turn.decision.agent)
    .slice(0, OFFERED);
  const isAsked = isOther || !known.length;
  return html`<div class="choices" ref=${place} role="group"
    aria-label="Which agent should have received it?">should have been
    ${isAsked ? html`<${OtherAgent} label="Agent" except=${[turn.decision.agent]} onChoose=${teach}/>`
      : known.map((name) => html`
      <${Button} key=${name} className="small" onClick=${() => teach(name)}><${Text} text=${name} line=${true}/><//>`)}
    ${!isAsked && html`<${Button} className="small" onClick=${() => other(true)}>other…<//>`}
    <${Button} className="small" onClick=${() => { open(false); other(false); }}>Cancel<//></div>`;
}

export function WhatWasLearnt({ learnt }) {
  return html`<${Card} title="What the router learned" className="learnt"><${Learnt} learnt=${learnt}/><//>`;
}
