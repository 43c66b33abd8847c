"""/hub in as few steps as possible, for tests that say a lot on it: JSON
objects out, JSON objects in.

    wire = HubWire(server.address, server.token)
    wire.say({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    for message in wire.hear():     # what has come; EOFError at the end
        ...
"""
import json
import socket
import struct

from signalbox import DEADLINE_S
from ws_wire import KEY, accept_of

TEXT, CLOSE, PING, PONG = 1, 8, 9, 10
NO_MASK = bytes(4)  # one like any other, and no work


def frame(payload, opcode=TEXT):
    n = len(payload)
    if n < 126:
        head = struct.pack("!BB", 0x80 | opcode, 0x80 | n)
    elif n < 65536:
        head = struct.pack("!BBH", 0x80 | opcode, 0x80 | 126, n)
    else:
        head = struct.pack("!BBQ", 0x80 | opcode, 0x80 | 127, n)
    return head + NO_MASK + payload


class HubWire:
    def __init__(self, address, token):
        self.socket = socket.create_connection(address, DEADLINE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.got = b""
        try:
            self.upgrade(address, token)
        except BaseException:
            self.socket.close()
            raise

    def upgrade(self, address, token):
        self.socket.sendall("\r\n".join([
            "GET /hub HTTP/1.1", f"Host: {address[0]}:{address[1]}",
            "Upgrade: websocket", "Connection: Upgrade",
            f"Sec-WebSocket-Key: {KEY.decode()}", "Sec-WebSocket-Version: 13",
            f"Authorization: Bearer {token}", "", ""]).encode())
        while b"\r\n\r\n" not in self.got:
            self.more()
        head, _, self.got = self.got.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 101") or accept_of(KEY) not in head:
            raise ConnectionError(f"no WebSocket: {head!r} {self.got!r}")

    def more(self):
        data = self.socket.recv(1 << 16)
        if not data:
            raise EOFError
        self.got += data

    def say(self, *messages):
        self.socket.sendall(b"".join(
            frame(json.dumps(m).encode()) for m in messages))

    def hear(self):
        """What has come; waits for something if nothing has."""
        self.more()
        return list(self.messages())

    def messages(self):
        while (found := self.frame()) is not None:
            opcode, payload = found
            if opcode == TEXT:
                yield json.loads(payload)
            elif opcode == PING:
                self.socket.sendall(frame(payload, PONG))
            elif opcode == CLOSE:
                raise EOFError

    def frame(self):
        got = self.got
        if len(got) < 2:
            return None
        n, at = got[1], 2
        if n == 126:
            n, at = int.from_bytes(got[2:4], "big"), 4
        elif n == 127:
            n, at = int.from_bytes(got[2:10], "big"), 10
        if len(got) < at or len(got) < at + n:
            return None
        self.got = got[at + n:]
        return got[0] & 15, got[at:at + n]

    def close(self):
        """In good order."""
        try:
            self.socket.sendall(frame(struct.pack("!H", 1000), CLOSE))
        except OSError:
            pass
        self.socket.close()

    def cut(self):
        """As a crash of the machine would, or a cable."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                               struct.pack("ii", 1, 0))
        self.socket.close()
