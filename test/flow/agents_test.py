"""Agents over HTTP: registered, read, replaced, patched, removed and listed;
ETags; who sees whom; cards that are wrong."""
import json
import tempfile
import threading
import unittest

from cards import (NOT_FOUND, SEES, card, error_code, names, people, register,
                   skill, told)
from signalbox import ECHO, Server, eventually

CARD_MAX = 1024 * 1024
FULL = {
    "name": "engineer", "title": "Engineer",
    "description": "Builds and repairs software", "version": "1.0.0",
    "url": "echo:", "visibility": "public",
    "provider": {"organization": "acme"},
    "capabilities": {"streaming": True},
    "authentication": {"schemes": ["bearer"]},
    "skills": [{"id": "debug", "name": "Debugging",
                "description": "Finds and fixes bugs", "tags": ["code"],
                "examples": ["why does this segfault"],
                "pricing": {"amount_micros": 1500}}],
    "routing": {"system_prompt": "You are an engineer.",
                "keywords": ["code", "debug"]},
    "wake": {"url": "https://wake.example.com/e", "timeout_ms": 30000},
    "limits": {"queue": 100, "in_flight": 4, "priority": 1},
    "delegation": {"allowAgents": ["docs"], "maxConcurrent": 2,
                   "maxDepth": 1},
}


def problems(response):
    return [p["pointer"] for p in
            response.json()["error"]["details"].get("problems", [])]


class Registering(unittest.TestCase):
    def test_a_card_comes_back_as_it_was_given(self):
        with Server() as server:
            made = server.call("POST", "/api/agents", FULL)
            self.assertEqual(made.status, 201, made)
            self.assertEqual(made.headers["location"], "/api/agents/engineer")
            self.assertEqual(made.headers["etag"], '"1"')
            said = made.json()
            self.assertIs(said.pop("changed"), True)
            got = server.call("GET", "/api/agents/engineer")
            self.assertEqual(got.status, 200)
            self.assertEqual(got.headers["etag"], '"1"')
            self.assertEqual(got.headers["cache-control"], "no-store")
            self.assertEqual(got.json(), said)
            for key, value in FULL.items():
                self.assertEqual(said[key], value, key)
            self.assertEqual(said["creator_id"], "admin")
            self.assertEqual(said["kind"], "platform")
            self.assertEqual(said["revision"], 1)
            # What goes without saying is not said.
            r = server.call("PATCH", "/api/agents/engineer",
                            {"routing": {"routable": True}})
            self.assertIs(r.json()["changed"], False)
            self.assertIn("state", said)
            self.assertIn(said["embedded"], (True, False))
            head = server.call("GET", "/api/agents/ENGINEER")
            self.assertEqual(head.body, got.body)

    def test_the_same_card_twice_is_no_change(self):
        with Server() as server:
            register(server, "engineer", skills=[skill("debug")])
            feed = server.call("GET", "/api/feed?after=0").json()
            for method, path in (("POST", "/api/agents"),
                                 ("PUT", "/api/agents/engineer")):
                r = server.call(method, path,
                                card("engineer", skills=[skill("debug")]))
                self.assertEqual((r.status, r.headers["etag"]), (200, '"1"'))
                self.assertIs(r.json()["changed"], False)
                self.assertNotIn("location", r.headers)
            # What GET answers is a card too.
            got = server.call("GET", "/api/agents/engineer").json()
            r = server.call("PUT", "/api/agents/engineer", got)
            self.assertEqual((r.status, r.json()["changed"]), (200, False))
            r = server.call("PATCH", "/api/agents/engineer", {})
            self.assertEqual((r.status, r.json()["changed"]), (200, False))
            again = server.call("GET", "/api/feed?after=0").json()
            self.assertEqual(again, feed)

    def test_put_creates_and_replaces_the_whole(self):
        with Server() as server:
            r = server.call("PUT", "/api/agents/writer",
                            {"description": "Writes", "url": "echo:",
                             "version": "2"})
            self.assertEqual((r.status, r.headers["location"]),
                             (201, "/api/agents/writer"))
            r = server.call("PUT", "/api/agents/writer",
                            {"name": "writer", "description": "Edits"})
            self.assertEqual((r.status, r.headers["etag"]), (200, '"2"'))
            self.assertIs(r.json()["changed"], True)
            said = server.call("GET", "/api/agents/writer").json()
            self.assertEqual(said["description"], "Edits")
            self.assertEqual(said["url"], "ws-agent://writer")
            self.assertIsNone(said.get("version"))
            r = server.call("PUT", "/api/agents/writer",
                            card("another"))
            self.assertEqual(error_code(r), (400, "bad_request"))
            self.assertEqual(problems(r), ["/name"])

    def test_patch_changes_some_fields_and_null_takes_one_away(self):
        with Server() as server:
            server.call("POST", "/api/agents", FULL)
            r = server.call(
                "PATCH", "/api/agents/engineer",
                json.dumps({"version": None, "title": "E",
                            "limits": {"queue": 7}}).encode(),
                "Content-Type: application/merge-patch+json")
            self.assertEqual((r.status, r.headers["etag"]), (200, '"2"'), r)
            said = r.json()
            self.assertIsNone(said.get("version"))
            self.assertEqual(said["title"], "E")
            self.assertEqual(said["limits"]["queue"], 7)
            self.assertEqual(said["limits"]["in_flight"], 4)
            self.assertEqual(said["skills"], FULL["skills"])
            r = server.call("PATCH", "/api/agents/engineer", {"skills": []})
            self.assertFalse(r.json().get("skills"))
            r = server.call("PATCH", "/api/agents/engineer",
                            [{"op": "remove", "path": "/title"}],
                            "Content-Type: application/json-patch+json")
            self.assertEqual(error_code(r), (400, "bad_request"))
            r = server.call("PATCH", "/api/agents/engineer", {"nmae": "x"})
            self.assertEqual(error_code(r), (400, "bad_request"))
            self.assertIn("/nmae", problems(r))
            r = server.call("PATCH", "/api/agents/nobody", {"nmae": "x"})
            self.assertEqual(error_code(r), NOT_FOUND)

    def test_delete_takes_it_away_and_the_name_is_free(self):
        with Server() as server:
            register(server, "engineer")
            r = server.call("DELETE", "/api/agents/Engineer")
            self.assertEqual((r.status, r.body), (204, b""))
            for method in ("GET", "DELETE"):
                self.assertEqual(error_code(server.call(
                    method, "/api/agents/engineer")), NOT_FOUND)
            self.assertEqual(names(server, "/api/agents"), [])
            anna = server.user("anna")
            self.assertEqual(register(server, "engineer",
                                      token=anna).status, 201)

    def test_what_is_registered_outlives_a_crash(self):
        with tempfile.TemporaryDirectory() as data:
            with Server(data=data) as server:
                token = server.token
                server.call("POST", "/api/agents", FULL)
                server.call("PATCH", "/api/agents/engineer", {"title": "E"})
                before = server.call("GET", "/api/agents/engineer")
                server.kill9()
            with Server(data=data, token=token) as server:
                after = server.call("GET", "/api/agents/engineer")
                self.assertEqual(after.json(), before.json())
                self.assertEqual(after.headers["etag"], '"2"')

    def test_the_name_of_another_in_other_letters_is_taken(self):
        with Server() as server:
            register(server, "engineer")
            r = server.call("POST", "/api/agents", card("Engineer"))
            self.assertEqual(error_code(r), (409, "exists"))
            self.assertIn('"engineer"', r.json()["error"]["message"])

    def test_agents_of_the_configuration_are_changed_there(self):
        with Server(agents=ECHO) as server:
            said = server.call("GET", "/api/agents/echo").json()
            self.assertIsNone(said["creator_id"])
            self.assertEqual((said["kind"], said["visibility"]),
                             ("platform", "public"))
            for method, body in (("PUT", card("echo")), ("DELETE", None),
                                 ("PATCH", {"title": "x"})):
                r = server.call(method, "/api/agents/echo", body)
                self.assertEqual(error_code(r), (403, "not_allowed"))
                self.assertIn("configuration", r.json()["error"]["message"])


class Conditions(unittest.TestCase):
    def test_if_match_lets_one_of_two_writers_through(self):
        with Server() as server:
            register(server, "engineer")
            for method, body in (("PUT", card("engineer", title="a")),
                                 ("PATCH", {"title": "b"}),
                                 ("POST", card("engineer", title="c"))):
                path = "/api/agents" + ("" if method == "POST"
                                        else "/engineer")
                old = server.call("GET", "/api/agents/engineer")
                etag = "If-Match: " + old.headers["etag"]
                first = server.call(method, path, body, etag)
                self.assertEqual(first.status, 200, first)
                second = server.call(method, path, body, etag)
                self.assertEqual(error_code(second),
                                 (412, "precondition_failed"))
                self.assertIn(first.headers["etag"],
                              second.json()["error"]["message"])
            r = server.call("DELETE", "/api/agents/engineer", None, etag)
            self.assertEqual(error_code(r), (412, "precondition_failed"))
            r = server.call("DELETE", "/api/agents/engineer", None,
                            'If-Match: "1", "4"')
            self.assertEqual(r.status, 204)

    def test_of_writers_at_the_same_time_one_wins_each_round(self):
        with Server() as server:
            register(server, "engineer")
            answers = []

            def write(who, revision):
                answers.append(server.call(
                    "PATCH", "/api/agents/engineer", {"title": who},
                    f'If-Match: "{revision}"').status)

            for revision in range(1, 21):
                answers.clear()
                writers = [threading.Thread(target=write,
                                            args=(f"{who}{revision}",
                                                  revision))
                           for who in "abc"]
                for t in writers:
                    t.start()
                for t in writers:
                    t.join()
                # While one is being written the others are told to try
                # again; afterwards, that they were too late.
                self.assertEqual(answers.count(200), 1, answers)
                self.assertLessEqual(set(answers), {200, 409, 412})
                got = server.call("GET", "/api/agents/engineer")
                self.assertEqual(got.headers["etag"], f'"{revision + 1}"')

    def test_create_only_and_change_only(self):
        with Server() as server:
            new, there = "If-None-Match: *", "If-Match: *"
            r = server.call("PUT", "/api/agents/a", card("a"), there)
            self.assertEqual(error_code(r), (412, "precondition_failed"))
            r = server.call("PUT", "/api/agents/a", card("a"), new)
            self.assertEqual(r.status, 201)
            for method, path in (("PUT", "/api/agents/a"),
                                 ("POST", "/api/agents")):
                r = server.call(method, path, card("a", title="x"), new)
                self.assertEqual(error_code(r), (412, "precondition_failed"))
            r = server.call("PUT", "/api/agents/a", card("a", title="x"),
                            there)
            self.assertEqual((r.status, r.headers["etag"]), (200, '"2"'))
            r = server.call("PUT", "/api/agents/a", card("a", title="y"),
                            'If-None-Match: "2"')
            self.assertEqual(error_code(r), (412, "precondition_failed"))
            # Weak ones are not to write by.
            r = server.call("PUT", "/api/agents/a", card("a", title="y"),
                            'If-Match: W/"2"')
            self.assertEqual(error_code(r), (412, "precondition_failed"))
            self.assertIn("no weak ETags", r.text)
            # Not theirs to see, so not there to be matched or not.
            otto = server.user("otto")
            register(server, "hidden", visibility="private")
            answers = [told(server.call("PUT", "/api/agents/" + name,
                                        card(name), there, token=otto), name)
                       for name in ("hidden", "hiddem")]
            self.assertEqual(answers[0][0], 412)
            self.assertEqual(answers[0], answers[1])

    def test_a_reader_who_has_it_already_gets_304(self):
        with Server() as server:
            register(server, "engineer")
            path = "/api/agents/engineer"
            for header in ('"1"', 'W/"1"', '"7", "1"', "*"):
                r = server.call("GET", path, None, "If-None-Match: " + header)
                self.assertEqual((r.status, r.body, r.headers["etag"]),
                                 (304, b"", '"1"'), header)
            for header in ('"2"', '"x"'):
                r = server.call("GET", path, None, "If-None-Match: " + header)
                self.assertEqual(r.status, 200)
            r = server.call("GET", path, None, 'If-Match: "2"')
            self.assertEqual(error_code(r), (412, "precondition_failed"))

    def test_what_is_no_etag_is_refused_with_words(self):
        with Server() as server:
            register(server, "engineer")
            for header in ("1", '"1', "", '"1" "2"', '*, "1"', "W/1",
                           ",".join(['"1"'] * 17)):
                for name in ("If-Match", "If-None-Match"):
                    for method, body in (("GET", None), ("DELETE", None),
                                         ("PUT", card("engineer")),
                                         ("PATCH", {"title": "x"})):
                        r = server.call(method, "/api/agents/engineer", body,
                                        f"{name}: {header}")
                        self.assertEqual(error_code(r), (400, "bad_request"),
                                         (name, header, method))
                        self.assertIn(f'{name} must be * or',
                                      r.json()["error"]["message"])
            r = server.call("GET", "/api/agents/engineer", None,
                            'If-Match: "1"', 'If-Match: "2"')
            self.assertEqual(error_code(r), (400, "bad_request"))


class Lists(unittest.TestCase):
    def test_pages_filled_with_what_passes_the_filters(self):
        with Server() as server:
            anna = server.user("anna", org="acme")
            for i in range(30):
                register(server, f"a{i:02}", token=anna,
                         visibility=("public", "private")[i % 2],
                         skills=[skill("s", tags=["even"] if i % 4 == 0
                                       else ["Odd"])])
            register(server, "Zed", title="Zed")
            otto = server.user("otto")
            public = [f"a{i:02}" for i in range(0, 30, 2)] + ["Zed"]

            def paged(query, token, limit):
                found, cursor, n = [], "", 0
                while cursor is not None:
                    r = server.call(
                        "GET", f"/api/agents?limit={limit}{query}"
                        + (cursor and "&cursor=" + cursor), token=token)
                    self.assertEqual(r.status, 200, r)
                    page = r.json()
                    self.assertLessEqual(len(page["items"]), limit)
                    # No page is short but the last, and that is not empty:
                    # what they do not see leaves no trace.
                    self.assertTrue(page["items"] or not n)
                    cursor = page["next_cursor"]
                    if cursor:
                        self.assertEqual(len(page["items"]), limit)
                    found += [a["name"] for a in page["items"]]
                    n += 1
                return found

            for limit in (1, 3, 5, 500):
                self.assertEqual(paged("", otto, limit), public)
                self.assertEqual(
                    paged("&tag=EVEN", otto, limit),
                    [f"a{i:02}" for i in range(0, 30, 4)])
                self.assertEqual(paged("&creator=ANNA", otto, limit),
                                 public[:-1])
                self.assertEqual(paged("&org=acme", otto, limit), public[:-1])
                self.assertEqual(paged("&org=acm", otto, limit), [])
                self.assertEqual(paged("&visibility=private", otto, limit), [])
                self.assertEqual(paged("&kind=platform", otto, limit), ["Zed"])
                self.assertEqual(len(paged("&visibility=private", anna,
                                           limit)), 15)
            state = server.call("GET", "/api/agents/Zed").json()["state"]
            self.assertIn("Zed", names(server, "/api/agents?state="
                                       + state.lower()))
            self.assertEqual(names(server, "/api/agents?kind=self-hosted"),
                             [])

    def test_the_fields_of_old_are_there(self):
        with Server(agents=ECHO) as server:
            item = server.call("GET", "/api/agents").json()["items"][0]
            self.assertEqual((item["name"], item["url"], item["title"]),
                             ("echo", "echo:", None))

    def test_arguments_that_are_wrong_are_named(self):
        with Server() as server:
            for query, words in (
                    ("kind=robot", 'kind must be "platform"'),
                    ("kind=", 'kind must be "platform"'),
                    ("visibility=all", 'visibility must be "public"'),
                    ("state=asleep", 'state must be "ACTIVE"'),
                    ("limit=0", "limit must be"),
                    ("limit=501", "limit must be"),
                    ("cursor=%20", "cursor must be"),
                    ("colour=red", 'no argument "colour"'),
                    ("tag=a&tag=b", "given twice")):
                r = server.call("GET", "/api/agents?" + query)
                self.assertEqual(error_code(r), (400, "bad_request"), query)
                self.assertIn(words, r.json()["error"]["message"])
            r = server.call("OPTIONS", "/api/agents/search")
            self.assertEqual(r.status, 405)
            self.assertEqual(r.headers["allow"],
                             "GET, HEAD, POST, PUT, PATCH, DELETE")


class Visibility(unittest.TestCase):
    """Who asks x what kind of agent x how they ask."""

    def stage(self, server):
        cast = people(server)
        for kind in SEES:
            register(server, "of-" + kind, token=cast["creator"],
                     visibility=kind, description=f"a {kind}fish")
            for fields in ({"user": "gus"}, {"org": "partner"},
                           {"user": "ed", "expires_in_s": 1}):
                r = server.call("POST", "/api/grants",
                                {"agent": "of-" + kind, **fields},
                                token=cast["creator"])
                self.assertEqual(r.status, 201, r)
        eventually(lambda: server.call(
            "GET", "/api/agents/of-shared",
            token=cast["expired"]).status == 404, "the grant expires")
        return cast

    def test_everybody_sees_what_is_theirs_to_see_and_no_more(self):
        with Server() as server:
            cast = self.stage(server)
            for kind, seen_by in SEES.items():
                name = "of-" + kind
                for who, token in cast.items():
                    answers = (
                        server.call("GET", "/api/agents/" + name,
                                    token=token),
                        server.call("GET", "/api/agents", token=token),
                        server.call("GET", "/api/agents/search?mode=text&q="
                                    + kind + "fish", token=token),
                        server.send("hello", to=name, token=token))
                    with self.subTest(kind=kind, who=who):
                        if who == "nobody":
                            self.assertEqual([r.status for r in answers],
                                             [401] * 4)
                            continue
                        sees = who in seen_by
                        got, listed, found, sent = answers
                        self.assertEqual(got.status, 200 if sees else 404)
                        self.assertEqual(name in [
                            a["name"] for a in listed.json()["items"]], sees)
                        self.assertEqual([
                            a["name"] for a in found.json()["agents"]],
                            [name] if sees else [])
                        self.assertEqual(sent.status, 200 if sees else 404)
                        if not sees:
                            self.assertEqual(error_code(got), NOT_FOUND)
                            self.assertEqual(error_code(sent), NOT_FOUND)

    def test_what_is_not_theirs_is_answered_like_what_is_not_there(self):
        with Server(agents=ECHO) as server:
            cast = self.stage(server)
            otto = cast["other org"]
            for method, body in (("GET", None), ("DELETE", None),
                                 ("PATCH", {"title": "x"}),
                                 ("PATCH", {"nonsense": 1})):
                for headers in ((), ("If-Match: *",), ('If-Match: "1"',),
                                ("If-None-Match: *",)):
                    answers = [
                        told(server.call(method, "/api/agents/" + name, body,
                                         *headers, token=otto), name)
                        for name in ("of-private", "of-privata", "of-shared",
                                     "of-sharod")]
                    self.assertEqual(answers[0][0], 404, (method, headers))
                    self.assertEqual(answers[0], answers[1])
                    self.assertEqual(answers[2], answers[3])
            for path in ("/api/grants?agent=",):
                answers = [told(server.call("GET", path + name, token=otto),
                                name)
                           for name in ("of-private", "of-privata")]
                self.assertEqual(answers[0], answers[1])
            answers = [told(server.send("x", to=name, token=otto), name)
                       for name in ("of-private", "of-privata")]
            self.assertEqual(answers[0], answers[1])
            # The nearest names are those they see.
            near = server.call("GET", "/api/agents/of-publik", token=otto)
            self.assertEqual(near.json()["error"]["message"],
                             'there is no agent "of-publik"; did you mean '
                             '"of-public"?')
            self.assertEqual(near.json()["error"]["details"]["nearest"],
                             ["of-public"])
            for token, nearest in ((server.token, ["of-private"]),
                                   (otto, [])):
                near = server.call("GET", "/api/agents/of-privato",
                                   token=token)
                self.assertEqual(
                    near.json()["error"]["details"]["nearest"], nearest)
            # A name is one's own or taken: that much must be told.
            r = server.call("PUT", "/api/agents/of-private",
                            card("of-private"), token=otto)
            self.assertEqual(error_code(r), (409, "exists"))

    def test_what_is_seen_but_another_s_is_not_changed(self):
        with Server() as server:
            cast = self.stage(server)
            for who in ("same org", "granted", "org granted"):
                for method, body in (("PUT", card("of-shared")),
                                     ("PATCH", {"title": "x"}),
                                     ("DELETE", None)):
                    r = server.call(method, "/api/agents/of-shared", body,
                                    token=cast[who])
                    self.assertEqual(error_code(r), (403, "not_allowed"))
            r = server.call("PATCH", "/api/agents/of-shared", {"title": "x"})
            self.assertEqual((r.status, r.json()["creator_id"]),
                             (200, "anna"))

    def test_others_do_not_see_what_is_its_creator_s(self):
        with Server() as server:
            cast = people(server)
            server.call("POST", "/api/agents", FULL, token=cast["creator"])
            secret = ("You are an engineer", "wake.example.com")
            for who, token in cast.items():
                if who == "nobody":
                    continue
                for path in ("/api/agents/engineer", "/api/agents",
                             "/api/agents/search?q=bugs&explain=true"):
                    r = server.call("GET", path, token=token)
                    self.assertEqual(r.status, 200)
                    for words in secret:
                        self.assertEqual(
                            words in r.body.decode(),
                            who in ("admin", "creator", "her agent")
                            and "search" not in path, (who, path))

    def test_a_user_s_card_is_private_unless_it_says_so(self):
        with Server() as server:
            anna = server.user("anna")
            made = register(server, "mine", token=anna).json()
            self.assertEqual((made["visibility"], made["creator_id"],
                              made["kind"]), ("private", "anna", "managed"))
            made = register(server, "ours").json()
            self.assertEqual((made["visibility"], made["kind"]),
                             ("public", "platform"))

    def test_what_an_org_shares_goes_with_who_shares_it(self):
        with Server() as server:
            cast = people(server)
            register(server, "hers", token=cast["creator"],
                     visibility="shared")
            r = server.call("PATCH", "/api/users/anna", {"org": "other"})
            self.assertEqual(r.status, 200)
            got = {who: server.call("GET", "/api/agents/hers",
                                    token=token).status
                   for who, token in cast.items()}
            self.assertEqual((got["same org"], got["other org"]), (404, 200))

    def test_the_feed_tells_those_whose_it_is(self):
        with Server() as server:
            cast = people(server)
            register(server, "hers", token=cast["creator"],
                     visibility="public")
            server.call("PATCH", "/api/agents/hers", {"title": "x"},
                        token=cast["creator"])
            server.call("DELETE", "/api/agents/hers", token=cast["creator"])
            types = ["agent.registered", "agent.updated", "agent.removed"]
            for who in ("admin", "creator", "same org", "other org"):
                items = server.call("GET", "/api/feed?after=0&limit=500",
                                    token=cast[who]).json()["items"]
                seen = [e["type"] for e in items
                        if e["type"].startswith("agent.")]
                self.assertEqual(
                    seen, types if who in ("admin", "creator") else [], who)
                if seen:
                    entry = [e for e in items
                             if e["type"] == "agent.updated"][0]
                    self.assertEqual((entry["agent"], entry["requester"]),
                                     ("hers", "anna"))


class BadCards(unittest.TestCase):
    def test_all_problems_are_told_at_once_with_their_places(self):
        with Server() as server:
            r = server.call("POST", "/api/agents", {
                "name": "-bad-", "description": 7, "url": "ftp://x/",
                "colour": "red",
                "skills": [{"id": "a", "name": ""}, {"id": "a"},
                           {"pricing": {"amount_micros": -1}}]})
            self.assertEqual(error_code(r), (400, "bad_request"))
            error = r.json()["error"]
            found = problems(r)
            for pointer in ("/name", "/description", "/url", "/colour",
                            "/skills/0/name", "/skills/1/id",
                            "/skills/2/pricing/amount_micros"):
                self.assertIn(pointer, found)
            self.assertEqual(error["details"]["total"], len(found))
            self.assertIn(str(len(found) - 1), error["message"])
            for p in error["details"]["problems"]:
                self.assertTrue(p["message"])
            self.assertEqual(names(server, "/api/agents"), [])

    def test_oddities(self):
        many = [skill(f"s{i}") for i in range(1000)]
        cases = [
            ({"description": "word " * 10000}, "/description"),
            ({"description": "x\u202egnp"}, "/description"),
            ({"title": "a\u200bb"}, "/title"),
            ({"title": "a\u0000b"}, "/title"),
            ({"skills": many}, "/skills"),
            ({"pricing": {"amount_micros": -5}}, "/pricing/amount_micros"),
            ({"url": "https://user:secret@example.com/"}, "/url"),
            ({"url": "javascript:alert(1)"}, "/url"),
            ({"url": "file:///etc/passwd"}, "/url"),
            ({"name": "search"}, "/name"),
            ({"name": "a/b"}, "/name"),
            ({"name": ""}, "/name"),
            ({"name": 7}, "/name"),
            ({"visibility": "everybody"}, "/visibility"),
            ({"skills": [skill("a"), skill("a")]}, "/skills/1/id"),
            ({"routing": {"keywords": ["x" * 65]}}, "/routing/keywords/0"),
            ({"limits": {"queue": "many"}}, "/limits/queue"),
        ]
        with Server() as server:
            for fields, pointer in cases:
                r = server.call("POST", "/api/agents",
                                {**card("odd"), **fields})
                with self.subTest(fields=str(fields)[:80]):
                    self.assertEqual(error_code(r), (400, "bad_request"))
                    self.assertIn(pointer, problems(r))
            self.assertEqual(names(server, "/api/agents"), [])
            # Letters of every writing are welcome.
            said = register(server, "polyglot", title="مترجم",
                            description="翻訳します 👋").json()
            self.assertEqual((said["title"], said["description"]),
                             ("مترجم", "翻訳します 👋"))

    def test_what_only_an_admin_may_say_is_refused_to_others(self):
        forbidden = ({"restart": {"command": ["/bin/sh"]}},
                     {"url": "process:shell"}, {"creator_id": "admin"},
                     {"kind": "platform"}, {"org": "other"})
        with Server() as server:
            anna = server.user("anna", org="acme")
            for fields in forbidden:
                r = server.call("POST", "/api/agents",
                                {**card("mine"), **fields}, token=anna)
                self.assertEqual(error_code(r), (403, "not_allowed"), fields)
                self.assertTrue(problems(r)[0])
                r = server.call("POST", "/api/agents",
                                {**card("mine"), **fields, "colour": 1},
                                token=anna)
                self.assertEqual(error_code(r), (400, "bad_request"))
            self.assertEqual(names(server, "/api/agents"), [])
            register(server, "mine", token=anna)
            for fields in forbidden:
                r = server.call("PATCH", "/api/agents/mine", fields,
                                token=anna)
                self.assertEqual(error_code(r), (403, "not_allowed"), fields)
            r = server.call("PATCH", "/api/agents/mine",
                            {"org": "other", "creator_id": "anna"})
            self.assertEqual((r.status, r.json()["org"]), (200, "other"))

    def test_bodies_that_are_no_cards(self):
        with Server() as server:
            for body, code in ((b"", "invalid_json"), (b"{", "invalid_json"),
                               (b'{"name":"a","name":"b"}', "invalid_json"),
                               (b"[]", "bad_request"), (b"7", "bad_request"),
                               (b'"x"', "bad_request")):
                for method, path in (("POST", "/api/agents"),
                                     ("PUT", "/api/agents/x")):
                    r = server.call(method, path, body)
                    self.assertEqual(error_code(r), (400, code), body)

    def test_a_card_has_its_limit(self):
        with Server() as server:
            for n, fits in ((CARD_MAX, True), (CARD_MAX + 1, False)):
                body = json.dumps(card("big")).encode()
                body = b" " * (n - len(body)) + body
                r = server.call("POST", "/api/agents", body)
                if fits:
                    self.assertEqual(r.status, 201, r)
                else:
                    self.assertEqual(error_code(r), (413, "too_large"))
                    self.assertEqual(r.json()["error"]["details"],
                                     {"limit_bytes": CARD_MAX})
            # As many values as fit are no more trouble than others.
            body = b'{"metadata":[' + b"1," * (CARD_MAX // 2 - 50) + b"1]}"
            self.assertEqual(server.call("POST", "/api/agents",
                                         body).status, 400)
