"""No one pays more than they were shown: what a message and all that comes of it
may cost, prices that change after they were shown, and agents of strangers that
cost something."""
import contextlib
import json
import os
import tempfile
import unittest

from cards import error_code, register
from client import REFUSED, USAGE, Client
from hiring import done, given
from hub_peer import Hub, Refused
from planted import fails_with, needs_planted
from signalbox import Server

UNIT = 1_000_000
FUNDS = 25 * UNIT
ALLOWANCE = 100_000
WORDS = "translate this contract from German into English"


def priced(amount):
    return {"pricing": {"amount_micros": amount}}


class Town(contextlib.ExitStack):
    """A server; anna of acme, who has money; bert of acme; mallory, a stranger
    to both."""

    def __init__(self, data=None, **config):
        super().__init__()
        self.server = self.enter_context(Server(config=config, data=data))
        self.tokens = {}
        for name, org in (("anna", "acme"), ("bert", "acme"),
                          ("mallory", None)):
            self.tokens[name] = self.server.user(name, org=org) if org \
                else self.server.user(name)
        self.call("POST", "/api/ledger/topup", None,
                  {"user": "anna", "amount_micros": FUNDS})

    def call(self, method, path, who, body=None):
        return self.server.call(method, path, body, token=self.tokens[who]
                                if who else self.server.token)

    def register(self, who, name, **card):
        register(self.server, name, token=self.tokens[who], **card)

    def change(self, who, name, **card):
        r = self.call("PATCH", f"/api/agents/{name}", who, card)
        if r.status != 200:
            raise AssertionError(r)

    def hub(self, who, name, **card):
        hub = self.enter_context(Hub(self.server, self.tokens[who]))
        hub.register(name, **card)
        return hub

    def route(self, text=WORDS, who="anna", **body):
        return self.call("POST", "/api/route", who, {"text": text, **body})

    def send(self, text=WORDS, who="anna", **body):
        return self.call("POST", "/api/messages", who, {"text": text, **body})

    def paid(self):
        r = self.call("GET", "/api/ledger/balance", "anna").json()
        return FUNDS - r["balance_micros"]

    def n_tasks(self):
        return len(self.call("GET", "/api/tasks", None).json()["items"])


class Case(unittest.TestCase):
    def town(self, **config):
        return self.enterContext(Town(**config))

    def refused(self, r, **details):
        self.assertEqual(error_code(r), (402, "cost_ceiling"), r)
        said = r.json()["error"]["details"]
        self.assertEqual({k: said[k] for k in details}, details)
        return r.json()["error"]["message"]


class Trees(Case):
    def drained(self):
        """A free public agent and its creator's private priced one."""
        town = self.town(delegation={"maxConcurrent": 64})
        helper = town.hub("mallory", "helper", visibility="public")
        town.hub("mallory", "vault", visibility="private", **priced(40_000))
        shown = town.route("help me", executor={"name": "helper"}).json()
        self.assertEqual((shown["price_micros"], shown["ceiling_micros"]),
                         (0, ALLOWANCE))
        r = town.send("help me", executor={"name": "helper"}, wait_ms=0)
        self.assertEqual(r.json()["decision"]["ceiling_micros"], ALLOWANCE)
        task = given(helper)
        said = [self.take(helper, task) for _ in range(6)]
        self.assertEqual(town.paid(), 80_000)
        self.assertEqual([s.get("code") for s in said],
                         [None] * 2 + ["cost_ceiling"] * 4)
        self.assertEqual(said[2]["details"]["needed_micros"], 120_000)
        done(helper, task, text="thanks")

    def test_a_private_agent_of_the_same_creator_cannot_drain_a_stranger(self):
        self.drained()

    @needs_planted
    def test_control_a_server_that_looks_at_no_ceiling(self):
        self.assertIn("240000 != 80000", fails_with(
            self, "ledger.no_ceiling", self.drained))

    def test_the_ceiling_outlives_a_kill(self):
        data = self.enterContext(tempfile.TemporaryDirectory())
        with Town(data=data) as town:
            helper = town.hub("mallory", "helper", visibility="public")
            town.register("mallory", "vault", url="echo:3600000",
                          visibility="private", **priced(60_000))
            town.send("help me", executor={"name": "helper"}, wait_ms=0)
            self.take(helper, given(helper))
            tokens, admin = town.tokens, town.server.token
            town.server.kill9()
        with Server(data=data, token=admin) as server, \
                Hub(server, tokens["mallory"]) as helper:
            helper.register("helper", visibility="public")
            said = self.take(helper, given(helper))
            self.assertEqual(said["code"], "cost_ceiling")
            left = server.call("GET", "/api/ledger/balance",
                               token=tokens["anna"]).json()
            self.assertEqual(left["balance_micros"], FUNDS - 60_000)

    def take(self, helper, task, **params):
        return helper.call("agent.delegate", agentId="vault", task="take",
                           mode="async", parent_task_id=task["task_id"],
                           **params)

    def test_what_the_sender_allows(self):
        town = self.town()
        helper = town.hub("mallory", "helper", visibility="public")
        town.hub("mallory", "vault", visibility="private", **priced(UNIT))
        r = town.send("help me", executor={"name": "helper"}, wait_ms=0,
                      max_cost_micros=UNIT)
        self.assertEqual(r.json()["decision"]["ceiling_micros"], UNIT)
        task = given(helper)
        self.assertEqual(self.take(helper, task)["status"], "accepted")
        self.assertEqual(self.take(helper, task)["code"], "cost_ceiling")
        # Of its own delegation an agent may say what it may cost.
        said = self.take(helper, task, max_cost_micros=5)
        self.assertEqual(said["details"]["needed_micros"], UNIT)

    def test_a_price_above_it_is_refused_and_leaves_nothing(self):
        town = self.town()
        town.register("mallory", "dear", visibility="public", **priced(UNIT))
        r = town.send(executor={"name": "dear"}, max_cost_micros=UNIT - 1)
        self.refused(r, agent="dear", price_micros=UNIT,
                     ceiling_micros=UNIT - 1, needed_micros=UNIT)
        self.assertEqual((town.paid(), town.n_tasks()), (0, 0))
        shown = town.route(executor={"name": "dear"}, max_cost_micros=5).json()
        self.assertEqual(shown["ceiling_micros"], 5)
        self.assertIn("would be rejected: dear costs 1.00", shown["note"])
        r = town.send(executor={"name": "dear"}, max_cost_micros=UNIT)
        self.assertEqual((r.status, town.paid()), (200, UNIT))

    def test_nothing_still_buys_what_is_free(self):
        town = self.town()
        town.register("mallory", "kind", visibility="public")
        r = town.send("hi", who="bert", executor={"name": "kind"},
                      max_cost_micros=0)
        self.assertEqual((r.status, r.json()["decision"]["ceiling_micros"]),
                         (200, 0))
        for bad in (-1, 1.5, "5", 10 ** 18 + 1):
            r = town.send("hi", executor={"name": "kind"}, max_cost_micros=bad)
            self.assertEqual(error_code(r), (400, "bad_request"))

    def test_decisions_keep_both(self):
        town = self.town()
        town.register("mallory", "dear", visibility="public", **priced(7))
        made = town.send(executor={"name": "dear"}).json()["decision"]
        self.assertEqual((made["price_micros"], made["ceiling_micros"]),
                         (7, 7 + ALLOWANCE))
        kept = town.call("GET", f"/api/decisions/{made['id']}", "anna").json()
        self.assertEqual((kept["price_micros"], kept["ceiling_micros"]),
                         (7, 7 + ALLOWANCE))
        with Hub(town.server, town.tokens["anna"]) as hub:
            said = hub.call("message.send", text="hi",
                            executor={"name": "dear"}, max_cost_micros=9)
            self.assertEqual(said["decision"]["ceiling_micros"], 9)
            with self.assertRaises(Refused) as caught:
                hub.call("message.send", text="hi", max_cost_micros=6,
                         executor={"name": "dear"})
            self.assertEqual(caught.exception.error["data"]["needed_micros"], 7)


class Quotes(Case):
    def raised(self, how):
        """What mallory's agent is sent for, that costs 20 by then."""
        town = self.town()
        town.register("mallory", "dear", visibility="public", **priced(7))
        quote = town.route(executor={"name": "dear"}).json()
        self.assertEqual(quote["price_micros"], 7)
        town.change("mallory", "dear", **priced(20 * UNIT))
        return town, town.send(**how(quote))

    def a_quote_holds(self):
        town, r = self.raised(lambda q: {"quote": q["quote"]})
        self.assertEqual((r.status, r.json()["price_micros"]), (200, 7))
        self.assertEqual(r.json()["agent"], "dear")
        self.assertEqual(r.json()["decision"]["ceiling_micros"], 7 + ALLOWANCE)
        self.assertEqual(town.paid(), 7)

    def test_a_price_that_was_raised_is_not_charged_to_a_quote(self):
        self.a_quote_holds()

    @needs_planted
    def test_control_a_server_that_forgets_what_it_promised(self):
        self.assertIn("(200, 20000000) != (200, 7)", fails_with(
            self, "ledger.no_quotes", self.a_quote_holds))

    def test_nor_where_the_sender_says_what_it_may_cost(self):
        town, r = self.raised(lambda q: {"executor": {"name": "dear"},
                                         "max_cost_micros":
                                             q["ceiling_micros"]})
        self.refused(r, needed_micros=20 * UNIT)
        self.assertEqual(town.paid(), 0)

    def test_a_price_that_fell_is_what_is_paid(self):
        town = self.town()
        town.register("mallory", "dear", visibility="public", **priced(70))
        quote = town.route(executor={"name": "dear"}).json()["quote"]
        town.change("mallory", "dear", **priced(3))
        self.assertEqual(town.send(quote=quote).json()["price_micros"], 3)

    def test_a_quote_is_one_user_s_and_one_agent_s(self):
        town = self.town()
        town.register("mallory", "dear", visibility="public", **priced(7))
        town.register("mallory", "other", visibility="public", **priced(7))
        quote = town.route(executor={"name": "dear"}).json()["quote"]
        for who, body, want in (
                ("bert", {"quote": quote}, (409, "quote_expired")),
                ("anna", {"quote": "dec_00000000000000000000000000"},
                 (409, "quote_expired")),
                ("anna", {"quote": "x"}, (400, "bad_request")),
                ("anna", {"quote": quote, "executor": {"name": "other"}},
                 (400, "bad_request")),
                ("anna", {"quote": quote,
                          "task_id": "task_00000000000000000000000000"},
                 (400, "bad_request"))):
            self.assertEqual(error_code(town.send(who=who, **body)), want)
        self.assertEqual((town.paid(), town.n_tasks()), (0, 0))
        # A name that is another's by now.
        town.call("DELETE", "/api/agents/dear", "mallory")
        town.register("bert", "dear", visibility="public", **priced(9 * UNIT))
        self.assertEqual(error_code(town.send(quote=quote)),
                         (409, "quote_expired"))

    def test_so_many_of_each_user_are_kept(self):
        town = self.town()
        town.register("mallory", "dear", visibility="public", **priced(7))
        route = lambda: town.route(executor={"name": "dear"}).json()["quote"]
        quotes = [route() for _ in range(33)]
        self.assertEqual(error_code(town.send(quote=quotes[0])),
                         (409, "quote_expired"))
        self.assertEqual(town.send(quote=quotes[1]).status, 200)

    def test_a_repeat_is_answered_after_its_quote(self):
        town = self.town()
        town.register("mallory", "dear", visibility="public", **priced(7))
        quote = town.route(executor={"name": "dear"}).json()["quote"]
        body = {"quote": quote, "idempotency_key": "k"}
        first = town.send(**body).json()
        for _ in range(32):
            town.route(executor={"name": "dear"})
        again = town.send(**body)
        self.assertEqual((again.status, again.json()["task_id"]),
                         (200, first["task_id"]))
        self.assertEqual(town.paid(), 7)


class Consent(Case):
    CARD = {"description": "Translates contracts and letters from German into "
                           "English, and back"}

    def strangers_agent(self):
        town = self.town()
        town.register("mallory", "polyglot", visibility="public", **self.CARD,
                      **priced(20 * UNIT))
        return town

    def goes_to_the_orgs_own(self):
        town = self.strangers_agent()
        town.register("bert", "lingua", visibility="shared",
                      description="Translates letters and other texts")
        r = town.send()
        self.assertEqual((r.status, r.json().get("agent"), town.paid()),
                         (200, "lingua", 0), r)
        kept = town.call("GET", f"/api/decisions/{r.json()['decision']['id']}",
                         "anna").json()
        last = kept["candidates"][-1]
        self.assertEqual((last["agent"], last["price_micros"],
                          last["unpaid"]), ("polyglot", 20 * UNIT, True))
        return town

    def test_the_org_s_own_free_agent_comes_first(self):
        self.goes_to_the_orgs_own()

    @needs_planted
    def test_control_a_server_that_asks_nobody(self):
        self.assertIn("'polyglot', 20000000) != (200, 'lingua', 0)",
                      fails_with(self, "ledger.no_consent",
                                 self.goes_to_the_orgs_own))

    def test_where_only_a_strangers_fits_it_is_the_senders_to_agree(self):
        town = self.strangers_agent()
        town.register("bert", "cook", visibility="shared",
                      description="Cooks soup, bakes bread and sets the table")
        for ask in (town.route, town.send):
            words = self.refused(ask(), agent="polyglot",
                                 price_micros=20 * UNIT, ceiling_micros=0,
                                 needed_micros=20 * UNIT)
            self.assertIn('"polyglot", is another user\'s and costs 20.00: '
                          "name it as executor.name, or give max_cost_micros "
                          "of 20000000 or more", words)
            self.refused(ask(max_cost_micros=5), agent="polyglot",
                         ceiling_micros=5, needed_micros=20 * UNIT)
        self.assertEqual((town.paid(), town.n_tasks()), (0, 0))
        r = town.send(max_cost_micros=20 * UNIT)
        self.assertEqual((r.status, r.json()["agent"], town.paid()),
                         (200, "polyglot", 20 * UNIT))

    def test_many_dear_cards_do_not_block_a_topic(self):
        town = self.town()
        for i in range(40):
            town.register("mallory", f"polyglot-{i}", visibility="public",
                          **self.CARD, **priced(20 * UNIT))
        town.register("bert", "lingua", visibility="shared", **self.CARD)
        self.assertEqual(town.send().json()["agent"], "lingua")

    def test_the_default_agent_has_what_nobody_agreed_to_pay(self):
        town = self.enterContext(Town(agents={
            "default": "main", "list": [{
                "id": "main", "url": "echo:",
                "description": "Everything else that no one does"}]}))
        town.register("mallory", "polyglot", visibility="public", **self.CARD,
                      **priced(20 * UNIT))
        made = town.send().json()["decision"]
        self.assertEqual((made["agent"], made["layer"], made["by_price"]),
                         ("main", "default", True))
        self.assertIn('"polyglot" fits better but costs 20.00',
                      made["reason"])

    def test_a_conversation_goes_on_at_its_price(self):
        town = self.town()
        town.register("mallory", "dear", visibility="public", **priced(7))
        talk = {"conversation_id": "c"}
        first = town.send("hi", executor={"name": "dear"}, **talk).json()
        self.assertEqual(town.send("more", **talk).json()["agent"], "dear")
        self.assertEqual(town.paid(), 14)
        town.change("mallory", "dear", **priced(20 * UNIT))
        for body in (talk, {"task_id": first["task_id"]}):
            words = self.refused(town.send("more", **body), agent="dear",
                                 price_micros=20 * UNIT, ceiling_micros=7,
                                 needed_micros=20 * UNIT)
            self.assertIn("dear costs 20.00 now, and 0.000007 before", words)
        self.assertEqual(town.paid(), 14)
        r = town.send("more", max_cost_micros=20 * UNIT, **talk)
        self.assertEqual((r.status, town.paid()), (200, 14 + 20 * UNIT))

    def test_one_s_own_needs_no_consent(self):
        town = self.town()
        town.register("bert", "polyglot", visibility="shared", **self.CARD,
                      **priced(UNIT))
        self.assertEqual(town.send().json()["agent"], "polyglot")
        self.assertEqual(town.paid(), UNIT)


class Envelopes(Case):
    """max_cost_micros of an envelope is what it is of a message."""
    def letter(self, **more):
        return {"to": "dear", "type": "REQUEST", **more}

    def test_an_envelope_says_what_it_may_cost(self):
        town = self.town()
        town.register("mallory", "dear", visibility="public", **priced(UNIT))
        post = lambda **more: town.call("POST", "/api/envelopes", "anna",
                                        self.letter(**more))
        words = self.refused(post(max_cost_micros=UNIT - 1), agent="dear",
                             price_micros=UNIT, ceiling_micros=UNIT - 1,
                             needed_micros=UNIT)
        self.assertIn("dear costs 1.00", words)
        self.assertEqual((town.paid(), town.n_tasks()), (0, 0))
        for bad in (-1, 10 ** 18 + 1, 1.5, "5", True):
            r = post(max_cost_micros=bad)
            self.assertEqual(error_code(r), (400, "bad_request"), r)
            self.assertIn("max_cost_micros", r.json()["error"]["message"])
        more = {"message_id": "m-1", "max_cost_micros": UNIT}
        self.assertEqual(post(**more).json()["routing_decision"],
                         "ROUTE_IMMEDIATELY")
        self.assertEqual(post(**more).json()["routing_decision"],
                         "DROP_SILENTLY")
        # The same id with more to spend is another envelope.
        self.assertEqual(error_code(post(**{**more, "max_cost_micros": 2 * UNIT}
                                         )), (422, "idempotency_mismatch"))
        made = town.call("GET", "/api/decisions", "anna").json()["items"]
        self.assertIn((UNIT, UNIT), [(d["price_micros"], d["ceiling_micros"])
                                     for d in made])
        self.assertEqual(town.paid(), UNIT)
        with Hub(town.server, town.tokens["anna"]) as hub:
            with self.assertRaises(Refused) as e:
                hub.call("message.send",
                         envelope=self.letter(max_cost_micros=5))
            self.assertEqual(e.exception.name, "cost_ceiling")
            self.assertEqual(e.exception.error["data"]["needed_micros"], UNIT)
            hub.call("message.send", listen=False,
                     envelope=self.letter(max_cost_micros=UNIT))

    def test_it_bounds_what_is_delegated(self):
        town = self.town()
        helper = town.hub("mallory", "helper", visibility="public")
        town.register("mallory", "vault", visibility="private",
                      **priced(40_000))
        town.call("POST", "/api/envelopes", "anna",
                  self.letter(to="helper", max_cost_micros=50_000))
        task = given(helper)
        take = lambda: helper.call(
            "agent.delegate", agentId="vault", task="take", mode="async",
            parent_task_id=task["task_id"])
        self.assertEqual(take()["status"], "accepted")
        self.assertEqual(take()["details"]["needed_micros"], 80_000)

    def test_the_gate_takes_it_and_decides_without(self):
        town = self.town()
        town.register("mallory", "dear", visibility="public", **priced(UNIT))
        r = town.call("POST", "/api/gate", None, {
            "envelope": {"from": "admin", **self.letter(max_cost_micros=0)}})
        self.assertEqual(r.json()["routing_decision"], "ROUTE_IMMEDIATELY", r)


class Commands(Client):
    def test_what_an_envelope_may_cost(self):
        town = self.enterContext(Town())
        town.register("mallory", "dear", visibility="public", **priced(UNIT))
        self.use(town.server, town.tokens["anna"])
        path = os.path.join(self.home, "envelope.json")

        def write(**more):
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"to": "dear", "type": "X", **more}, file)

        write()
        err = self.bad(REFUSED, "send", "--envelope", path, "--max-cost",
                       "0.5")
        self.assertIn("dear costs 1.00", err)
        self.assertIn("ROUTE_IMMEDIATELY", self.good(
            "send", "--envelope", path, "--max-cost", "1"))
        write(max_cost_micros=UNIT)
        self.assertIn("ROUTE_IMMEDIATELY", self.good(
            "send", "--envelope", path))
        err = self.bad(USAGE, "send", "--envelope", path, "--max-cost", "1")
        self.assertIn("max_cost_micros", err)
        self.assertEqual(town.paid(), 2 * UNIT)

    def test_what_it_may_cost_and_the_quote(self):
        town = self.enterContext(Town())
        town.register("mallory", "dear", visibility="public", **priced(UNIT))
        self.use(town.server, town.tokens["anna"])
        out = self.good("route", "--to", "dear", "hi")
        self.assertRegex(out, r"price +1\n")
        self.assertRegex(out, r"at most +1\.1\n")
        quote = next(line.split()[-1] for line in out.splitlines()
                     if line.strip().startswith("quote"))
        status, _, err = self.run_it("send", "--to", "dear", "--max-cost",
                                     "0.5", "hi")
        self.assertEqual(status, REFUSED)
        self.assertIn("dear costs 1.00", err)
        town.change("mallory", "dear", **priced(2 * UNIT))
        self.assertEqual(self.good("send", "--quote", quote, "hi"), "hi\n")
        self.assertEqual(town.paid(), UNIT)
        for wrong in (("--max-cost", "much"), ("--max-cost", "-1"),
                      ("--quote", quote, "--task", "task_x")):
            status, _, err = self.run_it("send", *wrong, "hi")
            self.assertEqual(status, USAGE, err)


if __name__ == "__main__":
    unittest.main()
