#!/bin/sh
# tools/one-object.sh LD OBJCOPY AR PARTS OUT: the archive PARTS as a library of
# one object, in which only what is declared visible can be seen from outside:
# anyone who links it may have a json_parse of their own.
set -eu
ld=$1 objcopy=$2 ar=$3 parts=$4 out=$5
"$ld" -r -o "$out.o" --whole-archive "$parts"
"$objcopy" --localize-hidden "$out.o"
rm -f "$out"
"$ar" crs "$out" "$out.o"
rm -f "$out.o"
