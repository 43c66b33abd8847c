/* GET /hub: handed over to the hub. */
#include "api/internal.h"

struct str call_offered_token(const struct http_request *rq)
{
    static const struct str head = STR("bearer.");

    for (size_t i = 0; i < rq->n_headers; i++) {
        struct str rest = rq->headers[i].value;

        if (!str_eq_nocase(rq->headers[i].name, STR("Sec-WebSocket-Protocol")))
            continue;
        while (rest.n) {
            struct str one = str_trim(str_cut(&rest, ','));

            if (str_starts(one, head))
                return str_sub(one, head.n, one.n);
        }
    }
    return (struct str){NULL, 0};
}

void call_hub(struct call *c)
{
    const struct api_hub *hub = &c->api->hub;
    struct why why = {""};
    enum err e;

    if (!hub->take) {
        call_refuse(c, ERR_NOT_IMPLEMENTED, STR("this server has no hub"));
        return;
    }
    e = hub->take(hub->ctx, c->id, c->rq, &c->caller, &why);
    if (e)
        call_refuse(c, e, str_of(why.text));
}
