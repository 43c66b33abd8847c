// Users with their role, org and owner. For admins.
import { Badge, Button, Field, Text, Time, confirm, html, toast, useState } from '../lib/ui.js';
import { del, me, patch, path, post } from '../lib/api.js';
import { useRefresh } from '../lib/live.js';
import { List, usePages } from '../lib/list.js';
import { FormDialog, Line } from '../lib/form.js';
import { NAME } from './settings_parts.js';
import { Made, NewToken } from './settings_tokens.js';

const ROLES = [['user', 'a person who sends messages and owns agents'], ['agent', 'a program that acts for a user'],
  ['admin', 'sees and changes everything']];

function Role({ value, onChange }) {
  return html`<${Field} label="Role"><select value=${value} onChange=${(e) => onChange(e.target.value)}>
    ${ROLES.map(([id, words]) => html`<option key=${id} value=${id}>${id}: ${words}</option>`)}</select><//>`;
}

/** An agent's user has an owner instead of an org, and is in the owner's org. */
function Belongs({ role, org, owner, setOrg, setOwner }) {
  return html`
    ${role === 'agent' && html`<${Line} label="Owner"
      hint="The user it acts for. It sees what they see. Empty: no owner."
      value=${owner} onInput=${setOwner} pattern=${NAME}/>`}
    ${!(role === 'agent' && owner) && html`<${Line} label="Org"
      hint="Members of an org see each other’s shared agents. Case-sensitive. Empty: no org." value=${org}
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
  return html`<${FormDialog} title="Create a user" action="Create" send=${send} onClose=${onClose}>
    <${Line} label="Name" hint="Letters, digits and . _ @ -. It cannot be changed, and is never reused."
      value=${name} onInput=${setName} pattern=${NAME} required/>
    <${Role} value=${role} onChange=${setRole}/>
    <${Belongs} role=${role} org=${org} owner=${owner} setOrg=${setOrg} setOwner=${setOwner}/><//>`;
}

/** Sends only changed fields, so that another admin's changes stay. */
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
      && html`<p class="note">This is your own account. With a lesser role you cannot open this page any more.</p>`}
    <${Role} value=${role} onChange=${setRole}/>
    <${Belongs} role=${role} org=${org} owner=${owner} setOrg=${setOrg} setOwner=${setOwner}/>
    <div class="phone-only"><div class="actions"><${Button} onClick=${() => act.token(user)}>Create a token for them<//>
      <${Button} kind="danger" onClick=${() => { onClose(); return remove(user,
        act.reload); }}>Remove<//></div></div><//>`;
}

async function remove(user, reload) {
  const isSure = await confirm({
    title: 'Remove this user?', action: 'Remove',
    text: `All tokens of ${user.name}, and of the agents they own, are revoked at once. Their agents and `
      + `accounts stay, and the name is never reused.`,
  });
  if (!isSure) return;
  await del(path`/api/users/${user.name}`);
  toast(`${user.name} was removed.`);
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
  { key: 'owner', title: 'Owner', width: 'minmax(5rem, 1fr)', phone: false,
    render: (u) => (u.owner ? html`<${Text} text=${u.owner} max=${60} line=${true}/>`
      : html`<span class="faint">–</span>`) },
  { key: 'made', title: 'Created', width: '9rem', phone: false, render: (u) => html`<${Time} ms=${u.created_ms}/>` },
  { key: 'do', title: 'Actions', width: '15rem', phone: '5.4rem', align: 'right', render: (u) => html`
    <${Button} className="small not-phone" onClick=${() => act.token(u)}
      aria-label=${`Create a token for ${u.name}`}>Token<//>
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
      <p>People, and programs that act for them. Each signs in with their own token.</p>
      <${Button} kind="main" onClick=${() => setOpen({ what: 'new' })}>Create a user<//></div>
    <${List} pages=${pages} columns=${columns(act)} rowKey=${(u) => u.name} label="Users"/>
    ${open?.what === 'new' && html`<${NewUser} onMade=${onMade} onClose=${close}/>`}
    ${open?.what === 'edit' && html`<${EditUser} user=${open.user} act=${act} onDone=${onDone} onClose=${close}/>`}
    ${open?.what === 'token' && html`<${NewToken} user=${open.user.name} role=${open.user.role} onClose=${close}
      onMade=${(made) => setOpen({ what: 'made', made })}/>`}
    ${open?.what === 'made' && html`<${Made} made=${open.made} onClose=${close}/>`}`;
}
