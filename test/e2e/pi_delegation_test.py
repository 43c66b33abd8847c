"""The real pi gives work to others: agents on the hub, and another pi. What
counts for every agent that delegates counts for it: whose task it is, the
chain, the limits, the stream, a cancel and the price.

The controls are a pi without the tools, and servers with one mistake each, on
which the same must fail."""
import contextlib
import json
import os
import unittest

import signalbox
from hub_peer import Hub
from pi_stage import PiStage
from signalbox import eventually
from tool_model import answers, calls

PRICE = 700
OWN = ["read", "bash", "edit", "write"]
TOOLS = ["delegate_to_agent", "agent_search"]


def tools_of(body):
    return [tool["function"]["name"] for tool in body.get("tools", [])]


def delegate(agent, task, **fields):
    return ("delegate_to_agent", {"agentId": agent, "task": task, **fields})


def first(*wishes):
    """A model that calls these, and says what came of them."""
    def think(body):
        said = answers(body)
        return json.dumps(said) if said else calls(*wishes)
    return think


class Case(unittest.TestCase):
    def stage(self, think):
        return self.enterContext(PiStage(think))

    def hub(self, server, name, **card):
        hub = self.enterContext(Hub(server))
        hub.register(name, **card)
        return hub

    def told(self, server, to="boss", **fields):
        """What came of its calls."""
        done = server.send("go", to=to, wait_ms=60000, **fields).json()
        self.assertEqual(done["status"], "completed", done)
        return json.loads(done["text"])

    def executed(self, hub):
        """The next task of an agent on the hub."""
        message = hub.next(lambda m: m.get("method") == "task.execute")
        hub.send({"jsonrpc": "2.0", "id": message["id"],
                  "result": {"status": "working"}})
        return message["params"]

    def done(self, hub, task, text):
        hub.call("task.result", task_id=task["task_id"], turn=task["turn"],
                 status="completed", text=text)


class Offered(Case):
    def test_the_tools_are_there_in_every_session(self):
        stage = self.stage(lambda body: ",".join(tools_of(body)))
        server = self.enterContext(stage.server({"boss": {}}, {"max": 1}))
        for conversation in ("one", "two"):  # the second is a new session
            done = server.send("?", to="boss", conversation_id=conversation)
            self.assertEqual(done.json()["text"], ",".join(OWN + TOOLS))
        for folder, _, names in os.walk(server.data):
            for name in names:
                with open(os.path.join(folder, name), "rb") as f:
                    self.assertNotIn(b"registerTool", f.read(), name)

    def test_control_without_them(self):
        stage = self.stage(lambda body: ",".join(tools_of(body)))
        server = self.enterContext(
            stage.server({"boss": {}}, {"tools": False}))
        self.assertEqual(server.send("?", to="boss").json()["text"],
                         ",".join(OWN))


class Delegation(Case):
    def test_it_searches_and_delegates_to_an_agent_on_the_hub(self):
        def think(body):
            said = answers(body)
            if not said:
                return calls(("agent_search", {"query": "bread recipes"}))
            if "agents" in said[0]:
                return calls(delegate(said[0]["agents"][0]["agentId"],
                                      "How is bread \u201cmade\u201d?"))
            return "The expert says: " + said[0]["response"]
        stage = self.stage(think)
        server = self.enterContext(stage.server({"boss": {}}))
        baker = self.hub(server, "baker", description="knows bread",
                         skills=[{"id": "bread", "name": "Bread",
                                  "description": "recipes for bread"}])
        task = server.send("go", to="boss", wait_ms=0).json()["task_id"]
        child = self.executed(baker)
        self.assertEqual(child["message"], "How is bread \u201cmade\u201d?")
        self.assertEqual((child["metadata"]["requester"],
                          child["metadata"]["chain"],
                          child["metadata"]["parent_task_id"]),
                         ("boss", ["boss"], task))
        self.done(baker, child, "Flour.\nAnd \"water\".")
        path = "/api/tasks/" + task
        eventually(lambda: server.call("GET", path).json()["result"], "done")
        result = server.call("GET", path).json()["result"]
        self.assertEqual(result["text"], "The expert says: Flour.\n"
                         "And \"water\".")
        self.assertEqual(result["metadata"]["tool_calls"], 2)
        self.assertEqual(stage.model.complaints, [])

    def test_to_another_pi_with_its_chain_and_price(self):
        def think(body):
            said = answers(body)
            if body["model"] == "docs":
                return "Read the manual."
            return said[0]["response"] if said else calls(delegate("docs", "?"))
        stage = self.stage(think)
        server = self.enterContext(stage.server(
            {"boss": {}, "docs": {"pricing": {"amountMicros": PRICE}}}))
        anna = server.user("anna")
        server.call("POST", "/api/ledger/topup",
                    {"user": "anna", "amount_micros": 10 * PRICE})
        done = server.send("go", to="boss", token=anna, wait_ms=60000).json()
        self.assertEqual(done["text"], "Read the manual.", done)
        tasks = {t["agent"]: t for t in
                 server.call("GET", "/api/tasks").json()["items"]}
        child = server.call("GET", "/api/tasks/" +
                            tasks["docs"]["id"]).json()
        self.assertEqual(child["parent_task_id"], done["task_id"])
        self.assertEqual(child["root_user"], "anna")
        balance = server.call("GET", "/api/ledger/balance", token=anna).json()
        self.assertEqual(balance["balance_micros"], 9 * PRICE)
        self.assertTrue(server.call("GET", "/api/ledger/check").json()
                        ["is_right"])

    def test_two_at_once_and_their_words_are_streamed(self):
        stage = self.stage(first(delegate("one", "a", stream=True),
                                 delegate("two", "b")))
        server = self.enterContext(stage.server({"boss": {}}))
        one, two = self.hub(server, "one"), self.hub(server, "two")
        task = server.send("go", to="boss", wait_ms=0).json()["task_id"]
        with server.events(f"/api/tasks/{task}/events") as events:
            a, b = self.executed(one), self.executed(two)  # side by side
            one.call("task.chunk", task_id=a["task_id"], text="Wait, ")
            two.call("task.chunk", task_id=b["task_id"], text="not shown")
            heard = []
            for _, event, data in events:
                if event == "chunk" and data.get("agent"):
                    heard.append((data["agent"], data["text"]))
                    break
            self.done(two, b, "2")
            self.done(one, a, "Wait, 1")
            for _, event, data in events:
                if event == "chunk" and data.get("agent"):
                    heard.append((data["agent"], data["text"]))
                if event == "result":
                    text = data["text"]
                    break
        self.assertEqual([r["response"] for r in json.loads(text)],
                         ["Wait, 1", "2"])
        self.assertEqual(heard[0], ("one", "Wait, "))
        self.assertNotIn("two", [agent for agent, _ in heard])

    def test_what_another_pi_says_is_streamed(self):
        def think(body):
            said = answers(body)
            if body["model"] == "docs":
                return "Read the manual."
            return said[0]["response"] if said else calls(
                delegate("docs", "?", stream=True))
        stage = self.stage(think)
        server = self.enterContext(stage.server({"boss": {}, "docs": {}}))
        body = {"text": "go", "executor": {"name": "boss"}}
        with server.events("/api/messages", method="POST",
                           body=body) as events:
            heard = [(data.get("agent"), data["text"]) for _, event, data
                     in events if event == "chunk"]
        self.assertEqual("".join(text for agent, text in heard
                                 if agent == "docs"), "Read the manual.")

    def test_a_pi_that_dies_leaves_nothing_behind(self):
        """It is killed while it waits; the next attempt delegates again."""
        stage = self.stage(first(delegate("slow", "x"), ("bash", {
            "command": "while ! test -e flag; do sleep 0.01; done; "
                       "kill -9 $PPID"})))
        flag = os.path.join(stage.folder, "flag")
        server = self.enterContext(stage.server(
            {"boss": {}}, deliver={"retryMs": 10, "retryMaxMs": 20}))
        slow = self.hub(server, "slow")
        task = server.send("go", to="boss", wait_ms=0).json()["task_id"]
        child = self.executed(slow)
        stage.model.think = first(delegate("slow", "again"))
        with open(flag, "w", encoding="utf-8"):
            pass
        again = self.executed(slow)
        self.assertEqual(again["message"], "again")
        path = "/api/tasks/" + child["task_id"]
        eventually(lambda: server.call("GET", path).json()["status"] ==
                   "cancelled", "what was delegated before has ended")
        self.done(slow, again, "now")
        path = "/api/tasks/" + task
        eventually(lambda: server.call("GET", path).json()["result"], "done")
        done = server.call("GET", path).json()
        self.assertEqual((done["attempt"], json.loads(
            done["result"]["text"])[0]["response"]), (2, "now"))

    def test_a_cancel_reaches_what_was_delegated(self):
        stage = self.stage(first(delegate("slow", "x")))
        for how in ("stop", "ask"):
            with self.subTest(how), contextlib.ExitStack() as stack:
                server = stack.enter_context(stage.server(
                    {"boss": {}}, {"onCancel": how, "max": 1}))
                hub = stack.enter_context(Hub(server))
                hub.register("slow")
                task = server.send("go", to="boss", wait_ms=0).json()
                child = self.executed(hub)
                server.call("POST", f"/api/tasks/{task['task_id']}/cancel")
                path = "/api/tasks/" + child["task_id"]
                eventually(lambda: server.call("GET", path).json()["status"] ==
                           "cancelled", "the child was cancelled too")
                stage.model.think = lambda body: "still here"
                self.assertEqual(server.send("?", to="boss").json()["text"],
                                 "still here")
                stage.model.think = first(delegate("slow", "x"))


class Limits(Case):
    def test_whom_it_may_not_ask_and_what_makes_no_sense(self):
        wishes = {
            "allowAgents": delegate("secret", "x"),
            "missing": delegate("missing", "x"),
            "itself": delegate("boss", "x"),
            "task": ("delegate_to_agent", {"agentId": "docs"}),
        }
        stage = self.stage(first(*wishes.values()))
        server = self.enterContext(stage.server(
            {"boss": {"delegation": {"allowAgents": ["docs", "missing",
                                                     "boss"]}}}))
        self.hub(server, "secret")
        self.hub(server, "docs")
        for words, said in zip(wishes, self.told(server)):
            self.assertEqual(said["status"], "error", said)
            self.assertIn(words, said["error"])
        self.assertEqual(len(server.call("GET", "/api/tasks").json()
                             ["items"]), 1)

    def test_depth_and_how_many_at_once(self):
        for limit, words in (({"maxDepth": 0}, "maxDepth"),
                             ({"maxConcurrent": 0}, "maxConcurrent")):
            with self.subTest(words):
                stage = self.stage(first(delegate("docs", "x")))
                server = self.enterContext(
                    stage.server({"boss": {"delegation": limit}}))
                self.hub(server, "docs")
                self.assertIn(words, self.told(server)[0]["error"])

    def test_more_calls_at_once_than_may_be(self):
        stage = self.stage(first(*[("agent_search", {"query": f"{i}"})
                                   for i in range(40)]))
        server = self.enterContext(stage.server({"boss": {}}))
        said = self.told(server)
        self.assertEqual(len(said), 40)
        self.assertTrue(all("agents" in s or "16 calls at once" in s["error"]
                            for s in said), said)
        self.assertGreater(len([s for s in said if "agents" in s]), 15)

    def test_who_cannot_pay_is_told_before_any_work(self):
        stage = self.stage(first(delegate("docs", "x")))
        server = self.enterContext(stage.server({"boss": {}, "docs": {
            "pricing": {"amountMicros": PRICE}}}))
        said = self.told(server, token=server.user("anna"))
        self.assertIn("costs", said[0]["error"])
        self.assertEqual(len(stage.model.calls), 2)

    def test_a_loop_of_two_ends(self):
        """Each asks the other; the second may not."""
        def think(body):
            said = answers(body)
            other = {"boss": "docs", "docs": "boss"}[body["model"]]
            return json.dumps(said[0]) if said else calls(delegate(other, "go"))
        stage = self.stage(think)
        server = self.enterContext(stage.server({"boss": {}, "docs": {}}))
        done = server.send("go", to="boss", wait_ms=60000).json()
        inner = json.loads(json.loads(done["text"])["response"])
        self.assertIn("works only once in a chain", inner["error"])
        self.assertEqual(len(stage.model.calls), 4)
        self.assertEqual(len(server.call("GET", "/api/tasks").json()
                             ["items"]), 2)


@unittest.skipUnless("SIGNALBOX_PLANTED" in os.environ, "needs a planted one")
class Control(unittest.TestCase):
    """A server with one mistake each."""

    def seen_with(self, mistake, case, name):
        before = signalbox.BINARY
        signalbox.BINARY = os.environ["SIGNALBOX_PLANTED"]
        os.environ["PLANTED"] = mistake
        result = unittest.TestResult()
        try:
            case(name).run(result)
        finally:
            signalbox.BINARY = before
            del os.environ["PLANTED"]
        self.assertFalse(result.wasSuccessful(), mistake)
        return str(result.failures + result.errors)

    def test_a_server_that_forgets_the_chain(self):
        self.seen_with("hire.no_chain", Limits, "test_a_loop_of_two_ends")

    def test_a_server_that_pays_twice(self):
        self.seen_with("ledger.capture_twice", Delegation,
                       "test_to_another_pi_with_its_chain_and_price")


if __name__ == "__main__":
    unittest.main()
