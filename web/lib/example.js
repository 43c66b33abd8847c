// What a page without anything to show says: what would appear, and commands
// that can be followed from here, with the server that will show it.
import { Command, Empty, Loading, html, useGet } from './ui.js';

const AGENTS = 'python3 examples/em/agents.py';

/** Another server beside this one, wherever this one is. */
function beside() {
  const port = location.port === '8790' ? 8791 : 8790;
  return { listen: `127.0.0.1:${port}`, url: `http://127.0.0.1:${port}` };
}

/**
 * Nothing of the gate's is here yet; examples/em makes some. By rules that this
 * server has it appears here; without any it takes a server of its own.
 */
export function EmExample({ title, envelope, children }) {
  const { data } = useGet('/api/gate');
  const send = envelope && `build/signalbox send --envelope examples/em/envelopes/${envelope}.json`;
  if (!data) return html`<${Empty} title=${title}>${children}<${Loading}/><//>`;
  if (data.rules.state !== 'none')
    return html`<${Empty} title=${title} command=${send && [AGENTS, send]}>
      ${children} ${send && html`Where the rules of this server (<code>
        ${location.host}</code>) are those of examples/em, these make one:`}<//>`;
  const { listen, url } = beside();
  return html`<${Empty} title=${title}>${children}
    <p>This server (<code>
      ${location.host}</code>) has no rules: what is sent goes at once, unless its agent has too much to do or is dead.
        The four agents of examples/em have some, on a server of their own beside this one.
      Its dashboard shows what waits there, with the link that it prints:</p>
    <${Command} text=${`build/signalbox serve --config examples/em/signalbox.jsonc --listen ${listen}`}/>
    <p>In a second terminal, with the token that it prints:</p>
    <${Command} text=${`export SIGNALBOX_URL=${url} SIGNALBOX_TOKEN=sbx_…`}/><${Command} text=${AGENTS}/>
    ${send && html`<p>In a third, with the same <code>export</code>:</p><${Command} text=${send}/>`}<//>`;
}
