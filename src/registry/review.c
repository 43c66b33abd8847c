/* Review: a card that its creator wants, beside the one that serves.
 *
 *     the user writes                 the agent serves      and besides
 *     a public card, new              as private            waiting
 *     a public card, was not public   with the new card,    waiting
 *                                     as visible as it was
 *     a public card, was public       with the old card     waiting
 *     the card that serves            the same              nothing
 *     a card that is not public       with it               nothing
 *     anything, of a hidden agent     with it, as private   hidden
 *     an admin writes                 with it               the same change
 *
 * So visibility, the index and routing know nothing of reviews: they see the
 * card that serves. Everything here ends in one put of an agent, whose tx
 * writes the row of the agent and that of its review.
 *
 * Further changes of a user apply to the wanted card, or a second patch would
 * undo the first while it waits. The exception is what only an admin may set (a
 * program to run), which is as it serves. Agents register themselves at each
 * start: the same card again changes nothing, and a rejected card stays
 * rejected until it changes.
 *
 * An admin approves a revision, because a creator could replace the card while
 * the admin reads it. */
#include "base/fault.h"
#include "registry/internal.h"

enum { KEPT_MS = 5000 }; /* for an admin to retry */

#define BOTH(field) MEMBER(struct review, field), .part = 1

static const struct column review_columns[] = {REVIEW_COLUMNS(COLUMN_ROW)};

const struct table review_table = {
    .name = "agent_reviews",
    .columns = review_columns,
    .n_columns = N_REVIEW_COLUMNS,
    .n_key = 1,
    .since = 4,
};

void registry_set_review(struct registry *r, bool is_reviewed)
{
    r->is_reviewed = is_reviewed;
}

/* ERR_NOMEM; ERR_SYNTAX: `stored` is not a card. */
static enum err entry_set_review(struct entry *e, const struct review *v,
                                 struct str stored)
{
    struct review *kept = arena_alloc(&e->arena, sizeof(*kept));
    struct agent *wanted = arena_alloc(&e->arena, sizeof(*wanted));
    enum err err;

    if (!kept || !wanted)
        return ERR_NOMEM;
    err = card_read_stored(&e->arena, stored, wanted);
    if (err)
        return err;
    *kept =
        (struct review){.state = v->state, .at_ms = v->at_ms, .wanted = wanted};
    if (!arena_keep(&e->arena, v->reason, &kept->reason) ||
        !arena_keep(&e->arena, v->by, &kept->by))
        return ERR_NOMEM;
    e->agent.review = kept;
    holding_count_more(e, stored.n);
    return OK;
}

enum err entry_keep_review(struct entry *e, const struct review *v)
{
    struct buf stored;
    enum err err = entry_write(v->wanted, &stored);

    if (!err)
        err = entry_set_review(e, v, buf_str(&stored));
    buf_fini(&stored);
    return err ? ERR_NOMEM : OK; /* we wrote it ourselves, so it is a card */
}

enum err reviews_are_same(const struct entry *a, const struct entry *b,
                          bool *is_same)
{
    const struct review *x = a->agent.review, *y = b->agent.review;

    *is_same = !x == !y;
    if (!x || !y)
        return OK;
    if (x->state != y->state || x->at_ms != y->at_ms ||
        !str_eq(x->reason, y->reason) || !str_eq(x->by, y->by)) {
        *is_same = false;
        return OK;
    }
    return cards_are_same(x->wanted, y->wanted, is_same);
}

static bool review_is_admin(const struct registry_by *by)
{
    return !by->caller || caller_is_admin(by->caller);
}

const struct agent *review_base(const struct entry *before,
                                const struct registry_by *by, struct agent *out)
{
    if (!before)
        return NULL;
    *out = before->agent;
    if (before->agent.review && !review_is_admin(by)) {
        struct agent_url url;

        *out = agent_wanted(&before->agent);
        /* A program to run, or its location, only an admin may set: it stays
         * as it serves now, whatever the wanted card says. */
        out->restart = before->agent.restart;
        if (agent_url_read(out->url, &url, NULL) != OK ||
            url.transport == TRANSPORT_PROCESS ||
            url.transport == TRANSPORT_MODEL)
            out->url = before->agent.url;
    }
    return out;
}

static bool json_is_same(const struct json *a, const struct json *b)
{
    struct buf as, bs;
    struct json_out ao, bo;
    bool is_same;

    if (!a || !b)
        return !a && !b;
    buf_init(&as, 2 * AGENT_CARD_MAX);
    buf_init(&bs, 2 * AGENT_CARD_MAX);
    ao = json_out(&as);
    bo = json_out(&bs);
    json_put(&ao, a);
    json_put(&bo, b);
    is_same = !as.over && !bs.over && str_eq(buf_str(&as), buf_str(&bs));
    buf_fini(&as);
    buf_fini(&bs);
    return is_same;
}

/* Write the fields of `from`. Fields that an admin has changed, except
 * visibility, are taken from `now`. Fields in `but` are left out. */
static void review_put_followed(struct json_out *o, const struct json *from,
                                const struct json *was, const struct json *now,
                                const struct json *but)
{
    JSON_EACH(field, from)
    {
        const struct json *value = json_get(now, field->key);
        bool is_changed = !str_eq(field->key, STR("visibility")) &&
                          !json_is_same(json_get(was, field->key), value);

        if ((but && (json_get(but, field->key) || !is_changed)) ||
            (is_changed && !value))
            continue;
        json_key(o, field->key);
        json_put(o, is_changed ? value : field);
    }
}

/* An admin's change of the serving card also applies to the wanted card, or its
 * approval would undo the change. ERR_NOMEM. */
static enum err review_follow_admin(struct arena *a, const struct agent *was,
                                    const struct agent *now,
                                    const struct agent *wanted,
                                    struct agent *out)
{
    const struct agent *const cards[] = {was, now, wanted};
    struct json *trees[3] = {NULL};
    struct buf text;
    struct json_out o;
    enum err e = OK;

    for (int i = 0; i < 3 && !e; i++) {
        struct buf stored;
        char *kept = NULL;

        e = entry_write(cards[i], &stored);
        if (!e)
            kept = arena_strdup(a, buf_str(&stored));
        if (kept)
            trees[i] = json_parse(a, str_of(kept), 0, NULL);
        buf_fini(&stored);
        e = trees[i] ? OK : ERR_NOMEM;
    }
    if (e)
        return e;
    buf_init(&text, 4 * AGENT_CARD_MAX);
    o = json_out(&text);
    json_open(&o, '{');
    review_put_followed(&o, trees[2], trees[0], trees[1], NULL);
    review_put_followed(&o, trees[1], trees[0], trees[1], trees[2]);
    json_close(&o, '}');
    e = text.over || card_read_stored(a, buf_str(&text), out) ? ERR_NOMEM : OK;
    buf_fini(&text);
    return e;
}

/* An admin's change applies to the serving card and to the wanted one. A
 * waiting card becomes visible to others only by approval. A wanted card does
 * not pass to the next creator. */
static enum err review_plan_for_admin(const struct agent *now,
                                      const struct entry *before,
                                      struct review_plan *out, struct why *why)
{
    const struct review *was = before->agent.review;
    enum visibility served = before->agent.visibility;
    bool is_anothers = !str_eq_nocase(now->creator, before->agent.creator);
    bool is_same;
    enum err e;

    if (now->visibility > served)
        return why_err(why, ERR_PRECONDITION,
                       "a card of this agent is %s: approve it "
                       "(POST /api/agents/%.*s/approve), which shows it to "
                       "others",
                       was->state == REVIEW_WAITING ? "waiting for review"
                                                    : review_name(was->state).p,
                       STR_ARG(before->agent.name));
    if (is_anothers && was->state != REVIEW_HIDDEN)
        return OK;
    e = review_follow_admin(&out->arena, &before->agent, now, was->wanted,
                            &out->wanted);
    if (!e)
        e = cards_are_same(now, &out->wanted, &is_same);
    if (e)
        return e;
    out->has_review = !is_same || was->state == REVIEW_HIDDEN;
    out->review = *was;
    out->review.wanted = &out->wanted;
    return OK;
}

static enum err review_plan_waiting(const struct agent *wanted,
                                    const struct entry *before, int64_t now_ms,
                                    struct review_plan *out)
{
    const struct agent *b = before ? &before->agent : NULL;
    const struct review *was = b ? b->review : NULL;
    bool is_same = false;
    enum err e = OK;

    if (b && b->visibility == VISIBILITY_PUBLIC) {
        e = cards_are_same(wanted, b, &is_same);
        if (e || is_same)
            return e;
        out->serves = *b;
        out->serves.creator = wanted->creator;
        out->serves.org = wanted->org;
        out->serves.kind = wanted->kind;
    } else {
        out->serves.visibility = b ? b->visibility : VISIBILITY_PRIVATE;
    }
    if (was)
        e = cards_are_same(wanted, was->wanted, &is_same);
    out->has_review = true;
    out->review = is_same ? *was
                          : (struct review){.state = REVIEW_WAITING,
                                            .at_ms = now_ms,
                                            .wanted = wanted};
    return e;
}

/* A rejected card does not come back because review was turned off. */
static enum err review_is_rejected_again(const struct agent *wanted,
                                         const struct review *was, bool *out)
{
    *out = false;
    return was && was->state == REVIEW_REJECTED
               ? cards_are_same(wanted, was->wanted, out)
               : OK;
}

enum err review_plan(struct registry *r, const struct agent *wanted,
                     const struct entry *before, const struct registry_by *by,
                     struct review_plan *out, struct why *why)
{
    const struct review *was = before ? before->agent.review : NULL;
    bool is_platforms = before && before->agent.kind == AGENT_PLATFORM;
    bool is_rejected = false;
    enum err e = OK;

    out->serves = *wanted;
    out->has_review = false;
    if (review_is_admin(by))
        return was ? review_plan_for_admin(wanted, before, out, why) : OK;
    if (was && was->state == REVIEW_HIDDEN) {
        out->serves.visibility = VISIBILITY_PRIVATE;
        out->has_review = true;
        out->review = *was;
        out->review.wanted = wanted;
        return OK;
    }
    if (wanted->visibility != VISIBILITY_PUBLIC ||
        PLANTED("registry.no_review"))
        return OK;
    if (!r->is_reviewed || is_platforms)
        e = review_is_rejected_again(wanted, was, &is_rejected);
    if (e || ((!r->is_reviewed || is_platforms) && !is_rejected))
        return e;
    return review_plan_waiting(wanted, before, by->now_ms, out);
}

void entry_keep_for_admins(struct registry *r, struct str name, enum err e,
                           int64_t now_ms)
{
    struct entry *one = e == ERR_BUSY ? entry_find(r, name) : NULL;

    if (one)
        one->kept_until_ms = now_ms + KEPT_MS;
}

struct judgement {
    enum review_verdict verdict;
    const struct entry *before;
    const struct review *was;
    struct str reason;
    const struct registry_by *by;
};

static enum err judgement_check(const struct judgement *j, struct why *why)
{
    static const char *const waits_for[] = {
        [REVIEW_APPROVE] = "approve", [REVIEW_REJECT] = "reject"};
    struct str name = j->before->agent.name;

    if (j->reason.n > REVIEW_REASON_MAX)
        return why_err(why, ERR_BAD_REQUEST,
                       "reason may have up to %d bytes, and has %zu",
                       REVIEW_REASON_MAX, j->reason.n);
    if (j->verdict == REVIEW_HIDE)
        return OK;
    if (!j->was ||
        (j->verdict == REVIEW_REJECT && j->was->state != REVIEW_WAITING))
        return why_err(why, ERR_PRECONDITION,
                       "there is nothing to %s: no card of \"%.*s\" waits for "
                       "review",
                       waits_for[j->verdict], STR_ARG(name));
    if (j->verdict == REVIEW_APPROVE && j->by->if_revision <= 0)
        return why_err(why, ERR_BAD_REQUEST,
                       "give the revision that you have read: \"%.*s\" has "
                       "revision %lld, and its creator may change the card "
                       "while it waits",
                       STR_ARG(name), (long long)j->before->agent.revision);
    return OK;
}

static struct review_plan judgement_plan(const struct judgement *j)
{
    const struct agent *b = &j->before->agent;
    struct review_plan plan = {.serves = *b};

    if (j->verdict == REVIEW_APPROVE) {
        plan.serves = *j->was->wanted;
    } else {
        plan.has_review = true;
        plan.review = (struct review){.state = j->verdict == REVIEW_HIDE
                                                   ? REVIEW_HIDDEN
                                                   : REVIEW_REJECTED,
                                      .reason = j->reason,
                                      .by = by_name(j->by),
                                      .at_ms = j->by->now_ms,
                                      .wanted = j->was ? j->was->wanted : b};
    }
    if (j->verdict == REVIEW_HIDE)
        plan.serves.visibility = VISIBILITY_PRIVATE;
    plan.serves.creator = b->creator;
    plan.serves.org = j->before->has_own_org ? b->org : (struct str){NULL, 0};
    plan.serves.kind = b->kind;
    return plan;
}

static enum err judgement_put(struct registry *r, struct registry_change *c,
                              const struct judgement *j, struct why *why)
{
    static const char *const told[] = {[REVIEW_APPROVE] = "agent.approved",
                                       [REVIEW_REJECT] = "agent.rejected",
                                       [REVIEW_HIDE] = "agent.hidden"};
    struct review_plan plan = judgement_plan(j);
    struct step_put p = {.before = (struct entry *)j->before,
                         .by = by_name(j->by),
                         .now_ms = j->by->now_ms,
                         .keeps_card = j->verdict == REVIEW_REJECT,
                         .event = told[j->verdict],
                         .is_private = j->verdict == REVIEW_REJECT,
                         .reason = j->reason};
    enum err e =
        entry_make(r, &plan.serves, j->before, j->by->now_ms, &p.entry);

    if (!e && plan.has_review)
        e = entry_keep_review(p.entry, &plan.review);
    if (e) {
        agent_entry_free(r, p.entry);
        return e;
    }
    if (p.keeps_card)
        p.entry->agent.updated_ms = j->before->agent.updated_ms;
    e = step_put(r, c, &p, why);
    if (e)
        return e;
    if (j->verdict == REVIEW_HIDE) {
        c->steps->drops_reports = true;
        reports_prune(&c->tx, p.entry->key);
    }
    seq_append(r, &c->tx);
    return change_open(c, p.entry->agent.name, p.entry->agent.revision);
}

enum err registry_judge(struct registry *r, struct registry_change *c,
                        struct str name, enum review_verdict verdict,
                        struct str reason, const struct registry_by *by,
                        struct why *why)
{
    struct judgement j = {.verdict = verdict, .reason = reason, .by = by};
    struct entry *before;
    enum err e;

    assert(!c->is_open);
    e = review_is_admin(by)
            ? find_to_change(r, CHANGE_CARD, name, by, &before, why)
            : why_err(why, ERR_NOT_ALLOWED,
                      "cards are approved, rejected and hidden by "
                      "admins");
    if (!e) {
        j.before = before;
        j.was = before->agent.review;
        e = judgement_check(&j, why);
    }
    if (!e)
        e = judgement_put(r, c, &j, why);
    entry_keep_for_admins(r, name, e, by->now_ms);
    return e ? change_refuse(r, c, e, why) : OK;
}

enum err review_append(struct registry *r, struct tx *tx, const struct entry *e,
                       const struct entry *before)
{
    const struct review *v = e->agent.review;
    struct buf stored;
    struct tx_op *op;
    enum err err;

    if (!v && before && before->agent.review) {
        op = tx_prune(tx, &review_table, 1);
        tx_if(op, REVIEW_AGENT, IS, value_text(e->key));
    }
    if (!v)
        return OK;
    err = sealed_write(r, e->key, v->wanted, &stored);
    if (!err) {
        op = tx_put(tx, &review_table);
        tx_set(op, REVIEW_AGENT, value_text(e->key));
        record_to_tx(op, v, 1);
        tx_set(op, REVIEW_CARD, value_text(buf_str(&stored)));
    }
    buf_fini(&stored);
    return err;
}

static enum err review_load(struct registry *r, const struct row *row,
                            void *ctx, struct why *why)
{
    struct str key = row_str(row, REVIEW_AGENT);
    struct entry *e = entry_find(r, key);
    struct review v = {.at_ms = 0};
    struct buf stored;
    bool is_sealed = false;
    enum err err;

    (void)ctx;
    record_from_row(&v, &review_table, row);
    buf_init(&stored, 1);
    err = e && review_name(v.state).n
              ? sealed_read(r, key, row_str(row, REVIEW_CARD), &stored,
                            &is_sealed, why)
              : ERR_SYNTAX;
    if (!err)
        err = entry_set_review(e, &v, buf_str(&stored));
    buf_fini(&stored);
    if (err == ERR_SYNTAX)
        return why_err(why, ERR_BAD_CONFIG,
                       "the database has a review that this version cannot "
                       "read (\"%.*s\"); was it used by a newer one?",
                       STR_ARG(key));
    if (err == ERR_NOMEM)
        return why_err(why, err, "no memory for the reviews");
    if (err)
        return err;
    e->is_unsealed |= !is_sealed && sealed_has_secrets(e->agent.review->wanted);
    r->stats.by_review[0]--;
    r->stats.by_review[v.state & 3]++;
    return OK;
}

enum err reviews_load(struct registry *r, struct why *why)
{
    return rows_each(r, &review_table, review_load, NULL, why);
}
