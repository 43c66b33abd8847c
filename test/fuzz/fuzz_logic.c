/* Any bytes as a condition and its data, a line each. What is read is worked
 * out to an end, twice to the same one, and what comes of it can be written
 * and read again. */
#include <assert.h>

#include "test/lib/logic_stage.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void nothing(void *ctx, const struct str *path, size_t n)
{
    size_t *bytes = ctx;

    for (size_t i = 0; i < n; i++)
        *bytes += path[i].n;
}

/* The rules it mentions must be walkable too. */
static void check_mentions(struct logic_stage *s, struct str rule)
{
    const struct json *tree;
    struct logic *l;
    size_t bytes = 0;

    arena_reset(&s->arena);
    tree = json_parse(&s->arena, rule, 0, NULL);
    l = tree ? logic_read(&s->arena, tree, NULL) : NULL;
    if (l)
        logic_mentions(l, nothing, &bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str rest = {(const char *)data, size};
    struct str rule = str_cut(&rest, '\n'), first, second;
    struct logic_stage a, b;

    logic_stage_init(&a);
    logic_stage_init(&b);
    first = logic_stage_run(&a, rule, rest);
    second = logic_stage_run(&b, rule, rest);
    assert(str_eq(first, second));
    if (first.p == a.out.p && a.out.n)
        assert(json_check(first, NULL) == OK);
    check_mentions(&a, rule);
    logic_stage_fini(&a);
    logic_stage_fini(&b);
    return 0;
}
