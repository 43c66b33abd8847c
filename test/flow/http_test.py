"""The server over HTTP as a client meets it: what it answers, where it stops
listening to nonsense, and what it says when it cannot start."""
import os
import signal
import socket
import struct
import tempfile
import unittest

from signalbox import (DEADLINE_S, Server, eventually, metric,
                       refuses_to_start, request)

USAGE, IN_USE, NOT_ALLOWED = 2, 3, 5  # exit statuses

# Root may write anywhere unless it gives that up.
PLAIN_USER = (["setpriv", "--bounding-set", "-dac_override,-dac_read_search"]
              if os.geteuid() == 0 else [])


def settings(**values):
    """--set options: settings(maxBodyBytes=10)."""
    return [arg for name, value in values.items()
            for arg in ("--set", f"http.{name}={value}")]


class Answers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def ask(self, method, path, *headers, **kwargs):
        with self.server.connect() as peer:
            peer.send(request(method, path, *headers, host=self.server.host,
                              **kwargs))
            return peer.response(to_head=method == "HEAD")

    def test_healthy_and_ready(self):
        for path in "/healthz", "/readyz":
            answer = self.ask("GET", path)
            self.assertEqual(answer.status, 200)

    def test_metrics_count_requests(self):
        name = "signalbox_http_requests_total"
        before = metric(self.server, name)
        self.ask("GET", "/healthz")
        self.assertEqual(metric(self.server, name), before + 2)

    def test_an_unknown_path_is_an_error_in_json(self):
        answer = self.ask("GET", "/no-such-path")
        self.assertEqual(answer.status, 404)
        error = answer.json()["error"]
        self.assertEqual(error["code"], "not_found")
        self.assertTrue(error["message"])

    def test_a_wrong_method_is_told_the_right_ones(self):
        answer = self.ask("DELETE", "/healthz")
        self.assertEqual(answer.status, 405)
        self.assertIn("GET", answer.headers["allow"])
        self.assertIn("it has GET, HEAD", answer.json()["error"]["message"])

    def test_head_is_get_without_a_body(self):
        with self.server.connect() as peer:
            peer.send(request("HEAD", "/healthz", host=self.server.host))
            head = peer.response(to_head=True)
            peer.send(request("GET", "/healthz", host=self.server.host))
            whole = peer.response()
        self.assertEqual(head.status, 200)
        self.assertEqual(head.headers["content-length"],
                         str(len(whole.body)))

    def test_pipelined_requests_are_answered_in_order(self):
        paths = ["/healthz", "/no-such-path"] * 20
        with self.server.connect() as peer:
            peer.send(b"".join(request("GET", path, host=self.server.host)
                               for path in paths))
            got = [peer.response().status for _ in paths]
        self.assertEqual(got, [200, 404] * 20)

    def test_bytes_may_come_one_by_one(self):
        with self.server.connect() as peer:
            peer.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for byte in request("GET", "/healthz", host=self.server.host):
                peer.send(bytes([byte]))
            self.assertEqual(peer.response().status, 200)

    def test_connection_close_is_obeyed(self):
        with self.server.connect() as peer:
            peer.send(request("GET", "/healthz", "Connection: close",
                              host=self.server.host) * 2)
            self.assertEqual([r.status for r in peer.until_close()], [200])

    def test_who_asks_for_a_websocket_gets_the_answer_of_the_path(self):
        upgrade = ("Upgrade: websocket", "Connection: Upgrade",
                   "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
                   "Sec-WebSocket-Version: 13")
        for path in ("/healthz", "/metrics", "/no-such-path", "/hub",
                     "/api/messages", "/api/tasks", "/"):
            with self.server.connect() as peer:
                peer.send(request("GET", path, *upgrade,
                                  host=self.server.host))
                answer = peer.response()
                self.assertEqual(answer.status,
                                 self.ask("GET", path).status, path)
                self.assertTrue(answer.closes, path)
                self.assertEqual(peer.until_close(), [], path)

    def test_nothing_is_read_behind_a_refused_upgrade(self):
        asks = request("GET", "/hub", "Upgrade: websocket",
                       "Connection: Upgrade", host=self.server.host)
        behind = request("GET", "/healthz", host=self.server.host)
        with self.server.connect() as peer:
            peer.send(asks + behind)
            self.assertEqual([r.status for r in peer.until_close()], [401])

    def test_clients_that_hang_up_do_no_harm(self):
        burst = request("GET", "/metrics", host=self.server.host) * 200
        for _ in range(50):
            with self.server.connect() as peer:
                # Reset instead of a polite end.
                peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                       struct.pack("ii", 1, 0))
                peer.send(burst)
        self.assertEqual(self.ask("GET", "/healthz").status, 200)
        eventually(lambda: metric(self.server,
                                  "signalbox_http_connections") == 1,
                   "only the connection that asks is left")


class Limits(unittest.TestCase):
    def assert_refused(self, status, data, words="", **limits):
        with Server(*settings(**limits)) as server:
            with server.connect() as peer:
                peer.send(data.replace(b"localhost", server.host))
                answers = peer.until_close()
            self.assertEqual([a.status for a in answers], [status])
            self.assertTrue(answers[0].closes, answers)
            self.assertTrue(answers[0].json()["error"]["code"])
            message = answers[0].json()["error"]["message"]
            self.assertTrue(message)
            self.assertIn(words, message)
            self.assertEqual(server.get("/healthz").status, 200)

    def assert_served(self, data, **limits):
        with Server(*settings(**limits)) as server:
            with server.connect() as peer:
                peer.send(data.replace(b"localhost", server.host))
                self.assertEqual(peer.response().status, 404)

    def test_a_body_may_be_so_long_and_no_longer(self):
        self.assert_served(request("POST", "/x", body=b"a" * 10),
                           maxBodyBytes=10)
        self.assert_refused(413, request("POST", "/x", body=b"a" * 11),
                            "larger than http.maxBodyBytes (10)",
                            maxBodyBytes=10)

    def test_a_long_body_is_refused_before_it_is_sent(self):
        self.assert_refused(413, request("POST", "/x",
                                         "Content-Length: 999999999999"))

    def test_a_chunked_body_may_be_no_longer_either(self):
        head = request("POST", "/x", "Transfer-Encoding: chunked")
        self.assert_served(head + b"5\r\nabcde\r\n5\r\nabcde\r\n0\r\n\r\n",
                           maxBodyBytes=10)
        self.assert_refused(413, head + b"5\r\nabcde\r\n6\r\n",
                            maxBodyBytes=10)

    def test_half_a_body_over_what_all_buffers_may_hold(self):
        half = request("POST", "/x", "Content-Length: 200000") + b"a" * 150000
        self.assert_refused(503, half, maxBufferedBytes=65536)

    def test_a_request_line_too_long(self):
        self.assert_refused(414, request("GET", "/" + "a" * 100),
                            "longer than http.maxRequestLineBytes (100)",
                            maxRequestLineBytes=100)

    def test_headers_too_long(self):
        self.assert_refused(431, request("GET", "/x", "A: " + "b" * 200),
                            maxHeaderBytes=200)

    def test_too_many_headers(self):
        self.assert_refused(431, request("GET", "/x", *["A: b"] * 5),
                            "more than http.maxHeaders (5)",
                            maxHeaders=5)

    def test_nonsense(self):
        self.assert_refused(400, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03",
                            "it looks like TLS")
        self.assert_refused(400, b"GET / HTTP/1.1\r\n\r\n",
                            "malformed: the Host header is missing")
        self.assert_refused(505, b"GET / HTTP/3.0\r\nHost: localhost\r\n\r\n")

    def test_a_connection_too_many_takes_the_place_of_an_idle_one(self):
        with Server(*settings(maxConnections=2)) as server:
            first, second = server.connect(), server.connect()
            for peer in first, second:
                peer.send(request("GET", "/healthz", host=server.host))
                self.assertEqual(peer.response().status, 200)
            with server.connect() as third:
                third.send(request("GET", "/healthz", host=server.host))
                self.assertEqual(third.response().status, 200)
                self.assertEqual(first.until_close(), [])
                second.send(request("GET", "/healthz", host=server.host))
                self.assertEqual(second.response().status, 200)
            first.socket.close()
            second.socket.close()


class Patience(unittest.TestCase):
    """With small limits; what is waited for is the other side's doing."""

    def assert_cut(self, sends, statuses, **limits):
        with Server(*settings(**limits)) as server, server.connect() as peer:
            peer.send(sends.replace(b"localhost", server.host))
            answers = peer.until_close()
            self.assertEqual([r.status for r in answers], statuses)
            return answers

    def test_a_head_that_does_not_end(self):
        answers = self.assert_cut(b"GET /healthz HTTP/1.1\r\nHost: loc", [408],
                                  headerTimeoutMs=50)
        self.assertIn("longer than http.headerTimeoutMs",
                      answers[0].json()["error"]["message"])

    def test_a_body_that_does_not_end(self):
        self.assert_cut(request("POST", "/x", "Content-Length: 5") + b"abc",
                        [408], bodyTimeoutMs=50)

    def test_a_connection_that_says_nothing(self):
        self.assert_cut(b"", [], idleTimeoutMs=50, headerTimeoutMs=50)

    def test_a_connection_that_says_nothing_more(self):
        self.assert_cut(request("GET", "/healthz"), [200], idleTimeoutMs=2000)

    def test_a_reader_that_takes_nothing(self):
        with Server(*settings(writeTimeoutMs=50)) as server:
            with server.connect() as peer:
                ask = request("GET", "/metrics", host=server.host) * 100
                peer.socket.setblocking(False)

                def is_cut():
                    try:  # more questions, and no look at the answers
                        peer.socket.send(ask)
                    except BlockingIOError:
                        pass
                    except ConnectionError:
                        return True
                    return False
                eventually(is_cut, "it was cut")
            self.assertEqual(server.get("/healthz").status, 200)


class Stopping(unittest.TestCase):
    def test_idle_connections_do_not_hold_it_up(self):
        for sig in signal.SIGTERM, signal.SIGINT:
            with Server() as server, server.connect() as peer:
                peer.send(request("GET", "/healthz", host=server.host))
                self.assertEqual(peer.response().status, 200)
                server.process.send_signal(sig)
                self.assertEqual(peer.until_close(), [])
                self.assertEqual(server.process.wait(DEADLINE_S), 0)

    def test_a_half_sent_request_holds_it_up_no_longer_than_allowed(self):
        with Server("--set", "stopGraceMs=50") as server:
            with server.connect() as peer:
                peer.send(b"GET /healthz HTTP/1.1\r\n")
                server.process.send_signal(signal.SIGTERM)
                self.assertEqual(server.process.wait(DEADLINE_S), 0)


class Starting(unittest.TestCase):
    """What it says when it cannot start: the thing, and what to do."""

    def setUp(self):
        self.tmp = tempfile.TemporaryDirectory()
        self.addCleanup(self.tmp.cleanup)
        self.data = os.path.join(self.tmp.name, "data")

    def assert_says(self, args, *words, status, before=()):
        got, said = refuses_to_start("serve", *args, before=before)
        for word in words:
            self.assertIn(word, said)
        self.assertEqual(got, status, said)

    def on_data(self, folder):
        return ["--listen", "127.0.0.1:0", "--data", folder]

    def test_port_in_use(self):
        with Server() as server:
            address = server.host.decode()
            self.assert_says(["--listen", address, "--data", self.data],
                             address, "in use", status=IN_USE)

    def test_a_missing_data_folder_is_made(self):
        with Server(data=self.data):
            self.assertTrue(os.path.isdir(self.data))
            self.assertEqual(os.stat(self.data).st_mode & 0o077, 0)

    def test_a_file_in_place_of_the_data_folder(self):
        with open(self.data, "wb"):
            pass
        self.assert_says(self.on_data(self.data), self.data, "not a folder",
                         status=USAGE)

    def test_a_data_folder_that_cannot_be_made(self):
        os.chmod(self.tmp.name, 0o500)
        self.assert_says(self.on_data(self.data), self.data, "permission",
                         status=NOT_ALLOWED, before=PLAIN_USER)
        os.chmod(self.tmp.name, 0o700)

    def test_a_data_folder_that_cannot_be_written(self):
        os.mkdir(self.data, 0o500)
        self.assert_says(self.on_data(self.data), self.data, "permission",
                         status=NOT_ALLOWED, before=PLAIN_USER)

    def test_a_data_folder_in_use(self):
        with Server(data=self.data):
            self.assert_says(self.on_data(self.data), self.data, "in use",
                             status=IN_USE)
        with Server(data=self.data):
            pass

    def test_beyond_this_machine_only_when_told_so(self):
        self.assert_says(["--listen", "0.0.0.0:0", "--data", self.data],
                         "allowPlaintext", status=USAGE)

    def test_an_unknown_setting_names_the_nearest(self):
        self.assert_says([*self.on_data(self.data),
                          "--set", "http.maxBodyByte=1"],
                         "http.maxBodyBytes", status=USAGE)
