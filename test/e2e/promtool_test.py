"""Prometheus can read what the server says about itself."""
import shutil
import subprocess
import unittest

from signalbox import Server, request

PROMTOOL = shutil.which("promtool", path="/usr/bin:/usr/local/bin:/bin")


def judge(text):
    """What promtool says: exit status and its remarks."""
    run = subprocess.run([PROMTOOL, "check", "metrics"], input=text,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         check=False)
    return run.returncode, run.stdout.decode()


class Promtool(unittest.TestCase):
    def test_metrics_are_accepted(self):
        with Server() as server:
            with server.connect() as peer:
                peer.send(request("GET", "/no-such-path", host=server.host))
                self.assertEqual(peer.response().status, 404)
                peer.send(b"nonsense\r\n\r\n")
                self.assertEqual(peer.response().status, 400)
            answer = server.get("/metrics")
        self.assertEqual(answer.status, 200)
        self.assertTrue(answer.headers["content-type"].startswith(
            "text/plain; version=0.0.4"), answer.headers)
        self.assertTrue(answer.body.endswith(b"\n"))
        self.assertEqual(judge(answer.body), (0, ""))

    def test_promtool_is_awake(self):
        status, said = judge(b"x 1\nx 2\ny{ 3\n")
        self.assertNotEqual((status, said), (0, ""))
