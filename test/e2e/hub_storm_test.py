"""The storm of storm_test.py over the hub: agents drop their connections at
any step, abruptly and cleanly, and the server is killed as well. No task is
lost, none has two results, the one that was acknowledged is the one that is
kept, and those of a conversation keep their order.

STRESS=full sends 100 000 tasks.
"""
import os
import unittest

import signalbox
from hub_storm import SETTINGS, Crew, HubSender, result_faults
from storm import Phoenix, Sender, Storm, faults

IS_FULL = os.environ.get("STRESS") == "full"
N_TASKS = 100000 if IS_FULL else 2048
KILL_EVERY = 5000 if IS_FULL else 400
NAMES = ["gull", "tern", "petrel", "skua"]
KINDS = Sender, HubSender
STEPS = {"connected", "registering", "given", "working", "chunk", "answered"}
QUIET = ("--set", "log.level=error", *SETTINGS)
# The agents are there by their names before they have come for the first time.
AGENTS = [{"id": name} for name in NAMES]


def weather(n_tasks, kills_at_results=0, **options):
    """A whole storm: storm, crew, tasks and feed. One in so many results that
    are acknowledged kills the server."""
    with Phoenix(*QUIET, agents=AGENTS) as phoenix, \
            Crew(phoenix, NAMES, seed=options.get("seed", 1)) as crew:
        storm = Storm(phoenix, NAMES, n_tasks, kinds=KINDS, **options)
        if kills_at_results:
            crew.on_recorded = lambda: storm.random.randrange(
                kills_at_results) or storm.kill_at_once()
        storm.is_ahead = lambda: crew.is_behind(storm.sent)
        storm.run()
        crew.on_recorded = lambda: None
        phoenix.all_over()
        if crew.mistakes:
            raise AssertionError("; ".join(crew.mistakes[:5]))
        return storm, crew, *phoenix.story()


class HubStorm(unittest.TestCase):
    def test_none_lost_none_with_two_results_order_kept(self):
        storm, crew, tasks, feed = weather(N_TASKS, KILL_EVERY,
                                           kill_every=KILL_EVERY)
        print(f"{len(tasks)} tasks, {storm.phoenix.n_kills} kills, "
              f"{crew.n_drops} connections dropped ({dict(crew.steps)}), "
              f"{storm.n_retries} sent again, {crew.n_late} results late, "
              f"{dict(crew.refused)} refused")
        self.assertEqual(len(storm.sent), N_TASKS)
        self.assertEqual(len(tasks), N_TASKS)
        self.assertEqual(faults(storm.sent, tasks, feed), [])
        self.assertEqual(result_faults(crew, tasks), [])
        # It was a storm: tasks were carried more than once, and results came
        # for those that were over.
        self.assertGreater(storm.phoenix.n_kills, 2)
        self.assertGreater(crew.n_drops, N_TASKS // 40)
        self.assertEqual(set(crew.steps), STEPS)
        self.assertGreater(sum(t["attempt"] > 1 for t in tasks), 50)
        self.assertGreater(crew.n_late, 10)
        self.every_planted_fault_is_seen(crew, tasks)

    def every_planted_fault_is_seen(self, crew, tasks):
        """The checker, given stories that are wrong in one way each."""
        for what, numbers in {"two results": ["1", "2"],
                              "acknowledged and not kept": ["0"]}.items():
            with self.subTest(what):
                before = crew.recorded[tasks[0]["id"]]
                crew.recorded[tasks[0]["id"]] = numbers
                self.assertIn(what, "; ".join(result_faults(crew, tasks)))
                crew.recorded[tasks[0]["id"]] = before


class Control(unittest.TestCase):
    def test_acknowledging_results_before_the_commit_is_seen(self):
        """Some task is then done twice, and both are said to be kept."""
        before = signalbox.BINARY
        signalbox.BINARY = os.environ["SIGNALBOX_FAULTY"]
        self.addCleanup(setattr, signalbox, "BINARY", before)
        found = ""
        for seed in range(1, 11):
            _, crew, tasks, _ = weather(512, kills_at_results=50, seed=seed,
                                        kill_every=1000)
            found = "; ".join(result_faults(crew, tasks))
            if "two results" in found:
                return
        self.fail(f"it was never found: {found}")
