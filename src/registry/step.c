/* The effect of a change on one agent. Everything that can fail happens when
 * the change is taken: the card is read, the index change prepared, room made
 * in the mirror, a number found. So memory and index follow a reported commit
 * at once and without failing.
 *
 *     taken      name claimed, number and limits claimed, tx filled
 *     settled    committed: mirror, index, sequence; vectors requested
 *                otherwise: everything released, as if never requested
 *
 * Two changes of one agent cannot be pending at a time. The guards (its
 * revision, or that its name is free) are there all the same, because another
 * program may write the database too.
 *
 * Vectors go with the card: made at once, in the same tx; or kept, if the texts
 * are the same; else the old row goes and new ones are requested after the
 * commit. A row is written in the background only if the card still has the
 * revision it was made for. So whichever of the two commits first, the row
 * never belongs to another card. */
#include <stdlib.h>

#include "base/fault.h"
#include "base/mem.h"
#include "registry/internal.h"

void registry_change_init(struct registry_change *c)
{
    *c = (struct registry_change){.is_open = false};
    tx_init(&c->tx);
}

void registry_change_fini(struct registry_change *c)
{
    assert(!c->is_open && !c->steps); /* or its claims would never end */
    tx_fini(&c->tx);
}

enum err step_add(struct registry *r, struct registry_change *c,
                  enum step_kind kind, struct str key,
                  struct registry_step **out, struct why *why)
{
    struct registry_step *s;
    struct entry *there;

    *out = NULL;
    if (map_get(&r->claims, key))
        return why_err(why, ERR_BUSY,
                       "this agent is being changed right now; try again");
    s = mem_new(sizeof(*s) + key.n);
    s->kind = kind;
    memcpy(s->bytes, key.p, key.n);
    s->key = (struct str){s->bytes, key.n};
    if (map_put(&r->claims, s->key, s) != OK) {
        free(s);
        return ERR_NOMEM;
    }
    there = entry_find(r, key);
    if (there)
        there->is_claimed = true;
    s->next = c->steps;
    c->steps = s;
    *out = s;
    return OK;
}

/* Release the claims of a step; its contents belong to others now. */
static void step_free(struct registry *r, struct registry_step *s)
{
    struct entry *there = entry_find(r, s->key);

    if (there)
        there->is_claimed = false;
    if (s->is_new)
        r->n_coming--;
    if (s->has_room)
        r->n_grants_coming--;
    r->n_skills_coming -= s->n_skills_more;
    map_take(&r->claims, s->key);
    free(s);
}

void steps_drop(struct registry *r, struct registry_change *c)
{
    while (c->steps) {
        struct registry_step *s = c->steps;

        c->steps = s->next;
        if (s->change)
            index_forget(r->index, s->change);
        if (s->is_new)
            number_release(r, s->entry->number);
        agent_entry_free(r, s->entry);
        grants_free(r, s->grants);
        if (s->report)
            report_drop(r, s->report);
        step_free(r, s);
    }
}

void seq_append(struct registry *r, struct tx *tx)
{
    struct tx_op *op;

    if (r->seq == 0) { /* perhaps the first change ever */
        op = tx_put(tx, &registry_table);
        tx_set(op, REGISTRY_KEY, value_int(1));
        tx_set_new(op, REGISTRY_SEQ, value_int(0));
    }
    op = tx_add(tx, &registry_table, REGISTRY_SEQ, 1, 0);
    tx_if(op, REGISTRY_KEY, IS, value_int(1));
    if (r->mark == r->own_mark)
        return;
    op = tx_update(tx, &registry_table);
    tx_if(op, REGISTRY_KEY, IS, value_int(1));
    tx_set(op, REGISTRY_MARK, value_int(r->own_mark));
}

void seq_settle(struct registry *r)
{
    r->mark = r->own_mark;
    r->seq += PLANTED("registry.forget_seq") ? 0 : 1;
    r->stats.changes_total++;
}

static void step_append_row(struct tx *tx, const struct entry *e,
                            const struct entry *before, struct str stored)
{
    struct tx_op *op =
        before ? tx_update(tx, &agent_table) : tx_insert(tx, &agent_table);
    const struct agent *a = &e->agent;

    if (before) {
        tx_if(op, AGENT_KEY, IS, value_text(e->key));
        tx_if(op, AGENT_REVISION, IS, value_int(before->agent.revision));
    } else {
        tx_set(op, AGENT_KEY, value_text(e->key));
    }
    record_to_tx(op, a, 1);
    tx_set(op, AGENT_SHOWN, value_text(a->name));
    tx_set(op, AGENT_NUMBER, value_int(e->number));
    tx_set(op, AGENT_CARD, value_text(stored));
    tx_set(op, AGENT_CREATOR, value_text_or_null(a->creator));
    tx_set(op, AGENT_ORG, e->has_own_org ? value_text(a->org) : value_null());
}

/* A configuration of many agents is one tx. Beyond this size vectors come in
 * the background, or they would delay the start and not fit in the end. */
enum { TX_VECTORS_MAX = TX_BYTES_MAX / 4 };

/* Reuse the vectors of the old card. False: it has none, or their texts
 * differ. */
static bool step_keep_vectors(struct registry *r, struct tx *tx,
                              const struct step_put *p, struct buf *out)
{
    struct tx_op *op;

    if (!p->before || !vectors_are_same(&p->before->agent, &p->entry->agent) ||
        !vectors_in_index(r, p->before, out))
        return false;
    op = tx_update(tx, &vector_table);
    tx_if(op, VECTOR_AGENT, IS, value_text(p->entry->key));
    tx_if(op, VECTOR_REVISION, IS, value_int(p->before->agent.revision));
    tx_set(op, VECTOR_REVISION, value_int(p->entry->agent.revision));
    return true;
}

static enum err step_prepare_index(struct registry *r, struct tx *tx,
                                   const struct step_put *p,
                                   struct registry_step *s)
{
    struct buf vectors;
    struct tx_op *op;
    enum err e;

    buf_init(&vectors, VECTORS_BYTES_MAX);
    p->entry->is_embedded = step_keep_vectors(r, tx, p, &vectors);
    if (!p->entry->is_embedded && tx->arena.used < TX_VECTORS_MAX) {
        struct buf packed;
        bool is_made;

        buf_clear(&vectors);
        buf_init(&packed, VECTORS_BYTES_MAX);
        is_made =
            vectors_now(r, &p->entry->agent, &packed) &&
            vectors_for_index(r, &p->entry->agent, buf_str(&packed), &vectors);
        if (is_made)
            vectors_append(r, tx, &p->entry->agent, buf_str(&packed));
        buf_fini(&packed);
        p->entry->is_embedded = is_made;
    }
    if (!p->entry->is_embedded && p->before) {
        op = tx_prune(tx, &vector_table, 1);
        tx_if(op, VECTOR_AGENT, IS, value_text(p->entry->key));
    }
    e = vectors_prepare(r, &p->entry->agent,
                        p->entry->is_embedded ? &vectors : NULL, &s->change);
    s->dims = index_dims(r->index);
    buf_fini(&vectors);
    return e;
}

static enum err step_check_limits(const struct registry *r,
                                  const struct step_put *p,
                                  size_t n_skills_more, struct why *why)
{
    const struct registry_limits *l = &r->opts.limits;
    size_t n_skills = (size_t)r->stats.skills + r->n_skills_coming;

    if (p->is_unbound)
        return OK;
    if (!p->before && r->n + r->n_coming >= l->max_agents)
        return why_err(why, ERR_LIMIT,
                       "the limit of %zu agents (registry.maxAgents) is "
                       "reached; remove some first",
                       l->max_agents);
    if (n_skills_more && n_skills + n_skills_more > l->max_skills)
        return why_err(why, ERR_LIMIT,
                       "the limit of %zu skills of all agents together "
                       "(registry.maxSkills) would be exceeded",
                       l->max_skills);
    if (p->is_limited && !PLANTED("registry.no_shares"))
        return holding_check(r, p->entry, p->before, why);
    return OK;
}

/* Claim a number and a part of the limits for the step. */
static enum err step_claim_number(struct registry *r, const struct step_put *p,
                                  struct registry_step *s, struct why *why)
{
    const struct entry *before = p->before;
    size_t n_before = before ? before->agent.n_skills : 0;
    size_t n_more = p->entry->agent.n_skills > n_before
                        ? p->entry->agent.n_skills - n_before
                        : 0;
    enum err e = step_check_limits(r, p, n_more, why);

    if (!e)
        e = mirror_reserve(r, before ? 0 : 1);
    if (!e)
        e = owner_take(r, p->entry, before);
    if (e)
        return e;
    s->n_skills_more = n_more;
    r->n_skills_coming += n_more;
    s->is_new = !before;
    if (before) {
        p->entry->number = before->number;
    } else {
        p->entry->number = number_claim(r);
        r->n_coming++;
    }
    return OK;
}

/* The feed event of the wanted card, unless an admin judged it: it was
 * submitted if it waits since now, or if the agent is hidden. */
static const char *step_review_event(const struct step_put *p)
{
    const struct review *v = p->entry->agent.review;
    const struct review *was = p->before ? p->before->agent.review : NULL;

    if (p->event)
        return NULL;
    if (!v)
        return was ? "agent.withdrawn" : NULL;
    if ((v->state == REVIEW_WAITING && v->at_ms == p->now_ms) ||
        (v->state == REVIEW_HIDDEN && p->is_limited)) /* by its creator */
        return "agent.submitted";
    return NULL;
}

static void step_tell_feed(struct tx *tx, const struct step_put *p)
{
    const char *of_wish = step_review_event(p);
    struct feed_event t = {.entry = p->entry,
                           .before = p->before,
                           .is_private = p->is_private,
                           .reason = p->reason,
                           .by = p->by,
                           .at_ms = p->now_ms};

    t.type = p->event    ? p->event
             : p->before ? "agent.updated"
                         : "agent.registered";
    if (p->event || !p->keeps_card)
        registry_tell_feed(tx, &t);
    if (!of_wish)
        return;
    t.type = of_wish;
    t.before = NULL;
    t.has_wanted = p->entry->agent.review != NULL;
    t.is_private = true;
    registry_tell_feed(tx, &t);
}

enum err step_put(struct registry *r, struct registry_change *c,
                  const struct step_put *p, struct why *why)
{
    struct registry_step *s;
    struct buf stored = {0};
    enum err e = step_add(r, c, STEP_PUT, p->entry->key, &s, why);

    if (e) {
        agent_entry_free(r, p->entry);
        return e;
    }
    s->entry = p->entry;
    e = step_claim_number(r, p, s, why);
    if (!e)
        e = sealed_write(r, p->entry->key, &p->entry->agent, &stored);
    if (!e) {
        step_append_row(&c->tx, p->entry, p->before, buf_str(&stored));
        e = review_append(r, &c->tx, p->entry, p->before);
    }
    if (!e)
        e = step_prepare_index(r, &c->tx, p, s);
    if (!e)
        step_tell_feed(&c->tx, p);
    buf_fini(&stored);
    return e; /* the change owns the step and drops it */
}

enum err step_remove(struct registry *r, struct registry_change *c,
                     struct entry *e, struct str by, int64_t at_ms,
                     struct why *why)
{
    struct registry_step *s;
    enum err err = step_add(r, c, STEP_REMOVE, e->key, &s, why);
    struct tx_op *op;

    if (err)
        return err;
    op = tx_delete(&c->tx, &agent_table);
    tx_if(op, AGENT_KEY, IS, value_text(e->key));
    tx_if(op, AGENT_REVISION, IS, value_int(e->agent.revision));
    registry_tell_feed(&c->tx, &(struct feed_event){.type = "agent.removed",
                                                    .entry = e,
                                                    .by = by,
                                                    .at_ms = at_ms});
    if (r->opts.on_removal)
        r->opts.on_removal(r->opts.ctx, &c->tx, e->agent.name, at_ms);
    return OK;
}

static void entry_forget(struct registry *r, struct entry *e)
{
    if (!e)
        return;
    vectors_forget(r, e);
    index_found(r, e); /* it is no longer needed */
    agent_entry_free(r, e);
}

static void step_settle_put(struct registry *r, struct registry_step *s)
{
    struct entry *e = s->entry, *before = entry_find(r, s->key);

    if (before) {
        struct grants *kept = before->grants;

        before->grants = NULL;
        entry_set_grants(r, e, kept);
        e->n_reports = before->n_reports;
        e->kept_until_ms = before->kept_until_ms;
        owner_follow(e, before);
    }
    before = mirror_put(r, e);
    if (PLANTED("registry.keep_index"))
        index_forget(r->index, s->change);
    else
        index_put(r->index, e->number, s->change);
    s->change = NULL;
    if (entry_refresh_org(r, e)) /* its creator has changed orgs meanwhile */
        index_follow(r, e);
    entry_forget(r, before);
    /* The model may have changed meanwhile. */
    e->is_embedded &= s->dims == index_dims(r->index);
    if (!e->is_embedded)
        vectors_want(r, e);
    if (s->drops_reports)
        reports_forget(r, s->key);
    front_owner(r, e->owner);
}

static void step_settle_remove(struct registry *r, struct registry_step *s)
{
    struct entry *e = mirror_take(r, s->key);

    assert(e);
    reports_forget(r, s->key);
    index_drop(r->index, e->number);
    number_release(r, e->number);
    if (r->opts.on_removed)
        r->opts.on_removed(r->opts.ctx, e->agent.name);
    front_owner(r, e->owner);
    entry_forget(r, e);
}

static enum err change_outcome(const struct registry_change *c, struct why *why)
{
    if (c->is_same)
        return OK;
    switch (c->tx.result) {
    case TX_COMMITTED: return OK;
    case TX_GUARD_FAILED:
        return why_err(why, ERR_BUSY,
                       "another request changed this agent at the same time; "
                       "read it and try again");
    case TX_FATAL:
        return why_err(why, ERR_OUTCOME_UNKNOWN,
                       "the store failed: whether this was kept is not known; "
                       "look once the server is back");
    case TX_REFUSED: break;
    }
    return why_err(why, c->tx.err, "%s", err_row(c->tx.err)->wording);
}

enum err registry_settle(struct registry *r, struct registry_change *c,
                         struct why *why)
{
    enum err e = change_outcome(c, why);
    bool has_new = false;

    assert(c->is_open);
    c->is_open = false;
    if (c->is_same)
        return OK;
    if (e && !PLANTED("registry.memory_first")) {
        steps_drop(r, c);
        return e;
    }
    index_retry(r);
    while (c->steps) {
        struct registry_step *s = c->steps;
        struct entry *one;

        c->steps = s->next;
        has_new = has_new || (s->kind == STEP_PUT && !entry_find(r, s->key));
        switch (s->kind) {
        case STEP_PUT: step_settle_put(r, s); break;
        case STEP_REMOVE: step_settle_remove(r, s); break;
        case STEP_GRANTS:
            one = entry_find(r, s->key);
            assert(one);
            r->stats.grants +=
                (int64_t)s->grants->n - (int64_t)one->agent.n_grants;
            entry_set_grants(r, one, s->grants);
            break;
        case STEP_REPORT: report_settle(r, s->report); break;
        case STEP_DISMISS: reports_forget(r, s->key); break;
        }
        step_free(r, s);
    }
    front_settle(r);
    seq_settle(r);
    if (has_new && r->opts.on_new)
        r->opts.on_new(r->opts.ctx);
    if (r->opts.on_change)
        r->opts.on_change(r->opts.ctx);
    return e;
}
