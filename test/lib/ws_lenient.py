"""A WebSocket echo that gets it wrong in the usual ways, for testing the
tests: anyone who sends a key is welcome, whatever comes is a message if there is
any way to see it as one, and no close is too odd to be sent back."""
import socket
import socketserver
import threading

from ws_wire import (CLOSE, PING, PONG, TEXT, accept_of, frame, masked_bytes)


class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.request.makefile("rb")
        try:
            if self.hello():
                while self.one():
                    pass
        except OSError:
            pass

    def hello(self):
        key = b""
        while (line := self.file.readline()).strip() or not key:
            if not line:
                return False
            name, _, value = line.partition(b":")
            if name.lower().strip() == b"sec-websocket-key":
                key = value.strip()
        self.request.sendall(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
            b"Connection: Upgrade\r\nSec-WebSocket-Accept: " + accept_of(key)
            + b"\r\n\r\n")
        return True

    def one(self):
        """A frame is a message; a continuation is one as well."""
        head = self.file.read(2)
        if len(head) < 2:
            return False
        opcode, n = head[0] & 15, head[1] & 127
        if n > 125:
            n = int.from_bytes(self.file.read(2 if n == 126 else 8), "big")
        mask = self.file.read(4) if head[1] & 128 else bytes(4)
        payload = masked_bytes(self.file.read(min(n, 1 << 20)), mask)
        if opcode == PING:
            opcode = PONG
        elif opcode == PONG:
            return True
        elif opcode != CLOSE:
            opcode = opcode or TEXT
        self.request.sendall(frame(opcode, payload))
        return opcode != CLOSE


class Lenient(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.serve_forever,
                                       kwargs={"poll_interval": 0.05})
        self.thread.start()

    def __exit__(self, *_):
        self.shutdown()
        self.thread.join()
        self.server_close()
