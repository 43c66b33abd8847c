/* Removed large cards leave next to nothing behind. */
#include "test/t.h"

#include "test/lib/index_stage.h"

enum { AGENTS = 4, SKILLS = 60, WORDS = 600, WORD_CHARS = 9 };

static void write_words(struct world *w, char *out)
{
    for (size_t i = 0; i < WORDS; i++) {
        for (size_t k = 0; k + 1 < WORD_CHARS; k++)
            *out++ = "bcdfghjklmnpqrtv"[any(w, 16)];
        *out++ = ' ';
    }
}

/* An agent whose skills say nothing that anybody else says. */
static void put_large(struct world *w, uint32_t number)
{
    static char texts[SKILLS][WORDS * WORD_CHARS];
    struct skill skills[SKILLS] = {0};
    struct agent a = {.name = STR("large"), .visibility = VISIBILITY_PUBLIC};
    struct index_change *c;

    for (size_t i = 0; i < SKILLS; i++) {
        write_words(w, texts[i]);
        skills[i].id = skills[i].name = STR("skill");
        skills[i].description = (struct str){texts[i], sizeof(texts[i])};
    }
    a.skills = skills;
    a.n_skills = SKILLS;
    CHECK(index_prepare(w->x, &a, NULL, &c) == OK);
    index_put(w->x, number, c);
}

TEST(memory_falls_when_large_agents_go)
{
    struct world *w = world_new(40, 4, 3);
    size_t before, full, words;

    index_free(w->x);
    w->x = index_new(20000, stage_seed);
    CHECK(w->x);
    for (uint32_t i = 0; i < 20; i++)
        put_any(w, i);
    before = index_stats(w->x).bytes;
    words = index_stats(w->x).terms;
    for (uint32_t i = 0; i < AGENTS; i++)
        put_large(w, 20 + i);
    full = index_stats(w->x).bytes;
    words = index_stats(w->x).terms - words;
    CHECK(words > (size_t)AGENTS * SKILLS * WORDS * 9 / 10);
    for (uint32_t i = 0; i < AGENTS; i++)
        index_drop(w->x, 20 + i);
    CHECK(index_check(w->x));
    CHECK(index_stats(w->x).bytes < before + (full - before) / 50);
    /* Again, in another order and with others in between. */
    for (uint32_t i = 0; i < AGENTS; i++)
        put_large(w, 20 + i);
    put_any(w, 30);
    for (uint32_t i = 0; i < AGENTS; i++) {
        index_drop(w->x, 20 + i);
        put_any(w, i);
    }
    CHECK(index_check(w->x));
    CHECK(index_stats(w->x).bytes < before + (full - before) / 5);
    world_free(w);
}
