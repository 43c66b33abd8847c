"""test/lib/run.py counts every test once and closes with the counts."""
import os
import subprocess
import sys
import tempfile
import unittest

RUN = os.path.join(os.environ["SIGNALBOX_SOURCE"], "test", "lib", "run.py")

HEAD = "import unittest\nclass C(unittest.TestCase):\n"
GOOD = "    def test_good(self): pass\n"
BAD = "    def test_bad(self): self.fail('oh no')\n"
SKIP = "    @unittest.skip('not here')\n    def test_skip(self): pass\n"
SUBS = ("    def test_subs(self):\n        for i in 1, 2, 3:\n"
        "            with self.subTest(i): self.assertEqual(i, 1)\n")
SETUP = "    @classmethod\n    def setUpClass(cls): raise OSError('no')\n"


def run(text, *args):
    with tempfile.NamedTemporaryFile("w", suffix="_test.py") as f:
        f.write(text)
        f.flush()
        done = subprocess.run([sys.executable, RUN, f.name, *args], text=True,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=False)
    return done.stdout, done.returncode


class Runner(unittest.TestCase):
    def assert_closes(self, text, line, status, *args):
        out, got = run(text, *args)
        self.assertEqual((out.splitlines()[-1:], got), ([line], status), out)
        return out

    def test_counts(self):
        out = self.assert_closes(HEAD + GOOD + BAD + SKIP,
                                 "1 passed, 1 failed, 1 skipped", 1)
        self.assertIn("oh no", out)
        self.assertIn("test_skip: not here", out)

    def test_all_good(self):
        self.assert_closes(HEAD + GOOD, "1 passed, 0 failed, 0 skipped", 0)

    def test_failed_subtests_are_one_failure(self):
        self.assert_closes(HEAD + SUBS, "0 passed, 1 failed, 0 skipped", 1)

    def test_filter(self):
        self.assert_closes(HEAD + GOOD + BAD, "1 passed, 0 failed, 0 skipped",
                           0, "good")

    def test_nothing_run_is_red(self):
        self.assert_closes(HEAD + GOOD, "0 passed, 0 failed, 0 skipped", 1,
                           "no such name")

    def test_a_failed_set_up_is_red(self):
        self.assert_closes(HEAD + SETUP + GOOD,
                           "0 passed, 1 failed, 0 skipped", 1)

    def test_a_file_that_does_not_load_says_nothing_and_is_red(self):
        out, status = run("import nothing_of_that_name\n")
        self.assertNotIn("passed", out)
        self.assertNotEqual(status, 0)
