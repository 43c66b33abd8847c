/* The card in docs/protocol.md: its example is valid, and its table has all
 * fields. */
#include "test/lib/card_stage.h"

#include "model/card_internal.h"

static struct str section(struct stage *s)
{
    FILE *f = fopen(SOURCE_ROOT "/docs/protocol.md", "r");
    char *all = arena_alloc(&s->arena, 1 << 20);
    const char *from, *to;

    CHECK(f && all);
    all[fread(all, 1, (1 << 20) - 1, f)] = '\0';
    fclose(f);
    from = strstr(all, "\n## The card\n");
    CHECK(from);
    to = strstr(from + 5, "\n## ");
    CHECK(to);
    return (struct str){from, (size_t)(to - from)};
}

TEST(the_example_is_a_card)
{
    struct stage s;
    struct str text;
    const char *from, *to;

    stage_init(&s);
    text = section(&s);
    from = memmem(text.p, text.n, "```json\n", 8);
    CHECK(from);
    from += 8;
    to = strstr(from, "```");
    CHECK(to);
    stage_read(&s, (struct str){from, (size_t)(to - from)});
    CHECK_INT(s.e, OK);
    for (size_t i = 0; i < card_fields.n; i++) {
        const struct card_field *f = &card_fields.list[i];

        if (!f->is_ours && !f->is_config_only &&
            !f->type->is_given(f, card_look_at(f, &s.agent), CARD_ALL))
            T_FAIL("%s is not in the example", f->name);
    }
    stage_fini(&s);
}

/* Each name of a table with its parent: `routing.keywords`. */
static void expect(struct str text, const struct card_fields *t,
                   const char *prefix)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct card_field *f = &t->list[i];
        char name[128], inner[128];

        snprintf(name, sizeof(name), "`%s%s`", prefix, f->name);
        snprintf(inner, sizeof(inner), "%s%s%s.", prefix, f->name,
                 f->type == &card_skills ? "[]" : "");
        if (f->is_config_only)
            continue; /* docs/config.md is made from the table itself */
        if (f->type == &card_group || f->type == &card_pricing ||
            f->type == &card_skills)
            expect(text, f->inner, inner);
        else if (!stage_has(text, str_of(name)))
            T_FAIL("%s is not in docs/protocol.md", name);
    }
}

TEST(every_field_is_in_the_table)
{
    struct stage s;

    stage_init(&s);
    expect(section(&s), &card_fields, "");
    stage_fini(&s);
}
