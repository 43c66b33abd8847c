/* fetch_peer [OPTION]... URL...: asks for each URL as the server would, one
 * after the other, and says on a line each what came of it:
 *
 *     {"error":"address_not_allowed","status":0,"why":"..."}
 *
 *     --allow RANGE      an entry of outgoing.allow; may be said again
 *     --redirects N      follow so many
 *     --trusted          the URLs are the operator's own
 *     --name NAME=A/B    what a name means, see fetch_peer.h
 *     --unchecked        plain libcurl instead, as most programs use it
 *     --string-check     the same, after a look at the host as it is written;
 *                        --allow is then a host
 *     --repeat N         each URL so often; a last line says what it cost
 *
 * --unchecked and --string-check are the controls of test/e2e/guard_test.py:
 * what is guarded is only worth something where those leak. */
#include <curl/curl.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "net/client/fetch.h"
#include "test/peers/fetch_peer.h"

enum { RANGES_MAX = 16 };

struct peer {
    struct loop loop;
    struct log log;
    struct fetch *fetch;
    struct guard_range allow[RANGES_MAX];
    const char *allow_text[RANGES_MAX];
    size_t n_allow;
    int max_redirects, n_repeat;
    bool is_trusted, is_plain, is_checked;
    bool is_done; /* the request that is under way */
    enum err e;
    int status;
    struct why why;
};

static void say(const struct peer *p)
{
    struct buf line;
    struct json_out o;

    buf_init(&line, 65536);
    o = json_out(&line);
    json_open(&o, '{');
    json_key(&o, STR("error"));
    if (p->e)
        json_put_str(&o, str_of(err_row(p->e)->code));
    else
        json_put_null(&o);
    json_member_int(&o, "status", p->status);
    json_member_text(&o, "why", str_of(p->why.text));
    json_close(&o, '}');
    printf("%.*s\n", STR_ARG(buf_str(&line)));
    fflush(stdout);
    buf_fini(&line);
}

/* As the server does it. */

static void on_done(void *ctx, uint64_t id, enum err e,
                    const struct fetch_answer *a, const struct why *why)
{
    struct peer *p = ctx;

    (void)id;
    p->e = e;
    p->status = a->status;
    p->why = *why;
    p->is_done = true;
    loop_stop(&p->loop);
}

static void ask(struct peer *p, const char *url)
{
    static const struct fetch_handler handler = {.on_done = on_done};
    struct fetch_request rq = {
        .method = STR("GET"),
        .url = str_of(url),
        .is_trusted = p->is_trusted,
        .max_redirects = p->max_redirects,
        .timeout_ms = 20000,
        .max_body_bytes = 1 << 20,
    };
    uint64_t id;

    p->is_done = false;
    p->status = 0;
    p->why = (struct why){""};
    p->e = fetch_start(p->fetch, &rq, &handler, p, &id, &p->why);
    while (!p->e && !p->is_done)
        loop_run(&p->loop);
}

/* As most programs do it. */

static size_t ignore(char *bytes, size_t size, size_t n, void *ctx)
{
    (void)bytes;
    (void)ctx;
    return size * n;
}

static void ask_plainly(struct peer *p, const char *url)
{
    CURL *c = curl_easy_init();
    long status = 0;
    CURLcode code;

    curl_easy_setopt(c, CURLOPT_URL, url);
    curl_easy_setopt(c, CURLOPT_PROXY, "");
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, 500L);
    curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, (long)(p->max_redirects > 0));
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, ignore);
    code = curl_easy_perform(c);
    curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
    p->e =
        code ? why_err(&p->why, ERR_UNREACHABLE, "%s", curl_easy_strerror(code))
             : OK;
    p->status = (int)status;
    curl_easy_cleanup(c);
}

/* The check that one finds in many places: cut the host out, hold it against
 * what private addresses look like. */
static bool looks_private(const struct peer *p, const char *url)
{
    static const char *const heads[] = {
        "127.",     "10.",     "192.168.", "172.16.",      "172.17.",
        "172.18.",  "172.19.", "172.2",    "172.30.",      "172.31.",
        "169.254.", "0.0.0.0", "100.64.",  "[::1]",        "[::]",
        "[fe80:",   "[fc",     "[fd",      "[::ffff:127.", "localhost",
    };
    const char *at = strstr(url, "://");
    char host[256] = "";
    size_t n;

    at = at ? at + 3 : url;
    n = strcspn(at, "/?#");
    for (size_t i = 0; i < n; i++)
        if (at[i] == '@') {
            at += i + 1;
            n -= i + 1;
            i = 0;
        }
    for (size_t i = 0; i < n && i < sizeof(host) - 1; i++)
        host[i] = str_lower(at[i]);
    for (size_t i = 0; i < p->n_allow; i++)
        if (strncmp(host, p->allow_text[i], strcspn(host, ":")) == 0)
            return false;
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
        if (strncmp(host, heads[i], strlen(heads[i])) == 0)
            return true;
    return false;
}

static void answer(struct peer *p, const char *url)
{
    p->why = (struct why){""};
    p->status = 0;
    if (!p->is_plain)
        ask(p, url);
    else if (p->is_checked && looks_private(p, url))
        p->e = why_err(&p->why, ERR_ADDRESS, "it looks private");
    else
        ask_plainly(p, url);
}

static double cpu_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void answer_often(struct peer *p, const char *url)
{
    double before;

    answer(p, url); /* makes the connection */
    before = cpu_us();
    for (int i = 0; i < p->n_repeat && !p->e; i++)
        answer(p, url);
    say(p);
    if (p->n_repeat)
        printf("{\"cpuMicroseconds\":%.1f}\n",
               (cpu_us() - before) / p->n_repeat);
}

/* Beginning and end. */

static int usage(const char *what)
{
    fprintf(stderr, "fetch_peer: %s; see the head of fetch_peer.c\n", what);
    return 2;
}

/* What follows an option; how many words it took, or -1. */
static int take_option(struct peer *p, char **argv)
{
    struct str word = str_of(argv[0]);
    struct why why;

    p->is_trusted |= str_eq(word, STR("--trusted"));
    p->is_checked |= str_eq(word, STR("--string-check"));
    p->is_plain |= p->is_checked || str_eq(word, STR("--unchecked"));
    if (str_eq(word, STR("--trusted")) || str_eq(word, STR("--unchecked")) ||
        str_eq(word, STR("--string-check")))
        return 1;
    if (!argv[1])
        return -1;
    if (str_eq(word, STR("--allow")) && p->n_allow < RANGES_MAX) {
        p->allow_text[p->n_allow] = argv[1];
        return guard_range_read(str_of(argv[1]), &p->allow[p->n_allow++], &why)
                   ? -1
                   : 2;
    }
    if (str_eq(word, STR("--redirects")))
        p->max_redirects = (int)strtol(argv[1], NULL, 10);
    else if (str_eq(word, STR("--repeat")))
        p->n_repeat = (int)strtol(argv[1], NULL, 10);
    else if (str_eq(word, STR("--name")))
        names_add(argv[1]);
    else
        return -1;
    return 2;
}

static void on_stopped(void *ctx)
{
    struct peer *p = ctx;

    p->is_done = true;
    loop_stop(&p->loop);
}

static bool open_fetch(struct peer *p)
{
    struct fetch_opts opts = {
        .guard = {p->allow, p->n_allow},
        .max_open = 16,
        .max_per_host = 8,
        .max_kept = 8,
        .connect_timeout_ms = 5000,
        .max_header_bytes = 65536,
    };

    signal(SIGPIPE, SIG_IGN);
    log_init(&p->log, open("/dev/null", O_WRONLY | O_CLOEXEC), LOG_ERROR,
             LOG_JSON, clock_system());
    if (loop_init(&p->loop, clock_system()))
        return false;
    p->fetch = fetch_new(&p->loop, &p->log, &opts, &p->why);
    return p->fetch != NULL;
}

int main(int argc, char **argv)
{
    struct peer *p = calloc(1, sizeof(*p));
    int at = 1, n;

    if (!p)
        return 1;
    for (; at < argc && strncmp(argv[at], "--", 2) == 0; at += n) {
        n = take_option(p, argv + at);
        if (n < 0)
            return usage(argv[at]);
    }
    if (!open_fetch(p))
        return usage(p->why.text);
    for (; at < argc; at++)
        answer_often(p, argv[at]);
    p->is_done = false;
    fetch_stop(p->fetch, on_stopped, p);
    while (!p->is_done)
        loop_run(&p->loop);
    fetch_free(p->fetch);
    loop_fini(&p->loop);
    close(p->log.fd);
    free(p);
    return 0;
}
