"""/metrics where it is not for everybody: a token, or an address of its own."""
import socket
import tempfile
import unittest

from signalbox import Peer, Server, address_of, refuses_to_start, request

CLOSED = {"metrics": {"public": False}}


def code(r):
    return r.status, r.json()["error"]["code"]


def figures(r):
    return r.status == 200 and b"signalbox_build_info" in r.body


class Public(unittest.TestCase):
    def test_it_is_for_everybody_unless_it_is_closed(self):
        with Server() as server:
            self.assertTrue(figures(server.get("/metrics")))
            self.assertTrue(figures(server.call("GET", "/metrics")))


class Closed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(config=CLOSED)
        cls.anna = cls.server.user("anna")

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def token(self, user, scopes, by=None):
        r = self.server.call("POST", "/api/tokens",
                             {"user": user, "scopes": scopes},
                             token=by or self.server.token)
        return r.json().get("token") or code(r)

    def read(self, token, method="GET"):
        return self.server.call(method, "/metrics", token=token)

    def test_without_a_token_nobody_reads_it(self):
        self.assertEqual(code(self.read(None)), (401, "unauthenticated"))
        r = self.read("sbx_" + "0" * 43)
        self.assertEqual(code(r), (401, "unauthenticated"))
        self.assertNotIn(b"signalbox_build_info", r.body)

    def test_a_user_does_not_read_it(self):
        r = self.read(self.anna)
        self.assertEqual(code(r), (403, "not_allowed"))
        self.assertEqual(r.json()["error"]["details"], {"scope": "metrics"})

    def test_an_admin_does(self):
        self.assertTrue(figures(self.read(self.server.token)))

    def test_a_token_for_it_reads_it_and_nothing_else(self):
        token = self.token("anna", ["metrics"])
        self.assertTrue(figures(self.read(token)))
        for path in ("/api/agents", "/api/tasks", "/api/feed",
                     "/api/ledger/balance", "/api/config"):
            r = self.server.call("GET", path, token=token)
            self.assertEqual(code(r), (403, "not_allowed"), path)
        r = self.server.send("hi", token=token)
        self.assertEqual(code(r), (403, "not_allowed"))

    def test_nobody_gives_it_to_themselves(self):
        self.assertEqual(self.token("anna", ["metrics"], by=self.anna),
                         (403, "not_allowed"))
        plain = self.token("anna", ["read"], by=self.anna)
        self.assertEqual(code(self.read(plain)), (403, "not_allowed"))

    def test_no_token_has_it_unasked(self):
        for token in (self.server.token, self.anna):
            me = self.server.call("GET", "/api/me", token=token).json()
            self.assertNotIn("metrics", me["scopes"])

    def test_signs_of_life_stay_open(self):
        for path in ("/healthz", "/readyz"):
            self.assertEqual(self.server.get(path).status, 200)


class Side(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--set", "metrics.listen=127.0.0.1:0",
                            config=CLOSED)
        cls.side = cls.address(cls.server)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    @staticmethod
    def address(server):
        return address_of(server.metrics_url)

    def ask(self, path, *headers, method="GET", host=None):
        with Peer(socket.create_connection(self.side)) as peer:
            own = f"{self.side[0]}:{self.side[1]}"
            peer.send(request(method, path, *headers,
                              host=(host or own).encode()))
            return peer.response()

    def test_it_is_there_without_a_token(self):
        self.assertTrue(figures(self.ask("/metrics")))
        self.assertEqual(self.ask("/healthz").status, 200)
        self.assertEqual(self.ask("/readyz").status, 200)

    def test_the_other_address_stays_closed(self):
        self.assertEqual(code(self.server.get("/metrics")),
                         (401, "unauthenticated"))

    def test_nothing_else_is_there_even_with_an_admin_s_token(self):
        bearer = f"Authorization: Bearer {self.server.token}"
        for path in ("/", "/hub", "/api/me", "/api/agents", "/api/config",
                     "/assets/x/main.js"):
            for headers in ((), (bearer,)):
                r = self.ask(path, *headers)
                self.assertEqual(code(r), (404, "not_found"), path)
                self.assertIn("metrics.listen", r.json()["error"]["message"])
        r = self.ask("/api/tokens", bearer, method="POST")
        self.assertEqual(r.status, 404)

    def test_no_web_page_reads_it_through_a_name_of_its_own(self):
        self.assertEqual(code(self.ask("/metrics", host="evil.example")),
                         (421, "foreign_host"))
        self.assertEqual(
            code(self.ask("/metrics", "Origin: http://evil.example")),
            (403, "foreign_origin"))


class Words(unittest.TestCase):
    def refusal(self, *settings):
        with tempfile.TemporaryDirectory() as data:
            status, err = refuses_to_start(
                "serve", "--data", data,
                *(word for s in settings for word in ("--set", s)))
        self.assertNotEqual(status, 0)
        return err

    def test_two_addresses_in_each_other_s_way(self):
        err = self.refusal("listen=127.0.0.1:18787",
                           "metrics.listen=127.0.0.1:18787")
        self.assertIn("metrics.listen (127.0.0.1:18787) and listen "
                      "(127.0.0.1:18787) overlap", err)

    def test_an_address_that_is_taken(self):
        with socket.create_server(("127.0.0.1", 0)) as other:
            at = f"127.0.0.1:{other.getsockname()[1]}"
            err = self.refusal("listen=127.0.0.1:0", f"metrics.listen={at}")
        self.assertIn("in use", err)
        self.assertIn("metrics.listen", err)


if __name__ == "__main__":
    unittest.main()
