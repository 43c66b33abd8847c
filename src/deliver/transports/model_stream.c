/* The answer of a model's endpoint: pieces, a whole one, or an error. An answer
 * with a finish reason is complete, regardless of errors after it. Without one
 * it is never taken for an answer. */
#include "deliver/transports/model_stream.h"

#include <stdio.h>

enum { EVENT_SPARE_BYTES = 1024 * 1024 };

/* The usage summed over all rounds. */
static void talk_write_usage(const struct talk *k, struct json_out *o)
{
    json_key(o, STR("usage"));
    json_open(o, '{');
    for (size_t i = 0; i < CHAT_USED; i++) {
        int64_t last = k->used[i], before = k->rounds.used[i];

        if (last < 0 && before < 0)
            continue;
        json_member_int(o, chat_used_names[i],
                        (last > 0 ? last : 0) + (before > 0 ? before : 0));
    }
    json_close(o, '}');
}

static void talk_write_metadata(struct talk *k, struct buf *out)
{
    struct json_out o = json_out(out);

    json_open(&o, '{');
    json_member_text(&o, "model", k->model[0] ? str_of(k->model) : k->rq.model);
    if (k->finish[0])
        json_member_text(&o, "finish_reason", str_of(k->finish));
    if (k->rounds.n)
        json_member_int(&o, "tool_calls", (int64_t)k->rounds.n_calls);
    if (k->usage.n && !k->rounds.n)
        json_member_raw(&o, "usage", buf_str(&k->usage));
    else if (k->rounds.n || k->used[CHAT_TOTAL] >= 0)
        talk_write_usage(k, &o);
    json_close(&o, '}');
}

/* Report text of the answer. False: the delivery is over. */
static bool talk_say(struct talk *k, struct str text)
{
    struct delivery *y = &k->exchange.delivery;
    struct rounds *r = &k->rounds;

    if (!r->has_text && r->n && k->has_text &&
        !delivery_chunk(y, STR("\n\n"))) /* between the texts of rounds */
        return false;
    if (!r->has_text)
        r->text_at = y->gathered.n;
    k->has_text = r->has_text = true;
    if (!delivery_chunk(y, text))
        return false;
    if (y->lost == LOST_TOO_LARGE) { /* the rest would only add to it */
        exchange_failed(&k->exchange, exchange_failure_of(ERR_LIMIT),
                        "the model's answer is larger than the limit");
        return false;
    }
    return true;
}

/* Fail an empty answer if the reason is an error. True: it has failed. */
static bool talk_fail_if_empty(struct talk *k)
{
    if (strcmp(k->finish, "content_filter") == 0)
        exchange_failed(&k->exchange,
                        (struct delivery_failure){.code = STR("content_filter"),
                                                  .is_final = true},
                        "the model's endpoint filtered out all of its answer");
    else if (k->rounds.n && k->rounds.api.n)
        exchange_failed(
            &k->exchange,
            (struct delivery_failure){.code = STR("model_error"),
                                      .is_final = true},
            "the model called tools %zu times and has answered nothing",
            k->rounds.n_calls);
    return k->exchange.delivery.is_over;
}

/* text is NULL if the chunks are the answer. A model that calls tools although
 * none were offered has no further answer. */
static void talk_conclude(struct talk *k, const struct str *text)
{
    struct task_result r = {.status = TASK_COMPLETED};
    bool goes_on = k->rq.has_tools && k->rounds.api.n;
    struct buf metadata;

    if (k->used[CHAT_TOTAL] < 0 && k->used[CHAT_PROMPT] >= 0 &&
        k->used[CHAT_COMPLETION] >= 0) /* some endpoints report no sum */
        k->used[CHAT_TOTAL] = k->used[CHAT_PROMPT] + k->used[CHAT_COMPLETION];
    if (text && text->n && (goes_on || k->rounds.n)) {
        if (!talk_say(k, *text))
            return;
        text = NULL;
    } else if (k->rounds.n) {
        text = NULL;
    }
    if (round_begin(k) ||
        (!k->has_text && !(text && text->n) && talk_fail_if_empty(k)))
        return;
    talk_went_well(k);
    buf_init(&metadata, MSG_METADATA_MAX);
    talk_write_metadata(k, &metadata);
    if (!metadata.over)
        r.metadata = buf_str(&metadata);
    if (text)
        r.text = *text;
    delivery_result(&k->exchange.delivery, &r, text != NULL, 0);
    buf_fini(&metadata);
}

static void talk_keep_name(char *to, size_t size, struct str s)
{
    if (s.n)
        snprintf(to, size, "%.*s", STR_ARG(str_head(s, size - 1)));
}

static void talk_note_piece(struct talk *k, const struct chat_word *w)
{
    talk_keep_name(k->model, sizeof(k->model), w->model);
    talk_keep_name(k->finish, sizeof(k->finish), w->finish);
    k->has_begun |= w->has_choice;
    k->is_ended |= w->finish.n > 0 || w->is_done;
    if (w->usage.n) {
        buf_clear(&k->usage);
        buf_add_str(&k->usage, w->usage);
    }
    /* A later report covers everything so far. */
    for (size_t i = 0; i < CHAT_USED; i++)
        if (k->used[i] < w->used[i])
            k->used[i] = w->used[i];
}

bool talk_may_try_again(int64_t status)
{
    return status == 0 || status == 408 || status == 429 || status >= 500;
}

void talk_words(const struct talk *k, struct str body, int64_t status,
                char out[EXCHANGE_WORDS_BYTES])
{
    out[0] = '\0';
    if (status != 401 && status != 403)
        fetch_complaint(body, &k->key, 1, out, EXCHANGE_WORDS_BYTES);
}

static void talk_reported_error(struct talk *k, struct str body, int64_t code)
{
    char message[EXCHANGE_WORDS_BYTES];

    talk_words(k, body, code, message);
    exchange_failed(
        &k->exchange,
        (struct delivery_failure){.code = STR("model_error"),
                                  .is_final = !talk_may_try_again(code)},
        "the model's endpoint says that it failed%s%s", message[0] ? ": " : "",
        message);
}

static void talk_not_understood(struct talk *k, enum err e,
                                const struct why *why)
{
    struct delivery_failure f = {.code = STR("bad_answer"), .is_final = true};

    if (e == ERR_NOMEM)
        f = exchange_failure_of(e);
    exchange_failed(&k->exchange, f,
                    "what the model's endpoint says cannot be understood: %s",
                    why->text);
}

static bool chat_word_is_failure(const struct chat_word *w)
{
    return w->is_error || str_eq(w->finish, STR("error"));
}

/* Calls are ignored if no tools were offered. */
static bool talk_take_calls(struct talk *k, const struct chat_word *w)
{
    struct chat_calls *c = &k->rounds.api;

    if (!k->rq.has_tools || !w->n_pieces)
        return true;
    if (chat_calls_add(c, w) != OK) {
        talk_not_understood(k, ERR_NOMEM, &(struct why){"memory is short"});
        return false;
    }
    k->exchange.n_kept = c->bytes + k->rounds.earlier.n;
    return true;
}

/* Take one piece. False: the delivery is over. */
static bool talk_take_piece(struct talk *k, struct str data,
                            const struct chat_word *w)
{
    if (chat_word_is_failure(w)) {
        talk_reported_error(k, data, w->error_code);
        return false;
    }
    if (w->text.n && !talk_say(k, w->text))
        return false;
    if (!talk_take_calls(k, w))
        return false;
    if (w->is_done && k->has_begun)
        talk_conclude(k, NULL);
    else if (w->is_done)
        exchange_failed(
            &k->exchange, (struct delivery_failure){.code = STR("bad_answer")},
            "the model's endpoint ended its answer before it began");
    return !w->is_done;
}

bool talk_event(struct exchange *a, const struct sse_event *e)
{
    struct talk *k = talk_of(a);
    struct arena arena;
    struct chat_word w;
    struct why why = {""};
    enum err err;
    bool goes_on = false;

    arena_init(&arena, e->data.n + EVENT_SPARE_BYTES);
    err = chat_read(&arena, k->rq.kind, e->data, &w, &why);
    if (k->is_ended && (err || chat_word_is_failure(&w))) {
        talk_conclude(k, NULL); /* a retry would be paid again */
    } else if (err) {
        talk_not_understood(k, err, &why);
    } else {
        talk_note_piece(k, &w);
        goes_on = talk_take_piece(k, e->data, &w);
    }
    arena_fini(&arena);
    return goes_on;
}

/* Some endpoints leave out the "[DONE]". */
void talk_end(struct exchange *a)
{
    struct talk *k = talk_of(a);

    if (k->is_ended)
        talk_conclude(k, NULL);
    else
        exchange_failed(
            a, (struct delivery_failure){.code = STR("bad_answer")},
            "the model's endpoint ended its answer without saying why");
}

void talk_broken(struct exchange *a, const struct delivery_failure *f)
{
    struct talk *k = talk_of(a);

    if (k->is_ended && !k->rounds.is_between)
        talk_conclude(k, NULL);
    else
        delivery_failed(&a->delivery, f);
}

/* The endpoint does not stream. */
void talk_whole(struct exchange *a)
{
    struct talk *k = talk_of(a);
    struct str body = buf_str(&a->body);
    struct arena arena;
    struct chat_word w;
    struct why why = {""};
    enum err e;

    arena_init(&arena, body.n + EVENT_SPARE_BYTES);
    e = chat_read(&arena, k->rq.kind, body, &w, &why);
    if (!e && !w.is_error && !w.has_choice)
        e = why_err(&why, ERR_BAD_REQUEST, "it has no \"%s\"",
                    chat_answer_member(k->rq.kind));
    if (!e)
        talk_note_piece(k, &w);
    if (e)
        talk_not_understood(k, e, &why);
    else if (w.is_error)
        talk_reported_error(k, body, w.error_code);
    else if (w.text.n > MSG_TEXT_MAX)
        exchange_failed(a, exchange_failure_of(ERR_LIMIT),
                        "the model's answer is larger than the limit");
    else if (talk_take_calls(k, &w))
        talk_conclude(k, &w.text);
    arena_fini(&arena);
}
