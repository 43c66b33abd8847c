/* The configuration that counts, and another one: for admins. The house knows
 * both; here is only who may ask and in which form it is said. */
#include "base/json.h"
#include "calls/internal.h"

enum { DETAILS_BYTES = 256 * 1024 };

void call_config_get(struct call *c)
{
    const struct calls_house *house = &c->calls->house;
    struct json_out o = json_out(c->body);

    if (!house->write) {
        call_refuse(c, ERR_NOT_FOUND, STR(""));
        return;
    }
    json_open(&o, '{');
    house->write(house->ctx, &o);
    json_close(&o, '}');
    buf_add_char(c->body, '\n');
    call_answer(c, 200, SPEAK_JSON);
}

static void answer_reload(struct call *c, enum err e, struct str words,
                          struct buf *said)
{
    if (said->over)
        call_refuse(c, ERR_NOMEM, STR(""));
    else if (e)
        calls_refuse(c->calls, c->id, e, words, buf_str(said));
    else {
        buf_add_str(c->body, buf_str(said));
        buf_add_char(c->body, '\n');
        call_answer(c, 200, SPEAK_JSON);
    }
}

/* A reload changes what this room is told too (calls_set): nothing that came
 * from there is looked at behind it. */
void call_config_reload(struct call *c)
{
    const struct calls_house *house = &c->calls->house;
    struct why why = {""};
    struct json_out o;
    struct buf said;
    enum err e = speak_nothing(c->rq->body, &why);

    if (e || !house->reload) {
        call_refuse(c, e ? e : ERR_NOT_FOUND, str_of(why.text));
        return;
    }
    log_info(c->calls->log, "config.reload_asked",
             LOG_S("by", caller_name(&c->caller)));
    buf_init(&said, DETAILS_BYTES);
    o = json_out(&said);
    json_open(&o, '{');
    e = house->reload(house->ctx, &o, &why);
    json_close(&o, '}');
    answer_reload(c, e, str_of(why.text), &said);
    buf_fini(&said);
}
