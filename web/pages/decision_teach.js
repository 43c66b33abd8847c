// Feedback on a decision (right, wrong, or an override to another agent) and its
// effect; and the same message decided again now.
import { Button, Card, Field, Link, Name, Problem, Text, html, toast, useState } from '../lib/ui.js';
import { can, get, me, path, post } from '../lib/api.js';
import { Candidates, Verdict } from '../lib/candidates.js';
import { OtherAgent } from '../lib/choice.js';
import { Learnt, decideAgain, lookAgain, scoreOf } from '../lib/learnt.js';
import { num } from '../lib/format.js';

const OFFERED = 6, COMPARED = 8;

const KEPT_BYTES = 1024; // of a message, in its decision's record

/** Whether the record may be cut. It is cut between characters, up to 3 bytes early. */
export const mayBeCut = (d) => new TextEncoder().encode(d.text || '').length > KEPT_BYTES - 4;

/** The whole message, from its task if the record is cut. */
async function wholeText(d) {
  if (!mayBeCut(d)) return d.text;
  const task = d.task_id && await get(path`/api/tasks/${d.task_id}`).catch(() => null);
  const turn = task?.turn === d.turn ? task : task?.turns?.find((t) => t.turn === d.turn);
  if (!turn?.text?.startsWith(d.text))
    throw new Error(`The record has only the first ${KEPT_BYTES} bytes of this message, and its task no longer has the `
      + `rest. A part of the message could be decided differently.`);
  return turn.text;
}

export function Judge({ d, onSaid }) {
  const [learnt, setLearnt] = useState(null);
  const [isWide, widen] = useState(false);
  const [comment, setComment] = useState('');
  const [sent, setSent] = useState(null);
  if (!can('send')) return null;
  const others = (d.candidates || []).map((c) => c.agent).filter((name) => name !== d.agent).slice(0, OFFERED);
  const body = (more) => ({ ...more, ...(comment.trim() && { comment: comment.trim() }) });
  const say = async (verdict) => {
    const said = await post(path`/api/decisions/${d.id}/feedback`, body({ verdict }));
    toast(said.recorded ? `Feedback recorded: ${verdict}.` : 'This feedback was already recorded.');
    onSaid();
  };
  const correct = async (agent, more) => {
    const said = await post(path`/api/decisions/${d.id}/override`, body({ agent, ...more }));
    toast(`${said.overridden_to ? `Overridden to ${said.overridden_to}.` : 'Override removed.'}${said.switched
      ? ' The conversation continues with it.' : ''}${!more?.send ? '' : said.sent === false
      ? ' The message had already been sent, and was not sent again.' : ' The message was sent to it.'}`);
    if (said.task_id && more?.send) setSent(said.task_id);
    const to = said.overridden_to || d.agent;
    setLearnt(await wholeText(d).then((text) => lookAgain(d, to, text),
      () => ({ text: d.text, to, then: d, now: null })));
    onSaid();
  };
  if (!d.agent) return html`<${Redirect} d=${d} others=${others} learnt=${learnt} sent=${sent}
    correct=${correct}/>`;
  return html`<${Card} title="Was that right?">
    <div class="actions"><${Button} onClick=${() => say('right')} aria-pressed=${d.verdict === 'positive'}>✓ Right<//>
      <${Button} onClick=${() => say('wrong')} aria-pressed=${d.verdict === 'negative' && !d.overridden_to}>✗ Wrong<//>
      ${d.overridden_to && html`<${Button} onClick=${() => correct(d.agent)}>Remove the override<//>`}</div>
    <p class="choices-head">It should have gone to</p>
    <div class="choices" role="group" aria-label="Which agent should have received it?">${others.map((name) => html`
      <${Button} key=${name} className="small" aria-pressed=${d.overridden_to === name}
        onClick=${() => correct(name)}><${Text} text=${name} max=${40} line=${true}/><//>`)}
      <button type="button" class="link" aria-expanded=${isWide}
        onClick=${() => widen(!isWide)}>${others.length ? 'other…' : 'choose…'}</button></div>
    ${isWide && html`<${OtherAgent} except=${[d.agent]} onChoose=${correct}/>
      <${Field} label="Comment (shown in the feed)"><input value=${comment} maxlength="160"
        onInput=${(e) => setComment(e.target.value)}/><//>`}
    <${Learnt} learnt=${learnt}/>
  <//>`;
}

/** For a message that no agent got: override it to an agent, and optionally send it. */
function Redirect({ d, others, learnt, sent, correct }) {
  const [isWide, widen] = useState(false);
  const [isWanted, setWanted] = useState(true);
  // Only its requester can send it, once, and only the whole message.
  const maySend = !d.task_id && d.requester === me()?.user && !mayBeCut(d);
  const sends = maySend && isWanted;
  const choose = (agent) => correct(agent, sends && { send: true });
  return html`<${Card} title="Which agent should have received it?">
    <p class="hint">The router learns from your answer. Without one, it will refuse this message again.</p>
    ${maySend && html`<label class="check"><input type="checkbox" checked=${isWanted}
      onChange=${(e) => setWanted(e.target.checked)}/>${' '}and send the message to it</label>`}
    <p class="choices-head">It should have gone to</p>
    <div class="choices" role="group" aria-label="Which agent should have received it?">${others.map((name) => html`
      <${Button} key=${name} className="small" aria-pressed=${d.overridden_to === name}
        onClick=${() => choose(name)}><${Text} text=${name} max=${40} line=${true}/><//>`)}
      <button type="button" class="link" aria-expanded=${isWide}
        onClick=${() => widen(!isWide)}>${others.length ? 'other…' : 'choose…'}</button></div>
    ${isWide && html`<${OtherAgent} action=${sends ? 'Override and send' : 'Override'} onChoose=${choose}/>`}
    ${sent && html`<p role="status">Sent. <${Link} to=${`/tasks/${encodeURIComponent(sent)}`}>Open the task<//></p>`}
    <${Learnt} learnt=${learnt}/>
  <//>`;
}

const signed = (change) => (Math.abs(change) < 0.0005 ? '0.000' : `${change > 0 ? '+' : ''}${num(change, 3)}`);

/** All scores then and now, sorted by now. */
function Compared({ then, now }) {
  const names = [...new Set([...now.candidates, ...(then.candidates || [])].map((c) => c.agent))].slice(0, COMPARED);
  const mark = (decision, agent) => (decision.agent === agent
    ? html`<span class="chosen-mark" title="chosen" aria-label="chosen">➜ </span>` : '');
  return html`<table
    class="compared">
      <caption class="off-screen">Scores then and now; an arrow marks the chosen agent</caption>
    <thead><tr><th scope="col">Agent</th><th scope="col" class="right">then</th><th scope="col" class="right">now</th>
      <th scope="col" class="right">change</th></tr></thead>
    <tbody>${names.map((agent) => {
      const before = scoreOf(then, agent), after = scoreOf(now, agent);
      const change = before === undefined || after === undefined ? '–' : signed(after - before);
      return html`<tr key=${agent}><th scope="row"><${Name} agent=${agent}/></th>
        <td class="right">${mark(then, agent)}${num(before, 3)}</td>
          <td class="right">${mark(now, agent)}${num(after, 3)}</td><td class="right">${change}</td></tr>`;
    })}</tbody></table>`;
}

/** Decide the same message again, with the current agents, settings and learning. */
export function TryAgain({ d }) {
  const [now, setNow] = useState(null);
  const [error, setError] = useState(null);
  if (!can('send') || !d.text) return null;
  const again = () => wholeText(d).then((text) => decideAgain(d, text))
    .then((found) => { setNow(found); setError(null); }, (e) => { setError(e); setNow(null); });
  return html`<${Card} title="Then and now" actions=${html`<${Button}
    onClick=${again}>${now ? 'Decide once more' : 'Decide again now'}<//>`}>
    ${error && html`<${Problem} error=${error}/>`}
    ${!now && !error
      && html`<p class="hint">Which agent would get this message from you now, with the current agents, settings and
        learning. Nothing is sent.</p>`}
    ${now && html`<div class="then-now" role="status">
        <div><h3>Then</h3><${Verdict} decision=${d}/></div><div><h3>Now</h3>
          <${Verdict} decision=${now} isTrial=${true}/></div></div>
      ${(now.candidates || []).length > 0 && html`<${Compared} then=${d} now=${now}/>
        <details><summary>Current signals</summary><${Candidates} decision=${now} limit=${8}/></details>`}`}
  <//>`;
}
