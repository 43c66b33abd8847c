/* The feed against a plain list. Every committed entry is written down with
 * the users that may see it. In the end each reader must have exactly its part
 * of the list, in order, with slow readers, readers that leave and come back,
 * pruned entries, failed reads, and a server that is taken down and built
 * again. */
#include "test/lib/feed_stage.h"

enum { READERS = 12, ROUNDS = 260, PEOPLE = 4, TRUTH_MAX = 40000 };

static const char *const people[PEOPLE] = {"anna", "bob", "carl", "dora"};

struct truth {
    int64_t seq;
    uint8_t requester, root_user;
    bool is_there; /* in the end */
};

struct world {
    struct stage s; /* first */
    struct rand_seeded seeded;
    struct rand rand;
    struct truth *list;
    size_t n;
    struct follower l[READERS];
    bool is_in[READERS];
    size_t at[READERS]; /* in the list, behind the last entry it got */
    int64_t passed[READERS];
};

static unsigned below(struct world *w, unsigned n)
{
    return (unsigned)(rand_u64(w->rand) % n);
}

static uint8_t person_of(struct value v)
{
    for (uint8_t i = 0; i < PEOPLE; i++)
        if (str_eq(v.s, str_of(people[i])))
            return i;
    T_FAIL("nobody");
}

static void write_down(struct stage *s, const struct tx *tx)
{
    struct world *w = LIST_OF(s, struct world, s);

    TX_EACH(op, tx)
    {
        if (op->kind != TX_INSERT)
            continue;
        CHECK(w->n < TRUTH_MAX);
        CHECK(op->seq > (w->n ? w->list[w->n - 1].seq : 0));
        w->list[w->n++] = (struct truth){
            .seq = op->seq,
            .requester = person_of(tx_value(op, FEED_REQUESTER)),
            .root_user = person_of(tx_value(op, FEED_ROOT_USER))};
    }
}

/* Reader i is an admin or one of the people. */
static struct caller caller_at(int i)
{
    return i % (PEOPLE + 1) == PEOPLE
               ? caller_of("admin", ROLE_ADMIN)
               : caller_of(people[i % (PEOPLE + 1)], ROLE_USER);
}

static bool may_see(int i, const struct truth *t)
{
    int who = i % (PEOPLE + 1);

    return who == PEOPLE || t->requester == who || t->root_user == who;
}

/* Whether reader i got the right entries: NULL, or the mistake. */
static const char *judge(int i, const struct truth *list, size_t n,
                         const int64_t *got, size_t n_got)
{
    size_t at = 0;

    for (size_t k = 0; k < n; k++) {
        const struct truth *t = &list[k];
        bool has = at < n_got && got[at] == t->seq;

        if (has && !may_see(i, t))
            return "got what is not for it";
        if (!has && may_see(i, t) && t->is_there)
            return "something is missing";
        at += has;
    }
    return at == n_got ? NULL : "doubled, out of order or made up";
}

/* Entries that reader i has skipped since its last one must have been pruned
 * by now. */
static void check_gap(struct world *w, int i, int64_t upto)
{
    int64_t after = w->passed[i];
    bool has_gap = false;
    struct query q;

    w->passed[i] = upto;
    for (; w->at[i] < w->n && w->list[w->at[i]].seq < upto; w->at[i]++)
        has_gap |= may_see(i, &w->list[w->at[i]]);
    w->at[i] += w->at[i] < w->n && w->list[w->at[i]].seq == upto;
    if (!has_gap)
        return;
    query_init(&q, &feed_table, 100000);
    query_if(&q, FEED_SEQ, IS_MORE, value_int(after));
    query_if(&q, FEED_SEQ, IS_LESS, value_int(upto));
    CHECK(store_look(w->s.store, &q) == OK);
    QUERY_EACH(row, &q)
    {
        struct feed_entry e;

        feed_from_row(&e, row);
        CHECK(!feed_is_for(&e, &w->l[i].r.caller));
    }
    query_fini(&q);
}

/* Taking part. */

static bool take_one(struct world *w, int i)
{
    struct follower *l = &w->l[i];

    if (!follower_next(l))
        return false;
    check_gap(w, i, l->seqs[l->n - 1]);
    return true;
}

static void some_news(struct feed_reader *r)
{
    struct follower *l = LIST_OF(r, struct follower, r);
    struct world *w = LIST_OF(l->s, struct world, s);
    unsigned n = below(w, 300);

    CHECK(!l->is_told);
    l->is_told = true;
    while (n-- > 0 && take_one(w, (int)(l - w->l)))
        ;
}

static void enter(struct world *w, int i)
{
    struct caller c = caller_at(i);

    w->l[i].s = &w->s;
    w->l[i].r.on_news = some_news;
    w->l[i].is_told = false;
    feed_join(w->s.feed, &w->l[i].r, &c, w->l[i].r.after);
    w->is_in[i] = true;
}

static void leave(struct world *w, int i)
{
    if (w->is_in[i])
        feed_leave(w->s.feed, &w->l[i].r);
    w->is_in[i] = false;
}

static void act(struct world *w)
{
    int i = (int)below(w, READERS);
    unsigned n = below(w, 400);

    if (below(w, 10) == 0)
        leave(w, i);
    else if (!w->is_in[i])
        enter(w, i);
    else
        while (n-- > 0 && take_one(w, i))
            ;
}

static void change(struct world *w)
{
    struct tx *tx = new_tx();
    unsigned n = 1 + below(w, below(w, 4) ? 4 : 120);

    for (unsigned k = 0; k < n; k++)
        add_entry(&w->s, tx, people[below(w, PEOPLE)],
                  people[below(w, PEOPLE)]);
    submit(&w->s, tx);
}

static void tidy(struct world *w)
{
    struct tx *tx = new_tx();

    feed_prune(w->s.feed, tx,
               below(w, 2) ? w->s.time.wall_ms - below(w, 200000) : 0,
               below(w, 2) ? 1 + below(w, 6000) : 0, 1 + below(w, 500));
    submit(&w->s, tx);
}

static void restart(struct world *w)
{
    fault_arm(0);
    for (int i = 0; i < READERS; i++)
        leave(w, i);
    stage_again(&w->s);
}

static void round_of(struct world *w)
{
    for (unsigned n = below(w, 4); n > 0; n--)
        change(w);
    for (unsigned n = below(w, 6); n > 0; n--)
        act(w);
    if (below(w, 12) == 0)
        tidy(w);
    if (below(w, 20) == 0)
        fault_arm_at("store.read.io", 1 + below(w, 20));
    if (below(w, 100) == 0)
        restart(w);
    w->s.time.mono_ms += below(w, 50);
    w->s.time.wall_ms += below(w, 3000);
    if (below(w, 50) == 0) /* clocks jump */
        w->s.time.wall_ms -= below(w, 100000);
    turns(&w->s, (int)below(w, 3));
}

/* Mark the entries that the store still has. */
static void look_what_is_there(struct world *w)
{
    int64_t after = 0;
    size_t at = 0;
    bool has_more = true;

    while (has_more) {
        struct query q;

        query_init(&q, &feed_table, 5000);
        query_if(&q, FEED_SEQ, IS_MORE, value_int(after));
        query_order(&q, FEED_SEQ, false);
        CHECK(store_look(w->s.store, &q) == OK);
        QUERY_EACH(row, &q)
        {
            after = row_int(row, FEED_SEQ);
            while (at < w->n && w->list[at].seq < after)
                at++;
            CHECK(at < w->n && w->list[at].seq == after);
            w->list[at].is_there = true;
        }
        has_more = q.has_more;
        query_fini(&q);
    }
}

static bool everybody_has_all(struct world *w)
{
    bool all = true;

    for (int i = 0; i < READERS; i++) {
        if (!w->is_in[i])
            enter(w, i);
        while (take_one(w, i))
            ;
        all &= w->l[i].r.after == feed_newest(w->s.feed);
    }
    return all;
}

static void live(struct world *w, uint64_t seed)
{
    *w = (struct world){.seeded = {seed}};
    w->rand = rand_seeded(&w->seeded);
    w->list = calloc(TRUTH_MAX, sizeof(*w->list));
    CHECK(w->list);
    stage_open(&w->s);
    w->s.on_committed = write_down;
    for (int i = 0; i < ROUNDS; i++)
        round_of(w);
    fault_arm(0);
    turns(&w->s, 5);
    look_what_is_there(w);
    for (int i = 0; i < TURNS && !everybody_has_all(w); i++) {
        turns(&w->s, 1);
        w->s.time.mono_ms += 1000;
    }
    CHECK(everybody_has_all(w));
}

static void die(struct world *w)
{
    for (int i = 0; i < READERS; i++) {
        leave(w, i);
        free(w->l[i].seqs);
    }
    stage_close(&w->s);
    free(w->list);
}

TEST(every_reader_gets_its_part_of_the_list)
{
    int64_t pages = 0;
    size_t entries = 0;

    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct world w;

        live(&w, seed);
        for (int i = 0; i < READERS; i++) {
            const char *wrong = judge(i, w.list, w.n, w.l[i].seqs, w.l[i].n);

            if (wrong)
                T_FAIL("seed %d, reader %d: %s", (int)seed, i, wrong);
        }
        pages += feed_stats(w.s.feed).pages_total;
        entries += w.n;
        die(&w);
    }
    CHECK(pages > 50 && entries > 12 * FEED_RING_ENTRIES);
}

/* The control: a judge who finds nothing would pass anything. */
TEST(the_judge_finds_each_kind_of_mistake)
{
    static const struct truth list[] = {
        {1, 0, 0, true}, {2, 1, 1, true}, {3, 1, 0, false}, {4, 0, 1, true}};
    static const struct {
        int64_t got[5];
        size_t n;
        bool is_good;
    } rows[] = {
        {{1, 3, 4}, 3, true},     {{1, 4}, 2, true}, /* 3 was removed */
        {{1, 3}, 2, false},       {{4}, 1, false},       {{1, 2, 4}, 3, false},
        {{1, 1, 4}, 3, false},    {{1, 4, 4}, 3, false}, {{4, 1}, 2, false},
        {{1, 3, 4, 5}, 4, false}, {{0, 1, 4}, 3, false},
    };

    for (size_t k = 0; k < sizeof(rows) / sizeof(*rows); k++)
        CHECK_INT(judge(0, list, 4, rows[k].got, rows[k].n) == NULL,
                  rows[k].is_good);
}
