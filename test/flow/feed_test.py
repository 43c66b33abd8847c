"""The feed over HTTP: pages, streams, resuming, who sees what, retention."""
import os
import random
import shutil
import signal
import sqlite3
import tempfile
import threading
import time
import unittest

from signalbox import ECHO, Server, eventually, metric

FIELDS = {"seq", "at_ms", "type", "task_id", "conversation_id", "agent",
          "requester", "root_user", "data"}
# What a first start leaves in it: an agent of the configuration, the admin and
# the admin's token.
FIRST = ["agent.registered", "user.created", "token.created"]
N_FIRST = len(FIRST)


def history(server, after=0, limit=500, **kwargs):
    """All entries from there on, page by page."""
    entries = []
    while True:
        page = server.call("GET", f"/api/feed?after={after}&limit={limit}",
                           **kwargs).json()
        entries += page["items"]
        if not page["items"]:
            return entries
        after = page["next_after"]


def of_tasks(entries):
    """Without what everybody is told, of the agent of the configuration."""
    return [e for e in entries if not e["type"].startswith("agent.")]


def seqs(entries):
    return [e["seq"] for e in entries]


def send_many(server, n, **fields):
    """n messages, pipelined on one connection; no one waits for results."""
    body = {"text": "x", "executor": {"name": "echo"}, "wait_ms": 0, **fields}
    with server.connect() as peer:
        for i in range(0, n, 100):
            few = min(100, n - i)
            peer.send(server.request("POST", "/api/messages", body) * few)
            for _ in range(few):
                if (status := peer.response().status) not in (200, 202):
                    raise AssertionError(f"a message was answered {status}")


def settle(server, n_tasks, **kwargs):
    """Wait until so many tasks are over, and nothing more will come."""
    def ended():
        return sum(e["type"] == "task.completed"
                   for e in history(server, **kwargs)) >= n_tasks
    eventually(ended, f"{n_tasks} tasks are over")


class Pages(unittest.TestCase):
    def test_what_happened_comes_in_pages(self):
        with Server(agents=ECHO) as server:
            task = server.send("one").json()
            for text in ("two", "three"):
                server.send(text)
            page = server.call("GET", "/api/feed").json()
            newest = N_FIRST + 2 * 3
            self.assertEqual(seqs(page["items"]), list(range(1, newest + 1)))
            self.assertEqual(page["next_after"], newest)
            self.assertEqual([e["type"] for e in page["items"][:N_FIRST]],
                             FIRST)
            self.assertEqual((page["items"][0]["agent"],
                              page["items"][0]["requester"]), ("echo", None))
            for limit in (1, 3, newest):
                with self.subTest(limit):
                    self.assertEqual(history(server, limit=limit),
                                     page["items"])
            empty = server.call("GET", f"/api/feed?after={newest}").json()
            self.assertEqual(empty, {"items": [], "next_after": newest})
            for e in page["items"]:
                self.assertEqual(set(e), FIELDS)
            accepted, over = page["items"][N_FIRST:N_FIRST + 2]
            self.assertEqual(
                [accepted["type"], over["type"]],
                ["task.accepted", "task.completed"])
            for e in (accepted, over):
                self.assertEqual(e["task_id"], task["task_id"])
                self.assertEqual(e["conversation_id"],
                                 task["conversation_id"])
                self.assertEqual((e["agent"], e["requester"], e["root_user"]),
                                 ("echo", "admin", "admin"))
            self.assertEqual(
                accepted["data"],
                {"status": "queued", "turn": 1, "priority": "NORMAL",
                 "layer": "explicit", "decision_id": task["decision"]["id"]})
            self.assertEqual(over["data"]["turn"], 1)
            self.assertEqual(over["data"]["attempt"], 1)

    def test_the_last_of_it_without_the_rest(self):
        with Server(agents=ECHO) as server:
            anna = server.user("anna")

            def last(n, token=server.token):
                r = server.call("GET", f"/api/feed?last={n}", token=token)
                self.assertEqual(r.status, 200, r)
                return r.json()

            public = last(5, anna)["items"]
            self.assertEqual([(e["type"], e["requester"], e["data"])
                              for e in public],
                             [("agent.registered", None, {})])
            for text in ("one", "two", "three"):
                server.send(text, token=anna)
                server.send(text)
            entries = history(server)
            newest = entries[-1]["seq"]
            mine = public + [e for e in entries if e["requester"] == "anna"]
            for n in (1, 3, len(entries), 500):
                self.assertEqual(last(n), {"items": entries[-n:],
                                           "next_after": newest})
                self.assertEqual(last(n, anna), {"items": mine[-n:],
                                                 "next_after": newest})
            server.send("next")
            more = server.call("GET", f"/api/feed?after={newest}").json()
            self.assertEqual([e["type"] for e in more["items"]],
                             ["task.accepted", "task.completed"])

    def test_last_stands_alone_and_has_its_bounds(self):
        with Server(agents=ECHO) as server:
            for query in ("last=0", "last=501", "last=-1", "last=", "last=x",
                          "last=5&after=1", "last=5&limit=5"):
                r = server.call("GET", f"/api/feed?{query}")
                self.assertEqual(r.status, 400, query)
                self.assertIn("last", r.json()["error"]["message"])
            for header in ("Accept: text/event-stream", "Last-Event-ID: 1"):
                r = server.call("GET", "/api/feed?last=5", None, header)
                self.assertEqual(r.status, 400, header)

    def test_who_sees_little_is_shown_what_is_not_too_far_back(self):
        """A call looks at so many entries and no more."""
        span = 20000
        with tempfile.TemporaryDirectory() as folder:
            with Server(agents=ECHO, data=folder) as server:
                admin, anna = server.token, server.user("anna")
                server.send("x", token=anna)
                entries = history(server)
            hers = [e for e in entries if e["requester"] == "anna"]
            newest = entries[-1]["seq"]
            db = sqlite3.connect(os.path.join(folder, "signalbox.db"))
            # As many of others that just the later of hers is near enough.
            more = hers[-1]["seq"] - 1 + span - newest
            db.execute("INSERT INTO feed (at_ms, type, requester, root_user) "
                       "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL "
                       "SELECT i + 1 FROM n WHERE i < ?) SELECT ?, "
                       "'task.accepted', 'bob', 'bob' FROM n",
                       (more, int(time.time() * 1000)))
            db.commit()
            db.close()
            with Server(agents=ECHO, data=folder, token=admin) as server:
                page = server.call("GET", "/api/feed?last=9",
                                   token=anna).json()
                self.assertEqual(page, {"items": hers[-1:],
                                        "next_after": newest + more})

    def test_a_cursor_that_is_none_is_refused_in_words(self):
        with Server(agents=ECHO) as server:
            for after in ("-1", "x", "1.5", "", "9223372036854775808"):
                for accept in ((), ("Accept: text/event-stream",)):
                    with self.subTest(after=after, accept=accept):
                        r = server.call("GET", f"/api/feed?after={after}",
                                        None, *accept)
                        self.assertEqual(r.status, 400)
                        error = r.json()["error"]
                        self.assertEqual(error["code"], "bad_request")
                        self.assertIn("after", error["message"])
            r = server.call("GET", "/api/feed", None, "Last-Event-ID: x",
                            "Accept: text/event-stream")
            self.assertEqual(r.status, 400)

    def test_a_cursor_behind_the_newest_is_led_back(self):
        """It is from before a restore: a client that kept it would miss what comes
        until the feed is as long again."""
        with Server(agents=ECHO) as server:
            anna = server.user("anna")
            server.send("x")
            newest = history(server)[-1]["seq"]
            for after in (newest + 1, 99999999, 9223372036854775807):
                for token in (server.token, anna):
                    page = server.call("GET", f"/api/feed?after={after}",
                                       token=token).json()
                    self.assertEqual(page, {"items": [],
                                            "next_after": newest})

    def test_it_needs_a_token_that_may_read(self):
        with Server(agents=ECHO) as server:
            self.assertEqual(server.call("GET", "/api/feed",
                                         token=None).status, 401)
            sender = server.call("POST", "/api/tokens",
                                 {"scopes": ["send"]}).json()["token"]
            for accept in ((), ("Accept: text/event-stream",)):
                r = server.call("GET", "/api/feed", None, *accept,
                                token=sender)
                self.assertEqual(r.status, 403)
                self.assertEqual(r.json()["error"]["details"]["scope"],
                                 "read")


class Streams(unittest.TestCase):
    def test_a_stream_is_the_pages_and_then_what_happens(self):
        with Server(agents=ECHO) as server:
            server.send("before")
            with server.events("/api/feed?after=0") as events:
                got = events.take(N_FIRST + 2)
                server.send("meanwhile")
                got += events.take(2)
                pages = history(server)
            self.assertEqual([e.data for e in got], pages)
            self.assertEqual([e.id for e in got],
                             [str(e["seq"]) for e in pages])
            self.assertEqual([e.event for e in got],
                             [e["type"] for e in pages])

    def test_without_a_cursor_it_begins_now(self):
        with Server(agents=ECHO) as server:
            server.send("before")
            with server.events("/api/feed") as events:
                task_id = server.send("after").json()["task_id"]
                self.assertEqual([e.data["task_id"] for e in events.take(2)],
                                 [task_id, task_id])

    def test_the_header_counts_more_than_the_query(self):
        """As browsers resume: the address stays, the header is new."""
        with Server(agents=ECHO) as server:
            server.send("one")
            with server.events("/api/feed?after=0", after=3) as events:
                self.assertEqual(events.take(1)[0].id, "4")

    def test_a_stream_begins_where_its_reader_really_is(self):
        with Server(agents=ECHO) as server:
            server.send("x")
            newest = history(server)[-1]["seq"]
            for after, begins in ((0, 0), (2, 2), (newest, newest)):
                with server.events("/api/feed", after=after) as events:
                    self.assertEqual(events.block(), [f"id: {begins}"])
            with server.events("/api/feed") as events:
                self.assertEqual(events.block(), [f"id: {newest}"])

    def test_a_reader_who_was_further_than_the_feed_is_told_so(self):
        with Server(agents=ECHO) as server:
            anna = server.user("anna")
            server.send("x")
            for after in (1, 99999999):
                for token in (server.token, anna):
                    newest = history(server)[-1]["seq"]
                    after = max(after, newest + 1)
                    with server.events("/api/feed", after=after,
                                       token=token) as events:
                        gap = events.take(1)[0]
                        self.assertEqual(gap, (str(newest), "gap",
                                               {"after": after,
                                                "newest": newest}))
                        server.send("y", token=token)
                        self.assertEqual([int(e.id) for e in events.take(2)],
                                         [newest + 1, newest + 2])

    def test_silence_is_filled_with_comments(self):
        with Server(agents=ECHO,
                    config={"http": {"heartbeatMs": 10}}) as server:
            with server.events("/api/feed") as events:
                while events.text.count(b":\n\n") < 3:
                    self.assertTrue(events.more())
                server.send("x")
                self.assertEqual(events.take(1)[0].event, "task.accepted")
                self.assertGreaterEqual(events.n_comments, 3)

    def test_stopping_ends_streams_well(self):
        with Server(agents=ECHO) as server:
            with server.events("/api/feed?after=0") as events:
                events.take(N_FIRST)
                server.process.send_signal(signal.SIGTERM)
                self.assertEqual(list(events), [])


class WhoSeesWhat(unittest.TestCase):
    def test_users_see_what_is_about_their_tasks_and_nothing_else(self):
        with Server(agents=ECHO) as server:
            tokens = {name: server.user(name) for name in ("anna", "bob")}
            tasks = {name: set() for name in tokens}
            with server.events("/api/feed", token=tokens["anna"]) as annas, \
                    server.events("/api/feed", token=tokens["bob"]) as bobs:
                for i in range(20):
                    name = random.Random(i).choice(("anna", "bob"))
                    tasks[name].add(server.send(
                        "x", token=tokens[name]).json()["task_id"])
                    server.send("the admin's own")
                for name, events in (("anna", annas), ("bob", bobs)):
                    live = [e.data for e in
                            events.take(2 * len(tasks[name]))]
                    pages = history(server, token=tokens[name])
                    self.assertEqual(pages[0]["type"], "agent.registered")
                    pages = of_tasks(pages)
                    self.assertEqual(live, pages)
                    self.assertEqual({e["task_id"] for e in pages},
                                     tasks[name])
                    with server.events("/api/feed?after=0",
                                       token=tokens[name]) as again:
                        self.assertEqual(of_tasks(
                            e.data for e in again.take(len(pages) + 1)),
                            pages)
            everything = history(server)
            self.assertEqual(seqs(everything),
                             list(range(1, everything[-1]["seq"] + 1)))
            self.assertTrue({"user.created", "token.created"} <=
                            {e["type"] for e in everything})

    def test_a_page_goes_on_behind_what_is_for_others(self):
        with Server(agents=ECHO) as server:
            anna = server.user("anna")
            server.send("x")
            page = server.call("GET", "/api/feed", token=anna).json()
            page["items"] = of_tasks(page["items"])
            self.assertEqual(page, {"items": [],
                                    "next_after": history(server)[-1]["seq"]})

    def test_who_is_no_admin_any_more_is_shut_out(self):
        """An open stream shows what its token allowed; it must not stay."""
        with Server(agents=ECHO) as server:
            boss = server.user("boss", role="admin")
            with server.events("/api/feed", token=boss) as events:
                server.call("PATCH", "/api/users/boss", {"role": "user"})
                list(events)  # it ends
            server.send("x")
            self.assertEqual(of_tasks(history(server, token=boss)), [])


class Resuming(unittest.TestCase):
    def setUp(self):
        self.data = tempfile.mkdtemp(prefix="signalbox-test-")
        self.addCleanup(shutil.rmtree, self.data, ignore_errors=True)
        self.random = random.Random(20260715)

    def read_some(self, server, got, **kwargs):
        """Go on behind the last one, and be cut off somewhere."""
        with server.events("/api/feed", after=got[-1] if got else 0,
                           **kwargs) as events:
            for event in events:
                got.append(int(event.id))
                if self.random.random() < 0.1:
                    break

    def storm(self, end, rounds=6):
        """Servers that end in this way while messages come in and are read;
        what the readers got, and what there is in the end."""
        admin, anna, got, annas = None, None, [], []
        folder = os.path.join(self.data, "data")
        for _ in range(rounds):
            with Server(agents=[{"id": "echo", "url": "echo:3"}],
                        data=folder, token=admin) as server:
                admin = server.token
                anna = anna or server.user("anna")
                sender = threading.Thread(target=self.send_until_it_ends,
                                          args=(server, admin, anna))
                sender.start()
                for _ in range(8):
                    self.read_some(server, got)
                    self.read_some(server, annas, token=anna)
                end(server)
                sender.join()
        with Server(agents=ECHO, data=folder, token=admin) as server:
            self.wait_for_the_end_of_all(server)
            everything, for_anna = (history(server),
                                    history(server, token=anna))
            for have, want, token in ((got, everything, admin),
                                      (annas, for_anna, anna)):
                missing = len(want) - len(have)
                with server.events("/api/feed", after=have[-1],
                                   token=token) as events:
                    have += [int(e.id) for e in events.take(missing)]
        return got, seqs(everything), annas, seqs(for_anna)

    @staticmethod
    def wait_for_the_end_of_all(server):
        def is_over():
            types = [e["type"] for e in history(server)]
            return types.count("task.accepted") == sum(
                t in ("task.completed", "task.failed", "task.expired")
                for t in types)
        eventually(is_over, "every task is over")

    @staticmethod
    def send_until_it_ends(server, *tokens):
        try:
            for i in range(1000):
                r = server.send("x", token=tokens[i % 2], wait_ms=0)
                if r is None or r.status == 503:
                    return
        except (OSError, EOFError, ValueError):
            return

    def check(self, got, everything, annas, for_anna):
        self.assertEqual(got, everything)
        self.assertEqual(annas, for_anna)
        self.assertGreater(len(for_anna), 20)
        self.assertLess(len(for_anna), len(everything))

    def test_nothing_is_lost_or_doubled_over_restarts(self):
        self.check(*self.storm(
            lambda server: server.process.send_signal(signal.SIGTERM)))

    def test_nothing_is_lost_or_doubled_over_kills(self):
        self.check(*self.storm(Server.kill9))

    def test_seqs_go_on_where_they_were(self):
        folder = os.path.join(self.data, "data")
        with Server(agents=ECHO, data=folder) as server:
            token = server.token
            server.send("x")
            before = history(server)
            server.kill9()
        with Server(agents=ECHO, data=folder, token=token) as server:
            self.assertEqual(history(server), before)
            server.send("x")
            self.assertEqual(seqs(history(server)),
                             list(range(1, len(before) + 3)))


class SlowReaders(unittest.TestCase):
    def test_who_does_not_read_loses_nothing_and_costs_little(self):
        """More than there is in memory goes by meanwhile."""
        n, limit = 3000, 4096
        with Server(agents=ECHO,
                    config={"http": {"maxUnsentBytes": limit,
                                     "writeTimeoutMs": 600000}}) as server:
            slow = server.events("/api/feed?after=0")
            quick = server.events("/api/feed?after=0")
            sender = threading.Thread(target=send_many, args=(server, n))
            sender.start()
            got = [int(e.id) for e in quick.take(N_FIRST + 2 * n)]
            sender.join()
            self.assertEqual(got, list(range(1, N_FIRST + 2 * n + 1)))
            # What waits for the slow one is a mark's worth and one batch.
            self.assertLess(metric(server, "signalbox_http_unsent_bytes"),
                            limit + 3 * 65536)
            got = [int(e.id) for e in slow.take(N_FIRST + 2 * n)]
            self.assertEqual(got, list(range(1, N_FIRST + 2 * n + 1)))
            slow.close()
            quick.close()

    def test_many_readers_all_get_it(self):
        n = 200
        with Server(agents=ECHO,
                    config={"http": {"heartbeatMs": 50}}) as server:
            anna = server.user("anna")
            readers = [server.events("/api/feed",
                                     token=anna if i % 2 else server.token)
                       for i in range(n)]
            task_id = server.send("x", token=anna).json()["task_id"]
            server.send("not for anna")
            server.send("y", token=anna)
            for i, events in enumerate(readers):
                got = [e.data for e in events.take(4 if i % 2 else 6)]
                self.assertEqual(got[0]["task_id"], task_id)
                self.assertEqual({e["requester"] for e in got},
                                 {"anna"} if i % 2 else {"anna", "admin"})
                events.close()
            eventually(lambda: metric(server, "signalbox_feed_readers") == 0,
                       "the feed knows that they left")


class Retention(unittest.TestCase):
    """Tidying up begins some seconds after the start; both servers wait for
    it at the same time. The second start writes nothing into the feed: the
    agents of the configuration are what they were."""
    last = N_FIRST + 2 * 50  # of the first start, and of 50 tasks

    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.mkdtemp(prefix="signalbox-test-")
        cls.addClassCleanup(shutil.rmtree, cls.root, ignore_errors=True)
        cls.tokens, cls.servers = {}, {}
        for name in ("rows", "days"):
            folder = os.path.join(cls.root, name)
            with Server(agents=ECHO, data=folder) as server:
                cls.tokens[name] = server.token
                send_many(server, 50)
                settle(server, 50)
        cls.make_older("days", 60)
        for name, retention in (("rows", {"rows": 10}), ("days", {"days": 1})):
            server = Server(agents=ECHO, config={"retention": retention},
                            data=os.path.join(cls.root, name),
                            token=cls.tokens[name])
            cls.servers[name] = server
            cls.addClassCleanup(server.kill)

    @classmethod
    def make_older(cls, name, upto):
        """So many entries are two days old."""
        for entry in os.listdir(os.path.join(cls.root, name)):
            path = os.path.join(cls.root, name, entry)
            with open(path, "rb") as f:
                if f.read(6) != b"SQLite":
                    continue
            db = sqlite3.connect(path)
            at_ms = int(time.time() * 1000) - 2 * 86400 * 1000
            changed = db.execute("UPDATE feed SET at_ms=? WHERE seq<=?",
                                 (at_ms, upto)).rowcount
            db.commit()
            db.close()
            if changed != upto:
                raise AssertionError(f"{changed} entries made older")
            return
        raise AssertionError("no database there")

    def check_left(self, server, first):
        last = self.last
        eventually(lambda: seqs(history(server)) ==
                   list(range(first, last + 1)), "the older ones are gone")
        for after in (0, first - 5, first - 1):
            with server.events("/api/feed", after=after) as events:
                self.assertEqual(
                    [int(e.id) for e in events.take(last - first + 1)],
                    list(range(first, last + 1)))
                server.send("x")
                last += 2
                self.assertEqual([int(e.id) for e in events.take(2)],
                                 [last - 1, last])
        server.stop()

    def test_the_oldest_beyond_so_many_rows_go(self):
        self.check_left(self.servers["rows"], self.last - 10 + 1)

    def test_what_is_older_than_so_many_days_goes(self):
        self.check_left(self.servers["days"], 61)
