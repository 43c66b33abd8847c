#!/usr/bin/python3
"""Measure routing on third-party fleets: the `dev` split of
../shared/data/route, with the default settings.

    tools/quality_route.py [--data FOLDER] [--embedder KIND] [--jobs N]
                           [--cases NAME,...] [--json FILE]
                           SIGNALBOX [ARGS]

All messages of a fleet go through `signalbox eval`, and every figure is the
mean over fleets: otherwise the large ones of voice assistants would dominate.
ARGS are added to every run, for example `--data FOLDER` for a model's file.

    english             English messages, cards as they are
    typos, long         the same with typing mistakes, or with other text
                        around them (train/route/texts.py)
    thin                the same, with cards of a name and one sentence
    rich                the same, with three messages of each card on it as
                        examples; these are not asked
    rich-without        the messages of `rich`, cards as they are
    de/own, de/english  German messages and German cards; the same messages and
                        the cards' English texts. Likewise for every language.

Also used by quality.py."""
import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "train", "route"))
import texts as texts_of  # noqa: E402

# The variants of zh and pt count as one language each.
LANGUAGES = {"en": ("en",), "de": ("de", "de-CH"), "es": ("es",),
             "fr": ("fr",), "it": ("it",), "pt": ("pt", "pt-BR"),
             "nl": ("nl",), "pl": ("pl",), "ru": ("ru",), "tr": ("tr",),
             "zh": ("zh-CN", "zh-TW", "zh-HK"), "ja": ("ja",), "ko": ("ko",),
             "ar": ("ar",)}
ENGLISH = ("english", "typos", "long", "thin", "rich", "rich-without")
SHOTS = 3
NAME_MAX = 100
FIGURES = ("top_1", "top_3", "delivered_right", "confident_right",
           "confident_wrong", "unsure", "refused", "ndcg_at_10", "mrr")


def cases():
    return list(ENGLISH) + [f"{language}/{cards}" for language in LANGUAGES
                            if language != "en" for cards in ("own",
                                                              "english")]


# ---- files of a fleet ----

def agent_of(card, taken, is_thin):
    """A card as `signalbox eval` reads one. A name that the server would
    reject becomes a number, and the description starts with it instead."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", card["name"]).strip("-._")
    about = card["description"].strip()
    if is_thin:
        about = texts_of.first_sentence(about)
    # Most of its letters cannot be in a name.
    if sum(c.isalpha() for c in name) * 2 < sum(
            c.isalpha() for c in card["name"]) or not name:
        about = f"{card['name']}: {about}" if about else card["name"]
        name = f"a{len(taken) + 1}"
    name = base = name[:NAME_MAX]
    n = 1
    while name.lower() in taken:
        n += 1
        name = f"{base}-{n}"
    taken.add(name.lower())
    agent = {"name": name, "description": about}
    if card["skills"] and not is_thin:
        agent["skills"] = [s for s in card["skills"] if s.strip()]
    return agent


class Fleet:
    """The input of one run: agents, queries, and perhaps examples."""

    def __init__(self, name, cards, is_thin=False):
        self.name, self.agents, self.queries, self.examples = name, [], [], []
        self.of_card, taken = {}, set()
        for key, card in cards:
            self.agents.append(agent_of(card, taken, is_thin))
            self.of_card[key] = self.agents[-1]["name"]

    def ask(self, key, text):
        self.queries.append({"text": text, "agents": [self.of_card[key]]})

    def show(self, key, text):
        self.examples.append({"text": text, "agents": [self.of_card[key]]})

    def is_worth_it(self):
        return len(self.agents) > 1 and self.queries


def fillers(route):
    """Text to paste around a message: English descriptions of cards of fleets
    without messages."""
    return [c["description"][:300] for i, c in enumerate(route.cards)
            if c["lang"] == "en" and len(c["description"]) > 40
            and route.fleet_of[i] >= 0
            and not route.fleets[route.fleet_of[i]]["messages"]]


def english_fleet(route, fleet, case, around):
    keys = fleet["cards"]
    out = Fleet(fleet["name"], [(k, route.cards[k]) for k in keys],
                case == "thin")
    shown = {}
    for i in fleet["messages"]:
        m = route.messages[i]
        key, text, r = m["card"], m["text"], random.Random(i)
        if m["lang"] != "en":
            continue
        # If a card has few messages, most of them are still asked.
        if case.startswith("rich") and shown.get(key, 0) < min(
                SHOTS, len(route.of_card[key]) // 2):
            shown[key] = shown.get(key, 0) + 1
            if case == "rich":
                out.show(key, text)
            continue
        if case == "typos":
            text = texts_of.mistyped(text, r)
        elif case == "long":
            others = [route.messages[o]["text"] for o in route.of_card[key]
                      if o != i]
            text = texts_of.surrounded(text, r, others, around)
        out.ask(key, text)
    return out


def foreign_fleet(route, fleet, case):
    """Messages of a language, with the cards in that language or with the
    English texts of the cards that have one."""
    language, which = case.split("/")
    written, cards = LANGUAGES[language], []
    for k in fleet["cards"]:
        card = route.cards[k]
        if which == "own" and card["lang"] in written:
            cards.append((k, card))
        elif which == "english" and (card["lang"] == "en"
                                     or k in route.english):
            cards.append((k, route.cards[route.english.get(k, k)]))
    out = Fleet(fleet["name"], cards)
    for i in fleet["messages"]:
        m = route.messages[i]
        if m["lang"] in written and m["card"] in out.of_card:
            out.ask(m["card"], m["text"])
    return out


def fleets_of(route, case):
    around = fillers(route)
    for fleet in route.fleets:
        if fleet["split"] != "dev" or not fleet["messages"]:
            continue
        made = (foreign_fleet(route, fleet, case) if "/" in case
                else english_fleet(route, fleet, case, around))
        if made.is_worth_it():
            yield made


# ---- runs ----

def written(folder, name, rows):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as f:
        f.writelines(json.dumps(row, ensure_ascii=False) + "\n"
                     for row in rows)
    return path


def figures(result):
    bands = result["routing"]["bands"]
    n = bands["n"]
    out = {"n": n, "top_1": result["accuracy_at_1"],
           "top_3": result["accuracy_at_3"],
           # A server without a default agent delivers unsure messages.
           "delivered_right": (bands["confident_right"]
                               + bands["unsure_right"]) / n,
           "confident_right": bands["confident_right"] / n,
           "confident_wrong": bands["confident_wrong"] / n,
           "unsure": bands["unsure"] / n, "refused": bands["out_of_scope"] / n,
           "ndcg_at_10": result.get("ndcg_at_10"), "mrr": result.get("mrr"),
           "model": result["embedder"]}
    tiers = result["routing"].get("tiers")
    if tiers:
        out["tiers"] = tiers
    return out


def run_fleet(binary, fleet, more):
    with tempfile.TemporaryDirectory() as folder:
        args = [binary, "eval", "--json", "--agents",
                written(folder, "agents.jsonl", fleet.agents),
                written(folder, "test.jsonl", fleet.queries)]
        if fleet.examples:
            args += ["--examples", written(folder, "examples.jsonl",
                                           fleet.examples),
                     "--shots", str(SHOTS)]
        run = subprocess.run([*args, *more], capture_output=True, text=True,
                             check=False)
    if run.returncode:
        raise RuntimeError(f"{fleet.name}: status {run.returncode}: "
                           f"{run.stderr.strip()}")
    return figures(json.loads(run.stdout))


def mean(rows, key):
    values = [r[key] for r in rows if r[key] is not None]
    return sum(values) / len(values) if values else None


def measure(binary, folder, more=(), names=None, jobs=None, say=None):
    """Case -> figures, each the mean over its fleets."""
    route = texts_of.Route(folder)
    found = {}
    with ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        for case in names or cases():
            fleets = list(fleets_of(route, case))
            rows = list(pool.map(lambda f: run_fleet(binary, f, more),
                                 fleets))
            found[case] = {key: mean(rows, key) for key in FIGURES}
            found[case].update(
                fleets=len(rows), messages=sum(r["n"] for r in rows),
                model=rows[0]["model"] if rows else None,
                by_fleet={f.name: {"n": r["n"], "top_1": r["top_1"]}
                          for f, r in zip(fleets, rows)})
            tiers = [r["tiers"] for r in rows if "tiers" in r]
            if tiers:
                found[case]["tiers"] = {
                    t: sum(x.get(t, 0) for x in tiers)
                    for t in {t for x in tiers for t in x}}
            if say:
                say(case, found[case])
    return found


def percent(x):
    return "-" if x is None else f"{100 * x:.1f}"


def show(case, row):
    print(f"{case:14}{row['fleets']:7}{row['messages']:9}"
          + "".join(f"{percent(row[k]):>{max(8, len(k) + 2)}}"
                    for k in FIGURES), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="../shared/data/route")
    parser.add_argument("--embedder")
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--cases", help="of " + ", ".join(cases()))
    parser.add_argument("--json", help="write the figures there")
    parser.add_argument("binary")
    parser.add_argument("more", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    names = args.cases.split(",") if args.cases else cases()
    for name in names:
        if name not in cases():
            parser.error(f"no such case: {name}")
    more = ((["--embedder", args.embedder] if args.embedder else [])
            + args.more)
    print(f"{'':14}{'fleets':>7}{'messages':>9}"
          + "".join(f"{k:>{max(8, len(k) + 2)}}" for k in FIGURES))
    try:
        found = measure(args.binary, args.data.rstrip("/"), more, names,
                        args.jobs, show)
    except RuntimeError as e:
        sys.exit(str(e))
    found = {"embedder": args.embedder, "arguments": args.more,
             "cases": found}
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump(found, f, indent=1)
            f.write("\n")


if __name__ == "__main__":
    main()
