"""Every row of docs/seeds.md has one check in this folder or names a test that
is run, and every check has a row."""
import os
import unittest

import seed_rows

SOURCE = os.environ["SIGNALBOX_SOURCE"]
BUILD = os.path.dirname(os.environ["SIGNALBOX_BIN"])
SEEDS = os.path.join(SOURCE, "test/seeds")
PAGE = seed_rows.read(os.path.join(SOURCE, "docs/seeds.md"))
CHECKS = {name: seed_rows.read(os.path.join(SEEDS, name))
          for name in os.listdir(SEEDS) if name.endswith("_test.py")}
TESTS = seed_rows.Tests(BUILD, SOURCE)

GOOD = """| id | the seed says | where | how to see it |
| --- | --- | --- | --- |
| 000-01 | a | b | `search_test.test_x` |
| 000-02 | a | b | a call |
"""
OF_GOOD = {"a_test.py": "def test_000_02_it_is_so(self): pass\n"}


class Rows(unittest.TestCase):
    def test_every_row_has_its_check_and_every_check_its_row(self):
        self.assertEqual(seed_rows.wrong(PAGE, CHECKS, TESTS.has), [])

    def test_there_are_as_many_as_there_should_be(self):
        of_seed = [0] * 5
        for id in seed_rows.rows(PAGE):
            of_seed[int(id[:3])] += 1
        self.assertGreater(sum(of_seed), 200)
        self.assertTrue(all(n > 30 for n in of_seed), of_seed)


class Controls(unittest.TestCase):
    """What does not fit is found."""

    @staticmethod
    def wrong(page=GOOD, sources=None, is_run=True):
        return seed_rows.wrong(page, sources or OF_GOOD,
                               lambda file, name: is_run)

    def test_what_fits_is_fine(self):
        self.assertEqual(self.wrong(), [])

    def test_a_row_without_a_check(self):
        self.assertEqual(self.wrong(GOOD + "| 000-03 | a | b | a page |\n"),
                         ["000-03: has no check"])

    def test_a_check_without_a_row(self):
        more = {**OF_GOOD, "b_test.py": "def test_000_09_x(self): pass\n"}
        self.assertEqual(self.wrong(sources=more),
                         ["000-09: has no row: b_test.py: test_000_09_x"])

    def test_a_row_with_two_checks(self):
        for name in ("test_000_01_x", "test_000_02_x"):
            more = {**OF_GOOD, "b_test.py": f"def {name}(self): pass\n"}
            self.assertEqual(self.wrong(sources=more),
                             [f"{name[5:8]}-{name[9:11]}: has 2 checks"])

    def test_a_row_twice_and_one_that_is_none(self):
        self.assertIn("000-02: is there 2 times",
                      self.wrong(GOOD + "| 000-02 | a | b | c |\n"))
        self.assertEqual(self.wrong(GOOD + "| 000-3 | a | b | c |\n"),
                         ["is no row: | 000-3 | a | b | c |"])
        self.assertEqual(
            self.wrong(GOOD.replace("| a | b | a call |", "| a | a call |")),
            ["000-02: must have a claim, a place and a way to see it"])

    def test_rows_that_are_out_of_order(self):
        head, first, second = GOOD.rsplit("\n", 3)[:3]
        self.assertEqual(self.wrong("\n".join((head, second, first))),
                         ["000-01: stands behind 000-02"])

    def test_a_seed_that_does_not_say_what_it_needs(self):
        self.assertEqual(self.wrong("## Seed 000: x\n\n" + GOOD),
                         ["000-01: nothing says what is needed before"])
        self.assertEqual(self.wrong("## Seed 000: x\n\n**Before you begin**: "
                                    "y\n\n" + GOOD), [])

    def test_a_cell_that_is_too_long(self):
        long = "x" * (seed_rows.CELL_MAX + 1)
        self.assertEqual(self.wrong(GOOD.replace("a call", long)),
                         ["000-02: 161 characters in one cell"])

    def test_a_test_that_is_not_run(self):
        self.assertEqual(self.wrong(is_run=False),
                         ["000-01: no test search_test.test_x is run"])

    def test_tests_are_found_where_they_are_and_nowhere_else(self):
        for file, name in (
                ("search_test", "test_an_explanation_adds_up"),
                ("semantic_test", "the_table_of_seed_001_to_three_decimals"),
                ("client_delegation_py_test",
                 "test_the_result_may_come_in_any_order")):
            self.assertTrue(TESTS.has(file, name), (file, name))
        for file, name in (("search_test", "test_no_such"),
                           ("semantic_test", "the_table_of_seed_001"),
                           ("no_such_test", "test_an_explanation_adds_up"),
                           ("search_test", "test_a_card_that_is_wrong")):
            self.assertFalse(TESTS.has(file, name), (file, name))


if __name__ == "__main__":
    unittest.main()
