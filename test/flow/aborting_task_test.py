"""A task that aborts the server each time it is delivered fails after
deliver.maxAttempts, and other tasks are served.

The mistakes are planted: a server that aborts when it delivers one certain
text, and one that does not count the attempts either.
"""
import os
import shutil
import tempfile
import unittest

from planted import fails_with, needs_planted, planted
from signalbox import DEADLINE_S, ECHO, Server, eventually

ABORTS = "abort the server"
AGENTS = ECHO + [{"id": "brief", "url": "echo:200"}]
MAX_ATTEMPTS = 4


@needs_planted
class Aborting(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="signalbox-test-")
        self.addCleanup(shutil.rmtree, self.root, True)
        self.token = None

    def server(self):
        server = Server(data=os.path.join(self.root, "data"), agents=AGENTS,
                        config={"deliver": {"maxAttempts": MAX_ATTEMPTS}},
                        token=self.token)
        self.token = server.token
        return server

    def tasks(self, server):
        answer = server.call("GET", "/api/tasks?limit=100")
        if not answer:
            raise ConnectionError("no answer")
        items = answer.json()["items"]
        return {t["id"]: t["status"] for t in items}

    def has_aborted(self):
        """Start the server; whether it aborts before all tasks are over."""
        try:
            server = self.server()
        except AssertionError as e:
            self.assertIn("did not start", str(e))
            return True
        try:
            eventually(lambda: server.process.poll() is not None or
                       set(self.tasks(server).values()) <=
                       {"completed", "failed"}, "abort or end")
            return server.process.poll() is not None
        except OSError:  # it aborted while it was asked
            server.process.wait(DEADLINE_S)
            return True
        finally:
            server.kill()

    def begin(self):
        """The task that aborts, and those that it interrupts with it."""
        server = self.server()
        others = [server.send(f"n{i}", to="brief", wait_ms=0).json()["task_id"]
                  for i in range(2)]
        try:
            server.send(ABORTS, wait_ms=0)
        except (AssertionError, OSError):
            pass  # the answer was lost with the server
        self.assertEqual(server.process.wait(DEADLINE_S), -6)
        server.kill()
        return others

    def fails(self):
        others = self.begin()
        n = 1
        while self.has_aborted():
            n += 1
            self.assertLessEqual(n, MAX_ATTEMPTS + 1, "it aborts for ever")
        with self.server() as server:
            tasks = self.tasks(server)
            self.assertEqual([tasks.pop(id) for id in others],
                             ["completed"] * 2)
            (id, status), = tasks.items()
            self.assertEqual(status, "failed")
            self.assertEqual(server.call("GET", f"/api/tasks/{id}").json()
                             ["result"]["error"]["code"], "internal")
            self.assertEqual(server.send("hi").json()["text"], "hi")

    def test_it_fails_in_the_end_and_others_are_served(self):
        with planted("deliver.aborts"):
            self.fails()

    def test_a_server_that_does_not_count_aborts_for_ever(self):
        self.assertIn("aborts for ever", fails_with(
            self, "deliver.aborts_uncounted", self.fails))


class Stopped(unittest.TestCase):
    def test_stops_in_order_end_no_task(self):
        """A task outlives more of them than it may have failed attempts."""
        root = tempfile.mkdtemp(prefix="signalbox-test-")
        self.addCleanup(shutil.rmtree, root, True)
        task, token = None, None
        for attempt in range(1, MAX_ATTEMPTS + 4):
            with Server(data=os.path.join(root, "data"), token=token,
                        agents=[{"id": "slow", "url": "echo:3600000"}],
                        config={"deliver": {"maxAttempts": 2}}) as server:
                token = server.token
                task = task or server.send(
                    "x", to="slow", wait_ms=0).json()["task_id"]
                eventually(lambda: server.call(
                    "GET", f"/api/tasks/{task}").json()["attempt"] == attempt,
                    f"attempt {attempt}")


if __name__ == "__main__":
    unittest.main()
