#include "test/crash/stage.h"

static const struct column slot_columns[] = {
    {.name = "id", .type = COLUMN_INT},
    {.name = "tx", .type = COLUMN_INT},
    {.name = "parts", .type = COLUMN_INT},
};
static const struct column part_columns[] = {
    {.name = "slot", .type = COLUMN_INT},
    {.name = "number", .type = COLUMN_INT},
    {.name = "bytes", .type = COLUMN_BLOB},
};
static const struct column book_columns[] = {
    {.name = "seq", .type = COLUMN_INT},
    {.name = "tx", .type = COLUMN_INT},
    {.name = "slot", .type = COLUMN_INT},
};
static const struct table_index book_indexes[] = {
    {.name = "book_by_slot", .columns = {BOOK_SLOT, BOOK_TX}, .n_columns = 2},
};

const struct table slot_table = {
    .name = "slot", .columns = slot_columns, .n_columns = 3, .n_key = 1};
const struct table part_table = {
    .name = "part", .columns = part_columns, .n_columns = 3, .n_key = 2};
const struct table book_table = {.name = "book",
                                 .columns = book_columns,
                                 .n_columns = 3,
                                 .n_key = 1,
                                 .is_counted = true,
                                 .indexes = book_indexes,
                                 .n_indexes = 1};

static const struct table *const tables[] = {&slot_table, &part_table,
                                             &book_table};
const struct schema stage_schema = {
    .room = "stage", .tables = tables, .n_tables = 3};

static uint64_t mix(uint64_t z)
{
    z = (z + 0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

int64_t stage_slot(int64_t n)
{
    return (int64_t)(mix((uint64_t)n) % STAGE_SLOTS);
}

int64_t stage_parts(int64_t n)
{
    return 1 + (int64_t)(mix((uint64_t)n << 20) % STAGE_PARTS);
}

/* Mostly short; one in eight does not fit on a page of the database. */
void stage_part(int64_t n, int64_t number, struct buf *out)
{
    uint64_t seed = mix((uint64_t)n * STAGE_PARTS + (uint64_t)number);
    size_t bytes =
        1 + (seed >> 32) % (seed % 8 == 0 ? STAGE_PART_MAX - 1 : 300);

    for (size_t i = 0; i < bytes; i++) {
        char c = (char)mix(seed + i / 16);
        buf_add_char(out, c);
    }
}

static void put_part(struct tx *tx, int64_t slot, int64_t number, int64_t n)
{
    struct buf bytes;
    struct tx_op *op = tx_put(tx, &part_table);

    buf_init(&bytes, STAGE_PART_MAX);
    stage_part(n, number, &bytes);
    tx_set(op, PART_SLOT, value_int(slot));
    tx_set(op, PART_NUMBER, value_int(number));
    tx_set(op, PART_BYTES, value_blob(buf_str(&bytes)));
    buf_fini(&bytes);
}

static void write_in_book(struct tx *tx, int64_t slot, int64_t n)
{
    struct tx_op *op = tx_insert(tx, &book_table);

    tx_set(op, BOOK_TX, value_int(n));
    tx_set(op, BOOK_SLOT, value_int(slot));
}

void stage_tx(struct tx *tx, int64_t n, int64_t before)
{
    int64_t slot = stage_slot(n), parts = stage_parts(n);
    struct tx_op *op = tx_put(tx, &slot_table);

    tx_set(op, SLOT_ID, value_int(slot));
    tx_set(op, SLOT_TX, value_int(n));
    tx_set(op, SLOT_PARTS, value_int(parts));
    tx_if(op, SLOT_TX, IS, value_int(before));
    for (int64_t i = 0; i < parts; i++)
        put_part(tx, slot, i, n);
    op = tx_prune(tx, &part_table, STAGE_PARTS);
    tx_if(op, PART_SLOT, IS, value_int(slot));
    tx_if(op, PART_NUMBER, IS_AT_LEAST, value_int(parts));
    write_in_book(tx, slot, n);
}

void stage_doomed(struct tx *tx, int64_t n)
{
    struct tx_op *op;

    put_part(tx, stage_slot(n), 0, -n);
    write_in_book(tx, stage_slot(n), -n);
    op = tx_update(tx, &slot_table);
    tx_if(op, SLOT_ID, IS, value_int(stage_slot(n)));
    tx_if(op, SLOT_TX, IS, value_int(-1));
    tx_set(op, SLOT_PARTS, value_int(0));
}
