#ifndef TEST_WEEK_AGENTS_H
#define TEST_WEEK_AGENTS_H

/* The agents: each has a line as the hub would give it one, takes a while for
 * what it is given, fails at times, dies and comes back, with or without what
 * it had in hand. They outlive the server, and connect again to the next. */

#include "test/week/letters.h"
#include "wire/wire.h"

static uint64_t lines[AGENTS]; /* of this life; zero: none */

/* The value of "key":"…" in a message, up to its quote. */
static inline bool find_text(struct str message, const char *key, char *out,
                             size_t n)
{
    const char *at = memmem(message.p, message.n, key, strlen(key));
    size_t i = 0;

    if (!at)
        return false;
    at += strlen(key);
    while (at < message.p + message.n && *at != '"' && i < n - 1)
        out[i++] = *at++;
    out[i] = '\0';
    return true;
}

/* What it is carried as must be let go, by the row, and in its order. */
static inline void check_carried(const char *task_id, int letter)
{
    struct letter_log *l = &world->letters[letter];
    struct id id;
    enum task_status row;
    int *last = &world->lane_last[lane_of(letter)];

    snprintf(id.text, sizeof(id.text), "%s", task_id);
    row = stored(&id, NULL, NULL);
    if (row != TASK_QUEUED)
        T_FAIL("letter %d is carried, and its row is %.*s", letter,
               STR_ARG(task_status_name(row)));
    if (l->state == LETTER_ACKNOWLEDGED && strcmp(l->task_id, task_id) != 0)
        T_FAIL("letter %d is carried as another task", letter);
    if (*last > letter + 1)
        T_FAIL("letter %d is carried after %d, which is behind it", letter,
               *last - 1);
    *last = letter + 1;
    if (l->n_carried < 255)
        l->n_carried++;
}

static enum err on_send(void *ctx, struct str message)
{
    struct world_agent *a = ctx;
    char task_id[ID_BYTES], number[32];
    struct work *w;

    if (!memmem(message.p, message.n, "task.execute", 12))
        return OK;
    CHECK(find_text(message, "\"task_id\":\"", task_id, sizeof(task_id)));
    if (!find_text(message, "\"message_id\":\"m-", number, sizeof(number)))
        T_FAIL("no letter: %.*s", STR_ARG(message));
    check_carried(task_id, (int)strtol(number, NULL, 10));
    if (a->n_works == WORKS_MAX)
        return ERR_BUSY;
    w = &a->works[a->n_works++];
    snprintf(w->task_id, sizeof(w->task_id), "%s", task_id);
    w->due_ms = world->now_ms + between_ms(1, 90);
    w->fails = !world->is_ending && world->now_ms < a->bad_until_ms;
    return OK;
}

static void on_taken_over(void *ctx)
{
    (void)ctx;
}

static inline void agent_join(int i)
{
    static const struct line_ops ops = {.send = on_send,
                                        .taken_over = on_taken_over};
    struct agents all = registry_agents(stage.registry);
    const struct agent *a = agent_find(&all, str_of(agent_names[i]));

    CHECK(a && deliver_attach(walk_deliver(stage.walk), a, &ops,
                              &world->agents[i], &lines[i]) == OK);
}

static inline void agent_die(int i)
{
    struct world_agent *a = &world->agents[i];

    a->is_up = false;
    a->change_ms = world->now_ms + between_ms(20, 2400);
    if (chance(2))
        a->n_works = 0;
    world->n_deaths++;
    deliver_detach(walk_deliver(stage.walk), lines[i], STR(""));
    lines[i] = 0;
}

static inline void agent_back(int i)
{
    struct world_agent *a = &world->agents[i];

    a->is_up = true;
    a->change_ms = world->now_ms + between_ms(900, 6 * 3600);
    a->bad_until_ms = world->now_ms + (chance(4) ? 0 : between_ms(60, 600));
    agent_join(i);
}

static inline void agent_answer(int i, const struct work *w)
{
    char text[256];
    struct wire_batch batch;
    struct arena arena;
    struct why why = {""};

    snprintf(text, sizeof(text),
             "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"task.result\","
             "\"params\":{\"task_id\":\"%s\",\"status\":\"%s\",\"text\":"
             "\"done\"}}",
             w->task_id, w->fails ? "failed" : "completed");
    arena_init(&arena, 1 << 20);
    CHECK(wire_read(&arena, str_of(text), &batch, &why) == OK && batch.n == 1);
    /* Others may have ended it: that is told, and no matter of ours. */
    if (deliver_heard(walk_deliver(stage.walk), lines[i], batch.list, 0,
                      &why) == OK)
        world->n_results++;
    arena_fini(&arena);
}

static inline void agent_step(int i)
{
    struct world_agent *a = &world->agents[i];

    if (world->now_ms >= a->change_ms || (world->is_ending && !a->is_up)) {
        if (!a->is_up)
            agent_back(i);
        else if (!world->is_ending)
            agent_die(i);
    }
    for (int k = 0; a->is_up && k < a->n_works;) {
        struct work w = a->works[k];

        if (w.due_ms > world->now_ms) {
            k++;
            continue;
        }
        a->works[k] = a->works[--a->n_works];
        agent_answer(i, &w);
    }
}

/* A new life of the server: who is there connects. */
static inline void agents_again(void)
{
    for (int i = 0; i < AGENTS; i++)
        if (world->agents[i].is_up)
            agent_join(i);
}

#endif
