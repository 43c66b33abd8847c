#ifndef CHOOSE_STAGE_H
#define CHOOSE_STAGE_H

/* A few agents, settings and one message, for tests of choosing. */

#include "choose/layers/choose.h"
#include "test/t.h"

enum { STAGE_AGENTS = 8 };

struct stage {
    struct agent list[STAGE_AGENTS];
    const struct agent *ptrs[STAGE_AGENTS];
    char lower[STAGE_AGENTS][AGENT_NAME_MAX];
    struct map by_name;
    struct agents all;
    struct choose_settings settings;
    struct eyes eyes;
    struct msg *m;
};

static struct stage stage;

static inline void stage_message(void)
{
    msg_free(stage.m);
    stage.m = msg_new(&(struct caller){0}, 5);
    CHECK(stage.m);
}

/* Agents of these names, which are in order. */
static inline void stage_of(size_t n, const char *const *names)
{
    const uint64_t seed[2] = {1, 2};
    struct stage *s = &stage;

    CHECK(n <= STAGE_AGENTS);
    *s = (struct stage){.settings = choose_defaults(),
                        .eyes = {.sees_all = true}};
    s->settings.is_auto = s->settings.is_centred = false;
    s->settings.is_off[LAYER_SEMANTIC] = true;
    map_init(&s->by_name, STAGE_AGENTS, seed);
    for (size_t i = 0; i < n; i++) {
        struct str name = str_of(names[i]);

        s->list[i] = (struct agent){.name = name, .url = STR("echo:")};
        s->ptrs[i] = &s->list[i];
        CHECK(map_put(&s->by_name,
                      str_lowered(name, s->lower[i], AGENT_NAME_MAX),
                      &s->list[i]) == OK);
    }
    s->all = (struct agents){s->ptrs, n, &s->by_name};
    stage_message();
}

#define STAGE(...)                                                         \
    stage_of(sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *), \
             (const char *[]){__VA_ARGS__})

/* From now on the eyes are those of "anna", and this one is not hers to see;
 * the others are everybody's. */
static inline void stage_hide(size_t hidden)
{
    stage.eyes = (struct eyes){.user = STR("anna")};
    for (size_t i = 0; i < stage.all.n; i++) {
        stage.list[i].creator = STR("ben");
        stage.list[i].visibility = VISIBILITY_PUBLIC;
    }
    stage.list[hidden].visibility = VISIBILITY_PRIVATE;
}

static inline struct choose_view stage_view(void)
{
    return (struct choose_view){
        .settings = &stage.settings, .agents = &stage.all, .eyes = &stage.eyes};
}

static inline enum err stage_ask(void)
{
    struct choose_view v = stage_view();

    return choose_agent(&v, stage.m);
}

static inline void stage_leave(void)
{
    msg_free(stage.m);
    stage.m = NULL;
    map_fini(&stage.by_name);
}

static inline bool stage_says(const char *words)
{
    if (strcmp(stage.m->why.text, words) == 0)
        return true;
    fprintf(stderr, "wanted: %s\ngot:    %s\n", words, stage.m->why.text);
    return false;
}

#endif
