"""Under a storm of kill -9 no task is lost, none is doubled, and those of a
conversation keep their order; anyone who does not know what became of a message
sends it again and starts nothing twice.

STRESS=full sends 100 000 tasks.
"""
import copy
import os
import unittest

import signalbox
from storm import Phoenix, Storm, faults

IS_FULL = os.environ.get("STRESS") == "full"
N_TASKS = 100000 if IS_FULL else 2048
KILL_EVERY = 2000 if IS_FULL else 120
AGENTS = [{"id": "echo", "url": "echo:"}, {"id": "slow", "url": "echo:3"}]
NAMES = [a["id"] for a in AGENTS]
QUIET = ("--set", "log.level=warn")


class KillStorm(unittest.TestCase):
    def test_none_lost_none_doubled_order_kept(self):
        with Phoenix(*QUIET, agents=AGENTS) as phoenix:
            storm = Storm(phoenix, NAMES, N_TASKS, kill_every=KILL_EVERY)
            storm.run()
            phoenix.all_over()
            tasks, feed = phoenix.story()
        print(f"{len(tasks)} tasks, {phoenix.n_kills} kills, "
              f"{storm.n_retries} sent again")
        self.assertEqual(len(storm.sent), N_TASKS)
        self.assertEqual(len(tasks), N_TASKS)
        self.assertEqual(faults(storm.sent, tasks, feed), [])
        # It was a storm: servers died with messages under way.
        self.assertGreater(phoenix.n_kills, 10)
        self.assertGreater(storm.n_retries, phoenix.n_kills)
        self.every_planted_fault_is_seen(storm.sent, tasks, feed)

    def every_planted_fault_is_seen(self, sent, tasks, feed):
        """The checker, given stories that are wrong in one way each."""
        end = max(i for i, e in enumerate(feed) if e["type"] in
                  ("task.completed",))
        of_one = [i for i, e in enumerate(feed) if e["type"] == "task.completed"
                  and e["conversation_id"] == feed[end]["conversation_id"]]
        swapped = copy.copy(feed)
        swapped[of_one[0]], swapped[of_one[1]] = (swapped[of_one[1]],
                                                  swapped[of_one[0]])
        unfinished = {**tasks[0], "status": "queued", "result": None}
        for what, story in {
                "lost": (tasks[1:], feed),
                "doubled": (tasks + [{**tasks[0], "id": "task_x"}], feed),
                "not completed": ([unfinished] + tasks[1:], feed),
                "ended": (tasks, feed + [feed[end]]),
                "carried out of order": (tasks, swapped)}.items():
            with self.subTest(what):
                self.assertIn(what, "; ".join(faults(sent, *story)))


class Controls(unittest.TestCase):
    def until_found(self, what, binary=None, **options):
        """Storms until the fault shows; each has many chances."""
        before = signalbox.BINARY
        if binary:
            signalbox.BINARY = binary
            self.addCleanup(setattr, signalbox, "BINARY", before)
        found = ""
        for seed in range(1, 11):
            with Phoenix(*QUIET, *options.pop("args", ()),
                         agents=AGENTS) as phoenix:
                storm = Storm(phoenix, NAMES, 1024, kill_every=60, seed=seed,
                              **options)
                storm.run()
                phoenix.all_over()
                found = "; ".join(faults(storm.sent, *phoenix.story()))
            if what in found:
                return
        self.fail(f"{what} was never found: {found}")

    def test_senders_without_keys_make_doubles(self):
        self.until_found("doubled", has_keys=False)

    def test_acknowledging_before_the_commit_loses_tasks(self):
        self.until_found("lost", binary=os.environ["SIGNALBOX_FAULTY"])
