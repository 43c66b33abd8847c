"""message.send on an agent's connection: what it sends is a delegation, part
of the task it works on, with all the limits of one. Speaking as its creator is
a scope of its token.

The controls are servers on which an agent speaks as its creator all the same,
on which the same must fail.
"""
import unittest

from hiring import House, awaited, done, given
from hub_peer import Hub, Refused
from planted import fails_with, needs_planted
from signalbox import Server

PRICE = 700
RATE = {"perUser": 0}


class Office(House):
    """boss is zoe's, and may ask docs alone; secret is there too. anna asks
    and pays."""

    def __init__(self, allow=("docs",), **config):
        super().__init__(config=config)
        self.anna = self.server.user("zoe")  # whose the agents are
        self.tokens = {"zoe": self.anna, "anna": self.server.user("anna"),
                       "bert": self.server.user("bert")}
        for user in ("anna", "bert", "zoe"):
            self.server.call("POST", "/api/ledger/topup",
                             {"user": user, "amount_micros": 10 * PRICE})
        shown = {"visibility": "public"}
        self.boss = self.agent("boss", delegation={"allowAgents": list(allow)},
                               **shown)
        self.docs = self.agent("docs", pricing={"amount_micros": PRICE},
                               **shown)
        self.secret = self.agent("secret", **shown)

    def root(self, user="anna", to="boss", hub=None, **fields):
        r = self.server.send("go", to=to, token=self.tokens[user], wait_ms=0,
                             **fields)
        if r.status != 202:
            raise AssertionError(r)
        return given(hub or self.boss)["task_id"]

    def send(self, to=None, hub=None, **params):
        if to:
            params["executor"] = {"name": to}
        return (hub or self.boss).call("message.send",
                                       **{"text": "and this?", **params})

    def balance(self, user):
        return self.server.call("GET", "/api/ledger/balance",
                                token=self.tokens[user]
                                ).json()["balance_micros"]

    def figure(self, name):
        text = self.server.call("GET", "/metrics").body.decode()
        return int(next(line.split()[-1] for line in text.split("\n")
                        if line.startswith(name + " ")))


class Case(unittest.TestCase):
    def refused(self, code, send, *args, **params):
        with self.assertRaises(Refused) as e:
            send(*args, **params)
        self.assertEqual(e.exception.name, code, e.exception)
        return e.exception.message


class InTheTree(Case):
    def test_it_belongs_to_the_task_that_the_agent_works_on(self):
        with Office() as h:
            root = h.root()
            sent = h.send("docs")
            task = given(h.docs)
            self.assertEqual(task["task_id"], sent["task_id"])
            about = task["metadata"]
            self.assertEqual((about["requester"], about["root_user"],
                              about["chain"], about["depth"]),
                             ("boss", "anna", ["boss"], 1))
            row = h.task(task["task_id"])
            self.assertEqual((row["parent_task_id"], row["root_user"]),
                             (root, "anna"))
            self.assertEqual(h.figure("signalbox_delegations_open"), 1)
            # anna pays, and who made the agent does not.
            self.assertEqual((h.balance("anna"), h.balance("zoe")),
                             (9 * PRICE, 10 * PRICE))
            done(h.docs, task, text="page four")
            # It is heard as a message's result, and nothing is kept of it.
            self.assertEqual(h.boss.heard("task.result", task["task_id"])
                             ["text"], "page four")
            awaited(lambda: h.figure("signalbox_delegations_had_total") == 1)
            self.assertEqual(h.figure("signalbox_delegations_ready"), 0)
            self.assertFalse([m for m in h.boss.waiting
                              if m.get("method") == "delegation.result"])
            tree = h.server.call("GET", f"/api/tasks/{root}/tree").json()
            self.assertEqual([(t["agent"], t["mode"])
                              for t in tree["tree"]["children"]],
                             [("docs", "message")])

    def test_only_those_it_may_ask(self):
        with Office() as h:
            for work in ("at work", "idle"):
                with self.subTest(work):
                    if work == "at work":
                        h.root()
                    for params in ({"to": "secret"}, {"to": "SECRET"},
                                   {"text": "/secret tell me"}):
                        said = self.refused("delegation_not_allowed", h.send,
                                            **params)
                        self.assertIn("delegation.allowAgents", said)
                    self.refused("delegation_not_allowed", h.send, "boss")
            self.assertEqual(h.tasks(agent="secret"), [])
            h.send("docs")
            self.assertEqual(given(h.docs)["metadata"]["requester"], "boss")

    def test_its_depth_counts(self):
        with Office(allow=("docs",), delegation={"maxDepth": 1}) as h:
            h.root()
            h.send("docs")
            given(h.docs)
            said = self.refused("delegation_not_allowed", h.send, "secret",
                                hub=h.docs)
            self.assertIn("delegation.maxDepth", said)

    def test_its_budget_counts(self):
        with Office(ledger={"perRoot": 2 * PRICE}) as h:
            h.root()
            for _ in range(2):
                h.send("docs")
            self.refused("budget_exceeded", h.send, "docs")
            self.assertEqual(h.balance("anna"), 8 * PRICE)

    def test_it_goes_with_its_task(self):
        with Office() as h:
            root = h.root()
            sent = h.send("docs")["task_id"]
            given(h.docs)
            h.server.call("POST", f"/api/tasks/{root}/cancel",
                          token=h.tokens["anna"])
            self.assertEqual(h.over(sent)["status"], "cancelled")
            self.assertEqual(h.boss.heard("task.result", sent)["status"],
                             "cancelled")

    def test_for_one_of_two_users(self):
        with Office() as h:
            of_anna = h.root("anna", conversation_id="a")
            of_bert = h.root("bert", conversation_id="b")
            self.assertIn("session_id", self.refused(
                "bad_request", h.send, "docs"))
            for params, parent, user in (
                    ({"conversation_id": "a"}, of_anna, "anna"),
                    ({"conversation_id": "b"}, of_bert, "bert"),
                    ({"parent_task_id": of_anna}, of_anna, "anna")):
                row = h.task(h.send("docs", **params)["task_id"])
                self.assertEqual((row["parent_task_id"], row["root_user"]),
                                 (parent, user))
            self.assertEqual((h.balance("anna"), h.balance("bert")),
                             (8 * PRICE, 9 * PRICE))
            self.refused("bad_request", h.send, "docs",
                         parent_task_id="task_01jabcdefghjkmnpqrstvwxyz0")

    def test_conversations_are_its_own_with_each_user(self):
        with Office() as h:
            names = {}
            for user in ("anna", "bert"):
                root = h.root(user)
                sent = h.send("docs", conversation_id="c")
                again = h.send("docs",
                               conversation_id=sent["conversation_id"])
                names[user] = sent["conversation_id"]
                self.assertEqual(again["conversation_id"], names[user])
                new = h.send("docs")["conversation_id"]
                self.assertEqual(
                    h.send("docs", conversation_id=new)["conversation_id"],
                    new)
                done(h.boss, {"task_id": root, "turn": 1}, text="done")
            self.assertEqual(names, {"anna": "boss@anna/c",
                                     "bert": "boss@bert/c"})

    def test_a_further_turn_and_a_repeat(self):
        with Office() as h:
            h.root()
            first = h.send("docs", idempotency_key="k")
            done(h.docs, given(h.docs), text="one")
            h.boss.heard("task.result", first["task_id"])
            self.assertEqual(h.send("docs", idempotency_key="k")["task_id"],
                             first["task_id"])
            more = h.send(task_id=first["task_id"], text="go on")
            self.assertEqual((more["task_id"], more["turn"]),
                             (first["task_id"], 2))
            self.assertEqual(h.balance("anna"), 8 * PRICE)

    def test_a_repeat_is_one_whomever_it_works_for_by_then(self):
        with Office() as h:
            h.root("anna")
            first = h.send("docs", idempotency_key="k")["task_id"]
            h.root("bert")
            self.refused("bad_request", h.send, "docs", idempotency_key="n")
            self.assertEqual(h.send("docs", idempotency_key="k")["task_id"],
                             first)

    def test_idle_it_is_a_root_of_its_own_and_its_creator_pays(self):
        with Office() as h:
            row = h.task(h.send("docs")["task_id"])
            self.assertEqual((row["parent_task_id"], row["root_user"],
                              row["by_agent"]), (None, "zoe", "boss"))
            self.assertEqual(h.balance("zoe"), 9 * PRICE)

    def test_a_person_on_the_hub_is_no_agent(self):
        with Office() as h, Hub(h.server, h.tokens["anna"]) as hub:
            row = h.task(h.send("secret", hub=hub)["task_id"])
            self.assertIsNone(row["by_agent"])
            self.refused("bad_request", h.send, "secret", hub=hub,
                         parent_task_id=row["id"])


class SessionsOfOthers(Case):
    """A session says whose work it is; where that is over, no one else's."""

    def over(self, h, user, task):
        r = h.server.call("POST", f"/api/tasks/{task}/cancel",
                          token=h.tokens[user])
        self.assertEqual(r.status, 200, r)
        h.over(task)

    def unpaid(self, h):
        self.assertEqual((h.balance("anna"), h.balance("bert")),
                         (10 * PRICE, 10 * PRICE))
        self.assertEqual(h.tasks(agent="docs"), [])

    def test_one_that_is_over_is_not_taken_for_another_users(self):
        with Office() as h:
            h.root("anna", conversation_id="a")
            self.over(h, "bert", h.root("bert", conversation_id="b"))
            said = self.refused("bad_request", h.send, "docs",
                                conversation_id="b")
            self.assertIn("parent_task_id", said)
            answer = h.boss.call("agent.delegate", agentId="docs",
                                 task="look", mode="async", session_id="b")
            self.assertEqual((answer["status"], answer["code"]),
                             ("error", "bad_request"))
            self.assertIn("session_id", answer["error"])
            self.refused("bad_request", h.boss.call, "agent.send_task",
                         agent_id="docs", skill_id="any", message="look",
                         session_id="b")
            self.unpaid(h)
            # A name that is no one's is one of its own.
            self.assertEqual(h.send("docs", conversation_id="c")
                             ["conversation_id"], "boss@anna/c")

    def test_also_without_a_name(self):
        with Office() as h:
            bert = h.root("bert")
            name = h.task(bert)["conversation_id"]
            self.over(h, "bert", bert)
            h.root("anna")
            self.refused("bad_request", h.send, "docs", conversation_id=name)
            self.unpaid(h)

    def test_also_where_an_agent_gave_it(self):
        with Office() as h:
            tasks = {}
            for user in ("anna", "bert"):
                root = h.root(user)
                h.send("docs", conversation_id="of-" + user,
                       parent_task_id=root)
                tasks[user] = given(h.docs)
            self.assertEqual(tasks["bert"]["session_id"], "of-bert")
            done(h.docs, tasks["bert"], text="done")
            h.over(tasks["bert"]["task_id"])
            self.refused("bad_request", h.send, "secret", hub=h.docs,
                         conversation_id="of-bert")
            self.assertEqual(h.tasks(agent="secret"), [])

    def test_a_conversation_for_another_user_is_not_gone_on_with(self):
        with Office() as h:
            root = h.root("bert")
            name = h.send("docs", conversation_id="c")["conversation_id"]
            self.over(h, "bert", root)
            before = h.balance("anna")
            for user in (None, "anna"):
                if user:
                    h.root(user)
                self.refused("bad_request", h.send, "docs",
                             conversation_id=name)
            self.assertEqual(h.balance("anna"), before)

    def test_that_of_its_own_user_is_no_matter(self):
        with Office() as h:
            root = h.root("anna")
            self.over(h, "anna", h.root("anna", conversation_id="old"))
            row = h.task(h.send("docs", conversation_id="old")["task_id"])
            self.assertEqual(row["parent_task_id"], root)


class SeveralTasks(Case):
    def test_a_key_is_for_the_task_that_was_said(self):
        with Office() as h:
            anna, bert = h.root("anna"), h.root("bert")
            first = h.send("docs", idempotency_key="k", parent_task_id=anna)
            done(h.docs, given(h.docs), text="anna's mail")
            h.boss.heard("task.result", first["task_id"])
            self.refused("idempotency_mismatch", h.send, "docs",
                         idempotency_key="k", parent_task_id=bert)
            self.assertEqual(
                h.send("docs", idempotency_key="k", parent_task_id=anna)
                ["task_id"], first["task_id"])

    def test_the_refusal_names_fields_that_there_are(self):
        with Office() as h:
            h.root("anna", conversation_id="a")
            h.root("bert", conversation_id="b")
            said = self.refused("bad_request", h.send, "docs")
            for field in ("conversation_id", "parent_task_id"):
                self.assertIn(field, said)

    def test_its_priority_is_what_it_says(self):
        with Office() as h:
            for name in ("a", "b"):
                h.root("anna", conversation_id=name)
                for says, is_ in ((None, "NORMAL"), ("URGENT", "URGENT")):
                    params = {"priority": says} if says else {}
                    row = h.task(h.send("docs", **params)["task_id"])
                    self.assertEqual(row["priority"], is_, (name, says))

    def test_one_that_ends_meanwhile_leaves_the_others(self):
        with Office() as h:
            self.rounds(h)

    def rounds(self, h):
        """The one with the most used ends right behind the message."""
        h.server.call("POST", "/api/ledger/topup",
                      {"user": "anna", "amount_micros": 1000 * PRICE})
        for i in range(20):
            ends = h.root("anna", conversation_id=f"a{i}")
            stays = h.root("anna", conversation_id=f"b{i}")
            h.boss.send({"jsonrpc": "2.0", "id": f"s{i}",
                         "method": "message.send", "params": {
                             "text": "t", "executor": {"name": "docs"},
                             "listen": False}})
            h.boss.send({"jsonrpc": "2.0", "id": f"r{i}",
                         "method": "task.result", "params": {
                             "task_id": ends, "turn": 1,
                             "status": "completed", "text": "x"}})
            got = h.boss.next(lambda m, i=i: m.get("id") == f"s{i}" and
                              "method" not in m)
            self.assertIn("result", got, got)
            h.over(ends)
            done(h.docs, given(h.docs), text="y")
            done(h.boss, {"task_id": stays, "turn": 1}, text="x")
            h.over(stays)

    def test_chains_of_those_it_may_be_for_alone(self):
        with Office(allow=("docs", "secret")) as h:
            h.root("anna", conversation_id="s")
            for user, by, name in (("anna", "docs", "s"),
                                   ("bert", "secret", "t")):
                hub = getattr(h, by)
                h.root(user, to=by, hub=hub)
                h.send("boss", hub=hub, conversation_id=name)
                given(h.boss)
            said = self.refused("delegation_not_allowed", h.send, "docs",
                                conversation_id="s")
            self.assertIn("docs", said)
            # secret is above bert's task, and this is not for bert.
            row = h.task(h.send("secret", conversation_id="s")["task_id"])
            self.assertEqual(row["root_user"], "anna")


class Envelopes(Case):
    """A note of one agent to another is work like any other."""

    def note(self, hub, to, **beside):
        return hub.call("message.send", listen=False, **beside, envelope={
            "to": to, "type": "REQUEST", "context": "and this?"})

    def test_they_are_part_of_the_task_in_hand(self):
        with Office() as h:
            root = h.root()
            self.note(h.boss, "docs")
            task = given(h.docs)
            row = h.task(task["task_id"])
            self.assertEqual((row["parent_task_id"], row["root_user"],
                              row["chain"]), (root, "anna", ["boss"]))
            self.assertEqual((h.balance("anna"), h.balance("zoe")),
                             (9 * PRICE, 10 * PRICE))

    def test_to_those_it_may_ask_alone(self):
        with Office() as h:
            for work in ("idle", "at work"):
                with self.subTest(work):
                    if work == "at work":
                        h.root()
                    for to in ("secret", "boss"):
                        self.refused("delegation_not_allowed", self.note,
                                     h.boss, to)
            self.assertEqual(h.tasks(agent="secret"), [])

    def test_their_depth_counts(self):
        with Office(delegation={"maxDepth": 1}) as h:
            h.root()
            self.note(h.boss, "docs")
            given(h.docs)
            self.assertIn("delegation.maxDepth", self.refused(
                "delegation_not_allowed", self.note, h.docs, "secret"))

    def test_who_asked_is_answered_and_there_it_ends(self):
        with Office() as h:
            h.root()
            self.note(h.boss, "docs")
            given(h.docs)
            self.note(h.docs, "boss")
            answer = given(h.boss)
            self.assertEqual(answer["metadata"]["chain"], ["boss", "docs"])
            self.refused("delegation_not_allowed", self.note, h.boss, "docs",
                         parent_task_id=answer["task_id"])
            self.refused("delegation_not_allowed", self.note, h.boss, "docs")

    def test_for_one_of_two_users(self):
        with Office() as h:
            h.root("anna")
            bert = h.root("bert")
            self.refused("bad_request", self.note, h.boss, "docs")
            got = self.note(h.boss, "docs", parent_task_id=bert)
            self.assertEqual(h.task(got["task_id"])["root_user"], "bert")


class AsItsCreator(Case):
    def token(self, server, token, *scopes, **fields):
        return server.call("POST", "/api/tokens",
                           {"scopes": list(scopes), **fields}, token=token)

    def test_by_a_scope_that_nobody_has_unasked(self):
        with Office() as h:
            zoe = h.tokens["zoe"]
            for token in (zoe, h.server.token):
                me = h.server.call("GET", "/api/me", token=token).json()
                self.assertNotIn("creator", me["scopes"])
            made = self.token(h.server, zoe, "send", "creator")
            self.assertEqual(made.status, 201)
            self.assertEqual(made.json()["scopes"], ["send", "creator"])
            with Hub(h.server, made.json()["token"]) as hub:
                hub.register("boss")
                root = h.root(hub=hub)
                sent = h.send("secret", hub=hub)["task_id"]
                row = h.task(sent)
                self.assertEqual((row["by_agent"], row["requester"],
                                  row["root_user"]), (None, "zoe", "zoe"))
                self.assertNotEqual(row["parent_task_id"], root)
                # What it delegates is a delegation all the same.
                got = hub.call("agent.delegate", agentId="secret", task="x")
                self.assertEqual(got["code"], "delegation_not_allowed")
            revoked = h.server.call(
                "DELETE", "/api/tokens/" + made.json()["id"], token=zoe)
            self.assertEqual(revoked.status, 204)

    def test_an_agent_cannot_give_it_to_itself(self):
        with Server(config={"rate": RATE}) as server:
            server.user("zoe")
            own = server.user("boss", role="agent", owner="zoe")
            self.assertEqual(
                self.token(server, own, "send", "creator").status, 403)
            less = self.token(server, server.user("anna"), "send", "read")
            self.assertEqual(self.token(server, less.json()["token"],
                                        "send", "creator").status, 403)
            # An admin can.
            made = self.token(server, server.token, "send", "creator",
                              user="boss")
            self.assertEqual(made.status, 201)


class Control(Case):
    @needs_planted
    def test_a_server_on_which_a_key_is_for_any_task(self):
        self.assertIn("Refused not raised", fails_with(
            self, "walk.any_parent",
            SeveralTasks().test_a_key_is_for_the_task_that_was_said))

    @needs_planted
    def test_a_server_that_begins_for_what_is_over(self):
        self.assertIn("is over", fails_with(
            self, "hire.over_too",
            SeveralTasks().test_one_that_ends_meanwhile_leaves_the_others))

    @needs_planted
    def test_a_server_on_which_envelopes_are_its_creators(self):
        for case in ("test_they_are_part_of_the_task_in_hand",
                     "test_to_those_it_may_ask_alone",
                     "test_who_asked_is_answered_and_there_it_ends"):
            with self.subTest(case):
                fails_with(self, "hub.speaks_as_creator",
                           getattr(Envelopes(case), case))

    @needs_planted
    def test_a_server_that_takes_any_session(self):
        for case in ("test_one_that_is_over_is_not_taken_for_another_users",
                     "test_also_where_an_agent_gave_it"):
            with self.subTest(case):
                self.assertIn("Refused not raised", fails_with(
                    self, "walk.any_session",
                    getattr(SessionsOfOthers(case), case)))

    @needs_planted
    def test_a_server_on_which_it_speaks_as_its_creator(self):
        for case in ("test_only_those_it_may_ask", "test_its_budget_counts",
                     "test_it_belongs_to_the_task_that_the_agent_works_on",
                     "test_for_one_of_two_users"):
            with self.subTest(case):
                self.assertIn("AssertionError", fails_with(
                    self, "hub.speaks_as_creator",
                    getattr(InTheTree(case), case)))
