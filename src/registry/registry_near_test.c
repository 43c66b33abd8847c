/* Everyone who could get a message: who that is, for whom, and how near. */
#include "test/lib/find_stage.h"

/* Who is near, in words: "anna bob ". */
static const char *near_names(struct find *f, const char *user,
                              const char *text)
{
    static char out[4096];
    struct registry_near_query q = {.eyes = find_eyes(user),
                                    .text = str_of(text)};
    const struct registry_near *list;
    size_t n, at = 0;

    CHECK(registry_near(f->r, &q, &list, &n) == OK);
    out[0] = 0;
    for (size_t i = 0; i < n; i++)
        at += (size_t)snprintf(out + at, sizeof(out) - at, "%.*s ",
                               STR_ARG(list[i].agent->name));
    return out;
}

TEST(everyone_who_is_seen_is_there_in_the_order_of_the_names)
{
    struct find *f = find_new(EMBED_BUILTIN);

    PUT(f, "anna.acme", card("priv", "Paints", "private", ""));
    PUT(f, "anna.acme", card("Shar", "Paints", "shared", ""));
    PUT(f, "anna.acme", card("pub", "Paints", "public", ""));
    PUT(f, "anna.acme", card("apart", "Sings of ships", "public", ""));
    CHECK_STR(str_of(near_names(f, "anna.acme", "paint a house")),
              "apart priv pub Shar ");
    CHECK_STR(str_of(near_names(f, "ann2.acme", "paint")), "apart pub Shar ");
    CHECK_STR(str_of(near_names(f, "ben.bolt", "paint")), "apart pub ");
    CHECK_STR(str_of(near_names(f, "admin", "")), "apart priv pub Shar ");
    CHECK(find_remove(f, "anna.acme", "pub") == OK);
    CHECK_STR(str_of(near_names(f, "ben.bolt", "paint")), "apart ");
    find_free(f);
}

TEST(who_cannot_be_sent_anything_is_not_there)
{
    struct find *f = find_new(EMBED_BUILTIN);

    PUT(f, "anna", card("there", "Paints", "public", ""));
    PUT(f, "anna",
        "{\"name\":\"dead\",\"description\":\"Paints\","
        "\"visibility\":\"public\"}"); /* must come to us, and has not */
    PUT(f, "anna",
        "{\"name\":\"shy\",\"description\":\"Paints\",\"url\":\"echo:\","
        "\"visibility\":\"public\",\"routing\":{\"routable\":false}}");
    CHECK_STR(str_of(near_names(f, "ben", "paint")), "there ");
    find_free(f);
}

/* Of whom a keyword is said to occur: "anna bob ". */
static const char *with_keywords(struct find *f, const char *user,
                                 const char *text)
{
    static char out[4096];
    struct registry_near_query q = {.eyes = find_eyes(user),
                                    .text = str_of(text)};
    const struct registry_near *list;
    size_t n, at = 0;

    CHECK(registry_near(f->r, &q, &list, &n) == OK);
    out[0] = 0;
    for (size_t i = 0; i < n; i++)
        if (list[i].keyword.n)
            at += (size_t)snprintf(out + at, sizeof(out) - at, "%.*s ",
                                   STR_ARG(list[i].agent->name));
    return out;
}

TEST(keywords_of_strangers_do_not_count)
{
    struct find *f = find_new(EMBED_BUILTIN);

    PUT(f, "anna.acme",
        "{\"name\":\"hers\",\"description\":\"Paints\",\"url\":\"echo:\","
        "\"visibility\":\"public\",\"routing\":{\"keywords\":[\"the\"]}}");
    PUT(f, "admin",
        "{\"name\":\"ours\",\"description\":\"Paints\",\"url\":\"echo:\","
        "\"visibility\":\"public\",\"routing\":{\"keywords\":[\"the\"]}}");
    CHECK_STR(str_of(with_keywords(f, "anna.acme", "paint the house")),
              "hers ours ");
    CHECK_STR(str_of(with_keywords(f, "ann2.acme", "paint the house")),
              "hers ours ");
    CHECK_STR(str_of(with_keywords(f, "ben.bolt", "paint the house")), "ours ");
    find_free(f);
}
