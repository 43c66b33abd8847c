// Channels: where the gate reports its decisions and alerts, with the progress and
// problems of each. The rules file defines them.
import { Badge, Card, Empty, Facts, Loading, Problem, Text, Time, html, useGet } from '../lib/ui.js';
import { useRefresh } from '../lib/live.js';
import { count, duration, num } from '../lib/format.js';
import { Table } from '../lib/list.js';
import { useEvery } from '../lib/timers.js';

const LOOK_MS = 5000; // the feed does not report a channel's progress

function Where({ channel, place }) {
  if (place === 'file') return html`file <code><${Text} text=${channel?.file || ''} max=${120}/></code>`;
  return html`${channel?.form === 'json' ? 'webhook' : channel?.form || 'webhook'} <${Text}
    text=${channel?.webhook || ''} max=${120}/>`;
}

function Health({ row }) {
  if (!row.problem) return html`<${Badge} tone="good">ok<//>`;
  return html`<${Badge} tone="bad">failing${row.failing_ms ? ` for ${duration(row.failing_ms)}` : ''}<//> <${Text}
    text=${row.problem} max=${300}/>`;
}

const TAKES = (c) => [c?.takes_feed && 'decisions', c?.takes_alerts && 'alerts'].filter(Boolean).join(', ') || '–';

const columns = (channels) => {
  const of = (row) => channels.find((c) => c.name === row.name);
  return [
    { key: 'name', title: 'Channel', render: (r) => html`<b><${Text} text=${r.name} max=${80} line=${true}/></b>` },
    { key: 'where', phone: false, title: 'Target', render: (r) => html`<${Where} channel=${of(r)} place=${r.place}/>` },
    { key: 'takes', phone: false, title: 'Receives', render: (r) => TAKES(of(r)) },
    { key: 'written', phone: false, title: 'Delivered', align: 'right', render: (r) => num(r.written) },
    { key: 'backlog', title: 'Waiting', align: 'right', render: (r) => num(r.backlog) },
    { key: 'failures', phone: false, title: 'Failures', align: 'right', render: (r) => num(r.failures) },
    { key: 'missed', phone: false, title: 'Missed', align: 'right', render: (r) => num(r.missed) },
    { key: 'health', title: 'Health', render: (r) => html`<${Health} row=${r}/>` },
  ];
};

const EXAMPLE = `"channels": {
  "#alerts": { "takes": ["alerts"], "webhook": { "url": "https://…", "form": "slack" } },
  "#agent-feed": { "takes": ["decisions"], "file": { "path": "agent-feed.jsonl" } }
}`;

function None({ rules }) {
  return html`<${Empty} title="No channels" command=${rules.state === 'none'
    ? 'signalbox serve --set rules=routing_rules.json' : 'signalbox check'}>
    <p>A channel writes the gate’s decisions and alerts to a file, or sends them to a webhook of Slack, Discord or
      your own. ${rules.state === 'none'
      ? html`Channels are defined in the rules file, which the setting <code>rules</code> names. It is not set.`
      : html`Define them in <code><${Text} text=${rules.file}/></code>. The server reloads it when it changes.`}</p>
    <pre>${EXAMPLE}</pre><//>`;
}

function Rules({ rules }) {
  const words = { none: ['calm', 'none'], good: ['good', 'good'],
    bad: ['bad', 'bad: the previous rules stay in force'] }[rules.state];
  return html`<${Card} title="Rules">
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
