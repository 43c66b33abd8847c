"""Who sees which agents: lists with their filters and pages, the table of who
sees what, and the feed."""
import json
import subprocess
import unittest

from cards import (FULL, NOT_FOUND, SEES, card, error_code, names, people,
                   register, skill, told)
from signalbox import BINARY, DEADLINE_S, ECHO, Server, clean_environment, \
    eventually


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

    def test_a_page_ends_when_enough_was_looked_at_in_vain(self):
        """50 000 agents and tags in a turn; anyone who goes on finds the rest."""
        many = [skill(f"s{i}", tags=[f"t{k}" for k in range(32)])
                for i in range(256)]
        with Server() as server:
            otto = server.user("otto")
            for i in range(9):
                register(server, f"a{i}", skills=many)
                register(server, f"b{i}", visibility="private")
            register(server, "z", skills=[skill("s", tags=["rare"])])
            # 8193 looks each: the seventh begins before they are used up.
            first = server.call("GET", "/api/agents?tag=rare", token=otto)
            self.assertEqual(first.json(), {"items": [],
                                            "next_cursor": "a6"})
            second = server.call("GET", "/api/agents?tag=rare&cursor=a6",
                                 token=otto).json()
            self.assertEqual(([a["name"] for a in second["items"]],
                              second["next_cursor"]), (["z"], None))
            # Nothing is looked through where a page is filled.
            self.assertEqual(len(names(server, "/api/agents?tag=T0",
                                       token=otto)), 9)
            run = subprocess.run(
                [BINARY, "agents", "list", "--tag", "rare", "--json"],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                env={**clean_environment(), "SIGNALBOX_TOKEN": otto,
                     "SIGNALBOX_URL": server.url},
                timeout=DEADLINE_S, text=True, check=True)
            self.assertEqual([json.loads(line)["name"]
                              for line in run.stdout.splitlines()], ["z"])

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
                    ("colour=red", 'unknown argument "colour"'),
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
                        if who == "missing":
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
                if who == "missing":
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
                # That a public one is gone may be known to all.
                is_theirs = who in ("admin", "creator")
                self.assertEqual(seen, types if is_theirs else types[-1:], who)
                if is_theirs:
                    entry = [e for e in items
                             if e["type"] == "agent.updated"][0]
                    self.assertEqual((entry["agent"], entry["requester"]),
                                     ("hers", "anna"))
