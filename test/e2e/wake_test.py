"""Agents that sleep: they are asked to come by a real request, what waits for
them is carried when they are there, and distinct errors say that one did not
wake up, or must be running."""
import http.server
import json
import shutil
import tempfile
import unittest

from road_agents import HubAgent, Memory, Quiet, in_thread
from signalbox import Server, eventually


class Alarm:
    """The far end of wake urls: remembers who was to be woken, and answers
    with the next of `statuses`, or 204. `on_ring` is called then."""

    def __init__(self):
        self.rings = []
        self.statuses = []
        self.on_ring = lambda: None
        alarm = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                alarm.rings.append((self.path, json.loads(body)))
                status = alarm.statuses.pop(0) if alarm.statuses else 204
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()
                if status == 204:
                    alarm.on_ring()

            def log_message(self, *_):
                pass

        self.server = Quiet(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/wake"

    def __enter__(self):
        in_thread(self.server.serve_forever, 0.01)
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


class Waking(unittest.TestCase):
    def stage(self, wake_ms, **card):
        """A server, and an agent that sleeps until its alarm rings."""
        folder = tempfile.mkdtemp(prefix="signalbox-wake-")
        self.addCleanup(shutil.rmtree, folder)
        alarm = self.enterContext(Alarm())
        server = self.enterContext(Server(
            "--set", "log.level=error", config={
                "deliver": {"wakeMs": wake_ms, "retryMs": 20}},
            agents=[{"id": "night", "wake": {"url": alarm.url}, **card},
                    {"id": "day"}]))
        agent = HubAgent(server, "night", Memory(folder))

        def get_up():
            alarm.on_ring = lambda: None
            in_thread(self.enterContext, agent)
        alarm.on_ring = get_up
        return server, alarm, agent

    def test_it_is_woken_once_and_nothing_is_lost(self):
        server, alarm, _ = self.stage(30000)
        sent = [server.send(f"id:{i}|work|say:{i}", to="night", wait_ms=0)
                for i in range(5)]
        for i, answer in enumerate(sent):
            self.assertEqual(answer.status, 202, answer)
            path = f"/api/tasks/{answer.json()['task_id']}"
            eventually(lambda: server.call("GET", path).json()["status"]
                       == "completed", "completed")
            task = server.call("GET", path).json()
            self.assertEqual((task["result"]["text"], task["attempt"]),
                             (str(i), 1))
        self.assertEqual(alarm.rings,
                         [("/wake", {"agent": "night", "reason": "task"})])

    def test_it_is_asked_again_where_that_failed(self):
        server, alarm, _ = self.stage(30000)
        alarm.statuses = [500, 503]
        got = server.send("work|say:awake", to="night").json()
        self.assertEqual((got["status"], got["text"]), ("completed", "awake"))
        self.assertEqual(len(alarm.rings), 3)

    def test_who_does_not_come_fails_it_and_is_dead_the_third_time(self):
        server, alarm, _ = self.stage(150)
        alarm.on_ring = lambda: None
        for i in range(3):
            state = server.call("GET", "/api/agents/night").json()["state"]
            self.assertNotEqual(state, "DEAD")
            got = server.send(f"id:{i}|say:x", to="night").json()
            self.assertEqual(got["status"], "failed")
            self.assertEqual(got["error"]["code"], "agent_did_not_wake")
            self.assertIn("150 ms", got["error"]["message"])
        self.assertEqual(len(alarm.rings), 3)
        state = server.call("GET", "/api/agents/night").json()["state"]
        self.assertEqual(state, "DEAD")

    def test_who_cannot_be_woken_must_be_running(self):
        server, alarm, _ = self.stage(150)
        answer = server.send("x", to="day")
        self.assertEqual(answer.status, 503)
        self.assertEqual(answer.json()["error"]["code"], "agent_offline")
        self.assertIn("must be running", answer.json()["error"]["message"])
        self.assertEqual(alarm.rings, [])

    def test_the_wake_url_of_a_user_does_not_reach_inward(self):
        server, alarm, _ = self.stage(150)
        anna = server.user("anna")
        made = server.call("POST", "/api/agents", {
            "name": "spy", "description": "x", "url": "ws-agent://spy",
            "wake": {"url": alarm.url.replace("127.0.0.1", "localhost")}},
            token=anna)
        self.assertEqual(made.status, 201, made)
        got = server.send("x", to="spy", token=anna).json()
        self.assertEqual(got["error"]["code"], "agent_did_not_wake", got)
        self.assertEqual(alarm.rings, [])
