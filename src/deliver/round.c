/* A model that calls tools: they are used, all calls of one answer at the same
 * time, and it is asked again with what came of them.
 *
 * Whatever is wrong with a call is the model's to hear and to do better: no
 * call fails the task. But all of it is bounded: so many calls in one answer,
 * so many answers, so many bytes; at the end it is asked once more, and told to
 * use nothing any more. An endpoint that calls all the same has had its say.
 *
 * The attempt is the unit of trying again: where the endpoint breaks in the
 * midst of it the next attempt begins with the message, as after a restart, and
 * what was delegated is ended (hire). */
#include "deliver/talk.h"

enum { WORDS_BYTES = 4096 }; /* of what is wrong with a call */

static void on_next(struct loop_job *job);

void rounds_init(struct talk *k)
{
    struct rounds *r = &k->rounds;

    r->next.run = on_next;
    buf_init(&r->said, TALK_REQUEST_BYTES);
    for (size_t i = 0; i < CHAT_USED; i++)
        k->used[i] = r->used[i] = -1;
}

void rounds_stop(struct talk *k)
{
    const struct deliver_opts *o = &k->visit.d->opts;
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
    chat_calls_clear(&r->calls);
    buf_fini(&r->said);
}

/* What came of a call. */

static void set_error(struct tool_run *run, const struct why *why)
{
    buf_fini(&run->result);
    buf_init(&run->result, WORDS_BYTES);
    wire_tool_error(&run->result, str_of(why->text));
}

static size_t result_max(const struct rounds *r)
{
    return TALK_RESULTS_BYTES / (r->calls.n ? r->calls.n : 1);
}

static void set_result(struct tool_run *run, struct str text)
{
    size_t max = result_max(&run->talk->rounds);
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
    set_error(run, &why);
}

static void one_is_over(struct tool_run *run)
{
    struct rounds *r = &run->talk->rounds;

    run->is_running = false;
    if (--r->n_running == 0)
        loop_at_end(run->talk->visit.d->opts.loop, &r->next);
}

static void on_done(void *ctx, struct str text)
{
    struct tool_run *run = ctx;

    set_result(run, text);
    one_is_over(run);
}

/* Using them. */

static enum err check_call(const struct chat_call *c, struct why *why)
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

static void use(struct talk *k, size_t i)
{
    const struct deliver_opts *o = &k->visit.d->opts;
    const struct chat_call *c = &k->rounds.calls.list[i];
    struct tool_run *run = &k->rounds.runs[i];
    struct why why = {""};
    enum err e = check_call(c, &why);

    if (!e &&
        (FAULT("deliver.tool") ||
         !o->on_tool(o->ctx, &k->visit.delivery.id, str_of(k->visit.agent),
                     wire_tool_of(str_of(c->name)), chat_arguments(c), on_done,
                     run, &run->handle)))
        e = why_err(&why, ERR_NOMEM, "memory is short: try again");
    if (!e)
        return;
    set_error(run, &why);
    one_is_over(run);
}

static void add_used(struct talk *k)
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
    size_t n = r->calls.n;

    if (!k->rq.has_tools || !n || k->rq.is_last ||
        strcmp(k->finish, "content_filter") == 0)
        return false;
    talk_went_well(k);
    visit_rest(&k->visit);
    add_used(k);
    r->is_between = true;
    r->n++;
    r->n_calls += n;
    r->n_running = n;
    for (size_t i = 0; i < n; i++)
        r->runs[i] = (struct tool_run){.talk = k, .is_running = true};
    for (size_t i = 0; i < n && !k->visit.delivery.is_over; i++)
        use(k, i);
    return true;
}

/* Asking again. */

static void note_what_was_left_out(struct rounds *r)
{
    struct buf *last = &r->runs[r->calls.n - 1].result;

    if (!r->calls.n_more)
        return;
    last->limit += WORDS_BYTES;
    buf_addf(last, "\n(%zu more calls were not made: %d at once are the most.)",
             r->calls.n_more, CHAT_CALLS_MAX);
}

/* What was said in this round becomes part of what it is told. */
static enum err keep_round(struct talk *k)
{
    struct rounds *r = &k->rounds;
    const struct delivery *y = &k->visit.delivery;
    struct str text = STR(""), answers[CHAT_CALLS_MAX];

    if (r->has_said && !y->lost)
        text = str_sub(buf_str(&y->gathered), r->said_at, y->gathered.n);
    note_what_was_left_out(r);
    for (size_t i = 0; i < r->calls.n; i++)
        answers[i] = buf_str(&r->runs[i].result);
    chat_write_round(&r->said, k->rq.kind, &r->calls, text, answers, r->n);
    for (size_t i = 0; i < r->calls.n; i++) {
        buf_fini(&r->runs[i].result);
        r->runs[i].result = (struct buf){0};
    }
    return r->said.over || FAULT("deliver.round") ? ERR_NOMEM : OK;
}

static void begin_anew(struct talk *k)
{
    struct rounds *r = &k->rounds;

    chat_calls_clear(&r->calls);
    r->is_between = r->has_said = false;
    k->has_begun = k->is_ended = false;
    k->finish[0] = '\0';
    buf_clear(&k->usage);
    k->rq.rounds = buf_str(&r->said);
    k->rq.is_last = r->n >= TALK_ROUNDS_MAX || r->said.n > TALK_ROUNDS_BYTES;
    k->visit.n_kept = r->said.n;
    visit_again(&k->visit, k->timeout_ms);
}

static void on_next(struct loop_job *job)
{
    struct talk *k = LIST_OF(job, struct talk, rounds.next);
    struct why why = {""};
    enum err e = keep_round(k);

    if (!e) {
        begin_anew(k);
        e = talk_send(k, &why);
    }
    if (e)
        visit_not_sent(&k->visit, e, &why);
}
