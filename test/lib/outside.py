"""Processes of a sandbox, by the numbers that they have outside it.

    outside(server, [2, 3])  ->  [4711, 4712]

A program in a PID namespace of its own knows itself by another number. Where
there is no namespace, both are the same."""
import os


def _status(pid):
    """The parent of a process, and its numbers, the innermost last."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as status:
            lines = dict(line.split(":", 1) for line in status)
    except (FileNotFoundError, ProcessLookupError):
        return 0, []
    return int(lines["PPid"]), [int(n) for n in lines["NSpid"].split()]


def _descends(pid, ancestor):
    while pid > 1 and pid != ancestor:
        pid = _status(pid)[0]
    return pid == ancestor


def outside(server, pids):
    """The numbers, outside, of what the server's programs call so."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and _descends(int(name), server.process.pid):
            numbers = _status(name)[1]
            if numbers:
                found[numbers[-1]] = int(name)
    return [found.get(pid, pid) for pid in pids]
