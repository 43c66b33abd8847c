// The effect of another threshold. One call replays the decisions of the window with
// every threshold in steps of 0.01. The decisions that would change are loaded when
// the slider rests.
import { Badge, Card, Command, Empty, Loading, Name, Problem, Text, html, useEffect, useGet, useMemo,
  useState } from '../lib/ui.js';
import { get } from '../lib/api.js';
import { Table } from '../lib/list.js';
import { Plot } from '../lib/plot.js';
import { count, num, pct } from '../lib/format.js';
import { Csv } from './analytics_csv.js';

const REST_MS = 300;
const OUTCOMES = { better: ['good', 'better: a user said so'], worse: ['bad', 'worse: it was right'],
  'as bad': ['calm', 'as bad: a third agent was right'], 'was bad': ['warn', 'it was wrong'],
    unknown: ['calm', 'unknown'] };

const COLUMNS = [
  { key: 'text', title: 'Message', render: (c) => html`<a href=${`#/decisions/${encodeURIComponent(c.id)}`}>
    <${Text} text=${c.text} max=${160}/></a>` },
  { key: 'score', title: 'Best', align: 'right', render: (c) => num(c.best_score, 3) },
  { key: 'from', title: 'Went to', render: (c) => html`<${Name} agent=${c.from}/>` },
  { key: 'to', title: 'Would go to', render: (c) => (c.to ? html`<${Name} agent=${c.to}/>`
    : html`<span class="faint">no agent</span>`) },
  { key: 'outcome', title: 'Effect', render: (c) => html`<${Badge}
    tone=${OUTCOMES[c.outcome]?.[0]}>${OUTCOMES[c.outcome]?.[1] || c.outcome}<//>` },
];

/** The decisions that a threshold would change, loaded when the slider rests. */
function useChanges(at, params) {
  const [found, setFound] = useState({ at: null, data: null, error: null });
  useEffect(() => {
    const stop = new AbortController();
    const timer = setTimeout(() => get('/api/analytics/changes', { ...params, at }, { signal: stop.signal }).then(
      (data) => setFound({ at, data, error: null }),
      (error) => stop.signal.aborted || setFound({ at, data: null, error })), REST_MS);
    return () => { clearTimeout(timer); stop.abort(); };
  }, [at, params]);
  return found;
}

function Sentence({ row, n }) {
  if (!row.changed) return html`<p class="threshold-said">All ${num(n)} decisions would stay the same.</p>`;
  const parts = [row.to_default && `${num(row.to_default)} to the default agent`,
    row.to_agent && `${num(row.to_agent)} from the default agent to a matching one`,
    row.to_nobody && `${num(row.to_nobody)} to no agent`].filter(Boolean);
  const others = row.changed - row.to_default - row.to_agent - row.to_nobody;
  if (others > 0) parts.push(`${num(others)} to another agent`);
  return html`<p
    class="threshold-said">
      <strong>${num(row.changed)} of ${num(n)}</strong> would change: ${parts.join(', ')}.</p>`;
}

function Known({ row }) {
  const boxes = [['better', row.better, 'good'], ['worse', row.worse, 'bad'], ['as bad', row.as_bad, 'calm'],
    ['bad anyway', row.was_bad, 'warn'], ['unknown', row.unknown, 'calm']];
  return html`<div class="actions known" role="group" aria-label="Known effect of the changes">
    ${boxes.map(([name, value, tone]) => html`<${Badge} key=${name}
      tone=${value ? tone : 'calm'}>${num(value)} ${name}<//>`)}</div>`;
}

function Changes({ at, changes, params }) {
  const isOld = changes.at !== at;
  if (changes.error) return html`<${Problem} error=${changes.error}/>`;
  if (!changes.data) return html`<${Loading} what="Finding the changes"/>`;
  return html`<${Card} title=${`What would change at ${num(at, 2)}`}
    actions=${html`<${Csv} table="changes" params=${{ ...params, at }}/>`}>
    <div class=${isOld ? 'is-old' : ''} aria-busy=${isOld}><${Table} columns=${COLUMNS} rows=${changes.data.items}
      rowKey=${(c) => c.id} label=${`Decisions that a threshold of ${num(at, 2)} would change`}
      empty=${html`<p class="faint">Nothing would change.</p>`}/>
    ${changes.data.items.length === 100 && html`<p class="hint">Only the newest 100 are shown.</p>`}</div><//>`;
}

const USUAL = 0.3; // the slider's start while the threshold is not a single number

function Slider({ data, at, setAt, params }) {
  const row = data.items[Math.round(at * 100)];
  const n = data.decisions_read;
  const hasOne = typeof data.threshold === 'number';
  const x = useMemo(() => data.items.map((r) => r.threshold), [data]);
  const series = useMemo(() => {
    const of = (label, tone, value, dash) => ({ label, tone, values: data.items.map((r) => value(r) / n),
      format: (v) => pct(v), dash });
    return [of('by score', '--s-semantic', (r) => r.by_score),
      of('by default', '--s-keyword', (r) => r.by_default, [5, 4]),
        of('change', '--bad', (r) => r.changed, [2, 3])];
  }, [data]);
  return html`<${Card} title="What another threshold would change"
    actions=${html`<${Csv} table="thresholds" params=${params}/>`}>
    <p class="hint">If no score reaches the threshold, the default agent gets the message. The ${count(n,
      'decision')} of this period were replayed with every threshold in steps of 0.01, all else unchanged.</p>
    <div class="slider"><p><label for="threshold">Threshold</label> <strong>${num(at, 2)}</strong>
      ${at.toFixed(2) === data.threshold?.toFixed(2) && html` <span class="faint">current</span>`}</p>
      <input id="threshold" type="range" data-search min="0" max="1" step="0.01" value=${at}
        aria-valuetext=${`${num(at, 2)}: ${num(row.changed)} of ${num(n)} would change`}
          onInput=${(e) => setAt(Number(e.target.value))}/></div>
    <div role="status" aria-live="polite"><${Sentence} row=${row} n=${n}/><${Known} row=${row}/></div>
    ${row.not_known > 0
      && html`<p class="hint">${num(row.not_known)} depend on a language model that was not asked then.</p>`}
    <${Plot} label="Shares of the decisions, by threshold" x=${x} series=${series} isTime=${false} height=${190}
      most=${1} atFormat=${(v) => num(v, 2)} xFormat=${(v) => String(Number(v.toFixed(2)))} rest=${Math.round(at * 100)}
      marks=${[...(hasOne ? [{ at: data.threshold, tone: '--soft', dash: true }] : []), { at, tone: '--ink' }]}/>
    <p class="hint">${hasOne ? `Dashed: the current threshold, ${num(data.threshold, 2)}.`
      : 'routing.threshold is auto: each agent has its own floor.'} To change it, set
        <code>routing.threshold</code> in the configuration. To try it or other settings first:</p>
    <${Command} text=${`build/signalbox replay --set routing.threshold=${num(at, 2)}`}/>
  <//>`;
}

export function Threshold({ params }) {
  const { data, error, reload } = useGet('/api/analytics/thresholds', params);
  const [chosen, setAt] = useState(null);
  const at = chosen ?? (data ? Math.round((data.threshold ?? USUAL) * 100) / 100 : null);
  if (error) return html`<${Problem} error=${error} onRetry=${reload}/>`;
  if (!data) return html`<${Loading} what="Replaying with 100 thresholds"/>`;
  if (!data.items.length)
    return html`<${Empty}
      title="No decisions in this period">Once there are some, a slider shows what another threshold would
        change.<//>`;
  return html`<${Slider} data=${data} at=${at} setAt=${setAt} params=${params}/>
    <${Samples} at=${at} params=${params}/>`;
}

function Samples({ at, params }) {
  return html`<${Changes} at=${at} changes=${useChanges(at, params)} params=${params}/>`;
}
