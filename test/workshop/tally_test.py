"""tools/tally.py adds up what test programs say, and believes no silence."""
import json
import os
import subprocess
import tempfile
import unittest

TALLY = os.path.join(os.environ["SIGNALBOX_SOURCE"], "tools", "tally.py")


def tally(*tests):
    """Output and exit status for a log of (result, stdout) pairs."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as log:
        for result, out in tests:
            log.write(json.dumps({"name": "x", "result": result,
                                  "returncode": int(result != "OK"),
                                  "stdout": out}) + "\n")
        log.flush()
        run = subprocess.run([TALLY, log.name], stdout=subprocess.PIPE,
                             text=True, check=False)
    return run.stdout, run.returncode


class Tally(unittest.TestCase):
    def test_sums(self):
        self.assertEqual(
            tally(("OK", "3 passed, 0 failed\n"),
                  ("OK", "4 passed, 0 failed, 1 skipped\n")),
            ("7 passed, 0 failed, 1 skipped\n", 0))

    def test_failures_are_shown_and_red(self):
        out, status = tally(("FAIL", "why\n3 passed, 2 failed\n"))
        self.assertIn("why\n", out)
        self.assertEqual(out.splitlines()[-1], "3 passed, 2 failed")
        self.assertEqual(status, 1)

    def test_the_last_closing_line_counts(self):
        self.assertEqual(
            tally(("OK", "9 passed, 9 failed\nmore\n1 passed, 0 failed\n")),
            ("1 passed, 0 failed\n", 0))

    def test_no_closing_line_is_one_failure(self):
        for out in "", "fine\n", "passed, failed\n":
            said, status = tally(("OK", out))
            self.assertEqual(said.splitlines()[-1], "0 passed, 1 failed")
            self.assertEqual(status, 1)

    def test_a_bad_end_is_one_failure(self):
        out, status = tally(("TIMEOUT", "3 passed, 0 failed\n"))
        self.assertEqual(out.splitlines()[-1], "3 passed, 1 failed")
        self.assertEqual(status, 1)

    def test_no_test_and_no_log_are_red(self):
        self.assertEqual(tally(), ("0 passed, 0 failed\n", 1))
        run = subprocess.run([TALLY, "/nonexistent/log"], text=True,
                             stdout=subprocess.PIPE, check=False)
        self.assertEqual(run.stdout.splitlines()[-1], "0 passed, 1 failed")
        self.assertEqual(run.returncode, 1)
