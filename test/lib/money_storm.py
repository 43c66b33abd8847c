"""Senders who pay, for a Storm, and books that are kept beside the server's.

    with Phoenix(*settings(scale=1), agents=agents(port)) as phoenix:
        storm = MoneyStorm(phoenix, n_tasks=2000, scale=1, kill_every=300)
        storm.run()
        ...
    print(book_faults(read_books(phoenix.data), storm))

Two clients share a user, and some users have less than they want to spend: so
clients race for the last unit. Some messages go on with a task that is over,
some are cancelled, some expire, some go where no one is. What is refused for
want of money is an answer like any other, and not tried again.

The books are read from the database itself, once no one writes in it, and are
judged by what became of each turn and by the price list, nothing else.
"""
import collections
import json
import os
import queue
import sqlite3
import threading

from signalbox import DEADLINE_S
from storm import GONE, Sender, Storm

PRICES = {"free": 0, "penny": 1, "cheap": 70, "dear": 10000, "slow": 333,
          "never": 500, "nowhere": 900}
# The last two want the dearest only: one in a conversation, one in many.
USERS = ["rich-1", "rich-2", "rich-3", "poor-1", "poor-2", "poor-3", "talker",
         "spender"]
# No one is tried for long; anyone who is away fails.
SETTINGS = ("log.level=error", "deliver.maxAttempts=3", "deliver.retryMs=10",
            "deliver.retryMaxMs=20", "deliver.breakerFailures=1000",
            "deliver.breakerPauseMs=100", "outgoing.allow=[\"127.0.0.0/8\"]")
COMPLETED, OVER = 9, (4, 9, 10, 11, 12)  # enum task_status
RESERVE, CAPTURE, RELEASE = 3, 4, 5      # enum entry_kind


def limits(scale):
    """The budgets of a storm that is so many times the usual one."""
    return {"day": int(1000000 * scale), "conversation": int(150000 * scale),
            "root": 20000}


def settings(scale):
    names = {"day": "perDay", "conversation": "perConversation",
             "root": "perRoot"}
    rows = [*SETTINGS, *(f"ledger.{names[of]}={n}"
                         for of, n in limits(scale).items())]
    return [word for row in rows for word in ("--set", row)]


def agents(closed_port):
    """One for each price; no one listens at closed_port."""
    urls = {"slow": "echo:20", "never": "echo:600000",
            "nowhere": f"http://127.0.0.1:{closed_port}/"}
    return [{"id": name, "url": urls.get(name, "echo:"),
             "pricing": {"amountMicros": price}}
            for name, price in PRICES.items()]


class MoneySender(Sender):
    """One client: a conversation of its own, and half of a user's money."""

    def __init__(self, storm, number, n):
        super().__init__(storm, number, n)
        self.user = USERS[number % len(USERS)]
        self.depth = 1 + number % 4
        self.tasks = []
        self.wishes = {}
        self.refused = collections.Counter()

    def wish(self, i):
        """What message i is: always the same, however often it is sent."""
        if i not in self.wishes:
            dice = self.storm.random
            agent = ("dear" if self.user in USERS[-2:] else
                     dice.choice(list(PRICES)))
            earlier = dice.choice(self.tasks) if self.tasks else None
            self.wishes[i] = (agent, earlier if dice.random() < 0.2 else None)
        return self.wishes[i]

    def body(self, i):
        agent, earlier = self.wish(i)
        body = super().body(i)
        body["executor"] = {"name": agent}
        if agent == "never" or earlier:  # which may be such a one
            body["timeout_ms"] = 1500
        if earlier:
            body["task_id"] = earlier
            del body["executor"], body["conversation_id"]
        else:
            # Behind those that never end no one is to wait.
            n = 1 if self.user == "talker" else 7
            body["conversation_id"] = f"{self.name}-{agent}-{i % n}"
        return body

    def message(self, i):
        return self.storm.server.request("POST", "/api/messages", self.body(i),
                                         token=self.storm.tokens[self.user])


class MoneyStorm(Storm):
    def __init__(self, phoenix, n_tasks, n_clients=16, scale=1, **options):
        super().__init__(phoenix, list(PRICES), n_tasks, n_senders=n_clients,
                         kinds=(MoneySender,), **options)
        self.tokens = {name: self.server.user(name) for name in USERS}
        self.limits = limits(scale)
        self.funds = {name: int(30000 * scale) if name.startswith("poor") else
                      10 ** 12 for name in USERS}
        self.to_cancel = queue.Queue()
        self.n_cancelled = 0
        for name, amount in self.funds.items():
            top_up(self.server, name, amount)
            top_up(self.server, name, amount)  # said twice, done once

    @property
    def refused(self):
        return sum((s.refused for s in self.senders), collections.Counter())

    def heard(self, sender, status, body):
        if sender in self.unwell:
            return
        if status in (402, 409, 429):
            sender.refused[why_refused(json.loads(body)["error"])] += 1
            sender.acked += 1
            self.until_kill -= 1
            return
        super().heard(sender, status, body)
        if status in (200, 202):
            sender.tasks = [*sender.tasks[-20:], body["task_id"]]
            if sender.wish(sender.acked - 1)[0] == "never" and \
                    self.random.random() < 0.5:
                self.to_cancel.put((sender.user, body["task_id"]))

    def run(self):
        """With someone beside who cancels, whatever server is there."""
        canceller = threading.Thread(target=self.cancel_all)
        canceller.start()
        try:
            super().run()
        finally:
            self.to_cancel.put(None)
            canceller.join(DEADLINE_S)

    def cancel_all(self):
        while (one := self.to_cancel.get()) is not None:
            user, task = one
            try:
                answer = self.server.call("POST", f"/api/tasks/{task}/cancel",
                                          {}, token=self.tokens[user])
                self.n_cancelled += answer.status == 200
            except (*GONE, OSError):
                pass  # then it expires


def why_refused(error):
    """The code; of a budget, which one."""
    if error["code"] != "budget_exceeded":
        return error["code"]
    return next(of for of, words in (("day", "for the day"),
                                     ("conversation", "of the conversation"),
                                     ("root", "of all that task_"))
                if words in error["message"])


def top_up(server, user, amount):
    answer = server.call("POST", "/api/ledger/topup",
                         {"user": user, "amount_micros": amount,
                          "idempotency_key": f"first-{user}"})
    if answer.status not in (200, 201):
        raise AssertionError(f"no money for {user}: {answer}")


Entry = collections.namedtuple("Entry", "posting kind account amount task turn")
Turn = collections.namedtuple("Turn", "task turn status agent user price")
Books = collections.namedtuple("Books", "accounts entries reservations turns "
                                        "spent ceilings")


def read_books(data):
    """Of a server that has been stopped."""
    path = os.path.join(data, "signalbox.db")
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    accounts = dict(db.execute("SELECT name, balance FROM account"))
    entries = [Entry(*r) for r in db.execute(
        "SELECT posting, kind, account, amount, task_id, turn FROM entry "
        "ORDER BY seq")]
    reservations = {(t, n): (state, price) for t, n, state, price in db.execute(
        "SELECT task_id, turn, state, price FROM reservation")}
    turns = [Turn(*r) for r in db.execute(
        "SELECT id, turn, status, agent, root_user, price_micros FROM task "
        "UNION ALL SELECT task.id, turn.number, turn.status, task.agent, "
        "task.root_user, turn.price_micros FROM turn "
        "JOIN task ON task.seq = turn.task_seq")]
    spent = dict(db.execute('SELECT "of", amount FROM spent'))
    # The ceiling of a turn before a task's last is not kept with it: what the
    # tree has used then is the price of that turn, as no one delegates here.
    ceilings = {id: PRICES[agent] + 100000 for id, agent in db.execute(
        "SELECT message_id, agent FROM task UNION ALL SELECT turn.message_id, "
        "task.agent FROM turn JOIN task ON task.seq = turn.task_seq")}
    db.close()
    return Books(accounts, entries, reservations, turns, spent, ceilings)


def balance_faults(books):
    """Sums, and what must never be below zero."""
    sums, postings = collections.Counter(), collections.Counter()
    for e in books.entries:
        sums[e.account] += e.amount
        postings[e.posting] += e.amount
        if sums[e.account] < 0 and e.account != "outside":
            yield f"{e.account} below zero: {sums[e.account]}"
    if sum(sums.values()) != 0:
        yield f"all entries come to {sum(sums.values())}"
    for posting, n in postings.items():
        if n:
            yield f"{posting} comes to {n}"
    for account in {*sums, *books.accounts}:
        if sums[account] != books.accounts.get(account, 0):
            yield (f"{account} has {books.accounts.get(account)}, its entries "
                   f"come to {sums[account]}")
    for account, n in books.accounts.items():
        if n < 0 and account != "outside":
            yield f"{account} below zero: {n}"


def turn_faults(books):
    """Every completed turn charged once, and nothing else."""
    moved = collections.defaultdict(list)
    for e in books.entries:
        if e.task:
            moved[e.task, e.turn].append((e.kind, e.account, e.amount))
    for t in books.turns:
        price = PRICES[t.agent]
        if t.status not in OVER:
            yield f"{t} is not over"
        if (t.price or 0) != price:
            yield f"{t} has another price"
        want = []
        if price:
            user = f"user:{t.user}"
            want = [(RESERVE, user, -price), (RESERVE, "reserved", price)]
            want += ([(CAPTURE, "reserved", -price),
                      (CAPTURE, "platform", price)]
                     if t.status == COMPLETED else
                     [(RELEASE, "reserved", -price), (RELEASE, user, price)])
            state = 2 if t.status == COMPLETED else 3
            if books.reservations.get((t.task, t.turn)) != (state, price):
                yield f"{t}: {books.reservations.get((t.task, t.turn))}"
        got = moved.pop((t.task, t.turn), [])
        if sorted(got) != sorted(want):
            yield f"{t} was charged {got}, not {want}"
    for turn in moved:
        yield f"{turn} was charged, and is no turn"


def user_faults(books, funds, most):
    """Each has what was brought less what was completed for them; and no
    budget was more than full."""
    paid = collections.Counter()
    for t in books.turns:
        paid[t.user] += PRICES[t.agent] * (t.status == COMPLETED)
    for user, amount in funds.items():
        if books.accounts.get(f"user:{user}") != amount - paid[user]:
            yield (f"{user} has {books.accounts.get(f'user:{user}')}, not "
                   f"{amount} - {paid[user]}")
        days = [n for of, n in books.spent.items()
                if of.startswith(f"day:{user}:")]
        if sum(days) != paid[user]:
            yield f"{user} has spent {paid[user]}, the budgets say {days}"
    for of, n in books.spent.items():
        kind, _, name = of.partition(":")
        limit = books.ceilings[name] if kind == "tree" else most.get(kind, n)
        if not 0 <= n <= limit:
            yield f"{of} is {n} of {limit}"
    if books.accounts.get("platform", 0) != sum(paid.values()):
        yield "the platform has something else"
    if books.accounts.get("reserved", 0):
        yield f"reserved: {books.accounts['reserved']}"


def book_faults(books, storm):
    """Words for everything that is wrong once all is over."""
    return [*balance_faults(books), *turn_faults(books),
            *user_faults(books, storm.funds, storm.limits)]
