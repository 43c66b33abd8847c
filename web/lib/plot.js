// Plots: lines and bars over time or over any number, in the colors of the theme.
// They can be read with the pointer, the arrow keys and a screen reader, as a
// slider whose value is the text at that point.
import uPlot from '../vendor/uplot.js';
import { html, useEffect, useId, useLayoutEffect, useReducer, useRef, useState } from './ui.js';

const link = Object.assign(document.createElement('link'), { rel: 'stylesheet',
  href: new URL('../vendor/uplot.css', import.meta.url).href });
document.head.append(link);

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Changes when the theme changes between light and dark. */
function useTheme() {
  const [round, again] = useReducer((n) => n + 1, 0);
  useEffect(() => {
    const night = matchMedia('(prefers-color-scheme: dark)');
    const watch = new MutationObserver(again);
    watch.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] });
    night.addEventListener('change', again);
    return () => { watch.disconnect(); night.removeEventListener('change', again); };
  }, []);
  return round;
}

const FONT = '11px system-ui, sans-serif';
const ROOM_RIGHT = 24; // half of the last label

const isThere = (v) => v !== null && v !== undefined;
const isEmpty = (plot) => !plot.series.some((s) => s.values.some(isThere));

// Without data, a scale would only mislead.
function axes(plot) {
  const nothing = isEmpty(plot);
  const common = { stroke: colour('--faint'), font: FONT, ticks: { stroke: colour('--line'), size: 4 } };
  return [{ ...common, size: 28, grid: { show: false }, values: plot.xFormat && ((u, all) => all.map(plot.xFormat)) },
    { ...common, size: 54, space: 28, grid: { show: !nothing, stroke: colour('--line'), width: 1 },
      values: (u, all) => all.map((v) => (nothing ? '' : plot.series[0].format(v))) }];
}

function line(s, n) {
  const stroke = colour(s.tone);
  if (s.isBars) return { stroke, fill: stroke, width: 0, paths: uPlot.paths.bars({ size: [0.8, 36] }),
    points: { show: false } };
  const there = s.values.filter(isThere).length;
  return { stroke, width: 2, dash: s.dash, points: { show: there <= 80 && there < n, size: 5, fill: stroke, stroke },
    spanGaps: true };
}

// Marks: vertical lines, for example at the current threshold.
function drawMarks(u, marks) {
  const { ctx, bbox } = u;
  for (const mark of marks || []) {
    const x = Math.round(u.valToPos(mark.at, 'x', true));
    ctx.save();
    ctx.strokeStyle = colour(mark.tone);
    ctx.lineWidth = 2 * devicePixelRatio;
    ctx.setLineDash(mark.dash ? [4, 4] : []);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.restore();
  }
}

function drawNothing(u, plot) {
  if (!isEmpty(plot)) return;
  const { ctx, bbox } = u;
  ctx.save();
  Object.assign(ctx, { fillStyle: colour('--faint'), textAlign: 'center', textBaseline: 'middle',
    font: FONT.replace(/^\d+/, (px) => px * devicePixelRatio) });
  ctx.fillText('no data yet', bbox.left + bbox.width / 2, bbox.top + bbox.height / 2);
  ctx.restore();
}

function options(plot, width, latest, onCursor) {
  const most = plot.most || 0;
  return {
    width, height: plot.height, legend: { show: false }, padding: [10, ROOM_RIGHT, 0, 0],
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
    scales: { x: { time: plot.isTime }, y: { range: (u, low, high) => [0, Math.max(most, (high || 0) * 1.08) || 1] } },
    tzDate: plot.isUtc ? (ts) => uPlot.tzDate(new Date(ts * 1e3), 'Etc/UTC') : undefined,
    axes: axes(plot), series: [{}, ...plot.series.map((s) => line(s, plot.x.length))],
    hooks: { draw: [(u) => { drawMarks(u, latest.current.marks); drawNothing(u, latest.current); }],
      setCursor: [(u) => onCursor(u.cursor.idx)] },
  };
}

const said = (plot, i) => [plot.atFormat(plot.x[i]), ...plot.series.map((s) =>
  `${s.label} ${isThere(s.values[i]) ? s.format(s.values[i]) : '–'}`)].join(' · ');

/** A summary for screen readers: the range of x, and the minimum, maximum and last value of each series. */
function summary(plot) {
  const n = plot.x.length;
  return `${plot.label}, from ${plot.atFormat(plot.x[0])} to ${plot.atFormat(plot.x[n - 1])}. ${plot.series.map((s) => {
    const there = s.values.filter(isThere);
    return there.length
      ? `${s.label}: between ${s.format(Math.min(...there))} and ${s.format(Math.max(...there))}, ending at `
        + `${s.format(there.at(-1))}` : `${s.label}: no data`;
  }).join('; ')}.`;
}

/**
 * label; x: ascending numbers (seconds if isTime); series: [{label, values,
 * tone: a CSS variable, format, isBars, dash}]; atFormat(x) for one point, xFormat
 * for the axis; most: the minimum of the axis' upper end; marks: [{at, tone, dash}];
 * rest: the point shown while the pointer is elsewhere, the last one by default.
 */
export function Plot({ height = 150, isTime = true, ...more }) {
  const plot = { height, isTime, ...more };
  const box = useRef(null), drawn = useRef(null), latest = useRef(plot);
  const [at, setAt] = useState(null);
  const theme = useTheme();
  const id = useId();
  const n = plot.x.length;
  latest.current = plot;
  useLayoutEffect(() => {
    const el = box.current;
    const u = new uPlot(options(plot, el.clientWidth || 300, latest, setAt),
      [plot.x, ...plot.series.map((s) => s.values)], el);
    drawn.current = u;
    const watch = new ResizeObserver(() => el.clientWidth && u.setSize({ width: el.clientWidth, height }));
    watch.observe(el);
    return () => { watch.disconnect(); u.destroy(); };
  }, [plot.x, plot.series, theme]);
  useEffect(() => { drawn.current?.redraw(false); }, [JSON.stringify(plot.marks)]);
  const place = at === null || at === undefined || at >= n ? plot.rest ?? n - 1 : at;
  const key = (e) => {
    const to = { ArrowLeft: place - 1, ArrowDown: place - 1, ArrowRight: place + 1, ArrowUp: place + 1, Home: 0,
      End: n - 1, PageUp: place - 10, PageDown: place + 10 }[e.key];
    if (to === undefined) return;
    e.preventDefault();
    const next = Math.max(0, Math.min(n - 1, to));
    drawn.current.setCursor({ left: drawn.current.valToPos(plot.x[next], 'x'), top: 0 });
    setAt(next);
  };
  return html`<figure class="plot">
    <figcaption><span class="plot-name">${plot.label}</span>
      ${plot.series.length > 1 && html`<span class="plot-legend">
        ${plot.series.map((s) => html`<span key=${s.label}><i class="dot" style=${{ background: `var(${s.tone})` }}></i>
          ${s.label}</span>`)}</span>`}</figcaption>
    <div class="plot-box" ref=${box} tabindex="0" role="slider" aria-label=${plot.label} aria-describedby=${id}
      aria-valuemin="0" aria-valuemax=${n - 1} aria-valuenow=${place} aria-valuetext=${said(plot, place)}
        onKeyDown=${key}></div>
    <p class="plot-at" aria-hidden="true">${said(plot, place)}</p>
    <p class="off-screen" id=${id}>${summary(plot)} Use the arrow keys to move between the points.</p>
  </figure>`;
}
