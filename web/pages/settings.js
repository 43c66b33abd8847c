// Who may do what, and what the server runs with: one tab each. Tabs that need
// a scope are offered to those who have it; whoever comes by a link is told.
import { Empty, Page, Tabs, html } from '../lib/ui.js';
import { can } from '../lib/api.js';
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

function NotYours({ tab }) {
  return html`<${Empty} title=${`${tab.label} needs a token with the scope ${tab.scope}`} command=${`signalbox token create --scopes send,read,${tab.scope}`}>
    Your token does not have it. An admin can make one that does; then sign in with it.<//>`;
}

export default function Settings({ args, query, go }) {
  const tab = TABS.find((t) => t.id === args[0]) || TABS[0];
  const offered = TABS.filter((t) => isOffered(t) || t === tab);
  return html`<${Page} title="Settings" lead="Who may do what, and what the server runs with.">
    <${Tabs} label="Settings" tabs=${offered} current=${tab.id} onChange=${(id) => go(`/settings/${id}`)}/>
    <div role="tabpanel" aria-label=${tab.label} class="form" key=${tab.id}>
      ${isOffered(tab) ? html`<${tab.Part} query=${query} go=${go}/>` : html`<${NotYours} tab=${tab}/>`}
    </div><//>`;
}
