"""docs/seeds.md beside test/seeds: every row has one check, or names a test
that is run.

    rows(text)          id -> row, of the page
    checks(folder)      id -> [where], of the tests there: test_003_17_words
                        is a check of row 003-17
    wrong(...)          what does not fit, a line each

Rows stand in the order of their ids, and each seed says before them what they
need.

A row points to a test elsewhere by its file and its name, `search_test.test_x`,
or `text_test.x` for one in C. Where it does, it needs no check.
"""
import ast
import json
import os
import re

ROW = re.compile(r"^\| (\d{3}-\d{2}) \|(.*)\|$")
CHECK = re.compile(r"^test_(\d{3})_(\d{2})_")
POINTER = re.compile(r"`([a-z0-9_]+_test)\.([A-Za-z0-9_]+)`")
IMPORT = re.compile(r"^from (\w+) import", re.M)
CELL_MAX = 160
# What script/test runs, in one build or another.
SUITES = {"unit", "bare", "workshop", "flow", "e2e", "threads"}


def rows(text):
    """id -> (claim, where, how to see it); a row twice is kept as a list."""
    found = {}
    for line in text.splitlines():
        if row := ROW.match(line):
            cells = [c.strip() for c in row[2].split(" | ")]
            found.setdefault(row[1], []).append(cells)
    return found


def checks(sources):
    """id -> names of methods; sources are the texts of files by name."""
    found = {}
    for name, text in sources.items():
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.FunctionDef):
                continue
            if is_check := CHECK.match(node.name):
                found.setdefault("-".join(is_check.groups()), []).append(
                    f"{name}: {node.name}")
    return found


class Tests:
    """The tests that a build runs, by the names of their files."""

    def __init__(self, build, source):
        self.source = source
        self.files = {}
        path = os.path.join(build, "meson-info/intro-tests.json")
        with open(path, encoding="utf-8") as f:
            for test in json.load(f):
                suites = {s.split(":")[-1] for s in test["suite"]}
                if not suites & SUITES:
                    continue
                self.add(test["cmd"])
        self.c = {}
        for folder in ("src", "cli", "lab", "client", "test"):
            for at, _, names in os.walk(os.path.join(source, folder)):
                for name in names:
                    if name.endswith("_test.c"):
                        self.c.setdefault(name[:-2], []).append(
                            os.path.join(at, name))

    def add(self, command):
        """A script, a program of its own, or a file of a module's program."""
        last = command[-1]
        file = os.path.basename(last).split(".")[0]
        if len(command) == 2 and command[0].endswith("_tests"):
            file += "_test"
        self.files.setdefault(file, set()).add(last)

    def has(self, file, name):
        """Whether a test of that name is run."""
        for command in self.files.get(file, ()):
            if command.endswith(".py"):
                if self.has_method(command, name):
                    return True
            elif any(re.search(rf"^TEST\({name}\)", read(path), re.M)
                     for path in self.c.get(file, ())):
                return True
        return False

    def has_method(self, path, name):
        """In the file itself, or in what it takes from test/lib."""
        text = read(path)
        wanted = re.compile(rf"^    def {name}\(", re.M)
        if wanted.search(text):
            return True
        lib = os.path.join(self.source, "test/lib")
        return any(wanted.search(read(os.path.join(lib, m + ".py")))
                   for m in IMPORT.findall(text)
                   if os.path.exists(os.path.join(lib, m + ".py")))


def order(page):
    """What is not in its place."""
    before, is_said = "", True
    for line in page.splitlines():
        if line.startswith("## Seed "):
            is_said = False
        elif line.startswith("**Before you begin**"):
            is_said = True
        elif row := ROW.match(line):
            if not is_said:
                yield f"{row[1]}: nothing says what is needed before"
            if row[1] < before:
                yield f"{row[1]}: stands behind {before}"
            before, is_said = row[1], True


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def wrong(page, sources, has_test):
    """What does not fit; has_test(file, name) says whether one is run."""
    said = list(order(page))
    of_page, of_tests = rows(page), checks(sources)
    for line in page.splitlines():
        if re.match(r"^\| \W*\d", line) and not ROW.match(line):
            said.append(f"is no row: {line[:40]}")
    for id, found in sorted(of_page.items()):
        if len(found) != 1:
            said.append(f"{id}: is there {len(found)} times")
        cells = found[0]
        if len(cells) != 3 or not all(cells):
            said.append(f"{id}: must have a claim, a place and a way to see it")
            continue
        for cell in cells:
            if len(cell) > CELL_MAX:
                said.append(f"{id}: {len(cell)} characters in one cell")
        pointers = POINTER.findall(cells[2])
        for file, name in pointers:
            if not has_test(file, name):
                said.append(f"{id}: no test {file}.{name} is run")
        n = len(of_tests.get(id, ())) + bool(pointers)
        if n == 0:
            said.append(f"{id}: has no check")
        elif n > 1:
            said.append(f"{id}: has {n} checks")
    for id, names in sorted(of_tests.items()):
        if id not in of_page:
            said.append(f"{id}: has no row: {names[0]}")
    return said
