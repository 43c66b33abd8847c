#include "model/record.h"
#include "test/t.h"

#include <stdlib.h>

#include "base/fault.h"

enum kind { KIND_NONE, KIND_LAST = 0x7fffffff };

struct thing {
    int64_t n, zero;
    uint64_t hash;
    bool is_red, is_blue;
    enum kind kind;
    struct str name, note, bytes;
    struct id id, other;
    struct {
        struct str text;
    } answer;
    int64_t unkept;
};

enum { ONE = 1, TWO = 2 };

#define FIRST(field)  MEMBER(struct thing, field), .part = ONE
#define SECOND(field) MEMBER(struct thing, field), .part = TWO

#define THING_COLUMNS(C)                                                      \
    C(THING_N, "n", 1, FIRST(n))                                              \
    C(THING_ZERO, "zero", 1, FIRST(zero), OR_NULL)                            \
    C(THING_HASH, "hash", 1, FIRST(hash))                                     \
    C(THING_RED, "red", 1, FIRST(is_red))                                     \
    C(THING_BLUE, "blue", 1, FIRST(is_blue), OR_NULL)                         \
    C(THING_KIND, "kind", 1, FIRST(kind))                                     \
    C(THING_NAME, "name", 1, FIRST(name))                                     \
    C(THING_NOTE, "note", 2, SECOND(note), OR_NULL)                           \
    C(THING_BYTES, "bytes", 2, MEMBER_BLOB(struct thing, bytes), .part = TWO) \
    C(THING_ID, "id", 2, FIRST(id))                                           \
    C(THING_OTHER, "other", 2, FIRST(other), OR_NULL)                         \
    C(THING_TEXT, "text", 3, SECOND(answer.text))                             \
    C(THING_READ, "read", 3, MEMBER(struct thing, unkept))                    \
    C(THING_OWN, "own", 3, COLUMN_TEXT)

enum { THING_COLUMNS(COLUMN_NUMBER) N_THING_COLUMNS };

static const struct column columns[] = {THING_COLUMNS(COLUMN_ROW)};
static const struct table table = {
    .name = "t", .columns = columns, .n_columns = N_THING_COLUMNS, .n_key = 1};

static struct thing full_thing(void)
{
    return (struct thing){
        .n = INT64_MIN,
        .zero = 7,
        .hash = UINT64_MAX,
        .is_red = true,
        .is_blue = true,
        .kind = KIND_LAST,
        .name = STR("a name"),
        .note = STR("a note"),
        .bytes = {"\0\1", 2},
        .id = id_from(STR("x_1")),
        .other = id_from(STR("x_2")),
        .answer = {STR("yes")},
        .unkept = 9,
    };
}

static void row_of_tx(const struct tx_op *op, struct row *r)
{
    for (uint8_t i = 0; i < N_THING_COLUMNS; i++)
        r->values[i] = tx_value(op, i);
}

TEST(one_list_gives_the_numbers_and_the_types_of_the_columns)
{
    static const enum column_type types[] = {
        COLUMN_INT,  COLUMN_INT,  COLUMN_INT,  COLUMN_INT,  COLUMN_INT,
        COLUMN_INT,  COLUMN_TEXT, COLUMN_TEXT, COLUMN_BLOB, COLUMN_TEXT,
        COLUMN_TEXT, COLUMN_TEXT, COLUMN_INT,  COLUMN_TEXT,
    };

    CHECK_INT(N_THING_COLUMNS, 14);
    for (size_t i = 0; i < N_THING_COLUMNS; i++)
        CHECK_INT(columns[i].type, types[i]);
    CHECK_STR(str_of(columns[THING_NOTE].name), "note");
    CHECK(columns[THING_N].since == 1 && columns[THING_TEXT].since == 3);
    CHECK(columns[THING_OWN].member == MEMBER_NONE);
}

TEST(a_record_survives_its_row_in_every_type)
{
    struct value values[N_THING_COLUMNS];
    struct row row = {.values = values};
    struct thing t = full_thing(), back = {.unkept = 1};
    struct tx tx;
    struct tx_op *op;

    tx_init(&tx);
    op = tx_insert(&tx, &table);
    record_to_tx(op, &t, ONE | TWO);
    row_of_tx(op, &row);
    CHECK(row_is_null(&row, THING_READ) && row_is_null(&row, THING_OWN));
    CHECK(values[THING_BYTES].type == VALUE_BLOB);
    record_from_row(&back, &table, &row);
    CHECK(back.n == t.n && back.zero == 7 && back.hash == t.hash);
    CHECK(back.is_red && back.is_blue && back.kind == KIND_LAST);
    CHECK_STR(back.name, "a name");
    CHECK_STR(back.note, "a note");
    CHECK(str_eq(back.bytes, t.bytes));
    CHECK_STR(str_of(back.id.text), "x_1");
    CHECK_STR(str_of(back.other.text), "x_2");
    CHECK_STR(back.answer.text, "yes");
    CHECK_INT(back.unkept, 0); /* NULL in the row */
    tx_fini(&tx);
}

TEST(only_what_may_be_missing_is_null_when_it_is_empty)
{
    struct value values[N_THING_COLUMNS];
    struct row row = {.values = values};
    struct thing none = {.n = 0}, back = full_thing();
    struct tx tx;
    struct tx_op *op;

    tx_init(&tx);
    op = tx_insert(&tx, &table);
    record_to_tx(op, &none, ONE | TWO);
    row_of_tx(op, &row);
    for (uint8_t i = 0; i < THING_READ; i++)
        CHECK(row_is_null(&row, i) == columns[i].or_null);
    CHECK(values[THING_NAME].type == VALUE_TEXT && !values[THING_NAME].s.n);
    record_from_row(&back, &table, &row);
    CHECK(!back.zero && !back.is_blue && !back.note.n && !back.other.text[0]);
    tx_fini(&tx);
}

TEST(a_negative_number_of_a_short_member_stays_negative)
{
    struct owing {
        int debt;
    } owing = {-7}, back = {0};
    static const struct column debt[] = {
        {.name = "debt", .type = MEMBER(struct owing, debt), .part = ONE}};
    static const struct table debts = {
        .name = "d", .columns = debt, .n_columns = 1, .n_key = 1};
    struct value value;
    struct row row = {.values = &value};
    struct tx tx;
    struct tx_op *op;

    tx_init(&tx);
    op = tx_insert(&tx, &debts);
    record_to_tx(op, &owing, ONE);
    value = tx_value(op, 0);
    CHECK_INT(value.i, -7);
    record_from_row(&back, &debts, &row);
    CHECK_INT(back.debt, -7);
    tx_fini(&tx);
}

TEST(a_part_is_written_and_cleared_without_the_others)
{
    struct thing t = full_thing();
    struct tx tx;
    struct tx_op *op;

    tx_init(&tx);
    op = tx_update(&tx, &table);
    record_to_tx(op, &t, TWO);
    CHECK(tx_value(op, THING_NAME).type == VALUE_NULL);
    CHECK_STR(tx_value(op, THING_NOTE).s, "a note");
    op = tx_update(&tx, &table);
    record_clear(op, TWO);
    for (uint8_t i = 0; i < N_THING_COLUMNS; i++)
        CHECK((op->has_set >> i & 1) == (columns[i].part == TWO));
    CHECK(tx_value(op, THING_NOTE).type == VALUE_NULL);
    tx_fini(&tx);
}

TEST(a_record_keeps_its_strings_or_nothing)
{
    char name[] = "a name", note[] = "a note";
    struct thing t = full_thing();
    char *kept;

    t.name = str_of(name);
    t.note = str_of(note);
    fault_arm(1);
    CHECK(!record_keep(&t, &table, ONE));
    CHECK(fault_fired() && t.name.p == name);
    fault_arm(0);
    kept = record_keep(&t, &table, ONE);
    CHECK(kept != NULL);
    memset(name, 'x', sizeof(name));
    CHECK_STR(t.name, "a name");
    CHECK(t.note.p == note);
    free(kept);
    t = (struct thing){.n = 0};
    kept = record_keep(&t, &table, ONE | TWO);
    CHECK(kept != NULL); /* nothing to keep is no failure */
    free(kept);
}

TEST(strings_are_packed_one_after_the_other)
{
    struct thing t = full_thing();
    char all[32], *at = all;

    CHECK_INT(record_bytes(&t, &table, ONE), 6);
    CHECK_INT(record_bytes(&t, &table, TWO), 6 + 2 + 3);
    record_pack(&t, &table, ONE | TWO, &at);
    CHECK_INT(at - all, 17);
    CHECK(t.name.p == all && t.note.p == all + 6 && t.bytes.p == all + 12);
    CHECK_STR(t.answer.text, "yes");
}
