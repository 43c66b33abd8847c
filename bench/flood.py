#!/usr/bin/env python3
"""Two hostile users beside an honest one: bench/flood.py SIGNALBOX [WHAT…].

    tasks         both send one-byte messages to an agent that never answers,
                  64 at once on one connection, until they are refused, and go
                  on trying
    index         both register agents with 256 tiny skills each, until they
                  are refused, and go on trying; measured once the vectors of
                  their cards are made
    vectors       both register such cards with longer skills and change them
                  all the time: vectors are made for as long as it is measured
    connections   8 300 connections that say nothing; whatever is closed is
                  opened again

An honest user sends messages (tasks), asks who would get one (index, vectors)
or calls
on a new connection each time (connections), for some seconds without the two
and for as long beside them. Goals, for each: at least half of the calls a
second, a p99 of at most five times, /healthz answers, and an admin can act. A
server of its own with default settings but for rate.perUser, which would bind
the honest user, on a free port, data in /tmp. Exit status 1 where a goal is
missed.
"""
import http.client
import json
import multiprocessing
import os
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

SECONDS = float(os.environ.get("FLOOD_SECONDS", "8"))
SILENT = 8300
PAUSE_S = 0.1  # between two tries of a user who was refused
AT_ONCE = 64  # messages of one user on their way
AGENTS = [{"id": "echo", "url": "echo:", "description": "Says it again"},
          {"id": "never", "url": "echo:3600000", "description": "Waits"}]
SKILLS = [{"id": str(i), "name": "refund"} for i in range(256)]


class Server:
    def __init__(self, binary):
        self.folder = tempfile.mkdtemp(prefix="signalbox-flood-")
        config = os.path.join(self.folder, "flood.jsonc")
        with open(config, "w", encoding="ascii") as f:
            json.dump({"agents": {"list": AGENTS}, "log": {"level": "error"},
                       "deliver": {"queue": 1000000},
                       "rate": {"perUser": 0}}, f)
        self.process = subprocess.Popen(
            [binary, "serve", "--json", "--listen", "127.0.0.1:0", "--config",
             config, "--data", os.path.join(self.folder, "data")],
            stdout=subprocess.PIPE)
        told = json.loads(self.process.stdout.readline())
        self.port = int(told["url"].rsplit(":", 1)[1])
        self.admin = Client(self, told["token"])

    def user(self, name):
        self.admin.good("POST", "/api/users", {"name": name, "role": "user"})
        made = self.admin.good("POST", "/api/tokens", {"user": name})
        return Client(self, made["token"])

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        self.process.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class Client:
    def __init__(self, server, token):
        self.server, self.token, self.http = server, token, None

    def call(self, method, path, body=None):
        """Status and body; 0 where there was no answer."""
        headers = {"Authorization": f"Bearer {self.token}",
                   "Content-Type": "application/json"}
        for _ in range(2):  # a kept connection may have been closed
            try:
                if not self.http:
                    self.http = http.client.HTTPConnection(
                        "127.0.0.1", self.server.port, timeout=60)
                self.http.request(method, path, body and json.dumps(body),
                                  headers)
                answer = self.http.getresponse()
                data = answer.read()
                if answer.will_close:
                    self.close()
                return answer.status, data
            except (OSError, http.client.HTTPException):
                self.close()
        return 0, b""

    def good(self, method, path, body=None):
        status, data = self.call(method, path, body)
        if status not in (200, 201):
            raise RuntimeError(f"{method} {path}: {status} {data!r}")
        return json.loads(data)

    def close(self):
        if self.http:
            self.http.close()
        self.http = None


class Hostile(multiprocessing.Process):
    """A process of its own, so that the honest one has its own as well."""

    def __init__(self):
        super().__init__(daemon=True)
        self.taken = multiprocessing.Value("q", 0)
        self.over = multiprocessing.Event()
        self.was_refused = multiprocessing.Event()

    def stop(self):
        self.over.set()
        self.join()


class Attacker(Hostile):
    """Does one thing again and again: without a pause until it is refused."""

    def __init__(self, client, one):
        super().__init__()
        self.client, self.one = client, one
        self.start()

    def run(self):
        while not self.over.is_set():
            status = self.one(self.client, self.taken.value)
            self.taken.value += status in (200, 201, 202)
            if status not in (200, 201, 202):
                self.was_refused.set()
                self.over.wait(PAUSE_S)


class Sender(Hostile):
    """Sends messages, AT_ONCE at a time, that no one answers."""

    def __init__(self, client):
        super().__init__()
        self.client = client
        self.start()

    def request(self, n):
        body = json.dumps({"text": "x", "executor": {"name": "never"},
                           "wait_ms": 0, "conversation_id": f"c{n % 5000}"})
        return (f"POST /api/messages HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                f"Authorization: Bearer {self.client.token}\r\n"
                "Content-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n{body}").encode()

    def answer(self, reader):
        """The status of the next one. http.client has no pipelines."""
        status, length = int(reader.readline().split()[1]), 0
        for line in iter(reader.readline, b"\r\n"):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        reader.read(length)
        return status

    def run(self):
        sent = 0
        peer = socket.create_connection(("127.0.0.1", self.client.server.port))
        reader = peer.makefile("rb")
        while not self.over.is_set():
            peer.sendall(b"".join(self.request(sent + i)
                                  for i in range(AT_ONCE)))
            sent += AT_ONCE
            accepted = [self.answer(reader)
                        for _ in range(AT_ONCE)].count(202)
            self.taken.value += accepted
            if accepted < AT_ONCE:
                self.was_refused.set()
                self.over.wait(PAUSE_S)
        peer.close()


class Silent(Hostile):
    """Holds connections that say nothing, and opens new ones for those that
    are closed."""

    def __init__(self, server, n):
        super().__init__()
        self.address, self.n = ("127.0.0.1", server.port), n
        self.start()

    def run(self):
        poll, held = select.epoll(), {}
        while not self.over.wait(0 if len(held) < self.n - 500 else PAUSE_S):
            for _ in range(min(500, self.n - len(held))):
                s = socket.socket()
                s.setblocking(False)
                s.connect_ex(self.address)
                held[s.fileno()] = s
                poll.register(s, select.EPOLLIN | select.EPOLLHUP)
            if len(held) == self.n:
                self.was_refused.set()
            for fd, _ in poll.poll(0, 500):
                poll.unregister(fd)
                held.pop(fd).close()
            self.taken.value = len(held)
        for s in held.values():
            s.close()


def measure(one, seconds):
    """Calls a second that were answered well, and p99 in ms of all."""
    took, n_good = [], 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.monotonic()
        n_good += one()
        took.append(1000 * (time.monotonic() - began))
    took.sort()
    return n_good / seconds, took[int(0.99 * (len(took) - 1))]


def register_one(client, n):
    name = f"m{client.token[-6:].lower().replace('_', 'x')}-{n}"
    return client.call("PUT", f"/api/agents/{name}",
                       {"description": "refund", "url": "echo:",
                        "visibility": "public", "skills": SKILLS})[0]


def change_one(client, n):
    """One of seven cards, never as it was."""
    name = f"m{client.token[-6:].lower().replace('_', 'x')}-{n % 7}"
    skills = [{"id": str(i), "name": f"refund {n} {i}",
               "description": "Gives back the money for what was bought in "
                              f"shop {i} and did not please the customer"}
              for i in range(256)]
    return client.call("PUT", f"/api/agents/{name}",
                       {"description": "refund", "url": "echo:",
                        "visibility": "public", "skills": skills})[0]


def honest_send(client):
    return client.call("POST", "/api/messages",
                       {"text": "hello", "executor": {"name": "echo"}})[0] == 200


def honest_route(client):
    """Not clear enough for the table alone, so the transformer is asked."""
    return client.call("POST", "/api/route", {
        "text": "what did I pay for the flight to Lisbon"})[0] == 200


def honest_connect(client):
    client.close()
    return client.call("GET", "/api/me")[0] == 200


HONEST = {"tasks": honest_send, "index": honest_route,
          "vectors": honest_route, "connections": honest_connect}
HOSTILE = {"index": register_one, "vectors": change_one}


def attack(server, what):
    if what == "connections":
        return [Silent(server, SILENT)]
    users = [server.user(x) for x in ("mallory", "oscar")]
    if what == "tasks":
        return [Sender(x) for x in users]
    return [Attacker(x, HOSTILE[what]) for x in users]


def await_vectors(server):
    """The two have their say once the vectors of their cards are made: that
    takes the processors for a while, no matter which user registers."""
    while b"\nsignalbox_vectors_ready 1" not in \
            server.admin.call("GET", "/metrics")[1]:
        time.sleep(0.2)


def run(binary, what):
    server = Server(binary)
    honest, failures = server.user("honest"), []
    server.admin.good("PUT", "/api/agents/flights", {
        "description": "Books a flight to any city", "url": "echo:",
        "visibility": "public"})
    one = HONEST[what]
    await_vectors(server)
    measure(lambda: one(honest), 1)  # warm
    alone = measure(lambda: one(honest), SECONDS)
    attackers = attack(server, what)
    for a in attackers:
        while what != "vectors" and a.is_alive() and \
                not a.was_refused.wait(1):
            pass
    if what == "index":
        await_vectors(server)
    beside = measure(lambda: one(honest), SECONDS)
    fresh = Client(server, "")
    health = [fresh.call("GET", "/healthz")[0] for _ in range(10)]
    server.admin.close()
    try:
        server.admin.good("POST", "/api/messages", {
            "text": "by an admin", "executor": {"name": "echo"}})
        server.admin.good("POST", "/api/users", {"name": "new", "role": "user"})
    except RuntimeError as e:
        failures.append(f"the admin could not act: {e}")
    for a in attackers:
        a.stop()
    taken = sum(a.taken.value for a in attackers)
    if any(a.exitcode for a in attackers):
        failures.append("a hostile user failed")
    server.stop()
    rate = beside[0] / alone[0] if alone[0] else 0
    p99 = beside[1] / alone[1] if alone[1] else 0
    if rate < 0.5:
        failures.append("less than half of the rate")
    if p99 > 5:
        failures.append("a p99 of more than five times")
    if set(health) != {200}:
        failures.append(f"/healthz answered {sorted(set(health))}")
    print(f"{what:12} {alone[0]:8.0f} {alone[1]:9.2f} {beside[0]:8.0f} "
          f"{beside[1]:9.2f} {rate:6.2f} {p99:6.2f} {taken:8}  "
          f"{'; '.join(failures) or 'ok'}", flush=True)
    return not failures


def main():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    del soft
    load = os.getloadavg()[0]
    print(f"load {load:.1f}; {SECONDS:.0f} s each; alone and beside two hostile "
          "users: calls a second, p99 in ms")
    print(f"{'':12} {'alone':>8} {'p99':>9} {'beside':>8} {'p99':>9} "
          f"{'rate':>6} {'p99':>6} {'taken':>8}")
    wanted = sys.argv[2:] or list(HONEST)
    return 0 if all([run(sys.argv[1], what) for what in wanted]) else 1


if __name__ == "__main__":
    sys.exit(main())
