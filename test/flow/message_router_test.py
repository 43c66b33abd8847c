"""client/python/message_router.py: seed 002's usage, word for word, through
the library; rules from a file, what is wrong in words, and a server."""
import glob
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, HTTPServer
from unittest import mock

SOURCE = os.environ["SIGNALBOX_SOURCE"]
PATH = os.path.join(SOURCE, "client/python/message_router.py")
spec = importlib.util.spec_from_file_location("message_router", PATH)
router = importlib.util.module_from_spec(spec)
spec.loader.exec_module(router)
route_message = router.route_message

NOW = "2025-02-15T09:00:15Z"
RULES = {
    "agents": {"Jay": {}, "Z": {}},
    "escalations": [{"rule": "unsure", "when": {
        "<": [{"var": "message.payload.confidence_score"}, 6.5]}}],
    "freshness": [{"rule": "fresh", "match": {"to": "Z"}, "within": "4h"}],
    "sla": [{"rule": "answers", "match": {"to": "Z"}, "within": "15m"}],
}
STATE = {"agents": {"Z": {"state": "ACTIVE",
                          "data_at": "2025-02-15T07:00:00Z"}}}


def envelope(**more):
    return {"from": "Jay", "to": "Z", "type": "REQUEST", "priority": "NORMAL",
            "timestamp": "2025-02-15T09:00:00Z", "reference": "SUBM-C042-001",
            "payload": {"confidence_score": 8.2}, "context": "…", **more}


class Library(unittest.TestCase):
    def test_the_seeds_example(self):
        decision = route_message(envelope(message_id="MSG-001"), STATE, RULES,
                                 NOW)
        self.assertEqual(decision, {
            "message_id": "MSG-001", "original_from": "Jay",
            "original_to": "Z", "routing_decision": "ROUTE_IMMEDIATELY",
            "target": "Z", "reason": "Z has fresh data (2 hours old), no "
            "dependency violations, priority is NORMAL",
            "timestamp": NOW, "sla": "Expected Z response within 15 minutes",
            "logged": False, "posted_to_channel": None, "rule": None,
            "held_until": None, "priority": "NORMAL", "waits_for": [],
            "repeats": None, "task_id": None, "escalation_id": None,
            "status": None, "type": "REQUEST",
            "reference": "SUBM-C042-001", "stale": False, "warnings": []})

    def test_what_it_may_cost_changes_no_decision(self):
        said = envelope(message_id="MSG-001")
        for cost in (0, 10 ** 18, None):
            self.assertEqual(
                route_message({**said, "max_cost_micros": cost}, STATE, RULES,
                              NOW),
                route_message(said, STATE, RULES, NOW))
        for bad in (-1, 10 ** 18 + 1, 0.5, "5"):
            with self.assertRaises(router.RouterError) as e:
                route_message({**said, "max_cost_micros": bad}, STATE, RULES,
                              NOW)
            self.assertIn("max_cost_micros", str(e.exception))

    def test_the_seeds_usage(self):
        system_state = {"agents": {"Z": "ACTIVE"}}
        decision = route_message(
            envelope(timestamp=datetime.now().isoformat()), system_state)
        self.assertEqual(decision["routing_decision"], "ROUTE_IMMEDIATELY")

    def test_rules_from_files(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "routing_rules.json")
            with open(path, "w", encoding="utf-8") as f:
                f.write("// ours\n" + json.dumps(RULES))
            low = envelope(payload={"confidence_score": 2})
            self.assertEqual(route_message(low, STATE, path, NOW)["rule"],
                             "unsure")
            with mock.patch.dict(os.environ, SIGNALBOX_RULES=path):
                self.assertEqual(route_message(low, STATE, now=NOW)["rule"],
                                 "unsure")
            here = os.getcwd()
            os.chdir(folder)
            try:
                self.assertEqual(route_message(low, STATE, now=NOW)["rule"],
                                 "unsure")
                # Changed rules count at once.
                with open(path, "w", encoding="utf-8") as f:
                    f.write("{}")
                self.assertIsNone(route_message(low, STATE, now=NOW)["rule"])
            finally:
                os.chdir(here)

    def test_now_in_every_form(self):
        at = datetime(2025, 2, 15, 9, 0, 15, tzinfo=timezone.utc)
        for now in (NOW, at, at.replace(tzinfo=None), at.timestamp()):
            self.assertEqual(
                route_message(envelope(), STATE, RULES, now)["timestamp"], NOW)

    def test_trace(self):
        trace = route_message(envelope(), STATE, RULES, NOW,
                              trace=True)["trace"]
        self.assertIn(("freshness", "fresh", False),
                      [(t["section"], t["rule"], t["fired"]) for t in trace])

    def assert_refused(self, code, words, *args, **kwargs):
        with self.assertRaises(router.RouterError) as caught:
            route_message(*args, **kwargs)
        self.assertEqual(caught.exception.code, code)
        self.assertIn(words, str(caught.exception))

    def test_what_is_wrong_is_said(self):
        self.assert_refused("bad_request", 'needs "from"', {"to": "Z"}, STATE)
        self.assert_refused("bad_request", "the state is not JSON", envelope(),
                            "{")
        self.assert_refused("bad_request", "is no JSON", envelope(to={1}),
                            STATE)
        self.assert_refused("bad_rules", "rules:1:", envelope(), STATE,
                            {"escalation": []})
        self.assert_refused("bad_rules", "cannot read", envelope(), STATE,
                            "/nowhere/rules.json")
        self.assert_refused("bad_request", "now is no time", envelope(), STATE,
                            now="soon")

    def test_many_threads(self):
        said = []

        def ask():
            for _ in range(50):
                said.append(route_message(envelope(), STATE, RULES, NOW))
        threads = [threading.Thread(target=ask) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(len(said), 200)
        self.assertTrue(all(d == said[0] for d in said))


# Seed 002's snippet, but that what it leaves out is said.
SNIPPET = """
from datetime import datetime
system_state = {"agents": {"Z": "ACTIVE"}}

from message_router import route_message

# Route a single message
envelope = {
    "from": "Jay",
    "to": "Z",
    "type": "REQUEST",
    "priority": "NORMAL",
    "timestamp": datetime.now().isoformat(),
    "reference": "SUBM-C042-001",
    "payload": {},
    "context": "..."
}

decision = route_message(envelope, system_state)

import json, message_router
print(json.dumps([decision, message_router._load()._name]))
"""


class Installed(unittest.TestCase):
    """In an environment of its own, which knows nothing of the build."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.realpath(folder.name)
        self.env = os.path.join(self.folder, "env")
        self.python = os.path.join(self.env, "bin/python")
        self.run_clean(sys.executable, "-m", "venv", self.env)

    def run_clean(self, *command, status=0, **env):
        run = subprocess.run(
            command, cwd=self.folder, check=False, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, env={"PATH": "/usr/bin:/bin",
                                           "TZ": "LINT-14", **env})
        self.assertEqual(run.returncode, status, run.stdout.decode())
        return run.stdout.decode()

    def packages(self):
        return glob.glob(os.path.join(self.env, "lib/python3*/site-packages"))[0]

    def check_snippet(self, library, **env):
        decision, used = json.loads(
            self.run_clean(self.python, "-c", SNIPPET, **env))
        self.assertEqual(decision["routing_decision"], "ROUTE_IMMEDIATELY")
        self.assertEqual(decision["target"], "Z")
        # It is 14 hours later there than in UTC.
        self.assertRegex(decision["warnings"][0],
                         "^timestamp is 1[34] hours ahead of the clock here")
        self.assertEqual(used, library)

    def test_the_wheel_brings_the_library_along(self):
        self.run_clean(self.python, "-m", "pip", "install", "--no-index",
                       "--disable-pip-version-check", os.environ["WHEEL"])
        self.check_snippet(os.path.join(self.packages(),
                                        "libsignalbox-gate.so"))
        said = self.run_clean(self.python, "-m", "pip", "show", "-f",
                              "--disable-pip-version-check", "signalbox")
        self.assertIn("libsignalbox-gate.so", said)
        self.run_clean(self.python, "-m", "pip", "uninstall", "-y",
                       "--disable-pip-version-check", "signalbox")
        self.assertIn("No module named", self.run_clean(
            self.python, "-c", SNIPPET, status=1))

    def test_a_copy_finds_what_is_installed(self):
        shutil.copy(PATH, self.packages())
        # Nothing is: it says what to do.
        if not glob.glob("/usr/local/lib*/**/libsignalbox-gate.so.0",
                         recursive=True):
            self.assertIn("install the wheel", self.run_clean(
                self.python, "-c", SNIPPET, status=1))
        # With the server, somewhere.
        there = os.path.join(self.folder, "opt/lib/some-linux-gnu")
        command = os.path.join(self.folder, "opt/bin/signalbox")
        os.makedirs(there)
        os.makedirs(os.path.dirname(command))
        with open(command, "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\n")
        os.chmod(command, 0o755)
        library = os.path.join(there, "libsignalbox-gate.so.0")
        shutil.copy(os.environ["SIGNALBOX_GATE_LIB"], library)
        self.check_snippet(library, PATH=os.path.dirname(command))
        # In the environment itself: meson's --prefix.
        within = os.path.join(self.env, "lib/libsignalbox-gate.so.0")
        shutil.copy(library, within)
        self.check_snippet(within, PATH=os.path.dirname(command))


class Server(unittest.TestCase):
    """What is asked of a server; the real one answers in gate_test.py."""

    def setUp(self):
        asked = self.asked = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                asked.append((self.path, self.headers["Authorization"],
                              json.loads(body)))
                bad = b"refuse" in body
                answer = b'{"error":{"code":"from_mismatch","message":"no"}}' \
                    if bad else b'{"routing_decision":"ROUTE_IMMEDIATELY"}'
                self.send_response(403 if bad else 200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *args):
                pass
        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def tearDown(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def test_a_server_that_is_named(self):
        decision = route_message(envelope(), server=self.url + "/", token="t")
        self.assertEqual(decision["routing_decision"], "ROUTE_IMMEDIATELY")
        self.assertEqual(self.asked, [("/api/gate", "Bearer t", {
            "envelope": envelope(), "trace": False})])

    def test_by_the_environment(self):
        with mock.patch.dict(os.environ, SIGNALBOX_URL=self.url,
                             SIGNALBOX_TOKEN="e"):
            route_message(envelope())
            self.assertEqual(self.asked[0][1], "Bearer e")
            route_message(envelope(), STATE)
            self.assertEqual(len(self.asked), 2)
            # Rules of one's own are for the library.
            route_message(envelope(), STATE, RULES)
            route_message(envelope(), STATE, server="")
            self.assertEqual(len(self.asked), 2)

    def test_a_refusal_and_nobody_there(self):
        with self.assertRaises(router.RouterError) as caught:
            route_message(envelope(type="refuse"), server=self.url)
        self.assertEqual(caught.exception.code, "from_mismatch")
        with self.assertRaises(router.RouterError) as caught:
            route_message(envelope(), server="http://127.0.0.1:1")
        self.assertEqual(caught.exception.code, "unreachable")


if __name__ == "__main__":
    unittest.main()
