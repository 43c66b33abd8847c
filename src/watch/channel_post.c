/* A webhook gets one post at a time. The answer says whether it was accepted;
 * a post with an unknown outcome is sent again:
 *
 *   2xx                  accepted
 *   429                  again, after Retry-After, or after retry_after in
 *                        Discord's body
 *   408, 5xx, no answer  again, after a second, two, four, up to five minutes
 *   anything else        a person must look at it: a wrong URL, a webhook that
 *                        was deleted. Logged, and sent again after a minute,
 *                        two, up to an hour; nothing is skipped
 *
 * If several entries were rejected together (400, 413), they are sent one by
 * one, so that a bad one does not hold back those before it.
 *
 * The URL is a secret, since it is all that is needed to post. No log line and
 * no problem that is shown contains it. */
#include "watch/channel.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/json.h"
#include "base/mem.h"

enum {
    POST_MS = 15 * 1000,
    ANSWER_MAX = 64 * 1024,
    SOON_MS = 1000,
    SOON_MOST_MS = 5 * 60 * 1000,
    LATE_MS = 60 * 1000,
    LATE_MOST_MS = 60 * 60 * 1000,
    SLACK_REST_MS = 1000, /* Slack takes one post a second */
};

void output_post_clear(struct output *p)
{
    for (size_t i = 0; i < p->post.n; i++)
        free(p->post.entries[i]);
    p->post.n = 0;
    free(p->context);
    p->context = NULL;
}

void output_post_cancel(struct output *p)
{
    if (!p->request)
        return;
    fetch_cancel(p->owner->opts.fetch, p->request);
    p->request = 0;
    p->is_busy = false;
}

/* Seconds with a fraction, as milliseconds rounded up. */
static int64_t seconds_ms(double s)
{
    if (!(s > 0))
        return 0;
    return s > FETCH_RETRY_MAX_MS / 1000.0 ? FETCH_RETRY_MAX_MS
                                           : (int64_t)(s * 1000) + 1;
}

static struct str post_answer_header(const struct fetch_answer *a,
                                     struct str name)
{
    for (size_t i = 0; i < a->n_headers; i++)
        if (str_eq_nocase(a->headers[i].name, name))
            return a->headers[i].value;
    return (struct str){NULL, 0};
}

/* Discord's body is more exact than the header. */
static int64_t post_retry_ms(struct output *p, const struct fetch_answer *a)
{
    static const struct str keys[] = {STR("retry_after")};
    int64_t ms = fetch_retry_after_ms(a, loop_wall_ms(p->owner->opts.loop));
    struct str value = {NULL, 0};
    double s = 0;

    if (json_scan(a->body, keys, 1, &value, NULL) || !json_number(value, &s))
        return ms;
    return seconds_ms(s) > ms ? seconds_ms(s) : ms;
}

/* Discord announces when its rate limit is used up. */
static int64_t post_pause_ms(const struct output *p,
                             const struct fetch_answer *a)
{
    double s = 0;

    if (p->post.form == POST_SLACK)
        return SLACK_REST_MS;
    if (p->post.form == POST_DISCORD &&
        str_eq(post_answer_header(a, STR("x-ratelimit-remaining")), STR("0")) &&
        json_number(post_answer_header(a, STR("x-ratelimit-reset-after")), &s))
        return seconds_ms(s);
    return 0;
}

static void post_answer_problem(const struct output *p,
                                const struct fetch_answer *a, char *out,
                                size_t size)
{
    struct str secrets[] = {str_of(p->url)};
    char says[120];

    fetch_complaint(a->body, secrets, 1, says, sizeof(says));
    snprintf(out, size, "answers %d%s%s", a->status, says[0] ? ": " : "", says);
}

static void post_judge_answer(struct output *p, const struct fetch_answer *a)
{
    bool is_several = p->post.n > 1;
    char because[200];

    if (a->status >= 200 && a->status < 300) {
        p->most = CHANNEL_BATCH;
        output_done(p, post_pause_ms(p, a));
        return;
    }
    post_answer_problem(p, a, because, sizeof(because));
    if (a->status == 408 || a->status == 429 || a->status >= 500) {
        output_failed(p, because, SOON_MS, SOON_MOST_MS, post_retry_ms(p, a));
    } else if (is_several && (a->status == 400 || a->status == 413)) {
        p->most = 1;
        output_failed(p, because, SOON_MS, SOON_MOST_MS, 0);
    } else {
        output_failed(p, because, LATE_MS, LATE_MOST_MS, 0);
    }
}

static void on_post_answer(void *ctx, uint64_t id, enum err e,
                           const struct fetch_answer *a, const struct why *why)
{
    struct output *p = ctx;

    (void)id;
    p->request = 0;
    p->is_busy = false;
    if (!e)
        post_judge_answer(p, a);
    else if (e == ERR_ADDRESS)
        output_failed(p, why->text, LATE_MS, LATE_MOST_MS, 0);
    else
        output_failed(p, why->text, SOON_MS, SOON_MOST_MS, 0);
}

static void post_send(struct output *p)
{
    static const struct fetch_handler handler = {.on_done = on_post_answer};
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
        output_failed(p, "its webhook is not a valid URL", LATE_MS,
                      LATE_MOST_MS, 0);
    else
        output_failed(p, why.text, SOON_MS, SOON_MOST_MS, 0);
}

bool output_context(struct output *p, struct str text)
{
    struct str head = str_head(text, CHANNEL_CONTEXT_MAX);

    if (p->is_leaving || p->owner->is_stopping) {
        p->is_busy = false;
        output_failed(p, "the server stops", SOON_MS, SOON_MOST_MS, 0);
        return false;
    }
    p->context = mem_copy(head.p, head.n);
    return true;
}

static void on_post_context(void *ctx, struct str text)
{
    struct output *p = ctx;

    if (output_context(p, text))
        post_send(p);
}

void output_post(struct output *p)
{
    const struct channels_opts *opts = &p->owner->opts;
    struct held *last = p->post.n ? p->post.entries[p->post.n - 1] : NULL;

    p->is_busy = true;
    if (last && opts->context && last->e.task_id.n &&
        channel_wants_context(last->e.type))
        opts->context(opts->ctx, last->e.task_id, on_post_context, p);
    else
        post_send(p);
}
