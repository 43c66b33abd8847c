"""A terminal to run a command on."""
import fcntl
import os
import pty
import struct
import subprocess
import termios

ENV = {"TERM": "xterm", "LANG": "C.UTF-8"}


def on_terminal(argv, cwd, env, columns=80, stdout=None, typed=""):
    """Its status, and what a terminal of that width is sent by both outputs,
    or by stderr alone. What is typed is there from the beginning."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ,
                struct.pack("HHHH", 24, columns, 0, 0))
    p = subprocess.Popen(argv, cwd=cwd, stdin=theirs, stdout=stdout or theirs,
                         stderr=theirs, env={**ENV, **env})
    os.close(theirs)
    os.write(ours, typed.encode())
    out = b""
    while True:
        try:
            more = os.read(ours, 65536)
        except OSError:
            break
        if not more:
            break
        out += more
    os.close(ours)
    return p.wait(60), out.decode().replace("\r\n", "\n")
