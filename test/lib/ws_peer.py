"""test/peers/ws_peer: our WebSockets in a small program, as a server

    with WsPeer("--max-unsent", "65536") as peer:
        with peer.dial("/echo") as wire:
            ...
        print(peer.stats()["bufferedBytes"])

or as a client, whose events come as JSON lines."""
import json
import os
import select
import socket
import ssl
import subprocess
import tempfile
import time

from signalbox import COMPLAINTS
from ws_wire import PATIENCE_S, Wire

BINARY = os.environ["WS_PEER"]
DIAL_ECHO = BINARY, "dial-echo"


class Child:
    """A program that prints `listening URL` for each place it listens at."""

    def __init__(self, command, n_urls=1, **options):
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=self.errors, bufsize=0, **options)
        try:
            self.urls = [self.listening() for _ in range(n_urls)]
        except BaseException:
            self.kill()
            raise
        host, port = self.urls[0].split("//")[1].rsplit(":", 1)
        self.address = host, int(port)

    def listening(self):
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE_S)
        line = self.process.stdout.readline().decode() if ready else ""
        if not line.startswith("listening "):
            raise AssertionError(f"does not listen: {line!r} {self.said()}")
        return line.split()[1]

    def said(self):
        self.errors.seek(0)
        return self.errors.read().decode("utf-8", "replace")

    def rest(self):
        """What it prints until it ends by itself, and its status."""
        out = self.process.communicate(timeout=PATIENCE_S)[0].decode()
        return self.process.returncode, out + self.said()

    def stop(self):
        """Ask it to end; it must do so well, without a complaint."""
        self.process.terminate()
        status = self.process.wait(PATIENCE_S)
        said = self.said()
        if status != 0 or any(c in said for c in COMPLAINTS):
            raise AssertionError(f"exit status {status}: {said}")

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.errors.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            if kind is None and self.process.poll() is None:
                self.stop()
        finally:
            self.kill()


class WsPeer(Child):
    """`ws_peer serve`; with certificate=(cert, key) it also listens with TLS,
    at urls[1]."""

    def __init__(self, *args, certificate=None, **options):
        if certificate:
            args = ("--tls-listen", "127.0.0.1:0", "--cert", certificate[0],
                    "--key", certificate[1], *args)
        self.questions = None
        super().__init__([BINARY, "serve", "--listen", "127.0.0.1:0", *args],
                         2 if certificate else 1, **options)

    def dial(self, path="/echo"):
        return Wire.dial(*self.address, path)

    def stats(self):
        """What /stats says. Asked on one connection that stays: a new one is
        turned away while the server holds all that it may."""
        if self.questions is None:
            self.questions = Wire(
                socket.create_connection(self.address, PATIENCE_S))
        self.questions.send(b"GET /stats HTTP/1.1\r\nHost: localhost\r\n\r\n")
        n = int(self.questions.head().headers[b"content-length"][0])
        if not self.questions.need(n):
            raise EOFError("half of /stats")
        return json.loads(self.questions.take(n))

    def stop(self):
        self.close_questions()
        super().stop()

    def kill(self):
        self.close_questions()
        super().kill()

    def close_questions(self):
        if self.questions is not None:
            self.questions.__exit__()
            self.questions = None

    def wait_for(self, holds):
        """Ask /stats until they are as they shall be."""
        until = time.monotonic() + PATIENCE_S
        while not holds(stats := self.stats()):
            if time.monotonic() > until:
                raise AssertionError(f"it never comes to that: {stats}")
        return stats

    def resident_bytes(self, which="VmRSS"):
        """Its memory now, or VmHWM: at the most, so far."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as f:
            fields = dict(line.split(":", 1) for line in f)
        return int(fields[which].split()[0]) * 1024


def make_certificate(folder, name="127.0.0.1"):
    """A certificate for 127.0.0.1 and localhost that vouches for itself; the
    paths of it and of its key."""
    cert, key = os.path.join(folder, "cert.pem"), os.path.join(folder, "key")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
         "ec_paramgen_curve:prime256v1", "-nodes", "-days", "90", "-subj",
         f"/CN={name}", "-addext",
         "subjectAltName=IP:127.0.0.1,DNS:localhost", "-keyout", key, "-out",
         cert], check=True, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL)
    return cert, key


def trusting(certificate):
    return ssl.create_default_context(cafile=certificate[0])
