#include "base/fault.h"
#include "base/share.h"
#include "test/t.h"

static const uint64_t seed[2] = {1, 2};

struct holder {
    struct share share;
    size_t bytes;
};

TEST(a_share_exists_from_its_first_use_to_its_last)
{
    struct shares all;
    struct holder *anna, *bob;
    char name[] = "anna";

    shares_init(&all, sizeof(struct holder), 10, seed);
    CHECK(!share_find(&all, STR("anna")) && shares_check(&all, 0));
    anna = share_take(&all, str_of(name));
    CHECK_INT(anna->share.n, 1);
    CHECK_INT(anna->bytes, 0);
    anna->bytes = 7;
    name[0] = 'x'; /* the key is a copy */
    CHECK(share_take(&all, STR("anna")) == anna);
    CHECK(share_find(&all, STR("anna")) == anna);
    bob = share_take(&all, STR(""));
    CHECK(bob && bob != anna);
    CHECK(shares_check(&all, 3) && !shares_check(&all, 2) &&
          !shares_check(&all, 4));
    share_give(&all, anna);
    CHECK_INT(anna->bytes, 7);
    share_give(&all, anna);
    CHECK(!share_find(&all, STR("anna")) && shares_check(&all, 1));
    share_give(&all, NULL);
    anna = share_take(&all, STR("anna"));
    CHECK_INT(anna->bytes, 0); /* a new one */
    shares_fini(&all);         /* frees both */
}

TEST(no_more_shares_than_the_limit)
{
    struct shares all;
    struct share *a, *b;

    shares_init(&all, sizeof(struct share), 2, seed);
    a = share_take(&all, STR("a"));
    b = share_take(&all, STR("b"));
    CHECK(a && b && !share_take(&all, STR("c")));
    CHECK(share_take(&all, STR("a")) == a); /* a use more is no share more */
    CHECK(shares_check(&all, 3));
    share_give(&all, b);
    b = share_take(&all, STR("c"));
    CHECK(b && shares_check(&all, 3));
    shares_fini(&all);
}

TEST(a_share_is_at_most_a_multiple_of_what_is_free)
{
    CHECK_INT(share_free(100, 30, 0), 70);
    CHECK_INT(share_free(100, 30, 50), 68);
    CHECK_INT(share_free(100, 98, 50), 0);
    CHECK_INT(share_free(100, 99, 50), 0); /* the reserve is used */
    CHECK_INT(share_free(100, 99, 0), 1);
    CHECK(share_is_fair(20, 2, 10) && !share_is_fair(21, 2, 10));
    CHECK(share_is_fair(0, 2, 0) && !share_is_fair(1, 2, 0));
}

TEST(whoever_takes_all_leaves_room_for_the_next)
{
    for (size_t k = 1; k <= 5; k++) {
        size_t most = 10000, used = 0, held[5] = {0}, taken;

        do { /* k greedy ones in turn */
            taken = 0;
            for (size_t i = 0; i < k; i++) {
                size_t left = share_free(most, used, 0);

                if (!left || !share_is_fair(held[i] + 1, 2, left))
                    continue;
                held[i]++;
                used++;
                taken++;
            }
        } while (taken);
        CHECK(most - used >= most / (1 + 2 * k));
        CHECK(most - used <= most / (1 + 2 * k) + k);
    }
}
