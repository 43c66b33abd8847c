"""Many WebSocket clients in a process of their own, which keep nothing but
their sockets: `ws_crowd.py HOST:PORT PATH N [CA-FILE]`.

It opens N, has one message echoed on each if the path is /echo, prints `open`,
and never reads again. It ends with its stdin. With TLS the keys of a
connection are forgotten once it is open: nothing more can be said on it, and
the server cannot know.
"""
import resource
import socket
import ssl
import sys

from ws_wire import KEY, TEXT, Wrong, accept_of, masked

RECEIVE_BYTES = 4096  # as little as the kernel does with
MESSAGE = b"x" * 1000


def allow_files(n):
    """Let this process have n more files; whether that is possible."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if n + 100 > hard:
        return False
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return True


class Plain:
    def __init__(self, sock):
        self.send, self.receive = sock.sendall, sock.recv


class Tls:
    """TLS on a socket that it does not own."""

    def __init__(self, sock, context):
        self.socket = sock
        self.come, self.go = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.come, self.go,
                                    server_hostname="localhost")
        self.do(self.tls.do_handshake)

    def do(self, step, *args):
        while True:
            try:
                done = step(*args)
                self.socket.sendall(self.go.read())
                return done
            except ssl.SSLWantReadError:
                self.socket.sendall(self.go.read())
                data = self.socket.recv(65536)
                if not data:
                    raise EOFError("hung up") from None
                self.come.write(data)

    def send(self, data):
        self.do(self.tls.write, data)

    def receive(self, n):
        return self.do(self.tls.read, n)


def until(line, enough):
    got = b""
    while not enough(got):
        data = line.receive(65536)
        if not data:
            raise EOFError(f"hung up after {got!r}")
        got += data
    return got


def enter(address, path, context):
    """One more; its socket."""
    sock = socket.socket()
    sock.settimeout(60)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
    sock.connect(address)
    line = Tls(sock, context) if context else Plain(sock)
    line.send(b"\r\n".join([
        b"GET %b HTTP/1.1" % path.encode(), b"Host: localhost",
        b"Upgrade: websocket", b"Connection: Upgrade",
        b"Sec-WebSocket-Key: " + KEY, b"Sec-WebSocket-Version: 13", b"", b""]))
    if path == "/echo":
        head = until(line, lambda got: got.endswith(b"\r\n\r\n"))
        if accept_of(KEY) not in head:
            raise Wrong(f"no WebSocket: {head!r}")
        line.send(masked(TEXT, MESSAGE))
        until(line, lambda got: got.endswith(MESSAGE))
    return sock


def main(where, path, n, ca=None):
    host, port = where.rsplit(":", 1)
    context = ssl.create_default_context(cafile=ca) if ca else None
    if not allow_files(int(n)):
        sys.exit(f"no {n} files for one process here")
    crowd = [enter((host, int(port)), path, context) for _ in range(int(n))]
    print("open", flush=True)
    sys.stdin.read()
    del crowd


if __name__ == "__main__":
    main(*sys.argv[1:])
