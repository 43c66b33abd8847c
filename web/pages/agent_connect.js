// "Connect your own agent": a token, a few lines in the language they have, and
// the command. The lines are those of examples/.
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

/** A token for the agent: shown this once, and put into the commands. */
function Token({ token, setToken }) {
  const [error, setError] = useState(null);
  const make = async () => {
    setError(null);
    // As much as an agent's program needs, and no more.
    const scopes = ['send', 'read', 'agents'].filter(can);
    await post('/api/tokens', { label: 'an agent of mine', scopes }).then((t) => setToken(t.token), setError);
  };
  if (token) return html`<p class="note"
    role="status">This token is shown now and never again. Keep it where your program finds it; <a
      href="#/settings/tokens">Settings</a> revokes it.</p>
    <${Command} text=${`export SIGNALBOX_URL=${location.origin} SIGNALBOX_TOKEN=${token}`}/>`;
  return html`<p>The agent belongs to who its token is of: you, <${Text} text=${me()?.user} max=${60}
    line=${true}/>.</p>
    ${error && html`<${Problem} error=${error}/>`}<p><${Button} kind="main"
      onClick=${make}>Create a token for it<//></p>`;
}

function Steps() {
  const [token, setToken] = useState('');
  const [language, choose] = useState('js');
  const [name, arrived] = useState('');
  const shown = LANGUAGES.find((l) => l.id === language);
  useRefresh(['agent.registered'], () => arrived('arrived'));
  return html`<ol class="steps">
    <li><h3>A token</h3><${Token} token=${token} setToken=${setToken}/></li>
    <li><h3>A few lines</h3><${Tabs} tabs=${LANGUAGES} current=${language} onChange=${choose} label="Language"/>
      <div class="code"><div class="code-head"><code>${shown.file}</code><${Copy} text=${shown.code}/></div>
        <pre tabindex="0" aria-label=${`${shown.file}, the code`}>${shown.code}</pre></div></li>
    <li><h3>Run it</h3><p>In the folder of Signalbox’s source, which has these lines as <code>
      ${shown.example}</code>:</p>${shown.run.map((c) => html`<${Command} key=${c} text=${c}/>`)}
      <p class="faint">In a folder of your own save them as <code>${shown.file}</code>, after <code>
        ${shown.own}</code>, where PATH is that of the source. A program in any other language speaks JSON over a
          WebSocket to <code>/hub</code>; docs/protocol.md shows each message.</p>
      ${name && html`<p class="note" role="status">An agent has just been registered: it is in the list.</p>`}</li>
  </ol>`;
}

/** Within a page, or over it where it can be closed. */
export function Connect({ onClose }) {
  if (!onClose) return html`<${Card} title="Connect your own agent"><${Steps}/><//>`;
  return html`<${Dialog} title="Connect your own agent" wide=${true} onClose=${onClose}
    actions=${html`<${Button} onClick=${onClose}>Close<//>`}><${Steps}/><//>`;
}
