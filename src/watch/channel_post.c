/* A webhook gets one post at a time. Whether it was taken is what its answer
 * says, and what is not known to be taken is posted again:
 *
 *   2xx                  taken
 *   429                  later, when it says: Retry-After, or Discord's
 *                        retry_after in the body
 *   408, 5xx, nobody     again, after a second, two, four, up to five minutes
 *   anything else        somebody must look at it: a wrong URL, a webhook that
 *                        was deleted. Logged, and tried again after a minute,
 *                        two, up to an hour; nothing is skipped
 *
 * Where several entries were refused together (400, 413) they go singly, so
 * that one that cannot be taken keeps back no other before it.
 *
 * The URL is a secret, as whoever has it may post: it is in no log line and in
 * no problem that is shown. */
#include "watch/channel.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/json.h"

enum {
    POST_MS = 15 * 1000,
    ANSWER_MAX = 64 * 1024,
    SOON_MS = 1000,
    SOON_MOST_MS = 5 * 60 * 1000,
    LATE_MS = 60 * 1000,
    LATE_MOST_MS = 60 * 60 * 1000,
    SLACK_REST_MS = 1000, /* it takes one a second */
};

void place_post_clear(struct place *p)
{
    for (size_t i = 0; i < p->post.n; i++)
        free(p->post.entries[i]);
    p->post.n = 0;
    free(p->context);
    p->context = NULL;
}

void place_post_cancel(struct place *p)
{
    if (!p->request)
        return;
    fetch_cancel(p->owner->opts.fetch, p->request);
    p->request = 0;
    p->is_busy = false;
}

/* A number of seconds with a fraction, as milliseconds rounded up. */
static int64_t seconds_ms(double s)
{
    if (!(s > 0))
        return 0;
    return s > FETCH_RETRY_MAX_MS / 1000.0 ? FETCH_RETRY_MAX_MS
                                           : (int64_t)(s * 1000) + 1;
}

static struct str header(const struct fetch_answer *a, struct str name)
{
    for (size_t i = 0; i < a->n_headers; i++)
        if (str_eq_nocase(a->headers[i].name, name))
            return a->headers[i].value;
    return (struct str){NULL, 0};
}

/* Discord says it in the body, more exactly than in the header. */
static int64_t body_wait_ms(struct str body)
{
    static const struct str keys[] = {STR("retry_after")};
    struct str value = {NULL, 0};
    double s = 0;

    if (json_scan(body, keys, 1, &value, NULL) || !json_number(value, &s))
        return 0;
    return seconds_ms(s);
}

static int64_t wait_ms(struct place *p, const struct fetch_answer *a)
{
    int64_t said = fetch_retry_after_ms(a, loop_wall_ms(p->owner->opts.loop)),
            in_body = body_wait_ms(a->body);

    return said > in_body ? said : in_body;
}

/* Discord says beforehand when it has had enough for now. */
static int64_t rest_ms(const struct place *p, const struct fetch_answer *a)
{
    double s = 0;

    if (p->post.form == POST_SLACK)
        return SLACK_REST_MS;
    if (p->post.form == POST_DISCORD &&
        str_eq(header(a, STR("x-ratelimit-remaining")), STR("0")) &&
        json_number(header(a, STR("x-ratelimit-reset-after")), &s))
        return seconds_ms(s);
    return 0;
}

static void word_answer(const struct place *p, const struct fetch_answer *a,
                        char *out, size_t size)
{
    struct str secrets[] = {str_of(p->url)};
    char says[120];

    fetch_complaint(a->body, secrets, 1, says, sizeof(says));
    snprintf(out, size, "answers %d%s%s", a->status, says[0] ? ": " : "", says);
}

static void judge(struct place *p, const struct fetch_answer *a)
{
    bool is_several = p->post.n > 1;
    char because[200];

    if (a->status >= 200 && a->status < 300) {
        p->most = CHANNEL_BATCH;
        place_done(p, rest_ms(p, a));
        return;
    }
    word_answer(p, a, because, sizeof(because));
    if (a->status == 429) {
        place_failed(p, because, SOON_MS, SOON_MOST_MS, wait_ms(p, a));
    } else if (a->status == 408 || a->status >= 500) {
        place_failed(p, because, SOON_MS, SOON_MOST_MS, wait_ms(p, a));
    } else if (is_several && (a->status == 400 || a->status == 413)) {
        p->most = 1;
        place_failed(p, because, SOON_MS, SOON_MOST_MS, 0);
    } else {
        place_failed(p, because, LATE_MS, LATE_MOST_MS, 0);
    }
}

static void on_answer(void *ctx, uint64_t id, enum err e,
                      const struct fetch_answer *a, const struct why *why)
{
    struct place *p = ctx;

    (void)id;
    p->request = 0;
    p->is_busy = false;
    if (!e)
        judge(p, a);
    else if (e == ERR_ADDRESS)
        place_failed(p, why->text, LATE_MS, LATE_MOST_MS, 0);
    else
        place_failed(p, why->text, SOON_MS, SOON_MOST_MS, 0);
}

static void send_post(struct place *p)
{
    static const struct fetch_handler handler = {.on_done = on_answer};
    static const struct fetch_header headers[] = {
        {STR("Content-Type"), STR("application/json")}};
    struct fetch_request rq = {.method = STR("POST"),
                               .url = str_of(p->url),
                               .headers = headers,
                               .n_headers = 1,
                               .timeout_ms = POST_MS,
                               .max_body_bytes = ANSWER_MAX};
    struct why why = {""};
    enum err e = ERR_NOMEM;

    p->post.missed = p->missed;
    p->post.context = str_of(p->context);
    buf_clear(&p->body);
    channel_body(&p->body, &p->post);
    rq.body = buf_str(&p->body);
    if (p->body.over || FAULT("channel.post"))
        why_err(&why, e, "out of memory");
    else
        e = fetch_start(p->owner->opts.fetch, &rq, &handler, p, &p->request,
                        &why);
    if (!e)
        return;
    p->is_busy = false;
    if (e == ERR_SYNTAX)
        place_failed(p, "its webhook is no URL that can be asked", LATE_MS,
                     LATE_MOST_MS, 0);
    else
        place_failed(p, why.text, SOON_MS, SOON_MOST_MS, 0);
}

bool place_context(struct place *p, struct str text)
{
    struct str head = str_head(text, CHANNEL_CONTEXT_MAX);

    if (p->is_leaving || p->owner->is_stopping) {
        p->is_busy = false;
        place_failed(p, "it ends", SOON_MS, SOON_MOST_MS, 0);
        return false;
    }
    p->context = FAULT("channel.context") ? NULL : malloc(head.n + 1);
    if (p->context) {
        memcpy(p->context, head.n ? head.p : "", head.n);
        p->context[head.n] = '\0';
    }
    return true;
}

static void on_context(void *ctx, struct str text)
{
    struct place *p = ctx;

    if (place_context(p, text))
        send_post(p);
}

void place_post(struct place *p)
{
    const struct channels_opts *opts = &p->owner->opts;
    struct held *last = p->post.n ? p->post.entries[p->post.n - 1] : NULL;

    p->is_busy = true;
    if (last && opts->context && last->e.task_id.n &&
        channel_wants_context(last->e.type))
        opts->context(opts->ctx, last->e.task_id, on_context, p);
    else
        send_post(p);
}
