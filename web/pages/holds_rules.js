// The rules as a graph: which messages wait for which others.
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
  return html`<${Card} title="Dependencies between messages">
    <div class="filters" role="search"><${Exact} label="Reference" value=${reference}
      onChoose=${(text) => set({ reference: text })}
      data-search placeholder="SUBM-C042-001" maxlength="200"/></div>
    ${error && html`<${Problem} error=${error} onRetry=${reload}/>`}
    ${loading && html`<${Loading}/>`}
    ${data && (data.edges.length ? html`<${Graph} graph=${data}/>`
      : html`<${EmExample} title="No rules that hold messages">
      The rules file, named by the setting <code>rules</code>, says which messages wait for what. examples/em has a
        complete one.<//>`)}
  <//>`;
}
