#ifndef CARD_STAGE_H
#define CARD_STAGE_H

/* A stage for tests of cards: a text read, and what came of it. */

#include "base/fault.h"
#include "model/card.h"
#include "test/t.h"

struct stage {
    struct arena arena;
    struct card_opts opts;
    struct card_problems problems;
    struct agent agent;
    enum err e;
};

static inline void stage_init(struct stage *s)
{
    *s = (struct stage){.opts = {.rights = CARD_MAY_ALL}};
    arena_init(&s->arena, (size_t)64 << 20);
}

static inline void stage_fini(struct stage *s)
{
    arena_fini(&s->arena);
}

static inline struct json *stage_parse(struct stage *s, struct str text)
{
    struct json_error bad = {.what = "", .at = 0};
    struct json *v = json_parse(&s->arena, text, 0, &bad);

    if (!v)
        T_FAIL("%s at %zu of %.*s", bad.what, bad.at, STR_ARG(text));
    return v;
}

static inline void stage_read(struct stage *s, struct str text)
{
    s->e = card_read(&s->arena, stage_parse(s, text), &s->opts, &s->agent,
                     &s->problems);
    CHECK(s->e == ERR_NOMEM || (s->e == OK) == (s->problems.n_all == 0));
}

/* Which problem stands there; fails when there is none. */
static inline const struct card_problem *stage_problem(const struct stage *s,
                                                       struct str pointer)
{
    for (size_t i = 0; i < s->problems.n; i++)
        if (str_eq(s->problems.list[i].pointer, pointer))
            return &s->problems.list[i];
    T_FAIL("nothing is said of %.*s", STR_ARG(pointer));
    return NULL;
}

static inline bool stage_has(struct str s, struct str part)
{
    return part.n == 0 || (s.n && memmem(s.p, s.n, part.p, part.n));
}

static inline void stage_write(const struct agent *a, enum card_view v,
                               struct buf *out)
{
    struct json_out o = json_out(out);

    card_write(&o, a, v);
    CHECK(!out->over);
    CHECK(json_check(buf_str(out), NULL) == OK);
}

#endif
