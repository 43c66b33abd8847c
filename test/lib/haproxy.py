"""HAProxy as a child, in front of a server."""
import csv
import os
import shutil
import socket
import subprocess
import tempfile

from signalbox import Peer, eventually

PROGRAM = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")

# One thread, so that a kept connection is shared by anyone who comes next.
CONFIG = """
global
    nbthread 1
    maxconn 100
    stats socket {folder}/stats mode 600 level user
defaults
    mode http
    timeout connect 10s
    timeout client 2s
    timeout http-request 2s
    timeout http-keep-alive 800ms
    timeout server 10s
    option http-keep-alive
    http-reuse always
    retries 0
    {options}
frontend front
    bind unix@{folder}/front
    default_backend back
backend back
    server one {host}:{port} maxconn 100
"""


class Haproxy:
    """options: lines for the defaults section."""

    def __init__(self, server, options=""):
        self.folder = tempfile.mkdtemp(prefix="haproxy-")
        path = os.path.join(self.folder, "haproxy.cfg")
        with open(path, "w", encoding="utf-8") as f:
            f.write(CONFIG.format(folder=self.folder, options=options,
                                  host=server.address[0],
                                  port=server.address[1]))
        self.log = open(os.path.join(self.folder, "log"), "w+b")
        self.process = subprocess.Popen(
            [PROGRAM, "-db", "-f", path], stdin=subprocess.DEVNULL,
            stdout=self.log, stderr=self.log)
        try:
            eventually(self.is_up, "HAProxy takes connections")
        except BaseException:
            self.__exit__()
            raise

    def is_up(self):
        if self.process.poll() is not None:
            self.log.seek(0)
            raise AssertionError("HAProxy ended: " + self.log.read().decode())
        try:
            self.connect().socket.close()
        except OSError:
            return False
        return True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def unix(self, name):
        s = socket.socket(socket.AF_UNIX)
        s.connect(os.path.join(self.folder, name))
        return s

    def connect(self):
        return Peer(self.unix("front"))

    def n_requests(self):
        """How many requests it has sent on to the server."""
        with self.unix("stats") as s:
            s.sendall(b"show stat\n")
            text = b""
            while data := s.recv(65536):
                text += data
        for row in csv.DictReader(text.decode().lstrip("# ").splitlines()):
            if row["pxname"] == "back" and row["svname"] == "BACKEND":
                return int(row["req_tot"])
        raise AssertionError("no such row: " + text.decode())
