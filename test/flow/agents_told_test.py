"""What the feed tells of agents, money and the configuration, and to which users."""
import os
import signal
import time
import unittest

from cards import SEES, people, register
from hub_peer import Hub
from signalbox import Server, eventually

SPAN_S = 20  # of one agent no more than two entries in so long


def feed(server, token, *types, after=0):
    """The entries of these types, as the pages have them."""
    items = server.call("GET", f"/api/feed?after={after}&limit=500",
                        token=token).json()["items"]
    return [e for e in items if e["type"] in types]


def streamed(server, token, n, after=0):
    """The next n entries of agents, as a stream has them."""
    found = []
    with server.events("/api/feed", after=after, token=token) as events:
        for _, event, data in events:
            if event.startswith("agent."):
                found.append(data)
            if len(found) == n:
                return found


def told(server, name, to, token=None, after=0):
    """The agent's own entry that says it is so."""
    found = []

    def is_told():
        found[:] = [e for e in feed(server, token or server.token,
                                    "agent.state", after=after)
                    if e["agent"] == name and e["data"]["to"] == to]
        return found
    eventually(is_told, f"{name} is {to}")
    return found[-1]


class States(unittest.TestCase):
    def test_that_it_came_and_went_is_told_whoever_sees_it(self):
        with Server() as server:
            cast = people(server)
            hubs = []
            for kind in SEES:
                register(server, "of-" + kind, token=cast["creator"],
                         url="ws-agent://of-" + kind, visibility=kind)
                if kind == "shared":
                    for fields in {"user": "gus"}, {"org": "partner"}:
                        server.call("POST", "/api/grants",
                                    {"agent": "of-shared", **fields},
                                    token=cast["creator"])
                hub = Hub(server, cast["creator"])
                hub.register("of-" + kind)
                hubs.append(hub)
            for kind in SEES:
                e = told(server, "of-" + kind, "IDLE")
                self.assertEqual(e["data"], {"from": "DEAD", "to": "IDLE",
                                             "why": "came"})
            self.check_who(server, cast)
            newest = feed(server, server.token, "agent.state")[-1]["seq"]
            for hub in hubs:
                hub.close()
            for kind in SEES:
                e = told(server, "of-" + kind, "DEAD", after=newest)
                self.assertEqual(e["data"]["why"], "gone")

    def check_who(self, server, cast):
        """By pages, and by a stream: the same."""
        for who, token in cast.items():
            if who == "missing":
                continue
            want = {"of-" + kind for kind in SEES if who in SEES[kind]}
            for type in "agent.registered", "agent.state":
                found = feed(server, token, type)
                with self.subTest(who=who, type=type):
                    self.assertEqual({e["agent"] for e in found}, want)
            both = feed(server, token, "agent.registered", "agent.updated",
                        "agent.state")
            with self.subTest(who=who):
                self.assertEqual(streamed(server, token, len(both)), both)
            for e in both:
                is_whole = who in ("admin", "creator") or \
                    e["type"] == "agent.state"
                with self.subTest(who=who, e=e):
                    self.assertEqual(e["data"] != {}, is_whole)
                    if who not in ("admin", "creator"):
                        self.assertEqual((e["requester"], e["root_user"]),
                                         (None, None))

    def test_who_says_the_same_again_and_who_flickers_write_little(self):
        with Server() as server:
            began = time.monotonic()
            with Hub(server) as hub:
                hub.register("steady")
                told(server, "steady", "IDLE")
                for state in ("IDLE", "ACTIVE", "BUSY") * 20:
                    hub.call("agent.state", state=state)
                for _ in range(30):
                    with Hub(server) as other:
                        other.register("flickers")
                with Hub(server) as other: # stays, and is told as it is
                    other.register("flickers")
                    other.call("agent.state", state="ERROR")
                    told(server, "flickers", "ERROR")
                    passed = time.monotonic() - began
                entries = feed(server, server.token, "agent.state")
                steady = [e for e in entries if e["agent"] == "steady"]
                self.assertEqual(len(steady), 1)
                self.assertLessEqual(len(entries) - 1, 2 + 2 * passed / SPAN_S)


class Changes(unittest.TestCase):
    def test_who_may_not_see_one_is_not_told_of_it(self):
        """Of three that are alike but for who sees them, changed, paused,
        resumed and removed; a stranger hears of the public one alone, and
        that it happened is all."""
        types = ("agent.registered", "agent.updated", "agent.paused",
                 "agent.resumed", "agent.removed")
        with Server() as server:
            cast = people(server)
            with server.events("/api/feed", after=0,
                               token=cast["other org"]) as events:
                for kind in SEES:
                    name = "of-" + kind
                    register(server, name, token=cast["creator"],
                             visibility=kind)
                    server.call("PATCH", "/api/agents/" + name,
                                {"title": "x"}, token=cast["creator"])
                    for verb in "pause", "resume":
                        server.call("POST", f"/api/agents/{name}/{verb}",
                                    token=cast["creator"])
                self.assertEqual([e[2]["agent"] for e in events.take(4)],
                                 ["of-public"] * 4)
                for kind in reversed(SEES):
                    server.call("DELETE", f"/api/agents/of-{kind}",
                                token=cast["creator"])
                last = events.take(1)[0][2]
                self.assertEqual((last["type"], last["agent"], last["data"],
                                  last["requester"]),
                                 ("agent.removed", "of-public", {}, None))
            mine = feed(server, cast["creator"], *types)
            self.assertEqual([e["type"] for e in mine
                              if e["agent"] == "of-private"], list(types))
            self.assertEqual({e["data"]["by"] for e in mine}, {"anna"})
            others = feed(server, cast["same org"], *types)
            self.assertEqual([(e["type"], e["agent"]) for e in others],
                             [("agent.removed", "of-public")])

    def test_what_another_of_the_same_name_did_is_not_told(self):
        with Server() as server:
            cast = people(server)
            register(server, "hers", token=cast["creator"],
                     visibility="private")
            server.call("DELETE", "/api/agents/hers", token=cast["creator"])
            eventually(lambda: server.call(
                "GET", "/api/agents/hers").status == 404, "it is gone")
            before = feed(server, server.token, "agent.removed")[-1]
            while time.time() * 1000 <= before["at_ms"] + 1:
                pass
            register(server, "Hers", visibility="public")
            types = "agent.registered", "agent.removed"
            self.assertEqual([e["seq"] for e in feed(
                server, cast["no org"], *types) if e["seq"] <= before["seq"]],
                [])
            self.assertEqual([e["agent"] for e in feed(
                server, cast["no org"], *types)], ["Hers"])


class Rest(unittest.TestCase):
    def test_the_configuration_for_admins(self):
        types = "config.reloaded", "config.refused"
        with Server(config={"retention": {"days": 7}}) as server:
            anna = server.user("anna")
            server.write_config(config={"retention": {"days": 8}})
            server.process.send_signal(signal.SIGHUP)
            eventually(lambda: feed(server, server.token, *types),
                       "it is told")
            with open(os.path.join(server.folder, "test.jsonc"), "w",
                      encoding="utf-8") as f:
                f.write("{")
            server.process.send_signal(signal.SIGHUP)
            eventually(lambda: len(feed(server, server.token, *types)) > 1,
                       "the next one")
            entries = feed(server, server.token, *types)
            self.assertEqual(
                (entries[0]["type"], entries[0]["data"]),
                ("config.reloaded", {"changed": ["retention.days"]}))
            self.assertEqual({(e["type"], len(e["data"]))
                              for e in entries[1:]}, {("config.refused", 0)})
            self.assertEqual(feed(server, anna, *types), [])

    def test_money_for_whose_it_is_and_who_moved_it(self):
        types = "ledger.topup", "ledger.refund"
        with Server() as server:
            anna, bob = server.user("anna"), server.user("bob")
            for path, more in (("topup", {"amount_micros": 500}),
                               ("refund", {"amount_micros": 200}),
                               ("refund", {"amount_micros": 301})):
                server.call("POST", "/api/ledger/" + path,
                            {"user": "ANNA", **more})
            entries = feed(server, anna, *types)
            self.assertEqual(
                [(e["type"], e["data"]["amount_micros"], e["data"]["user"],
                  e["data"]["by"], e["requester"], e["root_user"])
                 for e in entries],
                [("ledger.topup", 500, "anna", "admin", "admin", "anna"),
                 ("ledger.refund", 200, "anna", "admin", "admin", "anna")])
            self.assertEqual(feed(server, server.token, *types), entries)
            self.assertEqual(feed(server, bob, *types), [])


if __name__ == "__main__":
    unittest.main()
