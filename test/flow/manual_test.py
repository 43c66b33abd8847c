"""What the shell and man know of the commands: nothing may be missing that
help tells, and nothing offered that is not taken. Bash itself completes, on a
terminal too, and groff sets the manual."""
import json
import os
import pty
import re
import select
import subprocess
import unittest

from client import BIN, USAGE, Client
from signalbox import DEADLINE_S, Server, clean_environment

SHARED = ["--json", "--help"]
EVERYWHERE = ("url", "ca", "token-file", "json", "help")

# Words of a command line, a tab between, on each line read; what completes the
# last of them on each line written.
DRIVER = r"""
source <("$0" completion bash)
while IFS= read -r line; do
    mapfile -t -d $'\t' COMP_WORDS < <(printf '%s' "$line")
    [[ $line != *$'\t' ]] || COMP_WORDS+=('')
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _signalbox
    (IFS=$'\t'; printf '%s\n' "${COMPREPLY[*]}")
done
"""


def help_of(*command):
    run = subprocess.run([BIN, "help", *command, "--json"], check=True,
                         stdout=subprocess.PIPE, env=clean_environment())
    return [json.loads(x) for x in run.stdout.splitlines()]


COMMANDS = help_of()


class Shell(Client):
    """A bash that completes what it is told."""

    def setUp(self):
        super().setUp()
        self.bash = None
        self.known = {"gate": ["stats", "audit"],  # or a file
                      "grants": ["list", "add", "remove"]}

    def complete(self, *words):
        """What could stand for the last of the words."""
        if not self.bash:
            self.bash = subprocess.Popen(
                ["bash", "--norc", "-c", DRIVER, BIN], text=True,
                cwd=self.home, env=self.env, stdin=subprocess.PIPE,
                stdout=subprocess.PIPE)
            self.addCleanup(self.end_bash)
        self.bash.stdin.write("\t".join((BIN, *words)) + "\n")
        self.bash.stdin.flush()
        return self.bash.stdout.readline().rstrip("\n").split("\t")

    def end_bash(self):
        self.bash.stdin.close()
        self.assertEqual(self.bash.wait(DEADLINE_S), 0)
        self.bash.stdout.close()

    def subs(self, command):
        """Its second words, by what it says to one that is none."""
        if command not in self.known:
            said = self.run_it(command, "nOnSenSe")[2]
            found = re.search(r"known: (.*)", said)
            self.known[command] = found[1].split(", ") if found else []
        return self.known[command]


class Completion(Shell):
    def test_every_command_and_none_besides(self):
        names = [x["command"] for x in COMMANDS]
        self.assertGreater(len(names), 30)
        self.assertEqual(self.complete(""), [*names, "--help", "--version"])
        self.assertEqual(self.complete("help", ""),
                         [*names, "api", "config", "options"])
        self.assertEqual(self.complete("es"), ["escalations"])
        self.assertEqual(self.complete("demo-"), [""])

    def test_every_option_of_every_command(self):
        for about in COMMANDS:
            options = ["--" + x["name"] for x in about["options"]]
            with self.subTest(about["command"]):
                self.assertEqual(options[-2:], SHARED)
                self.assertEqual(self.complete(about["command"], "--"),
                                 options)

    def test_every_second_word_and_the_options_it_takes(self):
        n = 0
        for about in COMMANDS:
            name, subs = about["command"], self.subs(about["command"])
            if not subs:
                self.assertNotRegex(about["operands"], "[|]")
                continue
            self.assertEqual([x for x in self.complete(name, "")
                              if not x.startswith(".")], subs)
            for sub in subs:
                with self.subTest(f"{name} {sub}"):
                    taken = self.taken(about, sub)
                    self.assertEqual(self.complete(name, sub, "--"), taken)
                    told, = [x for x in about["subcommands"]
                             if x["name"] == sub]
                    self.assertEqual(["--" + x for x in told["options"]],
                                     taken[:-len(SHARED)])
                    n += 1
        self.assertGreater(n, 40)

    def taken(self, about, sub):
        """The options that the command itself does not call another's. Those of
        every command that talks to a server are asked for once."""
        taken = []
        for x in about["options"]:
            if x["name"] in EVERYWHERE and sub != self.subs("tasks")[0]:
                taken.append("--" + x["name"])
                continue
            value = ["x"] if x["value"] else []
            said = self.run_it(about["command"], sub, "--" + x["name"],
                               *value, env={"SIGNALBOX_URL": "no address"})[2]
            if f"--{x['name']} is for \"" not in said:
                taken.append("--" + x["name"])
        return taken

    def test_what_is_offered_is_taken(self):
        """The command finds nothing wrong with any word that is offered behind
        an option."""
        n = 0
        self.env["SIGNALBOX_URL"] = "http://127.0.0.1:1"
        self.env["SIGNALBOX_TOKEN"] = "sbx_" + "a" * 43
        for about in COMMANDS:
            for x in about["options"]:
                option, name = "--" + x["name"], about["command"]
                if not x["value"]:
                    continue
                for word in self.complete(name, option, ""):
                    if word and not word.endswith("=") and "/" not in word:
                        with self.subTest(f"{name} {option} {word}"):
                            self.take(about, x, word)
                            n += 1
        self.assertGreater(n, 50)

    def take(self, about, x, word):
        """The option alone, behind each second word that it may follow."""
        said = []
        takes = {s["name"]: s["options"] for s in about["subcommands"]}
        for sub in takes or [None]:
            args = [sub] if sub else []
            if sub and x["name"] not in takes[sub]:
                continue
            said.append(self.run_it(about["command"], *args,
                                    "--" + x["name"], word)[2])
        self.assertTrue(said)
        for text in said:
            self.assertNotIn(f"\"{word}\"", text)
            self.assertNotIn("must be", text)

    def test_words_behind_options(self):
        for words, offered in (
                (["decisions", "--layer", "s"], ["sticky", "semantic"]),
                (["decisions", "list", "--layer", "=", "s"],
                 ["sticky", "semantic"]),
                (["decisions", "--layer", "="], ["explicit", "prefix",
                 "sticky", "binding", "intent", "semantic", "default",
                 "none"]),
                (["tasks", "--json", "--status", "f"], ["failed"]),
                (["tasks", "--status", "failed", "ca"], ["cancel"]),
                (["search", "--mode", ""], ["hybrid", "semantic", "text"]),
                (["decisions", "feedback", "dec_1", "w"], ["wrong"]),
                (["decisions", "stats", "g"], ["gaps"]),
                (["commands", "push", ""], ["telegram", "discord"]),
                (["serve", "--set", "routing.thr"], ["routing.threshold="]),
                (["send", "--wait", ""], [""]),
                (["nonsense", ""], [""]), (["nonsense", "--"], [""])):
            self.assertEqual(self.complete(*words), offered, words)

    def test_files_and_folders(self):
        for name in ("one.json", "two words.json"):
            open(os.path.join(self.home, name), "wb").close()
        os.mkdir(os.path.join(self.home, "olio"))
        self.assertEqual(sorted(self.complete("check", "o")),
                         ["olio", "one.json"])
        self.assertEqual(self.complete("check", "two"), ["two words.json"])
        self.assertEqual(self.complete("serve", "--data", "o"), ["olio"])
        self.assertEqual(self.complete("serve", "--config", "on"),
                         ["one.json"])
        self.assertEqual(self.complete("agents", "register", "olio", "on"),
                         ["one.json"])
        self.assertEqual(self.complete("gate", "on"), ["one.json"])

    def test_agents_of_the_running_server(self):
        with Server(agents=[{"id": "echo", "url": "echo:"},
                            {"id": "eager", "url": "echo:"}]) as server:
            self.env["SIGNALBOX_URL"] = server.url
            self.assertEqual(self.complete("send", "--to", "e"), [""])
            self.end_bash()
            self.use(server)
            self.bash = None
            self.assertEqual(self.complete("send", "--to", "e"),
                             ["eager", "echo"])
            self.assertEqual(self.complete("agents", "show", "ec"), ["echo"])
            self.assertEqual(self.complete("escalations", "redirect", "esc_1",
                                           ""), ["eager", "echo"])
        self.assertEqual(self.complete("send", "--to", "e"), [""])

    def test_nothing_of_it_offends_shellcheck(self):
        run = subprocess.run(["shellcheck", "-s", "bash", "-"], check=False,
                             input=self.good("completion", "bash"), text=True,
                             stdout=subprocess.PIPE)
        self.assertEqual(run.stdout, "")

    def test_other_shells_and_json_are_refused(self):
        self.assertIn("known: bash", self.bad(USAGE, "completion", "zsh"))
        self.assertEqual(self.good("completion"),
                         self.good("completion", "bash"))
        self.bad(USAGE, "completion", "--json")
        self.bad(USAGE, "man", "--json")


class OnATerminal(Client):
    def test_a_tab_completes(self):
        """Readline itself, in a bash that someone types into."""
        master, slave = pty.openpty()
        env = {**self.env, "TERM": "dumb", "PS1": "> ", "INPUTRC": "/dev/null",
               "PATH": os.path.dirname(BIN) + ":/usr/bin:/bin"}
        bash = subprocess.Popen(["bash", "--norc", "--noprofile", "-i"],
                                cwd=self.home, env=env, stdin=slave,
                                stdout=slave, stderr=slave,
                                start_new_session=True)
        os.close(slave)
        self.addCleanup(os.close, master)
        self.addCleanup(bash.wait)
        self.addCleanup(bash.kill)
        self.heard = ""
        os.write(master, b"source <(signalbox completion bash); echo re''ady\n")
        self.until(master, "\nready")
        for typed, becomes in ((b"signalbox esc\t", "signalbox escalations "),
                               (b"app\t", "approve "),
                               (b"esc_1 --com\t", "--comment "),
                               (b"\x15signalbox decisions --layer=st\t",
                                "--layer=sticky ")):
            os.write(master, typed)
            self.until(master, becomes)
        os.write(master, b"\x15exit\n")

    def until(self, master, text):
        while text not in self.heard:
            ready, _, _ = select.select([master], [], [], DEADLINE_S)
            self.assertTrue(ready, f"no {text!r} in {self.heard!r}")
            more = os.read(master, 65536).decode()
            self.heard += more.replace("\r\n", "\n")


def sections(page):
    """Heading -> text of a page that groff has set."""
    found, name = {}, None
    for line in page.splitlines():
        if line and not line.startswith(" "):
            name = line.strip()
        elif re.match(r" {3}\S", line):
            name = line.strip()
        found.setdefault(name, []).append(line)
    return found


def missing(page):
    """What help tells and the page does not."""
    there, lacks = sections(page), []
    for about in COMMANDS:
        name = f"signalbox {about['command']} {about['operands']}".strip()
        # A heading may be broken; its beginning is on the first line.
        text = [t for h, t in there.items()
                if h and h.startswith(f"signalbox {about['command']}")
                and name.startswith(h)]
        if len(text) != 1:
            lacks.append(name)
            continue
        for x in about["options"]:
            words = " ".join(filter(None, ("--" + x["name"], x["value"])))
            where = there["COMMANDS"] if "--" + x["name"] in SHARED else text[0]
            if not any(line.strip().startswith(words) for line in where):
                lacks.append(f"{name}: {words}")
    return lacks


class Manual(Client):
    def set_by_groff(self):
        run = subprocess.run(
            ["groff", "-man", "-ww", "-Tascii", "-P-cbou", "-rLL=400n"],
            input=self.good("man"), text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, check=True)
        self.assertEqual(run.stderr, "")
        return run.stdout

    def test_groff_has_nothing_to_warn_of_and_no_option_is_missing(self):
        page = self.set_by_groff()
        self.assertEqual(missing(page), [])
        headings = [x for x in page.splitlines() if x and x[0] != " "]
        self.assertEqual(headings[1:-1], [
            "NAME", "SYNOPSIS", "DESCRIPTION", "COMMANDS", "ENVIRONMENT",
            "FILES", "EXIT STATUS", "EXAMPLES"])

    def test_what_is_missing_would_be_found(self):
        page = self.set_by_groff()
        self.assertEqual(missing(page.replace("--fusion HOW", "")),
                         ["signalbox search WORDS...: --fusion HOW"])
        self.assertEqual(missing(page.replace("signalbox holds\n", "\n")),
                         ["signalbox holds"])

    def test_it_says_what_help_says(self):
        page = re.sub(r"\s+", " ", self.set_by_groff())
        for about in COMMANDS:
            for x in about["options"]:
                self.assertIn(x["what"], page)

    def test_commands_can_be_copied_from_it(self):
        """Minus signs, quotes and the like as a shell wants them."""
        page = self.set_by_groff()
        self.assertIn("    signalbox agents patch engineer "
                      "'{\"visibility\": \"shared\"}'\n", page)
        self.assertIn(" --data ~/signalbox\n", page)
        self.assertTrue(page.isascii())

    def test_both_are_installed(self):
        folder = os.path.dirname(BIN)
        run = subprocess.run(["meson", "introspect", "--installed", folder],
                             check=True, stdout=subprocess.PIPE)
        where = {os.path.relpath(k, folder): v
                 for k, v in json.loads(run.stdout).items()}
        self.assertTrue(where["docs/signalbox.1"].endswith(
            "/man/man1/signalbox.1"))
        self.assertTrue(where["docs/signalbox"].endswith(
            "/share/bash-completion/completions/signalbox"))


if __name__ == "__main__":
    unittest.main()
