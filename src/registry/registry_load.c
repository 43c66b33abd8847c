/* The tables, and loading the mirror from them at the start, page by page.
 *
 * A row that this version cannot read stops the start: without it, private
 * agents would seem to be gone and their names would be free. Grants and
 * vectors are deleted with their agents by the database, so there are never any
 * without.
 *
 * The index comes from its snapshot if that is of exactly this state; else it
 * is built from the cards, which takes longer and gives the same. */
#include "registry/internal.h"

enum { PAGE_ROWS = 500 };

#define SERVED(field) MEMBER(struct agent, field), .part = 1

static const struct column agent_columns[] = {AGENT_COLUMNS(COLUMN_ROW)};

/* Only for uniqueness. */
static const struct table_index agent_indexes[] = {
    {.name = "agent_by_number", INDEX_ON(AGENT_NUMBER), .is_unique = true},
};

const struct table agent_table = {
    .name = "agents",
    .columns = agent_columns,
    .n_columns = N_AGENT_COLUMNS,
    .n_key = 1,
    .indexes = agent_indexes,
    .n_indexes = sizeof(agent_indexes) / sizeof(agent_indexes[0]),
};

static const struct column vector_columns[] = {VECTOR_COLUMNS(COLUMN_ROW)};

const struct table vector_table = {
    .name = "agent_vectors",
    .columns = vector_columns,
    .n_columns = N_VECTOR_COLUMNS,
    .n_key = 1,
};

#define BOTH(field) MEMBER(struct agent_grant, field), .part = 1

static const struct column grant_columns[] = {GRANT_COLUMNS(COLUMN_ROW)};

static const struct table_index grant_indexes[] = {
    {.name = "grant_by_agent", INDEX_ON(GRANT_AGENT, GRANT_ID)},
    {.name = "grant_by_expiry", INDEX_ON(GRANT_EXPIRES_MS)},
};

const struct table grant_table = {
    .name = "grants",
    .columns = grant_columns,
    .n_columns = N_GRANT_COLUMNS,
    .n_key = 1,
    .indexes = grant_indexes,
    .n_indexes = sizeof(grant_indexes) / sizeof(grant_indexes[0]),
};

static const struct column registry_columns[] = {REGISTRY_COLUMNS(COLUMN_ROW)};

const struct table registry_table = {
    .name = "registry",
    .columns = registry_columns,
    .n_columns = N_REGISTRY_COLUMNS,
    .n_key = 1,
};

static const struct table *const tables[] = {
    &agent_table,     &vector_table, &grant_table, &registry_table,
    &reference_table, &review_table, &report_table};

const struct schema registry_schema = {
    .room = "registry",
    .tables = tables,
    .n_tables = sizeof(tables) / sizeof(tables[0]),
};

static enum err load_look(struct registry *r, struct query *q, struct why *why)
{
    enum err e = store_look(r->opts.store, q);

    return e ? why_err(why, e, "the agents cannot be read: %s",
                       err_row(e)->wording)
             : OK;
}

enum err rows_each(struct registry *r, const struct table *table,
                   enum err (*each)(struct registry *r, const struct row *row,
                                    void *ctx, struct why *why),
                   void *ctx, struct why *why)
{
    char after[AGENT_NAME_MAX + 1] = ""; /* ids are shorter */
    bool has_more = true;
    enum err e = OK;

    while (has_more && !e) {
        struct query q;

        query_init(&q, table, PAGE_ROWS);
        query_if(&q, 0, IS_MORE, value_text(str_of(after)));
        query_order(&q, 0, false);
        e = load_look(r, &q, why);
        for (const struct row *row = q.rows; row && !e; row = row->next) {
            struct str key = row_str(row, 0);

            e = each(r, row, ctx, why);
            if (!row->next)
                agent_key(key, after);
        }
        has_more = q.has_more;
        query_fini(&q);
    }
    return e;
}

static enum err load_unreadable(struct why *why, const char *what,
                                struct str name)
{
    struct str shown = str_sub(name, 0, AGENT_NAME_MAX);

    return why_err(why, ERR_BAD_CONFIG,
                   "the database has %s that this version cannot read "
                   "(\"%.*s\"); was it used by a newer one?",
                   what, STR_ARG(shown));
}

static bool agent_row_is_valid(const struct registry *r, const struct row *row,
                               const struct entry *e)
{
    int64_t number = row_int(row, AGENT_NUMBER);

    (void)r;
    return str_eq(e->key, row_str(row, AGENT_KEY)) &&
           str_eq(e->agent.name, row_str(row, AGENT_SHOWN)) && number >= 0 &&
           number < INDEX_DOCS_MAX && row_int(row, AGENT_REVISION) > 0 &&
           e->agent.visibility == row_int(row, AGENT_VISIBILITY) &&
           agent_kind_name((enum agent_kind)row_int(row, AGENT_KIND)).n;
}

/* Extend the numbers up to that of e. */
static enum err load_claim_number(struct registry *r, const struct entry *e)
{
    size_t n = (size_t)e->number + 1;
    enum err err = mirror_reserve(r, n > r->n_numbers ? n - r->n_numbers : 1);

    if (err)
        return err;
    while (r->n_numbers < n)
        r->by_number[r->n_numbers++] = NULL;
    return r->by_number[e->number] ? ERR_BAD_CONFIG : OK;
}

static enum err load_agent(struct registry *r, const struct row *row, void *ctx,
                           struct why *why)
{
    struct str name = row_str(row, AGENT_SHOWN);
    struct entry *e = NULL;
    struct buf stored;
    bool is_sealed;
    enum err err =
        sealed_read(r, row_str(row, AGENT_KEY), row_str(row, AGENT_CARD),
                    &stored, &is_sealed, why);

    (void)ctx;
    if (!err)
        err = entry_new(r, buf_str(&stored), row_str(row, AGENT_CREATOR),
                        row_str(row, AGENT_ORG), &e);
    buf_fini(&stored);
    if (!err)
        e->is_unsealed = !is_sealed && sealed_has_secrets(&e->agent);
    if (err == ERR_SYNTAX || (!err && !agent_row_is_valid(r, row, e)))
        err = load_unreadable(why, "an agent", name);
    if (!err) {
        e->number = (uint32_t)row_int(row, AGENT_NUMBER);
        record_from_row(&e->agent, &agent_table, row);
        err = load_claim_number(r, e);
        if (err == ERR_BAD_CONFIG)
            err = load_unreadable(why, "an agent's number", name);
    }
    if (!err)
        err = owner_take(r, e, NULL);
    if (err) {
        agent_entry_free(r, e);
        return err == ERR_NOMEM ? why_err(why, err, "no memory for the agents")
                                : err;
    }
    (void)mirror_put(r, e);
    return OK;
}

/* Rows come in the order of their ids, which is that of creation. */
static enum err load_grant(struct registry *r, const struct row *row, void *ctx,
                           struct why *why)
{
    struct str id = row_str(row, GRANT_ID);
    struct entry *e = entry_find(r, row_str(row, GRANT_AGENT));
    struct agent_grant g = {.created_ms = 0};
    enum err err;

    (void)ctx;
    record_from_row(&g, &grant_table, row);
    if (!e || !id_is_valid(id, "grant") || (g.user.n > 0) == (g.org.n > 0))
        return load_unreadable(why, "a grant", id);
    err = entry_add_grant(r, e, &g);
    if (err)
        return why_err(why, err, "no memory for the grants");
    r->stats.grants++;
    return OK;
}

static enum err load_seq(struct registry *r, struct why *why)
{
    struct query q;
    enum err e;

    query_init(&q, &registry_table, 1);
    query_if(&q, REGISTRY_KEY, IS, value_int(1));
    e = load_look(r, &q, why);
    if (!e && q.rows) {
        r->seq = row_int(q.rows, REGISTRY_SEQ);
        r->mark = row_int(q.rows, REGISTRY_MARK);
    }
    query_fini(&q);
    while (r->own_mark == 0 || r->own_mark == r->mark)
        r->own_mark = (int64_t)(rand_u64(rand_system()) >> 1);
    return e;
}

static enum err load_into_index(struct registry *r, struct entry *e,
                                const struct buf *vectors)
{
    struct index_change *change = NULL;
    enum err err = vectors_prepare(r, &e->agent, vectors, &change);

    if (!err)
        index_put(r->index, e->number, change);
    if (!err && e->is_aside)
        index_follow(r, e);
    return err;
}

static enum err load_vectors(struct registry *r, const struct row *row,
                             void *ctx, struct why *why)
{
    struct entry *e = entry_find(r, row_str(row, VECTOR_AGENT));
    struct buf own;
    enum err err = OK;

    (void)ctx;
    if (!e)
        return load_unreadable(why, "vectors", row_str(row, VECTOR_AGENT));
    buf_init(&own, VECTORS_BYTES_MAX);
    if (vectors_from_row(r, &e->agent, row, &own)) {
        err = load_into_index(r, e, &own);
        e->is_embedded = !err;
    } else if (r->vectors && row_int(row, VECTOR_REVISION) == e->agent.revision)
        e->is_outdated = true; /* counted once it waits */
    buf_fini(&own);
    return err ? why_err(why, err, "no memory for the vectors") : OK;
}

static enum err load_build_index(struct registry *r, struct why *why)
{
    enum err e = rows_each(r, &vector_table, load_vectors, NULL, why);

    for (size_t i = 0; i < r->n && !e; i++) {
        struct entry *one = agent_entry(r->list[i]);

        if (!one->is_embedded)
            e = load_into_index(r, one, NULL);
        if (e)
            why_err(why, e, "no memory for the index");
    }
    return e;
}

/* With a snapshot the rows have not been read: whether a row exists for this
 * card, which is then of another model. */
static enum err load_check_row(struct registry *r, struct entry *one,
                               struct why *why)
{
    struct query q;
    enum err e;

    query_init(&q, &vector_table, 1);
    query_if(&q, VECTOR_AGENT, IS, value_text(one->key));
    query_if(&q, VECTOR_REVISION, IS, value_int(one->agent.revision));
    e = load_look(r, &q, why);
    if (!e)
        one->is_outdated = q.rows != NULL;
    query_fini(&q);
    return e;
}

static enum err load_want_vectors(struct registry *r, bool is_restored,
                                  struct why *why)
{
    enum err e = OK;

    for (size_t i = 0; i < r->n && r->vectors && !e; i++) {
        struct entry *one = agent_entry(r->list[i]);

        if (one->is_embedded)
            continue;
        if (is_restored)
            e = load_check_row(r, one, why);
        vectors_want(r, one);
        r->vectors->n_outdated += one->is_outdated;
    }
    return e;
}

static int64_t mono_ms(const struct registry *r)
{
    struct clock c = r->opts.log->clock;

    return c.mono_ms(c.ctx);
}

enum err registry_load(struct registry *r, struct why *why)
{
    int64_t began_ms = mono_ms(r);
    bool is_restored = false;
    enum err e = load_seq(r, why);

    if (!e)
        e = rows_each(r, &agent_table, load_agent, NULL, why);
    if (e)
        return e;
    /* From the top down, so that the lowest number is given first. */
    for (size_t i = r->n_numbers; i-- > 0;)
        if (!r->by_number[i])
            number_release(r, (uint32_t)i);
    e = rows_each(r, &grant_table, load_grant, NULL, why);
    if (!e)
        e = reviews_load(r, why);
    if (!e)
        e = reports_load(r, why);
    if (!e) {
        front_settle(r);
        is_restored = snapshot_load(r);
    }
    if (!e && (e = levels_load(r)))
        why_err(why, e, "the reference vectors cannot be read: %s",
                err_row(e)->wording);
    if (!e && !is_restored)
        e = load_build_index(r, why);
    if (!e)
        e = load_want_vectors(r, is_restored, why);
    if (e)
        return e;
    r->is_loaded = true;
    log_info(r->opts.log, "registry.loaded", LOG_I("agents", (int64_t)r->n),
             LOG_I("skills", r->stats.skills),
             LOG_C("index", is_restored ? "from its snapshot" : "built"),
             LOG_I("ms", mono_ms(r) - began_ms));
    return OK;
}
