/* Cards: put, patched and removed.
 *
 * A caller who cannot see an agent only learns that its name is taken, and only
 * by trying to take it; every other answer is as if it did not exist.
 * Conditions (If-Match) are also judged by what the caller sees.
 *
 * Fields that a card leaves out and that are not its own (creator, org, kind,
 * visibility) stay unchanged: an agent that registers itself at each start does
 * not undo what an admin has set. */
#include "registry/internal.h"

enum { SCRATCH_BYTES_MAX = 16 * AGENT_CARD_MAX };

struct eyes by_eyes(const struct registry_by *by)
{
    return by->caller ? eyes_of(by->caller, by->now_ms)
                      : (struct eyes){.sees_all = true, .now_ms = by->now_ms};
}

struct str by_name(const struct registry_by *by)
{
    return by->caller ? caller_name(by->caller) : (struct str){NULL, 0};
}

static enum err agent_not_found(struct why *why)
{
    return why_err(why, ERR_NOT_FOUND, "there is no agent of that name");
}

static enum err change_check_revision(const struct entry *seen,
                                      const struct registry_by *by,
                                      struct why *why)
{
    if (by->if_revision == 0 ||
        (seen &&
         (by->if_revision < 0 || by->if_revision == seen->agent.revision)))
        return OK;
    if (!seen)
        return why_err(why, ERR_PRECONDITION,
                       "there is no agent of that name, so it cannot have "
                       "that revision");
    return why_err(why, ERR_PRECONDITION,
                   "it has revision %lld by now; read it again and decide "
                   "again",
                   (long long)seen->agent.revision);
}

static enum err change_check_owner(const struct entry *e, enum change_what what,
                                   const struct eyes *eyes, struct why *why)
{
    bool is_fixed = e->agent.is_configured && what == CHANGE_CARD;

    if (!is_fixed && agent_is_owned(&e->agent, eyes))
        return OK;
    if (is_fixed)
        return why_err(why, ERR_NOT_ALLOWED,
                       "\"%.*s\" comes from the configuration; change it "
                       "there",
                       STR_ARG(e->agent.name));
    return why_err(why, ERR_NOT_ALLOWED,
                   "\"%.*s\" belongs to another user: only its creator and "
                   "admins may change it",
                   STR_ARG(e->agent.name));
}

static enum err change_check_claim(const struct entry *e,
                                   const struct registry_by *by,
                                   struct why *why)
{
    bool is_admin = !by->caller || caller_is_admin(by->caller);

    if (!e->is_claimed && (is_admin || by->now_ms >= e->kept_until_ms))
        return OK;
    return why_err(why, ERR_BUSY,
                   "this agent is being changed right now; try again");
}

enum err find_to_change(struct registry *r, enum change_what what,
                        struct str name, const struct registry_by *by,
                        struct entry **out, struct why *why)
{
    struct eyes eyes = by_eyes(by);
    struct entry *e = entry_find(r, name);
    enum err err;

    *out = NULL;
    if (!e || !agent_is_visible(&e->agent, &eyes))
        return agent_not_found(why);
    err = change_check_owner(e, what, &eyes, why);
    if (!err)
        err = change_check_revision(e, by, why);
    if (!err)
        err = change_check_claim(e, by, why);
    if (!err)
        *out = e;
    return err;
}

/* Names in rules and settings are reserved for the configuration, for admins
 * and for the user that the configuration names. An agent that already has such
 * a name keeps it, but the rules do not mean it (registry_is_meant). */
static enum err registry_check_name(const struct registry *r, struct str name,
                                    const struct registry_by *by,
                                    struct why *why)
{
    if (!r->opts.is_kept_from || !by->caller || caller_is_admin(by->caller) ||
        !r->opts.is_kept_from(r->opts.ctx, name, by_eyes(by).user))
        return OK;
    return why_err(why, ERR_NAME_RESERVED,
                   "the name \"%.*s\" is reserved: the server's rules or "
                   "settings mention it; take another, or ask an admin to "
                   "register it, or to name you as its owner",
                   STR_ARG(str_head(name, AGENT_NAME_MAX)));
}

bool registry_is_meant(void *ctx, const struct agent *a)
{
    const struct registry *r = ctx;

    return a->is_configured || !r->opts.is_kept_from ||
           !r->opts.is_kept_from(r->opts.ctx, a->name, a->creator);
}

/* Like find_to_change, for a name that may be free: *out is then NULL. */
static enum err change_find_to_put(struct registry *r, struct str name,
                                   const struct registry_by *by,
                                   struct entry **out, struct why *why)
{
    struct eyes eyes = by_eyes(by);
    struct entry *e = entry_find(r, name);
    bool is_seen = e && agent_is_visible(&e->agent, &eyes);
    enum err err;

    *out = NULL;
    if (!is_seen && by->must_be_there)
        return agent_not_found(why);
    err = change_check_revision(is_seen ? e : NULL, by, why);
    if (!err && !e)
        err = registry_check_name(r, name, by, why);
    if (err || !e)
        return err;
    if (!is_seen)
        return why_err(why, ERR_EXISTS, "the name is taken");
    if (by->must_be_new)
        return why_err(why, ERR_EXISTS, "there is \"%.*s\" already",
                       STR_ARG(e->agent.name));
    err = change_check_owner(e, CHANGE_CARD, &eyes, why);
    if (!err && !str_eq(name, e->agent.name))
        err = why_err(why, ERR_EXISTS,
                      "there is \"%.*s\" already, and names must differ in "
                      "more than their case; use that spelling to change it",
                      STR_ARG(e->agent.name));
    if (!err)
        err = change_check_claim(e, by, why);
    if (!err)
        *out = e;
    return err;
}

/* `is_given`: an admin deploys the agent for another user. */
static enum agent_kind default_kind(const struct caller *c, bool is_given)
{
    if (!is_given && (!c || caller_is_admin(c)))
        return AGENT_PLATFORM;
    return c && c->role == ROLE_AGENT ? AGENT_SELF_HOSTED : AGENT_MANAGED;
}

static void agent_fill_defaults(struct agent *a, const struct entry *before,
                                const struct registry_by *by)
{
    const struct agent *b = before ? &before->agent : NULL;
    struct agent base;
    const struct agent *wanted = review_base(before, by, &base);
    bool is_admin = !by->caller || caller_is_admin(by->caller);
    bool is_given = a->creator.n && !str_eq(a->creator, by_eyes(by).user);

    if (!a->visibility)
        a->visibility = b ? wanted->visibility
                        : is_admin && !is_given && !by->is_self
                            ? VISIBILITY_PUBLIC
                            : VISIBILITY_PRIVATE;
    if (!a->creator.n)
        a->creator = b ? b->creator : by_eyes(by).user;
    if (!a->kind && !b && by->is_self)
        a->kind = AGENT_SELF_HOSTED;
    if (!a->kind)
        a->kind = b && !is_given ? b->kind : default_kind(by->caller, is_given);
    /* The present org, repeated, is no change. */
    if (b && !a->is_org_creators && (!a->org.n || str_eq(a->org, b->org)))
        a->org = before->has_own_org ? b->org : (struct str){NULL, 0};
}

static bool entry_fields_are_same(const struct entry *a, const struct entry *b)
{
    return str_eq(a->agent.creator, b->agent.creator) &&
           a->agent.kind == b->agent.kind &&
           a->agent.visibility == b->agent.visibility &&
           a->agent.is_configured == b->agent.is_configured &&
           a->has_own_org == b->has_own_org &&
           (!a->has_own_org || str_eq(a->agent.org, b->agent.org));
}

enum err cards_are_same(const struct agent *a, const struct agent *b,
                        bool *is_same)
{
    struct buf as = {0}, bs = {0};
    enum err e = entry_write(a, &as);

    if (!e)
        e = entry_write(b, &bs);
    *is_same = !e && str_eq(buf_str(&as), buf_str(&bs));
    buf_fini(&as);
    buf_fini(&bs);
    return e;
}

enum err entry_is_same(const struct entry *a, const struct entry *b,
                       bool *is_same)
{
    *is_same = entry_fields_are_same(a, b);
    return *is_same ? cards_are_same(&a->agent, &b->agent, is_same) : OK;
}

/* A new agent begins above every revision that its name ever had, so that the
 * ETag of a removed agent never matches a later one. Each change adds one to
 * the sequence and at most one to a revision, so no revision exceeds the
 * sequence. */
enum err entry_make(struct registry *r, const struct agent *a,
                    const struct entry *before, int64_t now_ms,
                    struct entry **out)
{
    struct buf stored;
    enum err e = entry_write(a, &stored);

    *out = NULL;
    if (!e)
        e = entry_new(r, buf_str(&stored), a->creator, a->org, out);
    buf_fini(&stored);
    if (e)
        return ERR_NOMEM; /* we wrote it ourselves, so it is a card */
    (*out)->agent.kind = a->kind;
    (*out)->agent.is_configured = a->is_configured;
    (*out)->agent.revision = before ? before->agent.revision + 1 : r->seq + 1;
    (*out)->agent.created_ms = before ? before->agent.created_ms : now_ms;
    (*out)->agent.updated_ms = now_ms;
    return OK;
}

enum err change_open(struct registry_change *c, struct str name,
                     int64_t revision)
{
    size_t n = name.n < AGENT_NAME_MAX ? name.n : AGENT_NAME_MAX;

    if (n)
        memcpy(c->name, name.p, n);
    c->name[n] = '\0';
    c->revision = revision;
    c->is_open = true;
    return OK;
}

enum err change_refuse(struct registry *r, struct registry_change *c,
                       enum err e, struct why *why)
{
    steps_drop(r, c);
    if (e == ERR_NOMEM || e == ERR_INTERNAL)
        why_err(why, e, "%s", err_row(e)->wording);
    return e;
}

/* The entry of a card that was read, with the part that waits for review. */
static enum err entry_make_planned(struct registry *r, const struct agent *a,
                                   struct entry *before,
                                   const struct registry_by *by,
                                   struct entry **out, struct why *why)
{
    struct review_plan plan;
    enum err e;

    arena_init(&plan.arena, SCRATCH_BYTES_MAX);
    e = review_plan(r, a, before, by, &plan, why);
    if (!e)
        e = entry_make(r, &plan.serves, before, by->now_ms, out);
    if (!e && plan.has_review)
        e = entry_keep_review(*out, &plan.review);
    arena_fini(&plan.arena);
    return e;
}

/* Apply a card that was read. */
static enum err change_put_agent(struct registry *r, struct registry_change *c,
                                 struct agent *a, struct entry *before,
                                 const struct registry_by *by, struct why *why)
{
    struct step_put p = {.before = before,
                         .by = by_name(by),
                         .now_ms = by->now_ms,
                         .is_limited =
                             by->caller && !caller_is_admin(by->caller)};
    enum err e;

    agent_fill_defaults(a, before, by);
    e = entry_make_planned(r, a, before, by, &p.entry, why);
    if (!e && before)
        e = entry_is_same(before, p.entry, &p.keeps_card);
    if (!e && p.keeps_card) {
        p.entry->agent.updated_ms = before->agent.updated_ms;
        e = reviews_are_same(before, p.entry, &c->is_same);
    }
    if (!e && c->is_same)
        pace_was_same(r, by, a->n_skills);
    if (e || c->is_same) {
        agent_entry_free(r, p.entry);
        return e ? e
                 : change_open(c, before->agent.name, before->agent.revision);
    }
    c->is_new = !before;
    e = step_put(r, c, &p, why);
    if (e)
        return e;
    seq_append(r, &c->tx);
    return change_open(c, p.entry->agent.name, p.entry->agent.revision);
}

/* Copy the problems, which outlive the scratch arena. */
static void change_keep_problems(struct card_problems *p, struct arena *a)
{
    for (size_t i = 0; i < p->n; i++) {
        struct str *texts[] = {&p->list[i].pointer, &p->list[i].message};

        for (size_t k = 0; k < 2; k++) {
            char *copy = arena_strdup(a, *texts[k]);

            *texts[k] = (struct str){copy, copy ? texts[k]->n : 0};
        }
    }
}

/* Credentials are never shown. A client that writes back the placeholder means
 * the present ones. */
static enum err card_keep_credentials(struct arena *scratch,
                                      const struct json *card,
                                      const struct agent *before,
                                      struct why *why)
{
    static const struct str group = STR("authentication");
    static const struct str name = STR("credentials");
    struct json *said = json_get(json_get(card, group), name);
    const struct json *was = NULL;

    if (!said || said->type != JSON_STR || !str_eq(said->s, STR(CARD_IS_SET)))
        return OK;
    if (before && before->authentication.n)
        was = json_get(json_parse(scratch, before->authentication, 0, NULL),
                       name);
    if (!was || was->type != JSON_STR)
        return why_err(why, ERR_BAD_REQUEST,
                       "/authentication/credentials is \"" CARD_IS_SET
                       "\", which stands for those that are set, and there "
                       "are none: write them, or leave them out");
    said->s = was->s;
    return OK;
}

/* The number of skills, before the card is validated. */
static size_t card_count_skills(const struct json *card)
{
    const struct json *skills = json_get(card, STR("skills"));
    size_t n = skills && skills->type == JSON_ARR ? skills->kids.n : 0;

    return n < AGENT_SKILLS_MAX ? n : AGENT_SKILLS_MAX;
}

static enum err change_put_card(struct registry *r, struct registry_change *c,
                                struct str name, const struct json *card,
                                struct entry *before,
                                const struct registry_by *by,
                                struct card_problems *problems, struct why *why)
{
    unsigned self = by->is_self ? CARD_MAY_SHOW : CARD_MAY_ALL;
    struct card_opts opts = {
        .dialect = CARD_WIRE,
        .rights = by->caller ? card_rights_of(by->caller) & self : CARD_MAY_ALL,
        .name = name,
        .currency = str_of(r->currency)};
    struct arena scratch;
    struct agent a, base;
    enum err e;

    opts.before = review_base(before, by, &base);
    arena_init(&scratch, SCRATCH_BYTES_MAX);
    e = pace_take(r, by, card_count_skills(card), why);
    if (!e)
        e = card_keep_credentials(&scratch, card, opts.before, why);
    if (!e)
        e = card_read(&scratch, card, &opts, &a, problems);
    if (!e && by->is_self)
        e = self_fit(&scratch, &a, opts.before);
    if (!e) {
        e = change_put_agent(r, c, &a, before, by, why);
    } else if (problems->n) {
        card_problems_say(problems, why);
        change_keep_problems(problems, &c->tx.arena);
    }
    arena_fini(&scratch);
    return e;
}

enum err registry_put(struct registry *r, struct registry_change *c,
                      struct str name, const struct json *card,
                      const struct registry_by *by,
                      struct card_problems *problems, struct why *why)
{
    struct str shown =
        name.n ? name : json_str_or(json_get(card, STR("name")), name);
    struct entry *before;
    enum err e;

    assert(!c->is_open);
    problems->n = problems->n_all = 0;
    e = change_find_to_put(r, shown, by, &before, why);
    if (!e)
        e = change_put_card(r, c, name, card, before, by, problems, why);
    return e ? change_refuse(r, c, e, why) : OK;
}

/* pricing.amount replaces the stored price in micros: a patch that sets or
 * removes it means the micros too. */
static void card_drop_micros(struct json *now, const struct json *patch)
{
    struct json **at = &now->kids.first;

    if (!json_get(json_get(patch, STR("pricing")), STR("amount")))
        return;
    while (*at && !str_eq((*at)->key, STR("pricing")))
        at = &(*at)->next;
    if (*at) {
        *at = (*at)->next;
        now->kids.n--;
    }
}

static struct json *card_patched(struct arena *scratch, struct buf *stored,
                                 const struct agent *before,
                                 const struct json *patch)
{
    struct json *now;

    if (entry_write(before, stored) != OK)
        return NULL;
    now = json_parse(scratch, buf_str(stored), 0, NULL);
    if (!now)
        return NULL;
    card_drop_micros(now, patch);
    return card_merge(scratch, now, patch);
}

enum err registry_patch(struct registry *r, struct registry_change *c,
                        struct str name, const struct json *patch,
                        const struct registry_by *by,
                        struct card_problems *problems, struct why *why)
{
    struct arena scratch;
    struct buf stored = {0};
    struct json *card = NULL;
    struct entry *before;
    struct agent base;
    enum err e;

    assert(!c->is_open);
    problems->n = problems->n_all = 0;
    e = find_to_change(r, CHANGE_CARD, name, by, &before, why);
    if (!e && patch->type != JSON_OBJ)
        e = why_err(why, ERR_BAD_REQUEST, "a patch must be an object");
    arena_init(&scratch, SCRATCH_BYTES_MAX);
    if (!e) {
        card = card_patched(&scratch, &stored, review_base(before, by, &base),
                            patch);
        e = card ? change_put_card(r, c, before->agent.name, card, before, by,
                                   problems, why)
                 : ERR_NOMEM;
    }
    arena_fini(&scratch);
    buf_fini(&stored);
    return e ? change_refuse(r, c, e, why) : OK;
}

enum err registry_remove(struct registry *r, struct registry_change *c,
                         struct str name, const struct registry_by *by,
                         struct why *why)
{
    struct entry *e;
    enum err err = find_to_change(r, CHANGE_CARD, name, by, &e, why);

    assert(!c->is_open);
    if (!err)
        err = step_remove(r, c, e, by_name(by), by->now_ms, why);
    if (err)
        return change_refuse(r, c, err, why);
    seq_append(r, &c->tx);
    return change_open(c, e->agent.name, e->agent.revision);
}
