/* Searches and their results. One table reads the body of a POST and the
 * arguments of a GET, so both have the same parameters and the same errors. */
#include "speak/internal.h"

#include <math.h>
#include <stddef.h>

#include "model/profile.h"

struct search_params {
    struct str q, query, mode, fusion, order, tag, org, state;
    int64_t limit, max_price;
    double min_score;
    bool explains;
};

#define AT(member) offsetof(struct search_params, member)

const struct field speak_search_args[] = {
    {"q", FIELD_TEXT, 1, SPEAK_QUERY_MAX, .at = AT(q)},
    {"query", FIELD_TEXT, 1, SPEAK_QUERY_MAX, .at = AT(query)},
    {"limit", FIELD_INT, 1, SPEAK_HITS_MAX, .at = AT(limit)},
    {"mode", FIELD_WORD, 1, 16, .at = AT(mode), .of = "hybrid|semantic|text"},
    {"fusion", FIELD_WORD, 1, 16, .at = AT(fusion), .of = "weighted|rrf"},
    {"order", FIELD_WORD, 1, 16, .at = AT(order), .of = "spread|plain"},
    {"explain", FIELD_BOOL, 0, 0, .at = AT(explains)},
    {"tag", FIELD_NAME, 1, SKILL_TAG_MAX, .at = AT(tag)},
    {"org", FIELD_NAME, 1, PRINCIPAL_NAME_MAX, .at = AT(org)},
    {"state", FIELD_WORD, 1, 16, .at = AT(state),
     .of = "ACTIVE|IDLE|BUSY|SLOW|ERROR|DEAD", .any_case = true},
    {"max_price_micros", FIELD_INT, 0, AGENT_PRICE_MAX, .at = AT(max_price)},
    {"min_score", FIELD_REAL, 0, 1, .at = AT(min_score)},
    {.name = NULL}, /* it is also a list of arguments */
};

#undef AT

const struct fields speak_search_fields = {
    "", speak_search_args,
    sizeof(speak_search_args) / sizeof(*speak_search_args) - 1};

static const struct search_params search_defaults = {.limit = SPEAK_HITS,
                                                     .max_price = -1};

static const struct str mode_names[] = {[INDEX_HYBRID] = STR("hybrid"),
                                        [INDEX_SEMANTIC] = STR("semantic"),
                                        [INDEX_TEXT] = STR("text")};
static const struct str fusion_names[] = {
    [INDEX_WEIGHTED] = STR("weighted"), [INDEX_RRF] = STR("rrf")};
static const struct str order_names[] = {STR("spread"), STR("plain")};

/* Index of a name in its table; zero for an absent one, n for an unknown
 * one. */
static size_t search_name_index(struct str name, const struct str *names,
                                size_t n)
{
    size_t i = 0;

    while (name.n && i < n && !str_eq(names[i], name))
        i++;
    return i;
}

static enum err search_interpret(const struct search_params *in,
                                 struct speak_search_call *out, struct why *why)
{
    size_t mode = search_name_index(in->mode, mode_names, 3);
    size_t fusion = search_name_index(in->fusion, fusion_names, 2);
    size_t order = search_name_index(in->order, order_names, 2);
    enum agent_state state = agent_state_of(in->state);

    if (in->q.n && in->query.n)
        return why_err(why, ERR_BAD_REQUEST,
                       "query and q are the same: give one of them");
    if (!in->q.n && !in->query.n)
        return why_err(why, ERR_BAD_REQUEST,
                       "there is nothing to search for: give it as query (or "
                       "q), in words");
    *out = (struct speak_search_call){.text = in->q.n ? in->q : in->query,
                                      .limit = in->limit,
                                      .mode = (enum index_mode)mode,
                                      .has_fusion = in->fusion.n > 0,
                                      .fusion = (enum index_fusion)fusion,
                                      .has_order = in->order.n > 0,
                                      .is_plain = order == 1,
                                      .explains = in->explains,
                                      .tag = in->tag,
                                      .org = in->org,
                                      .state = state,
                                      .max_price = in->max_price,
                                      .min_score = in->min_score};
    return OK;
}

enum err speak_search_post(struct arena *a, struct str body,
                           struct speak_search_call *out, struct why *why)
{
    struct search_params in = search_defaults;
    enum err e = fields_read(a, body, &speak_search_fields, &in, why);

    return e ? e : search_interpret(&in, out, why);
}

enum err speak_search_get(const struct str *values,
                          struct speak_search_call *out, struct why *why)
{
    struct search_params in = search_defaults;
    enum err e = OK;

    for (size_t i = 0; i < speak_search_fields.n && !e; i++)
        if (values[i].p)
            e = field_arg(&speak_search_args[i], values[i],
                          (char *)&in + speak_search_args[i].at, why);
    return e ? e : search_interpret(&in, out, why);
}

/* Six decimals: more than a cosine of floats is worth, and 0.87 does not become
 * 0.87000000476. */
static void hit_put_score(struct json_out *o, const char *key, double v)
{
    json_member_real(o, key, round(v * 1e6) / 1e6);
}

/* The words of the query that a document contains, as stems. This scans every
 * text of the document again, so only requests for an explanation pay for it. A
 * budget keeps a hundred long cards from holding up other requests: a document
 * beyond it has null for its words. */

enum { EXPLAINED_BYTES = 512 * 1024 };

struct query_words {
    struct str stems[INDEX_QUERY_TERMS_MAX];
    char room[INDEX_QUERY_TERMS_MAX * (INDEX_TERM_MAX + 1)];
    bool is_met[INDEX_QUERY_TERMS_MAX];
    size_t n, room_n;
    size_t budget;
    struct buf parts; /* the parts of a name */
};

enum { PARTS_BYTES = 2 * AGENT_NAME_MAX }; /* a gap after each letter */
_Static_assert((int)AGENT_NAME_MAX >= (int)SKILL_NAME_MAX, "names fit");

static size_t query_word_index(const struct query_words *w, struct str stem)
{
    size_t i = 0;

    while (i < w->n && !str_eq(w->stems[i], stem))
        i++;
    return i;
}

static void query_word_add(void *ctx, struct str word, struct str stem)
{
    struct query_words *w = ctx;

    (void)word;
    if (w->n == INDEX_QUERY_TERMS_MAX || stem.n > INDEX_TERM_MAX ||
        query_word_index(w, stem) < w->n)
        return;
    memcpy(w->room + w->room_n, stem.p, stem.n);
    w->stems[w->n++] = (struct str){w->room + w->room_n, stem.n};
    w->room_n += stem.n;
}

static void query_word_meet(void *ctx, struct str word, struct str stem)
{
    struct query_words *w = ctx;
    size_t i = query_word_index(w, stem);

    (void)word;
    if (i < w->n)
        w->is_met[i] = true;
}

static void query_words_scan(struct query_words *w, struct str text)
{
    if (text.n > w->budget) {
        w->budget = 0;
        return;
    }
    w->budget -= text.n;
    if (text.n)
        index_terms(text, query_word_meet, w);
}

/* A name counts by its parts ("getAlarms": get, alarms) and as a whole. The
 * part before the last dot of a machine-readable name is ignored, as in
 * registry/index/text_doc.c. */
static void query_words_scan_name(struct query_words *w, struct str name,
                                  bool is_id)
{
    size_t dot = name.n;

    buf_clear(&w->parts);
    profile_add_words(&w->parts, name);
    query_words_scan(w, buf_str(&w->parts));
    while (is_id && dot > 0 && name.p[dot - 1] != '.')
        dot--;
    query_words_scan(w, is_id ? str_sub(name, dot, name.n) : name);
}

/* The texts of an agent, or of one skill, that the index covers. */
static void query_words_scan_doc(struct query_words *w, const struct agent *a,
                                 const struct skill *s)
{
    query_words_scan_name(w, a->name, true);
    query_words_scan(w, a->title);
    query_words_scan(w, a->description);
    if (!s)
        return;
    query_words_scan_name(w, s->name, str_eq(s->name, s->id));
    query_words_scan(w, s->description);
    for (size_t i = 0; i < s->tags.n; i++)
        query_words_scan(w, s->tags.list[i]);
    for (size_t i = 0; i < s->examples.n; i++)
        query_words_scan(w, s->examples.list[i]);
}

static void hit_put_parts(struct json_out *o, struct query_words *w,
                          const struct agent *a, const struct index_match *m)
{
    hit_put_score(o, "semantic", (double)m->semantic);
    hit_put_score(o, "text", (double)m->text);
    memset(w->is_met, 0, sizeof(w->is_met));
    query_words_scan_doc(w, a,
                         m->skill < a->n_skills ? &a->skills[m->skill] : NULL);
    json_key(o, STR("words"));
    if (!w->budget) {
        json_put_null(o);
        return;
    }
    json_open(o, '[');
    for (size_t i = 0; i < w->n; i++)
        if (w->is_met[i])
            json_put_str(o, w->stems[i]);
    json_close(o, ']');
}

static void hit_put_skills(struct json_out *o, const struct speak_hit *hit,
                           struct query_words *w)
{
    json_key(o, STR("skills"));
    json_open(o, '[');
    for (size_t i = 0; i < hit->n_matches; i++) {
        const struct index_match *m = &hit->matches[i];

        if (m->skill >= hit->agent->n_skills) /* the agent itself */
            continue;
        json_open(o, '{');
        card_write_skill_members(o, &hit->agent->skills[m->skill]);
        hit_put_score(o, "score", (double)m->score);
        if (w)
            hit_put_parts(o, w, hit->agent, m);
        json_close(o, '}');
    }
    json_close(o, ']');
}

/* Seed 000's members first, in its order. */
static void hit_put(struct json_out *o, const struct speak_hit *hit,
                    struct query_words *w)
{
    const struct agent *a = hit->agent;
    const struct index_match *best = hit->n_matches ? &hit->matches[0] : NULL;
    struct str best_id = STR("");

    for (size_t i = hit->n_matches; i-- > 0;)
        if (hit->matches[i].skill < a->n_skills)
            best_id = a->skills[hit->matches[i].skill].id;
    json_open(o, '{');
    json_member_text(o, "name", a->name);
    json_member_text(o, "description", a->description);
    hit_put_skills(o, hit, w);
    hit_put_score(o, "score", hit->score);
    json_member_str(o, "best_skill_id", best_id);
    json_member_str(o, "title", a->title);
    json_key(o, STR("url"));
    card_put_url(o, a->url);
    json_member_text(o, "visibility", visibility_name(a->visibility));
    json_member_str(o, "creator_id", a->creator);
    json_member_str(o, "org", a->org);
    json_member_text(o, "state", agent_state_name(hit->state));
    json_member_str(o, "version", a->version);
    if (w && best)
        hit_put_parts(o, w, a, best);
    json_close(o, '}');
}

void speak_hits(struct json_out *o, const struct speak_hits *h)
{
    struct query_words query_words = {.budget = EXPLAINED_BYTES};
    size_t from = o->out->n, n = 0;
    struct why full = {""};
    size_t n_left;

    buf_init(&query_words.parts, PARTS_BYTES);
    if (h->explains)
        index_terms(h->text, query_word_add, &query_words);
    json_open(o, '{');
    json_key(o, STR("agents"));
    json_open(o, '[');
    while (n < h->n && (n == 0 || o->out->n - from <= h->max_bytes))
        hit_put(o, &h->list[n++], h->explains ? &query_words : NULL);
    json_close(o, ']');
    json_member_int(o, "total", (int64_t)h->total);
    json_member_text(o, "mode", mode_names[h->mode]);
    n_left = h->n - n; /* they are mentioned after any other note */
    if (n_left)
        why_err(&full, OK,
                "%.*s%s%zu more found %s not fit into this answer: narrow the "
                "search",
                STR_ARG(h->note), h->note.n ? "; " : "", n_left,
                n_left == 1 ? "agent does" : "agents do");
    if (n_left || h->note.n)
        json_member_text(o, "note", n_left ? str_of(full.text) : h->note);
    if (h->explains) {
        json_key(o, STR("formula"));
        json_open(o, '{');
        json_member_text(o, "fusion", fusion_names[h->fusion]);
        hit_put_score(o, "semantic", h->semantic_weight);
        hit_put_score(o, "text", h->text_weight);
        json_close(o, '}');
        json_key(o, STR("words"));
        json_open(o, '[');
        for (size_t i = 0; i < query_words.n; i++)
            json_put_str(o, query_words.stems[i]);
        json_close(o, ']');
    }
    json_close(o, '}');
    buf_fini(&query_words.parts);
}
