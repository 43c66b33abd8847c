#ifndef GATE_STAGE_H
#define GATE_STAGE_H

/* What the tests of the gate share: a small world that is known, to be set up
 * by hand, and messages about it. Files of rules are those of rules_stage.h. */

#include "gate/rules/evaluation.h"
#include "test/lib/rules_stage.h"

enum { WORLD_MAX = 64 };

#define SECOND INT64_C(1000)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)

/* 2025-02-15T09:00:15Z, of the seed's example. */
#define NOW INT64_C(1739610015000)

struct world_seen {
    struct gate_key key;
    struct gate_seen seen;
};

struct world {
    struct gate_agent agents[WORLD_MAX];
    size_t n_agents;
    struct {
        struct str reference;
        struct gate_event event;
    } events[WORLD_MAX];
    size_t n_events;
    struct world_seen seen[4 * WORLD_MAX];
    size_t n_seen;
};

static inline bool world_agent(void *ctx, struct str name,
                               struct gate_agent *out)
{
    const struct world *w = ctx;

    for (size_t i = 0; i < w->n_agents; i++)
        if (str_eq_nocase(w->agents[i].name, name)) {
            *out = w->agents[i];
            return true;
        }
    *out = (struct gate_agent){.name = name};
    return false;
}

static inline size_t world_events(void *ctx, struct str reference,
                                  struct gate_event *out, size_t max)
{
    const struct world *w = ctx;
    size_t n = 0;

    for (size_t i = 0; i < w->n_events && n < max; i++)
        if (str_eq(w->events[i].reference, reference))
            out[n++] = w->events[i].event;
    return n;
}

/* The newest of that key. */
static inline bool world_was_seen(void *ctx, const struct gate_key *key,
                                  struct gate_seen *out)
{
    const struct world *w = ctx;

    for (size_t i = w->n_seen; i > 0; i--)
        if (memcmp(&w->seen[i - 1].key, key, sizeof(*key)) == 0) {
            *out = w->seen[i - 1].seen;
            return true;
        }
    return false;
}

static inline struct gate_view world_view(struct world *w)
{
    return (struct gate_view){world_agent, world_events, world_was_seen, w};
}

static inline struct gate_agent *world_has(struct world *w, const char *name,
                                           enum agent_state state)
{
    struct gate_agent *a = &w->agents[w->n_agents++];

    CHECK(w->n_agents <= WORLD_MAX);
    *a = (struct gate_agent){.name = str_of(name),
                             .is_known = true,
                             .state = state,
                             .queue_max = 100};
    return a;
}

/* Jay, Z, Rick and Leroy, all of them well; Z's data is two hours old. */
static inline struct world em_world(void)
{
    struct world w = {.n_agents = 0};

    world_has(&w, "Jay", AGENT_IDLE);
    world_has(&w, "Z", AGENT_IDLE)->data_at_ms = NOW - 2 * HOUR;
    world_has(&w, "Rick", AGENT_IDLE);
    world_has(&w, "Leroy", AGENT_IDLE);
    return w;
}

static inline struct gate_agent *world_find(struct world *w, const char *name)
{
    for (size_t i = 0; i < w->n_agents; i++)
        if (str_eq(w->agents[i].name, str_of(name)))
            return &w->agents[i];
    T_FAIL("there is no %s", name);
}

static inline void world_event(struct world *w, const char *reference,
                               const char *from, const char *type,
                               enum approval approved, int64_t at_ms)
{
    CHECK(w->n_events < WORLD_MAX);
    w->events[w->n_events].reference = str_of(reference);
    w->events[w->n_events++].event =
        (struct gate_event){.from = str_of(from),
                            .to = STR("Z"),
                            .type = str_of(type),
                            .message_id = STR("MSG-E"),
                            .at_ms = at_ms,
                            .approved = approved};
}

/* It was let in then, and is called so. */
static inline void world_let_in(struct world *w, const struct gate_rules *r,
                                const struct envelope *e, const char *called,
                                int64_t at_ms)
{
    struct gate_marks marks;
    struct arena a;

    arena_init(&a, 1 << 20);
    CHECK_INT(gate_marks(r, e, &a, &marks), OK);
    CHECK(w->n_seen + marks.n <= sizeof(w->seen) / sizeof(*w->seen));
    for (size_t i = 0; i < marks.n; i++)
        w->seen[w->n_seen++] = (struct world_seen){
            marks.list[i].key, {at_ms, str_of(called), e->reference}};
    arena_fini(&a);
}

/* The seed's own message. */
static inline struct envelope seed_message(void)
{
    return (struct envelope){
        .from = STR("Jay"),
        .to = STR("Z"),
        .type = STR("REQUEST"),
        .priority = PRIORITY_NORMAL,
        .at_ms = NOW - 15 * SECOND,
        .reference = STR("SUBM-C042-001"),
        .payload = STR("{\"consultant_id\": \"C-042\", \"job_posting_id\": "
                       "\"LI-9876\", \"vendor\": \"TrueBlue\", "
                       "\"end_client\": \"Microsoft\", "
                       "\"confidence_score\": 8.2}"),
        .context = STR("Jay completed research, confidence >6.5, no "
                       "staleness risk"),
        .scope = STR("org:em"),
    };
}

static inline struct envelope message_of(const char *from, const char *to,
                                         const char *type)
{
    struct envelope e = seed_message();

    e.from = str_of(from);
    e.to = str_of(to);
    e.type = str_of(type);
    return e;
}

static inline struct gate_result
decided(const struct gate_rules *r, struct world *w, const struct envelope *e)
{
    struct gate_view v = world_view(w);
    struct gate_result p;

    gate_decide(r, &v, e, NOW, &p, NULL);
    return p;
}

/* Whether it waits for that: "agent:Z". */
static inline bool waits_for(const struct gate_result *p, const char *key)
{
    bool has = false;
    struct buf b;

    buf_init(&b, 1024);
    for (size_t i = 0; i < p->n_keys; i++) {
        buf_clear(&b);
        wait_key_write(&p->keys[i], &b);
        has |= str_eq(buf_str(&b), str_of(key));
    }
    buf_fini(&b);
    return has;
}

#endif
