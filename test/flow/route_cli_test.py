"""signalbox route and lint as people use them: the agent that a message would go to and
why, from where it would have come, and what is wrong with a fleet."""
import json
import os
import unittest

from client import FAILED, OK, REFUSED, USAGE, Client

CODE = {"id": "code", "url": "echo:",
        "description": "Writes, debugs and reviews software.",
        "routing": {"keywords": ["debug"]},
        "skills": [{"id": "debug", "name": "Debug",
                    "description": "Finds out why a program crashes.",
                    "examples": ["why does my program crash"]}]}
WRITER = {"id": "writer", "url": "echo:",
          "description": "Drafts articles, blog posts and newsletters.",
          "skills": [{"id": "draft", "name": "Draft",
                      "description": "Writes a first draft of a text.",
                      "examples": ["draft a blog post about our office"]}]}
OPS = {"id": "ops", "url": "echo:", "routing": {"routable": False}}
BOUND = [{"agentId": "ops",
          "match": {"channel": "telegram",
                    "peer": {"kind": "group", "id": "-1005678"}}}]


class Route(Client):
    def fleet(self, **settings):
        config = {"agents": {"list": [CODE, WRITER, OPS]}, "bindings": BOUND}
        config.update(settings)
        self.server(agents=None, config=config)

    def routed(self, *args):
        [decision] = self.lines("route", *args)
        return decision["agent"], decision["layer"]

    def test_meaning_decides_and_the_table_says_why(self):
        self.fleet(routing={"threshold": 0.3})
        out = self.good("route", "why does my program crash?")
        self.assertRegex(out, r"^code\n  layer +semantic: the agent has the best")
        self.assertRegex(out, r"\n> 1  code +debug +0\.\d{3}  [#.]{5} \.\d{3}")
        self.assertIn("below the threshold of 0.300:", out)
        self.assertNotIn("semantic: cosine", out)
        out = self.good("route", "debug", "it", "--explain", "--limit", "1")
        self.assertRegex(out, r'semantic: cosine \.\d+, text .*; keyword "deb')
        self.assertIn("     and 1 more\n", out)
        self.assertIn("score = 0.6 x semantic + 0.2 x performance", out)
        self.assertEqual(self.lines("tasks"), [])

    def test_a_confident_choice_is_shown_with_its_floor(self):
        self.fleet()
        out = self.good("route", "why does my program crash?")
        self.assertRegex(out, r"\n  band +confident: clearly for this agent\n")
        self.assertRegex(out, r"\n  semantic +0\.\d{3}, floor 0\.\d{3} "
                              r"\(one of 2 agents\)\n  score +0\.\d{3}\n")
        self.assertRegex(out, r"SCORE  SEMANTIC +FLOOR  PERFORMANCE")
        self.assertRegex(out, r"\n> 1  code +debug +0\.\d{3}  [#.]{5} \.\d{3}"
                              r"  \.\d{3} ")
        self.assertNotIn("enough", out)

    def test_one_agent_alone_is_called_that(self):
        self.server(agents=[CODE])
        self.assertIn(" (the only agent)\n",
                      self.good("route", "why does my program crash?"))
        out = self.good("route", "what is the capital of France?")
        self.assertIn("; the only agent gets every message\n", out)
        self.assertNotIn("lead over the next", out)

    def test_a_correction_that_decided_is_named(self):
        self.fleet()
        text = "what is the capital of France?"
        [sent] = self.lines("send", text, "--to", "code")
        self.good("decisions", "override", sent["decision"]["id"], "writer")
        out = self.good("route", text)
        self.assertTrue(out.startswith("writer\n"), out)
        self.assertIn("; a correction of this text decided\n",
                      out.replace("\n                ", " "))
        self.assertNotIn("lead over the next", out)

    def test_where_it_came_from_decides(self):
        self.fleet()
        text = ["draft a blog post", "--channel", "Telegram"]
        self.assertEqual(self.routed(*text), ("writer", "semantic"))
        self.assertEqual(self.routed(*text, "--peer", "channel:-1005678"),
                         ("ops", "binding"))
        self.assertEqual(self.routed(*text, "--peer", "direct:1", "--parent",
                                     "group:-1005678"), ("ops", "binding"))
        self.assertEqual(self.routed("x", "--to", "CODE"),
                         ("code", "explicit"))
        self.assertEqual(self.routed("/writer x"), ("writer", "prefix"))

    def test_nobody_is_said_with_who_came_nearest(self):
        self.fleet(routing={"threshold": 0.3})
        status, out, err = self.run_it("route", "qwertz uiop")
        self.assertEqual(status, REFUSED)
        self.assertIn("AGENT", out)
        self.assertIn("0.300 is needed", err)
        self.assertIn("name one with --to NAME,", " ".join(err.split()))
        error = json.loads(self.bad(REFUSED, "route", "qwertz uiop",
                                    "--json"))["error"]
        self.assertEqual(error["code"], "no_route")
        self.assertGreater(len(error["details"]["candidates"]), 0)
        self.assertEqual((error["details"]["band"],
                          error["details"]["threshold"]),
                         ("out_of_scope", 0.3))

    def test_a_refusal_by_floors_names_its_band_and_no_threshold(self):
        self.fleet(routing={"unsure": "refuse"})
        text = "what is the capital of France?"
        error = json.loads(self.bad(REFUSED, "route", text,
                                    "--json"))["error"]
        self.assertIn(error["details"]["band"], ("unsure", "out_of_scope"))
        self.assertIsNone(error["details"]["threshold"])
        _, out, _ = self.run_it("route", text)
        self.assertIn("FLOOR", out)
        self.assertNotIn("not enough", out)

    def test_a_default_gets_the_rest(self):
        agents = [CODE, dict(WRITER, default=True), OPS]
        self.fleet(agents={"list": agents}, routing={"threshold": 0.3})
        self.assertEqual(self.routed("qwertz uiop"), ("writer", "default"))

    def test_wrong_use(self):
        for args, word in [
                ([], "a message is missing"),
                ([""], "a message is missing"),
                (["x", "--peer", "group:1"], "--peer needs --channel"),
                (["x", "--channel", "t", "--peer", "group"], "KIND:ID"),
                (["x", "--channel", "t", "--parent", ":7"], "KIND:ID"),
                (["x", "--limit", "33"], "from 1 to 32")]:
            with self.subTest(args):
                self.assertIn(word, self.bad(USAGE, "route", *args))


class Lint(Client):
    def write(self, agents, **more):
        path = os.path.join(self.home, "fleet.jsonc")
        with open(path, "w", encoding="utf-8") as f:
            json.dump({"agents": {"list": agents, "default": "code"}, **more},
                      f)
        return path

    def test_a_good_fleet_has_nothing_to_mend(self):
        out = self.good("lint", self.write([CODE, WRITER, OPS],
                                           bindings=BOUND))
        self.assertIn("3 agents checked, 0 warnings\n", out)

    def test_what_is_wrong_is_found_without_a_server(self):
        twin = dict(WRITER, id="author",
                    routing={"keywords": ["help", "Debug"]})
        path = self.write([CODE, WRITER, twin, {"id": "quiet"}],
                          bindings=[{"agentId": "code",
                                     "match": {"channel": "x"}}] * 2)
        status, out, err = self.run_it("lint", path, "--json")
        self.assertEqual((status, err), (FAILED, ""))
        found = [json.loads(line) for line in out.splitlines()]
        rules = {(f["check"], f["rule"]): f["agents"] for f in found}
        self.assertEqual(rules["keywords", "generic"], ["author"])
        self.assertEqual(rules["keywords", "shared"], ["code", "author"])
        self.assertEqual(rules["twins", "alike"], ["writer", "author"])
        self.assertEqual(rules["reach", "profile"], ["quiet"])
        self.assertIn(("bindings", "shadowed"), rules)
        status, out, _ = self.run_it("lint", path, "--limit", "1")
        self.assertIn("--limit shows them", out)

    def test_a_server_s_agents_are_looked_at(self):
        self.server(agents=[CODE, WRITER])
        self.assertIn("2 agents checked", self.good("lint", "--server"))

    def test_the_warnings_and_reasons_of_a_server_are_told(self):
        box = self.server(agents=[CODE, WRITER])
        for name, url in (("lost", "model:gpt-9"),
                          ("private", "http://10.1.2.3/agent"),
                          ("away", "ws-agent://away")):
            made = box.call("POST", "/api/agents", {
                "name": name, "url": url, "description":
                f"{name} knows the names of all birds, fish and flowers that "
                f"live in the {name} garden behind the old house"})
            self.assertEqual(made.status, 201, made)
        status, out, err = self.run_it("lint", "--server", "--json")
        self.assertEqual((status, err), (FAILED, ""))
        found = {(f["rule"], f["agents"][0]): f
                 for f in map(json.loads, out.splitlines())}
        for rule, name, words, advice in (
                ("unknown_model", "lost", 'the model "gpt-9" is not', "models"),
                ("closed_address", "private", "10.1.2.3", "outgoing.allow"),
                ("dead", "lost", '"gpt-9"', "fix its card or the server's"),
                ("dead", "away", "not connected since", "start it")):
            with self.subTest(rule, name=name):
                f = found[rule, name]
                self.assertIn(words, f["message"])
                self.assertIn(advice, f["advice"])
        self.assertNotIn("cannot be woken", out)
        self.assertIn("outgoing.allow", self.good("lint", "--help"))

    def test_wrong_use(self):
        self.assertIn("no agents to check", self.bad(USAGE, "lint"))
        path = self.write([{"id": "a", "ur": 1}])
        self.assertIn("agents.list[0].ur", self.bad(USAGE, "lint", path))
        self.assertIn("only one of them",
                      self.bad(USAGE, "lint", path, "--server"))
        self.assertIn("0.5 to 1", self.bad(USAGE, "lint", "--twins", "2",
                                           self.write([CODE])))


if __name__ == "__main__":
    unittest.main()
