// A table of the analytics as a file.
import { Button, html, toast } from '../lib/ui.js';
import { ask, path } from '../lib/api.js';
import { saveFile } from '../lib/save.js';

/** The table as a file: fetched with the token, since a link could not carry it. */
export function Csv({ table, params }) {
  const save = async () => {
    const reply = await ask('GET', path`/api/analytics/${table}`,
      { params: { ...params, format: 'csv' }, accept: 'text/csv' });
    saveFile(`signalbox-${table}.csv`, await reply.blob());
    toast(`signalbox-${table}.csv is saved.`);
  };
  return html`<${Button} className="small" onClick=${save} aria-label=${`${table} as CSV`}>CSV<//>`;
}
