"""The Python client, against the real server; and all that is written down
about it, run as it stands there."""
import ast
import os
import sys
import unittest

from sdk_cases import SOURCE, GivesUp, Program, SdkCases, examples
from signalbox import Server

CLIENT = os.path.join(SOURCE, "client/python")
DRIVER = os.path.join(SOURCE, "test/peers/sdk_driver.py")
ECHO = os.path.join(SOURCE, "examples/echo.py")


class Python(SdkCases, GivesUp, unittest.TestCase):
    # -X dev: what is never awaited, or closed, is complained about.
    can_reset = True
    command = [sys.executable, "-X", "dev", DRIVER]
    env = {"PYTHONPATH": CLIENT, "PYTHONDONTWRITEBYTECODE": "1"}

    def test_a_plain_function_may_write(self):
        server = self.server()
        d = self.agent(server)
        sent = self.client(server).do("send", text="threaded one two three",
                                      options={"to": "parrot"}, chunks=True)
        self.assertEqual(sent["pieces"], ["one ", "two ", "three"])
        self.assertEqual(d.said(), "")

    def test_what_is_no_text_harms_nothing_else(self):
        server = self.server()
        d = self.agent(server)
        answer = server.send("lone x", to="parrot").json()
        self.assertEqual((answer["status"], answer["text"]),
                         ("completed", "x\ufffd"))
        self.assertEqual(server.send("echo on", to="parrot").json()["text"],
                         "on")
        self.assertNotIn("never retrieved", d.said())


class Written(unittest.TestCase):
    env = Python.env

    def run_it(self, server, *command):
        return Program([sys.executable, *command], {
            **self.env, "SIGNALBOX_URL": server.url,
            "SIGNALBOX_TOKEN": server.token})

    def test_the_echo_agent(self):
        with open(ECHO, encoding="utf-8") as f:
            text = f.read()
        self.assertLess(len(text.splitlines()), 20)
        self.assertIn(text, examples("README.md", "python"))
        with Server() as server, self.run_it(server, ECHO) as echo:
            self.assertEqual(echo.line(), "parrot is here\n")
            self.assertEqual(server.send("hello", to="parrot").json()["text"],
                             "hello")

    def test_the_examples_of_the_page(self):
        agent, ask, editor = examples("client/README.md", "python")
        with Server() as server, self.run_it(server, "-c", agent) as counter:
            self.assertEqual(counter.line(), "counter is here\n")
            with self.run_it(server, "-c", ask) as asker:
                self.assertEqual(asker.rest(),
                                 (0, "counter: one two three\n6 in all\n"))
            with self.run_it(server, "-c", editor) as it:
                self.assertEqual(it.line(), "editor is here\n")
                self.assertEqual(
                    server.send("one two", to="editor").json()["text"],
                    "The counter read: one two")

    def test_it_is_python_3_9(self):
        with open(os.path.join(CLIENT, "signalbox.py"), encoding="utf-8") as f:
            ast.parse(f.read(), feature_version=(3, 9))
