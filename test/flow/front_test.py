"""The dashboard as a browser gets it: what comes, how long it may be kept,
what it may do, and who does not get it at all."""
import gzip
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import unittest

from cards import error_code
from certs import Certs
from signalbox import (BINARY, DEADLINE_S, Server, clean_environment,
                       eventually, request)

HTML = "Accept: text/html,application/xhtml+xml,*/*;q=0.8"
FOR_EVER = "public, max-age=31536000, immutable"
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
POLICY = {
    "default-src 'none'", "script-src 'self'", "style-src 'self'",
    "img-src 'self' data:", "connect-src 'self'", "base-uri 'none'",
    "form-action 'none'", "frame-ancestors 'none'",
    "require-trusted-types-for 'script'", "trusted-types 'none'",
}
# Those that are made when they are needed, too, and what is no script.
IMPORT = re.compile(r"""\b(?:from|import|new\s+URL)\s*\(?\s*"""
                    r"""['"](\.{1,2}/[^'"]+)['"]""")


def ask(server, path, *headers, method="GET", host=None):
    with server.connect() as peer:
        peer.send(request(method, path, *headers, "Connection: close",
                          host=host or server.host))
        return peer.response(to_head=method == "HEAD")


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        page = ask(cls.server, "/", HTML)
        cls.page = page.body.decode()
        cls.assets = re.search(r"/assets/[0-9a-f]{16}", cls.page)[0]

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def ask(self, path, *headers, **more):
        return ask(self.server, path, *headers, **more)

    def assert_headers(self, answer):
        for name, value in HEADERS.items():
            self.assertEqual(answer.headers.get(name), value, name)
        policy = answer.headers["content-security-policy"].split("; ")
        self.assertEqual(set(policy), POLICY)
        self.assertEqual(len(policy), len(POLICY))

    def test_a_browser_gets_the_page_and_asks_for_it_anew(self):
        answer = self.ask("/", HTML)
        self.assertEqual(answer.status, 200)
        self.assertEqual(answer.headers["content-type"],
                         "text/html; charset=utf-8")
        self.assertEqual(answer.headers["cache-control"], "no-cache")
        self.assertEqual(answer.headers["vary"],
                         "Accept, Accept-Encoding, Origin")
        self.assertIn("<title>Signalbox</title>", self.page)
        self.assertNotIn("%ASSETS%", self.page)
        self.assert_headers(answer)

    def test_everybody_else_gets_words(self):
        for headers in ((), ("Accept: */*",), ("Accept: text/plain",),
                        ("Accept: text/htmlx",)):
            answer = self.ask("/", *headers)
            self.assertEqual(answer.headers["content-type"],
                             "text/plain; charset=utf-8")
            self.assertIn(b"POST   /api/messages\n", answer.body)
            self.assertNotIn(b"/assets", answer.body)

    def test_assets_are_kept_for_ever(self):
        for path, kind in (("main.js", "text/javascript; charset=utf-8"),
                           ("style.css", "text/css; charset=utf-8"),
                           ("vendor/preact.js",
                            "text/javascript; charset=utf-8"),
                           ("vendor/LICENSES.txt",
                            "text/plain; charset=utf-8")):
            answer = self.ask(f"{self.assets}/{path}")
            self.assertEqual(answer.status, 200, path)
            self.assertEqual(answer.headers["content-type"], kind)
            self.assertEqual(answer.headers["cache-control"], FOR_EVER)
            self.assertEqual(answer.headers["vary"], "Accept-Encoding, Origin")
            self.assert_headers(answer)

    def test_gzip_for_who_takes_it(self):
        for path, *more in (("/", HTML), (self.assets + "/vendor/preact.js",)):
            plain = self.ask(path, *more)
            packed = self.ask(path, "Accept-Encoding: br, gzip;q=0.5", *more)
            refused = self.ask(path, "Accept-Encoding: gzip;q=0, *", *more)
            self.assertNotIn("content-encoding", plain.headers)
            self.assertNotIn("content-encoding", refused.headers)
            self.assertEqual(refused.body, plain.body)
            self.assertEqual(packed.headers["content-encoding"], "gzip")
            self.assertEqual(gzip.decompress(packed.body), plain.body)
            self.assertLess(len(packed.body), len(plain.body))
            self.assertNotEqual(packed.headers["etag"], plain.headers["etag"])

    def test_what_is_known_is_not_sent_again(self):
        for path, *more in (("/", HTML), (self.assets + "/vendor/preact.js",)):
            for encoding in "Accept-Encoding: gzip", "X-None: x":
                tag = self.ask(path, encoding, *more).headers["etag"]
                for known in tag, f'"x", W/{tag}', "*":
                    again = self.ask(path, encoding,
                                     f"If-None-Match: {known}", *more)
                    self.assertEqual((again.status, again.body), (304, b""))
                    self.assertEqual(again.headers["etag"], tag)
                    self.assertIn("cache-control", again.headers)
                    self.assert_headers(again)
                other = self.ask(path, encoding, 'If-None-Match: "x"', *more)
                self.assertEqual(other.status, 200)

    def test_head_is_get_without_a_body(self):
        for path in "/", self.assets + "/main.js":
            whole = self.ask(path, HTML)
            head = self.ask(path, HTML, method="HEAD")
            for answer in whole, head:
                answer.headers.pop("date")
            self.assertEqual((head.status, head.headers),
                             (whole.status, whole.headers))

    def test_other_methods_are_told_the_right_ones(self):
        for path in "/", self.assets + "/main.js":
            answer = self.ask(path, HTML, method="POST")
            self.assertEqual(answer.status, 405)
            self.assertEqual(answer.headers["allow"], "GET, HEAD")

    def test_what_is_not_there(self):
        older = "/assets/0123456789abcdef/main.js"
        answer = self.ask(older)
        self.assertEqual(error_code(answer), (404, "not_found"))
        self.assertIn("another version", answer.json()["error"]["message"])
        self.assertEqual(answer.headers["cache-control"], "no-store")
        for path in ("/assets", "/assets/", self.assets, self.assets + "/",
                     self.assets + "/index.html", self.assets + "/none.js",
                     self.assets + "/package.json", self.assets + "/vendor",
                     self.assets + "//main.js", "/assets//main.js",
                     "/assets/live/main.js", self.assets.upper() + "/main.js",
                     self.assets + "/../../etc/passwd",
                     self.assets + "/..%2f..%2fetc%2fpasswd",
                     self.assets + "/%2e%2e/web.c",
                     self.assets + "/lib/../main.js",
                     self.assets + "/./main.js",
                     self.assets + "/main.js%00", "/assets/../main.js"):
            self.assertEqual(error_code(self.ask(path, HTML)),
                             (404, "not_found"), path)

    def test_only_under_our_own_names_and_to_our_own_pages(self):
        for path in "/", self.assets + "/main.js":
            answer = self.ask(path, HTML, host=b"evil.example")
            self.assertEqual(error_code(answer), (421, "foreign_host"))
            answer = self.ask(path, HTML, "Origin: http://evil.example")
            self.assertEqual(error_code(answer), (403, "foreign_origin"))

    def test_nothing_of_the_api_is_kept_or_taken_for_something_else(self):
        answers = [self.server.call("GET", "/api/me"),
                   self.server.call("GET", "/api/me", token=None),
                   self.server.call("POST", "/api/tokens", {"label": "x"}),
                   self.server.call("GET", "/api/none"),
                   self.ask("/"), self.ask("/metrics"), self.ask("/healthz")]
        self.assertEqual([a.status for a in answers],
                         [200, 401, 201, 404, 200, 200, 200])
        for answer in answers:
            self.assertEqual(answer.headers["cache-control"], "no-store")
            self.assertEqual(answer.headers["x-content-type-options"],
                             "nosniff")

    def test_streams_neither(self):
        with self.server.events("/api/feed") as events:
            self.assertEqual(events.headers["cache-control"], "no-store")
            self.assertEqual(events.headers["x-content-type-options"],
                             "nosniff")


class Modules(unittest.TestCase):
    """What the scripts name is there: the same walk as the browser's."""

    def test_every_import_leads_to_a_file(self):
        with Server() as server:
            page = ask(server, "/", HTML).body.decode()
            links = re.findall(r'(?:src|href)="(/assets/[^"]+)"', page)
            self.assertGreater(len(links), 2)
            assets = links[0].rsplit("/", 1)[0]
            waiting, seen = [(link, "/") for link in links], {}
            while waiting:
                path, named_by = waiting.pop()
                if path in seen:
                    continue
                answer = ask(server, path)
                self.assertEqual(answer.status, 200, f"{path} of {named_by}")
                seen[path] = answer.body
                if path.endswith(".js"):
                    waiting += [(os.path.normpath(os.path.join(
                        os.path.dirname(path), name)), path)
                        for name in IMPORT.findall(answer.body.decode())]
            self.assertIn(assets + "/vendor/preact.js", seen)
            self.assertIn(assets + "/pages/playground.js", seen)
            self.assertIn(assets + "/vendor/uplot.css", seen)
            # And nothing is left that would ask someone else.
            for path, body in seen.items():
                self.assertNotIn(b"sourceMappingURL", body, path)


class Link(unittest.TestCase):
    """What a server says about it at its first start."""

    def said_by(self, *args, folder=None):
        with tempfile.TemporaryDirectory() as new:
            p = subprocess.Popen(
                [BINARY, "serve", "--data", os.path.join(folder or new, "d"),
                 "--set", "log.level=error", *args], text=True, cwd=new,
                env=clean_environment(), stdout=subprocess.PIPE)
            # What it says when it listens comes in one piece.
            with p.stdout:
                said = p.stdout.readline()
                p.send_signal(signal.SIGTERM)
                said += p.stdout.read()
            self.assertEqual(p.wait(timeout=DEADLINE_S), 0)
            return said

    def link_of(self, said):
        """Where the link leads; its token is the one that is shown."""
        url, token = re.search(r"\n\n    (http\S+)#token=(\S+)\n",
                               said).groups()
        self.assertIn(f"    export SIGNALBOX_TOKEN={token}\n", said)
        return url

    def test_once_it_signs_in(self):
        with tempfile.TemporaryDirectory() as folder:
            at = "--listen", "127.0.0.1:0"
            said = self.said_by(*at, folder=folder)
            url = re.search(r"listening on (\S+)\n", said)[1]
            self.assertEqual(self.link_of(said), url + "/")
            again = self.said_by(*at, folder=folder)
            self.assertIn("listening on", again)
            self.assertNotIn("#token", again)

    def test_listening_on_every_address_it_is_the_nearest(self):
        for host in "0.0.0.0", "[::]":
            said = self.said_by("--listen", host + ":0", "--set",
                                "allowPlaintext=true")
            port = re.search(r"listening on http://.*:(\d+)\n", said)[1]
            self.assertEqual(self.link_of(said), f"http://127.0.0.1:{port}/")

    def test_no_link_carries_a_token_over_an_open_road(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            try:
                s.connect(("192.0.2.1", 9))  # nothing is sent
            except OSError:
                self.skipTest("this machine has no address but its own")
            beyond = s.getsockname()[0]
        with tempfile.TemporaryDirectory() as folder:
            plain = ("--listen", beyond + ":0", "--set", "allowPlaintext=true")
            said = self.said_by(*plain)
            self.assertNotIn("#token", said)
            self.assertRegex(said, f"The dashboard is at http://{beyond}:"
                                   r"\d+/ and asks for it")
            cert, key = Certs(folder).make("box")
            said = self.said_by(*plain, "--set", "tls.listen=127.0.0.1:0",
                                "--set", "tls.certFile=" + cert,
                                "--set", "tls.keyFile=" + key)
            self.assertRegex(self.link_of(said), r"^https://127.0.0.1:\d+/$")

    def test_none_where_it_is_switched_off(self):
        said = self.said_by("--listen", "127.0.0.1:0", "--set",
                            "web.enabled=false")
        self.assertIn("export SIGNALBOX_TOKEN=", said)
        self.assertNotIn("ashboard", said)
        self.assertNotIn("#token", said)


class Folder(unittest.TestCase):
    def test_a_file_of_the_folder_is_nobody_elses_answer(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "a.js"), "w",
                      encoding="utf-8") as f:
                f.write("// a file\n")
            with Server(agents=[{"id": "echo", "url": "echo:300"}],
                        config={"web": {"folder": folder}}) as server:
                with server.connect() as peer:
                    # No one is answered between the two.
                    peer.send(server.request("POST", "/api/messages", {
                        "text": "hello", "executor": {"name": "echo"}}))
                    got = server.call("GET", "/assets/live/a.js")
                    self.assertEqual(got.body, b"// a file\n")
                    self.assertIn("hello", json.dumps(peer.response().json()))


class Settings(unittest.TestCase):
    def test_it_can_be_switched_off_and_on_again(self):
        with Server(config={"web": {"enabled": False}}) as server:
            answer = ask(server, "/", HTML)
            self.assertEqual(error_code(answer), (404, "not_found"))
            self.assertIn("web.enabled", answer.json()["error"]["message"])
            self.assertEqual(ask(server, "/assets/x/main.js").status, 404)
            self.assertEqual(ask(server, "/").status, 200)
            self.assertEqual(server.call("GET", "/api/me").status, 200)
            server.write_config(config={"web": {"enabled": True}})
            server.process.send_signal(1)
            eventually(lambda: ask(server, "/", HTML).status == 200,
                       "it is on again")

    def test_a_folder_is_served_as_it_is_now(self):
        with tempfile.TemporaryDirectory() as folder:
            web = os.path.join(folder, "web")
            os.makedirs(os.path.join(web, "pages"))

            def put(path, text):
                with open(os.path.join(web, path), "w",
                          encoding="utf-8") as f:
                    f.write(text)

            put("index.html", "<p>%ASSETS%/main.js")
            put("pages/a.js", "one")
            put("../secret.js", "secret")
            os.symlink("../secret.js", os.path.join(web, "link.js"))
            with Server("--set", "web.folder=" + web) as server:
                page = ask(server, "/", HTML)
                self.assertEqual(page.body, b"<p>/assets/live/main.js")
                self.assertEqual(page.headers["cache-control"], "no-store")
                self.assertIn("content-security-policy", page.headers)
                for text in "one", "two":
                    put("pages/a.js", text)
                    answer = ask(server, "/assets/live/pages/a.js")
                    self.assertEqual(answer.body.decode(), text)
                    self.assertEqual(answer.headers["cache-control"],
                                     "no-store")
                    self.assertEqual(answer.headers["content-type"],
                                     "text/javascript; charset=utf-8")
                vendor = ask(server, "/assets/live/vendor/htm.js")
                self.assertEqual(vendor.status, 200)
                for path in ("link.js", "../secret.js", "main.js",
                             "pages/../../secret.js", "%2e%2e/secret.js",
                             "/etc/passwd", "vendor/none.js", ""):
                    self.assertEqual(
                        error_code(ask(server, "/assets/live/" + path)),
                        (404, "not_found"), path)


if __name__ == "__main__":
    unittest.main()
