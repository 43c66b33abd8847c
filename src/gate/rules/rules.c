/* Reading a rules file: first the agents, since everything else names them,
 * then the settings, then the rules, and whether the rules are consistent. An
 * error in one part does not stop the others, so that all problems are reported
 * at once. */
#include "gate/rules/rules_reader.h"

#include <stdlib.h>

#include "base/mem.h"

#define MINUTE_MS INT64_C(60000)
#define DAY_MS    (24 * 60 * MINUTE_MS)

enum {
    RULES_BYTES_MAX = 512 * 1024 * 1024, /* everything that is kept of a file */
    TREE_BYTES_MAX = 512 * 1024 * 1024,  /* while the file is read */
};

static const struct gate_rules default_rules = {
    .about =
        {
            .people = {.remind_ms = 30 * MINUTE_MS, .reminders = 10},
            .targets = {.routed_per_hour = 100,
                        .hold_ms = 30 * MINUTE_MS,
                        .escalations_per_day = 5},
            .limits = {.most = 100 * 1000,
                       .most_per_agent = 10 * 1000,
                       .expire_ms = DAY_MS,
                       .future_ms = 14 * 60 * MINUTE_MS,
                       .stale_ms = 7 * DAY_MS},
        },
};

const struct gate_rules *gate_rules_none(void)
{
    return &default_rules;
}

const struct gate_about *gate_rules_about(const struct gate_rules *r)
{
    return &r->about;
}

size_t gate_rules_count(const struct gate_rules *r)
{
    return r->n_rules;
}

static const struct gate_revival *find_revival(const struct gate_rules *r,
                                               struct str agent)
{
    size_t from = 0, to = r->n_revivals;

    while (from < to) {
        size_t mid = from + (to - from) / 2;
        int order = str_cmp_nocase(agent, r->revivals[mid].agent);

        if (order == 0)
            return &r->revivals[mid];
        if (order < 0)
            to = mid;
        else
            from = mid + 1;
    }
    return NULL;
}

struct gate_revival gate_revival_of(const struct gate_rules *r,
                                    struct str agent)
{
    const struct gate_revival *line = find_revival(r, agent);

    return line ? *line
                : (struct gate_revival){
                      .agent = agent, .attempts = 3, .pause_ms = 10 * 1000};
}

bool gate_rules_name(const struct gate_rules *r, struct str agent,
                     struct str *owner)
{
    const struct gate_revival *line = find_revival(r, agent);

    *owner = line ? line->owner : STR("");
    return line != NULL;
}

void gate_rules_free(struct gate_rules *r)
{
    if (!r)
        return;
    arena_fini(&r->arena);
    free(r);
}

static const struct str settings_names[] = {
    STR("$schema"), STR("agents"),     STR("channels"), STR("holds"),
    STR("people"),  STR("timestamps"), STR("targets"),
};

enum { N_SETTINGS = sizeof(settings_names) / sizeof(*settings_names) };

static struct str top_level_name(size_t i)
{
    return i < N_SETTINGS ? settings_names[i]
                          : section_name((enum section)(i - N_SETTINGS));
}

static void check_top_level(struct reader *rd, const struct json *root)
{
    JSON_EACH(kid, root)
    {
        struct str_guess g = str_guess(kid->key);
        size_t i = 0, n = N_SETTINGS + N_SECTIONS;

        while (i < n && !str_eq(kid->key, top_level_name(i)))
            i++;
        if (i < n)
            continue;
        for (i = 0; i < n; i++)
            str_guess_offer(&g, top_level_name(i),
                            str_distance(kid->key, top_level_name(i)));
        if (g.name.n)
            problem_add(rd, member_offset(rd, kid),
                        "unknown section %s; did you mean \"%.*s\"?",
                        quote_text(kid->key).text, STR_ARG(g.name));
        else
            problem_add(rd, member_offset(rd, kid),
                        "unknown section %s; docs/rules.md lists the sections",
                        quote_text(kid->key).text);
    }
}

/* The longest time for which any rule looks back. */
static void find_longest_ms(struct gate_rules *r)
{
    int64_t *longest = &r->about.longest_ms;

    for (size_t i = 0; i < r->n_rules; i++) {
        const struct rule *rule = &r->rules[i];
        bool is_like = rule->section == SECTION_DUPLICATES ||
                       rule->section == SECTION_SUPERSEDING ||
                       rule->section == SECTION_ESCALATIONS;

        if (is_like && rule->like.within_ms > *longest)
            *longest = rule->like.within_ms;
        if (rule->section != SECTION_DEPENDENCIES)
            continue;
        for (size_t k = 0; k < rule->after.n_needs; k++) {
            int64_t ms = rule->after.needs[k].within_ms;

            if (!ms)
                ms = GATE_DURATION_MAX_MS;
            if (ms > *longest)
                *longest = ms;
        }
    }
}

static enum err read_root_object(struct reader *rd, struct arena *scratch)
{
    struct json_error err;
    const struct json *agents, *channels;
    const struct json *root =
        json_parse(scratch, rd->text, JSON_WITH_COMMENTS, &err);

    if (!root) {
        if (strcmp(err.what, "out of memory") == 0 ||
            (strcmp(err.what, "too large") == 0 &&
             scratch->used < TREE_BYTES_MAX / 2))
            return ERR_NOMEM;
        problem_add(rd, err.at, "%s", err.what);
        return ERR_SYNTAX;
    }
    if (!is_object(rd, root, "a rules file"))
        return ERR_BAD_CONFIG;
    check_top_level(rd, root);
    agents = json_get(root, STR("agents"));
    channels = json_get(root, STR("channels"));
    if (agents)
        read_agents_section(rd, agents);
    read_about(rd, root);
    if (channels)
        read_channels(rd, channels);
    read_rule_sections(rd, root);
    /* A dependency with an error in it could look like a cycle. */
    if (!rd->problems->n && !rd->is_out_of_memory)
        find_cycles(rd);
    if (rd->is_out_of_memory)
        return ERR_NOMEM;
    if (rd->problems->n)
        return ERR_BAD_CONFIG;
    find_longest_ms(rd->rules);
    return rules_index(rd->rules);
}

static enum err read_into(struct gate_rules *r, struct str text,
                          struct gate_problems *problems)
{
    static const uint64_t seed[2] = {0x5167, 0xb0c5};
    struct reader rd = {
        .rules = r, .arena = &r->arena, .text = text, .problems = problems};
    struct arena scratch;
    enum err e;

    arena_init(&r->arena, RULES_BYTES_MAX);
    r->about = default_rules.about;
    arena_init(&scratch, TREE_BYTES_MAX);
    map_init(&rd.agents, SIZE_MAX, seed);
    map_init(&rd.names, SIZE_MAX, seed);
    e = read_root_object(&rd, &scratch);
    map_fini(&rd.names);
    map_fini(&rd.agents);
    arena_fini(&scratch);
    return e;
}

enum err gate_rules_read(struct str text, struct gate_rules **out,
                         struct gate_problems *problems)
{
    struct reader rd = {.text = text, .problems = problems};
    enum err e = ERR_NOMEM;
    struct gate_rules *r;

    *out = NULL;
    problems->n = problems->n_bytes = 0;
    problems->text[0] = '\0';
    if (text.n > GATE_RULES_BYTES) {
        problem_add(&rd, 0, "the file is larger than %d bytes, the limit",
                    GATE_RULES_BYTES);
        return ERR_LIMIT;
    }
    r = mem_new(sizeof(*r));
    if (r)
        e = read_into(r, text, problems);
    if (e == ERR_NOMEM) {
        problems->n = problems->n_bytes = 0;
        problem_add(&rd, 0, "%s", "out of memory while reading the file");
    }
    problem_end(problems);
    if (e)
        gate_rules_free(r);
    else
        *out = r;
    return e;
}
