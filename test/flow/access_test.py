"""Who may call: tokens, scopes, other people's things, names, revocation."""
import os
import re
import select
import tempfile
import threading
import unittest

from signalbox import ECHO, Server, eventually, request

SOURCE = os.environ["SIGNALBOX_SOURCE"]
SCOPES = ("send", "read", "agents", "escalations", "ledger", "admin")
ROLES = {"admin": SCOPES, "user": ("send", "read", "agents"),
         "agent": ("send", "read")}
FORGED = "sbx_" + "A" * 43
NO_TASK = "task_00000000000000000000000000"
NO_TOKEN = "tok_00000000000000000000000000"
# Long enough that nothing ends by itself while a test runs.
AGENTS = ECHO + [{"id": "slow", "url": "echo:600000"}]


def documented_calls():
    """The table of docs/protocol.md: (method, path, scope or None)."""
    with open(os.path.join(SOURCE, "docs/protocol.md"), encoding="utf-8") as f:
        table = f.read().split("| call | scope | what it does |\n"
                               "| --- | --- | --- |\n")[1]
    calls = []
    for line in table.split("\n\n")[0].splitlines():
        cell, scope, _ = line.strip("|").split("|")
        scope = None if "any token" in scope else re.findall("`(.*?)`",
                                                             scope)[0]
        methods = []
        for word in re.findall("`(.*?)`", cell):
            method, _, path = word.partition(" ")
            methods.append(method)
            if path:
                calls += [(m, path, scope) for m in methods]
                methods = []
    return calls


def new_token(server, **fields):
    made = server.call("POST", "/api/tokens", fields)
    if made.status != 201:
        raise AssertionError(made)
    return made.json()


def error_code(response):
    return response.status, response.json()["error"]["code"]


def told(response, *names):
    """All that a client sees of an answer, but for the time, and with one
    name of the same length for those that were asked for."""
    headers = {k: v for k, v in response.headers.items() if k != "date"}
    body = response.body
    for name in names:
        body = body.replace(name.encode(), b"N" * len(name))
    return response.status, headers, body


class Tokens(unittest.TestCase):
    def test_the_first_token_is_printed_once_and_kept_nowhere(self):
        with tempfile.TemporaryDirectory() as data:
            with Server(data=data) as server:
                token = server.token
                self.assertRegex(token, r"^sbx_[A-Za-z0-9_-]{43}$")
                me = server.call("GET", "/api/me").json()
                self.assertEqual((me["user"], me["role"]), ("admin", "admin"))
                self.assertEqual(sorted(me["scopes"]), sorted(SCOPES))
                self.assertIsNone(me["expires_ms"])
                self.assertNotIn(token[4:], server.said())
            for name in os.listdir(data):
                with open(os.path.join(data, name), "rb") as f:
                    self.assertNotIn(token[4:].encode(), f.read(), name)
            with Server(data=data, token=token) as server:
                self.assertEqual(server.call("GET", "/api/me").status, 200)
                self.assertNotIn("sbx_", server.said())
                server.process.terminate()
                self.assertEqual(server.process.stdout.read(), b"")
            with Server(data=data) as server:
                self.assertIsNone(server.token)

    def test_forged_cut_and_dressed_up_tokens_are_refused(self):
        with Server() as server:
            good = server.token
            bad = [FORGED, good[:-1], good + "A", good[:-1] + "=",
                   good.upper(), good[4:], " " + good, good + " x",
                   '"' + good + '"', "sbx_", "x" * 5000]
            for token in bad:
                r = server.call("GET", "/api/me", token=token)
                self.assertEqual(error_code(r), (401, "unauthenticated"))
                self.assertNotIn(good[10:20].encode(), r.body)
            for header in ("Authorization: " + good,
                           "Authorization: Basic " + good,
                           "Authorization: Bearer\t" + good,
                           "Authorization: Bearer",
                           "Authorization:",
                           "X-Authorization: Bearer " + good):
                r = server.call("GET", "/api/me", None, header, token=None)
                self.assertEqual(error_code(r), (401, "unauthenticated"))
            r = server.call("GET", "/api/me", None,
                            "authorization: bEARER " + good, token=None)
            self.assertEqual(r.status, 200)
            # In the query it would be in logs and histories.
            r = server.call("GET", "/api/me?token=" + good, token=None)
            self.assertEqual(r.status, 401)
            r = server.call("GET", "/api/me", None,
                            "Authorization: Bearer " + FORGED)
            self.assertEqual(error_code(r), (400, "bad_request"))
            self.assertNotIn(good[4:], server.said())

    def test_expired_revoked_and_unknown_tokens_are_told_alike(self):
        with Server() as server:
            short = new_token(server, expires_in_s=1)
            gone = new_token(server)
            self.assertEqual(server.call(
                "DELETE", "/api/tokens/" + gone["id"]).status, 204)
            with server.events("/api/feed", token=short["token"]) as stream:
                self.assertEqual(stream.status, 200)
                eventually(lambda: server.call(
                    "GET", "/api/me", token=short["token"]).status == 401,
                    "the token expires")
                self.assertEqual(list(stream), [])  # what was open ends
            answers = [told(server.call("GET", "/api/me", token=t))
                       for t in (FORGED, short["token"], gone["token"])]
            self.assertEqual(answers[0][0], 401)
            self.assertEqual(answers[1:], answers[:1] * 2)
            listed = server.call("GET", "/api/tokens").json()["items"]
            self.assertNotIn(gone["id"], [t["id"] for t in listed])

    def test_a_token_is_told_once_and_survives_a_crash(self):
        with tempfile.TemporaryDirectory() as data:
            with Server(data=data) as server:
                made = new_token(server, label="laptop", scopes=["read"])
                listing = server.call("GET", "/api/tokens")
                self.assertNotIn(b"sbx_", listing.body)
                dead = new_token(server)
                self.assertEqual(server.call(
                    "DELETE", "/api/tokens/" + dead["id"]).status, 204)
                server.kill9()
            with Server(data=data, token=made["token"]) as server:
                me = server.call("GET", "/api/me").json()
                self.assertEqual(me["scopes"], ["read"])
                self.assertEqual(me["token_id"], made["id"])
                self.assertEqual(server.call(
                    "GET", "/api/me", token=dead["token"]).status, 401)

    def test_nobody_makes_a_token_that_can_do_more_than_their_own(self):
        with Server() as server:
            server.user("anna")
            server.user("bob")
            small = new_token(server, user="anna", scopes=["send"],
                              expires_in_s=3600)
            own = small["token"]
            r = server.call("POST", "/api/tokens", {}, token=own)
            self.assertEqual(r.status, 201)
            self.assertEqual(r.json()["scopes"], ["send"])
            self.assertEqual(r.json()["expires_ms"], small["expires_ms"])
            r = server.call("POST", "/api/tokens",
                            {"expires_in_s": 7200}, token=own)
            self.assertEqual(r.json()["expires_ms"], small["expires_ms"])
            for fields in ({"scopes": ["read"]}, {"scopes": ["admin"]},
                           {"user": "bob"}, {"user": "admin"},
                           {"user": "missing"}):
                r = server.call("POST", "/api/tokens", fields, token=own)
                self.assertEqual(error_code(r), (403, "not_allowed"), fields)
            # An admin's small token is no admin's token.
            small = new_token(server, scopes=["read"])["token"]
            for fields in ({"user": "anna"}, {"scopes": ["admin"]}):
                r = server.call("POST", "/api/tokens", fields, token=small)
                self.assertEqual(error_code(r), (403, "not_allowed"), fields)
            # And nothing beyond a role, for every caller.
            r = server.call("POST", "/api/tokens",
                            {"user": "anna", "scopes": ["admin"]})
            self.assertEqual(error_code(r), (403, "not_allowed"))


class Table(unittest.TestCase):
    """Every call that docs/protocol.md names, with every kind of token. That
    the document names every call there is, src/api/api_table_test.c
    shows."""

    def tokens(self, server):
        """name -> (token, scopes that it has)."""
        tokens = {"none": (None, None), "forged": (FORGED, None)}
        for role, scopes in ROLES.items():
            tokens[role] = (server.user("a-" + role, role), scopes)
        for scope in SCOPES:
            made = new_token(server, scopes=[scope])
            tokens["only " + scope] = (made["token"], (scope,))
        return tokens

    def test_every_call_takes_its_scope_and_no_less(self):
        calls = documented_calls()
        self.assertGreater(len(calls), 15)
        seen = set()
        with Server(agents=ECHO) as server:
            tokens = self.tokens(server)
            for method, path, scope in calls:
                path = path.replace("NAME", "missing")
                path = path.replace("ID", NO_TASK)
                for name, (token, scopes) in tokens.items():
                    body = {} if method in ("POST", "PATCH") else None
                    r = server.call(method, path, body, token=token)
                    with self.subTest(call=f"{method} {path}", token=name):
                        if scopes is None:
                            self.assertEqual(error_code(r),
                                             (401, "unauthenticated"))
                        elif scope and scope not in scopes:
                            self.assertEqual(error_code(r),
                                             (403, "not_allowed"))
                            self.assertEqual(r.json()["error"]["details"],
                                             {"scope": scope})
                        else:
                            self.assertNotIn(r.status, (401, 403, 405, 500))
                        seen.add(r.status)
        self.assertLessEqual({200, 201, 400, 401, 403, 404}, seen)

    def test_a_token_whose_scopes_its_role_has_lost_can_do_nothing(self):
        with Server() as server:
            server.user("anna", "admin")
            token = new_token(server, user="anna", scopes=["admin"])["token"]
            self.assertEqual(
                server.call("GET", "/api/users", token=token).status, 200)
            self.assertEqual(server.call("PATCH", "/api/users/anna",
                                         {"role": "user"}).status, 200)
            me = server.call("GET", "/api/me", token=token).json()
            self.assertEqual((me["role"], me["scopes"]), ("user", []))
            for method, path in (("GET", "/api/users"), ("GET", "/api/tasks"),
                                 ("POST", "/api/messages")):
                self.assertEqual(
                    server.call(method, path, token=token).status, 403)
            r = server.call("POST", "/api/tokens", {}, token=token)
            self.assertEqual(error_code(r), (403, "not_allowed"))


class Isolation(unittest.TestCase):
    def same(self, server, token, method, theirs, none, *bodies):
        """What is another user's is answered like what is not there: every
        byte, once the name that was asked for is the same."""
        answers = []
        for path, body in zip((theirs, none), bodies or (None, None)):
            r = server.call(method, path, body, token=token)
            self.assertEqual(r.status, 404, path)
            answers.append(told(r, *path.split("/")[3:4]))
        self.assertEqual(answers[0], answers[1])

    def test_another_s_task_is_answered_like_none(self):
        with Server(agents=AGENTS) as server:
            anna, bob = server.user("Anna"), server.user("bob")
            sent = server.send("hers", to="slow", token=anna, wait_ms=0,
                               conversation_id="mine",
                               idempotency_key="k").json()
            task = sent["task_id"]
            for tail in ("", "/events"):
                self.same(server, bob, "GET", f"/api/tasks/{task}{tail}",
                          f"/api/tasks/{NO_TASK}{tail}")
            self.same(server, bob, "POST", f"/api/tasks/{task}/cancel",
                      f"/api/tasks/{NO_TASK}/cancel")
            self.same(server, bob, "GET", "/api/conversations/mine",
                      "/api/conversations/none")
            self.same(server, bob, "POST", "/api/messages", "/api/messages",
                      {"text": "x", "task_id": task},
                      {"text": "x", "task_id": NO_TASK})
            # Hers is untouched, and for her it is there.
            r = server.call("GET", f"/api/tasks/{task}", token=anna)
            self.assertEqual(r.json()["requester"], "Anna")
            self.assertNotEqual(r.json()["status"], "cancelled")
            # His lists know nothing of it, admin's do.
            self.assertEqual(server.call("GET", "/api/tasks", token=bob)
                             .json()["items"], [])
            heard = server.call("GET", "/api/feed?after=0", token=bob).json()
            self.assertEqual({e["type"] for e in heard["items"]},
                             {"agent.registered"})
            self.assertEqual(server.call("GET", f"/api/tasks/{task}").status,
                             200)
            # Her key and her thread's name are not his.
            other = server.send("his", to="echo", token=bob,
                                conversation_id="mine", idempotency_key="k")
            self.assertEqual(other.status, 200)
            self.assertNotEqual(other.json()["task_id"], task)
            self.assertEqual(server.call(
                "POST", f"/api/tasks/{task}/cancel", token=anna).status, 200)

    def test_another_s_token_is_answered_like_none(self):
        with Server() as server:
            bob = server.user("bob")
            server.user("anna")
            hers = new_token(server, user="anna")
            self.same(server, bob, "DELETE", "/api/tokens/" + hers["id"],
                      "/api/tokens/" + NO_TOKEN)
            mine = server.call("GET", "/api/tokens", token=bob).json()["items"]
            self.assertEqual({t["user"] for t in mine}, {"bob"})
            r = server.call("GET", "/api/tokens?user=anna", token=bob)
            self.assertEqual(error_code(r), (403, "not_allowed"))
            self.assertEqual(server.call(
                "GET", "/api/me", token=hers["token"]).status, 200)

    def test_a_small_token_does_not_revoke_a_bigger_one(self):
        with Server() as server:
            for user in ("admin", "anna"):
                if user != "admin":
                    server.user(user)
                big = new_token(server, user=user)
                small = new_token(server, user=user, scopes=["read"])
                alike = new_token(server, user=user, scopes=["read"])

                def revoke(which, by):
                    return server.call("DELETE", "/api/tokens/" + which["id"],
                                       token=by["token"])
                r = revoke(big, small)
                self.assertEqual(error_code(r), (403, "not_allowed"))
                self.assertIn("allows more", r.json()["error"]["message"])
                self.assertEqual(server.call("GET", "/api/me",
                                             token=big["token"]).status, 200)
                self.assertEqual(revoke(alike, small).status, 204)
                self.assertEqual(revoke(small, small).status, 204)
                self.assertEqual(server.call("GET", "/api/me",
                                             token=small["token"]).status, 401)
                self.assertEqual(revoke(big, big).status, 204)

    def test_no_case_of_a_name_is_a_second_user(self):
        with Server(agents=AGENTS) as server:
            anna = server.user("Anna")
            task = server.send("hers", to="slow", token=anna,
                               wait_ms=0).json()["task_id"]
            for name in ("anna", "ANNA", "Anna", "aNNA"):
                r = server.call("POST", "/api/users",
                                {"name": name, "role": "user"})
                self.assertEqual(error_code(r), (409, "exists"), name)
                token = new_token(server, user=name)
                self.assertEqual(token["user"], "Anna")
                r = server.call("GET", f"/api/tasks/{task}",
                                token=token["token"])
                self.assertEqual(r.json()["requester"], "Anna")
            self.assertEqual(
                server.call("DELETE", "/api/users/ANNA").status, 204)
            self.assertEqual(
                server.call("GET", "/api/me", token=anna).status, 401)
            for name in ("anna", "ANNA", "Anna"):
                r = server.call("POST", "/api/users",
                                {"name": name, "role": "user"})
                self.assertEqual(error_code(r), (409, "exists"), name)
            names = [u["name"] for u in
                     server.call("GET", "/api/users").json()["items"]]
            self.assertEqual(names, ["admin"])

    def test_the_last_admin_stays(self):
        with Server() as server:
            for method, body in (("DELETE", None), ("PATCH",
                                                    {"role": "user"})):
                r = server.call(method, "/api/users/admin", body)
                self.assertEqual(error_code(r), (403, "not_allowed"))
            # Another one counts only with a token to call with.
            server.call("POST", "/api/users", {"name": "a", "role": "admin"})
            new_token(server, user="a", scopes=["read", "agents"])
            r = server.call("DELETE", "/api/users/admin")
            self.assertEqual(error_code(r), (403, "not_allowed"))
            self.assertIn("token", r.json()["error"]["message"])
            new_token(server, user="a")
            self.assertEqual(
                server.call("DELETE", "/api/users/admin").status, 204)


class Names(unittest.TestCase):
    def ask(self, server, host, *headers, version="1.1"):
        lines = [f"GET /api/me HTTP/{version}"]
        lines += [f"Host: {host}"] if host is not None else []
        lines += [f"Authorization: Bearer {server.token}",
                  "Connection: close", *headers, "", ""]
        with server.connect() as peer:
            peer.send("\r\n".join(lines).encode())
            r = peer.response()
        return r.status if r.status == 200 else error_code(r)

    def test_hosts(self):
        config = {"http": {"allowedHosts": ["box.example",
                                            "api.example:8443"]}}
        with Server(config=config) as server:
            for host in ("127.0.0.1:8787", "[::1]:80", "localhost",
                         "LOCALHOST:1", "localhost.", "10.1.2.3",
                         "Box.Example", "box.example:99", "box.example.",
                         "api.example:8443"):
                self.assertEqual(self.ask(server, host), 200, host)
            for host in ("evil.example", "api.example", "api.example:1",
                         "localhost.evil.example", "127.0.0.1.evil.example",
                         "sub.box.example"):
                self.assertEqual(self.ask(server, host),
                                 (421, "foreign_host"), host)
            self.assertEqual(self.ask(server, None, version="1.0"),
                             (421, "foreign_host"))
            server.write_config(config={"http": {"allowedHosts": []}})
            server.process.send_signal(1)
            eventually(lambda: self.ask(server, "box.example") ==
                       (421, "foreign_host"), "the list is reloaded")

    def test_figures_are_for_our_names_and_signs_of_life_for_any(self):
        """A page of evil.example whose name was made to lead here reads
        nothing; a load balancer need not know what we are called."""
        config = {"http": {"allowedHosts": ["box.example"]}}
        with Server(config=config) as server:
            for host in (server.host, b"10.1.2.3:9090", b"box.example",
                         b"localhost"):
                for path in ("/metrics", "/", "/healthz", "/readyz"):
                    self.assertEqual(self.open_call(server, path, host), 200,
                                     (path, host))
            for method in ("GET", "HEAD"):
                for path in ("/metrics", "/"):
                    self.assertEqual(self.open_call(server, path,
                                                    b"evil.example", method),
                                     421, path)
                for path in ("/healthz", "/readyz"):
                    self.assertEqual(self.open_call(server, path,
                                                    b"evil.example", method),
                                     200, path)
            r = server.get("/metrics", "Origin: http://evil.example")
            self.assertEqual(error_code(r), (403, "foreign_origin"))

    @staticmethod
    def open_call(server, path, host, method="GET"):
        with server.connect() as peer:
            peer.send(request(method, path, "Connection: close", host=host))
            return peer.response(to_head=method == "HEAD").status

    def test_origins(self):
        config = {"http": {"allowedOrigins": ["https://app.example"]}}
        with Server(config=config) as server:
            own = server.host.decode()
            for origin in ("http://" + own, "https://" + own,
                           "https://app.example", "https://APP.example"):
                self.assertEqual(self.ask(server, own, "Origin: " + origin),
                                 200, origin)
            for origin in ("null", "http://evil.example", "http://localhost",
                           "http://app.example", "https://app.example:444",
                           "http://" + own + ".evil.example",
                           "file://", "http://" + own + "/", ""):
                self.assertEqual(self.ask(server, own, "Origin: " + origin),
                                 (403, "foreign_origin"), origin)
            self.assertEqual(
                self.ask(server, own, "Origin: http://" + own,
                         "Origin: http://evil.example"),
                (400, "bad_request"))

    def test_a_foreign_page_learns_nothing_from_its_token(self):
        """Names come before tokens: a page cannot even try some."""
        with Server() as server:
            for token in (server.token, FORGED, None):
                r = server.call("GET", "/api/me", None,
                                "Origin: http://evil.example", token=token)
                self.assertEqual(error_code(r), (403, "foreign_origin"))
                for name in r.headers:
                    self.assertNotIn("access-control", name)


class Held:
    """What one token has open: streams of the feed and of a task, and
    callers who wait."""

    def __init__(self, server, name, token, n):
        self.server, self.name, self.token = server, name, token
        self.task = server.send("slow", to="slow", token=token,
                                wait_ms=0).json()["task_id"]
        self.feeds = [server.events("/api/feed", token=token)
                      for _ in range(n)]
        self.streams = [server.events(f"/api/tasks/{self.task}/events",
                                      token=token) for _ in range(n)]
        self.waiting = []
        for i in range(n):
            peer = server.connect()
            peer.send(server.request(
                "POST", "/api/messages",
                {"text": f"{name} {i}", "executor": {"name": "slow"},
                 "wait_ms": 600000}, token=token))
            self.waiting.append(peer)
        # They wait once their tasks are there.
        eventually(lambda: len(self.tasks()) == n + 1, f"{name}'s tasks")

    def tasks(self):
        listed = self.server.call("GET", "/api/tasks?limit=500&agent=slow",
                                  token=self.token).json()["items"]
        return [t["id"] for t in listed]

    def peers(self):
        return [e.peer for e in self.feeds + self.streams] + self.waiting

    def close(self):
        for peer in self.peers():
            peer.socket.close()


class Revocation(unittest.TestCase):
    MANY = 25

    def hold(self, server, name, token):
        held = Held(server, name, token, self.MANY)
        self.addCleanup(held.close)
        return held

    def expect_ended(self, held):
        """All that it had open ends; who waited is told why."""
        for stream in held.feeds + held.streams:
            for _ in stream:
                pass
        for peer in held.waiting:
            r = peer.response()
            self.assertEqual(error_code(r), (401, "unauthenticated"))
        r = held.server.call("GET", "/api/me", token=held.token)
        self.assertEqual(error_code(r), (401, "unauthenticated"))

    def expect_alive(self, held):
        """Everything still gets its news: the feeds a new task, the rest the
        end of the one they wait for."""
        new = held.server.send("news", token=held.token).json()["task_id"]
        for feed in held.feeds:
            while next(feed).data["task_id"] != new:
                pass
        for task in held.tasks():
            r = held.server.call("POST", f"/api/tasks/{task}/cancel",
                                 token=held.token)
            self.assertEqual(r.status, 200)
        for stream in held.streams:
            self.assertEqual(list(stream)[-1].event, "result")
        for peer in held.waiting:
            r = peer.response()
            self.assertEqual((r.status, r.json()["status"]),
                             (200, "cancelled"))

    def busy(self, server, token):
        """Someone who keeps the server at work until told to stop."""
        over = threading.Event()
        bad = []

        def work():
            while not over.is_set():
                r = server.send("load", token=token)
                if r.status != 200:
                    bad.append(r)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()

        def stop():
            over.set()
            for t in threads:
                t.join()
            self.assertEqual(bad, [])

        return stop

    def test_a_revoked_token_loses_all_it_had_open_and_no_other_does(self):
        with Server(agents=AGENTS,
                    config={"http": {"replyTimeoutMs": 3600000}}) as server:
            second = server.user("anna")
            token = new_token(server, user="anna")
            lost = self.hold(server, "anna", token["token"])
            other = self.hold(server, "bob", server.user("bob"))
            kept = [server.events("/api/feed", token=second)
                    for _ in range(self.MANY)]
            stop = self.busy(server, server.user("carl"))
            try:
                r = server.call("DELETE", "/api/tokens/" + token["id"])
                self.assertEqual(r.status, 204)
                self.expect_ended(lost)
                self.expect_alive(other)
                # Anna's other token has lost nothing.
                new = server.send("x", token=second).json()["task_id"]
                for stream in kept:
                    while next(stream).data["task_id"] != new:
                        pass
                    stream.close()
            finally:
                stop()

    def test_a_removed_user_loses_everything_and_nobody_else_does(self):
        with Server(agents=AGENTS,
                    config={"http": {"replyTimeoutMs": 3600000}}) as server:
            lost = self.hold(server, "anna", server.user("anna"))
            other = self.hold(server, "bob", server.user("bob"))
            self.assertEqual(
                server.call("DELETE", "/api/users/anna").status, 204)
            self.expect_ended(lost)
            self.expect_alive(other)

    def test_what_an_admin_had_open_ends_with_the_role(self):
        with Server(agents=ECHO) as server:
            token = server.user("anna", "admin")
            with server.events("/api/feed?after=0", token=token) as stream:
                stream.take(1)
                r = server.call("PATCH", "/api/users/anna", {"role": "user"})
                self.assertEqual(r.status, 200)
                for _ in stream:  # to its end
                    pass
            with server.events("/api/feed", token=token) as stream:
                mine = server.send("mine", token=token).json()["task_id"]
                self.assertEqual(stream.take(1)[0].data["task_id"], mine)

    def test_it_is_over_before_the_server_s_next_two_signs_of_life(self):
        """The second that the protocol promises, measured by what the server
        does and not by our clock: a stream that was opened once the
        revocation was answered gets a comment every 400 ms, and when it has
        had two, nothing of the revoked token is open."""
        config = {"http": {"heartbeatMs": 400, "replyTimeoutMs": 3600000}}
        with Server(agents=AGENTS, config=config) as server:
            bob = server.user("bob")
            server.user("anna")
            token = new_token(server, user="anna")
            lost = self.hold(server, "anna", token["token"])
            r = server.call("DELETE", "/api/tokens/" + token["id"])
            self.assertEqual(r.status, 204)
            with server.events("/api/feed", token=bob) as other:
                self.assertTrue(other.block()[0].startswith("id:"))
                for _ in range(2):
                    self.assertEqual(other.block(), [":"])
            open_still = [p for p in lost.peers() if not self.is_over(p)]
            self.assertEqual(open_still, [])

    def is_over(self, peer):
        """Whether its answer has ended, going by what has arrived."""
        while select.select([peer.socket], [], [], 0)[0] and peer.more():
            pass
        return (peer.is_closed or peer.got.endswith(b"0\r\n\r\n") or
                b"401" in peer.got)


if __name__ == "__main__":
    unittest.main()
