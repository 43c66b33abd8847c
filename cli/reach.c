/* reach: check whether this server, with its configuration, would connect to a
 * URL that an agent supplied, and what the response is.
 *
 * First each address of the host is checked, for helpful messages. Then the
 * request is made with the same code and guard as a delivery, because only that
 * is reliable: the name may resolve differently a moment later, and a redirect
 * leads to another host. The request ends with the response's headers, so that
 * an endless stream counts as a response too. Only the host of the URL is
 * shown, because the rest may contain secrets. */
#include "cli/reach.h"

#include <netdb.h>
#include <stdio.h>
#include <unistd.h>

#include "base/addr.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/url.h"
#include "cli/finding.h"
#include "cli/tlsfiles.h"
#include "cli/trust.h"
#include "net/client/fetch.h"

#define METADATA_ADVICE                                                   \
    "keep it closed: at this address a cloud gives out the keys of this " \
    "machine"

enum {
    ADDRESSES_MAX = 16, /* shown; hosts with more are rare */
    REDIRECTS_MAX = 5,
    ANSWER_MS = 10 * 1000, /* from the connection to the response's headers */
};

struct address {
    char text[ADDR_TEXT_BYTES];
    char range[GUARD_RANGE_BYTES]; /* the range that allows or would allow it */
    const char *kind;
    bool is_allowed, is_public;
    bool is_metadata; /* a cloud's metadata service, with its keys */
};

struct reach {
    struct cli *cli;
    struct config *config;
    struct guard guard;
    struct url url;
    struct buf http_url; /* the URL as http: or https: */

    struct address addresses[ADDRESSES_MAX];
    size_t n_addresses, n_allowed, n_left_out;
    struct finding lookup; /* GOOD: no message; BAD: no request is shown */

    /* The result of the request. */
    struct loop loop;
    struct fetch *fetch;
    enum err e;
    struct why why;
    int status;
    char peer[ADDR_TEXT_BYTES], tls[16];
    char refused[ADDR_TEXT_BYTES];  /* by the guard */
    char origin[URL_HOST_MAX + 32]; /* that answered */
    bool is_redirected;
};

/* Addresses. */

static bool is_metadata(const struct sockaddr *to)
{
    /* Most clouds; Alibaba; Amazon by IPv6. */
    static const uint8_t known[][ADDR_BYTES] = {
        {[10] = 0xff, 0xff, 169, 254, 169, 254},
        {[10] = 0xff, 0xff, 100, 100, 100, 200},
        {0xfd, 0x00, 0x0e, 0xc2, [14] = 0x02, 0x54},
    };
    uint8_t bytes[ADDR_BYTES];

    addr_bytes(to, bytes);
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (memcmp(bytes, known[i], sizeof(bytes)) == 0)
            return true;
    return false;
}

static void reach_judge_address(struct reach *r, const struct sockaddr *to)
{
    struct address *a = &r->addresses[r->n_addresses];
    struct guard_range own = {.port = 0};

    if (r->n_addresses == ADDRESSES_MAX) {
        r->n_left_out++;
        return;
    }
    r->n_addresses++;
    addr_write(to, a->text);
    a->is_allowed = guard_judge(&r->guard, to, &a->kind) == OK;
    a->is_public = guard_judge(&(struct guard){0}, to, NULL) == OK;
    a->is_metadata = is_metadata(to);
    r->n_allowed += a->is_allowed;
    /* The range of outgoing.allow that has the address, or that would allow
     * it. */
    if (guard_range_of(to, &own) == OK)
        guard_range_write(&own, a->range);
    for (size_t i = 0; i < r->guard.n_allow; i++) {
        struct guard one = {&r->guard.allow[i], 1};

        if (guard_judge(&one, to, NULL) == OK) {
            guard_range_write(one.allow, a->range);
            return;
        }
    }
}

/* Hosts that libcurl resolves to this machine without a lookup: both addresses,
 * IPv6 first. */
static bool judge_localhost(struct reach *r)
{
    static const char *const texts[] = {"[::1]", "127.0.0.1"};
    struct str host = r->url.host, word = STR("localhost");
    struct str end = str_sub(host, host.n - word.n, host.n);
    char text[ADDR_TEXT_BYTES];
    struct addr a;

    if (host.n < word.n || !str_eq_nocase(end, word) ||
        (host.n > word.n && host.p[host.n - word.n - 1] != '.'))
        return false;
    for (size_t i = 0; i < 2; i++) {
        snprintf(text, sizeof(text), "%s:%u", texts[i], r->url.port);
        if (addr_parse(str_of(text), &a) == OK)
            reach_judge_address(r, &a.sa.any);
    }
    return true;
}

static void reach_look_up(struct reach *r)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_protocol = 0};
    struct addrinfo *all = NULL;
    char host[URL_HOST_MAX + 1], port[8];
    int e;

    /* With a proxy, only numeric addresses can be checked here. */
    if (*r->config->outgoing.proxy.p)
        hints.ai_flags = AI_NUMERICHOST;
    else if (judge_localhost(r))
        return;
    snprintf(host, sizeof(host), "%.*s", STR_ARG(r->url.host));
    snprintf(port, sizeof(port), "%u", r->url.port);
    e = getaddrinfo(host, port, &hints, &all);
    if (e && !hints.ai_flags) {
        finding_set(&r->lookup, BAD, "%s has no address: %s", host,
                    gai_strerror(e));
        finding_advise(&r->lookup, "getent ahosts %s does the same lookup",
                       host);
    }
    for (struct addrinfo *a = all; a && !e; a = a->ai_next)
        reach_judge_address(r, a->ai_addr);
    if (!e)
        freeaddrinfo(all);
}

/* The request. */

static void reach_on_stopped(void *ctx)
{
    struct reach *r = ctx;

    loop_stop(&r->loop);
}

static void note_answer(struct reach *r, const struct fetch_answer *a)
{
    struct url u;

    r->status = a->status;
    snprintf(r->peer, sizeof(r->peer), "%.*s", STR_ARG(a->peer));
    snprintf(r->tls, sizeof(r->tls), "%.*s", STR_ARG(a->tls));
    snprintf(r->refused, sizeof(r->refused), "%.*s", STR_ARG(a->refused));
    if (url_read(a->url, &u, NULL) == OK) {
        snprintf(r->origin, sizeof(r->origin), "%s://%.*s",
                 u.is_tls ? "https" : "http", STR_ARG(u.authority));
        r->is_redirected = !str_eq(a->url, buf_str(&r->http_url));
    }
}

static void reach_on_head(void *ctx, uint64_t id, const struct fetch_answer *a)
{
    struct reach *r = ctx;

    note_answer(r, a);
    fetch_cancel(r->fetch, id);
    fetch_stop(r->fetch, reach_on_stopped, r);
}

static void reach_on_done(void *ctx, uint64_t id, enum err e,
                          const struct fetch_answer *a, const struct why *why)
{
    struct reach *r = ctx;

    (void)id;
    note_answer(r, a);
    r->e = e;
    r->why = *why;
    fetch_stop(r->fetch, reach_on_stopped, r);
}

static enum err reach_start_request(struct reach *r, struct log *log)
{
    static const struct fetch_handler handler = {.on_head = reach_on_head,
                                                 .on_done = reach_on_done};
    const struct config *c = r->config;
    struct fetch_opts opts = {
        .guard = r->guard,
        .proxy = c->outgoing.proxy.p,
        .ca_file = c->outgoing.ca_file.p,
        .max_open = 1,
        .max_per_host = 1,
        .max_kept = 0,
        .connect_timeout_ms = c->outgoing.connect_timeout_ms,
        .max_header_bytes = (size_t)c->outgoing.max_header_bytes,
    };
    struct fetch_request rq = {
        .method = STR("GET"),
        .url = buf_str(&r->http_url),
        .max_redirects = REDIRECTS_MAX,
        .timeout_ms = c->outgoing.connect_timeout_ms + ANSWER_MS,
        .max_body_bytes = (size_t)c->outgoing.max_body_bytes,
    };
    uint64_t id;
    enum err e;

    if (*opts.ca_file) {
        tlsfiles_check_trust(opts.ca_file, &r->why);
        if (r->why.text[0])
            return ERR_BAD_CONFIG;
    }
    r->fetch = fetch_new(&r->loop, log, &opts, &r->why);
    if (!r->fetch)
        return ERR_BAD_CONFIG;
    e = fetch_start(r->fetch, &rq, &handler, r, &id, &r->why);
    if (e)
        fetch_stop(r->fetch, reach_on_stopped, r);
    return e;
}

static enum exit_status reach_exit_status(const struct reach *r)
{
    switch ((int)r->e) {
    case OK: return EXIT_DONE;
    case ERR_ADDRESS: return EXIT_REFUSED;
    case ERR_UNREACHABLE:
    case ERR_TIMEOUT: return EXIT_UNREACHABLE;
    case ERR_BAD_CONFIG: return EXIT_USAGE;
    default: return EXIT_FAILED;
    }
}

/* Advice about a failed connection. */
static void advise_on_connection(const struct reach *r, struct finding *f)
{
    const char *said = r->why.text;

    if (strcasestr(said, "certificate"))
        switch (trust_of(said)) {
        case TRUST_NAME:
            finding_advise(
                f, "the certificate is for other names: use one of them in "
                   "the URL");
            return;
        case TRUST_ENDED:
            finding_advise(f, "the operator of that server must renew the "
                              "certificate");
            return;
        case TRUST_EARLY:
            finding_advise(f, "wait, or set the clock of this machine");
            return;
        case TRUST_SIGNER:
            finding_advise(f, "if it is your own authority, set "
                              "outgoing.caFile to its certificate");
            return;
        }
    if (handshake_of(said) == HANDSHAKE_PLAIN) {
        finding_set(f, BAD, "%s%s answers, but not with TLS",
                    r->is_redirected ? "after a redirect: " : "", r->origin);
        finding_advise(f,
                       "check the port; for plain text use http://, or ws:// "
                       "for a WebSocket");
    }
}

static void find_request(const struct reach *r, struct finding *f)
{
    /* The address of a redirect is in no line above. */
    bool is_refused = r->e == ERR_ADDRESS && *r->refused && r->is_redirected;
    char after[sizeof(r->origin) + 32] = "";

    if (r->is_redirected)
        snprintf(after, sizeof(after), " after a redirect to %s", r->origin);
    if (!r->e) {
        finding_set(f, r->status >= 500 ? DOUBTFUL : GOOD,
                    "%s%s answered %swith status %d%s, %s%s", r->peer,
                    *r->config->outgoing.proxy.p ? " (the proxy)" : "",
                    r->url.is_ws ? "a GET " : "", r->status, after,
                    r->tls[0] ? "under " : "in plain text", r->tls);
        if (r->url.is_ws)
            finding_advise(f, "the connection works; no WebSocket was opened");
        return;
    }
    /* A failed request with status 3xx was following a redirect. */
    finding_set(f, BAD, "%s%s%s%s%s",
                r->is_redirected || r->status / 100 == 3 ? "after a redirect: "
                                                         : "",
                r->why.text, is_refused ? " (refused: " : "",
                is_refused ? r->refused : "", is_refused ? ")" : "");
    if (r->e == ERR_UNREACHABLE)
        advise_on_connection(r, f);
    else if (r->e == ERR_BAD_REQUEST && !r->status && !r->url.is_tls)
        finding_advise(f, "if the server uses TLS, write https:// (or wss://)");
    else if (r->e == ERR_TIMEOUT && r->peer[0])
        finding_advise(
            f, "the connection and the request were accepted: the server is "
               "slow, stuck, or expects a protocol other than HTTP");
    else if (r->e == ERR_TIMEOUT)
        finding_advise(f, "a firewall may drop the packets; "
                          "outgoing.connectTimeoutMs is the time limit");
}

static const char *const verdicts[] = {
    [EXIT_DONE] = "reachable",          [EXIT_FAILED] = "failed",
    [EXIT_USAGE] = "bad_config",        [EXIT_REFUSED] = "refused",
    [EXIT_UNREACHABLE] = "unreachable",
};

/* The last line, with its first word in a colour. */
static void close_with(const struct reach *r, enum exit_status status)
{
    static const struct {
        enum colour colour;
        const char *word, *rest;
    } lines[] = {
        [EXIT_DONE] = {GREEN, "reachable",
                       ": the server connects to this URL for an agent"},
        [EXIT_FAILED] = {RED, "failed", ": the response is of no use"},
        [EXIT_USAGE] = {RED, "not tried", ": the configuration is invalid"},
        [EXIT_REFUSED] = {RED, "refused",
                          ": the server does not connect to this URL for an "
                          "agent"},
        [EXIT_UNREACHABLE] = {RED, "unreachable", ": no connection"},
    };

    struct cli *c = r->cli;
    const char *rest = lines[status].rest;

    if (status == EXIT_UNREACHABLE && r->peer[0])
        rest = ": connected, but no response";
    else if (r->e == ERR_UNREACHABLE &&
             (strcasestr(r->why.text, "certificate") ||
              handshake_of(r->why.text) == HANDSHAKE_PLAIN))
        rest = ": connected, but without trusted TLS";
    else if (status == EXIT_DONE && r->url.is_ws)
        rest = ": the server connects to this URL for an agent; the WebSocket "
               "itself was not tried";
    buf_add_char(&c->out, '\n');
    cli_coloured(c, lines[status].colour, str_of(lines[status].word));
    cli_wrapped(c, (unsigned)strlen(lines[status].word), 0, str_of(rest));
}

static void reach_show(struct reach *r, enum exit_status status)
{
    struct cli *c = r->cli;
    struct finding f = {GOOD, "", ""};

    finding_set(&f, GOOD, "%.*s to %.*s, port %u", STR_ARG(r->url.scheme),
                STR_ARG(r->url.host), r->url.port);
    finding_show(c, "url", &f);
    if (r->lookup.mark != GOOD)
        finding_show(c, "address", &r->lookup);
    for (size_t i = 0; i < r->n_addresses; i++) {
        const struct address *a = &r->addresses[i];

        f.advice[0] = '\0';
        if (a->is_public) {
            finding_set(&f, GOOD, "%s (public) is allowed", a->text);
        } else if (a->is_allowed) {
            finding_set(&f, a->is_metadata ? DOUBTFUL : GOOD,
                        "%s (%s) is allowed: outgoing.allow has %s", a->text,
                        a->kind, a->range);
        } else {
            /* One allowed address is enough. */
            finding_set(&f, r->n_allowed || !r->e ? DOUBTFUL : BAD,
                        "%s (%s) is not allowed", a->text, a->kind);
            finding_advise(&f, "add \"%s\" to outgoing.allow to allow it",
                           a->range);
        }
        if (a->is_metadata)
            finding_advise(&f, METADATA_ADVICE);
        finding_show(c, "address", &f);
    }
    if (r->n_left_out)
        buf_addf(&c->out, "  and %zu more\n", r->n_left_out);
    f.advice[0] = '\0';
    if (*r->config->outgoing.proxy.p) {
        finding_set(&f, GOOD, "%s makes the connection",
                    r->config->outgoing.proxy.p);
        finding_advise(&f, "make sure that the proxy blocks addresses that "
                           "agents must not reach");
        finding_show(c, "proxy", &f);
        f.advice[0] = '\0';
    }
    if (r->lookup.mark != BAD) {
        find_request(r, &f);
        finding_show(c, "request", &f);
    }
    close_with(r, status);
}

static void reach_show_json(struct reach *r, enum exit_status status)
{
    struct json_out o = json_out(&r->cli->out);
    struct finding f = r->lookup;

    if (f.mark != BAD) {
        f.advice[0] = '\0';
        find_request(r, &f);
    }
    if (r->n_addresses && r->addresses[0].is_metadata)
        finding_advise(&f, METADATA_ADVICE);
    json_open(&o, '{');
    json_member_bool(&o, "ok", status == EXIT_DONE);
    json_member_text(&o, "verdict", str_of(verdicts[status]));
    json_member_text(&o, "message", str_of(f.text));
    json_member_str(&o, "advice", str_of(f.advice));
    json_key(&o, STR("addresses"));
    json_open(&o, '[');
    for (size_t i = 0; i < r->n_addresses; i++) {
        const struct address *a = &r->addresses[i];

        json_open(&o, '{');
        json_member_text(&o, "address", str_of(a->text));
        json_member_text(&o, "kind", str_of(a->kind));
        json_member_bool(&o, "allowed", a->is_allowed);
        json_member_str(&o, "range", str_of(a->is_public ? "" : a->range));
        json_close(&o, '}');
    }
    json_close(&o, ']');
    json_member_int(&o, "addresses_left_out", (int64_t)r->n_left_out);
    json_member_str(&o, "proxy", r->config->outgoing.proxy);
    json_member_known(&o, "status", r->status, r->status);
    json_member_str(&o, "origin", str_of(r->status ? r->origin : ""));
    json_member_str(&o, "peer", str_of(r->peer));
    json_member_str(&o, "refused", str_of(r->refused));
    json_member_str(&o, "tls", str_of(r->tls));
    json_close(&o, '}');
    buf_add_char(&r->cli->out, '\n');
}

enum exit_status cli_reach(struct cli *c, struct str url)
{
    struct reach r = {.cli = c};
    struct config_report report;
    struct config_source src;
    enum exit_status status;
    struct log log;
    struct why why;

    if (url_read(url, &r.url, &why))
        return cli_error(c, ERR_USAGE, "%s", why.text);
    cli_source(c, &src);
    r.config = config_load(&src, &report);
    if (!r.config)
        return cli_bad_config(c, &report);
    r.guard = (struct guard){r.config->outgoing.allow.list,
                             r.config->outgoing.allow.n};
    /* WebSocket URLs are tried over HTTP: the connection is the same. Fragments
     * are not sent. */
    buf_init(&r.http_url, URL_BYTES_MAX + 8);
    buf_add_str(&r.http_url, r.url.is_tls ? STR("https://") : STR("http://"));
    buf_add_str(&r.http_url, r.url.authority);
    buf_add_str(&r.http_url, r.url.target);
    reach_look_up(&r);
    log_init(&log, STDERR_FILENO, LOG_ERROR, LOG_AUTO, clock_system());
    if (loop_init(&r.loop, clock_system())) {
        r.e = why_err(&r.why, ERR_NOMEM, "out of memory");
    } else {
        r.e = reach_start_request(&r, &log);
        if (r.fetch)
            loop_run(&r.loop);
        fetch_free(r.fetch);
        loop_fini(&r.loop);
    }
    status = reach_exit_status(&r);
    /* libcurl resolves names that not every system does: any.localhost. */
    if (r.lookup.mark == BAD && status != EXIT_UNREACHABLE)
        r.lookup.mark = DOUBTFUL;
    (c->json ? reach_show_json : reach_show)(&r, status);
    buf_fini(&r.http_url);
    config_free(r.config);
    return status;
}
