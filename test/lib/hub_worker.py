"""An agent as a process of its own, for tests that kill one: it connects, is
registered by who owns the token, and echoes whatever it is given.

    hub_worker.py HOST PORT TOKEN-FILE NAME
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hub_peer import Hub  # noqa: E402


class Place:
    def __init__(self, host, port, token):
        self.address = (host, int(port))
        self.token = token


def main(host, port, token_file, name):
    with open(token_file, encoding="utf-8") as f:
        token = f.read().strip()
    with Hub(Place(host, port, token)) as hub:
        hub.register(name)
        while True:
            hub.work()


main(*sys.argv[1:])
