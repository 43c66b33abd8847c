"""Messages: every promise that docs/protocol.md makes of POST /api/messages,
kept by the real server."""
import json
import shutil
import tempfile
import unittest

from signalbox import ECHO, Server, eventually, metric

HOUR = "echo:3600000"
AGENTS = ECHO + [{"id": "slow", "url": "echo:250"},
                 {"id": "never", "url": HOUR}]
OVER = {"completed", "failed", "cancelled", "expired", "dropped"}
MIB = 1024 * 1024
LIMITS = {"text": MIB, "skill": 128, "conversation_id": 128,
          "idempotency_key": 255}


class Shared(unittest.TestCase):
    """One server for all tests of a class; each has users of its own."""

    config = {}

    @classmethod
    def setUpClass(cls):
        cls.server = Server(agents=AGENTS, config=cls.config)

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
        self.assertIsInstance(error["details"], dict)
        return error

    def send(self, text, **fields):
        return self.good(self.server.send(text, **fields))

    def n_accepted(self):
        return metric(self.server, "signalbox_tasks_accepted_total")


class Answers(Shared):
    def test_an_answer_says_everything(self):
        got = self.send("hello", conversation_id="c-1", skill="say")
        self.assertEqual(got.pop("message_id")[:4], "msg_")
        self.assertEqual(got.pop("task_id")[:5], "task_")
        decision = got.pop("decision")
        self.assertEqual((decision["layer"], decision["agent"]),
                         ("explicit", "echo"))
        self.assertTrue(decision["reason"])
        self.assertEqual(got, {
            "conversation_id": "c-1", "status": "completed", "agent": "echo",
            "text": "hello", "metadata": {}, "turn": 1, "error": None})

    def test_a_conversation_is_made_if_none_is_given(self):
        one, two = self.send("a"), self.send("b")
        self.assertTrue(one["conversation_id"])
        self.assertNotEqual(one["conversation_id"], two["conversation_id"])

    def test_whoever_does_not_wait_gets_202(self):
        got = self.good(self.server.send("x", to="never", wait_ms=0), 202)
        self.assertEqual((got["status"], got["text"]), ("queued", None))
        got = self.good(self.server.send("x", to="never", wait_ms=50), 202)
        self.assertNotIn(got["status"], OVER)
        self.assertIsNone(got["text"])

    def test_the_result_ends_the_wait(self):
        self.assertEqual(self.send("x", to="slow", wait_ms=600000)["text"],
                         "x")

    def test_a_task_past_its_time_has_expired(self):
        got = self.send("x", to="never", timeout_ms=20)
        self.assertEqual((got["status"], got["text"]), ("expired", ""))
        self.assertTrue(got["error"]["code"])
        self.assertTrue(got["error"]["message"])

    def test_any_text_comes_back_as_it_was(self):
        for text in ("\0", "\x01\x1f\x7f", "ä€😀", "\u2028\u2029", '"\\/', "\r\n",
                     " ", "a" * 100000):
            self.assertEqual(self.send(text)["text"], text)

    def test_an_agent_is_found_whatever_its_case(self):
        self.assertEqual(self.send("x", to="ECHO")["agent"], "echo")

    def test_the_spellings_of_others_are_taken(self):
        got = self.good(self.server.call(
            "POST", "/api/messages",
            {"text": "x", "metadata": {"executor": {"name": "echo"},
                                       "skill_used": "sing"}}))
        task = self.good(self.server.call("GET",
                                          f"/api/tasks/{got['task_id']}"))
        self.assertEqual((task["agent"], task["skill"]), ("echo", "sing"))
        self.assertEqual(task["metadata"]["skill_used"], "sing")

    def test_metadata_and_source_are_kept_as_they_are(self):
        body = (b'{"text":"x","executor":{"name":"echo"},'
                b'"metadata":{ "b" : 1.50,\n"a":[ "\\u00e4" ] },'
                b'"source":{"z":1,"a":1e2}}')
        got = self.good(self.server.call("POST", "/api/messages", body))
        task = self.server.call("GET", f"/api/tasks/{got['task_id']}").body
        self.assertIn(b'"metadata":{ "b" : 1.50,\n"a":[ "\\u00e4" ] }', task)
        self.assertIn(b'"source":{"z":1,"a":1e2}', task)

    def test_another_content_type_is_no_reason_to_refuse(self):
        body = b'{"text":"x","executor":{"name":"echo"}}'
        self.good(self.server.call("POST", "/api/messages", body,
                                   "Content-Type: text/plain"))


class Apart(Shared):
    def test_an_answer_has_nothing_of_somebody_elses_stream(self):
        """Results that are committed together are told in one turn, out of
        one buffer."""
        server = self.server
        bob = server.user("bob-apart")

        def message(text):
            return {"text": text, "executor": {"name": "slow"}}
        stream = server.request("POST", "/api/messages", message("secret"),
                                "Accept: text/event-stream",
                                "Connection: close")
        wait = server.request("POST", "/api/messages", message("mine"),
                              "Connection: close", token=bob)
        peers = [server.connect() for _ in range(40)]
        for i, peer in enumerate(peers):
            peer.send(wait if i % 2 else stream)
        for i, peer in enumerate(peers):
            with peer:
                response = peer.response()
            if i % 2:
                self.assertEqual(self.good(response)["text"], "mine")


class Refusals(Shared):
    config = {"http": {"maxBodyBytes": 8 * MIB},
              "routing": {"threshold": 0.3}}

    def post(self, body):
        return self.server.call("POST", "/api/messages", body)

    def test_what_is_no_json_is_refused(self):
        for body in (b"", b"{", b"{}{}", b'{"text":"\xff"}', b"\xef\xbb\xbf{}",
                     b'{"text":"a","text":"b"}', b"[" * 100000):
            self.refused(self.post(body), 400, "invalid_json")
        for body in (b"[]", b"null", b"3", b'"x"'):
            self.refused(self.post(body), 400, "bad_request", "JSON object")

    def test_each_field_says_what_it_must_be(self):
        before = self.n_accepted()
        wrong = {
            "text": [None, "", 5, [], {}],
            "executor": ["echo", 5, [], {}, {"name": ""}, {"name": 5},
                         {"name": "a\n"}, {"name": "x" * 129},
                         {"name": "echo", "x": 1}],
            "skill": ["", 5, "a\0b", "a\tb", "\x7f"],
            "conversation_id": ["", 5, {}, "a\nb", "\0"],
            "task_id": ["", 5, "task_x", "msg_01jabcdefghjkmnpqrstvwxyz0"],
            "source": ["", [], 5, True],
            "metadata": ["", [], 5, True],
            "priority": ["", "normal", 1, "HIGHEST"],
            "idempotency_key": ["", 5, "a\rb", "\0"],
            "wait_ms": [-1, 600001, 1.5, "1", True, 1e3, []],
            "timeout_ms": [0, -1, 86400001, 1.5, "1", {}],
        }
        for field, values in wrong.items():
            for value in values:
                body = {"text": "x", "executor": {"name": "echo"}}
                body[field] = value
                with self.subTest(field=field, value=value):
                    self.refused(self.post(body), 400, "bad_request", field)
        self.assertEqual(self.n_accepted(), before)

    def test_an_unknown_field_is_refused_with_the_nearest(self):
        self.refused(self.post({"text": "x", "waitMs": 1}), 400, "bad_request",
                     'did you mean "wait_ms"?')
        self.refused(self.post({"text": "x", "executor": {"nmae": "echo"}}),
                     400, "bad_request", 'did you mean "executor.name"?')

    def test_each_limit_is_what_may_just_be(self):
        for field, limit in LIMITS.items():
            with self.subTest(field=field):
                at = {"text": "x", field: "n" * limit}
                over = {"text": "x", field: "n" * (limit + 1)}
                self.good(self.server.send(**at))
                code = "too_large" if field == "text" else "bad_request"
                self.refused(self.server.send(**over),
                             413 if field == "text" else 400, code, field)
        for field in ("metadata", "source"):
            with self.subTest(field=field):
                fill = 64 * 1024 - len('{"a": ""}')
                self.good(self.server.send("x", **{field: {"a": "n" * fill}}))
                self.refused(
                    self.server.send("x", **{field: {"a": "n" * (fill + 1)}}),
                    413, "too_large", field)

    def test_the_largest_message_goes_all_the_way(self):
        text = "\1" * MIB  # six bytes each, said in JSON
        got = self.good(self.server.send(text, metadata={"a": "n" * 60000}))
        self.assertEqual(got["text"], text)

    def test_a_deep_document_is_refused(self):
        deep = b"[" * 70 + b"]" * 70
        body = b'{"text":"x","metadata":{"a":' + deep + b"}}"
        self.refused(self.post(body), 400, "invalid_json", "deep")

    def test_an_unknown_agent_is_refused_with_the_nearest(self):
        error = self.refused(self.server.send("x", to="ehco"), 404,
                             "agent_not_found", "echo")
        self.assertEqual(error["details"]["nearest"], ["echo"])
        error = self.refused(self.server.send("x", to="someone-else"), 404,
                             "agent_not_found")
        self.assertEqual(error["details"]["nearest"], [])

    def test_without_an_agent_there_is_no_route(self):
        self.refused(self.post({"text": "x"}), 422, "no_route",
                     "executor.name")

    def test_too_many_unfinished_are_refused_for_now(self):
        with Server(agents=AGENTS,
                    config={"tasks": {"maxUnfinished": 2}}) as server:
            for _ in range(2):
                self.good(server.send("x", to="never", wait_ms=0), 202)
            got = server.send("x", to="never", wait_ms=0)
            self.refused(got, 503, "overloaded")
            self.assertIn("retry-after", got.headers)

    def test_arguments_of_the_query_are_refused(self):
        got = self.server.call("POST", "/api/messages?wait_ms=1",
                               {"text": "x"})
        self.refused(got, 400, "bad_request", "this call has none")


class Keys(Shared):
    """Idempotency keys."""

    def test_the_same_key_gives_the_same_task(self):
        first = self.send("x", idempotency_key="k1")
        before = self.n_accepted()
        again = self.send("x", idempotency_key="k1", wait_ms=5)
        self.assertEqual(again["task_id"], first["task_id"])
        self.assertEqual(again["message_id"], first["message_id"])
        self.assertEqual(again["text"], "x")
        self.assertEqual(self.n_accepted(), before)

    def test_a_repeat_waits_for_a_task_that_goes_on(self):
        first = self.good(self.server.send("x", to="slow", wait_ms=0,
                                           idempotency_key="k2"), 202)
        again = self.send("x", to="slow", idempotency_key="k2")
        self.assertEqual(again["task_id"], first["task_id"])
        self.assertEqual(again["status"], "completed")

    def test_a_repeat_may_ask_for_events(self):
        first = self.send("x", idempotency_key="k3")
        body = {"text": "x", "executor": {"name": "echo"},
                "idempotency_key": "k3"}
        with self.server.events("/api/messages", method="POST",
                                body=body) as events:
            last = list(events)[-1]
        self.assertEqual(last.event, "result")
        self.assertEqual(last.data["task_id"], first["task_id"])

    def test_the_layout_does_not_count(self):
        first = self.good(self.server.call(
            "POST", "/api/messages",
            b'{"text":"x","executor":{"name":"echo"},"metadata":{"a":[1,2]}}',
            "Idempotency-Key: k4"))
        again = self.good(self.server.call(
            "POST", "/api/messages",
            b' {"metadata": {"a" : [1, 2]}, "executor":\n{"name":"echo"},'
            b'"priority":"NORMAL","text":"\\u0078","idempotency_key":"k4"}'))
        self.assertEqual(again["task_id"], first["task_id"])

    def test_another_body_is_refused(self):
        self.send("x", idempotency_key="k5")
        for fields in ({"text": "y"}, {"skill": "s"}, {"timeout_ms": 5},
                       {"metadata": {"a": 1}}, {"conversation_id": "other"}):
            with self.subTest(fields=fields):
                self.refused(
                    self.server.send(**{"text": "x", "idempotency_key": "k5",
                                        **fields}),
                    422, "idempotency_mismatch")

    def test_header_and_body_must_agree(self):
        self.good(self.server.send("x", "Idempotency-Key: k6",
                                   idempotency_key="k6"))
        self.refused(self.server.send("x", "Idempotency-Key: k6",
                                      idempotency_key="k7"),
                     400, "bad_request", "differ")
        self.refused(self.server.send("x", "Idempotency-Key: k6",
                                      "Idempotency-Key: k6"),
                     400, "bad_request", "once")
        self.refused(self.server.send("x", "Idempotency-Key:"),
                     400, "bad_request", "empty")

    def test_answers_are_kept_nowhere(self):
        for answer in (self.server.send("x"), self.server.send(""),
                       self.server.call("GET", "/api/me", token="none")):
            self.assertEqual(answer.headers["cache-control"], "no-store")

    def test_a_key_belongs_to_its_user(self):
        anna = self.server.user("anna")
        mine = self.send("x", idempotency_key="k8")
        hers = self.send("x", idempotency_key="k8", token=anna)
        self.assertNotEqual(mine["task_id"], hers["task_id"])

    def test_a_repeat_of_a_past_turn_gives_that_turn(self):
        first = self.send("one", idempotency_key="k9")
        second = self.send("two", task_id=first["task_id"],
                           idempotency_key="k10")
        again = self.send("one", idempotency_key="k9")
        self.assertEqual((again["text"], again["turn"]), ("one", 1))
        self.assertEqual(again["message_id"], first["message_id"])
        again = self.send("two", task_id=first["task_id"],
                          idempotency_key="k10")
        self.assertEqual((again["text"], again["turn"]), ("two", 2))
        self.assertEqual(again["message_id"], second["message_id"])

    def test_a_repeat_is_answered_although_the_agent_has_gone(self):
        data = tempfile.mkdtemp(prefix="signalbox-test-")
        self.addCleanup(shutil.rmtree, data, True)
        with Server(agents=ECHO, data=data) as server:
            token = server.token
            first = self.good(server.send("x", idempotency_key="k"))
        with Server(agents=[], data=data, token=token) as server:
            again = self.good(server.send("x", idempotency_key="k"))
            self.assertEqual(again["task_id"], first["task_id"])
            self.assertEqual(again["decision"], first["decision"])


class Turns(Shared):
    def test_a_further_turn_goes_to_the_same_agent(self):
        first = self.send("one", conversation_id="t-1")
        second = self.good(self.server.call(
            "POST", "/api/messages",
            {"text": "two", "task_id": first["task_id"]}))
        self.assertEqual(
            [second[k] for k in ("task_id", "conversation_id", "agent",
                                 "text", "turn")],
            [first["task_id"], "t-1", "echo", "two", 2])
        self.assertNotEqual(second["message_id"], first["message_id"])

    def test_a_task_shows_its_turns(self):
        task_id = self.send("turn 1")["task_id"]
        for n in range(2, 5):
            self.send(f"turn {n}", task_id=task_id)
        task = self.good(self.server.call("GET", f"/api/tasks/{task_id}"))
        self.assertEqual((task["turn"], task["text"]), (4, "turn 4"))
        self.assertEqual([t["turn"] for t in task["turns"]], [1, 2, 3])
        for turn in task["turns"]:
            text = f"turn {turn['turn']}"
            self.assertEqual((turn["text"], turn["status"]),
                             (text, "completed"))
            self.assertEqual(turn["result"], {
                "status": "completed", "text": text, "metadata": {},
                "error": None})
        listed = self.good(self.server.call("GET", "/api/tasks"))["items"][0]
        self.assertEqual(listed["id"], task_id)
        self.assertNotIn("turns", listed)

    def test_a_task_that_goes_on_takes_no_turn(self):
        task_id = self.good(self.server.send("x", to="never", wait_ms=0),
                            202)["task_id"]
        self.refused(self.server.send("y", task_id=task_id), 409,
                     "task_not_over")

    def test_nobody_elses_task_takes_a_turn(self):
        anna = self.server.user("anna")
        mine = self.send("x")["task_id"]
        no_such = "task_01jabcdefghjkmnpqrstvwxyz0"
        self.assertEqual(
            self.refused(self.server.send("y", task_id=mine, token=anna), 404,
                         "not_found"),
            self.refused(self.server.send("y", task_id=no_such, token=anna),
                         404, "not_found"))

    def test_only_the_newest_of_many_turns_are_shown(self):
        task_id = self.send("1")["task_id"]
        for n in range(2, 104):
            self.send(str(n), task_id=task_id)
        task = self.good(self.server.call("GET", f"/api/tasks/{task_id}"))
        self.assertEqual([t["turn"] for t in task["turns"]],
                         list(range(3, 103)))


class Order(Shared):
    def status(self, answer):
        path = f"/api/tasks/{answer['task_id']}"
        return self.good(self.server.call("GET", path))["status"]

    def test_one_conversation_is_carried_one_by_one_in_order(self):
        with self.server.events("/api/feed") as feed:
            for n in range(4):
                self.good(self.server.send(f"m{n}", to="slow", wait_ms=0,
                                           conversation_id="o-1"), 202)
            over = [e for e in feed.take(8) if e.event == "task.completed"]
        texts = [self.good(self.server.call(
            "GET", f"/api/tasks/{e.data['task_id']}"))["text"] for e in over]
        self.assertEqual(texts, ["m0", "m1", "m2", "m3"])

    def test_while_one_is_carried_the_next_one_waits(self):
        first = self.good(self.server.send("a", to="never", wait_ms=0,
                                           conversation_id="o-2"), 202)
        second = self.good(self.server.send("b", wait_ms=0,
                                            conversation_id="o-2"), 202)
        eventually(lambda: self.status(first) == "working", "it is carried")
        self.assertEqual(self.status(second), "queued")
        self.good(self.server.call("POST",
                                   f"/api/tasks/{first['task_id']}/cancel"))
        path = f"/api/tasks/{second['task_id']}/events"
        with self.server.events(path) as events:
            self.assertEqual(list(events)[-1].data["text"], "b")

    def test_others_with_the_same_conversation_are_not_in_the_way(self):
        anna = self.server.user("anna")
        self.good(self.server.send("a", to="never", wait_ms=0,
                                   conversation_id="o-3"), 202)
        self.send("b", conversation_id="o-3", token=anna)
        for owner in ("admin", "anna"):
            got = self.good(self.server.call(
                "GET", f"/api/conversations/o-3?owner={owner}"))
            self.assertEqual(got["id"], "o-3")
            self.assertEqual(got["agent"],
                             "never" if owner == "admin" else "echo")


    def test_an_owner_is_found_whatever_the_case_of_the_name(self):
        carla = self.server.user("Carla")
        self.good(self.server.send("x", conversation_id="o-4", token=carla))
        for owner in ("Carla", "carla", "CARLA"):
            for token in (self.server.token, carla):
                got = self.good(self.server.call(
                    "GET", f"/api/conversations/o-4?owner={owner}",
                    token=token))
                self.assertEqual((got["id"], got["agent"]), ("o-4", "echo"))
        self.refused(self.server.call(
            "GET", "/api/conversations/o-4?owner=carl"), 404, "not_found")
        self.assertEqual(
            self.server.call("DELETE", "/api/users/carla").status, 204)
        self.good(self.server.call("GET",
                                   "/api/conversations/o-4?owner=Carla"))


class Leaving(Shared):
    """Callers who go away."""

    def waiting(self):
        return metric(self.server, "signalbox_calls_open")

    def test_a_caller_who_leaves_leaves_nothing_but_the_task(self):
        before = self.waiting()
        bodies = [{"text": "x", "executor": {"name": "slow"},
                   "idempotency_key": f"gone-{n}"} for n in range(20)]
        peers = []
        for n, body in enumerate(bodies):
            peer = self.server.connect()
            accept = ["Accept: text/event-stream"] if n % 2 else []
            peer.send(self.server.request("POST", "/api/messages", body,
                                          *accept))
            peers.append(peer)
        eventually(lambda: self.waiting() >= before + 20, "all wait")
        for peer in peers:
            peer.socket.close()
        for body in bodies:
            got = self.good(self.server.call("POST", "/api/messages", body))
            self.assertEqual(got["status"], "completed")
        eventually(lambda: self.waiting() == before, "all have left")

    def test_a_caller_may_leave_before_the_task_is_on_the_disk(self):
        for n in range(50):
            with self.server.connect() as peer:
                peer.send(self.server.request(
                    "POST", "/api/messages",
                    {"text": "x", "executor": {"name": "echo"},
                     "idempotency_key": f"early-{n}"}))
        for n in range(50):
            self.send("x", idempotency_key=f"early-{n}")

    def test_at_the_end_whoever_waits_is_told_the_status(self):
        with Server(agents=AGENTS) as server:
            waits, watches = server.connect(), None
            waits.send(server.request("POST", "/api/messages",
                                      {"text": "x",
                                       "executor": {"name": "never"}}))
            eventually(lambda: "kind=\"waiting\"} 1" in
                       server.get("/metrics").body.decode(), "it waits")
            watches = server.events("/api/feed?after=0")
            server.process.terminate()
            got = waits.response()
            self.assertEqual(got.status, 202, got)
            self.assertNotIn(got.json()["status"], OVER)
            self.assertEqual(list(watches)[-1].event, "task.accepted")
            watches.close()
            waits.socket.close()


class Waits(unittest.TestCase):
    def test_nobody_waits_longer_than_net_does(self):
        config = {"http": {"replyTimeoutMs": 1000}}
        with Server(agents=AGENTS, config=config) as server:
            got = server.send("x", to="never", wait_ms=600000)
            self.assertEqual(got.status, 202, got)

    def test_the_answer_to_head_is_that_to_get(self):
        with Server(agents=AGENTS) as server:
            task_id = server.send("x").json()["task_id"]
            for path in (f"/api/tasks/{task_id}", "/api/tasks", "/api/me",
                         "/api/agents", "/api/users", "/api/tokens",
                         "/api/feed", f"/api/tasks/{task_id}/events"):
                with server.connect() as peer:
                    peer.send(server.request("HEAD", path))
                    head = peer.response(to_head=True)
                    self.assertEqual(head.status, 200, path)
                    peer.send(server.request("GET", path))
                    got = peer.response()
                    self.assertEqual(
                        head.headers.get("content-length"),
                        got.headers.get("content-length"), path)
                    if "events" not in path:
                        self.assertTrue(json.loads(got.body))
