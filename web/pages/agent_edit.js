// Register an agent, or change one: a form, or the card as JSON. What the
// server finds wrong is said at its field. A change is a merge patch against
// the revision that was read: who was second is shown what the first one did.
import { Button, Card, Field, Link, Loading, Page, Problem, Tabs, Text, html, toast, useEffect, useRef,
  useState } from '../lib/ui.js';
import { can, get, patch, path, post } from '../lib/api.js';
import { count } from '../lib/format.js';
import { dropDraft, keepDraft, keptDraft } from '../lib/draft.js';
import { applyPatch, changedFields, mergePatch, ownFields } from '../lib/card.js';
import { CardForm, formOf, isInForm } from './agent_form.js';

const TABS = [{ id: 'form', label: 'Form' }, { id: 'json', label: 'JSON' }];

const emptyCard = () => ({ name: '', description: '', visibility: can('admin') ? 'public' : 'private', skills: [] });

/** before: as the server had it; card: as it is to be. */
function startDraft(before, card = ownFields(before)) {
  return { before, card, errors: {}, problems: [], refusal: null, theirs: null };
}

// What was typed, until it is saved or dropped.

const keptAs = (name) => `agent.${name ?? ''}`;
const untouched = (draft) => shown(draft.before ? ownFields(draft.before) : emptyCard());

function keep(name, draft, tab, text) {
  if ((tab === 'json' ? text : shown(draft.card)) === untouched(draft)) dropDraft(keptAs(name));
  else keepDraft(keptAs(name), { before: draft.before, card: draft.card, tab, ...(tab === 'json' && { text }) });
}

function keptStart(name) {
  const kept = keptDraft(keptAs(name));
  return kept && { start: startDraft(kept.before, kept.card), tab: kept.tab, text: kept.text, isKept: true };
}

/** A field counts once it is left: so it is, by the keys of the browser too, before the page goes. */
function useLeavingFields() {
  useEffect(() => {
    const leave = () => document.activeElement?.blur();
    addEventListener('hashchange', leave, { capture: true });
    return () => removeEventListener('hashchange', leave, { capture: true });
  }, []);
}

// On the way to the server.

async function save(draft, isNew) {
  if (isNew) return post('/api/agents', draft.card, { headers: { 'If-None-Match': '*' } });
  const change = mergePatch(ownFields(draft.before), draft.card);
  if (!change) return draft.before;
  return patch(path`/api/agents/${draft.before.name}`, change,
    { headers: { 'If-Match': `"${draft.before.revision}"` } });
}

/** What the refusal means for the draft. */
async function refused(draft, error, isNew) {
  const problems = error.details?.problems || [];
  const next = { ...draft, problems, refusal: error };
  if (error.status !== 412 || isNew) return next;
  return { ...next, refusal: null, theirs: await get(path`/api/agents/${draft.before.name}`) };
}

// Two at once.

function Conflict({ draft, take, merge }) {
  const { before, theirs, card } = draft;
  const did = changedFields(ownFields(before), ownFields(theirs));
  const mine = changedFields(ownFields(before), card);
  const both = did.filter((f) => mine.includes(f));
  const names = (list) => list.map((f, i) => html`${i > 0 && ', '}
    <code key=${f} class="field-name"><${Text} text=${f} max=${60} line=${true}/></code>`);
  return html`<div class="problem"
    role="alert">
      <p><strong>Somebody else has changed this agent meanwhile.</strong> It is revision ${theirs.revision} by now, and
        you began with ${before.revision}. Nothing of yours was saved yet.</p>
    <p>They changed ${did.length ? names(did) : 'nothing that the card shows'}; you ${mine.length ? names(mine)
      : 'nothing'}.${both.length > 0 && html` Both of you: ${names(both)}.`}</p>
    <div class="actions"><${Button} kind="main" onClick=${merge}>Keep my changes on top of theirs<//>
      <${Button} onClick=${take}>Take theirs, drop mine<//></div></div>`;
}

// What is wrong at no field of the form.
function Elsewhere({ draft, tab }) {
  const rest = draft.problems.filter((p) => tab === 'json' || !isInForm(p.pointer));
  if (!draft.refusal) return null;
  if (!draft.problems.length) return html`<${Problem} error=${draft.refusal}/>`;
  const n = draft.refusal.details.total ?? draft.problems.length;
  return html`<div class="problem"
    role="alert"><p>The server does not take it: ${count(n, 'thing is',
      'things are')} wrong${rest.length < draft.problems.length ? ', said at the fields below' : ''}.</p>
    ${rest.length > 0
      && html`<ul>${rest.map((p, i) => html`<li key=${i}><code>
        <${Text} text=${p.pointer || '/'} max=${200} line=${true}/></code> <${Text} text=${p.message}
          max=${400}/></li>`)}</ul>`}</div>`;
}

function JsonEditor({ text, setText, error }) {
  return html`<${Field} label="The card" error=${error}
    hint="As docs/protocol.md has it. What is left out is taken away.">
    <textarea class="code-input" rows="24" spellcheck=${false} value=${text}
      onInput=${(e) => setText(e.target.value)}></textarea><//>`;
}

function read(text) {
  let card;
  try {
    card = JSON.parse(text);
  } catch (e) {
    throw new Error(`This is no JSON: ${e.message}`);
  }
  if (typeof card !== 'object' || card === null || Array.isArray(card))
    throw new Error('A card is a JSON object: {"name": …}');
  return ownFields(card);
}

const shown = (card) => JSON.stringify(card, null, 2);

/** The draft, which of its two forms is open, and the text of the second; each change is kept at once. */
function useDraft(name, { start, tab = 'form', text = shown(start.card) }) {
  const [state, setState] = useState({ draft: start, tab, text });
  const latest = useRef(state);
  const put = (more) => {
    latest.current = { ...latest.current, ...more };
    keep(name, latest.current.draft, latest.current.tab, latest.current.text);
    setState(latest.current);
  };
  return {
    ...state, put,
    change: (next) => put({ draft: typeof next === 'function' ? next(latest.current.draft) : next }),
    setTab: (to) => put({ tab: to }), setText: (words) => put({ text: words }),
  };
}

function Editor({ found, name, go }) {
  const isNew = name === undefined;
  const { draft, tab, text, put, change, setTab, setText } = useDraft(name, found);
  const [wrongText, setWrongText] = useState('');
  useLeavingFields();

  // The text becomes the draft where it is what counts.
  const settle = () => {
    if (tab === 'form') return draft;
    const next = { ...draft, card: read(text), errors: {} };
    change(next);
    return next;
  };
  const turn = (to) => {
    try {
      const next = settle();
      if (to === 'json') setText(shown(next.card));
      setWrongText('');
      setTab(to);
    } catch (e) {
      setWrongText(e.message);
    }
  };
  const send = async (what) => {
    if (Object.keys(what.errors).length) return toast('Mend what is marked first.', 'bad');
    try {
      const saved = await save(what, isNew);
      dropDraft(keptAs(name));
      toast(saved.changed ? `${saved.name} is ${isNew ? 'registered' : 'changed'}.` : 'Nothing was changed.');
      return go(path`/agents/${saved.name}`);
    } catch (error) {
      return change(await refused(what, error, isNew));
    }
  };
  const submit = () => {
    setWrongText('');
    try {
      return send(settle());
    } catch (e) {
      return setWrongText(e.message);
    }
  };
  const become = (next) => put({ draft: next, text: shown(next.card) });
  const take = () => become(startDraft(draft.theirs));
  // What they changed and we did not stays theirs: only our own changes are sent.
  const merge = () => {
    const theirs = ownFields(draft.theirs);
    const mine = mergePatch(ownFields(draft.before), draft.card) || {};
    const next = startDraft(draft.theirs, applyPatch(theirs, mine));
    become(next);
    return send(next);
  };
  // What was refused is said at the top; who saved is at the bottom.
  const top = useRef(null);
  useEffect(() => { if (draft.theirs || draft.refusal) top.current.scrollIntoView({ block: 'start' }); },
    [draft.theirs, draft.refusal]);
  return html`<form class="form" ref=${top} onSubmit=${(e) => e.preventDefault()} novalidate>
    ${draft.theirs && html`<${Conflict} draft=${draft} take=${take} merge=${merge}/>`}
    <${Elsewhere} draft=${draft} tab=${tab}/>
    <${Tabs} tabs=${TABS} current=${tab} onChange=${turn} label="How to edit the card"/>
    <${Card}>${tab === 'form' ? html`<${CardForm} key=${draft.before?.revision} form=${formOf(draft, change)}
      isNew=${isNew}/>` : html`<${JsonEditor} text=${text} setText=${setText} error=${wrongText}/>`}<//>
    <div class="actions"><${Button} kind="main" type="submit" onClick=${submit}>${isNew ? 'Register' : 'Save'}<//>
      <${Link} to=${isNew ? '/agents' : path`/agents/${draft.before.name}`} class="button"
        onClick=${() => dropDraft(keptAs(name))}>Cancel<//></div>
  </form>`;
}

export default function AgentEdit({ name, go }) {
  const [found, setFound] = useState(() => keptStart(name));
  const [round, again] = useState(0);
  const isNew = name === undefined;
  // Read once: what happens to it meanwhile is told when it is saved.
  const load = () => {
    if (isNew) return setFound({ start: startDraft(null, emptyCard()) });
    return get(path`/api/agents/${name}`).then((card) => setFound({ start: startDraft(card) }),
      (error) => setFound({ error }));
  };
  const discard = async () => { dropDraft(keptAs(name)); await load(); again(round + 1); };
  useEffect(() => { if (!found) load(); }, []);
  const title = isNew ? 'Register an agent' : `Edit ${name}`;
  return html`<${Page} title=${title}
    lead=${isNew ? 'What it is called, what it can do, and how it is reached. A program that connects itself can '
      + 'say all this too.' : ''}>
    <p class="crumb"><${Link} to="/agents">All agents<//>${!isNew
      && html` › <${Link} to=${path`/agents/${name}`}><${Text} text=${name} max=${128} line=${true}/><//>`}</p>
    ${found?.error && html`<${Problem} error=${found.error} onRetry=${load}/>`}
    ${!found && html`<${Loading}/>`}
    ${found?.isKept && html`<div class="note spread" role="status">
      <span>This is what you had typed before, and have not saved.</span> <${Button} className="small"
        onClick=${discard}>Discard it<//></div>`}
    ${found?.start && html`<${Editor} key=${round} found=${found} name=${name} go=${go}/>`}<//>`;
}
