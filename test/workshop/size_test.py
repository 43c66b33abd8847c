"""tools/size.sh counts what it says, and keeps figures from growing."""
import os
import shutil
import subprocess
import tempfile
import unittest

TOOLS = os.path.join(os.environ["SIGNALBOX_SOURCE"], "tools")
LAYERS = 'split("a b", row)\nfor (i in row)\nlevel[row[i]] = 99\n'


class Size(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="signalbox-size-")
        self.addCleanup(shutil.rmtree, self.root)
        for name in ("size.sh", "size.py"):
            os.makedirs(os.path.join(self.root, "tools"), exist_ok=True)
            shutil.copy(os.path.join(TOOLS, name),
                        os.path.join(self.root, "tools"))
        self.write("tools/layers.sh", LAYERS)
        self.write("src/a/a.c", "int f(void)\n{\n    return 1;\n}\n")

    def write(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)

    def run_it(self, *args):
        run = subprocess.run([os.path.join(self.root, "tools", "size.sh"),
                              *args], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, check=False)
        return run.returncode, run.stdout

    def figure(self, name):
        _, out = self.run_it()
        for line in out.split("\n"):
            if line.startswith(name + " "):
                return int(line[len(name):].split()[-2])
        raise AssertionError(out)

    def refused(self, words):
        status, out = self.run_it()
        self.assertEqual(status, 1, out)
        self.assertIn(words, out)

    def test_what_grows_is_refused_and_what_shrinks_is_kept(self):
        self.refused("a tokens: 10, and has no limit")
        self.assertEqual(self.run_it("--write")[0], 0)
        self.assertEqual(self.run_it()[0], 0)
        self.write("src/a/b.c", "int g(void)\n{\n    return 2;\n}\n" * 9)
        self.refused("a tokens: 100, and the limit is 10")
        self.assertEqual(self.run_it("--write")[0], 1)  # it raises nothing
        os.remove(os.path.join(self.root, "src/a/b.c"))
        self.assertEqual(self.run_it()[0], 0)
        self.write("src/a/a.c", "")
        self.refused("keep the gain")
        self.assertEqual(self.run_it("--write")[0], 0)

    def test_a_module_that_is_gone_has_no_limit(self):
        self.write("src/b/b.c", "int g;\n")
        self.run_it("--write")
        shutil.rmtree(os.path.join(self.root, "src/b"))
        self.refused("b tokens: is gone")

    def test_a_long_function_is_refused(self):
        self.write("src/a/short.c", "".join(
            f"void f{i}(void)\n{{\n}}\n\n" for i in range(200)))
        for n, status in (148, 0), (149, 1):
            self.write("src/a/a.c", "void\nlong_one(int x)\n{\n"
                       + "    x++;\n" * n + "}\n")
            self.run_it("--write")
            got, out = self.run_it()
            self.assertEqual(got, status, out)
        self.assertIn("src/a/a.c: long_one has 151 lines", out)

    def test_tests_comments_and_words_in_strings_are_no_code(self):
        self.write("src/a/a_test.c", "int g(void)\n{\n    return 2;\n}\n")
        self.write("src/a/a.c", "/* int x; */\nint f(void) // { } g()\n{\n"
                   "    return *\"a /* b */ c\"; /* x\n y */\n}\n")
        _, out = self.run_it()
        self.assertRegex(out, r"(?m)^a +1 +1 +11$")

    def test_names_that_are_not_unique(self):
        name = "function names that are not unique, of 1000"
        self.assertEqual(self.figure(name), 0)
        self.write("src/b/b.c", "static int f(void)\n{\n    return 1;\n}\n"
                   "int only(int x)\n{\n    if (f(x)) {\n    }\n}\n"
                   "static MUST_USE struct str\nother(int (*cb)(int))\n{\n}\n")
        self.assertEqual(self.figure(name), 500)

    def test_functions_with_one_caller(self):
        self.write("src/a/a.c", (
            "static int once(void)\n{\n    return 1;\n}\n\n"
            "static int twice(void)\n{\n    return 1;\n}\n\n"
            "static int handed_over(void)\n{\n    return 1;\n}\n\n"
            "static int in_a_table(void)\n{\n    return 1;\n}\n\n"
            "static int (*const table[])(void) = {\n    in_a_table,\n};\n\n"
            "int f(int (*g)(void))\n{\n"
            "    return once() + twice() + twice() + f(handed_over) + f(g);\n"
            "}\n"))
        self.assertEqual(self.figure(
            "functions with exactly one caller, of 1000"), 200)

    def test_a_static_function_counts_in_its_own_file(self):
        helper = "static int helper(void)\n{\n    return 1;\n}\n\n"
        for name in "ab":
            self.write(f"src/a/{name}.c", helper + (
                f"int {name}(void)\n{{\n    return helper();\n}}\n"))
        self.assertEqual(self.figure(
            "functions with exactly one caller, of 1000"), 500)

    def test_words_and_sentences_that_make_a_reader_stop(self):
        self.write("docs/x.md", "Nobody asks whom.\n")
        self.write("src/a/a.c", "/* Whoever. What it is. Of all, one: Who? */\n"
                   "/* So what. Offers of a kind. */\n"
                   "/* One.\n *\n * Whose it is. */\n")
        self.assertEqual(self.figure("nobody, whoever, somebody, whom, anew"),
                         3)
        self.assertEqual(self.figure("comment sentences that begin with What, "
                                     "Who, Whose, Of"), 4)

    def test_loose_files_modules_and_units_without_a_layer(self):
        self.write("src/loose.c", "")
        self.assertEqual(self.figure("loose files in src/"), 1)
        self.assertEqual(self.figure("modules"), 1)
        self.assertEqual(self.figure("units that may include everything"), 2)


if __name__ == "__main__":
    unittest.main()
