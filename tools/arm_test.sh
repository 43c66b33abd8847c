#!/bin/sh
# tools/arm_test.sh [FOLDER]: the ARM levels of src/base/vec.c and src/embed,
# cross-compiled and run under qemu on an x86-64 machine. Runs their unit tests
# on a processor with sdot and on one without it; then turns texts of 1 to 254
# pieces, and longer ones, into vectors with data/transformer.sbm, which must
# match those of this machine to the last bit. STRESS=full takes every length,
# in plain C too: half an hour or more. FOLDER (default build-arm) keeps what is compiled.
#
# Closes with `N passed, N failed`. Exit status 77: something is not installed.
set -eu
cd "$(dirname "$0")/.."
out=${1:-build-arm}
model=data/transformer.sbm
passed=0
failed=0

if [ "$(uname -m)" != x86_64 ]; then
    echo 'arm_test: compares ARM with x86-64, so it needs an x86-64 machine' >&2
    exit 77
fi
for needed in /usr/bin/aarch64-linux-gnu-gcc /usr/bin/qemu-aarch64 \
    /usr/aarch64-linux-gnu/include/stdio.h; do
    if [ ! -e $needed ]; then
        echo "arm_test: $needed is missing: apt install" \
            'gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user' >&2
        exit 77
    fi
done

# build COMPILER FOLDER KERNELS...: into that folder, without the libraries that
# Debian has for one architecture alone. OpenSSL's headers are the same for all.
build() {
    cc=$1 to=$2
    shift 2
    mkdir -p "$to"
    flags="-std=gnu11 -O2 -Wall -Wextra -Werror -Wno-maybe-uninitialized
        -ffp-contract=off -D_GNU_SOURCE -DWITH_FAULTS -Isrc -I. -idirafter
        /usr/include -idirafter /usr/include/x86_64-linux-gnu"
    rm -f "$to"/*.o
    for f in "$@" test/arm/evp.c src/base/arena.c src/base/buf.c \
        src/base/cpu.c src/base/err.c src/base/fault.c src/base/json_*[!t].c \
        src/base/str.c src/base/unicode.c src/base/utf8.c src/base/vec.c \
        src/base/vec_pack.c src/base/wordfind.c src/base/words.c \
        src/embed/transformer/minilm_file.c src/embed/transformer/minilm_make.c \
        src/embed/transformer/minilm_pieces.c src/embed/transformer/minilm_plain.c \
        src/embed/transformer/minilm_run.c src/embed/transformer/minilm_tensors.c src/embed/transformer/vocab.c \
        src/embed/transformer/wordpiece.c; do
        arch=
        [ "${f##*/}" != minilm_dotprod.c ] || arch=-march=armv8.2-a+dotprod
        # shellcheck disable=SC2086 # words, on purpose
        "$cc" $flags $arch -c "$f" -o "$to/$(basename "$f" .c).o"
    done
    for f in src/base/vec_test.c src/base/vec_pack_test.c \
        src/embed/transformer/minilm_run_test.c test/peers/minilm_peer.c; do
        # shellcheck disable=SC2086 # words, on purpose
        "$cc" $flags "$f" test/t.c test/t_main.c test/lib/alloc_count.c "$to"/*.o -lm -o "$to/$(basename "$f" .c)"
    done
}

# Texts as minilm_peer takes them. Every word is one piece of the vocabulary.
# shellcheck disable=SC2016 # Python's own
texts() {
    python3 -c '
import random, struct, sys
dice = random.Random(7)
words = dice.choices("the order is late and my new car has no wheel so please "
    "call me at home now or send a letter to us in june".split(), k=300)
for n in map(int, sys.argv[1:]):
    text = " ".join(words[:n]).encode()
    sys.stdout.buffer.write(struct.pack("<I", len(text)) + text)' "$@"
}

check() {
    name=$1
    shift
    if "$@" >"$out/log" 2>&1; then
        passed=$((passed + 1))
        echo "ok   $name"
    else
        failed=$((failed + 1))
        cat "$out/log"
        echo "FAIL $name"
    fi
}

arm() {
    cpu=$1
    shift
    QEMU_LD_PREFIX=/usr/aarch64-linux-gnu qemu-aarch64 -cpu "$cpu" "$@"
}

levels_are() {
    [ "$(arm "$1" "$out/arm/minilm_peer" levels | tr '\n' ' ')" = "$2" ]
}

# same HOW LEVEL: as this machine's vectors.
same() {
    arm max "$out/arm/minilm_peer" "$1" $model "$2" <"$out/texts" |
        cmp - "$out/vectors"
}

build gcc "$out/x86" src/embed/transformer/minilm_avx2.c src/embed/transformer/minilm_avx512.c
build aarch64-linux-gnu-gcc "$out/arm" src/embed/transformer/minilm_neon.c \
    src/embed/transformer/minilm_dotprod.c

check 'a processor without sdot has NEON' levels_are cortex-a72 'plain neon '
check 'a processor with sdot uses it' levels_are max 'plain neon dotprod '
for cpu in cortex-a72 max; do
    for t in vec_test vec_pack_test minilm_run_test; do
        check "$t on $cpu" arm $cpu "$out/arm/$t"
    done
done

widest=$("$out/x86/minilm_peer" levels | tail -n 1)
short=$(seq 0 12)
lengths=$(seq 0 17; echo 62 63 127 253 254 256)
if [ "${STRESS:-}" = full ]; then
    short=$(seq 0 256) lengths=$short
fi
# shellcheck disable=SC2086 # words, on purpose
texts $short >"$out/texts"
"$out/x86/minilm_peer" one $model "$widest" <"$out/texts" >"$out/vectors"
check "plain on ARM gives the vectors of $widest" same one plain
# shellcheck disable=SC2086 # words, on purpose
texts $lengths >"$out/texts"
"$out/x86/minilm_peer" one $model "$widest" <"$out/texts" >"$out/vectors"
for level in neon dotprod; do
    check "$level gives the vectors of $widest" same one $level
    check "$level gives them for many texts at once" same many $level
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
