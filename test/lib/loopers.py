"""Agents on the hub who have every task done by others, for tests of loops and
forks.

    with Loopers(server, token, {"a": ["b"], "b": ["a"]}, price=100) as agents:
        ...
        print(agents.refusals)      # [(who, hired, code, words)]

A task is answered with the agent's own name and, in brackets, what each of the
others said, or "!CODE" where it was refused. An agent that is_strict fails
instead when someone was refused or failed. No one waits for an answer before
it takes its next task, so a loop that nothing stops goes round. With by_message
they ask each other by message.send and not by agent.delegate.
"""
import json
import select
import threading

from hub_wire import HubWire

GONE = (EOFError, ConnectionError)
PATIENCE_S = 60


def told(m):
    """What message.send came to, as agent.delegate would say it."""
    if "jsonrpc" in m:
        return {"status": "error", "code": m["error"]["data"]["code"],
                "error": m["error"]["message"]}
    return {**m, "response": m["text"]}


class Looper:
    def __init__(self, crew, name, hires, **card):
        self.crew, self.name, self.hires = crew, name, hires
        self.wire = HubWire(crew.server.address, crew.token)
        self.open = {}   # task id -> [answers by place]
        self.turns = {}
        self.sent = {}   # by message.send: its task -> what it is for
        self.call("register", "agent.register", card={
            "name": name, "description": "has others do it",
            "visibility": "public", "limits": {"in_flight": 1000}, **card})
        answer = next(m for m in self.wire.hear() if m.get("id") == "register")
        if "error" in answer:
            raise AssertionError(answer)

    def call(self, id, method, **params):
        self.wire.say({"jsonrpc": "2.0", "id": id, "method": method,
                       "params": params})

    def hear(self):
        for m in self.wire.hear():
            if m.get("method") == "task.execute":
                self.execute(m["id"], m["params"])
            elif m.get("method") == "task.result":
                self.answered({"id": self.sent.pop(m["params"]["task_id"]),
                               "result": told(m["params"])})
            elif isinstance(m.get("id"), str) and "/" in m["id"]:
                if self.crew.by_message and "result" in m:
                    self.sent[m["result"]["task_id"]] = m["id"]
                else:
                    self.answered(m)

    def execute(self, id, task):
        self.crew.executed.append((self.name, task["metadata"]["root_user"],
                                   task["metadata"]["chain"]))
        self.wire.say({"jsonrpc": "2.0", "id": id,
                       "result": {"status": "working"}})
        task_id = task["task_id"]
        self.open[task_id] = [None] * len(self.hires)
        self.turns[task_id] = task["turn"]
        for i, name in enumerate(self.hires):
            self.ask(f"{task_id}/{i}", name, task["message"])
        self.finish(task_id)

    def ask(self, id, name, words):
        parent = id.split("/")[0]
        if self.crew.by_message:
            self.call(id, "message.send", executor={"name": name}, text=words,
                      listen="result", parent_task_id=parent)
        else:
            self.call(id, "agent.delegate", agentId=name, task=words,
                      parent_task_id=parent)

    def answered(self, m):
        task_id, i = m["id"].split("/")
        r = m["result"] if "result" in m else told(m)
        if r["status"] == "completed":
            said = r["response"]
        elif "task_id" in r:  # it was begun, and came to nothing
            said = "!" + json.dumps(r)
        else:
            self.crew.refusals.append((self.name, self.hires[int(i)],
                                       r["code"], r["error"]))
            said = "!" + r["code"]
        self.open[task_id][int(i)] = said
        self.finish(task_id)

    def finish(self, task_id):
        said = self.open[task_id]
        if None in said:
            return
        del self.open[task_id]
        is_bad = self.crew.is_strict and any(s[0] == "!" for s in said)
        self.call("done", "task.result", task_id=task_id,
                  turn=self.turns.pop(task_id),
                  **({"status": "failed", "error": "someone did not help"}
                     if is_bad else
                     {"status": "completed",
                      "text": f"{self.name}({','.join(said)})"}))


class Loopers:
    """hires: name -> the names that it hires for each of its tasks."""

    def __init__(self, server, token, hires, price=0, is_strict=False,
                 by_message=False, **card):
        self.server, self.token, self.is_strict = server, token, is_strict
        self.by_message = by_message
        self.executed = []  # (agent, root user, chain)
        self.refusals = []  # (agent, hired, code, words)
        self.mistakes = []
        card = {"pricing": {"amount_micros": price}, **card}
        self.agents = [Looper(self, name, list(hired), **card)
                       for name, hired in hires.items()]
        self.is_over = False
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, kind, *_):
        self.is_over = True
        self.thread.join(PATIENCE_S)
        for agent in self.agents:
            agent.wire.socket.close()
        if kind is None and self.mistakes:
            raise AssertionError(self.mistakes)

    def run(self):
        by_fd = {a.wire.socket.fileno(): a for a in self.agents}
        poll = select.epoll()
        for fd in by_fd:
            poll.register(fd, select.EPOLLIN)
        try:
            while not self.is_over:
                for fd, _ in poll.poll(0.02):
                    by_fd[fd].hear()
        except GONE:
            pass  # the server was killed
        except Exception as e:  # shown by who leaves
            self.mistakes.append(repr(e))
        poll.close()
