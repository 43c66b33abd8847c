"""What an answer says about money: the price of the turn, what its tree has
cost, and what its conversation has cost; to the payer and admins alone."""
import tempfile
import unittest

from cards import register
from client import Client
from hub_peer import Hub
from planted import fails_with, needs_planted
from signalbox import Server

PRICE = 20_000


def stage(server):
    """anna, who pays, and zoe, who has an agent with a price."""
    anna, zoe = server.user("anna"), server.user("zoe")
    server.call("POST", "/api/ledger/topup",
                {"user": "anna", "amount_micros": 100 * PRICE})
    register(server, "priced", token=zoe, visibility="public",
             pricing={"amount_micros": PRICE})
    register(server, "free", token=zoe, visibility="public")
    return anna, zoe


def cost(answer):
    found = answer["cost"]
    return (found["task_micros"], found["tree_micros"],
            found["conversation_micros"])


def take(hub):
    """A task that the agent works on."""
    message = hub.next(lambda m: m.get("method") == "task.execute")
    hub.send({"jsonrpc": "2.0", "id": message["id"],
              "result": {"status": "working"}})
    return message["params"]


class Cost(unittest.TestCase):
    def test_the_totals_of_a_conversation_and_a_tree(self):
        with Server() as server:
            anna, _ = stage(server)
            send = lambda to, **more: server.send(
                "x", to=to, token=anna, **more).json()
            self.assertNotIn("cost", send("free"))
            first = send("priced", conversation_id="c")
            self.assertEqual(cost(first), (PRICE, PRICE, PRICE))
            # A further turn of the task is of its tree.
            again = send("priced", task_id=first["task_id"])
            self.assertEqual(cost(again), (PRICE, 2 * PRICE, 2 * PRICE))
            self.assertEqual(cost(send("priced", conversation_id="c")),
                             (PRICE, PRICE, 3 * PRICE))
            self.assertEqual(cost(send("free", conversation_id="c")),
                             (0, 0, 3 * PRICE))
            self.assertNotIn("cost", send("free", conversation_id="d"))
            # Not answered yet, and cancelled.
            register(server, "endless", visibility="public", url="echo:60000",
                     pricing={"amount_micros": PRICE})
            more = {"conversation_id": "c", "idempotency_key": "k"}
            r = send("endless", wait_ms=0, **more)
            self.assertEqual(cost(r), (PRICE, PRICE, 4 * PRICE))
            server.call("POST", f"/api/tasks/{r['task_id']}/cancel",
                        token=anna)
            self.assertEqual(cost(send("endless", **more)),
                             (0, 0, 3 * PRICE))

    def test_a_stream_and_the_hub_say_it_too(self):
        with Server() as server:
            anna, zoe = stage(server)
            body = {"text": "x", "executor": {"name": "priced"},
                    "conversation_id": "c"}
            with server.events("/api/messages", token=anna, method="POST",
                               body=body) as events:
                said = [(event, data) for _, event, data in events]
            self.assertEqual([event for event, _ in said][-2:],
                             ["cost", "result"])
            self.assertEqual(cost(said[-2][1]), (PRICE, PRICE, PRICE))
            self.assertNotIn("cost", said[-1][1])
            task = said[-1][1]["task_id"]
            with server.events(f"/api/tasks/{task}/events",
                               token=server.token) as events:
                self.assertEqual([event for _, event, _ in events][-2:],
                                 ["cost", "result"])
            with Hub(server, anna) as hub:
                told = hub.call("message.send", text="x",
                                conversation_id="c",
                                executor={"name": "priced"})
                self.assertEqual(cost(told), (PRICE, PRICE, 2 * PRICE))

    def test_what_is_delegated_counts_at_any_depth_and_for_the_payer_alone(
            self):
        with Server() as server:
            anna, zoe = stage(server)
            with Hub(server, zoe) as boss, Hub(server, zoe) as middle:
                boss.register("boss", visibility="public")
                middle.register("middle", visibility="public",
                                pricing={"amount_micros": 5})
                more = {"conversation_id": "c", "idempotency_key": "k"}
                server.send("x", to="boss", token=anna, wait_ms=0, **more)
                root = take(boss)
                told = boss.call("agent.send_task", agent_id="middle",
                                 message="y", skill_id="any",
                                 parent_task_id=root["task_id"])
                self.assertNotIn("cost", told)
                told = boss.call("message.send", text="y",
                                 executor={"name": "priced"},
                                 parent_task_id=root["task_id"])
                self.assertNotIn("cost", told, "an agent hears it")
                below = take(middle)
                middle.start("agent.send_task", agent_id="priced",
                             message="z", skill_id="any",
                             parent_task_id=below["task_id"])
                middle.heard("delegation.result")
                for hub, task in ((middle, below), (boss, root)):
                    hub.call("task.result", task_id=task["task_id"],
                             turn=task["turn"], status="completed", text="t")
                r = server.send("x", to="boss", token=anna, **more).json()
                self.assertEqual(r["status"], "completed")
                # The message itself cost nothing.
                self.assertEqual(cost(r), (0, 2 * PRICE + 5, 2 * PRICE + 5))
                with server.events(f"/api/tasks/{root['task_id']}/events",
                                   token=anna) as events:
                    self.assertIn("cost", [event for _, event, _ in events])


    def test_a_conversation_has_the_trees_of_all_its_messages(self):
        data = self.enterContext(tempfile.TemporaryDirectory())
        ask = {"to": "boss", "conversation_id": "c", "wait_ms": 0}
        with Server(data=data) as server:
            anna, zoe = stage(server)
            register(server, "endless", visibility="public", url="echo:3600000",
                     pricing={"amount_micros": 7})
            # It waits its turn behind the others of its conversation.
            says = lambda: cost(server.send(
                "x", to="free", token=anna, conversation_id="c",
                wait_ms=0).json())[2]
            with Hub(server, zoe) as boss:
                boss.register("boss", visibility="public")
                first = server.send("x", token=anna, **ask).json()
                root = take(boss)
                # In the same conversation by name, which is not anna's.
                boss.call("message.send", text="y", conversation_id="c",
                          executor={"name": "priced"},
                          parent_task_id=root["task_id"])
                self.assertEqual(says(), PRICE)
                boss.call("task.result", task_id=root["task_id"],
                          turn=root["turn"], status="completed", text="t")
                # A further turn, and a second message.
                for task in (first["task_id"], None):
                    server.send("x", token=anna, **ask,
                                **({"task_id": task} if task else {}))
                    root = take(boss)
                    boss.call("message.send", text="y",
                              executor={"name": "priced"},
                              parent_task_id=root["task_id"])
                    below = boss.call("agent.delegate", agentId="endless",
                                      task="z", mode="async",
                                      parent_task_id=root["task_id"])
                    if task:
                        boss.call("task.result", task_id=root["task_id"],
                                  turn=root["turn"], status="completed",
                                  text="t")
                self.assertEqual(says(), 3 * PRICE + 14)
                self.assertNotIn("cost", server.send(
                    "x", to="free", token=anna, conversation_id="d").json())
                self.assertNotIn("cost", server.send(
                    "x", to="free", token=zoe, conversation_id="c").json())
            admin = server.token
            server.kill9()
        with Server(data=data, token=admin) as server:
            self.assertEqual(says(), 3 * PRICE + 14)
            r = server.call("POST", f"/api/tasks/{below['task_id']}/cancel")
            self.assertEqual(r.status, 200, r)
            self.assertEqual(says(), 3 * PRICE + 7)


class Control(unittest.TestCase):
    @needs_planted
    def test_a_server_that_tells_everybody(self):
        case = ("test_what_is_delegated_counts_at_any_depth_and_for_the_payer_"
                "alone")
        self.assertIn("an agent hears it", fails_with(
            self, "calls.cost_for_all", getattr(Cost(case), case)))


class Commands(Client):
    def test_the_command_says_it_to_people(self):
        box = self.server()
        anna, _ = stage(box)
        self.use(box, anna)
        self.assertEqual(self.good("send", "hi", "--to", "priced"), "hi\n")
        self.assertIn('"cost":{"task_micros":20000,"tree_micros":20000,',
                      self.good("send", "hi", "--to", "priced", "--json"))


if __name__ == "__main__":
    unittest.main()
