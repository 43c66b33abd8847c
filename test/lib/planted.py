"""Controls: on a server with a mistake made on purpose a test must fail.

    class Control(unittest.TestCase):
        @needs_planted
        def test_a_server_that_forgets_the_chain(self):
            said = fails_with(self, "hire.no_chain", Loops().test_of_two)
            self.assertIn("delegation.maxDepth", said)
"""
import contextlib
import os
import unittest

import signalbox

needs_planted = unittest.skipUnless("SIGNALBOX_PLANTED" in os.environ,
                                    "needs a server with mistakes")


@contextlib.contextmanager
def planted(mistake):
    """Servers that are started meanwhile make this mistake."""
    before = signalbox.BINARY
    signalbox.BINARY = os.environ["SIGNALBOX_PLANTED"]
    os.environ["PLANTED"] = mistake
    try:
        yield
    finally:
        signalbox.BINARY = before
        del os.environ["PLANTED"]


def fails_with(case, mistake, test, *args):
    """What the test said of a server that makes this mistake."""
    with planted(mistake), case.assertRaises(Exception) as seen:
        test(*args)
    return f"{type(seen.exception).__name__}: {seen.exception}"
