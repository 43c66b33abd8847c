#!/usr/bin/python3
"""tools/twice.py [ROOT]: nothing is said twice in the Markdown of the project.

That is how a merge looks that kept both sides. Says each place, and ends with 1
if there is any:

- a paragraph, or a point of a list, that occurs twice in all the pages;
- a sentence that occurs twice in one page, or a run of words that does so in one
  paragraph: it was broken off and begun again;
- a row that occurs twice in one table, or begins as another does, in its first
  cell and the words behind it.

Short ones may repeat; blocks of code and comments are no text.
"""
import pathlib
import re
import sys

PARAGRAPH = 80  # characters; what is shorter may occur twice
SENTENCE = 60
RUN = 10        # words
ROW = 20        # characters behind the first cell
SHOWN = 60
# What others made.
ELSEWHERE = {"node_modules", ".git", "shared"}

FENCE = re.compile(r"\s*(```|~~~)")
COMMENT = re.compile(r"<!--.*?-->", re.S)
POINT = re.compile(r"\s*([-*+]|\d+[.)]) ")
RULE = re.compile(r"[\s|:-]+$")


def pages(root):
    for path in sorted(root.rglob("*.md")):
        parts = path.relative_to(root).parts
        if not ELSEWHERE.intersection(parts) and \
                not parts[0].startswith("build"):
            yield path


def lines_of(text):
    """(number, line) of what is text; code and comments are empty lines."""
    text = COMMENT.sub(lambda m: re.sub(r"[^\n]", "", m[0]), text)
    in_code = False
    for n, line in enumerate(text.split("\n"), 1):
        is_fence = FENCE.match(line)
        yield n, "" if is_fence or in_code else line
        in_code ^= bool(is_fence)


def blocks_of(text):
    """(number of the first line, lines) of paragraphs, points and tables."""
    block, begin = [], 0
    for n, line in lines_of(text):
        if block and (not line.strip() or POINT.match(line)):
            yield begin, block
            block = []
        if line.strip():
            begin = begin if block else n
            block.append(line)
    if block:
        yield begin, block


def words_of(block, begin):
    """(number of its line, word)."""
    return [(n, word) for n, line in enumerate(block, begin)
            for word in line.split()]


def sentences_of(words):
    """(number of the line where it begins, sentence)."""
    sentence = []
    for n, word in words:
        sentence.append((n, word))
        if word[-1] in ".:;?!":
            yield sentence[0][0], " ".join(w for _, w in sentence)
            sentence = []
    if sentence:
        yield sentence[0][0], " ".join(w for _, w in sentence)


def runs_of(words):
    for i in range(len(words) - RUN + 1):
        yield words[i][0], " ".join(w for _, w in words[i:i + RUN])


class Twice:
    def __init__(self):
        self.found = []
        self.paragraphs = {}

    def note(self, seen, key, place, what, text):
        """Whether it was there already."""
        if key in seen:
            page, n = seen[key]
            where = f"line {n}" if page == place[0] else f"{page}:{n}"
            self.found.append(f"{place[0]}:{place[1]}: {what} is in {where} "
                              f"already: {text[:SHOWN]}")
            return True
        seen[key] = place
        return False

    def table(self, page, begin, rows):
        seen = {}
        for n, row in enumerate(rows, begin):
            cells = [" ".join(c.split()) for c in row.strip(" |").split("|")]
            rest = " | ".join(cells[1:])
            if RULE.match(row):
                continue
            key = (cells[0], rest[:ROW] if cells[0] and len(rest) >= ROW
                   else rest)
            self.note(seen, key, (page, n), "this row", " | ".join(cells))

    def page(self, name, text):
        sentences = {}
        for begin, block in blocks_of(text):
            if block[0].lstrip().startswith("|"):
                self.table(name, begin, block)
                continue
            words = words_of(block, begin)
            whole = " ".join(w for _, w in words)
            if len(whole) >= PARAGRAPH and self.note(
                    self.paragraphs, whole, (name, begin), "this paragraph",
                    whole):
                continue
            if any([self.note(sentences, s, (name, n), "this sentence", s)
                    for n, s in sentences_of(words) if len(s) >= SENTENCE]):
                continue
            runs = {}
            for n, run in runs_of(words):
                if self.note(runs, run, (name, n), "this run of words", run):
                    break


def main(root="."):
    root = pathlib.Path(root)
    twice = Twice()
    for path in pages(root):
        twice.page(str(path.relative_to(root)),
                   path.read_text(encoding="utf-8"))
    print("\n".join(twice.found), end="\n" if twice.found else "")
    return 1 if twice.found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
