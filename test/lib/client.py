"""Commands against a real server: run in an environment of their own, with
pipes or on a terminal.

    class Mine(Client):
        def test_it(self):
            self.server()
            self.assertEqual(self.good("send", "hi", "--to", "echo"), "hi\\n")
"""
import json
import os
import shutil
import subprocess
import tempfile
import unittest

from signalbox import DEADLINE_S, Server
from terminal import on_terminal

BIN = os.environ["SIGNALBOX_BIN"]
OK, FAILED, USAGE, REFUSED, UNREACHABLE, NOT_ALLOWED = range(6)
AGENTS = [{"id": "echo", "url": "echo:"},
          {"id": "slow", "url": "echo:1500"},
          {"id": "never", "url": "echo:3600000"}]


class Client(unittest.TestCase):
    """Runs commands in an environment of their own."""

    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="signalbox-client-")
        self.addCleanup(shutil.rmtree, self.home)
        self.env = {"PATH": "/usr/bin:/bin", "HOME": self.home, "TZ": "UTC"}
        # Neither may count: a proxy would see the token.
        self.env["http_proxy"] = self.env["ALL_PROXY"] = "http://127.0.0.1:1"

    def use(self, server, token=None):
        self.env["SIGNALBOX_URL"] = server.url
        self.env["SIGNALBOX_TOKEN"] = token or server.token

    def server(self, *args, **more):
        """A server for this test, and the client set up for it."""
        server = Server(*args, **{"agents": AGENTS, **more})
        self.addCleanup(lambda: server.process.stdout.closed or server.stop())
        self.use(server)
        return server

    def start(self, *args, env=None, **more):
        return subprocess.Popen([BIN, *args], cwd=self.home,
                                env={**self.env, **(env or {})},
                                stdin=more.pop("stdin", subprocess.DEVNULL),
                                stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, **more)

    def run_it(self, *args, env=None, stdin=b""):
        p = self.start(*args, env=env, stdin=subprocess.PIPE)
        return self.end(p, stdin)

    def end(self, p, stdin=None):
        out, err = p.communicate(stdin, timeout=DEADLINE_S)
        return p.returncode, out.decode(), err.decode()

    def good(self, *args, **more):
        status, out, err = self.run_it(*args, **more)
        self.assertEqual((status, err), (OK, ""), out)
        return out

    def lines(self, *args, **more):
        return [json.loads(x)
                for x in self.good(*args, "--json", **more).splitlines()]

    def bad(self, status, *args, **more):
        got, out, err = self.run_it(*args, **more)
        self.assertEqual((got, out), (status, ""), err)
        self.assertNotIn("sbx_0", err)
        return err

    def on_terminal(self, *args, **more):
        return on_terminal([BIN, *args], self.home, self.env, **more)
