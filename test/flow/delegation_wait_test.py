"""More delegations at once than an agent may have going: those beyond wait in
order, up to a bound and within their time, over kills and with their parent.

The controls are servers with one mistake each, on which the same must fail.
"""
import json
import os
import re
import shutil
import tempfile
import unittest

import signalbox
from hiring import RATE, SKILLS, House, awaited, done, given, is_answer, request
from hub_peer import Hub
from signalbox import Server

N = 200
AT_ONCE = 16
PRICE = 1000


def figure(server, name):
    text = server.call("GET", "/metrics").body.decode()
    return int(re.search(rf"^{name} (\d+)$", text, re.M).group(1))


def waiting(server):
    return figure(server, "signalbox_delegations_waiting")


def ask_all(house, ids, **params):
    """All at once; what each was answered."""
    for id in ids:
        house.boss.send(request(id, **params))
    return [house.boss.next(is_answer(id)) for id in ids]


def accepted(answers):
    return [a["result"]["task_id"] for a in answers]


def results(hub, n):
    """The next n, acknowledged: (original id, status)."""
    found = []
    for _ in range(n):
        params = hub.heard("delegation.result")
        hub.call("delegation.ack", original_id=params["original_id"])
        found.append((params["original_id"], params["status"]))
    return found


def in_hand(worker):
    """The tasks that have come, taken and not done."""
    worker.call("ping")
    found = []
    while any(m.get("method") == "task.execute" for m in worker.waiting):
        found.append(given(worker))
    return found


class Crowd(unittest.TestCase):
    def test_two_hundred_at_once_are_done_in_order(self):
        ids = [f"n{i}" for i in range(N)]
        with House() as h:
            h.begin()
            tasks = accepted(ask_all(h, ids))
            self.assertEqual(figure(h.server, "signalbox_delegations_open"), N)
            self.assertEqual(waiting(h.server), N - AT_ONCE)
            hand, order = [given(h.worker) for _ in range(AT_ONCE)], []
            while hand:
                self.assertEqual(in_hand(h.worker), [])
                order.append(hand[0]["task_id"])
                done(h.worker, hand.pop(0), text="done")
                if len(order) + len(hand) < N:
                    hand.append(given(h.worker))
            self.assertEqual(order, tasks)
            self.assertEqual(results(h.boss, N),
                             [(id, "completed") for id in ids])
            self.assertEqual(figure(h.server, "signalbox_delegations_open"), 0)

    def test_the_bound(self):
        config = {"delegation": {"maxConcurrent": 2, "maxWaiting": 3}}
        with House(config=config) as h:
            h.begin()
            answers = ask_all(h, [str(i) for i in range(6)])
            tasks = accepted(answers[:5])
            error = answers[5]["error"]
            self.assertEqual(error["data"]["code"], "too_many_delegations")
            self.assertIn("research-agent has 5 open delegations, the limit: "
                          "2 run at once (delegation.maxConcurrent) "
                          "and 3 wait (delegation.maxWaiting)",
                          error["message"])
            done(h.worker, given(h.worker), text="x")
            accepted(ask_all(h, ["6"]))
            given(h.worker)
            self.assertEqual(given(h.worker)["task_id"], tasks[2])

    def test_none_waits_where_none_may(self):
        config = {"delegation": {"maxConcurrent": 1, "maxWaiting": 0}}
        with House(config=config) as h:
            h.begin()
            answers = ask_all(h, ["1", "2"])
            accepted(answers[:1])
            self.assertEqual(answers[1]["error"]["data"]["code"],
                             "too_many_delegations")

    def test_its_time_runs_while_it_waits(self):
        with House(config={"delegation": {"maxConcurrent": 1}}) as h:
            h.begin()
            accepted(ask_all(h, ["1"]))
            first = given(h.worker)
            h.boss.start("agent.delegate", agentId="web-search-agent",
                         task="t", mode="sync", timeoutMs=50)
            answer = h.boss.next(lambda m: "result" in m)
            self.assertEqual(answer["result"]["status"], "timeout")
            h.over(answer["result"]["task_id"])
            self.assertEqual(in_hand(h.worker), [])
            done(h.worker, first, text="x")
            self.assertEqual(results(h.boss, 1), [("1", "completed")])

    def test_with_their_parent(self):
        with House(config={"delegation": {"maxConcurrent": 1}}) as h:
            h.begin()
            root = h.server.send("go", to="research-agent", token=h.anna,
                                 wait_ms=0).json()["task_id"]
            given(h.boss)
            tasks = accepted(ask_all(h, [str(i) for i in range(100)]))
            first = given(h.worker)["task_id"]
            h.server.call("POST", f"/api/tasks/{root}/cancel", token=h.anna)
            self.assertEqual({s for _, s in results(h.boss, 100)}, {"failed"})
            for id in tasks:
                self.assertEqual(h.over(id)["status"], "cancelled")
                self.assertEqual(h.task(id)["attempt"], int(id == first))
            self.assertEqual(in_hand(h.worker), [])
            self.assertEqual(waiting(h.server), 0)


class Gate(unittest.TestCase):
    """What the rules of the gate have to do with it."""

    def house(self, **rules):
        root = tempfile.mkdtemp(prefix="signalbox-test-")
        self.addCleanup(shutil.rmtree, root, True)
        path = os.path.join(root, "routing_rules.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump({"agents": {name: {"owner": "anna"} for name in
                                  ("rick", "web-search-agent",
                                   "research-agent")}, **rules}, f)
        return House(config={"delegation": {"maxConcurrent": 1},
                             "rules": path})

    def delegated(self, h, agent):
        return h.boss.call("agent.delegate", agentId=agent, task="t",
                           mode="async")["task_id"]

    def test_what_a_person_must_see_takes_no_place(self):
        with self.house(escalations=[{"rule": "ask-first",
                                      "match": {"to": "rick"}}]) as h:
            h.begin()
            rick = h.agent("rick")
            seen = self.delegated(h, "rick")
            self.assertEqual(h.task(seen)["status"], "escalated")
            self.delegated(h, "web-search-agent")
            first = given(h.worker)
            for e in h.server.call("GET", "/api/escalations").json()["items"]:
                h.server.call("POST", f"/api/escalations/{e['id']}/approve",
                              {})
            self.assertEqual(h.task(seen)["status"], "queued")
            self.assertEqual((in_hand(rick), waiting(h.server)), ([], 1))
            done(h.worker, first, text="x")
            self.assertEqual(given(rick)["task_id"], seen)


    def test_what_waits_takes_no_room_at_its_agent(self):
        """Eight for an agent with room for five, of which one goes: a
        person's own is not held."""
        with self.house(capacity=[{"rule": "room", "queue": 5, "match": {
                "to": "web-search-agent"}}]) as h:
            h.begin()
            for task in accepted(ask_all(h, [str(i) for i in range(8)])):
                awaited(lambda t=task: h.task(t)["status"] != "held")
            first = given(h.worker)
            self.assertEqual(waiting(h.server), 7)
            own = h.server.send("me too", to="web-search-agent", token=h.anna,
                                wait_ms=0).json()["task_id"]
            self.assertEqual(given(h.worker)["task_id"], own)
            done(h.worker, first, text="x")
            given(h.worker)


    def test_what_waits_is_not_late(self):
        """The second has less time to answer, and is late only once it has
        been given, when the first has long been."""
        sla = [{"rule": name, "match": {"to": name}, "within": within}
               for name, within in (("rick", "200ms"),
                                    ("web-search-agent", "1s"))]
        with self.house(sla=sla) as h:
            h.begin()
            rick = h.agent("rick")
            first = self.delegated(h, "web-search-agent")
            second = self.delegated(h, "rick")

            def late():
                items = h.server.call("GET", "/api/escalations").json()["items"]
                return [e["task_id"] for e in items if e["kind"] == "late"]
            self.assertEqual(awaited(late), [first])
            self.assertEqual(in_hand(rick), [])
            done(h.worker, given(h.worker), text="x")
            self.assertEqual(given(rick)["task_id"], second)
            awaited(lambda: second in late())


class AtOnce(unittest.TestCase):
    """What no wait would change is refused at once, however long the line."""

    def crowded(self, h, **card):
        h.begin()
        h.agent("secret")
        h.boss.call("agent.update",
                    card={"delegation": {"maxConcurrent": 1, **card}})
        accepted(ask_all(h, ["1", "2"]))

    def refused(self, h, **params):
        answer = h.boss.call("agent.delegate",
                             **{"agentId": "web-search-agent", "task": "t",
                                "mode": "sync", **params})
        self.assertEqual(answer["status"], "error", answer)
        return answer["code"]

    def test_whom_the_card_does_not_allow(self):
        with House() as h:
            self.crowded(h, allowAgents=["web-search-agent", "away"])
            self.assertEqual(self.refused(h, agentId="secret"),
                             "delegation_not_allowed")

    def test_before_it_is_asked_whether_that_one_is_there(self):
        with House() as h:
            self.crowded(h, allowAgents=["web-search-agent", "away"])
            for name, code in (("other", "delegation_not_allowed"),
                               ("away", "agent_offline")):
                hub = Hub(h.server, h.anna)
                hub.register(name)
                hub.close()
                awaited(lambda n=name: h.server.call(
                    "GET", f"/api/agents/{n}",
                    token=h.anna).json()["state"] == "DEAD")
                self.assertEqual(self.refused(h, agentId=name), code)

    def test_too_deep(self):
        with House() as h:
            self.crowded(h)
            task = given(h.worker)
            h.worker.call("agent.update", card={"delegation": {"maxDepth": 0}})
            answer = h.worker.call("agent.delegate", agentId="secret",
                                   task="t", parent_task_id=task["task_id"])
            self.assertEqual(answer["code"], "delegation_not_allowed")


    def test_what_is_below_a_delegation(self):
        """Each waits for the other with its one place, and both ask a third:
        they hear at once that there is no room, and can go on without it."""
        with House(config={"delegation": {"maxConcurrent": 1}}) as h:
            h.anna = h.server.user("anna")
            hubs = [h.agent(name) for name in ("left", "right", "third")]
            for name in ("left", "right"):
                h.server.send("go", to=name, token=h.anna, wait_ms=0)
            roots = [given(hub)["task_id"] for hub in hubs[:2]]
            for hub, other, root in zip(hubs, ("right", "left"), roots):
                hub.start("agent.delegate", agentId=other, task="t",
                          mode="sync", parent_task_id=root)
            tasks = [given(hub) for hub in hubs[:2]]
            for hub, task in zip(hubs, tasks):
                answer = hub.call("agent.delegate", agentId="third", task="t",
                                  mode="sync", parent_task_id=task["task_id"])
                self.assertEqual(answer["code"], "too_many_delegations")
            self.assertEqual(in_hand(hubs[2]), [])
            for hub, task in zip(hubs, tasks):
                done(hub, task, text="alone")
            for hub in hubs[:2]:
                answer = hub.next(lambda m: "status" in m.get("result", {}))
                self.assertEqual(answer["result"]["status"], "completed")


class Money(unittest.TestCase):
    """What waits is reserved, and given back if it never goes."""

    def money(self, h):
        """Free, and reserved."""
        b = h.server.call("GET", "/api/ledger/balance", token=h.anna).json()
        return b["balance_micros"], b["reserved_micros"]

    def test_it_is_reserved_refused_and_given_back(self):
        with House(config={"delegation": {"maxConcurrent": 1}}) as h:
            h.begin()
            zoe = h.server.user("zoe")
            worker = h.enter_context(Hub(h.server, zoe))
            worker.register("dear", visibility="public",
                            pricing={"amount_micros": PRICE})
            h.server.call("POST", "/api/ledger/topup",
                          {"user": "anna", "amount_micros": 3 * PRICE})
            root = h.server.send("go", to="research-agent", token=h.anna,
                                 wait_ms=0).json()["task_id"]
            given(h.boss)
            wish = {"agent_id": "dear", "skill_id": "any"}
            answers = ask_all(h, ["1", "2", "3", "4"], **wish)
            accepted(answers[:3])
            self.assertEqual(answers[3]["error"]["data"]["code"],
                             "insufficient_funds")
            self.assertEqual(waiting(h.server), 2)
            self.assertEqual(self.money(h), (0, 3 * PRICE))
            done(worker, given(worker), text="x")
            given(worker)
            h.server.call("POST", f"/api/tasks/{root}/cancel", token=h.anna)
            results(h.boss, 3)
            self.assertEqual(self.money(h), (2 * PRICE, 0))
            books = h.server.call("GET", "/api/ledger/check").json()
            self.assertEqual(books["is_right"], True, books)


class Killed(unittest.TestCase):
    """kill -9 while some go and others wait."""

    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="signalbox-test-")
        self.addCleanup(shutil.rmtree, self.root, True)
        self.data = os.path.join(self.root, "data")
        self.config = {**RATE, "delegation": {"maxConcurrent": 3}}

    def test_none_is_lost_and_none_begins_twice(self):
        ids = [str(i) for i in range(40)]
        with House(data=self.data, config=self.config) as h:
            h.begin()
            tasks = accepted(ask_all(h, ids))
            for _ in range(5):
                done(h.worker, given(h.worker), text="x")
            told = results(h.boss, 5)
            before = [given(h.worker)["task_id"] for _ in range(3)]
            self.assertEqual(before, tasks[5:8])
            h.server.kill9()
        with Server(data=self.data, token=h.server.token,
                    config=self.config) as server, \
                Hub(server, h.anna) as boss, Hub(server, h.anna) as worker:
            self.assertEqual(waiting(server), 32)
            boss.register("research-agent")
            worker.register("web-search-agent", skills=SKILLS)
            hand, order = [given(worker) for _ in range(3)], []
            while hand:
                order.append(hand[0]["task_id"])
                done(worker, hand.pop(0), text="x")
                if len(order) + len(hand) < 35:
                    hand.append(given(worker))
            self.assertEqual(in_hand(worker), [])
            # Those that had begun go on, the others begin, in order and once.
            self.assertEqual(order, tasks[5:])
            told += results(boss, 35)
            self.assertEqual(told, [(id, "completed") for id in ids])


@unittest.skipUnless("SIGNALBOX_PLANTED" in os.environ, "needs a planted one")
class Control(unittest.TestCase):
    def seen_with(self, mistake, case, name):
        before = signalbox.BINARY
        signalbox.BINARY = os.environ["SIGNALBOX_PLANTED"]
        os.environ["PLANTED"] = mistake
        try:
            result = unittest.TestResult()
            case(name).run(result)
        finally:
            signalbox.BINARY = before
            del os.environ["PLANTED"]
        failures = [text for _, text in result.failures]
        self.assertEqual((len(failures), result.errors), (1, []))
        return failures[0]

    def test_a_server_that_forgets_who_waits(self):
        """All go at once, also after a start."""
        self.assertIn("0 != 32", self.seen_with(
            "hire.all_at_once", Killed,
            "test_none_is_lost_and_none_begins_twice"))

    def test_a_server_that_gives_back_what_was_paid(self):
        self.assertIn(f"({3 * PRICE}, 0) != ({2 * PRICE}, 0)", self.seen_with(
            "ledger.release_after_capture", Money,
            "test_it_is_reserved_refused_and_given_back"))
