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

void sbc_job_free(struct sbc_job *j)
{
    list_remove(&j->node);
    j->s->n_jobs--;
    j->s->kept_bytes -= j->result.n;
    buf_fini(&j->said);
    buf_fini(&j->result);
    free(j->strings);
    free(j);
}

/* One that was cancelled is over: a task that comes under its name is run
 * again. */
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
                               struct str metadata, struct str envelope)
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
        malloc(id.n + text.n + metadata.n + envelope.n + 6 +
               json_str_or(skill, STR("")).n + json_str_or(talk, STR("")).n);
    if (!at) {
        free(j);
        return NULL;
    }
    j->s = s;
    j->task.id = put(&at, id);
    j->task.text = put(&at, text);
    j->task.text_bytes = text.n;
    j->task.metadata = put(&at, metadata.n ? metadata : STR("{}"));
    j->task.envelope = envelope.n ? put(&at, envelope) : NULL;
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

static void put_object(struct buf *out, const struct json *v)
{
    struct json_out o = json_out(out);

    if (v && v->type == JSON_OBJ)
        json_put(&o, v);
}

static bool take_new(struct sbc *s, const struct json *params)
{
    struct buf metadata, envelope;
    struct sbc_job *j = NULL;

    buf_init(&metadata, METADATA_MAX);
    buf_init(&envelope, SBC_MESSAGE_MAX);
    put_object(&metadata, json_get(params, STR("metadata")));
    put_object(&envelope, json_get(params, STR("envelope")));
    if (!metadata.over && !envelope.over)
        j = job_new(s, params, buf_str(&metadata), buf_str(&envelope));
    buf_fini(&metadata);
    buf_fini(&envelope);
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
        sbc_job_free(j);
}

/* Running. */

/* The handler has returned without a word, or with one that was none. Without
 * memory for one it is as if it had died: the task is delivered again on the
 * next connection. */
static void end_for(struct sbc *s, struct sbc_job *j)
{
    enum sbc_err e = j->refused ? sbc_fail(&j->task, NULL, j->refused)
                                : sbc_done(&j->task, NULL, NULL);

    if (e != SBC_NOMEM)
        return;
    sbc_job_free(j);
    sbc_link_lose(s, "no memory");
}

static void run_one(struct sbc *s, struct sbc_job *j)
{
    place(j, SBC_HELD);
    j->is_running = s->is_in_handler = true;
    s->admin_config = j;
    s->on_task(s->task_ctx, &j->task);
    j->is_running = s->is_in_handler = false;
    s->admin_config = NULL;
    if (!j->is_ended && !j->is_kept)
        end_for(s, j);
    else if (j->is_ended && j->is_cancelled)
        sbc_job_free(j);
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

/* Without the beginning of a letter at its end, whose rest may come. */
static struct str whole_letters(struct str text)
{
    size_t n = text.n;

    for (size_t i = 1; i < 4 && i <= n; i++) {
        unsigned char c = (unsigned char)text.p[n - i];

        if (c >= 0xc0)
            return i < (c < 0xe0   ? 2U
                        : c < 0xf0 ? 3U
                                   : 4U)
                       ? str_sub(text, 0, n - i)
                       : text;
        if (c < 0x80)
            break;
    }
    return text;
}

static bool say_chunk(struct sbc_job *j, struct str text)
{
    struct buf params;
    struct json_out o;
    bool ok;

    buf_init(&params, SBC_MESSAGE_MAX);
    o = json_out(&params);
    json_open(&o, '{');
    sbc_put_which(&o, j);
    json_key(&o, STR("text"));
    sbc_put_text(&o, text);
    json_close(&o, '}');
    ok = !params.over && sbc_say(j->s, 0, "task.chunk", buf_str(&params));
    buf_fini(&params);
    return ok;
}

/* What was not said yet, as far as it can be. */
static void say_rest(struct sbc_job *j)
{
    struct str rest =
        whole_letters(str_sub(buf_str(&j->said), j->said_at, j->said.n));

    if (!sbc_is_ready(j->s) || (rest.n && !say_chunk(j, rest)))
        j->has_gap = true;
    j->said_at += rest.n;
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
        return sbc_err_of(s, SBC_CANCELLED,
                          "its result is not needed any more");
    if (e == SBC_OK)
        say_rest(j);
    sbc_link_flush(s);
    return e;
}

enum sbc_err sbc_chunk(struct sbc_task *t, const char *text)
{
    return sbc_chunk_bytes(t, text, text ? strlen(text) : 0);
}

/* The end. */

static enum sbc_err refuse_end(struct sbc_job *j, enum sbc_err e,
                               const char *words)
{
    j->refused = words;
    return sbc_err_of(j->s, e, "%s", words);
}

/* What every end needs before it: whether it is one at all. */
static enum sbc_err may_end(struct sbc_job *j, struct str text,
                            const char *metadata)
{
    struct sbc *s = j->s;
    struct str m = str_of(metadata);

    if (j->is_ended || j->place == SBC_TOLD)
        return sbc_err_of(s, SBC_USAGE, "the task was ended before");
    if (text.n > SBC_TEXT_MAX)
        return refuse_end(j, SBC_LIMIT, "an answer has up to 1048576 bytes");
    if (metadata &&
        (m.p[strspn(m.p, " \t\r\n")] != '{' || json_check(m, NULL) != OK))
        return refuse_end(j, SBC_USAGE, "metadata is a JSON object");
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
        sbc_job_free(j);
    else
        place(j, SBC_TOLD);
    while (e == SBC_OK && s->kept_bytes > SBC_KEPT_MAX)
        e = sbc_pump(s, -1);
    return e == SBC_OK ? sbc_pump(s, 0) : e;
}

enum sbc_err sbc_done(struct sbc_task *t, const char *text,
                      const char *metadata)
{
    struct sbc_job *j = job_of(t);
    enum sbc_err e = may_end(j, str_of(text), metadata);
    struct json_out o;

    if (e)
        return e;
    o = sbc_result_open(j, STR("completed"));
    if (text || j->has_gap || j->said_at < j->said.n || j->said.n == 0) {
        json_key(&o, STR("text"));
        sbc_put_text(&o, text ? str_of(text) : buf_str(&j->said));
    }
    if (metadata)
        json_member_raw(&o, "metadata", str_of(metadata));
    json_close(&o, '}');
    return end(j);
}

enum sbc_err sbc_fail(struct sbc_task *t, const char *code, const char *words)
{
    struct sbc_job *j = job_of(t);
    enum sbc_err e = may_end(j, str_of(words), NULL);
    struct json_out o;

    if (e)
        return e;
    o = sbc_result_open(j, STR("failed"));
    sbc_put_error(&o, code, words);
    return end(j);
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

/* Their results will not be read any more. */
void sbc_tasks_cancel_all(struct sbc *s)
{
    struct list_node *n;

    while ((n = list_first(&s->jobs[SBC_WAITS])) ||
           (n = list_first(&s->jobs[SBC_TOLD])))
        sbc_job_free(LIST_OF(n, struct sbc_job, node));
    for (n = list_first(&s->jobs[SBC_HELD]); n;
         n = list_next(&s->jobs[SBC_HELD], n))
        LIST_OF(n, struct sbc_job, node)->is_cancelled = true;
}

void sbc_tasks_fini(struct sbc *s)
{
    struct list_node *n;

    for (int i = 0; i < SBC_N_PLACES; i++)
        while ((n = list_first(&s->jobs[i])))
            sbc_job_free(LIST_OF(n, struct sbc_job, node));
}
