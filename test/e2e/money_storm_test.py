"""Under a storm of kill -9, with prices, budgets, failures, cancels, duplicates
and users who want more than they have: no balance is ever below zero, all
entries come to zero, every completed turn is charged exactly once, and nothing
else is.

STRESS=full sends 100 000 messages.
"""
import contextlib
import os
import socket
import subprocess
import unittest

import signalbox
from money_storm import (MoneyStorm, agents, book_faults, read_books, settings)
from storm import Phoenix

IS_FULL = os.environ.get("STRESS") == "full"
N_TASKS = 100000 if IS_FULL else 2000
KILL_EVERY = 5000 if IS_FULL else 300


@contextlib.contextmanager
def closed_port():
    """A port that is someone's, who does not listen."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        yield s.getsockname()[1]


def checked(data):
    """What the program itself says of its books, without a server."""
    return subprocess.run(
        [signalbox.BINARY, "ledger", "check", "--offline", "--data", data],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env=signalbox.clean_environment(), check=False)


def weather(n_tasks, scale, **options):
    """A whole storm: what was sent, the books after it, and what the program
    says of them."""
    with closed_port() as port, \
            Phoenix(*settings(scale), agents=agents(port)) as phoenix:
        storm = MoneyStorm(phoenix, n_tasks, scale=scale, **options)
        storm.run()
        phoenix.all_over()
        phoenix.kill()
        return storm, read_books(phoenix.data), checked(phoenix.data)


class MoneyStormTest(unittest.TestCase):
    def test_every_completed_turn_is_charged_once_and_nothing_else(self):
        storm, books, said = weather(N_TASKS, N_TASKS / 2000,
                                     kill_every=KILL_EVERY)
        ends = [t.status for t in books.turns]
        print(f"{len(books.turns)} turns, {ends.count(9)} completed, "
              f"{ends.count(10)} failed, {ends.count(11)} cancelled, "
              f"{ends.count(12)} expired, {dict(storm.refused)} refused; "
              f"{storm.phoenix.n_kills} kills, {storm.n_retries} sent again; "
              f"{len(books.entries)} entries")
        self.assertEqual(book_faults(books, storm), [])
        self.assertEqual((said.returncode, said.stdout.split("\n")[0]),
                         (0, "The ledger is consistent."))
        # It was a storm, and every way to end was in it.
        self.assertGreater(storm.phoenix.n_kills, 3)
        self.assertGreater(storm.n_retries, storm.phoenix.n_kills)
        for status in (9, 10, 11, 12):
            self.assertGreater(ends.count(status), N_TASKS // 200)
        for why in ("insufficient_funds", "day", "conversation", "root"):
            self.assertGreater(storm.refused[why], 0, why)
        self.assertGreater(max(t.turn for t in books.turns), 1)


class Controls(unittest.TestCase):
    """A server with one mistake each; both who check see it."""

    def found_with(self, mistake):
        before = signalbox.BINARY
        signalbox.BINARY = os.environ["SIGNALBOX_PLANTED"]
        os.environ["PLANTED"] = mistake
        try:
            storm, books, said = weather(160, 0.1, kill_every=0)
        finally:
            signalbox.BINARY = before
            del os.environ["PLANTED"]
        self.assertEqual(said.returncode, 1, said.stdout)
        return "; ".join(book_faults(books, storm)) + said.stdout

    def test_a_balance_without_a_floor_is_seen(self):
        found = self.found_with("ledger.no_floor")
        self.assertIn("user:poor-1 below zero", found)
        self.assertIn("user:poor-1 is below zero", found)

    def test_a_second_capture_is_seen(self):
        found = self.found_with("ledger.capture_twice")
        self.assertIn("was charged", found)
        self.assertIn("it does not move the price", found)

    def test_a_release_after_the_capture_is_seen(self):
        found = self.found_with("ledger.release_after_capture")
        self.assertIn("was charged", found)
        self.assertIn("a turn that was captured already", found)
