// The configuration: current values, their origin, which changes wait for a
// restart, and the reload button.
import { Badge, Button, Card, Copy, Facts, Field, Loading, Problem, Text, Time, html, useEffect, useGet, useMemo,
  useState } from '../lib/ui.js';
import { post } from '../lib/api.js';
import { useRefresh } from '../lib/live.js';
import { count, marked } from '../lib/format.js';
import { Search, filtersAt } from '../lib/filters.js';
import { Lists } from './settings_lists.js';

const KINDS = { default: 'default', file: 'file', environment: 'environment', command_line: 'command line' };

/** "signalbox.jsonc:3:9", with the whole path to be seen. */
function Source({ source }) {
  if (source.kind === 'default') return html`<span class="faint">default</span>`;
  const short = source.kind === 'file' ? source.name.split('/').pop() : source.name;
  const place = source.line ? `:${source.line}:${source.col}` : '';
  return html`<span class="faint">${KINDS[source.kind]}</span> <code
    title=${marked(source.name + place)}><${Text} text=${short + place} max=${80}/></code>`;
}

function Value({ value, count: n }) {
  if (value === undefined)
    return html`<span class="faint">${n === null || n === undefined ? 'in each agent'
      : count(n, 'entry', 'entries')}</span>`;
  if (value === '') return html`<span class="faint">empty</span>`;
  return html`<code><${Text} text=${typeof value === 'string' ? value : JSON.stringify(value)} max=${300}/></code>`;
}

/** A description from the reference, with `names` as code. */
const Said = ({ text }) => text.split('`').map((part, i) => (i % 2 ? html`<code key=${i}>${part}</code>` : part));

function Setting({ s }) {
  const isSet = s.source.kind !== 'default';
  return html`<li class="setting ${isSet ? 'is-set' : ''}">
    <div><code class="setting-name">${s.name}</code>${s.taken_over_by === 'restart'
      && html` <${Badge} title="a change takes effect after a restart">restart<//>`}
      <p class="hint"><${Said} text=${s.what}/></p></div>
    <div class="setting-value"><${Value} value=${s.value} count=${s.count}/>
      ${s.unit && typeof s.value === 'number' && html` <span class="faint">${s.unit}</span>`}
      ${s.secret && html` <${Badge} tone="good">${s.secret}<//>`}
      ${s.after_restart !== undefined && html`<div><${Badge} tone="warn">after a restart<//> <${Value}
        value=${s.after_restart}/></div>`}
      ${isSet && s.value !== undefined && html`<div class="hint">default <${Value} value=${s.default}/></div>`}</div>
    <div class="setting-from"><${Source} source=${s.source}/>
      <details><summary>How to set it</summary><p class="hint">${s.allowed}</p>
        <p class="hint"><code>${s.variable}=…</code> or <code>--set ${s.name}=…</code>
          ${s.flag && html` or <code>${s.flag} …</code>`}</p></details></div>
  </li>`;
}

function Problems({ list, leftOut }) {
  return html`<ul
    class="problems">
      ${list.map((p, i) => html`<li key=${i}><${Badge} tone=${p.severity === 'error' ? 'bad' : 'warn'}>${p.severity}<//>
    <code><${Text} text=${p.where}/>${p.line ? `:${p.line}:${p.col}` : ''}</code> <${Text} text=${p.message}/></li>`)}
    ${leftOut > 0 && html`<li class="faint">and ${leftOut} more</li>`}</ul>`;
}

const names = (list) => html`${list.map((n, i) => html`${i ? ', ' : ''}<code key=${n}>${n}</code>`)}`;

/** The result of the last reload. */
function Reloaded({ result }) {
  if (result.error) {
    const { problems, problems_left_out: leftOut = 0 } = result.error.details || {};
    return html`<div class="problem" role="alert"><p><b><${Text} text=${result.error.message}/></b></p>
      ${problems && html`<${Problems} list=${problems} leftOut=${leftOut}/>`}</div>`;
  }
  const { changed, restart_needed: waits, problems, problems_left_out: leftOut } = result.done;
  return html`<div class="note good-note"
    role="status"><p><b>Reloaded${changed.length ? '' : ': no setting changed'}.</b> ${changed.length > 0
      ? html`Changed: ${names(changed)}.`
      : 'Changes of the file are applied automatically within a second. The rules and certificates that it names '
        + 'were reloaded too.'}</p>
    ${waits.length > 0 && html`<p>Waiting for a restart: ${names(waits)}.</p>`}
    ${problems.length > 0 && html`<${Problems} list=${problems} leftOut=${leftOut}/>`}</div>`;
}

function Head({ config, result, onReload }) {
  return html`<${Card} title="Current configuration" actions=${html`<${Button} kind="main"
    onClick=${onReload}>Reload<//>`}>
    <${Facts} facts=${[
      ['File', config.file ? html`<code><${Text} text=${config.file}/></code>`
        : html`none; <code><${Text} text=${config.looked_for}/></code> would be read if it existed`],
      ['Data', html`<code><${Text} text=${config.folder}/></code>`],
      ['Read', html`<${Time} ms=${config.read_at_ms}/>${config.reloads > 0
        && ` (reloaded ${count(config.reloads, 'time')} since the start)`}`],
      ['Version', html`<code>${config.version}</code> <${Copy} text=${config.version}/> <span
        class="faint">recorded with decisions</span>`],
      ['Waits for a restart', config.restart_needed.length ? names(config.restart_needed) : null]]}/>
    ${result ? html`<${Reloaded} result=${result}/>` : config.refused && html`<div class="problem" role="alert">
      <p><b>The last reload, at <${Time}
        ms=${config.refused.at_ms}/>, was rejected. The previous configuration stays in force.</b></p>
      <${Problems} list=${config.refused.problems} leftOut=${config.refused.problems_left_out}/></div>`}<//>`;
}

function matches(s, query) {
  if (query.show === 'set' && s.source.kind === 'default') return false;
  if (query.show === 'restart' && s.taken_over_by !== 'restart') return false;
  const words = (query.q || '').toLowerCase().split(/\s+/).filter(Boolean);
  const all = `${s.name} ${s.what} ${s.variable}`.toLowerCase();
  return words.every((w) => all.includes(w));
}

function Filter({ query, set, n, all }) {
  return html`<div class="filters" role="search" aria-label="Filter the settings">
    <${Search} label="Search" value=${query.q} onSearch=${(q, goesOn) => set({ q }, goesOn)} data-search
      placeholder="timeout, tls, retention"/>
    <${Field} label="Show"><select value=${query.show || ''} onChange=${(e) => set({ show: e.target.value })}>
      <option value="">all settings</option><option value="set">changed settings</option>
        <option value="restart">settings that need a restart</option></select><//>
    <p class="faint" role="status">${n === all ? count(all, 'setting') : `${n} of ${count(all, 'setting')}`}</p></div>`;
}

export function Configuration({ query, go }) {
  const { data, error, reload } = useGet('/api/config');
  const [result, setResult] = useState(null);
  useRefresh(['config.'], reload);
  useEffect(() => { // show the result when the user returns from editing the file
    addEventListener('focus', reload);
    return () => removeEventListener('focus', reload);
  }, []);
  const shown = useMemo(() => (data ? data.settings.filter((s) => matches(s, query)) : []), [data, query]);
  const set = filtersAt('/settings/configuration', go);
  const readAgain = async () => {
    try {
      setResult({ done: await post('/api/config/reload') });
    } catch (e) {
      setResult({ error: e });
    }
    reload();
  };
  if (error && !data) return html`<${Problem} error=${error} onRetry=${reload}/>`;
  if (!data) return html`<${Loading}/>`;
  return html`
    <${Head} config=${data} result=${result} onReload=${readAgain}/>
    <${Filter} query=${query} set=${set} n=${shown.length} all=${data.settings.length}/>
    ${shown.length ? html`<ul class="settings" aria-label="Settings">
      ${shown.map((s) => html`<${Setting} key=${s.name} s=${s}/>`)}</ul>`
      : html`<p class="faint">No setting matches. <button type="button" class="link"
        onClick=${() => set(null)}>Show all</button></p>`}
    <${Lists} config=${data}/>`;
}
