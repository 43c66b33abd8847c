"""The server is killed at every system call that it makes for an acceptance, a
result and a cancel; after each kill it is started again on the same data.
Every task it had acknowledged is there, none is half there, the same key
never starts a second one, no result comes twice, and what was cancelled
stays so.

strace counts the calls of each thread apart, and each kind of call apart; so
one run is recorded, and then every call of it is one point: a thread, the
name of a call, and how often that thread has made it since the walk began.
The kill comes before the call does anything. Should there ever be very many
points, the usual run takes some of them and STRESS=full all.
"""
import collections
import os
import shutil
import sqlite3
import tempfile
import unittest

import signalbox
from storm import ENDS, GONE, Phoenix, Strace, read_points, threads

IS_FULL = os.environ.get("STRESS") == "full"
MAX_POINTS = 10 ** 6 if IS_FULL else 80
AGENTS = [{"id": "echo", "url": "echo:"}, {"id": "slow", "url": "echo:600000"}]
# The table alone: the transformer's thread would make calls of its own all the
# while, more of them where the machine is busy.
QUIET = ("--set", "log.level=error", "--set", "embed.kind=table")


class Template:
    """A data folder with a token, to begin every run with."""

    def __init__(self, test):
        self.root = tempfile.mkdtemp(prefix="signalbox-test-")
        test.addCleanup(shutil.rmtree, self.root, True)
        self.data = os.path.join(self.root, "data")
        with signalbox.Server(*QUIET, agents=AGENTS, data=self.data) as server:
            self.token = server.token

    def begin(self):
        phoenix_data = os.path.join(self.root, "run")
        shutil.rmtree(phoenix_data, ignore_errors=True)
        shutil.copytree(self.data, phoenix_data)
        return Phoenix(*QUIET, agents=AGENTS, data=phoenix_data,
                       token=self.token)


class Walk:
    """What a client does, and what it was told on the way."""

    def __init__(self):
        self.told = {}  # key -> the last answer

    def go(self, server):
        """All of it; False when the server went away meanwhile."""
        try:
            self.message(server, "done", "echo", 20000)
            slow = self.message(server, "slow", "slow", 0)
            self.take("slow", server.call("POST",
                                          f"/api/tasks/{slow}/cancel"))
        except GONE:
            return False
        return True

    def message(self, server, key, agent, wait_ms):
        answer = server.send(key, to=agent, idempotency_key=key,
                             conversation_id="c-" + agent, wait_ms=wait_ms)
        return self.take(key, answer)

    def take(self, key, answer):
        if answer.status not in (200, 202):
            raise AssertionError(f"{key}: {answer}")
        answer = answer.json()
        self.told[key] = answer.get("task_id") or answer["id"], answer["status"]
        return self.told[key][0]


def record(template, test):
    """Every call of one walk, as points, in the order they were made."""
    log = os.path.join(template.root, "strace")
    with template.begin() as phoenix:
        pid = phoenix.server.process.pid
        tids = threads(pid)
        strace = Strace(pid, "-f", "-o", log)
        test.assertTrue(Walk().go(phoenix.server))
        phoenix.kill()
        strace.wait()
    return read_points(log, tids)


def half_there(data):
    """What is not whole in the database as the kill left it."""
    with tempfile.TemporaryDirectory(prefix="signalbox-test-") as copy:
        for name in os.listdir(data):
            if name.startswith("signalbox.db"):
                shutil.copy(os.path.join(data, name), copy)
        db = sqlite3.connect(os.path.join(copy, "signalbox.db"))
        wrong = db.execute("PRAGMA integrity_check").fetchall() != [("ok",)]
        rows = db.execute(
            "SELECT t.id, t.status BETWEEN 9 AND 12, "
            "(SELECT count(*) FROM feed f WHERE f.task_id = t.id AND "
            "f.type = 'task.accepted'), "
            "(SELECT count(*) FROM feed f WHERE f.task_id = t.id AND "
            "f.type <> 'task.accepted') FROM task t").fetchall()
        db.close()
    return (["the database is damaged"] if wrong else []) + [
        f"{r} is half there" for r in rows if r[1] != r[3] or r[2] != 1]


def faults_after(phoenix, walk):
    """Start again, do the same once more, and compare."""
    wrong = half_there(phoenix.data)
    server = phoenix.rise()
    for key, (task, status) in walk.told.items():
        answer = server.call("GET", f"/api/tasks/{task}")
        if answer.status != 200:
            wrong.append(f"{key} was acknowledged and is lost")
        elif (status in ("completed", "cancelled") and
              answer.json()["status"] != status):
            wrong.append(f"{key} was {status} and is not any more")
    again = Walk()
    if not again.go(server):
        raise AssertionError("gone without being killed: " + server.said())
    for key, (task, _) in walk.told.items():
        if again.told[key][0] != task:
            wrong.append(f"{key} was started twice")
    tasks, feed = phoenix.story()
    states = sorted((t["text"], t["status"]) for t in tasks)
    if states != [("done", "completed"), ("slow", "cancelled")]:
        wrong.append(f"not what was asked for: {states}")
    for task in tasks:
        told = [e["type"] for e in feed if e["task_id"] == task["id"]]
        if (told[:1] != ["task.accepted"] or len(told) != 2 or
                told[1] not in ENDS):
            wrong.append(f"a story of its own: {told}")
    phoenix.kill()
    return wrong


class KillAtEveryCall(unittest.TestCase):
    def kill_at(self, template, point):
        """Faults, and whether the point was reached."""
        walk = Walk()
        with template.begin() as phoenix:
            tids = threads(phoenix.server.process.pid)
            strace = Strace(tids[point.thread], "-e", "trace=" + point.call,
                            "-e", f"inject={point.call}:signal=KILL:"
                            f"when={point.nth}")
            was_reached = not walk.go(phoenix.server)
            phoenix.kill()
            strace.wait()
            return faults_after(phoenix, walk), was_reached

    def test_nothing_is_lost_halved_or_doubled(self):
        template = Template(self)
        points = record(template, self)
        stride = -(-len(points) // MAX_POINTS)
        n_reached = 0
        for point in points[::stride]:
            with self.subTest(point):
                faults, was_reached = self.kill_at(template, point)
                self.assertEqual(faults, [])
                n_reached += was_reached
        by_thread = collections.Counter(p.thread for p in points)
        print(f"{len(points)} points ({dict(by_thread)} by thread), "
              f"{len(points[::stride])} tried, {n_reached} reached before the "
              "walk was over")
        calls = {p.call for p in points}
        self.assertLessEqual({"pwrite64", "fdatasync"}, calls)
        self.assertGreater(n_reached, len(points[::stride]) // 2)

    def test_acknowledging_before_the_commit_is_found_out(self):
        before = signalbox.BINARY
        signalbox.BINARY = os.environ["SIGNALBOX_FAULTY"]
        self.addCleanup(setattr, signalbox, "BINARY", before)
        template = Template(self)
        points = record(template, self)
        found = []
        for point in points:
            if point.call in ("pwrite64", "fdatasync", "fsync"):
                found += self.kill_at(template, point)[0]
            if any("lost" in f or "not any more" in f for f in found):
                return
        self.fail(f"nothing was found in {len(points)} points: {found}")
