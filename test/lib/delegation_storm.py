"""Agents who hire agents while everybody's connection breaks at any step, and
the server is killed.

    with Phoenix(*SETTINGS, agents=AGENTS) as phoenix, \\
            Hirers(phoenix, n=600, kill_every=100) as crew:
        crew.finish()
        phoenix.all_over()
    print(delegation_faults(crew, tasks))

Those who hire (bosses) ask with agent.send_task, each with ids of its own; who
lost the connection asks again with the same id, as long as it has no result,
and acknowledges again what it has. Some crash before they have written down
what they were told, and are told again. Those who are hired are hub_storm's.

What was heard is noted as it came, whether its hearer survived that or not.
"""
import collections
import random
import threading
import time

from hub_storm import PASSING, PAUSE_S, Crew, HubAgent
from signalbox import DEADLINE_S

BOSSES = ["ada", "bob", "cyd", "dan"]
WORKERS = ["gull", "tern", "petrel", "skua"]
# They are there by their names before they have come for the first time.
AGENTS = [{"id": name} for name in (*BOSSES, *WORKERS)]
OPEN_MAX = 8
STEPS = {"asked", "accepted", "told", "acking", "acked"}


class Boss(HubAgent):
    """One who hires; `open` has what it waits for, `had` what it has not been
    told to have acknowledged."""

    def __init__(self, crew, name, n):
        super().__init__(crew, name)
        self.n = n
        self.n_begun = 0
        self.open, self.had = {}, set()

    def is_done(self):
        return self.n_begun == self.n and not self.open and not self.had

    def hear(self):
        for m in self.wire.hear():
            if m.get("method") == "delegation.result":
                is_here = self.told(m["params"])
            elif m.get("id") == "register":
                is_here = self.registered(m)
            elif "id" in m and "method" not in m:
                is_here = self.answered(m)
            else:
                raise AssertionError(f"{self.name} was told {m}")
            if not is_here:
                return

    def registered(self, m):
        if "error" in m:
            self.refused(m)
        self.is_registered = True
        for id in sorted(self.had):
            self.ack(id)
        for id, is_accepted in self.open.items():
            if not is_accepted or self.random.random() < self.crew.again_rate:
                self.ask(id)
        return self.stays("asked") and self.begin()

    def begin(self):
        """As many as may be under way."""
        while len(self.open) < OPEN_MAX and self.n_begun < self.n:
            id = f"{self.name}:{self.n_begun}"
            self.n_begun += 1
            self.open[id] = False
            self.ask(id)
            if not self.stays("asked"):
                return False
        return True

    def ask(self, id):
        worker = WORKERS[int(id.split(":")[1]) % len(WORKERS)]
        self.crew.n_asked += 1
        self.wire.say({"jsonrpc": "2.0", "id": id, "method": "agent.send_task",
                       "params": {"agent_id": worker, "message": id,
                                  "skill_id": "any"}})

    def ack(self, id):
        self.wire.say({"jsonrpc": "2.0", "id": "ack " + id,
                       "method": "delegation.ack",
                       "params": {"original_id": id}})

    def refused(self, m):
        """Those that pass come again on another connection."""
        code = m["error"].get("data", {}).get("code")
        if code not in PASSING:
            self.crew.mistakes.append(f"{self.name}: {m}")
        self.crew.refused[code] += 1
        raise EOFError

    def told(self, r):
        id = r["original_id"]
        what = (r["task_id"], r["status"],
                r.get("metadata", {}).get("number") or r.get("error"))
        self.crew.told[id].append(what)
        if id in self.crew.acked:
            self.crew.told_late.append(id)
        self.crew.count()
        if not self.stays("told"):
            return False  # and did not write it down
        self.open.pop(id, None)
        self.had.add(id)
        self.ack(id)
        return self.stays("acking") and self.begin()

    def answered(self, m):
        if "error" in m and not self.is_taken_back(m):
            self.refused(m)
        self.crew.count()
        if "error" in m:
            return True
        if m["id"].startswith("ack "):
            return self.acked(m["id"][4:], m["result"])
        self.crew.accepted[m["id"]].add(m["result"]["task_id"])
        if m["id"] in self.open:
            self.open[m["id"]] = True
        return self.stays("accepted")

    def is_taken_back(self, m):
        """What it was told is not so, the server says: it waits again."""
        if m["error"].get("data", {}).get("code") != "task_not_over":
            return False
        id = m["id"].removeprefix("ack ")
        self.crew.taken_back.append(id)
        self.had.discard(id)
        self.open[id] = True
        return True

    def acked(self, id, result):
        """Whether by this or by one before it."""
        self.crew.n_acked_before += not result["acked"]
        self.crew.acked.add(id)
        self.had.discard(id)
        return self.stays("acked")


class Hirers(Crew):
    """Bosses and workers, and a kill after every few words that were heard (a
    random number up to kill_every; 0: never)."""

    def __init__(self, phoenix, n, kill_every, again_rate=0.5, drop_rate=0.03,
                 seed=1):
        super().__init__(phoenix, WORKERS, drop_rate, seed)
        self.again_rate = again_rate  # of what was accepted
        self.bosses = [Boss(self, name, n // len(BOSSES)) for name in BOSSES]
        self.agents += self.bosses
        self.random = random.Random(seed)
        self.kill_every = kill_every
        self.until_kill = self.random.randint(1, kill_every or 1)
        self.is_killed = threading.Event()
        self.lock = threading.Lock()
        self.told = collections.defaultdict(list)  # id -> results, as heard
        self.accepted = collections.defaultdict(set)  # id -> tasks
        self.acked = set()
        self.told_late, self.taken_back = [], []  # ids
        self.n_asked = self.n_acked_before = self.n_heard = 0
        self.on_recorded = self.count

    def count(self):
        """Someone heard something: now it may be killed."""
        self.n_heard += 1
        self.until_kill -= 1
        with self.lock:
            if self.until_kill == 0 and self.kill_every:
                self.phoenix.server.process.kill()
                self.is_killed.set()

    def rise(self):
        """Another server, if this one was killed."""
        if self.is_killed.is_set():
            self.phoenix.kill()
            self.phoenix.rise()
            self.is_killed.clear()
            self.until_kill = self.random.randint(1, self.kill_every or 1)

    def finish(self, is_enough=lambda: False):
        """Until every boss has everything; it is an error when no one hears
        anything any more."""
        n_before, end = -1, 0
        while not all(b.is_done() for b in self.bosses) and not is_enough():
            if self.mistakes:
                raise AssertionError("; ".join(self.mistakes[:5]))
            self.is_killed.wait(PAUSE_S)
            self.rise()
            if n_before != self.n_heard:
                n_before, end = self.n_heard, time.monotonic() + DEADLINE_S
            elif time.monotonic() > end:
                raise AssertionError("nothing more is heard of " + str(
                    [id for b in self.bosses for id in b.open]))
        with self.lock:
            self.kill_every = 0
        self.rise()


def some(words, ids):
    ids = list(ids)
    return [f"{len(ids)} {words}: {ids[:3]}"] if ids else []


def heard_faults(crew):
    """What is wrong by what was heard alone; also while it goes on."""
    return [
        *some("with two results", (i for i, told in list(crew.told.items())
                                   if len(set(told)) > 1)),
        *some("told after the acknowledgement", crew.told_late),
        *some("told and not over", crew.taken_back),
        *some("accepted as two tasks", (
            i for i, t in list(crew.accepted.items()) if len(t) > 1))]


def delegation_faults(crew, tasks):
    """What is wrong, also by the tasks, all of them over."""
    ids = {f"{b.name}:{i}" for b in crew.bosses for i in range(b.n)}
    texts = collections.Counter(t["text"] for t in tasks)
    kept = {t["text"]: (t["id"], t["status"], t["result"]["metadata"].get(
        "number")) for t in tasks if t["status"] == "completed"}
    return [
        *heard_faults(crew),
        *some("lost", sorted(ids - set(crew.told))),
        *some("other's", sorted(set(crew.told) - ids)),
        *some("done twice", (text for text, n in texts.items() if n > 1)),
        *some("without a task", sorted(ids - set(texts))),
        *some("told otherwise than it is kept",
              (i for i, told in crew.told.items()
               if set(told) != {kept.get(i)}))]
