/* POST /api/tasks/ID/input: what somebody says to what an agent asked; and what
 * is asked, as members of a task and for streams. Whoever may see the task may
 * answer, as they may cancel it. */
#include "calls/internal.h"

#include <stdlib.h>

#include "base/fault.h"

enum { SAID_BYTES = 4 * INPUT_VALUE_MAX };

struct call_input {
    struct arena arena;
    struct speak_input said;
};

void input_word_free(struct call_input *i)
{
    if (!i)
        return;
    arena_fini(&i->arena);
    free(i);
}

void write_inputs(struct calls *c, struct json_out *out, struct str task_id)
{
    const struct input *list[TASK_INPUTS_MAX];
    size_t n = task_inputs(walk_tasks(c->walk), task_id, list);

    json_key(out, STR("inputs"));
    json_open(out, '[');
    for (size_t i = 0; i < n; i++)
        input_write(out, list[i]);
    json_close(out, ']');
}

/* Answering. */

static void answer(struct open *o, const struct input *in)
{
    struct json_out out = json_out(&o->calls->body);

    input_write(&out, in);
    buf_add_char(&o->calls->body, '\n');
    open_answer(o, 200);
}

static void on_task(struct open *o, enum err e, const struct task *t)
{
    const struct speak_input *said = &o->input->said;
    const struct input *in = NULL;
    struct why why = {""};

    if (e) {
        open_refuse(o, e, STR(""), STR(""));
        return;
    }
    e = walk_answer(o->calls->walk, str_of(t->id.text), said->input_id,
                    &said->answer, caller_name(&o->caller), &in, &why);
    if (e == ERR_NOT_FOUND && task_is_over(t->status))
        open_refuse(o, ERR_TASK_IS_OVER, STR(""), STR(""));
    else if (e)
        open_refuse(o, e, str_of(why.text), STR(""));
    else
        answer(o, in);
}

static struct call_input *read_said(struct call *c)
{
    struct call_input *i = FAULT("calls.input") ? NULL : calloc(1, sizeof(*i));
    struct why why = {""};
    enum err e = ERR_NOMEM;

    if (i) {
        arena_init(&i->arena, SAID_BYTES);
        e = speak_input(&i->arena, c->rq->body, &i->said, &why);
    }
    if (!e)
        return i;
    call_refuse(c, e, str_of(why.text));
    input_word_free(i);
    return NULL;
}

void call_tasks_input(struct call *c)
{
    struct call_input *i;
    struct open *o;
    struct id id;

    if (!call_task_id(c, &id) || !(i = read_said(c)))
        return;
    o = open_new(c);
    if (!o) {
        input_word_free(i);
        return;
    }
    o->task_id = id;
    o->input = i;
    look_task(o, on_task);
}
