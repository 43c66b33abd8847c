"""signalbox send when it is not clear which agent is meant: at a terminal the
nearest are offered, and a program is asked nothing. And decisions that are
unsure or reached no agent, as a list and one by one; the answers are canned,
so that no test hangs on what a model thinks of a text."""
import http.server
import json
import os
import pty
import select
import signal
import subprocess
import threading
import unittest

from client import BIN, OK, REFUSED, Client
from signalbox import DEADLINE_S

FLEET = [{"id": "devops", "url": "echo:",
          "description": "keeps prod up. deploys, kubernetes, on call"},
         {"id": "backend", "url": "echo:",
          "description": "our Go api and the postgres db"},
         {"id": "billing", "url": "echo:",
          "description": "invoices, refunds, failed card payments"},
         {"id": "support", "url": "echo:",
          "description": "answers customer tickets"}]
TEXT = "which of these forms is for the new chairs"
REFUSES = {"routing": {"threshold": 1}}
ID = "dec_01m7jtxhhd1fb46fyyv9z3ez6z"


class Terminal:
    """A command on a terminal, and what is typed there."""

    def __init__(self, test, *args, stdin=None):
        self.ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [BIN, *args], cwd=test.home, stdin=stdin or theirs, stdout=theirs,
            stderr=theirs, env={**test.env, "TERM": "xterm",
                                "LANG": "C.UTF-8"})
        os.close(theirs)
        self.got = ""

    def read(self):
        ready, _, _ = select.select([self.ours], [], [], DEADLINE_S)
        if not ready:
            raise AssertionError(f"nothing came: {self.got!r}")
        more = os.read(self.ours, 4096).decode().replace("\r\n", "\n")
        self.got += more
        return more

    def until(self, words):
        while words not in self.got:
            self.read()
        return self.got

    def type(self, text):
        os.write(self.ours, text.encode())

    def end(self):
        try:
            while self.read():
                pass
        except OSError:
            pass
        os.close(self.ours)
        return self.process.wait(DEADLINE_S)


class Canned(http.server.BaseHTTPRequestHandler):
    """A server that gives `answers[path]`; a list: one after the other. What
    it was sent is in `bodies`."""
    answers, bodies = {}, []

    def log_message(self, *args):
        pass

    def reply(self):
        n = int(self.headers.get("Content-Length") or 0)
        if n:
            self.bodies.append(json.loads(self.rfile.read(n)))
        answer = self.answers[self.path.split("?")[0]]
        if isinstance(answer, list):
            answer = answer.pop(0)
        status, body = answer if isinstance(answer, tuple) else (200, answer)
        body = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = reply


def candidate(agent, semantic, floor):
    return {"agent": agent, "score": semantic, "semantic": semantic,
            "performance": 0.5, "keyword": 0, "recency": 0,
            "best_skill_id": None, "floor": floor}


NEAR = [candidate("devops", 0.31, 0.36), candidate("backend", 0.22, 0.34),
        candidate("support", 0.2, 0.35), candidate("billing", 0.1, 0.35)]


def decision(**more):
    return {"id": ID, "layer": "semantic", "agent": "devops", "skill": None,
            "score": 0.31, "threshold": 0.36, "margin": 0.09,
            "band": "unsure", "unsure": True, "reason": "it came nearest",
            "gate": "ROUTE_IMMEDIATELY", "at_ms": 1, "task_id": None,
            "requester": "admin", "text": TEXT, "verdict": "open",
            "considered": 4, "candidates": NEAR, "decide_us": 43,
            "rules": {"auto": True, "alpha": 0.5, "n": 4}, **more}


NONE = decision(layer="none", agent=None, score=None, margin=None,
                band="out_of_scope", unsure=False, gate=None,
                reason="no agent does what this message asks for")


def answer(agent, **more):
    return {"message_id": "m", "task_id": "task_01m7jtxhhd1fb46fyyv9z3ez72",
            "conversation_id": "c", "status": "completed", "agent": agent,
            "text": f"said by {agent}", "error": None,
            "decision": decision(**more)}


SURE = answer("backend", layer="explicit", unsure=False, band=None,
              candidates=[])


class Offer(Client):
    def canned(self, **answers):
        class Handler(Canned):
            pass
        Handler.answers = {"/api/" + k: v for k, v in answers.items()}
        Handler.bodies = []
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.env["SIGNALBOX_URL"] = f"http://127.0.0.1:{server.server_port}"
        self.env["SIGNALBOX_TOKEN"] = "sbx_" + "0" * 52
        return Handler

    def fleet(self, **config):
        return self.server(agents=None,
                           config={"agents": {"list": FLEET}, **config})

    # A refusal.

    def test_after_a_refusal_a_number_sends_it_to_that_agent(self):
        box = self.fleet(**REFUSES)
        t = Terminal(self, "send", TEXT)
        t.until("; Enter: none\n> ")
        names = [line for line in t.got.splitlines() if "1 " in line][-1]
        self.assertRegex(names, r"^Send it to: 1 \w+  2 \w+  3 \w+; Enter")
        second = names.split("2 ")[1].split()[0]
        t.type("2\n")
        self.assertEqual(t.end(), OK)
        [task] = box.call("GET", "/api/tasks").json()["items"]
        self.assertEqual((task["agent"], task["text"]), (second, TEXT))
        self.assertIn(TEXT, t.got.split("> ")[1])
        # The command that is named there teaches it.
        [made] = box.call("GET", "/api/decisions?layer=none").json()["items"]
        command = ["decisions", "override", made["id"], second]
        self.assertIn("\nTo send similar messages there in future: signalbox "
                      + " ".join(command) + "\n", t.got)
        self.assertIn("should have gone to " + second, self.good(*command))

    def test_enter_sends_it_to_none(self):
        box = self.fleet(**REFUSES)
        for typed in ("\n", "\x04"):
            t = Terminal(self, "send", TEXT)
            t.until("Enter: none\n> ")
            t.type(typed)
            self.assertEqual(t.end(), REFUSED)
        self.assertEqual(box.call("GET", "/api/tasks").json()["items"], [])

    def test_another_word_is_asked_for_again_three_times(self):
        box = self.fleet(**REFUSES)
        t = Terminal(self, "send", TEXT)
        for n, typed in enumerate(["0", "4", "9" * 200], 1):
            while t.got.count("Enter: none\n> ") < n:
                t.read()
            t.type(typed + "\n")
        self.assertEqual(t.end(), REFUSED)
        self.assertEqual(t.got.count("enter a number from 1 to 3, or only"), 3)
        self.assertEqual(box.call("GET", "/api/tasks").json()["items"], [])

    def test_ctrl_c_at_the_question_sends_nothing(self):
        box = self.fleet(**REFUSES)
        t = Terminal(self, "send", TEXT)
        t.until("Enter: none\n> ")
        t.process.send_signal(signal.SIGINT)
        self.assertNotEqual(t.end(), OK)
        self.assertEqual(box.call("GET", "/api/tasks").json()["items"], [])

    def test_a_program_is_asked_nothing(self):
        self.fleet(**REFUSES)
        for args in ([], ["--json"], ["--stream"], ["--no-wait"]):
            with self.subTest(args):
                status, out, err = self.run_it("send", TEXT, *args)
                self.assertEqual(status, REFUSED)
                self.assertNotIn("Enter: none", out + err)
        # The same on a terminal.
        for args in (["--json"], ["--to", "no-such-agent"]):
            with self.subTest(args):
                t = Terminal(self, "send", TEXT, *args)
                self.assertEqual(t.end(), REFUSED)
                self.assertNotIn("Enter: none", t.got)
        # One end of it is none.
        t = Terminal(self, "send", TEXT, stdin=subprocess.DEVNULL)
        self.assertEqual(t.end(), REFUSED)
        self.assertNotIn("Enter: none", t.got)
        status, out = self.on_terminal("send", TEXT,
                                       stdout=subprocess.DEVNULL)
        self.assertEqual(status, REFUSED)
        self.assertNotIn("Enter: none", out)

    def test_where_no_agent_came_near_there_is_no_question(self):
        self.server(agents=None, config={})
        t = Terminal(self, "send", TEXT)
        self.assertEqual(t.end(), REFUSED)
        self.assertNotIn("Enter: none", t.got)

    # An unsure answer.

    def test_an_unsure_answer_says_so_and_offers_the_others(self):
        box = self.canned(messages=[answer("devops"), SURE])
        t = Terminal(self, "send", TEXT, "--wait", "1000")
        t.until("Enter: none\n> ")
        self.assertIn("said by devops", t.got)
        self.assertIn("unsure: the message may be for another agent. To "
                      f"correct it:\n  signalbox decisions override {ID} "
                      "AGENT\n", t.got)
        self.assertIn("Send it to: 1 backend  2 support  3 billing; Enter",
                      t.got)
        t.type("1\n")
        self.assertEqual(t.end(), OK)
        self.assertIn("said by backend\n\n"
                      "To send similar messages there in future: "
                      f"signalbox decisions override {ID} backend\n", t.got)
        first, second = box.bodies
        self.assertEqual((first.get("executor"), second["executor"]),
                         (None, {"name": "backend"}))
        self.assertEqual(first["text"], second["text"])
        # With the same key the server would give the first answer again.
        self.assertNotEqual(first["idempotency_key"],
                            second["idempotency_key"])

    def test_without_a_recorded_decision_there_is_nothing_to_teach(self):
        refusal = {"error": {"code": "no_route", "message": "no agent",
                             "details": {"candidates": NEAR}}}
        self.canned(messages=[(422, refusal), SURE])
        t = Terminal(self, "send", TEXT, "--wait", "1000")
        t.until("Enter: none\n> ")
        t.type("2\n")
        self.assertEqual(t.end(), OK)
        self.assertIn("said by backend", t.got)
        self.assertNotIn("from now on", t.got)

    def test_a_script_is_told_on_one_line_that_it_is_unsure(self):
        line = ("signalbox send: unsure: the message may be for another agent "
                "than devops. To correct it: signalbox decisions override "
                f"{ID} AGENT\n")
        self.canned(messages=answer("devops"))
        self.assertEqual(self.run_it("send", TEXT),
                         (OK, "said by devops\n", line))
        self.assertEqual(self.run_it("send", TEXT, "--no-wait"),
                         (OK, answer("devops")["task_id"] + "\n", line))
        self.assertEqual(self.lines("send", TEXT), [answer("devops")])
        self.canned(messages=dict(answer("devops"), status="held"))
        status, out, err = self.run_it("send", TEXT)
        self.assertTrue(err.startswith(line + "signalbox send: no answer yet"),
                        err)
        self.canned(messages=SURE)
        self.assertEqual(self.good("send", TEXT), "said by backend\n")

    def test_an_answer_that_is_sure_asks_nothing(self):
        self.canned(messages=SURE)
        t = Terminal(self, "send", TEXT, "--wait", "1000")
        self.assertEqual(t.end(), OK)
        self.assertNotIn("unsure", t.got)
        self.assertNotIn("Enter: none", t.got)

    def test_with_a_key_of_the_caller_s_an_unsure_answer_asks_nothing(self):
        self.canned(messages=answer("devops"))
        t = Terminal(self, "send", TEXT, "--wait", "1000", "--key", "mine")
        self.assertEqual(t.end(), OK)
        self.assertIn("unsure: the message may be", t.got)
        self.assertNotIn("Enter: none", t.got)

    def test_a_name_that_steers_a_terminal_is_tamed(self):
        evil = candidate("a\x1b[2Jb", 0.3, None)
        self.canned(messages=answer("devops", candidates=[evil]))
        t = Terminal(self, "send", TEXT, "--wait", "1000")
        t.until("Enter: none\n> ")
        self.assertNotIn("\x1b[2J", t.got)
        t.type("\n")
        self.assertEqual(t.end(), OK)

    def test_the_feed_marks_what_was_unsure_and_nothing_else(self):
        box = self.fleet(routing={"unsure": "best"})
        seen = {}
        for text in (TEXT, "kubernetes deploys, prod is down, on call",
                     "what is the capital of France?", "is it going to rain",
                     "tell me a story", "who won the cup final",
                     "book a table for two", "my knee hurts"):
            said = box.call("POST", "/api/messages",
                            {"text": text, "wait_ms": 30000})
            if said.status == 422:  # out of scope
                continue
            made = said.json()["decision"]
            feed = box.call("GET", "/api/feed?last=50").json()["items"]
            [data] = [e["data"] for e in feed if e["type"] == "task.accepted"
                      and e["data"]["decision_id"] == made["id"]]
            self.assertEqual(data.get("unsure", False), made["unsure"])
            seen[made["unsure"]] = data
        self.assertEqual(set(seen), {True, False}, seen)

    def test_the_lines_of_the_feed_say_what_was_unsure_or_refused(self):
        def entry(seq, kind, **data):
            return {"seq": seq, "at_ms": 1, "type": kind, "task_id": None,
                    "conversation_id": None, "agent": None,
                    "requester": "anna", "root_user": "anna", "data": data}

        def refusal(seq, code, band, nearest):
            return entry(seq, "message.refused", decision_id=ID, code=code,
                         band=band, nearest=nearest)

        self.canned(feed={"next_after": 6, "items": [
            refusal(1, "no_route", "unsure", "frontend"),
            refusal(2, "no_route", "out_of_scope", None),
            refusal(3, "no_route", None, None),
            refusal(4, "agent_not_found", None, "frontend"),
            entry(5, "learning.voided", of="user:bob"),
            dict(entry(6, "task.accepted", unsure=True), agent="devops")]})
        lines = self.good("feed").splitlines()
        self.assertEqual(len(lines), 6)
        for line, words in zip(lines, [
                f"message.refused +{ID}: unsure, nearest frontend",
                f"message.refused +{ID}: out of scope",
                f"message.refused +{ID}: no agent available",
                f"message.refused +{ID}: no such agent, nearest "
                "frontend",
                "learning.voided +user:bob",
                "task.accepted +devops from anna, unsure"]):
            self.assertRegex(line, f" {words}$")

    # Decisions.

    def test_the_list_marks_the_unsure_and_what_reached_no_agent(self):
        self.canned(decisions={"items": [decision(), NONE],
                               "next_cursor": None})
        out = self.good("decisions").splitlines()
        self.assertRegex(out[1], rf"^{ID}  semantic, unsure  devops +0\.310")
        self.assertRegex(out[2], rf"^{ID}  none +no agent +- ")
        _, out = self.on_terminal("decisions")  # 80 columns, without LAYER
        self.assertIn("devops ?", out)
        self.assertIn("no agent", out)

    def test_an_unsure_decision_is_shown_with_its_floor(self):
        self.canned(**{f"decisions/{ID}": decision()})
        out = self.good("decisions", "show", ID)
        for line in ("  band          unsure: the message may be for another",
                     "  semantic      0.310, floor 0.360 (one of 4 age",
                     "  decided in    43 us\n"):
            self.assertIn("\n" + line, out)

    def test_a_confident_decision_below_its_floor_says_what_decided(self):
        taught = [dict(NEAR[0], taught=True)] + NEAR[1:]
        for words, more in [
                ("(one of 4 agents); the lead over the next agent", {}),
                ("; a correction of this text decided",
                 {"example": True, "candidates": taught}),
                ("; corrections of similar texts decided", {"example": True}),
                ("; the only agent gets every message",
                 {"considered": 1, "candidates": NEAR[:1],
                  "rules": {"auto": True, "alpha": 0.2, "n": 1}})]:
            with self.subTest(words):
                self.canned(**{f"decisions/{ID}": decision(
                    band="confident", unsure=False, **more)})
                out = " ".join(self.good("decisions", "show", ID).split())
                self.assertIn("0.310, floor 0.360", out)
                self.assertIn(words, out)
                self.assertEqual("the lead over" in out, not more, out)

    def test_a_decision_for_no_agent_is_shown_with_the_nearest(self):
        self.canned(**{f"decisions/{ID}": NONE})
        out = self.good("decisions", "show", ID)
        self.assertTrue(out.startswith(f"{ID}  no agent\n"), out)
        for line in ("  nearest       devops\n",
                     "  layer         none: the message was refused\n",
                     "  band          out of scope: no agent does what the "):
            self.assertIn("\n" + line, out)
        self.assertNotIn("score  ", out.split("AGENT")[0])

    def test_a_refusal_is_shown_in_the_words_of_the_command_line(self):
        self.fleet(**REFUSES)
        self.bad(REFUSED, "send", TEXT)
        [made] = self.lines("decisions")
        self.assertIn("executor.name", made["reason"])
        out = self.good("decisions", made["id"])
        self.assertIn("name one with --to NAME", " ".join(out.split()))
        self.assertNotIn("executor.name", out)

    def test_an_unknown_floor_is_called_that(self):
        near = [dict(c, floor=None) for c in NEAR]
        self.canned(**{f"decisions/{ID}": decision(candidates=near,
                                                   threshold=None)})
        out = self.good("decisions", "show", ID)
        self.assertIn("0.310; the floor of this agent is not known yet",
                      out)
        self.assertNotIn("inf", out)


if __name__ == "__main__":
    unittest.main()
