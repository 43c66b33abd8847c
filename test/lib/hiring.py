"""Agents that hire agents, for tests: a server with two of anna's on its hub,
and what they say to each other.

    with House() as h:
        h.begin()
        h.ask("42")
        done(h.worker, given(h.worker), text="found")
        print(h.result())
"""
import contextlib

from hub_peer import Hub, Refused
from signalbox import Server, eventually

RATE = {"rate": {"perUser": 0}}
SKILLS = [{"id": "web-search", "name": "Web search",
           "description": "searches the web"},
          {"id": "summarize", "name": "Summaries",
           "description": "makes texts short"}]
PAPERS = "Here are the recent papers on transformer architectures..."


def request(id, **params):
    """agent.send_task, with what the protocol's own example has."""
    return {"jsonrpc": "2.0", "id": id, "method": "agent.send_task",
            "params": {"agent_id": "web-search-agent",
                       "message": "Find recent papers on transformer "
                                  "architectures",
                       "skill_id": "web-search", **params}}


def awaited(get, what="what another process brings about"):
    """What get gives, once that is something."""
    box = []
    eventually(lambda: box.append(get()) or box[-1], what)
    return box[-1]


def is_answer(id):
    return lambda m: "method" not in m and m.get("id") == id


def is_result(message):
    return message.get("method") == "delegation.result"


class House(contextlib.ExitStack):
    """A server, anna whose agents they are, and two of them on the hub."""

    def __init__(self, *args, config=None, agents=None, **kw):
        super().__init__()
        self.server = self.enter_context(
            Server(*args, config={**RATE, **(config or {})}, agents=agents,
                   **kw))

    def begin(self):
        self.anna = self.server.user("anna")
        self.boss = self.agent("research-agent")
        self.worker = self.agent("web-search-agent", skills=SKILLS)
        return self

    def agent(self, name, **card):
        hub = self.enter_context(Hub(self.server, self.anna))
        hub.register(name, **card)
        return hub

    def ask(self, id="42", hub=None, **params):
        """The answer to agent.send_task as it stands."""
        hub = hub or self.boss
        hub.send(request(id, **params))
        return hub.next(is_answer(id))

    def result(self, hub=None):
        return (hub or self.boss).next(is_result)

    def tasks(self, **want):
        items = self.server.call("GET", "/api/tasks").json()["items"]
        return [t for t in items
                if all(t[k] == v for k, v in want.items())]

    def task(self, id):
        return self.server.call("GET", f"/api/tasks/{id}").json()

    def over(self, id):
        """The task, once it is over."""
        return awaited(lambda: self.task(id)["result"] and self.task(id))


def given(worker):
    """The next task of an agent's, taken and not done."""
    message = worker.next(lambda m: m.get("method") == "task.execute")
    worker.send({"jsonrpc": "2.0", "id": message["id"],
                 "result": {"status": "working"}})
    return message["params"]


def done(worker, task, **said):
    return worker.call("task.result", task_id=task["task_id"],
                       turn=task["turn"],
                       **{"status": "completed", **said})


def told(hub):
    """The results that came, or were on their way: each of these answers is
    behind a read of the store, as what is told after a registration is."""
    for _ in range(5):
        with contextlib.suppress(Refused):
            hub.call("delegation.get",
                     sessionKey="del_01jabcdefghjkmnpqrstvwxyz0")
    return [m["params"] for m in hub.waiting if is_result(m)]
