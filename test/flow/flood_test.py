"""Two users who take all they can of one resource, and an honest user beside
them: the honest user is served, health checks have an answer, and an admin can
act. bench/flood.py measures the same."""
import socket
import struct
import unittest

from planted import fails_with, needs_planted
from signalbox import DEADLINE_S, Server, eventually, metric

AGENTS = [{"id": "echo", "url": "echo:"}, {"id": "never", "url": "echo:3600000"}]
QUIET = ("--set", "log.level=warn")
HOSTILE = ("mallory", "oscar")
MOST = 40


def reset(peer):
    """Close as a process that is killed does: a plain end could also be that
    of a client that has said all and still listens."""
    peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                           struct.pack("ii", 1, 0))
    peer.socket.close()


class Flood(unittest.TestCase):
    def check_others(self, server, honest):
        """What must go on beside the flood."""
        self.assertEqual(server.get("/healthz").status, 200)
        self.assertEqual(server.get("/readyz").status, 200)
        for i in range(5):
            sent = server.send(f"m{i}", token=honest)
            self.assertEqual((sent.status, sent.json().get("text")),
                             (200, f"m{i}"), sent)
        made = server.send("by an admin")
        self.assertEqual(made.status, 200, made)
        server.user("late")

    def test_tasks(self):
        """As many as two users are given by default, in small."""
        config = {"tasks": {"maxUnfinished": 400, "maxUnfinishedPerUser": 200},
                  "rate": {"perUser": 0}}
        with Server(*QUIET, agents=AGENTS, config=config) as server:
            honest = server.user("honest")
            for token in [server.user(x) for x in HOSTILE]:
                sent = [server.send("x", to="never", token=token, wait_ms=0)
                        for _ in range(210)]
                self.assertEqual(sent[0].status, 202)
                self.assertIn(sent[-1].status, (429, 503))
            self.assertGreater(metric(server, "signalbox_tasks"), 300)
            self.check_others(server, honest)
            tasks = server.call("GET", "/api/tasks?limit=500").json()["items"]
            open_ones = [t["id"] for t in tasks if t["status"] != "completed"]
            self.assertEqual(server.call(
                "POST", f"/api/tasks/{open_ones[0]}/cancel").status, 200)

    def test_index(self):
        """As many tiny skills as they may have."""
        skills = [{"id": str(i), "name": "refund"} for i in range(256)]
        config = {"registry": {"maxSkills": 4000, "maxSkillsPerUser": 1500},
                  "rate": {"perUser": 0}}
        with Server(*QUIET, agents=AGENTS, config=config) as server:
            honest = server.user("honest")
            for token in [server.user(x) for x in HOSTILE]:
                name = "m" + token[-8:]
                put = [server.call("PUT", f"/api/agents/{name}-{i}",
                                   {"description": "refund", "url": "echo:",
                                    "visibility": "public", "skills": skills},
                                   token=token).status for i in range(10)]
                self.assertIn(put[0], (200, 201))
                self.assertEqual(put[-1], 413)
            made = server.call(
                "PUT", "/api/agents/own",
                {"description": "Handles the refund of an invoice",
                 "url": "echo:", "skills": [
                     {"id": "s", "name": "refund of an invoice"}]},
                token=honest)
            self.assertIn(made.status, (200, 201), made)
            server.ready()
            chosen = server.call("POST", "/api/route",
                                 {"text": "the refund of an invoice"},
                                 token=honest)
            self.assertEqual(chosen.status, 200, chosen)
            self.check_others(server, honest)
            listed = server.call("GET", "/api/agents?limit=500").json()["items"]
            theirs = [a["name"] for a in listed if a["name"].startswith("m")]
            self.assertEqual(len(theirs), 2 * (1500 // 256))
            self.assertIn(server.call(
                "DELETE", f"/api/agents/{theirs[0]}").status, (200, 204))

    def test_connections(self):
        """Four times as many as there may be, and they say nothing."""
        config = {"http": {"maxConnections": MOST}}
        with Server(*QUIET, agents=AGENTS, config=config) as server:
            honest = server.user("honest")
            silent = []
            try:
                for _ in range(4 * MOST):
                    silent.append(socket.create_connection(server.address,
                                                           DEADLINE_S))
                self.check_others(server, honest)
            finally:
                for s in silent:
                    s.close()

    def test_connections_at_work(self):
        """Where all wait for an answer, health checks have one still."""
        config = {"http": {"maxConnections": MOST}, "rate": {"perUser": 0}}
        with Server(*QUIET, agents=AGENTS, config=config) as server:
            held = []
            for i in range(MOST):
                held.append(server.connect())
                held[-1].send(server.request(
                    "POST", "/api/messages",
                    {"text": f"m{i}", "executor": {"name": "never"},
                     "wait_ms": 600000}))
            eventually(lambda: server.get("/metrics").status == 503, "all wait")
            self.assertEqual(server.get("/healthz").status, 200)
            self.assertEqual(server.get("/readyz").status, 200)
            for peer in held:
                reset(peer)
            eventually(lambda: server.get("/metrics").status == 200, "room")


    def test_connections_that_are_held(self):
        """Both wait for answers that never come, on as many as they can."""
        config = {"http": {"maxConnections": 2 * MOST}, "rate": {"perUser": 0}}
        with Server(*QUIET, agents=AGENTS, config=config) as server:
            honest, held = server.user("honest"), []
            for token in [server.user(x) for x in HOSTILE]:
                for i in range(2 * MOST):
                    peer = server.connect()
                    held.append(peer)
                    peer.send(server.request(
                        "POST", "/api/messages",
                        {"text": f"m{i}", "executor": {"name": "never"},
                         "wait_ms": 600000}, "Connection: close", token=token))
            self.check_others(server, honest)
            self.assertGreater(
                metric(server, "signalbox_rate_limited_total"), 0)
            for peer in held:
                reset(peer)


class Control(unittest.TestCase):
    @needs_planted
    def test_places_without_a_limit(self):
        fails_with(self, "throttle.no_places",
                   Flood().test_connections_that_are_held)

    @needs_planted
    def test_shares_that_do_not_shrink(self):
        said = fails_with(self, "task.fixed_shares", Flood().test_tasks)
        self.assertIn("503", said)

    @needs_planted
    def test_owners_that_are_not_counted(self):
        fails_with(self, "registry.no_shares", Flood().test_index)

    @needs_planted
    def test_silent_connections_that_stay(self):
        said = fails_with(self, "net.no_eviction", Flood().test_connections)
        self.assertIn("503", said)


if __name__ == "__main__":
    unittest.main()
