"""Cards that are valid and will not work, and agents that say why they are
dead: by HTTP, on the hub and at the command line; and errors that name what is
meant."""
import json
import os
import unittest

from client import Client
from hub_peer import Hub, Refused
from signalbox import ECHO, Server, eventually

LONG = ("keeps the clusters running, looks into crashes, rolls back releases "
        "and answers pages at night")
OTHER = ("books flights, trains and hotels for people who travel for work, and "
         "keeps their receipts in order")


def card(name, description=LONG, **fields):
    return {"name": name, "description": description, "url": "echo:", **fields}


def codes(answer):
    return [w["code"] for w in answer["warnings"]]


class Warnings(unittest.TestCase):
    def setUp(self):
        self.at = self.enterContext(Server(config={
            "models": {"gpt": {"baseUrl": "https://x.example/v1",
                               "model": "gpt-x"}},
            "outgoing": {"allow": ["127.0.0.1:9001"]}}))

    def put(self, made, **more):
        return self.at.call("POST", "/api/agents", made, **more).json()

    def test_each_warning_comes_with_the_answer_and_with_the_card(self):
        answer = self.put(card("a", "writes code"))
        self.assertEqual(codes(answer), ["thin_card"])
        self.assertEqual(answer["warnings"][0]["field"], "description")
        self.assertIn("2 words", answer["warnings"][0]["message"])
        self.assertEqual(
            self.at.call("GET", "/api/agents/a").json()["warnings"],
            answer["warnings"])
        self.assertEqual(codes(self.put(card("b", url="model:claude"))),
                         ["unknown_model"])
        self.assertEqual(codes(self.put(card("b", url="model:gpt"))), [])
        url = "http://127.0.0.1:9000/"
        self.assertEqual(codes(self.put(card("b", url=url))),
                         ["closed_address"])
        self.assertEqual(codes(self.put(card("b", url="http://localhost:9001/"))),
                         [])
        patched = self.at.call("PATCH", "/api/agents/b", {"description": "x"})
        self.assertEqual(codes(patched.json()), ["thin_card"])

    def test_a_card_that_is_close_to_another_names_it(self):
        self.assertEqual(codes(self.put(card("a"))), [])
        answer = self.put(card("b"))
        self.assertEqual(codes(answer), ["close_card"])
        self.assertIn("the same as that of a", answer["warnings"][0]["message"])
        self.assertEqual(codes(self.put(card("b", LONG + " too"))),
                         ["close_card"])
        self.assertEqual(codes(self.put(card("b", OTHER))), [])

    def test_no_warning_names_what_its_reader_may_not_see(self):
        """The negative control is the creator of the other one."""
        anna, ben = self.at.user("anna"), self.at.user("ben")
        self.put(card("secret", visibility="private"), token=anna)
        mine = self.put(card("mine", visibility="private"), token=ben)
        self.assertEqual(codes(mine), [])
        self.assertNotIn("secret", json.dumps(mine))
        self.assertEqual(codes(self.put(card("again"), token=anna)),
                         ["close_card"])

    def test_others_do_not_see_the_warnings_of_a_card(self):
        anna = self.at.user("anna")
        self.put(card("a", "writes code", visibility="public"))
        self.assertIn("warnings", self.at.call("GET", "/api/agents/a").json())
        seen = self.at.call("GET", "/api/agents/a", token=anna).json()
        self.assertNotIn("warnings", seen)
        self.assertIn("state_reason", seen)
        listed = self.at.call("GET", "/api/agents").json()["items"]
        self.assertTrue(all("warnings" not in a for a in listed))

    def test_the_hub_warns_too(self):
        with Hub(self.at) as hub:
            answer = hub.call("agent.register",
                              card={"name": "a", "description": "writes code"})
            self.assertEqual(codes(answer), ["thin_card"])
            answer = hub.call("agent.update", card={"description": LONG})
            self.assertEqual(codes(answer), [])

    def test_a_dead_agent_says_why(self):
        self.put(card("lost", url="model:claude"))
        self.put(card("away", url="ws-agent://away"))

        def reason(name):
            got = self.at.call("GET", f"/api/agents/{name}").json()
            self.assertEqual(got["state"], "DEAD")
            return got["state_reason"]

        self.assertIn('"claude", which is not configured', reason("lost"))
        self.assertIn("has not connected since the server started",
                      reason("away"))
        with Hub(self.at) as hub:
            hub.call("agent.register", card=card("away"))
            got = self.at.call("GET", "/api/agents/away").json()
            self.assertEqual((got["state"], got["state_reason"]),
                             ("IDLE", None))
        eventually(lambda: self.at.call("GET", "/api/agents/away").json()
                   ["state"] == "DEAD", "it is gone")
        self.assertRegex(reason("away"), r"^not connected since \d{4}-\d\d-.*"
                         r"Z: the connection was lost$")
        brief = self.at.call("GET", "/api/agents?brief=true").json()["items"]
        self.assertIn("not connected since", brief[0]["state_reason"])


class Errors(unittest.TestCase):
    def setUp(self):
        self.at = self.enterContext(Server(agents=ECHO))

    def said(self, method, path, body=None):
        return self.at.call(method, path, body).json()["error"]["message"]

    def test_a_name_where_the_executor_belongs_suggests_the_object(self):
        for path in ("/api/messages", "/api/route"):
            self.assertIn('"executor": {"name": "gpt"}', self.said(
                "POST", path, {"text": "hi", "executor": "gpt"}))
            message = self.said("POST", path, {"text": "hi", "to": "gpt"})
            self.assertIn("executor.name", message)
            self.assertIn('{"name": "gpt"}', message)

    def test_what_does_not_exist_is_named(self):
        for noun, paths in {
                "decision": [("GET", ""), ("POST", "/override"),
                             ("POST", "/feedback")],
                "task": [("GET", ""), ("GET", "/tree"), ("GET", "/events"),
                         ("POST", "/cancel")],
                "escalation": [("GET", ""), ("POST", "/approve")],
                "conversation": [("GET", "")],
                "delegation": [("GET", "")],
                "grant": [("DELETE", "")]}.items():
            # One that is no id, and one that is and is not there.
            for name in ("x_nope", {"decision": "dec", "escalation": "esc"}.get(
                    noun, noun) + "_" + 26 * "0"):
                for method, rest in paths:
                    body = {"agent": "echo"} if rest == "/override" else (
                        {"verdict": "right"} if rest == "/feedback" else None)
                    words = self.said(
                        method, f"/api/{noun}s/{name}{rest}", body)
                    with self.subTest(noun=noun, rest=rest, name=name):
                        self.assertEqual(
                            words, f"there is no {noun} {name}, or it is not "
                            "yours to see")

    def test_the_hub_names_the_task_too(self):
        with Hub(self.at) as hub:
            for name in ("task_nope", "task_" + 26 * "0"):
                with self.assertRaises(Refused) as refused:
                    hub.call("task.get", task_id=name)
                self.assertIn(f"there is no task {name}",
                              refused.exception.message)


class CommandLine(Client):
    def test_register_list_and_show_have_the_warnings_and_the_reason(self):
        self.server(agents=[])
        with open(os.path.join(self.home, "a.json"), "w",
                  encoding="utf-8") as f:
            json.dump(card("a", "writes code", url="ws-agent://a"), f)
        said = self.good("agents", "register", "--dry-run", "a.json")
        self.assertIn("warning description: the card has no skills", said)
        said = self.good("agents", "register", "a.json")
        self.assertTrue(said.startswith("registered  a\nwarning description: "),
                        said)
        got = self.lines("agents", "register", "a.json")
        self.assertEqual(codes(got[0]), ["thin_card"])
        said = self.good("agents", "show", "a")
        self.assertIn("DEAD: it has not connected since", said)
        self.assertIn("warning description:", said)
        self.assertIn("(it has not connected since",
                      self.lines("agents", "list")[0]["state_reason"]
                      and self.good("agents", "list"))

    def test_check_doctor_and_lint_warn_about_the_configuration(self):
        config = {"agents": {"list": [
            {"id": "one", "description": "writes code", "url": "echo:"},
            {"id": "two", "description": LONG, "url": "echo:"},
            {"id": "three", "description": LONG, "url": "echo:"}]}}
        with open(os.path.join(self.home, "signalbox.jsonc"), "w",
                  encoding="utf-8") as f:
            json.dump(config, f)
        status, out, _ = self.run_it("check")
        words = " ".join(out.split())
        self.assertEqual(status, 0)
        self.assertIn("one: the card has no skills", words)
        self.assertIn("two: the description is the same as that of three",
                      words)
        _, out, _ = self.run_it("doctor")
        self.assertIn("3 of 3 in the configuration may not work",
                      " ".join(out.split()))
        _, out, _ = self.run_it("lint")
        words = " ".join(out.split())
        self.assertIn("one: the card has no skills", words)
        self.assertIn("two and three have similar descriptions", words)

    def test_check_warns_about_an_unsure_policy_without_its_agent(self):
        agents = {"list": [{"id": "writer", "url": "echo:",
                            "description": "drafts emails and blog posts for "
                            "the team, and edits what others wrote"}]}
        for default, warned in ((None, True), ("writer", False)):
            if default:
                agents["default"] = default
            path = os.path.join(self.home, "unsure.jsonc")
            with open(path, "w", encoding="utf-8") as f:
                json.dump({"agents": agents,
                           "routing": {"unsure": "default"}}, f)
            status, out, _ = self.run_it("check", path)
            self.assertEqual(status, 0, out)
            self.assertEqual("there is no default agent" in
                             " ".join(out.split()), warned, out)

    def test_check_warns_about_an_unsure_policy_beside_a_number(self):
        path = os.path.join(self.home, "number.jsonc")
        for routing, warned in (
                ({"unsure": "ask", "threshold": 0.4}, True),
                ({"unsure": "default", "threshold": 0.4}, True),
                ({"unsure": "ask", "preset": "seed"}, True),
                ({"unsure": "ask", "preset": "seed", "threshold": "auto"},
                 False),
                ({"unsure": "ask"}, False), ({"threshold": 0.4}, False)):
            with self.subTest(routing):
                with open(path, "w", encoding="utf-8") as f:
                    json.dump({"routing": routing}, f)
                status, out, _ = self.run_it("check", path)
                self.assertEqual(status, 0, out)
                self.assertEqual("no message is ever unsure" in
                                 " ".join(out.split()), warned, out)
                self.assertNotIn("no default agent", out)

    def test_errors_name_options_and_not_fields_of_the_api(self):
        self.server(agents=[])
        status, _, err = self.run_it("send", "hello")
        self.assertNotEqual(status, 0)
        self.assertIn("signalbox agents register", err)
        self.assertNotIn("executor", err)
        self.assertNotIn("/api/", err)
        _, _, err = self.run_it("decisions", "show", "dec_nope")
        self.assertIn("there is no decision dec_nope", err)


if __name__ == "__main__":
    unittest.main()
