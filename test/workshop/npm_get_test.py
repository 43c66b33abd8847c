"""tools/npm_get.py takes what the lock names from a registry, and nothing
else: not other bytes, not half of them, nothing outside its folder."""
import base64
import contextlib
import hashlib
import http.server
import importlib.util
import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
import threading
import unittest
import unittest.mock

NPM_GET = os.path.join(os.environ["SIGNALBOX_SOURCE"], "tools", "npm_get.py")
spec = importlib.util.spec_from_file_location("npm_get", NPM_GET)
npm_get = importlib.util.module_from_spec(spec)
spec.loader.exec_module(npm_get)


def tarball(*members):
    """A .tgz of (name, text) pairs, and of TarInfo as they are."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member)
                continue
            info = tarfile.TarInfo(member[0])
            info.size = len(member[1])
            tar.addfile(info, io.BytesIO(member[1]))
    return out.getvalue()


def integrity(data):
    return "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()


class Registry:
    """Answers with what is in `files`; a length that is a lie where `lengths`
    has one. Counts who asked."""

    def __init__(self):
        registry = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                registry.asked.append(self.path)
                data = registry.files.get(self.path)
                self.send_response(404 if data is None else 200)
                data = data or b""
                length = registry.lengths.get(self.path, len(data))
                self.send_header("Content-Length", str(length))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args):
                pass

        self.asked, self.files, self.lengths = [], {}, {}
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0),
                                                      Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever,
                                       args=(0.01,))
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


class NpmGet(unittest.TestCase):
    def setUp(self):
        self.registry = Registry()
        self.addCleanup(self.registry.close)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def lock(self, **packages):
        """NAME=(version, integrity)."""
        with open(os.path.join(self.folder, "package-lock.json"), "w",
                  encoding="utf-8") as f:
            json.dump({"lockfileVersion": 3, "packages": {
                "": {"name": "x"}, **{
                    f"node_modules/{name}": {"version": v, "integrity": i}
                    for name, (v, i) in packages.items()}}}, f)

    def offer(self, name, version, data):
        self.registry.files[f"/{name}/-/{name.split('/')[-1]}-{version}.tgz"] \
            = data

    def get(self, **env):
        """Exit status and words. Within this process: most of the time would
        go into starting Python."""
        env = {"npm_config_registry": self.registry.url, **env}
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            status = npm_get.main(
                ["npm_get.py", self.folder],
                {k: v for k, v in env.items() if v is not None})
        return status, said.getvalue()

    def there(self):
        found = {}
        modules = os.path.join(self.folder, "node_modules")
        for folder, _, names in os.walk(modules):
            for name in names:
                path = os.path.join(folder, name)
                with open(path, "rb") as f:
                    found[os.path.relpath(path, modules)] = f.read()
        found.pop(".installed", None)
        return found

    def assert_refused(self, words):
        status, said = self.get()
        self.assertEqual(status, 1, said)
        self.assertIn(words, said)
        self.assertNotIn("Traceback", said)
        self.assertEqual(os.listdir(self.folder), ["package-lock.json"])

    def test_what_the_lock_names_is_fetched_once(self):
        a = tarball(("package/a.js", b"A"), ("package/dist/b.js", b"B"))
        b = tarball(("anything/c.js", b"C"))
        self.offer("a", "1.0.0", a)
        self.offer("@s/b", "2.0.0-rc.1", b)
        self.lock(a=("1.0.0", integrity(a)),
                  **{"@s/b": ("2.0.0-rc.1", integrity(b))})
        status, said = self.get()
        self.assertEqual((status, said[:21]), (0, "npm_get: 2 packages, "))
        want = {"a/a.js": b"A", "a/dist/b.js": b"B", "@s/b/c.js": b"C"}
        self.assertEqual(self.there(), want)
        self.assertEqual(len(self.registry.asked), 2)
        # And then no one is asked, and nothing said.
        self.assertEqual(self.get(), (0, ""))
        self.assertEqual(len(self.registry.asked), 2)
        self.assertEqual(self.there(), want)

    def test_another_lock_replaces_everything(self):
        a, b = tarball(("p/a.js", b"A")), tarball(("p/b.js", b"B"))
        self.offer("a", "1.0.0", a)
        self.offer("b", "1.0.0", b)
        self.lock(a=("1.0.0", integrity(a)))
        self.assertEqual(self.get()[0], 0)
        self.lock(b=("1.0.0", integrity(b)))
        self.assertEqual(self.get()[0], 0)
        self.assertEqual(self.there(), {"b/b.js": b"B"})

    def test_what_was_there_stays_when_the_new_cannot_be_had(self):
        a = tarball(("p/a.js", b"A"))
        self.offer("a", "1.0.0", a)
        self.lock(a=("1.0.0", integrity(a)))
        self.assertEqual(self.get()[0], 0)
        self.lock(a=("1.0.1", integrity(a)))
        status, said = self.get()
        self.assertEqual(status, 1)
        self.assertIn("the registry answered 404", said)
        self.assertEqual(self.there(), {"a/a.js": b"A"})

    def test_other_bytes_are_refused(self):
        self.offer("a", "1.0.0", tarball(("p/a.js", b"evil")))
        self.lock(a=("1.0.0", integrity(b"something else")))
        self.assert_refused("a 1.0.0: not what the lock names")

    def test_half_of_it_is_refused(self):
        whole = tarball(("p/a.js", os.urandom(5000)))
        self.offer("a", "1.0.0", whole[:2000])
        self.lock(a=("1.0.0", integrity(whole)))
        self.assert_refused("not what the lock names")
        # The same when the connection ends before its length.
        self.registry.lengths["/a/-/a-1.0.0.tgz"] = len(whole)
        self.assert_refused("a 1.0.0: ")

    def test_a_tarball_that_is_none_is_refused(self):
        whole = tarball(("p/a.js", os.urandom(5000)))
        for data in b"", b"not gzip", whole[:2000], \
                whole[:1000] + b"\0" * 50 + whole[1050:]:
            self.offer("a", "1.0.0", data)
            self.lock(a=("1.0.0", integrity(data)))
            self.assert_refused("a: the tarball cannot be unpacked")

    def test_nothing_goes_outside_its_folder(self):
        link = tarfile.TarInfo("package/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/tmp"
        hard = tarfile.TarInfo("package/hard")
        hard.type, hard.linkname = tarfile.LNKTYPE, "package/a.js"
        pipe = tarfile.TarInfo("package/pipe")
        pipe.type = tarfile.FIFOTYPE
        bad = [("package/../../x.js", b""), ("/etc/x.js", b""),
               ("../x.js", b""), ("package/./x.js", b""), ("x.js", b""),
               ("package/..", b""), ("package/a\\b", b""), link, hard, pipe]
        for member in bad:
            data = tarball(("package/a.js", b"A"), member)
            self.offer("a", "1.0.0", data)
            self.lock(a=("1.0.0", integrity(data)))
            self.assert_refused("a: the tarball cannot be unpacked")

    def test_a_file_twice_is_refused(self):
        data = tarball(("p/a.js", b"A"), ("p/a.js", b"B"))
        self.offer("a", "1.0.0", data)
        self.lock(a=("1.0.0", integrity(data)))
        self.assert_refused("a: the tarball cannot be unpacked")

    def test_locks_that_say_too_little_or_lead_astray(self):
        good = integrity(b"x")
        for name, version, check, words in (
                ("a", "1.0.0", "", "a has no sha512"),
                ("a", "1.0.0", "sha1-abc", "a has no sha512"),
                ("../a", "1.0.0", good, "is no package that is taken here"),
                ("a/node_modules/b", "1.0.0", good, "is no package"),
                ("a", "../1", good, "is no package that is taken here"),
                ("a", "", good, "is no package that is taken here")):
            self.lock(**{name: (version, check)})
            self.assert_refused(words)
        self.assertEqual(self.registry.asked, [])
        with open(os.path.join(self.folder, "package-lock.json"), "w",
                  encoding="utf-8") as f:
            f.write("{")
        self.assert_refused("no lock of npm's that can be read")
        for text in ("[]", '{"packages":[]}', '{"packages":{"a":[]}}'):
            with open(os.path.join(self.folder, "package-lock.json"), "w",
                      encoding="utf-8") as f:
                f.write(text)
            self.assert_refused("package-lock.json: ")

    def test_two_at_once_leave_all_of_it(self):
        files = [(f"p/{i}.js", b"x" * 1000) for i in range(200)]
        a = tarball(*files)
        self.offer("a", "1.0.0", a)
        self.lock(a=("1.0.0", integrity(a)))
        env = {"PATH": os.environ["PATH"],
               "npm_config_registry": self.registry.url}
        for _ in range(3):
            shutil.rmtree(os.path.join(self.folder, "node_modules"),
                          ignore_errors=True)
            runs = [subprocess.Popen([NPM_GET, self.folder], env=env,
                                     stderr=subprocess.PIPE)
                    for _ in range(3)]
            for run in runs:
                _, said = run.communicate()
                self.assertEqual((run.returncode, b"Traceback" in said),
                                 (0, False), said)
            self.assertEqual(len(self.there()), 200)

    def test_what_somebody_else_installed_is_there(self):
        a = tarball(("p/a.js", b"A"))
        self.offer("a", "1.0.0", a)
        self.lock(a=("1.0.0", integrity(a)))
        self.assertEqual(self.get()[0], 0)
        with unittest.mock.patch("os.utime", side_effect=PermissionError):
            self.assertEqual(self.get(), (0, ""))
        self.assertEqual(len(self.registry.asked), 1)

    def test_a_password_is_not_taken_and_not_shown(self):
        self.lock(a=("1.0.0", integrity(b"x")))
        status, said = self.get(
            npm_config_registry="https://me:SECRET@localhost/")
        self.assertEqual(status, 1)
        self.assertIn("$npm_config_registry has a name or a password", said)
        self.assertNotIn("SECRET", said)

    def test_offline_it_says_what_to_do(self):
        self.lock(a=("1.0.0", integrity(b"x")))
        gone = Registry()
        gone.close()
        status, said = self.get(npm_config_registry=gone.url)
        self.assertEqual(status, 1)
        for words in ("a 1.0.0: cannot be had", "refused",
                      "$npm_config_registry", "copy web/node_modules"):
            self.assertIn(words, said)

    def test_the_registry_is_the_one_that_npm_would_take(self):
        a = tarball(("p/a.js", b"A"))
        self.offer("a", "1.0.0", a)
        self.lock(a=("1.0.0", integrity(a)))
        status, said = self.get(npm_config_registry="ftp://x")
        self.assertIn("$npm_config_registry must be the address", said)
        self.assertEqual(status, 1)
        status, said = self.get(npm_config_registry=None,
                                NPM_CONFIG_REGISTRY=self.registry.url + "/")
        self.assertEqual(status, 0, said)

    def npmrc(self, text):
        home = tempfile.TemporaryDirectory()
        self.addCleanup(home.cleanup)
        with open(os.path.join(home.name, ".npmrc"), "w",
                  encoding="utf-8") as f:
            f.write(text)
        return home.name

    def test_what_npm_was_told_counts_here_too(self):
        a = tarball(("p/a.js", b"A"))
        self.offer("a", "1.0.0", a)
        self.lock(a=("1.0.0", integrity(a)))
        home = self.npmrc("; of mine\n//x/:_authToken=${TOKEN}\n"
                          f'fund=false\nregistry = "{self.registry.url}/"\n')
        # The environment says it louder.
        status, said = self.get(HOME=home, npm_config_registry="ftp://x")
        self.assertIn("$npm_config_registry must be", said)
        status, said = self.get(HOME=home, npm_config_registry=None)
        self.assertEqual(status, 0, said)
        self.assertEqual(self.there(), {"a/a.js": b"A"})

    def test_authorities_that_cannot_be_read_are_named(self):
        self.lock(a=("1.0.0", integrity(b"x")))
        for env in ({"HOME": self.npmrc("cafile=/nonexistent.pem\n")},
                    {"NODE_EXTRA_CA_CERTS": "/nonexistent.pem"},
                    {"NODE_EXTRA_CA_CERTS": NPM_GET}):
            status, said = self.get(**env)
            self.assertEqual(status, 1)
            self.assertIn(": no certificates that can be read", said)
        self.assertEqual(self.registry.asked, [])

    def test_by_itself_it_is_a_program(self):
        self.lock(a=("1.0.0", integrity(b"x")))
        run = subprocess.run([NPM_GET, self.folder], text=True, check=False,
                             stderr=subprocess.PIPE, env={
                                 "PATH": os.environ["PATH"],
                                 "npm_config_registry": self.registry.url})
        self.assertEqual(run.returncode, 1)
        self.assertIn("the registry answered 404", run.stderr)


if __name__ == "__main__":
    unittest.main()
