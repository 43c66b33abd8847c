"""Tune MiniLM for routing, distil what it learnt into three layers and into a
table, and say what each is worth on the dev split of `route`.

    train.py --model FILE [--second FILE] --tokenizer FILE --table FILE
             --route FOLDER --pairs FILE --texts FILE [--utterances FILE]
             [--fleets FILE] --parallel FILE[,FILE] --out FOLDER
             [--make table,transformer] [--seeds 1,2] [--set K=V]

Several seeds are several runs at the same time: they share what is prepared and
nothing else. --set steps=0 takes the teachers that an earlier run left in
--work. Files of more than 16 MB are written in parts: cat them together.

README.md says what the choices are and what they were worth. The same seed on
the same kind of GPU gives the same figures but for the order in which a GPU
adds, and for how far the transformer comes in the time that it is given.
"""
import argparse
import copy
import gzip
import hashlib
import json
import math
import multiprocessing
import os
import pickle
import random
import time
from collections import Counter, defaultdict

import numpy as np
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from torch.nn import functional as F

import encoder
import rows as rows_of
import texts as texts_of

CHOICES = dict(
    steps=400, fleets=20, messages=24, extra=12, rate=6e-5, heat=.05,
    back=.5, same=.82, pairs=128, pair_weight=.3, keep=384, keep_weight=.5,
    typos=.3, long=.15, english=.5, dev_every=300, tune_seconds=260.,
    layer_steps=12000, layer_batch=2048, layer_rate=5e-4, relation=10.,
    table_steps=9000, table_batch=4096,
    table_rate=4e-3, table_relation=3., more=12000, aux=.1, aux_batch=1024,
    rank=.3, hard=.3, rank_every=3, ema=.99, requests=300000, joins=150000,
    rows=27300, new_rows=9800, drawn=3000, between=.75, second=.5, share=1.0,
    stop=1370)
NAME = "signalbox-route"
LANGS = ("en", "de", "es", "fr", "it", "pt", "nl", "pl", "ru", "tr", "zh",
         "ja", "ko", "ar")
START = time.time()
C = argparse.Namespace(**CHOICES, seed=1)
# To ask CUDA itself would keep it from the processes that are forked.
DEVICE = "cuda" if os.path.exists("/dev/nvidiactl") else "cpu"
FUSED = {"fused": True} if DEVICE == "cuda" else {}


def say(*what):
    print(f"[{time.time() - START:6.1f}]", *what, flush=True)


def in_parts(work, items):
    """work(part) of equal parts of items, by all processors, in order."""
    n = min(len(items), 4 * (os.cpu_count() or 1)) or 1
    size = (len(items) + n - 1) // n or 1
    parts = [items[i:i + size] for i in range(0, len(items), size)]
    global WORK
    WORK = work, parts
    with multiprocessing.get_context("fork").Pool(os.cpu_count()) as pool:
        return pool.map(do_part, range(len(parts)), 1)


WORK = None


def do_part(i):
    return WORK[0](WORK[1][i])


# ---- texts as numbers ----

class Store:
    """Texts cut into pieces, all in one tensor on the device."""

    def __init__(self, cut, texts, most=128, marks=None):
        def work(part):
            out = [e.ids[:most] for e in cut.encode_batch(
                part, add_special_tokens=False)]
            if marks:
                out = [[marks[0]] + x[:most - 2] + [marks[1]] for x in out]
            n = np.array([len(x) for x in out], np.int64)
            return np.array([i for x in out for i in x], np.int32), n
        got = in_parts(work, texts)
        flat = np.concatenate([a for a, _ in got])
        self.lengths = np.concatenate([b for _, b in got])
        starts = np.concatenate(([0], np.cumsum(self.lengths)[:-1]))
        pad = np.zeros(1024, np.int32)
        self.flat = torch.from_numpy(np.concatenate((flat, pad)))
        self.starts = torch.from_numpy(starts)
        self.on_device = torch.from_numpy(self.lengths)

    def _move(self):
        """Late, so that processes that share it can be started before."""
        if self.flat.device.type != DEVICE:
            self.flat, self.starts, self.on_device = (
                x.to(DEVICE) for x in (self.flat, self.starts, self.on_device))

    def batch(self, which, width):
        self._move()
        at = torch.as_tensor(which, device=DEVICE)
        steps = torch.arange(width, device=DEVICE)
        mask = steps < self.on_device[at][:, None]
        ids = self.flat[self.starts[at][:, None] + steps].long()
        return ids * mask, mask


def autocast():
    return torch.autocast(DEVICE, torch.bfloat16, enabled=DEVICE == "cuda")


def encode(model, store, which, groups=4):
    """Vectors of texts, in the order asked for; similar lengths together."""
    which = np.asarray(which)
    order = np.argsort(store.lengths[which], kind="stable")
    out = []
    for part in np.array_split(order, groups) if groups > 1 else [order]:
        if len(part):
            width = int(store.lengths[which[part]].max() + 7) // 8 * 8
            with autocast():
                out.append(model(*store.batch(which[part], width)))
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return torch.cat(out)[torch.from_numpy(back).to(DEVICE)]


@torch.no_grad()
def encode_all(model, store, which, size=8192):
    which = np.asarray(which)
    model.eval()
    order = np.argsort(-store.lengths[which], kind="stable")
    out = torch.empty(len(which), model.words.embedding_dim, device=DEVICE)
    for i in range(0, len(order), size):
        part = order[i:i + size]
        out[torch.from_numpy(part).to(DEVICE)] = encode(model, store,
                                                        which[part], 2)
    return out


# ---- the texts of route ----

class Texts:
    """All texts with their numbers: messages in four ways, cards in six."""

    def __init__(self, route, fillers):
        jobs = []
        for i, m in enumerate(route.messages):
            r = random.Random(-i - 1)
            others = [route.messages[j]["text"] for j in
                      r.sample(route.of_card[m["card"]],
                               min(3, len(route.of_card[m["card"]])))
                      if j != i]
            jobs.append((i, m["text"], others,
                         [fillers[r.randrange(len(fillers))]
                          for _ in range(3)]))
        made = in_parts(lambda part: [texts_of.variants(j) for j in part], jobs)
        self.all = [t for part in made for four in part for t in four]
        self.first_card = len(self.all)
        self.examples = []
        for i, c in enumerate(route.cards):
            r = random.Random(i)
            mine = route.of_card.get(i, [])
            picked = r.sample(mine, min(3, len(mine))) if len(mine) > 3 else []
            self.examples.append(set(picked))
            said = [route.messages[j]["text"] for j in picked]
            self.all += [texts_of.form(c, f, said) for f in texts_of.FORMS]
        self.first_near = len(self.all)
        self.all += [n["text"] for n in route.near]

    def message(self, i, way=0):
        return 4 * i + way

    def card(self, i, form=0):
        return self.first_card + len(texts_of.FORMS) * i + form


# ---- dev ----

def plain(lang):
    return {"zh-CN": "zh", "zh-TW": "zh", "zh-HK": "zh", "pt-BR": "pt",
            "de-CH": "de"}.get(lang, lang)


class Dev:
    """Top-1 by cosine, one text per card, the mean over fleets: of English
    messages, and of each other language against the cards as they are and
    against English ones."""

    def __init__(self, route, texts):
        self.asked = []
        ids = set()
        for f in route.fleets:
            if f["split"] != "dev" or not f["messages"] or len(f["cards"]) < 2:
                continue
            by = defaultdict(list)
            for m in f["messages"]:
                by[plain(route.messages[m]["lang"])].append(m)
            for lang, messages in by.items():
                if lang not in LANGS:
                    continue
                sets = [("own", {c: c for c in f["cards"]})]
                english = {c: c if route.cards[c]["lang"] == "en"
                           else route.english.get(c) for c in f["cards"]}
                if lang != "en" and None not in english.values():
                    sets.append(("english", english))
                if lang != "en" and all(route.cards[c]["lang"] == "en"
                                        for c in f["cards"]):
                    sets = sets[1:]
                for kind, cards in sets:
                    named = list(dict.fromkeys(cards.values()))
                    right = [named.index(cards[route.messages[m]["card"]])
                             for m in messages]
                    self.asked.append((f["name"], f["part"], lang, kind,
                                       [texts.message(m) for m in messages],
                                       [texts.message(m, 1) for m in messages],
                                       [texts.message(m, 3) for m in messages],
                                       [texts.card(c) for c in named],
                                       np.array(right)))
        for a in self.asked:
            ids.update(a[4] + a[5] + a[6] + a[7])
        self.ids = np.array(sorted(ids))
        self.place = {t: i for i, t in enumerate(self.ids)}

    def at(self, some):
        return torch.tensor([self.place[t] for t in some], device=DEVICE)

    def figures(self, vectors):
        """vectors: of self.ids."""
        got = defaultdict(list)
        for name, part, lang, kind, *ways, cards, right in self.asked:
            answers = vectors[self.at(cards)]
            right = torch.from_numpy(right).to(DEVICE)
            for way, messages in zip(("", " typos", " long"), ways):
                if way and lang != "en":
                    continue
                best = (vectors[self.at(messages)] @ answers.T).argmax(1)
                hit = (best == right).float().mean().item()
                got[(lang, kind + way)].append(hit)
                if lang == "en" and not way:
                    got[("en", "part " + part)].append(hit)
        return {k: (100 * sum(v) / len(v), len(v)) for k, v in got.items()}

    def show(self, name, vectors, whole=True):
        f = self.figures(vectors)
        out = {"model": name, "en": f[("en", "own")][0],
               "typos": f[("en", "own typos")][0],
               "long": f[("en", "own long")][0]}
        for kind in ("own", "english"):
            some = {k[0]: v for k, v in f.items() if k[1] == kind
                    and k[0] != "en"}
            out[kind] = sum(v[0] for v in some.values()) / max(1, len(some))
        say(f"DEV {name}: " + " ".join(f"{k} {v:.1f}" for k, v in out.items()
                                       if k != "model"))
        if whole:
            for kind in ("own", "english"):
                say(f"    {kind}: " + " ".join(
                    f"{x} {f[(x, kind)][0]:.1f}({f[(x, kind)][1]})"
                    for x in LANGS if (x, kind) in f))
            say("    parts: " + " ".join(
                f"{k[1][5:]} {v[0]:.1f}({v[1]})" for k, v in f.items()
                if k[1].startswith("part ")))
        RESULTS.append({**out, "all": {" ".join(k): v for k, v in f.items()}})
        return out["en"]


RESULTS = []


# ---- tuning ----

def draw(step, route, texts, weights):
    """One batch: numbers of texts and which belong together. No tensors."""
    r = random.Random(C.seed * 1_000_003 + step)
    fleets = set()
    while len(fleets) < C.fleets:
        fleets.add(r.choices(range(len(weights)), cum_weights=weights)[0])
    queries, right, cards, names, card_ids = [], [], [], [], []
    forms = range(len(texts_of.FORMS))
    for f in sorted(fleets):
        fleet = route.fleets[f]
        trigger = [.4 if route.messages[m]["kind"] == "trigger" else 1.
                   for m in fleet["messages"]]
        some = list(dict.fromkeys(r.choices(fleet["messages"], trigger,
                                            k=C.messages)))
        mine = list(dict.fromkeys(route.messages[m]["card"] for m in some))
        rest = [c for c in fleet["cards"] if c not in set(mine)]
        mine += r.sample(rest, min(C.extra, len(rest)))
        at = {}
        asked = set(some)
        for c in mine:
            form = r.choices(forms, texts_of.FORM_WEIGHTS)[0]
            if texts_of.FORMS[form] == "examples" and (
                    asked & texts.examples[c]):
                form = 0
            shown = c
            if c in route.english and r.random() < C.english:
                shown = route.english[c]
            at[c] = len(cards)
            cards.append(texts.card(shown, form))
            card_ids.append(shown)
            names.append(route.cards[c]["name"].lower())
        for m in some:
            u = r.random()
            way = (3 if u < C.long else
                   1 + (r.random() < .5) if u < C.long + C.typos else 0)
            queries.append(texts.message(m, way))
            right.append(at[route.messages[m]["card"]])
    number = {}
    return (np.array(queries), np.array(right), np.array(cards),
            np.array([number.setdefault(n, len(number)) for n in names]),
            np.array(card_ids))


def contrast(queries, cards, right, same, heat):
    """Each message against all cards, and each card against all messages.
    same: cards that must not count as wrong ones of a card."""
    n = torch.arange(len(right), device=DEVICE)
    logits = queries @ cards.T / heat
    wrong = same[right].clone()
    wrong[n, right] = False
    ahead = F.cross_entropy(logits.masked_fill(wrong, -1e4), right)
    # For a message, the other messages of its card (or one like it) are left
    # out of what the card is asked to tell apart.
    back = logits.T[right]
    others = same[right][:, right]
    others[n, n] = False
    back = F.cross_entropy(back.masked_fill(others, -1e4), n)
    return ahead + C.back * back


def draw_all(route, texts):
    weights = list(np.cumsum(route.weights()))
    got = in_parts(lambda steps: [draw(s, route, texts, weights)
                                  for s in steps],
                   list(range(max(C.steps, C.drawn))))
    batches = [b for part in got for b in part]
    say(f"{len(batches)} batches drawn, {sum(len(b[0]) for b in batches)} "
        f"messages, {np.mean([len(b[2]) for b in batches]):.0f} cards each")
    return batches


def schedule(optimizer, step, steps, rate, warm=100):
    by = min(1, (step + 1) / warm) * (
        .02 + .98 * .5 * (1 + math.cos(math.pi * min(1, step / steps))))
    for g in optimizer.param_groups:
        g["lr"] = rate * by


def tune(model, store, extra, route, texts, batches, dev, name, judge):
    """extra: pairs of generic texts and texts to keep near, in store. judge:
    the model that says which cards are too like each other to be wrong."""
    with torch.no_grad():
        first_cards = encode_all(judge, store, [texts.card(i) for i in
                                                range(len(route.cards))])
        stay = encode_all(model, store, extra["keep"])
    r = np.random.default_rng(C.seed)
    near = [(texts.first_near + i, route.number[n["not"]])
            for i, n in enumerate(route.near)
            if n["not"] in route.number
            and not route.is_dev[route.number[n["not"]]]]
    optimizer = torch.optim.AdamW(model.parameters(), lr=C.rate,
                                  weight_decay=.01, **FUSED)
    losses, begun = [], time.time()
    mean = copy.deepcopy(model)
    for step, (queries, right, cards, names, card_ids) in enumerate(
            batches[:C.steps]):
        model.train()
        spent = (time.time() - begun) / C.tune_seconds
        if spent >= 1:
            break
        schedule(optimizer, step if step < 100
                 else int(max(step / C.steps, spent) * C.steps), C.steps,
                 C.rate)
        pairs = extra["pairs"][r.integers(0, len(extra["pairs"]), C.pairs)]
        which = r.integers(0, len(extra["keep"]), C.keep)
        missed = [near[i] for i in r.integers(0, len(near), 8)] if near else []
        asked = np.concatenate((
            queries, cards, pairs[:, 0], pairs[:, 1], extra["keep"][which],
            np.array([a for a, _ in missed], np.int64),
            np.array([texts.card(c) for _, c in missed], np.int64)))
        v = encode(model, store, asked)
        q, c, a, b, k, no, no_card = torch.split(v, [
            len(queries), len(cards), C.pairs, C.pairs, C.keep, len(missed),
            len(missed)])
        ids = torch.from_numpy(card_ids).to(DEVICE)
        names = torch.from_numpy(names).to(DEVICE)
        old = first_cards[ids]
        same = ((old @ old.T) > C.same) | (names[:, None] == names)
        loss = contrast(q, c, torch.from_numpy(right).to(DEVICE), same, C.heat)
        n = torch.arange(C.pairs, device=DEVICE)
        loss = loss + C.pair_weight * F.cross_entropy(a @ b.T / C.heat, n)
        loss = loss + C.keep_weight * (1 - (k * stay[which]).sum(1)).mean()
        if missed:
            # A message that is not for the card: not nearer than messages
            # that are.
            loss = loss + .2 * F.softplus(
                ((no * no_card).sum(1) - .3) / C.heat).mean() * C.heat * 10
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.)
        optimizer.step()
        with torch.no_grad():
            torch._foreach_lerp_(list(mean.parameters()),
                                 list(model.parameters()),
                                 1 - min(C.ema, (step + 1) / (step + 10)))
        if step % 50 == 0:
            losses.append(loss.item())
        if (step + 1) % C.dev_every == 0:
            dev.show(f"{name}, step {step + 1} "
                     f"(loss {np.mean(losses):.3f})",
                     encode_all(model, store, dev.ids), False)
            dev.show(f"{name}, the mean of the last steps",
                     encode_all(mean, store, dev.ids), False)
            losses = []
    return mean


def between(old, new, share):
    """Weights between those before tuning and those after: what was tuned
    counts for `share`."""
    out = copy.deepcopy(new)
    with torch.no_grad():
        for a, b in zip(out.parameters(), old.parameters()):
            a.lerp_(b.to(a.device), 1 - share)
    return out


def tuned(path, first, name, data):
    """A teacher: tuned, between before and after, into WORK/name-SEED.pt."""
    model = encoder.load(path, first).to(DEVICE)
    judge = encoder.load(ARGS.model).to(DEVICE)
    store, dev = data.store, data.dev
    dev.show(f"{name}, to begin with", encode_all(model, store, dev.ids))
    after = tune(copy.deepcopy(model), store, data.extra, data.route,
                 data.texts, data.batches, dev, name, judge)
    for share in (.25, .5, .75, 1.):
        some = between(model, after, share)
        dev.show(f"{name}, share {share}", encode_all(some, store, dev.ids),
                 share == C.between)
        if share == C.between:
            torch.save(some.state_dict(), f"{ARGS.work}/{name}-{C.seed}.pt")


def loaded(path, first, name):
    model = encoder.load(path, first)
    model.load_state_dict(torch.load(f"{ARGS.work}/{name}-{C.seed}.pt",
                                     map_location="cpu"))
    return model.to(DEVICE).eval()


class Teacher:
    """One model or two. Two: the first axes of both vectors side by side, each
    without what all texts have in common, turned to where the first model's
    vectors lie."""

    def __init__(self, data, sample=200000):
        self.models = [loaded(ARGS.model, False, "first")]
        if ARGS.second:
            self.models.append(loaded(ARGS.second, True, "second"))
        self.store, self.turn = data.store, None
        if len(self.models) < 2:
            return
        r = np.random.default_rng(7)
        some = r.permutation(data.extra["all"])[:sample]
        each = [encode_all(m, self.store, some) for m in self.models]
        self.middle = [torch.zeros_like(each[0][0]), each[1].mean(0)]
        both = self._side_by_side(each)
        axes = torch.linalg.eigh(both.T @ both)[1].flip(1)[:, :each[0].shape[1]]
        u, _, v = torch.linalg.svd((both @ axes).T @ each[0])
        self.turn = axes @ u @ v
        kept = F.normalize(both @ self.turn, dim=-1)
        say(f"two teachers: {((both @ axes) ** 2).sum(1).mean():.4f} of both is "
            f"kept, {(kept * each[0]).sum(1).mean():.3f} like the first")

    def _side_by_side(self, each):
        return torch.cat([w ** .5 * F.normalize(v - m, dim=-1) for w, v, m in
                          zip((1 - C.second, C.second), each, self.middle)], 1)

    def vectors(self, which):
        each = [encode_all(m, self.store, which) for m in self.models]
        if self.turn is None:
            return each[0]
        return F.normalize(self._side_by_side(each) @ self.turn, dim=-1)


# ---- distilling ----

class Lessons:
    """Texts to learn (numbers in the store) and the number of the text whose
    vector by the teacher is their target; messages with their cards."""

    def __init__(self, route, texts, extra):
        learn, target = [], []

        def add(text, of):
            learn.append(text)
            target.append(of)
        english = dict(route.same_messages())
        self.translated = len(english)
        for i, m in enumerate(route.messages):
            if route.is_dev[m["card"]]:
                continue
            if m["lang"] == "en":
                of = i
            elif i in english:
                of = english[i]
            else:
                continue
            for way in range(3):
                add(texts.message(i, way), texts.message(of))
            if m["lang"] == "en":
                add(texts.message(i, 3), texts.message(i, 3))
        for i, c in enumerate(route.cards):
            if route.is_dev[i]:
                continue
            of = i if c["lang"] == "en" else route.english.get(i)
            if of is None or route.is_dev[of]:
                continue
            for form in range(5 if c["lang"] == "en" else 4):
                add(texts.card(i, form), texts.card(of, form))
        for t in extra["all"]:
            add(t, t)
        for a, b in extra["parallel"]:
            add(a, b)
            add(b, b)
        learn, target = np.array(learn), np.array(target)
        _, first = np.unique(learn, return_index=True)
        self.learn, self.target = learn[first], target[first]
        # Messages in other languages whose cards are English, or have an
        # English one.
        self.asked, self.answer, self.others = [], [], []
        for i, m in enumerate(route.messages):
            card = m["card"]
            shown = (card if route.cards[card]["lang"] == "en"
                     else route.english.get(card))
            if m["lang"] == "en" or shown is None or route.is_dev[card]:
                continue
            r = random.Random(i)
            fleet = [c if route.cards[c]["lang"] == "en"
                     else route.english.get(c)
                     for c in route.fleets[route.fleet_of[card]]["cards"]]
            fleet = [c for c in fleet if c is not None and c != shown] or [
                shown]
            self.asked.append(texts.message(i))
            self.answer.append(shown)
            self.others.append([r.choice(fleet) for _ in range(8)])
        self.asked, self.answer, self.others = (
            np.array(x) for x in (self.asked, self.answer, self.others))


def likeness(a, b, block=1024):
    a, b = a[:block], b[:block]
    return ((a @ a.T - b @ b.T) ** 2).mean()


def answers(v, cards, answer, others):
    """Messages against the teacher's vectors of their card, eight of the same
    fleet, and those of the others in the batch."""
    right, wrong = cards[answer], cards[others]
    logits = torch.cat((v @ right.T, (v[:, None] * wrong).sum(-1)), 1) / C.heat
    n = torch.arange(len(v), device=DEVICE)
    mask = torch.cat((answer[:, None] == answer, others == answer[:, None]), 1)
    mask[n, n] = False
    return F.cross_entropy(logits.masked_fill(mask, -1e4), n)


class Ranks:
    """What the teacher says of batches of messages and cards, to be said again
    by a student. A text in another language means what its English one does;
    of a message without one, only its card is known."""

    def __init__(self, batches, route, texts, said):
        """said: the teacher's vectors of the texts of route."""
        english = dict(route.same_messages())
        means = np.arange(len(said))
        self.is_known = np.ones(texts.first_card, bool)
        for i, m in enumerate(route.messages):
            # Mistyped or surrounded, it is taken for what it is without.
            means[4 * i:4 * i + 4] = texts.message(english.get(i, i))
            self.is_known[4 * i:4 * i + 4] = m["lang"] == "en" or i in english
        for card, of in route.english.items():
            for form in range(len(texts_of.FORMS)):
                means[texts.card(card, form)] = texts.card(of, form)
        self.batches = batches
        self.said = said[torch.from_numpy(means).to(DEVICE)]

    def loss(self, step, vectors):
        """vectors(texts) are the student's."""
        queries, right, cards = self.batches[step % len(self.batches)][:3]
        v = vectors(np.concatenate((queries, cards)))
        got = v[:len(queries)] @ v[len(queries):].T / C.heat
        t = self.said[torch.from_numpy(queries).to(DEVICE)] @ (
            self.said[torch.from_numpy(cards).to(DEVICE)].T) / C.heat
        hard = torch.where(torch.from_numpy(self.is_known[queries]).to(DEVICE),
                           C.hard, 1.)
        want = t.softmax(1) * (1 - hard[:, None])
        n = torch.arange(len(right), device=DEVICE)
        want[n, torch.from_numpy(right).to(DEVICE)] += hard
        return -(want * got.log_softmax(1)).sum(1).mean()


def distil(student, store, lessons, targets, cards, ranks, seconds, steps, name,
           dev):
    r = np.random.default_rng(C.seed + 1)
    optimizer = torch.optim.AdamW(student.parameters(), lr=C.layer_rate,
                                  weight_decay=.01, **FUSED)
    begun, step, order = time.time(), 0, None
    while step < steps and time.time() - begun < seconds:
        at = step * C.layer_batch % len(lessons.learn)
        if order is None or at + C.layer_batch > len(order):
            order = r.permutation(len(lessons.learn))
            at = 0
        which = order[at:at + C.layer_batch]
        # Past the time allowed, the rate has come down as if steps were over.
        done = max(step / steps, (time.time() - begun) / seconds)
        schedule(optimizer, step if step < 100 else int(done * steps), steps,
                 C.layer_rate)
        v = encode(student, store, lessons.learn[which])
        t = targets[which]
        loss = (1 - (v * t).sum(1)).mean() + C.relation * likeness(v, t)
        if C.aux:
            some = r.integers(0, len(lessons.asked), C.aux_batch // 4)
            v = encode(student, store, lessons.asked[some], 1)
            loss = loss + C.aux * answers(
                v, cards, *(torch.from_numpy(x[some]).to(DEVICE)
                            for x in (lessons.answer, lessons.others)))
        if C.rank and step % C.rank_every == 0:
            loss = loss + C.rank * ranks.loss(
                step // C.rank_every, lambda x: encode(student, store, x))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(student.parameters(), 1.)
        optimizer.step()
        step += 1
        if step % 500 == 0:
            say(f"{name}: step {step} of {steps}, loss {loss.item():.4f}")
    say(f"{name}: {step} steps")
    dev.show(name, encode_all(student, store, dev.ids))
    return student


# ---- the table ----

class Bags:
    def __init__(self, finder, texts):
        got = in_parts(finder.rows, texts)
        flat = np.concatenate([a for a, _ in got])
        lengths = np.concatenate([np.diff(b) for _, b in got])
        self.lengths = torch.from_numpy(lengths)
        self.starts = torch.from_numpy(
            np.concatenate(([0], np.cumsum(lengths)[:-1])))
        self.flat = torch.from_numpy(flat)

    def vectors(self, table, which):
        if self.flat.device.type != DEVICE:
            self.lengths, self.starts, self.flat = (
                x.to(DEVICE) for x in (self.lengths, self.starts, self.flat))
        which = torch.as_tensor(which, device=DEVICE)
        n, at = self.lengths[which], self.starts[which]
        offsets = torch.cumsum(n, 0) - n
        total = int(n.sum())
        steps = torch.arange(total, device=DEVICE)
        flat = self.flat[steps + torch.repeat_interleave(
            at - offsets, n, output_size=total)].long()
        return F.normalize(F.embedding_bag(flat, table, offsets, mode="sum"),
                           dim=-1)


@torch.no_grad()
def bags_all(bags, table, which, size=65536):
    return torch.cat([bags.vectors(table, which[i:i + size])
                      for i in range(0, len(which), size)])


def learn_table(start, bags, lessons, targets, cards, ranks, steps, name, dev,
                aux=None, rank=None):
    table = torch.nn.Parameter(start.clone())
    optimizer = torch.optim.Adam([table], lr=C.table_rate, betas=(.9, .99))
    r = np.random.default_rng(C.seed + 2)
    aux = C.aux if aux is None else aux
    rank = C.rank if rank is None else rank
    order = torch.from_numpy(lessons.learn).to(DEVICE)
    asked, answer, others = (torch.from_numpy(x).to(DEVICE) for x in (
        lessons.asked, lessons.answer, lessons.others))
    g = torch.Generator(device=DEVICE).manual_seed(C.seed)
    turn, at = torch.randperm(len(order), generator=g, device=DEVICE), 0
    for step in range(steps):
        if at + C.table_batch > len(turn):
            turn, at = torch.randperm(len(order), generator=g,
                                      device=DEVICE), 0
        which = turn[at:at + C.table_batch]
        at += C.table_batch
        schedule(optimizer, step, steps, C.table_rate)
        v, t = bags.vectors(table, order[which]), targets[which]
        loss = (1 - (v * t).sum(1)).mean() + C.table_relation * likeness(v, t)
        if aux:
            some = torch.from_numpy(r.integers(0, len(lessons.asked),
                                               C.aux_batch)).to(DEVICE)
            loss = loss + aux * answers(bags.vectors(table, asked[some]),
                                        cards, answer[some], others[some])
        if rank:
            loss = loss + rank * ranks.loss(
                step, lambda x: bags.vectors(table, x))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if (step + 1) % 2000 == 0:
            say(f"{name}: step {step + 1}, loss {loss.item():.4f}")
    table = table.detach()
    q, s = encoder.as_bytes(table.cpu().numpy())
    table = torch.from_numpy(q.astype(np.float32) * s[:, None]).to(DEVICE)
    dev.show(name, bags_all(bags, table, dev.ids))
    return table


def more_words(texts, have, n):
    """Pieces of other languages, each language having the same say."""
    by = defaultdict(list)
    for lang, text in texts:
        by[lang].append(text)
    r = random.Random(C.seed)
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(lowercase=True)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    size = 500_000
    mixed = []
    for lang in sorted(by):
        r.shuffle(by[lang])
        total, i = 0, 0
        while total < size and i < 4 * len(by[lang]):
            text = by[lang][i % len(by[lang])]
            mixed.append(text)
            total += len(text)
            i += 1
    t.train_from_iterator(mixed, trainers.WordPieceTrainer(
        vocab_size=n + 9000, min_frequency=6, limit_alphabet=6000,
        special_tokens=["[UNK]"], show_progress=False))
    new = [p for p, _ in sorted(t.get_vocab().items(), key=lambda x: x[1])
           if p not in have and p != "[UNK]" and len(p.encode()) < 100]
    return new[:n]


def extended(table, texts, foreign, n):
    """The table's vocabulary with n pieces more; phrases that are seen least
    make room. Also pairs of Chinese and Japanese characters."""
    new = more_words(foreign, set(table.pieces), n)
    finder = rows_of.Finder(rows_of.Table(table.pieces + new, table.phrases,
                                          None, 1.))
    seen = np.zeros(len(table.pieces) + len(new) + len(table.phrases),
                    np.int64)
    pairs = Counter()
    alone = np.array([len(p) == 1 and ord(p) > 0x2e80 for p in finder.pieces])

    def count(part):
        flat, starts = finder.rows(part)
        seen = np.bincount(flat, minlength=len(finder.pieces)
                           + len(table.phrases))
        c = Counter()
        for a, b in zip(starts[:-1], starts[1:]):
            ids = flat[a:b]
            ids = ids[ids < finder.n_words]
            if len(ids) > 1:
                ok = alone[ids[:-1]] & alone[ids[1:]]
                if ok.any():
                    c.update(zip(ids[:-1][ok].tolist(),
                                 ids[1:][ok].tolist()))
        return seen, c
    for s, c in in_parts(count, texts):
        seen = seen + s[:len(seen)]
        pairs.update(c)
    used = len(encoder.vocabulary(table.pieces + new)) + 4096
    room = (rows_of.BYTES_MAX - used - 260 * (len(table.pieces) + len(new))
            - 4 * 32768) // 268
    room = min(room, 16384) if room < 24000 else room
    of_phrase = [(int(s), tuple(p)) for s, p in zip(
        seen[finder.n_words:], table.phrases.tolist())]
    of_phrase += [(int(k / 2), p) for p, k in pairs.most_common(4000)]
    of_phrase.sort(key=lambda x: (-x[0], x[1]))
    phrases = [p for _, p in of_phrase[:room]]
    say(f"extended: {len(new)} pieces more, {len(phrases)} of "
        f"{len(table.phrases)} phrases and {min(4000, len(pairs))} pairs of "
        f"characters are kept; the last was seen {of_phrase[:room][-1][0]} "
        "times")
    return new, np.array(phrases, np.uint32)


def grown(table, new, phrases, rows):
    """Rows to begin with: a new piece is what its pieces were together, a new
    phrase nothing."""
    cut = rows_of.cutter(table.pieces + ["[UNK]"])
    made = np.zeros((len(new), rows.shape[1]), np.float32)
    for i, p in enumerate(new):
        text = p[2:] if p.startswith("##") else p
        ids = [x for x in cut.encode(text, add_special_tokens=False).ids
               if x < len(table.pieces)]
        made[i] = rows[ids].sum(0) if ids else 0
    old = {tuple(p): len(table.pieces) + i
           for i, p in enumerate(table.phrases.tolist())}
    tail = np.stack([rows[old[tuple(p)]] if tuple(p) in old
                     else np.zeros(rows.shape[1], np.float32)
                     for p in phrases.tolist()])
    return np.concatenate((rows[:len(table.pieces)], made, tail))


# ---- more texts ----

ASKING = ("can you ", "please ", "i need to ", "how do i ", "help me ",
          "i want to ", "could you ", "i'd like to ", "what's the best way to ",
          "show me how to ", "we should ", "is there a way to ", "let's ", "")


def made_up(pairs, r):
    """Cards, requests and joins out of generic texts, as the C program of the
    table of today makes them."""
    texts = []
    for x, y in pairs:
        if len(x) < 80 and len(x) + len(y) < 400:
            texts.append(f"{x}: {y}")
    short = [t.rstrip(". ") for p in pairs for t in p if 2 <= t.count(" ") < 14]
    for t in r.sample(short, min(C.requests, len(short))):
        t = t[0].lower() + t[1:]
        texts.append(r.choice(ASKING) + t + r.choice(("", "", "?", " please",
                                                      " for me", " today")))
    for _ in range(min(C.joins, len(short))):
        texts.append(f"{r.choice(short)}. {r.choice(short)}")
    return texts


# ---- all of it ----

def put(name, data):
    """In pieces of 15 MB, so that each can be carried."""
    size = 15 << 20
    n = (len(data) + size - 1) // size
    n = 1 if len(data) <= 16 << 20 else n
    for i in range(n):
        end = f".{i}" if n > 1 else ""
        with open(os.path.join(ARGS.out, name + end), "wb") as f:
            f.write(data[i * size:(i + 1) * size] if n > 1 else data)
    say(f"{name}: {len(data)} bytes, sha256 "
        f"{hashlib.sha256(data).hexdigest()}")


def read_all(a, route):
    fillers = []
    pairs = [(x, y) for _, x, y in texts_of.lines(a.pairs)]
    single = [t for _, t in texts_of.lines(a.texts)]
    if C.share < 1:
        pairs = pairs[::int(1 / C.share)]
        single = single[::int(1 / C.share)]
    for x, y in pairs[::37]:
        fillers.append(y[:300])
    if a.utterances:
        with gzip.open(a.utterances, "rt", encoding="utf8") as f:
            said = [line.rstrip("\n") for line in f]
        single += said[::int(1 / C.share)]
    parallel = [p for path in a.parallel.split(",")
                for p in texts_of.lines(path)]
    if C.share < 1:
        parallel = parallel[::int(1 / C.share)]
    return pairs, single, parallel, fillers


def rows_of_transformer(pieces, new, texts, lessons):
    """Its vocabulary: the pieces that are seen most, of MiniLM's and of the
    new ones; and for each the pieces that MiniLM reads it as."""
    marks = pieces.index("[CLS]"), pieces.index("[SEP]")
    everything = pieces + [p for p in new if p not in set(pieces)]
    store = Store(rows_of.cutter(everything), texts.all, 128, marks)
    flat = store.flat[:int(store.lengths.sum())].numpy()
    is_learnt = np.zeros(len(texts.all), bool)
    is_learnt[lessons.learn] = True
    seen = np.bincount(flat[np.repeat(is_learnt, store.lengths)],
                       minlength=len(everything)).astype(float)
    seen[[i for i, p in enumerate(everything) if p in (
        "[PAD]", "[UNK]", "[CLS]", "[SEP]")]] = np.inf
    seen[[i for i, p in enumerate(everything)
          if len(p) == 1 and ord(p) < 128]] += 1e9
    order = np.argsort(-seen, kind="stable")
    is_new = order >= len(pieces)
    kept = np.sort(np.concatenate((
        order[~is_new][:C.rows - C.new_rows], order[is_new][:C.new_rows])))
    say(f"transformer: {len(kept)} rows of {len(everything)}, "
        f"{(kept >= len(pieces)).sum()} of them new; the last were seen "
        f"{int(seen[kept[kept < len(pieces)]].min())} and "
        f"{int(seen[kept[kept >= len(pieces)]].min())} times")
    cut = rows_of.cutter(pieces)
    unknown = pieces.index("[UNK]")
    read_as = []
    for i in kept:
        p = everything[i]
        ids = [i] if i < len(pieces) else [x for x in cut.encode(
            p[2:] if p.startswith("##") else p,
            add_special_tokens=False).ids if x != unknown]
        read_as.append([int(x) for x in ids] or [unknown])
    everything = [everything[i] for i in kept]
    assert everything[0] == "[PAD]"
    return everything, read_as


def small_model(data, lessons, targets, cards, ranks):
    """The transformer: some layers of the first teacher."""
    first = loaded(ARGS.model, False, "first")
    store, dev = data.small_store, data.dev
    small = distil(encoder.cut(first, (0, 2, 5), data.read_as), store, lessons,
                   targets, cards, ranks, C.stop - (time.time() - START),
                   C.layer_steps, "transformer", dev)
    made = encoder.sbm(small, data.small_pieces, NAME)
    path = f"{ARGS.work}/small-{C.seed}.sbm"
    with open(path, "wb") as f:
        f.write(made)
    dev.show("transformer, in bytes", encode_all(
        encoder.load_sbm(path).to(DEVICE), store, dev.ids), False)
    put(f"transformer-{C.seed}.sbm", made)


def table_model(data, lessons, said, targets, cards, ranks_of):
    """The table: the first 256 axes of the teacher."""
    old, dev = data.old, data.dev
    old_rows = torch.from_numpy(old.rows).to(DEVICE)
    n = len(dev.ids)
    v = bags_all(data.old_bags, old_rows, torch.arange(
        len(data.old_texts), device=DEVICE))
    dev.show("table of today", v[:n])
    some = said[torch.from_numpy(data.sample).to(DEVICE)]
    axes = torch.linalg.eigh(some.T @ some)[1].flip(1)[:, :rows_of.DIMS]
    t = F.normalize(some @ axes, dim=-1)
    turn = torch.linalg.solve(v[n:].T @ v[n:] + 1e-2 * torch.eye(
        rows_of.DIMS, device=DEVICE), v[n:].T @ t)
    start = old_rows @ turn
    begin = torch.from_numpy(grown(old, data.new, data.phrases,
                                   start.cpu().numpy())).to(DEVICE)
    large = rows_of.Table(old.pieces + data.new, data.phrases, None, 1.)
    table = learn_table(begin, data.bags, lessons,
                        F.normalize(targets @ axes, dim=-1),
                        F.normalize(cards @ axes, dim=-1), ranks_of(axes),
                        C.table_steps, "table", dev)
    large.rows = table.cpu().numpy()
    large.unknown_scale = float(old.unknown_scale * np.linalg.norm(
        large.rows, axis=1).mean() / np.linalg.norm(old.rows, axis=1).mean())
    put(f"table-{C.seed}.sbt", rows_of.sbt(large))


class Data:
    """What is prepared before any process touches the GPU."""

    def __init__(self, a):
        self.route = route = texts_of.Route(a.route, a.fleets)
        say("parts:", dict(Counter(f["part"] for f in route.fleets)))
        pairs, single, self.parallel, fillers = read_all(a, route)
        self.texts = texts = Texts(route, fillers)
        self.n_route = len(texts.all)
        numbers = {}

        def number(t):
            if t not in numbers:
                numbers[t] = len(texts.all)
                texts.all.append(t)
            return numbers[t]
        extra = {"pairs": np.array([(number(x), number(y))
                                    for x, y in pairs])}
        extra["all"] = np.array(sorted(
            set(extra["pairs"].ravel().tolist())
            | {number(t) for t in single}
            | {number(t) for t in made_up(pairs, random.Random(C.seed))}))
        extra["parallel"] = [(number(x), number(y))
                             for _, _, x, y in self.parallel]
        keep = np.random.default_rng(5).permutation(sorted(set(
            extra["pairs"].ravel().tolist())))[:60000]
        extra["keep"] = np.concatenate((keep, [
            texts.card(i) for i in range(0, len(route.cards), 4)
            if not route.is_dev[i]]))
        self.extra = extra
        say(f"{self.n_route} texts of route, "
            f"{len(texts.all) - self.n_route} others")
        with open(a.tokenizer, encoding="utf8") as f:
            pieces = json.load(f)["model"]["vocab"]
        self.pieces = [p for p, _ in sorted(pieces.items(),
                                            key=lambda x: x[1])]
        marks = self.pieces.index("[CLS]"), self.pieces.index("[SEP]")
        self.store = Store(rows_of.cutter(self.pieces), texts.all, 128, marks)
        say(f"cut: {int(self.store.lengths.sum())} pieces")
        self.dev = Dev(route, texts)
        self.old = rows_of.read(a.table)

    def prepare(self, lessons):
        """What the students read: their vocabularies, and all texts in them."""
        route, texts, old = self.route, self.texts, self.old
        foreign = [(x, y) for x, _, y, _ in self.parallel]
        foreign += [(plain(m["lang"]), m["text"]) for m in route.messages
                    if plain(m["lang"]) in LANGS[1:]
                    and not route.is_dev[m["card"]]]
        foreign += [(plain(c["lang"]), texts_of.form(c, "profile"))
                    for i, c in enumerate(route.cards)
                    if plain(c["lang"]) in LANGS[1:] and not route.is_dev[i]]
        self.new, self.phrases = extended(
            old, [texts.all[i] for i in lessons.learn], foreign, C.more)
        self.unique, self.back = np.unique(lessons.target, return_inverse=True)
        if "transformer" in ARGS.make:
            self.small_pieces, self.read_as = rows_of_transformer(
                self.pieces, self.new, texts, lessons)
            self.small_store = Store(
                rows_of.cutter(self.small_pieces), texts.all, 128,
                (self.small_pieces.index("[CLS]"),
                 self.small_pieces.index("[SEP]")))
        if "table" in ARGS.make:
            self.sample = np.random.default_rng(3).permutation(
                len(self.unique))[:200000]
            self.old_texts = [texts.all[i] for i in self.dev.ids] + [
                texts.all[i] for i in self.unique[self.sample]]
            self.old_bags = Bags(rows_of.Finder(old), self.old_texts)
            self.bags = Bags(rows_of.Finder(rows_of.Table(
                old.pieces + self.new, self.phrases, None, 1.)), texts.all)
        say("prepared")


def seeded(seed, f, *args):
    """In a process of its own, whose GPU the parent never touched."""
    torch.set_num_threads(1)  # threads of the parent are not in a fork
    C.seed = seed
    torch.manual_seed(seed)
    torch.backends.cuda.matmul.allow_tf32 = True
    if f is not draw_for:
        with open(f"{ARGS.work}/batches-{seed}.pickle", "rb") as file:
            args[-1].batches = pickle.load(file)
    f(*args)


def draw_for(data):
    batches = draw_all(data.route, data.texts)
    with open(f"{ARGS.work}/batches-{C.seed}.pickle", "wb") as file:
        pickle.dump(batches, file)


def said_by_teacher(data):
    """The teacher's vectors, into WORK: of the lessons' targets, and of the
    texts of route."""
    teacher = Teacher(data)
    data.dev.show("teacher", teacher.vectors(data.dev.ids))
    for name, which in (("said", data.unique),
                        ("route", np.arange(data.n_route))):
        np.save(f"{ARGS.work}/{name}-{C.seed}.npy",
                teacher.vectors(which).half().cpu().numpy())
    say("the teacher has read everything")


def student(work, lessons, data):
    said, of_route = (F.normalize(torch.from_numpy(np.load(
        f"{ARGS.work}/{name}-{C.seed}.npy")).to(DEVICE).float(), dim=-1)
        for name in ("said", "route"))
    cards = of_route[torch.tensor([data.texts.card(i) for i in range(
        len(data.route.cards))], device=DEVICE)]
    targets = said[torch.from_numpy(data.back).to(DEVICE)]

    def ranks(axes=None):
        return Ranks(data.batches, data.route, data.texts, of_route
                     if axes is None else F.normalize(of_route @ axes, dim=-1))
    if work == "table":
        table_model(data, lessons, said, targets, cards, ranks)
    else:
        small_model(data, lessons, targets, cards, ranks())
    put(f"results-{work}-{C.seed}.json", json.dumps(RESULTS).encode())


def started(jobs):
    """Each in a process of its own."""
    context = multiprocessing.get_context("fork")
    all_of = [context.Process(target=seeded, args=job) for job in jobs]
    for p in all_of:
        p.start()
    return all_of


def waited(processes):
    for p in processes:
        p.join()
        if p.exitcode:
            raise SystemExit(f"a process ended with {p.exitcode}")


def main():
    say(DEVICE, json.dumps(vars(C)))
    seeds = [int(s) for s in ARGS.seeds.split(",")]
    data = Data(ARGS)
    waited(started([(s, draw_for, data) for s in seeds]))
    tuning = []
    if C.steps:
        tuning = started(
            [(s, tuned, ARGS.model, False, "first", data) for s in seeds]
            + [(s, tuned, ARGS.second, True, "second", data)
               for s in seeds if ARGS.second])
    lessons = Lessons(data.route, data.texts, data.extra)
    data.prepare(lessons)
    say(f"{len(lessons.learn)} texts to learn, {len(data.unique)} targets, "
        f"{lessons.translated} messages with a translation, "
        f"{len(lessons.asked)} messages for cards in English")
    waited(tuning)
    waited(started([(s, said_by_teacher, data) for s in seeds]))
    waited(started([(s, student, w, lessons, data) for s in seeds
                    for w in ARGS.make.split(",")]))
    say("done")


if __name__ == "__main__":
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name in ("model", "tokenizer", "table", "route", "pairs", "texts",
                 "parallel", "out"):
        p.add_argument("--" + name, required=True)
    p.add_argument("--second", help="another teacher beside the model")
    p.add_argument("--utterances", help="made-up requests, a line each")
    p.add_argument("--fleets", help="fleets.jsonl.gz, of this folder")
    p.add_argument("--seeds", default="1")
    p.add_argument("--work", help="where teachers are kept, if not in --out")
    p.add_argument("--make", default="table,transformer")
    p.add_argument("--set", action="append", default=[])
    ARGS = p.parse_args()
    ARGS.work = ARGS.work or ARGS.out
    for s in ARGS.set:
        k, v = s.split("=")
        setattr(C, k, type(CHOICES[k])(float(v)))
    main()
