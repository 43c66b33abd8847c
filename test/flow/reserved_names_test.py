"""Names that the operator's rules and settings mention belong to the operator:
attacks of a stranger who registers one, before and after it is mentioned.

Each attack has a control: where the configuration names the stranger as the
owner, the same steps do what the attack was after."""
import json
import os
import unittest

from client import FAILED, USAGE, Client
from hub_peer import Hub, Refused
from signalbox import Server, eventually

RICK = [{"id": "Rick", "url": "echo:"}]


def gate(owner=None):
    z = {"owner": owner} if owner else {}
    return {"agents": {"Z": z, "Rick": {}},
            "safety_gates": [{"rule": "no-submissions-without-Z", "agent": "Z",
                              "match": {"type": "SUBMISSION"}}]}


def backup(owner=None):
    z2 = {"owner": owner} if owner else {}
    return {"agents": {"Z": {"restart": {"attempts": 0}, "backup": "Z2",
                             "takeover": "auto"}, "Z2": z2}}


class Names(Client):
    def start_it(self, rules=None, agents=None, **settings):
        self.path = os.path.join(self.home, "routing_rules.json")
        self.agents = RICK if agents is None else agents
        if rules:
            self.write_rules(rules)
        self.s = self.server(agents=self.agents, config=self.config(
            rules, settings))
        self.ann = self.s.user("ann", org="acme")
        self.mallory = self.s.user("mallory", org="evil")
        return self.s

    def config(self, rules, settings):
        return {**settings, "rules": self.path if rules else ""}

    def write_rules(self, rules):
        with open(self.path + ".new", "w", encoding="utf-8") as f:
            json.dump(rules, f)
        os.rename(self.path + ".new", self.path)

    def change(self, rules=None, default=None, agents=None, owner=None):
        """Another configuration for the running server."""
        if rules:
            self.write_rules(rules)
        self.s.write_config(None, {
            "rules": self.path if rules else "",
            "agents": {"list": self.agents if agents is None else agents,
                       "default": default or "", "owner": owner or ""}})
        got = self.s.call("POST", "/api/config/reload")
        self.assertEqual(got.status, 200, got)

    def put(self, name, token=None, status=201, **card):
        got = self.s.call("PUT", "/api/agents/" + name,
                          {"url": "echo:", "visibility": "public",
                           "description": "for tests", **card},
                          token=token or self.mallory)
        self.assertEqual(got.status, status, got)
        return got.json()

    def reserved(self, name):
        error = self.put(name, status=403)["error"]
        self.assertEqual(error["code"], "name_reserved")
        self.assertIn(f'"{name}" is reserved', error["message"])
        with Hub(self.s, token=self.mallory) as hub, \
                self.assertRaises(Refused) as seen:
            hub.register(name)
        self.assertEqual(seen.exception.name, "name_reserved")

    def envelope(self, to, kind, token=None, **more):
        got = self.s.call("POST", "/api/envelopes",
                          {"to": to, "type": kind, **more},
                          token=token or self.ann)
        self.assertIn(got.status, (200, 202), got)
        return got.json()

    def taken(self):
        got = self.s.call("GET", "/api/config").json()["names_taken"]
        return [(t["name"], t["holder"], t["mentioned_in"]) for t in got]

    def task(self, task):
        return self.s.call("GET", "/api/tasks/" + task).json()

    def offline(self, *args):
        """A command that looks at the server's files."""
        return self.run_it(*args, "--config",
                           os.path.join(self.s.folder, "test.jsonc"),
                           "--data", self.s.data)


class TheGate(Names):
    def sent(self):
        return self.envelope("Rick", "SUBMISSION")

    def attack(self, owner=None):
        self.start_it(gate(owner))
        return self.sent()["routing_decision"]

    def test_a_stranger_may_not_register_its_agent(self):
        self.assertEqual(self.attack(), "PAUSE_ALL_SUBMISSIONS")
        self.reserved("Z")
        self.reserved("z")
        self.assertEqual(self.sent()["routing_decision"],
                         "PAUSE_ALL_SUBMISSIONS")
        self.put("Z3")  # nothing mentions it
        self.put("Z", token=self.s.token)
        self.assertEqual(self.sent()["routing_decision"], "ROUTE_IMMEDIATELY")

    def test_control_the_owner_may(self):
        self.assertEqual(self.attack("mallory"), "PAUSE_ALL_SUBMISSIONS")
        self.put("Z")
        self.assertEqual(self.sent()["routing_decision"], "ROUTE_IMMEDIATELY")
        self.assertEqual(self.taken(), [])

    def test_a_stranger_who_was_first_does_not_count(self):
        self.start_it()
        self.put("Z")
        self.change(gate())
        held = self.sent()
        self.assertEqual(held["routing_decision"], "PAUSE_ALL_SUBMISSIONS")
        self.assertIn("is not an agent of the operator's", held["reason"])
        self.assertEqual(self.taken(), [("Z", "mallory", "rules")])
        self.assertIn("signalbox agents remove Z", self.s.said())
        # The stranger's agent still works, and its card may change.
        self.assertEqual(self.envelope("Z", "NOTE")["routing_decision"],
                         "ROUTE_IMMEDIATELY")
        self.put("Z", status=200, description="still mine")
        # Freed, the operator's takes its place, and what waited goes.
        self.good("agents", "remove", "Z")
        self.reserved("Z")
        self.put("Z", token=self.s.token)
        eventually(lambda: self.task(held["task_id"])["status"] == "completed",
                   "what waited for Z goes")
        self.assertEqual(self.taken(), [])

    def test_its_results_do_not_count_either(self):
        for owner, is_held in (("", True), ("mallory", False)):
            self.start_it()
            self.put("Z")
            self.change({"agents": {"Z": {"owner": owner} if owner else {},
                                    "Rick": {}},
                         "dependencies": [{
                             "rule": "after-Z", "match": {"to": "Rick"},
                             "after": [{"type": "RESULT", "from": "Z"}]}]})
            asked = self.envelope("Z", "REQUEST", reference="R-1")
            eventually(lambda: self.task(asked["task_id"])["status"] ==
                       "completed", "Z answers")
            got = self.envelope("Rick", "SUBMISSION", reference="R-1")
            self.assertEqual(got["routing_decision"], "HOLD_PENDING_INPUT"
                             if is_held else "ROUTE_IMMEDIATELY", owner)

    def test_an_agent_that_the_sender_may_not_see_does_not_count(self):
        self.start_it(gate())
        self.put("Z", token=self.s.token, visibility="private")
        held = self.sent()
        self.assertEqual(held["routing_decision"], "PAUSE_ALL_SUBMISSIONS")
        self.assertEqual(self.envelope("Rick", "SUBMISSION", self.s.token)[
            "routing_decision"], "ROUTE_IMMEDIATELY")
        got = self.s.call("PATCH", "/api/agents/Z", {"visibility": "public"})
        self.assertEqual(got.status, 200, got)
        eventually(lambda: self.task(held["task_id"])["status"] == "completed",
                   "Z is seen now")


class TheBackup(Names):
    def dead(self):
        """Z is the operator's, and goes."""
        with Hub(self.s, token=self.s.token) as hub:
            hub.register("Z", visibility="public")
        eventually(lambda: self.s.call("GET", "/api/agents/Z").json()[
            "state"] == "DEAD", "Z is dead")
        return self.envelope("Z", "REQUEST", payload={"secret": "of acme"})

    def given_up(self):
        def found():
            items = self.s.call("GET", "/api/feed?last=500").json()["items"]
            return [i["data"] for i in items
                    if i["type"] == "agent.restart_failed"]
        eventually(found, "it is given up")
        return found()[-1].get("backup") or found()[-1].get("offer")

    def test_a_stranger_may_not_register_it(self):
        self.start_it(backup())
        self.reserved("Z2")

    def test_a_stranger_who_was_first_gets_nothing(self):
        self.start_it(agents=[])
        self.put("Z2")
        self.change(backup())
        sent = self.dead()
        self.assertFalse(self.given_up())
        self.assertEqual(self.task(sent["task_id"])["agent"], "Z")
        self.assertEqual(self.task(sent["task_id"])["status"], "escalated")
        self.assertEqual(self.taken(), [("Z2", "mallory", "rules")])

    def test_control_the_owner_gets_it(self):
        self.start_it(agents=[])
        self.put("Z2")
        self.change(backup("mallory"))
        sent = self.dead()
        eventually(lambda: self.task(sent["task_id"])["status"] == "completed",
                   "the backup takes over")
        self.assertEqual(self.task(sent["task_id"])["agent"], "Z2")

    def test_the_backup_of_a_card_is_of_the_same_hands(self):
        for who, is_offered in (("mallory", False), ("ann", True)):
            self.start_it({"agents": {"mine": {"restart": {"attempts": 0}}}},
                          agents=[])
            self.put("mine-2", token=getattr(self, who))
            with Hub(self.s, token=self.s.token) as hub:
                hub.register("mine", visibility="public")
            got = self.s.call("PATCH", "/api/agents/mine", {
                "backup": "mine-2", "creator_id": "ann"})
            self.assertEqual(got.status, 200, got)
            eventually(lambda: self.s.call("GET", "/api/agents/mine").json()[
                "state"] == "DEAD", "it is dead")
            self.envelope("mine", "REQUEST")
            self.assertEqual(bool(self.given_up()), is_offered, who)


class TheDefault(Names):
    def ask(self):
        return self.s.call("POST", "/api/messages", {
            "text": "zzzz qqqq", "wait_ms": 10000}, token=self.ann)

    def test_a_stranger_may_not_register_it(self):
        self.start_it(agents=[])
        self.change(default="front")
        self.reserved("front")
        self.assertEqual(self.ask().json()["error"]["code"], "no_route")

    def test_a_stranger_who_was_first_gets_nothing(self):
        self.start_it(agents=[])
        # One of many, so that the semantic layer chooses none of them.
        self.put("front", routing={"routable": False})
        self.change(default="front")
        self.assertEqual(self.ask().json()["error"]["code"], "no_route")
        self.assertEqual(self.taken(), [("front", "mallory",
                                         "agents.default")])

    def test_control_the_owner_gets_it(self):
        self.start_it(agents=[])
        self.put("front", routing={"routable": False})
        self.change(default="front", owner="mallory")
        got = self.ask()
        self.assertEqual(got.status, 200, got)
        self.assertEqual(self.taken(), [])


class TheList(Names):
    LIST = [{"id": "code", "url": "echo:"}]

    def test_a_server_runs_without_the_agent_and_says_so(self):
        self.start_it(agents=[])
        self.put("code")
        data, token = self.s.data, self.s.token
        kept = os.path.join(self.home, "data")
        self.s.process.terminate()
        self.assertEqual(self.s.process.wait(), 0)
        os.rename(data, kept)
        self.s = Server(agents=self.LIST, data=kept, token=token, config={
            "bindings": [{"agentId": "code", "match": {"channel": "irc"}}]})
        self.addCleanup(self.s.stop)
        self.use(self.s)
        self.assertEqual(self.taken(), [("code", "mallory", "agents.list")])
        self.assertIn("registry.not_taken", self.s.said())
        self.assertIn("signalbox agents remove code", self.s.said())
        # A binding does not mean the stranger's.
        got = self.s.call("POST", "/api/messages", {
            "text": "hi", "source": {"channel": "irc"}}, token=self.ann)
        self.assertEqual(got.json()["error"]["code"], "agent_not_found", got)
        status, out, _ = self.offline("check")
        self.assertEqual(status, USAGE, out)
        self.assertIn("mallory registered that name", " ".join(out.split()))
        self.assertIn("signalbox agents remove code", " ".join(out.split()))
        status, out, _ = self.offline("doctor", "--json")
        self.assertEqual(status, FAILED, out)
        found = {c["name"]: c for c in json.loads(out)["checks"]}["names"]
        self.assertIn("mallory registered that name", json.dumps(found))
        # Freed and read again, it is the configuration's.
        self.good("agents", "remove", "code")
        self.assertEqual(self.s.call("POST", "/api/config/reload").status, 200)
        eventually(lambda: self.s.call("GET", "/api/agents/code").status == 200,
                   "the configuration's agent is there")
        self.assertEqual(self.taken(), [])
        status, out, err = self.offline("check")
        self.assertEqual(status, 0, out + err)


if __name__ == "__main__":
    unittest.main()
