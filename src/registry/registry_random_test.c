/* The module against a slow truth: a plain array of the expected state. Random
 * changes by several callers, several of them pending at a time, some rejected
 * by the store, some never submitted, with restarts in between. Every answer is
 * predicted; after each batch everything is compared, and the module checks
 * itself against the store and the index. STRESS=full takes longer. */
#include "test/lib/control.h"
#include "test/lib/registry_stage.h"

enum { NAMES = 12, IN_FLIGHT = 6, GRANTEES = 4, CALLERS = 4 };

static const struct caller *const callers[CALLERS] = {&stage_admin, &stage_anna,
                                                      &stage_bob, &stage_carl};

/* The expected state of one name. */
struct truth {
    bool is_there, is_coming, is_claimed;
    int owner, title, skills;
    enum visibility visibility;
    int64_t revision;
    bool granted[GRANTEES]; /* to user uN */
};

struct flight {
    struct registry_change change;
    bool is_used;
    int name;
    enum { PUT, REMOVE, GRANT, UNGRANT } kind;
    struct truth after;
};

static struct truth truth[NAMES];
static struct flight flights[IN_FLIGHT];
static struct rand_seeded chance;
static int n_taken, n_refused;
static const char *planted; /* a mistake that is to be noticed */

static unsigned dice(unsigned sides)
{
    return (unsigned)(rand_u64(rand_seeded(&chance)) % sides);
}

static const char *org_of(int caller)
{
    return callers[caller]->org;
}

static bool sees(int caller, const struct truth *t)
{
    if (!t->is_there)
        return false;
    return caller == 0 || caller == t->owner ||
           t->visibility == VISIBILITY_PUBLIC ||
           (t->visibility == VISIBILITY_SHARED && org_of(caller)[0] &&
            strcmp(org_of(caller), org_of(t->owner)) == 0);
}

static bool owns(int caller, const struct truth *t)
{
    return caller == 0 || caller == t->owner;
}

/* The expected answer to a change of an existing agent. */
static enum err foretell(int caller, const struct truth *t)
{
    if (!sees(caller, t))
        return ERR_NOT_FOUND;
    if (!owns(caller, t))
        return ERR_NOT_ALLOWED;
    return t->is_claimed ? ERR_BUSY : OK;
}

static struct flight *free_flight(void)
{
    for (int i = 0; i < IN_FLIGHT; i++)
        if (!flights[i].is_used)
            return &flights[i];
    return NULL;
}

/* It was prepared with `got`. */
static void took(struct flight *f, int name, enum err got, enum err must)
{
    if (got != must)
        T_FAIL("name %d is %d, not %d", name, got, must);
    if (got) {
        registry_change_fini(&f->change);
        n_refused++;
        return;
    }
    f->is_used = true;
    f->name = name;
    if (f->change.is_same)
        return;
    truth[name].is_claimed = true;
    truth[name].is_coming = !truth[name].is_there;
}

static bool says_same(const struct truth *a, const struct truth *b)
{
    return a->is_there && a->title == b->title && a->skills == b->skills &&
           a->visibility == b->visibility;
}

static void put(struct stage *s, struct flight *f, int caller, int name)
{
    struct registry_by by = stage_by(s, callers[caller]);
    struct truth *t = &truth[name];
    char card[1024];
    int n;
    enum err must = OK;

    f->kind = PUT;
    f->after = *t;
    f->after.is_there = true;
    f->after.owner = t->is_there ? t->owner : caller;
    f->after.title = (int)dice(3);
    f->after.skills = (int)dice(3);
    f->after.visibility = (enum visibility)(1 + dice(3));
    f->after.revision =
        t->is_there ? t->revision + 1 : registry_stats(s->r).seq + 1;
    n = snprintf(card, sizeof(card),
                 "{\"name\":\"%s%d\",\"title\":\"t%d\",\"visibility\":\"%.*s\","
                 "\"skills\":[",
                 dice(10) ? "n" : "N", name, f->after.title,
                 STR_ARG(visibility_name(f->after.visibility)));
    for (int i = 0; i < f->after.skills; i++)
        n += snprintf(card + n, sizeof(card) - (size_t)n,
                      "%s{\"id\":\"s%d\",\"name\":\"word%d\"}", i ? "," : "", i,
                      i);
    snprintf(card + n, sizeof(card) - (size_t)n, "]}");
    if (t->is_there && !sees(caller, t))
        must = ERR_EXISTS;
    else if (t->is_there && !owns(caller, t))
        must = ERR_NOT_ALLOWED;
    else if (t->is_there && card[9] == 'N')
        must = ERR_EXISTS;
    else if (t->is_claimed)
        must = ERR_BUSY;
    if (!t->is_there)
        card[9] = 'n'; /* so that the truth need not know how it is spelt */
    took(f, name, stage_begin_put(s, &f->change, "", card, &by), must);
    if (f->is_used && f->change.is_same != says_same(t, &f->after))
        T_FAIL("name %d: is_same is %d", name, f->change.is_same);
}

static void take_out(struct stage *s, struct flight *f, int caller, int name)
{
    struct registry_by by = stage_by(s, callers[caller]);
    enum err must = foretell(caller, &truth[name]);
    char text[16];

    f->kind = REMOVE;
    f->after = (struct truth){.is_there = false};
    snprintf(text, sizeof(text), "n%d", name);
    registry_change_init(&f->change);
    took(f, name, registry_remove(s->r, &f->change, str_of(text), &by, &s->why),
         must);
}

static void grant(struct stage *s, struct flight *f, int caller, int name)
{
    struct registry_by by = stage_by(s, callers[caller]);
    enum err must = foretell(caller, &truth[name]);
    int to = (int)dice(GRANTEES);
    char text[16], user[16];
    struct registry_grant g = {.expires_ms = 0};

    snprintf(text, sizeof(text), "n%d", name);
    snprintf(user, sizeof(user), "u%d", to);
    g.agent = str_of(text);
    g.user = str_of(user);
    f->kind = GRANT;
    f->after = truth[name];
    f->after.granted[to] = true;
    registry_change_init(&f->change);
    took(f, name, registry_grant(s->r, &f->change, &g, &by, &s->why), must);
    if (f->is_used && f->change.is_same != truth[name].granted[to])
        T_FAIL("name %d: is_same is %d", name, f->change.is_same);
}

static void ungrant(struct stage *s, struct flight *f, int caller, int name)
{
    struct registry_by by = stage_by(s, callers[caller]);
    const struct truth *t = &truth[name];
    enum err must = foretell(caller, t);
    const struct agent *a;
    char text[16];
    size_t nth;

    snprintf(text, sizeof(text), "n%d", name);
    a = stage_find(s, NULL, text);
    if (!a || !a->n_grants)
        return;
    nth = dice((unsigned)a->n_grants);
    if (must == ERR_NOT_ALLOWED)
        must = ERR_NOT_FOUND; /* another user does not learn of it */
    f->kind = UNGRANT;
    f->after = *t;
    f->after.granted[a->grants[nth].user.p[1] - '0'] = false;
    registry_change_init(&f->change);
    took(f, name,
         registry_ungrant(s->r, &f->change, str_of(a->grants[nth].id.text), &by,
                          &s->why),
         must);
}

/* Some of what is on its way is submitted, in any order, and settled in that
 * order; the store may refuse one. */
static void commit_some(struct stage *s)
{
    struct flight *order[IN_FLIGHT];
    int n = 0;

    for (int i = 0; i < IN_FLIGHT; i++)
        if (flights[i].is_used && dice(4)) {
            int at = (int)dice((unsigned)n + 1);

            memmove(order + at + 1, order + at,
                    (size_t)(n++ - at) * sizeof(*order));
            order[at] = &flights[i];
        }
    if (dice(4) == 0)
        fault_arm_at("store.op.full", 1 + (long)dice(12));
    for (int i = 0; i < n; i++)
        if (!order[i]->change.is_same && dice(16))
            store_submit(s->store, &order[i]->change.tx, stage_on_done, NULL);
    store_turn(s->store);
    fault_arm_at(planted, planted ? 1 : 0);
    for (int i = 0; i < n; i++) {
        struct flight *f = order[i];
        bool is_same = f->change.is_same;
        bool is_done = registry_settle(s->r, &f->change, &s->why) == OK;

        registry_change_fini(&f->change);
        f->is_used = false;
        if (is_same)
            continue;
        if (is_done)
            truth[f->name] = f->after;
        truth[f->name].is_claimed = truth[f->name].is_coming = false;
        n_taken += is_done;
        n_refused += !is_done;
    }
}

static void compare(struct stage *s)
{
    size_t n = 0;

    for (int i = 0; i < NAMES; i++) {
        const struct truth *t = &truth[i];
        const struct agent *a;
        char name[16], title[16];
        size_t n_grants = 0;

        snprintf(name, sizeof(name), "N%d", i);
        snprintf(title, sizeof(title), "t%d", t->title);
        a = stage_find(s, NULL, name);
        CHECK(!!a == t->is_there);
        for (int c = 0; c < CALLERS; c++)
            CHECK(!!stage_find(s, callers[c], name) == sees(c, t));
        if (!a)
            continue;
        n++;
        for (int k = 0; k < GRANTEES; k++)
            n_grants += t->granted[k];
        CHECK_STR(a->title, title);
        CHECK_STR(a->creator, callers[t->owner]->principal);
        CHECK(a->revision == t->revision && a->visibility == t->visibility);
        CHECK_INT(a->n_skills, t->skills);
        CHECK_INT(a->n_grants, n_grants);
    }
    CHECK_INT(registry_agents(s->r).n, n);
    stage_check(s);
}

/* Nothing is on its way: the last entry of each agent in the feed is of the
 * revision it has, or says that it went. */
static void compare_feed(struct stage *s)
{
    struct query q;
    int64_t revisions[NAMES] = {0};

    query_init(&q, &feed_table, 100000);
    query_order(&q, FEED_SEQ, false);
    CHECK(store_look(s->store, &q) == OK);
    if (q.has_more) { /* a page has its limit in bytes */
        query_fini(&q);
        return;
    }
    QUERY_EACH(row, &q)
    {
        struct feed_entry e;
        struct arena a;
        struct json *data;
        int name;

        feed_from_row(&e, row);
        name = (int)strtol(e.agent.p + 1, NULL, 10);
        arena_init(&a, 65536);
        data = json_parse(&a, e.data, 0, NULL);
        CHECK(data);
        revisions[name] =
            str_eq(e.type, STR("agent.removed"))
                ? 0
                : json_int_or(json_get(data, STR("revision")), -1);
        arena_fini(&a);
    }
    query_fini(&q);
    for (int i = 0; i < NAMES; i++)
        CHECK_INT(revisions[i], truth[i].is_there ? truth[i].revision : 0);
}

static bool nothing_is_on_its_way(void)
{
    for (int i = 0; i < IN_FLIGHT; i++)
        if (flights[i].is_used)
            return false;
    return true;
}

static void step(struct stage *s)
{
    struct flight *f = free_flight();
    int caller = (int)dice(CALLERS), name = (int)dice(NAMES);

    if (!f || dice(4) == 0) {
        commit_some(s);
        return;
    }
    switch (dice(8)) {
    case 0: take_out(s, f, caller, name); break;
    case 1:
    case 2: grant(s, f, caller, name); break;
    case 3: ungrant(s, f, caller, name); break;
    default: put(s, f, caller, name); break;
    }
}

static void run(int n_steps, uint64_t seed)
{
    struct stage s;

    memset(truth, 0, sizeof(truth));
    chance.state = seed;
    stage_prepare(&s);
    s.has_model = true;
    CHECK(stage_start(&s) == OK);
    for (int i = 0; i < n_steps; i++) {
        step(&s);
        s.now_ms++;
        if (i % 25 == 0)
            compare(&s);
        if (i % 200 == 199) {
            while (!nothing_is_on_its_way())
                commit_some(&s);
            compare_feed(&s);
            stage_restart(&s, dice(2));
            compare(&s);
        }
    }
    while (!nothing_is_on_its_way())
        commit_some(&s);
    compare(&s);
    stage_close(&s);
}

TEST(random_changes_are_what_they_must_be)
{
    const char *stress = getenv("STRESS");
    bool is_full = stress && strcmp(stress, "full") == 0;

    run(is_full ? 100000 : 4000, 11);
    printf("%d changes taken, %d refused\n", n_taken, n_refused);
    CHECK(n_taken > 400 && n_refused > 400);
}

/* The test would notice. */

static void body(void)
{
    run(1000, 12);
}

TEST(a_mistake_is_noticed)
{
    planted = "registry.memory_first";
    check_control(planted, body);
    planted = "registry.keep_index";
    check_control(planted, body);
    planted = "registry.forget_seq";
    check_control(planted, body);
}
