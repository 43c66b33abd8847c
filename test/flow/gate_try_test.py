"""Whether an envelope might go now: signalbox gate by files, POST /api/gate
and signalbox gate by a server, and route_message with that server. Nothing
comes of any of them."""
import importlib.util
import json
import os
import unittest

from client import FAILED, USAGE, Client

SOURCE = os.environ["SIGNALBOX_SOURCE"]
RULES = {
    "agents": {"Jay": {}, "Z": {}, "Rick": {}},
    "escalations": [{"rule": "unsure", "when": {
        "<": [{"var": "message.payload.confidence_score"}, 6.5]}}],
    "dependencies": [{"rule": "order", "match": {"type": "SUBMISSION"},
                      "after": [{"type": "SUBMITTED", "from": "Jay"}]}],
    "sla": [{"rule": "answers", "match": {"to": "Z"}, "within": "15m"}],
}
STATE = {"agents": {"Z": "ACTIVE", "Rick": "IDLE"}, "history": []}
ENVELOPE = {"from": "Jay", "to": "Z", "type": "REQUEST", "reference": "R-1",
            "payload": {"confidence_score": 8.2}}
AGENTS = [{"id": name, "url": "echo:"} for name in ("Jay", "Z", "Rick")]


class Gate(Client):
    def file(self, name, content):
        path = os.path.join(self.home, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(content if isinstance(content, str)
                    else json.dumps(content))
        return path

    def files(self, envelope=None, state=None, rules=None):
        return ["--rules", self.file("rules.json", rules or RULES), "--state",
                self.file("state.json", state or STATE),
                self.file("envelope.json", envelope or ENVELOPE)]


class Files(Gate):
    def test_the_decision_and_every_rule(self):
        out = self.good("gate", "--now", "2025-02-15T09:00:15Z", *self.files())
        self.assertRegex(out, r"^ROUTE_IMMEDIATELY\n")
        self.assertIn("Z is ACTIVE, no dependency violations", out)
        self.assertRegex(out, r"\nescalations +unsure +no +its condition")
        self.assertRegex(out, r"\nsla +answers +yes +Expected Z response")
        [said] = self.lines("gate", "--now", "2025-02-15T09:00:15Z",
                            *self.files())
        self.assertEqual(said["timestamp"], "2025-02-15T09:00:15Z")
        self.assertEqual(said["sla"], "Expected Z response within 15 minutes")
        self.assertFalse(said["logged"])

    def test_a_timestamp_that_is_old_or_ahead(self):
        for said, words in (("2024-02-15T09:00:00Z", "366 days ago"),
                            ("2025-02-15T20:00:15", "11 hours ahead of the")):
            out = self.good("gate", "--now", "2025-02-15T09:00:15Z",
                            *self.files({**ENVELOPE, "timestamp": said}))
            self.assertRegex(out, r"^ROUTE_IMMEDIATELY\n")
            self.assertRegex(out, r"\n +warning +timestamp is " + words)
        self.assert_bad(USAGE, "15 hours ahead of the clock here, and may be "
                        "14 hours", "--now", "2025-02-15T09:00:15Z",
                        *self.files({**ENVELOPE,
                                     "timestamp": "2025-02-16T00:00:15"}))

    def test_for_how_long_an_id_makes_a_repeat(self):
        """As docs/gate.md says: a week, or as long as the rules take it."""
        sent = {**ENVELOPE, "message_id": "J-17"}
        short = {**RULES, "timestamps": {"age": "1d", "future": "1h"}}
        for rules, before, after in (
                (RULES, "2025-02-08T09:00:16Z", "2025-02-08T09:00:15Z"),
                (short, "2025-02-14T08:00:16Z", "2025-02-14T08:00:15Z")):
            for at, decision in ((before, "DROP_SILENTLY"),
                                 (after, "ROUTE_IMMEDIATELY")):
                state = {**STATE, "history": [{**sent, "timestamp": at}]}
                out = self.good("gate", "--now", "2025-02-15T09:00:15Z",
                                *self.files(sent, state, rules))
                self.assertRegex(out, rf"^{decision}\n")

    def test_one_that_waits(self):
        files = self.files({**ENVELOPE, "to": "Rick", "type": "SUBMISSION"})
        out = self.good("gate", *files)
        self.assertRegex(out, r"^HOLD_PENDING_INPUT\n")
        self.assertRegex(out, r"waits for +event:R-1:SUBMITTED")
        history = [{"from": "Jay", "type": "SUBMITTED", "reference": "R-1",
                    "timestamp": "2025-02-15T09:00:00Z"}]
        files = self.files({**ENVELOPE, "to": "Rick", "type": "SUBMISSION"},
                           {**STATE, "history": history})
        self.assertRegex(self.good("gate", *files), r"^ROUTE_IMMEDIATELY\n")

    def assert_bad(self, status, words, *args):
        err = self.bad(status, "gate", *args)
        self.assertIn(words, err)
        return err

    def test_what_is_wrong(self):
        self.assert_bad(USAGE, "name the file of an envelope")
        self.assert_bad(FAILED, "cannot read /nowhere", "--rules", "/nowhere",
                        self.file("e.json", ENVELOPE))
        self.assert_bad(USAGE, "--now must be a time", "--now", "soon",
                        *self.files())
        self.assert_bad(USAGE, 'needs "from"', *self.files({"to": "Z"}))
        self.assert_bad(USAGE, "agents.Z.state must be",
                        *self.files(state={"agents": {"Z": "WELL"}}))
        bad = {**RULES, "escalations": [{"rule": "x", "when": {"=>": []}},
                                        {"rule": "y", "wen": True}]}
        err = self.assert_bad(USAGE, "rules.json:1:", *self.files(rules=bad))
        self.assertIn("is not a JsonLogic operator", err)
        self.assertGreater(err.count("rules.json:1:"), 1, err)


class Served(Gate):
    def serve(self):
        self.box = self.server(
            agents=AGENTS, config={"rules": self.file("rules.json", RULES)})

    def ask(self, body):
        return self.box.call("POST", "/api/gate", body)

    def test_by_the_server_and_nothing_comes_of_it(self):
        self.serve()
        answer = self.ask({"envelope": ENVELOPE, "trace": True})
        self.assertEqual(answer.status, 200, answer)
        said = answer.json()
        self.assertEqual(said["routing_decision"], "ROUTE_IMMEDIATELY")
        self.assertEqual(said["original_from"], "Jay")
        self.assertIn("unsure", [t["rule"] for t in said["trace"]])
        low = {**ENVELOPE, "payload": {"confidence_score": 1}}
        said = self.ask({"envelope": low}).json()
        self.assertEqual((said["routing_decision"], said["rule"]),
                         ("ESCALATE_TO_HUMAN", "unsure"))
        self.assertNotIn("trace", said)
        # The same again is no repeat, for nothing was let in.
        self.assertEqual(self.ask({"envelope": low}).json()["rule"], "unsure")
        self.assertEqual(self.lines("tasks"), [])
        out = self.good("gate", self.file("e.json", low))
        self.assertRegex(out, r"^ESCALATE_TO_HUMAN\n")

    def test_refusals(self):
        self.serve()
        for body, code, words in [
                ({}, "bad_request", "envelope is missing"),
                ([], "bad_request", "must be an object"),
                ({"envelope": ENVELOPE, "x": 1}, "bad_request", "may only have"),
                ({"envelope": ENVELOPE, "trace": 1}, "bad_request", "trace"),
                ({"envelope": {"to": "Z"}}, "bad_request", "type"),
                ({"envelope": {**ENVELOPE, "frm": 1}}, "bad_request", "frm"),
                ({"envelope": {**ENVELOPE, "to": "Missing"}},
                 "agent_not_found", ""),
                ({"envelope": {**ENVELOPE, "from": "Missing"}},
                 "from_mismatch", "")]:
            with self.subTest(body=body):
                error = self.ask(body).json()["error"]
                self.assertEqual(error["code"], code, error)
                self.assertIn(words, error["message"])

    def test_route_message_asks_it(self):
        self.serve()
        spec = importlib.util.spec_from_file_location(
            "message_router",
            os.path.join(SOURCE, "client/python/message_router.py"))
        router = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(router)
        said = router.route_message(ENVELOPE, server=self.box.url,
                                    token=self.box.token)
        self.assertEqual(said["routing_decision"], "ROUTE_IMMEDIATELY")
        with self.assertRaises(router.RouterError) as caught:
            router.route_message(ENVELOPE, server=self.box.url, token="no")
        self.assertEqual(caught.exception.code, "unauthenticated")


if __name__ == "__main__":
    unittest.main()
