"""The first section of docs/quality.md: every set at every tier of the model,
compared with words alone, the table of the previous version, and MiniLM; and
third-party fleets, by language and by how messages and cards are written. Used
by quality.py."""
import quality_bands
import quality_route
from quality_bands import percent, table

ROUTE = "route, English"
CASES = (("english", "English"), ("typos", "with typing mistakes"),
         ("long", "with other text around them"),
         ("thin", "thin cards: a name and one sentence"),
         ("rich-without", "cards as they are, some messages left out"),
         ("rich", "the same, and rich cards: those messages as examples"))


def route(runs, jobs=None):
    """Model -> case -> figures; empty if the data is missing."""
    if not runs.files("route/cards.jsonl.gz", "route/messages.jsonl.gz",
                      "route/groups.jsonl.gz", "route/near.jsonl"):
        return {}
    found = {}
    for model, (args, which) in quality_bands.MODELS.items():
        binary = runs.binary_of(which)
        if binary is None or runs.is_gone(args):
            continue
        found[model] = quality_route.measure(
            binary, f"{runs.data}/route", [*args, *runs.more], jobs=jobs,
            say=runs.say_case(model))
    return found


def pair(bands):
    if not bands or not bands["n"]:
        return "not measured"
    n = bands["n"]
    right = bands["confident_right"] + bands["unsure_right"]
    return f"{percent(bands['top_1'] / n)} / {percent(right / n)}"


def bands_of(found, model, name):
    result, by_language = found["auto", model].get(name, (None, False))
    if not result:
        return None
    return (quality_bands.english(result) if by_language
            else result["routing"]["bands"])


def mean_pair(all_bands):
    if not all_bands or None in all_bands:
        return "not measured"

    def mean(values):
        return percent(sum(values) / len(values))

    return (mean([b["top_1"] / b["n"] for b in all_bands]) + " / "
            + mean([(b["confident_right"] + b["unsure_right"]) / b["n"]
                    for b in all_bands]))


def route_pair(found, model, case):
    row = found.get(model, {}).get(case)
    if not row or row["top_1"] is None:
        return "not measured"
    return f"{percent(row['top_1'])} / {percent(row['delivered_right'])}"


def write_sets(out, bands, public, fleets):
    models = list(quality_bands.MODELS)
    groups = ((public, "mean of the public sets"),
              (fleets, "mean of the five fleets, English"))
    rows = []
    for names, words in groups:
        names = [n for n in names if n in bands["auto", "builtin"]]
        rows += [[n, *(pair(bands_of(bands, m, n)) for m in models)]
                 for n in names]
        rows.append([f"**{words}**",
                     *(mean_pair([bands_of(bands, m, n) for n in names])
                       for m in models)])
    rows += [[n, *(pair(bands_of(bands, m, n)) for m in models)]
             for n in ("newcomer", "own")]
    return rows


def write_worse(out, bands, names):
    """List where the default and its table are behind the old table."""
    parts = []
    for model in ("builtin", "table"):
        for words, keys in (("top-1", ("top_1",)),
                            ("confident and right", ("confident_right",)),
                            ("right agent gets it",
                             ("confident_right", "unsure_right"))):
            lower = []
            for name in names:
                now, old = (bands_of(bands, m, name)
                            for m in (model, "old table"))
                if now and old:
                    a, b = (sum(x[k] for k in keys) / x["n"]
                            for x in (now, old))
                    if percent(a) != percent(b) and a < b:
                        lower.append(f"{name} {percent(a)} (was {percent(b)})")
            if lower:
                parts.append(f"`{model}`, {words}: {', '.join(lower)}")
    out.append("\n[data/models.md](../data/models.md) says what the models "
               "were trained on. Worse than the old table: "
               + ("; ".join(parts) or "nothing here") + ".\n")


def learnt(routing, model, name):
    """Top-1, and confident and right, at the end of the stream."""
    result = routing.get(("learning", model), {}).get(name)
    if not result:
        return "not measured"
    last = result["routing"]["learning"][-1]
    return f"{percent(last['accuracy_at_1'])} / {percent(last['right_agent'])}"


def write_learning(out, routing, names):
    models = [m for m in quality_bands.MODELS if ("learning", m) in routing]
    out.append(
        "\nTop-1 / confident and right, in percent, after the last outcome of "
        "the streams below (at most 5 000). \"Before\" is without learning, "
        "with a default agent for messages that are not confident.\n")
    rows = []
    for name in names:
        rows.append([f"{name}, before", *(
            before(routing, m, name) for m in models)])
        rows.append([f"{name}, learned", *(
            learnt(routing, m, name) for m in models)])
    out.append(table(["", *models], rows))


def before(routing, model, name):
    result = routing["learning", model].get(name)
    if not result:
        return "not measured"
    return (f"{percent(result['accuracy_at_1'])} / "
            f"{percent(result['routing']['right_agent'])}")


def write_route(out, found):
    if not found:
        out.append("\nThe third-party fleets were not measured.\n")
        return
    models = list(found)
    out.append(
        "\n### Third-party fleets\n\nMessages and cards that were not "
        "written for Signalbox: the `dev` split of `$DATA/route`. Our models "
        "were not trained on it, but their recipe was chosen with it. Top-1 / "
        "right agent gets it, in percent, the mean over fleets. Each language "
        "has two to seven fleets, most of them chat agents in machine "
        "translation, so a few points are chance. With English cards, those "
        "without an English text are left out, so the two rows of a language "
        "do not always cover the same fleets.\n")
    rows = [[words, str(found[models[0]][case]["fleets"]),
             str(found[models[0]][case]["messages"]),
             *(route_pair(found, m, case) for m in models)]
            for case, words in CASES]
    for language in quality_route.LANGUAGES:
        for cards, words in (("own", "its own cards"),
                             ("english", "English cards")):
            case = f"{language}/{cards}"
            if case in found[models[0]]:
                row = found[models[0]][case]
                rows.append([f"{language}, {words}", str(row["fleets"]),
                             str(row["messages"]),
                             *(route_pair(found, m, case) for m in models)])
    out.append(table(["messages", "fleets", "messages", *models], rows))
    tiers = found.get("builtin", {}).get("english", {}).get("tiers")
    if tiers:
        n = sum(tiers.values())
        out.append("\nWith `builtin`, English messages were decided by "
                   + ", ".join(f"the {t} ({percent(v / n)} %)" if t else
                               f"neither ({percent(v / n)} %)"
                               for t, v in sorted(tiers.items())) + ".\n")
    out.append("```\n" + "\n".join(
        f"tools/quality_route.py --data $DATA/route "
        f"{quality_bands.binary_words(which)} {' '.join(args)}"
        for m, (args, which) in quality_bands.MODELS.items() if m in found)
        + "\n```\n")


def write(out, bands, routing, found, public):
    out.append("## Every set at every tier\n")
    out.append(
        "The default settings of a fresh server, apart from the model. Top-1 / "
        "right agent gets it, in percent. \"Right agent gets it\" counts "
        "messages that are confident and right, and unsure messages that "
        "still go to the right agent, marked as unsure. `builtin` is the "
        "default: the table first, and the transformer where the table is not "
        "clear. `table` and `transformer` are each used alone. \"Words "
        "alone\" sets `routing.textBlend` to 1. The old table is `builtin` "
        "of the previous version.\n")
    out.append(table(["", *quality_bands.MODELS], write_sets(
        out, bands, public, quality_bands.FLEETS)))
    if any(bands_of(bands, "old table", n) for n in public):
        write_worse(out, bands, (*public, *quality_bands.FLEETS, "newcomer",
                                 "own"))
    write_learning(out, routing, list(routing["sets"].files))
    write_route(out, found)
