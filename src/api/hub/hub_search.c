/* agent.search: as POST /api/agents/search, with the visibility of the peer. */
#include <stdlib.h>

#include "api/hub/internal.h"
#include "api/share.h"

static void on_hub_search(void *ctx, uint64_t id, const struct search_result *r)
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

static void hub_search_start(struct hub_call *c,
                             const struct speak_search_call *s)
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
    asked = share_search(&a->search.call, &eyes);
    e = registry_search(c->hub->opts.registry, &asked, on_hub_search, a, &id,
                        &why);
    if (e)
        hub_ask_refuse(a, e, str_of(why.text), STR(""));
    else if (id) /* otherwise it was answered at once */
        a->search.id = id;
}

void method_search(struct hub_call *c)
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
        hub_search_start(c, &s);
}
