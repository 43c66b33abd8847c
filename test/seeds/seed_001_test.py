"""Seed 001, the right agent in milliseconds: the seed's sentences in the demo,
its weights, threshold and learning, overrides and figures. docs/seeds.md has
the rows."""
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

from provider import Provider
from signalbox import (BINARY, DEADLINE_S, OWN, Peer, Server, address_of,
                       clean_environment, metric, ready, request)

WEIGHTS = {"semantic": 0.6, "performance": 0.2, "keyword": 0.15,
           "recency": 0.05}
LARAVEL = "build me a Laravel model with a factory and migration"
ELOQUENT = "create an Eloquent model for orders with a migration"
AGENTS = [
    {"id": "engineer", "url": "echo:",
     "description": "Builds and repairs software, finds bugs in programs",
     "routing": {"keywords": ["code", "debug", "refactor", "deploy"]}},
    {"id": "content-writer", "url": "echo:",
     "description": "Writes articles, letters and marketing text",
     "routing": {"keywords": ["draft", "article", "blog post", "proofread"]}},
    {"id": "main", "url": "echo:", "routing": {"routable": False}},
]


class Demo:
    """signalbox demo, spoken to over HTTP."""

    def __init__(self):
        self.home = tempfile.mkdtemp(prefix="signalbox-demo-")
        self.process = subprocess.Popen(
            [BINARY, "demo", "--json", "--pace", "0", "--listen",
             "127.0.0.1:0"], cwd=self.home, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env={**clean_environment(), "HOME": self.home})
        heard, _, _ = select.select([self.process.stdout], [], [], DEADLINE_S)
        said = json.loads(self.process.stdout.readline() if heard else "{}")
        self.address, self.token = address_of(said["url"]), said["token"]
        ready(self.address)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=DEADLINE_S)
        shutil.rmtree(self.home)

    def call(self, method, path, body=None, *headers):
        with Peer(socket.create_connection(
                self.address, DEADLINE_S)) as peer:
            data = json.dumps(body).encode() if body is not None else b""
            peer.send(request(method, path, "Connection: close",
                              "Authorization: Bearer " + self.token, *headers,
                              host="{}:{}".format(*self.address).encode(),
                              body=data))
            return peer.response()

    def route(self, text):
        return self.call("POST", "/api/route", {"text": text}).json()

    def send(self, text, **fields):
        return self.call("POST", "/api/messages",
                         {"text": text, **fields}).json()


class InTheDemo(unittest.TestCase):
    """The seed's own sentences, to the agents that it names."""

    @classmethod
    def setUpClass(cls):
        cls.demo = cls.enterClassContext(Demo())

    def goes(self, text, agent):
        said = self.demo.route(text)
        self.assertEqual((said["agent"], said["layer"]), (agent, "semantic"),
                         said)
        return said

    def on_no_card(self, text):
        """What is an example on a card is nearest to it by being there."""
        for agent in self.demo.call("GET", "/api/agents").json()["items"]:
            card = self.demo.call("GET", "/api/agents/" + agent["name"]).json()
            self.assertNotIn(text.lower(), json.dumps(card).lower())
        return text

    def test_001_01_a_laravel_model_is_for_the_engineer(self):
        self.goes(LARAVEL, "engineer")
        self.goes(self.on_no_card(ELOQUENT), "engineer")

    def test_001_02_trends_are_for_the_researcher(self):
        self.goes("research AI trends in healthcare", "researcher")
        self.goes(self.on_no_card("find out what is known about batteries "
                                  "without lithium"), "researcher")

    def test_001_03_an_eloquent_scope_is_for_the_engineer(self):
        self.goes(self.on_no_card("Write me a Laravel Eloquent scope for "
                                  "active users"), "engineer")

    def test_001_04_no_language_model_is_asked_where_it_goes(self):
        said = self.demo.send(LARAVEL)
        self.assertEqual((said["agent"], said["decision"]["layer"]),
                         ("engineer", "semantic"))
        record = self.demo.call(
            "GET", "/api/decisions/" + said["decision"]["id"]).json()
        self.assertIsNone(record["intent"])
        self.assertIs(record["rules"]["intent"], False)

    def test_001_05_the_record_says_how_long_choosing_took(self):
        self.assertGreater(self.demo.route(LARAVEL)["decide_us"], 0)

    def test_001_18_every_agent_is_compared(self):
        said = self.demo.route(LARAVEL)
        self.assertEqual(said["considered"], 4)
        self.assertEqual({c["agent"] for c in said["candidates"]},
                         {"engineer", "researcher", "content-writer",
                          "automation-operator"})

    def test_001_26_who_stays_below_goes_to_the_default_with_its_tools(self):
        said = self.demo.route("zebra quagga okapi")
        self.assertEqual(said["layer"], "default")

    def test_001_35_a_reminder_is_for_the_automation_operator(self):
        for text in ("Set a reminder for tomorrow",
                     self.on_no_card("wake me every morning at seven")):
            said = self.goes(text, "automation-operator")
            scores = {c["agent"]: c["semantic"] for c in said["candidates"]}
            self.assertGreater(scores["automation-operator"],
                               2 * scores["engineer"])

    def keywords(self, agent):
        return self.demo.call("GET", "/api/agents/" + agent).json()[
            "routing"]["keywords"]

    def test_001_37_keywords_of_the_content_writer(self):
        self.assertEqual(self.keywords("content-writer"),
                         ["draft", "article", "blog post", "proofread"])

    def test_001_38_keywords_of_the_engineer(self):
        self.assertEqual(self.keywords("engineer"),
                         ["code", "debug", "refactor", "deploy"])

    def test_001_39_a_migration_is_not_caught_by_the_writer(self):
        self.goes("write me a Laravel migration", "engineer")

    def test_001_40_data_processing_is_for_the_engineer(self):
        self.assertNotIn("data", self.keywords("researcher"))
        self.goes("write a data processing script", "engineer")
        bare = self.demo.route("data processing")
        self.assertEqual((bare["layer"], bare["band"]), ("default", "unsure"))

    def test_001_42_a_follow_up_stays(self):
        first = self.demo.send(LARAVEL, conversation_id="follow")
        second = self.demo.send("now add a LazyCollection CSV importer to it.",
                                conversation_id="follow")
        self.assertEqual([first["agent"], second["agent"]], ["engineer"] * 2)
        self.assertEqual(second["decision"]["layer"], "sticky")

    def test_001_43_another_topic_in_the_same_talk_stays_too(self):
        self.demo.send(LARAVEL, conversation_id="shift")
        for text in ("research AI trends", "now summarise that"):
            said = self.demo.send(text, conversation_id="shift")
            self.assertEqual((said["agent"], said["decision"]["layer"]),
                             ("engineer", "sticky"))

    def test_001_53_a_blog_post_is_for_the_content_writer(self):
        said = self.goes("draft me a blog post about...", "content-writer")
        best = said["candidates"][0]
        self.assertEqual((best["agent"], best["keyword"]),
                         ("content-writer", 1.0))
        self.assertEqual(said["band"], "confident")

    def test_001_54_what_is_ambiguous_scores_lower(self):
        sure = self.goes("draft me a blog post about...", "content-writer")
        less = self.goes("set up a workflow", "automation-operator")
        self.assertLess(less["score"], sure["score"])
        self.assertEqual(less["band"], "confident")

    def test_001_55_a_campaign_is_ambiguous_and_for_the_default_agent(self):
        said = self.demo.route("Help me plan a marketing campaign")
        self.assertEqual((said["agent"], said["layer"], said["band"]),
                         ("researcher", "default", "unsure"))
        self.assertEqual(said["candidates"][0]["agent"], "content-writer")

    def gap(self, text):
        near = sorted((c["semantic"] for c in
                       self.goes(text, "engineer")["candidates"]), reverse=True)
        return round(near[0] - near[1], 2)

    def test_001_64_how_far_apart_the_first_two_are(self):
        gaps = {text: self.gap(self.on_no_card(text)) for text in (
            "write a Python function that parses CSV files", ELOQUENT,
            "why does my unit test fail with a segfault")}
        self.assertEqual(list(gaps.values()), [0.13, 0.3, 0.33], gaps)


class Case(unittest.TestCase):
    def call(self, method, path, body=None, token=OWN, status=200):
        got = self.server.call(method, path, body, token=token)
        self.assertEqual(got.status, status, got)
        return got.json() if got.body else None

    def send(self, text, token=OWN, **fields):
        return self.call("POST", "/api/messages", {"text": text, **fields},
                         token=token)

    def record(self, said):
        return self.call("GET", "/api/decisions/" + said["decision"]["id"])

    def default(self, name):
        return next(s["default"] for s in
                    self.call("GET", "/api/config")["settings"]
                    if s["name"] == name)


class Decisions(Case):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Server(
            "--set", "learning.followUpMs=0", "--set", "learning.everyMs=0",
            config={"agents": {"list": AGENTS, "default": "main"}}))
        cls.anna = cls.server.user("anna")
        cls.server.ready()

    CODE = "find the bug in this program and debug it"

    def test_001_12_a_profile_has_the_system_prompt_and_the_keywords(self):
        said = {"url": "echo:", "visibility": "public",
                "description": "Does one thing and does it well"}
        for name, routing in (
                ("plain", {}), ("tuner", {"system_prompt": "You tune pianos "
                                          "and harpsichords."}),
                ("sailor", {"keywords": ["regatta", "sailing boat"]})):
            self.call("PUT", "/api/agents/" + name,
                      {**said, "routing": routing}, status=201)
            self.addCleanup(self.server.call, "DELETE", "/api/agents/" + name)
        self.server.ready()
        for text, nearer in (("tune my piano", "tuner"),
                             ("a sailing boat for the regatta", "sailor")):
            near = {c["agent"]: c["cosine"] for c in self.call(
                "POST", "/api/route", {"text": text})["candidates"]}
            self.assertGreater(near[nearer], near["plain"] + 0.1, near)

    def test_001_15_profiles_are_made_before_the_first_message(self):
        self.assertEqual(metric(self.server, "signalbox_vectors_ready"), 1)
        self.assertEqual(metric(self.server, "signalbox_agents_unembedded"), 0)

    def test_001_16_who_names_an_agent_is_not_routed(self):
        said = self.send(self.CODE, executor={"name": "content-writer"})
        self.assertEqual((said["agent"], said["decision"]["layer"]),
                         ("content-writer", "explicit"))

    def test_001_17_the_message_is_embedded_in_the_same_space(self):
        d = self.record(self.send(self.CODE))
        self.assertTrue(d["vector"])
        self.assertEqual(d["versions"]["model"], "builtin")

    def weight(self, name):
        d = self.record(self.send(self.CODE))
        self.assertEqual(self.default("routing.weights." + name),
                         WEIGHTS[name])
        return d["weights"][name]

    def test_001_19_meaning_counts_for_sixty_per_cent(self):
        self.assertEqual(self.weight("semantic"), 0.6)

    def test_001_20_performance_counts_for_twenty(self):
        self.assertEqual(self.weight("performance"), 0.2)

    def test_001_21_keywords_count_for_fifteen(self):
        self.assertEqual(self.weight("keyword"), 0.15)

    def test_001_22_recency_counts_for_five(self):
        self.assertEqual(self.weight("recency"), 0.05)

    def test_001_23_a_keyword_is_there_or_not(self):
        d = self.record(self.send(self.CODE))
        got = {c["agent"]: (c["keyword"], c["matched_keyword"])
               for c in d["candidates"]}
        self.assertEqual(got, {"engineer": (1.0, "debug"),
                               "content-writer": (0.0, None)})

    def test_001_24_recency_decays_over_48_hours(self):
        self.assertEqual(self.default("routing.recencyMs"), 48 * 3600 * 1000)

    def test_001_27_a_conversation_keeps_its_agent(self):
        first = self.send(self.CODE, conversation_id="stays")
        again = self.send("now summarise that", conversation_id="stays")
        self.assertEqual((first["decision"]["layer"],
                          again["decision"]["layer"], again["agent"]),
                         ("semantic", "sticky", first["agent"]))

    def test_001_28_every_decision_is_on_record(self):
        said = self.send(self.CODE)
        d = self.record(said)
        self.assertEqual((d["task_id"], d["text"]),
                         (said["task_id"], self.CODE))

    def test_001_29_outcomes_are_looked_at_every_ten_minutes(self):
        self.assertEqual(self.default("learning.everyMs"), 600000)

    def test_001_33_the_learning_rate_is_a_tenth(self):
        self.assertEqual(self.default("learning.rate"), 0.1)

    def test_001_44_a_switch_is_seen_marked_and_logged(self):
        said = self.send(self.CODE, conversation_id="switch")
        self.send("no, you", conversation_id="switch",
                  executor={"name": "content-writer"})
        d = self.record(said)
        self.assertEqual((d["overridden_to"], d["verdict"]),
                         ("content-writer", "negative"))
        feed = self.call("GET", "/api/feed?last=50")["items"]
        switched = [e["data"] for e in feed
                    if e["type"] == "conversation.switched"
                    and e["conversation_id"] == "switch"]
        self.assertEqual([(e["from"], e["to"]) for e in switched],
                         [("engineer", "content-writer")])

    def test_001_46_choosing_is_timed_in_the_metrics(self):
        text = self.server.get("/metrics").body.decode()
        self.assertIn("signalbox_decide_seconds_bucket{", text)
        self.send(self.CODE)
        self.assertGreater(metric(self.server,
                                  "signalbox_decide_seconds_count"), 0)

    def test_001_63_latency_and_errors_are_there_at_once(self):
        d = self.record(self.send(self.CODE))
        self.assertIsNotNone(d["latency_ms"])
        self.assertEqual((d["error_code"], d["verdict"]), (None, "open"))

    def test_001_65_what_came_of_it(self):
        d = self.record(self.send(self.CODE.ljust(2499, ".")))
        self.assertEqual((d["answer_chars"], d["error_code"],
                          d["overridden_to"]), (2499, None, None))

    def test_001_50_new_agents_begin_in_the_middle(self):
        with Server(agents=AGENTS) as server:
            server.ready()
            said = server.call("POST", "/api/route", {"text": self.CODE})
            for c in said.json()["candidates"]:
                self.assertEqual((c["performance"], c["recency"]), (0.5, 0.0))

    def table(self, name):
        return self.call("GET", "/api/analytics/" + name)["items"]

    def test_001_57_by_agent(self):
        self.send(self.CODE)
        row = next(r for r in self.table("agents")
                   if r["agent"] == "engineer")
        for column in ("decisions", "confidence", "overrides",
                       "answer_chars"):
            self.assertIn(column, row)

    def test_001_56_rates_are_of_what_was_routed(self):
        def counts():
            row = self.table("summary")[0]
            return row["decisions"], row["routed"]
        before = counts()
        self.send(self.CODE, conversation_id="counted")
        self.send("go on", conversation_id="counted")
        self.send("and you", executor={"name": "content-writer"})
        after = counts()
        self.assertEqual((after[0] - before[0], after[1] - before[1]), (3, 1))
        row = self.table("summary")[0]
        self.assertAlmostEqual(row["override_rate"],
                               row["overrides"] / row["routed"])

    def test_001_58_by_type_of_query(self):
        self.send(self.CODE)
        self.assertTrue({"type", "name", "agent", "decisions", "confidence",
                         "positive"} <= set(self.table("types")[0]))

    def test_001_59_where_nobody_is_sure(self):
        self.send("zebra quagga okapi")
        gaps = self.table("gaps")
        self.assertTrue(any("zebra quagga okapi" in g["samples"]
                            for g in gaps), gaps)

    def test_001_60_what_each_signal_and_keyword_is_worth(self):
        self.send(self.CODE)
        self.assertEqual([r["signal"] for r in self.table("signals")],
                         list(WEIGHTS))
        words = {(r["keyword"], r["agent"]) for r in self.table("keywords")}
        self.assertIn(("debug", "engineer"), words)

    def test_001_61_the_dashboard_has_them(self):
        page = self.server.call("GET", "/", None, "Accept: text/html")
        self.assertEqual(page.status, 200)
        folder = os.path.join(os.environ["SIGNALBOX_SOURCE"], "web/pages")
        self.assertTrue(os.path.exists(os.path.join(folder, "analytics.js")))


class Strangers(unittest.TestCase):
    """A keyword of another user's public agent."""

    TEXT = "restore my old harpsichord"

    def keyword(self, **routing):
        with Server(config={"agents": {"list": AGENTS}, "routing": routing}) \
                as server:
            zoe, anna = server.user("zoe"), server.user("anna")
            made = server.call("POST", "/api/agents", {
                "name": "tuner", "description": "Restores old instruments",
                "url": "echo:", "visibility": "public",
                "routing": {"keywords": ["harpsichord"]}}, token=zoe)
            self.assertEqual(made.status, 201, made)
            server.ready()
            said = server.call("POST", "/api/route", {"text": self.TEXT},
                               token=anna).json()
            return next(c["keyword"] for c in said["candidates"]
                        if c["agent"] == "tuner")

    def test_001_62_a_stranger_s_keyword_counts_half_or_whole(self):
        self.assertEqual(self.keyword(), 0.5)
        self.assertEqual(self.keyword(trust="all"), 1.0)


class Preset(Case):
    """routing.preset "seed": the plain formula."""

    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Server(config={
            "agents": {"list": AGENTS, "default": "main"},
            "routing": {"preset": "seed"}}))
        cls.server.ready()

    def test_001_25_the_threshold_is_thirty_hundredths(self):
        d = self.record(self.send("find the bug in this program, debug it"))
        self.assertEqual((d["threshold"], d["rules"]["auto"]), (0.3, False))
        self.assertGreaterEqual(d["score"], 0.3)
        d = self.record(self.send("zebra quagga okapi"))
        self.assertEqual((d["agent"], d["layer"]), ("main", "default"))
        self.assertLess(d["candidates"][0]["score"], 0.3)

    def test_001_49_the_final_score_is_the_weighted_sum(self):
        d = self.record(self.send("find the bug in this program, debug it"))
        for c in d["candidates"]:
            self.assertAlmostEqual(
                c["score"], sum(WEIGHTS[s] * c[s] for s in WEIGHTS), 5)


class FourThousandNumbers(Case):
    def test_001_14_a_model_of_4096_numbers_over_http(self):
        with Provider(dims=4096) as provider, Server(config={
                "agents": {"list": AGENTS, "default": "main"},
                "embed": {"kind": "http", "http": {
                    "url": provider.url, "model": "Qwen3-Embedding-8B"}}}) \
                as self.server:
            self.server.ready()
            d = self.record(self.send("find the bug"))
            self.assertEqual({r["model"] for r in provider.requests},
                             {"Qwen3-Embedding-8B"})
            # Two bytes a number and eight in front, in hexadecimal.
            self.assertEqual(len(d["vector"]), 2 * (2 * 4096 + 8))


if __name__ == "__main__":
    unittest.main()
