#!/usr/bin/python3
"""Measure how well every embedder finds the right agent, on every available
set, and write docs/quality.md: `make quality`.

    tools/quality.py [--data FOLDER] [--out FILE] [--seeds N]
                     [--before SIGNALBOX] [--jobs N] [--kept FOLDER]
                     SIGNALBOX [ARGS]
    tools/quality.py --floors SIGNALBOX

--before names the program of the previous version, to compare with its
table. ARGS are added to every run, for example `--set embed.modelFile=FILE`.
Speed is left out, so the same models give the same file on every machine. A
missing set or model is reported and left out.

It takes more than an hour. --jobs sets how many evaluations run at once.
--kept names a folder for their answers: an interrupted run resumes there, with
the same program.

--floors writes test/quality/floors.json instead: the minimum figures that tests
require of the models inside, slightly below the current ones.
"""
import argparse
import contextlib
import hashlib
import io
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import quality_bands
import quality_routing
import quality_tiers

OWN = "test/quality"
EMBEDDERS = ("table", "transformer", "builtin", "minilm")
SEARCHERS = ("table", "builtin", "minilm")
# Name, description, query files besides SET.test.jsonl, has examples.
SETS = (
    ("clinc150", "people asking an assistant; 150 intents, and 1 000 queries "
                 "that belong to none (CLINC150, CC BY 3.0)", ("oos",), True),
    ("metatool", "requests and the plugin that serves them (MetaTool, MIT)",
     (), True),
    ("sgd", "turns of task dialogues and the service intent they mean "
            "(Schema-Guided Dialogue, CC BY-SA 4.0)", (), False),
    ("sealtools", "requests and the tool to call, among thousands "
                  "(Seal-Tools, Apache-2.0)", (), False),
)
# Top-1 / top-5; the last two are top-1 with five examples.
REFERENCE = (
    ("BM25", "43.0 / 64.2", "30.2 / 50.8", "52.7 / 82.3", "87.2 / 97.8",
     "70.9", "50.3"),
    ("hashed character n-grams", "48.8 / 67.7", "30.7 / 50.9", "54.4 / 79.1",
     "82.9 / 96.8", "67.4", "40.2"),
    ("static table distilled from MiniLM", "59.2 / 84.0", "51.2 / 76.0",
     "71.8 / 97.6", "68.0 / 93.4", "77.3", "57.5"),
    ("all-MiniLM-L6-v2", "68.4 / 90.0", "54.1 / 76.6", "73.4 / 97.1",
     "74.2 / 93.7", "86.2", "64.0"),
)
SHOTS = 5
# Without the reason, which depends on the machine and is printed there.
CANNOT = "`{}` (`signalbox model install minilm` gets the model)"
# The error of `signalbox eval` for a missing model. Any other error ends the
# program instead of leaving the model out.
NO_MODEL = "cannot open the model file "


class Missing(Exception):
    """A missing set, program or model; the message names it."""


def digest_of(path, known={}):  # pylint: disable=dangerous-default-value
    """The hash of a file's content; any other argument as it is."""
    try:
        stat = os.stat(path)
        key = path, stat.st_mtime_ns, stat.st_size
        if key not in known:
            with open(path, "rb") as f:
                known[key] = hashlib.file_digest(f, "sha256").hexdigest()
        return known[key]
    except (OSError, ValueError):
        return path


class Answers:
    """Cached output of programs: the same program with the same arguments and
    files prints the same. Kept in a folder, if one is given."""

    def __init__(self, folder=None):
        self.folder, self.known = folder, {}
        if folder:
            os.makedirs(folder, exist_ok=True)

    def path(self, key):
        return os.path.join(self.folder, key + ".json")

    def ask(self, command):
        key = hashlib.sha256("\0".join(map(digest_of, command))
                             .encode()).hexdigest()
        if (key not in self.known and self.folder
                and os.path.exists(self.path(key))):
            with open(self.path(key), encoding="utf-8") as f:
                self.known[key] = subprocess.CompletedProcess(
                    command, 0, f.read(), "")
        if key not in self.known:
            run = subprocess.run(command, capture_output=True, text=True,
                                 check=False)
            if self.folder and not run.returncode:
                with open(self.path(key) + ".new", "w",
                          encoding="utf-8") as f:
                    f.write(run.stdout)
                os.rename(self.path(key) + ".new", self.path(key))
            self.known[key] = run
        return self.known[key]


class Runs:
    """Runs of the program, and the commands as the page shows them."""

    def __init__(self, binary, data, more, before=None, answers=None):
        self.binary, self.data, self.more = binary, data, more
        self.before = before
        self.answers = answers or Answers()
        self.planned = None  # if a list: collect commands, run nothing
        self.commands, self.missing, self.models = [], [], {}
        self.gone = set()

    def miss(self, words):
        if words not in self.missing:
            self.missing.append(words)

    def files(self, *names):
        """Their paths, or None where one is missing."""
        paths = [os.path.join(self.data, name) for name in names]
        for name, path in zip(names, paths):
            if not os.path.exists(path):
                self.miss(f"`$DATA/{name}` is not there")
                return None
        return paths

    def binary_of(self, which):
        """The path, or None if that program is missing."""
        if which == "before" and not self.before:
            self.miss("the version before (`BEFORE` names its program)")
            return None
        return self.before if which == "before" else self.binary

    def is_gone(self, args):
        """Whether these arguments use a model that is known to be missing."""
        return ("--embedder" in args
                and args[args.index("--embedder") + 1] in self.gone)

    def say_case(self, model):
        def say(case, row):
            print(f"{model}, {case}: {percent(row['top_1'])}",
                  file=sys.stderr, flush=True)
        return say

    def shown(self, args, command="eval", which="now"):
        """The command as a person would type it."""
        words = [quality_bands.binary_words(which), command]
        for arg in args:
            if arg.startswith(self.data + os.sep):
                arg = "$DATA" + arg[len(self.data):]
            words.append(arg)
        return " ".join(words)

    def eval(self, *args, show=True, command="eval", which="now"):
        embedder = (args[args.index("--embedder") + 1]
                    if "--embedder" in args else None)
        binary = self.binary_of(which)
        if embedder in self.gone:
            raise Missing(CANNOT.format(embedder))
        if not binary:
            raise Missing(self.missing[-1])
        words = [binary, command, "--json", *args, *self.more]
        if self.planned is not None:
            self.planned.append(words)
            raise Missing("planned")
        print(self.shown(args, command, which), file=sys.stderr, flush=True)
        run = self.answers.ask(words)
        if run.returncode:
            words = run.stderr.strip()
            try:
                words = json.loads(words)["error"]["message"]
            except (ValueError, KeyError, TypeError):
                pass
            if not words.startswith(NO_MODEL):
                sys.exit(f"{self.shown(args, command)}: status "
                         f"{run.returncode}: {words}")
            self.gone.add(embedder)
            print(f"{embedder}: {words}", file=sys.stderr, flush=True)
            raise Missing(CANNOT.format(embedder))
        if show:
            self.commands.append(self.shown(args, command, which))
        result = json.loads(run.stdout)
        stamp = result.get("embedder")
        if stamp:
            name = stamp["name"] + (", before" if which == "before" else "")
            self.models[name] = stamp
        return result

    def tried(self, *args, **more):
        """The result, or None if a set, program or model is missing."""
        try:
            return self.eval(*args, **more)
        except Missing as e:
            self.miss(str(e))
            return None


def percent(x):
    return "-" if x is None else f"{100 * x:.1f}"


def table(heads, rows):
    lines = ["| " + " | ".join(heads) + " |",
             "| " + " | ".join("---" for _ in heads) + " |"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def commands(runs):
    """The commands since the last call, as a code block."""
    text = "```\n" + "\n".join(runs.commands or ["(none)"]) + "\n```"
    runs.commands = []
    return text


def zero_shot(runs):
    found = {}
    for name, _, _, _ in SETS:
        files = runs.files(name + ".agents.jsonl", name + ".test.jsonl")
        for embedder in EMBEDDERS if files else ():
            found[embedder, name] = runs.tried(
                "--agents", *files, "--mode", "vectors", "--embedder",
                embedder)
    return found


def shots(runs, files, own, embedder, seeds):
    """Top-1, one value for each choice of examples."""
    agents, test, train = files
    results = [runs.tried("--agents", agents, test, "--examples", train,
                          "--shots", str(SHOTS), "--seed", str(seed), *own,
                          "--mode", "vectors", "--embedder", embedder,
                          show=seed == 1)
               for seed in range(1, seeds + 1)]
    return [r["accuracy_at_1"] for r in results if r]


def few_shot(runs, seeds):
    found = {}
    for name, _, _, has_examples in SETS:
        files = has_examples and runs.files(
            *(f"{name}.{part}.jsonl" for part in ("agents", "test", "train")))
        for embedder in EMBEDDERS if files else ():
            for own in ((), ("--with-own",)):
                found[embedder, name, bool(own)] = shots(
                    runs, files, own, embedder, seeds)
    return found


def search(runs):
    """By words alone (without an embedder), by vectors alone, and by both."""
    found = {}
    for name, agents, test in searched(runs):
        found["text", name] = runs.tried("--agents", agents, test,
                                         "--mode", "text")
        for embedder in SEARCHERS:
            for mode in ("semantic", "hybrid"):
                found[mode, embedder, name] = runs.tried(
                    "--agents", agents, test, "--mode", mode, "--embedder",
                    embedder)
    return found


def searched(runs):
    for name, _, _, _ in SETS:
        files = runs.files(name + ".agents.jsonl", name + ".test.jsonl")
        if files:
            yield name, *files
    yield "own", f"{OWN}/agents.jsonl", f"{OWN}/queries.jsonl"


def own_set(runs):
    return {e: runs.tried("--agents", f"{OWN}/agents.jsonl",
                          f"{OWN}/queries.jsonl", "--mode", "vectors",
                          "--embedder", e)
            for e in EMBEDDERS}


def pair(r):
    return f"{percent(r['accuracy_at_1'])} / {percent(r['accuracy_at_5'])}"


def spread(values):
    if not values:
        return "not measured"
    mean = sum(values) / len(values)
    if len(values) == 1:
        return percent(mean)
    return (f"{percent(mean)} ({percent(min(values))} to "
            f"{percent(max(values))})")


def cell(r, words):
    return words(r) if r else "not measured"


def write_zero(out, runs, found):
    names = [s[0] for s in SETS]
    out.append("\n## Models: by name and description\n")
    out.append("By vectors alone (`--mode vectors`), to compare models: top-1 "
               "/ top-5, in percent:\n")
    out.append(table(["", *names], [
        [e, *(cell(found.get((e, n)), pair) for n in names)]
        for e in EMBEDDERS] + [[f"*{r[0]}*", *r[1:5]] for r in REFERENCE]))
    out.append("\nRows in italics are reference figures that come with the "
               "data, measured elsewhere. Macro F1, in percent:\n")
    out.append(table(["", *names], [
        [e, *(cell(found.get((e, n)), lambda r: percent(r["macro_f1"]))
              for n in names)] for e in EMBEDDERS]))
    out.append("")
    out.append(commands(runs))


def better(found, embedder, name):
    """Hybrid minus the better of words and vectors, in points."""
    rows = [found.get(key) for key in
            (("hybrid", embedder, name), ("text", name),
             ("semantic", embedder, name))]
    if None in rows:
        return "not measured"
    both, *alone = (100 * r["accuracy_at_1"] for r in rows)
    return f"{both - max(alone):+.1f}"


def write_search(out, runs, found):
    names = [s[0] for s in SETS] + ["own"]
    heads = ["", *names[:-1], "the project's own"]
    out.append("\n## Search\n")
    out.append(
        "What `agent.search` finds (`--mode hybrid`): 0.7 of the cosine and "
        "0.3 of the text score of an agent's best document, compared with "
        "words alone (`--mode text`) and vectors alone (`--mode semantic`). "
        "`src/registry/index/text_query.c` explains the text score and what else was "
        "tried; it was chosen by looking at the first four sets. Top-1 / "
        "top-5, in percent:\n")
    rows = [["text", *(cell(found.get(("text", n)), pair) for n in names)]]
    for e in SEARCHERS:
        for mode in ("semantic", "hybrid"):
            rows.append([f"{e}, {mode}",
                         *(cell(found.get((mode, e, n)), pair)
                           for n in names)])
    out.append(table(heads, rows))
    out.append("\nTop-1 of hybrid compared with the better of the two alone, "
               "in points:\n")
    out.append(table(heads, [[e, *(better(found, e, n) for n in names)]
                             for e in SEARCHERS]))
    out.append("")
    out.append(commands(runs))


def write_few(out, runs, found, seeds):
    names = [s[0] for s in SETS if s[3]]
    out.append(f"\n## Models: with {SHOTS} examples\n")
    out.append(
        f"Top-1 in percent: the mean of {seeds} choices of examples, with the "
        "lowest and the highest. \"With own\" adds name and description to "
        "the mean.\n")
    out.append(table(
        ["", *(f"{n}{w}" for n in names for w in ("", ", with own"))],
        [[e, *(spread(found.get((e, n, own))) for n in names
               for own in (False, True))] for e in EMBEDDERS]
        + [[f"*{r[0]}*", r[5], "", r[6], ""] for r in REFERENCE]))
    out.append(f"\nRun with `--seed` 1 to {seeds}; the first:\n")
    out.append(commands(runs))


def write_own(out, runs, found):
    first = next((r for r in found.values() if r), None)
    out.append("\n## The project's own set\n")
    if not first:
        out.append("Not measured.")
        return
    out.append(
        f"{first['agents']} agents of a typical fleet, {first['n']} queries in "
        f"scope and {first['n_out_of_scope']} out of scope, written by hand: "
        "typos, slang, rambling, hints, negations, other languages. The set "
        f"is in [{OWN}](../{OWN}) and was never trained on; `make test` "
        "checks `builtin` against it. By vectors alone, top-1 / top-5, in "
        "percent:\n")
    levels = [x["level"] for x in first["levels"]]
    out.append(table(
        ["", "all", *(x.replace("_", " ") for x in levels), "macro F1",
         "out of scope: AUROC", "F1"],
        [[e, cell(r, pair),
          *(cell(r and next(x for x in r["levels"] if x["level"] == level),
                 pair) for level in levels),
          cell(r, lambda r: percent(r["macro_f1"])),
          cell(r, lambda r: f"{r['out_of_scope']['auroc']:.3f}"),
          cell(r, lambda r: percent(r["out_of_scope"]["best_f1"]))]
         for e, r in found.items()]))
    out.append("")
    out.append(commands(runs))


def write_models(out, runs):
    out.append("\n## What was measured\n")
    out.append(table(["model", "dimensions", "hash in its file"], [
        [name, str(m["dims"]), f"`{m['hash']}`"]
        for name, m in sorted(runs.models.items())]))
    out.append("\nThe hash is the SHA-256 stored in a model's file, over "
               "everything from byte 40 on. `signalbox model list` shows it; "
               "`sha256sum` of the file gives another value.")
    out.append("\nThe sets:\n")
    out.append(table(["set", "what"], [[s[0], s[1]] for s in SETS]))


def vector_floors(r):
    floors = {"hash": r["embedder"]["hash"]}
    for key in ("accuracy_at_1", "accuracy_at_3", "accuracy_at_5",
                "macro_f1"):
        floors[key] = round(r[key] - 0.03, 3)
    floors["auroc"] = round(r["out_of_scope"]["auroc"] - 0.05, 3)
    for level in r["levels"]:
        floors[level["level"]] = round(level["accuracy_at_1"] - 0.06, 3)
    return floors


def write_floors(runs):
    own = ("--agents", f"{OWN}/agents.jsonl", f"{OWN}/queries.jsonl",
           "--embedder")
    floors = {kind: vector_floors(runs.eval(*own, kind, "--mode", "vectors"))
              for kind in ("table", "transformer", "builtin")}
    r = runs.eval(*own, "builtin", *quality_routing.FLOORS)
    last = r["routing"]["learning"][-1]
    floors["routing"] = {
        "accuracy_at_1": round(r["accuracy_at_1"] - 0.03, 3),
        "learnt": round(last["accuracy_at_1"] - 0.03, 3),
        "learnt_right_agent": round(last["right_agent"] - 0.03, 3),
    }
    with open(f"{OWN}/floors.json", "w", encoding="utf-8") as f:
        json.dump(floors, f, indent=2)
        f.write("\n")


HEAD = """# How well the right agent is found

`make quality` generates this page. `DATA` names the folder with the public sets
(`../shared/data` by default); they are not part of the project.
[evaluation.md](evaluation.md) explains the figures and how to measure your own
agents. The same models give the same figures on every machine: vectors do not
depend on the processor, and ties go to the name that sorts first.

None of these sets was trained on. But the recipe of `builtin` was chosen by
looking at the first four (`train/README.md`), and 25 of their 14 542 queries,
mostly of one or two words, also occur in its training texts.

The settings of routing were chosen by looking at these same sets, the project's
own included, so expect slightly lower figures elsewhere. The weight of words
and the kernel of examples were chosen from about 60 settings; the treatment of
recency from four (counted for all queries, it cost metatool and sealtools 2
points); the weight of a skill from thirty, on the project's own set, the only
one with skills, and on the others grouped into agents with several. The order
of the streams was not tuned.
"""


def write_all(runs, args):
    """Everything except the head, as lines."""
    out = []
    own = own_set(runs)
    write_own(out, runs, own)
    own_part, out = out, []
    sets = quality_routing.Sets(runs, [s[0] for s in SETS], OWN)
    bands = quality_bands.measure(runs, sets, f"{OWN}/fleets")
    routing = quality_routing.measure(runs, [s[0] for s in SETS], OWN,
                                      args.seeds)
    quality_tiers.write(out, bands, routing,
                        {} if runs.planned is not None
                        else quality_tiers.route(runs, args.jobs),
                        [s[0] for s in SETS])
    print("\n".join(out), flush=True)
    quality_bands.write(out, bands)
    quality_routing.write(out, routing, REFERENCE)
    write_zero(out, runs, zero_shot(runs))
    write_search(out, runs, search(runs))
    write_few(out, runs, few_shot(runs, args.seeds), args.seeds)
    out += own_part
    write_models(out, runs)
    return out


def run_ahead(args, answers):
    """Run everything whose arguments are known in advance, several at once."""
    plan = Runs(args.binary, args.data.rstrip("/"), args.more, args.before)
    plan.planned = []
    with contextlib.redirect_stdout(io.StringIO()):
        write_all(plan, args)

    def ask(words):
        if not any(os.sep in w and not os.path.exists(w) for w in words):
            print(f"ahead: {' '.join(words[1:])}", file=sys.stderr, flush=True)
            answers.ask(words)

    with ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(ask, plan.planned))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="../shared/data")
    parser.add_argument("--out", default="docs/quality.md")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--floors", action="store_true")
    parser.add_argument("--before")
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--kept")
    parser.add_argument("binary")
    parser.add_argument("more", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    answers = Answers(args.kept)
    runs = Runs(args.binary, args.data.rstrip("/"), args.more, args.before,
                answers)
    if args.floors:
        write_floors(runs)
        return
    if args.jobs and args.jobs > 1:
        run_ahead(args, answers)
    out = write_all(runs, args)

    head = [HEAD]
    if runs.missing:
        head.append("**Not measured here:** " + "; ".join(runs.missing)
                    + ".\n")
    with open(args.out, "w", encoding="utf-8") as f:
        f.write("\n".join(head + out).rstrip() + "\n")
    for words in runs.missing:
        print("missing: " + words, file=sys.stderr)


if __name__ == "__main__":
    main()
