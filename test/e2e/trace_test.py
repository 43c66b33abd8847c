"""The way of one message through the code, as docs/architecture.md tells it.

A tracer follows a running server while a user posts a message, an agent on the
hub answers it, and the answer goes back. Every file of the page's table must
have run, and one message must not take more functions and files than
trace.limits allows: these figures may only fall.
"""
import json
import os
import re
import subprocess
import sys
import threading
import unittest

from hiring import done, given
from hub_peer import Hub
from signalbox import BINARY, Server

SOURCE = os.environ["SIGNALBOX_SOURCE"]
TRACER = os.path.join(SOURCE, "test", "lib", "tracer.py")
LIMITS = os.path.join(SOURCE, "test", "e2e", "trace.limits")
PAGE = os.path.join(SOURCE, "docs", "architecture.md")
# A limit may be this much above its figure.
SLACK = 1.05
TIMES = 12


def traced(server, work):
    """[file, function] of everything that ran in the server during work()."""
    tracer = subprocess.Popen(
        [sys.executable, TRACER, str(server.process.pid), BINARY],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        if tracer.stdout.readline() != "armed\n":
            raise AssertionError("the tracer did not start")
        work()
    finally:
        out, _ = tracer.communicate()
    return [(f, name) for f, name in json.loads(out) if f.startswith("src/")]


def one_message(server, token, agent):
    answers = []
    post = threading.Thread(target=lambda: answers.append(server.call(
        "POST", "/api/messages", {"text": "search the web for papers"},
        token=token)))
    post.start()
    done(agent, given(agent), text="found")
    post.join()
    if answers[0].json()["text"] != "found":
        raise AssertionError(answers[0].json())


def files_of_page():
    """Those of the table of the seven turns."""
    with open(PAGE, encoding="utf-8") as f:
        text = f.read()
    section = re.search(r"^## One message in seven turns$(.*?)^## ", text,
                        re.M | re.S).group(1)
    return {"src/" + name for line in section.splitlines()
            if line.startswith("|")
            for name in re.findall(r"`([a-z_/]+\.c)`", line)}


def limits():
    with open(LIMITS, encoding="utf-8") as f:
        return {name: int(limit) for name, limit in
                (line.split() for line in f if not line.startswith("#"))}


@unittest.skipIf(os.geteuid() != 0, "tracing the server takes root")
@unittest.skipIf(os.uname().machine != "x86_64", "the tracer knows x86-64")
class Trace(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with Server(config={"rate": {"perUser": 0}}) as server:
            anna = server.user("anna")
            with Hub(server, anna) as agent:
                agent.register("searcher", description="searches the web")
                server.ready()
                one_message(server, anna, agent)  # what happens only once
                # Timers may fire meanwhile: what runs for each of some.
                cls.ran = set.intersection(*(set(traced(
                    server, lambda: one_message(server, anna, agent)))
                    for _ in range(TIMES)))
                cls.idle = traced(server, lambda: None)

    def test_every_file_of_the_page_runs(self):
        page = files_of_page()
        self.assertGreater(len(page), 30)
        self.assertEqual(sorted(page - {f for f, _ in self.ran}), [])

    def test_a_file_that_does_not_run_would_be_seen(self):
        ran = {f for f, _ in self.ran}
        self.assertNotIn("src/walk/late_result.c", ran)
        self.assertNotIn("src/walk/walk.c", {f for f, _ in self.idle})

    def test_one_message_takes_no_more_code_than_before(self):
        figures = {"files": len({f for f, _ in self.ran}),
                   "functions": len(self.ran)}
        for name, limit in limits().items():
            with self.subTest(name):
                self.assertLessEqual(figures[name], limit, "more than before")
                self.assertLessEqual(limit, figures[name] * SLACK,
                                     "lower the limit in " + LIMITS)


if __name__ == "__main__":
    unittest.main()
