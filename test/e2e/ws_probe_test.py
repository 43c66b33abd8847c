"""Our WebSocket is strict, as a server and as a client, and the probe that
says so can tell one that is not."""
import json
import unittest

import ws_answers
import ws_probe
from ws_cases import (BAD_TEXT, MAX_FRAME, MAX_MESSAGE, PROTOCOL, TOO_LARGE)
from ws_lenient import Lenient
from ws_peer import DIAL_ECHO, WsPeer

LIMITS = ("--max-frame", str(MAX_FRAME), "--max-message", str(MAX_MESSAGE))
SHORT_S = 0.5  # what is lenient is not waited for


def is_refusal(case):
    """Whether it has frames that must not be taken. (A close of 1002 that is
    only sent back is another object.)"""
    return case.steps and any(case.steps[-1] is end
                              for end in (PROTOCOL, BAD_TEXT, TOO_LARGE))


def wrong_end(case, status, said):
    """What the client says about its end, where that is not what happened."""
    events = [json.loads(line) for line in said.splitlines()]
    end = events[-1]
    is_open = {"event": "open", "protocol": ""} in events
    if is_refusal(case):
        is_right = end["isOurs"] and end["code"] == case.steps[-1].code
    elif isinstance(case, ws_answers.Answer) and not case.opens:
        is_right = not is_open and end["error"] and status != 0
    else:
        is_right = is_open and not end["isOurs"] and status == 0
    return None if is_right and end["event"] == "end" else (status, said)


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
        wrong = {c.name: wrong_end(c, *seen.ends[c.name]) for c in cases}
        self.assertEqual({n: w for n, w in wrong.items() if w}, {})
        # No one can guess a key or a mask.
        self.assertEqual(len(set(seen.keys)), len(seen.keys))
        self.assertGreater(len(set(seen.masks)), len(seen.masks) * 0.999)

    def test_the_client_does_not_wait_for_ever(self):
        for case in ws_answers.slow_answers():
            with self.subTest(case.name):
                self.assertIsNone(ws_answers.probe_client(
                    lambda url: [*DIAL_ECHO, "--timeout-ms", "300", url],
                    case))

    def test_a_lenient_server_is_caught(self):
        cases = ws_probe.server_cases()
        with Lenient() as server:
            found = ws_probe.in_parallel(
                cases, lambda c: ws_probe.probe(server.server_address, c,
                                                SHORT_S), 32)
        must = [c for c in cases if is_refusal(c)]
        print(f"{len(found)} of {len(cases)} cases caught it, {len(must)} of "
              "them refusals")
        self.assertGreater(len(must), 400)
        self.assertEqual([c.name for c in must if c.name not in found], [])
        self.assertNotIn("handshake: as it should be", found)
        self.assertNotIn("length: text of 125", found)
