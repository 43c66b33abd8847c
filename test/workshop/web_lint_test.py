"""tools/web_lint.py sees what has no place in the dashboard, nothing else."""
import os
import subprocess
import tempfile
import unittest

LINT = os.path.join(os.environ["SIGNALBOX_SOURCE"], "tools", "web_lint.py")


def lint(files, folder="."):
    with tempfile.TemporaryDirectory() as root:
        for name, text in files.items():
            path = os.path.join(root, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
        run = subprocess.run([LINT, os.path.join(root, folder)],
                             stdout=subprocess.PIPE, text=True, check=False)
    return run.stdout, run.returncode


class WebLint(unittest.TestCase):
    def test_each_is_seen_with_its_line(self):
        for line in ("el.innerHTML = x;",
                     "html`<p dangerouslySetInnerHTML=${x}/>`;",
                     "document.write(x);",
                     "eval (x);",
                     "new Function('a');",
                     "setTimeout('go()', 1);",
                     "html`<p style=\"color: red\">`;",
                     "html`<p onclick='x()'>`;",
                     "fetch('https://example.com/');",
                     "fetch('//example.com/x');",
                     "window.open(x);",
                     "get(`/api/agents/${name}`);",
                     "import x from 'preact';",
                     "import x from '../../elsewhere.js';",
                     "import x from './nowhere.js';",
                     "import x from '../vendor/preact.js';",
                     "import x from '../main.js';",
                     "const page = () => import('./nowhere.js');"):
            with self.subTest(line=line):
                out, status = lint({"pages/a.js": "\n" + line + "\n",
                                    "main.js": "\n"})
                self.assertIn("web/pages/a.js:2: ", out)
                self.assertEqual(status, 1)

    def test_what_is_right_is_not(self):
        files = {
            "main.js": "import { html } from './lib/ui.js';\n"
                       "const page = () => import('./pages/a.js');\n",
            "lib/ui.js": "// eval(x) and innerHTML are what we do not do\n"
                         "import { h } from '../vendor/preact.js';\n"
                         "/* https://example.com\n in a comment */\n"
                         "export const html = h;\n",
            "pages/a.js": "import { html } from '../lib/ui.js';\n"
                          "import b from './b.js';\n"
                          "get(path`/api/agents/${name}`);\n"
                          "html`<p style=${{ width: 1 }} onClick=${b}>`;\n"
                          "const ns = 'http://www.w3.org/2000/svg';\n",
            "pages/b.js": "export default 1;\n" * 350,
        }
        self.assertEqual(lint(files), ("", 0))
        files["pages/b.js"] += "\n"
        self.assertEqual(lint(files)[1], 1)

    def test_a_line_ends_where_a_window_does(self):
        """By characters and not by bytes; also of tests; not of a pattern."""
        words = "const words = '" + "ü" * 103
        for name in "web/pages/a.js", "test/web/a_test.mjs":
            for line, is_right in ((words + "';", True),
                                   (words + "x';", False),
                                   ("// " + "x" * 118, False),
                                   ("const A = /" + "x" * 200 + "/u;", True),
                                   ("f(/" + "x" * 200 + "/u);", False)):
                with self.subTest(name=name, line=line):
                    out, status = lint({"web/main.js": "\n",
                                        name: "\n" + line + "\n"}, "web")
                    self.assertEqual(status, 0 if is_right else 1, out)
                    self.assertEqual(f"{name}:2: has 1" in out or
                                     f"{name}:2: has 2" in out, not is_right)

    def test_an_empty_folder_is_no_dashboard(self):
        self.assertEqual(lint({"readme": ""})[1], 1)
