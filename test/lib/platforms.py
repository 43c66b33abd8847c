"""Telegram's and Discord's menus of commands, each as a server of its own on a
free port that judges as the platform does: what it takes, what it refuses, and
in which words.

    with Telegram() as bot:
        bot.url, bot.token          # for --api and TELEGRAM_BOT_TOKEN
        bot.menus                   # scope and language -> commands
        bot.calls                   # (method, path without token, body)
        bot.patience = 2            # so many calls are answered with 429

    with Discord(app="77", guilds=["88"]) as bot: ...

Whatever is not as the platform's documentation has it is refused, also where
the platform itself is said to be more lenient."""
import http.server
import json
import re
import threading

from quiet import Quiet

# Not documented; what was found out by others lies between 5670 and 5796.
TELEGRAM_TEXT_MAX = 5670


class Platform:
    def __init__(self):
        self.calls = []
        self.patience = 0
        self.broken = None  # (status, type, bytes): the answer to everything
        platform = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def take(self):
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length)
                status, headers, answer = platform.answer(
                    self.command, self.path, self.headers, body)
                data = answer if isinstance(answer, bytes) \
                    else json.dumps(answer).encode()
                self.send_response(status)
                headers = {"Content-Type": "application/json", **headers}
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = do_DELETE = take

            def log_message(self, *_):
                pass

        self.server = Quiet(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.server.serve_forever,
                                       kwargs={"poll_interval": 0.01})

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def answer(self, method, path, headers, body):
        if self.broken:
            status, kind, data = self.broken
            return status, {"Content-Type": kind}, data
        return self.judge(method, path, headers, body)


class Refused(Exception):
    """A status and what is said with it."""


class Telegram(Platform):
    token = "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"
    scopes = ("default", "all_private_chats", "all_group_chats",
              "all_chat_administrators", "chat")

    def __init__(self):
        super().__init__()
        self.menus = {}

    def judge(self, method, path, headers, body):
        try:
            found = re.fullmatch(r"/bot(\d+:[\w-]+)/(\w+)", path)
            if not found:
                raise Refused(404, "Not Found")
            if found[1] != self.token:
                raise Refused(401, "Unauthorized")
            if self.patience:
                self.patience -= 1
                return 429, {"Retry-After": "1"}, {
                    "ok": False, "error_code": 429,
                    "description": "Too Many Requests: retry after 1",
                    "parameters": {"retry_after": 1}}
            if method != "POST" or \
                    headers["Content-Type"] != "application/json":
                raise Refused(400, "Bad Request: object expected")
            body = json.loads(body)
            self.calls.append((method, found[2], body))
            return 200, {}, {"ok": True, "result": self.call(found[2], body)}
        except Refused as e:
            status, words = e.args
            return status, {}, {"ok": False, "error_code": status,
                                "description": words}

    def call(self, name, body):
        where = self.scope(body), self.language(body)
        if name == "setMyCommands":
            self.check(body.pop("commands", None))
            self.menus[where] = self.calls[-1][2]["commands"] = self.checked
        elif name == "deleteMyCommands":
            self.menus.pop(where, None)
        else:
            raise Refused(404, "Not Found")
        body = {k: v for k, v in body.items() if k != "commands"}
        if body.keys() - {"scope", "language_code"}:
            raise Refused(400, f"Bad Request: {sorted(body)}")
        return True

    def scope(self, body):
        scope = body.get("scope", {"type": "default"})
        if scope.get("type") not in self.scopes:
            raise Refused(400, "Bad Request: unsupported type specified")
        chat = scope.get("chat_id")
        if scope["type"] == "chat":
            if not isinstance(chat, int) and not re.fullmatch(r"@\w+",
                                                              chat or ""):
                raise Refused(400, "Bad Request: chat not found")
        elif chat is not None:
            raise Refused(400, "Bad Request: unexpected chat_id")
        return scope["type"], chat

    @staticmethod
    def language(body):
        code = body.get("language_code", "")
        if not re.fullmatch("([a-z]{2})?", code):
            raise Refused(400, "Bad Request: invalid language code specified")
        return code

    def check(self, commands):
        if not isinstance(commands, list):
            raise Refused(400, "Bad Request: expected an Array of BotCommand")
        for one in commands:
            if not isinstance(one, dict) or \
                    set(one) != {"command", "description"}:
                raise Refused(400, "Bad Request: can't parse BotCommand")
            if not re.fullmatch("[a-z0-9_]{1,32}", one["command"]):
                raise Refused(400, "Bad Request: BOT_COMMAND_INVALID")
            if not one["description"].strip():
                raise Refused(400, "Bad Request: command description must be "
                                   "non-empty")
            if len(one["description"]) > 256:
                raise Refused(400, "Bad Request: command description length "
                                   "must not exceed 256")
        if len({c["command"] for c in commands}) < len(commands):
            raise Refused(400, "Bad Request: BOT_COMMAND_INVALID")
        text = sum(len((c["command"] + c["description"]).encode())
                   for c in commands)
        if len(commands) > 100 or text > TELEGRAM_TEXT_MAX:
            raise Refused(400, "Bad Request: BOT_COMMANDS_TOO_MUCH")
        self.checked = commands


class Discord(Platform):
    token = "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs"

    def __init__(self, app="198622483471925248", guilds=()):
        super().__init__()
        self.url += "/api/v10"
        self.app, self.guilds = app, guilds
        self.menus = {}  # guild or None -> commands

    def judge(self, method, path, headers, body):
        try:
            return self.route(method, path, headers, body)
        except Refused as e:
            status, code, words, *errors = e.args
            return status, {}, {"code": code, "message": words,
                                **({"errors": errors[0]} if errors else {})}

    def route(self, method, path, headers, body):
        if not re.match(r"DiscordBot \([^,()]+, [^,()]+\)",
                        headers["User-Agent"] or ""):
            raise Refused(403, 40333, "internal network error")
        if headers["Authorization"] != "Bot " + self.token:
            raise Refused(401, 0, "401: Unauthorized")
        if self.patience:
            self.patience -= 1
            return 429, {"Retry-After": "1", "X-RateLimit-Scope": "user"}, {
                "message": "You are being rate limited.", "retry_after": 0.05,
                "global": False}
        if (method, path) == ("GET", "/api/v10/applications/@me"):
            return 200, {}, {"id": self.app, "name": "Some Bot"}
        found = re.fullmatch(r"/api/v10/applications/(\d+)(?:/guilds/(\d+))?"
                             "/commands", path)
        if not found:
            raise Refused(404, 0, "404: Not Found")
        if method != "PUT":
            raise Refused(405, 0, "405: Method Not Allowed")
        if found[1] != self.app:
            raise Refused(403, 20012, "You are not authorized to perform this "
                                      "action on this application")
        if found[2] and found[2] not in self.guilds:
            raise Refused(403, 50001, "Missing Access")
        if headers["Content-Type"] != "application/json":
            raise Refused(400, 50035, "Invalid Form Body")
        return 200, {}, self.overwrite(found[2], json.loads(body))

    def overwrite(self, guild, commands):
        if not isinstance(commands, list):
            raise Refused(400, 50035, "Invalid Form Body")
        if len(commands) > 100:
            raise Refused(400, 30032, "Maximum number of application commands "
                                      "reached (100)")
        for i, one in enumerate(commands):
            self.check(one, str(i), {"name", "type", "description",
                                     "options"})
            if one["type"] != 1 or len(one["options"]) > 25:
                self.invalid(str(i), "type", "must be 1")
            for option in one["options"]:
                self.check(option, str(i), {"name", "type", "description",
                                            "required"})
                if option["type"] not in range(3, 12) or \
                        option["required"] not in (True, False):
                    self.invalid(str(i), "options", "is not one")
        if len({c["name"] for c in commands}) < len(commands):
            self.invalid("_", "name", "Application command names must be "
                                      "unique")
        self.calls.append(("PUT", guild, commands))
        self.menus[guild] = commands
        return [{"id": str(i), "application_id": self.app, "version": "1",
                 **c} for i, c in enumerate(commands)]

    def check(self, one, at, keys):
        if not isinstance(one, dict) or set(one) != keys:
            self.invalid(at, "_", "unexpected fields")
        if not re.fullmatch(r"[-_'\w]{1,32}", one["name"]) or \
                one["name"] != one["name"].lower():
            self.invalid(at, "name", "Command name is invalid")
        if not 1 <= len(one["description"]) <= 100:
            self.invalid(at, "description",
                         "Must be between 1 and 100 in length.")

    @staticmethod
    def invalid(at, field, words):
        raise Refused(400, 50035, "Invalid Form Body", {
            at: {field: {"_errors": [{"code": "X", "message": words}]}}})


class Hook(Platform):
    """A webhook that takes posts: `posts` are the bodies it took, `refused` why
    it did not take others; `answers` come first, one for each call."""

    def __init__(self):
        super().__init__()
        self.posts, self.refused, self.answers = [], [], []
        self.url += "/hook/s3cret"

    def judge(self, method, path, headers, body):
        self.calls.append((method, path, body))
        if self.answers:
            return self.answers.pop(0)
        try:
            assert method == "POST" and path == "/hook/s3cret", path
            assert headers["Content-Type"] == "application/json"
            said = json.loads(body)
            self.check(said)
        except (AssertionError, KeyError, TypeError, ValueError) as e:
            self.refused.append(repr(e))
            return 400, {}, b"invalid_payload"
        self.posts.append(said)
        return self.taken


class SlackHook(Hook):
    """As https://docs.slack.dev has incoming webhooks and Block Kit."""
    taken = 200, {"Content-Type": "text/html"}, b"ok"

    @staticmethod
    def check(said):
        assert set(said) <= {"text", "blocks"}, said.keys()
        assert 0 < len(said["text"]) <= 40000
        assert 0 < len(said["blocks"]) <= 50
        for block in said["blocks"]:
            assert set(block) == {"type", "text"}
            text = block["text"]
            assert block["type"] in ("header", "section"), block["type"]
            most = 150 if block["type"] == "header" else 3000
            assert 0 < len(text["text"]) <= most, len(text["text"])
            assert text["type"] in ("plain_text", "mrkdwn")
            assert block["type"] == "section" or text["type"] == "plain_text"
            assert ("emoji" in text) <= (text["type"] == "plain_text")
        assert "<" not in json.dumps(said), "a mention or a link"


class DiscordHook(Hook):
    """As https://discord.com/developers/docs has Execute Webhook; lengths are
    counted in UTF-16, the strictest way."""
    taken = 204, {}, b""

    @staticmethod
    def check(said):
        def length(text):
            return len(text.encode("utf-16-le")) // 2
        assert set(said) <= {"content", "embeds", "allowed_mentions"}
        assert 0 < length(said["content"]) <= 2000
        assert said["allowed_mentions"] == {"parse": []}
        assert len(said["embeds"]) <= 10
        total = 0
        for embed in said["embeds"]:
            assert set(embed) <= {"title", "description", "color"}
            assert 0 < length(embed["title"]) <= 256
            assert length(embed.get("description", "")) <= 4096
            assert 0 <= embed["color"] <= 0xffffff
            total += length(embed["title"]) + length(
                embed.get("description", ""))
        assert total <= 6000, total
        for call in ("@everyone", "@here"):
            assert call not in json.dumps(said), call
