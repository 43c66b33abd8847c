"""Channels of a real server: lines in a file, posts at webhooks that judge as
strictly as the platforms say they do; figures and the audit beside."""
import json
import os
import tempfile
import unittest

from client import Client
from platforms import DiscordHook, SlackHook
from signalbox import ECHO, Server, eventually, metric


def asked_until(server, path, is_so):
    """What the path says once it is so."""
    said = []

    def look():
        said[:] = [server.call("GET", path).json()]
        return is_so(said[0])
    eventually(look, path)
    return said[0]


class Channels(Client):
    def rules(self, channels):
        folder = tempfile.mkdtemp(prefix="signalbox-rules-")
        self.addCleanup(os.rmdir, folder)
        path = os.path.join(folder, "routing_rules.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({
                "agents": {"echo": {}},
                "escalations": [{
                    "rule": "@everyone <!channel>",
                    "match": {"to": "echo", "type": "MESSAGE"}}],
                "channels": channels}, file)
        self.addCleanup(os.remove, path)
        return path

    def send(self, server, n):
        for i in range(n):
            server.call("POST", "/api/messages",
                        {"text": f"m{i} @here <!here>", "wait_ms": 0,
                         "executor": {"name": "echo"}})

    def test_figures_and_audit_beside_their_targets(self):
        with Server(agents=ECHO) as server:
            self.send(server, 5)
            said = asked_until(
                server, "/api/gate",
                lambda g: g["figures"]["routed_per_hour"]["value"] == 5)
            figures = said["figures"]
            self.assertEqual(
                {name: figures[name]["target"] for name in
                 ("routed_per_hour", "hold_ms", "escalations_per_day",
                  "lost")},
                {"routed_per_hour": 100, "hold_ms": 30 * 60 * 1000,
                 "escalations_per_day": 5, "lost": 0})
            # Five came and five went: that it should be a hundred says nothing.
            self.assertEqual((figures["routed_per_hour"]["came"],
                              figures["routed_per_hour"]["is_met"],
                              figures["routed_per_hour"]["average_24h"]),
                             (5, None, 0.2))
            self.assertEqual(said["rules"]["state"], "none")
            self.assertEqual(said["channels"], [])
            # No one knows before an audit has ended, which it does soon.
            lost = figures["lost"]
            self.assertEqual(
                (lost["value"], lost["is_met"]),
                (0, True) if lost["audited_ms"] else (None, None))
            self.assertIn(metric(server, "signalbox_gate_lost"), (-1, 0))
            self.assertEqual(
                server.call("POST", "/api/gate/audit").status, 202)
            audit = asked_until(server, "/api/gate/audit",
                                lambda a: a["lost"] is not None and
                                a["accepted"] == 5)
            self.assertEqual((audit["lost"], audit["stray"],
                              audit["strays"]), (0, 0, []))
            self.assertEqual(metric(server, "signalbox_gate_lost"), 0)
            self.use(server)
            self.assertIn("target: at most 30m", self.good("gate", "stats"))
            audit = json.loads(self.good("gate", "audit", "--json"))
            self.assertEqual(audit["lost"], 0)

    def test_files_and_webhooks_get_what_happens(self):
        with SlackHook() as slack, DiscordHook() as discord:
            discord.answers.append(
                (429, {"Retry-After": "1"}, {"retry_after": 0.3}))
            path = self.rules({
                "#agent-feed": {"takes": ["decisions"],
                                "file": {"path": "agent-feed.jsonl"}},
                "#kept": {"takes": ["alerts"],
                          "file": {"path": "alerts.jsonl"}},
                "#alerts": {"takes": ["alerts"], "webhook": {
                    "url": slack.url, "form": "slack"}},
                "#others": {"takes": ["alerts"], "webhook": {
                    "url": discord.url, "form": "discord"}}})
            config = {"rules": path, "outgoing": {"allow": ["127.0.0.0/8"]}}
            with Server(agents=ECHO, config=config) as server:
                self.send(server, 1)
                asked_until(server, "/api/gate", lambda g: all(
                    c["written"] for c in g["channels"]))
                with open(os.path.join(server.data, "agent-feed.jsonl"),
                          encoding="utf-8") as file:
                    lines = [json.loads(line) for line in file]
                self.assertEqual([e["type"] for e in lines],
                                 ["gate.escalated"])
                self.assertEqual(lines[0]["data"]["routing_decision"],
                                 "ESCALATE_TO_HUMAN")
                with open(os.path.join(server.data, "alerts.jsonl"),
                          encoding="utf-8") as file:
                    lines = [json.loads(line) for line in file]
                self.assertEqual([(e["type"], e["context"]) for e in lines],
                                 [("gate.escalated", "m0 @here <!here>")])
            self.assertEqual((slack.refused, discord.refused), ([], []))
            self.assertIn("m0", json.dumps(slack.posts))
            self.assertIn("m0", json.dumps(discord.posts))


if __name__ == "__main__":
    unittest.main()
