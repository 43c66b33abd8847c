// One agent: its card, state, figures, recent work and visibility, and the actions
// on it.
import { Badge, Button, Card, Copy, Facts, Link, Loading, Page, Problem, State, Text, Time, Age, confirm, html, toast,
  useGet, useState } from '../lib/ui.js';
import { can, del, me, path, post } from '../lib/api.js';
import { useRefresh } from '../lib/live.js';
import { count, money } from '../lib/format.js';
import { ReviewBadges } from '../lib/review.js';
import { useEvery } from '../lib/timers.js';
import { Hour, Now } from './agent_figures.js';
import { Recent, isAbout } from './agent_recent.js';
import { Hide, Report, Reports, Review } from './agent_review.js';

const REFRESH_MS = 15000; // the feed omits the tasks of other users, and the last hour moves on

/** What the user may do with it. Its creator and admins may change it, unless it comes from the configuration. */
function rightsOf(card) {
  const isAdmin = can('admin');
  const isMine = isAdmin || (!!card.creator_id && card.creator_id.toLowerCase() === me()?.user.toLowerCase());
  const mayAct = isMine && can('agents');
  return {
    isMine,
    mayChange: mayAct && !!card.creator_id,
    mayHide: isAdmin && !!card.creator_id && card.review?.state !== 'hidden',
    mayReport: !isMine && can('send'),
    mayPause: mayAct,
    mayWake: mayAct && !!card.wake?.url,
    mayRestart: mayAct && (/^process:/.test(card.url) || !!card.restart?.command || !!card.wake?.url),
  };
}

// Actions.

function Actions({ card, figures, reload, go }) {
  const rights = rightsOf(card);
  const isPaused = figures?.paused ?? card.paused;
  const say = async (what, done) => {
    const now = await post(path`/api/agents/${card.name}/${what}`);
    toast(`${card.name} ${done}. State: ${now.state}.`);
    reload();
  };
  const pause = async () => {
    const sure = await confirm({ title: `Pause ${card.name}?`, action: 'Pause it', kind: 'main',
      text: 'It gets no new tasks until someone resumes it. Tasks in flight continue; messages for it are accepted and '
        + 'wait. A restart of the server does not end the pause.' });
    return sure && say('pause', 'is paused');
  };
  const restart = async () => {
    const sure = await confirm({ title: `Restart ${card.name}?`, action: 'Restart it', kind: 'main',
      text: 'Its tasks in flight are delivered to it again afterwards.' });
    return sure && say('restart', 'was restarted');
  };
  const remove = async () => {
    const sure = await confirm({ title: `Remove ${card.name}?`, action: 'Remove it',
      text: 'Its card and its grants are deleted, and anyone can take its name. Its open tasks wait for an agent of '
        + 'that name until their deadline.' });
    if (!sure) return;
    await del(path`/api/agents/${card.name}`, { headers: { 'If-Match': `"${card.revision}"` } });
    toast(`${card.name} was removed.`);
    go('/agents');
  };
  return html`
    ${can('send') && html`<${Button} onClick=${() => go(path`/agents/${card.name}/wins`)}>Test routing<//>`}
    ${rights.mayWake && html`<${Button} onClick=${() => say('wake', 'was woken')}>Wake<//>`}
    ${rights.mayRestart && html`<${Button} onClick=${restart}>Restart<//>`}
    ${rights.mayPause && (isPaused
      ? html`<${Button} kind="main" onClick=${() => say('resume', 'was resumed')}>Resume<//>`
      : html`<${Button} onClick=${pause}>Pause<//>`)}
    ${rights.mayReport && html`<${Report} card=${card}/>`}
    ${rights.mayHide && html`<${Hide} card=${card} reload=${reload}/>`}
    ${rights.mayChange && html`<${Button} onClick=${() => go(path`/agents/${card.name}/edit`)}>Edit<//>
      <${Button} kind="danger" onClick=${remove}>Remove<//>`}`;
}

// Parts of the page.

function Paused({ figures }) {
  if (!figures?.paused) return null;
  return html`<p class="note" role="status">Paused${figures.paused_by
    && html` by <${Text} text=${figures.paused_by} max=${60} line=${true}/>`}${
    figures.paused_ms && html`, since <${Time} ms=${figures.paused_ms}/> (<${Age}
      ms=${figures.paused_ms}/>)`}. It gets no new tasks; messages for it wait.</p>`;
}

const line = (text, max = 400) => (text ? html`<${Text} text=${text} max=${max}/>` : null);

function About({ card }) {
  const { routing = {}, limits = {}, provider = {} } = card;
  return html`<${Card} title="Details"><p><${Text} text=${card.description} max=${1200}/></p><${Facts} facts=${[
    ['Address', html`<code><${Text} text=${card.url} max=${300}/></code>`],
    ['Version', line(card.version)],
    ['Price', card.pricing ? `${money(card.pricing.amount_micros)} per call` : null],
    ['Keywords', routing.keywords?.length ? html`<${Words} list=${routing.keywords}/>` : null],
    ['Routable', routing.routable === false ? 'no: only messages that name it' : 'yes'],
    ['System prompt', line(routing.system_prompt, 300)],
    ['In-flight limit', limits.in_flight],
    ['Queue limit', limits.queue],
    ['Priority', limits.priority],
    ['Backup', card.backup ? html`<a href=${`#/agents/${encodeURIComponent(card.backup)}`}>
      <${Text} text=${card.backup} max=${128} line=${true}/></a>` : null],
    ['Provider', line(provider.organization)],
    ['Embedded', card.embedded ? 'yes' : 'not yet: matched by its words only'],
    ['Registered', html`<${Time} ms=${card.created_ms}/>`],
    ['Changed', html`<${Time} ms=${card.updated_ms}/>, revision ${card.revision}`],
  ]}/><//>`;
}

export function Words({ list }) {
  return html`<span
    class="tags">
      ${list.map((t) => html`<span key=${t} class="tag"><${Text} text=${t} max=${64} line=${true}/></span>`)}</span>`;
}

function Skills({ card }) {
  const skills = card.skills || [];
  return html`<${Card} title=${skills.length ? count(skills.length, 'skill') : 'No skills'}>
    ${!skills.length
      && html`<p class="faint">It is matched by its description only. Skills with examples improve matching.</p>`}
    <ul class="skills">${skills.slice(0, 100).map((s) => html`<li key=${s.id}>
      <h3><${Text} text=${s.name} max=${128} line=${true}/> <code
        class="faint"><${Text} text=${s.id} max=${128} line=${true}/></code>
          ${s.pricing && html` <${Badge} tone="accent">${money(s.pricing.amount_micros)}<//>`}</h3>
      ${s.description && html`<p><${Text} text=${s.description} max=${400}/></p>`}
      ${s.tags?.length > 0 && html`<${Words} list=${s.tags}/>`}
      ${s.examples?.length > 0 && html`<ul class="examples">
        ${s.examples.map((x) => html`<li key=${x}>“<${Text} text=${x} max=${200}/>”</li>`)}</ul>`}
    </li>`)}</ul>
      ${skills.length > 100 && html`<p class="faint">and ${skills.length - 100} more in the card below</p>`}<//>`;
}

const SEES = {
  public: 'everyone who may call this server.', private: 'its creator and admins.',
  shared: 'its creator, the members of its org, users and orgs with a grant, and admins.',
};

function Seen({ card }) {
  const { isMine } = rightsOf(card);
  const grants = useGet(isMine ? '/api/grants' : '', { agent: card.name, limit: 100 });
  useRefresh(['grant.'], grants.reload);
  const list = grants.data?.items || [];
  return html`<${Card} title="Visibility"><${Facts} facts=${[
    ['Visible to', html`<strong>${card.visibility}</strong>: ${SEES[card.visibility]}`],
    ['Creator', card.creator_id ? line(card.creator_id) : 'the configuration'],
    ['Org', card.org ? line(card.org) : 'none'],
    ['Kind', card.kind],
  ]}/>
    ${grants.error && html`<${Problem} error=${grants.error} onRetry=${grants.reload}/>`}
    ${list.length > 0 && html`<h3>Granted to</h3><ul class="plain-list">
      ${list.map((g) => html`<li key=${g.id}>${g.user ? 'user' : 'org'} <${Text} text=${g.user || g.org} max=${128}
        line=${true}/>${
      g.expires_ms && html` <span class="faint">until <${Time} ms=${g.expires_ms}/></span>`}</li>`)}</ul>`}
    ${isMine && html`<p>
      <${Link} to=${path`/settings/grants?agent=${card.name}`}>Manage the grants<//> in the settings.</p>`}<//>`;
}

function Raw({ card }) {
  const text = JSON.stringify(card, null, 2);
  return html`<${Card} title="Card" actions=${html`<${Copy} text=${text}/>`}>
    <details><summary>As JSON, ${count(text.split('\n').length, 'line')}</summary>
    <pre tabindex="0" aria-label="The card as JSON"><${Text} text=${text} max=${40000}/></pre></details><//>`;
}

// The reason for its state, unless the figures already show a newer state.
function Reason({ card, figures }) {
  if (!card.state_reason || (figures && figures.state !== card.state)) return null;
  return html`<p class="agent-reason">It is ${card.state}: <${Text} text=${card.state_reason} max=${500}/></p>`;
}

function Warnings({ card }) {
  const list = card.warnings || [];
  if (!list.length) return null;
  return html`<${Card} title="Warnings"><ul class="plain-list">${list.map((w) => html`<li
    key=${w.code + w.field}><${Badge} tone="warn">${w.field}<//>
    <${Text} text=${w.message} max=${500}/></li>`)}</ul><//>`;
}

export default function Agent({ name, go }) {
  const found = useGet(path`/api/agents/${name}`);
  const now = useGet(path`/api/agents/${name}/figures`);
  const [, tick] = useState(0);
  const reload = () => { found.reload(); now.reload(); };
  useRefresh(['agent.'], reload, 1000, isAbout(name));
  useRefresh(['task.', 'gate.'], now.reload, 1000, isAbout(name));
  useEvery(REFRESH_MS, () => { now.reload(); tick((n) => n + 1); });
  const card = found.data;
  if (found.error?.code === 'agent_not_found') return html`<${Gone} name=${name} error=${found.error}/>`;
  if (found.error && !card) return html`<${Page} title="Agent">
    <${Problem} error=${found.error} onRetry=${reload}/><//>`;
  if (!card) return html`<${Loading}/>`;
  const figures = now.data;
  return html`<${Page} title=${card.title || card.name} lead=${html`<span
    class="agent-lead">${card.title && html`<code><${Text} text=${card.name} max=${128}/></code> `}
      <${State} state=${figures?.state || card.state}/>${
      (figures?.paused ?? card.paused) && html` <${Badge} tone="warn">paused<//>`} <${Badge}>
        ${card.visibility}<//><${ReviewBadges} state=${card.review?.state} reports=${card.reports}/></span>`}
      actions=${html`<${Actions} card=${card} figures=${figures} reload=${reload} go=${go}/>`}>
    <p class="crumb"><${Link} to="/agents">All agents<//></p>
    ${card.review && html`<${Review} card=${card} reload=${reload}/>`}
    ${card.reports > 0 && can('admin') && html`<${Reports} card=${card} reload=${reload}/>`}
    <${Paused} figures=${figures}/>
    <${Reason} card=${card} figures=${figures}/>
    <${Warnings} card=${card}/>
    ${now.error && html`<${Problem} error=${now.error} onRetry=${now.reload}/>`}
    ${figures && html`<${Now} figures=${figures}/><${Hour} figures=${figures}/>`}
    <div class="agent-parts"><div><${About} card=${card}/><${Seen} card=${card}/></div><${Skills} card=${card}/></div>
    <${Recent} name=${card.name}/>
    <${Raw} card=${card}/>
  <//>`;
}

// An invisible agent looks like one that does not exist, so no more can be said.
function Gone({ name, error }) {
  const nearest = error.details?.nearest || [];
  return html`<${Page} title="Agent not found"><p><${Text} text=${name} max=${128}
    line=${true}/> does not exist, was removed, or is not visible to you.</p>
    ${nearest.length > 0
      && html`<p>Similar names: ${nearest.map((n) => html`<a key=${n} class="name"
        href=${`#/agents/${encodeURIComponent(n)}`}><${Text} text=${n} max=${128} line=${true}/></a> `)}</p>`}
    <p><${Link} to="/agents">All agents<//></p><//>`;
}
