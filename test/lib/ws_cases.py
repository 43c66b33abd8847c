"""What may come over an open WebSocket, and what must come of it.

A case is a list of steps, played against an echo: bytes are sent, an Event
must come next, of a Mix the messages in their order and pongs that may be
fewer than the pings if the last one is there. Ends is the other side's close
frame and the end of the connection (a code of None: the end alone). A case
without Ends closes with 1000 and expects that back. `f` makes frames as our
own side has to make them, so that the same cases are played by a client and by
a server.
"""
import collections

from ws_texts import BAD_TEXTS, CUT_OFF, GOOD_TEXT, first_bad
from ws_wire import (BINARY, CLOSE, CONT, PING, PONG, TEXT, Event, close_body,
                     dice)

# What the other side must be told to accept.
MAX_FRAME = 128 * 1024
MAX_MESSAGE = 256 * 1024

Case = collections.namedtuple("Case", "name steps chop")
Mix = collections.namedtuple("Mix", "messages pongs")
Ends = collections.namedtuple("Ends", "code")
HANG_UP = "hang up"
PROTOCOL, BAD_TEXT, TOO_LARGE = Ends(1002), Ends(1007), Ends(1009)


def case(name, *steps, chop=None):
    return Case(name, steps, chop)


def text(payload):
    return Event("text", payload)


def binary(payload):
    return Event("binary", payload)


def pong(payload=b""):
    return Event("pong", payload)


def pongs(payloads):
    return Mix((), list(payloads))


def filling(n):
    """n bytes that are ASCII and do not repeat soon."""
    block = b"".join(b"%07d " % i for i in range(n // 8 + 1))
    return block[:n]


# Frames.

LENGTHS = 0, 1, 2, 124, 125, 126, 127, 128, 255, 256, 65535, 65536, 65537


def lengths(f):
    for n in LENGTHS:
        data = filling(n)
        yield case(f"length: text of {n}", f(TEXT, data), text(data))
        yield case(f"length: binary of {n}", f(BINARY, data), binary(data))
    for form, short in ((16, (0, 1, 125)),
                        (64, (0, 125, 126, 65535))):
        for n in short:
            yield case(f"length: {n} in {form} bits",
                       f(BINARY, filling(n), form=form), PROTOCOL)
    for opcode, name in ((PING, "ping"), (CLOSE, "close")):
        for form in 16, 64:
            yield case(f"length: {name} of 5 in {form} bits",
                       f(opcode, b"\x03\xe8abc", form=form), PROTOCOL)
    for name, n in (("2^63", 1 << 63), ("2^63 + 1", (1 << 63) + 1),
                    ("2^64 - 1", (1 << 64) - 1)):
        yield case(f"length: {name}", f(BINARY, claim=n), PROTOCOL)
        yield case(f"length: text of {name}", f(TEXT, b"a", claim=n), PROTOCOL)
        yield case(f"length: {name} after a fragment",
                   f(BINARY, b"a", fin=False) + f(CONT, claim=n), PROTOCOL)
    for name, n in (("2^31", 1 << 31), ("2^32 + 1", (1 << 32) + 1),
                    ("2^62", 1 << 62), ("2^63 - 1", (1 << 63) - 1)):
        yield case(f"length: {name}", f(BINARY, claim=n), TOO_LARGE)


def limits(f):
    """At the limit, and one beyond; refused before the bytes are here."""
    frame_max, half = filling(MAX_FRAME), filling(MAX_MESSAGE // 2)
    for opcode, kind, name in ((TEXT, text, "text"),
                               (BINARY, binary, "binary")):
        yield case(f"limit: {name} frame", f(opcode, frame_max),
                   kind(frame_max))
        yield case(f"limit: {name} frame, one more",
                   f(opcode, claim=MAX_FRAME + 1), TOO_LARGE)
        yield case(f"limit: {name} message",
                   f(opcode, half, fin=False) + f(CONT, half),
                   kind(half + half))
        yield case(f"limit: {name} message, one more",
                   f(opcode, half, fin=False) + f(CONT, half, fin=False)
                   + f(CONT, claim=1), TOO_LARGE)
    yield case("limit: message, then empty fragments",
               f(BINARY, half, fin=False) + f(CONT, half, fin=False)
               + f(CONT, fin=False) + f(CONT), binary(half + half))
    yield case("limit: message, with pings between",
               f(BINARY, half, fin=False) + f(PING, b"a" * 125),
               pong(b"a" * 125), f(CONT, half), binary(half + half))
    yield case("limit: continuation frame, one more",
               f(BINARY, b"a", fin=False) + f(CONT, claim=MAX_FRAME + 1),
               TOO_LARGE)
    yield case("limit: message of small fragments, one more",
               f(BINARY, half[:1], fin=False)
               + f(CONT, half[:1023], fin=False) * 256
               + f(CONT, filling(255), fin=False) + f(CONT, b"ab"), TOO_LARGE)
    yield case("limit: two messages, each at it",
               f(BINARY, frame_max), binary(frame_max),
               f(BINARY, frame_max), binary(frame_max))
    yield case("limit: endless empty fragments",
               f(TEXT, fin=False) + f(CONT, fin=False) * 200000, TOO_LARGE)


def bits(f):
    for rsv in range(1, 8):
        for opcode, name in ((TEXT, "text"), (BINARY, "binary"),
                             (PING, "ping"), (PONG, "pong"),
                             (CLOSE, "close")):
            payload = b"\x03\xe8" if opcode == CLOSE else b"ab"
            yield case(f"bits: {rsv:03b} on {name}",
                       f(opcode, payload, rsv=rsv), PROTOCOL)
    for rsv in 1, 2, 4:
        yield case(f"bits: {rsv:03b} on a continuation",
                   f(TEXT, b"a", fin=False) + f(CONT, b"b", rsv=rsv), PROTOCOL)
        yield case(f"bits: {rsv:03b} after a message",
                   f(TEXT, b"a"), text(b"a"), f(TEXT, b"b", rsv=rsv), PROTOCOL)
        yield case(f"bits: {rsv:03b} behind a message",
                   f(TEXT, b"a") + f(TEXT, b"b", rsv=rsv), text(b"a"),
                   PROTOCOL)


def opcodes(f):
    for opcode in (3, 4, 5, 6, 7, 11, 12, 13, 14, 15):
        yield case(f"opcode {opcode:x}: empty", f(opcode), PROTOCOL)
        yield case(f"opcode {opcode:x}: with a payload",
                   f(opcode, b"abc"), PROTOCOL)
        yield case(f"opcode {opcode:x}: without FIN",
                   f(opcode, b"abc", fin=False), PROTOCOL)
        yield case(f"opcode {opcode:x}: between fragments",
                   f(TEXT, b"a", fin=False) + f(opcode, b"b"), PROTOCOL)
        yield case(f"opcode {opcode:x}: behind a message",
                   f(TEXT, b"a") + f(opcode, b"b"), text(b"a"), PROTOCOL)


def masks(f, unlike):
    """unlike makes frames as only the other side may."""
    for opcode, name in ((TEXT, "text"), (BINARY, "binary"), (PING, "ping"),
                         (PONG, "pong")):
        yield case(f"mask wrong: {name}", unlike(opcode, b"ab"), PROTOCOL)
        yield case(f"mask wrong: empty {name}", unlike(opcode), PROTOCOL)
    yield case("mask wrong: close", unlike(CLOSE, b"\x03\xe8"), PROTOCOL)
    yield case("mask wrong: empty close", unlike(CLOSE), PROTOCOL)
    yield case("mask wrong: continuation",
               f(TEXT, b"a", fin=False) + unlike(CONT, b"b"), PROTOCOL)
    yield case("mask wrong: behind a message",
               f(TEXT, b"a") + unlike(TEXT, b"b"), text(b"a"), PROTOCOL)
    yield case("mask wrong: before its payload is here",
               unlike(BINARY, claim=1000), PROTOCOL)


def keys(f):
    """Clients only: any key will do, another one for each frame too."""
    for name, key in (("zero", bytes(4)), ("ones", b"\xff" * 4),
                      ("one bit", b"\x00\x00\x00\x01")):
        for n in 0, 1, 5, 125, 126, 65536:
            data = filling(n)
            yield case(f"mask key {name}: binary of {n}",
                       f(BINARY, data, mask=key), binary(data))
        yield case(f"mask key {name}: text", f(TEXT, b"abcde", mask=key),
                   text(b"abcde"))
    many = [bytes([i, 255 - i, i ^ 85, 7]) for i in range(50)]
    yield case("mask key: another for every fragment",
               f(BINARY, b"start", fin=False) +
               b"".join(f(CONT, filling(i), fin=False, mask=key)
                        for i, key in enumerate(many)) + f(CONT),
               binary(b"start" + b"".join(filling(i) for i in range(50))))


# Messages of several frames.

def fragments(f):
    for kind, opcode, name in ((text, TEXT, "text"),
                               (binary, BINARY, "binary")):
        for parts in ((b"ab", b"cd"), (b"", b"cd"), (b"ab", b""), (b"", b""),
                      (b"", b"", b""), (b"a", b"", b"b"),
                      (b"", b"ab", b""), (b"a", b"b", b"c", b"d", b"e")):
            shape = "+".join(str(len(p)) for p in parts)
            sent = split(f, opcode, parts)
            yield case(f"fragments: {name} {shape}", b"".join(sent),
                       kind(b"".join(parts)))
        yield case(f"fragments: {name}, a ping between all",
                   *with_pings(f, split(f, opcode, (b"a", b"b", b"c"))),
                   kind(b"abc"))
        yield case(f"fragments: {name} of 1000",
                   b"".join(split(f, opcode, [b"x"] * 1000)),
                   kind(b"x" * 1000))
        yield case(f"fragments: {name} of 10000 empty ones",
                   b"".join(split(f, opcode, [b"", *[b""] * 9998, b"x"])),
                   kind(b"x"))
        yield case(f"fragments: {name}, large",
                   b"".join(split(f, opcode, [filling(65536)] * 3)),
                   kind(filling(65536) * 3))
        yield case(f"fragments: {name}, of growing sizes",
                   b"".join(split(f, opcode,
                                  [filling(n) for n in LENGTHS[:10]])),
                   kind(b"".join(filling(n) for n in LENGTHS[:10])))
    yield from disorder(f)


def split(f, opcode, parts):
    last = len(parts) - 1
    return [f(CONT if i else opcode, part, fin=i == last)
            for i, part in enumerate(parts)]


def with_pings(f, frames):
    """Each ping must be answered before the message goes on."""
    for i, sent in enumerate(frames[:-1]):
        yield sent + f(PING, b"%d" % i)
        yield pong(b"%d" % i)
    yield frames[-1]


def disorder(f):
    begun = f(TEXT, b"a", fin=False)
    for fin in True, False:
        last = "last" if fin else "not last"
        yield case(f"disorder: continuation of nothing, {last}",
                   f(CONT, b"b", fin=fin), PROTOCOL)
        yield case(f"disorder: empty continuation of nothing, {last}",
                   f(CONT, fin=fin), PROTOCOL)
        yield case(f"disorder: continuation after a message, {last}",
                   f(TEXT, b"a"), text(b"a"), f(CONT, b"b", fin=fin), PROTOCOL)
        yield case(f"disorder: continuation behind a message, {last}",
                   f(TEXT, b"a") + f(CONT, b"b", fin=fin), text(b"a"),
                   PROTOCOL)
        yield case(f"disorder: continuation after fragments, {last}",
                   begun + f(CONT, b"b") + f(CONT, b"c", fin=fin), text(b"ab"),
                   PROTOCOL)
        for opcode, name in ((TEXT, "text"), (BINARY, "binary")):
            yield case(f"disorder: {name} inside a message, {last}",
                       begun + f(opcode, b"b", fin=fin), PROTOCOL)
            yield case(f"disorder: empty {name} inside a message, {last}",
                       begun + f(opcode, fin=fin), PROTOCOL)
            yield case(f"disorder: {name} inside after more, {last}",
                       begun + f(CONT, b"b", fin=False)
                       + f(opcode, b"c", fin=fin), PROTOCOL)
    yield case("disorder: continuation after a ping alone",
               f(PING) + f(CONT, b"b"), pong(), PROTOCOL)
    yield case("disorder: close inside a message",
               begun + f(CLOSE, b"\x03\xe8"), Ends(1000))
    yield case("disorder: close inside, the rest behind it",
               begun + f(CLOSE, b"\x03\xe8") + f(CONT, b"b"), Ends(1000))
    yield case("disorder: hangs up inside a message", begun, HANG_UP,
               Ends(None))


# Text.

def utf8(f):
    for name, good in GOOD_TEXT.items():
        data = good.encode()
        yield case(f"UTF-8: {name}", f(TEXT, data), text(data))
        if len(data) < 8:
            yield case(f"UTF-8: {name}, a byte per fragment",
                       b"".join(split(f, TEXT, [b"", *each_byte(data)])),
                       text(data))
    for name, hexed in BAD_TEXTS.items():
        data = bytes.fromhex(hexed)
        start = first_bad(data)
        yield case(f"bad UTF-8: {name}", f(TEXT, b"ab" + data + b"cd"),
                   BAD_TEXT)
        # The rest of the frame, or of the message, never comes.
        yield case(f"bad UTF-8 at once: {name}",
                   f(TEXT, start, claim=len(start) + 20), BAD_TEXT)
        yield case(f"bad UTF-8 by fragments: {name}",
                   b"".join(f(CONT if i else TEXT, b, fin=False)
                            for i, b in enumerate(each_byte(start))), BAD_TEXT)
    for name, hexed in CUT_OFF.items():
        data = bytes.fromhex(hexed)
        yield case(f"UTF-8 cut off: {name}", f(TEXT, data), BAD_TEXT)
        yield case(f"UTF-8 cut off: {name}, then an empty fragment",
                   f(TEXT, data, fin=False) + f(CONT), BAD_TEXT)
        yield case(f"UTF-8 cut off: {name}, then the next message",
                   f(TEXT, data) + f(TEXT, b"\x80\x80"), BAD_TEXT)
    yield from utf8_in_parts(f)


def each_byte(data):
    return [data[i:i + 1] for i in range(len(data))]


def utf8_in_parts(f):
    data = "ä€😀".encode() * 3
    for at in range(1, 10):
        yield case(f"UTF-8: cut into fragments at {at}",
                   f(TEXT, data[:at], fin=False) + f(CONT, data[at:]),
                   text(data))
        yield case(f"UTF-8: a ping where it is cut at {at}",
                   f(TEXT, data[:at], fin=False) + f(PING, b"\xff\x80"),
                   pong(b"\xff\x80"), f(CONT, data[at:]), text(data))
    yield case("UTF-8: bad bytes are fine in binary",
               f(BINARY, b"\xff\xfe\xc0\x80"), binary(b"\xff\xfe\xc0\x80"))
    yield case("UTF-8: and in fragments of binary",
               f(BINARY, b"\xe2", fin=False) + f(CONT, b"\xff"),
               binary(b"\xe2\xff"))
    yield case("UTF-8: each message starts over",
               f(TEXT, "é".encode()) * 3, *[text("é".encode())] * 3)
    yield case("bad UTF-8: behind a good message",
               f(TEXT, b"a") + f(TEXT, b"\xff"), text(b"a"), BAD_TEXT)
    yield case("bad UTF-8: late in a large message",
               f(TEXT, filling(60000) + b"\xff"), BAD_TEXT)
    yield case("bad UTF-8: in the last of three fragments",
               f(TEXT, b"a" * 200, fin=False) + f(CONT, b"b" * 70000, fin=False)
               + f(CONT, b"c\xc3"), BAD_TEXT)


# Control frames.

def pings(f):
    for n in 0, 1, 2, 64, 124, 125:
        data = bytes(range(n))
        yield case(f"ping of {n}", f(PING, data), pong(data))
        yield case(f"pong of {n}, no one asked", f(PONG, data) + f(PING, b"x"),
                   pong(b"x"))
    for n in 126, 127, 65535, 65536:
        yield case(f"ping of {n}", f(PING, filling(n)), PROTOCOL)
        yield case(f"pong of {n}", f(PONG, filling(n)), PROTOCOL)
        yield case(f"close of {n}", f(CLOSE, b"\x03\xe8" + filling(n - 2)),
                   PROTOCOL)
    for opcode, name in ((PING, "ping"), (PONG, "pong"), (CLOSE, "close")):
        yield case(f"{name} without FIN", f(opcode, b"\x03\xe8", fin=False),
                   PROTOCOL)
        yield case(f"{name} without FIN, and its continuation",
                   f(opcode, b"\x03\xe8", fin=False) + f(CONT, b"b"), PROTOCOL)
        yield case(f"{name} without FIN inside a message",
                   f(TEXT, b"a", fin=False)
                   + f(opcode, b"\x03\xe8", fin=False), PROTOCOL)
    yield case("ping of bad UTF-8", f(PING, b"\xff\xfe"), pong(b"\xff\xfe"))
    yield case("pings are answered in order",
               b"".join(f(PING, b"%d" % i) for i in range(10)),
               pongs([b"%d" % i for i in range(10)]))
    yield case("pings one by one", *(step for i in range(20) for step in
                                     (f(PING, b"%d" % i), pong(b"%d" % i))))
    yield case("a flood of pings is answered, and boundedly",
               b"".join(f(PING, b"%0125d" % i) for i in range(5000)),
               pongs([b"%0125d" % i for i in range(5000)]),
               f(TEXT, b"still here"), text(b"still here"))
    yield case("a flood of pongs is ignored", f(PONG, b"x" * 125) * 5000
               + f(TEXT, b"still here"), text(b"still here"))
    yield case("a flood of pings inside a message",
               f(TEXT, b"a", fin=False)
               + b"".join(f(PING, b"%0100d" % i) for i in range(1000)),
               pongs([b"%0100d" % i for i in range(1000)]),
               f(CONT, b"b"), text(b"ab"))
    yield case("ping, text, ping", f(PING, b"1"), pong(b"1"), f(TEXT, b"a"),
               text(b"a"), f(PING, b"2"), pong(b"2"))


# Closing.

MAY_CLOSE = (1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013,
             1014, 3000, 3001, 3500, 3999, 4000, 4001, 4500, 4999)
MUST_NOT_CLOSE = (0, 1, 2, 99, 100, 500, 999, 1004, 1005, 1006, 1015, 1016,
                  1017, 1099, 1100, 1500, 1999, 2000, 2001, 2500, 2999, 5000,
                  5001, 9999, 32768, 65535)


def closes(f):
    for code in MAY_CLOSE:
        yield case(f"close {code}", f(CLOSE, close_body(code)), Ends(code))
        yield case(f"close {code} with a reason",
                   f(CLOSE, close_body(code, "früh".encode())), Ends(code))
    for code in MUST_NOT_CLOSE:
        yield case(f"close {code}", f(CLOSE, close_body(code)), PROTOCOL)
    for code in 0, 999, 1005, 2999, 5000:
        yield case(f"close {code} with a reason",
                   f(CLOSE, close_body(code, b"why")), PROTOCOL)
    yield case("close, empty", f(CLOSE), Ends(1005))
    yield case("close of one byte", f(CLOSE, b"\x03"), PROTOCOL)
    for n in 1, 122, 123:
        yield case(f"close with a reason of {n}",
                   f(CLOSE, close_body(1000, b"r" * n)), Ends(1000))
    for n in 124, 125, 200:
        yield case(f"close with a reason of {n}",
                   f(CLOSE, close_body(1000, b"r" * n)), PROTOCOL)
    for name in ("lone 80", "overlong slash of 3", "U+D800", "U+110000", "FF"):
        yield case(f"close with a bad reason: {name}",
                   f(CLOSE, close_body(1000, bytes.fromhex(BAD_TEXTS[name]))),
                   BAD_TEXT)
    for name, hexed in CUT_OFF.items():
        yield case(f"close with a reason cut off: {name}",
                   f(CLOSE, close_body(1000, bytes.fromhex(hexed))), BAD_TEXT)
    yield from closing(f)


def closing(f):
    bye = f(CLOSE, b"\x03\xe8")
    for name, more in (("text", f(TEXT, b"late")), ("ping", f(PING, b"late")),
                       ("another close", f(CLOSE, b"\x03\xe9")),
                       ("a bad frame", f(TEXT, b"late", rsv=7)),
                       ("bad UTF-8", f(TEXT, b"\xff")),
                       ("bytes", b"\xff" * 100),
                       ("much", f(BINARY, bytes(60000)))):
        yield case(f"close, {name} behind it", bye + more, Ends(1000))
    yield case("close behind a message", f(TEXT, b"a") + bye, text(b"a"),
               Ends(1000))
    yield case("close behind a ping", f(PING, b"a") + bye, pong(b"a"),
               Ends(1000))
    yield case("close, then hang up", bye, HANG_UP, Ends(1000))
    yield case("hang up", HANG_UP, Ends(None))
    yield case("hang up after a message", f(TEXT, b"a"), text(b"a"), HANG_UP,
               Ends(None))
    yield case("hang up inside a head", f(BINARY, claim=1000)[:3], HANG_UP,
               Ends(None))
    yield case("hang up inside a payload", f(BINARY, b"abc", claim=1000),
               HANG_UP, Ends(None))


# However it is cut into segments.

def streams(f):
    """Bytes to be chopped: name, bytes, what comes of them."""
    long_text = filling(300)
    yield ("a few of each", f(TEXT, b"abc") + f(BINARY, bytes(130))
           + f(PING, b"p") + f(TEXT, "äöü€😀".encode()),
           (text(b"abc"), binary(bytes(130)), pong(b"p"),
            text("äöü€😀".encode())))
    yield ("fragments", b"".join(split(f, TEXT, ["ä".encode()] * 30)),
           (text("ä".encode() * 30),))
    yield ("a ping inside", f(TEXT, b"ab", fin=False) + f(PING, b"12345")
           + f(CONT, long_text), (pong(b"12345"), text(b"ab" + long_text)))
    yield "a length of 16 bits", f(TEXT, long_text), (text(long_text),)
    yield ("a length of 64 bits", f(BINARY, filling(65536)),
           (binary(filling(65536)),))
    yield "empty frames", f(TEXT) * 20, (text(b""),) * 20
    yield ("a bad opcode at the end", f(TEXT, b"ab") + f(3, b"x"),
           (text(b"ab"), PROTOCOL))
    yield ("bad UTF-8 in the middle", f(TEXT, b"abc\xe2\x28\xa1def"),
           (BAD_TEXT,))
    yield ("a close", f(TEXT, b"ab") + f(CLOSE, close_body(3456, b"why")),
           (text(b"ab"), Ends(3456)))
    yield "a length of 2^63", f(BINARY, claim=1 << 63), (PROTOCOL,)
    yield ("UTF-8 over fragments", b"".join(
        split(f, TEXT, each_byte("ä€😀".encode() * 4))),
           (text("ä€😀".encode() * 4),))


def chops(f):
    for name, data, expected in streams(f):
        yield case(f"whole: {name}", data, *expected)
        if len(data) < 10000:
            yield case(f"byte by byte: {name}", data, *expected, chop=1)
        for seed in 1, 2, 3:
            yield case(f"in pieces, {seed}: {name}", data, *expected,
                       chop=dice(seed))
    for n in 2, 50, 1000:
        yield case(f"{n} messages in a segment",
                   b"".join(f(TEXT, b"%d" % i) for i in range(n)),
                   *(text(b"%d" % i) for i in range(n)))
    yield case("100 messages and pings in a segment",
               b"".join(f(TEXT, b"%d" % i) + f(PING, b"%d" % i)
                        for i in range(100)),
               Mix([text(b"%d" % i) for i in range(100)],
                   [b"%d" % i for i in range(100)]))
    yield case("large and small in a segment",
               f(BINARY, filling(65536)) + f(TEXT, b"a") + f(TEXT, b""),
               binary(filling(65536)), text(b"a"), text(b""))


def cases(f, unlike):
    """All of them, whichever side we are; limits and keys are apart."""
    for table in (lengths, bits, opcodes, fragments, utf8, pings, closes,
                  chops):
        yield from table(f)
    yield from masks(f, unlike)
