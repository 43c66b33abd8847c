"""Spin, which visits every state of a model in Promela.

    class Search(spinning.Search):
        MODEL = "gate.pml"

    said = self.search(["SCENE_GATE"])      # what pan says after all of it
    spinning.errors(said), spinning.states(said)
"""
import concurrent.futures
import os
import re
import subprocess
import tempfile
import unittest

SOURCE = os.environ["SIGNALBOX_SOURCE"]
FULL = os.environ.get("STRESS") == "full"
PATIENCE_S = 3600 if FULL else 240
MEMORY_MB = 8000 if FULL else 1500


def path_of(model):
    return os.path.join(SOURCE, "test/spin", model)


def command(*words, cwd):
    done = subprocess.run(words, cwd=cwd, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True,
                          timeout=PATIENCE_S, check=False)
    if done.returncode:
        raise AssertionError(f"{' '.join(words)}:\n{done.stdout}")
    return done.stdout


def search(model, defines, has_cycles=False):
    """What pan says after it was everywhere."""
    with tempfile.TemporaryDirectory() as folder:
        command("spin", "-a", *[f"-D{d}" for d in defines], path_of(model),
                cwd=folder)
        command("gcc", "-O2" if FULL else "-O0", "-w",
                "-DNP" if has_cycles else "-DSAFETY",
                f"-DMEMLIM={MEMORY_MB}", "-o", "pan", "pan.c", cwd=folder)
        return command("./pan", "-m100000", "-w26" if FULL else "-w20",
                       *(["-l"] if has_cycles else []), cwd=folder)


def errors(said):
    return int(re.search(r"errors: (\d+)", said).group(1))


def states(said):
    return float(re.search(r"([\d.e+]+) states, stored", said).group(1))


def names_in(path, enum):
    """The names of an enum of a header, in its order."""
    with open(os.path.join(SOURCE, path), encoding="utf-8") as file:
        body = re.search(r"enum " + enum + r" \{(.*?)\};", file.read(),
                         re.S).group(1)
    return re.findall(r"^\s+[A-Z]+?_(\w+) =", body, re.M)


def names_of(model, kind):
    """Those of the model."""
    with open(path_of(model), encoding="utf-8") as file:
        body = re.search(r"mtype:" + kind + r" = \{(.*?)\}", file.read(),
                         re.S).group(1)
    return re.findall(r"\w+", body)


class Search(unittest.TestCase):
    MODEL = None

    def each(self, jobs):
        """Several at once; what they say, by their names."""
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            said = {name: pool.submit(search, self.MODEL, *job)
                    for name, job in jobs.items()}
            for name, future in said.items():
                with self.subTest(name):
                    yield name, future.result()

    def complete(self, name, said):
        self.assertEqual(errors(said), 0, said)
        self.assertNotIn("Search not completed", said)
        self.assertNotIn("max search depth too small", said)
        print(f"{name}: {states(said):.0f} states")

    def found(self, bugs):
        """Each mistake, planted: the scene that shows it, and what is said."""
        jobs = {b: ([f"SCENE_{scene}", f"BUG_{b}"],)
                for b, (scene, _) in bugs.items()}
        for bug, said in self.each(jobs):
            self.assertEqual(errors(said), 1, f"{bug} was not found")
            violated = re.search(r"assertion violated (.*)", said)
            self.assertIn(bugs[bug][1], violated.group(1))
