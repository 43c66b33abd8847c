#!/usr/bin/python3
"""How data.tar.xz beside this file was made, by the server of version 0.1.0:

    SIGNALBOX_BIN=… SIGNALBOX_SOURCE=… PYTHONPATH=test/lib python3 make.py

It is a data folder with something of everything that is kept. upgrade_test.py
opens it with the server of today.
"""
import json
import os
import subprocess
import sys
import tempfile

from cards import FULL, card, skill
from signalbox import Server, eventually

HERE = os.path.dirname(os.path.abspath(__file__))
KEY = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
CONFIG = {"registry": {"review": True}, "seal": {"keyVariable": "OLD_KEY"},
          "agents": {"list": [{"id": "echo", "url": "echo:"},
                              {"id": "never", "url": "echo:3600000"}]}}


def good(server, token, method, path, body=None):
    got = server.call(method, path, body, token=token)
    if got.status not in (200, 201, 202, 204):
        raise AssertionError(f"{method} {path}: {got}")
    return got.json() if got.body else None


def fill(server):
    admin = server.token
    anna, otto = server.user("anna", org="acme"), server.user("otto")
    said = {"admin": admin, "anna": anna, "otto": otto}
    for name in ("engineer", "poet"):
        good(server, anna, "POST", "/api/agents", {
            **FULL, "name": name, "wake": None, "delegation": None,
            "authentication": {"schemes": ["bearer"],
                               "credentials": "old-secret"},
            "description": f"What a good {name} of the old times does"})
        good(server, admin, "POST", f"/api/agents/{name}/approve",
             {"revision": good(server, admin, "GET",
                               f"/api/agents/{name}")["revision"]})
    good(server, anna, "PATCH", "/api/agents/poet", {"title": "Bard"})
    good(server, otto, "POST", "/api/agents/poet/report",
         {"reason": "Bad rhymes"})
    good(server, anna, "POST", "/api/agents", card(
        "shared", visibility="shared", skills=[skill("s")]))
    good(server, anna, "POST", "/api/grants",
         {"agent": "shared", "user": "otto"})
    good(server, admin, "POST", "/api/ledger/topup",
         {"user": "otto", "amount_micros": 1000000, "idempotency_key": "k"})
    good(server, admin, "PUT", "/api/budgets",
         {"user": "otto", "period": "month", "limit_micros": 900000})
    paid = good(server, otto, "POST", "/api/messages", {
        "text": "why does this segfault", "executor": {"name": "engineer"},
        "skill": "debug", "conversation_id": "old talk",
        "idempotency_key": "old key"})
    said["paid"], said["decision"] = paid["task_id"], paid["decision"]["id"]
    found = good(server, otto, "POST", "/api/messages",
                 {"text": "find the bug in my program and debug the code",
                  "max_cost_micros": 5000})
    good(server, otto, "POST",
         f"/api/decisions/{found['decision']['id']}/feedback",
         {"verdict": "right"})
    good(server, admin, "POST", "/api/learning/run")
    said["open"] = good(server, otto, "POST", "/api/messages", {
        "text": "wait", "executor": {"name": "never"},
        "wait_ms": 0})["task_id"]
    eventually(lambda: good(server, otto, "GET", "/api/tasks/" + said["open"])
               ["status"] in ("dispatched", "working"), "it is with its agent")
    return said


def main():
    os.environ["OLD_KEY"] = KEY
    with tempfile.TemporaryDirectory() as folder:
        data = os.path.join(folder, "data")
        with Server(data=data, config=CONFIG) as server:
            said = fill(server)
        with open(os.path.join(HERE, "said.json"), "w",
                  encoding="ascii") as f:
            json.dump(said, f, indent=1, sort_keys=True)
            f.write("\n")
        subprocess.run(["tar", "-C", data, "-cJf",
                        os.path.join(HERE, "data.tar.xz"), "."], check=True)


if __name__ == "__main__":
    sys.exit(main())
