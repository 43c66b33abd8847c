"""English messages and cards of `route` in Spanish, French, Portuguese and
Italian, by the rules of Apertium: lines of [language, "apertium", text,
English], like those of parallel.py.

    apt-get install apertium apertium-eng-spa apertium-fr-es apertium-es-pt \\
        apertium-spa-ita
    translate.py --route FOLDER --out FILE

English is translated into Spanish, and Spanish into the others. The sentences
are rough ("Find duplicate files" becomes "Encontrar limas duplicadas"), but the
words are those that people use. The dev split is left out.
"""
import argparse
import gzip
import json
import random
import re
import subprocess

import texts as texts_of

STEPS = (("es", "eng-spa", "en"), ("fr", "es-fr", "es"), ("pt", "es-pt", "es"),
         ("it", "spa-ita", "es"))
CARDS_MAX = 15000


def chosen(route):
    """Each text once, short enough to be a message or a thin card."""
    seen = {}

    def add(text):
        text = re.sub(r"\s+", " ", text).strip()
        if 8 <= len(text) <= 240:
            seen.setdefault(text)
    for m in route.messages:
        if m["lang"] == "en" and not route.is_dev[m["card"]]:
            add(m["text"])
    cards = [texts_of.form(c, "thin") for i, c in enumerate(route.cards)
             if c["lang"] == "en" and not route.is_dev[i]
             and c["description"] and route.of_card.get(i)]
    random.Random(1).shuffle(cards)
    for text in cards[:CARDS_MAX]:
        add(text)
    return list(seen)


def translated(lines, mode):
    made = subprocess.run(["apertium", "-u", "-f", "line", mode], check=True,
                          input="\n".join(lines) + "\n", capture_output=True,
                          encoding="utf8").stdout.split("\n")[:-1]
    assert len(made) == len(lines), (mode, len(made), len(lines))
    return [t.strip() for t in made]


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--route", required=True)
    p.add_argument("--out", required=True)
    a = p.parse_args()
    said = {"en": chosen(texts_of.Route(a.route))}
    rows = []
    for lang, mode, source in STEPS:
        said[lang] = translated(said[source], mode)
        rows += [(lang, "apertium", t, e) for t, e in
                 zip(said[lang], said["en"]) if t and t.lower() != e.lower()]
    rows.sort()
    with open(a.out, "wb") as raw, gzip.GzipFile(
            filename="", mode="wb", fileobj=raw, mtime=0) as f:
        for r in rows:
            f.write((json.dumps(r, ensure_ascii=False) + "\n").encode())
    print(len(rows), "pairs")


if __name__ == "__main__":
    main()
