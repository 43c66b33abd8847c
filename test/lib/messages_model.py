"""A model behind Anthropic's /v1/messages, as strict as they document it; the
same as ToolModel in all else:

    with MessagesModel(think) as model:
        model.url                   # for baseUrl, without /v1
        model.complaints            # what it refused, in their words

A field that they do not know is refused, as are messages without words, an
answer that is not to the calls just before it, and a request without its
headers."""
import json
import re

import jsonschema
from raw_server import SSE
from tool_model import NAME, ToolModel, Wrong, need

FIELDS = {"model", "max_tokens", "system", "messages", "tools", "tool_choice",
          "stream", "temperature"}
ID = re.compile(r"^[a-zA-Z0-9_-]+$")


def event(kind, **fields):
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"


def begin(model="haiku-1", **usage):
    return event("message_start", message={
        "id": "msg_1", "type": "message", "role": "assistant", "model": model,
        "content": [], "stop_reason": None, "stop_sequence": None,
        "usage": {"input_tokens": 2, "output_tokens": 1, **usage}})


def words(index, *texts):
    return event("content_block_start", index=index,
                 content_block={"type": "text", "text": ""}) + "".join(
        event("content_block_delta", index=index,
              delta={"type": "text_delta", "text": text})
        for text in texts) + event("content_block_stop", index=index)


def finish(why, **usage):
    return event("message_delta",
                 delta={"stop_reason": why, "stop_sequence": None},
                 usage={"output_tokens": 1, **usage}) + event("message_stop")


def failure(kind, message):
    """An error document."""
    return {"type": "error", "error": {"type": kind, "message": message},
            "request_id": "req_1"}


def text_of(content):
    """What a message of the user or the model says in words."""
    if isinstance(content, str):
        return content
    return "".join(b["text"] for b in content if b["type"] == "text")


def check_block(role, block):
    kind = block["type"]
    if kind == "text":
        need(set(block) == {"type", "text"} and block["text"].strip(),
             "messages: text content blocks must contain non-whitespace text")
    elif kind == "tool_use":
        need(role == "assistant" and set(block) ==
             {"type", "id", "name", "input"}, f"not a tool_use: {block}")
        need(NAME.match(block["name"]) and ID.match(block["id"]),
             f"String should match pattern: {block}")
        need(isinstance(block["input"], dict),
             "tool_use.input: Input should be a valid dictionary")
    else:
        need(kind == "tool_result" and role == "user" and set(block) ==
             {"type", "tool_use_id", "content"}, f"not a tool_result: {block}")


def check_messages(messages):
    need(messages and messages[0]["role"] == "user",
         "messages: first message must use the \"user\" role")
    waiting = []
    for message in messages:
        need(set(message) == {"role", "content"}, f"extra: {set(message)}")
        role, content = message["role"], message["content"]
        need(role in ("user", "assistant"), f"messages: Unexpected role {role}")
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        need(content, "messages: content must be non-empty")
        for block in content:
            check_block(role, block)
        answered = [b["tool_use_id"] for b in content
                    if b["type"] == "tool_result"]
        need(sorted(answered) == sorted(waiting),
             "`tool_use` ids were found without `tool_result` blocks "
             f"immediately after: {waiting}, {answered}")
        waiting = [b["id"] for b in content if b["type"] == "tool_use"]
        need(len(set(waiting)) == len(waiting),
             "`tool_use` ids must be unique")
    need(not waiting and messages[-1]["role"] == "user",
         f"without an answer: {waiting}")


def check_tools(body):
    for tool in body.get("tools", []):
        need(set(tool) == {"name", "description", "input_schema"},
             f"tools.0: {set(tool)}")
        need(NAME.match(tool["name"]), "tools.0.name")
        jsonschema.Draft202012Validator.check_schema(tool["input_schema"])
        need(tool["input_schema"]["type"] == "object", "tools.0.input_schema")
    choice = body.get("tool_choice", {"type": "auto"})
    need(choice["type"] in ("auto", "any", "tool", "none"), "tool_choice")
    need("tool_choice" not in body or body.get("tools"),
         "tool_choice may only be specified while providing tools")


def check(call):
    body = call.body
    need(call.path == "/v1/messages", f"Not found: {call.path}")
    need(call.headers.get("anthropic-version") == "2023-06-01",
         "anthropic-version: header is required")
    need("authorization" not in call.headers, "the key is in x-api-key")
    for field in set(body) - FIELDS:
        raise Wrong(f"{field}: Extra inputs are not permitted")
    need(isinstance(body.get("max_tokens"), int) and body["max_tokens"] > 0,
         "max_tokens: Field required")
    need("system" not in body or body["system"].strip(),
         "system: text content blocks must be non-empty")
    check_messages(body["messages"])
    check_tools(body)


class MessagesModel(ToolModel):
    kind = "anthropic"
    no_more = {"type": "none"}  # tool_choice

    def take(self, call):
        try:
            check(call)
        except (Wrong, KeyError, TypeError, ValueError,
                jsonschema.SchemaError) as wrong:
            self.complaints.append(repr(wrong))
            call.json(failure("invalid_request_error", str(wrong)),
                      "400 Bad Request")
            return
        self.answer_with(call, self.think(call.body))

    def parts(self, said):
        """The events, those of the calls taking turns as they never do."""
        yield begin(input_tokens=2)
        yield event("ping")
        if said["text"]:
            yield words(0, *re.findall(r"\S+\s*", said["text"]))
        left = {}
        for index, (name, arguments) in enumerate(said["calls"], 1):
            self.n_ids += 1
            left[index] = arguments if isinstance(arguments, str) \
                else json.dumps(arguments)
            yield event("content_block_start", index=index, content_block={
                "type": "tool_use", "id": f"toolu_{self.n_ids}", "name": name,
                "input": {}})
        while left:
            index = self.random.choice(list(left))
            n = self.random.randint(1, 9)
            part, left[index] = left[index][:n], left[index][n:]
            if not left[index]:
                del left[index]
            yield event("content_block_delta", index=index, delta={
                "type": "input_json_delta", "partial_json": part})
        yield finish("tool_use" if said["calls"] else "end_turn")

    def text(self, said):
        return SSE + "".join(self.parts(said))
