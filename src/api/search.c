/* Searches for agents. registry/ performs them; the answer may take as long as
 * an outside model needs for the vector of the query. open_requests.c ends the
 * search if the client leaves or its token is revoked. */
#include "api/internal.h"
#include "api/share.h"

#include <stdlib.h>

#include "base/mem.h"

_Static_assert((int)SPEAK_QUERY_MAX == (int)SEARCH_TEXT_MAX &&
                   (int)SPEAK_HITS == (int)SEARCH_LIMIT &&
                   (int)SPEAK_HITS_MAX == (int)SEARCH_LIMIT_MAX,
               "what is promised to clients is what the registry takes");

/* The formula of the scores. */
static void fill_formula(const struct speak_search_call *asked,
                         struct registry_ranking k, enum index_mode mode,
                         struct speak_hits *said)
{
    said->fusion = asked->has_fusion ? asked->fusion : k.fusion;
    said->semantic_weight = mode == INDEX_TEXT       ? 0
                            : mode == INDEX_SEMANTIC ? 1
                                                     : k.semantic_weight;
    said->text_weight = mode == INDEX_TEXT       ? 1
                        : mode == INDEX_SEMANTIC ? 0
                                                 : k.text_weight;
}

void share_hits(struct json_out *out, struct registry *registry,
                const struct speak_search_call *s,
                const struct search_result *r)
{
    struct speak_hit list[SEARCH_LIMIT_MAX];
    struct speak_hits said = {.list = list,
                              .n = r->n,
                              .total = r->total,
                              .mode = r->mode,
                              .note = str_of(r->note.text),
                              .max_bytes = SHARE_HITS_BYTES,
                              .explains = s->explains,
                              .text = s->text};

    fill_formula(s, registry_ranking(registry), r->mode, &said);
    for (size_t i = 0; i < r->n; i++)
        list[i] = (struct speak_hit){
            .agent = r->hits[i].agent,
            .state = registry_state(registry, r->hits[i].agent),
            .score = (double)r->hits[i].score,
            .matches = r->hits[i].matches,
            .n_matches = r->hits[i].n_matches};
    speak_hits(out, &said);
}

static void on_search_done(void *ctx, uint64_t id,
                           const struct search_result *r)
{
    struct open *o = ctx;
    struct json_out out = json_out(&o->api->body);
    int64_t now_ms = loop_wall_ms(o->api->loop);

    (void)id;
    o->search.id = 0; /* nothing to cancel any more */
    if (!access_is_good(o->api->access, &o->caller, now_ms)) {
        open_refuse_revoked(o, now_ms);
    } else if (r->err) {
        open_fail(o, r->err);
    } else {
        share_hits(&out, o->api->registry, &o->search.call, r);
        open_answer(o, 200);
    }
}

/* The query is needed until the answer is written, when the request is gone. */
char *share_search_keep(struct speak_search_call *kept,
                        const struct speak_search_call *s)
{
    size_t n = s->text.n + s->tag.n + s->org.n;
    char *p = mem_new(n + 1), *at = p;

    *kept = *s;
    memcpy(at, s->text.p, s->text.n);
    kept->text.p = at;
    at += s->text.n;
    if (s->tag.n)
        kept->tag.p = memcpy(at, s->tag.p, s->tag.n);
    at += s->tag.n;
    if (s->org.n)
        kept->org.p = memcpy(at, s->org.p, s->org.n);
    return p;
}

struct search share_search(const struct speak_search_call *s,
                           const struct eyes *eyes)
{
    return (struct search){.text = s->text,
                           .limit = (size_t)s->limit,
                           .mode = s->mode,
                           .has_fusion = s->has_fusion,
                           .fusion = s->fusion,
                           .has_order = s->has_order,
                           .is_plain = s->is_plain,
                           .tag = s->tag,
                           .org = s->org,
                           .state = s->state,
                           .max_price = s->max_price,
                           .min_score = s->min_score,
                           .eyes = *eyes};
}

static void call_search(struct call *c, const struct speak_search_call *s)
{
    struct open *o = open_new(c);
    struct eyes eyes;
    struct search asked;
    struct why why = {""};
    uint64_t id = 0;
    enum err e;

    if (!o)
        return;
    o->search.text = share_search_keep(&o->search.call, s);
    eyes = eyes_of(&o->caller, c->now_ms);
    asked = share_search(&o->search.call, &eyes);
    e = registry_search(c->api->registry, &asked, on_search_done, o, &id, &why);
    if (e)
        open_refuse(o, e, str_of(why.text), STR(""));
    else if (id) /* otherwise it was answered at once */
        o->search.id = id;
}

void call_search_get(struct call *c)
{
    struct speak_search_call s;
    struct why why = {""};
    enum err e = speak_search_get(c->arg_names, c->args, &s, &why);

    if (e)
        call_refuse(c, e, str_of(why.text));
    else
        call_search(c, &s);
}

void call_search_post(struct call *c)
{
    struct speak_search_call s;
    struct why why = {""};
    enum err e = speak_search_post(&c->api->scratch, c->rq->body, &s, &why);

    if (e)
        call_refuse(c, e, str_of(why.text));
    else
        call_search(c, &s);
}
