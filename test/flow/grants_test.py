"""Grants over HTTP: who may see a shared agent besides its org."""
import unittest

from cards import NOT_FOUND, card, error_code, people, register, told
from signalbox import Server, eventually

NO_GRANT = "grant_00000000000000000000000000"


def grant(server, agent, token, **fields):
    """One that must be given; as it is told."""
    r = server.call("POST", "/api/grants", {"agent": agent, **fields},
                    token=token)
    if r.status != 201:
        raise AssertionError(f"no grant on {agent}: {r}")
    return r.json()


def grants(server, token, query=""):
    """All of them, page by page."""
    found, cursor = [], ""
    while cursor is not None:
        r = server.call("GET", f"/api/grants?limit=3{query}"
                        + (cursor and "&cursor=" + cursor), token=token)
        if r.status != 200:
            raise AssertionError(r)
        found += r.json()["items"]
        cursor = r.json()["next_cursor"]
    return found


class Grants(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server().__enter__()
        cls.cast = people(cls.server)

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(None)

    def sees(self, who, name):
        return self.server.call("GET", "/api/agents/" + name,
                                token=self.cast[who]).status == 200

    def refused(self, response, code):
        self.assertEqual(error_code(response), code, response)
        return response.json()["error"]["message"]

    def test_a_grant_is_given_seen_and_taken_back(self):
        anna = self.cast["creator"]
        register(self.server, "one", token=anna, visibility="shared")
        self.assertFalse(self.sees("granted", "one"))
        made = grant(self.server, "ONE", anna, user="Gus")
        self.assertEqual(
            {k: made[k] for k in ("agent", "user", "org", "expires_ms",
                                  "by")},
            {"agent": "one", "user": "gus", "org": None, "expires_ms": None,
             "by": "anna"})
        self.assertTrue(made["id"].startswith("grant_"))
        self.assertTrue(self.sees("granted", "one"))
        self.assertEqual(grants(self.server, anna, "&agent=one"), [made])
        r = self.server.call("DELETE", "/api/grants/" + made["id"],
                             token=anna)
        self.assertEqual((r.status, r.body), (204, b""))
        self.assertFalse(self.sees("granted", "one"))
        self.assertEqual(grants(self.server, anna, "&agent=one"), [])
        r = self.server.call("DELETE", "/api/grants/" + made["id"],
                             token=anna)
        self.refused(r, (404, "not_found"))

    def test_the_same_again_changes_only_when_it_ends(self):
        anna = self.cast["creator"]
        register(self.server, "two", token=anna, visibility="shared")
        made = grant(self.server, "two", anna, org="partner")
        r = self.server.call("POST", "/api/grants",
                             {"agent": "two", "org": "partner"}, token=anna)
        self.assertEqual((r.status, r.json()), (200, made))
        r = self.server.call("POST", "/api/grants",
                             {"agent": "two", "org": "partner",
                              "expires_in_s": 1}, token=anna)
        self.assertEqual((r.status, r.json()["id"]), (200, made["id"]))
        self.assertGreater(r.json()["expires_ms"], made["created_ms"])
        eventually(lambda: not self.sees("org granted", "two"),
                   "the grant expires")
        self.assertEqual(len(grants(self.server, anna, "&agent=two")), 1)
        r = self.server.call("POST", "/api/grants",
                             {"agent": "two", "org": "partner"}, token=anna)
        self.assertEqual((r.status, r.json()["expires_ms"]), (201, None))
        self.assertEqual(len(grants(self.server, anna, "&agent=two")), 1)
        self.assertTrue(self.sees("org granted", "two"))

    def test_a_grant_counts_while_the_agent_is_shared(self):
        anna = self.cast["creator"]
        register(self.server, "three", token=anna)  # private
        grant(self.server, "three", anna, user="gus")
        self.assertFalse(self.sees("granted", "three"))
        for visibility, sees in (("shared", True), ("private", False),
                                 ("public", True), ("shared", True)):
            r = self.server.call("PATCH", "/api/agents/three",
                                 {"visibility": visibility}, token=anna)
            self.assertEqual(r.status, 200)
            self.assertEqual(self.sees("granted", "three"), sees)
        # With the agent they go, and do not come back with its name.
        self.server.call("DELETE", "/api/agents/three", token=anna)
        register(self.server, "three", token=anna, visibility="shared")
        self.assertFalse(self.sees("granted", "three"))
        self.assertEqual(grants(self.server, anna, "&agent=three"), [])

    def test_they_are_its_creator_s_and_admins(self):
        anna, ben = self.cast["creator"], self.cast["same org"]
        register(self.server, "four", token=anna, visibility="shared")
        made = grant(self.server, "four", anna, user="gus")
        other = grant(self.server, "four", self.cast["her agent"], user="ed") \
            if "agents" in self.scopes("her agent") else None
        for who in ("same org", "granted"):
            token = self.cast[who]
            self.refused(self.server.call(
                "GET", "/api/grants?agent=four", token=token),
                (403, "not_allowed"))
            self.refused(self.server.call(
                "POST", "/api/grants", {"agent": "four", "user": "otto"},
                token=token), (403, "not_allowed"))
            answers = [told(self.server.call(
                "DELETE", "/api/grants/" + identity, token=token), identity)
                for identity in (made["id"], NO_GRANT, "nonsense")]
            self.assertEqual(answers[0][0], 404)
            self.assertEqual(answers, answers[:1] * 3)
            self.assertNotIn("four", [g["agent"] for g in grants(
                self.server, token)])
        otto = self.cast["other org"]
        for name in ("four", "fuor"):
            self.refused(self.server.call(
                "GET", "/api/grants?agent=" + name, token=otto), NOT_FOUND)
            self.refused(self.server.call(
                "POST", "/api/grants", {"agent": name, "user": "missing"},
                token=otto), NOT_FOUND)
        self.assertIn(made, grants(self.server, self.server.token))
        self.assertEqual(self.server.call(
            "DELETE", "/api/grants/" + made["id"]).status, 204)
        self.assertIsNone(other)
        self.assertEqual(self.sees("same org", "four"), bool(ben))

    def scopes(self, who):
        return self.server.call("GET", "/api/me",
                                token=self.cast[who]).json()["scopes"]

    def test_pages_tell_each_once(self):
        dora = self.server.user("dora", org="acme")
        for name in ("p-a", "P-b", "p-c"):
            register(self.server, name, token=dora, visibility="shared")
        made = [grant(self.server, name, dora, org=f"org{i}")
                for name in ("p-c", "P-b", "p-a") for i in range(4)]
        listed = grants(self.server, dora)
        self.assertEqual(sorted(g["id"] for g in listed),
                         sorted(g["id"] for g in made))
        self.assertEqual([g["agent"] for g in listed],
                         ["p-a"] * 4 + ["P-b"] * 4 + ["p-c"] * 4)
        # One that goes between two pages takes nothing else with it.
        page = self.server.call("GET", "/api/grants?limit=6",
                                token=dora).json()
        self.server.call("DELETE", "/api/grants/" + page["items"][-1]["id"],
                         token=dora)
        rest = self.server.call(
            "GET", "/api/grants?limit=500&cursor=" + page["next_cursor"],
            token=dora).json()
        self.assertEqual(page["items"] + rest["items"], listed)
        self.assertIsNone(rest["next_cursor"])

    def test_what_is_wrong_is_named(self):
        anna = self.cast["creator"]
        register(self.server, "five", token=anna, visibility="shared")
        for body, words in (
                ({}, "agent is missing"),
                ({"agent": "five"}, "either user or org"),
                ({"agent": "five", "user": "ben", "org": "x"},
                 "either user or org"),
                ({"agent": "five", "user": "missing-of-that-name"},
                 'no user "missing-of-that-name"'),
                ({"agent": "five", "user": "x\u202ey"}, "no user"),
                ({"agent": "five", "user": "ben", "expires_in_s": -1},
                 "expires_in_s must be"),
                ({"agent": "five", "user": 7}, "user must be a string"),
                ({"agent": "five", "for": "ben"}, 'unknown field "for"')):
            r = self.server.call("POST", "/api/grants", body, token=anna)
            self.assertIn(words, self.refused(r, (400, "bad_request")))
        for query, words in (("cursor=x", "cursor must be"),
                             ("cursor=:x", "cursor must be"),
                             ("cursor=five:", "cursor must be"),
                             ("user=ben", 'unknown argument "user"'),
                             ("limit=x", "limit must be")):
            r = self.server.call("GET", "/api/grants?" + query, token=anna)
            self.assertIn(words, self.refused(r, (400, "bad_request")))
        r = self.server.call("DELETE", "/api/grants/" + NO_GRANT,
                             card("x"), token=anna)
        self.refused(r, (400, "bad_request"))

    def test_the_feed_tells_of_grants(self):
        eva = self.server.user("eva")
        register(self.server, "six", token=eva, visibility="shared")
        made = grant(self.server, "six", eva, user="gus")
        self.server.call("DELETE", "/api/grants/" + made["id"], token=eva)
        for token, seen in ((eva, True), (self.server.token, True),
                            (self.cast["same org"], False)):
            items = self.server.call("GET", "/api/feed?last=500",
                                     token=token).json()["items"]
            types = [e["type"] for e in items if e["agent"] == "six"
                     and e["type"].startswith("grant.")]
            self.assertEqual(
                types, ["grant.created", "grant.removed"] if seen else [])
