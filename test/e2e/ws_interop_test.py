"""Our WebSockets and those that others wrote understand each other: the npm
package `ws` and Python's `websockets`, as client and as server, plain and with
TLS. They offer permessage-deflate, which no one has to accept."""
import asyncio
import json
import os
import shutil
import ssl
import subprocess
import tempfile
import unittest

import websockets

from ws_peer import BINARY, Child, WsPeer, make_certificate, trusting
from ws_wire import PATIENCE_S

SOURCE = os.environ["SIGNALBOX_SOURCE"]
NPM = os.path.join(SOURCE, "test/peers/ws_npm.js")
NODE = shutil.which("node") or "node"
SIZES = 0, 125, 126, 65535, 65536, 65537, 1 << 20
CODES = 1000, 1001, 3000, 4321
STEPS = 22  # what the driver of ws_npm.js says when all is well


def npm(*args):
    return [NODE, NPM, *args]


def said_by(command, **options):
    """Run it to its end: status and what it printed."""
    run = subprocess.run(command, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, timeout=PATIENCE_S,
                         check=False, **options)
    return run.returncode, run.stdout.decode()


class Interop(unittest.TestCase):
    """Each test once plain, and once with TLS in the class below."""
    is_tls = False

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.certificate = make_certificate(cls.folder.name)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def server(self):
        """Ours."""
        return WsPeer(certificate=self.certificate if self.is_tls else None)

    @property
    def serving(self):
        """Options of a server that is not ours."""
        if not self.is_tls:
            return ()
        return "--cert", self.certificate[0], "--key", self.certificate[1]

    @property
    def trusting(self):
        return ("--ca", self.certificate[0]) if self.is_tls else ()

    def our_end(self, command, **options):
        """What our client says last."""
        status, said = said_by([BINARY, *command], **options)
        self.assertEqual(status, 0, said)
        return json.loads(said.splitlines()[-1])

    # npm's ws.

    def test_npm_is_the_client(self):
        with self.server() as ours:
            for code in CODES:
                status, said = said_by(npm(
                    "drive", ours.urls[-1] + "/echo", *self.trusting,
                    "--protocol", "echo", "--code", str(code)))
                self.assertEqual(status, 0, said)
                self.assertEqual(len(said.splitlines()), STEPS + 1, said)
                self.assertIn(f"closed with {code}", said)

    def test_npm_hears_our_close(self):
        with self.server() as ours:
            for code in CODES:
                self.assertEqual((0, f"closed {code} bye\n"), said_by(npm(
                    "hear-close", f"{ours.urls[-1]}/close?code={code}"
                    "&reason=bye", *self.trusting)))

    def test_npm_is_the_server(self):
        for code in CODES:
            with Child(npm("drive-server", *self.serving, "--code",
                           str(code))) as theirs:
                end = self.our_end(["dial-echo", theirs.urls[0] + "/",
                                    *self.trusting])
                status, said = theirs.rest()
                self.assertEqual(status, 0, said)
                self.assertEqual(len(said.splitlines()), STEPS, said)
            self.assertEqual((end["code"], end["reason"], end["isOurs"]),
                             (code, "that was all", False))

    def test_npm_hears_our_lines(self):
        with Child(npm("serve", *self.serving)) as theirs:
            self.our_lines(theirs.urls[0] + "/")

    def our_lines(self, url):
        """Our client sends lines, and has them back before it closes."""
        lines = ["eins", "", "zwei €😀", "x" * 70000]
        status, said = said_by(
            [BINARY, "dial", url, *self.trusting, "--protocol", "echo",
             "--expect", str(len(lines))],
            input="".join(f"{line}\n" for line in lines).encode())
        self.assertEqual(status, 0, said)
        first, *messages, last = [json.loads(s) for s in said.splitlines()]
        self.assertEqual(first, {"event": "open", "protocol": "echo"})
        self.assertEqual([m["text"] for m in messages], lines)
        self.assertEqual(last["code"], 1000)

    # Python's websockets.

    async def drive(self, ws, code):
        """All that an echo has to send back."""
        self.assertEqual(ws.extensions, [])
        for size in SIZES:
            for message in ("ä" * (size // 2) + "a" * (size % 2),
                            b"\xfe" * size):
                await ws.send(message)
                self.assertEqual(await ws.recv(), message)
        for parts in (["a", "b", "€"], [b"a" * 70000, b"", b"b" * 70000]):
            await ws.send(parts)
            self.assertEqual(await ws.recv(), type(parts[0])().join(parts))
        await asyncio.wait_for(await ws.ping(b"are you there"), PATIENCE_S)
        for i in range(500):
            await ws.send(str(i))
        for i in range(500):
            self.assertEqual(await ws.recv(), str(i))
        await ws.close(code, "that was all")
        self.assertEqual(ws.close_code, code)

    def dial(self, url, **options):
        return websockets.connect(
            url, ssl=trusting(self.certificate) if self.is_tls else None,
            compression="deflate", max_size=None, **options)

    def test_python_is_the_client(self):
        async def client(url, code):
            async with self.dial(url, subprotocols=["chat", "echo"]) as ws:
                self.assertEqual(ws.subprotocol, "echo")
                await self.drive(ws, code)

        with self.server() as ours:
            for code in CODES:
                asyncio.run(client(ours.urls[-1] + "/echo", code))

    def test_python_hears_our_close(self):
        async def client(url):
            async with self.dial(url) as ws:
                await ws.send("please")
                with self.assertRaises(websockets.ConnectionClosed) as end:
                    await ws.recv()
                return end.exception.rcvd.code, end.exception.rcvd.reason

        with self.server() as ours:
            for code in CODES:
                url = f"{ours.urls[-1]}/close?code={code}&reason=bye"
                self.assertEqual(asyncio.run(client(url)), (code, "bye"))

    async def while_serving(self, handler, use):
        """use(url), on another thread, while handler has the WebSockets."""
        context = None
        if self.is_tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self.certificate)
        async with websockets.serve(
                handler, "127.0.0.1", 0, ssl=context, max_size=None,
                compression="deflate", subprotocols=["echo"]) as theirs:
            port = theirs.sockets[0].getsockname()[1]
            scheme = "wss" if self.is_tls else "ws"
            return await asyncio.get_running_loop().run_in_executor(
                None, use, f"{scheme}://127.0.0.1:{port}/")

    def test_python_is_the_server(self):
        for code in CODES:
            done = []

            async def handler(ws, code=code, done=done):
                await self.drive(ws, code)
                done.append(code)

            end = asyncio.run(self.while_serving(
                handler,
                lambda url: self.our_end(["dial-echo", url, *self.trusting])))
            self.assertEqual(done, [code])
            self.assertEqual((end["code"], end["reason"], end["isOurs"]),
                             (code, "that was all", False))

    def test_python_hears_our_lines(self):
        async def echo(ws):
            async for message in ws:
                await ws.send(message)

        asyncio.run(self.while_serving(echo, self.our_lines))


class InteropTls(Interop):
    is_tls = True

    def test_a_certificate_that_nobody_vouches_for_is_refused(self):
        with self.server() as ours:
            for command in (npm("drive", ours.urls[-1] + "/echo"),
                            [BINARY, "dial-echo", ours.urls[-1] + "/echo"]):
                status, said = said_by(command)
                self.assertNotEqual(status, 0, said)
                self.assertNotIn("open", said)
