"""A child that does what its messages say (road_agents.py), in one of the
dialects that children have: `road_child.py FOLDER signalbox|pi`."""
import json
import os
import sys
import threading

from road_agents import Memory, RpcAgent, in_thread, perform


class Child(RpcAgent):
    """Our own dialect: the hub's methods, one message a line."""

    def say(self, message):
        self.write({"jsonrpc": "2.0", **message})

    def write(self, message):
        data = json.dumps(message).encode() + b"\n"
        with self.lock:
            while data:
                data = data[os.write(1, data):]

    def heard(self, message):
        if message.get("method") == "hello":
            self.say({"id": message["id"], "result": {"at_once": 2}})
        else:
            super().heard(message)

    def die(self):
        os._exit(1)

    def run(self):
        for line in sys.stdin.buffer:
            self.heard(json.loads(line))


class PiTask:
    """One prompt of pi-coding-agent in --mode rpc."""

    def __init__(self, agent):
        self.agent = agent
        self.said = ""
        self.is_over = False
        self.is_cancelled = threading.Event()

    def working(self):
        pass

    def chunk(self, text):
        self.said += text
        self.agent.write({"type": "message_update", "message": {
            "role": "assistant",
            "content": [{"type": "text", "text": self.said}]},
            "assistantMessageEvent": {"type": "text_delta",
                                      "contentIndex": 0, "delta": text}})

    def result(self, result):
        if self.is_over:
            return
        self.is_over = True
        if result.get("text"):
            self.chunk(result["text"])
        message = {"role": "assistant",
                   "content": [{"type": "text", "text": self.said}],
                   "stopReason": "stop"}
        if result["status"] == "failed":
            message.update(stopReason="error",
                           errorMessage=result["error"])
        self.end(message)

    def end(self, message):
        self.agent.write({"type": "message_end", "message": message})
        self.agent.write({"type": "agent_end", "messages": [message]})
        self.agent.task = None

    def die(self):
        os._exit(1)

    def hang(self):
        self.is_cancelled.wait()
        self.end({"role": "assistant", "content": [],
                  "stopReason": "aborted"})


class Pi(Child):
    task = None

    def heard(self, message):
        kind = message["type"]
        self.write({"id": message.get("id"), "type": "response",
                    "command": kind, "success": True,
                    **({"data": {"isStreaming": False}}
                       if kind == "get_state" else {})})
        if kind == "prompt":
            self.task = PiTask(self)
            self.write({"type": "agent_start"})
            in_thread(perform, message["message"], self.memory, self.task)
        elif kind == "abort" and self.task:
            self.task.is_cancelled.set()


{"signalbox": Child, "pi": Pi}[sys.argv[2]](Memory(sys.argv[1])).run()
