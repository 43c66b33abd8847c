#include "test/t.h"
#include "base/fault.h"
#include "model/tx.h"

enum { ID, N, DATA };
static const struct column columns[] = {
    {.name = "id", .type = COLUMN_TEXT},
    {.name = "n", .type = COLUMN_INT},
    {.name = "data", .type = COLUMN_BLOB},
};
static const struct table table = {
    .name = "t", .columns = columns, .n_columns = 3, .n_key = 1};

static size_t n_sets(const struct tx_op *op)
{
    size_t n = 0;

    for (const struct tx_set *s = op->sets; s; s = s->next)
        n++;
    return n;
}

TEST(operations_stay_in_the_order_they_were_appended)
{
    static const enum tx_kind kinds[] = {TX_INSERT, TX_PUT,    TX_UPDATE,
                                         TX_AMEND,  TX_DELETE, TX_EXPECT,
                                         TX_ADD,    TX_PRUNE};
    struct tx tx;
    size_t i = 0;

    tx_init(&tx);
    tx_insert(&tx, &table);
    tx_put(&tx, &table);
    tx_update(&tx, &table);
    tx_amend(&tx, &table);
    tx_delete(&tx, &table);
    tx_expect(&tx, &table);
    tx_add(&tx, &table, N, -3, 1);
    tx_prune(&tx, &table, 9);
    CHECK_INT(tx.n_ops, 8);
    TX_EACH(op, &tx)
    {
        CHECK(op->kind == kinds[i++] && op->table == &table && op->tx == &tx);
        if (op->kind == TX_ADD)
            CHECK(op->add_column == N && op->delta == -3 && op->floor == 1);
        if (op->kind == TX_PRUNE)
            CHECK(op->limit == 9);
    }
    CHECK(i == 8 && tx.build_error == OK);
    tx_fini(&tx);
}

TEST(a_field_set_twice_has_the_later_value)
{
    struct tx tx;
    struct tx_op *op;

    tx_init(&tx);
    op = tx_insert(&tx, &table);
    CHECK(tx_value(op, N).type == VALUE_NULL);
    tx_set(op, ID, value_text(STR("first")));
    tx_set(op, N, value_int(1));
    tx_set(op, ID, value_text(STR("second")));
    tx_set(op, N, value_null());
    CHECK_STR(tx_value(op, ID).s, "second");
    CHECK(tx_value(op, N).type == VALUE_NULL);
    CHECK_INT(n_sets(op), 2);
    tx_fini(&tx);
}

TEST(values_are_copied)
{
    char bytes[] = "abc";
    struct tx tx;
    struct tx_op *op;

    tx_init(&tx);
    op = tx_update(&tx, &table);
    tx_set(op, DATA, value_blob((struct str){bytes, 3}));
    tx_if(op, ID, IS, value_text((struct str){bytes, 3}));
    memset(bytes, 'x', 3);
    CHECK_STR(tx_value(op, DATA).s, "abc");
    CHECK_STR(op->conditions->value.s, "abc");
    CHECK(op->conditions->n_columns == 1 && op->conditions->columns[0] == ID);
    /* An empty blob differs from NULL. */
    tx_set(op, DATA, value_blob((struct str){NULL, 0}));
    CHECK(tx_value(op, DATA).type == VALUE_BLOB && tx_value(op, DATA).s.p);
    CHECK(value_text_or_null(STR("")).type == VALUE_NULL);
    CHECK(value_text_or_null(STR("x")).type == VALUE_TEXT);
    tx_fini(&tx);
}

/* Builders check nothing: the tx knows what was lost. */
TEST(a_tx_that_lacks_memory_says_so_and_does_no_harm)
{
    long nth = 0;

    do {
        struct tx tx;
        struct tx_op *op;

        fault_arm(++nth);
        tx_init(&tx);
        for (int i = 0; i < 30; i++) {
            op = tx_update(&tx, &table);
            tx_set(op, ID, value_text(STR("some words that take room")));
            tx_set(op, N, value_int(i));
            tx_if(op, DATA, IS_NOT, value_blob(STR("more of them")));
        }
        CHECK((tx.build_error == ERR_NOMEM) == fault_fired());
        CHECK(fault_fired() || tx.n_ops == 30);
        tx_fini(&tx);
        CHECK(!tx.first);
    } while (fault_fired());
    CHECK(nth > 90);
}

TEST(a_tx_has_a_limit)
{
    static char large[32 * 1024 * 1024];
    struct tx tx;

    tx_init(&tx);
    for (int i = 0; i < 2; i++)
        tx_set(tx_insert(&tx, &table), DATA,
               value_blob((struct str){large, sizeof(large)}));
    CHECK(tx.build_error == OK);
    tx_set(tx_insert(&tx, &table), DATA,
           value_blob((struct str){large, sizeof(large)}));
    CHECK(tx.build_error == ERR_NOMEM);
    tx_fini(&tx);
}
