/* Like lab/tarball.c, but it keeps the whole answer. cli/client.c does not fit,
 * because it talks to Signalbox servers only. */
#include "cli/outside.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "cli/tlsfiles.h"

struct asking {
    struct loop loop;
    struct log log;
    struct fetch *fetch;
    struct outside_answer *out;
    enum err e;
    struct why *why;
};

static void outside_on_stopped(void *ctx)
{
    struct asking *a = ctx;

    loop_stop(&a->loop);
}

static void outside_on_done(void *ctx, uint64_t id, enum err e,
                            const struct fetch_answer *answer,
                            const struct why *why)
{
    struct asking *a = ctx;

    (void)id;
    a->e = e;
    *a->why = *why;
    if (!e) {
        a->out->status = answer->status;
        a->out->retry_after_ms = fetch_retry_after_ms(answer, cli_now_ms());
        buf_add_str(&a->out->body, answer->body);
    }
    fetch_stop(a->fetch, outside_on_stopped, a);
}

static enum err outside_start_fetch(struct asking *a, const struct config *c,
                                    const struct outside_request *rq)
{
    static const struct fetch_handler handler = {.on_done = outside_on_done};
    struct fetch_opts opts = {
        .guard = {c->outgoing.allow.list, c->outgoing.allow.n},
        .proxy = c->outgoing.proxy.p,
        .ca_file = c->outgoing.ca_file.p,
        .max_open = 1,
        .max_per_host = 1,
        .connect_timeout_ms = c->outgoing.connect_timeout_ms,
        .max_header_bytes = (size_t)c->outgoing.max_header_bytes,
    };
    struct fetch_request asked = {
        .method = rq->method,
        .url = rq->url,
        .headers = rq->headers,
        .n_headers = rq->n_headers,
        .body = rq->body,
        .is_trusted = true, /* the user has named it */
        .timeout_ms = OUTSIDE_TIMEOUT_MS,
        .max_body_bytes = OUTSIDE_BODY_MAX,
    };
    uint64_t id;
    enum err e;

    if (*opts.ca_file) {
        tlsfiles_check_trust(opts.ca_file, a->why);
        if (a->why->text[0])
            return ERR_BAD_CONFIG;
    }
    a->fetch = fetch_new(&a->loop, &a->log, &opts, a->why);
    if (!a->fetch)
        return ERR_BAD_CONFIG;
    e = fetch_start(a->fetch, &asked, &handler, a, &id, a->why);
    if (e)
        fetch_stop(a->fetch, outside_on_stopped, a);
    return e;
}

enum err outside_call(const struct config *config,
                      const struct outside_request *rq,
                      struct outside_answer *out, struct why *why)
{
    struct asking a = {.out = out, .why = why};

    why->text[0] = '\0';
    out->status = 0;
    out->retry_after_ms = 0;
    buf_clear(&out->body);
    log_init(&a.log, STDERR_FILENO, LOG_ERROR, LOG_AUTO, clock_system());
    if (loop_init(&a.loop, clock_system()))
        return why_err(why, ERR_NOMEM, "out of memory");
    a.e = outside_start_fetch(&a, config, rq);
    if (a.fetch)
        loop_run(&a.loop);
    fetch_free(a.fetch);
    loop_fini(&a.loop);
    return a.e;
}
