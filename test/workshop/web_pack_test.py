"""tools/web_pack.py packs what it is meant to, always alike, and says so when
something is not as it was. What is in the binary, src/api/web/web_test.c looks
at."""
import os
import re
import subprocess
import tempfile
import unittest

WEB_PACK = os.path.join(os.environ["SIGNALBOX_SOURCE"], "tools",
                        "web_pack.py")
MODULES = {
    "preact/dist/preact.module.js": "export const h=1;\n"
                                    "//# sourceMappingURL=preact.map",
    "preact/hooks/dist/hooks.module.js": 'import{options as n}from"preact";'
                                         "export default n;"
                                         "//# sourceMappingURL=x.map\n",
    "htm/dist/htm.module.js": "export default 2",
    "uplot/dist/uPlot.iife.min.js": "var uPlot=function(){}();",
    "uplot/dist/uPlot.min.css": ".u{}",
    "htm/LICENSE": "of htm", "preact/LICENSE": "of preact",
    "uplot/LICENSE": "of uplot",
}


class WebPack(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        for path, text in MODULES.items():
            self.put("node_modules/" + path, text)
        self.put("index.html", '<script src="%ASSETS%/main.js">%ASSETS%')
        self.put("main.js", "import './lib/ui.js';" * 20)

    def put(self, path, text):
        whole = os.path.join(self.folder, "web", path)
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        with open(whole, "w", encoding="utf-8") as f:
            f.write(text)

    def run_it(self):
        out = [os.path.join(self.folder, name)
               for name in ("web.c", "web.blob", "web.d")]
        return out, subprocess.run(
            [WEB_PACK, os.path.join(self.folder, "web"), *out], text=True,
            stderr=subprocess.PIPE, check=False)

    def pack(self):
        """The folder's name, {path: (plain, gzip)}, and what ninja is told."""
        out, run = self.run_it()
        self.assertEqual(run.returncode, 0, run.stderr)
        with open(out[0], encoding="utf-8") as c, open(out[1], "rb") as b, \
                open(out[2], encoding="utf-8") as d:
            source, blob, deps = c.read(), b.read(), d.read()
        files = {}
        for m in re.finditer(r'\{STR_C\("([^"]*)"\),\s*\{web_blob \+ (\d+), '
                             r'(\d+)\},\s*\{(?:web_blob \+ (\d+), (\d+)|0)\}',
                             source):
            at, n, gz_at, gz_n = (int(x or 0) for x in m.groups()[1:])
            files[m[1]] = blob[at:at + n], blob[gz_at:gz_at + gz_n]
        folder = re.search(r'web_packed_folder\[\] = "([0-9a-f]{16})"', source)
        return folder[1], files, deps

    def test_what_is_in_it(self):
        self.put("lib/ui.js", "1")
        self.put("pages/deep/er.js", "2")
        self.put("style.css", "3")
        self.put("package.json", "{}")      # none of the page's
        self.put("notes.md", "no")
        self.put("pages/.swp", "no")
        self.put("pages/x.js~", "no")
        _, files, _ = self.pack()
        self.assertEqual(sorted(files), [
            "index.html", "lib/ui.js", "main.js", "pages/deep/er.js",
            "style.css", "vendor/LICENSES.txt", "vendor/hooks.js",
            "vendor/htm.js", "vendor/preact.js", "vendor/uplot.css",
            "vendor/uplot.js"])
        plain = {path: f[0].decode() for path, f in files.items()}
        self.assertEqual(plain["vendor/preact.js"], "export const h=1;\n")
        self.assertEqual(plain["vendor/hooks.js"],
                         'import{options as n}from"./preact.js";'
                         "export default n;\n")
        self.assertEqual(plain["vendor/uplot.js"],
                         "var uPlot=function(){}();\nexport default uPlot;\n")
        for name in "htm", "preact", "uplot":
            self.assertIn("of " + name, plain["vendor/LICENSES.txt"])

    def test_the_page_names_the_folder(self):
        folder, files, _ = self.pack()
        self.assertEqual(
            files["index.html"][0].decode(),
            f'<script src="/assets/{folder}/main.js">/assets/{folder}')

    def test_gzip_only_where_it_is_smaller(self):
        _, files, _ = self.pack()
        self.assertTrue(files["main.js"][1])
        self.assertFalse(files["vendor/uplot.css"][1])

    def test_the_same_files_make_the_same_bytes(self):
        first = self.pack()
        for path in "main.js", "index.html":
            os.utime(os.path.join(self.folder, "web", path), (1, 1))
        self.assertEqual(self.pack(), first)

    def test_any_change_makes_another_folder(self):
        seen = {self.pack()[0]}
        for path, text in (("main.js", "x"), ("index.html", "%ASSETS%"),
                           ("lib/a.js", ""), ("lib/b.js", ""),
                           ("node_modules/htm/dist/htm.module.js", "3"),
                           ("node_modules/htm/LICENSE", "other")):
            self.put(path, text)
            folder = self.pack()[0]
            self.assertNotIn(folder, seen)
            seen.add(folder)
        # A name is part of it, too.
        web = os.path.join(self.folder, "web")
        os.rename(web + "/lib/b.js", web + "/lib/c.js")
        self.assertNotIn(self.pack()[0], seen)

    def test_ninja_is_told_of_files_and_folders(self):
        self.put("pages/a.js", "1")
        deps = self.pack()[2]
        for path in ("", "/pages", "/pages/a.js", "/main.js",
                     "/node_modules/htm/dist/htm.module.js"):
            self.assertIn(f"{self.folder}/web{path}", deps.split())

    def assert_refused(self, words):
        _, run = self.run_it()
        self.assertEqual(run.returncode, 1)
        self.assertIn(words, run.stderr)
        self.assertNotIn("Traceback", run.stderr)

    def test_what_is_missing_is_said(self):
        self.put("index.html", "no folder in it")
        self.assert_refused("index.html is not there, or has no %ASSETS%")
        os.remove(os.path.join(self.folder, "web", "index.html"))
        self.assert_refused("index.html is not there")

    def test_packages_that_are_not_there_are_said(self):
        web = os.path.join(self.folder, "web")
        os.rename(web + "/node_modules", web + "/gone")
        self.assert_refused("tools/npm_get.py fetches it")

    def test_a_package_that_is_made_otherwise_is_noticed(self):
        self.put("node_modules/preact/hooks/dist/hooks.module.js",
                 'import{options as n}from"preact/core"')
        self.assert_refused("does not import \"preact\" as it did")
        os.remove(os.path.join(self.folder,
                               "web/node_modules/htm/dist/htm.module.js"))
        self.assert_refused("htm.module.js")


if __name__ == "__main__":
    unittest.main()
