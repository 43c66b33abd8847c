"""No user learns what users of another org do. Two servers see the same user do
the same; between that, users of another org, and one without an org, do other
things on each: other texts, other types of query, other corrections, other
private agents. Then the user makes every call that a user may make, and each
answer must be the same on both, byte for byte, but for ids and times.

One thing may differ, and is held equal here: the overall performance of public
agents. The others give the same verdicts about the same agents on both servers,
each about another text.

STRESS=full makes 500 comparisons and more."""
import json
import os
import random
import re
import unittest

from cards import card, skill
from hub_peer import Hub, Refused
from planted import fails_with, needs_planted, planted
from signalbox import Server

IS_FULL = os.environ.get("STRESS") == "full"
N_ROUNDS = 6 if IS_FULL else 1
SOURCE = os.environ["SIGNALBOX_SOURCE"]
CALLS_C = os.path.join(SOURCE, "src", "api", "calls.c")

AGENTS = [
    {"id": "engineer", "url": "echo:", "visibility": "public",
     "description": "Builds and repairs software, finds bugs in programs",
     "skills": [skill("debug", tags=["code"])]},
    {"id": "writer", "url": "echo:", "visibility": "public",
     "description": "Writes articles, letters and marketing text"},
    {"id": "cook", "url": "echo:", "visibility": "public",
     "description": "Plans meals and cooks soup, bread and cakes"},
    {"id": "lawyer", "url": "echo:", "visibility": "public",
     "description": "Reviews contracts, mergers and legal disputes"},
    {"id": "echo", "url": "echo:", "visibility": "public"},
]
# The job judges at once and finds nothing good or bad by itself, so that only
# what people say moves an agent's performance. A recent success counts by the
# millisecond: its weight is zero.
CONFIG = {"learning": {"followUpMs": 0, "everyMs": 0, "shortChars": 0,
                       "substantialChars": 1000000},
          "registry": {"review": True},
          "rate": {"perUser": 100000, "perAddress": 100000},
          "routing": {"threshold": 0, "weights": {
              "semantic": 0.65, "performance": 0.2, "keyword": 0.15,
              "recency": 0}}}
AREAS = {
    "engineer": "find the bug in the program that repairs software for {}",
    "writer": "write a letter and an article, a marketing text about {}",
    "cook": "cook a soup and plan meals with bread and cakes for {}",
    "lawyer": "review the contract and the legal dispute about {}",
}
# What the others talk about, on the one server and on the other.
SECRETS = [
    ["the Henderson merger", "project Bluebird", "our layoffs in May",
     "the takeover of Initech"],
    ["a bicycle tour", "the summer party", "new office plants",
     "the coffee machine"],
]
SIGNS = ["right", "wrong"]


class World:
    """One server, and everybody on it. `side` says what the others do."""

    def __init__(self, side, seed):
        self.side = side
        self.same = random.Random(seed)  # what is the same on both
        self.own = random.Random(f"{seed} {side}")
        self.server = Server(agents=AGENTS, config=CONFIG)
        self.labels = {}
        self.tokens = {}
        self.theirs = {}  # ids that are not for the user
        self.mine = {}

    def __enter__(self):
        self.server.__enter__()
        self.server.ready()
        for name, org in (("olga", "north"), ("oscar", "north"),
                          ("anna", "acme"), ("ben", "acme"), ("nora", None)):
            self.tokens[name] = self.server.user(
                name, **({"org": org} if org else {}))
        return self

    def __exit__(self, *args):
        return self.server.__exit__(*args)

    def ask(self, who, method, path, body=None, *headers):
        return self.server.call(method, path, body, *headers,
                                token=self.tokens.get(who, who))

    def good(self, who, method, path, body=None):
        r = self.ask(who, method, path, body)
        if r.status not in (200, 201, 202, 204):
            raise AssertionError(f"{who} {method} {path}: {r}")
        return r.json() if r.body else None

    def say(self, who, text, **more):
        return self.good(who, "POST", "/api/messages", {"text": text, **more})

    # The others.

    def meant(self, who, agent):
        """A text of its own that the agent gets; the decision."""
        decision = self.say(who, AREAS[agent].format(
            self.own.choice(SECRETS[self.side])))["decision"]
        if (decision["agent"], decision["layer"]) != (agent, "semantic"):
            raise AssertionError(f"{agent} did not get it: {decision}")
        return decision

    def verdicts(self, n):
        """The same about each agent on both servers, of other texts. They are
        said when all is decided, or the first would change the next."""
        made = []
        for _ in range(n):
            who = self.same.choice(["anna", "ben", "nora"])
            agent = self.same.choice(sorted(AREAS))
            made.append((who, agent, self.meant(who, agent)["id"]))
        for who, agent, decision in made:
            path = f"/api/decisions/{decision}/"
            other = self.same.choice(sorted(set(AREAS) - {agent}))
            sign = self.same.choice([*SIGNS, "override"])
            if sign == "override":
                self.good(who, "POST", path + "override", {"agent": other})
            else:
                self.good(who, "POST", path + "feedback", {"verdict": sign})

    def registers(self, who, secret):
        name = f"{who}-{self.own.randrange(10 ** 9)}"
        self.good(who, "POST", "/api/agents", card(
            name, description=f"Knows all about {secret}",
            # A public one waits for an admin: registry.review.
            visibility=self.own.choice(["private", "shared", "public"]),
            skills=[skill("s", description=secret,
                          examples=[f"tell me about {secret}"])],
            routing={"keywords": secret.split()[-1:]}))
        self.server.ready()
        for i in range(self.own.randrange(4)):
            got = self.say(who, secret, conversation_id=f"{name}-{i}")
            if got["agent"] in AREAS:
                raise AssertionError(f"{secret} went to a public one: {got}")

    def talk(self, n):
        """Public agents get as many messages on both, of other texts."""
        for _ in range(n):
            self.meant(self.same.choice(["anna", "ben", "nora"]),
                       self.same.choice(sorted(AREAS)))

    def doings(self, n):
        """Private agents, searches and routes are others."""
        for _ in range(self.own.randrange(n)):
            who = self.own.choice(["anna", "ben", "nora"])
            secret = self.own.choice(SECRETS[self.side])
            what = self.own.randrange(4)
            if what == 0:
                self.registers(who, secret)
            elif what == 1:
                self.good(who, "GET", "/api/agents/search?q="
                          + secret.replace(" ", "+"))
            elif what == 2:
                agent = self.own.choice(sorted(AREAS))
                self.good(who, "POST", f"/api/agents/{agent}/report",
                          {"reason": f"says nothing of {secret}"})
            else:
                self.good(who, "POST", "/api/route", {"text": secret})
        # One agent, task and conversation are there on one server alone.
        if self.side == 0:
            self.good("anna", "POST", "/api/agents", card(
                "acme-secret", description="Knows the Henderson merger",
                visibility="shared", skills=[skill("merger")]))
            answer = self.say("anna", "the merger with Henderson",
                              executor={"name": "acme-secret"},
                              conversation_id="acme-talk")
            self.theirs = {"task": answer["task_id"],
                           "decision": answer["decision"]["id"]}
        else:
            self.theirs = {"task": "task_01jabcdefghjkmnpqrstvwxyz0",
                           "decision": "dec_01jabcdefghjkmnpqrstvwxyz0"}

    # The user, the same on both servers.

    def life(self):
        self.good("olga", "POST", "/api/agents", card(
            "north-helper", description="Helps with the sledges of the north",
            visibility="shared", skills=[skill("sledges", tags=["code"])]))
        self.server.ready()  # texts are read in the background
        for agent in sorted(AREAS):
            answer = self.say("olga", AREAS[agent].format("the sledge"),
                              conversation_id=f"olga-{agent}")
            self.mine[agent] = answer
        path = "/api/decisions/{}/"
        said = self.mine["engineer"]["decision"]["id"]
        self.good("olga", "POST", path.format(said) + "feedback",
                  {"verdict": "right"})
        said = self.mine["writer"]["decision"]["id"]
        self.good("olga", "POST", path.format(said) + "override",
                  {"agent": "lawyer"})
        self.say("oscar", AREAS["cook"].format("a polar bear"))

    def life_goes_on(self):
        """The user asks again, and says what was right."""
        for agent in sorted(AREAS):
            answer = self.say("olga", AREAS[agent].format("a second sledge"))
            self.good("olga", "POST",
                      f"/api/decisions/{answer['decision']['id']}/feedback",
                      {"verdict": "right"})

    def judge(self):
        self.good(self.server.token, "POST", "/api/learning/run")

    # What an answer says.

    def label(self, kind, value):
        known = self.labels.setdefault(kind, {})
        return f"<{kind} {known.setdefault(value, len(known))}>"

    def plain(self, text):
        """Without ids and times."""
        swaps = [
            (r"\b[a-z]{1,8}_[0-9a-z]{26}\b", "id"),
            (r"(?<=\"type\":)\d{12,13}\b", "type"),
            (r"(?<=\"seq\":)\d+", "seq"), (r"(?m)(?<=^id: )\d+", "seq"),
            (r"(?<=\"next_after\":)\d+", "seq"),
            (r"(?<=\"revision\":)\d+", "revision"),
            (r"^\"\d+\"$", "revision"),  # an ETag
            (r"(?<=\"next_cursor\":)\"[^\"]+\"", "cursor"),
        ]
        for pattern, kind in swaps:
            text = re.sub(pattern, lambda m, kind=kind:
                          self.label(kind, m.group(0)), text)
        text = re.sub(r"\b1[6-9]\d{11}\b", "<ms>", text)
        text = re.sub(r"\b20\d\d-\d\d-\d\dT[0-9:.]+Z", "<time>", text)
        text = re.sub(r"\"(decide_us|chance|recency|\w+_ms)\":[0-9.e+-]+",
                      r'"\1":<time>', text)
        # By the minute: how many there are of an hour.
        text = re.sub(r"\[((?:\d+,){59}\d+)\]", lambda m: "<sum %d>" % sum(
            map(int, m.group(1).split(","))), text)
        text = re.sub(r"\[((?:null,|\d+,){59}(?:null|\d+))\]", "<time>", text)
        return text.replace(f":{self.server.address[1]}", ":<port>")

    def told(self, response):
        headers = {k: self.plain(v) for k, v in response.headers.items()
                   if k not in ("date", "content-length")}
        body = response.body.decode("utf-8", "replace")
        if body.startswith('{"since_ms"'):
            # Rows of a type are in the order of its number, which is an id.
            said = json.loads(body)
            said["items"].sort(key=lambda row: json.dumps(
                {**row, "type": None, "latency_ms": None}))
            body = json.dumps(said, separators=(",", ":"))
        return response.status, headers, self.plain(body)


TEXTS = [AREAS[a].format("a sledge and a dog") for a in sorted(AREAS)] + [
    "the Henderson merger", "project Bluebird", "a bicycle tour", "hello",
    "sledges"]
QUERIES = ["software", "Henderson+merger", "bicycle", "sledges", "cook+soup"]
TABLES = ["summary", "agents", "types", "gaps", "signals", "keywords", "hours",
          "days", "thresholds", "alphas", "changes?at=0.4"]


def probes():
    """(row of the table, the call) for each that the user makes. In the paths
    and bodies {task}, {decision}, {conversation} are theirs, {my_…} own."""
    for path in ("/healthz", "/readyz", "/api/me", "/api/holds",
                 "/api/escalations", "/api/grants", "/api/tools", "/api/gate",
                 "/api/gate/graph", "/api/ledger/balance",
                 "/api/ledger/statement", "/api/tasks", "/api/trees",
                 "/api/tokens", "/api/fleet", "/api/fleet?names=echo,engineer",
                 "/api/feed?last=500", "/api/commands",
                 "/api/commands?format=telegram", "/api/decisions",
                 "/api/decisions?full=true"):
        yield "GET " + path.split("?")[0], "GET", path, None
    for path in ("/api/agents", "/api/agents?brief=true", "/api/agents?q=secret",
                 "/api/agents?org=acme", "/api/agents?creator=anna",
                 "/api/agents?limit=2"):
        yield "GET /api/agents", "GET", path, None
    for q in QUERIES:
        for mode in ("", "&mode=bm25", "&mode=vector&explain=true"):
            yield ("GET /api/agents/search", "GET",
                   f"/api/agents/search?q={q}{mode}", None)
        yield ("POST /api/agents/search", "POST", "/api/agents/search",
               {"query": q.replace("+", " "), "explain": True})
    for name in ("engineer", "cook", "north-helper", "acme-secret",
                 "no-such-agent"):
        yield "GET /api/agents/:name", "GET", f"/api/agents/{name}", None
        yield ("GET /api/agents/:name/figures", "GET",
               f"/api/agents/{name}/figures", None)
    for method, more in (("DELETE", ""), ("PATCH", ""), ("POST", "/wake"),
                         ("POST", "/restart"), ("POST", "/pause"),
                         ("POST", "/resume")):
        row = f"{method} /api/agents/:name{more}"
        yield (row, method, f"/api/agents/acme-secret{more}",
               {"title": "x"} if method == "PATCH" else None)
    for table in TABLES:
        yield ("GET /api/analytics/:what", "GET", f"/api/analytics/{table}",
               None)
    yield ("GET /api/analytics/:what", "GET",
           "/api/analytics/signals?format=csv", None)
    for task in ("{task}", "{my_task}"):
        for more in ("", "/events", "/tree"):
            yield (f"GET /api/tasks/:id{more}", "GET", f"/api/tasks/{task}{more}",
                   None)
    yield ("POST /api/tasks/:id/cancel", "POST", "/api/tasks/{task}/cancel",
           None)
    yield ("POST /api/tasks/:id/input", "POST", "/api/tasks/{task}/input",
           {"text": "x"})
    for id in ("{decision}", "{my_decision}"):
        yield "GET /api/decisions/:id", "GET", f"/api/decisions/{id}", None
    yield ("POST /api/decisions/:id/override", "POST",
           "/api/decisions/{decision}/override", {"agent": "cook"})
    yield ("POST /api/decisions/:id/feedback", "POST",
           "/api/decisions/{decision}/feedback", {"verdict": "right"})
    for id in ("acme-talk", "olga-cook"):
        yield ("GET /api/conversations/:id", "GET", f"/api/conversations/{id}",
               None)
    for verb in ("approve", "reject", "redirect"):
        yield (f"POST /api/escalations/:id/{verb}", "POST",
               f"/api/escalations/esc_01jabcdefghjkmnpqrstvwxyz0/{verb}",
               {"agent": "cook"} if verb == "redirect" else {})
    yield ("GET /api/escalations/:id", "GET",
           "/api/escalations/esc_01jabcdefghjkmnpqrstvwxyz0", None)
    yield ("GET /api/delegations/:key", "GET", "/api/delegations/acme-talk",
           None)
    yield ("POST /api/delegate", "POST", "/api/delegate",
           {"agent": "acme-secret", "task": "x"})
    yield ("POST /api/grants", "POST", "/api/grants",
           {"agent": "acme-secret", "grantee": "user:olga"})
    yield ("DELETE /api/grants/:id", "DELETE",
           "/api/grants/grant_01jabcdefghjkmnpqrstvwxyz0", None)
    yield ("DELETE /api/tokens/:id", "DELETE",
           "/api/tokens/tok_01jabcdefghjkmnpqrstvwxyz0", None)
    for text in TEXTS:
        yield "POST /api/route", "POST", "/api/route", {"text": text}
    yield ("POST /api/route", "POST", "/api/route",
           {"text": "x", "executor": {"name": "acme-secret"}})
    envelope = {"id": "e-1", "from": "north-helper", "to": "acme-secret",
                "type": "SIGNAL", "payload": {}}
    yield "POST /api/gate", "POST", "/api/gate", envelope
    yield "POST /api/envelopes", "POST", "/api/envelopes", envelope
    yield ("POST /api/agents", "POST", "/api/agents",
           card("north-second", description="Knows sledges and mergers"))
    yield ("PUT /api/agents/:name", "PUT", "/api/agents/north-second",
           card("north-second", description="Knows sledges and bread"))
    for text in TEXTS:
        yield "POST /api/messages", "POST", "/api/messages", {"text": text}
    yield ("POST /api/messages", "POST", "/api/messages",
           {"text": "x", "executor": {"name": "acme-secret"}})
    # What only admins may.
    for path in ("/api/learning", "/api/learning/export", "/api/config",
                 "/api/users", "/api/gate/audit", "/api/ledger/accounts"):
        yield "GET " + path, "GET", path, None


HUB = [
    ("agent.search", {"query": "the Henderson merger"}),
    ("agent.search", {"query": "sledges", "explain": True}),
    ("message.send", {"text": "review the contract of the sledge"}),
    ("message.send", {"text": "x", "executor": {"name": "acme-secret"}}),
    ("task.get", {"task_id": "{task}"}), ("task.get", {"task_id": "{my_task}"}),
    ("task.cancel", {"task_id": "{task}"}),
    ("task.listen", {"task_id": "{task}"}),
    ("task.result", {"task_id": "{task}", "status": "completed", "text": "x"}),
    ("task.chunk", {"task_id": "{task}", "text": "x"}),
    ("delegation.get", {"key": "acme-talk"}),
    ("delegation.ack", {"key": "acme-talk"}),
    ("agent.update", {"card": {"title": "x"}}),
    ("agent.send_task", {"to": "acme-secret", "message": "x"}),
    ("agent.delegate", {"agent": "acme-secret", "task": "x"}),
    ("delegate_to_agent", {"agent": "acme-secret", "task": "x"}),
    ("agent.state", {"state": "ready"}), ("ping", {}),
]
# agent.register by itself makes the connection an agent's.
HUB_AGENT = "north-line"

# Why the user does not make these calls here.
LEFT_OUT = {
    "GET /metrics": "totals of the whole server; metrics.public closes it",
    "GET /hub": "below, by what is said on it",
    "POST /api/tokens": "the answer is a new secret",
    "OPTIONS": "says nothing of anybody",
}


def fill(value, world):
    told = {"{task}": world.theirs["task"],
            "{decision}": world.theirs["decision"],
            "{my_task}": world.mine["cook"]["task_id"],
            "{my_decision}": world.mine["cook"]["decision"]["id"]}
    text = json.dumps(value)
    for name, known in told.items():
        text = text.replace(name, known)
    return json.loads(text)


def compact(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def ask_hub(world):
    """What each call on the hub answers, of a user and of an agent."""
    for name in (None, HUB_AGENT):
        with Hub(world.server, world.tokens["olga"]) as hub:
            if name:
                yield "agent.register", world.plain(compact(
                    hub.register(name)))
                world.server.ready()
            for method, params in HUB:
                try:
                    said = hub.call(method, **fill(params, world))
                except Refused as refused:
                    said = refused.error
                yield (f"{method} of {name or 'a user'}",
                       world.plain(compact(said)))


def further():
    """The calls of the table that probes() does not make: with the name of an
    agent that is there on one server alone, or no id, and nothing in them."""
    made = {row for row, *_ in probes()}
    for row, scope in rows():
        method, path = row.split()
        if row in made or row in LEFT_OUT or not path.startswith("/api") \
                or scope in ("SCOPE_ADMIN", "SCOPE_LEDGER"):
            continue
        path = path.replace(":name", "acme-secret")
        path = re.sub(r":\w+", "x_01jabcdefghjkmnpqrstvwxyz0", path)
        yield row, method, path, None if method == "GET" else {}


def ask_all(world):
    for row, method, path, body in [*probes(), *further()]:
        path, body = fill([path, body], world)
        response = world.ask("olga", method, path, body)
        if row == "PUT /api/agents/:name":
            world.server.ready()
        yield f"{path if '_01' not in path else row}", world.told(response)
    yield from ask_hub(world)


def differences(seed):
    """How many comparisons were made, and those that differ."""
    with World(0, seed) as one, World(1, seed) as other:
        for world in (one, other):
            world.life()
            world.talk(25)
            world.verdicts(12)
            world.doings(25)
            world.judge()
            world.life_goes_on()
            world.judge()
        pairs = list(zip(ask_all(one), ask_all(other), strict=True))
    return len(pairs), [(a, b) for a, b in pairs if a[1] != b[1]]


def one_part(one, other):
    """Where it begins to differ."""
    one, other = str(one), str(other)
    at = len(os.path.commonprefix([one, other]))
    return "…" + one[max(0, at - 120):at + 80]


def rows():
    """The calls that there are, by the tables of the server."""
    with open(CALLS_C, encoding="utf-8") as f:
        text = f.read()
    for m in re.finditer(r'ROW\("(\w+)",\s*"([^"]+)",[^()]*?'
                         r'(PUBLIC|ANY_TOKEN|SCOPE_\w+)', text):
        yield f"{m.group(1)} {m.group(2)}", m.group(3)


def methods():
    with open(CALLS_C, encoding="utf-8") as f:
        return re.findall(r'^    \{METHOD\("([a-z_.]+)"', f.read(), re.M)


class Apart(unittest.TestCase):
    def test_every_call_is_made(self):
        made = {row for row, *_ in [*probes(), *further()]}
        self.assertGreater(len(made), 60)
        for row, scope in rows():
            if scope in ("SCOPE_ADMIN", "SCOPE_LEDGER") or row in LEFT_OUT:
                continue
            if row.startswith("GET /") and not row.startswith("GET /api"):
                continue  # pages, the same for everybody
            self.assertIn(row, made)
        self.assertEqual(set(methods()) - {m for m, _ in HUB},
                         {"agent.register"})

    def test_what_others_do_changes_no_answer(self, first=0, n=N_ROUNDS):
        made, found = 0, []
        for seed in range(first, first + n):
            n_made, differ = differences(seed)
            made += n_made
            found += differ
        print(f"{made} comparisons, {len(found)} differ")
        if IS_FULL and n == N_ROUNDS:
            self.assertGreaterEqual(made, 500)
        for (call, one), (_, other) in found[:12]:
            print(f"{call}\n    {one_part(one, other)}\n"
                  f"    {one_part(other, one)}")
        self.assertEqual([a[0] for a, _ in found], [])


NO_TASK = "task_01jabcdefghjkmnpqrstvwxyz0"


class Results(unittest.TestCase):
    def test_of_anothers_task_no_more_is_said_than_of_none(self):
        with Server() as server:
            anna = server.user("anna", org="acme")
            otto = server.user("otto", org="other")
            with Hub(server, anna) as user, Hub(server, anna) as worker, \
                    Hub(server, otto) as spy:
                worker.register("worker")
                spy.register("spy")
                sent = user.start("message.send", text="x",
                                  executor={"name": "worker"})
                asked = worker.next(lambda m: m.get("method")
                                    == "task.execute")
                task = asked["params"]["task_id"]
                self.same(spy, task)
                worker.send({"jsonrpc": "2.0", "id": asked["id"],
                             "result": {"status": "working"}})
                worker.call("task.chunk", task_id=task, text="a")
                self.same(spy, task)
                worker.call("task.result", task_id=task, status="completed")
                user.answer(sent)
                self.same(spy, task)

    def same(self, spy, task):
        for method in ("task.result", "task.chunk", "task.get", "task.cancel",
                       "task.listen"):
            said = []
            for id in (task, NO_TASK):
                with self.assertRaises(Refused) as refused:
                    spy.call(method, task_id=id, text="mine")
                said.append(compact(refused.exception.error).replace(id, "ID"))
            self.assertEqual(*said)


class Control(unittest.TestCase):
    @needs_planted
    def test_a_server_that_knows_anothers_task_is_found(self):
        said = fails_with(self, "deliver.tells_of_others", Results()
                          .test_of_anothers_task_no_more_is_said_than_of_none)
        self.assertIn("not one that you were given", said)

    @needs_planted
    def test_what_all_learn_together_is_found(self):
        with planted("lessons.one_scope"):
            _, found = differences(0)
        self.assertTrue([a for a, _ in found if "/api/route" in a[0]], found)

