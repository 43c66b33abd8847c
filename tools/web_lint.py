#!/usr/bin/python3
"""tools/web_lint.py [WEB]: what must hold of the dashboard's source.

Says each line that breaks a rule, and ends with 1 if any does:

- no way from a text to markup or code (innerHTML and the like): what agents
  write is shown as text, and the page's policy would refuse the rest;
- no address of anybody else's; what goes into a call's path goes through
  path`...`, so that it stays one part of it;
- imports lead to files that are there, and point down: main -> pages -> lib ->
  vendor; only lib and main know vendor;
- no file that cannot be read in a sitting, and no line that is longer than a
  window is wide, in test/web beside it neither; a regular expression alone on
  its line may be.
"""
import pathlib
import re
import sys

MOST_LINES = 350
MOST_COLUMNS = 120
PATTERN = re.compile(r"(export )?const \w+ = /.*/[a-z]*;")
VENDOR = {"preact.js", "hooks.js", "htm.js", "uplot.js", "uplot.css"}
LEVELS = {"vendor": 0, "lib": 1, "pages": 2, "": 3}

BANNED = [
    (r"\b(inner|outer)HTML\b|dangerouslySetInnerHTML|insertAdjacentHTML|"
     r"document\.write|createContextualFragment|setHTMLUnsafe|srcdoc",
     "makes markup of a text: use text nodes"),
    (r"\beval\s*\(|new Function\b|setTimeout\(\s*['\"`]|setInterval\(\s*['\"`]",
     "makes code of a text"),
    (r"\sstyle=(\"|')", "a style as text: the policy refuses it; use an object"),
    (r"\bon[a-z]+=(\"|')", "a handler as text: the policy refuses it"),
    (r"((https?|wss?):)?//(?!www\.w3\.org/)[a-z0-9-]+\.[a-z]",
     "an address of another user's"),
    (r"window\.open\(|target=[\"']?_blank|postMessage\(", "opens another window"),
]
# An API path with a value in it that is not path`...`.
LOOSE_PATH = re.compile(r"(?<!path)`/api/[^`]*\$\{")
IMPORT = re.compile(r"(?:^|[;\s])(?:import|export)\b[^'\"`;]*?from\s*'([^']+)'"
                    r"|import\s*\(\s*'([^']+)'\s*\)|^import\s*'([^']+)'", re.M)


def code_of(text):
    """The text without comments, lines kept."""
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group().count("\n"), text,
                  flags=re.S)
    return re.sub(r"(^|\s)//[^\n]*", r"\1", text)


def level_of(path):
    return LEVELS.get(path.parts[0] if len(path.parts) > 1 else "", 3)


def imports(web, name, code):
    for m in IMPORT.finditer(code):
        target = m.group(1) or m.group(2) or m.group(3)
        line = code.count("\n", 0, m.start(m.lastindex)) + 1
        if not target.startswith("."):
            yield line, f"imports '{target}': only files of ours, by their path"
            continue
        try:
            led = ((web / name).parent / target).resolve().relative_to(web)
        except ValueError:
            yield line, f"imports '{target}', outside the folder"
            continue
        if led.parts[0] == "vendor":
            if led.name not in VENDOR:
                yield line, f"imports '{target}', which is not packed"
            elif level_of(name) == LEVELS["pages"]:
                yield line, "a page knows vendor only through lib"
        elif not (web / led).is_file():
            yield line, f"imports '{target}', which is not there"
        elif level_of(led) > level_of(name):
            yield line, f"imports '{target}': imports point down"


def long_lines(text):
    for n, line in enumerate(text.split("\n"), 1):
        if len(line) > MOST_COLUMNS and not PATTERN.fullmatch(line):
            yield n, f"has {len(line)} columns; {MOST_COLUMNS} are a window"


def problems(web, name):
    text = (web / name).read_text(encoding="utf-8")
    code = code_of(text)
    yield from long_lines(text)
    if text.count("\n") > MOST_LINES:
        yield 1, f"has {text.count(chr(10))} lines; {MOST_LINES} are a sitting"
    for n, line in enumerate(code.split("\n"), 1):
        for pattern, why in BANNED:
            if re.search(pattern, line):
                yield n, why
        if LOOSE_PATH.search(line):
            yield n, "a value in a call's path: path`...` keeps it one part"
    yield from imports(web, name, code)


def main(folder):
    web = pathlib.Path(folder).resolve()
    names = sorted(p.relative_to(web) for p in web.rglob("*.js")
                   if "node_modules" not in p.parts)
    found = [(f"web/{name}", n, why)
             for name in names for n, why in problems(web, name)]
    for test in sorted((web.parent / "test" / "web").glob("*.mjs")):
        text = test.read_text(encoding="utf-8")
        found += [(f"test/web/{test.name}", n, why)
                  for n, why in long_lines(text)]
    for name, n, why in found:
        print(f"{name}:{n}: {why}")
    return 1 if found or not names else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else
                  pathlib.Path(__file__).parent.parent / "web"))
