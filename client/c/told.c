/* Results on their way: said until the hub has answered, and said otherwise
 * when it does not take them. */
#include <string.h>

#include "base/fault.h"
#include "base/utf8.h"
#include "client/c/internal.h"

void sbc_put_text(struct json_out *o, struct str text)
{
    struct buf valid;

    if (utf8_is_valid(text)) {
        json_put_str(o, text);
        return;
    }
    buf_init(&valid, 3 * text.n);
    while (text.n) {
        size_t n = utf8_one(text.p, text.p + text.n);

        buf_add_str(&valid, n ? str_sub(text, 0, n) : STR("\xef\xbf\xbd"));
        text = str_sub(text, n ? n : 1, text.n);
    }
    json_put_str(o, buf_str(&valid));
    o->out->over |= valid.over;
    buf_fini(&valid);
}

void sbc_put_which(struct json_out *o, const struct sbc_job *j)
{
    json_member_text(o, "task_id", str_of(j->task.id));
    json_member_int(o, "turn", j->task.turn);
    json_member_int(o, "attempt", j->task.attempt);
}

struct json_out sbc_result_open(struct sbc_job *j, struct str status)
{
    struct json_out o;

    buf_clear(&j->result);
    o = json_out(&j->result);
    json_open(&o, '{');
    sbc_put_which(&o, j);
    json_member_text(&o, "status", status);
    return o;
}

void sbc_put_error(struct json_out *o, const char *code, const char *words)
{
    if (code) {
        json_key(o, STR("error_code"));
        sbc_put_text(o, str_of(code));
    }
    json_key(o, STR("error"));
    sbc_put_text(o, str_of(words));
    json_close(o, '}');
}

/* A failure in place of a result that the hub rejects, or no one
 * would hear of the task's end. If it does not take that either, or there is no
 * memory, nothing is left to be said. */
static void replace(struct sbc_job *j, const char *code, const char *words)
{
    struct sbc *s = j->s;
    struct json_out o;

    if (j->is_replaced) {
        sbc_job_free(j);
        return;
    }
    j->is_replaced = true;
    s->kept_bytes -= j->result.n;
    o = sbc_result_open(j, STR("failed"));
    sbc_put_error(&o, code, words);
    s->kept_bytes += j->result.n;
    j->result_id = 0;
    j->say_at_ms = 0;
    j->n_unanswered = 0;
    if (j->result.over)
        sbc_job_free(j);
}

/* What cannot be read is not answered by its number. It is said again a few
 * times. */
static void look_for_answer(struct sbc_job *j, int64_t now_ms)
{
    if (!j->result_id ||
        (now_ms < j->answer_until_ms && !FAULT("sbc.no_answer")))
        return;
    j->result_id = 0;
    sbc_say_log(j->s, "the hub did not answer the result of %s", j->task.id);
    if (++j->n_unanswered >= SBC_UNANSWERED_MAX)
        replace(j, "agent_failed",
                "the answer was not taken: the hub did not answer");
}

static void look_for_answers(struct sbc *s, int64_t now_ms)
{
    struct list *told = &s->jobs[SBC_TOLD];

    for (struct list_node *n = list_first(told), *next; n; n = next) {
        next = list_next(told, n);
        look_for_answer(LIST_OF(n, struct sbc_job, node), now_ms);
    }
}

void sbc_tasks_say(struct sbc *s)
{
    int64_t now_ms = sbc_now_ms();
    struct list *told = &s->jobs[SBC_TOLD];

    look_for_answers(s, now_ms);
    for (struct list_node *n = list_first(told); n; n = list_next(told, n)) {
        struct sbc_job *j = LIST_OF(n, struct sbc_job, node);
        if (j->result_id || j->say_at_ms > now_ms)
            continue;
        if (s->link.pipe.out.n > SBC_OUT_MARK ||
            !sbc_say(s, s->next_id + 1, "task.result", buf_str(&j->result)))
            return;
        j->result_id = ++s->next_id;
        j->answer_until_ms = now_ms + SBC_CALL_MS;
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

static void on_refused(struct sbc_job *j)
{
    struct sbc *s = j->s;
    char words[SBC_WHY_BYTES + 64];
    bool is_large = strcmp(s->code, "too_large") == 0;

    sbc_say_log(s, "the hub did not take the result of %s: %s", j->task.id,
                s->why);
    snprintf(words, sizeof(words), "the answer was not taken: %s", s->why);
    replace(j, is_large ? "too_large" : "agent_failed", words);
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
            j->n_unanswered = 0;
            j->say_at_ms = sbc_now_ms() + SBC_SAY_AGAIN_MS;
            return true;
        }
        if (error)
            on_refused(j);
        else
            sbc_job_free(j);
        return true;
    }
    return true;
}

bool sbc_tasks_give_up_largest(struct sbc *s)
{
    struct list *told = &s->jobs[SBC_TOLD];
    struct sbc_job *largest = NULL;

    for (struct list_node *n = list_first(told); n; n = list_next(told, n)) {
        struct sbc_job *j = LIST_OF(n, struct sbc_job, node);
        if (j->result_id && (!largest || j->result.n > largest->result.n))
            largest = j;
    }
    if (!largest || largest->is_replaced)
        return false;
    replace(largest, "too_large", "the answer is larger than the hub takes");
    return true;
}

bool sbc_tasks_are_told(const struct sbc *s)
{
    return list_is_empty(&s->jobs[SBC_TOLD]);
}
