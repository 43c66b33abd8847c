"""Money, by the calls and the commands: who has what, who may see and move it,
what a task costs, and statements that a spreadsheet can open."""
import contextlib
import csv
import io
import json
import os
import signal
import sqlite3
import threading
import unittest

from cards import card, error_code, register
from client import FAILED, NOT_ALLOWED, OK, REFUSED, USAGE, Client
from hub_peer import Hub, Refused
from signalbox import Server, eventually

PRICE = 1_500_000
MAX = 10 ** 18
NO_TASK = "task_00000000000000000000000000"
CALLS = [("GET", "/api/ledger/balance"), ("GET", "/api/ledger/statement"),
         ("GET", "/api/ledger/accounts"), ("GET", "/api/ledger/check"),
         ("POST", "/api/ledger/topup"), ("POST", "/api/ledger/refund"),
         ("POST", "/api/ledger/payout")]
OPEN = ("/api/ledger/balance", "/api/ledger/statement")


def balance(server, user=None, token=None):
    path = "/api/ledger/balance" + (f"?user={user}" if user else "")
    r = server.call("GET", path, token=token or server.token)
    if r.status != 200:
        raise AssertionError(r)
    return r.json()


def move(server, what, *headers, token=None, **body):
    return server.call("POST", "/api/ledger/" + what, body, *headers,
                       token=token or server.token)


def topup(server, user, amount, **more):
    r = move(server, "topup", user=user, amount_micros=amount, **more)
    if r.status != 201:
        raise AssertionError(r)
    return r.json()


def lines(server, query="", token=None):
    """All of a statement, page by page."""
    found, cursor = [], ""
    while cursor is not None:
        r = server.call("GET", f"/api/ledger/statement?limit=3{query}"
                        + (cursor and "&cursor=" + cursor),
                        token=token or server.token)
        if r.status != 200:
            raise AssertionError(r)
        found += r.json()["items"]
        cursor = r.json()["next_cursor"]
    return found


def told(entries):
    return [(e["kind"], e["amount_micros"]) for e in entries]


class Ledger(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server().__enter__()
        cls.zoe = cls.server.user("zoe")
        register(cls.server, "priced", token=cls.zoe, visibility="public",
                 pricing={"amount_micros": PRICE})
        register(cls.server, "endless", token=cls.zoe, visibility="public",
                 url="echo:3600000", pricing={"amount_micros": PRICE})
        register(cls.server, "free", token=cls.zoe, visibility="public")

    @classmethod
    def tearDownClass(cls):
        books = cls.server.call("GET", "/api/ledger/check").json()
        cls.server.__exit__(None)
        if not books["is_right"]:
            raise AssertionError(books)

    def refused(self, response, status, code, words=""):
        self.assertEqual(error_code(response), (status, code), response)
        self.assertIn(words, response.json()["error"]["message"])

    def earned(self):
        return balance(self.server, "zoe")["earned_micros"]

    # A task, from nothing to its refund.

    def test_a_task_is_paid_for_and_shown_on_both_statements(self):
        server, anna = self.server, self.server.user("anna")
        before = self.earned()
        r = server.send("hi", to="priced", token=anna)
        self.refused(r, 402, "insufficient_funds", "priced")
        tasks = server.call("GET", "/api/tasks", token=anna).json()
        self.assertEqual(tasks["items"], [])
        self.assertEqual(lines(server, token=anna), [])

        made = topup(server, "ANNA", PRICE, note="May")
        self.assertEqual(
            {k: made[k] for k in ("kind", "user", "account", "amount_micros",
                                  "balance_micros", "by", "note", "task_id",
                                  "turn", "is_repeat")},
            {"kind": "topup", "user": "anna", "account": "user:anna",
             "amount_micros": PRICE, "balance_micros": PRICE, "by": "admin",
             "note": "May", "task_id": None, "turn": None,
             "is_repeat": False})
        # Balance exactly the price.
        r = server.send("hi", to="priced", token=anna)
        self.assertEqual((r.status, r.json()["price_micros"]), (200, PRICE))
        task = r.json()["task_id"]
        shown = server.call("GET", "/api/tasks/" + task, token=anna).json()
        self.assertEqual(shown["price_micros"], PRICE)
        mine = lines(server, token=anna)
        self.assertEqual(told(mine), [("reserve", -PRICE), ("topup", PRICE)])
        self.assertEqual((mine[0]["task_id"], mine[0]["turn"],
                          mine[0]["agent"]), (task, 1, "priced"))
        self.assertEqual((mine[1]["by"], mine[1]["note"], mine[1]["posting"]),
                         ("admin", "May", made["posting"]))
        self.assertEqual(self.earned(), before + PRICE)
        theirs = lines(server, "&account=creator", token=self.zoe)
        self.assertEqual((theirs[0]["kind"], theirs[0]["amount_micros"],
                          theirs[0]["task_id"]), ("capture", PRICE, task))
        self.refused(server.send("hi", to="priced", token=anna), 402,
                     "insufficient_funds")
        # And back, once.
        r = move(server, "refund", task_id=task, note="slow")
        self.assertEqual(r.status, 201)
        back = r.json()
        self.assertEqual((back["user"], back["amount_micros"],
                          back["balance_micros"], back["turn"]),
                         ("anna", PRICE, PRICE, 1))
        r = move(server, "refund", task_id=task, turn=1)
        self.assertEqual((r.status, r.json()["is_repeat"]), (200, True))
        self.assertEqual(r.json()["posting"], back["posting"])
        self.assertEqual(balance(server, token=anna)["balance_micros"], PRICE)
        self.assertEqual(self.earned(), before)
        self.assertEqual(told(lines(server, token=anna))[0],
                         ("refund", PRICE))

    def test_what_fails_or_is_cancelled_costs_nothing(self):
        server, bob = self.server, self.server.user("bob")
        topup(server, "bob", 2 * PRICE)
        r = server.send("hi", to="endless", token=bob, wait_ms=0)
        task = r.json()["task_id"]
        is_now = balance(server, token=bob)
        self.assertEqual((is_now["balance_micros"], is_now["reserved_micros"]),
                         (PRICE, PRICE))
        r = server.call("POST", f"/api/tasks/{task}/cancel", token=bob)
        self.assertEqual(r.status, 200)
        is_now = balance(server, token=bob)
        self.assertEqual((is_now["balance_micros"], is_now["reserved_micros"]),
                         (2 * PRICE, 0))
        self.assertEqual(told(lines(server, token=bob)),
                         [("release", PRICE), ("reserve", -PRICE),
                          ("topup", 2 * PRICE)])
        self.refused(move(server, "refund", task_id=task), 404, "not_found",
                     "nothing was paid")
        with Hub(server, self.zoe) as hub:
            hub.call("agent.register", card={
                "name": "clumsy", "description": "Drops things",
                "visibility": "public", "pricing": {"amount_micros": PRICE}})
            r = server.send("hi", to="clumsy", token=bob, wait_ms=0)
            hub.work(status="failed", error="it fell")
            path = "/api/tasks/" + r.json()["task_id"]
            self.assertEqual(server.call("GET", path,
                                         token=bob).json()["status"],
                             "failed")
        self.assertEqual(balance(server, token=bob)["balance_micros"],
                         2 * PRICE)

    def test_whom_an_admin_means_pays(self):
        """metadata.user_id, from admins alone and of users alone."""
        server, una = self.server, self.server.user("una")
        topup(server, "una", 10 * PRICE)
        left = lambda: balance(server, "una")["balance_micros"] // PRICE
        r = server.send("hi", to="priced", metadata={"user_id": "Una"})
        self.assertEqual((r.status, r.json()["status"]), (200, "completed"))
        self.assertEqual(left(), 9)
        task = server.call("GET", "/api/tasks/" + r.json()["task_id"],
                           token=una).json()
        self.assertEqual((task["root_user"], task["requester"]),
                         ("una", "admin"))
        for name in ("missing", "", 7):
            self.refused(server.send("hi", to="priced",
                                     metadata={"user_id": name}), 400,
                         "bad_request", "metadata.user_id")
        other = server.user("ulf")
        self.refused(server.send("hi", to="priced", token=other,
                                 metadata={"user_id": "una"}), 402,
                     "insufficient_funds", "user:ulf")
        with Hub(server, server.token) as hub, Hub(server, other) as his:
            hub.call("message.send", text="hi", executor={"name": "priced"},
                     metadata={"user_id": "una"})
            self.assertEqual(left(), 8)
            hub.register("admins-own")
            his.register("somebodys")
            order = {"agent_id": "priced", "message": "x", "skill_id": "any",
                     "metadata": {"user_id": "una"}}
            hub.start("agent.send_task", **order)
            task = hub.heard("delegation.result")["task_id"]
            self.assertEqual(server.call("GET", "/api/tasks/" + task)
                             .json()["root_user"], "una")
            self.assertEqual(left(), 7)
            with self.assertRaises(Refused) as e:
                his.call("agent.send_task", **order)
            self.assertEqual(e.exception.name, "insufficient_funds")
            self.assertEqual(left(), 7)

    def test_a_price_and_a_payer_that_change_meanwhile(self):
        server = self.server
        pia, quin = server.user("pia"), server.user("quin")
        for user in ("pia", "quin"):
            topup(server, user, PRICE)
        with Hub(server, self.zoe) as hub:
            hub.register("steady", visibility="public",
                         pricing={"amount_micros": PRICE})
            before = self.earned()
            for token in (pia, quin):
                r = server.send("hi", to="steady", token=token, wait_ms=0)
                self.assertEqual(r.json()["price_micros"], PRICE)
            r = server.call("PATCH", "/api/agents/steady",
                            {"pricing": {"amount_micros": 9 * PRICE}},
                            token=self.zoe)
            self.assertEqual(r.status, 200)
            self.assertEqual(server.call("DELETE",
                                         "/api/users/quin").status, 204)
            done = [hub.work()[0]["task_id"] for _ in range(2)]
            self.refused(server.send("hi", to="steady", token=pia), 402,
                         "insufficient_funds", "steady")
        self.assertEqual(self.earned(), before + 2 * PRICE)
        paid = lines(server, "&user=pia") + lines(server, "&user=quin")
        self.assertEqual(told(paid), 2 * [("reserve", -PRICE),
                                          ("topup", PRICE)])
        self.assertEqual({e["task_id"] for e in paid if e["task_id"]},
                         set(done))

    def test_what_costs_nothing_leaves_no_line(self):
        server, carl = self.server, self.server.user("carl")
        r = server.send("hi", to="free", token=carl)
        self.assertEqual(r.status, 200)
        self.assertNotIn("price_micros", r.json())
        self.assertEqual(lines(server, token=carl), [])

    def test_a_route_says_what_it_would_cost(self):
        for name, price in (("priced", PRICE), ("free", 0)):
            r = self.server.call("POST", "/api/route", {
                "text": "hi", "executor": {"name": name}})
            self.assertEqual(r.json()["price_micros"], price)

    def test_two_at_once_cannot_both_have_the_last_unit(self):
        server, dora = self.server, self.server.user("dora")
        topup(server, "dora", PRICE)
        answers = []

        def ask():
            answers.append(server.send("hi", to="priced", token=dora).status)

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(sorted(answers), [200] + [402] * 7)
        self.assertEqual(balance(server, token=dora)["balance_micros"], 0)

    # Moving money.

    def test_a_key_moves_money_once(self):
        server = self.server
        server.user("erik")
        key = "Idempotency-Key: k-1"
        wish = {"user": "erik", "amount_micros": 10, "note": "x"}
        first = move(server, "topup", key, **wish)
        self.assertEqual(first.status, 201)
        again = move(server, "topup", idempotency_key="k-1", **wish)
        self.assertEqual(again.status, 200)
        self.assertEqual(again.json(), {**first.json(), "is_repeat": True})
        for other in ({**wish, "amount_micros": 11}, {**wish, "user": "zoe"},
                      {**wish, "note": "y"}):
            self.refused(move(server, "topup", key, **other), 422,
                         "idempotency_mismatch")
        self.refused(move(server, "payout", key, **wish), 422,
                     "idempotency_mismatch")
        self.assertEqual(balance(server, "erik")["balance_micros"], 10)
        # Another admin's key is another key; without one, each is new.
        olga = server.user("olga", role="admin")
        self.assertEqual(move(server, "topup", key, token=olga,
                              **wish).status, 201)
        topup(server, "erik", 10)
        topup(server, "erik", 10)
        self.assertEqual(balance(server, "erik")["balance_micros"], 40)

    def test_a_key_of_a_tasks_refund_stands_for_nothing_else(self):
        server, fred = self.server, self.server.user("fred")
        topup(server, "fred", 2 * PRICE)
        tasks = [server.send("hi", to="priced", token=fred).json()["task_id"]
                 for _ in range(2)]
        key = "Idempotency-Key: r-1"
        self.assertEqual(move(server, "refund", key,
                              task_id=tasks[0]).status, 201)
        r = move(server, "refund", key, task_id=tasks[0])
        self.assertEqual((r.status, r.json()["is_repeat"]), (200, True))
        self.refused(move(server, "refund", key, task_id=tasks[1]), 422,
                     "idempotency_mismatch")
        self.refused(move(server, "topup", key, user="fred",
                          amount_micros=1), 422, "idempotency_mismatch")
        self.assertEqual(balance(server, "fred")["balance_micros"], PRICE)

    def test_the_same_key_many_times_at_once_is_one_posting(self):
        server = self.server
        server.user("gina")
        answers = []

        def ask():
            answers.append(move(server, "topup", "Idempotency-Key: once",
                                user="gina", amount_micros=7))

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(sorted(r.status for r in answers),
                         [200] * 7 + [201])
        self.assertEqual(len({r.json()["posting"] for r in answers}), 1)
        self.assertEqual(balance(server, "gina")["balance_micros"], 7)

    def test_refund_and_payout_take_no_more_than_there_is(self):
        server, hans = self.server, self.server.user("hans")
        topup(server, "hans", 100)
        self.refused(move(server, "refund", user="hans", amount_micros=101),
                     402, "insufficient_funds", "user:hans")
        r = move(server, "refund", user="hans", amount_micros=100)
        self.assertEqual((r.status, r.json()["balance_micros"]), (201, 0))
        self.refused(move(server, "payout", user="hans", amount_micros=1),
                     402, "insufficient_funds", "creator:hans")
        self.assertEqual(told(lines(server, token=hans)),
                         [("refund", -100), ("topup", 100)])
        register(server, "hired", token=hans, visibility="public",
                 pricing={"amount_micros": 50})
        server.user("ida")
        ida = server.call("POST", "/api/tokens", {"user": "ida"}).json()
        topup(server, "ida", 50)
        server.send("hi", to="hired", token=ida["token"])
        r = move(server, "payout", user="hans", amount_micros=30, note="June")
        self.assertEqual((r.json()["account"], r.json()["balance_micros"]),
                         ("creator:hans", 20))
        self.assertEqual(told(lines(server, "&account=creator", token=hans)),
                         [("payout", -30), ("capture", 50)])
        # Paid out in part, and refunded whole: hans owes the rest, and what
        # he earns next pays it.
        first = server.call("GET", "/api/feed?last=1").json()["next_after"]
        task = lines(server, "&user=ida")[0]["task_id"]
        r = move(server, "refund", task_id=task)
        self.assertEqual((r.status, r.json()["balance_micros"]), (201, 50))
        is_now = balance(server, token=hans)
        self.assertEqual((is_now["earned_micros"], is_now["owed_micros"]),
                         (0, 30))
        self.assertEqual(told(lines(server, "&account=creator", token=hans)),
                         [("refund", -50), ("payout", -30), ("capture", 50)])
        heard = [[e["data"]["amount_micros"] for e in server.call(
            "GET", f"/api/feed?after={first}", token=token).json()["items"]
            if e["type"] == "ledger.refund"] for token in (hans,
                                                           ida["token"])]
        self.assertEqual(heard, [[-50], [50]])
        report = server.call("GET", "/api/ledger/check").json()
        self.assertEqual((report["is_right"], report["owed_micros"]),
                         (True, 30))
        self.refused(move(server, "payout", user="hans", amount_micros=1),
                     402, "insufficient_funds", "creator:hans")
        server.send("hi", to="hired", token=ida["token"])
        is_now = balance(server, token=hans)
        self.assertEqual((is_now["earned_micros"], is_now["owed_micros"]),
                         (20, 0))

    def test_a_charge_is_refunded_once_and_a_part_of_it_too(self):
        server, otto = self.server, self.server.user("otto")
        topup(server, "otto", PRICE)
        task = server.send("hi", to="priced", token=otto).json()["task_id"]
        line = lines(server, token=otto)[0]
        self.assertEqual((line["kind"], line["state"]), ("reserve", "charged"))
        self.refused(move(server, "refund", task_id=task,
                          amount_micros=PRICE + 1), 400, "bad_request",
                     "no more than that")
        self.refused(move(server, "refund", token=otto, task_id=task), 403,
                     "not_allowed")
        answers = []

        def ask():
            answers.append(move(server, "refund", task_id=task,
                                amount_micros=7))

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(sorted(r.status for r in answers), 7 * [200] + [201])
        self.refused(move(server, "refund", task_id=task, amount_micros=8),
                     409, "exists", "already refunded")
        r = move(server, "refund", task_id=task)
        self.assertEqual((r.status, r.json()["amount_micros"]), (200, 7))
        self.assertEqual(balance(server, token=otto)["balance_micros"], 7)

    def test_who_was_removed_can_be_paid_but_gets_nothing_more(self):
        server = self.server
        server.user("jack")
        topup(server, "jack", 5)
        self.assertEqual(server.call("DELETE", "/api/users/jack").status, 204)
        self.refused(move(server, "topup", user="jack", amount_micros=1), 404,
                     "not_found", "jack")
        self.assertEqual(balance(server, "jack")["balance_micros"], 5)
        self.assertEqual(told(lines(server, "&user=jack")), [("topup", 5)])
        self.assertEqual(move(server, "refund", user="jack",
                              amount_micros=5).status, 201)
        r = server.call("POST", "/api/users", {"name": "jack"})
        self.assertNotEqual(r.status, 201)

    # Bad input, one by one.

    def test_what_is_wrong_with_a_move_is_named(self):
        server = self.server
        good = {"user": "zoe", "amount_micros": 1}
        cases = [
            ({}, "user is missing"), ({"user": "zoe"}, "amount_micros"),
            ({"amount_micros": 1}, "user is missing"),
            ({**good, "amount_micros": 0}, "amount_micros must be"),
            ({**good, "amount_micros": -1}, "amount_micros must be"),
            ({**good, "amount_micros": 1.5}, "amount_micros must be"),
            ({**good, "amount_micros": "1"}, "amount_micros must be"),
            ({**good, "amount_micros": MAX + 1}, "amount_micros must be"),
            ({**good, "amount_micros": True}, "amount_micros must be"),
            ({**good, "note": "x" * 257}, "note must be"),
            ({**good, "note": "a\nb"}, "note must be"),
            ({**good, "note": 7}, "note must be"),
            ({**good, "user": ""}, "user must be"),
            ({**good, "user": ["zoe"]}, "user must be"),
            ({**good, "user": "x" * 129}, "user must be"),
            ({**good, "idempotency_key": ""}, "idempotency_key must be"),
            ({**good, "idempotency_key": "k" * 256},
             "idempotency_key must be"),
            ({**good, "amuont": 1}, "amuont"),
        ]
        for what in ("topup", "refund", "payout"):
            for body, words in cases:
                if what == "refund" and not body:
                    words = "say what to refund"
                self.refused(move(server, what, **body), 400, "bad_request",
                             words)
            for raw in (b"", b"{", b"[]", b"1e3", b'{"amount_micros":NaN}',
                        b'{"user":"zoe","amount_micros":1e3}',
                        b'{"user":"zoe","user":"zoe","amount_micros":1}'):
                r = server.call("POST", "/api/ledger/" + what, raw)
                self.assertEqual(r.status, 400, (raw, r))
            self.refused(move(server, what, "Idempotency-Key: ", **good), 400,
                         "bad_request", "empty")
            self.refused(move(server, what, "Idempotency-Key: a",
                              idempotency_key="b", **good), 400,
                         "bad_request", "differ")
        for body in ({"task_id": "task_1"}, {"task_id": NO_TASK},
                     {"task_id": NO_TASK, "turn": 2},
                     {"task_id": "x" * 30}):
            r = move(server, "refund", **body)
            self.assertIn(r.status, (400, 404), r)
        for user in ("missing", "a b", "../x", "%", "ä"):
            self.refused(move(server, "topup", user=user, amount_micros=1),
                         404, "not_found", "there is no user")

    def test_a_balance_never_overflows(self):
        server = self.server
        server.user("karl")
        for _ in range(9):
            topup(server, "karl", MAX)
        r = move(server, "topup", user="karl", amount_micros=MAX)
        self.refused(r, 413, "too_large", "too large")
        self.assertEqual(balance(server, "karl")["balance_micros"], 9 * MAX)
        self.assertEqual(move(server, "refund", user="karl",
                              amount_micros=MAX).status, 201)
        for _ in range(8):
            self.assertEqual(move(server, "refund", user="karl",
                                  amount_micros=MAX).status, 201)

    def test_what_is_wrong_with_a_question_is_named(self):
        bad = [("balance?user=", "user must be"),
               ("balance?user=a%20b", "user must be"),
               ("balance?usr=a", "usr"),
               ("statement?limit=0", "limit must be a whole number from 1 to "
                "500, or to 5000 as CSV"),
               ("statement?limit=501", "limit must be a whole number from 1 to "
                "500, or to 5000 as CSV"),
               ("statement?cursor=0", "cursor"),
               ("statement?cursor=x", "cursor"),
               ("statement?after_ms=-1", "after_ms"),
               ("statement?before_ms=0", "before_ms"),
               ("statement?before_ms=1.5", "before_ms"),
               ("statement?format=xml", "format must be"),
               ("statement?format=csv&limit=5001", "limit"),
               ("statement?account=bank", "account must be"),
               ("statement?account=user:", "account must be"),
               ("statement?account=platform&user=zoe", "only for account"),
               ("accounts?limit=x", "limit")]
        for path, words in bad:
            r = self.server.call("GET", "/api/ledger/" + path)
            self.refused(r, 400, "bad_request", words)
        for path in ("balance?user=missing", "statement?user=missing"):
            self.refused(self.server.call("GET", "/api/ledger/" + path), 404,
                         "not_found", "missing")

    # Who may.

    def test_each_call_by_role_and_scope(self):
        server = self.server
        server.user("lena")
        server.user("lenas", role="agent", owner="lena")
        tokens = {}
        for user in ("lena", "lenas"):
            tokens[user] = server.call("POST", "/api/tokens", {
                "user": user}).json()["token"]
        for scope in ("send", "read", "agents", "escalations", "ledger",
                      "admin"):
            tokens[scope] = server.call("POST", "/api/tokens", {
                "scopes": [scope]}).json()["token"]
        may = {"lena": OPEN, "lenas": OPEN, "read": OPEN,
               "ledger": [p for _, p in CALLS if p not in OPEN]}
        for who, token in tokens.items():
            for method, path in CALLS:
                r = server.call(method, path, {} if method == "POST" else None,
                                token=token)
                if path in may.get(who, ()):
                    self.assertIn(r.status, (200, 400), (who, path, r))
                else:
                    self.refused(r, 403, "not_allowed", "scope")
        for path in OPEN:
            r = server.call("GET", path + "?user=zoe", token=tokens["lena"])
            self.refused(r, 403, "not_allowed", "scope ledger")
            self.assertEqual(r.json()["error"]["details"],
                             {"scope": "ledger"})
            # One who is not there is told alike: no one learns who is.
            missing = server.call("GET", path + "?user=missing",
                                 token=tokens["lena"])
            self.assertEqual(missing.body, r.body)
            r = server.call("GET", path + "?user=LENA", token=tokens["lena"])
            self.assertEqual(r.status, 200)
        for account in ("platform", "outside", "reserved", "all", "user:zoe",
                        "user:lena"):
            r = server.call("GET", "/api/ledger/statement?account=" + account,
                            token=tokens["lena"])
            self.refused(r, 403, "not_allowed", "scope ledger")

    # Lists.

    def test_a_statement_is_paged_by_time_and_cursor(self):
        server, mona = self.server, self.server.user("mona")
        for i in range(1, 8):
            topup(server, "mona", i)
        all_of_it = lines(server, token=mona)
        self.assertEqual([e["amount_micros"] for e in all_of_it],
                         [7, 6, 5, 4, 3, 2, 1])
        self.assertEqual(len({e["seq"] for e in all_of_it}), 7)
        at = all_of_it[3]["at_ms"]
        self.assertEqual(lines(server, f"&after_ms={at}", mona),
                         [e for e in all_of_it if e["at_ms"] >= at])
        self.assertEqual(lines(server, f"&before_ms={at}", mona),
                         [e for e in all_of_it if e["at_ms"] < at])
        everything = lines(server, "&account=all")
        for posting in {e["posting"] for e in everything}:
            self.assertEqual(sum(e["amount_micros"] for e in everything
                                 if e["posting"] == posting), 0)
        r = server.call("GET", "/api/ledger/accounts?limit=2").json()
        names = [a["account"] for a in r["items"]]
        while r["next_cursor"]:
            r = server.call("GET", "/api/ledger/accounts?limit=2&cursor="
                            + r["next_cursor"]).json()
            names += [a["account"] for a in r["items"]]
        self.assertEqual(names, sorted(set(names)))
        self.assertTrue({"outside", "user:mona"} <= set(names))

    def test_csv_is_read_back_as_it_was_and_runs_nothing(self):
        server, nora = self.server, self.server.user("nora")
        notes = ["=HYPERLINK(\"http://x\")", "+1", "-2", "@SUM(A1)",
                 "a,b;c", "say \"hi\"", "ünï 日本 🦉", "plain", "'quoted'"]
        for note in notes:
            topup(server, "nora", 1_000_001, note=note)
        r = server.call("GET", "/api/ledger/statement?format=csv", token=nora)
        self.assertEqual(r.headers["content-type"], "text/csv; charset=utf-8")
        self.assertNotIn("next-cursor", r.headers)
        rows = list(csv.DictReader(io.StringIO(r.body.decode(), newline="")))
        plain = lines(server, token=nora)
        self.assertEqual(len(rows), len(notes))
        for row, line in zip(rows, plain):
            note = line["note"]
            self.assertEqual(row["note"],
                             "'" + note if note[0] in "=+-@" else note)
            self.assertEqual(int(row["amount_micros"]), 1_000_001)
            self.assertEqual(row["amount"], "1.000001")
            self.assertEqual(row["task_id"], "")
            for key in ("account", "kind", "by", "posting"):
                self.assertEqual(row[key], line[key])
            for value in row.values():
                self.assertNotIn(value[:1] or " ", "=+-@")
        self.assertEqual([line["note"] for line in plain], notes[::-1])
        by_accept = server.call("GET", "/api/ledger/statement", None,
                                "Accept: text/csv", token=nora)
        self.assertEqual(by_accept.body, r.body)
        r = server.call("GET", "/api/ledger/statement?limit=4", None,
                        "Accept: text/csv", token=nora)
        rest = server.call("GET", "/api/ledger/statement?format=csv&cursor="
                           + r.headers["next-cursor"], token=nora)
        head = rest.body.index(b"\r\n") + 2
        self.assertEqual(r.body + rest.body[head:], by_accept.body)


class Currency(unittest.TestCase):
    def reload(self, server, config):
        def n_reloads():
            text = server.get("/metrics").body.decode()
            return int(text.split("\nsignalbox_config_reloads_total ")[1]
                       .split("\n")[0])
        before = n_reloads()
        server.write_config(config=config)
        server.process.send_signal(signal.SIGHUP)
        eventually(lambda: n_reloads() > before, "a reload")

    def put(self, server, **pricing):
        return server.call("PUT", "/api/agents/dear",
                           card("dear", pricing=pricing))

    def test_a_price_in_the_ledgers_currency_is_charged(self):
        with Server(agents=[{"id": "set", "url": "echo:", "pricing": {
                "amount": "0.000007", "currency": "USD"}}]) as server:
            anna = server.user("anna")
            topup(server, "anna", 1_000_000)
            r = self.put(server, amount=0.29, currency="usd")
            self.assertEqual((r.status, r.json()["pricing"]),
                             (201, {"amount_micros": 290_000}))
            for agent, left in (("dear", 710_000), ("set", 709_993)):
                r = server.send("hi", to=agent, token=anna, wait_ms=60000)
                self.assertEqual(r.status, 200, r)
                self.assertEqual(
                    balance(server, "anna")["balance_micros"], left)

    def test_a_patch_gives_a_price_in_either_form(self):
        """What it does not mention stays; an amount is the micros."""
        usd = {"currency": "USD"}
        with Server() as server:
            self.put(server, amount_micros=7)
            for pricing, kept in (
                    ({"amount": 0.05, **usd}, 50_000),
                    (usd, 50_000),
                    ({"amount_micros": 8, **usd}, 8),
                    ({"amount": "0.000009", **usd}, 9),
                    ({"amount": None}, None),
                    ({"amount": None}, None),
                    ({"amount": 0, **usd}, 0),
                    ({"amount": None, "amount_micros": 5}, 5),
                    ({"amount_micros": None}, None)):
                r = server.call("PATCH", "/api/agents/dear",
                                {"pricing": pricing})
                self.assertEqual(r.status, 200, (pricing, r.json()))
                self.assertEqual(
                    r.json().get("pricing", {}).get("amount_micros"), kept,
                    pricing)
            self.put(server, amount_micros=7)
            for pricing, words in (
                    ({"amount": 1, "amount_micros": 1, **usd}, "give one of"),
                    ({"amount": 1}, "does not say of which currency"),
                    ({"amount": 1, "currency": "EUR"}, 'must be "USD"'),
                    ({"currency": "EUR"}, 'must be "USD"')):
                r = server.call("PATCH", "/api/agents/dear",
                                {"pricing": pricing})
                self.assertEqual(error_code(r), (400, "bad_request"), pricing)
                self.assertIn(words, r.json()["error"]["message"])
            r = server.call("GET", "/api/agents/dear")
            self.assertEqual(r.json()["pricing"], {"amount_micros": 7})

    def test_another_currency_is_refused(self):
        with Server(config={"ledger": {"currency": "USD"}}) as server:
            r = self.put(server, amount=1, currency="EUR")
            self.assertEqual(error_code(r), (400, "bad_request"))
            self.assertIn('/pricing/currency must be "USD", which the ledger '
                          'is kept in, not "EUR"',
                          r.json()["error"]["message"])
            self.reload(server, {"ledger": {"currency": "EUR"}})
            self.assertEqual(self.put(server, amount=1,
                                      currency="EUR").status, 201)
            r = self.put(server, amount=1, currency="USD")
            self.assertEqual(error_code(r), (400, "bad_request"))
            with Hub(server) as hub, self.assertRaisesRegex(
                    Refused, 'must be .*EUR'):
                hub.register("new", pricing={"amount": 1, "currency": "USD"})


class Budgets(unittest.TestCase):
    def test_what_is_left_today_is_shown_and_then_refused(self):
        config = {"ledger": {"perDay": 2 * PRICE, "feePpm": 100_000}}
        with Server(config=config) as server:
            anna, zoe = server.user("anna"), server.user("zoe")
            register(server, "priced", token=zoe, visibility="public",
                     pricing={"amount_micros": PRICE})
            topup(server, "anna", 10 * PRICE)
            for spent in range(2):
                shown = balance(server, token=anna)["budgets"]
                self.assertEqual(
                    shown, {"spent_today_micros": spent * PRICE,
                            "left_today_micros": (2 - spent) * PRICE,
                            "per_day_micros": 2 * PRICE,
                            "per_conversation_micros": None,
                            "per_root_micros": None, "items": []})
                self.assertEqual(server.send("x", to="priced",
                                             token=anna).status, 200)
            r = server.send("x", to="priced", token=anna)
            self.assertEqual(error_code(r), (402, "budget_exceeded"))
            shown = balance(server, token=anna)
            self.assertEqual((shown["balance_micros"],
                              shown["budgets"]["left_today_micros"]),
                             (8 * PRICE, 0))
            fee = lines(server, "&account=platform")
            self.assertEqual(told(fee), [("capture", PRICE // 10)] * 2)
            self.assertEqual(balance(server, "zoe")["earned_micros"],
                             2 * PRICE * 9 // 10)
            check = server.call("GET", "/api/ledger/check").json()
            self.assertEqual((check["is_right"], check["problems"]),
                             (True, []))


class Commands(Client):
    def setUp(self):
        super().setUp()
        self.box = self.server()
        self.zoe = self.box.user("zoe")
        self.anna = self.box.user("anna")
        register(self.box, "priced", token=self.zoe, visibility="public",
                 pricing={"amount_micros": PRICE})

    def test_a_users_money_from_the_command_line(self):
        out = self.good("ledger", "topup", "anna", "10", "--note", "May",
                        "--key", "m-5")
        self.assertIn("anna got 10.00; the balance is now 10.00 (post_", out)
        again = self.good("ledger", "topup", "anna", "10", "--note", "May",
                          "--key", "m-5")
        self.assertIn("done before", again)
        self.bad(REFUSED, "ledger", "topup", "anna", "11", "--note", "May",
                 "--key", "m-5")
        self.use(self.box, self.anna)
        self.assertEqual(self.good("send", "hi", "--to", "priced"), "hi\n")
        out = self.good("ledger")
        self.assertRegex(out, r"balance +8\.50\n")
        out = self.good("ledger", "statement")
        self.assertRegex(out, r"-1\.50 +charge +user:anna +priced task_")
        self.assertRegex(out, r" 10\.00 +topup +user:anna +by admin: May")
        items = [json.loads(line) for line in self.good(
            "ledger", "statement", "--json").splitlines()]
        self.assertEqual(told(items), [("reserve", -PRICE),
                                       ("topup", 10_000_000)])
        self.bad(NOT_ALLOWED, "ledger", "balance", "zoe")
        self.bad(NOT_ALLOWED, "ledger", "topup", "anna", "1")
        self.use(self.box)
        task = items[0]["task_id"]
        out = self.good("ledger", "refund", task)
        self.assertIn(f"refunded 1.50 for {task} to anna; the balance is "
                      "now 10.00", out)
        out = self.good("ledger", "refund", "anna", "0.000001")
        self.assertIn("paid back 0.000001 from the balance of anna; the "
                      "balance is now 9.999999", out)
        self.assertIn("creator:zoe", self.bad(REFUSED, "ledger", "payout",
                                              "zoe", "1"))
        out = self.good("ledger", "accounts")
        self.assertRegex(out, r"user:anna +9\.999999")
        self.assertIn("The ledger is consistent.", self.good("ledger", "check"))

    def test_csv_is_the_servers_own_however_many_pages(self):
        for i in range(60):
            topup(self.box, "anna", i + 1, note=f"=n{i}")
        r = self.box.call("GET", "/api/ledger/statement?user=anna&format=csv")
        status, out, err = self.end(self.start(
            "ledger", "statement", "anna", "--csv"))
        self.assertEqual((status, err), (OK, ""))
        self.assertEqual(out.encode(), r.body)
        self.bad(USAGE, "ledger", "statement", "--csv", "--json")

    def test_amounts_that_are_none(self):
        for amount, words in (
                ("0", "more than zero"), ("-1", "more than zero"),
                ("1e3", "like 1.50"), ("NaN", "like 1.50"),
                ("1.0000001", "at most six decimal"), ("1,5", "like 1.50"),
                ("1000000000001", "at most"), ("", "like 1.50"),
                ("9" * 40, "at most"), (".5", "like 1.50")):
            self.assertIn(words, self.bad(USAGE, "ledger", "topup", "anna",
                                          "--", amount))
        self.assertIn('"-5" is not a valid amount: it must be more than zero',
                      self.bad(USAGE, "ledger", "topup", "anna", "-5"))
        for args, words in (
                (["topup"], "USER AMOUNT"), (["topup", "anna"], "USER AMOUNT"),
                (["topup", "a", "1", "2"], "unexpected argument"),
                (["refund"], "refund TASK"),
                (["refund", "anna"], "refund TASK"),
                (["refund", "anna", "1", "--task", "x"], "either a task"),
                (["refund", "anna", "1", "--amount", "1"], "needs --task ID"),
                (["refund", "anna", "1", "--turn", "1"], "--task ID"),
                (["topup", "a", "1", "--task", "x"], "refund"),
                (["statement", "--since", "x"], "span like"),
                (["check", "--data", "x"], "--offline"),
                (["toppup", "a", "1"], "topup")):
            self.assertIn(words, self.bad(USAGE, "ledger", *args))

    def test_the_books_are_checked_without_a_server(self):
        topup(self.box, "anna", PRICE)
        self.box.send("hi", to="priced", token=self.anna)
        shown = json.loads(self.good("ledger", "check", "--json"))
        self.assertEqual((shown["is_right"], shown["reservations"]),
                         (True, 0))
        self.assertIn("Stop it first", self.bad(
            REFUSED, "ledger", "check", "--offline", "--data", self.box.data))
        self.box.process.terminate()
        self.box.process.wait()
        offline = json.loads(self.good("ledger", "check", "--offline",
                                       "--data", self.box.data, "--json"))
        self.assertEqual(offline, shown)

    def test_wrong_books_are_found_and_told(self):
        topup(self.box, "anna", PRICE)
        self.box.process.terminate()
        self.box.process.wait()
        there = ["--offline", "--data", self.box.data]
        self.good("ledger", "check", *there)
        with contextlib.closing(sqlite3.connect(
                os.path.join(self.box.data, "signalbox.db"))) as db:
            db.execute("UPDATE account SET balance = balance + 1 "
                       "WHERE name = 'user:anna'")
            db.commit()
        status, out, err = self.run_it("ledger", "check", *there)
        self.assertEqual((status, err), (FAILED, ""))
        self.assertIn("The ledger is inconsistent: ", out)
        self.assertIn("user:anna", out)
        status, out, err = self.run_it("ledger", "check", "--json", *there)
        self.assertEqual((status, err), (FAILED, ""))
        shown = json.loads(out)
        self.assertFalse(shown["is_right"])
        self.assertGreater(shown["problems_total"], 0)
        with Server(data=self.box.data, token=self.box.token) as server:
            r = server.call("GET", "/api/ledger/check")
            self.assertEqual((r.status, r.json()["is_right"]), (200, False))
            self.assertIn("ledger.not_right", server.said())

    def test_a_statement_on_a_terminal_hides_what_steers_one(self):
        topup(self.box, "anna", PRICE, note="\u202emoc.live\u202c 日本 \U0001f989")
        out = self.on_terminal("ledger", "statement", "anna")
        self.assertNotIn("\u202e", str(out))
        self.assertIn("日本", str(out))

    def test_the_price_is_shown_where_one_looks(self):
        self.assertIn("1.5", self.good("agents", "show", "priced"))
        self.assertRegex(self.good("route", "hi", "--to", "priced"),
                         r"price +1\.5\n")
        topup(self.box, "admin", PRICE)
        task = json.loads(self.good("send", "hi", "--to", "priced",
                                    "--json"))["task_id"]
        self.assertRegex(self.good("tasks", task), r"price +1\.5\n")


if __name__ == "__main__":
    unittest.main()
