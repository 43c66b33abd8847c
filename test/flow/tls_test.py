"""TLS as clients of all kinds meet it: openssl, curl, Python and our own
commands; and certificates as their owner changes them."""
import contextlib
import json
import os
import re
import resource
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import unittest

from certs import Certs, HERE, names_of, openssl, tls_connect
from signalbox import (BINARY, DEADLINE_S, ECHO, Events, Server,
                       clean_environment, eventually, metric,
                       refuses_to_start, request)


def tls_settings(cert, key, more=(), listen="127.0.0.1:0"):
    return {"listen": listen, "certFile": cert, "keyFile": key,
            "more": [{"certFile": c, "keyFile": k} for c, k in more]}


class Tls(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="signalbox-tls-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.certs = Certs(self.folder)
        self.cert, self.key = self.certs.make("box")

    def server(self, *args, more=(), config=None, **kwargs):
        settings = {"tls": tls_settings(self.cert, self.key, more),
                    **(config or {})}
        return Server(*args, agents=ECHO, config=settings, **kwargs)

    def get(self, server, path="/healthz", *headers, **more):
        with tls_connect(server.tls_address, **more) as peer:
            peer.send(request("GET", path, "Connection: close", *headers))
            return peer.response()

    def shown(self, server, name="localhost"):
        """The names in the certificate that a new client is shown."""
        with tls_connect(server.tls_address, name=name) as peer:
            return names_of(peer)

    def run_it(self, *args, **env):
        return subprocess.run(
            [BINARY, *args], cwd=self.folder, timeout=DEADLINE_S, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, encoding="utf-8",
            env={**clean_environment(), **env})


class TlsPeer:
    """Someone who has no agents, and hangs up on the first so many instead
    of a handshake."""

    def __init__(self, cert, key, n_cut=0, is_reset=True):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(cert, key)
        self.n_cut, self.is_reset, self.n_connections = n_cut, is_reset, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "https://localhost:%d" % self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.serve)

    def serve(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            with sock:
                self.n_connections += 1
                sock.settimeout(DEADLINE_S)
                if self.n_connections <= self.n_cut:
                    self.hang_up(sock)
                else:
                    self.answer(sock)

    def hang_up(self, sock):
        sock.recv(1)  # a close with more to be read is a reset
        if not self.is_reset:
            sock.recv(65536)

    def answer(self, sock):
        try:
            with self.context.wrap_socket(sock, server_side=True) as tls:
                said = b""
                while b"\r\n\r\n" not in said:
                    said += tls.recv(65536)
                tls.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n"
                            b'Connection: close\r\n\r\n{"items":[]}')
        except OSError:
            pass

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()


class Clients(Tls):
    def test_both_ports_serve(self):
        with self.server() as server:
            self.assertTrue(server.tls_url.startswith("https://127.0.0.1:"))
            self.assertEqual(server.get("/healthz").status, 200)
            for name in ("localhost", "127.0.0.1"):
                self.assertEqual(
                    self.get(server, ca=self.cert, name=name).status, 200)
            self.assertEqual(metric(server, "signalbox_tls_handshakes_total"),
                             2)

    def test_tls_alone_may_listen_beyond_this_machine(self):
        settings = tls_settings(self.cert, self.key, listen="0.0.0.0:0")
        with Server(listen="", config={"tls": settings}) as server:
            self.assertTrue(server.url.startswith("https://0.0.0.0:"))
            self.assertEqual(server.url, server.tls_url)
            reply = self.get(server, ca=self.cert)
            self.assertEqual(reply.status, 200)

    def test_people_are_told_of_both(self):
        process = subprocess.Popen(
            [BINARY, "serve", "--listen", "127.0.0.1:0", "--data",
             os.path.join(self.folder, "data"), "--set",
             "tls=" + json.dumps(tls_settings(self.cert, self.key))],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=clean_environment())
        line = process.stdout.readline().decode()
        process.terminate()
        process.communicate(timeout=DEADLINE_S)
        self.assertRegex(line, r"is listening on http://127\.0\.0\.1:\d+ and "
                         r"https://127\.0\.0\.1:\d+\n")

    @unittest.skipUnless(shutil.which("curl"), "curl is not installed")
    def test_curl(self):
        with self.server() as server:
            url = server.tls_url + "/healthz"
            run = subprocess.run(["curl", "-sS", "--cacert", self.cert, url],
                                 stdout=subprocess.PIPE, check=True,
                                 timeout=DEADLINE_S)
            self.assertEqual(json.loads(run.stdout)["status"], "ok")
            run = subprocess.run(
                ["curl", "-sS", "--cacert", self.cert, "--http1.0", url],
                stdout=subprocess.PIPE, check=True, timeout=DEADLINE_S)
            self.assertEqual(json.loads(run.stdout)["status"], "ok")

    def s_client(self, server, *args, said=b""):
        host, port = server.tls_address
        run = subprocess.run(
            ["openssl", "s_client", "-connect", f"{host}:{port}", *args],
            input=said, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=DEADLINE_S, check=False)
        return run.returncode, run.stdout.decode("utf-8", "replace")

    def test_versions(self):
        old = ("-cipher", "DEFAULT@SECLEVEL=0")
        with self.server() as server:
            for flag, works in (("-tls1", False), ("-tls1_1", False),
                                ("-tls1_2", True), ("-tls1_3", True)):
                status, said = self.s_client(
                    server, flag, "-brief", *(() if works else old))
                self.assertEqual(status == 0, works, said)
            eventually(lambda: metric(
                server, "signalbox_tls_handshakes_failed_total") == 2,
                "two that failed")

    def test_old_ciphers_are_not_spoken(self):
        with self.server() as server:
            for cipher in ("AES128-SHA", "ECDHE-ECDSA-AES128-SHA", "NULL"):
                status, said = self.s_client(
                    server, "-tls1_2", "-cipher", cipher + "@SECLEVEL=0")
                self.assertNotEqual(status, 0, said)

    def test_sessions_are_resumed_and_protocols_agreed_on(self):
        with self.server() as server:
            _, said = self.s_client(server, "-tls1_2", "-reconnect")
            self.assertEqual(len(re.findall("^Reused, ", said, re.M)), 5, said)
            _, said = self.s_client(server, "-alpn", "h2,http/1.1")
            self.assertIn("ALPN protocol: http/1.1", said)

    def test_nothing_is_negotiated_again(self):
        with self.server() as server:
            _, said = self.s_client(server, "-tls1_2", said=b"R\n")
            self.assertIn("RENEGOTIATING", said)
            self.assertIn("no renegotiation", said)
            self.assertEqual(metric(server, "signalbox_tls_handshakes_total"),
                             1)

    def test_an_origin_of_ours_may_be_https(self):
        with self.server() as server:
            host = "localhost:%d" % server.tls_address[1]
            for origin, status in (("https://" + host, 200),
                                   ("https://localhost:1", 403),
                                   ("https://evil.example", 403)):
                with tls_connect(server.tls_address) as peer:
                    peer.send(request(
                        "GET", "/api/agents", "Origin: " + origin,
                        "Authorization: Bearer " + server.token,
                        host=host.encode()))
                    self.assertEqual(peer.response().status, status, origin)


class Bytes(Tls):
    def test_large_bodies(self):
        text = "0123456789abcdef" * 65536
        with self.server() as server:
            with tls_connect(server.tls_address) as peer:
                for _ in range(3):
                    peer.send(server.request("POST", "/api/messages",
                                             {"text": text, "executor":
                                              {"name": "echo"}}))
                    self.assertEqual(peer.response().json()["text"], text)

    def test_a_request_byte_by_byte_and_many_at_once(self):
        with self.server() as server:
            with tls_connect(server.tls_address) as peer:
                for byte in request("GET", "/healthz"):
                    peer.send(bytes([byte]))
                self.assertEqual(peer.response().status, 200)
                peer.send(request("GET", "/healthz") * 500)
                for _ in range(500):
                    self.assertEqual(peer.response().status, 200)

    def test_events(self):
        with self.server() as server:
            peer = tls_connect(server.tls_address)
            peer.send(server.request("GET", "/api/feed?after=0", None,
                                     "Accept: text/event-stream"))
            with Events(peer) as events:
                for i in range(20):
                    self.assertEqual(server.send(f"m{i}").status, 200)
                self.assertEqual(len(events.take(20)), 20)

    def test_a_slow_reader_is_bounded(self):
        text = "0123456789abcdef" * 32768
        config = {"http": {"maxUnsentBytes": 65536, "writeTimeoutMs": 2000}}
        with self.server(config=config) as server:
            with tls_connect(server.tls_address, rcvbuf=4096) as slow:
                call = server.request("POST", "/api/messages",
                                      {"text": text,
                                       "executor": {"name": "echo"}})
                for _ in range(8):
                    slow.send(call)
                eventually(lambda: metric(
                    server, "signalbox_http_timeouts_total") == 1,
                    "cutting who reads nothing")
                self.assertLess(metric(server,
                                       "signalbox_http_buffered_bytes"),
                                65536)
            self.assertEqual(self.get(server).status, 200)


class Wrong(Tls):
    def test_plain_http_on_the_tls_port(self):
        with self.server() as server:
            with socket.create_connection(server.tls_address,
                                          DEADLINE_S) as sock:
                sock.sendall(request("GET", "/healthz"))
                said = sock.makefile("rb").read().decode()
            self.assertTrue(said.startswith("HTTP/1.1 400 "))
            self.assertIn("this port speaks TLS: use https://", said)
            url = server.tls_url.replace("https", "http")
            run = self.run_it("agents", "--url", url,
                              SIGNALBOX_TOKEN=server.token)
            self.assertIn("this port speaks TLS: use https://", run.stderr)

    def test_tls_on_the_plain_port(self):
        with self.server() as server:
            with self.assertRaises(ssl.SSLError):
                tls_connect(server.address)
            url = server.url.replace("http", "https")
            run = self.run_it("agents", "--url", url,
                              SIGNALBOX_TOKEN=server.token)
            self.assertEqual(run.returncode, 4)
            said = " ".join(run.stderr.split())
            self.assertIn("does not use TLS", said)
            self.assertIn("http:// instead of https:// only on", said)
            self.assertIn("the token is then sent in plain text", said)

    def test_a_handshake_that_does_not_go_on(self):
        config = {"http": {"headerTimeoutMs": 300}}
        with self.server(config=config) as server:
            for beginning in (b"", b"\x16", b"\x16\x03\x01\x02\x00\x01"):
                with socket.create_connection(server.tls_address,
                                              DEADLINE_S) as sock:
                    sock.sendall(beginning)
                    self.assertEqual(sock.recv(1), b"")
            self.assertEqual(metric(server, "signalbox_http_timeouts_total"),
                             3)

    def test_a_thousand_handshakes_that_do_not_go_on(self):
        """The oldest give way; no one else notices."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < 1200:
            resource.setrlimit(resource.RLIMIT_NOFILE, (1200, hard))
        config = {"http": {"maxBufferedBytes": 1 << 20,
                           "maxConnectionsPerAddress": 0}}
        with self.server(config=config) as server, \
                contextlib.ExitStack() as stalled:
            with tls_connect(server.tls_address) as half:
                half.send(b"GET /healthz HTTP/1.1\r\n")
                for _ in range(1030):
                    sock = socket.create_connection(server.tls_address,
                                                    DEADLINE_S)
                    stalled.enter_context(sock)
                    sock.sendall(b"\x16")
                eventually(lambda: metric(
                    server, "signalbox_tls_handshakes_cut_total") == 6,
                    "cutting the oldest")
                half.send(b"Host: localhost\r\n\r\n")
                self.assertEqual(half.response().status, 200)
            self.assertEqual(self.get(server, ca=self.cert).status, 200)
            self.assertEqual(server.get("/healthz").status, 200)
            self.assertEqual(metric(server, "signalbox_http_overloaded_total"),
                             0)

    def test_nonsense(self):
        with self.server() as server:
            for _ in range(50):
                with socket.create_connection(server.tls_address,
                                              DEADLINE_S) as sock:
                    sock.sendall(b"\x16\x03\x01" + os.urandom(500))
            self.assertEqual(self.get(server, ca=self.cert).status, 200)

    def test_one_too_many(self):
        config = {"http": {"maxConnections": 1}}
        with self.server(config=config) as server:
            with tls_connect(server.tls_address) as silent:
                with tls_connect(server.tls_address) as peer:
                    peer.send(request("GET", "/healthz"))
                    self.assertEqual(peer.response().status, 200)
                    self.assertFalse(silent.more())


class Renewal(Tls):
    def test_names(self):
        more = [self.certs.make("b", "DNS:b.example"),
                self.certs.make("w", "DNS:*.w.example,DNS:w.example")]
        with self.server(more=more) as server:
            for name, shown in (("localhost", "localhost"),
                                ("b.example", "b.example"),
                                ("x.w.example", "*.w.example"),
                                ("w.example", "*.w.example"),
                                ("x.y.w.example", "localhost"),
                                ("else.example", "localhost")):
                self.assertIn("DNS:" + shown, self.shown(server, name), name)

    def test_a_hangup_takes_up_new_ones(self):
        with self.server() as server:
            with tls_connect(server.tls_address) as old:
                before = metric(server, "signalbox_tls_certificate_expires_"
                                "timestamp_seconds")
                self.certs.make("box", HERE + ",DNS:new.example", 30)
                server.process.send_signal(signal.SIGHUP)
                eventually(lambda: "new.example" in self.shown(server),
                           "the new certificate")
                self.assertEqual(self.get(server, ca=self.cert).status, 200)
                old.send(request("GET", "/healthz"))
                self.assertEqual(old.response().status, 200)
                self.assertNotIn("new.example", names_of(old))
                after = metric(server, "signalbox_tls_certificate_expires_"
                               "timestamp_seconds")
                self.assertLess(after, before - 59 * 24 * 3600)

    def test_files_behind_links_are_taken_up_by_themselves(self):
        """As certbot and Kubernetes lay them: a link to a folder is turned
        to another one."""
        live, data = self.certs.path("live"), self.certs.path("..data")
        for version, san in (("1", HERE), ("2", HERE + ",DNS:new.example")):
            os.mkdir(self.certs.path(version))
            Certs(self.certs.path(version)).make("tls", san)
        os.symlink("1", data)
        os.mkdir(live)
        for file in ("tls.pem", "tls.key"):
            os.symlink("../..data/" + file, os.path.join(live, file))
        self.cert = os.path.join(live, "tls.pem")
        self.key = os.path.join(live, "tls.key")
        with self.server() as server:
            self.assertNotIn("new.example", self.shown(server))
            os.symlink("2", data + ".new")
            os.rename(data + ".new", data)
            eventually(lambda: "new.example" in self.shown(server),
                       "the new certificate")
            self.assertIn("tls.certificates_renewed", server.said())

    def test_a_bad_one_never_replaces_a_good_one(self):
        other, _ = self.certs.make("other")
        with self.server() as server:
            shutil.copy(other, self.cert)  # and not its key
            server.process.send_signal(signal.SIGHUP)
            eventually(lambda: metric(
                server, "signalbox_config_reloads_total") == 1,
                "a reload, of everything else")
            self.assertIn("tls.certificates_not_renewed", server.said())
            self.assertIn("is not that of the certificate in", server.said())
            self.assertEqual(self.get(server).status, 200)
            # The next look finds the same, and then that it is mended.
            self.certs.make("box", HERE + ",DNS:new.example")
            eventually(lambda: "new.example" in self.shown(server),
                       "the new certificate")

    def test_another_file_in_the_configuration(self):
        cert, key = self.certs.make("next", HERE + ",DNS:next.example")
        with self.server() as server:
            server.write_config(ECHO, {"tls": tls_settings(cert, key)})
            eventually(lambda: "next.example" in self.shown(server),
                       "the new certificate")
            server.write_config(ECHO, {"tls": tls_settings("/none", key)})
            eventually(lambda: metric(
                server, "signalbox_config_reloads_failed_total") == 1,
                "a reload that fails")
            self.assertIn("cannot read /none", server.said())
            self.assertIn("next.example", self.shown(server))

    def test_one_that_ends_soon_is_warned_of(self):
        self.certs.make("box", HERE, 3)
        with self.server() as server:
            self.assertIn("net.certificate_ends_soon", server.said())
            self.assertRegex(server.said(), '"days":[23]')


class Start(Tls):
    def refused(self, *words, cert=None, key=None, of="tls.certFile"):
        """Serve, check and doctor all say it, the latter two of which
        setting."""
        sets = "tls=" + json.dumps(tls_settings(cert or self.cert,
                                                key or self.key))
        data = os.path.join(self.folder, "data")
        status, said = refuses_to_start(
            "serve", "--listen", "127.0.0.1:0", "--data", data, "--set", sets)
        self.assertNotEqual(status, 0)
        for word in words:
            self.assertIn(word, said)
        run = self.run_it("check", "--set", sets)
        self.assertEqual(run.returncode, 2, run.stdout)
        for word in words:
            self.assertIn(word, run.stdout.replace("\n", " "))
        run = self.run_it("check", "--json", "--set", sets)
        problem, = json.loads(run.stdout)["problems"]
        self.assertEqual(problem["where"], "--set tls")
        self.assertTrue(problem["message"].startswith(of + ": "), problem)
        run = self.run_it("doctor", "--json", "--listen", "127.0.0.1:0",
                          "--data", data, "--set", sets)
        found = {c["name"]: c for c in json.loads(run.stdout)["checks"]}
        self.assertEqual(found["certs"]["status"], "failed")
        for word in words:
            self.assertIn(word, found["certs"]["message"])

    def test_files_that_are_of_no_use(self):
        _, other_key = self.certs.make("other")
        locked = self.certs.path("locked.key")
        openssl("pkey", "-in", self.key, "-aes128", "-passout", "pass:secret",
                "-out", locked)
        self.refused("cannot read /none", cert="/none")
        self.refused("has no certificate", cert=self.key)
        of_key = {"of": "tls.keyFile"}
        self.refused("cannot read /none", key="/none", **of_key)
        self.refused("has no private key", key=self.cert, **of_key)
        self.refused("is not that of the certificate", key=other_key, **of_key)
        self.refused("has a passphrase", "openssl pkey -in " + locked,
                     key=locked, **of_key)

    def check(self, status, *args):
        run = self.run_it("check", *args)
        self.assertEqual(run.returncode, status, run.stdout)
        return " ".join(run.stdout.split())

    def test_files_that_are_swapped(self):
        sets = "tls=" + json.dumps(tls_settings(self.key, self.cert))
        self.assertIn("seem to be swapped", self.check(2, "--set", sets))
        run = self.run_it("doctor", "--listen", "127.0.0.1:0", "--set", sets)
        self.assertIn("seem to be swapped", " ".join(run.stdout.split()))

    def test_where_it_is_written(self):
        """All that is wrong, each with its line."""
        with open(self.certs.path("signalbox.jsonc"), "w") as f:
            f.write('{"tls": {"listen": "127.0.0.1:0",\n'
                    ' "certFile": "box.pem",\n "keyFile": "no.key",\n'
                    ' "more": [\n'
                    '  {"certFile": "box.pem", "keyFile": "box.key"},\n'
                    '  {"certFile": "box.pem", "keyFile": "none.key"}]}}\n')
        run = self.run_it("check")
        self.assertEqual(run.returncode, 2)
        self.assertRegex(run.stdout, r"^signalbox.jsonc:3:13: tls.keyFile: "
                         r"cannot read .*no.key")
        self.assertRegex(run.stdout, r"\nsignalbox.jsonc:4:10: "
                         r"tls.more\[1\].keyFile: cannot read .*none.key")
        self.assertIn("2 errors", run.stdout)

    def test_a_key_that_others_can_read(self):
        sets = "tls=" + json.dumps(tls_settings(self.cert, self.key))
        self.assertNotIn("warning", self.check(0, "--set", sets))
        for mode in (0o640, 0o604):
            os.chmod(self.key, mode)
            said = self.check(0, "--set", sets)
            self.assertIn("warning: tls.keyFile: other users have "
                          "access to the key in", said)
            self.assertIn("chmod 600", said)
            run = self.run_it("doctor", "--listen", "127.0.0.1:0", "--set",
                              sets)
            self.assertEqual(run.returncode, 0)
            self.assertIn("chmod 600", run.stdout)

    def test_doctor_shows_the_certificate_of_a_running_server(self):
        with self.server() as server:
            run = self.run_it(
                "doctor", "--json", "--data", server.data, "--config",
                os.path.join(server.folder, "test.jsonc"), "--set",
                "tls.listen=%s:%d" % server.tls_address)
            found = {c["name"]: c for c in json.loads(run.stdout)["checks"]}
            self.assertIn("probably by the running server",
                          found["tls"]["message"])
            self.assertEqual(found["certs"]["status"], "ok")
            self.assertRegex(found["certs"]["message"],
                             r"for localhost, 127\.0\.0\.1, valid for \d\d "
                             r"days")

    def test_two_listeners_in_one_place(self):
        files = ("--set", "tls.certFile=" + self.cert, "--set",
                 "tls.keyFile=" + self.key)
        for plain, tls, status in (
                ("127.0.0.1:8787", "127.0.0.1:8787", 2),
                ("127.0.0.1:8787", "0.0.0.0:8787", 2),
                ("[::1]:8787", "[::]:8787", 2),
                ("127.0.0.1:8787", "[::1]:8787", 0),
                ("127.0.0.1:8787", "127.0.0.1:8788", 0),
                ("127.0.0.1:0", "127.0.0.1:0", 0)):
            said = self.check(status, "--listen", plain, "--set",
                              "tls.listen=" + tls, *files)
            self.assertEqual("overlap: give" in said, status == 2, said)

    def test_a_missing_file_of_authorities_is_said(self):
        for name, words in (("nope", "there is no file nope"),
                            (".", ". is a folder"),
                            (self.key, "has no certificates")):
            said = self.check(0, "--set", "outgoing.caFile=" + name)
            self.assertIn("warning: outgoing.caFile: ", said)
            self.assertIn(words, said)
            run = self.run_it("doctor", "--listen", "127.0.0.1:0", "--set",
                              "outgoing.caFile=" + name)
            self.assertIn(words, " ".join(run.stdout.split()))
        self.assertNotIn("warning", self.check(0, "--set", "outgoing.caFile=" +
                                               self.cert))

    def test_listen_may_be_empty(self):
        sets = "tls=" + json.dumps(tls_settings(self.cert, self.key))
        for args in (("--listen", ""), ("--listen=",)):
            said = self.check(0, *args, "--set", sets)
            self.assertIn("listens on 127.0.0.1:0 with TLS", said)
        run = self.run_it("check", "--listen")
        self.assertIn("--listen needs a value", run.stderr)

    def test_an_address_that_is_taken(self):
        with self.server() as server:
            taken = "%s:%d" % server.tls_address
            status, said = refuses_to_start(
                "serve", "--listen", "127.0.0.1:0", "--data",
                os.path.join(self.folder, "data"), "--set",
                "tls=" + json.dumps(tls_settings(self.cert, self.key,
                                                 listen=taken)))
            self.assertEqual(status, 3, said)
            self.assertIn(taken + " is in use", said)

    def test_doctor_and_check_are_content(self):
        sets = "tls=" + json.dumps(tls_settings(self.cert, self.key))
        run = self.run_it("check", "--set", sets)
        self.assertIn("and 127.0.0.1:0 with TLS", run.stdout)
        run = self.run_it("doctor", "--listen", "127.0.0.1:0", "--set", sets)
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertRegex(run.stdout, r"for localhost, 127\.0\.0\.1, valid for "
                         r"\d\d days")


class Commands(Tls):
    def test_who_is_trusted(self):
        with self.server() as server:
            env = {"SIGNALBOX_URL": server.tls_url,
                   "SIGNALBOX_TOKEN": server.token}
            run = self.run_it("send", "hello", "--to", "echo", "--ca",
                              self.cert, **env)
            self.assertEqual((run.returncode, run.stdout), (0, "hello\n"))
            run = self.run_it("agents", SIGNALBOX_CA=self.cert, **env)
            self.assertEqual(run.returncode, 0, run.stderr)
            other, _ = self.certs.make("other")
            for args, more in ((("agents",), {}),
                               (("agents", "--ca", other), {}),
                               (("agents",), {"SIGNALBOX_CA": other})):
                run = self.run_it(*args, **env, **more)
                self.assertEqual(run.returncode, 4, run.stderr)
                self.assertIn("is not trusted", run.stderr)
                self.assertIn("--ca FILE or SIGNALBOX_CA", run.stderr)

    def test_a_file_that_is_of_no_use(self):
        with self.server() as server:
            env = {"SIGNALBOX_URL": server.tls_url,
                   "SIGNALBOX_TOKEN": server.token}
            run = self.run_it("agents", "--ca", "/none", **env)
            self.assertEqual(run.returncode, 2)
            self.assertIn("--ca is /none, which cannot be read", run.stderr)
            run = self.run_it("agents", SIGNALBOX_CA=self.key, **env)
            self.assertEqual(run.returncode, 2, run.stderr)
            self.assertIn("has no certificates", run.stderr)
            run = self.run_it("agents", "--ca", "/", **env)
            self.assertEqual(run.returncode, 2)
            self.assertIn("--ca is /, which is a folder", run.stderr)

    def unreachable(self, url):
        run = self.run_it("agents", "--url", url, "--ca", self.cert,
                          SIGNALBOX_TOKEN="sbx_x")
        self.assertEqual(run.returncode, 4, run.stderr)
        return " ".join(run.stderr.split())

    def test_a_certificate_for_somebody_else(self):
        self.certs.make("box", "DNS:other.example,DNS:b.example")
        with self.server() as server:
            said = self.unreachable(server.tls_url)
            self.assertIn("is for another name", said)
            self.assertIn("DNS:other.example, DNS:b.example", said)
            self.assertNotIn("--ca", said)

    def test_a_certificate_that_has_expired(self):
        with TlsPeer(*self.certs.make_expired("box")) as peer:
            said = self.unreachable(peer.url)
            self.assertIn("has expired", said)
            self.assertIn("must renew it", said)
            self.assertNotIn("--ca", said)

    def test_who_hangs_up_in_the_handshake_is_asked_again(self):
        for is_reset in (True, False):
            with TlsPeer(self.cert, self.key, 1, is_reset) as peer:
                run = self.run_it("agents", "--json", "--url", peer.url,
                                  "--ca", self.cert, SIGNALBOX_TOKEN="sbx_x")
                self.assertEqual(run.returncode, 0, run.stderr)
                self.assertEqual(peer.n_connections, 2)

    def test_who_always_hangs_up_is_left_alone_in_the_end(self):
        with TlsPeer(self.cert, self.key, 1000) as peer:
            said = self.unreachable(peer.url)
            self.assertIn("closed the connection in the TLS handshake", said)
            self.assertNotIn("http://", said.replace("https://", ""))
            self.assertGreater(peer.n_connections, 1)


if __name__ == "__main__":
    unittest.main()
