/* The keys of a hold, as text. */
#include "model/gate_result.h"

#include "base/buf.h"
#include "test/t.h"

static const struct {
    struct wait_key key;
    enum gate_cause cause;
    const char *words;
} rows[] = {
    {{.kind = WAIT_AGENT, .name = STR("Z")},
     PASS_GATED,
     "Z to be healthy again"},
    {{.kind = WAIT_AGENT, .name = STR("Z")}, PASS_STALE, "newer data from Z"},
    {{.kind = WAIT_QUEUE, .name = STR("Rick")}, PASS_CAPACITY, "room at Rick"},
    {{.kind = WAIT_EVENT, .name = STR("R-1"), .type = STR("RESULT")},
     PASS_PREREQUISITE,
     "RESULT for R-1"},
    {{.kind = WAIT_TIME, .at_ms = INT64_C(1739610015000)},
     PASS_PREREQUISITE,
     "a time: 2025-02-15T09:00:15Z"},
    {{.kind = WAIT_LOOK},
     PASS_PREREQUISITE,
     "its condition, which is checked regularly"},
    {{.kind = WAIT_BATCH, .name = STR("task_1")},
     PASS_BATCHED,
     "the batch task_1"},
};

TEST(every_key_is_said_in_words)
{
    struct buf b;

    buf_init(&b, 1000);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        buf_clear(&b);
        wait_key_words(&rows[i].key, rows[i].cause, &b);
        CHECK_STR(buf_str(&b), rows[i].words);
    }
    buf_fini(&b);
}

TEST(what_happens_in_the_end_has_the_name_that_rules_give_it)
{
    CHECK_STR(gate_expiry_name(EXPIRY_EXPIRE), "expire");
    CHECK_STR(gate_expiry_name(EXPIRY_ESCALATE), "escalate");
    CHECK_STR(gate_expiry_name(EXPIRY_ROUTE), "route");
}
