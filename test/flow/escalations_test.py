"""Escalations as docs/protocol.md promises them, and agents that are started
again: the real server, and a real process that is killed."""
import os
import signal
import subprocess
import sys
import threading
import unittest

from client import FAILED, REFUSED, Client
from signalbox import eventually

AGENTS = [{"id": "Rick", "url": "echo:"}, {"id": "Leroy", "url": "echo:"},
          {"id": "Jay", "url": "echo:"}, {"id": "slow", "url": "echo:3600000"}]
RULES = """{
  // Whatever goes to Rick is looked at first.
  "agents": {"Rick": {}, "Leroy": {}, "Jay": {}, "slow": {}, "worker": {
    "restart": {"attempts": 3, "pause": "1s"}}},
  "escalations": [{"rule": "ask-first", "match": {"to": "Rick"}}],
  "sla": [{"rule": "at-once", "match": {"to": "slow"}, "within": "1s"}],
}"""
WORKER = os.path.join(os.environ["SIGNALBOX_SOURCE"], "test", "lib",
                      "hub_worker.py")


def until(found, what):
    """What is found, once it is."""
    got = []
    eventually(lambda: got.append(found()) or got[-1], what)
    return got[-1]


class Stage(Client):
    def em(self):
        rules = os.path.join(self.home, "routing_rules.json")
        with open(rules, "w", encoding="utf-8") as f:
            f.write(RULES)
        return self.server(agents=AGENTS, config={"rules": rules})

    def api(self, server, method, path, body=None, status=200, **more):
        got = server.call(method, path, body, **more)
        self.assertEqual(got.status, status, got)
        return got.json()

    def asked(self, server, text, to="Rick", **more):
        """A message that someone must see: its escalation and its task."""
        sent = server.send(text, to=to, wait_ms=0, **more)
        self.assertEqual(sent.status, 202, sent)
        task = sent.json()["task_id"]
        for e in self.api(server, "GET", "/api/escalations?status=open")[
                "items"]:
            if e["task_id"] == task:
                return e, task
        raise AssertionError(f"no one is asked about {task}")

    def task(self, server, task):
        return self.api(server, "GET", "/api/tasks/" + task)

    def over(self, server, task):
        return until(lambda: (t := self.task(server, task))["status"] in (
            "completed", "failed", "cancelled", "expired") and t,
            "the task is over")


class Escalations(Stage):
    def test_two_people_and_one_decision(self):
        server = self.em()
        text = "exactly \u2028 as  it\twas \U0001f600 {\"a\": 1 }\n"
        e, task = self.asked(server, text)
        self.assertEqual((e["kind"], e["rule"], e["agent"]),
                         ("rule", "ask-first", "Rick"))
        self.assertEqual(self.task(server, task)["status"], "escalated")
        got = []
        both = [threading.Thread(target=lambda w=w: got.append(server.call(
            "POST", f"/api/escalations/{e['id']}/{w}", {"comment": w})))
            for w in ("approve", "approve")]
        for t in both:
            t.start()
        for t in both:
            t.join()
        self.assertEqual(sorted(r.status for r in got), [200, 409])
        lost = max(got, key=lambda r: r.status).json()["error"]["message"]
        self.assertRegex(lost, "has already decided it: approved")
        again = server.call("POST", f"/api/escalations/{e['id']}/reject")
        self.assertEqual(again.status, 409)
        self.assertIn("approved", again.json()["error"]["message"])
        done = self.over(server, task)
        self.assertEqual((done["status"], done["text"],
                          done["result"]["text"]), ("completed", text, text))

    def test_reject_and_redirect(self):
        server = self.em()
        e, task = self.asked(server, "no")
        decided = self.api(server, "POST", f"/api/escalations/{e['id']}/reject",
                           {"comment": "not today"})
        self.assertEqual((decided["status"], decided["by"],
                          decided["comment"]),
                         ("rejected", "admin", "not today"))
        error = self.task(server, task)["result"]["error"]
        self.assertEqual(error["code"], "rejected")
        self.assertIn("not today", error["message"])
        e, task = self.asked(server, "elsewhere")
        path = f"/api/escalations/{e['id']}/redirect"
        for body, status in (({}, 400), ({"agent": "missing"}, 404),
                             ({"agent": "Rick"}, 400),
                             ({"agent": "Leroy", "x": 1}, 400)):
            self.api(server, "POST", path, body, status)
        self.assertEqual(self.api(server, "POST", path, {"agent": "leroy"})[
            "redirected_to"].lower(), "leroy")
        done = self.over(server, task)
        self.assertEqual((done["agent"].lower(), done["result"]["text"]),
                         ("leroy", "elsewhere"))

    def test_whose_they_are(self):
        server = self.em()
        ann, bob = server.user("ann"), server.user("bob")
        e, task = self.asked(server, "mine", token=ann)
        path = "/api/escalations/" + e["id"]
        self.api(server, "GET", path, status=404, token=bob)
        self.api(server, "POST", path + "/approve", status=403, token=bob)
        narrow = server.call("POST", "/api/tokens", {
            "scopes": ["read", "escalations"]}).json()["token"]
        self.api(server, "POST", path + "/approve", status=404, token=narrow)
        self.assertEqual(self.api(server, "GET", "/api/escalations", token=bob)[
            "items"], [])
        self.assertEqual(self.api(server, "GET", path, token=ann)["task"][
            "text"], "mine")
        weak = server.call("POST", "/api/tokens", {
            "user": "ann", "scopes": ["read", "send"]}).json()["token"]
        self.api(server, "POST", path + "/approve", status=403, token=weak)
        self.api(server, "POST", "/api/tasks/" + task + "/cancel", token=ann)
        self.assertEqual(self.api(server, "GET", path)["status"], "resolved")

    def test_one_that_is_late(self):
        server = self.em()
        sent = server.send("soon?", to="slow", wait_ms=0)
        late = until(lambda: self.api(
            server, "GET", "/api/escalations?kind=late")["items"],
            "it is late")
        self.assertEqual(late[0]["task_id"], sent.json()["task_id"])
        self.assertIn("slow has not answered within 1 second",
                      late[0]["reason"])
        self.api(server, "POST",
                 f"/api/escalations/{late[0]['id']}/redirect",
                 {"agent": "Leroy"})
        self.assertEqual(self.over(server, sent.json()["task_id"])["result"][
            "text"], "soon?")

    def test_the_command_line(self):
        server = self.em()
        e, _ = self.asked(server, "by hand")
        self.assertIn(e["id"], self.good("escalations"))
        self.assertIn("by hand", self.good("escalations", e["id"]))
        self.assertIn("is approved", self.good(
            "escalations", "approve", e["id"], "--comment", "fine"))
        status, _, err = self.run_it("escalations", "reject", e["id"])
        self.assertEqual(status, REFUSED, err)
        self.assertIn("admin", err)
        self.assertIn("No open escalations", self.good("escalations"))
        self.assertEqual([x["comment"] for x in self.lines(
            "escalations", "--status", "all")], ["fine"])

    def test_a_pause_outlives_the_server(self):
        server = self.em()
        self.assertIn("no new work", self.good("agents", "pause", "Jay"))
        sent = server.send("wait", to="Jay", wait_ms=0).json()["task_id"]
        other = server.send("go", to="Leroy").json()
        self.assertEqual(other["text"], "go")
        self.assertEqual(self.task(server, sent)["status"], "queued")
        self.good("agents", "resume", "Jay")
        self.assertEqual(self.over(server, sent)["status"], "completed")


class Killed(Stage):
    """An agent that is a process: killed, and started again by its card."""

    def setUp(self):
        super().setUp()
        self.worker = None

    def state(self, server):
        got = server.call("GET", "/api/agents/worker")
        return got.json().get("state") if got.status == 200 else None

    def begin(self):
        server = self.em()
        token = os.path.join(self.home, "token")
        with open(token, "w", encoding="utf-8") as f:
            f.write(server.token)
        host, port = server.address
        pids = os.path.join(self.home, "pids")
        run = [sys.executable, WORKER, host, str(port), token, "worker"]
        script = os.path.join(self.home, "again.sh")
        with open(script, "w", encoding="utf-8") as f:
            # A group of its own first, and then the background: what is in
            # the group of the command ends with it.
            f.write("setsid sh -c '" + " ".join(run) +
                    f" >/dev/null 2>&1 </dev/null & echo $! >> {pids}'\n")
        self.pids = pids
        self.worker = subprocess.Popen(run)
        eventually(lambda: self.state(server) == "IDLE", "it is there")
        self.api(server, "PATCH", "/api/agents/worker",
                 {"restart": {"command": ["/bin/sh", script]}})
        return server

    def tearDown(self):
        if self.worker and self.worker.poll() is None:
            self.worker.kill()
            self.worker.wait()
        if os.path.exists(getattr(self, "pids", "")):
            with open(self.pids, encoding="utf-8") as f:
                for pid in f.read().split():
                    try:
                        os.kill(int(pid), signal.SIGKILL)
                    except ProcessLookupError:
                        pass
        super().tearDown()

    def kill_worker(self, server):
        self.worker.kill()
        self.worker.wait()
        eventually(lambda: self.state(server) == "DEAD", "it is dead")

    def test_by_hand(self):
        server = self.begin()
        self.kill_worker(server)
        self.assertIn("was restarted", self.good("agents", "restart",
                                                     "worker"))
        eventually(lambda: self.state(server) in ("IDLE", "ACTIVE"),
                   "it is back")
        self.assertEqual(server.send("back?", to="worker").json()["text"],
                         "back?")
        ann = server.user("ann")
        self.assertIn(server.call("POST", "/api/agents/worker/restart",
                                  token=ann).status, (403, 404))
        status, _, err = self.run_it("agents", "restart", "Leroy")
        self.assertIn(status, (FAILED, REFUSED), err)
        self.assertIn("nothing to restart it with", err)

    def test_a_message_for_the_dead_brings_them_back(self):
        server = self.begin()
        self.kill_worker(server)
        sent = server.call("POST", "/api/envelopes", {
            "from": "Jay", "to": "worker", "type": "REQUEST",
            "reference": "R-1", "payload": {"n": 1}, "context": "please"})
        self.assertEqual(sent.status, 200, sent)
        said = sent.json()
        self.assertEqual(said["routing_decision"], "ESCALATE_TO_HUMAN", said)
        done = self.over(server, said["task_id"])
        self.assertEqual(done["status"], "completed", done)
        e = self.api(server, "GET", "/api/escalations/" +
                     said["escalation_id"])
        self.assertEqual((e["kind"], e["status"], e["comment"]),
                         ("dead", "resolved", "the agent is back"))
        self.assertEqual(e["envelope"]["payload"], {"n": 1})
        types = [x["type"] for x in self.api(
            server, "GET", "/api/feed?last=100")["items"]]
        self.assertIn("agent.restarting", types)
        self.assertIn("agent.restarted", types)


if __name__ == "__main__":
    unittest.main()
