"""For which of its tasks an agent delegates, where it works on several: by the
session that it names, else the one whose tree has the least left, as long as
one user pays for all of them.

The controls are servers that ask the wrong user to pay, take the wrong tree or
forget a chain, on which the same must fail.
"""
import unittest

from hiring import House, done, given
from planted import fails_with, needs_planted

PRICE = 700


class Several(House):
    """boss works for anyone who asks, and web-search-agent costs something."""

    def __init__(self, **config):
        super().__init__(config=config)
        self.begin()
        self.tokens = {"anna": self.anna, "bert": self.server.user("bert")}
        for user in self.tokens:
            self.server.call("POST", "/api/ledger/topup",
                             {"user": user, "amount_micros": 100 * PRICE})
        for name in ("research-agent", "web-search-agent"):
            self.publish(name)

    def publish(self, name):
        r = self.server.call("PATCH", f"/api/agents/{name}",
                             {"visibility": "public",
                              "pricing": {"amount_micros": PRICE}},
                             token=self.anna)
        if r.status != 200:
            raise AssertionError(r)

    def root(self, user, session, to="research-agent", hub=None, **fields):
        """A task of that user's, which its agent has."""
        r = self.server.send("go", to=to, token=self.tokens[user], wait_ms=0,
                             conversation_id=session, **fields)
        if r.status != 202:
            raise AssertionError(r)
        task = given(hub or self.boss)
        if task["task_id"] != r.json()["task_id"]:
            raise AssertionError((task, r))
        return task["task_id"]

    def parent(self, id, **params):
        """Whose child what was asked for became, and who pays."""
        answer = self.ask(id, **params)
        if "error" in answer:
            raise AssertionError(answer["error"]["message"])
        task = self.task(answer["result"]["task_id"])
        return task["parent_task_id"], task["root_user"]

    def tool(self, method="agent.delegate", **params):
        got = self.boss.call(method, agentId="web-search-agent",
                             task="look", mode="async", **params)
        if "task_id" not in got:
            raise AssertionError(got["error"])
        return self.task(got["task_id"])["parent_task_id"]

    def balance(self, user):
        return self.server.call("GET", "/api/ledger/balance",
                                token=self.tokens[user]
                                ).json()["balance_micros"]


class TwoUsers(unittest.TestCase):
    def test_each_pays_for_their_own_at_the_same_time(self):
        with Several() as h:
            anna, bert = h.root("anna", "s-anna"), h.root("bert", "s-bert")
            before = h.balance("anna"), h.balance("bert")
            for i in range(3):
                self.assertEqual(h.parent(f"a{i}", session_id="s-anna"),
                                 (anna, "anna"))
                self.assertEqual(h.parent(f"b{i}", session_id="s-bert"),
                                 (bert, "bert"))
            self.assertEqual(h.tool(session_id="s-bert"), bert)
            self.assertEqual(h.tool("delegate_to_agent", session_id="s-anna"),
                             anna)
            self.assertEqual((h.balance("anna"), h.balance("bert")),
                             (before[0] - 4 * PRICE, before[1] - 4 * PRICE))

    def test_who_does_not_say_for_whom_is_refused_and_nobody_pays(self):
        with Several() as h:
            h.root("anna", "s-anna")
            bert = h.root("bert", "s-bert")
            before = h.balance("anna"), h.balance("bert")
            for id, params in (("1", {}), ("2", {"session_id": "other"})):
                error = h.ask(id, **params)["error"]
                self.assertEqual(error["code"], -32602)
                self.assertIn("session_id", error["message"])
            for method in ("agent.delegate", "delegate_to_agent"):
                got = h.boss.call(method, agentId="web-search-agent",
                                  task="look")
                self.assertEqual((got["status"], got["code"]),
                                 ("error", "bad_request"))
                self.assertIn("session_id", got["error"])
            self.assertEqual((h.balance("anna"), h.balance("bert")), before)
            self.assertEqual(h.tasks(agent="web-search-agent"), [])
            done(h.boss, {"task_id": bert, "turn": 1}, text="over")
            self.assertEqual(h.parent("3")[1], "anna")  # who is left

    def test_both_call_their_session_the_same(self):
        with Several() as h:
            anna, bert = h.root("anna", "chat"), h.root("bert", "chat")
            error = h.ask("1", session_id="chat")["error"]
            self.assertIn("parent_task_id", error["message"])
            self.assertEqual(h.parent("2", session_id="chat",
                                      parent_task_id=bert), (bert, "bert"))
            self.assertEqual(h.parent("3", parent_task_id=anna),
                             (anna, "anna"))


class OneUser(unittest.TestCase):
    def test_the_session_decides(self):
        with Several() as h:
            first, second = h.root("anna", "s-1"), h.root("anna", "s-2")
            self.assertEqual(h.parent("1", session_id="s-1")[0], first)
            self.assertEqual(h.parent("2", session_id="s-2")[0], second)

    def test_to_ask_one_and_then_another_corrects_nobody(self):
        """In one session: what a person does so says that the first was the
        wrong one, what an agent does so says nothing."""
        with Several() as h:
            h.root("anna", "s-1")
            h.agent("other")
            for id, to in (("1", "web-search-agent"), ("2", "other")):
                h.parent(id, session_id="s-1", agent_id=to)
            text = h.server.call("GET", "/metrics").body.decode()
            self.assertIn("\nsignalbox_switches_total 0\n", text)

    def test_else_the_tree_with_the_least_money_left(self):
        with Several(ledger={"perRoot": 10 * PRICE}) as h:
            first = h.root("anna", "s-1", timeout_ms=100000)
            second = h.root("anna", "s-2", timeout_ms=200000)
            self.assertEqual(h.parent("0")[0], first)  # the nearer deadline
            h.parent("1", session_id="s-2")
            h.parent("2", session_id="s-2")
            self.assertEqual(h.parent("3")[0], second)
            self.assertEqual(h.parent("4", session_id="other")[0], second)
            self.assertEqual(h.tool(), second)
            # What comes to nothing is given back, and then the other has less.
            for _ in range(6):
                task = given(h.worker)
                of = h.task(task["task_id"])["parent_task_id"]
                done(h.worker, task, **({"text": "x"} if of == first else
                                        {"status": "failed", "error": "no"}))
            self.assertEqual(h.parent("5")[0], first)

    def test_without_a_budget_the_tree_with_the_fewest_tasks_left(self):
        with Several() as h:
            first = h.root("anna", "s-1", timeout_ms=100000)
            second = h.root("anna", "s-2", timeout_ms=200000)
            self.assertEqual(h.parent("0")[0], first)
            h.parent("1", parent_task_id=second)
            h.parent("2", parent_task_id=second)
            self.assertEqual(h.parent("3")[0], second)

    def test_its_limits_are_those_that_count(self):
        with Several(ledger={"perRoot": 3 * PRICE}) as h:
            h.root("anna", "s-1", timeout_ms=100000)
            second = h.root("anna", "s-2", timeout_ms=200000)
            h.parent("1", session_id="s-2")
            self.assertEqual(h.parent("2"), (second, "anna"))
            error = h.ask("3")["error"]
            self.assertEqual(error["data"]["code"], "budget_exceeded")
            self.assertEqual(h.parent("4", session_id="s-1")[1], "anna")

    def test_nobody_above_any_of_them(self):
        """top has research-agent do something, which works for anna beside
        that: to top it gives nothing, whichever of the two it is for."""
        with Several() as h:
            top = h.agent("top")
            h.publish("top")
            direct = h.root("anna", "s-1", timeout_ms=100000)
            root = h.root("anna", "s-2", to="top", hub=top,
                          timeout_ms=200000)
            top.start("agent.delegate", agentId="research-agent", task="go",
                      mode="async", parent_task_id=root)
            below = given(h.boss)["task_id"]
            for id in ("1", "2"):  # it has the least left
                h.parent(id, parent_task_id=direct)
            self.assertEqual(h.parent("3")[0], direct)
            refused = h.boss.call("agent.delegate", agentId="top", task="x",
                                  mode="async")
            self.assertEqual(refused.get("code"), "delegation_not_allowed",
                             refused)
            self.assertIn('top is already above this task (["top"])',
                          refused["error"])
            # For the one that is not below top it may, if it says so.
            h.boss.start("agent.delegate", agentId="top", task="x",
                         parent_task_id=direct)
            task = given(top)
            self.assertEqual(task["metadata"]["chain"], ["research-agent"])
            self.assertNotEqual(task["task_id"], below)

    def test_a_crowd_of_them(self):
        """As many as an agent has by default, each a tree of its own."""
        with Several() as h:
            roots = [h.root("anna", f"s-{i}", timeout_ms=300000 - 1000 * i)
                     for i in range(64)]
            self.assertEqual(h.parent("0")[0], roots[-1])
            h.parent("1", session_id="s-0")
            h.parent("2", session_id="s-0")
            self.assertEqual(h.parent("3")[0], roots[0])


class Control(unittest.TestCase):
    @needs_planted
    def test_a_server_that_lets_somebody_else_pay(self):
        said = fails_with(
            self, "hire.any_payer", TwoUsers(
                "test_who_does_not_say_for_whom_is_refused_and_nobody_pays"
            ).test_who_does_not_say_for_whom_is_refused_and_nobody_pays)
        self.assertIn("KeyError: 'error'", said)

    @needs_planted
    def test_a_server_that_takes_the_first_tree(self):
        case = OneUser("test_its_limits_are_those_that_count")
        said = fails_with(self, "walk.first_parent",
                          case.test_its_limits_are_those_that_count)
        self.assertIn("AssertionError", said)

    @needs_planted
    def test_a_server_that_looks_at_one_chain(self):
        case = OneUser("test_nobody_above_any_of_them")
        self.assertIn("None != 'delegation_not_allowed'", fails_with(
            self, "hire.one_chain", case.test_nobody_above_any_of_them))
