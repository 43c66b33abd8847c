/* Searches for agents. registry/ performs them; the answer may take as long as
 * an outside model needs for the vector of the query. A search ends with its
 * request, so also if the client leaves or its token is revoked. */
#include "api/internal.h"

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

static void write_hits(struct json_out *out, struct registry *registry,
                       const struct speak_search_call *s,
                       const struct search_result *r)
{
    struct speak_hit list[SEARCH_LIMIT_MAX];
    struct speak_hits said = {.list = list,
                              .n = r->n,
                              .total = r->total,
                              .mode = r->mode,
                              .note = str_of(r->note.text),
                              .max_bytes = PAGE_BYTES,
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

struct search_state {
    uint64_t id; /* zero: no search under way */
    struct speak_search_call call;
};

static void search_quiet(struct request *o)
{
    struct search_state *s = o->own;

    if (s->id)
        registry_search_cancel(o->api->registry, s->id);
    s->id = 0;
}

static void on_search_done(void *ctx, uint64_t id,
                           const struct search_result *r)
{
    struct request *o = ctx;
    struct search_state *s = o->own;
    struct json_out out;

    (void)id;
    s->id = 0; /* nothing to cancel any more */
    if (!request_is_welcome(o))
        return;
    if (r->err) {
        request_fail(o, r->err);
        return;
    }
    out = request_json(o);
    write_hits(&out, o->api->registry, &s->call, r);
    request_answer(o, 200);
}

void search_begin(struct request *o, const struct speak_search_call *call,
                  const struct eyes *eyes)
{
    struct search_state *kept = o->own;
    struct speak_search_call *s = &kept->call;
    struct search asked;
    struct why why = {""};
    uint64_t id = 0;
    enum err e;

    *s = *call; /* the call is gone when the answer is written */
    if (!arena_keep(&o->arena, s->text, &s->text) ||
        !arena_keep(&o->arena, s->tag, &s->tag) ||
        !arena_keep(&o->arena, s->org, &s->org)) {
        request_fail(o, ERR_NOMEM);
        return;
    }
    o->is_search = true;
    asked = (struct search){.text = s->text,
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
    e = registry_search(o->api->registry, &asked, on_search_done, o, &id, &why);
    if (e)
        request_refuse(o, e, str_of(why.text), STR(""));
    else if (id) /* otherwise it was answered at once */
        kept->id = id;
}

const struct request_state search_state = {.bytes = sizeof(struct search_state),
                                           .quiet = search_quiet};

static void call_search(struct call *c, const struct speak_search_call *s)
{
    struct request *o = request_of_call(c, &search_state);
    struct eyes eyes;

    if (!o)
        return;
    eyes = eyes_of(&o->caller, c->now_ms);
    search_begin(o, s, &eyes);
}

void call_search_get(struct call *c)
{
    struct speak_search_call s;
    struct why why = {""};
    enum err e = speak_search_get(c->args, &s, &why);

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
