"""The running configuration over the API and the command line: where each
value is from, no secret, and a reload that is done whole or not at all."""
import json
import os
import shutil
import tempfile

from client import USAGE, Client
from signalbox import ECHO, Server, metric

HOOK = "https://hooks.example.org/services/SECRET_PATH?x=SECRET_QUERY"
SECRETS = ("env", "MODEL_KEY=SECRET_MODEL", "TRACE_HEADERS=a=SECRET_TRACE",
           "SIGNALBOX_HTTP__IDLE_TIMEOUT_MS=70000")


class Settings(Client):
    def write(self, path, value):
        """Replace a file in one step, as editors do."""
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write(value if isinstance(value, str) else json.dumps(value))
        os.rename(path + ".new", path)
        return path

    def linked(self, config, *args, **more):
        """A server whose file is a link into a folder that it does not watch:
        it is read again when someone asks for it, and not before."""
        folder = tempfile.mkdtemp(prefix="signalbox-linked-")
        self.addCleanup(shutil.rmtree, folder)
        os.mkdir(os.path.join(folder, "here"))
        path = os.path.join(folder, "here", "test.jsonc")
        os.symlink(os.path.join(folder, "real.jsonc"), path)
        self.file = self.write(os.path.join(folder, "real.jsonc"), config)
        return Server("--config", path, *args, **more)

    def config(self, server):
        r = server.call("GET", "/api/config")
        self.assertEqual(r.status, 200)
        return r.json()

    def by_name(self, server):
        return {s["name"]: s for s in self.config(server)["settings"]}

    def reload(self, server):
        r = server.call("POST", "/api/config/reload")
        self.assertIn(r.status, (200, 422))
        return r

    def test_each_value_says_where_it_is_from(self):
        config = {"retention": {"days": 7}}
        with Server("--set", "log.level=debug", agents=ECHO, config=config,
                    before=("env", "SIGNALBOX_HTTP__IDLE_TIMEOUT_MS=70000")
                    ) as server:
            said = self.config(server)
            named = {s["name"]: s for s in said["settings"]}
            self.assertEqual(len(named), len(said["settings"]))
            days = named["retention.days"]
            self.assertEqual((days["value"], days["default"]), (7, 30))
            self.assertEqual(days["source"]["kind"], "file")
            self.assertEqual(days["source"]["name"], said["file"])
            self.assertEqual(days["source"]["line"], 1)
            idle = named["http.idleTimeoutMs"]
            self.assertEqual(idle["value"], 70000)
            self.assertEqual(idle["source"], {
                "kind": "environment",
                "name": "SIGNALBOX_HTTP__IDLE_TIMEOUT_MS"})
            self.assertEqual(named["log.level"]["source"],
                             {"kind": "command_line",
                              "name": "--set log.level"})
            self.assertEqual(named["log.format"]["source"],
                             {"kind": "default", "name": None})
            self.assertEqual(named["node"]["taken_over_by"], "restart")
            self.assertEqual(named["agents.list"]["count"], 1)
            self.assertEqual([a["name"] for a in said["agents"]], ["echo"])
            # The version is that which decisions carry.
            server.send("hi", to="echo")
            decision = server.call("GET", "/api/decisions?full=true").json()
            self.assertEqual(decision["items"][0]["versions"]["config"],
                             said["version"])
            self.assertIsNone(said["refused"])
            self.assertEqual(said["restart_needed"], [])

    def test_no_secret_is_told(self):
        folder = tempfile.mkdtemp(prefix="signalbox-rules-")
        self.addCleanup(shutil.rmtree, folder)
        rules = self.write(os.path.join(folder, "rules.json"), {
            "channels": {"#alerts": {"takes": ["alerts"],
                                     "webhook": {"url": HOOK}}}})
        config = {
            "agents": {"list": [{
                "id": "far", "url": "https://a.example.org/?k=SECRET_A"}]},
            "rules": rules,
            "models": {"m": {"baseUrl": "https://m.example.org/v1?k=SECRET_U",
                             "model": "x", "keyVariable": "MODEL_KEY"}},
            "processes": {"p": {"command": ["cat", "SECRET_ARGUMENT"],
                                "env": {"TOKEN": "SECRET_ENV"}}},
            "traces": {"endpoint": "https://t.example.org/v1?k=SECRET_T",
                       "headersVariable": "TRACE_HEADERS"}}
        with self.linked(config, before=SECRETS) as server:
            r = server.call("GET", "/api/config")
            self.assertEqual(r.status, 200)
            self.assertNotIn(b"SECRET", r.body)
            said = r.json()
            self.assertEqual(said["models"][0]["secret"], "…set…")
            self.assertEqual(said["channels"][0]["webhook"],
                             "https://hooks.example.org/…set…")
            self.assertEqual(said["processes"][0]["env"], ["TOKEN"])
            # Nor where it is read again, and named as changed.
            config["models"]["m"]["baseUrl"] = "https://m/v1?k=SECRET_2"
            config["processes"]["p"]["env"]["TOKEN"] = "SECRET_3"
            self.write(self.file, config)
            r = self.reload(server)
            self.assertNotIn(b"SECRET", r.body)
            self.assertEqual(r.json()["changed"], ["processes", "models"])

    def test_a_reload_says_what_it_changed_and_what_waits(self):
        with self.linked({}) as server:
            before = self.config(server)
            self.write(self.file, {"node": "other",
                                   "routing": {"threshold": 0.5}})
            said = self.reload(server).json()
            self.assertEqual(said["changed"], ["node", "routing.threshold"])
            self.assertEqual(said["restart_needed"], ["node"])
            self.assertEqual(said["problems"], [])
            after = self.config(server)
            self.assertNotEqual(before["version"], after["version"])
            self.assertEqual(said["version"], after["version"])
            self.assertEqual(after["reloads"], 1)
            self.assertGreaterEqual(after["read_at_ms"], before["read_at_ms"])
            node = self.by_name(server)["node"]
            self.assertEqual((node["value"], node["after_restart"]),
                             ("main", "other"))
            self.assertEqual(node["source"]["kind"], "default")
            self.assertEqual(self.reload(server).json()["changed"], [])

    def test_a_bad_one_changes_nothing_and_is_told_with_its_place(self):
        with self.linked({"retention": {"days": 7}}) as server:
            before = self.by_name(server)
            self.write(self.file, '{\n  "retention": { "days": 0 },\n'
                                  '  "log": { "level": "debug" }\n}')
            r = self.reload(server)
            self.assertEqual(r.status, 422)
            error = r.json()["error"]
            self.assertEqual(error["code"], "bad_config")
            problem = error["details"]["problems"][0]
            self.assertEqual((problem["line"], problem["col"]), (2, 26))
            self.assertIn("retention.days", problem["message"])
            self.assertEqual(self.by_name(server), before)
            refused = self.config(server)["refused"]
            self.assertEqual(refused["problems"], error["details"]["problems"])
            self.assertEqual(metric(
                server, "signalbox_config_reloads_failed_total"), 1)
            # What only the rooms can find wrong is as whole.
            self.write(self.file, {"rules": "/nowhere/rules.json",
                                   "log": {"level": "debug"}})
            r = self.reload(server)
            self.assertEqual(r.status, 422)
            self.assertIn("/nowhere/rules.json", r.body.decode())
            self.assertEqual(self.by_name(server), before)
            self.write(self.file, {"retention": {"days": 8}})
            self.assertEqual(self.reload(server).status, 200)
            self.assertIsNone(self.config(server)["refused"])
            self.assertEqual(
                self.by_name(server)["retention.days"]["value"], 8)

    def test_it_is_for_admins(self):
        with Server(agents=ECHO) as server:
            anna = server.user("anna")
            for method, path in (("GET", "/api/config"),
                                 ("POST", "/api/config/reload")):
                r = server.call(method, path, token=anna)
                self.assertEqual((r.status, r.json()["error"]["details"]),
                                 (403, {"scope": "admin"}))

    def test_on_the_command_line(self):
        with self.linked({"retention": {"days": 7}}) as server:
            self.use(server)
            said = self.good("settings")
            self.assertRegex(said, r"retention.days +7 +\S+test.jsonc:1:\d+\n")
            self.assertNotIn("log.format", said)
            self.assertRegex(self.good("settings", "--all"),
                             r'log.format +"auto" +default\n')
            said = json.loads(self.good("settings", "--json"))
            self.assertTrue(said["file"].endswith("/here/test.jsonc"))
            self.assertEqual(self.good("settings", "reload"),
                             "Reloaded: nothing changed.\n")
            self.write(self.file, '{ "retention": { "days": 0 } }')
            status, out, err = self.run_it("settings", "reload")
            self.assertEqual(status, USAGE)
            self.assertIn("test.jsonc:1:26: retention.days must be", out)
            self.assertIn("the previous configuration stays", err)
            self.assertIn("The last reload was refused:",
                          self.good("settings"))
            self.write(self.file, '{ "node": "other" }')
            self.assertEqual(self.good("settings", "reload"),
                             "Reloaded; changed: node, retention.days\n"
                             "Waiting for a restart: node\n")
            self.assertIn('"main", after a restart "other"',
                          self.good("settings", "--all"))
