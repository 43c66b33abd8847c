"""Agents over HTTP: registered, read, replaced, patched and removed; ETags;
cards that are wrong."""
import json
import tempfile
import threading
import unittest

from cards import (FULL, NOT_FOUND, card, error_code, names, register, skill,
                   told)
from signalbox import ECHO, Server

CARD_MAX = 1024 * 1024


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
            r = server.call("PATCH", "/api/agents/missing", {"nmae": "x"})
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

    def test_a_creator_that_an_admin_names_is_a_user(self):
        """Whatever the case: theirs is what they find."""
        with Server() as server:
            anna, otto = server.user("Anna"), server.user("otto")
            made = register(server, "hers", creator_id="aNNa",
                            visibility="private", description="a kingfish")
            self.assertEqual(made.json()["creator_id"], "Anna")
            got = server.call("GET", "/api/agents/hers").json()
            r = server.call("PUT", "/api/agents/hers",
                            {**got, "creator_id": "ANNA"})
            self.assertIs(r.json()["changed"], False)

            def sees(token):
                search = "/api/agents/search?mode=text&q=kingfish"
                found = names(server, search, token=token)
                self.assertEqual(
                    found, names(server, "/api/agents", token=token))
                return found == ["hers"]

            self.assertTrue(sees(anna) and not sees(otto))
            r = server.call("PATCH", "/api/agents/hers",
                            {"creator_id": "OTTO"})
            self.assertEqual((r.status, r.json()["creator_id"]),
                             (200, "otto"))
            self.assertTrue(sees(otto) and not sees(anna))
            for method, path, body in (
                    ("POST", "/api/agents", card("new", creator_id="ann")),
                    ("PUT", "/api/agents/hers", card("hers",
                                                     creator_id="ann")),
                    ("PATCH", "/api/agents/hers", {"creator_id": "ann"})):
                r = server.call(method, path, body)
                self.assertEqual(error_code(r), (400, "bad_request"))
                self.assertEqual(problems(r), ["/creator_id"])
                self.assertIn('there is no user "ann"',
                              r.json()["error"]["message"])
            # Who was removed is known no more, and stays what they were.
            self.assertEqual(server.call("DELETE",
                                         "/api/users/otto").status, 204)
            got = server.call("GET", "/api/agents/hers").json()
            self.assertEqual(got["creator_id"], "otto")
            r = server.call("PUT", "/api/agents/hers",
                            {**got, "title": "x", "creator_id": "Otto"})
            self.assertEqual((r.status, r.json()["creator_id"]),
                             (200, "otto"), r)

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
            self.assertIn(b"needs a strong ETag", r.body)
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
            # If-Match is judged first: RFC 9110, 13.2.2.
            for more in ((), ('If-None-Match: "1"',), ("If-None-Match: *",)):
                r = server.call("GET", path, None, 'If-Match: "2"', *more)
                self.assertEqual(error_code(r), (412, "precondition_failed"))
            r = server.call("GET", path, None, 'If-Match: "1"',
                            'If-None-Match: "1"')
            self.assertEqual(r.status, 304)

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
