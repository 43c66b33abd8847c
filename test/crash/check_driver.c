/* Because txs happen in their order, one number says it all: the last tx in
 * the book. It must not be below the last that was acknowledged, and every row
 * there is must be as that tx left it. */
#include "test/crash/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "store/store.h"
#include "test/crash/stage.h"

enum { PAGE = 2000 };

struct claims {
    int64_t acked;
};

enum finding found(enum finding f, struct why *why, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(why->text, sizeof(why->text), fmt, args);
    va_end(args);
    return f;
}

static int count_bad(void *ctx, int n, char **values, char **names)
{
    struct why *why = ctx;

    (void)names;
    if (n > 0 && values[0] && strcmp(values[0], "ok") == 0)
        return 0;
    snprintf(why->text, sizeof(why->text), "%s",
             n && values[0] ? values[0] : "?");
    return 1;
}

enum finding check_integrity(const char *folder, struct why *why)
{
    char path[4096];
    sqlite3 *db = NULL;
    int rc;

    snprintf(path, sizeof(path), "%s/signalbox.db", folder);
    rc = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(db, "PRAGMA integrity_check", count_bad, why, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(db, "PRAGMA foreign_key_check", count_bad, why, NULL);
    if (rc != SQLITE_OK && rc != SQLITE_ABORT)
        found(FOUND_DAMAGED, why, "%s", sqlite3_errmsg(db));
    sqlite3_close(db);
    return rc == SQLITE_OK ? FOUND_NOTHING : FOUND_DAMAGED;
}

static void *claims_new(void)
{
    return calloc(1, sizeof(struct claims));
}

static bool hear(void *claims, struct str said)
{
    struct claims *c = claims;
    char line[32];

    if (said.n < 5 || said.n >= sizeof(line) || memcmp(said.p, "ack ", 4) != 0)
        return false;
    memcpy(line, said.p, said.n);
    line[said.n] = '\0';
    c->acked = strtoll(line + 4, NULL, 10);
    return true;
}

/* The last tx in the book, and the last on each slot. */
static enum finding read_book(struct store *s, int64_t *last,
                              int64_t on_slot[STAGE_SLOTS], struct why *why)
{
    enum finding f = FOUND_NOTHING;
    bool has_more = true;
    int64_t n = 0;

    while (has_more && f == FOUND_NOTHING) {
        struct query q;
        query_init(&q, &book_table, PAGE);
        query_if(&q, BOOK_TX, IS_MORE, value_int(n));
        query_order(&q, BOOK_TX, false);
        if (store_look(s, &q) != OK)
            f = found(FOUND_DAMAGED, why, "the book cannot be read");
        QUERY_EACH(row, &q)
        {
            n++;
            if (row_int(row, BOOK_TX) != n ||
                row_int(row, BOOK_SLOT) != stage_slot(n))
                f = found(FOUND_HALF, why,
                          "line %lld of the book is of tx %lld", (long long)n,
                          (long long)row_int(row, BOOK_TX));
            on_slot[stage_slot(n)] = n;
        }
        has_more = q.has_more;
        query_fini(&q);
    }
    *last = n;
    return f;
}

static enum finding check_slots(struct store *s, const int64_t *on_slot,
                                struct why *why)
{
    enum finding f = FOUND_NOTHING;
    size_t n = 0, n_expected = 0;
    struct query q;

    for (int i = 0; i < STAGE_SLOTS; i++)
        n_expected += on_slot[i] != 0;
    query_init(&q, &slot_table, STAGE_SLOTS + 1);
    if (store_look(s, &q) != OK)
        f = found(FOUND_DAMAGED, why, "the slots cannot be read");
    QUERY_EACH(row, &q)
    {
        int64_t tx = on_slot[row_int(row, SLOT_ID) % STAGE_SLOTS];
        n++;
        if (row_int(row, SLOT_TX) != tx ||
            row_int(row, SLOT_PARTS) != stage_parts(tx))
            f = found(FOUND_HALF, why, "a slot is of tx %lld, the book of %lld",
                      (long long)row_int(row, SLOT_TX), (long long)tx);
    }
    if (f == FOUND_NOTHING && n != n_expected)
        f = found(FOUND_HALF, why, "%zu slots, not %zu", n, n_expected);
    query_fini(&q);
    return f;
}

static enum finding check_parts(struct store *s, const int64_t *on_slot,
                                struct why *why)
{
    enum finding f = FOUND_NOTHING;
    int64_t n = 0, n_expected = 0;
    struct buf bytes;
    struct query q;

    for (int i = 0; i < STAGE_SLOTS; i++)
        n_expected += on_slot[i] ? stage_parts(on_slot[i]) : 0;
    buf_init(&bytes, STAGE_PART_MAX);
    query_init(&q, &part_table, STAGE_SLOTS * STAGE_PARTS + 1);
    if (store_look(s, &q) != OK)
        f = found(FOUND_DAMAGED, why, "the parts cannot be read");
    QUERY_EACH(row, &q)
    {
        int64_t tx = on_slot[row_int(row, PART_SLOT) % STAGE_SLOTS];
        n++;
        buf_clear(&bytes);
        stage_part(tx, row_int(row, PART_NUMBER), &bytes);
        if (!str_eq(row_str(row, PART_BYTES), buf_str(&bytes)))
            f = found(FOUND_HALF, why, "a part is not that of tx %lld",
                      (long long)tx);
    }
    if (f == FOUND_NOTHING && n != n_expected)
        f = found(FOUND_HALF, why, "%lld parts, not %lld", (long long)n,
                  (long long)n_expected);
    query_fini(&q);
    buf_fini(&bytes);
    return f;
}

static enum finding look(const void *claims, const char *folder,
                         struct why *why)
{
    const struct claims *c = claims;
    const struct schema *schemas[] = {&stage_schema};
    struct store_opts opts = {.folder = folder,
                              .schemas = schemas,
                              .n_schemas = 1,
                              .max_waiting = 10,
                              .is_inline = true};
    int64_t last = 0, on_slot[STAGE_SLOTS] = {0};
    struct store *s;
    enum finding f;

    if (store_open(&s, &opts, why) != OK)
        return FOUND_CLOSED;
    f = read_book(s, &last, on_slot, why);
    if (f == FOUND_NOTHING && last < c->acked)
        f = found(FOUND_LOST, why,
                  "acknowledged up to tx %lld, there up to %lld",
                  (long long)c->acked, (long long)last);
    if (f == FOUND_NOTHING)
        f = check_slots(s, on_slot, why);
    if (f == FOUND_NOTHING)
        f = check_parts(s, on_slot, why);
    store_close(s);
    return f;
}

const struct check check_driver = {"driver", claims_new, free, hear, look};
