"""The models inside hold what they once could, on the project's own set: each
alone, so that a broken one does not hide behind the other, and both together.

floors.json has what must be reached, a little below what was measured with the
models that it names, and of no others: anyone who makes a new one makes new floors
(`tools/quality.py --floors`). The control is a build whose models look up every
word in another word's row: it must fall below each floor, or the floor would
not notice a model that is broken.
"""
import json
import os
import subprocess
import unittest

HERE = os.path.join(os.environ["SIGNALBOX_SOURCE"], "test", "quality")
BIN = os.environ["SIGNALBOX_BIN"]
SHUFFLED = os.environ.get("SIGNALBOX_SHUFFLED")
LEVELS = ("easy", "medium", "hard", "very_hard")
KINDS = ("table", "transformer", "builtin")


# As tools/quality_routing.py has it.
LEARN = ("--default", "front-desk", "--set", "routing.threshold=0.2",
         "--learn", "5000", "--folds", "5")


def routed(binary, *args):
    """What becomes of messages, before and after learning."""
    result = evaluate(binary, *LEARN, *args)
    last = result["routing"]["learning"][-1]
    return {"accuracy_at_1": result["accuracy_at_1"],
            "learnt": last["accuracy_at_1"],
            "learnt_right_agent": last["right_agent"]}


def rows(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def evaluate(binary, *args, kind="builtin"):
    run = subprocess.run(
        [binary, "eval", "--json", "--embedder", kind, "--agents",
         os.path.join(HERE, "agents.jsonl"),
         os.path.join(HERE, "queries.jsonl"), *args],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
        env={"PATH": "/usr/bin:/bin"}, cwd="/")
    if run.returncode:
        raise AssertionError(run.stderr)
    return json.loads(run.stdout)


def figures(binary, kind):
    """The hash of the model, and figures by the names that floors.json has."""
    result = evaluate(binary, "--mode", "vectors", kind=kind)
    found = {key: result[key] for key in
             ("accuracy_at_1", "accuracy_at_3", "accuracy_at_5", "macro_f1")}
    found["auroc"] = result["out_of_scope"]["auroc"]
    for level in result["levels"]:
        found[level["level"]] = level["accuracy_at_1"]
    return result["embedder"]["hash"], found


class TheSet(unittest.TestCase):
    def test_it_is_large_and_mixed(self):
        agents, queries = rows("agents.jsonl"), rows("queries.jsonl")
        inside = [q for q in queries if q["agents"]]
        self.assertGreaterEqual(len(agents), 24)
        self.assertGreaterEqual(len(queries), 480)
        share = 1 - len(inside) / len(queries)
        self.assertTrue(0.08 <= share <= 0.12, share)
        self.assertGreaterEqual(sum(len(q["agents"]) > 1 for q in inside), 15)
        for level in LEVELS:
            self.assertGreaterEqual(
                sum(q["level"] == level for q in queries), 80)
        self.assertEqual({q["level"] for q in queries}, set(LEVELS))

    def test_every_agent_is_asked_for_alike(self):
        names = [a["name"] for a in rows("agents.jsonl")]
        for name in names:
            own = [q for q in rows("queries.jsonl")
                   if q["agents"][:1] == [name]]
            self.assertTrue(16 <= len(own) <= 20, (name, len(own)))
            self.assertEqual({q["level"] for q in own}, set(LEVELS))

    def test_nothing_is_there_twice(self):
        texts = [" ".join(q["text"].lower().split())
                 for q in rows("queries.jsonl")]
        self.assertEqual(len(texts), len(set(texts)))
        names = [a["name"].lower() for a in rows("agents.jsonl")]
        self.assertEqual(len(names), len(set(names)))


class TheModels(unittest.TestCase):
    def setUp(self):
        with open(os.path.join(HERE, "floors.json"), encoding="utf-8") as f:
            self.floors = json.load(f)
        self.routing = self.floors.pop("routing")
        self.hashes = {kind: self.floors[kind].pop("hash") for kind in KINDS}

    def test_they_are_as_good_as_they_were(self):
        for kind in KINDS:
            with self.subTest(kind=kind):
                hash_of, found = figures(BIN, kind)
                floors = self.floors[kind]
                self.assertEqual(
                    hash_of, self.hashes[kind], "another model than the "
                    "floors are of: tools/quality.py --floors makes new ones")
                self.assertEqual(set(found), set(floors))
                low = {k: (round(found[k], 4), v) for k, v in floors.items()
                       if found[k] < v}
                self.assertEqual(low, {}, "below the floor: (found, floor)")

    @unittest.skipUnless(SHUFFLED, "the control is built without sanitizers")
    def test_one_with_its_rows_mixed_up_is_noticed(self):
        for kind in KINDS:
            with self.subTest(kind=kind):
                _, found = figures(SHUFFLED, kind)
                high = {k: (round(found[k], 4), v)
                        for k, v in self.floors[kind].items() if found[k] >= v}
                self.assertEqual(high, {},
                                 "not below the floor: (found, floor)")

    def test_messages_get_where_they_did(self):
        found = routed(BIN)
        low = {k: (round(found[k], 4), v) for k, v in self.routing.items()
               if found[k] < v}
        self.assertEqual(low, {}, "below the floor: (found, floor)")
        self.assertGreaterEqual(found["learnt"], found["accuracy_at_1"] - .01)

    @unittest.skipUnless(SHUFFLED, "the control is built without sanitizers")
    def test_messages_that_go_astray_are_noticed(self):
        found = routed(SHUFFLED)
        high = {k: (round(found[k], 4), v) for k, v in self.routing.items()
                if found[k] >= v}
        self.assertEqual(high, {}, "not below the floor: (found, floor)")

    def test_strangers_win_next_to_nothing(self):
        raids = evaluate(BIN, "--capture", "stuffed")["routing"]["capture"]
        self.assertLessEqual(max(r["captured"] for r in raids), .02)


if __name__ == "__main__":
    unittest.main()
