"""The commands of agents: as the API tells them, as a message is routed by
them, and pushed to servers that judge as Telegram and Discord do."""
import json
import socket
import unittest

from cards import error_code, people, register, skill
from client import FAILED, NOT_ALLOWED, REFUSED, UNREACHABLE, USAGE, Client
from platforms import Discord, Telegram
from signalbox import Server

LONG = "An agent that says very much about itself, " * 30
AGENTS = [{"id": "code", "url": "echo:", "description": "Builds software"},
          {"id": "data-mover", "url": "echo:",
           "description": "Moves data\nfrom here to there"},
          {"id": "data.mover", "url": "echo:", "description": "Another one"},
          {"id": "Scribe", "url": "echo:",
           "description": "écrit \U0001f600 " + LONG},
          {"id": "silent", "url": "echo:"}]
MENU = ["code", "data_mover", "scribe", "silent"]


class Api(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(agents=AGENTS).__enter__()
        cls.cast = people(cls.server)

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(None)

    def get(self, query="", **more):
        r = self.server.call("GET", "/api/commands" + query, **more)
        self.assertEqual(r.status, 200, r)
        return r

    def test_a_list_has_what_is_typed_and_what_menus_call_it(self):
        items = {i["agent"]: i for i in self.get().json()["items"]}
        self.assertEqual(items["data-mover"],
                         {"command": "/data-mover", "agent": "data-mover",
                          "description": "Moves data from here to there",
                          "menu": "data_mover"})
        self.assertEqual(items["data.mover"]["menu"], None)
        self.assertEqual(items["data.mover"]["left_out"],
                         'in a menu its command belongs to "data-mover"')
        self.assertEqual(items["silent"]["description"], "Ask silent")
        self.assertLessEqual(len(items["Scribe"]["description"]), 256)

    def test_pages_of_a_list_have_everybody_once(self):
        found, cursor = [], ""
        while cursor is not None:
            page = self.get("?limit=2" + (cursor and "&cursor=" + cursor)
                            ).json()
            self.assertLessEqual(len(page["items"]), 2)
            found += [i["agent"] for i in page["items"]]
            cursor = page["next_cursor"]
        self.assertEqual(found, [i["agent"]
                                 for i in self.get().json()["items"]])
        self.assertIn("data.mover", found)

    def test_each_format_is_what_the_platform_takes(self):
        telegram = self.get("?format=telegram").json()
        self.assertEqual([c["command"] for c in telegram["commands"]], MENU)
        discord = self.get("?format=discord").json()
        self.assertEqual([c["name"] for c in discord], MENU)
        plain = self.get("?format=plain")
        self.assertEqual(plain.headers["content-type"],
                         "text/plain; charset=utf-8")
        self.assertIn("/data.mover - Another one\n", plain.body.decode())
        self.assertEqual(len(plain.body.decode().splitlines()), len(AGENTS))

    def test_only_what_one_may_see_is_a_command(self):
        anna = self.cast["creator"]
        register(self.server, "hidden", token=anna,
                 skills=[skill("hide", tags=["secret"])])
        self.addCleanup(self.server.call, "DELETE", "/api/agents/hidden",
                        token=anna)
        mine = self.get("?tag=secret", token=anna).json()["items"]
        self.assertEqual([i["menu"] for i in mine], ["hidden"])
        theirs = self.get(token=self.cast["other org"]).json()["items"]
        self.assertNotIn("hidden", [i["agent"] for i in theirs])
        self.assertEqual(self.get("?org=missing").json()["items"], [])

    def test_what_cannot_be_is_refused(self):
        for query, words in (
                ("?format=irc", "format must be"),
                ("?format=telegram&limit=3", "limit and cursor are only for"),
                ("?cursor=no%20name", "cursor must be"),
                ("?limit=0", "limit")):
            r = self.server.call("GET", "/api/commands" + query)
            self.assertEqual(error_code(r), (400, "bad_request"))
            self.assertIn(words, r.json()["error"]["message"])


class Many(unittest.TestCase):
    """More than menus take, with as much to say as there can be."""

    def test_the_first_hundred_fit_both_platforms(self):
        agents = [{"id": f"agent-{i:03}-" + "x" * 30, "url": "echo:",
                   "description": "\U0001f600 wörter " * 400}
                  for i in range(103)]
        with Server(agents=agents) as server, Telegram() as telegram, \
                Discord() as discord:
            r = server.call("GET", "/api/commands?format=telegram")
            telegram.check(r.json()["commands"])
            self.assertEqual(len(telegram.checked), 100)
            r = server.call("GET", "/api/commands?format=discord")
            self.assertEqual(len(discord.overwrite(None, r.json())), 100)
            r = server.call("GET", "/api/commands?limit=500").json()["items"]
            self.assertEqual([i["left_out"] for i in r if not i["menu"]],
                             ["a menu has at most 100 commands"] * 3)


class Push(Client):
    def telegram(self, *args, bot, token=None):
        return ("commands", "push", "telegram", "--api", bot.url, *args), \
            {"env": {"TELEGRAM_BOT_TOKEN": token or bot.token}}

    def discord(self, *args, bot, token=None):
        return ("commands", "push", "discord", "--api", bot.url, *args), \
            {"env": {"DISCORD_BOT_TOKEN": token or bot.token}}

    def pushed(self, call):
        return self.good(*call[0], **call[1])

    def refused(self, status, call):
        said = self.bad(status, *call[0], **call[1])
        for secret in call[1]["env"].values():
            self.assertNotIn(secret, said)
        return said

    def test_telegram_has_the_menu_and_who_is_left_out_is_told(self):
        self.server(agents=AGENTS)
        with Telegram() as bot:
            out = self.pushed(self.telegram(bot=bot))
            self.assertEqual(out, (
                "Telegram has 4 commands now\nNot in the menu:\n"
                "  data.mover: in a menu its command belongs to "
                '"data-mover"\n'))
            menu = bot.menus[("default", None), ""]
            self.assertEqual([c["command"] for c in menu], MENU)
            self.assertEqual(bot.calls[0][:2], ("POST", "setMyCommands"))
            self.pushed(self.telegram("--clear", bot=bot))
            self.assertEqual((bot.menus, bot.calls[1][1]),
                             ({}, "deleteMyCommands"))

    def test_telegram_has_menus_for_scopes_chats_and_languages(self):
        self.server(agents=AGENTS[:1])
        with Telegram() as bot:
            for args, where in (
                    (("--scope", "all_group_chats"),
                     (("all_group_chats", None), "")),
                    (("--chat=-1001234", "--language", "de"),
                     (("chat", -1001234), "de")),
                    (("--chat", "@some_chat"), (("chat", "@some_chat"), ""))):
                self.pushed(self.telegram(*args, bot=bot))
                self.assertIn(where, bot.menus)

    def test_discord_has_the_menu_for_all_or_for_a_guild(self):
        self.server(agents=AGENTS)
        with Discord(guilds=["88"]) as bot:
            self.pushed(self.discord(bot=bot))
            self.assertEqual([c["name"] for c in bot.menus[None]], MENU)
            self.pushed(self.discord("--guild", "88", "--app", bot.app,
                                     bot=bot))
            self.assertEqual(bot.menus["88"], bot.menus[None])
            self.pushed(self.discord("--clear", bot=bot))
            self.assertEqual(bot.menus[None], [])

    def test_what_is_pushed_is_told_as_json_and_before_it_is_sent(self):
        self.server(agents=AGENTS)
        with Telegram() as bot:
            call = self.telegram("--dry-run", bot=bot)
            body = json.loads(self.pushed(call))
            self.assertEqual((len(body["commands"]), bot.calls), (4, []))
            # Nothing is sent, so no token is needed.
            self.good(*call[0])
            call = self.telegram("--json", bot=bot)
            said = json.loads(self.pushed(call))
            self.assertEqual((said["platform"], said["commands"],
                              [a["agent"] for a in said["left_out"]]),
                             ("telegram", 4, ["data.mover"]))

    def test_the_token_may_be_in_a_file(self):
        self.server(agents=AGENTS[:1])
        with Telegram() as bot:
            path = self.home + "/bot.token"
            with open(path, "w", encoding="utf-8") as f:
                f.write(f"  {bot.token}\n")
            args, _ = self.telegram("--bot-token-file", path, bot=bot)
            self.good(*args)
            self.assertEqual(len(bot.calls), 1)

    def test_a_platform_that_asks_for_patience_gets_it(self):
        self.server(agents=AGENTS[:1])
        with Telegram() as telegram, Discord() as discord:
            telegram.patience = discord.patience = 1
            self.pushed(self.telegram(bot=telegram))
            self.pushed(self.discord(bot=discord))
            self.assertTrue(telegram.menus and discord.menus)
            telegram.broken = (429, "application/json", json.dumps({
                "ok": False, "parameters": {"retry_after": 3600},
                "description": "Too Many Requests"}).encode())
            said = self.refused(REFUSED, self.telegram(bot=telegram))
            self.assertIn("limits the rate of requests", said)

    def test_who_is_not_known_there_is_told_so(self):
        self.server(agents=AGENTS[:1])
        with Telegram() as telegram, Discord() as discord:
            said = self.refused(NOT_ALLOWED, self.telegram(
                bot=telegram, token="1:wrong"))
            self.assertIn("does not know the bot of this token", said)
            said = self.refused(NOT_ALLOWED, self.discord(
                bot=discord, token="not.the.one"))
            self.assertIn("does not know the bot of this token", said)
            for args in (("--guild", "5"), ("--app", "5")):
                said = self.refused(NOT_ALLOWED, self.discord(
                    *args, bot=discord))
                self.assertIn("applications.commands", said)
            self.assertEqual((telegram.menus, discord.menus), ({}, {}))

    def test_whatever_answers_there_the_token_is_not_shown(self):
        self.server(agents=AGENTS[:1])
        with Telegram() as bot:
            for broken, status in (
                    ((200, "text/html", b"<html>"), FAILED),
                    ((400, "application/json", json.dumps({
                        "description": "no /bot" + bot.token}).encode()),
                     FAILED),
                    ((502, "text/html", b"Bad Gateway"), UNREACHABLE),
                    ((302, "text/html", b""), FAILED)):
                bot.broken = broken
                self.refused(status, self.telegram(bot=bot))
            closed = socket.create_server(("127.0.0.1", 0))
            bot.url = f"http://127.0.0.1:{closed.getsockname()[1]}"
            closed.close()
            self.refused(UNREACHABLE, self.telegram(bot=bot))

    def test_what_makes_no_sense_is_told_before_anything_is_sent(self):
        self.server(agents=[])
        with Telegram() as bot:
            for args, words in (
                    (("icq",), "unknown platform"),
                    (("telegram", "--guild", "1"), "Telegram knows no --guild"),
                    (("discord", "--chat", "1"), "Discord knows no --chat"),
                    (("telegram", "--scope", "all"), "--scope is"),
                    (("telegram", "--chat", "x y"), "--chat must be"),
                    (("telegram", "--api", "ftp://x"), "not a server's address"),
                    (("discord", "--app", "../x"), "--app must be")):
                said = self.bad(USAGE, "commands", "push", *args)
                self.assertIn(words, said)
            said = self.bad(NOT_ALLOWED, "commands", "push", "telegram")
            self.assertIn("export TELEGRAM_BOT_TOKEN", said)
            said = self.refused(NOT_ALLOWED, self.telegram(
                bot=bot, token="bot/../x"))
            self.assertIn("not a bot's token", said)
            said = self.refused(REFUSED, self.telegram(bot=bot))
            self.assertIn("there is no agent for the menu", said)
            self.assertEqual(bot.calls, [])

    def test_the_list_is_a_table(self):
        self.server(agents=AGENTS)
        out = self.good("commands")
        self.assertRegex(out, r"COMMAND +IN MENUS +AGENT +DESCRIPTION")
        self.assertRegex(out, r"/data-mover +data_mover +data-mover +Moves")
        self.assertRegex(out, r"/data\.mover +- +data\.mover +Another")
        self.assertEqual(len(self.lines("commands")), len(AGENTS))


if __name__ == "__main__":
    unittest.main()
