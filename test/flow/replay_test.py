"""signalbox replay: recorded decisions decide themselves again, after a crash
too, and by other settings otherwise; what is known of the changes is counted."""
import json
import os
import shutil
import sqlite3
import subprocess
import tempfile
import unittest

from cards import register
from classifier import Classifier, sure
from signalbox import BINARY, Server, clean_environment

AGENTS = [
    {"id": "cook", "url": "echo:", "description": "Cooks meals and finds "
     "recipes", "routing": {"keywords": ["recipe"]}},
    {"id": "coder", "url": "echo:", "description": "Writes and mends "
     "programs, debugs code"},
    {"id": "main", "url": "echo:", "description": "Anything else"},
]
CONFIG = {
    "agents": {"list": AGENTS, "default": "main"},
    "bindings": [{"agentId": "coder", "match": {"channel": "telegram"}}],
    "routing": {"explore": 0.3, "closeMargin": 0.2},
}
TEXTS = [
    ("find a recipe and cook meals", {}),
    ("debug my code", {}),
    ("mend a program that cooks", {}),
    ("qwzx", {}),
    ("/coder hello", {}),
    ("whatever", {"executor": {"name": "cook"}}),
    ("hello", {"source": {"channel": "telegram"}}),
    ("cook something", {"conversation_id": "c-1"}),
    ("debug it", {"conversation_id": "c-1"}),
    ("/main enough", {"conversation_id": "c-1"}),
]


class Replay(unittest.TestCase):
    def setUp(self):
        self.data = tempfile.mkdtemp(prefix="signalbox-test-")
        self.addCleanup(shutil.rmtree, self.data, True)

    def replay(self, server, *args, token=None, command="replay"):
        env = {**clean_environment(), "SIGNALBOX_URL": server.url,
               "SIGNALBOX_TOKEN": token or server.token}
        return subprocess.run([BINARY, command, *args], env=env, text=True,
                              capture_output=True, timeout=60, check=False,
                              cwd=self.data)

    def sums(self, server, *args, **more):
        done = self.replay(server, "--json", *args, **more)
        self.assertEqual(done.returncode, 0, done)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        return lines[:-1], lines[-1]

    def send_all(self, server):
        said = {}
        server.ready()
        for text, fields in TEXTS:
            r = server.call("POST", "/api/messages", {"text": text, **fields})
            self.assertEqual(r.status, 200, r)
            said[text] = r.json()["decision"]
        return said

    def config(self, **routing):
        path = os.path.join(self.data, "new.jsonc")
        with open(path, "w", encoding="utf-8") as f:
            json.dump({**CONFIG, "routing": {**CONFIG["routing"], **routing}},
                      f)
        return path

    def test_every_decision_of_before_a_crash_comes_out_as_it_was(self):
        folder = os.path.join(self.data, "kept")
        with Classifier() as classifier:
            # As sure of it as not.
            classifier.answer = lambda q: sure(
                q["agents"][-1]["agentId"], len(classifier.questions) % 2)
            config = {**CONFIG, "routing": {
                **CONFIG["routing"], "intentClassifier": {
                    "enabled": True, "endpoint": classifier.url,
                    "model": "m", "timeoutMs": 30000}}}
            with Server(config=CONFIG, data=folder) as server:
                token = server.token
                for _ in range(3):
                    self.send_all(server)
                server.kill9()
            with Server(config=config, data=folder, token=token) as server:
                self.send_all(server)
                server.kill9()
        with Server(config=CONFIG, data=folder, token=token) as server:
            changes, sums = self.sums(server)
            self.assertEqual(changes, [])
            self.assertEqual((sums["replayed"], sums["same"]),
                             (4 * len(TEXTS), 4 * len(TEXTS)))
            done = self.replay(server)
            self.assertEqual(done.stdout, "Of 40 decisions 40 come out as "
                             "before, to the last bit, 0 do not.\n")

    def test_what_another_version_recorded_is_counted_and_shown(self):
        folder = os.path.join(self.data, "kept")
        with Server(config=CONFIG, data=folder) as server:
            token = server.token
            said = self.send_all(server)
        lost = said["debug my code"]["id"]
        db = sqlite3.connect(os.path.join(folder, "signalbox.db"))
        self.assertEqual(db.execute(
            "UPDATE decision SET body = x'ff' WHERE id = ?",
            (lost,)).rowcount, 1)
        db.commit()
        db.close()
        with Server(config=CONFIG, data=folder, token=token) as server:
            _, sums = self.sums(server)
            self.assertEqual(
                (sums["replayed"], sums["same"], sums["not_read"]),
                (len(TEXTS), len(TEXTS) - 1, 1))
            self.assertIn("1 was recorded by another version and cannot "
                          "be read.", self.replay(server).stdout)
            items = server.call("GET", "/api/decisions").json()["items"]
            self.assertEqual(
                [list(d) for d in items if d["id"] == lost],
                [["id", "at_ms", "unreadable"]])
            self.assertEqual(len(items), len(TEXTS))
            got = server.call("GET", f"/api/decisions/{lost}")
            self.assertEqual(got.status, 500, got)
            self.assertIn("another version", got.json()["error"]["message"])
            listed = self.replay(server, command="decisions").stdout
            self.assertRegex(listed, rf"{lost} .*\(recorded by another")

    def test_turns_switches_and_agents_that_went_come_out_as_they_were(self):
        with Server(config=CONFIG) as server:
            register(server, "passing", description="Tells fortunes")

            def send(text, **fields):
                r = server.call("POST", "/api/messages",
                                {"text": text, **fields})
                self.assertEqual(r.status, 200, r)
                return r.json()

            first = send("tell fortunes", executor={"name": "passing"},
                         conversation_id="c-2")
            turn = send("and more", task_id=first["task_id"])
            self.assertEqual(turn["decision"]["layer"], "sticky")
            r = server.call("DELETE", "/api/agents/passing")
            self.assertIn(r.status, (200, 204), r)
            said = send("debug my code", conversation_id="c-2")
            self.assertIn('"passing" is gone', said["decision"]["reason"])
            send("cook something", conversation_id="c-2",
                 executor={"name": "cook"})
            send("/coder and now " + " " * 2000 + "go",
                 conversation_id="c-2")
            send("/coder" + " " * 2000 + "go", conversation_id="c-2")
            changes, sums = self.sums(server)
            self.assertEqual((changes, sums["same"]), ([], 6))

    def test_other_settings_are_shown_with_what_is_known_of_them(self):
        with Server(config=CONFIG) as server:
            said = self.send_all(server)
            semantic = {text: d for text, d in said.items()
                        if d["layer"] == "semantic"}
            self.assertIn("debug my code", semantic)
            r = server.call("POST", "/api/decisions/" +
                            said["debug my code"]["id"] + "/override",
                            {"agent": "main"})
            self.assertEqual(r.status, 200, r)
            r = server.call("POST", "/api/decisions/" +
                            said["find a recipe and cook meals"]["id"] +
                            "/feedback", {"verdict": "right"})
            self.assertEqual(r.status, 200, r)
            changes, sums = self.sums(server, "--config",
                                      self.config(threshold=1))
            self.assertEqual({c["text"]: (c["from"], c["to"])
                              for c in changes},
                             {text: (d["agent"], "main")
                              for text, d in semantic.items()
                              if d["agent"] != "main"})
            self.assertEqual({c["to_layer"] for c in changes}, {"default"})
            outcome = {c["text"]: c["outcome"] for c in changes}
            self.assertEqual(outcome["debug my code"], "better")
            self.assertEqual(outcome["find a recipe and cook meals"], "worse")
            self.assertEqual(sums["changed"], len(changes))
            self.assertEqual(sums["replayed"], len(TEXTS))
            done = self.replay(server, "--config", self.config(threshold=1),
                               "--show", "1")
            self.assertIn("There are more: --show", done.stdout)
            self.assertIn("2 better (", done.stdout)

    def test_bindings_and_layers_count_too(self):
        with Server(config=CONFIG) as server:
            self.send_all(server)
            path = self.config(layers=["explicit", "semantic", "default"])
            changes, sums = self.sums(server, "--config", path)
            # No one was compared for what a layer before it decided.
            self.assertEqual(sums["not_known"], 4)
            with open(path, "w", encoding="utf-8") as f:
                json.dump({**CONFIG, "bindings": [
                    {"agentId": "cook", "match": {"channel": "telegram"}}]}, f)
            changes, sums = self.sums(server, "--config", path)
            self.assertEqual([(c["text"], c["from"], c["to"])
                              for c in changes], [("hello", "coder", "cook")])

    def test_one_setting_is_laid_over_those_of_then(self):
        with Server(config=CONFIG) as server:
            said = self.send_all(server)
            # What is in the folder, or not, is no one's business here.
            _, sums = self.sums(server, "--set", "routing.explore=0.3")
            self.assertEqual((sums["changed"], sums["not_known"]), (0, 0))
            self.assertEqual(sums["same"], len(TEXTS))
            changes, sums = self.sums(server, "--set", "routing.threshold=1")
            self.assertEqual({c["text"]: (c["from"], c["to"])
                              for c in changes},
                             {text: (d["agent"], "main")
                              for text, d in said.items()
                              if d["layer"] == "semantic" and
                              d["agent"] != "main"})
            changes, _ = self.sums(server, "--set", "agents.default=cook")
            self.assertEqual({(c["text"], c["to"]) for c in changes},
                             {(text, "cook") for text, d in said.items()
                              if d["layer"] == "default"})
            done = self.replay(server, "--set", "routing.threshold=1")
            self.assertIn("by the recorded settings and --set",
                          " ".join(done.stdout.split()))
            done = self.replay(server, "--set", "learning.rate=0.5")
            self.assertEqual(done.returncode, 2)
            self.assertIn("--config", done.stderr)

    def test_a_number_scores_a_record_of_auto_as_a_server_would(self):
        # For a card that messages of others are a little like.
        text, scores = "mend a program that cooks", []
        for routing in ({"threshold": 0}, {}):
            with Server(config={"agents": CONFIG["agents"],
                                "routing": routing}) as server:
                made = server.ready().call(
                    "POST", "/api/messages", {"text": text}).json()["decision"]
                self.assertEqual((made["agent"], made["tier"]),
                                 ("cook", "transformer"))
                scores.append(made["score"])
                if routing:
                    continue
                # Whatever is below the score by number goes to the same.
                self.assertLess(scores[1], scores[0])
                for at, to in ((scores[0] - 0.001, []),
                               (scores[0] + 0.001, ["main"])):
                    changes, _ = self.sums(server, "--set",
                                           f"routing.threshold={at}")
                    self.assertEqual([c["to"] for c in changes], to)

    def test_a_preset_and_the_policy_for_unsure_messages_can_be_tried(self):
        with Server(config={**CONFIG, "routing": {}}) as server:
            self.send_all(server)
            for text in ("which of these forms is for the new chairs",
                         "who won the cup final", "is it going to rain",
                         "what shall we eat tonight", "my laptop is slow"):
                server.call("POST", "/api/messages", {"text": text})
            made = server.call("GET", "/api/decisions?limit=500").json()
            unsure = {d["text"] for d in made["items"]
                      if d["band"] == "unsure"}
            self.assertTrue(unsure)
            changes, _ = self.sums(server, "--set", "routing.unsure=refuse")
            self.assertEqual({(c["text"], c["to"]) for c in changes},
                             {(text, None) for text in unsure})
            seed = self.sums(server, "--set", "routing.preset=seed")
            self.assertEqual(seed, self.sums(
                server, "--set", "routing.threshold=0.3",
                "--set", "routing.textBlend=0"))
            changes, _ = self.sums(server, "--set", "routing.preset=none")
            self.assertEqual(changes, [])

    def test_they_can_be_narrowed_and_are_ones_own(self):
        with Server(config=CONFIG) as server:
            self.send_all(server)
            _, sums = self.sums(server, "--layer", "prefix")
            self.assertEqual(sums["replayed"], 2)
            _, sums = self.sums(server, "--agent", "cook", "--since", "1h",
                                "--limit", "1")
            self.assertEqual(sums["replayed"], 1)
            anna = server.user("anna")
            _, sums = self.sums(server, token=anna)
            self.assertEqual(sums["replayed"], 0)
            done = self.replay(server, token=anna)
            self.assertEqual((done.returncode, done.stdout),
                             (0, "No decisions.\n"))

    def test_what_is_wrong_is_said(self):
        with Server(config=CONFIG) as server:
            done = self.replay(server, "--since", "yesterday")
            self.assertEqual(done.returncode, 2)
            self.assertIn("12h or 7d", done.stderr)
            done = self.replay(server, "--set", "routing.threshold=7")
            self.assertEqual(done.returncode, 2)
            self.assertIn("routing.threshold", done.stderr)
            done = self.replay(server, "--config", "/nowhere.jsonc")
            self.assertEqual(done.returncode, 2)
            done = self.replay(server, "--layer", "magic")
            self.assertEqual(done.returncode, 2)
            self.assertIn("layer must be one of", done.stderr)


if __name__ == "__main__":
    unittest.main()
