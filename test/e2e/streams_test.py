"""Many tasks stream at once, and some of those who asked never read: what waits
for them is bounded, and everybody else hears everything, in order. Half of them
listen by server-sent events and half on the hub. Bytes are counted, never time.

A round is: every task says one more chunk, and everybody who reads has heard it.
So no one who reads is ever behind, and who is is so by the server's doing.

STRESS=full has 1 000 tasks and 100 who never read.
"""
import contextlib
import json
import os
import re
import selectors
import socket
import struct
import unittest

import ws_crowd
from signalbox import DEADLINE_S, Server

IS_FULL = os.environ.get("STRESS") == "full"
N_TASKS, N_STALLED = (1000, 100) if IS_FULL else (200, 20)
N_AGENTS, N_HUB_USERS = 8, 16
ROUNDS, CHUNK = 12, 4000
STALLED_CHUNK = 64 * 1024  # who never reads is told more than any buffer takes
MARK = 64 * 1024

# Of each who never reads may wait: the mark, and the message of 64 KiB and some
# that passed it, in a buffer that grows by doubling.
EACH_STALLED = 4 * MARK + 2 * STALLED_CHUNK
RINGS = 64 << 20  # of all events that are kept
SLACK = 48 << 20


class Wire:
    """One connection that is read when it is ready; frames with a mask of
    zeroes, which costs nothing."""

    def __init__(self, load, address, is_stalled=False):
        self.load = load
        self.socket = socket.socket()
        if is_stalled:
            # So little that the kernel keeps hardly anything for it.
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
        self.socket.settimeout(DEADLINE_S)
        self.socket.connect(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.got = b""
        if not is_stalled:
            load.selector.register(self.socket, selectors.EVENT_READ, self)

    def send(self, data):
        """All of it; what comes meanwhile is read, so that no one waits for
        one another."""
        self.socket.setblocking(False)
        view = memoryview(data)
        while view:
            try:
                view = view[self.socket.send(view):]
            except BlockingIOError:
                self.load.turn(0.01)

    def say(self, **message):
        text = json.dumps({"jsonrpc": "2.0", **message}).encode()
        n = len(text)
        head = struct.pack("!BB", 0x81, 0x80 | n) if n < 126 else \
            struct.pack("!BBH", 0x81, 0xfe, n) if n < 65536 else \
            struct.pack("!BBQ", 0x81, 0xff, n)
        self.send(head + bytes(4) + text)

    def join(self, server):
        """Become a WebSocket."""
        self.send(server.request(
            "GET", "/hub", None, "Upgrade: websocket", "Connection: Upgrade",
            "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="))
        self.socket.settimeout(DEADLINE_S)
        got = b""
        while not got.endswith(b"\r\n\r\n"):
            got += self.socket.recv(1)
        if b" 101 " not in got:
            raise AssertionError(got)

    def ready(self):
        self.socket.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            data = self.socket.recv(1 << 18)
            if not data:
                self.load.selector.unregister(self.socket)
            self.got += data
            self.heard()

    def messages(self):
        while len(self.got) >= 2:
            n, head = self.got[1], 2
            if n == 126:
                n, head = int.from_bytes(self.got[2:4], "big"), 4
            elif n == 127:
                n, head = int.from_bytes(self.got[2:10], "big"), 10
            if len(self.got) < head + n:
                return
            opcode, text = self.got[0] & 15, self.got[head:head + n]
            self.got = self.got[head + n:]
            if opcode == 1:
                yield json.loads(text)

    def heard(self):
        raise NotImplementedError


class Agent(Wire):
    def __init__(self, load, server, name):
        super().__init__(load, server.address)
        self.join(server)
        self.is_there = False
        self.say(id=1, method="agent.register", params={"card": {
            "name": name, "description": "Streams",
            "limits": {"in_flight": 1000}}})

    def heard(self):
        for m in self.messages():
            if m.get("method") == "task.execute":
                i = int(m["params"]["message"])
                self.load.given[i] = self, m["params"]["task_id"]
            elif m.get("id") == 1:
                self.is_there = "result" in m


class Sse(Wire):
    """One task, by server-sent events."""

    def __init__(self, load, server, i, is_stalled=False):
        super().__init__(load, server.address, is_stalled)
        self.i = i
        self.text, self.n_scanned = b"", 0
        self.send(server.request("POST", "/api/messages", load.body(i),
                                 "Accept: text/event-stream"))

    def heard(self):
        self.text += self.got
        self.got = b""
        # Behind the last line there may be the beginning of another.
        new = self.text[self.n_scanned:]
        last = new.rfind(b"\n") + 1
        self.load.n_heard[self.i] += new[:last].count(b"event: chunk\n")
        if b"event: result\n" in new[:last]:
            self.load.over.add(self.i)
        self.n_scanned += last

    def events(self):
        """(event, data) of all that came."""
        head, _, body = self.text.partition(b"\r\n\r\n")
        if b"chunked" in head.lower():
            whole = b""
            while body:
                size, _, body = body.partition(b"\r\n")
                n = int(size, 16)
                whole, body = whole + body[:n], body[n + 2:]
                if n == 0:
                    break
            body = whole
        for block in body.decode().split("\n\n"):
            fields = dict(line.split(": ", 1) for line in block.split("\n")
                          if ": " in line and not line.startswith(":"))
            if "data" in fields:
                yield fields["event"], json.loads(fields["data"])


class HubUser(Wire):
    """Some tasks, on the hub."""

    def __init__(self, load, server, tasks, is_stalled=False):
        super().__init__(load, server.address, is_stalled)
        self.join(server)
        self.by_call, self.by_task, self.said = {}, {}, {}
        for i in tasks:
            self.by_call[i] = i
            self.said[i] = []
            self.say(id=i, method="message.send", params=load.body(i))

    def heard(self):
        for m in self.messages():
            if "id" in m:
                self.by_task[m["result"]["task_id"]] = m["id"]
                continue
            i = self.by_task[m["params"]["task_id"]]
            kind = m["method"].partition(".")[2]
            self.said[i].append((kind, m["params"]))
            self.load.n_heard[i] += kind == "chunk"
            if kind == "result":
                self.load.over.add(i)


class Load:
    def __init__(self, server):
        self.server = server
        self.selector = selectors.DefaultSelector()
        self.given = {}  # task -> its agent's connection, its id
        self.n_heard = [0] * N_TASKS
        self.over = set()
        self.stalled, self.kept = range(N_STALLED), []
        self.good = range(N_STALLED, N_TASKS)
        self.agents, self.sse, self.users = [], [], []
        self.peak = {"unsent": 0, "buffered": 0}

    def body(self, i):
        return {"text": str(i), "executor": {"name": f"agent-{i % N_AGENTS}"}}

    def turn(self, timeout_s=DEADLINE_S):
        ready = self.selector.select(timeout_s)
        for key, _ in ready:
            key.data.ready()
        return bool(ready)

    def until(self, condition, what):
        while not condition():
            if not self.turn():
                raise AssertionError(f"nothing came: {what()}")

    def look(self):
        text = self.server.get("/metrics").body.decode()
        for name in self.peak:
            value = int(re.search(rf"^signalbox_http_{name}_bytes (\d+)$",
                                  text, re.M)[1])
            self.peak[name] = max(self.peak[name], value)

    def open(self):
        self.agents = [Agent(self, self.server, f"agent-{k}")
                       for k in range(N_AGENTS)]
        self.until(lambda: all(a.is_there for a in self.agents),
                   lambda: "the agents are there")
        for i in self.stalled:
            self.kept.append(
                Sse(self, self.server, i, True) if i % 2 else
                HubUser(self, self.server, [i], True))
        self.sse = [Sse(self, self.server, i) for i in self.good if i % 2]
        on_hub = [i for i in self.good if not i % 2]
        self.users = [HubUser(self, self.server, on_hub[k::N_HUB_USERS])
                      for k in range(N_HUB_USERS)]
        self.until(lambda: len(self.given) == N_TASKS,
                   lambda: f"{len(self.given)} of {N_TASKS} are begun")

    def chunk(self, i, k):
        size = STALLED_CHUNK if i in self.stalled else CHUNK
        return f"<{i}:{k}>".ljust(size, "x")

    def stream(self):
        for k in range(ROUNDS):
            for i, (agent, task) in self.given.items():
                agent.say(method="task.chunk",
                          params={"task_id": task, "text": self.chunk(i, k)})
            self.until(lambda k=k: min(self.n_heard[N_STALLED:]) > k,
                       lambda k=k: f"round {k}")
            self.look()

    def end(self):
        for i, (agent, task) in self.given.items():
            agent.say(id=f"r{i}", method="task.result",
                      params={"task_id": task, "status": "completed"})
        self.until(lambda: len(self.over) == N_TASKS - N_STALLED,
                   lambda: f"{len(self.over)} are over")
        self.look()

    def heard_by(self):
        """task -> (event, data) of everybody who reads."""
        for s in self.sse:
            yield s.i, list(s.events())
        for u in self.users:
            yield from u.said.items()


def resident_bytes(server, what="VmHWM"):
    with open(f"/proc/{server.process.pid}/status", encoding="ascii") as f:
        return int(re.search(rf"^{what}:\s+(\d+) kB$", f.read(), re.M)[1]) << 10


class Streams(unittest.TestCase):
    def setUp(self):
        if not ws_crowd.allow_files(N_TASKS + 200):
            self.skipTest("too few files may be open here")

    def run_load(self, mark):
        with Server("--set", f"http.maxUnsentBytes={mark}",
                    "--set", f"http.maxBufferedBytes={32 << 30}",
                    "--set", "http.writeTimeoutMs=3600000",
                    "--set", "rate.perUser=0", "--set", "rate.perAddress=0",
                    "--set", "log.level=error") as server:
            load = Load(server)
            load.open()
            before = resident_bytes(server)
            load.stream()
            grown = resident_bytes(server) - before
            load.end()
            print(f"{N_TASKS} streams, {N_STALLED} not read: "
                  f"{load.peak['unsent'] / N_STALLED:.0f} bytes wait for "
                  f"each, {load.peak['buffered'] / N_STALLED:.0f} in buffers; "
                  f"{grown >> 20} MiB of memory")
            for w in load.kept:
                w.socket.close()
            return load, grown

    def test_who_never_reads_costs_little_and_disturbs_nobody(self):
        load, grown = self.run_load(MARK)
        self.assertLess(load.peak["buffered"], N_STALLED * EACH_STALLED)
        self.assertGreater(load.peak["unsent"], N_STALLED * MARK // 2)
        # The words so far, in buffers that grow by doubling, and the events.
        gathered = ROUNDS * (N_STALLED * STALLED_CHUNK +
                             (N_TASKS - N_STALLED) * CHUNK)
        self.assertLess(grown, 2 * gathered + RINGS + SLACK +
                        N_STALLED * EACH_STALLED)
        seen = dict(load.heard_by())
        self.assertEqual(sorted(seen), list(load.good))
        for i, events in seen.items():
            # Where events are many, a long one may have been cut in two.
            said = "".join(load.chunk(i, k) for k in range(ROUNDS))
            self.assertEqual("".join(d["text"] for e, d in events
                                     if e == "chunk"), said)
            self.assertEqual(events[-1][0], "result")
            self.assertEqual((events[-1][1]["status"], events[-1][1]["text"]),
                             ("completed", said))
            # A result that had to wait for room may have a gap before it; no
            # other does.
            self.assertNotIn("gap", [e for e, _ in events[:-2]])

    def test_without_the_mark_it_would_show(self):
        load, _ = self.run_load(64 << 20)
        self.assertGreater(load.peak["buffered"], N_STALLED * EACH_STALLED)
