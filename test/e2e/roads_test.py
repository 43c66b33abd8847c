"""Every road keeps the same promises: one suite for all of them. Each road has
a real agent (test/lib/road_agents.py) that does what the message tells it, so
what is asked and what must come of it is one table."""
import collections
import contextlib
import itertools
import os
import shutil
import sys
import tempfile
import unittest

from road_agents import HttpAgent, HubAgent, Memory, ModelAgent, RpcTask
from signalbox import Server, eventually

LIB = os.path.join(os.environ["SIGNALBOX_SOURCE"], "test", "lib")
MIB = 1024 * 1024
UGLY = "Grüße 😀 \u2028 \x7f \\ \" \t end"
ENDS = ("task.completed", "task.failed", "task.cancelled", "task.expired")
CONFIG = {"deliver": {"retryMs": 20, "retryMaxMs": 50, "onOffline": "hold",
                      "breakerFailures": 1000},
          "rate": {"perUser": 0}}
numbers = itertools.count(1)

# What the agent does, and what comes of it: status, text, error code, attempt
# (None: whichever), and what the stream of chunks must be (None: not asked).
Scenario = collections.namedtuple("Scenario",
                                  "steps status text code attempt chunks")


def scenario(steps, text="", status="completed", code=None, attempt=1,
             chunks=None):
    return Scenario(steps, status, text, code, attempt, chunks)


SCENARIOS = {
    "delivers": scenario("work|say:well done", "well done"),
    "delivers_without_a_word_before": scenario("say:at once", "at once"),
    "delivers_an_empty_text": scenario("work|say:"),
    "delivers_any_text": scenario("work|chunk:" + UGLY + "|end", UGLY,
                                  chunks=UGLY),
    "streams": scenario("work|chunk:one |chunk:two |chunk:three|end",
                        "one two three", chunks="one two three"),
    "streams_much": scenario(f"work|flood:{MIB // 2}", "x" * (MIB // 2)),
    "brings_a_megabyte": scenario(f"work|big:{MIB}", "x" * MIB),
    "refuses_more_than_a_megabyte": scenario(
        f"work|big:{MIB + 1}", status="failed", code="too_large"),
    "refuses_a_flood": scenario(
        f"work|flood:{MIB + MIB // 2}", status="failed", code="too_large"),
    "tells_an_error": scenario("work|fail:no_paper:the paper is out",
                               status="failed", code="no_paper"),
    "tries_again_who_was_busy": scenario("busy|work|say:now", "now",
                                         attempt=2),
    "ignores_a_second_result": scenario("work|say:first|again:second",
                                        "first"),
    "says_everything_twice": scenario("twice|work|chunk:ha|say:once", "once",
                                      chunks="haha"),
    "ignores_chunks_after_the_result": scenario("work|say:first|chunk:late",
                                                "first"),
    "survives_death_before_accepting": scenario("die|work|say:alive", "alive",
                                                attempt=2),
    "survives_death_after_accepting": scenario("work|die|say:alive", "alive",
                                               attempt=2),
    "survives_death_after_a_chunk": scenario(
        "work|chunk:a|die|chunk:b|end", "ab", attempt=2),
    "survives_death_before_the_result": scenario(
        "work|chunk:a|chunk:b|die|end", "ab", attempt=2),
}


class Conformance:
    """For every road. A road has an agent of the name `agent`; `codes` are
    error codes that it cannot tell as the agent said them, `skips` what does
    not exist on it."""

    agent = "worker"
    codes = {}
    skips = {}
    planted = {}  # settings that are wrong, in a control

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="signalbox-roads-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.memory = Memory(cls.folder)
        cls.begin()

    @classmethod
    def serve(cls, agent, **config):
        cls.server = cls.enterClassContext(Server(
            "--set", "log.level=warn", agents=[{"id": cls.agent, **agent}],
            config={**CONFIG, **config, **cls.planted}))

    def send(self, text, **fields):
        answer = self.server.send(text, to=self.agent,
                                  **{"wait_ms": 30000, **fields})
        self.assertIn(answer.status, (200, 202), answer)
        return answer.json()

    def task(self, task_id):
        return self.server.call("GET", f"/api/tasks/{task_id}").json()

    def ends(self, task_id):
        """How often it came to an end: once, whatever happened."""
        ends, after = [], 0
        while page := self.server.call(
                "GET", f"/api/feed?limit=500&after={after}").json()["items"]:
            ends += [e["type"] for e in page if e["type"] in ENDS and
                     e["task_id"] == task_id]
            after = page[-1]["seq"]
        return ends

    def wants(self, s):
        return (s.status, s.text, self.codes.get(s.code, s.code))

    def check(self, s, got, text):
        error = got["error"] or {"code": None}
        self.assertEqual((got["status"], got["text"], error["code"]),
                         self.wants(s), got["error"])
        task = self.task(got["task_id"])
        self.assertEqual((task["status"], task["result"]["text"]),
                         (s.status, s.text))
        if s.attempt:
            self.assertEqual(task["attempt"], s.attempt)
            self.assertEqual(self.memory.counted("seen", text), s.attempt)
        self.assertEqual(self.ends(got["task_id"]), ["task." + s.status])

    def run_scenario(self, s):
        text = f"id:{next(numbers)}|{s.steps}"
        self.check(s, self.send(text), text)

    def stream_scenario(self, s):
        text = f"id:{next(numbers)}|{s.steps}"
        with self.server.events(
                "/api/messages", method="POST",
                body={"text": text, "executor": {"name": self.agent}}) as events:
            got = list(events)
        results = [data for _, event, data in got if event == "result"]
        self.assertEqual(len(results), 1)
        self.assertEqual(got[-1].event, "result")
        if s.chunks is not None:
            self.assertEqual("".join(data["text"] for _, event, data in got
                                     if event == "chunk"), s.chunks)
        self.check(s, results[0], text)

    def working_on(self, steps, **fields):
        """A task that the agent has begun with: its message and its id."""
        text = f"id:{next(numbers)}|{steps}"
        got = self.send(text, wait_ms=0, **fields)
        eventually(lambda: self.memory.counted("seen", text), "begun")
        return text, got["task_id"]

    def is_well(self):
        """Whatever happened before, the agent does the next task."""
        self.run_scenario(scenario("work|say:well", "well", attempt=None))

    def test_cancel_reaches_the_agent(self):
        text, task_id = self.working_on("work|hang")
        answer = self.server.call("POST", f"/api/tasks/{task_id}/cancel")
        self.assertEqual(answer.status, 200, answer)
        self.stopped(text)
        self.assertEqual(self.task(task_id)["status"], "cancelled")
        self.assertEqual(self.ends(task_id), ["task.cancelled"])
        self.is_well()

    def stopped(self, text):
        eventually(lambda: self.memory.counted("cancelled", text),
                   "the agent has heard of it")

    def test_a_deadline_ends_it_and_reaches_the_agent(self):
        text, task_id = self.working_on("work|chunk:a|hang", timeout_ms=3000)
        eventually(lambda: self.task(task_id)["status"] == "expired",
                   "expired")
        self.stopped(text)
        task = self.task(task_id)
        self.assertEqual(task["result"]["error"]["code"], "expired")
        self.assertEqual(self.ends(task_id), ["task.expired"])
        self.is_well()

    def test_a_further_turn_goes_to_the_same_task(self):
        first = self.send(f"id:{next(numbers)}|work|say:one")
        text = f"id:{next(numbers)}|work|chunk:two|end"
        second = self.send(text, task_id=first["task_id"])
        self.assertEqual((second["task_id"], second["text"], second["turn"]),
                         (first["task_id"], "two", 2))
        task = self.task(first["task_id"])
        self.assertEqual([t["result"]["text"] for t in task["turns"]], ["one"])
        self.assertEqual(self.ends(first["task_id"]), ["task.completed"] * 2)

    def test_two_conversations_are_worked_on_at_once(self):
        name = f"m-{next(numbers)}"
        sent = [self.send(f"id:{next(numbers)}|meet:{name}:2|say:{i}",
                          conversation_id=f"{name}-{i}", wait_ms=0)
                for i in range(2)]
        for i, got in enumerate(sent):
            eventually(lambda: self.task(got["task_id"])["status"]
                       == "completed", "completed")
            self.assertEqual(self.task(got["task_id"])["result"]["text"],
                             str(i))

    def test_one_conversation_keeps_its_order(self):
        name = f"o-{next(numbers)}"
        sent = [self.send(f"id:{next(numbers)}|work|say:{i}", wait_ms=0,
                          conversation_id=name) for i in range(5)]
        for got in sent:
            eventually(lambda: self.task(got["task_id"])["status"]
                       == "completed", "completed")
        ended = [self.task(got["task_id"])["finished_ms"] for got in sent]
        self.assertEqual(ended, sorted(ended))

    def test_survives_death_while_idle(self):
        self.is_well()
        self.kill_idle()
        self.is_well()

    def kill_idle(self):
        self.peer.die()


def tests_of(name, s):
    def test(self):
        if name in self.skips:
            self.skipTest(self.skips[name])
        self.run_scenario(s)

    def test_streamed(self):
        if name in self.skips:
            self.skipTest(self.skips[name])
        self.stream_scenario(s)
    setattr(Conformance, "test_" + name, test)
    if s.chunks is not None or s.code or s.attempt > 1:
        setattr(Conformance, f"test_{name}_streamed", test_streamed)


for _name, _scenario in SCENARIOS.items():
    tests_of(_name, _scenario)


class Hub(Conformance, unittest.TestCase):
    """ws-agent://"""

    adapter = HubAgent

    @classmethod
    def begin(cls):
        cls.serve({})
        cls.peer = cls.enterClassContext(
            cls.adapter(cls.server, cls.agent, cls.memory))

    def kill_idle(self):
        lives = self.peer.n_lives
        self.peer.die()
        eventually(lambda: self.peer.n_lives > lives, "it is back")


NO_IDS = {"says_everything_twice": "what is said has no id there"}


class Http(Conformance, unittest.TestCase):
    """http://"""
    skips = NO_IDS

    @classmethod
    def begin(cls):
        cls.peer = cls.enterClassContext(HttpAgent(cls.memory))
        cls.serve({"url": cls.peer.url + "/task"})


class Children(Conformance):
    dialect = None

    @classmethod
    def begin(cls):
        cls.serve({"process": {
            "read": [LIB], "write": [cls.folder],
            "command": [sys.executable, "-I", "-c",
                        "import runpy, sys; sys.path.insert(0, sys.argv[1]); "
                        "sys.argv = sys.argv[1:]; "
                        "runpy.run_path(sys.argv[0] + '/road_child.py')",
                        LIB, cls.folder, cls.dialect],
            "dialect": cls.dialect, "min": 0, "max": 4, "onCancel": "ask"}})

    def kill_idle(self):
        """All that the server has started."""
        pids = [int(pid) for pid in os.listdir("/proc") if pid.isdigit()]
        for pid in pids:
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as f:
                    words = f.read().split(b"\0")
            except OSError:
                continue
            if self.folder.encode() in words:
                os.kill(pid, 9)


class Process(Children, unittest.TestCase):
    """process: in our own dialect"""
    dialect = "signalbox"


class Pi(Children, unittest.TestCase):
    """process: in that of pi-coding-agent"""
    dialect = "pi"
    codes = {"no_paper": "agent_failed"}
    skips = {"tries_again_who_was_busy": "pi has no word for it", **NO_IDS}


class Model(Conformance, unittest.TestCase):
    """model:"""
    codes = {"no_paper": "model_error"}
    skips = NO_IDS

    @classmethod
    def begin(cls):
        cls.peer = cls.enterClassContext(ModelAgent(cls.memory))
        cls.serve({"model": "toy"}, models={
            "toy": {"baseUrl": cls.peer.url + "/v1", "model": "m"}})


class Control(unittest.TestCase):
    """What the suite is for turns it red: each promise broken once, by a server
    that is set up wrongly or an agent that does not do as it is told."""

    @contextlib.contextmanager
    def road(self, **planted):
        case = type("Planted", (Hub,), planted)
        try:
            case.setUpClass()
            yield case("run_scenario")
        finally:
            case.doClassCleanups()

    def agents(self, **methods):
        """Of the hub, whose tasks have these methods instead."""
        task = type("PlantedTask", (RpcTask,), methods)
        return {"adapter": type("PlantedAgent", (HubAgent,),
                                {"task_class": task})}

    def red(self, case, *names):
        for name in names:
            with self.subTest(name), self.assertRaises(AssertionError):
                case.run_scenario(SCENARIOS[name])

    def green(self, case, *names):
        for name in names:
            case.run_scenario(SCENARIOS[name])

    def test_without_retries(self):
        once = {**CONFIG["deliver"], "maxAttempts": 1}
        with self.road(planted={"deliver": once}) as case:
            self.green(case, "delivers")
            self.red(case, "tries_again_who_was_busy",
                     *(name for name in SCENARIOS if "death" in name))

    def test_chunks_that_are_lost(self):
        def chunk(task, text):
            if "two" not in text:
                RpcTask.chunk(task, text)
        with self.road(**self.agents(chunk=chunk)) as case:
            self.green(case, "delivers_any_text")
            self.red(case, "streams")

    def test_the_wrong_of_two_results(self):
        def result(task, result):
            for text in ("second", result["text"]):
                RpcTask.result(task, {**result, "text": text})
        with self.road(**self.agents(result=result)) as case:
            self.red(case, "delivers", "ignores_a_second_result")

    def test_an_error_that_is_told_as_a_success(self):
        def result(task, result):
            RpcTask.result(task, {"status": "completed", "text": ""})
        with self.road(**self.agents(result=result)) as case:
            self.green(case, "delivers_an_empty_text")
            self.red(case, "tells_an_error", "refuses_more_than_a_megabyte")

    def test_one_death_more(self):
        def result(task, result):
            if task.params["attempt"] < 3:
                task.die()
            else:
                RpcTask.result(task, result)
        with self.road(**self.agents(result=result)) as case:
            self.red(case, "survives_death_before_accepting")

    def test_two_ends(self):
        """A further turn is one, as far as the feed can tell."""
        with self.road() as case:
            text = "id:two-ends|work|say:one"
            s, got = scenario("", "one", attempt=None), case.send(text)
            case.check(s, got, text)
            again = case.send(text + "|id:again", task_id=got["task_id"])
            with self.assertRaises(AssertionError):
                case.check(s, again, text)

    def test_a_stream_without_its_chunks(self):
        def chunk(task, text):
            RpcTask.working(task)

        def result(task, result):
            RpcTask.result(task, {"text": UGLY, **result})
        with self.road(**self.agents(chunk=chunk, result=result)) as case:
            self.green(case, "delivers_any_text")  # the result alone is right
            with self.assertRaises(AssertionError):
                case.stream_scenario(SCENARIOS["delivers_any_text"])
