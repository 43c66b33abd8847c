"""The command line, as a user and as a script meet it: the real binary, with
its output, its exit status and its words."""
import json
import os
import resource
import shutil
import socket
import subprocess
import tempfile
import unittest

from signalbox import Server
from terminal import on_terminal

ROOT = os.environ["SIGNALBOX_SOURCE"]
BIN = os.environ["SIGNALBOX_BIN"]
COMMANDS = [
    "serve",
    "demo",
    "send",
    "tasks",
    "holds",
    "escalations",
    "feed",
    "agents",
    "search",
    "route",
    "gate",
    "decisions",
    "replay",
    "grants",
    "commands",
    "learning",
    "ledger",
    "budgets",
    "users",
    "token",
    "model",
    "settings",
    "check",
    "lint",
    "doctor",
    "backup",
    "restore",
    "eval",
    "calibrate",
    "version",
    "completion",
    "man",
    "help",
]
OK, FAILED, USAGE = 0, 1, 2


class Cli(unittest.TestCase):
    """Each test in a folder of its own, with an environment of its own."""

    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="signalbox-cli-")
        self.addCleanup(shutil.rmtree, self.home)
        self.env = {"PATH": "/usr/bin:/bin", "HOME": self.home}

    def run_it(self, *args, env=None, **more):
        return subprocess.run(
            [BIN, *args], cwd=self.home, env={**self.env, **(env or {})},
            stdin=subprocess.DEVNULL, stdout=more.pop("stdout",
                                                      subprocess.PIPE),
            stderr=subprocess.PIPE, text=True, timeout=60, **more)

    def good(self, *args, **more):
        r = self.run_it(*args, **more)
        self.assertEqual((r.returncode, r.stderr), (OK, ""), r.stdout)
        return r.stdout

    def bad(self, status, *args, **more):
        r = self.run_it(*args, **more)
        self.assertEqual(r.returncode, status, r.stdout + r.stderr)
        return r.stdout + r.stderr

    def file(self, name, text):
        with open(os.path.join(self.home, name), "w", encoding="utf-8") as f:
            f.write(text)
        return name

    def on_terminal(self, *args, columns=80, env=None):
        """What a terminal of that width is sent."""
        return on_terminal([BIN, *args], self.home,
                           {**self.env, **(env or {})}, columns)[1]


class Help(Cli):
    def test_alone_it_says_what_there_is(self):
        out = self.good()
        for name in COMMANDS:
            self.assertIn(f"\n  {name} ", out)
        self.assertIn("signalbox serve", out)
        self.assertEqual(out, self.good("--help"))
        self.assertEqual(out, self.good("-h"))
        self.assertEqual(out, self.good("help"))

    def test_every_command_has_help(self):
        for name in COMMANDS:
            with self.subTest(name):
                out = self.good(name, "--help")
                self.assertTrue(out.startswith(f"Usage\n  signalbox {name}"))
                for part in ("\nOptions\n", "\nExamples\n", "--json",
                             "--help"):
                    self.assertIn(part, out)
                self.assertEqual(out, self.good(name, "-h"))
                self.assertEqual(out, self.good("help", name))

    def test_help_fits_80_columns(self):
        for args in [[], *[[name, "--help"] for name in COMMANDS]]:
            for line in self.good(*args).splitlines():
                self.assertLessEqual(len(line), 80, line)

    def test_help_goes_before_doing(self):
        self.assertIn("Usage", self.good("check", "nowhere.jsonc", "--help"))

    def test_help_as_json_is_a_line_per_command(self):
        lines = [json.loads(x) for x in self.good("help",
                                                  "--json").splitlines()]
        self.assertEqual([x["command"] for x in lines], COMMANDS)
        for x in lines:
            self.assertIn("json", [o["name"] for o in x["options"]])
        one = json.loads(self.good("serve", "--help", "--json"))
        self.assertEqual(one["command"], "serve")

    def test_help_on_the_configuration_is_the_manual(self):
        with open(os.path.join(ROOT, "docs", "config.md"),
                  encoding="utf-8") as f:
            self.assertEqual(self.good("help", "config"), f.read())

    def test_help_on_the_api_is_in_the_manual(self):
        with open(os.path.join(ROOT, "docs", "protocol.md"),
                  encoding="utf-8") as f:
            self.assertIn(self.good("help", "api"), f.read())

    def test_help_on_the_configuration_as_json(self):
        rows = [json.loads(x) for x in self.good(
            "help", "config", "--json").splitlines()]
        by_name = {x["setting"]: x for x in rows}
        self.assertEqual(by_name["http.maxBodyBytes"]["default"], 2097152)
        self.assertEqual(by_name["listen"]["default"], "127.0.0.1:8787")
        self.assertTrue(by_name["listen"]["needs_restart"])
        self.assertFalse(by_name["log.level"]["needs_restart"])


class Mistakes(Cli):
    def test_an_unknown_topic_may_be_meant_as_config(self):
        self.assertIn("did you mean config?",
                      self.bad(USAGE, "help", "cofnig"))
        self.assertNotIn("config", self.bad(USAGE, "cofnig"))

    def test_unknown_command(self):
        self.assertIn("did you mean serve?", self.bad(USAGE, "serv"))
        self.assertIn("did you mean check?", self.bad(USAGE, "chekc"))
        self.assertIn("signalbox help lists all", self.bad(USAGE, "zebra"))
        self.assertIn("did you mean doctor?",
                      self.bad(USAGE, "help", "docter"))
        self.bad(USAGE, "")

    def test_options_come_after_the_command(self):
        self.assertIn("signalbox COMMAND --json", self.bad(USAGE, "--json"))

    def test_unknown_option(self):
        for name in COMMANDS:
            with self.subTest(name):
                out = self.bad(USAGE, name, "--jsn")
                self.assertEqual(
                    out, f"signalbox {name}: unknown option --jsn; did you "
                         "mean --json?\n")

    def test_wrong_use_of_options(self):
        for args, words in [
                (["serve", "--confg", "x"], "did you mean --config?"),
                (["serve", "--config"], "--config needs a value"),
                (["serve", "--listen", "a", "--listen", "b"], "given twice"),
                (["serve", "--json=1"], "takes no value"),
                (["serve", "extra"], "unexpected argument"),
                (["check", "a", "b"], "unexpected argument"),
                (["check", "a", "--config", "b"], "not both"),
                (["version", "-v"], "unknown option -v"),
                (["check"] + ["--set", "a=1"] * 65, "more than 64 options"),
        ]:
            with self.subTest(args[:3]):
                self.assertIn(words, self.bad(USAGE, *args))

    def test_mistakes_as_json(self):
        for args in [["serv", "--json"], ["serve", "--jso", "--json"],
                     ["check", "a", "b", "--json"]]:
            with self.subTest(args):
                r = self.run_it(*args)
                self.assertEqual((r.returncode, r.stdout), (USAGE, ""))
                error = json.loads(r.stderr)["error"]
                self.assertEqual(error["code"], "usage")
                self.assertTrue(error["message"])

    def test_what_was_typed_cannot_steer_a_terminal(self):
        out = self.bad(USAGE, "\x1b[31mred\nline")
        self.assertNotIn("\x1b", out)
        self.assertEqual(out.count("\n"), 1)

    def test_output_that_cannot_be_written_is_a_failure(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            r = self.run_it("version", stdout=full)
        self.assertEqual(r.returncode, FAILED)
        self.assertIn("cannot write the output", r.stderr)


class Version(Cli):
    def test_plain(self):
        self.assertRegex(self.good("version"),
                         r"\Asignalbox \d+\.\d+\.\d+\n\Z")
        self.assertEqual(self.good("version"), self.good("--version"))

    def test_json(self):
        v = json.loads(self.good("version", "--json"))
        self.assertEqual("signalbox " + v["version"] + "\n",
                         self.good("version"))
        self.assertIn("libuv", [x["name"] for x in v["libs"]])


BAD_FILE = """{
  // mistakes, each at its place
  "lisen": "127.0.0.1:1",
  "http": { "maxBodyByte": 5, "idleTimeoutMs": "soon" },
  "log": { "level": "loud" },
}
"""


class Check(Cli):
    def test_nothing_is_fine(self):
        self.assertEqual(
            self.good("check"),
            "ok: no file, all defaults; listens on 127.0.0.1:8787, keeps its "
            "data in signalbox-data\n")

    def test_the_file_here_is_found(self):
        self.file("signalbox.jsonc", '{ "stopGraceMs": 5, }')
        self.assertIn("ok: signalbox.jsonc, 1 setting;", self.good("check"))

    def test_programs_that_cannot_be_started_are_warned_of(self):
        self.file("x.jsonc", """{ "agents": { "list": [
            { "id": "a", "process": { "command": ["no-such-program"] } },
            { "id": "b", "process": "p", "workspace": "no/such/folder" },
            { "id": "e", "process": { "command": ["sh"] },
              "workspace": "will-be-made" },
            { "id": "f", "process": { "command": ["no-such-pi"],
                                      "dialect": "pi" } },
            { "id": "c", "process": { "command": ["./no-such-file"] } },
            { "id": "d", "process": { "command": ["sh"] } } ] },
            "processes": { "p": { "command": ["/no/such"] } } }""")
        out = self.good("check", "x.jsonc")
        for words in ["1:23: warning: agents.list: the program of a, "
                      "no-such-program, is not in the PATH",
                      "the workspace of b, no/such/folder, does not exist and "
                      "cannot be created",
                      "the program of f, no-such-pi, is not in the PATH; "
                      "install it: npm install -g ",
                      "the program of c, ./no-such-file, is missing or",
                      "10:26: warning: processes: the program of p, /no/such, "
                      "is missing or not executable"]:
            self.assertIn(words, out)
        for name in "de":
            self.assertNotIn(f" of {name},", out)

    def test_the_example_is_valid(self):
        out = self.good("check", os.path.join(ROOT, "examples",
                                              "signalbox.jsonc"))
        self.assertTrue(out.startswith("ok: "), out)

    def test_every_problem_with_line_and_column(self):
        name = self.file("bad.jsonc", BAD_FILE)
        for args in (["check", name], ["check", "--config", name]):
            r = self.run_it(*args)
            self.assertEqual((r.returncode, r.stderr), (USAGE, ""))
            lines = r.stdout.splitlines()
            self.assertEqual(
                lines[0], 'bad.jsonc:3:3: unknown setting "lisen"; did you '
                          'mean "listen"?')
            self.assertIn("bad.jsonc:4:13: ", lines[1])
            self.assertIn("bad.jsonc:4:48: http.idleTimeoutMs must be a whole "
                          "number", lines[2])
            self.assertIn("bad.jsonc:5:21: ", lines[3])
            self.assertEqual(lines[4:], ["4 errors"])

    def test_problems_as_json(self):
        self.file("bad.jsonc", BAD_FILE)
        r = self.run_it("check", "bad.jsonc", "--json")
        self.assertEqual((r.returncode, r.stderr), (USAGE, ""))
        answer = json.loads(r.stdout)
        self.assertFalse(answer["ok"])
        self.assertEqual([(p["line"], p["col"]) for p in answer["problems"]],
                         [(3, 3), (4, 13), (4, 48), (5, 21)])
        self.assertEqual(answer["problems"][0]["where"], "bad.jsonc")
        self.assertEqual(answer["problems"][0]["severity"], "error")

    def test_ok_as_json(self):
        self.file("signalbox.jsonc", '{"stopGraceMs": 5}')
        answer = json.loads(self.good("check", "--json", "--data", "d",
                                      env={"SIGNALBOX_LOG__LEVEL": "warn"}))
        self.assertEqual(answer, {
            "ok": True, "file": "signalbox.jsonc",
            "settings": {"file": 1, "environment": 1, "flags": 1},
            "problems": [], "problems_left_out": 0})

    def test_lists_from_everywhere_are_printed(self):
        self.file("signalbox.jsonc", '{"http": {"allowedHosts": ["x.org"]}}')
        agents = [{"id": "echo", "url": "echo:", "skills": []}]
        flag = 'agents.list=[{"id":"echo","url":"echo:"}]'
        env = {"SIGNALBOX_HTTP__ALLOWED_ORIGINS": '["https://x.org"]'}
        for more in [], ["--json"]:
            out = self.good("check", "--print", "--set", flag, *more, env=env)
            printed = json.loads(out)
            self.assertEqual(printed["agents"]["list"], agents)
            self.assertEqual(printed["http"]["allowedHosts"], ["x.org"])
            self.assertEqual(printed["http"]["allowedOrigins"],
                             ["https://x.org"])
        out = self.good("check", "--print")
        self.assertIn('"allowedOrigins": []', out)
        self.assertEqual(json.loads(out)["agents"],
                         {"list": [], "defaults": {}, "default": "",
                          "owner": ""})

    def test_what_is_printed_is_a_valid_file(self):
        flag = 'agents.list=[{"id":"a","url":"echo:","title":"[] {} \\""}]'
        default = 'agents.defaults={"routing":{"systemPrompt":"Be brief."}}'
        out = self.good("check", "--print", "--set", flag, "--set", default)
        self.file("again.jsonc", out)
        self.assertEqual(self.good("check", "again.jsonc", "--print"), out)
        [agent] = json.loads(out)["agents"]["list"]
        self.assertEqual(agent["routing"], {"systemPrompt": "Be brief."})

    def test_agents_are_counted_and_what_is_wrong_with_one_has_its_place(self):
        self.file("signalbox.jsonc", """{"agents": {"list": [
            {"id": "a", "skills": [{"id": "s", "name": "S"}]},
            {"id": "b", "skills": [{"id": "s", "nam": "S"}]},
        ]}}""")
        err = self.bad(USAGE, "check")
        self.assertIn("signalbox.jsonc:3:55: agents.list[1].skills[0].nam is "
                      "not a field of a skill; did you mean", err)
        good = 'agents.list=[{"id":"a"},{"id":"b"}]'
        self.assertIn("has 2 agents", self.good("check", "--set", good))

    def test_a_file_that_is_not_there(self):
        self.assertIn("gone.jsonc: there is no such file",
                      self.bad(USAGE, "check", "gone.jsonc"))
        self.assertIn("gone.jsonc: there is no such file",
                      self.bad(USAGE, "check",
                               env={"SIGNALBOX_CONFIG": "gone.jsonc"}))
        self.assertIn("is a folder", self.bad(USAGE, "check", "."))

    def test_print_shows_what_all_of_it_comes_to(self):
        self.file("signalbox.jsonc",
                  '{"http": {"maxHeaders": 5, "maxBodyBytes": 6}}')
        out = self.good("check", "--print", "--set", "stopGraceMs=7",
                        "--listen", "127.0.0.1:0",
                        env={"SIGNALBOX_HTTP__MAX_BODY_BYTES": "8"})
        self.assertIn('\n  "http": {\n    "maxConnections": 8192,\n', out)
        c = json.loads(out)
        self.assertEqual(c["http"]["maxHeaders"], 5)
        self.assertEqual(c["http"]["maxBodyBytes"], 8)
        self.assertEqual(c["stopGraceMs"], 7)
        self.assertEqual(c["listen"], "127.0.0.1:0")
        # What is printed is itself a configuration.
        self.file("again.jsonc", out)
        self.assertEqual(out, self.good("check", "--print", "again.jsonc"))
        compact = self.good("check", "--print", "--json", "again.jsonc")
        self.assertEqual((compact.count("\n"), json.loads(compact)), (1, c))

    def test_print_leaves_strings_as_they_are(self):
        name = 'a "b" {c: [d, \\e]}'
        out = self.good("check", "--print", "--data", name)
        self.assertEqual(json.loads(out)["data"], name)

    def test_the_summary_counts_sources(self):
        self.assertEqual(
            self.good("check", "--data", "d",
                      env={"SIGNALBOX_LOG__LEVEL": "warn"}),
            "ok: no file, 1 from the environment, 1 from the command line; "
            "listens on 127.0.0.1:8787, keeps its data in d\n")

    def test_print_keeps_problems_out_of_stdout(self):
        r = self.run_it("check", "--print", "--set", "stopGraceMs=-1")
        self.assertEqual((r.returncode, r.stdout), (USAGE, ""))
        self.assertIn("--set stopGraceMs: ", r.stderr)

    def test_variables_and_flags_are_named(self):
        out = self.bad(USAGE, "check", "--listen", "nowhere",
                       "--set", "http.maxHeader=1",
                       env={"SIGNALBOX_LOG__LEVEL": "loud",
                            "SIGNALBOX_HTTP__ZEBRA": "1"})
        for words in ("--listen: listen must be",
                      "--set http.maxHeader: unknown setting",
                      "SIGNALBOX_LOG__LEVEL: log.level must be",
                      "SIGNALBOX_HTTP__ZEBRA: there is no such setting",
                      "4 errors"):
            self.assertIn(words, out)

    def test_foreign_variables_are_only_warned_of(self):
        out = self.good("check", env={
            "SIGNALBOX_PORT": "tcp://10.0.0.1:80", "SIGNALBOX_URL": "x",
            "SIGNALBOX_TOKEN": "t"})
        self.assertEqual(out.count("warning: "), 1)
        self.assertIn("SIGNALBOX_PORT: warning: ", out)

    def test_beyond_this_machine_needs_a_word(self):
        self.assertIn("set allowPlaintext to true",
                      self.bad(USAGE, "check", "--listen", "0.0.0.0:1"))
        self.good("check", "--listen", "0.0.0.0:1", "--set",
                  "allowPlaintext=true")


class Doctor(Cli):
    def checks(self, *args, **more):
        r = self.run_it("doctor", "--json", *args, **more)
        answer = json.loads(r.stdout)
        self.assertEqual(r.returncode, OK if answer["ok"] else FAILED)
        by_name = {c["name"]: c for c in answer["checks"]}
        for c in answer["checks"]:
            self.assertTrue(c["message"])
            if c["status"] == "failed":
                self.assertTrue(c["advice"] or "--data" in c["message"], c)
        return answer["ok"], by_name

    def test_a_machine_that_is_well(self):
        ok, checks = self.checks("--listen", "127.0.0.1:0")
        self.assertTrue(ok, checks)
        self.assertEqual(list(checks), [
            "version", "libraries", "clock", "config", "data", "database",
            "disk", "address", "tls", "certs", "files", "outgoing", "agents",
            "names", "seal", "model", "sandbox"])
        self.assertFalse(os.path.exists(
            os.path.join(self.home, "signalbox-data")))

    def test_plain_in_a_pipe(self):
        out = self.good("doctor", "--listen", "127.0.0.1:0")
        self.assertTrue(out.isascii())
        self.assertTrue(out.startswith("ok   version   signalbox "), out)

    def test_an_address_that_is_taken(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            s.listen()
            address = "127.0.0.1:%d" % s.getsockname()[1]
            ok, checks = self.checks("--listen", address)
        self.assertFalse(ok)
        self.assertEqual(checks["address"]["status"], "failed")
        self.assertIn(address + " is in use", checks["address"]["message"])

    def test_an_address_of_another_machine(self):
        ok, checks = self.checks("--listen", "192.0.2.1:0", "--set",
                                 "allowPlaintext=true")
        self.assertFalse(ok)
        self.assertIn("has no address 192.0.2.1:0",
                      checks["address"]["message"])

    def test_a_configuration_that_is_right(self):
        self.file("signalbox.jsonc", '{"listen": "127.0.0.1:0"}')
        _, checks = self.checks()
        self.assertEqual(checks["config"]["message"],
                         "signalbox.jsonc is valid")
        _, checks = self.checks(env={"SIGNALBOX_PORT": "tcp://10.0.0.1:80"})
        self.assertEqual(checks["config"]["status"], "warning")
        self.assertIn("\nready, with 1 warning\n", self.good(
            "doctor", env={"SIGNALBOX_PORT": "tcp://10.0.0.1:80"}))

    def test_a_bad_configuration_is_looked_at_first(self):
        ok, checks = self.checks("--set", "stopGraceMs=-1")
        self.assertFalse(ok)
        self.assertEqual(checks["config"]["status"], "failed")
        self.assertIn("skipped", checks["data"]["message"])

    def test_the_data_folder(self):
        def status(path):
            return self.checks("--listen", "127.0.0.1:0", "--data",
                               path)[1]["data"]["status"]
        self.assertEqual(status("new"), "ok")
        self.assertEqual(status("a/b/c"), "failed")
        self.assertEqual(status(self.file("plain", "")), "failed")
        self.assertEqual(status("plain/below"), "failed")
        os.mkdir(os.path.join(self.home, "mine"), 0o700)
        self.assertEqual(status("mine"), "ok")
        os.chmod(os.path.join(self.home, "mine"), 0o755)
        self.assertEqual(status("mine"), "warning")
        self.assertEqual(status("/tmp"), "warning")

    def test_a_folder_in_use(self):
        with Server() as server:
            _, checks = self.checks("--data", server.data, "--listen",
                                    server.url.removeprefix("http://"))
        self.assertEqual(checks["data"]["status"], "warning")
        self.assertIn(f"process {server.process.pid}",
                      checks["data"]["message"])
        self.assertEqual(checks["address"]["status"], "warning")

    def test_agents_of_the_configuration(self):
        def agents(value):
            return self.checks("--listen", "127.0.0.1:0", "--set",
                               f"agents.list={value}")[1]["agents"]["message"]
        self.assertEqual(agents("[]"), "none in the configuration")
        self.assertEqual(
            agents('[{"id":"a","skills":[{"id":"s","name":"S"}]},'
                   '{"id":"b","routing":{"routable":false}}]'),
            "2 with 1 skill in the configuration")
        self.assertIn("1 of 1 in the configuration may not work: b: the card "
                      "has neither", agents('[{"id":"b"}]'))

    def test_what_agents_may_reach(self):
        def outgoing(*sets):
            args = [a for s in sets for a in ("--set", "outgoing." + s)]
            c = self.checks("--listen", "127.0.0.1:0", *args)[1]["outgoing"]
            return c["status"], c["message"]
        self.assertEqual(outgoing(), ("ok", "public addresses only"))
        self.assertEqual(outgoing('allow=["10.0.0.0/8"]'),
                         ("ok", "public addresses and 1 range"))
        self.assertEqual(
            outgoing('allow=["[::1]","10.0.0.0/8"]', "proxy=http://p:3128"),
            ("ok", "public addresses and 2 ranges, through a proxy"))
        self.assertEqual(outgoing('allow=["0.0.0.0/0"]')[0], "warning")
        self.assertEqual(outgoing("caFile=nowhere.pem"), (
            "warning", "there is no file nowhere.pem"))

    def test_too_few_files(self):
        def lower():
            resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
        _, checks = self.checks("--listen", "127.0.0.1:0", preexec_fn=lower)
        self.assertEqual(checks["files"]["status"], "warning")
        self.assertIn("LimitNOFILE=8320", checks["files"]["advice"])


class Terminal(Cli):
    def test_colour_and_marks_on_a_terminal_only(self):
        out = self.on_terminal("doctor", "--listen", "127.0.0.1:0")
        self.assertIn("\x1b[32m\u2713\x1b[0m version", out)
        self.assertNotIn("\x1b", self.good("doctor", "--listen",
                                           "127.0.0.1:0"))

    def test_no_color_is_honoured(self):
        for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            out = self.on_terminal("doctor", "--listen", "127.0.0.1:0",
                                   env=env)
            self.assertNotIn("\x1b", out)
            self.assertIn("\u2713 version", out)
        self.assertIn("\x1b", self.on_terminal("help",
                                               env={"NO_COLOR": ""}))

    def test_no_color_is_honoured_by_the_log(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            for env, is_coloured in ({}, True), ({"NO_COLOR": "1"}, False):
                out = self.on_terminal(
                    "serve", "--listen", f"127.0.0.1:{taken.getsockname()[1]}",
                    env=env)
                self.assertIn(" info  embed.ready", out)
                self.assertEqual("\x1b" in out, is_coloured)

    def test_ascii_without_utf8(self):
        out = self.on_terminal("doctor", "--listen", "127.0.0.1:0",
                               env={"LC_ALL": "C"})
        self.assertTrue(out.isascii(), out)

    def test_lines_are_broken_at_the_width(self):
        for columns in (60, 80):
            for args in (["help", "config"], ["serve", "--help"],
                         ["check", "--set", "http.idleTimeoutMs=soon"],
                         ["doctor", "--data", "a/b", "--listen",
                          "127.0.0.1:0"]):
                out = self.on_terminal(*args, columns=columns,
                                       env={"NO_COLOR": "1"})
                for line in out.splitlines():
                    self.assertLessEqual(len(line), columns, line)
