// "Connect your own agent": a token, the code in one of three languages, and the
// command. The code is that of examples/.
import { Button, Card, Command, Copy, Dialog, Problem, Tabs, Text, html, useState } from '../lib/ui.js';
import { can, me, post } from '../lib/api.js';
import { useRefresh } from '../lib/live.js';

const JS = `import { connect } from 'signalbox';

const hub = await connect();
const card = { name: 'parrot', description: 'Says what it hears' };
await hub.register(card, (task) => task.message);
console.log('parrot is here');
`;

const PYTHON = `import asyncio
import signalbox


async def echo(task):
    return task.message


async def main():
    async with await signalbox.connect() as hub:
        card = {"name": "parrot", "description": "Says what it hears"}
        await hub.register(card, echo)
        print("parrot is here", flush=True)
        await hub.closed()

asyncio.run(main())
`;

const C = String.raw`#include <signalbox_client.h>

static void echo(void *ctx, struct sbc_task *t)
{
    (void)ctx;
    sbc_chunk(t, t->text);
}

int main(void)
{
    const char *card = "{\"name\":\"parrot\",\"description\":\"Echoes\"}";
    struct sbc *s = sbc_open(NULL, NULL); /* SIGNALBOX_URL, SIGNALBOX_TOKEN */

    sbc_log(s, sbc_print, NULL);
    int failed = !s || sbc_register(s, card, echo, NULL) || sbc_run(s);
    sbc_close(s);
    return failed;
}
`;

const LANGUAGES = [
  { id: 'js', label: 'JavaScript', file: 'parrot.mjs', example: 'examples/echo.js', code: JS,
    run: ['node examples/echo.js'], own: 'npm install PATH/client/js' },
  { id: 'python', label: 'Python', file: 'parrot.py', example: 'examples/echo.py', code: PYTHON,
    run: ['PYTHONPATH=client/python python3 examples/echo.py'], own: 'cp PATH/client/python/signalbox.py .' },
  { id: 'c', label: 'C', file: 'parrot.c', example: 'examples/echo.c', code: C,
    run: ['make client', 'cc -Iclient/c examples/echo.c build/client/c/libsignalbox_client.a -lssl -lcrypto -o echo',
      './echo'], own: 'make install' },
];

/** A token for the agent. It is shown once, within the commands. */
function Token({ token, setToken }) {
  const [error, setError] = useState(null);
  const make = async () => {
    setError(null);
    // The scopes that an agent's program needs.
    const scopes = ['send', 'read', 'agents'].filter(can);
    await post('/api/tokens', { label: 'my agent', scopes }).then((t) => setToken(t.token), setError);
  };
  if (token) return html`<p class="note"
    role="status">This token is shown only now. Store it where your program finds it. You can revoke it in the <a
      href="#/settings/tokens">settings</a>.</p>
    <${Command} text=${`export SIGNALBOX_URL=${location.origin} SIGNALBOX_TOKEN=${token}`}/>`;
  return html`<p>The agent will belong to the user of the token: you, <${Text} text=${me()?.user} max=${60}
    line=${true}/>.</p>
    ${error && html`<${Problem} error=${error}/>`}<p><${Button} kind="main"
      onClick=${make}>Create a token<//></p>`;
}

function Steps() {
  const [token, setToken] = useState('');
  const [language, choose] = useState('js');
  const [name, arrived] = useState('');
  const shown = LANGUAGES.find((l) => l.id === language);
  useRefresh(['agent.registered'], () => arrived('arrived'));
  return html`<ol class="steps">
    <li><h3>Create a token</h3><${Token} token=${token} setToken=${setToken}/></li>
    <li><h3>Write the agent</h3><${Tabs} tabs=${LANGUAGES} current=${language} onChange=${choose} label="Language"/>
      <div class="code"><div class="code-head"><code>${shown.file}</code><${Copy} text=${shown.code}/></div>
        <pre tabindex="0" aria-label=${`Code of ${shown.file}`}>${shown.code}</pre></div></li>
    <li><h3>Run it</h3><p>In Signalbox’s source folder, which contains this code as <code>
      ${shown.example}</code>:</p>${shown.run.map((c) => html`<${Command} key=${c} text=${c}/>`)}
      <p class="faint">In your own folder, first run <code>${shown.own}</code>, where PATH is the source folder, and
        save the code as <code>${shown.file}</code>. A program in any other language sends JSON over a WebSocket to
          <code>/hub</code>; docs/protocol.md describes every message.</p>
      ${name && html`<p class="note" role="status">An agent was just registered. It is in the list.</p>`}</li>
  </ol>`;
}

/** A card within the page, or a dialog if it can be closed. */
export function Connect({ onClose }) {
  if (!onClose) return html`<${Card} title="Connect your own agent"><${Steps}/><//>`;
  return html`<${Dialog} title="Connect your own agent" wide=${true} onClose=${onClose}
    actions=${html`<${Button} onClick=${onClose}>Close<//>`}><${Steps}/><//>`;
}
