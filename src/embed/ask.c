/* One request: the texts in it, what it says, and what becomes of the answer.
 *
 *     200             the vectors that are good; the texts of the others fail
 *     400, 413, 422   something is wrong with one text, most likely too long:
 *                     the request is cut in two halves and both are tried,
 *                     until the one is found; so its neighbours, which may be
 *                     somebody else's, have their vectors all the same. Where
 *                     nothing is taken for PARTS_BLIND_MAX requests, it is the
 *                     provider that is wrong, and counts as failing
 *     401, 403        our key
 *     500             as 400 where it says that a text is too long (llama.cpp).
 *                     Else one text may have broken it, or it is broken: cut in
 *                     halves too, and failing unless one of them is taken soon
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
                       "%.*s: the answer is too large (%.200s), larger than "
                       "the vectors can be or than outgoing.maxBodyBytes; a "
                       "smaller embed.http.batch may help",
                       STR_ARG(p->origin), from->text);
    case ERR_BAD_REQUEST: return e;
    default: return ERR_UNREACHABLE;
    }
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

/* Texts that went meanwhile leave no gap: what is sent is what is wanted. */
static void close_gaps(struct ask *a)
{
    size_t n = 0;

    for (size_t i = 0; i < a->n; i++)
        if (a->texts[i])
            a->texts[n++] = a->texts[i];
    a->n = n;
}

/* What the answer may have. */
static size_t most_bytes(const struct ask *a)
{
    const struct provider *p = a->provider;
    size_t most =
        a->n * provider_dims(p) * NUMBER_BYTES_MAX + ANSWER_SPARE_BYTES;

    return most < p->opts.max_answer_bytes ? most : p->opts.max_answer_bytes;
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
    };
    struct why came;
    struct buf body;
    enum err e;

    close_gaps(a);
    a->has_one_owner = true;
    for (size_t i = 1; i < a->n; i++)
        a->has_one_owner &= a->texts[i]->job == a->texts[0]->job;
    rq.max_body_bytes = most_bytes(a);
    buf_init(&body, BODY_BYTES_MAX);
    write_body(a, &body);
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
    if (a->split)
        a->split->is_taken = true;
    embed_learn_dims(e, r.dims);
    take_vectors(a, &r);
    reply_fini(&r);
    return OK;
}

/* The half of a from `from` up to `to`, ready to be asked. */
static void ask_again(struct ask *a, size_t from, size_t to)
{
    struct provider *p = a->provider;
    struct ask *part = ask_new(p, to - from);
    struct why why;

    why_err(&why, ERR_NOMEM, "%s", err_row(ERR_NOMEM)->wording);
    for (size_t i = from; i < to; i++) {
        struct embed_text *t = take_text(a, i);

        if (t && part)
            ask_add(part, t);
        else if (t)
            embed_failed(t, ERR_NOMEM, &why);
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

/* Whether there may be two parts more. */
static bool may_split(struct split *s)
{
    size_t most = s->is_taken    ? 2 * s->n_texts
                  : s->is_broken ? PARTS_BROKEN_MAX
                                 : PARTS_BLIND_MAX;

    s->n_parts += 2;
    s->has_run_out |= s->n_parts > most;
    return s->n_parts <= most;
}

static enum err open_split(struct ask *a, bool is_broken)
{
    if (!a->split) {
        a->split = FAULT("embed.split") ? NULL : calloc(1, sizeof(*a->split));
        if (!a->split)
            return ERR_NOMEM;
        *a->split = (struct split){.n_users = 1, .n_texts = a->n};
    }
    a->split->is_broken |= is_broken;
    a->split->is_probe |= a->is_probe;
    return OK;
}

/* Texts that were refused together and are not asked by themselves. */
static void give_up_parts(struct ask *a, enum err e, const struct why *why)
{
    struct why words;

    if (e == ERR_BAD_REQUEST)
        e = why_err(&words, ERR_OVERLOADED,
                    "%.300s; so it did for all parts of the request that were "
                    "tried, and this text was not asked for by itself",
                    why->text);
    else
        words = *why;
    fail_texts(a, e, &words);
}

/* Something in this is not taken, or has broken it. */
static void cut(struct ask *a, enum err e, const struct why *why,
                const struct why *plain)
{
    struct why words;

    if (a->n < 2) {
        fail_texts(a, e, why);
    } else if (open_split(a, e != ERR_BAD_REQUEST)) {
        e = why_err(&words, ERR_NOMEM, "%s", err_row(ERR_NOMEM)->wording);
        fail_texts(a, e, &words);
    } else if (may_split(a->split)) {
        ask_again(a, 0, a->n / 2);
        ask_again(a, a->n / 2, a->n);
        return;
    } else {
        give_up_parts(a, e, why);
    }
    if (e == ERR_BAD_REQUEST)
        provider_refused(a->provider, plain);
}

/* What a request that was refused or broke it says of the provider: with the
 * last of its parts, all of them together. */
static void conclude(struct ask *a, enum err e, const struct why *plain)
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

/* Whether it says of a text that it is too long, whatever the status. A
 * deadline or a quota can be exceeded, and requests can be too many: that is
 * the provider's trouble, so such words alone do not count. */
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

/* Which error a status is, with words. Those of the provider only where they
 * are to be shown: they may repeat the texts that it was sent. Never about the
 * key, which some repeat in part. */
static enum err judge(const struct provider *p,
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

/* Whether it is something in the request that is to blame, or may be: a probe
 * that breaks it has found out what it should. */
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
    enum err e = judge(p, answer, a->has_one_owner, &words);

    (void)judge(p, answer, false, &plain);
    if (is_about_texts(a, answer->status, e)) {
        cut(a, e, &words, &plain);
        conclude(a, e, &plain);
    } else {
        fail_texts(a, e, &words);
        provider_failed(p, a->is_probe, retry_after_ms(answer), &plain);
    }
}

static void on_done(void *ctx, uint64_t id, enum err e,
                    const struct fetch_answer *answer, const struct why *why)
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
        e = read_vectors(a, answer->body, &came);
        why_err(&words, e, "%.*s: %.400s", STR_ARG(p->origin), came.text);
    }
    if (e) {
        fail_texts(a, e, &words);
        if (e != ERR_NOMEM && e != ERR_STOPPING) /* which are ours */
            provider_failed(p, a->is_probe, 0, &words);
    }
    ask_free(a);
}
