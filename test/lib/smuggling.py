"""Requests that two programs could read in two ways, and how to judge a server
by them.

Every form carries a canary: a second request hidden where a strict reader sees
a body, a header or nothing at all. The outer request asks for a path that is
not there, so the canary is the only one that could be answered with 200.
"""
from signalbox import metric, request

REQUESTS = "signalbox_http_requests_total"
REFUSALS = {400, 408, 411, 413, 414, 417, 421, 431, 501, 505}
CANARY = b"GET /healthz?@PAD@ HTTP/1.1\r\nHost: @HOST@\r\n\r\n"


def filled_in(data, host):
    """The bytes of a form for a host. Whatever its length, the canary's is the
    same, since lengths have been written down already."""
    return (data.replace(b"@PAD@", b"canary".ljust(40 - len(host), b"-"))
            .replace(b"@HOST@", host))


N = len(filled_in(CANARY, b"localhost"))
ENDED = b"0\r\n\r\n" + CANARY  # an empty chunked body, and then the canary
HIDDEN = b"%x\r\n%b\r\n0\r\n\r\n" % (N, CANARY)  # the canary inside a chunk


class Form:
    """strict: the only right answer is to refuse it and to close. Otherwise it
    may also be read as one harmless request."""

    def __init__(self, name, data, strict=True):
        self.name = name
        self.data = data
        self.strict = strict

    def bytes_for(self, server):
        return filled_in(self.data, server.host)


def post(headers, body, line=b"POST /no-such-path HTTP/1.1", eol=b"\r\n"):
    head = [line, b"Host: @HOST@", *headers]
    return eol.join(head) + eol * 2 + body


def length(body):
    return b"Content-Length: %d" % len(filled_in(body, b"localhost"))


CHUNKED = b"Transfer-Encoding: chunked"


def te_forms():
    """Spellings of Transfer-Encoding that someone takes for chunked and
    someone else does not: with a Content-Length that covers everything, and
    without one."""
    spellings = {
        "prefixed": b"Transfer-Encoding: xchunked",
        "suffixed": b"Transfer-Encoding: chunkedx",
        "space before colon": b"Transfer-Encoding : chunked",
        "tab before colon": b"Transfer-Encoding\t: chunked",
        "chunked, identity": b"Transfer-Encoding: chunked, identity",
        "identity, chunked": b"Transfer-Encoding: identity, chunked",
        "identity": b"Transfer-Encoding: identity",
        "gzip, chunked": b"Transfer-Encoding: gzip, chunked",
        "chunked, chunked": b"Transfer-Encoding: chunked, chunked",
        "empty list member": b"Transfer-Encoding: , chunked",
        "quoted": b'Transfer-Encoding: "chunked"',
        "with a parameter": b"Transfer-Encoding: chunked;q=1",
        "vertical tab before": b"Transfer-Encoding:\x0bchunked",
        "vertical tab after": b"Transfer-Encoding: chunked\x0b",
        "form feed": b"Transfer-Encoding:\x0cchunked",
        "NUL inside": b"Transfer-Encoding: chun\x00ked",
        "NUL after": b"Transfer-Encoding: chunked\x00",
        "NUL in the name": b"Transfer-Encoding\x00: chunked",
        "control in the name": b"Transfer\x01-Encoding: chunked",
        "no-break space": b"Transfer-Encoding: \xa0chunked",
        "folded value": b"Transfer-Encoding:\r\n chunked",
        "folded into another": b"X-A: b\r\n Transfer-Encoding: chunked",
        "after a bare LF": b"X-A: b\nTransfer-Encoding: chunked",
        "after a bare CR": b"X-A: b\rTransfer-Encoding: chunked",
        "after an empty name": b": b\r\nTransfer-Encoding: chunked",
        "no colon": b"Transfer-Encoding chunked",
        "empty": b"Transfer-Encoding:",
        "twice": CHUNKED + b"\r\n" + CHUNKED,
        "chunked, then another": CHUNKED + b"\r\nTransfer-Encoding: cow",
        "another, then chunked": b"Transfer-Encoding: cow\r\n" + CHUNKED,
    }
    for name, line in spellings.items():
        yield Form(f"TE {name}, CL over all",
                   post([line, length(ENDED)], ENDED))
        yield Form(f"TE {name}, CL first",
                   post([b"Content-Length: 4", line], HIDDEN))
        yield Form(f"TE {name}, no CL", post([line], CANARY))
    yield Form("CL.TE", post([length(ENDED), CHUNKED], ENDED))
    yield Form("TE.CL", post([CHUNKED, b"Content-Length: 4"], HIDDEN))
    yield Form("CL 0 and TE", post([b"Content-Length: 0", CHUNKED], HIDDEN))
    yield Form("TE in HTTP/1.0",
               post([CHUNKED, b"Connection: keep-alive"], HIDDEN,
                    line=b"POST /no-such-path HTTP/1.0"))
    yield Form("first header begins with a space",
               b"POST /no-such-path HTTP/1.1\r\n Transfer-Encoding: chunked"
               b"\r\nHost: @HOST@\r\n" + length(ENDED) + b"\r\n\r\n" + ENDED)
    yield Form("TE in capitals",
               post([b"TRANSFER-ENCODING: CHUNKED"], HIDDEN), strict=False)
    yield Form("TE after a tab",
               post([b"Transfer-Encoding:\tchunked"], HIDDEN), strict=False)
    yield Form("TE with an underscore",
               post([b"Transfer_Encoding: chunked", length(ENDED)], ENDED),
               strict=False)


def cl_forms():
    values = {
        "plus": b"+%d", "minus": b"-%d", "hexadecimal": b"0x%x",
        "list of equals": b"%d, %d", "list": b"0, %d", "semicolon": b"%d;0",
        "inner space": b"0 %d", "digits and letters": b"%dabc",
        "letters": b"abc%d", "decimal point": b"%d.0", "exponent": b"%de0",
        "vertical tab": b"\x0b%d", "trailing NUL": b"%d\x00",
        "underscore": b"0_%d", "quoted": b'"%d"',
        "2^64 and more": b"1844674407370955%d",
        "forty digits": b"9" * 40,
        "empty": b"",
    }
    for name, value in values.items():
        if name == "2^64 and more":
            value = b"%d" % (2**64 + N)
        elif b"%" in value:
            value = value.replace(b"%d", b"%d" % N)
            value = value.replace(b"%x", b"%x" % N)
        yield Form(f"CL {name}", post([b"Content-Length: " + value], CANARY))
    yield Form("CL twice, the first is 0",
               post([b"Content-Length: 0", length(CANARY)], CANARY))
    yield Form("CL twice, the last is 0",
               post([length(CANARY), b"Content-Length: 0"], CANARY))
    yield Form("CL twice, equal",
               post([length(CANARY), length(CANARY)], CANARY))
    yield Form("CL space before colon",
               post([b"Content-Length : %d" % N], CANARY))
    yield Form("CL folded", post([b"Content-Length:\r\n %d" % N], CANARY))
    yield Form("CL other digits",
               post(["Content-Length: \u0664\u0667".encode()], CANARY))
    yield Form("CL leading zeros",
               post([b"Content-Length: 000%d" % N], CANARY), strict=False)
    yield Form("CL padded with spaces",
               post([b"Content-Length: \t %d \t" % N], CANARY), strict=False)
    yield Form("CL named in Connection",
               post([b"Connection: content-length", length(CANARY)], CANARY),
               strict=False)


def chunk_forms():
    def chunks(name, body, strict=True):
        return Form(f"chunk {name}", post([CHUNKED], body), strict)

    for name, size in {
            "size 0x": b"0x%x" % N, "size plus": b"+%x" % N,
            "size minus": b"-%x" % N, "size after a space": b" %x" % N,
            "size before a space": b"%x " % N,
            "size before a tab": b"%x\t" % N,
            "size 2^64 and more": b"1%016x" % N,
            "size 2^32 and more, padded": b"f" * 40 + b"%x" % N,
            "size underscore": b"0_%x" % N, "size empty": b"",
            "size NUL": b"%x\x00" % N, "size letter": b"%xg" % N,
            "size comma": b"%x, 0" % N}.items():
        yield chunks(name, size + b"\r\n" + CANARY + b"\r\n0\r\n\r\n")
    yield chunks("size ends in LF",
                 b"%x\n%b\r\n0\r\n\r\n" % (N, CANARY))
    yield chunks("size ends in CR",
                 b"%x\r%b\r\n0\r\n\r\n" % (N, CANARY))
    yield chunks("ends in LF", b"3\r\nabc\n0\r\n\r\n" + CANARY)
    yield chunks("without an end", b"3\r\nabc0\r\n\r\n" + CANARY)
    yield chunks("longer than its size", b"3\r\nabcdef\r\n0\r\n\r\n" + CANARY)
    yield chunks("shorter than its size", b"8\r\nabc\r\n0\r\n\r\n" + CANARY)
    yield chunks("extension ends in LF",
                 b"3;a\nabc\r\n0\r\n\r\n" + CANARY)
    yield chunks("extension with a CR", b"3;a\rb\r\nabc\r\n0\r\n\r\n" + CANARY)
    yield chunks("extension with NUL", b"3;\x00\r\nabc\r\n0\r\n\r\n" + CANARY)
    yield chunks("extension quotes a line end",
                 b'3;a="\r\nabc"\r\n0\r\n\r\n' + CANARY)
    yield chunks("extension too long",
                 b"3;" + b"a" * 20000 + b"\r\nabc\r\n0\r\n\r\n" + CANARY)
    yield chunks("last without its end", b"0\r\n" + CANARY)
    yield chunks("last ends in LF", b"0\n\n" + CANARY)
    yield chunks("last ends in CR LF LF", b"0\r\n\n" + CANARY)
    yield chunks("trailer ends in LF", b"0\r\nX-A: b\n\r\n" + CANARY)
    yield chunks("trailer folded", b"0\r\nX-A: b\r\n c\r\n\r\n" + CANARY)
    yield chunks("trailer with a space", b"0\r\nX-A : b\r\n\r\n" + CANARY)
    yield chunks("trailer without a colon", b"0\r\nX-A\r\n\r\n" + CANARY)
    yield chunks("trailer with NUL", b"0\r\nX-A: \x00\r\n\r\n" + CANARY)
    yield chunks("with an extension",
                 b"%x;a=b\r\n%b\r\n0;c\r\n\r\n" % (N, CANARY), strict=False)
    yield chunks("size with leading zeros",
                 b"0000%x\r\n%b\r\n0\r\n\r\n" % (N, CANARY), strict=False)
    yield chunks("plain", HIDDEN, strict=False)
    yield chunks("split",
                 b"4\r\n%b\r\n%x\r\n%b\r\n0\r\n\r\n" %
                 (CANARY[:4], N - 4, CANARY[4:]), strict=False)
    yield chunks("with a Content-Length in its trailer",
                 b"%x\r\n%b\r\n0\r\nContent-Length: 0\r\n\r\n" % (N, CANARY),
                 strict=False)


def line_forms():
    for name, line in {
            "HTTP/0.9": b"GET /no-such-path",
            "two spaces": b"POST  /no-such-path HTTP/1.1",
            "tab": b"POST\t/no-such-path HTTP/1.1",
            "trailing space": b"POST /no-such-path HTTP/1.1 ",
            "leading space": b" POST /no-such-path HTTP/1.1",
            "two versions": b"POST /no-such-path HTTP/1.1 HTTP/1.1",
            "another protocol": b"POST /no-such-path ICY/1.1",
            "HTTP/2.0": b"POST /no-such-path HTTP/2.0",
            "HTTP/1.12": b"POST /no-such-path HTTP/1.12",
            "HTTP/1": b"POST /no-such-path HTTP/1",
            "lower case version": b"POST /no-such-path http/1.1",
            "NUL in the target": b"POST /no-such\x00-path HTTP/1.1",
            "CR in the target": b"POST /no-such\r-path HTTP/1.1",
            "fragment": b"POST /no-such-path#a HTTP/1.1",
            "NUL in the method": b"PO\x00ST /no-such-path HTTP/1.1",
            "separator in the method": b"PO(ST /no-such-path HTTP/1.1",
            "no slash": b"POST no-such-path HTTP/1.1",
            "another host": b"POST http://elsewhere/no-such-path HTTP/1.1",
            "user in the target": b"POST http://a@@HOST@/no-such HTTP/1.1",
            "ftp": b"POST ftp://@HOST@/no-such-path HTTP/1.1",
            "CONNECT": b"CONNECT @HOST@ HTTP/1.1"}.items():
        yield Form(f"line {name}", post([length(CANARY)], CANARY, line=line))
    yield Form("line HTTP/0.9 alone", b"GET /healthz?canary\r\n\r\n")
    yield Form("HTTP/2 preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + CANARY)
    yield Form("lines end in LF", post([length(CANARY)], CANARY, eol=b"\n"))
    yield Form("lines end in CR", post([length(CANARY)], CANARY, eol=b"\r"))
    yield Form("head ends in LF",
               b"POST /no-such-path HTTP/1.1\r\nHost: @HOST@\r\n" +
               length(CANARY) + b"\r\n\n" + CANARY)
    yield Form("NUL lines before",
               b"\x00\r\n" + post([length(CANARY)], CANARY))


def header_forms():
    for name, line in {
            "name with a space": b"X A: b", "name empty": b": b",
            "name with a control": b"X\x07A: b", "name with NUL": b"X\x00: b",
            "name with a separator": b"X(A): b",
            "name with a high byte": b"X\xe9: b",
            "value with NUL": b"X-A: \x00b", "value with CR": b"X-A: a\rb",
            "value with LF": b"X-A: a\nb", "value with DEL": b"X-A: \x7f",
            "value with ESC": b"X-A: \x1b[2J", "folded": b"X-A: b\r\n c",
            "without a colon": b"X-A",
            "second Host": b"Host: elsewhere",
            "second Host, equal": b"Host: @HOST@",
            "unknown Expect": b"Expect: the-unexpected"}.items():
        yield Form(f"header {name}", post([line, length(CANARY)], CANARY))
    for name, host in {
            "missing": b"", "empty": b"Host:\r\n",
            "a list": b"Host: @HOST@, elsewhere\r\n",
            "with a user": b"Host: a@@HOST@\r\n",
            "with a path": b"Host: @HOST@/path\r\n",
            "with a space": b"Host: a b\r\n",
            "with a bad port": b"Host: localhost:8o\r\n"}.items():
        yield Form(f"Host {name}",
                   b"POST /no-such-path HTTP/1.1\r\n" + host +
                   length(CANARY) + b"\r\n\r\n" + CANARY)


def body_forms():
    """Good requests whose body looks like a request."""
    for name, headers, line in (
            ("GET", (), b"GET /no-such-path HTTP/1.1"),
            ("HEAD", (), b"HEAD /no-such-path HTTP/1.1"),
            ("DELETE", (), b"DELETE /no-such-path HTTP/1.1"),
            ("OPTIONS", (), b"OPTIONS /no-such-path HTTP/1.1"),
            ("unknown method", (), b"BREW /no-such-path HTTP/1.1"),
            ("HTTP/1.0", (b"Connection: keep-alive",),
             b"POST /no-such-path HTTP/1.0"),
            ("upgrade to h2c", (b"Connection: Upgrade, HTTP2-Settings",
                                b"Upgrade: h2c", b"HTTP2-Settings: AAMA"),
             b"POST /no-such-path HTTP/1.1"),
            ("upgrade to websocket", (b"Connection: Upgrade",
                                      b"Upgrade: websocket"),
             b"GET /no-such-path HTTP/1.1"),
            ("expecting to continue", (b"Expect: 100-continue",),
             b"POST /no-such-path HTTP/1.1")):
        yield Form(f"body of {name}",
                   post([*headers, length(CANARY)], CANARY, line=line),
                   strict=False)
    yield Form("chunked body of GET",
               post([CHUNKED], HIDDEN, line=b"GET /no-such-path HTTP/1.1"),
               strict=False)


FORMS = [*te_forms(), *cl_forms(), *chunk_forms(), *line_forms(),
         *header_forms(), *body_forms()]


def talk(peer, data, to_head=False):
    """All final responses until the other side closes."""
    responses = []
    peer.send(data)
    while (r := peer.response(to_head)) is not None:
        if r.status >= 200:
            responses.append(r)
    return responses


def judge(form, responses, n_requests):
    """What is wrong with how a server met a form, given what it answered on
    the connection and how many requests it says it has seen."""
    wrong = []
    statuses = [r.status for r in responses]
    if n_requests > 1:
        wrong.append(f"saw {n_requests:g} requests")
    if len(responses) > 1 or 200 in statuses:
        wrong.append(f"answered the canary: {statuses}")
    if form.strict and responses and not (responses[0].closes and
                                          statuses[0] in REFUSALS):
        wrong.append(f"did not refuse it and close: {responses[0]}")
    return wrong


def probe(server, form):
    """Send a form straight to a server. What is wrong, in words."""
    before = metric(server, REQUESTS)
    with server.connect() as peer:
        try:
            responses = talk(peer, form.bytes_for(server),
                             form.data.startswith(b"HEAD "))
        except (ValueError, EOFError) as e:
            return [f"answered garbage: {e}"]
    n = metric(server, REQUESTS) - before - 1  # the asking is one itself
    return judge(form, responses, n)


def probe_through(proxy, server, form, victims=2):
    """Send a form through a proxy that keeps its connections to the server.

    What the proxy takes for two requests are two, and it may answer them. But
    the server must not see more of them than the proxy sent, and the client that comes
    next on the same connection must get the answer to their own request."""
    victim = request("GET", "/no-such-victim", "Connection: close",
                     host=server.host)

    def ask():
        # A kept connection may have been closed meanwhile; then the proxy says
        # so, and nothing was mixed up.
        for _ in range(10):
            with proxy.connect() as peer:
                answers = talk(peer, victim)
            if len(answers) != 1 or answers[0].status not in (502, 503):
                break
        return answers

    ask()  # so that there is a connection to share
    sent, before = proxy.n_requests(), metric(server, REQUESTS)
    with proxy.connect() as peer:
        try:
            talk(peer, form.bytes_for(server),
                 form.data.startswith(b"HEAD "))
        except (ValueError, EOFError):
            pass  # the proxy's own answers to nonsense may be nonsense
    wrong = []
    for _ in range(victims):
        answers = ask()
        if [a.status for a in answers] != [404]:
            wrong.append(f"the next request was answered {answers}")
    n = metric(server, REQUESTS) - before - 1
    sent = proxy.n_requests() - sent
    if n > sent:
        wrong.append(f"saw {n:g} requests where the proxy sent {sent}")
    return wrong

