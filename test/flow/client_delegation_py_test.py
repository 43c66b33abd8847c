"""Delegations of the Python client, beside a hub that is a script, and with
the real server."""
import os
import shutil
import sys
import tempfile
import unittest

from sdk_cases import SOURCE
from sdk_delegation_cases import DelegationCases, Planted
from sdk_hiring_cases import HiringCases

CLIENT = os.path.join(SOURCE, "client/python")
DRIVER = os.path.join(SOURCE, "test/peers/sdk_driver.py")

BOOKED = "        self.pending[d.id] = d\n"
SENDS = "while d.id in self.pending:"
ANSWERED = "on_answer=d._on_accepted)\n                return\n"
TOO_LATE = """on_answer=lambda answer: (
                                     self.pending.update({d.id: d}),
                                     d._on_accepted(answer)))
                return
"""


class Python(DelegationCases, unittest.TestCase):
    # -X dev: what is never awaited, or closed, is complained about.
    command = [sys.executable, "-X", "dev", DRIVER]
    can_reset = True
    env = {"PYTHONPATH": CLIENT, "PYTHONDONTWRITEBYTECODE": "1"}
    hook = "on_delegation_result"
    verbs = "hire", "hireplainly"


class PythonHires(HiringCases, unittest.TestCase):
    command = Python.command
    can_reset = True
    env = Python.env


class Mistaken(DelegationCases, Planted, unittest.TestCase):
    """A client that books a delegation when it is accepted."""
    command = Python.command
    for name in [n for n in dir(DelegationCases) if n.startswith("test_")]:
        locals()[name] = None

    def setUp(self):
        super().setUp()
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        with open(os.path.join(CLIENT, "signalbox.py"),
                  encoding="utf-8") as f:
            text = f.read()
        for right, wrong in (BOOKED, ""), (SENDS, "while True:"), \
                (ANSWERED, TOO_LATE):
            self.assertEqual(text.count(right), 1)
            text = text.replace(right, wrong)
        with open(os.path.join(folder, "signalbox.py"), "w",
                  encoding="utf-8") as f:
            f.write(text)
        self.env = {**Python.env, "PYTHONPATH": folder}
