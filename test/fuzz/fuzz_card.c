/* Any bytes as a card, in both spellings and with all rights and none: never a
 * crash; what is refused is refused with places and words; what is taken is
 * within its limits, is written in a form that comes back the same, and shows
 * others no secret. What stands behind a NUL is a patch over it. */
#include <assert.h>
#include <stdlib.h>

#include "model/card.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void write_it(const struct agent *a, enum card_view v, struct buf *out)
{
    struct json_out o = json_out(out);

    card_write(&o, a, v);
    assert(!out->over && json_check(buf_str(out), NULL) == OK);
}

static void check_problems(const struct card_problems *p, enum err e)
{
    size_t n_forbidden = 0;

    assert(p->n >= 1 && p->n <= CARD_PROBLEMS_MAX && p->n_all >= p->n);
    for (size_t i = 0; i < p->n; i++) {
        assert(p->list[i].message.n);
        assert(!p->list[i].pointer.n || p->list[i].pointer.p[0] == '/');
        n_forbidden += p->list[i].is_forbidden;
    }
    assert(e ==
           (p->n_forbidden == p->n_all ? ERR_NOT_ALLOWED : ERR_BAD_REQUEST));
    assert(p->n < p->n_all || n_forbidden == p->n_forbidden);
}

static void check_skill(const struct agent *a, size_t i)
{
    const struct skill *s = &a->skills[i];

    assert(agent_skill(a, s->id) == s);
    assert(s->name.n >= 1 && s->name.n <= SKILL_NAME_MAX);
    assert(!str_has_any_control(s->name));
    assert(s->tags.n <= SKILL_TAGS_MAX && s->examples.n <= SKILL_EXAMPLES_MAX);
    assert(agent_price(a, s) >= 0 && agent_price(a, s) <= AGENT_PRICE_MAX);
}

static void check_agent(const struct agent *a)
{
    struct agent_url url;

    assert(agent_name_is_valid(a->name));
    assert(!str_eq_nocase(a->name, STR("search")));
    assert(agent_url_read(a->url, &url, NULL) == OK);
    assert(a->description.n <= AGENT_DESCRIPTION_MAX);
    assert(a->n_skills <= AGENT_SKILLS_MAX);
    for (size_t i = 0; i < a->n_skills; i++)
        check_skill(a, i);
}

/* Kept, read, and kept again. */
static void comes_back(struct arena *arena, const struct agent *a)
{
    struct buf first, second;
    struct agent again;
    struct json_out o;

    buf_init(&first, AGENT_CARD_MAX);
    buf_init(&second, 2 * AGENT_CARD_MAX);
    write_it(a, CARD_STORED, &first);
    assert(card_read_stored(arena, buf_str(&first), &again) == OK);
    write_it(&again, CARD_STORED, &second);
    assert(str_eq(buf_str(&first), buf_str(&second)));
    again.creator = a->creator;
    again.org = a->org;
    again.kind = a->kind;
    buf_clear(&second);
    o = json_out(&second);
    card_diff(&o, a, &again);
    assert(str_eq(buf_str(&second), STR("[]")));
    buf_clear(&second);
    write_it(a, CARD_ALL, &second);
    buf_fini(&first);
    buf_fini(&second);
}

static void hides(struct arena *arena, const struct agent *a)
{
    struct buf out;
    struct json *v;

    buf_init(&out, 2 * AGENT_CARD_MAX);
    write_it(a, CARD_OTHERS, &out);
    v = json_parse(arena, buf_str(&out), 0, NULL);
    assert(v && !json_get(v, STR("wake")) && !json_get(v, STR("restart")));
    assert(!json_get(json_get(v, STR("routing")), STR("system_prompt")));
    assert(!json_get(json_get(v, STR("authentication")), STR("credentials")));
    buf_clear(&out);
    card_search_text(&out, a);
    card_routing_text(&out, a);
    for (size_t i = 0; i < a->n_skills; i++)
        card_skill_text(&out, &a->skills[i]);
    assert(!out.over);
    buf_fini(&out);
}

static void read_as(struct arena *arena, const struct json *v,
                    enum card_dialect dialect)
{
    struct card_opts opts = {.dialect = dialect, .rights = CARD_MAY_ALL};
    static struct card_problems problems;
    struct agent a, poor;
    enum err e = card_read(arena, v, &opts, &a, &problems);

    if (e) {
        check_problems(&problems, e);
    } else {
        check_agent(&a);
        comes_back(arena, &a);
        hides(arena, &a);
    }
    opts.rights = 0;
    if (card_read(arena, v, &opts, &poor, &problems) == OK)
        assert(e == OK && !poor.restart.n && !poor.creator.n && !poor.kind);
    opts.before = &a;
    /* Anyone who has it all already may say it all. */
    if (e == OK)
        assert(card_read(arena, v, &opts, &poor, &problems) == OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct str all = {(const char *)data, n};
    size_t at = str_find(all, '\0', 0);
    struct json *v, *patch;
    struct arena arena;

    arena_init(&arena, (size_t)256 << 20);
    v = json_parse(&arena, str_sub(all, 0, at), 0, NULL);
    if (v) {
        read_as(&arena, v, CARD_WIRE);
        read_as(&arena, v, CARD_CONFIG);
    }
    patch = at < n ? json_parse(&arena, str_sub(all, at + 1, n), 0, NULL) : v;
    if (v && patch) {
        v = card_merge(&arena, v, patch);
        assert(v);
        read_as(&arena, v, CARD_WIRE);
    }
    arena_fini(&arena);
    return 0;
}
