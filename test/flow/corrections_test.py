"""Every decision can be corrected: by whatever layer it was made, a correction
moves the same text at once and similar texts by degrees; and what an admin
voids is as if it had never been said."""
import json
import subprocess
import unittest

from classifier import Classifier, sure
from client import USAGE, Client
from provider import Provider
from signalbox import BINARY, Server, clean_environment

AGENTS = [
    {"id": "engineer", "url": "echo:", "visibility": "public",
     "description": "Builds and repairs software, finds bugs in programs"},
    {"id": "writer", "url": "echo:", "visibility": "public",
     "description": "Writes articles, letters and marketing text"},
    {"id": "gardener", "url": "echo:", "visibility": "public",
     "description": "Plants trees and cares for lawns"},
    {"id": "main", "url": "echo:", "visibility": "public"},
]
CODE = "find the bug in this program, it crashes with a segmentation fault"
QUICK = {"learning": {"followUpMs": 0, "everyMs": 0}}


class Verdicts(unittest.TestCase):
    def begin(self, **config):
        server = Server(config={**QUICK, "agents": {"list": AGENTS}, **config})
        self.server = server.__enter__()
        self.addCleanup(server.__exit__, None)
        self.anna = self.server.user("anna", org="acme")
        self.bob = self.server.user("bob", org="acme")
        self.dan = self.server.user("dan", org="beta")

    def good(self, response, status=200):
        self.assertEqual(response.status, status, response)
        return response.json() if response.body else None

    def ask(self, text, token=None, **fields):
        return self.good(self.server.call(
            "POST", "/api/messages", {"text": text, **fields},
            token=token or self.anna))

    def route(self, text, token=None):
        r = self.server.call("POST", "/api/route", {"text": text},
                             token=token or self.anna)
        return r.json() if r.status == 200 else r.json()["error"]

    def override(self, answer, agent, token=None):
        return self.good(self.server.call(
            "POST", f"/api/decisions/{answer['decision']['id']}/override",
            {"agent": agent}, token=token or self.anna))

    def export(self):
        got = self.server.call("GET", "/api/learning/export")
        self.assertEqual(got.status, 200)
        return got.body

    def examples(self):
        return self.good(self.server.call("GET", "/api/learning"))["examples"]

    def learned(self, text, agent):
        """What corrections of similar texts say of the agent."""
        said = self.ask(text)
        whole = self.good(self.server.call(
            "GET", "/api/decisions/" + said["decision"]["id"]))
        return next(c["learned"] for c in whole["candidates"]
                    if c["agent"] == agent)

    def check_taught(self, said, layer, text, similar):
        """One correction to the gardener teaches the router."""
        self.assertEqual(said["decision"]["layer"], layer)
        before = self.examples()
        answer = self.override(said, "gardener")
        self.assertTrue(answer["recorded"])
        self.assertNotIn("note", answer)
        self.assertEqual(self.examples(), before + 1, layer)
        got = self.route(text)
        self.assertEqual((got["agent"], got["layer"], got["example"]),
                         ("gardener", "semantic", True), layer)
        self.assertEqual(got["reason"],
                         "a correction says that this very text is for it")
        self.assertEqual(self.route(text.upper() + "  ")["agent"], "gardener")
        self.assertGreater(self.learned(similar, "gardener"), 0.1, layer)
        # It is the org's, and of no other.
        self.assertEqual(self.route(text, self.bob)["agent"], "gardener")
        self.assertNotEqual(self.route(text, self.dan).get("agent"),
                            "gardener")

    def test_corrections_of_every_layer_teach(self):
        with Classifier() as classifier:
            # It is asked about one text alone.
            classifier.answer = lambda q: sure(
                "writer", 0.95 if "horoscope" in str(q) else 0.1)
            self.begin(
                agents={"list": AGENTS, "default": "main"},
                bindings=[{"agentId": "writer",
                           "match": {"channel": "telegram"}}],
                routing={"threshold": 0.3, "intentClassifier": {
                    "enabled": True, "endpoint": classifier.url,
                    "model": "small", "timeoutMs": 30000}})
            self.check_taught(
                self.ask("repair the wooden fence", executor={
                    "name": "engineer"}),
                "explicit", "repair the wooden fence",
                "repair the old wooden fence")
            self.check_taught(
                self.ask("/writer polish the silver spoons"),
                "prefix", "polish the silver spoons", "polish the silver forks")
            self.ask("/engineer begin", conversation_id="c-1")
            self.check_taught(
                self.ask("count the museum tickets", conversation_id="c-1"),
                "sticky", "count the museum tickets",
                "count the sold museum tickets")
            self.check_taught(
                self.ask("order seven paper lanterns",
                         source={"channel": "telegram"}),
                "binding", "order seven paper lanterns", "order some paper lanterns")
            self.check_taught(
                self.ask("read my horoscope aloud"), "intent",
                "read my horoscope aloud", "read my monthly horoscope aloud")
            self.check_taught(self.ask(CODE), "semantic", CODE,
                              CODE.replace("find", "show me"))
            self.check_taught(
                self.ask("zebra quilt marmalade"), "default",
                "zebra quilt marmalade", "zebra quilt marmalade jars")

    def test_a_text_is_read_for_a_verdict_as_it_is_for_routing(self):
        """The example lies where the next such message will: spelling is
        corrected, and the part of a paste that asks counts besides it."""
        self.begin(routing={"threshold": 0})
        paste = "\n".join(f"{n:02} GET /index.html 200 {n * 37} bytes"
                          for n in range(20))
        for text in ("repiar the sofware and find bgus in the porgram",
                     f"{paste}\n\nCan you plant a tree in the yard, please?"):
            with self.subTest(text=text):
                said = self.ask(text, executor={"name": "writer"})
                self.assertNotIn("note", self.override(said, "main"))
                self.assertGreater(self.learned(text, "main"), 0.99)

    def test_another_text_is_not_moved_and_a_later_word_counts(self):
        """The control: by a hash that is ignored all texts would move."""
        self.begin(routing={"threshold": 0})
        said = self.ask(CODE)
        self.override(said, "gardener")
        got = self.route("write a letter to the marketing people")
        self.assertEqual((got["agent"], got["example"]), ("writer", False))
        again = self.ask(CODE)
        self.assertEqual(again["agent"], "gardener")
        self.override(again, "writer")
        self.assertEqual(self.route(CODE)["agent"], "writer")

    def test_a_taught_agent_that_is_not_seen_has_no_effect(self):
        self.begin(routing={"threshold": 0})
        self.good(self.server.call("POST", "/api/agents", {
            "name": "diary", "url": "echo:", "visibility": "private",
            "description": "Keeps a diary"}, token=self.anna), 201)
        self.override(self.ask(CODE), "diary")
        self.assertEqual(self.route(CODE)["agent"], "diary")
        got = self.route(CODE, self.bob)
        self.assertEqual((got["agent"], got["example"]), ("engineer", False))
        self.assertNotIn("diary", json.dumps(got))

    def test_a_verdict_is_recorded_where_nothing_can_be_embedded(self):
        with Provider() as provider:
            provider.mode = "broken"
            self.begin(embed={"kind": "http", "http": {
                "url": provider.url, "model": "tiny"}})
            said = self.ask(CODE, executor={"name": "writer"})
            answer = self.override(said, "engineer")
            self.assertTrue(answer["recorded"])
            self.assertIn("this exact text", answer["note"])
            self.assertEqual(self.route(CODE)["agent"], "engineer")

    def test_a_refused_text_without_a_vector_is_recorded_with_a_note(self):
        self.begin()
        text = "asdkjhqwe zxcmnb qpwoei"
        got = self.server.call("POST", "/api/messages", {"text": text},
                               token=self.anna)
        self.assertEqual(got.status, 422, got)
        answer = self.override({"decision": {
            "id": got.json()["error"]["details"]["decision_id"]}}, "writer")
        self.assertEqual(
            {k: answer[k] for k in ("agent", "conversation_id", "switched",
                                    "recorded")},
            {"agent": None, "conversation_id": None, "switched": False,
             "recorded": True})
        self.assertIn("the model knows nothing in this text",
                      answer["note"])
        self.assertEqual(self.route(text)["agent"], "writer")

    def test_voiding_restores_the_state_byte_for_byte(self):
        self.begin(routing={"threshold": 0})
        self.override(self.ask(CODE), "gardener")
        before = self.export()
        letter = self.ask("write a letter to the people", token=self.bob)
        self.override(letter, "engineer", token=self.bob)
        self.override(self.ask("plant a tree", self.bob, executor={
            "name": "writer"}), "main", token=self.bob)
        after = self.export()
        self.assertNotEqual(after, before)  # the control
        rebuilt = self.good(self.server.call("POST", "/api/learning/rebuild"))
        self.assertEqual((self.export(), rebuilt), (after, {"outcomes": 3}))
        got = self.good(self.server.call("POST", "/api/learning/void",
                                         {"user": "bob"}))
        self.assertEqual(got, {"voided": 2, "outcomes": 1})
        self.assertEqual(self.export(), before)
        self.assertEqual(self.route("write a letter to the people")["agent"],
                         "writer")
        feed = self.good(self.server.call("GET", "/api/feed?last=50"))
        told = [e for e in feed["items"] if e["type"] == "learning.voided"]
        self.assertEqual([e["data"] for e in told], [{"of": "user:bob"}])
        # It stays so after every fold.
        self.good(self.server.call("POST", "/api/learning/rebuild"))
        self.assertEqual(self.export(), before)
        # What bob says from then on counts.
        self.override(self.ask("plant a tree", self.bob, executor={
            "name": "writer"}), "main", token=self.bob)
        self.assertEqual(self.route("plant a tree")["agent"], "main")

    def test_what_was_voided_can_be_said_again(self):
        self.begin(routing={"threshold": 0})
        said = self.ask("write a letter to the people")
        self.assertTrue(self.override(said, "engineer")["recorded"])
        self.assertFalse(self.override(said, "engineer")["recorded"])
        self.good(self.server.call("POST", "/api/learning/void",
                                   {"user": "anna"}))
        self.assertEqual(self.route("write a letter to the people")["agent"],
                         "writer")
        self.assertTrue(self.override(said, "engineer")["recorded"])
        self.assertEqual(self.route("write a letter to the people")["agent"],
                         "engineer")
        # Once again it is known.
        self.assertFalse(self.override(said, "engineer")["recorded"])

    def test_feedback_after_a_void_is_recorded_once(self):
        self.begin(routing={"threshold": 0})
        said = self.ask("write a letter to the people")

        def right():
            return self.good(self.server.call(
                "POST", f"/api/decisions/{said['decision']['id']}/feedback",
                {"verdict": "right"}, token=self.anna))["recorded"]

        self.assertEqual((right(), right()), (True, False))
        self.good(self.server.call("POST", "/api/learning/void",
                                   {"user": "anna"}))
        self.assertEqual((right(), right()), (True, False))

    def test_an_owner_is_voided_with_their_puppets(self):
        self.begin(routing={"threshold": 0})
        eve = self.server.user("eve", org="evil")
        self.good(self.server.call("POST", "/api/agents", {
            "name": "evil1", "url": "echo:", "visibility": "public",
            "description": "Everything"}, token=eve), 201)
        before = self.export()
        self.override(self.ask(CODE, self.dan), "evil1", token=self.dan)
        self.assertEqual(self.route(CODE, self.dan)["agent"], "evil1")
        self.good(self.server.call("POST", "/api/learning/void",
                                   {"owner": "eve"}))
        self.assertEqual(self.export(), before)
        self.assertEqual(self.route(CODE, self.dan)["agent"], "engineer")

    def test_a_strangers_card_that_says_nothing_gets_nothing(self):
        self.begin()
        eve = self.server.user("eve", org="evil")
        for n in (4, 8, 104):
            self.good(self.server.call("POST", "/api/agents", {
                "name": f"dashes{n}", "url": "echo:", "visibility": "public",
                "description": "-" * n}, token=eve), 201)
        for text in ("can my landlord evict me", "hello",
                     "who won the world cup", "what is the weather like"):
            got = self.route(text)
            self.assertNotIn("dashes", str(got.get("agent")), got)

    def test_once_strangers_had_their_share_the_refusal_says_so(self):
        self.begin(routing={"unsure": "ask"})
        eve = self.server.user("eve", org="evil")
        self.good(self.server.call("POST", "/api/agents", {
            "name": "cobbler", "url": "echo:", "visibility": "public",
            "description": "Mends leather shoes and boots"}, token=eve), 201)
        self.assertEqual(self.ask("mend my leather boots")["agent"], "cobbler")
        got = self.server.call("POST", "/api/messages", {
            "text": "mend my leather shoes"}, token=self.anna)
        self.assertEqual(got.status, 422, got)
        self.assertIn("agents of other orgs had their share",
                      got.json()["error"]["message"])

    def test_voiding_is_for_admins_and_says_whose(self):
        self.begin()
        got = self.server.call("POST", "/api/learning/void", {"user": "bob"},
                               token=self.anna)
        self.assertEqual(got.status, 403, got)
        for body in (None, {}, {"user": "a", "owner": "b"}, {"user": ""},
                     {"user": "x" * 129}):
            got = self.server.call("POST", "/api/learning/void", body)
            self.assertIn(got.status, (400, 413), got)
        for body in ({"user": "not a user name!!"}, {"owner": "-bob"}):
            got = self.server.call("POST", "/api/learning/void", body)
            self.assertEqual(got.status, 400, got)
            error = got.json()["error"]
            self.assertEqual(error["code"], "bad_request")
            self.assertIn("is not the name of a user", error["message"])

    def test_a_void_says_how_many_verdicts_it_covers(self):
        self.begin(routing={"threshold": 0})
        self.override(self.ask(CODE), "gardener")

        def void(**whose):
            return self.good(self.server.call("POST", "/api/learning/void",
                                              whose))

        def told():
            feed = self.good(self.server.call("GET", "/api/feed?last=50"))
            return sum(e["type"] == "learning.voided" for e in feed["items"])

        # A misspelt name is noticed, and changes nothing.
        self.assertEqual(void(user="anma"), {"voided": 0, "outcomes": 1})
        self.assertEqual((self.examples(), told()), (1, 0))
        self.assertEqual(void(user="Anna"), {"voided": 1, "outcomes": 0})
        self.assertEqual((self.examples(), told()), (0, 1))
        self.assertEqual(void(user="anna"), {"voided": 0, "outcomes": 0})

    def test_an_agent_that_people_rated_well_is_trusted(self):
        self.begin(routing={"threshold": 0})
        eve = self.server.user("eve", org="evil")
        self.good(self.server.call("POST", "/api/agents", {
            "name": "stranger", "url": "echo:", "visibility": "public",
            "description": "Mends shoes and leather"}, token=eve), 201)

        def trusted(token):
            said = self.ask("mend my leather shoes", token)
            whole = self.good(self.server.call(
                "GET", "/api/decisions/" + said["decision"]["id"]))
            return said, next(c["trusted"] for c in whole["candidates"]
                              if c["agent"] == "stranger")

        said, before = trusted(self.anna)
        self.assertEqual((said["agent"], before), ("stranger", False))
        self.good(self.server.call(
            "POST", f"/api/decisions/{said['decision']['id']}/feedback",
            {"verdict": "right"}, token=self.anna))
        self.assertTrue(trusted(self.bob)[1])
        self.assertFalse(trusted(self.dan)[1])
        self.assertTrue(trusted(eve)[1])  # it is eve's own


    def put_strangers(self):
        """Two agents of someone from outside, one of them with keywords."""
        eve = self.server.user("eve", org="evil")
        for name, description, keywords in (
                ("cobbler", "Mends shoes and leather", ["the", "leather"]),
                ("tanner", "Tans hides and dyes them", [])):
            self.good(self.server.call("POST", "/api/agents", {
                "name": name, "url": "echo:", "visibility": "public",
                "description": description,
                "routing": {"keywords": keywords}}, token=eve), 201)
        self.server.ready()

    def cobbler(self, token, text="mend the leather of my shoes"):
        """What its keyword was worth, and what the record has of it."""
        said = self.ask(text, token)
        whole = self.good(self.server.call(
            "GET", "/api/decisions/" + said["decision"]["id"]))
        return next((c["keyword"], c["matched_keyword"], c["half_keyword"],
                     c["trusted"]) for c in whole["candidates"]
                    if c["agent"] == "cobbler")

    def check_replayed(self):
        done = subprocess.run(
            [BINARY, "replay", "--json"], text=True, capture_output=True,
            timeout=60, check=False, env={
                **clean_environment(), "SIGNALBOX_URL": self.server.url,
                "SIGNALBOX_TOKEN": self.server.token})
        self.assertEqual(done.returncode, 0, done)
        sums = json.loads(done.stdout.splitlines()[-1])
        self.assertGreater(sums["replayed"], 0)
        self.assertEqual(sums["same"], sums["replayed"], sums)

    def test_the_keyword_of_a_stranger_counts_by_who_knows_its_creator(self):
        self.begin(routing={"threshold": 0})
        self.put_strangers()
        self.assertEqual(self.cobbler(self.dan),
                         (0.5, "leather", True, False))
        # Another agent of the same creator does well for the org.
        said = self.ask("dye a hide", executor={"name": "tanner"})
        self.good(self.server.call(
            "POST", f"/api/decisions/{said['decision']['id']}/feedback",
            {"verdict": "right"}, token=self.anna))
        self.assertEqual(self.cobbler(self.bob),
                         (1, "leather", False, False))
        # Strangers have had their share of the org's messages.
        for token in self.bob, self.dan:
            self.assertEqual(self.cobbler(token), (0, None, False, False))
        # Its other keyword tells nothing.
        for i, text in enumerate(("mend the shoes", "plant the trees")):
            self.assertEqual(
                self.cobbler(self.server.user(f"u{i}"), text),
                (0, None, False, False), text)
        self.check_replayed()

    def test_where_all_are_trusted_keywords_count_whole(self):
        self.begin(routing={"threshold": 0, "trust": "all"})
        self.put_strangers()
        self.assertEqual(self.cobbler(self.dan), (1, "the", False, True))
        self.assertEqual(self.cobbler(self.dan, "plant the trees"),
                         (1, "the", False, True))
        self.check_replayed()


class Commands(Client):
    def test_voiding_from_the_command_line(self):
        server = self.server(agents=AGENTS, config={
            **QUICK, "routing": {"threshold": 0}})
        answer = server.call("POST", "/api/messages", {"text": CODE}).json()
        self.good("decisions", "override", answer["decision"]["id"], "writer")
        self.assertEqual(
            self.good("learning", "void", "--user", "zoe"),
            "zoe gave no verdicts. Nothing changed.\n")
        self.assertEqual(json.loads(self.good(
            "learning", "void", "--owner", "zoe", "--json")),
            {"voided": 0, "outcomes": 1})
        self.assertIn("is not the name of a user",
                      self.bad(USAGE, "learning", "void", "--user", "no!"))
        self.assertIn("give either --user or --owner",
                      self.bad(USAGE, "learning", "void"))
        self.assertIn("a correction says", self.good("route", CODE))
        self.assertEqual(
            self.good("learning", "void", "--user", "admin"),
            "1 verdict of admin was voided, and learned data was rebuilt "
            "without it.\n")
        self.assertNotIn("a correction says", self.good("route", CODE))


if __name__ == "__main__":
    unittest.main()
