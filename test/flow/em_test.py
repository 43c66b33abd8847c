"""The story of examples/em with real agents on the hub: Jay, Z, Rick and Leroy,
each with a token of its own, and the rules as they are shipped."""
import json
import os
import re
import select
import subprocess
import sys
import time
import unittest

from client import Client
from hub_peer import Hub
from signalbox import DEADLINE_S, eventually

SOURCE = os.environ["SIGNALBOX_SOURCE"]
EM = os.path.join(SOURCE, "examples/em")
NAMES = "Jay", "Z", "Rick", "Leroy"
HOUR_MS = 3600 * 1000


class Agents(Client):
    """The broker, and four agents that do nothing by themselves."""

    def setUp(self):
        super().setUp()
        self.hubs = {}
        self.n = 0

    def tearDown(self):
        for hub in self.hubs.values():
            hub.close()
        super().tearDown()

    def rules(self):
        with open(os.path.join(EM, "routing_rules.json"),
                  encoding="utf-8") as f:
            return f.read()

    def em(self):
        path = os.path.join(self.home, "routing_rules.json")
        with open(path, "w", encoding="utf-8") as f:
            f.write(self.rules())
        self.s = self.server(agents=[], config={"rules": path})
        self.s.user("em")
        self.tokens = {name: self.s.user(name, role="agent", owner="em")
                       for name in NAMES}
        for name in NAMES:
            self.join(name)
        return self.s

    def join(self, name):
        hub = self.hubs[name] = Hub(self.s, token=self.tokens[name])
        hub.register(name)
        if name == "Z":
            hub.call("agent.state",
                     data_at=int(time.time() * 1000) - 2 * HOUR_MS)

    def die(self, name):
        self.hubs.pop(name).close()
        eventually(lambda: self.state(name) == "DEAD", f"{name} is dead")

    def state(self, name):
        return self.s.call("GET", "/api/agents/" + name).json()["state"]

    def send(self, who, to, kind, reference=None, listen=False, **more):
        """What was decided of it."""
        self.n += 1
        envelope = {"to": to, "type": kind, "payload": {"n": self.n}, **more}
        if reference:
            envelope["reference"] = reference
        return self.hubs[who].call("message.send", envelope=envelope,
                                   listen=listen)["routing"]

    def decided(self, decision, *args, **more):
        got = self.send(*args, **more)
        self.assertEqual(got["routing_decision"], decision, got)
        return got

    def works(self, name, **result):
        """It is given something, and answers."""
        task, _ = self.hubs[name].work(text="done", **result)
        return task["envelope"]

    def task(self, got):
        return self.s.call("GET", "/api/tasks/" + got["task_id"]).json()

    def is_over(self, got, status="completed"):
        eventually(lambda: self.task(got)["status"] == status, status)
        return self.task(got)


class Story(Agents):
    def test_the_seeds_example_field_for_field(self):
        self.em()
        payload = {"consultant_id": "C-042", "job_posting_id": "LI-9876",
                   "vendor": "TrueBlue", "end_client": "Microsoft",
                   "confidence_score": 8.2}
        got = self.decided(
            "ROUTE_IMMEDIATELY", "Jay", "Z", "REQUEST", "SUBM-C042-001",
            priority="NORMAL", payload=payload, message_id="MSG-001",
            context="Jay completed research, confidence >6.5, no staleness "
                    "risk")
        self.assertEqual(
            {k: got[k] for k in (
                "message_id", "original_from", "original_to", "target",
                "reason", "sla", "logged", "posted_to_channel")},
            {"message_id": "MSG-001", "original_from": "Jay",
             "original_to": "Z", "target": "Z",
             "reason": "Z has fresh data (2 hours old), no dependency "
                       "violations, priority is NORMAL",
             "sla": "Expected Z response within 15 minutes", "logged": True,
             "posted_to_channel": "#agent-feed"})
        # Z is given the whole of it, and its words.
        task, _ = self.hubs["Z"].work(text="yes")
        self.assertEqual(task["envelope"]["payload"], payload)
        self.assertEqual(task["envelope"]["from"], "Jay")
        self.assertEqual(task["message"], task["envelope"]["context"])

    def test_a_submission_request_waits_for_jay_and_z(self):
        self.em()
        held = [self.decided("HOLD_PENDING_INPUT", "Leroy", "Rick",
                             "SUBMISSION_REQUEST", "R-1", message_id=f"h{i}")
                for i in range(3)]
        other = self.decided("HOLD_PENDING_INPUT", "Leroy", "Rick",
                             "SUBMISSION_REQUEST", "R-2")
        self.assertEqual(held[0]["rule"], "jay-submitted-and-z-approved")
        # Z does not approve: not yet.
        self.decided("ROUTE_IMMEDIATELY", "Jay", "Z", "REQUEST", "R-1")
        self.works("Z", metadata={"approved": False})
        self.decided("ROUTE_IMMEDIATELY", "Jay", "Rick", "SUBMISSION", "R-1")
        self.assertEqual(self.works("Rick")["type"], "SUBMISSION")
        self.assertEqual(self.task(held[0])["status"], "held")
        # It does now: they go in order, and nothing else does.
        self.decided("ROUTE_IMMEDIATELY", "Jay", "Z", "REQUEST", "R-1")
        self.works("Z", metadata={"approved": True})
        self.assertEqual([self.works("Rick")["message_id"] for _ in held],
                         ["h0", "h1", "h2"])
        self.assertEqual(self.task(other)["status"], "held")

    def test_z_dies_and_exactly_the_submissions_wait(self):
        self.em()
        self.die("Z")
        paused = [self.decided("PAUSE_ALL_SUBMISSIONS", "Jay", "Rick",
                               "SUBMISSION", "R-1", message_id=f"p{i}")
                  for i in range(3)]
        self.assertEqual(paused[0]["rule"], "no-submissions-without-Z")
        self.decided("PAUSE_ALL_SUBMISSIONS", "Jay", "Rick", "SUBMISSION",
                     "R-9", priority="URGENT", message_id="u")
        # Whatever is no submission goes on.
        self.decided("ROUTE_IMMEDIATELY", "Leroy", "Rick", "LEAD", "L-1")
        self.decided("ROUTE_IMMEDIATELY", "Jay", "Rick", "NOTE", "R-1")
        self.assertEqual(self.works("Rick")["type"], "LEAD")
        self.assertIn("Z is DEAD", self.good("holds"))
        self.join("Z")
        got = [self.works("Rick") for _ in range(4)]
        of_r1 = [e["message_id"] for e in got
                 if e["type"] == "SUBMISSION" and e["reference"] == "R-1"]
        self.assertEqual(of_r1, ["p0", "p1", "p2"])
        self.assertEqual({e.get("message_id") for e in got} - {None},
                         {"p0", "p1", "p2"})
        # URGENT is none that a sender may claim for a submission.
        asked = self.s.call("GET", "/api/escalations").json()["items"]
        self.assertEqual([a["rule"] for a in asked if a["reference"] == "R-9"],
                         ["urgent-is-not-for-submissions"])
        for p in paused:
            self.is_over(p)
        self.assertIn("No held messages", self.good("holds"))

    def test_a_lead_is_urgent(self):
        self.em()
        got = self.decided("ROUTE_IMMEDIATELY", "Leroy", "Jay", "LEAD", "L-1",
                           priority="LOW")
        self.assertIn("priority is URGENT", got["reason"])
        self.assertEqual(got["sla"], "Expected Jay response within 5 minutes")
        task, _ = self.hubs["Jay"].work()
        self.assertEqual(task["metadata"]["priority"], "URGENT")

    def test_two_status_checks_in_a_minute(self):
        self.em()
        self.decided("ROUTE_IMMEDIATELY", "Rick", "Z", "STATUS_CHECK")
        got = self.decided("DROP_SILENTLY", "Rick", "Z", "STATUS_CHECK")
        self.assertEqual((got["rule"], got["status"]),
                         ("one-status-check-a-minute", "dropped"))
        self.decided("ROUTE_IMMEDIATELY", "Leroy", "Z", "STATUS_CHECK")
        same = {"payload": {"a": 1}}
        self.decided("ROUTE_IMMEDIATELY", "Jay", "Rick", "NOTE", **same)
        got = self.decided("DROP_SILENTLY", "Jay", "Rick", "NOTE", **same)
        self.assertEqual(got["rule"], "same-message-again")

    def test_stale_data(self):
        self.em()
        self.hubs["Z"].call("agent.state", data_at=int(time.time() * 1000) -
                            30 * HOUR_MS)
        got = self.decided("HOLD_PENDING_INPUT", "Jay", "Z", "REQUEST", "R-1")
        self.assertEqual(got["reason"], "Z's data is 30 hours old; it waits for "
                                        "data that is 1 day old at most")
        self.hubs["Z"].call("agent.state", data_at=int(time.time() * 1000))
        self.assertEqual(self.works("Z")["type"], "REQUEST")


class People(Agents):
    """What a person must see, decided by `signalbox escalations`."""

    SUBMISSION = {"consultant_id": "C-042", "end_client": "Microsoft"}

    def escalated(self, rule, *args, **more):
        got = self.decided("ESCALATE_TO_HUMAN", *args, **more)
        self.assertEqual(got["rule"], rule)
        self.assertIn(got["escalation_id"], self.good("escalations"))
        return got

    def test_a_business_duplicate_is_approved(self):
        self.em()
        payload = {"payload": self.SUBMISSION}
        self.decided("ROUTE_IMMEDIATELY", "Jay", "Rick", "SUBMISSION", "R-1",
                     **payload)
        self.works("Rick")
        got = self.escalated("consultant-submitted-before", "Jay", "Rick",
                             "SUBMISSION", "R-2", **payload)
        shown = self.good("escalations", got["escalation_id"])
        self.assertIn('"end_client"', shown)
        self.assertIn("is approved", self.good(
            "escalations", "approve", got["escalation_id"],
            "--comment", "another team"))
        envelope = self.works("Rick")
        self.assertEqual((envelope["reference"], envelope["payload"]),
                         ("R-2", self.SUBMISSION))
        self.is_over(got)

    def test_a_ban_is_rejected(self):
        self.em()
        got = self.escalated("profile-banned", "Jay", "Rick", "SUBMISSION",
                             "R-1", payload={"profile_status": "BANNED"})
        self.good("escalations", "reject", got["escalation_id"],
                  "--comment", "banned until May")
        error = self.is_over(got, "cancelled")["result"]["error"]
        self.assertEqual(error["code"], "rejected")
        self.assertIn("banned until May", error["message"])

    def test_low_confidence_is_redirected(self):
        self.em()
        self.decided("ROUTE_IMMEDIATELY", "Jay", "Z", "REQUEST", "R-0",
                     payload={"confidence_score": 6.5})
        got = self.escalated("not-sure-enough", "Jay", "Z", "REQUEST", "R-1",
                             payload={"confidence_score": 6.4})
        self.good("escalations", "redirect", got["escalation_id"], "Leroy")
        envelope = self.works("Leroy")
        self.assertEqual((envelope["to"], envelope["payload"]),
                         ("Z", {"confidence_score": 6.4}))
        self.assertEqual(self.is_over(got)["agent"], "Leroy")

    def test_a_dead_target(self):
        self.em()
        self.die("Leroy")
        got = self.decided("ESCALATE_TO_HUMAN", "Jay", "Leroy", "NOTE", "R-1")
        self.assertIn("DEAD", got["reason"])
        self.join("Leroy")
        self.assertEqual(self.works("Leroy")["reference"], "R-1")
        eventually(lambda: "No open escalations" in self.good("escalations"),
                   "it is settled by itself")


class Late(Agents):
    def rules(self):
        """As they are shipped, but for the time that Z has."""
        said = super().rules()
        rules = said.replace('"within": "15m"', '"within": "1s"')
        self.assertNotEqual(rules, said)
        return rules

    def test_an_answer_that_is_late(self):
        self.em()
        got = self.decided("ROUTE_IMMEDIATELY", "Jay", "Z", "REQUEST", "R-1")
        self.assertEqual(got["sla"], "Expected Z response within 1 second")
        eventually(lambda: "Z has not answered within 1 second" in self.good(
            "escalations"), "it is late")
        self.works("Z", metadata={"approved": True})
        task = self.is_over(got)
        eventually(lambda: "No open escalations" in self.good("escalations"),
                   "the answer settles it")
        self.assertGreater(task["result"]["metadata"]["late_ms"], 0)


class Example(Client):
    """examples/em/README.md, as it says."""

    def agents(self):
        p = subprocess.Popen(
            [sys.executable, os.path.join(EM, "agents.py")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self.env)
        self.said = b""
        self.addCleanup(p.wait, DEADLINE_S)
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.stdin.close)
        return p

    def heard(self, p):
        """The next line of the agents, as words."""
        while b"\n" not in self.said:
            ready, _, _ = select.select([p.stdout], [], [], 20)
            data = os.read(p.stdout.fileno(), 4096) if ready else b""
            self.assertTrue(data, f"the agents say no more: {self.said}")
            self.said += data
        line, _, self.said = self.said.partition(b"\n")
        return line.decode().split()

    def test_what_the_readme_says(self):
        with open(os.path.join(EM, "signalbox.jsonc"), encoding="utf-8") as f:
            config = f.read()
        self.assertIn('"rules": "routing_rules.json"', config)
        with open(os.path.join(EM, "README.md"), encoding="utf-8") as f:
            said = f.read()
        self.server(agents=[], config={"rules": os.path.join(
            EM, "routing_rules.json")})
        p = self.agents()
        for name in NAMES:
            self.assertEqual(self.heard(p), [name, "is", "here"])
        self.story(p, said)

    def hears(self, p, owed):
        """What is owed, and no more: each agent's lines in their order, but
        two agents may speak one before the other."""
        heard = [self.heard(p) for _ in owed]
        for name in {line[0] for line in owed}:
            self.assertEqual([x for x in heard if x[0] == name],
                             [x for x in owed if x[0] == name])
        owed.clear()

    def story(self, p, said):
        """Each command of the README, and what it promises of it: the word
        behind "decision", and what the agents say meanwhile."""
        n = 0
        decision = ""
        blocks = re.findall(r"^```\n(.*?)^```", said, re.M | re.S)
        owed = []
        for line in "".join(blocks).splitlines():
            if not line.startswith("| "):
                self.hears(p, owed)
            if line.startswith("$ build/signalbox send"):
                file = os.path.join(SOURCE, line.split()[-1])
                got, = self.lines("send", "--envelope", file)
                decision = got["routing_decision"]
                n += 1
            elif line.startswith("$ build/signalbox escalations approve"):
                self.good("escalations", "approve", got["escalation_id"])
            elif line.startswith("$ build/signalbox holds"):
                self.assertIn("TASK", self.good("holds"))
            elif line.startswith("decision "):
                self.assertEqual(line.split()[1], decision)
            elif line.startswith("> "):
                p.stdin.write(line[2:].encode() + b"\n")
                p.stdin.flush()
            elif line.startswith("| "):
                owed.append(line[2:].split())
        self.hears(p, owed)
        self.assertEqual(n, 7)

    def test_every_envelope_is_used(self):
        with open(os.path.join(EM, "README.md"), encoding="utf-8") as f:
            said = f.read()
        for name in os.listdir(os.path.join(EM, "envelopes")):
            self.assertIn(name, said)
            with open(os.path.join(EM, "envelopes", name),
                      encoding="utf-8") as f:
                self.assertIn("to", json.load(f))


if __name__ == "__main__":
    unittest.main()
