/* A card may not hide invisible characters in the objects that are kept
 * unchanged, and an error message may not show private values. */
#include "test/lib/card_stage.h"

static void read_with(struct stage *s, const char *members)
{
    char text[4096];
    int n = snprintf(text, sizeof(text),
                     "{\"name\":\"a\",\"description\":\"d\",%s}", members);

    CHECK(n > 0 && (size_t)n < sizeof(text));
    stage_init(s);
    stage_read(s, str_of(text));
}

/* Letters in objects. */

static const struct {
    const char *members;
    const char *pointer; /* NULL: it is fine */
    const char *words;
} letters[] = {
    {"\"metadata\":{\"k\":\"a\\u202eb\"}", "/metadata/k",
     "may not contain U+202E, a mark that turns the direction of writing (byte "
     "2)"},
    {"\"metadata\":{\"k\":[1,{\"x\":[\"\\u200b\"]}]}", "/metadata/k/1/x/0",
     "U+200B"},
    {"\"metadata\":{\"a\\u200bb\":1}", "/metadata",
     "has a member whose name may not contain U+200B, a character that cannot "
     "be "
     "seen (byte 2)"},
    {"\"metadata\":{\"k\":{\"a\\nb\":1}}", "/metadata/k", "U+000A"},
    {"\"metadata\":{\"a\\u200bb\":\"\\u200b\"}", "/metadata", "U+200B"},
    {"\"metadata\":{\"\":\"\\u0000\"}", "/metadata/", "U+0000"},
    {"\"capabilities\":{\"k\":\"\\udb40\\udc41\"}", "/capabilities/k",
     "U+E0041, a tag"},
    {"\"provider\":{\"more\":\"\\ufeff\"}", "/provider/more", "U+FEFF"},
    {"\"provider\":{\"organization\":\"\\ufeff\"}", "/provider/organization",
     "U+FEFF"},
    {"\"authentication\":{\"more\":[\"\\u00ad\"]}", "/authentication/more/0",
     "U+00AD"},
    {"\"authentication\":{\"credentials\":\"\\u00ad\"}",
     "/authentication/credentials", "U+00AD"},
    {"\"metadata\":{\"k\":\"two\\nlines\\tand \\u200d joined\"}", NULL, NULL},
    {"\"metadata\":{\"\xd7\xa9\":\"\xd9\x85\"}", NULL, NULL},
};

TEST(letters_that_cannot_be_seen_are_found_in_every_object)
{
    for (size_t i = 0; i < sizeof(letters) / sizeof(letters[0]); i++) {
        struct stage s;

        read_with(&s, letters[i].members);
        if (s.problems.n_all != (letters[i].pointer != NULL))
            T_FAIL("%s: %zu problems", letters[i].members, s.problems.n_all);
        if (letters[i].pointer) {
            struct str words =
                stage_problem(&s, str_of(letters[i].pointer))->message;

            if (!stage_has(words, str_of(letters[i].words)))
                T_FAIL("%s: \"%.*s\"", letters[i].members, STR_ARG(words));
        }
        stage_fini(&s);
    }
}

/* Names of 300 letters, ten deep: the pointer names the deepest parent that
 * fits, completely. */
TEST(a_place_too_deep_for_a_pointer_is_told_by_what_it_stands_in)
{
    struct stage s;
    struct buf text;
    struct str pointer;

    stage_init(&s);
    buf_init(&text, 1 << 20);
    buf_add_str(&text, STR("{\"name\":\"a\",\"description\":\"d\","
                           "\"metadata\":"));
    for (int i = 0; i < 10; i++)
        buf_addf(&text, "{\"%0300d\":", i);
    buf_add_str(&text, STR("\"\\u200b\""));
    for (int i = 0; i < 10; i++)
        buf_add_char(&text, '}');
    buf_add_char(&text, '}');
    stage_read(&s, buf_str(&text));
    CHECK_INT(s.problems.n_all, 1);
    pointer = s.problems.list[0].pointer;
    CHECK_INT(pointer.n, sizeof("/metadata") - 1 + 301);
    CHECK(s.problems.list[0].at > 3000);
    buf_fini(&text);
    stage_fini(&s);
}

/* Cards that were stored before this check must still be readable. */
TEST(what_is_kept_already_is_not_looked_at_again)
{
    static const struct str text =
        STR("{\"name\":\"a\",\"url\":\"echo:\",\"metadata\":{\"k\":"
            "\"\\u200b\"},\"skills\":[{\"id\":\"x\",\"name\":\"A\"},"
            "{\"id\":\"X\",\"name\":\"B\"}]}");
    struct agent agent;
    struct arena out;

    arena_init(&out, 1 << 20);
    CHECK(card_read_stored(&out, text, &agent) == OK);
    CHECK_INT(agent.n_skills, 2);
    arena_fini(&out);
}

/* Secrets. */

static const struct {
    const char *members, *pointer, *words;
} secrets[] = {
    {"\"authentication\":{\"credentials\":8675309}",
     "/authentication/credentials", "must be text, not a number"},
    {"\"authentication\":{\"credentials\":86753.09}",
     "/authentication/credentials", "must be text, not a number"},
    {"\"authentication\":{\"credentials\":[\"8675309\"]}",
     "/authentication/credentials", "must be text, not a list"},
    {"\"authentication\":{\"credentials\":true}", "/authentication/credentials",
     "must be text, not true or false"},
    {"\"authentication\":\"8675309\"", "/authentication",
     "must be an object, not text"},
    {"\"routing\":{\"system_prompt\":8675309}", "/routing/system_prompt",
     "must be text, not a number"},
    {"\"routing\":\"8675309\"", "/routing", "must be an object, not text"},
    {"\"wake\":\"8675309\"", "/wake", "must be an object, not text"},
    {"\"restart\":\"8675309\"", "/restart", "must be an object, not text"},
    {"\"metadata\":\"8675309\"", "/metadata",
     "must be an object, not \"8675309\""}, /* not private */
};

TEST(what_is_private_is_not_repeated)
{
    for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++) {
        struct stage s;

        read_with(&s, secrets[i].members);
        CHECK_STR(stage_problem(&s, str_of(secrets[i].pointer))->message,
                  secrets[i].words);
        stage_fini(&s);
    }
}

/* An org of its own, taken back. */

TEST(an_empty_org_is_that_of_the_creator_and_an_admins_to_say)
{
    static const struct agent before = {.name = STR("a"), .org = STR("acme")},
                              none = {.name = STR("a")};
    struct stage s;

    read_with(&s, "\"org\":\"\"");
    CHECK(s.e == OK && s.agent.is_org_creators && s.agent.org.n == 0);
    stage_fini(&s);
    read_with(&s, "\"org\":null");
    CHECK(s.e == OK && !s.agent.is_org_creators);
    s.opts.rights = CARD_MAY_SHOW;
    s.opts.before = &before;
    stage_read(&s, STR("{\"description\":\"d\",\"org\":\"\"}"));
    CHECK_INT(s.e, ERR_NOT_ALLOWED);
    s.opts.before = &none;
    stage_read(&s, STR("{\"description\":\"d\",\"org\":\"\"}"));
    CHECK(s.e == OK && !s.agent.is_org_creators);
    stage_fini(&s);
}
