"""An agent that echoes each message. client/README.md explains more."""
import asyncio
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
