/* Shares of the capacity for unfinished tasks, so that no user and no org can
 * take all of it.
 *
 * Tasks count for their root user: a user with many tokens has one share, and
 * what agents delegate for a user counts for that user. They count for that
 * user's org, too. Tasks loaded at a start are counted and never rejected,
 * since they were accepted before.
 *
 * A user may hold tasks.maxUnfinishedPerUser, and a fair part of what is free
 * (share_is_fair). So a single user gets all of the fixed limit, and the more
 * is taken, the less each user may hold. Delegated tasks have twice the factor,
 * so that running work can finish. A part is reserved for admins and delegated
 * tasks.
 *
 * The same sums exist per agent: acceptance limits the tasks of an agent. */
#include "task/internal.h"

#include "model/agent.h"

static struct str user_share_key(struct str key)
{
    return PLANTED("task.one_share") ? STR("") : key;
}

enum {
    USER_FACTOR = 2,
    ORG_FACTOR = 4,
    KEPT_BACK = 50, /* one part in so many is reserved */
};

/* One of the two things that are counted. */
struct amount {
    size_t all, most; /* in use, and the capacity */
    size_t most_per_user;
    size_t user, org; /* in use by this user and this org */
    size_t more;      /* requested */
};

static size_t amount_free(const struct amount *a, enum claimant by)
{
    bool is_kept_off = by == CLAIMANT_USER && !PLANTED("task.no_reserve");

    return share_free(a->most, a->all, is_kept_off ? KEPT_BACK : 0);
}

/* Never if users have no limit; admins may use everything. */
static bool amount_is_over_share(const struct amount *a, enum claimant by,
                                 size_t taken, size_t factor)
{
    if (by == CLAIMANT_ADMIN || !a->most_per_user ||
        PLANTED("task.fixed_shares"))
        return false;
    if (by == CLAIMANT_AGENT)
        factor *= 2;
    return !share_is_fair(taken + a->more, factor, amount_free(a, by));
}

static enum err share_reject_limit(const struct tasks *ts, struct why *why)
{
    return why_err(why, ERR_TOO_MANY_TASKS,
                   "your unfinished tasks are as many, or as large, as they "
                   "may be (tasks.maxUnfinishedPerUser: %zu, "
                   "tasks.maxUnfinishedBytesPerUser: %zu); wait until some "
                   "are over",
                   ts->opts.limits.max_per_user,
                   ts->opts.limits.max_bytes_per_user);
}

static enum err share_reject(const struct task_share *s, const char *owner,
                             struct why *why)
{
    return why_err(why, ERR_TOO_MANY_TASKS,
                   "the server is so full that %s share of its capacity is "
                   "used up with %zu unfinished tasks of %zu bytes; wait until "
                   "some are over, or cancel some",
                   owner, s ? s->share.n : 0, s ? s->bytes : 0);
}

enum err share_ask(const struct tasks *ts, const struct task_claim *c,
                   struct why *why)
{
    const struct tasks_limits *l = &ts->opts.limits;
    const struct task_share *user =
        share_find(&ts->users, user_share_key(c->user));
    const struct task_share *org =
        c->org.n ? share_find(&ts->orgs, c->org) : NULL;
    const struct amount amounts[] = {
        {.all = ts->n_entries[CLAIMED] + ts->n_entries[GOING_ON],
         .most = l->max_unfinished,
         .most_per_user = l->max_per_user,
         .user = user ? user->share.n : 0,
         .org = org ? org->share.n : 0,
         .more = 1},
        {.all = ts->bytes,
         .most = l->max_unfinished_bytes,
         .most_per_user = l->max_bytes_per_user,
         .user = user ? user->bytes : 0,
         .org = org ? org->bytes : 0,
         .more = c->bytes},
    };
    const int n = sizeof(amounts) / sizeof(amounts[0]);

    for (const struct amount *a = amounts; a < amounts + n; a++)
        if (a->most_per_user && (a->user >= a->most_per_user ||
                                 a->more > a->most_per_user - a->user))
            return share_reject_limit(ts, why);
    for (int i = 0; i < n; i++)
        if (amounts[i].more > amount_free(&amounts[i], c->by))
            return ERR_OVERLOADED;
    for (int i = 0; i < n; i++) {
        const struct amount *a = &amounts[i];

        if (amount_is_over_share(a, c->by, a->user, USER_FACTOR))
            return share_reject(user, "your", why);
        if (c->org.n && amount_is_over_share(a, c->by, a->org, ORG_FACTOR))
            return share_reject(org, "your org's", why);
    }
    return OK;
}

/* The share with one more task; NULL: the map cannot grow. */
static struct task_share *share_count_in(struct shares *all, struct str key,
                                         size_t bytes)
{
    struct task_share *s = share_take(all, key);

    if (s && s->share.n == 1)
        list_init(&s->working);
    if (s)
        s->bytes += bytes;
    return s;
}

static void share_count_out(struct shares *all, struct task_share **in,
                            size_t bytes)
{
    if (*in)
        (*in)->bytes -= bytes;
    share_give(all, *in);
    *in = NULL;
}

/* Agent names ignore case. */
static struct str agent_load_key(struct str agent, char out[AGENT_NAME_MAX])
{
    return str_lowered(agent, out, AGENT_NAME_MAX);
}

struct str share_user(const struct task *t)
{
    return t->root_user.n ? t->root_user : t->requester;
}

struct str share_org(const struct tasks *ts, struct str user)
{
    return ts->opts.access ? access_org_of(ts->opts.access, user) : STR("");
}

enum err share_add(struct task_entry *e)
{
    struct tasks *ts = e->ts;
    struct str user = share_user(&e->t), org = share_org(ts, user);
    char key[AGENT_NAME_MAX];

    e->share = share_count_in(&ts->users, user_share_key(user), e->bytes);
    if (e->share && org.n)
        e->org = share_count_in(&ts->orgs, org, e->bytes);
    if (e->share && (e->org || !org.n))
        e->load = share_count_in(&ts->loads, agent_load_key(e->t.agent, key),
                                 e->bytes);
    if (!e->load)
        return ERR_NOMEM;
    e->load->n_waiting += task_waits(e->t.status);
    e->is_behind = e->lane && !task_waits(e->t.status) && lane_waits_before(e);
    e->load->n_behind += e->is_behind;
    return OK;
}

void share_remove(struct task_entry *e)
{
    list_remove(&e->working_node);
    if (e->load) {
        e->load->n_waiting -= task_waits(e->t.status);
        e->load->n_behind -= entry_is_kept_back(e);
    }
    e->is_behind = false;
    share_count_out(&e->ts->users, &e->share, e->bytes);
    share_count_out(&e->ts->orgs, &e->org, e->bytes);
    share_count_out(&e->ts->loads, &e->load, e->bytes);
}

struct task_share *load_expect(struct tasks *ts, struct str agent)
{
    char lower[AGENT_NAME_MAX];
    struct task_share *s =
        share_count_in(&ts->loads, agent_load_key(agent, lower), 0);

    if (s)
        s->n_coming++;
    return s;
}

void load_forget(struct tasks *ts, struct task_share *s)
{
    s->n_coming--;
    share_give(&ts->loads, s);
}

static bool is_at_work(enum task_status s)
{
    return s == TASK_DISPATCHED || s == TASK_WORKING;
}

void load_work(struct task_entry *e)
{
    bool is_there = list_has(&e->working_node);

    if (is_at_work(e->t.status) && !is_there)
        list_append(&e->load->working, &e->working_node);
    else if (!is_at_work(e->t.status) && is_there)
        list_remove(&e->working_node);
}

void load_move(struct task_entry *e, enum task_status to,
               struct task_share *other)
{
    list_remove(&e->working_node);
    e->load->n_waiting -= task_waits(e->t.status);
    e->load->n_behind -= entry_is_kept_back(e);
    if (other) {
        other->n_coming--;
        other->bytes += e->bytes;
        share_count_out(&e->ts->loads, &e->load, e->bytes);
        e->load = other;
    }
    e->load->n_waiting += task_waits(to);
    e->load->n_behind += entry_is_kept_back(e);
}

static const struct task_share *agent_load(const struct tasks *ts,
                                           struct str agent)
{
    char key[AGENT_NAME_MAX];

    return share_find(&ts->loads, agent_load_key(agent, key));
}

size_t tasks_of_agent(const struct tasks *ts, struct str agent)
{
    const struct task_share *s = agent_load(ts, agent);

    return s ? s->share.n - s->n_coming - s->n_waiting - s->n_behind : 0;
}

size_t tasks_held_of_agent(const struct tasks *ts, struct str agent)
{
    const struct task_share *s = agent_load(ts, agent);

    return s ? s->n_waiting : 0;
}

static bool shares_add_up(const struct shares *all, size_t n, size_t n_waiting,
                          size_t n_behind, size_t bytes)
{
    const struct map_slot *slot;
    size_t at = 0, n_coming = 0;

    while ((slot = map_next(&all->by_key, &at))) {
        const struct task_share *s = slot->value;

        if (s->n_coming > s->share.n || s->bytes > bytes ||
            s->n_waiting + s->n_behind > s->share.n - s->n_coming ||
            s->n_waiting > n_waiting || s->n_behind > n_behind)
            return false;
        n_coming += s->n_coming;
        n_waiting -= s->n_waiting;
        n_behind -= s->n_behind;
        bytes -= s->bytes;
    }
    return n_waiting == 0 && n_behind == 0 && bytes == 0 &&
           shares_check(all, n + n_coming);
}

/* Exactly the entries with an org count in one. */
static bool org_shares_add_up(const struct tasks *ts)
{
    size_t n = 0, bytes = 0;

    for (int state = CLAIMED; state <= GOING_ON; state++) {
        const struct list *all = &ts->entries[state];

        for (struct list_node *at = list_first(all); at;
             at = list_next(all, at)) {
            n += entry_of_node(at)->org != NULL;
            bytes += entry_of_node(at)->org ? entry_of_node(at)->bytes : 0;
        }
    }
    return shares_add_up(&ts->orgs, n, 0, 0, bytes);
}

/* Entries at work are listed in the share of their own agent. */
static bool at_work_is_right(const struct tasks *ts, size_t n_working)
{
    const struct map_slot *slot;
    size_t at = 0;

    while ((slot = map_next(&ts->loads.by_key, &at))) {
        const struct task_share *s = slot->value;

        for (struct list_node *n = list_first(&s->working); n;
             n = list_next(&s->working, n), n_working--) {
            const struct task_entry *e =
                LIST_OF(n, struct task_entry, working_node);

            if (e->load != s || !is_at_work(e->t.status) || !n_working)
                return false;
        }
    }
    return n_working == 0;
}

bool task_shares_check(const struct tasks *ts, size_t n, size_t n_waiting,
                       size_t n_behind, size_t n_working, size_t bytes)
{
    return shares_add_up(&ts->users, n, 0, 0, bytes) && org_shares_add_up(ts) &&
           shares_add_up(&ts->loads, n, n_waiting, n_behind, bytes) &&
           at_work_is_right(ts, n_working);
}

const struct task *tasks_working(const struct tasks *ts, struct str agent,
                                 const struct task *after)
{
    const struct task_share *s = agent_load(ts, agent);
    const struct task_entry *last =
        after ? (const void *)((const char *)after -
                               offsetof(struct task_entry, t))
              : NULL;
    struct list_node *at;

    if (!s)
        return NULL;
    at = last ? list_next(&s->working, &last->working_node)
              : list_first(&s->working);
    return at ? &LIST_OF(at, struct task_entry, working_node)->t : NULL;
}
