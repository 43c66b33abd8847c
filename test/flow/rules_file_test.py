"""The rules of the gate as a file: what a start, a check and a running server
make of one, and that the schema for editors says the same of it."""
import copy
import json
import os
import re
import signal
import subprocess
import tempfile
import unittest

import jsonschema

from signalbox import (BINARY, Server, clean_environment, eventually,
                       refuses_to_start)

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
EXAMPLE = os.path.join(ROOT, "examples", "em", "routing_rules.json")
SCHEMA = os.path.join(ROOT, "docs", "routing_rules.schema.json")
USAGE = 2


def without_comments(text):
    """Those of the example stand on lines of their own."""
    return json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.M))


def example():
    with open(EXAMPLE, encoding="utf-8") as f:
        return without_comments(f.read())


def put(document, path, value):
    """A copy with one value changed; None takes it out."""
    document = copy.deepcopy(document)
    at = document
    for step in path[:-1]:
        at = at[step]
    if value is None:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return document


# What is wrong by its form alone: an editor shows it, and the server refuses
# it. Each is one change to the example.
BAD_FORM = [
    (("saftey_gates",), []),
    (("sla",), {}),
    (("sla", 0), "x"),
    (("sla", 0, "rule"), None),
    (("sla", 0, "rule"), ""),
    (("sla", 0, "rule"), "x" * 101),
    (("sla", 0, "witin"), "1m"),
    (("sla", 0, "within"), None),
    (("sla", 0, "within"), "15 minutes"),
    (("sla", 0, "within"), "1.5h"),
    (("sla", 0, "within"), 0),
    (("sla", 0, "within"), "0s"),
    (("sla", 0, "within"), -1),
    (("sla", 0, "within"), 2.5),
    (("sla", 0, "match"), "Jay"),
    (("sla", 0, "match"), {"tpye": "A"}),
    (("sla", 0, "match"), {"to": []}),
    (("sla", 0, "match"), {"to": 5}),
    (("sla", 0, "match"), {"priority": "urgent"}),
    (("sla", 0, "match"), {"priority": []}),
    (("sla", 0, "when"), True),
    (("sla", 0, "when"), {"grater": [1, 2]}),
    (("priorities", 0, "priority"), "TOP"),
    (("priorities", 0, "match"), {}),
    (("priorities", 0, "match"), None),
    (("duplicates", 0, "same"), []),
    (("duplicates", 0, "same"), ["form"]),
    (("duplicates", 0, "same"), ["payload."]),
    (("superseding", 0, "match"), None),
    (("superseding", 0, "match"), {"to": "Z"}),
    (("safety_gates", 0, "agent"), None),
    (("safety_gates", 0, "match"), {}),
    (("safety_gates", 0, "states"), ["DAED"]),
    (("safety_gates", 0, "on_expiry"), "drop"),
    (("escalations", 0, "within"), None),
    (("escalations", 0, "same"), None),
    (("escalations", 1), {"rule": "all"}),
    (("dependencies", 0, "after"), None),
    (("dependencies", 0, "after"), []),
    (("dependencies", 0, "after"), ["SUBMISSION"]),
    (("dependencies", 0, "after", 0, "type"), None),
    (("dependencies", 0, "after", 0, "aproved"), True),
    (("dependencies", 0, "after", 0, "approved"), "yes"),
    (("freshness", 0, "within"), None),
    (("capacity", 0, "queue"), 0),
    (("capacity", 0, "queue"), None),
    (("capacity", 0, "batch"), {"most": 1}),
    (("capacity", 0, "batch"), {}),
    (("agents",), ["Jay"]),
    (("agents", "J y"), {}),
    (("agents", "Jay"), 1),
    (("agents", "Jay", "takeover"), "auto"),
    (("agents", "Z", "takeover"), "yes"),
    (("agents", "Z", "owner"), "a b"),
    (("agents", "Z", "owner"), 1),
    (("agents", "Jay", "restart"), {"attempts": 101}),
    (("channels", "ops"), {"takes": ["alerts"]}),
    (("channels", "#ops"), {}),
    (("channels", "#alerts", "takes"), ["alert"]),
    (("channels", "#alerts", "webhook"), {"url": "ftp://x"}),
    (("channels", "#alerts", "webhook"), {"form": "slack"}),
    (("channels", "#alerts", "webhook"), {"url": "http://x/", "form": "teams"}),
    (("channels", "#alerts", "file"), {"keep": 1}),
    (("holds", "most"), 0),
    (("people", "on_expiry"), "aprove"),
    (("timestamps", "future"), 0),
    (("targets", "lost"), -1),
]

# What only who knows the whole can tell.
BAD_SENSE = [
    (("sla", 0, "match"), {"to": "Zed"}, '"Zed" is not declared'),
    (("sla", 0, "rule"), "z-answers-requests", "the name is already used"),
    (("sla", 0, "within"), "400d", '"366d" at most'),
    (("sla", 0, "when"), {"var": "mesage.type"}, 'did you mean "message"?'),
    (("sla", 0, "when"), {"==": [1]}, "=="),
    (("agents", "jay"), {}, "declared twice"),
    (("agents", "Jay", "backup"), "Jay", "cannot stand in for itself"),
    (("dependencies", 0, "after"),
     {"type": "SUBMISSION_REQUEST"}, "jay-submitted-and-z-approved -> "
     "jay-submitted-and-z-approved"),
]


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.rules = os.path.join(self.folder.name, "routing_rules.json")
        self.config = os.path.join(self.folder.name, "signalbox.jsonc")
        with open(self.config, "w", encoding="utf-8") as f:
            f.write('{\n  "rules": "routing_rules.json"\n}\n')

    def write(self, text):
        """As editors do: another file in its place."""
        with open(self.rules + ".new", "w", encoding="utf-8") as f:
            f.write(text if isinstance(text, str) else json.dumps(text))
        os.rename(self.rules + ".new", self.rules)

    def check(self):
        run = subprocess.run([BINARY, "check", self.config, "--json"],
                             env=clean_environment(), stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, check=False)
        return run.returncode, run.stdout.decode()


class Schema(Folder):
    def setUp(self):
        super().setUp()
        with open(SCHEMA, encoding="utf-8") as f:
            schema = json.load(f)
        jsonschema.Draft7Validator.check_schema(schema)
        self.judge = jsonschema.Draft7Validator(schema)

    def test_the_example_is_taken_by_both(self):
        self.assertEqual(list(self.judge.iter_errors(example())), [])
        with open(EXAMPLE, encoding="utf-8") as f:
            self.write(f.read())
        status, said = self.check()
        self.assertEqual(status, 0, said)

    def test_bad_form_is_refused_by_both(self):
        good = example()
        for path, value in BAD_FORM:
            with self.subTest(path=path, value=value):
                bad = put(good, path, value)
                self.assertFalse(self.judge.is_valid(bad))
                self.write(bad)
                status, said = self.check()
                self.assertEqual(status, USAGE, said)
                self.assertRegex(json.loads(said)["problems"][0]["message"],
                                 r"routing_rules\.json:1:\d+: ")

    def test_bad_sense_is_refused_by_the_server(self):
        good = example()
        for path, value, words in BAD_SENSE:
            with self.subTest(path=path, value=value):
                self.write(put(good, path, value))
                status, said = self.check()
                self.assertEqual(status, USAGE, said)
                self.assertIn(words, json.loads(said)["problems"][0]["message"])


TWO_MISTAKES = """{
  // no one is declared
  "sla": [
    { "rule": "a", "within": "15 minutes" },
    { "rule": "b", "within": "15m", "match": { "to": "Z" } }
  ]
}
"""


class Start(Folder):
    def test_a_bad_file_keeps_it_from_starting_with_all_its_words(self):
        self.write(TWO_MISTAKES)
        data = os.path.join(self.folder.name, "data")
        status, said = refuses_to_start("serve", "--config", self.config,
                                        "--data", data, "--listen",
                                        "127.0.0.1:0")
        self.assertNotEqual(status, 0)
        self.assertIn("routing_rules.json:4:30: ", said)
        self.assertIn("routing_rules.json:5:54: ", said)
        self.assertNotIn("listening", said)

    def test_a_file_that_is_not_there_keeps_it_from_starting(self):
        status, said = refuses_to_start(
            "serve", "--config", self.config, "--data",
            os.path.join(self.folder.name, "data"), "--listen", "127.0.0.1:0")
        self.assertNotEqual(status, 0)
        self.assertIn("routing_rules.json: it cannot be read", said)

    def test_check_tells_all_of_it(self):
        self.write(TWO_MISTAKES)
        run = subprocess.run([BINARY, "check", self.config],
                             env=clean_environment(), stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, check=False)
        said = " ".join(run.stdout.decode().split())
        self.assertEqual(run.returncode, USAGE)
        self.assertIn("signalbox.jsonc:2:12: rules: ", said)
        self.assertIn('routing_rules.json:4:30: rule "a": "within" must be a '
                      "duration", said)
        self.assertIn('routing_rules.json:5:54: rule "b": "Z" is not declared',
                      said)
        self.assertIn("2 errors", said)


class Found(Folder):
    """No one names it: beside the configuration, else in the data folder."""

    ONE = {"agents": {"echo": {}}, "escalations": [
        {"rule": "seen", "match": {"to": "echo"}}]}

    def setUp(self):
        super().setUp()
        self.data = os.path.join(self.folder.name, "data")
        os.mkdir(self.data, 0o700)
        self.configure()

    def configure(self, **more):
        with open(self.config, "w", encoding="utf-8") as f:
            json.dump({"agents": {"list": [{"id": "echo", "url": "echo:"}]},
                       **more}, f)

    def found(self, server):
        lines = [json.loads(line) for line in server.said().splitlines()
                 if line.startswith("{")]
        return [(line["file"], line["because"]) for line in lines
                if line.get("event") == "rules.found"]

    def file_of(self, server):
        return server.call("GET", "/api/gate").json()["rules"]["file"]

    def test_beside_the_configuration(self):
        self.write(self.ONE)
        with Server("--config", self.config) as server:
            self.assertEqual(self.found(server), [
                (self.rules, "it lies beside the configuration")])
            self.assertEqual(self.file_of(server), self.rules)
            self.assertEqual(server.send("hi", wait_ms=0).json()["status"],
                             "escalated")
            self.write({})
            eventually(lambda: server.send("hi").json()["status"] ==
                       "completed", "the file that changed counts")
        status, said = self.check()
        self.assertEqual(status, 0, said)

    def test_in_the_data_folder(self):
        path = os.path.join(self.data, "routing_rules.json")
        self.write(self.ONE)
        os.rename(self.rules, path)
        with Server("--config", self.config, data=self.data) as server:
            self.assertEqual(self.found(server), [
                (path, "it lies in the data folder")])
            self.assertEqual(server.send("hi", wait_ms=0).json()["status"],
                             "escalated")

    def test_none_and_not_wanted(self):
        with Server("--config", self.config) as server:
            self.assertEqual(self.found(server), [])
            self.assertEqual(self.file_of(server), None)
        self.write(self.ONE)
        self.configure(rules="")
        with Server("--config", self.config) as server:
            self.assertEqual(self.found(server), [])
            self.assertEqual(server.send("hi").json()["status"], "completed")

    def test_a_reload_finds_it_and_one_that_is_gone_is_missed(self):
        with Server("--config", self.config) as server:
            self.write(self.ONE)
            server.process.send_signal(signal.SIGHUP)
            eventually(lambda: self.file_of(server) == self.rules, "it is found")
            os.unlink(self.rules)
            server.process.send_signal(signal.SIGHUP)
            eventually(lambda: "rules.not_loaded" in server.said(),
                       "it is missed")
            self.assertEqual(server.send("hi", wait_ms=0).json()["status"],
                             "escalated")

    def refused(self):
        status, said = refuses_to_start("serve", "--config", self.config,
                                        "--data", self.data, "--listen",
                                        "127.0.0.1:0")
        self.assertNotEqual(status, 0)
        return said

    def test_one_that_counted_and_is_gone_keeps_it_from_starting(self):
        self.write(self.ONE)
        with Server("--config", self.config, data=self.data) as server:
            self.assertEqual(len(self.found(server)), 1)
            os.unlink(self.rules)
            eventually(lambda: "a start would fail until it is back" in
                       server.said(), "it is missed, in words for one found")
        self.assertIn(f"{self.rules} was in use and is gone: "
                      "put it back", self.refused())
        self.configure(data=self.data)
        status, said = self.check()
        self.assertEqual(status, USAGE, said)
        self.assertIn("put it back", said)
        self.configure(rules="")
        with Server("--config", self.config, data=self.data) as server:
            self.assertIn('"event":"rules.none"', server.said())
        self.configure()
        with Server("--config", self.config, data=self.data) as server:
            self.assertIn("no file was found", server.said())

    def test_a_link_that_leads_nowhere_keeps_it_from_starting(self):
        os.symlink(os.path.join(self.folder.name, "gone"), self.rules)
        self.assertIn("a link that leads nowhere", self.refused())

    def test_none_is_taken_from_the_current_folder(self):
        self.write(self.ONE)
        os.unlink(self.config)
        with Server(before=("env", "-C", self.folder.name)) as server:
            self.assertEqual(self.found(server), [])

    def test_a_bad_one_keeps_it_from_starting(self):
        self.write(TWO_MISTAKES)
        status, said = refuses_to_start("serve", "--config", self.config,
                                        "--data", self.data, "--listen",
                                        "127.0.0.1:0")
        self.assertNotEqual(status, 0)
        self.assertIn("routing_rules.json:4:30: ", said)
        status, said = self.check()
        self.assertEqual(status, USAGE, said)
        self.assertIn("routing_rules.json:4:30: ", said)


class Reload(Folder):
    def loaded(self, server):
        found = [json.loads(line) for line in server.said().splitlines()
                 if line.startswith("{")]
        return [line["rules"] for line in found
                if line.get("event") == "rules.loaded"]

    def test_a_changed_file_is_taken_up_and_a_bad_one_is_not(self):
        self.write({"sla": [{"rule": "a", "within": "1m"}]})
        with Server("--config", self.config) as server:
            self.assertEqual(self.loaded(server), [1])
            self.write(TWO_MISTAKES)
            eventually(lambda: "rules.not_loaded" in server.said(),
                       "a look at the bad one")
            self.assertEqual(self.loaded(server), [1])
            self.assertEqual(server.said().count("rules.problem"), 2)
            self.assertIn("routing_rules.json:5:54", server.said())
            self.assertEqual(server.get("/healthz").status, 200)
            self.write({"sla": [{"rule": "a", "within": "1m"},
                                {"rule": "b", "within": "1m"}]})
            eventually(lambda: self.loaded(server) == [1, 2], "the next good")

    def test_what_it_says_counts_from_then_on(self):
        """A message that went is a message that a person must see."""
        self.write({})
        with open(self.config, "w", encoding="utf-8") as f:
            json.dump({"rules": "routing_rules.json", "agents": {
                "list": [{"id": "echo", "url": "echo:"}]}}, f)
        with Server("--config", self.config) as server:
            self.assertEqual(server.send("hi").json()["status"], "completed")
            self.write({"agents": {"echo": {}}, "escalations": [
                {"rule": "seen", "match": {"to": "echo"}}]})
            eventually(lambda: self.loaded(server) == [0, 1], "the rules")
            answer = server.send("hi", wait_ms=0)
            self.assertIn(answer.status, (200, 202), answer)
            self.assertEqual(answer.json()["status"], "escalated")


if __name__ == "__main__":
    unittest.main()
