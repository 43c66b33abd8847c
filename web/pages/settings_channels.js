// Channels: where the gate tells of what it decided, how far each is, and what
// is wrong with it. They are named in the file of the gate's rules.
import { Badge, Card, Empty, Facts, Loading, Problem, Text, Time, html, useGet } from '../lib/ui.js';
import { useRefresh } from '../lib/live.js';
import { count, duration, num } from '../lib/format.js';
import { Table } from '../lib/list.js';
import { useEvery } from '../lib/timers.js';

const LOOK_MS = 5000; // how far a channel is tells nobody by itself

function Where({ channel, place }) {
  if (place === 'file') return html`file <code><${Text} text=${channel?.file || ''} max=${120}/></code>`;
  return html`${channel?.form === 'json' ? 'webhook' : channel?.form || 'webhook'} <${Text}
    text=${channel?.webhook || ''} max=${120}/>`;
}

function Health({ row }) {
  if (!row.problem) return html`<${Badge} tone="good">well<//>`;
  return html`<${Badge} tone="bad">failing${row.failing_ms ? ` for ${duration(row.failing_ms)}` : ''}<//> <${Text}
    text=${row.problem} max=${300}/>`;
}

const TAKES = (c) => [c?.takes_feed && 'decisions', c?.takes_alerts && 'alerts'].filter(Boolean).join(', ') || '–';

const columns = (channels) => {
  const of = (row) => channels.find((c) => c.name === row.name);
  return [
    { key: 'name', title: 'Channel', render: (r) => html`<b><${Text} text=${r.name} max=${80} line=${true}/></b>` },
    { key: 'where', phone: false, title: 'Where', render: (r) => html`<${Where} channel=${of(r)} place=${r.place}/>` },
    { key: 'takes', phone: false, title: 'Takes', render: (r) => TAKES(of(r)) },
    { key: 'written', phone: false, title: 'Told', align: 'right', render: (r) => num(r.written) },
    { key: 'backlog', title: 'Waiting', align: 'right', render: (r) => num(r.backlog) },
    { key: 'failures', phone: false, title: 'Failures', align: 'right', render: (r) => num(r.failures) },
    { key: 'missed', phone: false, title: 'Missed', align: 'right', render: (r) => num(r.missed) },
    { key: 'health', title: 'How it is', render: (r) => html`<${Health} row=${r}/>` },
  ];
};

const EXAMPLE = `"channels": {
  "#alerts": { "takes": ["alerts"], "webhook": { "url": "https://…", "form": "slack" } },
  "#agent-feed": { "takes": ["decisions"], "file": { "path": "agent-feed.jsonl" } }
}`;

function None({ rules }) {
  return html`<${Empty} title="No channels" command=${rules.state === 'none'
    ? 'signalbox serve --set rules=routing_rules.json' : 'signalbox check'}>
    <p>A channel tells a file, or a webhook of Slack, Discord or your own, what the gate decided and what waits for a
      person. ${rules.state === 'none'
      ? html`They stand in the file of the gate’s rules, which the setting <code>rules</code> names; there is none yet.`
      : html`Put them into <code><${Text} text=${rules.file}/></code>; it is read again when it changes.`}</p>
    <pre>${EXAMPLE}</pre><//>`;
}

function Rules({ rules }) {
  const words = { none: ['calm', 'none'], good: ['good', 'good'],
    bad: ['bad', 'bad: the ones before stay'] }[rules.state];
  return html`<${Card} title="The rules">
    <${Facts} facts=${[['File', rules.file && html`<code><${Text} text=${rules.file}/></code>`],
      ['Read', rules.read_at_ms ? html`<${Time} ms=${rules.read_at_ms}/>` : null],
      ['Rules', rules.state === 'none' ? null : count(rules.count, 'rule')],
        ['State', html`<${Badge} tone=${words[0]}>${words[1]}<//>`]]}/>
    ${rules.problem && html`<div class="problem" role="alert">
      <pre class="bare-pre"><${Text} text=${rules.problem}/></pre></div>`}<//>`;
}

export function Channels() {
  const gate = useGet('/api/gate');
  const config = useGet('/api/config');
  useRefresh(['gate.', 'escalation.'], gate.reload);
  useEvery(LOOK_MS, gate.reload);
  const error = gate.error || config.error;
  if (error && !(gate.data && config.data)) return html`<${Problem} error=${error}
    onRetry=${() => { gate.reload(); config.reload(); }}/>`;
  if (!gate.data || !config.data) return html`<${Loading}/>`;
  const { channels, rules } = gate.data;
  return html`${error && html`<${Problem} error=${error}/>`}
    ${channels.length ? html`<${Card} title="Channels"><${Table} label="Channels"
      columns=${columns(config.data.channels)} rows=${channels} rowKey=${(r) => `${r.name} ${r.place}`}/><//>`
      : html`<${None} rules=${rules}/>`}
    <${Rules} rules=${rules}/>`;
}
