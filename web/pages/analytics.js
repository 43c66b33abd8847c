// Analytics of many decisions: figures and plots, query types, gaps, signals,
// keywords, and the effect of another threshold. One call loads every table. The
// replay is loaded when its tab is opened.
import { Button, Card, Empty, Link, Loading, Name, Page, Problem, Tabs, html, useEffect, useGet,
  useMemo } from '../lib/ui.js';
import { withFilters } from '../lib/filters.js';
import { Table } from '../lib/list.js';
import { Figure } from '../lib/figure.js';
import { LAYERS } from '../lib/candidates.js';
import { Plot } from '../lib/plot.js';
import { duration, num, pct } from '../lib/format.js';
import { Csv } from './analytics_csv.js';
import { Gaps, Types } from './analytics_types.js';
import { Keywords, Signals } from './analytics_signals.js';
import { Threshold } from './analytics_threshold.js';
import { GateFigures } from './analytics_gate.js';

const WINDOWS = [['24h', '24 hours'], ['7d', '7 days'], ['30d', '30 days'], ['90d', '90 days'], ['365d', 'a year']];
const TABS = [['overview', 'Overview'], ['types', 'Query types'], ['signals', 'Signals and keywords'],
  ['threshold', 'Threshold'], ['gate', 'Gate']];

/** Explains which decisions the figures cover and why verdicts are missing. A refused message has a verdict only if
 * a user gave one. */
function About({ s, followUpMs }) {
  const refused = s.routed - s.semantic - s.intent - s.default;
  const isPart = s.routed < s.decisions, isOpen = s.open > refused;
  if (!isPart && !isOpen) return null;
  const when = followUpMs ? `${duration(followUpMs)} after the answer` : 'at the next run';
  return html`<p class="hint" role="note">${isPart && `Rates, means and verdicts cover routed messages only. The
    others continued a conversation, named an agent or matched a rule. `}${isOpen && html`${num(s.open)} of ${
      num(s.routed)} routed ${s.open === 1 ? 'has' : 'have'} no verdict yet. It is given ${when}, when the
    conversation shows whether the choice was right, or when a user says so. The current state of agents is
    on <${Link} to="/agents">Agents<//>.`}</p>`;
}

function Summary({ s, followUpMs }) {
  const over = s.ended ? `of ${num(s.ended)} finished` : 'none finished yet';
  const layers = LAYERS.filter((l) => s[l]).map((l) => `${num(s[l])} ${l}`);
  return html`<div class="figures in-fours">
    <${Figure} name="decisions" value=${num(s.decisions)} more=${layers.join(', ')}/>
    <${Figure} name="routed" value=${num(s.routed)} more="by the text of the message"/>
    <${Figure} name="mean confidence" value=${num(s.confidence, 3)} more=${`${num(s.margin, 3)} ahead of the second`}/>
    <${Figure} name="corrected" value=${pct(s.override_rate, 1)}
      more=${`${num(s.overrides)} of ${num(s.routed)} routed`}/>
    <${Figure} name="error rate" value=${pct(s.error_rate, 1)} more=${over}/>
    <${Figure} name="mean answer length" value=${s.answer_chars === null ? '–'
      : `${num(Math.round(s.answer_chars))} chars`} more=${over}/>
    <${Figure} name="mean time to answer" value=${duration(s.latency_ms)} more=${over}/>
    <${Figure} name="good" value=${s.open === s.routed ? '–' : num(s.positive)}
      more=${`${num(s.negative)} bad, ${num(s.neutral)} neutral, ${num(s.open)} open`}/>
  </div><${About} s=${s} followUpMs=${followUpMs}/>`;
}

const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' });
const hour = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' });
const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });
const FEWEST = 12; // points, so that a single one is visible

/** One point for every hour or day, including those without decisions. */
function fill(rows, spanMs, untilMs) {
  const last = Math.floor((untilMs - 1) / spanMs) * spanMs;
  const first = Math.min(rows[0]?.from_ms ?? last, last - (FEWEST - 1) * spanMs);
  const by = new Map(rows.map((r) => [r.from_ms, r]));
  const times = Array.from({ length: (last - first) / spanMs + 1 }, (_, i) => first + i * spanMs);
  return { x: times.map((t) => t / 1000), values: (key, none = null) =>
    times.map((t) => (by.has(t) ? by.get(t)[key] : none)) };
}

function Times({ data }) {
  const isDays = !!data.days;
  const plots = useMemo(() => {
    const t = fill(data.days || data.hours, isDays ? 86400e3 : 3600e3, data.until_ms);
    const share = (v) => pct(v, v > 0 && v < 0.1 ? 1 : 0);
    const one = (label, tone, key, format, more) => ({ label, tone,
      values: t.values(key, more?.isBars ? 0 : null), format, ...more });
    const bars = (key, tone) => one(key, tone, key, (v) => (Number.isInteger(v) ? num(v) : ''), { isBars: true });
    return [
      // Routed decisions are drawn in front of all decisions.
      { label: 'Decisions', x: t.x, series: [bars('decisions', '--line-strong'), bars('routed', '--accent')] },
      { label: 'Confidence', x: t.x, most: 1, series: [one('mean confidence', '--s-semantic', 'confidence',
        (v) => num(v, 2)), one('mean margin', '--s-performance', 'margin', (v) => num(v, 2), { dash: [5, 4] })] },
      { label: 'Corrections and errors', x: t.x, most: 0.1, series: [one('corrected', '--s-keyword', 'override_rate',
        share), one('errors', '--bad', 'error_rate', share, { dash: [5, 4] })] },
      { label: 'Time to answer', x: t.x, most: 20, series: [one('mean time', '--s-recency', 'latency_ms', duration)] },
    ];
  }, [data]);
  const at = (s) => (isDays ? day : hour).format(new Date(s * 1000));
  const { x } = plots[0];
  const isShort = x.at(-1) - x[0] <= 2 * 86400;
  const tick = (s) => (isShort ? clock : day).format(new Date(s * 1000));
  return html`<${Card} title="Over time" actions=${html`<span
    class="faint">${isDays ? 'by day (UTC)' : 'by hour'}</span>
      <${Csv} table=${isDays ? 'days' : 'hours'} params=${{ since: data.since_ms, until: data.until_ms }}/>`}>
    <div class="plots">
      ${plots.map((p) => html`<${Plot} key=${p.label} ...${p} isUtc=${isDays} atFormat=${at}
        xFormat=${tick}/>`)}</div><//>`;
}

const AGENT_COLUMNS = [
  { key: 'agent', title: 'Agent', render: (r) => html`<${Name} agent=${r.agent}/>` },
  { key: 'n', title: 'Decisions', align: 'right', render: (r) =>
    html`<a href=${`#/decisions?agent=${encodeURIComponent(r.agent)}`}>${num(r.decisions)}</a>` },
  { key: 'r', title: 'Routed', align: 'right', render: (r) => num(r.routed) },
  { key: 'c', title: 'Confidence', align: 'right', render: (r) => num(r.confidence, 3) },
  { key: 'o', title: 'Corrected', align: 'right', render: (r) =>
    (r.routed ? `${num(r.overrides)} (${pct(r.override_rate)})` : '–') },
  { key: 'e', title: 'Errors', align: 'right', render: (r) => pct(r.error_rate, 1) },
  { key: 'a', title: 'Answer length', align: 'right', render: (r) =>
    (r.answer_chars === null ? '–' : `${num(Math.round(r.answer_chars))} chars`) },
  { key: 'l', title: 'Time to answer', align: 'right', render: (r) => duration(r.latency_ms) },
  { key: 'v', title: 'Good / bad', align: 'right', render: (r) =>
    (r.routed ? `${num(r.positive)} / ${num(r.negative)}` : '–') },
];

function Overview({ data, params }) {
  return html`<${Summary} s=${data.summary[0]} followUpMs=${data.follow_up_ms}/><${Times} data=${data}/>
    <${Card} title="Agents" actions=${html`<${Csv} table="agents" params=${params}/>`}>
      <${Table} columns=${AGENT_COLUMNS} rows=${data.agents} rowKey=${(r) => r.agent}
        label="Agents, most decisions first"/>
      ${data.summary[0].none > 0 && html`<p class="hint">Messages that no agent got have no row
        here.</p>`}<//>`;
}

function Nothing({ window }) {
  return html`<${Empty} title=${`No decisions in the last ${WINDOWS.find(([id]) => id === window)?.[1] || window}`}
    command=${['build/signalbox send "why is my query slow?"', 'build/signalbox decisions stats']}>
    Once messages have been routed, this page shows how confident and how right the choices were, which requests no
      agent covers well, which keywords mislead, and what another threshold would change. Send some:<//>`;
}

function Shown({ tab, data, params }) {
  if (tab === 'types') return html`<${Types} data=${data} params=${params}/><${Gaps} data=${data} params=${params}/>`;
  if (tab === 'signals') return html`<${Signals} data=${data} params=${params}/>
    <${Keywords} data=${data} params=${params}/>`;
  if (tab === 'threshold') return html`<${Threshold} params=${params}/>`;
  return html`<${Overview} data=${data} params=${params}/>`;
}

export default function AnalyticsPage({ query, go }) {
  const window = WINDOWS.some(([id]) => id === query.window) || /^[1-9]\d{0,4}[mhdw]$/.test(query.window || '')
    ? query.window : '7d';
  const tab = TABS.some(([id]) => id === query.tab) ? query.tab : 'overview';
  const params = useMemo(() => ({ window }), [window]);
  const { data, error, reload } = useGet(tab === 'gate' ? null : '/api/analytics/all', params);
  const set = (more) => go(withFilters('/analytics', more));
  useEffect(() => document.querySelector('[role="tab"][aria-selected="true"]')?.scrollIntoView({ block: 'nearest',
    inline: 'nearest' }), [tab]);
  const known = WINDOWS.some(([id]) => id === window) ? WINDOWS : [...WINDOWS, [window, window]];
  return html`<${Page} title="Analytics" lead="Figures of many decisions." actions=${tab !== 'gate' && html`
      <label class="window">Last <select value=${window}
        onChange=${(e) => set({ window: e.target.value })}>${known.map(([id, name]) =>
          html`<option key=${id} value=${id}>${name}</option>`)}</select></label>
      <${Button} onClick=${reload}>Refresh<//>`}>
    <${Tabs} label="Analytics" current=${tab} onChange=${(id) => set({ tab: id })}
      tabs=${TABS.map(([id, label]) => ({ id, label }))}/>
    <div role="tabpanel" class="stack-cards" aria-label=${TABS.find(([id]) => id === tab)[1]}>
      ${tab === 'gate' ? html`<${GateFigures}/>` : error ? html`<${Problem} error=${error} onRetry=${reload}/>` : !data
        ? html`<${Loading} what="Counting"/>`
        : !data.decisions_read ? html`<${Nothing} window=${window}/>`
          : html`<${Shown} tab=${tab} data=${data} params=${params}/>`}
      ${tab !== 'gate' && data && !data.is_complete && html`<p
        class="note">Only the newest ${num(data.decisions_read)} decisions of this period were counted.</p>`}
    </div>
  <//>`;
}
