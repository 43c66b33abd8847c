/* A model that calls tools: all calls of one answer run at the same time, and
 * the next request has their results.
 *
 * Errors of a call go to the model, which may correct them: no call fails the
 * task. But calls per answer, answers and bytes are limited. At the limit there
 * is one more request, which tells the model to use no more tools. Calls in
 * that last answer are ignored.
 *
 * A retry repeats the whole attempt: if the endpoint breaks in the middle, the
 * next attempt begins with the message, as after a restart, and running
 * delegations end (delegation). */
#include "deliver/transports/model_stream.h"

enum { WORDS_BYTES = 4096 }; /* of an error message */

static void rounds_on_next(struct loop_job *job);

void rounds_init(struct talk *k)
{
    struct rounds *r = &k->rounds;

    r->next.run = rounds_on_next;
    buf_init(&r->earlier, TALK_REQUEST_BYTES);
    for (size_t i = 0; i < CHAT_USED; i++)
        k->used[i] = r->used[i] = -1;
}

void rounds_stop(struct talk *k)
{
    const struct deliver_opts *o = &k->exchange.d->opts;
    struct rounds *r = &k->rounds;

    for (size_t i = 0; i < CHAT_CALLS_MAX; i++) {
        if (r->runs[i].is_running && r->runs[i].handle)
            o->tool_cancel(o->ctx, r->runs[i].handle);
        r->runs[i].is_running = false;
    }
    r->n_running = 0;
    loop_not_at_end(&r->next);
}

void rounds_fini(struct talk *k)
{
    struct rounds *r = &k->rounds;

    for (size_t i = 0; i < CHAT_CALLS_MAX; i++)
        buf_fini(&r->runs[i].result);
    chat_calls_clear(&r->api);
    buf_fini(&r->earlier);
}

/* Results. */

static void tool_run_set_error(struct tool_run *run, const struct why *why)
{
    buf_fini(&run->result);
    buf_init(&run->result, WORDS_BYTES);
    wire_tool_error(&run->result, str_of(why->text));
}

static void tool_run_set_result(struct tool_run *run, struct str text)
{
    size_t n = run->talk->rounds.api.n, max = TALK_RESULTS_BYTES / (n ? n : 1);
    struct why why;

    buf_fini(&run->result);
    buf_init(&run->result, max);
    buf_add_str(&run->result, text);
    if (!run->result.over)
        return;
    if (text.n > max)
        why_err(&why, ERR_LIMIT,
                "the answer has %zu bytes, and %zu are the most: ask for less",
                text.n, max);
    else
        why_err(&why, ERR_NOMEM, "memory is short");
    tool_run_set_error(run, &why);
}

static void tool_run_end(struct tool_run *run)
{
    struct rounds *r = &run->talk->rounds;

    run->is_running = false;
    if (--r->n_running == 0)
        loop_at_end(run->talk->exchange.d->opts.loop, &r->next);
}

static void tool_run_on_done(void *ctx, struct str text)
{
    struct tool_run *run = ctx;

    tool_run_set_result(run, text);
    tool_run_end(run);
}

/* Run the calls. */

static enum err tool_call_check(const struct chat_call *c, struct why *why)
{
    struct str name = str_of(c->name);
    struct json_error at = {.what = "it is no object"};

    if (!wire_tool_of(name) || c->has_bad_name)
        return why_err(why, ERR_BAD_REQUEST,
                       "there is no tool \"%.*s\": there are "
                       "delegate_to_agent and search_agents",
                       STR_ARG(str_head(name, CHAT_CALL_NAME_MAX)));
    if (c->is_cut)
        return why_err(why, ERR_LIMIT,
                       "the arguments of all calls together are longer than "
                       "%d bytes: give less at once",
                       CHAT_CALLS_BYTES);
    if (chat_arguments(c).n)
        return OK;
    (void)!json_check(buf_str(&c->arguments), &at);
    return why_err(why, ERR_BAD_REQUEST,
                   "the arguments are not a JSON object: %s in line %u, "
                   "column %u",
                   at.what, at.line, at.col);
}

static void tool_run_begin(struct talk *k, size_t i)
{
    const struct deliver_opts *o = &k->exchange.d->opts;
    const struct chat_call *c = &k->rounds.api.list[i];
    struct tool_run *run = &k->rounds.runs[i];
    struct why why = {""};

    if (tool_call_check(c, &why) == OK) {
        o->on_tool(o->ctx, &k->exchange.delivery.id, str_of(k->exchange.agent),
                   wire_tool_of(str_of(c->name)), chat_arguments(c),
                   tool_run_on_done, run, &run->handle);
        return;
    }
    tool_run_set_error(run, &why);
    tool_run_end(run);
}

static void rounds_add_usage(struct talk *k)
{
    int64_t *sum = k->rounds.used;

    for (size_t i = 0; i < CHAT_USED; i++) {
        if (k->used[i] >= 0)
            sum[i] = (sum[i] > 0 ? sum[i] : 0) + k->used[i];
        k->used[i] = -1;
    }
}

bool round_begin(struct talk *k)
{
    struct rounds *r = &k->rounds;
    size_t n = r->api.n;

    if (!k->rq.has_tools || !n || k->rq.is_last ||
        strcmp(k->finish, "content_filter") == 0)
        return false;
    talk_went_well(k);
    exchange_rest(&k->exchange);
    rounds_add_usage(k);
    r->is_between = true;
    r->n++;
    r->n_calls += n;
    r->n_running = n;
    for (size_t i = 0; i < n; i++)
        r->runs[i] = (struct tool_run){.talk = k, .is_running = true};
    for (size_t i = 0; i < n && !k->exchange.delivery.is_over; i++)
        tool_run_begin(k, i);
    return true;
}

/* The next request. */

static void rounds_note_omitted(struct rounds *r)
{
    struct buf *last = &r->runs[r->api.n - 1].result;

    if (!r->api.n_more)
        return;
    last->limit += WORDS_BYTES;
    buf_addf(last, "\n(%zu more calls were not made: %d at once are the most.)",
             r->api.n_more, CHAT_CALLS_MAX);
}

/* Append this round to those of the next request. */
static enum err rounds_keep_round(struct talk *k)
{
    struct rounds *r = &k->rounds;
    const struct delivery *y = &k->exchange.delivery;
    struct str text = STR(""), answers[CHAT_CALLS_MAX];

    if (r->has_text && !y->lost)
        text = str_sub(buf_str(&y->gathered), r->text_at, y->gathered.n);
    rounds_note_omitted(r);
    for (size_t i = 0; i < r->api.n; i++)
        answers[i] = buf_str(&r->runs[i].result);
    chat_write_round(&r->earlier, k->rq.kind, &r->api, text, answers, r->n);
    for (size_t i = 0; i < r->api.n; i++) {
        buf_fini(&r->runs[i].result);
        r->runs[i].result = (struct buf){0};
    }
    return r->earlier.over || FAULT("deliver.round") ? ERR_NOMEM : OK;
}

static void rounds_begin_next(struct talk *k)
{
    struct rounds *r = &k->rounds;

    chat_calls_clear(&r->api);
    r->is_between = r->has_text = false;
    k->has_begun = k->is_ended = false;
    k->finish[0] = '\0';
    buf_clear(&k->usage);
    k->rq.rounds = buf_str(&r->earlier);
    k->rq.is_last = r->n >= TALK_ROUNDS_MAX || r->earlier.n > TALK_ROUNDS_BYTES;
    k->exchange.n_kept = r->earlier.n;
    exchange_again(&k->exchange, k->timeout_ms);
}

static void rounds_on_next(struct loop_job *job)
{
    struct talk *k = LIST_OF(job, struct talk, rounds.next);
    struct why why = {""};
    enum err e = rounds_keep_round(k);

    if (!e) {
        rounds_begin_next(k);
        e = talk_send(k, &why);
    }
    if (e)
        exchange_not_sent(&k->exchange, e, &why);
}
