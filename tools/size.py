#!/usr/bin/python3
"""How large the code is, and whether it grew: `tools/size.sh`.

    tools/size.sh            the tables; exit status 1 if a limit is broken
    tools/size.sh --write    lower the limits to today's figures

Counts the production code (src/, cli/ and lab/ without tests) by module, and
figures of the whole tree that should fall. tools/size.limits has a limit for
each. A figure above its limit fails. So does a limit that is more than 2 %
above its figure: run --write, which keeps the gain. To raise a limit, edit that
file by hand, and give the reason in the commit.
"""
import os
import re
import sys
from collections import Counter, defaultdict

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LIMITS = os.path.join(ROOT, "tools", "size.limits")
LONGEST = 150  # lines of a function
SLACK = 0.02

CODE = (".c", ".h", ".inc")
PROSE = CODE + (".md", ".py", ".js", ".mjs", ".css", ".html", ".sh", ".build",
                ".jsonc")
TREES = ("src", "cli", "lab")
# Data and third-party code.
NOT_OURS = ("node_modules", "corpus", "data", "screens")
# Longer functions are welcome up to here: a helper with one caller is folded
# into it where that stays under a screen.
CEILINGS = {"lines of a function that one in ten exceeds": 40,
            "lines of a function that one in a hundred exceeds": 100}
# name: (figure before, goal). Before is v0.1.0 for the first six and the
# production lines, and c8b499b9 for the others.
GOALS = {"loose files in src/": (57, 1), "modules": (29, 22),
         "units that may include everything": (44, 0),
         "function names that are not unique, of 1000": (262, 100),
         "nobody, whoever, somebody, whom, anew": (2919, 100),
         "comment sentences that begin with What, Who, Whose, Of": (1354, 200),
         "functions with exactly one caller, of 1000": (425, 300),
         "lines of a function that one in ten exceeds": (22, 40),
         "lines of a function that one in a hundred exceeds": (33, 100),
         "functions in a thousand lines": (65, 50),
         "production lines": (156727, 136000),
         "production lines without what routing and isolation added":
             (133565, 113000)}
ADDED_LINES = 156727 - 133565  # between c8b499b9 and v0.1.0

TOKEN = re.compile(r"""
    [A-Za-z_]\w* | \.?\d(?:[eEpP][+-]|[\w.])* | "(?:\\.|[^"\\\n])*"
  | '(?:\\.|[^'\\\n])*' | <<=|>>=|\.\.\.|->|\+\+|--|&&|\|\||[<>=!+\-*/%&|^]=
  | << | >> | \#\# | [^\s\w]""", re.X)
COMMENT = re.compile(r"""/\*.*?\*/ | //[^\n]*
  | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'""", re.S | re.X)
NAME = re.compile(r"[A-Za-z_]\w*(?:\(|\b)")  # with the bracket of a call
STATIC = re.compile(r"^static\b[^;={]*?\b(\w+)\(", re.M)
WORDS = re.compile(r"\b(nobody|whoever|somebody|whom|anew)\b", re.I)
SENTENCE = re.compile(r"(?:^|[.!?:]\s+)(What|Who|Whose|Of)\b")


def files(extensions, *tops):
    for top in tops:
        for folder, folders, names in os.walk(os.path.join(ROOT, top)):
            folders[:] = sorted(f for f in folders if f not in NOT_OURS
                                and not f.startswith((".", "build")))
            for name in sorted(names):
                if name.endswith(extensions):
                    yield os.path.relpath(os.path.join(folder, name), ROOT)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def split(text):
    """The code, each comment as one space and its line ends; the comments."""
    comments = []

    def blank(m):
        said = m.group(0)
        if said[0] != "/":
            return said
        comments.append(said)
        return " " + "\n" * said.count("\n")
    return COMMENT.sub(blank, text), comments


def sentences(comment):
    """The sentences of a comment that begin with a word that hides the
    subject."""
    said = re.sub(r"^\s*(/\*+|\*+/?|//+)\s?", "", comment, flags=re.M)
    said = re.sub(r"\s*\*/\s*$", "", said)
    return sum(len(SENTENCE.findall(" ".join(part.split())))
               for part in re.split(r"\n\s*\n", said))


def functions(code):
    """(name, lines) of each definition: its opening brace has its own line."""
    lines = code.split("\n")
    start = None
    for i, line in enumerate(lines):
        if line == "{" and start is None:
            start = i
        elif line.startswith("}") and start is not None:
            head = i0 = start
            while i0 > 0 and lines[i0 - 1].strip() and not re.match(
                    r"#|.*[;}]\s*$", lines[i0 - 1]):
                i0 -= 1
            said = re.sub(r"__attribute__\s*\(\([^;{]*?\)\)", " ",
                          " ".join(lines[i0:head]))
            name = re.search(r"([A-Za-z_]\w*)\s*\(", said)
            if name:
                yield name.group(1), i - start + 1
            start = None


def references(code):
    """The names in the bodies of functions, in initializers and in macros.
    Declarations refer to nothing."""
    is_inside = is_macro = False
    for line in code.split("\n"):
        if is_macro or line.startswith("#define"):
            said = line if is_macro else " ".join(line.split(None, 2)[2:])
            is_macro = line.endswith("\\")
            yield from NAME.findall(said)
        elif is_inside and not line.startswith("}"):
            yield from NAME.findall(line)
        elif line[:1].strip():
            is_inside = line == "{" or bool(re.search(r"=\s*{$", line))
            if " = " in line:
                yield from NAME.findall(line.split(" = ", 1)[1])


def is_called_once(found, name):
    """And not handed to others, who call it."""
    return found[name + "("] == 1 and not found[name]


def module_of(path):
    part = path.split("/")
    return part[1] if part[0] == "src" and len(part) > 2 else part[0]


def everything():
    """Units that tools/layers.sh lets include everything."""
    m = re.search(r'split\("([^"]*)", row\)\s*for \(i in row\)\s*'
                  r'level\[row\[i\]\] = 99', read("tools/layers.sh"))
    return len(m.group(1).split()) if m else 0


def measure():
    per = defaultdict(lambda: Counter(tokens=0, files=0, functions=0))
    names, long, tree = Counter(), [], Counter()
    called, external, lengths, once = Counter(), [], [], 0
    for path in files(CODE, *TREES):
        if path.endswith("_test.c"):
            continue
        code, comments = split(read(path))
        module = per[module_of(path)]
        module["files"] += 1
        module["tokens"] += len(TOKEN.findall(code))
        tree["lines"] += sum(1 for line in code.split("\n") if line.strip())
        tree["sentences"] += sum(map(sentences, comments))
        here = Counter(references(code))
        called.update(here)
        static = set(STATIC.findall(code))
        for name, n in functions(code):
            module["functions"] += 1
            names[name] += 1
            lengths.append(n)
            if name in static:
                once += is_called_once(here, name)
            else:
                external.append(name)
            if n > LONGEST:
                long.append(f"{path}: {name} has {n} lines, and the limit is "
                            f"{LONGEST}: look for a second function inside")
        tree["loose"] += os.path.dirname(path) == "src"
    shared = sum(n for n in names.values() if n > 1)
    once += sum(is_called_once(called, name) for name in external)
    lengths.sort()
    tree["words"] = sum(len(WORDS.findall(read(p)))
                        for p in files(PROSE, ".")
                        if os.path.basename(p) not in ("size.py",))
    whole = {
        "loose files in src/": tree["loose"],
        "modules": sum(1 for m in per if m != "src"),
        "units that may include everything": everything(),
        "function names that are not unique, of 1000":
            round(1000 * shared / max(1, sum(names.values()))),
        "nobody, whoever, somebody, whom, anew": tree["words"],
        "comment sentences that begin with What, Who, Whose, Of":
            tree["sentences"],
        "functions with exactly one caller, of 1000":
            round(1000 * once / max(1, sum(names.values()))),
        "lines of a function that one in ten exceeds":
            lengths[len(lengths) * 9 // 10] if lengths else 0,
        "lines of a function that one in a hundred exceeds":
            lengths[len(lengths) * 99 // 100] if lengths else 0,
        "functions in a thousand lines":
            round(1000 * len(lengths) / max(1, tree["lines"])),
        "production lines": tree["lines"],
        "production lines without what routing and isolation added":
            tree["lines"] - ADDED_LINES,
    }
    return per, whole, long


def rows(per, whole):
    for module in sorted(per):
        for what in ("tokens", "files", "functions"):
            yield f"{module} {what}", per[module][what]
    yield from whole.items()


def read_limits():
    limits = {}
    if os.path.exists(LIMITS):
        for line in read("tools/size.limits").split("\n"):
            if line and not line.startswith("#"):
                name, limit = line.rsplit("\t", 1)
                limits[name] = int(limit)
    return limits


def write_limits(found, limits):
    with open(LIMITS, "w", encoding="utf-8") as f:
        f.write("# The limits of tools/size.sh. --write lowers them. To raise "
                "one, edit it\n# here and give the reason in the commit.\n")
        for name, n in found:
            limit = CEILINGS.get(name, min(n, limits.get(name, n)))
            f.write(f"{name}\t{limit}\n")


def judge(found, limits):
    for name, n in found:
        limit = limits.get(name)
        if limit is None:
            yield f"{name}: {n}, and has no limit: tools/size.sh --write"
        elif n > limit:
            yield (f"{name}: {n}, and the limit is {limit}. Remove code "
                   "there, or raise the limit in tools/size.limits and give "
                   "the reason in the commit")
        elif name not in CEILINGS and limit - n > max(2, SLACK * limit):
            yield (f"{name}: {n}, and the limit is {limit}: keep the gain "
                   "with tools/size.sh --write")
    for name in limits.keys() - {name for name, _ in found}:
        yield f"{name}: is gone; tools/size.sh --write"


def show(per, whole, limits):
    print(f"{'module':12} {'files':>6} {'functions':>10} {'tokens':>9}")
    for module, m in sorted(per.items()):
        print(f"{module:12} {m['files']:6} {m['functions']:10} "
              f"{m['tokens']:9}")
    total = sum(per.values(), Counter())
    print(f"{'all':12} {total['files']:6} {total['functions']:10} "
          f"{total['tokens']:9}\n")
    print(f"{'':56} {'before':>8} {'limit':>8} {'now':>8} {'goal':>8}")
    for name, n in whole.items():
        before, goal = GOALS[name]
        print(f"{name:56} {before:8} {limits.get(name, ''):>8} {n:8} "
              f"{goal:8}")


def main(args):
    per, whole, long = measure()
    found = list(rows(per, whole))
    limits = read_limits()
    if args == ["--write"]:
        write_limits(found, limits)
        limits = read_limits()
    elif args:
        sys.exit("usage: tools/size.sh [--write]")
    show(per, whole, limits)
    wrong = [*long, *judge(found, limits)]
    print("\n".join(["", *wrong]) if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
