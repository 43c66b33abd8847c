"""The server is killed at the system calls that it makes while it judges
decisions, takes corrections, makes what it learnt again and writes it down.
After each kill it is started again on the same data and asked for the same
once more. Then every decision was judged once and every word counts once; what
was acknowledged is so; and what is learnt is, to the byte, what the outcomes
that are kept come to.

One run is recorded and every call of it is one point, as in kill_test.py; the
usual run takes some of them, STRESS=full all.
"""
import collections
import os
import shutil
import signal
import sqlite3
import tempfile
import unittest

import signalbox
from signalbox import DEADLINE_S
from storm import GONE, Phoenix, Strace, read_points, threads

IS_FULL = os.environ.get("STRESS") == "full"
MAX_POINTS = 10 ** 6 if IS_FULL else 20
AGENTS = [
    {"id": "engineer", "url": "echo:", "visibility": "public",
     "description": "Builds and repairs software, finds bugs in programs"},
    {"id": "writer", "url": "echo:", "visibility": "public",
     "description": "Writes articles, letters and marketing text"},
]
TEXTS = ["find the bug in this program, it crashes with a segmentation fault",
         "repair the software, please",
         "fix bug",
         "write a letter to the marketing people about the new articles"]
# Windows are over at once, and no one but us asks for a run.
SETTINGS = ("--set", "log.level=error", "--set", "learning.followUpMs=0",
            "--set", "learning.everyMs=0")
VERDICT, CORRECTION, FEEDBACK = 1, 2, 3


class Template:
    """A data folder with decisions that no one has judged."""

    def __init__(self, test):
        self.root = tempfile.mkdtemp(prefix="signalbox-test-")
        test.addCleanup(shutil.rmtree, self.root, True)
        self.data = os.path.join(self.root, "data")
        self.decisions = []
        with signalbox.Server(*SETTINGS, agents=AGENTS,
                              data=self.data) as server:
            self.token = server.token
            server.ready()
            for i, text in enumerate(TEXTS):
                answer = server.call("POST", "/api/messages", {
                    "text": text, "conversation_id": f"c-{i}"}).json()
                test.assertEqual(answer["decision"]["layer"], "semantic",
                                 answer)
                self.decisions.append(answer["decision"]["id"])
        test.assertEqual(len(outcomes(self.data)[0]), 0)

    def begin(self):
        data = os.path.join(self.root, "run")
        shutil.rmtree(data, ignore_errors=True)
        shutil.copytree(self.data, data)
        phoenix = Phoenix(*SETTINGS, agents=AGENTS, data=data, token=self.token)
        # What a start leaves to be done would be in some runs and not in others.
        phoenix.server.ready()
        return phoenix


class Walk:
    """What an admin does, and what was acknowledged on the way."""

    def __init__(self, decisions):
        self.decisions = decisions
        self.told = set()

    def go(self, server, stops=False):
        """All of it; False when the server went away meanwhile."""
        try:
            self.post(server, "run", "/api/learning/run")
            self.post(server, "override", "/api/decisions/"
                      f"{self.decisions[0]}/override", {"agent": "writer"})
            self.post(server, "rebuild", "/api/learning/rebuild")
            self.post(server, "feedback", "/api/decisions/"
                      f"{self.decisions[1]}/feedback", {"verdict": "right"})
        except GONE:
            return False
        if not stops:
            return True
        # Its last words: what is learnt and not written yet.
        server.process.send_signal(signal.SIGTERM)
        return server.process.wait(DEADLINE_S) == 0

    def post(self, server, name, path, body=None):
        answer = server.call("POST", path, body)
        if answer.status != 200:
            raise AssertionError(f"{name}: {answer}")
        self.told.add(name)


def outcomes(data):
    """(kind, decision) of every outcome, and id -> (verdict, overridden_to) of
    every decision, as the database has them."""
    with tempfile.TemporaryDirectory(prefix="signalbox-test-") as copy:
        for name in os.listdir(data):
            if name.startswith("signalbox.db"):
                shutil.copy(os.path.join(data, name), copy)
        db = sqlite3.connect(os.path.join(copy, "signalbox.db"))
        if db.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
            raise AssertionError("the database is damaged")
        rows = db.execute("SELECT kind, decision_id FROM outcome").fetchall()
        decisions = {r[0]: r[1:] for r in db.execute(
            "SELECT id, verdict, overridden_to FROM decision")}
        db.close()
    return rows, decisions


def export(server):
    answer = server.call("GET", "/api/learning/export")
    if answer.status != 200:
        raise AssertionError(f"export: {answer}")
    return answer.body


def unlike_outcomes(server):
    """Whether what is kept is not what its records come to."""
    kept = export(server)
    if server.call("POST", "/api/learning/rebuild").status != 200:
        raise AssertionError("it cannot be rebuilt")
    return [] if kept == export(server) else [
        "what was kept is not what the outcomes come to"]


def half_there(data, walk):
    wrong = []
    rows, decisions = outcomes(data)
    judged = collections.Counter(rows)
    for decision, (verdict, to) in decisions.items():
        n = sum(judged[kind, decision] for kind in (1, 2, 3))
        if (verdict is None) != (n == 0):
            wrong.append(f"{decision} is judged {verdict} with {n} outcomes")
        if (to is None) == (judged[CORRECTION, decision] > 0):
            wrong.append(f"{decision} is half corrected")
    for key, n in judged.items():
        if n > 1:
            wrong.append(f"{key} counts {n} times")
    if "run" in walk.told and None in [d[0] for d in decisions.values()]:
        wrong.append("a run was acknowledged and is lost")
    if "override" in walk.told and not decisions[walk.decisions[0]][1]:
        wrong.append("an override was acknowledged and is lost")
    if "feedback" in walk.told and (FEEDBACK, walk.decisions[1]) not in judged:
        wrong.append("feedback was acknowledged and is lost")
    return wrong


def faults_after(phoenix, walk):
    """Start again, do the same once more, and compare."""
    wrong = half_there(phoenix.data, walk)
    server = phoenix.rise()
    wrong += unlike_outcomes(server)
    again = Walk(walk.decisions)
    if not again.go(server):
        raise AssertionError("gone without being killed: " + server.said())
    kept = export(server)
    phoenix.kill()
    wrong += half_there(phoenix.data, again)
    rows, _ = outcomes(phoenix.data)
    expected = [(VERDICT, d) for d in walk.decisions] + [
        (CORRECTION, walk.decisions[0]), (FEEDBACK, walk.decisions[1])]
    if sorted(rows) != sorted(expected):
        wrong.append(f"not once each: {rows}")
    server = phoenix.rise()
    if export(server) != kept:
        wrong.append("it was another after a kill")
    wrong += unlike_outcomes(server)
    phoenix.kill()
    return wrong


def record(template, test):
    """Every call of one walk, as points, in the order they were made."""
    log = os.path.join(template.root, "strace")
    with template.begin() as phoenix:
        pid = phoenix.server.process.pid
        tids = threads(pid)
        strace = Strace(pid, "-f", "-o", log)
        test.assertTrue(Walk(template.decisions).go(phoenix.server, True))
        phoenix.server.was_killed = True
        strace.wait()
    return read_points(log, tids)


class KillWhileItLearns(unittest.TestCase):
    def kill_at(self, template, point):
        """Faults, and whether the point was reached."""
        walk = Walk(template.decisions)
        with template.begin() as phoenix:
            tids = threads(phoenix.server.process.pid)
            strace = Strace(tids[point.thread], "-e", "trace=" + point.call,
                            "-e", f"inject={point.call}:signal=KILL:"
                            f"when={point.nth}")
            was_reached = not walk.go(phoenix.server, True)
            phoenix.kill()
            strace.wait()
            return faults_after(phoenix, walk), was_reached

    def test_no_outcome_is_lost_or_doubled(self):
        template = Template(self)
        points = record(template, self)
        stride = -(-len(points) // MAX_POINTS)
        n_reached = 0
        for point in points[::stride]:
            with self.subTest(point):
                faults, was_reached = self.kill_at(template, point)
                self.assertEqual(faults, [])
                n_reached += was_reached
        print(f"{len(points)} points, {len(points[::stride])} tried, "
              f"{n_reached} reached before the walk was over")
        self.assertLessEqual({"pwrite64", "fdatasync"},
                             {p.call for p in points})
        self.assertGreater(n_reached, len(points[::stride]) // 2)

    def test_acknowledging_before_the_commit_is_found_out(self):
        before = signalbox.BINARY
        signalbox.BINARY = os.environ["SIGNALBOX_FAULTY"]
        self.addCleanup(setattr, signalbox, "BINARY", before)
        template = Template(self)
        found = []
        for point in record(template, self):
            if point.call in ("pwrite64", "fdatasync", "fsync"):
                found += self.kill_at(template, point)[0]
            if any("lost" in f for f in found):
                return
        self.fail(f"nothing was found: {found}")

    def test_a_picture_apart_from_its_number_is_found_out(self):
        """As if the rows had been written in one tx and the number of the last
        outcome in another, and a kill had come in between."""
        template = Template(self)
        walk = Walk(template.decisions)
        with template.begin() as phoenix:
            walk.post(phoenix.server, "run", "/api/learning/run")
            walk.post(phoenix.server, "rebuild", "/api/learning/rebuild")
            phoenix.server.stop()
            path = os.path.join(phoenix.data, "signalbox.db")
            with sqlite3.connect(path) as db:
                old, = db.execute(
                    "SELECT bytes FROM learnt WHERE kind = 0").fetchone()
            server = phoenix.start()
            self.assertTrue(walk.go(server))
            server.stop()
            with sqlite3.connect(path) as db:
                db.execute("UPDATE learnt SET bytes = ? WHERE kind = 0", (old,))
            said = self.said_or_unlike(phoenix)
            self.assertTrue(said)

    def said_or_unlike(self, phoenix):
        """Rows that are ahead of the number are seen for what they are, and
        rebuilt; or else the state is another."""
        phoenix.args = tuple(a.replace("log.level=error", "log.level=warn")
                             for a in phoenix.args)
        server = phoenix.start()
        return "learning.begins_anew" in server.said() or \
            unlike_outcomes(server)


if __name__ == "__main__":
    unittest.main()
