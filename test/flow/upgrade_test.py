"""A data folder of version 0.1.0 (v0.1.0/make.py says how it was made) is
opened by the server of today, and everything in it is there."""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from cards import names
from signalbox import Server, eventually

OLD = os.path.join(os.environ["SIGNALBOX_SOURCE"], "test", "flow", "v0.1.0")
sys.path.insert(0, OLD)
from make import CONFIG, KEY  # noqa: E402 pylint: disable=wrong-import-position

# What is old is not to be removed, however old it is by now.
KEEPS = {"retention": {"days": 36500}}


class Upgrade(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="signalbox-test-")
        self.addCleanup(folder.cleanup)
        subprocess.run(["tar", "-C", folder.name, "-xJf",
                        os.path.join(OLD, "data.tar.xz")], check=True)
        with open(os.path.join(OLD, "said.json"), encoding="ascii") as f:
            self.said = json.load(f)
        self.enterContext(mock.patch.dict(os.environ, {"OLD_KEY": KEY}))
        self.server = self.enterContext(Server(
            data=folder.name, token=self.said["admin"],
            config={**CONFIG, **KEEPS}))

    def get(self, who, path):
        got = self.server.call("GET", path, token=self.said[who])
        self.assertEqual(got.status, 200, got)
        return got.json()

    def test_agents_and_what_is_said_of_them(self):
        self.assertEqual(names(self.server, "/api/agents"),
                         ["echo", "engineer", "never", "poet", "shared"])
        poet = self.get("anna", "/api/agents/poet")
        self.assertEqual((poet["review"]["state"],
                          poet["review"]["card"]["title"]),
                         ("waiting", "Bard"))
        self.assertEqual(poet["authentication"]["credentials"], "…set…")
        self.assertEqual(self.get("admin", "/api/agents/poet/reports")
                         ["items"][0]["reason"], "Bad rhymes")
        self.assertEqual(self.get("anna", "/api/grants")["items"][0]["user"],
                         "otto")
        self.assertIn("engineer", names(
            self.server, "/api/agents/search?q=repairs+software"))

    def test_tasks_decisions_and_money(self):
        paid = self.get("otto", "/api/tasks/" + self.said["paid"])
        self.assertEqual((paid["status"], paid["agent"], paid["text"]),
                         ("completed", "engineer", "why does this segfault"))
        decision = self.get("otto", "/api/decisions/" + self.said["decision"])
        self.assertEqual(decision["price_micros"], 1500)
        self.assertEqual(self.get("otto", "/api/ledger/balance")
                         ["balance_micros"], 1000000 - 2 * 1500)
        self.assertTrue(self.get("admin", "/api/ledger/check")
                        ["is_right"])
        budget = self.get("admin", "/api/budgets")["items"][0]
        self.assertEqual((budget["name"], budget["limit_micros"]),
                         ("otto", 900000))
        talk = self.get("otto", "/api/conversations/old%20talk")
        self.assertEqual(talk["agent"], "engineer")

    def test_what_was_open_goes_on_and_new_work_is_taken(self):
        eventually(lambda: self.get("otto", "/api/tasks/" + self.said["open"])
                   ["status"] in ("queued", "dispatched", "working",
                                  "expired"), "it is known")
        answer = self.server.send("again", to="echo")
        self.assertEqual(answer.json()["text"], "again")
        answer = self.server.call("POST", "/api/messages", {
            "text": "and this", "conversation_id": "old talk"},
            token=self.said["otto"])
        self.assertEqual((answer.status, answer.json()["agent"]),
                         (200, "engineer"), answer)


if __name__ == "__main__":
    unittest.main()
