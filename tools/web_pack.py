#!/usr/bin/env python3
"""tools/web_pack.py WEB OUT.c OUT.blob OUT.d: the dashboard as one C table.

WEB is the folder with index.html, its scripts and its style, and with
node_modules as tools/npm_get.py makes it. OUT.blob has the bytes of all files,
plain and, where that is smaller, as gzip; OUT.c takes it in (.incbin: an array
in C would keep the compiler busy) and says where each begins; OUT.d tells
ninja what was read. The same files always make the same bytes.

All lie in one folder that is named by a hash of everything in it, so that a
browser may keep them for ever and never mixes two versions. index.html, which
is asked for again each time, has %ASSETS% where that folder goes."""
import gzip
import hashlib
import os
import re
import sys

# Of the folder itself only these; of those below it, everything.
TOP = (".css", ".html", ".js", ".svg")
BELOW = ("lib", "pages")
INDEX = "index.html"
PLACEHOLDER = b"%ASSETS%"

PREACT = b'"preact"'
VENDOR = (
    # where it goes, where it comes from, what is put behind it
    ("vendor/preact.js", "preact/dist/preact.module.js", b""),
    ("vendor/hooks.js", "preact/hooks/dist/hooks.module.js", b""),
    ("vendor/htm.js", "htm/dist/htm.module.js", b""),
    # The module that comes with it is not minified.
    ("vendor/uplot.js", "uplot/dist/uPlot.iife.min.js",
     b"export default uPlot;\n"),
    ("vendor/uplot.css", "uplot/dist/uPlot.min.css", b""),
)
LICENSES = (("htm", "htm/LICENSE"), ("preact", "preact/LICENSE"),
            ("uPlot", "uplot/LICENSE"))


def die(what):
    print(f"web_pack: {what}", file=sys.stderr)
    sys.exit(1)


class Reader:
    """Reads files and remembers which, for ninja."""

    def __init__(self):
        self.seen = []

    def read(self, path):
        self.seen.append(path)
        try:
            with open(path, "rb") as f:
                return f.read()
        except OSError as e:
            return die(f"{path}: {e.strerror}")

    def names(self, folder):
        """Without what editors leave behind."""
        self.seen.append(folder)
        return [name for name in sorted(os.listdir(folder))
                if name[0] not in ".#" and name[-1] not in "~#"]


def own_files(reader, web):
    files = {}
    for name in reader.names(web):
        if name.endswith(TOP):
            files[name] = reader.read(os.path.join(web, name))
    folders = list(BELOW)
    while folders:
        folder = folders.pop()
        if not os.path.isdir(os.path.join(web, folder)):
            continue
        for name in reader.names(os.path.join(web, folder)):
            path = f"{folder}/{name}"
            if os.path.isdir(os.path.join(web, path)):
                folders.append(path)
            else:
                files[path] = reader.read(os.path.join(web, path))
    return files


def without_map(text):
    """A source map that is not there would be asked for in vain."""
    return re.sub(rb"//[#@] sourceMappingURL=\S*\n?", b"", text)


def vendor_files(reader, web):
    modules = os.path.join(web, "node_modules")
    if not os.path.isdir(modules):
        die("web/node_modules is not there; tools/npm_get.py fetches it")
    files = {}
    for path, source, tail in VENDOR:
        text = without_map(reader.read(os.path.join(modules, source)))
        if text and not text.endswith(b"\n"):
            text += b"\n"
        files[path] = text + tail
    hooks = files["vendor/hooks.js"]
    if hooks.count(b"from" + PREACT) != 1:
        die("hooks.module.js does not import \"preact\" as it did")
    files["vendor/hooks.js"] = hooks.replace(b"from" + PREACT,
                                             b'from"./preact.js"')
    files["vendor/LICENSES.txt"] = b"\n\n".join(
        name.encode() + b"\n\n" + reader.read(os.path.join(modules, path))
        for name, path in LICENSES)
    return files


def hash_of(files):
    whole = hashlib.sha256()
    for path in sorted(files):
        whole.update(b"%d %s %d\n" % (len(path), path.encode(),
                                      len(files[path])))
        whole.update(files[path])
    return whole.hexdigest()[:16]


def c_string(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def lay_out(files):
    """The blob, and a line of C for each file."""
    blob, lines = bytearray(), []

    def put(data):
        at = len(blob)
        blob.extend(data)
        return f"{{web_blob + {at}, {len(data)}}}" if data else "{0}"

    for path in sorted(files, key=str.encode):
        data = files[path]
        packed = gzip.compress(data, 9, mtime=0)
        if len(packed) >= len(data):
            packed = b""
        tag = hashlib.sha256(data).hexdigest()[:16]
        lines.append(
            f"    {{STR_C({c_string(path)}),\n"
            f"     {put(data)}, {put(packed)}, \"{tag}\"}},\n")
    return bytes(blob), lines


def c_source(blob_path, folder, blob, lines):
    # The sum is there so that this text changes whenever the blob does.
    return f"""/* Made by tools/web_pack.py. {hashlib.sha256(blob).hexdigest()} */
#include "api/web/internal.h"

#define STR_C(s) {{s, sizeof(s) - 1}}

__asm__(".pushsection .rodata\\n"
        ".global web_blob\\n"
        ".hidden web_blob\\n"
        "web_blob:\\n"
        ".incbin {c_string(c_string(os.path.abspath(blob_path)))[1:-1]}\\n"
        ".byte 0\\n"
        ".popsection\\n");
extern const char web_blob[];

const char web_packed_folder[] = "{folder}";
const struct web_file web_packed[] = {{
{"".join(lines)}}};
const size_t n_web_packed = sizeof(web_packed) / sizeof(web_packed[0]);
"""


def write(path, data):
    """Not what is there already: ninja then has nothing more to do."""
    if os.path.exists(path):
        with open(path, "rb") as f:
            if f.read() == data:
                return
    with open(path, "wb") as f:
        f.write(data)


def depfile(target, seen):
    escaped = [os.path.abspath(path).replace(" ", "\\ ") for path in seen]
    return f"{target}: " + " \\\n  ".join(escaped) + "\n"


def main(argv):
    web, c_path, blob_path, d_path = argv[1:]
    reader = Reader()
    files = own_files(reader, web)
    if PLACEHOLDER not in files.get(INDEX, b""):
        die(f"{INDEX} is not there, or has no {PLACEHOLDER.decode()} in it")
    files.update(vendor_files(reader, web))
    folder = hash_of(files)
    files[INDEX] = files[INDEX].replace(PLACEHOLDER,
                                        f"/assets/{folder}".encode())
    blob, lines = lay_out(files)
    write(blob_path, blob)
    write(c_path, c_source(blob_path, folder, blob, lines).encode())
    write(d_path, depfile(c_path, reader.seen).encode())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
