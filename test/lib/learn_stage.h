#ifndef TEST_LIB_LEARN_STAGE_H
#define TEST_LIB_LEARN_STAGE_H

/* A state that learns, and outcomes for it. Vectors go by a number: each is
 * another direction, and those of one hundred are alike. Include after t.h. */

#include <math.h>

#include "base/map.h"
#include "base/vec.h"
#include "learn/fold/learn.h"

enum { STAGE_DIMS = 32, STAGE_PACKED = 8 + 2 * STAGE_DIMS, STAGE_VECTORS = 64 };

static const uint64_t stage_seed[2] = {1, 2};

struct stage {
    struct learn *l;
    struct learn_settings settings;
    int64_t seq, n_decisions;
    uint64_t random;
    struct buf out;
    uint8_t packed[STAGE_VECTORS][STAGE_PACKED];
    size_t next;
};

static inline uint64_t stage_random(struct stage *s)
{
    s->random = s->random * UINT64_C(6364136223846793005) +
                UINT64_C(1442695040888963407);
    return s->random >> 33;
}

static inline struct stage *stage_new_with(struct learn_settings settings)
{
    struct stage *s = calloc(1, sizeof(*s));

    CHECK(s);
    s->settings = settings;
    s->l = learn_new(&s->settings, STR("model"), 0, stage_seed);
    CHECK(s->l);
    s->random = 1;
    buf_init(&s->out, 64 * 1024 * 1024);
    return s;
}

static inline struct stage *stage_new(void)
{
    return stage_new_with(learn_defaults());
}

static inline void stage_free(struct stage *s)
{
    learn_free(s->l);
    buf_fini(&s->out);
    free(s);
}

/* Of `number`: number / 100 says the direction, the rest turns it a little. */
static inline struct str vector_of(struct stage *s, int number)
{
    uint8_t *to = s->packed[s->next++ % STAGE_VECTORS];
    float v[STAGE_DIMS];
    uint64_t was = s->random;

    s->random = (uint64_t)(number < 100 ? number : number / 100) * 7919;
    for (size_t i = 0; i < STAGE_DIMS; i++)
        v[i] = (float)(stage_random(s) % 2001) - 1000;
    s->random = (uint64_t)number * 104729;
    for (size_t i = 0; i < STAGE_DIMS && number >= 100; i++)
        v[i] += (float)(stage_random(s) % 601) - 300;
    s->random = was;
    CHECK(vec_pack(v, STAGE_DIMS, to));
    return (struct str){(const char *)to, STAGE_PACKED};
}

static inline bool opened(struct stage *s, int number, struct vec_packed *out)
{
    struct str v = vector_of(s, number);

    return vec_packed_open(out, (const uint8_t *)v.p, v.n, STAGE_DIMS);
}

static inline struct outcome judged(struct stage *s, const char *agent,
                                    int vector, enum verdict verdict)
{
    struct outcome o = {
        .at_ms = 1000 + s->n_decisions,
        .kind = OUTCOME_VERDICT,
        .verdict = verdict,
        .layer = LAYER_SEMANTIC,
        .agent = str_of(agent),
        .scope = STR("org:acme"),
        .text = STR("a text of some words"),
        .vector = vector_of(s, vector),
        .model_hash = STR("model"),
    };

    snprintf(o.decision_id.text, sizeof(o.decision_id.text), "dec_%026lld",
             (long long)++s->n_decisions);
    return o;
}

static inline struct outcome corrected(struct stage *s, const char *agent,
                                       const char *right, const char *scope,
                                       int vector)
{
    struct outcome o = judged(s, agent, vector, VERDICT_NEGATIVE);

    o.kind = OUTCOME_CORRECTION;
    o.right_agent = str_of(right);
    o.scope = str_of(scope);
    o.by = STR("ann");
    return o;
}

static inline void apply(struct stage *s, struct outcome *o)
{
    o->seq = ++s->seq;
    CHECK(learn_apply(s->l, o) == OK);
    CHECK_INT(learn_version(s->l), s->seq);
}

static inline void judge(struct stage *s, const char *agent, int vector,
                         enum verdict verdict)
{
    struct outcome o = judged(s, agent, vector, verdict);

    apply(s, &o);
}

static inline void correct(struct stage *s, const char *agent,
                           const char *right, const char *scope, int vector)
{
    struct outcome o = corrected(s, agent, right, scope, vector);

    apply(s, &o);
}

static inline void forget(struct stage *s, const char *agent)
{
    struct outcome o = {.kind = OUTCOME_FORGET, .agent = str_of(agent)};

    apply(s, &o);
}

static inline struct learn_hint ask_all(struct stage *s, struct learn_query q,
                                        const char *agent)
{
    struct learn_hint h;

    struct learn_agent_hint told;
    bool is_told = false;

    learn_begin(s->l, &q);
    learn_look(s->l, str_of(agent), &h);
    while (learn_next(s->l, &told)) {
        struct learn_hint same;

        learn_look(s->l, told.agent, &same);
        CHECK(same.performance == told.hint.performance &&
              same.recency == told.hint.recency &&
              same.learned == told.hint.learned &&
              same.is_taught == told.hint.is_taught &&
              same.is_rated == told.hint.is_rated &&
              same.has_inside == told.hint.has_inside);
        CHECK(told.note->number == 0);
        is_told |= str_eq_nocase(told.agent, str_of(agent));
    }
    CHECK(is_told || (h.performance == 0.5F && h.recency == 0 &&
                      h.learned == 0 && !h.is_taught && !h.is_rated));
    return h;
}

/* vector -1: none. */
static inline struct learn_hint ask_text(struct stage *s, const char *scope,
                                         int vector, uint64_t text_hash,
                                         const char *agent)
{
    return ask_all(s,
                   (struct learn_query){
                       .scope = str_of(scope),
                       .vector = vector < 0 ? STR("") : vector_of(s, vector),
                       .text_hash = text_hash,
                       .now_ms = 5000,
                       .recency_ms = 1000},
                   agent);
}

static inline struct learn_hint ask(struct stage *s, const char *scope,
                                    int vector, const char *agent)
{
    return ask_all(s,
                   (struct learn_query){.scope = str_of(scope),
                                        .vector = vector_of(s, vector),
                                        .now_ms = 5000,
                                        .recency_ms = 1000},
                   agent);
}

static inline struct learn_hint ask_at(struct stage *s, int64_t now_ms,
                                       int64_t recency_ms, const char *agent)
{
    return ask_all(s,
                   (struct learn_query){.scope = STR("org:acme"),
                                        .vector = vector_of(s, 1),
                                        .now_ms = now_ms,
                                        .recency_ms = recency_ms},
                   agent);
}

/* All of it, until the next time. */
static inline const char *exported(struct stage *s)
{
    buf_clear(&s->out);
    learn_export(s->l, &s->out);
    buf_add_char(&s->out, '\0');
    CHECK(!s->out.over);
    return s->out.p;
}

#endif
