// A table of the analytics as a CSV file.
import { Button, html, toast } from '../lib/ui.js';
import { ask, path } from '../lib/api.js';
import { saveFile } from '../lib/save.js';

/** Fetched with the token, because a link could not carry one. */
export function Csv({ table, params }) {
  const save = async () => {
    const reply = await ask('GET', path`/api/analytics/${table}`,
      { params: { ...params, format: 'csv' }, accept: 'text/csv' });
    saveFile(`signalbox-${table}.csv`, await reply.blob());
    toast(`signalbox-${table}.csv was saved.`);
  };
  return html`<${Button} className="small" onClick=${save} aria-label=${`${table} as CSV`}>CSV<//>`;
}
