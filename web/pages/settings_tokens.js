// Tokens: the user's own, and all tokens for admins. A token is shown once.
import { Badge, Button, Command, Copy, Dialog, Text, Time, confirm, html, toast, useState } from '../lib/ui.js';
import { can, del, me, path, post, signOut } from '../lib/api.js';
import { useRefresh } from '../lib/live.js';
import { List, usePages } from '../lib/list.js';
import { marked } from '../lib/format.js';
import { Exact, filtersAt } from '../lib/filters.js';
import { FormDialog, Line } from '../lib/form.js';
import { Expires, Lasts, NAME } from './settings_parts.js';

const SCOPES = [
  ['send', 'send messages, correct decisions'],
  ['read', 'see agents, tasks, decisions and the feed'],
  ['agents', 'register, change, wake and pause agents'],
  ['escalations', 'decide escalations'],
  ['ledger', 'see all accounts, top up, refund, pay out'],
  ['admin', 'manage users, all tokens and the configuration'],
];
const OF_ROLE = { admin: SCOPES.map(([id]) => id), user: ['send', 'read', 'agents'], agent: ['send', 'read'] };

function Scopes({ offered, chosen, onChange }) {
  const flip = (id) => onChange(chosen.includes(id) ? chosen.filter((s) => s !== id) : [...chosen, id]);
  return html`<fieldset class="choice"><legend>Scopes</legend>
    ${SCOPES.filter(([id]) => offered.includes(id)).map(([id, words]) => html`
    <label class="check" key=${id}><input type="checkbox" checked=${chosen.includes(id)} onChange=${() => flip(id)}/>
      <code>${id}</code> <span class="faint">${words}</span></label>`)}</fieldset>`;
}

/** `user` and `role`: the token's user; without them, the signed-in user. */
export function NewToken({ user = '', role, onMade, onClose }) {
  const offered = role ? OF_ROLE[role] : can('admin') ? OF_ROLE.admin : me().scopes;
  const [owner, setOwner] = useState(user);
  const [label, setLabel] = useState('');
  const [lasts, setLasts] = useState('2592000');
  const [scopes, setScopes] = useState(offered.filter((s) => s !== 'admin' && s !== 'ledger'));
  const send = async () => {
    if (!scopes.length) throw new Error('Choose at least one scope. A token without scopes can do nothing.');
    onMade(await post('/api/tokens', {
      scopes, ...(owner.trim() && { user: owner.trim() }), ...(label.trim() && { label: label.trim() }),
        ...(lasts && { expires_in_s: Number(lasts) }),
    }));
  };
  return html`<${FormDialog} title="Create a token" action="Create" send=${send} onClose=${onClose}>
    <${Line} label="Label" hint="Its purpose, so that you recognize it later." value=${label} onInput=${setLabel}
      maxlength="128" placeholder="laptop, nightly report"/>
    ${can('admin') && html`<${Line} label="User" hint="Empty: you. A token can do no more than its user’s role allows."
      value=${owner} onInput=${setOwner} pattern=${NAME} placeholder=${me().user}/>`}
    <${Scopes} offered=${offered} chosen=${scopes} onChange=${setScopes}/>
    <${Lasts} value=${lasts} onChange=${setLasts}/><//>`;
}

/** The secret is shown only once, so Escape does not close the dialog. */
export function Made({ made, onClose }) {
  return html`<${Dialog} title="Copy it now" onClose=${() => {}}
    actions=${html`<${Button} kind="main" onClick=${onClose}>I copied it<//>`}>
    <p>This is the token of <b>
      <${Text} text=${made.user}
        line=${true}/></b>. It is shown only once and not stored. Anyone who has it can use its scopes.</p>
    <div class="secret"><code data-secret>${made.token}</code><${Copy} text=${made.token} label="Copy token"/></div>
    <p class="faint">For the command line, and for programs:</p>
    <${Command} text=${`export SIGNALBOX_TOKEN=${made.token}`}/><//>`;
}

/** The last admin token is revoked only after a second question. False if the user declines. */
async function revokeNow(id) {
  const where = path`/api/tokens/${id}`;
  try {
    await del(where);
  } catch (e) {
    if (e.details?.confirm !== 'last_admin_token') throw e;
    const isMeant = await confirm({ title: 'Revoke the last token of an admin?', action: 'Revoke the last one',
      text: 'No other token can act as an admin. Without it, users and tokens cannot be managed until the owner of the '
        + 'data folder runs signalbox token create --offline.' });
    if (!isMeant) return false;
    await del(`${where}?confirm=last_admin_token`);
  }
  return true;
}

async function revoke(token, reload) {
  const isOwn = token.id === me().token_id;
  const isSure = await confirm({
    title: 'Revoke this token?', action: 'Revoke',
    text: isOwn ? 'You are signed in with it. You will be signed out here and wherever else it is used.'
      : `“${token.label || token.id}” of ${token.user} stops working at once, and its open connections are closed.`,
  });
  if (!isSure || !await revokeNow(token.id)) return;
  if (isOwn) {
    signOut('You have revoked the token you were signed in with.');
    return;
  }
  toast('Revoked.');
  reload();
}

const columns = (reload) => [
  { key: 'label', title: 'Label', width: 'minmax(9rem, 1.3fr)', phone: 'minmax(0, 1.4fr)', render: (t) => html`
    ${t.label ? html`<${Text} text=${t.label} max=${60} line=${true}/>`
      : html`<span class="id" title=${t.id}>…${t.id.slice(-6)}</span>`}
    ${t.id === me().token_id && html` <${Badge} tone="good">this one<//>`}` },
  { key: 'user', title: 'User', width: 'minmax(6rem, .8fr)', phone: 'minmax(0, 1fr)',
    render: (t) => html`<${Text} text=${t.user} max=${60} line=${true}/>` },
  { key: 'scopes', title: 'Scopes', width: 'minmax(10rem, 2fr)', phone: false, render: (t) => t.scopes.join(', ') },
  { key: 'created', title: 'Created', width: '9rem', phone: false, render: (t) => html`<${Time} ms=${t.created_ms}/>` },
  { key: 'expires', title: 'Expires', width: 'minmax(6rem, 9rem)', phone: false,
    render: (t) => html`<${Expires} ms=${t.expires_ms}/>` },
  { key: 'do', title: 'Actions', width: '6rem', phone: '5.2rem', align: 'right', render: (t) => html`
    <${Button} className="small" kind="danger" onClick=${() => revoke(t, reload)}
      aria-label=${`Revoke ${marked(t.label || t.id)} of ${t.user}`}>Revoke<//>` },
];

export function Tokens({ query, go }) {
  const user = can('admin') ? query.user || '' : '';
  const pages = usePages('/api/tokens', { user });
  const set = filtersAt('/settings/tokens', go);
  const [isMaking, setMaking] = useState(false);
  const [made, setMade] = useState(null);
  useRefresh(['token.', 'user.'], pages.reload);
  return html`
    <div class="actions spread">
      ${can('admin') ? html`<${Exact} label="User" value=${user} onChoose=${(v) => set({ user: v })} data-search/>`
        : html`<p>Your tokens. Admins see all tokens.</p>`}
      <${Button} kind="main" onClick=${() => setMaking(true)}>Create a token<//>
    </div>
    <${List} pages=${pages} columns=${columns(pages.reload)} label="Tokens"
      empty=${html`<p class="faint" role="status">This user has no tokens.</p>`}/>
    ${isMaking && html`<${NewToken} user=${user} onClose=${() => setMaking(false)}
      onMade=${(t) => { setMaking(false); setMade(t); pages.reload(); }}/>`}
    ${made && html`<${Made} made=${made} onClose=${() => setMade(null)}/>`}`;
}
