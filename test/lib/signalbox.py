"""The real server as a child, and HTTP to talk to it with: as bytes,

    with Server("--set", "http.maxBodyBytes=10") as server:
        with server.connect() as peer:
            peer.send(b"GET /healthz HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
            print(peer.response().status)

or as calls of the API:

    with Server(agents=ECHO) as server:
        print(server.send("hello").json()["text"])
        anna = server.user("anna")
        print(server.call("GET", "/api/tasks", token=anna).json())
        with server.events("/api/feed?after=0") as events:
            for id, event, data in events:
                print(id, event, data)

Texts are read in the background; anyone who looks at scores waits for that:

    with Server(agents=ECHO) as server:
        server.ready()
        ...

A server that must come back is given a data folder of its own, which stays:

    with Server(agents=ECHO, data=data) as server:
        token = server.token
        server.kill9()
    with Server(agents=ECHO, data=data, token=token) as server:
        ...

Each server takes a free port and a fresh data folder, so that tests can run
side by side. Waits end with an error after DEADLINE_S, never by themselves.
"""
import collections
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time

BINARY = os.environ["SIGNALBOX_BIN"]
DEADLINE_S = 60
COMPLAINTS = ("AddressSanitizer", "LeakSanitizer", "ThreadSanitizer",
              "runtime error:", "Assertion")
ECHO = [{"id": "echo", "url": "echo:"}]
OWN = object()  # the token of the server itself, where none is said


class Server:
    """A running `signalbox serve`; args are added to its command line.

    agents, and config (a dictionary of other settings), become its
    configuration file. token is for calls, where the one that a first start
    prints is not to be had any more."""

    def __init__(self, *args, data=None, listen="127.0.0.1:0", before=(),
                 agents=None, config=None, token=None):
        self.folder = tempfile.mkdtemp(prefix="signalbox-test-")
        self.data = data or os.path.join(self.folder, "data")
        self.was_killed = False
        if agents is not None or config is not None:
            args = ("--config", self.write_config(agents, config), *args)
        self.errors = open(os.path.join(self.folder, "stderr"), "w+b")
        self.process = subprocess.Popen(
            [*before, BINARY, "serve", "--json", "--data", self.data,
             "--set", "listen=" + listen, *args],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=self.errors, cwd=self.folder, env=clean_environment())
        try:
            listening = self.listening()
        except BaseException:
            self.kill()
            raise
        self.url = listening["url"]
        self.tls_url = listening.get("tls_url")
        self.metrics_url = listening.get("metrics_url")
        self.token = token or listening.get("token")
        self.address = address_of(self.url)
        self.tls_address = self.tls_url and address_of(self.tls_url)
        self.host = self.url.split("://")[1].encode()

    def write_config(self, agents=None, config=None):
        """Its configuration file; also a new one for a running server."""
        settings = dict(config or {})
        if agents is not None:
            settings["agents"] = {"list": agents}
        path = os.path.join(self.folder, "test.jsonc")
        with open(path + ".new", "w", encoding="utf-8") as f:
            json.dump(settings, f)
        os.rename(path + ".new", path)
        return path

    def listening(self):
        """The one line it prints on stdout once it can be reached."""
        ready, _, _ = select.select([self.process.stdout], [], [], DEADLINE_S)
        line = self.process.stdout.readline() if ready else b""
        if not line:
            raise AssertionError("the server did not start: " + self.said())
        event = json.loads(line)
        if event["event"] != "listening":
            raise AssertionError(f"not a listening line: {line!r}")
        return event

    def said(self):
        """What it wrote to stderr so far."""
        self.errors.seek(0)
        return self.errors.read().decode("utf-8", "replace")

    def stop(self):
        """Ask it to end; it must do so well, without a complaint."""
        try:
            self.process.send_signal(signal.SIGTERM)
            status = self.process.wait(DEADLINE_S)
            said = self.said()
            if status != 0:
                raise AssertionError(f"exit status {status} after SIGTERM: "
                                     + said)
            for complaint in COMPLAINTS:
                if complaint in said:
                    raise AssertionError(said)
        finally:
            self.kill()

    def kill9(self):
        """End it as a crash would; nothing is asked of it any more."""
        self.was_killed = True
        self.process.kill()
        self.process.wait()

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.errors.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None and self.was_killed:
            self.kill()
        elif kind is None:
            self.stop()
        else:
            print(f"exit status {self.process.poll()}\n{self.said()}")
            self.kill()

    def connect(self, source=None):
        """A connection, from another address of this machine if one is
        given: all of 127.0.0.0/8 are."""
        return Peer(socket.create_connection(
            self.address, DEADLINE_S, source and (source, 0)))

    def get(self, path, *headers):
        """One request on a connection of its own."""
        with self.connect() as peer:
            peer.send(request("GET", path, "Connection: close", *headers,
                              host=self.host))
            return peer.response()

    def call(self, method, path, body=None, *headers, token=OWN, source=None):
        """One call of the API; body is bytes, or anything to send as JSON.
        token=None sends none."""
        with self.connect(source) as peer:
            peer.send(self.request(method, path, body, "Connection: close",
                                   *headers, token=token))
            return peer.response()

    def request(self, method, path, body=None, *headers, token=OWN):
        """The bytes of a call."""
        token = self.token if token is OWN else token
        if token is not None:
            headers = (f"Authorization: Bearer {token}", *headers)
        if body is None:
            body = b""
        elif not isinstance(body, bytes):
            body = json.dumps(body).encode()
            headers = ("Content-Type: application/json", *headers)
        return request(method, path, *headers, host=self.host, body=body)

    def send(self, text, *headers, to="echo", token=OWN, **fields):
        """POST /api/messages; fields are those of the body."""
        body = {"text": text, "executor": {"name": to}, **fields}
        return self.call("POST", "/api/messages", body, *headers, token=token)

    def events(self, path, *headers, after=None, token=OWN, method="GET",
               body=None):
        """A stream of events, open until it is closed or ends; after is the
        last id that was seen."""
        if after is not None:
            headers = (f"Last-Event-ID: {after}", *headers)
        peer = self.connect()
        peer.send(self.request(method, path, body,
                               "Accept: text/event-stream", *headers,
                               token=token))
        return Events(peer)

    def ready(self):
        """Wait for ready, below; itself."""
        ready(self.address)
        return self

    def user(self, name, role="user", **fields):
        """Make a user and a token for it; the token."""
        made = self.call("POST", "/api/users",
                         {"name": name, "role": role, **fields})
        if made.status != 201:
            raise AssertionError(f"no user {name}: {made}")
        made = self.call("POST", "/api/tokens", {"user": name})
        if made.status != 201:
            raise AssertionError(f"no token for {name}: {made}")
        return made.json()["token"]


def address_of(url):
    host, port = url.split("://")[1].rsplit(":", 1)
    return host, int(port)


def clean_environment():
    """The environment without settings for the server."""
    return {k: v for k, v in os.environ.items()
            if not k.startswith("SIGNALBOX_")}


def refuses_to_start(*args, before=()):
    """Run `signalbox ARGS`, which must end by itself: status, stderr."""
    run = subprocess.run([*before, BINARY, *args], stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         env=clean_environment(), timeout=DEADLINE_S,
                         check=False)
    return run.returncode, run.stderr.decode("utf-8", "replace")


def request(method, path, *headers, host=b"localhost", body=b""):
    """The bytes of a good request."""
    lines = [f"{method} {path} HTTP/1.1".encode(), b"Host: " + host]
    lines += [h.encode() for h in headers]
    if body:
        lines.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


class Response:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers  # names in lower case
        self.body = body

    def __repr__(self):
        return f"Response({self.status}, {self.headers}, {self.body!r})"

    def json(self):
        return json.loads(self.body)

    @property
    def closes(self):
        return self.headers.get("connection", "").lower() == "close"


class Peer:
    """One connection, seen as bytes."""

    def __init__(self, sock):
        self.socket = sock
        self.socket.settimeout(DEADLINE_S)
        self.got = b""
        self.is_closed = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        """Send; a peer that has hung up meanwhile may be read all the same."""
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def more(self):
        """Read once. False when the other side has closed."""
        try:
            data = self.socket.recv(65536)
        except ConnectionResetError:
            data = b""
        self.got += data
        self.is_closed = not data
        return bool(data)

    def take(self, n):
        taken, self.got = self.got[:n], self.got[n:]
        return taken

    def line(self):
        while b"\r\n" not in self.got:
            if not self.more():
                raise EOFError(f"closed within {self.got!r}")
        return self.take(self.got.index(b"\r\n") + 2)[:-2]

    def exactly(self, n):
        while len(self.got) < n:
            if not self.more():
                raise EOFError(f"closed {n - len(self.got)} bytes early")
        return self.take(n)

    def chunks(self):
        body = b""
        while size := int(self.line(), 16):
            body += self.exactly(size)
            if self.exactly(2) != b"\r\n":
                raise ValueError("chunk without its end")
        while self.line():
            pass
        return body

    def head(self):
        """Status and headers of the next response, whose body is left."""
        version, status, _ = (self.line() + b" ").split(b" ", 2)
        if version != b"HTTP/1.1":
            raise ValueError(f"no HTTP/1.1 status line: {version!r}")
        headers = {}
        while line := self.line():
            name, value = line.split(b":", 1)
            headers[name.decode().lower()] = value.strip().decode("latin-1")
        return int(status), headers

    def response(self, to_head=False):
        """The next response, whole; None when the peer closed instead."""
        if not self.got and not self.more():
            return None
        status, headers = self.head()
        return self.rest(status, headers, to_head)

    def rest(self, status, headers, to_head=False):
        """The response whose head was read."""
        if to_head or status < 200 or status in (204, 304):
            body = b""
        elif "content-length" in headers:
            body = self.exactly(int(headers["content-length"]))
        elif headers.get("transfer-encoding") == "chunked":
            body = self.chunks()
        else:
            while self.more():
                pass
            body = self.take(len(self.got))
        return Response(status, headers, body)

    def until_close(self):
        """All responses until the peer closes."""
        responses = []
        while r := self.response():
            responses.append(r)
        return responses


Event = collections.namedtuple("Event", "id event data")


class Events:
    """Server-sent events as they come: (id, event, data), data as JSON.

    What is no stream is an error when it is iterated, and `response`."""

    def __init__(self, peer):
        self.peer = peer
        self.text = b""
        self.n_comments = 0
        self.response = None
        try:
            self.status, self.headers = peer.head()
            kind = self.headers.get("content-type", "")
            if not kind.startswith("text/event-stream"):
                self.response = peer.rest(self.status, self.headers)
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.peer.socket.close()

    def more(self):
        """More of the body; False at its end, however that came."""
        if self.headers.get("transfer-encoding") == "chunked":
            try:
                size = int(self.peer.line(), 16)
                self.text += self.peer.exactly(size)
                self.peer.exactly(2)
            except EOFError:
                size = 0
            return size > 0
        if not self.peer.got and not self.peer.more():
            return False
        self.text += self.peer.take(len(self.peer.got))
        return True

    def block(self):
        """The lines up to an empty one; None at the end."""
        while b"\n\n" not in self.text:
            if not self.more():
                return None
        block, self.text = self.text.split(b"\n\n", 1)
        return block.decode().split("\n")

    def __iter__(self):
        return self

    def __next__(self):
        if self.response:
            raise AssertionError(f"no stream of events: {self.response}")
        # Comments keep a silent stream open: they must not keep us too.
        end = time.monotonic() + DEADLINE_S
        while (block := self.block()) is not None:
            fields = {}
            for line in block:
                name, _, value = line.partition(":")
                fields.setdefault(name, []).append(value.removeprefix(" "))
            self.n_comments += len(fields.pop("", ()))
            if "data" in fields:
                return Event(fields.get("id", [None])[0],
                             fields.get("event", ["message"])[0],
                             json.loads("\n".join(fields["data"])))
            if time.monotonic() > end:
                raise AssertionError(f"no event within {DEADLINE_S} s")
        raise StopIteration

    def take(self, n):
        """The next n events."""
        events = []
        while len(events) < n:
            event = next(self, None)
            if event is None:
                raise EOFError(f"ended after {events}")
            events.append(event)
        return events


def metric(server, name):
    """The sum of a metric over its labels."""
    return figure(server.get("/metrics").body.decode(), name)


def figure(text, name):
    """The same, of what /metrics has said."""
    total = 0.0
    for line in text.splitlines():
        if line.split("{")[0].split(" ")[0] == name:
            total += float(line.rsplit(" ", 1)[1])
    return total


def ready(address):
    """Wait until no agent or reference text of the server there waits for
    vectors: from then on the same text gets the same scores."""
    ask = request("GET", "/metrics", "Connection: close",
                  host=f"{address[0]}:{address[1]}".encode())

    def is_ready():
        with Peer(socket.create_connection(address, DEADLINE_S)) as peer:
            peer.send(ask)
            text = peer.response().body.decode()
        return figure(text, "signalbox_vectors_ready") == 1
    eventually(is_ready, "the vectors that choices and searches go by")


def eventually(condition, what):
    """Wait for something another process brings about."""
    end = time.monotonic() + DEADLINE_S
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not within {DEADLINE_S} s: {what}")
        time.sleep(0.01)
