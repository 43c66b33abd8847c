"""The rules as a graph, as docs/protocol.md promises it: what of it is so for a
task, for a reference, and for which caller."""
import json
import os
import unittest

from client import Client
from signalbox import eventually

HERE = os.path.dirname(os.path.abspath(__file__))
EM = os.path.join(HERE, "..", "..", "examples", "em", "routing_rules.json")
AGENTS = [{"id": name, "url": "echo:"} for name in
          ("Jay", "Z", "Rick", "Leroy")]

SECRET = {
    "agents": {"Rick": {}, "secret": {}, "other": {}},
    "safety_gates": [{"rule": "secret-is-up", "agent": "secret",
                      "match": {"type": ["PUBLISH"]},
                      "states": ["IDLE", "ACTIVE"]}],
    "dependencies": [
        {"rule": "secret-said", "match": {"type": "SEND"},
         "after": [{"type": "SUBMISSION", "from": "secret"}]},
        {"rule": "wide", "match": {"type": "WIDE", "to": ["Rick", "other"]},
         "after": [{"type": "SUBMISSION", "from": "secret"}]},
        {"rule": "secret-soon", "match": {"type": "SOON"}, "hold_for": "1s",
         "on_expiry": "escalate",
         "after": [{"type": "SUBMISSION", "from": "secret"}]},
        {"rule": "other-said", "match": {"type": "ELSE"},
         "after": [{"type": "SUBMISSION", "from": "other"}]}],
}


class Graph(Client):
    def em(self, token=None, hidden=None):
        """On the data of the one before, where its token is given."""
        agents = [{**a, "visibility": "private"} if a["id"] == hidden else a
                  for a in AGENTS]
        return self.server(agents=agents, config={"rules": EM}, token=token,
                           data=os.path.join(self.home, "data"))

    def graph(self, server, query="", status=200, **more):
        got = server.call("GET", "/api/gate/graph" + query, **more)
        self.assertEqual(got.status, status, got)
        return got.json()

    def envelope(self, server, kind, sender, to, reference="S-1", **more):
        got = server.call("POST", "/api/envelopes", {
            "from": sender, "to": to, "type": kind, "reference": reference,
            "payload": {}}, **more)
        self.assertEqual(got.status, 200, got)
        return got.json()

    def edges(self, graph, rule):
        return [e for e in graph["edges"] if e["rule"] == rule]

    def test_of_themselves(self):
        graph = self.graph(self.em())
        self.assertTrue(graph["is_whole"])
        self.assertIsNone(graph["task"])
        first, second = self.edges(graph, "jay-submitted-and-z-approved")
        self.assertEqual((first["from"], first["to"], first["type"]),
                         (["Jay"], ["Rick"], ["SUBMISSION_REQUEST"]))
        self.assertEqual(first["words"], "SUBMISSION from Jay")
        self.assertEqual(second["words"], "RESULT from Z that approves")
        self.assertEqual(second["approved"], True)
        self.assertEqual(second["within_ms"], 7 * 86400000)
        self.assertEqual(second["hold_ms"], 86400000)
        self.assertIsNone(first["state"])
        gate, = self.edges(graph, "no-submissions-without-Z")
        self.assertEqual((gate["kind"], gate["states"], gate["state"]),
                         ("safety_gate", ["ERROR", "DEAD"], "met"))
        self.assertEqual({n["agent"] for n in graph["nodes"]},
                         {"Jay", "Z", "Rick"})
        self.assertEqual({n["state"] for n in graph["nodes"]}, {"IDLE"})

    def test_what_blocks_a_task(self):
        server = self.em()
        held = self.envelope(server, "SUBMISSION_REQUEST", "Leroy", "Rick")
        graph = self.graph(server, "?task_id=" + held["task_id"])
        self.assertEqual(graph["reference"], "S-1")
        self.assertEqual(graph["task"]["status"], "held")
        self.assertEqual(graph["task"]["from"], "Leroy")
        self.assertEqual([e["words"] for e in graph["edges"]
                          if e["is_blocking"]],
                         ["SUBMISSION from Jay", "RESULT from Z that approves"])
        self.assertIn("Leroy", {n["agent"] for n in graph["nodes"]})
        self.assertEqual(graph["history"], [])
        # It is told of others, and one of the two has happened; an answer
        # that does not approve is none.
        asked = self.envelope(server, "NOTE", "Jay", "Z")
        eventually(lambda: server.call(
            "GET", "/api/tasks/" + asked["task_id"]).json()["status"] ==
            "completed", "Z has answered")
        graph = self.graph(server, "?task_id=" + held["task_id"])
        first, second = self.edges(graph, "jay-submitted-and-z-approved")
        self.assertEqual((first["is_blocking"], second["is_blocking"]),
                         (True, True))
        self.assertIn(("RESULT", asked["task_id"]), [
            (v["type"], v["task_id"]) for v in graph["history"]])
        server.stop()
        again = self.graph(self.em(token=server.token),
                           "?task_id=" + held["task_id"])
        self.assertEqual([v["task_id"] for v in again["history"]],
                         [v["task_id"] for v in graph["history"]])

    def test_what_has_happened_for_a_reference(self):
        server = self.em()
        sent = self.envelope(server, "LEAD", "Leroy", "Jay", "L-7")
        graph = self.graph(server, "?reference=L-7")
        self.assertEqual(graph["reference"], "L-7")
        self.assertEqual(graph["history"][0]["task_id"], sent["task_id"])
        first, _ = self.edges(graph, "jay-submitted-and-z-approved")
        self.assertEqual((first["state"], first["is_blocking"]),
                         ("unmet", False))
        self.assertEqual(self.graph(server, "?reference=L-8")["history"], [])

    def test_what_went_is_blocked_by_nothing(self):
        server = self.em()
        sent = self.envelope(server, "NOTE", "Jay", "Rick")
        eventually(lambda: server.call(
            "GET", "/api/tasks/" + sent["task_id"]).json()["status"] ==
            "completed", "it is done")
        graph = self.graph(server, "?task_id=" + sent["task_id"])
        self.assertFalse([e for e in graph["edges"] if e["is_blocking"]])

    def test_only_of_agents_that_one_may_see(self):
        server = self.em()
        bob = server.user("bob")
        held = self.envelope(server, "SUBMISSION_REQUEST", "Leroy", "Rick")
        graph = self.graph(server, token=bob)
        self.assertTrue(graph["is_whole"])  # the configuration's are public
        self.assertEqual(graph["nodes"][0]["queue"], 0)
        self.graph(server, "?task_id=" + held["task_id"], 404, token=bob)
        server.stop()
        server = self.em(token=server.token, hidden="Z")
        graph = self.graph(server, token=bob)
        self.assertFalse(graph["is_whole"])
        self.assertNotIn("Z", {n["agent"] for n in graph["nodes"]})
        self.assertEqual([e["words"] for e in graph["edges"]],
                         ["SUBMISSION from Jay"])
        self.assertTrue(self.graph(server)["is_whole"])

    def test_what_holds_ones_own_is_told_whoever_it_names(self):
        """In the hold, the graph and what was answered alike: the rules are
        the server's, and name the agent that a message waits for."""
        rules = os.path.join(self.home, "rules.json")
        with open(rules, "w", encoding="utf-8") as f:
            json.dump(SECRET, f)
        agents = [{"id": "Rick", "url": "echo:"}] + [
            {"id": name, "url": "echo:", "visibility": "private"}
            for name in ("secret", "other")]
        server = self.server(agents=agents, config={"rules": rules})
        anna = server.user("anna")
        for kind, words in (("PUBLISH", "secret is IDLE"),
                            ("SEND", "SUBMISSION from secret")):
            held = self.envelope(server, kind, "anna", "Rick", token=anna)
            self.assertIn(words, held["reason"])
            one, = server.call("GET", "/api/holds?task_id=" + held["task_id"],
                               token=anna).json()["items"]
            self.assertEqual(one["reason"], held["reason"])
            graph = self.graph(server, "?task_id=" + held["task_id"],
                               token=anna)
            edge, = [e for e in graph["edges"] if e["is_blocking"]]
            self.assertEqual(edge["from"], ["secret"])
            self.assertEqual(
                [n for n in graph["nodes"] if n["agent"] == "secret"],
                [{"agent": "secret", "is_known": True, "state": "IDLE"}])
            # Conditions that do not hold it, and the other agents of its rule, are not told.
            self.assertFalse(graph["is_whole"])
            self.assertEqual(len(graph["edges"]), 1)
            self.assertNotIn("other", json.dumps(graph))
        held = self.envelope(server, "WIDE", "anna", "Rick", token=anna)
        graph = self.graph(server, "?task_id=" + held["task_id"], token=anna)
        self.assertEqual((graph["edges"], graph["is_whole"]), ([], False))
        # Nor does it change when a person is asked instead.
        held = self.envelope(server, "SOON", "anna", "Rick", token=anna)
        path = "/api/escalations?task_id=" + held["task_id"]
        eventually(lambda: server.call("GET", path, token=anna).json()[
            "items"], "a person is asked")
        one, = server.call("GET", path, token=anna).json()["items"]
        self.assertIn("SUBMISSION from secret", one["reason"])
        graph = self.graph(server, "?task_id=" + held["task_id"], token=anna)
        self.assertEqual([e["from"] for e in graph["edges"]], [["secret"]])
        # Without a message that waits there is none of them.
        self.assertNotIn("secret", json.dumps(self.graph(server, token=anna)))

    def test_refused(self):
        server = self.em()
        for bad, status in (("?task_id=x", 404),
                            ("?task_id=task_01m7h2gvrnbb2f0vjkyep5dzn3", 404),
                            ("?color=red", 400),
                            ("?task_id=x&reference=y", 400),
                            ("?reference=" + 201 * "r", 400)):
            self.graph(server, bad, status)
        self.graph(server, "?reference=" + 200 * "r")

    def test_without_rules_there_is_nothing(self):
        graph = self.graph(self.server(agents=AGENTS))
        self.assertEqual((graph["edges"], graph["nodes"], graph["is_whole"]),
                         ([], [], True))


if __name__ == "__main__":
    unittest.main()
