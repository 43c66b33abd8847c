"""A model of two tiers in a real server: the table decides what is clear, the
transformer the rest, and the record says so, also after a restart."""
import json
import shutil
import subprocess
import tempfile
import unittest

from signalbox import BINARY, Server, clean_environment, eventually, metric

AGENTS = [
    {"id": "engineer", "url": "echo:",
     "description": "Builds and repairs software, finds bugs in programs",
     "skills": [{"id": "debug", "name": "Debugging",
                 "description": "Finds and fixes bugs in programs",
                 "examples": ["why does this program segfault"]}]},
    {"id": "cook", "description": "Recipes for bread and soup",
     "url": "echo:"},
    {"id": "lawyer", "description": "Contracts and the law of companies",
     "url": "echo:"},
    {"id": "translator", "description": "Translates letters into French",
     "url": "echo:"},
]
CLEAR = "why does this program segfault"
UNCLEAR = "something went wrong again since yesterday"
DIMS, QUICK = 640, 256


def full_texts(server):
    """Texts that the transformer has made into vectors."""
    return metric(server, "signalbox_embed_texts_total")


def by_tier(server, tier):
    name = f'signalbox_decisions_by_tier_total{{tier="{tier}"}} '
    lines = server.get("/metrics").body.decode().splitlines()
    return [int(x[len(name):]) for x in lines if x.startswith(name)]


class Tiers(unittest.TestCase):
    def start(self, **embed):
        config = {"agents": {"list": AGENTS}}
        if embed:
            config["embed"] = embed
        server = Server(config=config)
        self.addCleanup(server.stop)
        return server.ready()

    def send(self, server, text, **fields):
        answer = server.call("POST", "/api/messages", {"text": text, **fields})
        body = answer.json()
        if answer.status == 422:
            found = body["error"]["details"]["decision_id"]
        else:
            self.assertEqual(answer.status, 200, answer)
            found = body["decision"]["id"]
            self.assertIn("tier", body["decision"])
        return self.decision(server, found)

    def decision(self, server, found):
        answer = server.call("GET", f"/api/decisions/{found}")
        self.assertEqual(answer.status, 200, answer)
        return answer.json()

    def rest_of(self, d):
        """The numbers of its vector behind the table's."""
        raw = bytes.fromhex(d["vector"])
        self.assertEqual(len(raw), 8 + 2 * DIMS)
        high, low = raw[8:8 + DIMS], raw[8 + DIMS:]
        return high[QUICK:] + low[QUICK:]

    def cli(self, server, *args):
        env = {**clean_environment(), "SIGNALBOX_URL": server.url,
               "SIGNALBOX_TOKEN": server.token}
        return subprocess.run([BINARY, *args], env=env, text=True,
                              capture_output=True, timeout=60, check=False)


class Deciding(Tiers):
    def test_the_record_says_which_tier_decided(self):
        server = self.start()
        clear = self.send(server, CLEAR)
        self.assertEqual((clear["tier"], clear["tier_note"], clear["agent"]),
                         ("table", None, "engineer"))
        self.assertFalse(any(self.rest_of(clear)))
        unclear = self.send(server, UNCLEAR)
        self.assertEqual((unclear["tier"], unclear["tier_note"]),
                         ("transformer", None))
        self.assertTrue(any(self.rest_of(unclear)))
        self.assertEqual(unclear["rules"]["second_margin"], 3)
        for tier in ("table", "transformer"):
            self.assertEqual(by_tier(server, tier), [1])
        self.assertEqual(
            metric(server, "signalbox_transformer_unheard_total"), 0)
        named = self.send(server, UNCLEAR, executor={"name": "cook"})
        self.assertEqual((named["tier"], named["vector"]), (None, None))

    def test_the_margin_is_what_makes_the_difference(self):
        """The control: the same two messages by other settings."""
        always = self.start(secondMargin=10)
        self.assertEqual(self.send(always, CLEAR)["tier"], "transformer")
        table = self.start(kind="table")
        for text in (CLEAR, UNCLEAR):
            d = self.send(table, text)
            self.assertEqual((d["tier"], d["rules"]["second_margin"]),
                             (None, 0))
            self.assertEqual(len(d["vector"]), 2 * (8 + 2 * QUICK))

    def test_what_a_look_says_is_what_a_message_gets(self):
        server = self.start()
        for text in (CLEAR, UNCLEAR, "ok thanks", "bread", "a French letter"):
            look = server.call("POST", "/api/route", {"text": text})
            d = self.send(server, text)
            if look.status == 200:
                self.assertEqual(
                    {k: look.json()[k] for k in ("tier", "agent", "score")},
                    {k: d[k] for k in ("tier", "agent", "score")}, text)

    def test_records_of_both_tiers_are_replayed_bit_for_bit(self):
        server = self.start()
        for text in (CLEAR, UNCLEAR, "bread", "soup for ten", "the contract",
                     "translate this letter", "hello", "what now"):
            self.send(server, text)
        replay = self.cli(server, "replay", "--json")
        self.assertEqual(replay.returncode, 0, replay.stderr)
        said = json.loads(replay.stdout.splitlines()[-1])
        self.assertEqual((said["replayed"], said["same"]), (8, 8), said)


class Learning(Tiers):
    def test_a_correction_of_the_tables_choice_is_taught_by_both(self):
        server = self.start()
        d = self.send(server, CLEAR)
        self.assertEqual(d["tier"], "table")
        before = full_texts(server)
        answer = server.call("POST", f"/api/decisions/{d['id']}/override",
                             {"agent": "lawyer"})
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(full_texts(server), before + 1)
        again = self.send(server, CLEAR)
        self.assertEqual((again["agent"], again["example"], again["tier"]),
                         ("lawyer", True, "table"))
        similar = self.send(server, "why does my program segfault now")
        self.assertGreater(next(c["learned"] for c in similar["candidates"]
                                if c["agent"] == "lawyer"), 0.3)


class Unheard(Tiers):
    """Two texts, the whole and the line that asks, are more than may wait: so
    the transformer refuses long messages, and short ones alone are read."""

    LOG = "".join(f"2026-05-01 12:00:{i:02} [INFO] worker {i}: ok\n"
                  for i in range(20))
    LONG = LOG + "\nCould you please have a look at this since yesterday?\n"

    def setUp(self):
        self.data = tempfile.mkdtemp(prefix="signalbox-test-")
        self.addCleanup(shutil.rmtree, self.data, True)
        with Server(config={"agents": {"list": AGENTS}},
                    data=self.data) as server:
            server.ready()
            token = server.token
        self.server = Server(config={"agents": {"list": AGENTS},
                                     "embed": {"maxWaiting": 1}},
                             data=self.data, token=token)
        self.addCleanup(self.server.stop)
        eventually(lambda: self.send(self.server, UNCLEAR)["tier"] ==
                   "transformer", "what the first start has made")

    def override(self, d, agent):
        answer = self.server.call(
            "POST", f"/api/decisions/{d['id']}/override", {"agent": agent})
        self.assertEqual(answer.status, 200, answer)
        return answer.json()

    def test_the_table_decides_and_the_record_says_why(self):
        why = "the transformer has too much to do, so the table decided"
        d = self.send(self.server, self.LONG)
        self.assertEqual((d["tier"], d["tier_note"]), ("table", why))
        self.assertIn(why, d["reason"])
        self.assertEqual(
            metric(self.server, "signalbox_transformer_unheard_total"), 1)
        self.assertRegex(self.cli(self.server, "decisions", "show",
                                  d["id"]).stdout,
                         r"tier +table, without the transformer\n")
        replay = self.cli(self.server, "replay", "--json")
        self.assertEqual(replay.returncode, 0, replay)
        self.assertEqual(self.send(self.server, UNCLEAR)["tier_note"], None)

    def test_a_correction_teaches_by_the_table_then(self):
        """Of a decision that has a quick vector, and of one that has none."""
        for asks in ("look at the contract", "look at the recipe"):
            text = self.LOG + f"\nCould you please {asks} since yesterday?\n"
            named = {"executor": {"name": "engineer"}}
            d = self.send(self.server, text,
                          **(named if "recipe" in asks else {}))
            self.assertNotIn("note", self.override(d, "translator"))
            again = self.send(self.server, text + "And then?\n")
            self.assertGreater(
                next(c["learned"] for c in again["candidates"]
                     if c["agent"] == "translator"), 0.3)


class Showing(Tiers):
    def test_route_and_decisions_show_the_tier(self):
        server = self.start()
        d = self.send(server, CLEAR)
        self.assertRegex(self.cli(server, "route", CLEAR).stdout,
                         r"tier +table\n")
        self.assertRegex(self.cli(server, "decisions", "show", d["id"]).stdout,
                         r"tier +table\n")
        d = self.send(server, UNCLEAR)
        self.assertRegex(self.cli(server, "decisions", "show", d["id"]).stdout,
                         r"tier +transformer, because the table was not clear\n")


if __name__ == "__main__":
    unittest.main()
