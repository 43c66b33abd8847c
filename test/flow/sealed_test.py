"""Credentials of cards: sealed in the database, never told by the API, and a
key that is lost or wrong is told."""
import glob
import json
import os
import shutil
import sqlite3
import tempfile
import unittest

from signalbox import Server, eventually, refuses_to_start

CARD = {"name": "z", "description": "for tests", "visibility": "public",
        "url": "https://z.example/a?key=s3cret-url",
        "wake": {"url": "https://w.example/?s3cret-wake"},
        "authentication": {"schemes": ["bearer"],
                           "credentials": "s3cret-proof"}}


class Sealed(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="signalbox-home-")
        self.addCleanup(shutil.rmtree, self.home)
        self.data = os.path.join(self.home, "data")
        before = {k: os.environ.get(k) for k in ("HOME", "XDG_CONFIG_HOME")}
        self.addCleanup(lambda: os.environ.update(
            {k: v for k, v in before.items() if v}))
        os.environ["HOME"] = os.path.join(self.home, "me")
        os.mkdir(os.environ["HOME"])
        os.environ.pop("XDG_CONFIG_HOME", None)
        self.key = os.path.join(self.home, "me/.config/signalbox/card.key")

    def start(self, **more):
        return Server(data=self.data, token=getattr(self, "token", None),
                      **more)

    def put(self, server, card=None, token=None):
        got = server.call("PUT", "/api/agents/z", card or CARD,
                          token=token or self.anna)
        self.assertIn(got.status, (200, 201), got)
        return got.json()

    def people(self, server):
        self.token = server.token
        self.anna = server.user("anna", org="acme")
        self.bob = server.user("bob", org="zeta")

    def row(self):
        with sqlite3.connect(os.path.join(self.data, "signalbox.db")) as db:
            return db.execute("SELECT card FROM agents").fetchone()[0]

    def on_disk(self):
        """Every byte of the data folder."""
        return b"".join(open(f, "rb").read() for f in
                        glob.glob(self.data + "/**", recursive=True)
                        if os.path.isfile(f))

    def test_nothing_of_them_is_told_or_on_the_disk(self):
        with self.start() as server:
            self.people(server)
            made = self.put(server)
            self.assertEqual(made["authentication"], {
                "schemes": ["bearer"], "credentials": "…set…"})
            for token in self.anna, self.bob, self.token:
                for path in ("/api/agents/z", "/api/agents", "/api/config",
                             "/api/feed?last=100",
                             "/api/agents/search?q=tests"):
                    text = json.dumps(server.call("GET", path,
                                                  token=token).json())
                    self.assertNotIn("s3cret-proof", text, path)
                    if token == self.bob:
                        self.assertNotIn("s3cret", text, path)
            mine = server.call("GET", "/api/agents/z", token=self.anna).json()
            self.assertEqual(mine["url"], CARD["url"])
            theirs = server.call("GET", "/api/agents/z", token=self.bob).json()
            self.assertEqual(theirs["url"], "https://z.example/a?not-shown")
            self.assertEqual(theirs["authentication"], {"schemes": ["bearer"]})
            # What was read may be written back, and changes nothing.
            card = {k: mine[k] for k in CARD}
            self.assertFalse(self.put(server, card)["changed"])
            self.assertTrue(os.path.isfile(self.key))
            self.assertEqual(os.stat(self.key).st_mode & 0o777, 0o600)
            self.assertIn("seal.key_made", server.said())
            self.assertNotIn(b"s3cret", self.on_disk())
        self.assertNotIn(b"s3cret", self.on_disk())

    def test_a_key_of_the_environment_or_of_systemd(self):
        folder = os.path.join(self.home, "credentials")
        os.mkdir(folder)
        with open(os.path.join(folder, "signalbox.key"), "w",
                  encoding="ascii") as f:
            f.write("ab" * 32 + "\n")
        for name, value, config in (
                ("CARD_KEY", "ab" * 32, {"keyVariable": "CARD_KEY"}),
                ("CREDENTIALS_DIRECTORY", folder, {})):
            os.environ[name] = value
            try:
                with self.start(config={"seal": config}) as server:
                    if name == "CARD_KEY":
                        self.people(server)
                        self.put(server)
                    mine = server.call("GET", "/api/agents/z",
                                       token=self.anna).json()
                    self.assertEqual(mine["url"], CARD["url"])
            finally:
                del os.environ[name]
        self.assertFalse(os.path.exists(self.key))
        self.assertNotIn(b"s3cret", self.on_disk())
        os.environ["CARD_KEY"] = "ab" * 31
        try:
            status, said = refuses_to_start(
                "serve", "--data", self.data, "--set", "listen=127.0.0.1:0",
                "--set", "seal.keyVariable=CARD_KEY")
        finally:
            del os.environ["CARD_KEY"]
        self.assertNotEqual(status, 0)
        self.assertIn("CARD_KEY does not contain a key", said)

    def test_control_without_a_key_they_are_on_the_disk(self):
        with self.start(config={"seal": {"keyFile": ""}}) as server:
            self.people(server)
            self.put(server)
            self.assertIn(b"s3cret-proof", self.on_disk())
            self.assertIn("seal.not_sealed", server.said())

    def test_those_of_before_are_sealed_at_the_next_start(self):
        with self.start(config={"seal": {"keyFile": ""}}) as server:
            self.people(server)
            self.put(server)
        self.assertIn("s3cret", self.row())
        with self.start() as server:
            eventually(lambda: "s3cret" not in self.row(), "they are sealed")
            mine = server.call("GET", "/api/agents/z", token=self.anna).json()
            self.assertEqual(mine["url"], CARD["url"])
            self.assertEqual(mine["authentication"]["credentials"], "…set…")

    def test_a_wrong_or_missing_key_is_told_and_nothing_is_lost(self):
        with self.start() as server:
            self.people(server)
            self.put(server)
        kept = self.key + ".kept"
        os.rename(self.key, kept)
        for how in ("", "/nonexistent/key", "auto"):
            status, said = refuses_to_start(
                "serve", "--data", self.data, "--set", "listen=127.0.0.1:0",
                "--set", "seal.keyFile=" + how)
            self.assertNotEqual(status, 0)
            self.assertIn("seal.keyFile", said)
        self.assertIn("seal.ignoreWrongKey", said)
        with self.start(config={"seal": {"ignoreWrongKey": True}}) as server:
            mine = server.call("GET", "/api/agents/z", token=self.anna).json()
            self.assertNotIn("authentication", mine)
        with self.start(config={"seal": {"keyFile": kept}}) as server:
            mine = server.call("GET", "/api/agents/z", token=self.anna).json()
            self.assertEqual(mine["authentication"]["credentials"], "…set…")
            self.assertEqual(mine["url"], CARD["url"])


if __name__ == "__main__":
    unittest.main()
