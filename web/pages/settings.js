// Settings: one tab each for tokens, users, grants, channels and the configuration.
// Tabs that need a scope are shown to users who have it. A link to another tab
// explains what is missing.
import { Empty, Page, Tabs, Text, html } from '../lib/ui.js';
import { can, me } from '../lib/api.js';
import { Tokens } from './settings_tokens.js';
import { Users } from './settings_users.js';
import { Grants } from './settings_grants.js';
import { Channels } from './settings_channels.js';
import { Configuration } from './settings_config.js';
import { About } from './settings_about.js';

const TABS = [
  { id: 'tokens', label: 'Tokens', Part: Tokens },
  { id: 'users', label: 'Users', scope: 'admin', Part: Users },
  { id: 'grants', label: 'Grants', scope: 'read', Part: Grants },
  { id: 'channels', label: 'Channels', scope: 'admin', Part: Channels },
  { id: 'configuration', label: 'Configuration', scope: 'admin', Part: Configuration },
  { id: 'about', label: 'About', Part: About },
];

const isOffered = (tab) => !tab.scope || can(tab.scope);

/** A token can do no more than its user's role allows, so another token helps only a user who has the role. */
function NotYours({ tab }) {
  const { user, role } = me();
  const name = html`<${Text} text=${user} max=${60} line=${true}/>`;
  if (tab.scope === 'admin' && role !== 'admin')
    return html`<${Empty}
      title=${`Only admins see ${tab.label.toLowerCase()}`}>You are ${name}, whose role is ${role}. What is yours is
        under the other tabs. An admin can change your role.<//>`;
  return html`<${Empty} title=${`This token cannot show ${tab.label.toLowerCase()}`}
    command=${`build/signalbox token create --user ${user} --scopes ${[...new Set(['send', 'read',
      tab.scope])].join()}`}>
    It lacks the scope <code>
      ${tab.scope}</code>, which ${name} may have. Sign in with a token that has it, or create one on the server's
        machine:<//>`;
}

export default function Settings({ args, query, go }) {
  const tab = TABS.find((t) => t.id === args[0]) || TABS[0];
  const offered = TABS.filter((t) => isOffered(t) || t === tab);
  return html`<${Page} title="Settings" lead="Tokens, users, grants, alert channels and the configuration.">
    <${Tabs} label="Settings" tabs=${offered} current=${tab.id} onChange=${(id) => go(`/settings/${id}`)}/>
    <div role="tabpanel" aria-label=${tab.label} class="form" key=${tab.id}>
      ${isOffered(tab) ? html`<${tab.Part} query=${query} go=${go}/>` : html`<${NotYours} tab=${tab}/>`}
    </div><//>`;
}
