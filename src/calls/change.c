/* What the registry is asked to change, written down and told. What a change
 * means and who may make it is decided in registry/. */
#include "calls/internal.h"

#include <stdlib.h>

#include "base/fault.h"

struct eyes call_eyes(const struct call *c)
{
    return eyes_of(&c->caller, c->now_ms);
}

struct open *change_begin(struct call *c)
{
    struct open *o = open_new(c);

    if (!o)
        return NULL;
    o->registering =
        FAULT("calls.register") ? NULL : malloc(sizeof(*o->registering));
    if (!o->registering) {
        open_refuse(o, ERR_NOMEM, STR(""), STR(""));
        return NULL;
    }
    registry_change_init(o->registering);
    return o;
}

static bool settle(struct open *o, struct why *why, enum err *e)
{
    *e = registry_settle(o->calls->registry, o->registering, why);
    return *e == OK;
}

/* Memory follows the disk whoever is still there to hear of it. */
static void on_written(struct tx *tx, void *ctx)
{
    struct open *o = ctx;
    struct why why = {""};
    enum err e;
    bool is_done = settle(o, &why, &e);

    (void)tx;
    if (!open_back(o))
        return;
    if (is_done)
        o->then(o);
    else
        open_refuse(o, e, str_of(why.text), STR(""));
}

void change_submit(struct open *o, void (*then)(struct open *o))
{
    struct why why = {""};
    enum err e;

    o->then = then;
    if (!o->registering->is_same) {
        open_out(o);
        store_submit(o->calls->store, &o->registering->tx, on_written, o);
    } else if (settle(o, &why, &e)) {
        then(o);
    } else {
        open_refuse(o, e, str_of(why.text), STR(""));
    }
}

void change_answer_nothing(struct open *o)
{
    calls_answer(o->calls, o->id, 204, STR(""));
    open_end(o);
}

void calls_refuse_agent(struct calls *c, uint64_t id,
                        const struct caller *caller, struct str name)
{
    struct agents all = registry_agents(c->registry);
    struct eyes eyes = eyes_of(caller, loop_wall_ms(c->loop));
    struct near near = near_find(&all, &eyes, name);
    struct why why = {""};
    struct buf details;
    struct json_out out;
    enum err e;

    buf_init(&details, 4096);
    out = json_out(&details);
    speak_nearest(&out, &near);
    e = near_say(&near, name, &why);
    calls_refuse(c, id, e, str_of(why.text),
                 details.over ? STR("") : buf_str(&details));
    buf_fini(&details);
}
