"""The server as its owner sees it: start, reload, stop, and what it says."""
import json
import os
import signal
import subprocess
import tempfile
import time
import unittest

from signalbox import BINARY, DEADLINE_S, Server, clean_environment, request


def wait_until(holds, what):
    """Ask until it holds: for what happens beside us, in its own time."""
    end = time.monotonic() + DEADLINE_S
    while not holds():
        if time.monotonic() > end:
            raise AssertionError("in vain: " + what)
        time.sleep(0.01)


def metric(server, name):
    """The value of a sample without labels."""
    for line in server.get("/metrics").body.decode().splitlines():
        if line.startswith(name + " "):
            return float(line.split()[1])
    raise AssertionError("no metric " + name)


class Reload(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="signalbox-test-")
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "signalbox.jsonc")
        self.write('{ "http": { "maxBodyBytes": 10 } }')

    def write(self, text):
        """Replace the file in one step, as editors do."""
        with open(self.path + ".new", "w", encoding="utf-8") as f:
            f.write(text)
        os.rename(self.path + ".new", self.path)

    def limit_is(self, server, n):
        """Whether a body of n bytes is taken and one more is refused."""
        statuses = []
        for size in (n, n + 1):
            with server.connect() as peer:
                peer.send(request("POST", "/healthz", body=b"x" * size))
                statuses.append(peer.response().status)
        return statuses == [405, 413]

    def test_a_change_of_the_file_is_taken_over(self):
        with Server("--config", self.path) as server:
            self.assertTrue(self.limit_is(server, 10))
            self.write('{ "http": { "maxBodyBytes": 20 } }')
            wait_until(lambda: self.limit_is(server, 20), "a reload")
            with open(self.path, "w", encoding="utf-8") as f:
                f.write('{ "http": { "maxBodyBytes": 30 } }')
            wait_until(lambda: self.limit_is(server, 30), "a second reload")

    def test_a_hangup_reloads(self):
        with Server("--config", self.path) as server:
            server.process.send_signal(signal.SIGHUP)
            wait_until(lambda: metric(server, "signalbox_config_reloads_total")
                       >= 1, "a reload")

    def test_a_bad_file_never_replaces_a_good_one(self):
        with Server("--config", self.path) as server:
            self.write('{ "http": { "maxBodyBytes": 20, "maxBodyByte": 3 } }')
            wait_until(lambda: metric(
                server, "signalbox_config_reloads_failed_total") >= 1,
                "a reload that fails")
            self.assertTrue(self.limit_is(server, 10))
            self.assertEqual(metric(server, "signalbox_config_reloads_total"),
                             0)
            self.assertIn("signalbox.jsonc:1:33", server.said())
            self.assertIn("http.maxBodyBytes", server.said())
            self.write('{ "http": { "maxBodyBytes": 20 } }')
            wait_until(lambda: self.limit_is(server, 20), "the next good one")

    def test_a_file_that_vanishes_changes_nothing(self):
        with Server("--config", self.path) as server:
            os.rename(self.path, self.path + ".away")
            server.process.send_signal(signal.SIGHUP)
            wait_until(lambda: metric(
                server, "signalbox_config_reloads_failed_total") >= 1,
                "a reload that fails")
            self.assertTrue(self.limit_is(server, 10))

    def test_what_needs_a_restart_is_named(self):
        with Server("--config", self.path) as server:
            self.write('{ "allowPlaintext": true }')
            wait_until(lambda: "config.restart_needed" in server.said(),
                       "a word about it")
            self.assertIn("allowPlaintext", server.said())


class Stop(unittest.TestCase):
    def test_an_open_request_is_finished_first(self):
        """Half a request is there when the signal comes; the rest follows."""
        with Server() as server, server.connect() as peer:
            peer.send(b"POST /healthz HTTP/1.1\r\nHost: x\r\n"
                      b"Content-Length: 2\r\n\r\nx")
            wait_until(lambda: metric(server, "signalbox_http_connections")
                       >= 2, "both connections")
            server.process.send_signal(signal.SIGTERM)
            wait_until(lambda: "server.stopping" in server.said(), "the signal")
            peer.send(b"y")
            answer = peer.response()
            self.assertEqual(answer.status, 405)
            self.assertTrue(answer.closes)

    def test_a_second_signal_waits_for_nobody(self):
        with Server("--set", "stopGraceMs=600000") as server, \
                server.connect() as peer:
            peer.send(b"POST /healthz HTTP/1.1\r\nHost: x\r\n"
                      b"Content-Length: 2\r\n\r\nx")
            wait_until(lambda: metric(server, "signalbox_http_connections")
                       >= 2, "both connections")
            server.process.send_signal(signal.SIGTERM)
            wait_until(lambda: "server.stopping" in server.said(), "the signal")
            self.assertIsNone(server.process.poll())
            # leaving the block sends the second one and checks the status

    def test_ready_turns_to_stopping(self):
        with Server() as server, server.connect() as peer:
            half = request("GET", "/readyz")
            self.assertEqual(server.get("/readyz").json(), {"ready": True})
            peer.send(half[:10])
            wait_until(lambda: metric(server, "signalbox_http_connections")
                       >= 2, "both connections")
            server.process.send_signal(signal.SIGTERM)
            wait_until(lambda: "server.stopping" in server.said(), "the signal")
            peer.send(half[10:])
            answer = peer.response()
            self.assertEqual(answer.status, 503)
            self.assertEqual(answer.json()["error"]["code"], "stopping")


class Start(unittest.TestCase):
    def run_serve(self, *args):
        run = subprocess.run([BINARY, "serve", *args], timeout=DEADLINE_S,
                             stdin=subprocess.DEVNULL, capture_output=True,
                             env=clean_environment(), check=False)
        return run.returncode, run.stderr.decode()

    def test_a_folder_in_use_is_said_so_and_left_alone(self):
        with Server() as server:
            status, said = self.run_serve("--data", server.data,
                                          "--listen", "127.0.0.1:0")
            self.assertEqual(status, 3)
            self.assertIn(f"process {server.process.pid}", said)
            self.assertEqual(server.get("/healthz").status, 200)

    def test_a_port_in_use_is_said_so(self):
        with Server() as server, tempfile.TemporaryDirectory() as folder:
            status, said = self.run_serve("--data", folder, "--listen",
                                          server.url.removeprefix("http://"))
            self.assertEqual(status, 3)
            self.assertIn("--listen", said)
            self.assertEqual(server.get("/healthz").status, 200)

    def test_errors_are_json_where_scripts_listen(self):
        status, said = self.run_serve("--json", "--data", "/nowhere/at/all",
                                      "--listen", "127.0.0.1:0")
        self.assertEqual(status, 3)
        self.assertEqual(json.loads(said)["code"], "not_found")

    def test_listening_to_the_network_in_plain_text_needs_a_word(self):
        with tempfile.TemporaryDirectory() as folder:
            status, said = self.run_serve("--data", folder,
                                          "--listen", "0.0.0.0:0")
            self.assertEqual(status, 2)
            self.assertIn("allowPlaintext", said)
        with Server("--set", "allowPlaintext=true", listen="0.0.0.0:0") as s:
            self.assertEqual(s.get("/healthz").status, 200)

    def test_a_lock_left_behind_by_a_crash_locks_nobody_out(self):
        with tempfile.TemporaryDirectory() as folder:
            first = Server(data=folder)
            first.process.kill()
            first.process.wait()
            with Server(data=folder) as second:
                self.assertEqual(second.get("/healthz").status, 200)
            first.kill()
