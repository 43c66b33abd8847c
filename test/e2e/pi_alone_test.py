"""Agents of which the configuration says a model and a workspace, and no more:
pi from the PATH runs them. The configuration is that of the design of
multi-agent routing, as it stands there."""
import json
import os
import shutil
import tempfile
import unittest
from unittest import mock

from pi_stage import NODE, PI, PiModel
from signalbox import Server, eventually
from tool_model import answers, calls

SEED = """{
  "agents": {
    "list": [
      { "id": "code", "workspace": "~/code-workspace", "model": "anthropic/claude-sonnet-4" },
      { "id": "docs", "workspace": "~/docs-workspace", "model": "anthropic/claude-sonnet-4" },
      { "id": "ops", "workspace": "~/ops-workspace", "model": "anthropic/claude-sonnet-4" }
    ],
    "default": "code"
  },
  "bindings": [
    { "agentId": "code", "match": { "channel": "telegram", "peer": { "kind": "group", "id": "-1001234" } } },
    { "agentId": "ops", "match": { "channel": "telegram", "peer": { "kind": "group", "id": "-1005678" } } },
    { "agentId": "docs", "match": { "channel": "discord", "guildId": "guild-abc" } }
  ]
}
"""


class PiAloneTest(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="signalbox-home-")
        self.addCleanup(shutil.rmtree, self.home)
        self.bin = os.path.join(self.home, "bin")
        os.mkdir(self.bin)
        self.enterContext(mock.patch.dict(os.environ, {
            "HOME": self.home, "PATH": self.bin + ":/usr/bin:/bin",
            "PI_OFFLINE": "1", "ANTHROPIC_API_KEY": "x"}))
        os.environ.pop("PI_CODING_AGENT_DIR", None)

    def install(self, url):
        """pi, whose provider is the test's."""
        agent = os.path.join(self.home, ".pi/agent")
        os.makedirs(agent)
        with open(os.path.join(agent, "models.json"), "w",
                  encoding="utf-8") as f:
            json.dump({"providers": {"anthropic": {
                "baseUrl": url + "/v1", "api": "openai-completions",
                "apiKey": "ANTHROPIC_API_KEY",
                "models": [{"id": "claude-sonnet-4"}]}}}, f)
        path = os.path.join(self.bin, "pi")
        with open(path + ".new", "w", encoding="utf-8") as f:
            f.write(f"#!/bin/sh\nexec {NODE} {PI} \"$@\"\n")
        os.chmod(path + ".new", 0o755)
        os.rename(path + ".new", path)

    def server(self):
        path = os.path.join(self.home, "seed.jsonc")
        with open(path, "w", encoding="utf-8") as f:
            f.write(SEED)
        return self.enterContext(Server("--config", path))

    def agent(self, server, name):
        return server.call("GET", "/api/agents/" + name).json()

    def test_it_starts_and_pi_answers_in_its_folder(self):
        def think(body):
            said = [m for m in body["messages"] if m["role"] == "tool"]
            if not said:
                return calls(("bash", {"command": "pwd"}))
            return body["model"] + " in " + said[-1]["content"].strip()
        model = self.enterContext(PiModel(think))
        self.install(model.url)
        server = self.server()
        for name in ("code", "docs", "ops"):
            folder = os.path.join(self.home, name + "-workspace")
            self.assertTrue(os.path.isdir(folder))
            self.assertEqual(server.send("?", to=name).json()["text"],
                             "claude-sonnet-4 in " + folder)
        headers = model.calls[0].headers
        self.assertEqual(headers["authorization"], "Bearer x")

    def test_one_of_them_asks_another(self):
        def think(body):
            said = answers(body)
            if "write the docs" in body["messages"][-1]["content"]:
                return "written"
            return said[0]["response"] if said else calls(
                ("delegate_to_agent", {"agentId": "docs",
                                       "task": "write the docs"}))
        model = self.enterContext(PiModel(think))
        self.install(model.url)
        server = self.server()
        self.assertEqual(server.send("go", to="code").json()["text"],
                         "written")

    def test_without_pi_it_starts_and_says_what_to_install(self):
        server = self.server()
        card = self.agent(server, "code")
        self.assertEqual(card["state"], "DEAD", card)
        self.assertIn("npm install -g @mariozechner/pi-coding-agent",
                      card["state_reason"])
        self.assertIn("deliver.program_missing", server.said())
        failed = server.send("?", to="code").json()
        self.assertEqual(failed["error"]["code"], "agent_did_not_start")
        self.assertIn("npm install", failed["error"]["message"])
        # And once it is there, it is found.
        model = self.enterContext(PiModel(lambda body: "here"))
        self.install(model.url)
        eventually(lambda: self.agent(server, "code")["state"] != "DEAD",
                   "pi is found")
        self.assertEqual(server.send("?", to="code").json()["text"], "here")

    def test_a_folder_that_cannot_be_made_is_told_at_the_start(self):
        self.install("http://127.0.0.1:9")
        with open(os.path.join(self.home, "code-workspace"), "w",
                  encoding="utf-8"):
            pass  # a file is in the way
        server = self.server()
        self.assertIn("code-workspace: is no folder", server.said())
        card = self.agent(server, "code")
        self.assertEqual(card["state"], "DEAD", card)
        self.assertIn("code-workspace: is no folder", card["state_reason"])
        self.assertNotEqual(self.agent(server, "docs")["state"], "DEAD")
        os.environ["HOME"] = os.path.join(self.home, "none")
        server = self.server()
        self.assertIn("deliver.workspace_not_made", server.said())
        self.assertIn("none/docs-workspace: does not exist",
                      self.agent(server, "docs")["state_reason"])


if __name__ == "__main__":
    unittest.main()
