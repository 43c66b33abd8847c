"""Review: users' public cards wait for an admin, agents are hidden, and users
report what they see."""
import json
import os
import tempfile
import unittest

from cards import error_code, names, register
from client import NOT_ALLOWED, REFUSED, USAGE, Client
from hub_peer import Hub
from signalbox import Server


class Reviews(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="signalbox-test-")
        self.addCleanup(folder.cleanup)
        self.data = os.path.join(folder.name, "data")
        self.server = self.start()
        self.addCleanup(lambda: self.server.__exit__(None))
        self.anna = self.server.user("anna", org="acme")
        self.otto = self.server.user("otto", org="other")

    def start(self, token=None):
        return Server(data=self.data, token=token,
                      config={"registry": {"review": True}})

    def kill_and_start(self):
        self.server.kill9()
        self.server.kill()
        self.server = self.start(self.server.token)

    def get(self, name, token=None):
        return self.server.call("GET", "/api/agents/" + name,
                                token=token or self.server.token)

    def put(self, name, **fields):
        return register(self.server, name, token=self.anna,
                        **{"visibility": "public", **fields}).json()

    def post(self, name, what, body=None, token=None):
        return self.server.call("POST", f"/api/agents/{name}/{what}", body,
                                token=token or self.server.token)

    def approve(self, name):
        revision = self.get(name).json()["revision"]
        got = self.post(name, "approve", {"revision": revision})
        self.assertEqual(got.status, 200, got)
        return got.json()

    def serves(self, name):
        """What a stranger gets of it, or None."""
        got = self.get(name, self.otto)
        return got.json()["description"] if got.status == 200 else None

    def finds(self, words, token):
        return names(self.server, "/api/agents/search?q=" + words,
                     token=token)

    def feed(self, token, *types):
        got = self.server.call("GET", "/api/feed?last=100", token=token)
        return [(e["type"], e["agent"]) for e in got.json()["items"]
                if e["type"] in types]

    def test_a_new_card_waits_and_serves_its_creator_meanwhile(self):
        made = self.put("clock", description="Tells the time of day")
        self.assertEqual((made["visibility"], made["review"]["state"]),
                         ("private", "waiting"))
        self.assertEqual(made["review"]["changed"], ["visibility"])
        self.assertEqual(made["review"]["card"]["visibility"], "public")
        self.assertIsNone(self.serves("clock"))
        self.assertEqual(self.finds("time", self.anna), ["clock"])
        self.assertEqual(self.finds("time", self.otto), [])
        said = self.server.call("POST", "/api/messages", {
            "text": "hi", "executor": {"name": "clock"}}, token=self.anna)
        self.assertEqual(said.status, 200, said)
        said = self.server.call("POST", "/api/messages", {
            "text": "hi", "executor": {"name": "clock"}}, token=self.otto)
        self.assertEqual(error_code(said), (404, "agent_not_found"))
        made = self.approve("clock")
        self.assertEqual(made["visibility"], "public")
        self.assertNotIn("review", made)
        self.assertEqual(self.finds("time", self.otto), ["clock"])
        self.assertEqual(self.feed(self.anna, "agent.submitted",
                                   "agent.approved"),
                         [("agent.submitted", "clock"),
                          ("agent.approved", "clock")])

    def test_a_changed_card_waits_while_the_approved_one_serves(self):
        self.put("poet", description="Writes poems", skills=[
            {"id": "ode", "name": "Odes", "description": "Writes odes",
             "pricing": {"amount_micros": 5}}])
        self.approve("poet")
        before = self.get("poet", self.otto).json()
        made = self.put("poet", description="Writes anything", skills=[
            {"id": "ode", "name": "Odes", "description": "Writes odes",
             "pricing": {"amount_micros": 5000}}])
        self.assertEqual(made["review"]["changed"], ["description", "skills"])
        self.assertEqual(made["description"], "Writes poems")
        after = self.get("poet", self.otto).json()
        before.pop("revision"), after.pop("revision")
        self.assertEqual(after, before)
        routed = self.server.call("POST", "/api/route", {
            "text": "an ode", "executor": {"name": "poet"}, "skill": "ode"},
            token=self.otto).json()
        self.assertEqual(routed["price_micros"], 5)
        self.assertEqual(self.finds("anything&mode=text", self.otto), [])
        self.kill_and_start()
        self.assertEqual(self.serves("poet"), "Writes poems")
        self.approve("poet")
        self.assertEqual(self.serves("poet"), "Writes anything")

    def test_the_feed_says_what_is_wanted_and_no_more_to_others(self):
        self.put("bard", description="Sings")
        self.approve("bard")
        self.put("bard", description="Shouts")
        got = self.server.call("GET", "/api/feed?last=1", token=self.anna)
        entry = got.json()["items"][0]
        self.assertEqual((entry["type"], entry["data"]["wanted"]),
                         ("agent.submitted", ["description"]))
        self.post("bard", "reject", {"reason": "Too loud"})
        self.put("bard", description="Hums")
        self.put("bard", description="Sings")  # as it serves
        types = ("agent.submitted", "agent.rejected", "agent.withdrawn")
        self.assertEqual(self.feed(self.anna, *types)[1:],
                         [("agent.submitted", "bard"),
                          ("agent.rejected", "bard"),
                          ("agent.submitted", "bard"),
                          ("agent.withdrawn", "bard")])
        self.assertEqual(self.feed(self.otto, *types), [])

    def test_what_waits_is_for_its_creator_and_admins(self):
        self.put("secretive", description="Keeps things")
        self.approve("secretive")
        self.put("secretive", description="Keeps the Henderson merger")
        for path in ("/api/agents/secretive", "/api/agents",
                     "/api/agents?review=waiting", "/api/agents?brief=true",
                     "/api/agents/search?q=henderson", "/api/feed?last=100"):
            got = self.server.call("GET", path, token=self.otto)
            self.assertNotIn(b"Henderson", got.body, path)
            self.assertNotIn(b"waiting", got.body, path)
            self.assertNotIn(b"submitted", got.body, path)
        for token in (self.anna, self.server.token):
            self.assertEqual(names(self.server, "/api/agents?review=waiting",
                                   token=token), ["secretive"])
        self.assertEqual(names(self.server, "/api/agents?review=waiting",
                               token=self.otto), [])

    def test_an_admin_approves_what_they_have_read(self):
        read = self.put("swap", description="Good")["revision"]
        self.put("swap", description="Evil")
        got = self.post("swap", "approve", {"revision": read})
        self.assertEqual(error_code(got), (412, "precondition_failed"))
        got = self.post("swap", "approve")
        self.assertEqual(error_code(got), (400, "bad_request"))
        self.assertIn("revision", got.json()["error"]["message"])
        self.assertIsNone(self.serves("swap"))

    def test_a_rejection_says_why_and_the_same_card_stays_rejected(self):
        self.put("boast", description="Does everything")
        got = self.post("boast", "reject", {"reason": "Nothing does."})
        self.assertEqual(got.status, 200, got)
        for _ in range(2):
            seen = self.put("boast", description="Does everything")["review"]
            self.assertEqual((seen["state"], seen["reason"], seen["by"]),
                             ("rejected", "Nothing does.", "admin"))
        got = self.post("boast", "reject")
        self.assertEqual(error_code(got), (412, "precondition_failed"))
        seen = self.put("boast", description="Does one thing")["review"]
        self.assertEqual((seen["state"], seen["reason"]), ("waiting", None))

    def test_only_admins_judge_and_bad_input_changes_nothing(self):
        self.put("mine", description="Mine")
        for what, body in (("approve", {"revision": 1}), ("reject", None),
                           ("hide", None)):
            got = self.post("mine", what, body, token=self.anna)
            self.assertEqual(error_code(got), (403, "not_allowed"), what)
        for what, body, code in (
                ("approve", {"revision": 0}, "bad_request"),
                ("approve", {"reason": "x"}, "bad_request"),
                ("approve", {"revision": "1"}, "bad_request"),
                ("reject", {"reason": "x" * 1001}, "too_large"),
                ("reject", {"why": "x"}, "bad_request"),
                ("hide", b"{", "invalid_json"),
                ("report", {}, "bad_request")):
            got = self.post("mine", what, body)
            self.assertEqual(error_code(got)[1], code, (what, body, got))
        self.assertEqual(self.get("mine").json()["review"]["state"],
                         "waiting")
        got = self.post("missing", "approve", {"revision": 1})
        self.assertEqual(error_code(got), (404, "agent_not_found"))
        got = self.post("mine", "reject", {"reason": "x" * 1000})
        self.assertEqual(got.status, 200, got)

    def test_an_agent_that_comes_back_keeps_what_waits(self):
        token = self.server.user("clerk", "agent", owner="anna")
        self.put("clerk", description="Files", url=None)
        for _ in range(2):
            with Hub(self.server, token=token) as hub:
                said = hub.register("clerk", description="Files")
                self.assertEqual((said["card"], said["review"]),
                                 ("unchanged", "waiting"))
        self.assertEqual(self.get("clerk").json()["review"]["card"]
                         ["visibility"], "public")
        self.approve("clerk")
        self.assertEqual(self.serves("clerk"), "Files")

    def test_a_hidden_agent_is_out_of_sight_at_once(self):
        self.put("spam", description="Sells pills")
        self.approve("spam")
        said = self.server.call("POST", "/api/messages", {
            "text": "hi", "conversation_id": "c", "executor": {
                "name": "spam"}}, token=self.otto)
        self.assertEqual(said.status, 200, said)
        got = self.post("spam", "hide", {"reason": "Spam"})
        self.assertEqual(got.json()["review"]["state"], "hidden")
        self.assertIsNone(self.serves("spam"))
        self.assertEqual(self.finds("pills", self.otto), [])
        # Nor by the conversation that it had.
        said = self.server.call("POST", "/api/messages", {
            "text": "hi", "conversation_id": "c"}, token=self.otto)
        self.assertNotEqual(said.json().get("agent"), "spam")
        self.put("spam", description="Sells no pills")
        self.assertIsNone(self.serves("spam"))
        self.kill_and_start()
        self.assertEqual(self.get("spam", self.anna).json()["review"]
                         ["reason"], "Spam")
        self.approve("spam")
        self.assertEqual(self.serves("spam"), "Sells no pills")

    def test_reports_are_for_admins(self):
        self.put("liar", description="Lies")
        self.approve("liar")
        got = self.post("liar", "report", {"reason": "It lies"},
                        token=self.otto)
        self.assertEqual((got.status, got.body), (204, b""))
        got = self.server.call("GET", "/api/agents/liar/reports")
        said = got.json()["items"]
        self.assertEqual([(r["user"], r["reason"]) for r in said],
                         [("otto", "It lies")])
        self.assertEqual(self.get("liar").json()["reports"], 1)
        self.assertEqual(names(self.server, "/api/agents?review=reported"),
                         ["liar"])
        for token in (self.anna, self.otto):
            self.assertNotIn("reports", self.get("liar", token).json())
            self.assertEqual(names(self.server, "/api/agents?review=reported",
                                   token=token), [])
            got = self.server.call("GET", "/api/agents/liar/reports",
                                   token=token)
            self.assertEqual(got.status, 403)
        self.assertEqual(self.feed(self.anna, "agent.reported"), [])
        self.assertEqual(self.feed(self.server.token, "agent.reported"),
                         [("agent.reported", "liar")])
        got = self.post("liar", "report", {"reason": "Me"}, token=self.anna)
        self.assertEqual(error_code(got), (400, "bad_request"))
        got = self.server.call("DELETE", "/api/agents/liar/reports")
        self.assertEqual(got.status, 204)
        self.assertNotIn("reports", self.get("liar").json())
        got = self.server.call("DELETE", "/api/agents/liar/reports")
        self.assertEqual(error_code(got), (412, "precondition_failed"))

    def test_the_setting_is_reloaded(self):
        self.put("later", description="Waits")
        self.server.write_config(None, {"registry": {"review": False}})
        self.assertEqual(self.server.call("POST",
                                          "/api/config/reload").status, 200)
        self.assertIsNone(self.serves("later"))
        self.put("later", description="Comes")
        self.assertEqual(self.serves("later"), "Comes")


class CommandLine(Client):
    """The same by the commands, as the admin and two users."""

    def setUp(self):
        super().setUp()
        self.s = self.server(agents=[], config={"registry": {"review": True}})
        self.tokens = {"admin": self.s.token, "anna": self.s.user("anna"),
                       "otto": self.s.user("otto")}

    def agents(self, who, *args):
        return self.good("agents", *args,
                         env={"SIGNALBOX_TOKEN": self.tokens[who]})

    def refused(self, status, who, *args):
        return self.bad(status, "agents", *args,
                        env={"SIGNALBOX_TOKEN": self.tokens[who]})

    def put(self, **fields):
        with open(os.path.join(self.home, "poet.json"), "w",
                  encoding="utf-8") as f:
            json.dump({"name": "poet", "url": "echo:", "visibility": "public",
                       "routing": {"routable": False}, **fields}, f)
        return self.agents("anna", "register", "poet.json")

    def test_a_card_from_its_file_to_everybody(self):
        self.assertEqual(self.put(description="Writes poems"),
                         "registered  poet  (waits for an admin's approval)\n")
        listed = self.agents("admin", "list", "--review", "waiting")
        self.assertIn("poet", listed)
        shown = self.agents("anna", "show", "poet")
        self.assertIn("  visibility\n    is      private\n"
                      "    wanted  public\n", shown)
        self.assertIn("approve poet --revision 1\n", shown)
        said = self.refused(USAGE, "admin", "approve", "poet")
        self.assertIn("--revision", said)
        self.refused(REFUSED, "admin", "approve", "poet", "--revision", "9")
        self.refused(NOT_ALLOWED, "anna", "approve", "poet", "--revision", "1")
        self.refused(REFUSED, "otto", "show", "poet")
        self.assertEqual(self.agents("admin", "approve", "poet", "--revision",
                                     "1"), "poet is approved\n")
        self.assertIn("Writes poems", self.agents("otto", "show", "poet"))
        self.assertIn("No agent matches",
                      self.agents("admin", "list", "--review", "waiting"))

    def test_a_reason_is_told_and_cannot_steer_a_terminal(self):
        self.put(description="Writes poems")
        self.agents("admin", "reject", "poet", "--reason", "No \x1b[31mred")
        for said in (self.put(description="Writes poems"),
                     self.agents("anna", "show", "poet")):
            self.assertIn("No ", said)
            self.assertNotIn("\x1b", said)
        self.agents("admin", "hide", "poet", "--reason", "Spam")
        self.assertIn("(an admin has hidden this agent: Spam)",
                      self.put(description="Writes more"))

    def test_reports(self):
        self.put(description="Writes poems")
        self.agents("admin", "approve", "poet", "--revision", "1")
        self.refused(USAGE, "otto", "report", "poet")
        self.agents("otto", "report", "poet", "--reason", "Bad rhymes")
        self.assertIn("Reported by users: 1",
                      self.agents("admin", "show", "poet"))
        said = self.agents("admin", "reports", "poet")
        self.assertIn("otto\n  Bad rhymes\n", said)
        self.refused(NOT_ALLOWED, "anna", "reports", "poet")
        self.agents("admin", "dismiss", "poet")
        self.assertEqual(self.agents("admin", "reports", "poet"),
                         "poet has no reports\n")
        self.assertEqual(self.lines("agents", "report", "poet", "--reason",
                                    "x"), [])


if __name__ == "__main__":
    unittest.main()
