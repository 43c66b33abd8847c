"""Delegations of the JavaScript client, beside a hub that is a script, and with
the real server."""
import os
import shutil
import tempfile
import unittest

from sdk_cases import SOURCE
from sdk_delegation_cases import DelegationCases, Planted
from sdk_hiring_cases import HiringCases

NODE = shutil.which("node") or "node"
CLIENT = os.path.join(SOURCE, "client/js")
DRIVER = os.path.join(SOURCE, "test/peers/sdk_driver.mjs")
WS = os.path.join(SOURCE, "test/peers/node_modules/ws/wrapper.mjs")

BOOKED = "    this.#pending.set(d.id, d);\n"
SENDS = "while (this.#pending.get(d.id) === d) {"
ANSWERED = "onAnswer: (answer) => d.onAccepted(answer) };"
TOO_LATE = """onAnswer: (answer) => {
        this.#pending.set(d.id, d);
        d.onAccepted(answer);
      } };"""


class JavaScript(DelegationCases, unittest.TestCase):
    command = [NODE, DRIVER]
    can_reset = True


class JavaScriptHires(HiringCases, unittest.TestCase):
    command = JavaScript.command
    can_reset = True


@unittest.skipUnless(os.path.exists(WS), "npm's ws is not installed")
class BrowserHires(HiringCases, unittest.TestCase):
    """With a WebSocket, and a fetch, that are not ours."""
    command = JavaScript.command
    env = {"WS_PACKAGE": WS}
    for name in [n for n in dir(HiringCases) if n.startswith("test_")]:
        if name not in ("test_work_is_given_and_comes_back",
                        "test_the_tools_for_models"):
            locals()[name] = None


class Mistaken(DelegationCases, Planted, unittest.TestCase):
    """A client that books a delegation when it is accepted."""
    command = [NODE, DRIVER]
    for name in [n for n in dir(DelegationCases) if n.startswith("test_")]:
        locals()[name] = None

    def setUp(self):
        super().setUp()
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        copy = os.path.join(folder, "js")
        shutil.copytree(CLIENT, copy)
        path = os.path.join(copy, "delegate.js")
        with open(path, encoding="utf-8") as f:
            text = f.read()
        for right, wrong in (BOOKED, ""), (SENDS, "for (;;) {"), \
                (ANSWERED, TOO_LATE):
            self.assertEqual(text.count(right), 1)
            text = text.replace(right, wrong)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        self.env = {"SDK_JS": os.path.join(copy, "signalbox.js")}
