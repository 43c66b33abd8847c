"""The commands that talk to a server, against the real one: what they print,
how they end, and what they do when the server goes away."""
import json
import os
import re
import socket
import sqlite3
import unittest

from client import (AGENTS, FAILED, NOT_ALLOWED, OK, REFUSED, UNREACHABLE,
                    USAGE, Client)
from signalbox import Server, eventually, metric

TASK = r"task_[0-9a-z]{26}"
TOKEN = r"sbx_[A-Za-z0-9_-]{43}"
# A cursor that moves, a screen that clears, a title that changes, in seven
# bits and in eight; and text that is not read in the order it is written.
STEERING = "red\x1b[31m\x07\x7f \u009b2J\u009d0;title\u009c \u202eend\u2066"
TAMED = "red?[31m?? ?2J?0;title? ?end?"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Send(Client):
    def test_the_answer_is_printed(self):
        self.server()
        self.assertEqual(self.good("send", "hello", "--to", "echo"), "hello\n")
        self.assertEqual(self.good("send", "a\nb\n", "--to", "ECHO"), "a\nb\n")

    def test_the_message_may_come_from_standard_input(self):
        server = self.server()
        for args in [["send", "--to", "echo"], ["send", "-", "--to", "echo"]]:
            self.assertEqual(self.good(*args, stdin=b"hi\n"), "hi\n")
        tasks = server.call("GET", "/api/tasks").json()["items"]
        self.assertEqual([t["text"] for t in tasks], ["hi", "hi"])

    def test_the_largest_message_goes_and_a_larger_one_does_not(self):
        self.server("--set", "http.maxBodyBytes=8388608")
        text = "x" * (1 << 20)
        self.assertEqual(self.good("send", "--to", "echo",
                                   stdin=text.encode()), text + "\n")
        self.assertIn("1 MiB", self.bad(REFUSED, "send", "--to", "echo",
                                        stdin=text.encode() + b"y"))

    def test_what_is_no_message(self):
        self.server()
        for stdin, word in [(b"", "empty"), (b"\n", "empty"),
                            (b"\xff\xfe", "UTF-8"), (b"a\xed\xa0\x80", "UTF")]:
            self.assertIn(word, self.bad(USAGE, "send", "--to", "echo",
                                         stdin=stdin))

    def test_as_json(self):
        self.server()
        [answer] = self.lines("send", "hello", "--to", "echo",
                              "--conversation", "c-1")
        self.assertEqual(answer["text"], "hello")
        self.assertEqual(answer["status"], "completed")
        self.assertEqual(answer["conversation_id"], "c-1")
        self.assertRegex(answer["task_id"], TASK)

    def test_without_waiting_the_id_is_printed(self):
        server = self.server()
        task = self.good("send", "hello", "--to", "never", "--no-wait")
        self.assertRegex(task, f"^{TASK}\n$")
        got = server.call("GET", "/api/tasks/" + task.strip()).json()
        self.assertNotIn(got["status"], ("completed", "failed"))

    def test_an_answer_that_is_not_there_in_time_is_a_failure(self):
        self.server()
        err = self.bad(FAILED, "send", "x", "--to", "never", "--wait", "1")
        self.assertRegex(err, f"continues; signalbox tasks {TASK} shows")
        status, out, err = self.run_it("send", "x", "--to", "never", "--wait",
                                       "1", "--json")
        self.assertEqual((status, err), (FAILED, ""))
        self.assertRegex(json.loads(out)["task_id"], TASK)

    def test_a_task_that_failed_is_a_failure(self):
        self.server()
        err = self.bad(FAILED, "send", "x", "--to", "never", "--timeout", "1")
        self.assertRegex(err, f"{TASK} ran out of time")
        status, out, _ = self.run_it("send", "x", "--to", "never",
                                     "--timeout", "1", "--json")
        self.assertEqual(status, FAILED)
        self.assertEqual(json.loads(out)["status"], "expired")

    def test_streamed_it_is_the_same(self):
        self.server()
        text = "one two three\nfour"
        self.assertEqual(self.good("send", text, "--to", "echo", "--stream"),
                         text + "\n")
        events = self.lines("send", text, "--to", "echo", "--stream")
        self.assertEqual(events[-1]["event"], "result")
        self.assertEqual(events[-1]["data"]["text"], text)
        err = self.bad(FAILED, "send", "x", "--to", "never", "--timeout", "1",
                       "--stream")
        self.assertIn("ran out of time", err)

    def test_the_same_key_gives_the_same_task(self):
        self.server()
        [a] = self.lines("send", "x", "--to", "echo", "--key", "k")
        [b] = self.lines("send", "x", "--to", "echo", "--key", "k")
        [other] = self.lines("send", "x", "--to", "echo")
        self.assertEqual(a["task_id"], b["task_id"])
        self.assertNotEqual(a["task_id"], other["task_id"])
        self.assertIn("key", self.bad(REFUSED, "send", "y", "--to", "echo",
                                      "--key", "k"))

    def test_a_further_turn(self):
        self.server()
        [a] = self.lines("send", "one", "--to", "echo")
        [b] = self.lines("send", "two", "--task", a["task_id"])
        self.assertEqual((a["task_id"], 2, "two"),
                         (b["task_id"], b["turn"], b["text"]))
        shown = self.good("tasks", a["task_id"])
        self.assertLess(shown.index("one"), shown.index("two"))

    def test_who_is_not_there_is_named_nearly(self):
        self.server()
        self.assertRegex(self.bad(REFUSED, "send", "x", "--to", "ecko"),
                         'did you mean "?echo"?\\?')
        error = json.loads(self.bad(REFUSED, "send", "x", "--to", "ecko",
                                    "--json"))["error"]
        self.assertEqual(error["code"], "agent_not_found")
        self.assertIn("echo", error["details"]["nearest"])

    def test_wrong_use(self):
        for args, word in [
                (["hello", "there", "--to", "echo"], "quotes"),
                (["x", "--to", "a", "--task", "b"], "--task or --to"),
                (["x", "--task", "b", "--conversation", "c"], "--task or"),
                (["x", "--to", "a", "--no-wait", "--stream"], "--no-wait"),
                (["x", "--to", "a", "--no-wait", "--wait", "1"], "--no-wait"),
                (["x", "--to", "a", "--stream", "--wait", "1"], "--stream"),
                (["x", "--to", "a", "--wait", "600001"], "from 0 to 600000"),
                (["x", "--to", "a", "--wait", "-1"], "from 0 to 600000"),
                (["x", "--to", "a", "--timeout", "0"], "from 1 to 86400000"),
                (["x", "--to", "a", "--timeout", "1h"], "whole number")]:
            with self.subTest(args):
                self.assertIn(word, self.bad(USAGE, "send", *args))


class Steering(Client):
    def test_no_terminal_is_steered_by_a_message(self):
        self.server()
        for args in [["send", STEERING, "--to", "echo"],
                     ["send", STEERING, "--to", "echo", "--stream"],
                     ["send", STEERING, "--to", "echo", "--json"],
                     ["tasks"], ["tasks", "--json"], ["feed", "--json"]]:
            with self.subTest(args):
                status, out = self.on_terminal(*args)
                self.assertEqual(status, OK, out)
                self.assertNotRegex(re.sub("\x1b\\[[0-9]*[mK]", "", out),
                                    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
                                    "\u202e\u2066]")
                self.assertNotIn("\x1b[31mred", out)
        task = self.lines("tasks")[0]["id"]
        status, out = self.on_terminal("tasks", task)
        self.assertIn(TAMED, out)

    def test_a_pipe_gets_an_answer_as_it_is(self):
        self.server()
        self.assertEqual(self.good("send", STEERING, "--to", "echo"),
                         STEERING + "\n")

    def test_as_json_it_means_the_same(self):
        self.server()
        out = self.good("send", STEERING, "--to", "echo", "--json")
        self.assertNotRegex(out, "[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\u2066]")
        self.assertEqual(json.loads(out)["text"], STEERING)

    def test_a_table_in_a_pipe_is_tame_too(self):
        self.server()
        self.good("send", STEERING + "\n2 forged", "--to", "echo")
        self.assertEqual(len(self.good("tasks").splitlines()), 2)
        self.assertIn(TAMED + " 2 forged", self.good("tasks"))


class Tasks(Client):
    def test_the_list_is_newest_first_and_has_its_filters(self):
        self.server()
        for text in ("one", "two", "three"):
            self.good("send", text, "--to", "echo", "--conversation", text)
        self.good("send", "four", "--to", "never", "--no-wait")
        rows = self.good("tasks").splitlines()
        self.assertRegex(rows[0], "^ID +STATUS +AGENT +AGE +MESSAGE$")
        self.assertEqual([r.split()[-1] for r in rows[1:]],
                         ["four", "three", "two", "one"])
        for args, texts in [
                (["--agent", "echo"], ["three", "two", "one"]),
                (["--status", "completed"], ["three", "two", "one"]),
                (["--conversation", "two"], ["two"]),
                (["--limit", "1"], ["four"]),
                (["--agent", "missing"], [])]:
            with self.subTest(args):
                got = self.lines("tasks", *args)
                self.assertEqual([t["text"] for t in got], texts)
        self.assertEqual(self.good("tasks", "--agent", "missing"),
                         "No tasks.\n")

    def test_more_than_a_page_is_followed_up_to_the_limit(self):
        self.server()
        for i in range(103):
            self.good("send", str(i), "--to", "echo", "--no-wait")
        for limit in (49, 50, 51, 100, 101, 103, 500):
            got = self.lines("tasks", "--limit", str(limit))
            self.assertEqual([t["text"] for t in got],
                             [str(i) for i in range(102, -1, -1)][:limit])
        _, out = self.on_terminal("tasks", "--limit", "102")
        self.assertIn("There are more", out)
        _, out = self.on_terminal("tasks", "--limit", "103")
        self.assertNotIn("There are more", out)

    def test_lines_fit_the_terminal(self):
        self.server()
        self.good("send", "word " * 100, "--to", "echo")
        _, out = self.on_terminal("tasks", columns=80)
        plain = re.sub("\x1b\\[[0-9]*m", "", out)
        self.assertEqual(max(map(len, plain.splitlines())), 80)
        self.assertIn("\u2026", plain)

    def test_one_in_full(self):
        self.server()
        [answer] = self.lines("send", "hello\nworld", "--to", "echo")
        out = self.good("tasks", answer["task_id"])
        for part in (answer["task_id"] + "  completed", "agent         echo",
                     "from          admin", "\nMessage\n  hello\n  world\n",
                     "\nAnswer\n  hello\n  world\n"):
            self.assertIn(part, out)
        [as_json] = self.lines("tasks", "show", answer["task_id"])
        self.assertEqual(as_json["id"], answer["task_id"])

    def test_cancel(self):
        self.server()
        task = self.good("send", "x", "--to", "never", "--no-wait").strip()
        self.assertEqual(self.good("tasks", "cancel", task),
                         f"{task} is cancelled\n")
        self.assertEqual(self.lines("tasks", task)[0]["status"], "cancelled")
        [over] = self.lines("send", "x", "--to", "echo")
        self.assertIn("already ended", self.bad(REFUSED, "tasks", "cancel",
                                       over["task_id"]))

    def test_what_is_not_there(self):
        self.server()
        missing = "task_" + "0" * 26
        for args in (["tasks", missing], ["tasks", "cancel", missing],
                     ["tasks", "show", "task_/../../../healthz"],
                     ["tasks", "show", "task_a/b?c=d&e#f %41"]):
            self.bad(REFUSED, *args)

    def test_wrong_use(self):
        for args, word in [(["canel", "x"], "did you mean cancel?"),
                           (["zzzzzzzzz"], "list, show, tree, cancel"),
                           (["cancel"], "cancel ID"),
                           (["tree", "nope"], "must begin with task_"),
                           (["cancel", "x", "--limit", "3"], "--limit is for"),
                           (["--status", "compleet"], "did you mean complet"),
                           (["--limit", "0"], "from 1 to 100000"),
                           (["--limit", "100001"], "from 1 to 100000"),
                           (["list", "x"], "unexpected argument")]:
            with self.subTest(args):
                self.assertIn(word, self.bad(USAGE, "tasks", *args))


class Feed(Client):
    def test_what_happened_a_line_each(self):
        self.server()
        [answer] = self.lines("send", "hello", "--to", "echo")
        out = self.good("feed")
        self.assertRegex(out, f"task.accepted +{answer['task_id']} echo from "
                              "admin\n")
        self.assertRegex(out, f"task.completed +{answer['task_id']} echo\n")
        entries = self.lines("feed")
        self.assertEqual(len(entries), len(out.splitlines()))
        seqs = [e["seq"] for e in entries]
        self.assertEqual(seqs, sorted(set(seqs)))
        after = self.lines("feed", "--after", str(seqs[-2]))
        self.assertEqual(after, entries[-1:])
        self.assertEqual(self.lines("feed", "--limit", "1"), entries[-1:])
        self.assertEqual(self.lines("feed", "--after", "0", "--limit", "1"),
                         entries[:1])
        self.assertEqual(self.good("feed", "--after", str(1 << 60)), "")

    def test_many_are_read_page_by_page(self):
        self.server()
        for i in range(60):
            self.good("send", str(i), "--to", "echo")
        entries = self.lines("feed", "--after", "0")
        self.assertEqual(len([e for e in entries
                              if e["type"].startswith("task.")]), 120)
        self.assertEqual(self.lines("feed"), entries[-20:])
        self.assertEqual(self.lines("feed", "--limit", "100"), entries[-100:])
        self.assertEqual(self.lines("feed", "--limit", "500"), entries)

    def test_following_shows_the_last_few_and_goes_on(self):
        self.server()
        for i in range(6):
            self.good("send", str(i), "--to", "echo")
        entries = self.lines("feed")
        for args, shown in ([], 10), (["--limit", "3"], 3):
            p = self.start("feed", "--follow", "--json", *args)
            got = [json.loads(p.stdout.readline()) for _ in range(shown)]
            self.assertEqual(got, entries[-shown:])
            self.good("send", "more", "--to", "echo")
            got = [json.loads(p.stdout.readline()) for _ in range(2)]
            entries += self.lines("feed", "--limit", "2")
            self.assertEqual(got, entries[-2:])
            p.terminate()
            self.end(p)

    def test_following_ends_at_its_limit(self):
        self.server()
        first = self.lines("feed")[-1]["seq"]
        p = self.start("feed", "--follow", "--after", str(first), "--limit",
                       "2", "--json")
        self.good("send", "x", "--to", "echo")
        status, out, err = self.end(p)
        self.assertEqual((status, err), (OK, ""))
        self.assertEqual([json.loads(x)["type"] for x in out.splitlines()],
                         ["task.accepted", "task.completed"])

    def test_a_feed_that_went_back_is_followed_from_there(self):
        server = self.server()
        p = self.start("feed", "--follow", "--json", "--after", "99999999",
                       "--limit", "2")
        eventually(lambda: metric(server, "signalbox_feed_readers") == 1,
                   "it follows")
        self.good("send", "x", "--to", "echo")
        status, out, err = self.end(p)
        self.assertEqual((status, err), (OK, ""))
        self.assertEqual([json.loads(x)["type"] for x in out.splitlines()],
                         ["task.accepted", "task.completed"])

    def test_following_goes_on_over_a_restart(self):
        data = os.path.join(self.home, "data")
        listen = f"127.0.0.1:{free_port()}"
        server = self.server(data=data, listen=listen)
        last = self.lines("feed")[-1]["seq"]
        p = self.start("feed", "--follow", "--json", "--after", str(last),
                       "--limit", "4")
        self.good("send", "before", "--to", "echo")
        lines = [p.stdout.readline() for _ in range(2)]
        token = server.token
        server.kill9()
        server.kill()
        again = self.server(data=data, listen=listen, token=token)
        # Whether or not it is back by now: nothing is left out.
        self.assertEqual(again.send("after").status, 200)
        status, out, err = self.end(p)
        self.assertEqual((status, err), (OK, ""))
        entries = [json.loads(x) for x in [*lines, *out.encode().splitlines()]]
        self.assertEqual([e["type"] for e in entries],
                         ["task.accepted", "task.completed"] * 2)
        self.assertEqual(entries, self.lines("feed", "--after", str(last)))

    def test_who_has_heard_nothing_yet_misses_nothing_either(self):
        """The stream says where it begins, so there is a place to come back
        to although no entry was seen."""
        data = os.path.join(self.home, "data")
        listen = f"127.0.0.1:{free_port()}"
        server = self.server(data=data, listen=listen)
        p = self.start("feed", "--follow", "--json", "--limit", "0")
        eventually(lambda: metric(server, "signalbox_feed_readers") == 1,
                   "it follows")
        token = server.token
        server.kill9()
        server.kill()
        again = self.server(data=data, listen=listen, token=token)
        self.assertEqual(again.send("after").status, 200)
        got = [json.loads(p.stdout.readline())["type"] for _ in range(2)]
        self.assertEqual(got, ["task.accepted", "task.completed"])
        p.terminate()
        self.end(p)

    def test_a_follower_whose_token_is_revoked_ends(self):
        server = self.server()
        anna = server.user("anna")
        last = self.lines("feed")[-1]["seq"]
        p = self.start("feed", "--follow", "--after", str(last),
                       env={"SIGNALBOX_TOKEN": anna})
        self.good("send", "x", "--to", "echo",
                  env={"SIGNALBOX_TOKEN": anna})
        p.stdout.readline()
        self.good("users", "remove", "anna")
        status, _, err = self.end(p)
        self.assertEqual(status, NOT_ALLOWED, err)

    def test_wrong_use(self):
        self.assertIn("whole number", self.bad(USAGE, "feed", "--after", "x"))
        self.assertIn("unexpected argument", self.bad(USAGE, "feed", "x"))
        for limit in ("0", "501"):
            self.assertIn("500", self.bad(USAGE, "feed", "--limit", limit))
        self.assertIn("500", self.bad(USAGE, "feed", "--follow", "--limit",
                                      "501"))


class Access(Client):
    def test_a_token_works_until_it_is_revoked(self):
        self.server()
        token = self.good("token", "create", "--label", "laptop", "--scopes",
                          "read", "--expires", "30d")
        self.assertRegex(token, f"^{TOKEN}\n$")
        mine = {"SIGNALBOX_TOKEN": token.strip()}
        self.assertEqual(self.good("tasks", env=mine), "No tasks.\n")
        self.bad(NOT_ALLOWED, "send", "x", "--to", "echo", env=mine)
        [row] = [t for t in self.lines("token") if t["label"] == "laptop"]
        self.assertEqual(row["scopes"], ["read"])
        self.assertEqual(row["expires_ms"] - row["created_ms"],
                         30 * 24 * 3600 * 1000)
        self.assertRegex(self.good("token", "list"),
                         f"{row['id']} +admin +\\d+s +(29|30)d +laptop +read\n")
        self.assertEqual(self.good("token", "revoke", row["id"]),
                         f"{row['id']} is revoked\n")
        self.bad(NOT_ALLOWED, "tasks", env=mine)
        self.bad(REFUSED, "token", "revoke", row["id"])

    def last_admin_token(self):
        self.server()
        return self.lines("token")[0]["id"]

    def test_the_last_token_of_an_admin_needs_a_word(self):
        last = self.last_admin_token()
        err = self.bad(REFUSED, "token", "revoke", last)
        self.assertIn("last token that can act as an admin", err)
        self.assertIn("--yes", err)
        self.assertEqual(len(self.lines("token")), 1)
        self.assertEqual(self.good("token", "revoke", last, "--yes"),
                         f"{last} is revoked\n")
        self.bad(NOT_ALLOWED, "tasks")

    def test_on_a_terminal_it_is_asked_about_twice(self):
        last = self.last_admin_token()
        for words in ("no\n", "yes\nno\n", "y\nyes\n", "yes\n\n"):
            status, said = self.on_terminal("token", "revoke", last,
                                            typed=words)
            self.assertEqual(status, REFUSED, said)
            self.assertIn("not revoked: ", said)
            self.assertEqual(said.count("Type yes to continue"),
                             2 if words.startswith("yes") else 1)
            self.assertEqual(len(self.lines("token")), 1)
        status, said = self.on_terminal("token", "revoke", last,
                                        typed="yes\nyes\n")
        self.assertEqual(status, OK, said)
        self.assertIn(f"{last} is revoked", said)
        self.assertIn("signalbox token create --offline", said)

    def test_one_of_two_goes_without_a_word(self):
        last = self.last_admin_token()
        self.good("token", "create", "--label", "second")
        self.assertEqual(self.good("token", "revoke", last),
                         f"{last} is revoked\n")

    def test_a_token_that_has_expired_is_listed_so(self):
        self.server()
        self.good("token", "create", "--label", "short", "--expires", "1s")
        eventually(lambda: re.search(r" expired +short ",
                                     self.good("token", "list")),
                   "it is said that it has expired")

    def test_on_a_terminal_more_is_said_about_a_token(self):
        self.server()
        status, out = self.on_terminal("token", "create", "--expires", "1h")
        self.assertEqual(status, OK)
        self.assertRegex(out, f"^{TOKEN}\n\ntok_")
        self.assertIn("not shown again", out)

    def test_users_come_change_and_go(self):
        self.server()
        self.assertEqual(self.good("users", "create", "anna", "--org", "acme"),
                         "anna is created, with role user in acme\n")
        token = self.good("token", "create", "--user", "anna").strip()
        anna = {"SIGNALBOX_TOKEN": token}
        self.bad(NOT_ALLOWED, "users", env=anna)
        self.assertEqual(self.good("users", "set", "anna", "--role", "admin",
                                   "--no-org"),
                         "anna is changed, with role admin\n")
        self.assertRegex(self.good("users"), "anna +admin +\\d+s")
        # What a token allows does not grow with its user's role.
        self.bad(NOT_ALLOWED, "users", env=anna)
        self.assertEqual(self.good("users", "create", "clerk", "--role",
                                   "agent", "--owner", "ANNA"),
                         "clerk is created, with role agent, for anna\n")
        self.assertRegex(self.good("users"), "clerk +agent +anna +\\d+s")
        self.assertEqual(self.good("users", "set", "clerk", "--no-owner"),
                         "clerk is changed, with role agent\n")
        self.good("users", "remove", "clerk")
        self.assertIn("removed", self.good("users", "remove", "anna"))
        self.bad(NOT_ALLOWED, "tasks", env=anna)
        self.assertEqual([u["name"] for u in self.lines("users")], ["admin"])
        self.bad(REFUSED, "users", "create", "anna")
        self.bad(REFUSED, "users", "remove", "anna")

    def test_agents(self):
        self.server()
        self.assertEqual(self.good("agents").splitlines()[1].split(),
                         ["echo", "0", "public", "IDLE"])
        self.assertEqual([a["name"] for a in self.lines("agents")],
                         ["echo", "never", "slow"])

    def test_without_agents_it_says_how_to_get_one(self):
        self.server(agents=[])
        self.assertIn("echo:", self.good("agents"))

    def test_wrong_use(self):
        for args, word in [
                (["token", "crate"], "did you mean create?"),
                (["token", "revoke"], "revoke ID"),
                (["token", "revoke", "sbx_x"], "begins with tok_"),
                (["token", "list", "--expires", "3d"], "token create"),
                (["token", "create", "--expires", "30"], "12h, 30d"),
                (["token", "create", "--expires", "0d"], "12h, 30d"),
                (["token", "create", "--scopes", "red"], "did you mean read?"),
                (["token", "create", "--data", "x"], "--offline"),
                (["users", "creat", "x"], "did you mean create?"),
                (["users", "create"], "create NAME"),
                (["users", "create", "x", "--role", "boss"], "user, agent or"),
                (["users", "set", "x"], "--role ROLE"),
                (["users", "set", "x", "--org", "a", "--no-org"], "either"),
                (["users", "set", "x", "--owner", "a", "--no-owner"],
                 "either"),
                (["agents", "lst"], "did you mean list?")]:
            with self.subTest(args):
                self.assertIn(word, self.bad(USAGE, *args))


class Token(Client):
    """Where the token comes from."""

    def test_none(self):
        self.server()
        del self.env["SIGNALBOX_TOKEN"]
        self.assertIn("export SIGNALBOX_TOKEN", self.bad(NOT_ALLOWED, "tasks"))

    def test_a_wrong_one(self):
        self.server()
        wrong = {"SIGNALBOX_TOKEN": "sbx_" + "A" * 43}
        err = self.bad(NOT_ALLOWED, "tasks", env=wrong)
        self.assertIn("SIGNALBOX_TOKEN", err)
        self.assertNotIn("AAAA", err)
        error = json.loads(self.bad(NOT_ALLOWED, "tasks", "--json", env=wrong))
        self.assertEqual(error["error"]["code"], "unauthenticated")

    def test_what_cannot_be_one(self):
        self.server()
        for value in ("two words", "a\r\nX-Evil: 1", "\u00e4", "x" * 513):
            err = self.bad(NOT_ALLOWED, "tasks",
                           env={"SIGNALBOX_TOKEN": value})
            self.assertIn("has no valid token", err)

    def test_from_a_file(self):
        server = self.server()
        del self.env["SIGNALBOX_TOKEN"]
        path = os.path.join(self.home, "token")
        with open(path, "w", encoding="ascii") as f:
            f.write(server.token + "\n")
        self.assertEqual(self.good("tasks", "--token-file", path),
                         "No tasks.\n")
        self.assertIn("cannot read", self.bad(USAGE, "tasks", "--token-file",
                                              path + "x"))
        with open(path, "w", encoding="ascii") as f:
            f.write("\n")
        self.assertIn("has no valid token", self.bad(NOT_ALLOWED, "tasks",
                                              "--token-file", path))

    def test_there_is_no_option_for_it(self):
        self.assertIn("unknown option",
                      self.bad(USAGE, "tasks", "--token", "sbx_x"))


class Offline(Client):
    def test_a_token_is_made_without_a_server(self):
        data = os.path.join(self.home, "data")
        with Server(agents=AGENTS, data=data):
            pass
        token = self.good("token", "create", "--offline", "--data", data,
                          "--user", "ADMIN", "--label", "lost").strip()
        self.assertRegex(token, f"^{TOKEN}$")
        with Server(agents=AGENTS, data=data, token=token) as server:
            self.use(server)
            [row] = [t for t in self.lines("token") if t["label"] == "lost"]
            self.assertEqual(row["user"], "admin")
            self.assertIn("admin", row["scopes"])
            self.assertIn("token.created", self.good("feed"))

    def test_as_json(self):
        data = os.path.join(self.home, "data")
        with Server(data=data):
            pass
        [made] = self.lines("token", "create", "--offline", "--data", data,
                            "--user", "admin", "--scopes", "read,send",
                            "--expires", "1h")
        self.assertEqual(made["scopes"], ["send", "read"])
        self.assertEqual(made["expires_ms"] - made["created_ms"], 3600 * 1000)
        self.assertRegex(made["token"], TOKEN)

    def test_not_while_a_server_runs(self):
        server = self.server()
        err = self.bad(REFUSED, "token", "create", "--offline", "--data",
                       server.data, "--user", "admin")
        self.assertIn("Stop it first", err)

    def test_what_is_wrong_is_said(self):
        data = os.path.join(self.home, "data")
        with Server(data=data):
            pass
        create = ["token", "create", "--offline", "--data"]
        self.assertIn("--user", self.bad(USAGE, *create, data))
        err = self.bad(REFUSED, *create, data, "--user", "bob")
        self.assertIn("no user bob; the admin is admin", err)
        self.assertIn("users list --offline", err)
        err = self.bad(REFUSED, *create, data, "--user", "bob",
                       "--role", "admin")
        self.assertIn("the admin is admin", err)
        err = self.bad(USAGE, *create, data, "--user", "bob", "--role", "user")
        self.assertIn("only be admin", err)
        self.assertIn("--offline", self.bad(USAGE, "token", "create",
                                            "--role", "admin"))
        self.assertIn("--offline", self.bad(USAGE, "users", "--data", data))
        self.assertIn("--data", self.bad(REFUSED, *create, data + "x",
                                         "--user", "admin"))
        self.assertFalse(os.path.exists(data + "x"))


    def test_users_are_listed_without_a_server(self):
        data = os.path.join(self.home, "data")
        with Server(data=data) as server:
            for i in range(501):  # more than a page
                server.call("POST", "/api/users", {
                    "name": f"u{i}", "role": "user", "org": "acme"})
            server.call("DELETE", "/api/users/u7")
            self.use(server)
            online = self.lines("users")
        users = ["users", "list", "--offline", "--data", data]
        self.assertEqual(self.lines(*users), online)
        self.assertEqual(len(online), 501)
        self.assertEqual(len(self.lines(*users, "--limit", "500")), 500)
        self.assertIn("NAME", self.good(*users).splitlines()[0])
        with Server(data=data, token="x"):
            self.assertIn("Stop it first", self.bad(REFUSED, *users))
        self.assertIn("--data", self.bad(REFUSED, "users", "list", "--offline",
                                         "--data", data + "x"))

    def test_where_no_admin_is_left_one_is_made(self):
        data = os.path.join(self.home, "data")
        with Server(data=data) as server:
            server.user("anna")
        with sqlite3.connect(os.path.join(data, "signalbox.db")) as db:
            db.execute("UPDATE users SET role = 2")
        db.close()
        create = ["token", "create", "--offline", "--data", data, "--user"]
        err = self.bad(REFUSED, *create, "Root")
        self.assertIn("no user Root, and no admin:", err)
        self.assertIn("--role admin", err)
        err = self.bad(REFUSED, *create, "anna", "--role", "admin")
        self.assertIn("anna exists with role user", err)
        token = self.good(*create, "Root", "--role", "admin").strip()
        with Server(data=data, token=token) as server:
            me = server.call("GET", "/api/me").json()
            self.assertEqual((me["user"], me["role"]), ("Root", "admin"))
            self.assertEqual(server.call("GET", "/api/users").status, 200)
        err = self.bad(REFUSED, *create, "Other", "--role", "admin")
        self.assertIn("the admin is Root", err)


class Gone(Client):
    """The server goes away, or never was."""

    def test_nobody_there(self):
        env = {"SIGNALBOX_URL": f"http://127.0.0.1:{free_port()}",
               "SIGNALBOX_TOKEN": "sbx_x"}
        for args in (["send", "x", "--to", "echo"], ["tasks"], ["feed"],
                     ["send", "x", "--to", "echo", "--stream"],
                     ["feed", "--follow"], ["agents"], ["users"], ["token"]):
            with self.subTest(args):
                err = self.bad(UNREACHABLE, *args, env=env)
                self.assertIn("is the server running?", err)
        error = json.loads(self.bad(UNREACHABLE, "tasks", "--json", env=env))
        self.assertEqual(error["error"]["code"], "unreachable")

    def test_what_is_no_address(self):
        for url in ("127.0.0.1:8787", "ftp://x", "http://a b", "file:///etc",
                    "http://x?y", "http://u:p@x", "http://" + "x" * 1024):
            err = self.bad(USAGE, "tasks", env={"SIGNALBOX_URL": url,
                                                "SIGNALBOX_TOKEN": "sbx_x"})
            self.assertIn("not a server's address", err)

    def test_what_is_wrong_with_an_address(self):
        for url, words in (
                ("http://x:99999", "must be a number from 1 to 65535"),
                ("https://u:hunter2@x", "no user or password"),
                ("https://x:0", "Write it like https://"),
                ("http://b\u00fcro.example", "Punycode (xn--...)"),
                ("http://x:0", "Write it like http://127.0.0.1:8787")):
            err = self.bad(USAGE, "tasks", "--url", url,
                           env={"SIGNALBOX_TOKEN": "sbx_x"})
            self.assertIn(words, " ".join(err.split()))
            self.assertNotIn("hunter2", err)

    def test_somebody_else_answers(self):
        for reply, word in [
                (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", "not a Sig"),
                (b"HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\n{}", "not a Sig"),
                (b"HTTP/1.1 302 No\r\nLocation: http://127.0.0.1:2/\r\n"
                 b"Content-Length: 0\r\n\r\n", "redirects to"),
                (b"SSH-2.0-OpenSSH\r\n", "is not HTTP"),
                (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{", "hung up"),
                (b"", "hung up")]:
            with self.subTest(reply), socket.create_server(
                    ("127.0.0.1", 0)) as listener:
                env = {"SIGNALBOX_URL":
                       "http://127.0.0.1:%d" % listener.getsockname()[1],
                       "SIGNALBOX_TOKEN": "sbx_x"}
                p = self.start("tasks", env=env)
                peer, _ = listener.accept()
                with peer:
                    while b"\r\n\r\n" not in peer.recv(65536, socket.MSG_PEEK):
                        pass
                    peer.recv(65536)
                    peer.sendall(reply)
                status, _, err = self.end(p)
                self.assertEqual(status, UNREACHABLE, err)
                self.assertIn(word, err)

    def told_to_come_later(self, status, code, *more):
        """What send makes of a server that asks to come back in a second, and
        is gone then."""
        body = json.dumps({"error": {"code": code, "message": "later"}})
        with socket.create_server(("127.0.0.1", 0)) as listener:
            p = self.start("send", "x", "--to", "echo", *more, env={
                "SIGNALBOX_URL":
                    "http://127.0.0.1:%d" % listener.getsockname()[1],
                "SIGNALBOX_TOKEN": "sbx_x"})
            peer, _ = listener.accept()
        with peer:
            got = b""
            while not got.endswith(b"}"):
                got += peer.recv(65536)
            peer.sendall((f"HTTP/1.1 {status} Later\r\nRetry-After: 1\r\n"
                          "Connection: close\r\n"
                          f"Content-Length: {len(body)}\r\n\r\n{body}")
                         .encode())
        return self.end(p)

    def test_nobody_comes_back_after_the_time_they_have(self):
        for status, code, end in ((429, "rate_limited", REFUSED),
                                  (503, "overloaded", UNREACHABLE)):
            for ms in ("0", "300"):
                got, _, err = self.told_to_come_later(status, code,
                                                      "--wait", ms)
                self.assertEqual((got, err), (end, "signalbox send: later\n"))
        # The control: with time enough, and where no one said how much.
        for more in (("--wait", "60000"), ("--no-wait",)):
            got, _, err = self.told_to_come_later(429, "rate_limited", *more)
            self.assertEqual(got, UNREACHABLE, err)
            self.assertIn("no response from", err)

    def killed_while_sending(self, *more):
        """Kill the server while send waits, start it again on the same port
        and data; what send printed, and the tasks there are then."""
        data = os.path.join(self.home, "data")
        listen = f"127.0.0.1:{free_port()}"
        server = self.server(data=data, listen=listen)
        p = self.start("send", "hello", "--to", "slow", *more)
        eventually(lambda: server.call("GET", "/api/tasks").json()["items"],
                   "the task is accepted")
        token = server.token
        server.kill9()
        server.kill()
        again = self.server(data=data, listen=listen, token=token)
        status, out, err = self.end(p)
        self.assertEqual((status, err), (OK, ""), out)
        return out, again.call("GET", "/api/tasks").json()["items"]

    def test_a_message_outlives_the_server_and_is_never_doubled(self):
        for more in [[], ["--key", "mine"], ["--stream"]]:
            with self.subTest(more):
                out, tasks = self.killed_while_sending(*more)
                self.assertEqual(out, "hello\n")
                self.assertEqual([t["text"] for t in tasks], ["hello"])
                self.assertEqual(tasks[0]["status"], "completed")
                self.doCleanups()
                self.setUp()

    def test_control_another_key_would_have_doubled_it(self):
        self.server()
        for key in ("a", "b"):
            self.good("send", "hello", "--to", "echo", "--key", key)
        self.assertEqual(len(self.lines("tasks")), 2)

    def test_a_busy_server_is_asked_again(self):
        server = self.server(config={"tasks": {"maxUnfinished": 1}})
        task = self.good("send", "x", "--to", "never", "--no-wait").strip()
        p = self.start("send", "hello", "--to", "echo", "--json")
        self.good("tasks", "cancel", task)
        status, out, err = self.end(p)
        self.assertEqual((status, err), (OK, ""))
        self.assertEqual(json.loads(out)["text"], "hello")
        self.assertEqual(len(server.call("GET", "/api/tasks").json()["items"]),
                         2)


if __name__ == "__main__":
    unittest.main()
