"""signalbox send: the answer as it comes, and Ctrl-C. The agent is a program
that says what this test tells it to, word by word."""
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
import unittest

from client import BIN, FAILED, OK, REFUSED, Client
from signalbox import DEADLINE_S, eventually

# What comes through the pipe: a chunk a line; ".": the result, "!": death.
PUPPET = r"""
import json, sys
def say(**m):
    print(json.dumps({"jsonrpc": "2.0", **m}), flush=True)
with open(sys.argv[1], "rb", buffering=0) as strings:
    for line in sys.stdin:
        m = json.loads(line)
        if m.get("method") == "hello":
            say(id=m["id"], result={})
        if m.get("method") != "task.execute":
            continue
        task = m["params"]["task_id"]
        say(id=m["id"], result={"status": "working"})
        text = ""
        for word in strings:
            word = word[:-1].decode()
            if word == "!":
                sys.exit(1)
            if word == ".":
                break
            text += word
            say(method="task.chunk", params={"task_id": task, "text": word})
        say(method="task.result", params={"task_id": task, "text": text,
                                          "status": "completed"})
"""


class Terminal:
    """What a terminal gets of a command that runs."""

    def __init__(self, test, *args):
        self.ours, theirs = pty.openpty()
        self.process = test.start(*args, stdin=theirs, terminal=theirs)
        os.close(theirs)
        self.got = ""

    def until(self, words):
        last = time.monotonic() + DEADLINE_S  # a spinner never stops
        while words not in self.got:
            ready, _, _ = select.select([self.ours], [], [], DEADLINE_S)
            if not ready or time.monotonic() > last:
                raise AssertionError(f"{words!r} did not come: {self.got!r}")
            self.got += os.read(self.ours, 4096).decode().replace("\r\n", "\n")
        return self.got

    def end(self):
        try:
            while more := os.read(self.ours, 4096):
                self.got += more.decode().replace("\r\n", "\n")
        except OSError:
            pass
        os.close(self.ours)
        return self.process.wait(DEADLINE_S)


class Stream(Client):
    def setUp(self):
        super().setUp()
        self.fifo = os.path.join(self.home, "strings")
        puppet = os.path.join(self.home, "puppet.py")
        with open(puppet, "w", encoding="utf-8") as f:
            f.write(PUPPET)
        os.mkfifo(self.fifo)
        # For both ways, so that neither end waits for the other.
        self.strings = os.open(self.fifo, os.O_RDWR)
        self.addCleanup(os.close, self.strings)
        self.agents = [{"id": "puppet", "process": {
            "command": [sys.executable, puppet, self.fifo], "max": 1}}]
        self.box = self.server(agents=self.agents,
                               config={"deliver": {"retryMs": 10}})

    def start(self, *args, terminal=None, **more):
        if terminal is None:
            return super().start(*args, **more)
        return subprocess.Popen([BIN, *args], cwd=self.home, stdin=terminal,
                                stdout=terminal, stderr=terminal,
                                env={**self.env, "TERM": "xterm",
                                     "LANG": "C.UTF-8"})

    def pull(self, *words):
        os.write(self.strings, "".join(w + "\n" for w in words).encode())

    def tasks(self):
        return self.box.call("GET", "/api/tasks").json()["items"]

    def test_on_a_terminal_it_comes_as_it_is_said(self):
        t = Terminal(self, "send", "hi", "--to", "puppet")
        self.pull("one ")
        t.until("one ")
        self.pull("two")
        t.until("one two")
        self.pull(".")
        self.assertEqual(t.end(), OK)
        self.assertTrue(t.got.endswith("one two\n"), t.got)

    def test_a_pipe_gets_it_whole_unless_it_wants_it_as_it_comes(self):
        p = self.start("send", "hi", "--to", "puppet")
        self.pull("one ", "two", ".")
        self.assertEqual(self.end(p), (OK, "one two\n", ""))
        p = self.start("send", "hi", "--to", "puppet", "--stream")
        self.pull("one ")
        ready, _, _ = select.select([p.stdout], [], [], DEADLINE_S)
        self.assertEqual(os.read(p.stdout.fileno(), 100) if ready else b"",
                         b"one ")
        self.pull("two", ".")
        self.assertEqual(self.end(p), (OK, "two\n", ""))

    def test_with_json_every_event_is_a_line(self):
        p = self.start("send", "hi", "--to", "puppet", "--stream", "--json")
        self.pull("one ", "two", ".")
        _, out, _ = self.end(p)
        events = [json.loads(line) for line in out.splitlines()]
        self.assertEqual([e["data"]["text"] for e in events
                          if e["event"] == "chunk"], ["one ", "two"])
        self.assertEqual(events[-1]["event"], "result")

    def test_a_second_try_begins_anew(self):
        t = Terminal(self, "send", "hi", "--to", "puppet")
        self.pull("one ")
        t.until("one ")
        self.pull("!")
        t.until("trying again")
        self.pull("one ", "two", ".")
        self.assertEqual(t.end(), OK)
        self.assertTrue(t.got.endswith("\none two\n"), t.got)
        p = self.start("send", "hi", "--to", "puppet")
        self.pull("one ", "!", "three", ".")
        self.assertEqual(self.end(p), (OK, "three\n", ""))

    def test_attempts_that_come_to_nothing_are_counted(self):
        t = Terminal(self, "send", "hi", "--to", "puppet")
        self.pull("!", "!")
        t.until("puppet is working, attempt 3")
        self.pull("there", ".")
        self.assertEqual(t.end(), OK)
        self.assertTrue(t.got.endswith("there\n"), t.got)
        self.assertNotIn("\nsignalbox send", t.got)

    def test_a_reader_that_leaves_cancels_the_task(self):
        p = self.start("send", "hi", "--to", "puppet", "--stream")
        self.pull("one ")
        select.select([p.stdout], [], [], DEADLINE_S)
        self.assertEqual(os.read(p.stdout.fileno(), 100), b"one ")
        p.stdout.close()
        self.pull("two")
        self.assertEqual((p.wait(DEADLINE_S), p.stderr.read()), (FAILED, b""))
        p.stderr.close()
        eventually(lambda: self.tasks()[0]["status"] == "cancelled",
                   "it is cancelled")

    def test_programs_come_and_go_with_a_reload(self):
        other = {"id": "other", "process": "shared"}
        shared = {"shared": {**self.agents[0]["process"], "max": 2}}
        self.assertIn("no agent", self.bad(REFUSED, "send", "hi", "--to",
                                           "other"))
        self.box.write_config([other], {"processes": shared})
        eventually(lambda: [a["name"] for a in self.lines("agents")]
                   == ["other"], "the new one is there alone")
        p = self.start("send", "hi", "--to", "other")
        self.pull("new", ".")
        self.assertEqual(self.end(p), (OK, "new\n", ""))
        self.box.write_config([{**other, "process": "no-such"}],
                              {"processes": shared})
        eventually(lambda: "names the process" in self.box.said(),
                   "it is refused whole")
        p = self.start("send", "hi", "--to", "other")
        self.pull("still", ".")
        self.assertEqual(self.end(p), (OK, "still\n", ""))

    def test_ctrl_c_cancels_the_task(self):
        t = Terminal(self, "send", "hi", "--to", "puppet")
        self.pull("one ")
        t.until("one ")
        t.process.send_signal(signal.SIGINT)
        self.assertEqual(t.end(), FAILED)
        [task] = self.tasks()
        self.assertIn(f"{task['id']} is cancelled", t.got)
        self.assertEqual(task["status"], "cancelled")

    def test_ctrl_c_cancels_it_also_where_nothing_was_heard_yet(self):
        p = self.start("send", "hi", "--to", "puppet")
        eventually(lambda: [t["status"] for t in self.tasks()] == ["working"],
                   "it works")
        p.send_signal(signal.SIGINT)
        status, out, err = self.end(p)
        self.assertEqual((status, out), (FAILED, ""))
        self.assertIn("is cancelled", err)
        eventually(lambda: self.tasks()[0]["status"] == "cancelled",
                   "it is cancelled")


if __name__ == "__main__":
    unittest.main()
