"""message_router: may a message go now, and why?

    from message_router import route_message

    decision = route_message(envelope, system_state)
    decision["routing_decision"]  # "ROUTE_IMMEDIATELY"
    decision["reason"]            # in words

The decision is made here, by the library libsignalbox-gate, from the rules, the
state and the envelope; or, when a server is named, by that server with its own
rules and state. Nothing is delivered, kept or posted either way. docs/gate.md
is the page to read. The standard library alone, Python 3.9 or newer; the wheel
that `make install` leaves brings the library along.
"""
from __future__ import annotations

import ctypes
import ctypes.util
import datetime
import glob
import json
import os
import shutil
import ssl
import sys
import threading
import time
import urllib.error
import urllib.request

__all__ = ["route_message", "RouterError"]
__version__ = "0.1.0"

RULES = "routing_rules.json"  # in the current folder, where nothing else is said
PATIENCE_S = 30
GATES_MAX = 16  # rules that are kept ready
TRACE = 1


class RouterError(ValueError):
    """What is wrong with rules, state or envelope, or with the server; code is
    for programs: "bad_rules", "bad_request", "no_library", "unreachable", or
    what the server said."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def route_message(envelope, system_state=None, rules=None, now=None,
                  server=None, token=None, trace=False):
    """The decision on an envelope, as a dict: `message_id`,
    `original_from`, `original_to`, `routing_decision`, `target`, `reason`,
    `timestamp`, `sla`, `logged`, `posted_to_channel`, `rule`,
    `held_until` and what else docs/gate.md says; with trace also every rule
    that was asked.

    envelope, system_state  dicts, or their JSON as text; times in them without
            a zone are UTC, so that east of it datetime.now().isoformat() lies
            ahead, which is a warning in the decision;
            datetime.now(timezone.utc).isoformat() does not
    rules   the path of a routing_rules.json, or a dict of rules; else the
            environment's SIGNALBOX_RULES, else routing_rules.json in the
            current folder if there is one, else no rules
    now     a datetime (without a zone: UTC), an RFC 3339 text, or seconds
            since 1970; else the clock's
    server  ask this server, "http://127.0.0.1:8787", which knows its own
            rules and state; else the environment's SIGNALBOX_URL, unless
            rules are given; "": no server
    token   for the server; else the environment's SIGNALBOX_TOKEN
    """
    text = _json_of(envelope, "the envelope")
    if server is None and rules is None:
        server = os.environ.get("SIGNALBOX_URL")
    if server:
        return _ask_server(server, token, text, trace)
    gate = _gate_of(rules)
    state = _json_of({} if system_state is None else system_state, "the state")
    return gate.decide(state, text, _ms_of(now), trace)


def _plain(value):
    if isinstance(value, (datetime.datetime, datetime.date)):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} is nothing that JSON has")


def _json_of(value, what):
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    try:
        return json.dumps(value, default=_plain, allow_nan=False).encode()
    except (TypeError, ValueError) as e:
        raise RouterError("bad_request", f"{what} is no JSON: {e}") from None


def _ms_of(now):
    if now is None:
        return time.time_ns() // 1000000
    if isinstance(now, str):
        try:
            now = datetime.datetime.fromisoformat(
                now[:-1] + "+00:00" if now[-1:] in "Zz" else now)
        except ValueError:
            raise RouterError("bad_request", f"now is no time: {now!r}") \
                from None
    if isinstance(now, datetime.datetime):
        if now.tzinfo is None:
            now = now.replace(tzinfo=datetime.timezone.utc)
        now = now.timestamp()
    return round(now * 1000)


# The library.

_lock = threading.Lock()
_library = None
_gates = {}  # by what they were made of


def _prefixes():
    """Where a server may be installed: this environment, where the command is,
    and where installs go by themselves."""
    yield sys.prefix
    command = shutil.which("signalbox")
    if command:
        yield os.path.dirname(os.path.dirname(os.path.realpath(command)))
    yield "/usr/local"


def _places():
    here = os.path.dirname(os.path.abspath(__file__))
    yield os.environ.get("SIGNALBOX_GATE_LIB")
    yield os.path.join(here, "libsignalbox-gate.so")
    yield os.path.join(here, "../../build/client/gate/libsignalbox-gate.so")
    for prefix in _prefixes():
        for folder in "lib", "lib64", "lib/*-linux-*":
            yield from sorted(glob.glob(os.path.join(
                glob.escape(prefix), folder, "libsignalbox-gate.so.0")))
    yield ctypes.util.find_library("signalbox-gate")
    yield "libsignalbox-gate.so.0"


def _load():
    global _library
    with _lock:
        if _library:
            return _library
        for place in _places():
            if not place or ("/" in place and not os.path.exists(place)):
                continue
            try:
                _library = _typed(ctypes.CDLL(place))
                return _library
            except OSError:
                continue
    raise RouterError(
        "no_library", "libsignalbox-gate.so is not found: install the wheel "
        "that Signalbox's `make install` leaves, or say where it is with "
        "SIGNALBOX_GATE_LIB, or name a server with SIGNALBOX_URL")


def _typed(lib):
    text, size = ctypes.c_char_p, ctypes.c_size_t
    error = ctypes.POINTER(ctypes.c_void_p)
    lib.signalbox_gate_new.restype = ctypes.c_void_p
    lib.signalbox_gate_new.argtypes = [text, size, error]
    lib.signalbox_gate_free.restype = None
    lib.signalbox_gate_free.argtypes = [ctypes.c_void_p]
    lib.signalbox_gate_decide.restype = ctypes.c_void_p
    lib.signalbox_gate_decide.argtypes = [
        ctypes.c_void_p, text, size, text, size, ctypes.c_int64,
        ctypes.c_uint, error]
    lib.signalbox_gate_text_free.restype = None
    lib.signalbox_gate_text_free.argtypes = [ctypes.c_void_p]
    return lib


def _taken(lib, pointer):
    """The text at a pointer that the library gave, which it gets back."""
    if not pointer:
        return None
    text = ctypes.string_at(pointer).decode("utf-8", "replace")
    lib.signalbox_gate_text_free(pointer)
    return text


class _Gate:
    def __init__(self, rules, name):
        self.lib = _load()
        error = ctypes.c_void_p()
        size = len(rules) if rules is not None else 0
        self.gate = self.lib.signalbox_gate_new(rules, size,
                                                ctypes.byref(error))
        if not self.gate:
            words = _taken(self.lib, error.value) or "out of memory"
            lines = (f"{name}:{line}" for line in words.splitlines())
            raise RouterError("bad_rules", "\n".join(lines))

    def __del__(self):
        if getattr(self, "gate", None):
            self.lib.signalbox_gate_free(self.gate)

    def decide(self, state, envelope, now_ms, trace):
        error = ctypes.c_void_p()
        said = self.lib.signalbox_gate_decide(
            self.gate, state, len(state), envelope, len(envelope), now_ms,
            TRACE if trace else 0, ctypes.byref(error))
        words = _taken(self.lib, error.value)
        if not said:
            raise RouterError("bad_request", words or "out of memory")
        return json.loads(_taken(self.lib, said))


def _gate_of(rules):
    """The gate of these rules, made once: reading them takes longer than a
    decision."""
    name, text = "rules", None
    if rules is None:
        rules = os.environ.get("SIGNALBOX_RULES") or \
            (RULES if os.path.exists(RULES) else None)
    if isinstance(rules, (str, os.PathLike)):
        name = os.fspath(rules)
        try:
            with open(name, "rb") as f:
                text = f.read()
        except OSError as e:
            raise RouterError("bad_rules",
                              f"cannot read {name}: {e.strerror}") from None
    elif rules is not None:
        text = _json_of(rules, "the rules")
    with _lock:
        gate = _gates.get(text)
    if gate is None:
        gate = _Gate(text, name)
        with _lock:
            while len(_gates) >= GATES_MAX:
                _gates.pop(next(iter(_gates)))
            _gates[text] = gate
    return gate


# A server.

def _ask_server(server, token, envelope, trace):
    token = token or os.environ.get("SIGNALBOX_TOKEN")
    body = b'{"envelope":' + envelope + b',"trace":' + \
        (b"true" if trace else b"false") + b"}"
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = "Bearer " + token
    request = urllib.request.Request(server.rstrip("/") + "/api/gate", body,
                                     headers, method="POST")
    context = None
    if server.startswith("https:"):
        context = ssl.create_default_context(
            cafile=os.environ.get("SIGNALBOX_CA"))
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S,
                                    context=context) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as e:
        raise _refusal(e) from None
    except (OSError, ValueError) as e:
        raise RouterError("unreachable",
                          f"{server} does not answer: {e}") from None


def _refusal(e):
    try:
        error = json.load(e)["error"]
        return RouterError(error["code"], error["message"])
    except (ValueError, KeyError, TypeError):
        return RouterError("unreachable", f"the server said {e.code}")
