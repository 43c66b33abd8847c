"""What is held, as docs/protocol.md promises it: the real server, an agent that
is busy, and a start in between."""
import json
import os
import unittest

from client import Client
from hub_peer import Hub
from signalbox import eventually

AGENTS = [{"id": "Rick", "url": "echo:400"}, {"id": "Leroy", "url": "echo:"},
          {"id": "Jay", "url": "echo:"}, {"id": "Z", "url": "echo:"}]
RULES = """{
  "agents": {"Rick": {}, "Leroy": {}, "Jay": {}, "Z": {}},
  "dependencies": [{"rule": "order", "match": {"to": "Leroy",
    "type": "REQUEST"}, "after": [
    {"type": "SUBMITTED", "from": "Jay"}], "hold_for": "1h"}],
  "capacity": [{"rule": "room", "match": {"to": "Rick"}, "queue": 1}]
}"""


class Holds(Client):
    def em(self, **more):
        rules = os.path.join(self.home, "routing_rules.json")
        with open(rules, "w", encoding="utf-8") as f:
            f.write(RULES)
        return self.server(agents=AGENTS, config={"rules": rules}, **more)

    def envelope(self, server, to, kind, reference, status=200, payload=None):
        got = server.call("POST", "/api/envelopes", {
            "from": "Jay", "to": to, "type": kind, "priority": "NORMAL",
            "reference": reference, "payload": payload or {},
            "context": "about " + reference})
        self.assertEqual(got.status, status, got)
        return got.json()

    def holds(self, server, query="", **more):
        got = server.call("GET", "/api/holds" + query, **more)
        self.assertEqual(got.status, 200, got)
        return got.json()

    def status(self, server, task):
        return server.call("GET", "/api/tasks/" + task).json()["status"]

    def test_held_until_it_has_happened(self):
        server = self.em()
        held = self.envelope(server, "Leroy", "REQUEST", "R-1")
        self.assertEqual(held["routing_decision"], "HOLD_PENDING_INPUT")
        self.assertEqual(held["status"], "held")
        self.assertIsNotNone(held["held_until"])
        one, = self.holds(server)["items"]
        self.assertEqual(one["task_id"], held["task_id"])
        self.assertEqual(one["waits_for"], ["event:R-1:SUBMITTED"])
        self.assertEqual(one["rule"], "order")
        self.assertEqual(one["held_until_ms"] - one["since_ms"], 3600000)
        self.assertEqual(one["waits_words"], ["SUBMITTED for R-1"])
        self.assertEqual(one["on_expiry"], "expire")
        self.assertEqual(one["text"], "about R-1")
        self.assertEqual(one["sla_ms"], 1800000)  # where no rules say otherwise
        self.assertEqual(one["due_ms"] - one["since_ms"], 1800000)
        self.assertIn("R-1", self.good("holds"))
        self.assertEqual(json.loads(self.good("holds", "--json"))["task_id"],
                         held["task_id"])
        self.envelope(server, "Z", "SUBMITTED", "R-1")
        eventually(lambda: self.status(server, held["task_id"]) == "completed",
                   "it is let go and done")
        self.assertEqual(self.holds(server)["items"], [])
        self.assertIn("No held messages", self.good("holds"))

    def test_lists_by_page_and_by_what_they_are_about(self):
        server = self.em()
        for i in range(5):
            self.envelope(server, "Leroy", "REQUEST", f"R-{i}")
        page = self.holds(server, "?limit=2")
        self.assertEqual([h["reference"] for h in page["items"]],
                         ["R-0", "R-1"])
        page = self.holds(server, "?limit=4&cursor=" + page["next_cursor"])
        self.assertEqual([h["reference"] for h in page["items"]],
                         ["R-2", "R-3", "R-4"])
        self.assertIsNone(page["next_cursor"])
        self.assertEqual(len(self.holds(server, "?reference=R-3")["items"]), 1)
        self.assertEqual(len(self.holds(server, "?agent=leroy")["items"]), 5)
        self.assertEqual(self.holds(server, "?rule=room")["items"], [])
        one = page["items"][1]
        self.assertEqual(self.holds(server, "?task_id=" + one["task_id"])
                         ["items"], [one])
        self.assertEqual(self.holds(server, "?task_id=task_x")["items"], [])
        for bad in ("?cursor=x", "?limit=0", "?color=red"):
            self.assertEqual(server.call("GET", "/api/holds" + bad).status, 400)

    def test_what_is_behind_another_waits_for_its_turn(self):
        data = os.path.join(self.home, "data")
        server = self.em(data=data)
        for _ in range(2):
            self.envelope(server, "Leroy", "REQUEST", "R-1")
        event = "event:R-1:SUBMITTED"
        self.assertEqual([h["waits_for"] for h in self.holds(server)["items"]],
                         [[event], ["turn", event]])
        server.stop()  # what is behind is not asked about at the start
        server = self.em(data=data, token=server.token)
        eventually(lambda: self.holds(server)["items"][0]["waits_for"] ==
                   [event], "the first is looked at")
        second = self.holds(server)["items"][1]
        self.assertEqual((second["waits_for"], second["waits_words"]), (
            ["turn"], ["its turn, behind one that was sent before it"]))

    def test_a_page_reads_no_more_than_its_share(self):
        server = self.em()
        for i in range(5):
            self.envelope(server, "Leroy", "REQUEST", f"R-{i}",
                          payload={"a": 60 * 1024 * "x"})
        texts = [h["text"] for h in self.holds(server)["items"]]
        self.assertEqual(texts, [f"about R-{i}" for i in range(4)] + [None])
        page = self.holds(server, "?limit=4")
        rest = self.holds(server, "?cursor=" + page["next_cursor"])
        self.assertEqual(rest["items"][0]["text"], "about R-4")
        self.envelope(server, "Leroy", "REQUEST", "R-9",
                      payload={"a": 64 * 1024 * "x"})
        self.assertIsNone(self.holds(server, "?reference=R-9")["items"][0][
            "text"])

    def test_for_want_of_room_in_order(self):
        server = self.em()
        tasks = [self.envelope(server, "Rick", "REQUEST", f"Q-{i}")["task_id"]
                 for i in range(4)]
        self.assertEqual(self.status(server, tasks[3]), "held")
        eventually(lambda: self.status(server, tasks[3]) == "completed",
                   "all had their turn")
        ends = [server.call("GET", "/api/tasks/" + t).json()["finished_ms"]
                for t in tasks]
        self.assertEqual(ends, sorted(ends))

    def test_only_who_asked_and_admins_see_them(self):
        server = self.em()
        self.envelope(server, "Leroy", "REQUEST", "R-1")
        server.call("POST", "/api/users", {"name": "bob", "role": "user"})
        bob = server.call("POST", "/api/tokens", {
            "user": "bob", "scopes": ["read"]}).json()["token"]
        self.assertEqual(self.holds(server, token=bob)["items"], [])
        self.assertEqual(len(self.holds(server)["items"]), 1)


BATCH_RULES = {"agents": {"Rick": {}, "Jay": {}}, "capacity": [
    {"rule": "room", "match": {"to": "Rick"}, "queue": 1,
     "batch": {"most": 3}}]}


class Batches(Client):
    """Several that waited go as one task: each is where that one is."""

    def em(self, **more):
        rules = os.path.join(self.home, "rules.json")
        with open(rules, "w", encoding="utf-8") as f:
            json.dump(BATCH_RULES, f)
        return self.server(agents=[{"id": "Jay", "url": "echo:"}],
                           config={"rules": rules}, **more)

    def get(self, server, path):
        got = server.call("GET", path)
        self.assertEqual(got.status, 200, got)
        return got.json()

    def send(self, server, reference):
        return server.call("POST", "/api/envelopes", {
            "from": "Jay", "to": "Rick", "type": "REQUEST",
            "reference": reference}).json()["task_id"]

    def taken(self, hub):
        """The next task that Rick is given, which it keeps."""
        message = hub.next(lambda m: m.get("method") == "task.execute")
        hub.send({"jsonrpc": "2.0", "id": message["id"],
                  "result": {"status": "working"}})
        return message["params"]

    def done(self, hub, task):
        hub.call("task.result", task_id=task["task_id"], turn=task["turn"],
                 status="completed", text="done")

    def status(self, server, task):
        return self.get(server, "/api/tasks/" + task)["status"]

    def with_status(self, server, status):
        return {t["id"] for t in self.get(
            server, "/api/tasks?status=" + status)["items"]}

    def metric(self, server, name):
        for line in server.call("GET", "/metrics").body.decode().splitlines():
            if line.startswith(name + " "):
                return float(line.split(" ")[1])
        return None

    def told(self, server, kind):
        return [e for e in self.get(server, "/api/feed?after=0&limit=500")[
            "items"] if e["type"] == kind]

    def check_figures(self, server):
        """What GET /api/gate says is what the feed has."""
        def agree():
            figures = self.get(server, "/api/gate")["figures"]
            by = figures["decisions_24h"]
            return (by["immediate"], by["hold"], figures["released_24h"]) == \
                tuple(len(self.told(server, "gate." + what))
                      for what in ("routed", "held", "released"))
        eventually(agree, "the figures agree with the feed")

    def fill(self, server, hub):
        """One that Rick has, four that wait, and then three of those as one."""
        first = self.send(server, "R-0")
        task = self.taken(hub)
        self.assertEqual(task["task_id"], first)
        waiting = [self.send(server, r) for r in "ABCD"]
        self.assertEqual(self.with_status(server, "held"), set(waiting))
        self.done(hub, task)
        batch = self.taken(hub)
        self.assertEqual(batch["envelope"]["type"], "BATCH")
        self.assertEqual([i["task_id"] for i in
                          batch["envelope"]["payload"]["items"]], waiting[:3])
        return batch, waiting

    def check_with_agent(self, server, batch, waiting):
        members = waiting[:3]
        eventually(lambda: self.status(server, batch["task_id"]) == "working",
                   "Rick works")
        self.assertEqual([self.status(server, t) for t in waiting],
                         3 * ["dispatched"] + ["held"])
        self.assertEqual(self.with_status(server, "dispatched"), set(members))
        self.assertEqual(self.with_status(server, "held"), {waiting[3]})
        self.assertEqual(self.with_status(server, "queued"), set())
        self.assertEqual([h["task_id"] for h in
                          self.get(server, "/api/holds")["items"]],
                         [waiting[3]])
        self.assertEqual(self.get(server, "/api/gate")["now"]["held"], 1)
        for status, n in (("held", 1), ("dispatched", 3), ("working", 1)):
            self.assertEqual(self.metric(
                server, 'signalbox_tasks{status="%s"}' % status), n)
        self.assertEqual([(e["task_id"], e["data"]["status"]) for e in
                          self.told(server, "gate.released")],
                         [(t, "queued") for t in members])
        self.check_figures(server)

    def test_members_are_dispatched_while_they_are_with_the_agent(self):
        server = self.em()
        with Hub(server) as hub:
            hub.register("Rick")
            batch, waiting = self.fill(server, hub)
            self.check_with_agent(server, batch, waiting)
            with server.events(f"/api/tasks/{waiting[0]}/events") as events:
                self.done(hub, batch)
                seen = [data["status"] for _, kind, data in events
                        if kind in ("status", "result")]
            self.assertEqual(seen, ["held", "queued", "dispatched",
                                    "completed"])
            self.done(hub, self.taken(hub))  # the fourth, alone
            for task in waiting:
                eventually(lambda t=task: self.status(server, t) ==
                           "completed", "all are done")
            self.assertEqual(self.get(server, "/api/gate")["now"]["held"], 0)
            self.check_figures(server)

    def test_a_crash_while_a_batch_is_out(self):
        data = os.path.join(self.home, "data")
        server = self.em(data=data)
        with Hub(server) as hub:
            hub.register("Rick")
            batch, waiting = self.fill(server, hub)
            self.check_with_agent(server, batch, waiting)
        server.kill()
        server = self.em(data=data, token=server.token)
        # No one has them: they wait with their batch, and are held no more.
        members = waiting[:3]
        self.assertEqual([self.status(server, t) for t in members],
                         3 * ["queued"])
        self.assertEqual(self.with_status(server, "queued"),
                         {batch["task_id"], *members})
        with Hub(server) as hub:
            hub.register("Rick")
            again = self.taken(hub)
            self.assertEqual(again["task_id"], batch["task_id"])
            self.assertEqual([self.status(server, t) for t in members],
                             3 * ["dispatched"])
            self.done(hub, again)
            for task in members:
                eventually(lambda t=task: self.status(server, t) ==
                           "completed", "all are done")
        self.check_figures(server)


if __name__ == "__main__":
    unittest.main()
