"""Seed 000, agent routing: registry, hybrid search, visibility, the hub, URL
schemes and wake-up, with the seed's own words. docs/seeds.md has the rows."""
import json
import os
import subprocess
import tempfile
import unittest
from http.server import BaseHTTPRequestHandler
from threading import Thread

from cards import error_code, names, register
from hub_peer import Hub
from quiet import Quiet
from signalbox import BINARY, OWN, Server, clean_environment, eventually

SEARCH = """{
"jsonrpc": "2.0",
"id": "search-1",
"method": "agent.search",
"params": {
"query": "agent that can analyze financial documents",
"limit": 10
}
}"""
FINANCE = {
    "name": "finance-analyst", "url": "echo:", "visibility": "public",
    "description": "Financial document analysis and reporting",
    "skills": [{"id": "doc-analysis", "name": "Document analysis",
                "description": "Analyzes financial documents and reports",
                "tags": ["finance"]}]}
RESEARCH = {
    "name": "research-agent", "visibility": "public", "url": "echo:",
    "description": "Deep research agent that synthesizes multiple sources",
    "version": "2.1.0", "capabilities": {"streaming": True},
    "authentication": {"schemes": ["bearer"]},
    "skills": [{"id": "topic-research", "name": "Topic Research",
                "description": "Research any topic with source citations",
                "tags": ["research", "papers", "citations"],
                "examples": ["what is known about sleep"],
                "pricing": {"amount_micros": 2500}},
               {"id": "translate", "name": "Translation",
                "description": "Translates texts between languages",
                "tags": ["languages"]}]}
LONELY = {"name": "gardener", "url": "echo:", "visibility": "public",
          "description": "Waters plants and mows lawns"}


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(cls.begin())

    @classmethod
    def begin(cls):
        return Server(agents=[])

    def call(self, method, path, body=None, token=OWN, status=200):
        got = self.server.call(method, path, body, token=token)
        self.assertEqual(got.status, status, got)
        return got.json() if got.body else None

    def found(self, query, token=OWN, **more):
        return self.call("POST", "/api/agents/search",
                         {"query": query, **more}, token=token)

    def setting(self, name):
        return next(s for s in self.call("GET", "/api/config")["settings"]
                    if s["name"] == name)


class Cards(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for card in (FINANCE, RESEARCH, LONELY):
            made = cls.server.call("POST", "/api/agents", card)
            assert made.status == 201, made
        cls.server.ready()


class Registry(Cards):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.anna = cls.server.user("anna")
        cls.server.call("POST", "/api/ledger/topup",
                        {"user": "admin", "amount_micros": 1000000})

    def sent(self, **fields):
        return self.call("POST", "/api/messages",
                         {"text": "look it up", **fields})

    def test_000_01_explicit_by_the_names_of_the_metadata(self):
        said = self.sent(metadata={"executor": {"name": "research-agent"},
                                   "skill_used": "topic-research"})
        self.assertEqual((said["agent"], said["decision"]["layer"],
                          said["decision"]["skill"]),
                         ("research-agent", "explicit", "topic-research"))

    def test_000_02_discovery_ranks_and_the_caller_selects(self):
        said = self.found("look into a topic and cite papers")
        scores = [a["score"] for a in said["agents"]]
        self.assertEqual(scores, sorted(scores, reverse=True))
        best = said["agents"][0]["name"]
        self.assertEqual(best, "research-agent")
        self.assertEqual(self.sent(executor={"name": best})["agent"], best)

    def test_000_03_cards_have_their_vectors_before_anybody_asks(self):
        card = self.call("GET", "/api/agents/research-agent")
        self.assertIs(card["embedded"], True)

    def test_000_04_register_look_up_update_and_search(self):
        self.call("POST", "/api/agents", {
            "name": "painter", "url": "echo:",
            "description": "Paints portraits"}, status=201)
        path = "/api/agents/painter"
        self.assertEqual(self.call("GET", path)["name"], "painter")
        self.call("PATCH", path, {"description": "Tunes old pianos"})
        best = self.found("tune my piano", mode="text")["agents"]
        self.assertEqual([a["name"] for a in best], ["painter"])
        self.call("DELETE", path, status=204)

    def test_000_05_the_store_is_a_file_of_the_data_folder(self):
        with open(os.path.join(self.server.data, "signalbox.db"), "rb") as f:
            self.assertEqual(f.read(15), b"SQLite format 3")

    def test_000_06_the_fields_of_a_card_are_kept(self):
        card = self.call("GET", "/api/agents/research-agent")
        for field in ("name", "description", "url", "version", "capabilities",
                      "authentication"):
            self.assertEqual(card[field], RESEARCH[field])

    def test_000_07_the_fields_of_skills_are_kept(self):
        card = self.call("GET", "/api/agents/research-agent")
        self.assertEqual(card["skills"], RESEARCH["skills"])

    def priced(self, status=201, **pricing):
        return self.call("POST", "/api/agents", {
            "name": "dear", "description": "Costs money", "url": "echo:",
            "pricing": pricing}, status=status)

    def test_000_54_a_price_is_an_amount_and_a_currency(self):
        made = self.priced(amount=0.05, currency="USD")
        self.assertEqual(made["pricing"], {"amount_micros": 50000})
        self.call("DELETE", "/api/agents/dear", status=204)
        said = self.priced(status=400, amount=0.05, currency="EUR")
        self.assertIn("USD", said["error"]["message"])

    def test_000_09_words_are_matched_by_their_stems(self):
        said = self.found("mowing the lawn", mode="text", explain=True)
        self.assertEqual([(a["name"], a["words"]) for a in said["agents"]],
                         [("gardener", ["mow", "lawn"])])

    def test_000_10_a_card_is_its_creators_who_earns_by_it(self):
        card = {"name": "paid", "description": "Work for money", "url": "echo:",
                "visibility": "public", "pricing": {"amount_micros": 7}}
        made = self.call("POST", "/api/agents", card, token=self.anna,
                         status=201)
        self.assertEqual(made["creator_id"], "anna")
        ben = self.server.user("ben")
        self.call("POST", "/api/ledger/topup",
                  {"user": "ben", "amount_micros": 10}, status=201)
        self.server.send("x", to="paid", token=ben)
        earned = self.call("GET", "/api/ledger/balance", token=self.anna)
        self.assertEqual(earned["earned_micros"], 7)
        self.assertEqual(error_code(self.server.call(
            "DELETE", "/api/agents/paid", token=ben)), (403, "not_allowed"))

    def test_000_11_platform_agents_are_registered_by_a_command(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
            json.dump({"name": "router-provider", "url": "echo:",
                       "description": "Provides routes"}, f)
            f.flush()
            subprocess.run(
                [BINARY, "agents", "register", f.name], check=True,
                stdout=subprocess.DEVNULL,
                env={**clean_environment(), "SIGNALBOX_URL": self.server.url,
                     "SIGNALBOX_TOKEN": self.server.token})
        card = self.call("GET", "/api/agents/router-provider")
        self.assertEqual(card["kind"], "platform")

    def test_000_12_managed_agents_come_by_a_call(self):
        made = self.call("POST", "/api/agents", {
            "name": "openclaw-1", "description": "Deployed by a factory"},
            token=self.anna, status=201)
        self.assertEqual((made["kind"], made["creator_id"]),
                         ("managed", "anna"))

    def test_000_13_self_hosted_agents_register_when_they_connect(self):
        with Hub(self.server, self.anna) as hub:
            self.assertEqual(hub.register("sdk-agent")["card"], "created")
            self.assertEqual(hub.register("sdk-agent")["card"], "unchanged")
            again = hub.register("sdk-agent", version="2")
            self.assertEqual(again["card"], "updated")
        card = self.call("GET", "/api/agents/sdk-agent")
        self.assertEqual((card["kind"], card["version"]), ("self-hosted", "2"))


class Search(Cards):
    def best(self, query, **more):
        return self.found(query, **more)["agents"][0]

    def test_000_14_meaning_and_words_count_together(self):
        best = self.best("look into a topic and cite papers", explain=True)
        self.assertGreater(best["semantic"], 0)
        self.assertGreater(best["text"], 0)

    def test_000_15_an_agent_is_found_by_its_name_and_description(self):
        words = "research-agent Deep research agent that synthesizes " \
                "multiple sources"
        best = self.best(words, mode="semantic", explain=True)
        self.assertEqual(best["name"], "research-agent")
        self.assertGreater(best["semantic"], 0.9)

    def test_000_16_a_skill_is_found_by_its_name_description_and_tags(self):
        words = "Topic Research Research any topic with source citations " \
                "research papers citations"
        best = self.best(words, mode="semantic")
        self.assertEqual((best["name"], best["best_skill_id"]),
                         ("research-agent", "topic-research"))
        others = self.found(words, mode="semantic")["agents"][1:]
        self.assertTrue(all(a["score"] < best["skills"][0]["score"] / 2
                            for a in others), others)

    def test_000_17_each_of_diverse_skills_is_found_by_itself(self):
        for words, skill in (("cite papers on a topic", "topic-research"),
                             ("translate between languages", "translate")):
            best = self.best(words)
            self.assertEqual((best["name"], best["best_skill_id"]),
                             ("research-agent", skill))

    def formula(self):
        return self.found("papers", explain=True)["formula"]

    def test_000_20_meaning_counts_for_seventy_per_cent(self):
        self.assertEqual(self.formula()["semantic"], 0.7)
        self.assertEqual(self.setting("search.semanticWeight")["default"], 0.7)

    def test_000_21_words_count_for_thirty_per_cent(self):
        self.assertEqual(self.formula()["text"], 0.3)
        self.assertEqual(self.setting("search.textWeight")["default"], 0.3)

    def test_000_26_a_hit_has_card_skills_and_score(self):
        best = self.best("cite papers on a topic")
        self.assertEqual((best["description"], best["version"]),
                         (RESEARCH["description"], "2.1.0"))
        self.assertEqual(best["skills"][0]["examples"],
                         ["what is known about sleep"])
        self.assertEqual(best["score"], best["skills"][0]["score"])

    def test_000_27_the_formula(self):
        for agent in self.found("cite papers on finance",
                                explain=True)["agents"]:
            self.assertAlmostEqual(
                agent["score"],
                0.7 * agent["semantic"] + 0.3 * agent["text"], 5)

    def test_000_29_words_are_normalised_to_one(self):
        said = self.found("Waters plants and mows lawns", mode="text",
                          explain=True)
        self.assertEqual(said["agents"][0]["name"], "gardener")
        for agent in said["agents"]:
            self.assertTrue(0 <= agent["text"] <= 1, agent)


class Visible(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        user = cls.server.user
        cls.anna, cls.ben = user("anna", org="acme"), user("ben", org="acme")
        cls.otto = user("otto", org="other")
        for kind in ("public", "shared", "private"):
            register(cls.server, "of-" + kind, token=cls.anna,
                     description="quartz clockwork", visibility=kind)

    def seen(self, token):
        found = names(self.server, "/api/agents/search?mode=text&q=quartz",
                      token=token)
        return {name.removeprefix("of-") for name in found}

    def test_000_25_a_search_shows_what_its_requester_may_see(self):
        self.assertEqual(self.seen(self.anna), {"public", "shared", "private"})
        self.assertEqual(self.seen(self.ben), {"public", "shared"})
        self.assertEqual(self.seen(self.otto), {"public"})

    def test_000_30_public_is_for_everyone(self):
        self.assertIn("public", self.seen(self.server.user("nora")))

    def test_000_31_shared_is_for_the_org_and_whoever_has_a_grant(self):
        gus = self.server.user("gus", org="other")
        self.assertNotIn("shared", self.seen(gus))
        self.call("POST", "/api/grants", {"agent": "of-shared", "user": "gus"},
                  token=self.anna, status=201)
        self.assertIn("shared", self.seen(gus))

    def test_000_32_private_is_for_its_creator(self):
        self.assertIn("private", self.seen(self.anna))
        self.assertNotIn("private", self.seen(self.ben))
        # Admins see all: the difference that the row tells of.
        self.assertIn("private", self.seen(self.server.token))

    def test_000_33_a_grant_that_is_taken_back_opens_nothing(self):
        eva = self.server.user("eva")
        grant = self.call("POST", "/api/grants",
                          {"agent": "of-shared", "user": "eva"},
                          token=self.anna, status=201)
        self.assertIn("shared", self.seen(eva))
        self.call("DELETE", "/api/grants/" + grant["id"], token=self.anna,
                  status=204)
        self.assertNotIn("shared", self.seen(eva))


class Order(Case):
    """Zoe has four cards that fit, otto one that fits less."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        user = cls.server.user
        cls.anna, zoe, otto = user("anna"), user("zoe"), user("otto")
        for i in range(4):
            register(cls.server, f"zoe-{i}", token=zoe, visibility="public",
                     description="repairs quartz clocks and watches")
        register(cls.server, "otto-0", token=otto, visibility="public",
                 description="repairs quartz clocks")
        cls.server.ready()

    def ranked(self, token=OWN, **more):
        said = self.found("repairs quartz clocks and watches", token=token,
                          **more)
        return [a["name"] for a in said["agents"]], said["total"]

    def test_000_39_nobody_is_left_out_and_the_third_stands_back(self):
        names, total = self.ranked(self.anna)
        self.assertEqual(sorted(names), ["otto-0", "zoe-0", "zoe-1", "zoe-2",
                                         "zoe-3"])
        self.assertEqual((names.index("otto-0"), total), (2, 5))

    def test_000_40_plain_for_admins_and_who_asks_for_it(self):
        for plain in self.ranked(), self.ranked(self.anna, order="plain"):
            self.assertEqual(plain[0][-1], "otto-0")
        self.assertNotEqual(self.ranked(self.anna)[0][-1], "otto-0")
        self.assertEqual(self.setting("search.order")["default"], "spread")

    def test_000_55_the_total_does_not_end_with_the_limit(self):
        names, total = self.ranked(self.anna, limit=1)
        self.assertEqual((len(names), total), (1, 5))


class OnTheHub(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.anna = cls.server.user("anna")
        cls.server.call("POST", "/api/agents", FINANCE)
        register(cls.server, "books", token=cls.anna, visibility="private",
                 description="Reads financial books")
        cls.hub = cls.enterClassContext(Hub(cls.server, cls.anna))
        cls.hub.register("asker", description="agent that can analyze "
                                              "financial documents")
        cls.server.ready()
        cls.hub.send_bytes(SEARCH.encode())
        cls.answer = cls.hub.next(lambda m: m.get("id") == "search-1")

    def test_000_34_the_request_as_it_stands(self):
        self.assertEqual(set(self.answer), {"jsonrpc", "id", "result"})
        self.assertEqual(self.answer["id"], "search-1")

    def test_000_35_the_limit(self):
        found = self.hub.call("agent.search", query="financial", limit=1)
        self.assertEqual(len(found["agents"]), 1)

    def test_000_36_http_finds_the_same(self):
        query = json.loads(SEARCH)["params"]
        said = self.found(query["query"], limit=10, token=self.anna)
        others = [a for a in said["agents"] if a["name"] != "asker"]
        self.assertEqual(self.answer["result"]["agents"], others)

    def test_000_37_it_sees_as_its_creator_and_does_not_find_itself(self):
        found = {a["name"] for a in self.answer["result"]["agents"]}
        self.assertIn("books", found)
        self.assertNotIn("asker", found)

    def test_000_38_the_answer(self):
        result = self.answer["result"]
        self.assertEqual(list(result)[:2], ["agents", "total"])
        self.assertEqual(result["total"], len(result["agents"]))
        best = result["agents"][0]
        self.assertEqual(list(best)[:5], ["name", "description", "skills",
                                          "score", "best_skill_id"])
        self.assertEqual(
            (best["name"], best["description"], best["best_skill_id"]),
            ("finance-analyst", "Financial document analysis and reporting",
             "doc-analysis"))
        self.assertTrue(0 < best["score"] <= 1)


class Alarm:
    """Where a worker sleeps: a POST there wakes it."""

    def __init__(self):
        self.rings = []
        self.on_ring = lambda: None
        alarm = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                alarm.rings.append((self.path, json.loads(body)))
                self.send_response(204)
                self.end_headers()
                alarm.on_ring()

            def log_message(self, *_):
                pass

        self.server = Quiet(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/worker"
        self.thread = Thread(target=self.server.serve_forever,
                             kwargs={"poll_interval": 0.01})

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


class Roads(Case):
    @classmethod
    def begin(cls):
        cls.alarm = cls.enterClassContext(Alarm())
        return Server(config={"deliver": {"retryMs": 20}}, agents=[
            {"id": "sleeper", "wake": {"url": cls.alarm.url}},
            {"id": "heavy", "wake": {"url": cls.alarm.url, "timeoutMs": 100}},
            {"id": "self-hosted"}])

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.up = []

        def get_up():
            if not cls.up:
                hub = cls.enterClassContext(Hub(cls.server))
                hub.register("sleeper")
                cls.up.append(hub)
        cls.alarm.on_ring = get_up
        cls.state = cls.server.call("GET", "/api/agents/sleeper").json()
        cls.accepted = cls.server.send("are you there?", to="sleeper",
                                       wait_ms=0)
        eventually(lambda: cls.up, "it is woken and connects")
        cls.task, _ = cls.up[0].work(text="yes")
        path = "/api/tasks/" + cls.accepted.json()["task_id"]
        eventually(lambda: cls.server.call("GET", path).json()["result"],
                   "the task is over")
        cls.over = cls.server.call("GET", path).json()
        cls.alarm.on_ring = lambda: None

    def test_000_41_the_card_is_looked_up_by_its_name(self):
        self.assertEqual(self.over["agent"], "sleeper")
        self.assertEqual(error_code(self.server.send("x", to="sleepr")),
                         (404, "agent_not_found"))

    def test_000_42_over_the_hub_where_the_url_is_ws_agent(self):
        self.assertEqual(self.state["url"], "ws-agent://sleeper")
        self.assertEqual(self.task["message"], "are you there?")

    def test_000_44_an_https_url_is_taken(self):
        url = "https://provider.example.com/tasks/process"
        made = register(self.server, "provider", url=url).json()
        self.assertEqual(made["url"], url)

    def test_000_45_a_ws_agent_url_is_taken(self):
        made = register(self.server, "openclaw",
                        url="ws-agent://openclaw-abc123").json()
        self.assertEqual(made["url"], "ws-agent://openclaw-abc123")

    def test_000_46_the_routing_id_leads_to_the_connection(self):
        url = "ws-agent://worker-77"
        anna = self.server.user("anna")
        with Hub(self.server, anna) as hub:
            self.assertEqual(hub.register("worker", url=url)["url"], url)
            register(self.server, "second-name", token=anna, url=url)
            for name in ("worker", "second-name"):
                self.server.send("for " + name, to=name, token=anna, wait_ms=0)
                task, _ = hub.work()
                self.assertEqual(task["message"], "for " + name)

    def test_000_47_a_task_for_one_that_sleeps_is_accepted(self):
        self.assertEqual(self.accepted.status, 202)
        self.assertEqual(self.state["state"], "IDLE")

    def test_000_48_the_address_is_on_its_card(self):
        self.assertEqual(self.state["wake"]["url"], self.alarm.url)

    def test_000_49_one_request_wakes_it(self):
        mine = [r for r in self.alarm.rings if r[1]["agent"] == "sleeper"]
        self.assertEqual(mine, [("/worker", {"agent": "sleeper",
                                             "reason": "task"})])

    def test_000_50_the_wait_has_its_limit(self):
        self.assertEqual(self.setting("deliver.wakeMs")["default"], 30000)

    def test_000_51_once_connected_the_task_goes_as_usual(self):
        self.assertEqual((self.over["status"], self.over["result"]["text"]),
                         ("completed", "yes"))

    def test_000_52_who_does_not_connect_in_time_fails_the_task(self):
        said = self.server.send("x", to="heavy").json()
        self.assertEqual((said["status"], said["error"]["code"]),
                         ("failed", "agent_did_not_wake"))
        self.assertIn("100 ms", said["error"]["message"])

    def test_000_53_a_self_hosted_one_must_be_running(self):
        said = self.server.send("x", to="self-hosted")
        self.assertEqual(error_code(said), (503, "agent_offline"))
        self.assertIn("must be running", said.json()["error"]["message"])


if __name__ == "__main__":
    unittest.main()
