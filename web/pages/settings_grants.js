// Grants: who sees a shared agent although not of its org.
import { Age, Badge, Button, Empty, Field, Name, Text, confirm, html, toast, useState } from '../lib/ui.js';
import { can, del, get, path, post } from '../lib/api.js';
import { useRefresh } from '../lib/live.js';
import { List, usePages } from '../lib/list.js';
import { marked } from '../lib/format.js';
import { Exact, filtersAt } from '../lib/filters.js';
import { FormDialog, Line } from '../lib/form.js';
import { Expires, Lasts, NAME } from './settings_parts.js';

// A grant opens what is shared; elsewhere it has no effect yet, or none.
const EFFECT = { private: ' It is private as yet: the grant counts once it is shared.',
  public: ' It is public: everybody sees it anyway.' };

function NewGrant({ agent: preset, onMade, onClose }) {
  const [agent, setAgent] = useState(preset);
  const [kind, setKind] = useState('user');
  const [whom, setWhom] = useState('');
  const [lasts, setLasts] = useState('');
  const send = async () => {
    const grant = await post('/api/grants', { agent: agent.trim(), [kind]: whom.trim(),
      ...(lasts && { expires_in_s: Number(lasts) }) });
    const card = await get(path`/api/agents/${grant.agent}`).catch(() => ({}));
    onMade(grant, EFFECT[card.visibility] || '');
  };
  return html`<${FormDialog} title="Let somebody see an agent" action="Grant" send=${send} onClose=${onClose}>
    <${Line} label="Agent" value=${agent} onInput=${setAgent} required maxlength="128"/>
    <${Field} label="For"><select value=${kind} onChange=${(e) => setKind(e.target.value)}>
      <option value="user">a user</option><option value="org">all members of an org</option></select><//>
    <${Line} label=${kind === 'user' ? 'User' : 'Org'} hint=${kind === 'org' ? 'Written exactly as it is, case too.'
      : undefined} value=${whom} onInput=${setWhom} required pattern=${NAME}/>
    <${Lasts} value=${lasts} onChange=${setLasts}/><//>`;
}

async function remove(grant, reload) {
  const isSure = await confirm({ title: 'Take this grant back?', action: 'Take back',
    text: `${grant.user
      || `The org ${grant.org}`} no longer sees ${grant.agent}, unless by its org or another grant.` });
  if (!isSure) return;
  await del(path`/api/grants/${grant.id}`);
  toast('Taken back.');
  reload();
}

const columns = (reload) => [
  { key: 'agent', title: 'Agent', width: 'minmax(8rem, 1.3fr)', phone: 'minmax(0, 1fr)',
    render: (g) => html`<${Name} agent=${g.agent}/>` },
  { key: 'whom', title: 'Seen by', width: 'minmax(8rem, 1.2fr)', phone: 'minmax(0, 1fr)',
    render: (g) => html`<${Badge}>${g.org ? 'org' : 'user'}<//> <${Text} text=${g.org || g.user} max=${60}
      line=${true}/>` },
  { key: 'expires', title: 'Expires', width: 'minmax(6rem, 9rem)', phone: false,
    render: (g) => html`<${Expires} ms=${g.expires_ms}/>` },
  { key: 'by', title: 'Given by', width: 'minmax(6rem, .8fr)', phone: false,
    render: (g) => html`<${Text} text=${g.by} max=${60} line=${true}/>` },
  { key: 'made', title: 'Given', width: '7rem', phone: false, render: (g) => html`<${Age} ms=${g.created_ms}/>` },
  ...(can('agents') ? [{ key: 'do', title: 'Do', width: '7rem', phone: '6rem', align: 'right', render: (g) => html`
    <${Button} className="small" kind="danger" onClick=${() => remove(g, reload)}
      aria-label=${`Take back ${g.agent} from ${marked(g.user || g.org)}`}>Take back<//>` }] : []),
];

export function Grants({ query, go }) {
  const agent = query.agent || '';
  const pages = usePages('/api/grants', { agent });
  const set = filtersAt('/settings/grants', go);
  const [isMaking, setMaking] = useState(false);
  useRefresh(['grant.'], pages.reload);
  const onMade = (grant, effect) => {
    setMaking(false);
    toast(`${grant.agent} may be seen by ${grant.user || grant.org}.${effect}`);
    pages.reload();
  };
  const nothing = html`<${Empty} title=${agent ? 'No grants of that agent' : 'No grants'}
    command=${`build/signalbox grants add ${agent || 'AGENT'} --user NAME`}>
    A shared agent is seen by its creator’s org. A grant lets another user or org see it too, for a while or for
      good.<//>`;
  return html`
    <div class="actions spread">
      <${Exact} label="Agent" value=${agent} onChoose=${(v) => set({ agent: v })} data-search/>
      ${can('agents') ? html`<${Button} kind="main" onClick=${() => setMaking(true)}>Grant<//>`
        : html`<p class="faint">To give one, a token needs the scope <code>agents</code>.</p>`}
    </div>
    <${List} pages=${pages} columns=${columns(pages.reload)} label="Grants" empty=${nothing}/>
    ${isMaking && html`<${NewGrant} agent=${agent} onMade=${onMade} onClose=${() => setMaking(false)}/>`}`;
}
