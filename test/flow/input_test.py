"""What an agent's program asks of people while it works: a child that speaks
pi's dialect shows dialogs, listeners to the root of its task are told, and
one of them answers."""
import json
import os
import sys
import unittest

from client import OK, REFUSED, USAGE, Client
from hub_peer import Hub
from signalbox import Server

CHILD = os.path.join(os.environ["SIGNALBOX_SOURCE"], "test/lib/pi_dialogs.py")
PI = [{"id": "pi", "process": {"command": [sys.executable, CHILD],
                               "dialect": "pi"}}]
SELECT = {"method": "select", "title": "Allow rm -rf?",
          "options": ["Allow", "Block"]}
CONFIRM = {"method": "confirm", "title": "Clear it?", "message": "All is lost."}
TEXT = {"method": "input", "title": "Your name", "placeholder": "Ada"}
EDITOR = {"method": "editor", "title": "The note", "prefill": "Line 1\nLine 2"}
HOUR_MS = 3600 * 1000
ANSWERS = "Signalbox-Answers: input"
INPUTS_MAX = 8
ASKS_MAX = 256
FED_MAX = 32
LOGGED_MAX = 8
VALUE_MAX = 64 * 1024


def until(events, kind):
    """The data of the next event of that kind."""
    for _, event, data in events:
        if event == kind:
            return data
    raise AssertionError(f"no {kind} came")


class House(Server):
    def __init__(self, **deliver):
        super().__init__(agents=PI, config={
            "rate": {"perUser": 0},
            "deliver": {"inputMs": HOUR_MS, **deliver}})

    def begin(self, *shown, **more):
        """A task whose agent shows these, and its stream."""
        return self.events("/api/messages", ANSWERS, method="POST", body={
            "text": json.dumps(shown), "executor": {"name": "pi"}}, **more)

    def say(self, task, **said):
        token = said.pop("token", self.token)
        return self.call("POST", f"/api/tasks/{task}/input", said, token=token)

    def task(self, task):
        return self.call("GET", f"/api/tasks/{task}").json()


class Inputs(unittest.TestCase):
    def refused(self, response, status, code, words):
        self.assertEqual(response.status, status, response)
        error = response.json()["error"]
        self.assertEqual(error["code"], code)
        self.assertIn(words, error["message"])

    def test_every_kind_is_asked_answered_once_and_told(self):
        cases = (
            (SELECT, "select", {"value": "Block"}, {"options": ["Allow",
                                                                "Block"]}),
            (CONFIRM, "confirm", {"confirmed": False},
             {"message": "All is lost."}),
            (TEXT, "text", {"value": ""}, {"placeholder": "Ada"}),
            (EDITOR, "editor", {"value": "a\n\u2028b"},
             {"prefill": "Line 1\nLine 2"}))
        with House() as server:
            for shown, kind, said, has in cases:
                with server.begin(shown) as events:
                    data = until(events, "input")
                    task, asked = data["task_id"], data["input"]
                    self.assertEqual(
                        {k: asked[k] for k in ("task_id", "agent", "kind",
                                               "title", *has)},
                        {"task_id": task, "agent": "pi", "kind": kind,
                         "title": shown["title"], **has})
                    self.assertEqual(asked["until_ms"],
                                     server.task(task)["deadline_ms"])
                    self.assertEqual(server.task(task)["inputs"], [asked])
                    said["input_id"] = asked["input_id"]
                    told = server.say(task, **said)
                    self.assertEqual(told.status, 200, told)
                    over = {"input_id": asked["input_id"], "task_id": task,
                            "agent": "pi", "kind": kind,
                            "outcome": "answered", "by": "admin"}
                    self.assertEqual(told.json(), over)
                    self.assertEqual(until(events, "input_over")["input"],
                                     over)
                    del said["input_id"]
                    self.assertEqual(
                        json.loads(until(events, "result")["text"]),
                        {"d-0": [said]})
                self.assertEqual(server.task(task)["inputs"], [])

    def test_who_is_second_hears_who_was_first(self):
        with House() as server:
            anna = server.user("anna")
            with server.begin(CONFIRM, SELECT, TEXT, token=anna) as events:
                data = until(events, "input")
                task, first = data["task_id"], data["input"]["input_id"]
                second = until(events, "input")["input"]["input_id"]
                # As long as this one is open the task is not over.
                third = until(events, "input")["input"]["input_id"]
                self.assertEqual(
                    server.say(task, input_id=first, confirmed=True,
                               token=anna).status, 200)
                again = server.say(task, input_id=first, confirmed=False)
                self.refused(again, 409, "input_is_over",
                             "anna was first: it is answered")
                self.assertEqual(
                    server.say(task, input_id=second,
                               cancelled=True).json()["outcome"], "cancelled")
                self.refused(server.say(task, input_id=second, value="Allow"),
                             409, "input_is_over",
                             "admin was first: it is cancelled")
                self.assertEqual(server.say(task, input_id=third,
                                            value="Ada").status, 200)
                self.assertEqual(json.loads(until(events, "result")["text"]), {
                    "d-0": [{"confirmed": True}],
                    "d-1": [{"cancelled": True}], "d-2": [{"value": "Ada"}]})
            self.refused(server.say(task, input_id=first, confirmed=True),
                         409, "task_is_over", "already ended")

    def test_what_is_no_answer_leaves_it_open(self):
        with House() as server:
            with server.begin(SELECT, TEXT, CONFIRM) as events:
                data = until(events, "input")
                task, select = data["task_id"], data["input"]["input_id"]
                text = until(events, "input")["input"]["input_id"]
                confirm = until(events, "input")["input"]["input_id"]
                long = "x" * (VALUE_MAX + 1)
                for number, said, status, words in (
                        (select, {"value": "block"}, 400, "one of the options"),
                        (select, {"confirmed": True}, 400, '"value"'),
                        (select, {}, 400, "say one of"),
                        (select, {"value": 5}, 400, "value"),
                        (select, {"value": "Allow", "cancelled": True}, 400,
                         "cancelled"),
                        (text, {"value": "a\nb"}, 400, "one line"),
                        (text, {"value": long}, 413, "value"),
                        (confirm, {"value": "yes"}, 400, '"confirmed"'),
                        (confirm, {"confirmed": True, "value": "yes"}, 400,
                         '"confirmed"')):
                    answer = server.say(task, input_id=number, **said)
                    self.assertEqual(answer.status, status, answer)
                    self.assertIn(words, answer.json()["error"]["message"])
                self.refused(server.say(task, value="Allow"), 400,
                             "bad_request", "input_id")
                none = "input_" + "0" * 26
                self.refused(server.say(task, input_id=none, value="x"), 404,
                             "not_found", "with that id")
                self.refused(server.say("task_" + "0" * 26, input_id=select,
                                        value="Allow"), 404, "not_found", "")
                self.assertEqual(len(server.task(task)["inputs"]), 3)
                for number, said in ((select, {"value": "Allow"}),
                                     (text, {"value": long[1:]}),
                                     (confirm, {"confirmed": False})):
                    self.assertEqual(server.say(task, input_id=number,
                                                **said).status, 200)
                self.assertEqual(json.loads(until(events, "result")["text"]), {
                    "d-0": [{"value": "Allow"}],
                    "d-1": [{"value": long[1:]}],
                    "d-2": [{"confirmed": False}]})

    def test_only_who_may_see_the_task_may_answer(self):
        with House() as server:
            anna, bert = server.user("anna"), server.user("bert")
            made = server.call("POST", "/api/tokens",
                               {"user": "anna", "scopes": ["read"]}).json()
            with server.begin(CONFIRM, token=anna) as events:
                data = until(events, "input")
                task, number = data["task_id"], data["input"]["input_id"]
                self.refused(server.say(task, input_id=number, confirmed=True,
                                        token=bert), 404, "not_found", "")
                self.refused(server.say(task, input_id=number, confirmed=True,
                                        token=made["token"]), 403,
                             "not_allowed", "")
                self.assertEqual(server.say(task, input_id=number,
                                            confirmed=True,
                                            token=anna).status, 200)
                until(events, "result")

    def test_who_comes_later_is_told_of_what_is_open(self):
        with House() as server:
            with server.begin(SELECT) as events:
                for place, event, data in events:
                    if event == "input":
                        break
                task, asked = data["task_id"], data["input"]
                for after in (None, place):
                    with server.events(f"/api/tasks/{task}/events",
                                       after=after) as late:
                        self.assertEqual(until(late, "input")["input"], asked)
                with Hub(server) as hub:
                    hub.call("task.listen", task_id=task, after=place)
                    self.assertEqual(hub.heard("task.input", task)["input"],
                                     asked)
                    self.assertEqual(
                        server.say(task, input_id=asked["input_id"],
                                   value="Allow").status, 200)
                    over = hub.heard("task.input_over", task)["input"]
                    self.assertEqual(over["outcome"], "answered")
                # Not twice, and once it is over no one is asked any more.
                self.assertEqual([kind for _, kind, _ in events],
                                 ["input_over", "chunk", "result"])
                with server.events(f"/api/tasks/{task}/events") as after:
                    self.assertEqual([kind for _, kind, _ in after],
                                     ["result"])

    def test_where_nobody_listens_it_is_cancelled_and_told(self):
        with House(inputMs=10) as server:
            answer = server.send(json.dumps([SELECT, CONFIRM]),
                                 to="pi").json()
            self.assertEqual(json.loads(answer["text"]), {
                "d-0": [{"cancelled": True}], "d-1": [{"cancelled": True}]})
            with server.events("/api/feed?after=0") as feed:
                asked = until(feed, "task.input")
                over = until(feed, "task.input_over")
            self.assertEqual(asked["task_id"], answer["task_id"])
            self.assertEqual(asked["data"]["kind"], "select")
            self.assertNotIn("rm -rf", json.dumps(asked))
            self.assertEqual((over["agent"], over["data"]["outcome"]),
                             ("pi", "unheard"))
            self.assertEqual(over["data"]["input_id"],
                             asked["data"]["input_id"])
            # Programs that listen on the hub hear of it and do not count.
            with Hub(server) as hub:
                hub.call("message.send", text=json.dumps([CONFIRM]),
                         executor={"name": "pi"})
                hub.heard("task.input")
                self.assertEqual(hub.heard("task.input_over")["input"]
                                 ["outcome"], "unheard")
            # Nor do others that do not say that they answer.
            with server.events("/api/messages", method="POST", body={
                    "text": json.dumps([CONFIRM]),
                    "executor": {"name": "pi"}}) as events:
                until(events, "input")
                self.assertEqual(until(events, "input_over")["input"]
                                 ["outcome"], "unheard")
            # The control: someone listens, and answers.
            with server.begin(CONFIRM) as events:
                data = until(events, "input")
                self.assertEqual(
                    server.say(data["task_id"], confirmed=True,
                               input_id=data["input"]["input_id"]).status, 200)
                self.assertEqual(json.loads(until(events, "result")["text"]),
                                 {"d-0": [{"confirmed": True}]})

    def test_what_the_agent_waits_for_no_longer_is_over(self):
        # The second holds the task open.
        with House() as server, \
                server.begin({**CONFIRM, "timeout": 20}, SELECT) as events:
            data = until(events, "input")
            self.assertEqual(data["input"]["until_ms"],
                             data["input"]["at_ms"] + 20)
            over = until(events, "input_over")["input"]
            self.assertEqual(over["outcome"], "expired")
            self.refused(server.say(data["task_id"], confirmed=True,
                                    input_id=over["input_id"]), 409,
                         "input_is_over", "is expired")

    def test_it_ends_with_its_task(self):
        with House() as server:
            with server.begin(CONFIRM) as events:
                data = until(events, "input")
                server.call("POST", f"/api/tasks/{data['task_id']}/cancel")
                over = until(events, "input_over")["input"]
                self.assertEqual(over["outcome"], "withdrawn")
                self.assertNotIn("by", over)
                self.assertEqual(until(events, "result")["status"],
                                 "cancelled")

    def test_it_ends_with_the_program_that_asks(self):
        with House(maxAttempts=1) as server, \
                server.begin(CONFIRM, {"method": "die"}) as events:
            until(events, "input")
            self.assertEqual(until(events, "input_over")["input"]["outcome"],
                             "withdrawn")
            self.assertEqual(until(events, "result")["status"], "failed")

    def test_one_too_many_is_cancelled_and_what_only_shows_is_passed_over(self):
        shows = [{"method": "notify", "message": "x"},
                 {"method": "setStatus", "statusKey": "k"},
                 {"method": "unheardOf"},
                 {**SELECT, "options": []},
                 {**SELECT, "options": ["x"] * 101},
                 {**TEXT, "title": "x" * VALUE_MAX},
                 *[CONFIRM] * (INPUTS_MAX + 1),
                 {"method": "say", "text": "that was all"}]
        with House() as server, server.begin(*shows) as events:
            asked = [until(events, "input")["input"]["input_id"]
                     for _ in range(INPUTS_MAX)]
            # An answer makes room: none before the last of them was turned down.
            task = until(events, "chunk")["task_id"]
            self.assertEqual([i["input_id"]
                              for i in server.task(task)["inputs"]], asked)
            for number in asked:
                server.say(task, input_id=number, confirmed=True)
            told = json.loads(until(events, "result")["text"])
            self.assertEqual(
                {k for k, v in told.items() if v == [{"cancelled": True}]},
                {"d-2", "d-3", "d-4", "d-5", "d-14"})
            self.assertEqual(
                {k for k, v in told.items() if v == [{"confirmed": True}]},
                {f"d-{i}" for i in range(6, 14)})

    def test_one_that_asks_without_end_is_told_so_often_and_then_cancelled(self):
        often = {**CONFIRM, "timeout": 1, "times": ASKS_MAX + LOGGED_MAX + 1}
        with House() as server:
            with server.begin(often) as events:
                heard = list(events)
            told = json.loads(heard[-1][2]["text"])
            self.assertEqual(told, {"d-0": [{"cancelled": True}] *
                                    (ASKS_MAX + LOGGED_MAX + 1)})
            over = [data["input"]["outcome"] for _, event, data in heard
                    if event == "input_over"]
            self.assertEqual(over, ["expired"] * ASKS_MAX)
            self.assertEqual(server.said().count("task.not_asked"), LOGGED_MAX)
            # The next attempt, here of the next task, may ask again.
            server.send(json.dumps([{**CONFIRM, "timeout": 1}]), to="pi")
            of_feed = []
            with server.events("/api/feed?after=0") as feed:
                for _, event, data in feed:
                    of_feed += [(event, data["task_id"])]
                    if event == "task.input_over" and \
                            data["task_id"] != heard[-1][2]["task_id"]:
                        break
            for kind in "task.input", "task.input_over":
                self.assertEqual(of_feed.count(
                    (kind, heard[-1][2]["task_id"])), FED_MAX)

    def below(self, front, *shown):
        """The id of a root, below which an agent shows these."""
        given = front.next(lambda m: m.get("method") == "task.execute")
        root = given["params"]["task_id"]
        front.send({"jsonrpc": "2.0", "id": given["id"],
                    "result": {"status": "working"}})
        front.call("agent.delegate", agentId="pi", mode="async",
                   task=json.dumps(shown), parent_task_id=root)
        return root

    def test_a_text_that_was_cut_within_a_character_is_asked_all_the_same(self):
        cut = {**CONFIRM, "title": "cut \ud83d"}
        with House() as server, server.begin(cut) as events:
            data = until(events, "input")
            self.assertEqual(data["input"]["title"], "cut \ufffd")
            self.assertEqual(
                server.say(data["task_id"], confirmed=True,
                           input_id=data["input"]["input_id"]).status, 200)
            self.assertEqual(json.loads(until(events, "result")["text"]),
                             {"d-0": [{"confirmed": True}]})

    def test_an_agent_below_asks_whoever_listens_to_the_root(self):
        with House() as server:
            anna = server.user("anna")
            with Hub(server, anna) as front:
                front.register("front")
                with server.events(
                        "/api/messages", method="POST", token=anna,
                        body={"text": "do it", "executor": {"name": "front"}}
                ) as events:
                    root = self.below(front, SELECT)
                    data = until(events, "input")
                    below = data["input"]["task_id"]
                    self.assertEqual(data["task_id"], root)
                    self.assertNotEqual(below, root)
                    self.assertEqual(data["input"]["agent"], "pi")
                    for task in root, below:
                        self.assertEqual(server.task(task)["inputs"],
                                         [data["input"]])
                    self.assertEqual(
                        server.say(below, value="Block", token=anna,
                                   input_id=data["input"]["input_id"]).status,
                        200)
                    self.assertEqual(until(events, "input_over")["input"]
                                     ["by"], "anna")
                    self.refused(
                        server.say(root, value="Block", token=anna,
                                   input_id=data["input"]["input_id"]),
                        409, "input_is_over", "anna was first")
                    got = front.heard("delegation.result")
                    self.assertEqual(json.loads(got["text"]),
                                     {"d-0": [{"value": "Block"}]})

    def test_who_listens_to_the_task_that_asks_is_told_as_well(self):
        with House() as server, Hub(server) as front:
            front.register("front")
            server.send("do it", to="front", wait_ms=0)
            root = self.below(front, CONFIRM, SELECT)
            with server.events("/api/feed?after=0") as feed:
                below = until(feed, "task.input")["task_id"]
                until(feed, "task.input")
            with server.events(f"/api/tasks/{below}/events") as events, \
                    server.events(f"/api/tasks/{root}/events") as above:
                first, second = until(events, "input"), until(events, "input")
                self.assertEqual(first["task_id"], below)
                told = until(above, "input")
                self.assertEqual((told["task_id"], told["input"]),
                                 (root, first["input"]))
                self.assertEqual(
                    server.say(below, confirmed=True, input_id=first["input"]
                               ["input_id"]).status, 200)
                self.assertEqual(until(events, "input_over")["input"]
                                 ["outcome"], "answered")
                with server.events(f"/api/tasks/{below}/events",
                                   after="1-1000") as late:
                    self.assertEqual(until(late, "input")["input"],
                                     second["input"])
                server.call("POST", f"/api/tasks/{root}/cancel")
                self.assertEqual(until(events, "input_over")["input"]
                                 ["outcome"], "withdrawn")
            for asked in first, second:
                late = server.say(below, cancelled=True, input_id=asked
                                  ["input"]["input_id"])
                self.assertEqual(late.status, 409, late)


class CommandLine(Client):
    def asked(self, server, *shown):
        """A task whose agent shows these, and its stream."""
        self.use(server)
        events = self.enterContext(server.begin(*shown))
        data = [until(events, "input") for _ in shown]
        return data[0]["task_id"], [d["input"]["input_id"] for d in data], \
            events

    def test_it_shows_what_is_asked_and_answers(self):
        with House() as server:
            task, ids, events = self.asked(server, SELECT, CONFIRM)
            self.assertEqual(
                self.good("tasks", "input", task),
                f"{ids[0]}  pi asks (select)\n  Allow rm -rf?\n    Allow\n"
                f"    Block\n{ids[1]}  pi asks (confirm)\n  Clear it?\n"
                "  All is lost.\n")
            self.assertEqual(
                [i["input_id"] for i in json.loads(
                    self.good("tasks", "input", task, "--json"))], ids)
            self.assertIn("select one with --input",
                          self.bad(USAGE, "tasks", "input", task, "Allow"))
            self.assertIn("exactly one of the options", self.bad(
                USAGE, "tasks", "input", task, "allow", "--input", ids[0]))
            self.assertEqual(
                self.good("tasks", "input", task, "Allow", "--input", ids[0]),
                f"{ids[0]} is answered\n")
            self.assertIn("yes or no",
                          self.bad(USAGE, "tasks", "input", task, "maybe"))
            self.assertEqual(
                json.loads(self.good("tasks", "input", task, "no", "--json"))
                ["outcome"], "answered")
            self.assertEqual(json.loads(until(events, "result")["text"]), {
                "d-0": [{"value": "Allow"}], "d-1": [{"confirmed": False}]})
            self.assertEqual(self.good("tasks", "input", task),
                             "No open questions.\n")
            self.assertIn("no open question",
                          self.bad(REFUSED, "tasks", "input", task, "no"))

    def test_without_an_answer_it_is_closed(self):
        with House() as server:
            task, ids, events = self.asked(server, EDITOR)
            self.assertIn("Line 2", self.good("tasks", "input", task))
            self.assertIn("either an answer or", self.bad(
                USAGE, "tasks", "input", task, "x", "--cancel"))
            self.assertEqual(self.good("tasks", "input", task, "--cancel"),
                             f"{ids[0]} is cancelled\n")
            self.assertEqual(json.loads(until(events, "result")["text"]),
                             {"d-0": [{"cancelled": True}]})

    def test_who_sends_sees_the_question_and_how_to_answer(self):
        with House() as server:
            self.use(server)
            sending = self.start("send", json.dumps([SELECT]), "--to", "pi",
                                 "--stream")
            line = sending.stdout.readline().decode().rstrip("\n")
            self.assertRegex(line, r"^pi: Allow rm -rf\? \(signalbox tasks "
                             r"input task_\w{26} shows and answers it\)$")
            task = line.split()[-5]
            self.good("tasks", "input", task, "Block")
            status, rest, _ = self.end(sending)
            self.assertEqual(status, OK)
            self.assertTrue(rest.startswith(
                "pi: the question is answered\n"), rest)
            self.assertIn('{"value": "Block"}', rest)


if __name__ == "__main__":
    unittest.main()
