"""tools/banned.sh sees what has no place here, and nothing else."""
import os
import subprocess
import tempfile
import unittest

BANNED = os.path.join(os.environ["SIGNALBOX_SOURCE"], "tools", "banned.sh")


def banned(text):
    """What it says about one source file, and its exit status."""
    with tempfile.TemporaryDirectory() as root:
        os.mkdir(os.path.join(root, "src"))
        with open(os.path.join(root, "src", "a.c"), "w",
                  encoding="utf-8") as f:
            f.write(text)
        run = subprocess.run([BANNED, root], stdout=subprocess.PIPE,
                             text=True, check=False)
    return run.stdout, run.returncode


class Banned(unittest.TestCase):
    def test_each_is_seen(self):
        for call in ("strcpy(a, b)", "strcat(a,b)", "sprintf(p, q)",
                     "vsprintf (p, q, r)", "strtok(s, t)", "gets(b)",
                     "n = atoi(s)", "alloca(8)"):
            with self.subTest(call=call):
                out, status = banned(f"\n    {call};\n")
                self.assertIn("src/a.c:2:", out)
                self.assertEqual(status, 1)

    def test_their_betters_are_not(self):
        self.assertEqual(banned("snprintf(p, n, q); fgets(b, n, f);\n"
                                "vsnprintf(p, n, q, r); my_strcpy(a, b);\n"),
                         ("", 0))
