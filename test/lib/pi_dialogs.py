"""A child that speaks pi-coding-agent's dialect and asks people something: the
prompt is a JSON list of what it shows, in order and at once (`method`, `title`,
…; `say` is a word of its answer, and `die` the end of it). One with `times` is
shown again once it is over, so often. It answers, as JSON, with what it was
told, by the number of what it showed. A prompt that is none is said back."""
import json
import os
import sys


def write(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def said(text):
    return {"role": "assistant", "stopReason": "stop",
            "content": [{"type": "text", "text": text}]}


def say(text):
    write({"type": "message_update", "message": said(text),
           "assistantMessageEvent": {"type": "text_delta", "delta": text}})


def end(text):
    message = said(text)
    say(text)
    write({"type": "message_end", "message": message})
    write({"type": "agent_end", "messages": [message]})


class Pi:
    WAITS = ("select", "confirm", "input", "editor", "unheardOf")

    def __init__(self):
        self.waits = set()
        self.told = {}
        self.shown = []

    def begin(self, text):
        write({"type": "agent_start"})
        try:
            shown = json.loads(text)
        except ValueError:
            end(text)
            return
        self.waits = {f"d-{i}" for i, one in enumerate(shown)
                      if one["method"] in self.WAITS}
        self.told = {}
        self.shown = shown
        for i, one in enumerate(shown):
            if one["method"] == "die":
                os._exit(1)
            if one["method"] == "say":
                say(one["text"])
                continue
            self.show(f"d-{i}", one)
        self.end_if_told()

    def show(self, number, one):
        write({"type": "extension_ui_request", "id": number, **one})

    def end_if_told(self):
        if not self.waits:
            end(json.dumps(self.told, sort_keys=True))

    def heard(self, message):
        kind, number = message["type"], message.get("id")
        if kind == "extension_ui_response":
            del message["type"], message["id"]
            told = self.told.setdefault(number, [])
            told.append(message)
            one = self.shown[int(number[2:])]
            if len(told) < one.get("times", 1):
                self.show(number, one)
                return
            self.waits.discard(number)
            self.end_if_told()
            return
        write({"id": number, "type": "response", "command": kind,
               "success": True})
        if kind == "prompt":
            self.begin(message["message"])

    def run(self):
        for line in sys.stdin:
            self.heard(json.loads(line))


Pi().run()
