/* What is said on a line about tasks.
 *
 * A word counts if its task is on its way on the line it came by: nobody can
 * speak for another's task by knowing its id. Which attempt a result was made
 * in does not matter, work is work; a chunk of an earlier attempt would stand
 * in the middle of this one's and is refused.
 *
 * A result for a task that is not on its way here may be late, a second one,
 * or that of an agent that was away meanwhile. Who knows the task judges it
 * (on_stray); what is plainly another's is refused here.
 *
 * Behind a callback neither line nor delivery is looked at any more: both may
 * be gone. */
#include "deliver/line.h"

static const struct str execute_prefix = STR("task_");

/* The delivery of that task on l; NULL: it is not on its way there. Who streams
 * speaks of the same one again and again. */
static struct delivery *delivery_on(struct line *l, struct str task_id)
{
    const struct errand *e;

    if (l->last && l->last->errand &&
        str_eq(str_of(l->last->id.task_id.text), task_id))
        return l->last;
    e = map_get(&l->deliver->errands, task_id);
    if (!e || !e->delivery || e->delivery->line != l)
        return NULL;
    l->last = e->delivery;
    return l->last;
}

/* The answer to a task.execute. */

/* The delivery that was given to the agent by a call with that id. */
static struct delivery *delivery_of_call(struct line *l, struct str id)
{
    char asked[WIRE_EXECUTE_ID_BYTES];
    struct str rest = id;
    struct delivery *y = delivery_on(l, str_cut(&rest, ':'));
    struct task t;

    if (!y)
        return NULL;
    t = (struct task){
        .id = y->id.task_id, .turn = y->id.turn, .attempt = y->id.attempt};
    return str_eq(id, wire_execute_id(&t, asked)) ? y : NULL;
}

static void heard_error(struct delivery *y, const struct wire_message *m)
{
    const struct json *after = json_get(m->data, STR("retry_after_ms"));
    int64_t retry_ms = json_int_or(after, 0);
    struct str code =
        json_str_or(json_get(m->data, STR("code")), (struct str){0});

    if (retry_ms > RETRY_AFTER_MAX_MS)
        retry_ms = RETRY_AFTER_MAX_MS;
    delivery_failed(y,
                    &(struct delivery_failure){
                        .code = wire_error_code(code),
                        .words = m->error.n ? str_head(m->error, WIRE_ERROR_MAX)
                                            : STR("the agent refused it"),
                        .is_final = !after || after->type != JSON_INT,
                        .retry_ms = retry_ms > 0 ? retry_ms : 0,
                    });
}

static const struct str too_large_words =
    STR("the agent's answer is larger than the limit");

/* It has answered, and for all it knows the work is done; so nobody need be
 * told. What we had no memory for is no fault of its. */
static void heard_no_result(struct delivery *y, enum err e,
                            const struct why *why)
{
    struct delivery_failure f = {.code = STR("bad_answer"),
                                 .words = str_of(why->text),
                                 .is_final = true};

    if (e == ERR_LIMIT) {
        f.code = str_of(err_row(e)->code);
        f.words = too_large_words;
    } else if (e == ERR_NOMEM) {
        f.code = str_of(err_row(e)->code);
        f.is_final = false;
        f.is_innocent = true;
    }
    delivery_failed(y, &f);
}

/* Usually {"status":"working"}; who has its result at once may give it. */
static enum err heard_answer(struct line *l, struct delivery *y,
                             const struct wire_message *m, struct why *why)
{
    struct str status =
        json_str_or(json_get(m->result, STR("status")), STR("working"));
    struct why because;
    struct wire_word w;
    enum err e;

    if (!task_is_over(task_status_of(status))) {
        delivery_working(y);
        return OK;
    }
    arena_reset(&l->deliver->lines->scratch);
    e = wire_result_read(&l->deliver->lines->scratch, m->result, &w, &because);
    if (!e) {
        delivery_result(y, &w.result, w.has_text, 0);
        return OK;
    }
    heard_no_result(y, e, &because);
    return why_err(why, e, "%s", because.text);
}

static enum err heard_call_answer(struct line *l, const struct wire_message *m,
                                  struct why *why)
{
    struct delivery *y;

    if (!str_starts(m->id.text, execute_prefix))
        return ERR_METHOD;
    y = delivery_of_call(l, m->id.text);
    if (!y)
        return why_err(why, ERR_NOT_FOUND,
                       "nothing that is on its way was asked with that id");
    if (m->kind == WIRE_RESULT)
        return heard_answer(l, y, m, why);
    heard_error(y, m);
    return OK;
}

/* task.chunk and task.result. */

static enum err not_here(struct why *why, struct str task_id)
{
    return why_err(why, ERR_NOT_FOUND,
                   "the task \"%.*s\" is not one that you were given",
                   STR_ARG(str_head(task_id, 64)));
}

/* Whether what is said is of the turn that is going on. */
static bool is_of(const struct wire_word *w, const struct delivery *y)
{
    return wire_turn(w) == y->id.turn;
}

static bool is_going_on(const struct wire_word *w, const struct delivery *y)
{
    return is_of(w, y) && (!w->attempt || w->attempt == y->id.attempt);
}

/* A chunk or a result over the limit: the whole answer would be, and the same
 * comes of every attempt. Who has more to say is told that it need not. */
static void heard_too_much(struct line *l, const struct wire_message *m,
                           bool has_more)
{
    struct str id = json_str_or(json_get(m->params, STR("task_id")), STR(""));
    struct wire_word w = {
        .turn = json_int_or(json_get(m->params, STR("turn")), 0),
        .attempt = json_int_or(json_get(m->params, STR("attempt")), 0),
    };
    struct delivery *y = delivery_on(l, id);

    if (y && is_going_on(&w, y))
        delivery_failed(y, &(struct delivery_failure){
                               .code = str_of(err_row(ERR_LIMIT)->code),
                               .words = too_large_words,
                               .is_final = true,
                               .is_to_be_told = has_more});
}

static enum err heard_chunk(struct line *l, const struct wire_message *m,
                            struct why *why)
{
    struct delivery *y;
    struct wire_word w;
    enum err e = wire_chunk_read(m->params, &w, why);

    if (e == ERR_LIMIT)
        heard_too_much(l, m, true);
    if (e)
        return e;
    y = delivery_on(l, w.task_id);
    if (!y)
        return not_here(why, w.task_id);
    if (!is_going_on(&w, y))
        return why_err(why, ERR_NOT_FOUND,
                       "turn %lld, attempt %lld of the task is going on; this "
                       "is of another",
                       (long long)y->id.turn, (long long)y->id.attempt);
    delivery_chunk(y, w.text);
    return OK;
}

/* Whether w may be a result of this line's agent after all. Of a task that is
 * on its way to another agent no more is said than of one that is not there:
 * both are looked for, and answered then. */
static bool is_plausible(const struct line *l, const struct wire_word *w)
{
    const struct deliver *d = l->deliver;
    const struct errand *e = map_get(&d->errands, w->task_id);

    if (PLANTED("deliver.tells_of_others") && e && e->delivery &&
        e->delivery->line != l)
        return false;
    return d->opts.on_stray && id_is_valid(w->task_id, "task");
}

static enum err heard_result(struct line *l, const struct wire_message *m,
                             uint64_t receipt, struct why *why)
{
    struct deliver *d = l->deliver;
    struct delivery *y;
    struct wire_word w;
    enum err e;

    arena_reset(&d->lines->scratch);
    e = wire_result_read(&d->lines->scratch, m->params, &w, why);
    if (e == ERR_LIMIT)
        heard_too_much(l, m, false);
    if (e)
        return e;
    y = delivery_on(l, w.task_id);
    if (y && is_of(&w, y)) {
        delivery_result(y, &w.result, w.has_text, receipt);
        return OK;
    }
    if (!is_plausible(l, &w))
        return not_here(why, w.task_id);
    d->opts.on_stray(d->opts.ctx, (struct str){l->agent, l->n_agent}, &w,
                     receipt);
    return OK;
}

enum err deliver_heard(struct deliver *d, uint64_t line,
                       const struct wire_message *m, uint64_t receipt,
                       struct why *why)
{
    struct line *l = line_by_id(d, line);

    if (!l)
        return why_err(why, ERR_NOT_FOUND,
                       "this connection is not an agent's (any more)");
    if (m->kind == WIRE_RESULT || m->kind == WIRE_ERROR)
        return heard_call_answer(l, m, why);
    if (str_eq(m->method, STR("task.chunk")))
        return heard_chunk(l, m, why);
    if (str_eq(m->method, STR("task.result")))
        return heard_result(l, m, receipt, why);
    return ERR_METHOD;
}
