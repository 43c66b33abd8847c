"""The exchanges of docs/protocol.md, run against the real server in the order
in which they stand: the document is the test's data.

A block begins with ```exchange NAME; each line of it is CONNECTION, an arrow
and a message. "<name>" stands for a value that differs from run to run: taken
where it comes first, and the same from then on. A member "…" lets an object
have more members than are shown.
"""
import json
import os
import re
import unittest

from hub_peer import Hub
from signalbox import Server

SOURCE = os.environ["SIGNALBOX_SOURCE"]
HOLE = re.compile(r"<([a-z]+[0-9]*)>")
MORE = "…"


def exchanges():
    """[(name, [(connection, is_sent, message)])] as the document has them."""
    with open(os.path.join(SOURCE, "docs/protocol.md"), encoding="utf-8") as f:
        text = f.read()
    blocks = re.findall(r"^```exchange (\S+)\n(.*?)^```", text, re.M | re.S)
    result = []
    for name, body in blocks:
        lines = []
        for line in body.strip().split("\n"):
            who, arrow, message = line.split(" ", 2)
            lines.append((who, arrow == "→", message))
        result.append((name, lines))
    return result


def filled(text, known):
    """What is sent, with what is known by now."""
    return HOLE.sub(lambda m: str(known[m[1]]), text)


def same_text(said, came, known):
    whole = HOLE.fullmatch(said)
    if whole and whole[1] not in known:
        known[whole[1]] = came
        return True
    if whole:
        return known[whole[1]] == came
    return isinstance(came, str) and filled(said, known) == came


def same(said, came, known):
    """Whether what came is what was said, filling in what is not known."""
    if isinstance(said, str):
        return same_text(said, came, known)
    if isinstance(said, list):
        return isinstance(came, list) and len(said) == len(came) and all(
            same(a, b, known) for a, b in zip(said, came))
    if isinstance(said, dict):
        if not isinstance(came, dict):
            return False
        wanted = [k for k in said if k != MORE]
        if MORE not in said and set(wanted) != set(came):
            return False
        return all(k in came and same(said[k], came[k], known)
                   for k in wanted)
    return type(said) is type(came) and said == came


def run_one(peers, lines, known):
    """What was promised and did not come, or nothing."""
    for who, is_sent, text in lines:
        if is_sent:
            peers[who].send_bytes(filled(text, known).encode())
            continue
        came = peers[who].read()
        if not same(json.loads(text), came, known):
            return f"{who}: promised {text}\n came {came}"
    return None


def run_all(blocks):
    """{name: what was wrong} of each exchange, with a server of its own."""
    with Server() as server:
        anna = server.user("anna")
        bot = server.user("bot", role="agent", owner="anna")
        tokens = {"user": anna, "agent": bot, "agent2": bot}
        peers = {who: Hub(server, token) for who, token in tokens.items()}
        known = {}
        wrong = {}
        for name, lines in blocks:
            wrong[name] = run_one(peers, lines, known)
            if wrong[name]:
                break  # what follows builds on it
        for peer in peers.values():
            peer.close()
    return wrong


class Exchanges(unittest.TestCase):
    def test_everything_that_is_promised_is_so(self):
        for name, what in run_all(exchanges()).items():
            with self.subTest(name):
                self.assertIsNone(what)

    def test_a_promise_that_is_not_kept_is_caught(self):
        """The control: one line of one exchange says something else."""
        for name, line, was, is_ in (
                ("agent.register", 1, '"heartbeat_s":90', '"heartbeat_s":91'),
                ("task.result", 1, '"recorded":true', '"recorded":false')):
            blocks = exchanges()
            lines = dict(blocks)[name]
            who, is_sent, text = lines[line]
            self.assertIn(was, text)
            lines[line] = (who, is_sent, text.replace(was, is_))
            wrong = run_all(blocks)
            self.assertIn(is_, wrong[name] or "nothing was found")
            self.assertEqual([n for n in wrong if wrong[n]], [name])

    def test_every_method_has_its_exchange(self):
        """Asked of the code, by the words it has for a method it lacks."""
        named = {name for name, _ in exchanges()}
        with open(os.path.join(SOURCE, "src/api/calls.c")) as f:
            methods = re.findall(r'\{METHOD\("([a-z.]+)"', f.read())
        self.assertGreater(len(methods), 10)
        self.assertEqual([m for m in methods if m not in named], [])

    def test_the_control_is_caught(self):
        known = {}
        self.assertTrue(same({"a": "<x>", "b": 1}, {"a": 3, "b": 1}, known))
        self.assertFalse(same({"a": "<x>"}, {"a": 4}, known))
        self.assertFalse(same({"a": 1}, {"a": 1, "b": 2}, known))
        self.assertTrue(same({"a": 1, MORE: MORE}, {"a": 1, "b": 2}, known))
        self.assertFalse(same({"a": True}, {"a": 1}, known))


if __name__ == "__main__":
    unittest.main()
