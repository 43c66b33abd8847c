#ifndef TEST_WEEK_HOUSE_H
#define TEST_WEEK_HOUSE_H

/* One life of the server: the walk's stage on a folder that outlives it. */

#include "base/log.h"
#include "test/lib/walk_stage.h"
#include "test/week/world.h"

static struct world *world;

static const char *const agent_names[AGENTS] = {"Jay", "Z", "Rick", "Leroy"};

static inline uint64_t chance(uint64_t below)
{
    world->random = world->random * 6364136223846793005U + 1442695040888963407U;
    return (world->random >> 33) % below;
}

static inline int64_t between_ms(int64_t least_s, int64_t most_s)
{
    return 1000 * (least_s + (int64_t)chance((uint64_t)(most_s - least_s)));
}

static inline void fail_with(const struct why *why)
{
    T_FAIL("%s", why->text);
}

static inline struct gate_rules *house_rules(void)
{
    static char text[64 * 1024];
    struct gate_problems problems = {0};
    struct gate_rules *rules = NULL;
    FILE *f = fopen(SOURCE_ROOT "/test/week/rules.json", "r");
    size_t n;

    CHECK(f);
    n = fread(text, 1, sizeof(text), f);
    CHECK(n > 0 && n < sizeof(text));
    fclose(f);
    if (gate_rules_read((struct str){text, n}, &rules, &problems) != OK)
        T_FAIL("rules.json: %.*s", (int)problems.n_bytes, problems.text);
    return rules;
}

/* The rooms, in a folder that may have been left by another life. */
static inline void house_open(const char *root)
{
    struct why why = {""};
    struct walk_opts opts;

    snprintf(stage.root, sizeof(stage.root), "%s", root);
    stage.now = (struct clock_fake){.wall_ms = world->now_ms,
                                    .mono_ms = world->now_ms / 2};
    CHECK(loop_init(&stage.loop, clock_fake(&stage.now)) == OK);
    log_init(&stage.log, open("/dev/null", O_WRONLY | O_CLOEXEC), LOG_DEBUG,
             LOG_TEXT, clock_fake(&stage.now));
    stage.seed.state = chance(1U << 30);
    stage.routing.choose = choose_defaults();
    id_maker_init(&stage.ids, rand_seeded(&stage.seed));
    for (int i = 0; i < AGENTS; i++) {
        static char urls[AGENTS][32];

        snprintf(urls[i], sizeof(urls[i]), "ws-agent://%s", agent_names[i]);
        stage.agents[i] = (struct agent){.name = str_of(agent_names[i]),
                                         .url = str_of(urls[i])};
    }
    stage.n_agents = AGENTS;
    stage.rules = house_rules();
    if (store_folder_open(&stage.folder, str_of(stage.root), &why) != OK)
        fail_with(&why);
    stage_start();
    opts = stage_walk_opts();
    opts.limits.max_unfinished = MESSAGES_MAX;
    opts.limits.timeout_ms = 6 * HOUR_MS; /* longer than anybody is away */
    walk_set(stage.walk, &opts);
}

#endif
