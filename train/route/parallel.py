"""Pairs of a text in another language and the same in English, out of packages
that registries offer under free licences: parallel.jsonl.gz, lines of
[language, source, text, English].

    parallel.py --out FILE [--frontend WHEEL] [--cldr TGZ] [--typescript TGZ]
                [--debian FOLDER] [--places TGZ] [--scratch TGZ]
                [--documents FOLDER] [--editor GIT] [--chat GIT]
                [--sentences GIT]

WHEEL     home-assistant-frontend (Apache-2.0): texts of its user interface
TGZ       cldr-annotations-full (Unicode-3.0): names and keywords of emoji;
          typescript 5.x (Apache-2.0): messages of its compiler;
          @openstreetmap/id-tagging-schema (ISC): names of places and things;
          scratch-l10n 4.0.31 (BSD-3-Clause; later ones are AGPL): texts of an editor and of web pages
FOLDER    git folders of projects with translated pages (documents.py);
          lists of apt with Translation-* of the languages: descriptions of
          packages (each package's own licence, free by Debian's guidelines)
GIT       microsoft/vscode-loc (MIT): texts of an editor. Its English is that
          of the pack qps-ploc, which replaces letters one by one;
          RocketChat/Rocket.Chat (MIT outside ee/): texts of a chat program;
          Helsinki-NLP/Tatoeba-Challenge: sentences of its development and test
          parts (CC BY 2.0 FR, by the contributors of Tatoeba)

What is missing is left out. Texts with place-holders are cut at them.
"""
import argparse
import gzip
import hashlib
import json
import os
import re
import subprocess
import tarfile
import zipfile

import documents

LANGS = ("de", "es", "fr", "it", "pt", "nl", "pl", "ru", "tr", "zh", "ja",
         "ko", "ar")
HOLE = re.compile(r"\{[^{}]*\}|<[^<>]*>|%\w|\[\w+\]")
# At most so many of one source and language.
MOST = {"debian": 14000, "home-assistant": 9000, "cldr": 6000,
        "typescript": 2500, "places": 4000, "scratch": 3000,
        "documents": 30000, "editor": 14000, "chat": 5000,
        "sentences": 25000}
# What the pack qps-ploc writes for a letter.
DISGUISED = str.maketrans("ÆßÇÐËÏ£ÑØ§ÜÝæþçðëïñøµÿ", "ABCDEILNOSUYabcdeinouy")
TATOEBA = {"deu": "de", "spa": "es", "fra": "fr", "ita": "it", "por": "pt",
           "nld": "nl", "pol": "pl", "rus": "ru", "tur": "tr", "cmn": "zh",
           "jpn": "ja", "kor": "ko", "ara": "ar"}


def language(code):
    """Without the country: however Chinese and Portuguese are written."""
    return re.split("[_-]", code)[0].lower()


def clean(text):
    text = re.sub(r"\s+", " ", HOLE.sub(" ", text)).strip(" .:")
    return text[:300]


def is_good(text, english):
    return (text and english and text.lower() != english.lower()
            and 2 <= len(text) and len(english) >= 3
            and 0.25 < len(text.encode()) / len(english.encode()) < 6
            and "|" not in text and "{" not in text and "{" not in english)


def flat(tree, path=()):
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from flat(value, path + (key,))
        elif isinstance(value, str):
            yield path + (key,), value


def shared_keys(trees):
    """Texts that stand under the same key as an English one. trees: language
    code -> key -> text."""
    for code, tree in trees.items():
        for key, value in tree.items() if code != "en" else ():
            if key in trees["en"]:
                yield language(code), clean(value), clean(trees["en"][key])


def frontend(path):
    """The translations lie in fragments, each with a hash in its name."""
    found = {}
    with zipfile.ZipFile(path) as wheel:
        for name in sorted(wheel.namelist()):
            m = re.search(r"static/translations/(?:(.*)/)?([A-Za-z-]+)-"
                          r"[0-9a-f]{8,}\.json$", name)
            if not m:
                continue
            lang = language(m[2])
            if lang not in LANGS + ("en",):
                continue
            for key, value in flat(json.loads(wheel.read(name)), (m[1],)):
                found.setdefault(lang, {}).setdefault(key, value)
    yield from shared_keys(found)


def cldr(path):
    names = {}
    with tarfile.open(path) as tar:
        for member in tar:
            m = re.search(r"annotations/([A-Za-z-]+)/annotations.json$",
                          member.name)
            if not m or m[1] not in LANGS + ("en", "zh-Hant"):
                continue
            tree = json.load(tar.extractfile(member))
            names[m[1]] = tree["annotations"]["annotations"]
    for code, of in names.items():
        for sign, a in of.items() if code != "en" else ():
            b = names["en"].get(sign)
            if not b:
                continue
            if a.get("tts") and b.get("tts"):
                yield language(code), a["tts"][0], b["tts"][0]
            if a.get("default") and b.get("default"):
                yield (language(code), ", ".join(a["default"][:12]),
                       ", ".join(b["default"][:12]))


def typescript(path):
    """English is the key's own wording."""
    with tarfile.open(path) as tar:
        for member in tar:
            m = re.search(r"lib/([a-z-]+)/diagnosticMessages.generated.json$",
                          member.name)
            if not m or language(m[1]) not in LANGS:
                continue
            for key, value in json.load(tar.extractfile(member)).items():
                english = re.sub(r"_\d+$", "", key).replace("_", " ")
                yield language(m[1]), clean(value), clean(english)


def places(path):
    trees = {}
    with tarfile.open(path) as tar:
        for member in tar:
            m = re.search(r"dist/translations/([A-Za-z-]+)\.json$",
                          member.name)
            if m and (m[1] == "en" or m[1] in LANGS + (
                    "pt-BR", "zh-CN", "zh-TW")):
                trees[m[1]] = dict(flat(json.load(tar.extractfile(member))[
                    m[1]]))
    yield from shared_keys(trees)


def scratch(path):
    found = {}
    with tarfile.open(path) as tar:
        for member in tar:
            m = re.search(r"package/(.*)/([A-Za-z-]+)\.json$", member.name)
            if m and language(m[2]) in LANGS + ("en",):
                for key, value in flat(json.load(tar.extractfile(member))):
                    found.setdefault(m[2], {})[(m[1], *key)] = value
    yield from shared_keys(found)


def pages(folder):
    wanted = set(LANGS) | {"pt-br", "pt-pt", "br", "zh-cn", "zh-tw", "tw"}
    for code, text, english in documents.read(folder, wanted):
        code = {"br": "pt", "tw": "zh"}.get(code.lower(), code)
        yield language(code), clean(text), clean(english)


def editor(path):
    repository, trees = documents.Repository(path), {}
    found = {p: m[1] for p in repository.files for m in [re.fullmatch(
        r"i18n/vscode-language-pack-([\w-]+)/translations/main\.i18n\.json",
        p)] if m}
    for p, text in repository.read(sorted(found)).items():
        code = {"qps-ploc": "en"}.get(found[p], found[p])
        if language(code) in LANGS + ("en",):
            trees[code] = dict(flat(json.loads(text.lstrip("\ufeff"))[
                "contents"]))
    trees["en"] = {k: v.translate(DISGUISED) for k, v in trees["en"].items()}
    yield from shared_keys(trees)


def chat(path):
    repository = documents.Repository(path)
    found = {p: m[1] for p in repository.files for m in [re.fullmatch(
        r"packages/i18n/src/locales/([\w-]+)\.i18n\.json", p)]
        if m and language(m[1]) in LANGS + ("en",)}
    yield from shared_keys({found[p]: dict(flat(json.loads(text))) for p, text
                            in repository.read(sorted(found)).items()})


def sentences(path):
    """Lines of two languages and their texts; the largest files may be
    missing in a copy."""
    repository = documents.Repository(path)
    wanted = [p for p in sorted(repository.files) if re.match(
        r"data/(dev|test|devtest)/(eng-\w+|\w+-eng)/", p)
        and p.endswith(".txt") and set(p.split("/")[2].split("-"))
        - {"eng"} <= {*TATOEBA, "zho"}]
    for text in repository.read(wanted).values():
        for line in text.split("\n"):
            part = line.split("\t")
            if len(part) != 4:
                continue
            (a, x), (b, y) = sorted(((p[:3], t) for p, t in zip(
                part[:2], part[2:])), key=lambda p: p[0] == "eng")
            if b == "eng" and a in TATOEBA:
                yield TATOEBA[a], clean(x), clean(y)


def stanzas(path):
    text = subprocess.run(["lz4", "-dc", path], check=True,
                          capture_output=True).stdout.decode("utf8", "replace")
    for stanza in text.split("\n\n"):
        m = re.search(r"^Description-md5: (\w+)$", stanza, re.M)
        d = re.search(r"^Description-[\w@]+: (.*)$((?:\n .*)*)", stanza[
            m.end() if m else 0:], re.M)
        if m and d:
            body = [x.strip() for x in d[2].split("\n")[1:]]
            first = " ".join(body[:body.index(".")] if "." in body else body)
            yield m[1], d[1].strip(), first


def debian(folder):
    files = [f for f in sorted(os.listdir(folder)) if "Translation-" in f
             and "bookworm_main" in f]
    english = {}
    for f in files:
        if "Translation-en" in f:
            english.update((k, (a, b)) for k, a, b in
                           stanzas(os.path.join(folder, f)))
    for f in files:
        lang = language(re.search(r"Translation-([\w%]+)", f)[1].replace(
            "%5f", "_"))
        if lang not in LANGS:
            continue
        for key, a, b in stanzas(os.path.join(folder, f)):
            if key not in english:
                continue
            yield lang, clean(a), clean(english[key][0])
            if b and english[key][1]:
                yield lang, clean(b), clean(english[key][1])


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--out", required=True)
    for name in ("frontend", "cldr", "typescript", "debian", "places",
                 "scratch", "documents", "editor", "chat", "sentences"):
        p.add_argument("--" + name)
    a = p.parse_args()
    rows, counts = [], {}
    for source, read, path in (("home-assistant", frontend, a.frontend),
                               ("cldr", cldr, a.cldr),
                               ("typescript", typescript, a.typescript),
                               ("debian", debian, a.debian),
                               ("places", places, a.places),
                               ("scratch", scratch, a.scratch),
                               ("documents", pages, a.documents),
                               ("editor", editor, a.editor),
                               ("chat", chat, a.chat),
                               ("sentences", sentences, a.sentences)):
        seen = set()
        for lang, text, english in read(path) if path else ():
            if is_good(text, english) and (lang, text) not in seen:
                seen.add((lang, text))
                rows.append((lang, source, text, english))
    # In an order that says nothing, so that a limit takes of everything.
    rows.sort(key=lambda r: hashlib.sha1("\0".join(r).encode()).digest())
    kept = []
    for r in rows:
        counts[r[:2]] = counts.get(r[:2], 0) + 1
        if counts[r[:2]] <= MOST[r[1]]:
            kept.append(r)
    kept.sort()
    with open(a.out, "wb") as raw, gzip.GzipFile(
            filename="", mode="wb", fileobj=raw, mtime=0) as f:
        for r in kept:
            f.write((json.dumps(r, ensure_ascii=False) + "\n").encode())
    for key, n in sorted(counts.items()):
        print(*key, min(n, MOST[key[1]]))
    print(len(kept), "pairs")


if __name__ == "__main__":
    main()
