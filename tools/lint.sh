#!/bin/sh
# tools/lint.sh BUILD: what can be said about the source without running it.
# BUILD has the compile_commands.json. Closes with `N passed, N failed`.
set -u
build=$1
passed=0
failed=0

check() {
    name=$1
    shift
    if out=$("$@" 2>&1); then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf '%s\nFAIL %s\n' "$out" "$name"
    fi
}

# What others wrote for the tests is theirs.
sources() {
    find src cli lab test bench train client examples -name node_modules -prune -o \
        \( -name '*.[ch]' -o -name '*.inc' \) -print | sort
}

layout() { sources | xargs clang-format --dry-run -Werror; }

# Of what this build compiles, each file once, though some are compiled several
# times; tests show their own bugs, and what a script made is data.
bugs() {
    mkdir -p "$build/tidy"
    /usr/bin/python3 -c '
import json, re, sys
once = {}
for c in json.load(sys.stdin):
    if (re.match(r"\.\./(src|cli|lab|train|client)/", c["file"]) and not
            re.search(r"_test\.c$|src/base/unicode\.c$", c["file"])):
        once.setdefault(c["file"], c)
json.dump(list(once.values()), open(sys.argv[1], "w"))
print("\n".join(f[len("../"):] for f in sorted(once)))' \
        "$build/tidy/compile_commands.json" <"$build/compile_commands.json" |
        xargs -P "$(nproc)" -n 4 clang-tidy -p "$build/tidy" --quiet \
            --extra-arg=-Wno-unknown-warning-option 2>/dev/null
}

shell() {
    find script .ci tools -type f -print0 |
        xargs -0 grep -lZE '^#!/bin/(ba)?sh' | xargs -0 shellcheck
}

javascript() {
    find web test/web bench src -name node_modules -prune -o \
        \( -name '*.mjs' -o -path 'web/*.js' -o -path 'src/*.js' \) -print0 |
        xargs -0 -n 1 node --check
}

# What a script made is what it makes, as long as Python knows the same Unicode.
unicode() {
    made=src/base/unicode.c
    version=$(/usr/bin/python3 -c \
        'import unicodedata; print(unicodedata.unidata_version)')
    ! grep -q "from Unicode $version\." $made ||
        tools/unicode.py | cmp - $made
}

check 'tools/layers.sh: includes point down' tools/layers.sh
check 'tools/size.sh: the code does not grow unnoticed' tools/size.sh
check 'clang-format: make fmt lays it out' layout
check 'tools/banned.sh: no such functions' tools/banned.sh
check 'tools/unicode.py: generated again, it is the same' unicode
check 'clang-tidy' bugs
check 'shellcheck' shell
check 'tools/web_lint.py: the dashboard shows texts, asks no one else, imports down' tools/web_lint.py
check 'tools/twice.py: no page says anything twice' tools/twice.py
check 'node --check: the dashboard and its tests are JavaScript' javascript
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
