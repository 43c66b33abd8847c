// The version of the server, the signed-in user, keys, and where to read more.
import { Badge, Card, Command, Facts, Problem, Text, html, useGet } from '../lib/ui.js';
import { me } from '../lib/api.js';
import { duration } from '../lib/format.js';

const KEYS = [['?', 'show all keys'], ['/', 'search on this page'], ['g p', 'go to a page: g f, g a, g d, …'],
  ['Esc', 'close a dialog'], ['Tab', 'move to the next control']];
const MORE = [
  ['build/signalbox help', 'every command, with examples'], ['build/signalbox help config', 'every setting'],
    ['build/signalbox doctor', 'check this machine and the configuration'],
  ['build/signalbox backup FILE', 'back up a running server'],
];
const DOCS = [
  ['docs/operations.md', 'install, upgrade, back up, size, troubleshoot'],
    ['docs/protocol.md', 'the API, the hub, the card'], ['docs/rules.md', 'rules for messages between agents'],
  ['docs/config.md', 'every setting'], ['docs/architecture.md', 'how it is built, and why'],
];

export function About() {
  const { data, error, reload } = useGet('/healthz');
  const who = me();
  return html`
    <${Card} title="This server">
      ${error && !data && html`<${Problem} error=${error} onRetry=${reload}/>`}
      <${Facts} facts=${[['Version', data && html`Signalbox ${data.version}`],
        ['Uptime', data && duration(data.uptime_ms)], ['Address', html`<code>${location.origin}</code>`],
        ['Metrics', html`<a href="/metrics">/metrics</a>, for Prometheus`]]}/><//>
    <${Card} title="You">
      <${Facts} facts=${[['User', html`<${Text} text=${who.user} line=${true}/>`], ['Role', who.role],
        ['Org', who.org && html`<${Text} text=${who.org} line=${true}/>`],
        ['Works for', who.owner && html`<${Text} text=${who.owner} line=${true}/>`],
          ['Scopes',
            html`<span class="actions">${who.scopes.map((s) => html`<${Badge} key=${s}>${s}<//>`)}</span>`]]}/><//>
    <div class="grid">
      <${Card} title="Keys">
        <dl class="keys">
          ${KEYS.map(([k, what]) => html`<div key=${k}><dt><kbd>${k}</kbd></dt><dd>${what}</dd></div>`)}</dl><//>
      <${Card} title="Command line"><div class="form">
        ${MORE.map(([command, what]) => html`<div key=${command}><p class="hint">${what}</p>
          <${Command} text=${command}/></div>`)}</div><//>
      <${Card} title="Documentation"><p>In the source tree:</p><${Facts} facts=${DOCS}/><//>
    </div>`;
}
