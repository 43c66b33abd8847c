"""The server as its owner sees it: start, reload, stop, and what it says."""
import json
import os
import signal
import socket
import struct
import subprocess
import tempfile
import time
import unittest

from signalbox import (BINARY, DEADLINE_S, Server, clean_environment,
                       eventually, metric, refuses_to_start, request)


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

    def reloads(self, server):
        return metric(server, "signalbox_config_reloads_total")

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
            eventually(lambda: self.limit_is(server, 20), "a reload")
            with open(self.path, "w", encoding="utf-8") as f:
                f.write('{ "http": { "maxBodyBytes": 30 } }')
            eventually(lambda: self.limit_is(server, 30), "a second reload")

    def test_a_hangup_reloads(self):
        with Server("--config", self.path) as server:
            server.process.send_signal(signal.SIGHUP)
            eventually(lambda: metric(server, "signalbox_config_reloads_total")
                       >= 1, "a reload")

    def test_a_bad_file_never_replaces_a_good_one(self):
        with Server("--config", self.path) as server:
            self.write('{ "http": { "maxBodyBytes": 20, "maxBodyByte": 3 } }')
            eventually(lambda: metric(
                server, "signalbox_config_reloads_failed_total") >= 1,
                "a reload that fails")
            self.assertTrue(self.limit_is(server, 10))
            self.assertEqual(metric(server, "signalbox_config_reloads_total"),
                             0)
            self.assertIn("signalbox.jsonc:1:33", server.said())
            self.assertIn("http.maxBodyBytes", server.said())
            self.write('{ "http": { "maxBodyBytes": 20 } }')
            eventually(lambda: self.limit_is(server, 20), "the next good one")

    def test_a_file_that_vanishes_changes_nothing(self):
        with Server("--config", self.path) as server:
            os.rename(self.path, self.path + ".away")
            server.process.send_signal(signal.SIGHUP)
            eventually(lambda: metric(
                server, "signalbox_config_reloads_failed_total") >= 1,
                "a reload that fails")
            self.assertTrue(self.limit_is(server, 10))

    def test_what_needs_a_restart_is_named(self):
        """As against what runs: going back to that needs none."""
        with Server("--config", self.path) as server:
            for text, reloads, words in (
                    ('{ "allowPlaintext": true }', 1, 1),
                    ('{ "allowPlaintext": true, "http": {} }', 2, 2),
                    ('{ "allowPlaintext": false }', 3, 2)):
                self.write(text)
                eventually(lambda n=reloads: self.reloads(server) == n,
                           "a reload")
                self.assertEqual(server.said().count("config.restart_needed"),
                                 words)

    def test_a_file_that_comes_later_is_taken_over(self):
        """The first five minutes: start without one, then write one."""
        with Server() as server:
            path = os.path.join(server.folder, "signalbox.jsonc")
            with open(path, "w", encoding="utf-8") as f:
                f.write('{ "http": { "maxBodyBytes": 20 } }')
            eventually(lambda: self.limit_is(server, 20), "a reload")
            os.remove(path)
            server.process.send_signal(signal.SIGHUP)
            eventually(lambda: self.reloads(server) == 2, "the defaults")
            with open(path, "w", encoding="utf-8") as f:
                f.write('{ "http": { "maxBodyBytes": 30 } }')
            eventually(lambda: self.limit_is(server, 30), "another reload")

    def test_a_folder_that_is_never_quiet_does_not_delay_it(self):
        with Server("--config", self.path) as server, \
                open(self.path + ".log", "w", encoding="utf-8") as log:
            def changed_meanwhile():
                print("a line", file=log, flush=True)
                return self.limit_is(server, 20)
            self.write('{ "http": { "maxBodyBytes": 20 } }')
            eventually(changed_meanwhile, "a reload")

    def test_one_change_is_one_reload(self):
        with Server("--config", self.path) as server:
            self.write('{ "http": { "maxBodyBytes": 20 } }')
            server.process.send_signal(signal.SIGHUP)
            eventually(lambda: self.limit_is(server, 20), "the signal's")
            self.write('{ "http": { "maxBodyBytes": 30 } }')
            eventually(lambda: self.limit_is(server, 30), "the next change")
            self.assertEqual(self.reloads(server), 2)


POST = b"POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nxy"


class Stop(unittest.TestCase):
    def stop_within(self, server, peer, begun):
        """Begin a request and send the signal; return when both have come."""
        peer.send(begun)
        eventually(lambda: metric(server, "signalbox_http_connections") >= 2,
                   "both connections")
        server.process.send_signal(signal.SIGTERM)
        eventually(lambda: "server.stopping" in server.said(), "the signal")

    def test_an_open_request_is_finished_first(self):
        """Half a request is there when the signal comes; the rest follows."""
        with Server() as server, server.connect() as peer:
            self.stop_within(server, peer, POST[:-1])
            peer.send(POST[-1:])
            answer = peer.response()
            self.assertEqual(answer.status, 405)
            self.assertTrue(answer.closes)

    def test_a_second_signal_waits_for_nobody(self):
        with Server("--set", "stopGraceMs=600000") as server, \
                server.connect() as peer:
            self.stop_within(server, peer, POST[:-1])
            self.assertIsNone(server.process.poll())
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(server.process.wait(DEADLINE_S), 0)

    def test_ready_turns_to_stopping(self):
        with Server() as server, server.connect() as peer:
            half = request("GET", "/readyz")
            self.assertEqual(server.get("/readyz").json(), {"ready": True})
            self.stop_within(server, peer, half[:10])
            peer.send(half[10:])
            answer = peer.response()
            self.assertEqual(answer.status, 503)
            self.assertEqual(answer.json()["error"]["code"], "stopping")


def shell(*words):
    """Run a script before the server, in the shell that becomes it."""
    return ("sh", "-c", " ".join(words) + ' exec "$@"', "sh")


class Early(unittest.TestCase):
    """A signal may come at any moment of a start, which takes longer the more
    agents there are."""
    def end_of(self, signum, after_s):
        with tempfile.TemporaryDirectory(prefix="signalbox-test-") as folder:
            path = os.path.join(folder, "signalbox.jsonc")
            agents = [{"id": f"a{i}", "url": "echo:",
                       "description": "does many things with care " * 20}
                      for i in range(300)]
            with open(path, "w", encoding="utf-8") as f:
                json.dump({"listen": "127.0.0.1:0",
                           "agents": {"list": agents}}, f)
            server = subprocess.Popen(
                [BINARY, "serve", "--config", path, "--set",
                 "data=" + os.path.join(folder, "data")],
                env=clean_environment(), stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL)
            try:
                time.sleep(after_s)
                server.send_signal(signum)
                if signum != signal.SIGTERM:
                    time.sleep(after_s)
                    server.terminate()
                return server.wait(DEADLINE_S)
            finally:
                server.kill()
                server.wait()

    def test_it_ends_well_whenever_the_signal_comes(self):
        for signum in (signal.SIGTERM, signal.SIGHUP):
            for hundredths in (2, 4, 6, 9, 13, 18, 25):
                # Before its handlers are there, a signal kills it.
                self.assertIn(self.end_of(signum, hundredths / 100),
                              (0, -signal.SIGTERM, -signal.SIGHUP))


def catches(pid, signum):
    """Whether that process has a handler for the signal."""
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        mask = next(line for line in f if line.startswith("SigCgt:"))
    return int(mask.split()[1], 16) >> (signum - 1) & 1


class Start(unittest.TestCase):
    def test_a_closed_standard_file_is_replaced_by_nothing(self):
        """Or the next file that is opened gets what is printed."""
        for closed in "<&-", "2>&-", "<&- 2>&-":
            with self.subTest(closed), \
                    Server(before=shell(f"exec {closed};")) as server:
                self.assertEqual(server.get("/healthz").status, 200)
        with tempfile.TemporaryDirectory() as folder:
            lock = os.path.join(folder, "signalbox.lock")
            process = subprocess.Popen(
                [*shell("exec <&- >&- 2>&-;"), BINARY, "serve", "--data",
                 folder, "--listen", "127.0.0.1:0"], env=clean_environment())
            eventually(lambda: os.path.exists(lock) and os.path.getsize(lock),
                       "its start")
            eventually(lambda: catches(process.pid, signal.SIGTERM),
                       "its handlers")
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(DEADLINE_S), 0)
            with open(lock, encoding="utf-8") as f:
                self.assertEqual(f.read().strip(), f"{process.pid}")

    def test_a_ready_line_that_cannot_be_said_is_a_failure(self):
        with tempfile.TemporaryDirectory() as folder:
            status, said = refuses_to_start(
                "serve", "--json", "--data", folder, "--listen", "127.0.0.1:0",
                before=shell("exec >/dev/full;"))
            self.assertEqual(status, 1)
            self.assertIn("io_error", said)

    def test_too_few_descriptors_are_refused_with_words(self):
        with tempfile.TemporaryDirectory() as folder:
            for n in 5, 8, 20, 128:
                with self.subTest(n):
                    status, said = refuses_to_start(
                        "serve", "--data", folder, "--listen", "127.0.0.1:0",
                        before=shell(f"ulimit -n {n};"))
                    self.assertEqual(status, 5)
                    self.assertIn("ulimit -n", said)

    def test_few_descriptors_mean_fewer_connections(self):
        """Who is idle makes room; where all are at work, one too many is told
        so instead of waiting, except for health checks."""
        never = [{"id": "never", "url": "echo:3600000"}]
        with Server(before=shell("ulimit -n 133;"), agents=never) as server:
            held = [server.connect() for _ in range(5)]
            for peer in held:
                peer.send(request("GET", "/healthz"))
                self.assertEqual(peer.response().status, 200)
            self.assertEqual(server.get("/metrics").status, 200)
            self.assertGreater(metric(
                server, "signalbox_http_connections_evicted_total"), 0)
            for peer in held:
                peer.socket.close()
            eventually(lambda: metric(
                server, "signalbox_http_connections") == 1, "all have left")
            held = []
            for _ in range(5):
                held.append(server.connect())
                held[-1].send(server.request(
                    "POST", "/api/messages",
                    {"text": "x", "executor": {"name": "never"},
                     "wait_ms": 600000}))
            eventually(lambda: server.get("/metrics").status == 503, "all wait")
            self.assertEqual(server.get("/healthz").status, 200)
            for peer in held:
                peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                       struct.pack("ii", 1, 0))
                peer.socket.close()
            eventually(lambda: server.get("/metrics").status == 200, "room")

    def test_more_memory_promised_than_there_is_is_said(self):
        most = 64 << 30
        if os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") > 2 * most:
            self.skipTest("this machine has all that can be promised")
        with Server("--set", f"http.maxBufferedBytes={most}",
                    "--set", f"tasks.maxUnfinishedBytes={most}") as server:
            self.assertIn("server.little_memory", server.said())

    def test_a_limit_on_file_sizes_is_an_error_and_no_death(self):
        with tempfile.TemporaryDirectory() as folder:
            status, said = refuses_to_start(
                "serve", "--data", folder, "--listen", "127.0.0.1:0",
                before=shell("ulimit -f 0;"))
            self.assertEqual(status, 1)
            self.assertIn("data folder", said)

    def test_a_bad_configuration_is_named_and_nothing_else(self):
        status, said = refuses_to_start("serve", "--set", "htp.x=1")
        self.assertEqual(status, 2)
        self.assertEqual(len(said.splitlines()), 1)
        self.assertIn("unknown setting", said)

    def test_a_folder_in_use_is_said_so_and_left_alone(self):
        with Server() as server:
            status, said = refuses_to_start("serve", "--data", server.data,
                                          "--listen", "127.0.0.1:0")
            self.assertEqual(status, 3)
            self.assertIn(f"process {server.process.pid}", said)
            self.assertEqual(server.get("/healthz").status, 200)

    def test_deleting_the_lock_file_lets_no_second_server_in(self):
        with Server() as server:
            os.unlink(os.path.join(server.data, "signalbox.lock"))
            status, said = refuses_to_start("serve", "--data", server.data,
                                          "--listen", "127.0.0.1:0")
            self.assertEqual(status, 3)
            self.assertIn("in use by another signalbox", said)

    def assert_lost(self, folder, *args):
        """No server starts there by itself, however often it is tried."""
        before = sorted(os.listdir(folder))
        for _ in range(2):
            status, said = refuses_to_start("serve", "--data", folder,
                                            "--listen", "127.0.0.1:0", *args)
            self.assertEqual(status, 2, said)
            self.assertIn("is missing or empty", said)
            self.assertIn("signalbox restore FILE", said)
            self.assertIn("signalbox serve --from-scratch", said)
        left = [name for name in sorted(os.listdir(folder))
                if name != "signalbox.lock"]
        self.assertEqual(left, [name for name in before
                                if name != "signalbox.lock"])

    def test_a_database_that_is_gone_is_not_made_anew_by_itself(self):
        with tempfile.TemporaryDirectory() as folder:
            database = os.path.join(folder, "signalbox.db")
            for _ in range(2):
                with Server(data=folder) as server:
                    self.assertNotIn("began_anew", server.said())
            os.truncate(database, 0)
            self.assert_lost(folder)
            os.unlink(database)
            self.assert_lost(folder)
            with Server("--from-scratch", data=folder) as server:
                self.assertIn("store.began_anew", server.said())
                self.assertTrue(server.token)
            with Server("--from-scratch", data=folder) as server:
                self.assertNotIn("began_anew", server.said())
                self.assertIn("store.not_from_scratch", server.said())
                self.assertFalse(server.token)

    def test_an_epoch_or_a_snapshot_says_that_there_was_a_database(self):
        with tempfile.TemporaryDirectory() as folder:
            with Server(data=folder):
                pass
            for name in ("signalbox.db", "signalbox.lock"):
                os.unlink(os.path.join(folder, name))
            self.assertEqual(os.listdir(folder), ["signalbox.epoch"])
            self.assert_lost(folder)
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "index.snapshot"), "wb") as f:
                f.write(b"of some agents")
            self.assert_lost(folder)

    def test_nobody_is_made_admin_in_a_folder_that_lost_its_database(self):
        with tempfile.TemporaryDirectory() as folder:
            with Server(data=folder):
                pass
            os.unlink(os.path.join(folder, "signalbox.db"))
            status, said = refuses_to_start(
                "token", "create", "--offline", "--data", folder, "--user",
                "mallory", "--role", "admin")
            self.assertEqual(status, 2, said)
            self.assertIn("is missing or empty", said)

    def test_a_first_start_that_was_cut_off_is_still_the_first(self):
        with Server() as other, tempfile.TemporaryDirectory() as folder:
            status, _ = refuses_to_start("serve", "--data", folder, "--listen",
                                       other.url.removeprefix("http://"))
            self.assertEqual(status, 3)
            self.assertIn("signalbox.epoch", os.listdir(folder))
            os.truncate(os.path.join(folder, "signalbox.db"), 0)
            with Server(data=folder) as server:
                self.assertNotIn("began_anew", server.said())
                self.assertTrue(server.token)

    def test_a_port_in_use_is_said_so(self):
        with Server() as server, tempfile.TemporaryDirectory() as folder:
            status, said = refuses_to_start("serve", "--data", folder, "--listen",
                                          server.url.removeprefix("http://"))
            self.assertEqual(status, 3)
            self.assertIn("--listen", said)
            self.assertEqual(server.get("/healthz").status, 200)

    def test_errors_are_json_where_scripts_listen(self):
        status, said = refuses_to_start("serve", "--json", "--data", "/nowhere/at/all",
                                      "--listen", "127.0.0.1:0")
        self.assertEqual(status, 3)
        self.assertEqual(json.loads(said)["error"]["code"], "not_found")

    def test_listening_to_the_network_in_plain_text_needs_a_word(self):
        with tempfile.TemporaryDirectory() as folder:
            status, said = refuses_to_start("serve", "--data", folder,
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
