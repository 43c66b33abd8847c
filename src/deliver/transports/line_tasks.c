/* Messages about tasks on a line.
 *
 * A message counts only if its task is being delivered over the same line, so
 * an agent cannot answer for another's task by knowing its id. A result may be
 * of any attempt; a chunk of an earlier attempt would end up inside this one's
 * answer and is rejected.
 *
 * A result for a task without a delivery here may be late, a repeat, or from an
 * agent that was away meanwhile. on_unmatched_result decides about it, because
 * the walk knows the task.
 *
 * After a callback neither line nor delivery is read: both may be gone. */
#include "deliver/transports/line.h"

static const struct str execute_prefix = STR("task_");

/* The delivery of that task on l, or NULL. The last one is cached, since a
 * stream has many messages about the same task. */
static struct delivery *line_delivery(struct line *l, struct str task_id)
{
    const struct deliver_job *e;

    if (l->last && l->last->deliver_job &&
        str_eq(str_of(l->last->id.task_id.text), task_id))
        return l->last;
    e = map_get(&l->deliver->deliver_jobs, task_id);
    if (!e || !e->delivery || e->delivery->line != l)
        return NULL;
    l->last = e->delivery;
    return l->last;
}

/* The answer to a task.execute. */

/* The delivery whose task.execute had that id. */
static struct delivery *line_delivery_of_call(struct line *l, struct str id)
{
    char id_text[WIRE_EXECUTE_ID_BYTES];
    struct str rest = id;
    struct delivery *y = line_delivery(l, str_cut(&rest, ':'));
    struct task t;

    if (!y)
        return NULL;
    t = (struct task){
        .id = y->id.task_id, .turn = y->id.turn, .attempt = y->id.attempt};
    return str_eq(id, wire_execute_id(&t, id_text)) ? y : NULL;
}

static void line_heard_error(struct delivery *y, const struct wire_message *m)
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

/* The agent has answered and considers the work done, so it need not be told.
 * Running out of memory is not its fault. */
static void line_heard_no_result(struct delivery *y, enum err e,
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

/* Usually {"status":"working"}, but the answer may already be the result. */
static enum err line_heard_answer(struct line *l, struct delivery *y,
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
    line_heard_no_result(y, e, &because);
    return why_err(why, e, "%s", because.text);
}

static enum err line_heard_call_answer(struct line *l,
                                       const struct wire_message *m,
                                       struct why *why)
{
    struct delivery *y;

    if (!str_starts(m->id.text, execute_prefix))
        return ERR_METHOD;
    y = line_delivery_of_call(l, m->id.text);
    if (!y)
        return why_err(why, ERR_NOT_FOUND,
                       "no running delivery was asked with that id");
    if (m->kind == WIRE_RESULT)
        return line_heard_answer(l, y, m, why);
    line_heard_error(y, m);
    return OK;
}

/* task.chunk and task.result. */

static enum err line_task_not_found(struct why *why, struct str task_id)
{
    return why_err(why, ERR_NOT_FOUND,
                   "the task \"%.*s\" is not one that you were given",
                   STR_ARG(str_head(task_id, 64)));
}

/* Whether the message is about the current turn. */
static bool word_is_of_turn(const struct wire_word *w, const struct delivery *y)
{
    return wire_turn(w) == y->id.turn;
}

static bool word_is_of_attempt(const struct wire_word *w,
                               const struct delivery *y)
{
    return word_is_of_turn(w, y) &&
           (!w->attempt || w->attempt == y->id.attempt);
}

/* A chunk or a result over the limit fails the task for good, because another
 * attempt would give the same. After a chunk the agent is told to stop. */
static void line_heard_too_much(struct line *l, const struct wire_message *m,
                                bool has_more)
{
    struct str id = json_str_or(json_get(m->params, STR("task_id")), STR(""));
    struct wire_word w = {
        .turn = json_int_or(json_get(m->params, STR("turn")), 0),
        .attempt = json_int_or(json_get(m->params, STR("attempt")), 0),
    };
    struct delivery *y = line_delivery(l, id);

    if (y && word_is_of_attempt(&w, y))
        delivery_failed(y, &(struct delivery_failure){
                               .code = str_of(err_row(ERR_LIMIT)->code),
                               .words = too_large_words,
                               .is_final = true,
                               .is_to_be_told = has_more});
}

static enum err line_heard_chunk(struct line *l, const struct wire_message *m,
                                 struct why *why)
{
    struct delivery *y;
    struct wire_word w;
    enum err e = wire_chunk_read(m->params, &w, why);

    if (e == ERR_LIMIT)
        line_heard_too_much(l, m, true);
    if (e)
        return e;
    y = line_delivery(l, w.task_id);
    if (!y)
        return line_task_not_found(why, w.task_id);
    if (!word_is_of_attempt(&w, y))
        return why_err(why, ERR_NOT_FOUND,
                       "turn %lld, attempt %lld of the task is going on; this "
                       "is of another",
                       (long long)y->id.turn, (long long)y->id.attempt);
    delivery_chunk(y, w.text);
    return OK;
}

/* Whether w may still be a result of this line's agent. A task of another agent
 * is treated like an unknown one, so that the answer reveals nothing. */
static bool word_is_plausible(const struct line *l, const struct wire_word *w)
{
    const struct deliver *d = l->deliver;
    const struct deliver_job *e = map_get(&d->deliver_jobs, w->task_id);

    if (PLANTED("deliver.tells_of_others") && e && e->delivery &&
        e->delivery->line != l)
        return false;
    return d->opts.on_unmatched_result && id_is_valid(w->task_id, "task");
}

static enum err line_heard_result(struct line *l, const struct wire_message *m,
                                  uint64_t receipt, struct why *why)
{
    struct deliver *d = l->deliver;
    struct delivery *y;
    struct wire_word w;
    enum err e;

    arena_reset(&d->lines->scratch);
    e = wire_result_read(&d->lines->scratch, m->params, &w, why);
    if (e == ERR_LIMIT)
        line_heard_too_much(l, m, false);
    if (e)
        return e;
    y = line_delivery(l, w.task_id);
    if (y && word_is_of_turn(&w, y)) {
        delivery_result(y, &w.result, w.has_text, receipt);
        return OK;
    }
    if (!word_is_plausible(l, &w))
        return line_task_not_found(why, w.task_id);
    d->opts.on_unmatched_result(d->opts.ctx, (struct str){l->agent, l->n_agent},
                                &w, receipt);
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
        return line_heard_call_answer(l, m, why);
    if (str_eq(m->method, STR("task.chunk")))
        return line_heard_chunk(l, m, why);
    if (str_eq(m->method, STR("task.result")))
        return line_heard_result(l, m, receipt, why);
    return ERR_METHOD;
}
