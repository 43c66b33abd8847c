/* agent.search: as POST /api/agents/search, with the visibility of the peer. */
#include "api/hub/internal.h"

void method_search(struct hub_call *c)
{
    struct eyes eyes = peer_eyes(c->peer, loop_wall_ms(c->hub->api->loop));
    struct buf *body = &c->hub->body;
    struct json_out out = json_out(body);
    struct speak_search_call s;
    struct why why = {""};
    struct request *o;
    enum err e;

    hub_clear(body);
    hub_reset(&c->hub->scratch);
    json_put(&out, c->params);
    e = body->over
            ? ERR_NOMEM
            : speak_search_post(&c->hub->scratch, buf_str(body), &s, &why);
    if (e) {
        reply_refuse(&c->reply, e, str_of(why.text), STR(""));
        return;
    }
    o = hub_request(c, &search_state);
    if (o)
        search_begin(o, &s, &eyes);
}
