"""The texts of `route`, as a model sees them: cards in several forms, messages
with typing mistakes and with something around them, and which text of another
language says the same as which English one. No tensors here."""
import gzip
import json
import random
import re
from collections import Counter, defaultdict

FORMS = ("profile", "description", "skills", "thin", "tags", "examples")
FORM_WEIGHTS = (0.42, 0.14, 0.16, 0.14, 0.06, 0.08)
KEYS = {"q": "wa", "w": "qes", "e": "wrd", "r": "etf", "t": "ryg", "y": "tuh",
        "u": "yij", "i": "uok", "o": "ipl", "p": "ol", "a": "qsz", "s": "awdx",
        "d": "sefc", "f": "drgv", "g": "fthb", "h": "gyjn", "j": "hukm",
        "k": "jil", "l": "ko", "z": "asx", "x": "zsdc", "c": "xdfv",
        "v": "cfgb", "b": "vghn", "n": "bhjm", "m": "njk"}
# Parts that look like what Signalbox routes count for more.
BOOST = {"agents": 4.0, "written": 4.0, "lobe": 2.5, "trigger-evals": 2.0,
         "copilot": 1.5}
HELLOS = ("hi, ", "hey ", "hello! ", "please ", "can you help? ", "quick one: ",
          "good morning, ", "I need some help. ", "ok so ", "hey team, ")
THANKS = (" thanks", " thank you!", " please", " asap", " - thx", "?",
          " when you have a minute", " Let me know.")


def lines(path):
    opened = gzip.open(path, "rt", encoding="utf8") if path.endswith(
        ".gz") else open(path, encoding="utf8")
    with opened as f:
        return [json.loads(line) for line in f]


def words(name):
    """profile_add_words of src/model/profile.c."""
    if "." in name[:-1]:
        name = name[name.rstrip(".").rfind(".") + 1:] or name
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)
    return re.sub(r"[_.\-]+", " ", name).strip()


def first_sentence(text):
    m = re.match(r"(.{20,}?[.!?。！？])(\s|$)", text, re.S)
    return m[1] if m else text


def profile(name, description):
    name, description = words(name), description.strip()
    if not description or name.lower() == description.lower():
        return name
    return f"{name}: {description}" if name else description


def form(card, which, examples=()):
    name, about = card["name"], card["description"]
    skills = ", ".join(card["skills"][:8])
    if which == "description":
        return about.strip() or words(name)
    if which == "skills" and skills:
        return f"{profile(name, about)} {skills}"
    if which == "thin":
        return profile(name, first_sentence(about)[:120])
    if which == "tags" and skills:
        return f"{words(name)}: {skills}"
    if which == "examples" and examples:
        return f"{profile(name, about)} " + " ".join(examples)
    return profile(name, about)


def mistyped(text, r):
    """One mistake in most words of four letters and more is too many: one or
    two in a text."""
    at = [i for i in range(1, len(text) - 1)
          if text[i].isalpha() and text[i - 1].isalpha()]
    if len(at) < 4:
        return text
    for _ in range(1 + (len(text) > 30) + (len(text) > 60 and r.random() < .5)):
        i, how = r.choice(at), r.random()
        if i >= len(text) - 1:
            continue
        if how < .3:
            text = text[:i] + text[i + 1:]
        elif how < .55:
            text = text[:i] + text[i + 1] + text[i] + text[i + 2:]
        elif how < .75:
            text = text[:i] + text[i] + text[i:]
        else:
            near = KEYS.get(text[i].lower(), text[i])
            text = text[:i] + r.choice(near) + text[i + 1:]
    return text


def surrounded(text, r, others, fillers):
    """A longer message: a greeting, another request to the same card, or
    something pasted before or behind it."""
    how = r.random()
    if how < .35:
        return r.choice(HELLOS) + text + (r.choice(THANKS) if r.random() < .5
                                          else "")
    if how < .7 and others:
        return f"{text}. {r.choice(others)}"
    paste = " ".join(r.choice(fillers) for _ in range(r.randint(1, 3)))
    return f"{text}\n{paste}" if r.random() < .6 else f"{paste}\n{text}"


def part_of(fleet, source):
    head = fleet.split("/")[0].lower()
    if head == "written":
        return head
    for key, names in (
            ("lobe", ("lobe",)), ("tldr", ("tldr",)),
            ("bots", ("botframework-skills", "botbuilder-samples",
                      "botframework-solutions", "botbuilder")),
            ("home", ("home-assistant",)), ("ovos", ("ovos", "mycroft")),
            ("snips", ("snips",)), ("thingpedia", ("thingpedia",)),
            ("nlp.js", ("nlp.js",)), ("rasa", ("rasahq", "rasa")),
            ("apibench", ("apibench", "gorilla")),
            ("azure", ("azure-mcp",)), ("leon", ("leon",)),
            ("trigger-evals", ("skills-with-trigger-evals",)),
            ("toolalpaca", ("toolalpaca",)),
            ("copilot", ("pnp-copilot-agents", "vscode-copilot-participants",
                         "a2a-samples", "awesome-chatgpt-prompts")),
            ("api-bank", ("api-bank",)), ("docker", ("docker-mcp",))):
        if any(head.startswith(n) for n in names):
            return key
    low = source.lower()
    for key, mark in (("bots", "microsoft/bot"), ("home", "home-assistant"),
                      ("ovos", "openvoiceos"), ("ovos", "mycroft"),
                      ("ovos", "ovos"), ("rasa", "rasa"),
                      ("thingpedia", "stanford-oval"),
                      ("nlp.js", "nlp.js"), ("leon", "leon-ai")):
        if mark in low:
            return key
    return "agents"


class Route:
    def __init__(self, folder, written=None):
        """written: fleets.jsonl.gz, which are part of the train split."""
        self.cards = lines(f"{folder}/cards.jsonl.gz")
        self.messages = lines(f"{folder}/messages.jsonl.gz")
        groups = lines(f"{folder}/groups.jsonl.gz")
        for fleet in lines(written) if written else ():
            groups.append(self._add(fleet))
        self.near = lines(f"{folder}/near.jsonl")
        self.number = {c["id"]: i for i, c in enumerate(self.cards)}
        self.fleets = [{"name": g["fleet"], "split": g["split"],
                        "part": part_of(g["fleet"], g["source"]),
                        "cards": [self.number[c] for c in g["cards"]],
                        "messages": []} for g in groups]
        fleet_of = {c: i for i, f in enumerate(self.fleets)
                    for c in f["cards"]}
        self.fleet_of = [fleet_of.get(i, -1) for i in range(len(self.cards))]
        self.of_card = defaultdict(list)
        for i, m in enumerate(self.messages):
            m["card"] = self.number[m["card"]]
            self.of_card[m["card"]].append(i)
            self.fleets[self.fleet_of[m["card"]]]["messages"].append(i)
        self.english = self._english()
        self.is_dev = [f >= 0 and self.fleets[f]["split"] == "dev"
                       for f in self.fleet_of]

    def _add(self, fleet):
        """A fleet of fleets.jsonl.gz, as groups.jsonl.gz would have it."""
        name = f"written/{fleet['fleet']}"
        for a in fleet["agents"]:
            self.cards.append({"id": f"{name}/{a['name']}", "name": a["name"],
                               "description": a["description"],
                               "skills": a["skills"], "lang": "en"})
        for agent, text, *lang in fleet["messages"]:
            self.messages.append({"text": text, "card": f"{name}/{agent}",
                                  "lang": lang[0] if lang else "en",
                                  "kind": "utterance"})
        return {"fleet": name, "split": "train", "source": "written",
                "cards": [f"{name}/{a['name']}" for a in fleet["agents"]]}

    def _english(self):
        """The English card of cards in other languages: `alt`, and for
        commands the page of the same name. A name that several pages of a
        language have (`pkg` of three systems) says nothing."""
        found, pages, copies = {}, {}, Counter()
        is_page = [f >= 0 and self.fleets[f]["part"] == "tldr"
                   for f in self.fleet_of]
        for i, c in enumerate(self.cards):
            if "alt" in c and c["alt"] in self.number:
                found[i] = self.number[c["alt"]]
            if is_page[i]:
                copies[c["lang"], c["name"]] += 1
                if c["lang"] == "en":
                    pages[c["name"]] = i
        for i, c in enumerate(self.cards):
            if (is_page[i] and c["lang"] != "en" and c["name"] in pages
                    and copies["en", c["name"]] == 1
                    and copies[c["lang"], c["name"]] == 1):
                found.setdefault(i, pages[c["name"]])
        return found

    def same_messages(self):
        """(message, English message) of cards that have as many of both: the
        translations stand in the same order."""
        for card, english in self.english.items():
            a, b = self.of_card[card], self.of_card.get(english, [])
            if len(a) == len(b) and not self.is_dev[card]:
                yield from zip(a, b)

    def weights(self):
        """How often each fleet of the train split is drawn."""
        count = defaultdict(int)
        for f in self.fleets:
            if f["split"] == "train":
                count[f["part"]] += len(f["messages"])
        out = []
        for f in self.fleets:
            n = len(f["messages"])
            if f["split"] != "train" or n < 2 or len(f["cards"]) < 2:
                out.append(0.0)
                continue
            english = sum(self.messages[m]["lang"] == "en"
                          for m in f["messages"]) / n
            out.append((n ** .5) * (1 + 3 * english))
        total = defaultdict(float)
        for f, w in zip(self.fleets, out):
            total[f["part"]] += w
        return [w / total[f["part"]] * count[f["part"]] ** .4
                * BOOST.get(f["part"], 1.0) if w else 0.0
                for f, w in zip(self.fleets, out)]


def variants(job):
    """Other ways to write message i: as it is, twice mistyped, surrounded."""
    i, text, others, fillers = job
    r = random.Random(i)
    long = surrounded(text, r, others, fillers)
    return (text, mistyped(text, r), mistyped(text, r),
            mistyped(long, r) if r.random() < .3 else long)
