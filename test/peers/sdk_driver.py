"""The Python client as a child of a test: commands in, one JSON object a line,
answers and events out. sdk_driver.mjs does the same with the other client;
sdk_cases.py has the cases that both go through."""
import asyncio
import json
import sys

import signalbox

hub = None
held = {}  # message -> how to end it


def say(**what):
    sys.stdout.write(json.dumps(what) + "\n")  # handlers run in threads
    sys.stdout.flush()


async def hold(task):
    held[task.message] = asyncio.get_running_loop().create_future()
    try:
        return await held[task.message]
    except asyncio.CancelledError:
        say(event="cancelled", task=task.id, is_set=task.cancelled)
        raise


async def echo(task):
    return task.message[5:]


def split(task):
    return [w + " " for w in task.message.split(" ")[1:-1]] + \
        task.message.split(" ")[-1:]


async def stream(task):
    for word in split(task):
        yield word


async def write(task):
    for word in split(task):
        await task.write(word)


async def half(task):
    await task.write("begun ")
    return {"text": "begun " + await hold(task)}


async def hire(task):
    """hire AGENT SKILL WORDS"""
    _, agent, skill, words = task.message.split(" ", 3)
    done = await task.delegate(agent_name=agent, skill=skill, message=words)
    return f"{agent} said {done['text']}"


async def pass_on(task):
    """pass_on AGENT WORDS, as a message"""
    _, agent, words = task.message.split(" ", 2)
    done = await task.send(words, to=agent)
    return f"{agent} said {done['text']}"


async def hireboth(task):
    """The same twice at once, and once more."""
    _, agent, skill, words = task.message.split(" ", 3)
    both = [task.delegate(agent, skill, words) for _ in range(2)]
    first = [await d for d in both][0]
    last = await task.delegate(agent, skill, words)
    return f"{first['text']} {last['text']}"


def hireplainly(task):
    """The same, in a thread."""
    _, agent, skill, words = task.message.split(" ", 3)
    done = task.delegate(agent, skill, words)
    return f"{agent} said {done['text']}"


async def consult(task):
    """consult AGENT WORDS, whose own words are shown"""
    _, agent, words = task.message.split(" ", 2)
    await task.write("Let me ask. ")
    done = await task.delegate_to_agent({"agentId": agent, "task": words,
                                         "stream": True})
    await task.write(f"{done['status']}: {done['response']}")


class Coded(Exception):
    code = "out_of_paper"


async def fail(task):
    kind = Coded if task.message.endswith("coded") else ValueError
    raise kind(task.message + "\nand more that is no one's business")


async def number(_):
    return 42


async def nothing(_):
    return None


async def meta(_):
    return {"text": "with more", "metadata": {"pages": 3}}


def nested(n):
    return {"a": nested(n - 1)} if n else {}


BAD = {"string": {"metadata": "pages"}, "list": {"metadata": [1]},
       "value": {"metadata": {"pages": float("nan")}},
       "circle": {"metadata": (lambda d: d.update(d=d) or d)({})},
       "deep": {"metadata": nested(63)},
       "large": {"metadata": {"a": "x" * 1200000}},
       "text": {"text": "half a \ud83e pair"}}


async def bad(task):
    return {"text": "good", **BAD[task.message.split(" ")[1]]}


async def refused(_):
    """Whatever the client looks at, the server may not like it."""
    ask = hub._calls.ask

    async def spoil(method, params, **how):
        hub._calls.ask = ask
        return await ask(method, {**params, "metadata": "pages"}, **how)
    hub._calls.ask = spoil


async def broken(task):
    await task.write("half a \ud83e pair")


async def big(task):
    return "x" * int(task.message.split(" ")[1])


def plain(task):
    return task.message.upper()


def threaded(task):
    for word in split(task):
        if task.write(word) is not None:
            raise AssertionError("it does not wait")


async def oddmeta(_):
    return {"text": "with more", "metadata": [3]}


async def lone(task):
    return task.message[5:] + "\ud800"


HANDLERS = {f.__name__: f for f in (
    echo, stream, write, hold, half, fail, number, nothing, meta, bad, broken,
    refused, big, plain, threaded, oddmeta, lone, hire, hireboth,
    pass_on, hireplainly, consult)}


def handler(task):
    say(event="task", id=task.id, turn=task.turn, attempt=task.attempt,
        message=task.message[:100], n=len(task.message),
        skill_id=task.skill_id, session_id=task.session_id,
        deadline_ms=task.deadline_ms, metadata=task.metadata,
        envelope=task.envelope)
    return HANDLERS[task.message.split(" ")[0]](task)


async def do_connect(url=None, token=None, options=None):
    global hub
    hub = await signalbox.connect(url, token, **(options or {}))
    asyncio.ensure_future(closed())


async def closed():
    try:
        await hub.closed()
        say(event="closed")
    except signalbox.SignalboxError as e:
        say(event="closed", code=e.code, message=e.message)


async def do_register(card, options=None):
    return await hub.register(card, handler, **(options or {}))


async def do_release(message, text):
    # The handler has said that it was called, and is about to hold.
    while message not in held or held[message].done():
        await asyncio.sleep(0)
    held[message].set_result(text)


async def do_state(state):
    return await hub.set_state(state)


async def do_update(card):
    return await hub.update(card)


async def do_search(query, options=None):
    return await hub.search(query, **(options or {}))


async def accepted(reply):
    say(event="accepted", task=(await reply.accepted())["task_id"])


def say_words(of):
    return lambda chunk: say(event="words", of=of, **chunk)


async def do_delegate(agent, skill, message, options=None, mark=False):
    options = options or {}
    if options.pop("chunks", False):
        options["on_chunk"] = say_words(message)
    d = hub.delegate(agent_name=agent, skill=skill, message=message,
                     **options)
    asyncio.ensure_future(say_accepted(d))
    got = await d
    if mark:
        await hub.call("mark")
    return got


async def say_accepted(d):
    try:
        say(event="accepted", task=(await d.accepted())["task_id"])
    except signalbox.SignalboxError:
        pass


hooked = None


async def do_hook(hold=False, fails=0):
    """hold: until `unhook`; fails: so many times, at first."""
    global hooked
    hooked = asyncio.Event()
    n = 0

    @hub.on_delegation_result
    async def on_result(result):
        nonlocal n
        n += 1
        say(event="delegated", **result)
        if n <= fails:
            raise ValueError("not now")
        if hold:
            await hooked.wait()


async def do_unhook():
    hooked.set()


async def do_tool(order):
    return await hub.delegate_to_agent(order, on_chunk=say_words(""))


async def do_delegation(key):
    return await hub.delegation(key)


async def do_tools(format=None):
    return await hub.tools(format)


async def send_with_asides(reply, to):
    pieces = []
    async for piece in reply.pieces():
        if piece["agent"] == to:
            pieces.append(piece["text"])
        else:
            say(event="aside", **piece)
    return {"pieces": pieces, **await reply}


async def do_send(text, options=None, chunks=False, asides=False):
    reply = hub.send(text, **(options or {}))
    if not chunks:
        return await reply
    if asides:
        return await send_with_asides(reply, options["to"])
    asyncio.ensure_future(accepted(reply))
    pieces = []
    async for piece in reply:
        pieces.append(piece)
        say(event="piece", text=piece)
    return {"pieces": pieces, **await reply}


async def do_envelope(envelope):
    reply = hub.send_envelope(envelope)
    say(event="routing", **(await reply.accepted())["routing"])
    return await reply


async def do_get(id):
    return await hub.get_task(id)


async def do_cancel(id):
    return await hub.cancel_task(id)


async def do_call(method, params=None):
    return await hub.call(method, params)


async def do_reset():
    """As it was at the beginning, for another test."""
    global hub
    if hub:
        await hub.close(grace_ms=0)
    hub = None
    held.clear()


async def do_look():
    return hub and {"agent": hub.agent, "is_connected": hub.is_connected}


async def do_close(grace_ms=5000):
    await hub.close(grace_ms=grace_ms)


async def run(args):
    n, name = args.pop("n"), args.pop("do")
    try:
        say(n=n, ok=await globals()["do_" + name](**args))
    except signalbox.SignalboxError as e:
        say(n=n, error={"code": e.code, "message": e.message, "data": e.data})
    except (TypeError, ValueError) as e:
        say(n=n, error={"code": type(e).__name__, "message": str(e)})


async def main():
    reader = asyncio.StreamReader(limit=1 << 24)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    running = set()
    while line := await reader.readline():
        task = asyncio.ensure_future(run(json.loads(line)))
        running.add(task)
        task.add_done_callback(running.discard)

asyncio.run(main())
