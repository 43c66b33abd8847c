"""A server that gets HTTP wrong in the usual ways, for testing the tests.

It never refuses anything: lines may end as they like, names and values are
cleaned up until they fit, numbers are read up to where they stop making sense.
What it believes when a request says two things depends on its creed:

    te    Transfer-Encoding, if anything in there looks like chunked
    cl    the last Content-Length, and chunks only without one
    first the first Content-Length, and never chunks
    deaf  no body ever comes
"""
import re
import socket
import socketserver
import threading

from signalbox import DEADLINE_S, Peer, request

IDLE_S = 0.25


class Reader:
    def __init__(self, sock):
        self.file = sock.makefile("rb")

    def line(self):
        """Up to LF, or to CR where something else follows; None at the end."""
        line = b""
        while byte := self.file.read(1):
            if byte == b"\r":
                if self.file.peek(1)[:1] == b"\n":
                    self.file.read(1)
                return line
            if byte == b"\n":
                return line
            line += byte
        return line or None

    def skip(self, n):
        """Read n bytes, or what there is."""
        while n > 0 and (data := self.file.read1(min(n, 65536))):
            n -= len(data)

    def chunks(self):
        while (line := self.line()) is not None:
            found = re.search(rb"[0-9a-fA-F]+", line.split(b"0x")[-1])
            size = int(found[0], 16) & 0xffffffff if found else 0
            if size == 0:
                break
            self.skip(size)
            if self.file.peek(1)[:1] in b"\r\n":
                self.line()
        while self.line():
            pass


class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        # What comes at all comes whole; only more of it is not waited for.
        self.request.settimeout(DEADLINE_S)
        self.request.recv(1, socket.MSG_PEEK)
        self.request.settimeout(IDLE_S)
        self.reader = Reader(self.request)
        try:
            while self.one():
                pass
        except OSError:
            pass

    def one(self):
        while (line := self.reader.line()) == b"":
            pass
        if line is None:
            return False
        words = line.split() + [b"/", b"/"]
        headers = []
        while header := self.reader.line():
            name, _, value = header.partition(b":")
            if not value and b" " in name.strip():
                name, value = name.strip().split(b" ", 1)
            name = re.sub(rb"[^a-z-]", b"", name.lower().replace(b"_", b"-"))
            headers.append((name, value.lower()))
        self.body(headers)
        self.answer(words[0], words[1])
        return (b"connection", b" close") not in headers

    def body(self, headers):
        creed = self.server.creed
        lengths = [re.search(rb"\d+", v) for n, v in headers
                   if n.endswith(b"content-length")]
        lengths = [int(found[0]) & 0xffffffff for found in lengths if found]
        chunked = any(b"chunked" in v for n, v in headers
                      if n.endswith(b"transfer-encoding"))
        if creed == "te" and chunked:
            self.reader.chunks()
        elif creed in ("te", "cl") and lengths:
            self.reader.skip(lengths[-1])
        elif creed == "first" and lengths:
            self.reader.skip(lengths[0])
        elif creed == "cl" and chunked:
            self.reader.chunks()

    def answer(self, method, target):
        with self.server.lock:
            self.server.n_requests += 1
            n = self.server.n_requests
        status, body = "404 Not Found", "no"
        if b"/healthz" in target:
            status, body = "200 OK", "ok"
        elif b"/metrics" in target:
            status, body = "200 OK", f"signalbox_http_requests_total {n}\n"
        head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n"
        self.request.sendall((head if method == b"HEAD" else head + body)
                             .encode())


class Lenient(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, creed):
        super().__init__(("127.0.0.1", 0), Handler)
        self.creed = creed
        self.n_requests = 0
        self.lock = threading.Lock()
        self.address = self.server_address
        self.host = b"%b:%d" % (self.address[0].encode(), self.address[1])
        self.thread = threading.Thread(target=self.serve_forever,
                                       kwargs={"poll_interval": 0.05})
        self.thread.start()

    def __exit__(self, *_):
        self.shutdown()
        self.thread.join()
        self.server_close()

    def connect(self):
        return Peer(socket.create_connection(self.address))

    def get(self, path):
        with self.connect() as peer:
            peer.send(request("GET", path, "Connection: close",
                              host=self.host))
            return peer.response()
