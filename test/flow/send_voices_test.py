"""signalbox send, when other agents speak between the words of the answer: who
said what can be seen, and the answer is what the agent said."""
import json
import unittest

from client import OK, Client
from raw_server import SSE, RawServer

TASK = "task_" + "0" * 26


class Voices(Client):
    def told(self, words, *args, text=None):
        """What is printed of such a stream: (who, what) each, "" the agent
        that answers."""
        def script(call):
            call.send(SSE)
            for agent, said in words:
                call.event("chunk", {"task_id": TASK, "turn": 1, "text": said,
                                     **({"agent": agent} if agent else {})})
            call.event("result", {"task_id": TASK, "status": "completed",
                                  "agent": "front", "text": answer})

        answer = "".join(said for who, said in words if not who)
        answer = answer if text is None else text
        with RawServer(script) as raw:
            self.env["SIGNALBOX_URL"] = raw.url
            self.env["SIGNALBOX_TOKEN"] = "sbx_1"
            return self.good("send", "x", "--to", "front", "--stream", *args)

    def test_others_have_lines_of_their_own_with_their_name(self):
        self.assertEqual(
            self.told([("", "Let me ask."), ("docs", "chapter"),
                       ("docs", " 4"), ("", "It is safe.")]),
            "Let me ask.\ndocs: chapter 4\nIt is safe.\n")

    def test_every_line_of_theirs_has_it(self):
        self.assertEqual(
            self.told([("docs", "one\ntwo\n\nth"), ("docs", "ree\n"),
                       ("", "so.\n")]),
            "docs: one\ndocs: two\ndocs:\ndocs: three\nso.\n")

    def test_the_answer_is_whole_after_them(self):
        self.assertEqual(self.told([("docs", "four")], text="Four."),
                         "docs: four\nFour.\n")
        self.assertEqual(self.told([("", "Fo"), ("docs", "4")], text="Four."),
                         "Fo\ndocs: 4\nur.\n")
        self.assertEqual(self.told([("", "Four."), ("docs", "4")]),
                         "Four.\ndocs: 4\n")

    def test_two_at_once_do_not_take_each_other_s_line_with_every_word(self):
        words = [(who, f"{who}{i} ") for i in range(100)
                 for who in ("a", "b")]
        out = self.told(words, text="done")
        lines = out.splitlines()
        self.assertEqual(lines.pop(), "done")
        self.assertLess(len(lines), 14)
        for who in "a", "b":
            self.assertEqual(
                "".join(x[3:] for x in lines if x.startswith(who + ": ")),
                "".join(f"{who}{i} " for i in range(100)))

    def test_who_begins_is_shown_before_anybody_has_ended_a_line(self):
        self.assertEqual(self.told([("a", "1"), ("b", "2"), ("c", "3")],
                                   text="done"),
                         "a: 1\nb: 2\nc: 3\ndone\n")

    def test_more_than_there_is_room_for_are_all_shown(self):
        words = [(f"agent{i}", f"word{i}") for i in range(40)] * 2
        out = self.told(words, text="done")
        for who, what in words:
            self.assertIn(f"{who}: {what}", out)
        self.assertEqual(sum(x.count("word") for x in out.splitlines()), 80)

    def test_a_name_is_no_way_to_the_terminal(self):
        self.assertNotIn("\x1b", self.told([("\x1b[31mdocs", "hi")]))

    def test_as_json_it_is_what_the_server_said(self):
        out = self.told([("docs", "4"), ("", "Four.")], "--json")
        events = [json.loads(line) for line in out.splitlines()]
        self.assertEqual([(e["event"], e["data"].get("agent"),
                           e["data"]["text"]) for e in events],
                         [("chunk", "docs", "4"), ("chunk", None, "Four."),
                          ("result", "front", "Four.")])

    def test_without_stream_a_pipe_has_the_answer_alone(self):
        def script(call):
            call.json({"task_id": TASK, "status": "completed", "text": "yes"})

        with RawServer(script) as raw:
            self.env["SIGNALBOX_URL"] = raw.url
            self.env["SIGNALBOX_TOKEN"] = "sbx_1"
            self.assertEqual(self.run_it("send", "x", "--to", "a"),
                             (OK, "yes\n", ""))


if __name__ == "__main__":
    unittest.main()
