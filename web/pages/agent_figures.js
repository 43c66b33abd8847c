// The figures of an agent: now, and per minute in the last hour.
import { Age, Card, Text, html } from '../lib/ui.js';
import { Spark, span, sum } from '../lib/spark.js';
import { Figure } from '../lib/figure.js';
import { count, duration, num, pct } from '../lib/format.js';

function slowness({ latency_ms: now, usual_ms: usual }) {
  if (usual === null) return 'over its last answers';
  return `usually ${duration(usual)}${now > 3 * usual ? ', now slow' : ''}`;
}

export function Now({ figures: f }) {
  const { completed, failed, retries } = f.totals;
  return html`<section class="figures" aria-label="Now">
    <${Figure} name="Queued" value=${num(f.queued)} more="waiting for it"/>
    <${Figure} name="In flight" value=${num(f.in_flight)} more="being worked on"/>
    <${Figure} name="Held" value=${num(f.held)} more="by the gate: rules or capacity"/>
    <${Figure} name="Median latency" value=${duration(f.latency_ms)} more=${slowness(f)}/>
    <${Figure} name="Completed" value=${num(completed)} more="since the start"/>
    <${Figure} name="Failed" value=${num(failed)} tone=${failed ? 'is-bad' : ''}
      more=${[completed + failed ? pct(failed / (completed + failed), 1) : 'since the start',
        retries ? `${count(retries, 'attempt')} failed` : ''].filter(Boolean).join(', ')}/>
  </section>`;
}

const between = (range) => (!range ? '–' : range[0] === range[1] ? duration(range[0])
  : `${duration(range[0])} to ${duration(range[1])}`);

function Plot({ title, figure, children }) {
  return html`<div class="hour-plot"><div class="hour-head"><span>${title}</span>
    <strong class="figure">${figure}</strong></div>${children}
    <div class="hour-foot faint small" aria-hidden="true"><span>an hour ago</span><span>now</span></div></div>`;
}

function LastError({ figures: f }) {
  if (!f.failed_ms) return null;
  return html`<p class="last-error">Last failure <${Age} ms=${f.failed_ms}/>
    ${f.last_error && html`: <code><${Text} text=${f.last_error.code} max=${48} line=${true}/></code> <${Text}
      text=${f.last_error.message} max=${300}/>`}</p>`;
}

export function Hour({ figures: f }) {
  if (!f.hour) return html`<${Card} title="The last hour"><p class="faint">No task has ended in the last hour.</p>
    <${LastError} figures=${f}/><//>`;
  const { completed, failed, latency_ms: latency } = f.hour;
  const range = span(latency);
  const size = { width: 300, height: 64 };
  return html`<${Card} title="The last hour"><div class="hour-plots">
    <${Plot} title="Completed" figure=${num(sum(completed))}>
      <${Spark} kind="bars" values=${completed} label=${`Completed per minute: ${sum(completed)} in total`}
        ...${size}/><//>
    <${Plot} title="Failed" figure=${num(sum(failed))}><${Spark} kind="bars" tone="bad" values=${failed}
      label=${`Failed per minute: ${sum(failed)} in total`} ...${size}/><//>
    <${Plot} title="Latency" figure=${between(range)}>
      <${Spark} values=${latency} label=${`Mean latency per minute: ${between(range)}`} ...${size}/><//>
  </div><${LastError} figures=${f}/><//>`;
}
