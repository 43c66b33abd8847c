"""Seed 003, many agents behind one gateway: bindings, prefixes, the default,
the classifier and delegate_to_agent, with the seed's own configuration and
commands. docs/seeds.md has the rows; those of pi are in seed_003_pi_test.py."""
import json
import os
import re
import sys
import tempfile
import unittest

from classifier import Classifier, sure
from hiring import House, done, given
from hub_peer import Hub, Refused
from signalbox import Server, metric

BINDINGS = json.loads("""[
    { "agentId": "code", "match": { "channel": "telegram", "peer": { "kind": "group", "id": "-1001234" } } },
    { "agentId": "ops", "match": { "channel": "telegram", "peer": { "kind": "group", "id": "-1005678" } } },
    { "agentId": "docs", "match": { "channel": "discord", "guildId": "guild-abc" } }
  ]""")
LIMITS = """{
  "agents": {
    "list": [
      {
        "id": "code",
        "delegation": {
          "allowAgents": ["docs", "ops"],  // 可委派的目标 agent
          "maxConcurrent": 2,               // 最大并发委派数
          "maxDepth": 1                     // 禁止链式委派（A→B→C）
        }
      }
    ]
  }
}
"""
DELEGATION = json.loads(re.sub("//.*", "", LIMITS))["agents"]["list"][0][
    "delegation"]
ECHOES = [{"id": name, "url": "echo:"} for name in ("code", "docs", "ops")]
GROUP = {"channel": "telegram", "peer": {"kind": "group", "id": "-1001234"}}
LAYERS = {"layers": ["explicit", "prefix", "sticky", "binding", "default"]}
# A program that answers with the id of its process.
PROGRAM = """
import json, sys, uuid
process = str(uuid.uuid4())  # its number may be that of a namespace of its own
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") == "task.execute":
        said = {"status": "completed", "text": process}
    else:
        said = {}
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"],
                          "result": said}), flush=True)
"""


class Layers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Server(config={
            "agents": {"list": ECHOES, "default": "code"},
            "bindings": BINDINGS, "routing": LAYERS}))

    def send(self, text, **fields):
        said = self.server.call("POST", "/api/messages",
                                {"text": text, **fields})
        self.assertEqual(said.status, 200, said)
        return said.json()

    def chosen(self, text, **fields):
        said = self.send(text, **fields)
        return said["agent"], said["decision"]["layer"]

    def test_003_01_several_agents_behind_one_server(self):
        listed = self.server.call("GET", "/api/agents").json()["items"]
        self.assertEqual([a["name"] for a in listed], ["code", "docs", "ops"])

    def test_003_02_first_where_a_message_comes_from(self):
        self.assertEqual(self.chosen("hi", source=GROUP), ("code", "binding"))

    def test_003_03_then_what_it_begins_with(self):
        self.assertEqual(self.chosen("/ops hi"), ("ops", "prefix"))

    def test_003_04_else_the_default(self):
        self.assertEqual(self.chosen("hi"), ("code", "default"))

    def test_003_08_the_group_of_code(self):
        self.assertEqual(self.chosen("review it", source=GROUP),
                         ("code", "binding"))

    def test_003_09_the_group_of_ops(self):
        source = {"channel": "telegram",
                  "peer": {"kind": "group", "id": "-1005678"}}
        self.assertEqual(self.chosen("hi", source=source), ("ops", "binding"))

    def test_003_10_the_guild_of_docs(self):
        source = {"channel": "discord", "guildId": "guild-abc"}
        self.assertEqual(self.chosen("hi", source=source), ("docs", "binding"))

    def test_003_12_slash_code(self):
        said = self.send("/code review this PR")
        self.assertEqual((said["agent"], said["text"]),
                         ("code", "review this PR"))

    def test_003_13_slash_docs(self):
        said = self.send("/docs explain the API")
        self.assertEqual((said["agent"], said["text"]),
                         ("docs", "explain the API"))

    def test_003_14_slash_ops(self):
        said = self.send("/ops check server status")
        self.assertEqual((said["agent"], said["text"]),
                         ("ops", "check server status"))

    def test_003_15_a_prefix_goes_before_a_binding(self):
        self.assertEqual(self.chosen("/docs explain the API", source=GROUP),
                         ("docs", "prefix"))

    def test_003_16_the_commands_are_made_of_the_ids(self):
        got = self.server.call("GET", "/api/commands").json()["items"]
        self.assertEqual([c["command"] for c in got],
                         ["/code", "/docs", "/ops"])

    def test_003_47_figures_of_each_agent_from_its_first_task_on(self):
        with Server(agents=ECHOES) as server:
            server.send("x", to="docs")
            text = server.get("/metrics").body.decode()
        for line in ('signalbox_agent_completed_total{agent="docs"} 1',
                     'signalbox_agent_latency_seconds_count{agent="docs"} 1',
                     'signalbox_agent_delegations_received_total'
                     '{agent="docs",outcome="completed"} 0'):
            self.assertIn(line + "\n", text)

    def test_003_24_the_classifier_is_off_unless_it_is_turned_on(self):
        settings = self.server.call("GET", "/api/config").json()["settings"]
        found = {s["name"]: s["default"] for s in settings}
        of = "routing.intentClassifier."
        self.assertIs(found[of + "enabled"], False)


class Particular(unittest.TestCase):
    """peer > guild/team > account > channel > default."""

    def test_003_11_the_most_particular_binding_wins(self):
        names = ("peer", "guild", "team", "account", "channel", "default")
        peer = {"kind": "group", "id": "1"}
        match = {"channel": {}, "account": {"accountId": "a"},
                 "team": {"teamId": "t"}, "guild": {"guildId": "g"},
                 "peer": {"peer": peer}}
        with Server(config={
                "agents": {"list": [{"id": n, "url": "echo:"} for n in names],
                           "default": "default"},
                "bindings": [{"agentId": n, "match": {"channel": "x", **m}}
                             for n, m in match.items()],
                "routing": LAYERS}) as server:
            def chosen(**source):
                return server.call("POST", "/api/route", {
                    "text": "hi", "source": source}).json()["agent"]
            everything = {"accountId": "a", "guildId": "g", "peer": peer}
            self.assertEqual(chosen(channel="x", **everything), "peer")
            del everything["peer"]
            self.assertEqual(chosen(channel="x", **everything), "guild")
            self.assertEqual(chosen(channel="x", accountId="a", teamId="t"),
                             "team")
            self.assertEqual(chosen(channel="x", accountId="a"), "account")
            self.assertEqual(chosen(channel="x"), "channel")
            self.assertEqual(chosen(channel="y"), "default")


class Intent(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.classifier = cls.enterClassContext(Classifier())
        agents = [{"id": "code", "url": "echo:",
                   "description": "Reviews and writes programs"},
                  {"id": "docs", "url": "echo:",
                   "description": "Explains interfaces"}]
        cls.server = cls.enterClassContext(Server(config={
            "agents": {"list": agents, "default": "code"},
            "routing": {"layers": [*LAYERS["layers"], "intent"],
                        "intentClassifier": {
                            "enabled": True, "model": "haiku",
                            "endpoint": cls.classifier.url,
                            "timeoutMs": 30000}}}))

    def record(self, answer):
        self.classifier.answer = lambda question: answer
        said = self.server.call("POST", "/api/messages",
                                {"text": "what does it mean?"}).json()
        return self.server.call(
            "GET", "/api/decisions/" + said["decision"]["id"]).json()

    def test_003_05_a_language_model_may_be_asked(self):
        d = self.record(sure("docs", 0.95))
        self.assertEqual((d["agent"], d["layer"]), ("docs", "intent"))

    def test_003_19_above_eight_tenths_it_goes_before_the_default(self):
        d = self.record(sure("docs", 0.81))
        self.assertEqual((d["agent"], d["layer"], d["threshold"]),
                         ("docs", "intent", 0.8))

    def test_003_20_its_answer_has_three_fields(self):
        d = self.record({"agentId": "docs", "confidence": 0.9,
                         "reasoning": "it is a question"})
        self.assertEqual((d["intent"]["agent"], d["intent"]["confidence"],
                          d["intent"]["reasoning"]),
                         ("docs", 0.9, "it is a question"))

    def test_003_21_it_has_half_a_second(self):
        settings = self.server.call("GET", "/api/config").json()["settings"]
        found = {s["name"]: s["default"] for s in settings}
        self.assertEqual(found["routing.intentClassifier.timeoutMs"], 500)

    def test_003_22_at_or_below_the_others_decide(self):
        for confidence in (0.8, 0.5):
            d = self.record(sure("docs", confidence))
            self.assertEqual((d["agent"], d["layer"]), ("code", "default"))

    def test_003_25_it_is_told_what_agents_say_of_themselves(self):
        self.record(sure("docs"))
        _, body = self.classifier.questions[-1]
        data = json.loads(body["messages"][1]["content"])
        self.assertEqual(
            {a["agentId"]: a["description"] for a in data["agents"]},
            {"code": "Reviews and writes programs",
             "docs": "Explains interfaces"})


class Haiku(unittest.TestCase):
    def test_003_26_haiku_decides_by_its_own_api(self):
        with Classifier() as haiku, Server(config={
                "agents": {"list": ECHOES, "default": "code"},
                "routing": {"intentClassifier": {
                    "enabled": True, "kind": "anthropic",
                    "endpoint": haiku.url, "model": "claude-haiku-4-5",
                    "timeoutMs": 30000}}}) as server:
            haiku.answer = lambda question: sure("docs", 0.9)
            said = server.call("POST", "/api/messages",
                               {"text": "what does it mean?"}).json()
            self.assertEqual((said["agent"], said["decision"]["layer"]),
                             ("docs", "intent"))
            headers, body = haiku.questions[0]
            self.assertEqual(headers["anthropic-version"], "2023-06-01")
            self.assertEqual(body["model"], "claude-haiku-4-5")


class Tool(unittest.TestCase):
    """delegate_to_agent, as the hub's agent.delegate."""

    @classmethod
    def setUpClass(cls):
        cls.house = cls.enterClassContext(House())
        cls.house.begin()

    def schema(self):
        tools = self.house.server.call("GET", "/api/tools").json()["openai"]
        return next(t["function"] for t in tools
                    if t["function"]["name"] == "delegate_to_agent")

    def test_003_27_the_gateway_has_the_tool(self):
        self.assertIn("Have another agent do something",
                      self.schema()["description"])

    def test_003_28_its_params(self):
        fields = self.schema()["parameters"]["properties"]
        types = {name: fields[name]["type"] for name in
                 ("agentId", "task", "mode", "timeoutMs", "stream")}
        self.assertEqual(types, {"agentId": "string", "task": "string",
                                 "mode": "string", "timeoutMs": "integer",
                                 "stream": "boolean"})
        self.assertEqual(fields["mode"]["enum"], ["sync", "async"])

    def test_003_29_sync_waits_a_minute_unless_it_is_told(self):
        field = self.schema()["parameters"]["properties"]["timeoutMs"]
        self.assertIn("60000 unless it is given", field["description"])

    def delegate(self, **more):
        return self.house.boss.start("agent.delegate", **{
            "agentId": "web-search-agent", "task": "look", "mode": "sync",
            **more})

    def test_003_30_completed_has_the_response(self):
        id = self.delegate()
        done(self.house.worker, given(self.house.worker), text="found")
        got = self.house.boss.answer(id)
        self.assertEqual((got["status"], got["response"]),
                         ("completed", "found"))

    def test_003_31_timeout_and_error_are_told_apart(self):
        id = self.delegate(timeoutMs=50)
        given(self.house.worker)
        self.assertEqual(self.house.boss.answer(id)["status"], "timeout")
        self.house.worker.heard("task.cancel")
        id = self.delegate()
        done(self.house.worker, given(self.house.worker), status="failed",
             error="no")
        got = self.house.boss.answer(id)
        self.assertEqual((got["status"], got["error"]), ("error", "no"))

    def test_003_32_async_gives_a_key_to_ask_with(self):
        got = self.house.boss.answer(self.delegate(mode="async"))
        self.assertEqual(got["status"], "accepted")
        task = given(self.house.worker)
        asked = self.house.boss.call("delegation.get",
                                     sessionKey=got["sessionKey"])
        self.assertEqual(asked["status"], "accepted")
        done(self.house.worker, task, text="found")
        told = self.house.boss.heard("delegation.result")
        self.assertEqual(told["sessionKey"], got["sessionKey"])


class Limits(unittest.TestCase):
    """The seed's delegation block on agents of the hub."""

    @classmethod
    def setUpClass(cls):
        cls.house = cls.enterClassContext(House(agents=[]))
        cls.house.anna = cls.house.server.user("anna")
        cls.hubs = {name: cls.house.agent(name, **card) for name, card in (
            ("code", {"delegation": DELEGATION}), ("docs", {}), ("ops", {}),
            ("secret", {}))}

    def test_003_40_the_block_with_its_comments_is_a_configuration(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "signalbox.jsonc")
            with open(path, "w", encoding="utf-8") as f:
                f.write(LIMITS)
            with Server("--config", path) as server:
                card = server.call("GET", "/api/agents/code").json()
        self.assertEqual(card["delegation"], {
            "allowAgents": ["docs", "ops"], "maxConcurrent": 2,
            "maxDepth": 1})

    def test_003_41_allow_agents(self):
        with self.assertRaises(Refused) as caught:
            self.hubs["code"].call("agent.send_task", agent_id="secret",
                                   message="x", skill_id="any")
        self.assertEqual(caught.exception.name, "delegation_not_allowed")
        ack = self.hubs["code"].call("agent.send_task", agent_id="docs",
                                     message="x", skill_id="any")
        self.assertEqual(ack["status"], "accepted")
        done(self.hubs["docs"], given(self.hubs["docs"]), text="ok")
        self.hubs["code"].heard("delegation.result")

    def test_003_42_two_at_once_and_the_third_waits(self):
        code, docs = self.hubs["code"], self.hubs["docs"]
        for i in range(3):
            ack = code.call("agent.send_task", agent_id="docs",
                            message=str(i), skill_id="any")
            self.assertEqual(ack["status"], "accepted")
        tasks = [given(docs), given(docs)]
        docs.call("ping")
        self.assertEqual([m for m in docs.waiting
                          if m.get("method") == "task.execute"], [])
        done(docs, tasks[0], text="ok")
        tasks.append(given(docs))
        self.assertEqual([t["message"] for t in tasks], ["0", "1", "2"])
        for task in tasks[1:]:
            done(docs, task, text="ok")
        for _ in tasks:
            code.heard("delegation.result")

    def test_003_43_no_chain_where_the_depth_is_one(self):
        id = self.hubs["code"].start("agent.delegate", agentId="docs",
                                     task="x", mode="sync")
        task = given(self.hubs["docs"])
        got = self.hubs["docs"].call("agent.delegate", agentId="ops",
                                     task="y", mode="sync")
        self.assertEqual((got["status"], got["code"]),
                         ("error", "delegation_not_allowed"))
        done(self.hubs["docs"], task, text="alone then")
        self.assertEqual(self.hubs["code"].answer(id)["response"],
                         "alone then")


class Speaking(unittest.TestCase):
    """message.send of an agent that works on something."""

    @classmethod
    def setUpClass(cls):
        cls.house = cls.enterClassContext(House(agents=[]))
        cls.server = cls.house.server
        cls.house.anna = cls.server.user("anna")
        cls.hubs = {name: cls.house.agent(name, **card) for name, card in (
            ("code", {"delegation": {"allowAgents": ["docs"]}}),
            ("docs", {}), ("secret", {}))}

    def at_work(self, name="code"):
        self.server.send("go", to=name, token=self.house.anna, wait_ms=0)
        task = given(self.hubs[name])
        self.addCleanup(self.server.call, "POST",
                        f"/api/tasks/{task['task_id']}/cancel")
        return task["task_id"]

    @staticmethod
    def say(hub, to):
        return hub.call("message.send", text="psst", listen=False,
                        executor={"name": to})

    def refused(self, hub, to):
        with self.assertRaises(Refused) as caught:
            self.say(hub, to)
        self.assertEqual(caught.exception.name, "delegation_not_allowed")

    def test_003_48_it_is_part_of_the_task(self):
        parent = self.at_work()
        self.refused(self.hubs["code"], "secret")
        child = self.say(self.hubs["code"], "docs")["task_id"]
        self.assertEqual(self.house.task(child)["parent_task_id"], parent)

    def test_003_49_ping_pong_ends(self):
        self.at_work()
        self.say(self.hubs["code"], "docs")
        while given(self.hubs["docs"])["message"] != "psst":
            pass
        self.refused(self.hubs["docs"], "code")

    def test_003_57_as_its_creator_only_where_the_token_says_so(self):
        made = self.server.call("POST", "/api/tokens", {
            "scopes": ["send", "read", "creator"]}, token=self.house.anna)
        self.assertEqual(made.status, 201, made)
        with Hub(self.server, made.json()["token"]) as hub:
            hub.register("free", delegation={"allowAgents": []})
            self.server.send("go", to="free", token=self.house.anna,
                             wait_ms=0)
            given(hub)
            said = self.say(hub, "secret")
        self.assertIsNone(self.house.task(said["task_id"])["parent_task_id"])


class Programs(unittest.TestCase):
    """Agents that are programs, from a pool of processes."""

    @classmethod
    def setUpClass(cls):
        process = {"command": [sys.executable, "-c", PROGRAM]}
        cls.server = cls.enterClassContext(Server(config={"agents": {
            "defaults": {"process": process, "visibility": "public"},
            "list": [{"id": "a"}, {"id": "b"}]}}))

    def test_003_33_a_process_is_made_when_it_is_needed(self):
        with Server(agents=[{"id": "a", "process": {
                "command": [sys.executable, "-c", PROGRAM]}}]) as server:
            self.assertEqual(metric(server, "signalbox_children"), 0)
            server.send("x", to="a")
            self.assertEqual(metric(server, "signalbox_children"), 1)
            server.send("x", to="a")
            self.assertEqual(metric(server, "signalbox_children"), 1)

    def test_003_44_each_agent_has_processes_of_its_own(self):
        processes = {name: self.server.send("x", to=name).json()["text"]
                     for name in ("a", "b")}
        self.assertNotEqual(processes["a"], processes["b"])

    def test_003_50_defaults_are_laid_under_every_agent(self):
        for name in ("a", "b"):
            card = self.server.call("GET", "/api/agents/" + name).json()
            self.assertEqual(card["visibility"], "public")
            self.assertTrue(card["url"].startswith("process:"))


if __name__ == "__main__":
    unittest.main()
