#ifndef TEST_LIB_SCORE_STAGE_H
#define TEST_LIB_SCORE_STAGE_H

/* The stage on which choosing by score is tested: a few agents, and what is
 * known of each for one text, as route would have fetched it. */

#include "choose/layers/choose.h"
#include "test/t.h"

enum { SCORE_STAGE_MAX = 64 };

struct score_stage {
    struct agent list[SCORE_STAGE_MAX];
    const struct agent *ptrs[SCORE_STAGE_MAX];
    char lower[SCORE_STAGE_MAX][AGENT_NAME_MAX];
    struct map by_name;
    struct agents all;
    struct candidate candidates[SCORE_STAGE_MAX];
    struct choose_settings settings;
    struct eyes eyes;
    struct msg *m;
};

/* No one is there yet. */
static inline void score_stage_init(struct score_stage *s)
{
    const uint64_t seed[2] = {1, 2};

    memset(s, 0, sizeof(*s));
    map_init(&s->by_name, SCORE_STAGE_MAX, seed);
    s->all = (struct agents){s->ptrs, 0, &s->by_name};
    s->settings = choose_defaults();
    s->settings.is_auto = s->settings.is_centred = false;
    s->eyes = (struct eyes){.user = STR("cleo"), .org = STR("cine")};
    s->m = msg_new(&(struct caller){0}, 5);
    CHECK(s->m);
    s->m->call.text = STR("fix the login form");
    s->m->known.has_candidates = true;
    s->m->known.candidates = s->candidates;
}

static inline void score_stage_fini(struct score_stage *s)
{
    msg_free(s->m);
    map_fini(&s->by_name);
}

/* One more, of the creator's; names come in their order. Its signals are as
 * good as nothing until they are set. */
static inline struct candidate *
score_stage_add(struct score_stage *s, const char *name, const char *creator)
{
    size_t i = s->all.n;
    struct str lower = {s->lower[i], strlen(name)};

    CHECK(i < SCORE_STAGE_MAX);
    for (size_t k = 0; k < lower.n; k++)
        s->lower[i][k] = str_lower(name[k]);
    s->list[i] = (struct agent){.name = str_of(name),
                                .url = STR("echo:"),
                                .visibility = VISIBILITY_PUBLIC,
                                .kind = AGENT_SELF_HOSTED,
                                .creator = str_of(creator)};
    s->ptrs[i] = &s->list[i];
    CHECK(map_put(&s->by_name, lower, &s->list[i]) == OK);
    s->candidates[i] = (struct candidate){.agent = str_of(name),
                                          .signals = {.performance = 0.5F}};
    s->m->known.n_candidates = ++s->all.n;
    return &s->candidates[i];
}

/* And with so much for it by meaning and by words alike. */
static inline struct candidate *score_stage_near(struct score_stage *s,
                                                 const char *name,
                                                 const char *creator,
                                                 float nearness)
{
    struct candidate *c = score_stage_add(s, name, creator);

    c->signals.cosine = c->signals.text = nearness;
    return c;
}

static inline enum err score_stage_ask(struct score_stage *s)
{
    struct choose_view v = {
        .settings = &s->settings, .agents = &s->all, .eyes = &s->eyes};

    return choose_agent(&v, s->m);
}

#endif
