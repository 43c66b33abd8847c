"""What turns text into vectors, in the real server: which model it starts with,
what keeps it from starting, and what it says of a provider that is none."""
import json
import os
import signal
import subprocess
import tempfile
import unittest

from certs import Certs
from provider import Provider
from signalbox import (BINARY, Server, clean_environment, eventually, metric,
                       refuses_to_start)

KEY = "sk-very-secret-0123456789"
USAGE = 2
REFUSED = 3


def lines(server, event):
    """The lines of its log that are about this."""
    found = [json.loads(line) for line in server.said().splitlines()
             if line.startswith("{")]
    return [line for line in found if line.get("event") == event]


def settings(provider, **more):
    return {"embed": {"kind": "http", "http": {
        "url": provider.url, "model": "tiny", **more}}}


# What every model embeds once, for the cards' levels.
with open(os.path.join(os.environ["SIGNALBOX_SOURCE"],
                       "data/reference.txt"), encoding="utf-8") as reference:
    N_REFERENCE = len(reference.read().splitlines())


class WithKey:
    """A variable for the servers that are started meanwhile."""

    def __enter__(self):
        os.environ["TEST_PROVIDER_KEY"] = KEY

    def __exit__(self, *_):
        del os.environ["TEST_PROVIDER_KEY"]


class Models(unittest.TestCase):
    def test_both_models_are_there_without_a_word(self):
        with Server() as server:
            ready = lines(server, "embed.ready")
            self.assertEqual([r["kind"] for r in ready], ["builtin"])
            self.assertEqual(ready[0]["dimensions"], 640)
            text = server.get("/metrics").body.decode()
            self.assertIn('signalbox_embed_quick_texts_total{kind="builtin",'
                          f'model="builtin"}} {N_REFERENCE}\n', text)
            eventually(
                lambda: metric(server, "signalbox_embed_texts_total")
                == N_REFERENCE, "the full reference vectors")
            self.assertIn("signalbox_outgoing_requests_total 0\n", text)

    def test_either_of_them_is_there_alone(self):
        for kind, dimensions in (("table", 256), ("transformer", 384)):
            with Server("--set", "embed.kind=" + kind) as server:
                ready = lines(server, "embed.ready")
                self.assertEqual([(r["kind"], r["dimensions"])
                                  for r in ready], [(kind, dimensions)])
                eventually(
                    lambda: metric(server, "signalbox_embed_texts_total")
                    == N_REFERENCE, "the reference vectors")
                self.assertEqual(
                    metric(server, "signalbox_embed_quick_texts_total"), 0)

    def test_a_second_model_is_no_setting_any_more(self):
        with tempfile.TemporaryDirectory() as folder:
            status, said = refuses_to_start(
                "serve", "--data", os.path.join(folder, "data"),
                "--listen", "127.0.0.1:0", "--set", "embed.second=minilm")
            self.assertEqual(status, USAGE)
            self.assertIn("was removed", said)
            self.assertIn("embed.secondMargin", said)

    def test_a_model_that_is_not_there_keeps_it_from_starting(self):
        with tempfile.TemporaryDirectory() as folder:
            data = os.path.join(folder, "data")
            status, said = refuses_to_start(
                "serve", "--data", data, "--listen", "127.0.0.1:0",
                "--set", "embed.kind=minilm")
            self.assertNotEqual(status, 0)
            self.assertIn(data + "/models/minilm.sbm", said)
            self.assertIn("signalbox model install minilm", said)
            self.assertNotIn("listening", said)

    def test_a_file_that_is_no_model_keeps_it_from_starting(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.sbm")
            for content in (b"", b"\0" * 4096, b"GGUF" + b"x" * 100000,
                            b"{\"not\": \"a model\"}"):
                with open(path, "wb") as f:
                    f.write(content)
                status, said = refuses_to_start(
                    "serve", "--data", os.path.join(folder, "data"),
                    "--listen", "127.0.0.1:0", "--set", "embed.kind=minilm",
                    "--set", "embed.modelFile=" + path)
                self.assertNotEqual(status, 0)
                self.assertIn(path, said)
                self.assertFalse(os.path.exists(
                    os.path.join(folder, "data", "signalbox.db")))


    def test_a_signal_while_a_start_fails_is_survived(self):
        # It reads outgoing.caFile when signals are its own already: a pipe
        # holds it there until ours has come.
        for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with tempfile.TemporaryDirectory() as folder:
                pipe = os.path.join(folder, "ca.pem")
                os.mkfifo(pipe)
                with subprocess.Popen(
                        [BINARY, "serve", "--data", folder + "/data",
                         "--listen", "127.0.0.1:0", "--set",
                         "embed.kind=minilm", "--set",
                         "outgoing.caFile=" + pipe],
                        env=clean_environment(), text=True,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.STDOUT) as run:
                    with open(pipe, "wb"):
                        run.send_signal(signum)
                    said = run.communicate()[0]
                self.assertEqual(run.returncode, REFUSED, said)
                self.assertIn("/models/minilm.sbm", said)


class Keys(unittest.TestCase):
    def test_a_key_that_is_missing_keeps_it_from_starting(self):
        with tempfile.TemporaryDirectory() as folder:
            args = ("--data", os.path.join(folder, "data"), "--set",
                    "embed.kind=http", "--set", "embed.http.url=http://[::1]/",
                    "--set", "embed.http.model=m", "--set",
                    "embed.http.keyVariable=TEST_PROVIDER_KEY")
            for command in ("serve", "check"):
                run = subprocess.run([BINARY, command, *args],
                                     env=clean_environment(), check=False,
                                     capture_output=True, text=True)
                self.assertEqual(run.returncode, USAGE)
                self.assertIn("embed.http.keyVariable is TEST_PROVIDER_KEY",
                              run.stdout + run.stderr)
            run = subprocess.run([BINARY, "doctor", *args],
                                 env=clean_environment(), check=False,
                                 capture_output=True, text=True)
            self.assertEqual(run.returncode, 1)
            self.assertIn("TEST_PROVIDER_KEY", run.stdout)

    def test_a_key_is_sent_and_never_shown(self):
        with Provider() as provider, WithKey():
            provider.mode = "locked"
            config = settings(provider, keyVariable="TEST_PROVIDER_KEY")
            with Server(config=config) as server:
                eventually(lambda: lines(server, "embed.provider_not_ready"),
                           "a word about the provider")
                because = lines(server,
                                "embed.provider_not_ready")[0]["because"]
                self.assertIn("status 401; it does not take our key", because)
                self.assertNotIn("Incorrect", server.said())
                self.assertNotIn(KEY, server.said())
                self.assertNotIn(KEY, server.get("/metrics").body.decode())
                shown = subprocess.run(
                    [BINARY, "check", "--print", "--config",
                     server.write_config(config=config)],
                    check=True, capture_output=True, text=True)
                self.assertIn("TEST_PROVIDER_KEY", shown.stdout)
                self.assertNotIn(KEY, shown.stdout + shown.stderr)
            self.assertEqual(set(provider.keys), {"Bearer " + KEY})


class Providers(unittest.TestCase):
    def test_a_provider_is_asked_at_the_start_and_counted(self):
        for mode in ("well", "reversed", "base64"):
            with Provider() as provider:
                provider.mode = mode
                with Server(config=settings(
                        provider, documentPrefix="about: ")) as server:
                    eventually(lambda: lines(server, "embed.provider_ready"),
                               "the first vector")
                    ready = lines(server, "embed.provider_ready")[0]
                    self.assertEqual(ready["model"], "tiny")
                    self.assertEqual(ready["dimensions"], 8)
                    # One text, and the reference texts behind it.
                    eventually(lambda: metric(
                        server, "signalbox_embed_texts_total") ==
                        1 + N_REFERENCE, "all texts")
                    self.assertEqual(metric(
                        server, "signalbox_embed_texts_failed_total"), 0)
                    self.assertEqual(
                        metric(server, "signalbox_outgoing_requests_total"),
                        metric(server, "signalbox_embed_requests_total"))
                self.assertIn(
                    {"model": "tiny", "input": ["about: signalbox"],
                     "encoding_format": "float"}, provider.requests)
                self.assertEqual(set(provider.keys), {None})

    def test_whatever_it_answers_the_server_runs_and_says_why(self):
        words = {"broken": "out of order", "locked": "keyVariable",
                 "html": "web page", "short": "0 vectors came where 1",
                 "twice": "more vectors", "nan": "not a JSON",
                 "zero": "all zero", "truncated": "not a JSON",
                 "other": "9 numbers where 8"}
        for mode, word in words.items():
            with Provider() as provider:
                provider.mode = mode
                with Server(config=settings(provider,
                                            dimensions=8)) as server:
                    eventually(
                        lambda: lines(server, "embed.provider_not_ready"),
                        "a word about " + mode)
                    line = lines(server, "embed.provider_not_ready")[0]
                    self.assertIn(word, line["because"])
                    self.assertEqual(server.get("/readyz").status, 200)
                    self.assertGreaterEqual(
                        metric(server, "signalbox_embed_texts_failed_total"),
                        1)

    def test_nobody_there_is_no_reason_not_to_run(self):
        with Provider() as provider:
            url = provider.url
        config = {"embed": {"kind": "http",
                            "http": {"url": url, "model": "tiny"}}}
        with Server(config=config) as server:
            eventually(lambda: lines(server, "embed.provider_not_ready"),
                       "a word about no one")
            self.assertEqual(server.get("/readyz").status, 200)

    def test_one_that_asks_for_a_pause_has_it(self):
        with Provider() as provider:
            provider.mode = "slow"
            with Server(config=settings(provider)) as server:
                eventually(
                    lambda: metric(server, "signalbox_embed_provider_paused"),
                    "the pause")
                self.assertEqual(
                    len(lines(server, "embed.provider_fails")), 1)

    def test_its_name_is_quoted_in_the_figures(self):
        with Provider() as provider:
            config = settings(provider)
            config["embed"]["http"]["model"] = 'a "b"\\c\nd'
            with Server(config=config) as server:
                eventually(lambda: lines(server, "embed.provider_ready"),
                           "the first vector")
                text = server.get("/metrics").body.decode()
                self.assertIn('signalbox_embed_texts_total{kind="http",'
                              'model="a \\"b\\"\\\\c\\nd"} ', text)

    def test_a_reload_takes_what_it_can(self):
        with Provider() as provider:
            config = settings(provider)
            with Server(config=config) as server:
                eventually(lambda: lines(server, "embed.provider_ready"),
                           "the first vector")
                config["embed"]["http"].update(model="other", timeoutMs=500)
                config["outgoing"] = {"maxOpen": 2}
                server.write_config(config=config)
                eventually(lambda: lines(server, "config.reloaded"),
                           "the reload")
                needed = lines(server, "config.restart_needed")
                self.assertEqual([n["settings"] for n in needed],
                                 ["embed.http.model"])
                self.assertIn('model="tiny"',
                              server.get("/metrics").body.decode())

    def test_a_reload_does_not_drop_whom_it_trusts(self):
        with tempfile.TemporaryDirectory() as folder:
            cert, _ = Certs(folder).make("box")
            config = {"outgoing": {"caFile": cert}}
            with Server(config=config) as server:
                os.rename(cert, cert + ".away")
                os.kill(server.process.pid, signal.SIGHUP)
                eventually(lambda: lines(server, "config.not_reloaded"),
                           "the reload to fail")
                self.assertIn(cert, lines(server,
                                          "config.problem")[-1]["problem"])
                os.rename(cert + ".away", cert)
                os.kill(server.process.pid, signal.SIGHUP)
                eventually(lambda: lines(server, "config.reloaded"),
                           "the reload")
            # One that never had it takes other settings all the same.
            config["outgoing"]["caFile"] = cert + ".never"
            with Server(config=config) as server:
                self.assertTrue(
                    lines(server, "outgoing.certificates_not_read"))
                os.kill(server.process.pid, signal.SIGHUP)
                eventually(lambda: lines(server, "config.reloaded"),
                           "the reload")

    def test_it_stops_while_a_provider_is_silent(self):
        import socket
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = "http://127.0.0.1:%d/" % silent.getsockname()[1]
            config = {"embed": {"kind": "http",
                                "http": {"url": url, "model": "tiny"}}}
            with Server(config=config) as server:
                eventually(
                    lambda: metric(server, "signalbox_embed_texts_waiting"),
                    "the request")
            # whose end is checked by Server


class Doctor(unittest.TestCase):
    def look(self, *args):
        with tempfile.TemporaryDirectory() as folder:
            run = subprocess.run(
                [BINARY, "doctor", "--json", "--data",
                 os.path.join(folder, "data"), "--listen", "127.0.0.1:0",
                 *args], env=clean_environment(), check=False,
                capture_output=True, text=True)
        checks = json.loads(run.stdout)["checks"]
        return next(c for c in checks if c["name"] == "model")

    def test_it_says_which_model_there_is(self):
        found = self.look()
        self.assertEqual(found["status"], "ok")
        self.assertIn("builtin, 640 dimensions", found["message"])
        found = self.look("--set", "embed.kind=table")
        self.assertIn("table, 256 dimensions", found["message"])
        found = self.look("--set", "embed.kind=http", "--set",
                          "embed.http.model=tiny", "--set",
                          "embed.http.url=http://127.0.0.1:1/")
        self.assertIn("http, model tiny, not asked", found["message"])

    def test_a_path_that_is_too_long_is_not_cut(self):
        found = self.look("--set", "embed.kind=minilm", "--set",
                          "embed.modelFile=/" + "d/" * 2047 + "x")
        self.assertEqual(found["status"], "failed")
        self.assertIn("longer than 4095 bytes", found["message"])

    def test_it_says_what_is_wrong_with_a_file(self):
        found = self.look("--set", "embed.kind=minilm", "--set",
                          "embed.modelFile=/dev/null")
        self.assertEqual(found["status"], "failed")
        self.assertIn("/dev/null", found["message"])


if __name__ == "__main__":
    unittest.main()
