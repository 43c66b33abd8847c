"""The opening handshake as a client may get it wrong, and what a server must
answer: 101 and an echo, or a refusal with the right status."""
import base64
import collections

from ws_cases import binary, pong, text
from ws_wire import (BINARY, EOF, KEY, PING, TEXT, Wrong, accept_of, dice,
                     masked)

# answers: the statuses that are right. protocol: which must be agreed on.
# steps: what happens on the open WebSocket, as in ws_cases.py.
Hello = collections.namedtuple(
    "Hello", "name request answers protocol chop steps")

GOOD = (("Host", "@HOST@"), ("Upgrade", "websocket"),
        ("Connection", "Upgrade"), ("Sec-WebSocket-Key", KEY.decode()),
        ("Sec-WebSocket-Version", "13"))
BAD = 400,
VERSION = 426,
# No WebSocket was asked for: an answer to a plain request for this path.
PLAIN = 400, 404, 405, 426, 501


def request(*more, line="GET /echo HTTP/1.1", eol="\r\n", body=b"",
            case_of_names=str, **changes):
    """Bytes; changes are headers of GOOD by name with _ for -, None to leave
    one out, a list to send several; more are lines as they are."""
    lines = [line]
    changes = {k.replace("_", "-").lower(): v for k, v in changes.items()}
    for name, value in GOOD:
        value = changes.pop(name.lower(), value)
        for v in value if isinstance(value, list) else [value]:
            if v is not None:
                lines.append(f"{case_of_names(name)}: {v}")
    if changes:
        raise ValueError(f"no such header: {changes}")
    return eol.join([*lines, *more, "", ""]).encode("latin-1") + body


def ok(name, *more, protocol=None, chop=None, steps=(), **how):
    return Hello("handshake: " + name, request(*more, **how), (101,), protocol,
                 chop, (*steps, masked(TEXT, b"hello"), text(b"hello")))


def no(name, answers, *more, **how):
    return Hello("handshake refused: " + name, request(*more, **how), answers,
                 None, None, ())


def key_of(data):
    return base64.b64encode(data).decode()


def good_hellos():
    yield ok("as it should be")
    yield ok("byte by byte", chop=1)
    for seed in 1, 2, 3:
        yield ok(f"in pieces, {seed}", chop=dice(seed))
    for value in ("WebSocket", "WEBSOCKET", "wEbSoCkEt", " websocket\t",
                  "h2c, websocket", ["h2c", "websocket"]):
        yield ok(f"Upgrade: {value!r}", upgrade=value)
    for value in ("upgrade", "UPGRADE", "keep-alive, Upgrade",
                  "Upgrade, keep-alive", "keep-alive,Upgrade", "a, upgrade ,b",
                  ["keep-alive", "Upgrade"]):
        yield ok(f"Connection: {value!r}", connection=value)
    for data in (bytes(16), b"\xff" * 16, bytes(range(16))):
        yield ok(f"key {data.hex()}", sec_websocket_key=key_of(data))
    yield ok("spaces around the key", sec_websocket_key=f"  {KEY.decode()} \t")
    for name, case in (("small", str.lower), ("capital", str.upper)):
        yield ok(f"names in {name} letters", case_of_names=case)
    yield ok("one empty line before it", line="\r\nGET /echo HTTP/1.1")
    yield ok("an Origin", "Origin: https://elsewhere.example")
    yield ok("a cookie and a token", "Cookie: a=b", "Authorization: Bearer x")
    yield ok("a length of 0", "Content-Length: 0")
    yield ok("a query", line="GET /echo?a=b&c=%20 HTTP/1.1")
    yield ok("the target in absolute form",
             line="GET http://@HOST@/echo HTTP/1.1")
    yield ok("many headers", *(f"X-{i}: {i}" for i in range(40)))
    for value in ("permessage-deflate",
                  "permessage-deflate; client_max_window_bits",
                  "permessage-deflate; server_no_context_takeover; "
                  "client_max_window_bits=15, permessage-deflate",
                  "x-webkit-deflate-frame", "no-such-thing; a=\"b\"; c",
                  "mux"):
        yield ok(f"extension offered: {value}",
                 f"Sec-WebSocket-Extensions: {value}")
    yield ok("extensions in two headers",
             "Sec-WebSocket-Extensions: permessage-deflate",
             "Sec-WebSocket-Extensions: mux")
    yield from protocols()
    yield from glued()


def protocols():
    asks = "Sec-WebSocket-Protocol: "
    yield ok("protocol echo", asks + "echo", protocol=b"echo")
    yield ok("protocol unknown", asks + "chat")
    for value in ("chat, echo", "echo, chat", "chat,echo", "a , echo ,b",
                  "superchat, chat, v1.json, echo"):
        yield ok(f"protocols {value}", asks + value, protocol=b"echo")
    for value in ("ECHO", "Echo", "echo2", "xecho", "ech", "chat, echoes"):
        yield ok(f"protocol {value} is another", asks + value)
    yield ok("protocols in two headers", asks + "chat", asks + "echo",
             protocol=b"echo")


def glued():
    """Frames in the same segment as the request, as if the answer were sure.
    """
    hello, ping = masked(TEXT, b"glued"), masked(PING, b"glued")
    large = bytes(60000)
    for name, more, steps in (
            ("text", hello, [text(b"glued")]),
            ("ping", ping, [pong(b"glued")]),
            ("three frames", hello + ping + masked(BINARY, b"abc"),
             [text(b"glued"), pong(b"glued"), binary(b"abc")]),
            ("half a head", hello[:1], [hello[1:], text(b"glued")]),
            ("half a frame", hello[:7], [hello[7:], text(b"glued")]),
            ("a large frame", masked(BINARY, large), [binary(large)])):
        yield ok(f"{name} glued behind it", body=more, steps=steps)
        yield ok(f"{name} glued behind it, in pieces", body=more, steps=steps,
                 chop=dice(7))


def bad_hellos():
    yield no("no Host", BAD, host=None)
    yield no("two Hosts", BAD, host=["@HOST@", "@HOST@"])
    yield no("a Host with a path", BAD, host="@HOST@/x")
    yield no("no Upgrade", PLAIN, upgrade=None)
    for value in ("h2c", "websockets", "web socket", "", "websocket2"):
        yield no(f"Upgrade: {value!r}", PLAIN, upgrade=value)
    yield no("no Connection", BAD, connection=None)
    for value in ("close", "keep-alive", "upgraded", "up grade", "",
                  "keep-alive, upgrades"):
        yield no(f"Connection: {value!r}", BAD, connection=value)
    yield from bad_keys()
    yield from bad_versions()
    yield from bad_lists()
    for method in ("POST", "PUT", "HEAD", "DELETE", "OPTIONS", "PATCH",
                   "BREW"):
        yield no(f"method {method}", (400, 404, 405, 501),
                 line=f"{method} /echo HTTP/1.1")
    for line, answers in (("get /echo HTTP/1.1", (400, 404, 405, 501)),
                          ("GET /echo HTTP/1.0", (400, 426, 505)),
                          ("GET /echo HTTP/0.9", (400, 505)),
                          ("GET /echo HTTP/2.0", (400, 505)),
                          ("GET /echo HTTP/1.2", (400, 505)),
                          ("GET /echo HTTP/11", BAD),
                          ("GET /echo", BAD), ("GET  /echo HTTP/1.1", BAD),
                          ("GET /ec ho HTTP/1.1", BAD),
                          ("GET echo HTTP/1.1", BAD),
                          ("GET /echo#a HTTP/1.1", BAD),
                          ("GET /no-such-path HTTP/1.1", (404,)),
                          ("GET ws://@HOST@/echo HTTP/1.1", BAD)):
        yield no(line, answers, line=line)
    yield from bad_lines()


def bad_keys():
    yield no("no key", BAD, sec_websocket_key=None)
    yield no("two keys", BAD, sec_websocket_key=[KEY.decode()] * 2)
    yield no("two different keys", BAD,
             sec_websocket_key=[KEY.decode(), key_of(bytes(16))])
    for name, value in {
            "empty": "", "of 15 bytes": key_of(bytes(15)),
            "of 17 bytes": key_of(bytes(17)),
            "of 18 bytes": key_of(bytes(18)), "of 0 bytes": "=" * 4,
            "without padding": KEY.decode()[:22],
            "with half of the padding": KEY.decode()[:23],
            "with more padding": KEY.decode() + "=",
            "too long": key_of(bytes(48)), "in two parts": "dGhlIHNhbXBs, " +
            "ZSBub25jZQ==", "with a space inside": KEY.decode()[:10] + " " +
            KEY.decode()[11:], "with a bad letter": "!" + KEY.decode()[1:],
            "with a letter of the other alphabet": "_-" + KEY.decode()[2:],
            "with padding in the middle": "dGhlIHNh==XBsZSBub25jZQ==",
            "with bits to spare": KEY.decode()[:21] + "R==",
            "listed twice": f"{KEY.decode()}, {KEY.decode()}"}.items():
        yield no(f"key {name}", BAD, sec_websocket_key=value)


def bad_versions():
    yield no("no version", BAD, sec_websocket_version=None)
    for value in ("12", "14", "8", "7", "0", "1", "130", "113", "255", "256",
                  "13, 8", "8, 13", "-13", "+13", "013", "0x0d", "13.0",
                  "thirteen", "", "1 3", "13;"):
        yield no(f"version {value!r}", VERSION, sec_websocket_version=value)
    for values in ["8", "13"], ["13", "13"]:
        yield no(f"versions in two headers {values}", BAD,
                 sec_websocket_version=values)


def bad_lists():
    asks = "Sec-WebSocket-Protocol: "
    for value in ("", ",", "ec ho", "echo;a", "\"echo\"", "echo, echo", "a/b"):
        yield no(f"protocols {value!r}", BAD, asks + value)
    yield no("a protocol in two headers", BAD, asks + "echo", asks + "echo")
    for value in ("", ",", ";", "a;", "a; b=", "a; =b", "a b",
                  "a; b=\"c d\"", "a; b=\"c", "a=b"):
        yield no(f"extensions {value!r}", BAD,
                 f"Sec-WebSocket-Extensions: {value}")


def bad_lines():
    yield no("lines end in LF", BAD, eol="\n")
    yield no("a folded header", BAD, "X-A: b\r\n c")
    yield no("a space before a colon", BAD, "X-A : b")
    yield no("a NUL in a header", BAD, "X-A: \0")
    yield no("a header without a colon", BAD, "X-A")
    yield no("a header line too long", (431,), "X-A: " + "x" * 70000)
    yield no("too many headers", (431,), *(f"X-{i}: {i}" for i in range(5000)))
    yield no("a target too long", (414,),
             line=f"GET /echo?{'x' * 70000} HTTP/1.1")
    yield no("a body too large", (400, 413), "Content-Length: 99999999999")
    yield no("lengths that differ", BAD, "Content-Length: 5",
             "Content-Length: 6", body=b"abcde")
    yield no("a body of 5", BAD, "Content-Length: 5", body=b"abcde")
    yield no("a chunked body", BAD, "Transfer-Encoding: chunked",
             body=b"5\r\nabcde\r\n0\r\n\r\n")
    yield no("empty lines before it", BAD,
             line="\r\n\r\n\r\nGET /echo HTTP/1.1")


def hellos():
    yield from good_hellos()
    yield from bad_hellos()


def judge(wire, case, address):
    """Ask, and judge the answer. Whether the WebSocket is open now."""
    host = b"%b:%d" % (address[0].encode(), address[1])
    wire.send(case.request.replace(b"@HOST@", host), case.chop)
    head = wire.head()
    if head is EOF:
        raise Wrong("hung up without an answer")
    if head.status not in case.answers:
        raise Wrong(f"answered {head.line!r}")
    if head.status == 101:
        judge_answer(case, head)
    else:
        judge_refusal(case, head)
    return head.status == 101


def judge_refusal(case, head):
    if b"sec-websocket-accept" in head.headers:
        raise Wrong(f"accepts the key with a refusal: {head}")
    if case.answers == VERSION and \
            head.headers.get(b"sec-websocket-version") != [b"13"]:
        raise Wrong(f"does not say which version it speaks: {head}")


def judge_answer(case, head):
    key = [line.split(b":", 1)[1].strip()
           for line in case.request.split(b"\r\n")
           if line.lower().startswith(b"sec-websocket-key:")]
    for name, value in ((b"sec-websocket-accept", [accept_of(key[0])]),
                        (b"sec-websocket-extensions", []),
                        (b"sec-websocket-protocol",
                         [case.protocol] if case.protocol else []),
                        (b"transfer-encoding", []), (b"content-length", [])):
        if head.headers.get(name, []) != value:
            raise Wrong(f"{name.decode()} is not {value}: {head}")
    for name, value in ((b"upgrade", b"websocket"),
                        (b"connection", b"upgrade")):
        if [v.lower() for v in head.headers.get(name, [])] != [value]:
            raise Wrong(f"{name.decode()} is not {value}: {head}")
