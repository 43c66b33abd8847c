"""Spin visits every state of gate.pml: what must hold does, in every scene, and
each mistake that can be planted there is found. The model speaks of the states
that the server has."""
import concurrent.futures
import os
import re
import subprocess
import tempfile
import unittest

SOURCE = os.environ["SIGNALBOX_SOURCE"]
MODEL = os.path.join(SOURCE, "test/spin/gate.pml")
FULL = os.environ.get("STRESS") == "full"
PATIENCE_S = 3600 if FULL else 240
MEMORY_MB = 8000 if FULL else 1500

SCENES = ["GATE", "PEOPLE", "DEAD", "ROOM", "TIME"]

# The mistake, the scene that shows it, and what is said of it.
NOT_OVER = "acknowledged[i]"
BUGS = {
    "NO_SECOND_LOOK": ("GATE", NOT_OVER),
    "START_FORGETS": ("GATE", NOT_OVER),
    "DECISION_NOTES_NOTHING": ("GATE", NOT_OVER),
    "COUNT_ALL": ("ROOM", NOT_OVER),
    "ANSWER_FIRST": ("GATE", "rows[next].status!=0"),
    "OVERTAKE": ("GATE", "memory[0].status"),
    "NO_GUARD": ("PEOPLE", "rows[m].asked=="),
    "APPROVED_SKIPS_GATE": ("PEOPLE", "is_unsafe[me]"),
}


def command(*words, cwd):
    done = subprocess.run(words, cwd=cwd, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True,
                          timeout=PATIENCE_S, check=False)
    if done.returncode:
        raise AssertionError(f"{' '.join(words)}:\n{done.stdout}")
    return done.stdout


def search(defines, has_cycles=False):
    """What pan says after it was everywhere."""
    with tempfile.TemporaryDirectory() as folder:
        command("spin", "-a", *[f"-D{d}" for d in defines], MODEL, cwd=folder)
        command("gcc", "-O2" if FULL else "-O0", "-w",
                "-DNP" if has_cycles else "-DSAFETY",
                f"-DMEMLIM={MEMORY_MB}", "-o", "pan", "pan.c", cwd=folder)
        return command("./pan", "-m100000", *(["-l"] if has_cycles else []),
                       cwd=folder)


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


def names_of(kind):
    """Those of the model."""
    with open(MODEL, encoding="utf-8") as file:
        body = re.search(r"mtype:" + kind + r" = \{(.*?)\}", file.read(),
                         re.S).group(1)
    return re.findall(r"\w+", body)


class Names(unittest.TestCase):
    def test_statuses_are_those_of_tasks(self):
        self.assertEqual([n.lower() for n in
                          names_in("src/model/task.h", "task_status")],
                         names_of("status"))

    def test_states_are_those_of_agents(self):
        self.assertEqual(names_in("src/model/agent.h", "agent_state"),
                         names_of("state"))

    def test_escalations_end_as_theirs_do(self):
        ours = {n.lower() for n in
                names_in("src/broker/broker.h", "escalation_status")}
        self.assertEqual(ours - {"ran_out"}, set(names_of("asked")) - {"none"})


class Search(unittest.TestCase):
    def each(self, jobs):
        """Several at once; what they say, by their names."""
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            said = {name: pool.submit(search, *job)
                    for name, job in jobs.items()}
            for name, future in said.items():
                with self.subTest(name):
                    yield name, future.result()

    def complete(self, name, said):
        self.assertEqual(errors(said), 0, said)
        self.assertNotIn("Search not completed", said)
        self.assertNotIn("max search depth too small", said)
        print(f"{name}: {states(said):.0f} states")

    def test_all_that_must_hold_does(self):
        deaths = 2 if FULL else 1
        for name, said in self.each({s: ([f"SCENE_{s}", f"DEATHS={deaths}"],)
                                     for s in SCENES}):
            self.complete(name, said)
            self.assertGreater(states(said), 10000) # it did go somewhere

    def test_every_run_ends(self):
        crashes = 1 if FULL else 0
        for name, said in self.each(
                {s: ([f"SCENE_{s}", f"CRASHES={crashes}"], True)
                 for s in SCENES}):
            self.complete(name, said)

    def test_planted_mistakes_are_found(self):
        jobs = {b: ([f"SCENE_{scene}", f"BUG_{b}"],)
                for b, (scene, _) in BUGS.items()}
        for bug, said in self.each(jobs):
            self.assertEqual(errors(said), 1, f"{bug} was not found")
            violated = re.search(r"assertion violated (.*)", said)
            self.assertIn(BUGS[bug][1], violated.group(1))
