"""Our WebSocket is strict, as a server and as a client, and the probe that
says so can tell one that is not."""
import unittest

import ws_answers
import ws_probe
from ws_cases import MAX_FRAME, MAX_MESSAGE, Ends
from ws_lenient import Lenient
from ws_peer import DIAL_ECHO, WsPeer

LIMITS = ("--max-frame", str(MAX_FRAME), "--max-message", str(MAX_MESSAGE))
SHORT_S = 0.5  # what is lenient is not waited for


def refusals(cases):
    """Cases of frames that must not be taken."""
    return [c for c in cases if ws_probe.is_framing(c)
            and isinstance(c.steps[-1], Ends)
            and c.steps[-1].code in (1002, 1007, 1009)]


class Probe(unittest.TestCase):
    def assert_clean(self, cases, found):
        print(f"{len(cases) - len(found)} of {len(cases)} cases")
        self.assertFalse(found, "\n".join(
            f"{name}: {wrong}" for name, wrong in found.items()))

    def assert_many(self, cases, n):
        self.assertEqual(len({c.name for c in cases}), len(cases))
        self.assertGreaterEqual(len(cases), n)

    def test_the_server(self):
        cases = ws_probe.server_cases()
        self.assert_many(cases, 800)
        with WsPeer(*LIMITS) as peer:
            self.assert_clean(cases, ws_probe.in_parallel(
                cases, lambda c: ws_probe.probe(peer.address, c)))
            peer.wait_for(lambda stats: stats["connections"] <= 1)

    def test_the_client(self):
        cases = ws_answers.client_cases()
        self.assert_many(cases, 700)
        seen = ws_answers.Seen()
        self.assert_clean(cases, ws_probe.in_parallel(
            cases, lambda c: ws_answers.probe_client(
                lambda url: [*DIAL_ECHO, url], c, seen=seen)))
        # Nobody can guess a key or a mask.
        self.assertEqual(len(set(seen.keys)), len(seen.keys))
        self.assertGreater(len(set(seen.masks)), len(seen.masks) * 0.999)

    def test_a_lenient_server_is_caught(self):
        cases = ws_probe.server_cases()
        with Lenient() as server:
            found = ws_probe.in_parallel(
                cases, lambda c: ws_probe.probe(server.server_address, c,
                                                SHORT_S), 32)
        must = refusals(cases)
        print(f"{len(found)} of {len(cases)} cases caught it, {len(must)} of "
              "them refusals")
        self.assertGreater(len(must), 400)
        self.assertEqual([c.name for c in must if c.name not in found], [])
        self.assertNotIn("handshake: as it should be", found)
        self.assertNotIn("length: text of 125", found)
