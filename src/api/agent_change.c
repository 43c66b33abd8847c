/* Changes of the registry: submitted and answered. registry/ decides what a
 * change means and who may make it. */
#include "api/internal.h"

#include <stdlib.h>

#include "base/mem.h"

struct eyes call_eyes(const struct call *c)
{
    return eyes_of(&c->caller, c->now_ms);
}

struct open *change_begin(struct call *c)
{
    struct open *o = open_new(c);

    if (!o)
        return NULL;
    o->registering = mem_new(sizeof(*o->registering));
    registry_change_init(o->registering);
    return o;
}

static void change_answer(struct open *o, enum err e, const struct why *why)
{
    if (e)
        open_refuse(o, e, str_of(why->text), STR(""));
    else
        o->then(o);
}

/* Memory follows the disk even if the client has gone. */
static void on_change_written(struct tx *tx, void *ctx)
{
    struct open *o = ctx;
    struct why why = {""};
    enum err e = registry_settle(o->api->registry, o->registering, &why);

    (void)tx;
    if (open_back(o))
        change_answer(o, e, &why);
}

void change_submit(struct open *o, void (*then)(struct open *o))
{
    struct why why = {""};
    enum err e;

    o->then = then;
    if (!o->registering->is_same) {
        open_out(o);
        store_submit(o->api->store, &o->registering->tx, on_change_written, o);
    } else {
        e = registry_settle(o->api->registry, o->registering, &why);
        change_answer(o, e, &why);
    }
}

void api_refuse_agent(struct api *c, uint64_t id, const struct caller *caller,
                      struct str name)
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
    api_refuse(c, id, e, str_of(why.text),
               details.over ? STR("") : buf_str(&details));
    buf_fini(&details);
}
