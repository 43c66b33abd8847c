/* Rows found at the start, and problems with them. */
#include "registry/internal.h"
#include "test/lib/registry_stage.h"

/* The vectors of agent-0 as its row has them, and for which revision. */
static struct str vectors_of(struct stage *s, struct query *q,
                             int64_t *revision)
{
    query_init(q, &vector_table, 1);
    query_if(q, VECTOR_AGENT, IS, value_text(STR("agent-0")));
    CHECK(store_look(s->store, q) == OK && q->rows);
    *revision = row_int(q->rows, VECTOR_REVISION);
    return row_str(q->rows, VECTOR_BYTES);
}

TEST(vectors_go_with_the_texts_they_were_made_from)
{
    struct stage s;
    struct query first, kept, changed;
    struct str bytes;
    int64_t revision;

    stage_prepare(&s);
    s.has_model = true;
    CHECK(stage_start(&s) == OK);
    stage_make_some(&s, 1);
    bytes = vectors_of(&s, &first, &revision);
    CHECK_INT(revision, 1);
    CHECK(stage_patch(&s, NULL, "agent-0", "{\"visibility\":\"public\"}") ==
          OK);
    CHECK(str_eq(vectors_of(&s, &kept, &revision), bytes));
    CHECK_INT(revision, 2);
    CHECK(stage_patch(&s, NULL, "agent-0", "{\"description\":\"cheese\"}") ==
          OK);
    CHECK(!str_eq(vectors_of(&s, &changed, &revision), bytes));
    CHECK_INT(revision, 3);
    CHECK_INT(registry_stats(s.r).unembedded, 0);
    query_fini(&first);
    query_fini(&kept);
    query_fini(&changed);
    stage_restart(&s, false);
    /* No new ones can be made now: the old ones go all the same. */
    s.has_model = false;
    stage_restart(&s, false);
    CHECK(stage_patch(&s, NULL, "agent-0", "{\"description\":\"bread\"}") ==
          OK);
    query_init(&first, &vector_table, 1);
    CHECK(store_look(s.store, &first) == OK && !first.rows);
    query_fini(&first);
    stage_close(&s);
}

/* Rows that this version cannot read. */

static void spoil(struct stage *s, uint8_t column, struct value v)
{
    struct tx tx;
    struct tx_op *op;

    tx_init(&tx);
    op = tx_update(&tx, &agent_table);
    tx_if(op, AGENT_KEY, IS, value_text(STR("agent-0")));
    tx_set(op, column, v);
    store_submit(s->store, &tx, stage_on_done, NULL);
    store_turn(s->store);
    CHECK(tx.result == TX_COMMITTED);
    tx_fini(&tx);
}

TEST(a_row_that_is_not_understood_stops_the_start)
{
    const struct {
        uint8_t column;
        struct value value;
    } cases[] = {
        {AGENT_CARD, value_text(STR("{"))},
        {AGENT_CARD, value_text(STR("{\"name\":\"other\"}"))},
        {AGENT_SHOWN, value_text(STR("agent-9"))},
        {AGENT_NUMBER, value_int(-1)},
        {AGENT_NUMBER, value_int(INT64_MAX)},
        {AGENT_VISIBILITY, value_int(9)},
        {AGENT_KIND, value_int(0)},
        {AGENT_REVISION, value_int(0)},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stage s;

        stage_open(&s);
        stage_make_some(&s, 2);
        spoil(&s, cases[i].column, cases[i].value);
        CHECK(registry_check(s.r, &s.why) == ERR_INTERNAL);
        stage_end(&s);
        CHECK(stage_start(&s) == ERR_BAD_CONFIG);
        CHECK(strstr(s.why.text, "newer"));
        stage_end(&s);
        stage_leave(&s);
    }
}

/* The checker, where memory or index are wrong in one way each. */
TEST(the_check_sees_what_does_not_agree)
{
    struct stage s;
    struct entry *e;

    stage_open(&s);
    stage_make_some(&s, 4);
    CHECK(stage_grant(&s, &stage_anna, "agent-1", "x", "", 0) == OK);
    e = entry_find(s.r, STR("agent-1"));
    stage_check(&s);
    e->agent.revision++;
    CHECK(registry_check(s.r, &s.why) == ERR_INTERNAL);
    e->agent.revision--;
    e->agent.updated_ms++;
    CHECK(registry_check(s.r, &s.why) == ERR_INTERNAL);
    e->agent.updated_ms--;
    e->grants->list[0].expires_ms++;
    CHECK(registry_check(s.r, &s.why) == ERR_INTERNAL);
    e->grants->list[0].expires_ms--;
    s.r->seq++;
    CHECK(registry_check(s.r, &s.why) == ERR_INTERNAL);
    s.r->seq--;
    s.r->stats.skills++;
    CHECK(registry_check(s.r, &s.why) == ERR_INTERNAL);
    s.r->stats.skills--;
    stage_check(&s);
    /* It has the documents of another. */
    {
        struct index_change *c;

        CHECK(index_prepare(s.r->index, &entry_find(s.r, STR("agent-0"))->agent,
                            NULL, &c) == OK);
        index_put(s.r->index, e->number, c);
        CHECK(registry_check(s.r, &s.why) == ERR_INTERNAL);
        CHECK(index_prepare(s.r->index, &e->agent, NULL, &c) == OK);
        index_put(s.r->index, e->number, c);
    }
    stage_check(&s);
    index_drop(s.r->index, e->number);
    CHECK(registry_check(s.r, &s.why) == ERR_INTERNAL);
    stage_end(&s);
    CHECK(stage_start(&s) == OK);
    stage_close(&s);
}
