"""signalbox demo as someone meets it who has just built it: four agents that
answer, a token that goes on working, and nothing left behind."""
import json
import os
import re
import select
import signal
import socket
import subprocess
import unittest

from chat import Chat
from client import BIN, OK, USAGE, Client
from signalbox import DEADLINE_S, eventually

CAST = ["engineer", "researcher", "content-writer", "automation-operator"]
CANNED = "(The demo's canned reply: no model has read your message.)\n"


def line_of(p):
    ready, _, _ = select.select([p.stdout], [], [], DEADLINE_S)
    return p.stdout.readline().decode() if ready else ""


def children_of(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            return [int(x) for x in f.read().split()]
    except FileNotFoundError:
        return []


def is_alive(pid):
    return os.path.exists(f"/proc/{pid}")


class Demo(Client):
    def demo(self, *args, listen="127.0.0.1:0", pace="0", **env):
        """A demo that runs; its url and token are used from here on."""
        at = ["--listen", listen] if listen else []
        p = self.start("demo", "--json", "--pace", pace, *at, *args, env=env)
        self.addCleanup(self.stop, p)
        said = line_of(p)
        if not said:
            self.fail(p.stderr.read().decode())
        said = json.loads(said)
        self.env["SIGNALBOX_URL"] = said["url"]
        self.env["SIGNALBOX_TOKEN"] = said["token"]
        return p, said

    def stop(self, p):
        """Ctrl-C; it must end well. What it had said and no one had read."""
        if p.stdout.closed:
            return ""
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=DEADLINE_S)
        self.assertEqual((p.returncode, err.decode()), (OK, ""))
        return out.decode()

    def test_four_agents_answer_and_say_that_they_are_no_model(self):
        _, said = self.demo()
        self.assertEqual(said["agents"], CAST)
        for name in CAST:
            out = self.good("send", "hello there", "--to", name)
            self.assertTrue(out.endswith("\n\n" + CANNED), out)
        self.assertIn("EXPLAIN", self.good("send", "why is my query slow?",
                                           "--to", "Engineer"))
        listed = self.lines("agents")
        self.assertEqual([x["name"] for x in listed], sorted(CAST))
        found = self.lines("search", "who", "can", "draft", "a", "blog",
                           "post")
        self.assertEqual(found[0]["name"], "content-writer")

    def test_messages_go_to_whom_they_fit(self):
        self.demo()
        for text, agent, layer in [
                ("why is my query slow?", "engineer", "semantic"),
                ("draft a blog post about our new office", "content-writer",
                 "semantic"),
                ("remind me to water the plants every Friday",
                 "automation-operator", "semantic"),
                ("/content-writer hello", "content-writer", "prefix"),
                ("hm", "researcher", "default")]:
            [would] = self.lines("route", text)
            self.assertEqual((would["agent"], would["layer"]), (agent, layer))
            [answer] = self.lines("send", text)
            self.assertEqual((answer["agent"], answer["decision"]["layer"]),
                             (agent, layer))
            self.assertTrue(answer["text"].endswith(CANNED.strip()))

    def test_the_sentences_of_the_design_go_where_it_says(self):
        self.demo()
        unclear = "Help me plan a marketing campaign"
        eventually(lambda: self.lines("route", unclear)[0]["tier"] ==
                   "transformer", "it has read the cards")
        for text, agent in [
                ("build me a Laravel model with a factory and migration",
                 "engineer"),
                ("Write me a Laravel Eloquent scope for active users",
                 "engineer"),
                ("write me a Laravel migration", "engineer"),
                ("write a data processing script", "engineer"),
                ("research AI trends in healthcare", "researcher"),
                ("draft me a blog post about our new office",
                 "content-writer"),
                ("Set a reminder for tomorrow", "automation-operator"),
                ("set up a workflow", "automation-operator")]:
            [would] = self.lines("route", text)
            self.assertEqual((would["agent"], would["layer"], would["band"]),
                             (agent, "semantic", "confident"), text)
        # Which the design calls ambiguous.
        [would] = self.lines("route", unclear)
        self.assertEqual(would["agent"], "researcher")

    def test_the_cards_have_no_word_of_those_sentences(self):
        """But for the two that are examples there: it is not by these words
        that they are found."""
        self.demo()
        for name in CAST:
            [card] = self.lines("agents", "show", name)
            text = json.dumps([card[key] for key in (
                "title", "description", "skills", "routing")])
            words = set(re.findall("[a-z]+", text.lower()))
            self.assertIn("keywords", words)
            self.assertEqual(words & {
                "eloquent", "scope", "active", "users", "plan", "marketing",
                "campaign", "data", "processing"}, set(), name)

    def test_the_reply_comes_in_pieces(self):
        self.demo()
        events = self.lines("send", "hm", "--to", "researcher", "--stream")
        chunks = [x["data"]["text"] for x in events if x["event"] == "chunk"]
        self.assertGreater(len(chunks), 10)
        self.assertEqual("".join(chunks), events[-1]["data"]["text"])

    def test_one_asks_another_who_is_heard_meanwhile(self):
        self.demo()
        text = "draft a blog post about office trends, with facts"
        out = self.good("send", text, "--stream")
        own, others = [], []
        for line in out.splitlines():
            (others if line.startswith("researcher: ") else own).append(line)
        self.assertIn("Facts first", own[0])
        self.assertIn("researcher: Three currents turn up", others[0])
        [answer] = self.lines("send", text)
        self.assertEqual(answer["agent"], "content-writer")
        self.assertNotIn("Three currents", answer["text"])
        self.assertTrue(answer["text"].endswith(CANNED.strip()))

    def test_a_second_start_remembers_and_has_the_same_token(self):
        p, first = self.demo()
        self.good("send", "hm", "--to", "engineer")
        self.stop(p)
        token = os.path.join(self.home, "signalbox-demo-data", "demo-token")
        self.assertEqual(os.stat(token).st_mode & 0o777, 0o600)
        _, second = self.demo()
        self.assertEqual(second["token"], first["token"])
        [task] = self.lines("tasks")
        self.assertEqual((task["status"], task["text"]), ("completed", "hm"))

    def test_a_token_file_that_was_there_is_the_owners_alone(self):
        folder = os.path.join(self.home, "signalbox-demo-data")
        os.mkdir(folder, 0o700)
        token = os.path.join(folder, "demo-token")
        with open(token, "w", encoding="utf-8"):
            os.chmod(token, 0o644)
        self.demo()
        self.assertEqual(os.stat(token).st_mode & 0o777, 0o600)

    def test_without_its_token_it_says_how_to_make_one(self):
        p, _ = self.demo()
        self.stop(p)
        os.unlink(os.path.join(self.home, "signalbox-demo-data",
                               "demo-token"))
        p = self.start("demo", "--listen", "127.0.0.1:0", bufsize=0)
        said = ""
        while "feed --follow" not in said:
            said += line_of(p)
        self.stop(p)
        self.assertIn("token create --offline", said)

    def said_by(self, *args, **env):
        """What it says to people, whole."""
        p = self.start("demo", *args, bufsize=0, env=env)
        said = ""
        while "feed --follow" not in said:
            line = line_of(p)
            if not line:
                self.fail(said + p.stderr.read().decode())
            said += line
        return said + self.stop(p)

    def test_the_last_thing_it_says_is_a_link_that_signs_in(self):
        said = self.said_by("--listen", "127.0.0.1:0").splitlines()
        url = said[0].removeprefix("Signalbox 0.1.0 is listening on ")
        self.assertEqual(said[-4:-2], [
            "Open it in a browser; the link signs you in:", ""])
        link, token = said[-2].strip().split("#token=")
        self.assertEqual(link, url + "/")
        self.assertIn(f"    export SIGNALBOX_TOKEN={token}", said)
        # The next time the same one, as long as it is known.
        self.assertIn("#token=" + token, self.said_by("--listen",
                                                      "127.0.0.1:0"))
        os.unlink(os.path.join(self.home, "signalbox-demo-data",
                               "demo-token"))
        said = self.said_by("--listen", "127.0.0.1:0")
        self.assertNotIn("#token=", said)
        self.assertRegex(said, r"Open it in a browser, and enter a token:"
                               r"\n\n    http://127.0.0.1:\d+/\n")

    def test_over_ssh_it_says_how_a_browser_gets_here(self):
        said = self.said_by("--listen", "127.0.0.1:0",
                            SSH_CONNECTION="192.0.2.1 1 192.0.2.2 22")
        port = said.splitlines()[0].rpartition(":")[2]
        self.assertIn(f"ssh -L {port}:127.0.0.1:{port} ", said)

    def test_without_the_dashboard_there_is_no_link(self):
        said = self.said_by("--listen", "127.0.0.1:0",
                            "--set", "web.enabled=false")
        self.assertNotIn("browser", said)
        self.assertNotIn("#token", said)

    def test_where_its_port_is_taken_it_takes_another_and_says_so(self):
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", 8787))
                s.listen()
            except OSError:
                pass  # it is taken already
            p = self.start("demo", bufsize=0)
            said = ""
            while "feed --follow" not in said:
                said += line_of(p)
            self.stop(p)
        self.assertIn(", since 8787 is in use\n", said)
        self.assertRegex(said, r"export SIGNALBOX_URL=http://127.0.0.1:\d+\n")
        self.assertIn(f'{BIN} send "why is my query slow?"\n', said)
        self.assertRegex(said, r"export SIGNALBOX_TOKEN=sbx_\S{43}\n")

    def test_ctrl_c_ends_everything(self):
        p, _ = self.demo(pace="1000")
        sends = [self.start("send", "hm", "--to", name) for name in CAST]
        eventually(lambda: len(children_of(p.pid)) == len(CAST),
                   "all are there")
        children = children_of(p.pid)
        p.send_signal(signal.SIGINT)
        p.send_signal(signal.SIGINT)  # no one is waited for
        p.communicate(timeout=DEADLINE_S)
        eventually(lambda: not any(is_alive(c) for c in children),
                   "none is left")
        for s in sends:
            s.kill()
            s.communicate()

    def test_a_file_here_is_not_read(self):
        with open(os.path.join(self.home, "signalbox.jsonc"), "w",
                  encoding="ascii") as f:
            f.write("nonsense")
        self.demo()
        self.good("agents")

    def test_settings_may_be_given(self):
        self.demo("--set", "deliver.queue=1", "--data", "elsewhere")
        self.assertTrue(os.path.isdir(os.path.join(self.home, "elsewhere")))

    def test_with_an_endpoint_they_are_that_model(self):
        with Chat() as chat:
            self.demo(OPENAI_BASE_URL=chat.url, OPENAI_API_KEY="sk-secret",
                      SIGNALBOX_DEMO_MODEL="toy")
            self.assertEqual(self.good("send", "say hello there", "--to",
                                       "engineer"), "hello there\n")
            request = chat.requests[-1]
            self.assertEqual(request["model"], "toy")
            self.assertEqual(request["messages"][0]["role"], "system")
            self.assertIn("Engineer", request["messages"][0]["content"])
            shown = self.good("agents", "show", "engineer", "--json")
            self.assertIn("model:demo", shown)
            self.assertNotIn("sk-secret", shown)

    def test_a_key_alone_is_no_wish_for_a_model(self):
        self.demo(OPENAI_API_KEY="sk-secret")
        self.assertIn(CANNED, self.good("send", "hm", "--to", "engineer"))


class Agent(Client):
    """The program that the agents are, spoken to as the server does."""

    def agent(self, pace, name="engineer"):
        p = self.start("demo-agent", name, "--pace", pace,
                       stdin=subprocess.PIPE, bufsize=0)
        self.addCleanup(self.end_agent, p)
        self.say(p, id="hello", method="hello")
        self.assertEqual(json.loads(line_of(p))["result"], {})
        return p

    @staticmethod
    def end_agent(p):
        p.kill()
        p.wait()
        for file in (p.stdin, p.stdout, p.stderr):
            file.close()

    @staticmethod
    def say(p, **message):
        p.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode()
                      + b"\n")

    def execute(self, p, task, message="hm"):
        self.say(p, id=task + ":1", method="task.execute",
                 params={"task_id": task, "message": message})
        return json.loads(line_of(p))

    def until(self, p, method):
        while (message := json.loads(line_of(p)))["method"] != method:
            pass
        return message

    def test_without_the_other_it_answers_anyway(self):
        p = self.agent("0", "content-writer")
        self.execute(p, "task_a", "facts!")
        ask = self.until(p, "agent.delegate")
        self.assertEqual(ask["params"], {
            "agentId": "researcher", "task": "facts!", "mode": "sync",
            "stream": True, "parent_task_id": "task_a"})
        self.say(p, id=ask["id"], error={"code": -32000, "message": "no"})
        self.assertEqual(self.until(p, "task.result")["params"],
                         {"task_id": "task_a", "status": "completed"})

    def test_while_it_waits_for_the_other_it_can_be_stopped(self):
        p = self.agent("0", "content-writer")
        self.execute(p, "task_a", "facts!")
        first = self.until(p, "agent.delegate")
        self.say(p, method="task.cancel", params={"task_id": "task_a"})
        self.assertEqual(self.until(p, "task.result")["params"]["status"],
                         "cancelled")
        # What was asked for then is not what is waited for now.
        self.execute(p, "task_b", "facts!")
        second = self.until(p, "agent.delegate")
        self.say(p, id=first["id"], result={"status": "error"})
        self.say(p, id=9, method="no.such")
        self.assertEqual(json.loads(line_of(p))["id"], 9)
        self.say(p, id=second["id"], result={"status": "completed"})
        self.assertEqual(self.until(p, "task.result")["params"]["task_id"],
                         "task_b")

    def test_it_stops_when_it_is_asked_to(self):
        p = self.agent("1000")
        self.assertEqual(self.execute(p, "task_a")["result"],
                         {"status": "working"})
        busy = self.execute(p, "task_b")["error"]
        self.assertEqual(busy["data"]["code"], "agent_busy")
        self.say(p, method="task.cancel", params={"task_id": "task_b"})
        self.say(p, method="task.cancel", params={"task_id": "task_a"})
        while (last := json.loads(line_of(p)))["method"] == "task.chunk":
            pass
        self.assertEqual(last["params"], {"task_id": "task_a",
                                          "status": "cancelled"})

    def test_it_ends_when_its_input_does(self):
        p = self.agent("1000")
        self.execute(p, "task_a")
        p.stdin.close()
        self.assertEqual(p.wait(DEADLINE_S), OK)

    def test_what_it_does_not_know_it_says_so(self):
        p = self.agent("0")
        p.stdin.write(b"garbage\n\n[]\n")
        self.say(p, id=7, method="no.such")
        answer = json.loads(line_of(p))
        self.assertEqual((answer["id"], answer["error"]["code"]), (7, -32601))

    def test_it_is_not_in_the_help_and_says_who_starts_it(self):
        self.assertNotIn("demo-agent", self.good("help"))
        self.assertIn("signalbox demo starts",
                      self.bad(USAGE, "demo-agent", "missing"))


if __name__ == "__main__":
    unittest.main()
