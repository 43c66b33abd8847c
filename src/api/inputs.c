/* POST /api/tasks/ID/input: answers a question of an agent. Also writes the
 * open questions of a task. Users who may see the task may answer, as they may
 * cancel it. */
#include "api/internal.h"

enum { SAID_BYTES = 4 * INPUT_VALUE_MAX };

struct call_input {
    struct arena arena;
    struct speak_input said;
};

static void call_input_fini(void *own)
{
    struct call_input *i = own;

    arena_fini(&i->arena);
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

static void on_input_task(struct request *o, enum err e, const struct task *t)
{
    const struct call_input *i = o->own;
    const struct speak_input *said = &i->said;
    struct json_out out = request_json(o);
    const struct input *in = NULL;
    struct why why = {""};

    if (e) {
        request_fail(o, e);
        return;
    }
    e = walk_answer(o->api->walk, str_of(t->id.text), said->input_id,
                    &said->answer, caller_name(&o->caller), &in, &why);
    if (e == ERR_NOT_FOUND && task_is_over(t->status))
        request_fail(o, ERR_TASK_IS_OVER);
    else if (e)
        request_refuse(o, e, str_of(why.text), STR(""));
    else {
        input_write(&out, in);
        request_answer(o, 200);
    }
}

void call_tasks_input(struct call *c)
{
    static const struct request_state state = {
        .bytes = sizeof(struct call_input), .fini = call_input_fini};
    struct call_input i;
    struct why why = {""};
    struct request *o;
    struct id id;
    enum err e;

    if (!call_task_id(c, &id))
        return;
    arena_init(&i.arena, SAID_BYTES);
    e = speak_input(&i.arena, c->rq->body, &i.said, &why);
    if (e)
        call_refuse(c, e, str_of(why.text));
    o = e ? NULL : request_of_call(c, &state);
    if (!o) {
        arena_fini(&i.arena);
        return;
    }
    memcpy(o->own, &i, sizeof(i));
    o->task_id = id;
    look_task(o, on_input_task);
}
