"""Who may call: tokens, users, scopes, names; and how what they have open ends
with them."""
import os
import re
import unittest

from signalbox import ECHO, Server, eventually, metric

AGENTS = ECHO + [{"id": "never", "url": "echo:3600000"}]
ROLES = {"admin": {"send", "read", "agents", "escalations", "ledger", "admin"},
         "user": {"send", "read"}, "agent": {"send", "read"}}
PROTOCOL = os.path.join(os.environ["SIGNALBOX_SOURCE"], "docs/protocol.md")


def promised():
    """(method, path, scope) of each call in the table of the protocol; the
    scope is None where any token will do."""
    with open(PROTOCOL, encoding="utf-8") as f:
        table = f.read().split("| call | scope |")[1].split("\n\n")[0]
    for line in table.splitlines()[2:]:
        calls, scope = [cell.strip() for cell in line.strip("| ").split("|")]
        scope = None if scope.startswith("any token") else scope.strip("`")
        methods = []
        for word in re.findall(r"`([^`]*)`", calls):
            method, _, path = word.partition(" ")
            methods.append(method)
            if not path:
                continue  # `GET`, `POST /api/users`: the path follows
            for one in methods:
                yield one, path, scope
            methods = []


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


class Scopes(Shared):
    def paths(self):
        """The calls of the protocol with something in place of its names."""
        for method, path, scope in promised():
            yield method, path.replace("NAME", "nobody").replace("ID", "x"), \
                scope

    def test_the_table_of_the_protocol_is_read(self):
        self.assertEqual(len(list(self.paths())), 16)
        self.assertEqual({s for _, _, s in self.paths()},
                         {None, "send", "read", "admin"})

    def test_every_role_may_call_what_its_scopes_say_and_nothing_else(self):
        for role, scopes in ROLES.items():
            token = self.server.user(f"role-{role}", role=role)
            for method, path, scope in self.paths():
                with self.subTest(role=role, method=method, path=path):
                    got = self.server.call(method, path, token=token)
                    if scope is None or scope in scopes:
                        self.assertNotIn(got.status, (401, 403, 405))
                    else:
                        error = self.refused(got, 403, "not_allowed")
                        self.assertEqual(error["details"], {"scope": scope})

    def test_a_token_with_one_scope_may_do_just_that(self):
        for name in sorted(ROLES["admin"]):
            token = self.token(scopes=[name])["token"]
            for method, path, scope in self.paths():
                with self.subTest(scope=name, method=method, path=path):
                    got = self.server.call(method, path, token=token)
                    if scope is None or scope == name:
                        self.assertNotIn(got.status, (401, 403, 405))
                    else:
                        self.refused(got, 403, "not_allowed")

    def test_without_a_good_token_nothing_is_said(self):
        good = self.server.token
        bad = {None, "", "x", good[:-1], good + "x", "sbx_" + "A" * 43,
               good[:-1] + ("A" if good[-1] != "A" else "B")}
        for method, path, _ in self.paths():
            for token in bad:
                got = self.server.call(method, path, token=token)
                self.refused(got, 401, "unauthenticated")
                self.assertEqual(got.headers["www-authenticate"], "Bearer")

    def test_other_ways_to_say_a_token_are_refused(self):
        good = self.server.token
        for header in (f"Authorization: Basic {good}",
                       f"Authorization: {good}", "Authorization: Bearer",
                       f"Authorization: Bearer  {good}",
                       f"Authorization: Bearer {good} x"):
            self.refused(self.server.call("GET", "/api/me", None, header,
                                          token=None), 401, "unauthenticated")
        self.refused(self.server.call("GET", "/api/me", None,
                                      f"Authorization: Bearer {good}"),
                     400, "bad_request", "once")
        self.good(self.server.call("GET", "/api/me", None,
                                   f"authorization: bearer {good}",
                                   token=None))

    def test_what_needs_no_token_needs_none(self):
        for path in ("/", "/healthz", "/readyz", "/metrics"):
            self.assertEqual(self.server.get(path).status, 200)
        self.assertIn(b"/api/messages", self.server.get("/").body)


class Names(Shared):
    def ask(self, *headers, host=None):
        with self.server.connect() as peer:
            lines = ["GET /api/me HTTP/1.1",
                     f"Host: {host or self.server.host.decode()}",
                     f"Authorization: Bearer {self.server.token}", *headers]
            peer.send(("\r\n".join(lines) + "\r\n\r\n").encode())
            return peer.response()

    def test_a_foreign_host_is_refused(self):
        for host in ("evil.example", "evil.example:80", "localhost.evil.com"):
            self.refused(self.ask(host=host), 421, "foreign_host")
        for host in ("localhost", "127.0.0.1:1", "[::1]", "LOCALHOST:80"):
            self.good(self.ask(host=host))

    def test_a_foreign_origin_is_refused(self):
        own = self.server.host.decode()
        for origin in ("http://evil.example", "null", f"http://{own}.evil"):
            self.refused(self.ask(f"Origin: {origin}"), 403, "foreign_origin")
        self.good(self.ask(f"Origin: http://{own}"))

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
                                "org": "acme"})
        self.refused(self.post(name="anna", role="user"), 409, "exists")
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

    def test_bad_users_say_what_is_right(self):
        for fields, words in (
                ({}, "missing"), ({"name": "x"}, "role"),
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
        self.refused(self.patch("nobody", role="user"), 404, "not_found")
        self.good(self.post(name="x" * 128, role="user"), 201)

    def test_the_last_admin_stays(self):
        with Server(agents=AGENTS) as self.server:
            self.refused(self.patch("admin", role="user"), 403, "not_allowed")
            self.refused(self.server.call("DELETE", "/api/users/admin"), 403,
                         "not_allowed")
            self.good(self.post(name="second", role="admin"), 201)
            self.good(self.patch("admin", role="user"))
            self.refused(self.server.call("GET", "/api/users"), 403,
                         "not_allowed")

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

    def test_nobody_makes_more_of_a_token_than_it_is(self):
        anna = self.server.user("m-anna")
        less = self.token(by=anna, scopes=["read"], expires_in_s=3600)
        again = self.token(by=less["token"])
        self.assertEqual(again["scopes"], ["read"])
        self.assertLessEqual(again["expires_ms"], less["expires_ms"])
        self.refused(self.server.call("POST", "/api/tokens",
                                      {"scopes": ["send"]},
                                      token=less["token"]),
                     403, "not_allowed")
        self.refused(self.server.call("POST", "/api/tokens",
                                      {"user": "admin"}, token=anna),
                     403, "not_allowed")
        self.refused(self.server.call("POST", "/api/tokens",
                                      {"user": "m-anna",
                                       "scopes": ["admin"]}),
                     403, "not_allowed")

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
                                      {"user": "nobody"}), 404, "not_found")
        self.token(label="x" * 128)

    def test_me_says_who_calls(self):
        made = self.token(scopes=["read", "send"])
        got = self.good(self.me(made["token"]))
        self.assertEqual(got, {"user": "admin", "role": "admin", "org": None,
                               "scopes": ["send", "read"],
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

    def test_a_revoked_token_ends_what_it_has_open(self):
        self.server.user("e-anna")
        made = self.token(user="e-anna")
        opened = self.open_all(made["token"])
        self.revoke(made["id"])
        self.refused(self.me(made["token"]), 401, "unauthenticated")
        self.all_end(*opened)

    def test_a_removed_user_ends_with_all_that_is_open(self):
        token = self.server.user("e-bob")
        opened = self.open_all(token)
        self.assertEqual(
            self.server.call("DELETE", "/api/users/e-bob").status, 204)
        self.all_end(*opened)

    def test_an_expired_token_ends_what_it_has_open(self):
        self.server.user("e-carol")
        made = self.token(user="e-carol", expires_in_s=2)
        opened = self.open_all(made["token"])
        self.all_end(*opened)
        self.refused(self.me(made["token"]), 401, "unauthenticated")

    def test_another_role_ends_streams_that_saw_more(self):
        token = self.server.user("e-dora", role="admin")
        with self.server.events("/api/feed?after=0", token=token) as feed:
            feed.take(1)
            self.good(self.server.call("PATCH", "/api/users/e-dora",
                                       {"role": "user"}))
            list(feed)
        self.good(self.me(token))

    def test_others_stay(self):
        stays = self.server.user("e-erin")
        goes = self.token(user="e-erin")
        with self.server.events("/api/feed", token=stays) as feed:
            self.revoke(goes["id"])
            self.refused(self.me(goes["token"]), 401, "unauthenticated")
            self.good(self.server.send("x", token=stays))
            self.assertEqual([e.event for e in feed.take(2)],
                             ["task.accepted", "task.completed"])
