"""signalbox send, when it does not go well at once: what is tried again and
what is not, and what is said meanwhile."""
import unittest

from client import OK, REFUSED, Client
from raw_server import RawServer

DONE = {"task_id": "task_" + "0" * 26, "status": "completed", "text": "yes"}


class Again(Client):
    def against(self, *answers):
        """A server that gives one answer after the other, and then the last
        one for ever."""
        def next_one(call):
            status, body = left.pop(0) if len(left) > 1 else left[0]
            if isinstance(body, dict):
                call.json(body, status)
            else:
                call.answer(status, body)

        left = list(answers)
        raw = RawServer(next_one)
        raw.__enter__()
        self.addCleanup(raw.__exit__, None, None, None)
        self.env["SIGNALBOX_URL"] = raw.url
        self.env["SIGNALBOX_TOKEN"] = "sbx_1"
        return raw

    @staticmethod
    def refusal(code, words, status="503 Busy"):
        return status, {"error": {"code": code, "message": words}}

    def test_an_agent_that_does_not_run_is_told_at_once(self):
        self.server(agents=[{"id": "away"}])
        for how in [], ["--stream"], ["--no-wait"]:
            err = self.bad(REFUSED, "send", "hi", "--to", "away", *how)
            self.assertRegex(err, "away.* not connected")
        _, out = self.on_terminal("send", "hi", "--to", "away")
        self.assertNotIn("try 2", out)

    def test_what_is_not_the_servers_own_trouble_is_final(self):
        for code in ("agent_busy", "agent_offline", "agent_did_not_wake",
                     "query_too_slow", "of_a_newer_server"):
            raw = self.against(self.refusal(code, "not so"))
            self.assertIn("not so", self.run_it("send", "x", "--to", "a")[2])
            self.assertEqual(len(raw.calls), 1, code)

    def test_what_passes_is_tried_again_and_its_words_are_shown(self):
        for code in "overloaded", "stopping", "out_of_memory", "no_reply":
            raw = self.against(self.refusal(code, "come again"),
                               ("200 OK", DONE))
            status, out = self.on_terminal("send", "x", "--to", "a")
            self.assertEqual((status, len(raw.calls)), (OK, 2), out)
            self.assertIn("come again", out)
            self.assertNotIn("does not answer", out)
            self.assertEqual(*[c.body["idempotency_key"] for c in raw.calls])

    def test_a_proxy_without_a_server_is_tried_again(self):
        raw = self.against(("503 Missing", "<h1>Missing here</h1>"),
                           ("200 OK", DONE))
        status, out = self.on_terminal("send", "x", "--to", "a")
        self.assertEqual((status, len(raw.calls)), (OK, 2), out)
        self.assertIn("is not a Signalbox", out)


if __name__ == "__main__":
    unittest.main()
