/* Reading and reloading the configuration, for admins. The server knows it;
 * this file checks the request and answers. */
#include "api/internal.h"
#include "base/json.h"

enum { DETAILS_BYTES = 256 * 1024 };

void call_config_get(struct call *c)
{
    const struct api_config *config = &c->api->config;
    struct json_out o = json_out(c->body);

    if (!config->write) {
        call_refuse(c, ERR_NOT_FOUND, STR(""));
        return;
    }
    json_open(&o, '{');
    config->write(config->ctx, &o);
    json_close(&o, '}');
    call_answer_json(c, 200);
}

/* A reload calls api_set too: nothing from api->settings is used after it. */
void call_config_reload(struct call *c)
{
    const struct api_config *config = &c->api->config;
    struct why why = {""};
    struct json_out o;
    struct buf said;
    enum err e = speak_nothing(c->rq->body, &why);

    if (e || !config->reload) {
        call_refuse(c, e ? e : ERR_NOT_FOUND, str_of(why.text));
        return;
    }
    log_info(c->api->log, "config.reload_asked",
             LOG_S("by", caller_name(&c->caller)));
    buf_init(&said, DETAILS_BYTES);
    o = json_out(&said);
    json_open(&o, '{');
    e = config->reload(config->ctx, &o, &why);
    json_close(&o, '}');
    if (said.over)
        call_refuse(c, ERR_NOMEM, STR(""));
    else if (e)
        api_refuse(c->api, c->id, e, str_of(why.text), buf_str(&said));
    else {
        buf_add_str(c->body, buf_str(&said));
        call_answer_json(c, 200);
    }
    buf_fini(&said);
}
