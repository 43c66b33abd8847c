"""The opening handshake as a server may get it wrong, and a hostile server to
play that, and the cases of ws_cases.py, against a client that echoes.

Each case runs a client of its own: `[*command, URL]`, which has to echo until
the connection ends, and then to end by itself.
"""
import base64
import collections
import itertools
import socket
import subprocess
import time

import ws_cases
from ws_cases import binary, pong, text
from ws_probe import play
from ws_wire import (BINARY, EOF, PATIENCE_S, PING, TEXT, Wire, Wrong,
                     accept_of, dice, frame, masked)

# answer: bytes, with @ACCEPT@ for the right one, or an endless iterator of
# them. opens: whether the client must take it. hangs_up: we do, behind it.
Answer = collections.namedtuple(
    "Answer", "name answer opens hangs_up chop steps")

LINE = "HTTP/1.1 101 Switching Protocols"
GOOD = (("Upgrade", "websocket"), ("Connection", "Upgrade"),
        ("Sec-WebSocket-Accept", "@ACCEPT@"))
POUR_BYTES = 8 << 20  # anyone who takes all of that has no limit


def answer(*more, line=LINE, eol="\r\n", body=b"", **changes):
    lines = [line]
    changes = {k.replace("_", "-").lower(): v for k, v in changes.items()}
    for name, value in GOOD:
        value = changes.pop(name.lower(), value)
        for v in value if isinstance(value, list) else [value]:
            if v is not None:
                lines.append(f"{name}: {v}")
    if changes:
        raise ValueError(f"no such header: {changes}")
    return eol.join([*lines, *more, "", ""]).encode("latin-1") + body


def ok(name, *more, chop=None, steps=(), **how):
    return Answer("answer: " + name, answer(*more, **how), True, False, chop,
                  (*steps, frame(TEXT, b"hello"), text(b"hello")))


def no(name, *more, raw=None, hangs_up=False, **how):
    return Answer("answer refused: " + name, raw or answer(*more, **how),
                  False, hangs_up, None, ())


def good_answers():
    yield ok("as it should be")
    yield ok("byte by byte", chop=1)
    for seed in 1, 2:
        yield ok(f"in pieces, {seed}", chop=dice(seed))
    for value in "WebSocket", "WEBSOCKET":
        yield ok(f"Upgrade: {value}", upgrade=value)
    for value in "upgrade", "keep-alive, Upgrade", "Upgrade, keep-alive":
        yield ok(f"Connection: {value}", connection=value)
    yield ok("another reason", line="HTTP/1.1 101 Here You Are")
    yield ok("an empty reason", line="HTTP/1.1 101 ")
    yield ok("more headers", "Server: x", "Date: now", "X-A: b")
    large = bytes(60000)
    for name, more, steps in (
            ("text", frame(TEXT, b"glued"), [text(b"glued")]),
            ("a ping", frame(PING, b"glued"), [pong(b"glued")]),
            ("half a frame", frame(TEXT, b"glued")[:3],
             [frame(TEXT, b"glued")[3:], text(b"glued")]),
            ("a large frame", frame(BINARY, large), [binary(large)])):
        yield ok(f"{name} glued behind it", body=more, steps=steps)
    yield ok("a bad frame glued behind it", body=frame(TEXT, b"a", rsv=4)) \
        ._replace(steps=(ws_cases.PROTOCOL,))


def bad_answers():
    for status in ("100 Continue", "102 Processing", "200 OK", "201 Created",
                   "204 No Content", "301 Moved Permanently", "302 Found",
                   "304 Not Modified", "307 Temporary Redirect",
                   "400 Bad Request", "401 Unauthorized", "403 Forbidden",
                   "404 Not Found", "426 Upgrade Required",
                   "500 Internal Server Error", "503 Service Unavailable"):
        # With everything an agreement has, but the status.
        yield no(f"status {status}", "Location: ws://127.0.0.1:9/echo",
                 "Content-Length: 0", line=f"HTTP/1.1 {status}")
    for line in ("HTTP/1.0 101 Switching Protocols", "HTTP/2 101 Yes",
                 "HTTP/1.1 1010 Yes", "HTTP/1.1 10 Yes", "HTTP/1.1 abc Yes",
                 "HTTP/1.1 -101 Yes", "HTTP/1.1  101 Yes", "HTTP/1.1",
                 "ICY 101 Yes", "101 Switching Protocols", "",
                 "GET /echo HTTP/1.1", "\x16\x03\x01\x02"):
        yield no(f"first line {line!r}", line=line)
    yield no("101 without headers", raw=b"HTTP/1.1 101 Yes\r\n\r\n")
    yield no("no Upgrade", upgrade=None)
    for value in "h2c", "websockets", "", "web socket":
        yield no(f"Upgrade: {value!r}", upgrade=value)
    yield no("two Upgrades", upgrade=["websocket", "h2c"])
    yield no("no Connection", connection=None)
    for value in "close", "keep-alive", "", "upgraded":
        yield no(f"Connection: {value!r}", connection=value)
    yield from bad_accepts()
    for value in ("permessage-deflate", "x-mux", ""):
        yield no(f"extension {value!r} that no one asked for",
                 f"Sec-WebSocket-Extensions: {value}")
    for value in "echo", "chat", "":
        yield no(f"protocol {value!r} that no one asked for",
                 f"Sec-WebSocket-Protocol: {value}")
    yield no("lines end in LF", eol="\n")
    yield no("a folded header", "X-A: b\r\n c")
    yield no("a NUL in a header", "X-A: \0")
    yield no("a header without a colon", "X-A")
    yield no("a space before a colon", "X-A : b")
    yield no("a body", "Content-Length: 5", body=b"abcde")
    yield no("a chunked body", "Transfer-Encoding: chunked",
             body=b"0\r\n\r\n")
    yield from cut_short()
    yield from endless()


def bad_accepts():
    yield no("no accept", sec_websocket_accept=None)
    yield no("two accepts", sec_websocket_accept=["@ACCEPT@", "@ACCEPT@"])
    other = base64.b64encode(bytes(20)).decode()
    for name, value in {"empty": "", "of another key": other,
                        "cut short": "@ACCEPT@"[:4], "in quotes":
                        '"@ACCEPT@"', "twice": "@ACCEPT@, @ACCEPT@",
                        "with more behind": "@ACCEPT@=", "the key itself":
                        "@KEY@", "in small letters": "@accept@"}.items():
        yield no(f"accept {name}", sec_websocket_accept=value)


def cut_short():
    whole = answer()
    yield no("hung up at once", raw=b" ", hangs_up=True)
    for at in 1, 9, 20, 60, len(whole) - 2, len(whole) - 1:
        yield no(f"hung up after {at} bytes", raw=whole[:at], hangs_up=True)


def endless():
    def pour(start, piece):
        return itertools.chain([start], itertools.repeat(piece))

    yield no("an endless first line", raw=pour(b"HTTP/1.1 101 ", b"x" * 4096))
    yield no("an endless header", raw=pour(LINE.encode() + b"\r\nX-A: ",
                                           b"x" * 4096))
    yield no("endless headers", raw=pour(LINE.encode() + b"\r\n",
                                         b"X-A: b\r\n" * 512))
    yield no("endless noise", raw=pour(b"", b"\xff" * 4096))
    yield no("an endless body", raw=pour(
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n", b"x" * 4096))


def slow_answers():
    """For a client with little patience: what never gets anywhere."""
    def trickle(start, piece):
        yield start
        while True:
            time.sleep(0.01)
            yield piece

    yield no("silence", raw=trickle(b"", b""))
    yield no("half an answer", raw=trickle(answer()[:30], b""))
    yield no("all but the last byte", raw=trickle(answer()[:-1], b""))
    yield no("a header that trickles in",
             raw=trickle(LINE.encode() + b"\r\nX-A: ", b"x"))
    yield no("headers that trickle in",
             raw=trickle(LINE.encode() + b"\r\n", b"X: a\r\n"))


def client_cases():
    """We are the server: nothing of ours is masked."""
    return [*good_answers(), *bad_answers(),
            *ws_cases.cases(frame, masked)]


# The server.

def judge_request(wire, host):
    """The client's request, which has to be right; its key."""
    head = wire.head()
    if head is EOF:
        raise Wrong("hung up without asking")
    if head.line != b"GET /echo HTTP/1.1":
        raise Wrong(f"asks {head.line!r}")
    for name, value in ((b"host", host), (b"upgrade", b"websocket"),
                        (b"connection", b"Upgrade"),
                        (b"sec-websocket-version", b"13")):
        if head.headers.get(name) != [value]:
            raise Wrong(f"{name.decode()} is not {value}: {head.headers}")
    if b"sec-websocket-extensions" in head.headers:
        raise Wrong(f"offers extensions: {head.headers}")
    key = head.headers.get(b"sec-websocket-key", [b""])
    if len(key) != 1 or len(base64.b64decode(key[0], validate=True)) != 16:
        raise Wrong(f"bad key: {key}")
    return key[0]


def filled_in(data, key):
    accept = accept_of(key)
    return data.replace(b"@ACCEPT@", accept).replace(b"@KEY@", key) \
        .replace(b"@accept@", accept.lower())


def pour(wire, parts, key):
    """Send without end until the client has had enough."""
    n, until = 0, time.monotonic() + wire.patience
    for part in parts:
        wire.send(filled_in(part, key))
        wire.take_what_is_there()
        n += len(part)
        if wire.is_over:
            return
        if n > POUR_BYTES or time.monotonic() > until:
            raise Wrong(f"takes {n} bytes of an answer and does not hang up")


def give(wire, case, key):
    """Give an answer; the client refuses it by hanging up without a word."""
    if isinstance(case.answer, bytes):
        wire.send(filled_in(case.answer, key), case.chop)
    else:
        pour(wire, case.answer, key)
    if case.hangs_up:
        wire.hang_up()
    if case.opens:
        play(wire, case, frame)
    elif wire.need(1):
        raise Wrong(f"takes it: {wire.got[:40]!r}")


def serve(wire, case, host):
    key = judge_request(wire, host)
    if isinstance(case, Answer):
        give(wire, case, key)
    else:
        wire.send(filled_in(answer(), key))
        play(wire, case, frame)
    return key


class Seen:
    """Of all clients of a run."""

    def __init__(self):
        self.keys, self.masks, self.ends = [], [], {}


def probe_client(command, case, patience=PATIENCE_S, seen=None):
    """Run a client against a case; what is wrong, or None. command(url) is
    what to run."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(patience)
        host = "127.0.0.1:%d" % listener.getsockname()[1]
        client = subprocess.Popen(command(f"ws://{host}/echo"),
                                  stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT)
        try:
            with listener.accept()[0] as sock:
                wire = Wire(sock, patience, peer_masks=True)
                key = serve(wire, case, host.encode())
            said = client.communicate(timeout=patience)[0].decode()
        except (Wrong, UnicodeDecodeError, OSError, ValueError,
                subprocess.TimeoutExpired) as e:
            return f"{type(e).__name__}: {e}"
        finally:
            client.kill()
            client.communicate()
    if seen:
        seen.keys.append(key)
        seen.masks.extend(wire.masks)
        seen.ends[case.name] = client.returncode, said
    if client.returncode < 0:
        return f"died by signal {-client.returncode}: {said}"
    return None
