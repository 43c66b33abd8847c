"""What a program that the server starts can do to the server.

A real child tries each attack (test/peers/sandbox_attacker.c): as root and as a
plain user, with what this kernel has, with Landlock as Debian 12 has it
(version 2), without namespaces, and in a bare chroot. The control is a server
without any of it: there every attack must succeed.

SANDBOX_TABLE=FILE writes what closed which attack."""
import ctypes
import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import unittest
from unittest import mock

import signalbox
from cards import register
from outside import outside
from planted import planted
from signalbox import Server, eventually, metric

ATTACKER = os.environ["SANDBOX_ATTACKER"]
PLAIN = 54321  # a user that no machine has
IS_ROOT = os.geteuid() == 0
LANDLOCK_CREATE_RULESET = 444
SIGNALS_FROM, SERVES_FROM = 6, 1  # versions of Landlock
DECOYS = ("write", "truncate", "chmod", "xattr", "unlink", "rename", "link")

# What stays open, by what is missing.
NEEDS_NAMESPACE_OR_6 = {"signal", "sibling-signal"}
# The kernel, not the sandbox: file systems without user attributes, and root's
# own file, which a plain user never reads.
OPTIONAL = {"db-xattr", "shadow", "ptrace-x32", "db-chmod-2"}
# A change of the rights of a file by its path is refused as a whole where the
# data is not hidden; the program's own files included.
table = {}


def landlock():
    """The version that this kernel has; 0: none."""
    version = ctypes.CDLL(None).syscall(LANDLOCK_CREATE_RULESET, None, 0, 1)
    return max(version, 0)


def as_user(uid):
    return [] if uid == os.geteuid() else [
        "setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]


def has_namespaces(uid):
    flags = "-pm" if uid == 0 else "-Upm"
    return subprocess.run([*as_user(uid), "unshare", flags, "true"],
                          stderr=subprocess.DEVNULL, check=False
                          ).returncode == 0


def libraries(*programs):
    """The files that these are linked with."""
    found = set()
    for program in programs:
        said = subprocess.run(["ldd", program], stdout=subprocess.PIPE,
                              check=True).stdout.decode()
        found.update(re.findall(r"(/\S+) \(0x", said))
    return found


class Stage:
    """A server with two agents, one of them the attacker's."""

    def __init__(self, case, uid, mistake=None, root="", folder="/tmp",
                 cgroup=None, has_script=False, **process):
        self.case, self.root = case, root
        self.base = tempfile.mkdtemp(prefix="signalbox-box-",
                                     dir=root + folder)
        case.addCleanup(shutil.rmtree, self.base, True)
        case.addCleanup(self.end_strays)
        os.chmod(self.base, 0o755)
        for name in ("data", "mine", "other", "other-named", "other-linked",
                     "home"):
            os.mkdir(self.path(name), 0o700)
        for name in DECOYS:
            self.write(f"data/decoy-{name}", "content")
        self.write("other/secret", "SIBLING\n")
        attacker = "/attacker" if root else ATTACKER
        agent = {"command": [attacker], **process}
        command = self.own_script() if has_script else [attacker]
        self.write("other-named/key", "HIDDEN\n")
        self.write("other-linked/key", "HIDDEN\n")
        self.write("test.jsonc", json.dumps({"agents": {"list": [
            {"id": "attacker", "process": {
                **agent, "command": command,
                "workspace": self.inside("mine")}},
            {"id": "sibling", "process": {
                **agent, "workspace": self.inside("other"),
                "env": {"SIBLING_SECRET": "x"}}}]}}))
        for folder, _, names in os.walk(self.base):
            for name in (".", *names):
                os.chown(os.path.join(folder, name), uid, uid,
                         follow_symlinks=False)
        self.terminal = self.open_terminal(uid)
        before = as_user(uid)
        if root:
            before = ["unshare", "-m", "sh", "-c",
                      f"mount -t proc proc {root}/proc && exec chroot "
                      f"--userspec={uid}:{uid} {root} \"$@\"", "sh"]
        if cgroup:
            before = ["sh", "-c",
                      f"echo $$ > {cgroup}/cgroup.procs && exec \"$@\"", "sh",
                      *before]
        case.enterContext(mock.patch.dict(os.environ, {
            "SANDBOX_SECRET": "x", "HOME": self.inside("home")}))
        with planted(mistake or "none"):
            self.server = case.enterContext(Server(
                "--config", self.inside("test.jsonc"),
                data=self.inside("data"), before=before))

    def open_terminal(self, uid):
        """One that the same user has, as in a session of ssh."""
        master, slave = os.openpty()
        self.case.addCleanup(os.close, master)
        self.case.addCleanup(os.close, slave)
        path = os.ttyname(slave)
        os.chown(path, uid, uid)
        return path

    def own_script(self):
        """A command that the agent has changed after the operator wrote it."""
        self.write("mine/run.sh", f"#!/bin/sh\n# {self.path('other-named/key')}"
                   f" {self.path('other/secret')}\nexec {ATTACKER}\n")
        os.chmod(self.path("mine/run.sh"), 0o755)
        os.symlink(self.path("other-linked/key"), self.path("mine/settings"))
        return [self.path("mine/run.sh"), self.path("mine/settings")]

    def path(self, name):
        return os.path.join(self.base, name)

    def inside(self, name):
        """The same as the server sees it."""
        return self.path(name)[len(self.root):]

    def running(self):
        """Processes that work in the attacker's folder."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                folder = os.readlink(f"/proc/{pid}/cwd")
            except OSError:
                continue
            if folder == os.path.realpath(self.path("mine")):
                found.append(int(pid))
        return found

    def end_strays(self):
        """Those that nothing else ends, where there is no sandbox."""
        for pid in self.running():
            os.kill(pid, signal.SIGKILL)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(text)

    def ask(self, agent, text="x"):
        answer = self.server.send(text, to=agent).json()
        self.case.assertIn("text", answer, f"{answer} {self.server.said()}")
        self.case.assertIn("=", answer["text"], answer)
        return dict(entry.split("=") for entry in answer["text"].split(";"))

    def server_pid(self):
        """Behind setpriv and chroot, which become it."""
        return self.server.process.pid

    def attack(self):
        """What came of each attempt."""
        sibling = outside(self.server, [int(self.ask("sibling")["pid"])])[0]
        port = self.server.address[1]
        found = self.ask("attacker", f"{self.server_pid()} "
                         f"{self.inside('data')} {self.inside('other')} "
                         f"{sibling} {self.inside('test.jsonc')} {port} "
                         f"{self.terminal}")
        self.pid = outside(self.server, [int(found.pop("pid"))])[0]
        return found


class SandboxTest(unittest.TestCase):
    maxDiff = None

    def uids(self):
        return [0, PLAIN] if IS_ROOT else [os.geteuid()]

    def holds(self, name, uid, mistake=None, still_open=(), **more):
        """Every attack is closed but these, and the work goes on."""
        stage = Stage(self, uid, mistake, **more)
        found = stage.attack()
        table[f"{name}, {'root' if uid == 0 else 'plain uid'}"] = found
        attacks = {k for k in found if not k.startswith("may-")}
        self.assertEqual({k for k in attacks if found[k] == "open"},
                         set(still_open), found)
        has_mounts = mistake in (None, "box.abi2") and "root" not in more
        needs_mounts = {"may-terminal"} # and /tmp, if the data lies in it
        if more.get("folder") != "/opt":
            needs_mounts.add("may-use-tmp")
        self.assertEqual({k for k in found.keys() - attacks
                          if found[k] != "open"},
                         set() if has_mounts else needs_mounts, found)
        for decoy in DECOYS:
            with open(stage.path(f"data/decoy-{decoy}"),
                      encoding="utf-8") as f:
                self.assertEqual(f.read(), "content")
        return stage

    def needs(self, version):
        if landlock() < version:
            self.skipTest(f"this kernel has Landlock {landlock()}, and "
                          f"{version} is needed")

    def test_with_all_that_the_kernel_has(self):
        self.needs(SERVES_FROM)
        for uid in self.uids():
            with self.subTest(uid=uid):
                if not has_namespaces(uid):
                    self.skipTest(f"no namespaces for user {uid} here")
                stage = self.holds("kernel's own", uid)
                said = stage.server.said()
                self.assertIn("deliver.sandboxed", said)
                self.assertNotIn("sandbox_is_partial", said)

    def test_data_inside_a_folder_that_programs_may_read(self):
        """/opt is one: the data is left out of it, or hidden in it."""
        self.needs(SERVES_FROM)
        if not IS_ROOT or not os.path.isdir("/opt"):
            self.skipTest("needs root, and /opt")
        still = NEEDS_NAMESPACE_OR_6 if landlock() < SIGNALS_FROM else set()
        lies_open = {"script-names", "argument-links"} # as all of /opt
        for uid in self.uids():
            with self.subTest(uid=uid):
                self.holds("in /opt, no namespaces", uid, "box.alone",
                           still | lies_open, folder="/opt")
                if has_namespaces(uid):
                    self.holds("in /opt", uid, None, lies_open, folder="/opt")

    def test_under_a_user_of_its_own(self):
        """process.user: what belongs to the server's user is closed by the
        owner of the files too."""
        self.needs(SERVES_FROM)
        if not IS_ROOT:
            self.skipTest("needs root")
        nobody = pwd.getpwnam("nobody")
        stage = Stage(self, 0, user="nobody")
        for name in ("mine", "other"):
            os.chown(stage.path(name), nobody.pw_uid, nobody.pw_gid)
        found = stage.attack()
        table["process.user"] = found
        self.assertEqual({k for k in found if not k.startswith("may-")
                          and found[k] == "open"}, set(), found)
        with open(f"/proc/{stage.pid}/status",
                  encoding="utf-8") as f:
            ids = re.findall(r"^[UG]id:\s+(\d+)\s+(\d+)", f.read(), re.M)
        self.assertEqual(ids, [(str(nobody.pw_uid),) * 2,
                               (str(nobody.pw_gid),) * 2])

    def test_a_user_that_does_not_exist_is_told(self):
        if not IS_ROOT:
            self.skipTest("needs root")
        stage = Stage(self, 0, user="no-such-user")
        answer = stage.server.send("x", to="attacker").json()
        self.assertIn("no-such-user", json.dumps(answer), answer)

    def test_a_script_that_the_agent_may_write_opens_nothing(self):
        self.needs(SERVES_FROM)
        still = NEEDS_NAMESPACE_OR_6 if landlock() < SIGNALS_FROM else ()
        for uid in self.uids():
            with self.subTest(uid=uid):
                self.holds("own script, no namespaces", uid, "box.alone",
                           still, has_script=True,
                           read=[os.path.dirname(ATTACKER)])
                if has_namespaces(uid):
                    self.holds("own script", uid, has_script=True,
                               read=[os.path.dirname(ATTACKER)])

    def test_with_landlock_2(self):
        self.needs(2)
        for uid in self.uids():
            with self.subTest(uid=uid):
                if not has_namespaces(uid):
                    self.skipTest(f"no namespaces for user {uid} here")
                self.holds("Landlock 2", uid, "box.abi2")

    def test_without_namespaces(self):
        self.needs(SERVES_FROM)
        still = NEEDS_NAMESPACE_OR_6 if landlock() < SIGNALS_FROM else ()
        for uid in self.uids():
            with self.subTest(uid=uid):
                self.holds("no namespaces", uid, "box.alone", still)

    def test_with_landlock_2_and_without_namespaces(self):
        """What is left open is in the log."""
        self.needs(2)
        for uid in self.uids():
            with self.subTest(uid=uid):
                stage = self.holds("Landlock 2, no namespaces", uid,
                                   "box.abi2_alone", NEEDS_NAMESPACE_OR_6)
                said = stage.server.said()
                self.assertIn("sandbox_is_partial", said)
                self.assertIn("signal the server", said)
                self.assertNotIn("open the database", said)

    def test_in_a_bare_chroot(self):
        self.needs(SERVES_FROM)
        if not IS_ROOT:
            self.skipTest("only root can chroot")
        if shutil.which("unshare") is None or not has_namespaces(0):
            self.skipTest("root may not mount here")
        root = tempfile.mkdtemp(prefix="signalbox-root-", dir="/tmp")
        self.addCleanup(shutil.rmtree, root, True)
        os.chmod(root, 0o755)
        binary = os.environ["SIGNALBOX_PLANTED"]
        for path in libraries(binary, ATTACKER, "/bin/sh"):
            os.makedirs(root + os.path.dirname(path), exist_ok=True)
            shutil.copy(path, root + path)
        for name in ("tmp", "proc", "etc", "bin", os.path.dirname(binary)[1:]):
            os.makedirs(os.path.join(root, name), exist_ok=True)
        os.chmod(root + "/tmp", 0o1777)
        with open(root + "/etc/passwd", "w", encoding="utf-8") as f:
            f.write("root:x:0:0::/:/bin/sh\n")
        shutil.copy(binary, root + binary)
        shutil.copy(ATTACKER, root + "/attacker")
        shutil.copy("/bin/sh", root + "/bin/sh")
        still = NEEDS_NAMESPACE_OR_6 if landlock() < SIGNALS_FROM else ()
        self.holds("bare chroot", PLAIN, None, still, root=root)

    def test_what_leaves_its_session_ends_with_the_program(self):
        uid = os.geteuid()
        if not has_namespaces(uid):
            self.skipTest("no namespaces here")
        stage = Stage(self, uid)
        stage.attack()
        self.assertGreater(len(stage.running()), 1) # the program and it
        stage.server.process.terminate()
        stage.server.process.wait(60)
        eventually(lambda: not stage.running(), "all are gone")


class HangTest(unittest.TestCase):
    def test_a_launcher_that_hangs_holds_up_nobody(self):
        """What becomes of it at its limit is in the unit test child_box."""
        stage = Stage(self, os.geteuid(), "child.launcher_hangs")
        server = stage.server
        # Both agents have a launcher that waits for ever.
        tasks = [server.send("x", to=name, wait_ms=0).json()["task_id"]
                 for name in ("attacker", "sibling")]
        register(server, "free")
        self.assertEqual(server.send("hi", to="free").json()["text"], "hi")
        for task in tasks:
            r = server.call("GET", f"/api/tasks/{task}").json()
            self.assertIn(r["status"], ("queued", "dispatched"))
            r = server.call("POST", f"/api/tasks/{task}/cancel")
            self.assertEqual(r.status, 200, r)


class CgroupTest(unittest.TestCase):
    """Where there is no PID namespace, and the server's cgroup is its own."""

    def cgroup(self, is_given_away=True):
        """A cgroup as systemd gives one away with Delegate=yes."""
        with open("/proc/mounts", encoding="utf-8") as mounts:
            mounted = [line.split()[1] for line in mounts
                       if line.split()[2] == "cgroup2"]
        if not IS_ROOT or not mounted:
            self.skipTest("needs root, and cgroups of version 2")
        path = os.path.join(mounted[0], f"signalbox-test-{os.getpid()}")
        try:
            os.mkdir(path)
        except OSError as e:
            self.skipTest(f"no cgroup can be made here: {e}")
        self.addCleanup(self.remove, path)
        if not os.path.exists(path + "/cgroup.kill"):
            self.skipTest("this kernel has no cgroup.kill")
        for name in (".", "cgroup.procs", "cgroup.subtree_control"):
            os.chown(os.path.join(path, name), PLAIN, PLAIN)
        if is_given_away:
            os.setxattr(path, "user.delegate", b"1")
        return path

    def remove(self, path):
        with open(path + "/cgroup.kill", "w", encoding="utf-8") as f:
            f.write("1")
        for folder, _, _ in os.walk(path, topdown=False):
            eventually(lambda f=folder: removed(f), f"{folder} is removed")

    def stop_program(self, mistake):
        """What is left of a program that was asked to end."""
        stage = Stage(self, PLAIN, mistake, cgroup=self.cgroup(), max=1,
                      idleMs=10)
        stage.attack()
        eventually(lambda: metric(stage.server, "signalbox_children") == 0,
                   "both have ended")
        return stage

    def test_what_leaves_its_session_ends_with_the_program(self):
        stage = self.stop_program("box.alone")
        self.assertIn("child.cgroups", stage.server.said())
        eventually(lambda: not stage.running(), "all are gone")

    def test_two_servers_in_one_do_not_end_each_others_programs(self):
        path = self.cgroup()
        first = Stage(self, PLAIN, "box.alone", cgroup=path)
        first.ask("attacker")
        before = first.running()
        self.assertTrue(before)
        second = Stage(self, PLAIN, "box.alone", cgroup=path, max=1, idleMs=10)
        second.ask("attacker")
        eventually(lambda: metric(second.server, "signalbox_children") == 0,
                   "the second's program has ended")
        self.assertEqual(first.running(), before)
        first.ask("attacker")

    def test_one_that_was_not_given_away_is_left_alone(self):
        path = self.cgroup(is_given_away=False)
        stage = Stage(self, PLAIN, "box.alone", cgroup=path)
        stage.ask("attacker")
        self.assertNotIn("child.cgroups", stage.server.said())
        self.assertFalse(os.path.exists(path + "/server"))

    def test_control_without_the_kill_something_is_left(self):
        stage = self.stop_program("child.no_cgroup_kill")
        self.assertTrue(stage.running())

    def test_memory_and_processes_have_their_limit_in_it(self):
        path = self.cgroup()
        with open(path + "/cgroup.controllers", encoding="utf-8") as f:
            if not {"memory", "pids"} <= set(f.read().split()):
                self.skipTest("memory and pids are not in cgroups of version 2")
        stage = Stage(self, PLAIN, "box.alone", cgroup=path, processes=777,
                      memoryBytes=1 << 40)
        stage.ask("attacker")
        pid = stage.server_pid()
        with open(f"{path}/child-{pid}-1/pids.max", encoding="utf-8") as f:
            self.assertEqual(f.read(), "777\n")


def removed(folder):
    try:
        os.rmdir(folder)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


class Control(unittest.TestCase):
    def test_a_server_without_any_of_it_is_taken_over(self):
        uid = os.geteuid()
        stage = Stage(self, uid, "server.open", sandbox=False)
        found = stage.attack()
        table["off, as before"] = found
        self.assertEqual({k for k in found if found[k] != "open"} - OPTIONAL,
                         {"umount"} if uid else set(), found)
        self.assertIn("deliver.no_sandbox", stage.server.said())

    def test_a_server_that_forgets_the_paths(self):
        """The checks of the test can fail."""
        if landlock() < SERVES_FROM:
            self.skipTest("no Landlock here")
        case = SandboxTest()
        self.addCleanup(case.doCleanups)
        with self.assertRaises(AssertionError) as seen:
            case.holds("control", os.geteuid(), "box.open")
        self.assertIn("db-read", str(seen.exception))


def tearDownModule():
    path = os.environ.get("SANDBOX_TABLE")
    if not path:
        return
    rows = list(dict.fromkeys(k for found in table.values() for k in found))
    with open(path, "w", encoding="utf-8") as f:
        f.write("| attempt | " + " | ".join(table) + " |\n")
        f.write("|---" * (len(table) + 1) + "|\n")
        for row in rows:
            f.write(f"| {row} | " + " | ".join(
                found.get(row, "") for found in table.values()) + " |\n")


assert signalbox  # planted() changes which binary it starts
if __name__ == "__main__":
    unittest.main()
