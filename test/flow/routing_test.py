"""Routing: plain text finds its agent, what was decided is recorded and can be
asked for, and a switch overrides."""
import threading
import unittest

from provider import Provider
from signalbox import Server, eventually, metric

AGENTS = [
    {"id": "general", "description": "Talks about anything", "url": "echo:"},
    {"id": "engineer", "url": "echo:",
     "description": "Builds and repairs software, finds bugs in programs",
     "skills": [{"id": "debug", "name": "Debugging",
                 "description": "Finds and fixes bugs in programs",
                 "examples": ["why does this program segfault"]}]},
    {"id": "cook", "description": "Recipes for bread and soup", "url": "echo:",
     "routing": {"keywords": ["recipe"]}},
    {"id": "hidden", "description": "Recipes for bread and soup, secret ones",
     "url": "echo:", "visibility": "private"},
    {"id": "quiet", "description": "Recipes for bread and soup, by name only",
     "url": "echo:", "routing": {"routable": False}},
]
BUG = "find the bug in my program"
BREAD = "a recipe for bread"
MIB = 1024 * 1024


class Shared(unittest.TestCase):
    config = {"agents": {"default": "general"}}
    agents = AGENTS

    @classmethod
    def setUpClass(cls):
        cls.server = Server(config={
            **cls.config, "agents": {
                **cls.config["agents"], "list": cls.agents}})
        cls.n_users = 0

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def setUp(self):
        type(self).n_users += 1
        self.name = f"user{self.n_users}"
        self.token = self.server.user(self.name)

    def good(self, response, status=200):
        self.assertEqual(response.status, status, response)
        return response.json()

    def refused(self, response, status, code, words=""):
        self.assertEqual(response.status, status, response)
        error = response.json()["error"]
        self.assertEqual(error["code"], code, response)
        self.assertIn(words, error["message"])
        return error

    def post(self, path, text, **fields):
        return self.server.call("POST", path, {"text": text, **fields},
                                token=self.token)

    def send(self, text, **fields):
        return self.good(self.post("/api/messages", text, **fields))

    def route(self, text, **fields):
        return self.good(self.post("/api/route", text, **fields))

    def get(self, path, token=None):
        return self.server.call("GET", path, token=token or self.token)

    def listed(self, query="", token=None):
        return self.good(self.get(f"/api/decisions{query}", token))["items"]


class Choosing(Shared):
    def test_a_text_finds_its_agent_and_the_answer_says_how(self):
        got = self.send(BUG)
        self.assertEqual((got["agent"], got["text"]), ("engineer", BUG))
        d = got["decision"]
        self.assertEqual((d["layer"], d["agent"]), ("semantic", "engineer"))
        self.assertEqual(d["score"], d["candidates"][0]["score"])
        self.assertGreaterEqual(d["score"], d["threshold"])
        self.assertAlmostEqual(
            d["margin"], d["score"] - d["candidates"][1]["score"], 5)
        self.assertEqual([c["agent"] for c in d["candidates"]][:1],
                         ["engineer"])
        self.assertTrue(d["reason"])
        task = self.good(self.get(f"/api/tasks/{got['task_id']}"))
        self.assertEqual(task["skill"], d["skill"])

    def test_only_who_may_be_seen_and_routed_is_a_candidate(self):
        names = {c["agent"] for c in self.route(BREAD)["candidates"]}
        self.assertEqual(names, {"general", "engineer", "cook"})
        self.assertEqual(self.send(BREAD)["agent"], "cook")
        self.assertEqual(self.send("x", executor={"name": "quiet"})["agent"],
                         "quiet")

    def test_a_conversation_stays_with_its_agent_until_it_is_switched(self):
        first = self.send(BREAD, conversation_id="c")
        self.assertEqual(first["agent"], "cook")
        again = self.send(BUG, conversation_id="c")
        self.assertEqual((again["agent"], again["decision"]["layer"]),
                         ("cook", "sticky"))
        self.assertTrue(self.route("/engineer x",
                                   conversation_id="c")["switches"])
        other = self.send("/engineer please", conversation_id="c")
        self.assertEqual((other["agent"], other["text"]),
                         ("engineer", "please"))
        self.assertEqual(self.send("ok", conversation_id="c")["agent"],
                         "engineer")
        d = self.good(self.get(f"/api/decisions/{first['decision']['id']}"))
        self.assertEqual(
            (d["verdict"], d["overridden_to"], d["overridden_by"]),
            ("negative", "engineer", self.name))
        feed = self.good(self.get("/api/feed?last=100"))["items"]
        told = [e for e in feed if e["type"] == "conversation.switched"]
        self.assertEqual(
            [(e["data"]["from"], e["data"]["to"], e["data"]["overrides"])
             for e in told], [("cook", "engineer", d["id"])])

    def test_what_nobody_is_near_to_goes_to_the_default_agent(self):
        d = self.send("qzx vbk")["decision"]
        self.assertEqual((d["layer"], d["agent"], d["score"]),
                         ("default", "general", None))
        self.assertEqual(d["considered"], 3)

    def test_a_look_delivers_and_records_nothing(self):
        d = self.route(BUG, conversation_id="look")
        self.assertEqual((d["layer"], d["agent"], d["id"], d["task_id"]),
                         ("semantic", "engineer", None, None))
        self.assertFalse(d["switches"])
        self.assertIsNone(d["note"])
        self.assertEqual(self.listed(), [])
        self.assertEqual(self.get("/api/conversations/look").status, 404)
        self.refused(self.post("/api/route", "x", task_id="task_" + "0" * 26),
                     400, "bad_request", "task_id")

    def test_many_at_once_in_a_new_conversation_have_one_agent(self):
        got = []
        texts = [BREAD, BUG] * 8
        threads = [threading.Thread(
            target=lambda t=t: got.append(self.post(
                "/api/messages", t, conversation_id="rush"))) for t in texts]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual({r.status for r in got}, {200})
        self.assertEqual(len({r.json()["agent"] for r in got}), 1)
        layers = sorted(r.json()["decision"]["layer"] for r in got)
        self.assertEqual(layers, ["semantic"] + ["sticky"] * 15)


class BadInput(Shared):
    def test_texts_at_their_limits(self):
        self.refused(self.post("/api/messages", ""), 400, "bad_request")
        self.refused(self.post("/api/route", ""), 400, "bad_request")
        large = ((BUG + ". ") * (MIB // len(BUG)))[:MIB]
        got = self.send(large)
        self.assertEqual((got["agent"], got["text"]), ("engineer", large))
        self.refused(self.post("/api/messages", large + "x"), 413, "too_large")

    def test_prefixes_and_names_that_are_nobodys(self):
        self.refused(self.post("/api/messages", "/cook"), 400, "bad_request")
        # Of someone they cannot see: no prefix, and no one is told of it.
        self.assertNotEqual(self.send("/hidden " + BUG)["decision"]["layer"],
                            "prefix")
        error = self.refused(
            self.post("/api/messages", "x", executor={"name": "enginer"}),
            404, "agent_not_found")
        self.assertEqual(error["details"]["nearest"][0], "engineer")
        self.refused(self.post("/api/messages", "x",
                               source={"channel": 7}), 400, "bad_request")


class NoRoute(Shared):
    config = {"agents": {}, "routing": {"threshold": 0.95}}

    def test_nobody_is_an_error_with_the_nearest_and_makes_no_task(self):
        before = metric(self.server, "signalbox_no_route_total")
        for path in "/api/messages", "/api/route":
            error = self.refused(self.post(path, BUG), 422, "no_route")
            self.assertEqual(error["details"]["candidates"][0]["agent"],
                             "engineer")
            self.assertEqual(error["details"]["considered"], 3)
        self.assertEqual(metric(self.server, "signalbox_no_route_total"),
                         before + 1)
        self.assertEqual([d["layer"] for d in self.listed()], ["none"])
        self.assertEqual(self.good(self.get("/api/tasks"))["items"], [])


class Away(Shared):
    """Everybody must come to us, and no one has."""
    config = {"agents": {}}
    agents = [{**a, "url": "ws-agent://" + a["id"]} for a in AGENTS[:3]]

    def test_all_are_away(self):
        for path in "/api/messages", "/api/route":
            error = self.refused(self.post(path, BUG), 422, "no_route",
                                 "none of the 3 agents")
            self.assertEqual(error.get("details", {}).get("candidates", []),
                             [])
        self.refused(self.post("/api/messages", "/cook bread"), 503,
                     "agent_offline")
        self.assertEqual([d["layer"] for d in self.listed()], ["none"])
        self.assertEqual(self.good(self.get("/api/tasks"))["items"], [])


class AwayDefault(Away):
    config = {"agents": {"default": "general"}}

    def test_all_are_away(self):
        d = self.route(BUG)
        self.assertEqual((d["layer"], d["agent"]), ("default", "general"))
        self.assertIn("would be rejected", d["note"])
        self.assertIn('"general" is self-hosted and not connected', d["note"])
        self.refused(self.post("/api/messages", BUG), 503, "agent_offline",
                     "general")
        self.assertEqual(self.listed(), [])


class Decisions(Shared):
    def test_they_are_for_who_asked_and_for_admins(self):
        d = self.send(BUG)["decision"]["id"]
        other = self.server.user(self.name + "b")
        self.assertEqual(self.get(f"/api/decisions/{d}", other).status, 404)
        self.assertEqual(self.listed(token=other), [])
        self.assertEqual(self.listed(f"?requester={self.name}", other), [])
        self.assertEqual(len(self.listed(
            f"?requester={self.name}", self.server.token)), 1)
        self.assertEqual(
            self.get(f"/api/decisions/{d}", self.server.token).status, 200)
        for no in "dec_" + "0" * 26, "dec_x", "task_" + "0" * 26:
            self.assertEqual(self.get(f"/api/decisions/{no}").status, 404)

    def test_one_whole_has_all_it_was_made_from(self):
        got = self.send(BUG, conversation_id="w",
                        source={"channel": "web", "more": 1})
        d = self.good(self.get(f"/api/decisions/{got['decision']['id']}"))
        self.assertEqual(
            (d["task_id"], d["turn"], d["conversation_id"], d["requester"],
             d["text"], d["verdict"], d["source"]),
            (got["task_id"], 1, "w", self.name, BUG, "open",
             {"channel": "web", "more": 1}))
        self.assertEqual(d["versions"]["model"], "builtin")
        self.assertEqual(len(d["versions"]["config"]), 16)
        self.assertGreater(len(d["vector"]), 100)
        best = d["candidates"][0]
        w = d["weights"]
        self.assertAlmostEqual(
            best["score"],
            sum(w[k] * best[k] for k in w) - best["discount"], 5)
        for k in "cosine", "text", "learned", "matched_keyword":
            self.assertIn(k, best)

    def test_filters_and_pages(self):
        bug, bread = self.send(BUG), self.send(BREAD, conversation_id="f")
        self.send("more", conversation_id="f")
        self.send("x", executor={"name": "engineer"}, conversation_id="f")
        items = self.listed()
        self.assertEqual([d["layer"] for d in items],
                         ["explicit", "sticky", "semantic", "semantic"])
        self.assertNotIn("candidates", items[0])
        self.assertIn("candidates", self.listed("?full=true")[0])

        def ids(query):
            return [d["id"] for d in self.listed(query)]
        self.assertEqual(ids("?layer=semantic&agent=ENGINEER"),
                         [bug["decision"]["id"]])
        self.assertEqual(ids("?overridden=true"), [bread["decision"]["id"]])
        self.assertEqual(len(ids("?overridden=false")), 3)
        self.assertEqual(ids("?verdict=negative"), ids("?overridden=true"))
        self.assertEqual(len(ids("?verdict=open")), 3)
        self.assertEqual(len(ids("?conversation_id=f")), 3)
        self.assertEqual(ids(f"?task_id={bug['task_id']}"),
                         [bug["decision"]["id"]])
        at = items[-1]["at_ms"]
        self.assertEqual(len(ids(f"?since={at}")), 4)
        self.assertEqual(ids(f"?until={at}"), [])
        self.assertEqual(len(ids("?min_score=0.2")), 2)
        self.assertEqual(len(ids("?max_score=0.1")), 2)
        page = self.good(self.get("/api/decisions?limit=3"))
        rest = self.good(self.get(
            f"/api/decisions?limit=3&cursor={page['next_cursor']}"))
        self.assertEqual(page["items"] + rest["items"], items)
        self.assertIsNone(rest["next_cursor"])
        for bad in ("layer=x", "verdict=x", "overridden=x", "since=x",
                    "min_score=x", "max_score=2", "cursor=x", "limit=0"):
            self.refused(self.get(f"/api/decisions?{bad}"), 400, "bad_request")

    def test_a_repeat_is_told_the_decision_of_then(self):
        first = self.send(BUG, idempotency_key="k")
        again = self.send(BUG, idempotency_key="k")
        self.assertEqual(again["decision"], first["decision"])
        self.assertEqual(len(self.listed()), 1)

    def test_figures(self):
        def semantic():
            lines = self.server.get("/metrics").body.decode().splitlines()
            return [float(line.split()[1]) for line in lines if line.startswith(
                'signalbox_decisions_total{layer="semantic"}')]
        before = semantic()
        timed = metric(self.server, "signalbox_decide_seconds_count")
        sent = self.send(BUG)
        self.route(BUG)
        self.assertEqual(semantic(), [before[0] + 1])
        # A look is not counted; a decision says how long it took.
        self.assertEqual(metric(self.server, "signalbox_decide_seconds_count"),
                         timed + 1)
        d = self.good(self.get(f"/api/decisions/{sent['decision']['id']}"))
        self.assertGreaterEqual(d["decide_us"], 0)
        self.assertEqual(metric(self.server, "signalbox_routing_waiting"), 0)


def by_http(provider):
    return {"outgoing": {"allow": ["127.0.0.0/8"]},
            "routing": {"threshold": 0.15},
            "embed": {"kind": "http", "timeoutMs": 300, "http": {
                "url": provider.url, "model": "tiny",
                "dimensions": 8, "timeoutMs": 300}},
            "agents": {"list": AGENTS}}


class Models(unittest.TestCase):
    def route(self, server, text=BREAD):
        got = server.call("POST", "/api/route", {"text": text})
        self.assertEqual(got.status, 200, got)
        return got.json()

    def by_words(self, server, text):
        got = self.route(server, text)
        self.assertEqual(got["agent"], "cook")
        self.assertRegex(got["note"], r'^the embedding provider "tiny" .*; '
                         r'words were compared$')
        self.assertIsNone(got["vector"])
        # Words and keywords carry the score, and the record says so.
        self.assertEqual(got["weights"], {
            "semantic": .375, "performance": .2, "keyword": .375,
            "recency": .05})
        best = got["candidates"][0]
        self.assertAlmostEqual(best["score"], sum(
            weight * best[name] for name, weight in got["weights"].items()))

    def test_a_model_that_is_out_of_order_leaves_the_words(self):
        with Provider() as provider:
            provider.mode = "broken"
            with Server(config=by_http(provider)) as server:
                self.by_words(server, BREAD)

    def test_a_model_that_gets_out_of_order_leaves_the_words(self):
        with Provider() as provider:
            with Server(config=by_http(provider)) as server:
                eventually(lambda: self.route(server)["vector"],
                           "the first vector")
                provider.mode = "broken"
                self.by_words(server, "another recipe for bread")
                sent = server.call("POST", "/api/messages",
                                   {"text": "a third recipe for bread"})
                self.assertEqual(sent.json()["agent"], "cook", sent)

    def test_another_model_while_it_runs_waits_for_a_restart(self):
        config = {"agents": {"list": AGENTS}}
        with Server(config=config) as server, Provider() as provider:
            before = self.route(server)
            server.write_config(config=by_http(provider))
            eventually(lambda: "config.reloaded" in server.said(),
                       "the reload")
            needed = [line for line in server.said().splitlines()
                      if "config.restart_needed" in line]
            self.assertEqual(len(needed), 1)
            self.assertIn("embed.kind", needed[0])
            after = self.route(server)
            self.assertEqual(
                (after["agent"], after["vector"], after["versions"]["model"]),
                ("cook", before["vector"], "builtin"))
            self.assertEqual(provider.requests, [])

    def test_a_model_that_hangs_keeps_nobody_waiting_for_long(self):
        with Provider() as provider:
            config = {"outgoing": {"allow": ["127.0.0.0/8"]},
                      "routing": {"threshold": 0.15, "vectorTimeoutMs": 50},
                      "embed": {"kind": "http", "timeoutMs": 60000, "http": {
                          "url": provider.url, "model": "tiny",
                          "dimensions": 8, "timeoutMs": 60000}},
                      "agents": {"list": AGENTS}}
            provider.gate.clear()
            self.addCleanup(provider.gate.set)
            late = ('the embedding provider "tiny" did not answer in time; '
                    'words were compared')
            with Server(config=config) as server:
                got = server.call("POST", "/api/messages", {"text": BREAD})
                self.assertEqual(got.status, 200, got)
                self.assertEqual(got.json()["agent"], "cook")
                got = server.call("POST", "/api/route", {"text": BREAD})
                self.assertEqual(got.json()["note"], late)
                got = server.call("POST", "/api/messages", {"text": "zzz"})
                self.assertEqual(got.status, 422, got)
                error = got.json()["error"]
                self.assertEqual(error["details"]["note"], late)
                self.assertIn(late, error["message"])
                self.assertEqual(metric(server, "signalbox_routing_waiting"),
                                 0)


class SeedProvider(Provider):
    """Vectors that lie as seed 001's table has them."""
    TEXT = "build me a Laravel model with a factory and migration"
    COSINES = {"engineer": .362, "researcher": .289, "writer": .241,
               "operator": .198}

    def data(self, texts):
        def vector(text):
            if text == self.TEXT:
                return [1, 0, 0]
            for name, cosine in self.COSINES.items():
                if name in text:
                    return [cosine, (1 - cosine ** 2) ** .5, 0]
            return [0, 0, 1]
        return [{"object": "embedding", "index": i, "embedding": vector(text)}
                for i, text in enumerate(texts)]


class SeedTable(unittest.TestCase):
    """.467/.273/.245/.219, and nothing but the cosine in `semantic`."""

    def table(self, **routing):
        agents = [{"id": name, "url": "echo:",
                   "description": "builds a model"}
                  for name in SeedProvider.COSINES]
        agents[0]["routing"] = {"keywords": ["laravel"]}
        with SeedProvider() as provider:
            config = {"outgoing": {"allow": ["127.0.0.0/8"]},
                      "routing": routing, "agents": {"list": agents},
                      "embed": {"kind": "http", "http": {
                          "url": provider.url, "model": "tiny"}}}
            with Server(config=config) as server:
                def route():
                    return server.call("POST", "/api/route",
                                       {"text": SeedProvider.TEXT}).json()

                def compared():
                    got = route()
                    return got.get("vector") and all(
                        c["cosine"] >= 0 for c in got["candidates"])
                eventually(compared, "the vectors of all")
                return route()

    def check(self, got):
        self.assertEqual(got["agent"], "engineer")
        self.assertEqual(
            [(c["agent"], round(c["semantic"], 3), c["keyword"],
              c["performance"], c["recency"], round(c["score"], 3))
             for c in got["candidates"]],
            [("engineer", .362, 1, .5, 0, .467),
             ("researcher", .289, 0, .5, 0, .273),
             ("writer", .241, 0, .5, 0, .245),
             ("operator", .198, 0, .5, 0, .219)])

    def test_by_default_with_a_provider(self):
        got = self.table()
        self.check(got)
        self.assertTrue(got["rules"]["auto"])

    def test_with_the_preset(self):
        got = self.table(preset="seed")
        self.check(got)
        self.assertEqual((got["rules"]["auto"], got["rules"]["threshold"],
                          got["threshold"]), (False, .3, .3))

    def test_the_control_blends_words_in_where_it_is_set(self):
        got = self.table(textBlend=.25)
        self.assertAlmostEqual(got["candidates"][0]["semantic"], .75 * .362, 2)


if __name__ == "__main__":
    unittest.main()
