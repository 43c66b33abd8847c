/* One request: the texts in it, what it says, and what becomes of the answer.
 *
 *     200             the vectors that are good; the texts of the others fail
 *     400, 413, 422   something is wrong with one text, most likely too long:
 *                     the request is cut in two halves and both are tried,
 *                     until the one is found; so its neighbours, which may be
 *                     somebody else's, have their vectors all the same. At
 *                     most SPLITS_MAX further requests: where all is refused,
 *                     it is the request that is wrong
 *     401, 403        our key
 *     429, 5xx        too much, or broken: with the pause that it asks for
 *     the rest        not what it should be
 *
 * Whatever is not an answer to what was asked counts against the provider
 * (breaker.c); a text that it does not take does not. */
#include "embed/http.h"

#include <assert.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/json.h"

enum { MESSAGE_BYTES = 240, BODY_BYTES_MAX = 64 << 20 };

struct ask *ask_new(struct provider *p, size_t room)
{
    struct ask *a = FAULT("embed.ask")
                        ? NULL
                        : calloc(1, sizeof(*a) + room * sizeof(a->texts[0]));

    if (a)
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
        fetch_cancel(p->embed->fetch, a->id); /* harmless where it is over */
        breaker_forget(&p->breaker, a->is_probe);
        p->n_out--;
        p->n_documents_out -= a->use == EMBED_DOCUMENT;
        provider_kick(p);
    }
    if (a->split && --a->split->n_users == 0)
        free(a->split);
    free(a);
}

/* Take text i out of it; NULL: it is out already. */
static struct embed_text *take_text(struct ask *a, size_t i)
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
            take_text(a, i);
    /* Whoever goes through the texts of it frees it at the end. */
    if (!a->n_wanted && !a->is_ending)
        ask_free(a);
}

/* One that fails takes the others of its job along: they are gone from here
 * when their turn would come. */
static void fail_texts(struct ask *a, enum err e, const struct why *why)
{
    for (size_t i = 0; i < a->n; i++) {
        struct embed_text *t = take_text(a, i);

        if (t)
            embed_failed(t, e, why);
    }
}

void ask_fail(struct ask *a, enum err e, const struct why *why)
{
    a->is_ending = true;
    fail_texts(a, e, why);
    ask_free(a);
}

/* What it says. */

static void write_body(const struct ask *a, struct buf *out)
{
    const struct embed_http_opts *o = &a->provider->opts;
    struct str prefix =
        a->use == EMBED_QUERY ? o->query_prefix : o->document_prefix;
    struct json_out j = json_out(out);
    struct buf text;

    buf_init(&text, prefix.n + EMBED_TEXT_MAX + o->max_text_bytes);
    json_open(&j, '{');
    json_key(&j, STR("model"));
    json_put_str(&j, o->model);
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
    json_key(&j, STR("encoding_format"));
    json_put_str(&j, STR("float"));
    if (o->dims) {
        json_key(&j, STR("dimensions"));
        json_put_int(&j, o->dims);
    }
    json_close(&j, '}');
    buf_fini(&text);
}

/* Texts that went meanwhile leave no gap: what is sent is what is wanted. */
static void close_gaps(struct ask *a)
{
    size_t n = 0;

    for (size_t i = 0; i < a->n; i++)
        if (a->texts[i])
            a->texts[n++] = a->texts[i];
    a->n = n;
}

static void on_done(void *ctx, uint64_t id, enum err e,
                    const struct fetch_answer *answer, const struct why *why);

enum err ask_send(struct ask *a, struct why *why)
{
    static const struct fetch_handler handler = {.on_done = on_done};
    struct provider *p = a->provider;
    struct fetch_request rq = {
        .method = STR("POST"),
        .url = p->opts.url,
        .headers = p->headers,
        .n_headers = p->n_headers,
        .is_trusted = true,
        .timeout_ms = p->opts.timeout_ms,
        .max_body_bytes = p->opts.max_answer_bytes,
    };
    struct buf body;
    enum err e;

    close_gaps(a);
    a->has_one_owner = true;
    for (size_t i = 1; i < a->n; i++)
        a->has_one_owner &= a->texts[i]->job == a->texts[0]->job;
    buf_init(&body, BODY_BYTES_MAX);
    write_body(a, &body);
    rq.body = buf_str(&body);
    e = body.over ? why_err(why, ERR_NOMEM, "%s", err_row(ERR_NOMEM)->wording)
                  : fetch_start(p->embed->fetch, &rq, &handler, a, &a->id, why);
    buf_fini(&body);
    if (e) {
        a->id = 0;
        return e;
    }
    a->is_probe = breaker_ask(&p->breaker);
    p->n_out++;
    p->n_documents_out += a->use == EMBED_DOCUMENT;
    return OK;
}

/* What came of it. */

static void take_vectors(struct ask *a, const struct reply *r)
{
    struct why why;

    for (size_t i = 0; i < a->n; i++) {
        struct embed_text *t = r->is_good[i] ? take_text(a, i) : NULL;

        if (t)
            embed_made(t, r->vectors + i * r->dims);
    }
    why_err(&why, ERR_BAD_REQUEST, "%.*s: %.400s", STR_ARG(a->provider->origin),
            r->why.text);
    fail_texts(a, ERR_BAD_REQUEST, &why); /* those that are left */
}

static enum err read_vectors(struct ask *a, struct str body, struct why *why)
{
    struct embed *e = a->provider->embed;
    struct reply r;
    enum err err = reply_read(body, a->n, e->stamp.dims, &r, why);

    if (err)
        return err;
    provider_answered(a->provider, a->is_probe);
    embed_learn_dims(e, r.dims);
    take_vectors(a, &r);
    reply_fini(&r);
    return OK;
}

/* The half of a from `from` up to `to`, ready to be asked; what cannot be
 * fails. */
static void ask_again(struct ask *a, size_t from, size_t to,
                      const struct why *why)
{
    struct provider *p = a->provider;
    struct ask *part = ask_new(p, to - from);

    for (size_t i = from; i < to; i++) {
        struct embed_text *t = take_text(a, i);

        if (t && part)
            ask_add(part, t);
        else if (t)
            embed_failed(t, ERR_BAD_REQUEST, why);
    }
    if (!part)
        return;
    part->use = a->use;
    part->split = a->split;
    part->split->n_users++;
    if (part->n_wanted)
        list_append(&p->ready, &part->node);
    else
        ask_free(part);
}

static bool can_split(struct ask *a)
{
    if (a->n < 2)
        return false;
    if (!a->split) {
        a->split = FAULT("embed.split") ? NULL : calloc(1, sizeof(*a->split));
        if (!a->split)
            return false;
        *a->split = (struct split){.n_users = 1, .n_left = SPLITS_MAX};
    }
    a->split->n_left -= 2;
    return a->split->n_left >= 0;
}

/* The provider is well and does not take something in this. */
static void refused(struct ask *a, const struct why *why)
{
    provider_answered(a->provider, a->is_probe);
    if (can_split(a)) {
        ask_again(a, 0, a->n / 2, why);
        ask_again(a, a->n / 2, a->n, why);
    } else {
        fail_texts(a, ERR_BAD_REQUEST, why);
    }
}

/* "Retry-After: 30", in milliseconds; the form with a date counts as none. */
static int64_t retry_after_ms(const struct fetch_answer *answer)
{
    int64_t s;

    for (size_t i = 0; i < answer->n_headers; i++)
        if (str_eq_nocase(answer->headers[i].name, STR("retry-after")) &&
            str_to_i64(answer->headers[i].value, &s) == OK && s > 0)
            return s < BREAKER_PAUSE_MAX_MS ? s * 1000 : BREAKER_PAUSE_MAX_MS;
    return 0;
}

/* Which error a status is, with words. Those of the provider only where they
 * are to be shown: they may repeat the texts that it was sent. Never about the
 * key, which some repeat in part. */
static enum err judge(const struct provider *p,
                      const struct fetch_answer *answer, bool is_shown,
                      struct why *why)
{
    int status = answer->status;
    char message[MESSAGE_BYTES] = "";
    const char *hint = "";
    enum err e = ERR_BAD_REQUEST;

    if (status == 401 || status == 403) {
        e = ERR_NOT_ALLOWED;
        hint = "; it does not take our key, see embed.http.keyVariable";
        is_shown = false;
    } else if (status == 429) {
        e = ERR_OVERLOADED;
    } else if (status >= 500) {
        e = ERR_UNREACHABLE;
    } else if (status == 404 || status == 405) {
        hint = "; are embed.http.url and embed.http.model right?";
    } else if (status >= 300 && status < 400) {
        hint = "; it wants to be asked elsewhere: set embed.http.url to there";
    }
    if (is_shown)
        reply_message(answer->body, p->opts.key, message, sizeof(message));
    return why_err(why, e, "%.*s answered with status %d%s%s%s",
                   STR_ARG(p->origin), status, *message ? ": " : "", message,
                   hint);
}

static bool is_refusal(int status)
{
    return status == 400 || status == 413 || status == 422;
}

/* No answer at all: fetch's error as one of ours. */
static enum err fetch_failed(const struct provider *p, enum err e,
                             const struct why *from, struct why *why)
{
    *why = *from; /* which names the host */
    switch ((int)e) {
    case ERR_TIMEOUT:
    case ERR_NOMEM:
    case ERR_STOPPING: return e;
    case ERR_LIMIT:
        return why_err(why, ERR_BAD_REQUEST,
                       "%.*s: the answer is too large (%.200s); a smaller "
                       "embed.http.batch or a larger outgoing.maxBodyBytes "
                       "helps",
                       STR_ARG(p->origin), from->text);
    case ERR_BAD_REQUEST: return e;
    default: return ERR_UNREACHABLE;
    }
}

static void on_done(void *ctx, uint64_t id, enum err e,
                    const struct fetch_answer *answer, const struct why *why)
{
    struct ask *a = ctx;
    struct provider *p = a->provider;
    struct why words, came = {""};
    int64_t retry_ms = 0;

    (void)id;
    a->is_ending = true;
    if (e) {
        e = fetch_failed(p, e, why, &words);
    } else if (answer->status == 200) {
        e = read_vectors(a, answer->body, &came);
        why_err(&words, e, "%.*s: %.400s", STR_ARG(p->origin), came.text);
    } else {
        e = judge(p, answer, a->has_one_owner, &words);
        retry_ms = retry_after_ms(answer);
    }
    if (e == ERR_BAD_REQUEST && is_refusal(answer->status)) {
        refused(a, &words);
    } else if (e) {
        bool is_ours = e == ERR_NOMEM || e == ERR_STOPPING;

        fail_texts(a, e, &words);
        if (answer && answer->status != 200)
            (void)judge(p, answer, false, &words); /* for everybody */
        if (!is_ours)
            provider_failed(p, a->is_probe, retry_ms, &words);
    }
    ask_free(a);
}
