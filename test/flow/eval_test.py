"""signalbox eval, as a user and as a script meet it. The figures are computed
once more from what --out says of each query; a provider with vectors that are
known shows that texts, ties and examples are what they should be.
"""
import collections
import json
import math
import os
import shutil
import subprocess
import tempfile
import unittest

from provider import Provider
from terminal import on_terminal

ROOT = os.environ["SIGNALBOX_SOURCE"]
BIN = os.environ["SIGNALBOX_BIN"]
QUALITY = os.path.join(ROOT, "test", "quality")
OWN = ("--agents", os.path.join(QUALITY, "agents.jsonl"),
       os.path.join(QUALITY, "queries.jsonl"))
OK, FAILED, USAGE, REFUSED, UNREACHABLE = 0, 1, 2, 3, 4


class Eval(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="signalbox-eval-")
        self.addCleanup(shutil.rmtree, self.home)
        self.env = {"PATH": "/usr/bin:/bin", "HOME": self.home}

    def run_it(self, *args, binary=BIN):
        return subprocess.run(
            [binary, "eval", *args], cwd=self.home, env=self.env,
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=120)

    def result(self, *args, **more):
        r = self.run_it("--json", *args, **more)
        self.assertEqual((r.returncode, r.stderr), (OK, ""), r.stdout)
        return json.loads(r.stdout)

    def bad(self, status, *args):
        r = self.run_it(*args)
        self.assertEqual(r.returncode, status, r.stdout + r.stderr)
        self.assertEqual(r.stdout, "")
        return r.stderr

    def path(self, name):
        return os.path.join(self.home, name)

    def read(self, name):
        with open(self.path(name), "rb") as f:
            return f.read()

    def lines(self, name, *rows):
        """A file of one JSON object a line; bytes are written as they are."""
        with open(self.path(name), "wb") as f:
            for row in rows:
                if not isinstance(row, bytes):
                    row = json.dumps(row, ensure_ascii=False).encode() + b"\n"
                f.write(row)
        return name

    def out(self, *args, **more):
        """The figures, and what became of each query."""
        result = self.result(*args, "--out", "out.jsonl", **more)
        with open(self.path("out.jsonl"), encoding="utf-8") as f:
            return result, [json.loads(line) for line in f]


def accuracy(rows, k):
    return sum(any(r["agent"] in row["expected"] for r in row["ranked"][:k])
               for row in rows) / len(rows)


def recall(rows, k):
    return sum(sum(r["agent"] in row["expected"] for r in row["ranked"][:k])
               / len(row["expected"]) for row in rows) / len(rows)


def ndcg(rows, k):
    def worth(places):
        return sum(1 / math.log2(1 + p) for p in places)
    return sum(worth(p for p, r in enumerate(row["ranked"][:k], 1)
                     if r["agent"] in row["expected"])
               / worth(range(1, 1 + min(k, len(row["expected"]))))
               for row in rows) / len(rows)


def mrr(rows):
    return sum(next((1 / p for p, r in enumerate(row["ranked"], 1)
                     if r["agent"] in row["expected"]), 0)
               for row in rows) / len(rows)


def macro_f1(rows):
    """By sets of (query, agent) pairs, agent by agent."""
    chosen = collections.defaultdict(set)
    weight = collections.defaultdict(dict)
    for i, row in enumerate(rows):
        first = row["ranked"][0]["agent"] if row["ranked"] else None
        if first:
            chosen[first].add(i)
        if first in row["expected"]:
            weight[first][i] = 1
        else:
            for agent in row["expected"]:
                weight[agent][i] = 1 / len(row["expected"])
    scores = []
    for agent in set(chosen) | set(weight):
        right = len(chosen[agent] & set(weight[agent]))
        precision = right / len(chosen[agent]) if chosen[agent] else 0
        recall = right / sum(weight[agent].values()) if weight[agent] else 0
        scores.append(2 * precision * recall / (precision + recall)
                      if right else 0)
    return sum(scores) / len(scores)


def best(row):
    return row["ranked"][0]["score"] if row["ranked"] else 0


def auroc(inside, outside):
    return sum((best(a) > best(b)) + (best(a) == best(b)) / 2
               for a in inside for b in outside) / len(inside) / len(outside)


def out_f1(inside, outside, threshold):
    said = [row for row in inside + outside if best(row) < threshold]
    right = sum(not row["expected"] for row in said)
    return 2 * right / (len(said) + len(outside)) if right else 0


class Figures(Eval):
    def check(self, result, rows):
        inside = [r for r in rows if r["expected"]]
        outside = [r for r in rows if not r["expected"]]
        self.assertEqual(result["n"], len(inside))
        self.assertEqual(result["n_out_of_scope"], len(outside))
        for k in (1, 3, 5):
            self.assertAlmostEqual(result[f"accuracy_at_{k}"],
                                   accuracy(inside, k))
        for k in (1, 3, 5, 10):
            self.assertAlmostEqual(result[f"recall_at_{k}"],
                                   recall(inside, k))
            self.assertAlmostEqual(result[f"ndcg_at_{k}"], ndcg(inside, k))
        self.assertAlmostEqual(result["mrr"], mrr(inside))
        self.assertAlmostEqual(result["macro_f1"], macro_f1(inside))
        scope = result["out_of_scope"]
        self.assertAlmostEqual(scope["auroc"], auroc(inside, outside))
        limit = scope["best_threshold"]
        self.assertAlmostEqual(scope["best_f1"],
                               out_f1(inside, outside, limit))
        every = [best(r) for r in rows]
        self.assertAlmostEqual(
            scope["best_f1"], max(out_f1(inside, outside, t)
                                  for t in every + [max(every) + 1]))
        right = (sum(best(r) < limit for r in outside)
                 + sum(best(r) >= limit and r["right"] for r in inside))
        self.assertAlmostEqual(scope["answered_right"], right / len(rows))
        for level in result["levels"]:
            some = [r for r in inside if r["level"] == level["level"]]
            self.assertEqual(level["n"], len(some))
            self.assertAlmostEqual(level["accuracy_at_3"], accuracy(some, 3))

    def check_rows(self, rows):
        for row in rows:
            scores = [r["score"] for r in row["ranked"]]
            self.assertEqual(scores, sorted(scores, reverse=True))
            if row["expected"]:
                self.assertEqual(
                    row["right"], bool(row["ranked"])
                    and row["ranked"][0]["agent"] in row["expected"])

    def test_they_agree_with_what_is_said_of_each_query(self):
        for how in ("mean", "best"):
            result, rows = self.out(*OWN, "--mode", "vectors", "--match", how,
                                    "--embedder", "builtin", "--by", "agent")
            self.check(result, rows)
            self.check_rows(rows)
            self.assertEqual(result["match"], how)
            self.assertEqual({r["model"] for r in rows}, {"builtin"})
            self.assertGreater(result["queries_per_second"], 0)
            self.assertEqual(len(result["embedder"]["hash"]), 64)
            self.assertEqual(sum(a["right"] for a in result["by_agent"]),
                             sum(r["right"] for r in rows if r["expected"]))

    def test_a_second_run_says_the_same(self):
        _, one = self.out(*OWN)
        _, two = self.out(*OWN)
        self.assertEqual(one, two)

    def test_limit_is_for_each_file(self):
        result, rows = self.out(*OWN, OWN[2], "--limit", "3")
        self.assertEqual(len(rows), 6)
        self.assertEqual(result["n"], 6)
        self.assertIsNone(result["out_of_scope"])

    def test_only_out_of_scope(self):
        agents = self.lines("a", {"name": "a"})
        test = self.lines("t", {"text": "hello", "agents": []})
        result, rows = self.out("--agents", agents, test)
        self.assertIsNone(result["accuracy_at_1"])
        self.assertIsNone(result["macro_f1"])
        self.assertIsNone(result["out_of_scope"]["auroc"])
        self.assertIsNone(rows[0]["right"])

    def test_what_has_nothing_in_it_is_wrong(self):
        agents = self.lines("a", {"name": "a", "description": "letters"},
                            {"name": "b", "description": "numbers"})
        test = self.lines("t", {"text": "", "agents": ["a"]},
                          {"text": " \n ", "agents": []},
                          {"text": "letters", "agents": ["a"]})
        result, rows = self.out("--agents", agents, test)
        self.assertEqual([r["right"] for r in rows], [False, True, True])
        self.assertEqual(rows[0]["ranked"], [])
        self.assertEqual(result["n_empty"], 2)
        self.assertEqual(len(result["warnings"]), 1)
        self.assertEqual(result["confusions"], [
            {"expected": "a", "chosen": None, "n": 1, "example": ""}])


class Known(Provider):
    """Vectors that a test can see through: [how often "x", "y", "z"]."""

    def data(self, texts):
        return [{"object": "embedding", "index": i, "embedding":
                 [text.count(letter) for letter in "xyz"]}
                for i, text in enumerate(texts)]


class WithProvider(Eval):
    def setUp(self):
        super().setUp()
        self.provider = Known(dims=3).__enter__()
        self.addCleanup(self.provider.__exit__)
        self.http = ("--set", "embed.http.url=" + self.provider.url,
                     "--set", "embed.http.model=known")

    def ask(self, agents, queries, *args, embedder="http"):
        a = self.lines("a", *agents)
        t = self.lines("t", *queries)
        return self.out("--agents", a, t, "--mode", "vectors", "--embedder",
                        embedder, *self.http, *args)

    def seen(self):
        return [text for r in self.provider.requests for text in r["input"]]

    def test_agents_are_texts_of_one_form(self):
        # One at a time, so that they arrive in the order they are sent.
        self.http += ("--set", "embed.http.maxRequests=1")
        self.ask([{"name": "Home_1.turnLights", "description": "xx on"},
                  {"name": "two", "description": "yy", "skills": [
                      "zz", {"name": "a_b", "description": "x",
                             "examples": ["y y"]}], "examples": ["xyz"]}],
                 [{"text": "x?", "agents": ["two"]}])
        self.assertEqual(self.seen(), ["turn Lights: xx on", "two: yy", "zz",
                                       "a b: x", "y y", "xyz", "x?"])

    def test_ties_go_to_the_name_that_sorts_first(self):
        agents = [{"name": n, "description": "x"} for n in
                  ("b", "C", "a", "d")]
        _, rows = self.ask(agents, [{"text": "x", "agents": ["C"]}])
        self.assertEqual([r["agent"] for r in rows[0]["ranked"]],
                         ["a", "b", "C", "d"])
        self.assertAlmostEqual(rows[0]["ranked"][3]["score"], 1, 5)

    def test_mean_and_best(self):
        agents = [{"name": "p", "description": "x", "examples": ["y"]},
                  {"name": "q", "description": "xxxxyyy"}]
        for how, first, score in (("mean", "q", 0.8), ("best", "p", 1)):
            _, rows = self.ask(agents, [{"text": "x", "agents": ["p"]}],
                               "--match", how)
            self.assertEqual(rows[0]["ranked"][0]["agent"], first)
            self.assertAlmostEqual(rows[0]["ranked"][0]["score"], score, 5)

    def test_examples_take_the_place_of_descriptions(self):
        agents = [{"name": "p", "description": "x"},
                  {"name": "q", "description": "y"},
                  {"name": "r", "description": "z"}]
        train = self.lines("e", {"text": "yyy", "agents": ["p"]},
                           {"text": "xz", "agents": ["q", "p"]},
                           {"text": "x", "agents": ["q"]},
                           {"text": "z", "agents": []})
        query = [{"text": "y", "agents": ["p"]}]
        # One at a time, so that they arrive in the order they are sent.
        self.http += ("--set", "embed.http.maxRequests=1")
        result, rows = self.ask(agents, query, "--examples", train,
                                "--shots", "2")
        self.assertEqual(result["shots"], 2)
        self.assertEqual(self.seen(), ["yyy", "xz", "xz", "x", "r: z", "y"])
        self.assertEqual([r["agent"] for r in rows[0]["ranked"]],
                         ["p", "q", "r"])
        # The mean of y and (x + z) / sqrt 2, made one long.
        self.assertAlmostEqual(rows[0]["ranked"][0]["score"], 0.5 ** 0.5, 5)
        self.assertEqual(result["warnings"],
                         ["1 agent has no example and is ranked by the "
                          "description"])
        result, _ = self.ask(agents, query, "--examples", train, "--shots",
                             "9", "--with-own")
        self.assertIn("2 agents have fewer than 9 examples",
                      result["warnings"])
        self.assertEqual(self.seen()[-6:],
                         ["p: x", "xz", "x", "q: y", "r: z", "y"])

    def test_examples_by_chance_are_the_same_for_the_same_seed(self):
        agents = [{"name": "p"}, {"name": "q", "description": "z"}]
        train = self.lines("e", *({"text": "x" * i + "z", "agents": ["p"]}
                                  for i in range(50)))
        seen = []
        self.http += ("--set", "embed.http.maxRequests=1")
        for seed in ("1", "1", "2"):
            self.provider.requests.clear()
            self.ask(agents, [{"text": "y", "agents": ["p"]}], "--examples",
                     train, "--shots", "3", "--seed", seed)
            seen.append(self.seen()[:3])
        self.assertEqual(seen[0], seen[1])
        self.assertNotEqual(seen[0], seen[2])
        self.assertNotEqual(seen[0], ["z", "xz", "xxz"])

    def test_many_queries_arrive_each_at_its_own(self):
        """More than a call takes."""
        agents = [{"name": n, "description": n * 3} for n in "xyz"]
        queries = [{"text": "xyz"[i % 3] * (1 + i % 7), "agents":
                    ["xyz"[i % 3]]} for i in range(700)]
        result, rows = self.ask(agents, queries)
        self.assertEqual(result["accuracy_at_1"], 1)
        self.assertEqual([r["text"] for r in rows],
                         [q["text"] for q in queries])

    def test_a_provider_that_fails_ends_it(self):
        self.provider.mode = "broken"
        a = self.lines("a", {"name": "p", "description": "x"})
        t = self.lines("t", {"text": "x", "agents": ["p"]})
        with open(self.path("out.jsonl"), "w", encoding="utf-8") as f:
            f.write("as it was")
        r = self.run_it("--agents", a, t, "--embedder", "http", "--out",
                        "out.jsonl", *self.http)
        self.assertEqual(r.returncode, UNREACHABLE)
        self.assertEqual(r.stdout, "")
        with open(self.path("out.jsonl"), encoding="utf-8") as f:
            self.assertEqual(f.read(), "as it was")


def text_score(documents, query, document):
    """The score of words by its formula; words are parted by blanks, and no
    stemmer changes them. Parts of a document are (weight, text)."""
    def counts(d):
        found = collections.Counter()
        for weight, text in d:
            for word in text.split():
                found[word] += weight
        return found
    all_of = [counts(d) for d in documents]
    mean = sum(sum(c.values()) for c in all_of) / len(all_of)
    mine, total, weights = counts(document), 0, []
    for word in dict.fromkeys(query.split()):
        df = sum(word in c for c in all_of)
        idf = math.log(1 + (len(all_of) - df + .5) / (df + .5))
        weights.append(idf)
        if mine[word]:
            length = sum(mine.values()) / mean
            total += idf * 2.2 * mine[word] / (
                mine[word] + 1.2 * (.25 + .75 * length))
    weights.sort(reverse=True)
    x = total / (sum(weights[:3]) * 2 * 2.2 / 3.2)
    return min(1, x) ** 1.5


def cosine(query, document):
    """As the provider has it. What stands for a document is what it says
    itself, without its examples; their letters are none of these."""
    def vector(text):
        v = [text.count(letter) for letter in "xyz"]
        length = math.hypot(*v)
        return [n / length for n in v] if length else v

    own = " ".join(text for weight, text in document if weight == 1)
    return max(0, sum(a * b for a, b in zip(vector(query), vector(own))))


class Search(WithProvider):
    AGENTS = [{"name": "fox", "description": "x x red hen"},
              {"name": "cow", "description": "y red",
               "skills": [{"name": "hen", "description": "z fox fox",
                           "examples": ["red"]}, "y"]},
              {"name": "owl", "description": "z"}]
    DOCUMENTS = {"fox": [[(1, "fox x x red hen")]],
                 "cow": [[(1, "cow y red")],
                         [(1, "hen z fox fox red"), (.25, "cow y red")],
                         [(1, "y"), (.25, "cow y red")]],
                 "owl": [[(1, "owl z")]]}
    QUERIES = ("fox", "red fox", "hen x unheard things", "y", "cow z x")

    def check(self, mode, semantic, text, *more):
        every = [d for ds in self.DOCUMENTS.values() for d in ds]
        if mode != "text":
            more = (*more, "--embedder", "http", *self.http)
        a = self.lines("a", *self.AGENTS)
        t = self.lines("t", *({"text": q, "agents": ["fox"]}
                              for q in self.QUERIES))
        result, rows = self.out("--agents", a, t, "--mode", mode, *more)
        for query, row in zip(self.QUERIES, rows):
            want = {}
            for agent, documents in self.DOCUMENTS.items():
                want[agent] = max(
                    semantic * cosine(query, d)
                    + text * text_score(every, query, d) for d in documents)
            want = sorted((item for item in want.items() if item[1] > 1e-6),
                          key=lambda item: (-item[1], item[0]))
            self.assertEqual([r["agent"] for r in row["ranked"]],
                             [agent for agent, _ in want], query)
            for got, (_, score) in zip(row["ranked"], want):
                self.assertAlmostEqual(got["score"], score, 3)
        return result, rows

    def test_text_is_the_formula_and_needs_no_model(self):
        result, rows = self.check("text", 0, 1)
        self.assertEqual((result["mode"], result["kind"], result["embedder"],
                          result["match"]), ("text", None, None, None))
        self.assertEqual({r["model"] for r in rows}, {None})
        self.assertEqual(self.seen(), [])

    def test_hybrid_is_seven_tenths_of_the_cosine_and_three_of_the_words(self):
        result, _ = self.check("hybrid", .7, .3)
        self.assertEqual((result["mode"], result["embedder"]["name"]),
                         ("hybrid", "known"))
        self.assertEqual(result["formula"], {"fusion": "weighted",
                                             "semantic": .7, "text": .3})

    def test_the_weights_are_those_of_the_configuration(self):
        for said, (semantic, text) in (((.2, .5), (.2, .5)), ((1, 0), (1, 0)),
                                       ((1, 1), (.5, .5))):
            weights = ("--set", f"search.semanticWeight={said[0]}",
                       "--set", f"search.textWeight={said[1]}")
            result, _ = self.check("hybrid", semantic, text, *weights)
            self.assertEqual(result["formula"], {
                "fusion": "weighted", "semantic": semantic, "text": text})
            shown = self.run_it("--agents", "a", "t", "--mode", "hybrid",
                                "--embedder", "http", *self.http, *weights)
            self.assertIn(f"{semantic:g} of the vector and {text:g} of the "
                          "words", shown.stdout)

    def test_the_fusion_is_that_of_the_configuration(self):
        args = (*OWN, "--mode", "hybrid", "--embedder", "builtin", "--limit",
                "9")
        _, weighted = self.out(*args)
        args += ("--set", "search.fusion=rrf")
        result, rows = self.out(*args)
        self.assertEqual(result["formula"]["fusion"], "rrf")
        self.assertNotEqual(rows, weighted)
        places = {2 / 61 / (1 / (60 + i) + 1 / (60 + k))
                  for i in range(1, 99) for k in range(1, 99)}
        places |= {2 / 61 * (60 + i) for i in range(1, 99)}
        for r in rows:
            for score in (x["score"] for x in r["ranked"]):
                self.assertLess(min(abs(1 / score - p) for p in places), 1e-4)
        self.assertIn("(rrf)", self.run_it(*args).stdout)

    def test_semantic_is_the_cosine_of_the_best_document(self):
        # A query without a vector, and only that one, goes by words.
        self.QUERIES = ("x", "red y fox", "hen x unheard things", "cow z x")
        result, _ = self.check("semantic", 1, 0)
        self.assertEqual((result["mode"], result["match"], result["formula"]),
                         ("semantic", None, None))

    def test_what_is_not_asked_for_as_a_search_is_routing(self):
        a = self.lines("a", {"name": "a", "description": "x", "skills": ["y"]},
                       {"name": "b", "description": "z"})
        t = self.lines("t", {"text": "x", "agents": ["a"]})
        args = ("--agents", a, t, "--embedder", "http", *self.http)
        plain, rows = self.out(*args)
        named, again = self.out(*args, "--mode", "routing")
        _, searched = self.out(*args, "--mode", "semantic")
        self.assertEqual((plain["mode"], named["mode"]), ("routing",) * 2)
        self.assertEqual(rows, again)
        self.assertNotEqual(rows, searched)
        # This provider knows a few letters and none of the reference texts.
        self.assertIn("every choice is unsure", plain["warnings"][0])
        self.assertEqual(rows[0]["band"], "unsure")
        for mode, words in (("routing", "routing, as messages are routed"),
                            ("semantic", "semantic, as agent.search")):
            shown = self.run_it(*args, "--mode", mode).stdout.splitlines()
            self.assertRegex(shown[0], f"^mode +{words}")

    def test_what_shares_nothing_is_not_found(self):
        a = self.lines("a", {"name": "fox"}, {"name": "owl"})
        t = self.lines("t", {"text": "the?", "agents": ["fox"]},
                       {"text": "", "agents": []},
                       {"text": "Foxes", "agents": ["fox"]})
        result, rows = self.out("--agents", a, t, "--mode", "text")
        self.assertEqual([len(r["ranked"]) for r in rows], [0, 0, 1])
        self.assertEqual([r["right"] for r in rows], [False, True, True])
        self.assertEqual(result["warnings"],
                         ["for 2 queries nothing was found: no agent was "
                          "chosen"])

    def test_the_builtin_model_and_words_together(self):
        _, rows = self.out(*OWN, "--mode", "hybrid", "--embedder", "builtin")
        result, again = self.out(*OWN, "--mode", "hybrid", "--embedder",
                                 "builtin")
        self.assertEqual(rows, again)
        self.assertAlmostEqual(
            result["accuracy_at_5"],
            accuracy([r for r in rows if r["expected"]], 5))
        shown = self.run_it(*OWN, "--mode", "text")
        self.assertEqual(shown.returncode, OK, shown.stderr)
        self.assertIn("the words of the agent and its skills", shown.stdout)


class Mistakes(Eval):
    def test_usage(self):
        a = self.lines("a", {"name": "p"})
        t = self.lines("t", {"text": "x", "agents": ["p"]})
        good = ("--agents", a, t)
        mean = (*good, "--mode", "vectors")
        for args, words in (
                ((), "signalbox eval --agents A.jsonl TEST.jsonl"),
                (("--agents", a), "signalbox eval --agents"),
                ((t,), "signalbox eval --agents"),
                ((*good, "--embedder", "bm25"),
                 "builtin, table, transformer, minilm or http"),
                ((*mean, "--embedder", "cascade"), "cascade was removed: builtin"),
                ((*good, "--embedder", "http"), "embed.http.url is not set"),
                ((*good, "--margin", "0.1"), "--margin"),
                ((*mean, "--learn", "5", "--folds", "2"),
                 "--learn is for --mode routing"),
                ((*good, "--learn", "5"), "--train FILE or --folds K"),
                ((*good, "--learn", "5,5", "--folds", "2"), "500,2000,5000"),
                ((*good, "--learn", "x", "--folds", "2"), "500,2000,5000"),
                ((*good, "--learn", "5", "--folds", "2"),
                 "--folds is 2, and there are 1 queries"),
                ((*good, "--folds", "2"), "need --learn"),
                ((*good, "--learn", "5", "--train", t, "--examples", t),
                 "exclude each other"),
                ((*good, "--capture", "flags"), "stuffed crowd"),
                ((*good, "--shots", "3"), "--examples"),
                ((*good, "--seed", "3"), "--examples"),
                ((*mean, "--with-own"), "--examples"),
                ((*good, "--examples", t, "--shots", "0"), "1 to 1000"),
                ((*good, "--limit", "0"), "whole number"),
                ((*mean, "--match", "worst"), "mean or best"),
                ((*good, "--mode", "bm25"), "vectors, semantic, text or"),
                ((*good, "--mode", "text", "--embedder", "builtin"),
                 "leave --embedder out"),
                ((*good, "--mode", "hybrid", "--examples", t),
                 "--examples is for --mode routing"),
                ((*good, "--mode", "semantic", "--match", "best"),
                 "--match is for --mode vectors"),
                ((*good, "--by", "level"), "must be agent"),
                ((*good, "--set", "embed.kind=magic"), "embed.kind")):
            with self.subTest(args=args):
                self.assertIn(words, self.bad(USAGE, *args))

    def test_files_that_are_not_as_they_should_be(self):
        agents = self.lines("a", {"name": "mail"}, {"name": "cook"})
        good = self.lines("t", {"text": "x", "agents": ["cook"]})
        for name, rows, words in (
                ("a", [b'{"name":"b"}\n{"name"\n'], "bad:2:8: "),
                ("a", [{"name": "b"}, {"name": "B"}], "bad:2:1: "),
                ("a", [b""], "bad is empty"),
                ("a", [b'{"name":"b","description":"\xff"}'], "bad:1:28: "),
                ("t", [{"text": "x", "agents": ["mial"]}],
                 'bad:1:26: there is no agent "mial"; did you mean "mail"?'),
                ("t", [{"text": "x", "agents": []}, {"text": 1}],
                 "bad:2:10: "),
                ("t", [b"\n\n"], "bad is empty"),
                ("e", [{"text": "x", "agents": ["cooks"]}], "bad:1:26: ")):
            with self.subTest(rows=rows):
                self.lines("bad", *rows)
                args = {"a": ("--agents", "bad", good),
                        "t": ("--agents", agents, "bad"),
                        "e": ("--agents", agents, good, "--examples", "bad")}
                self.assertIn(words, self.bad(USAGE, *args[name]))
                r = self.run_it("--json", *args[name])
                self.assertIn(words,
                              json.loads(r.stderr)["error"]["message"])

    def test_files_that_are_not_there(self):
        agents = self.lines("a", {"name": "mail"})
        good = self.lines("t", {"text": "x", "agents": ["mail"]})
        self.assertIn("nowhere", self.bad(REFUSED, "--agents", "nowhere",
                                          good))
        self.assertIn("nowhere", self.bad(REFUSED, "--agents", agents,
                                          "nowhere"))
        self.assertIn("cannot read", self.bad(FAILED, "--agents", ".", good))
        self.assertIn("cannot write /nowhere/out", self.bad(
            FAILED, "--agents", agents, good, "--out", "/nowhere/out"))
        self.assertIn("No space", self.bad(
            FAILED, "--agents", agents, good, "--out", "/dev/full"))

    def test_results_do_not_replace_what_is_read(self):
        a = self.lines("a", {"name": "mail"})
        t = self.lines("t", {"text": "x", "agents": ["mail"]})
        x = self.lines("x", {"text": "y", "agents": ["mail"]})
        os.link(self.path("t"), self.path("hard"))
        os.symlink("t", self.path("soft"))
        for out in ("a", "t", "x", "./t", "hard", "soft"):
            before = {n: self.read(n) for n in "atx"}
            said = self.bad(USAGE, "--agents", a, t, "--examples", x,
                            "--out", out)
            self.assertIn("one of the input files", said)
            self.assertEqual({n: self.read(n) for n in "atx"}, before)

    def test_a_line_over_the_limit(self):
        agents = self.lines("a", {"name": "mail"})
        for size, status in ((4 * 1024 * 1024 - 100, OK),
                             (4 * 1024 * 1024, REFUSED)):
            test = self.lines("t", {"text": "x " * (size // 2),
                                    "agents": ["mail"]})
            r = self.run_it("--agents", agents, test)
            self.assertEqual(r.returncode, status, r.stderr)
        self.assertIn("t:1: longer than 4 MiB", r.stderr)

    def test_a_model_that_is_not_there(self):
        said = self.bad(REFUSED, *OWN, "--mode", "vectors", "--embedder",
                        "minilm", "--data", "d")
        self.assertIn("d/models/minilm.sbm", said)
        self.assertIn("signalbox model install minilm", said)


class OnATerminal(Eval):
    def shown(self, *args, columns=80):
        status, text = on_terminal([BIN, "eval", *args], self.home, self.env,
                                   columns)
        self.assertEqual(status, OK, text)
        return text

    def test_lines_fit(self):
        for columns in (80, 60):
            text = self.shown(*OWN, columns=columns)
            self.assertIn("\033[1m", text)
            for code in ("1m", "0m", "33m", "K"):
                text = text.replace(f"\033[{code}", "")
            for line in text.splitlines():
                self.assertLessEqual(len(line), columns, line)

    def test_a_pipe_gets_no_colours(self):
        r = self.run_it(*OWN)
        self.assertEqual((r.returncode, r.stderr), (OK, ""))
        self.assertNotIn("\033", r.stdout)
        self.assertIn("first place", r.stdout)
        self.assertIn("WORST AGENTS", r.stdout)
        self.assertIn("EXPECTED", r.stdout)

    def test_texts_of_a_file_do_not_steer_it(self):
        agents = self.lines("a", {"name": "a"}, {"name": "b"})
        test = self.lines("t", {"text": "b \033[31mred\u202e", "agents":
                                ["a"], "level": "\033[2J"})
        text = self.shown("--agents", agents, test)
        for bad in ("\033[31m", "\033[2J", "\u202e"):
            self.assertNotIn(bad, text)


if __name__ == "__main__":
    unittest.main()
