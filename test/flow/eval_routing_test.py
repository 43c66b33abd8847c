"""signalbox eval and calibrate through all of choosing: the scores are those
of a server, learning learns, hostile cards win little, the threshold is what
its figures say, and nothing is left behind."""
import json
import os
import shutil
import subprocess
import tempfile
import unittest

from provider import Provider
from signalbox import Server

ROOT = os.environ["SIGNALBOX_SOURCE"]
BIN = os.environ["SIGNALBOX_BIN"]
QUALITY = os.path.join(ROOT, "test", "quality")
OWN = ("--agents", os.path.join(QUALITY, "agents.jsonl"),
       os.path.join(QUALITY, "queries.jsonl"))
# Where which model it is does not matter: the transformer takes longer.
TABLE = ("--embedder", "table")
FAST = (*OWN, *TABLE)


def rows(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


class Routing(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="signalbox-routing-")
        self.addCleanup(shutil.rmtree, self.home)
        self.env = {"PATH": "/usr/bin:/bin", "HOME": self.home}

    def run_it(self, *args, command="eval"):
        return subprocess.run(
            [BIN, command, *args], cwd=self.home, env=self.env,
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=120)

    def result(self, *args, **more):
        r = self.run_it("--json", *args, **more)
        self.assertEqual((r.returncode, r.stderr), (0, ""), r.stdout)
        return json.loads(r.stdout)

    def out(self, *args):
        result = self.result(*args, "--out", "out.jsonl")
        return result, rows(os.path.join(self.home, "out.jsonl"))

    def lines(self, name, *all_of):
        with open(os.path.join(self.home, name), "w", encoding="utf-8") as f:
            for row in all_of:
                f.write(json.dumps(row) + "\n")
        return name


class TheScores(Routing):
    def test_they_are_those_of_a_server(self):
        agents = rows(OWN[1])[:8]
        for a in agents:
            a["skills"] = [{"id": s.replace(" ", "-"), "name": s}
                           for s in a["skills"]]
        agents[0]["routing"] = {"keywords": ["stack trace"]}
        names = {a["name"] for a in agents}
        queries = [q for q in rows(OWN[2]) if set(q["agents"]) <= names][:40]
        _, decided = self.out(
            "--agents", self.lines("a", *agents),
            self.lines("t", *queries), "--set", "routing.threshold=0")
        cards = [dict(a, id=a["name"], url="echo:") for a in agents]
        for card in cards:
            del card["name"]
        with Server(config={"agents": {"list": cards},
                            "routing": {"threshold": 0}}) as server:
            server.ready()
            for row in decided:
                answer = server.call("POST", "/api/route",
                                     {"text": row["text"]}).json()
                there = [(c["agent"], c["score"])
                         for c in answer["candidates"][:10]]
                here = [(r["agent"], r["score"]) for r in row["ranked"]]
                for (a, x), (b, y) in zip(here, there):
                    self.assertEqual(a, b, row["text"])
                    self.assertAlmostEqual(x, y, 4)

    def test_a_keyword_counts_for_its_weight(self):
        query = self.lines("t", {"text": "zzz", "agents": ["p"]})
        scores = []
        for routing in ({}, {"keywords": ["zzz"]}):
            agents = self.lines("a", {"name": "p", "description": "paints",
                                      "routing": routing}, {"name": "q"})
            _, [row] = self.out("--agents", agents, query, "--set",
                                "routing.weights.keyword=0.5")
            scores.append({r["agent"]: r["score"] for r in row["ranked"]}
                          .get("p", .1))
        # The word is also one of those that it is found by.
        self.assertGreater(scores[1] - scores[0], .5)
        self.assertLess(scores[1] - scores[0], 1.1)

    def test_who_is_below_the_threshold_goes_to_the_default_agent(self):
        for default, layer in (((), "none"), (("--default", "desk"),
                                              "default")):
            r = self.result(*FAST, "--set", "routing.threshold=0.9",
                            *default)["routing"]
            self.assertEqual(r["layers"][layer], 558)
            self.assertEqual((r["right_agent"], r["false_alarms"],
                              r["out_of_scope_recall"]), (0, 1, 1))
        r = self.result(*FAST, "--set", "routing.threshold=0")["routing"]
        self.assertEqual((r["false_alarms"], r["out_of_scope_recall"]), (0, 0))
        self.assertEqual(r["right_agent"], r["accuracy_at_1"])

    def test_the_default_may_be_one_of_them(self):
        r = self.result(*FAST, "--set", "routing.threshold=0.9", "--default",
                        "Coder")["routing"]
        self.assertAlmostEqual(r["right_agent"], 17 / 502, 2)

    def test_nothing_is_left_behind(self):
        self.env["TMPDIR"] = tempfile.mkdtemp(dir=self.home)
        before = os.stat(self.env["TMPDIR"]).st_mtime_ns
        self.result(*OWN, "--limit", "3")
        r = self.run_it("--agents", self.lines(
            "a", {"name": "p", "description": "x" * 20000}), self.lines(
                "t", {"text": "x", "agents": ["p"]}))
        self.assertEqual(r.returncode, 2)
        self.assertIn('agent "p" has an invalid card: /description', r.stderr)
        self.assertGreater(os.stat(self.env["TMPDIR"]).st_mtime_ns, before)
        self.assertEqual(os.listdir(self.env["TMPDIR"]), [])

    def test_a_name_that_the_api_has_is_no_matter(self):
        agents = self.lines("a", {"name": "search", "description": "finds"},
                            {"name": "cook", "description": "cooks"})
        _, [row] = self.out("--agents", agents, self.lines(
            "t", {"text": "finds things", "agents": ["search"]}))
        self.assertTrue(row["right"])

    def test_a_provider_that_fails_is_said_once(self):
        with Provider(dims=3) as provider:
            provider.mode = "broken"
            r = self.run_it(*OWN, "--limit", "2", "--embedder", "http",
                            "--set", "embed.http.url=" + provider.url,
                            "--set", "embed.http.model=m")
        self.assertEqual((r.returncode, r.stdout), (4, ""))


BANDS = ("confident_right", "confident_wrong", "unsure", "out_of_scope")


class Bands(Routing):
    def fleet(self, name):
        return ("--agents", os.path.join(QUALITY, "fleets",
                                         name + ".agents.jsonl"),
                os.path.join(QUALITY, "fleets", name + ".queries.jsonl"))

    def test_a_number_is_confident_from_there_on(self):
        r = self.result(*self.fleet("clinic"), "--set",
                        "routing.threshold=0.3")["routing"]
        bands = r["bands"]
        self.assertEqual(r["threshold"], .3)
        self.assertEqual((bands["n"], bands["n_out_of_scope"]), (58, 16))
        self.assertEqual(bands["unsure"], 0)
        self.assertEqual(sum(bands[key] for key in BANDS), 58)
        self.assertEqual(bands["confident_right"],
                         round(58 * r["right_agent"]))
        self.assertEqual(bands["out_of_scope_detected"],
                         round(16 * r["out_of_scope_recall"]))
        self.assertAlmostEqual(bands["confident_share"],
                               bands["top_1_confident"] / bands["top_1"])

    def test_auto_is_a_word_and_levels_add_up(self):
        r = self.result(*self.fleet("clinic"))
        self.assertEqual(r["routing"]["threshold"], "auto")
        total = r["routing"]["bands"]
        for key in (*BANDS, "n", "top_1", "unsure_right", "n_out_of_scope"):
            self.assertEqual(sum(level["bands"][key] for level in r["levels"]),
                             total[key], key)
        self.assertEqual(sum(total[key] for key in BANDS), total["n"])

    def test_they_are_said_in_words_and_query_by_query(self):
        seen = self.run_it(*self.fleet("clinic"), "--set",
                           "routing.threshold=0.3").stdout
        for word in ("confident", "unsure", "delivered", "detected"):
            self.assertRegex(seen, rf"\n{word} +[0-9]")
        self.assertRegex(seen, r"\nBANDS +RIGHT +WRONG +UNSURE")
        result, lines = self.out(*self.fleet("clinic"), "--set",
                                 "routing.threshold=0.3")
        confident = [row for row in lines if row["band"] == "confident"]
        bands = result["routing"]["bands"]
        self.assertEqual(
            len(confident), bands["confident_right"]
            + bands["confident_wrong"] + bands["n_out_of_scope"]
            - bands["out_of_scope_detected"])

    def test_other_modes_have_none(self):
        r = self.result(*self.fleet("clinic"), "--mode", "text")
        self.assertIsNone(r["routing"])
        self.assertNotIn("bands", r["levels"][0])


class Learning(Routing):
    def test_it_learns_from_others_and_the_order_is_chances(self):
        agents = self.lines("a", {"name": "paint", "description": "colours"},
                            {"name": "wood", "description": "saws"})
        said = [(f"number {i} {word}", name)
                for i in range(20)
                for word, name in (("colours please", "wood"),
                                   ("saws please", "paint"))]
        test = self.lines("t", *({"text": text, "agents": [name]}
                                 for text, name in said))
        args = ("--agents", agents, test, "--learn", "4,8,99", "--folds", "4",
                "--default", "desk", "--set", "routing.threshold=0.1")
        one = self.result(*args)
        self.assertEqual(one["accuracy_at_1"], 0)
        learnt = one["routing"]["learning"]
        self.assertEqual([p["outcomes"] for p in learnt], [4, 8, 30])
        self.assertEqual(learnt[-1]["accuracy_at_1"], 1)
        self.assertGreater(learnt[0]["corrections"], 0)
        again = self.result(*args)["routing"]
        self.assertEqual(learnt, again["learning"])
        seen = self.run_it(*args).stdout
        self.assertRegex(seen, r"\nOUTCOMES +FIRST")

    def test_from_a_file(self):
        train = self.lines("train", *({"text": q["text"],
                                       "agents": q["agents"]}
                                      for q in rows(OWN[2])[:60]))
        r = self.result(*FAST, "--train", train, "--learn", "20,500",
                        "--default", "desk", "--seed", "3")
        learnt = r["routing"]["learning"]
        self.assertEqual([p["outcomes"] for p in learnt], [20, 60])
        # It was asked the very same.
        self.assertGreater(learnt[-1]["accuracy_at_1"],
                           r["accuracy_at_1"])


class Hostile(Routing):
    def test_what_strangers_win_is_little(self):
        for how, n, most in (("stuffed", 4, .02), ("crowd", 3, .15)):
            raids = self.result(*OWN, "--capture", how)["routing"]["capture"]
            self.assertEqual(len(raids), n)
            for raid in raids:
                self.assertEqual(raid["cards"], 1 if how == "stuffed" else 30)
                self.assertLessEqual(raid["captured"], most, raid)
        raids = self.result(*OWN, "--capture", "keywords")[
            "routing"]["capture"]
        self.assertEqual([r["cards"] for r in raids], [1, 30])
        for raid in raids:
            self.assertLessEqual(raid["captured"], .05, raid)
        self.assertIn("HOSTILE CARDS", self.run_it(
            *OWN, "--capture", "stuffed", "--limit", "20").stdout)

    def questions(self, relation, *more):
        return self.result(*OWN, "--capture", "questions", "--relation",
                           relation, *more)["routing"]["capture"]

    # Thousands of examples, which the transformer takes half a minute for: so
    # it reads some of those of one relation, and the table all of each.
    def test_cards_made_of_questions_win_little(self):
        for relation, *more in (("platform", *TABLE), ("rated", *TABLE),
                                ("rated", "--limit", "60")):
            for raid in self.questions(relation, *more)[1:12]:
                self.assertLessEqual(raid["captured"], .05, raid)
        for raid in self.questions("strangers", *TABLE)[1:]:
            owners = raid["owners"]
            share = owners / (owners + len(rows(OWN[1])))
            self.assertLessEqual(raid["captured"], share + .02, raid)

    def test_without_protection_they_win_much(self):
        raids = self.questions("platform", *TABLE, "--set",
                               "routing.preset=seed")
        self.assertGreater(max(r["captured"] for r in raids), .3)
        raids = self.result(*FAST, "--capture", "keywords", "--set",
                            "routing.trust=all")["routing"]["capture"]
        self.assertGreater(min(r["captured"] for r in raids), .3)


class Tiers(Routing):
    def test_how_many_each_tier_decided_is_said(self):
        r = self.result(*OWN)["routing"]
        n = sum(r["layers"].values())
        self.assertEqual(set(r["tiers"]), {"table", "transformer"})
        self.assertLessEqual(sum(r["tiers"].values()), n)
        self.assertRegex(self.run_it(*OWN).stdout,
                         r"\ntiers +table \d+ \(.* %\), transformer \d+ \(")
        # The controls: by other margins, and with a model of one tier.
        always = self.result(*OWN, "--set", "embed.secondMargin=10")
        self.assertLess(always["routing"]["tiers"].get("table", 0),
                        r["tiers"]["table"])
        least = self.result(*OWN, "--set", "embed.secondMargin=0")
        self.assertGreater(least["routing"]["tiers"]["table"],
                           r["tiers"]["table"])
        for kind in ("table", "transformer"):
            one = self.result(*OWN, "--embedder", kind)
            self.assertEqual(one["routing"]["tiers"], {})
            self.assertNotIn("\ntiers ", self.run_it(
                *OWN, "--embedder", kind).stdout)


class Calibrate(Routing):
    def test_its_figures_are_those_of_eval(self):
        fixed = ("--set", "routing.threshold=0.3")
        r = self.result(*OWN, *fixed, command="calibrate")
        for part, more in (("now", fixed), (None, (
                "--set", f"routing.threshold={r['threshold']}"))):
            e = self.result(*OWN, *more)["routing"]
            if part:
                for key in ("right_agent", "false_alarms",
                            "out_of_scope_recall"):
                    self.assertAlmostEqual(r[part][key], e[key], 6)
            worth = e["right_agent"] + e["out_of_scope_recall"]
        now = r["now"]["right_agent"] + r["now"]["out_of_scope_recall"]
        self.assertGreater(worth, now)
        held = (r["expected"]["right_agent"]
                + r["expected"]["out_of_scope_recall"])
        self.assertLess(abs(worth - held), .1)
        self.assertLessEqual(r["least"], r["threshold"] + .001)
        self.assertGreaterEqual(r["most"], r["threshold"] - .001)
        self.assertEqual(r["weights"]["semantic"], .6)

    def test_auto_is_shown_beside_the_number(self):
        e = self.result(*FAST)["routing"]["bands"]
        for more, now in (((), "auto"),
                          (("--set", "routing.threshold=0.3"), .3)):
            r = self.result(*FAST, *more, command="calibrate")
            self.assertEqual(r["now"]["threshold"], now)
            self.assertEqual(r["auto"]["threshold"], "auto")
            self.assertAlmostEqual(r["auto"]["right_agent"],
                                   e["confident_right"] / e["n"])
            self.assertAlmostEqual(r["auto"]["unsure"], e["unsure"] / e["n"])
            self.assertAlmostEqual(r["auto"]["out_of_scope_recall"],
                                   e["detected_share"])
            text = self.run_it(*FAST, *more, command="calibrate").stdout
            self.assertRegex(text, "\nnow, at auto " if now == "auto"
                             else r"\nnow, at 0\.3 .*\n(.*\n)?at auto ")
            self.assertIn('The default is "auto"', text)

    def test_weights_and_what_to_put_into_the_configuration(self):
        text = self.run_it(*FAST, "--weights", "--folds", "2", "--limit", "200",
                           command="calibrate").stdout
        setting = json.loads("{" + text[text.index('"routing"'):].split(
            "\n\n")[0] + "}")["routing"]
        self.assertAlmostEqual(sum(setting["weights"].values()), 1)
        with open(os.path.join(self.home, "signalbox.jsonc"), "w",
                  encoding="utf-8") as f:
            json.dump({"routing": setting}, f)
        e = self.result(*FAST, "--limit", "9")["routing"]
        self.assertAlmostEqual(e["threshold"], setting["threshold"])

    def test_without_any_out_of_scope_it_says_so(self):
        text = self.run_it(*FAST, "--limit", "60", command="calibrate").stdout
        self.assertIn("No query is out of scope", text)
        self.assertIn("100 % |", text)

    def test_usage(self):
        for args, words in (
                ((), "signalbox calibrate --agents"),
                ((*OWN, "--folds", "1"), "from 2 to 100"),
                ((*OWN, "--learn", "5"), "--learn needs --train"),
                ((*OWN, "--limit", "1", "--folds", "5"), "--folds is 5"),
                ((*OWN, "--embedder", "cascade"), "cascade was removed")):
            with self.subTest(args=args):
                r = self.run_it(*args, command="calibrate")
                self.assertEqual((r.returncode, r.stdout), (2, ""))
                self.assertIn(words, r.stderr)


if __name__ == "__main__":
    unittest.main()
