"""`signalbox doctor --reach URL`: what becomes of a URL that an agent supplies,
asked of real servers on this machine. A refused address must not have been
connected to: the servers count."""
import http.server
import json
import os
import shutil
import socket
import socketserver
import ssl
import subprocess
import tempfile
import threading
import unittest

from certs import Certs

BIN = os.environ["SIGNALBOX_BIN"]
OK, FAILED, USAGE, REFUSED, UNREACHABLE = 0, 1, 2, 3, 4


class Target:
    """A server that counts its connections and answers by path:
    /status/N, /to/LOCATION, /around, /bytes/N, anything else with 200."""

    def __init__(self, family=socket.AF_INET, certificate=None):
        self.n_connections = 0
        target = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self):
                target.n_connections += 1
                super().setup()

            def do_GET(self):
                kind, _, rest = self.path[1:].partition("/")
                status = int(rest) if kind == "status" else 200
                location = {"to": rest, "around": "/around"}.get(kind)
                self.send_response(302 if location else status)
                if location:
                    self.send_header("Location", location)
                self.send_header("Content-Length",
                                 rest if kind == "bytes" else "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        class Quiet(socketserver.ThreadingTCPServer):
            address_family = family
            daemon_threads = True

            def handle_error(self, *_):
                pass

        host = "::1" if family == socket.AF_INET6 else "127.0.0.1"
        self.server = Quiet((host, 0), Handler)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            # The handshake is for the thread of the connection.
            self.server.socket = context.wrap_socket(
                self.server.socket, server_side=True,
                do_handshake_on_connect=False)
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever,
                                       args=(0.02,))
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class Reach(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="signalbox-reach-")
        self.addCleanup(shutil.rmtree, self.home)

    def target(self, **more):
        target = Target(**more)
        self.addCleanup(target.close)
        return target

    def run_it(self, url, *args, allow=None, env=None):
        if allow is not None:
            args += ("--set", "outgoing.allow=" + json.dumps(allow))
        return subprocess.run(
            [BIN, "doctor", "--reach", url, *args], cwd=self.home,
            env={"PATH": "/usr/bin:/bin", "HOME": self.home, **(env or {})},
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=60)

    def ask(self, status, verdict, url, *args, **more):
        """What it says as JSON."""
        r = self.run_it(url, "--json", *args, **more)
        self.assertEqual((r.returncode, r.stderr), (status, ""), r.stdout)
        answer = json.loads(r.stdout)
        self.assertEqual(answer["verdict"], verdict, answer)
        self.assertEqual(answer["ok"], status == OK)
        self.assertTrue(answer["message"])
        return answer

    def certificate(self, name):
        key, cert = (os.path.join(self.home, n) for n in ("key", "cert"))
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
             "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
             "/CN=" + name, "-addext", "subjectAltName=DNS:" + name,
             "-keyout", key, "-out", cert],
            check=True, stderr=subprocess.DEVNULL)
        return cert, key


class Guard(Reach):
    def test_what_is_within_is_refused_until_it_is_listed(self):
        target = self.target()
        url = f"http://127.0.0.1:{target.port}/"
        answer = self.ask(REFUSED, "refused", url)
        self.assertEqual(answer["addresses"], [
            {"address": f"127.0.0.1:{target.port}", "kind": "loopback",
             "allowed": False, "range": f"127.0.0.1:{target.port}"}])
        self.assertIsNone(answer["peer"])
        self.assertEqual(target.n_connections, 0)

        # Another port, another address: no.
        for allow in (["127.0.0.1:1"], ["127.0.0.2"], ["[::]/0"],
                      ["10.0.0.0/8"]):
            self.ask(REFUSED, "refused", url, allow=allow)
        self.assertEqual(target.n_connections, 0)

        # As it was told to.
        allow = [answer["addresses"][0]["range"]]
        answer = self.ask(OK, "reachable", url, allow=allow)
        self.assertEqual(answer["status"], 200)
        self.assertEqual(answer["peer"], f"127.0.0.1:{target.port}")
        self.assertEqual(answer["origin"], url[:-1])
        self.assertIsNone(answer["tls"])
        self.assertIsNone(answer["refused"])
        self.assertEqual(target.n_connections, 1)

    def test_a_name_is_what_it_leads_to(self):
        target = self.target()
        url = f"http://localhost:{target.port}/"
        self.ask(REFUSED, "refused", url)
        # This one may be known to libcurl alone, that one to no one.
        self.ask(REFUSED, "refused", f"http://any.localhost:{target.port}/")
        self.assertIn(
            self.run_it(f"http://localhost.:{target.port}/").returncode,
            (REFUSED, UNREACHABLE))
        self.assertEqual(target.n_connections, 0)
        self.ask(OK, "reachable", url, allow=["127.0.0.0/8"])
        self.assertEqual(target.n_connections, 1)

    def test_localhost_is_both_addresses(self):
        """As libcurl has it, whatever the system says. What is listed and
        what became of it must agree."""
        try:
            target = self.target(family=socket.AF_INET6)
        except OSError:
            self.skipTest("no IPv6 on this machine")
        url = f"http://localhost:{target.port}/"
        answer = self.ask(REFUSED, "refused", url)
        self.assertEqual([a["address"] for a in answer["addresses"]],
                         [f"[::1]:{target.port}",
                          f"127.0.0.1:{target.port}"])
        answer = self.ask(OK, "reachable", url, allow=[f"[::1]:{target.port}"])
        self.assertIn(answer["peer"], [a["address"] for a in
                                       answer["addresses"] if a["allowed"]])
        r = self.run_it(url, allow=[f"[::1]:{target.port}"])
        self.assertNotIn("FAIL", r.stdout)

    def test_what_clouds_hand_out_is_better_kept_closed(self):
        # Never opened here: there may be such a cloud.
        for host in ("169.254.169.254", "[fd00:ec2::254]",
                     "100.100.100.200", "[::ffff:169.254.169.254]"):
            r = self.run_it(f"http://{host}/")
            self.assertEqual(r.returncode, REFUSED)
            self.assertIn("keep it closed", r.stdout)
            self.assertNotIn("to allow it", r.stdout)
        answer = self.ask(REFUSED, "refused", "http://169.254.169.254/")
        self.assertIn("keep it closed", answer["advice"])

    def test_v6(self):
        try:
            target = self.target(family=socket.AF_INET6)
        except OSError:
            self.skipTest("no IPv6 on this machine")
        url = f"http://[::1]:{target.port}/"
        answer = self.ask(REFUSED, "refused", url)
        self.assertEqual(answer["addresses"][0]["range"],
                         f"[::1]:{target.port}")
        self.assertEqual(target.n_connections, 0)
        self.ask(OK, "reachable", url, allow=["[::1]"])
        self.assertEqual(target.n_connections, 1)

    def test_every_form_leads_to_a_kind(self):
        for host, kind in (("0.0.0.0", "unspecified"), ("[::]", "unspecified"),
                           ("10.0.0.1", "private"), ("[fd00::1]", "private"),
                           ("169.254.169.254", "link-local"),
                           ("168.63.129.16", "platform"),
                           ("[::ffff:127.0.0.1]", "loopback"),
                           ("[64:ff9b::7f00:1]", "loopback"),
                           ("[2002:7f00:1::]", "loopback"),
                           ("100.64.0.1", "shared"),
                           ("224.0.0.1", "multicast")):
            answer = self.ask(REFUSED, "refused", f"http://{host}/")
            self.assertEqual(answer["addresses"][0]["kind"], kind, host)

    def test_a_redirect_inward_is_refused(self):
        target, inner = self.target(), self.target()
        url = f"http://127.0.0.1:{target.port}"
        allow = [f"127.0.0.1:{target.port}"]
        answer = self.ask(
            REFUSED, "refused",
            f"{url}/to/http://127.0.0.1:{inner.port}/", allow=allow)
        self.assertIn("after a redirect: ", answer["message"])
        self.assertIn(f"127.0.0.1:{inner.port} is loopback",
                      answer["message"])
        # The agent is not told what a name within means; the operator is.
        answer = self.ask(
            REFUSED, "refused",
            f"{url}/to/http://localhost:{inner.port}/", allow=allow)
        self.assertIn(f"localhost:{inner.port} leads to an address that is "
                      "loopback", answer["message"])
        self.assertEqual(answer["refused"].rpartition(":")[2],
                         str(inner.port))
        self.assertIn(f"(refused: {answer['refused']})", answer["message"])
        self.assertEqual((target.n_connections, inner.n_connections), (2, 0))
        # The control: with both open it is followed.
        allow.append(f"127.0.0.1:{inner.port}")
        answer = self.ask(
            OK, "reachable", f"{url}/to/http://127.0.0.1:{inner.port}/",
            allow=allow)
        self.assertEqual(answer["origin"], f"http://127.0.0.1:{inner.port}")
        self.assertEqual(inner.n_connections, 1)

    def test_the_environment_brings_no_proxy(self):
        proxy, target = self.target(), self.target()
        self.ask(REFUSED, "refused", f"http://127.0.0.1:{target.port}/",
                 env={n: f"http://127.0.0.1:{proxy.port}" for n in
                      ("http_proxy", "HTTP_PROXY", "ALL_PROXY")})
        self.assertEqual((proxy.n_connections, target.n_connections), (0, 0))


class Outcome(Reach):
    def setUp(self):
        super().setUp()
        self.there = self.target()
        self.url = f"http://127.0.0.1:{self.there.port}"

    def ask_there(self, status, verdict, path, *args):
        return self.ask(status, verdict, self.url + path, *args,
                        allow=["127.0.0.1"])

    def test_any_status_is_an_answer(self):
        for status in (204, 404, 405, 500):
            answer = self.ask_there(OK, "reachable", f"/status/{status}")
            self.assertEqual(answer["status"], status)

    def test_a_websocket_is_asked_as_http(self):
        answer = self.ask(OK, "reachable",
                          f"ws://127.0.0.1:{self.there.port}/status/426",
                          allow=["127.0.0.1"])
        self.assertEqual(answer["status"], 426)
        self.assertIn("no WebSocket was opened", answer["advice"])
        r = self.run_it(f"ws://127.0.0.1:{self.there.port}/",
                        allow=["127.0.0.1"])
        self.assertIn("the WebSocket itself was not tried", r.stdout)

    def test_an_answer_that_is_too_large(self):
        answer = self.ask_there(FAILED, "failed", "/bytes/11", "--set",
                                "outgoing.maxBodyBytes=10")
        self.assertIn("announces 11 bytes", answer["message"])
        self.ask_there(OK, "reachable", "/bytes/10", "--set",
                       "outgoing.maxBodyBytes=10")

    def test_redirects_end(self):
        answer = self.ask_there(FAILED, "failed", "/around")
        self.assertIn("redirected more than 5 times", answer["message"])

    def test_nobody_is_there(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{s.getsockname()[1]}/"
            self.ask(UNREACHABLE, "unreachable", url, allow=["127.0.0.1"])

    def test_a_name_that_is_none(self):
        answer = self.ask(UNREACHABLE, "unreachable",
                          "http://no-such-name.invalid/")
        self.assertIn("no-such-name.invalid has no address",
                      answer["message"])
        self.assertEqual(answer["addresses"], [])

    def test_a_certificate_must_be_trusted(self):
        cert, key = self.certificate("localhost")
        target = self.target(certificate=(cert, key))
        url = f"https://localhost:{target.port}/"
        answer = self.ask(UNREACHABLE, "unreachable", url,
                          allow=["127.0.0.1"])
        self.assertIn("certificate", answer["message"])
        self.assertIn("outgoing.caFile", answer["advice"])
        answer = self.ask(OK, "reachable", url, "--set",
                          "outgoing.caFile=" + cert, allow=["127.0.0.1"])
        self.assertRegex(answer["tls"], r"^TLSv1\.[23]$")
        # And not asked in plain text.
        answer = self.ask(FAILED, "failed",
                          f"http://localhost:{target.port}/",
                          allow=["127.0.0.1"])
        self.assertIn("https://", answer["advice"])
        self.assertNotIn("poll", answer["message"])
        # Trusted, but not for this name: no file would help.
        answer = self.ask(UNREACHABLE, "unreachable",
                          f"https://127.0.0.1:{target.port}/", "--set",
                          "outgoing.caFile=" + cert, allow=["127.0.0.1"])
        self.assertIn("for other names", answer["advice"])
        self.assertNotIn("outgoing.caFile", answer["advice"])

    def test_a_certificate_that_has_expired(self):
        cert, key = Certs(self.home).make_expired("localhost")
        target = self.target(certificate=(cert, key))
        answer = self.ask(UNREACHABLE, "unreachable",
                          f"https://localhost:{target.port}/", "--set",
                          "outgoing.caFile=" + cert, allow=["127.0.0.1"])
        self.assertIn("expired", answer["message"])
        self.assertIn("must renew", answer["advice"])

    def test_tls_to_a_port_without(self):
        answer = self.ask(UNREACHABLE, "unreachable",
                          f"https://127.0.0.1:{self.there.port}/",
                          allow=["127.0.0.1"])
        self.assertEqual(answer["message"],
                         f"https://127.0.0.1:{self.there.port} answers, but "
                         "not with TLS")

    def test_who_takes_the_connection_and_says_nothing(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            r = self.run_it(f"http://127.0.0.1:{silent.getsockname()[1]}/",
                            "--set", "outgoing.connectTimeoutMs=100",
                            allow=["127.0.0.1"])
        self.assertEqual(r.returncode, UNREACHABLE)
        self.assertIn("the connection and the request were accepted", r.stdout)
        self.assertIn("unreachable: connected, but no response",
                      r.stdout)

    def test_a_redirect_to_what_is_no_place(self):
        answer = self.ask_there(FAILED, "failed", "/to/file:///etc/passwd")
        self.assertTrue(answer["message"].startswith("after a redirect: "),
                        answer)

    def test_a_proxy_is_asked_for_names_and_not_for_addresses(self):
        proxy = ("--set", "outgoing.proxy=" + self.url)
        answer = self.ask(OK, "reachable", "http://agent.example/x", *proxy)
        self.assertEqual(answer["proxy"], self.url)
        self.assertEqual(answer["addresses"], [])
        self.assertEqual(answer["peer"], self.url.removeprefix("http://"))
        self.assertEqual(self.there.n_connections, 1)
        for host in ("10.0.0.1", "[::1]", "localhost"):
            self.ask(REFUSED, "refused", f"http://{host}/", *proxy)
        self.assertEqual(self.there.n_connections, 1)


class Words(Reach):
    def test_for_people(self):
        target = self.target()
        at = f"127.0.0.1:{target.port}"
        r = self.run_it(f"http://{at}/inbox?key=hunter2")
        self.assertEqual((r.returncode, r.stderr), (REFUSED, ""))
        lines = r.stdout.split("\n")
        self.assertEqual(lines[:3], [
            f"ok   url       http to 127.0.0.1, port {target.port}",
            f"FAIL address   {at} (loopback) is not allowed",
            f'               -> add "{at}" to outgoing.allow to allow it'])
        self.assertEqual(lines[-2], "refused: the server does not connect "
                                    "to this URL for an agent")
        r = self.run_it(f"http://{at}/inbox?key=hunter2",
                        allow=["127.0.0.0/8"])
        self.assertEqual(r.stdout, (
            f"ok   url       http to 127.0.0.1, port {target.port}\n"
            f"ok   address   {at} (loopback) is allowed: "
            "outgoing.allow has 127.0.0.0/8\n"
            f"ok   request   {at} answered with status 200, in plain text\n"
            "\nreachable: the server connects to this URL for an agent\n"))

    def test_secrets_stay_where_they_are(self):
        target = self.target()
        url = f"http://127.0.0.1:{target.port}/hunter2?key=hunter2"
        for allow in ([], ["127.0.0.1"]):
            for args in ((), ("--json",)):
                r = self.run_it(url, *args, allow=allow)
                self.assertNotIn("hunter2", r.stdout + r.stderr)

    def test_what_is_no_url(self):
        for url, words in (
                ("", "--reach"), ("example.org", "begin with http://"),
                ("ftp://x/", "begin with http://"),
                ("http://0x7f.1/", "looks like an address"),
                ("http://me:hunter2@x/", "no user or password"),
                ("http://b\u00fcro.example/", "write it in Punycode"),
                ("http://x/\u00fc", "write it as %C3"),
                ("http://x/ y", "is a space")):
            r = self.run_it(url)
            self.assertEqual((r.returncode, r.stdout), (USAGE, ""), url)
            self.assertIn(words, r.stderr)
            self.assertNotIn("hunter2", r.stderr)

    def test_a_configuration_that_is_wrong(self):
        r = self.run_it("http://x/", "--set", "outgoing.allow=5")
        self.assertEqual(r.returncode, USAGE)
        self.assertIn("outgoing.allow must be a list", r.stderr)
        r = self.run_it("http://127.0.0.1/", "--set",
                        "outgoing.caFile=nowhere.pem")
        self.assertEqual(r.returncode, USAGE)
        self.assertIn("there is no file nowhere.pem", r.stdout)
        self.assertIn("not tried: the configuration", r.stdout)
