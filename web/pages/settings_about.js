// What this is, which version, who you are here, and where to read on.
import { Badge, Card, Command, Facts, Problem, Text, html, useGet } from '../lib/ui.js';
import { me } from '../lib/api.js';
import { duration } from '../lib/format.js';

const KEYS = [['?', 'all keys'], ['/', 'the search of a page'], ['g p', 'a page by its letter: g f, g a, g d, …'],
  ['Esc', 'closes what is open'], ['Tab', 'everything can be reached']];
const MORE = [
  ['build/signalbox help', 'every command, with examples'], ['build/signalbox help config', 'every setting'],
    ['build/signalbox doctor', 'can it run well here?'],
  ['build/signalbox backup FILE', 'a copy of all it remembers, while it runs'],
];
const DOCS = [
  ['docs/operations.md', 'install, upgrade, backup, sizing, what to do when'],
    ['docs/protocol.md', 'the API, the hub, the card'], ['docs/rules.md', 'the rules of the gate'],
  ['docs/config.md', 'every setting'], ['docs/architecture.md', 'how it is built, and why so'],
];

export function About() {
  const { data, error, reload } = useGet('/healthz');
  const who = me();
  return html`
    <${Card} title="This server">
      ${error && !data && html`<${Problem} error=${error} onRetry=${reload}/>`}
      <${Facts} facts=${[['Version', data && html`Signalbox ${data.version}`],
        ['Runs for', data && duration(data.uptime_ms)], ['Address', html`<code>${location.origin}</code>`],
        ['Figures', html`<a href="/metrics">/metrics</a>, for Prometheus`]]}/><//>
    <${Card} title="You">
      <${Facts} facts=${[['User', html`<${Text} text=${who.user} line=${true}/>`], ['Role', who.role],
        ['Org', who.org && html`<${Text} text=${who.org} line=${true}/>`],
        ['Works for', who.owner && html`<${Text} text=${who.owner} line=${true}/>`],
          ['This token may',
            html`<span class="actions">${who.scopes.map((s) => html`<${Badge} key=${s}>${s}<//>`)}</span>`]]}/><//>
    <div class="grid">
      <${Card} title="Keys">
        <dl class="keys">
          ${KEYS.map(([k, what]) => html`<div key=${k}><dt><kbd>${k}</kbd></dt><dd>${what}</dd></div>`)}</dl><//>
      <${Card} title="On the command line"><div class="form">
        ${MORE.map(([command, what]) => html`<div key=${command}><p class="hint">${what}</p>
          <${Command} text=${command}/></div>`)}</div><//>
      <${Card} title="To read"><p>With the source, and written to be read:</p><${Facts} facts=${DOCS}/><//>
    </div>`;
}
