// The JavaScript client as a child of a test: commands in, one JSON object a
// line, answers and events out. sdk_driver.py does the same with the other
// client; sdk_cases.py has the cases that both go through.
import { createInterface } from 'node:readline';

// Another copy of it where a test has changed something.
const { connect } = await import(
    process.env.SDK_JS ?? '../../client/js/signalbox.js'
);

let hub = null;
const held = new Map(); // message -> how to end it

const say = (what) => process.stdout.write(JSON.stringify(what) + '\n');

function hold(task) {
    return new Promise((resolve, reject) => {
        held.set(task.message, { resolve, reject });
        task.signal.addEventListener('abort', () => {
            say({ event: 'cancelled', task: task.id, is_set: task.cancelled });
            reject(task.signal.reason);
        });
    });
}

async function* words(task) {
    for (const word of task.message.split(/(?<= )/).slice(1)) yield word;
}

async function write(task) {
    for await (const word of words(task)) await task.write(word);
}

async function writeAndHold(task) {
    await task.write('begun ');
    return { text: 'begun ' + (await hold(task)) };
}

/** hire AGENT SKILL WORDS */
async function hire(task) {
    const [, agent, skill, ...words] = task.message.split(' ');
    const { text } = await task.delegate(agent, skill, words.join(' '));
    return `${agent} said ${text}`;
}

/** pass_on AGENT WORDS, as a message */
async function passOn(task) {
    const [, agent, ...words] = task.message.split(' ');
    const { text } = await task.send(words.join(' '), { to: agent });
    return `${agent} said ${text}`;
}

/** hireboth AGENT SKILL WORDS: twice at once, and once more */
async function hireboth(task) {
    const [, agent, skill, ...words] = task.message.split(' ');
    const ask = () => task.delegate(agent, skill, words.join(' '));
    const [first] = await Promise.all([ask(), ask()]);
    const last = await ask();
    return `${first.text} ${last.text}`;
}

/** consult AGENT WORDS, whose own words are shown */
async function consult(task) {
    const [, agent, ...words] = task.message.split(' ');
    await task.write('Let me ask. ');
    const what = { agentId: agent, task: words.join(' '), stream: true };
    const { status, response } = await task.delegateToAgent(what);
    await task.write(`${status}: ${response}`);
}

function fail(task) {
    const e = new Error(task.message + "\nand more that is no one's business");
    if (task.message.endsWith('coded')) e.code = 'out_of_paper';
    throw e;
}

const nested = (n) => (n ? { a: nested(n - 1) } : {});
const circle = {};
circle.circle = circle;

const BAD = {
    string: { metadata: 'pages' },
    list: { metadata: [1] },
    value: { metadata: { pages: 3n } },
    circle: { metadata: circle },
    deep: { metadata: nested(63) },
    large: { metadata: { a: 'x'.repeat(1200000) } },
    text: { text: 'half a \ud83e pair' },
};

const HANDLERS = {
    bad: (task) => ({ text: 'good', ...BAD[task.message.split(' ')[1]] }),
    hire,
    hireboth,
    pass_on: passOn,
    consult,
    refused: () => ({ metadata: { toJSON: () => 'pages' } }),
    broken: (task) => task.write('half a \ud83e pair'),
    echo: async (task) => task.message.slice(5),
    stream: words,
    write,
    hold,
    half: writeAndHold,
    fail,
    number: () => 42,
    nothing: () => undefined,
    meta: () => ({ text: 'with more', metadata: { pages: 3 } }),
    oddmeta: () => ({ text: 'with more', metadata: [3] }),
    knotted: () => {
      const metadata = {};
      metadata.itself = metadata;
      return { text: 'x', metadata };
    },
    big: (task) => 'x'.repeat(Number(task.message.split(' ')[1])),
    plain: (task) => task.message.toUpperCase(),
};

function handler(task) {
    say({
        event: 'task',
        id: task.id,
        turn: task.turn,
        attempt: task.attempt,
        message: task.message.slice(0, 100),
        n: task.message.length,
        skill_id: task.skillId,
        session_id: task.sessionId,
        deadline_ms: task.deadlineMs,
        metadata: task.metadata,
        envelope: task.envelope,
    });
    return HANDLERS[task.message.split(' ')[0]](task);
}

const say_words = (of) => (chunk) => say({ event: 'words', of, ...chunk });

async function delegate({ agent, skill, message, options = {}, mark }) {
    const d = hub.delegate(agent, skill, message, {
        sessionId: options.session_id,
        taskId: options.task_id,
        parentTaskId: options.parent_task_id,
        timeoutMs: options.timeout_ms,
        maxCostMicros: options.max_cost_micros,
        onChunk: options.chunks ? say_words(message) : undefined,
    });
    d.accepted.then(
        (a) => say({ event: 'accepted', task: a.task_id }),
        () => {},
    );
    const got = await d;
    if (mark) await hub.call('mark');
    return got;
}

let unhook = null;

/** hold: until `unhook`; fails: so many times, at first. */
function hook({ hold = false, fails = 0 }) {
    let n = 0;
    hub.onDelegationResult(async (result) => {
        say({ event: 'delegated', ...result });
        if (n++ < fails) throw new Error('not now');
        if (hold) await new Promise((yes) => (unhook = yes));
    });
}

async function send({ text, options = {}, chunks = false, asides = false }) {
    const { timeout_ms: timeoutMs, max_cost_micros, ...rest } = options;
    const maxCostMicros = max_cost_micros;
    const reply = hub.send(text, { timeoutMs, maxCostMicros, ...rest });
    if (!chunks) return reply;
    if (asides) return sendWithAsides(reply, options.to);
    reply.accepted.then((a) => say({ event: 'accepted', task: a.task_id }));
    const pieces = [];
    for await (const piece of reply) {
        pieces.push(piece);
        say({ event: 'piece', text: piece });
    }
    return { pieces, ...(await reply) };
}

async function sendWithAsides(reply, to) {
    const pieces = [];
    for await (const { agent, text } of reply.pieces()) {
        if (agent === to) pieces.push(text);
        else say({ event: 'aside', agent, text });
    }
    return { pieces, ...(await reply) };
}

const COMMANDS = {
    delegate,
    hook,
    unhook: () => unhook(),
    tool: ({ order }) => hub.delegateToAgent(order, { onChunk: say_words('') }),
    delegation: ({ key }) => hub.delegation(key),
    tools: ({ format }) => hub.tools(format),
    async connect({ url, token, options = {} }) {
        const camel = {};
        for (const [k, v] of Object.entries(options))
            camel[k.replace(/_(.)/g, (_, c) => c.toUpperCase())] = v;
        if (process.env.WS_PACKAGE)
            ({ WebSocket: camel.WebSocket } = await import(
                process.env.WS_PACKAGE
            ));
        hub = await connect(url, token, camel);
        hub.closed.then(
            () => say({ event: 'closed' }),
            (e) => say({ event: 'closed', code: e.code, message: e.message }),
        );
    },
    register: ({ card, options = {} }) => hub.register(card, handler, options),
    release({ message, text }) {
        held.get(message).resolve(text);
    },
    state: ({ state }) => hub.setState(state),
    update: ({ card }) => hub.update(card),
    search: ({ query, options = {} }) => hub.search(query, options),
    send,
    async envelope({ envelope }) {
        const reply = hub.sendEnvelope(envelope);
        say({ event: 'routing', ...(await reply.accepted).routing });
        return reply;
    },
    get: ({ id }) => hub.getTask(id),
    cancel: ({ id }) => hub.cancelTask(id),
    call: ({ method, params }) => hub.call(method, params),
    /** As it was at the beginning, for another test. */
    async reset() {
        await hub?.close({ graceMs: 0 });
        hub = null;
        held.clear();
    },
    look: () => hub && { agent: hub.agent, is_connected: hub.isConnected },
    close: ({ grace_ms: graceMs }) => hub.close({ graceMs }),
};

async function run({ do: name, n, ...args }) {
    try {
        say({ n, ok: (await COMMANDS[name](args)) ?? null });
    } catch (e) {
        say({
            n,
            error: {
                code: e.code ?? e.name,
                message: e.message,
                data: e.data ?? {},
            },
        });
    }
}

const lines = createInterface({ input: process.stdin });
lines.on('line', (line) => run(JSON.parse(line)));
lines.on('close', () => process.exit(0));
