"""A model that calls tools, behind OpenAI's /v1/chat/completions, as strict as
OpenAI documents it and as odd as streams are:

    def think(body):                # what it answers, by what it was told
        if body["messages"][-1]["role"] == "user":
            return calls(("search_agents", {"query": "x"}), text="Wait.")
        return "that is it"

    with ToolModel(think) as model:
        model.url                   # for baseUrl, without /v1
        model.calls                 # what came: .body
        model.complaints            # what it refused, in OpenAI's words

A request whose messages do not pair every call with one answer is refused with
400, as is a tool that OpenAI would not take. The calls of an answer are streamed
in pieces that take turns, of a few bytes each, and the bytes of the stream are
cut wherever it comes."""
import json
import random
import re

import jsonschema
from raw_server import SSE, RawServer

NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")


def calls(*list, text=None):
    """An answer that is calls of tools: (name, arguments); arguments that are
    text are sent as they are."""
    return {"calls": list, "text": text}


def answers(body):
    """What the calls of the last round came to, read, whichever dialect it is
    in."""
    found = []
    last = body["messages"][-1]["content"]
    if isinstance(last, list):
        return [json.loads(block["content"]) for block in last]
    for message in reversed(body["messages"]):
        if message["role"] != "tool":
            break
        found.insert(0, json.loads(message["content"]))
    return found


class Wrong(Exception):
    pass


def need(condition, words):
    if not condition:
        raise Wrong(words)


def check_calls(message):
    need(isinstance(message["tool_calls"], list) and message["tool_calls"],
         "[] is too short - 'messages.tool_calls'")
    for call in message["tool_calls"]:
        need(call["type"] == "function" and set(call) ==
             {"id", "type", "function"}, f"not a call: {call}")
        need(NAME.match(call["function"]["name"]), f"not a name: {call}")
        need(isinstance(call["id"], str) and 0 < len(call["id"]) <= 64,
             f"not an id: {call}")
        need(isinstance(json.loads(call["function"]["arguments"]), dict),
             f"not arguments: {call}")
    return [call["id"] for call in message["tool_calls"]]


def check_messages(messages):
    """Each call has one answer, at once and in any order."""
    waiting = []
    for message in messages:
        role, content = message["role"], message["content"]
        need(role in ("system", "user", "assistant", "tool"), role)
        if role == "tool":
            need(message["tool_call_id"] in waiting,
                 "messages with role 'tool' must be a response to a preceeding "
                 "message with 'tool_calls'.")
            need(isinstance(content, str), "content of a tool must be text")
            waiting.remove(message["tool_call_id"])
            continue
        need(not waiting,
             "An assistant message with 'tool_calls' must be followed by tool "
             "messages responding to each 'tool_call_id'. The following "
             f"tool_call_ids did not have response messages: {waiting}")
        if "tool_calls" in message:
            need(role == "assistant", "only an assistant calls")
            waiting = check_calls(message)
            need(len(set(waiting)) == len(waiting), "an id twice")
        else:
            need(isinstance(content, str), "content must be text")
    need(not waiting, f"without an answer: {waiting}")


def check_tools(body):
    for tool in body.get("tools", []):
        need(tool["type"] == "function" and set(tool) == {"type", "function"},
             "Missing required parameter: 'tools[0].type'")
        function = tool["function"]
        need(NAME.match(function["name"]), "Invalid 'tools[0].function.name'")
        need(len(function["description"]) <= 1024, "description too long")
        schema = function["parameters"]
        jsonschema.Draft202012Validator.check_schema(schema)
        need(schema["type"] == "object" and not
             {"oneOf", "anyOf", "allOf", "enum", "not"} & set(schema),
             "schema must have type 'object' and not have 'oneOf'/'anyOf'/"
             "'allOf'/'enum'/'not' at the top level")
    need("tool_choice" not in body or body.get("tools"),
         "'tool_choice' is only allowed when 'tools' are specified")


class ToolModel(RawServer):
    kind = "openai"
    no_more = "none"  # tool_choice

    def __init__(self, think, seed=7):
        super().__init__(self.take)
        self.think = think
        self.random = random.Random(seed)
        self.complaints = []
        self.n_ids = 0

    def take(self, call):
        try:
            check_messages(call.body["messages"])
            check_tools(call.body)
        except (Wrong, KeyError, TypeError, ValueError,
                jsonschema.SchemaError) as wrong:
            self.complaints.append(repr(wrong))
            call.json({"error": {"message": str(wrong),
                                 "type": "invalid_request_error",
                                 "param": "messages", "code": None}},
                      "400 Bad Request")
            return
        self.answer_with(call, self.think(call.body))

    def piece(self, delta, finish=None):
        return {"id": "chatcmpl-1", "object": "chat.completion.chunk",
                "created": 1, "model": "tool-model", "choices": [
                    {"index": 0, "delta": delta, "finish_reason": finish}]}

    def pieces(self, said):
        yield self.piece({"role": "assistant", "content": None if said["calls"]
                          and not said["text"] else ""})
        for word in re.findall(r"\S+\s*", said["text"] or ""):
            yield self.piece({"content": word})
        left = {}
        for index, (name, arguments) in enumerate(said["calls"]):
            self.n_ids += 1
            if not isinstance(arguments, str):
                arguments = json.dumps(arguments)
            left[index] = arguments
            yield self.piece({"tool_calls": [
                {"index": index, "id": f"call_{self.n_ids}",
                 "type": "function",
                 "function": {"name": name, "arguments": ""}}]})
        while left:
            index = self.random.choice(list(left))
            n = self.random.randint(1, 9)
            part, left[index] = left[index][:n], left[index][n:]
            if not left[index]:
                del left[index]
            yield self.piece({"tool_calls": [
                {"index": index, "function": {"arguments": part}}]})
        yield self.piece({}, "tool_calls" if said["calls"] else "stop")
        yield {"choices": [], "usage": {"prompt_tokens": 2,
                                        "completion_tokens": 1,
                                        "total_tokens": 3}}

    def text(self, said):
        return SSE + "".join(f"data: {json.dumps(p)}\n\n"
                             for p in self.pieces(said)) + "data: [DONE]\n\n"

    def answer_with(self, call, said):
        if isinstance(said, str):
            said = {"calls": (), "text": said}
        data = self.text(said).encode()
        while data:
            n = self.random.randint(1, 400)
            if not call.send(data[:n]):
                return
            data = data[n:]
