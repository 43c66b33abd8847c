"""Agents that would hire each other for ever, with money: every loop and every
fork is stopped by the limit that is there for it, the payer is charged for
what was completed and nothing else, and no one beside them notices.

The control is a server that lets a loop go round, on which the same must fail.
"""
import contextlib
import subprocess
import unittest

import signalbox
from loopers import Loopers
from planted import fails_with, needs_planted
from signalbox import Server
from tool_model import ToolModel, answers, calls

PRICE = 700
FUNDS = 1000 * PRICE
RATE = {"perUser": 0}
MANY = {"maxConcurrent": 1000}


class House(contextlib.ExitStack):
    """anna, who pays; bert, who is a bystander; zoe, whose the agents are."""

    def __init__(self, agents=None, funds=FUNDS, **config):
        super().__init__()
        self.server = self.enter_context(
            Server(agents=agents, config={
                "rate": RATE, **config,
                "ledger": {"delegationAllowance": 10 ** 9,
                           **config.get("ledger", {})}}))
        self.tokens = {}
        for name in ("anna", "bert", "zoe"):
            self.tokens[name] = self.server.user(name)
        self.top_up("anna", funds)
        self.top_up("bert", FUNDS)

    def top_up(self, user, amount):
        r = self.server.call("POST", "/api/ledger/topup",
                             {"user": user, "amount_micros": amount})
        if r.status != 201:
            raise AssertionError(r)

    def loopers(self, hires, **options):
        options = {"price": PRICE, **options}
        return self.enter_context(
            Loopers(self.server, self.tokens["zoe"], hires, **options))

    def ask(self, user, to, wait_ms=60000):
        return self.server.send("go", to=to, token=self.tokens[user],
                                wait_ms=wait_ms).json()

    def get(self, path, user=None):
        r = self.server.call("GET", path, token=self.tokens[user] if user
                             else self.server.token)
        if r.status != 200:
            raise AssertionError(r)
        return r.json()

    def balance(self, user):
        return self.get("/api/ledger/balance", user)["balance_micros"]

    def earned(self):
        return self.get("/api/ledger/balance", "zoe")["earned_micros"]

    def completed(self, root_user):
        """How many tasks were, and how many otherwise ended, at any depth."""
        n, n_other, cursor = 0, 0, ""
        while cursor is not None:
            page = self.get("/api/tasks?limit=500" + cursor)
            for t in page["items"]:
                if t["root_user"] == root_user:
                    n += t["status"] == "completed"
                    n_other += t["status"] != "completed"
            after = page["next_cursor"]
            cursor = None if after is None else f"&cursor={after}"
        return n, n_other


def check_offline(data):
    return subprocess.run(
        [signalbox.BINARY, "ledger", "check", "--offline", "--data", data],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env=signalbox.clean_environment(), check=False)


class Case(unittest.TestCase):
    def charged(self, h, user, n_completed, n_other=0, funds=FUNDS):
        """For so many tasks, and for nothing else; the books are right."""
        self.assertEqual(h.completed(user), (n_completed, n_other))
        self.assertEqual(h.balance(user), funds - n_completed * PRICE)
        books = h.get("/api/ledger/check")
        self.assertTrue(books["is_right"], books)

    def books_are_right_without_the_server(self, h):
        h.server.kill9()
        said = check_offline(h.server.data)
        self.assertEqual((said.returncode, said.stdout.split("\n")[0]),
                         (0, "The ledger is consistent."))

    def refused(self, agents, code, words, n):
        self.assertEqual(len(agents.refusals), n, agents.refusals[:3])
        for who, hired, got, said in agents.refusals:
            self.assertEqual(got, code, said)
            self.assertIn(words, said)


def ring(n):
    names = "abcdefgh"[:n]
    return {name: [names[(i + 1) % n]] for i, name in enumerate(names)}


class Loops(Case):
    WORDS = {1: "a cannot delegate to itself",
             2: 'a is already above this task (["a","b"]); an agent works '
                'only once in a chain',
             3: 'a is already above this task (["a","b","c"]); an agent '
                'works only once in a chain'}
    TEXTS = {1: "a(!delegation_not_allowed)",
             2: "a(b(!delegation_not_allowed))",
             3: "a(b(c(!delegation_not_allowed)))"}

    by_message = False

    def goes_round(self, n):
        """a hires b … hires a, for anna, and bert's work beside it."""
        with House() as h:
            agents = h.loopers({**ring(n), "plain": []},
                               by_message=self.by_message)
            bert = h.ask("bert", "plain", wait_ms=0)
            done = h.ask("anna", "a")
            self.refused(agents, "delegation_not_allowed", self.WORDS[n], 1)
            self.assertEqual((done["status"], done["text"]),
                             ("completed", self.TEXTS[n]))
            self.charged(h, "anna", n)
            # bert's goes on, and a loop of his own is as long and is his.
            self.assertEqual(h.ask("bert", "plain")["text"], "plain()")
            self.assertEqual(h.ask("bert", "a")["text"], self.TEXTS[n])
            task = h.get("/api/tasks/" + bert["task_id"], "bert")
            self.assertEqual(task["status"], "completed")
            self.charged(h, "bert", 2 + n)
            self.charged(h, "anna", n)
            self.assertEqual(h.earned(), (2 + 2 * n) * PRICE)
            self.books_are_right_without_the_server(h)

    def test_to_itself(self):
        self.goes_round(1)

    def test_of_two(self):
        self.goes_round(2)

    def test_of_three(self):
        self.goes_round(3)

    def test_who_fails_for_it_is_not_paid(self):
        """The refusal becomes a failure all the way up: nothing was done."""
        with House() as h:
            agents = h.loopers(ring(3), is_strict=True,
                               by_message=self.by_message)
            self.assertEqual(h.ask("anna", "a")["status"], "failed")
            self.refused(agents, "delegation_not_allowed", self.WORDS[3], 1)
            self.charged(h, "anna", 0, n_other=3)
            self.assertEqual(h.earned(), 0)
            self.books_are_right_without_the_server(h)

    def test_two_users_in_the_same_ring_at_once(self):
        with House() as h:
            agents = h.loopers(ring(3), by_message=self.by_message)
            ids = [(user, h.ask(user, at, wait_ms=0)["task_id"])
                   for _ in range(5) for user, at in (("anna", "a"),
                                                      ("bert", "b"))]
            for user, id in ids:
                signalbox.eventually(
                    lambda: h.get("/api/tasks/" + id, user)["result"], id)
            self.assertEqual(len(agents.refusals), 10)
            self.charged(h, "anna", 15)
            self.charged(h, "bert", 15)
            self.assertEqual({len(chain) for _, _, chain in agents.executed},
                             {0, 1, 2})

    def test_through_a_model(self):
        """boss is a model, and helper on the hub."""
        def think(body):
            said = answers(body)
            if not said:
                return calls(("delegate_to_agent", {"agentId": "helper",
                                                    "task": "you do it"}))
            return f"boss({said[0]['response']})"
        with ToolModel(think) as model:
            boss = {"id": "boss", "model": "tools/boss",
                    "pricing": {"amountMicros": PRICE}}
            with House(agents=[boss], models={
                    "tools": {"baseUrl": model.url + "/v1"}}) as h:
                agents = h.loopers({"helper": ["boss"], "plain": []})
                done = h.ask("anna", "boss")
                self.assertEqual(
                    (done["status"], done["text"]),
                    ("completed", "boss(helper(!delegation_not_allowed))"))
                self.refused(agents, "delegation_not_allowed",
                             'boss is already above this task '
                             '(["boss","helper"])', 1)
                self.assertEqual(h.ask("bert", "plain")["text"], "plain()")
                self.charged(h, "anna", 2)
                self.charged(h, "bert", 1)
                self.assertEqual(h.earned(), 2 * PRICE)  # boss is nobody's
                self.assertEqual(model.complaints, [])
                self.books_are_right_without_the_server(h)


class Messages(Loops):
    """The same by message.send, which is no way around it."""
    by_message = True
    test_through_a_model = None


def fork(depth):
    """Two agents on each level; both hire both of the next. From one at the
    top it is 2^n tasks at depth n."""
    levels = [["top"]] + [[f"left-{i}", f"right-{i}"]
                          for i in range(1, depth + 1)]
    return {name: hired for names, hired in zip(levels, levels[1:] + [[]])
            for name in names}


class Forks(Case):
    """Each limit is the one that stops a fork that goes on to 511 tasks."""
    DEPTH = 8

    def forks(self, n, code, words, n_of_bert=None, funds=FUNDS, **config):
        """anna's ends with n completed, which are what was charged; the same
        of bert's at the same time, by limits of his own."""
        delegation = {"maxDepth": 20, **MANY, **config.pop("delegation", {})}
        n_of_bert = n_of_bert or n
        with House(funds=funds, delegation=delegation, **config) as h:
            agents = h.loopers({**fork(self.DEPTH), "plain": []})
            bert = h.ask("bert", "top", wait_ms=0)["task_id"]
            done = h.ask("anna", "top")
            self.assertEqual(done["status"], "completed", done)
            self.assertEqual(h.ask("bert", "plain")["text"], "plain()")
            signalbox.eventually(
                lambda: h.get("/api/tasks/" + bert, "bert")["result"], bert)
            self.charged(h, "bert", n_of_bert + 1)
            self.charged(h, "anna", n, funds=funds)
            self.assertEqual(h.earned(), (n + n_of_bert + 1) * PRICE)
            # All that was asked for was done or refused.
            self.assertEqual(len(agents.executed), n + n_of_bert + 1)
            self.assertGreater(len(agents.refusals), 0)
            self.refused(agents, code, words, len(agents.refusals))
            self.books_are_right_without_the_server(h)
            return len(agents.refusals)

    def test_depth(self):
        n = self.forks(63, "delegation_not_allowed",
                       "top allows a depth of 5 below it (delegation.maxDepth), "
                       "this would be 6", delegation={"maxDepth": 5})
        self.assertEqual(n, 2 * 64)

    def test_tasks_under_a_root(self):
        self.forks(1 + 256, "too_many_delegations",
                   "256 tasks are under the same root, the limit "
                   "(delegation.maxPerRoot)")

    def test_spend_under_a_root(self):
        self.forks(100, "budget_exceeded", "left of a budget",
                   ledger={"perRoot": 100 * PRICE + PRICE - 1})

    def test_the_user_s_money(self):
        self.forks(40, "insufficient_funds", "costs", n_of_bert=511,
                   funds=40 * PRICE + PRICE - 1,
                   delegation={"maxPerRoot": 1000})


class Control(unittest.TestCase):
    """A server with one mistake each, on which a loop of two must fail."""

    def seen_with(self, mistake, case=Loops):
        return fails_with(self, mistake, case("test_of_two").test_of_two)

    @needs_planted
    def test_a_server_that_forgets_the_chain(self):
        """It goes on until the depth stops it."""
        for case in (Loops, Messages):
            self.assertIn("delegation.maxDepth",
                          self.seen_with("hire.no_chain", case))

    @needs_planted
    def test_a_server_that_pays_twice(self):
        self.assertIn("'is_right': False",
                      self.seen_with("ledger.capture_twice"))

    @needs_planted
    def test_a_server_that_gives_back_what_was_paid(self):
        n = FUNDS - 2 * PRICE
        self.assertIn(f" != {n}",
                      self.seen_with("ledger.release_after_capture"))

    @needs_planted
    def test_a_server_on_which_agents_send_as_their_creator(self):
        """It would go on for ever, had their creator the money."""
        self.assertIn("AssertionError", self.seen_with(
            "hub.speaks_as_creator", Messages))
