"""Sessions of the documentation, run: a shell on a terminal, in a folder that
looks like a clone, and what it prints held against what the page says.

Stages:

    alone       no one but the shell; a page may start its own server with
                script/server or `signalbox serve`, which then runs on a
                terminal of its own until the page starts another
    server ...  a server on its first start, with options; $TOKEN is its
                admin's
    demo        signalbox demo, whose agents do not pause

The port is another one each time: 127.0.0.1:8787 in commands and in what they
print stands for it. A token, and an id that was printed before, are those of
this time wherever the page names its own.
"""
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
import fcntl
import time

from doc_pages import BIN, LEFT_OUT, SOURCE, values_of
from signalbox import DEADLINE_S, address_of, clean_environment, ready

USUAL = "127.0.0.1:8787"
COLUMNS = 160
LINKED = ("client", "docs", "test", "script", "tools", "data")
SERVERS = re.compile(r"(?:\S+=\S+ )*(?:script/server|(?:build/)?signalbox "
                     r"(serve|demo))(?![\w-])(.*)")
MARK = "\x1e"
# Lines that were taken back, and colours.
SHOWN = re.compile(r"[^\n]*\r(?!\n)(?:\x1b\[K)?|\r|\x1b\[[0-9;]*[A-Za-z]")

# What differs each time, and what may stand for it. Those with a name are
# remembered, so that a later command can use them.
KINDS = [
    ("id", r"\b(?:task|dec|conv|grant|tok|post|esc|msg|cli)_[0-9a-z]{20,}",
     r"{0}_[0-9a-z]{{20,}}"),
    ("token", r"sbx_[A-Za-z0-9_-]{43}", r"sbx_[A-Za-z0-9_-]{{43}}"),
    (None, r"\b[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT",
     r"\w+, \d\d \w+ \d{{4}} \d\d:\d\d:\d\d GMT"),
    (None, r"\d{4}-\d\d-\d\d([ T])\d\d:\d\d:\d\d(?:\.\d+)?Z?",
     r"\d{{4}}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?Z?"),
    (None, r"\b\d\d:\d\d:\d\d\b", r"\d\d:\d\d:\d\d"),
    (None, r"\b\d+(?:\.\d+)? ?(?:ms|s|m|h|d)\b",
     r"\d+(?:\.\d+)? ?(?:ms|s|m|h|d)"),
    (None, r"Content-Length: \d+", r"Content-Length: \d+"),
]
ANY_KIND = re.compile("|".join(f"({k[1].replace('([ T])', '[ T]')})"
                               for k in KINDS) + r"|(…)|([ \t]+)")


def pattern_of(line, names, known):
    """A regular expression for a line that the page shows; names gets what is
    remembered, one for each group."""
    out, at = "", 0
    for found in ANY_KIND.finditer(line):
        out += re.escape(line[at:found.start()])
        at = found.end()
        if found[0] == LEFT_OUT:
            out += ".*"
        elif not found[0].strip():
            out += r"[ \t]+"
        else:
            kind = KINDS[found.lastindex - 1]
            pattern = kind[2].format(found[0].split("_")[0])
            if found[0] in known:
                pattern = re.escape(known[found[0]])
            elif kind[0]:
                names.append(found[0])
                pattern = f"({pattern})"
            out += pattern
    return out + re.escape(line[at:]).replace(r"\ ", " ") + r"[ \t]*"


def match(expected, got, known):
    """None if what was printed is not what the page says, else what its ids
    and tokens are this time; some may be known from before."""
    names, pattern = [], ""
    for line in expected:
        pattern += r"(?:.*\n)*?" if line.strip() == LEFT_OUT else \
            pattern_of(line.rstrip(), names, known) + r"\n"
    found = re.fullmatch(pattern, got)
    return found and dict(zip(names, found.groups()))


def match_json(expected, got, names, key=""):
    """The same for JSON, by its values; times in ms are any."""
    if expected == LEFT_OUT:
        return True
    if isinstance(expected, dict):
        if not isinstance(got, dict):
            return False
        keys = set(expected) - {LEFT_OUT}
        return (keys == set(got) or (LEFT_OUT in expected and
                                     keys < set(got))) and \
            all(match_json(expected[k], got[k], names, k) for k in keys)
    if isinstance(expected, list):
        shown = expected[:-1] if expected[-1:] == [LEFT_OUT] else expected
        return isinstance(got, list) and (
            len(shown) == len(got) or len(shown) < len(expected)) and \
            all(match_json(a, b, names) for a, b in zip(shown, got))
    if isinstance(expected, str) and isinstance(got, str):
        now = match([expected], got + "\n", names)
        names.update(now or {})
        return now is not None
    if key.endswith("_ms") and expected and got:
        return isinstance(expected, int) and isinstance(got, int)
    return type(expected) is type(got) and expected == got


def split_json(lines):
    """Lines before JSON, and the JSON; None where there is none, or more than
    that."""
    for i, line in enumerate(lines):
        if line.startswith("{"):
            return lines[:i], "\n".join(lines[i:])
    return None


class Wrong(AssertionError):
    pass


class Terminal:
    """What a process on a terminal prints."""

    def __init__(self, argv, env, cwd, pass_fds=()):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ,
                    struct.pack("HHHH", 50, COLUMNS, 0, 0))
        modes = termios.tcgetattr(slave)
        modes[1] &= ~termios.OPOST
        modes[3] &= ~termios.ECHO
        termios.tcsetattr(slave, termios.TCSANOW, modes)
        self.process = subprocess.Popen(
            argv, env=env, cwd=cwd, stdin=slave, stdout=slave, stderr=slave,
            pass_fds=pass_fds, start_new_session=True)
        os.close(slave)
        self.text = ""

    def until(self, is_there, what):
        """Read until is_there(text) says something."""
        end = time.monotonic() + DEADLINE_S
        while not (found := is_there(self.text)):
            ready, _, _ = select.select([self.master], [], [],
                                        max(0, end - time.monotonic()))
            try:
                data = os.read(self.master, 65536) if ready else b""
            except OSError:
                data = b""
            if not data:
                raise Wrong(f"{what}; it printed:\n{self.text}")
            self.text += data.decode()
        return found

    def close(self, how=signal.SIGINT):
        if self.process.poll() is None:
            os.killpg(self.process.pid, how)
        end = time.monotonic() + DEADLINE_S
        while self.process.poll() is None and time.monotonic() < end:
            # What it still says must be taken, or it waits for us.
            ready, _, _ = select.select([self.master], [], [], 0.01)
            try:
                if ready:
                    os.read(self.master, 65536)
            except OSError:
                pass
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.master)


class Stage:
    def __init__(self, kind):
        self.folder = tempfile.mkdtemp(prefix="signalbox-docs-")
        self.names, self.server, self.others = {}, None, []
        self.address = self.token = None
        self.lay_out()
        read, self.commands = os.pipe()
        env = {"PATH": f"{self.folder}/build:{os.environ['PATH']}",
               "TERM": "xterm",
               "LANG": "C.UTF-8", "TZ": "UTC", "NO_COLOR": "1",
               "HOME": self.folder}
        if "SANITIZE" in os.environ:
            env["SANITIZE"] = os.environ["SANITIZE"]
        self.env = env
        self.bash = Terminal(
            ["bash", "--norc", "-c",
             f"while IFS= read -r -d '' -u {read} it; do eval \"$it\"\n"
             f"printf '{MARK}%s{MARK}' $?; done"],
            env, self.folder, pass_fds=[read])
        os.close(read)
        if kind == "demo":
            self.start("script/server")
        elif kind.split(" ")[0] == "server":
            self.start("script/server serve" + kind[len("server"):])
        elif kind != "alone":
            raise Wrong(f"there is no stage {kind}")
        if self.server:
            self.token = self.server.until(
                lambda text: re.search(r"sbx_[\w-]{43}", text), "no token")[0]
            self.shell(f"export SIGNALBOX_TOKEN={self.token} "
                       f"TOKEN={self.token}")

    def lay_out(self):
        """A folder like a clone, in which a page may write."""
        os.mkdir(os.path.join(self.folder, "build"))
        os.symlink(BIN, os.path.join(self.folder, "build", "signalbox"))
        client = os.path.join(os.path.dirname(BIN), "client")
        if os.path.exists(client):
            os.symlink(client, os.path.join(self.folder, "build", "client"))
        for name in LINKED:
            os.symlink(os.path.join(SOURCE, name),
                       os.path.join(self.folder, name))
        with open(os.path.join(self.folder, ".curlrc"), "w",
                  encoding="ascii") as f:
            f.write("no-styled-output\n")
        shutil.copytree(os.path.join(SOURCE, "examples"),
                        os.path.join(self.folder, "examples"))

    def close(self):
        for terminal in (*self.others, self.server, self.bash):
            if terminal:
                terminal.close()
        os.close(self.commands)
        shutil.rmtree(self.folder, ignore_errors=True)

    # What a page says, as it is this time, and back.

    def here(self, text):
        for name, now in self.names.items():
            text = text.replace(name, now)
        if self.token:
            text = re.sub(r"(?<==)sbx_[\w-]{43}", self.token, text)
        return text.replace(USUAL, self.address) if self.address else text

    def there(self, text):
        text = SHOWN.sub("", text).replace(BIN, "build/signalbox")
        text = text.replace(os.path.realpath(BIN), "build/signalbox")
        text = re.sub(r"    export SIGNALBOX_URL=.*\n", "", text)
        text = text.replace(self.folder + "/", "")
        return text.replace(self.address, USUAL) if self.address else text

    def shell(self, command):
        """Run it; its status and what it printed."""
        os.write(self.commands, command.encode() + b"\0")
        said, status, self.bash.text = self.bash.until(
            lambda text: text.split(MARK) if text.count(MARK) == 2 else None,
            f"no end of {command}")
        return status, said

    def start(self, command):
        """A server, on a terminal of its own, in place of the one before."""
        found = SERVERS.match(command)
        args = (found[1] or "").split() + found[2].split("#")[0].split()
        if args[:1] != ["serve"]:
            args = ["demo", "--pace", "0",
                    *(args[1:] if args[:1] == ["demo"] else args)]
        if self.server:
            self.server.close()
        self.server = Terminal(
            [BIN, *args, "--listen", self.address or "127.0.0.1:0"],
            {**clean_environment(), **self.env}, self.folder)
        url = self.server.until(
            lambda text: re.search(r"listening on http://(\S+?),?\s", text),
            "no server")
        self.address = url[1]
        self.shell(f"export SIGNALBOX_URL=http://{self.address}")

    # Steps.

    def step(self, command, expected):
        if command is None:
            self.wait(self.bash, expected)
        elif SERVERS.match(command) and "--json" not in command:
            self.start(self.here(command))
            self.wait(self.server, expected)
        elif "--follow" in command or command.startswith(("node ", "./")) or \
                "python3 examples" in command:
            self.go_on(self.here(command), expected)
        else:
            self.settle()
            status, got = self.shell(self.here(command))
            if not expected and status != "0":
                raise Wrong(f"it ended with {status}:\n{got}")
            self.judge(expected, self.there(got))

    def settle(self):
        """Anyone who types is slower than the server is at reading its cards."""
        try:
            if self.address:
                ready(address_of(f"http://{self.address}"))
        except ConnectionRefusedError:
            pass  # the page has ended it

    def go_on(self, command, expected):
        """Something that runs until the end, on a terminal of its own."""
        told = self.shell("export -p")[1]
        self.others.append(Terminal(["bash", "-c", told + "\nexec " + command
                                     if "=" not in command.split()[0] else
                                     told + "\n" + command],
                                    self.env, self.folder))
        if expected:
            self.wait(self.others[-1], expected)

    def wait(self, terminal, expected):
        """Until it has printed that, whatever comes behind it."""
        def is_there(text):
            lines = self.there(text).splitlines(True)
            for n in range(len(lines) + 1):
                found = match(expected, "".join(lines[:n]), self.names)
                if found is not None:
                    return found or True
            return None
        found = terminal.until(is_there, "not\n" + "\n".join(expected))
        terminal.text = ""
        if found is not True:
            self.names.update(found)

    def judge(self, expected, got):
        """Nothing said is nothing promised."""
        if not expected:
            return
        parts = split_json(expected)
        if parts and (got_parts := split_json(got.splitlines())):
            self.judge_json(parts, got_parts, got)
            return
        if got and not got.endswith("\n"):
            got += "\n"
        found = match(expected, got, self.names)
        if found is None:
            raise Wrong("the page says\n" + "\n".join(expected) +
                        "\n\nand it printed\n" + got)
        self.names.update(found)

    def judge_json(self, parts, got_parts, got):
        if parts[0]:
            self.judge(parts[0], "\n".join(got_parts[0]) + "\n")
        names = dict(self.names)
        said = values_of(parts[1])
        was = [json.loads(x) for x in got_parts[1].splitlines() if x]
        if len(said) != len(was) or not all(
                match_json(a, b, names) for a, b in zip(said, was)):
            raise Wrong("the page says\n" + parts[1] +
                        "\n\nand it printed\n" + got)
        self.names.update(names)
