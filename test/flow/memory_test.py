"""A server under a memory limit, and callers who send more than it can hold:
it answers 503, stays alive, and works again when they are gone."""
import os
import select
import struct
import threading
import unittest

from hub_wire import HubWire
from planted import fails_with, needs_planted
from signalbox import DEADLINE_S, Server, eventually

AGENTS = [{"id": "echo", "url": "echo:"}, {"id": "never", "url": "echo:3600000"}]
CONFIG = {"rate": {"perUser": 0},
          "tasks": {"maxUnfinishedBytesPerUser": 0},
          "registry": {"maxAgentsPerUser": 0, "maxSkillsPerUser": 0,
                       "maxCardBytesPerUser": 0, "maxIndexBytesPerUser": 0,
                       "skillsPerMinute": 0}}
MORE_BYTES = 128 << 20  # than a server without callers has
LARGE_BYTES = 2_000_000
FLOOD_BYTES = 4 * MORE_BYTES
TRY_LATER = 1013


def start(limit_bytes):
    limit = f'ulimit -v {limit_bytes >> 10}; exec "$@"'
    return Server("--set", "log.level=warn", agents=AGENTS, config=CONFIG,
                  before=("sh", "-c", limit, "sh"))


def limited():
    """A server whose address space is limited to MORE_BYTES above its need.
    Its threads share a heap only if there is a limit."""
    with start(1 << 40) as server:
        server.ready()
        with open(f"/proc/{server.process.pid}/status",
                  encoding="ascii") as status:
            peak = next(int(line.split()[1]) << 10 for line in status
                        if line.startswith("VmPeak"))
    return start(peak + MORE_BYTES)


def readable(sock, timeout_s):
    return bool(select.select([sock], [], [], timeout_s)[0])


@unittest.skipIf(os.environ.get("SANITIZE", "none") != "none",
                 "sanitizers need address space of their own")
class Memory(unittest.TestCase):
    def check_alive(self, server):
        try:
            answer = server.get("/healthz")
        except OSError:
            answer = None
        if not answer:
            server.process.wait(DEADLINE_S)
        self.assertIsNone(server.process.poll(), server.said())
        self.assertIn(answer.status, (200, 503))

    def check_works_again(self, server):
        eventually(lambda: server.send("hello").status == 200, "work again")
        made = {"name": "late", "role": "user"}
        eventually(lambda: server.call("POST", "/api/users", made).status
                   == 201, "a new user")
        self.assertIsNone(server.process.poll(), server.said())
        self.assertIn("net.memory_short", server.said())

    def test_bodies(self):
        """Requests with large bodies that never end."""
        with limited() as server:
            request = server.request("POST", "/api/messages",
                                     b"x" * LARGE_BYTES,
                                     "Content-Type: application/json")
            peers, statuses = [], []
            try:
                for _ in range(FLOOD_BYTES // LARGE_BYTES):
                    try:
                        peers.append(server.connect())
                        peers[-1].socket.sendall(request[:-1])
                    except OSError:
                        pass  # refused before it had sent all, or gone
                self.check_alive(server)
                eventually(lambda: any(readable(p.socket, 0) for p in peers),
                           "an answer")
                for peer in peers:
                    try:
                        if readable(peer.socket, 0):
                            statuses.append(peer.response())
                    except OSError:
                        pass  # the close was faster than the answer
                statuses = [answer.status for answer in statuses if answer]
                self.check_alive(server)
                self.assertEqual(set(statuses), {503})
            finally:
                for peer in peers:
                    peer.socket.close()
            self.check_works_again(server)

    def test_websockets(self):
        """WebSockets with large messages that never end."""
        with limited() as server:
            head = struct.pack("!BBQ", 0x81, 0x80 | 127, LARGE_BYTES) + bytes(4)
            wires = []
            try:
                for _ in range(FLOOD_BYTES // LARGE_BYTES):
                    try:
                        wires.append(HubWire(server.address, server.token))
                        wires[-1].socket.sendall(
                            head + b"x" * (LARGE_BYTES - 1))
                    except OSError:
                        pass
                self.check_alive(server)
                eventually(lambda: any(readable(w.socket, 0) for w in wires),
                           "a close")
                codes = set()
                for wire in wires:
                    if not readable(wire.socket, 0):
                        continue
                    try:
                        while len(wire.got) < 4:
                            wire.more()
                        codes.add(struct.unpack("!H", wire.got[2:4])[0])
                    except (OSError, EOFError):
                        pass
                self.assertEqual(codes, {TRY_LATER})
            finally:
                for wire in wires:
                    wire.socket.close()
            self.check_works_again(server)

    def test_tasks(self):
        """Tasks that nothing ends, until no more are taken."""
        with limited() as server:
            text = "y" * 100_000
            tasks = []
            for i in range(FLOOD_BYTES // len(text)):
                sent = server.send(text, to="never", wait_ms=0)
                if sent.status != 202:
                    break
                tasks.append(sent.json()["task_id"])
            self.assertEqual(sent.status, 503, sent)
            self.assertEqual(sent.json()["error"]["code"], "overloaded")
            self.check_alive(server)
            # Requests without a body still work: the way out. Large answers
            # may find no room.
            self.assertEqual(server.call("GET", "/api/tasks?limit=1").status,
                             200)
            for _ in range(20):
                listed = server.call("GET", "/api/tasks")
                self.assertTrue(listed, server.said())
                self.assertIn(listed.status, (200, 503))
            for task in tasks:
                self.assertEqual(server.call(
                    "POST", f"/api/tasks/{task}/cancel").status, 200)
            self.check_works_again(server)

    def test_lists(self):
        """Long lists, many at once, while memory is short."""
        paths = ["/api/tasks?limit=500", "/api/tasks", "/api/trees",
                 "/api/feed?limit=500", "/api/tasks?limit=100"] * 2
        answers = []
        with limited() as server:
            text = "y" * 100_000
            while server.send(text, to="never", wait_ms=0).status == 202:
                pass

            def read_lists(path):
                for _ in range(10):
                    answers.append(server.call("GET", path))

            readers = [threading.Thread(target=read_lists, args=(path,))
                       for path in paths]
            for reader in readers:
                reader.start()
            for reader in readers:
                reader.join()
            self.check_alive(server)
            self.assertEqual(len(answers), 10 * len(paths))
            self.assertLessEqual({a and a.status for a in answers}, {200, 503})
            refused = [a.json()["error"] for a in answers if a.status == 503]
            self.assertIn("overloaded", {error["code"] for error in refused})
            # Short ones find the tasks, so that they can be cancelled.
            eventually(lambda: server.call("GET", "/api/tasks?limit=1").status
                       == 200, "a short list")
            path = "/api/tasks?limit=1"
            page = server.call("GET", path).json()
            while page["next_cursor"]:
                for task in page["items"]:
                    self.assertEqual(server.call(
                        "POST", f"/api/tasks/{task['id']}/cancel").status, 200)
                page = server.call(
                    "GET", f"{path}&cursor={page['next_cursor']}").json()
            self.check_works_again(server)

    def test_cards(self):
        """Agents with large cards, until no more are taken."""
        with limited() as server:
            skills = [{"id": str(i), "name": f"skill {i}",
                       "description": f"word{i} " * 60} for i in range(60)]
            n = 0
            while n < FLOOD_BYTES // 60_000:
                put = server.call("PUT", f"/api/agents/a{n}",
                                  {"description": "refund " * 500,
                                   "url": "echo:", "skills": skills})
                if put.status != 201:
                    break
                n += 1
            self.assertEqual(put.status, 503, put)
            self.check_alive(server)
            for i in range(n):
                self.assertIn(server.call("DELETE", f"/api/agents/a{i}").status,
                              (200, 204))
            self.check_works_again(server)


class Control(unittest.TestCase):
    @needs_planted
    def test_a_server_that_ignores_memory_ends(self):
        """The control: without the check the same flood ends the server."""
        said = fails_with(self, "net.ignores_memory", Memory().test_bodies)
        self.assertIn("signalbox: no memory for", said)


if __name__ == "__main__":
    unittest.main()
