"""Peers on the hub who do what they should not: each is answered or shown out,
and everybody else is served as ever."""
import contextlib
import json
import os
import unittest

from hub_peer import BINARY, Closed, Hub, Refused
from signalbox import ECHO, Server, eventually, metric
from ws_wire import TEXT, Wrong, masked

MIB = 1024 * 1024
BATCH_MAX = 64


def rpc(id, method, **params):
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


class Hostile(unittest.TestCase):
    """One server; it must still serve after every test."""

    @classmethod
    def setUpClass(cls):
        cls.server = Server(agents=ECHO, config={
            "hub": {"maxOpen": 8, "maxListening": 4}})
        cls.anna = cls.server.user("anna")
        cls.bob = cls.server.user("bob")

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def tearDown(self):
        with self.hub() as hub:
            self.assertIn("at_ms", hub.call("ping"))
        eventually(lambda: metric(self.server, "signalbox_hub_connections")
                   == 0, "all connections are gone")
        self.assertEqual(metric(self.server, "signalbox_hub_agents"), 0)

    def hub(self, token=None):
        return Hub(self.server, token or self.anna)

    def refused(self, name, do, *args, **params):
        with self.assertRaises(Refused) as caught:
            do(*args, **params)
        self.assertEqual(caught.exception.name, name, caught.exception)
        return caught.exception

    def task(self, hub, agent):
        sent = hub.call("message.send", text="hi", executor={"name": agent},
                        listen=False)
        return sent["task_id"]

    def taken(self, agent):
        return agent.next(lambda m: m.get("method") == "task.execute")["params"]

    # Garbage.

    def test_garbage_is_answered_and_the_connection_stays(self):
        with self.hub() as hub:
            for text, code in ((b"", -32700), (b"{", -32700), (b"\x00", -32700),
                               (b"[1,", -32700), (b"nonsense", -32700),
                               (b"[]", -32600), (b"7", -32600),
                               (b"null", -32600), (b'"x"', -32600),
                               (b"{}", -32600),
                               (b'{"jsonrpc":"2.0","id":{},"method":"ping"}',
                                -32600),
                               (b'{"jsonrpc":"2.0","jsonrpc":"2.0"}', -32700)):
                hub.send_bytes(text)
                answer = hub.read()
                self.assertEqual(answer["error"]["code"], code, text)
                self.assertIsNone(answer["id"])
            self.assertIn("at_ms", hub.call("ping"))

    def test_what_is_too_deep_or_too_many_is_refused(self):
        with self.hub() as hub:
            deep = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":'
            hub.send_bytes(deep + b"[" * 40 + b"]" * 40 + b"}}")
            self.assertEqual(hub.read()["error"]["data"]["code"], "too_large")
            hub.send([rpc(i, "ping") for i in range(BATCH_MAX)])
            self.assertEqual(len(hub.read()), BATCH_MAX)
            hub.send([rpc(i, "ping") for i in range(BATCH_MAX + 1)])
            self.assertEqual(hub.read()["error"]["data"]["code"], "too_large")

    def test_binary_messages_are_shown_out(self):
        with self.hub() as hub:
            hub.send_bytes(b"{}", opcode=BINARY)
            with self.assertRaises(Closed) as caught:
                hub.read()
            self.assertEqual(caught.exception.code, 1003)

    def test_answers_to_what_was_never_asked_are_counted(self):
        before = metric(self.server, "signalbox_hub_foreign_total")
        with self.hub() as hub:
            hub.register("foreign")
            for id in ("x", 7, "task_01j00000000000000000000000:1", None):
                hub.send({"jsonrpc": "2.0", "id": id,
                          "error": {"code": 1, "message": "x"}})
            hub.call("ping")
        self.assertEqual(metric(self.server, "signalbox_hub_foreign_total"),
                         before + 4)

    # Limits.

    def test_requests_beyond_max_open_in_a_batch_are_refused(self):
        with self.hub() as hub:
            hub.send([rpc(i, "message.send", text="x", listen=False,
                          executor={"name": "echo"})
                      for i in range(12)])
            names = {a["id"]: (a.get("error") or {}).get("data", {}).get("code")
                     for a in hub.read()}
            self.assertEqual(len(names), 12)
            self.assertIn("overloaded", names.values())
            hub.call("ping")

    def test_many_requests_one_after_the_other_are_all_answered(self):
        with self.hub() as hub:
            ids = [hub.start("agent.search", query="echo") for _ in range(200)]
            for id in ids:
                self.assertIn("total", hub.answer(id))

    def test_it_hears_of_so_many_tasks_and_no_more(self):
        with self.hub() as agent, self.hub() as user:
            agent.register("silent")
            for _ in range(4):
                user.call("message.send", text="x", executor={"name": "silent"})
            self.refused("overloaded", user.call, "message.send", text="x",
                         executor={"name": "silent"})
            last = self.task(user, "silent")
            user.call("task.cancel", task_id=last)
            for task in {self.taken(agent)["task_id"] for _ in range(4)}:
                user.call("task.cancel", task_id=task)

    def test_words_at_the_limit_and_beyond_it(self):
        with self.hub() as agent, self.hub() as user:
            agent.register("large")
            sent = user.call("message.send", text="x",
                             executor={"name": "large"})
            task = self.taken(agent)["task_id"]
            agent.call("task.chunk", task_id=task, text="y" * MIB)
            self.assertEqual(agent.call("task.result", task_id=task,
                                        text="z" * MIB), {"recorded": True})
            result = user.heard("task.result", sent["task_id"])
            self.assertEqual(result["text"], "z" * MIB)
            for method, words in (("task.chunk", {"text": "x" * (MIB + 1)}),
                                  ("task.result", {"text": "x" * (MIB + 1)}),
                                  ("task.result",
                                   {"metadata": {"a": "x" * 65536}})):
                sent = user.call("message.send", text="x",
                                 executor={"name": "large"})
                task = self.taken(agent)["task_id"]
                self.refused("too_large", agent.call, method, task_id=task,
                             **words)
                result = user.heard("task.result", sent["task_id"])
                self.assertEqual(result["status"], "failed")
                self.assertEqual(result["error"]["code"], "too_large")

    def test_too_large_words_are_the_end_of_the_task(self):
        with self.hub() as agent, self.hub() as user:
            agent.register("larger")
            for method, params in (
                    ("task.chunk", {"text": "x" * (MIB + 1)}),
                    ("task.result", {"text": "x" * (MIB + 1)}),
                    ("task.result", {"text": "x",
                                     "metadata": {"a": "x" * 65536}})):
                sent = user.call("message.send", text="x",
                                 executor={"name": "larger"})
                task = self.taken(agent)["task_id"]
                self.refused("too_large", agent.call, method, task_id=task,
                             **params)
                result = user.heard("task.result", sent["task_id"])
                self.assertEqual((result["status"], result["error"]["code"]),
                                 ("failed", "too_large"))
                self.assertEqual(
                    agent.call("task.result", task_id=task, text="less"),
                    {"recorded": False, "reason": "task_is_over"})

    # Other people's things.

    def test_words_after_the_result_and_second_results(self):
        with self.hub() as agent, self.hub() as user:
            agent.register("twice")
            sent = user.call("message.send", text="x",
                             executor={"name": "twice"})
            task = self.taken(agent)["task_id"]
            self.assertEqual(agent.call("task.result", task_id=task,
                                        text="one"), {"recorded": True})
            self.assertEqual(
                agent.call("task.result", task_id=task, text="two"),
                {"recorded": False, "reason": "task_is_over"})
            self.refused("not_found", agent.call, "task.chunk", task_id=task,
                         text="late")
            agent.tell("task.chunk", task_id=task, text="late")
            self.assertEqual(user.heard("task.result")["text"], "one")
            user.call("ping")
            self.assertFalse([m for m in user.waiting
                              if m.get("method") in ("task.chunk",
                                                     "task.result")])
            self.assertEqual(user.call("task.get", task_id=sent["task_id"])
                             ["result"]["text"], "one")

    def test_nobody_answers_for_anothers_task(self):
        with self.hub() as agent, self.hub() as user, \
                self.hub(self.bob) as thief:
            agent.register("honest")
            thief.register("thief")
            task = self.task(user, "honest")
            self.taken(agent)
            self.refused("not_found", thief.call, "task.chunk", task_id=task,
                         text="mine")
            self.refused("not_found", thief.call, "task.result", task_id=task,
                         text="mine")
            self.refused("not_found", thief.call, "task.get", task_id=task)
            self.refused("not_found", thief.call, "task.cancel", task_id=task)
            self.refused("not_found", thief.call, "task.listen", task_id=task)
            self.assertEqual(agent.call("task.result", task_id=task,
                                        text="ours"), {"recorded": True})

    def test_nobody_takes_anothers_name(self):
        with self.hub() as agent, self.hub(self.bob) as thief:
            agent.register("hidden")
            agent.register("hidden")
            said = self.refused("exists", thief.register, "hidden")
            self.assertIn('"hidden" is taken', said.message)
            self.refused("exists", thief.register, "Hidden")
            self.refused("not_allowed", thief.register, "echo")
            agent.call("agent.update", card={"visibility": "public"})
            said = self.refused("not_allowed", thief.register, "hidden")
            self.assertIn("creator", said.message)
            self.assertIn("at_ms", agent.call("ping"))  # still its own
            self.refused("bad_request", agent.register, "another")
            self.refused("bad_request", thief.register, "")

    def test_a_card_says_no_more_than_it_may(self):
        bot = self.server.user("bot-x", role="agent", owner="anna")
        with self.hub(bot) as hub:
            for card in ({"restart": {"command": ["rm"]}},
                         {"url": "process:rm"}, {"visibility": "public"},
                         {"creator_id": "bob"}, {"kind": "platform"}):
                self.refused("not_allowed", hub.register, "modest", **card)
            made = hub.register("modest", url="https://example.com/")
            self.assertEqual(made["url"], "ws-agent://modest")
            self.assertEqual(made["visibility"], "private")

    def test_before_it_is_an_agent_it_is_none(self):
        with self.hub() as hub:
            for method in ("task.chunk", "task.result", "agent.state",
                           "agent.update", "agent.send_task",
                           "agent.delegate", "delegation.get",
                           "delegation.ack"):
                self.refused("not_allowed", hub.call, method, task_id="x",
                             text="x", card={})
            with self.assertRaises(Refused) as caught:
                hub.call("agent.no_such")
            self.assertEqual(caught.exception.code, -32601)

    def test_scopes_count_here_too(self):
        made = self.server.call("POST", "/api/tokens", {"scopes": ["read"]},
                                token=self.anna).json()
        with self.hub(made["token"]) as hub:
            said = self.refused("not_allowed", hub.call, "message.send",
                                text="x")
            self.assertEqual(said.error["data"]["scope"], "send")
            self.refused("not_allowed", hub.register, "reader")
            hub.call("agent.search", query="echo")

    # Coming and going.

    def test_the_token_may_be_offered_as_a_protocol(self):
        for offer in (f"signalbox, bearer.{self.anna}",
                      f"bearer.{self.anna}, signalbox"):
            with Hub(self.server, protocols=offer, authorization=False) as hub:
                self.assertEqual(
                    hub.head.headers[b"sec-websocket-protocol"],
                    [b"signalbox"])
                hub.call("ping")
        with self.assertRaises(Wrong):
            Hub(self.server, protocols="signalbox, bearer.sbx_wrong",
                authorization=False).close()
        self.assertEqual(self.server.call("GET", "/hub").status, 426)
        self.assertEqual(self.server.call("GET", "/hub", token=None).status,
                         401)

    def test_a_token_offered_as_a_protocol_is_neither_logged_nor_said(self):
        with Server("--set", "log.level=debug") as server:
            token = server.token
            with Hub(server, protocols=f"bearer.{token}, signalbox",
                     authorization=False) as hub:
                hub.call("ping")
                self.assertNotIn(token, repr(hub.head.headers))
            # Alone it is not agreed to either; a wrong one is as secret.
            for offer in f"bearer.{token}", f"signalbox, bearer.{token}x":
                with contextlib.suppress(Wrong, Closed):
                    with Hub(server, protocols=offer,
                             authorization=False) as hub:
                        self.assertNotIn("bearer", repr(hub.head.headers))
            log = server.said()
        self.assertIn("debug", log)
        self.assertNotIn(token, log)
        self.assertNotIn(token.removeprefix("sbx_"), log)

    def test_a_revoked_token_ends_its_connections(self):
        made = self.server.call("POST", "/api/tokens", {},
                                token=self.anna).json()
        with self.hub(made["token"]) as hub, self.hub() as other:
            hub.register("leaving")
            self.server.call("DELETE", "/api/tokens/" + made["id"])
            with self.assertRaises(Closed) as caught:
                hub.read()
            self.assertEqual(caught.exception.code, 1008)
            other.call("ping")

    def test_another_connection_takes_over(self):
        with self.hub() as first, self.hub() as user:
            first.register("twin")
            task = self.task(user, "twin")
            self.assertEqual(self.taken(first)["attempt"], 1)
            with self.hub() as second:
                second.register("twin")
                with self.assertRaises(Closed) as caught:
                    first.read()
                self.assertEqual(caught.exception.code, 4001)
                again = self.taken(second)
                self.assertEqual(again["task_id"], task)
                self.assertGreater(again["attempt"], 1)
                self.assertEqual(second.call("task.result", task_id=task,
                                             text="x"), {"recorded": True})

    def test_it_may_leave_at_any_point(self):
        """After each number of bytes of a whole life."""
        with self.hub() as user, self.hub() as agent:
            life = [json.dumps(m).encode() for m in (
                rpc(1, "agent.register", card={"name": "brief",
                                               "description": "x"}),
                rpc(2, "message.send", text="hi", executor={"name": "brief"}),
                rpc(3, "agent.search", query="brief"),
                [rpc(4, "ping"), rpc(5, "task.get", task_id="task_x")])]
            whole = b"".join(masked(TEXT, m) for m in life)
            step = max(1, len(whole) // 60)
            for cut in range(0, len(whole) + step, step):
                with self.hub() as hub:
                    hub.wire.send(whole[:cut])
            agent.register("brief")
            while True:  # whatever was accepted is given to the next
                tasks = self.server.call(
                    "GET", "/api/tasks?agent=brief&limit=500",
                    token=self.anna).json()["items"]
                open_ = [t for t in tasks if t["status"] not in
                         ("completed", "cancelled")]
                if not open_:
                    break
                for t in open_:
                    try:
                        user.call("task.cancel", task_id=t["id"])
                    except Refused as e:
                        self.assertEqual(e.name, "task_is_over")

    def come_and_go(self, n):
        """All at once, each with something under way when it leaves."""
        crowd = [self.hub() for _ in range(n)]
        self.assertEqual(metric(self.server, "signalbox_hub_connections"), n)
        for hub in crowd:
            hub.start("agent.register", card={"name": "crowd-one",
                                              "description": "x"})
        for hub in crowd:
            hub.close()
        eventually(lambda: metric(self.server, "signalbox_hub_connections")
                   == 0, "they are gone")
        self.assertEqual(metric(self.server, "signalbox_hub_agents"), 0)
        return self.held()

    def held(self):
        """Descriptors and memory of the server."""
        process = f"/proc/{self.server.process.pid}"
        with open(process + "/statm") as f:
            pages = int(f.read().split()[1])
        return len(os.listdir(process + "/fd")), pages * 4096

    def test_a_thousand_come_and_go(self):
        before, _ = self.held()
        self.assertGreater(before, 3)
        _, memory = self.come_and_go(1000)
        # What the first thousand took is there for the second.
        fds, after = self.come_and_go(1000)
        self.assertLess(fds, before + 20)
        if os.environ["SANITIZE"] == "none":  # which keeps what was freed
            self.assertLess(after, memory + 16 * MIB)
        self.assertLess(metric(self.server, "signalbox_http_buffered_bytes"),
                        MIB)

    def test_one_who_does_not_read_is_not_read_from(self):
        with self.hub() as agent, self.hub() as slow, self.hub() as user:
            agent.register("talker")
            sent = slow.call("message.send", text="x",
                             executor={"name": "talker"})
            task = self.taken(agent)["task_id"]
            for _ in range(64):
                agent.call("task.chunk", task_id=task, text="w" * 65536)
            agent.call("task.result", task_id=task, text="the end")
            user.call("ping")
            # It reads at last: a gap, or all of it, and the result whole.
            self.assertEqual(slow.heard("task.result",
                                        sent["task_id"])["text"], "the end")


if __name__ == "__main__":
    unittest.main()
