"""Models that use tools: the real server with a default agent that is a model,
which searches, delegates and answers with what came of it."""
import json
import socket
import tempfile
import threading
import unittest

import jsonschema
from hub_peer import Hub
from signalbox import Server, eventually
from tool_model import ToolModel, answers, calls

QUICK = {"maxAttempts": 1, "retryMs": 10, "retryMaxMs": 20,
         "breakerFailures": 1000}


def serve(model, *more, data=None, token=None, **config):
    """The agents' models are what they are called; "boss" is the default."""
    agents = [{"id": name, "model": "tools/" + name,
               "routing": {"systemPrompt": f"You are {name}."}, **fields}
              for name, fields in (("boss", {"default": True}), *more)]
    models = {"tools": {"baseUrl": model.url + "/v1", "kind": model.kind,
                        **config.pop("settings", {})}}
    return Server(agents=agents, data=data, token=token,
                  config={"models": models, "deliver": QUICK, **config})


def ask(server, text, **fields):
    done = server.call("POST", "/api/messages",
                       {"text": text, "wait_ms": 60000, **fields})
    return done.json()


def delegate(agent, task, **fields):
    return ("delegate_to_agent", {"agentId": agent, "task": task, **fields})


class Worker:
    """An agent on the hub that answers in its own words, as long as it is
    there."""

    def __init__(self, server, name, words, gate=None, **card):
        self.hub = Hub(server)
        self.hub.register(name, **card)
        self.tasks = []
        self.words, self.gate = words, gate
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        try:
            while True:
                message = self.hub.next(
                    lambda m: m.get("method") == "task.execute")
                task = message["params"]
                self.tasks.append(task)
                self.hub.send({"jsonrpc": "2.0", "id": message["id"],
                               "result": {"status": "working"}})
                if self.gate:
                    self.gate()
                self.hub.call("task.result", task_id=task["task_id"],
                              turn=task["turn"], status="completed",
                              text=self.words + task["message"])
        except Exception:
            return

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.hub.wire.socket.shutdown(socket.SHUT_RDWR)
        self.thread.join(60)
        self.hub.close()


class Case(unittest.TestCase):
    def agree(self, model):
        """Nothing that was sent was refused."""
        self.assertEqual(model.complaints, [])


class Delegation(Case):
    def test_it_searches_delegates_and_answers_with_the_words(self):
        def think(body):
            said = answers(body)
            if not said:
                return calls(("search_agents", {"query": "bread recipes"}),
                             text="Let me ask someone.")
            if "agents" in said[0]:
                name = said[0]["agents"][0]["agentId"]
                return calls(delegate(name, "How is bread made?"))
            return "The expert says: " + said[0]["response"]
        with ToolModel(think) as model, serve(model) as server:
            with Worker(server, "baker", "Flour. ", description="knows bread",
                        skills=[{"id": "bread", "name": "Bread",
                                 "description": "recipes for bread"}]) as baker:
                done = ask(server, "Good morning")
                self.assertEqual(done["text"],
                                 "Let me ask someone.\n\nThe expert says: "
                                 "Flour. How is bread made?", done)
                self.assertEqual(done["agent"], "boss")
                child = baker.tasks[0]
                self.assertEqual(child["metadata"]["requester"], "boss")
                self.assertEqual(child["metadata"]["chain"], ["boss"])
                self.assertEqual(child["metadata"]["parent_task_id"],
                                 done["task_id"])
            task = server.call("GET", "/api/tasks/" + done["task_id"]).json()
            self.assertEqual(task["result"]["metadata"]["tool_calls"], 2)
            self.assertEqual(task["result"]["metadata"]["usage"]
                             ["total_tokens"], 9)
            self.agree(model)
            hit = answers(model.calls[1].body)[0]
            self.assertEqual(hit["agents"][0]["skills"][0]["id"], "bread")
            self.assertNotIn("boss", [a["agentId"] for a in hit["agents"]])

    def test_two_at_once_are_done_at_the_same_time(self):
        both = threading.Barrier(2)
        for many in (False, True):
            def think(body):
                said = answers(body)
                if not said and many:
                    return calls(("delegate_to_agent", {"tasks": [
                        {"agentId": "one", "task": "a"},
                        {"agentId": "two", "task": "b"}]}))
                if not said:
                    return calls(delegate("one", "a"), delegate("two", "b"))
                results = said[0]["results"] if many else said
                return " and ".join(r["response"] for r in results)
            with ToolModel(think) as model, serve(model) as server, \
                    Worker(server, "one", "1", lambda: both.wait(60)), \
                    Worker(server, "two", "2", lambda: both.wait(60)):
                done = ask(server, "both", executor={"name": "boss"})
                self.assertEqual(done["text"], "1a and 2b")
                self.agree(model)

    def test_async_goes_on_at_once(self):
        may_go_on = threading.Event()

        def think(body):
            said = answers(body)
            if not said:
                return calls(delegate("slow", "later", mode="async"))
            return json.dumps(said[0])
        with ToolModel(think) as model, serve(model) as server, \
                Worker(server, "slow", "", lambda: may_go_on.wait(60)):
            done = ask(server, "go")
            said = json.loads(done["text"])
            self.assertEqual(said["status"], "accepted")
            self.assertTrue(said["sessionKey"].startswith("del_"))
            may_go_on.set()
            path = "/api/tasks/" + said["task_id"]
            eventually(lambda: server.call("GET", path).json()["status"] ==
                       "completed", "it is done without anybody waiting")
            self.agree(model)

    def test_a_time_out_is_told_and_ends_the_child(self):
        never = threading.Event()

        def think(body):
            said = answers(body)
            if not said:
                return calls(delegate("slow", "x", timeoutMs=50))
            return json.dumps(said[0])
        with ToolModel(think) as model, serve(model) as server, \
                Worker(server, "slow", "", lambda: never.wait(60)):
            said = json.loads(ask(server, "go")["text"])
            self.assertEqual(said["status"], "timeout", said)
            path = "/api/tasks/" + said["task_id"]
            eventually(lambda: server.call("GET", path).json()["status"] in
                       ("cancelled", "expired"), "it was ended")
            never.set()

    def test_with_stream_the_user_hears_both(self):
        def think(body):
            said = answers(body)
            if not said:
                return calls(delegate("baker", "bread", stream=True),
                             text="Let me ask.")
            return "Enjoy."
        with ToolModel(think) as model, serve(model) as server, \
                Hub(server) as hub:
            hub.register("baker")
            task = ask(server, "Good morning", wait_ms=0)["task_id"]
            with server.events(f"/api/tasks/{task}/events") as events:
                child = hub.heard("task.execute")
                hub.call("task.chunk", task_id=child["task_id"], text="Flo")
                hub.call("task.result", task_id=child["task_id"],
                         status="completed", text="Flour.")
                heard, text = [], None
                for _, event, data in events:
                    if event == "chunk":
                        heard.append((data.get("agent"), data["text"]))
                    if event == "result":
                        text = data["text"]
                        break
            words = [text for agent, text in heard if agent == "baker"]
            self.assertEqual("".join(words)[:3], "Flo", heard)
            self.assertEqual(text, "Let me ask.\n\nEnjoy.")
            self.agree(model)


class Limits(Case):
    """What may not be comes back in words, and the task goes on."""

    def told(self, server, text="go"):
        done = ask(server, text)
        self.assertEqual(done["status"], "completed", done)
        return json.loads(done["text"])

    def repeat(self, *wishes):
        def think(body):
            said = answers(body)
            return json.dumps(said) if said else calls(*wishes)
        return think

    def test_what_is_wrong_with_a_call_is_told(self):
        wishes = {
            "no tool": (("fly", {}), "there is no tool \"fly\""),
            "not JSON": (("search_agents", "{\"query\": "), "not a JSON"),
            "no query": (("search_agents", {}), "query is needed"),
            "no agent": (delegate("missing", "x"), "missing"),
            "no task": (("delegate_to_agent", {"agentId": "b"}), "task"),
            "itself": (delegate("boss", "x"), "itself"),
            "itself, otherwise spelt": (delegate("BOSS", "x"), "itself"),
            "wrong type": (delegate("b", "x", timeoutMs="soon"), "timeoutMs"),
        }
        with ToolModel(self.repeat(*(w for w, _ in wishes.values()))) as model, \
                serve(model) as server:
            said = self.told(server)
            for (name, (_, words)), one in zip(wishes.items(), said):
                with self.subTest(name):
                    self.assertEqual(one["status"], "error", one)
                    self.assertIn(words, one["error"])
            self.agree(model)

    def test_a_loop_through_models_is_stopped_by_the_chain(self):
        def think(body):
            said = answers(body)
            other = {"boss": "helper", "helper": "boss"}[body["model"]]
            if not said:
                return calls(delegate(other, "you do it"))
            return body["model"] + ":" + json.dumps(said[0])
        with ToolModel(think) as model, \
                serve(model, ("helper", {})) as server:
            done = ask(server, "go")
            self.assertEqual(done["status"], "completed", done)
            # boss heard what helper said, and helper why it may not.
            self.assertTrue(done["text"].startswith("boss:"), done)
            heard = json.loads(done["text"][5:])
            self.assertEqual(heard["status"], "completed")
            inner = json.loads(heard["response"].removeprefix("helper:"))
            self.assertEqual(inner["status"], "error")
            self.assertIn("works only once in a chain", inner["error"])
            self.assertEqual(len(model.calls), 4)
            tasks = server.call("GET", "/api/tasks").json()["items"]
            self.assertEqual(len(tasks), 2)
            self.agree(model)

    def test_who_may_not_delegate_has_no_tools(self):
        none = {"delegation": {"allowAgents": []}}
        flat = {"delegation": {"maxDepth": 0}}
        with ToolModel(lambda body: "tools" if "tools" in body else
                       "none") as model, \
                serve(model, ("none", none), ("flat", flat)) as server:
            for name, text in (("boss", "tools"), ("none", "none"),
                               ("flat", "none")):
                self.assertEqual(ask(server, "?", executor={"name": name})
                                 ["text"], text, name)
        with ToolModel(lambda body: str("tools" in body)) as model, \
                serve(model, settings={"tools": False}) as server:
            self.assertEqual(ask(server, "?")["text"], "False")

    def test_depth_and_allowed_agents_are_told(self):
        def think(body):
            said = answers(body)
            if said:
                return json.dumps(said[0])
            to = {"boss": "helper", "helper": "third"}[body["model"]]
            return calls(delegate(to, "x"))
        boss = {"default": True, "delegation": {"maxDepth": 1}}
        allowed = {"delegation": {"allowAgents": ["missing"]}}
        for fields, words in ((boss, "maxDepth"), (None, "allowAgents")):
            with ToolModel(think) as model, Server(
                    agents=[{"id": "boss", "model": "tools/boss",
                             **(fields or {"default": True})},
                            {"id": "helper", "model": "tools/helper",
                             **(allowed if fields is None else {})},
                            {"id": "third", "model": "tools/third"}],
                    config={"models": {"tools": {"baseUrl": model.url + "/v1",
                                                 "kind": model.kind}},
                            "deliver": QUICK}) as server:
                said = json.loads(self.told(server)["response"])
                self.assertIn(words, said["error"])
                self.agree(model)

    def test_a_search_shows_what_its_user_sees(self):
        with ToolModel(self.repeat(("search_agents",
                                    {"query": "secret recipes"}))) as model, \
                serve(model) as server:
            anna, bert = server.user("anna"), server.user("bert")
            server.call("POST", "/api/agents", {
                "name": "annas", "description": "secret recipes",
                "url": "echo:", "visibility": "private"}, token=anna)
            for token, seen in ((anna, ["annas"]), (bert, [])):
                done = server.call("POST", "/api/messages", {
                    "text": "who?", "executor": {"name": "boss"}},
                    token=token).json()
                self.assertEqual([a["agentId"] for a in
                                  json.loads(done["text"])[0]["agents"]],
                                 seen)


class Ends(Case):
    def test_a_cancel_ends_model_and_delegate(self):
        never = threading.Event()
        with ToolModel(lambda body: calls(delegate("slow", "x"))) as model, \
                serve(model) as server, \
                Worker(server, "slow", "", lambda: never.wait(60)) as slow:
            task = ask(server, "go", wait_ms=0)["task_id"]
            eventually(lambda: slow.tasks, "it was given on")
            server.call("POST", f"/api/tasks/{task}/cancel")
            path = "/api/tasks/" + slow.tasks[0]["task_id"]
            eventually(lambda: server.call("GET", path).json()["status"] ==
                       "cancelled", "the child was cancelled too")
            never.set()
            self.assertEqual(len(model.calls), 1)

    def test_after_a_restart_it_is_asked_anew(self):
        is_first, is_there = True, threading.Event()

        def think(body):
            said = answers(body)
            if said:
                return said[0].get("response") or said[0]["error"]
            if is_first:
                return calls(delegate("baker", "first"))
            is_there.wait(60)
            return calls(delegate("baker", "second"))
        with ToolModel(think) as model, tempfile.TemporaryDirectory() as data:
            with serve(model, data=data) as server, Hub(server) as hub:
                token = server.token
                hub.register("baker")
                task = ask(server, "Good morning", wait_ms=0)["task_id"]
                child = hub.heard("task.execute")
                self.assertEqual(child["message"], "first")
                server.kill9()
            is_first = False
            with serve(model, data=data, token=token) as server, \
                    Hub(server) as hub:
                hub.register("baker")
                is_there.set()
                path = "/api/tasks/"
                eventually(lambda: server.call(
                    "GET", path + child["task_id"]).json()["status"] ==
                    "cancelled", "what was delegated before has ended")
                again = hub.next(lambda m: m.get("method") == "task.execute"
                                 and m["params"]["message"] == "second")
                hub.call("task.result", task_id=again["params"]["task_id"],
                         status="completed", text="bread")
                eventually(lambda: server.call("GET", path + task).json()
                           ["status"] == "completed", "it is done")
                self.assertEqual(server.call("GET", path + task).json()
                                 ["result"]["text"], "bread")

    def test_a_model_that_only_calls_is_stopped(self):
        with ToolModel(lambda body: calls(("search_agents",
                                           {"query": "x"}))) as model, \
                serve(model) as server:
            done = ask(server, "go")
            self.assertEqual(done["status"], "failed")
            self.assertEqual(done["error"]["code"], "model_error")
            self.assertEqual(len(model.calls), 17)
            self.assertEqual(model.calls[16].body["tool_choice"],
                             model.no_more)
            self.agree(model)


class Offered(unittest.TestCase):
    """GET /api/tools."""

    def test_both_forms_are_schemas_and_say_the_same(self):
        with Server() as server:
            both = server.call("GET", "/api/tools").json()
            for name in ("openai", "anthropic"):
                alone = server.call("GET", "/api/tools?format=" + name)
                self.assertEqual(alone.json(), both[name])
            ours = {t["function"]["name"]: t["function"]["parameters"]
                    for t in both["openai"]}
            self.assertEqual({t["name"]: t["input_schema"]
                              for t in both["anthropic"]}, ours)
            for schema in ours.values():
                jsonschema.Draft202012Validator.check_schema(schema)
            judge = jsonschema.Draft202012Validator(ours["delegate_to_agent"])
            order = {"agentId": "b", "task": "x", "mode": "async",
                     "timeoutMs": 1, "stream": True, "skill": "s"}
            for good in (order, {"tasks": [order] * 16}):
                judge.validate(good)
            for bad in ({**order, "mode": "x"}, {"tasks": [order] * 17},
                        {"tasks": []}, {**order, "timeoutMs": 0},
                        {**order, "colour": 1}, {"tasks": [{}]}):
                self.assertFalse(judge.is_valid(bad), bad)
            refused = server.call("GET", "/api/tools?format=x")
            self.assertEqual(refused.status, 400)
            self.assertEqual(server.call("GET", "/api/tools",
                                         token=None).status, 401)


if __name__ == "__main__":
    unittest.main()
