"""ETags over HTTP: one never means two cards."""
import unittest

from cards import card, error_code, register
from signalbox import Server


class Removed(unittest.TestCase):
    def test_an_etag_does_not_outlive_its_agent(self):
        with Server() as server:
            old = register(server, "writer").headers["etag"]
            self.assertEqual(
                server.call("DELETE", "/api/agents/writer").status, 204)
            made = server.call("POST", "/api/agents",
                               card("writer", description="another"))
            self.assertEqual(made.status, 201, made)
            self.assertNotEqual(made.headers["etag"], old)
            r = server.call("PATCH", "/api/agents/writer", {"title": "stale"},
                            f"If-Match: {old}")
            self.assertEqual(error_code(r),
                             (412, "precondition_failed"))
            r = server.call("GET", "/api/agents/writer", None,
                            f"If-None-Match: {old}")
            self.assertEqual(r.status, 200)
            r = server.call("PATCH", "/api/agents/writer", {"title": "fresh"},
                            f"If-Match: {made.headers['etag']}")
            self.assertEqual(r.status, 200, r)
            self.assertEqual(r.json()["revision"],
                             made.json()["revision"] + 1)


if __name__ == "__main__":
    unittest.main()
