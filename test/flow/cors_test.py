"""CORS: pages of http.allowedOrigins may read answers, and no others."""
import unittest

from signalbox import Server

OURS = "https://app.example"
OTHER = "https://evil.example"
CONFIG = {"http": {"allowedOrigins": [OURS], "replyTimeoutMs": 60000}}
AGENTS = [{"id": "echo", "url": "echo:"}]
METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}
HEADERS = {"authorization", "content-type", "idempotency-key", "if-match",
           "if-none-match", "last-event-id", "signalbox-answers", "traceparent",
           "tracestate"}


def words(header):
    return {word.strip() for word in header.split(",")}


def cors(headers):
    return {name for name in headers if name.startswith("access-control")}


class Cors(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(config={**CONFIG, "agents": {"list": AGENTS}})

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def assert_readable(self, headers, origin=OURS):
        self.assertEqual(headers.get("access-control-allow-origin"), origin)
        self.assertIn("Origin", words(headers["vary"]))
        self.assertNotIn("access-control-allow-credentials", headers)
        self.assertEqual(words(headers["access-control-expose-headers"]),
                         {"Allow", "ETag", "Location", "Next-Cursor",
                          "Retry-After"})

    def assert_closed(self, headers):
        self.assertEqual(cors(headers), set())
        self.assertIn("Origin", words(headers["vary"]))

    def answers(self, origin, token):
        """One of each way to be answered: what, status, headers."""
        for what, method, path, body in (
                ("page", "GET", "/api/agents", None),
                ("one", "GET", "/api/agents/echo", None),
                ("message", "POST", "/api/messages",
                 {"text": "hi", "executor": {"name": "echo"}}),
                ("bad body", "POST", "/api/messages", {"text": 5}),
                ("no task", "GET", "/api/tasks/task_x", None),
                ("no path", "GET", "/api/nothing", None),
                ("no method", "DELETE", "/api/messages", None),
                ("head", "HEAD", "/api/agents", None),
                ("hub", "GET", "/hub", None),
                ("metrics", "GET", "/metrics", None),
                ("health", "GET", "/healthz", None),
                ("front", "GET", "/", None)):
            with self.server.connect() as peer:
                peer.send(self.server.request(method, path, body,
                                              f"Origin: {origin}",
                                              token=token))
                r = peer.response(to_head=method == "HEAD")
            yield what, r.status, r.headers
        with self.server.events("/api/feed", f"Origin: {origin}",
                                token=token) as stream:
            yield "stream", stream.status, stream.headers

    def test_every_answer_can_be_read_by_an_allowed_page(self):
        seen = {}
        for what, status, headers in self.answers(OURS, self.server.token):
            with self.subTest(what):
                self.assert_readable(headers)
            seen[what] = status
        self.assertEqual(seen, {"page": 200, "one": 200, "message": 200,
                                "bad body": 400, "no task": 404,
                                "no path": 404, "no method": 405, "head": 200,
                                "hub": 426, "metrics": 200, "health": 200,
                                "front": 200, "stream": 200})

    def test_so_can_the_answer_to_a_token_that_is_not_good(self):
        for token in (None, "sbx_" + "0" * 43):
            r = self.server.call("GET", "/api/me", None, f"Origin: {OURS}",
                                 token=token)
            self.assertEqual(r.status, 401)
            self.assert_readable(r.headers)

    def test_no_other_page_can_read_any(self):
        for origin in (OTHER, "null", "", "http://app.example",
                       "https://app.example:444", "https://sub.app.example",
                       "https://app.example.evil.example"):
            for what, _, headers in self.answers(origin, self.server.token):
                with self.subTest(f"{origin} {what}"):
                    self.assert_closed(headers)

    def test_who_is_no_page_is_told_nothing_of_it(self):
        r = self.server.call("GET", "/api/agents")
        self.assertEqual(r.status, 200)
        self.assert_closed(r.headers)
        own = "http://" + self.server.host.decode()
        r = self.server.call("GET", "/api/agents", None, f"Origin: {own}")
        self.assertEqual(r.status, 200)
        self.assert_closed(r.headers)

    def test_two_origins_are_none(self):
        r = self.server.call("GET", "/api/agents", None, f"Origin: {OURS}",
                             f"Origin: {OTHER}")
        self.assertEqual(r.status, 400)
        self.assert_closed(r.headers)

    def asks(self, path, origin, *headers):
        return self.server.call("OPTIONS", path, None, f"Origin: {origin}",
                                "Access-Control-Request-Method: POST",
                                *headers, token=None)

    def test_a_browser_that_asks_first_is_told(self):
        for path in ("/api/messages", "/api/agents/x", "/api/nothing", "/hub"):
            r = self.asks(path, OURS, "Access-Control-Request-Headers: "
                          "authorization,content-type")
            self.assertEqual((r.status, r.body), (204, b""), path)
            self.assert_readable(r.headers)
            self.assertEqual(
                words(r.headers["access-control-allow-methods"]), METHODS)
            self.assertEqual(
                words(r.headers["access-control-allow-headers"].lower()),
                HEADERS)
            self.assertEqual(r.headers["access-control-max-age"], "600")

    def test_for_other_pages_it_is_told_no(self):
        for origin in (OTHER, "null", ""):
            r = self.asks("/api/messages", origin)
            self.assertEqual(r.status, 403)
            self.assertEqual(r.json()["error"]["code"], "foreign_origin")
            self.assert_closed(r.headers)

    def test_options_of_anybody_else_are_a_method_like_any_other(self):
        r = self.server.call("OPTIONS", "/api/messages", token=None)
        self.assertEqual((r.status, r.headers["allow"]), (405, "POST"))
        r = self.server.call("OPTIONS", "/api/messages", None,
                             f"Origin: {OURS}", token=None)
        self.assertEqual(r.status, 405)
        own = "http://" + self.server.host.decode()
        self.assertEqual(self.asks("/api/messages", own).status, 405)
        self.assertEqual(self.asks("/api/nothing", own).status, 404)

    def test_the_next_request_of_a_connection_is_judged_by_itself(self):
        with self.server.connect() as peer:
            for origin in (OURS, OTHER, OURS):
                peer.send(self.server.request("GET", "/api/agents", None,
                                              f"Origin: {origin}"))
                r = peer.response()
                if origin == OURS:
                    self.assert_readable(r.headers)
                else:
                    self.assert_closed(r.headers)


if __name__ == "__main__":
    unittest.main()
