"""Seed 004, delegation in two phases: every message of the seed as it stands,
its checks, timeouts, SDK and billing. docs/seeds.md has the rows."""
import asyncio
import importlib.util
import json
import os
import unittest

from hiring import (SKILLS, House, awaited, done, given, is_answer,
                    request)
from hub_peer import Hub
from signalbox import metric

SOURCE = os.environ["SIGNALBOX_SOURCE"]
SEARCH = """{
"jsonrpc": "2.0",
"id": "search-1",
"method": "agent.search",
"params": {
"query": "agent that can search the web",
"limit": 5
}
}"""
SEND = """{
"jsonrpc": "2.0",
"id": "42",
"method": "agent.send_task",
"params": {
"agent_id": "web-search-agent",
"message": "Find recent papers on transformer architectures",
"skill_id": "web-search",
"session_id": "session-abc"
}
}"""
ACK = """{
"jsonrpc": "2.0",
"id": "42",
"result": {
"status": "accepted",
"task_id": "delegated-task-uuid"
}
}"""
RESULT = """{
"jsonrpc": "2.0",
"method": "delegation.result",
"params": {
"original_id": "42",
"task_id": "delegated-task-uuid",
"status": "completed",
"text": "Here are the recent papers on transformer architectures...",
"metadata": {}
}
}"""
FAILED = """{
"jsonrpc": "2.0",
"method": "delegation.result",
"params": {
"original_id": "42",
"task_id": "delegated-task-uuid",
"status": "failed",
"error": "Agent 'web-search-agent' is offline"
}
}"""
MICROS = 1000000


def as_said(text, task_id):
    return json.loads(text.replace("delegated-task-uuid", task_id))


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.house = cls.enterClassContext(House(**cls.settings()))
        cls.house.begin()

    @classmethod
    def settings(cls):
        return {}

    def ask(self, id, **params):
        """agent.send_task as the seed has it, but for its id."""
        return self.house.ask(id, **params)

    def refused(self, id, **params):
        answer = self.ask(id, **params)
        self.assertIn("error", answer)
        return answer["error"]

    def finish(self, text="ok"):
        done(self.house.worker, given(self.house.worker), text=text)
        return self.house.result()["params"]


class Example(Case):
    """The whole exchange, once; each row looks at a part of it."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        boss, worker = cls.house.boss, cls.house.worker
        boss.send_bytes(SEARCH.encode())
        cls.found = boss.next(is_answer("search-1"))
        boss.send_bytes(SEND.encode())
        cls.ack = boss.next(is_answer("42"))
        cls.task = given(worker)
        cls.open = metric(cls.house.server, "signalbox_delegations_open")
        boss.send({"jsonrpc": "2.0", "id": "p", "method": "ping"})
        cls.pong = boss.next(is_answer("p"))
        cls.row = cls.house.task(cls.task["task_id"])
        for piece in ("Here are the recent papers on ",
                      "transformer architectures..."):
            worker.tell("task.chunk", task_id=cls.task["task_id"], text=piece)
        done(worker, cls.task)
        cls.result = cls.house.result()

    def test_004_01_search_then_delegate(self):
        self.assertEqual(self.found["result"]["agents"][0]["name"],
                         self.row["agent"])

    def test_004_02_the_ack_comes_before_the_work_is_done(self):
        self.assertEqual(self.ack["result"]["status"], "accepted")
        self.assertIsNone(self.row["result"])

    def test_004_03_the_result_comes_as_a_notification(self):
        self.assertEqual(self.result["method"], "delegation.result")

    def test_004_07_the_connection_goes_on_meanwhile(self):
        self.assertIn("at_ms", self.pong["result"])

    def test_004_11_the_search_as_it_stands(self):
        agents = self.found["result"]["agents"]
        self.assertLessEqual(len(agents), 5)
        self.assertEqual((agents[0]["name"], agents[0]["best_skill_id"]),
                         ("web-search-agent", "web-search"))

    def test_004_12_the_request_as_it_stands(self):
        asked = json.loads(SEND)["params"]
        self.assertEqual((self.task["message"], self.task["skill_id"],
                          self.task["session_id"]),
                         (asked["message"], asked["skill_id"],
                          asked["session_id"]))

    def test_004_21_the_ack_as_it_stands(self):
        self.assertEqual(self.ack, as_said(ACK, self.task["task_id"]))

    def test_004_22_what_is_under_way_is_kept_track_of(self):
        self.assertEqual(self.open, 1)
        self.assertEqual(metric(self.house.server,
                                "signalbox_delegations_open"), 0)

    def test_004_23_requester_and_executor(self):
        self.assertEqual(self.task["metadata"]["requester"], "research-agent")
        self.assertEqual(self.row["agent"], "web-search-agent")

    def test_004_24_a_delegated_task_is_a_task_like_any_other(self):
        self.assertEqual((self.row["by_agent"], self.row["root_user"],
                          self.row["turn"]), ("research-agent", "anna", 1))

    def test_004_25_pieces_are_gathered(self):
        self.assertEqual(self.result["params"]["text"],
                         "Here are the recent papers on transformer "
                         "architectures...")

    def test_004_26_the_result_as_it_stands(self):
        self.assertEqual(self.result, as_said(RESULT, self.task["task_id"]))

    def test_004_27_a_notification_has_no_id(self):
        self.assertNotIn("id", self.result)

    def test_004_28_the_result_names_the_request(self):
        self.assertEqual(self.result["params"]["original_id"],
                         self.ack["id"])


class Offline(Case):
    def test_004_29_the_failure_as_it_stands(self):
        self.house.worker.close()
        awaited(lambda: self.house.server.call(
            "GET", "/api/agents/web-search-agent").json()["state"] == "DEAD")
        self.house.boss.send_bytes(SEND.encode())
        ack = self.house.boss.next(is_answer("42"))
        self.assertEqual(self.house.result(),
                         as_said(FAILED, ack["result"]["task_id"]))


class Checks(Case):
    def test_004_04_a_delegation_has_180_seconds(self):
        self.assertEqual(self.default("delegation.timeoutMs"), 180000)

    def test_004_05_a_connection_may_be_silent_for_90(self):
        with Hub(self.house.server, self.house.anna) as hub:
            self.assertEqual(hub.register("heart")["heartbeat_s"], 90)
        self.assertEqual(self.default("ws.timeoutMs"), 90000)

    def test_004_06_one_is_twice_the_other(self):
        self.assertEqual(self.default("delegation.timeoutMs"),
                         2 * self.default("ws.timeoutMs"))

    def default(self, name):
        settings = self.house.server.call("GET", "/api/config").json()
        return next(s["default"] for s in settings["settings"]
                    if s["name"] == name)

    def test_004_10_numbers_and_strings_are_one_id(self):
        ack = self.ask(1042)
        self.assertEqual(ack["id"], 1042)
        self.assertEqual(self.finish()["original_id"], "1042")

    def needs(self, name):
        for value in (None, ""):
            error = self.refused("needs", **{name: value})
            self.assertEqual(error["code"], -32602)
            self.assertIn(name, error["message"])

    def test_004_13_agent_id_is_needed(self):
        self.needs("agent_id")

    def test_004_14_message_is_needed(self):
        self.needs("message")

    def test_004_15_skill_id_is_needed(self):
        self.needs("skill_id")

    def test_004_16_a_session_goes_on(self):
        for id in ("s1", "s2"):
            self.ask(id, session_id="session-abc")
            task = given(self.house.worker)
            self.assertEqual(task["session_id"], "session-abc")
            done(self.house.worker, task, text="ok")
            self.house.result()

    def test_004_17_a_task_id_adds_a_turn(self):
        first = self.ask("t1")["result"]["task_id"]
        self.finish()
        self.assertEqual(self.ask("t2", task_id=first)["result"]["task_id"],
                         first)
        self.finish("more")
        task = self.house.task(first)
        self.assertEqual((task["turn"], len(task["turns"])), (2, 1))

    def test_004_18_what_is_empty_is_refused_and_begins_nothing(self):
        before = len(self.house.tasks())
        self.refused("e", agent_id="", message="", skill_id="")
        self.assertEqual(len(self.house.tasks()), before)

    def test_004_19_nobody_delegates_to_themselves(self):
        error = self.refused("self", agent_id="research-agent")
        self.assertEqual(error["data"]["code"], "delegation_not_allowed")

    def test_004_20_an_id_is_needed(self):
        self.house.boss.send({
            "jsonrpc": "2.0", "method": "agent.send_task",
            "params": json.loads(SEND)["params"]})
        answer = self.house.boss.next(is_answer(None))
        self.assertEqual(answer["error"]["code"], -32600)

    def test_004_44_two_hundred_at_once(self):
        house, ids = self.house, [f"n{i}" for i in range(200)]
        for id in ids:
            house.boss.send(request(id))
        for id in ids:
            answer = house.boss.next(is_answer(id))
            self.assertEqual(answer["result"]["status"], "accepted")
        self.assertGreater(metric(house.server,
                                  "signalbox_delegations_waiting"), 0)
        for _ in ids:
            done(house.worker, given(house.worker), text="ok")
        results = [house.result()["params"] for _ in ids]
        self.assertEqual([r["original_id"] for r in results], ids)
        self.assertEqual({r["status"] for r in results}, {"completed"})

    def test_004_36_third_parties_join_by_themselves(self):
        carl = self.house.server.user("carl")
        with Hub(self.house.server, carl) as hub:
            self.assertEqual(hub.register("third-party")["card"], "created")


class Several(Case):
    """Research-agent works for two users at once."""

    def test_004_37_the_session_tells_for_whom(self):
        house = self.house
        house.server.call("PATCH", "/api/agents/research-agent",
                          {"visibility": "public"}, token=house.anna)
        at = {}
        for name in ("ben", "carl"):
            token = house.server.user(name)
            house.server.send("find papers", to="research-agent", token=token,
                              conversation_id="of-" + name, wait_ms=0)
            at[name] = given(house.boss)
        error = self.refused("whose")
        self.assertEqual(error["code"], -32602)
        self.assertIn("session_id", error["message"])
        for name, task in at.items():
            self.ask("for-" + name, session_id=task["session_id"])
            child = given(house.worker)
            self.assertEqual(child["metadata"]["root_user"], name)
            self.assertEqual(
                house.task(child["task_id"])["parent_task_id"],
                task["task_id"])
            done(house.worker, child, text="ok")

    def test_004_43_the_tool_s_name_is_a_method(self):
        with Hub(self.house.server, self.house.anna) as hub:
            hub.register("caller")
            id = hub.start("delegate_to_agent", agentId="web-search-agent",
                           task="look", mode="sync")
            done(self.house.worker, given(self.house.worker), text="found")
            self.assertEqual(hub.answer(id)["response"], "found")


class Sdk(Case):
    def test_004_33_the_python_sdk_in_the_seeds_words(self):
        path = os.path.join(SOURCE, "client/python/signalbox.py")
        spec = importlib.util.spec_from_file_location("signalbox_sdk", path)
        sdk = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sdk)
        house = self.house

        async def main():
            async def work(task):
                return ""
            async with await sdk.connect(house.server.url,
                                         house.anna) as agent:
                await agent.register({"name": "supervisor",
                                      "description": "asks others"}, work)
                waits = asyncio.to_thread(self.worker)
                worker = asyncio.ensure_future(waits)
                result = await agent.delegate(
                    agent_name="web-search-agent",
                    skill="web-search",
                    message="Find recent papers on transformer architectures"
                )
                await worker
                return result
        result = asyncio.run(main())
        self.assertEqual(result["text"], "found")

    def worker(self):
        task = given(self.house.worker)
        self.assertEqual(task["metadata"]["requester"], "supervisor")
        done(self.house.worker, task, text="found")


class Money(unittest.TestCase):
    """Ben asks anna's boss, which hires zoe's worker: ben pays."""

    @classmethod
    def setUpClass(cls):
        cls.house = cls.enterClassContext(House())
        server = cls.house.server
        user = server.user
        cls.tokens = {n: user(n) for n in ("anna", "zoe", "ben")}
        cls.hubs = {}
        for name, owner, card in (
                ("boss", "anna", {}),
                ("web-search-agent", "zoe", {"skills": [
                    {**SKILLS[0], "pricing": {"amount_micros": 3 * MICROS}},
                    {**SKILLS[1], "pricing": {"amount_micros": MICROS}}]})):
            hub = cls.enterClassContext(Hub(server, cls.tokens[owner]))
            hub.register(name, visibility="public", **card)
            cls.hubs[name] = hub
        server.call("POST", "/api/ledger/topup",
                    {"user": "ben", "amount_micros": 10 * MICROS})
        server.send("find papers", to="boss", token=cls.tokens["ben"],
                    wait_ms=0, max_cost_micros=3 * MICROS)
        boss, worker = cls.hubs["boss"], cls.hubs["web-search-agent"]
        task = given(boss)
        boss.send(json.loads(SEND))
        boss.next(is_answer("42"))
        cls.child = given(worker)
        cls.while_open = cls.balance("ben")
        done(worker, cls.child, text="papers")
        boss.heard("delegation.result")
        done(boss, task, text="here they are")
        awaited(lambda: cls.house.task(task["task_id"])["result"])
        cls.after = {name: cls.balance(name) for name in cls.tokens}

    @classmethod
    def balance(cls, name):
        return cls.house.server.call("GET", "/api/ledger/balance",
                                     token=cls.tokens[name]).json()

    def test_004_38_the_first_user_is_known_all_the_way_down(self):
        self.assertEqual(self.child["metadata"]["root_user"], "ben")

    def test_004_39_the_price_is_that_of_the_skill(self):
        self.assertEqual(self.after["ben"]["balance_micros"], 7 * MICROS)
        self.assertEqual(self.child["skill_id"], "web-search")

    def test_004_40_it_is_reserved_and_then_settled(self):
        self.assertEqual(self.while_open["reserved_micros"], 3 * MICROS)
        self.assertEqual(self.after["ben"]["reserved_micros"], 0)
        self.assertEqual(self.after["zoe"]["earned_micros"], 3 * MICROS)

    def test_004_41_who_delegates_pays_nothing(self):
        said = self.after["anna"]
        self.assertEqual((said["balance_micros"], said["earned_micros"]),
                         (0, 0))

    def test_004_42_user_id_of_an_admin_names_who_pays(self):
        server = self.house.server
        server.send("directly", to="web-search-agent", skill="summarize",
                    metadata={"user_id": "ben"}, wait_ms=0)  # as an admin
        done(self.hubs["web-search-agent"],
             given(self.hubs["web-search-agent"]), text="short")
        awaited(lambda: self.balance("ben")["balance_micros"] == 6 * MICROS)


if __name__ == "__main__":
    unittest.main()
