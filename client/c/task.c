/* Tasks that came, and what is said of them. A task is in one of three lists:
 * it waits for the handler, it is held, or its result waits for the hub's
 * answer. It is known by its id and its turn; delivered again it stays where
 * it is, and only its attempt changes.
 *
 * Chunks are kept until the end. As a rule the hub has them all and the result
 * need not repeat them; but what was said while the connection was lost, or to
 * an attempt before this one, it does not have, and then the result says it
 * all. */
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "client/c/internal.h"

enum { RESULT_ROOM = 1024, METADATA_MAX = 1024 * 1024 };

static struct sbc_job *job_of(struct sbc_task *t)
{
    return (struct sbc_job *)(void *)t; /* its first member */
}

static void place(struct sbc_job *j, enum sbc_place to)
{
    list_remove(&j->node);
    j->place = to;
    list_append(&j->s->jobs[to], &j->node);
}

static void job_free(struct sbc_job *j)
{
    list_remove(&j->node);
    j->s->n_jobs--;
    j->s->kept_bytes -= j->result.n;
    buf_fini(&j->said);
    buf_fini(&j->result);
    free(j->strings);
    free(j);
}

/* One that was cancelled is over: what comes under its name is run anew. */
static struct sbc_job *job_find(struct sbc *s, struct str id, int64_t turn)
{
    for (int i = 0; i < SBC_N_PLACES; i++)
        for (struct list_node *n = list_first(&s->jobs[i]); n;
             n = list_next(&s->jobs[i], n)) {
            struct sbc_job *j = LIST_OF(n, struct sbc_job, node);
            if (!j->is_cancelled && (turn == 0 || j->task.turn == turn) &&
                str_eq(str_of(j->task.id), id))
                return j;
        }
    return NULL;
}

/* Coming. */

static const char *put(char **at, struct str s)
{
    char *p = *at;

    if (s.n)
        memcpy(p, s.p, s.n);
    p[s.n] = '\0';
    *at += s.n + 1;
    return p;
}

static const char *put_or_null(char **at, const struct json *v)
{
    return v && v->type == JSON_STR ? put(at, v->s) : NULL;
}

static struct sbc_job *job_new(struct sbc *s, const struct json *params,
                               struct str metadata)
{
    struct sbc_job *j = FAULT("sbc.alloc") ? NULL : calloc(1, sizeof(*j));
    struct str id = json_str_or(json_get(params, STR("task_id")), STR(""));
    struct str text = json_str_or(json_get(params, STR("message")), STR(""));
    const struct json *skill = json_get(params, STR("skill_id"));
    const struct json *talk = json_get(params, STR("session_id"));
    char *at;

    if (!j)
        return NULL;
    at = j->strings =
        malloc(id.n + text.n + metadata.n + 5 + json_str_or(skill, STR("")).n +
               json_str_or(talk, STR("")).n);
    if (!at) {
        free(j);
        return NULL;
    }
    j->s = s;
    j->task.id = put(&at, id);
    j->task.text = put(&at, text);
    j->task.text_bytes = text.n;
    j->task.metadata = put(&at, metadata.n ? metadata : STR("{}"));
    j->task.skill = put_or_null(&at, skill);
    j->task.conversation = put_or_null(&at, talk);
    j->task.turn = json_int_or(json_get(params, STR("turn")), 1);
    j->task.attempt = json_int_or(json_get(params, STR("attempt")), 1);
    j->task.deadline_ms = json_int_or(json_get(params, STR("deadline_ms")), 0);
    buf_init(&j->said, SBC_TEXT_MAX);
    buf_init(&j->result, SBC_MESSAGE_MAX / 2);
    s->n_jobs++;
    place(j, SBC_WAITS);
    return j;
}

static bool take_new(struct sbc *s, const struct json *params)
{
    const struct json *v = json_get(params, STR("metadata"));
    struct buf metadata;
    struct sbc_job *j = NULL;

    buf_init(&metadata, METADATA_MAX);
    if (v && v->type == JSON_OBJ) {
        struct json_out o = json_out(&metadata);
        json_put(&o, v);
    }
    if (!metadata.over)
        j = job_new(s, params, buf_str(&metadata));
    buf_fini(&metadata);
    return j != NULL;
}

/* It is offered again after a while. */
static const struct str busy =
    STR("{\"code\":-32000,\"message\":\"this agent has as many tasks as it "
        "takes\",\"data\":{\"code\":\"agent_busy\",\"retry_after_ms\":1000}}");

bool sbc_task_came(struct sbc *s, struct str id, const struct json *params)
{
    struct str task_id = json_str_or(json_get(params, STR("task_id")), STR(""));
    int64_t turn = json_int_or(json_get(params, STR("turn")), 1);
    struct sbc_job *j = job_find(s, task_id, turn);

    if (task_id.n == 0)
        return false;
    if (j) {
        j->task.attempt =
            json_int_or(json_get(params, STR("attempt")), j->task.attempt);
        j->has_gap |= j->said.n > 0;
        j->result_id = 0;
        j->say_at_ms = 0;
    } else if (s->n_jobs >= SBC_TASKS_MAX) {
        return id.n == 0 || sbc_refuse(s, id, busy);
    } else if (!take_new(s, params)) {
        return false;
    }
    return id.n == 0 || sbc_answer(s, id, STR("{\"status\":\"working\"}"));
}

void sbc_task_cancel(struct sbc *s, const struct json *params)
{
    struct str id = json_str_or(json_get(params, STR("task_id")), STR(""));
    struct sbc_job *j =
        job_find(s, id, json_int_or(json_get(params, STR("turn")), 0));

    if (!j)
        return;
    j->is_cancelled = true;
    if (j->place != SBC_HELD)
        job_free(j);
}

/* Running. */

/* The handler has returned without a word. Without memory for one it is as if
 * it had died: the task is delivered again on the next connection. */
static void end_for(struct sbc *s, struct sbc_job *j)
{
    if (sbc_done(&j->task, NULL, NULL) != SBC_NOMEM)
        return;
    job_free(j);
    sbc_link_lose(s, "no memory");
}

static void run_one(struct sbc *s, struct sbc_job *j)
{
    place(j, SBC_HELD);
    j->is_running = s->is_in_handler = true;
    s->on_task(s->task_ctx, &j->task);
    j->is_running = s->is_in_handler = false;
    if (!j->is_ended && !j->is_kept)
        end_for(s, j);
    else if (j->is_ended && j->is_cancelled)
        job_free(j);
    else if (j->is_ended)
        place(j, SBC_TOLD);
}

/* Those that are there now; not more than can be kept when they are done. */
void sbc_tasks_run(struct sbc *s)
{
    struct list_node *n;

    while (s->kept_bytes < SBC_KEPT_MAX && !atomic_load(&s->is_stopped) &&
           (n = list_first(&s->jobs[SBC_WAITS])))
        run_one(s, LIST_OF(n, struct sbc_job, node));
}

void sbc_keep(struct sbc_task *t)
{
    job_of(t)->is_kept = true;
}

int sbc_is_cancelled(struct sbc_task *t)
{
    struct sbc_job *j = job_of(t);

    (void)sbc_pump(j->s, 0);
    return j->is_cancelled;
}

/* Which delivery is spoken of. */
static void put_which(struct json_out *o, const struct sbc_job *j)
{
    json_key(o, STR("task_id"));
    json_put_str(o, str_of(j->task.id));
    json_key(o, STR("turn"));
    json_put_int(o, j->task.turn);
    json_key(o, STR("attempt"));
    json_put_int(o, j->task.attempt);
}

static bool say_chunk(struct sbc_job *j, struct str text)
{
    struct buf params;
    struct json_out o;
    bool ok;

    buf_init(&params, SBC_MESSAGE_MAX);
    o = json_out(&params);
    json_open(&o, '{');
    put_which(&o, j);
    json_key(&o, STR("text"));
    json_put_str(&o, text);
    json_close(&o, '}');
    ok = !params.over && sbc_say(j->s, 0, "task.chunk", buf_str(&params));
    buf_fini(&params);
    return ok;
}

enum sbc_err sbc_chunk_bytes(struct sbc_task *t, const char *p, size_t n)
{
    struct sbc_job *j = job_of(t);
    struct sbc *s = j->s;
    enum sbc_err e = SBC_OK;

    if (j->is_ended || (n && !p))
        return sbc_err_of(s, SBC_USAGE, "a chunk behind the end, or none");
    if (n == 0)
        return SBC_OK;
    buf_add(&j->said, p, n);
    if (j->said.over) {
        j->said.over = false;
        return sbc_err_of(s, SBC_LIMIT, "an answer has up to %d bytes",
                          SBC_TEXT_MAX);
    }
    do
        e = sbc_pump(s, s->link.pipe.out.n > SBC_OUT_MARK ? -1 : 0);
    while (e == SBC_OK && s->link.pipe.out.n > SBC_OUT_MARK &&
           !j->is_cancelled);
    if (j->is_cancelled)
        return sbc_err_of(s, SBC_CANCELLED, "nobody waits for it any more");
    if (e == SBC_OK && (!sbc_is_ready(s) || !say_chunk(j, (struct str){p, n})))
        j->has_gap = true;
    sbc_link_flush(s);
    return e;
}

enum sbc_err sbc_chunk(struct sbc_task *t, const char *text)
{
    return sbc_chunk_bytes(t, text, text ? strlen(text) : 0);
}

/* The end. */

/* What every end needs before it: whether it is one at all. */
static enum sbc_err may_end(struct sbc_job *j, struct str text,
                            const char *metadata)
{
    struct sbc *s = j->s;
    struct str m = str_of(metadata);

    if (j->is_ended || j->place == SBC_TOLD)
        return sbc_err_of(s, SBC_USAGE, "the task was ended before");
    if (text.n > SBC_TEXT_MAX)
        return sbc_err_of(s, SBC_LIMIT, "an answer has up to %d bytes",
                          SBC_TEXT_MAX);
    if (m.n &&
        (m.p[strspn(m.p, " \t\r\n")] != '{' || json_check(m, NULL) != OK))
        return sbc_err_of(s, SBC_USAGE, "metadata are a JSON object");
    return SBC_OK;
}

/* Keep j->result until it is answered. */
static enum sbc_err end(struct sbc_job *j)
{
    struct sbc *s = j->s;
    enum sbc_err e = SBC_OK;

    if (j->result.over) {
        j->result.over = false;
        buf_clear(&j->result);
        return sbc_err_of(s, SBC_NOMEM, "no memory");
    }
    s->kept_bytes += j->result.n;
    if (j->is_running)
        j->is_ended = true;
    else if (j->is_cancelled)
        job_free(j);
    else
        place(j, SBC_TOLD);
    while (e == SBC_OK && s->kept_bytes > SBC_KEPT_MAX)
        e = sbc_pump(s, -1);
    return e == SBC_OK ? sbc_pump(s, 0) : e;
}

static struct json_out result_open(struct sbc_job *j, struct str status)
{
    struct json_out o;

    buf_clear(&j->result);
    o = json_out(&j->result);
    json_open(&o, '{');
    put_which(&o, j);
    json_key(&o, STR("status"));
    json_put_str(&o, status);
    return o;
}

enum sbc_err sbc_done(struct sbc_task *t, const char *text,
                      const char *metadata)
{
    struct sbc_job *j = job_of(t);
    enum sbc_err e = may_end(j, str_of(text), metadata);
    struct json_out o;

    if (e)
        return e;
    o = result_open(j, STR("completed"));
    if (text || j->has_gap || j->said.n == 0) {
        json_key(&o, STR("text"));
        json_put_str(&o, text ? str_of(text) : buf_str(&j->said));
    }
    if (metadata) {
        json_key(&o, STR("metadata"));
        json_put_raw(&o, str_of(metadata));
    }
    json_close(&o, '}');
    return end(j);
}

static void put_error(struct json_out *o, const char *code, const char *words)
{
    if (code) {
        json_key(o, STR("error_code"));
        json_put_str(o, str_of(code));
    }
    json_key(o, STR("error"));
    json_put_str(o, str_of(words));
    json_close(o, '}');
}

enum sbc_err sbc_fail(struct sbc_task *t, const char *code, const char *words)
{
    struct sbc_job *j = job_of(t);
    enum sbc_err e = may_end(j, str_of(words), NULL);
    struct json_out o;

    if (e)
        return e;
    o = result_open(j, STR("failed"));
    put_error(&o, code, words);
    return end(j);
}

/* Results on their way. */

void sbc_tasks_say(struct sbc *s)
{
    int64_t now_ms = sbc_now_ms();
    struct list *told = &s->jobs[SBC_TOLD];

    for (struct list_node *n = list_first(told); n; n = list_next(told, n)) {
        struct sbc_job *j = LIST_OF(n, struct sbc_job, node);
        if (j->result_id || j->say_at_ms > now_ms)
            continue;
        if (s->link.pipe.out.n > SBC_OUT_MARK ||
            !sbc_say(s, s->next_id + 1, "task.result", buf_str(&j->result)))
            return;
        j->result_id = ++s->next_id;
    }
}

bool sbc_tasks_say_again(const struct sbc *s)
{
    const struct list *told = &s->jobs[SBC_TOLD];

    for (struct list_node *n = list_first(told); n; n = list_next(told, n))
        if (!LIST_OF(n, struct sbc_job, node)->result_id)
            return true;
    return false;
}

bool sbc_task_answered(struct sbc *s, int64_t id, const struct json *error)
{
    struct list *told = &s->jobs[SBC_TOLD];

    for (struct list_node *n = list_first(told); n; n = list_next(told, n)) {
        struct sbc_job *j = LIST_OF(n, struct sbc_job, node);
        if (j->result_id != id)
            continue;
        if (error)
            (void)sbc_take_error(s, error);
        if (error && sbc_is_passing(s->code)) {
            j->result_id = 0;
            j->say_at_ms = sbc_now_ms() + SBC_SAY_AGAIN_MS;
            return true;
        }
        if (error)
            sbc_say_log(s, "the hub did not take the result of %s: %s",
                        j->task.id, s->why);
        job_free(j);
        return true;
    }
    return true;
}

void sbc_tasks_lost(struct sbc *s)
{
    for (int i = 0; i < SBC_N_PLACES; i++)
        for (struct list_node *n = list_first(&s->jobs[i]); n;
             n = list_next(&s->jobs[i], n)) {
            struct sbc_job *j = LIST_OF(n, struct sbc_job, node);
            j->has_gap |= j->said.n > 0;
            j->result_id = 0;
            j->say_at_ms = 0;
        }
}

/* Nobody will hear of them any more. */
void sbc_tasks_cancel_all(struct sbc *s)
{
    struct list_node *n;

    while ((n = list_first(&s->jobs[SBC_WAITS])) ||
           (n = list_first(&s->jobs[SBC_TOLD])))
        job_free(LIST_OF(n, struct sbc_job, node));
    for (n = list_first(&s->jobs[SBC_HELD]); n;
         n = list_next(&s->jobs[SBC_HELD], n))
        LIST_OF(n, struct sbc_job, node)->is_cancelled = true;
}

bool sbc_tasks_give_up_largest(struct sbc *s)
{
    struct list *told = &s->jobs[SBC_TOLD];
    struct sbc_job *largest = NULL;
    struct json_out o;

    for (struct list_node *n = list_first(told); n; n = list_next(told, n)) {
        struct sbc_job *j = LIST_OF(n, struct sbc_job, node);
        if (j->result_id && (!largest || j->result.n > largest->result.n))
            largest = j;
    }
    if (!largest)
        return false;
    s->kept_bytes -= largest->result.n;
    o = result_open(largest, STR("failed"));
    put_error(&o, "too_large", "the answer is larger than the hub takes");
    s->kept_bytes += largest->result.n;
    return true;
}

bool sbc_tasks_are_told(const struct sbc *s)
{
    return list_is_empty(&s->jobs[SBC_TOLD]);
}

void sbc_tasks_fini(struct sbc *s)
{
    struct list_node *n;

    for (int i = 0; i < SBC_N_PLACES; i++)
        while ((n = list_first(&s->jobs[i])))
            job_free(LIST_OF(n, struct sbc_job, node));
}
