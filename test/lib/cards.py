"""Agents for tests of the registry over HTTP: cards, and people to look at
them with.

    with Server() as server:
        made = register(server, "engineer", skills=[skill("debug")])
        cast = people(server)       # name -> token
        names(server, "/api/agents", token=cast["same org"])
"""
import re

from signalbox import OWN

NOT_FOUND = (404, "agent_not_found")
# As much as a user may say.
FULL = {
    "name": "engineer", "title": "Engineer",
    "description": "Builds and repairs software", "version": "1.0.0",
    "url": "echo:", "visibility": "public",
    "provider": {"organization": "acme"},
    "capabilities": {"streaming": True},
    "authentication": {"schemes": ["bearer"]},
    "skills": [{"id": "debug", "name": "Debugging",
                "description": "Finds and fixes bugs", "tags": ["code"],
                "examples": ["why does this segfault"],
                "pricing": {"amount_micros": 1500}}],
    "routing": {"system_prompt": "You are an engineer.",
                "keywords": ["code", "debug"]},
    "wake": {"url": "https://wake.example.com/e", "timeout_ms": 30000},
    "limits": {"queue": 100, "in_flight": 4, "priority": 1},
    "delegation": {"allowAgents": ["docs"], "maxConcurrent": 2,
                   "maxDepth": 1},
}


def skill(identity, **fields):
    return {"id": identity, "name": identity.capitalize(),
            "description": f"Does {identity}", **fields}


def card(name, **fields):
    """What is left out is not said; url None leaves that out too."""
    made = {"name": name, "description": f"What {name} does", "url": "echo:",
            **fields}
    return {k: v for k, v in made.items() if v is not None}


def register(server, name, *headers, token=OWN, **fields):
    """POST /api/agents, which must go well; the response."""
    r = server.call("POST", "/api/agents", card(name, **fields), *headers,
                    token=token)
    if r.status not in (200, 201):
        raise AssertionError(f"{name} is not registered: {r}")
    return r


def error_code(response):
    return response.status, response.json()["error"]["code"]


def told(response, *names):
    """All that a client sees of an answer, but for the time, and with one
    name for those that were asked for."""
    headers = {k: v for k, v in response.headers.items()
               if k not in ("date", "content-length")}
    body = response.body
    for name in names:
        body = body.replace(name.encode(), b"NAME")
    # A refusal is a decision, each with an id of its own.
    body = re.sub(rb"dec_[0-9a-z]{26}", b"DECISION", body)
    return response.status, headers, body


def names(server, path, token=OWN):
    """Of the agents that a list or a search answers with."""
    r = server.call("GET", path, token=token)
    if r.status != 200:
        raise AssertionError(f"{path}: {r}")
    said = r.json()
    return [a["name"] for a in said.get("items", said.get("agents"))]


def people(server):
    """Everybody the visibility of an agent of anna's depends on."""
    return {
        "admin": server.token,
        "creator": server.user("anna", org="acme"),
        "same org": server.user("ben", org="acme"),
        "other org": server.user("otto", org="other"),
        "no org": server.user("nora"),
        "granted": server.user("gus", org="other"),
        "org granted": server.user("pat", org="partner"),
        "expired": server.user("ed", org="other"),
        "her agent": server.user("clerk", "agent", owner="anna"),
        "another's agent": server.user("spy", "agent", owner="otto"),
        "missing": None,
    }


SEES = {
    "public": {"admin", "creator", "same org", "other org", "no org",
               "granted", "org granted", "expired", "her agent",
               "another's agent"},
    "shared": {"admin", "creator", "same org", "granted", "org granted",
               "her agent"},
    "private": {"admin", "creator", "her agent"},
}
