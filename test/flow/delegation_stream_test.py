"""With stream the user sees the words of an agent that was hired live, marked
with its name, between those of the first: over server-sent events, the hub and
the command line. Three agents on the hub: front gives work to desk, desk to
docs."""
import contextlib
import os
import subprocess
import unittest

from hub_peer import Hub
from signalbox import DEADLINE_S, Server, metric

BIN = os.environ["SIGNALBOX_BIN"]
RING_BYTES = 256 * 1024
TEXT_MAX = 1024 * 1024


def given(agent):
    """The next task of an agent's, taken and not done."""
    message = agent.next(lambda m: m.get("method") == "task.execute")
    agent.send({"jsonrpc": "2.0", "id": message["id"],
                "result": {"status": "working"}})
    return message["params"]["task_id"]


def says(agent, task, text):
    agent.tell("task.chunk", task_id=task, text=text)


def done(agent, task, **said):
    return agent.call("task.result", task_id=task,
                      **{"status": "completed", **said})


class House(contextlib.ExitStack):
    def __enter__(self):
        self.server = self.enter_context(
            Server(config={"rate": {"perUser": 0}}))
        self.anna = self.server.user("anna")
        for name in "front", "desk", "docs":
            agent = self.enter_context(Hub(self.server, self.anna))
            agent.register(name)
            setattr(self, name, agent)
        return self

    def asked(self):
        """A message to front as events, and its task, which front has."""
        events = self.enter_context(self.server.events(
            "/api/messages", method="POST", token=self.anna,
            body={"text": "is it safe?", "executor": {"name": "front"}}))
        return events, given(self.front)

    def hires(self, who, agent, parent, **wish):
        """The key of the delegation, and the task that agent has."""
        answer = getattr(self, who).call(
            "agent.delegate", agentId=agent, task="look", mode="async",
            parent_task_id=parent, **{"stream": True, **wish})
        return answer["sessionKey"], given(getattr(self, agent))


def next_words(events):
    """(agent, text) of the next chunk; agent is None where it is the task's
    own."""
    for _, kind, data in events:
        if kind == "chunk":
            return data.get("agent"), data["text"]
    raise AssertionError("there are no more")


def result_of(events):
    for _, kind, data in events:
        if kind == "result":
            return data
    raise AssertionError("there was no result")


class Streams(unittest.TestCase):
    def test_words_come_live_and_in_order_and_the_answer_is_its_own(self):
        with House() as h:
            events, task = h.asked()
            with h.server.events(f"/api/tasks/{task}/events",
                                 token=h.anna) as watch:
                says(h.front, task, "Let me ask. ")
                both = (events, watch)
                for e in both:
                    self.assertEqual(next_words(e), (None, "Let me ask. "))
                _, child = h.hires("front", "desk", task)
                for agent, own, text, by in (
                        (h.desk, child, "page ", "desk"),
                        (h.front, task, "Hm. ", None),
                        (h.desk, child, "four", "desk"),
                        (h.front, task, "It is.", None)):
                    says(agent, own, text)
                    for e in both:
                        self.assertEqual(next_words(e), (by, text))
                done(h.desk, child)
                done(h.front, task)
                for e in both:
                    self.assertEqual(result_of(e)["text"],
                                     "Let me ask. Hm. It is.")
            got = h.front.heard("delegation.result")
            self.assertEqual(got["text"], "page four")

    def test_from_any_depth_up_to_the_user_and_all_who_asked(self):
        with House() as h, Hub(h.server, h.anna) as user:
            root = user.call("message.send", text="is it safe?",
                             executor={"name": "front"})["task_id"]
            self.assertEqual(given(h.front), root)
            outer, child = h.hires("front", "desk", root)
            inner, below = h.hires("desk", "docs", child)
            says(h.docs, below, "chapter 4")
            chunk = user.heard("task.chunk", root)
            self.assertEqual((chunk["agent"], chunk["text"]),
                             ("docs", "chapter 4"))
            for agent, key, task in ((h.front, outer, child),
                                     (h.desk, inner, below)):
                self.assertEqual(agent.heard("delegation.chunk"),
                                 {"sessionKey": key, "task_id": task,
                                  "agent": "docs", "text": "chapter 4"})
            says(h.front, root, "so.")
            self.assertNotIn("agent", user.heard("task.chunk", root))

    def test_where_one_is_not_streamed_words_from_below_end(self):
        with House() as h:
            events, task = h.asked()
            _, child = h.hires("front", "desk", task, stream=False)
            _, below = h.hires("desk", "docs", child)
            says(h.docs, below, "to desk alone")
            h.desk.heard("delegation.chunk")
            says(h.desk, child, "to no one")
            done(h.desk, child)
            h.front.heard("delegation.result")
            says(h.front, task, "so.")
            self.assertEqual(next_words(events), (None, "so."))

    def test_a_reader_who_stands_still_costs_the_ring_and_gets_the_result(self):
        """The user reads nothing while a hired agent says four times what is
        kept; it then reads a gap at most, what is left in its order, and the
        whole answer."""
        with House() as h:
            events, task = h.asked()
            _, child = h.hires("front", "desk", task)
            n = TEXT_MAX // 1024 - 1
            for i in range(n):
                says(h.desk, child, f"{i:06}|" * 146)
            done(h.desk, child)
            h.front.heard("delegation.result")
            self.assertLessEqual(metric(h.server, "signalbox_tasks_ring_bytes"),
                                 3 * RING_BYTES)
            done(h.front, task, text="done")
            last = -1
            for _, kind, data in events:
                if kind == "chunk":
                    self.assertEqual(data["agent"], "desk")
                    number = int(data["text"][:6])
                    self.assertGreater(number, last)
                    last = number
                if kind == "result":
                    self.assertEqual(data["text"], "done")
            self.assertEqual(last, n - 1)

    def test_one_that_hears_of_them_later_begins_where_it_was(self):
        with House() as h:
            events, task = h.asked()
            _, child = h.hires("front", "desk", task)
            says(h.desk, child, "one")
            for id, kind, data in events:
                if kind == "chunk":
                    break
            events.close()
            says(h.desk, child, "two")
            h.front.heard("delegation.chunk")
            h.front.heard("delegation.chunk")
            with h.server.events(f"/api/tasks/{task}/events", after=id,
                                 token=h.anna) as again:
                self.assertEqual(next_words(again), ("desk", "two"))

    def test_the_command_line_shows_who_said_what(self):
        with House() as h:
            p = subprocess.Popen(
                [BIN, "send", "is it safe?", "--to", "front", "--stream"],
                env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent",
                     "SIGNALBOX_URL": h.server.url,
                     "SIGNALBOX_TOKEN": h.anna},
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE)
            self.addCleanup(p.stdout.close)
            self.addCleanup(p.stderr.close)
            self.addCleanup(p.wait)
            task = given(h.front)
            says(h.front, task, "Let me ask.\n")
            self.assertEqual(p.stdout.readline(), b"Let me ask.\n")
            _, child = h.hires("front", "desk", task)
            says(h.desk, child, "page four\n")
            self.assertEqual(p.stdout.readline(), b"desk: page four\n")
            done(h.desk, child)
            done(h.front, task, text="Let me ask.\nIt is safe.")
            out, err = p.communicate(timeout=DEADLINE_S)
            self.assertEqual((p.returncode, out, err),
                             (0, b"It is safe.\n", b""))


if __name__ == "__main__":
    unittest.main()
