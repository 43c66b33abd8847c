// The lists of the configuration: agents, bindings, programs, models.
import { Badge, Card, Name, Text, html } from '../lib/ui.js';
import { Table } from '../lib/list.js';

const text = (key, max = 120) => (row) => (row[key] ? html`<${Text} text=${row[key]} max=${max}/>`
  : html`<span class="faint">–</span>`);
const secret = (row) => (row.secret ? html`<${Badge} tone="good">${row.secret}<//>`
  : html`<${Badge} tone="warn">not set<//>`);

const AGENTS = [
  { key: 'name', title: 'Agent', render: (a) => html`<${Name} agent=${a.name}/>
    ${a.is_default && html` <${Badge} tone="good">default<//>`}` },
  { key: 'url', title: 'Address', render: text('url') },
];
const MODELS = [
  { key: 'name', title: 'Model', render: text('name') }, { key: 'url', phone: false, title: 'Address',
    render: text('base_url') },
  { key: 'kind', phone: false, title: 'API', render: text('kind') },
  { key: 'model', phone: false, title: 'Model name', render: text('model') },
  { key: 'key', title: 'Key', render: (m) => (m.key_variable ? html`<code>${m.key_variable}</code> ${secret(m)}`
    : html`<span class="faint">no key</span>`) },
];
const PROCESSES = [
  { key: 'name', title: 'Program', render: text('name') },
  { key: 'program', title: 'Command', render: (p) => html`<code><${Text} text=${p.program} max=${120}/></code>
    ${p.arguments > 0 && html` <span class="faint">and ${p.arguments} more</span>`}` },
  { key: 'folder', phone: false, title: 'Workspace', render: text('workspace') },
    { key: 'n', phone: false, title: 'Processes', render: (p) => `${p.min} to ${p.max}` },
  { key: 'env', title: 'Environment', render: (p) => [...p.env, ...p.env_allowed].join(', ') || '–' },
];

// {"agentId":"x","match":{"channel":"telegram","peer":{"kind":"group","id":"-1"}}} as words.
function parts(match, prefix = '') {
  return Object.entries(match || {}).flatMap(([key, value]) => {
    if (value === null || value === '' || value?.length === 0) return [];
    return typeof value === 'object' && !Array.isArray(value) ? parts(value, `${prefix}${key}.`)
      : [`${prefix}${key} ${[].concat(value).join(' or ')}`];
  });
}
const BINDINGS = [
  { key: 'match', title: 'Messages from', render: (b) => html`<${Text} text=${parts(b.match).join(', ') || 'anywhere'}
    max=${200}/>` },
  { key: 'agent', title: 'Agent', render: (b) => html`<${Name} agent=${b.agentId}/>` },
];

const LISTS = [['agents', 'Agents in the file', AGENTS], ['bindings', 'Bindings', BINDINGS],
  ['processes', 'Programs', PROCESSES], ['models', 'Models', MODELS]];

export function Lists({ config }) {
  return LISTS.filter(([key]) => config[key].length).map(([key, title, columns]) => html`
    <${Card} title=${title} key=${key}><${Table} label=${title} columns=${columns} rows=${config[key]}/><//>`);
}
