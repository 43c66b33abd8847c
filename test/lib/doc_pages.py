"""The pages of the documentation, and what can be held against the source
without running anything: links, JSON, command lines.

What is written into a page for the tests is a comment that no one sees:

    <!-- run: STAGE -->          the blocks that follow, with lines "$ ...", are
                                 run on that stage (doc_stage.py has them)
    <!-- run: not, REASON -->    they are only read
    <!-- before: COMMANDS -->    run before the next block, and not shown
    <!-- file: NAME -->          the next block is that file, which is there
                                 before anything of its stage is run

and these are the rules by which an example may leave something out:

- in JSON, "…" stands for members or elements that are left out, or for a
  value; within a string it is part of it, and the end of a line is a blank.
  Several values may follow each other in one block. What is marked as jsonc is
  a signalbox.jsonc, with comments, or members of one; with empty lines
  between them each is another;
- in what a command prints, a line "…" is any number of lines, "…" in a line
  anything; ids, tokens, times, ages and ports are any of their kind, blanks
  count as one, and every other figure is what it is. A command that prints
  nothing here may print anything, but must end well.
"""
import json
import os
import re
import shlex
import subprocess
from urllib.parse import unquote

SOURCE = os.environ["SIGNALBOX_SOURCE"]
BIN = os.environ["SIGNALBOX_BIN"]
NOT_OURS = {"node_modules", ".git", "shared"}
FENCE = re.compile(r"^( *)```(.*)$")
DIRECTIVE = re.compile(r"^<!-- (run|before|file): (.*?) *-->$", re.S)
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]+)\)"
                  r"|<img [^>]*src=\"([^\"]+)\"|<a [^>]*href=\"([^\"]+)\"")


class Block:
    """A fenced block of a page."""

    def __init__(self, page, line, kind):
        self.page, self.line, self.kind = page, line, kind
        self.text = ""
        self.stage = ""      # what "run" said before it
        self.before = []     # commands
        self.file = None

    def __str__(self):
        return f"{self.page}:{self.line}"

    @property
    def is_session(self):
        return re.search(r"^\$ ", self.text, re.M) is not None

    def steps(self):
        """(line, command, what it prints) of a session; what stands before
        the first command belongs to the last one before it."""
        steps = [[self.line, None, []]]
        lines = self.text.splitlines()
        for i, line in enumerate(lines):
            last = steps[-1]
            if line.startswith("$ "):
                steps.append([self.line + i + 1, line[2:], []])
            elif last[1] is not None and not last[2] and is_open(last[1]):
                last[1] += "\n" + line
            else:
                last[2].append(line)
        return [x for x in steps if x[1] is not None or x[2]]


def is_open(command):
    """Whether a command goes on in the next line."""
    if command.endswith("\\"):
        return True
    try:
        shlex.split(command, comments=True)
        return False
    except ValueError:
        return True


class Page:
    def __init__(self, path, text=None):
        self.path = path
        if text is None:
            with open(os.path.join(SOURCE, path), encoding="utf-8") as f:
                text = f.read()
        self.text = text
        self.blocks = []
        self.prose = []      # (line, text), headings and directives left out
        self.anchors = set()
        self.read()

    def read(self):
        block, stage, before, file, said = None, "", [], None, None
        for n, line in enumerate(self.text.splitlines(), 1):
            fence = FENCE.match(line)
            if block is not None:
                if fence and not fence[2]:
                    block = None
                else:
                    block.text += line[indent:] + "\n"
                continue
            if said is not None or line.startswith("<!-- "):
                said = line if said is None else said + "\n" + line
                if not line.endswith("-->"):
                    continue
                found, said = DIRECTIVE.match(said), None
                if found and found[1] == "run":
                    stage = found[2]
                elif found and found[1] == "before":
                    before += found[2].split("\n")
                elif found:
                    file = found[2]
            elif fence:
                block, indent = Block(self.path, n, fence[2]), len(fence[1])
                block.stage, block.before, block.file = stage, before, file
                before, file = [], None
                self.blocks.append(block)
            elif line.startswith("#"):
                self.add_anchor(line.lstrip("#").strip())
                self.prose.append((n, line))
            else:
                self.prose.append((n, line))

    def add_anchor(self, heading):
        """As GitHub makes them."""
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = "".join(c for c in words if c.isalnum() or c in " -_")
        name = name.replace(" ", "-")
        n, given = 0, name
        while given in self.anchors:
            n += 1
            given = f"{name}-{n}"
        self.anchors.add(given)

    def spans(self):
        """(line, text) of what stands between backticks, also over a line's
        end."""
        text = "\n".join(line for _, line in self.prose)
        lines = [n for n, _ in self.prose]
        for found in re.finditer(r"(?<!`)`([^`]+)`(?!`)", text):
            at = text.count("\n", 0, found.start())
            yield lines[at], found[1].replace("\n", " ")

    def links(self):
        for n, line in self.prose:
            # What is code is no link.
            for found in LINK.finditer(re.sub(r"`[^`]*`", "``", line)):
                yield n, found[1] or found[2] or found[3]


def paths():
    """Of all pages there are."""
    found = []
    for folder, folders, files in os.walk(SOURCE):
        folders[:] = sorted(x for x in folders if x not in NOT_OURS
                            and not x.startswith(("build", ".")))
        found += [os.path.relpath(os.path.join(folder, x), SOURCE)
                  for x in sorted(files) if x.endswith(".md")]
    return found


def wrong_links(page, pages):
    """Lines of a page whose links lead nowhere; pages by their path."""
    wrong = []
    for n, target in page.links():
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = unquote(target).partition("#")
        path = os.path.normpath(os.path.join(os.path.dirname(page.path), path)
                                if path else page.path)
        if path.startswith("..") or \
                not os.path.exists(os.path.join(SOURCE, path)):
            wrong.append(f"{page.path}:{n}: there is no {target}")
        elif anchor and path in pages and anchor not in pages[path].anchors:
            wrong.append(f"{page.path}:{n}: no heading is {target}")
    return wrong


# A path that is named as such, not as a pattern or an example.
NAMED = re.compile(r"(?:src|cli|lab|test|tools|script|client|bench|train|docs|examples|"
                   r"web|data)/[a-z0-9_./-]*[a-z0-9/]$")


def wrong_paths(page):
    """Files that are named between backticks and are not there."""
    return [f"{page.path}:{n}: there is no {text}"
            for n, text in page.spans() if NAMED.match(text)
            and not os.path.exists(os.path.join(SOURCE, text))]


def settings():
    run = subprocess.run([BIN, "help", "config", "--json"], check=True,
                         stdout=subprocess.PIPE)
    return {json.loads(x)["setting"] for x in run.stdout.splitlines()}


def wrong_settings(page, known, source):
    """What looks like a setting, is none, and stands nowhere in the source
    either, as events of the log and methods do."""
    sections = {x.split(".")[0] for x in known if "." in x}
    return [f"{page.path}:{n}: there is no setting {text}"
            for n, text in page.spans()
            if re.fullmatch(r"[a-z]+(\.[a-zA-Z_]+)+", text)
            and text.split(".")[0] in sections and text not in known
            and not any(x.startswith(text + ".") for x in known)
            and not re.search("[A-Z]{2}", text) and text not in source]


def wrong_metrics(page, known):
    """Figures that /metrics does not have; signalbox_x_* are several."""
    return [f"{page.path}:{n}: there is no figure {name}"
            for n, text in page.spans()
            for name in re.findall(r"^(signalbox_[a-z_]+\*?|process_[a-z]+_"
                                   r"[a-z_]+)(?:\{.*)?$", text)
            if not any(x == name or (name.endswith("*") and
                                     x.startswith(name[:-1])) for x in known)]


# JSON.

TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|…|//[^\n]*|[{}\[\],:]|[^\s{}\[\],:"…]+')


def tokens_of(text):
    """Strings, brackets and the rest; comments and blanks are left out."""
    return [x for x in TOKENS.findall(text) if not x.startswith("//")]


LEFT_OUT = "…"


def whole(text):
    """The tokens of JSON in which what was left out is JSON too: a member
    "…", an element or a value "…"."""
    out, within = [], []
    for token in tokens_of(text):
        if token in ("{", "["):
            within.append(token)
        elif token in ("}", "]"):
            if out and out[-1] == ",":
                out.pop()
            within[-1:] = []
        elif token == LEFT_OUT:
            in_object = within and within[-1] == "{" and out[-1] != ":"
            if out and out[-1] not in ("{", "[", ",", ":"):
                out.append(",")  # {"a": 1 …}
            token = '"…":"…"' if in_object else '"…"'
        out.append(re.sub(r"\s*\n\s*", " ", token))
    return " ".join(out)


def values_of(text):
    """The values of a block, one behind the other. ValueError."""
    text, values, decoder = whole(text), [], json.JSONDecoder()
    while text:
        value, end = decoder.raw_decode(text)
        values.append(value)
        text = text[end:].lstrip()
    return values


def configurations(text):
    """Those of a block that is marked as jsonc."""
    if text.lstrip().startswith("{"):
        return [text]
    return ["{\n" + part + "\n}" for part in text.split("\n\n")]


def is_json(block):
    return block.kind.split(" ")[0] in ("json", "jsonc") or (
        block.kind == "" and re.match(r"\s*[{\[]", block.text) is not None)


def wrong_json(page):
    wrong = []
    for block in page.blocks:
        if not is_json(block):
            continue
        try:
            for text in configurations(block.text) \
                    if block.kind == "jsonc" else [block.text]:
                values_of(text)
        except ValueError as e:
            wrong.append(f"{block}: {e} in {whole(block.text)[:200]}")
    return wrong


# Command lines.

def commands():
    """What `signalbox help --json` tells, by name."""
    run = subprocess.run([BIN, "help", "--json"], check=True,
                         stdout=subprocess.PIPE)
    told = [json.loads(x) for x in run.stdout.splitlines()]
    hidden = {"command": "demo-agent", "options": [], "subcommands": []}
    return {x["command"]: x for x in (*told, hidden)}


def calls_in(line):
    """The words behind `signalbox`, of each call in a line of shell."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|<>()")
    lexer.whitespace_split = True
    lexer.commenters = "#"
    calls, words = [], None
    skip = False
    for word in lexer:
        if word.strip(";&|<>()") == "" and word:
            skip = word.strip("<>") == "" or word == "<("
            if not skip:
                words = None
        elif skip:
            skip = False  # a file
        elif words is not None:
            words.append(word)
        elif re.fullmatch(r"(?:\$\()?(?:build/)?signalbox", word):
            words = []
            calls.append(words)
    return [x for x in calls if x]


def stands_for_something(word):
    """A name in capitals, or something left out."""
    return re.search(r"[…$<]|\.\.\.", word) is not None or \
        re.fullmatch(r"\[?[A-Z][A-Z_ |]*\]?", word) is not None


def wrong_call(words, known, is_whole=True):
    """What is wrong with a call, or None. In prose the value of an option may
    be missing, and so may operands."""
    if words[0] in ("--help", "--version", "-h") or \
            stands_for_something(words[0]):
        return None
    if words[0] not in known:
        return f"there is no command {words[0]}"
    about = known[words[0]]
    options = {"--" + x["name"]: x for x in about["options"]}
    operands, given, rest = [], [], words[1:]
    while rest:
        word = rest.pop(0)
        name, equals, _ = word.partition("=")
        if not re.match(r"--[a-z]", word):
            operands += [] if word in ("-h", "--") else [word]
            continue
        if name not in options:
            return f"{words[0]} has no option {name}"
        given.append(name[2:])
        if options[name]["value"] and not equals:
            if not rest and is_whole:
                return f"{name} wants a value"
            rest[:1] = []
    return wrong_operands(about, operands, given)


def wrong_operands(about, operands, given):
    subs = {x["name"]: x for x in about["subcommands"]}
    if not subs or not operands or stands_for_something(operands[0]) or \
            re.match(r"(task|dec|esc)_", operands[0]) or \
            "ENVELOPE" in about["operands"]:
        return None
    if operands[0] not in subs:
        return f"{about['command']} has no {operands[0]}"
    for name in given:
        if name not in (*subs[operands[0]]["options"], "json", "help"):
            return f"--{name} is not for {about['command']} {operands[0]}"
    return None


def calls_of(page):
    """(line, words, whether it is whole) of every call that a page names."""
    for block in page.blocks:
        if block.kind not in ("", "sh", "console"):
            continue
        lines = [(n, command) for n, command, _ in block.steps()
                 if command is not None] if block.is_session else \
            list(enumerate(block.text.replace("\\\n", "").splitlines(),
                           block.line + 1))
        for n, line in lines:
            if "signalbox" in line and (block.is_session or re.match(
                    r"\s*(\S+=\S+ )*(build/)?signalbox [a-z]", line)):
                for words in calls_in(line):
                    yield n, words, block.is_session
    for n, text in page.spans():
        if re.match(r"(build/)?signalbox [a-z]", text):
            for words in calls_in(text):
                yield n, words, False


def wrong_calls(page, known):
    wrong = []
    for n, words, is_whole in calls_of(page):
        why = wrong_call(words, known, is_whole)
        if why:
            wrong.append(f"{page.path}:{n}: {why}: {' '.join(words)}")
    return wrong


def wrong_options(page, known, foreign):
    """Options that stand alone between backticks and that nothing of ours
    has."""
    ours = {"--" + x["name"] for c in known.values() for x in c["options"]}
    return [f"{page.path}:{n}: nothing has {name}"
            for n, text in page.spans()
            for name in re.findall(r"^--[a-z][a-z-]*", text)
            if name not in ours and name not in foreign]
