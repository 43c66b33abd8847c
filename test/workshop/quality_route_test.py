"""tools/quality_route.py makes sets of fleets and averages over them. Anyone who
plays `signalbox` here keeps what it was given and answers with figures that
depend on the number of agents alone."""
import gzip
import json
import os
import subprocess
import sys
import tempfile
import unittest

TOOL = os.path.join(os.environ["SIGNALBOX_SOURCE"], "tools",
                    "quality_route.py")
PLAYER = """#!/usr/bin/python3
import json, os, sys
def rows(path):
    return [json.loads(line) for line in open(path, encoding="utf-8")]
args = sys.argv[1:]
if "--fail" in args:
    sys.exit("it does not work")
agents, queries = (rows(p) for p in args[args.index("--agents") + 1:][:2])
shown = rows(args[args.index("--examples") + 1]) if "--examples" in args else []
with open(os.environ["KEPT"], "a") as f:
    f.write(json.dumps({"agents": agents, "queries": queries, "shown": shown,
                        "args": args}) + "\\n")
part, n = 1 / len(agents), len(queries)
print(json.dumps({
    "accuracy_at_1": part, "accuracy_at_3": 1, "ndcg_at_10": None,
    "embedder": {"name": "toy"}, "routing": {"bands": {
        "n": n, "confident_right": n, "confident_wrong": 0, "unsure": 0,
        "unsure_right": 0, "out_of_scope": 0}}}))
"""


def card(key, fleet, name="A card", about="It does one thing. And another.",
         **more):
    return {"id": key, "fleet": fleet, "name": name, "description": about,
            "skills": ["s1", "s2"], "lang": "en", "source": "x", **more}


def message(key, text, lang="en"):
    return {"card": key, "text": text, "lang": lang}


CARDS = [
    card("a1", "agents/one"),
    card("a2", "agents/one", about="It translates whole contracts. Quickly."),
    card("b1", "agents/two"), card("b2", "agents/two", "my skill/it"),
    card("b3", "agents/two"), card("b4", "agents/two"),
    card("c1", "lobe/x/de", "Wörter", "Erklärt Wörter.", lang="de", alt="a1"),
    card("c2", "lobe/x/de", "Zahlen", "Rechnet.", lang="de", alt="a2"),
    card("c3", "lobe/x/de", "代码助手", "写代码。", lang="de"),
    card("t1", "agents/three"), card("t2", "agents/three"),
    card("z1", "agents/four"),
]
MESSAGES = ([message("a1", f"please do the first thing {i}") for i in range(9)]
            + [message("b2", "something quite long for the second fleet")]
            + [message("c1", "was heisst das", "de"),
               message("c3", "schreib ein Programm", "de")]
            + [message("t1", "a text that is for training")]
            + [message("z1", "there is one card alone")])
FLEETS = {"agents/one": "dev", "agents/two": "dev", "lobe/x/de": "dev",
          "agents/three": "train", "agents/four": "dev"}


class Route(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        groups = [{"fleet": f, "split": split, "source": "x",
                   "cards": [c["id"] for c in CARDS if c["fleet"] == f]}
                  for f, split in FLEETS.items()]
        for name, rows in (("cards", CARDS), ("messages", MESSAGES),
                           ("groups", groups)):
            with gzip.open(self.path(name + ".jsonl.gz"), "wt",
                           encoding="utf-8") as f:
                f.writelines(json.dumps(row) + "\n" for row in rows)
        with open(self.path("near.jsonl"), "w", encoding="utf-8"):
            pass
        with open(self.path("signalbox"), "w", encoding="utf-8") as f:
            f.write(PLAYER)
        os.chmod(self.path("signalbox"), 0o755)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def run_tool(self, case, *more):
        return subprocess.run(
            [sys.executable, TOOL, "--data", self.folder.name, "--cases", case,
             "--json", self.path("out.json"), "--jobs", "2", "--embedder",
             "table", self.path("signalbox"), *more], capture_output=True,
            text=True, check=False, env={"KEPT": self.path("kept"),
                                         "PATH": "/usr/bin:/bin"})

    def measure(self, case):
        """The figures, and what was asked, smallest fleet first."""
        run = self.run_tool(case)
        self.assertEqual(run.returncode, 0, run.stderr)
        with open(self.path("out.json"), encoding="utf-8") as f:
            found = json.load(f)["cases"][case]
        with open(self.path("kept"), encoding="utf-8") as f:
            kept = [json.loads(line) for line in f]
        os.remove(self.path("kept"))
        return found, sorted(kept, key=lambda k: len(k["agents"]))

    def test_fleets_count_the_same_whatever_their_messages(self):
        found, kept = self.measure("english")
        self.assertEqual((found["fleets"], found["messages"]), (2, 10))
        self.assertAlmostEqual(found["top_1"], (1 / 2 + 1 / 4) / 2)
        self.assertIsNone(found["ndcg_at_10"])
        self.assertEqual([len(k["queries"]) for k in kept], [9, 1])
        self.assertEqual(kept[0]["args"][-2:], ["--embedder", "table"])

    def test_every_agent_has_a_name_that_a_server_takes(self):
        _, (_, two) = self.measure("english")
        self.assertEqual([a["name"] for a in two["agents"]],
                         ["A-card", "my-skill-it", "A-card-2", "A-card-3"])
        self.assertEqual(two["queries"][0]["agents"], ["my-skill-it"])

    def test_thin_cards_have_one_sentence(self):
        _, (one, _) = self.measure("thin")
        about = "It translates whole contracts."
        self.assertEqual(one["agents"][1],
                         {"name": "A-card-2", "description": about})

    def test_what_is_shown_is_not_asked(self):
        _, (one, two) = self.measure("rich")
        self.assertEqual((len(one["shown"]), len(one["queries"])), (3, 6))
        texts = [{r["text"] for r in one[k]} for k in ("shown", "queries")]
        self.assertFalse(texts[0] & texts[1])
        self.assertEqual((len(two["shown"]), len(two["queries"])), (0, 1))
        _, (without, _) = self.measure("rich-without")
        self.assertEqual(without["queries"], one["queries"])
        self.assertEqual(without["shown"], [])

    def test_mistakes_are_the_same_every_time(self):
        first, again, none = (self.measure(case)[1][0]["queries"]
                              for case in ("typos", "typos", "english"))
        self.assertEqual(first, again)
        self.assertNotEqual(first, none)

    def test_cards_of_another_language(self):
        _, [own] = self.measure("de/own")
        self.assertEqual(own["agents"][0]["name"], "W-rter")
        # Nothing of this name can stay.
        self.assertEqual(own["agents"][2]["name"], "a3")
        self.assertEqual(own["agents"][2]["description"], "代码助手: 写代码。")
        self.assertEqual(len(own["queries"]), 2)
        _, [english] = self.measure("de/english")
        self.assertEqual([a["description"] for a in english["agents"]],
                         ["It does one thing. And another.",
                          "It translates whole contracts. Quickly."])
        self.assertEqual([q["text"] for q in english["queries"]],
                         ["was heisst das"])

    def test_a_run_that_fails_is_no_figure(self):
        run = self.run_tool("english", "--fail")
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("it does not work", run.stderr)
        self.assertFalse(os.path.exists(self.path("out.json")))

    def test_a_case_that_is_none_is_refused(self):
        run = self.run_tool("klingon/own")
        self.assertEqual(run.returncode, 2)
        self.assertIn("no such case", run.stderr)
