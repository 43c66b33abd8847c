#!/usr/bin/env python3
"""How much memory and disk things take: bench/sizing.py build/signalbox.

A server of its own on a free port, with a data folder in /tmp; figures are
differences of its resident memory, and of its database once it has stopped.
docs/operations.md has what came of it.
"""
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

AGENTS, UNFINISHED, TASKS, CONVERSATIONS = 10000, 10000, 10000, 1000
WORDS = ("invoice", "reminder", "translation", "contract", "recipe", "flight",
         "report", "budget", "garden", "lecture", "server", "holiday")
SETTINGS = {"rate.perUser": 0, "rate.perAddress": 0, "retention.days": 3650,
            "tasks.maxUnfinishedPerUser": 0, "deliver.queue": 1000000,
            "log.level": "error", "routing.threshold": 0.1}


class Server:
    def __init__(self, binary, folder):
        self.argv = [binary, "serve", "--json", "--listen", "127.0.0.1:0",
                     "--data", folder]
        for name, value in SETTINGS.items():
            self.argv += ["--set", f"{name}={json.dumps(value).strip(chr(34))}"]
        self.folder, self.token = folder, None
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.argv, stdout=subprocess.PIPE)
        told = json.loads(self.process.stdout.readline())
        self.port = int(told["url"].rsplit(":", 1)[1])
        self.token = told.get("token", self.token)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        self.process.stdout.close()

    def memory(self):
        """Resident bytes."""
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    def disk(self):
        return sum(os.path.getsize(os.path.join(self.folder, x))
                   for x in os.listdir(self.folder)
                   if x.startswith("signalbox.db"))

    def many(self, method, path, bodies):
        """All of them, on eight connections."""
        bodies = iter(bodies)
        lock, problems = threading.Lock(), []

        def work():
            peer = http.client.HTTPConnection("127.0.0.1", self.port)
            while not problems:
                with lock:
                    body = next(bodies, None)
                if body is None:
                    break
                peer.request(method, path, json.dumps(body), {
                    "Authorization": "Bearer " + self.token,
                    "Content-Type": "application/json"})
                answer = peer.getresponse()
                text = answer.read()
                if answer.status >= 300:
                    problems.append(text)
            peer.close()
        threads = [threading.Thread(target=work) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        if problems:
            sys.exit(f"{method} {path}: {problems[0]}")


def card(i):
    word, other = WORDS[i % len(WORDS)], WORDS[i // len(WORDS) % len(WORDS)]
    return {"name": f"agent-{i}", "url": "echo:", "visibility": "public",
            "description": f"Number {i}: looks after every {word} of yours "
                           f"and whatever {other} comes with it.",
            "skills": [{"id": "first", "name": word.title(), "tags": [word],
                        "description": f"Makes, checks and files a {word}.",
                        "examples": [f"make me a {word} for Monday"]},
                       {"id": "second", "name": other.title(), "tags": [other],
                        "description": f"Explains a {other} in plain words.",
                        "examples": [f"what does this {other} mean"]}]}


def text(i):
    return f"number {i}: " + " ".join(
        f"please look at the {WORDS[(i + k) % len(WORDS)]} once more"
        for k in range(5))


def restarted(server):
    """Memory and disk of a server that has just come back."""
    server.stop()
    disk = server.disk()
    server.start()
    return server.memory(), disk


def measure(server):
    said = []

    def tell(what, n, before, after):
        for kind, was, now in (("memory", before[0], after[0]),
                               ("disk", before[1], after[1])):
            said.append((f"{what}, {kind}", (now - was) / n))

    empty = restarted(server)
    server.many("POST", "/api/agents", (card(i) for i in range(AGENTS)))
    agents = restarted(server)
    tell("an agent with two skills", AGENTS, empty, agents)

    server.many("POST", "/api/agents", [
        {"name": "never", "url": "echo:3600000", "description": "Waits"}])
    server.many("POST", "/api/messages", (
        {"text": text(i), "executor": {"name": "never"}, "wait_ms": 0}
        for i in range(UNFINISHED)))
    waiting = restarted(server)
    tell("a task that is not over", UNFINISHED, agents, waiting)

    server.many("POST", "/api/messages", (
        {"text": text(i), "executor": {"name": "agent-1"},
         "conversation_id": f"c-{i % CONVERSATIONS}"} for i in range(TASKS)))
    named = restarted(server)
    tell("a task that is over, to a named agent", TASKS, waiting, named)

    server.many("POST", "/api/messages", ({"text": text(i)}
                                          for i in range(TASKS)))
    chosen = restarted(server)
    tell("a task that is over, with a choice by meaning", TASKS, named, chosen)
    return empty, said


def main(binary):
    folder = tempfile.mkdtemp(prefix="signalbox-sizing-")
    try:
        server = Server(os.path.abspath(binary), os.path.join(folder, "data"))
        empty, said = measure(server)
        server.stop()
    finally:
        shutil.rmtree(folder)
    print(f"{'an empty server':55} {empty[0] / 1e6:8.1f} MB")
    for what, each in said:
        print(f"{what:55} {each:8.0f} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
