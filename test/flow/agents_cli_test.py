"""`signalbox agents`, `search` and `grants` against the real server: what they
print, how they end, and where they say a mistake is."""
import http.server
import json
import os
import re
import threading
import unittest

from client import FAILED, NOT_ALLOWED, OK, REFUSED, UNREACHABLE, USAGE, Client
from signalbox import Server

EXAMPLES = os.path.join(os.environ["SIGNALBOX_SOURCE"], "examples", "agents")
NAMES = ["docs", "engineer", "finance", "ops", "research", "support",
         "translate", "travel"]
# What the line that says what is waited for is taken away with.
NOTICE = "\r\x1b[K"
CLIMB = ("\x1b[31m", "\x07", "\u009b", "\u202e")


def card(name, **fields):
    """One that there are no warnings about, as no message is routed to it:
    those are cards_test's."""
    return {"name": name, "description": f"Does {name}", "url": "echo:",
            "routing": {"routable": False}, **fields}


class Agents(Client):
    def setUp(self):
        super().setUp()
        os.mkdir(os.path.join(self.home, "cards"))

    def put(self, name, *cards, raw=None):
        """A file of one card, or of a list; its name as it was given."""
        with open(os.path.join(self.home, name), "wb") as f:
            f.write(raw if raw is not None else json.dumps(
                cards[0] if len(cards) == 1 else list(cards)).encode())
        return name

    def register(self, *args, **more):
        return self.good("agents", "register", *args, **more)

    def refused(self, status, *args, **more):
        got, out, err = self.run_it("agents", "register", *args, **more)
        self.assertEqual((got, err), (status, ""), out)
        return out.splitlines()

    def names(self, *args):
        return [a["name"] for a in self.lines("agents", "list", *args)]


class Register(Agents):
    def test_a_file_again_and_changed(self):
        self.server(agents=[])
        self.put("a.json", card("a"))
        self.assertEqual(self.register("a.json"), "registered  a\n")
        self.assertEqual(self.register("a.json"), "unchanged   a\n")
        self.put("a.json", card("a", version="2"))
        self.assertEqual(self.register("a.json"), "updated     a\n")
        self.put("a.json", card("A"))
        self.assertIn("more than their case", self.refused(
            REFUSED, "a.json")[1])
        self.assertEqual(self.names(), ["a"])

    def test_what_is_there_can_be_left_alone(self):
        self.server(agents=[])
        self.put("a.json", card("a"), card("b"))
        self.register("--if-new", "a.json")
        self.put("a.json", card("a", version="2"), card("c"))
        self.assertEqual(self.register("--if-new", "a.json"),
                         "kept        a\nregistered  c\n")
        self.assertEqual(self.lines("agents", "show", "a")[0].get("version"),
                         None)

    def test_a_folder_a_list_lines_and_standard_input(self):
        self.server(agents=[])
        self.put("cards/b.json", card("b"))
        self.put("cards/a.jsonc", raw=b'// ours\n{"name": "a", "description":'
                                      b' "x", "routing": {"routable": false},'
                                      b' /* all */ }')
        self.put("cards/c.txt", card("c"))
        self.put("list.json", card("d"), card("e"))
        def raw(name):
            return json.dumps(card(name)).encode()

        self.put("lines.jsonl", raw=raw("f") + b"\n\n" + raw("g") + b"\n")
        self.assertEqual(
            self.register("cards", "list.json", "lines.jsonl", "-",
                          stdin=raw("h") + b"\n" + raw("i")),
            "".join(f"registered  {n}\n" for n in "abdefghi"))
        self.assertEqual(self.names(), list("abdefghi"))

    def test_a_line_of_json_for_each(self):
        self.server(agents=[])
        self.put("a.json", card("a"), card("b", url="gopher:"))
        status, out, err = self.run_it("agents", "register", "--json",
                                       "a.json", "none.json")
        self.assertEqual((status, err), (REFUSED, ""))
        good, bad, missing = map(json.loads, out.splitlines())
        self.assertEqual(good, {"name": "a", "result": "registered",
                                "file": "a.json", "line": 1})
        self.assertEqual((bad["result"], bad["code"]),
                         ("refused", "bad_request"))
        self.assertEqual(bad["problems"][0]["pointer"], "/url")
        self.assertEqual(missing["code"], "not_found")
        self.assertNotIn("line", missing)

    BAD = b"""[
  { "name": "good", "description": "is taken", "routing": { "routable": false } },
  { "name": "bad name", "descripton": "x",
    "skills": [ { "id": "s", "name": 5,
                  "pricing": { "amount_micros": -1 } },
                { "id": "s", "name": "again" } ] }
]"""
    PLACES = [("bad.json:3:13", "/name"), ("bad.json:3:39", "/descripton"),
              ("bad.json:3:3", "/description"),
              ("bad.json:4:38", "/skills/0/name"),
              ("bad.json:5:49", "/skills/0/pricing/amount_micros"),
              ("bad.json:6:25", "/skills/1/id")]

    def test_all_that_is_wrong_has_its_place(self):
        self.server(agents=[])
        self.put("bad.json", raw=self.BAD)
        for args in ([], ["--dry-run"]):
            with self.subTest(args=args):
                lines = self.refused(USAGE, "bad.json", *args)
                self.assertEqual(lines[:2], [
                    "good        good" if args else "registered  good",
                    "refused     bad name"])
                got = {tuple(x.split()[:2]) for x in lines[2:]}
                for place, pointer in self.PLACES:
                    self.assertIn((place + ":", pointer), got)
        self.assertEqual(self.names(), ["good"])

    def test_a_dry_run_asks_nobody(self):
        self.put("a.json", card("a"))
        self.env["SIGNALBOX_URL"] = "http://127.0.0.1:1"
        self.assertEqual(self.register("--dry-run", "a.json"),
                         "good        a\n")

    def test_the_last_of_many_is_told_like_the_first(self):
        names = [f"agent-{i:05}-{'x' * 60}" for i in range(20000)]
        self.put("many.jsonl", raw="\n".join(
            json.dumps(card(n)) for n in names).encode())
        out = self.register("--dry-run", "many.jsonl")
        self.assertEqual(out.splitlines(), ["good        " + n for n in names])

    def test_files_that_cannot_be_read_are_in_nobodys_way(self):
        self.server(agents=[])
        os.mkdir(os.path.join(self.home, "empty"))
        self.put("latin.json", raw=b'{"name":"l","description":"caf\xe9"}')
        self.put("broken.json", raw=b'{"name":"l",\n "description" "x"}')
        self.put("blank.json", raw=b"\n")
        self.put("huge.json", raw=b"")
        os.truncate(os.path.join(self.home, "huge.json"), (64 << 20) + 1)
        self.put("big.json", card("big", description="x" * (1 << 20)))
        self.put("a.json", card("a"))
        lines = self.refused(REFUSED, "none.json", "empty", "latin.json",
                             "broken.json", "blank.json", "huge.json",
                             "big.json", "a.json")
        self.assertEqual(lines[0::2], [
            "refused     none.json", "refused     empty",
            "refused     latin.json", "refused     broken.json",
            "refused     blank.json", "refused     huge.json",
            "refused     big", "registered  a"])
        for line, words in zip(lines[1::2], (
                "none.json: cannot be opened: No such file",
                "empty: there is no *.json", "latin.json:1:31: ",
                "broken.json:2:16: ", "blank.json: there is no card",
                "huge.json: is larger than 64 MiB",
                "big.json:1:1: the card is larger than 1 MiB")):
            self.assertTrue(line.startswith(words), line)
        self.assertEqual(self.names(), ["a"])

    def test_a_name_twice_in_one_run_is_a_mistake(self):
        self.server(agents=[])
        self.put("a.json", card("twin"))
        self.put("b.json", card("other"), card("TWIN", version="2"))
        lines = self.refused(USAGE, "a.json", "b.json")
        self.assertEqual(lines[:3], ["registered  twin", "registered  other",
                                     "refused     TWIN"])
        self.assertIn("at a.json:1", lines[3])
        self.assertEqual(self.names(), ["other", "twin"])

    def test_what_is_anothers_is_refused(self):
        server = self.server(agents=[])
        anna, ben = server.user("anna"), server.user("ben")
        self.put("a.json", card("hers"), card("free"))
        self.register("a.json", env={"SIGNALBOX_TOKEN": anna})
        status, out, _ = self.run_it("agents", "register", "a.json",
                                     env={"SIGNALBOX_TOKEN": ben})
        self.assertEqual(status, REFUSED)
        self.assertTrue(out.startswith("refused     hers\na.json:1:"), out)

    def test_only_an_admin_may_say_some_things(self):
        server = self.server(agents=[])
        anna = {"SIGNALBOX_TOKEN": server.user("anna")}
        self.put("a.json", card("a", restart={"command": ["true"]}))
        status, out, _ = self.run_it("agents", "register", "a.json", env=anna)
        self.assertEqual(status, NOT_ALLOWED, out)
        self.assertIn("/restart", out)

    def test_when_nobody_answers_the_rest_is_left(self):
        self.env["SIGNALBOX_URL"] = "http://127.0.0.1:1"
        self.env["SIGNALBOX_TOKEN"] = "sbx_" + "x" * 43
        self.put("a.json", card("a"), card("b"))
        status, out, err = self.run_it("agents", "register", "a.json")
        self.assertEqual((status, out),
                         (UNREACHABLE, "not tried   a\nnot tried   b\n"))
        self.assertIn("no response from", err)

    def test_a_token_that_is_not_good_ends_it(self):
        self.server(agents=[])
        self.put("a.json", card("a"), card("b"))
        status, out, err = self.run_it(
            "agents", "register", "a.json",
            env={"SIGNALBOX_TOKEN": "sbx_" + "x" * 43})
        self.assertEqual((status, out), (
            NOT_ALLOWED, "not tried   a\nnot tried   b\n"))
        self.assertEqual(err.count("SIGNALBOX_TOKEN"), 1)

    def test_nothing_in_a_card_steers_a_terminal(self):
        self.server(agents=[])
        ugly = "x" + "".join(CLIMB)
        self.put("a.json", card(ugly, title=ugly))
        for args in ([], ["--dry-run"], ["--json"]):
            status, out = self.on_terminal("agents", "register", "a.json",
                                           *args)
            self.assertEqual(status, USAGE)
            for c in CLIMB[1:]:
                self.assertNotIn(c, out)
            self.assertNotIn("\x1b[31mx", out.replace("\x1b[31mrefused", ""))

    def test_on_a_terminal_there_is_a_sum(self):
        self.server(agents=[])
        status, out = self.on_terminal("agents", "register", EXAMPLES)
        self.assertEqual(status, OK, out)
        self.assertTrue(out.endswith("8 registered\n"), out)

    def test_wrong_use(self):
        for args, words in (
                (["register"], "register FILE..."),
                (["show"], "show NAME"),
                (["show", "a", "b"], "unexpected argument"),
                (["patch", "a"], "patch NAME JSON"),
                (["list", "--kind", "manged"], "did you mean managed?"),
                (["list", "--state", "xxxxxxxx"], "one of: active idle"),
                (["list", "--dry-run"], "agents register"),
                (["enlist"], "did you mean list?")):
            with self.subTest(args=args):
                self.env["SIGNALBOX_TOKEN"] = "sbx_" + "x" * 43
                self.assertIn(words, self.bad(USAGE, "agents", *args))


class Look(Agents):
    def setUp(self):
        super().setUp()
        self.box = self.server(agents=[])
        self.register(EXAMPLES)

    def test_the_list(self):
        lines = self.good("agents").splitlines()
        self.assertEqual(lines[0].split(), ["NAME", "SKILLS", "VISIBILITY",
                                            "STATE", "DESCRIPTION"])
        self.assertEqual([x.split()[:4] for x in lines[1:3]],
                         [["docs", "3", "public", "IDLE"],
                          ["engineer", "3", "public", "IDLE"]])
        self.assertEqual(self.names(), NAMES)

    def test_filters(self):
        self.put("a.json", card("mine", visibility="private"))
        self.box.call("POST", "/api/users", {"name": "anna", "role": "user",
                                             "org": "acme"})
        anna = self.box.call("POST", "/api/tokens",
                             {"user": "anna"}).json()["token"]
        self.register("a.json", env={"SIGNALBOX_TOKEN": anna})
        for args, names in (
                (["--tag", "Code"], ["engineer", "translate"]),
                (["--org", "acme"], ["mine"]),
                (["--creator", "anna"], ["mine"]),
                (["--kind", "Managed"], ["mine"]),
                (["--visibility", "private"], ["mine"]),
                (["--state", "idle", "--tag", "code"],
                 ["engineer", "translate"]),
                (["--state", "dead"], []),
                (["--limit", "2"], ["docs", "engineer"])):
            with self.subTest(args=args):
                self.assertEqual(self.names(*args), names)
        self.assertEqual(self.good("agents", "--state", "dead"),
                         "No agent matches.\n")

    def test_one_of_them(self):
        out = self.good("agents", "show", "ENGINEER")
        for words in ("engineer  IDLE\n  Writes, repairs", "  url           "
                      "echo:\n", "  provider      organization examples\n",
                      "\nSkills\n  debug  Debugging  (price 0.015 per call)\n"
                      "    Finds out",
                      "    tags        code, bugs\n",
                      "    examples    why does this segfault\n"
                      "                the tests pass here",
                      "\nRouting\n  keywords      code, debug, refactor,",
                      "  system prompt\n    You are a software engineer."):
            self.assertIn(words, out)
        self.assertEqual(self.lines("agents", "show", "engineer")[0]["url"],
                         "echo:")
        long = ["word%03d-" % i + "x" * 50 for i in range(128)]
        self.put("long.json", card("long", routing={
            "keywords": long}, skills=[{"id": "s", "name": "S"}]))
        self.register("long.json")
        self.assertIn("keywords      word000-xxx", out := self.good(
            "agents", "show", "long"))
        self.assertTrue(out.splitlines()[-1].endswith(".."), out)
        self.assertIn('did you mean "engineer"?',
                      self.bad(REFUSED, "agents", "show", "enginer"))

    def test_some_fields_are_changed(self):
        def patch(*args, **more):
            return self.good("agents", "patch", "docs", *args, **more)

        self.assertEqual(patch('{"version": "2", "title": null}'),
                         "updated     docs\n")
        self.assertEqual(patch("-", stdin=b'{"version": "2" /* so */}'),
                         "unchanged   docs\n")
        self.assertEqual(self.lines("agents", "show", "docs")[0]["version"],
                         "2")
        for text, words in (('{"url": "x"}', "JSON:1:9: /url "),
                            ("[1", "JSON:1:3: "),
                            ('[{}, {}]', "one object"),
                            ("5", "JSON:1:1: a card is an object")):
            status, out, err = self.run_it("agents", "patch", "docs", text)
            self.assertEqual(status, USAGE)
            self.assertIn(words, out + err)
        self.assertEqual(self.run_it("agents", "patch", "none", "{}")[0],
                         REFUSED)

    def test_it_goes(self):
        self.assertEqual(self.good("agents", "remove", "ops"),
                         "ops is removed\n")
        self.bad(REFUSED, "agents", "remove", "ops")
        self.assertEqual(self.lines("agents", "remove", "docs"),
                         [{"name": "docs", "removed": True}])
        self.assertNotIn("ops", self.names())


class Search(Agents):
    @classmethod
    def setUpClass(cls):
        cls.box = Server(agents=[])

    @classmethod
    def tearDownClass(cls):
        cls.box.stop()

    def setUp(self):
        super().setUp()
        self.use(self.box)
        self.register(EXAMPLES)

    def search(self, *args, **more):
        return self.good("search", *args, **more)

    def found(self, *args, **more):
        return [a["name"] for a in self.lines("search", *args, **more)]

    def test_the_layout_in_a_pipe(self):
        lines = self.search("the", "program", "crashes", "--limit",
                            "2").splitlines()
        self.assertRegex(lines[0], r"^#  AGENT +SKILL +SCORE  SEMANTIC  TEXT"
                                   r"   DESCRIPTION$")
        self.assertEqual(len(lines), 3)
        self.assertRegex(lines[1], r"^1  engineer +debug +0\.\d{3}  [#.]{5}   "
                                   r"  [#.]{5}  Writes, repairs and reviews "
                                   r"software in C, Python, Go and "
                                   r"JavaScript\.$")
        self.assertTrue(lines[2].startswith("2  "))

    def test_the_score_is_made_of_its_parts(self):
        out = self.search("why does it crash", "--explain")
        self.assertIn("\nscore = 0.7 x semantic + 0.3 x text\n", out)
        part = re.search(r"^ +debug +(\S+)  (\S+) +(\S+)  Finds out", out,
                         re.M)
        score, semantic, text = map(float, part.groups())
        self.assertAlmostEqual(score, 0.7 * semantic + 0.3 * text, places=2)
        self.assertIn("\nscore = text\n", self.search(
            "crash", "--explain", "--mode", "text"))
        self.assertIn("(rrf)", self.search("crash", "--explain", "--fusion",
                                           "rrf"))

    def test_long_names_break_no_line(self):
        self.put("a.json", card("the-keeper-with-a-name-of-many-columns-here",
                                description="Knows zebras", skills=[
                                    {"id": "keeping-of-zebras-in-numbers-here",
                                     "name": "x", "description": "zebras"}]))
        self.register("a.json")
        self.addCleanup(self.good, "agents", "remove",
                        "the-keeper-with-a-name-of-many-columns-here")
        self.env["NO_COLOR"] = "1"
        for columns in (60, 80, 120):
            for args in (["search", "zebras", "--explain"], ["agents"]):
                with self.subTest(columns=columns, args=args):
                    out = self.on_terminal(*args, columns=columns)[1]
                    self.assertIn("the-keeper", out)
                    for line in out.replace(NOTICE, "").splitlines():
                        self.assertLessEqual(len(line), columns, line)

    def test_a_query_from_standard_input(self):
        self.assertEqual(self.found("-", "--limit", "1",
                                    stdin=b"book a\nflight to Lisbon\n"),
                         ["travel"])
        for stdin, status, words in (
                (b" \n", USAGE, "a query is missing"),
                (b"\xff", USAGE, "UTF-8"),
                (b"x" * 16385, REFUSED, "16 KiB"),
                (b"x" * 100_000, REFUSED, "16 KiB")):
            self.assertIn(words, self.bad(status, "search", "-", stdin=stdin))
        self.search("-", stdin=b"word " * 3276)
        self.search("\U0001f600\U0001f680")
        self.assertIn("a query is missing", self.bad(USAGE, "search"))

    def test_filters(self):
        self.assertEqual(self.found("translate", "--tag", "code", "--limit",
                                    "1"), ["translate"])
        for a in self.lines("search", "code", "--max-price", "0.01"):
            for s in a["skills"]:
                self.assertLessEqual(s.get("pricing", {}).get(
                    "amount_micros", 0), 10000)
        for a in self.lines("search", "code", "--min-score", "0.2"):
            self.assertGreaterEqual(a["score"], 0.2)
        self.assertEqual(self.found("code", "--state", "dead"), [])
        self.assertEqual(self.found("code", "--org", "missing"), [])

    def test_nothing_found_says_what_to_do(self):
        self.assertIn("agents register", self.search(
            "xyzzy", "--mode", "text"))
        self.assertIn("without --tag", self.search("x", "--tag", "none"))

    def test_by_words_alone_it_says_so(self):
        server = self.server(agents=[], config={"embed": {
            "kind": "http", "http": {"url": "http://127.0.0.1:1/v1/embeddings",
                                     "model": "none"}}})
        self.register(EXAMPLES)
        status, out, err = self.run_it("search", "flight")
        self.assertEqual(status, OK)
        self.assertIn("travel", out)
        self.assertTrue(err.startswith("signalbox search: note: "), err)
        self.assertNotIn("note", out)
        status, out, err = self.run_it("search", "flight", "--json")
        self.assertEqual(list(json.loads(err)), ["note"])
        server.stop()

    def test_on_terminals(self):
        for columns in (60, 80, 120):
            with self.subTest(columns=columns):
                status, out = self.on_terminal("search", "translate a letter",
                                               columns=columns)
                self.assertEqual(status, OK)
                self.assertIn("\x1b[36m▇", out)
                self.assertRegex(out, "\x1b\\[1m[Tt]ranslat\\w+\x1b\\[0m")
                plain = re.sub("\x1b\\[[0-9;]*m", "", out)
                for line in plain.splitlines():
                    self.assertLessEqual(len(line), columns)
        self.env["NO_COLOR"] = "1"
        out = self.on_terminal("search", "translate")[1]
        self.assertNotIn("\x1b", out)
        self.assertIn("▇", out)

    def test_nothing_in_a_card_steers_a_terminal(self):
        r = self.box.call("PATCH", "/api/agents/ops", {
            "description": "tab\there\nand \u0627\u0644 below, pirate"})
        self.assertEqual(r.status, 200)
        status, out = self.on_terminal("search", "pirate \x1b[31m\u202e",
                                       columns=160)
        self.assertEqual(status, OK)
        self.assertIn("tab here and \u0627\u0644 below, \x1b[1mpirate", out)
        for c in ("\t", "\u202e", "\x1b[31m"):
            self.assertNotIn(c, out)
        self.assertIn("here\n  and \u0627\u0644 below", self.on_terminal(
            "agents", "show", "ops", columns=160)[1])

    def test_wrong_use(self):
        for args, words in (
                (["--limit", "101"], "from 1 to 100"),
                (["--mode", "hibrid"], "did you mean hybrid?"),
                (["--fusion", "x"], "one of: weighted rrf"),
                (["--order", "fair"], "one of: spread plain"),
                (["--state", "idel"], "did you mean idle?"),
                (["--max-price", "-1"], "like 0.05"),
                (["--max-price", "free"], "like 0.05"),
                (["--min-score", "2"], "from 0 to 1"),
                (["--min-score", "-0.1"], "from 0 to 1"),
                (["--min-score", "1e"], "from 0 to 1"),
                (["--min-score", "0.4x"], "from 0 to 1"),
                (["--min-score", ".5"], "from 0 to 1"),
                (["--min-score", "1e400"], "from 0 to 1"),
                (["--min-score", "[0.4]"], "from 0 to 1")):
            with self.subTest(args=args):
                self.assertIn(words, self.bad(USAGE, "search", "x", *args))

    def test_who_may_not_see_does_not_find(self):
        anna = {"SIGNALBOX_TOKEN": self.box.user("anna")}
        ben = {"SIGNALBOX_TOKEN": self.box.user("ben")}
        self.put("a.json", card("secret", visibility="private",
                                description="Knows everything of zebras"))
        self.register("a.json", env=anna)
        self.assertEqual(self.found("zebras", "--mode", "text", env=anna),
                         ["secret"])
        self.assertEqual(self.found("zebras", "--mode", "text", env=ben), [])


class Hostile(Agents):
    """A server that has cards no Signalbox would take."""
    # What a terminal would obey: escapes, C1, bells, CR and BS, overrides,
    # isolates and marks of direction.
    BAD = ("\x1b[31m", "\x1b]0;title\x07", "\x9b2J", "\r", "\b", "\x7f",
           "\u202e", "\u2066", "\u200f", "\u2069", "\x00")

    def setUp(self):
        super().setUp()
        test = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                body = json.dumps(test.answer).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.env["SIGNALBOX_URL"] = f"http://127.0.0.1:{server.server_port}"
        self.env["SIGNALBOX_TOKEN"] = "sbx_" + "x" * 43

    def card(self, bad):
        ugly = "good" + bad + "end"
        skill = {"id": ugly, "name": ugly, "description": ugly, "score": .4,
                 "semantic": .5, "text": .1, "tags": [ugly],
                 "examples": [ugly], "pricing": {"type": ugly,
                                                 "amount_micros": 5}}
        return {"name": ugly, "title": ugly, "description": ugly, "url": ugly,
                "version": ugly, "state": ugly, "visibility": ugly,
                "kind": ugly, "org": ugly, "creator_id": ugly,
                "provider": {"organization": ugly, "url": ugly},
                "best_skill_id": ugly, "score": .4, "semantic": .5, "text": .1,
                "skills": [skill], "routing": {"keywords": [ugly],
                                               "system_prompt": ugly}}

    def test_nothing_that_it_says_steers_a_terminal(self):
        self.env["NO_COLOR"] = "1"
        for bad in self.BAD:
            one = self.card(bad)
            many = {"agents": [one], "items": [one], "total": 1, "mode": "hybrid",
                    "note": "note" + bad, "formula": {"fusion": bad,
                                                      "semantic": .7,
                                                      "text": .3}}
            for value, args in (
                    (many, ["search", "x", "--explain"]),
                    (many, ["search", "x", "--json"]),
                    (many, ["agents", "list"]),
                    (many, ["agents", "list", "--json"]),
                    (one, ["agents", "show", "x"]),
                    (one, ["agents", "show", "x", "--json"])):
                with self.subTest(bad=bad, args=args):
                    self.answer = value
                    status, out = self.on_terminal(*args, columns=200)
                    self.assertEqual(status, OK, out)
                    self.assertIn("good", out)
                    self.assertNotIn(bad, out)
                    self.assertIsNone(re.search(
                        "[\x00-\x09\x0b-\x1f\x7f-\x9f]", out.replace(
                            NOTICE, "")), ascii(out))

    def test_a_table_that_does_not_fit_is_told(self):
        agent = {"name": "a", "description": "d" * 512, "score": .4}
        self.answer = {"agents": [agent] * 30000}
        status, out, err = self.run_it("search", "x")
        self.assertEqual((status, out, err),
                         (FAILED, "", "signalbox: out of memory\n"))

    def test_what_is_no_answer(self):
        for value in (None, 5, [], {}, {"agents": 5}, {"agents": [5, None]},
                      {"name": 5, "skills": {"id": 5}, "routing": []}):
            for args in (["search", "x", "--explain"], ["agents", "list"],
                         ["agents", "show", "x"]):
                with self.subTest(value=value, args=args):
                    self.answer = value
                    self.assertIn(self.run_it(*args)[0],
                                  (OK, FAILED, UNREACHABLE))


class Grants(Agents):
    def test_given_used_and_taken_back(self):
        server = self.server(agents=[])
        anna = {"SIGNALBOX_TOKEN": server.user("anna")}
        ben = {"SIGNALBOX_TOKEN": server.user("ben", org="acme")}
        self.put("a.json", card("tool", visibility="shared"))
        self.register("a.json", env=anna)
        self.bad(REFUSED, "agents", "show", "tool", env=ben)
        self.assertIn("No grants.", self.good("grants", env=anna))
        out = self.good("grants", "add", "tool", "--user", "ben", "--expires",
                        "7d", env=anna)
        self.assertRegex(out, r"^tool is visible to user ben until \d{4}-.*: "
                              r"grant_[0-9a-z]{26}\n$")
        self.good("agents", "show", "tool", env=ben)
        self.bad(NOT_ALLOWED, "grants", "list", "--agent", "tool", env=ben)
        made, = self.lines("grants", "add", "tool", "--org", "acme", env=anna)
        self.assertEqual((made["org"], made["expires_ms"]), ("acme", None))
        lines = self.good("grants", "list", "--agent", "tool",
                          env=anna).splitlines()
        self.assertEqual(lines[0].split(), ["ID", "AGENT", "FOR", "EXPIRES",
                                            "AGE", "BY"])
        self.assertEqual(sorted(x.split()[1:5] for x in lines[1:]),
                         [["tool", "org", "acme", "never"],
                          ["tool", "user", "ben", "7d"]])
        for g in self.lines("grants", env=anna):
            self.assertEqual(self.good("grants", "remove", g["id"], env=anna),
                             f"{g['id']} is removed\n")
        self.bad(REFUSED, "agents", "show", "tool", env=ben)
        self.bad(REFUSED, "grants", "remove", made["id"], env=anna)

    def test_what_it_changes_is_said(self):
        server = self.server(agents=[])
        anna = {"SIGNALBOX_TOKEN": server.user("anna")}
        server.user("ben")
        for visibility, words in (("private", "when it is shared"),
                                  ("public", "everybody sees it"),
                                  ("shared", None)):
            self.put("a.json", card(visibility, visibility=visibility))
            self.register("a.json", env=anna)
            out = self.good("grants", "add", visibility, "--user", "ben",
                            env=anna)
            self.assertEqual(len(out.splitlines()), 2 if words else 1)
            self.assertIn(words or "is visible to user ben", out)

    def test_wrong_use(self):
        self.env["SIGNALBOX_TOKEN"] = "sbx_" + "x" * 43
        for args, words in (
                (["add"], "add AGENT"),
                (["add", "a"], "--user NAME or --org"),
                (["add", "a", "--user", "u", "--org", "o"], "only one of"),
                (["poet"], "grants --agent poet"),
                (["lst"], "did you mean list?"),
                (["add", "a", "--user", "u", "--expires", "99999w"],
                 "from 1 to 9999"),
                (["add", "a", "--user", "u", "--expires", "7"], "12h, 7d"),
                (["remove", "x"], "begins with grant_"),
                (["list", "--user", "u"], "grants add")):
            with self.subTest(args=args):
                self.assertIn(words, self.bad(USAGE, "grants", *args))


if __name__ == "__main__":
    unittest.main()
