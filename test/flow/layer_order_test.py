"""Who gets a message, by layers that need no model: the executor it names, the
command it begins with, the agent its conversation has, where it came from, and
the default; over HTTP, with agents that answer with what they were told."""
import unittest

from cards import error_code, people, register
from signalbox import OWN, Server

AGENTS = [{"id": name, "url": "echo:"}
          for name in ("code", "data-mover", "docs", "ops")]
GROUP = {"kind": "group", "id": "-1001234"}
CONFIG = {
    "bindings": [
        {"agentId": "docs", "match": {"channel": "telegram"}},
        {"agentId": "ops", "match": {"channel": "telegram", "peer": GROUP}},
        {"agentId": "code", "match": {"channel": "discord",
                                      "guildId": "guild-abc"}},
    ],
    "routing": {"layers": ["explicit", "prefix", "sticky", "binding",
                           "default"]},
}


def send(server, text, token=OWN, **fields):
    """To whomever it may be for."""
    return server.call("POST", "/api/messages", {"text": text, **fields},
                       token=token)


class Layers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        config = {**CONFIG, "agents": {"list": AGENTS, "default": "code"}}
        cls.server = Server(config=config).__enter__()
        cls.cast = people(cls.server)

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(None)

    def send(self, text, **fields):
        r = send(self.server, text, **fields)
        self.assertEqual(r.status, 200, r)
        return r.json()

    def chosen(self, text, **fields):
        said = self.send(text, **fields)
        self.assertEqual(said["agent"], said["decision"]["agent"])
        return said["agent"], said["decision"]["layer"]

    def refused(self, code, text, **fields):
        r = send(self.server, text, **fields)
        self.assertEqual(error_code(r), code, r)
        return r.json()["error"]["message"]

    def test_a_command_leads_to_its_agent_and_is_taken_off(self):
        for text, told in (("/docs explain the API", "explain the API"),
                           ("/DOCS@some_bot\n x ", "x ")):
            said = self.send(text)
            self.assertEqual((said["agent"], said["text"],
                              said["decision"]["layer"]),
                             ("docs", told, "prefix"))
        for word in ("/data-mover", "/data_mover", "/Data.Mover"):
            self.assertEqual(self.chosen(word + " go"),
                             ("data-mover", "prefix"))

    def test_what_is_nobodys_command_is_a_text(self):
        for text in ("/etc/hosts is broken", "/missing x", "//docs x"):
            said = self.send(text)
            self.assertEqual((said["text"], said["decision"]["layer"]),
                             (text, "default"))

    def test_a_command_alone_is_refused(self):
        said = self.refused((400, "bad_request"), "/docs \n")
        self.assertEqual(said, '"/docs" stands alone; write what "docs" is to '
                               'do behind it')

    def test_nobody_learns_of_an_agent_by_its_command(self):
        register(self.server, "hidden", token=self.cast["creator"])
        other = self.cast["other org"]
        for text in ("/hidden x", "/hidden"):
            said = self.send(text, token=other)
            self.assertEqual((said["agent"], said["text"]), ("code", text))
        self.assertEqual(
            self.chosen("/hidden x", token=self.cast["creator"]),
            ("hidden", "prefix"))

    def test_where_a_message_came_from_says_whose_it_is(self):
        for source, agent in (
                ({"channel": "telegram"}, "docs"),
                ({"channel": "Telegram", "peer": GROUP}, "ops"),
                ({"channel": "telegram",
                  "peer": {"kind": "channel", "id": -1001234}}, "ops"),
                ({"channel": "telegram", "peer": {"kind": "dm", "id": 1},
                  "parentPeer": GROUP}, "ops"),
                ({"channel": "discord", "guildId": "guild-abc"}, "code")):
            self.assertEqual(self.chosen("hello", source=source),
                             (agent, "binding"))
        self.assertEqual(self.chosen("hello", source={"channel": "irc"}),
                         ("code", "default"))
        said = self.refused((400, "bad_request"), "hello",
                            source={"channel": ["telegram"]})
        self.assertEqual(said, "source.channel must be a string")

    def test_the_layers_in_their_order(self):
        source = {"channel": "telegram"}
        all_of_it = {"executor": {"name": "code"}, "source": source,
                     "conversation_id": "order"}
        self.assertEqual(self.chosen("/ops x", **all_of_it),
                         ("code", "explicit"))
        del all_of_it["executor"]
        self.assertEqual(self.chosen("/ops x", **all_of_it),
                         ("ops", "prefix"))
        self.assertEqual(self.chosen("x", **all_of_it), ("ops", "sticky"))
        del all_of_it["conversation_id"]
        self.assertEqual(self.chosen("x", **all_of_it), ("docs", "binding"))
        self.assertEqual(self.chosen("x"), ("code", "default"))

    def test_naming_another_agent_switches_the_conversation(self):
        talk = {"conversation_id": "switch"}
        first = self.send("x", source={"channel": "telegram"}, **talk)
        self.assertEqual((first["agent"], first["decision"]["layer"]),
                         ("docs", "binding"))
        self.assertEqual(self.chosen("/ops y", **talk), ("ops", "prefix"))
        self.assertEqual(self.chosen("z", **talk), ("ops", "sticky"))
        self.assertEqual(self.chosen("z", executor={"name": "code"}, **talk),
                         ("code", "explicit"))
        self.assertEqual(self.chosen("z", **talk), ("code", "sticky"))
        was = self.server.call("GET", "/api/decisions/"
                               + first["decision"]["id"]).json()
        self.assertEqual((was["overridden_to"], was["verdict"]),
                         ("ops", "negative"))

    def test_a_conversation_whose_agent_is_gone_gets_another(self):
        register(self.server, "brief", visibility="public")
        talk = {"conversation_id": "gone"}
        self.assertEqual(self.chosen("/brief x", **talk),
                         ("brief", "prefix"))
        self.assertEqual(self.chosen("y", **talk), ("brief", "sticky"))
        r = self.server.call("DELETE", "/api/agents/brief")
        self.assertEqual(r.status, 204)
        said = self.send("z", **talk)
        self.assertEqual((said["agent"], said["decision"]["layer"]),
                         ("code", "default"))
        self.assertTrue(said["decision"]["reason"].startswith(
            'the conversation\'s agent "brief" is gone; '), said)
        self.assertEqual(self.chosen("z", **talk), ("code", "sticky"))


class NoAgent(unittest.TestCase):
    def test_what_no_layer_answers_is_refused_with_words(self):
        with Server(agents=AGENTS, config=None) as server:
            r = send(server, "/docs")
            self.assertEqual(error_code(r), (400, "bad_request"))
        config = {**CONFIG, "agents": {"list": AGENTS}}
        with Server(config=config) as server:
            r = send(server, "x")
            self.assertEqual(error_code(r), (422, "no_route"))

    def test_a_binding_to_an_agent_that_went_is_an_error(self):
        config = {"bindings": [{"agentId": "code",
                                "match": {"channel": "telegram"}}],
                  "agents": {"list": [{**AGENTS[0], "visibility": "private"},
                                      AGENTS[1]],
                             "default": "data-mover"}}
        with Server(config=config) as server:
            anna = server.user("anna")
            r = send(server, "x", token=anna, source={"channel": "telegram"})
            self.assertEqual(error_code(r), (404, "agent_not_found"), r)
            self.assertNotIn("\"code\"", r.json()["error"]["message"])


if __name__ == "__main__":
    unittest.main()
