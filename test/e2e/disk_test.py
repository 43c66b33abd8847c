"""Disks that are full, that fail, that are gone, and a database that another
program holds: new work is refused with a word that says why, nothing that was
acknowledged is lost, and where it can the server goes on by itself."""
import os
import shutil
import sqlite3
import subprocess
import tempfile
import unittest

from planted import fails_with, needs_planted
from signalbox import DEADLINE_S, Server, eventually, metric
from storm import GONE, Phoenix, Strace, faults

# Of the slow ones some answer while a disk is full, on however slow a machine.
SLOW = {f"slow-{ms}": f"echo:{ms}" for ms in (300, 1000, 3000)}
AGENTS = [{"id": name, "url": url} for name, url in
          {"echo": "echo:", **SLOW}.items()]
QUIET = ("--set", "log.level=warn")


class SmallDisk:
    """A disk of a few MB in a mount namespace of its own, which goes with the
    process that holds it. Servers inside see it at `path`; from outside it is
    at `seen`. The reference texts' vectors alone take nearly one, in the log
    and in the database each."""

    def __init__(self, path, size="8m"):
        self.path = path
        os.mkdir(path)
        self.holder = subprocess.Popen(
            ["unshare", "-m", "--propagation", "private", "sh", "-c",
             'mount -t tmpfs -o size="$2" none "$1" && echo ready && exec cat',
             "sh", path, size], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        if self.holder.stdout.readline() != b"ready\n":
            why = self.holder.stderr.read().decode().strip()
            self.close()
            raise unittest.SkipTest(f"no disk can be mounted here: {why}")
        self.seen = f"/proc/{self.holder.pid}/root{path}"

    @property
    def inside(self):
        return ["nsenter", "-t", str(self.holder.pid), "-m", "--"]

    def fill(self):
        """To the last byte."""
        with open(os.path.join(self.seen, "filler"), "ab", buffering=0) as f:
            for size in (65536, 4096, 512, 1):
                try:
                    while f.write(bytes(size)):
                        pass
                except OSError:
                    pass

    def free(self):
        os.unlink(os.path.join(self.seen, "filler"))

    def close(self):
        self.holder.stdin.close()
        self.holder.wait()
        self.holder.stdout.close()
        self.holder.stderr.close()


class FullDisk(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="signalbox-test-")
        self.addCleanup(shutil.rmtree, self.root, True)
        self.disk = SmallDisk(os.path.join(self.root, "disk"))
        self.addCleanup(self.disk.close)

    def send_until_full(self, server, sent):
        """Send until there is no space; the refusal. What the database can
        still use of its own files is used first."""
        for _ in range(10000):
            text = f"full-{len(sent)}:0"
            answer = server.send(text, wait_ms=0, idempotency_key=text,
                                 conversation_id=text)
            if answer.status not in (200, 202):
                return answer
            sent[text] = answer.json()["task_id"]
        raise AssertionError("a full disk took everything")

    def refuse(self, server, sent):
        refusal = self.send_until_full(server, sent)
        self.assertEqual(refusal.status, 507, refusal)
        self.assertEqual(refusal.json()["error"]["code"], "no_space")

    def starve(self, server, sent):
        """Until an agent's result waits for space."""
        def is_starving():
            self.refuse(server, sent)
            return metric(server, "signalbox_results_waiting") > 0
        eventually(is_starving, "a result without space for it")

    def test_a_message_that_no_agent_gets_is_refused_as_ever(self):
        def refuse(server):
            got = server.call("POST", "/api/messages", {"text": "zzz"})
            self.assertEqual(got.status, 422, got)
            return got.json()["error"]["details"]["decision_id"]
        sent = {}
        with Phoenix(*QUIET, "--set", "routing.threshold=1", agents=AGENTS,
                     before=self.disk.inside,
                     data=os.path.join(self.disk.path, "data")) as phoenix:
            server = phoenix.server
            self.assertIsNotNone(refuse(server))
            self.disk.fill()
            self.refuse(server, sent)
            # Fewer than a user may leave in an hour: it is the disk.
            self.assertIn(None, [refuse(server) for _ in range(50)])
            self.disk.free()
            eventually(lambda: refuse(server), "a record of a refusal")
            phoenix.all_over()

    def test_new_work_is_refused_and_all_else_goes_on(self):
        sent = {}
        with Phoenix(*QUIET, agents=AGENTS, before=self.disk.inside,
                     data=os.path.join(self.disk.path, "data")) as phoenix:
            server = phoenix.server
            for i, agent in enumerate(list(SLOW) * 7):
                answer = server.send(f"slow-{i}:0", to=agent, wait_ms=0,
                                     conversation_id=f"slow-{i}")
                sent[f"slow-{i}:0"] = answer.json()["task_id"]
            self.disk.fill()
            self.starve(server, sent)
            self.assertEqual(metric(server, "signalbox_store_full"), 1)
            # Reading goes on.
            for task in sent.values():
                self.assertEqual(
                    server.call("GET", f"/api/tasks/{task}").status, 200)
            self.assertEqual(server.get("/healthz").status, 200)
            # A change that needs no space may come in between.
            def why_not_ready():
                self.refuse(server, sent)
                return server.get("/readyz")
            eventually(lambda: why_not_ready().status == 503, "not ready")
            eventually(lambda: why_not_ready().json() == {
                "ready": False, "reason": "the disk is full"}, "and why")

            self.disk.free()
            phoenix.all_over()
            answer = server.send("free:0", conversation_id="free")
            self.assertEqual(server.get("/readyz").status, 200)
            self.assertEqual(answer.json()["status"], "completed")
            sent["free:0"] = answer.json()["task_id"]
            self.assertEqual(metric(server, "signalbox_store_full"), 0)
            self.assertEqual(metric(server, "signalbox_results_waiting"), 0)
            self.assertEqual(faults(sent, *phoenix.story()), [])

            phoenix.kill()
            phoenix.rise()
            self.assertEqual(faults(sent, *phoenix.story()), [])

    def test_a_server_that_dies_on_a_full_disk_comes_back(self):
        sent = {}
        with Phoenix(*QUIET, agents=AGENTS, before=self.disk.inside,
                     data=os.path.join(self.disk.path, "data")) as phoenix:
            self.disk.fill()
            self.refuse(phoenix.server, sent)
            phoenix.kill()
            self.disk.free()
            phoenix.rise()
            phoenix.all_over()
            self.assertEqual(faults(sent, *phoenix.story()), [])


class FailingDisk(unittest.TestCase):
    def check(self, inject):
        """Break a running server's calls; then start another on its data."""
        sent = {}
        root = tempfile.mkdtemp(prefix="signalbox-test-")
        self.addCleanup(shutil.rmtree, root, True)
        data = os.path.join(root, "data")
        with Server(*QUIET, agents=AGENTS, data=data) as server:
            token = server.token
            answer = server.send("before:0", conversation_id="before")
            sent["before:0"] = answer.json()["task_id"]
            strace = Strace(server.process.pid, "-f", "-e",
                            f"inject={inject}")
            for i in range(50):
                try:
                    answer = server.send(f"m-{i}:0", conversation_id=f"m-{i}",
                                         idempotency_key=f"m-{i}")
                except GONE:
                    break
                if answer is None:  # the server ended before it answered
                    break
                if answer.status not in (200, 202):
                    # Or, if a result met the bad disk first: stopping.
                    self.assertIn(answer.json()["error"]["code"],
                                  ("outcome_unknown", "stopping"))
                    break
                sent[f"m-{i}:0"] = answer.json()["task_id"]
            else:
                self.fail("acknowledged although the disk fails")
            status = server.process.wait(DEADLINE_S)
            strace.wait()
            self.assertEqual(status, 1, server.said())
            self.assertIn("io_error", server.said())
            self.assertIn(data, server.said())
            server.was_killed = True
        with Server(*QUIET, agents=AGENTS, data=data, token=token) as server:
            for text, task in sent.items():
                answer = server.call("GET", f"/api/tasks/{task}")
                self.assertEqual(answer.status, 200, text)
            # Asked again with its key, and started once.
            first = server.send(f"m-{i}:0", conversation_id=f"m-{i}",
                                idempotency_key=f"m-{i}").json()
            self.assertEqual(first["status"], "completed")
            listed = server.call("GET", "/api/tasks?limit=500").json()["items"]
            self.assertEqual(
                [t["id"] for t in listed if t["text"] == f"m-{i}:0"],
                [first["task_id"]])

    def test_after_a_failed_sync_nothing_is_acknowledged(self):
        self.check("fdatasync,fsync:error=EIO:when=1+")

    def test_after_a_later_failed_sync_as_well(self):
        self.check("fdatasync,fsync:error=EIO:when=5+")

    def test_after_a_failed_write_nothing_is_acknowledged(self):
        self.check("pwrite64:error=EIO:when=3+")


class NoDisk(unittest.TestCase):
    def test_a_folder_that_is_deleted_ends_the_server(self):
        root = tempfile.mkdtemp(prefix="signalbox-test-")
        self.addCleanup(shutil.rmtree, root, True)
        data = os.path.join(root, "data")
        with Server(*QUIET, agents=AGENTS, data=data) as server:
            self.assertEqual(server.send("before").status, 200)
            shutil.rmtree(data)
            try:
                answer = server.send("after")
                self.assertNotIn(answer.status, (200, 202), answer)
            except GONE:
                pass
            self.assertEqual(server.process.wait(DEADLINE_S), 1)
            self.assertIn(data, server.said())
            server.was_killed = True


class LockedDatabase(unittest.TestCase):
    def test_new_work_is_refused_until_the_lock_is_gone(self):
        with Phoenix(*QUIET, agents=AGENTS) as phoenix:
            server = phoenix.server
            sent = {}
            answer = server.send("before:0", to="slow-300", wait_ms=0,
                                 conversation_id="before")
            sent["before:0"] = answer.json()["task_id"]
            other = sqlite3.connect(os.path.join(phoenix.data, "signalbox.db"),
                                    isolation_level=None)
            other.execute("BEGIN EXCLUSIVE")
            refused = server.send("locked:0", wait_ms=0)
            self.assertEqual(refused.json()["error"]["code"], "busy", refused)
            ready = server.get("/readyz")
            self.assertEqual((ready.status, ready.json().get("reason")),
                             (503, "another program holds the database"))
            self.assertEqual(
                server.call("GET", f"/api/tasks/{sent['before:0']}").status,
                200)
            other.execute("ROLLBACK")
            other.close()
            answer = server.send("after:0", conversation_id="after").json()
            sent["after:0"] = answer["task_id"]
            self.assertEqual(server.get("/readyz").status, 200)
            phoenix.all_over()
            self.assertEqual(faults(sent, *phoenix.story()), [])


class Control(unittest.TestCase):
    @needs_planted
    def test_a_server_that_is_always_ready(self):
        test = LockedDatabase()
        said = fails_with(
            self, "calls.always_ready",
            test.test_new_work_is_refused_until_the_lock_is_gone)
        self.assertIn("503", said)
