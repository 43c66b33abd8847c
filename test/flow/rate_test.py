"""How often one may call, how many connections and tasks one may have: who is
over a limit is told when to come back, and others do not notice."""
import json
import os
import shutil
import signal
import subprocess
import tempfile
import unittest

from signalbox import ECHO, Server, eventually, metric

BIN = os.environ["SIGNALBOX_BIN"]
OK, REFUSED = 0, 3
# Nothing comes in while a test runs, and no one is exempt.
SLOW = {"perUser": 0, "perAddress": 0, "failuresPerMinute": 0, "exempt": []}
BAD = "sbx_" + "x" * 43
MANY = 200


class Limits(unittest.TestCase):
    def refused(self, answer, limit):
        self.assertEqual(answer.status, 429, answer)
        self.assertEqual(answer.json()["error"]["code"], "rate_limited")
        details = answer.json()["error"]["details"]
        self.assertEqual(details["limit"], limit)
        wait_s = int(answer.headers["retry-after"])
        self.assertGreaterEqual(wait_s, 1)
        self.assertEqual(wait_s, -(-details["retry_after_ms"] // 1000))
        return answer

    def until_refused(self, call, limit, good=200):
        """Call until one is refused; how many were not. One comes in every
        second, so how soon that is is not for us to say."""
        for n in range(MANY):
            answer = call()
            if answer.status == 429:
                self.refused(answer, limit)
                return n
            self.assertEqual(answer.status, good)
        self.fail(f"{MANY} calls and none refused")

    def metric(self, server, name, label):
        for line in server.get("/metrics").body.decode().splitlines():
            if line.startswith(f"{name}{{{label}}} "):
                return float(line.rsplit(" ", 1)[1])
        self.fail(f"no {name}{{{label}}}")


class Users(Limits):
    def test_one_over_the_limit_and_others_go_on(self):
        config = {"rate": {**SLOW, "perUser": 1, "userBurst": 30}}
        with Server(agents=ECHO, config=config) as server:
            anna, bert = server.user("anna"), server.user("bert")
            made = server.call("POST", "/api/tokens", {}, token=anna)
            second = made.json()["token"]
            n = self.until_refused(
                lambda: server.call("GET", "/api/me", token=anna), "user")
            self.assertGreater(n, 20)
            # The same user by another token and from elsewhere.
            self.assertLess(self.until_refused(
                lambda: server.call("GET", "/api/me", token=second,
                                    source="127.0.0.9"), "user"), 20)
            for _ in range(20):
                self.assertEqual(server.call("GET", "/api/me",
                                             token=bert).status, 200)
            self.assertGreater(self.metric(
                server, "signalbox_rate_limited_total", 'limit="user"'), 1)
            eventually(lambda: server.call("GET", "/api/me",
                                           token=anna).status == 200,
                       "anna may call again")

    def test_a_message_that_was_refused_is_not_kept(self):
        config = {"rate": {**SLOW, "perUser": 1, "userBurst": 30}}
        with Server(agents=ECHO, config=config) as server:
            anna = server.user("anna")
            n = self.until_refused(
                lambda: server.send("hello", token=anna, wait_ms=60000), "user")
            self.assertEqual(metric(server, "signalbox_tasks_accepted_total"),
                             n)

    def test_a_reload_changes_the_limits(self):
        config = {"rate": {**SLOW, "perUser": 1, "userBurst": 5}}
        with Server(agents=ECHO, config=config) as server:
            self.until_refused(lambda: server.call("GET", "/api/me"), "user")
            server.write_config(ECHO, {"rate": SLOW})
            server.process.send_signal(signal.SIGHUP)
            eventually(lambda: metric(
                server, "signalbox_config_reloads_total") > 0, "a reload")
            for _ in range(50):
                self.assertEqual(server.call("GET", "/api/me").status, 200)
            server.write_config(ECHO, config)
            server.process.send_signal(signal.SIGHUP)
            eventually(lambda: metric(
                server, "signalbox_config_reloads_total") > 1, "another")
            self.until_refused(lambda: server.call("GET", "/api/me"), "user")

    def test_unfinished_tasks_are_shared(self):
        agents = [{"id": "never", "url": "echo:3600000"}]
        config = {"tasks": {"maxUnfinishedPerUser": 2}}
        with Server(agents=agents, config=config) as server:
            anna, bert = server.user("anna"), server.user("bert")
            tasks = [server.send("x", to="never", token=anna, wait_ms=0)
                     for _ in range(3)]
            self.assertEqual([t.status for t in tasks], [202, 202, 429])
            error = tasks[2].json()["error"]
            self.assertEqual(error["code"], "too_many_tasks")
            self.assertIn("tasks.maxUnfinishedPerUser: 2", error["message"])
            self.assertEqual(tasks[2].headers["retry-after"], "1")
            self.assertEqual(server.send("x", to="never", token=bert,
                                         wait_ms=0).status, 202)
            over = tasks[0].json()["task_id"]
            self.assertEqual(server.call("POST", f"/api/tasks/{over}/cancel",
                                         token=anna).status, 200)
            self.assertEqual(server.send("x", to="never", token=anna,
                                         wait_ms=0).status, 202)


class Addresses(Limits):
    def test_one_over_the_limit_and_others_go_on(self):
        config = {"rate": {**SLOW, "perAddress": 1, "addressBurst": 30,
                           "exempt": ["127.0.0.1", "127.0.7.0/24"]}}
        with Server(agents=ECHO, config=config) as server:
            n = self.until_refused(
                lambda: server.call("GET", "/api/me", source="127.0.0.2"),
                "address")
            self.assertGreater(n, 20)
            # Counted before the token, the path and the method are looked at.
            for path, good in (("/api/me", 401), ("/nothing", 404),
                               ("/metrics", 200)):
                self.assertLess(self.until_refused(
                    lambda p=path: server.call("GET", p, token=None,
                                               source="127.0.0.2"),
                    "address", good), 20)
            for path in ("/healthz", "/readyz"):
                for _ in range(50):
                    self.assertEqual(server.call(
                        "GET", path, source="127.0.0.2").status, 200)
            self.assertEqual(server.call("GET", "/api/me",
                                         source="127.0.0.3").status, 200)
            for source in ("127.0.0.1", "127.0.7.7"):
                for _ in range(50):
                    self.assertEqual(server.call(
                        "GET", "/api/me", source=source).status, 200)

    def test_this_machine_is_exempt_unless_it_is_said_otherwise(self):
        config = {"rate": {"perAddress": 1, "addressBurst": 1,
                           "failuresPerMinute": 1, "failureBurst": 1},
                  "http": {"maxConnectionsPerAddress": 1}}
        with Server(config=config) as server:
            held = [server.connect() for _ in range(5)]
            for _ in range(20):
                self.assertEqual(server.call("GET", "/api/me").status, 200)
                self.assertEqual(server.call("GET", "/api/me",
                                             token=BAD).status, 401)
            for peer in held:
                peer.socket.close()

    def test_guessing_is_slow_and_nobody_is_shut_out(self):
        config = {"rate": {**SLOW, "failuresPerMinute": 1, "failureBurst": 5,
                           "exempt": ["127.0.0.1"]}}
        folder = tempfile.mkdtemp(prefix="signalbox-test-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        with Server(config=config, data=folder) as server:
            admin, anna = server.token, server.user("anna")
            self.guess_beside(server, anna)
        with Server(config=config, data=folder, token=admin) as server:
            self.guess_beside(server, anna)

    def guess_beside(self, server, good):
        """Someone guesses behind the address of a user not seen before."""
        def ask(token):
            return server.call("GET", "/api/me", token=token,
                               source="127.0.0.2")

        n = self.until_refused(lambda: ask(BAD), "failures", good=401)
        self.assertGreaterEqual(n, 5)
        for _ in range(20):
            self.assertIn(ask(BAD).status, (401, 429))
            self.assertEqual(ask(good).status, 200)
        self.assertEqual(ask(None).status, 401)  # who guesses nothing
        self.assertGreater(self.metric(
            server, "signalbox_rate_limited_total", 'limit="failures"'), 15)

    def test_connections_of_one_address(self):
        config = {"http": {"maxConnectionsPerAddress": 3},
                  "rate": {"exempt": ["127.0.0.1"]}}
        with Server(config=config) as server:
            held = [server.connect("127.0.0.2") for _ in range(3)]
            for peer in held:
                peer.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
                self.assertEqual(peer.response().status, 200)
            answer = server.call("GET", "/healthz", source="127.0.0.2")
            self.assertEqual(answer.status, 503)
            self.assertEqual(answer.headers["retry-after"], "1")
            self.assertIn("http.maxConnectionsPerAddress",
                          answer.json()["error"]["message"])
            self.assertEqual(server.call("GET", "/healthz",
                                         source="127.0.0.3").status, 200)
            self.assertEqual(self.metric(
                server, "signalbox_http_turned_away_total",
                'limit="address"'), 1)
            held.pop().socket.close()
            eventually(lambda: server.call(
                "GET", "/healthz", source="127.0.0.2").status == 200, "room")
            for peer in held:
                peer.socket.close()


class Commands(Limits):
    def run_it(self, server, *args, token=None):
        env = {"PATH": "/usr/bin:/bin", "SIGNALBOX_URL": server.url,
               "SIGNALBOX_TOKEN": token or server.token}
        p = subprocess.run([BIN, *args], env=env, capture_output=True,
                           stdin=subprocess.DEVNULL, timeout=60, check=False)
        return p.returncode, p.stdout.decode(), p.stderr.decode()

    def test_they_come_back_when_they_are_asked_to(self):
        config = {"rate": {**SLOW, "perUser": 1, "userBurst": 1}}
        with Server(agents=ECHO, config=config) as server:
            for args in (("tasks",), ("send", "hello", "--to", "echo"),
                         ("send", "hello", "--to", "echo", "--stream"),
                         ("token", "create", "--user", "admin"),
                         ("feed", "--limit", "1")):
                self.meets_the_limit(server, args)

    def meets_the_limit(self, server, args):
        """Run it until it was refused first; it ends well each time."""
        for _ in range(20):
            self.until_refused(lambda: server.call("GET", "/api/me"), "user")
            before = metric(server, "signalbox_rate_limited_total")
            status, out, err = self.run_it(server, *args)
            self.assertEqual((status, err), (OK, ""), args)
            self.assertTrue(out or args == ("tasks",))
            if metric(server, "signalbox_rate_limited_total") > before:
                return
        self.fail(f"{args} was never refused")

    def test_they_do_not_wait_for_ever(self):
        config = {"rate": {**SLOW, "failuresPerMinute": 1, "failureBurst": 1}}
        with Server(agents=ECHO, config=config) as server:
            self.until_refused(lambda: server.call("GET", "/api/me",
                                                   token=BAD),
                               "failures", good=401)
            for args in (("tasks",), ("send", "hello", "--to", "echo")):
                status, out, err = self.run_it(server, *args, "--json",
                                               token=BAD)
                self.assertEqual((status, out), (REFUSED, ""), err)
                self.assertEqual(json.loads(err)["error"]["code"],
                                 "rate_limited")


if __name__ == "__main__":
    unittest.main()
