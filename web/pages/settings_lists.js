// What the lists of the configuration hold: agents, bindings, programs, models.
import { Badge, Card, Name, Text, html } from '../lib/ui.js';
import { Table } from '../lib/list.js';

const text = (key, max = 120) => (row) => (row[key] ? html`<${Text} text=${row[key]} max=${max}/>`
  : html`<span class="faint">–</span>`);
const secret = (row) => (row.secret ? html`<${Badge} tone="good">${row.secret}<//>`
  : html`<${Badge} tone="warn">not set<//>`);

const AGENTS = [
  { key: 'name', title: 'Agent', render: (a) => html`<${Name} agent=${a.name}/>
    ${a.is_default && html` <${Badge} tone="good">default<//>`}` },
  { key: 'url', title: 'How it is reached', render: text('url') },
];
const MODELS = [
  { key: 'name', title: 'Model', render: text('name') }, { key: 'url', phone: false, title: 'Where',
    render: text('base_url') },
  { key: 'kind', phone: false, title: 'Speaks', render: text('kind') },
  { key: 'model', phone: false, title: 'Called there', render: text('model') },
  { key: 'key', title: 'Key', render: (m) => (m.key_variable ? html`<code>${m.key_variable}</code> ${secret(m)}`
    : html`<span class="faint">none is sent</span>`) },
];
const PROCESSES = [
  { key: 'name', title: 'Program', render: text('name') },
  { key: 'program', title: 'Command', render: (p) => html`<code><${Text} text=${p.program} max=${120}/></code>
    ${p.arguments > 0 && html` <span class="faint">and ${p.arguments} more</span>`}` },
  { key: 'folder', phone: false, title: 'Works in', render: text('workspace') },
    { key: 'n', phone: false, title: 'How many', render: (p) => `${p.min} to ${p.max}` },
  { key: 'env', title: 'Gets', render: (p) => [...p.env, ...p.env_allowed].join(', ') || '–' },
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
  { key: 'match', title: 'A message of', render: (b) => html`<${Text} text=${parts(b.match).join(', ') || 'anywhere'}
    max=${200}/>` },
  { key: 'agent', title: 'goes to', render: (b) => html`<${Name} agent=${b.agentId}/>` },
];

const LISTS = [['agents', 'Agents of the file', AGENTS], ['bindings', 'Bindings', BINDINGS],
  ['processes', 'Programs', PROCESSES], ['models', 'Models', MODELS]];

export function Lists({ config }) {
  return LISTS.filter(([key]) => config[key].length).map(([key, title, columns]) => html`
    <${Card} title=${title} key=${key}><${Table} label=${title} columns=${columns} rows=${config[key]}/><//>`);
}
