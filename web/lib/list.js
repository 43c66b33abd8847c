// Lists: loaded page by page, with only the rows in view in the document. Ten
// thousand agents or a million decisions cost as little as fifty.
import { Loading, Problem, html, useCallback, useEffect, useLayoutEffect, useReducer, useRef, useState } from './ui.js';
import { get } from './api.js';

const PAGE = 100;
const MOST_EMPTY = 20; // empty pages in a row before loading stops

/** A list of the server, loaded page by page. It starts over when the params change. */
export function usePages(where, params = {}, limit = PAGE) {
  const key = JSON.stringify([where, params]);
  const state = useRef(null);
  const [, draw] = useReducer((n) => n + 1, 0);
  if (state.current?.key !== key) state.current = fresh(key);
  const s = state.current;

  const more = useCallback(async () => {
    const mine = state.current;
    // An effect of the previous render may call the previous version of this.
    if (!where || mine.key !== key || mine.isLoading || mine.done) return;
    mine.isLoading = true;
    draw();
    try {
      await readOn(mine, where, params, limit, () => mine === state.current);
    } catch (error) {
      mine.error = error;
      mine.done = true;
    }
    mine.isLoading = false;
    if (mine === state.current) draw();
  }, [key]);

  // The old rows stay until the new ones have arrived, so that nothing jumps.
  const reload = useCallback(async () => {
    const next = fresh(key);
    next.isLoading = true;
    try {
      await readOn(next, where, params, Math.max(limit, Math.min(500, state.current.rows.length)));
    } catch (error) {
      Object.assign(next, { error, done: true, rows: state.current.rows });
    }
    next.isLoading = false;
    if (state.current.key !== key) return;
    state.current = next;
    draw();
  }, [key]);

  useEffect(() => { more(); }, [key]);
  useEffect(() => () => { state.current = fresh(''); }, []); // stop loading on unmount
  return { rows: s.rows, done: s.done, error: s.error, loading: s.isLoading || (!s.done && !s.rows.length), more,
    reload };
}

const fresh = (key) => ({ key, rows: [], cursor: null, done: false, error: null, isLoading: false });

// With filters, a page may be empty even though more follow.
async function readOn(s, where, params, limit, isWanted = () => true) {
  for (let i = 0; i < MOST_EMPTY && isWanted(); i++) {
    const page = await get(where, { ...params, limit, cursor: s.cursor });
    s.rows = s.rows.concat(page.items);
    s.cursor = page.next_cursor;
    s.done = !s.cursor;
    if (page.items.length || s.done) return;
  }
}

/**
 * A virtual table. columns: [{key, title, width, align, render(row), phone}];
 * width is a CSS grid track; phone is the track on phones, or false to hide the column there.
 * Takes `pages` from usePages, or `rows`. onTop(isTop) reports whether the first row is in view;
 * onView, a state setter, gets {from, to} of the rendered rows.
 */
export function List({ pages, rows = pages?.rows, columns, rowKey = (r) => r.id, href, label, empty, rowHeight = 40,
  height, onTop, onView }) {
  const box = useRef(null);
  const [view, setView] = useState({ from: 0, to: 40 });
  const look = useCallback(() => {
    const el = box.current;
    if (!el) return;
    const from = Math.max(0, Math.floor(el.scrollTop / rowHeight) - 8);
    const to = Math.ceil((el.scrollTop + el.clientHeight) / rowHeight) + 8;
    setView((v) => (v.from === from && v.to === to ? v : { from, to }));
    onTop?.(el.scrollTop < rowHeight);
    onView?.((v) => (v.from === from && v.to === to ? v : { from, to }));
  }, [rowHeight]);
  useLayoutEffect(look, [rows.length, look]);
  useReturn(box, pages, rows.length * rowHeight, label);
  useEffect(() => {
    const watch = new ResizeObserver(look);
    if (box.current) watch.observe(box.current);
    return () => watch.disconnect();
  }, [look, !rows.length]);
  useEffect(() => {
    if (pages && !pages.done && view.to >= rows.length) pages.more();
  }, [view.to, rows.length, pages?.done]);

  if (pages?.error && !rows.length) return html`<${Problem} error=${pages.error} onRetry=${pages.reload}/>`;
  if (!rows.length) return pages?.loading ? html`<${Loading}/>` : empty || null;

  const tracks = {
    '--columns': columns.map((c) => c.width || 'minmax(0, 1fr)').join(' '),
    '--columns-phone': columns.filter((c) => c.phone !== false).map((c) => c.phone || 'minmax(0, 1fr)').join(' '),
  };
  const shown = rows.slice(view.from, view.to);
  return html`<div class="list" style=${tracks}><div role="table" aria-label=${label}
    aria-rowcount=${pages && !pages.done ? -1 : rows.length + 1}>
    <div class="list-head" role="row" aria-rowindex="1">${columns.map((c) =>
      html`<span role="columnheader" key=${c.key} class="cell ${c.align || ''} ${c.phone === false ? 'not-phone' : ''}">
        ${c.title}</span>`)}</div>
    <div class="list-body" ref=${box} onScroll=${look} tabindex="0" role="rowgroup" aria-label=${`${label}, rows`}
      style=${height && { maxHeight: height }}>
      <div class="list-space" role="presentation" style=${{ height: `${rows.length * rowHeight}px` }}>
        ${shown.map((row, i) => html`<${Row} key=${rowKey(row)} row=${row} at=${view.from + i} columns=${columns}
          href=${href} height=${rowHeight}/>`)}
      </div>
    </div></div>
    ${pages?.error && html`<${Problem} error=${pages.error} onRetry=${pages.reload}/>`}
    <p class="list-foot" role="status">${pages && !pages.done ? `${rows.length.toLocaleString('en')} shown, more below`
      : `${rows.length.toLocaleString('en')} in total`}</p>
  </div>`;
}

// A list keeps its scroll position when the user opens a row and goes back. Each
// history entry has a key in the Navigation API; in browsers without it the list
// starts at the top.
const places = new Map();
const PLACES_MOST = 100;
const RETURN_MOST = 4000 * 40; // pixels of rows loaded again to get there

function useReturn(box, pages, height, label) {
  const key = globalThis.navigation?.currentEntry && `${navigation.currentEntry.key} ${label}`;
  const wanted = useRef(places.get(key) || 0);
  useEffect(() => {
    const el = box.current;
    if (!el || !wanted.current) return;
    if (pages && !pages.done && height < wanted.current + el.clientHeight && height < RETURN_MOST) pages.more();
    else { el.scrollTop = wanted.current; wanted.current = 0; }
  }, [height, pages?.done]);
  useEffect(() => {
    const el = box.current;
    const keep = () => {
      if (!key || wanted.current) return;
      places.delete(key);
      places.set(key, el.scrollTop);
      if (places.size > PLACES_MOST) places.delete(places.keys().next().value);
    };
    el?.addEventListener('scroll', keep);
    return () => el?.removeEventListener('scroll', keep);
  }, [!height]);
}

// The link of the first cell covers the row: a click anywhere opens it, and it is
// one stop for the keyboard.
function Row({ row, at, columns, href, height }) {
  const to = href?.(row);
  return html`<div class="row ${to ? 'opens' : ''}" role="row" aria-rowindex=${at + 2}
    style=${{ top: `${at * height}px`, height: `${height}px` }}>
    ${columns.map((c, i) => html`<span role="cell" key=${c.key}
      class="cell ${c.align || ''} ${c.phone === false ? 'not-phone' : ''}">${
      i === 0 && to ? html`<a class="cover" href=${to}>${c.render(row)}</a>` : c.render(row)}</span>`)}
  </div>`;
}

/** A small table, rendered in full. columns as above; `row.className` is applied. */
export function Table({ columns, rows, rowKey = (r, i) => i, label, empty }) {
  if (!rows.length) return empty || null;
  return html`<div class="table-box" tabindex="0" role="region" aria-label=${label}><table>
    <caption class="off-screen">${label}</caption>
    <thead><tr>${columns.map((c) => html`<th key=${c.key} scope="col"
      class="${c.align || ''} ${c.phone === false ? 'not-phone' : ''}">${c.title}</th>`)}</tr></thead>
    <tbody>${rows.map((row, i) => html`<tr key=${rowKey(row, i)}
      class=${row.className || ''}>
        ${columns.map((c) => html`<td key=${c.key} class="${c.align || ''} ${c.phone === false ? 'not-phone' : ''}">
          ${c.render(row)}</td>`)}</tr>`)}</tbody>
  </table></div>`;
}
