"""Whatever was acknowledged survives a power cut, in whatever state that left
the disk.

The program runs under a recorder of its writes and syncs (test/crash); from
that record thousands of images are made of what the disk could hold at some
moment, and each is opened and compared with what had been acknowledged by
then. Three controls show that a loss would be seen: a weaker setting of the
database, syncs that do nothing, and acknowledgements that come too early.
"""
import json
import os
import shutil
import subprocess
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor

import signalbox
from signalbox import DEADLINE_S, ECHO
from storm import Phoenix

RECORDER = os.environ["CRASH_RECORDER"]
DRIVER = os.environ["CRASH_DRIVER"]
IMAGES = os.environ["CRASH_IMAGES"]
IS_FULL = os.environ.get("STRESS") == "full"
N_TXS = 6000 if IS_FULL else 800
N_IMAGES = 50000 if IS_FULL else 1200
N_CONTROL = 500
N_MESSAGES = 900 if IS_FULL else 300
SENDERS = 8


class Recorded:
    """A folder whose changes are recorded, and the images made of them."""

    def __init__(self, test, syncs="yes"):
        self.root = os.path.realpath(tempfile.mkdtemp(prefix="signalbox-test-"))
        test.addCleanup(shutil.rmtree, self.root, True)
        self.data = os.path.join(self.root, "data")
        self.log = os.path.join(self.root, "log")
        self.settings = [f"LD_PRELOAD={RECORDER}", f"RECORD_LOG={self.log}",
                         f"RECORD_FOLDER={self.data}", f"RECORD_SYNCS={syncs}"]

    def drive(self, *fault, n=N_TXS):
        """The store by itself, with many small txs."""
        subprocess.run(["env", *self.settings, DRIVER, self.data, str(n),
                        *fault], stdout=subprocess.DEVNULL, check=True,
                       timeout=20 * DEADLINE_S)

    def serve(self):
        """The whole server, with clients that send at the same time. It is
        killed half way, and recovers."""
        # A slower agent, so that acceptances and results come apart.
        agents = [*ECHO, {"id": "slow", "url": "echo:20"}]
        with Phoenix(data=self.data, agents=agents,
                     before=["env", *self.settings]) as phoenix:
            for first in (0, N_MESSAGES // 2):
                with ThreadPoolExecutor(SENDERS) as pool:
                    for sender in [pool.submit(send, phoenix.server, first + i)
                                   for i in range(SENDERS)]:
                        sender.result()
                phoenix.all_over()
                if first == 0:
                    phoenix.kill()
                    phoenix.rise()

    def images(self, check, n):
        """What was found, by kind, in n images."""
        run = subprocess.run([IMAGES, check, self.log, str(n), "1"],
                             stdout=subprocess.PIPE, check=False,
                             timeout=60 * DEADLINE_S)
        said = run.stdout.decode()
        print(said)
        if run.returncode not in (0, 1):
            raise AssertionError(f"exit status {run.returncode}: {said}")
        return json.loads(said.splitlines()[-1])


def send(server, sender):
    """One client after another would never meet a batch; this is one of
    several. Every third task is cancelled, every third waited for."""
    for i in range(sender, sender + N_MESSAGES // 2 - SENDERS, SENDERS):
        key = f"m-{i}"
        answer = server.send(key, to="echo" if i % 2 else "slow",
                             idempotency_key=key, conversation_id=f"c-{i % 20}",
                             wait_ms=0 if i % 3 else 10000)
        if answer.status not in (200, 202):
            raise AssertionError(answer)
        if i % 3 == 1:
            task = answer.json()["task_id"]
            server.call("POST", f"/api/tasks/{task}/cancel")


class TheStore(unittest.TestCase):
    def test_nothing_acknowledged_is_lost(self):
        recorded = Recorded(self)
        recorded.drive()
        found = recorded.images("driver", N_IMAGES)
        self.assertEqual(found["good"], N_IMAGES)
        # There was something to lose, or this would have shown nothing.
        self.assertGreater(found["ack_moments"], 100)
        self.assertGreater(found["of_unsynced"], N_IMAGES // 4)

    def test_a_first_start_may_be_cut_off_anywhere(self):
        recorded = Recorded(self)
        recorded.drive(n=4)
        self.assertEqual(recorded.images("driver", N_IMAGES)["good"], N_IMAGES)

    def test_a_weaker_setting_is_found_out(self):
        recorded = Recorded(self)
        recorded.drive("normal")
        self.assertGreater(recorded.images("driver", N_CONTROL)["lost"], 0)

    def test_syncs_that_do_nothing_are_found_out(self):
        recorded = Recorded(self, syncs="no")
        recorded.drive()
        found = recorded.images("driver", N_CONTROL)
        self.assertGreater(found["lost"], 0)
        self.assertGreater(found["damaged"] + found["not_opened"], 0)

    def test_an_early_acknowledgement_is_found_out(self):
        recorded = Recorded(self)
        recorded.drive("early")
        self.assertGreater(recorded.images("driver", N_CONTROL)["lost"], 0)


class TheServer(unittest.TestCase):
    def test_nothing_acknowledged_is_lost(self):
        recorded = Recorded(self)
        recorded.serve()
        found = recorded.images("server", N_IMAGES)
        self.assertEqual(found["good"], N_IMAGES)
        self.assertGreater(found["ack_moments"], 50)
        self.assertGreater(found["of_unsynced"], N_IMAGES // 4)

    def test_syncs_that_do_nothing_are_found_out(self):
        recorded = Recorded(self, syncs="no")
        recorded.serve()
        self.assertGreater(recorded.images("server", N_CONTROL)["lost"], 0)

    def test_an_early_acknowledgement_is_found_out(self):
        before = signalbox.BINARY
        signalbox.BINARY = os.environ["SIGNALBOX_FAULTY"]
        self.addCleanup(setattr, signalbox, "BINARY", before)
        recorded = Recorded(self)
        recorded.serve()
        self.assertGreater(recorded.images("server", N_CONTROL)["lost"], 0)
