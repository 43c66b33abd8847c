/* The index finds the same rules in the same order as a walk over all rules,
 * and rules for other messages cost nothing. */
#include "test/lib/rules_stage.h"

enum { N_NAMES = 12, N_KINDS = 9 };

static const char *const priority_names[] = {"URGENT", "HIGH", "NORMAL", "LOW"};

/* The same numbers in every run. */
static unsigned next_of(uint64_t *seed, unsigned n)
{
    *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (unsigned)(*seed >> 33) % n;
}

/* None, one, or some of them. */
static void add_some(struct buf *b, uint64_t *seed, const char *field,
                     const char *prefix, unsigned n, bool *is_first)
{
    unsigned n_list = next_of(seed, 4);

    if (n_list == 0)
        return;
    buf_addf(b, "%s\"%s\":[", *is_first ? "" : ",", field);
    for (unsigned i = 0; i < n_list; i++)
        buf_addf(b, "%s\"%s%u\"", i ? "," : "", prefix, next_of(seed, n));
    buf_addf(b, "]");
    *is_first = false;
}

static struct gate_rules *any_rules(uint64_t *seed, unsigned n)
{
    static const char *const sections[] = {"sla", "capacity", "duplicates"};
    static struct gate_problems problems;
    struct gate_rules *r;
    struct buf b;

    buf_init(&b, 1 << 20);
    buf_addf(&b, "{\"agents\":{");
    for (unsigned i = 0; i < N_NAMES; i++)
        buf_addf(&b, "%s\"a%u\":{}", i ? "," : "", i);
    buf_addf(&b, "}");
    for (unsigned s = 0; s < 3; s++) {
        buf_addf(&b, ",\"%s\":[", sections[s]);
        for (unsigned i = 0; i < n; i++) {
            bool is_first = true;

            buf_addf(&b, "%s{\"rule\":\"%u.%u\",\"%s\":1,\"match\":{",
                     i ? "," : "", s, i, s == 1 ? "queue" : "within");
            add_some(&b, seed, "from", "A", N_NAMES, &is_first);
            add_some(&b, seed, "to", "a", N_NAMES, &is_first);
            add_some(&b, seed, "type", "K", N_KINDS, &is_first);
            if (next_of(seed, 4) == 0)
                buf_addf(&b, "%s\"priority\":\"%s\"", is_first ? "" : ",",
                         priority_names[next_of(seed, 4)]);
            buf_addf(&b, "}}");
        }
        buf_addf(&b, "]");
    }
    buf_addf(&b, "}");
    if (gate_rules_read(buf_str(&b), &r, &problems) != OK)
        T_FAIL("%s", problems.text);
    buf_fini(&b);
    return r;
}

static size_t compare(const struct gate_rules *r, const struct envelope *e)
{
    struct rule_pick pick;
    size_t n = 0;

    rules_pick(&pick, r, e);
    for (unsigned s = 0; s < N_SECTIONS; s++) {
        const struct rule *found = rules_first(&pick, (enum section)s);

        for (size_t i = r->first[s]; i < r->first[s + 1]; i++) {
            if (!rule_fits(&r->rules[i], e, e->priority))
                continue;
            CHECK(found == &r->rules[i]);
            found = rules_next(&pick);
            n++;
        }
        CHECK(!found);
    }
    return n;
}

TEST(the_index_finds_what_asking_all_finds)
{
    uint64_t seed = 7;
    size_t n = 0;

    for (unsigned round = 0; round < 20; round++) {
        struct gate_rules *r = any_rules(&seed, round * 4);

        for (unsigned i = 0; i < 50; i++) {
            char from[8], to[8], type[8];
            struct envelope e = {.priority =
                                     (enum task_priority)next_of(&seed, 4)};

            snprintf(from, sizeof(from), "a%u", next_of(&seed, N_NAMES + 1));
            snprintf(to, sizeof(to), "A%u", next_of(&seed, N_NAMES + 1));
            snprintf(type, sizeof(type), "K%u", next_of(&seed, N_KINDS + 1));
            e.from = str_of(from), e.to = str_of(to), e.type = str_of(type);
            n += compare(r, &e);
        }
        gate_rules_free(r);
    }
    CHECK(n > 1000);
}

/* 100 x 100 x 100 keys would be a million. */
TEST(a_rule_for_many_of_each_is_found)
{
    static struct gate_problems problems;
    struct envelope e = {
        .from = STR("N7"), .to = STR("n99"), .type = STR("n3")};
    struct gate_rules *r;
    struct buf b, list;

    buf_init(&b, 1 << 20);
    buf_init(&list, 1 << 20);
    for (unsigned i = 0; i < 100; i++)
        buf_addf(&list, "%s\"n%u\"", i ? "," : "", i);
    buf_addf(&b, "{\"agents\":{");
    for (unsigned i = 0; i < 100; i++)
        buf_addf(&b, "%s\"n%u\":{}", i ? "," : "", i);
    buf_addf(&b,
             "},\"sla\":[{\"rule\":\"x\",\"within\":1,\"match\":{\"from\":"
             "[%.*s],\"to\":[%.*s],\"type\":[%.*s]}}]}",
             STR_ARG(buf_str(&list)), STR_ARG(buf_str(&list)),
             STR_ARG(buf_str(&list)));
    if (gate_rules_read(buf_str(&b), &r, &problems) != OK)
        T_FAIL("%s", problems.text);
    CHECK_INT(compare(r, &e), 1);
    e.type = STR("N3"); /* kinds are case-sensitive */
    CHECK_INT(compare(r, &e), 0);
    gate_rules_free(r);
    buf_fini(&list);
    buf_fini(&b);
}

/* Counted rather than timed: the rules visited for one message. */
TEST(rules_about_others_are_not_looked_at)
{
    static struct gate_problems problems;
    struct envelope e = {.from = STR("a"), .to = STR("a"), .type = STR("K77")};
    struct rule_pick pick;
    struct gate_rules *r;
    size_t n = 0;
    struct buf b;

    buf_init(&b, 1 << 20);
    buf_addf(&b, "{\"agents\":{\"a\":{}},\"sla\":[");
    for (unsigned i = 0; i < 1000; i++)
        buf_addf(&b,
                 "%s{\"rule\":\"%u\",\"within\":1,\"match\":{\"to\":\"a\","
                 "\"type\":\"K%u\"}}",
                 i ? "," : "", i, i);
    buf_addf(&b, "]}");
    if (gate_rules_read(buf_str(&b), &r, &problems) != OK)
        T_FAIL("%s", problems.text);
    rules_pick(&pick, r, &e);
    CHECK(rules_first(&pick, SECTION_SLA) == &r->rules[77]);
    for (size_t i = 0; i < pick.n_ways; i++)
        n += (size_t)(pick.end[i] - pick.at[i]);
    CHECK_INT(n, 0); /* that was the only one */
    gate_rules_free(r);
    buf_fini(&b);
}
