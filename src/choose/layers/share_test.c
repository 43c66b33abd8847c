/* Strangers get no more of an org's messages than their share, at any time, and
 * each org is counted apart. */
#include "choose/layers/choose.h"
#include "test/t.h"

static const uint64_t seed[2] = {3, 4};

static struct msg *message(struct candidate *list, size_t n)
{
    struct msg *m = msg_new(&(struct caller){0}, 5);

    CHECK(m);
    m->choice.candidates = list;
    m->choice.n_candidates = n;
    return m;
}

/* Messages of an org that a stranger would win whenever it may. Returns how
 * many it wins. */
static size_t won(struct choose_shares *s, const char *org, size_t n)
{
    struct candidate first[2] = {{.agent = STR("own"), .is_trusted = true},
                                 {.agent = STR("strange")}};
    struct candidate other[2] = {first[1], first[0]};
    struct msg *own = message(first, 2), *strange = message(other, 2);
    size_t n_won = 0;

    for (size_t i = 0; i < n; i++) {
        bool is_spent = choose_share_is_spent(s, str_of(org));

        n_won += !is_spent;
        choose_share_count(s, str_of(org), is_spent ? own : strange);
    }
    msg_free(own);
    msg_free(strange);
    return n_won;
}

TEST(strangers_get_their_share_and_no_more)
{
    struct choose_shares *s = choose_shares_new(seed);
    size_t n_won = 0;

    CHECK(s);
    for (size_t n = 1; n <= 10 * 1000; n++) {
        n_won += won(s, "org:acme", 1);
        CHECK((double)n_won <= CHOOSE_SHARE * (double)n + 1);
    }
    CHECK(n_won > 250 && n_won <= 310);
    choose_shares_free(s);
}

TEST(each_org_has_a_share_of_its_own)
{
    struct choose_shares *s = choose_shares_new(seed);

    CHECK(s);
    CHECK_INT(won(s, "org:acme", 100), won(s, "org:bolt", 100));
    choose_shares_free(s);
}

TEST(without_others_strangers_take_nothing)
{
    struct choose_shares *s = choose_shares_new(seed);
    struct candidate list[2] = {{.agent = STR("a")}, {.agent = STR("b")}};
    struct msg *m = message(list, 2);

    CHECK(s);
    for (int i = 0; i < 1000; i++)
        choose_share_count(s, STR("org:acme"), m);
    CHECK_INT(won(s, "org:acme", 100), won(s, "org:bolt", 100));
    list[1].is_taught = true; /* as good as trusted, for this text */
    for (int i = 0; i < 100; i++)
        choose_share_count(s, STR("org:cine"), m);
    CHECK_INT(won(s, "org:cine", 100), 0);
    msg_free(m);
    choose_shares_free(s);
}

/* More orgs than slots: each is limited while it is remembered, and a busy one
 * is remembered. */
TEST(many_orgs_do_not_make_a_busy_one_forgotten)
{
    struct choose_shares *s = choose_shares_new(seed);
    size_t n_won = 0, n = 3 * CHOOSE_SHARES_MAX;
    char org[32];

    CHECK(s);
    for (size_t i = 0; i < n; i++) {
        snprintf(org, sizeof(org), "org:%zu", i);
        (void)won(s, org, 1);
        n_won += won(s, "org:busy", 1);
    }
    CHECK((double)n_won <= CHOOSE_SHARE * (double)n + 1);
    choose_shares_free(s);
}
