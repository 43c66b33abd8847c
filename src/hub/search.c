/* agent.search: as POST /api/agents/search, through the peer's eyes. */
#include <stdlib.h>

#include "calls/share.h"
#include "hub/internal.h"

static void on_found(void *ctx, uint64_t id, const struct search_result *r)
{
    struct ask *a = ctx;
    struct json_out o;

    (void)id;
    a->search.id = 0;
    if (r->err) {
        hub_ask_refuse(a, r->err, STR(""), STR(""));
        return;
    }
    o = reply_open(&a->reply);
    share_hits(&o, a->hub->opts.registry, &a->search.call, r);
    reply_close(&a->reply, &o);
    hub_ask_end(a);
}

static void search(struct hub_call *c, const struct speak_search_call *s)
{
    struct eyes eyes = peer_eyes(c->peer, loop_wall_ms(c->hub->opts.loop));
    struct ask *a = hub_ask_new(c);
    struct why why = {""};
    struct search asked;
    uint64_t id = 0;
    enum err e;

    if (!a)
        return;
    a->search.text = share_search_keep(&a->search.call, s);
    if (!a->search.text) {
        hub_ask_refuse(a, ERR_NOMEM, STR(""), STR(""));
        return;
    }
    asked = share_search(&a->search.call, &eyes);
    e = registry_search(c->hub->opts.registry, &asked, on_found, a, &id, &why);
    if (e)
        hub_ask_refuse(a, e, str_of(why.text), STR(""));
    else if (id) /* else it has been answered */
        a->search.id = id;
}

void take_search(struct hub_call *c)
{
    struct buf *body = &c->hub->body;
    struct json_out o = json_out(body);
    struct speak_search_call s;
    struct why why = {""};
    enum err e;

    hub_clear(body);
    hub_reset(&c->hub->scratch);
    json_put(&o, c->params);
    e = body->over
            ? ERR_NOMEM
            : speak_search_post(&c->hub->scratch, buf_str(body), &s, &why);
    if (e)
        reply_refuse(&c->reply, e, str_of(why.text), STR(""));
    else
        search(c, &s);
}
