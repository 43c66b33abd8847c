"""Agents on the hub who drop their connections at any step, for a Storm.

    with Phoenix(*SETTINGS, agents=[]) as phoenix, Crew(phoenix, names) as crew:
        storm = Storm(phoenix, names, n_tasks=2000,
                      kinds=(Sender, HubSender))
        storm.run()
        phoenix.all_over()
    print(result_faults(crew, tasks))

Each answer of an agent has a number of its own, so that whichever of several
the server has kept can be told; and the agents note which it said it had. An
agent that comes back says again what was not acknowledged, or has forgotten
everything, and is given it again.
"""
import collections
import itertools
import random
import select
import threading
import time

from hub_wire import HubWire, frame
from storm import GONE, Sender

# Anyone who is away is waited for, and no one is given up.
SETTINGS = ("--set", "deliver.onOffline=hold",
            "--set", "deliver.maxAttempts=1000",
            "--set", "deliver.retryMs=10", "--set", "deliver.retryMaxMs=20",
            "--set", "deliver.breakerFailures=1000")
AWAY = (*GONE, OSError)
PASSING = {"internal", "outcome_unknown", "overloaded", "stopping", "busy",
           "out_of_memory"}
PAUSE_S = 0.002
BEHIND_MAX = 2000


class HubSender(Sender):
    """A sender that uses message.send."""

    def connect(self):
        self.next = self.acked
        self.answered = {}
        try:
            self.wire = HubWire(self.storm.server.address,
                                self.storm.server.token)
            self.socket = self.wire.socket
        except EOFError as e:
            raise ConnectionError from e

    def message(self, i):
        body = self.body(i)
        del body["wait_ms"]
        return {"jsonrpc": "2.0", "id": i, "method": "message.send",
                "params": {**body, "listen": False}}

    def send(self):
        out = []
        while self.next < min(self.n, self.acked + self.depth):
            out.append(self.message(self.next))
            self.next += 1
        try:
            self.wire.say(*out)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def receive(self):
        try:
            for m in self.wire.hear():
                self.answered[m["id"]] = m
        except (*AWAY, BlockingIOError):
            return False
        while self.acked in self.answered and \
                self.storm.is_answered_well(self):
            self.take(self.answered.pop(self.acked))
        return self.storm.is_answered_well(self)

    def take(self, m):
        if "result" in m:
            self.storm.heard(self, 200, m["result"])
        else:
            code = m["error"].get("data", {}).get("code")
            self.storm.heard(self, 503 if code in PASSING else 400, m)


class HubAgent:
    """One agent, and what it remembers."""

    def __init__(self, crew, name):
        self.crew = crew
        self.name = name
        self.random = random.Random(f"{crew.seed} {name}")
        self.wire = None
        self.is_registered = False
        self.back_at = 0.0
        self.todo = []   # params of task.execute
        self.kept = {}   # number -> task.result, not acknowledged

    # Leaving.

    def leave(self):
        """How it goes is as random as when."""
        wire, self.wire = self.wire, None
        self.crew.forget(self, wire)
        self.is_registered = False
        how = self.random.choice(("cut", "cut", "close", "half", "hang up"))
        if how == "cut":
            wire.cut()
        elif how == "close":
            wire.close()
        else:
            if how == "half":
                try:
                    wire.socket.send(frame(b'{"jsonrpc":"2.0","id":1}')[:9])
                except OSError:
                    pass
            wire.socket.close()
        self.todo.clear()
        if self.random.random() < 0.3:
            self.kept.clear()  # it was its own crash
        self.crew.n_drops += 1

    def lost(self):
        """The other side left."""
        self.crew.forget(self, self.wire)
        self.wire.socket.close()
        self.wire = None
        self.is_registered = False
        self.todo.clear()

    def stays(self, step):
        """Whether it survives this step."""
        if self.random.random() >= self.crew.drop_rate:
            return True
        self.crew.steps[step] += 1
        self.leave()
        return False

    # Working.

    def come(self):
        try:
            self.wire = HubWire(self.crew.phoenix.server.address,
                                self.crew.phoenix.token)
        except AWAY:
            self.wire = None
            self.back_at = time.monotonic() + PAUSE_S
            return
        self.crew.watch(self)
        if self.stays("connected"):
            self.wire.say({"jsonrpc": "2.0", "id": "register",
                           "method": "agent.register",
                           "params": {"card": {
                               "name": self.name, "visibility": "public",
                               "description": "Weathers storms"}}})
            self.stays("registering")

    def hear(self):
        for m in self.wire.hear():
            if m.get("method") == "task.execute":
                self.todo.append((m["id"], m["params"]))
                self.crew.begun.add(m["params"]["task_id"])
                if not self.stays("given"):
                    return
            elif m.get("id") == "register":
                self.registered(m)
            elif "id" in m:
                self.answered(m)
        self.work()

    def registered(self, m):
        if "error" in m:
            code = m["error"].get("data", {}).get("code")
            if code not in PASSING:
                self.crew.mistakes.append(f"not registered: {m}")
            raise EOFError
        self.is_registered = True
        self.wire.say(*self.kept.values())

    def answered(self, m):
        said = self.kept.pop(m["id"], None)
        if said is None:
            return
        task = said["params"]["task_id"]
        if "error" in m:
            code = m["error"].get("data", {}).get("code")
            self.crew.refused[code] += 1
            if code in PASSING:
                self.kept[m["id"]] = said
                self.leave()
                raise EOFError
        elif m["result"]["recorded"]:
            self.crew.recorded[task].append(m["id"])
            self.crew.on_recorded()
        else:
            self.crew.n_late += 1

    def work(self):
        """Some of what there is to do, in any order."""
        self.random.shuffle(self.todo)
        while self.todo and self.wire:
            call, params = self.todo.pop()
            if not self.execute(call, params):
                return

    def execute(self, call, params):
        task = params["task_id"]
        if self.random.random() < 0.7:
            self.wire.say({"jsonrpc": "2.0", "id": call,
                           "result": {"status": "working"}})
            if not self.stays("working"):
                return False
        if self.random.random() < 0.3:
            self.wire.say({"jsonrpc": "2.0", "method": "task.chunk",
                           "params": {"task_id": task, "turn": params["turn"],
                                      "text": "so "}})
            if not self.stays("chunk"):
                return False
        # Now and then it says two things.
        for _ in range(1 + (self.random.random() < 0.02)):
            number = str(next(self.crew.numbers))
            self.kept[number] = {
                "jsonrpc": "2.0", "id": number, "method": "task.result",
                "params": {"task_id": task, "turn": params["turn"],
                           "status": "completed", "text": params["message"],
                           "metadata": {"number": number}}}
            self.wire.say(self.kept[number])
        return self.stays("answered")


class Crew:
    """All agents, in a thread of their own, until the storm is over."""

    def __init__(self, phoenix, names, drop_rate=0.05, seed=1):
        self.phoenix = phoenix
        self.drop_rate = drop_rate
        self.seed = seed
        self.numbers = itertools.count(1)
        self.recorded = collections.defaultdict(list)  # task -> numbers
        self.begun = set()
        self.refused = collections.Counter()
        self.steps = collections.Counter()
        self.n_drops = self.n_late = 0
        self.mistakes = []
        self.on_recorded = lambda: None
        self.agents = [HubAgent(self, name) for name in names]
        self.poll = select.epoll()
        self.by_fd = {}
        self.is_over = False
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over = True
        self.thread.join()
        self.poll.close()
        for agent in self.by_fd.values():
            agent.wire.socket.close()

    def is_behind(self, sent):
        """So that a long storm is not mostly a long queue."""
        return len(sent) - len(self.begun) > BEHIND_MAX and not self.mistakes

    def watch(self, agent):
        self.by_fd[agent.wire.socket.fileno()] = agent
        self.poll.register(agent.wire.socket.fileno(), select.EPOLLIN)

    def forget(self, agent, wire):
        fd = wire.socket.fileno()
        if self.by_fd.pop(fd, None) is agent:
            self.poll.unregister(fd)

    def run(self):
        while not self.is_over and not self.mistakes:
            now = time.monotonic()
            for agent in self.agents:
                if not agent.wire and agent.back_at <= now:
                    self.step(agent, agent.come)
            for fd, _ in self.poll.poll(PAUSE_S):
                agent = self.by_fd.get(fd)
                if agent:
                    self.step(agent, agent.hear)

    def step(self, agent, what):
        try:
            what()
        except AWAY:
            if agent.wire:
                agent.lost()
        except Exception as e:  # shown by who runs the storm
            self.mistakes.append(repr(e))


def result_faults(crew, tasks):
    """What is wrong with the results of tasks that are all over, by what the
    agents were told of them."""
    wrong = []
    by_id = {t["id"]: t for t in tasks}
    twice = [t for t, numbers in crew.recorded.items() if len(numbers) > 1]
    if twice:
        wrong.append(f"{len(twice)} with two results: {twice[:3]}")
    other = [t for t, numbers in crew.recorded.items()
             if kept_number(by_id.get(t)) not in numbers]
    if other:
        wrong.append(f"{len(other)} acknowledged and not kept: {other[:3]}")
    return wrong


def kept_number(task):
    return ((task or {}).get("result") or {}).get("metadata", {}).get("number")
