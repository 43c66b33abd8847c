#!/usr/bin/python3
"""Add up the closing lines of all tests in a Meson testlog.json.

Each test program ends with `N passed, N failed` or `N passed, N failed, N
skipped`. One that does not say so counts as one failed, and so does one that
says nothing failed but did not end well. Prints what failing programs wrote,
then the same kind of line for the sum; exit status 1 if anything failed.
"""
import json
import re
import sys

CLOSING = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?\s*$",
                     re.M)


def count(test):
    """passed, failed, skipped of one entry of the log."""
    lines = CLOSING.findall(test.get("stdout") or "")
    if not lines:
        return 0, 1, 0
    passed, failed, skipped = (int(n or 0) for n in lines[-1])
    if test["result"] != "OK" and not failed:
        failed = 1
    return passed, failed, skipped


def show(test):
    print(f"=== {test['name']}: {test['result']}, "
          f"exit status {test['returncode']}")
    for stream in "stdout", "stderr":
        text = (test.get(stream) or "").rstrip()
        if text:
            print(text)


def main(paths):
    total = [0, 0, 0]
    for path in paths:
        try:
            with open(path, encoding="utf-8") as log:
                tests = [json.loads(line) for line in log]
        except OSError as e:
            print(f"no test was run: {e}")
            tests = [{"name": path, "result": "FAIL", "returncode": "none"}]
        for test in tests:
            counts = count(test)
            if counts[1]:
                show(test)
            total = [t + c for t, c in zip(total, counts)]
    skipped = f", {total[2]} skipped" if total[2] else ""
    print(f"{total[0]} passed, {total[1]} failed{skipped}")
    return total[1] != 0 or total[0] == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
