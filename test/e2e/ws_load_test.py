"""Many WebSockets cost little while they are silent, and those who never read
cost what the limits say and disturb no one. Bytes are counted, never time.

STRESS=full opens 10 000 of the silent and 1 000 of the slow.
"""
import contextlib
import os
import resource
import select
import subprocess
import sys
import tempfile
import unittest

import ws_crowd
from ws_cases import text
from ws_peer import WsPeer, make_certificate
from ws_wire import PATIENCE_S, TEXT, masked

IS_FULL = os.environ.get("STRESS") == "full"
N_IDLE = 10000 if IS_FULL else 1000
N_IDLE_TLS = 10000 if IS_FULL else 250
N_SLOW = 1000 if IS_FULL else 300
IDLE_BYTES = 4096
IDLE_TLS_BYTES = 20 * 1024  # nearly all of it OpenSSL's; 15.4 KB were seen

# Of each slow reader may wait: the mark, and the message of 16 KiB that passed
# it, in a buffer that grows by doubling. Where all together have a limit: that, a
# quarter more, and a message for each that came in the same turn.
MAX_UNSENT = 64 * 1024
MARKED = "--max-unsent", str(MAX_UNSENT), "--max-buffered", str(1 << 30)
EACH_SLOW = 4 * MAX_UNSENT
ALL_SLOW = 4 << 20
ONE_SLOW = 64 * 1024
A_TURN = 64  # connections taken
HUGE = 1 << 40
CONTROL_BYTES = 1 << 30
SLACK = 4 << 20  # of the whole process
N_ECHOES, N_ECHO_MESSAGES = 20, 200 if IS_FULL else 80

# No one is to be thrown out for being silent or slow.
PATIENT = ("--timeout-ms", "3600000", "--write-timeout-ms", "3600000")


@contextlib.contextmanager
def crowd(peer, path, n, ca=None):
    """n clients that are there and silent for as long as this lasts."""
    where = peer.urls[1 if ca else 0].split("//")[1]
    command = [sys.executable, ws_crowd.__file__, where, path, str(n)]
    with subprocess.Popen(command + ([ca] if ca else []),
                          stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:
        try:
            ready, _, _ = select.select([process.stdout], [], [],
                                        10 * PATIENCE_S)
            line = process.stdout.readline() if ready else b""
            if line != b"open\n":
                raise AssertionError(f"no crowd of {n}: {line!r}")
            yield
        finally:
            process.stdin.close()
            process.wait(PATIENCE_S)


def echo_rounds(wires, n, between=lambda: None):
    """Each of them has n messages sent back, each in its turn."""
    for i in range(n):
        for k, wire in enumerate(wires):
            wire.send(masked(TEXT, b"%d of %d" % (i, k)))
        between()
        for k, wire in enumerate(wires):
            got = wire.event()
            if got != text(b"%d of %d" % (i, k)):
                raise AssertionError(f"no echo but {got}")


class Load(unittest.TestCase):
    def setUp(self):
        self.exit = contextlib.ExitStack()
        self.addCleanup(self.exit.close)

    def allow(self, n):
        if not ws_crowd.allow_files(n):
            limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
            self.skipTest(f"{n} connections need more than the {limit} files "
                          "that a process may have here")

    def idle(self, n, bound, certificate=None):
        self.allow(n)
        peer = self.exit.enter_context(WsPeer(*PATIENT,
                                              certificate=certificate))
        ca = certificate and certificate[0]
        with crowd(peer, "/echo", 1, ca):
            pass
        before = peer.resident_bytes()
        with crowd(peer, "/echo", n, ca):
            stats = peer.stats()
            each = (peer.resident_bytes() - before) / n
            print(f"{n} idle{' with TLS' if ca else ''}: {each:.0f} bytes of "
                  f"memory each, {stats['bufferedBytes'] / n:.0f} of them in "
                  "buffers")
            self.assertEqual(stats["websockets"], n)
            with peer.dial() as wire:
                echo_rounds([wire], 10)
            self.assertLess(each, bound)
            self.assertLess(stats["bufferedBytes"], n)
        peer.wait_for(lambda stats: stats["websockets"] == 0)

    def test_the_idle_cost_little(self):
        self.idle(N_IDLE, IDLE_BYTES)

    def test_the_idle_cost_little_with_tls(self):
        with tempfile.TemporaryDirectory() as folder:
            self.idle(N_IDLE_TLS, IDLE_TLS_BYTES, make_certificate(folder))

    def slow(self, n, bound, *limits, certificate=None):
        """n that never read, and others that do. What the slow ones hold."""
        self.allow(n)
        peer = self.exit.enter_context(WsPeer(*PATIENT, *limits,
                                              certificate=certificate))
        ca = certificate and certificate[0]
        wires = [self.exit.enter_context(peer.dial())
                 for _ in range(N_ECHOES)]
        echo_rounds(wires, 1)
        peer.stats()
        before, seen = peer.resident_bytes(), []

        def look():
            stats = peer.stats()
            seen.append(stats["unsentBytes"])
            self.assertLessEqual(stats["bufferedBytes"], bound)

        with crowd(peer, "/push", n, ca):
            echo_rounds(wires, N_ECHO_MESSAGES, look)
            # Nothing moves any more: they hold what they may hold.
            while len(set(seen[-10:])) > 1:
                echo_rounds(wires, 1, look)
            stats = peer.stats()
            peak = peer.resident_bytes("VmHWM") - before
            print(f"{n} slow{' with TLS' if ca else ''}: "
                  f"{stats['unsentBytes'] / n:.0f} bytes wait for each, "
                  f"{stats['bufferedBytes'] / n:.0f} in buffers, "
                  f"{peak / n:.0f} of memory at the most")
            self.assertEqual(stats["websockets"] + stats["refusedTotal"],
                             n + N_ECHOES)
            self.assertEqual(stats["timeoutsTotal"], 0)
            idle = n * (IDLE_TLS_BYTES if ca else IDLE_BYTES)
            self.assertLess(peak, bound + idle + SLACK)
        return stats

    def test_the_slow_hold_what_the_mark_says(self):
        stats = self.slow(N_SLOW, N_SLOW * EACH_SLOW, *MARKED)
        self.assertEqual(stats["refusedTotal"], 0)
        # They did come up to it, and the kernel took no more than half.
        self.assertGreater(stats["unsentBytes"], N_SLOW * MAX_UNSENT / 2)

    def test_the_slow_hold_what_the_mark_says_with_tls(self):
        with tempfile.TemporaryDirectory() as folder:
            self.slow(N_SLOW, N_SLOW * EACH_SLOW, *MARKED,
                      certificate=make_certificate(folder))

    def test_the_slow_hold_what_all_may_hold(self):
        """A quarter beyond that, who comes is turned away; those who came in
        the same turn have one piece each."""
        self.slow(N_SLOW, ALL_SLOW * 5 / 4 + A_TURN * ONE_SLOW,
                  "--max-unsent", str(HUGE), "--max-buffered", str(ALL_SLOW))

    def test_nothing_is_lost_at_a_mark_that_is_always_reached(self):
        peer = self.exit.enter_context(WsPeer("--max-unsent", "100"))
        wire = self.exit.enter_context(peer.dial())
        sent = [b"%d" % i + b"x" * (i % 997) for i in range(20000)]
        wire.send(b"".join(masked(TEXT, s) for s in sent))
        for i, one in enumerate(sent):
            self.assertEqual(wire.event(), text(one), i)

    def test_without_a_mark_the_bound_is_broken(self):
        """The control: what the other tests count can be too much."""
        n = 20
        bound = n * EACH_SLOW + SLACK

        def little_memory():
            resource.setrlimit(resource.RLIMIT_AS, (CONTROL_BYTES,) * 2)

        peer = self.exit.enter_context(WsPeer(
            *PATIENT, "--max-unsent", str(HUGE), "--max-buffered", str(HUGE),
            preexec_fn=little_memory))
        before = peer.resident_bytes()
        with crowd(peer, "/push", n):
            while (peak := peer.resident_bytes("VmHWM") - before) < bound:
                self.assertIsNone(peer.process.poll())
            print(f"{n} slow without a mark: {peak / n:.0f} bytes each")
            peer.kill()
