"""A cable between a client and a server that can be cut, and is there again for
the next who dials:

    with Relay(server.address) as cable:
        connect(cable.url)
        cable.cut()
"""
import socket
import struct
import threading


class Relay:
    def __init__(self, address):
        self.address = address
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.lock = threading.Lock()
        self.ends = []
        self.is_over = False
        self.thread = threading.Thread(target=self.serve, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over = True
        # One that is closed does not wake up anyone who waits in accept.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.cut()
        self.thread.join()

    def serve(self):
        while not self.is_over:
            try:
                near, _ = self.listener.accept()
                far = socket.create_connection(self.address)
            except OSError:
                continue
            with self.lock:
                self.ends += [near, far]
            for a, b in (near, far), (far, near):
                threading.Thread(target=carry, args=(a, b),
                                 daemon=True).start()

    def cut(self):
        """Both sides learn of it at once, and what was under way is lost."""
        with self.lock:
            ends, self.ends = self.ends, []
        for end in ends:
            try:
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                               struct.pack("ii", 1, 0))
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # the other side was quicker
            end.close()


def carry(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
    except OSError:
        pass
    for end in source, sink:
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
