/* The transports "https://" and "http://": the task is posted, and the answer
 * is its result, either whole as JSON or as server-sent events.
 *
 *     POST url, {"task_id":…,"attempt":1,"message":…}
 *     200 application/json   {"status":"completed","text":…}
 *     200 text/event-stream  event: chunk, data: {"text":…}
 *                            event: result, data: {"status":…,"text":…}
 *
 * A cancel closes the connection, since there is no better signal for a writer.
 * The event `result` closes it too, because nothing may follow it.
 *
 * A failure that the agent reports is final. One that may pass (unreachable,
 * overloaded, broken off in the middle) is retried. A malformed answer is final
 * too: the agent has done the work and would most likely answer the same again.
 * Redirects are not followed: they would take task and credentials to an
 * address that the author of the card did not choose. */
#include <stdio.h>
#include <stdlib.h>

#include "deliver/transports/exchange.h"

enum {
    ARENA_SPARE_BYTES = 4 * 1024 * 1024,
    HEADERS = 8,
    SECRET_BYTES = 64 * 1024
};

struct post {
    struct exchange exchange;
    struct arena arena; /* of the credentials */
    struct credentials credentials;
};

static const struct exchange_ops post_ops;

/* Read the answer. */

static enum err answer_check_task(const struct wire_word *w,
                                  const struct delivery_id *id, struct why *why)
{
    if (w->task_id.n && !str_eq(w->task_id, str_of(id->task_id.text)))
        return why_err(why, ERR_BAD_REQUEST, "it is about another task");
    if (w->turn && w->turn != id->turn)
        return why_err(why, ERR_BAD_REQUEST, "it is about another turn");
    return OK;
}

enum err answer_read(struct arena *arena, struct str text,
                     const struct delivery_id *id, bool is_chunk,
                     struct wire_word *out, struct why *why)
{
    struct json_error err = {0};
    const struct json *root = json_parse(arena, text, 0, &err);
    enum err e;

    if (!root && err.err == ERR_NOMEM)
        return why_err(why, ERR_NOMEM, "memory is short");
    if (!root)
        return why_err(why, ERR_BAD_REQUEST,
                       "it is not valid JSON: %s in line %u, column %u",
                       err.what, err.line, err.col);
    if (root->type != JSON_OBJ)
        return why_err(why, ERR_BAD_REQUEST, "it is no JSON object");
    e = is_chunk ? wire_chunk_read(root, out, why)
                 : wire_result_read(arena, root, out, why);
    return e ? e : answer_check_task(out, id, why);
}

static void post_bad_answer(struct exchange *a, enum err e, const char *what,
                            const struct why *why)
{
    struct delivery_failure f = {.code = STR("bad_answer"), .is_final = true};

    if (e == ERR_LIMIT || e == ERR_NOMEM)
        f = exchange_failure_of(e);
    exchange_failed(a, f, "the agent's %s cannot be understood: %s", what,
                    why->text);
}

/* Take a result or a chunk. False: the delivery is over. */
static bool post_take_document(struct exchange *a, struct str text,
                               bool is_chunk, const char *what)
{
    struct delivery *y = &a->delivery;
    struct arena arena;
    struct wire_word w;
    struct why why = {""};
    enum err e;
    bool goes_on = false;

    arena_init(&arena, text.n + ARENA_SPARE_BYTES);
    e = answer_read(&arena, text, &y->id, is_chunk, &w, &why);
    if (e)
        post_bad_answer(a, e, what, &why);
    else if (!is_chunk)
        delivery_result(y, &w.result, w.has_text, 0);
    else
        goes_on = !w.text.n || delivery_chunk(y, w.text);
    arena_fini(&arena);
    return goes_on;
}

static bool post_event(struct exchange *a, const struct sse_event *e)
{
    if (str_eq(e->type, STR("chunk")))
        return post_take_document(a, e->data, true, "event \"chunk\"");
    if (str_eq(e->type, STR("result")))
        return post_take_document(a, e->data, false, "event \"result\"");
    return true; /* ignore other events */
}

static void post_end(struct exchange *a)
{
    exchange_failed(a, (struct delivery_failure){.code = STR("bad_answer")},
                    "the agent ended its stream without the event \"result\"");
}

static bool media_type_is_json(struct str type)
{
    struct str end = str_sub(type, type.n > 5 ? type.n - 5 : 0, type.n);

    return !type.n || str_eq_nocase(type, STR("application/json")) ||
           str_eq_nocase(end, STR("+json"));
}

static void post_whole(struct exchange *a)
{
    if (!media_type_is_json(str_of(a->type)))
        exchange_failed(a,
                        (struct delivery_failure){.code = STR("bad_answer"),
                                                  .is_final = true},
                        "the agent's answer is of the type \"%s\", and must be "
                        "application/json or text/event-stream",
                        a->type);
    else
        (void)post_take_document(a, buf_str(&a->body), false, "answer");
}

/* The failure for a status, and a hint to append. */
static struct delivery_failure post_status_failure(int status,
                                                   const char **hint)
{
    struct delivery_failure f = {.code = STR("agent_error"), .is_final = true};

    *hint = "";
    if (status == 429 || status == 503) {
        f = (struct delivery_failure){.code = STR("agent_busy")};
    } else if (status == 502 || status == 504) {
        f = (struct delivery_failure){.code = STR("unreachable")};
    } else if (status == 401 || status == 403) {
        *hint = ": it does not take the authentication of its card";
    } else if (status >= 300 && status < 400) {
        *hint = ": it wants to be called elsewhere, which is not done; its "
                "card's url is to be the last address";
    } else if (status >= 200 && status < 300) {
        *hint = ": the answer is to be 200 with the result in it";
    }
    return f;
}

static void post_status(struct exchange *a)
{
    const struct post *p = LIST_OF(a, struct post, exchange);
    char message[EXCHANGE_WORDS_BYTES] = "";
    const char *hint;
    struct delivery_failure f = post_status_failure(a->status, &hint);

    f.retry_ms = a->retry_ms;
    /* An error about the credentials may repeat a part of them. */
    if (!hint[0])
        fetch_complaint(buf_str(&a->body), p->credentials.secrets, 2, message,
                        sizeof(message));
    exchange_failed(a, f, "the agent answered with status %d%s%s%s", a->status,
                    hint, message[0] ? ": " : "", message);
}

static const struct exchange_ops post_ops = {
    .on_event = post_event,
    .on_end = post_end,
    .on_whole = post_whole,
    .on_status = post_status,
};

/* Send the request. */

struct stamps {
    char key[ID_BYTES + 24], attempt[24], deadline[24];
};

static size_t post_write_headers(const struct task *t,
                                 const struct credentials *credentials,
                                 struct stamps *s, struct fetch_header *out)
{
    size_t n = 0;

    snprintf(s->key, sizeof(s->key), "%s:%lld", t->id.text, (long long)t->turn);
    snprintf(s->attempt, sizeof(s->attempt), "%lld", (long long)t->attempt);
    snprintf(s->deadline, sizeof(s->deadline), "%lld",
             (long long)t->deadline_ms);
    out[n++] =
        (struct fetch_header){STR("Content-Type"), STR("application/json")};
    out[n++] = (struct fetch_header){
        STR("Accept"), STR("application/json, text/event-stream")};
    out[n++] = (struct fetch_header){STR("Idempotency-Key"), str_of(s->key)};
    out[n++] =
        (struct fetch_header){STR("X-Signalbox-Task"), str_of(t->id.text)};
    out[n++] =
        (struct fetch_header){STR("X-Signalbox-Attempt"), str_of(s->attempt)};
    out[n++] = (struct fetch_header){STR("X-Signalbox-Deadline-Ms"),
                                     str_of(s->deadline)};
    if (credentials->header.name.n)
        out[n++] = credentials->header;
    return n;
}

static enum err post_send_request(struct post *p, const struct task *t,
                                  const struct agent *a, struct why *why)
{
    struct fetch_header headers[HEADERS];
    struct stamps stamps;
    struct fetch_request rq = {.method = STR("POST"),
                               .url = a->url,
                               .headers = headers,
                               .is_trusted = a->is_configured};
    struct json_out o;
    struct buf body;
    enum err e;

    rq.n_headers = post_write_headers(t, &p->credentials, &stamps, headers);
    buf_init(&body, EXCHANGE_BODY_MAX);
    o = json_out(&body);
    wire_execute(&o, t);
    rq.body = buf_str(&body);
    e = body.over ? ERR_NOMEM : exchange_send(&p->exchange, &rq, why);
    buf_fini(&body);
    return e;
}

static struct post *post_new(struct deliver *d, const struct task *t,
                             const struct agent *a)
{
    struct post *p = mem_new(sizeof(*p));

    arena_init(&p->arena, SECRET_BYTES);
    p->exchange.peer = "the agent";
    p->exchange.is_operators = a->is_configured;
    p->exchange.silence_ms = d->opts.settings.silence_ms;
    p->exchange.delivery.id = (struct delivery_id){t->id, t->turn, t->attempt};
    exchange_init(&p->exchange, d, &post_ops, a, exchange_whole_ms(d, t));
    return p;
}

static void post_stop(struct delivery *y, enum stop_why why)
{
    (void)why;
    exchange_stop(&LIST_OF(y, struct post, exchange.delivery)->exchange);
}

static void post_free(struct delivery *y)
{
    struct post *p = LIST_OF(y, struct post, exchange.delivery);

    exchange_fini(&p->exchange);
    arena_fini(&p->arena);
    free(p);
}

/* Errors of the card or of the server are reported like any other failure, so
 * that the task shows them. */
static enum err post_start(struct deliver *d, const struct task *t,
                           const struct agent *a, const struct agent_url *url,
                           struct delivery **out)
{
    struct post *p = d->opts.fetch ? post_new(d, t, a) : NULL;
    struct why why = {""};
    enum err e;

    (void)url;
    if (!p)
        return ERR_NOMEM;
    e = credentials_of(&p->arena, a, &p->credentials, &why);
    if (e == ERR_UNREACHABLE)
        exchange_fail_later(&p->exchange,
                            (struct delivery_failure){
                                .code = STR("unreachable"), .is_final = true},
                            "%s", why.text);
    else if (!e)
        e = post_send_request(p, t, a, &why);
    if (e == ERR_NOMEM || e == ERR_BUSY) {
        post_stop(&p->exchange.delivery, STOP_OVER);
        post_free(&p->exchange.delivery);
        return e;
    }
    if (e && e != ERR_UNREACHABLE)
        exchange_not_sent(&p->exchange, e, &why);
    *out = &p->exchange.delivery;
    return OK;
}

static enum err post_reaches(const struct deliver *d, const struct agent *a,
                             const struct agent_url *url, struct why *why)
{
    struct arena arena;
    struct credentials credentials;
    enum err e;

    (void)url;
    if (!d->opts.fetch)
        return why_err(why, ERR_NOT_IMPLEMENTED,
                       "this server makes no HTTP calls");
    arena_init(&arena, SECRET_BYTES);
    e = credentials_of(&arena, a, &credentials, why);
    arena_fini(&arena);
    return e;
}

const struct transport_row transport_http = {.reaches = post_reaches,
                                             .start = post_start,
                                             .stop = post_stop,
                                             .free = post_free};
