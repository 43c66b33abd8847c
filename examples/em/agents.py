"""Jay, Z, Rick and Leroy: four small agents on one broker. README.md beside
this tells the story.

    agents.py [NAME …]     those alone

A name and Enter makes that agent die; once more, and it is back. Each says
what it was given. Z checks what it is asked: it approves, unless the payload
says that an agent is unavailable, and tells the gate that its data is two
hours old.
"""
import asyncio
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "client", "python"))
import signalbox  # noqa: E402

CAST = {"Jay": "Researches job postings and submits consultants to them",
        "Z": "Validates the data: nothing is submitted without it",
        "Rick": "Asks clients' vendors for submissions",
        "Leroy": "Takes inbound leads"}
TWO_HOURS_MS = 2 * 60 * 60 * 1000


def say(name, what):
    print(f"{name:6} {what}", flush=True)


def told(envelope):
    about = f" about {envelope['reference']}" if "reference" in envelope else ""
    return f"{envelope['type']} from {envelope['from']}{about}"


def work_of(name):
    async def work(task):
        say(name, "got " + (told(task.envelope) if task.envelope
                            else task.message))
        if name != "Z" or not task.envelope:
            return f"{name} took it"
        available = task.envelope.get("payload", {}).get("available", True)
        say(name, "approves" if available else "does not approve")
        return {"text": "approved" if available else "not approved",
                "metadata": {"approved": available}}
    return work


async def begin(name):
    hub = await signalbox.connect()
    await hub.register({"name": name, "description": CAST[name]}, work_of(name))
    if name == "Z":
        await hub.set_state(None, data_at=int(time.time() * 1000) -
                            TWO_HOURS_MS)
    say(name, "is here")
    return hub


async def lines():
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        yield line.strip()


async def main(names):
    hubs = {name: await begin(name) for name in names}
    async for line in lines():
        name = {n.lower(): n for n in names}.get(line.lower())
        if not name:
            print("There are " + ", ".join(names), flush=True)
        elif name in hubs:
            await hubs.pop(name).close(grace_ms=0)
            say(name, "is dead")
        else:
            hubs[name] = await begin(name)
    for hub in hubs.values():
        await hub.close()


try:
    asyncio.run(main(sys.argv[1:] or list(CAST)))
except KeyboardInterrupt:
    os._exit(0)  # a thread still waits for a line
except signalbox.SignalboxError as e:
    sys.exit(f"agents.py: {e}")
except KeyError as e:
    sys.exit(f"agents.py: there is no {e}; there are {', '.join(CAST)}")
