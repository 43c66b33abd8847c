"""signalbox: write agents for Signalbox, and talk to those of others.

    import asyncio
    import signalbox

    async def echo(task):
        return task.message

    async def main():
        async with await signalbox.connect() as hub:
            await hub.register({"name": "echo", "description": "Echoes"}, echo)
            await hub.closed()

    asyncio.run(main())

client/README.md is the page to read. One file, the standard library alone,
Python 3.9 or newer.

The client reconnects whenever the connection breaks, registers the agent again,
and everything that was asked or answered and not acknowledged said again. A
result is kept until the server says that it has it; a task that comes a second
time, while the first is being worked on or its result is on its way, is not
begun again.
"""
from __future__ import annotations

import asyncio
import base64
import collections
import concurrent.futures
import hashlib
import inspect
import json
import logging
import os
import random
import re
import ssl as tls
import struct
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

__all__ = ["connect", "Hub", "Task", "Reply", "Delegation", "SignalboxError"]
__version__ = "0.1.0"

log = logging.getLogger("signalbox")

HERE = "http://127.0.0.1:8787"
WINDOW = 64  # calls under way at once; the others wait their turn
WAITING_MAX = 1000  # tasks that wait for others to end
REPEAT_S = 1.0  # before a result that was refused goes again
UNANSWERED_MAX = 3  # times that a result is said without an answer
CHUNK_MAX = 64 * 1024  # characters
UNREAD_MAX = 1024 * 1024  # characters that wait for a slow reader
DELEGATION_MS = 180000
TOOL_MS = 60000  # of delegate_to_agent, as the server has it
HANDED_TURNS = 5  # of the loop, until who waited for a result has it
REMEMBERED = 1000  # ids of results without a waiting caller
TAKEN_OVER = 4001  # close code: another connection is this agent now
TOO_BIG = 1009
OVER = ("completed", "failed", "cancelled", "expired", "dropped")
PASSING = {"busy", "disconnected", "internal", "io_error", "no_space",
           "out_of_memory", "outcome_unknown", "overloaded", "rate_limited",
           "stopping", "timeout"}
STANDARD = {-32700: "invalid_json", -32600: "bad_request",
            -32601: "method_not_found", -32602: "bad_request",
            -32603: "internal"}


class SignalboxError(Exception):
    """code is for programs, message for people; data is what else was said."""

    def __init__(self, code, message, data=None):
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data or {}


def _error_of(said):
    data = said.get("data") or {}
    code = data.get("code") or STANDARD.get(said.get("code"), "error")
    return SignalboxError(code, said.get("message") or code, data)


def _closed():
    return SignalboxError("closed", "the connection was closed")


def _late(timeout_ms):
    return SignalboxError(
        "timeout", f"the server did not answer within {timeout_ms} ms")


def _is_passing(e):
    """Whether the same may go well a little later."""
    return getattr(e, "code", None) in PASSING


def _shortly(e):
    """The first line of what went wrong, for the other side."""
    text = str(e).split("\n", 1)[0][:300] if str(e) else type(e).__name__
    return text or "the agent failed"


def _json(what):
    """What the server can read: no NaN, which is no JSON (ValueError), and
    halves of surrogate pairs, which are no UTF-8, as U+FFFD."""
    text = json.dumps(what, ensure_ascii=False, allow_nan=False,
                      separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        text = re.sub("[\ud800-\udfff]", "\ufffd", text)
    return text


# WebSocket (RFC 6455, version 13, no extensions), as a client.

CONT, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
HEAD_MAX = 16 * 1024
BODY_MAX = 64 * 1024  # of a refusal
CLOSE_S = 2.0  # for the other side's close frame


class _Refusal(Exception):
    """What the server said instead of becoming a WebSocket."""

    def __init__(self, status, body):
        super().__init__(f"the server answered {status}")
        self.status = status
        self.body = body


class _Broken(Exception):
    def __init__(self, code, words):
        super().__init__(words)
        self.code = code


def _masked(data, key):
    n = len(data)
    pad = (key * (n // 4 + 1))[:n]
    return (int.from_bytes(data, "big") ^ int.from_bytes(pad, "big")) \
        .to_bytes(n, "big")


class _Socket:
    """One WebSocket. `closed` is a future of (code, reason)."""

    def __init__(self, reader, writer, max_bytes, on_message):
        self.reader = reader
        self.writer = writer
        self.max_bytes = max_bytes
        self.on_message = on_message
        self.heard_at = time.monotonic()
        self.closed = asyncio.get_running_loop().create_future()
        self.said = None  # (code, reason) of the close frame that was sent
        self.task = None

    @classmethod
    async def open(cls, url, token, ssl, max_bytes, on_message):
        is_tls = url.scheme == "wss"
        reader, writer = await asyncio.open_connection(
            url.hostname, url.port or (443 if is_tls else 80),
            ssl=(ssl or True) if is_tls else None, limit=HEAD_MAX)
        try:
            await cls.agree(reader, writer, url, token)
        except BaseException:
            writer.transport.abort()
            raise
        return cls(reader, writer, max_bytes, on_message)

    @staticmethod
    async def agree(reader, writer, url, token):
        key = base64.b64encode(os.urandom(16))
        target = url.path + ("?" + url.query if url.query else "")
        writer.write("\r\n".join([
            f"GET {target} HTTP/1.1", f"Host: {url.netloc}",
            "Upgrade: websocket", "Connection: Upgrade",
            f"Sec-WebSocket-Key: {key.decode()}", "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Protocol: signalbox",
            f"Authorization: Bearer {token}", "", ""]).encode())
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1") \
            .split("\r\n")
        match = re.match(r"HTTP/1\.[01] (\d{3})", lines[0])
        if not match:
            raise ConnectionError("this is not an HTTP server")
        head = {name.lower(): value.strip() for name, _, value in
                (line.partition(":") for line in lines[1:])}
        if match[1] != "101":
            n = min(int(head.get("content-length", BODY_MAX)), BODY_MAX)
            body = await _read_up_to(reader, n)
            raise _Refusal(int(match[1]), body.decode("utf-8", "replace"))
        want = base64.b64encode(hashlib.sha1(key + GUID).digest()).decode()
        if head.get("upgrade", "").lower() != "websocket" or \
                "upgrade" not in head.get("connection", "").lower() or \
                head.get("sec-websocket-accept") != want or \
                "sec-websocket-extensions" in head or \
                head.get("sec-websocket-protocol", "signalbox") != "signalbox":
            raise ConnectionError(
                "the server's answer is no agreement to speak WebSocket")

    def start(self):
        self.task = asyncio.ensure_future(self.read())

    async def read(self):
        code, reason = 1006, "the connection broke"
        try:
            while True:
                self.on_message(await self.message())
        except _Broken as e:
            code, reason = e.code, str(e)
            self.say_close(code, reason)
        except (OSError, EOFError, asyncio.IncompleteReadError):
            pass
        except asyncio.CancelledError:
            reason = "the connection was given up"
        finally:
            self.writer.close()
            if not self.closed.done():
                self.closed.set_result(self.said or (code, reason))

    async def message(self):
        """The next one, whole; what is no message is seen to."""
        parts, gathered = None, 0
        while True:
            fin, opcode, payload = await self.frame(gathered)
            if opcode == PING:
                self.write(PONG, payload)
            elif opcode == CLOSE:
                self.on_close(payload)
            elif opcode != PONG:
                if opcode == BINARY:
                    raise _Broken(1003, "only text is spoken here")
                if (opcode == CONT) == (parts is None):
                    raise _Broken(1002, "fragments out of order")
                parts = [] if parts is None else parts
                if payload:
                    parts.append(payload)
                gathered += len(payload)
                if fin:
                    return self.text(b"".join(parts))

    @staticmethod
    def text(data):
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise _Broken(1007, "a text is not UTF-8") from None

    async def frame(self, gathered):
        read = self.reader.readexactly
        first, second = await read(2)
        self.heard_at = time.monotonic()
        opcode, n = first & 15, second & 127
        if n >= 126:
            n, = struct.unpack("!H" if n == 126 else "!Q",
                               await read(2 if n == 126 else 8))
        if first & 0x70 or second & 0x80:
            raise _Broken(1002, "a reserved bit is set, or a mask")
        if opcode > PONG or BINARY < opcode < CLOSE:
            raise _Broken(1002, "an unknown opcode")
        if opcode >= CLOSE and (n > 125 or first < 0x80):
            raise _Broken(1002, "a control frame is short and whole")
        if opcode < CLOSE and gathered + n > self.max_bytes:
            raise _Broken(1009, "the message is larger than this client takes")
        payload = await read(n)
        self.heard_at = time.monotonic()
        return first >= 0x80, opcode, payload

    def on_close(self, payload):
        code = struct.unpack("!H", payload[:2])[0] if len(payload) > 1 else 1005
        self.say_close(code, "")
        self.said = code, payload[2:].decode("utf-8", "replace")
        raise EOFError

    def say_close(self, code, reason):
        if self.said is not None:
            return
        body = struct.pack("!H", code) + reason.encode()[:120]
        self.write(CLOSE, b"" if code == 1005 else body)
        self.said = code, reason

    def write(self, opcode, payload=b""):
        if self.said is not None or self.writer.is_closing():
            return
        n, mask = len(payload), os.urandom(4)
        if n < 126:
            head = struct.pack("!BB", 0x80 | opcode, 0x80 | n)
        elif n < 65536:
            head = struct.pack("!BBH", 0x80 | opcode, 0x80 | 126, n)
        else:
            head = struct.pack("!BBQ", 0x80 | opcode, 0x80 | 127, n)
        self.writer.write(head + mask + _masked(payload, mask))

    def send(self, text):
        self.write(TEXT, text.encode())

    async def drained(self):
        try:
            await self.writer.drain()
        except OSError:
            pass

    async def close(self):
        self.say_close(1000, "")
        await asyncio.wait([self.closed], timeout=CLOSE_S)
        self.destroy()

    def destroy(self):
        self.writer.transport.abort()
        if self.task:
            self.task.cancel()


async def _read_up_to(reader, n):
    data = b""
    while len(data) < n:
        more = await reader.read(n - len(data))
        if not more:
            break
        data += more
    return data


# The connection, which reconnects whenever it breaks.


def _hub_url(text):
    url = urllib.parse.urlsplit(text)
    kinds = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}
    if url.scheme not in kinds or not url.hostname:
        raise SignalboxError("usage", f'"{text}" is not a URL that begins with '
                                      "http://, https://, ws:// or wss://")
    path = url.path if url.path.endswith("/hub") else \
        url.path.rstrip("/") + "/hub"
    host = url.netloc.rpartition("@")[2]
    return url._replace(scheme=kinds[url.scheme], path=path, netloc=host,
                        fragment="")


def _refusal(e, url):
    where = f"{url.scheme}://{url.netloc}"
    if not isinstance(e, _Refusal):
        words = _shortly(e) if not isinstance(e, asyncio.IncompleteReadError) \
            else "it hung up"
        return SignalboxError("unreachable",
                              f"{where} cannot be reached: {words}")
    try:
        said = json.loads(e.body)["error"]
        return SignalboxError(said["code"], said["message"],
                              {**said.get("details", {}), "status": e.status})
    except (ValueError, KeyError, TypeError):
        code = "unauthenticated" if e.status == 401 else "unreachable"
        return SignalboxError(code, f"{where} answered {e.status}",
                              {"status": e.status})


def _is_for_good(e, is_first):
    """Trying again is of no use. Once it has worked, a proxy may say strange
    things while the server restarts."""
    status = e.data.get("status")
    if not status:
        return e.code != "unreachable" and not _is_passing(e)
    if status in (401, 403):
        return True
    return is_first and 400 <= status < 500 and status not in (408, 425, 429)


class _Link:
    """Tells its owner by on_open(), on_message(text), on_lost(code) and
    on_over(error)."""

    def __init__(self, owner, options):
        self.owner = owner
        self.o = options
        self.socket = None
        self.is_over = False
        self.heartbeat_s = options["heartbeat_ms"] / 1000
        self.live_task = self.watch_task = None

    async def begin(self):
        until = time.monotonic() + self.o["connect_timeout_ms"] / 1000
        n = 0
        while True:
            try:
                await self.join()
                break
            except SignalboxError as e:
                pause = self.pause_s(n)
                if _is_for_good(e, True) or time.monotonic() + pause > until:
                    raise
                log.warning("%s; trying again in %.1f s", e.message, pause)
            n += 1
            await asyncio.sleep(pause)
        self.live_task = asyncio.ensure_future(self.live())
        self.watch_task = asyncio.ensure_future(self.watch())

    def set_heartbeat(self, heartbeat_s):
        self.heartbeat_s = heartbeat_s
        if self.watch_task:
            self.watch_task.cancel()
            self.watch_task = asyncio.ensure_future(self.watch())

    def end(self, error):
        if self.is_over:
            return
        self.is_over = True
        for task in (self.live_task, self.watch_task):
            if task and task is not asyncio.current_task():
                task.cancel()
        self.owner.on_over(error)

    def pause_s(self, n):
        most = min(self.o["retry_max_ms"], self.o["retry_ms"] * 2 ** min(n, 20))
        return most / 1000 * random.uniform(0.5, 1)

    async def join(self):
        url, wait_s = self.o["url"], self.o["call_timeout_ms"] / 1000
        try:
            socket = await asyncio.wait_for(
                _Socket.open(url, self.o["token"], self.o["ssl"],
                             self.o["max_message_bytes"],
                             self.owner.on_message), wait_s)
        except asyncio.TimeoutError:
            raise SignalboxError("unreachable", f"{url.netloc} did not answer "
                                                f"within {wait_s} s") from None
        except (OSError, EOFError, ValueError, _Refusal,
                asyncio.LimitOverrunError) as e:
            raise _refusal(e, url) from None
        self.socket = socket
        socket.closed.add_done_callback(
            lambda f: self.lost(socket, f.result()[0]))
        socket.start()
        try:
            await self.owner.on_open()
        except BaseException:
            socket.destroy()
            self.lost(socket, 1006)
            raise

    def lost(self, socket, code):
        if self.socket is socket:
            self.socket = None
            self.owner.on_lost(code)

    async def live(self):
        n = 0
        while not self.is_over:
            since, socket = time.monotonic(), self.socket
            code, reason = await asyncio.shield(socket.closed) if socket \
                else (1006, "the connection broke")
            if code == TAKEN_OVER:
                self.end(SignalboxError("taken_over", "another connection is "
                                        "this agent now: does it run twice?"))
                return
            # One that lasted longer than the pause before it was a good one.
            if time.monotonic() - since > self.pause_s(n):
                n = 0
            error = await self.come_back(n, reason or f"code {code}")
            if error:
                self.end(error)
                return
            n += 1

    async def come_back(self, n, words):
        while True:
            pause = self.pause_s(n)
            log.warning("lost the server (%s); trying again in %.1f s", words,
                        pause)
            await asyncio.sleep(pause)
            try:
                await self.join()
                return None
            except SignalboxError as e:
                if _is_for_good(e, False):
                    return e
                words = e.message
            n += 1

    async def watch(self):
        while True:
            await asyncio.sleep(self.heartbeat_s / 6)
            if not self.socket:
                continue
            silent_s = time.monotonic() - self.socket.heard_at
            if silent_s > self.heartbeat_s:
                self.socket.destroy()
            elif silent_s > self.heartbeat_s / 3:
                self.socket.write(PING)


# What is asked of the server, each until it is answered.


class _Call:
    def __init__(self, number, data, is_first, on_answer):
        self.id = number
        self.patience_ms = 0  # with the server, once it was said
        self.timer = None
        self.on_answer = on_answer
        self.data = data
        self.is_first = is_first
        self.is_once = False
        self.is_sent = False
        self.future = asyncio.get_running_loop().create_future()


class _Calls:
    def __init__(self, link, options):
        self.link = link
        self.o = options
        self.last_id = 0
        self.all = {}  # id -> call, in the order they were made
        self.unsent = collections.deque()
        self.n_sent = 0
        self.n_bytes = 0
        self.is_ready = True

    async def ask(self, method, params, timeout_ms=0, is_first=False,
                  on_answer=None, patience_ms=0, is_once=False, number=None):
        """The answer. timeout_ms 0: however long it takes. is_first: at once,
        on this connection, and not on another. on_answer hears of it before
        anything that came behind it is looked at. patience_ms: a limit too,
        but of the time on one connection alone. is_once: not on another
        connection, once it was said on one. number: its id; else one is
        made."""
        if self.link.is_over:
            raise _closed()
        if number is None:
            self.last_id += 1
            number = str(self.last_id)
        text = _json({"jsonrpc": "2.0", "id": number, "method": method,
                      "params": params})
        data = text.encode()
        if not is_first and (
                len(self.all) >= self.o["max_kept"] or
                self.n_bytes + len(data) > self.o["max_kept_bytes"]):
            raise SignalboxError("overloaded",
                                 "too much waits for the server to answer")
        c = _Call(number, data, is_first, on_answer)
        c.patience_ms = patience_ms
        c.is_once = is_once
        self.all[c.id] = c
        self.n_bytes += len(data)
        if is_first:
            self.send(c)
        else:
            self.unsent.append(c)
        self.flush()
        try:
            return await asyncio.wait_for(
                c.future, timeout_ms / 1000 if timeout_ms else None)
        except asyncio.TimeoutError:
            raise _late(timeout_ms) from None
        finally:
            self.take(c.id)

    def send(self, c):
        c.is_sent = True
        self.n_sent += 1
        if self.link.socket:
            self.link.socket.write(TEXT, c.data)
        if c.patience_ms:
            c.timer = asyncio.get_running_loop().call_later(
                c.patience_ms / 1000, self.on_late, c)

    def on_late(self, c):
        self.drop(c, _late(c.patience_ms))
        self.flush()

    def flush(self):
        while self.is_ready and self.link.socket and self.n_sent < WINDOW \
                and self.unsent:
            c = self.unsent.popleft()
            if c.id in self.all:
                self.send(c)

    def lost(self, code):
        if code == TOO_BIG:
            self.give_up_largest()
        for c in list(self.all.values()):
            if c.is_first or (c.is_once and c.is_sent):
                self.drop(c, SignalboxError("disconnected",
                                            "the connection broke"))
            c.is_sent = False
            if c.timer:
                c.timer.cancel()
        self.unsent = collections.deque(self.all.values())
        self.n_sent = 0

    def give_up_largest(self):
        """The server ended the connection because of it, and would again."""
        sent = [c for c in self.all.values() if c.is_sent]
        if sent:
            c = max(sent, key=lambda c: len(c.data))
            self.drop(c, SignalboxError(
                "too_large", "the server takes no message of "
                             f"{len(c.data)} bytes"))

    def answered(self, m):
        c = self.take(str(m["id"]))
        if c and not c.future.done():
            if m.get("error"):
                c.future.set_exception(_error_of(m["error"]))
            else:
                if c.on_answer:
                    c.on_answer(m.get("result"))
                c.future.set_result(m.get("result"))
        self.flush()

    def take(self, number):
        c = self.all.pop(number, None)
        if c:
            self.n_bytes -= len(c.data)
            self.n_sent -= c.is_sent
            if c.timer:
                c.timer.cancel()
        return c

    def drop(self, c, error):
        if self.take(c.id) and not c.future.done():
            c.future.set_exception(error)

    def drop_all(self, error):
        for c in list(self.all.values()):
            self.drop(c, error)


# Being an agent.


class Task:
    """One piece of work, as its handler sees it. When it is cancelled, or its
    time is over, the handler gets asyncio.CancelledError."""

    def __init__(self, params, most, say, delegations, send):
        self.id = str(params["task_id"])
        self.turn = params.get("turn", 1)
        self.attempt = params.get("attempt", 1)
        self.message = params.get("message", "")
        self.skill_id = params.get("skill_id")
        self.session_id = params.get("session_id")
        self.deadline_ms = params.get("deadline_ms")
        self.metadata = params.get("metadata") or {}
        self.envelope = params.get("envelope")  # None: it was not sent as one
        self.cancelled = False
        self._most = most
        self._say = say
        self._delegations = delegations
        self._send = send
        self._is_talking = False  # its session has a delegation, not over
        self._written = []
        self._length = 0
        self._unsaid = collections.deque()  # while the server does not listen
        self._runner = None
        self._loop = asyncio.get_running_loop()

    @property
    def written(self):
        """All that was written so far."""
        return "".join(self._written)

    def write(self, text):
        """Send a piece of the answer on its way; to be awaited, until there is
        room for more. In a plain function, which runs in a thread, it waits
        by itself."""
        return self._from_anywhere(self._write(text))

    def delegate(self, agent_name, skill, message, **options):
        """As Hub.delegate, on behalf of this task: its payer pays.
        It is in the task's own session unless session_id says another, or None
        for none. A session takes one at a time, so what is given beside one
        has none. In a plain function it waits by itself."""
        options.setdefault("parent_task_id", self.id)
        if self._is_here():
            return self._begin(agent_name, skill, message, options)

        async def wait():
            return await self._begin(agent_name, skill, message, options)
        return self._from_anywhere(wait())

    def send(self, text, **options):
        """As Hub.send, on behalf of this task: its payer pays. In a
        plain function it waits by itself, and gives the result."""
        options.setdefault("parent_task_id", self.id)
        if self._is_here():
            return self._send(text, **options)

        async def wait():
            return await self._send(text, **options)
        return self._from_anywhere(wait())

    def _begin(self, agent_name, skill, message, options):
        talks = (self.session_id and not self._is_talking and
                 "session_id" not in options and
                 not options.get("task_id") and
                 options["parent_task_id"] == self.id)
        if talks:
            options = {**options, "session_id": self.session_id}
        d = self._delegations.delegate(agent_name, skill, message, **options)
        if talks:
            self._is_talking = True
            d._result.add_done_callback(self._on_talked)
        return d

    def _on_talked(self, _):
        self._is_talking = False

    def delegate_to_agent(self, what, *, on_chunk=None):
        """As Hub.delegate_to_agent, on behalf of this task."""
        return self._from_anywhere(self._delegations.tool(
            what, on_chunk, self.id, self.session_id))

    def _is_here(self):
        try:
            return asyncio.get_running_loop() is self._loop
        except RuntimeError:
            return False

    def _from_anywhere(self, doing):
        """To be awaited; in a thread without a loop, what came of it."""
        try:
            here = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        if here is self._loop:
            return doing
        try:
            there = asyncio.run_coroutine_threadsafe(doing, self._loop)
        except RuntimeError:  # the loop has gone
            doing.close()
            raise asyncio.CancelledError from None
        if here:  # another loop's
            return asyncio.wrap_future(there)
        try:
            return there.result()
        except concurrent.futures.CancelledError:
            raise asyncio.CancelledError from None

    async def _write(self, text):
        if self.cancelled:
            raise asyncio.CancelledError
        if not isinstance(text, str):
            raise TypeError("task.write takes a str")
        self._length += len(text)
        if self._length > self._most:
            raise SignalboxError("too_large",
                                 f"an answer has up to {self._most} characters")
        self._written.append(text)
        for at in range(0, len(text), CHUNK_MAX):
            self._unsaid.append(text[at:at + CHUNK_MAX])
        socket = self._flush()
        if socket:
            await socket.drained()

    def _flush(self):
        """Say what is unsaid, if it can be now: in as few pieces as may be."""
        unsaid, socket = self._unsaid, self._say("")
        while socket and unsaid:
            pieces, n = [], 0
            while unsaid and n + len(unsaid[0]) <= CHUNK_MAX:
                pieces.append(unsaid.popleft())
                n += len(pieces[-1])
            self._say("".join(pieces))
        return socket

    def _cancel(self):
        self.cancelled = True
        if self._runner:
            self._runner.cancel()


async def _write_all(task, pieces):
    try:
        async for piece in pieces:
            await task.write(piece)
    finally:
        await pieces.aclose()


async def _work(handler, task, threads):
    """Run a handler to its end: the text and the metadata."""
    if inspect.isasyncgenfunction(handler):
        out = handler(task)
    elif inspect.iscoroutinefunction(handler):
        out = await handler(task)
    else:
        out = await asyncio.get_running_loop().run_in_executor(
            threads, handler, task)
    if inspect.isawaitable(out):
        out = await out
    if inspect.isasyncgen(out):
        await _write_all(task, out)
        out = None
    if out is None:
        out = task.written
    if isinstance(out, str):
        return {"text": out}
    if not isinstance(out, dict) or \
            not isinstance(out.get("text", ""), str):
        raise TypeError("a handler returns a str or {text, metadata}")
    result = {"text": out.get("text", task.written)}
    if out.get("metadata") is not None:
        if not isinstance(out["metadata"], dict):
            raise TypeError("metadata is a dict, or None")
        result["metadata"] = out["metadata"]
    return result


class _Entry:
    def __init__(self, key, socket):
        self.key = key
        self.socket = socket
        self.task = None


class _Agent:
    def __init__(self, link, calls, options, card, handler, concurrency,
                 delegations, send):
        self.link = link
        self.delegations = delegations
        self.send = send
        self.calls = calls
        self.o = options
        self.handler = handler
        self.concurrency = concurrency
        self.name = card.get("name")
        self.card = {**card, "limits": {"in_flight": concurrency,
                                        **card.get("limits", {})}}
        self.is_closing = False
        self.tasks = {}  # key -> _Entry, not over
        self.waiting = collections.deque()  # of them, those not begun
        self.runners = set()
        self.results = {}  # key -> who says it until it is acknowledged
        self.n_result_bytes = 0  # about
        # Not the loop's own executor: reconnecting needs it for name lookups.
        self.threads = concurrent.futures.ThreadPoolExecutor(
            concurrency, "signalbox")
        self.idle = asyncio.Event()
        self.registered = asyncio.get_running_loop().create_future()

    async def register(self):
        answer = await self.calls.ask(
            "agent.register", {"card": self.card},
            self.o["call_timeout_ms"], is_first=True)
        self.name = answer.get("agent", self.name)
        if answer.get("heartbeat_s", 0) > 0:
            self.link.set_heartbeat(answer["heartbeat_s"])
        if not self.registered.done():
            self.registered.set_result(answer)

    def on_execute(self, params):
        key = f"{params['task_id']}:{params.get('turn', 1)}"
        known = self.tasks.get(key)
        if known:
            known.task.attempt = params.get("attempt", known.task.attempt)
            known.socket = self.link.socket
            known.task._flush()
        elif key not in self.results:
            if len(self.waiting) >= WAITING_MAX:
                return False
            self.begin(key, params)
        return True

    def begin(self, key, params):
        entry = _Entry(key, self.link.socket)
        entry.task = Task(params, self.o["max_kept_bytes"] // 4,
                          lambda text: self.say_chunk(entry, text),
                          self.delegations, self.send)
        self.tasks[key] = entry
        self.waiting.append(entry)
        self.next()

    def is_full(self):
        """The limit of results that were not taken: no work is started beyond it."""
        return len(self.results) >= self.o["max_kept"] or \
            self.n_result_bytes >= self.o["max_kept_bytes"]

    def next(self):
        while len(self.runners) < self.concurrency and self.waiting and \
                not self.is_full():
            entry = self.waiting.popleft()
            runner = asyncio.ensure_future(self.run(entry))
            entry.task._runner = runner
            self.runners.add(runner)
            runner.add_done_callback(self.ran)

    def ran(self, runner):
        self.runners.discard(runner)
        self.next()
        self.look_idle()

    async def run(self, entry):
        task = entry.task
        try:
            result = {"status": "completed",
                      **await _work(self.handler, task, self.threads)}
        except asyncio.CancelledError:
            if task.cancelled:
                return
            result = {"status": "failed", "error": "the handler was cancelled",
                      "error_code": "agent_failed"}
        except Exception as e:  # whatever it is, it is the task's error
            result = self.failed(task, e)
        if not task.cancelled:
            del self.tasks[entry.key]
            self.keep(entry.key, task, result)

    @staticmethod
    def failed(task, e):
        if not task.cancelled:
            log.exception("task %s failed", task.id)
        code = getattr(e, "code", None)
        if not isinstance(code, str) or \
                not re.fullmatch("[a-z][a-z0-9_]{0,63}", code):
            code = "agent_failed"
        return {"status": "failed", "error": _shortly(e), "error_code": code}

    def say_chunk(self, entry, text):
        """The socket it was said on, or would be. None: it is said when the
        task comes again."""
        socket, task = entry.socket, entry.task
        if not socket or socket is not self.link.socket:
            return None
        if not text:
            return socket
        socket.send(_json({
            "jsonrpc": "2.0", "method": "task.chunk", "params": {
                "task_id": task.id, "turn": task.turn,
                "attempt": task.attempt, "text": text}}))
        return socket

    def keep(self, key, task, result):
        params = {"task_id": task.id, "turn": task.turn,
                  "attempt": task.attempt, **result}
        self.results[key] = asyncio.ensure_future(self.say(key, params))

    async def say(self, key, params):
        """Until it is kept. What the server does not take, whatever it has
        against it, is a failed task; otherwise its end would be lost. That is
        said once."""
        n_unanswered, is_replaced = 0, False
        n = len(params.get("text", ""))
        self.n_result_bytes += n
        try:
            while not self.link.is_over:
                try:
                    await self.calls.ask("task.result", params,
                                         patience_ms=self.o["call_timeout_ms"])
                    return
                except (SignalboxError, ValueError, TypeError,
                        RecursionError) as e:
                    log.warning("the result of task %s was not taken: %s",
                                params["task_id"], e)
                    error = e
                is_late = getattr(error, "code", None) == "timeout"
                n_unanswered = n_unanswered + 1 if is_late else 0
                if _is_passing(error) and n_unanswered < UNANSWERED_MAX:
                    await asyncio.sleep(0 if is_late else REPEAT_S)
                elif is_replaced:
                    return
                else:
                    params = self.replaced(params, error)
                    n_unanswered, is_replaced = 0, True
        finally:
            del self.results[key]
            self.n_result_bytes -= n
            self.next()
            self.look_idle()

    @staticmethod
    def replaced(params, e):
        is_large = getattr(e, "code", None) == "too_large"
        which = {k: params[k] for k in ("task_id", "turn", "attempt")}
        return {**which, "status": "failed",
                "error": f"the answer was not taken: {_shortly(e)}",
                "error_code": "too_large" if is_large else "agent_failed"}

    def on_cancel(self, task_id):
        for entry in [e for e in self.tasks.values()
                      if e.task.id == str(task_id)]:
            del self.tasks[entry.key]
            entry.task._cancel()
            if entry in self.waiting:
                self.waiting.remove(entry)
        self.look_idle()

    def cancel_all(self, error):
        for entry in self.tasks.values():
            entry.task._cancel()
        self.tasks.clear()
        self.waiting.clear()
        self.threads.shutdown(wait=False)
        for say in self.results.values():
            say.cancel()
        if not self.registered.done():
            self.registered.set_exception(error)

    def look_idle(self):
        if not (self.tasks or self.results or self.runners):
            self.idle.set()

    async def finish(self, grace_s):
        """Take no more work; back when all is done and kept, or time is
        over."""
        self.is_closing = True
        self.idle.clear()
        self.look_idle()
        try:
            await asyncio.wait_for(self.idle.wait(), grace_s)
        except asyncio.TimeoutError:
            pass


# Talking to others.


class Reply:
    """What comes of a message: await it for the result, a dictionary; or
    iterate over it, for the words as they come."""

    def __init__(self, params):
        self.task_id = None
        self._params = params
        self._is_followed = False
        loop = asyncio.get_running_loop()
        self._accepted = loop.create_future()
        self._result = loop.create_future()
        for future in (self._accepted, self._result):
            # Who looks at one of them need not hear of the other.
            future.add_done_callback(lambda f: f.cancelled() or f.exception())
        self._unread = collections.deque()
        self._n_unread = 0
        self._has_chunks = False
        self._has_gap = False  # from here on only the result counts
        self._last_event_id = None
        self._read = []
        self._agent = None  # whose answer it is
        self._news = asyncio.Event()

    async def accepted(self):
        """{task_id, conversation_id, agent, …}, once the server has kept
        it."""
        return await asyncio.shield(self._accepted)

    def __await__(self):
        return asyncio.shield(self._result).__await__()

    async def __aiter__(self):
        async for piece in self.pieces():
            if piece["agent"] == self._agent:
                yield piece["text"]

    async def pieces(self):
        """The words as they come, each with whose they are: {"agent", "text"}.
        Those of agents that this one asked for help, and shows, are among
        them; they are no part of the answer."""
        while True:
            while self._unread:
                piece = self._unread.popleft()
                self._n_unread -= len(piece["text"])
                if piece["agent"] == self._agent:
                    self._read.append(piece["text"])
                yield piece
            if self._result.done():
                break
            self._news.clear()
            await self._news.wait()
        # Words that were lost on the way, or never streamed, are in there.
        text, read = (await self).get("text") or "", "".join(self._read)
        if text.startswith(read) and len(text) > len(read):
            yield {"agent": self._agent, "text": text[len(read):]}

    def _on_accepted(self, answer):
        self.task_id = answer["task_id"]
        self._agent = answer.get("agent")
        if not self._accepted.done():
            self._accepted.set_result(answer)
        if answer.get("status") in OVER:
            self._on_result(answer)

    def _place(self):
        place = {"task_id": self.task_id}
        if self._last_event_id:
            place["after"] = self._last_event_id
        return place

    def _on_news(self, method, params):
        event_id, status = params.get("event_id"), params.get("status")
        if method == "task.result":
            self._on_result(params)
            return
        if event_id:
            self._saw_event(event_id)
        if method == "task.chunk":
            self._on_chunk(params.get("agent") or self._agent,
                           params.get("text", ""))
        elif method == "task.gap" or (
                status in ("queued", "dispatched") and self._has_chunks):
            # A new attempt may start its answer over.
            self._has_gap = True

    def _saw_event(self, event_id):
        """"3-14": the third start of the server, its fourteenth event."""
        if self._last_event_id and self._has_chunks and \
                self._last_event_id.split("-")[0] != event_id.split("-")[0]:
            self._has_gap = True
        self._last_event_id = event_id

    def _on_chunk(self, agent, text):
        is_own = agent == self._agent
        is_too_much = self._n_unread + len(text) > UNREAD_MAX
        if is_own:
            self._has_chunks = True
            self._has_gap = is_too_much = self._has_gap or is_too_much
        if not is_too_much and not self._result.done():
            self._unread.append({"agent": agent, "text": text})
            self._n_unread += len(text)
            self._news.set()

    def _on_result(self, result):
        if self._result.done():
            return
        if result.get("status") == "completed":
            self._result.set_result(result)
        else:
            error = result.get("error") or {}
            self._result.set_exception(SignalboxError(
                error.get("code", result.get("status")),
                error.get("message", f"the task is {result.get('status')}"),
                result))
        self._news.set()

    def _on_error(self, e):
        for future in (self._accepted, self._result):
            if not future.done():
                future.set_exception(e)
        self._news.set()


class Delegation:
    """Work that was given to another agent: await it for the result, a
    dictionary."""

    def __init__(self, number, on_chunk):
        self.id = number
        self.task_id = None
        self._on_chunk = on_chunk
        self._timer = None
        loop = asyncio.get_running_loop()
        self._accepted = loop.create_future()
        self._result = loop.create_future()
        for future in (self._accepted, self._result):
            # Who looks at one of them need not hear of the other.
            future.add_done_callback(lambda f: f.cancelled() or f.exception())

    async def accepted(self):
        """{status, task_id}, once the server has kept it."""
        return await asyncio.shield(self._accepted)

    def __await__(self):
        return asyncio.shield(self._result).__await__()

    def _on_accepted(self, answer):
        self.task_id = (answer or {}).get("task_id")
        if not self._accepted.done():
            self._accepted.set_result(answer)

    def _on_result(self, result):
        self._on_accepted({"status": "accepted",
                           "task_id": result.get("task_id")})
        if result.get("status") == "completed":
            self._result.set_result(result)
        else:
            self._result.set_exception(_failure_of(result))

    def _on_error(self, e):
        for future in (self._accepted, self._result):
            if not future.done():
                future.set_exception(e)


def _failure_of(result):
    said = result.get("error") or {}
    said = {"message": said} if isinstance(said, str) else said
    code = result.get("error_code") or said.get("code") or \
        result.get("status", "failed")
    return SignalboxError(code, said.get("message", f"the task is {code}"),
                          result)


def _add(some, key):
    """Not more than can be remembered: the oldest goes."""
    if len(some) >= REMEMBERED:
        del some[next(iter(some))]
    some[key] = True


class _Delegations:
    """All of one connection's. In two phases: agent.send_task is answered at
    once, and delegation.result says what came of it, whenever that is; maybe
    before the answer was looked at. So a delegation is in the book before it
    is sent, under an id that is its own over all restarts, and stays there
    until its result has come, however often the connection breaks meanwhile.
    The server tells a result until it hears that it was had."""

    def __init__(self, calls, options):
        self.calls = calls
        self.o = options
        self.on_result = None  # for results without a waiting caller
        self.on_chunk = None  # likewise
        self.own = f"{uuid.uuid4()}-"  # ids that begin so are of this process
        self.last_id = 0
        self.pending = {}  # id -> Delegation
        self.late = {}  # ids whose time was over
        self.giving = set()  # ids that on_result is being given
        self.had = {}  # and was
        self.told = {}  # ids that were warned of
        self.acking = {}  # id -> who says it
        self.listeners = []  # of delegate_to_agent: names, on_chunk
        self.doing = set()

    def do(self, coroutine):
        task = asyncio.ensure_future(coroutine)
        self.doing.add(task)
        task.add_done_callback(self.doing.discard)

    def delegate(self, agent_name, skill, message, *, session_id=None,
                 task_id=None, parent_task_id=None, timeout_ms=None,
                 on_chunk=None, on_disconnect=None, metadata=None,
                 max_cost_micros=None):
        self.last_id += 1
        d = Delegation(f"{self.own}{self.last_id}", on_chunk)
        if len(self.pending) >= self.o["max_kept"]:
            d._on_error(SignalboxError("overloaded", "too much is delegated"))
            return d
        # Now: its result may come in the same breath as the answer, or before.
        self.pending[d.id] = d
        limit_ms = DELEGATION_MS if timeout_ms is None else timeout_ms
        if limit_ms:
            d._timer = asyncio.get_running_loop().call_later(
                limit_ms / 1000, self.on_late, d, limit_ms)
        params = {"agent_id": agent_name, "message": message,
                  "skill_id": skill, "session_id": session_id,
                  "task_id": task_id, "parent_task_id": parent_task_id,
                  "timeoutMs": timeout_ms or None,
                  "stream": True if on_chunk else None,
                  "onDisconnect": on_disconnect, "metadata": metadata,
                  "max_cost_micros": max_cost_micros}
        self.do(self.send(d, {k: v for k, v in params.items()
                              if v is not None}))
        return d

    def on_late(self, d, limit_ms):
        _add(self.late, d.id)
        self.take(d)
        d._on_error(SignalboxError(
            "timeout", f"nothing came of the delegation within {limit_ms} ms",
            {"task_id": d.task_id}))

    async def send(self, d, params):
        """The same again on the next connection, until it is answered; and
        when the server does not know itself whether it has it."""
        while d.id in self.pending:
            try:
                await self.calls.ask("agent.send_task", params, number=d.id,
                                     on_answer=d._on_accepted)
                return
            except (SignalboxError, TypeError, ValueError) as e:
                error = e
            if getattr(error, "code", None) == "outcome_unknown":
                await asyncio.sleep(REPEAT_S)
            else:
                self.take(d)
                d._on_error(error)

    def take(self, d):
        if d._timer:
            d._timer.cancel()
        self.pending.pop(d.id, None)
        # Said again, it would be another one.
        call = self.calls.take(d.id)
        if call:
            call.future.cancel()
            self.calls.flush()

    def heard(self, params):
        """delegation.result"""
        which = [params[k] for k in ("original_id", "sessionKey", "task_id")
                 if params.get(k) is not None]
        number = str(which[0]) if which else ""
        result = {"text": "", "metadata": {}, **params}
        d = self.pending.get(number)
        if d:
            self.take(d)
            d._on_result(result)
            self.ack(number, params)
        elif number in self.had or (number.startswith(self.own) and
                                    number not in self.late):
            self.ack(number, params)  # the last time it was not heard
        elif number in self.giving:
            pass
        elif self.on_result:
            self.giving.add(number)
            self.do(self.hand_over(number, params, result))
        elif self.late.pop(number, None):
            log.warning("the result of delegation %s came too late", number)
            self.ack(number, params)
        elif number not in self.told:
            _add(self.told, number)
            log.warning(
                "delegation %s is %s, but no caller waits for it: the server "
                "keeps it for on_delegation_result", number,
                params.get("status"))

    async def hand_over(self, number, params, result):
        """Of a process that was here before, of an async one, or too late."""
        try:
            out = self.on_result(result)
            if inspect.isawaitable(out):
                await out
        except Exception:  # whatever it is, it was not had
            log.exception("the result of delegation %s is kept", number)
        else:
            self.late.pop(number, None)
            _add(self.had, number)
            self.ack(number, params)
        finally:
            self.giving.discard(number)

    def ack(self, number, params):
        if number not in self.acking:
            self.acking[number] = asyncio.ensure_future(self.say_ack(number, {
                k: params[k] for k in ("original_id", "sessionKey", "task_id")
                if params.get(k) is not None}))

    async def say_ack(self, number, params):
        try:
            for _ in range(HANDED_TURNS):
                await asyncio.sleep(0)
            await self.calls.ask(
                "delegation.ack", params,
                patience_ms=self.o["call_timeout_ms"],
                on_answer=lambda _: self.acking.pop(number, None))
        except SignalboxError:
            pass  # it is told again then, and acknowledged again
        finally:
            if self.acking.get(number) is asyncio.current_task():
                del self.acking[number]

    def heard_chunk(self, params):
        """delegation.chunk"""
        d = self.pending.get(str(params.get("original_id")))
        tell = d._on_chunk if d else next(
            (on_chunk for names, on_chunk in self.listeners
             if params.get("agent") in names), self.on_chunk)
        try:
            if tell:
                tell(params)
        except Exception:  # any error of a handler stays here
            log.exception("on_chunk failed")

    async def tool(self, what, on_chunk=None, parent_task_id=None,
                   task_session=None):
        """agent.delegate: one, or a list of up to 16."""
        is_list = isinstance(what, (list, tuple))
        more = {"parent_task_id": parent_task_id} if parent_task_id else {}
        if task_session:
            more["session_id"] = task_session
        every = [{**more, **t} for t in (what if is_list else [what])]
        longest = max((t.get("timeoutMs", TOOL_MS) for t in every
                       if t.get("mode") != "async"), default=0)
        listener = {t.get("agentId") for t in every}, on_chunk
        if on_chunk:
            self.listeners.append(listener)
        try:
            # Not on the next connection: said again, it would be another one.
            answer = await self.calls.ask(
                "agent.delegate", {"tasks": every} if is_list else every[0],
                longest + self.o["call_timeout_ms"], is_once=True,
                number=str(uuid.uuid4()))
        finally:
            if on_chunk:
                self.listeners.remove(listener)
        return answer["results"] if is_list else answer

    async def finish(self, grace_s):
        """Until the server knows what was had, or time is over."""
        if self.acking and grace_s > 0:
            await asyncio.wait(list(self.acking.values()), timeout=grace_s)

    def drop_all(self, error):
        for d in list(self.pending.values()):
            self.take(d)
            d._on_error(error)


class Hub:
    """The server, as those see it who are connected to it."""

    def __init__(self, options):
        self._o = options
        self._link = _Link(self, options)
        self._calls = _Calls(self._link, options)
        self._delegations = _Delegations(self._calls, options)
        self._agent = None
        self._replies = set()  # not over
        self._followers = set()
        self._closed = asyncio.get_running_loop().create_future()

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.close()

    @property
    def agent(self):
        """The name of the agent that this connection is; None: of none."""
        return self._agent and self._agent.name

    @property
    def is_connected(self):
        return self._link.socket is not None

    async def closed(self):
        """Wait until it is: after close(), or with an error when it ended for
        good in another way (the token is not good any more, another took
        over)."""
        return await asyncio.shield(self._closed)

    # What the link tells.

    async def on_open(self):
        if self._agent:
            await self._agent.register()
        for reply in self._replies:
            if reply.task_id:
                self._follow_soon(reply, 0)
        self._calls.is_ready = True
        self._calls.flush()

    def on_lost(self, code):
        # An agent is one again before it says more.
        self._calls.is_ready = False
        self._calls.lost(code)

    def on_over(self, error):
        e = error or _closed()
        self._delegations.drop_all(e)
        self._calls.drop_all(e)
        for reply in list(self._replies):
            reply._on_error(e)
        if self._agent:
            self._agent.cancel_all(e)
        if self._closed.done():
            return
        if error:
            log.error("the connection ended: %s", error)
            self._closed.set_exception(error)
            self._closed.exception()  # it was told
        else:
            self._closed.set_result(None)

    def on_message(self, text):
        try:
            said = json.loads(text)
        except ValueError:
            log.warning("the server said something that is not JSON")
            return
        for m in said if isinstance(said, list) else [said]:
            if "method" in m:
                self._on_call(m)
            elif m.get("id") is not None:
                self._calls.answered(m)
            elif m.get("error"):
                # It could not read what was said, nor whose call it was.
                log.warning("the server did not understand: %s",
                            _error_of(m["error"]))

    def _on_call(self, m):
        method, params = m["method"], m.get("params") or {}
        if method == "task.execute":
            self._on_execute(m.get("id"), params)
        elif method == "task.cancel":
            if self._agent:
                self._agent.on_cancel(params.get("task_id"))
        elif method.startswith("task."):
            self._on_reply(method, params)
        elif method == "delegation.result":
            self._delegations.heard(params)
        elif method == "delegation.chunk":
            self._delegations.heard_chunk(params)
        else:
            self._answer(m.get("id"), error={
                "code": -32601, "message": f"there is no method {method} here"})

    def _answer(self, number, **what):
        if number is not None and self._link.socket:
            self._link.socket.send(json.dumps(
                {"jsonrpc": "2.0", "id": number, **what}))

    def _on_execute(self, number, params):
        # A client that leaves starts no work: the next one gets the task.
        if not self._agent or self._agent.is_closing:
            return
        if self._agent.on_execute(params):
            self._answer(number, result={"status": "working"})
        else:
            self._answer(number, error={"code": -32000, "message": "I am busy",
                                        "data": {"code": "agent_busy"}})

    # Being an agent.

    async def register(self, card, handler, *, concurrency=16):
        """Become that agent, and work on its tasks with handler(task), so many
        at once. The handler is a coroutine function that returns the answer or
        {"text", "metadata"}, or an async generator of its words, or a plain
        function, which runs in a thread. What it raises is the task's
        error."""
        if not callable(handler):
            raise TypeError("register needs a card and a handler")
        if self._agent:
            raise SignalboxError("exists", f"this is {self.agent} already")
        if self._link.is_over:
            raise _closed()
        # Now: work may come in the same breath as the answer.
        self._agent = agent = _Agent(self._link, self._calls, self._o, card,
                                     handler, concurrency,
                                     self._delegations, self.send)
        try:
            if self.is_connected:
                await agent.register()
        except SignalboxError as e:
            if e.code != "disconnected":  # else it is done on the next
                self._agent = None
                raise
        return await asyncio.shield(agent.registered)

    async def update(self, card):
        """Change fields of the agent's card."""
        answer = await self.call("agent.update", {"card": card})
        if self._agent:
            self._agent.card.update(card)
        return answer

    async def set_state(self, state, *, data_at=None):
        """Say how the agent is: IDLE, BUSY, SLOW, ERROR …; and of when the data
        is that it works with, "2025-02-15T09:00:00Z" or milliseconds."""
        params = {"state": state}
        if data_at is not None:
            params["data_at"] = data_at
        return await self.call("agent.state", params)

    # Talking to others.

    async def call(self, method, params=None, *, timeout_ms=None):
        """Ask for any method of the server's."""
        if timeout_ms is None:
            timeout_ms = self._o["call_timeout_ms"]
        return await self._calls.ask(method, params or {}, timeout_ms)

    async def search(self, query, **options):
        """Agents that can do it, best first."""
        found = await self.call("agent.search", {"query": query, **options})
        return found["agents"]

    def send(self, text, *, to=None, skill=None, conversation=None, task=None,
             priority=None, timeout_ms=None, metadata=None, key=None,
             parent_task_id=None, max_cost_micros=None):
        """Send a message. Await it for the result, or iterate over it for the
        words as they come. Of an agent it is on behalf of what it works on:
        in a handler, Task.send says of which task. max_cost_micros: what it
        and all that is delegated because of it may cost."""
        params = {"text": text, "executor": to and {"name": to},
                  "skill": skill, "conversation_id": conversation,
                  "task_id": task, "priority": priority,
                  "timeout_ms": timeout_ms, "metadata": metadata,
                  "parent_task_id": parent_task_id,
                  "max_cost_micros": max_cost_micros,
                  "idempotency_key": key or str(uuid.uuid4())}
        return self._send({k: v for k, v in params.items() if v is not None})

    def send_envelope(self, envelope):
        """Send a message from an agent to another: a dictionary of to, type
        and, as may be, from, priority, timestamp, reference, payload, context,
        max_cost_micros and message_id. What was decided of it is "routing" in accepted();
        await it for the result, however long it is held before."""
        return self._send({"envelope": {"message_id": str(uuid.uuid4()),
                                        **envelope}})

    def _send(self, params):
        reply = Reply(params)
        self._replies.add(reply)
        self._follow_soon(reply, self._o["call_timeout_ms"])
        return reply

    def _follow_soon(self, reply, timeout_ms):
        if not reply._is_followed:
            reply._is_followed = True
            task = asyncio.ensure_future(self._follow(reply, timeout_ms))
            self._followers.add(task)
            task.add_done_callback(self._followers.discard)

    async def _follow(self, reply, timeout_ms):
        """What is kept already is listened to; the same key gives the same
        task, however often it is sent."""
        try:
            if reply.task_id:
                await self.call("task.listen", reply._place(),
                                timeout_ms=timeout_ms)
            else:
                await self._calls.ask("message.send", reply._params,
                                      timeout_ms, on_answer=reply._on_accepted)
        except (SignalboxError, TypeError, ValueError) as e:
            reply._on_error(e)
        reply._is_followed = False
        if reply._result.done():
            self._replies.discard(reply)

    def _on_reply(self, method, params):
        for reply in [r for r in self._replies
                      if r.task_id == params.get("task_id")]:
            reply._on_news(method, params)
            if reply._result.done():
                self._replies.discard(reply)

    # Giving work to others, as the agent that this is.

    def delegate(self, agent_name, skill, message, *, session_id=None,
                 task_id=None, parent_task_id=None, timeout_ms=None,
                 on_chunk=None, on_disconnect=None, metadata=None,
                 max_cost_micros=None):
        """Give work to another agent. Await it for the result, a dictionary
        of text, metadata and task_id. However often the connection breaks, it
        is one task, and its result comes. task_id: a further turn of that
        one; timeout_ms: 180 000, 0 is none; on_chunk({"agent", "text", …});
        on_disconnect: "keep" or "cancel"; max_cost_micros: its price at most.
        Task.delegate is the same, on behalf of that task."""
        return self._delegations.delegate(
            agent_name, skill, message, session_id=session_id,
            task_id=task_id, parent_task_id=parent_task_id,
            timeout_ms=timeout_ms, on_chunk=on_chunk,
            on_disconnect=on_disconnect, metadata=metadata,
            max_cost_micros=max_cost_micros)

    async def delegate_to_agent(self, what, *, on_chunk=None):
        """The tool: {"agentId", "task", "mode", "timeoutMs", "stream", …}, or
        a list of up to 16. Returns {"status", "response", "sessionKey",
        "task_id"}, or a list of those; what went wrong with one is its status
        and error. It is not said again when the connection breaks: that is
        the error `disconnected`. on_chunk({"agent", "text", …}) is for
        "stream"."""
        return await self._delegations.tool(what, on_chunk)

    async def delegation(self, session_key):
        """How that delegation is now."""
        return await self.call("delegation.get", {"sessionKey": session_key})

    def on_delegation_result(self, handler):
        """handler(result), a coroutine function or a plain one, for what comes
        of delegations without a waiting caller: one with mode "async", or
        of this agent before it was started again. The server keeps them until
        the handler is done with them. To be set before register. May be used
        as a decorator."""
        self._delegations.on_result = handler
        return handler

    def on_delegation_chunk(self, handler):
        """handler({"agent", "text", "task_id", …}) for text that no other handler
        takes."""
        self._delegations.on_chunk = handler
        return handler

    async def tools(self, format=None):
        """The tools as JSON Schemas, for those who have a model of their own,
        as "openai" or as "anthropic" takes them; or both, by these names."""
        query = urllib.parse.urlencode({"format": format} if format else {})
        return await asyncio.get_running_loop().run_in_executor(
            None, self._get, "/api/tools", query)

    def _get(self, path, query):
        url = self._o["url"]
        http = url._replace(scheme="https" if url.scheme == "wss" else "http",
                            path=url.path[:-len("/hub")] + path,
                            query=query)
        ask = urllib.request.Request(http.geturl(), headers={
            "Authorization": f"Bearer {self._o['token']}"})
        try:
            with urllib.request.urlopen(
                    ask, timeout=self._o["call_timeout_ms"] / 1000,
                    context=self._o["ssl"]) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as e:
            with e:
                raise _refusal(_Refusal(e.code, e.read(BODY_MAX).decode(
                    "utf-8", "replace")), url) from None
        except (OSError, ValueError) as e:
            raise _refusal(e, url) from None

    async def get_task(self, task_id):
        return await self.call("task.get", {"task_id": task_id})

    async def cancel_task(self, task_id):
        return await self.call("task.cancel", {"task_id": task_id})

    async def close(self, *, grace_ms=5000):
        """Take no more work, give what is going on so long to end and its
        results to be kept, and leave."""
        if self._link.is_over:
            return
        if self._agent:
            await self._agent.finish(grace_ms / 1000)
        await self._delegations.finish(grace_ms / 1000)
        socket = self._link.socket
        self._link.end(None)
        if socket:
            await socket.close()


async def connect(url=None, token=None, *, ssl=None, connect_timeout_ms=30000,
                  call_timeout_ms=30000, retry_ms=250, retry_max_ms=30000,
                  heartbeat_ms=90000, max_message_bytes=16 * 1024 * 1024,
                  max_kept=1000, max_kept_bytes=64 * 1024 * 1024):
    """A Hub. What is not given is taken from SIGNALBOX_URL, SIGNALBOX_TOKEN
    and SIGNALBOX_CA; ssl is an ssl.SSLContext."""
    options = dict(locals())
    options["url"] = _hub_url(url or os.environ.get("SIGNALBOX_URL") or HERE)
    options["token"] = token or os.environ.get("SIGNALBOX_TOKEN")
    if not options["token"]:
        raise SignalboxError("unauthenticated", "a token is needed: give one, "
                                                "or set SIGNALBOX_TOKEN")
    if ssl is None and options["url"].scheme == "wss":
        options["ssl"] = tls.create_default_context(
            cafile=os.environ.get("SIGNALBOX_CA") or None)
    hub = Hub(options)
    await hub._link.begin()
    return hub
