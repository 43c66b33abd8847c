/* libcurl's multi handle on the loop: its sockets under a uv_poll each, its
 * timer among ours.
 *
 * The certificates to be trusted are read once, into a store that all
 * connections share, and not by libcurl for each connection anew.
 *
 * What would break it: calling libcurl from inside its callbacks, or giving
 * back what it returns as an error from the callbacks of sockets and timers:
 * that ends every request there is, instead of the one concerned. */
#include "fetch/internal.h"

#include <assert.h>
#include <openssl/err.h>
#include <stdlib.h>

#include "base/fault.h"

struct watch {
    uv_poll_t poll;
    struct pool *pool; /* of no use once it is closing */
    struct fetch *fetch;
    curl_socket_t fd;
    int events; /* that are looked for */
};

/* What has ended. Owners hear of it from here, and cannot take p away: that
 * is done at the end of the turn alone. */
static void reap(struct pool *p)
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

static void act(struct pool *p, curl_socket_t fd, int what)
{
    int n_running;

    curl_multi_socket_action(p->multi, fd, what, &n_running);
    reap(p);
}

void pool_drive(struct pool *p)
{
    p->is_late = false;
    act(p, CURL_SOCKET_TIMEOUT, 0);
    if (p->is_late)
        loop_next_turn(p->fetch->loop, &p->fetch->job);
}

/* The timer. */

static void on_timer(struct timer *t)
{
    pool_drive(LIST_OF(t, struct pool, timer));
}

static int set_timer(CURLM *multi, long timeout_ms, void *ctx)
{
    struct pool *p = ctx;
    struct loop *l = p->fetch->loop;

    (void)multi;
    if (timeout_ms < 0) {
        loop_timer_cancel(l, &p->timer);
    } else if (loop_timer_set(l, &p->timer, timeout_ms)) {
        p->is_late = true;
        loop_next_turn(l, &p->fetch->job);
    }
    return 0;
}

/* Sockets. */

/* A socket with an error has the rest of an answer to be read, perhaps, and
 * then says what is wrong with it. Neither would be heard if libcurl was told
 * of an error: it is left to look for itself (zero). libuv has stopped looking
 * by then, and libcurl believes that we have not. */
static void on_event(uv_poll_t *h, int status, int events)
{
    struct watch *w = LIST_OF(h, struct watch, poll);
    int what = (events & UV_READABLE ? CURL_CSELECT_IN : 0) |
               (events & UV_WRITABLE ? CURL_CSELECT_OUT : 0);

    if (status < 0 && uv_poll_start(&w->poll, w->events, on_event) != 0)
        what = CURL_CSELECT_ERR;
    act(w->pool, w->fd, what);
}

static void on_closed(uv_handle_t *h)
{
    struct watch *w = LIST_OF(h, struct watch, poll);
    struct fetch *f = w->fetch;

    free(w);
    f->n_watches--;
    if (f->is_stopping)
        fetch_kick(f);
}

static struct watch *watch_new(struct pool *p, curl_socket_t fd)
{
    struct watch *w = FAULT("fetch.watch") ? NULL : calloc(1, sizeof(*w));

    if (!w || uv_poll_init(&p->fetch->loop->uv, &w->poll, fd) != 0) {
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

static int set_socket(CURL *easy, curl_socket_t fd, int what, void *ctx,
                      void *socket_ctx)
{
    static const int events[] = {
        [CURL_POLL_IN] = UV_READABLE,
        [CURL_POLL_OUT] = UV_WRITABLE,
        [CURL_POLL_INOUT] = UV_READABLE | UV_WRITABLE,
    };
    struct pool *p = ctx;
    struct watch *w = socket_ctx;
    struct request *r = NULL;

    curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&r);
    if (what == CURL_POLL_REMOVE) {
        if (w)
            uv_close((uv_handle_t *)&w->poll, on_closed);
        curl_multi_assign(p->multi, fd, NULL);
        if (r)
            request_nudge(r);
        return 0;
    }
    if (!w)
        w = watch_new(p, fd);
    if (w) {
        w->events = events[what];
        if (uv_poll_start(&w->poll, w->events, on_event) == 0)
            return 0;
    }
    if (r)
        request_cut(r, ERR_NOMEM, "%s", err_row(ERR_NOMEM)->wording);
    return 0;
}

/* Requests. */

enum err pool_add(struct pool *p, struct request *r)
{
    if (FAULT("fetch.add") || curl_multi_add_handle(p->multi, r->easy))
        return ERR_NOMEM;
    r->pool = p;
    p->n_requests++;
    return OK;
}

void pool_remove(struct request *r)
{
    curl_multi_remove_handle(r->pool->multi, r->easy);
    r->pool->n_requests--;
    if (!r->pool->n_requests && r->pool != r->fetch->pool)
        fetch_kick(r->fetch); /* nobody needs it any more */
    r->pool = NULL;
}

/* Life and death. */

/* Those of the system are read with the first connection that needs them: it
 * takes milliseconds, and many a server never speaks TLS to others. Where they
 * are is for libcurl's packager to know. */
X509_STORE *pool_trust(struct pool *p)
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

static enum err load_trust(struct pool *p, const char *ca_file, struct why *why)
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

static enum err note_proxy(struct pool *p, const char *proxy, struct why *why)
{
    struct url url;

    if (!proxy || !*proxy)
        return OK;
    if (url_read_proxy(str_of(proxy), &url, why))
        return ERR_BAD_CONFIG;
    p->is_proxy_address = handle_is_address(url.host);
    p->proxy = FAULT("fetch.proxy") ? NULL : strdup(proxy);
    return p->proxy
               ? OK
               : why_err(why, ERR_NOMEM, "%s", err_row(ERR_NOMEM)->wording);
}

static enum err open_multi(struct pool *p, const struct fetch_opts *opts)
{
    CURLM *m = p->multi = FAULT("fetch.multi") ? NULL : curl_multi_init();

    if (!m || curl_multi_setopt(m, CURLMOPT_SOCKETFUNCTION, set_socket) ||
        curl_multi_setopt(m, CURLMOPT_SOCKETDATA, p) ||
        curl_multi_setopt(m, CURLMOPT_TIMERFUNCTION, set_timer) ||
        curl_multi_setopt(m, CURLMOPT_TIMERDATA, p) ||
        curl_multi_setopt(m, CURLMOPT_PIPELINING, CURLPIPE_NOTHING) ||
        curl_multi_setopt(m, CURLMOPT_MAX_HOST_CONNECTIONS,
                          (long)opts->max_per_host) ||
        curl_multi_setopt(m, CURLMOPT_MAXCONNECTS, (long)opts->max_kept))
        return ERR_NOMEM;
    return OK;
}

enum err pool_new(struct fetch *f, const struct fetch_opts *opts,
                  struct pool **out, struct why *why)
{
    struct pool *p = FAULT("fetch.pool") ? NULL : calloc(1, sizeof(*p));
    enum err e;

    if (!p)
        return why_err(why, ERR_NOMEM, "%s", err_row(ERR_NOMEM)->wording);
    p->fetch = f;
    p->timer.fire = on_timer;
    list_append(&f->pools, &p->node);
    e = load_trust(p, opts->ca_file, why);
    if (!e)
        e = note_proxy(p, opts->proxy, why);
    if (!e && open_multi(p, opts))
        e = why_err(why, ERR_NOMEM, "%s", err_row(ERR_NOMEM)->wording);
    if (e)
        pool_free(p);
    else
        *out = p;
    return e;
}

void pool_free(struct pool *p)
{
    assert(!p->n_requests);
    curl_multi_cleanup(p->multi);
    loop_timer_cancel(p->fetch->loop, &p->timer);
    list_remove(&p->node);
    X509_STORE_free(p->trust);
    free(p->proxy);
    free(p);
}
