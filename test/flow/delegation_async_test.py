"""What an agent without a line, a model or pi, gave to another with mode async,
and did not wait for: when it is over the user is told, and the agent has it with
its next turn, once, over kills and turns that come to nothing.

The controls are servers with one mistake each, on which the same must fail.
"""
import contextlib
import json
import os
import sqlite3
import sys
import tempfile
import threading
import unittest

import signalbox
from hub_peer import Hub
from signalbox import Server, eventually
from tool_model import ToolModel, answers, calls

QUICK = {"maxAttempts": 1, "retryMs": 10, "retryMaxMs": 20,
         "breakerFailures": 1000}
PI = os.path.join(os.environ["SIGNALBOX_SOURCE"], "test/lib/pi_dialogs.py")
HEAD = "[What you delegated and had no result of has ended since your last " \
       "turn:\n"
TAIL = "End of that.]\n\n"


def notes(text):
    """What a turn begins with, read; and its own words."""
    if not text.startswith(HEAD):
        return [], text
    lines, words = text[len(HEAD):].split(TAIL, 1)
    return [json.loads(line) for line in lines.splitlines()
            if line.startswith("{")], words


class Stage(contextlib.ExitStack):
    """A model that delegates whatever begins with "async", and says what it
    was asked; and an agent on the hub that does it."""

    def __init__(self, data=None, token=None, config=None, **settings):
        super().__init__()
        self.model = self.enter_context(ToolModel(self.think))
        self.server = self.enter_context(Server(
            data=data, token=token,
            agents=[{"id": "boss", "model": "tools/boss", "default": True}],
            config={"models": {"tools": {"baseUrl": self.model.url + "/v1",
                                         **settings}},
                    "deliver": QUICK, "rate": {"perUser": 0},
                    **(config or {})}))
        self.hub = self.enter_context(Hub(self.server))
        self.hub.register("slow", visibility="public")

    def think(self, body):
        said = answers(body)
        words = notes(body["messages"][-1]["content"])[1]
        if said or not words.startswith("async"):
            return "well"
        many = int(words[5:] or 1)
        return calls(*(("delegate_to_agent", {
            "agentId": "slow", "task": f"job {i}", "mode": "async"})
            for i in range(many)))

    def ask(self, text, conversation="c-1", token=signalbox.OWN):
        done = self.server.send(text, to="boss", conversation_id=conversation,
                                wait_ms=60000, token=token)
        return done.json()

    def given(self):
        return [self.hub.heard("task.execute")["task_id"]]

    def end(self, id, **said):
        self.hub.call("task.result", task_id=id,
                      **{"status": "completed", "text": "found it", **said})

    def news(self):
        items = self.server.call("GET", "/api/feed?limit=500").json()["items"]
        return [i for i in items if i["type"] == "task.delegated"]

    def told(self):
        """What the last turn began with, and its own words."""
        return notes(self.model.calls[-1].body["messages"][-1]["content"])


class Told(unittest.TestCase):
    def test_the_user_is_and_the_next_turn_has_it(self):
        with Stage() as s:
            parent = s.ask("async")["task_id"]
            id, = s.given()
            self.assertEqual(s.news(), [])
            s.end(id)
            eventually(s.news, "the user is told")
            news, = s.news()
            key = news["data"]["sessionKey"]
            self.assertEqual(
                (news["task_id"], news["conversation_id"], news["agent"],
                 news["data"]),
                (parent, "c-1", "boss", {
                    "sessionKey": key, "task_id": id, "agent": "slow",
                    "status": "completed"}))
            s.ask("and?")
            result = {"agentId": "slow", "task": "job 0",
                      "status": "completed",
                      "sessionKey": key, "task_id": id,
                      "response": "found it"}
            self.assertEqual(s.told(), ([result], "and?"))
            # Once: from then on it is part of what was said before.
            s.ask("what was that?")
            self.assertEqual(s.told(), ([], "what was that?"))
            history = [m["content"] for m in
                       s.model.calls[-1].body["messages"]
                       if m["role"] == "user"]
            self.assertEqual(len(history), 3)
            self.assertEqual(history[0], "async")
            self.assertEqual(history[1].count("found it"), 1)
            self.assertTrue(history[1].endswith("and?"))
            self.assertEqual(s.model.complaints, [])
            self.assertEqual(len(s.news()), 1)

    def test_what_came_to_nothing_too(self):
        with Stage() as s:
            s.ask("async")
            s.end(*s.given(), status="failed", text="", error="no idea")
            eventually(s.news, "the user is told")
            s.ask("and?")
            note, = s.told()[0]
            self.assertEqual((note["status"], note["error"]),
                             ("error", "no idea"))

    def test_two_for_one_agent_are_told_apart(self):
        with Stage() as s:
            s.ask("async2")
            for _ in range(2):
                given = s.hub.heard("task.execute")
                s.end(given["task_id"], text="of " + given["message"])
            eventually(lambda: len(s.news()) == 2, "the user is told of both")
            s.ask("and?")
            self.assertEqual(
                sorted((t["task"], t["response"]) for t in s.told()[0]),
                [("job 0", "of job 0"), ("job 1", "of job 1")])

    def test_a_long_order_is_cut(self):
        with Stage() as s:
            for asked, kept in (("x" * 200, "x" * 200), ("x" * 201, "x" * 200),
                                ("\1ä" * 999, "\1ä" * 66 + "\1")):
                n = len(s.news())
                s.model.think = lambda body: "well" if answers(body) else \
                    calls(("delegate_to_agent", {
                        "agentId": "slow", "task": asked, "mode": "async"}))
                s.ask("go")
                s.model.think = s.think
                s.end(*s.given())
                eventually(lambda: len(s.news()) > n, "the user is told")
                s.ask("and?")
                note, = s.told()[0]
                self.assertEqual(note["task"], kept)

    def test_a_long_answer_is_cut(self):
        with Stage() as s:
            for text, kept in (("ä" * 100000, "ä" * 4096),
                               ("\1" * 8192, "\1" * 2048),
                               ("x" * 8192, "x" * 8192)):
                n = len(s.news())
                s.ask("async")
                s.end(*s.given(), text=text)
                eventually(lambda: len(s.news()) > n, "the user is told")
                s.ask("and?")
                note, = s.told()[0]
                self.assertEqual((note["response"], note.get("cut", False)),
                                 (kept, kept != text))

    def test_more_than_fit_into_one_turn(self):
        with Stage() as s:
            s.ask("async16")
            s.ask("async1")
            first = []
            for _ in range(17):
                first += s.given()
                s.end(first[-1])
            eventually(lambda: len(s.news()) == 17, "the user is told of all")
            s.ask("and?")
            told = s.told()[0]
            self.assertEqual(len(told), 16)
            self.assertIn("More has ended",
                          s.model.calls[-1].body["messages"][-1]["content"])
            s.ask("and?")
            told += s.told()[0]
            self.assertEqual([n["task_id"] for n in told], first)

    def test_more_bytes_than_fit_into_one_turn(self):
        with Stage() as s:
            s.ask("async9")
            for _ in range(9):
                s.end(*s.given(), text="x" * 8192)
            eventually(lambda: len(s.news()) == 9, "the user is told of all")
            told = []
            for n in (7, 2, 0):
                s.ask("and?")
                self.assertEqual(len(s.told()[0]), n)
                told += [t["task_id"] for t in s.told()[0]]
            self.assertEqual(len(set(told)), 9)

    def test_what_was_said_before_keeps_to_its_limit(self):
        for limit, n in ((4096, 1), (64, 0)):
            with self.subTest(limit), Stage(historyBytes=limit) as s:
                s.ask("async")
                s.end(*s.given())
                eventually(s.news, "the user is told")
                s.ask("and?")
                self.assertEqual(len(s.told()[0]), 1)
                s.ask("what was that?")
                said = s.model.calls[-1].body["messages"][-3]["content"]
                self.assertTrue(said.endswith("and?"))
                self.assertEqual(said.count("found it"), n)

    def test_what_ends_while_the_turn_waits(self):
        may_end = threading.Event()
        self.addCleanup(may_end.set)
        with Stage(config={"deliver": {**QUICK, "inFlight": 1}}) as s:
            s.ask("async")
            n = len(s.model.calls)
            s.model.think = lambda body: may_end.wait(60) and "well"
            s.server.send("busy", to="boss", conversation_id="c-2", wait_ms=0)
            eventually(lambda: len(s.model.calls) > n, "it is busy")
            turn = s.server.send("and?", to="boss", conversation_id="c-1",
                                 wait_ms=0).json()["task_id"]
            s.end(*s.given())
            eventually(s.news, "it is over")
            path = "/api/tasks/" + turn
            self.assertEqual(s.server.call("GET", path).json()["status"],
                             "queued")
            may_end.set()
            eventually(lambda: s.server.call("GET", path).json()["status"] ==
                       "completed", "its turn came")
            turns = [notes(c.body["messages"][-1]["content"])
                     for c in s.model.calls[n:]]
            told = {words: [t["response"] for t in found]
                    for found, words in turns}
            self.assertEqual(told["and?"], ["found it"])
            s.ask("again?")
            self.assertEqual(s.told(), ([], "again?"))

    def test_on_the_streams_of_what_goes_on(self):
        may_end = threading.Event()

        def think(body):
            said = answers(body)
            if not said:
                return calls(("delegate_to_agent", {
                    "agentId": "slow", "task": "x", "mode": "async"}))
            may_end.wait(60)
            return "well"
        with Stage() as s, Hub(s.server) as user:
            s.think = think
            s.model.think = think
            task = user.call("message.send", text="go",
                             executor={"name": "boss"})["task_id"]
            with s.server.events(f"/api/tasks/{task}/events") as events:
                id, = s.given()
                s.end(id)
                heard = user.heard("task.delegated")
                self.assertEqual(heard["task_id"], task)
                self.assertEqual(heard["delegated"]["task_id"], id)
                self.assertEqual(heard["delegated"]["response"], "found it")
                may_end.set()
                shown = [data for _, event, data in events
                         if event == "delegated"]
            self.assertEqual([d["delegated"] for d in shown],
                             [heard["delegated"]])


class Isolation(unittest.TestCase):
    def test_nobody_else_s_turn_has_it(self):
        with Stage() as s:
            anna, berta = (s.server.user(n) for n in ("anna", "berta"))
            s.ask("async", token=anna)
            s.end(*s.given())
            eventually(s.news, "it is over")
            s.ask("mine?", token=berta)
            self.assertEqual(s.told(), ([], "mine?"))
            s.ask("elsewhere?", conversation="c-2", token=anna)
            self.assertEqual(s.told(), ([], "elsewhere?"))
            for token, n in ((anna, 1), (berta, 0)):
                items = s.server.call("GET", "/api/feed?limit=500",
                                      token=token).json()["items"]
                self.assertEqual([i["type"] for i in items].count(
                    "task.delegated"), n)
            s.ask("and?", token=anna)
            self.assertEqual(len(s.told()[0]), 1)

    def test_nor_has_the_agent_that_a_turn_is_given_to(self):
        with tempfile.TemporaryDirectory() as folder:
            rules = os.path.join(folder, "rules.json")
            with open(rules, "w", encoding="utf-8") as file:
                json.dump({"agents": {"boss": {}, "slow": {}, "other": {}},
                           "sla": [{"rule": "soon", "match": {"to": "boss"},
                                    "within": "1s"}]}, file)
            with Stage(config={"rules": rules}) as s, Hub(s.server) as other:
                other.register("other", visibility="public")
                self.redirect(s, other)

    def redirect(self, s, other):
        s.ask("async")
        s.end(*s.given())
        eventually(s.news, "it is over")
        may_end = threading.Event()
        self.addCleanup(may_end.set)
        s.model.think = lambda body: may_end.wait(60) and "well"
        task = s.server.send("hang", to="boss", conversation_id="c-1",
                             wait_ms=0).json()["task_id"]

        def late():
            items = s.server.call("GET", "/api/escalations?kind=late")
            return [i["id"] for i in items.json()["items"]
                    if i["task_id"] == task]
        eventually(late, "it is late")
        self.assertEqual(len(s.told()[0]), 1)
        done = s.server.call("POST", f"/api/escalations/{late()[0]}/redirect",
                             {"agent": "other"})
        self.assertEqual(done.status, 200)
        given = other.heard("task.execute")
        self.assertEqual(given["message"], "hang")
        other.call("task.result", task_id=given["task_id"],
                   status="completed", text="done by another")
        eventually(lambda: s.server.call("GET", "/api/tasks/" + task)
                   .json()["status"] == "completed", "it is done")
        may_end.set()
        s.model.think = s.think
        s.ask("again?")
        self.assertEqual(len(s.told()[0]), 1)


class Killed(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.data = os.path.join(self.folder.name, "data")

    def database(self, *statements):
        path = os.path.join(self.data, "signalbox.db")
        with contextlib.closing(sqlite3.connect(path)) as db:
            for text in statements:
                self.assertEqual(db.execute(text).rowcount, 1)
            db.commit()

    def begin(self, s, text):
        """A turn that the model was asked for and does not end."""
        n = len(s.model.calls)
        self.may_end = threading.Event()
        s.model.think = lambda body: self.may_end.wait(60) and "well"
        task = s.server.send(text, to="boss", conversation_id="c-1",
                             wait_ms=0).json()["task_id"]
        eventually(lambda: len(s.model.calls) > n, "it was asked")
        return task

    def die(self, s):
        s.server.kill9()
        return s.server.token

    def test_while_it_is_done(self):
        with Stage(self.data) as s:
            s.ask("async")
            s.given()
            token = self.die(s)
        with Stage(self.data, token) as s:
            s.end(*s.given())
            eventually(s.news, "the user is told")
            s.ask("and?")
            self.assertEqual(len(s.told()[0]), 1)
            s.ask("and?")
            self.assertEqual(s.told(), ([], "and?"))
            self.assertEqual(len(s.news()), 1)

    def test_of_a_server_that_did_not_keep_whose_it_is(self):
        """As the disk is after an upgrade from before that was kept."""
        with Stage(self.data) as s:
            s.ask("async")
            s.given()
            token = self.die(s)
        self.database("UPDATE delegation "
                      "SET owner = NULL, conversation = NULL")
        with Stage(self.data, token) as s:
            s.end(*s.given())
            eventually(s.news, "the user is told")
            s.ask("and?")
            self.assertEqual(len(s.told()[0]), 1)

    def test_between_its_end_and_the_note(self):
        """As the disk would be, had the server died there."""
        with Stage(self.data) as s:
            s.ask("async")
            s.end(*s.given())
            eventually(s.news, "the user is told")
            token = self.die(s)
        self.database(
            "UPDATE delegation SET state = 2, "
            "expires_ms = expires_ms + 86400000",
            "DELETE FROM note",
            "DELETE FROM feed WHERE type = 'task.delegated'")
        with Stage(self.data, token) as s:
            eventually(s.news, "the user is told after all")
            s.ask("and?")
            self.assertEqual([n["response"] for n in s.told()[0]],
                             ["found it"])

    def test_before_and_after_the_turn_that_has_it(self):
        with Stage(self.data) as s:
            s.ask("async")
            s.end(*s.given())
            eventually(s.news, "the user is told")
            token = self.die(s)
        with Stage(self.data, token) as s:
            s.ask("and?")
            self.assertEqual(len(s.told()[0]), 1)
            self.die(s)
        with Stage(self.data, token) as s:
            s.ask("again?")
            self.assertEqual(s.told(), ([], "again?"))
            self.assertEqual(len(s.news()), 1)

    def test_in_the_turn_that_has_it(self):
        with Stage(self.data) as s:
            s.ask("async")
            s.end(*s.given())
            eventually(s.news, "the user is told")
            task = self.begin(s, "and?")
            self.assertEqual(len(s.told()[0]), 1)
            token = self.die(s)
            self.may_end.set()
        with Stage(self.data, token) as s:
            eventually(lambda: s.server.call("GET", "/api/tasks/" + task)
                       .json()["status"] == "completed", "it was asked again")
            self.assertEqual(len(s.told()[0]), 1)
            s.ask("again?")
            self.assertEqual(s.told(), ([], "again?"))

    def test_a_turn_that_comes_to_nothing_has_had_none(self):
        with Stage(self.data) as s:
            s.ask("async")
            s.end(*s.given())
            eventually(s.news, "the user is told")
            task = self.begin(s, "and?")
            self.assertEqual(len(s.told()[0]), 1)
            s.server.call("POST", f"/api/tasks/{task}/cancel")
            self.may_end.set()
            s.model.think = s.think
            s.ask("again?")
            self.assertEqual(len(s.told()[0]), 1)


class Pi(unittest.TestCase):
    """What was told stays in its session: a turn begins with what is new."""

    def test_its_next_turn_has_it(self):
        agents = [{"id": "pi", "process": {"command": [sys.executable, PI],
                                           "dialect": "pi"}}]
        with Server(agents=agents) as server, Hub(server) as hub:
            hub.register("slow")
            shown = json.dumps([{"method": "input", "title": "go on?"}])
            with server.events("/api/messages", "Signalbox-Answers: input",
                               method="POST", body={
                                   "text": shown, "conversation_id": "c-1",
                                   "executor": {"name": "pi"}}) as events:
                asked = next(data for _, event, data in events
                             if event == "input")
                begun = server.call("POST", "/api/delegate", {
                    "agentId": "slow", "task": "x", "mode": "async",
                    "parent_task_id": asked["task_id"]}).json()
                self.assertEqual(begun["status"], "accepted", begun)
                server.call("POST", f"/api/tasks/{asked['task_id']}/input", {
                    "input_id": asked["input"]["input_id"], "value": "yes"})
                for _, event, _ in events:
                    if event == "result":
                        break
            id = hub.heard("task.execute")["task_id"]
            hub.call("task.result", task_id=id, status="completed",
                     text="found it")
            eventually(lambda: "task.delegated" in json.dumps(
                server.call("GET", "/api/feed?limit=500").json()),
                "the user is told")
            for text, n in (("and?", 1), ("again?", 0)):
                said = server.send(text, to="pi", conversation_id="c-1",
                                   wait_ms=60000).json()["text"]
                told, words = notes(said)
                self.assertEqual(words, text)
                self.assertEqual([t["response"] for t in told],
                                 ["found it"] * n)


@unittest.skipUnless("SIGNALBOX_PLANTED" in os.environ, "needs a planted one")
class Control(unittest.TestCase):
    def seen_with(self, mistake, case, name):
        before = signalbox.BINARY, signalbox.DEADLINE_S
        signalbox.BINARY = os.environ["SIGNALBOX_PLANTED"]
        signalbox.DEADLINE_S = 5
        os.environ["PLANTED"] = mistake
        try:
            result = unittest.TestResult()
            case(name).run(result)
        finally:
            signalbox.BINARY, signalbox.DEADLINE_S = before
            del os.environ["PLANTED"]
        failures = [text for _, text in result.failures]
        self.assertEqual((len(failures), result.errors), (1, []))
        return failures[0]

    def test_a_server_that_tells_twice(self):
        self.assertIn("again?", self.seen_with(
            "hire.tells_twice", Killed,
            "test_before_and_after_the_turn_that_has_it"))

    def test_a_server_that_forgets_what_it_was_about_to_tell(self):
        self.assertIn("the user is told after all", self.seen_with(
            "hire.forgets_notes", Killed,
            "test_between_its_end_and_the_note"))

    def test_a_server_that_tells_anybody(self):
        self.assertIn("mine?", self.seen_with(
            "hire.anybodys_notes", Isolation,
            "test_nobody_else_s_turn_has_it"))

    def test_a_server_that_tells_the_next_agent(self):
        self.assertIn("found it", self.seen_with(
            "walk.first_agents_notes", Isolation,
            "test_nor_has_the_agent_that_a_turn_is_given_to"))
