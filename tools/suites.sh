#!/bin/sh
# tools/suites.sh BUILD SUITE...: build, run these suites, and close with
# `N passed, N failed` over all of them.
set -eu
dir=$1
shift
log=$dir/meson-logs/testlog.json
suites=
for s in "$@"; do
    suites="$suites --suite $s"
done
# Sanitizers of this age cannot place their shadow where the kernel scatters
# addresses widely.
fixed=
! setarch -R true 2>/dev/null || fixed='setarch -R'

# Where much else runs a test may have a tenth of a core, and is no hang then.
limit='-t 3'
T_LIMIT_S=${T_LIMIT_S:-600}
export T_LIMIT_S
# What STRESS=full asks for takes as long as it takes.
[ -z "${STRESS:-}" ] || limit='-t 0'

# Tests name what they need, so that meson builds no more than that: a third of
# the time that the thread sanitizer takes.
rm -f "$log"
# Many tests wait most of their time, so more run at once than there are cores.
# shellcheck disable=SC2086 # words, on purpose
$fixed meson test -C "$dir" --num-processes $(($(nproc) * ${PER_CORE:-3})) \
    $limit $suites ||
    true
exec tools/tally.py "$log"
