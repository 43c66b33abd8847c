"""Ways to write an address that leads into this machine, and listeners that
notice anyone who comes.

A Form is a URL and what its names mean; {p} is the port of the listener that
no one may reach, {r} that of a server that may be asked and redirects to
wherever its path says. FORMS has them all."""
import collections
import selectors
import socket
import threading
import urllib.parse

# An address on loopback that may be connected to: what is public elsewhere.
OPEN = "127.0.0.77"

Form = collections.namedtuple("Form", "name url names")

# Of the forms those whose addresses someone else would have to translate or
# route: no packet of theirs is to leave this machine.
AWAY = ("[64:ff9b:", "[2002:", "[2001:", "[fe80:", "[fd00:", "[fc00:",
        "[::127.", "[::7f00:1]", "[::ffff:0:127.", "10.0.0.1", "fe80::1",
        "=::127.0.0.1")


def _direct():
    for host in (
            # Dots and what they hide.
            "127.0.0.1", "127.0.0.2", "127.255.255.254", "127.1", "127.0.1",
            "127.0.0.1.", "127.1.", "127.000.000.001", "127.0.0.01",
            "2130706433", "2130706434", "0x7f000001", "0x7F000001",
            "0x7f.0.0.1", "0x7f.1", "0x7f.0x0.0x0.0x1", "0177.0.0.1", "0177.1",
            "0177.0.0.0x1", "017700000001", "0x7f.0.1", "127.0x1",
            "00000177.0.0.1", "0.0.0.0", "0", "0x0", "00", "0.0", "0.0.0.0.",
            # Version 6, and version 4 in it.
            "[::1]", "[0:0:0:0:0:0:0:1]", "[0000::0001]", "[::]",
            "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::FFFF:127.0.0.1]",
            "[0:0:0:0:0:ffff:7f00:0001]", "[::ffff:0.0.0.0]",
            "[::127.0.0.1]", "[::7f00:1]", "[::ffff:0:127.0.0.1]",
            "[64:ff9b::127.0.0.1]", "[64:ff9b::7f00:1]",
            "[64:ff9b:1::7f00:1]", "[2002:7f00:1::]", "[2002:7f00:0001::1]",
            "[2001:0:7f00:1:0:0:80ff:fffe]", "[2001:db8::5efe:127.0.0.1]",
            "[fe80::5efe:127.0.0.1]", "[::1%25lo]", "[::1%lo]", "[fe80::1]",
            "[fd00::1]", "[fc00::1]", "[::ffff:10.0.0.1]",
            # Names.
            "localhost", "LocalHost", "localhost.", "localhost..",
            "localhost.localdomain", "ip6-localhost", "foo.localhost",
            # Bytes that some drop, and some read.
            "%31%32%37.0.0.1", "127%2e0%2e0%2e1", "localhos%74",
            "127.0.0.1%00.public.test", "127.0.0.1%0a", "127.0.0.1%23",
            "１２７.０.０.１", "127。0。0。1", "①②⑦.⓪.⓪.①",
            "ⓛocalhost", "ｌocalhost", "loc\u00adalhost"):
        yield host, f"http://{host}:{{p}}/"


def _tricks():
    yield from (
        ("a user", "http://public.test@127.0.0.1:{p}/"),
        ("a user and a password", "http://a:b@127.0.0.1:{p}/"),
        ("a user that looks like a host", "http://public.test:80@127.0.0.1:{p}/"),
        ("two users", "http://a@public.test@127.0.0.1:{p}/"),
        ("a host that looks like a user", "http://127.0.0.1:{p}@public.test/"),
        ("a user with an encoded sign", "http://public.test%40127.0.0.1:{p}/"),
        ("a user behind a slash", "http://public.test/@127.0.0.1:{p}/"),
        ("a backslash", "http://public.test\\@127.0.0.1:{p}/"),
        ("a backslash behind", "http://127.0.0.1:{p}\\@public.test/"),
        ("backslashes", "http:\\\\127.0.0.1:{p}\\"),
        ("mixed slashes", "http:/\\127.0.0.1:{p}/"),
        ("one slash", "http:/127.0.0.1:{p}/"),
        ("no slash", "http:127.0.0.1:{p}/"),
        ("three slashes", "http:///127.0.0.1:{p}/"),
        ("no scheme", "127.0.0.1:{p}/"),
        ("a scheme for anyone who asks", "//127.0.0.1:{p}/"),
        ("a loud scheme", "HTTP://127.0.0.1:{p}/"),
        ("a fragment", "http://public.test#@127.0.0.1:{p}/"),
        ("a fragment behind", "http://127.0.0.1:{p}#.public.test/"),
        ("a query", "http://127.0.0.1:{p}?.public.test/"),
        ("a tab in the host", "http://127.0.0.\t1:{p}/"),
        ("a tab in the scheme", "ht\ttp://127.0.0.1:{p}/"),
        ("a line end in the host", "http://127.0.0.1:{p}\r\n/"),
        ("a blank before", " http://127.0.0.1:{p}/"),
        ("a blank in the host", "http://127.0.0.1 :{p}/"),
        ("a line end in the path", "http://127.0.0.1:{p}/\r\nX: y"),
        ("an empty port", "http://127.0.0.1:{p}:/"),
        ("a port with a zero", "http://127.0.0.1:0{p}/"),
        ("two ports", "http://127.0.0.1:{p}:80/"),
        ("braces", "http://{{127.0.0.1,127.0.0.2}}:{p}/"),
        ("TLS", "https://127.0.0.1:{p}/"),
        ("FTP", "ftp://127.0.0.1:{p}/"),
        ("gopher", "gopher://127.0.0.1:{p}/_GET%20/"),
        ("dict", "dict://127.0.0.1:{p}/x"),
        ("telnet", "telnet://127.0.0.1:{p}/"),
        ("a WebSocket", "ws://127.0.0.1:{p}/"),
        ("LDAP", "ldap://127.0.0.1:{p}/x"),
    )


def _names():
    """Each name with what it means, the first time / the second / ..."""
    for i, means in enumerate((
            "127.0.0.1", "127.8.9.10", "::1", "0.0.0.0", "::",
            "::ffff:127.0.0.1", "::ffff:0.0.0.0", "::127.0.0.1",
            "127.0.0.1,::1", "10.0.0.1,127.0.0.1", "fe80::1,::1",
            # To both: one that may be, one that may not.
            f"127.0.0.1,{OPEN}", f"{OPEN},127.0.0.1", f"::1,{OPEN}",
            f"{OPEN},::1", f"{OPEN},127.0.0.1,::1",
            # Another each time: anyone who checks first connects to the second.
            f"{OPEN}/127.0.0.1", f"{OPEN}/::1", f"{OPEN}/{OPEN}/127.0.0.1",
            f"{OPEN}/0.0.0.0", f"127.0.0.1/{OPEN}",
            f"{OPEN}/::ffff:127.0.0.1")):
        name = f"n{i}.test"
        # Twice, so that what means another the second time is asked for it.
        yield Form(f"{name} -> {means}", f"http://{name}:{{p}}/",
                   (f"{name}={means}",))
        yield Form(f"{name}. -> {means}", f"http://{name}.:{{p}}/",
                   (f"{name}={means}", f"{name}.={means}"))


def _redirects():
    for to in ("http://127.0.0.1:{p}/", "//127.0.0.1:{p}/",
               "http://[::1]:{p}/", "http://localhost:{p}/",
               "http://2130706433:{p}/", "http://127.1:{p}/",
               "http://0x7f.1:{p}/", "http://[::ffff:127.0.0.1]:{p}/",
               "http://0.0.0.0:{p}/", "http://a@127.0.0.1:{p}/",
               "HTTP://127.0.0.1:{p}/", "/\\127.0.0.1:{p}/",
               "\\\\127.0.0.1:{p}/", "http:127.0.0.1:{p}/",
               "gopher://127.0.0.1:{p}/_x", "ftp://127.0.0.1:{p}/",
               "http://inward.test:{p}/", "http://later.test:{p}/",
               "https://127.0.0.1:{p}/", "http://%31%32%37.0.0.1:{p}/"):
        for chain in (1, 3):
            for status in (302, 307) if chain == 1 else (301,):
                yield Form(f"{chain} x {status} -> {to}", (chain, status, to),
                           ("inward.test=127.0.0.1",
                            f"later.test={OPEN}/127.0.0.1"))


def _path(chain, status, to):
    """A path for the redirector that leads to `to` after so many steps."""
    for _ in range(chain):
        to = f"http://{OPEN}:{{r}}/{status}/" + urllib.parse.quote(to, "{}")
    return to


FORMS = (
    [Form(name, url, ()) for name, url in _direct()] +
    [Form(name, url, ()) for name, url in _tricks()] +
    list(_names()) +
    [form._replace(url=_path(*form.url)) for form in _redirects()])


def leads_away(form):
    return any(part in form.url + " ".join(form.names) for part in AWAY)


class Listener:
    """Takes connections on any number of sockets, counts them by the name of
    the socket, and answers."""

    def __init__(self):
        self.came = collections.Counter()
        self.lock = threading.Lock()
        self.selector = selectors.DefaultSelector()
        self.wake, self.woken = socket.socketpair()
        self.selector.register(self.woken, selectors.EVENT_READ, None)
        self.sockets = []
        self.thread = threading.Thread(target=self.run, daemon=True)

    def open(self, name, host, port=0):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        s = socket.socket(family)
        # The more special of two listeners on a port gets the connection.
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        s.bind((host, port))
        s.listen(256)
        s.setblocking(False)
        self.sockets.append(s)
        self.selector.register(s, selectors.EVENT_READ, name)
        return s.getsockname()[1]

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *why):
        self.wake.send(b"x")
        self.thread.join()
        for s in [*self.sockets, self.wake, self.woken]:
            s.close()
        self.selector.close()

    def run(self):
        while True:
            for key, _ in self.selector.select():
                if key.data is None:
                    return
                try:
                    guest, _ = key.fileobj.accept()
                except BlockingIOError:
                    continue
                with self.lock:
                    self.came[key.data] += 1
                threading.Thread(target=self.answer, args=(guest,),
                                 daemon=True).start()

    @staticmethod
    def answer(guest):
        """A redirect to wherever the path says, /STATUS/URL, or a 200."""
        with guest:
            guest.settimeout(20)
            asked = b""
            try:
                while b"\r\n\r\n" not in asked:
                    more = guest.recv(65536)
                    if not more:
                        return
                    asked += more
                    if b"HTTP/1." not in asked:
                        return
                words = asked.split(b" ")
                path = words[1].decode() if len(words) > 1 else "/"
                status, _, to = path[1:].partition("/")
                if status.isdigit() and to:
                    to = urllib.parse.unquote(to)
                    head = f"HTTP/1.1 {status} Go\r\nLocation: {to}\r\n"
                else:
                    head = "HTTP/1.1 200 OK\r\n"
                guest.sendall((head + "Connection: close\r\n"
                               "Content-Length: 0\r\n\r\n").encode())
                guest.recv(1)
            except OSError:
                pass

    def taken(self):
        """Who came since this was asked last."""
        with self.lock:
            came, self.came = self.came, collections.Counter()
        return came
