/* What a model's endpoint says: pieces of an answer, or a whole one, or that it
 * failed. An answer that has said why it ended is whole, whatever happens
 * behind that; one that has not is never taken for an answer. */
#include "deliver/talk.h"

#include <stdio.h>

enum { EVENT_SPARE_BYTES = 1024 * 1024 };

/* Of all rounds: what each of them used together, and no more of it. */
static void write_used(const struct talk *k, struct json_out *o)
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

static void write_metadata(struct talk *k, struct buf *out)
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
        write_used(k, &o);
    json_close(&o, '}');
}

bool talk_say(struct talk *k, struct str text)
{
    struct delivery *y = &k->visit.delivery;
    struct rounds *r = &k->rounds;

    if (!r->has_said && r->n && k->has_said &&
        !delivery_chunk(y, STR("\n\n"))) /* between what it says, and then */
        return false;
    if (!r->has_said)
        r->said_at = y->gathered.n;
    k->has_said = r->has_said = true;
    if (!delivery_chunk(y, text))
        return false;
    if (y->lost == LOST_TOO_LARGE) { /* it could only become longer */
        visit_failed(&k->visit, visit_failure_of(ERR_LIMIT),
                     "the model's answer is larger than the limit");
        return false;
    }
    return true;
}

/* Whether nothing at all was said, for a reason that is a failure. */
static bool has_come_to_nothing(struct talk *k)
{
    if (strcmp(k->finish, "content_filter") == 0)
        visit_failed(&k->visit,
                     (struct delivery_failure){.code = STR("content_filter"),
                                               .is_final = true},
                     "the model's endpoint filtered out all of its answer");
    else if (k->rounds.n && k->rounds.calls.n)
        visit_failed(
            &k->visit,
            (struct delivery_failure){.code = STR("model_error"),
                                      .is_final = true},
            "the model called tools %zu times and has answered nothing",
            k->rounds.n_calls);
    return k->visit.delivery.is_over;
}

/* Not everybody says the sum. */
static void sum_up(int64_t used[CHAT_USED])
{
    if (used[CHAT_TOTAL] < 0 && used[CHAT_PROMPT] >= 0 &&
        used[CHAT_COMPLETION] >= 0)
        used[CHAT_TOTAL] = used[CHAT_PROMPT] + used[CHAT_COMPLETION];
}

/* `text`: NULL where the chunks are it. A model that was asked for no tools
 * and ends for their sake has nothing more to say either. */
static void conclude(struct talk *k, const struct str *text)
{
    struct task_result r = {.status = TASK_COMPLETED};
    bool goes_on = k->rq.has_tools && k->rounds.calls.n;
    struct buf metadata;

    sum_up(k->used);
    if (text && text->n && (goes_on || k->rounds.n)) {
        if (!talk_say(k, *text))
            return;
        text = NULL;
    } else if (k->rounds.n) {
        text = NULL;
    }
    if (round_begin(k) ||
        (!k->has_said && !(text && text->n) && has_come_to_nothing(k)))
        return;
    talk_went_well(k);
    buf_init(&metadata, MSG_METADATA_MAX);
    write_metadata(k, &metadata);
    if (!metadata.over)
        r.metadata = buf_str(&metadata);
    if (text)
        r.text = *text;
    delivery_result(&k->visit.delivery, &r, text != NULL, 0);
    buf_fini(&metadata);
}

static void keep(char *to, size_t size, struct str s)
{
    if (s.n)
        snprintf(to, size, "%.*s", STR_ARG(str_head(s, size - 1)));
}

static void note(struct talk *k, const struct chat_word *w)
{
    keep(k->model, sizeof(k->model), w->model);
    keep(k->finish, sizeof(k->finish), w->finish);
    k->has_begun |= w->has_choice;
    k->is_ended |= w->finish.n > 0 || w->is_done;
    if (w->usage.n) {
        buf_clear(&k->usage);
        buf_add_str(&k->usage, w->usage);
    }
    /* Who says it again says it of all so far. */
    for (size_t i = 0; i < CHAT_USED; i++)
        if (k->used[i] < w->used[i])
            k->used[i] = w->used[i];
}

bool talk_may_try_again(int64_t status)
{
    return status == 0 || status == 408 || status == 429 || status >= 500;
}

void talk_words(const struct talk *k, struct str body, int64_t status,
                char out[VISIT_WORDS_BYTES])
{
    out[0] = '\0';
    if (status != 401 && status != 403)
        fetch_complaint(body, &k->key, 1, out, VISIT_WORDS_BYTES);
}

static void said_error(struct talk *k, struct str body, int64_t code)
{
    char message[VISIT_WORDS_BYTES];

    talk_words(k, body, code, message);
    visit_failed(
        &k->visit,
        (struct delivery_failure){.code = STR("model_error"),
                                  .is_final = !talk_may_try_again(code)},
        "the model's endpoint says that it failed%s%s", message[0] ? ": " : "",
        message);
}

static void not_understood(struct talk *k, enum err e, const struct why *why)
{
    struct delivery_failure f = {.code = STR("bad_answer"), .is_final = true};

    if (e == ERR_NOMEM)
        f = visit_failure_of(e);
    visit_failed(&k->visit, f,
                 "what the model's endpoint says cannot be understood: %s",
                 why->text);
}

static bool is_failure(const struct chat_word *w)
{
    return w->is_error || str_eq(w->finish, STR("error"));
}

/* Of one that was offered no tools they are not heard. */
static bool take_calls(struct talk *k, const struct chat_word *w)
{
    struct chat_calls *c = &k->rounds.calls;

    if (!k->rq.has_tools || !w->n_pieces)
        return true;
    if (chat_calls_add(c, w) != OK) {
        not_understood(k, ERR_NOMEM, &(struct why){"memory is short"});
        return false;
    }
    k->visit.n_kept = c->bytes + k->rounds.said.n;
    return true;
}

/* One piece. False: it is over. */
static bool take_piece(struct talk *k, struct str data,
                       const struct chat_word *w)
{
    if (is_failure(w)) {
        said_error(k, data, w->error_code);
        return false;
    }
    if (w->text.n && !talk_say(k, w->text))
        return false;
    if (!take_calls(k, w))
        return false;
    if (w->is_done && k->has_begun)
        conclude(k, NULL);
    else if (w->is_done)
        visit_failed(&k->visit,
                     (struct delivery_failure){.code = STR("bad_answer")},
                     "the model's endpoint ended its answer before it began");
    return !w->is_done;
}

bool talk_event(struct visit *a, const struct sse_event *e)
{
    struct talk *k = talk_of(a);
    struct arena arena;
    struct chat_word w;
    struct why why = {""};
    enum err err;
    bool goes_on = false;

    arena_init(&arena, e->data.n + EVENT_SPARE_BYTES);
    err = chat_read(&arena, k->rq.kind, e->data, &w, &why);
    if (k->is_ended && (err || is_failure(&w))) {
        conclude(k, NULL); /* to ask again would be to pay again */
    } else if (err) {
        not_understood(k, err, &why);
    } else {
        note(k, &w);
        goes_on = take_piece(k, e->data, &w);
    }
    arena_fini(&arena);
    return goes_on;
}

/* Some leave out the "[DONE]". */
void talk_end(struct visit *a)
{
    struct talk *k = talk_of(a);

    if (k->is_ended)
        conclude(k, NULL);
    else
        visit_failed(
            a, (struct delivery_failure){.code = STR("bad_answer")},
            "the model's endpoint ended its answer without saying why");
}

void talk_broken(struct visit *a, const struct delivery_failure *f)
{
    struct talk *k = talk_of(a);

    if (k->is_ended && !k->rounds.is_between)
        conclude(k, NULL);
    else
        delivery_failed(&a->delivery, f);
}

/* It does not stream. */
void talk_whole(struct visit *a)
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
        note(k, &w);
    if (e)
        not_understood(k, e, &why);
    else if (w.is_error)
        said_error(k, body, w.error_code);
    else if (w.text.n > MSG_TEXT_MAX)
        visit_failed(a, visit_failure_of(ERR_LIMIT),
                     "the model's answer is larger than the limit");
    else if (take_calls(k, &w))
        conclude(k, &w.text);
    arena_fini(&arena);
}
