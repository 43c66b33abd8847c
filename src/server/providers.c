/* One fetch with the limits and guard of outgoing.*, and the embed that uses
 * it.
 *
 * The model stays the same until a restart, since vectors with another stamp
 * are useless. A reload applies limits, timeouts and the breaker. */
#include "server/providers.h"

#include <limits.h>
#include <stdio.h>

enum { DATA_SHOWN_MAX = 100 };

struct embed_config {
    struct embed_opts opts;
    char model_file[PATH_MAX];
    bool is_cut; /* the path is too long */
};

_Static_assert((int)CONFIG_EMBED_BUILTIN == (int)EMBED_BUILTIN &&
                   (int)CONFIG_EMBED_TABLE == (int)EMBED_TABLE &&
                   (int)CONFIG_EMBED_TRANSFORMER == (int)EMBED_TRANSFORMER &&
                   (int)CONFIG_EMBED_MINILM == (int)EMBED_MINILM &&
                   (int)CONFIG_EMBED_HTTP == (int)EMBED_HTTP,
               "enum config_embed has the values of enum embed_kind");

static void embed_config_from(const struct config *c, const char *folder,
                              const uint64_t seed[2], struct embed_config *w)
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

static enum err embed_config_check(const struct config *c,
                                   const struct embed_config *w,
                                   struct why *why)
{
    if (w->opts.kind == EMBED_MINILM && w->is_cut)
        return why_err(why, ERR_BAD_CONFIG,
                       "the path of the model's file is longer than %zu "
                       "bytes: %.200s...",
                       sizeof(w->model_file) - 1, w->model_file);
    if (w->opts.kind == EMBED_HTTP && !c->embed.http.url.n)
        return why_err(why, ERR_BAD_CONFIG,
                       "embed.http.url is not set: set it to the provider's "
                       "URL, including the path");
    if (w->opts.kind != EMBED_HTTP || !c->embed.http.key_variable.n ||
        c->embed.http.key.p)
        return OK;
    return why_err(why, ERR_BAD_CONFIG,
                   "embed.http.keyVariable is %s, and that variable is not "
                   "set or empty: set it to the provider's key, or the setting "
                   "to \"\" if no key is needed",
                   c->embed.http.key_variable.p);
}

static struct fetch_opts fetch_opts_of(const struct providers *o,
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

/* At the start a bad outgoing.caFile is only logged: the hosts that need it are
 * not reached. A reload that would lose a working one is rejected. */
static bool try_without_ca_file(struct providers *o, enum err e,
                                struct fetch_opts *opts, const struct why *why)
{
    if (e != ERR_BAD_CONFIG || !opts->ca_file || !*opts->ca_file)
        return false;
    log_warn(o->log, "outgoing.certificates_not_read",
             LOG_C("because", why->text));
    opts->ca_file = NULL;
    return true;
}

static enum err open_fetch(struct providers *o, const struct config *c,
                           struct why *why)
{
    struct fetch_opts opts = fetch_opts_of(o, c);

    o->fetch = fetch_new(o->loop, o->log, &opts, why);
    if (!o->fetch && try_without_ca_file(o, ERR_BAD_CONFIG, &opts, why)) {
        o->is_without_ca = true;
        o->fetch = fetch_new(o->loop, o->log, &opts, why);
    }
    return o->fetch ? OK : ERR_IO;
}

void providers_advise(const struct config *c, struct why *why)
{
    const struct str advice = STR(EMBED_ADVICE);
    struct str text = str_of(why->text), data = c->data;
    struct why words = *why;

    if (text.n < advice.n ||
        !str_eq(str_sub(text, text.n - advice.n, text.n), advice))
        return;
    if (c->embed.model_file.n)
        why_err(why, OK,
                "%.*sembed.modelFile names it; without that setting, the model "
                "from signalbox model install minilm is used",
                (int)(text.n - advice.n), words.text);
    else if (data.n > DATA_SHOWN_MAX)
        why_err(why, OK, "%s, with the same --data", words.text);
    else if (!str_eq(data, STR("signalbox-data")))
        why_err(why, OK, "%s --data \"%.*s\"", words.text, STR_ARG(data));
}

enum err providers_failure(enum embed_kind kind, enum err e)
{
    return kind == EMBED_HTTP && (e == ERR_TIMEOUT || e == ERR_BAD_REQUEST)
               ? ERR_UNREACHABLE
               : e;
}

static enum err open_embed(struct providers *o, const struct config *c,
                           const char *folder, struct why *why)
{
    struct embed_stamp stamp;
    struct embed_config w;
    enum err e;

    embed_config_from(c, folder, o->seed, &w);
    e = embed_config_check(c, &w, why);
    if (!e)
        e = embed_new(&o->embeds[0], o->loop, o->log, o->fetch, &w.opts, why);
    if (e && why)
        providers_advise(c, why);
    if (e) /* a bad file is not a mistake in the configuration */
        return e == ERR_BAD_CONFIG && w.opts.kind != EMBED_HTTP ? ERR_IO : e;
    stamp = embed_stamp(o->embeds[0]);
    if (w.opts.kind == EMBED_HTTP) {
        /* Whether it works is logged after its first answer, by on_greeted. */
        log_info(o->log, "embed.configured", LOG_C("kind", "http"),
                 LOG_C("model", stamp.name), LOG_C("hash", stamp.hash));
        return OK;
    }
    log_info(o->log, "embed.ready", LOG_C("kind", embed_kind_name(w.opts.kind)),
             LOG_C("model", stamp.name), LOG_I("dimensions", stamp.dims),
             LOG_C("hash", stamp.hash));
    return OK;
}

enum err providers_open(struct providers *o, const struct config *c,
                        const char *folder, struct why *why)
{
    enum err e = open_fetch(o, c, why);

    return e ? e : open_embed(o, c, folder, why);
}

/* The first vector. */

static void on_greeted(void *ctx, uint64_t id, enum err e,
                       const struct embed_result *r, const struct why *why)
{
    struct providers *o = ctx;

    (void)id;
    if (e && e != ERR_STOPPING)
        log_warn(
            o->log, "embed.provider_not_ready", LOG_C("because", why->text),
            LOG_C("meanwhile", "there are no vectors; the next request for "
                               "one tries again"));
    else if (!e)
        log_info(o->log, "embed.provider_ready", LOG_C("model", r->stamp.name),
                 LOG_I("dimensions", r->stamp.dims));
}

void providers_greet(struct providers *o)
{
    const struct str text = STR("signalbox");
    uint64_t id;

    if (o->embeds[0] && embed_stats(o->embeds[0]).kind == EMBED_HTTP &&
        embed_start(o->embeds[0], &text, 1, EMBED_DOCUMENT, on_greeted, o, &id,
                    NULL))
        log_debug(o->log, "embed.provider_not_asked");
}

/* Reload. */

enum err providers_prepare(struct providers *o, const struct config *c,
                           struct why *why)
{
    struct fetch_opts opts = fetch_opts_of(o, c);
    enum err e = fetch_prepare(o->fetch, &opts, why);

    o->will_be_without_ca =
        o->is_without_ca && try_without_ca_file(o, e, &opts, why);
    if (o->will_be_without_ca)
        e = fetch_prepare(o->fetch, &opts, why);
    return e;
}

void providers_forget(struct providers *o)
{
    fetch_forget(o->fetch);
}

void providers_commit(struct providers *o, const struct config *c)
{
    struct embed_config w;

    fetch_commit(o->fetch);
    o->is_without_ca = o->will_be_without_ca;
    /* embed_set uses only the limits. */
    embed_config_from(c, "", o->seed, &w);
    if (o->embeds[0])
        embed_set(o->embeds[0], &w.opts);
}

/* The end. */

static void on_provider_stopped(void *ctx)
{
    struct providers *o = ctx;

    o->is_stopped = true;
    loop_stop(o->loop);
}

static void await_provider_stop(struct providers *o)
{
    while (!o->is_stopped)
        loop_run(o->loop);
    o->is_stopped = false;
}

/* The embed uses the fetch, so it goes first. */
void providers_close(struct providers *o)
{
    if (o->embeds[0]) {
        embed_stop(o->embeds[0], on_provider_stopped, o);
        await_provider_stop(o);
        embed_free(o->embeds[0]);
        o->embeds[0] = NULL;
    }
    if (!o->fetch)
        return;
    fetch_stop(o->fetch, on_provider_stopped, o);
    await_provider_stop(o);
    fetch_free(o->fetch);
    o->fetch = NULL;
}

/* For check and doctor. */

/* The setting that an embed error is about. */
static const char *embed_setting(const struct config *c,
                                 const struct embed_config *w, bool has_key)
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

void providers_check(const struct config *c, providers_report *report,
                     void *ctx)
{
    static const uint64_t no_seed[2];
    struct embed_stamp stamp;
    struct embed_config w;
    struct why why;

    embed_config_from(c, c->data.p, no_seed, &w);
    if (embed_config_check(c, &w, &why)) {
        report(ctx, embed_setting(c, &w, !c->embed.http.url.n), why.text);
    } else if (embed_check(&w.opts, &stamp, &why)) {
        providers_advise(c, &why);
        report(ctx, embed_setting(c, &w, true), why.text);
    }
}

void providers_describe(const struct config *c, struct buf *out)
{
    static const uint64_t no_seed[2];
    struct embed_stamp stamp;
    struct embed_config w;

    embed_config_from(c, c->data.p, no_seed, &w);
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
