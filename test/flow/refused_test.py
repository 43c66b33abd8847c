"""Messages that no agent gets: the decision, the entry in the feed and the gap
that they leave, what they do not leave, and how they are corrected and sent on,
as docs/protocol.md promises it."""
import sqlite3
import unittest

from client import Client
from hub_peer import Hub
from hub_peer import Refused as HubRefused
from signalbox import Server, metric

AGENTS = [
    {"id": "devops", "url": "echo:", "visibility": "public",
     "description": "Runs servers, deployments and clusters in production"},
    {"id": "writer", "url": "echo:", "visibility": "public",
     "description": "Writes articles, letters and marketing text"},
    {"id": "lawyer", "url": "echo:", "visibility": "public",
     "description": "Reads contracts and answers questions of law"},
    {"id": "cook", "url": "echo:", "visibility": "public",
     "description": "Knows recipes and plans menus for the week"},
    {"id": "painter", "url": "echo:", "visibility": "public",
     "description": "Paints portraits of horses"},
]
PODS = "pods keep crashing in production"
# Of no score at all: every message without a name is refused.
STRICT = {"routing": {"threshold": 1},
          "learning": {"followUpMs": 0, "everyMs": 0}}
PER_HOUR = 100
KEPT = 1024
TABLES = ("task", "idempotency_key", "conversation", "reservation")


class Shared(unittest.TestCase):
    config = STRICT

    @classmethod
    def setUpClass(cls):
        cls.server = Server(agents=AGENTS, config=cls.config)
        cls.anna = cls.server.user("anna", org="acme")
        cls.bob = cls.server.user("bob", org="acme")

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def good(self, response, status=200):
        self.assertEqual(response.status, status, response)
        return response.json()

    def post(self, text, *headers, token=None, **fields):
        return self.server.call("POST", "/api/messages",
                                {"text": text, **fields}, *headers,
                                token=token or self.anna)

    def refused(self, response, status, code):
        self.assertEqual(response.status, status, response)
        error = response.json()["error"]
        self.assertEqual(error["code"], code, response)
        return error

    def refuse(self, text, *headers, **more):
        """The details of the refusal."""
        return self.refused(self.post(text, *headers, **more), 422,
                            "no_route")["details"]

    def say(self, what, decision, body, token=None):
        return self.server.call("POST", f"/api/decisions/{decision}/{what}",
                                body, token=token or self.anna)

    def decision(self, decision_id, token=None):
        return self.good(self.server.call(
            "GET", f"/api/decisions/{decision_id}",
            token=token or self.anna))

    def feed(self, kind="message.refused", token=None):
        items = self.good(self.server.call("GET", "/api/feed?last=500",
                                           token=token or self.server.token))
        return [e for e in items["items"] if e["type"] == kind]

    def gaps(self):
        return self.good(self.server.call("GET", "/api/analytics/gaps"))

    def n_rows(self):
        """How many rows there are of what a refused message must not leave."""
        with sqlite3.connect(f"file:{self.server.data}/signalbox.db?mode=ro",
                             uri=True) as db:
            return {t: db.execute(f"SELECT count(*) FROM {t}").fetchone()[0]
                    for t in TABLES}

    def tasks(self, agent):
        return [t for t in self.good(self.server.call(
            "GET", "/api/tasks?limit=100", token=self.anna))["items"]
            if t["agent"] == agent]


class Leaves(Shared):
    def test_a_decision_an_entry_and_a_gap_and_nothing_else(self):
        before = self.n_rows()
        details = self.refuse(PODS, conversation_id="c-1")
        d = self.decision(details["decision_id"])
        self.assertEqual((d["layer"], d["agent"], d["task_id"], d["text"]),
                         ("none", None, None, PODS))
        self.assertEqual((d["verdict"], d["band"], d["conversation_id"]),
                         ("open", "out_of_scope", "c-1"))
        self.assertEqual(details["band"], "out_of_scope")
        self.assertIsNone(details["unsure"])
        self.assertEqual([c["agent"] for c in details["candidates"]],
                         [c["agent"] for c in d["candidates"]])
        entry, = [e for e in self.feed()
                  if e["data"]["decision_id"] == d["id"]]
        self.assertEqual((entry["requester"], entry["task_id"],
                          entry["conversation_id"]), ("anna", None, "c-1"))
        self.assertEqual(entry["data"], {
            "decision_id": d["id"], "code": "no_route",
            "band": "out_of_scope", "nearest": d["candidates"][0]["agent"]})
        gap = self.gaps()["items"][0]
        self.assertGreaterEqual(gap["refused"], 1)
        self.assertEqual(gap["decisions"], gap["refused"])
        self.assertIn(PODS, gap["samples"])
        self.assertEqual(self.n_rows(), before)

    def test_it_is_listed_counted_and_seen_by_its_sender_alone(self):
        n = metric(self.server, "signalbox_no_route_total")
        mine = self.refuse("zzz 1")["decision_id"]
        items = self.good(self.server.call(
            "GET", "/api/decisions?layer=none", token=self.anna))["items"]
        self.assertIn(mine, [d["id"] for d in items])
        self.assertEqual({d["layer"] for d in items}, {"none"})
        self.assertEqual(metric(self.server, "signalbox_no_route_total"),
                         n + 1)
        self.assertIn('signalbox_decisions_total{layer="none"} ',
                      self.server.get("/metrics").body.decode())
        self.refused(self.server.call("GET", f"/api/decisions/{mine}",
                                      token=self.bob), 404, "not_found")
        self.assertEqual(self.feed(token=self.bob), [])
        summary, = self.good(self.server.call(
            "GET", "/api/analytics/summary"))["items"]
        self.assertGreaterEqual(summary["none"], 1)

    def test_an_unknown_name_leaves_one_too(self):
        error = self.refused(self.post("hi", executor={"name": "devop"}), 404,
                             "agent_not_found")
        self.assertEqual(error["details"]["nearest"][0], "devops")
        d = self.decision(error["details"]["decision_id"])
        self.assertEqual((d["layer"], d["executor"]), ("none", "devop"))
        self.assertIn(("agent_not_found", "devops"),
                      [(e["data"]["code"], e["data"]["nearest"])
                       for e in self.feed()])

    def test_a_delegation_to_an_unknown_name_leaves_one_too(self):
        error = self.refused(self.server.call(
            "POST", "/api/delegate", {"agentId": "devop", "task": "hi"},
            token=self.anna), 404, "agent_not_found")
        d = self.decision(error["details"]["decision_id"])
        self.assertEqual((d["layer"], d["executor"], d["requester"]),
                         ("none", "devop", "anna"))

    def test_the_same_key_is_routed_afresh(self):
        first = self.refuse("zzz 2", idempotency_key="k")["decision_id"]
        second = self.refuse("zzz 2", idempotency_key="k")["decision_id"]
        self.assertNotEqual(first, second)
        got = self.good(self.post("another body", idempotency_key="k",
                                  executor={"name": "devops"}))
        self.assertEqual(got["agent"], "devops")
        # The control: the key of a message that was delivered is taken.
        again = self.good(self.post("another body", idempotency_key="k",
                                    executor={"name": "devops"}))
        self.assertEqual(again["task_id"], got["task_id"])

    def test_asking_where_it_would_go_leaves_nothing(self):
        n = len(self.feed())
        error = self.refused(self.server.call(
            "POST", "/api/route", {"text": PODS}, token=self.anna), 422,
            "no_route")
        self.assertIsNone(error["details"]["decision_id"])
        self.assertEqual(len(self.feed()), n)

    def test_streams_and_the_hub_are_told_the_same(self):
        got = self.post("zzz 3", "Accept: text/event-stream")
        self.assertEqual(got.status, 422)
        ids = {got.json()["error"]["details"]["decision_id"]}
        with Hub(self.server, self.anna) as hub:
            with self.assertRaises(HubRefused) as caught:
                hub.call("message.send", text="zzz 4")
        details = caught.exception.error["data"]
        self.assertEqual(details["band"], "out_of_scope")
        ids.add(details["decision_id"])
        listed = self.good(self.server.call(
            "GET", "/api/decisions?layer=none", token=self.anna))["items"]
        self.assertTrue(ids <= {d["id"] for d in listed})


class Corrected(Shared):
    def test_an_override_marks_it_and_sends_nothing(self):
        decision = self.refuse(PODS)["decision_id"]
        n = len(self.tasks("devops"))
        got = self.good(self.say("override", decision, {"agent": "devops"}))
        self.assertEqual((got["agent"], got["overridden_to"],
                          got["recorded"], got["switched"]),
                         (None, "devops", True, False))
        self.assertNotIn("task_id", got)
        d = self.decision(decision)
        self.assertEqual((d["verdict"], d["overridden_to"], d["agent"]),
                         ("negative", "devops", None))
        told, = [e for e in self.feed("decision.overridden")
                 if e["data"]["decision_id"] == decision]
        self.assertEqual((told["agent"], told["task_id"]), ("devops", None))
        self.assertEqual(len(self.tasks("devops")), n)
        # It counts against no agent.
        self.assertNotIn("", [r["agent"] for r in self.good(self.server.call(
            "GET", "/api/analytics/agents"))["items"]])
        # The job leaves it alone.
        self.good(self.server.call("POST", "/api/learning/run"))
        self.assertEqual(self.decision(decision)["verdict"], "negative")

    def test_feedback_says_whether_refusing_it_was_right(self):
        decision = self.refuse("qwertz uiop")["decision_id"]
        got = self.good(self.say("feedback", decision, {"verdict": "right"}))
        self.assertEqual((got["verdict"], got["agent"]), ("positive", None))
        got = self.good(self.say("feedback", decision, {
            "verdict": "wrong", "agent": "writer"}))
        self.assertEqual(got["overridden_to"], "writer")
        self.refused(self.say("feedback", decision, {
            "verdict": "right", "agent": "writer"}), 400, "bad_request")
        self.refused(self.say("feedback", decision, {
            "verdict": "wrong", "send": True}), 400, "bad_request")

    def test_it_is_sent_on_once(self):
        decision = self.refuse(PODS + " again", conversation_id="c-9",
                               source={"channel": "web"})["decision_id"]
        n = len(self.tasks("devops"))
        wish = {"agent": "devops", "send": True}
        first = self.good(self.say("override", decision, wish))
        second = self.good(self.say("override", decision, wish))
        self.assertEqual((first["recorded"], second["recorded"]),
                         (True, False))
        self.assertEqual(first["task_id"], second["task_id"])
        self.assertEqual(len(self.tasks("devops")), n + 1)
        task = self.good(self.server.call(
            "GET", f"/api/tasks/{first['task_id']}", token=self.anna))
        self.assertEqual((task["agent"], task["conversation_id"],
                          task["requester"]), ("devops", "c-9", "anna"))
        done = self.good(self.server.call(
            "GET", f"/api/decisions?task_id={first['task_id']}",
            token=self.anna))["items"]
        self.assertEqual([(d["layer"], d["text"]) for d in done],
                         [("explicit", PODS + " again"),
                          ("none", PODS + " again")])
        self.assertEqual(self.decision(decision)["task_id"], first["task_id"])
        # To another agent neither: it was sent.
        other = self.good(self.say("override", decision,
                                   {"agent": "writer", "send": True}))
        self.assertEqual(
            (other["task_id"], other["overridden_to"], other["sent"]),
            (first["task_id"], "writer", False))
        self.assertEqual(len(self.tasks("writer")), 0)

    def test_only_its_sender_sends_it_on(self):
        decision = self.refuse("zzz 5")["decision_id"]
        wish = {"agent": "devops", "send": True}
        self.refused(self.say("override", decision, wish, token=self.bob),
                     404, "not_found")
        error = self.refused(self.say("override", decision, wish,
                                      token=self.server.token), 403,
                             "not_allowed")
        self.assertIn("only the user who sent the message", error["message"])
        self.assertIsNone(self.decision(decision)["overridden_to"])

    def test_what_is_not_whole_in_the_record_is_not_sent(self):
        wish = {"agent": "devops", "send": True}
        long = self.refuse("z" * (KEPT - 3))["decision_id"]
        error = self.refused(self.say("override", long, wish), 400,
                             "bad_request")
        self.assertIn("keeps only the start", error["message"])
        self.assertIsNone(self.decision(long)["overridden_to"])
        # The control: the longest that is certain to be whole.
        most = self.refuse("z" * (KEPT - 4))["decision_id"]
        self.assertTrue(self.good(self.say("override", most,
                                           wish))["task_id"])

    def test_what_was_delivered_is_not_sent_again(self):
        done = self.good(self.post("hi", executor={"name": "writer"}))
        error = self.refused(self.say(
            "override", done["decision"]["id"],
            {"agent": "devops", "send": True}), 400, "bad_request")
        self.assertIn("was delivered", error["message"])

    def test_where_sending_fails_the_word_stands(self):
        self.good(self.server.call("POST", "/api/agents", {
            "name": "away", "url": "ws-agent://away", "description": "never there",
            "visibility": "public"}), 201)
        decision = self.refuse("zzz 6")["decision_id"]
        got = self.say("override", decision, {"agent": "away", "send": True})
        self.assertIn(got.status, (409, 503), got)
        d = self.decision(decision)
        self.assertEqual((d["overridden_to"], d["task_id"]), ("away", None))
        # And it can still be sent to one that is there.
        self.assertTrue(self.good(self.say(
            "override", decision, {"agent": "cook", "send": True}))["task_id"])


class Ask(Shared):
    config = {**STRICT, "routing": {"threshold": "auto", "unsure": "ask"}}

    def test_an_unsure_message_is_refused_with_three_candidates(self):
        n_unsure = 0
        for text in ("hello there", "how are you today", "what time is it",
                     "who won the match"):
            details = self.refuse(text)
            is_unsure = details["band"] == "unsure"
            n_unsure += is_unsure
            self.assertEqual(details["unsure"], "ask" if is_unsure else None)
            self.assertEqual(len(details["candidates"]),
                             3 if is_unsure else len(AGENTS))
            d = self.decision(details["decision_id"])
            self.assertEqual((d["band"], d["rules"]["unsure"], d["unsure"]),
                             (details["band"], "ask", False))
        self.assertGreater(n_unsure, 0)


class WithoutDefault(Shared):
    config = {**STRICT, "routing": {"threshold": "auto", "unsure": "default"}}

    def test_the_policy_default_refuses_where_no_agent_is_the_default(self):
        said = [self.refuse(text)
                for text in ("hello there", "how are you today",
                             "what time is it", "who won the match")]
        self.assertEqual({d["unsure"] for d in said if d["band"] == "unsure"},
                         {"default"})


class Flood(Shared):
    def test_one_user_leaves_so_many_an_hour_and_others_theirs(self):
        with Server(agents=AGENTS, config=STRICT) as server:
            type(self).server, own = server, self.server
            try:
                anna, bob = server.user("anna"), server.user("bob")
                got = [self.refuse(f"zzz {i}", token=anna)["decision_id"]
                       for i in range(PER_HOUR + 5)]
                # An hour may have begun in between.
                self.assertGreaterEqual(sum(x is not None for x in got),
                                        PER_HOUR)
                self.assertEqual(
                    len(self.feed()), sum(x is not None for x in got))
                self.assertEqual(
                    metric(server, "signalbox_refusals_unrecorded_total"),
                    sum(x is None for x in got))
                self.assertIsNotNone(
                    self.refuse("zzz", token=bob)["decision_id"])
            finally:
                type(self).server = own


class Commands(Shared, Client):
    def setUp(self):
        Client.setUp(self)
        self.use(self.server, self.anna)

    def test_they_are_listed_shown_counted_and_sent_on(self):
        decision = self.refuse(PODS + ", please")["decision_id"]
        listed = self.lines("decisions", "--layer", "none")
        self.assertIn(decision, [d["id"] for d in listed])
        self.assertIn(" - ", self.good_text("decisions", "--layer", "none"))
        shown = self.good_text("decisions", decision)
        self.assertIn("no agent", shown)
        self.assertIn("none: the message was refused", shown)
        self.assertIn("REFUSED", self.good_text("decisions", "stats", "gaps"))
        stats = self.good_text("decisions", "stats")
        self.assertIn("none", stats)
        self.assertRegex(
            stats, r"Refused messages \([0-9]+\) have no row here\.")
        said = self.good_text("decisions", "override", decision, "devops",
                              "--send")
        task = self.decision(decision)["task_id"]
        self.assertEqual(said, "It went to no agent and should have gone to "
                               f"devops. The message was sent there: {task}.\n")
        again = self.good_text("decisions", "override", decision, "devops",
                               "--send")
        self.assertIn("Already recorded", again)
        self.assertIn(f"was sent before: {task}.", again)

    def test_replay_decides_them_as_they_were(self):
        self.refuse("zzz 7")
        self.post("zzz", executor={"name": "nope"})
        self.good(self.post("hi", executor={"name": "writer"}))
        got = self.lines("replay", "--limit", "1000")[-1]
        self.assertEqual((got["changed"], got["not_read"], got["not_known"]),
                         (0, 0, 0), got)
        self.assertEqual(got["same"], got["replayed"])
        # The control: with a lower threshold they go to agents.
        got = self.lines("replay", "--layer", "none", "--set",
                         "routing.threshold=0")[-1]
        self.assertGreater(got["changed"], 0)

    def good_text(self, *args):
        return Client.good(self, *args)

    def good(self, *args, **more):
        if args and isinstance(args[0], str):
            return Client.good(self, *args, **more)
        return Shared.good(self, *args, **more)


if __name__ == "__main__":
    unittest.main()
