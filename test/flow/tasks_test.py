"""Tasks: one, many, their events, and no more of one, as docs/protocol.md
promises it."""
import os
import shutil
import socket
import tempfile
import unittest

from signalbox import ECHO, Events as Stream, Peer, Server, eventually, metric

AGENTS = ECHO + [{"id": "Slow", "url": "echo:250"},
                 {"id": "never", "url": "echo:3600000"}]
NO_SUCH = "task_01jabcdefghjkmnpqrstvwxyz0"


class Shared(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(agents=AGENTS)
        cls.anna = cls.server.user("anna")
        cls.bob = cls.server.user("bob")

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def good(self, response, status=200):
        self.assertEqual(response.status, status, response)
        return response.json()

    def refused(self, response, status, code, words=""):
        self.assertEqual(response.status, status, response)
        error = response.json()["error"]
        self.assertEqual(error["code"], code, response)
        self.assertIn(words, error["message"])
        return error

    def get(self, path, **more):
        return self.good(self.server.call("GET", path, **more))

    def over(self, text="x", **fields):
        """A task that is over; its id."""
        return self.good(self.server.send(text, **fields))["task_id"]

    def going(self, text="x", to="never", **fields):
        """A task that goes on for an hour; its id."""
        return self.good(self.server.send(text, to=to, wait_ms=0, **fields),
                         202)["task_id"]


class One(Shared):
    def test_a_task_says_everything(self):
        task_id = self.over("hi", conversation_id="c-1", skill="say",
                            priority="HIGH", token=self.anna)
        got = self.get(f"/api/tasks/{task_id}")
        for key in ("created_ms", "updated_ms", "finished_ms"):
            self.assertGreater(got.pop(key), 1_600_000_000_000)
        self.assertGreater(got.pop("deadline_ms"), 1_600_000_000_000)
        self.assertEqual(got.pop("message_id")[:4], "msg_")
        self.assertEqual(got, {
            "id": task_id, "conversation_id": "c-1", "requester": "anna",
            "root_user": "anna", "agent": "echo", "skill": "say",
            "priority": "HIGH", "status": "completed", "turn": 1, "attempt": 1,
            "text": "hi", "metadata": {}, "source": {}, "depth": 0,
            "parent_task_id": None, "by_agent": None, "root_task_id": None,
            "chain": [], "inputs": [], "turns": [],
            "result": {"status": "completed", "text": "hi", "metadata": {},
                       "error": None}})

    def test_a_task_that_goes_on_has_no_result(self):
        task_id = self.going()
        eventually(lambda: self.get(f"/api/tasks/{task_id}")["status"] ==
                   "working", "it is worked on")
        got = self.get(f"/api/tasks/{task_id}")
        self.assertEqual((got["result"], got["finished_ms"], got["attempt"]),
                         (None, None, 1))

    def test_what_is_not_mine_is_not_there(self):
        """Same status, same bytes but for the id that was asked for: no one
        learns which tasks there are."""
        for task_id in (self.over(token=self.anna),
                        self.going(token=self.anna)):
            for method, path in (("GET", ""), ("GET", "/events"),
                                 ("POST", "/cancel")):
                with self.subTest(path=path):
                    theirs = self.server.call(
                        method, f"/api/tasks/{task_id}{path}", token=self.bob)
                    none = self.server.call(
                        method, f"/api/tasks/{NO_SUCH}{path}", token=self.bob)
                    self.refused(theirs, 404, "not_found")
                    self.assertEqual(
                        theirs.body.replace(task_id.encode(),
                                            NO_SUCH.encode()), none.body)
                    self.assertEqual(theirs.status, none.status)
            self.assertEqual(
                self.get(f"/api/tasks/{task_id}", token=self.anna)["id"],
                task_id)

    def test_what_cannot_be_an_id_is_not_there(self):
        for bad in ("x", "task_", NO_SUCH + "0", NO_SUCH.upper(), "..", "%20",
                    "x" * 128):
            self.refused(self.server.call("GET", f"/api/tasks/{bad}"), 404,
                         "not_found")

    def test_a_path_is_read_strictly(self):
        for bad in ("%", "%zz", "%00", "%0a", "%ff", "x" * 129):
            with self.subTest(bad=bad):
                self.refused(self.server.call("GET", f"/api/tasks/{bad}"), 400,
                             "bad_request", "path")
        for bad in ("/api/tasks/", "/api/tasks//events", "/api/tasks/x/y",
                    "/api/tasks/x/events/", "//api/tasks", "/API/tasks"):
            with self.subTest(bad=bad):
                self.refused(self.server.call("GET", bad), 404, "not_found")

    def test_an_id_may_be_written_with_percent_signs(self):
        task_id = self.over()
        written = "".join(f"%{ord(c):02x}" for c in task_id)
        self.assertEqual(self.get(f"/api/tasks/{written}")["id"], task_id)

    def test_another_method_is_told_what_there_is(self):
        got = self.server.call("PUT", f"/api/tasks/{NO_SUCH}")
        self.refused(got, 405, "method_not_allowed")
        self.assertEqual(got.headers["allow"], "GET, HEAD")
        got = self.server.call("PUT", "/api/users/anna")
        self.assertEqual(got.headers["allow"], "PATCH, DELETE")


class Many(Shared):
    def items(self, query="", **more):
        return self.get("/api/tasks" + query, **more)["items"]

    def test_a_list_is_newest_first_page_by_page(self):
        carol = self.server.user("carol")
        made = [self.over(token=carol) for _ in range(7)]
        seen, path = [], "/api/tasks?limit=3"
        sizes = []
        while path:
            page = self.get(path, token=carol)
            seen += [t["id"] for t in page["items"]]
            sizes.append(len(page["items"]))
            cursor = page["next_cursor"]
            path = cursor and f"/api/tasks?limit=3&cursor={cursor}"
        self.assertEqual(seen, made[::-1])
        self.assertEqual(sizes, [3, 3, 1])

    def test_a_list_shows_ones_own_and_admins_everything(self):
        mine = self.over(token=self.anna)
        self.assertIn(mine, [t["id"] for t in self.items()])
        self.assertIn(mine, [t["id"] for t in self.items(token=self.anna)])
        self.assertNotIn(mine, [t["id"] for t in self.items(token=self.bob)])

    def test_a_list_can_be_narrowed(self):
        dora = self.server.user("dora")
        done = self.over(token=dora, conversation_id="d 1&ä")
        slow = self.good(self.server.send("x", to="slow", token=dora))
        goes = self.going(token=dora)
        waits = [self.going(token=dora, conversation_id="q") for _ in "ab"]
        eventually(lambda: self.get(f"/api/tasks/{goes}")["status"] ==
                   "working", "it is worked on")
        eventually(lambda: self.get(f"/api/tasks/{waits[0]}")["status"] ==
                   "working", "it is worked on")
        for query, expected in {
                "?status=completed": [slow["task_id"], done],
                "?status=working": [waits[0], goes],
                "?status=queued": [waits[1]],
                "?status=failed": [],
                "?agent=slow": [slow["task_id"]],
                "?agent=Slow": [slow["task_id"]],
                "?agent=missing": [],
                "?conversation_id=d+1%26%c3%a4": [done],
                "?conversation_id=d%201%26%C3%A4&status=completed": [done],
                "?conversation_id=q&limit=1": [waits[1]],
        }.items():
            with self.subTest(query=query):
                self.assertEqual(
                    [t["id"] for t in self.items(query, token=dora)], expected)

    def test_bad_arguments_say_what_is_right(self):
        for query, words in {
                "?limit=0": "1 to 500", "?limit=501": "1 to 500",
                "?limit=x": "1 to 500", "?limit=": "1 to 500",
                "?cursor=x": "next_cursor", "?cursor=-1": "next_cursor",
                "?status=done": "completed", "?status=": "completed",
                "?statu=x": "status", "?limit=1&limit=1": "twice",
                "?agent=%": "%XX", "?agent=%00": "%XX", "?x": "limit, cursor",
                "?=": "limit, cursor",
        }.items():
            with self.subTest(query=query):
                self.refused(self.server.call("GET", "/api/tasks" + query),
                             400, "bad_request", words)

    def test_the_largest_page_is_what_may_just_be(self):
        self.assertLessEqual(len(self.items("?limit=500")), 500)
        self.assertEqual(len(self.items("?limit=1")), 1)

    def test_a_page_of_large_tasks_is_cut_and_goes_on(self):
        erin = self.server.user("erin")
        text = "\1" * 100_000  # six bytes each, said in JSON
        made = [self.over(text, token=erin) for _ in range(10)]
        seen, path, n_pages = [], "/api/tasks?limit=500", 0
        while path:
            page = self.get(path, token=erin)
            seen += [t["id"] for t in page["items"]]
            n_pages += 1
            cursor = page["next_cursor"]
            path = cursor and f"/api/tasks?limit=500&cursor={cursor}"
        self.assertEqual(seen, made[::-1])
        self.assertGreater(n_pages, 1)


class Cancel(Shared):
    def cancel(self, task_id, body=None, **more):
        return self.server.call("POST", f"/api/tasks/{task_id}/cancel", body,
                                **more)

    def test_a_cancelled_task_is_over_by_the_answer(self):
        task_id = self.going()
        got = self.good(self.cancel(task_id))
        self.assertEqual((got["id"], got["status"]), (task_id, "cancelled"))
        self.assertEqual(got["result"]["status"], "cancelled")
        self.assertEqual(self.get(f"/api/tasks/{task_id}"), got)

    def test_asked_twice_the_answer_is_the_same(self):
        task_id = self.going()
        first = self.good(self.cancel(task_id))
        self.assertEqual(self.good(self.cancel(task_id, {})), first)

    def test_what_is_over_otherwise_cannot_be_cancelled(self):
        self.refused(self.cancel(self.over()), 409, "task_is_over")

    def test_a_caller_who_waits_hears_of_it(self):
        with self.server.connect() as peer:
            peer.send(self.server.request(
                "POST", "/api/messages",
                {"text": "x", "executor": {"name": "never"},
                 "conversation_id": "cancel-1"}))
            path = "/api/tasks?conversation_id=cancel-1"
            eventually(lambda: self.get(path)["items"], "it is accepted")
            self.good(self.cancel(self.get(path)["items"][0]["id"]))
            got = peer.response()
        self.assertEqual((got.status, got.json()["status"]),
                         (200, "cancelled"))
        self.assertTrue(got.json()["error"]["code"])

    def test_a_task_that_waits_its_turn_can_be_cancelled(self):
        self.going(conversation_id="cancel-2")
        second = self.going(conversation_id="cancel-2")
        self.assertEqual(self.good(self.cancel(second))["status"],
                         "cancelled")

    def test_a_body_must_be_empty(self):
        task_id = self.going()
        self.refused(self.cancel(task_id, {"reason": "x"}), 400, "bad_request",
                     "takes none")
        self.refused(self.cancel(task_id, b"x"), 400, "invalid_json")
        self.refused(self.cancel(task_id, b"[]"), 400, "bad_request")
        self.assertNotEqual(self.get(f"/api/tasks/{task_id}")["status"],
                            "cancelled")

    def test_a_further_turn_may_follow_a_cancelled_one(self):
        task_id = self.going()
        self.good(self.cancel(task_id))
        self.good(self.server.send("again", task_id=task_id, wait_ms=0), 202)
        got = self.good(self.cancel(task_id))
        self.assertEqual([t["status"] for t in got["turns"]], ["cancelled"])
        self.assertEqual((got["turn"], got["status"]), (2, "cancelled"))

    def test_many_who_cancel_at_once_get_one_end(self):
        for to in ("never", "echo", "slow"):
            task_id = self.going(to=to)
            peers = [self.server.connect() for _ in range(8)]
            for peer in peers:
                peer.send(self.server.request(
                    "POST", f"/api/tasks/{task_id}/cancel"))
            got = {peer.response().status for peer in peers}
            for peer in peers:
                peer.socket.close()
            self.assertIn(got, ({200}, {409}))
            ends = [e["type"] for e in self.get("/api/feed?limit=500&after=" +
                                                self.recent())["items"]
                    if e["task_id"] == task_id and e["type"] != "task.accepted"]
            self.assertEqual(len(ends), 1, ends)

    def recent(self):
        newest = int(metric(self.server, "signalbox_feed_newest"))
        return str(max(0, newest - 100))


class Events(Shared):
    def stream(self, task_id, after=None, **more):
        return self.server.events(f"/api/tasks/{task_id}/events", after=after,
                                  **more)

    def test_events_come_in_order_and_end_in_the_result(self):
        body = {"text": "hello", "executor": {"name": "slow"}}
        with self.server.events("/api/messages", method="POST",
                                body=body) as events:
            got = list(events)
        self.assertEqual([e.event for e in got if e.event != "chunk"],
                         ["status"] * 3 + ["result"])
        self.assertEqual([e.data["status"] for e in got
                          if e.event == "status"],
                         ["queued", "dispatched", "working"])
        self.assertEqual("".join(e.data["text"] for e in got
                                 if e.event == "chunk"), "hello")
        self.assertEqual([e.id for e in got],
                         [f"1-{n + 1}" for n in range(len(got))])
        result = got[-1].data
        self.assertGreater(result.pop("at_ms"), 1_600_000_000_000)
        result.pop("decision")
        again = self.server.call(
            "GET", f"/api/tasks/{result['task_id']}").json()
        self.assertEqual((result["text"], result["status"], result["turn"]),
                         ("hello", "completed", 1))
        self.assertEqual(again["message_id"], result["message_id"])

    def test_the_answer_of_a_stream_has_the_fields_of_a_plain_one(self):
        plain = self.good(self.server.send("x"))
        with self.server.events(
                "/api/messages", method="POST",
                body={"text": "x", "executor": {"name": "echo"}}) as events:
            result = list(events)[-1].data
        self.assertEqual(set(result), set(plain) | {"at_ms"})
        for decision in result["decision"], plain["decision"]:
            self.assertEqual(decision.pop("id")[:4], "dec_")
        self.assertEqual(result["decision"], plain["decision"])

    def test_whoever_was_cut_off_misses_nothing(self):
        body = {"text": "w" * 1000, "executor": {"name": "slow"}}
        with self.server.events("/api/messages", method="POST",
                                body=body) as events:
            first = events.take(2)
        task_id = first[0].data["task_id"]
        with self.stream(task_id, after=first[-1].id) as events:
            rest = list(events)
        ids = [int(e.id.split("-")[1]) for e in first + rest]
        self.assertEqual(ids, list(range(1, len(ids) + 1)))
        self.assertNotIn("gap", [e.event for e in rest])
        self.assertEqual(rest[-1].event, "result")

    def test_after_may_stand_in_the_address(self):
        task_id = self.going()
        eventually(lambda: self.get(f"/api/tasks/{task_id}")["status"] ==
                   "working", "it is worked on")
        path = f"/api/tasks/{task_id}/events"
        with self.server.events(path + "?after=1-1") as events:
            self.assertEqual(events.take(1)[0].id, "1-2")
        with self.server.events(path + "?after=1-1", after="1-2") as events:
            self.assertEqual(events.take(1)[0].id, "1-3")

    def test_a_task_that_is_over_gives_its_result_alone(self):
        with self.stream(self.over("x")) as events:
            got = list(events)
        self.assertEqual([e.event for e in got], ["result"])
        self.assertEqual(got[0].data["text"], "x")

    def test_what_is_gone_is_a_gap(self):
        task_id = self.over("x")
        for after in ("1-1", "0-1", "77-1", "1-99999999"):
            with self.subTest(after=after):
                with self.stream(task_id, after=after) as events:
                    self.assertEqual([e.event for e in events],
                                     ["gap", "result"])

    def test_a_place_of_another_life_is_a_gap(self):
        task_id = self.going()
        eventually(lambda: self.get(f"/api/tasks/{task_id}")["status"] ==
                   "working", "it is worked on")
        for after in ("0-1", "2-1", "1-5000"):
            with self.subTest(after=after):
                with self.stream(task_id, after=after) as events:
                    self.server.call("GET", "/api/me")
                    if after != "1-5000":
                        self.assertEqual(events.take(2)[1].id, "1-1")
                        continue
                    self.good(self.server.call(
                        "POST", f"/api/tasks/{task_id}/cancel"))
                    self.assertEqual([e.event for e in events],
                                     ["gap", "result"])

    def test_a_malformed_place_is_refused(self):
        task_id = self.going()
        for after in ("x", "1", "1-", "-1", "1-x", "1--1", "1-1-1",
                      "1-99999999999999999999"):
            with self.subTest(after=after):
                with self.stream(task_id, after=after) as events:
                    self.refused(events.response, 400, "bad_request", "3-14")
        got = self.server.call("GET", f"/api/tasks/{task_id}/events?after=")
        self.refused(got, 400, "bad_request")

    def test_a_stream_is_not_stored_on_the_way(self):
        with self.stream(self.over()) as events:
            self.assertEqual(events.headers["cache-control"], "no-store")

    def test_metadata_with_line_ends_stays_on_one_line(self):
        body = (b'{"text":"x","executor":{"name":"echo"},'
                b'"metadata":{\r\n"a"\n:1}}')
        with self.server.connect() as peer:
            peer.send(self.server.request("POST", "/api/messages", body,
                                          "Accept: text/event-stream"))
            self.assertEqual(peer.response().status, 200)

    def test_one_who_watches_a_turn_hears_nothing_of_the_next(self):
        task_id = self.going()
        with self.stream(task_id) as events:
            events.take(1)
            self.good(self.server.call("POST", f"/api/tasks/{task_id}/cancel"))
            self.good(self.server.send("two", task_id=task_id, wait_ms=0), 202)
            got = list(events)
        self.assertEqual(got[-1].event, "result")
        self.assertEqual((got[-1].data["turn"], got[-1].data["status"]),
                         (1, "cancelled"))


class Restart(unittest.TestCase):
    def setUp(self):
        self.data = os.path.join(tempfile.mkdtemp(prefix="signalbox-test-"),
                                 "data")
        self.addCleanup(shutil.rmtree, os.path.dirname(self.data), True)

    def test_after_a_restart_a_gap_comes_first_and_then_the_result(self):
        with Server(agents=AGENTS, data=self.data) as server:
            token = server.token
            with server.events("/api/messages", method="POST",
                               body={"text": "x",
                                     "executor": {"name": "slow"}}) as events:
                seen = events.take(2)
                task_id = seen[0].data["task_id"]
                server.kill9()
        with Server(agents=AGENTS, data=self.data, token=token) as server:
            with server.events(f"/api/tasks/{task_id}/events",
                               after=seen[-1].id) as events:
                got = list(events)
        self.assertEqual(got[0].event, "gap")
        self.assertEqual([e.event for e in got].count("gap"), 1)
        self.assertEqual((got[-1].event, got[-1].data["text"]), ("result", "x"))
        self.assertTrue(all(e.id is None or e.id.startswith("2-")
                            for e in got))

    def test_what_was_answered_is_there_after_a_crash(self):
        with Server(agents=AGENTS, data=self.data) as server:
            token = server.token
            done = server.send("one", idempotency_key="k").json()
            goes = server.send("two", to="never", wait_ms=0).json()
            server.kill9()
        with Server(agents=AGENTS, data=self.data, token=token) as server:
            again = server.send("one", idempotency_key="k").json()
            self.assertEqual(again["task_id"], done["task_id"])
            task = server.call("GET", f"/api/tasks/{goes['task_id']}").json()
            self.assertEqual(task["text"], "two")
            got = server.call("POST", f"/api/tasks/{goes['task_id']}/cancel")
            self.assertEqual(got.json()["status"], "cancelled")


class Slow(unittest.TestCase):
    def nothing_is_missing(self, events):
        """Each event is the one after the last, but where a gap says so."""
        self.assertIn("chunk", [e.event for e in events])
        last = 0
        for event in events:
            number = int(event.id.split("-")[1])
            if event.event != "gap":
                self.assertEqual(number, last + 1)
            last = number

    def test_a_slow_reader_gets_every_event_in_the_end(self):
        config = {"http": {"maxUnsentBytes": 1024, "heartbeatMs": 100,
                           "maxBodyBytes": 4 << 20}}
        text = "z" * (1 << 20)
        with Server(agents=AGENTS, config=config) as server:
            with server.events("/api/messages", method="POST",
                               body={"text": text, "executor":
                                     {"name": "slow"}}) as events:
                first = events.take(1)
                eventually(lambda: metric(
                    server, "signalbox_tasks_over_total") == 1, "it is over")
                rest = list(events)
            self.assertEqual(rest[-1].event, "result")
            self.assertEqual(rest[-1].data["text"], text)
            self.assertEqual(first[0].id, "1-1")
            self.nothing_is_missing(first + rest)
            eventually(lambda: metric(server, "signalbox_calls_open") == 0,
                       "nothing is open")

    N_SLOW = 60
    BIG = "\1" * (1 << 20)  # six bytes each, said in JSON

    def crowd(self, server, task_id):
        """Many who watch and read nothing, each with little room of its
        own in the kernel."""
        peers = []
        for _ in range(self.N_SLOW):
            s = socket.socket()
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.connect(server.address)
            peers.append(Peer(s))
            self.addCleanup(s.close)
            peers[-1].send(server.request(
                "GET", f"/api/tasks/{task_id}/events", None,
                "Accept: text/event-stream"))
        eventually(lambda: metric(server, "signalbox_calls_open") ==
                   self.N_SLOW, "all watch")
        return peers

    def check_crowd(self, server, peers):
        """What they have not read is in no memory of the server's but for a
        part each; and they get it all, whenever they want it."""
        eventually(lambda: metric(server, "signalbox_http_unsent_bytes") >
                   0, "some of it waits to be read")
        self.assertLess(metric(server, "signalbox_http_buffered_bytes"),
                        self.N_SLOW * 256 * 1024)
        if os.environ["SANITIZE"] == "none":  # which keeps what was freed
            self.assertLess(metric(server, "process_resident_memory_bytes"),
                            150 << 20)
        for peer in (peers[0], peers[-1]):
            result = list(Stream(peer))[-1]
            self.assertEqual(result.event, "result")
            self.assertEqual(result.data["text"], self.BIG)

    def crowd_server(self):
        server = Server(agents=AGENTS, config={
            "http": {"maxUnsentBytes": 1024, "heartbeatMs": 100,
                     "maxBodyBytes": 8 << 20, "writeTimeoutMs": 600000}})
        self.addCleanup(server.kill)
        return server

    def test_a_crowd_that_does_not_read_costs_no_result_each(self):
        """They watch while it ends: the second of its conversation waits
        until the first is cancelled."""
        server = self.crowd_server()
        first = server.send("x", to="never", conversation_id="c",
                            wait_ms=0).json()["task_id"]
        second = server.send(self.BIG, conversation_id="c",
                             wait_ms=0).json()["task_id"]
        peers = self.crowd(server, second)
        server.call("POST", f"/api/tasks/{first}/cancel")
        eventually(lambda: metric(server, "signalbox_tasks") == 0,
                   "it is over")
        self.check_crowd(server, peers)
        server.stop()

    def test_a_crowd_that_came_too_late_costs_no_result_each(self):
        """It was over long before: what they watch is read for them."""
        server = self.crowd_server()
        peers = self.crowd(server, server.send(self.BIG).json()["task_id"])
        self.check_crowd(server, peers)
        server.stop()

    def test_a_quiet_stream_has_a_heart(self):
        config = {"http": {"heartbeatMs": 100}}
        with Server(agents=AGENTS, config=config) as server:
            task_id = server.send("x", to="never",
                                  wait_ms=0).json()["task_id"]
            with server.events(f"/api/tasks/{task_id}/events") as events:
                while events.n_comments < 3:
                    block = events.block()
                    self.assertIsNotNone(block)
                    events.n_comments += block == [":"]
