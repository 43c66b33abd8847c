/* One handle of libcurl's easy interface, configured for each call. Rejected:
 * fetch, which needs a loop and is made for addresses from outside; a command
 * waits for one answer from a server that its user named.
 *
 * It would break with a token in an argument or a log, or with an answer that
 * is shown untamed. Text of the server reaches the terminal only through
 * cli_error, grid and str_tame_text. */
#include "cli/client.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/endpoint.h"
#include "cli/span.h"
#include "cli/trust.h"

struct client {
    struct cli *c;
    CURL *curl;
    char url[CLIENT_URL_MAX + 1]; /* without a slash at the end */
    char token[CLIENT_TOKEN_MAX + 1];
    const char *ca_file; /* NULL: the system's */
    struct clock clock;
    struct buf body;
    struct arena arena; /* of the reply's tree */
    struct client_reply reply;
    struct sse sse;
    char curl_error[CURL_ERROR_SIZE];
    bool has_notice, is_quiet;
    bool heeds_interrupt, was_interrupted; /* an interrupt ended a call */

    /* The current call. */
    const struct client_request *now;
    int64_t begun_ms, heard_ms; /* monotonic */
    bool is_decided;            /* is_stream is known */
    bool is_stream;
    enum err cut;     /* the reason why the client aborted the call */
    bool was_cut_off; /* the server hung up in the TLS handshake */
};

static bool client_on_event(void *ctx, const struct sse_event *e)
{
    struct client *cl = ctx;

    return cl->now->on_event(cl->now->ctx, e);
}

struct client *client_new(struct cli *c, enum exit_status *status)
{
    struct client *cl = mem_new(sizeof(*cl));

    curl_global_init(CURL_GLOBAL_DEFAULT);
    cl->curl = curl_easy_init();
    cl->c = c;
    cl->clock = clock_system();
    buf_init(&cl->body, CLIENT_BODY_MAX);
    arena_init(&cl->arena, 2UL * CLIENT_BODY_MAX);
    sse_init(&cl->sse, CLIENT_EVENT_MAX, client_on_event, cl);
    if (endpoint_read_url(c, cl->url, status) &&
        endpoint_read_ca(c, &cl->ca_file, status) &&
        endpoint_read_token(c, cl->token, status))
        return cl;
    client_free(cl);
    return NULL;
}

void client_free(struct client *cl)
{
    if (!cl)
        return;
    client_notice_off(cl);
    curl_easy_cleanup(cl->curl);
    curl_global_cleanup();
    buf_fini(&cl->body);
    arena_fini(&cl->arena);
    sse_fini(&cl->sse);
    explicit_bzero(cl->token, sizeof(cl->token));
    free(cl);
}

const struct client_reply *client_reply(const struct client *cl)
{
    return &cl->reply;
}

struct str client_last_id(const struct client *cl)
{
    return buf_str(&cl->sse.id);
}

/* Interrupts. A signal handler needs a global; there is one main thread and one
 * command. */

static volatile sig_atomic_t interrupts;

static void on_interrupt(int signum)
{
    (void)signum;
    interrupts = 1;
}

void client_heed_interrupt(struct client *cl)
{
    struct sigaction act = {.sa_handler = on_interrupt,
                            .sa_flags = (int)SA_RESETHAND};

    sigemptyset(&act.sa_mask);
    cl->heeds_interrupt = sigaction(SIGINT, &act, NULL) == 0;
}

bool client_was_interrupted(const struct client *cl)
{
    return cl->heeds_interrupt && interrupts;
}

/* Notices for waiting users. */

void client_notice(struct client *cl, const char *fmt, ...)
{
    char words[256];
    va_list ap;

    if (!cl->c->notices || cl->is_quiet)
        return;
    va_start(ap, fmt);
    vsnprintf(words, sizeof(words), fmt, ap);
    va_end(ap);
    str_tame(words, strlen(words));
    fprintf(stderr, "\r%.76s\033[K", words);
    cl->has_notice = true;
}

void client_notice_off(struct client *cl)
{
    if (cl->has_notice)
        fprintf(stderr, "\r\033[K");
    cl->has_notice = false;
}

void client_quiet(struct client *cl, bool is_quiet)
{
    client_notice_off(cl);
    cl->is_quiet = is_quiet;
}

/* One call. */

static int64_t client_mono_ms(const struct client *cl)
{
    return cl->clock.mono_ms(cl->clock.ctx);
}

static size_t on_body(char *p, size_t size, size_t n, void *ctx)
{
    struct client *cl = ctx;
    struct str bytes = {p, size * n};
    const char *type = NULL;
    long status = 0;

    cl->heard_ms = client_mono_ms(cl);
    if (!cl->is_decided) {
        cl->is_decided = true;
        curl_easy_getinfo(cl->curl, CURLINFO_RESPONSE_CODE, &status);
        curl_easy_getinfo(cl->curl, CURLINFO_CONTENT_TYPE, &type);
        cl->is_stream = cl->now->on_event && status == 200 && type &&
                        strncasecmp(type, "text/event-stream", 17) == 0;
    }
    client_notice_off(cl);
    if (cl->is_stream) {
        cl->cut = sse_feed(&cl->sse, bytes);
    } else {
        buf_add_str(&cl->body, bytes);
        cl->cut = cl->body.over ? ERR_LIMIT : OK;
    }
    return cl->cut ? CURL_WRITEFUNC_ERROR : bytes.n;
}

/* Called about once a second, even without data. */
static int client_on_progress(void *ctx, curl_off_t a, curl_off_t b,
                              curl_off_t d, curl_off_t e)
{
    struct client *cl = ctx;
    int64_t now_ms = client_mono_ms(cl);

    (void)a, (void)b, (void)d, (void)e;
    if (client_was_interrupted(cl) && !cl->was_interrupted) {
        cl->was_interrupted = true;
        cl->cut = ERR_STOPPING;
        return 1;
    }
    if (cl->now->notice && now_ms - cl->begun_ms >= 1000)
        client_notice(cl, "%s, %" PRId64 " s", cl->now->notice,
                      (now_ms - cl->begun_ms) / 1000);
    if (!cl->now->on_event || now_ms - cl->heard_ms < CLIENT_SILENCE_MS)
        return 0;
    cl->cut = ERR_TIMEOUT;
    return 1;
}

static struct curl_slist *client_add_header(struct curl_slist *list,
                                            const char *fmt, ...)
    PRINTF_LIKE(2, 3);
static struct curl_slist *client_add_header(struct curl_slist *list,
                                            const char *fmt, ...)
{
    char line[CLIENT_TOKEN_MAX + 64];
    struct curl_slist *more;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    more = curl_slist_append(list, line);
    explicit_bzero(line, sizeof(line));
    return more ? more : list;
}

static struct curl_slist *headers(struct client *cl,
                                  const struct client_request *r)
{
    struct curl_slist *h =
        client_add_header(NULL, "Authorization: Bearer %s", cl->token);
    struct str id = client_last_id(cl);

    h = client_add_header(h, "Accept: %s",
                          r->on_event ? "text/event-stream"
                                      : "application/json");
    if (r->answers_inputs)
        h = client_add_header(h, "Signalbox-Answers: input");
    /* Send bodies without waiting for 100 Continue. */
    h = client_add_header(h, "Expect:");
    if (r->body.n)
        h = client_add_header(h, "Content-Type: application/json");
    if (r->must_be_new)
        h = client_add_header(h, "If-None-Match: *");
    if (r->resumes && id.n && !str_has_control(id))
        h = client_add_header(h, "Last-Event-ID: %.*s", STR_ARG(id));
    return h;
}

static void client_set_up_transfer(struct client *cl,
                                   const struct client_request *r,
                                   const char *url, struct curl_slist *h)
{
    int64_t timeout_ms = r->timeout_ms ? r->timeout_ms : CLIENT_TIMEOUT_MS;
    CURL *u = cl->curl;

    curl_easy_reset(u);
    cl->curl_error[0] = '\0';
    curl_easy_setopt(u, CURLOPT_ERRORBUFFER, cl->curl_error);
    curl_easy_setopt(u, CURLOPT_URL, url);
    curl_easy_setopt(u, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(u, CURLOPT_PROXY, "");
    curl_easy_setopt(u, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(u, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(u, CURLOPT_CERTINFO, 1L);
    if (cl->ca_file) {
        curl_easy_setopt(u, CURLOPT_CAINFO, cl->ca_file);
        curl_easy_setopt(u, CURLOPT_CAPATH, NULL);
    }
    curl_easy_setopt(u, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(u, CURLOPT_USERAGENT, "signalbox/" SIGNALBOX_VERSION);
    curl_easy_setopt(u, CURLOPT_CONNECTTIMEOUT_MS, (long)CLIENT_CONNECT_MS);
    curl_easy_setopt(u, CURLOPT_TIMEOUT_MS,
                     r->on_event ? 0L : (long)timeout_ms);
    curl_easy_setopt(u, CURLOPT_HTTPHEADER, h);
    curl_easy_setopt(u, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(u, CURLOPT_WRITEDATA, cl);
    curl_easy_setopt(u, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(u, CURLOPT_XFERINFOFUNCTION, client_on_progress);
    curl_easy_setopt(u, CURLOPT_XFERINFODATA, cl);
    if (strcmp(r->method, "GET") == 0)
        return;
    curl_easy_setopt(u, CURLOPT_POSTFIELDS, r->body.n ? r->body.p : "");
    curl_easy_setopt(u, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body.n);
    curl_easy_setopt(u, CURLOPT_CUSTOMREQUEST, r->method);
}

/* Errors. */

static enum err client_unreachable(struct client *cl, const char *fmt, ...)
    PRINTF_LIKE(2, 3);
static enum err client_unreachable(struct client *cl, const char *fmt, ...)
{
    char words[320];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(words, sizeof(words), fmt, ap);
    va_end(ap);
    return why_err(&cl->reply.why, ERR_UNREACHABLE, "%s", words);
}

static enum err client_no_response(struct client *cl)
{
    return client_unreachable(
        cl,
        "no response from %.100s: is the server running? script/server starts "
        "one; SIGNALBOX_URL or --url names another address",
        cl->url);
}

static enum err client_untrusted(struct client *cl)
{
    static const char title[] = "X509v3 Subject Alternative Name:";
    struct curl_certinfo *certs = NULL;
    const char *names = NULL; /* in the certificate, if libcurl got it */

    switch (trust_of(cl->curl_error)) {
    case TRUST_NAME:
        curl_easy_getinfo(cl->curl, CURLINFO_CERTINFO, &certs);
        for (struct curl_slist *l =
                 certs && certs->num_of_certs ? certs->certinfo[0] : NULL;
             l && !names; l = l->next)
            if (strncmp(l->data, title, sizeof(title) - 1) == 0)
                names = l->data + sizeof(title) - 1;
        return client_unreachable(
            cl,
            "the certificate of %.100s is for another name: use one of its "
            "names%s%.120s",
            cl->url, names ? ": " : "", names ? names : "");
    case TRUST_ENDED:
        return client_unreachable(
            cl,
            "the certificate of %.100s has expired: the operator of the server "
            "must renew it",
            cl->url);
    case TRUST_EARLY:
        return client_unreachable(
            cl,
            "the certificate of %.100s is not valid yet: wait, or set the "
            "clock of this machine",
            cl->url);
    case TRUST_SIGNER: break;
    }
    return client_unreachable(
        cl,
        "the certificate of %.100s is not trusted: %.100s. Name the "
        "certificate of its authority with --ca FILE or SIGNALBOX_CA",
        cl->url, cl->curl_error);
}

/* Connected, but without TLS. An overloaded server hangs up in the handshake
 * and may be available again a moment later. */
static enum err client_no_tls(struct client *cl)
{
    switch (handshake_of(cl->curl_error)) {
    case HANDSHAKE_PLAIN:
        return client_unreachable(
            cl,
            "the server at %.100s does not use TLS: check the port. Write "
            "http:// instead of https:// only on a safe network, such as this "
            "machine: the token is then sent in plain text",
            cl->url);
    case HANDSHAKE_CUT:
        cl->was_cut_off = true;
        return client_unreachable(
            cl,
            "%.100s closed the connection in the TLS handshake: is it a "
            "Signalbox? An overloaded one may be available again in a moment",
            cl->url);
    case HANDSHAKE_OTHER: break;
    }
    return client_unreachable(cl, "no TLS with %.100s: %.150s", cl->url,
                              cl->curl_error);
}

/* No response, or only a part. */
static enum err client_connection_lost(struct client *cl, CURLcode code)
{
    switch ((int)code) {
    case CURLE_PEER_FAILED_VERIFICATION: return client_untrusted(cl);
    case CURLE_SSL_CACERT_BADFILE:
        return why_err(&cl->reply.why, ERR_USAGE,
                       "%.200s has no certificates: it must be in PEM",
                       cl->ca_file ? cl->ca_file : "the system's list");
    case CURLE_SSL_CONNECT_ERROR: return client_no_tls(cl);
    case CURLE_COULDNT_CONNECT: return client_no_response(cl);
    case CURLE_URL_MALFORMAT:
    case CURLE_COULDNT_RESOLVE_HOST:
        return client_unreachable(cl,
                                  "unknown host in %.100s: SIGNALBOX_URL or "
                                  "--url names the server",
                                  cl->url);
    case CURLE_OPERATION_TIMEDOUT:
        if (!cl->reply.was_sent)
            return client_no_response(cl);
        return client_unreachable(
            cl, "%.100s accepted the request and did not answer in time",
            cl->url);
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_PARTIAL_FILE:
        return client_unreachable(
            cl, "%.100s hung up before the answer was complete", cl->url);
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
        return client_unreachable(cl, "the server at %.100s is not HTTP",
                                  cl->url);
    default:
        return client_unreachable(cl, "no connection to %.100s: %s", cl->url,
                                  cl->curl_error[0] ? cl->curl_error
                                                    : curl_easy_strerror(code));
    }
}

/* The client aborted the call. */
static enum err client_transfer_aborted(struct client *cl)
{
    switch ((int)cl->cut) {
    case ERR_GONE: return OK;
    case ERR_STOPPING: return client_unreachable(cl, "interrupted");
    case ERR_LIMIT:
        return why_err(&cl->reply.why, ERR_LIMIT,
                       "the answer of %.100s is too large: use a smaller "
                       "--limit N",
                       cl->url);
    default:
        return client_unreachable(cl, "%.100s has sent nothing for %d s",
                                  cl->url, CLIENT_SILENCE_MS / 1000);
    }
}

/* An unknown code comes from a newer server: use the code of its status. */
static enum err err_of_answer(struct str code, int status)
{
    for (int e = OK + 1; e < N_ERR; e++)
        if (str_eq(str_of(err_row((enum err)e)->code), code))
            return (enum err)e;
    if (status > 501 && status < 505)
        return ERR_OVERLOADED;
    for (int e = OK + 1; e < N_ERR; e++)
        if (err_row((enum err)e)->http_status == status)
            return (enum err)e;
    return status < 500 ? ERR_BAD_REQUEST : ERR_INTERNAL;
}

struct str client_own_words(struct cli *c, struct str words)
{
    static const struct {
        struct str api, own;
    } names[] = {
        {STR("name one as executor.name"), STR("name one with --to NAME")},
        {STR("register one (POST /api/agents)"),
         STR("register one (signalbox agents register FILE)")},
        {STR("executor.name"), STR("--to")},
        {STR("GET /api/agents"), STR("signalbox agents")},
    };
    size_t at = 0;
    struct buf out;
    char *kept;

    buf_init(&out, 2048);
    while (at < words.n) {
        struct str rest = str_sub(words, at, words.n);
        size_t i = 0;

        while (i < sizeof(names) / sizeof(*names) &&
               !str_starts(rest, names[i].api))
            i++;
        if (i < sizeof(names) / sizeof(*names)) {
            buf_add_str(&out, names[i].own);
            at += names[i].api.n;
        } else {
            buf_add_char(&out, words.p[at++]);
        }
    }
    kept = out.over ? NULL : arena_strdup(&c->arena, buf_str(&out));
    if (kept)
        words = (struct str){kept, out.n};
    buf_fini(&out);
    return words;
}

/* An error from the server. */
static enum err client_report_refusal(struct client *cl,
                                      const struct json *error)
{
    struct str code = json_str_or(json_get(error, STR("code")), STR(""));
    struct str words = json_str_or(json_get(error, STR("message")), code);
    const struct json *nearest =
        json_get(json_get(error, STR("details")), STR("nearest"));
    struct str name = json_str_or(json_at(nearest, 0), STR(""));
    enum err e = err_of_answer(code, cl->reply.status);

    words = client_own_words(cl->c, str_head(words, 400));
    if (name.n && !memmem(words.p, words.n, name.p, name.n))
        return why_err(&cl->reply.why, e, "%.*s; did you mean %.*s?",
                       STR_ARG(words), STR_ARG(str_head(name, 80)));
    if (e == ERR_UNAUTHENTICATED)
        return why_err(&cl->reply.why, e, "%.*s; token from %s, server %.60s",
                       STR_ARG(str_head(words, 300)),
                       args_has(&cl->c->args, "token-file") ? "--token-file"
                                                            : "SIGNALBOX_TOKEN",
                       cl->url);
    return why_err(&cl->reply.why, e, "%.*s", STR_ARG(words));
}

/* A complete answer. */
static enum err client_read_reply(struct client *cl)
{
    struct client_reply *reply = &cl->reply;
    char *elsewhere = NULL;
    const struct json *error;

    if (cl->is_stream || (reply->status == 204 && !cl->body.n))
        return OK;
    if (cl->now->wants_text && reply->status == 200) {
        reply->text = buf_str(&cl->body);
        return OK;
    }
    reply->json = json_parse(&cl->arena, buf_str(&cl->body), 0, NULL);
    error = json_get(reply->json, STR("error"));
    if (reply->status / 100 == 2 && reply->json &&
        reply->json->type == (cl->now->is_array ? JSON_ARR : JSON_OBJ))
        return OK;
    if (reply->status / 100 > 3 && json_get(error, STR("code")))
        return client_report_refusal(cl, error);
    reply->json = NULL;
    curl_easy_getinfo(cl->curl, CURLINFO_REDIRECT_URL, &elsewhere);
    if (elsewhere)
        return client_unreachable(
            cl,
            "%.100s redirects to %.100s: use that as SIGNALBOX_URL or --url if "
            "it is right",
            cl->url, elsewhere);
    return client_unreachable(
        cl,
        "the server at %.100s is not a Signalbox: status %d, without the "
        "expected JSON",
        cl->url, reply->status);
}

static void call_once(struct client *cl, const struct client_request *r)
{
    char url[CLIENT_URL_MAX + 4096 + 1];
    struct curl_slist *h = headers(cl, r);
    long status = 0, sent = 0;
    curl_off_t later_s = 0;
    CURLcode code;

    cl->reply = (struct client_reply){0};
    buf_clear(&cl->body);
    arena_reset(&cl->arena);
    sse_restart(&cl->sse);
    cl->now = r;
    cl->cut = OK;
    cl->was_cut_off = cl->is_decided = cl->is_stream = false;
    cl->begun_ms = cl->heard_ms = client_mono_ms(cl);
    snprintf(url, sizeof(url), "%s%.*s", cl->url, STR_ARG(r->path));
    client_set_up_transfer(cl, r, url, h);
    code = curl_easy_perform(cl->curl);
    curl_slist_free_all(h);
    client_notice_off(cl);
    curl_easy_getinfo(cl->curl, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(cl->curl, CURLINFO_REQUEST_SIZE, &sent);
    curl_easy_getinfo(cl->curl, CURLINFO_RETRY_AFTER, &later_s);
    cl->reply.status = (int)status;
    cl->reply.retry_after_s = later_s > 0 ? later_s : 0;
    cl->reply.was_sent = sent > 0;
    cl->reply.err = cl->cut ? client_transfer_aborted(cl)
                    : code  ? client_connection_lost(cl, code)
                            : client_read_reply(cl);
}

/* The wait before the next try; zero: no further try. */
static int64_t client_retry_delay_ms(const struct client *cl,
                                     const struct client_request *r,
                                     int64_t waited_ms)
{
    const struct client_reply *a = &cl->reply;
    int64_t ms = a->retry_after_s * 1000;
    bool is_safe =
        a->status == 429 || (a->status == 503 && strcmp(r->method, "GET") == 0);

    if (a->retry_after_s > CLIENT_PATIENCE_MS / 1000)
        return 0;
    /* Nothing was sent yet, so any request may be repeated: after 1, 2, 4 and 8
     * seconds. */
    if (cl->was_cut_off)
        ms = waited_ms ? waited_ms + 1000 : 1000;
    else if (!is_safe)
        return 0;
    if (waited_ms + ms > CLIENT_PATIENCE_MS ||
        (r->until_ms && client_mono_ms(cl) + ms > r->until_ms))
        return 0;
    return ms;
}

void client_pause(struct client *cl, int64_t ms)
{
    struct timespec t = {ms / 1000, (ms % 1000) * 1000000};

    nanosleep(&t, NULL);
    client_notice_off(cl);
}

enum err client_call(struct client *cl, const struct client_request *r)
{
    int64_t waited_ms = 0, ms;

    call_once(cl, r);
    while ((ms = client_retry_delay_ms(cl, r, waited_ms))) {
        client_notice(cl,
                      cl->was_cut_off
                          ? "the server hung up; trying again in %" PRId64 " s"
                          : "the server is busy; trying again in %" PRId64 " s",
                      ms / 1000);
        client_pause(cl, ms);
        waited_ms += ms;
        call_once(cl, r);
    }
    return cl->reply.err;
}

enum exit_status client_fail(struct client *cl)
{
    const struct client_reply *r = &cl->reply;
    struct buf line;

    client_notice_off(cl);
    if (!cl->c->json || !r->json)
        return cli_error(cl->c, r->err, "%s", r->why.text);
    buf_init(&line, CLI_OUT_MAX);
    cli_json_line(&line, r->json);
    fprintf(stderr, "%.*s", STR_ARG(buf_str(&line)));
    buf_fini(&line);
    return err_row(r->err)->exit_status;
}

enum exit_status client_fail_to(struct client *cl)
{
    static const char ours[] = "with --to NAME", theirs[] = "as executor.name";
    char *text = cl->reply.why.text;
    char *at = strstr(text, theirs);

    if (cl->reply.err == ERR_NO_ROUTE && at) {
        memcpy(at, ours, sizeof(ours) - 1);
        memmove(at + sizeof(ours) - 1, at + sizeof(theirs) - 1,
                strlen(at + sizeof(theirs) - 1) + 1);
    }
    return client_fail(cl);
}

/* Paths. */

void client_add_part(struct buf *path, struct str part)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "abcdefghijklmnopqrstuvwxyz0123456789-._~";

    for (size_t i = 0; i < part.n; i++)
        if (part.p[i] && strchr(plain, part.p[i]))
            buf_add_char(path, part.p[i]);
        else
            buf_addf(path, "%%%02X", (unsigned char)part.p[i]);
}

void client_add_query(struct buf *path, const char *name, struct str value)
{
    bool is_first = str_find(buf_str(path), '?', 0) == path->n;

    buf_addf(path, "%c%s=", is_first ? '?' : '&', name);
    client_add_part(path, value);
}

bool client_add_time(struct cli *c, struct buf *path, const char *option,
                     const char *name, enum exit_status *status)
{
    struct str when = args_get(&c->args, option);
    char digits[32];
    int64_t ms;

    if (!args_has(&c->args, option))
        return true;
    if (span_read(when, &ms) == OK) {
        ms = cli_now_ms() - ms;
    } else if (str_to_i64(when, &ms) != OK || ms < 0) {
        *status = cli_error(c, ERR_USAGE,
                            "--%s is \"%.*s\"; it must be a span like 12h "
                            "or 7d, or Unix time in milliseconds",
                            option, STR_ARG(str_head(when, 64)));
        return false;
    }
    snprintf(digits, sizeof(digits), "%" PRId64, ms);
    client_add_query(path, name, str_of(digits));
    return true;
}

/* One page. *cursor continues after it, empty at the end. */
static enum err list_page(struct client *cl, struct str path, int64_t n,
                          struct buf *cursor)
{
    char count[24];
    struct buf full;
    enum err e;

    buf_init(&full, 4096);
    buf_add_str(&full, path);
    snprintf(count, sizeof(count), "%" PRId64, n);
    client_add_query(&full, "limit", str_of(count));
    if (cursor->n)
        client_add_query(&full, "cursor", buf_str(cursor));
    e = full.over
            ? why_err(&cl->reply.why, ERR_LIMIT, "the filters are too long")
            : client_call(cl, &(struct client_request){.method = "GET",
                                                       .path = buf_str(&full)});
    cl->reply.err = e;
    buf_fini(&full);
    return e;
}

enum err client_list(struct client *cl, struct str path, int64_t limit,
                     client_item_fn *each, void *ctx, bool *more)
{
    struct buf cursor;
    bool goes_on = true;
    enum err e = OK;

    *more = false;
    buf_init(&cursor, 2048);
    while (goes_on && !e) {
        int64_t n = limit < CLIENT_PAGE ? limit : CLIENT_PAGE;
        struct json *items = NULL;
        struct str next;

        e = list_page(cl, path, n, &cursor);
        if (!e)
            items = json_get(cl->reply.json, STR("items"));
        if (!items || items->type != JSON_ARR)
            break;
        JSON_EACH(item, items)
        if (goes_on && limit-- > 0)
            goes_on = each(ctx, item);
        next =
            json_str_or(json_get(cl->reply.json, STR("next_cursor")), STR(""));
        *more = next.n > 0;
        goes_on = goes_on && next.n && limit > 0;
        buf_clear(&cursor);
        buf_add_str(&cursor, next);
    }
    buf_fini(&cursor);
    return e;
}

struct str cli_field(const struct json *v, struct str key)
{
    return json_str_or(json_get(v, key), STR(""));
}

int64_t cli_field_int(const struct json *v, struct str key)
{
    return json_int_or(json_get(v, key), 0);
}
