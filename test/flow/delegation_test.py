"""Agents that hire agents in two phases: every example of the protocol as it
stands, what is refused, and what becomes of results whose requester or server
was away, over real WebSockets.

What is claimed to be durable has a control: the same run with the row taken
out of the store while the server is dead, which must be noticed.
"""
import contextlib
import json
import os
import shutil
import sqlite3
import tempfile
import unittest

from hiring import (PAPERS, RATE, SKILLS, House, awaited, done, given,
                    is_answer, is_result, request, told)
from hub_peer import Closed, Hub, Refused
from signalbox import Server

MIB = 1024 * 1024


class Seed(unittest.TestCase):
    """The examples of the protocol as they stand, by value."""

    def test_search_then_two_phases(self):
        with House() as h:
            h.begin()
            h.server.call("PATCH", "/api/agents/web-search-agent",
                          {"visibility": "public"}, token=h.anna)
            h.boss.send({"jsonrpc": "2.0", "id": "search-1",
                         "method": "agent.search",
                         "params": {"query": "agent that can search the web",
                                    "limit": 5}})
            found = h.boss.next(is_answer("search-1"))["result"]
            self.assertIn("web-search-agent", json.dumps(found))

            ack = h.ask("42", session_id="session-abc")
            task_id = ack["result"]["task_id"]
            self.assertEqual(ack, {
                "jsonrpc": "2.0", "id": "42",
                "result": {"status": "accepted", "task_id": task_id}})

            task = given(h.worker)
            self.assertEqual(task["task_id"], task_id)
            self.assertEqual(task["message"], "Find recent papers on "
                             "transformer architectures")
            self.assertEqual(task["skill_id"], "web-search")
            self.assertEqual(task["session_id"], "session-abc")
            about = task["metadata"]
            self.assertEqual(
                (about["requester"], about["root_user"], about["depth"],
                 about["chain"]),
                ("research-agent", "anna", 1, ["research-agent"]))
            done(h.worker, task, text=PAPERS)

            self.assertEqual(h.result(), {
                "jsonrpc": "2.0", "method": "delegation.result",
                "params": {"original_id": "42", "task_id": task_id,
                           "status": "completed", "text": PAPERS,
                           "metadata": {}}})

    def test_an_agent_that_is_offline_is_a_failure_that_is_told(self):
        with House() as h:
            h.begin()
            h.worker.close()
            awaited(lambda: h.server.call(
                "GET", "/api/agents/web-search-agent",
                token=h.anna).json()["state"] == "DEAD")
            ack = h.ask("42")
            task_id = ack["result"]["task_id"]
            self.assertEqual(ack["result"]["status"], "accepted")
            self.assertEqual(h.result(), {
                "jsonrpc": "2.0", "method": "delegation.result",
                "params": {"original_id": "42", "task_id": task_id,
                           "status": "failed",
                           "error": "Agent 'web-search-agent' is offline"}})

    def test_chunks_are_gathered_and_metadata_given_on(self):
        with House() as h:
            h.begin()
            h.ask("42")
            task = given(h.worker)
            for text in ("Here ", "they ", "are"):
                h.worker.tell("task.chunk", task_id=task["task_id"], text=text)
            done(h.worker, task, metadata={"sources": 3})
            params = h.result()["params"]
            self.assertEqual(params["text"], "Here they are")
            self.assertEqual(params["metadata"], {"sources": 3})

    def test_ids_become_strings(self):
        with House() as h:
            h.begin()
            for id in (7, "7b", -3, "x" * 128):
                with self.subTest(id):
                    ack = h.ask(id)
                    self.assertEqual(ack["id"], id)
                    done(h.worker, given(h.worker), text="ok")
                    self.assertEqual(h.result()["params"]["original_id"],
                                     str(id))
                    h.boss.call("delegation.ack", original_id=id)

    def test_what_fails_is_told_in_the_agent_s_words(self):
        with House() as h:
            h.begin()
            h.ask("42")
            task = given(h.worker)
            done(h.worker, task, status="failed", error="no network here")
            self.assertEqual(h.result()["params"], {
                "original_id": "42", "task_id": task["task_id"],
                "status": "failed", "error": "no network here"})


class Refusals(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.house = House(config={"ws": {"maxMessageBytes": 32 * MIB,
                                         "maxFrameBytes": 32 * MIB}})
        cls.house.__enter__()
        cls.house.begin()

    @classmethod
    def tearDownClass(cls):
        cls.house.__exit__(None, None, None)

    def refused(self, id="r", **params):
        answer = self.house.ask(id, **params)
        self.assertIn("error", answer)
        return answer["error"]

    def test_each_required_param(self):
        for name in ("agent_id", "message", "skill_id"):
            for value in (None, "", 7, [], {}):
                with self.subTest(name, value=value):
                    error = self.refused(**{name: value})
                    self.assertEqual(error["code"], -32602)
                    self.assertIn(name, error["message"])

    def test_to_oneself_in_any_spelling(self):
        for name in ("research-agent", "Research-Agent", "RESEARCH-AGENT"):
            with self.subTest(name):
                error = self.refused(agent_id=name)
                self.assertEqual(error["data"]["code"],
                                 "delegation_not_allowed")
                self.assertIn("itself", error["message"])

    def test_no_id(self):
        message = request("x")
        del message["id"]
        self.house.boss.send(message)
        answer = self.house.boss.next(lambda m: "method" not in m)
        self.assertIsNone(answer["id"])
        self.assertEqual(answer["error"]["code"], -32600)
        self.assertIn("needs an id", answer["error"]["message"])

    def test_an_agent_that_nobody_knows(self):
        error = self.refused(agent_id="web-serch-agent")
        self.assertEqual(error["data"]["code"], "agent_not_found")
        self.assertIn("web-search-agent", error["data"]["nearest"])

    def test_an_agent_that_is_not_theirs_to_see(self):
        token = self.house.server.user("bert")
        with Hub(self.house.server, token) as other:
            other.register("berts-own", skills=SKILLS)
            seen = self.refused(agent_id="berts-own")
            unknown = self.refused(agent_id="nobodys-own")
        for error in (seen, unknown):
            self.assertEqual(error["data"]["code"], "agent_not_found")
            self.assertNotIn("berts-own", error["data"]["nearest"])

    def test_a_skill_that_it_has_not(self):
        error = self.refused(skill_id="cooking")
        self.assertEqual(error["code"], -32602)
        self.assertIn("web-search, summarize", error["message"])

    def test_ten_megabytes(self):
        error = self.refused(message="x" * (10 * 1000 * 1000))
        self.assertEqual(error["data"]["code"], "too_large")
        self.assertIn("1048576", error["message"])

    def test_the_limit_itself(self):
        ack = self.house.ask("limit", message="x" * MIB)
        task = given(self.house.worker)
        self.assertEqual(len(task["message"]), MIB)
        done(self.house.worker, task, text="ok")
        self.house.result()
        self.assertEqual(ack["result"]["status"], "accepted")

    def test_an_id_again(self):
        h = self.house
        first = h.ask("again")
        self.assertEqual(h.ask("again"), first)
        self.assertEqual(h.ask("again", message="other")["error"]["data"],
                         {"code": "id_in_use"})
        task = given(h.worker)
        done(h.worker, task, text="one")
        self.assertEqual(h.result()["params"]["original_id"], "again")
        self.assertEqual(h.ask("again"), first)  # it is kept, and told again
        self.assertEqual(h.result()["params"]["text"], "one")
        h.boss.call("delegation.ack", original_id="again")
        second = h.ask("again", message="other")
        self.assertNotEqual(second["result"]["task_id"], task["task_id"])
        done(h.worker, given(h.worker), text="two")
        self.assertEqual(h.result()["params"]["text"], "two")
        h.boss.call("delegation.ack", original_id="again")

    def test_who_is_no_agent(self):
        with Hub(self.house.server, self.house.anna) as hub:
            for method in ("agent.send_task", "agent.delegate",
                           "delegation.get", "delegation.ack"):
                with self.subTest(method), self.assertRaises(Refused) as e:
                    hub.call(method)
                self.assertEqual(e.exception.name, "not_allowed")

    def test_a_parent_that_is_not_theirs(self):
        error = self.refused(
            parent_task_id="task_01jabcdefghjkmnpqrstvwxyz0")
        self.assertIn("parent_task_id", error["message"])

    def test_a_follow_up_of_what_is_not_theirs(self):
        error = self.refused(task_id="task_01jabcdefghjkmnpqrstvwxyz0")
        self.assertEqual(error["data"]["code"], "not_found")


class TooLarge(unittest.TestCase):
    def test_beyond_the_largest_message_the_connection_ends_with_words(self):
        """With the usual limits, which let a text of 1 MiB through however it
        is escaped."""
        with House() as h:
            h.begin()
            h.boss.send(request("x", message="x" * (10 * 1000 * 1000)))
            with self.assertRaises(Closed) as e:
                h.boss.next(is_answer("x"))
            self.assertEqual(e.exception.code, 1009)
            self.assertTrue(e.exception.reason)
            self.assertEqual(h.tasks(agent="web-search-agent"), [])


class Turns(unittest.TestCase):
    def test_a_follow_up_adds_a_turn_and_has_its_own_result(self):
        with House() as h:
            h.begin()
            first = h.ask("1", session_id="s")["result"]["task_id"]
            done(h.worker, given(h.worker), text="one")
            self.assertEqual(h.result()["params"]["text"], "one")
            again = h.ask("2", task_id=first, message="and?")["result"]
            self.assertEqual(again["task_id"], first)
            task = given(h.worker)
            self.assertEqual((task["turn"], task["message"],
                              task["session_id"]), (2, "and?", "s"))
            done(h.worker, task, text="two")
            params = h.result()["params"]
            self.assertEqual((params["original_id"], params["task_id"],
                              params["text"]), ("2", first, "two"))
            turns = h.task(first)["turns"]
            self.assertEqual([t["result"]["text"] for t in turns][:1], ["one"])

    def test_a_session_goes_on_with_the_same_agent(self):
        with House() as h:
            h.begin()
            for id in ("1", "2"):
                h.ask(id, session_id="session-abc")
                task = given(h.worker)
                self.assertEqual(task["session_id"], "session-abc")
                done(h.worker, task, text=id)
                h.result()
            conversations = {t["conversation_id"]
                             for t in h.tasks(agent="web-search-agent")}
            self.assertEqual(conversations,
                             {"research-agent@anna/session-abc"})

    def test_what_it_is_part_of(self):
        with House() as h:
            h.begin()
            bert = h.server.user("bert")
            h.server.call("PATCH", "/api/agents/research-agent",
                          {"visibility": "public"}, token=h.anna)
            h.server.send("look it up", to="research-agent", token=bert,
                          wait_ms=0)
            root = given(h.boss)
            h.ask("1")
            task = given(h.worker)
            about = task["metadata"]
            self.assertEqual((about["root_user"], about["depth"],
                              about["requester"]),
                             ("bert", 1, "research-agent"))
            row = h.task(task["task_id"])
            self.assertEqual(row["parent_task_id"], root["task_id"])
            self.assertLessEqual(row["deadline_ms"],
                                 h.task(root["task_id"])["deadline_ms"])
            done(h.worker, task, text="found")
            h.result()
            done(h.boss, root, text="done")

    def test_another_user_s_follow_up_is_nobody_s(self):
        """One agent works for two users: what it gave for the one cannot be
        gone on with for the other."""
        with House() as h:
            h.begin()
            bert = h.server.user("bert")
            h.server.call("PATCH", "/api/agents/research-agent",
                          {"visibility": "public"}, token=h.anna)
            h.server.send("for bert", to="research-agent", token=bert,
                          wait_ms=0)
            root = given(h.boss)
            first = h.ask("1")["result"]["task_id"]
            done(h.worker, given(h.worker), text="bert's secret")
            h.result()
            done(h.boss, root, text="done")
            h.server.send("for anna", to="research-agent", token=h.anna,
                          wait_ms=0)
            given(h.boss)
            error = h.ask("2", task_id=first)["error"]
            self.assertEqual(error["data"]["code"], "not_found")


class Away(unittest.TestCase):
    """The requester was not there when it was over."""

    def test_told_when_it_is_back_and_not_after_it_said_so(self):
        with House() as h:
            h.begin()
            h.ask("42")
            task = given(h.worker)
            h.boss.close()
            self.gone(h)
            done(h.worker, task, text="meanwhile")
            with Hub(h.server, h.anna) as boss:
                boss.send({"jsonrpc": "2.0", "id": 1,
                           "method": "agent.register",
                           "params": {"card": {"name": "research-agent",
                                               "description": "for tests"}}})
                self.assertEqual(boss.read()["id"], 1)  # its answer first
                params = boss.heard("delegation.result")
                self.assertEqual((params["original_id"], params["text"]),
                                 ("42", "meanwhile"))
                # Not acknowledged: told again by the next registration, once.
                boss.register("research-agent")
                self.assertEqual(boss.heard("delegation.result"), params)
                self.quiet(boss)
                self.assertEqual(boss.call("delegation.ack",
                                           original_id="42"), {"acked": True})
                boss.register("research-agent")
                self.quiet(boss)
                self.assertEqual(
                    boss.call("delegation.ack", original_id="42"),
                    {"acked": False, "reason": "not_found"})

    def test_the_control_without_an_ack_it_is_told_again(self):
        """`quiet` hears what there is to hear."""
        with House() as h:
            h.begin()
            h.ask("42")
            done(h.worker, given(h.worker), text="x")
            first = h.result()
            h.boss.register("research-agent")
            told = h.result()
            self.assertEqual(told, first)
            h.boss.waiting.append(told)
            with self.assertRaises(AssertionError):
                self.quiet(h.boss)

    def test_within_a_batch_the_answers_come_first(self):
        with House() as h:
            h.begin()
            h.ask("42")
            task = given(h.worker)
            h.boss.close()
            self.gone(h)
            done(h.worker, task, text="meanwhile")
            with Hub(h.server, h.anna) as boss:
                boss.send([{"jsonrpc": "2.0", "id": 1,
                            "method": "agent.register",
                            "params": {"card": {"name": "research-agent",
                                                "description": "x"}}},
                           {"jsonrpc": "2.0", "id": 2, "method": "ping"}])
                answers = boss.read()
                self.assertEqual(sorted(a["id"] for a in answers), [1, 2])
                self.assertEqual(boss.heard("delegation.result")["text"],
                                 "meanwhile")

    def test_a_take_over_moves_what_is_told(self):
        with House() as h:
            h.begin()
            h.ask("42")
            task = given(h.worker)
            with Hub(h.server, h.anna) as boss:
                boss.register("research-agent")
                done(h.worker, task, text="for the new one")
                self.assertEqual(boss.heard("delegation.result")["text"],
                                 "for the new one")
                with self.assertRaises(Closed) as e:
                    while True:
                        self.assertFalse(is_result(h.boss.read()))
                self.assertEqual(e.exception.code, 4001)

    def test_kept_or_cancelled(self):
        for wish, by_default, ends in (("keep", "cancel", "completed"),
                                       ("cancel", "keep", "cancelled"),
                                       (None, "keep", "completed"),
                                       (None, "cancel", "cancelled")):
            config = {"delegation": {"onDisconnect": by_default}}
            with self.subTest(wish, by_default=by_default), \
                    House(config=config) as h:
                h.begin()
                says = {"onDisconnect": wish} if wish else {}
                id = h.ask("42", **says)["result"]["task_id"]
                task = given(h.worker)
                h.boss.close()
                self.gone(h)
                if ends == "cancelled":
                    self.assertEqual(h.worker.heard("task.cancel")["task_id"],
                                     id)
                else:
                    done(h.worker, task, text="kept")
                self.assertEqual(h.over(id)["status"], ends)

    def test_a_sync_one_frees_its_wait(self):
        with House() as h:
            h.begin()
            h.boss.start("agent.delegate", agentId="web-search-agent",
                         task="t", mode="sync")
            task = given(h.worker)
            h.boss.close()
            self.gone(h)
            done(h.worker, task, text="late")
            with Hub(h.server, h.anna) as boss:
                boss.register("research-agent")
                params = boss.heard("delegation.result")
                self.assertEqual(params["text"], "late")
                self.assertTrue(params["sessionKey"].startswith("del_"))

    def gone(self, h):
        awaited(lambda: h.server.call(
            "GET", "/api/agents/research-agent",
            token=h.anna).json()["state"] == "DEAD")

    def quiet(self, hub):
        self.assertEqual(told(hub), [])


class Ends(unittest.TestCase):
    def test_the_time_of_a_delegation(self):
        with House(config={"delegation": {"timeoutMs": 300}}) as h:
            h.begin()
            h.ask("42")
            task = given(h.worker)
            params = h.result()["params"]
            self.assertEqual((params["original_id"], params["status"]),
                             ("42", "failed"))
            self.assertIn("not done within 300 ms", params["error"])
            self.assertEqual(h.worker.heard("task.cancel"),
                             {"task_id": task["task_id"], "reason": "expired"})

    def test_a_result_for_what_was_cancelled(self):
        with House() as h:
            h.begin()
            id = h.ask("42")["result"]["task_id"]
            task = given(h.worker)
            answer = h.server.call("POST", f"/api/tasks/{id}/cancel",
                                   token=h.anna)
            self.assertEqual(answer.status, 200)
            params = h.result()["params"]
            self.assertEqual((params["status"], params["task_id"]),
                             ("failed", id))
            self.assertIn("cancelled", params["error"])
            self.assertEqual(done(h.worker, task, text="too late"),
                             {"recorded": False, "reason": "task_is_over"})
            self.assertNotIn("too late", json.dumps(h.task(id)["result"]))

    def test_the_parent_s_end_is_the_child_s(self):
        with House() as h:
            h.begin()
            root = h.server.send("go", to="research-agent", token=h.anna,
                                 wait_ms=0).json()["task_id"]
            given(h.boss)
            id = h.ask("42")["result"]["task_id"]
            given(h.worker)
            h.server.call("POST", f"/api/tasks/{root}/cancel", token=h.anna)
            self.assertEqual(h.worker.heard("task.cancel")["task_id"], id)
            self.assertEqual(h.over(id)["status"], "cancelled")


class Killed(unittest.TestCase):
    """kill -9 between the acknowledgement and the result."""

    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="signalbox-test-")
        self.addCleanup(shutil.rmtree, self.root, True)
        self.data = os.path.join(self.root, "data")

    def accept(self):
        """An acknowledged delegation, and a server that is dead."""
        with House(data=self.data) as h:
            h.begin()
            self.anna, self.token = h.anna, h.server.token
            id = h.ask("42")["result"]["task_id"]
            given(h.worker)
            h.server.kill9()
        return id

    def come_back(self, id, is_kept=True):
        """The worker does it; what the requester is told then, all of it."""
        with Server(data=self.data, token=self.token, config=RATE) as server, \
                Hub(server, self.anna) as boss, \
                Hub(server, self.anna) as worker:
            boss.register("research-agent")
            worker.register("web-search-agent", skills=SKILLS)
            task = given(worker)
            self.assertEqual(task["task_id"], id)
            done(worker, task, text="after all")
            if is_kept:
                boss.waiting.append(boss.next(is_result))
            return told(boss)

    def check(self, id, told):
        self.assertEqual(told, [{"original_id": "42", "task_id": id,
                                 "status": "completed", "text": "after all",
                                 "metadata": {}}])

    def test_the_result_is_told_by_the_next_server(self):
        id = self.accept()
        self.check(id, self.come_back(id))

    def test_the_control_without_its_row_nobody_is_told(self):
        id = self.accept()
        self.forget()
        with self.assertRaises(AssertionError):
            self.check(id, self.come_back(id, is_kept=False))

    def test_the_same_request_after_a_crash_begins_nothing(self):
        """Its answer may have been lost with the server; without its row (the
        control) it is new."""
        for forgets in (False, True):
            with self.subTest(forgets=forgets):
                shutil.rmtree(self.data, ignore_errors=True)
                id = self.accept()
                if forgets:
                    self.forget()
                answers = self.repeat()
                self.assertEqual(answers[0]["result"]["status"], "accepted")
                self.assertEqual(answers[0]["result"]["task_id"] == id,
                                 not forgets)
                self.assertEqual(answers[1]["error"]["data"],
                                 {"code": "id_in_use"})

    def repeat(self):
        """The answers to the request of then, and to another by its id."""
        with Server(data=self.data, token=self.token, config=RATE) as server, \
                Hub(server, self.anna) as boss, \
                Hub(server, self.anna) as worker:
            boss.register("research-agent")
            worker.register("web-search-agent", skills=SKILLS)
            answers = []
            for params in ({}, {"message": "another"}):
                boss.send(request("42", **params))
                answers.append(boss.next(is_answer("42")))
            return answers

    def test_a_result_that_nobody_heard_is_told_by_the_next_server(self):
        for forgets in (False, True):
            with self.subTest(forgets=forgets):
                shutil.rmtree(self.data, ignore_errors=True)
                told = self.result_then_kill(forgets)
                self.assertEqual([t["text"] for t in told],
                                 [] if forgets else ["heard?"])

    def result_then_kill(self, forgets):
        with House(data=self.data) as h:
            h.begin()
            self.anna, self.token = h.anna, h.server.token
            h.ask("42")
            done(h.worker, given(h.worker), text="heard?")
            h.result()  # and not acknowledged
            h.server.kill9()
        if forgets:
            self.forget()
        with Server(data=self.data, token=self.token, config=RATE) as server, \
                Hub(server, self.anna) as boss:
            boss.register("research-agent")
            if not forgets:
                boss.waiting.append(boss.next(is_result))
            return told(boss)

    def forget(self):
        """Delegations as they would be had they not been written."""
        path = os.path.join(self.data, "signalbox.db")
        with contextlib.closing(sqlite3.connect(path)) as db:
            self.assertTrue(db.execute("DELETE FROM delegation").rowcount)
            db.commit()


if __name__ == "__main__":
    unittest.main()
