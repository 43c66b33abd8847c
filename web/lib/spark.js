// Sparklines: a list of numbers as a small drawing, with a label for screen
// readers. Null is no value.
import { html } from './ui.js';

const HEIGHT = 24;

/** The pieces of a line between gaps, each a list of [x, y]. A single number is a piece too. */
function pieces(values, top, width, height) {
  const step = width / Math.max(1, values.length - 1);
  const found = [];
  let open = null;
  values.forEach((v, i) => {
    if (v === null || v === undefined) { open = null; return; }
    if (!open) found.push(open = []);
    open.push([i * step, height - 1.5 - (v / top) * (height - 3)]);
  });
  return found;
}

const at = ([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`;

// A faint line spans the gaps; a single number is a dot.
function Line({ values, top, width, height }) {
  const found = pieces(values, top * 1.1, width, height);
  return html`<path class="spark-line is-faint" d=${`M${found.flat().map(at).join('L')}`}/>
    ${found.map((points, i) => (points.length > 1
    ? html`<path key=${i} class="spark-line" d=${`M${points.map(at).join('L')}`}/>`
    : html`<path key=${i} class="spark-dot" d=${`M${at(points[0])}h.01`}/>`))}`;
}

function Bars({ values, top, width, height }) {
  const step = width / values.length;
  return values.map((v, i) => v > 0 && html`<rect key=${i} class="spark-bar" x=${(i * step).toFixed(1)}
    width=${(step * 0.8).toFixed(1)}
    y=${(height - Math.max(2, (v / top) * height)).toFixed(1)} height=${Math.max(2, (v / top) * height).toFixed(1)}/>`);
}

/** `label` says what it shows: "latency, last hour: 12 ms to 80 ms". */
export function Spark({ values, label, kind = 'line', tone = 'accent', width = 120, height = HEIGHT }) {
  if (!values.some((v) => v !== null && v !== undefined)) return null;
  const top = Math.max(...values.map((v) => v || 0)) || 1;
  const Shape = kind === 'bars' ? Bars : Line;
  return html`<svg class="spark tone-${tone}" role="img" aria-label=${label} viewBox=${`0 0 ${width} ${height}`}
    preserveAspectRatio="none">
    <path class="spark-ground" d=${`M0 ${height - 0.5}H${width}`}/>
      <${Shape} values=${values} top=${top} width=${width} height=${height}/></svg>`;
}

export const sum = (values) => values.reduce((all, v) => all + (v || 0), 0);

/** The minimum and maximum of the known values; null if there are none. */
export function span(values) {
  const known = values.filter((v) => v !== null && v !== undefined);
  return known.length ? [Math.min(...known), Math.max(...known)] : null;
}
