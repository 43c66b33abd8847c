"""Our JsonLogic and the reference, json-logic-js, make the same of the same
rules: of those that logic_cases_test.c lists, and of random ones. Where they
do not on purpose, logic.h says so, and the random ones keep away from it."""
import ast
import json
import math
import os
import random
import re
import shutil
import subprocess
import unittest

SOURCE = os.environ["SIGNALBOX_SOURCE"]
OURS = [os.environ["LOGIC_PEER"]]
PEERS = os.path.join(SOURCE, "test/peers")
NODE = shutil.which("node") or "node"
THEIRS = [NODE, os.path.join(PEERS, "logic_npm.js")]
N_RULES = 400000 if os.environ.get("STRESS") == "full" else 20000
PATIENCE_S = 300

# Cases of ours that the reference has otherwise.
OTHERWISE = {
    '{"==":[9007199254740993,9007199254740992]}',  # it has only doubles
    '{"var":["toString",0]}',  # it finds what objects inherit
    '{"missing_some":[1,null]}',  # it throws
    '{"substr":["h\\u00e4\\u20ac\\ud83d\\ude00t",1,3]}',  # UTF-16
}


def said_by(command, pairs):
    text = "".join(json.dumps(pair) + "\n" for pair in pairs)
    run = subprocess.run(command, input=text.encode(), stdout=subprocess.PIPE,
                         timeout=PATIENCE_S, check=True)
    lines = run.stdout.decode().split("\n")
    assert len(lines) == len(pairs) + 1 and lines[-1] == "", run.stdout[-200:]
    return lines[:-1]


def value_of(line):
    return line if line in ("refused", "failed", "threw", "over") \
        else json.loads(line)


def same(a, b):
    """As JSON: a truth is no number, and 1 is 1.0."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return float(a) == float(b) or (math.isnan(a) and math.isnan(b))
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return type(a) is type(b) and a == b


def listed_cases():
    """Rule and data of each case in the C file."""
    with open(os.path.join(SOURCE, "src/gate/rules/logic_cases_test.c"),
              encoding="utf-8") as f:
        text = f.read()
    string = r'"(?:[^"\\]|\\.)*"'
    part = rf"((?:{string}\s*)+)"
    for rule, data, _ in re.findall(
            rf"\{{{part},\s*{part},\s*{part}\}}", text):
        yield tuple("".join(ast.literal_eval(s)
                            for s in re.findall(string, p))
                    for p in (rule, data))


class Maker:
    """Random rules that could mean something, and data for them. Nothing in
    the data is an empty list or object: whether two such are one and the same
    is not told by ours once they are in another list."""
    TEXTS = ["", "0", "1", "-1", "1.5", "a", "b", "ab", "abc", "12px", " 7 ",
             "0x1f", "1e3", ".5", "5.", "true", "null", "NaN", "Infinity",
             "-Infinity", "a.b", "x", "length", "1,2", "ä€", "\t", "Z", "e"]
    NUMBERS = [0, 1, -1, 2, 3, 5, 7, 0.5, -2.5, 1e21, 1e-7, 123456789.125, 10,
               100, 1e300, 0.1, 1 / 3, 2 ** 53]
    KEYS = ["a", "b", "x", "xs", "ys", "n", "s", "t", "1", "length", ""]

    def __init__(self, seed):
        self.r = random.Random(seed)

    def scalar(self):
        r = self.r
        return r.choice([None, True, False, r.choice(self.TEXTS),
                         r.choice(self.TEXTS), r.choice(self.NUMBERS),
                         r.choice(self.NUMBERS), r.randint(-9, 99)])

    def data(self, depth=3):
        r = self.r
        if depth == 0 or r.random() < 0.3:
            return self.scalar()
        if r.random() < 0.4:
            return [self.data(depth - 1) for _ in range(r.randint(1, 4))]
        return {r.choice(self.KEYS): self.data(depth - 1)
                for _ in range(r.randint(1, 5))}

    def path(self):
        r = self.r
        if r.random() < 0.1:
            return r.choice([0, 1, 2, None, "", 1.1])
        return ".".join(r.choice([*self.KEYS, "current", "accumulator", "0"])
                        for _ in range(r.choice([1, 1, 1, 2, 3])))

    def var(self, depth):
        r = self.r
        kind = r.random()
        if kind < 0.5:
            return {"var": self.path()}
        if kind < 0.8:
            return {"var": [self.path(), self.rule(depth - 1)]}
        return {"var": [self.rule(depth - 1)]}

    def arguments(self, depth, least, most):
        return [self.rule(depth - 1)
                for _ in range(self.r.randint(least, most))]

    def keys(self):
        return [self.path() for _ in range(self.r.randint(0, 3))]

    COUNTS = {"if": (0, 5), "?:": (0, 5), "==": (2, 2), "===": (2, 2),
              "!=": (2, 2), "!==": (2, 2), "!": (1, 1), "!!": (1, 1),
              "or": (1, 4), "and": (1, 4), ">": (2, 2), ">=": (2, 2),
              "<": (2, 3), "<=": (2, 3), "max": (0, 4), "min": (0, 4),
              "+": (0, 4), "-": (1, 2), "*": (1, 4), "/": (2, 2),
              "%": (2, 2), "map": (2, 2), "reduce": (2, 3),
              "filter": (2, 2), "all": (2, 2), "none": (2, 2),
              "some": (2, 2), "merge": (0, 4), "in": (2, 2), "cat": (0, 4),
              "substr": (2, 3), "log": (1, 1)}

    def rule(self, depth=4):
        r = self.r
        kind = r.random()
        if depth <= 0 or kind < 0.15:
            return self.scalar()
        if kind < 0.22:
            return self.arguments(depth, 0, 3)
        if kind < 0.45:
            return self.var(depth)
        if kind < 0.48:
            return {"missing": self.keys()}
        if kind < 0.51:
            return {"missing_some": [r.randint(0, 3), self.keys()]}
        op = r.choice(list(self.COUNTS))
        arguments = self.arguments(depth, *self.COUNTS[op])
        if len(arguments) == 1 and not isinstance(arguments[0], list):
            return {op: arguments[0]}
        return {op: arguments}


class Logic(unittest.TestCase):
    def assert_agree(self, pairs):
        ours = map(value_of, said_by(OURS, pairs))
        theirs = map(value_of, said_by(THEIRS, pairs))
        bad = [(p, a, b) for p, a, b in zip(pairs, ours, theirs)
               if not same(a, b)]
        self.assertEqual(len(bad), 0, "\n".join(
            f"{json.dumps(p[0])} of {json.dumps(p[1])}\n"
            f"   ours: {a!r}\n theirs: {b!r}"
            for p, a, b in sorted(bad, key=lambda x: len(repr(x[0])))[:8]))

    def test_listed_cases(self):
        cases = [c for c in listed_cases() if c[0] not in OTHERWISE]
        self.assertGreater(len(cases), 250)
        self.assert_agree([tuple(map(json.loads, c)) for c in cases])

    def test_random_rules(self):
        maker = Maker(7)
        self.assert_agree([(maker.rule(), maker.data())
                           for _ in range(N_RULES)])


if __name__ == "__main__":
    unittest.main()
