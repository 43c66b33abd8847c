"""No one in front of the server can be talked into seeing other requests than
it sees itself, and the probes that say so can tell a bad server."""
import queue
import threading
import unittest

from haproxy import Haproxy
from lenient import Lenient
from signalbox import Server
from smuggling import (CANARY, FORMS, REQUESTS, filled_in, metric, probe,
                       probe_through, talk)

WORKERS = 8
CREEDS = "te", "cl", "first", "deaf"

# What is harmless leaves its connection open; it is closed soon.
SOON = [arg for name in ("header", "body", "idle")
        for arg in ("--set", f"http.{name}TimeoutMs=2000")]
RELAXED = "option accept-invalid-http-request"


def in_parallel(forms, worker):
    """Complaints by form, each worker with a server of its own. worker yields
    a function from a form to its complaints."""
    todo, found, broken = queue.SimpleQueue(), {}, []
    for form in forms:
        todo.put(form)

    def work():
        try:
            with worker() as ask:
                while not todo.empty():
                    form = todo.get_nowait()
                    if wrong := ask(form):
                        found[form.name] = wrong
        except queue.Empty:
            pass
        except BaseException as e:  # pylint: disable=broad-except
            broken.append(e)

    threads = [threading.Thread(target=work) for _ in range(WORKERS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if broken:
        raise broken[0]
    return found


class Direct:
    def __init__(self, make):
        self.server = make()

    def __enter__(self):
        self.server.__enter__()
        return lambda form: probe(self.server, form)

    def __exit__(self, *why):
        self.server.__exit__(*why)


class Proxied(Direct):
    def __init__(self, make, options=""):
        super().__init__(make)
        self.proxy = Haproxy(self.server, options)

    def __enter__(self):
        self.server.__enter__()
        return lambda form: probe_through(self.proxy, self.server, form)

    def __exit__(self, *why):
        self.proxy.__exit__()
        super().__exit__(*why)


class Smuggling(unittest.TestCase):
    def assert_clean(self, found):
        self.assertFalse(found, "\n".join(
            f"{name}: {'; '.join(wrong)}" for name, wrong in found.items()))

    def test_there_are_many_forms(self):
        self.assertEqual(len({f.name for f in FORMS}), len(FORMS))
        self.assertGreater(len(FORMS), 200)

    def test_the_canary_sings_when_it_is_let_out(self):
        with Server(*SOON) as server:
            before = metric(server, REQUESTS)
            with server.connect() as peer:
                answers = talk(peer, filled_in(CANARY, server.host) * 2)
            self.assertEqual([a.status for a in answers], [200, 200])
            self.assertEqual(metric(server, REQUESTS) - before - 1, 2)

    def test_straight(self):
        self.assert_clean(in_parallel(
            FORMS, lambda: Direct(lambda: Server(*SOON))))

    def test_through_haproxy(self):
        self.assert_clean(in_parallel(
            FORMS, lambda: Proxied(lambda: Server(*SOON))))

    def test_through_haproxy_that_lets_more_pass(self):
        self.assert_clean(in_parallel(
            FORMS, lambda: Proxied(lambda: Server(*SOON), RELAXED)))

    def test_lenient_servers_are_caught_by_every_form(self):
        caught = set()
        for creed in CREEDS:
            caught |= in_parallel(
                [f for f in FORMS if f.name not in caught],
                lambda c=creed: Direct(lambda: Lenient(c))).keys()
        self.assertEqual({f.name for f in FORMS} - caught, set())

    def test_lenient_servers_are_caught_through_haproxy(self):
        forms = [f for f in FORMS if not f.strict]
        found = in_parallel(forms, lambda: Proxied(lambda: Lenient("deaf")))
        self.assertIn("chunk plain", found)
        self.assertIn("body of GET", found)
