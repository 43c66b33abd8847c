"""A provider of vectors that speaks OpenAI's /v1/embeddings, as a server of its
own on a free port:

    with Provider(dims=8) as provider:
        provider.url                # for embed.http.url
        provider.mode = "broken"    # what it does from now on
        provider.requests           # the bodies that came
        provider.keys               # and what was in Authorization
        provider.gate.clear()       # answers wait until it is set again

Modes: "well"; "reversed", the last vector first; "base64"; "broken" (500),
"locked" (401, which repeats the key), "slow" (429 with Retry-After), "html",
"short" (a vector too few), "twice" (an index twice), "nan", "zero",
"truncated", "other" (another length)."""
import base64
import hashlib
import http.server
import json
import struct
import threading

from quiet import Quiet


def vector(text, dims):
    """What it answers for a text: always the same."""
    digest = hashlib.shake_128(text.encode("utf-8", "replace")).digest(dims)
    return [(byte - 127.5) / 64 for byte in digest]


class Provider:
    def __init__(self, dims=8):
        self.dims = dims
        self.mode = "well"
        self.requests = []
        self.keys = []
        self.gate = threading.Event()
        self.gate.set()
        provider = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                length = int(self.headers["Content-Length"])
                body = json.loads(self.rfile.read(length))
                provider.requests.append(body)
                provider.keys.append(self.headers["Authorization"])
                provider.gate.wait(60)
                status, headers, answer = provider.answer(
                    body, self.headers["Authorization"])
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self.server = Quiet(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/v1/embeddings"
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

    def data(self, texts):
        dims = self.dims + (self.mode == "other")
        data = [{"object": "embedding", "index": i,
                 "embedding": vector(text, dims)}
                for i, text in enumerate(texts)]
        if self.mode == "reversed":
            data.reverse()
        elif self.mode == "base64":
            for element in data:
                numbers = struct.pack(f"<{dims}f", *element["embedding"])
                element["embedding"] = base64.b64encode(numbers).decode()
        elif self.mode == "short":
            data.pop()
        elif self.mode == "twice":
            data.append(data[0])
        elif self.mode == "nan":
            data[0]["embedding"][0] = float("nan")
        elif self.mode == "zero":
            data[0]["embedding"] = [0] * dims
        return data

    def answer(self, body, key):
        """Status, headers and body."""
        kind = {"Content-Type": "application/json"}
        if self.mode == "broken":
            return 500, kind, b'{"error":{"message":"out of order"}}'
        if self.mode == "locked":
            words = f"Incorrect API key provided: {key}"
            return 401, kind, json.dumps(
                {"error": {"message": words}}).encode()
        if self.mode == "slow":
            return 429, {**kind, "Retry-After": "3600"}, b"{}"
        if self.mode == "html":
            return 200, {"Content-Type": "text/html"}, b"<html>Welcome</html>"
        answer = json.dumps({"object": "list", "model": body["model"],
                             "data": self.data(body["input"]),
                             "usage": {"prompt_tokens": 1}}).encode()
        return 200, kind, answer[:-9] if self.mode == "truncated" else answer
