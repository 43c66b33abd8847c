/* A request in libcurl's options, and the guard.
 *
 * Everything that libcurl would look up by itself (the environment, .netrc,
 * cookies, other protocols) is explicitly switched off, even if that is the
 * default: defaults change. The guard checks twice. Once when a socket is
 * made, with the very address that it will be connected to: no name is
 * involved after that. And once before each request, because a kept connection
 * may have passed the first check under other rules: as a trusted request, or
 * with a longer allow list. */
#include "net/client/internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/addr.h"
#include "base/fault.h"

/* Addresses. */

/* An address in libcurl's format; false: it is invalid. */
static bool read_address(const char *ip, int port, struct addr *out)
{
    *out = (struct addr){.len = 0};
    if (inet_pton(AF_INET, ip, &out->sa.v4.sin_addr) == 1) {
        out->sa.v4.sin_family = AF_INET;
        out->sa.v4.sin_port = htons((uint16_t)port);
        return true;
    }
    if (inet_pton(AF_INET6, ip, &out->sa.v6.sin6_addr) == 1) {
        out->sa.v6.sin6_family = AF_INET6;
        out->sa.v6.sin6_port = htons((uint16_t)port);
        return true;
    }
    return false;
}

bool handle_is_address(struct str host)
{
    char text[URL_HOST_MAX + 1];
    struct addr a;

    snprintf(text, sizeof(text), "%.*s", STR_ARG(host));
    return read_address(text, 0, &a);
}

/* The guard. */

/* The message may be shown to the user who named the host, who must not learn
 * the name's internal address. The log and the operator get it. */
static bool guard_allows(struct request *r, const struct sockaddr *to)
{
    const char *kind = "of no kind that is known";

    if (guard_judge(&r->fetch->opts.guard, to, &kind) == OK)
        return true;
    r->refused[0] = '\0';
    if (to->sa_family == AF_INET || to->sa_family == AF_INET6)
        addr_write(to, r->refused);
    r->is_refused = true;
    why_err(&r->why, ERR_ADDRESS,
            "%.*s %s %s: such addresses are not connected to unless "
            "outgoing.allow lists them",
            STR_ARG(r->url.authority),
            handle_is_address(r->url.host) ? "is"
                                           : "leads to an address that is",
            kind);
    log_info(r->fetch->log, "fetch.refused", LOG_S("host", r->url.host),
             LOG_C("address", r->refused), LOG_C("kind", kind));
    return false;
}

/* With a proxy the socket is not checked: its address is the proxy's. */
static bool guard_is_needed(const struct request *r)
{
    return !r->is_trusted && !r->pool->proxy;
}

static void begin_to_connect(struct request *r)
{
    if (r->connecting_ms != INT64_MAX)
        return;
    r->connecting_ms = loop_mono_ms(r->fetch->loop);
    request_arm(r);
}

/* libcurl reports a lookup for addresses too, which takes no time. */
static bool is_looked_up(const struct request *r)
{
    return r->pool->proxy ? !r->pool->is_proxy_address
                          : !handle_is_address(r->url.host);
}

static int on_lookup(void *resolver, void *reserved, void *ctx)
{
    struct request *r = ctx;
    struct fetch *f = r->fetch;

    (void)resolver;
    (void)reserved;
    if (!r->id || r->cut)
        return 1;
    begin_to_connect(r);
    if (!is_looked_up(r) || r->is_resolving)
        return 0;
    if (f->n_resolving >= (f->opts.max_open + 1) / 2) {
        request_cut(r, ERR_BUSY,
                    "%zu names are being looked up, which is as many as may "
                    "be",
                    f->n_resolving);
        return 1;
    }
    request_set_resolving(r, true);
    return 0;
}

static curl_socket_t on_socket(void *ctx, curlsocktype purpose,
                               struct curl_sockaddr *to)
{
    struct request *r = ctx;

    request_set_resolving(r, false);
    if (!r->id || r->cut)
        return CURL_SOCKET_BAD; /* its owner has left */
    begin_to_connect(r);
    request_nudge(r);
    if (purpose != CURLSOCKTYPE_IPCXN ||
        (to->family != AF_INET && to->family != AF_INET6) ||
        (to->socktype & ~(SOCK_CLOEXEC | SOCK_NONBLOCK)) != SOCK_STREAM)
        return CURL_SOCKET_BAD;
    if (guard_is_needed(r) && !guard_allows(r, &to->addr))
        return CURL_SOCKET_BAD;
    r->is_permitted = true;
    if (FAULT("fetch.socket")) {
        errno = EMFILE;
        return CURL_SOCKET_BAD;
    }
    return socket(to->family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
                  to->protocol);
}

/* Note the connected address, and the protocol. */
static void request_note_peer(struct request *r, const char *ip, int port)
{
    const struct curl_tlssessioninfo *tls = NULL;
    struct addr a;

    if (read_address(ip, port, &a))
        addr_write(&a.sa.any, r->peer);
    if (curl_easy_getinfo(r->easy, CURLINFO_TLS_SSL_PTR, &tls) == CURLE_OK &&
        tls && tls->internals)
        snprintf(r->tls, sizeof(r->tls), "%s", SSL_get_version(tls->internals));
}

/* The request has a connection, new or kept, and is about to be sent. */
static int on_request_connected(void *ctx, char *ip, char *local_ip, int port,
                                int local_port)
{
    struct request *r = ctx;
    struct addr a;

    (void)local_ip;
    (void)local_port;
    if (!r->id || r->cut)
        return CURL_PREREQFUNC_ABORT;
    if (r->is_asked) {
        /* libcurl repeats a request if a kept connection was closed without an
         * answer. The peer may have carried it out, so it is not repeated. */
        request_cut(r, ERR_BAD_REQUEST,
                    "%.*s closed the connection without an answer",
                    STR_ARG(r->url.authority));
        return CURL_PREREQFUNC_ABORT;
    }
    if (guard_is_needed(r) &&
        (!read_address(ip, port, &a) || !guard_allows(r, &a.sa.any))) {
        r->is_refused = true;
        r->is_permitted = false; /* not any more, if it was when it connected */
        return CURL_PREREQFUNC_ABORT;
    }
    request_note_peer(r, ip, port);
    r->is_refused = false; /* another address of the same name is allowed */
    r->why.text[0] = r->refused[0] = '\0';
    r->is_asked = true;
    r->connecting_ms = INT64_MAX;
    r->heard_ms = loop_mono_ms(r->fetch->loop);
    request_arm(r);
    return CURL_PREREQFUNC_OK;
}

/* With a proxy only a host that is written as an address can be checked. */
static enum err guard_check_host(struct request *r)
{
    char text[URL_HOST_MAX + 1];
    struct addr a;

    snprintf(text, sizeof(text), "%.*s", STR_ARG(r->url.host));
    if (read_address(text, r->url.port, &a))
        return guard_allows(r, &a.sa.any) ? OK : ERR_ADDRESS;
    if (!url_is_localhost(r->url.host))
        return OK;
    r->is_refused = true;
    return why_err(&r->why, ERR_ADDRESS,
                   "%.*s is this machine, or the proxy's: it is not connected "
                   "to",
                   STR_ARG(r->url.authority));
}

/* Options. */

static CURLcode on_tls(CURL *easy, void *tls, void *ctx)
{
    struct request *r = ctx;

    (void)easy;
    SSL_CTX_set1_cert_store(tls, curl_pool_trust(r->pool));
    return CURLE_OK;
}

static const struct {
    CURLoption option;
    long value;
} fixed[] = {
    {CURLOPT_NOSIGNAL, 1},
    {CURLOPT_QUICK_EXIT, 1}, /* or ending waits for name lookups */
    {CURLOPT_CONNECTTIMEOUT_MS, LONGEST_LOOKUP_MS},
    {CURLOPT_FOLLOWLOCATION, 0},
    {CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1},
    {CURLOPT_HTTP09_ALLOWED, 0},
    {CURLOPT_PATH_AS_IS, 1},
    {CURLOPT_DISALLOW_USERNAME_IN_URL, 1},
    {CURLOPT_NETRC, CURL_NETRC_IGNORED},
    {CURLOPT_HTTPAUTH, CURLAUTH_NONE},
    {CURLOPT_HEADEROPT, CURLHEADER_SEPARATE},
    {CURLOPT_SUPPRESS_CONNECT_HEADERS, 1},
    {CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2},
    {CURLOPT_SSL_VERIFYPEER, 1},
    {CURLOPT_SSL_VERIFYHOST, 2},
};

static CURLcode set_world(struct request *r, const struct curl_pool *p)
{
    CURL *c = r->easy;
    CURLcode e = CURLE_OK;

    for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
        if (!e)
            e = curl_easy_setopt(c, fixed[i].option, fixed[i].value);
    if (e || (e = curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https")) ||
        (e = curl_easy_setopt(c, CURLOPT_REDIR_PROTOCOLS_STR, "http,https")) ||
        (e = curl_easy_setopt(c, CURLOPT_PROXY, p->proxy ? p->proxy : "")) ||
        (e = curl_easy_setopt(c, CURLOPT_NOPROXY, p->proxy ? "" : "*")) ||
        (e = curl_easy_setopt(c, CURLOPT_CAINFO, NULL)) ||
        (e = curl_easy_setopt(c, CURLOPT_CAPATH, NULL)) ||
        (e = curl_easy_setopt(c, CURLOPT_SSL_CTX_FUNCTION, on_tls)) ||
        (e = curl_easy_setopt(c, CURLOPT_SSL_CTX_DATA, r)) ||
        (e = curl_easy_setopt(c, CURLOPT_FORBID_REUSE,
                              (long)(r->fetch->opts.max_kept == 0))))
        return e;
    return curl_easy_setopt(c, CURLOPT_USERAGENT,
                            "signalbox/" SIGNALBOX_VERSION);
}

static CURLcode set_callbacks(struct request *r)
{
    CURL *c = r->easy;
    CURLcode e;

    if ((e = curl_easy_setopt(c, CURLOPT_PRIVATE, r)) ||
        (e = curl_easy_setopt(c, CURLOPT_ERRORBUFFER, r->said)) ||
        (e = curl_easy_setopt(c, CURLOPT_RESOLVER_START_FUNCTION, on_lookup)) ||
        (e = curl_easy_setopt(c, CURLOPT_RESOLVER_START_DATA, r)) ||
        (e = curl_easy_setopt(c, CURLOPT_OPENSOCKETFUNCTION, on_socket)) ||
        (e = curl_easy_setopt(c, CURLOPT_OPENSOCKETDATA, r)) ||
        (e = curl_easy_setopt(c, CURLOPT_PREREQFUNCTION,
                              on_request_connected)) ||
        (e = curl_easy_setopt(c, CURLOPT_PREREQDATA, r)) ||
        (e = curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, answer_header)) ||
        (e = curl_easy_setopt(c, CURLOPT_HEADERDATA, r)) ||
        (e = curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, answer_body)) ||
        (e = curl_easy_setopt(c, CURLOPT_WRITEDATA, r)))
        return e;
    return CURLE_OK;
}

/* Headers. */

static bool handle_add_header(struct request *r, struct buf *line)
{
    struct curl_slist *list;

    buf_add_char(line, '\0');
    list = line->over || FAULT("fetch.list")
               ? NULL
               : curl_slist_append(r->list, line->p);
    buf_clear(line);
    if (!list)
        return false;
    r->list = list;
    return true;
}

/* Headers that another origin may get. Names of secret headers cannot be
 * listed, so this lists those that are known to be harmless. */
static bool header_may_go_abroad(struct str name)
{
    static const char *const names[] = {
        "Accept",     "Accept-Language", "Content-Language", "Content-Type",
        "User-Agent", "Traceparent",     "Tracestate",
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (str_eq_nocase(name, str_of(names[i])))
            return true;
    return false;
}

/* A name without a value removes libcurl's own header. */
static bool handle_remove_header(struct request *r, struct buf *line,
                                 const char *name)
{
    buf_addf(line, "%s:", name);
    return handle_add_header(r, line);
}

static bool add_headers(struct request *r, struct buf *line)
{
    bool has_type = false;

    for (size_t i = 0; i < r->n_headers; i++) {
        const struct fetch_header *h = &r->headers[i];

        if (r->is_abroad && !header_may_go_abroad(h->name))
            continue;
        has_type = has_type || str_eq_nocase(h->name, STR("Content-Type"));
        buf_add_str(line, h->name);
        if (str_trim(h->value).n) {
            buf_add(line, ": ", 2);
            buf_add_str(line, h->value);
        } else {
            buf_add_char(line, ';'); /* libcurl's form of an empty value */
        }
        if (!handle_add_header(r, line))
            return false;
    }
    return handle_remove_header(r, line, "Expect") &&
           (has_type || handle_remove_header(r, line, "Content-Type"));
}

static CURLcode set_question(struct request *r)
{
    struct str method = str_of(r->method);
    bool has_body = r->body_bytes || str_eq(method, STR("POST")) ||
                    str_eq(method, STR("PUT")) || str_eq(method, STR("PATCH"));
    CURL *c = r->easy;
    CURLcode e;

    if ((e = curl_easy_setopt(c, CURLOPT_URL, r->url_text.p)) ||
        (e = curl_easy_setopt(c, CURLOPT_HTTPHEADER, r->list)))
        return e;
    if (str_eq(method, STR("HEAD")))
        return curl_easy_setopt(c, CURLOPT_NOBODY, 1L);
    if ((e = curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, r->method)) ||
        !has_body)
        return e;
    e = curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE,
                         (curl_off_t)r->body_bytes);
    return e ? e : curl_easy_setopt(c, CURLOPT_POSTFIELDS, r->body);
}

enum err handle_set_up(struct request *r, struct curl_pool *p)
{
    struct buf line;
    bool is_listed;

    if (p->proxy && !r->is_trusted && guard_check_host(r))
        return ERR_ADDRESS;
    if (r->easy)
        curl_easy_reset(r->easy);
    else
        r->easy = FAULT("fetch.easy") ? NULL : curl_easy_init();
    if (!r->easy)
        return ERR_NOMEM;
    curl_slist_free_all(r->list);
    r->list = NULL;
    buf_init(&line, SIZE_MAX);
    is_listed = add_headers(r, &line);
    buf_fini(&line);
    if (!is_listed || FAULT("fetch.options") || set_world(r, p) ||
        set_callbacks(r) || set_question(r))
        return ERR_NOMEM;
    return OK;
}
