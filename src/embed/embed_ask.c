/* One request: its texts, its body, and how its answer is handled.
 *
 *   200             the good vectors are used; the other texts fail
 *   400, 413, 422   one text is rejected, most likely as too long: the request
 *                   is split in halves and both are tried, until it is found,
 *                   so its neighbours, maybe of other callers, still get their
 *                   vectors. If PARTS_BLIND_MAX requests get no vector, the
 *                   provider is at fault, and this counts as a failure
 *   401, 403        our key is rejected
 *   500             as 400 if it says that a text is too long (llama.cpp).
 *                   Otherwise one text may have broken it, or it is broken:
 *                   also split, and a failure unless a part succeeds soon
 *   429, 5xx        overloaded or broken: a failure, with its pause
 *   the rest        unexpected
 *
 * Anything that is not an answer to the request counts against the provider
 * (base/breaker.c); a rejected text does not. */
#include "embed/http.h"

#include <assert.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/mem.h"

enum { MESSAGE_BYTES = 240, BODY_BYTES_MAX = 64 << 20 };

struct ask *ask_new(struct provider *p, size_t room)
{
    struct ask *a = mem_new(sizeof(*a) + room * sizeof(a->texts[0]));

    a->provider = p;
    return a;
}

void ask_add(struct ask *a, struct embed_text *t)
{
    t->ask = a;
    a->texts[a->n++] = t;
    a->n_wanted++;
}

static void ask_free(struct ask *a)
{
    struct provider *p = a->provider;

    assert(!a->n_wanted);
    list_remove(&a->node);
    if (a->id) {
        fetch_cancel(p->embed->fetch, a->id); /* harmless if it has ended */
        breaker_forget(&p->breaker, a->is_probe);
        p->n_out--;
        p->n_documents_out -= a->use == EMBED_DOCUMENT;
        provider_kick(p);
    }
    if (a->split && --a->split->n_users == 0)
        free(a->split);
    free(a);
}

/* Remove text i; NULL: it was already removed. */
static struct embed_text *ask_take_text(struct ask *a, size_t i)
{
    struct embed_text *t = a->texts[i];

    if (t) {
        a->texts[i] = NULL;
        t->ask = NULL;
        a->n_wanted--;
    }
    return t;
}

void ask_drop(struct ask *a, struct embed_text *t)
{
    for (size_t i = 0; i < a->n; i++)
        if (a->texts[i] == t)
            ask_take_text(a, i);
    /* If its texts are being iterated, the iteration frees it at the end. */
    if (!a->n_wanted && !a->is_ending)
        ask_free(a);
}

/* A failing text removes the others of its job from the request, so they are
 * gone when their turn comes. */
static void ask_fail_texts(struct ask *a, enum err e, const struct why *why)
{
    for (size_t i = 0; i < a->n; i++) {
        struct embed_text *t = ask_take_text(a, i);

        if (t)
            embed_failed(t, e, why);
    }
}

void ask_fail(struct ask *a, enum err e, const struct why *why)
{
    a->is_ending = true;
    ask_fail_texts(a, e, why);
    ask_free(a);
}

/* No answer: translate fetch's error into ours. */
static enum err fetch_failed(const struct provider *p, enum err e,
                             const struct why *from, struct why *why)
{
    *why = *from; /* it names the host */
    switch ((int)e) {
    case ERR_TIMEOUT:
    case ERR_NOMEM:
    case ERR_STOPPING: return e;
    case ERR_LIMIT:
        return why_err(why, ERR_BAD_REQUEST,
                       "%.*s: the answer is too large (%.200s), larger than "
                       "the vectors can be or than outgoing.maxBodyBytes; a "
                       "smaller embed.http.batch may help",
                       STR_ARG(p->origin), from->text);
    case ERR_BAD_REQUEST: return e;
    default: return ERR_UNREACHABLE;
    }
}

/* The request body. */

static void ask_write_body(const struct ask *a, struct buf *out)
{
    const struct embed_http_opts *o = &a->provider->opts;
    struct str prefix =
        a->use == EMBED_QUERY ? o->query_prefix : o->document_prefix;
    struct json_out j = json_out(out);
    struct buf text;

    buf_init(&text, prefix.n + EMBED_TEXT_MAX + o->max_text_bytes);
    json_open(&j, '{');
    json_member_text(&j, "model", o->model);
    json_key(&j, STR("input"));
    json_open(&j, '[');
    for (size_t i = 0; i < a->n; i++) {
        buf_clear(&text);
        buf_add_str(&text, prefix);
        buf_add_str(&text, a->texts[i]->text);
        out->over |= text.over;
        json_put_str(&j, buf_str(&text));
    }
    json_close(&j, ']');
    json_member_text(&j, "encoding_format", STR("float"));
    if (o->dims)
        json_member_int(&j, "dimensions", o->dims);
    json_close(&j, '}');
    buf_fini(&text);
}

/* Close the gaps of removed texts: only wanted texts are sent. */
static void ask_close_gaps(struct ask *a)
{
    size_t n = 0;

    for (size_t i = 0; i < a->n; i++)
        if (a->texts[i])
            a->texts[n++] = a->texts[i];
    a->n = n;
}

/* The maximum size of the answer. */
static size_t ask_most_bytes(const struct ask *a)
{
    const struct provider *p = a->provider;
    size_t most =
        a->n * provider_dims(p) * NUMBER_BYTES_MAX + ANSWER_SPARE_BYTES;

    return most < p->opts.max_answer_bytes ? most : p->opts.max_answer_bytes;
}

static void on_ask_done(void *ctx, uint64_t id, enum err e,
                        const struct fetch_answer *answer,
                        const struct why *why);

enum err ask_send(struct ask *a, struct why *why)
{
    static const struct fetch_handler handler = {.on_done = on_ask_done};
    struct provider *p = a->provider;
    struct fetch_request rq = {
        .method = STR("POST"),
        .url = p->opts.url,
        .headers = p->headers,
        .n_headers = p->n_headers,
        .is_trusted = true,
        .timeout_ms = p->opts.timeout_ms,
    };
    struct why came;
    struct buf body;
    enum err e;

    ask_close_gaps(a);
    a->has_one_owner = true;
    for (size_t i = 1; i < a->n; i++)
        a->has_one_owner &= a->texts[i]->job == a->texts[0]->job;
    rq.max_body_bytes = ask_most_bytes(a);
    buf_init(&body, BODY_BYTES_MAX);
    ask_write_body(a, &body);
    rq.body = buf_str(&body);
    e = body.over
            ? why_err(&came, ERR_NOMEM, "%s", err_row(ERR_NOMEM)->wording)
            : fetch_start(p->embed->fetch, &rq, &handler, a, &a->id, &came);
    buf_fini(&body);
    if (e == ERR_BUSY)
        *why = came;
    else if (e)
        e = fetch_failed(p, e, &came, why);
    if (e) {
        a->id = 0;
        return e;
    }
    a->is_probe = breaker_ask(&p->breaker);
    p->n_out++;
    p->n_documents_out += a->use == EMBED_DOCUMENT;
    return OK;
}

/* The answer. */

static enum err ask_read_vectors(struct ask *a, struct str body,
                                 struct why *why)
{
    struct embed *e = a->provider->embed;
    struct reply r;
    struct why bad;
    enum err err = reply_read(body, a->n, e->stamp.dims, &r, why);

    if (err)
        return err;
    provider_answered(a->provider, a->is_probe);
    if (a->split)
        a->split->is_taken = true;
    embed_learn_dims(e, r.dims);
    for (size_t i = 0; i < a->n; i++) {
        struct embed_text *t = r.is_good[i] ? ask_take_text(a, i) : NULL;

        if (t)
            embed_made(t, r.vectors + i * r.dims);
    }
    why_err(&bad, ERR_BAD_REQUEST, "%.*s: %.400s", STR_ARG(a->provider->origin),
            r.why.text);
    ask_fail_texts(a, ERR_BAD_REQUEST, &bad); /* the remaining ones */
    reply_fini(&r);
    return OK;
}

/* Make a request of texts `from` up to `to` of a, ready to be sent. */
static void ask_part(struct ask *a, size_t from, size_t to)
{
    struct provider *p = a->provider;
    struct ask *part = ask_new(p, to - from);

    for (size_t i = from; i < to; i++) {
        struct embed_text *t = ask_take_text(a, i);

        if (t)
            ask_add(part, t);
    }
    part->use = a->use;
    part->split = a->split;
    part->split->n_users++;
    if (part->n_wanted)
        list_append(&p->ready, &part->node);
    else
        ask_free(part);
}

/* Whether two more parts are allowed. */
static bool split_may_grow(struct split *s)
{
    size_t most = s->is_taken    ? 2 * s->n_texts
                  : s->is_broken ? PARTS_BROKEN_MAX
                                 : PARTS_BLIND_MAX;

    s->n_parts += 2;
    s->has_run_out |= s->n_parts > most;
    return s->n_parts <= most;
}

/* Fail texts that were rejected together and are not tried alone. */
static void ask_give_up_parts(struct ask *a, enum err e, const struct why *why)
{
    struct why words;

    if (e == ERR_BAD_REQUEST)
        e = why_err(&words, ERR_OVERLOADED,
                    "%.300s; so it did for all parts of the request that were "
                    "tried, and this text was not asked for by itself",
                    why->text);
    else
        words = *why;
    ask_fail_texts(a, e, &words);
}

/* Some text of the request was rejected or broke the provider. */
static void ask_split(struct ask *a, enum err e, const struct why *why,
                      const struct why *plain)
{
    if (a->n < 2) {
        ask_fail_texts(a, e, why);
    } else {
        if (!a->split) {
            a->split = mem_new(sizeof(*a->split));
            *a->split = (struct split){.n_users = 1, .n_texts = a->n};
        }
        a->split->is_broken |= e != ERR_BAD_REQUEST;
        a->split->is_probe |= a->is_probe;
        if (split_may_grow(a->split)) {
            ask_part(a, 0, a->n / 2);
            ask_part(a, a->n / 2, a->n);
            return;
        }
        ask_give_up_parts(a, e, why);
    }
    if (e == ERR_BAD_REQUEST)
        provider_refused(a->provider, plain);
}

/* Report to the breaker how a rejected or broken request ended: once, after the
 * last of its parts. */
static void ask_conclude(struct ask *a, enum err e, const struct why *plain)
{
    struct split *s = a->split;
    bool is_probe = a->is_probe || (s && s->is_probe);

    if (s && (s->n_users > 1 || s->is_taken))
        return;
    if (s ? s->is_broken || s->has_run_out : e != ERR_BAD_REQUEST)
        provider_failed(a->provider, is_probe, 0, plain);
    else
        provider_answered(a->provider, is_probe);
}

/* "Retry-After: 30" in milliseconds; the date form is ignored. */
static int64_t retry_after_ms(const struct fetch_answer *answer)
{
    int64_t s;

    for (size_t i = 0; i < answer->n_headers; i++)
        if (str_eq_nocase(answer->headers[i].name, STR("retry-after")) &&
            str_to_i64(answer->headers[i].value, &s) == OK && s > 0)
            return s < BREAKER_PAUSE_MAX_MS ? s * 1000 : BREAKER_PAUSE_MAX_MS;
    return 0;
}

/* Whether the message says that a text is too long, whatever the status.
 * Exceeded deadlines or quotas and too many requests are the provider's
 * trouble, so such words alone do not count. */
static bool is_too_long(const char *message)
{
    static const char *const words[] = {
        "too large",    "too long",        "context length",
        "context size", "maximum context", "too many tokens",
    };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcasestr(message, words[i]))
            return true;
    return false;
}

/* Map a status to an error with a message. The provider's own words are
 * included only if they are to be shown, since they may repeat the texts it was
 * sent. Never for key errors, since some repeat part of the key. */
static enum err ask_judge(const struct provider *p,
                          const struct fetch_answer *answer, bool is_shown,
                          struct why *why)
{
    int status = answer->status;
    char message[MESSAGE_BYTES];
    const char *hint = "";
    enum err e = ERR_BAD_REQUEST;

    fetch_complaint(answer->body, &p->opts.key, 1, message, sizeof(message));
    if (status == 401 || status == 403) {
        e = ERR_NOT_ALLOWED;
        hint = "; it does not take our key, see embed.http.keyVariable";
        is_shown = false;
    } else if (status == 429) {
        e = ERR_OVERLOADED;
    } else if (status >= 500) {
        e = status == 500 && is_too_long(message) ? ERR_BAD_REQUEST
                                                  : ERR_UNREACHABLE;
    } else if (status == 404 || status == 405) {
        hint = "; are embed.http.url and embed.http.model right?";
    } else if (status >= 300 && status < 400) {
        hint = "; it wants to be asked elsewhere: set embed.http.url to there";
    }
    if (!is_shown)
        message[0] = '\0';
    return why_err(why, e, "%.*s answered with status %d%s%s%s",
                   STR_ARG(p->origin), status, *message ? ": " : "", message,
                   hint);
}

/* Whether the request's content is, or may be, at fault: a probe that is
 * rejected for that has shown that the provider works. */
static bool is_about_texts(const struct ask *a, int status, enum err e)
{
    if (status == 500)
        return e == ERR_BAD_REQUEST || !a->is_probe;
    return status == 400 || status == 413 || status == 422;
}

static void on_status(struct ask *a, const struct fetch_answer *answer)
{
    struct provider *p = a->provider;
    struct why words, plain;
    enum err e = ask_judge(p, answer, a->has_one_owner, &words);

    (void)ask_judge(p, answer, false, &plain);
    if (is_about_texts(a, answer->status, e)) {
        ask_split(a, e, &words, &plain);
        ask_conclude(a, e, &plain);
    } else {
        ask_fail_texts(a, e, &words);
        provider_failed(p, a->is_probe, retry_after_ms(answer), &plain);
    }
}

static void on_ask_done(void *ctx, uint64_t id, enum err e,
                        const struct fetch_answer *answer,
                        const struct why *why)
{
    struct ask *a = ctx;
    struct provider *p = a->provider;
    struct why words, came = {""};

    (void)id;
    a->is_ending = true;
    if (!e && answer->status != 200) {
        on_status(a, answer);
        ask_free(a);
        return;
    }
    if (e) {
        e = fetch_failed(p, e, why, &words);
    } else {
        e = ask_read_vectors(a, answer->body, &came);
        why_err(&words, e, "%.*s: %.400s", STR_ARG(p->origin), came.text);
    }
    if (e) {
        ask_fail_texts(a, e, &words);
        if (e != ERR_NOMEM && e != ERR_STOPPING) /* those are our own */
            provider_failed(p, a->is_probe, 0, &words);
    }
    ask_free(a);
}
