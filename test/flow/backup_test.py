"""Backups, as the owner of a server makes them and goes back to one."""
import json
import os
import pty
import shutil
import subprocess
import tempfile
import threading
import unittest

from signalbox import (BINARY, DEADLINE_S, ECHO, Server, clean_environment,
                       eventually)


class Backup(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="signalbox-test-")
        self.addCleanup(shutil.rmtree, self.home)
        self.data = self.path("data")

    def path(self, name):
        return os.path.join(self.home, name)

    def run_it(self, *args, data=True, **more):
        if data:
            args += ("--data", self.data)
        return subprocess.run([BINARY, *args], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              cwd=self.home, env=clean_environment(),
                              timeout=DEADLINE_S, text=True, check=False,
                              **more)

    def good(self, *args, **more):
        run = self.run_it(*args, **more)
        self.assertEqual((run.returncode, run.stderr), (0, ""), run.stdout)
        return run.stdout

    def bad(self, status, words, *args, **more):
        run = self.run_it(*args, **more)
        self.assertEqual(run.returncode, status, run.stdout + run.stderr)
        self.assertIn(words, run.stderr)
        self.assertEqual(run.stdout, "")

    def n_tasks(self, server):
        page = server.call("GET", "/api/tasks?limit=500").json()
        self.assertIsNone(page["next_cursor"])
        return len(page["items"])

    def test_a_backup_of_a_running_server_brings_back_what_was_there(self):
        with Server(agents=ECHO, data=self.data) as server:
            token = server.token
            server.send("before")
            made = json.loads(self.good("backup", "copy.db", "--json"))
            self.assertEqual(made["file"], "copy.db")
            self.assertEqual(made["bytes"],
                             os.path.getsize(self.path("copy.db")))
            server.send("after")
            self.assertEqual(self.n_tasks(server), 2)
        self.assertIn("kept as signalbox.db.kept-",
                      self.good("restore", "copy.db"))
        with Server(agents=ECHO, data=self.data, token=token) as server:
            self.assertEqual(self.n_tasks(server), 1)
            self.assertEqual(server.send("again").status, 200)
        kept, = [n for n in os.listdir(self.data) if ".kept-" in n]
        os.rename(os.path.join(self.data, kept), self.path("kept.db"))
        self.good("restore", "kept.db")
        with Server(agents=ECHO, data=self.data, token=token) as server:
            self.assertEqual(self.n_tasks(server), 2)

    def test_backups_while_the_server_is_at_work_are_whole(self):
        with Server(agents=ECHO, data=self.data) as server:
            token = server.token
            sent, is_over = [], threading.Event()

            def work():
                while not is_over.is_set():
                    answer = server.send(str(len(sent)))
                    sent.append(answer.json()["task_id"])

            worker = threading.Thread(target=work)
            worker.start()
            known = []
            try:
                for i in range(5):
                    known.append(len(sent))
                    self.good("backup", f"copy{i}.db")
            finally:
                is_over.set()
                worker.join()
        for i, n in enumerate(known):
            self.good("restore", f"copy{i}.db")
            with Server(agents=ECHO, data=self.data, token=token) as server:
                for task_id in sent[:n]:  # answered before it began
                    task = server.call("GET", "/api/tasks/" + task_id)
                    self.assertEqual(task.status, 200)

    def test_after_a_crash_the_log_is_in_the_backup(self):
        with Server(agents=ECHO, data=self.data) as server:
            token = server.token
            server.send("before the crash")
            server.kill9()
        self.good("backup", "copy.db")
        shutil.rmtree(self.data)
        made = json.loads(self.good("restore", "copy.db", "--json"))
        self.assertEqual(made, {"data": self.data, "kept": None,
                                "remark": None})
        with Server(agents=ECHO, data=self.data, token=token) as server:
            self.assertEqual(self.n_tasks(server), 1)

    def test_the_log_of_a_crash_is_not_applied_to_what_is_restored(self):
        with Server(agents=ECHO, data=self.data) as server:
            token = server.token
            server.send("first")
            self.good("backup", "copy.db")
            server.send("second")
            server.kill9()
        self.assertTrue(os.path.getsize(
            os.path.join(self.data, "signalbox.db-wal")))
        self.good("restore", "copy.db")
        with Server(agents=ECHO, data=self.data, token=token) as server:
            self.assertEqual(self.n_tasks(server), 1)

    def look(self, server, task_id):
        """The attempt of a task that never ends, once it was delivered, and
        an event's id."""
        def task():
            return server.call("GET", "/api/tasks/" + task_id).json()
        eventually(lambda: task()["status"] != "queued", "it is delivered")
        task = task()
        with server.events(f"/api/tasks/{task_id}/events") as events:
            return task["attempt"], next(events).id

    def test_no_attempt_and_no_event_id_comes_twice(self):
        slow = [{"id": "slow", "url": "echo:3600000"}]
        seen = []
        with Server(agents=slow, data=self.data) as server:
            token = server.token
            task_id = server.send("x", to="slow", wait_ms=0).json()["task_id"]
            seen.append(self.look(server, task_id))
            self.good("backup", "copy.db")
        for is_restored in (False, True, True, False, True):
            if is_restored:
                self.good("restore", "copy.db")
            with Server(agents=slow, data=self.data, token=token) as server:
                seen.append(self.look(server, task_id))
        for what in zip(*seen):
            self.assertEqual(len(set(what)), len(seen), seen)

    def test_nothing_is_restored_under_a_running_server(self):
        with Server(agents=ECHO, data=self.data) as server:
            self.good("backup", "copy.db")
            self.bad(3, "is in use by another signalbox", "restore", "copy.db")
            self.assertEqual(server.send("still here").status, 200)

    def test_garbage_is_not_restored(self):
        with Server(agents=ECHO, data=self.data) as server:
            token = server.token
            server.send("kept")
        with open(self.path("diary"), "w", encoding="utf-8") as f:
            f.write("Dear diary, " * 1000)
        self.bad(2, "diary is not a backup", "restore", "diary")
        self.good("backup", "half.db")
        os.truncate(self.path("half.db"), 8192)
        self.bad(2, "the backup half.db is damaged", "restore", "half.db")
        self.bad(3, "there is no file", "restore", "missing.db")
        self.bad(2, "is the database itself", "restore",
                 os.path.join(self.data, "signalbox.db"))
        with Server(agents=ECHO, data=self.data, token=token) as server:
            self.assertEqual(self.n_tasks(server), 1)

    def test_damage_is_told_on_one_line(self):
        with Server(agents=ECHO, data=self.data) as server:
            server.send("x" * 100000)
        self.good("backup", "copy.db")
        database = os.path.join(self.data, "signalbox.db")
        for path in (self.path("copy.db"), database):
            with open(path, "r+b") as f:
                f.seek(4096 * 5)
                f.write(b"\xff" * 4096)
        for args in (("restore", "copy.db"), ("backup", "new.db"),
                     ("doctor", "--listen", "127.0.0.1:0", "--json")):
            with self.subTest(args):
                run = self.run_it(*args)
                said = run.stdout + run.stderr
                self.assertIn("is damaged (", said)
                self.assertNotIn("***", said)
                self.assertNotIn("\\n", said)
                self.assertNotRegex(said, r"\(.*[?\n].*\): ")
                self.assertEqual(len(said.splitlines()), 1)
        self.assertNotIn("new.db", os.listdir(self.home))

    def test_a_backup_replaces_no_file_and_needs_a_database(self):
        self.bad(3, "there is no database", "backup", "copy.db")
        with Server(data=self.data):
            self.good("backup", "copy.db")
            self.bad(3, "is there already", "backup", "copy.db")
            self.bad(3, "cannot make no/copy.db: ", "backup", "no/copy.db")
        self.bad(2, "name the new file", "backup")
        self.bad(2, "name the backup", "restore")
        self.assertEqual([n for n in os.listdir(self.home) if ".tmp" in n], [])

    def test_the_folder_comes_from_the_configuration_too(self):
        with Server(data=self.data):
            pass
        with open(self.path("signalbox.jsonc"), "w", encoding="utf-8") as f:
            json.dump({"data": self.data}, f)
        self.good("backup", "copy.db", data=False)
        self.good("restore", "copy.db", data=False)
        with open(self.path("signalbox.jsonc"), "w", encoding="utf-8") as f:
            f.write('{ "dat": 1 }')
        self.bad(2, "or name the folder with --data", "backup", "two.db",
                 data=False)
        self.good("backup", "two.db")  # then the configuration is not asked

    def test_doctor_looks_at_the_database(self):
        def look():
            run = self.run_it("doctor", "--json", "--listen", "127.0.0.1:0")
            return next(c for c in json.loads(run.stdout)["checks"]
                        if c["name"] == "database")

        self.assertIn("does not exist yet", look()["message"])
        with Server(data=self.data):
            self.assertEqual(look()["status"], "ok")
        self.assertIn("started 1 time", look()["message"])
        self.assertEqual(sorted(os.listdir(self.data)),
                         ["signalbox.db", "signalbox.epoch",
                          "signalbox.lock"])
        os.truncate(os.path.join(self.data, "signalbox.db"), 8192)
        self.assertEqual(look()["status"], "failed")
        self.assertIn("signalbox restore FILE", look()["message"])
        os.truncate(os.path.join(self.data, "signalbox.db"), 0)
        self.assertEqual(look()["status"], "failed")
        self.assertIn("used before", look()["message"])
        self.assertIn("--from-scratch", look()["advice"])

    def test_what_is_quick_draws_no_bar(self):
        with Server(data=self.data):
            pass
        ours, theirs = pty.openpty()
        run = subprocess.run([BINARY, "backup", "copy.db", "--data",
                              self.data], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=theirs,
                             cwd=self.home, timeout=DEADLINE_S,
                             env={**clean_environment(), "TERM": "xterm"},
                             check=False)
        os.set_blocking(ours, False)
        try:
            drawn = os.read(ours, 1000)
        except BlockingIOError:
            drawn = b""
        os.close(ours)
        os.close(theirs)
        self.assertEqual((run.returncode, drawn), (0, b""))
