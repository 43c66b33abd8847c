"""Agents over HTTP: what the real server sends them, what they may answer, and
what becomes of those that mean no good."""
import base64
import json
import os
import re
import threading
import unittest

from raw_server import SSE, RawServer
from signalbox import Server, eventually, metric

ROOT = os.path.join(os.path.dirname(__file__), "..", "..")
SECRET = "s3cret-8675309"

# Failing is to be quick, and never waits for a breaker.
QUICK = {"deliver": {"maxAttempts": 3, "retryMs": 10, "retryMaxMs": 20,
                     "breakerFailures": 1000}}


def serve(agent, config=None, **card):
    """The real server with this one as its agent "far"."""
    return Server(agents=[{"id": "far", "url": agent.url + "/run", **card}],
                  config={**QUICK, **(config or {})})


def ask(server, text="hello", **fields):
    return server.send(text, to="far", **fields).json()


class Exchanges(unittest.TestCase):
    """Those that docs/protocol.md shows, word for word."""

    def blocks(self):
        with open(os.path.join(ROOT, "docs", "protocol.md")) as f:
            text = f.read()
        section = text.split("\n## Agents reached by HTTP\n")[1]
        section = section.split("\n## ")[0]
        return re.findall(r"```http\n(.*?)```", section, re.S)

    def same(self, shown, came):
        """A request as it is shown, but for what is new each time."""
        head, body = shown.split("\n\n", 1)
        lines = head.split("\n")
        self.assertEqual(lines[0], came.line)
        for line in lines[1:]:
            name, value = line.split(": ", 1)
            mine = came.headers[name.lower()]
            if not re.search("host|task|deadline|key|length", name.lower()):
                self.assertEqual(mine, value, name)
        shown, body = json.loads(body), dict(came.body)
        self.assertEqual(list(shown), list(body))
        self.assertEqual(list(shown["metadata"]), list(body["metadata"]))
        for name in ("message", "turn", "attempt", "session_id", "skill_id",
                     "metadata"):
            self.assertEqual(shown[name], body[name], name)

    def exchange(self, request, answer):
        head, body = answer.split("\n\n", 1)
        wire = head.replace("\n", "\r\n") + "\r\n\r\n" + body

        def play(call):
            call.send(wire)
        with RawServer(play) as agent, serve(agent) as server:
            ada = server.user("ada")
            sent = json.loads(request.split("\n\n", 1)[1])
            done = server.send(sent["message"], to="far", token=ada,
                               conversation_id=sent["session_id"]).json()
            self.same(request, agent.calls[0])
            task = server.call("GET", "/api/tasks/" + done["task_id"]).json()
        return done, task

    def test_as_json(self):
        request, answer = self.blocks()[:2]
        done, task = self.exchange(request, answer)
        said = json.loads(answer.split("\n\n", 1)[1])
        self.assertEqual(done["status"], "completed")
        self.assertEqual(done["text"], said["text"])
        self.assertEqual(task["result"]["metadata"], said["metadata"])

    def test_as_a_stream(self):
        request, answer = self.blocks()[0], self.blocks()[2]
        done, _ = self.exchange(request, answer)
        chunks = re.findall(r"event: chunk\ndata: (.*)\n", answer)
        self.assertEqual(done["status"], "completed")
        self.assertEqual(done["text"],
                         "".join(json.loads(c)["text"] for c in chunks))


class Answers(unittest.TestCase):
    def test_chunks_come_as_they_are_said(self):
        may_go_on = threading.Event()

        def stream(call):
            call.send(SSE)
            call.event("chunk", {"text": "one "})
            may_go_on.wait(60)
            call.event("chunk", {"text": "two"})
            call.event("result", {"metadata": {"k": 1}})
            call.event("result", {"text": "a second one"})
        with RawServer(stream) as agent, serve(agent) as server:
            task = ask(server, wait_ms=0)["task_id"]
            with server.events(f"/api/tasks/{task}/events") as events:
                for _, event, data in events:
                    if event == "chunk" and data["text"] == "one ":
                        may_go_on.set()
                    if event == "result":
                        self.assertEqual(data["text"], "one two")
                        break
            self.assertTrue(may_go_on.is_set())

    def test_it_is_tried_again_with_the_same_key(self):
        def busy(call):
            if len(agent.calls) < 3:
                call.answer("503 Busy", "", "Retry-After: 0")
            else:
                call.json({"text": "third time"})
        with RawServer(busy) as agent, serve(agent) as server:
            self.assertEqual(ask(server)["text"], "third time")
            attempts = [c.headers["x-signalbox-attempt"] for c in agent.calls]
            self.assertEqual(attempts, ["1", "2", "3"])
            self.assertEqual([c.body["attempt"] for c in agent.calls],
                             [1, 2, 3])
            keys = {c.headers["idempotency-key"] for c in agent.calls}
            self.assertEqual(len(keys), 1)

    def test_a_further_turn_has_a_key_of_its_own(self):
        with RawServer(lambda call: call.json({"text": "hi"})) as agent, \
                serve(agent) as server:
            first = ask(server)
            ask(server, "more", task_id=first["task_id"])
            keys = [c.headers["idempotency-key"] for c in agent.calls]
            self.assertEqual(keys, [first["task_id"] + ":1",
                                    first["task_id"] + ":2"])

    def test_a_cancel_closes_the_connection(self):
        gone = threading.Event()

        def hang(call):
            call.send(SSE)
            call.event("chunk", {"text": "x"})
            call.until_gone()
            gone.set()
        with RawServer(hang) as agent, serve(agent) as server:
            task = ask(server, wait_ms=0)["task_id"]
            eventually(lambda: agent.calls, "it is asked")
            self.assertEqual(server.call(
                "POST", f"/api/tasks/{task}/cancel").status, 200)
            self.assertTrue(gone.wait(60))
            self.assertEqual(len(agent.calls), 1)

    def test_a_deadline_ends_it(self):
        gone = threading.Event()

        def hang(call):
            call.until_gone()
            gone.set()
        with RawServer(hang) as agent, serve(agent) as server:
            self.assertEqual(ask(server, timeout_ms=200)["status"], "expired")
            self.assertTrue(gone.wait(60))

    def test_a_stop_does_not_wait_for_an_agent(self):
        with RawServer(lambda call: call.until_gone()) as agent, \
                serve(agent) as server:
            ask(server, wait_ms=0)
            eventually(lambda: agent.calls, "it is asked")


class Authentication(unittest.TestCase):
    def called(self, authentication):
        with RawServer(lambda call: call.json({})) as agent, \
                serve(agent, authentication=authentication) as server:
            self.assertEqual(ask(server)["status"], "completed")
            self.assertNotIn(SECRET, server.said())
            anna = server.user("anna")
            self.assertNotIn(SECRET.encode(), server.call(
                "GET", "/api/agents/far", token=anna).body)
            return agent.calls[0].headers

    def test_each_scheme(self):
        self.assertEqual(self.called({"credentials": SECRET})["authorization"],
                         "Bearer " + SECRET)
        headers = self.called({"schemes": ["basic"],
                               "credentials": "me:" + SECRET})
        self.assertEqual(
            headers["authorization"],
            "Basic " + base64.b64encode(f"me:{SECRET}".encode()).decode())
        headers = self.called({"schemes": ["apiKey"], "credentials": SECRET,
                               "header": "X-Agent-Key"})
        self.assertEqual(headers["x-agent-key"], SECRET)
        self.assertNotIn("authorization", headers)

    def test_what_cannot_be_sent_is_refused_with_words(self):
        with RawServer(lambda call: call.json({})) as agent, serve(
                agent, authentication={"credentials": SECRET + "\nX: y"}
        ) as server:
            refused = server.send("hello", to="far")
            self.assertEqual(refused.status, 503)
            self.assertIn("a line end", refused.json()["error"]["message"])
            self.assertNotIn(SECRET.encode(), refused.body)
            self.assertEqual(agent.calls, [])


class Guard(unittest.TestCase):
    def register(self, server, url, token):
        made = server.call("POST", "/api/agents", {
            "name": "mine", "description": "mine", "url": url}, token=token)
        self.assertIn(made.status, (200, 201))

    def test_an_address_within_is_not_called_for_a_card(self):
        with RawServer(lambda call: call.json({"text": "inside"})) as inside, \
                serve(inside) as server:
            # The control: the operator's own agent is there.
            self.assertEqual(ask(server)["text"], "inside")
            anna = server.user("anna")
            for host in ("127.0.0.1", "localhost", "[::1]",
                         "[::ffff:127.0.0.1]"):
                url = f"http://{host}:{inside.port}/admin"
                if host != "127.0.0.1":
                    server.call("DELETE", "/api/agents/mine", token=anna)
                self.register(server, url, anna)
                failed = server.send("hello", to="mine", token=anna).json()
                self.assertEqual(failed["status"], "failed", url)
                self.assertIn(failed["error"]["code"],
                              ("address_not_allowed", "unreachable"))
            self.assertEqual(len(inside.calls), 1)

    def test_a_redirect_inward_is_not_followed(self):
        with RawServer(lambda call: call.json({"text": "inside"})) as inside:
            def redirect(call):
                call.answer(call.path.split("/")[-1] + " Go", "",
                            "Location: " + inside.url + "/metadata")
            with RawServer(redirect) as agent:
                for status in ("301", "302", "303", "307", "308"):
                    with Server(agents=[{"id": "far",
                                         "url": f"{agent.url}/{status}"}],
                                config=QUICK) as server:
                        failed = ask(server)
                        self.assertEqual(failed["status"], "failed")
                        self.assertIn("elsewhere", failed["error"]["message"])
                        self.assertNotIn(str(inside.port), json.dumps(failed))
            self.assertEqual(inside.calls, [])


def lie(length):
    def script(call):
        call.send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                  f"Content-Length: {length}\r\n\r\n" + '{"text":"hi"}')
    return script


def endless(piece):
    def script(call):
        call.send(SSE)
        while call.send(piece):
            pass
    return script


def trickle(call):
    call.send(SSE)
    while call.send("d"):
        try:
            call.sock.settimeout(0.01)
            if not call.sock.recv(1):
                return
        except TimeoutError:
            call.sock.settimeout(60)


def megabytes(call):
    call.send(SSE)
    for _ in range(8):
        call.event("chunk", {"text": "x" * (1 << 20)})
    call.event("result", {"text": "short"})


# What an agent does, what becomes of the task, its error, how often it is
# asked.
HOSTILE = {
    "closes at once": (lambda call: None, "bad_answer", 3),
    "garbage": (lambda call: call.send(b"\0\xff hello\r\n\r\n" * 100),
                "bad_answer", 3),
    "half a head": (lambda call: call.send("HTTP/1.1 200 OK\r\nContent-"),
                    "bad_answer", 3),
    "only a head": (lambda call: call.send(SSE), "bad_answer", 3),
    "half a result": (lambda call: call.send(
        SSE + 'event: result\ndata: {"text":'), "bad_answer", 3),
    "too long a length": (lie(1000), "bad_answer", 3),
    "too short a length": (lie(5), "bad_answer", 1),
    "an enormous length": (lie(10 ** 15), "too_large", 1),
    "no length": (lie("many"), "bad_answer", None),
    "a web page": (lambda call: call.answer(
        "200 OK", "<html>", "Content-Type: text/html"), "bad_answer", 1),
    "another's task": (lambda call: call.json(
        {"task_id": "task_00000000000000000000000000", "text": "x"}),
        "bad_answer", 1),
    "a list": (lambda call: call.json([]), "bad_answer", 1),
    "endless comments": (endless(b": " + b"x" * 65536 + b"\n"), "too_large",
                         1),
    "an endless line": (endless(b"x" * 65536), "too_large", 1),
    "an endless event": (endless(b"data: " + b"x" * 65536 + b"\n"),
                         "too_large", 1),
    "a large answer": (lambda call: call.json({"text": "x" * (1 << 21)}),
                       "too_large", 1),
    "large headers": (lambda call: call.send(
        "HTTP/1.1 200 OK\r\n" + "X-A: b\r\n" * 100000 + "\r\n"), "too_large",
        1),
    "megabyte chunks": (megabytes, None, 1),
}


class Hostile(unittest.TestCase):
    def test_each_has_one_end(self):
        script = None
        with RawServer(lambda call: script(call)) as agent, \
                serve(agent) as server:
            for name, (script, code, times) in HOSTILE.items():
                before = len(agent.calls)
                done = ask(server, wait_ms=60000)
                with self.subTest(name):
                    if code:
                        self.assertEqual(done["status"], "failed", done)
                        self.assertEqual(done["error"]["code"], code, done)
                        self.assertNotIn("127.0.0.1", json.dumps(done))
                    else:
                        self.assertEqual(done["text"], "short")
                    if times:
                        self.assertEqual(len(agent.calls) - before, times)
            self.assertEqual(metric(server, "signalbox_tasks"), 0)

    def test_who_falls_silent_is_let_go(self):
        def silent(call):
            call.send(SSE)
            call.until_gone()
        config = {"deliver": {**QUICK["deliver"], "silenceMs": 100}}
        with RawServer(silent) as agent, serve(agent, config) as server:
            failed = ask(server, wait_ms=60000)
            self.assertEqual(failed["error"]["code"], "timeout")
            self.assertIn("fell silent", failed["error"]["message"])
            self.assertEqual(len(agent.calls), 3)

    def test_who_trickles_is_ended_with_its_task(self):
        with RawServer(trickle) as agent, serve(agent) as server:
            self.assertEqual(ask(server, timeout_ms=500)["status"], "expired")

    def test_it_may_die_at_every_step(self):
        whole = (SSE + 'event: chunk\ndata: {"text":"hi"}\n\n'
                 'event: result\ndata: {}\n\n').encode()
        steps = range(0, len(whole) - 1, 7)

        def die(call):
            if call.body["attempt"] == 1:
                call.send(whole[:int(call.body["message"])])
            else:
                call.send(whole)
        with RawServer(die) as agent, serve(agent) as server:
            for step in steps:
                done = ask(server, str(step), wait_ms=60000)
                self.assertEqual((done["status"], done["text"]),
                                 ("completed", "hi"), step)
            self.assertEqual(len(agent.calls), 2 * len(steps))


if __name__ == "__main__":
    unittest.main()
