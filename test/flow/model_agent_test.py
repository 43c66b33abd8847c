"""Agents that are models: the real server with an endpoint that speaks OpenAI's
chat completions, well and badly."""
import json
import os
import threading
import unittest

from raw_server import SSE, RawServer
from signalbox import Server, eventually

KEY = "sk-very-secret-8675309"
VARIABLE = "TEST_MODEL_KEY"

QUICK = {"maxAttempts": 3, "retryMs": 10, "retryMaxMs": 20,
         "breakerFailures": 1000}


def piece(text, **choice):
    return {"object": "chat.completion.chunk", "model": "tiny-0613",
            "choices": [{"index": 0, "delta": {"content": text}, **choice}]}


def say(call, *texts, finish="stop"):
    """A whole answer, as most endpoints stream it."""
    call.send(SSE)
    for text in texts:
        call.event(None, piece(text))
    call.event(None, piece("", finish_reason=finish))
    call.event(None, {"choices": [], "usage": {"total_tokens": 7}})
    call.send("data: [DONE]\n\n")


def recall(call):
    """It answers with what it was told, so that a test sees it."""
    say(call, *(f"{m['role']}:{m['content']}|" for m in call.body["messages"]))


def serve(endpoint, data=None, token=None, agents=None, **model):
    models = {"small": {"baseUrl": endpoint.url + "/v1", "model": "tiny",
                        **model}}
    agents = agents or [{"id": "poet", "model": "small"}]
    return Server(agents=agents, data=data, token=token,
                  config={"models": models, "deliver": QUICK})


def ask(server, text, to="poet", **fields):
    return server.send(text, to=to, **fields).json()


class Answers(unittest.TestCase):
    def setUp(self):
        os.environ[VARIABLE] = KEY
        self.addCleanup(os.environ.pop, VARIABLE)

    def test_it_streams_and_says_what_was_used(self):
        may_go_on = threading.Event()

        def answer(call):
            call.send(SSE)
            call.event(None, piece("Ro"))
            may_go_on.wait(60)
            call.event(None, piece("ses"))
            call.event(None, piece("", finish_reason="stop"))
            call.event(None, {"choices": [], "usage": {"total_tokens": 7}})
            call.send("data: [DONE]\n\n")
        with RawServer(answer) as endpoint, serve(
                endpoint, keyVariable=VARIABLE, systemPrompt="Be a poet.",
                maxTokens=99, temperature=0.5) as server:
            task = ask(server, "What is red?", wait_ms=0)["task_id"]
            with server.events(f"/api/tasks/{task}/events") as events:
                for _, event, data in events:
                    if event == "chunk" and data["text"] == "Ro":
                        may_go_on.set()
                    if event == "result":
                        break
            self.assertEqual(data["text"], "Roses")
            done = server.call("GET", "/api/tasks/" + task).json()
            self.assertEqual(done["result"]["metadata"], {
                "model": "tiny-0613", "finish_reason": "stop",
                "usage": {"total_tokens": 7}})
            call = endpoint.calls[0]
            self.assertEqual(call.line,
                             "POST /v1/chat/completions HTTP/1.1")
            self.assertEqual(call.headers["authorization"], "Bearer " + KEY)
            self.assertEqual([t["function"]["name"]
                              for t in call.body.pop("tools")],
                             ["delegate_to_agent", "search_agents"])
            self.assertEqual(call.body, {
                "model": "tiny", "stream": True, "max_tokens": 99,
                "stream_options": {"include_usage": True}, "temperature": 0.5,
                "messages": [{"role": "system", "content": "Be a poet."},
                             {"role": "user", "content": "What is red?"}]})
            self.assertNotIn(KEY, server.said())
            self.assertNotIn(KEY.encode(), server.call("GET",
                                                       "/api/agents").body)

    def test_another_model_of_the_same_endpoint(self):
        agents = [{"id": "poet", "model": "small/large:70b"},
                  {"id": "other", "url": "model:small",
                   "routing": {"systemPrompt": "Be another."}}]
        with RawServer(recall) as endpoint, \
                serve(endpoint, agents=agents) as server:
            ask(server, "a")
            self.assertEqual(endpoint.calls[0].body["model"], "large:70b")
            self.assertEqual(ask(server, "b", to="other")["text"],
                             "system:Be another.|user:b|")
            self.assertNotIn("authorization", endpoint.calls[1].headers)

    def test_a_model_that_is_not_configured(self):
        with RawServer(recall) as endpoint, serve(endpoint) as server:
            made = server.call("POST", "/api/agents", {
                "name": "lost", "description": "d", "url": "model:missing"})
            self.assertIn(made.status, (200, 201))
            refused = server.send("hello", to="lost")
            self.assertEqual(refused.status, 404)
            self.assertIn('"models": {"missing": ',
                          refused.json()["error"]["message"])

    def test_a_cancel_closes_the_connection(self):
        gone = threading.Event()

        def hang(call):
            call.send(SSE)
            call.event(None, piece("x"))
            call.until_gone()
            gone.set()
        with RawServer(hang) as endpoint, serve(endpoint) as server:
            task = ask(server, "x", wait_ms=0)["task_id"]
            eventually(lambda: endpoint.calls, "it is asked")
            server.call("POST", f"/api/tasks/{task}/cancel")
            self.assertTrue(gone.wait(60))


class History(unittest.TestCase):
    def test_a_conversation_goes_on(self):
        with RawServer(lambda call: say(call, "Yes.")) as endpoint, \
                serve(endpoint) as server:
            first = ask(server, "one", conversation_id="c-1")
            ask(server, "two", conversation_id="c-1")
            ask(server, "three", task_id=first["task_id"])
            ask(server, "elsewhere", conversation_id="c-2")
            endpoint.script = recall
            self.assertEqual(
                ask(server, "four", conversation_id="c-1")["text"],
                "user:one|assistant:Yes.|user:two|assistant:Yes.|"
                "user:three|assistant:Yes.|user:four|")

    def test_nobody_is_told_what_others_said(self):
        with RawServer(lambda call: say(call, "Kept.")) as endpoint, \
                serve(endpoint) as server:
            anna, bert = server.user("anna"), server.user("bert")
            ask(server, "anna's secret", conversation_id="c-1", token=anna)
            ask(server, "bert's secret", conversation_id="c-1", token=bert)
            endpoint.script = recall
            # The control: her own is there.
            self.assertEqual(
                ask(server, "what?", conversation_id="c-1",
                    token=anna)["text"],
                "user:anna's secret|assistant:Kept.|user:what?|")
            self.assertEqual(
                ask(server, "what?", conversation_id="c-1",
                    token=bert)["text"],
                "user:bert's secret|assistant:Kept.|user:what?|")

    def test_it_is_limited_by_messages_and_bytes(self):
        for limit in ({"historyMessages": 4}, {"historyBytes": 25}):
            with RawServer(lambda call: say(call, "1234567890")) as endpoint, \
                    serve(endpoint, **limit) as server:
                for text in ("a", "b", "c", "d"):
                    ask(server, text, conversation_id="c-1")
                endpoint.script = recall
                self.assertEqual(
                    ask(server, "e", conversation_id="c-1")["text"],
                    "user:c|assistant:1234567890|"
                    "user:d|assistant:1234567890|user:e|")

    def test_what_failed_is_not_in_it(self):
        def some(call):
            if call.body["messages"][-1]["content"] == "bad":
                call.json({"error": {"message": "no"}}, "400 Bad")
            else:
                say(call, "Yes.")
        with RawServer(some) as endpoint, serve(endpoint) as server:
            for text in ("one", "bad", "two"):
                ask(server, text, conversation_id="c-1")
            endpoint.script = recall
            self.assertEqual(
                ask(server, "three", conversation_id="c-1")["text"],
                "user:one|assistant:Yes.|user:two|assistant:Yes.|user:three|")


def drop(call, words):
    """An endpoint that does not know a parameter."""
    for word in words:
        if word in call.body:
            call.json({"error": {"message": f"unknown parameter: {word}, use "
                                            "max_completion_tokens"
                                 if word == "max_tokens" else
                                 f"unknown parameter: {word}"}}, "400 Bad")
            return
    say(call, "Fine.")


def endless(data):
    def script(call):
        call.send(SSE)
        while call.send(data):
            pass
    return script


def break_off(call):
    call.send(SSE)
    call.event(None, piece("half an ans"))


HOSTILE = {
    "closes at once": (lambda call: None, "bad_answer", 3),
    "breaks off": (break_off, "bad_answer", 3),
    "garbage": (lambda call: call.send("no HTTP\r\n\r\n"), "bad_answer", 3),
    "a web page": (lambda call: call.answer(
        "200 OK", "<html>", "Content-Type: text/html"), "bad_answer", 1),
    "no choices": (lambda call: call.json({"data": []}), "bad_answer", 1),
    "not JSON": (lambda call: call.send(SSE + "data: hello\n\n"),
                 "bad_answer", 1),
    "endless comments": (endless(b": " + b"x" * 65536 + b"\n"), "too_large",
                         1),
    "an endless answer": (endless(
        f"data: {json.dumps(piece('x' * 60000))}\n\n".encode()), "too_large",
        1),
    "a large answer": (lambda call: call.json(
        {"choices": [{"message": {"content": "x" * (1 << 21)}}]}),
        "too_large", 1),
    "locked": (lambda call: call.json(
        {"error": {"message": "Incorrect key " + KEY}}, "401 No"),
        "model_error", 1),
    "refused": (lambda call: call.json(
        {"error": {"message": f"too long \x1b[2J {KEY}"}}, "400 Bad"),
        "model_error", 1),
    "an error within": (lambda call: call.send(
        SSE + f"data: {json.dumps(piece('a'))}\n\n"
        'data: {"error":{"message":"it broke","code":500}}\n\n'),
        "model_error", 3),
    "busy": (lambda call: call.json({}, "429 Slow", "Retry-After: 0"),
             "agent_busy", 3),
    "broken": (lambda call: call.json({"error": "CUDA"}, "500 No"),
               "model_error", 3),
    "a redirect": (lambda call: call.answer(
        "307 Go", "", "Location: http://169.254.169.254/"), "model_error", 1),
}


class Endpoints(unittest.TestCase):
    def setUp(self):
        os.environ[VARIABLE] = KEY
        self.addCleanup(os.environ.pop, VARIABLE)

    def test_bad_ones_are_told_apart(self):
        script = None
        with RawServer(lambda call: script(call)) as endpoint, \
                serve(endpoint, keyVariable=VARIABLE) as server:
            for name, (script, code, times) in HOSTILE.items():
                before = len(endpoint.calls)
                done = ask(server, "hello", wait_ms=60000)
                with self.subTest(name):
                    self.assertEqual(done["status"], "failed", done)
                    self.assertEqual(done["error"]["code"], code, done)
                    self.assertEqual(len(endpoint.calls) - before, times)
                    for secret in (KEY, "127.0.0.1", "\x1b"):
                        self.assertNotIn(secret, json.dumps(done))
            self.assertNotIn(KEY, server.said())

    def test_those_that_know_less_are_asked_for_less(self):
        for words in (["stream_options"], ["max_tokens"],
                      ["stream_options", "max_tokens"]):
            with RawServer(lambda call: drop(call, words)) as endpoint, \
                    serve(endpoint, maxTokens=5) as server:
                self.assertEqual(ask(server, "hello")["text"], "Fine.", words)
                self.assertEqual(len(endpoint.calls), 1 + len(words))

    def test_one_that_does_not_stream(self):
        with RawServer(lambda call: call.json({
                "model": "m", "choices": [{"message": {
                    "role": "assistant", "content": "whole"},
                    "finish_reason": "stop"}]})) as endpoint, \
                serve(endpoint) as server:
            self.assertEqual(ask(server, "hello")["text"], "whole")

    def test_one_that_falls_silent(self):
        def silent(call):
            call.send(SSE)
            call.event(None, piece("a"))
            call.until_gone()
        with RawServer(silent) as endpoint, \
                serve(endpoint, silenceMs=100) as server:
            failed = ask(server, "hello", wait_ms=60000)
            self.assertEqual(failed["error"]["code"], "timeout")
            self.assertEqual(len(endpoint.calls), 3)


if __name__ == "__main__":
    unittest.main()
