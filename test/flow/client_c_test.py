"""The C client, against the real server: what all clients promise, but for what
is its caller's own affair; and all that is written down about it."""
import glob
import os
import re
import subprocess
import tempfile
import unittest

from sdk_cases import SOURCE, Program, SdkCases, examples, free_port
from signalbox import Server, eventually

DRIVER = os.environ["SBC_DRIVER"]
LIBRARY = os.environ["SBC_LIBRARY"]
HEADER = os.path.join(SOURCE, "client/c/signalbox_client.h")
ECHO = os.path.join(SOURCE, "examples/echo.c")
FLAGS = ["-Wall", "-Wextra", "-Werror", "-I", os.path.dirname(HEADER)]
if os.environ["SANITIZE"] != "none":
    FLAGS.append("-fsanitize=" + os.environ["SANITIZE"])


class C(SdkCases, unittest.TestCase):
    command = [DRIVER]

    # How many at once is its handlers' own affair, and limits are constants;
    # sbc_test.c is at them.
    test_so_many_at_once_and_no_more = None
    test_what_is_not_answered_has_a_limit = None
    # sbc_task_test.c has a hub that does not answer, or refuses.
    test_a_result_that_is_refused_fails_its_task = None
    test_a_result_that_is_never_answered_fails_its_task = None
    # It is over when sbc_close returns; who keeps tasks ends them before.
    test_who_leaves_finishes_first = None

    def test_what_a_handler_throws_is_the_error(self):
        server = self.server()
        self.agent(server)
        for text, code in ("fail badly", "agent_failed"), \
                          ("fail coded", "out_of_paper"):
            answer = server.send(text, to="parrot").json()
            self.assertEqual((answer["status"], answer["error"]["code"],
                              answer["error"]["message"]),
                             ("failed", code, text))

    def test_results_are_said_before_it_leaves(self):
        server = self.server()
        d = self.agent(server)
        task = self.begin(server, "hold on")
        d.event("task")
        d.do("release", message="hold on", text="the last one")
        d.do("close")
        self.assertEqual(self.over(server, task)["result"]["text"],
                         "the last one")


class Library(unittest.TestCase):
    def compile(self, folder, *sources, compiler="gcc"):
        program = os.path.join(folder, "program")
        subprocess.run([compiler, *FLAGS, *sources, LIBRARY, "-o", program,
                        "-lssl", "-lcrypto"], check=True)
        return program

    def test_the_echo_agent(self):
        with open(ECHO, encoding="utf-8") as f:
            text = f.read()
        self.assertLess(len(text.splitlines()), 20)
        self.assertIn(text, examples("README.md", "c"))
        with tempfile.TemporaryDirectory() as folder, Server() as server, \
                Program([self.compile(folder, ECHO)],
                        {"SIGNALBOX_URL": server.url,
                         "SIGNALBOX_TOKEN": server.token}) as it:
            self.assertEqual(it.line(), "parrot is here\n")
            self.assertEqual(server.send("hello", to="parrot").json()["text"],
                             "hello")

    def test_the_examples_of_the_page(self):
        agent, ask, editor = examples("client/README.md", "c")
        with tempfile.TemporaryDirectory() as folder, Server() as server:
            env = {"SIGNALBOX_URL": server.url,
                   "SIGNALBOX_TOKEN": server.token}
            for name, text in ("agent", agent), ("ask", ask), \
                    ("editor", editor):
                with open(os.path.join(folder, name + ".c"), "w",
                          encoding="utf-8") as f:
                    f.write(text)
            counter = self.compile(folder, os.path.join(folder, "agent.c"))
            os.rename(counter, counter + "-agent")
            editor = self.compile(folder, os.path.join(folder, "editor.c"))
            os.rename(editor, editor + "-editor")
            asker = self.compile(folder, os.path.join(folder, "ask.c"))
            with Program([counter + "-agent"], env):
                eventually(lambda: server.send("a b", to="counter").status ==
                           200, "it is there")
                with Program([editor + "-editor"], env) as it:
                    self.assertEqual(it.line(), "editor is here\n")
                    self.assertEqual(
                        server.send("one two", to="editor").json()["text"],
                        "The counter read: one two ")
                with Program([asker], env) as it:
                    self.assertEqual(it.rest()[0], 0)
                    # What is on stderr may come first.
                with Program(["sh", "-c", asker + " 2>&-"], env) as it:
                    self.assertEqual(it.rest(),
                                     (0, "counter: one two three \n"))
            with Program([asker], env) as it:
                status, said = it.rest()
                self.assertEqual(status, 1, said)
                self.assertIn("not connected", said)

    def test_pkg_config_finds_an_installed_library(self):
        build = os.path.join(os.path.dirname(LIBRARY), "..", "..")
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["meson", "install", "-C", build, "--no-rebuild",
                            "--quiet", "--tags", "devel"], check=True,
                           env={**os.environ, "DESTDIR": folder})
            pc, = glob.glob(folder + "/**/signalbox_client.pc", recursive=True)
            flags = subprocess.run(
                ["pkg-config", "--cflags", "--libs", "signalbox_client"],
                check=True, capture_output=True, text=True,
                env={**os.environ, "PKG_CONFIG_PATH": os.path.dirname(pc),
                     "PKG_CONFIG_SYSROOT_DIR": folder}).stdout.split()
            program = os.path.join(folder, "program")
            subprocess.run(["gcc", ECHO, *flags, "-o", program], check=True)
            with Program([program], {"SIGNALBOX_URL": "nonsense"}) as it:
                status, said = it.rest()
            self.assertEqual(status, 1)
            self.assertIn("SIGNALBOX_URL", said)

    def test_only_its_own_names_can_be_seen(self):
        names = subprocess.run(["nm", "-g", "--defined-only", LIBRARY],
                               check=True, capture_output=True,
                               text=True).stdout
        seen = set(re.findall(r" [A-Z] (\w+)$", names, re.M))
        seen = {n for n in seen if not re.match(r"_?_?(odr_)?asan|__odr", n)}
        with open(HEADER, encoding="utf-8") as f:
            declared = set(re.findall(r"^SBC_API [^;(]*?(\w+)\(",
                                      f.read(), re.M))
        self.assertEqual(seen, declared)

    def test_the_header_is_c_and_cxx_by_itself(self):
        for compiler, language in ("gcc", "c"), ("g++", "c++"):
            if subprocess.run(["which", compiler], check=False,
                              capture_output=True).returncode:
                continue
            subprocess.run([compiler, "-x", language, "-fsyntax-only",
                            "-pedantic", *FLAGS, HEADER], check=True)

    def test_whoever_is_not_let_in_says_so(self):
        with tempfile.TemporaryDirectory() as folder, Server() as server:
            echo = self.compile(folder, ECHO)
            with Program([echo], {"SIGNALBOX_URL": server.url,
                                  "SIGNALBOX_TOKEN": "sbx_nobody"}) as it:
                status, said = it.rest()
                self.assertEqual(status, 1)
                words = server.call("GET", "/hub", token="sbx_nobody").json()
                self.assertIn(words["error"]["message"], said)
            with Program([echo], {"SIGNALBOX_URL": "nonsense"}) as it:
                status, said = it.rest()
                self.assertEqual(status, 1)
                self.assertIn("SIGNALBOX_URL", said)
            port = free_port()
            with Program([echo], {
                    "SIGNALBOX_URL": f"http://127.0.0.1:{port}"}) as it:
                # It goes on trying until there is someone.
                self.assertRegex(it.line(), "cannot reach .*; trying again")
                with Server(listen=f"127.0.0.1:{port}"):
                    self.assertIn("SIGNALBOX_TOKEN", it.rest()[1])
            with Program([echo], {}) as it:  # whether a hub is there or not
                self.assertRegex(it.line(), "127.0.0.1:8787|SIGNALBOX_TOKEN")
