"""Which functions of a running program are called: `tracer.py PID PROGRAM`.

Puts a breakpoint at the start of every function of PROGRAM, prints "armed", and
removes each breakpoint when it is hit. When standard input closes, it removes
the others, lets the program go on, and prints a JSON list of [file, function].

A function costs one stop, however often it is called, so the program keeps its
speed and its deadlines. Needs x86-64, a program with symbols and line numbers,
and the right to trace it. Inlined functions are not seen.
"""
import ctypes
import json
import os
import select
import signal
import subprocess
import sys

CONT, GETREGS, SETREGS, DETACH = 7, 12, 13, 17
SEIZE, INTERRUPT = 0x4206, 0x4207
TRACE_CLONE = 1 << 3
WALL = 0x40000000
RIP = 16  # index in struct user_regs_struct of x86-64
TRAP = b"\xcc"

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p,
                        ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long
Registers = ctypes.c_ulong * 27


def ptrace(request, tid, data=0):
    if libc.ptrace(request, tid, None, data) == -1:
        raise OSError(ctypes.get_errno(), f"ptrace {request} of {tid}")


def functions(program):
    """address -> name. Parts that the compiler split off get the name of their
    function; cold parts are left out."""
    listing = subprocess.run(["nm", "--defined-only", program], check=True,
                             stdout=subprocess.PIPE, text=True).stdout
    found = {}
    for line in listing.splitlines():
        address, kind, name = line.split(maxsplit=2)
        if kind in "tT" and ".cold" not in name and name[0] != "_":
            found[int(address, 16)] = name.split(".")[0]
    return found


def files(program, addresses):
    """The source file of each address, from the root of the source tree."""
    listing = subprocess.run(["addr2line", "-e", program],
                             input="".join(f"{a:#x}\n" for a in addresses),
                             check=True, stdout=subprocess.PIPE, text=True)
    return [line.split(":")[0].split("/../")[-1]
            for line in listing.stdout.splitlines()]


def load_address(pid, program):
    program = os.path.realpath(program)
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        for line in maps:
            if line.rstrip().endswith(program):
                return int(line.split("-")[0], 16)
    raise SystemExit(f"process {pid} does not run {program}")


class Tracer:
    def __init__(self, pid, program):
        self.pid = pid
        self.program = program
        self.base = load_address(pid, program)
        self.names = {self.base + a: n
                      for a, n in functions(program).items()}
        self.saved = {}
        self.called = set()
        self.threads = set()
        self.memory = os.open(f"/proc/{pid}/mem", os.O_RDWR)

    def seize(self):
        """New threads are traced from their first instruction on."""
        for tid in map(int, os.listdir(f"/proc/{self.pid}/task")):
            ptrace(SEIZE, tid, TRACE_CLONE)
            self.threads.add(tid)

    def arm(self):
        for address in self.names:
            self.saved[address] = os.pread(self.memory, 1, address)
            os.pwrite(self.memory, TRAP, address)

    def disarm(self, address):
        byte = self.saved.pop(address, None)
        if byte:
            os.pwrite(self.memory, byte, address)

    def on_trap(self, tid):
        """Another thread may have removed the breakpoint meanwhile."""
        registers = Registers()
        ptrace(GETREGS, tid, ctypes.addressof(registers))
        address = registers[RIP] - 1
        if address not in self.names:
            return
        self.called.add(address)
        self.disarm(address)
        registers[RIP] = address
        ptrace(SETREGS, tid, ctypes.addressof(registers))

    def on_stop(self, tid, status, request=CONT):
        """Let a stopped thread run on (CONT) or leave it alone (DETACH)."""
        if os.WIFEXITED(status) or os.WIFSIGNALED(status):
            self.threads.discard(tid)
            return
        self.threads.add(tid)
        deliver = 0
        if status >> 16 == 0:
            deliver = os.WSTOPSIG(status)
            if deliver == signal.SIGTRAP:
                self.on_trap(tid)
                deliver = 0
        ptrace(request, tid, deliver)

    def run(self, until):
        """Handle stops until there is something to read from that file."""
        wake, waker = os.pipe()
        os.set_blocking(waker, False)
        signal.set_wakeup_fd(waker)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        while True:
            while True:
                try:
                    tid, status = os.waitpid(-1, WALL | os.WNOHANG)
                except ChildProcessError:
                    return
                if tid == 0:
                    break
                self.on_stop(tid, status)
            ready, _, _ = select.select([until, wake], [], [], 0.2)
            if wake in ready:
                os.read(wake, 4096)
            if until in ready:
                return

    def leave(self):
        for address in list(self.saved):
            self.disarm(address)
        for tid in list(self.threads):
            ptrace(INTERRUPT, tid)
        while self.threads:
            tid, status = os.waitpid(-1, WALL)
            self.on_stop(tid, status, DETACH)
            self.threads.discard(tid)

    def report(self):
        called = sorted(self.called)
        where = files(self.program, [a - self.base for a in called])
        return sorted({(f, self.names[a]) for f, a in zip(where, called)})


def main():
    tracer = Tracer(int(sys.argv[1]), sys.argv[2])
    tracer.seize()
    tracer.arm()
    print("armed", flush=True)
    tracer.run(sys.stdin)
    tracer.leave()
    print(json.dumps(tracer.report()))


if __name__ == "__main__":
    main()
