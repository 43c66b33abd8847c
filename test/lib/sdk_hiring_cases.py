"""What the clients of client/ promise of delegations, with the real server:
`boss` is an agent that gives work to `parrot`, each a driver in a process of
its own. sdk_delegation_cases.py has what no real server can be brought to do.

    class Js(HiringCases, unittest.TestCase):
        command = ["node", ".../sdk_driver.mjs"]
"""
import shutil
import tempfile

from certs import Certs
from hub_peer import Hub
from relay import Relay
from sdk_cases import CARD, QUICK, Refused, SdkCases, free_port
from signalbox import Server, eventually


class HiringCases(SdkCases):
    """Without the tests of SdkCases, which are there already."""
    for name in [n for n in dir(SdkCases) if n.startswith("test_")]:
        locals()[name] = None

    def pair(self, server, **options):
        parrot = self.agent(server)
        return self.agent(server, name="boss", **options), parrot

    def delegate(self, boss, message, **options):
        return boss.begin("delegate", agent="parrot", skill="repeat",
                          message=message, options=options)

    def is_acked(self, server, boss):
        """The next boss is told only of what someone has
        asked for meanwhile who does not acknowledge it."""
        boss.do("close")
        with Hub(server) as other:
            other.register("boss")
            other.answer(other.start("agent.send_task", agent_id="parrot",
                                     skill_id="repeat", message="echo rude"))
            while other.heard("delegation.result").get("text") != "rude":
                pass
        d = self.client(server)
        d.do("hook")
        d.do("register", card={**CARD, "name": "boss"})
        self.assertEqual(d.event("delegated")["text"], "rude")
        self.assertEqual(d.end(self.delegate(d, "echo last"))["text"], "last")
        self.assertFalse(d.has("delegated"))
        d.do("close")

    def test_work_is_given_and_comes_back(self):
        server = self.server()
        boss, parrot = self.pair(server)
        got = boss.end(self.delegate(boss, "echo h\u00e9llo \U0001f99c"))
        self.assertEqual((got["text"], got["status"]),
                         ("h\u00e9llo \U0001f99c", "completed"))
        seen = parrot.event("task")
        self.assertEqual((seen["id"], seen["skill_id"],
                          seen["metadata"]["requester"]),
                         (got["task_id"], "repeat", "boss"))
        self.assertEqual(self.task(server, got["task_id"])["status"],
                         "completed")
        self.assertEqual(boss.end(self.delegate(boss, "meta"))["metadata"],
                         {"pages": 3})
        self.is_acked(server, boss)

    def test_what_goes_wrong_is_told(self):
        server = self.server(agents=[{"id": "far"}])
        boss, _ = self.pair(server)
        e = self.refused("failed", boss.end, self.delegate(boss, "fail badly"))
        self.assertIn("fail badly", e.message)
        for agent, code in (("far", "failed"),
                            ("missing", "agent_not_found"),
                            ("boss", "delegation_not_allowed")):
            with self.subTest(agent):
                self.refused(code, boss.do, "delegate", agent=agent,
                             skill="repeat", message="echo x")
        self.is_acked(server, boss)

    def test_a_conversation_goes_on(self):
        server = self.server()
        boss, parrot = self.pair(server)
        got = [boss.end(self.delegate(boss, f"echo {i}", session_id="s-1"))
               for i in range(2)]
        seen = [parrot.event("task") for _ in got]
        self.assertEqual([t["session_id"] for t in seen], ["s-1", "s-1"])
        self.assertNotEqual(got[0]["task_id"], got[1]["task_id"])
        more = boss.end(self.delegate(boss, "echo more",
                                      task_id=got[1]["task_id"]))
        self.assertEqual((more["text"], more["task_id"]),
                         ("more", got[1]["task_id"]))
        self.assertEqual(parrot.event("task")["turn"], 2)
        self.is_acked(server, boss)

    def test_a_handler_gives_work_on_behalf_of_its_task(self):
        server = self.server()
        boss, parrot = self.pair(server)
        answer = server.send("hire parrot repeat echo hi", to="boss").json()
        self.assertEqual((answer["status"], answer["text"]),
                         ("completed", "parrot said hi"))
        seen = parrot.event("task")
        self.assertEqual(self.task(server, seen["id"])["parent_task_id"],
                         answer["task_id"])
        boss.do("close")

    def test_a_handler_sends_a_message_for_one_of_two_users(self):
        server = self.server()
        boss, parrot = self.pair(server)
        for name in ("boss", "parrot"):
            server.call("PATCH", f"/api/agents/{name}",
                        {"visibility": "public"})
        sent = {user: server.send(f"pass_on parrot hold {user}", to="boss",
                                  token=server.user(user),
                                  wait_ms=0).json()["task_id"]
                for user in ("carla", "dora")}
        for user, parent in sent.items():
            task = parrot.event("task", message=f"hold {user}")
            row = self.task(server, task["id"])
            self.assertEqual((row["root_user"], row["parent_task_id"]),
                             (user, parent))
            parrot.do("release", message=f"hold {user}", text="hi")
        for parent in sent.values():
            row = self.over(server, parent)
            self.assertEqual((row["status"], row["result"]["text"]),
                             ("completed", "parrot said hi"))
        boss.do("close")

    def test_for_two_users_at_once(self):
        """The agent has a task of each, in sessions of the same name."""
        server = self.server()
        boss, parrot = self.pair(server)
        tokens = {}
        for user in ("anna", "bert"):
            tokens[user] = server.user(user)
        for name in ("boss", "parrot"):
            server.call("PATCH", f"/api/agents/{name}",
                        {"visibility": "public"})
        sent = {user: server.send(f"hire parrot repeat hold {user}",
                                  to="boss", token=token, wait_ms=0,
                                  conversation_id="chat").json()["task_id"]
                for user, token in tokens.items()}
        for user in tokens:
            task = parrot.event("task", message=f"hold {user}")
            row = self.task(server, task["id"])
            self.assertEqual((row["root_user"], row["parent_task_id"],
                              row["conversation_id"]),
                             (user, sent[user], f"boss@{user}/chat"))
            parrot.do("release", message=f"hold {user}", text="hi")
        for user in tokens:
            self.over(server, sent[user])
        # What comes next in that session goes on with it.
        answer = server.send("hire parrot repeat echo more", to="boss",
                             token=tokens["anna"], conversation_id="chat")
        self.assertEqual(answer.json()["text"], "parrot said more")
        task = parrot.event("task", message="echo more")
        self.assertEqual(self.task(server, task["id"])["conversation_id"],
                         "boss@anna/chat")
        boss.do("close")

    def test_many_at_once(self):
        server = self.server()
        boss, _ = self.pair(server)
        calls = [self.delegate(boss, f"echo {i}") for i in range(16)]
        self.assertEqual([boss.end(n)["text"] for n in calls],
                         [str(i) for i in range(16)])
        got = boss.do("tool", order=[
            {"agentId": "parrot" if i else "missing", "task": f"echo {i}"}
            for i in range(16)])
        self.assertEqual(got[0]["status"], "error")
        self.assertEqual([(r["status"], r["response"]) for r in got[1:]],
                         [("completed", str(i)) for i in range(1, 16)])
        self.refused("bad_request", boss.do, "tool", order=[
            {"agentId": "parrot", "task": "echo 1"}] * 17)
        self.is_acked(server, boss)

    # Connections that break.

    def test_it_comes_back_in_the_midst(self):
        server = self.server()
        parrot = self.agent(server)
        cable = self.stack.enter_context(Relay(server.address))
        boss = self.driver()
        boss.do("connect", url=cable.url, token=server.token, options=QUICK)
        boss.do("register", card={**CARD, "name": "boss"})
        n = self.delegate(boss, "hold 1")
        task = parrot.event("task")["id"]
        for _ in range(3):
            cable.cut()
            eventually(lambda: boss.do("look")["is_connected"], "it is back")
        parrot.do("release", message="hold 1", text="one")
        got = boss.end(n)
        self.assertEqual((got["text"], got["task_id"]), ("one", task))
        # While it is away.
        n = self.delegate(boss, "hold 2")
        parrot.event("task", message="hold 2")
        cable.cut()
        parrot.do("release", message="hold 2", text="two")
        self.assertEqual(boss.end(n)["text"], "two")
        # In the very moment that it asks: one task, whichever way.
        for i in range(5):
            n = self.delegate(boss, f"echo {i}")
            cable.cut()
            self.assertEqual(boss.end(n)["text"], str(i))
            parrot.event("task", message=f"echo {i}")
        self.assertFalse(parrot.has("task"))
        # The last result may have come just before the cut, which then took its
        # acknowledgement. What is asked now goes over the next connection, and
        # the result is told there once more before it, and acknowledged.
        again = boss.end(self.delegate(boss, "echo again"))
        self.assertEqual(again["text"], "again")
        self.is_acked(server, boss)

    def test_the_server_is_killed_meanwhile(self):
        listen, data = f"127.0.0.1:{free_port()}", tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, data)
        with Server(listen=listen, data=data) as server:
            token = server.token
            boss, parrot = self.pair(server)
            n = self.delegate(boss, "hold 1")
            parrot.event("task", message="hold 1")
            server.kill9()
        with Server(listen=listen, data=data, token=token) as server:
            for d in parrot, boss:
                eventually(lambda d=d: d.do("look")["is_connected"], "back")
            parrot.do("release", message="hold 1", text="one")
            self.assertEqual(boss.end(n)["text"], "one")
            self.is_acked(server, boss)
            parrot.do("close")

    def test_what_was_asked_before_a_restart_is_not_lost(self):
        """The boss dies, and another process is the boss."""
        server = self.server()
        parrot = self.agent(server)
        first = self.driver({"LIVES": "1"})  # for this test alone
        first.do("connect", url=server.url, token=server.token, options=QUICK)
        first.do("register", card={**CARD, "name": "boss"})
        self.delegate(first, "hold 1")
        task = parrot.event("task")["id"]
        first.process.kill()
        first.process.wait()
        parrot.do("release", message="hold 1", text="one")
        self.over(server, task)
        boss = self.client(server)
        boss.do("hook")
        boss.do("register", card={**CARD, "name": "boss"})
        got = boss.event("delegated")
        self.assertEqual((got["text"], got["task_id"]), ("one", task))
        self.is_acked(server, boss)

    # The tool.

    def test_the_tool(self):
        server = self.server()
        boss, parrot = self.pair(server)
        got = boss.do("tool", order={"agentId": "parrot", "task": "echo hi",
                                    "skill": "repeat"})
        self.assertEqual((got["status"], got["response"]),
                         ("completed", "hi"))
        self.assertEqual(
            boss.do("delegation", key=got["sessionKey"])["response"], "hi")
        got = boss.do("tool", order={"agentId": "parrot",
                                     "task": "fail badly"})
        self.assertEqual(got["status"], "error")
        self.assertIn("fail badly", got["error"])
        got = boss.do("tool", order={"agentId": "parrot", "task": "hold it",
                                    "timeoutMs": 100})
        self.assertEqual(got["status"], "timeout")
        parrot.event("cancelled", task=got["task_id"])
        got = boss.do("tool", order={"agentId": "missing", "task": "x"})
        self.assertEqual((got["status"], got["code"]),
                         ("error", "agent_not_found"))
        self.refused("bad_request", boss.do, "tool",
                     order={"agentId": "parrot", "task": "x", "mode": "soon"})

    def test_the_tool_is_cut_off(self):
        server = self.server()
        parrot = self.agent(server)
        cable = self.stack.enter_context(Relay(server.address))
        boss = self.driver()
        boss.do("connect", url=cable.url, token=server.token, options=QUICK)
        boss.do("hook")
        boss.do("register", card={**CARD, "name": "boss"})
        n = boss.begin("tool", order={"agentId": "parrot", "task": "hold it"})
        task = parrot.event("task")["id"]
        cable.cut()
        self.refused("disconnected", boss.end, n)
        eventually(lambda: boss.do("look")["is_connected"], "it is back")
        parrot.do("release", message="hold it", text="done")
        over = boss.event("delegated")
        self.assertEqual((over["text"], over["task_id"]), ("done", task))
        self.is_acked(server, boss)

    def test_the_tool_does_not_wait(self):
        server = self.server()
        parrot = self.agent(server)
        boss = self.client(server)
        boss.do("hook")
        boss.do("register", card={**CARD, "name": "boss"})
        got = boss.do("tool", order={"agentId": "parrot", "task": "hold it",
                                    "mode": "async"})
        self.assertEqual(got["status"], "accepted")
        parrot.event("task")
        now = boss.do("delegation", key=got["sessionKey"])
        self.assertEqual(now["status"], "accepted")
        parrot.do("release", message="hold it", text="done")
        over = boss.event("delegated")
        self.assertEqual((over["text"], over["sessionKey"], over["task_id"]),
                         ("done", got["sessionKey"], got["task_id"]))
        # Gone on with, it has another result.
        more = boss.do("tool", order={"sessionKey": got["sessionKey"],
                                      "task": "echo more", "mode": "async"})
        over = boss.event("delegated")
        self.assertEqual((over["text"], over["sessionKey"]),
                         ("more", more["sessionKey"]))
        self.is_acked(server, boss)

    def test_words_are_shown_with_the_name_of_who_says_them(self):
        server = self.server()
        boss, _ = self.pair(server)
        user = self.client(server)
        got = user.do("send", text="consult parrot stream one two",
                      chunks=True, asides=True, options={"to": "boss"})
        self.assertEqual((got["text"], "".join(got["pieces"])),
                         ("Let me ask. completed: one two",) * 2)
        self.assertEqual([(e["agent"], e["text"]) for e in user.events
                          if e["event"] == "aside"],
                         [("parrot", "one "), ("parrot", "two")])
        n = self.delegate(boss, "stream three four", chunks=True)
        self.assertEqual(boss.end(n)["text"], "three four")
        self.assertEqual([(e["agent"], e["text"]) for e in boss.events
                          if e["event"] == "words"],
                         [("parrot", "three "), ("parrot", "four")])
        boss.do("close")

    def test_the_tools_for_models(self):
        d = self.client(self.server())
        both = d.do("tools")
        for form in "openai", "anthropic":
            self.assertEqual(d.do("tools", format=form), both[form])
        names = {t["name"] for t in both["anthropic"]}
        self.assertEqual(names, {"delegate_to_agent", "search_agents"})
        with self.assertRaises(Refused):
            d.do("tools", format="other")

    def test_the_tools_come_with_tls_too(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        cert, key = Certs(folder).make("box")
        server = self.server(config={"tls": {
            "listen": "127.0.0.1:0", "certFile": cert, "keyFile": key}})
        d = self.driver({"SIGNALBOX_CA": cert})
        d.do("connect", url=server.tls_url, token=server.token)
        self.assertEqual(set(d.do("tools")), {"openai", "anthropic"})
