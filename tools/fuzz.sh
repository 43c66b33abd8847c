#!/bin/sh
# tools/fuzz.sh BUILD SECONDS: run every fuzz target that long, as many at once
# as there are cores, starting from its corpus. New inputs go to BUILD/corpus,
# what broke a target to BUILD/crash. Closes with `N passed, N failed`.
set -eu
dir=$1
seconds=$2
fixed=
! setarch -R true 2>/dev/null || fixed='setarch -R'
export dir seconds fixed

ninja -C "$dir" --quiet fuzz
cd "$(dirname "$0")/.."
mkdir -p "$dir/crash"
rm -f "$dir"/crash/*.failed
for t in "$dir"/test/fuzz/fuzz_*; do
    [ ! -f "$t" ] || basename "$t"
done >"$dir/targets"

# shellcheck disable=SC2016 # the inner shell expands
xargs -r -P "$(nproc)" -n 1 sh -c '
    name=${1#fuzz_}
    mkdir -p "$dir/corpus/$name"
    if $fixed "$dir/test/fuzz/$1" -max_total_time="$seconds" -timeout=10 \
        -max_len=65536 -print_final_stats=1 \
        -artifact_prefix="$dir/crash/$name-" \
        "$dir/corpus/$name" "test/fuzz/corpus/$name" >"$dir/$1.log" 2>&1; then
        echo "$1: $(sed -n "s/^stat::number_of_executed_units: *//p" \
            "$dir/$1.log") inputs, no complaint"
    else
        touch "$dir/crash/$1.failed"
        tail -n 60 "$dir/$1.log"
        echo "$1: FAILED"
    fi' sh <"$dir/targets"

failed=$(find "$dir/crash" -name '*.failed' | wc -l)
echo "$(($(wc -l <"$dir/targets") - failed)) passed, $failed failed"
[ "$failed" -eq 0 ]
