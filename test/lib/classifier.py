"""A language model that is asked who a message is for, as a server of its own
on a free port:

    with Classifier() as classifier:
        classifier.url           # ".../v1"
        classifier.questions     # what came: (headers, body)
        classifier.answer = lambda question: sure("cook")

`answer` gets the document that is the user message, and gives what the model
says: text, a dictionary (written as JSON), or a pair of a status and bytes for
what an endpoint might say instead. None: it never answers. It speaks what it is
spoken to in: OpenAI's dialect, and Anthropic's at /messages, where a dictionary
is what it calls the tool with that it must call.
"""
import http.server
import json
import socketserver
import threading


def sure(agent, confidence=0.95, reasoning="it is about that"):
    return {"agentId": agent, "confidence": confidence,
            "reasoning": reasoning}


def obeys(question):
    """One that does whatever the text of someone tells it to do."""
    words = question["message"].split()
    at = words.index("choose") if "choose" in words else -1
    return sure(words[at + 1] if 0 <= at < len(words) - 1 else "missing", 1.0,
                "I was told to")


def document(said, path):
    """What the endpoint says, around what the model does."""
    if not path.endswith("/messages"):
        text = said if isinstance(said, str) else json.dumps(said)
        return {"choices": [{"message": {"role": "assistant",
                                         "content": text}}]}
    block = {"type": "text", "text": said} if isinstance(said, str) else \
        {"type": "tool_use", "id": "toolu_1", "name": "answer", "input": said}
    return {"type": "message", "role": "assistant", "content": [block],
            "stop_reason": "end_turn"}


class Classifier:
    def __init__(self):
        self.questions = []
        self.answer = lambda question: sure(question["agents"][0]["agentId"])
        self.end = threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                length = int(self.headers["Content-Length"])
                body = json.loads(self.rfile.read(length))
                outer.questions.append((dict(self.headers), body))
                try:
                    outer.reply(self, body)
                except (BrokenPipeError, ConnectionResetError):
                    pass

            def log_message(self, *_):
                pass

        class Quiet(socketserver.ThreadingTCPServer):
            daemon_threads = True
            request_queue_size = 64

            def handle_error(self, *_):
                pass

        self.server = Quiet(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"
        self.thread = threading.Thread(target=self.server.serve_forever,
                                       kwargs={"poll_interval": 0.01})

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.end.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def reply(self, handler, body):
        said = self.answer(json.loads(body["messages"][-1]["content"]))
        if said is None:
            self.end.wait()
            handler.close_connection = True
            return
        if not isinstance(said, tuple):
            said = 200, json.dumps(document(said, handler.path)).encode()
        status, answer = said
        handler.send_response(status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(answer)))
        handler.end_headers()
        handler.wfile.write(answer)
