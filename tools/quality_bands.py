"""A section of docs/quality.md: routing with the default settings, and with a
fixed threshold for comparison. Used by quality.py, and by test/quality, which
checks the minimum figures."""
import os

FLEETS = ("startup", "household", "coding", "company", "clinic")
ENGLISH = ("plain", "typo", "long")
# What is compared: the arguments of a run, and of which program. The previous
# version has another table and calls it builtin.
MODELS = {
    "words alone": (("--embedder", "table", "--set", "routing.textBlend=1"),
                    "now"),
    "old table": (("--embedder", "builtin"), "before"),
    "table": (("--embedder", "table"), "now"),
    "transformer": (("--embedder", "transformer"), "now"),
    "builtin": (("--embedder", "builtin"), "now"),
    "minilm": (("--embedder", "minilm"), "now"),
}
# Their whole tables are shown.
EMBEDDERS = ("builtin", "minilm")
FIXED = ("--set", "routing.threshold=0.3")
COUNTS = ("n", "top_1", "confident_right", "confident_wrong", "unsure",
          "out_of_scope", "top_1_confident", "unsure_right",
          "unsure_among_three", "n_out_of_scope", "out_of_scope_detected",
          "out_of_scope_unsure")


def percent(x):
    return "-" if x is None else f"{100 * x:.1f}"


def table(heads, rows):
    lines = ["| " + " | ".join(heads) + " |",
             "| " + " | ".join("---" for _ in heads) + " |"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def binary_words(which):
    """The program as the page shows it."""
    return "build/signalbox" if which == "now" else "$BEFORE"


def fleet_files(folder, name):
    """The arguments of `signalbox eval` for one of the five fleets: its own
    messages, and further ones that are out of scope."""
    return ("--agents", os.path.join(folder, f"{name}.agents.jsonl"),
            os.path.join(folder, f"{name}.queries.jsonl"),
            os.path.join(folder, "oos-extra.jsonl"))


def added(bands):
    return {key: sum(b[key] for b in bands) for key in COUNTS}


def of_levels(result, names):
    return added([level["bands"] for level in result["levels"]
                  if level["level"] in names])


def english(result):
    """English levels only for messages in scope; all that are out of scope."""
    out = of_levels(result, ENGLISH)
    total = result["routing"]["bands"]
    for key in ("n_out_of_scope", "out_of_scope_detected",
                "out_of_scope_unsure"):
        out[key] = total[key]
    return out


def part(n, of):
    return n / of if of else None


def share(bands):
    """The confident share of the messages whose top-1 is right."""
    return part(bands["top_1_confident"], bands["top_1"])


def detected(bands):
    return part(bands["out_of_scope_detected"], bands["n_out_of_scope"])


def sources(runs, sets, folder):
    """Name, arguments, and whether levels tell languages apart."""
    extra = os.path.join(folder, "oos-extra.jsonl")
    for name in FLEETS:
        yield name, fleet_files(folder, name), True
    yield "newcomer", ("--agents", f"{folder}/newcomer.agents.jsonl",
                       f"{folder}/newcomer.queries.jsonl"), False
    yield "own", ("--agents", *sets.files["own"]), False
    for name, files in sets.files.items():
        if name != "own":
            yield name, ("--agents", *files, sets.oos.get(name, extra)), False


def measure(runs, sets, folder):
    found = {}
    for how, more in (("auto", ()), ("fixed", FIXED)):
        for model, (own, which) in MODELS.items():
            if how == "fixed" and model not in EMBEDDERS:
                continue
            found[how, model] = {
                name: (runs.tried(*args, *own, *more, which=which,
                                  show=model == EMBEDDERS[0]), by_language)
                for name, args, by_language in sources(runs, sets, folder)}
        found[how, "commands"] = runs.commands
        runs.commands = []
    return found


HEADS = ("agents", "messages", "top-1", "confident and right",
         "confident and wrong", "unsure", "classified as out of scope",
         "confident of right top-1", "right agent gets it",
         "out-of-scope texts", "out-of-scope detected", "out-of-scope unsure")


def cells(result, b):
    def of_all(key):
        return percent(part(b[key], b["n"]))

    return [str(result["agents"]), str(b["n"]), of_all("top_1"),
            of_all("confident_right"), of_all("confident_wrong"),
            of_all("unsure"), of_all("out_of_scope"), percent(share(b)),
            percent(part(b["confident_right"] + b["unsure_right"], b["n"])),
            str(b["n_out_of_scope"]), percent(detected(b)),
            percent(part(b["out_of_scope_unsure"], b["n_out_of_scope"]))]


def mean_row(rows):
    """The mean over the five fleets, equally weighted."""
    def mean(values):
        return percent(sum(values) / len(values))

    def of_all(key):
        return mean([b[key] / b["n"] for b in rows])

    return ["**mean of the five fleets**", "", "", of_all("top_1"),
            of_all("confident_right"), of_all("confident_wrong"),
            of_all("unsure"), of_all("out_of_scope"),
            mean([share(b) or 0 for b in rows]),
            mean([(b["confident_right"] + b["unsure_right"]) / b["n"]
                  for b in rows]), "",
            mean([detected(b) or 0 for b in rows]),
            mean([b["out_of_scope_unsure"] / b["n_out_of_scope"]
                  for b in rows])]


def write_table(out, results):
    rows, fleets, others = [], [], []
    for name, (result, by_language) in results.items():
        if not result:
            rows.append([name] + ["not measured"] + [""] * (len(HEADS) - 1))
            continue
        b = english(result) if by_language else result["routing"]["bands"]
        rows.append([name, *cells(result, b)])
        if by_language:
            fleets.append(b)
            others.append(of_levels(result, ("other-language",)))
        if len(fleets) == len(FLEETS):
            rows.append(mean_row(fleets))
            fleets = []
    out.append(table(["", *HEADS], rows))
    if not others:
        return
    b = added(others)
    out.append(
        f"\nOther languages, the five fleets together ({b['n']} messages): "
        f"top-1 {percent(part(b['top_1'], b['n']))}, confident and right "
        f"{percent(part(b['confident_right'], b['n']))}, confident and wrong "
        f"{percent(part(b['confident_wrong'], b['n']))}, unsure "
        f"{percent(part(b['unsure'], b['n']))}, classified as out of scope "
        f"{percent(part(b['out_of_scope'], b['n']))}.\n")


def write(out, found):
    out.append("## What happens to a message\n")
    out.append(
        "With the default settings (`routing.threshold` `\"auto\"`), in "
        "percent. A message in scope is confident and right, confident and "
        "wrong, unsure, or classified as out of scope; the four add up to "
        "100. \"Confident of right top-1\": of the messages whose best "
        "candidate is right, the share that is confident and right. \"Right "
        "agent gets it\" also counts unsure messages that go to the right "
        "agent, marked as unsure, as they do where no default agent is set. "
        "An out-of-scope text is detected unless the choice is confident; "
        "\"out-of-scope unsure\" is the share that still reaches an agent, "
        "marked as unsure, where no default agent is set.\n")
    out.append(
        "The first five are small fleets with cards as people first write "
        "them, in [test/quality/fleets](../test/quality/fleets): English "
        "messages only, other languages below the table. `newcomer` is five "
        "one-line cards. `own` is the project's own set, other languages "
        "included. The fleets have 16 out-of-scope texts each, and the 147 of "
        "`oos-extra.jsonl`; `own` and clinc150 have their own; the other "
        "public sets use those 147 as well. None of these texts is a "
        "reference text in the binary, except one of the 1 000 of clinc150. A "
        "few of the 147 are in scope for a set of hundreds of tools, so 100 "
        "is out of reach there. `newcomer` has no out-of-scope texts, because "
        "its researcher looks up anything.\n")
    for embedder in EMBEDDERS:
        out.append(f"**{embedder}**\n")
        write_table(out, found["auto", embedder])
        out.append("")
    out.append("```\n" + "\n".join(found["auto", "commands"]) + "\n```\n")
    out.append("### With a fixed threshold of 0.30\n")
    out.append(
        "The same with `--set routing.threshold=0.3`, for comparison: one "
        "threshold for every model and every number of agents. There is no "
        "unsure band, and messages below 0.30 reach no agent.\n")
    for embedder in EMBEDDERS:
        out.append(f"**{embedder}**\n")
        write_table(out, found["fixed", embedder])
        out.append("")
