#!/bin/sh
# tools/banned.sh [ROOT]: the functions that have no place here (STYLE: "Not
# here"). Prints each use; exit status 1 if there is one.
set -u
cd "${1:-.}" || exit 2
! find src cli lab test bench train client examples -name node_modules -prune -o \
    \( -name '*.[ch]' -o -name '*.inc' \) -print0 2>/dev/null |
    xargs -0r grep -nHE \
        '\<(strcpy|strcat|sprintf|vsprintf|strtok|gets|atoi|alloca) *\('
