"""A collector of OpenTelemetry's that takes OTLP over HTTP in JSON, and is
strict: what the protocol's mapping does not allow is an AssertionError that
`problems` keeps, and a 400.

    with Collector() as collector:
        ... Server(config={"traces": {"endpoint": collector.url}}) ...
        spans = collector.spans
"""
import http.server
import json
import re
import threading

from quiet import Quiet

SPAN = {"traceId", "spanId", "parentSpanId", "name", "kind",
        "startTimeUnixNano", "endTimeUnixNano", "attributes", "events",
        "status"}
VALUES = {"stringValue": str, "intValue": str, "boolValue": bool,
          "doubleValue": (int, float)}


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


def only(value, kind, names, what):
    """An object with no member but these: unknown ones are ignored by the
    mapping, so a misspelt one would never be noticed."""
    expect(isinstance(value, kind), f"{what} is {value!r}")
    if kind is dict:
        expect(set(value) <= set(names), f"{what} has {set(value) - names}")


def check_id(value, digits, what):
    """Ids are in hex here, not in base64 as other bytes are."""
    expect(isinstance(value, str) and
           re.fullmatch(r"[0-9a-f]{%d}" % digits, value), f"{what}: {value!r}")
    expect(set(value) != {"0"}, f"{what} is all zeroes")


def check_int64(value, what):
    expect(isinstance(value, str) and re.fullmatch(r"-?(0|[1-9][0-9]*)", value)
           and -2**63 <= int(value) < 2**64, f"{what}: {value!r}")
    return int(value)


def check_attributes(attributes, what):
    """As a dictionary."""
    out = {}
    only(attributes, list, set(), what)
    for one in attributes:
        only(one, dict, {"key", "value"}, what)
        key, value = one["key"], one["value"]
        expect(isinstance(key, str) and key, f"{what}: key {key!r}")
        expect(key not in out, f"{what}: {key} twice")
        expect(len(value) == 1 and set(value) <= set(VALUES), f"{key}: {value}")
        (kind, plain), = value.items()
        expect(isinstance(plain, VALUES[kind]), f"{key}: {value}")
        out[key] = check_int64(plain, key) if kind == "intValue" else plain
    return out


def check_span(span):
    """The span, with attributes as a dictionary."""
    only(span, dict, SPAN, "span")
    check_id(span["traceId"], 32, "traceId")
    check_id(span["spanId"], 16, "spanId")
    if "parentSpanId" in span:
        check_id(span["parentSpanId"], 16, "parentSpanId")
        expect(span["parentSpanId"] != span["spanId"], "its own parent")
    expect(isinstance(span["name"], str) and span["name"], "no name")
    expect(type(span["kind"]) is int and 1 <= span["kind"] <= 5, "kind")
    begin = check_int64(span["startTimeUnixNano"], "start")
    end = check_int64(span["endTimeUnixNano"], "end")
    expect(10**18 < begin <= end, f"from {begin} to {end}")
    for event in span["events"]:
        only(event, dict, {"timeUnixNano", "name", "attributes"}, "event")
        at = check_int64(event["timeUnixNano"], "event")
        expect(begin <= at <= end, f"event at {at}, not in {begin} to {end}")
    only(span["status"], dict, {"code", "message"}, "status")
    code = span["status"].get("code", 0)
    expect(type(code) is int and 0 <= code <= 2, f"status {code!r}")
    return {**span, "attributes": check_attributes(span["attributes"], "span")}


def check_request(body):
    """Its spans."""
    spans = []
    only(body, dict, {"resourceSpans"}, "request")
    for resource in body["resourceSpans"]:
        only(resource, dict, {"resource", "scopeSpans", "schemaUrl"},
             "resourceSpans")
        about = check_attributes(resource["resource"]["attributes"], "resource")
        expect(about.get("service.name"), "no service.name")
        for scope in resource["scopeSpans"]:
            only(scope, dict, {"scope", "spans", "schemaUrl"}, "scopeSpans")
            only(scope["scope"], dict, {"name", "version"}, "scope")
            spans += [{**check_span(s), "resource": about}
                      for s in scope["spans"]]
    expect(spans, "no spans")
    return spans


def check_links(spans):
    """Every parent is there, in the same trace; each trace has one root."""
    by_id = {(s["traceId"], s["spanId"]): s for s in spans}
    expect(len(by_id) == len(spans), "an id twice")
    for s in spans:
        if "parentSpanId" in s:
            expect((s["traceId"], s["parentSpanId"]) in by_id,
                   f"{s['name']} has a parent that is not there")
    for trace in {s["traceId"] for s in spans}:
        roots = [s for s in spans
                 if s["traceId"] == trace and "parentSpanId" not in s]
        expect(len(roots) == 1, f"{len(roots)} roots in {trace}")


class Collector:
    """status: what it answers; headers: of the last request."""

    def __init__(self, port=0):
        self.spans, self.problems, self.bodies = [], [], []
        self.status, self.more = 200, {}
        self.headers = None
        self.n_requests = 0
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                length = int(self.headers["Content-Length"])
                collector.take(self, self.rfile.read(length))

        Quiet.allow_reuse_address = True
        self.server = Quiet(("127.0.0.1", port), Handler)
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/v1/traces"
        self.thread = threading.Thread(target=self.server.serve_forever,
                                       args=(0.01,), daemon=True)

    def take(self, handler, body):
        status = self.status
        self.headers = dict(handler.headers)
        try:
            expect(handler.path == "/v1/traces", handler.path)
            expect(handler.headers["Content-Type"] == "application/json",
                   "not JSON")
            spans = check_request(json.loads(body))
            if status == 200:
                self.bodies.append(body)
                self.spans += spans
        except (AssertionError, KeyError, TypeError, ValueError) as problem:
            self.problems.append(repr(problem))
            status = 400
        self.n_requests += 1
        handler.send_response(status)
        for name, value in self.more.items():
            handler.send_header(name, value)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", "2")
        handler.end_headers()
        handler.wfile.write(b"{}")

    def by_agent(self):
        return {s["attributes"]["signalbox.agent"]: s for s in self.spans}

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
