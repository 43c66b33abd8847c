"""Users and tokens as docs/protocol.md promises them. Who may do what with
them is in access_test.py."""
import unittest

from signalbox import ECHO, Server, eventually, metric

AGENTS = ECHO + [{"id": "never", "url": "echo:3600000"}]


class Shared(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(agents=AGENTS)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def good(self, response, status=200):
        self.assertEqual(response.status, status, response)
        return response.json() if response.body else None

    def refused(self, response, status, code, words=""):
        self.assertEqual(response.status, status, response)
        error = response.json()["error"]
        self.assertEqual(error["code"], code, response)
        self.assertIn(words, error["message"])
        return error

    def token(self, by=None, **fields):
        """A new token, whole."""
        by = by or self.server.token
        return self.good(self.server.call("POST", "/api/tokens", fields,
                                          token=by), 201)

    def me(self, token):
        return self.server.call("GET", "/api/me", token=token)

    def revoke(self, token_id, **more):
        self.assertEqual(self.server.call(
            "DELETE", f"/api/tokens/{token_id}", **more).status, 204)


class LastAdmin(Shared):
    def test_its_token_is_revoked_with_a_confirmation_alone(self):
        with Server() as server:
            mine = server.call("GET", "/api/me").json()["token_id"]
            path = f"/api/tokens/{mine}"
            r = server.call("DELETE", path)
            self.assertEqual((r.status, r.json()["error"]["code"]),
                             (412, "precondition_failed"))
            self.assertEqual(r.json()["error"]["details"],
                             {"confirm": "last_admin_token"})
            self.assertIn("?confirm=last_admin_token",
                          r.json()["error"]["message"])
            for wrong in ("yes", "", "last_admin"):
                r = server.call("DELETE", f"{path}?confirm={wrong}")
                self.assertEqual(r.status, 400, wrong)
            self.assertEqual(server.call("GET", "/api/me").status, 200)
            r = server.call("DELETE", path + "?confirm=last_admin_token")
            self.assertEqual(r.status, 204)
            self.assertEqual(server.call("GET", "/api/me").status, 401)

    def test_others_learn_nothing_of_it(self):
        with Server() as server:
            anna = server.user("anna")
            mine = server.call("GET", "/api/me").json()["token_id"]
            for query in ("", "?confirm=last_admin_token"):
                r = server.call("DELETE", f"/api/tokens/{mine}{query}",
                                token=anna)
                self.assertEqual(r.status, 404)
            hers = server.call("GET", "/api/me", token=anna).json()
            r = server.call("DELETE", f"/api/tokens/{hers['token_id']}",
                            token=anna)
            self.assertEqual(r.status, 204)


class Names(Shared):
    def ask(self, *headers, host=None):
        with self.server.connect() as peer:
            lines = ["GET /api/me HTTP/1.1",
                     f"Host: {host or self.server.host.decode()}",
                     f"Authorization: Bearer {self.server.token}", *headers]
            peer.send(("\r\n".join(lines) + "\r\n\r\n").encode())
            return peer.response()

    def test_names_of_the_configuration_are_taken(self):
        config = {"http": {"allowedHosts": ["box.example"],
                           "allowedOrigins": ["https://ui.example"]}}
        with Server(agents=AGENTS, config=config) as self.server:
            self.good(self.ask(host="box.example"))
            self.good(self.ask("Origin: https://ui.example"))
            self.refused(self.ask("Origin: https://uu.example"), 403,
                         "foreign_origin")
            self.server.write_config(agents=AGENTS, config={
                "http": {"allowedHosts": ["new.example"]}})
            eventually(lambda: self.ask(host="new.example").status == 200,
                       "the new name is taken")
            self.refused(self.ask(host="box.example"), 421, "foreign_host")


class Users(Shared):
    def post(self, **fields):
        return self.server.call("POST", "/api/users", fields)

    def patch(self, name, **fields):
        return self.server.call("PATCH", f"/api/users/{name}", fields)

    def listed(self):
        return {u["name"]: u for u in self.good(
            self.server.call("GET", "/api/users?limit=500"))["items"]}

    def test_a_user_is_made_changed_and_removed(self):
        made = self.good(self.post(name="Anna", role="user", org="acme"), 201)
        self.assertGreater(made.pop("created_ms"), 1_600_000_000_000)
        self.assertEqual(made, {"name": "Anna", "role": "user",
                                "org": "acme", "owner": None})
        self.refused(self.post(name="anna", role="user"), 409, "exists")
        plain = self.good(self.post(name="plain"), 201)
        self.assertEqual(plain["role"], "user")
        got = self.good(self.patch("ANNA", role="admin"))
        self.assertEqual((got["name"], got["role"], got["org"]),
                         ("Anna", "admin", "acme"))
        got = self.good(self.patch("anna", org=None))
        self.assertEqual((got["role"], got["org"]), ("admin", None))
        self.assertEqual(self.listed()["Anna"], got)
        token = self.token(user="anna")["token"]
        self.good(self.me(token))
        gone = self.server.call("DELETE", "/api/users/anna")
        self.assertEqual((gone.status, gone.body), (204, b""))
        self.refused(self.me(token), 401, "unauthenticated")
        self.assertNotIn("Anna", self.listed())
        self.refused(self.post(name="Anna", role="user"), 409, "exists")
        self.refused(self.server.call("DELETE", "/api/users/anna"), 404,
                     "not_found")

    def test_an_agent_acts_for_its_owner_and_ends_with_them(self):
        self.good(self.post(name="Olga", org="acme"), 201)
        self.good(self.post(name="Otto", org="Zeta"), 201)
        made = self.good(self.post(name="o-clerk", role="agent",
                                   owner="olga"), 201)
        self.assertEqual((made["owner"], made["org"]), ("Olga", "acme"))
        self.assertEqual(self.listed()["o-clerk"], made)
        token = self.token(user="o-clerk")["token"]
        me = self.good(self.me(token))
        self.assertEqual((me["user"], me["role"], me["owner"], me["org"]),
                         ("o-clerk", "agent", "Olga", "acme"))
        for fields, words in (({"owner": "o-clerk"}, "another user"),
                              ({"owner": "no-such"}, "existing user"),
                              ({"role": "user", "owner": "olga"}, "agent"),
                              ({"org": "Zeta"}, "owner's org")):
            with self.subTest(fields=fields):
                self.refused(self.patch("o-clerk", **fields), 400,
                             "bad_request", words)
        self.refused(self.post(name="o-2", role="agent", owner="o-clerk"),
                     400, "bad_request", "cannot own")
        self.refused(self.patch("olga", role="agent"), 403, "not_allowed")
        got = self.good(self.patch("o-clerk", owner="OTTO"))
        self.assertEqual((got["owner"], got["org"]), ("Otto", "Zeta"))
        self.assertEqual(self.good(self.me(token))["org"], "Zeta")
        gone = self.server.call("DELETE", "/api/users/otto")
        self.assertEqual(gone.status, 204)
        self.refused(self.me(token), 401, "unauthenticated")
        self.assertEqual(self.listed()["o-clerk"], got)
        self.refused(self.server.call("POST", "/api/tokens",
                                      {"user": "o-clerk"}), 403,
                     "not_allowed", "was removed")
        got = self.good(self.patch("o-clerk", owner=None))
        self.assertEqual((got["owner"], got["org"]), (None, None))
        self.refused(self.me(token), 401, "unauthenticated")
        self.good(self.me(self.token(user="o-clerk")["token"]))

    def test_bad_users_say_what_is_right(self):
        for fields, words in (
                ({}, "missing"),
                ({"role": "user"}, "name"),
                ({"name": "", "role": "user"}, "name"),
                ({"name": "a b", "role": "user"}, ""),
                ({"name": "a/b", "role": "user"}, ""),
                ({"name": "\0", "role": "user"}, "name"),
                ({"name": "x" * 129, "role": "user"}, "name"),
                ({"name": "x", "role": "boss"}, "role must be"),
                ({"name": "x", "role": 5}, "role"),
                ({"name": "x", "role": "user", "org": "a b"}, ""),
                ({"name": "x", "role": "user", "orgg": "a"},
                 'did you mean "org"')):
            with self.subTest(fields=fields):
                self.refused(self.post(**fields), 400, "bad_request", words)
        self.refused(self.patch("admin"), 400, "bad_request", "nothing")
        self.refused(self.patch("missing", role="user"), 404, "not_found")
        self.good(self.post(name="x" * 128, role="user"), 201)

    def test_users_are_listed_page_by_page(self):
        for n in range(7):
            self.good(self.post(name=f"page-{n}", role="user"), 201)
        names, path = [], "/api/users?limit=2"
        while path:
            page = self.good(self.server.call("GET", path))
            self.assertLessEqual(len(page["items"]), 2)
            names += [u["name"] for u in page["items"]]
            cursor = page["next_cursor"]
            path = cursor and f"/api/users?limit=2&cursor={cursor}"
        self.assertEqual(names, sorted(self.listed(), key=str.lower))

    def test_a_change_is_told_in_the_feed_to_admins_alone(self):
        user = self.server.user("feed-reader")
        after = int(metric(self.server, "signalbox_feed_newest"))
        self.good(self.post(name="told", role="user"), 201)
        path = f"/api/feed?after={after}"
        got = self.good(self.server.call("GET", path))["items"]
        self.assertEqual([(e["type"], e["data"]["user"], e["data"]["by"])
                          for e in got], [("user.created", "told", "admin")])
        page = self.good(self.server.call("GET", path, token=user))
        self.assertEqual(page["items"], [])
        self.assertEqual(page["next_after"], got[-1]["seq"])


class Tokens(Shared):
    def ids(self, query="", **more):
        return [t["id"] for t in self.good(self.server.call(
            "GET", "/api/tokens" + query, **more))["items"]]

    def test_a_token_is_shown_once(self):
        made = self.token(label="laptop")
        self.assertRegex(made.pop("token"), r"\Asbx_[A-Za-z0-9_-]{43}\Z")
        listed = self.good(self.server.call("GET", "/api/tokens?limit=500"))
        self.assertIn(made, listed["items"])
        self.assertEqual((made["user"], made["label"], made["expires_ms"]),
                         ("admin", "laptop", None))

    def test_everybody_sees_their_own_and_admins_all(self):
        anna, bob = self.server.user("t-anna"), self.server.user("t-bob")
        hers = self.token(by=anna)["id"]
        self.assertIn(hers, self.ids(token=anna))
        self.assertNotIn(hers, self.ids(token=bob))
        self.assertIn(hers, self.ids("?limit=500"))
        self.assertEqual(set(self.ids("?user=T-ANNA")),
                         set(self.ids(token=anna)))
        error = self.refused(
            self.server.call("GET", "/api/tokens?user=t-anna", token=bob),
            403, "not_allowed")
        self.assertEqual(error["details"], {"scope": "admin"})
        self.refused(self.server.call("DELETE", f"/api/tokens/{hers}",
                                      token=bob), 404, "not_found")
        self.refused(self.server.call("DELETE", "/api/tokens/x", token=bob),
                     404, "not_found")
        self.revoke(hers, token=anna)
        self.assertNotIn(hers, self.ids(token=anna))
        self.refused(self.server.call("DELETE", f"/api/tokens/{hers}",
                                      token=anna), 404, "not_found")

    def test_bad_tokens_say_what_is_right(self):
        for fields, words in (
                ({"scopes": []}, "scopes"), ({"scopes": ["fly"]}, "scopes"),
                ({"scopes": "send"}, "scopes"), ({"label": 5}, "label"),
                ({"label": "a\nb"}, "label"), ({"label": "x" * 129}, "label"),
                ({"expires_in_s": 0}, "expires_in_s"),
                ({"expires_in_s": 10 ** 12}, "expires_in_s"),
                ({"user": ""}, "user"), ({"expires": 5}, "expires_in_s")):
            with self.subTest(fields=fields):
                self.refused(self.server.call("POST", "/api/tokens", fields),
                             400, "bad_request", words)
        self.refused(self.server.call("POST", "/api/tokens",
                                      {"user": "missing"}), 404, "not_found")
        self.token(label="x" * 128)

    def test_me_says_who_calls(self):
        made = self.token(scopes=["read", "send"])
        got = self.good(self.me(made["token"]))
        self.assertEqual(got, {"user": "admin", "role": "admin", "org": None,
                               "owner": None, "scopes": ["send", "read"],
                               "token_id": made["id"], "expires_ms": None})


class Ending(Shared):
    """What a token has open ends with it."""

    def open_all(self, token):
        """A caller who waits, a stream of events, a stream of the feed."""
        body = {"text": "x", "executor": {"name": "never"}}
        waits = self.server.connect()
        waits.send(self.server.request("POST", "/api/messages", body,
                                       token=token))
        events = self.server.events("/api/messages", method="POST", body=body,
                                    token=token)
        events.take(1)
        feed = self.server.events("/api/feed?after=0", token=token)
        if token != self.server.token:
            feed.take(1)
        eventually(lambda: self.n_open("waiting") == 1, "the caller waits")
        return waits, events, feed

    def n_open(self, kind):
        for line in self.server.get("/metrics").body.decode().splitlines():
            if line.startswith(f'signalbox_calls_open{{kind="{kind}"}}'):
                return int(line.split()[-1])
        raise AssertionError(kind)

    def all_end(self, waits, events, feed):
        self.refused(waits.response(), 401, "unauthenticated")
        self.assertNotIn("result", [e.event for e in events])
        list(feed)  # comes to an end
        for one in (events, feed):
            one.close()
        waits.socket.close()
        for kind in ("waiting", "events", "feed"):
            self.assertEqual(self.n_open(kind), 0)

    def test_who_waits_is_told_that_their_rights_changed(self):
        """The token is as good as before, and the words must not say
        otherwise: anyone who believed them would throw it away."""
        for name, change in (("e-dora", {"role": "agent"}),
                             ("e-erin", {"org": "acme"})):
            token = self.server.user(name)
            waits, events, feed = self.open_all(token)
            self.good(self.server.call("PATCH", f"/api/users/{name}", change))
            error = self.refused(waits.response(), 403, "not_allowed")
            self.assertIn("has changed", error["message"])
            self.assertIn("the token is valid", error["message"])
            for one in (events, feed):
                self.assertNotIn("result", [e.event for e in one])
                one.close()
            waits.socket.close()
            self.assertEqual(self.me(token).status, 200)

    def test_an_expired_token_ends_what_it_has_open(self):
        self.server.user("e-carol")
        made = self.token(user="e-carol", expires_in_s=2)
        opened = self.open_all(made["token"])
        self.all_end(*opened)
        self.refused(self.me(made["token"]), 401, "unauthenticated")
