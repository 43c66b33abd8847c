"""When an envelope says it was sent, wherever one is taken: POST /api/envelopes,
POST /api/gate, the hub, and the library. An old one is reported, and refused
only where rules or the configuration say so; one ahead is warned of."""
import importlib.util
import json
import os
import time
import unittest

from client import Client
from hub_peer import Hub, Refused
from signalbox import eventually

spec = importlib.util.spec_from_file_location("message_router", os.path.join(
    os.environ["SIGNALBOX_SOURCE"], "client/python/message_router.py"))
router = importlib.util.module_from_spec(spec)
spec.loader.exec_module(router)

AGENTS = [{"id": "Jay", "url": "echo:"}, {"id": "Z", "url": "echo:"}]


def moment(off_s):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + off_s))


# Seed 002's, verbatim.
SEED = """{
  "from": "Jay",
  "to": "Z",
  "type": "REQUEST",
  "priority": "NORMAL",
  "timestamp": "2025-02-15T09:00:00Z",
  "reference": "SUBM-C042-001",
  "payload": {
    "consultant_id": "C-042",
    "job_posting_id": "LI-9876",
    "vendor": "TrueBlue",
    "end_client": "Microsoft",
    "confidence_score": 8.2
  },
  "context": "Jay completed research, confidence >6.5, no staleness risk"
}"""


class Timestamps(Client):
    def house(self, rules, **config):
        path = os.path.join(self.home, "ours.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump({"agents": {"Jay": {}, "Z": {}}, **rules}, f)
        return self.server(agents=AGENTS,
                           config={"rules": path, **config})

    def everywhere(self, server, rules, envelope):
        """What each that takes an envelope says of it: a decision, or the
        words of a refusal."""
        said = {}
        for path, body in (("/api/envelopes", envelope),
                           ("/api/gate", {"envelope": envelope})):
            got = server.call("POST", path, body).json()
            said[path] = got.get("error", got)
        with Hub(server) as hub:
            try:
                said["hub"] = hub.call("message.send", listen=False,
                                       envelope=envelope)["routing"]
            except Refused as e:
                said["hub"] = {"code": e.name, "message": e.message}
        try:
            said["library"] = router.route_message(
                envelope, {"agents": {"Z": "IDLE"}},
                {"agents": {"Jay": {}, "Z": {}}, **rules})
        except router.RouterError as e:
            said["library"] = {"code": e.code, "message": str(e)}
        return said

    def assert_taken(self, server, rules, envelope, stale, warning):
        for who, got in self.everywhere(server, rules, envelope).items():
            with self.subTest(who):
                self.assertEqual(got["routing_decision"], "ROUTE_IMMEDIATELY")
                self.assertEqual(got["stale"], stale)
                self.assertRegex(" ".join(got["warnings"]), warning)

    def assert_refused(self, server, rules, envelope, words, callers=None):
        for who, got in self.everywhere(server, rules, envelope).items():
            with self.subTest(who):
                if callers and who not in callers:
                    self.assertEqual(got["routing_decision"],
                                     "ROUTE_IMMEDIATELY")
                    continue
                self.assertEqual(got["code"], "bad_request")
                self.assertIn(words, got["message"])

    def test_the_seeds_envelope_verbatim(self):
        server = self.house({})
        got = server.call("POST", "/api/envelopes", SEED.encode(),
                          "Content-Type: application/json")
        self.assertEqual(got.status, 200, got)
        decision = got.json()
        self.assertEqual((decision["routing_decision"], decision["target"]),
                         ("ROUTE_IMMEDIATELY", "Z"))
        days = int((time.time() - 1739610000) / 86400)
        self.assertEqual((decision["stale"], decision["warnings"]),
                         (True, [f"timestamp is {days} days ago"]))
        told = server.call("GET", "/api/feed?after=0").json()["items"]
        self.assertEqual([e["data"] for e in told
                          if e["type"] == "gate.routed"], [decision])
        eventually(lambda: server.call(
            "GET", "/api/tasks/" + decision["task_id"]).json()["status"] ==
            "completed", "it is done")
        self.assert_taken(server, {}, json.loads(SEED), True, "days ago$")

    def test_an_old_one_is_refused_where_rules_say_so(self):
        rules = {"timestamps": {"age": "7d"}}
        server = self.house(rules)
        self.assert_refused(server, rules, json.loads(SEED),
                            "days ago, and may be 7 days")
        self.assert_taken(server, rules, {
            **json.loads(SEED), "timestamp": moment(-7 * 86400 + 60)},
            False, "^$")

    def test_or_where_the_configuration_does(self):
        server = self.house({}, gate={"maxAgeMs": 3600 * 1000})
        of_server = {"/api/envelopes", "/api/gate", "hub"}
        self.assert_refused(server, {}, json.loads(SEED),
                            "days ago, and may be 1 hour", of_server)
        # Of the two the shorter counts.
        rules = {"timestamps": {"age": "30m"}}
        other = self.house(rules, gate={"maxAgeMs": 3600 * 1000})
        self.assert_refused(other, rules, {
            **json.loads(SEED), "timestamp": moment(-45 * 60)},
            "45 minutes ago, and may be 30 minutes")

    def test_a_rule_may_have_it_seen(self):
        server = self.house({"escalations": [
            {"rule": "old", "when": {"var": "message.stale"}}]})
        for timestamp, rule in ((json.loads(SEED)["timestamp"], "old"),
                                (moment(0), None)):
            got = server.call("POST", "/api/envelopes", {
                **json.loads(SEED), "timestamp": timestamp}).json()
            self.assertEqual(got["rule"], rule)

    def test_ahead_is_a_warning_and_without_a_zone_it_is_utc(self):
        server = self.house({})
        seed = json.loads(SEED)
        for off_s, said in ((0, "^$"), (2 * 3600 + 60, "is 2 hours ahead of"),
                            (14 * 3600 - 60, "is 13 hours ahead of")):
            for zone in "Z", "", "+00:00":
                self.assert_taken(server, {}, {
                    **seed, "timestamp": moment(off_s)[:-1] + zone},
                    False, said)
        self.assert_refused(server, {}, {
            **seed, "timestamp": moment(14 * 3600 + 300)[:-1]},
            "more than 14 hours ahead of the clock here, and may be 14 hours")


if __name__ == "__main__":
    unittest.main()
