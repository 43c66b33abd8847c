"""What the clients of client/ promise, each case for every one of them: the
client is a child that is told what to do (sdk_driver.mjs, sdk_driver.py), the
server the real one.

    class Js(SdkCases, unittest.TestCase):
        command = ["node", ".../sdk_driver.mjs"]
"""
import contextlib
import itertools
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from cards import register
from certs import Certs
from signalbox import DEADLINE_S, Server, clean_environment, eventually
from ugly_texts import EMOJI, FIXED

SOURCE = os.environ["SIGNALBOX_SOURCE"]
CARD = {"name": "parrot", "description": "Repeats what people say to it",
        "skills": [{"id": "repeat", "name": "Repeating",
                    "description": "Says the same words once more"}]}
QUICK = {"retry_ms": 20, "retry_max_ms": 200}


class Refused(Exception):
    def __init__(self, error):
        super().__init__(f"{error['code']}: {error['message']}")
        self.code = error["code"]
        self.message = error["message"]
        self.data = error.get("data")


class Driver:
    """A client in another process."""

    def __init__(self, command, env):
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self.errors, env={**clean_environment(), **env})
        self.got = b""
        self.numbers = itertools.count(1)
        self.answers = {}
        self.events = []
        self.n_said = 0  # bytes of its complaints, in tests before

    def reset(self):
        """For another test; starting one takes its time."""
        self.do("reset")
        self.do("look")  # what it said because of that has come
        self.answers.clear()
        self.events.clear()
        self.n_said += len(self.said().encode())

    def stop(self):
        self.process.stdin.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.errors.close()

    def said(self):
        self.errors.seek(self.n_said)
        return self.errors.read().decode("utf-8", "replace")

    def read(self):
        """One line of what it says."""
        until = time.monotonic() + DEADLINE_S
        while b"\n" not in self.got:
            wait_s = until - time.monotonic()
            ready, _, _ = select.select([self.process.stdout], [], [],
                                        max(0, wait_s))
            data = os.read(self.process.stdout.fileno(), 1 << 20) \
                if ready else b""
            if not data:
                raise AssertionError("the client is silent, or gone: " +
                                     self.said())
            self.got += data
        line, _, self.got = self.got.partition(b"\n")
        what = json.loads(line)
        if "event" in what:
            self.events.append(what)
        else:
            self.answers[what["n"]] = what

    def begin(self, do, **args):
        n = next(self.numbers)
        self.process.stdin.write(
            json.dumps({"n": n, "do": do, **args}).encode() + b"\n")
        self.process.stdin.flush()
        return n

    def end(self, n):
        while n not in self.answers:
            self.read()
        answer = self.answers.pop(n)
        if "error" in answer:
            raise Refused(answer["error"])
        return answer["ok"]

    def do(self, what, **args):
        return self.end(self.begin(what, **args))

    def event(self, kind, **fields):
        """Wait for such an event, and take it."""
        while True:
            for e in self.events:
                if e["event"] == kind and \
                        all(e[k] == v for k, v in fields.items()):
                    self.events.remove(e)
                    return e
            self.read()

    def has(self, kind):
        """Whether there is such an event, of those that were said before
        this."""
        self.do("look")
        return any(e["event"] == kind for e in self.events)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


class SdkCases:
    command = None
    env = {}
    shared = None
    can_reset = False  # its driver: then it is started once for many tests
    idle = ()  # drivers that no test uses

    @classmethod
    def tearDownClass(cls):
        for d in cls.idle:
            d.stop()
        cls.idle = ()
        if cls.shared:
            cls.shared.stop()
            cls.shared = None

    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)

    def server(self, *args, **options):
        """One with these settings; without any, the one that all share."""
        if args or options:
            return self.stack.enter_context(Server(*args, **options))
        if not self.shared:
            type(self).shared = Server()
        return self.shared

    def driver(self, env=None):
        if env or not self.idle:
            d = Driver(self.command, {**self.env, **(env or {})})
        else:
            d, type(self).idle = self.idle[-1], self.idle[:-1]
        self.stack.callback(self.put_back, d, env)
        return d

    def put_back(self, d, env):
        outcome = self._outcome.result
        is_good = not any(t is self for t, _ in
                          outcome.errors + outcome.failures)
        if env or not is_good or not self.can_reset:
            print(d.said(), end="")
            d.stop()
        else:
            d.reset()
            type(self).idle = (*self.idle, d)

    def client(self, server, token=None, **options):
        d = self.driver()
        d.do("connect", url=server.url, token=token or server.token,
             options={**QUICK, **options})
        return d

    def agent(self, server, token=None, name="parrot", options=None, **more):
        d = self.client(server, token, **more)
        d.do("register", card={**CARD, "name": name}, options=options or {})
        return d

    def refused(self, code, call, *args, **more):
        with self.assertRaises(Refused) as e:
            call(*args, **more)
        self.assertEqual(e.exception.code, code, e.exception)
        return e.exception

    def task(self, server, task_id):
        return server.call("GET", f"/api/tasks/{task_id}").json()

    def over(self, server, task_id):
        """The task, once it is over."""
        ends = "completed", "failed", "cancelled", "expired"
        eventually(lambda: self.task(server, task_id)["status"] in ends,
                   "the task is over")
        return self.task(server, task_id)

    def begin(self, server, text, to="parrot", **more):
        """A task that no one waits for."""
        answer = server.send(text, to=to, wait_ms=0, **more)
        self.assertEqual(answer.status, 202, answer)
        return answer.json()["task_id"]

    # Work.

    def test_an_agent_is_given_work_and_answers(self):
        server = self.server()
        d = self.agent(server)
        self.assertEqual(d.do("look"),
                         {"agent": "parrot", "is_connected": True})
        answer = server.send("echo hello", to="parrot", skill="repeat",
                             conversation_id="c-1",
                             metadata={"colour": "red"}).json()
        self.assertEqual((answer["status"], answer["text"]),
                         ("completed", "hello"))
        seen = d.event("task")
        self.assertEqual(
            (seen["id"], seen["turn"], seen["attempt"], seen["message"],
             seen["skill_id"], seen["session_id"]),
            (answer["task_id"], 1, 1, "echo hello", "repeat", "c-1"))
        self.assertEqual(seen["metadata"]["requester"], "admin")
        self.assertEqual(seen["metadata"]["user"], {"colour": "red"})
        self.assertGreater(seen["deadline_ms"], time.time() * 1000)

        again = server.call("POST", "/api/messages", {
            "text": "echo once more", "task_id": answer["task_id"]}).json()
        self.assertEqual((again["turn"], again["text"]), (2, "once more"))
        self.assertEqual(server.send("plain words", to="parrot").json()["text"],
                         "PLAIN WORDS")

    def test_metadata_and_nothing_are_answers(self):
        server = self.server()
        self.agent(server)
        answer = server.send("meta", to="parrot").json()
        self.assertEqual((answer["text"], answer["metadata"]),
                         ("with more", {"pages": 3}))
        answer = server.send("nothing", to="parrot").json()
        self.assertEqual((answer["status"], answer["text"]),
                         ("completed", ""))

    def test_words_are_streamed(self):
        server = self.server()
        self.agent(server)
        for how in "stream", "write":
            with self.subTest(how), server.events(
                    "/api/messages", method="POST",
                    body={"text": f"{how} one two three",
                          "executor": {"name": "parrot"}}) as events:
                seen = [(e.event, e.data.get("text")) for e in events]
                self.assertEqual([t for e, t in seen if e == "chunk"],
                                 ["one ", "two ", "three"])
                self.assertEqual(seen[-1], ("result", "one two three"))

    def test_whatever_is_text_goes_through(self):
        server = self.server()
        d = self.agent(server)
        sender = self.client(server)
        for text in (*FIXED[:20], *EMOJI, "\U0001f99c" * 1000):
            with self.subTest(text[:20]):
                self.assertEqual(
                    server.send("echo " + text, to="parrot").json()["text"],
                    text)
                answer = sender.do("send", text="stream " + text, chunks=True,
                                   options={"to": "parrot"})
                self.assertEqual("".join(answer["pieces"]), answer["text"])
        self.assertFalse(d.has("closed"))

    def test_what_a_handler_throws_is_the_error(self):
        server = self.server()
        self.agent(server)
        for text, code, words in (
                ("fail badly", "agent_failed", "fail badly"),
                ("fail coded", "out_of_paper", "fail coded"),
                ("number", "agent_failed", "a handler returns")):
            with self.subTest(text):
                answer = server.send(text, to="parrot").json()
                self.assertEqual(answer["status"], "failed")
                self.assertEqual(answer["error"]["code"], code)
                self.assertIn(words, answer["error"]["message"])
                self.assertNotIn("\n", answer["error"]["message"])
        self.assertEqual(server.send("echo on", to="parrot").json()["text"],
                         "on")

    def test_what_is_no_result_fails_its_task(self):
        server = self.server()
        self.agent(server)
        for what in "string", "list", "value", "circle", "large":
            with self.subTest(what):
                answer = server.send(f"bad {what}", to="parrot",
                                     timeout_ms=20000).json()
                self.assertEqual(answer["status"], "failed", answer)
                self.assertIn(answer["error"]["code"],
                              ("agent_failed", "too_large"))
                self.assertNotIn("\n", answer["error"]["message"])
                if what in ("string", "list"):
                    self.assertIn("metadata", answer["error"]["message"])
        self.assertEqual(server.send("echo on", to="parrot").json()["text"],
                         "on")

    def test_what_is_no_text_is_replaced(self):
        server = self.server()
        self.agent(server)
        for text in "bad text", "broken":
            with self.subTest(text):
                answer = server.send(text, to="parrot",
                                     timeout_ms=20000).json()
                self.assertEqual(answer["status"], "completed", answer)
                self.assertRegex(answer["text"], "^half a \ufffd+ pair$")

    def test_a_result_that_is_refused_fails_its_task(self):
        server = self.server()
        self.agent(server)
        answer = server.send("refused", to="parrot", timeout_ms=20000).json()
        self.assertEqual((answer["status"], answer["error"]["code"]),
                         ("failed", "agent_failed"), answer)
        self.assertIn("metadata", answer["error"]["message"])

    def test_a_result_that_is_never_answered_fails_its_task(self):
        """The server cannot read it, and cannot say whose it is."""
        server = self.server()
        d = self.agent(server, call_timeout_ms=1000)
        answer = server.send("bad deep", to="parrot", timeout_ms=30000).json()
        self.assertEqual((answer["status"], answer["error"]["code"]),
                         ("failed", "agent_failed"), answer)
        self.assertIn("did not answer", answer["error"]["message"])
        self.assertIn("did not understand", d.said())
        self.assertEqual(server.send("echo on", to="parrot").json()["text"],
                         "on")

    def test_cancelled_work_is_stopped_and_answers_nothing(self):
        server = self.server()
        d = self.agent(server, options={"concurrency": 1})
        for text in "hold this", "half of it":
            with self.subTest(text):
                task = self.begin(server, text)
                d.event("task", message=text)
                server.call("POST", f"/api/tasks/{task}/cancel")
                self.assertTrue(d.event("cancelled", task=task)["is_set"])
                # Its place is free, and no result came of it.
                self.assertEqual(
                    server.send("echo on", to="parrot").json()["text"], "on")
                self.assertEqual(self.task(server, task)["status"],
                                 "cancelled")
        feed = server.call("GET", "/api/feed?limit=500").json()["items"]
        self.assertNotIn("task.late_result", [e["type"] for e in feed])

    def test_a_deadline_stops_work_too(self):
        server = self.server()
        d = self.agent(server)
        task = self.begin(server, "hold me", timeout_ms=200)
        d.event("cancelled", task=task)
        self.assertEqual(self.over(server, task)["status"], "expired")

    def test_so_many_at_once_and_no_more(self):
        server = self.server()
        d = self.agent(server, options={"concurrency": 2})
        tasks = [self.begin(server, f"hold {i}") for i in range(5)]
        for i in range(5):
            d.event("task", message=f"hold {i}")
            self.assertLessEqual(
                sum(e["event"] == "task" for e in d.events), 1)
            d.do("release", message=f"hold {i}", text=str(i))
        self.assertEqual(
            [self.over(server, t)["result"]["text"] for t in tasks],
            list("01234"))

    def test_large_messages_and_answers(self):
        server = self.server()
        d = self.agent(server)
        text = "x" * 1000000
        self.assertEqual(
            server.send("echo " + text, to="parrot").json()["text"], text)
        self.assertEqual(
            len(server.send("big 1000000", to="parrot").json()["text"]),
            1000000)
        self.is_too_large(server, d, "big 1500000")

    def is_too_large(self, server, d, text):
        answer = server.send(text, to="parrot").json()
        self.assertEqual((answer["status"], answer["error"]["code"]),
                         ("failed", "too_large"))
        d.event("task", message=text)
        self.assertEqual(server.send("echo on", to="parrot").json()["text"],
                         "on")
        # It was not tried a second time.
        self.assertFalse([e for e in d.events if e["message"] == text])

    # Coming back.

    def test_a_result_survives_a_crash_of_the_server(self):
        """The agent works on; the server dies and comes back; one result."""
        for is_away in False, True:
            with self.subTest(is_away=is_away):
                self.crash(is_away)

    def crash(self, is_away):
        listen, data = f"127.0.0.1:{free_port()}", tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, data)
        name = "away" if is_away else "here"
        with Server(listen=listen, data=data) as server:
            token = server.token
            d = self.agent(server, name=name)
            task = self.begin(server, "half one", to=name)
            d.event("task", message="half one")
            server.kill9()
            eventually(lambda: not d.do("look")["is_connected"], "it notices")
        if is_away:
            d.do("release", message="half one", text="done")
        with Server(listen=listen, data=data, token=token) as server:
            eventually(lambda: d.do("look")["is_connected"], "it is back")
            if not is_away:
                eventually(lambda: self.task(server, task)["attempt"] > 1 and
                           self.task(server, task)["status"] == "working",
                           "it is delivered again")
                d.do("release", message="half one", text="done")
            self.assertEqual(self.over(server, task)["result"]["text"],
                             "begun done")
            # Once more there is work, and the other was done once.
            self.assertEqual(
                server.send("echo on", to=name).json()["text"], "on")
            d.event("task", message="echo on")
            self.assertFalse(d.has("task"))
            feed = server.call("GET", "/api/feed?limit=500").json()["items"]
            self.assertEqual([e["type"] for e in feed].count("task.completed"),
                             2)
            d.do("close")

    def test_who_waits_for_an_answer_gets_it_after_a_crash(self):
        listen, data = f"127.0.0.1:{free_port()}", tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, data)
        with Server(listen=listen, data=data) as server:
            token = server.token
            d = self.agent(server)
            sender = self.client(server)
            plain = sender.begin("send", text="hold 1",
                                 options={"to": "parrot"})
            stream = sender.begin("send", text="half 2", chunks=True,
                                  options={"to": "parrot"})
            d.event("task", message="hold 1")
            d.event("task", message="half 2")
            sender.event("piece", text="begun ")
            server.kill9()
        d.do("release", message="hold 1", text="one")
        with Server(listen=listen, data=data, token=token):
            self.assertEqual(sender.end(plain)["text"], "one")
            d.do("release", message="half 2", text="two")
            self.assertEqual(sender.end(stream)["pieces"], ["begun ", "two"])
            d.do("close")
            sender.do("close")

    def test_a_server_that_falls_silent_is_left(self):
        server = self.server("--set", "ws.timeoutMs=1000")
        d = self.agent(server)
        server.process.send_signal(signal.SIGSTOP)
        try:
            eventually(lambda: not d.do("look")["is_connected"], "it notices")
        finally:
            server.process.send_signal(signal.SIGCONT)
        eventually(lambda: d.do("look")["is_connected"], "it is back")
        self.assertEqual(server.send("echo on", to="parrot").json()["text"],
                         "on")

    def test_silence_alone_does_not_end_it(self):
        server = self.server("--set", "ws.timeoutMs=1000")
        d = self.agent(server)
        until = time.monotonic() + 1.8
        while time.monotonic() < until:
            self.assertTrue(d.do("look")["is_connected"])
            time.sleep(0.05)
        self.assertEqual(d.said(), "")

    def test_another_takes_over(self):
        server = self.server()
        first = self.agent(server)
        task = self.begin(server, "hold it")
        first.event("task", message="hold it")
        second = self.agent(server)
        self.assertEqual(first.event("closed")["code"], "taken_over")
        first.event("cancelled", task=task)
        self.assertEqual(second.event("task", message="hold it")["id"], task)
        second.do("release", message="hold it", text="mine now")
        self.assertEqual(self.over(server, task)["result"]["text"], "mine now")

    def test_who_leaves_finishes_first(self):
        server = self.server()
        d = self.agent(server)
        task = self.begin(server, "hold on")
        d.event("task")
        leaving = d.begin("close")
        d.do("release", message="hold on", text="the last one")
        d.end(leaving)
        self.assertNotIn("code", d.event("closed"))
        self.assertEqual(self.over(server, task)["result"]["text"],
                         "the last one")
        self.refused("closed", d.do, "search", query="words")
        # And does not wait for ever.
        d = self.agent(server)
        task = self.begin(server, "hold on")
        d.event("task")
        d.do("close", grace_ms=1)
        d.event("cancelled", task=task)

    # Who may.

    def test_a_bad_token_is_told_at_once(self):
        server = self.server()
        d = self.driver()
        e = self.refused("unauthenticated", d.do, "connect", url=server.url,
                         token="sbx_nobody")
        self.assertIn("token", e.message)
        e = self.refused("unauthenticated", d.do, "connect", url=server.url)
        self.assertIn("SIGNALBOX_TOKEN", e.message)

    def test_nobody_there(self):
        d = self.driver()
        url = f"http://127.0.0.1:{free_port()}"
        e = self.refused("unreachable", d.do, "connect", url=url, token="x",
                         options={**QUICK, "connect_timeout_ms": 100})
        self.assertIn(url.split("//")[1], e.message)
        for url in "127.0.0.1:8787", "ftp://localhost", "nonsense":
            self.refused("usage", d.do, "connect", url=url, token="x")

    def test_it_waits_for_a_server_that_starts(self):
        port = free_port()
        d = self.driver()
        n = d.begin("connect", url=f"http://127.0.0.1:{port}",
                    token="sbx_nobody", options=QUICK)
        self.server(listen=f"127.0.0.1:{port}")
        self.refused("unauthenticated", d.end, n)

    def test_the_environment_says_where(self):
        server = self.server()
        d = self.driver({"SIGNALBOX_URL": server.url,
                         "SIGNALBOX_TOKEN": server.token})
        d.do("connect")
        self.assertTrue(d.do("look")["is_connected"])

    def test_a_name_that_is_anothers(self):
        server = self.server()
        anna, ben = server.user("anna"), server.user("ben")
        self.agent(server, anna, name="budgie")
        d = self.client(server, ben)
        e = self.refused("exists", d.do, "register",
                         card={**CARD, "name": "budgie"})
        self.assertIn("taken", e.message)
        d.do("register", card={**CARD, "name": "parakeet"})
        self.assertEqual(d.do("look")["agent"], "parakeet")
        with self.assertRaises(Refused):
            d.do("register", card=CARD)

    def test_a_card_that_is_wrong(self):
        d = self.client(self.server())
        e = self.refused("bad_request", d.do, "register",
                         card={**CARD, "skils": []})
        self.assertIn("skils", json.dumps([e.message, e.data]))

    def test_a_token_that_is_revoked_ends_it(self):
        server = self.server()
        server.user("cara")
        made = server.call("POST", "/api/tokens", {"user": "cara"}).json()
        d = self.agent(server, made["token"], name="lory")
        server.call("DELETE", f"/api/tokens/{made['id']}")
        self.assertEqual(d.event("closed")["code"], "unauthenticated")

    def test_tls(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        cert, key = Certs(folder).make("box")
        server = self.server(config={"tls": {
            "listen": "127.0.0.1:0", "certFile": cert, "keyFile": key}})
        d = self.driver({"SIGNALBOX_CA": cert})
        d.do("connect", url=server.tls_url, token=server.token)
        d.do("register", card=CARD)
        self.assertEqual(server.send("echo hi", to="parrot").json()["text"],
                         "hi")
        stranger = self.driver()
        self.refused("unreachable", stranger.do, "connect",
                     url=server.tls_url, token=server.token,
                     options={**QUICK, "connect_timeout_ms": 50})

    # Talking to others.

    def test_search_send_and_follow(self):
        server = self.server()
        self.agent(server)
        knitter = self.client(server)
        knitter.do("register", card={
            "name": "knitter", "description": "Works with wool", "skills": [
                {"id": "knit", "name": "Knitting",
                 "description": "Knits scarves and socks"}]})
        d = self.client(server)
        found = d.do("search", query="knit me a scarf", options={"limit": 3})
        self.assertEqual((found[0]["name"], found[0]["best_skill_id"]),
                         ("knitter", "knit"))
        answer = d.do("send", text="echo hello", options={
            "to": "parrot", "conversation": "c-2", "priority": "HIGH",
            "metadata": {"a": 1}, "timeout_ms": 60000, "skill": "repeat"})
        self.assertEqual((answer["text"], answer["agent"], answer["status"],
                          answer["conversation_id"]),
                         ("hello", "parrot", "completed", "c-2"))
        task = d.do("get", id=answer["task_id"])
        self.assertEqual((task["status"], task["priority"], task["skill"],
                          task["metadata"], task["result"]["text"]),
                         ("completed", "HIGH", "repeat", {"a": 1}, "hello"))
        answer = d.do("send", text="stream one two three", chunks=True,
                      options={"to": "parrot"})
        self.assertEqual(answer["pieces"], ["one ", "two ", "three"])
        self.assertEqual(answer["text"], "one two three")
        # Who does not stream is a stream of one piece.
        answer = d.do("send", text="echo whole", chunks=True,
                      options={"to": "parrot"})
        self.assertEqual(answer["pieces"], ["whole"])

    def test_what_a_message_may_cost(self):
        server = self.server()
        self.agent(server)
        register(server, "priced", visibility="public",
                 pricing={"amount_micros": 7})
        server.call("POST", "/api/ledger/topup",
                    {"user": "admin", "amount_micros": 100})
        d = self.client(server)
        for most in (0, 6):
            self.refused("cost_ceiling", d.do, "send", text="x", options={
                "to": "priced", "max_cost_micros": most})
        for options in ({}, {"max_cost_micros": 7}):
            answer = d.do("send", text="x", options={"to": "priced",
                                                     **options})
            self.assertEqual(answer["status"], "completed")
        letter = {"to": "priced", "type": "REQUEST"}
        self.refused("cost_ceiling", d.do, "envelope",
                     envelope={**letter, "max_cost_micros": 6})
        answer = d.do("envelope", envelope={**letter, "max_cost_micros": 7})
        self.assertEqual(answer["status"], "completed")

    def test_envelopes_go_and_come_whole(self):
        server = self.server()
        parrot = self.agent(server)
        jay = self.agent(server, name="jay")
        envelope = {"to": "parrot", "type": "REQUEST", "reference": "R-1",
                    "priority": "HIGH", "context": "echo and more",
                    "payload": {"emoji": EMOJI[0], "score": 8.25,
                                "list": [1, None, {"a": True}]}}
        answer = jay.do("envelope", envelope=envelope)
        self.assertEqual((answer["text"], answer["status"]),
                         ("and more", "completed"))
        routing = jay.event("routing")
        self.assertEqual((routing["routing_decision"], routing["target"],
                          routing["original_from"], routing["task_id"]),
                         ("ROUTE_IMMEDIATELY", "parrot", "jay",
                          answer["task_id"]))
        got = parrot.event("task")["envelope"]
        self.assertEqual({k: got[k] for k in envelope}, envelope)
        self.assertEqual(got["from"], "jay")
        self.assertEqual(routing["message_id"], got["message_id"])
        # A plain message has none; the same id is the same message.
        server.send("echo plain", to="parrot")
        self.assertIsNone(parrot.event("task")["envelope"])
        again = [jay.do("envelope", envelope={**envelope, "message_id": "m-1"})
                 for _ in range(2)]
        self.assertEqual(again[0]["task_id"], again[1]["task_id"])
        self.assertEqual([jay.event("routing")["routing_decision"]
                          for _ in range(2)],
                         ["ROUTE_IMMEDIATELY", "DROP_SILENTLY"])
        self.refused("from_mismatch", self.client(
            server, server.user("mallory")).do, "envelope",
            envelope={**envelope, "from": "jay"})
        self.refused("bad_request", jay.do, "envelope",
                     envelope={**envelope, "priority": "SOON"})

    def test_the_same_key_is_the_same_task(self):
        server = self.server()
        self.agent(server)
        d = self.client(server)
        ids = {d.do("send", text="echo once", options={
            "to": "parrot", "key": "k-1"})["task_id"] for _ in range(3)}
        self.assertEqual(len(ids), 1)
        self.refused("idempotency_mismatch", d.do, "send", text="echo other",
                     options={"to": "parrot", "key": "k-1"})

    def test_what_goes_wrong_is_told(self):
        server = self.server(agents=[{"id": "far"}])
        self.agent(server)
        d = self.client(server)
        self.refused("agent_not_found", d.do, "send", text="hi",
                     options={"to": "missing"})
        self.refused("agent_offline", d.do, "send", text="hi",
                     options={"to": "far"})
        e = self.refused("out_of_paper", d.do, "send", text="fail coded",
                         options={"to": "parrot"})
        self.assertEqual(e.data["status"], "failed")
        self.refused("out_of_paper", d.do, "send", text="fail coded",
                     chunks=True, options={"to": "parrot"})
        self.refused("not_found", d.do, "get", id="task_" + "0" * 26)
        self.refused("method_not_found", d.do, "call", method="agent.dance",
                     params={})
        self.refused("not_allowed", d.do, "state", state="BUSY")

    def test_what_was_sent_can_be_cancelled(self):
        server = self.server()
        agent = self.agent(server)
        d = self.client(server)
        n = d.begin("send", text="hold it", chunks=True,
                    options={"to": "parrot"})
        task = d.event("accepted")["task"]
        agent.event("task")
        d.do("cancel", id=task)
        agent.event("cancelled", task=task)
        self.refused("cancelled", d.end, n)

    def test_update_and_state(self):
        server = self.server()
        d = self.agent(server)

        def show():
            return server.call("GET", "/api/agents/parrot").json()
        d.do("update", card={"description": "Sings instead"})
        self.assertEqual(show()["description"], "Sings instead")
        d.do("state", state="ERROR")
        self.assertEqual(show()["state"], "ERROR")
        d.do("state", state=None)
        self.assertNotEqual(show()["state"], "ERROR")
        self.refused("bad_request", d.do, "state", state="SLEEPY")
        # What was updated is what it registers the next time.
        second = self.agent(server)
        d.event("closed")
        self.assertEqual(show()["description"], CARD["description"])
        second.do("close")

    def test_what_is_not_answered_has_a_limit(self):
        server = self.server()
        self.agent(server)
        d = self.client(server, max_kept=3)
        server.process.send_signal(signal.SIGSTOP)
        try:
            calls = [d.begin("send", text=f"echo {i}",
                             options={"to": "parrot"}) for i in range(5)]
            for n in calls[3:]:
                self.refused("overloaded", d.end, n)
        finally:
            server.process.send_signal(signal.SIGCONT)
        self.assertEqual([d.end(n)["text"] for n in calls[:3]],
                         ["0", "1", "2"])

    def test_many_calls_at_once(self):
        server = self.server()
        self.agent(server)
        d = self.client(server)
        calls = [d.begin("send", text=f"echo {i}", options={"to": "parrot"})
                 for i in range(100)]
        self.assertEqual([d.end(n)["text"] for n in calls],
                         [str(i) for i in range(100)])


class GivesUp:
    """For clients that notice which message the server hangs up on."""

    def test_an_answer_that_ends_the_connection(self):
        server = self.server("--set", "ws.maxMessageBytes=300000", "--set",
                             "ws.maxFrameBytes=300000")
        d = self.agent(server)
        self.is_too_large(server, d, "big 500000")

    def test_a_server_that_is_not_there_yet_is_told_of(self):
        d = self.driver()
        n = d.begin("connect", url=f"http://127.0.0.1:{free_port()}",
                    token="sbx_1", options={**QUICK,
                                            "connect_timeout_ms": 300})
        self.refused("unreachable", d.end, n)
        self.assertRegex(d.said(), "cannot be reached: .*; trying again in ")

    def test_an_answer_that_is_not_taken_fails_the_task(self):
        server = self.server()
        self.agent(server)
        answer = server.send("oddmeta", to="parrot").json()
        self.assertEqual((answer["status"], answer["error"]["code"]),
                         ("failed", "agent_failed"))
        self.assertIn("metadata", answer["error"]["message"])

    def test_results_beyond_the_limit_are_not_lost(self):
        server = self.server()
        d = self.client(server, max_kept=2)
        d.do("register", card=CARD)
        tasks = {f"hold {i}": self.begin(server, f"hold {i}")
                 for i in range(5)}
        for message in tasks:
            d.event("task", message=message)
        server.process.send_signal(signal.SIGSTOP)
        try:
            for message in tasks:
                d.do("release", message=message, text=message)
            d.do("look")
        finally:
            server.process.send_signal(signal.SIGCONT)
        for message, task in tasks.items():
            self.assertEqual(self.over(server, task)["result"]["text"],
                             message)
        self.assertFalse(d.has("task"))


# What is written down.

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)


def examples(path, language):
    """The blocks of a page that are in that language."""
    with open(os.path.join(SOURCE, path), encoding="utf-8") as f:
        return [text for kind, text in FENCE.findall(f.read())
                if kind == language]


class Program:
    """Something that runs until it is ended, and what it prints."""

    def __init__(self, command, env, cwd=None):
        self.process = subprocess.Popen(
            command, env={**clean_environment(), **env}, cwd=cwd,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT)

    def line(self):
        ready, _, _ = select.select([self.process.stdout], [], [], DEADLINE_S)
        return self.process.stdout.readline().decode() if ready else ""

    def rest(self):
        out = self.process.communicate(timeout=DEADLINE_S)[0].decode()
        return self.process.returncode, out

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
