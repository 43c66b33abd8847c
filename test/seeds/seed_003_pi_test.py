"""Seed 003 with the real pi and a model that is a test's: the seed's own
configuration, as it stands. docs/seeds.md has the rows."""
import os
import shutil
import tempfile
import unittest

from pi_stage import NODE, PI, PiStage
from signalbox import Server
from tool_model import calls

CONFIG = """{
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


def think(body):
    """Its model's name, or what came of `pwd`."""
    said = [m["content"] for m in body["messages"] if m["role"] == "tool"]
    if said:
        return said[-1].strip()
    if body["messages"][-1]["content"] == "where are you?":
        return calls(("bash", {"command": "pwd"}))
    return body["model"]


class WithPi(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.home = tempfile.mkdtemp(prefix="signalbox-home-")
        cls.addClassCleanup(shutil.rmtree, cls.home)
        config = os.path.join(cls.home, "signalbox.jsonc")
        with open(config, "w", encoding="utf-8") as f:
            f.write(CONFIG)
        cls.server = cls.enterClassContext(Server(
            "--config", config, before=("/usr/bin/env", "HOME=" + cls.home,
                                        *cls.environment())))

    @classmethod
    def environment(cls):
        stage = cls.enterClassContext(PiStage(think))
        stage.knows("claude-sonnet-4", provider="anthropic")
        command = os.path.join(cls.home, "bin", "pi")
        os.mkdir(os.path.dirname(command))
        with open(command, "w", encoding="utf-8") as f:
            f.write(f'#!/bin/sh\nexec {NODE} {PI} "$@"\n')
        os.chmod(command, 0o755)
        return (f"PATH={os.path.dirname(command)}:/usr/bin:/bin",
                "PI_CODING_AGENT_DIR=" + stage.folder, "PI_OFFLINE=1")

    def test_003_06_the_configuration_as_it_stands(self):
        source = {"channel": "discord", "guildId": "guild-abc"}
        for agent, fields in (("code", {}), ("docs", {"source": source})):
            said = self.server.call("POST", "/api/messages", {
                "text": "who are you?", "wait_ms": 60000, **fields}).json()
            self.assertEqual((said["agent"], said["text"]),
                             (agent, "claude-sonnet-4"), said)

    def test_003_07_each_has_its_workspace(self):
        for name in ("code", "docs", "ops"):
            folder = os.path.join(self.home, name + "-workspace")
            self.assertTrue(os.path.isdir(folder), folder)
        said = self.server.send("where are you?", to="code",
                                wait_ms=60000).json()
        self.assertEqual(said["text"],
                         os.path.join(self.home, "code-workspace"), said)


if __name__ == "__main__":
    unittest.main()
