// The rules: who must have said what before what may go.
import { Card, Loading, Problem, html, useGet } from '../lib/ui.js';
import { useRefresh } from '../lib/live.js';
import { EmExample } from '../lib/example.js';
import { Exact } from '../lib/filters.js';
import { Graph } from '../lib/graph.js';
import { useEvery } from '../lib/timers.js';
import { LOOK_MS, MET } from './holds_parts.js';

export function Rules({ reference, set }) {
  const { data, error, loading, reload } = useGet('/api/gate/graph', { reference });
  useRefresh(MET, reload, 2000);
  useEvery(LOOK_MS, reload);
  return html`<${Card} title="Who must have said what before what may go">
    <div class="filters" role="search"><${Exact} label="What has happened for a reference" value=${reference}
      onChoose=${(text) => set({ reference: text })}
      data-search placeholder="SUBM-C042-001" maxlength="200"/></div>
    ${error && html`<${Problem} error=${error} onRetry=${reload}/>`}
    ${loading && html`<${Loading}/>`}
    ${data && (data.edges.length ? html`<${Graph} graph=${data}/>`
      : html`<${EmExample} title="No rules that wait for anything">
      A file of rules, named by “rules” in the configuration, says what may go when. examples/em has a complete
        one.<//>`)}
  <//>`;
}
