#ifndef TEST_LIB_LEARN_TABLE_H
#define TEST_LIB_LEARN_TABLE_H

/* learn_table as a store would have it: what is in a tx happens to its rows,
 * and a state is loaded from them. Include after learn_stage.h. */

#include "model/query.h"

enum { TABLE_ROWS_MAX = 4096 };

struct kept_row {
    int64_t kind;
    char *key, *bytes;
    size_t n_key, n_bytes;
};

struct kept {
    struct kept_row rows[TABLE_ROWS_MAX];
    size_t n;
};

static inline struct str kept_key(const struct kept_row *r)
{
    return (struct str){r->key, r->n_key};
}

static inline struct str kept_bytes(const struct kept_row *r)
{
    return (struct str){r->bytes, r->n_bytes};
}

static inline char *kept_copy(struct str s)
{
    char *p = malloc(s.n + 1);

    CHECK(p);
    if (s.n)
        memcpy(p, s.p, s.n);
    p[s.n] = '\0';
    return p;
}

static inline void kept_drop(struct kept *k, size_t i)
{
    free(k->rows[i].key);
    free(k->rows[i].bytes);
    k->rows[i] = k->rows[--k->n];
}

static inline void kept_clear(struct kept *k)
{
    while (k->n)
        kept_drop(k, 0);
}

static inline size_t kept_find(const struct kept *k, int64_t kind,
                               struct str key)
{
    size_t i = 0;

    while (i < k->n &&
           !(k->rows[i].kind == kind && str_eq(kept_key(&k->rows[i]), key)))
        i++;
    return i;
}

static inline void kept_put(struct kept *k, int64_t kind, struct str key,
                            struct str bytes)
{
    size_t i = kept_find(k, kind, key);

    if (i < k->n)
        kept_drop(k, i);
    CHECK(k->n < TABLE_ROWS_MAX);
    k->rows[k->n++] = (struct kept_row){kind, kept_copy(key), kept_copy(bytes),
                                        key.n, bytes.n};
}

static inline void kept_do(struct kept *k, const struct tx_op *op)
{
    const struct condition *c = op->conditions;
    size_t i;

    CHECK(op->table == &learn_table);
    if (op->kind == TX_PUT) {
        kept_put(k, tx_value(op, LEARN_KIND).i, tx_value(op, LEARN_KEY).s,
                 tx_value(op, LEARN_BYTES).s);
        return;
    }
    CHECK_INT(op->kind, TX_PRUNE);
    if (!c) {
        kept_clear(k);
        return;
    }
    CHECK(c->next && c->columns[0] == LEARN_KIND && c->compare == IS &&
          c->next->columns[0] == LEARN_KEY && c->next->compare == IS);
    i = kept_find(k, c->value.i, c->next->value.s);
    if (i < k->n)
        kept_drop(k, i);
}

/* One tx. */
static inline bool write_some(struct learn *l, struct kept *k, size_t max,
                              bool is_committed, bool *is_last)
{
    struct tx tx;
    bool is_any;

    tx_init(&tx);
    is_any = learn_dirty(l, &tx, max, is_last);
    CHECK(!tx.build_error);
    if (is_any && is_committed)
        TX_EACH(op, &tx)
    kept_do(k, op);
    if (is_any)
        learn_written(l, is_committed);
    tx_fini(&tx);
    return is_any;
}

static inline void write_all(struct learn *l, struct kept *k)
{
    bool is_last, is_any;

    do
        is_any = write_some(l, k, 1000, true, &is_last);
    while (is_any);
    CHECK(is_last);
}

static inline enum err load_one(struct learn *l, const struct kept_row *r)
{
    struct value values[N_LEARN_COLUMNS] = {
        [LEARN_KIND] = value_int(r->kind),
        [LEARN_KEY] = value_text(kept_key(r)),
        [LEARN_BYTES] = value_blob(kept_bytes(r)),
    };
    struct row row = {.values = values};

    return learn_load_row(l, &row);
}

static inline enum err load_all(struct learn *l, const struct kept *k)
{
    enum err e = OK;

    for (int64_t kind = 0; kind < 8; kind++)
        for (size_t i = 0; i < k->n && !e; i++)
            if (k->rows[i].kind == kind)
                e = load_one(l, &k->rows[i]);
    return e;
}

#endif
