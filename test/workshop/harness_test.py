"""test/t.h turns red when a test goes wrong, whichever way."""
import os
import subprocess
import unittest

PLANTED = os.environ["PLANTED"]
SANITIZE = os.environ.get("SANITIZE", "none")


def planted(name, **env):
    """What the harness says about one planted test: output, exit status."""
    run = subprocess.run([PLANTED, name], env={**os.environ, **env},
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         text=True, check=False)
    return run.stdout, run.returncode


class Harness(unittest.TestCase):
    def assert_red(self, name, *says, **env):
        out, status = planted(name, **env)
        self.assertEqual(out.splitlines()[-1], "0 passed, 1 failed", out)
        self.assertEqual(status, 1)
        for text in (f"FAIL {name}: ", *says):
            self.assertIn(text, out)

    def test_a_good_test_passes(self):
        out, status = planted("passes")
        self.assertEqual((out, status), ("1 passed, 0 failed\n", 0))

    def test_no_test_at_all_is_red(self):
        out, status = planted("no such name")
        self.assertEqual((out, status), ("0 passed, 0 failed\n", 1))

    def test_a_failed_check_names_test_and_place(self):
        self.assert_red("check_fails", "check_fails: ", "planted_test.c:",
                        "1 + 1 == 3")

    def test_a_failed_check_shows_the_values(self):
        self.assert_red("check_int_fails", "1 + 1 is 2, not 3")
        self.assert_red("check_str_fails", 'is "abc", not "abd"')

    def test_a_crash_is_one_failure(self):
        self.assert_red("crashes")

    def test_a_hang_is_cut(self):
        self.assert_red("hangs_deaf", "over its limit of 1 s", T_LIMIT_S="1")

    def test_what_a_test_leaves_running_is_ended(self):
        out, status = planted("leaves_a_child")
        self.assertEqual((out, status), ("1 passed, 0 failed\n", 0))

    def test_an_exit_before_the_end_is_red(self):
        self.assert_red("exits_early", "ended before its end")

    def test_others_run_on_after_a_failure(self):
        out, _ = planted("", T_LIMIT_S="1")
        self.assertRegex(out.splitlines()[-1], r"^[2-5] passed, \d+ failed$")

    if "address" in SANITIZE:
        def test_a_leak_is_red(self):
            self.assert_red("leaks", "LeakSanitizer")

        def test_an_overrun_is_red(self):
            self.assert_red("overruns", "AddressSanitizer")

    if "undefined" in SANITIZE:
        def test_undefined_behaviour_is_red(self):
            self.assert_red("overflows", "signed integer overflow")
