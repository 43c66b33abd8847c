/* Whether memory, index and store agree: everything is read, written out again
 * and compared. Slow on purpose; tests call it after every batch, and `doctor`
 * once.
 *
 *     store -> memory   every row has its entry, field by field
 *     memory            its own lists, maps, numbers and counts agree
 *     memory -> index   as many documents; each agent is found by its name,
 *                       in its class; vectors exactly where rows have them
 *
 * Pending changes are in none of them, so it may be called whenever every
 * reported commit has been settled. */
#include "registry/internal.h"

struct sums {
    size_t agents, grants, vectors, reviews, reports;
};

static enum err verify_failed(struct why *why, const char *what,
                              struct str name)
{
    return why_err(why, ERR_INTERNAL, "%s: \"%.*s\"", what, STR_ARG(name));
}

static bool fields_are_same(const struct row *row, const struct entry *e)
{
    const struct agent *a = &e->agent;
    struct str own = e->has_own_org ? a->org : (struct str){NULL, 0};

    return str_eq(row_str(row, AGENT_SHOWN), a->name) &&
           row_int(row, AGENT_NUMBER) == e->number &&
           row_int(row, AGENT_VISIBILITY) == a->visibility &&
           row_int(row, AGENT_KIND) == a->kind &&
           str_eq(row_str(row, AGENT_CREATOR), a->creator) &&
           str_eq(row_str(row, AGENT_ORG), own) &&
           (row_int(row, AGENT_IS_CONFIGURED) != 0) == a->is_configured &&
           row_int(row, AGENT_REVISION) == a->revision &&
           row_int(row, AGENT_CREATED_MS) == a->created_ms &&
           row_int(row, AGENT_UPDATED_MS) == a->updated_ms;
}

/* Whether the row has the card of an agent. */
static enum err verify_card(struct registry *r, struct str key,
                            const struct agent *a, struct str text,
                            struct why *why)
{
    struct buf stored, kept;
    bool is_sealed;
    enum err e = sealed_read(r, key, text, &kept, &is_sealed, why);

    buf_init(&stored, 1);
    if (!e)
        e = entry_write(a, &stored);
    if (!e && !str_eq(buf_str(&stored), buf_str(&kept)))
        e = verify_failed(why, "another card in the store than in memory", key);
    buf_fini(&kept);
    buf_fini(&stored);
    return e;
}

static enum err verify_agent(struct registry *r, const struct row *row,
                             void *ctx, struct why *why)
{
    struct str key = row_str(row, AGENT_KEY);
    const struct entry *e = entry_find(r, key);
    struct sums *s = ctx;

    if (!e)
        return verify_failed(why, "in the store, and not in memory", key);
    if (!fields_are_same(row, e))
        return verify_failed(why, "another in the store than in memory", key);
    s->agents++;
    return verify_card(r, key, &e->agent, row_str(row, AGENT_CARD), why);
}

static const struct agent_grant *verify_find_grant(const struct entry *e,
                                                   struct str id)
{
    for (size_t i = 0; e && i < e->agent.n_grants; i++)
        if (str_eq(str_of(e->agent.grants[i].id.text), id))
            return &e->agent.grants[i];
    return NULL;
}

static bool is_forgotten(const struct registry *r, int64_t expires_ms)
{
    return expires_ms && expires_ms < r->pruned_ms;
}

static enum err verify_grant(struct registry *r, const struct row *row,
                             void *ctx, struct why *why)
{
    const struct entry *e = entry_find(r, row_str(row, GRANT_AGENT));
    const struct agent_grant *g = verify_find_grant(e, row_str(row, GRANT_ID));
    struct sums *s = ctx;

    if (is_forgotten(r, row_int(row, GRANT_EXPIRES_MS)))
        return OK;
    if (!g || map_get(&r->grants, row_str(row, GRANT_ID)) != e->grants ||
        !str_eq(row_str(row, GRANT_USER), g->user) ||
        !str_eq(row_str(row, GRANT_ORG), g->org) ||
        !str_eq(row_str(row, GRANT_BY), g->by) ||
        row_int(row, GRANT_EXPIRES_MS) != g->expires_ms ||
        row_int(row, GRANT_CREATED_MS) != g->created_ms)
        return verify_failed(why, "a grant that memory has not, or not so",
                             row_str(row, GRANT_ID));
    s->grants++;
    return OK;
}

static enum err verify_review(struct registry *r, const struct row *row,
                              void *ctx, struct why *why)
{
    struct str key = row_str(row, REVIEW_AGENT);
    const struct entry *e = entry_find(r, key);
    const struct review *v = e ? e->agent.review : NULL;
    struct sums *s = ctx;

    if (!v || row_int(row, REVIEW_STATE) != v->state ||
        row_int(row, REVIEW_AT_MS) != v->at_ms ||
        !str_eq(row_str(row, REVIEW_REASON), v->reason) ||
        !str_eq(row_str(row, REVIEW_BY), v->by))
        return verify_failed(why, "another review in the store than in memory",
                             key);
    s->reviews++;
    return verify_card(r, key, v->wanted, row_str(row, REVIEW_CARD), why);
}

static enum err verify_report(struct registry *r, const struct row *row,
                              void *ctx, struct why *why)
{
    struct str key = row_str(row, REPORT_AGENT);
    const struct entry *e = entry_find(r, key);
    struct registry_report list[REPORTS_PER_AGENT];
    size_t n = e ? registry_reports(r, &e->agent, list, REPORTS_PER_AGENT) : 0;
    struct sums *s = ctx;

    s->reports++;
    for (size_t i = 0; i < n; i++)
        if (str_eq(row_str(row, REPORT_USER), list[i].user) &&
            str_eq(row_str(row, REPORT_REASON), list[i].reason) &&
            row_int(row, REPORT_AT_MS) == list[i].at_ms)
            return OK;
    return verify_failed(why, "a report that memory has not, or not so", key);
}

static enum err verify_vectors(struct registry *r, const struct row *row,
                               void *ctx, struct why *why)
{
    struct str key = row_str(row, VECTOR_AGENT);
    struct entry *e = entry_find(r, key);
    struct sums *s = ctx;
    struct buf kept, have;
    enum err err = OK;

    if (!e)
        return verify_failed(why, "vectors without an agent", key);
    if (row_int(row, VECTOR_REVISION) != e->agent.revision)
        return verify_failed(why, "vectors of another card", key);
    buf_init(&kept, VECTORS_BYTES_MAX);
    buf_init(&have, VECTORS_BYTES_MAX);
    if (vectors_from_row(r, &e->agent, row, &kept)) {
        s->vectors++;
        if (!vectors_in_index(r, e, &have) || !e->is_embedded)
            err = verify_failed(why, "vectors that the index has not", key);
        else if (!str_eq(buf_str(&kept), buf_str(&have)))
            err = verify_failed(why, "other vectors in the index", key);
    }
    buf_fini(&kept);
    buf_fini(&have);
    return err;
}

static enum err verify_seq(struct registry *r, struct why *why)
{
    struct query q;
    int64_t seq = 0;
    enum err e;

    query_init(&q, &registry_table, 1);
    query_if(&q, REGISTRY_KEY, IS, value_int(1));
    e = store_look(r->opts.store, &q);
    if (!e && q.rows)
        seq = row_int(q.rows, REGISTRY_SEQ);
    query_fini(&q);
    if (!e && seq != r->seq)
        e = why_err(why, ERR_INTERNAL,
                    "the sequence is %lld in the store and %lld in memory",
                    (long long)seq, (long long)r->seq);
    return e;
}

static bool entry_is_right(const struct registry *r, const struct entry *e)
{
    static const struct holding none;
    struct str org = r->opts.org_of && e->agent.creator.n
                         ? r->opts.org_of(r->opts.ctx, e->agent.creator)
                         : (struct str){NULL, 0};

    return map_get(&r->by_name, e->key) == e && e->number < r->n_numbers &&
           r->by_number[e->number] == e &&
           str_eq_nocase(e->key, e->agent.name) && e->agent.org.p == e->org &&
           (e->has_own_org || str_eq(e->agent.org, org)) &&
           e->is_claimed == (map_get(&r->claims, e->key) != NULL) &&
           e->owner == owner_find(r, e->agent.creator) &&
           list_has(&e->owned) == (e->owner != NULL) &&
           holding_is(&e->counted, e->owner ? &e->size : &none) &&
           e->in_org == (e->owner ? org_count_find(r, e->agent.org) : NULL) &&
           holding_is(&e->org_counted, e->in_org ? &e->size : &none);
}

static bool counts_are_right(const struct registry *r)
{
    struct registry_stats s = {.agents = 0};
    static const struct holding none;
    struct holding owned = none, in_orgs = none;
    size_t n_awaited = 0, at = 0;
    const struct map_slot *slot;

    for (size_t i = 0; i < r->n; i++) {
        const struct agent *a = r->list[i];

        s.skills += (int64_t)a->n_skills;
        s.grants += (int64_t)a->n_grants;
        s.by_visibility[a->visibility & 3]++;
        s.by_review[a->review ? a->review->state & 3 : 0]++;
        s.reports += (int64_t)agent_entry(a)->n_reports;
        s.unembedded += r->vectors && !agent_entry(a)->is_embedded;
        holding_add(&owned, &agent_entry(a)->counted);
        holding_add(&in_orgs, &agent_entry(a)->org_counted);
        n_awaited +=
            r->vectors && agent_entry(a)->owner && !agent_entry(a)->is_embedded;
    }
    while ((slot = map_next(&r->owners.by_key, &at))) {
        const struct owner *o = slot->value;

        holding_subtract(&owned, &o->held);
        n_awaited -= o->n_awaited;
    }
    at = 0;
    while ((slot = map_next(&r->orgs.by_key, &at)))
        holding_subtract(&in_orgs,
                         &((const struct org_count *)slot->value)->held);
    return ((holding_is(&owned, &none) && holding_is(&in_orgs, &none)) ||
            r->claims.n) &&
           n_awaited == 0 && r->stats.agents == (int64_t)r->n &&
           r->stats.skills == s.skills && r->stats.grants == s.grants &&
           r->stats.unembedded == s.unembedded &&
           r->stats.reports == s.reports &&
           memcmp(r->stats.by_review, s.by_review, sizeof(s.by_review)) == 0 &&
           memcmp(r->stats.by_visibility, s.by_visibility,
                  sizeof(s.by_visibility)) == 0;
}

static enum err verify_memory(const struct registry *r, struct why *why)
{
    size_t n_free = 0;

    if (!map_check(&r->by_name) || r->by_name.n != r->n)
        return why_err(why, ERR_INTERNAL, "the map of names is wrong");
    for (size_t i = 0; i < r->n; i++) {
        if (!entry_is_right(r, agent_entry(r->list[i])))
            return verify_failed(why, "not where it says it is",
                                 r->list[i]->name);
        if (r->list[i]->revision > r->seq)
            return verify_failed(why, "of a revision that may come twice",
                                 r->list[i]->name);
        if (i && str_cmp_nocase(r->list[i - 1]->name, r->list[i]->name) >= 0)
            return verify_failed(why, "out of order", r->list[i]->name);
    }
    for (size_t i = 0; i < r->n_numbers; i++)
        n_free += !r->by_number[i];
    if (n_free != r->n_free + r->n_coming)
        return why_err(why, ERR_INTERNAL, "numbers are lost");
    if (!map_check(&r->grants) || (int64_t)r->grants.n != r->stats.grants)
        return why_err(why, ERR_INTERNAL, "the map of grants is wrong");
    if (!counts_are_right(r))
        return why_err(why, ERR_INTERNAL, "the counts are wrong");
    return OK;
}

static bool admit_one(void *ctx, uint32_t number, uint32_t skill)
{
    (void)skill;
    return *(const uint32_t *)ctx == number;
}

static void count_term(void *ctx, struct str word, struct str stem)
{
    (void)word;
    (void)stem;
    ++*(size_t *)ctx;
}

/* Whether a requester who sees just its class finds it by its name. */
static enum err verify_found(struct registry *r, const struct entry *e,
                             struct why *why)
{
    uint32_t number = e->number;
    struct index_class cls = front_class(e);
    struct index_query q = {.text = e->agent.name,
                            .mode = INDEX_TEXT,
                            .admits = admit_one,
                            .ctx = &number};
    struct index_hit hit = {.number = 0};
    size_t n_terms = 0;
    enum err err;

    index_terms(e->agent.name, count_term, &n_terms);
    if (!n_terms) /* only stop words */
        return OK;
    if (cls.kind == INDEX_ORG)
        q.org = cls.name;
    if (cls.kind == INDEX_CREATOR && cls.name.n)
        q.creator = cls.name;
    q.sees_all = cls.kind != INDEX_PUBLIC && !cls.name.n;
    err = index_search_begin(r->index, &q);
    if (err)
        return err;
    if (!index_next(r->index, &hit) || hit.number != number)
        err = verify_failed(why, "not found by its name", e->agent.name);
    index_search_end(r->index);
    return err;
}

static enum err verify_index(struct registry *r, const struct sums *s,
                             struct why *why)
{
    struct index_stats have = index_stats(r->index);
    size_t n_vectors = 0;
    struct buf own;
    enum err e = OK;

    if (have.agents != r->n || have.documents != r->n + (size_t)r->stats.skills)
        return why_err(why, ERR_INTERNAL,
                       "the index has %zu agents and %zu documents, memory "
                       "%zu and %zu",
                       have.agents, have.documents, r->n,
                       r->n + (size_t)r->stats.skills);
    buf_init(&own, VECTORS_BYTES_MAX);
    for (size_t i = 0; i < r->n && !e; i++) {
        struct entry *one = agent_entry(r->list[i]);
        bool is_for_now = index_is_for_now(r->index, one->number);

        buf_clear(&own);
        n_vectors += !is_for_now && index_vectors(r->index, one->number, &own);
        e = is_for_now && one->is_embedded
                ? verify_failed(why, "vectors for now that should be full",
                                one->key)
                : verify_found(r, one, why);
    }
    buf_fini(&own);
    if (!e && n_vectors != s->vectors)
        e = why_err(why, ERR_INTERNAL,
                    "the index has vectors of %zu agents, the store of %zu",
                    n_vectors, s->vectors);
    return e;
}

enum err registry_check(struct registry *r, struct why *why)
{
    struct sums s = {0};
    size_t n_forgotten = 0;
    enum err e = verify_memory(r, why);

    if (!e)
        e = verify_seq(r, why);
    if (!e)
        e = rows_each(r, &agent_table, verify_agent, &s, why);
    if (!e)
        e = rows_each(r, &grant_table, verify_grant, &s, why);
    if (!e)
        e = rows_each(r, &vector_table, verify_vectors, &s, why);
    if (!e)
        e = rows_each(r, &review_table, verify_review, &s, why);
    if (!e)
        e = rows_each(r, &report_table, verify_report, &s, why);
    for (size_t i = 0; i < r->n; i++)
        for (size_t k = 0; k < r->list[i]->n_grants; k++)
            n_forgotten += is_forgotten(r, r->list[i]->grants[k].expires_ms);
    if (!e &&
        (s.agents != r->n || s.grants + n_forgotten != (size_t)r->stats.grants))
        e = why_err(why, ERR_INTERNAL,
                    "memory has %zu agents and %lld grants, the store %zu and "
                    "%zu",
                    r->n, (long long)r->stats.grants, s.agents, s.grants);
    if (!e && (s.reviews + (size_t)r->stats.by_review[0] != r->n ||
               s.reports != (size_t)r->stats.reports))
        e = why_err(why, ERR_INTERNAL,
                    "the store has %zu reviews and %zu reports, memory others",
                    s.reviews, s.reports);
    return e ? e : verify_index(r, &s, why);
}
