"""Every page: its links lead somewhere, its JSON is JSON, and no command or
option is named that does not exist. test/lib/doc_pages.py has the rules."""
import itertools
import os
import re
import subprocess
import tempfile
import unittest

import doc_pages
from doc_pages import BIN, Page

PAGES = {path: Page(path) for path in doc_pages.paths()}
KNOWN = doc_pages.commands()
# Of script/bootstrap, of train_table and of pi.
FOREIGN = {"--build-only", "--all", "--any-texts", "--extension"}
# Made when the example runs.
MADE = {"examples/em/data/agent-feed.jsonl"}
# Fields of cards, of what eval prints, of a client; written with a point.
FIELDS = {"routing.routable", "routing.learning", "routing.capture",
          "hub.closed", "ledger.topup", "ledger.refund", "ledger.payout"}
SECTIONS = ("priorities", "duplicates", "superseding", "safety_gates",
            "escalations", "dependencies", "freshness", "capacity")


def all_of(check):
    return [x for page in PAGES.values() for x in check(page)]


class Docs(unittest.TestCase):
    def test_all_pages_are_looked_at(self):
        for path in ("README.md", "CONTRIBUTING.md", "client/README.md",
                     "docs/protocol.md", "docs/operations.md",
                     "examples/em/README.md", "bench/README.md"):
            self.assertIn(path, PAGES)
        self.assertGreater(sum(1 for p in PAGES.values()
                               for _ in p.links()), 80)
        self.assertGreater(sum(1 for p in PAGES.values()
                               for _ in doc_pages.calls_of(p)), 200)

    def test_every_link_leads_to_a_file_and_a_heading(self):
        self.assertEqual(all_of(lambda p: doc_pages.wrong_links(p, PAGES)), [])

    def test_every_file_that_is_named_is_there(self):
        wrong = [x for x in all_of(doc_pages.wrong_paths)
                 if x.split("no ")[-1] not in MADE]
        self.assertEqual(wrong, [])

    def test_all_json_is_json(self):
        self.assertEqual(all_of(doc_pages.wrong_json), [])

    def test_every_call_is_one_that_the_commands_take(self):
        self.assertEqual(all_of(lambda p: doc_pages.wrong_calls(p, KNOWN)), [])
        self.assertEqual(all_of(lambda p: doc_pages.wrong_options(
            p, KNOWN, FOREIGN)), [])

    def test_every_call_goes_through_the_real_parser(self):
        """With --help a command line is taken apart, and nothing is done."""
        tried = set()
        for page in PAGES.values():
            for line, words, is_whole in doc_pages.calls_of(page):
                if not is_whole or tuple(words) in tried:
                    continue
                tried.add(tuple(words))
                run = subprocess.run([BIN, *words, "--help"], check=False,
                                     stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, text=True)
                self.assertEqual((run.returncode, run.stderr), (0, ""),
                                 f"{page.path}:{line}: {words}")
        self.assertGreater(len(tried), 50)

    def test_every_setting_that_is_named_is_one(self):
        source = set()
        for folder, _, names in itertools.chain.from_iterable(
                os.walk(os.path.join(doc_pages.SOURCE, top))
                for top in ("src", "cli", "lab")):
            for name in names:
                with open(os.path.join(folder, name), encoding="utf-8",
                          errors="replace") as f:
                    source.update(re.findall(r"[a-z]+(?:\.[a-zA-Z_]+)+",
                                             f.read()))
        known = doc_pages.settings()
        wrong = all_of(lambda p: doc_pages.wrong_settings(p, known, source))
        self.assertEqual([x for x in wrong if x.split(" ")[-1] not in FIELDS],
                         [])
        planted = Page("p.md", "`http.maxHeads` and `http.maxHeaders`\n")
        self.assertEqual(doc_pages.wrong_settings(planted, known, source),
                         ["p.md:1: there is no setting http.maxHeads"])

    def test_the_first_messages_are_those_that_the_playground_suggests(self):
        with open(os.path.join(doc_pages.SOURCE, "web/pages/playground.js"),
                  encoding="utf-8") as f:
            said = re.search(r"SUGGESTED = \[(.*?)\];", f.read(), re.S)[1]
        self.assertEqual(re.findall(r"'([^']+)'", said),
                         re.findall(r"(?m)^- \*(.+?)\*",
                                    PAGES["README.md"].text))

    def test_every_configuration_is_one(self):
        """What a page says to put into signalbox.jsonc: the server finds no
        setting wrong, whatever files are missing here."""
        n = 0
        for page in PAGES.values():
            for block in page.blocks:
                for text in doc_pages.configurations(block.text) \
                        if block.kind == "jsonc" else ():
                    self.configure(block, text)
                    n += 1
        self.assertGreater(n, 9)

    def test_every_rule_is_one(self):
        """What docs/rules.md shows stands in some section of a file of
        rules."""
        blocks = [x for x in PAGES["docs/rules.md"].blocks if x.kind == "json"]
        self.assertGreater(len(blocks), 1)
        for block in blocks:
            self.assertIn(0, [self.ruled(section, block.text)
                              for section in SECTIONS], str(block))
            self.assertNotIn(0, [self.ruled(x, block.text.replace(
                '"rule"', '"rul"')) for x in SECTIONS])

    def ruled(self, section, text):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "rules.json")
            with open(path, "w", encoding="utf-8") as f:
                f.write(f'{{"agents": {{"Jay": {{}}, "Z": {{}}, "Rick": {{}}}},'
                        f'"{section}": [{text}]}}')
            return subprocess.run(
                [BIN, "gate", "--rules", path, "-"], text=True, check=False,
                input='{"from": "a", "to": "b", "type": "X"}',
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL).returncode

    def configure(self, block, text):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "signalbox.jsonc"), "w",
                      encoding="utf-8") as f:
                f.write(text)
            run = subprocess.run([BIN, "check"], cwd=folder, check=False,
                                 env={"PATH": "/usr/bin:/bin", "HOME": folder,
                                      "OPENAI_API_KEY": "x"}, text=True,
                                 stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
        wrong = [x for x in (run.stdout + run.stderr).splitlines()
                 if x.startswith("signalbox.jsonc:")
                 and ": warning: " not in x
                 and not x.endswith(": No such file or directory")]
        self.assertEqual(wrong, [], str(block))


PLANTED = """# One

See [there](README.md#no-such-heading), [nowhere](docs/nope.md),
[up](../etc/passwd), `src/nope.c`, `--no-such`, `signalbox sned`,
`signalbox ledger buy` and `signalbox ledger check --note x`.

```json
{"a": 1, …, "b": [1, …], "c": …, "d": {…}} {"e": "…"}
```

```json
{"a": 1 "b"}
```

```
$ build/signalbox send "hello" --too echo | cat
$ build/signalbox tasks --limit
```

## One
"""


class Planted(unittest.TestCase):
    """What is wrong is found, and said with its line."""

    page = Page("docs/planted.md", PLANTED)

    def test_links(self):
        wrong = doc_pages.wrong_links(
            Page("planted.md", PLANTED), PAGES)
        self.assertEqual(wrong, [
            "planted.md:3: no heading is README.md#no-such-heading",
            "planted.md:3: there is no docs/nope.md",
            "planted.md:4: there is no ../etc/passwd"])
        self.assertEqual(self.page.anchors, {"one", "one-1"})

    def test_files(self):
        self.assertEqual(doc_pages.wrong_paths(self.page),
                         ["docs/planted.md:4: there is no src/nope.c"])

    def test_json(self):
        wrong, = doc_pages.wrong_json(self.page)
        self.assertTrue(wrong.startswith("docs/planted.md:11: "), wrong)
        self.assertEqual(doc_pages.values_of(self.page.blocks[0].text),
                         [{"a": 1, "…": "…", "b": [1, "…"], "c": "…",
                           "d": {"…": "…"}}, {"e": "…"}])

    def test_commands(self):
        self.assertEqual(doc_pages.wrong_calls(self.page, KNOWN), [
            "docs/planted.md:16: send has no option --too: "
            "send hello --too echo",
            "docs/planted.md:17: --limit wants a value: tasks --limit",
            "docs/planted.md:4: there is no command sned: sned",
            "docs/planted.md:5: ledger has no buy: ledger buy",
            "docs/planted.md:5: --note is not for ledger check: "
            "ledger check --note x"])
        self.assertEqual(doc_pages.wrong_options(self.page, KNOWN, FOREIGN),
                         ["docs/planted.md:4: nothing has --no-such"])


if __name__ == "__main__":
    unittest.main()
