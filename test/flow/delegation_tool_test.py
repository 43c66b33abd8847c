"""delegate_to_agent: agent.delegate on the hub, over a child's pipes, and as
POST /api/delegate."""
import contextlib
import json
import os
import shutil
import sys
import tempfile
import textwrap
import threading
import unittest

from hiring import House, awaited, done, given, told
from hub_peer import Hub, Refused


class Tool(unittest.TestCase):
    """delegate_to_agent."""

    def test_sync_waits_for_the_answer(self):
        with House() as h:
            h.begin()
            id = h.boss.start("agent.delegate", agentId="web-search-agent",
                              task="look", mode="sync")
            task = given(h.worker)
            done(h.worker, task, text="found")
            answer = h.boss.answer(id)
            key = answer.pop("sessionKey")
            self.assertEqual(answer, {"status": "completed",
                                      "task_id": task["task_id"],
                                      "response": "found"})
            # It has it: nothing is told later, and it can be gone on with.
            h.boss.register("research-agent")
            self.assertEqual(told(h.boss), [])
            id = h.boss.start("agent.delegate", sessionKey=key, task="more")
            more = given(h.worker)
            self.assertEqual((more["task_id"], more["turn"]),
                             (task["task_id"], 2))
            done(h.worker, more, text="and more")
            self.assertEqual(h.boss.answer(id)["response"], "and more")
            self.assertEqual(
                h.boss.call("delegation.get", sessionKey=key)["response"],
                "found")

    def test_async_tells_later(self):
        with House() as h:
            h.begin()
            answer = h.boss.call("agent.delegate", agentId="web-search-agent",
                                 task="look", mode="async")
            key = answer["sessionKey"]
            self.assertEqual(answer["status"], "accepted")
            self.assertEqual(h.boss.call("delegation.get", sessionKey=key),
                             {**answer, "agentId": "web-search-agent"})
            task = given(h.worker)
            done(h.worker, task, text="found")
            self.assertEqual(h.boss.heard("delegation.result"),
                             {"sessionKey": key, "task_id": task["task_id"],
                              "status": "completed", "text": "found",
                              "metadata": {}})
            self.assertEqual(h.boss.call("delegation.get", sessionKey=key),
                             {"status": "completed", "sessionKey": key,
                              "task_id": task["task_id"], "response": "found",
                              "agentId": "web-search-agent"})
            self.assertEqual(h.boss.call("delegation.ack", sessionKey=key),
                             {"acked": True})

    def test_a_timeout_cancels_unless_it_is_to_go_on(self):
        for on_timeout, ends in ((None, "cancelled"), ("continue", None)):
            with self.subTest(on_timeout), House() as h:
                h.begin()
                says = {"onTimeout": on_timeout} if on_timeout else {}
                id = h.boss.start("agent.delegate", task="slow",
                                  agentId="web-search-agent", timeoutMs=200,
                                  **says)
                task = given(h.worker)
                answer = h.boss.answer(id)
                self.assertEqual((answer["status"], answer["task_id"]),
                                 ("timeout", task["task_id"]))
                self.assertIn("200 ms", answer["error"])
                if ends:
                    h.worker.heard("task.cancel")
                    self.assertEqual(h.over(task["task_id"])["status"], ends)
                else:
                    done(h.worker, task, text="at last")
                    self.assertEqual(
                        h.boss.heard("delegation.result")["text"], "at last")

    def test_sixteen_at_once_each_with_its_own_end(self):
        with House() as h:
            h.begin()
            tasks = [{"agentId": "web-search-agent", "task": str(i),
                      "mode": "sync"} for i in range(14)]
            tasks[3]["agentId"] = "missing-there"
            tasks.append({"agentId": "research-agent", "task": "me"})
            tasks.append({"agentId": "web-search-agent", "task": "later",
                          "mode": "async"})
            id = h.boss.start("agent.delegate", tasks=tasks)
            for _ in range(14):
                task = given(h.worker)
                said = {"status": "failed", "error": "no"} \
                    if task["message"] == "7" else {"text": task["message"]}
                done(h.worker, task, **said)
            results = h.boss.answer(id)["results"]
            self.assertEqual([r["status"] for r in results], [
                "error" if i in (3, 7, 14) else
                "accepted" if i == 15 else "completed" for i in range(16)])
            self.assertEqual([r.get("response") for r in results[:3]],
                             ["0", "1", "2"])
            self.assertEqual(results[3]["code"], "agent_not_found")
            self.assertEqual(results[7]["error"], "no")
            self.assertEqual(results[14]["code"], "delegation_not_allowed")
            self.assertEqual(h.boss.heard("delegation.result")["text"],
                             "later")

    def test_seventeen_are_refused_before_any_work(self):
        with House() as h:
            h.begin()
            with self.assertRaises(Refused) as e:
                h.boss.call("agent.delegate", tasks=[
                    {"agentId": "web-search-agent", "task": "x"}] * 17)
            self.assertIn("more than 16", e.exception.message)
            self.assertEqual(h.tasks(agent="web-search-agent"), [])

    def test_one_that_is_refused_is_a_result_as_one_of_many_is(self):
        with House() as h:
            h.begin()
            h.agent("dear", pricing={"amount_micros": 100})
            with h.agent("gone"):
                pass
            for order, code, words in (
                    ({"agentId": "web-serch-agent"}, "agent_not_found",
                     "web-serch-agent"),
                    ({"agentId": "gone"}, "agent_offline", "gone"),
                    ({"agentId": "research-agent"}, "delegation_not_allowed",
                     "itself"),
                    ({"agentId": "dear"}, "insufficient_funds", "0.0001")):
                order["task"] = "x"
                with self.subTest(code):
                    one = awaited(lambda: self.refusal(h, order, code))
                    self.assertEqual((one["status"], one["code"]),
                                     ("error", code))
                    self.assertIn(words, one["error"])
                    self.assertEqual(one.keys() & {"task_id", "sessionKey"},
                                     set())
                    both = h.boss.call("agent.delegate", tasks=[order])
                    for said in (one, *both["results"]):
                        # A refusal is a decision, each with its own id.
                        said.get("details", {}).pop("decision_id", None)
                    self.assertEqual(both, {"results": [one]})
            self.assertEqual(self.refusal(h, {
                "agentId": "web-serch-agent", "task": "x"},
                "agent_not_found")["details"]["nearest"][0],
                "web-search-agent")

    def refusal(self, h, order, code):
        """The answer, once it is that: that a line is gone is seen in time."""
        answer = h.boss.call("agent.delegate", mode="async", **order)
        return answer if answer.get("code") == code else None

    def test_what_is_no_order_at_all_is_an_error(self):
        with House() as h:
            h.begin()
            for order in ({"task": "x"}, {"agentId": "web-search-agent"},
                          {"agentId": 7, "task": "x"},
                          {"agentId": "web-search-agent", "task": "x",
                           "mode": "soon"}):
                with self.subTest(order), self.assertRaises(Refused) as e:
                    h.boss.call("agent.delegate", **order)
                self.assertEqual((e.exception.code, e.exception.name),
                                 (-32602, "bad_request"))

    def test_a_key_of_another_agent_s_is_not_there(self):
        with House() as h:
            h.begin()
            key = h.boss.call("agent.delegate", agentId="web-search-agent",
                              task="x", mode="async")["sessionKey"]
            given(h.worker)
            with self.assertRaises(Refused) as e:
                h.worker.call("delegation.get", sessionKey=key)
            self.assertEqual(e.exception.name, "not_found")
            answer = h.worker.call("agent.delegate", sessionKey=key,
                                   task="more")
            self.assertEqual((answer["status"], answer["code"]),
                             ("error", "not_found"))
            self.assertFalse(h.worker.call("delegation.ack",
                                           sessionKey=key)["acked"])

    def test_words_as_they_come(self):
        with House() as h:
            h.begin()
            with Hub(h.server, h.anna) as user:
                root = user.call("message.send", text="go",
                                 executor={"name": "research-agent"})
                given(h.boss)
                answer = h.boss.call("agent.delegate", task="x", stream=True,
                                     agentId="web-search-agent", mode="async")
                task = given(h.worker)
                h.worker.tell("task.chunk", task_id=task["task_id"],
                              text="word")
                self.assertEqual(h.boss.heard("delegation.chunk"),
                                 {"sessionKey": answer["sessionKey"],
                                  "task_id": task["task_id"],
                                  "agent": "web-search-agent",
                                  "text": "word"})
                chunk = user.heard("task.chunk", root["task_id"])
                self.assertEqual((chunk["agent"], chunk["text"]),
                                 ("web-search-agent", "word"))


CHILD = """
    import json, os, sys
    def say(**m):
        print(json.dumps({"jsonrpc": "2.0", **m}), flush=True)
    def ask(id, method, **params):
        say(id=id, method=method, params=params)
    task, words = None, []
    for line in sys.stdin:
        m = json.loads(line)
        if m.get("method") == "hello":
            say(id=m["id"], result={"at_once": 1})
        elif m.get("method") == "task.execute":
            task = m["params"]
            say(id=m["id"], result={"status": "working"})
            method, params = json.loads(task["message"])
            ask("d", method, **params)
            if "die" in sys.argv:
                os._exit(1)
        elif m.get("id") == "d" and "die" not in sys.argv:
            result = m.get("result") or m["error"]
            if result.get("status") != "accepted":
                ask("r", "task.result", task_id=task["task_id"],
                    text=json.dumps({**result, "words": words}))
        elif m.get("method") == "delegation.chunk":
            words.append(m["params"]["text"])
        elif m.get("method") == "delegation.result":
            ask("r", "task.result", task_id=task["task_id"],
                text=json.dumps(m["params"]))
"""


class Children(unittest.TestCase):
    """A program of a pool hires, over its pipes."""

    @contextlib.contextmanager
    def stage(self, *args, **process):
        folder = tempfile.mkdtemp(prefix="signalbox-test-")
        self.addCleanup(shutil.rmtree, folder, True)
        script = os.path.join(folder, "child.py")
        with open(script, "w", encoding="utf-8") as f:
            f.write(textwrap.dedent(CHILD))
        agents = [{"id": "manager", "process": {
            "command": [sys.executable, script, *args], **process}}]
        with House(agents=agents) as h:
            h.begin()
            h.server.call("PATCH", "/api/agents/web-search-agent",
                          {"visibility": "public"}, token=h.anna)
            yield h

    def manage(self, h, method, **params):
        """What the child was told, in the words of its own result."""
        return h.server.send(json.dumps([method, params]), to="manager",
                             token=h.anna, wait_ms=0).json()["task_id"]

    def test_sync(self):
        with self.stage() as h:
            root = self.manage(h, "agent.delegate", task="x", stream=True,
                               agentId="web-search-agent")
            task = given(h.worker)
            self.assertEqual(task["metadata"]["chain"], ["manager"])
            self.assertEqual(task["metadata"]["root_user"], "anna")
            h.worker.tell("task.chunk", task_id=task["task_id"], text="well")
            done(h.worker, task, text="found")
            said = json.loads(h.over(root)["result"]["text"])
            self.assertEqual((said["status"], said["response"],
                              said["words"]),
                             ("completed", "found", ["well"]))

    def test_two_phases(self):
        with self.stage() as h:
            root = self.manage(h, "agent.send_task", message="x",
                               agent_id="web-search-agent",
                               skill_id="web-search")
            task = given(h.worker)
            done(h.worker, task, text="found")
            said = json.loads(h.over(root)["result"]["text"])
            self.assertEqual(said, {
                "original_id": "d", "task_id": task["task_id"],
                "status": "completed", "text": "found", "metadata": {}})

    def test_who_dies_takes_what_it_waits_for_with_it(self):
        with self.stage("die") as h:
            self.manage(h, "agent.delegate", task="x",
                        agentId="web-search-agent")
            id = given(h.worker)["task_id"]
            self.assertEqual(h.worker.heard("task.cancel")["task_id"], id)
            self.assertEqual(h.over(id)["status"], "cancelled")


class Http(unittest.TestCase):
    def post(self, h, token=None, headers=(), **body):
        return h.server.call("POST", "/api/delegate", body, *headers,
                             token=token or h.anna)

    def later(self, h, **body):
        """POST /api/delegate in a thread; what it comes to."""
        box = []
        thread = threading.Thread(
            target=lambda: box.append(self.post(h, **body)))
        thread.start()
        return lambda: (thread.join(60), box[0])[1]

    def test_for_the_agent_that_works(self):
        with House() as h:
            h.begin()
            root = h.server.send("go", to="research-agent", token=h.anna,
                                 wait_ms=0).json()["task_id"]
            given(h.boss)
            answer = self.later(h, agentId="web-search-agent", task="x",
                                parent_task_id=root)
            task = given(h.worker)
            self.assertEqual(task["metadata"]["chain"], ["research-agent"])
            done(h.worker, task, text="found")
            answer = answer()
            self.assertEqual(answer.status, 200)
            said = answer.json()
            key = said.pop("sessionKey")
            self.assertEqual(said, {"status": "completed",
                                    "task_id": task["task_id"],
                                    "response": "found"})
            self.assertTrue(key.startswith("del_"))

    def test_async_and_who_may_see_it(self):
        with House() as h:
            h.begin()
            bert, carl = h.server.user("bert"), h.server.user("carl")
            h.server.call("PATCH", "/api/agents/research-agent",
                          {"visibility": "public"}, token=h.anna)
            root = h.server.send("go", to="research-agent", token=bert,
                                 wait_ms=0).json()["task_id"]
            given(h.boss)
            answer = self.post(h, agentId="web-search-agent", task="x",
                               mode="async", parent_task_id=root)
            self.assertEqual(answer.status, 202)
            key = answer.json()["sessionKey"]
            path = f"/api/delegations/{key}"
            for token, status in ((h.anna, 200), (bert, 200),
                                  (h.server.token, 200), (carl, 404)):
                got = h.server.call("GET", path, token=token)
                self.assertEqual(got.status, status)
            self.assertEqual(h.server.call("GET", path,
                                           token=h.anna).json()["status"],
                             "accepted")
            done(h.worker, given(h.worker), text="found")
            self.assertEqual(awaited(lambda: h.server.call(
                "GET", path, token=bert).json().get("response")), "found")
            self.assertEqual(h.server.call("GET", "/api/delegations/nonsense",
                                           token=h.anna).status, 404)

    def test_what_was_fetched_is_acknowledged(self):
        """Of an agent that could not acknowledge it otherwise; and only by who
        may be that agent."""
        with House() as h:
            h.begin()
            bert = h.server.user("bert")
            self.assertEqual(h.server.call(
                "PUT", "/api/agents/slow",
                {"name": "slow", "description": "waits", "url": "echo:600000",
                 "visibility": "public"}).status, 201)
            h.server.call("PATCH", "/api/agents/web-search-agent",
                          {"visibility": "public"}, token=h.anna)
            root = h.server.send("go", to="slow", token=bert,
                                 wait_ms=0).json()["task_id"]
            awaited(lambda: h.server.call("GET", f"/api/tasks/{root}")
                    .json()["status"] == "working")
            answer = self.post(h, token=h.server.token, mode="async", task="x",
                               agentId="web-search-agent", parent_task_id=root)
            self.assertEqual(answer.status, 202)
            path = "/api/delegations/" + answer.json()["sessionKey"]
            done(h.worker, given(h.worker), text="found")
            for token, ready in ((bert, "1"), (h.server.token, "0"),
                                 (h.server.token, "0")):
                self.assertEqual(awaited(lambda: h.server.call(
                    "GET", path, token=token).json().get("response")), "found")
                awaited(lambda: f"\nsignalbox_delegations_ready {ready}\n" in
                        h.server.call("GET", "/metrics").body.decode())

    def test_for_another_s_agent(self):
        with House() as h:
            h.begin()
            bert = h.server.user("bert")
            root = h.server.send("go", to="research-agent", token=h.anna,
                                 wait_ms=0).json()["task_id"]
            given(h.boss)
            answer = self.post(h, token=bert, agentId="web-search-agent",
                               task="x", parent_task_id=root)
            self.assertEqual(answer.status, 400)
            self.assertIn("an agent of yours", answer.json()["error"]["message"])

    def test_as_a_person_it_is_a_message(self):
        with House() as h:
            h.begin()
            answer = self.later(h, agentId="web-search-agent", task="x")
            task = given(h.worker)
            self.assertEqual((task["metadata"]["requester"],
                              task["metadata"]["depth"]), ("anna", 0))
            done(h.worker, task, text="found")
            answer = answer()
            self.assertEqual((answer.status, answer.json()), (200, {
                "status": "completed", "sessionKey": task["task_id"],
                "task_id": task["task_id"], "response": "found"}))
            got = h.server.call("GET", "/api/delegations/" + task["task_id"],
                                token=h.anna)
            self.assertEqual(got.json()["response"], "found")

    def test_a_person_s_timeout_cancels(self):
        with House() as h:
            h.begin()
            answer = self.later(h, agentId="web-search-agent", task="x",
                                timeoutMs=200)
            task = given(h.worker)
            self.assertEqual(answer().json()["status"], "timeout")
            self.assertEqual(h.over(task["task_id"])["status"], "cancelled")

    def test_errors_have_their_status(self):
        with House() as h:
            h.begin()
            for body, status, code in (
                    ({"task": "x"}, 400, "bad_request"),
                    ({"agentId": "missing", "task": "x"}, 404,
                     "agent_not_found"),
                    ({"agentId": "web-search-agent", "task": "x",
                      "sessionKey": "del_01jabcdefghjkmnpqrstvwxyz0"}, 400,
                     "bad_request")):
                with self.subTest(body):
                    answer = self.post(h, **body)
                    self.assertEqual((answer.status,
                                      answer.json()["error"]["code"]),
                                     (status, code))

    def test_the_same_key_is_the_same_task(self):
        with House() as h:
            h.begin()
            h.agent("dear", pricing={"amount_micros": 100})
            root = h.server.send("go", to="research-agent", token=h.anna,
                                 wait_ms=0).json()["task_id"]
            given(h.boss)
            h.server.call("POST", "/api/ledger/topup",
                          {"user": "anna", "amount_micros": 1000})
            for of in ({"parent_task_id": root}, {}):
                order = {"agentId": "dear", "task": "x", "mode": "async", **of}
                key = "Idempotency-Key: k%d" % len(of)
                first = self.post(h, headers=(key,), **order)
                self.assertEqual(first.status, 202)
                again = self.post(h, headers=(key,), **order)
                self.assertEqual((again.status, again.json()),
                                 (202, first.json()))
                again = self.post(h, idempotency_key=key.split()[1], **order)
                self.assertEqual(again.json(), first.json())
                other = self.post(h, headers=(key,), **{**order, "task": "y"})
                self.assertEqual((other.status, other.json()["error"]["code"]),
                                 (422, "idempotency_mismatch"))
            self.assertEqual(len(h.tasks(agent="dear")), 2)
            left = h.server.call("GET", "/api/ledger/balance?user=anna").json()
            self.assertEqual(left["balance_micros"], 800)
            # The control: without one each is another.
            self.post(h, agentId="dear", task="x", mode="async")
            self.post(h, agentId="dear", task="x", mode="async")
            self.assertEqual(len(h.tasks(agent="dear")), 4)

    def test_a_key_s_answer_is_how_it_stands(self):
        with House() as h:
            h.begin()
            root = h.server.send("go", to="research-agent", token=h.anna,
                                 wait_ms=0).json()["task_id"]
            given(h.boss)
            for of in ({"parent_task_id": root}, {}):
                order = {"agentId": "web-search-agent", "task": "x", **of,
                         "idempotency_key": "k%d" % len(of)}
                first = self.later(h, **order)
                task = given(h.worker)
                again = self.later(h, **order)
                done(h.worker, task, text="found")
                for answer in (first(), again(), self.post(h, **order)):
                    said = answer.json()
                    self.assertEqual(
                        (answer.status, said["status"], said["response"],
                         said["task_id"]),
                        (200, "completed", "found", task["task_id"]))

    def test_a_key_of_several_is_each_one_s(self):
        with House() as h:
            h.begin()
            tasks = [{"agentId": "web-search-agent", "task": str(i),
                      "mode": "async"} for i in range(2)]
            first = self.post(h, idempotency_key="k", tasks=tasks).json()
            self.assertNotEqual(first["results"][0]["task_id"],
                                first["results"][1]["task_id"])
            self.assertEqual(
                self.post(h, headers=("Idempotency-Key: k",),
                          tasks=tasks).json(), first)
            tasks[1]["task"] = "other"
            again = self.post(h, idempotency_key="k", tasks=tasks).json()
            self.assertEqual(again["results"][0], first["results"][0])
            self.assertEqual(again["results"][1]["code"],
                             "idempotency_mismatch")

    def test_a_key_that_is_none(self):
        with House() as h:
            h.begin()
            for headers, more in ((("Idempotency-Key: ",), {}),
                                  (("Idempotency-Key: a",),
                                   {"idempotency_key": "b"}),
                                  ((), {"idempotency_key": "k" * 256})):
                with self.subTest(headers):
                    answer = self.post(h, headers=headers, task="x",
                                       agentId="web-search-agent", **more)
                    self.assertEqual(answer.status, 400)

    def test_as_events(self):
        with House() as h:
            h.begin()
            with h.server.events("/api/delegate", method="POST",
                                 token=h.anna, body={
                                     "agentId": "web-search-agent",
                                     "task": "x"}) as events:
                task = given(h.worker)
                h.worker.tell("task.chunk", task_id=task["task_id"],
                              text="wo")
                done(h.worker, task, text="word")
                kinds = []
                for _, kind, data in events:
                    kinds.append(kind)
                    if kind == "result":
                        self.assertEqual(data["text"], "word")
                self.assertIn("chunk", kinds)
                self.assertEqual(kinds[-1], "result")


if __name__ == "__main__":
    unittest.main()
