"""The JavaScript client, against the real server, with its own WebSocket and
with one that behaves like a browser's; and all that is written down about it,
run as it stands there."""
import json
import os
import shutil
import tempfile
import unittest

from sdk_cases import SOURCE, GivesUp, Program, SdkCases, examples
from signalbox import Server

NODE = shutil.which("node") or "node"
CLIENT = os.path.join(SOURCE, "client/js")
DRIVER = os.path.join(SOURCE, "test/peers/sdk_driver.mjs")
ECHO = os.path.join(SOURCE, "examples/echo.js")
WS = os.path.join(SOURCE, "test/peers/node_modules/ws/wrapper.mjs")


class JavaScript(SdkCases, GivesUp, unittest.TestCase):
    command = [NODE, DRIVER]
    can_reset = True

    def test_metadata_that_is_no_json_fails_the_task(self):
        server = self.server()
        self.agent(server)
        answer = server.send("knotted", to="parrot").json()
        self.assertEqual((answer["status"], answer["error"]["code"]),
                         ("failed", "agent_failed"))


@unittest.skipUnless(os.path.exists(WS), "npm's ws is not installed")
class Browser(SdkCases, GivesUp, unittest.TestCase):
    """What differs with a WebSocket that is not ours."""
    command = [NODE, DRIVER]
    can_reset = True
    env = {"WS_PACKAGE": WS}

    # It does not say why it was refused, and takes no certificates.
    for name in ("a_bad_token_is_told_at_once",
                 "a_token_that_is_revoked_ends_it",
                 "it_waits_for_a_server_that_starts", "tls",
                 # Nothing of these comes near the socket.
                 "the_environment_says_where", "a_card_that_is_wrong",
                 "a_deadline_stops_work_too", "a_name_that_is_anothers",
                 "metadata_and_nothing_are_answers", "update_and_state",
                 "the_same_key_is_the_same_task", "what_goes_wrong_is_told",
                 "what_a_handler_throws_is_the_error",
                 "what_was_sent_can_be_cancelled", "who_leaves_finishes_first",
                 "so_many_at_once_and_no_more"):
        locals()["test_" + name] = None


class Written(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def run_it(self, server, file):
        return Program([NODE, file], {
            "SIGNALBOX_URL": server.url, "SIGNALBOX_TOKEN": server.token},
            cwd=self.folder)

    def write(self, text):
        """A program of someone who has installed the package."""
        modules = os.path.join(self.folder, "node_modules")
        if not os.path.exists(modules):
            os.mkdir(modules)
            shutil.copytree(CLIENT, os.path.join(modules, "signalbox"))
        path = os.path.join(self.folder, f"{hash(text)}.mjs")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def test_the_echo_agent(self):
        with open(ECHO, encoding="utf-8") as f:
            text = f.read()
        self.assertLess(len(text.splitlines()), 20)
        self.assertIn(text, examples("README.md", "js"))
        with Server() as server, self.run_it(server, ECHO) as echo:
            self.assertEqual(echo.line(), "parrot is here\n")
            self.assertEqual(server.send("hello", to="parrot").json()["text"],
                             "hello")

    def test_the_examples_of_the_page(self):
        agent, ask, editor = examples("client/README.md", "js")
        with Server() as server, \
                self.run_it(server, self.write(agent)) as counter:
            self.assertEqual(counter.line(), "counter is here\n")
            with self.run_it(server, self.write(ask)) as asker:
                self.assertEqual(asker.rest(),
                                 (0, "counter: one two three\n6 in all\n"))
            with self.run_it(server, self.write(editor)) as it:
                self.assertEqual(it.line(), "editor is here\n")
                self.assertEqual(
                    server.send("one two", to="editor").json()["text"],
                    "The counter read: one two")

    def test_the_package_has_all_its_files(self):
        with open(os.path.join(CLIENT, "package.json"),
                  encoding="utf-8") as f:
            package = json.load(f)
        self.assertEqual(sorted(package["files"]),
                         sorted(n for n in os.listdir(CLIENT)
                                if n.endswith((".js", ".ts"))))
        self.assertNotIn("dependencies", package)

    def test_who_is_taken_over_ends_with_words(self):
        with Server() as server, self.run_it(server, ECHO) as first:
            first.line()
            with self.run_it(server, ECHO):
                status, said = first.rest()
                self.assertEqual(status, 1)
                self.assertIn("another connection is this agent now", said)
