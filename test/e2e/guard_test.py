"""No one is led into this machine, however the address is written: no form of
FORMS makes a connection to a listener on loopback. The controls do: the same
list with a check of the URL's text, and with none."""
import collections
import concurrent.futures
import json
import os
import subprocess
import unittest

from inward import FORMS, OPEN, Listener, leads_away

PEER = os.environ["FETCH_PEER"]
WORKERS = 8
HAS_V6 = os.path.exists("/proc/net/if_inet6")
TIMES = 3  # each URL, for the sake of names that change


class Target:
    """The listener that no one may reach, on every address of this machine,
    all of 127/8 included; on one of those, OPEN, someone else who may be, and
    a redirector."""

    def __enter__(self):
        self.listener = Listener()
        p = self.listener.open("inward", "0.0.0.0")
        if HAS_V6:
            self.listener.open("inward", "::", p)
        self.listener.open("open", OPEN, p)
        self.ports = {"p": p, "r": self.listener.open("redirector", OPEN)}
        self.listener.__enter__()
        return self

    def __exit__(self, *why):
        self.listener.__exit__(*why)

    def try_form(self, form, options):
        """(form, what the peer says, who was reached)"""
        url = form.url.format(**self.ports)
        names = [word for name in form.names for word in ("--name", name)]
        done = subprocess.run(
            [PEER, "--redirects", "10", *names, *options, *[url] * TIMES],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=120,
            check=True)
        lines = done.stdout.decode().splitlines()
        return form, [json.loads(line) for line in lines], self.listener.taken()


def try_all(forms, *options):
    """All of them, each worker with a target of its own."""
    def work(mine):
        with Target() as target:
            return [target.try_form(form, options) for form in mine]

    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        parts = pool.map(work, [forms[i::WORKERS] for i in range(WORKERS)])
        return [tried for part in parts for tried in part]


def reached(tried):
    return [form.name for form, _, came in tried if came["inward"]]


class Guard(unittest.TestCase):
    def test_no_form_reaches_the_listener(self):
        tried = try_all(FORMS, "--allow", OPEN)
        counts = sum((came for _, _, came in tried), collections.Counter())
        print(f"\n{len(FORMS)} forms, {TIMES} times each, with the guard: "
              f"{counts['inward']} connections to the listener, "
              f"{counts['open']} to the address that may be, "
              f"{counts['redirector']} to the redirector")
        self.assertGreaterEqual(len(FORMS), 60)
        self.assertEqual(reached(tried), [])
        # What may be reached is: the test would notice if nothing was.
        self.assertGreater(counts["open"], 20)
        self.assertGreater(counts["redirector"], 100)
        self.check_reasons({form.name: said for form, said, _ in tried})

    def check_reasons(self, said):
        errors = {answer["error"] for all in said.values() for answer in all}
        self.assertLessEqual(errors, {
            "address_not_allowed", "invalid_json", "bad_request",
            "unreachable", None})
        for name in ("127.0.0.1", "[::1]", "localhost", "[::ffff:7f00:1]",
                     "[64:ff9b::7f00:1]", "[fd00::1]", "[2002:7f00:1::]",
                     "1 x 302 -> http://127.0.0.1:{p}/",
                     "3 x 301 -> http://localhost:{p}/"):
            self.assertEqual(len(said[name]), TIMES)
            for answer in said[name]:
                with self.subTest(name):
                    self.assertEqual(answer["error"], "address_not_allowed")
                    self.assertIn("outgoing.allow", answer["why"])

    def test_where_it_is_allowed_it_is_reached(self):
        """The listener is there, and the forms lead to it."""
        here = [form for form in FORMS if not leads_away(form)]
        found = reached(try_all(here, "--allow", "0.0.0.0/0",
                                "--allow", "[::]/0"))
        print(f"\n{len(found)} of {len(here)} forms reach the listener when "
              "every address is allowed")
        self.assertGreaterEqual(len(found), 40)
        for name in ("127.0.0.1", "localhost", "0.0.0.0",
                     *["[::1]"] * HAS_V6):
            self.assertIn(name, found)

    def test_a_check_of_the_text_leaks(self):
        here = [form for form in FORMS if not leads_away(form)]
        nothing = reached(try_all(here, "--unchecked"))
        text = reached(try_all(here, "--string-check",
                               "--allow", OPEN))
        print(f"\n{len(nothing)} of {len(here)} forms reach the listener when "
              f"no one checks, {len(text)} when the text is checked")
        self.assertGreater(len(nothing), len(text))
        self.assertGreaterEqual(len(text), 12)
        for name in ("2130706433", "1 x 302 -> http://127.0.0.1:{p}/",
                     f"n16.test -> {OPEN}/127.0.0.1"):
            self.assertIn(name, text)
