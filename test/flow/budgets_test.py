"""Budgets of users, orgs and agents, by the calls and the commands: who may set
and see them, what they refuse, that many at once cannot pass one, that they
outlive a kill, and that they warn once."""
import json
import os
import shutil
import tempfile
import threading
import unittest

from cards import error_code, register
from client import NOT_ALLOWED, OK, REFUSED, USAGE, Client
from hub_peer import Hub
from signalbox import Server, eventually

PRICE = 100_000
MAX = 10 ** 18


def put(server, token=None, **body):
    return server.call("PUT", "/api/budgets", body,
                       token=token or server.token)


def remove(server, query, token=None):
    return server.call("DELETE", "/api/budgets?" + query,
                       token=token or server.token)


def budgets(server, token=None, query=""):
    r = server.call("GET", "/api/budgets" + query,
                    token=token or server.token)
    if r.status != 200:
        raise AssertionError(r)
    return r.json()


def brief(found):
    return [(b["kind"], b["name"], b["period"], b["limit_micros"],
             b["used_micros"]) for b in found["items"]]


def words(r):
    return r.json()["error"]["message"]


def warnings(server, token=None):
    r = server.call("GET", "/api/feed?last=500", token=token or server.token)
    return [e["data"] for e in r.json()["items"]
            if e["type"] == "budget.warning"]


def stage(server):
    """Two users of acme, one of no one's, and an agent with a price."""
    tokens = {}
    for name, org in (("anna", "acme"), ("amir", "acme"), ("bob", "")):
        tokens[name] = server.user(name, **({"org": org} if org else {}))
        r = server.call("POST", "/api/ledger/topup",
                        {"user": name, "amount_micros": 100 * PRICE})
        if r.status != 201:
            raise AssertionError(r)
    register(server, "priced", visibility="public",
             pricing={"amount_micros": PRICE})
    return tokens["anna"], tokens["amir"], tokens["bob"]


class Budgets(unittest.TestCase):
    def refused(self, r, status, code, text=""):
        self.assertEqual(error_code(r), (status, code), r)
        self.assertIn(text, words(r))

    def test_who_sets_and_sees_which(self):
        with Server() as server:
            anna, amir, bob = stage(server)
            r = put(server, user="ANNA", period="day", limit_micros=5)
            self.assertEqual(r.status, 200)
            made = r.json()
            self.assertEqual((made["kind"], made["name"], made["by"],
                              made["left_micros"], made["is_warned"]),
                             ("user", "anna", "admin", 5, False))
            self.assertEqual(made["resets_ms"] % 86_400_000, 0)
            for body in ({"org": "acme"}, {"agent": "priced"}):
                self.assertEqual(put(server, period="month", limit_micros=7,
                                     **body).status, 200)
            # One's own, and no more than an admin allows.
            self.refused(put(server, anna, period="day", limit_micros=6), 403,
                         "not_allowed", "an admin has set")
            r = put(server, anna, period="day", limit_micros=4)
            self.assertEqual(r.json()["kind"], "self")
            self.assertEqual(put(server, bob, user="bob", period="month",
                                 limit_micros=MAX).status, 200)
            for body in ({"user": "bob"}, {"org": "acme"},
                         {"agent": "priced"}):
                self.refused(put(server, anna, period="day", limit_micros=1,
                                 **body), 403, "not_allowed", "scope ledger")
            self.assertEqual(brief(budgets(server, anna)), [
                ("org", "acme", "month", 7, 0), ("self", "anna", "day", 4, 0),
                ("user", "anna", "day", 5, 0)])
            self.assertEqual(brief(budgets(server, amir)),
                             [("org", "acme", "month", 7, 0)])
            self.assertEqual(brief(budgets(server, bob)),
                             [("self", "bob", "month", MAX, 0)])
            found, cursor = [], ""
            while cursor is not None:
                page = budgets(server, query="?limit=2" + cursor)
                found += brief(page)
                cursor = page["next_cursor"] and \
                    "&cursor=" + page["next_cursor"]
            self.assertEqual([b[:3] for b in found], [
                ("agent", "priced", "month"), ("org", "acme", "month"),
                ("self", "anna", "day"), ("self", "bob", "month"),
                ("user", "anna", "day")])
            self.refused(remove(server, "user=anna&period=day", bob), 403,
                         "not_allowed")
            self.assertEqual(remove(server, "period=day", anna).status, 204)
            self.refused(remove(server, "period=day", anna), 404, "not_found")
            self.assertEqual(remove(server, "org=acme&period=month").status,
                             204)
            self.assertEqual(brief(budgets(server, anna)),
                             [("user", "anna", "day", 5, 0)])
            told = [e["type"] for e in server.call(
                "GET", "/api/feed?last=500", token=anna).json()["items"]]
            self.assertEqual([t for t in told if t.startswith("budget.")],
                             ["budget.set", "budget.set", "budget.removed"])

    def test_what_is_wrong_is_named(self):
        with Server() as server:
            good = {"org": "acme", "period": "day", "limit_micros": 1}
            for more, text in (
                    ({"period": "week"}, "period must be"),
                    ({"period": None}, "period must be"),
                    ({"limit_micros": -1}, "limit_micros must be"),
                    ({"limit_micros": MAX + 1}, "limit_micros must be"),
                    ({"limit_micros": 1.5}, "limit_micros must be"),
                    ({"limit_micros": None}, "limit_micros is missing"),
                    ({"agent": "x"}, "one of them"),
                    ({"org": "x" * 129}, "org must be"),
                    ({"limt": 1}, "limt")):
                self.refused(put(server, **{**good, **more}), 400,
                             "bad_request", text)
            for query in ("", "period=x", "org=a&agent=b&period=day",
                          "period=day&org=" + "x" * 200,
                          "period=day&kind=x", "period=day&kind=self&org=a",
                          "period=day&kind=user&agent=a"):
                self.refused(remove(server, query), 400, "bad_request")

    def test_whose_it_is_must_be_there(self):
        with Server() as server:
            stage(server)
            server.user("annabel", org="acne")
            register(server, "price-list", visibility="private")
            for body, code, text, nearest in (
                    ({"user": "annna"}, "not_found",
                     'no user "annna"; did you mean "anna"?', ["anna"]),
                    ({"user": "q" * 60}, "not_found", "nor one with a name",
                     []),
                    ({"org": "acmee"}, "not_found",
                     'no org "acmee"; did you mean "acme" or "acne"?',
                     ["acme", "acne"]),
                    ({"org": "ACME"}, "not_found", 'did you mean "acme"',
                     ["acme", "acne"]),
                    ({"org": "globex"}, "not_found", 'no org "globex"', []),
                    ({"agent": "pricd"}, "agent_not_found",
                     'no agent "pricd"; did you mean "priced"?', ["priced"])):
                r = put(server, period="day", limit_micros=1, **body)
                self.refused(r, 404, code, text)
                self.assertEqual(r.json()["error"]["details"]["nearest"],
                                 nearest)
            self.assertEqual(budgets(server)["items"], [])
            # An org that agents alone have; names as they are written.
            zoe = server.user("zoe", org="globex")
            register(server, "zoes", token=zoe, visibility="shared")
            self.assertEqual(server.call("DELETE", "/api/users/zoe").status,
                             204)
            for body, name in (({"org": "globex"}, "globex"),
                               ({"agent": "PRICED"}, "priced"),
                               ({"user": "Anna"}, "anna")):
                r = put(server, period="day", limit_micros=1, **body)
                self.assertEqual((r.status, r.json()["name"]), (200, name))
            # What goes away later leaves its budget, to be removed.
            self.assertEqual(server.call("DELETE", "/api/agents/priced")
                             .status, 204)
            self.assertEqual(len(budgets(server)["items"]), 3)
            self.assertEqual(remove(server, "agent=priced&period=day").status,
                             204)

    def test_an_admin_removes_what_a_user_set_for_themselves(self):
        with Server() as server:
            anna, amir, _ = stage(server)
            self.assertEqual(put(server, anna, period="day",
                                 limit_micros=0).status, 200)
            self.refused(server.send("x", to="priced", token=anna), 402,
                         "budget_exceeded", "anna set for themselves")
            query = "user=anna&period=day"
            self.refused(remove(server, query), 404, "not_found",
                         "kind=self")
            for whose in ("&kind=self", "&kind=user"):
                self.refused(remove(server, query + whose, amir), 403,
                             "not_allowed", "scope ledger")
            self.assertEqual(remove(server, query + "&kind=self").status, 204)
            self.assertEqual(budgets(server)["items"], [])
            for token in (server.token, anna):
                told = [e for e in server.call(
                    "GET", "/api/feed?last=500", token=token).json()["items"]
                    if e["type"] == "budget.removed"]
                self.assertEqual([(e["data"]["kind"], e["data"]["name"],
                                   e["data"]["by"]) for e in told],
                                 [("self", "anna", "admin")])
            self.assertEqual(server.send("x", to="priced",
                                         token=anna).status, 200)
            # One's own needs no kind, and may have it.
            put(server, anna, period="day", limit_micros=PRICE)
            self.assertEqual(remove(server, "period=day&kind=self",
                                    anna).status, 204)

    def test_the_balance_has_those_that_apply(self):
        with Server() as server:
            anna, amir, bob = stage(server)
            put(server, user="anna", period="month", limit_micros=9 * PRICE)
            put(server, org="acme", period="day", limit_micros=4 * PRICE)
            put(server, agent="priced", period="day", limit_micros=99 * PRICE)
            put(server, anna, period="day", limit_micros=PRICE // 2)
            put(server, amir, period="day", limit_micros=5 * PRICE)
            server.send("x", to="priced", token=amir)

            def applies(token, query=""):
                r = server.call("GET", "/api/ledger/balance" + query,
                                token=token)
                return r.json()["budgets"]["items"]

            annas = [("org", "acme", "day", 4 * PRICE, PRICE, 3 * PRICE),
                     ("self", "anna", "day", PRICE // 2, 0, PRICE // 2),
                     ("user", "anna", "month", 9 * PRICE, 0, 9 * PRICE)]
            for items in (applies(anna),
                          applies(server.token, "?user=anna")):
                self.assertEqual([
                    (b["kind"], b["name"], b["period"], b["limit_micros"],
                     b["used_micros"], b["left_micros"]) for b in items],
                    annas)
            self.assertEqual(applies(anna), budgets(server, anna)["items"])
            self.assertEqual(brief({"items": applies(amir)}), [
                ("org", "acme", "day", 4 * PRICE, PRICE),
                ("self", "amir", "day", 5 * PRICE, PRICE)])
            self.assertEqual((applies(bob), applies(server.token)), ([], []))

    def test_users_orgs_and_agents_are_refused_beyond_it(self):
        with Server() as server:
            anna, amir, bob = stage(server)
            send = lambda token: server.send("x", to="priced", token=token)
            put(server, org="acme", period="month", limit_micros=3 * PRICE)
            for token in (anna, amir, anna):
                self.assertEqual(send(token).status, 200)
            self.refused(send(amir), 402, "budget_exceeded",
                         "month's budget of the org acme, which is 0.30, "
                         "0.30 is used; it resets at 20")
            self.assertEqual(send(bob).status, 200)
            # What was spent before it was set counts.
            put(server, agent="Priced", period="day", limit_micros=4 * PRICE)
            r = send(bob)
            self.refused(r, 402, "budget_exceeded",
                         "day's budget of the agent priced too little is left")
            self.assertNotIn("is used", words(r))
            self.assertEqual(remove(server, "agent=priced&period=day").status,
                             204)
            self.assertEqual(send(bob).status, 200)
            put(server, bob, period="day", limit_micros=0)
            self.refused(send(bob), 402, "budget_exceeded",
                         "that bob set for themselves")
            check = server.call("GET", "/api/ledger/check").json()
            self.assertEqual((check["is_right"], check["problems"]),
                             (True, []))

    def test_many_at_once_and_a_kill_do_not_pass_it(self):
        data = tempfile.mkdtemp(prefix="signalbox-budgets-")
        self.addCleanup(shutil.rmtree, data)
        with Server(data=data) as server:
            anna, amir, _ = stage(server)
            put(server, org="acme", period="day", limit_micros=5 * PRICE)
            answers = []

            def ask(token):
                answers.append(server.send("x", to="priced",
                                           token=token).status)

            threads = [threading.Thread(target=ask, args=(token,))
                       for token in (anna, amir) * 6]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            self.assertEqual(sorted(answers), 5 * [200] + 7 * [402])
            server.kill9()
        with Server(data=data, token=server.token) as server:
            self.assertEqual(brief(budgets(server, anna)), [
                ("org", "acme", "day", 5 * PRICE, 5 * PRICE)])
            self.refused(server.send("x", to="priced", token=anna), 402,
                         "budget_exceeded", "0.50 is used")

    def test_it_warns_once_in_the_feed_the_alerts_and_the_answers(self):
        folder = tempfile.mkdtemp(prefix="signalbox-budgets-")
        self.addCleanup(shutil.rmtree, folder)
        data, rules = (os.path.join(folder, name)
                       for name in ("data", "routing_rules.json"))
        with open(rules, "w", encoding="utf-8") as file:
            json.dump({"agents": {}, "channels": {"#kept": {
                "takes": ["alerts"], "file": {"path": "alerts.jsonl"}}}}, file)

        def alerts():
            try:
                with open(os.path.join(data, "alerts.jsonl"),
                          encoding="utf-8") as file:
                    return [json.loads(line) for line in file]
            except FileNotFoundError:
                return []

        config = {"rules": rules}
        with Server(data=data, config=config) as server:
            anna, amir, _ = stage(server)
            put(server, user="anna", period="day", limit_micros=5 * PRICE)
            for _ in range(3):
                r = server.send("x", to="priced", token=anna)
                self.assertNotIn("budget_warnings", r.json())
            server.send("x", to="priced", token=anna)
            eventually(lambda: len(warnings(server)) == 1, "warnings")
            told = warnings(server, anna)[0]
            self.assertEqual((told["kind"], told["name"],
                              told["used_micros"], told["limit_micros"]),
                             ("user", "anna", 4 * PRICE, 5 * PRICE))
            self.assertEqual(warnings(server, amir), [])
            eventually(lambda: len(alerts()) == 1, "alerts")
            self.assertEqual((alerts()[0]["type"], alerts()[0]["data"]),
                             ("budget.warning", told))
            r = server.send("x", to="priced", token=anna)
            self.assertEqual([w["name"] for w in r.json()["budget_warnings"]],
                             ["anna"])
            self.assertNotIn("budget_warnings", server.send(
                "x", to="priced", token=amir).json())
            with Hub(server, anna) as hub:
                put(server, user="anna", period="month",
                    limit_micros=7 * PRICE)
                put(server, user="anna", period="day", limit_micros=9 * PRICE)
                hub.call("message.send", text="x",
                         executor={"name": "priced"})
                eventually(lambda: len(warnings(server)) == 2, "warnings")
                told = hub.call("message.send", text="x",
                                executor={"name": "priced"})
                self.assertEqual([w["period"] for w in
                                  told["budget_warnings"]], ["month"])
            server.kill9()
        with Server(data=data, config=config, token=server.token) as server:
            self.assertEqual([b["is_warned"] for b in
                              budgets(server, anna)["items"]], [False, True])
            put(server, agent="priced", period="month",
                limit_micros=9 * PRICE)
            server.send("x", to="priced", token=amir)
            eventually(lambda: len(warnings(server)) == 3, "warnings")
            # What an agent has cost is others' money.
            self.assertEqual(warnings(server, amir), [])


class Commands(Client):
    def test_budgets_from_the_command_line(self):
        box = self.server()
        anna = box.user("anna")
        self.use(box)
        self.assertIn("No budgets", self.good("budgets"))
        out = self.good("budgets", "set", "day", "25", "--user", "anna")
        self.assertIn("user anna: 25.00 a day; 0.00 used; resets ", out)
        self.good("budgets", "set", "month", "0", "--agent", "Echo")
        err = self.bad(REFUSED, "budgets", "set", "day", "1", "--agent",
                       "ecko")
        self.assertIn('did you mean "echo"', err)
        out = self.good("budgets")
        self.assertRegex(out, r"user anna +day +25\.00 +0\.00 +0% +25\.00 ")
        self.assertRegex(out, r"agent echo +month +0\.00 +0\.00 +100% ")
        self.use(box, anna)
        self.assertIn("user anna, own: 3.50 a month",
                      self.good("budgets", "set", "month", "3.5"))
        self.assertEqual(len(json.loads("[" + ",".join(self.good(
            "budgets", "--json").splitlines()) + "]")), 2)
        self.bad(NOT_ALLOWED, "budgets", "set", "day", "26")
        self.bad(NOT_ALLOWED, "budgets", "set", "day", "1", "--org", "acme")
        self.assertIn("removed", self.good("budgets", "remove", "month"))
        self.bad(REFUSED, "budgets", "remove", "month")
        self.good("budgets", "set", "day", "0.5")
        out = self.good("ledger", "balance")
        self.assertRegex(out, r"left +0\.50 +of 0\.50 a day, own\n")
        self.assertRegex(out, r"left +25\.00 +of 25\.00 a day\n")
        self.assertNotIn("month", out)
        self.bad(NOT_ALLOWED, "budgets", "remove", "day", "--user", "bob",
                 "--own")
        self.use(box)
        self.assertIn("removed", self.good("budgets", "remove", "day",
                                           "--user", "anna", "--own"))
        self.assertNotIn("themselves", self.good("budgets"))
        for args in (["set", "week", "1"], ["set", "day"], ["set", "day", "x"],
                     ["set", "day", "1", "--user", "a", "--org", "b"],
                     ["remove", "day", "--org", "b", "--own"],
                     ["remove"]):
            self.bad(USAGE, "budgets", *args)


if __name__ == "__main__":
    unittest.main()
