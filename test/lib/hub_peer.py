"""A connection to /hub, for tests: JSON-RPC over a WebSocket, as right or wrong
as it is asked for.

    with Hub(server, token) as hub:
        print(hub.call("agent.register", card={"name": "echo"}))
        for task in hub.requests("task.execute"): ...

Waits end with an error after ws_wire's patience, never by themselves.
"""
import itertools
import json
import socket

from ws_wire import BINARY, CLOSE, PING, PONG, TEXT, Wire, masked

PATIENCE_S = 30


class Refused(Exception):
    """The answer was an error."""

    def __init__(self, error):
        super().__init__(json.dumps(error))
        self.error = error
        self.code = error["code"]
        self.name = (error.get("data") or {}).get("code")
        self.message = error["message"]


class Closed(Exception):
    """The other side said goodbye."""

    def __init__(self, code, reason):
        super().__init__(f"{code} {reason}")
        self.code, self.reason = code, reason


class Hub:
    def __init__(self, server, token=None, protocols=None, authorization=True):
        host, port = server.address
        sock = socket.create_connection((host, port), PATIENCE_S)
        self.wire = Wire(sock, PATIENCE_S)
        extra = []
        token = token or server.token
        if authorization:
            extra.append(b"Authorization: Bearer " + token.encode())
        if protocols:
            extra.append(b"Sec-WebSocket-Protocol: " + protocols.encode())
        try:
            self.head = self.wire.upgrade("/hub", f"{host}:{port}".encode(),
                                          extra)
        except Exception:
            sock.close()
            raise
        self.ids = itertools.count(1)
        self.waiting = []  # what came and no one asked for yet

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.wire.socket.close()

    def close(self):
        self.wire.socket.close()

    # Bytes and messages.

    def send_bytes(self, data, opcode=TEXT):
        self.wire.send(masked(opcode, data))

    def send(self, message):
        self.send_bytes(json.dumps(message).encode())

    def read(self):
        """The next message, whatever it is."""
        while True:
            event = self.wire.event()
            if event.kind == "ping":
                self.wire.send(masked(PONG, event.payload))
            elif event.kind == "text":
                return json.loads(event.payload)
            elif event.kind == "close":
                code = int.from_bytes(event.payload[:2], "big")
                self.wire.send(masked(CLOSE, event.payload))
                raise Closed(code, event.payload[2:].decode())
            elif event.kind == "eof":
                raise Closed(None, "")

    def next(self, wanted):
        """The next message for which wanted is true; others wait."""
        for i, message in enumerate(self.waiting):
            if wanted(message):
                return self.waiting.pop(i)
        while not wanted(message := self.read()):
            self.waiting.append(message)
        return message

    # Words.

    def start(self, method, **params):
        """Ask, and do not wait."""
        id = next(self.ids)
        self.send({"jsonrpc": "2.0", "id": id, "method": method,
                   "params": params})
        return id

    def answer(self, id):
        message = self.next(lambda m: isinstance(m, dict) and "method" not in m
                            and m.get("id") == id)
        if "error" in message:
            raise Refused(message["error"])
        return message["result"]

    def call(self, method, **params):
        return self.answer(self.start(method, **params))

    def tell(self, method, **params):
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def heard(self, method, task_id=None):
        """The params of the next call or notification of that name."""
        return self.next(
            lambda m: isinstance(m, dict) and m.get("method") == method and
            (task_id is None or m["params"]["task_id"] == task_id))["params"]

    def register(self, name, **card):
        return self.call("agent.register",
                         card={"name": name, "description": "for tests",
                               **card})

    def work(self, **result):
        """Take one task, and say this of it; a text that is missing is its
        message."""
        message = self.next(lambda m: m.get("method") == "task.execute")
        task = message["params"]
        self.send({"jsonrpc": "2.0", "id": message["id"],
                   "result": {"status": "working"}})
        said = {"status": "completed", "text": task["message"], **result}
        return task, self.call("task.result", task_id=task["task_id"],
                               turn=task["turn"], **said)
