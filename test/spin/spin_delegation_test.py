"""Spin visits every state of delegation.pml: who has another do something ends
with one result, whatever breaks meanwhile; and each mistake that can be planted
there is found. The model speaks of the states that the server has."""
import unittest

import spinning
from spinning import FULL, names_in, states

MODEL = "delegation.pml"
SCENES = ["LINES", "TWO", "CANCEL"]
MORE = ["CRASHES=2", "LOST=1"] if FULL else []

# The mistake, the scene that shows it, and what is said of it.
ONE_TASK = "known[id]==task"
ONE_RESULT = "taken[id]==what"
NOT_LOST = "taken[i]!=0"
BUGS = {
    "TOLD_FIRST": ("LINES", ONE_RESULT),
    "NO_GUARD": ("CANCEL", ONE_RESULT),
    "SECOND_TASK": ("LINES", ONE_TASK),
    "START_FORGETS_IDS": ("LINES", ONE_TASK),
    "CLAIM_IS_NOT_SEEN": ("LINES", "task==1"),
    "AWAY_IS_HAD": ("LINES", ONE_TASK),
    "ACK_FIRST": ("LINES", "is_acked[id]"),
    "ACCEPTED_FIRST": ("LINES", NOT_LOST),
    "TOLD_ONCE": ("LINES", "rows[it].state=="),
}


class Names(unittest.TestCase):
    def test_states_are_those_of_delegations(self):
        self.assertEqual([n.lower() for n in
                          names_in("src/model/delegation.h",
                                   "delegation_state")],
                         spinning.names_of(MODEL, "state"))


class Search(spinning.Search):
    MODEL = "delegation.pml"

    def test_all_that_must_hold_does(self):
        for name, said in self.each({s: ([f"SCENE_{s}", *MORE],)
                                     for s in SCENES}):
            self.complete(name, said)
            self.assertGreater(states(said), 10000) # it did go somewhere

    def test_every_run_ends(self):
        for name, said in self.each(
                {s: ([f"SCENE_{s}", *MORE], True)
                 for s in (SCENES if FULL else ["LINES"])}):
            self.complete(name, said)

    def test_planted_mistakes_are_found(self):
        self.found(BUGS)
