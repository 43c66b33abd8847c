/* libcurl's multi handle on the loop: a uv_poll for each of its sockets, and
 * its timer among ours.
 *
 * Trusted certificates are read once into a store that all connections share,
 * instead of by libcurl for each connection.
 *
 * What would break it: calling libcurl from inside its callbacks, or returning
 * an error from the callbacks of sockets and timers: that ends all requests
 * instead of the one concerned. */
#include "net/client/internal.h"

#include <assert.h>
#include <openssl/err.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/mem.h"

struct watch {
    uv_poll_t poll;
    struct curl_pool *pool; /* invalid once it is closing */
    struct fetch *fetch;
    curl_socket_t fd;
    int events; /* polled events */
};

/* Collect ended requests. Owners are told from here and cannot free p: that
 * happens only at the end of the turn. */
static void curl_pool_reap(struct curl_pool *p)
{
    CURLMsg *m;
    int left;

    while ((m = curl_multi_info_read(p->multi, &left))) {
        struct request *r = NULL;
        CURLcode code = m->data.result;

        if (m->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&r);
        request_ended(r, code);
    }
}

static void act(struct curl_pool *p, curl_socket_t fd, int what)
{
    int n_running;

    curl_multi_socket_action(p->multi, fd, what, &n_running);
    curl_pool_reap(p);
}

void curl_pool_drive(struct curl_pool *p)
{
    act(p, CURL_SOCKET_TIMEOUT, 0);
}

/* The timer. */

static void on_curl_timer(struct timer *t)
{
    curl_pool_drive(LIST_OF(t, struct curl_pool, timer));
}

static int curl_set_timer(CURLM *multi, long timeout_ms, void *ctx)
{
    struct curl_pool *p = ctx;
    struct loop *l = p->fetch->loop;

    (void)multi;
    if (timeout_ms < 0) {
        loop_timer_cancel(l, &p->timer);
    } else {
        loop_timer_set(l, &p->timer, timeout_ms);
    }
    return 0;
}

/* Sockets. */

/* A socket with an error may still have the rest of an answer to read; the
 * error follows. Told of an error, libcurl would see neither. So libcurl is
 * told to check itself (zero). libuv has stopped polling by then, and libcurl
 * does not know. */
static void on_socket_event(uv_poll_t *h, int status, int events)
{
    struct watch *w = LIST_OF(h, struct watch, poll);
    int what = (events & UV_READABLE ? CURL_CSELECT_IN : 0) |
               (events & UV_WRITABLE ? CURL_CSELECT_OUT : 0);

    if (status < 0 && uv_poll_start(&w->poll, w->events, on_socket_event) != 0)
        what = CURL_CSELECT_ERR;
    act(w->pool, w->fd, what);
}

static void on_socket_closed(uv_handle_t *h)
{
    struct watch *w = LIST_OF(h, struct watch, poll);
    struct fetch *f = w->fetch;

    free(w);
    f->n_watches--;
    if (f->is_stopping)
        fetch_kick(f);
}

static struct watch *socket_watch_new(struct curl_pool *p, curl_socket_t fd)
{
    struct watch *w = mem_new(sizeof(*w));

    if (FAULT("fetch.watch") ||
        uv_poll_init(&p->fetch->loop->uv, &w->poll, fd) != 0) {
        free(w);
        return NULL;
    }
    w->pool = p;
    w->fetch = p->fetch;
    w->fd = fd;
    p->fetch->n_watches++;
    curl_multi_assign(p->multi, fd, w);
    return w;
}

static int curl_set_socket(CURL *easy, curl_socket_t fd, int what, void *ctx,
                           void *socket_ctx)
{
    static const int events[] = {
        [CURL_POLL_IN] = UV_READABLE,
        [CURL_POLL_OUT] = UV_WRITABLE,
        [CURL_POLL_INOUT] = UV_READABLE | UV_WRITABLE,
    };
    struct curl_pool *p = ctx;
    struct watch *w = socket_ctx;
    struct request *r = NULL;

    curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&r);
    if (what == CURL_POLL_REMOVE) {
        if (w)
            uv_close((uv_handle_t *)&w->poll, on_socket_closed);
        curl_multi_assign(p->multi, fd, NULL);
        if (r)
            request_nudge(r);
        return 0;
    }
    if (!w)
        w = socket_watch_new(p, fd);
    if (w) {
        w->events = events[what];
        if (uv_poll_start(&w->poll, w->events, on_socket_event) == 0)
            return 0;
    }
    if (r)
        request_cut(r, ERR_NOMEM, "%s", err_row(ERR_NOMEM)->wording);
    return 0;
}

/* Requests. */

enum err curl_pool_add(struct curl_pool *p, struct request *r)
{
    if (FAULT("fetch.add") || curl_multi_add_handle(p->multi, r->easy))
        return ERR_NOMEM;
    r->pool = p;
    p->n_requests++;
    return OK;
}

void curl_pool_remove(struct request *r)
{
    curl_multi_remove_handle(r->pool->multi, r->easy);
    r->pool->n_requests--;
    if (!r->pool->n_requests && r->pool != r->fetch->pool)
        fetch_kick(r->fetch); /* the pool may have become unused */
    r->pool = NULL;
}

/* Life of a pool. */

/* The system's certificates are read for the first connection that needs them:
 * it takes milliseconds, and many servers never connect with TLS. Their
 * location is that of libcurl's package. */
X509_STORE *curl_pool_trust(struct curl_pool *p)
{
    const curl_version_info_data *curl = curl_version_info(CURLVERSION_NOW);
    bool is_known = p->has_system_trust;

    p->has_system_trust = true;
    if (!is_known && curl->cainfo)
        is_known = X509_STORE_load_file(p->trust, curl->cainfo) == 1;
    if (!is_known && curl->capath)
        is_known = X509_STORE_load_path(p->trust, curl->capath) == 1;
    if (!is_known)
        log_warn(p->fetch->log, "fetch.no_system_certificates");
    ERR_clear_error();
    return p->trust;
}

static enum err curl_pool_load_trust(struct curl_pool *p, const char *ca_file,
                                     struct why *why)
{
    p->trust = FAULT("fetch.trust") ? NULL : X509_STORE_new();
    if (!p->trust)
        return why_err(why, ERR_NOMEM, "%s", err_row(ERR_NOMEM)->wording);
    if (!ca_file || !*ca_file || X509_STORE_load_file(p->trust, ca_file) == 1)
        return OK;
    ERR_clear_error();
    return why_err(why, ERR_BAD_CONFIG,
                   "there are no certificates to be read in %s: it should be a "
                   "file in PEM form",
                   ca_file);
}

static enum err curl_pool_note_proxy(struct curl_pool *p, const char *proxy,
                                     struct why *why)
{
    struct url url;

    if (!proxy || !*proxy)
        return OK;
    if (url_read_proxy(str_of(proxy), &url, why))
        return ERR_BAD_CONFIG;
    p->is_proxy_address = handle_is_address(url.host);
    p->proxy = mem_copy(proxy, strlen(proxy));
    return OK;
}

static enum err curl_pool_open(struct curl_pool *p,
                               const struct fetch_opts *opts)
{
    CURLM *m = p->multi = FAULT("fetch.multi") ? NULL : curl_multi_init();

    if (!m || curl_multi_setopt(m, CURLMOPT_SOCKETFUNCTION, curl_set_socket) ||
        curl_multi_setopt(m, CURLMOPT_SOCKETDATA, p) ||
        curl_multi_setopt(m, CURLMOPT_TIMERFUNCTION, curl_set_timer) ||
        curl_multi_setopt(m, CURLMOPT_TIMERDATA, p) ||
        curl_multi_setopt(m, CURLMOPT_PIPELINING, CURLPIPE_NOTHING) ||
        curl_multi_setopt(m, CURLMOPT_MAX_HOST_CONNECTIONS,
                          (long)opts->max_per_host) ||
        curl_multi_setopt(m, CURLMOPT_MAXCONNECTS, (long)opts->max_kept))
        return ERR_NOMEM;
    return OK;
}

enum err curl_pool_new(struct fetch *f, const struct fetch_opts *opts,
                       struct curl_pool **out, struct why *why)
{
    struct curl_pool *p = mem_new(sizeof(*p));
    enum err e;

    p->fetch = f;
    p->timer.fire = on_curl_timer;
    list_append(&f->pools, &p->node);
    e = curl_pool_load_trust(p, opts->ca_file, why);
    if (!e)
        e = curl_pool_note_proxy(p, opts->proxy, why);
    if (!e && curl_pool_open(p, opts))
        e = why_err(why, ERR_NOMEM, "%s", err_row(ERR_NOMEM)->wording);
    if (e)
        curl_pool_free(p);
    else
        *out = p;
    return e;
}

void curl_pool_free(struct curl_pool *p)
{
    assert(!p->n_requests);
    curl_multi_cleanup(p->multi);
    loop_timer_cancel(p->fetch->loop, &p->timer);
    list_remove(&p->node);
    X509_STORE_free(p->trust);
    free(p->proxy);
    free(p);
}
