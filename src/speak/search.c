/* Searches, in and out. One table reads the body of a POST and the arguments
 * of a GET, so both take the same and say the same when it is wrong. */
#include "speak/internal.h"

#include <math.h>
#include <stddef.h>

#include "model/profile.h"

struct said_search {
    struct str q, query, mode, fusion, order, tag, org, state;
    int64_t limit, max_price;
    double min_score;
    bool explains;
};

#define AT(member) offsetof(struct said_search, member)

static const struct field search_fields[] = {
    {"q", FIELD_TEXT, 1, SPEAK_QUERY_MAX, AT(q), false},
    {"query", FIELD_TEXT, 1, SPEAK_QUERY_MAX, AT(query), false},
    {"limit", FIELD_INT, 1, SPEAK_HITS_MAX, AT(limit), false},
    {"mode", FIELD_NAME, 1, 16, AT(mode), false},
    {"fusion", FIELD_NAME, 1, 16, AT(fusion), false},
    {"order", FIELD_NAME, 1, 16, AT(order), false},
    {"explain", FIELD_BOOL, 0, 0, AT(explains), false},
    {"tag", FIELD_NAME, 1, SKILL_TAG_MAX, AT(tag), false},
    {"org", FIELD_NAME, 1, PRINCIPAL_NAME_MAX, AT(org), false},
    {"state", FIELD_NAME, 1, 16, AT(state), false},
    {"max_price_micros", FIELD_INT, 0, AGENT_PRICE_MAX, AT(max_price), false},
    {"min_score", FIELD_REAL, 0, 1, AT(min_score), false},
};

#undef AT

static const struct fields fields = {
    "", search_fields, sizeof(search_fields) / sizeof(*search_fields)};

static const struct said_search nothing_said = {.limit = SPEAK_HITS,
                                                .max_price = -1};

static const struct str mode_names[] = {[INDEX_HYBRID] = STR("hybrid"),
                                        [INDEX_SEMANTIC] = STR("semantic"),
                                        [INDEX_TEXT] = STR("text")};
static const struct str fusion_names[] = {
    [INDEX_WEIGHTED] = STR("weighted"), [INDEX_RRF] = STR("rrf")};
static const struct str order_names[] = {STR("spread"), STR("plain")};

/* The place of a name in its table, zero for one that was not given; n: it is
 * none. */
static size_t place_of(struct str name, const struct str *names, size_t n)
{
    size_t i = 0;

    while (name.n && i < n && !str_eq(names[i], name))
        i++;
    return i;
}

static enum err understand(const struct said_search *said,
                           struct speak_search_call *out, struct why *why)
{
    size_t mode = place_of(said->mode, mode_names, 3);
    size_t fusion = place_of(said->fusion, fusion_names, 2);
    size_t order = place_of(said->order, order_names, 2);
    enum agent_state state = agent_state_of(said->state);

    if (said->q.n && said->query.n)
        return why_err(why, ERR_BAD_REQUEST,
                       "query and q are the same: give one of them");
    if (!said->q.n && !said->query.n)
        return why_err(why, ERR_BAD_REQUEST,
                       "there is nothing to search for: give it as query (or "
                       "q), in words");
    if (mode == 3)
        return why_err(why, ERR_BAD_REQUEST,
                       "mode must be \"hybrid\", \"semantic\" or \"text\"");
    if (fusion == 2)
        return why_err(why, ERR_BAD_REQUEST,
                       "fusion must be \"weighted\" or \"rrf\"");
    if (order == 2)
        return why_err(why, ERR_BAD_REQUEST,
                       "order must be \"spread\" or \"plain\"");
    if (said->state.n && !state)
        return why_err(why, ERR_BAD_REQUEST,
                       "state must be \"ACTIVE\", \"IDLE\", \"BUSY\", "
                       "\"SLOW\", \"ERROR\" or \"DEAD\"");
    *out = (struct speak_search_call){.text = said->q.n ? said->q : said->query,
                                      .limit = said->limit,
                                      .mode = (enum index_mode)mode,
                                      .has_fusion = said->fusion.n > 0,
                                      .fusion = (enum index_fusion)fusion,
                                      .has_order = said->order.n > 0,
                                      .is_plain = order == 1,
                                      .explains = said->explains,
                                      .tag = said->tag,
                                      .org = said->org,
                                      .state = state,
                                      .max_price = said->max_price,
                                      .min_score = said->min_score};
    return OK;
}

enum err speak_search_post(struct arena *a, struct str body,
                           struct speak_search_call *out, struct why *why)
{
    struct said_search said = nothing_said;
    enum err e = fields_read(a, body, &fields, &said, why);

    return e ? e : understand(&said, out, why);
}

enum err speak_search_get(const char *const *names, const struct str *values,
                          struct speak_search_call *out, struct why *why)
{
    struct said_search said = nothing_said;
    enum err e = OK;

    for (size_t i = 0; names[i] && !e; i++)
        if (values[i].p)
            e = fields_arg(&fields, names[i], values[i], &said, why);
    return e ? e : understand(&said, out, why);
}

/* Out. */

/* Six digits behind the point: more than a cosine in floats is worth, and
 * 0.87 does not become 0.87000000476. */
static void put_score(struct json_out *o, const char *key, double v)
{
    json_member_real(o, key, round(v * 1e6) / 1e6);
}

/* Which words of the query a document has, as stems. Every text of it is gone
 * through again for that, which only who wants an explanation pays; and there
 * is an end to it, so that a hundred long cards do not hold up everybody
 * else. What lies beyond it has null for its words: not looked for. */

enum { EXPLAINED_BYTES = 512 * 1024 };

struct words {
    struct str stems[INDEX_QUERY_TERMS_MAX];
    char room[INDEX_QUERY_TERMS_MAX * (INDEX_TERM_MAX + 1)];
    bool is_met[INDEX_QUERY_TERMS_MAX];
    size_t n, room_n;
    size_t budget;
    struct buf parts; /* of a name */
};

enum {
    PARTS_BYTES = 2 * AGENT_NAME_MAX
}; /* each a letter and a gap, at least */
_Static_assert((int)AGENT_NAME_MAX >= (int)SKILL_NAME_MAX, "names fit");

static size_t word_at(const struct words *w, struct str stem)
{
    size_t i = 0;

    while (i < w->n && !str_eq(w->stems[i], stem))
        i++;
    return i;
}

static void want_word(void *ctx, struct str word, struct str stem)
{
    struct words *w = ctx;

    (void)word;
    if (w->n == INDEX_QUERY_TERMS_MAX || stem.n > INDEX_TERM_MAX ||
        word_at(w, stem) < w->n)
        return;
    memcpy(w->room + w->room_n, stem.p, stem.n);
    w->stems[w->n++] = (struct str){w->room + w->room_n, stem.n};
    w->room_n += stem.n;
}

static void meet_word(void *ctx, struct str word, struct str stem)
{
    struct words *w = ctx;
    size_t i = word_at(w, stem);

    (void)word;
    if (i < w->n)
        w->is_met[i] = true;
}

static void look_through(struct words *w, struct str text)
{
    if (text.n > w->budget) {
        w->budget = 0;
        return;
    }
    w->budget -= text.n;
    if (text.n)
        index_terms(text, meet_word, w);
}

static void look_through_all(struct words *w, struct strs texts)
{
    for (size_t i = 0; i < texts.n; i++)
        look_through(w, texts.list[i]);
}

/* A name counts by its parts ("getAlarms": get, alarms), and whole. What is
 * before the last dot of one that is written for machines counts for nothing,
 * as index/text_doc.c has it. */
static void look_through_name(struct words *w, struct str name, bool is_id)
{
    size_t dot = name.n;

    buf_clear(&w->parts);
    profile_add_words(&w->parts, name);
    look_through(w, buf_str(&w->parts));
    while (is_id && dot > 0 && name.p[dot - 1] != '.')
        dot--;
    look_through(w, is_id ? str_sub(name, dot, name.n) : name);
}

/* The texts that the index has of it. */
static void look_through_doc(struct words *w, const struct agent *a,
                             const struct skill *s)
{
    look_through_name(w, a->name, true);
    look_through(w, a->title);
    look_through(w, a->description);
    if (!s)
        return;
    look_through_name(w, s->name, str_eq(s->name, s->id));
    look_through(w, s->description);
    look_through_all(w, s->tags);
    look_through_all(w, s->examples);
}

static void put_words(struct json_out *o, struct words *w,
                      const struct agent *a, uint32_t skill)
{
    memset(w->is_met, 0, sizeof(w->is_met));
    look_through_doc(w, a, skill < a->n_skills ? &a->skills[skill] : NULL);
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

static void put_parts(struct json_out *o, struct words *w,
                      const struct agent *a, const struct index_match *m)
{
    put_score(o, "semantic", (double)m->semantic);
    put_score(o, "text", (double)m->text);
    put_words(o, w, a, m->skill);
}

static void put_skills(struct json_out *o, const struct speak_hit *hit,
                       struct words *w)
{
    json_key(o, STR("skills"));
    json_open(o, '[');
    for (size_t i = 0; i < hit->n_matches; i++) {
        const struct index_match *m = &hit->matches[i];

        if (m->skill >= hit->agent->n_skills) /* the agent itself */
            continue;
        json_open(o, '{');
        card_write_skill_members(o, &hit->agent->skills[m->skill]);
        put_score(o, "score", (double)m->score);
        if (w)
            put_parts(o, w, hit->agent, m);
        json_close(o, '}');
    }
    json_close(o, ']');
}

/* Seed 000's members first, in its order. */
static void put_hit(struct json_out *o, const struct speak_hit *hit,
                    struct words *w)
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
    put_skills(o, hit, w);
    put_score(o, "score", hit->score);
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
        put_parts(o, w, a, best);
    json_close(o, '}');
}

static void put_formula(struct json_out *o, const struct speak_hits *h,
                        const struct words *w)
{
    json_key(o, STR("formula"));
    json_open(o, '{');
    json_member_text(o, "fusion", fusion_names[h->fusion]);
    put_score(o, "semantic", h->semantic_weight);
    put_score(o, "text", h->text_weight);
    json_close(o, '}');
    json_key(o, STR("words"));
    json_open(o, '[');
    for (size_t i = 0; i < w->n; i++)
        json_put_str(o, w->stems[i]);
    json_close(o, ']');
}

/* What did not fit is said behind what there is to say besides. */
static void put_note(struct json_out *o, struct str note, size_t n_left)
{
    struct why full = {""};

    if (n_left)
        why_err(&full, OK,
                "%.*s%s%zu more found %s not fit into this answer: narrow the "
                "search",
                STR_ARG(note), note.n ? "; " : "", n_left,
                n_left == 1 ? "agent does" : "agents do");
    if (n_left || note.n)
        json_member_text(o, "note", n_left ? str_of(full.text) : note);
}

void speak_hits(struct json_out *o, const struct speak_hits *h)
{
    struct words words = {.budget = EXPLAINED_BYTES};
    size_t from = o->out->n, n = 0;

    buf_init(&words.parts, PARTS_BYTES);
    if (h->explains)
        index_terms(h->text, want_word, &words);
    json_open(o, '{');
    json_key(o, STR("agents"));
    json_open(o, '[');
    while (n < h->n && (n == 0 || o->out->n - from <= h->max_bytes))
        put_hit(o, &h->list[n++], h->explains ? &words : NULL);
    json_close(o, ']');
    json_member_int(o, "total", (int64_t)h->total);
    json_member_text(o, "mode", mode_names[h->mode]);
    put_note(o, h->note, h->n - n);
    if (h->explains)
        put_formula(o, h, &words);
    json_close(o, '}');
    buf_fini(&words.parts);
}
