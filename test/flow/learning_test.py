"""What is said of decisions, what is learnt from it, and what admins may do
with that, as docs/protocol.md promises it."""
import json
import unittest

from client import NOT_ALLOWED, REFUSED, USAGE, Client
from signalbox import Server

AGENTS = [
    {"id": "engineer", "url": "echo:", "visibility": "public",
     "description": "Builds and repairs software, finds bugs in programs"},
    {"id": "writer", "url": "echo:", "visibility": "public",
     "description": "Writes articles, letters and marketing text"},
    {"id": "echo", "url": "echo:", "visibility": "public"},
]
CODE = "find the bug in this program, it crashes with a segmentation fault"
LETTER = "write a letter to the marketing people about our articles"
NO_SUCH = "dec_01jabcdefghjkmnpqrstvwxyz0"
# Windows are over at once, no one but us asks for a run, and the nearest agent
# gets it.
QUICK = {"learning": {"followUpMs": 0, "everyMs": 0},
         "routing": {"threshold": 0}}


class Shared(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(agents=AGENTS, config=QUICK)
        cls.anna = cls.server.user("anna", org="acme")
        cls.bob = cls.server.user("bob", org="acme")
        cls.n = 0

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def setUp(self):
        """What another test has taught is forgotten."""
        self.good(self.server.call("POST", "/api/learning/reset",
                                   {"all": True}), 204)

    def good(self, response, status=200):
        self.assertEqual(response.status, status, response)
        return response.json() if response.body else None

    def refused(self, response, status, code, words=""):
        self.assertEqual(response.status, status, response)
        error = response.json()["error"]
        self.assertEqual(error["code"], code, response)
        self.assertIn(words, error["message"])
        return error

    def ask(self, text, **fields):
        """The answer to anna, in a conversation of its own."""
        type(self).n += 1
        return self.good(self.server.call("POST", "/api/messages", {
            "text": text, "conversation_id": f"c-{self.n}", **fields},
            token=self.anna))

    def say(self, what, decision, body, token=None):
        return self.server.call("POST", f"/api/decisions/{decision}/{what}",
                                body, token=token or self.anna)

    def decision(self, decision_id):
        return self.good(self.server.call(
            "GET", f"/api/decisions/{decision_id}"))

    def learning(self):
        return self.good(self.server.call("GET", "/api/learning"))

    def run_job(self):
        return self.good(self.server.call("POST", "/api/learning/run"))

    def feed(self, kind):
        items = self.good(self.server.call("GET", "/api/feed?last=500"))
        return [e for e in items["items"] if e["type"] == kind]


class Words(Shared):
    def test_an_override_marks_corrects_and_gives_the_conversation(self):
        answer = self.ask(CODE)
        decision = answer["decision"]["id"]
        self.assertEqual(answer["agent"], "engineer")
        got = self.good(self.say("override", decision, {
            "agent": "Writer", "comment": "it is about prose"}))
        self.assertEqual(got, {
            "decision_id": decision, "agent": "engineer",
            "verdict": "negative", "overridden_to": "writer",
            "conversation_id": answer["conversation_id"], "switched": True,
            "recorded": True})
        self.assertEqual(self.decision(decision)["verdict"], "negative")
        told, = [e for e in self.feed("decision.overridden")
                 if e["data"]["decision_id"] == decision]
        self.assertEqual(told["data"], {
            "decision_id": decision, "from": "engineer", "to": "writer",
            "verdict": "negative", "by": "anna",
            "comment": "it is about prose"})
        self.assertEqual(
            [e["data"]["to"] for e in self.feed("conversation.switched")
             if e["data"]["overrides"] == decision], ["writer"])
        # Nothing is sent again; the next message goes there.
        body = {"text": "and now?",
                "conversation_id": answer["conversation_id"]}
        after = self.good(self.server.call("POST", "/api/messages", body,
                                           token=self.anna))
        self.assertEqual((after["agent"], after["decision"]["layer"]),
                         ("writer", "sticky"))
        # What was said is not said twice, and can be taken back.
        before = self.learning()["last_outcome"]
        again = self.good(self.say("override", decision, {"agent": "writer"}))
        self.assertFalse(again["recorded"] or again["switched"])
        self.assertEqual(self.learning()["last_outcome"], before)
        back = self.good(self.say("override", decision,
                                  {"agent": "engineer"}))
        self.assertEqual((back["verdict"], back["overridden_to"],
                          back["switched"]), ("positive", None, True))

    def test_a_correction_is_heeded_by_the_org_and_by_nobody_else(self):
        text = "compose a sonnet for the quarterly retrospective of finance"
        first = self.ask(text)
        other = "echo"
        self.good(self.say("override", first["decision"]["id"],
                           {"agent": other}))
        self.assertEqual(self.ask(text)["agent"], other)
        for token, expected in ((self.bob, other), (None, first["agent"])):
            body = {"text": text}
            got = self.good(self.server.call(
                "POST", "/api/route", body, token=token or self.server.token))
            self.assertEqual(got["agent"], expected, got)

    def test_feedback_says_right_or_wrong(self):
        decision = self.ask(CODE)["decision"]["id"]
        got = self.good(self.say("feedback", decision, {"verdict": "right"}))
        self.assertEqual((got["verdict"], got["recorded"]),
                         ("positive", True))
        got = self.good(self.say("feedback", decision, {"verdict": "right"}))
        self.assertFalse(got["recorded"])
        got = self.good(self.say("feedback", decision, {
            "verdict": "wrong", "agent": "writer"}))
        self.assertEqual((got["verdict"], got["overridden_to"],
                          got["switched"]), ("negative", "writer", False))
        self.refused(self.say("feedback", decision, {"verdict": "so-so"}),
                     400, "bad_request", "right")
        self.refused(self.say("feedback", decision, {
            "verdict": "wrong", "agent": "engineer"}), 400, "bad_request")
        self.refused(self.say("feedback", decision, {
            "verdict": "right", "agent": "writer"}), 400, "bad_request")

    def test_a_switch_is_an_override(self):
        answer = self.ask(CODE)
        body = {"text": "/writer take over",
                "conversation_id": answer["conversation_id"]}
        after = self.good(self.server.call("POST", "/api/messages", body,
                                           token=self.anna))
        self.assertEqual(after["agent"], "writer")
        got = self.decision(answer["decision"]["id"])
        self.assertEqual((got["verdict"], got["overridden_to"],
                          got["overridden_by"]),
                         ("negative", "writer", "anna"))

    def test_what_is_not_theirs_is_not_there(self):
        decision = self.ask(CODE)["decision"]["id"]
        body = {"agent": "writer"}
        theirs = self.say("override", decision, body, self.bob)
        none = self.say("override", NO_SUCH, body, self.bob)
        self.refused(theirs, 404, "not_found")
        self.assertEqual(theirs.body.replace(decision.encode(), b"ID"),
                         none.body.replace(NO_SUCH.encode(), b"ID"))
        self.refused(self.say("override", "x", body), 404, "not_found")
        self.good(self.say("override", decision, body, self.server.token))

    def test_bad_words_are_refused(self):
        decision = self.ask(CODE)["decision"]["id"]
        self.refused(self.say("override", decision, {}), 400, "bad_request",
                     "agent is missing")
        error = self.refused(self.say("override", decision,
                                      {"agent": "writr"}), 404,
                             "agent_not_found")
        self.assertEqual(error["details"]["nearest"], ["writer"])
        self.refused(self.say("override", decision, {"agent": "engineer"}),
                     400, "bad_request", "feedback")
        self.refused(self.say("override", decision, {
            "agent": "writer", "comment": "x" * 501}), 413, "too_large")
        self.refused(self.say("override", decision, {
            "agent": "writer", "verdict": "wrong"}), 400, "bad_request")


class Learning(Shared):
    def export(self):
        got = self.server.call("GET", "/api/learning/export")
        self.assertEqual(got.status, 200)
        return got.body

    def test_a_run_judges_and_a_rebuild_comes_to_the_same(self):
        self.run_job()
        short = self.ask("fix bug")["decision"]["id"]
        long = self.ask(CODE)["decision"]["id"]
        self.assertEqual(self.run_job(), {"judged": 2})
        self.assertEqual(self.run_job(), {"judged": 0})
        self.assertEqual(self.decision(short)["verdict"], "negative")
        self.assertEqual(self.decision(long)["verdict"], "neutral")
        kept = self.export()
        for line in kept.splitlines():
            json.loads(line)
        n = self.learning()["applied"]
        self.assertEqual(self.good(self.server.call(
            "POST", "/api/learning/rebuild")), {"outcomes": n})
        self.assertEqual(self.export(), kept)
        got = self.learning()
        self.assertEqual((got["not_written"], got["written_up_to"]),
                         (0, got["last_outcome"]))

    def test_an_agent_is_forgotten_when_asked_and_when_it_goes(self):
        self.good(self.server.call("POST", "/api/agents", {
            "name": "poet", "url": "echo:", "visibility": "public",
            "description": "Rhymes about the sea and sonnets"}), 201)
        for how in ("reset", "removal"):
            decision = self.ask("rhymes about the sea")["decision"]["id"]
            self.good(self.say("override", decision, {"agent": "poet"})
                      if self.decision(decision)["agent"] != "poet" else
                      self.say("feedback", decision, {"verdict": "right"}))
            self.assertIn(b"poet", self.export())
            if how == "reset":
                self.good(self.server.call("POST", "/api/learning/reset",
                                           {"agent": "poet"}), 204)
                self.assertEqual(self.feed("learning.reset")[-1]["agent"],
                                 "poet")
            else:
                self.good(self.server.call("DELETE", "/api/agents/poet"), 204)
            self.assertNotIn(b"poet", self.export())

    def test_nobody_forgets_all_by_mistake(self):
        decision = self.ask("rhymes about the sea")["decision"]["id"]
        self.good(self.say("feedback", decision, {"verdict": "right"}))
        kept = self.export()
        for body in (None, {}, {"agent": None}, {"all": False},
                     {"agent": "poet", "all": True}):
            self.refused(self.server.call("POST", "/api/learning/reset", body),
                         400, "bad_request")
        self.refused(self.server.call("POST", "/api/learning/reset",
                                      {"agent": "missing"}),
                     404, "agent_not_found")
        self.assertEqual(self.export(), kept)

    def test_it_is_for_admins(self):
        for method, path in (("GET", ""), ("GET", "/export"), ("POST", "/run"),
                             ("POST", "/reset"), ("POST", "/rebuild")):
            self.refused(self.server.call(method, "/api/learning" + path,
                                          token=self.anna), 403, "not_allowed")


class Poisoning(Shared):
    TEXT = "translate this contract from French into English"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.eve = cls.server.user("eve", org="evil")
        cls.dan = cls.server.user("dan", org="beta")

    def setUp(self):
        super().setUp()
        cards = ((self.server.token, "good1", "from French into English"),
                 (self.eve, "evil1", "and contracts"))
        for token, name, what in cards:
            self.good(self.server.call("POST", "/api/agents", {
                "name": name, "url": "echo:", "visibility": "public",
                "description": f"Translates texts {what}"}, token=token), 201)
        self.server.ready()

    def tearDown(self):
        for name in ("good1", "evil1"):
            self.server.call("DELETE", f"/api/agents/{name}")

    def send(self, token, text=TEXT):
        type(self).n += 1
        return self.good(self.server.call("POST", "/api/messages", {
            "text": text, "conversation_id": f"p-{self.n}"}, token=token))

    def seen(self, token, agent):
        got = self.good(self.server.call("POST", "/api/route", {
            "text": self.TEXT}, token=token))
        return got["agent"], next(c for c in got["candidates"]
                                  if c["agent"] == agent)

    def test_nobody_praises_an_agent_into_the_answers_of_another_org(self):
        before = self.seen(self.dan, "evil1")
        self.assertEqual(before[0], "good1")
        first = self.send(self.eve)["decision"]["id"]
        self.good(self.say("override", first, {"agent": "evil1"}, self.eve))
        for _ in range(15):
            got = self.send(self.eve)
            self.assertEqual(got["agent"], "evil1")
            self.good(self.say("feedback", got["decision"]["id"],
                               {"verdict": "right"}, self.eve))
        inside = self.seen(self.eve, "evil1")[1]
        self.assertGreater(inside["performance"], 0.6)
        self.assertEqual(self.seen(self.dan, "evil1"), before)

    def test_one_decision_moves_an_average_once(self):
        got = self.send(self.eve)
        self.assertEqual(got["agent"], "good1")
        decision = got["decision"]["id"]
        self.good(self.say("feedback", decision, {"verdict": "wrong"},
                           self.eve))
        once = self.seen(self.dan, "good1")
        for word in 10 * ("right", "wrong"):
            self.good(self.say("feedback", decision, {"verdict": word},
                               self.eve))
        self.assertEqual(self.seen(self.dan, "good1"), once)

    def test_what_comes_of_a_removed_agent_does_not_bring_it_back(self):
        left = self.send(self.eve)
        self.assertEqual(left["agent"], "good1")
        self.good(self.server.call("DELETE", "/api/agents/good1"), 204)
        self.good(self.say("feedback", left["decision"]["id"],
                           {"verdict": "wrong"}, self.eve))
        self.run_job()
        got = self.server.call("GET", "/api/learning/export")
        self.assertNotIn(b"good1", got.body)


class Commands(Client):
    def test_learning_and_words_from_the_command_line(self):
        server = self.server(agents=AGENTS, config=QUICK)
        answer = server.call("POST", "/api/messages", {"text": CODE}).json()
        decision = answer["decision"]["id"]
        self.assertEqual(self.good("learning", "run"),
                         "1 decision was judged.\n")
        self.assertIn("1  outcomes learned from", self.good("learning"))
        self.assertEqual(json.loads(self.good("learning", "--json"))["judged"],
                         1)
        kept = self.good("learning", "export")
        self.assertEqual(self.good("learning", "rebuild"),
                         "Learned data was rebuilt from 1 outcome.\n")
        self.assertEqual(self.good("learning", "export"), kept)
        self.assertEqual(self.run_it("learning", "reset")[0], USAGE)
        self.assertEqual(self.run_it("learning", "reset", "x", "--all")[0],
                         USAGE)
        self.assertIn("was removed", self.good("learning", "reset", "--all"))
        self.assertIn("should have gone to writer", self.good(
            "decisions", "override", decision, "writer"))
        self.assertIn("Already recorded", self.good(
            "decisions", "override", decision, "writer"))
        self.assertEqual(self.run_it("decisions", "feedback", decision,
                                     "maybe")[0], USAGE)
        self.assertIn("that was right", self.good(
            "decisions", "feedback", decision, "right", "--comment", "ok"))
        self.assertEqual(self.run_it("decisions", "override", NO_SUCH,
                                     "writer")[0], REFUSED)
        self.use(server, server.user("anna"))
        self.assertEqual(self.run_it("learning")[0], NOT_ALLOWED)


if __name__ == "__main__":
    unittest.main()
