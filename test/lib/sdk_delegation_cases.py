"""What the clients of client/ promise of delegations, each case for every one
of them, beside a hub that is a script: the race of the two phases in every
order, results told twice, acknowledgements that are lost, connections that
break at every step. sdk_hiring_cases.py has the real server.

    class Js(DelegationCases, unittest.TestCase):
        command = ["node", ".../sdk_driver.mjs"]
"""
import itertools

from fake_hub import (FakeHub, Wrong, accepted, answer, failed,
                      refusal, result, task_of, tell)
from sdk_cases import CARD, QUICK, Refused, SdkCases

# In which writes the two phases arrive; "+" is one write, "&" one message.
ORDERS = ["accepted, result", "result, accepted", "accepted+result",
          "result+accepted", "accepted&result", "result&accepted", "result",
          "result+result+accepted", "accepted+result+result"]


def writes(order, ask, said):
    """The messages of each write."""
    known = {"accepted": accepted(ask), "result": said}
    for write in order.split(", "):
        if "&" in write:
            yield [[known[name] for name in write.split("&")]]
        else:
            yield [known[name] for name in write.split("+")]


class DelegationCases(SdkCases):
    """Without the tests of SdkCases, which are there already."""
    for name in [n for n in dir(SdkCases) if n.startswith("test_")]:
        locals()[name] = None

    hook = "onDelegationResult"  # as it is called in warnings

    def setUp(self):
        super().setUp()
        self.hub = self.stack.enter_context(FakeHub())

    def meet(self, d=None, hook=None, behind=(), **options):
        """A client that is the agent `parrot`, and its connection."""
        d = d or self.driver()
        n = d.begin("connect", url=self.hub.url, token="sbx_1",
                    options={**QUICK, **options})
        line = self.hub.accept()
        d.end(n)
        if hook is not None:
            d.do("hook", **hook)
        n = d.begin("register", card=CARD)
        line.register("parrot", *behind)
        d.end(n)
        return d, line

    def put_back(self, d, env):
        for line in self.hub.lines:
            line.wire.socket.close()  # so that no one waits for its goodbye
        super().put_back(d, env)

    def part(self, d, line):
        n = d.begin("close", grace_ms=0)
        line.bye()
        d.end(n)

    def again(self, *behind):
        """It comes back."""
        line = self.hub.accept()
        line.register("parrot", *behind)
        return line

    def ask(self, d, line, message="hello", **options):
        """A delegation that has reached the hub: its number at the driver's,
        and the request."""
        n = d.begin("delegate", agent="bob", skill="talk", message=message,
                    options=options)
        ask = line.expect("agent.send_task")
        self.assertEqual(ask["params"]["message"], message)
        return n, ask

    def is_quiet(self, d, line):
        """Nothing was said but what the test has heard, nor a turn later."""
        for _ in range(2):
            n = d.begin("call", method="mark", params={})
            line.say(answer(line.expect("mark")))
            d.end(n)

    def is_said(self, d, words, times=1):
        d.do("look")
        self.assertEqual(d.said().count(words), times, d.said())

    # The race.

    def race(self, order, is_good=True, chop=None):
        d, line = self.meet()
        n, ask = self.ask(d, line)
        said = result(ask, "The papers", metadata={"pages": 3}) if is_good \
            else failed(ask)
        for write in writes(order, ask, said):
            line.say(*write, chop=chop)
        if is_good:
            got = d.end(n)
            self.assertEqual((got["text"], got["metadata"], got["task_id"]),
                             ("The papers", {"pages": 3}, task_of(ask)))
        else:
            e = self.refused("failed", d.end, n)
            self.assertEqual(e.message, "Agent 'bob' is offline")
            self.assertEqual(e.data["task_id"], task_of(ask))
        line.ack_of(ask)
        self.is_quiet(d, line)
        self.part(d, line)

    def test_the_result_may_come_in_any_order(self):
        for order, is_good in itertools.product(ORDERS, (True, False)):
            with self.subTest(order, is_good=is_good):
                self.race(order, is_good)

    def test_the_result_may_come_in_any_pieces(self):
        for order in "accepted+result", "result+accepted":
            with self.subTest(order):
                self.race(order, chop=1)

    def test_it_is_acknowledged_after_it_was_handed_over(self):
        d, line = self.meet()
        n = d.begin("delegate", agent="bob", skill="talk", message="hello",
                    mark=True)
        ask = line.expect("agent.send_task")
        line.say(result(ask), accepted(ask))
        line.say(answer(line.expect("mark")))  # of who waited for it
        line.ack_of(ask)
        self.assertEqual(d.end(n)["text"], "done")

    def test_a_result_that_is_told_twice_is_one(self):
        d, line = self.meet()
        n, ask = self.ask(d, line)
        line.say(accepted(ask), result(ask))
        m = line.expect("delegation.ack")
        line.say(result(ask, "another"))  # the ack is on its way
        self.is_quiet(d, line)
        line.say(answer(m, status="ok"))
        self.is_quiet(d, line)
        line.say(result(ask, "another"))  # it was not heard
        line.ack_of(ask)
        self.assertEqual(d.end(n)["text"], "done")
        self.is_said(d, "no caller waits", 0)

    def test_an_ack_that_is_lost_is_said_again(self):
        for is_told in True, False:
            with self.subTest(is_told=is_told):
                d, line = self.meet()
                n, ask = self.ask(d, line)
                line.say(result(ask), accepted(ask))
                line.expect("delegation.ack")
                self.assertEqual(d.end(n)["text"], "done")
                line.cut()
                line = self.again(*([result(ask)] if is_told else []))
                line.ack_of(ask)
                if is_told:
                    self.drain_acks(d, line, ask)
                else:
                    self.is_quiet(d, line)
                self.part(d, line)

    def drain_acks(self, d, line, ask):
        """Once more is allowed: of what was told, and of what was lost."""
        n = d.begin("call", method="mark", params={})
        while (m := line.hear())["method"] != "mark":
            self.assertEqual(m["method"], "delegation.ack")
            self.assertEqual(m["params"]["original_id"], ask["id"])
            line.say(answer(m, status="ok"))
        line.say(answer(m))
        d.end(n)

    def test_an_ack_that_is_refused_harms_nothing(self):
        d, line = self.meet()
        n, ask = self.ask(d, line)
        line.say(accepted(ask), result(ask))
        line.say(refusal(line.expect("delegation.ack"), "not_found"))
        self.assertEqual(d.end(n)["text"], "done")
        self.is_quiet(d, line)

    # Connections that break.

    def test_what_was_not_answered_is_sent_again_as_it_was(self):
        d, line = self.meet()
        n, ask = self.ask(d, line, session_id="s-1")
        for _ in range(2):
            line.cut()
            line = self.again()
            self.assertEqual(line.expect("agent.send_task"), ask)
        line.say(accepted(ask), result(ask))
        line.ack_of(ask)
        self.assertEqual(d.end(n)["text"], "done")

    def test_what_was_answered_is_not_sent_again(self):
        for behind in True, False:
            with self.subTest(behind=behind):
                d, line = self.meet()
                n, ask = self.ask(d, line)
                line.say(accepted(ask))
                d.event("accepted", task=task_of(ask))
                line.cut()
                line = self.again(*([result(ask)] if behind else []))
                if not behind:
                    self.is_quiet(d, line)
                    line.say(result(ask))
                line.ack_of(ask)
                self.assertEqual(d.end(n)["text"], "done")
                self.is_quiet(d, line)
                self.part(d, line)

    def test_what_has_its_result_is_not_sent_again(self):
        d, line = self.meet()
        n, ask = self.ask(d, line)
        line.say(result(ask))  # and no answer
        line.ack_of(ask)
        self.assertEqual(d.end(n)["text"], "done")
        line.cut()
        self.is_quiet(d, self.again())

    def test_what_is_delegated_meanwhile_goes_when_it_is_back(self):
        d, line = self.meet()
        line.cut()
        line = self.hub.accept()
        n = d.begin("delegate", agent="bob", skill="talk", message="later")
        line.register("parrot")
        ask = line.expect("agent.send_task")
        line.say(result(ask), accepted(ask))
        line.ack_of(ask)
        self.assertEqual(d.end(n)["text"], "done")

    def test_it_survives_many_breaks(self):
        d, line = self.meet()
        n, ask = self.ask(d, line)
        line.say(accepted(ask))
        d.event("accepted")
        for _ in range(5):
            line.cut()
            line = self.again()
        line.say(result(ask))
        line.ack_of(ask)
        self.assertEqual(d.end(n)["text"], "done")

    def test_what_the_server_is_not_sure_of_is_sent_again(self):
        d, line = self.meet()
        n, ask = self.ask(d, line)
        line.say(refusal(ask, "outcome_unknown"))
        self.assertEqual(line.expect("agent.send_task"), ask)
        line.say(accepted(ask), result(ask))
        line.ack_of(ask)
        self.assertEqual(d.end(n)["text"], "done")

    # What goes wrong.

    def test_what_is_refused_is_told(self):
        d, line = self.meet()
        for code in "agent_not_found", "delegation_not_allowed", "id_in_use", \
                "too_many_delegations", "insufficient_funds":
            n, ask = self.ask(d, line)
            line.say(refusal(ask, code, "not so"))
            e = self.refused(code, d.end, n)
            self.assertEqual(e.message, "not so")
        self.is_quiet(d, line)

    def test_its_time_is_limited(self):
        """A result that comes later is taken, so that it is not told for
        ever."""
        d, line = self.meet()
        n, ask = self.ask(d, line, timeout_ms=100)
        self.assertEqual(ask["params"]["timeoutMs"], 100)
        self.refused("timeout", d.end, n)
        line.say(accepted(ask), result(ask))
        line.ack_of(ask)
        self.is_said(d, "too late")
        n, ask = self.ask(d, line, timeout_ms=100)  # not answered
        self.refused("timeout", d.end, n)
        line.cut()
        self.is_quiet(d, self.again())  # and not sent again

    def test_what_comes_too_late_goes_to_the_hook(self):
        d, line = self.meet(hook={})
        n, ask = self.ask(d, line, timeout_ms=50)
        line.say(accepted(ask))
        self.refused("timeout", d.end, n)
        line.say(result(ask))
        self.assertEqual(d.event("delegated")["text"], "done")
        line.ack_of(ask)

    def test_who_leaves_says_what_was_had(self):
        d, line = self.meet()
        n, ask = self.ask(d, line)
        line.say(accepted(ask), result(ask))
        d.end(n)
        leaving = d.begin("close")
        line.ack_of(ask)
        line.bye()
        d.end(leaving)

    # Of another life.

    def stranger(self, number="8-4-2-1"):
        return {"id": number}

    def test_what_nobody_knows_is_left_with_the_server(self):
        other = self.stranger()
        d, line = self.meet(behind=[result(other)])
        self.is_quiet(d, line)
        line.say(result(other), failed(self.stranger("9-9")))
        self.is_quiet(d, line)
        self.is_said(d, "no caller waits for it", 2)  # of each, once
        self.is_said(d, self.hook, 2)

    def test_what_nobody_knows_goes_to_the_hook(self):
        other = self.stranger()
        d, line = self.meet(hook={"hold": True}, behind=[result(other, "old")])
        got = d.event("delegated")
        self.assertEqual((got["text"], got["original_id"], got["task_id"]),
                         ("old", "8-4-2-1", task_of(other)))
        if self.can_hold:
            self.is_quiet(d, line)  # it is not had yet
            line.say(result(other, "old"))
            self.is_quiet(d, line)
            d.do("unhook")
        line.ack_of(other)
        line.say(result(other, "old"))  # it was not heard
        line.ack_of(other)
        self.assertFalse(d.has("delegated"))

    can_hold = True  # its hook may take its time

    def test_what_the_hook_could_not_do_is_told_again(self):
        other = self.stranger()
        d, line = self.meet(hook={"fails": 1}, behind=[result(other)])
        d.event("delegated")
        self.is_quiet(d, line)
        line.say(failed(other))
        self.assertEqual(d.event("delegated")["status"], "failed")
        line.ack_of(other)

    def test_ids_are_nobody_elses(self):
        seen = set()
        for _ in range(2):
            d, line = self.meet()
            asks = [self.ask(d, line, f"m {i}") for i in range(3)]
            seen |= {ask["id"] for _, ask in asks}
            for n, ask in asks:
                line.say(result(ask), accepted(ask))
                line.ack_of(ask)
                d.end(n)
            self.part(d, line)
        self.assertEqual(len(seen), 6)
        self.assertTrue(all(isinstance(i, str) for i in seen))

    # All that is said.

    def test_what_is_asked_is_what_is_sent(self):
        d, line = self.meet()
        n, ask = self.ask(d, line, "h\u00e9llo \U0001f99c")
        self.assertEqual(ask["params"], {
            "agent_id": "bob", "skill_id": "talk",
            "message": "h\u00e9llo \U0001f99c"})
        line.say(result(ask), accepted(ask))
        line.ack_of(ask)
        d.end(n)
        more = {"session_id": "s-1", "task_id": "task_7",
                "parent_task_id": "task_1", "timeout_ms": 90000}
        n, ask = self.ask(d, line, "on", **more)
        more["timeoutMs"] = more.pop("timeout_ms")
        self.assertEqual(ask["params"], {
            "agent_id": "bob", "skill_id": "talk", "message": "on", **more})
        line.say(result(ask), accepted(ask))
        line.ack_of(ask)
        d.end(n)
        for most in (0, 5_000_000):
            n, ask = self.ask(d, line, "on", max_cost_micros=most)
            self.assertEqual(ask["params"], {
                "agent_id": "bob", "skill_id": "talk", "message": "on",
                "max_cost_micros": most})
            line.say(result(ask), accepted(ask))
            line.ack_of(ask)
            d.end(n)

    def test_a_handler_delegates_on_behalf_of_its_task(self):
        d, line = self.meet()
        for number, verb in enumerate(self.verbs, 1):
            with self.subTest(verb):
                task = f"task_{number}"
                line.say({"jsonrpc": "2.0", "id": f"x-{number}",
                          "method": "task.execute", "params": {
                              "task_id": task, "turn": 1, "attempt": 1,
                              "message": f"{verb} bob talk hello there",
                              "session_id": "s", "metadata": {}}})
                heard = [line.hear(), line.hear()]
                ask, = [m for m in heard if "method" in m]
                self.assertEqual(ask["params"], {
                    "agent_id": "bob", "skill_id": "talk",
                    "message": "hello there", "parent_task_id": task,
                    "session_id": "s"})
                line.say(result(ask, "hi"), accepted(ask))
                heard = {m["method"]: m for m in (line.hear(), line.hear())}
                self.assertEqual(
                    heard["task.result"]["params"]["text"], "bob said hi")
                for m in heard.values():
                    line.say(answer(m, status="ok"))

    verbs = ("hire",)

    def test_a_session_takes_one_at_a_time(self):
        """What a handler gives beside one is done beside it, so it is in no
        session; once both are over the session is free again."""
        d, line = self.meet()
        line.say({"jsonrpc": "2.0", "id": "x-1", "method": "task.execute",
                  "params": {"task_id": "task_1", "turn": 1, "attempt": 1,
                             "message": "hireboth bob talk hello",
                             "session_id": "s", "metadata": {}}})

        def asked():
            while (m := line.hear()).get("method") != "agent.send_task":
                if "method" in m:
                    line.say(answer(m, acked=True))
            self.assertEqual(m["params"]["parent_task_id"], "task_1")
            return m, m["params"].get("session_id")
        first, second = asked(), asked()
        self.assertEqual({first[1], second[1]}, {"s", None})
        for m, _ in (first, second):
            line.say(result(m, "hi"), accepted(m))
        last, session = asked()
        self.assertEqual(session, "s")
        line.say(result(last, "bye"), accepted(last))
        while (m := line.hear()).get("method") != "task.result":
            line.say(answer(m, acked=True))
        self.assertEqual(m["params"]["text"], "hi bye")
        line.say(answer(m, status="ok"))

    def test_many_at_once(self):
        d, line = self.meet()
        asks = [self.ask(d, line, f"m {i}") for i in range(16)]
        line.say(*itertools.chain(*(
            (result(ask, f"r {i}"), accepted(ask))
            for i, (_, ask) in reversed(list(enumerate(asks))))))
        self.assertEqual([d.end(n)["text"] for n, _ in asks],
                         [f"r {i}" for i in range(16)])
        acked = [line.expect("delegation.ack") for _ in asks]
        self.assertEqual({m["params"]["original_id"] for m in acked},
                         {ask["id"] for _, ask in asks})
        line.say(*(answer(m, status="ok") for m in acked))
        self.is_quiet(d, line)

    def test_words_come_with_the_name_of_who_says_them(self):
        d, line = self.meet()
        n, one = self.ask(d, line, "one", chunks=True)
        self.assertEqual(one["params"].get("stream"), True)
        other, two = self.ask(d, line, "two", chunks=True)
        for ask, text in (one, "a"), (two, "b"), (one, "c"):
            line.say(tell("delegation.chunk", original_id=ask["id"],
                          task_id=task_of(ask), agent="bob", text=text))
        for message, text in ("one", "a"), ("two", "b"), ("one", "c"):
            e = d.event("words")
            self.assertEqual((e["of"], e["agent"], e["text"]),
                             (message, "bob", text))
        for m, ask in (n, one), (other, two):
            line.say(result(ask), accepted(ask))
            line.ack_of(ask)
            self.assertEqual(d.end(m)["text"], "done")
        line.say(tell("delegation.chunk", sessionKey="del_1", agent="x",
                      task_id="task_1", text="other's"))
        self.is_quiet(d, line)

    # The tool.

    hears_alone = True  # a use of the tool hears what is said in it

    def test_the_tool(self):
        d, line = self.meet(hook=None if self.hears_alone else {})
        one = {"agentId": "bob", "task": "knit", "mode": "sync",
               "timeoutMs": 5000, "stream": True}
        n = d.begin("tool", order=one)
        ask = line.expect("agent.delegate")
        self.assertEqual(ask["params"], one)
        line.say(tell("delegation.chunk", sessionKey="del_1", agent="bob",
                      task_id="task_1", text="a scarf"))
        e = d.event("words")
        self.assertEqual((e["agent"], e["text"]), ("bob", "a scarf"))
        said = {"status": "completed", "response": "a scarf",
                "sessionKey": "del_1", "task_id": "task_1"}
        line.say(answer(ask, **said))
        self.assertEqual(d.end(n), said)

        many = [{"agentId": f"a{i}", "task": "knit"} for i in range(16)]
        n = d.begin("tool", order=many)
        ask = line.expect("agent.delegate")
        self.assertEqual(ask["params"], {"tasks": many})
        line.say(answer(ask, results=[{**said, "task_id": str(i)}
                                      for i in range(16)]))
        self.assertEqual([r["task_id"] for r in d.end(n)],
                         [str(i) for i in range(16)])
        n = d.begin("tool", order=one)
        line.say(refusal(line.expect("agent.delegate"), "not_allowed"))
        self.refused("not_allowed", d.end, n)
        n = d.begin("delegation", key="del_1")
        line.say(answer(line.expect("delegation.get"), **said))
        self.assertEqual(d.end(n), said)

    def test_the_tool_is_not_used_twice(self):
        """Said again, it would be another delegation."""
        d, line = self.meet()
        n = d.begin("tool", order={"agentId": "bob", "task": "knit"})
        line.expect("agent.delegate")
        line.cut()
        self.refused("disconnected", d.end, n)
        self.is_quiet(d, self.again())

    def test_what_comes_of_an_async_one_goes_to_the_hook(self):
        d, line = self.meet(hook={})
        n = d.begin("tool", order={"agentId": "bob", "task": "knit",
                                  "mode": "async"})
        said = {"status": "accepted", "sessionKey": "del_1", "task_id": "t-1"}
        over = tell("delegation.result", sessionKey="del_1", task_id="t-1",
                    status="completed", text="a scarf", metadata={})
        line.say(over, answer(line.expect("agent.delegate"), **said))
        self.assertEqual(d.end(n), said)
        got = d.event("delegated")
        self.assertEqual((got["text"], got["sessionKey"]),
                         ("a scarf", "del_1"))
        m = line.expect("delegation.ack")
        self.assertEqual(m["params"], {"sessionKey": "del_1",
                                       "task_id": "t-1"})
        line.say(answer(m, status="ok"))
        self.is_quiet(d, line)

    # For the requester of the first one.

    def test_words_of_others_are_no_part_of_the_answer(self):
        d = self.driver()
        n = d.begin("connect", url=self.hub.url, token="sbx_1", options=QUICK)
        line = self.hub.accept()
        d.end(n)
        n = d.begin("send", text="hello", chunks=True, asides=True,
                    options={"to": "parrot"})
        ask = line.expect("message.send")
        line.say(answer(ask, task_id="t-1", agent="parrot", status="queued"))
        for agent, text in (None, "Let me ask. "), ("bob", "I knit"), \
                ("parrot", "So."), ("bob", " scarves"):
            more = {"agent": agent} if agent else {}
            line.say(tell("task.chunk", task_id="t-1", text=text, **more))
        line.say(tell("task.result", task_id="t-1", status="completed",
                      agent="parrot", text="Let me ask. So. That is all.",
                      metadata={}))
        got = d.end(n)
        self.assertEqual("".join(got["pieces"]), got["text"])
        self.assertEqual(
            [(e["agent"], e["text"]) for e in d.events
             if e["event"] == "aside"], [("bob", "I knit"),
                                         ("bob", " scarves")])


class Planted:
    """Who registers a delegation when its answer is there, and not before it
    is sent, does not pass the race: it is caught by the test."""

    def test_the_mistake_is_caught(self):
        self.race("accepted, result")
        for order in "result, accepted", "result+accepted":
            with self.subTest(order), self.assertRaises(
                    (Wrong, AssertionError)):
                self.race_soon(order)

    def race_soon(self, order):
        """As race, but does not wait for what will never come."""
        d, line = self.meet()
        n, ask = self.ask(d, line, timeout_ms=2000)
        for write in writes(order, ask, result(ask)):
            line.say(*write)
        try:
            got = d.end(n)
        except Refused as e:
            raise AssertionError(e.code) from e
        self.assertEqual(got["text"], "done")
