"""Rows between two tables: those of an old one, turned to the axes of a new one
that was trained from it, and those of the new one. A text's vector is a sum of
rows, so mixing rows mixes what both say. Rows that other languages use stay new
as far as they do. Shows the dev split for each share and writes one.

    mix.py --old FILE --new FILE --route FOLDER --pairs FILE --parallel FILE
           [--share S --out FILE]
"""
import argparse
from collections import defaultdict

import numpy as np

import rows as rows_of
import texts as texts_of

LANGS = ("de", "es", "fr", "it", "pt", "nl", "pl", "ru", "tr", "zh", "ja",
         "ko", "ar")


def plain(lang):
    return {"zh-CN": "zh", "zh-TW": "zh", "zh-HK": "zh", "pt-BR": "pt",
            "de-CH": "de"}.get(lang, lang)


def sums(cut, rows):
    """The sum of rows of each text."""
    flat, starts = cut
    out = np.zeros((len(starts) - 1, rows.shape[1]), np.float32)
    for i in range(len(out)):
        if starts[i + 1] > starts[i]:
            out[i] = rows[flat[starts[i]:starts[i + 1]]].sum(0)
    return out


def one_long(v):
    return v / np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-9)


def begun(old, new, turned):
    """The old rows under the new vocabulary: a piece that the old one has not
    is what its pieces are together, a phrase nothing."""
    number = {p: i for i, p in enumerate(old.pieces)}
    cut = rows_of.cutter(old.pieces + ["[UNK]"])
    out = np.zeros((len(new.pieces) + len(new.phrases), turned.shape[1]),
                   np.float32)
    for i, p in enumerate(new.pieces):
        if p in number:
            out[i] = turned[number[p]]
            continue
        ids = [x for x in cut.encode(
            p[2:] if p.startswith("##") else p, add_special_tokens=False).ids
            if x < len(old.pieces)]
        out[i] = turned[ids].sum(0) if ids else 0
    phrases = {tuple(p): len(old.pieces) + i
               for i, p in enumerate(old.phrases.tolist())}
    for i, p in enumerate(new.phrases.tolist()):
        words = tuple(number.get(new.pieces[w], -1) for w in p)
        if words in phrases:
            out[len(new.pieces) + i] = turned[phrases[words]]
    return out


class Dev:
    def __init__(self, route, finder):
        self.fleets, texts = [], []

        def add(some):
            at = len(texts)
            texts.extend(some)
            return np.arange(at, len(texts))
        for f in route.fleets:
            if f["split"] != "dev" or len(f["cards"]) < 2:
                continue
            by = defaultdict(list)
            for m in f["messages"]:
                by[plain(route.messages[m]["lang"])].append(m)
            for lang, ms in by.items():
                shown = {c: c if "en" in (lang, route.cards[c]["lang"])
                         else route.english.get(c) for c in f["cards"]}
                if lang not in LANGS + ("en",) or None in shown.values():
                    continue
                named = list(dict.fromkeys(shown.values()))
                right = np.array([named.index(shown[route.messages[m]["card"]])
                                  for m in ms])
                self.fleets.append((
                    lang, f["part"],
                    add([route.messages[m]["text"] for m in ms]),
                    add([texts_of.form(route.cards[c], "profile")
                         for c in named]), right))
        self.cut = finder.rows(texts)

    def show(self, name, rows):
        v = one_long(sums(self.cut, rows))
        got = defaultdict(list)
        for lang, part, ms, cards, right in self.fleets:
            hit = 100 * ((v[ms] @ v[cards].T).argmax(1) == right).mean()
            got[lang].append(hit)
            if lang == "en":
                got[part].append(hit)
        mean = {k: sum(x) / len(x) for k, x in got.items()}
        others = [mean[k] for k in LANGS if k in mean]
        print(f"{name}: en {mean['en']:.1f} ({len(got['en'])} fleets) "
              f"others {np.mean(others):.1f} |",
              " ".join(f"{k} {x:.1f}" for k, x in mean.items() if k != "en"),
              flush=True)


def foreign_part(new, english, foreign):
    """How much of what is seen of each row is in other languages; all of it,
    where it is seen nowhere."""
    finder, n = rows_of.Finder(new), len(new.rows)
    a, b = (np.bincount(finder.rows(x)[0], minlength=n)[:n] / len(x)
            for x in (english, foreign))
    return np.where(a + b > 0, b / np.maximum(a + b, 1e-12), 1.)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name in ("old", "new", "route", "pairs", "parallel"):
        p.add_argument("--" + name, required=True)
    p.add_argument("--share", type=float)
    p.add_argument("--out")
    a = p.parse_args()
    route = texts_of.Route(a.route)
    old, new = rows_of.read(a.old), rows_of.read(a.new)
    texts = [t for _, x, y in texts_of.lines(a.pairs)[::17] for t in (x, y)]
    texts += [m["text"] for m in route.messages[::5]
              if m["lang"] == "en" and not route.is_dev[m["card"]]]
    was = sums(rows_of.Finder(old).rows(texts), old.rows)
    now = sums(rows_of.Finder(new).rows(texts), new.rows)
    u, v = one_long(was), one_long(now)
    turn = np.linalg.solve(u.T @ u + 1e-2 * np.eye(rows_of.DIMS), u.T @ v)
    by = np.median(np.linalg.norm(now, axis=1)
                   / np.maximum(np.linalg.norm(was @ turn, axis=1), 1e-9))
    first = begun(old, new, (old.rows @ turn * by).astype(np.float32))
    part = foreign_part(new, texts, [x[2] for x in texts_of.lines(
        a.parallel)[::5]] + [m["text"] for m in route.messages[::5]
                             if m["lang"] != "en"
                             and not route.is_dev[m["card"]]])
    part[[i for i, x in enumerate(new.pieces) if not x.isascii()]] = 1
    dev = Dev(route, rows_of.Finder(new))
    for share in (0, .25, .5, .75, 1) if a.share is None else (
            a.share,):
        of_new = np.maximum(share, part)[:, None].astype(np.float32)
        mixed = (1 - of_new) * first + of_new * new.rows
        dev.show(f"share {share}", mixed)
    if a.out:
        new.rows = mixed.astype(np.float32)
        with open(a.out, "wb") as f:
            f.write(rows_of.sbt(new))


if __name__ == "__main__":
    main()
