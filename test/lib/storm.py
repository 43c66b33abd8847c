"""A server that is killed and comes back, and senders who do not give up.

    with Phoenix(agents) as phoenix:
        storm = Storm(phoenix, n_tasks=2000, n_senders=32, ...)
        storm.run()
        print(faults(storm.sent, *phoenix.story()))

Each sender has a conversation of its own and numbers its messages. It sends a
few at a time on one connection and goes on when they are answered; after a
connection that broke, or an answer that says so, it does not know what became
of them and sends them again, with the same keys, to whichever server is there
by then. All senders share one thread: so many tasks are sent in so many
seconds because nothing waits for anything else.
"""
import collections
import json
import os
import random
import select
import shutil
import socket
import subprocess
import tempfile
import time
import unittest

import signalbox
from signalbox import DEADLINE_S, Server

ENDS = ("task.completed", "task.failed", "task.cancelled", "task.expired")
UNDER_WAY = ("accepted", "queued", "dispatched", "working")
GONE = (ConnectionError, EOFError, AttributeError)  # no answer, or half of one
PAGE = 500

Point = collections.namedtuple("Point", "thread call nth")


class Phoenix:
    """One data folder, and one server on it after the other."""

    def __init__(self, *args, agents, data=None, token=None, before=()):
        self.root = tempfile.mkdtemp(prefix="signalbox-test-")
        self.data = data or os.path.join(self.root, "data")
        self.args = args
        self.agents = agents
        self.before = before
        self.token = token
        self.server = None
        self.n_kills = 0
        self.start()

    def start(self, **options):
        options = {"before": self.before, **options}
        # All who storm are one user.
        self.server = Server("--set", "rate.perUser=0", *self.args,
                             agents=self.agents, data=self.data,
                             token=self.token, **options)
        self.token = self.server.token
        return self.server

    def kill(self):
        """As a crash would; what it had sent can still be received."""
        self.server.kill9()
        self.n_kills += 1

    def rise(self):
        self.server.kill()
        return self.start()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        try:
            self.server.__exit__(*exc)
        finally:
            shutil.rmtree(self.root, ignore_errors=True)

    def story(self):
        """All tasks, oldest first, and the whole feed."""
        tasks, cursor = [], ""
        while cursor is not None:
            page = self.get(f"/api/tasks?limit={PAGE}" + cursor)
            tasks += page["items"]
            after = page["next_cursor"]
            cursor = None if after is None else f"&cursor={after}"
        feed, after = [], 0
        while page := self.get(f"/api/feed?limit={PAGE}&after={after}")["items"]:
            feed += page
            after = page[-1]["seq"]
        return tasks[::-1], feed

    def get(self, path):
        answer = self.server.call("GET", path)
        if answer.status != 200:
            raise AssertionError(f"GET {path}: {answer}")
        return answer.json()

    def is_over(self):
        """By one look at all of them: a task may also move back, and would be
        missed by one look for each status."""
        text = self.server.get("/metrics").body.decode()
        return not any(
            int(line.split()[1]) for line in text.splitlines()
            if line.startswith(tuple(f'signalbox_tasks{{status="{status}"}}'
                                     for status in UNDER_WAY)))

    def all_over(self):
        signalbox.eventually(self.is_over, "all tasks over")


class Strace:
    """strace on a running process or thread, from when this returns."""

    def __init__(self, pid, *args):
        self.process = subprocess.Popen(
            ["strace", "-o", os.devnull, *args, "-p", str(pid)],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        line = self.process.stderr.readline()
        if b"attached" not in line:
            self.process.kill()
            self.wait()
            if b"not permitted" in line:
                raise unittest.SkipTest("no process may be traced here")
            raise AssertionError(f"strace: {line!r}")

    def wait(self):
        """It ends with what it traces."""
        self.process.wait(DEADLINE_S)
        self.process.stderr.close()


def threads(pid):
    """In the order they were started: always the same one for the same work."""
    return sorted(int(t) for t in os.listdir(f"/proc/{pid}/task"))


def read_points(log, tids):
    """Every call that strace -f has written down of these threads, in the order
    they were made: a thread, the name of a call, and how often that thread has
    made it."""
    counts, points = collections.Counter(), []
    with open(log, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            tid, _, rest = line.partition(" ")
            call = rest.strip().split("(")[0]
            if not call.isidentifier() or int(tid) not in tids:
                continue
            thread = tids.index(int(tid))
            counts[thread, call] += 1
            points.append(Point(thread, call, counts[thread, call]))
    return points


class Sender:
    """One conversation. `next` is the first message not yet sent on this
    connection, `acked` how many have been acknowledged."""

    def __init__(self, storm, number, n):
        self.storm = storm
        self.name = f"c-{number}"
        self.agent = storm.agents[number % len(storm.agents)]
        self.depth = 1 + number % 3
        self.n = n
        self.acked = self.next = 0
        self.tries = collections.Counter()
        self.socket = None
        self.got = b""

    def body(self, i):
        self.tries[i] += 1
        body = {"text": f"{self.name}:{i}", "conversation_id": self.name,
                "executor": {"name": self.agent}, "wait_ms": 0}
        if self.storm.has_keys:
            body["idempotency_key"] = f"k-{self.name}:{i}"
        return body

    def message(self, i):
        return self.storm.server.request("POST", "/api/messages",
                                         self.body(i))

    def connect(self):
        self.socket = socket.create_connection(self.storm.server.address,
                                               DEADLINE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.got = b""
        self.next = self.acked

    def is_done(self):
        return self.acked == self.n

    def send(self):
        """As many as may be under way; a connection that is broken shows when
        it is read."""
        out = b""
        while self.next < min(self.n, self.acked + self.depth):
            out += self.message(self.next)
            self.next += 1
        try:
            self.socket.sendall(out)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def receive(self):
        """What has come. False when the connection is of no more use."""
        try:
            data = self.socket.recv(65536)
        except (ConnectionResetError, BlockingIOError):
            data = b""
        self.got += data
        while self.answer():
            pass
        return bool(data) and self.storm.is_answered_well(self)

    def answer(self):
        """Take one whole answer off what was received."""
        head, end, rest = self.got.partition(b"\r\n\r\n")
        if not end:
            return False
        _, has, n = head.lower().partition(b"content-length:")
        n = int(n.split(b"\r\n")[0]) if has else 0  # 204 has none
        if len(rest) < n:
            return False
        self.got = rest[n:]
        status = int(head.split(b" ", 2)[1])
        is_json = status in (200, 201, 202)
        self.storm.heard(self, status,
                         json.loads(rest[:n]) if is_json else rest[:n])
        return True


class Storm:
    """So many tasks from so many senders, and a kill after every few
    acknowledgements (a random number up to kill_every; 0: never)."""

    def __init__(self, phoenix, agents, n_tasks, n_senders=32, kill_every=100,
                 has_keys=True, seed=1, max_kills=None, kinds=(Sender,)):
        self.phoenix = phoenix
        self.agents = agents
        self.has_keys = has_keys
        self.kill_every = kill_every
        self.max_kills = max_kills
        self.random = random.Random(seed)
        self.senders = [kinds[i % len(kinds)](self, i, n_tasks // n_senders)
                        for i in range(n_senders)]
        self.sent = {}  # text -> the task that it was acknowledged as
        self.until_kill = 0
        self.mistakes = []
        self.unwell = set()
        self.is_ahead = lambda: False  # of those who do the work: it waits

    @property
    def server(self):
        return self.phoenix.server

    @property
    def n_retries(self):
        return sum(n - 1 for s in self.senders for n in s.tries.values())

    def heard(self, sender, status, body):
        if status not in (200, 202):
            # Refused, or unknown: this one and those behind it come again.
            self.unwell.add(sender)
            if status not in (500, 503):
                self.mistakes.append(f"{status}: {body!r}")
            return
        if sender in self.unwell:
            return
        text = f"{sender.name}:{sender.acked}"
        self.sent[text] = body["task_id"]
        sender.acked += 1
        self.until_kill -= 1

    def is_answered_well(self, sender):
        return sender not in self.unwell

    def run(self):
        waiting = list(self.senders)
        while waiting and not self.mistakes:
            self.until_kill = self.random.randint(1, self.kill_every or 1)
            waiting = self.life(waiting)
        if self.mistakes:
            raise AssertionError("; ".join(self.mistakes[:5]))

    def may_kill(self):
        return self.kill_every and (self.max_kills is None or
                                    self.phoenix.n_kills < self.max_kills)

    def is_time(self):
        return self.until_kill <= 0 and self.may_kill()

    def kill_at_once(self):
        """For another thread, which has just heard something."""
        self.until_kill = 0
        self.server.process.kill()

    def life(self, waiting):
        """Until the server is killed, or all is sent: who is left over."""
        poll = select.epoll()
        by_fd = {}

        def join(sender):
            self.unwell.discard(sender)
            try:
                sender.connect()
            except OSError:
                if self.is_time():  # it has been killed at once
                    return
                raise
            by_fd[sender.socket.fileno()] = sender
            poll.register(sender.socket.fileno(), select.EPOLLIN)
            sender.send()

        def leave(sender):
            del by_fd[sender.socket.fileno()]
            sender.socket.close()

        for sender in waiting:
            join(sender)
        # A mistake ends it: who made it would try for ever.
        while by_fd and not self.is_time() and not self.mistakes:
            while self.is_ahead() and not self.is_time():
                time.sleep(0.001)
            ready = poll.poll(DEADLINE_S)
            if not ready:
                raise AssertionError("no answer: " + self.server.said())
            for fd, _ in ready:
                sender = by_fd[fd]
                is_good = sender.receive()
                if is_good and not sender.is_done():
                    sender.send()
                    continue
                if self.is_time():
                    break
                leave(sender)
                if not sender.is_done():
                    join(sender)
        if by_fd:
            self.kill(by_fd)
        poll.close()
        return [s for s in waiting if not s.is_done()]

    def kill(self, by_fd):
        """What left the server before it died was said all the same."""
        self.phoenix.kill()
        for sender in by_fd.values():
            while sender.receive():
                pass
            sender.socket.close()
        self.phoenix.rise()


def faults(sent, tasks, feed):
    """What is wrong with the story of tasks, all of them sent by a Storm and
    over: words for each kind of fault."""
    wrong = []
    by_id = {t["id"]: t for t in tasks}
    by_text = collections.Counter(t["text"] for t in tasks)
    ended = [e for e in feed if e["type"] in ENDS]
    accepted = [e for e in feed if e["type"] == "task.accepted"]

    lost = [text for text, task in sent.items()
            if by_id.get(task, {}).get("text") != text]
    if lost:
        wrong.append(f"{len(lost)} lost: {lost[:3]}")
    doubled = [text for text, n in by_text.items() if n > 1]
    if doubled:
        wrong.append(f"{len(doubled)} doubled: {doubled[:3]}")
    undone = [(t["id"], t["status"], t["attempt"], t["result"]) for t in tasks
              if t["status"] != "completed" or
              t["result"]["text"] != t["text"]]
    if undone:
        wrong.append(f"{len(undone)} not completed: {undone[:3]}")
    for name, entries in (("accepted", accepted), ("ended", ended)):
        if (len(entries) != len(tasks) or
                {e["task_id"] for e in entries} != set(by_id)):
            wrong.append(f"{len(tasks)} tasks, {len(entries)} {name}")
    for name, entries in (("accepted", accepted), ("carried", ended)):
        n = len(out_of_order(by_id, entries))
        if n:
            wrong.append(f"{n} {name} out of order")
    return wrong


def out_of_order(by_id, entries):
    """Texts that came after a later one of the same conversation."""
    last, wrong = {}, []
    for e in entries:
        text = by_id.get(e["task_id"], {}).get("text", ":-1")
        name, number = text.split(":")
        if int(number) < last.get(name, -1):
            wrong.append(text)
        last[name] = int(number)
    return wrong
