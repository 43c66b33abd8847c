"""The server is killed again and again while agents are registered, changed
and removed. After each kill, what the database was left with agrees with
itself: the last entry of the feed for each agent is of the revision that its
row has, and vectors are of the card that is there. After each restart the API
and the search say exactly what the database says, and whatever was acknowledged
is so.

STRESS=full makes more than 1 000 registrations.
"""
import collections
import json
import os
import shutil
import sqlite3
import tempfile
import unittest

import signalbox
from storm import Phoenix, Sender, Storm

IS_FULL = os.environ.get("STRESS") == "full"
N_STEPS = 1728 if IS_FULL else 576
KILL_EVERY = 60
N_SENDERS = 16
QUIET = ("--set", "log.level=warn", "--set", "registry.maxAgentsPerUser=0",
         "--set", "registry.maxCardBytesPerUser=0")
PAGE = 500

State = collections.namedtuple("State", "agents feed")  # name -> revision


def word(name):
    """A word that no other agent has."""
    return "w" + name.replace("-", "x")


def card(name, version):
    return {"name": name, "description": "one of many", "version": version,
            "url": "echo:", "visibility": "public",
            "skills": [{"id": "s", "name": word(name),
                        "description": "does something"}]}


class Registrar(Sender):
    """Registers agents, changes every third of them and removes every sixth:
    one step after the other, and each until it is acknowledged."""

    def __init__(self, storm, number, n):
        super().__init__(storm, number, n)
        self.depth = 1
        self.acked_revisions = {}

    def step(self, i):
        """Method, name and version of the ith."""
        rounds, at = divmod(i, 9)
        names = [f"a-{self.name[2:]}-{6 * rounds + k}" for k in range(6)]
        if at < 6:
            return "POST", names[at], "1"
        if at < 8:
            return "POST", names[3 * (at - 6)], "2"
        return "DELETE", names[0], None

    def message(self, i):
        self.tries[i] += 1
        method, name, version = self.step(i)
        if method == "DELETE":
            return self.storm.server.request(method, "/api/agents/" + name)
        return self.storm.server.request(method, "/api/agents",
                                         card(name, version))

    def took(self, i, status, body):
        """Whether the answer is a good one; it is then remembered."""
        method, name, version = self.step(i)
        if method == "DELETE":
            # Done before, and the answer was lost.
            is_good = status == 204 or (status == 404 and self.tries[i] > 1)
            revision = 0
        else:
            is_good = status in (200, 201)
            revision = body["revision"] if is_good else 0
            if is_good and version == "2":
                is_good = revision == self.acked_revisions[name] + 1
        if is_good:
            self.acked_revisions[name] = revision
        return is_good


class Rush(Storm):
    """So many registrars at once, and a look at everything after each kill."""

    def __init__(self, phoenix, n_steps, is_late=True, **options):
        super().__init__(phoenix, ["echo"], 0, N_SENDERS, **options)
        self.is_late = is_late
        self.senders = [Registrar(self, i, n_steps // N_SENDERS)
                        for i in range(N_SENDERS)]
        self.wrong = []

    def heard(self, sender, status, body):
        if sender in self.unwell:
            return
        if not sender.took(sender.acked, status, body):
            self.unwell.add(sender)
            if status not in (409, 500, 503):
                self.mistakes.append(f"{status}: {body!r}")
            return
        sender.acked += 1
        self.until_kill -= 1

    def kill(self, by_fd):
        self.phoenix.kill()
        for sender in by_fd.values():
            while sender.receive():
                pass
            sender.socket.close()
        left = left_in(self.phoenix.data, self.is_late)
        self.phoenix.rise()
        self.wrong += faults(left, self.phoenix, self.acked(), self.pending())

    def acked(self):
        return {name: revision for s in self.senders
                for name, revision in s.acked_revisions.items()}

    def pending(self):
        """Names of which one more step may have happened, or not."""
        return {s.step(s.acked)[1] for s in self.senders if not s.is_done()}


def fold(entries):
    """What the feed says that there is: name -> revision."""
    there, last, wrong = {}, {}, []
    for kind, agent, revision in entries:
        before = there.get(agent, 0)
        if kind == "agent.removed":
            if before != revision:
                wrong.append(f"{agent} went at {revision}, had {before}")
            there.pop(agent, None)
        elif kind.startswith("agent."):
            if kind == "agent.registered":
                is_good = not before and revision > last.get(agent, 0)
            else:
                is_good = revision == before + 1
            if not is_good:
                wrong.append(f"{agent} became {revision}, had {before}")
            there[agent] = last[agent] = revision
    return there, wrong


def left_in(data, is_late=True, is_ready=False):
    """Rows and feed of the database as the kill left it. Vectors that are late
    follow their card, in a change of their own, until the server is ready."""
    with tempfile.TemporaryDirectory(prefix="signalbox-test-") as copy:
        for name in os.listdir(data):
            if name.startswith("signalbox.db"):
                shutil.copy(os.path.join(data, name), copy)
        db = sqlite3.connect(os.path.join(copy, "signalbox.db"))
        if db.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
            raise AssertionError("the database is damaged")
        agents = dict(db.execute("SELECT shown, revision FROM agents"))
        vectors = dict(db.execute("SELECT agent, revision FROM agent_vectors"))
        feed = [(kind, agent, json.loads(entry)["revision"])
                for kind, agent, entry in db.execute(
                    "SELECT type, agent, data FROM feed WHERE type LIKE "
                    "'agent.%' ORDER BY seq")]
        changes = db.execute("SELECT seq FROM registry").fetchall()
        db.close()
    if not vectors.items() <= agents.items():
        raise AssertionError("vectors of other revisions than the cards")
    if (is_ready or not is_late) and vectors != agents:
        raise AssertionError(f"{len(agents) - len(vectors)} without vectors")
    if agents and not (changes[0][0] >= len(feed) + len(vectors) if is_late
                       else changes == [(len(feed),)]):
        raise AssertionError(f"{changes} changes, {len(feed)} in the feed, "
                             f"{len(vectors)} vectors")
    return State(agents, feed)


def listed(phoenix):
    agents, cursor = {}, ""
    while cursor is not None:
        page = phoenix.get(f"/api/agents?limit={PAGE}" + cursor)
        agents |= {a["name"]: a["revision"] for a in page["items"]}
        after = page["next_cursor"]
        cursor = None if after is None else f"&cursor={after}"
    return agents


def told(phoenix):
    feed, after = [], 0
    while page := phoenix.get(f"/api/feed?limit={PAGE}&after={after}")["items"]:
        feed += [(e["type"], e["agent"], e["data"]["revision"]) for e in page
                 if e["type"].startswith("agent.")]
        after = page[-1]["seq"]
    return feed


def unfindable(phoenix, names, must):
    """Those that are found by their word, or are not, against `must`."""
    wrong = []
    for name in names:
        found = phoenix.get(f"/api/agents/search?q={word(name)}&mode=text")
        if [a["name"] for a in found["agents"]] != ([name] if must else []):
            wrong.append(name)
    return wrong


def differ(what, a, b):
    keys = [k for k in a.keys() | b.keys() if a.get(k) != b.get(k)]
    return [f"{len(keys)} differ in {what}: {sorted(keys)[:3]}"] if keys else []


def faults(left, phoenix, acked, pending, is_whole=False):
    """What does not agree: the database as it was left, the API, the feed,
    the search and what was acknowledged."""
    by_feed, wrong = fold(left.feed)
    wrong += differ("rows and feed", left.agents, by_feed)
    now = listed(phoenix)
    wrong += differ("rows and memory", left.agents, now)
    if told(phoenix) != left.feed:
        wrong.append("another feed after the restart")
    lost = [name for name, revision in acked.items()
            if name not in pending and now.get(name, 0) != revision]
    if lost:
        wrong.append(f"{len(lost)} lost: {sorted(lost)[:3]}")
    names = sorted(now) if is_whole else sorted(now)[::len(now) // 20 + 1]
    gone = [name for name, revision in acked.items()
            if revision == 0 and name not in now]
    n = len(unfindable(phoenix, names, True))
    n += len(unfindable(phoenix, gone if is_whole else gone[-5:], False))
    if n:
        wrong.append(f"{n} not found as they are")
    return wrong


class KilledRegistrations(unittest.TestCase):
    def test_index_store_and_feed_agree_after_every_kill(self):
        self.storm("builtin", is_late=True)

    def test_vectors_that_are_had_at_once_are_written_with_the_card(self):
        self.storm("table", is_late=False)

    def storm(self, kind, is_late):
        with Phoenix(*QUIET, "--set", "embed.kind=" + kind,
                     agents=[]) as phoenix:
            rush = Rush(phoenix, N_STEPS, is_late, kill_every=KILL_EVERY)
            rush.run()
            phoenix.kill()
            left = left_in(phoenix.data, is_late)
            phoenix.rise()
            wrong = rush.wrong + faults(left, phoenix, rush.acked(), set(),
                                        is_whole=True)
            # Once more with the snapshot that a good end leaves, and with the
            # vectors that the kills had left out.
            phoenix.server.ready()
            phoenix.server.stop()
            now = left_in(phoenix.data, is_late, is_ready=True)
            phoenix.start()
            self.assertEqual(now, left)
            wrong += faults(left, phoenix, rush.acked(), set())
            self.assertEqual(wrong, [])
            print(f"{len(left.feed)} changes, {len(left.agents)} agents, "
                  f"{phoenix.n_kills} kills, {rush.n_retries} sent again")
            registered = [e for e in left.feed if e[0] == "agent.registered"]
            self.assertGreaterEqual(len(registered), N_STEPS * 6 // 10)
            # It was a storm: servers died with registrations under way.
            self.assertGreater(phoenix.n_kills, 5)
            self.assertGreater(rush.n_retries, phoenix.n_kills)
            self.every_planted_fault_is_seen(left, phoenix, rush.acked())

    def every_planted_fault_is_seen(self, left, phoenix, acked):
        """The checker, given what is wrong in one way each."""
        name = max(n for n, revision in acked.items() if revision)
        fewer = {k: v for k, v in left.agents.items() if k != name}
        last = max(i for i, e in enumerate(left.feed) if e[1] == name)
        for what, state, told_acked in (
                ("rows and memory", State(fewer, left.feed), acked),
                ("rows and feed", State({**left.agents, name: 9}, left.feed),
                 acked),
                ("another feed", State(left.agents,
                                       left.feed[:last] + left.feed[last + 1:]),
                 acked),
                ("lost", left, {**acked, name: 9}),
                ("lost", left, {**acked, "a-99-99": 1}),
                # One that went, and has the word of one that is there.
                ("not found", left, {**acked, name.replace("-", "x", 1): 0})):
            with self.subTest(what):
                self.assertIn(what, "; ".join(
                    faults(state, phoenix, told_acked, set())))


class Controls(unittest.TestCase):
    def test_acknowledging_before_the_commit_loses_registrations(self):
        before = signalbox.BINARY
        signalbox.BINARY = os.environ["SIGNALBOX_FAULTY"]
        self.addCleanup(setattr, signalbox, "BINARY", before)
        found = ""
        for seed in range(1, 11):
            with Phoenix(*QUIET, agents=[]) as phoenix:
                rush = Rush(phoenix, 320, kill_every=30, seed=seed)
                try:
                    rush.run()
                except AssertionError as e:
                    rush.wrong.append(str(e))
                found = "; ".join(rush.wrong)
            if "lost" in found:
                return
        self.fail(f"nothing was found to be lost: {found}")
