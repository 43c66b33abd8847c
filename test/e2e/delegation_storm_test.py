"""Agents hire agents in two phases while those who ask and those who work drop
their connections at any step, and the server is killed: in the end each who
asked has exactly one result of each delegation, told again only until it was
acknowledged, and no id has become two tasks.

STRESS=full makes 200 000 delegations.
"""
import os
import unittest

import signalbox
from delegation_storm import (AGENTS, BOSSES, STEPS, Hirers, delegation_faults,
                              heard_faults)
from hiring import told
from hub_peer import Hub
from hub_storm import SETTINGS, result_faults
from storm import Phoenix

IS_FULL = os.environ.get("STRESS") == "full"
N = 200000 if IS_FULL else 1000
KILL_EVERY = 20000 if IS_FULL else 600
# Few go at once: most wait for their turn when a kill comes.
QUIET = ("--set", "log.level=error",
         "--set", "delegation.maxConcurrent=4", *SETTINGS)


def told_again(phoenix):
    """What each is told by a server that has only its disk."""
    phoenix.kill()
    phoenix.rise()
    found = []
    for name in BOSSES:
        with Hub(phoenix.server) as hub:
            hub.register(name)
            found += told(hub)
    return found


def weather(n, kill_every, **options):
    """A whole storm: the crew, all tasks, and what was told after it."""
    with Phoenix(*QUIET, agents=AGENTS) as phoenix:
        with Hirers(phoenix, n, kill_every, **options) as crew:
            crew.finish()
            phoenix.all_over()
        again = told_again(phoenix)
        return crew, phoenix.story()[0], again


class DelegationStorm(unittest.TestCase):
    def test_each_has_exactly_one_result_of_each(self):
        crew, tasks, again = weather(N, KILL_EVERY)
        n_told = sum(len(t) for t in crew.told.values())
        print(f"{N} delegations asked for {crew.n_asked} times, told {n_told} "
              f"times, {crew.n_acked_before} acknowledged before; "
              f"{crew.phoenix.n_kills} kills, {crew.n_drops} connections "
              f"dropped ({dict(crew.steps)}), {dict(crew.refused)} refused")
        self.assertEqual(len(tasks), N)
        self.assertEqual(delegation_faults(crew, tasks), [])
        self.assertEqual(result_faults(crew, tasks), [])
        self.assertEqual(again, [])
        # It was a storm: much was asked and told more than once.
        self.assertGreater(crew.phoenix.n_kills, 4)
        self.assertGreater(crew.n_drops, N // 10)
        self.assertLessEqual(STEPS, set(crew.steps))
        self.assertGreater(crew.n_asked, N + N // 20)
        self.assertGreater(n_told, N + N // 50)
        self.every_planted_fault_is_seen(crew, tasks)

    def every_planted_fault_is_seen(self, crew, tasks):
        """The checker, given stories that are wrong in one way each."""
        id, told = next(iter(crew.told.items()))
        other = (told[0][0], told[0][1], "0")
        for words, story in {"lost": None, "with two results": [*told, other],
                             "otherwise than it is kept": [other]}.items():
            with self.subTest(words):
                del crew.told[id]
                if story:
                    crew.told[id] = story
                self.assertIn(words, "; ".join(delegation_faults(crew, tasks)))
                crew.told[id] = told
        for words, story in {"done twice": [*tasks, tasks[0]],
                             "without a task": tasks[1:]}.items():
            with self.subTest(words):
                self.assertIn(words, "; ".join(delegation_faults(crew, story)))


class Controls(unittest.TestCase):
    """A server with one mistake each is seen through."""

    def found_with(self, binary, mistake, *words):
        """One of the words, by some storm; each ends when it is heard."""
        def is_found():
            found = "; ".join(heard_faults(crew))
            return any(w in found for w in words)
        before = signalbox.BINARY
        signalbox.BINARY = os.environ[binary]
        os.environ["PLANTED"] = mistake
        try:
            for seed in range(1, 11):
                with Phoenix(*QUIET, agents=AGENTS) as phoenix, \
                        Hirers(phoenix, 400, kill_every=60, again_rate=1,
                               seed=seed) as crew:
                    crew.finish(is_found)
                    if is_found():
                        return
        finally:
            signalbox.BINARY = before
            del os.environ["PLANTED"]
        self.fail(f"it was never found: {heard_faults(crew)}")

    def test_results_told_before_the_commit(self):
        """Some are lost by a kill, and another one is told."""
        self.found_with("SIGNALBOX_FAULTY", "", "with two results",
                        "told and not over")

    def test_acknowledgements_that_are_not_kept(self):
        self.found_with("SIGNALBOX_PLANTED", "hire.forgets_acks",
                        "told after the acknowledgement")

    def test_requests_that_are_not_known_again(self):
        self.found_with("SIGNALBOX_PLANTED", "hire.no_repeats",
                        "accepted as two tasks")
