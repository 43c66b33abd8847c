"""POST /api/envelopes, message.send with an envelope and send --envelope, as
docs/protocol.md promises them: who may send what under which name, what is refused, and
what a repeat comes to."""
import json
import os
import time
import unittest

from client import USAGE, Client
from hub_peer import Hub, Refused
from signalbox import eventually

AGENTS = [{"id": "Z", "url": "echo:"}, {"id": "Rick", "url": "echo:"}]
RULES = """{
  "agents": {"Jay": {"owner": "owner"}, "Z": {}, "Rick": {}},
  "dependencies": [{"rule": "z-first", "match": {"to": "Rick"}, "after": [
    {"type": "RESULT", "from": "Z"}]}]
}"""
WHOLE = {"from": "admin", "to": "Z", "type": "REQUEST", "priority": "NORMAL",
         "reference": "SUBM-C042-001", "payload": {"confidence_score": 8.2},
         "context": "Jay completed research"}
PAYLOAD_MAX = 1000 * 1000


def moment(off_s):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + off_s))


def payload_of(n):
    """A payload of so many bytes as it stands; one less on the hub, which has
    no space in it."""
    return {"a": "x" * (n - len('{"a": ""}'))}


# What is refused, what with, and a word of why.
BAD = [
    ({"to": None}, "bad_request", "to is missing"),
    ({"type": None}, "bad_request", "type is missing"),
    ({"to": "missing"}, "agent_not_found", "missing"),
    ({"to": ""}, "bad_request", "to must be"),
    ({"to": 7}, "bad_request", "to must be"),
    ({"type": "A\nB"}, "bad_request", "type must be"),
    ({"type": "x" * 129}, "bad_request", "128"),
    ({"priority": "SOON"}, "bad_request", "URGENT"),
    ({"priority": "urgent"}, "bad_request", "URGENT"),
    ({"priority": 1}, "bad_request", "priority"),
    ({"timestamp": moment(14 * 3600 + 300)}, "bad_request",
     "timestamp is more than 14 hours ahead of the clock here, and may be 14 "
     "hours"),
    # Without a zone it is UTC.
    ({"timestamp": moment(15 * 3600 + 300)[:-1]}, "bad_request", "15 hours ahead"),
    ({"timestamp": "9999-12-31T23:59:59Z"}, "bad_request", "ahead"),
    ({"timestamp": "yesterday"}, "bad_request", "RFC 3339"),
    ({"reference": "x" * 201}, "bad_request", "200"),
    ({"referense": "R"}, "bad_request", 'did you mean "reference"'),
    ({"wait_ms": 1}, "bad_request", "wait_ms"),
    ({"payload": []}, "bad_request", "payload must be an object"),
    ({"payload": payload_of(PAYLOAD_MAX + 2)}, "too_large", "payload"),
    ({"context": "x" * 16385}, "too_large", "context"),
    ({"message_id": ""}, "bad_request", "message_id"),
    ({"from": "Z2"}, "from_mismatch", "Z2"),
    ({"from": "x" * 129}, "bad_request", "from must be"),
]


class Stage(Client):
    def em(self):
        rules = os.path.join(self.home, "routing_rules.json")
        with open(rules, "w", encoding="utf-8") as f:
            f.write(RULES)
        return self.server(agents=AGENTS, config={"rules": rules})

    def post(self, server, status=200, token=None, **envelope):
        got = server.call("POST", "/api/envelopes", {
            k: v for k, v in envelope.items() if v is not None},
            token=token or server.token)
        self.assertEqual(got.status, status, got)
        return got.json()

    def error(self, server, status, **envelope):
        return self.post(server, status, **envelope)["error"]

    def over(self, server, task):
        def look():
            return server.call("GET", "/api/tasks/" + task).json()
        eventually(lambda: look()["status"] == "completed", "it is done")
        return look()


class BadInput(Stage):
    def test_over_http(self):
        server = self.em()
        for change, code, words in BAD:
            with self.subTest(str(change)[:60]):
                got = server.call("POST", "/api/envelopes", {
                    k: v for k, v in {**WHOLE, **change}.items()
                    if v is not None})
                error = got.json()["error"]
                self.assertEqual(error["code"], code, error)
                self.assertIn(words, error["message"])
        self.assertEqual(server.call("GET", "/api/tasks").json()["items"], [])

    def test_on_the_hub(self):
        server = self.em()
        with Hub(server) as hub:
            for change, code, words in BAD:
                with self.subTest(str(change)[:60]):
                    with self.assertRaises(Refused) as e:
                        hub.call("message.send", envelope={
                            k: v for k, v in {**WHOLE, **change}.items()
                            if v is not None})
                    self.assertEqual(e.exception.name, code)
                    self.assertIn(words, e.exception.message)
            for envelope in ("x", [], 7):
                with self.assertRaises(Refused):
                    hub.call("message.send", envelope=envelope)
            with self.assertRaises(Refused) as e:
                hub.call("message.send", envelope=WHOLE, text="and this")
            self.assertIn("text", e.exception.message)
            hub.call("ping")
        self.assertEqual(server.call("GET", "/api/tasks").json()["items"], [])

    def test_what_is_no_json(self):
        server = self.em()
        for body in b"", b"{", b"[]", b"null", b'{"to":"Z","to":"Y"}', \
                b'{"to":"\xff"}':
            got = server.call("POST", "/api/envelopes", body,
                              "Content-Type: application/json")
            self.assertEqual(got.status, 400, got)

    def test_as_large_as_may_be(self):
        server = self.em()
        sent = self.post(server, **{**WHOLE, "payload": payload_of(
            PAYLOAD_MAX)})
        task = self.over(server, sent["task_id"])
        self.assertEqual(len(json.loads(task["text"])["payload"]["a"]),
                         PAYLOAD_MAX - len('{"a": ""}'))
        with Hub(server) as hub:
            got = hub.call("message.send", envelope={
                **WHOLE, "reference": "R-2",
                "payload": payload_of(PAYLOAD_MAX)})
            self.assertEqual(got["routing"]["routing_decision"],
                             "ROUTE_IMMEDIATELY")

    def test_the_text_is_what_was_sent_to_the_byte(self):
        server = self.em()
        body = ('{ "to":"Z",\t"from":"admin","type":"X","payload":{"b":1.50,'
                '"a":"\\u00e9\\/"},\n"timestamp":"%s"}' % moment(0)).encode()
        got = server.call("POST", "/api/envelopes", body,
                          "Content-Type: application/json").json()
        self.assertEqual(self.over(server, got["task_id"])["text"],
                         body.decode())


class From(Stage):
    """Who may send what under which name."""

    def test_a_user_is_itself_and_nobody_else(self):
        server = self.em()
        ann = server.user("ann")
        body = {"to": "Z", "type": "X"}
        self.assertEqual(self.post(server, token=ann, **body)["original_from"],
                         "ann")
        self.post(server, token=ann, **{**body, "from": "ann"})
        for forged in "Z", "Jay", "admin", "bob":
            error = self.error(server, 403, token=ann,
                               **{**body, "from": forged})
            self.assertEqual(error["code"], "from_mismatch")
            self.assertIn(forged, error["message"])
            self.assertIn("ann", error["message"])

    def test_a_user_who_is_called_like_an_agent_is_not_it(self):
        server = self.em()
        rick = server.user("Rick")
        for body in {"to": "Z", "type": "X"}, \
                {"from": "Rick", "to": "Z", "type": "X"}:
            error = self.error(server, 403, token=rick, **body)
            self.assertEqual(error["code"], "from_mismatch")

    def test_an_agent_that_is_called_like_a_user_is_not_them(self):
        server = self.em()
        ann, bob = server.user("ann"), server.user("bob")
        with Hub(server, token=bob) as hub:
            hub.register("ann")
            with self.assertRaises(Refused) as e:
                hub.call("message.send", envelope={"to": "Z", "type": "X"})
            self.assertEqual(e.exception.name, "from_mismatch")
        error = self.error(server, 403, token=bob, to="Z", type="X",
                           **{"from": "ann"})
        self.assertIn("another name", error["message"])
        self.assertEqual(self.post(server, token=ann, to="Z", type="X")[
            "original_from"], "ann")

    def test_kinds_that_are_the_servers_own_are_refused(self):
        server = self.em()
        for kind in "MESSAGE", "BATCH":
            self.assertIn(kind, self.error(server, 400, to="Z", type=kind)[
                "message"])

    def test_an_agent_is_who_its_token_says(self):
        server = self.em()
        owner = server.user("owner")
        jay = server.user("Jay", role="agent", owner="owner")
        with Hub(server, token=jay) as hub:
            hub.register("Jay")
            got = hub.call("message.send", envelope={"to": "Z", "type": "X"})
            self.assertEqual(got["routing"]["original_from"], "Jay")
            with self.assertRaises(Refused) as e:
                hub.call("message.send", envelope={
                    "from": "Z", "to": "Z", "type": "X"})
            self.assertEqual(e.exception.name, "from_mismatch")
            # Its token says the same over HTTP.
            self.assertEqual(self.post(server, token=jay, to="Z", type="X")[
                "original_from"], "Jay")
            self.error(server, 403, token=jay, to="Z", type="X",
                       **{"from": "Rick"})
            # So may the agent's owner, and an admin.
            for token in owner, server.token:
                self.assertEqual(self.post(
                    server, token=token, to="Z", type="X",
                    **{"from": "jay"})["original_from"], "Jay")
            self.error(server, 403, token=server.user("mallory"), to="Z",
                       type="X", **{"from": "Jay"})

    def test_what_others_say_of_a_reference_counts_for_nothing(self):
        """Others are those of another org."""
        server = self.em()
        ann = server.user("ann", org="acme")
        bob = server.user("bob", org="other")
        held = self.post(server, token=ann, to="Rick", type="GO",
                         reference="R-1")
        self.assertEqual(held["routing_decision"], "HOLD_PENDING_INPUT")
        # Z answers bob about what bob calls R-1.
        done = self.post(server, token=bob, to="Z", type="X", reference="R-1")
        self.over(server, done["task_id"])
        self.assertEqual(server.call(
            "GET", "/api/tasks/" + held["task_id"]).json()["status"], "held")
        again = self.post(server, token=ann, to="Rick", type="GO",
                          reference="R-1", message_id="2")
        self.assertEqual(again["routing_decision"], "HOLD_PENDING_INPUT")
        # And a colleague about ann's.
        carol = server.user("carol", org="acme")
        self.post(server, token=carol, to="Z", type="X", reference="R-1")
        self.over(server, held["task_id"])
        self.over(server, again["task_id"])

    def test_scopes(self):
        server = self.em()
        weak = server.call("POST", "/api/tokens", {
            "scopes": ["read"]}).json()["token"]
        self.assertEqual(self.error(server, 403, token=weak, **WHOLE)["code"],
                         "not_allowed")
        self.assertEqual(server.call("POST", "/api/envelopes", WHOLE,
                                     token=None).status, 401)


class Repeats(Stage):
    def test_the_same_id_is_the_same_message(self):
        server = self.em()
        first = self.post(server, **WHOLE, message_id="MSG-001")
        self.assertEqual(first["message_id"], "MSG-001")
        again = self.post(server, **WHOLE, message_id="MSG-001")
        self.assertEqual((again["routing_decision"], again["task_id"]),
                         ("DROP_SILENTLY", first["task_id"]))
        self.assertIn(first["task_id"], again["reason"])
        with Hub(server) as hub:
            third = hub.call("message.send", envelope={
                **WHOLE, "message_id": "MSG-001"})
        self.assertEqual((third["routing"]["routing_decision"],
                          third["task_id"]),
                         ("DROP_SILENTLY", first["task_id"]))
        self.assertEqual(len(server.call("GET", "/api/tasks").json()["items"]),
                         1)

    def test_the_same_id_for_something_else_is_refused(self):
        server = self.em()
        self.post(server, **WHOLE, message_id="MSG-001")
        error = self.error(server, 422, **{
            **WHOLE, "payload": {"confidence_score": 1}}, message_id="MSG-001")
        self.assertEqual(error["code"], "idempotency_mismatch")

    def test_ids_of_others_are_their_own(self):
        server = self.em()
        got = [self.post(server, token=server.user(name), to="Z", type="X",
                         message_id="MSG-001") for name in ("ann", "bob")]
        self.assertEqual([g["routing_decision"] for g in got],
                         ["ROUTE_IMMEDIATELY"] * 2)
        self.assertNotEqual(got[0]["task_id"], got[1]["task_id"])


class Command(Stage):
    def file(self, text):
        path = os.path.join(self.home, "envelope.json")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def test_from_a_file_or_a_pipe(self):
        server = self.em()
        path = self.file(json.dumps(WHOLE))
        said = self.good("send", "--envelope", path)
        self.assertIn("decision    ROUTE_IMMEDIATELY\n", said)
        self.assertIn("target      Z\n", said)
        self.assertIn("priority is NORMAL", said)
        got, = self.lines("send", "--envelope", "-", stdin=json.dumps(
            {**WHOLE, "message_id": "M"}).encode())
        self.assertEqual((got["message_id"], got["original_to"]), ("M", "Z"))
        self.over(server, got["task_id"])
        said = self.good("send", "--envelope", self.file(json.dumps(
            {**WHOLE, "timestamp": moment(-8 * 86400 - 60)})))
        self.assertIn("warning     timestamp is 8 days ago\n", said)

    def test_what_is_wrong_is_told(self):
        self.em()
        path = self.file('{"to":"Z",\n"type":}')
        status, _, err = self.run_it("send", "--envelope", path)
        self.assertEqual(status, USAGE, err)
        self.assertIn("envelope.json:2:8:", err)
        path = self.file('{"to":"Z","type":"X","priority":"SOON"}')
        status, _, err = self.run_it("send", "--envelope", path)
        self.assertEqual(status, USAGE, err)
        self.assertIn("URGENT", err)
        status, _, err = self.run_it("send", "--envelope", path, "hello")
        self.assertEqual(status, USAGE, err)
        status, _, err = self.run_it("send", "--envelope", "/nowhere")
        self.assertIn("cannot read /nowhere", err)


if __name__ == "__main__":
    unittest.main()
