"""How agents do, as docs/protocol.md promises it: figures of one, of those in
view, the counts by state, and lists that are narrowed by a part of a name."""
import json
import os
import tempfile
import unittest

from cards import NOT_FOUND, error_code, names, register, skill
from client import Client
from raw_server import RawServer
from signalbox import Server, eventually

QUICK = {"deliver": {"maxAttempts": 1, "breakerFailures": 1000}}
RULES = """{
  "agents": {"Leroy": {}, "Jay": {}},
  "dependencies": [{"rule": "order", "match": {"to": "Leroy",
    "type": "REQUEST"}, "after": [
    {"type": "SUBMITTED", "from": "Jay"}], "hold_for": "1h"}]
}"""
SERIES = ("completed", "failed", "cancelled", "latency_ms")


def figures(server, name, **more):
    return server.call("GET", f"/api/agents/{name}/figures", **more)


def paused(server):
    """By name, and as the figures say it the same."""
    said = {a["name"]: a["paused"]
            for a in server.call("GET", "/api/agents").json()["items"]}
    assert said == {name: figures(server, name).json()["paused"]
                    for name in said}
    return said


class OfOne(unittest.TestCase):
    def test_who_has_done_nothing_has_no_hour(self):
        with Server(agents=[{"id": "Echo", "url": "echo:"}]) as server:
            self.assertEqual(figures(server, "ECHO").json(), {
                "agent": "Echo", "state": "IDLE", "paused": False,
                "paused_ms": None, "queued": 0, "in_flight": 0, "held": 0,
                "latency_ms": None, "usual_ms": None, "failed_ms": None,
                "totals": {"completed": 0, "failed": 0, "cancelled": 0,
                           "retries": 0},
                "paused_by": None, "last_error": None, "hour": None})
            self.assertEqual(error_code(figures(server, "missing")), NOT_FOUND)

    def test_what_it_did_is_counted_and_how_long_it_took(self):
        with Server(agents=[{"id": "echo", "url": "echo:20"}]) as server:
            for _ in range(3):
                self.assertEqual(server.send("hello").json()["text"], "hello")
            f = figures(server, "echo").json()
            self.assertEqual(f["totals"]["completed"], 3)
            self.assertGreaterEqual(f["latency_ms"], 20)
            self.assertIsNone(f["usual_ms"])  # three are no week
            hour = f["hour"]
            self.assertEqual(hour["step_ms"], 60000)
            self.assertEqual([len(hour[k]) for k in SERIES], [60] * 4)
            self.assertEqual(sum(hour["completed"]), 3)
            self.assertEqual(sum(hour["failed"] + hour["cancelled"]), 0)
            for n, ms in zip(hour["completed"], hour["latency_ms"]):
                self.assertEqual(ms is not None, n > 0)
                self.assertTrue(ms is None or ms >= 20)

    def test_what_went_wrong_is_for_its_creator_and_admins(self):
        def fails(call):
            call.json({"status": "failed", "error": {
                "code": "cold", "message": "the oven is cold"}})

        with RawServer(fails) as oven, Server(
                agents=[{"id": "baker", "url": oven.url + "/"}],
                config=QUICK) as server:
            sent = server.send("bread", to="baker").json()
            self.assertEqual(sent["status"], "failed", sent)
            mine = figures(server, "baker").json()
            self.assertEqual(mine["last_error"]["message"], sent["error"][
                "message"])
            self.assertEqual(mine["totals"]["failed"], 1)
            self.assertEqual(sum(mine["hour"]["failed"]), 1)
            server.call("POST", "/api/agents/baker/pause")
            mine = figures(server, "baker").json()
            self.assertEqual((mine["paused"], mine["paused_by"]),
                             (True, "admin"))
            self.assertGreaterEqual(mine["paused_ms"], mine["failed_ms"])
            theirs = figures(server, "baker",
                             token=server.user("otto")).json()
            self.assertNotIn("cold", json.dumps(theirs))
            # Two looks, and two moments from which the hour is counted.
            self.assertEqual(sum(theirs.pop("hour")["failed"]), 1)
            mine.pop("hour")
            self.assertEqual(mine, {**theirs, "paused_by": "admin",
                                    "last_error": mine["last_error"]})
            self.assertGreater(theirs["failed_ms"], 0)

    def test_who_takes_a_name_over_is_told_nothing_of_the_one_before(self):
        with Server(config=QUICK) as server:
            bob, anna = server.user("bob"), server.user("anna")
            card = {"visibility": "private", "url": "http://127.0.0.1:9/"}
            register(server, "baker", token=bob, **card)
            server.send("bread", to="baker", token=bob)
            server.call("POST", "/api/agents/baker/pause", token=bob)
            mine = figures(server, "baker", token=bob).json()
            self.assertEqual((mine["last_error"]["code"], mine["paused_by"],
                              mine["totals"]["failed"]),
                             ("address_not_allowed", "bob", 1))
            server.call("DELETE", "/api/agents/baker", token=bob)
            register(server, "baker", token=anna, **card)
            hers = figures(server, "baker", token=anna).json()
            self.assertEqual((hers["last_error"], hers["failed_ms"],
                              hers["hour"], hers["paused_by"]), (None,) * 4)
            self.assertEqual(set(hers["totals"].values()), {0})
            self.assertNotIn("bob", json.dumps(hers))

    def test_who_does_not_see_it_sees_no_figures(self):
        with Server() as server:
            anna, otto = server.user("anna"), server.user("otto")
            register(server, "hers", token=anna, visibility="private")
            self.assertEqual(figures(server, "hers", token=anna).status, 200)
            self.assertEqual(error_code(figures(server, "hers", token=otto)),
                             NOT_FOUND)
            fleet = server.call("GET", "/api/fleet?names=hers",
                                token=otto).json()
            self.assertEqual((fleet["agents"], fleet["items"]), (0, []))
            fleet = server.call("GET", "/api/fleet?names=hers",
                                token=anna).json()
            self.assertEqual((fleet["agents"], fleet["items"]),
                             (1, [figures(server, "hers", token=anna).json()]))

    def test_paused_is_told_with_the_card_and_is_no_part_of_it(self):
        with Server() as server:
            register(server, "baker")
            got = server.call("GET", "/api/agents/baker")
            self.assertIs(got.json()["paused"], False)
            server.call("POST", "/api/agents/baker/pause")
            now = server.call("GET", "/api/agents/baker")
            self.assertIs(now.json()["paused"], True)
            self.assertEqual(now.headers["etag"], got.headers["etag"])
            r = server.call("PUT", "/api/agents/baker", now.json())
            self.assertEqual((r.status, r.json()["changed"]), (200, False))
            sent = server.send("wait", to="baker", wait_ms=0).json()
            eventually(lambda: figures(server, "baker").json()["queued"] == 1,
                       "what waits")
            server.call("POST", "/api/agents/baker/resume")
            eventually(lambda: server.call(
                "GET", "/api/tasks/" + sent["task_id"]).json()["status"] ==
                "completed", "its end")
            f = figures(server, "baker").json()
            self.assertEqual((f["queued"], f["paused"], f["paused_ms"],
                              f["paused_by"]), (0, False, None, None))

    def test_a_pause_has_its_author_after_a_start_too(self):
        jay = [{"id": "Jay", "url": "echo:"}]
        with tempfile.TemporaryDirectory() as data:
            with Server(agents=jay, data=data) as server:
                server.call("POST", "/api/agents/Jay/pause")
                before = figures(server, "Jay").json()
            with Server(agents=jay, data=data, token=server.token) as again:
                after = figures(again, "Jay").json()
        self.assertEqual(after["paused_by"], "admin")
        self.assertEqual(after, before)

    def test_a_pause_goes_with_its_agent(self):
        """Also over a start; the control is one that stays, under a name that
        differs by its end alone."""
        with tempfile.TemporaryDirectory() as data:
            with Server(data=data) as server:
                for name in "Baker", "Baker2":
                    register(server, name)
                    server.call("POST", f"/api/agents/{name}/pause")
                self.assertEqual(server.call(
                    "DELETE", "/api/agents/Baker").status, 204)
                register(server, "baker")
                self.assertEqual(paused(server), {"baker": False,
                                                  "Baker2": True})
                sent = server.send("hello", to="baker")
                self.assertEqual(sent.json()["text"], "hello")
                token = server.token
            with Server(data=data, token=token) as again:
                self.assertEqual(paused(again), {"baker": False,
                                                 "Baker2": True})


class Held(Client):
    def test_what_is_held_for_it_is_counted(self):
        rules = os.path.join(self.home, "routing_rules.json")
        with open(rules, "w", encoding="utf-8") as f:
            f.write(RULES)
        server = self.server(agents=[{"id": "Leroy", "url": "echo:"},
                                     {"id": "Jay", "url": "echo:"}],
                             config={"rules": rules})
        for i in range(2):
            r = server.call("POST", "/api/envelopes", {
                "from": "Jay", "to": "Leroy", "type": "REQUEST",
                "priority": "NORMAL", "reference": f"R-{i}", "payload": {},
                "context": ""})
            self.assertEqual(r.json()["status"], "held", r)
        self.assertEqual(figures(server, "leroy").json()["held"], 2)
        self.assertEqual(figures(server, "jay").json()["held"], 0)


class OfMany(unittest.TestCase):
    def test_counts_by_state_and_figures_of_those_in_view(self):
        with Server() as server:
            for i in range(5):
                register(server, f"a{i}")
            register(server, "gone", url=None)  # no one has connected
            server.call("POST", "/api/agents/a1/pause")
            server.send("hello", to="a0")
            fleet = server.call("GET", "/api/fleet").json()
            self.assertEqual(fleet, {
                "agents": 6, "paused": 1, "items": [],
                "states": {"ACTIVE": 1, "IDLE": 4, "BUSY": 0, "SLOW": 0,
                           "ERROR": 0, "DEAD": 1}})
            seen = server.call(
                "GET", "/api/fleet?names=A0,missing,,gone,a0").json()["items"]
            self.assertEqual([f["agent"] for f in seen], ["a0", "gone", "a0"])
            self.assertEqual(seen[0]["totals"]["completed"], 1)
            few = server.call("GET", "/api/fleet?names=gone&counts=false")
            self.assertEqual(few.json(), {"items": [seen[1]]})
            self.assertEqual(error_code(server.call(
                "GET", "/api/fleet?counts=no")), (400, "bad_request"))

    def test_a_hundred_names_and_no_more(self):
        with Server() as server:
            register(server, "a")
            most = server.call("GET", "/api/fleet?names="
                               + ",".join(["a"] * 100))
            self.assertEqual(len(most.json()["items"]), 100)
            more = server.call("GET", "/api/fleet?names="
                               + ",".join(["a"] * 101))
            self.assertEqual(error_code(more), (400, "bad_request"))

    def test_a_hundred_names_may_be_as_long_as_names_are(self):
        with Server("--set", "http.maxRequestLineBytes=16384") as server:
            longest = "a" * 128
            register(server, longest)
            most = server.call("GET", "/api/fleet?names="
                               + ",".join([longest] * 100))
            self.assertEqual(len(most.json()["items"]), 100)


class Lists(unittest.TestCase):
    def test_a_part_of_a_name_or_title_whatever_its_case(self):
        with Server() as server:
            register(server, "Mail-Writer", title="Writes letters")
            register(server, "cook", title="Kochstudio Köln")
            register(server, "cook2", visibility="private")
            otto = server.user("otto")

            def found(q, **more):
                return names(server, "/api/agents?q=" + q, **more)

            self.assertEqual(found("WRIT"), ["Mail-Writer"])
            self.assertEqual(found("letters"), ["Mail-Writer"])
            self.assertEqual(found("-w"), ["Mail-Writer"])
            self.assertEqual(found("COOK"), ["cook", "cook2"])
            self.assertEqual(found("cook", token=otto), ["cook"])
            self.assertEqual(found("k%C3%B6ln"), ["cook"])
            self.assertEqual(found("o&limit=1"), ["cook"])
            self.assertEqual(found(""), ["cook", "cook2", "Mail-Writer"])
            self.assertEqual(found("cooks"), [])
            self.assertEqual(found("c" * 128), [])
            self.assertEqual(error_code(server.call(
                "GET", "/api/agents?q=" + "c" * 129)), (400, "bad_request"))

    def test_in_a_few_words(self):
        with Server() as server:
            anna = server.user("anna", org="acme")
            register(server, "cook", token=anna, visibility="shared",
                     description="ä" * 150, skills=[skill("a"), skill("b")])
            got = server.call("GET", "/api/agents?brief=true").json()
            self.assertEqual(got, {"items": [{
                "name": "cook", "title": None, "description": "ä" * 100,
                "visibility": "shared", "creator_id": "anna", "org": "acme",
                "kind": "managed", "skills": 2, "revision": 1,
                "state": "IDLE", "state_reason": None, "paused": False}],
                "next_cursor": None})
            whole = server.call("GET", "/api/agents?brief=false").json()
            self.assertIn("embedded", whole["items"][0])
            self.assertEqual(error_code(server.call(
                "GET", "/api/agents?brief=yes")), (400, "bad_request"))
