/* Searching: asked here, done in registry/, told here. The answer may take as
 * long as somebody else's model takes to make a vector of the query; whoever
 * leaves meanwhile is forgotten, and live.c ends what may not wait any more. */
#include "calls/internal.h"

#include <stdlib.h>

#include "base/fault.h"

_Static_assert((int)SPEAK_QUERY_MAX == (int)SEARCH_TEXT_MAX &&
                   (int)SPEAK_HITS == (int)SEARCH_LIMIT &&
                   (int)SPEAK_HITS_MAX == (int)SEARCH_LIMIT_MAX,
               "what is promised to clients is what the registry takes");

/* What a score is made of, as it was done. */
static void fill_formula(struct open *o, enum index_mode mode,
                         struct speak_hits *said)
{
    const struct speak_search_call *asked = &o->search.call;
    struct registry_ranking k = registry_ranking(o->calls->registry);

    said->fusion = asked->has_fusion ? asked->fusion : k.fusion;
    said->semantic_weight = mode == INDEX_TEXT       ? 0
                            : mode == INDEX_SEMANTIC ? 1
                                                     : k.semantic_weight;
    said->text_weight = mode == INDEX_TEXT       ? 1
                        : mode == INDEX_SEMANTIC ? 0
                                                 : k.text_weight;
}

static void write_hits(struct open *o, const struct search_result *r)
{
    struct speak_hit list[SEARCH_LIMIT_MAX];
    struct speak_hits said = {.list = list,
                              .n = r->n,
                              .mode = r->mode,
                              .note = str_of(r->note.text),
                              .max_bytes = PAGE_BYTES,
                              .explains = o->search.call.explains,
                              .text = o->search.call.text};
    struct json_out out = json_out(&o->calls->body);

    fill_formula(o, r->mode, &said);
    for (size_t i = 0; i < r->n; i++)
        list[i] = (struct speak_hit){
            .agent = r->hits[i].agent,
            .state = registry_state(o->calls->registry, r->hits[i].agent),
            .score = (double)r->hits[i].score,
            .matches = r->hits[i].matches,
            .n_matches = r->hits[i].n_matches};
    speak_hits(&out, &said);
    buf_add_char(&o->calls->body, '\n');
}

static void on_found(void *ctx, uint64_t id, const struct search_result *r)
{
    struct open *o = ctx;
    int64_t now_ms = loop_wall_ms(o->calls->loop);

    (void)id;
    o->search.id = 0; /* nothing is left to be cancelled */
    if (!access_is_good(o->calls->access, &o->caller, now_ms)) {
        refuse_to_wait(o, now_ms);
    } else if (r->err) {
        open_refuse(o, r->err, STR(""), STR(""));
    } else {
        write_hits(o, r);
        open_answer(o, 200);
    }
}

/* The query is needed until the answer is written, and the request is gone by
 * then. */
static bool keep_call(struct open *o, const struct speak_search_call *s)
{
    struct speak_search_call *kept = &o->search.call;
    size_t n = s->text.n + s->tag.n + s->org.n;
    char *p = FAULT("calls.search") ? NULL : malloc(n + 1);

    if (!p)
        return false;
    o->search.text = p;
    *kept = *s;
    memcpy(p, s->text.p, s->text.n);
    kept->text.p = p;
    p += s->text.n;
    if (s->tag.n)
        kept->tag.p = memcpy(p, s->tag.p, s->tag.n);
    p += s->tag.n;
    if (s->org.n)
        kept->org.p = memcpy(p, s->org.p, s->org.n);
    return true;
}

static void search(struct call *c, const struct speak_search_call *s)
{
    struct open *o = open_new(c);
    const struct speak_search_call *kept;
    struct search asked;
    struct why why = {""};
    uint64_t id = 0;
    enum err e;

    if (!o)
        return;
    if (!keep_call(o, s)) {
        open_refuse(o, ERR_NOMEM, STR(""), STR(""));
        return;
    }
    kept = &o->search.call;
    asked = (struct search){.text = kept->text,
                            .limit = (size_t)kept->limit,
                            .mode = kept->mode,
                            .has_fusion = kept->has_fusion,
                            .fusion = kept->fusion,
                            .tag = kept->tag,
                            .org = kept->org,
                            .state = kept->state,
                            .max_price = kept->max_price,
                            .min_score = kept->min_score,
                            .eyes = eyes_of(&o->caller, c->now_ms)};
    e = registry_search(c->calls->registry, &asked, on_found, o, &id, &why);
    if (e)
        open_refuse(o, e, str_of(why.text), STR(""));
    else if (id) /* else it has been answered */
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
        search(c, &s);
}

void call_search_post(struct call *c)
{
    struct speak_search_call s;
    struct why why = {""};
    enum err e = speak_search_post(&c->calls->scratch, c->rq->body, &s, &why);

    if (e)
        call_refuse(c, e, str_of(why.text));
    else
        search(c, &s);
}
