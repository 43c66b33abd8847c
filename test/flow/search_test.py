"""Search over HTTP: the shape of its answers, its arguments, what may be
asked, and searches that wait for a slow model."""
import select
import socket
import struct
import unittest

from cards import card, error_code, names, register, skill
from hub_peer import Hub
from provider import Provider
from signalbox import Server, eventually

QUERY_MAX = 16 * 1024
FINANCE = {
    "description": "Financial document analysis and reporting",
    "version": "1.2.0", "title": "Finance",
    "skills": [skill("doc-analysis", name="Document analysis",
                     description="Analyzes financial documents and reports",
                     tags=["finance"], examples=["what is in this invoice"],
                     pricing={"amount_micros": 1500}),
               skill("forecast", name="Forecasting",
                     description="Predicts next year's revenue",
                     tags=["finance", "math"])],
}


def search(server, query):
    return server.call("GET", "/api/agents/search?" + query)


class Shapes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server().__enter__()
        register(cls.server, "finance-analyst", **FINANCE)
        register(cls.server, "cook", description="Cooks dinner",
                 skills=[skill("bake", name="Baking",
                               description="Bakes bread and cakes",
                               tags=["food"],
                               pricing={"amount_micros": 10})])
        register(cls.server, "gardener",
                 description="Waters plants and mows lawns")
        cls.server.ready()

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(None)

    def found(self, query):
        r = search(self.server, query)
        self.assertEqual(r.status, 200, r)
        return r.json()

    def test_the_answer_has_the_shape_of_seed_000(self):
        said = self.found("q=agent+that+can+analyze+financial+documents"
                          "&limit=10")
        self.assertEqual(list(said)[:2], ["agents", "total"])
        self.assertEqual(said["total"], len(said["agents"]))
        self.assertEqual(said["mode"], "hybrid")
        self.assertNotIn("note", said)
        best = said["agents"][0]
        self.assertEqual(list(best)[:5], ["name", "description", "skills",
                                          "score", "best_skill_id"])
        self.assertEqual(
            {k: best[k] for k in best if k not in ("skills", "score")},
            {"name": "finance-analyst",
             "description": "Financial document analysis and reporting",
             "best_skill_id": "doc-analysis", "title": "Finance",
             "url": "echo:", "visibility": "public", "creator_id": "admin",
             "org": None, "state": best["state"], "version": "1.2.0"})
        self.assertEqual(
            {k: v for k, v in best["skills"][0].items() if k != "score"},
            FINANCE["skills"][0])
        scores = [a["score"] for a in said["agents"]]
        self.assertEqual(scores, sorted(scores, reverse=True))
        for agent in said["agents"]:
            self.assertTrue(0 < agent["score"] <= 1)
            of_skills = [s["score"] for s in agent["skills"]]
            self.assertEqual(of_skills, sorted(of_skills, reverse=True))
            if agent["best_skill_id"]:
                self.assertEqual(agent["skills"][0]["id"],
                                 agent["best_skill_id"])

    def test_the_score_is_that_of_the_best_skill_or_the_agents_own(self):
        for query, is_own in (("what+is+in+this+invoice", False),
                              ("financial+document+analysis+and+reporting",
                               True)):
            best = self.found("q=" + query)["agents"][0]
            first = best["skills"][0]
            self.assertEqual((best["name"], best["best_skill_id"],
                              first["id"]),
                             ("finance-analyst", "doc-analysis",
                              "doc-analysis"))
            self.assertTrue(best["score"] > first["score"] if is_own else
                            best["score"] == first["score"], (query, best))

    def test_who_has_no_skills_is_found_by_itself(self):
        best = self.found("q=mow+the+lawn")["agents"][0]
        self.assertEqual((best["name"], best["best_skill_id"],
                          best["skills"]), ("gardener", None, []))

    def test_get_and_post_and_both_spellings_say_the_same(self):
        said = self.found("q=bake+bread&limit=2&mode=text")
        self.assertEqual(self.found("query=bake+bread&limit=2&mode=text"),
                         said)
        for word in ("q", "query"):
            r = self.server.call("POST", "/api/agents/search",
                                 {word: "bake bread", "limit": 2,
                                  "mode": "text"})
            self.assertEqual((r.status, r.json()), (200, said))

    def test_an_explanation_adds_up(self):
        for fusion in ("weighted", "rrf"):
            said = self.found("q=bakes+good+bread&explain=true&fusion="
                              + fusion)
            self.assertEqual(said["formula"], {"fusion": fusion,
                                               "semantic": 0.7, "text": 0.3})
            self.assertEqual(said["words"], ["bake", "good", "bread"])
            best = said["agents"][0]
            self.assertEqual(best["name"], "cook")
            self.assertEqual(best["words"], ["bake", "bread"])
            self.assertEqual(best["skills"][0]["words"], ["bake", "bread"])
            for agent in said["agents"]:
                if fusion == "weighted":
                    self.assertAlmostEqual(
                        agent["score"], 0.7 * agent["semantic"]
                        + 0.3 * agent["text"], 5)
                for one in agent["skills"]:
                    self.assertTrue(0 <= one["semantic"] <= 1
                                    and 0 <= one["text"] <= 1)
        said = self.found("q=bread&explain=false")
        self.assertNotIn("formula", said)
        self.assertNotIn("words", said["agents"][0])

    def test_modes_are_as_asked_for(self):
        for mode, part in (("text", "text"), ("semantic", "semantic")):
            said = self.found(f"q=bakes+bread&explain=true&mode={mode}")
            self.assertEqual(said["mode"], mode)
            self.assertEqual((said["formula"]["text"],
                              said["formula"]["semantic"]),
                             (mode == "text", mode == "semantic"))
            best = said["agents"][0]
            self.assertAlmostEqual(best["score"], best[part], 5)
        self.assertEqual(
            [a["name"] for a in
             self.found("q=bread&mode=text")["agents"]], ["cook"])

    def test_filters_are_applied_before_the_limit(self):
        for query, wanted in (
                ("tag=FINANCE", {"finance-analyst"}),
                ("tag=nothing", set()),
                ("org=acme", set()),
                ("max_price_micros=10&tag=food", {"cook"}),
                ("min_score=1", set())):
            said = self.found("q=bread+documents+plants&limit=1&" + query)
            self.assertEqual({a["name"] for a in said["agents"]}, wanted,
                             query)
            self.assertEqual(said["total"], len(wanted))
        said = self.found("q=bread&tag=food&max_price_micros=9")
        self.assertEqual(said["agents"], [])
        state = self.found("q=bread&mode=text")["agents"][0]["state"]
        self.assertEqual(
            self.found("q=bread&mode=text&state=" + state)["total"], 1)
        others = {"ACTIVE", "IDLE", "BUSY", "DEAD"} - {state}
        for other in others:
            self.assertEqual(
                self.found("q=bread&mode=text&state=" + other)["total"], 0)

    def test_arguments_that_are_wrong_are_named(self):
        for query, words in (
                ("", "nothing to search for"),
                ("q=", "q must be"),
                ("q=%20%20", "nothing to search for"),
                ("q=x&query=y", "query and q are the same"),
                ("q=x&limit=101", "limit must be a whole number from 1 to"),
                ("q=x&limit=many", "limit must be a whole number"),
                ("q=x&mode=quick", "mode must be"),
                ("q=x&fusion=cold", "fusion must be"),
                ("q=x&order=fair", "order must be"),
                ("q=x&explain=1", "explain must be true or false"),
                ("q=x&min_score=2", "min_score must be a number from 0 to 1"),
                ("q=x&max_price_micros=-1", "max_price_micros must be"),
                ("q=x&state=gone", "state must be"),
                ("q=x&top=3", 'unknown argument "top"')):
            r = search(self.server, query)
            self.assertEqual(error_code(r), (400, "bad_request"), query)
            self.assertIn(words, r.json()["error"]["message"])
        for body in ({}, {"query": ""}, {"query": 7}, {"query": "x", "n": 1},
                     {"query": "x", "limit": "3"}, []):
            r = self.server.call("POST", "/api/agents/search", body)
            self.assertEqual(error_code(r), (400, "bad_request"), body)
        r = self.server.call("POST", "/api/agents/search", b"{")
        self.assertEqual(error_code(r), (400, "invalid_json"))

    def test_queries_of_every_kind(self):
        """Agents are found by words; by meaning someone is always near,
        and who has the words is the nearest."""
        register(self.server, "polyglot", description="مرحبا, brød og kaffe")
        self.addCleanup(self.server.call, "DELETE", "/api/agents/polyglot")
        for text, wanted in (
                ("\U0001F35E\U0001F370", []),
                ("\u0645\u0631\u062d\u0628\u0627", ["polyglot"]),
                ("パンを焼く", []), ("BRØD", ["polyglot"]), ("?!...", []),
                ("the of and", []), ("a", []), ("x" * QUERY_MAX, []),
                ("bread " * 2000, ["cook"]), ("\u202ebread", ["cook"]),
                ("' OR 1=1 --", []), ("%00", []), ("<script>", []),
                ("bread\nand\tcakes", ["cook"])):
            with self.subTest(query=text[:20]):
                for mode in ("text", "hybrid", "semantic"):
                    r = self.server.call("POST", "/api/agents/search",
                                         {"query": text, "mode": mode})
                    self.assertEqual((r.status, r.json()["mode"]),
                                     (200, mode))
                    found = [a["name"] for a in r.json()["agents"]]
                    self.assertEqual(r.json()["total"], len(found))
                    if mode == "text":
                        self.assertEqual(found, wanted)
                    elif mode == "hybrid" and wanted:
                        self.assertEqual(found[:1], wanted)
                    else:
                        self.assertTrue(found)
        for text in ("", " ", " \n\t "):
            r = self.server.call("POST", "/api/agents/search",
                                 {"query": text})
            self.assertEqual(error_code(r), (400, "bad_request"))
        long = {"query": "x" * 100 * 1024}
        r = self.server.call("POST", "/api/agents/search", long)
        self.assertEqual(error_code(r), (413, "too_large"))
        self.assertIn(str(QUERY_MAX), r.json()["error"]["message"])
        r = search(self.server, "q=" + "x" * 100 * 1024)
        self.assertEqual(r.status, 414)

    def test_a_change_is_found_from_its_answer_on(self):
        for i in range(20):
            register(self.server, "moving", description=f"word{i}x thing")
            self.assertEqual(
                names(self.server, f"/api/agents/search?mode=text&q=word{i}x"),
                ["moving"])
            self.assertEqual(
                names(self.server,
                      f"/api/agents/search?mode=text&q=word{i - 1}x"), [])
        self.server.call("DELETE", "/api/agents/moving")
        self.assertEqual(names(
            self.server, "/api/agents/search?mode=text&q=word19x"), [])

    def test_searches_are_counted(self):
        self.found("q=bread")
        text = self.server.get("/metrics").body.decode()
        for name in ("agents{visibility=\"public\"}", "skills", "grants",
                     "agents_unembedded", "searches_total",
                     "searches_by_words_total", "index_bytes",
                     "index_vector_bytes", "index_documents"):
            self.assertIn(f"\nsignalbox_{name} ", text)

    def test_the_metrics_do_not_tell_which_words_there_are(self):
        text = self.server.get("/metrics").body.decode()
        self.assertNotIn("index_terms", text)
        for name in ("bytes", "vector_bytes"):
            line = next(line for line in text.splitlines()
                        if line.startswith(f"signalbox_index_{name} "))
            self.assertEqual(int(line.split()[1]) % 2**20, 0)


class Size(unittest.TestCase):
    def test_an_answer_that_is_full_says_so(self):
        """Some 4 MiB: eight agents with half a MiB of examples each."""
        examples = [f"{i:02} " + "x" * 1021 for i in range(64)]
        with Server() as server:
            for i in range(12):
                register(server, f"a{i:02}", description="an oven",
                         skills=[skill(f"s{k}", name="Bread",
                                       examples=examples)
                                 for k in range(8)])
            r = search(server, "q=bread&mode=text&limit=12")
            self.assertEqual(r.status, 200)
            said = r.json()
            self.assertEqual((said["total"], len(said["agents"])), (12, 8))
            self.assertIn("4 more found agents do not fit into this answer",
                          said["note"])
            self.assertLess(len(r.body), 5 * 1024 * 1024)
            said = search(server, "q=bread&mode=text&limit=8").json()
            self.assertEqual((said["total"], said.get("note")), (12, None))


class Crowding(unittest.TestCase):
    """Many cards of one creator, all equal, and a few of others that have
    nearly the same score."""

    ARGUMENTS = "/api/agents/search?mode=text&q=bread"

    @classmethod
    def setUpClass(cls):
        cls.server = Server().__enter__()
        cls.greedy = cls.server.user("greedy", org="spam")
        for i in range(12):
            register(cls.server, f"a{i:02}", token=cls.greedy,
                     visibility="public", description="bakes bread")
        for i in range(3):
            register(cls.server, f"honest{i}", token=cls.server.user(f"u{i}"),
                     visibility="public", description="bakes bread")
        cls.otto = cls.server.user("otto")

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(None)

    def found(self, arguments="", token=None):
        return names(self.server, self.ARGUMENTS + arguments,
                     token=token or self.otto)

    def test_many_cards_do_not_take_the_first_places(self):
        wanted = ["a00", "a01", "honest0", "honest1", "honest2"]
        wanted += [f"a{i:02}" for i in range(2, 12)]
        for limit in (1, 2, 3, 9, 10, 11, 100):
            r = self.server.call("GET", f"{self.ARGUMENTS}&limit={limit}",
                                 token=self.otto).json()
            self.assertEqual([a["name"] for a in r["agents"]],
                             wanted[:limit])
            self.assertEqual((r["total"], r.get("note")), (15, None))

    def test_an_agent_on_the_hub_finds_the_same(self):
        with Hub(self.server, token=self.otto) as hub:
            r = hub.call("agent.search", query="bread", mode="text", limit=3)
            self.assertEqual([a["name"] for a in r["agents"]],
                             ["a00", "a01", "honest0"])
            self.assertEqual(r["total"], 15)

    def test_admins_and_who_asks_for_it_get_the_plain_order(self):
        plain = [f"a{i:02}" for i in range(10)]
        self.assertEqual(self.found(token=self.server.token), plain)
        self.assertEqual(self.found("&order=plain"), plain)
        self.assertEqual(self.found(token=self.greedy), plain)
        self.assertEqual(self.found("&order=spread",
                                    token=self.server.token), self.found())

    def test_the_setting_is_for_those_who_do_not_ask(self):
        with Server(config={"search": {"order": "plain"}}) as server:
            ann = server.user("ann")
            for i in range(3):
                register(server, f"a{i}", token=ann,
                         visibility="public", description="bakes bread")
            register(server, "b", token=server.user("ben"),
                     visibility="public", description="bakes bread")
            otto = server.user("otto")
            self.assertEqual(names(server, self.ARGUMENTS, token=otto),
                             ["a0", "a1", "a2", "b"])
            self.assertEqual(names(server, self.ARGUMENTS + "&order=spread",
                                   token=otto), ["a0", "a1", "b", "a2"])


class Waiting(unittest.TestCase):
    """The provider does not answer: who waits may leave, is let in on the end
    of the server, and is shut out when their token is."""

    def held(self, provider):
        return Server(config={"embed": {
            "kind": "http", "http": {"url": provider.url, "model": "tiny",
                                     "dimensions": 8}}})

    def ask(self, server, provider, token):
        """A search that hangs at the provider."""
        before = len(provider.requests)
        provider.gate.clear()
        peer = server.connect()
        peer.send(server.request(
            "GET", f"/api/agents/search?q=bread{before}", token=token))
        eventually(lambda: len(provider.requests) > before, "the question")
        return peer

    def metric(self, server, line):
        text = server.get("/metrics").body.decode()
        return int(text.split(f"\n{line} ")[1].split("\n")[0])

    def ready(self, server):
        register(server, "cook", description="bakes bread")
        eventually(lambda: server.call(
            "GET", "/api/agents/cook").json()["embedded"], "its vectors")

    def test_who_leaves_is_forgotten(self):
        with Provider() as provider, self.held(provider) as server:
            self.ready(server)
            asking = 'signalbox_calls_open{kind="asking"}'
            with self.ask(server, provider, server.token) as peer:
                self.assertEqual(self.metric(server, asking), 1)
                self.assertEqual(select.select([peer.socket], [], [], 0)[0],
                                 [])
                # Only half closed, it were owed a reply.
                peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                       struct.pack("ii", 1, 0))
            eventually(lambda: self.metric(server, asking) == 0,
                       "it is forgotten")
            provider.gate.set()
            self.assertEqual(names(server, "/api/agents/search?q=bread"),
                             ["cook"])

    def test_a_token_that_is_revoked_waits_no_longer(self):
        with Provider() as provider, self.held(provider) as server:
            self.ready(server)
            made = server.call("POST", "/api/tokens", {}).json()
            with self.ask(server, provider, made["token"]) as peer:
                server.call("DELETE", "/api/tokens/" + made["id"])
                self.assertEqual(error_code(peer.response()),
                                 (401, "unauthenticated"))

    def test_who_has_another_org_now_searches_again(self):
        with Provider() as provider, self.held(provider) as server:
            self.ready(server)
            anna = server.user("anna", org="acme")
            with self.ask(server, provider, anna) as peer:
                server.call("PATCH", "/api/users/anna", {"org": "other"})
                r = peer.response()
                self.assertEqual(error_code(r), (403, "not_allowed"))
                self.assertIn("search again", r.json()["error"]["message"])

    def test_a_server_that_stops_says_so(self):
        with Provider() as provider, self.held(provider) as server:
            self.ready(server)
            with self.ask(server, provider, server.token) as peer:
                server.process.terminate()
                self.assertEqual(error_code(peer.response()),
                                 (503, "stopping"))

    def test_a_provider_that_fails_leaves_the_words(self):
        with Provider() as provider, self.held(provider) as server:
            self.ready(server)
            provider.mode = "broken"
            r = search(server, "q=bake+bread")
            self.assertEqual((r.status, r.json()["mode"]), (200, "text"))
            self.assertTrue(r.json()["note"])
            self.assertEqual(r.json()["agents"][0]["name"], "cook")
            r = server.call("POST", "/api/agents", card("other"))
            self.assertEqual((r.status, r.json()["embedded"]), (201, False))
