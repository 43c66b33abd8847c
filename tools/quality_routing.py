"""The routing part of docs/quality.md: `signalbox eval` on the whole decision,
after learning, out of scope, and with hostile cards. Used by quality.py."""
import os
import random
import tempfile

from quality_bands import FLEETS, MODELS

CHECKPOINTS = (500, 2000, 5000)
DEFAULT = "front-desk"
# Sets without a train part learn from the other parts of the test.
FOLDS = {"sgd": 5, "sealtools": 3, "own": 5}
SHOTS = 5
# Models whose learning is measured; EMBEDDERS are shown at every step.
LEARNERS = ("old table", "table", "transformer", "builtin", "minilm")
EMBEDDERS = ("table", "builtin", "minilm")
# The arguments with which the floors of test/quality are measured.
FLOORS = ("--default", DEFAULT, "--set", "routing.threshold=0.2", "--learn",
          "5000", "--folds", "5")


# Hostile cards made of questions: the model, and the relation of the honest
# agents to the requester.
QUESTIONS = (("table", "platform"), ("table", "own"), ("table", "org"),
             ("table", "rated"), ("table", "strangers"),
             ("builtin", "platform"), ("builtin", "strangers"),
             ("minilm", "platform"), ("minilm", "strangers"))
QUESTIONS_LIMIT = "1000"
QUESTIONS_SLOW = ("clinc150", "sgd", "own") # minutes each with other models


def percent(x):
    return "-" if x is None else f"{100 * x:.1f}"


def table(heads, rows):
    lines = ["| " + " | ".join(heads) + " |",
             "| " + " | ".join("---" for _ in heads) + " |"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


class Sets:
    """The available sets: name -> (agents, test), and what to learn from."""

    def __init__(self, runs, names, own):
        self.files, self.train, self.oos = {}, {}, {}
        for name in names:
            files = runs.files(f"{name}.agents.jsonl", f"{name}.test.jsonl")
            if not files:
                continue
            self.files[name] = files
            for part, to in (("train", self.train), ("oos", self.oos)):
                path = os.path.join(runs.data, f"{name}.{part}.jsonl")
                if os.path.exists(path):
                    to[name] = path
        self.files["own"] = [f"{own}/agents.jsonl", f"{own}/queries.jsonl"]

    def source(self, name):
        if name in self.train:
            return "--train", self.train[name]
        return "--folds", str(FOLDS.get(name, 5))


def learning(runs, sets, model):
    found = {}
    own, which = MODELS[model]
    for name, files in sets.files.items():
        found[name] = runs.tried(
            "--agents", *files, *own, "--default", DEFAULT, "--learn",
            ",".join(map(str, CHECKPOINTS)), *sets.source(name), which=which)
    return found


def five(runs, sets, embedder, seeds):
    """With examples on the cards: the mean of several choices of examples."""
    found = {}
    for name, train in sets.train.items():
        results = [runs.tried("--agents", *sets.files[name], "--embedder",
                              embedder, "--examples", train, "--shots",
                              str(SHOTS), "--seed", str(seed), show=seed == 1)
                   for seed in range(1, seeds + 1)]
        if all(results):
            found[name] = (sum(r["accuracy_at_1"] for r in results)
                           / len(results))
    return found


def lines_of(path):
    """All lines, shuffled."""
    with open(path, encoding="utf-8") as f:
        lines = [line for line in f if line.strip()]
    random.Random(1).shuffle(lines)
    return lines


def splits(sets, name):
    """(train, test): the two parts of the set, or for each fold of the test
    the other folds and that fold."""
    if name in sets.train:
        yield lines_of(sets.train[name]), lines_of(sets.files[name][1])
        return
    lines, k = lines_of(sets.files[name][1]), FOLDS.get(name, 5)
    for i in range(k):
        at, to = len(lines) * i // k, len(lines) * (i + 1) // k
        yield lines[:at] + lines[to:], lines[at:to]


def centroid(runs, agents, examples, test):
    """(queries in scope, top-1) of one split."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, n) for n in ("some.jsonl", "ask.jsonl")]
        for path, lines in zip(paths, (examples, test)):
            with open(path, "w", encoding="utf-8") as f:
                f.writelines(lines)
        r = runs.tried("--agents", agents, paths[1], "--mode", "vectors",
                       "--embedder", "builtin", "--examples", paths[0],
                       "--shots", "1000", "--with-own", show=False)
    return r and (r["n"], r["accuracy_at_1"])


def centroids(runs, sets):
    """The nearest centroid, given that many labelled examples."""
    found = {}
    for name, files in sets.files.items():
        parts = list(splits(sets, name))
        most = min(len(known) for known, _ in parts)
        for n in CHECKPOINTS:
            results = [centroid(runs, files[0], known[:n], test)
                       for known, test in parts]
            if all(results):
                total = sum(r[0] for r in results)
                found[name, n] = (min(n, most),
                                  sum(r[0] * r[1] for r in results) / total)
            if n >= most:
                break
    return found


def scope(runs, sets):
    """The effect of a calibrated threshold, before and after learning."""
    found = {}
    for name, oos in sets.oos.items():
        for n in (0, *CHECKPOINTS[1:]):
            learn = (("--train", sets.train[name], "--learn", str(n),
                      "--default", DEFAULT) if n else ())
            found[name, n] = runs.tried(
                "--agents", *sets.files[name], oos, "--embedder", "builtin",
                *learn, command="calibrate")
        at = found[name, 0] and found[name, 0]["threshold"]
        found[name, "layers"] = at and runs.tried(
            "--agents", *sets.files[name], oos, "--embedder", "builtin",
            "--default", DEFAULT, "--set", f"routing.threshold={at}")
    found["own"] = runs.tried("--agents", *sets.files["own"], "--embedder",
                              "builtin", command="calibrate")
    return found


def capture(runs, sets):
    return {(how, name): runs.tried("--agents", *files, "--embedder",
                                    "builtin", "--capture", how)
            for how in ("stuffed", "crowd")
            for name, files in sets.files.items()}


def questions(runs, sets, folder):
    """Hostile cards made of users' questions, on the sets and the fleets."""
    files = dict(sets.files)
    for fleet in (*FLEETS, "newcomer"):
        files[fleet] = [f"{folder}/{fleet}.agents.jsonl",
                        f"{folder}/{fleet}.queries.jsonl"]
    return {(embedder, relation, name): runs.tried(
        "--agents", *f, "--embedder", embedder, "--capture", "questions",
        "--relation", relation, "--limit", QUESTIONS_LIMIT,
        show=name == "own")
            for embedder, relation in QUESTIONS for name, f in files.items()
            if embedder == "table" or name in QUESTIONS_SLOW}


def measure(runs, names, own, seeds):
    sets = Sets(runs, names, own)
    found = {"sets": sets, "seeds": seeds, "centroids": centroids(runs, sets)}
    for model in LEARNERS:
        found["learning", model] = learning(runs, sets, model)
    for embedder in EMBEDDERS:
        found["five", embedder] = five(runs, sets, embedder, seeds)
    found["learning_commands"] = take(runs)
    found["scope"] = scope(runs, sets)
    found["scope_commands"] = take(runs)
    found["capture"] = capture(runs, sets)
    found["capture_commands"] = take(runs)
    found["questions"] = questions(runs, sets, f"{own}/fleets")
    found["questions_commands"] = take(runs)
    return found


def take(runs):
    text = "```\n" + "\n".join(runs.commands or ["(none)"]) + "\n```"
    runs.commands = []
    return text


def after(result, i):
    """Top-1 at a checkpoint; of a stream that ended earlier, once, with its
    length."""
    if not result:
        return "not measured"
    rows = result["routing"]["learning"]
    if i >= len(rows):
        return ""
    words = percent(rows[i]["accuracy_at_1"])
    if rows[i]["outcomes"] < CHECKPOINTS[i]:
        words += f" ({rows[i]['outcomes']})"
    return words


def write(out, found, reference):
    write_learning(out, found, reference)
    write_scope(out, found)
    write_capture(out, found)
    write_questions(out, found)


def write_learning(out, found, reference):
    names = list(found["sets"].files)
    out.append("## Routing\n")
    out.append(
        "Top-1 in percent, by the whole routing decision: all four signals, as "
        "on a server with these agents. \"After N\": a stream of queries is "
        "decided one after the other. Only the agent that was picked is "
        "judged; if it was wrong, an override names a right one. A message "
        "that is not confident goes to a default agent first. The stream is "
        "the train part where there is one, else the other parts of the test "
        "(sgd and own in 5, sealtools in 3); the length of a shorter stream is "
        "in brackets. Queries come once a minute, in one random order "
        "(`--seed 0`). \"5 examples\" puts five on each agent's card: the "
        f"mean of {found['seeds']} choices of them. \"Nearest centroid\" is "
        "given the right agent of each of N examples from the same parts, "
        "whatever it would have picked, and also uses the agent's own "
        "texts.\n")
    rows = [[f"*{r[0]}*, zero-shot", *(x.split(" /")[0] for x in r[1:5]), ""]
            for r in reference]
    rows += [[f"*{r[0]}*, 5 examples", r[5], r[6], "", "", ""]
             for r in reference]
    for n in CHECKPOINTS:
        cells = []
        for name in names:
            some = found["centroids"].get((name, n))
            if not some:
                cells.append("")
            else:
                cells.append(percent(some[1]) + (f" ({some[0]})" if
                                                 some[0] < n else ""))
        rows.append([f"nearest centroid, builtin, {n} examples", *cells])
    for embedder in EMBEDDERS:
        results = found["learning", embedder]
        if not any(results.values()):
            continue
        rows.append([f"**{embedder}, zero-shot**",
                     *(percent(results[n] and results[n]["accuracy_at_1"])
                       for n in names)])
        rows.append([f"**{embedder}, 5 examples**",
                     *(percent(found["five", embedder].get(n)) if n in
                       found["five", embedder] else "" for n in names)])
        rows += [[f"**{embedder}, after {n}**",
                  *(after(results[name], i) for name in names)]
                 for i, n in enumerate(CHECKPOINTS)]
    out.append(table(["", *names], rows))
    out.append("\nQueries in scope that are confident and right with "
               "`builtin`, zero-shot and at the end: "
               + "; ".join(f"{n} {reach(found['learning', 'builtin'][n])}"
                           for n in names) + ".\n")
    out.append(found["learning_commands"])


def reach(result):
    if not result:
        return "not measured"
    r = result["routing"]
    return (f"{percent(r['right_agent'])} to "
            f"{percent(r['learning'][-1]['right_agent'])} %")


def write_scope(out, found):
    out.append("\n## Out of scope\n")
    out.append(
        "`signalbox calibrate` finds the threshold that best separates queries "
        "in scope from those out of scope: it maximizes the mean of two "
        "shares, queries in scope that get to a right agent and queries out "
        "of scope that are detected. The figures are from cross-validation in "
        "five parts. \"False alarms\" are queries in scope that go to no "
        "agent; at `auto`, which uses no labels, all that are not confident, "
        "unsure ones included. Published on CLINC150 with all its training "
        "data: F1 86.4 % at 93.7 % in scope.\n")
    rows = []
    for key, r in found["scope"].items():
        if not r or key == "own" or key[1] == "layers":
            continue
        label = f"{key[0]}, {'zero-shot' if not key[1] else f'after {key[1]}'}"
        rows += scope_rows(label, r)
    if found["scope"]["own"]:
        rows += scope_rows("own, zero-shot", found["scope"]["own"])
    out.append(table(["", "threshold", "get to a right agent", "false alarms",
                      "out of scope detected"], rows))
    for key, r in found["scope"].items():
        if r and key != "own" and key[1] == "layers":
            layers = r["routing"]["layers"]
            n = sum(layers.values())
            out.append(f"\nAll queries of {key[0]}, with the zero-shot "
                       "threshold (chosen on the same queries) and a default "
                       "agent, are decided by: "
                       + ", ".join(f"{k} {percent(v / n)} %" for k, v in
                                   layers.items() if v)
                       + "; the default agent gets "
                       f"{percent(r['routing']['out_of_scope_recall'])} % of "
                       "those out of scope.")
    out.append("")
    out.append(found["scope_commands"])


def scope_rows(label, r):
    def threshold(x):
        return x if isinstance(x, str) else f"{x:.3f}"

    return [[f"{label}, {what}", threshold(x["threshold"]),
             percent(x["right_agent"]), percent(x["false_alarms"]),
             percent(x["out_of_scope_recall"])]
            for what, x in (("calibrated", r["expected"]),
                            ("default", r["now"]))]


def write_capture(out, found):
    names = list(found["sets"].files)
    out.append("\n## Hostile cards\n")
    out.append(
        "How many queries in scope the cards of a stranger, a user of another "
        "org, win, in percent, and in brackets how many points of top-1 the "
        "right agents lose. The cards are public and made from the texts of "
        "the set's own agents: one card of random words, the last with common "
        "words as routing keywords too; and 30 cards of one owner that cover "
        "every topic. The limits are 2 for one card and 10 for 30.\n")
    rows = []
    for how in ("stuffed", "crowd"):
        results = [found["capture"][how, n] for n in names]
        first = next((r for r in results if r), None)
        for i, raid in enumerate(first["routing"]["capture"] if first else ()):
            rows.append([f"{raid['cards']}: {raid['made_of']}"]
                        + [won(r, i) for r in results])
    out.append(table(["cards", *names], rows))
    out.append("")
    out.append(found["capture_commands"])


def write_questions(out, found):
    names = list(dict.fromkeys(key[2] for key in found["questions"]))
    out.append(
        "\nCards made of questions that users ask: half of the queries become "
        "cards, the other half is routed. How many queries the hostile cards "
        "win, in percent, and in brackets how many points the right agents "
        "lose. Where the honest agents are trusted, the limits are 5 won and 2 "
        "lost; where all are strangers, the attackers' share of owners plus 2 "
        "points. Figures beyond a limit are **bold**. The last rows are about "
        "one honest agent at a time whose owner is a stranger among agents "
        "that are rated well: the share that is right of all messages, of the "
        "messages for that agent, and of the same ones if it is trusted. The "
        "first 1000 queries of each set; the fleets have some thirty each, so "
        "one message is three points. The commands are those for our own set; "
        "the others differ in their files.\n")
    for embedder, relation in QUESTIONS:
        results = {n: found["questions"].get((embedder, relation, n))
                   for n in names}
        results = {n: r for n, r in results.items() if r}
        if not results:
            continue
        first = next(iter(results.values()))
        rows = [[f"{raid['cards']} of {raid['owners']}: {raid['made_of']}"
                 if raid["cards"] else raid["made_of"]]
                + [won_by_questions(r, i, relation)
                   for r in results.values()]
                for i, raid in enumerate(first["routing"]["capture"])]
        out.append(f"{embedder}, {RELATIONS[relation]}:\n")
        out.append(table(["cards of owners", *results], rows))
        out.append("")
    out.append(found["questions_commands"])


RELATIONS = {"platform": "the agents are the platform's",
             "own": "the requester's own", "org": "the org's",
             "rated": "rated well in the org",
             "strangers": "all are strangers"}


def won_by_questions(r, i, relation):
    raids = r["routing"]["capture"]
    raid, honest = raids[i], raids[0]["accuracy_at_1"]
    if not raid["cards"]:
        return f"{percent(raid['accuracy_at_1'])} right"
    lost = 100 * (honest - raid["accuracy_at_1"])
    is_all = relation == "strangers"
    most = (100 * raid["owners"] / (raid["owners"] + r["agents"]) + 2
            if is_all else 5)
    words = f"{percent(raid['captured'])} ({lost:.1f})".replace("-0.0", "0.0")
    is_over = 100 * raid["captured"] > most or (not is_all and lost > 2)
    return f"**{words}**" if is_over else words


def won(r, i):
    if not r:
        return "not measured"
    raid = r["routing"]["capture"][i]
    lost = 100 * (r["accuracy_at_1"] - raid["accuracy_at_1"])
    return f"{percent(raid['captured'])} ({lost:.1f})".replace("-0.0", "0.0")
