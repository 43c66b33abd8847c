"""A hub that is a script: it takes nothing that docs/protocol.md does not
allow, and says what a test has in mind, in the order and in the pieces that it
has in mind.

    with FakeHub() as hub:
        line = hub.accept()            # anyone who dials hub.url
        line.register()
        ask = line.expect("agent.send_task")
        line.say(result(ask, text="done"), accepted(ask))   # one write

Waits end with an error after ws_wire's patience, never by themselves.
"""
import json
import socket
import struct

from ws_wire import CLOSE, PONG, TEXT, Wire, accept_of, frame

PATIENCE_S = 30
NEVER = object()


class Wrong(AssertionError):
    """The client said what it must not."""


def answer(ask, **what):
    return {"jsonrpc": "2.0", "id": ask["id"], "result": what}


def refusal(ask, code, message="no"):
    return {"jsonrpc": "2.0", "id": ask["id"], "error": {
        "code": -32000, "message": message, "data": {"code": code}}}


def tell(method, **params):
    return {"jsonrpc": "2.0", "method": method, "params": params}


def task_of(ask):
    """The id that the task of that request has here."""
    return "task_" + str(ask["id"])[-8:]


def accepted(ask):
    return answer(ask, status="accepted", task_id=task_of(ask))


def result(ask, text="done", **more):
    return tell("delegation.result", original_id=str(ask["id"]),
                task_id=task_of(ask), status="completed", text=text,
                metadata=more.pop("metadata", {}), **more)


def failed(ask, words="Agent 'bob' is offline", **more):
    return tell("delegation.result", original_id=str(ask["id"]),
                task_id=task_of(ask), status="failed", error=words, **more)


def frames(*messages):
    return b"".join(frame(TEXT, json.dumps(m).encode()) for m in messages)


class Line:
    """One connection of a client's."""

    def __init__(self, sock):
        self.wire = Wire(sock, PATIENCE_S, peer_masks=True)
        head = self.wire.head()
        must(head.line.startswith(b"GET /hub HTTP/1.1"), head)
        must(head.headers[b"authorization"][0].startswith(b"Bearer "), head)
        key, = head.headers[b"sec-websocket-key"]
        self.wire.send(b"\r\n".join([
            b"HTTP/1.1 101 Switching Protocols", b"Upgrade: websocket",
            b"Connection: Upgrade", b"Sec-WebSocket-Accept: " + accept_of(key),
            b"Sec-WebSocket-Protocol: signalbox", b"", b""]))

    def say(self, *messages, chop=None):
        """All of them in one write, or chopped."""
        self.wire.send(frames(*messages), chop)

    def hear(self):
        while True:
            event = self.wire.event()
            if event.kind == "text":
                return checked(json.loads(event.payload))
            if event.kind == "ping":
                self.wire.send(frame(PONG, event.payload))
            else:
                raise Wrong(f"it has gone: {event}")

    def expect(self, method):
        """The next that it says, and it must be that."""
        m = self.hear()
        must(m.get("method") == method, f"not {method}: {m}")
        return m

    def register(self, name="parrot", *behind):
        """Answer the registration; `behind` comes in the same write."""
        m = self.expect("agent.register")
        must(m["params"]["card"]["name"] == name, m)
        self.say(answer(m, agent=name, heartbeat_s=90), *behind)

    def ack_of(self, ask):
        """It says that it has what came of that; and hears that this is
        known."""
        m = self.expect("delegation.ack")
        must(m["params"] == {"original_id": str(ask["id"]),
                             "task_id": task_of(ask)}, m)
        self.say(answer(m, status="ok"))
        return m

    def cut(self):
        """As a crash of the machine would, or a cable."""
        self.wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                    struct.pack("ii", 1, 0))
        self.wire.socket.close()

    def bye(self):
        """Anyone who is there leaves, in good order, and says nothing more."""
        event = self.wire.event()
        must(event.kind == "close", event)
        self.wire.send(frame(CLOSE, event.payload))
        self.wire.socket.close()


def must(holds, what):
    if not holds:
        raise Wrong(str(what))


REQUESTS = {  # what each must have, and may have
    "agent.register": ({"card"}, set()),
    "agent.send_task": (
        {"agent_id", "message", "skill_id"},
        {"session_id", "task_id", "parent_task_id", "timeoutMs", "stream",
         "onDisconnect", "metadata", "max_cost_micros"}),
    "agent.delegate": (set(), {
        "agentId", "task", "mode", "timeoutMs", "stream", "skill",
        "sessionKey", "onTimeout", "onDisconnect", "parent_task_id",
        "session_id", "tasks", "max_cost_micros"}),
    "delegation.ack": (set(), {"original_id", "sessionKey", "task_id"}),
    "delegation.get": ({"sessionKey"}, set()),
    "message.send": ({"text"}, {"executor", "idempotency_key"}),
    "task.result": ({"task_id", "turn", "status"},
                    {"attempt", "text", "error", "error_code", "metadata"}),
    "task.chunk": ({"task_id", "text"}, {"turn", "attempt"}),
    "mark": (set(), NEVER),
}


def checked(m):
    """What no client may say is an error."""
    must(m.get("jsonrpc") == "2.0", m)
    if "method" not in m:
        must("id" in m and ("result" in m) != ("error" in m), m)
        return m
    must(m["method"] in REQUESTS, m)
    needed, allowed = REQUESTS[m["method"]]
    names = set(m.get("params") or {})
    must(needed <= names, m)
    must(allowed is NEVER or names <= needed | allowed, m)
    must(None not in (m.get("params") or {}).values(), m)
    if m["method"] == "agent.send_task":
        must(isinstance(m.get("id"), str) and not m["id"].isdigit(), m)
        must(len(m["id"]) >= 16, m)
    elif m["method"] != "task.chunk":
        must(m.get("id") is not None, m)
    return m


class FakeHub:
    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(PATIENCE_S)
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.lines = []

    def accept(self):
        """The next that dials."""
        sock, _ = self.listener.accept()
        self.lines.append(Line(sock))
        return self.lines[-1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for line in self.lines:
            line.wire.socket.close()
        self.listener.close()
