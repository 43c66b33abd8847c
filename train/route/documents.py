"""Pages that were translated, paragraph by paragraph: pairs of a text in
another language and the same in English, for parallel.py. Reads git folders of
projects whose pages have a free licence."""
import os
import re
import subprocess

# Where a project has the page PATH in the language LANG, and in English.
LAYOUTS = (("translations/LANG/PATH", "PATH"),
           ("content/LANG/PATH", "content/en/PATH"),
           ("public/content/translations/LANG/PATH", "public/content/PATH"))
FENCE = re.compile(r"^\s*(```|~~~)")
MARKS = re.compile(r"^\s*(?:[-*+]|\d+[.)]|>+|#+)\s*|\[[ xX]\]\s*")
SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])\s*|(?<=؟)\s+")


class Repository:
    def __init__(self, path):
        self.path = path
        self.files = set(self._git("ls-tree", "-r", "--name-only", "-z",
                                   "HEAD").split("\0"))

    def _git(self, *args):
        return subprocess.run(["git", "-C", self.path, *args], check=True,
                              capture_output=True).stdout.decode("utf8",
                                                                 "replace")

    def read(self, paths):
        """All of them by one process: path -> text."""
        paths = list(paths)
        run = subprocess.run(
            ["git", "-C", self.path, "cat-file", "--batch"], check=True,
            capture_output=True,
            input="".join(f"HEAD:{p}\n" for p in paths).encode()).stdout
        out, at = {}, 0
        for p in paths:
            end = run.index(b"\n", at)
            head = run[at:end].split(b" ")
            at = end + 1
            if head[-1] == b"missing":
                continue
            size = int(head[-1])
            out[p] = run[at:at + size].decode("utf8", "replace")
            at += size + 1
        return out


def plain_words(line):
    """A line without its markup."""
    line = re.sub(r"<[^<>]*>|\{[%{<#].*?[%}>]\}|\{#[^}]*\}", " ", line)
    line = re.sub(r"!\[[^\]]*\]\([^)]*\)", " ", line)
    line = re.sub(r"\[([^\]]*)\]\([^)]*\)|\[([^\]]*)\]\[[^\]]*\]",
                  lambda m: m[1] or m[2] or "", line)
    line = MARKS.sub("", line)
    return re.sub(r"\s+", " ", re.sub(r"[*`_|]+", " ", line)).strip()


def kind(line):
    if line.startswith("#"):
        return len(line) - len(line.lstrip("#"))
    if line.lstrip().startswith("|"):
        return "row"
    return "item" if MARKS.match(line) else "text"


def sections(page):
    """Lines with their kinds, cut at headings; no code, no front matter."""
    page = re.sub(r"\A---\n.*?\n---\n", "", page, flags=re.S)
    page = re.sub(r"<!--.*?-->", "", page, flags=re.S)
    out, is_code = [[]], False
    for line in page.split("\n"):
        if FENCE.match(line):
            is_code = not is_code
        elif not is_code and line.strip():
            if line.startswith("#"):
                out.append([])
            out[-1].append((kind(line), line))
    return out


def sentences(a, b):
    """Of two lines that say the same, what can be told to be the same."""
    some, others = SENTENCE.split(a), SENTENCE.split(b)
    if len(some) == len(others):
        yield from zip(some, others)
    elif len(a) <= 300 and len(b) <= 300:
        yield a, b


def pairs(foreign, english):
    """Sections that have the same lines of the same kinds."""
    a, b = sections(foreign), sections(english)
    # A translation ends with a note that says who translated it.
    if abs(len(a) - len(b)) > 1:
        return
    for some, others in zip(a, b):
        if [k for k, _ in some] != [k for k, _ in others]:
            continue
        for (_, x), (_, y) in zip(some, others):
            yield from sentences(plain_words(x), plain_words(y))


def read(folder, languages):
    """(language code, text, English) of every git folder below the folder."""
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if not os.path.exists(os.path.join(path, "HEAD")) and (
                not os.path.exists(os.path.join(path, ".git"))):
            continue
        repository = Repository(path)
        for there, here in LAYOUTS:
            pattern = re.compile(re.escape(there).replace("LANG", "([A-Za-z-]+)")
                                 .replace("PATH", r"(.+\.md)$"))
            found = [(p, m[1], here.replace("PATH", m[2])) for p in sorted(
                repository.files) for m in [pattern.match(p)] if m
                and m[1].lower() in languages]
            found = [f for f in found if f[2] in repository.files]
            text = repository.read({f[0] for f in found}
                                   | {f[2] for f in found})
            for p, code, english in found:
                if p in text and english in text:
                    for x, y in pairs(text[p], text[english]):
                        yield code, x, y
