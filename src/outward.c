/* One fetch, whose limits and guard are outgoing.*, and the embed on top.
 *
 * What makes the vectors stays as it is until a restart: whatever was kept with
 * a stamp would be worth nothing with another. Limits, time-outs and the
 * breaker are taken over while running. */
#include "outward.h"

#include <limits.h>
#include <stdio.h>

/* Where a model's file is, and which settings are to blame for what. */
enum { DATA_SHOWN_MAX = 100 };

struct wanted {
    struct embed_opts opts;
    char model_file[PATH_MAX];
    bool is_cut; /* it is longer than a path may be */
};

_Static_assert((int)CONFIG_EMBED_BUILTIN == (int)EMBED_BUILTIN &&
                   (int)CONFIG_EMBED_TABLE == (int)EMBED_TABLE &&
                   (int)CONFIG_EMBED_TRANSFORMER == (int)EMBED_TRANSFORMER &&
                   (int)CONFIG_EMBED_MINILM == (int)EMBED_MINILM &&
                   (int)CONFIG_EMBED_HTTP == (int)EMBED_HTTP,
               "the settings have the numbers of the kinds");

static void want(const struct config *c, const char *folder,
                 const uint64_t seed[2], struct wanted *w)
{
    int n;

    if (c->embed.model_file.n)
        n = snprintf(w->model_file, sizeof(w->model_file), "%s",
                     c->embed.model_file.p);
    else
        n = snprintf(w->model_file, sizeof(w->model_file),
                     "%s/models/" EMBED_MINILM_FILE, folder);
    w->is_cut = n < 0 || (size_t)n >= sizeof(w->model_file);
    w->opts = (struct embed_opts){
        .kind = (enum embed_kind)c->embed.kind,
        .model_file = w->model_file,
        .http =
            {
                .url = c->embed.http.url,
                .model = c->embed.http.model,
                .key = c->embed.http.key,
                .dims = (uint32_t)c->embed.http.dimensions,
                .query_prefix = c->embed.http.query_prefix,
                .document_prefix = c->embed.http.document_prefix,
                .batch = (size_t)c->embed.http.batch,
                .max_requests = (size_t)c->embed.http.max_requests,
                .max_text_bytes = (size_t)c->embed.http.max_text_bytes,
                .max_answer_bytes = (size_t)c->outgoing.max_body_bytes,
                .timeout_ms = c->embed.http.timeout_ms,
                .breaker_failures = (int)c->embed.http.breaker_failures,
                .breaker_pause_ms = c->embed.http.breaker_pause_ms,
            },
        .cache_entries = (size_t)c->embed.cache_entries,
        .max_waiting = (size_t)c->embed.max_waiting,
        .max_waiting_bytes = (size_t)c->embed.max_waiting_bytes,
        .timeout_ms = c->embed.timeout_ms,
        .seed = {seed[0], seed[1]},
    };
}

/* A path that is none, a key that is named and not there. */
static enum err check_wanted(const struct config *c, const struct wanted *w,
                             struct why *why)
{
    if (w->opts.kind == EMBED_MINILM && w->is_cut)
        return why_err(why, ERR_BAD_CONFIG,
                       "the path of the model's file is longer than %zu "
                       "bytes: %.200s...",
                       sizeof(w->model_file) - 1, w->model_file);
    if (w->opts.kind == EMBED_HTTP && !c->embed.http.url.n)
        return why_err(why, ERR_BAD_CONFIG,
                       "embed.http.url is not set: it says where the provider "
                       "is, with the whole path");
    if (w->opts.kind != EMBED_HTTP || !c->embed.http.key_variable.n ||
        c->embed.http.key.p)
        return OK;
    return why_err(why, ERR_BAD_CONFIG,
                   "embed.http.keyVariable is %s, and there is no such "
                   "variable in the environment, or it is empty: set it to the "
                   "provider's key, or the setting to \"\" if none is needed",
                   c->embed.http.key_variable.p);
}

static struct fetch_opts fetch_opts_of(const struct outward *o,
                                       const struct config *c)
{
    return (struct fetch_opts){
        .guard = {c->outgoing.allow.list, c->outgoing.allow.n},
        .proxy = c->outgoing.proxy.p,
        .ca_file = c->outgoing.ca_file.p,
        .max_open = (size_t)c->outgoing.max_open,
        .max_per_host = (size_t)c->outgoing.max_per_host,
        .max_kept = (size_t)c->outgoing.max_kept,
        .connect_timeout_ms = c->outgoing.connect_timeout_ms,
        .max_header_bytes = (size_t)c->outgoing.max_header_bytes,
        .seed = {o->seed[0], o->seed[1]},
    };
}

/* Whom to trust besides is no reason not to start: whoever needs it is not
 * reached, and that is said. To lose it by a reload is another matter. */
static bool can_do_without(struct outward *o, enum err e,
                           struct fetch_opts *opts, const struct why *why)
{
    if (e != ERR_BAD_CONFIG || !opts->ca_file || !*opts->ca_file)
        return false;
    log_warn(o->log, "outgoing.certificates_not_read",
             LOG_C("because", why->text));
    opts->ca_file = NULL;
    return true;
}

static enum err open_fetch(struct outward *o, const struct config *c,
                           struct why *why)
{
    struct fetch_opts opts = fetch_opts_of(o, c);

    o->fetch = fetch_new(o->loop, o->log, &opts, why);
    if (!o->fetch && can_do_without(o, ERR_BAD_CONFIG, &opts, why)) {
        o->is_without_ca = true;
        o->fetch = fetch_new(o->loop, o->log, &opts, why);
    }
    return o->fetch ? OK : ERR_IO;
}

void outward_advise(const struct config *c, struct why *why)
{
    const struct str advice = STR(EMBED_ADVICE);
    struct str said = str_of(why->text), data = c->data;
    struct why words = *why;

    if (said.n < advice.n ||
        !str_eq(str_sub(said, said.n - advice.n, said.n), advice))
        return;
    if (c->embed.model_file.n)
        why_err(why, OK,
                "%.*sembed.modelFile names it; without that setting, the one "
                "that signalbox model install minilm gets is used",
                (int)(said.n - advice.n), words.text);
    else if (data.n > DATA_SHOWN_MAX)
        why_err(why, OK, "%s, with --data as here", words.text);
    else if (!str_eq(data, STR("signalbox-data")))
        why_err(why, OK, "%s --data \"%.*s\"", words.text, STR_ARG(data));
}

enum err outward_failure(enum embed_kind kind, enum err e)
{
    return kind == EMBED_HTTP && (e == ERR_TIMEOUT || e == ERR_BAD_REQUEST)
               ? ERR_UNREACHABLE
               : e;
}

static enum err open_embed(struct outward *o, const struct config *c,
                           const char *folder, struct why *why)
{
    struct embed_stamp stamp;
    struct wanted w;
    enum err e;

    want(c, folder, o->seed, &w);
    e = check_wanted(c, &w, why);
    if (!e)
        e = embed_new(&o->embeds[0], o->loop, o->log, o->fetch, &w.opts, why);
    if (e && why)
        outward_advise(c, why);
    if (e) /* a file that is no good is no mistake of who calls */
        return e == ERR_BAD_CONFIG && w.opts.kind != EMBED_HTTP ? ERR_IO : e;
    stamp = embed_stamp(o->embeds[0]);
    if (w.opts.kind == EMBED_HTTP) {
        /* What it is worth, its first answer says: see on_greeted. */
        log_info(o->log, "embed.configured", LOG_C("kind", "http"),
                 LOG_C("model", stamp.name), LOG_C("hash", stamp.hash));
        return OK;
    }
    log_info(o->log, "embed.ready", LOG_C("kind", embed_kind_name(w.opts.kind)),
             LOG_C("model", stamp.name), LOG_I("dimensions", stamp.dims),
             LOG_C("hash", stamp.hash));
    return OK;
}

enum err outward_open(struct outward *o, const struct config *c,
                      const char *folder, struct why *why)
{
    enum err e = open_fetch(o, c, why);

    return e ? e : open_embed(o, c, folder, why);
}

/* The first vector. */

static void on_greeted(void *ctx, uint64_t id, enum err e,
                       const struct embed_result *r, const struct why *why)
{
    struct outward *o = ctx;

    (void)id;
    if (e && e != ERR_STOPPING)
        log_warn(o->log, "embed.provider_not_ready",
                 LOG_C("because", why->text),
                 LOG_C("meanwhile", "there are no vectors; it is asked again "
                                    "when some are needed"));
    else if (!e)
        log_info(o->log, "embed.provider_ready", LOG_C("model", r->stamp.name),
                 LOG_I("dimensions", r->stamp.dims));
}

void outward_greet(struct outward *o)
{
    const struct str text = STR("signalbox");
    uint64_t id;

    if (o->embeds[0] && embed_stats(o->embeds[0]).kind == EMBED_HTTP &&
        embed_start(o->embeds[0], &text, 1, EMBED_DOCUMENT, on_greeted, o, &id,
                    NULL))
        log_debug(o->log, "embed.provider_not_asked");
}

/* Reload. */

enum err outward_prepare(struct outward *o, const struct config *c,
                         struct why *why)
{
    struct fetch_opts opts = fetch_opts_of(o, c);
    enum err e = fetch_prepare(o->fetch, &opts, why);

    o->will_be_without_ca =
        o->is_without_ca && can_do_without(o, e, &opts, why);
    if (o->will_be_without_ca)
        e = fetch_prepare(o->fetch, &opts, why);
    return e;
}

void outward_forget(struct outward *o)
{
    fetch_forget(o->fetch);
}

void outward_commit(struct outward *o, const struct config *c)
{
    struct wanted w;

    fetch_commit(o->fetch);
    o->is_without_ca = o->will_be_without_ca;
    /* Its limits; the rest of it is not looked at. */
    want(c, "", o->seed, &w);
    if (o->embeds[0])
        embed_set(o->embeds[0], &w.opts);
}

/* The end. */

static void on_stopped(void *ctx)
{
    struct outward *o = ctx;

    o->is_stopped = true;
    loop_stop(o->loop);
}

static void await_stop(struct outward *o)
{
    while (!o->is_stopped)
        loop_run(o->loop);
    o->is_stopped = false;
}

/* The embed first: it stands on the fetch. */
void outward_close(struct outward *o)
{
    if (o->embeds[0]) {
        embed_stop(o->embeds[0], on_stopped, o);
        await_stop(o);
        embed_free(o->embeds[0]);
        o->embeds[0] = NULL;
    }
    if (!o->fetch)
        return;
    fetch_stop(o->fetch, on_stopped, o);
    await_stop(o);
    fetch_free(o->fetch);
    o->fetch = NULL;
}

/* For check and doctor. */

static const char *to_blame(const struct config *c, const struct wanted *w,
                            bool has_key)
{
    switch (w->opts.kind) {
    case EMBED_HTTP:
        return has_key ? "embed.http.url" : "embed.http.keyVariable";
    case EMBED_MINILM:
        return c->embed.model_file.n ? "embed.modelFile" : "embed.kind";
    case EMBED_BUILTIN:
    case EMBED_TABLE:
    case EMBED_TRANSFORMER:
    case N_EMBED_KINDS: break;
    }
    return "embed.kind";
}

void outward_check(const struct config *c, outward_say *say, void *ctx)
{
    static const uint64_t no_seed[2];
    struct embed_stamp stamp;
    struct wanted w;
    struct why why;

    want(c, c->data.p, no_seed, &w);
    if (check_wanted(c, &w, &why)) {
        say(ctx, to_blame(c, &w, !c->embed.http.url.n), why.text);
    } else if (embed_check(&w.opts, &stamp, &why)) {
        outward_advise(c, &why);
        say(ctx, to_blame(c, &w, true), why.text);
    }
}

void outward_describe(const struct config *c, struct buf *out)
{
    static const uint64_t no_seed[2];
    struct embed_stamp stamp;
    struct wanted w;

    want(c, c->data.p, no_seed, &w);
    if (embed_check(&w.opts, &stamp, NULL))
        return;
    buf_addf(out, "%s", embed_kind_name(w.opts.kind));
    if (w.opts.kind == EMBED_HTTP)
        buf_addf(out, ", model %s, not asked", stamp.name);
    else
        buf_addf(out, ", %u dimensions, hash %.12s", stamp.dims, stamp.hash);
    if (w.opts.kind == EMBED_MINILM)
        buf_addf(out, ", %s", w.model_file);
}
