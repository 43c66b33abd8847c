/* POST /api/tasks/ID/input: answers a question of an agent. Also writes the
 * open questions of a task. Users who may see the task may answer, as they may
 * cancel it. */
#include "api/internal.h"

#include <stdlib.h>

#include "base/mem.h"

enum { SAID_BYTES = 4 * INPUT_VALUE_MAX };

struct call_input {
    struct arena arena;
    struct speak_input said;
};

void call_input_free(struct call_input *i)
{
    if (!i)
        return;
    arena_fini(&i->arena);
    free(i);
}

void write_inputs(struct api *c, struct json_out *out, struct str task_id)
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

static void on_input_task(struct open *o, enum err e, const struct task *t)
{
    const struct speak_input *said = &o->input->said;
    struct json_out out = json_out(&o->api->body);
    const struct input *in = NULL;
    struct why why = {""};

    if (e) {
        open_fail(o, e);
        return;
    }
    e = walk_answer(o->api->walk, str_of(t->id.text), said->input_id,
                    &said->answer, caller_name(&o->caller), &in, &why);
    if (e == ERR_NOT_FOUND && task_is_over(t->status))
        open_fail(o, ERR_TASK_IS_OVER);
    else if (e)
        open_refuse(o, e, str_of(why.text), STR(""));
    else {
        input_write(&out, in);
        open_answer(o, 200);
    }
}

static struct call_input *input_read_call(struct call *c)
{
    struct call_input *i = mem_new(sizeof(*i));
    struct why why = {""};
    enum err e;

    arena_init(&i->arena, SAID_BYTES);
    e = speak_input(&i->arena, c->rq->body, &i->said, &why);
    if (!e)
        return i;
    call_refuse(c, e, str_of(why.text));
    call_input_free(i);
    return NULL;
}

void call_tasks_input(struct call *c)
{
    struct call_input *i;
    struct open *o;
    struct id id;

    if (!call_task_id(c, &id) || !(i = input_read_call(c)))
        return;
    o = open_new(c);
    if (!o) {
        call_input_free(i);
        return;
    }
    o->task_id = id;
    o->input = i;
    look_task(o, on_input_task);
}
