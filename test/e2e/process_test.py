"""Agents that are programs: the exchange of the documentation, and what is
left of them when the server goes."""
import os
import re
import sys
import unittest

from outside import outside
from signalbox import Server, eventually, metric

SOURCE = os.environ["SIGNALBOX_SOURCE"]

# Says what the documentation says, and complains on standard error where the
# server does not.
PLAYER = r'''
import json, sys
task = None
def same(a, b):
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and \
            all(same(a[k], b[k]) for k in a if k != "deadline_ms")
    return a == b
for line in sys.argv[1].splitlines():
    who, text = line.split(" ", 1)
    if who == ">":
        heard = sys.stdin.readline()
        said = json.loads(heard)
        task = task or said["params"].get("task_id")
        text = text.replace("task_01m7eyz0xt3drwqefragktj300", str(task))
        if not same(json.loads(text), said):
            sys.exit(f"not as documented: {heard}")
    else:
        print(text.replace("task_01m7eyz0xt3drwqefragktj300", str(task)),
              flush=True)
sys.stdin.read()
'''

# Starts one more that does not want to go, and hangs.
HANGER = r'''
import json, os, signal, subprocess, sys
for line in sys.stdin:
    call = json.loads(line)
    if call["method"] == "hello":
        print('{"jsonrpc":"2.0","id":"hello","result":{}}', flush=True)
        continue
    if call["method"] == "task.cancel":
        continue
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    other = subprocess.Popen(["sh", "-c", "trap '' TERM; cat"],
                             stdin=subprocess.PIPE)
    task = call["params"]["task_id"]
    print(json.dumps({"jsonrpc": "2.0", "method": "task.chunk", "params": {
        "task_id": task, "text": f"{os.getpid()} {other.pid}"}}), flush=True)
'''


# Tools for people, as a newcomer might configure them.
PRINTS = "import sys; sys.stdin.readline(); print('Hello!', flush=True); " \
    "sys.stdin.read()"
ENDS = "import sys; sys.exit('no prompt was given')"


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


class ProcessTest(unittest.TestCase):
    def server(self, script, *args, name="greeter", **process):
        command = [sys.executable, "-I", "-c", script, *args]
        return self.enterContext(Server(agents=[
            {"id": name, "process": {"command": command, **process}}]))

    def test_the_documented_exchange(self):
        with open(os.path.join(SOURCE, "docs/protocol.md"),
                  encoding="utf-8") as text:
            exchange = re.search("```stdio\n(.*?)```", text.read(),
                                 re.S).group(1)
        server = self.server(PLAYER, exchange)
        answer = server.send("good morning", to="greeter",
                             conversation_id="c-1").json()
        self.assertEqual(answer["text"], "Good morning to you", answer)
        self.assertNotIn("not as documented", server.said())

    def refused(self, script):
        """What the admin hears of a program that speaks no dialect."""
        server = self.server(script)
        error = server.send("x", to="greeter").json()["error"]
        self.assertEqual(error["code"], "wrong_dialect", error)
        self.assertEqual(server.said().count("child_speaks_no_dialect"), 1)
        return error["message"]

    def test_a_program_that_prints_text_is_told_at_its_first_answer(self):
        message = self.refused(PRINTS)
        self.assertIn('does not speak "signalbox"', message)
        self.assertIn('it answered: "Hello!"', message)

    def test_a_program_that_ends_without_a_word_is_not_tried_again(self):
        message = self.refused(ENDS)
        self.assertIn("ended with status 1", message)
        self.assertNotIn("no prompt", message)

    def hang(self, **process):
        """A task in hand; the server, the task and the processes of it."""
        server = self.server(HANGER, stopGraceMs=200, **process)
        task = server.send("x", to="greeter", wait_ms=0).json()["task_id"]
        with server.events(f"/api/tasks/{task}/events") as events:
            for _, event, data in events:
                if event == "chunk":
                    break
        pids = outside(server, [int(pid) for pid in data["text"].split()])
        self.assertTrue(all(map(is_alive, pids)), pids)
        self.assertEqual(metric(server, "signalbox_children"), 1)
        return server, task, pids

    def test_a_cancel_leaves_none(self):
        server, task, pids = self.hang()
        server.call("POST", f"/api/tasks/{task}/cancel")
        eventually(lambda: not any(map(is_alive, pids)), f"{pids} are gone")
        eventually(lambda: metric(server, "signalbox_children") == 0, "none")

    def test_a_server_that_stops_leaves_none(self):
        server, _, pids = self.hang()
        server.process.terminate()
        server.process.wait(60)
        self.assertFalse(any(map(is_alive, pids)))

    def test_a_server_that_is_killed_leaves_none(self):
        server, _, pids = self.hang()
        server.kill9()
        eventually(lambda: not any(map(is_alive, pids)), f"{pids} are gone")


if __name__ == "__main__":
    unittest.main()
