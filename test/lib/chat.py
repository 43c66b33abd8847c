"""A model behind OpenAI's /v1/chat/completions, streamed, as a server of its
own on a free port. It does what the last message of the user says:

    with Chat() as chat:
        chat.url           # ".../v1"
        chat.requests      # the bodies that came
        chat.gate.clear()  # "wait" waits until it is set again

"say X": X, a word at a time; "count": how many messages there are; "wait":
one word, and the rest when the gate is open; "fail": 400; "busy": 503 the
first time; "run X": calls the tool bash with the command X, then says "done".
"""
import http.server
import json
import threading

from quiet import Quiet


def text_of(message):
    content = message["content"]
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content)


class Chat:
    def __init__(self):
        self.requests = []
        self.n_busy = 0
        self.gate = threading.Event()
        self.gate.set()
        self.waiting = threading.Event()  # someone waits for the gate
        chat = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                length = int(self.headers["Content-Length"])
                body = json.loads(self.rfile.read(length))
                chat.requests.append(body)
                try:
                    chat.answer(self, body)
                except (BrokenPipeError, ConnectionResetError):
                    pass
                self.close_connection = True

            def log_message(self, *_):
                pass

        self.server = Quiet(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"
        self.thread = threading.Thread(target=self.server.serve_forever,
                                       kwargs={"poll_interval": 0.01})

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.gate.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def refuse(self, handler, status, words):
        answer = json.dumps({"error": {"message": words}}).encode()
        handler.send_response(status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(answer)))
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.wfile.write(answer)

    def answer(self, handler, body):
        users = [text_of(m) for m in body["messages"] if m["role"] == "user"]
        word, _, rest = users[-1].partition(" ")
        if word == "fail":
            return self.refuse(handler, 400, "no such luck")
        if word == "busy":
            self.n_busy += 1
            if self.n_busy == 1:
                return self.refuse(handler, 503, "overloaded")
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Connection", "close")
        handler.end_headers()
        self.stream(handler, body, word, rest)
        handler.wfile.write(b"data: [DONE]\n\n")
        return None

    def stream(self, handler, body, word, rest):
        def say(delta, finish=None, **more):
            event = {"id": "chat-1", "object": "chat.completion.chunk",
                     "created": 1, "model": body["model"],
                     "choices": [{"index": 0, "delta": delta,
                                  "finish_reason": finish}], **more}
            handler.wfile.write(b"data: " + json.dumps(event).encode() +
                                b"\n\n")
            handler.wfile.flush()

        def end(reason):
            say({}, reason, usage={"prompt_tokens": 7, "completion_tokens": 3,
                                   "total_tokens": 10})

        if word == "run" and body["messages"][-1]["role"] != "tool":
            call = {"index": 0, "id": "call_1", "type": "function",
                    "function": {"name": "bash", "arguments":
                                 json.dumps({"command": rest})}}
            say({"role": "assistant", "content": "Let me see."})
            say({"tool_calls": [call]})
            return end("tool_calls")
        if word == "wait":
            say({"role": "assistant", "content": "well"})
            self.waiting.set()
            self.gate.wait(60)
        texts = {"say": rest, "count": str(len(
            [m for m in body["messages"] if m["role"] != "system"])),
            "busy": "free again"}
        for i, part in enumerate(texts.get(word, "done").split(" ")):
            say({"content": " " + part if i else part})
        return end("stop")
