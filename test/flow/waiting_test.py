"""Ten thousand callers who wait for one task each, or for the same one."""
import os
import resource
import select
import socket
import struct
import time
import unittest

from signalbox import DEADLINE_S, ECHO, Server, eventually, metric

AGENTS = ECHO + [{"id": "never", "url": "echo:3600000"}]
N = int(os.environ.get("WAITING", "10000"))
SPARE = 500


def raise_limit():
    """As many files as we may have open, for us and for the server."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


class Crowd:
    """Many connections, each with one request; answers as they come."""

    def __init__(self, server):
        self.server = server
        self.sockets = {}

    def ask(self, n, make):
        data = [make(i) for i in range(n)]
        for one in data:
            s = socket.create_connection(self.server.address, DEADLINE_S)
            s.sendall(one)
            self.sockets[s.fileno()] = [s, b""]

    def answers(self):
        """The status of each, once all have one."""
        poll, left, got = select.epoll(), dict(self.sockets), []
        for fd in left:
            poll.register(fd, select.EPOLLIN)
        end = time.monotonic() + DEADLINE_S
        while left and time.monotonic() < end:
            for fd, _ in poll.poll(1):
                one = left[fd]
                data = one[0].recv(65536)
                one[1] += data
                if not data or b"\r\n\r\n" in one[1]:
                    got.append(one[1].split(b"\r\n")[0].decode())
                    poll.unregister(fd)
                    del left[fd]
        poll.close()
        return got

    def close(self):
        """At once, as a process that is killed does it: a plain end could
        also be that of one who has said all and still listens."""
        for s, _ in self.sockets.values():
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                         struct.pack("ii", 1, 0))
            s.close()
        self.sockets = {}


class Waiting(unittest.TestCase):
    def setUp(self):
        if raise_limit() < N + SPARE:
            self.skipTest(f"only {raise_limit()} files may be open here")
        config = {"http": {"maxConnections": N + SPARE,
                           "replyTimeoutMs": 600000},
                  "tasks": {"maxUnfinished": N + SPARE,
                            "maxUnfinishedPerUser": 0},
                  "rate": {"perUser": 0}}  # they are all one user
        self.server = Server(agents=AGENTS, config=config)
        self.addCleanup(self.server.kill)
        self.crowd = Crowd(self.server)
        self.addCleanup(self.crowd.close)

    def n_waiting(self):
        text = self.server.get("/metrics").body.decode()
        line = [l for l in text.splitlines()
                if l.startswith('signalbox_calls_open{kind="waiting"}')]
        return int(line[0].split()[-1])

    def message(self, i, **fields):
        return self.server.request(
            "POST", "/api/messages",
            {"text": f"m{i}", "executor": {"name": "never"},
             "wait_ms": 600000, **fields})

    def test_ten_thousand_wait_and_the_server_answers_others(self):
        self.crowd.ask(N, self.message)
        eventually(lambda: self.n_waiting() == N, "all wait")
        self.assertEqual(self.server.send("x").json()["text"], "x")
        self.assertEqual(metric(self.server, "signalbox_tasks"), N)
        self.crowd.close()
        eventually(lambda: self.n_waiting() == 0, "all have left")
        self.assertEqual(metric(self.server, "signalbox_tasks_listeners"), 0)
        self.assertEqual(metric(self.server, "signalbox_tasks"), N)
        self.server.stop()

    def test_all_who_wait_for_one_task_hear_of_its_end(self):
        self.crowd.ask(N, lambda _: self.message(0, idempotency_key="k"))
        eventually(lambda: self.n_waiting() == N, "all wait")
        task = self.server.call("GET", "/api/tasks").json()["items"]
        self.assertEqual(len(task), 1)
        self.server.call("POST", f"/api/tasks/{task[0]['id']}/cancel")
        self.assertEqual(self.crowd.answers(), ["HTTP/1.1 200 OK"] * N)
        self.assertEqual(self.n_waiting(), 0)
        self.crowd.close()
        self.server.stop()

    def test_a_token_that_is_revoked_ends_ten_thousand_waits(self):
        self.server.user("anna", role="admin")  # who may hold them all
        made = self.server.call("POST", "/api/tokens",
                                {"user": "anna"}).json()
        self.crowd.ask(N, lambda i: self.server.request(
            "POST", "/api/messages",
            {"text": f"m{i}", "executor": {"name": "never"},
             "wait_ms": 600000}, token=made["token"]))
        eventually(lambda: self.n_waiting() == N, "all wait")
        self.server.call("DELETE", f"/api/tokens/{made['id']}")
        self.assertEqual(self.crowd.answers(),
                         ["HTTP/1.1 401 Unauthorized"] * N)
        self.crowd.close()
        self.server.stop()
