"""Is that a strict WebSocket? Plays the cases of ws_hello.py and ws_cases.py
against an echo server and says what was not as it must be. By hand:

    python3 test/lib/ws_probe.py HOST:PORT [NAME-PART]

The server echoes at /echo, knows the sub-protocol "echo", and has the limits
of ws_cases.py for frames and messages.

The cases were tried on two servers and a client that many rely on. What those
do otherwise, and why the case stands all the same, is in the table at the end.
"""
import queue
import socket
import sys
import threading

import ws_cases
import ws_hello
from ws_cases import HANG_UP, Ends, Mix
from ws_wire import (CLOSE, EOF, PATIENCE_S, Event, Wire, Wrong, close_body,
                     frame, masked)


def server_cases():
    """Against a server: we are the client, and mask."""
    return [*ws_hello.hellos(), *ws_cases.cases(masked, frame),
            *ws_cases.limits(masked), *ws_cases.keys(masked)]


def is_framing(case):
    return not isinstance(case, ws_hello.Hello)


def meet(wire, expected):
    """The next event must be that one."""
    event = wire.event()
    if event != expected:
        raise Wrong(f"expected {short(expected)}, got {short(event)}")


def meet_mix(wire, mix):
    messages, pongs = list(mix.messages), list(mix.pongs)
    while messages or pongs:
        event = wire.event()
        if messages and event == messages[0]:
            del messages[0]
        elif event.kind == "pong" and event.payload in pongs:
            del pongs[:pongs.index(event.payload) + 1]
        else:
            raise Wrong(f"got {short(event)} with {len(messages)} messages "
                        f"and {len(pongs)} pongs to come")


def meet_end(wire, ends, f, has_closed):
    """Its close frame, our answer to it, and the end of the connection. The
    one who is a server hangs up first."""
    if ends.code is not None:
        event = wire.event()
        body = b"" if ends.code == 1005 else close_body(ends.code)
        if event.kind != "close" or event.payload[:2] != body:
            raise Wrong(f"expected close {ends.code}, got {short(event)}")
        if not has_closed:
            wire.send(f(CLOSE, event.payload[:2]))
    if wire.peer_masks:
        wire.hang_up()
    meet(wire, EOF)


def short(event):
    if event == EOF:
        return "the end"
    if event.kind == "close" and len(event.payload) > 1:
        return (f"close {int.from_bytes(event.payload[:2], 'big')} "
                f"{event.payload[2:].decode()}")
    return f"{event.kind} of {len(event.payload)} {event.payload[:30]!r}"


def play(wire, case, f):
    """Play the steps of a case over an open WebSocket."""
    steps = list(case.steps)
    if not isinstance(steps[-1], Ends):
        steps += [f(CLOSE, close_body(1000)), Ends(1000)]
    has_closed = False
    for step in steps:
        if isinstance(step, bytes):
            wire.send(step, case.chop)
            has_closed |= step[:1] == b"\x88"
        elif step is HANG_UP:
            wire.hang_up()
        elif isinstance(step, Event):
            meet(wire, step)
        elif isinstance(step, Mix):
            meet_mix(wire, step)
        else:
            meet_end(wire, step, f, has_closed)


def probe(address, case, patience=PATIENCE_S):
    """Play one case against a server; what is wrong, or None."""
    try:
        with socket.create_connection(address, patience) as sock:
            wire = Wire(sock, patience)
            if is_framing(case):
                wire.upgrade("/echo", b"%b:%d" % (address[0].encode(),
                                                  address[1]))
                play(wire, case, masked)
            elif ws_hello.judge(wire, case, address):
                play(wire, case, masked)
    except (Wrong, UnicodeDecodeError, OSError, ValueError) as e:
        return f"{type(e).__name__}: {e}"
    return None


def in_parallel(cases, ask, n_workers=8):
    """Complaints by name of the case."""
    todo, found, broken = queue.SimpleQueue(), {}, []
    for case in cases:
        todo.put(case)

    def work():
        try:
            while True:
                case = todo.get_nowait()
                if (wrong := ask(case)) is not None:
                    found[case.name] = wrong
        except queue.Empty:
            pass
        except BaseException as e:  # pylint: disable=broad-except
            broken.append(e)

    threads = [threading.Thread(target=work) for _ in range(n_workers)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if broken:
        raise broken[0]
    return found


def main(where, part=""):
    host, port = where.rsplit(":", 1)
    cases = [c for c in server_cases() if part in c.name]
    found = in_parallel(cases, lambda c: probe((host, int(port)), c, 5))
    for case in cases:
        if case.name in found:
            print(f"{case.name}: {found[case.name]}")
    print(f"{len(cases) - len(found)} passed, {len(found)} failed")
    return bool(found)


# What others do otherwise. ws is npm's 8.22, wp is Python's websockets 10.4.
# Everything else in the table of cases they pass.
#
#   bad UTF-8 at once          ws, wp  check a frame (ws: a message) when it is
#   bad UTF-8 by fragments     ws      whole; RFC 6455 8.1 lets one fail early,
#                                      and ws.h says that we do
#   length: N in M bits        ws, wp  take lengths that are not minimal (ws: in
#                                      data frames), against 5.2
#   length: 2^63 and more      ws, wp  answer 1009, also where the highest bit
#                                      makes it no length at all (5.2)
#   limit: frame, one more     ws, wp  have a limit for messages only
#   limit: endless fragments   ws      answers 1008, as it has no better code
#                              wp      takes as many as come
#   ... behind a message       wp      forgets messages that came before a bad
#   close behind a message     wp      frame or a close and have no answer yet
#   a pong after a text        wp      answers pings before what came earlier,
#                                      as 5.5.3 allows; we keep the order
#   handshake: absolute form   ws      compares the target as it stands
#   handshake: an empty line   wp      takes none before a request
#   handshake: extensions      ws      agrees to permessage-deflate if it may
#   Host missing, twice, bad   ws, wp  do not look at it; 4.2.1 asks for it
#   Connection wrong           ws, wp  answer 426 and not 400: it is no upgrade
#   version not 13             ws, wp  answer 400 and not 426; ws speaks 8 too,
#                                      and reads +13, 013, 0x0d and 13.0 as 13
#   HTTP/1.0, 0.9, 2.0, none   ws      are all the same to Node.js
#   targets, empty lines       ws, wp  judge less of the request line than we do
#   too long, too many         ws, wp  answer 431 or 400 for all of it
#   a body                     ws, wp  do not look for one; what follows would
#                                      be read as frames
#   protocols                  wp      may be named twice
#   extensions                 wp      are not read where it wants none
#   answer: 100, 102           ws      waits for another answer; there is none
#   answer: HTTP/1.0, a body   ws      takes it

if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
