// Users: who there is, their role, org and owner. For admins.
import { Badge, Button, Field, Text, Time, confirm, html, toast, useState } from '../lib/ui.js';
import { del, me, patch, path, post } from '../lib/api.js';
import { useRefresh } from '../lib/live.js';
import { List, usePages } from '../lib/list.js';
import { FormDialog, Line } from '../lib/form.js';
import { NAME } from './settings_parts.js';
import { Made, NewToken } from './settings_tokens.js';

const ROLES = [['user', 'a person: sends, reads, has agents'], ['agent', 'a program that works for somebody'],
  ['admin', 'may do everything, sees everybody’s']];

function Role({ value, onChange }) {
  return html`<${Field} label="Role"><select value=${value} onChange=${(e) => onChange(e.target.value)}>
    ${ROLES.map(([id, words]) => html`<option key=${id} value=${id}>${id}: ${words}</option>`)}</select><//>`;
}

/** What an agent's user has instead of an org: somebody it works for, whose org it is in. */
function Belongs({ role, org, owner, setOrg, setOwner }) {
  return html`
    ${role === 'agent' && html`<${Line} label="Owner" hint="The user it acts for; it sees what they see. Empty: nobody."
      value=${owner} onInput=${setOwner} pattern=${NAME}/>`}
    ${!(role === 'agent' && owner) && html`<${Line} label="Org"
      hint="Its members see each other’s shared agents. Written exactly so, case too. Empty: none." value=${org}
        onInput=${setOrg} pattern=${NAME}/>`}`;
}

function NewUser({ onMade, onClose }) {
  const [name, setName] = useState('');
  const [role, setRole] = useState('user');
  const [org, setOrg] = useState('');
  const [owner, setOwner] = useState('');
  const send = async () => {
    const isOwned = role === 'agent' && owner.trim();
    onMade(await post('/api/users', {
      name: name.trim(), role, ...(isOwned && { owner: owner.trim() }),
        ...(!isOwned && org.trim() && { org: org.trim() }),
    }));
  };
  return html`<${FormDialog} title="Make a user" action="Make" send=${send} onClose=${onClose}>
    <${Line} label="Name" hint="Letters, digits and . _ @ - ; it stays, and is never given to anybody else."
      value=${name} onInput=${setName} pattern=${NAME} required/>
    <${Role} value=${role} onChange=${setRole}/>
    <${Belongs} role=${role} org=${org} owner=${owner} setOrg=${setOrg} setOwner=${setOwner}/><//>`;
}

/** Only what was changed is sent: what another admin changed meanwhile stays. */
function EditUser({ user, act, onDone, onClose }) {
  const [role, setRole] = useState(user.role);
  const [org, setOrg] = useState(user.owner ? '' : user.org || '');
  const [owner, setOwner] = useState(user.owner || '');
  const send = async () => {
    const isOwned = role === 'agent' && owner.trim();
    const wanted = { role, ...(role === 'agent' && { owner: owner.trim() || null }),
      ...(!isOwned && { org: org.trim() || null }) };
    const before = { role: user.role, owner: user.owner, org: user.owner ? null : user.org };
    const changed = Object.fromEntries(Object.entries(wanted)
      .filter(([key, value]) => value !== (before[key] ?? null)));
    if (Object.keys(changed).length) await patch(path`/api/users/${user.name}`, changed);
    onDone();
  };
  return html`<${FormDialog} title=${html`Change <${Text} text=${user.name} line=${true}/>`} action="Save" send=${send}
    onClose=${onClose}>
    ${user.name === me().user
      && html`<p class="note">This is you: with a lesser role this page is no longer yours to see.</p>`}
    <${Role} value=${role} onChange=${setRole}/>
    <${Belongs} role=${role} org=${org} owner=${owner} setOrg=${setOrg} setOwner=${setOwner}/>
    <div class="phone-only"><div class="actions"><${Button} onClick=${() => act.token(user)}>Make a token for them<//>
      <${Button} kind="danger" onClick=${() => { onClose(); return remove(user,
        act.reload); }}>Remove them<//></div></div><//>`;
}

async function remove(user, reload) {
  const isSure = await confirm({
    title: 'Remove this user?', action: 'Remove',
    text: `All tokens of ${user.name}, and of the agents they own, are revoked at once. Their agents and their `
      + `books stay; the name is never given again.`,
  });
  if (!isSure) return;
  await del(path`/api/users/${user.name}`);
  toast(`${user.name} is removed.`);
  reload();
}

const columns = (act) => [
  { key: 'name', title: 'Name', width: 'minmax(8rem, 1.2fr)', phone: 'minmax(0, 1fr)',
    render: (u) => html`<${Text} text=${u.name} max=${60} line=${true}/>
      ${u.name === me().user && html` <${Badge} tone="good">you<//>`}` },
  { key: 'role', title: 'Role', width: '6rem', phone: '3.6rem', render: (u) => u.role },
  { key: 'org', title: 'Org', width: 'minmax(5rem, 1fr)', phone: false,
    render: (u) => (u.org ? html`<${Text} text=${u.org} max=${60} line=${true}/>`
      : html`<span class="faint">–</span>`) },
  { key: 'owner', title: 'Works for', width: 'minmax(5rem, 1fr)', phone: false,
    render: (u) => (u.owner ? html`<${Text} text=${u.owner} max=${60} line=${true}/>`
      : html`<span class="faint">–</span>`) },
  { key: 'made', title: 'Made', width: '9rem', phone: false, render: (u) => html`<${Time} ms=${u.created_ms}/>` },
  { key: 'do', title: 'Do', width: '15rem', phone: '5.4rem', align: 'right', render: (u) => html`
    <${Button} className="small not-phone" onClick=${() => act.token(u)}
      aria-label=${`Make a token for ${u.name}`}>Token<//>
    <${Button} className="small" onClick=${() => act.edit(u)} aria-label=${`Change ${u.name}`}>Change<//>
    <${Button} className="small not-phone" kind="danger" onClick=${() => remove(u, act.reload)}
      aria-label=${`Remove ${u.name}`}>Remove<//>` },
];

export function Users() {
  const pages = usePages('/api/users');
  const [open, setOpen] = useState(null); // {what: 'new' | 'edit' | 'token' | 'made', …}
  useRefresh(['user.'], pages.reload);
  const close = () => setOpen(null);
  const act = { reload: pages.reload, edit: (user) => setOpen({ what: 'edit', user }),
    token: (user) => setOpen({ what: 'token', user }) };
  const onMade = (user) => { pages.reload(); setOpen({ what: 'token', user }); };
  const onDone = () => { pages.reload(); close(); toast('Saved.'); };
  return html`
    <div class="actions spread">
      <p>People, and programs that call in somebody’s name. Everybody signs in with a token of theirs.</p>
      <${Button} kind="main" onClick=${() => setOpen({ what: 'new' })}>Make a user<//></div>
    <${List} pages=${pages} columns=${columns(act)} rowKey=${(u) => u.name} label="Users"/>
    ${open?.what === 'new' && html`<${NewUser} onMade=${onMade} onClose=${close}/>`}
    ${open?.what === 'edit' && html`<${EditUser} user=${open.user} act=${act} onDone=${onDone} onClose=${close}/>`}
    ${open?.what === 'token' && html`<${NewToken} user=${open.user.name} role=${open.user.role} onClose=${close}
      onMade=${(made) => setOpen({ what: 'made', made })}/>`}
    ${open?.what === 'made' && html`<${Made} made=${open.made} onClose=${close}/>`}`;
}
