"""Prometheus can read what the server says about itself."""
import os
import re
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

    def test_the_alerts_of_the_examples(self):
        """They are rules, of figures that there are, with their labels."""
        path = os.path.join(os.environ["SIGNALBOX_SOURCE"],
                            "examples/operations/alerts.yml")
        run = subprocess.run([PROMTOOL, "check", "rules", path], check=False,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(run.returncode, 0, run.stdout)
        with open(path, encoding="utf-8") as f:
            named = set(re.findall(r"signalbox_[a-z_]+", f.read()))
        agents = [{"id": "open", "url": "echo:", "visibility": "public"}]
        with Server(agents=agents) as server:
            self.assertEqual(server.send("hi", to="open").status, 200)
            text = server.get("/metrics").body.decode()
        there = set(re.findall(r"(?m)^# HELP (\S+)", text))
        # That one is there with a certificate.
        there.add("signalbox_tls_certificate_expires_timestamp_seconds")
        self.assertEqual(named - there, set())
        for row in ('signalbox_agent_state{agent="open",state="',
                    'signalbox_agent_waiting{agent="open"} 0'):
            self.assertIn("\n" + row, text)

    def test_public_agents_have_figures_by_name(self):
        """And the others have none by which they could be told apart."""
        agents = [{"id": "open", "url": "echo:", "visibility": "public"},
                  {"id": "concealed", "url": "echo:", "visibility": "private"}]
        with Server(agents=agents) as server:
            # From its first task on, though no one has asked by then.
            for to in ("open", "concealed", "open"):
                self.assertEqual(server.send("hi", to=to).status, 200)
            text = server.get("/metrics").body
        self.assertEqual(judge(text), (0, ""))
        for line in (b'signalbox_agent_state{agent="open",state="ACTIVE"} 1',
                     b'signalbox_agent_completed_total{agent="open"} 2',
                     b'signalbox_agent_latency_seconds_count{agent="open"} 2',
                     b'signalbox_agent_latency_seconds_bucket'
                     b'{agent="open",le="+Inf"} 2',
                     b'signalbox_agent_in_flight{agent="other"} 0'):
            self.assertIn(line + b"\n", text)
        self.assertIn(b'signalbox_agent_completed_total{agent="other"} 1\n', text)
        self.assertNotIn(b"concealed", text)

    def test_promtool_is_awake(self):
        status, said = judge(b"x 1\nx 2\ny{ 3\n")
        self.assertNotEqual((status, said), (0, ""))
