"""Seed 002, the message router between Jay, Z, Rick and Leroy, by the rules of
examples/em: the seed's envelope, its decisions, sentences, error cases and
figures. docs/seeds.md has the rows."""
import importlib.util
import json
import os
import shutil
import tempfile
import time
import unittest
from datetime import datetime, timedelta, timezone
import unittest

from hub_peer import Hub
from signalbox import OWN, Server, eventually

SOURCE = os.environ["SIGNALBOX_SOURCE"]
RULES = os.path.join(SOURCE, "examples/em/routing_rules.json")
HOUR_MS = 3600 * 1000
ENVELOPE = json.loads("""
{
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
}
""")
DECISION = json.loads("""
{
  "message_id": "MSG-001",
  "original_from": "Jay",
  "original_to": "Z",
  "routing_decision": "ROUTE_IMMEDIATELY",
  "target": "Z",
  "reason": "Z has fresh data (2 hours old), no dependency violations, priority is NORMAL",
  "timestamp": "2025-02-15T09:00:15Z",
  "sla": "Expected Z response within 15 minutes",
  "logged": true,
  "posted_to_channel": "#agent-feed"
}
""")
AT = DECISION["timestamp"]
FRESH = {"state": "ACTIVE", "data_at": "2025-02-15T07:00:00Z"}


def library():
    """message_router, as the seed imports it."""
    path = os.path.join(SOURCE, "client/python/message_router.py")
    spec = importlib.util.spec_from_file_location("message_router", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class ByTheLibrary(unittest.TestCase):
    """The seed's example at the seed's own time, without a server."""

    @classmethod
    def setUpClass(cls):
        cls.route_message = staticmethod(library().route_message)

    def decided(self, agents, **more):
        return self.route_message({**ENVELOPE, **more}, {"agents": agents},
                                  RULES, AT)

    def test_002_21_the_decision_word_for_word(self):
        got = self.decided({"Z": FRESH}, message_id="MSG-001")
        # Nothing is logged where there is no server.
        self.assertEqual({k: got[k] for k in DECISION},
                         {**DECISION, "logged": False,
                          "posted_to_channel": None})
        self.assertEqual(list(got)[:10], list(DECISION))

    def test_002_31_route_message_takes_an_envelope_and_a_state(self):
        system_state = {"agents": {"Z": "ACTIVE"}}
        decision = self.route_message(ENVELOPE, system_state)
        self.assertEqual((decision["routing_decision"], decision["target"]),
                         ("ROUTE_IMMEDIATELY", "Z"))
        self.assertTrue(decision["reason"])

    def state(self, state):
        return self.decided({"Z": {**FRESH, "state": state}})[
            "routing_decision"]

    def test_002_33_a_target_that_is_active_or_idle_gets_it(self):
        for state in ("ACTIVE", "IDLE"):
            self.assertEqual(self.state(state), "ROUTE_IMMEDIATELY")

    def test_002_34_one_that_is_busy_or_slow_gets_it(self):
        for state in ("BUSY", "SLOW"):
            self.assertEqual(self.state(state), "ROUTE_IMMEDIATELY")

    def test_002_35_one_that_is_in_error_is_waited_for(self):
        self.assertEqual(self.state("ERROR"), "HOLD_PENDING_CAPACITY")

    def test_002_41_a_dead_target_is_for_a_person(self):
        self.assertEqual(self.state("DEAD"), "ESCALATE_TO_HUMAN")

    def test_002_16_z_in_error_pauses_submissions_too(self):
        got = self.decided({"Z": "ERROR", "Rick": "IDLE"}, to="Rick",
                           type="SUBMISSION")
        self.assertEqual((got["routing_decision"], got["rule"]),
                         ("PAUSE_ALL_SUBMISSIONS", "no-submissions-without-Z"))

    def test_002_45_a_queue_over_its_threshold_holds(self):
        got = self.decided({"Z": {**FRESH, "queue": 21}})
        self.assertEqual((got["routing_decision"], got["waits_for"]),
                         ("HOLD_PENDING_CAPACITY", ["queue:Z"]))
        got = self.decided({"Z": {**FRESH, "queue": 19}})
        self.assertEqual(got["routing_decision"], "ROUTE_IMMEDIATELY")


class Found(unittest.TestCase):
    def test_002_10_the_file_is_found_without_being_named(self):
        with tempfile.TemporaryDirectory() as folder:
            rules = shutil.copy(RULES, os.path.join(folder,
                                                    "routing_rules.json"))
            config = os.path.join(folder, "signalbox.jsonc")
            with open(config, "w", encoding="utf-8") as f:
                f.write("{}")
            with Server("--config", config) as server:
                said = server.call("GET", "/api/gate").json()["rules"]
                self.assertEqual((said["file"], said["state"]),
                                 (rules, "good"))
                self.assertIn("rules.found", server.said())


class Broker(unittest.TestCase):
    """The four of them on the hub, and the rules as they are shipped."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.mkdtemp(prefix="signalbox-em-")
        cls.addClassCleanup(shutil.rmtree, folder)
        rules = shutil.copy(RULES, os.path.join(folder, "routing_rules.json"))
        cls.server = cls.enterClassContext(
            Server(agents=[], config={"rules": rules}))
        cls.server.user("em")
        cls.hubs = {}
        for name in ("Jay", "Z", "Rick", "Leroy"):
            token = cls.server.user(name, role="agent", owner="em")
            hub = cls.enterClassContext(Hub(cls.server, token))
            hub.register(name)
            cls.hubs[name] = hub
        cls.hubs["Z"].call("agent.state",
                           data_at=int(time.time() * 1000) - 2 * HOUR_MS)
        cls.n = 0

    def call(self, method, path, body=None, token=OWN, status=200):
        got = self.server.call(method, path, body, token=token)
        self.assertEqual(got.status, status, got)
        return got.json() if got.body else None

    def send(self, who, to, kind, **more):
        """What is decided of a message that is like no other."""
        Broker.n += 1
        envelope = {"to": to, "type": kind, "payload": {"n": Broker.n},
                    "reference": f"R-{Broker.n}", **more}
        return self.hubs[who].call("message.send", envelope=envelope,
                                   listen=False)["routing"]

    def decided(self, decision, *args, **more):
        got = self.send(*args, **more)
        self.assertEqual(got["routing_decision"], decision, got)
        return got

    def task(self, got):
        return self.call("GET", "/api/tasks/" + got["task_id"])

    def lines(self, name):
        path = os.path.join(self.server.data, name)
        if not os.path.exists(path):
            return []
        with open(path, encoding="utf-8") as f:
            return [json.loads(line) for line in f.read().splitlines()]

    def line(self, name, got):
        """The line of a decision, once it is in the file."""
        found = []
        eventually(lambda: found.extend(
            x for x in self.lines(name)
            if x.get("task_id") == got["task_id"]) or found, name)
        return found[0]

    def test_002_01_messages_between_agents_go_through_the_broker(self):
        got = self.decided("ROUTE_IMMEDIATELY", "Jay", "Leroy", "NOTE")
        self.assertEqual((got["original_from"], got["original_to"],
                          got["target"]), ("Jay", "Leroy", "Leroy"))
        self.hubs["Leroy"].work()

    def test_002_03_what_may_go_goes_at_once(self):
        got = self.decided("ROUTE_IMMEDIATELY", "Jay", "Z", "REQUEST")
        self.assertEqual(got["status"], "queued")
        self.hubs["Z"].work()

    def test_002_04_what_is_not_ready_is_held(self):
        got = self.decided("HOLD_PENDING_INPUT", "Leroy", "Rick",
                           "SUBMISSION_REQUEST")
        self.assertEqual((got["status"], got["rule"]),
                         ("held", "jay-submitted-and-z-approved"))
        self.assertTrue(got["waits_for"])

    def test_002_05_what_is_critical_is_for_a_person(self):
        got = self.decided("ESCALATE_TO_HUMAN", "Jay", "Rick", "SUBMISSION",
                           payload={"profile_status": "BANNED"})
        self.assertEqual((got["status"], got["rule"]),
                         ("escalated", "profile-banned"))

    def test_002_06_two_status_checks_in_a_minute_are_one(self):
        self.decided("ROUTE_IMMEDIATELY", "Rick", "Jay", "STATUS_CHECK")
        got = self.decided("DROP_SILENTLY", "Rick", "Jay", "STATUS_CHECK")
        self.assertEqual((got["status"], got["rule"]),
                         ("dropped", "one-status-check-a-minute"))
        self.assertEqual(self.line("agent-feed.jsonl", got)["data"], got)
        self.hubs["Jay"].work()

    def urgent(self, kind):
        got = self.decided("ROUTE_IMMEDIATELY", "Leroy", "Jay", kind,
                           priority="LOW")
        self.assertEqual(got["priority"], "URGENT")
        self.hubs["Jay"].work()

    def test_002_12_leads_are_urgent(self):
        self.urgent("LEAD")

    def test_002_13_critical_alerts_are_urgent(self):
        self.urgent("CRITICAL_ALERT")

    def test_002_14_agent_failures_are_urgent(self):
        self.urgent("AGENT_FAILURE")

    def test_002_19_the_envelope_as_it_stands(self):
        got = self.call("POST", "/api/envelopes", ENVELOPE)
        self.assertEqual(
            {k: got[k] for k in DECISION if k not in ("message_id",
                                                      "timestamp")},
            {k: v for k, v in DECISION.items() if k not in ("message_id",
                                                            "timestamp")})
        self.assertIs(got["stale"], True)
        task, _ = self.hubs["Z"].work()
        self.assertEqual(task["envelope"], ENVELOPE)

    def test_002_20_the_agent_gets_the_envelope_whole(self):
        sent = {k: v for k, v in ENVELOPE.items()
                if k not in ("from", "timestamp")}
        got = self.hubs["Jay"].call("message.send", envelope={
            **sent, "reference": "SUBM-C042-020"}, listen=False)["routing"]
        self.assertEqual(got["routing_decision"], "ROUTE_IMMEDIATELY")
        task, _ = self.hubs["Z"].work()
        for field in ("from", "to", "type", "priority", "payload", "context"):
            self.assertEqual(task["envelope"][field], ENVELOPE[field])
        self.assertEqual(task["message"], ENVELOPE["context"])

    def example(self, **more):
        got = self.send("Jay", "Z", "REQUEST", priority="NORMAL",
                        payload={**ENVELOPE["payload"], "n": Broker.n},
                        context=ENVELOPE["context"], **more)
        self.hubs["Z"].work()
        return got

    def test_002_22_the_reason_in_the_seeds_words(self):
        self.assertEqual(self.example()["reason"], DECISION["reason"])

    def test_002_23_the_sla_in_the_seeds_words(self):
        self.assertEqual(self.example()["sla"], DECISION["sla"])

    def test_002_24_the_senders_id_is_the_decisions(self):
        self.assertEqual(self.example(message_id="MSG-001")["message_id"],
                         "MSG-001")

    def test_002_25_the_time_is_that_of_the_decision_to_the_second(self):
        self.assertRegex(self.example()["timestamp"],
                         r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")

    def test_002_26_it_is_logged(self):
        got = self.example()
        self.assertIs(got["logged"], True)
        feed = self.call("GET", "/api/feed?last=100")["items"]
        self.assertIn(got, [e["data"] for e in feed
                            if e["type"] == "gate.routed"])

    def test_002_27_it_says_to_which_channel_it_was_posted(self):
        self.assertEqual(self.example()["posted_to_channel"], "#agent-feed")

    def ahead(self, hours, **more):
        """A local time without its zone, that far east of UTC."""
        at = datetime.now(timezone.utc) + timedelta(hours=hours)
        Broker.n += 1
        return self.server.call("POST", "/api/envelopes", {
            **ENVELOPE, "reference": f"AHEAD-{Broker.n}",
            "payload": {"n": Broker.n},
            "timestamp": at.replace(tzinfo=None).isoformat()})

    def test_002_29_a_time_without_a_zone(self):
        for hours, n_warnings in ((0, 0), (13.9, 1)):
            got = self.ahead(hours)
            self.assertEqual((got.status, len(got.json()["warnings"])),
                             (200, n_warnings), got)
            self.hubs["Z"].work()
        got = self.ahead(14.1)
        self.assertEqual(got.status, 400, got)
        self.assertIn("14 hours", got.json()["error"]["message"])

    def test_002_32_the_rules_are_asked_for_every_message(self):
        got = self.call("POST", "/api/gate", {
            "trace": True, "envelope": {"from": "Jay", "to": "Rick",
                                        "type": "SUBMISSION_REQUEST",
                                        "reference": "R-x"}})
        asked = [t["section"] for t in got["trace"]]
        for section in ("duplicates", "safety_gates", "escalations",
                        "dependencies"):
            self.assertIn(section, asked)

    def test_002_36_the_graph_is_there_to_be_looked_at(self):
        edges = self.call("GET", "/api/gate/graph")["edges"]
        rick = [e for e in edges if e["kind"] == "dependency"]
        self.assertEqual({e["rule"] for e in rick},
                         {"jay-submitted-and-z-approved"})
        self.assertEqual({tuple(e["from"]) for e in rick}, {("Jay",), ("Z",)})

    def test_002_37_every_decision_is_a_line_of_json(self):
        got = self.example()
        line = self.line("agent-feed.jsonl", got)
        self.assertEqual(line["data"], got)

    def test_002_38_alerts_get_what_a_person_must_see_with_its_context(self):
        payload = {"ban": "yes", "consultant_id": "C-777"}
        got = self.decided("ESCALATE_TO_HUMAN", "Jay", "Rick", "SUBMISSION",
                           payload=payload, context="look at this one")
        line = self.line("alerts.jsonl", got)
        said = json.dumps(line)
        for words in (got["escalation_id"], "C-777", "look at this one"):
            self.assertIn(words, said)

    def test_002_47_a_duplicate_is_dropped_and_logged(self):
        same = {"payload": {"a": 1}, "reference": "SAME"}
        self.decided("ROUTE_IMMEDIATELY", "Jay", "Leroy", "NOTE", **same)
        got = self.decided("DROP_SILENTLY", "Jay", "Leroy", "NOTE", **same)
        self.assertEqual(got["rule"], "same-message-again")
        self.assertEqual(self.line("agent-feed.jsonl", got)["data"], got)
        self.hubs["Leroy"].work()

    def figure(self, name):
        return self.call("GET", "/api/gate")["figures"][name]

    def test_002_48_messages_an_hour_beside_their_target(self):
        before = self.figure("routed_per_hour")["value"]
        self.example()
        after = self.figure("routed_per_hour")
        self.assertEqual((after["value"], after["target"]), (before + 1, 100))

    def test_002_49_decisions_by_their_kind(self):
        self.assertEqual(set(self.figure("decisions_24h")),
                         {"immediate", "hold", "pause", "escalate", "drop"})

    def test_002_50_the_average_hold_beside_half_an_hour(self):
        self.assertEqual(self.figure("hold_ms")["target"], 30 * 60 * 1000)

    def test_002_51_escalations_a_day_beside_five(self):
        before = self.figure("escalations_per_day")["value"]
        self.decided("ESCALATE_TO_HUMAN", "Jay", "Rick", "SUBMISSION",
                     payload={"confidence_score": 1})
        after = self.figure("escalations_per_day")
        self.assertEqual((after["value"], after["target"]), (before + 1, 5))

    def test_002_52_an_audit_finds_nothing_lost(self):
        self.call("POST", "/api/gate/audit", status=202)
        eventually(lambda: self.figure("lost")["value"] is not None,
                   "the audit ends")
        lost = self.figure("lost")
        self.assertEqual((lost["value"], lost["target"], lost["is_met"]),
                         (0, 0, True))


if __name__ == "__main__":
    unittest.main()
