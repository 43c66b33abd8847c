"""Agents that are models behind Anthropic's API: what it is asked and how its
answers are heard, well and badly; and everything that model_tools_test says of
models that use tools, with one that speaks this dialect."""
import json
import os
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import model_tools_test
from messages_model import (MessagesModel, begin, event, failure, finish,
                            text_of, words)
from model_agent_test import KEY, VARIABLE, ask, serve
# Its cases run here too.
from model_tools_test import Delegation, Ends, Limits  # noqa: F401
from raw_server import SSE, RawServer
from signalbox import eventually

model_tools_test.ToolModel = MessagesModel


def haiku(endpoint, **more):
    return serve(endpoint, kind="anthropic", **more)


def say(call, *texts, why="end_turn"):
    call.send(SSE + begin() + words(0, *texts) + finish(why, output_tokens=5))


def stream(*parts):
    return lambda call: call.send(SSE + "".join(parts))


def overloaded(status, kind, *headers):
    return lambda call: call.json(failure(kind, "Overloaded"), status, *headers)


class Answers(unittest.TestCase):
    def setUp(self):
        os.environ[VARIABLE] = KEY
        self.addCleanup(os.environ.pop, VARIABLE)

    def test_it_streams_and_says_what_was_used(self):
        may_go_on = threading.Event()

        def answer(call):
            call.send(SSE + begin(input_tokens=20, cache_read_input_tokens=3))
            call.send(event("ping") + event(
                "content_block_start", index=0,
                content_block={"type": "text", "text": ""}))
            call.send(event("content_block_delta", index=0, delta={
                "type": "text_delta", "text": "Ro"}))
            may_go_on.wait(60)
            call.send(event("content_block_delta", index=0, delta={
                "type": "text_delta", "text": "ses"}))
            call.send(event("content_block_stop", index=0) +
                      finish("end_turn", output_tokens=7))
        with RawServer(answer) as endpoint, haiku(
                endpoint, keyVariable=VARIABLE, systemPrompt="Be a poet.",
                maxTokens=99, temperature=0.5) as server:
            task = ask(server, "What is red?", wait_ms=0)["task_id"]
            with server.events(f"/api/tasks/{task}/events") as events:
                for _, kind, data in events:
                    if kind == "chunk" and data["text"] == "Ro":
                        may_go_on.set()
                    if kind == "result":
                        break
            self.assertEqual(data["text"], "Roses")
            done = server.call("GET", "/api/tasks/" + task).json()
            # In the words of the other dialect: a client that counts needs one.
            self.assertEqual(done["result"]["metadata"], {
                "model": "haiku-1", "finish_reason": "stop",
                "usage": {"prompt_tokens": 23, "completion_tokens": 7,
                          "total_tokens": 30}})
            call = endpoint.calls[0]
            self.assertEqual(call.line, "POST /v1/messages HTTP/1.1")
            self.assertEqual(call.headers["x-api-key"], KEY)
            self.assertEqual(call.headers["anthropic-version"], "2023-06-01")
            self.assertNotIn("authorization", call.headers)
            self.assertEqual([t["name"] for t in call.body.pop("tools")],
                             ["delegate_to_agent", "search_agents"])
            self.assertEqual(call.body, {
                "model": "tiny", "stream": True, "max_tokens": 99,
                "temperature": 0.5, "system": "Be a poet.",
                "messages": [{"role": "user", "content": "What is red?"}]})
            self.assertNotIn(KEY, server.said())

    def test_a_conversation_goes_on(self):
        def recall(body):
            return "|".join(f"{m['role']}:{text_of(m['content'])}"
                            for m in body["messages"])
        with MessagesModel(lambda body: "Yes.") as model, \
                haiku(model) as server:
            ask(server, "one", conversation_id="c-1")
            model.think = lambda body: ""  # an answer without a word
            ask(server, "two", conversation_id="c-1")
            ask(server, "elsewhere", conversation_id="c-2")
            model.think = recall
            said = ask(server, "three", conversation_id="c-1")["text"]
            self.assertEqual(said, "user:one|assistant:Yes.|user:three")
            self.assertEqual(model.complaints, [])

    def test_one_that_does_not_stream(self):
        with RawServer(lambda call: call.json({
                "type": "message", "role": "assistant", "model": "m",
                "content": [{"type": "text", "text": "whole"}],
                "stop_reason": "end_turn",
                "usage": {"input_tokens": 1, "output_tokens": 2}})) \
                as endpoint, haiku(endpoint) as server:
            done = ask(server, "hello")
            self.assertEqual(done["text"], "whole")
            task = server.call("GET", "/api/tasks/" + done["task_id"]).json()
            self.assertEqual(task["result"]["metadata"]["usage"]
                             ["total_tokens"], 3)

    def test_one_that_cannot_use_tools_is_asked_without(self):
        def small(call):
            if "tools" in call.body:
                call.json(failure("invalid_request_error", "this model does "
                                  "not support tools"), "400 Bad Request")
            else:
                say(call, "Fine.")
        with RawServer(small) as endpoint, haiku(endpoint) as server:
            self.assertEqual(ask(server, "hello")["text"], "Fine.")
            self.assertEqual(len(endpoint.calls), 2)
            ask(server, "again")
            self.assertEqual(len(endpoint.calls), 3)

    def test_a_cancel_closes_the_connection(self):
        gone = threading.Event()

        def hang(call):
            call.send(SSE + begin())
            call.until_gone()
            gone.set()
        with RawServer(hang) as endpoint, haiku(endpoint) as server:
            task = ask(server, "x", wait_ms=0)["task_id"]
            eventually(lambda: endpoint.calls, "it is asked")
            server.call("POST", f"/api/tasks/{task}/cancel")
            self.assertTrue(gone.wait(60))


def endless(call):
    text = SSE + begin()
    while call.send(text):
        text = words(0, "x" * 60000)


HOSTILE = {
    "closes at once": (lambda call: None, "bad_answer", 3),
    "breaks off": (stream(begin(), words(0, "half an ans")), "bad_answer", 3),
    "only pings": (stream(begin(), event("ping")), "bad_answer", 3),
    "not JSON": (stream(begin(), "event: ping\ndata: hello\n\n"),
                 "bad_answer", 1),
    "no content": (lambda call: call.json({"type": "message"}), "bad_answer",
                   1),
    "the other dialect": (lambda call: call.json(
        {"choices": [{"message": {"content": "x"}}]}), "bad_answer", 1),
    "an endless answer": (endless, "too_large", 1),
    "locked": (lambda call: call.json(failure(
        "authentication_error", "invalid x-api-key " + KEY), "401 No"),
        "model_error", 1),
    "refused": (lambda call: call.json(failure(
        "invalid_request_error", f"prompt is too long \x1b[2J {KEY}"),
        "400 Bad"), "model_error", 1),
    "rate limit": (overloaded("429 Slow", "rate_limit_error",
                              "Retry-After: 0"), "agent_busy", 3),
    "overloaded": (overloaded("529 Overloaded", "overloaded_error"),
                   "agent_busy", 3),
    "broken": (overloaded("500 No", "api_error"), "model_error", 3),
    "overloaded within": (stream(begin(), words(0, "a"), event(
        "error", error={"type": "overloaded_error", "message": "Overloaded"})),
        "model_error", 3),
    "refused within": (stream(begin(), event(
        "error", error={"type": "invalid_request_error", "message": "no"})),
        "model_error", 1),
    "filtered": (stream(begin(), finish("refusal")), "content_filter", 1),
    "a redirect": (lambda call: call.answer(
        "307 Go", "", "Location: http://169.254.169.254/"), "model_error", 1),
}


class Endpoints(unittest.TestCase):
    def test_bad_ones_are_told_apart(self):
        os.environ[VARIABLE] = KEY
        self.addCleanup(os.environ.pop, VARIABLE)
        script = None
        with RawServer(lambda call: script(call)) as endpoint, \
                haiku(endpoint, keyVariable=VARIABLE) as server:
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

    def test_what_fails_behind_its_end_does_not_count(self):
        late = event("message_delta", delta={"stop_reason": "end_turn"}) + \
            event("error", error={"type": "api_error", "message": "late"})
        with RawServer(stream(begin(), words(0, "Fine."), late)) as endpoint, \
                haiku(endpoint) as server:
            self.assertEqual(ask(server, "hello")["text"], "Fine.")
            self.assertEqual(len(endpoint.calls), 1)


if __name__ == "__main__":
    unittest.main()
