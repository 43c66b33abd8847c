#ifndef TEST_WEEK_AUDIT_H
#define TEST_WEEK_AUDIT_H

/* What the rows say, beside what senders and agents were told: after every
 * start, and at the end. */

#include "test/week/people.h"

enum { ROWS_AT_ONCE = 1000 };

/* Every row of a table that has a seq, a page at a time. */
static inline void each_row(const struct table *t, uint8_t seq,
                            void (*see)(void *ctx, const struct row *r),
                            void *ctx)
{
    int64_t last = 0;
    bool has_more = true;

    while (has_more) {
        struct query q;

        query_init(&q, t, ROWS_AT_ONCE);
        query_if(&q, seq, IS_MORE, value_int(last));
        query_order(&q, seq, false);
        CHECK_INT(store_look(stage.store, &q), OK);
        QUERY_EACH(r, &q)
        {
            last = row_int(r, seq);
            see(ctx, r);
        }
        has_more = q.has_more;
        query_fini(&q);
    }
}

struct audited {
    struct map by_id; /* task id -> struct letter_log */
    int n_found, n_open;
    size_t n_held, n_escalated; /* tasks */
    size_t n_asked;             /* open escalations, but for late ones */
};

static inline void index_letters(struct audited *a)
{
    map_init(&a->by_id, MESSAGES_MAX, (const uint64_t[2]){1, 2});
    for (int i = 0; i < world->n_letters; i++) {
        struct letter_log *l = &world->letters[i];

        if (l->state == LETTER_ACKNOWLEDGED &&
            map_put(&a->by_id, str_of(l->task_id), l) != OK)
            T_FAIL("letter %d has the task of another, %s", i, l->task_id);
    }
}

/* Each row is one letter's, and what is over stays as it is. */
static void audit_task(void *ctx, const struct row *r)
{
    struct audited *a = ctx;
    enum task_status status = (enum task_status)row_int(r, TASK_STATUS);
    struct letter_log *l = map_get(&a->by_id, row_str(r, TASK_ID));

    if (!task_is_over(status))
        a->n_open++;
    a->n_held += status == TASK_HELD;
    a->n_escalated += status == TASK_ESCALATED;
    if (status == TASK_DISPATCHED || status == TASK_WORKING ||
        status == TASK_ACCEPTED)
        T_FAIL("a row says %.*s", STR_ARG(task_status_name(status)));
    if (!l)
        return; /* its sender has not heard of it yet, and will ask again */
    a->n_found++;
    if (l->over && l->over != status)
        T_FAIL("%s was %.*s and is %.*s", l->task_id,
               STR_ARG(task_status_name((enum task_status)l->over)),
               STR_ARG(task_status_name(status)));
    if (task_is_over(status))
        l->over = (uint8_t)status;
}

static void audit_escalation(void *ctx, const struct row *r)
{
    struct audited *a = ctx;

    a->n_asked += row_int(r, ESCALATION_STATUS) == ESCALATION_OPEN &&
                  row_int(r, ESCALATION_KIND) != ESCALATION_LATE;
}

static inline size_t count_holds(void)
{
    struct query q;
    size_t n;

    query_init(&q, &hold_table, ROWS_AT_ONCE);
    CHECK_INT(store_look(stage.store, &q), OK);
    CHECK(!q.has_more);
    n = q.n_rows;
    query_fini(&q);
    return n;
}

/* What is held has one hold, and nothing else has; what waits for a person has
 * an open question. */
static inline void audit_waiting(struct audited *a)
{
    size_t holds = count_holds();

    each_row(&escalation_table, ESCALATION_SEQ, audit_escalation, a);
    if (a->n_held != holds)
        T_FAIL("%zu tasks are held and there are %zu holds", a->n_held, holds);
    if (a->n_escalated != a->n_asked)
        T_FAIL("%zu tasks are escalated and %zu escalations open",
               a->n_escalated, a->n_asked);
}

/* How many tasks are not over. */
static inline int audit(void)
{
    struct audited a = {.n_found = 0};

    index_letters(&a);
    each_row(&task_table, TASK_SEQ, audit_task, &a);
    if (a.n_found != (int)a.by_id.n)
        T_FAIL("lost: %d of %zu acknowledged messages",
               (int)a.by_id.n - a.n_found, a.by_id.n);
    map_fini(&a.by_id);
    audit_waiting(&a);
    return a.n_open;
}

/* For anyone who has to find out why. */
static void show_open(void *ctx, const struct row *r)
{
    enum task_status status = (enum task_status)row_int(r, TASK_STATUS);
    struct query h;
    int *n = ctx;

    if (task_is_over(status) || (*n)++ >= 8)
        return;
    fprintf(stderr, "%.*s %.*s %.*s %.*s\n", STR_ARG(row_str(r, TASK_ID)),
            STR_ARG(task_status_name(status)), STR_ARG(row_str(r, TASK_AGENT)),
            STR_ARG(row_str(r, TASK_ORDER_KEY)));
    query_init(&h, &hold_table, 1);
    query_if(&h, HOLD_TASK_ID, IS, value_text(row_str(r, TASK_ID)));
    CHECK_INT(store_look(stage.store, &h), OK);
    if (h.rows)
        fprintf(stderr, "    %.*s: %.*s\n", STR_ARG(row_str(h.rows, HOLD_KEYS)),
                STR_ARG(row_str(h.rows, HOLD_REASON)));
    query_fini(&h);
}

/* For the report, from the feed: it alone remembers what was held when. */
static void measure_hold(void *ctx, const struct row *r)
{
    struct map *held = ctx;
    struct str type = row_str(r, FEED_TYPE), id = row_str(r, FEED_TASK_ID);
    int64_t at_ms = row_int(r, FEED_AT_MS), ms;

    if (str_eq(type, STR("gate.held")) || str_eq(type, STR("gate.paused"))) {
        int64_t *since_ms = malloc(sizeof(*since_ms) + id.n);

        CHECK(since_ms);
        *since_ms = at_ms;
        memcpy(since_ms + 1, id.p, id.n);
        if (map_get(held, id))
            free(since_ms);
        else
            CHECK(map_put(held, (struct str){(char *)(since_ms + 1), id.n},
                          since_ms) == OK);
    } else if (str_eq(type, STR("gate.released")) ||
               str_eq(type, STR("gate.expired"))) {
        int64_t *since_ms = map_take(held, id);

        if (!since_ms)
            return;
        ms = at_ms - *since_ms;
        free(since_ms);
        world->n_held++;
        world->hold_ms += ms;
        if (ms > world->hold_max_ms)
            world->hold_max_ms = ms;
    }
}

static void measure_escalation(void *ctx, const struct row *r)
{
    (void)ctx;
    world->n_escalations[row_int(r, ESCALATION_KIND) % 5]++;
}

static inline void measure(void)
{
    struct map held;

    for (int i = 0; i < world->n_letters; i++)
        world->over[world->letters[i].over]++;
    each_row(&escalation_table, ESCALATION_SEQ, measure_escalation, NULL);
    map_init(&held, MESSAGES_MAX, (const uint64_t[2]){1, 2});
    each_row(&feed_table, FEED_SEQ, measure_hold, &held);
    map_fini(&held);
}

#endif
