// Register or change an agent, with a form or as JSON. The server's problems are
// shown at their fields. A change is a merge patch against the revision that was
// read. When two users edit at once, the second one to save sees what the first
// one changed.
import { Button, Card, Field, Link, Loading, Page, Problem, Tabs, Text, html, toast, useEffect, useRef,
  useState } from '../lib/ui.js';
import { can, get, patch, path, post } from '../lib/api.js';
import { count } from '../lib/format.js';
import { dropDraft, keepDraft, keptDraft } from '../lib/draft.js';
import { applyPatch, changedFields, mergePatch, ownFields } from '../lib/card.js';
import { cardToChange } from '../lib/review.js';
import { CardForm, formOf, isInForm } from './agent_form.js';

const TABS = [{ id: 'form', label: 'Form' }, { id: 'json', label: 'JSON' }];

const emptyCard = () => ({ name: '', description: '', visibility: can('admin') ? 'public' : 'private', skills: [] });

/** before: the card as the server has it; card: as edited. */
function startDraft(before, card = ownFields(before)) {
  return { before, card, errors: {}, problems: [], refusal: null, theirs: null };
}

// Drafts are kept until they are saved or discarded.

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

/** A field commits on blur. Blur it before the browser navigates away, so that Back does not lose its text. */
function useLeavingFields() {
  useEffect(() => {
    const leave = () => document.activeElement?.blur();
    addEventListener('hashchange', leave, { capture: true });
    return () => removeEventListener('hashchange', leave, { capture: true });
  }, []);
}

// Saving.

async function save(draft, isNew) {
  if (isNew) return post('/api/agents', draft.card, { headers: { 'If-None-Match': '*' } });
  const change = mergePatch(ownFields(draft.before), draft.card);
  if (!change) return draft.before;
  return patch(path`/api/agents/${draft.before.name}`, change,
    { headers: { 'If-Match': `"${draft.before.revision}"` } });
}

/** The draft after a refusal. */
async function refused(draft, error, isNew) {
  const problems = error.details?.problems || [];
  const next = { ...draft, problems, refusal: error };
  if (error.status !== 412 || isNew) return next;
  return { ...next, refusal: null, theirs: cardToChange(await get(path`/api/agents/${draft.before.name}`)) };
}

// Review.

/** The message after saving, also if the card waits for review. */
function doneWith(saved, isNew) {
  const done = isNew ? `${saved.name} was registered.` : `${saved.name} was changed.`;
  const state = saved.changed && !can('admin') && saved.review?.state;
  if (state === 'hidden') return 'Saved. It stays hidden until an admin approves it.';
  if (state !== 'waiting') return saved.changed ? done : 'Nothing was changed.';
  return isNew || saved.visibility !== 'public'
    ? `${isNew ? done : 'Saved.'} An admin has to approve it before others see it.`
    : 'Saved. An admin has to approve it before others see the change.';
}

const OF_ADMINS = {
  waiting: 'This is the active card. The card that waits for review stays unchanged.',
  rejected: 'This is the active card. The rejected card stays unchanged.',
  hidden: 'This agent is hidden. It becomes visible once you save it as public or shared.',
};
const OF_CREATORS = {
  waiting: 'This is your card that waits for review, not the active card.',
  rejected: 'This is your card that was rejected. Once you change it, it waits for review again.',
  hidden: 'This agent is hidden, and stays hidden until an admin approves it.',
};

/** Says which card this is, if there are two. */
function Which({ review }) {
  if (!review) return null;
  return html`<p class="note">${(can('admin') ? OF_ADMINS : OF_CREATORS)[review.state]}${review.reason
    && html` Reason: <${Text} text=${review.reason} max=${400}/>`}</p>`;
}

// Two edits at once.

function Conflict({ draft, take, merge }) {
  const { before, theirs, card } = draft;
  const did = changedFields(ownFields(before), ownFields(theirs));
  const mine = changedFields(ownFields(before), card);
  const both = did.filter((f) => mine.includes(f));
  const names = (list) => list.map((f, i) => html`${i > 0 && ', '}
    <code key=${f} class="field-name"><${Text} text=${f} max=${60} line=${true}/></code>`);
  return html`<div class="problem"
    role="alert">
      <p><strong>Someone else has changed this agent in the meantime.</strong> It is now at revision
        ${' '}${theirs.revision}; you started from ${before.revision}. Your changes are not saved yet.</p>
    <p>They changed ${did.length ? names(did) : 'nothing that the card shows'}; you changed ${mine.length ? names(mine)
      : 'nothing'}.${both.length > 0 && html` Both of you changed ${names(both)}.`}</p>
    <div class="actions"><${Button} kind="main" onClick=${merge}>Apply my changes to theirs<//>
      <${Button} onClick=${take}>Discard my changes<//></div></div>`;
}

// Problems that no field of the form shows.
function Elsewhere({ draft, tab }) {
  const rest = draft.problems.filter((p) => tab === 'json' || !isInForm(p.pointer));
  if (!draft.refusal) return null;
  if (!draft.problems.length) return html`<${Problem} error=${draft.refusal}/>`;
  const n = draft.refusal.details.total ?? draft.problems.length;
  return html`<div class="problem"
    role="alert"><p>The server rejected the card: ${count(n, 'problem')}${
      rest.length < draft.problems.length ? ', shown at the fields below' : ''}.</p>
    ${rest.length > 0
      && html`<ul>${rest.map((p, i) => html`<li key=${i}><code>
        <${Text} text=${p.pointer || '/'} max=${200} line=${true}/></code> <${Text} text=${p.message}
          max=${400}/></li>`)}</ul>`}</div>`;
}

function JsonEditor({ text, setText, error }) {
  return html`<${Field} label="Card" error=${error}
    hint="docs/protocol.md describes the format. Fields that you leave out are removed.">
    <textarea class="code-input" rows="24" spellcheck=${false} value=${text}
      onInput=${(e) => setText(e.target.value)}></textarea><//>`;
}

function read(text) {
  let card;
  try {
    card = JSON.parse(text);
  } catch (e) {
    throw new Error(`This is not valid JSON: ${e.message}`);
  }
  if (typeof card !== 'object' || card === null || Array.isArray(card))
    throw new Error('A card is a JSON object: {"name": …}');
  return ownFields(card);
}

const shown = (card) => JSON.stringify(card, null, 2);

/** The draft, the open tab, and the text of the JSON tab. Each change is kept at once. */
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

  // On the JSON tab, the text becomes the draft.
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
    if (Object.keys(what.errors).length) return toast('Correct the marked fields first.', 'bad');
    try {
      const saved = await save(what, isNew);
      dropDraft(keptAs(name));
      toast(doneWith(saved, isNew));
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
  // Only our own changes are sent, so the others keep theirs.
  const merge = () => {
    const theirs = ownFields(draft.theirs);
    const mine = mergePatch(ownFields(draft.before), draft.card) || {};
    const next = startDraft(draft.theirs, applyPatch(theirs, mine));
    become(next);
    return send(next);
  };
  // Errors are shown at the top, and the save button is at the bottom.
  const top = useRef(null);
  useEffect(() => { if (draft.theirs || draft.refusal) top.current.scrollIntoView({ block: 'start' }); },
    [draft.theirs, draft.refusal]);
  return html`<form class="form" ref=${top} onSubmit=${(e) => e.preventDefault()} novalidate>
    ${draft.theirs && html`<${Conflict} draft=${draft} take=${take} merge=${merge}/>`}
    <${Elsewhere} draft=${draft} tab=${tab}/>
    <${Tabs} tabs=${TABS} current=${tab} onChange=${turn} label="Editor"/>
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
  // Read once: later changes are reported on saving.
  const load = () => {
    if (isNew) return setFound({ start: startDraft(null, emptyCard()) });
    return get(path`/api/agents/${name}`).then(
      (card) => setFound({ start: startDraft(cardToChange(card)), review: card.review }),
      (error) => setFound({ error }));
  };
  const discard = async () => { dropDraft(keptAs(name)); await load(); again(round + 1); };
  useEffect(() => { if (!found) load(); }, []);
  const title = isNew ? 'Register an agent' : `Edit ${name}`;
  return html`<${Page} title=${title}
    lead=${isNew ? 'Its name, skills and address. A program that connects by itself can register its own card instead.'
      : ''}>
    <p class="crumb"><${Link} to="/agents">All agents<//>${!isNew
      && html` › <${Link} to=${path`/agents/${name}`}><${Text} text=${name} max=${128} line=${true}/><//>`}</p>
    ${found?.error && html`<${Problem} error=${found.error} onRetry=${load}/>`}
    ${!found && html`<${Loading}/>`}
    ${found?.isKept && html`<div class="note spread" role="status">
      <span>These are your unsaved changes from before.</span> <${Button} className="small"
        onClick=${discard}>Discard<//></div>`}
    <${Which} review=${found?.review}/>
    ${found?.start && html`<${Editor} key=${round} found=${found} name=${name} go=${go}/>`}<//>`;
}
