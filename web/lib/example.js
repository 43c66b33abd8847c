// The empty states of the gate's pages: what would appear there, and the commands
// that make it appear, on this server or on a second one.
import { Command, Empty, Loading, html, useGet } from './ui.js';

const AGENTS = 'python3 examples/em/agents.py';

/** The address for a second server on this machine. */
function secondServer() {
  const port = location.port === '8790' ? 8791 : 8790;
  return { listen: `127.0.0.1:${port}`, url: `http://127.0.0.1:${port}` };
}

/** With rules on this server, the commands send an envelope to it. Without, they start a second server. */
export function EmExample({ title, envelope, children }) {
  const { data } = useGet('/api/gate');
  const send = envelope && `build/signalbox send --envelope examples/em/envelopes/${envelope}.json`;
  if (!data) return html`<${Empty} title=${title}>${children}<${Loading}/><//>`;
  if (data.rules.state !== 'none')
    return html`<${Empty} title=${title} command=${send && [AGENTS, send]}>
      ${children} ${send && html`If this server (<code>
        ${location.host}</code>) uses the rules of examples/em, these commands create one:`}<//>`;
  const { listen, url } = secondServer();
  return html`<${Empty} title=${title}>${children}
    <p>This server (<code>
      ${location.host}</code>) has no rules: messages go at once, unless the agent is dead or out of capacity.
        Start a second server with the rules of examples/em. It prints the link to its own dashboard:</p>
    <${Command} text=${`build/signalbox serve --config examples/em/signalbox.jsonc --listen ${listen}`}/>
    <p>In a second terminal, with the token that the server prints:</p>
    <${Command} text=${`export SIGNALBOX_URL=${url} SIGNALBOX_TOKEN=sbx_…`}/><${Command} text=${AGENTS}/>
    ${send && html`<p>In a third, with the same <code>export</code>:</p><${Command} text=${send}/>`}<//>`;
}
