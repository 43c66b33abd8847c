"""Spin visits every state of gate.pml: what must hold does, in every scene, and
each mistake that can be planted there is found. The model speaks of the states
that the server has."""
import unittest

import spinning
from spinning import FULL, names_in, states

MODEL = "gate.pml"
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


class Names(unittest.TestCase):
    def test_statuses_are_those_of_tasks(self):
        self.assertEqual([n.lower() for n in
                          names_in("src/model/task.h", "task_status")],
                         spinning.names_of(MODEL, "status"))

    def test_states_are_those_of_agents(self):
        self.assertEqual(names_in("src/model/agent.h", "agent_state"),
                         spinning.names_of(MODEL, "state"))

    def test_escalations_end_as_theirs_do(self):
        ours = {n.lower() for n in
                names_in("src/gate/gatekeeper.h", "escalation_status")}
        theirs = set(spinning.names_of(MODEL, "asked"))
        self.assertEqual(ours - {"ran_out"}, theirs - {"none"})


class Search(spinning.Search):
    MODEL = "gate.pml"

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
        self.found(BUGS)
