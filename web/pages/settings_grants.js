// Grants: users and orgs outside a shared agent's org that may see it.
import { Age, Badge, Button, Empty, Field, Name, Text, confirm, html, toast, useState } from '../lib/ui.js';
import { can, del, get, path, post } from '../lib/api.js';
import { useRefresh } from '../lib/live.js';
import { List, usePages } from '../lib/list.js';
import { marked } from '../lib/format.js';
import { Exact, filtersAt } from '../lib/filters.js';
import { FormDialog, Line } from '../lib/form.js';
import { Expires, Lasts, NAME } from './settings_parts.js';

// A grant applies to shared agents only.
const EFFECT = { private: ' The agent is private: the grant applies once it is shared.',
  public: ' The agent is public: everyone sees it anyway.' };

function NewGrant({ agent: preset, onMade, onClose }) {
  const [agent, setAgent] = useState(preset);
  const [kind, setKind] = useState('user');
  const [grantee, setGrantee] = useState('');
  const [lasts, setLasts] = useState('');
  const send = async () => {
    const grant = await post('/api/grants', { agent: agent.trim(), [kind]: grantee.trim(),
      ...(lasts && { expires_in_s: Number(lasts) }) });
    const card = await get(path`/api/agents/${grant.agent}`).catch(() => ({}));
    onMade(grant, EFFECT[card.visibility] || '');
  };
  return html`<${FormDialog} title="Grant access to an agent" action="Grant" send=${send} onClose=${onClose}>
    <${Line} label="Agent" value=${agent} onInput=${setAgent} required maxlength="128"/>
    <${Field} label="For"><select value=${kind} onChange=${(e) => setKind(e.target.value)}>
      <option value="user">a user</option><option value="org">all members of an org</option></select><//>
    <${Line} label=${kind === 'user' ? 'User' : 'Org'} hint=${kind === 'org' ? 'Case-sensitive.'
      : undefined} value=${grantee} onInput=${setGrantee} required pattern=${NAME}/>
    <${Lasts} value=${lasts} onChange=${setLasts}/><//>`;
}

async function remove(grant, reload) {
  const isSure = await confirm({ title: 'Revoke this grant?', action: 'Revoke',
    text: `${grant.user
      || `The org ${grant.org}`} no longer sees ${grant.agent}, unless by its org or another grant.` });
  if (!isSure) return;
  await del(path`/api/grants/${grant.id}`);
  toast('Revoked.');
  reload();
}

const columns = (reload) => [
  { key: 'agent', title: 'Agent', width: 'minmax(8rem, 1.3fr)', phone: 'minmax(0, 1fr)',
    render: (g) => html`<${Name} agent=${g.agent}/>` },
  { key: 'grantee', title: 'Visible to', width: 'minmax(8rem, 1.2fr)', phone: 'minmax(0, 1fr)',
    render: (g) => html`<${Badge}>${g.org ? 'org' : 'user'}<//> <${Text} text=${g.org || g.user} max=${60}
      line=${true}/>` },
  { key: 'expires', title: 'Expires', width: 'minmax(6rem, 9rem)', phone: false,
    render: (g) => html`<${Expires} ms=${g.expires_ms}/>` },
  { key: 'by', title: 'Granted by', width: 'minmax(6rem, .8fr)', phone: false,
    render: (g) => html`<${Text} text=${g.by} max=${60} line=${true}/>` },
  { key: 'made', title: 'Granted', width: '7rem', phone: false, render: (g) => html`<${Age} ms=${g.created_ms}/>` },
  ...(can('agents') ? [{ key: 'do', title: 'Actions', width: '7rem', phone: '6rem', align: 'right', render: (g) => html`
    <${Button} className="small" kind="danger" onClick=${() => remove(g, reload)}
      aria-label=${`Revoke ${g.agent} for ${marked(g.user || g.org)}`}>Revoke<//>` }] : []),
];

export function Grants({ query, go }) {
  const agent = query.agent || '';
  const pages = usePages('/api/grants', { agent });
  const set = filtersAt('/settings/grants', go);
  const [isMaking, setMaking] = useState(false);
  useRefresh(['grant.'], pages.reload);
  const onMade = (grant, effect) => {
    setMaking(false);
    toast(`${grant.agent} is visible to ${grant.user || grant.org}.${effect}`);
    pages.reload();
  };
  const nothing = html`<${Empty} title=${agent ? 'No grants for this agent' : 'No grants'}
    command=${`build/signalbox grants add ${agent || 'AGENT'} --user NAME`}>
    A shared agent is visible to its creator’s org. A grant lets another user or org see it too, with or without
      an expiry.<//>`;
  return html`
    <div class="actions spread">
      <${Exact} label="Agent" value=${agent} onChoose=${(v) => set({ agent: v })} data-search/>
      ${can('agents') ? html`<${Button} kind="main" onClick=${() => setMaking(true)}>Grant<//>`
        : html`<p class="faint">Granting needs the scope <code>agents</code>.</p>`}
    </div>
    <${List} pages=${pages} columns=${columns(pages.reload)} label="Grants" empty=${nothing}/>
    ${isMaking && html`<${NewGrant} agent=${agent} onMade=${onMade} onClose=${() => setMaking(false)}/>`}`;
}
