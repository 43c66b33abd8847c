"""An HTTP server that says whatever bytes it is told to, on a free port:

    def answer(call):
        call.json({"text": "hi"})

    with RawServer(answer) as server:
        server.url                  # http://127.0.0.1:PORT
        server.calls                # what came: .path, .headers, .body
        server.script = another     # from the next request on

A script has the connection to itself: it may send what it likes, wait until
the other side has gone, or return, which closes it."""
import json
import socket
import threading

DEADLINE_S = 60
SSE = ("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
       "Connection: close\r\n\r\n")


class Call:
    """One request, and the connection that it came on."""

    def __init__(self, sock, head, body):
        self.sock = sock
        lines = head.decode("latin-1").split("\r\n")
        self.line = lines[0]
        self.path = lines[0].split(" ")[1]
        pairs = (line.split(": ", 1) for line in lines[1:] if line)
        self.headers = {name.lower(): value for name, value in pairs}
        self.raw = body
        self.body = json.loads(body) if body else None

    def send(self, data):
        """Bytes or text; what the other side does not want any more is
        dropped. Whether it was sent."""
        try:
            self.sock.sendall(data.encode() if isinstance(data, str) else data)
            return True
        except OSError:
            return False

    def answer(self, status, body=b"", *headers):
        body = body.encode() if isinstance(body, str) else body
        head = "".join(header + "\r\n" for header in headers)
        self.send(f"HTTP/1.1 {status}\r\n{head}Content-Length: {len(body)}\r\n"
                  "Connection: close\r\n\r\n".encode() + body)

    def json(self, value, status="200 OK", *headers):
        self.answer(status, json.dumps(value),
                    "Content-Type: application/json", *headers)

    def event(self, kind, data):
        """One event of a stream that was begun with SSE."""
        return self.send((f"event: {kind}\n" if kind else "") +
                         f"data: {json.dumps(data)}\n\n")

    def until_gone(self):
        """Wait until the other side has closed."""
        try:
            while self.sock.recv(65536):
                pass
        except OSError:
            pass


class RawServer:
    def __init__(self, script):
        self.script = script
        self.calls = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.serve, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        # One that is closed does not wake up anyone who waits in accept.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(DEADLINE_S)

    def serve(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.talk, args=(sock,),
                             daemon=True).start()

    def talk(self, sock):
        with sock:
            sock.settimeout(DEADLINE_S)
            try:
                call = self.read(sock)
            except OSError:
                return
            if call:
                self.calls.append(call)
                self.script(call)

    def read(self, sock):
        data = b""
        while b"\r\n\r\n" not in data:
            more = sock.recv(65536)
            if not more:
                return None
            data += more
        head, body = data.split(b"\r\n\r\n", 1)
        length = 0
        for line in head.split(b"\r\n"):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        while len(body) < length:
            more = sock.recv(65536)
            if not more:
                return None
            body += more
        return Call(sock, head, body)
