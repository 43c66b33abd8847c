"""What agents gave to agents, as a tree and as a trace: real agents on the hub
that give work to each other, the call, the command, the figures and a
collector that is strict."""
import contextlib
import copy
import json
import os
import subprocess
import unittest

from collector import Collector, check_links, check_span
from hub_peer import Hub
from signalbox import BINARY, Server, eventually

RATE = {"rate": {"perUser": 0, "perAddress": 0}}


def is_answer(id):
    return lambda m: "method" not in m and m.get("id") == id


class House(contextlib.ExitStack):
    """A server with anna, whose agents they are."""

    def __init__(self, config=None, before=(), cards=None):
        super().__init__()
        self.server = self.enter_context(
            Server(config={**RATE, **(config or {})}, before=before))
        self.anna = self.server.user("anna")
        self.hubs, self.header = {}, []
        for name, card in (cards or {"boss": {}, "left": {}, "right": {},
                                     "deep": {}}).items():
            self.hubs[name] = self.enter_context(Hub(self.server, self.anna))
            self.hubs[name].register(
                name, skills=[{"id": "work", "name": "work",
                               "description": "does it"}],
                visibility="public", **card)

    def send(self, text="go", to="boss", **fields):
        """A person's message, of which the task's id."""
        answer = self.server.call(
            "POST", "/api/messages",
            {"text": text, "executor": {"name": to}, "wait_ms": 0, **fields},
            *self.header, token=self.anna)
        if answer.status not in (200, 202):
            raise AssertionError(answer)
        return answer.json()["task_id"]

    def given(self, name):
        hub = self.hubs[name]
        message = hub.next(lambda m: m.get("method") == "task.execute")
        hub.send({"jsonrpc": "2.0", "id": message["id"],
                  "result": {"status": "working"}})
        return message["params"]

    def done(self, name, task, **said):
        return self.hubs[name].call("task.result", task_id=task["task_id"],
                                    turn=task["turn"],
                                    **{"status": "completed", "text": "done",
                                       **said})

    def delegate(self, by, to, parent, **params):
        hub = self.hubs[by]
        id = str(next(hub.ids))
        hub.send({"jsonrpc": "2.0", "id": id, "method": "agent.send_task",
                  "params": {"agent_id": to, "message": f"{by} to {to}",
                             "skill_id": "work", "parent_task_id":
                             parent["task_id"], **params}})
        answer = hub.next(is_answer(id))
        if "error" in answer:
            raise AssertionError(answer)
        return answer["result"]["task_id"]

    def tree(self, id, token=None, status=200):
        answer = self.server.call("GET", f"/api/tasks/{id}/tree",
                                  token=token or self.anna)
        if answer.status != status:
            raise AssertionError(answer)
        return answer.json()

    def family(self):
        """boss has left and right do something, and left has deep; right
        fails. The ids of the four."""
        root = self.send()
        boss = self.given("boss")
        left_id = self.delegate("boss", "left", boss)
        left = self.given("left")
        deep_id = self.delegate("left", "deep", left)
        right_id = self.delegate("boss", "right", boss)
        self.done("deep", self.given("deep"))
        self.done("right", self.given("right"), status="failed",
                  error="no paper left")
        self.done("left", left)
        self.done("boss", boss)
        return root, left_id, right_id, deep_id

    def cli(self, *args, **env):
        ran = subprocess.run(
            [BINARY, *args, "--url", self.server.url],
            env={**os.environ, "SIGNALBOX_TOKEN": self.anna, **env},
            capture_output=True, timeout=60)
        if ran.returncode:
            raise AssertionError(ran.stderr)
        return ran.stdout.decode()


def flat(node):
    yield node
    for kid in node["children"]:
        yield from flat(kid)


class Tree(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.house = House()
        cls.addClassCleanup(cls.house.__exit__, None, None, None)
        cls.root, cls.left, cls.right, cls.deep = cls.house.family()

    def test_children_are_nested(self):
        answer = self.house.tree(self.root)
        self.assertEqual((answer["task_id"], answer["root_task_id"],
                          answer["root_user"], answer["is_whole"],
                          answer["tasks"], answer["open"]),
                         (self.root, self.root, "anna", True, 4, 0))
        tree = answer["tree"]
        self.assertEqual([k["task_id"] for k in tree["children"]],
                         [self.left, self.right])
        self.assertEqual([k["task_id"]
                          for k in tree["children"][0]["children"]],
                         [self.deep])
        self.assertEqual([n["agent"] for n in flat(tree)],
                         ["boss", "left", "deep", "right"])
        self.assertEqual([n["by_agent"] for n in flat(tree)],
                         [None, "boss", "left", "boss"])
        self.assertEqual([n["depth"] for n in flat(tree)], [0, 1, 2, 1])
        self.assertEqual([n["mode"] for n in flat(tree)],
                         [None, "two_phase", "two_phase", "two_phase"])

    def test_a_node_says_everything(self):
        tree = self.house.tree(self.root)["tree"]
        node = next(n for n in flat(tree) if n["agent"] == "right")
        times = {k: node.pop(k) for k in list(node) if k.endswith("_ms")}
        error = node.pop("error")
        self.assertEqual(node, {
            "task_id": self.right, "parent_task_id": self.root,
            "agent": "right", "by_agent": "boss", "skill": "work",
            "status": "failed", "mode": "two_phase", "depth": 1, "turn": 1,
            "attempt": 1, "text": "boss to right", "price_micros": 0,
            "captured_micros": 0,
            "branch": {"tasks": 1, "price_micros": 0, "captured_micros": 0},
            "children": []})
        self.assertEqual(error["message"], "no paper left")
        self.assertEqual(times["began_ms"], times["created_ms"])
        self.assertLessEqual(times["began_ms"], times["started_ms"])
        self.assertLessEqual(times["started_ms"], times["finished_ms"])
        self.assertEqual(times["waited_ms"] + times["worked_ms"],
                         times["duration_ms"])

    def test_any_task_of_it_shows_the_whole(self):
        whole = self.house.tree(self.root)
        for id in (self.left, self.right, self.deep):
            self.assertEqual(self.house.tree(id), {**whole, "task_id": id})

    def test_a_task_has_its_chain(self):
        got = self.house.server.call("GET", f"/api/tasks/{self.deep}",
                                     token=self.house.anna).json()
        self.assertEqual((got["by_agent"], got["parent_task_id"],
                          got["root_task_id"], got["depth"], got["chain"]),
                         ("left", self.left, self.root, 2, ["boss", "left"]))
        shown = self.house.cli("tasks", "show", self.deep)
        self.assertIn("anna > boss > left", shown)
        self.assertIn(self.left, shown)

    def test_who_is_somebody_else_sees_nothing(self):
        other = self.house.server.user("otto")
        for id in (self.root, self.deep):
            self.house.tree(id, token=other, status=404)
        self.house.tree("task_01jabcdefghjkmnpqrstvwxyz0", status=404)
        self.house.tree("nonsense", status=404)
        self.assertEqual(self.house.tree(self.root,
                                         token=self.house.server.token)
                         ["tasks"], 4)

    def test_a_person_s_task_alone_is_a_tree(self):
        id = self.house.send(to="deep")
        self.assertEqual(self.house.tree(id)["open"], 1)
        self.house.done("deep", self.house.given("deep"))
        answer = self.house.tree(id)
        self.assertEqual((answer["tasks"], answer["tree"]["children"]), (1, []))

    def test_long_texts_are_cut(self):
        id = self.house.send("ä" * 1000, to="deep")
        self.house.done("deep", self.house.given("deep"))
        self.assertEqual(self.house.tree(id)["tree"]["text"], "ä" * 200)

    def test_drawn(self):
        lines = self.house.cli("tasks", "tree", self.root).splitlines()
        self.assertEqual(lines[0].split(),
                         ["AGENT", "STATUS", "WAITED", "WORKED", "TASK"])
        self.assertEqual([l.split()[0:2] for l in lines[1:4]],
                         [["boss", "completed"], ["|-", "left,"],
                          ["|", "`-"]])
        self.assertIn("no paper left", lines[5])
        self.assertTrue(lines[-1].startswith("4 tasks, none open, "), lines)

    def test_as_json(self):
        got = json.loads(self.house.cli("tasks", "tree", self.root, "--json"))
        self.assertEqual(got, self.house.tree(self.root))

    def test_a_further_turn_is_the_same_task(self):
        root = self.house.send()
        boss = self.house.given("boss")
        id = self.house.delegate("boss", "right", boss)
        self.house.done("right", self.house.given("right"))
        self.assertEqual(self.house.delegate("boss", "right", boss,
                                             task_id=id), id)
        self.house.done("right", self.house.given("right"))
        self.house.done("boss", boss)
        answer = self.house.tree(root)
        self.assertEqual(answer["tasks"], 2)
        self.assertEqual(answer["tree"]["children"][0]["turn"], 2)

    def test_figures(self):
        before = self.figures()
        self.house.family()
        after = self.figures()
        for name in ('signalbox_agent_delegations_made_total'
                     '{agent="boss",outcome="failed"}',
                     'signalbox_agent_delegations_made_total'
                     '{agent="left",outcome="completed"}',
                     'signalbox_agent_delegations_received_total'
                     '{agent="right",outcome="failed"}',
                     'signalbox_agent_delegations_received_total'
                     '{agent="deep",outcome="completed"}'):
            self.assertEqual(after[name], before[name] + 1, name)
        for name in ('signalbox_delegations_open',
                     'signalbox_delegations_refused_total{reason="too_many"}'):
            self.assertEqual(after[name], 0)
        self.assertFalse([n for n in after if "signalbox_traces" in n])

    def figures(self):
        text = self.house.server.get("/metrics").body.decode()
        return {name: float(value) for name, value in
                (line.rsplit(" ", 1) for line in text.split("\n")
                 if line and line[0] != "#")}


class Parts(unittest.TestCase):
    def test_the_creator_of_an_agent_sees_what_it_gave_to_others(self):
        """anna's task is worked on by berta's agent: berta sees what that one
        gave to others, and nothing above it."""
        with House(cards={"deep": {}}) as h:
            berta = h.server.user("berta")
            h.hubs["hers"] = h.enter_context(Hub(h.server, berta))
            h.hubs["hers"].register("hers", visibility="public", skills=[])
            root = h.send(to="hers")
            task = h.given("hers")
            kid = h.delegate("hers", "deep", task)
            h.done("deep", h.given("deep"))
            h.done("hers", task)
            self.assertEqual(h.tree(root)["tasks"], 2)
            h.tree(root, token=berta, status=404)
            part = h.tree(kid, token=berta)
            self.assertEqual((part["tasks"], part["is_whole"],
                              part["root_task_id"]), (1, False, None))
            self.assertEqual(part["tree"]["task_id"], kid)
            self.assertNotIn("hers to", json.dumps(part["tree"]["children"]))

    def test_as_many_as_there_may_be(self):
        """The root and 256 under it, of which some are not over."""
        with House(cards={"boss": {"delegation": {"maxConcurrent": 1000}},
                          "deep": {}}) as h:
            root = h.send()
            boss = h.given("boss")
            ids = [h.delegate("boss", "deep", boss) for _ in range(256)]
            with self.assertRaises(AssertionError) as e:
                h.delegate("boss", "deep", boss)
            self.assertIn("too_many_delegations", str(e.exception))
            for _ in range(10):
                h.done("deep", h.given("deep"))
            answer = h.tree(root)
            self.assertEqual((answer["tasks"], answer["is_whole"],
                              answer["open"]), (257, True, 247))
            self.assertEqual([k["task_id"]
                              for k in answer["tree"]["children"]], ids)


class Costs(unittest.TestCase):
    def test_a_branch_costs_what_was_paid_in_it(self):
        price = {"pricing": {"amount_micros": 50000}}
        cheap = {"pricing": {"amount_micros": 700}}
        with House(cards={"boss": price, "left": cheap, "right": cheap,
                          "deep": price}) as h:
            made = h.server.call("POST", "/api/ledger/topup",
                                 {"user": "anna", "amount_micros": 1000000})
            self.assertIn(made.status, (200, 201), made)
            root, *_ = h.family()
            answer = h.tree(root)
            self.assertEqual((answer["price_micros"],
                              answer["captured_micros"]), (101400, 100700))
            by = {n["agent"]: n for n in flat(answer["tree"])}
            self.assertEqual({k: n["captured_micros"] for k, n in by.items()},
                             {"boss": 50000, "left": 700, "deep": 50000,
                              "right": 0})
            self.assertEqual(by["left"]["branch"],
                             {"tasks": 2, "price_micros": 50700,
                              "captured_micros": 50700})
            drawn = h.cli("tasks", "tree", root)
            self.assertIn(", paid 0.1007\n", drawn)
            id = h.send(to="deep")
            self.assertIn("(0.05 reserved)", h.cli("tasks", "tree", id))
            h.done("deep", h.given("deep"))
            h.send(to="deep", task_id=id)
            h.done("deep", h.given("deep"))
            node = h.tree(id)["tree"]
            self.assertEqual((node["turn"], node["price_micros"],
                              node["captured_micros"]), (2, 50000, 100000))
            balance = h.server.call("GET", "/api/ledger/balance",
                                    token=h.anna).json()["balance_micros"]
            self.assertEqual(balance, 1000000 - 100700 - 100000)


    def test_every_turn_counts_less_what_was_refunded(self):
        """Also those that its user went on with by themselves, and those
        after one that was cancelled."""
        with House(cards={"boss": {}, "left": {
                "pricing": {"amount_micros": 1000}}}) as h:
            h.server.call("POST", "/api/ledger/topup",
                          {"user": "anna", "amount_micros": 1000000})
            root = h.send()
            kid = h.delegate("boss", "left", h.given("boss"))
            h.given("left")
            h.server.call("POST", f"/api/tasks/{kid}/cancel", {})
            for _ in range(2):
                h.send(to="left", task_id=kid)
                h.done("left", h.given("left"))
            self.assertEqual([(n["agent"], n["captured_micros"])
                              for n in flat(h.tree(root)["tree"])],
                             [("boss", 0), ("left", 2000)])
            self.assertEqual(h.tree(kid)["captured_micros"], 2000)
            self.assertIn(", paid 0.002\n", h.cli("tasks", "tree", root))
            back = h.server.call("POST", "/api/ledger/refund",
                                 {"task_id": kid, "turn": 2})
            self.assertEqual(back.status, 201, back)
            self.assertEqual(h.tree(root)["captured_micros"], 1000)


class Traces(unittest.TestCase):
    def traced(self, collector, **traces):
        return {"traces": {"endpoint": collector.url, "delayMs": 10, **traces}}

    def check(self, collector):
        self.assertEqual(collector.problems, [])
        check_links(collector.spans)

    def test_a_trace_for_each_root(self):
        with Collector() as collector:
            with House(self.traced(collector)) as h:
                root, left, right, deep = h.family()
                h.send(to="deep")
                h.done("deep", h.given("deep"))
                eventually(lambda: len(collector.spans) == 5, "five spans")
                by_id = {s["attributes"]["signalbox.task_id"]: s
                         for s in collector.spans}
                node = h.tree(right)["tree"]["children"][1]
            self.check(collector)
            ids = {k: by_id[k]["spanId"] for k in by_id}
            self.assertNotIn("parentSpanId", by_id[root])
            self.assertEqual(by_id[left]["parentSpanId"], ids[root])
            self.assertEqual(by_id[deep]["parentSpanId"], ids[left])
            self.assertEqual(len({s["traceId"] for s in collector.spans}), 2)
            span = by_id[right]
            self.assertEqual(span["name"], "right work")
            self.assertEqual(span["status"]["code"], 2)
            self.assertEqual(span["startTimeUnixNano"],
                             str(node["created_ms"] * 10**6))
            self.assertEqual(span["endTimeUnixNano"],
                             str(node["finished_ms"] * 10**6))
            self.assertEqual(span["resource"]["service.name"], "signalbox")
            for key, value in {"signalbox.agent": "right",
                               "signalbox.by_agent": "boss",
                               "signalbox.depth": 1, "signalbox.turn": 1,
                               "signalbox.attempts": 1,
                               "signalbox.status": "failed"}.items():
                self.assertEqual(span["attributes"][key], value)
            said = b"".join(collector.bodies)
            for secret in (b"no paper left", b"boss to right", b"anna"):
                self.assertNotIn(secret, said)

    def test_a_trace_that_began_elsewhere_goes_on(self):
        trace, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
        with Collector() as collector:
            with House(self.traced(collector)) as h:
                h.header = [f"traceparent: 00-{trace}-{span}-01"]
                h.family()
                eventually(lambda: len(collector.spans) == 4, "four spans")
            self.assertEqual(collector.problems, [])
            by = collector.by_agent()
            self.assertEqual({s["traceId"] for s in collector.spans}, {trace})
            self.assertEqual(by["boss"]["parentSpanId"], span)
            self.assertEqual(by["deep"]["parentSpanId"], by["left"]["spanId"])

    def test_a_collector_that_comes_back(self):
        with Collector() as collector:
            collector.status, collector.more = 503, {"Retry-After": "0"}
            with House(self.traced(collector)) as h:
                h.family()
                eventually(lambda: collector.n_requests >= 2, "tried again")
                self.assertEqual(collector.spans, [])
                collector.status = 200
                eventually(lambda: len(collector.spans) == 4, "all of them")
                eventually(lambda: "signalbox_traces_sent_total 4\n" in
                           h.server.get("/metrics").body.decode(), "counted")
            self.check(collector)

    def test_what_waits_is_bounded(self):
        with Collector() as collector:
            collector.status, collector.more = 503, {"Retry-After": "3600"}
            with House(self.traced(collector, maxWaiting=3, batch=1)) as h:
                h.send(to="deep")
                h.done("deep", h.given("deep"))
                eventually(lambda: collector.n_requests == 1, "refused")
                h.family()
                text = h.server.get("/metrics").body.decode()
                self.assertIn("\nsignalbox_traces_waiting 3\n", text)
                self.assertIn("\nsignalbox_traces_dropped_total 2\n", text)

    def test_headers_are_secret(self):
        with Collector() as collector:
            with House(self.traced(collector, headersVariable="OTLP_HEADERS"),
                       before=("env", "OTLP_HEADERS=x-key=top%20s3cret")) as h:
                collector.status = 401
                h.send(to="deep")
                h.done("deep", h.given("deep"))
                eventually(lambda: "traces.refused" in h.server.said(),
                           "it is logged")
                self.assertEqual(collector.headers["x-key"], "top s3cret")
                self.assertNotIn("s3cret", h.server.said())

    def test_a_reload_turns_it_on(self):
        with Collector() as collector, House() as h:
            h.send(to="deep")
            h.done("deep", h.given("deep"))
            h.server.write_config(config={**RATE, **self.traced(collector)})
            eventually(lambda: "config.reloaded" in h.server.said(), "reload")
            h.family()
            eventually(lambda: len(collector.spans) == 4, "four spans")
            self.check(collector)

    def test_what_is_done_last_is_told_before_the_end(self):
        with Collector() as collector:
            with House(self.traced(collector, delayMs=3600000)) as h:
                h.family()
                self.assertEqual(collector.spans, [])
            self.assertEqual(len(collector.spans), 4)
            self.check(collector)

    def test_the_collector_is_strict(self):
        good = {"traceId": "a" * 32, "spanId": "b" * 16, "name": "x",
                "kind": 1, "startTimeUnixNano": "1700000000000000000",
                "endTimeUnixNano": "1700000000000000000", "attributes": [],
                "events": [], "status": {}}
        check_span(good)
        for member, bad in (("traceId", "A" * 32), ("traceId", "0" * 32),
                            ("traceId", "a" * 31), ("spanId", "0" * 16),
                            ("spanId", "b" * 15), ("parentSpanId", ""),
                            ("kind", "1"), ("name", ""),
                            ("startTimeUnixNano", 1700000000000000000),
                            ("endTimeUnixNano", "1600000000000000000"),
                            ("status", {"code": "STATUS_CODE_OK"}),
                            ("attributes", [{"key": "x", "value":
                                             {"intValue": 1}}]),
                            ("attributes", {"x": 1}), ("trace_id", "a")):
            with self.subTest(member, bad=bad):
                span = copy.deepcopy(good)
                span[member] = bad
                with self.assertRaises(AssertionError):
                    check_span(span)
        with self.assertRaises(AssertionError):
            check_links([{**good, "parentSpanId": "c" * 16}])


class Trees(unittest.TestCase):
    """The list of them."""

    def setUp(self):
        self.house = House()
        self.addCleanup(self.house.__exit__, None, None, None)

    def trees(self, query="", token=None, status=200):
        answer = self.house.server.call("GET", "/api/trees" + query,
                                        token=token or self.house.anna)
        self.assertEqual(answer.status, status, answer)
        return answer.json()

    def small(self, is_done=True):
        """boss has left do something."""
        house, root = self.house, self.house.send()
        boss = house.given("boss")
        house.delegate("boss", "left", boss)
        left = house.given("left")
        if is_done:
            house.done("left", left)
            house.done("boss", boss)
        return root

    def test_the_newest_first_with_their_sums(self):
        whole = self.house.family()[0]
        goes_on = self.small(is_done=False)
        self.house.send(to="deep")  # no one gave anything to anybody
        two, one = self.trees()["items"]
        self.assertEqual([two["root_task_id"], one["root_task_id"]],
                         [goes_on, whole])
        tree = self.house.tree(whole)
        for field in ("root_user", "tasks", "open", "price_micros",
                      "captured_micros", "is_whole"):
            self.assertEqual(one[field], tree[field], field)
        for field in ("agent", "status", "text", "created_ms", "finished_ms",
                      "duration_ms"):
            self.assertEqual(one[field], tree["tree"][field], field)
        self.assertEqual((one["tasks"], one["open"], one["status"]),
                         (4, 0, "completed"))
        self.assertEqual((two["tasks"], two["open"], two["finished_ms"]),
                         (2, 2, None))

    def test_page_by_page(self):
        roots = [self.small() for _ in range(5)][::-1]
        seen, cursor = [], ""
        while cursor is not None:
            page = self.trees("?limit=2" + cursor)
            seen += [t["root_task_id"] for t in page["items"]]
            cursor = page["next_cursor"] and "&cursor=" + page["next_cursor"]
        self.assertEqual(seen, roots)
        self.assertEqual(len(self.trees("?limit=5")["items"]), 5)
        self.assertIsNone(self.trees("?limit=5")["next_cursor"])
        for bad in ("?limit=0", "?cursor=x", "?color=red"):
            self.trees(bad, status=400)

    def test_narrowed(self):
        house, whole = self.house, self.house.family()[0]
        goes_on = self.small(is_done=False)
        admin, otto = house.server.token, house.server.user("otto")
        began = self.trees()["items"][0]["created_ms"]
        for query, found in (
                ("?status=completed", [whole]),
                ("?status=working", [goes_on]),
                ("?status=failed", []),
                ("?agent=boss", [goes_on, whole]), ("?agent=LEFT&limit=1", 2),
                ("?agent=deep", [whole]), ("?agent=missing", []),
                ("?agent=deep&status=working", []),
                (f"?since={began}", [goes_on]), (f"?since={began + 1}", []),
                ("?since=0", [goes_on, whole]),
                ("?user=ANNA", [goes_on, whole]), ("?user=otto", [])):
            for token in (house.anna, admin):
                with self.subTest(query):
                    items, cursor = [], ""
                    while cursor is not None:
                        page = self.trees(query + cursor, token)
                        items += [t["root_task_id"] for t in page["items"]]
                        cursor = page["next_cursor"] and \
                            "&cursor=" + page["next_cursor"]
                    self.assertEqual(items if found != 2 else len(items),
                                     found)
        self.assertEqual(self.trees("?user=anna", otto)["items"], [])
        for bad in ("?status=fine", "?since=x", "?since=-1",
                    "?agent=" + "x" * 200):
            self.trees(bad, status=400)

    def test_for_whose_they_are_and_for_admins(self):
        root = self.small()
        otto = self.house.server.user("otto")
        self.assertEqual(self.trees(token=otto)["items"], [])
        for token in (self.house.anna, self.house.server.token):
            self.assertEqual([t["root_task_id"]
                              for t in self.trees(token=token)["items"]],
                             [root])


if __name__ == "__main__":
    unittest.main()
