"""A decision is one object, wherever it is told: in the answer to an envelope,
in the feed, and what is counted."""
import os
import unittest

from client import Client
from hub_peer import Hub
from signalbox import eventually

AGENTS = [{"id": "Z", "url": "echo:"}, {"id": "Rick", "url": "echo:"},
          {"id": "Leroy", "url": "echo:"}]
RULES = """{
  "agents": {"Z": {}, "Rick": {}, "Leroy": {}},
  "channels": {"#agent-feed": {"takes": ["decisions"], "file": {
    "path": "feed.jsonl"}}},
  "dependencies": [{"rule": "soon", "match": {"type": "SOON"}, "after": [
    {"type": "RESULT", "from": "Z"}], "hold_for": "1s",
    "on_expiry": "escalate"},
    {"rule": "z-first", "match": {"to": "Leroy"}, "after": [
    {"type": "RESULT", "from": "Z"}]}],
  "targets": {"routed_per_hour": 2},
  "escalations": [{"rule": "ask-first", "match": {"to": "Rick"}}]
}"""


class Told(Client):
    def setUp(self):
        super().setUp()
        rules = os.path.join(self.home, "routing_rules.json")
        with open(rules, "w", encoding="utf-8") as f:
            f.write(RULES)
        self.em = self.server(agents=AGENTS, config={"rules": rules})

    def post(self, path="/api/envelopes", **body):
        got = self.em.call("POST", path, body)
        self.assertEqual(got.status, 200, got)
        return got.json()

    def told(self, kind):
        return [e for e in self.em.call("GET", "/api/feed?limit=200").json()[
            "items"] if e["type"] == kind]

    def test_the_feed_has_what_was_answered(self):
        for kind, to, more in (
                ("gate.routed", "Z", {"message_id": "J-1"}),
                ("gate.held", "Leroy", {"reference": "R-1"}),
                ("gate.escalated", "Rick", {"priority": "HIGH"})):
            answer = self.post(to=to, type="REQUEST", **more)
            self.assertEqual(self.told(kind)[-1]["data"], answer)
            self.assertEqual(answer["type"], "REQUEST")
            self.assertRegex(answer["timestamp"], r":\d\dZ$")
        self.assertEqual(self.told("gate.held")[0]["data"]["waits_for"],
                         ["event:R-1:RESULT"])

    def gate(self, **more):
        got = self.em.call("GET", "/api/gate", **more)
        self.assertEqual(got.status, 200, got)
        return got.json()

    def test_each_is_told_how_much_of_theirs_waits(self):
        bob, carl = self.em.user("bob"), self.em.user("carl")
        for to, token in (("Leroy", bob), ("Leroy", None), ("Rick", None),
                          ("Rick", bob), ("Rick", bob)):
            more = {"token": token} if token else {}
            got = self.em.call("POST", "/api/envelopes", {
                "to": to, "type": "REQUEST", "reference": "R"}, **more)
            self.assertEqual(got.status, 200, got)
        for token, held, escalated in ((None, 2, 3), (bob, 1, 2), (carl, 0, 0)):
            more = {"token": token} if token else {}
            self.assertEqual(self.gate(**more)["now"],
                             {"held": held, "escalations_open": escalated})
            for path, n in (("/api/holds", held),
                            ("/api/escalations?status=open", escalated)):
                got = self.em.call("GET", path, **more).json()
                self.assertEqual(len(got["items"]), n)
        # What all of them did together is for who runs the server.
        self.assertIsNone(self.gate(token=carl)["figures"])
        self.assertIn("hold", self.gate()["figures"]["decisions_24h"])
        said = self.good("gate", "stats",
                         env={"SIGNALBOX_TOKEN": carl})
        self.assertRegex(said, r"0 +held now")
        self.assertNotIn("routed", said)

    def test_a_quiet_hour_misses_no_target(self):
        self.post(to="Z", type="NOTE")
        self.post(to="Leroy", type="NOTE", reference="R-2")
        eventually(lambda: self.gate()["figures"]["routed_per_hour"]["value"]
                   == 1, "it is counted")
        routed = self.gate()["figures"]["routed_per_hour"]
        self.assertEqual((routed["target"], routed["came"], routed["is_met"]),
                         (2, 2, False))  # one of two is held
        self.post(to="Z", type="NOTE", reference="R-3")
        eventually(lambda: self.gate()["figures"]["routed_per_hour"]["is_met"],
                   "as many went as should")
        self.assertEqual(self.gate()["figures"]["routed_per_hour"][
            "average_24h"], 0.1)

    def test_a_repeat_is_told_and_counted(self):
        first = self.post(to="Leroy", type="GO", reference="R", message_id="J")
        task = first["task_id"]
        msg = self.em.call("GET", "/api/tasks/" + task).json()["message_id"]
        again = self.post(to="Leroy", type="GO", reference="R", message_id="J")
        with Hub(self.em) as hub:
            third = hub.call("message.send", envelope={
                "to": "Leroy", "type": "GO", "reference": "R",
                "message_id": "J"})["routing"]
        for got in (again, third):
            self.assertEqual((got["routing_decision"], got["repeats"]),
                             ("DROP_SILENTLY", msg))
            self.assertEqual((got["logged"], got["posted_to_channel"]),
                             (True, "#agent-feed"))
        told = self.told("gate.dropped")
        self.assertEqual([e["data"] for e in told], [again, third])
        # It is no entry of the first's task, which goes on being held.
        self.assertEqual([e["task_id"] for e in told], [None, None])
        eventually(lambda: self.em.call("GET", "/api/gate").json()[
            "figures"]["decisions_24h"]["drop"] == 2, "both are counted")
        self.assertEqual(self.em.call("GET", "/api/tasks/" + task).json()[
            "status"], "held")

    def test_what_a_person_let_go_says_who_and_from_whom(self):
        one = self.post(to="Rick", type="LEAD", message_id="L-1")
        path = f"/api/escalations/{one['escalation_id']}/"
        self.post(path + "redirect", agent="Z")
        got = self.told("gate.released")[-1]["data"]
        self.assertEqual(
            (got["message_id"], got["original_to"], got["target"],
             got["escalation_id"]),
            ("L-1", "Rick", "Z", one["escalation_id"]))
        self.assertTrue(got["reason"].startswith("admin gave it to Z, "), got)

    def test_what_a_person_approved_says_who(self):
        two = self.post(to="Rick", type="LEAD")
        self.post(f"/api/escalations/{two['escalation_id']}/approve")
        got = self.told("gate.released")[-1]["data"]
        self.assertEqual((got["original_to"], got["target"],
                          got["escalation_id"]),
                         ("Rick", "Rick", two["escalation_id"]))
        self.assertTrue(got["reason"].startswith("admin approved it, "), got)

    def test_what_was_held_too_long_names_its_escalation(self):
        self.post(to="Z", type="SOON", reference="R-9")
        eventually(lambda: self.told("gate.escalated"), "a person is asked")
        asked = self.em.call("GET", "/api/escalations").json()["items"][0]
        self.assertEqual(self.told("gate.escalated")[0]["data"][
            "escalation_id"], asked["id"])


if __name__ == "__main__":
    unittest.main()
