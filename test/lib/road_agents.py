"""Agents for every road, that do what they are told by the message itself.

A message is steps, one after the other, with bars between them:

    work            say that it is being worked on
    chunk:TEXT      a chunk
    say:TEXT        the result
    end             the result without a text: the chunks are it
    again:TEXT      a second result
    fail:CODE:WORDS the result: it failed
    big:N           a result of N bytes
    flood:N         chunks of so many bytes together, and the result
    busy            refuse it and ask for another try, the first time
    die             as a crash would, the first time
    hang            until someone cancels it
    meet:NAME:N     until N have come to a meeting of that name
    twice           say every word twice from here on, under the same id
    id:ANYTHING     makes a message unlike others

What an agent has to remember beyond its own death (how often a message came,
who was cancelled) lies in a folder: a Memory. How steps become words of a road
is all that its adapter does: HubAgent, HttpAgent, ModelAgent here, and
road_child.py for children."""
import hashlib
import http.server
import json
import os
import select
import socket
import socketserver
import threading
import time

from ws_wire import CONT, EOF, PONG, TEXT, Wire, Wrong, frame, masked

CHUNK = 64 * 1024
PATIENCE_S = 60
RETRY_AFTER_MS = 10


class Dead(Exception):
    """The agent has died."""


class Memory:
    """Counts by name, in files, so that they outlive processes."""

    def __init__(self, folder):
        self.folder = folder

    def path(self, kind, text):
        digest = hashlib.sha1(text.encode()).hexdigest()
        return os.path.join(self.folder, f"{kind}-{digest}")

    def count(self, kind, text):
        """One more; how many there are now."""
        with open(self.path(kind, text), "ab", buffering=0) as f:
            f.write(b".")
        return self.counted(kind, text)

    def counted(self, kind, text):
        try:
            return os.path.getsize(self.path(kind, text))
        except FileNotFoundError:
            return 0


def until(condition, what):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("waited in vain: " + what)
        time.sleep(0.005)


def perform(text, memory, out):
    """Do what the message says by out, an adapter. Anyone who dies raises."""
    is_first = memory.count("seen", text) == 1
    for step in text.split("|"):
        verb, _, rest = step.partition(":")
        if verb == "work":
            out.working()
        elif verb == "chunk":
            out.chunk(rest)
        elif verb in ("say", "again"):
            out.result({"status": "completed", "text": rest})
        elif verb == "end":
            out.result({"status": "completed"})
        elif verb == "fail":
            code, _, words = rest.partition(":")
            out.result({"status": "failed", "error_code": code,
                        "error": words})
        elif verb == "big":
            out.result({"status": "completed", "text": "x" * int(rest)})
        elif verb == "flood":
            for at in range(0, int(rest), CHUNK):
                out.chunk("x" * min(CHUNK, int(rest) - at))
            out.result({"status": "completed"})
        elif verb == "busy":
            if is_first:
                out.busy()
                return
        elif verb == "die":
            if is_first:
                out.die()
                raise Dead
        elif verb == "hang":
            out.hang()
            memory.count("cancelled", text)
            return
        elif verb == "twice":
            out.n_times = 2
        elif verb == "meet":
            name, _, n = rest.partition(":")
            memory.count("met", name)
            until(lambda: memory.counted("met", name) >= int(n), step)
        elif verb != "id":
            raise ValueError(f"no step {step!r}")


def in_thread(work, *args):
    thread = threading.Thread(target=work, args=args, daemon=True)
    thread.start()
    return thread


class RpcTask:
    """A task given by task.execute: of the hub, and of our own children. The
    agent has say(message) and die()."""

    def __init__(self, agent, call):
        self.agent = agent
        self.id = call["id"]
        self.params = call["params"]
        self.is_cancelled = threading.Event()
        self.is_answered = False
        self.n_times = 1

    def say(self, message):
        for _ in range(self.n_times):
            self.agent.say(message)

    def answer(self, **answer):
        if not self.is_answered:
            self.say({"id": self.id, **answer})
        self.is_answered = True

    def working(self):
        self.answer(result={"status": "working"})

    def which(self):
        return {key: self.params[key] for key in ("task_id", "turn")}

    def chunk(self, text):
        self.working()
        self.say({**({"id": self.agent.next_id()} if self.n_times > 1 else {}),
                  "method": "task.chunk",
                  "params": {**self.which(), "text": text}})

    def result(self, result):
        self.working()
        self.say({"id": self.agent.next_id(), "method": "task.result",
                  "params": {**self.which(), "metadata": {"n": 1}, **result}})

    def busy(self):
        self.answer(error={"code": -32000, "message": "busy just now",
                           "data": {"retry_after_ms": RETRY_AFTER_MS}})

    def die(self):
        self.agent.die()

    def hang(self):
        self.is_cancelled.wait(PATIENCE_S)


class RpcAgent:
    """Reads messages and works on tasks, each in a thread of its own."""

    task_class = RpcTask

    def __init__(self, memory):
        self.memory = memory
        self.lock = threading.Lock()
        self.tasks = {}
        self.answers = []  # to what it asked
        self.n_asked = 0

    def next_id(self):
        with self.lock:
            self.n_asked += 1
            return self.n_asked

    def heard(self, message):
        method = message.get("method")
        if method == "task.execute":
            task = self.task_class(self, message)
            self.tasks[message["params"]["task_id"]] = task
            in_thread(self.work, task)
        elif method == "task.cancel":
            task = self.tasks.get(message["params"]["task_id"])
            if task:
                task.is_cancelled.set()
        elif method == "hello":
            self.say({"id": message["id"], "result": {}})
        elif "method" not in message:
            self.answers.append(message)

    def work(self, task):
        try:
            perform(task.params["message"], self.memory, task)
        except (Dead, OSError):
            pass


class HubAgent(RpcAgent):
    """On the hub, as a configured agent of that name; comes back whenever it
    has lost its connection, until it is stopped."""

    def __init__(self, server, name, memory, card=None):
        super().__init__(memory)
        self.server = server
        self.card = {"name": name, **(card or {})}
        self.wire = None
        self.is_stopped = False
        self.is_there = threading.Event()
        self.n_lives = 0
        self.registered = None
        self.thread = None

    def __enter__(self):
        self.thread = in_thread(self.live)
        if not self.is_there.wait(PATIENCE_S):
            raise AssertionError("it did not get on the hub")
        return self

    def __exit__(self, *_):
        self.is_stopped = True
        self.die()
        self.thread.join(PATIENCE_S)

    def live(self):
        while not self.is_stopped:
            try:
                self.life()
            except (OSError, Wrong):
                if self.is_stopped:
                    return

    def life(self):
        """One connection, from its beginning to its end."""
        host, port = self.server.address
        wire = Wire(socket.create_connection((host, port), PATIENCE_S))
        with wire:
            wire.upgrade("/hub", f"{host}:{port}".encode(), [
                b"Authorization: Bearer " + self.server.token.encode()])
            self.wire = wire
            self.n_lives += 1
            me = self.next_id()
            self.say({"id": me, "method": "agent.register",
                      "params": {"card": self.card}})
            while (event := wire.event()) != EOF and event.kind != "close":
                if event.kind == "ping":
                    self.send(masked(PONG, event.payload))
                elif event.kind == "text":
                    message = json.loads(event.payload)
                    if message.get("id") == me and "method" not in message:
                        self.registered = message
                        self.is_there.set()
                    self.heard(message)

    def say(self, message):
        """In frames that are small enough to be taken."""
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        parts = [data[i:i + 4 * CHUNK] for i in range(0, len(data), 4 * CHUNK)]
        self.send(b"".join(
            frame(CONT if i else TEXT, part, mask=b"\1\2\3\4",
                  fin=i == len(parts) - 1) for i, part in enumerate(parts)))

    def send(self, data):
        view = memoryview(data)
        with self.lock:
            sock = self.wire.socket
            while len(view):
                try:
                    view = view[sock.send(view):]
                except BlockingIOError:
                    select.select([], [sock], [], PATIENCE_S)

    def die(self):
        """The connection is gone, without a word; it will be back."""
        try:
            self.wire.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


class Quiet(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True

    def handle_error(self, *_):
        pass


class WebAgent:
    """A server of HTTP whose every POST is a task. `stream` makes what is
    said of it, `body` takes the message out of it."""

    def __init__(self, memory):
        self.memory = memory
        self.requests = []  # (headers, body)
        agent = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(
                    int(self.headers["Content-Length"])))
                agent.requests.append((dict(self.headers), body))
                agent.connections.add(self.connection)
                task = agent.task(self, body)
                try:
                    perform(task.text, agent.memory, task)
                    task.finish()
                except (Dead, OSError):
                    self.close_connection = True

            def log_message(self, *_):
                pass

        self.connections = set()
        self.server = Quiet(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self):
        self.thread = in_thread(self.server.serve_forever, 0.01)
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.die()

    def die(self):
        """Every connection is gone."""
        for connection in list(self.connections):
            hang_up(connection)
        self.connections.clear()


def hang_up(sock):
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


class WebTask:
    """One request. Its answer is a stream from the first word that is not the
    result."""

    def __init__(self, handler, text):
        self.handler = handler
        self.text = text
        self.has_begun = False

    def begin(self):
        if self.has_begun:
            return
        self.has_begun = True
        self.handler.send_response(200)
        self.handler.send_header("Content-Type", "text/event-stream")
        self.handler.send_header("Transfer-Encoding", "chunked")
        self.handler.end_headers()

    def put(self, data):
        self.begin()
        data = data.encode()
        self.handler.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.handler.wfile.flush()

    def whole(self, status, body, **headers):
        data = json.dumps(body).encode()
        self.has_begun = None  # and is over
        self.handler.send_response(status)
        self.handler.send_header("Content-Type", "application/json")
        self.handler.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.handler.send_header(name.replace("_", "-"), value)
        self.handler.end_headers()
        self.handler.wfile.write(data)
        self.handler.wfile.flush()

    def working(self):
        self.begin()

    def die(self):
        hang_up(self.handler.connection)

    def hang(self):
        """Until the other side has gone: nothing else is said there."""
        ready, _, _ = select.select([self.handler.connection], [], [],
                                    PATIENCE_S)
        if ready and self.handler.connection.recv(1):
            raise AssertionError("more came on the connection")
        self.handler.close_connection = True

    def finish(self):
        if self.has_begun and not self.handler.close_connection:
            self.handler.wfile.write(b"0\r\n\r\n")


class HttpTask(WebTask):
    def chunk(self, text):
        if self.has_begun is not None:
            self.event("chunk", {"text": text})

    def event(self, name, data):
        self.put(f"event: {name}\ndata: {json.dumps(data)}\n\n")

    def result(self, result):
        if self.has_begun is False:
            self.whole(200, {"metadata": {"n": 1}, **result})
        elif self.has_begun:
            self.event("result", {"metadata": {"n": 1}, **result})

    def busy(self):
        self.whole(503, {}, Retry_After="0")


class HttpAgent(WebAgent):
    """The body is task.execute's params, the answer task.result's."""

    def task(self, handler, body):
        return HttpTask(handler, body["message"])


class ModelTask(WebTask):
    def working(self):
        """There is no word for it; and where it fails, no stream begins."""

    def delta(self, text):
        self.put("data: " + json.dumps(
            {"object": "chat.completion.chunk", "model": "m", "choices": [
                {"index": 0, "delta": {"content": text},
                 "finish_reason": None}]}) + "\n\n")

    def chunk(self, text):
        if self.has_begun is not None:
            self.delta(text)

    def result(self, result):
        if self.has_begun is None:
            return
        if result["status"] == "failed":
            self.whole(400, {"error": {"message": result["error"],
                                       "code": result["error_code"]}})
            return
        text = result.get("text", "")
        for at in range(0, len(text), CHUNK):
            self.delta(text[at:at + CHUNK])
        self.put("data: " + json.dumps(
            {"object": "chat.completion.chunk", "choices": [
                {"index": 0, "delta": {}, "finish_reason": "stop"}]}) +
            "\n\ndata: [DONE]\n\n")
        self.handler.wfile.write(b"0\r\n\r\n")
        self.has_begun = None

    def busy(self):
        self.whole(429, {"error": {"message": "slow down"}}, Retry_After="0")


class ModelAgent(WebAgent):
    """An endpoint as OpenAI's: what is said last is the message."""

    def task(self, handler, body):
        said = body["messages"][-1]["content"]
        if not isinstance(said, str):
            said = "".join(part.get("text", "") for part in said)
        return ModelTask(handler, said)
