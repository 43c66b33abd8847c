"""WebSocket as bytes on a socket, for tests: frames as right or wrong as they
are asked for, and a reader that takes nothing wrong.

    with Wire.dial("127.0.0.1", port, "/echo") as wire:
        wire.send(masked(TEXT, b"hello"))
        print(wire.event())     # Event("text", b"hello")

Waits end with an error after `patience` seconds, never by themselves.
"""
import base64
import collections
import hashlib
import os
import random
import select
import socket

CONT, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
KEY = b"dGhlIHNhbXBsZSBub25jZQ=="
MASK = b"\x37\xfa\x21\x3d"
PATIENCE_S = 60
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Wrong(Exception):
    """The other side did what it must not."""


def accept_of(key):
    return base64.b64encode(hashlib.sha1(key + GUID).digest())


def masked_bytes(data, key):
    if not data:
        return b""
    n = len(data)
    pad = (key * (n // 4 + 1))[:n]
    return (int.from_bytes(data, "big") ^ int.from_bytes(pad, "big")) \
        .to_bytes(n, "big")


def frame(opcode, payload=b"", *, mask=None, fin=True, rsv=0, form=None,
          claim=None):
    """One frame. claim is the length it says, form how it says it (7, 16 or
    64 bits), where that is not what it ought to be."""
    n = len(payload) if claim is None else claim
    form = form or (7 if n < 126 else 16 if n < 1 << 16 else 64)
    first = (0x80 if fin else 0) | rsv << 4 | opcode
    bit = 0x80 if mask is not None else 0
    if form == 7:
        head = bytes([first, bit | n])
    elif form == 16:
        head = bytes([first, bit | 126]) + n.to_bytes(2, "big")
    else:
        head = bytes([first, bit | 127]) + n.to_bytes(8, "big")
    if mask is not None:
        head += mask
        payload = masked_bytes(payload, mask)
    return head + payload


def masked(opcode, payload=b"", **how):
    """A frame as clients send them."""
    return frame(opcode, payload, **{"mask": MASK, **how})


def close_body(code, reason=b""):
    return code.to_bytes(2, "big") + reason


Event = collections.namedtuple("Event", "kind payload")
EOF = Event("eof", b"")
Head = collections.namedtuple("Head", "status headers line")


def pieces(data, chop):
    """data cut up: chop is None for whole, a size, or a random.Random."""
    if chop is None:
        yield data
        return
    at = 0
    while at < len(data):
        n = chop if isinstance(chop, int) else chop.choice((1, 2, 3, 7, 40))
        yield data[at:at + n]
        at += n


class Wire:
    """One connection. The other side is a server unless peer_masks."""

    def __init__(self, sock, patience=PATIENCE_S, peer_masks=False):
        self.socket = sock
        self.socket.setblocking(False)
        if sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.patience = patience
        self.peer_masks = peer_masks
        self.masks = set()
        self.got = b""
        self.is_over = False   # nothing more will come
        self.kind = None       # of the message that is being gathered
        self.message = b""

    @classmethod
    def dial(cls, host, port, path="/echo", patience=PATIENCE_S):
        wire = cls(socket.create_connection((host, port), patience), patience)
        wire.upgrade(path, f"{host}:{port}".encode())
        return wire

    def upgrade(self, path="/echo", host=b"localhost", extra=()):
        key = base64.b64encode(os.urandom(16))
        self.send(b"\r\n".join(
            [b"GET %b HTTP/1.1" % path.encode(), b"Host: " + host,
             b"Upgrade: websocket", b"Connection: Upgrade",
             b"Sec-WebSocket-Key: " + key, b"Sec-WebSocket-Version: 13",
             *extra, b"", b""]))
        head = self.head()
        if head.status != 101 or \
                head.headers.get(b"sec-websocket-accept") != [accept_of(key)]:
            raise Wrong(f"no WebSocket: {head}")
        return head

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data, chop=None):
        """Send, and meanwhile take what comes: no one waits for the other. A
        peer that hung up may be read all the same."""
        for piece in pieces(data, chop):
            view = memoryview(piece)
            while len(view):
                try:
                    view = view[self.socket.send(view):]
                except BlockingIOError:
                    self.wait(True)
                except (BrokenPipeError, ConnectionResetError):
                    return
            if chop is not None:
                self.take_what_is_there()

    def wait(self, to_send=False):
        ready = select.select([] if self.is_over else [self.socket],
                              [self.socket] if to_send else [], [],
                              self.patience)
        if not any(ready):
            raise Wrong(f"silent for {self.patience} s, "
                        f"with {self.got[:40]!r} unread")
        if ready[0]:
            self.take_what_is_there()

    def take_what_is_there(self):
        try:
            data = self.socket.recv(1 << 18)
        except BlockingIOError:
            return
        except ConnectionResetError:
            data = b""
        self.got += data
        self.is_over = not data

    def need(self, n):
        """Whether n bytes are there, sooner or later."""
        while len(self.got) < n and not self.is_over:
            self.wait()
        return len(self.got) >= n

    def take(self, n):
        taken, self.got = self.got[:n], self.got[n:]
        return taken

    def head(self):
        """The head of an HTTP message; EOF where it never ends."""
        while b"\r\n\r\n" not in self.got:
            if self.is_over:
                return EOF
            self.wait()
        raw = self.take(self.got.index(b"\r\n\r\n") + 4)[:-4]
        line, *lines = raw.split(b"\r\n")
        headers = {}
        for name, value in (h.split(b":", 1) for h in lines):
            headers.setdefault(name.lower(), []).append(value.strip())
        words = line.split(b" ", 2)
        status = int(words[1]) if words[0].startswith(b"HTTP/") else None
        return Head(status, headers, line)

    def frame(self):
        """(fin, opcode, payload) of the next frame, or None at the end."""
        if not self.need(2):
            if self.got:
                raise Wrong(f"ended within a frame: {self.got!r}")
            return None
        first, second = self.got[0], self.got[1]
        n, extra = second & 127, 0
        if n > 125:
            extra = 2 if n == 126 else 8
            self.must(self.need(2 + extra), "ended within a length")
            n = int.from_bytes(self.got[2:2 + extra], "big")
            self.must(n > (125 if extra == 2 else 65535), "long length")
        self.must(not first & 0x70, "reserved bits")
        self.must(bool(second & 128) == self.peer_masks, "mask")
        start = 2 + extra + (4 if self.peer_masks else 0)
        self.must(self.need(start + n), "ended within a payload")
        head, payload = self.take(start), self.take(n)
        if self.peer_masks:
            self.masks.add(head[-4:])
            payload = masked_bytes(payload, head[-4:])
        return bool(first & 0x80), first & 15, payload

    @staticmethod
    def must(holds, what):
        if not holds:
            raise Wrong("a bad frame came: " + what)

    def event(self):
        """The next message, ping, pong or close, or EOF."""
        while (got := self.frame()) is not None:
            fin, opcode, payload = got
            if opcode >= CLOSE:
                return self.control(fin, opcode, payload)
            self.must(opcode in (CONT, TEXT, BINARY), "reserved opcode")
            self.must((opcode == CONT) == (self.kind is not None), "order")
            if opcode != CONT:
                self.kind = "text" if opcode == TEXT else "binary"
            self.message += payload
            if fin:
                event = Event(self.kind, self.message)
                self.kind, self.message = None, b""
                if event.kind == "text":
                    event.payload.decode("utf-8")
                return event
        return EOF

    def control(self, fin, opcode, payload):
        self.must(fin and len(payload) <= 125, "control frame")
        if opcode == CLOSE:
            self.must(len(payload) != 1, "close of one byte")
            payload[2:].decode("utf-8")
            return Event("close", payload)
        self.must(opcode in (PING, PONG), "reserved opcode")
        return Event("ping" if opcode == PING else "pong", payload)

    def hang_up(self):
        """Send no more; the other side learns of it."""
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def dice(seed):
    """A way to chop that is the same in every run."""
    return random.Random(seed)
