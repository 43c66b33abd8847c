"""An HTTP server for tests that says nothing on the terminal, whatever becomes
of its clients: one thread for each, on a free port of the loopback."""
import socketserver


class Quiet(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass
