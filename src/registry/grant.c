/* Grants: users and orgs that may see a shared agent besides its own org.
 *
 * All grants of one agent are one block, apart from its card and replaced as a
 * whole, so a change that is not committed has touched nothing. Making one
 * claims the agent like any other change. The revision of the agent stays: a
 * grant is not part of the card, so it does not disturb a user who edits the
 * card.
 *
 * A grant stops to count when it expires. It leaves memory with the next grant
 * of its agent, or when its row is old enough. */
#include <stdlib.h>

#include "base/mem.h"
#include "registry/internal.h"

enum {
    GRANT_BYTES = sizeof(struct agent_grant) + 3 * (PRINCIPAL_NAME_MAX + 32),
};

static struct grants *grants_new(size_t room)
{
    struct grants *g = mem_new(sizeof(*g));

    arena_init(&g->arena, (room + 1) * GRANT_BYTES);
    g->list = arena_array(&g->arena, room, sizeof(*g->list));
    g->room = room;
    assert(g->list);
    return g;
}

static struct str grant_id(const struct grants *g, size_t i)
{
    return str_of(g->list[i].id.text);
}

/* Remove from the map, whose keys are in the block. */
static void grants_leave(struct registry *r, struct grants *g)
{
    while (g->n_listed)
        (void)map_take(&r->grants, grant_id(g, --g->n_listed));
}

static enum err grants_enter(struct registry *r, struct grants *g)
{
    enum err e = OK;

    while (!e && g->n_listed < g->n) {
        e = map_put(&r->grants, grant_id(g, g->n_listed), g);
        g->n_listed += !e;
    }
    return e;
}

void grants_free(struct registry *r, struct grants *g)
{
    if (!g)
        return;
    grants_leave(r, g);
    arena_fini(&g->arena);
    free(g);
}

/* So that list_all cannot fail. */
enum err grants_reserve(struct registry *r)
{
    enum err e = map_reserve(&r->grants, r->n_grants_coming + 1);

    r->n_grants_coming += !e;
    return e;
}

static void entry_point_at_grants(struct entry *e, struct grants *g)
{
    e->grants = g;
    e->agent.grants = g ? g->list : NULL;
    e->agent.n_grants = g ? g->n : 0;
    if (g)
        g->entry = e;
}

void entry_set_grants(struct registry *r, struct entry *e, struct grants *g)
{
    enum err listed;

    if (e->grants != g)
        grants_free(r, e->grants);
    entry_point_at_grants(e, g);
    listed = g ? grants_enter(r, g) : OK;
    assert(!listed);
}

enum err grants_add(struct grants *g, const struct agent_grant *one)
{
    struct agent_grant *to = &g->list[g->n];

    assert(g->n < g->room);
    *to = *one;
    if (!arena_keep(&g->arena, one->user, &to->user) ||
        !arena_keep(&g->arena, one->org, &to->org) ||
        !arena_keep(&g->arena, one->by, &to->by))
        return ERR_NOMEM;
    g->n++;
    return OK;
}

static bool grant_has_expired(const struct agent_grant *g, int64_t now_ms)
{
    return g->expires_ms && g->expires_ms <= now_ms;
}

struct grants *grants_copy(const struct grants *from, size_t more,
                           int64_t now_ms)
{
    size_t n = from ? from->n : 0;
    struct grants *g = grants_new(n + more);

    for (size_t i = 0; i < n; i++)
        if (!grant_has_expired(&from->list[i], now_ms)) {
            enum err e = grants_add(g, &from->list[i]);

            assert(!e); /* it fits into a larger arena */
        }
    return g;
}

/* Room doubles, so that loading many grants copies each only a few times. */
enum err entry_add_grant(struct registry *r, struct entry *e,
                         const struct agent_grant *one)
{
    struct grants *g = e->grants;
    enum err err = OK;

    if (!g || g->n == g->room) {
        g = grants_copy(e->grants, g ? g->n : 1, INT64_MIN);
        grants_free(r, e->grants);
    }
    err = grants_add(g, one);
    entry_point_at_grants(e, g);
    return err ? err : grants_enter(r, g);
}

static enum err grant_check(const struct registry_grant *g,
                            const struct registry_by *by, struct why *why)
{
    if ((g->user.n > 0) == (g->org.n > 0))
        return why_err(why, ERR_BAD_REQUEST,
                       "a grant is for a user or for an org: give one of them");
    if (!principal_name_is_valid(g->user.n ? g->user : g->org))
        return why_err(why, ERR_BAD_REQUEST,
                       "%s must be 1 to %d letters, digits, ., _, @ or -, and "
                       "begin with a letter or digit",
                       g->user.n ? "user" : "org", PRINCIPAL_NAME_MAX);
    if (g->expires_ms < 0 || (g->expires_ms && g->expires_ms <= by->now_ms))
        return why_err(why, ERR_BAD_REQUEST,
                       "a grant cannot have expired before it is made");
    return OK;
}

static struct agent_grant *grants_find_same(struct grants *all,
                                            const struct registry_grant *g)
{
    for (size_t i = 0; i < all->n; i++)
        if (str_eq_nocase(all->list[i].user, g->user) &&
            str_eq(all->list[i].org, g->org))
            return &all->list[i];
    return NULL;
}

/* Guard: the agent has not changed meanwhile. */
static void grant_expect_agent(struct tx *tx, const struct entry *e)
{
    struct tx_op *op = tx_expect(tx, &agent_table);

    tx_if(op, AGENT_KEY, IS, value_text(e->key));
    tx_if(op, AGENT_REVISION, IS, value_int(e->agent.revision));
}

static struct value grant_expiry(const struct agent_grant *g)
{
    return g->expires_ms ? value_int(g->expires_ms) : value_null();
}

static void grant_append_insert(struct tx *tx, const struct entry *e,
                                const struct agent_grant *g)
{
    struct tx_op *op = tx_insert(tx, &grant_table);

    record_to_tx(op, g, 1);
    tx_set(op, GRANT_AGENT, value_text(e->key));
}

static void grant_append_update(struct tx *tx, const struct agent_grant *g)
{
    struct tx_op *op = tx_update(tx, &grant_table);

    tx_if(op, GRANT_ID, IS, value_text(str_of(g->id.text)));
    tx_set(op, GRANT_EXPIRES_MS, grant_expiry(g));
}

/* Rows that grants_copy left out. */
static void grant_append_prune(struct tx *tx, const struct entry *e,
                               int64_t now_ms)
{
    struct tx_op *op = tx_prune(tx, &grant_table, AGENT_GRANTS_MAX);

    tx_if(op, GRANT_AGENT, IS, value_text(e->key));
    tx_if(op, GRANT_EXPIRES_MS, IS_AT_MOST, value_int(now_ms));
}

/* Add to the future block of the agent, and to the tx. c->is_same: the grant
 * exists. */
static enum err grant_take(struct registry *r, struct registry_change *c,
                           const struct entry *e, struct grants *all,
                           const struct registry_grant *g,
                           const struct registry_by *by, struct why *why)
{
    struct agent_grant *one = grants_find_same(all, g);
    enum err err;

    if (one && one->expires_ms == g->expires_ms) {
        c->is_same = true;
        c->grant_id = one->id;
        return OK;
    }
    grant_expect_agent(&c->tx, e);
    grant_append_prune(&c->tx, e, by->now_ms);
    if (one) {
        one->expires_ms = g->expires_ms;
        grant_append_update(&c->tx, one);
    } else {
        struct agent_grant made = {
            .id = id_make(r->opts.ids, "grant", by->now_ms),
            .user = g->user,
            .org = g->org,
            .expires_ms = g->expires_ms,
            .created_ms = by->now_ms,
            .by = by_name(by)};

        if (all->n >= AGENT_GRANTS_MAX)
            return why_err(why, ERR_LIMIT,
                           "this agent has %d grants, the maximum; grant an "
                           "org instead, or remove some",
                           AGENT_GRANTS_MAX);
        err = grants_add(all, &made);
        if (!err)
            err = grants_reserve(r);
        if (err)
            return err;
        c->steps->has_room = true;
        one = &all->list[all->n - 1];
        grant_append_insert(&c->tx, e, one);
    }
    c->grant_id = one->id;
    registry_tell_feed(&c->tx, &(struct feed_event){.type = "grant.created",
                                                    .entry = e,
                                                    .grant = one,
                                                    .by = by_name(by),
                                                    .at_ms = by->now_ms});
    return OK;
}

enum err registry_grant(struct registry *r, struct registry_change *c,
                        const struct registry_grant *g,
                        const struct registry_by *by, struct why *why)
{
    struct registry_step *s;
    struct entry *e;
    enum err err = find_to_change(r, CHANGE_GRANTS, g->agent, by, &e, why);

    assert(!c->is_open);
    if (!err)
        err = grant_check(g, by, why);
    if (!err)
        err = step_add(r, c, STEP_GRANTS, e->key, &s, why);
    if (!err) {
        s->grants = grants_copy(e->grants, 1, by->now_ms);
        err = grant_take(r, c, e, s->grants, g, by, why);
    }
    if (err)
        return change_refuse(r, c, err, why);
    if (c->is_same)
        steps_drop(r, c);
    else
        seq_append(r, &c->tx);
    return change_open(c, e->agent.name, e->agent.revision);
}

static struct entry *grant_find(const struct registry *r, struct str id,
                                size_t *at)
{
    const struct grants *g = map_get(&r->grants, id);

    if (!g)
        return NULL;
    for (*at = 0; !str_eq(grant_id(g, *at), id);)
        ++*at;
    return g->entry;
}

static enum err grant_take_back(struct registry *r, struct registry_change *c,
                                struct entry *e, size_t at,
                                const struct registry_by *by, struct why *why)
{
    struct registry_step *s;
    enum err err = step_add(r, c, STEP_GRANTS, e->key, &s, why);
    const struct agent_grant *one = &e->grants->list[at];
    struct tx_op *op;

    if (err)
        return err;
    s->grants = grants_copy(e->grants, 0, INT64_MIN);
    memmove(s->grants->list + at, s->grants->list + at + 1,
            (--s->grants->n - at) * sizeof(*s->grants->list));
    grant_expect_agent(&c->tx, e);
    op = tx_delete(&c->tx, &grant_table);
    tx_if(op, GRANT_ID, IS, value_text(str_of(one->id.text)));
    c->grant_id = one->id;
    registry_tell_feed(&c->tx, &(struct feed_event){.type = "grant.removed",
                                                    .entry = e,
                                                    .grant = one,
                                                    .by = by_name(by),
                                                    .at_ms = by->now_ms});
    return OK;
}

enum err registry_ungrant(struct registry *r, struct registry_change *c,
                          struct str id, const struct registry_by *by,
                          struct why *why)
{
    size_t at = 0;
    struct entry *e = grant_find(r, id, &at), *owned;
    struct eyes eyes = by_eyes(by);
    enum err err;

    assert(!c->is_open);
    /* A caller who does not own the agent does not learn that the grant
     * exists. */
    if (!e || !agent_is_owned(&e->agent, &eyes))
        return why_err(why, ERR_NOT_FOUND, "there is no grant of that id");
    err = find_to_change(r, CHANGE_GRANTS, e->agent.name, by, &owned, why);
    if (!err)
        err = grant_take_back(r, c, e, at, by, why);
    if (err)
        return change_refuse(r, c, err, why);
    seq_append(r, &c->tx);
    return change_open(c, e->agent.name, e->agent.revision);
}

static void grants_drop_expired(struct registry *r, struct grants *g,
                                int64_t now_ms)
{
    size_t n = 0;

    grants_leave(r, g); /* its keys move */
    for (size_t i = 0; i < g->n; i++)
        if (!grant_has_expired(&g->list[i], now_ms))
            g->list[n++] = g->list[i];
    g->n = n;
}

void registry_prune(struct registry *r, struct tx *tx, int64_t before_ms,
                    size_t limit)
{
    struct tx_op *op = tx_prune(tx, &grant_table, limit);

    tx_if(op, GRANT_EXPIRES_MS, IS_LESS, value_int(before_ms));
    if (before_ms > r->pruned_ms)
        r->pruned_ms = before_ms;
    for (size_t i = 0; i < r->n; i++) {
        struct entry *e = agent_entry(r->list[i]);
        struct grants *g = e->grants;
        size_t n = 0;

        for (size_t k = 0; g && k < g->n; k++)
            n += !grant_has_expired(&g->list[k], before_ms - 1);
        if (!g || n == g->n)
            continue;
        r->stats.grants -= (int64_t)(g->n - n);
        grants_drop_expired(r, g, before_ms - 1);
        entry_set_grants(r, e, g);
    }
}
