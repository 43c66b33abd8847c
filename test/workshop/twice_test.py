"""tools/twice.py sees what a merge left standing twice, and nothing else. What
it says of the pages that there are is lint's to ask; here a repetition is
planted in each of them, and it must see every one."""
import os
import subprocess
import tempfile
import unittest

import doc_pages

SOURCE = os.environ["SIGNALBOX_SOURCE"]
TWICE = os.path.join(SOURCE, "tools", "twice.py")

LONG = ("The user at the top of that chain pays, and where there is none the "
        "agent's creator; no one else is ever asked.")
POINT = ("- A model remembers nothing, so it is told what was said before in "
         "the conversation, the newest first.")


def twice(pages):
    """What it says of pages by their names, and its exit status."""
    with tempfile.TemporaryDirectory() as root:
        for name, text in pages.items():
            path = os.path.join(root, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
        run = subprocess.run([TWICE, root], stdout=subprocess.PIPE, text=True,
                             check=False)
    return run.stdout, run.returncode


def page(*blocks):
    return {"a.md": "\n\n".join(blocks) + "\n"}


def table(*rows):
    return "\n".join(("| refused with | when |", "| --- | --- |", *rows))


class Seen(unittest.TestCase):
    def seen(self, pages, where, what):
        out, status = twice(pages)
        self.assertEqual(status, 1)
        self.assertTrue(out.startswith(f"{where}: this {what} is in "), out)
        self.assertEqual(len(out.splitlines()), 1, out)

    def test_a_paragraph_however_it_is_wrapped(self):
        self.seen(page("# One", LONG, "Between.", LONG.replace(", ", ",\n")),
                  "a.md:7", "paragraph")

    def test_a_point_of_a_list(self):
        self.seen(page(f"{POINT}\n- Another.\n{POINT}"), "a.md:3",
                  "paragraph")

    def test_a_paragraph_of_another_page(self):
        self.seen({"README.md": LONG, "docs/b.md": "# B\n\n" + LONG},
                  "docs/b.md:3", "paragraph")

    def test_a_paragraph_that_was_broken_off_and_begun_again(self):
        self.seen(page("First of all.\n" + LONG + " More of it\nis\n" + LONG +
                       " Less of it."), "a.md:4", "run of words")

    def test_a_sentence(self):
        self.seen(page("First of all.\n" + LONG, "More of it.\n" + LONG),
                  "a.md:5", "sentence")

    def test_a_row(self):
        self.seen(page(table("| `x` | 1 |", "| `y` | 2 |", "|  `x` | 1 |")),
                  "a.md:5", "row")

    def test_a_row_that_goes_on_otherwise(self):
        self.seen(page(table(
            "| `too_many` | as many are open as may be, or the agent is slow |",
            "| `too_many` | as many are open as may be |")), "a.md:4", "row")


class NotSeen(unittest.TestCase):
    def test_what_may_repeat(self):
        self.assertEqual(twice({
            **page("Example:", "Example:", "```\n" + LONG + "\n```",
                   "```\n" + LONG + "\n\n" + LONG + "\n```",
                   "<!-- " + LONG + "\n" + LONG + " -->", LONG,
                   table("| `x` | 1 |", "| `y` | 1 |", "| | 1 |"),
                   table("| `x` | 1 |", "| `refund` | an admin pays it back |",
                         "| `refund` | an admin takes it back |")),
            "build/copy.md": LONG, "x/node_modules/y.md": LONG}), ("", 0))


class Pages(unittest.TestCase):
    """The negative control: it reads our pages, all of them and to the end."""

    def test_what_is_planted_in_any_page_is_seen(self):
        names = list(doc_pages.paths())
        self.assertIn("README.md", names)
        for name in names:
            with open(os.path.join(SOURCE, name), encoding="utf-8") as f:
                text = f.read()
            with self.subTest(name):
                before, _ = twice({name: text})
                whole = text.rstrip() + "\n\n" + LONG + "\n\n" + LONG + "\n"
                after, status = twice({name: whole})
                n = len(whole.splitlines())
                self.assertEqual((after.removeprefix(before), status), (
                    f"{name}:{n}: this paragraph is in line {n - 2} already: "
                    f"{LONG[:60]}\n", 1))


if __name__ == "__main__":
    unittest.main()
