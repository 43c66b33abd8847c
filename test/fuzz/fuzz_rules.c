/* Any bytes as a file of rules: never a crash; what is refused is refused with
 * words that fit; what is taken is found by the index as by asking all. */
#include <assert.h>

#include "gate/rules/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_problems(const struct gate_problems *p, enum err e)
{
    size_t n_lines = 0;

    assert((e != OK) == (p->n > 0));
    assert(p->n_bytes < sizeof(p->text) && strlen(p->text) == p->n_bytes);
    for (size_t i = 0; i < p->n_bytes; i++)
        n_lines += p->text[i] == '\n';
    assert(n_lines <= GATE_PROBLEMS_MAX + 1);
    assert(!p->n || p->text[p->n_bytes - 1] == '\n');
}

/* A message that a rule names, as far as it names one. */
static struct envelope envelope_for(const struct match *m)
{
    return (struct envelope){
        .from = m->from.n ? m->from.list[m->from.n - 1] : STR("missing"),
        .to = m->to.n ? m->to.list[0] : STR("missing"),
        .type = m->type.n ? m->type.list[m->type.n / 2] : STR("NOTHING"),
        .priority = PRIORITY_NORMAL};
}

static void check_index(const struct gate_rules *r, const struct envelope *e)
{
    struct rule_pick pick;

    rules_pick(&pick, r, e);
    for (unsigned s = 0; s < N_SECTIONS; s++) {
        const struct rule *found = rules_first(&pick, (enum section)s);

        for (size_t i = r->first[s]; i < r->first[s + 1]; i++)
            if (rule_fits(&r->rules[i], e, e->priority)) {
                assert(found == &r->rules[i]);
                found = rules_next(&pick);
            }
        assert(!found);
    }
}

static void check_rules(const struct gate_rules *r)
{
    const struct gate_about *a = gate_rules_about(r);

    assert(gate_rules_count(r) <= GATE_RULES_MAX);
    assert(a->longest_ms >= 0 && a->longest_ms <= GATE_DURATION_MAX_MS);
    for (size_t i = 1; i < a->agents.n; i++)
        assert(str_cmp_nocase(a->agents.list[i - 1], a->agents.list[i]) < 0);
    for (size_t i = 0; i < a->agents.n; i++)
        assert(str_eq(gate_revival_of(r, a->agents.list[i]).agent,
                      a->agents.list[i]));
    for (size_t i = 0; i < r->n_rules && i < 50; i++) {
        struct envelope e = envelope_for(&r->rules[i].match);

        assert(r->rules[i].name.n);
        check_index(r, &e);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static struct gate_problems problems;
    struct gate_rules *r;
    enum err e =
        gate_rules_read((struct str){(const char *)data, n}, &r, &problems);

    assert((e == OK) == (r != NULL));
    check_problems(&problems, e);
    if (r)
        check_rules(r);
    gate_rules_free(r);
    return 0;
}
