"""The sessions of the pages, run as they stand. test/lib/doc_stage.py says on
what, and test/lib/doc_pages.py what an example may leave out."""
import os
import re
import unittest

import doc_pages
from doc_pages import Page
from doc_stage import Stage, Wrong
from signalbox import Server

# There with a certificate.
ONLY_WITH = {"signalbox_tls_certificate_expires_timestamp_seconds"}
PAGES = [Page(path) for path in doc_pages.paths()]


def stages(page):
    """(stage, blocks): those that are run on the same one, in their order. What
    is not run is passed over, and ends no stage."""
    runs = []
    for block in page.blocks:
        if not is_run(block.stage) or (
                block.file is None and not block.is_session):
            continue
        if not runs or runs[-1][0] != block.stage:
            runs.append((block.stage, []))
        runs[-1][1].append(block)
    return runs


def is_run(stage):
    return stage and not stage.startswith("not")


def run_stage(kind, blocks):
    stage = Stage(kind)
    try:
        for block in blocks:
            if block.file:
                with open(os.path.join(stage.folder, block.file), "w",
                          encoding="utf-8") as f:
                    f.write(block.text)
        for block in blocks:
            run_block(stage, block)
    finally:
        stage.close()


def run_block(stage, block):
    for command in block.before:
        status, said = stage.shell(stage.here(command))
        if status != "0":
            raise Wrong(f"{block}: before it, {command}: {said}")
    if block.file:
        return
    for line, command, expected in block.steps():
        try:
            stage.step(command, expected)
        except Wrong as e:
            raise Wrong(f"{block.page}:{line}: $ {command}\n{e}") from None


class Sessions(unittest.TestCase):
    """One test for each page, made below."""


def add_test(page, kind, blocks):
    name = f"test_{page.path}_{blocks[0].line}"
    setattr(Sessions, name, lambda self: run_stage(kind, blocks))


for PAGE in PAGES:
    for KIND, BLOCKS in stages(PAGE):
        add_test(PAGE, KIND, BLOCKS)


class Figures(unittest.TestCase):
    def test_every_figure_that_is_named_is_in_metrics(self):
        with Server("--set", "traces.endpoint=http://127.0.0.1:1/v1/traces"
                    ) as server:
            text = server.get("/metrics").body.decode()
        known = set(re.findall(r"(?m)^# HELP (\S+)", text)) | ONLY_WITH
        wrong = [x for p in PAGES for x in doc_pages.wrong_metrics(p, known)]
        self.assertEqual(wrong, [])
        self.assertEqual(doc_pages.wrong_metrics(
            Page("p.md", "`signalbox_tasks`, `signalbox_task`,\n"
                         "`signalbox_store_*` and `signalbox_stor_*`\n"),
            known), ["p.md:1: there is no figure signalbox_task",
                     "p.md:2: there is no figure signalbox_stor_*"])


class Rules(unittest.TestCase):
    def test_every_session_says_how_it_is_run_or_why_not(self):
        wrong = [str(b) for p in PAGES for b in p.blocks if b.is_session and
                 not is_run(b.stage) and not b.stage.startswith("not, ")]
        self.assertEqual(wrong, [])

    def run_page(self, text):
        for kind, blocks in stages(Page("planted.md", text)):
            run_stage(kind, blocks)

    def test_what_a_page_says_wrongly_is_found(self):
        good = ("<!-- run: alone -->\n```\n$ echo one two; false\none two\n"
                "$ printf 'task_%026d 12:00:01 3s\\n' 7\n"
                "task_01m7gra9pc8nz3bg8cbyfkxjzq 06:42:37 11s\n"
                "$ echo task_01m7gra9pc8nz3bg8cbyfkxjzq again\n"
                "task_01m7gra9pc8nz3bg8cbyfkxjzq again\n"
                "$ seq 5\n1\n…\n5\n$ echo '{\"a\":[1,2],\"created_ms\":7}'\n"
                "{\"a\":[1,\n  …],\"created_ms\":9}\n```\n")
        self.run_page(good)
        for a, b in (("\none two", "\none three"), ("\n5\n", "\n6\n"),
                     ("[1,\n", "[2,\n"), ("06:42:37", "noon"),
                     ("created_ms\":9", "updated_ms\":9"),
                     ("$ echo task_0", "$ echo task_1"),
                     ("echo one two; false", "true"),
                     ("$ seq 5\n1\n…\n5\n", "$ false\n"),
                     ("run: alone", "run: nowhere")):
            self.assertIn(a, good)
            with self.assertRaises(Wrong, msg=b):
                self.run_page(good.replace(a, b))

    def test_a_server_of_the_page(self):
        good = ("<!-- run: server -->\n```\n"
                "$ curl -s http://127.0.0.1:8787/healthz\n"
                "{\"status\":\"ok\",\"version\":…,\"uptime_ms\":5}\n"
                "$ signalbox users create anna\nanna is created, with role "
                "user\n```\n")
        self.run_page(good)
        for a, b in (("healthz", "healthy"), ("role user\n", "role admin\n")):
            with self.assertRaises(Wrong, msg=b):
                self.run_page(good.replace(a, b))


if __name__ == "__main__":
    unittest.main()
