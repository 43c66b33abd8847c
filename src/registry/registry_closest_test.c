/* The card that is closest to another one, as far as the requester sees. */
#include "test/lib/find_stage.h"

#include "model/advice.h"

/* Its name as `user` hears it, "" where there is none. */
static struct str closest(struct find *f, const char *user, const char *name,
                          double *likeness)
{
    struct eyes all = find_eyes("admin"), eyes = find_eyes(user);
    const struct agent *a = registry_find(f->r, str_of(name), &all);

    CHECK(a);
    a = registry_closest(f->r, a, &eyes, likeness);
    return a ? a->name : STR("");
}

TEST(the_same_description_is_found_and_another_is_not)
{
    struct find *f = find_new(EMBED_TABLE);
    double likeness = 1;

    PUT(f, "anna.acme", card("one", "Paints wooden houses", "public", ""));
    PUT(f, "anna.acme", card("two", "Paints wooden houses", "public", ""));
    PUT(f, "anna.acme", card("three", "Sings of ships", "public", ""));
    CHECK_STR(closest(f, "anna.acme", "one", &likeness), "two");
    CHECK(likeness == 0);
    CHECK_STR(closest(f, "anna.acme", "three", &likeness), "");
    find_free(f);
}

TEST(nearly_the_same_description_is_found_by_its_meaning)
{
    struct find *f = find_new(EMBED_TABLE);
    double likeness;

    PUT(f, "anna",
        card("one", "Paints old wooden houses and fences", "public", ""));
    PUT(f, "anna",
        card("two", "Paints old wooden fences and houses!", "public", ""));
    CHECK_STR(closest(f, "anna", "one", &likeness), "two");
    CHECK(likeness >= ADVICE_CLOSE && likeness < 1.001);
    find_free(f);
}

/* The negative control is the admin, who sees both. */
TEST(what_others_keep_private_is_never_named)
{
    struct find *f = find_new(EMBED_TABLE);
    double likeness;

    PUT(f, "anna.acme",
        card("secret", "Paints old wooden houses and fences", "private", ""));
    PUT(f, "carl.zeta",
        card("mine", "Paints old wooden houses and fences", "public", ""));
    PUT(f, "carl.zeta",
        card("near", "Paints old wooden fences and houses!", "private", ""));
    CHECK_STR(closest(f, "carl.zeta", "mine", &likeness), "near");
    CHECK_STR(closest(f, "carl.zeta", "near", &likeness), "mine");
    CHECK_STR(closest(f, "ben.bolt", "mine", &likeness), "");
    CHECK_STR(closest(f, "admin", "mine", &likeness), "secret");
    find_free(f);
}

TEST(an_agent_that_is_not_routed_to_is_close_to_none)
{
    struct find *f = find_new(EMBED_TABLE);
    double likeness;

    PUT(f, "anna", card("one", "Paints wooden houses", "public", ""));
    PUT(f, "anna",
        "{\"name\":\"shy\",\"description\":\"Paints wooden houses\","
        "\"url\":\"echo:\",\"visibility\":\"public\","
        "\"routing\":{\"routable\":false}}");
    CHECK_STR(closest(f, "anna", "one", &likeness), "");
    CHECK_STR(closest(f, "anna", "shy", &likeness), "");
    find_free(f);
}
