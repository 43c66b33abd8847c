// A table of the analytics as a file.
import { Button, html, toast } from '../lib/ui.js';
import { ask, path } from '../lib/api.js';

/** The table as a file: fetched with the token, since a link could not carry it. */
export function Csv({ table, params }) {
  const save = async () => {
    const reply = await ask('GET', path`/api/analytics/${table}`, { params: { ...params, format: 'csv' }, accept: 'text/csv' });
    const url = URL.createObjectURL(await reply.blob());
    Object.assign(document.createElement('a'), { href: url, download: `signalbox-${table}.csv` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
    toast(`signalbox-${table}.csv is saved.`);
  };
  return html`<${Button} className="small" onClick=${save} aria-label=${`${table} as CSV`}>CSV<//>`;
}
