"""Decisions as people look at them: lists, one whole, and what many say
together, over HTTP as docs/protocol.md promises it and by signalbox decisions.
What is counted is held against a plain count of the same records."""
import csv
import io
import json
import os
import re
import shutil
import sqlite3
import subprocess
import tempfile
import unittest

from client import NOT_ALLOWED, REFUSED, USAGE, Client
from signalbox import BINARY, Server, clean_environment, eventually

AGENTS = [
    {"id": "engineer", "url": "echo:", "visibility": "public",
     "description": "Builds and repairs software, finds bugs in programs",
     "routing": {"keywords": ["bug"]}},
    {"id": "writer", "url": "echo:", "visibility": "public",
     "description": "Writes articles, letters and marketing text",
     "routing": {"keywords": ["write"]}},
    {"id": "helper", "url": "echo:", "visibility": "public",
     "routing": {"routable": False}},
]
CODE = "find the bug in this program, it crashes with a segmentation fault"
LETTER = "write a letter to the marketing people about our articles"
SURE = "builds and repairs software, programs"
PULLED = "write software that builds"
NOTHING = "=zebra \"quagga\", okapi"
TABLES = ("summary", "agents", "types", "gaps", "signals", "keywords")
LAYERS = ("explicit", "prefix", "sticky", "binding", "intent", "semantic",
          "default", "none")
ROUTED = ("semantic", "intent", "default", "none")
SIGNALS = ("semantic", "performance", "keyword", "recency")
CLOSE, THRESHOLD = 0.05, 0.3
CONFIG = {"agents": {"list": AGENTS, "default": "helper"},
          "routing": {"closeMargin": CLOSE, "threshold": THRESHOLD}}
# Windows are over at once, and no one but us asks for a run.
QUICK = ("--set", "learning.followUpMs=0", "--set", "learning.everyMs=0")


# The plain count.

def mean(values):
    values = list(values)
    return sum(values) / len(values) if values else None


def is_wrong(d):
    return d["overridden_to"] is not None or d["verdict"] == "negative"


def is_right(d):
    return d["verdict"] == "positive" and not is_wrong(d)


def figures(all_ds):
    """Of all their number; the rest of those that the router decided."""
    ds = [d for d in all_ds if d["layer"] in ROUTED]
    scored = [d for d in ds if d["layer"] == "semantic"]
    over = [d for d in ds if d["latency_ms"] is not None]
    n_overridden = sum(d["overridden_to"] is not None for d in ds)
    return {
        "decisions": len(all_ds),
        "routed": len(ds),
        "confidence": mean(d["score"] for d in scored),
        "margin": mean(d["margin"] for d in scored),
        "overrides": n_overridden,
        "override_rate": n_overridden / len(ds) if ds else None,
        "ended": len(over),
        "error_rate": mean(d["error_code"] is not None for d in over),
        "answer_chars": mean(d["answer_chars"] for d in ds
                             if d["answer_chars"] is not None),
        "latency_ms": mean(d["latency_ms"] for d in over),
        **{v: sum(d["verdict"] == v for d in ds)
           for v in ("positive", "negative", "neutral", "open")}}


def grouped(ds, key):
    groups = {}
    for d in ds:
        groups.setdefault(key(d), []).append(d)
    return sorted(groups.items(), key=lambda g: (-len(g[1]), g[0]))


def agent_without(d, signal):
    """Who gets it where that signal counts for nothing."""
    def score(c):
        return sum(d["weights"][s] * c[s] for s in SIGNALS if s != signal)
    best = min(d["candidates"], key=lambda c: (-score(c), c["agent"]))
    return (best["agent"] if score(best) >= THRESHOLD
            else d["rules"]["default_agent"])


def expected_summary(ds):
    times = [d["at_ms"] for d in ds] or [0]
    return [{**figures(ds), "explored": 0,
             **{name: sum(d["layer"] == name for d in ds) for name in LAYERS},
             "first_ms": min(times), "last_ms": max(times)}]


def expected_agents(ds):
    return [{"agent": agent, **figures(group)}
            for agent, group in grouped(ds, lambda d: d["agent"])]


def expected_types(ds):
    compared = [d for d in ds if d["candidates"]]
    return [{"type": number or None, "agent": agent, **figures(group)}
            for (number, agent), group in
            grouped(compared, lambda d: (d["type"], d["agent"]))]


def is_sure(d):
    return (d["layer"] == "semantic" and d["margin"] >= CLOSE
            and d["score"] >= d["threshold"] + CLOSE)


def expected_gaps(ds):
    unsure = [d for d in ds if d["candidates"] and not is_sure(d)
              and d["layer"] in ("semantic", "default")]
    rows = []
    for number, group in grouped(unsure, lambda d: d["type"]):
        bests = [d["candidates"][0] for d in group]
        rows.append({
            "type": number or None, "decisions": len(group),
            "to_default": sum(d["layer"] == "default" for d in group),
            "refused": sum(d["layer"] == "none" for d in group),
            "best_score": mean(b["score"] for b in bests),
            "nearest_agent": max(bests, key=lambda b: b["score"])["agent"],
            "samples": list(dict.fromkeys(d["text"] for d in group))[:5]})
    return rows


def expected_signals(ds):
    rows = []
    for signal in SIGNALS:
        asked = [d for d in ds if d["layer"] == "semantic"]
        changed = [d for d in asked if agent_without(d, signal) != d["agent"]]
        rows.append({"signal": signal, "decisions": len(asked),
                     "would_differ": len(changed),
                     "helped": sum(map(is_right, changed)),
                     "hurt": sum(map(is_wrong, changed))})
    return rows


def expected_keywords(ds):
    rows = {}
    for d in ds:
        for c in d["candidates"]:
            if not c["matched_keyword"]:
                continue
            key = c["matched_keyword"], c["agent"]
            row = rows.setdefault(key, {
                "keyword": key[0], "agent": key[1], "fired": 0, "won": 0,
                "pulled": 0, "right": 0, "wrong": 0})
            row["fired"] += 1
            if d["agent"] == c["agent"]:
                row["won"] += 1
                row["pulled"] += agent_without(d, "keyword") != c["agent"]
                row["right"] += is_right(d)
                row["wrong"] += is_wrong(d)
    return sorted(rows.values(), key=lambda r: (
        -r["wrong"], -r["fired"], r["keyword"], r["agent"]))


HINDSIGHTS = ("better", "worse", "as_bad", "was_bad", "unknown")


def hindsight(d, to):
    if d["overridden_to"] is not None:
        return "better" if d["overridden_to"] == to else "as_bad"
    return {"positive": "worse", "negative": "was_bad"}.get(d["verdict"],
                                                            "unknown")


def by_threshold(d, at):
    """Who gets it by that threshold, and by which layer."""
    if d["layer"] not in ("semantic", "default"):
        return d["agent"], d["layer"]
    best = d["candidates"][0]
    if best["score"] >= at:
        return best["agent"], "semantic"
    return d["rules"]["default_agent"], "default"


def expected_thresholds(ds):
    rows = []
    for at in (i / 100 for i in range(101)):
        then = [(d, *by_threshold(d, at)) for d in ds]
        changed = [t for t in then if t[0]["agent"] != t[1]]
        words = [hindsight(d, to) for d, to, _ in changed]
        rows.append({
            "threshold": at,
            "by_score": sum(t[2] == "semantic" for t in then),
            "by_default": sum(t[2] == "default" for t in then),
            "same": len(ds) - len(changed), "changed": len(changed),
            "to_agent": sum(d["layer"] == "default" and layer == "semantic"
                            for d, _, layer in changed),
            "to_default": sum(t[2] == "default" for t in changed),
            "to_nobody": 0, **{w: words.count(w) for w in HINDSIGHTS},
            "not_known": 0})
    return rows if ds else []


def expected_changes(ds, at):
    rows = []
    for d in ds:
        to, layer = by_threshold(d, at)
        if to != d["agent"]:
            rows.append({
                "id": d["id"], "at_ms": d["at_ms"], "text": d["text"],
                "best_score": d["candidates"][0]["score"], "from": d["agent"],
                "from_layer": d["layer"], "to": to, "to_layer": layer,
                "outcome": hindsight(d, to).replace("_", " ")})
    return rows


def expected_times(ds, span_ms):
    groups = {}
    for d in ds:
        groups.setdefault(d["at_ms"] // span_ms * span_ms, []).append(d)
    return [{"from_ms": at, **figures(group)}
            for at, group in sorted(groups.items())]


EXPECTED = {name: globals()["expected_" + name] for name in TABLES}


def story(server, anna, bob):
    """Six messages, what was said of two of them, a run of the job and one
    more; the decisions by a name each."""
    made = {}

    def ask(name, text, token, **fields):
        got = server.call("POST", "/api/messages", {
            "text": text, "conversation_id": "c-" + name, "wait_ms": 30000,
            **fields}, token=token)
        assert got.status == 200, got
        made[name] = got.json()["decision"]

    def say(what, name, body, token):
        got = server.call("POST", f"/api/decisions/{made[name]['id']}/{what}",
                          body, token=token)
        assert got.status == 200, got

    ask("code", CODE, anna)
    ask("letter", LETTER, anna)
    ask("pulled", PULLED, anna)
    ask("nothing", NOTHING, anna)
    ask("short", "ok", anna, executor={"name": "engineer"})
    ask("bob", "write articles and letters", bob)
    say("override", "pulled", {"agent": "engineer"}, anna)
    say("feedback", "code", {"verdict": "right"}, anna)
    got = server.call("POST", "/api/learning/run")
    assert got.json() == {"judged": 4}, got
    ask("again", CODE, anna)  # of a type that is known now
    return made


class Analytics(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(*QUICK, config=CONFIG)
        cls.anna = cls.server.user("anna", org="acme")
        cls.bob = cls.server.user("bob")
        cls.made = story(cls.server, cls.anna, cls.bob)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def ask(self, path, token=None):
        return self.server.call("GET", path, token=token or self.server.token)

    def good(self, path, token=None):
        got = self.ask(path, token)
        self.assertEqual(got.status, 200, got)
        return got.json()

    def refused(self, path, status, code, words):
        got = self.ask(path)
        self.assertEqual(got.status, status, got)
        self.assertEqual(got.json()["error"]["code"], code)
        self.assertIn(words, got.json()["error"]["message"])

    def records(self, token=None):
        return self.good("/api/decisions?full=true", token)["items"]

    def same(self, got, expected):
        """Rows; sums of fractions may differ in what they are rounded to."""
        self.assertEqual(len(got), len(expected), got)
        for row, wanted in zip(got, expected):
            self.assertEqual(set(row) - {"name"}, set(wanted))
            for key, value in wanted.items():
                if isinstance(value, float):
                    self.assertAlmostEqual(row[key], value, 9, (key, row))
                else:
                    self.assertEqual(row[key], value, (key, row))

    def test_the_story_is_as_it_was_meant(self):
        self.assertEqual(
            {k: (d["layer"], d["agent"]) for k, d in self.made.items()},
            {"code": ("semantic", "engineer"),
             "letter": ("semantic", "writer"),
             "pulled": ("semantic", "writer"),
             "nothing": ("default", "helper"),
             "short": ("explicit", "engineer"),
             "bob": ("semantic", "writer"),
             "again": ("semantic", "engineer")})

    def test_the_summary_is_that_of_six_that_were_routed(self):
        [row] = self.good("/api/analytics/summary")["items"]
        # Those without a verdict are in it too; "ok", for an agent that was
        # named, is not.
        chars = [len(t) for t in (CODE, PULLED, LETTER, NOTHING,
                                  "write articles and letters", CODE)]
        wanted = {"decisions": 7, "routed": 6, "overrides": 1,
                  "override_rate": 1 / 6,
                  "ended": 6, "error_rate": 0, "positive": 1, "negative": 1, "neutral": 3,
                  "open": 1, "explicit": 1, "semantic": 5, "default": 1,
                  "sticky": 0, "explored": 0}
        for key, value in wanted.items():
            self.assertAlmostEqual(row[key], value, 9, key)
        self.assertAlmostEqual(row["answer_chars"], mean(chars), 9)

    def test_every_table_is_what_the_records_say(self):
        for token in (self.server.token, self.anna, self.bob):
            records = self.records(token)
            for name in TABLES:
                with self.subTest(name):
                    got = self.good("/api/analytics/" + name, token)
                    self.same(got["items"], EXPECTED[name](records))
                    self.assertEqual((got["decisions_read"],
                                      got["is_complete"]),
                                     (len(records), True))

    def test_hours_days_and_all_tables_at_once(self):
        for token in (self.server.token, self.bob):
            records = self.records(token)
            for name, span_ms in (("hours", 3600000), ("days", 86400000)):
                self.same(self.good("/api/analytics/" + name, token)["items"],
                          expected_times(records, span_ms))
            for window, times, span_ms in (("10d", "hours", 3600000),
                                           ("11d", "days", 86400000)):
                got = self.good("/api/analytics/all?window=" + window, token)
                self.assertEqual(set(got) - {
                    "since_ms", "until_ms", "decisions_read", "is_complete",
                    "follow_up_ms"},
                    {*TABLES, times})
                self.same(got[times], expected_times(records, span_ms))
                self.assertEqual(got["follow_up_ms"], 0)
                for name in TABLES:
                    self.same(got[name], EXPECTED[name](records))

    def test_hours_are_for_as_many_rows_as_there_are(self):
        self.good("/api/analytics/hours?window=9999h")
        self.refused("/api/analytics/hours?window=10000h", 400, "bad_request",
                     "ask for days")
        self.good("/api/analytics/days?window=3660d")
        self.refused("/api/analytics/days?since=0&until=864000000000", 400,
                     "bad_request", "rows: ask for a shorter time")
        self.refused("/api/analytics/days?since=100&until=99", 400,
                     "bad_request", "after until")
        self.good("/api/analytics/days?since=100&until=100")
        self.refused("/api/analytics/all?format=csv", 400, "bad_request",
                     "a CSV file")

    def test_what_other_thresholds_would_change(self):
        for token in (self.server.token, self.anna, self.bob):
            records = self.records(token)
            got = self.good("/api/analytics/thresholds", token)
            self.assertEqual((got["threshold"], got["decisions_read"]),
                             (0.3, len(records)))
            self.same(got["items"], expected_thresholds(records))
            for at in (0, 0.3, 0.37, 1):
                got = self.good(f"/api/analytics/changes?at={at}", token)
                self.same(got["items"], expected_changes(records, at))
                self.assertTrue(got["is_complete"])
        # All by score go to the default agent, whatever went well or not.
        last = self.good("/api/analytics/thresholds")["items"][-1]
        self.assertEqual(
            {k: last[k] for k in ("changed", "to_default", "worse", "as_bad",
                                  "was_bad", "unknown")},
            {"changed": 5, "to_default": 5, "worse": 1, "as_bad": 1,
             "was_bad": 0, "unknown": 3})
        # And by none at all, what no one was good enough for goes to someone.
        [one] = self.good("/api/analytics/changes?at=0")["items"]
        self.assertEqual((one["text"], one["from"], one["from_layer"]),
                         (NOTHING, "helper", "default"))

    def test_thresholds_as_csv_and_what_is_refused(self):
        got = self.ask("/api/analytics/changes?at=1&format=csv").body.decode()
        self.assertEqual(got.count("\r\n"), 6)
        got = self.ask("/api/analytics/thresholds?format=csv").body.decode()
        self.assertEqual(got.count("\r\n"), 102)
        for at in ("", "2", "-0.1", "x", "null", "NaN"):
            self.refused("/api/analytics/changes?at=" + at, 400, "bad_request",
                         "0 to 1")
        self.refused("/api/analytics/changes", 400, "bad_request", "0 to 1")
        self.refused("/api/analytics/agents?at=0.3", 400, "bad_request",
                     "for changes")
        missing = self.good("/api/analytics/thresholds?until=1")
        self.assertEqual((missing["items"], missing["decisions_read"]), ([], 0))

    def test_those_of_a_type_are_listed(self):
        for kind in {d["type"] for d in self.records()}:
            got = self.good(f"/api/decisions?type={kind}&full=true")["items"]
            self.assertEqual([d["id"] for d in got], [
                d["id"] for d in self.records() if d["type"] == kind])
        self.assertEqual(self.good("/api/decisions?type=999999")["items"], [])
        self.refused("/api/decisions?type=x", 400, "bad_request", "of a type")

    def test_words_in_texts_are_found(self):
        def found(query, token=None):
            return [d["text"] for d in self.good(
                "/api/decisions?q=" + query, token)["items"]]
        self.assertEqual(found("BUG"), [CODE, CODE])
        self.assertEqual(found("letter"),
                         ["write articles and letters", LETTER])
        self.assertEqual(found("articles+marketing"), [LETTER])
        self.assertEqual(found("articles&agent=writer&limit=1"),
                         ["write articles and letters"])
        self.assertEqual(found("%22quagga%22"), [NOTHING])
        self.assertEqual(found("giraffe"), [])
        self.assertEqual(found("write", self.bob),
                         ["write articles and letters"])
        page = self.good("/api/decisions?q=bug&limit=1&full=true")
        self.assertEqual(len(page["items"][0]["candidates"]), 2)
        rest = self.good(f"/api/decisions?q=bug&cursor={page['next_cursor']}")
        self.assertEqual([d["id"] for d in rest["items"]],
                         [self.made["code"]["id"]])
        self.assertIsNone(rest["next_cursor"])
        self.good("/api/decisions?q=" + "x" * 256)
        for bad in ("", "%20", "x" * 257):
            self.refused("/api/decisions?q=" + bad, 400, "bad_request",
                         "words to search for")

    def test_what_pulls_and_what_hurts_is_found(self):
        keywords = {k["keyword"]: k for k in
                    self.good("/api/analytics/keywords")["items"]}
        self.assertEqual(keywords["write"], {
            "keyword": "write", "agent": "writer", "fired": 3, "won": 3,
            "pulled": 1, "right": 0, "wrong": 1})
        self.assertEqual((keywords["bug"]["won"], keywords["bug"]["right"]),
                         (2, 1))
        signals = {s["signal"]: s for s in
                   self.good("/api/analytics/signals")["items"]}
        self.assertEqual(signals["keyword"], {
            "signal": "keyword", "decisions": 5, "would_differ": 1,
            "helped": 0, "hurt": 1})
        gaps = self.good("/api/analytics/gaps")["items"]
        self.assertIn(NOTHING, [t for g in gaps for t in g["samples"]])

    def test_csv_is_the_same_table(self):
        for name in TABLES:
            got = self.ask(f"/api/analytics/{name}?format=csv")
            self.assertEqual(got.headers["content-type"],
                             "text/csv; charset=utf-8")
            text = got.body.decode()
            self.assertEqual(text.count("\n"), text.count("\r\n"))
            heads, *rows = csv.reader(io.StringIO(text, newline=""))
            items = self.good("/api/analytics/" + name)["items"]
            self.assertEqual(heads, list(items[0]))
            self.assertEqual(len(rows), len(items))
            for row, item in zip(rows, items):
                for cell, value in zip(row, item.values(), strict=True):
                    self.assertEqual(cell, self.as_cell(value), heads)

    @staticmethod
    def as_cell(value):
        if value is None:
            return ""
        if isinstance(value, list):
            value = " | ".join(value)
        if isinstance(value, str):
            return "'" + value if value[:1] in ("=", "+", "-", "@") else value
        return json.dumps(value)

    def test_others_see_their_own_and_no_names_of_types(self):
        [row] = self.good("/api/analytics/summary", self.bob)["items"]
        self.assertEqual(row["decisions"], 1)
        self.assertEqual([a["agent"] for a in self.good(
            "/api/analytics/agents", self.bob)["items"]], ["writer"])
        for name in ("types", "gaps"):
            ours = self.good("/api/analytics/" + name)["items"]
            self.assertTrue(all(r["name"] for r in ours if r["type"]), ours)
            theirs = self.good("/api/analytics/" + name, self.anna)["items"]
            self.assertEqual({r["name"] for r in theirs}, {None})
        self.assertTrue(any(r["name"] for r in self.good(
            "/api/analytics/types")["items"]))

    def test_windows(self):
        records = self.records()
        times = sorted(d["at_ms"] for d in records)

        def n(query):
            return self.good("/api/analytics/summary?" + query)["items"][0][
                "decisions"]
        self.assertEqual([n("window=" + w) for w in ("10m", "3h", "7d", "2w")],
                         [7] * 4)
        self.assertEqual(n(f"since={times[0]}"), 7)
        self.assertEqual(n(f"since={times[-1] + 1}"), 0)
        self.assertEqual(n(f"until={times[0]}"), 0)
        self.assertEqual(n(f"since={times[0]}&until={times[2]}"),
                         sum(times[0] <= t < times[2] for t in times))
        self.assertEqual(n(f"window=1m&until={times[0] + 1}"),
                         times.count(times[0]))
        got = self.good(f"/api/analytics/agents?window=1m&until={times[0]}")
        self.assertEqual(got, {
            "since_ms": times[0] - 60000, "until_ms": times[0],
            "decisions_read": 0, "is_complete": True, "items": []})
        # Nothing to divide by is no number.
        [none] = self.good(f"/api/analytics/summary?since={times[-1] + 1}")[
            "items"]
        self.same([none], expected_summary([]))
        got = self.ask(f"/api/analytics/agents?format=csv&until={times[0]}")
        self.assertEqual(got.body.count(b"\n"), 1)

    def test_bad_wishes_are_refused(self):
        at = "/api/analytics/"
        self.refused(at + "weather", 404, "not_found", "there are summary")
        for window in ("7", "d", "0d", "-1d", "7y", "1.5d", "3661d", "",
                       "99999999999999999999d"):
            self.refused(at + "agents?window=" + window, 400, "bad_request",
                         "window must be")
        self.good(at + "agents?window=3660d")
        self.refused(at + "agents?window=7d&since=1", 400, "bad_request",
                     "not both")
        for bad in ("since=x", "until=-1", "since="):
            self.refused(at + "agents?" + bad, 400, "bad_request",
                         "Unix time")
        self.refused(at + "agents?format=xml", 400, "bad_request",
                     "json or csv")
        self.refused(at + "agents?windows=7d", 400, "bad_request", "")
        self.assertEqual(self.server.call("GET", at + "agents",
                                          token=None).status, 401)


class AtOnce(unittest.TestCase):
    """Verdicts take half an hour here; what an answer was like does not."""

    def setUp(self):
        stuck = {"id": "stuck", "url": "echo:600000", "visibility": "public",
                 "routing": {"routable": False}}
        self.server = Server(config={
            **CONFIG, "agents": {"list": AGENTS + [stuck],
                                 "default": "stuck"}})
        self.addCleanup(self.server.stop)

    def send(self, text, **fields):
        """The decision, once the task is over."""
        got = self.server.call("POST", "/api/messages", {
            "text": text, "wait_ms": 30000, **fields})
        self.assertEqual(got.status, 200, got)
        return self.server.call(
            "GET", "/api/decisions/" + got.json()["decision"]["id"]).json()

    def summary(self):
        got = self.server.call("GET", "/api/analytics/summary").json()
        return got["items"][0]

    def test_what_is_known_of_an_answer_is_shown_with_it(self):
        good = self.send(LETTER, conversation_id="c")
        self.assertEqual((good["layer"], good["verdict"], good["error_code"],
                          good["answer_chars"]),
                         ("semantic", "open", None, len(LETTER)))
        self.assertIsNotNone(good["latency_ms"])
        row = self.summary()
        self.assertEqual((row["ended"], row["error_rate"], row["open"],
                          row["latency_ms"]), (1, 0, 1, good["latency_ms"]))
        late = self.send(NOTHING, timeout_ms=300)
        self.assertEqual((late["layer"], late["verdict"], late["error_code"]),
                         ("default", "open", "expired"))
        # Timers and figures go by two clocks: it may be 299.
        self.assertGreater(late["latency_ms"], 200)
        # A follow-up stays with its agent: shown itself, and counted nowhere.
        more = self.send("thanks", conversation_id="c")
        self.assertEqual((more["layer"], more["answer_chars"]), ("sticky", 6))
        row = self.summary()
        self.assertEqual((row["decisions"], row["routed"], row["ended"],
                          row["error_rate"], row["open"]), (3, 2, 2, 0.5, 2))
        self.assertAlmostEqual(
            row["latency_ms"], (good["latency_ms"] + late["latency_ms"]) / 2)


class Many(unittest.TestCase):
    """More records than one call looks at, put there while no one runs. What
    is looked at is counted in their numbers, which here lie far apart."""
    N = 26000
    APART = 10
    HOLE = 500000  # in the middle of the numbers
    STEP_MS = 10000
    RARE = 2500

    @classmethod
    def number(cls, i):
        return i * cls.APART + (cls.HOLE if i > cls.N // 2 else 0)

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        with Server(data=cls.folder, config=CONFIG) as server:
            got = server.call("POST", "/api/messages", {"text": CODE})
            assert got.status == 200, got
            token = server.token
        cls.multiply()
        cls.server = Server(data=cls.folder, config=CONFIG, token=token)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        shutil.rmtree(cls.folder)

    @classmethod
    def multiply(cls):
        db = sqlite3.connect(os.path.join(cls.folder, "signalbox.db"))
        db.execute("PRAGMA synchronous=OFF")
        names = [r[1] for r in db.execute("PRAGMA table_info(decision)")]
        [row] = db.execute("SELECT * FROM decision").fetchall()
        row = dict(zip(names, row))
        cls.first_ms = row["at_ms"] - cls.N * cls.STEP_MS

        def made(i):
            rare = i % cls.RARE == 1
            return {**row, "seq": cls.number(i), "id": f"dec_{i:026}",
                    "at_ms": cls.first_ms + i * cls.STEP_MS, "text": "a needle" if rare else "hay",
                    "agent": "writer" if rare else "engineer", "body": b""}
        with db:
            db.execute("DELETE FROM decision")
            db.executemany(
                "INSERT INTO decision VALUES (" + ",".join("?" * len(names))
                + ")", ([d[n] for n in names] for d in
                        map(made, range(1, cls.N + 1))))
        db.close()

    def pages(self, query):
        """All of them, and how many pages there were."""
        found, cursor, n = [], "", 0
        while cursor is not None:
            got = self.server.call("GET", f"/api/decisions?{query}" +
                                   (f"&cursor={cursor}" if cursor else ""))
            self.assertEqual(got.status, 200, got)
            page = got.json()
            found += [int(d["id"][4:]) for d in page["items"]]
            cursor = page["next_cursor"]
            n += 1
        return found, n

    def test_what_is_rare_is_found_page_by_page(self):
        rare = list(range(1, self.N, self.RARE))[::-1]
        for query, most in (("agent=writer", 10), ("q=needle", 30),
                            ("agent=writer&limit=1", 20),
                            ("q=NEEDLE&agent=writer", 10)):
            found, n = self.pages(query)
            self.assertEqual(found, rare, query)
            self.assertTrue(3 <= n <= most, (query, n))
        self.assertEqual(self.pages("agent=missing")[0], [])
        self.assertEqual(self.pages("agent=writer&requester=missing")[0], [])

    def test_what_is_common_fills_its_page_at_once(self):
        for query in ("agent=engineer", "q=hay", "layer=semantic"):
            got = self.server.call(
                "GET", f"/api/decisions?limit=500&{query}").json()
            self.assertEqual(len(got["items"]), 500)
            self.assertIsNotNone(got["next_cursor"])

    def test_time_ends_the_search(self):
        since = self.first_ms + (self.N - 6000) * self.STEP_MS
        found, n = self.pages(f"agent=writer&since={since}")
        self.assertEqual(found, [25001, 22501, 20001])
        self.assertEqual(n, 1)
        until = self.first_ms + 3 * self.STEP_MS
        self.assertEqual(self.pages(f"until={until}")[0], [2, 1])

    def test_where_it_begins_may_be_anywhere(self):
        for cursor in (1, 11, self.number(self.N // 2) + 5, self.HOLE,
                       self.number(self.N - 10), 10 ** 15):
            found, _ = self.pages_from("agent=writer", cursor)
            self.assertEqual(found, [i for i in range(1, self.N, self.RARE)
                                     if self.number(i) < cursor][::-1])
        got = self.server.call("GET", "/api/decisions?cursor=0&agent=x")
        self.assertEqual(got.status, 400)

    def pages_from(self, query, cursor):
        got = self.server.call(
            "GET", f"/api/decisions?{query}&cursor={cursor}").json()
        found = [int(d["id"][4:]) for d in got["items"]]
        if got["next_cursor"] is None:
            return found, 1
        more, n = self.pages_from(query, got["next_cursor"])
        return found + more, n + 1


class Changes(unittest.TestCase):
    def test_of_many_changes_the_newest_are_told(self):
        with Server(config=CONFIG) as server:
            for _ in range(101):
                got = server.call("POST", "/api/messages", {"text": CODE})
                self.assertEqual(got.status, 200, got)
            got = server.call("GET", "/api/analytics/changes?at=1").json()
            self.assertEqual((len(got["items"]), got["is_complete"]),
                             (100, False))
            got = server.call("GET", "/api/analytics/thresholds").json()
            self.assertEqual(got["items"][-1]["changed"], 101)


class Signals(unittest.TestCase):
    """Without meaning no one is sure: the table says what replay says."""

    def changed(self, routing):
        config = {"agents": CONFIG["agents"], "routing": routing}
        with Server(config=config) as server:
            eventually(lambda: server.call(
                "POST", "/api/route", {"text": SURE}).json()["layer"]
                == "semantic", "the levels of all cards")
            for _ in range(3):
                got = server.call("POST", "/api/messages", {"text": SURE})
                self.assertEqual(got.json()["agent"], "engineer", got)
            rows = {r["signal"]: r["would_differ"] for r in server.call(
                "GET", "/api/analytics/signals").json()["items"]}
            run = subprocess.run(
                [BINARY, "replay", "--json", "--set",
                 "routing.weights.semantic=0"], check=True,
                capture_output=True, text=True,
                env={**clean_environment(), "SIGNALBOX_URL": server.url,
                     "SIGNALBOX_TOKEN": server.token})
            moved = json.loads(run.stdout.splitlines()[-1])["changed"]
            return rows, moved, server.call(
                "GET", "/api/analytics/alphas").json()

    def test_by_a_number(self):
        rows, moved, alphas = self.changed({"threshold": THRESHOLD})
        self.assertEqual((rows["semantic"], moved), (3, 3))
        self.assertEqual((rows["keyword"], rows["recency"]), (0, 0))
        # And alpha did not count for any of them.
        self.assertEqual({(r["same"], r["changed"]) for r in alphas["items"]},
                         {(0, 0)})

    def test_at_auto(self):
        rows, moved, alphas = self.changed({})
        self.assertEqual((rows["semantic"], moved), (3, 3))
        self.assertEqual((alphas["auto"], len(alphas["items"])), (True, 12))
        sure = [r["confident"] for r in alphas["items"]]
        self.assertEqual(sure, sorted(sure))
        self.assertEqual(sure[-1], 3)
        for r in alphas["items"]:
            self.assertEqual(
                r["confident"] + r["unsure"] + r["out_of_scope"], 3)
            self.assertEqual(r["same"] + r["changed"], 3)


class Commands(Client):
    def story(self):
        server = self.server(*QUICK, agents=None, config=CONFIG)
        self.anna = server.user("anna", org="acme")
        self.made = story(server, self.anna, server.user("bob"))
        return server

    def test_before_there_are_any(self):
        self.server(agents=None, config=CONFIG)
        self.assertEqual(self.good("decisions"), "No decisions.\n")
        self.assertEqual(self.good("decisions", "--json"), "")
        self.assertEqual(self.good("decisions", "stats"),
                         "  decisions     0\n")
        for what in TABLES[1:4] + TABLES[5:]:
            self.assertRegex(self.good("decisions", "stats", what), r"^No ")
        self.assertEqual(
            self.good("decisions", "stats", "agents", "--csv").count("\n"), 1)

    def test_lists(self):
        self.story()
        out = self.good("decisions").splitlines()
        self.assertEqual(out[0].split(), ["ID", "LAYER", "AGENT", "SCORE",
                                          "VERDICT", "AGE", "MESSAGE"])
        self.assertEqual(len(out), 8)
        self.assertRegex(out[-1], r"^dec_\S+  semantic  engineer  0\.\d{3}  "
                         r"positive  \d+s +find the bug")
        self.assertRegex(out[3], r"explicit  engineer  -  +negative .* ok$")
        for filters, names in (
                (["--layer", "Default"], ["nothing"]),
                (["--agent", "writer", "--verdict", "neutral"],
                 ["bob", "letter"]),
                (["--overridden"], ["pulled"]),
                (["--verdict", "open"], ["again"]),
                (["--since", "1h", "--limit", "2"], ["again", "bob"]),
                (["--since", "99999999999999"], []),
                (["--until", "1h"], []),
                (["--until", "99999999999999", "--limit", "1"], ["again"]),
                (["--requester", "bob"], ["bob"]),
                (["--conversation", "c-letter"], ["letter"]),
                (["--task", self.task_of("pulled")], ["pulled"]),
                (["--min-score", "0", "--agent", "writer", "--max-score",
                  "1"], ["bob", "pulled", "letter"]),
                (["--max-score", "0"], ["short", "nothing"]),
                (["--min-score", "1"], [])):
            self.assertEqual([d["id"] for d in self.lines(
                "decisions", "list", *filters)],
                [self.made[n]["id"] for n in names], filters)
        self.use_token(self.anna)
        self.assertEqual(len(self.lines("decisions")), 6)

    def task_of(self, name):
        [whole] = self.lines("decisions", self.made[name]["id"])
        return whole["task_id"]

    def test_of_one_type_of_query(self):
        self.story()
        all = self.lines("decisions", "--limit", "100")
        types = {d["id"]: self.lines("decisions", d["id"])[0]["type"]
                 for d in all}
        for kind in {0, *types.values()}:
            found = self.lines("decisions", "--type", str(kind))
            self.assertEqual([d["id"] for d in found],
                             [i for i, t in types.items() if t == kind], kind)
        self.assertEqual(self.lines("decisions", "--type", "999999"), [])

    def test_filters_that_are_none(self):
        for args, words in ((["--until", "soon"], "--until is \"soon\""),
                            (["--min-score", "2"], "--min-score"),
                            (["--max-score", "x"], "--max-score"),
                            (["--type", "-1"], "--type"),
                            (["--type", "code"], "--type")):
            self.assertIn(words, self.bad(USAGE, "decisions", *args))

    def use_token(self, token):
        self.env["SIGNALBOX_TOKEN"] = token

    def test_one_whole_and_what_is_said_of_it(self):
        self.story()
        decision = self.made["pulled"]["id"]
        out = self.good("decisions", decision)
        # A second may have gone by between the two.
        shown = self.good("decisions", "show", decision)
        self.assertEqual(*(re.sub(r"\d+s ago", "", text)
                           for text in (out, shown)))
        for line in (rf"^{decision}  writer\n  layer +semantic: the agent has",
                     r"\n  from +anna\n  org +acme\n  made +2\d{3}-",
                     r"\n  verdict +negative\n",
                     r"\n  overridden +to engineer by anna",
                     r"\n> 1  writer +0\.\d{3}  [#.]{5}",
                     rf"\n\nMessage\n  {PULLED}\n$"):
            self.assertRegex(out, line)
        self.assertIn("semantic: cosine",
                      self.good("decisions", decision, "--explain"))
        [whole] = self.lines("decisions", decision)
        self.assertEqual((whole["id"], len(whole["candidates"])),
                         (decision, 2))
        letter = self.made["letter"]["id"]
        self.assertEqual(self.good("decisions", "feedback", letter, "right"),
                         "It went to writer, and that was right.\n")
        self.assertEqual(
            self.good("decisions", "feedback", letter, "wrong", "--agent",
                      "engineer", "--comment", "no"),
            "It went to writer and should have gone to engineer.\n")
        self.assertIn("now has the conversation", self.good(
            "decisions", "override", self.made["code"]["id"], "writer"))
        self.assertIn("signalbox decisions override ID AGENT", self.bad(
            USAGE, "decisions", "override", letter, ""))

    def test_the_help_names_every_table_of_stats(self):
        said = self.good("decisions", "--help")
        for what in TABLES[1:] + ("hours", "days", "thresholds", "alphas",
                                  "changes"):
            self.assertRegex(said, rf"\b{what}\b")

    def test_stats(self):
        self.story()
        out = self.good("decisions", "stats", "--window", "1d")
        for line in (r"^  decisions +7\n  routed +6\n  confidence +0\.\d{3}\n",
                     r"\n  overrides +16\.7% \(1 of 6\)\n  errors +0\.0%\n",
                     r"\n  verdicts +1 positive, 1 negative, 3 neutral, 1 open\n",
                     r"\n  layers +1 explicit, 5 semantic, 1 default\n",
                     r"\n\nAGENT +DECISIONS +ROUTED +CONFIDENCE +OVERRIDES +ERRORS",
                     r"\nengineer +3 +2 +0\.\d{3} +0 +0\.0% ",
                     r"\nwriter +3 +3 +0\.\d{3} +1 +0\.0% "):
            self.assertRegex(out, line)
        self.assertEqual(out, self.good("decisions", "stats", "summary",
                                        "--window", "1d"))
        self.assertRegex(self.good("decisions", "stats", "keywords"),
                         r"\nwrite +writer +3 +3 +1 +0 +1\n")
        self.assertRegex(self.good("decisions", "stats", "signals"),
                         r"\nkeyword +5 +1 +0 +1\n")
        self.assertRegex(self.good("decisions", "stats", "types"),
                         r"\n\d+ \S.* engineer +1 ")
        self.assertIn("=zebra", self.good("decisions", "stats", "gaps"))
        [got] = self.lines("decisions", "stats", "agents")
        self.assertEqual([r["agent"] for r in got["items"]],
                         ["engineer", "writer", "helper"])
        out = self.run_it("decisions", "stats", "gaps", "--csv")[1]
        self.assertIn('"\'=zebra ""quagga"", okapi"', out)

    def test_stats_of_times_and_thresholds(self):
        self.story()
        self.assertRegex(self.good("decisions", "stats", "days"),
                         r"^FROM \(UTC\) .*\n\d{4}-\d\d-\d\d 00:00 +7 +6 +0\.")
        self.assertRegex(self.good("decisions", "stats", "hours"),
                         r"\n\d{4}-\d\d-\d\d \d\d:00 +\d ")
        out = self.good("decisions", "stats", "thresholds").splitlines()
        self.assertEqual(len(out), 1 + 21)
        self.assertRegex(out[-1], r"^1\.00 +0 +6 +5 +0 +5 +0 +1$")
        out = self.good("decisions", "stats", "alphas").splitlines()
        self.assertEqual(len(out), 1 + 12)
        self.assertRegex(out[0], r"^ALPHA +CONFIDENT +UNSURE +OUT OF SCOPE")
        self.assertRegex(out[1], r"^0\.05 +0 ")
        out = self.good("decisions", "stats", "changes", "--at", "0")
        self.assertRegex(out, r"\ndec_\S+ +0\.\d{3}  helper  \S+ +\S.*=zebra")
        self.assertIn("Nothing would change.", self.good(
            "decisions", "stats", "changes", "--at", "0.3"))
        self.assertIn("0 to 1", self.bad(USAGE, "decisions", "stats",
                                         "changes", "--at", "7"))
        self.assertIn("--at 0.35", self.bad(USAGE, "decisions", "stats",
                                            "changes"))
        self.assertIn("--at is only for stats changes", self.bad(
            USAGE, "decisions", "stats", "gaps", "--at", "0.3"))
        # The same as replaying them with that setting.
        for at in ("0", "0.37", "0.5", "1"):
            [got] = self.lines("decisions", "stats", "thresholds")
            [row] = [r for r in got["items"] if r["threshold"] == float(at)]
            *_, said = self.lines("replay", "--set", "routing.threshold=" + at)
            self.assertEqual((row["changed"], row["same"]),
                             (said["changed"], said["same"]))
            self.assertEqual({w: row[w.replace(" ", "_")]
                              for w in said["outcomes"]}, said["outcomes"])

    def test_words_in_messages(self):
        self.story()
        self.assertEqual([d["id"] for d in self.lines(
            "decisions", "--text", "ARTICLES letter")],
            [self.made["bob"]["id"], self.made["letter"]["id"]])
        self.assertEqual(self.good("decisions", "--text", "giraffe"),
                         "No decisions.\n")

    def test_on_a_terminal(self):
        self.story()
        for columns in (80, 120):
            for args in ([], [self.made["pulled"]["id"]], ["stats"],
                         *(["stats", what] for what in TABLES[1:]),
                         ["stats", "days"], ["stats", "thresholds"],
                         ["stats", "changes", "--at", "1"]):
                status, out = self.on_terminal("decisions", *args,
                                               columns=columns)
                self.assertEqual(status, 0, out)
                plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", out)
                for line in plain.splitlines():
                    self.assertLessEqual(len(line), columns, line)
        _, out = self.on_terminal("decisions", columns=120)
        self.assertIn("\x1b[32mpositive", out)
        self.assertIn("\x1b[31mnegative", out)
        _, out = self.on_terminal("decisions", "stats", "agents", "--csv")
        self.assertRegex(out, r"^agent,decisions,.*,open\n\"engineer\",3,")

    def test_mistakes(self):
        self.story()
        for words, *args in (
                ("did you mean semantic", "--layer", "semantik"),
                ("verdict", "--verdict", "good"),
                ("--since is \"soon\"", "--since", "soon"),
                ("--window is for", "--window", "7d"),
                ("--layer is for", "stats", "--layer", "semantic"),
                ("unknown table \"agent\"", "stats", "agent"),
                ("not both", "stats", "--csv", "--json"),
                ("an operand is missing", "show"),
                ("did you mean stats", "stat")):
            self.assertIn(words.replace('"', '\\"') if "--json" in args
                          else words, self.bad(USAGE, "decisions", *args))
        self.assertIn("window must be", self.bad(
            USAGE, "decisions", "stats", "--window", "7y"))
        self.bad(REFUSED, "decisions", "dec_01jabcdefghjkmnpqrstvwxyz0")
        self.use_token("nonsense")
        self.bad(NOT_ALLOWED, "decisions", "stats")


if __name__ == "__main__":
    unittest.main()
