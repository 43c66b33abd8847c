#ifndef TEST_LIB_SIGNAL_STAGE_H
#define TEST_LIB_SIGNAL_STAGE_H

/* The stage on which layers that look at signals are tested: agents, a message
 * from someone who sees them all, and candidates with the scores that a test
 * says. One at a time. */

#include "choose/layers/choose.h"
#include "test/t.h"

enum { STAGE_MAX = 48 };

struct choose_stage {
    struct agent list[STAGE_MAX];
    const struct agent *ptrs[STAGE_MAX];
    char lower[STAGE_MAX][AGENT_NAME_MAX + 1];
    struct map by_name;
    struct agents all;
    struct candidate candidates[STAGE_MAX];
    struct choose_settings settings;
    struct eyes eyes;
    struct choose_view view;
    struct msg *m;
};

static struct choose_stage stage;

/* In the order of their names. */
static inline void stage_add(const char *of)
{
    struct choose_stage *s = &stage;
    size_t i = s->all.n++;
    struct str name = str_of(of);

    CHECK(i < STAGE_MAX);
    s->list[i] = (struct agent){.name = name, .url = STR("echo:")};
    s->ptrs[i] = &s->list[i];
    CHECK(map_put(&s->by_name, str_lowered(name, s->lower[i], AGENT_NAME_MAX),
                  &s->list[i]) == OK);
    s->candidates[i] = (struct candidate){.agent = name};
    s->m->known.n_candidates = s->all.n;
}

static inline void stage_open_n(size_t n, const char *const *names)
{
    static const uint64_t seed[2] = {1, 2};
    struct choose_stage *s = &stage;

    memset(s, 0, sizeof(*s));
    map_init(&s->by_name, STAGE_MAX, seed);
    s->all = (struct agents){s->ptrs, 0, &s->by_name};
    s->settings = choose_defaults();
    s->settings.is_auto = s->settings.is_centred = false;
    /* A score is its cosine then. */
    s->settings.weights = (struct signal_weights){.semantic = 1};
    s->settings.text_blend = 0;
    s->eyes = (struct eyes){.sees_all = true};
    s->view = (struct choose_view){
        .settings = &s->settings, .agents = &s->all, .eyes = &s->eyes};
    s->m = msg_new(&(struct caller){0}, 1763169000000);
    CHECK(s->m);
    s->m->known.has_candidates = true;
    s->m->known.candidates = s->candidates;
    for (size_t i = 0; i < n; i++)
        stage_add(names[i]);
}

#define stage_open(...)                                                        \
    stage_open_n(sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *), \
                 (const char *[]){__VA_ARGS__})

static inline void stage_close(void)
{
    msg_free(stage.m);
    map_fini(&stage.by_name);
}

static inline struct agent *stage_agent(const char *name)
{
    for (size_t i = 0; i < stage.all.n; i++)
        if (str_eq(stage.list[i].name, str_of(name)))
            return &stage.list[i];
    T_FAIL("no one is called %s", name);
}

static inline struct candidate *stage_candidate(const char *name)
{
    return &stage.candidates[stage_agent(name) - stage.list];
}

static inline void stage_score(const char *name, double score)
{
    stage_candidate(name)->signals.cosine = (float)score;
}

static inline void stage_text(const char *text)
{
    stage.m->call.text = str_of(text);
}

static inline enum err stage_ask(void)
{
    return choose_agent(&stage.view, stage.m);
}

#endif
