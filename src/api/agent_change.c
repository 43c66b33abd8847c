/* Changes of the registry: submitted and answered. registry/ decides what a
 * change means and who may make it. */
#include "api/internal.h"

struct eyes call_eyes(const struct call *c)
{
    return eyes_of(&c->caller, c->now_ms);
}

static void change_fini(void *own)
{
    registry_change_fini(own);
}

struct request *change_begin(struct call *c)
{
    static const struct request_state change = {
        .bytes = sizeof(struct registry_change), .fini = change_fini};
    struct request *o = request_of_call(c, &change);

    if (o)
        registry_change_init(o->own);
    return o;
}

static void change_answer(struct request *o, enum err e, const struct why *why)
{
    if (e)
        request_refuse(o, e, str_of(why->text), STR(""));
    else
        o->then(o);
}

/* Memory follows the disk even if the client has gone. */
static void on_change_written(struct tx *tx, void *ctx)
{
    struct request *o = ctx;
    struct why why = {""};
    enum err e = registry_settle(o->api->registry, o->own, &why);

    (void)tx;
    if (request_back(o))
        change_answer(o, e, &why);
}

void change_submit(struct request *o, void (*then)(struct request *o))
{
    struct registry_change *change = o->own;
    struct why why = {""};
    enum err e;

    o->then = then;
    if (!change->is_same) {
        request_out(o);
        store_submit(o->api->store, &change->tx, on_change_written, o);
    } else {
        e = registry_settle(o->api->registry, o->own, &why);
        change_answer(o, e, &why);
    }
}

void request_refuse_card(struct request *o, enum err e, struct str words,
                         const struct card_problems *p)
{
    struct buf details;
    struct json_out out;

    buf_init(&details, 256 * 1024);
    out = json_out(&details);
    if (p->n)
        speak_problems(&out, p);
    request_refuse(o, e, words, details.over ? STR("") : buf_str(&details));
    buf_fini(&details);
}

static enum err agent_word_missing(struct api *c, const struct caller *caller,
                                   struct str name, struct buf *details,
                                   struct why *why)
{
    struct agents all = registry_agents(c->registry);
    struct eyes eyes = eyes_of(caller, loop_wall_ms(c->loop));
    struct near near = near_find(&all, &eyes, name);
    struct json_out out;

    buf_init(details, 4096);
    out = json_out(details);
    speak_nearest(&out, &near);
    if (details->over)
        buf_clear(details);
    return near_say(&near, name, why);
}

void call_refuse_agent(struct call *c, struct str name)
{
    struct why why = {""};
    struct buf details;
    enum err e = agent_word_missing(c->api, &c->caller, name, &details, &why);

    api_refuse(c->api, c->id, e, str_of(why.text), buf_str(&details));
    buf_fini(&details);
}

void request_refuse_agent(struct request *o, struct str name)
{
    struct why why = {""};
    struct buf details;
    enum err e = agent_word_missing(o->api, &o->caller, name, &details, &why);

    request_refuse(o, e, str_of(why.text), buf_str(&details));
    buf_fini(&details);
}
