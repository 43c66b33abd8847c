#!/bin/sh
# tools/size.sh [--write]: how large the code is, and whether it grew. See
# tools/size.py.
exec /usr/bin/python3 "$(dirname "$0")/size.py" "$@"
