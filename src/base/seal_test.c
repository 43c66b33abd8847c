/* A sealed text opens unchanged, with its key and for its owner, or not at
 * all. */
#include "base/seal.h"

#include "test/t.h"

#define KEY   "00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF"
#define OTHER "10112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF"

static struct seal_key key_of(const char *text)
{
    struct seal_key k;

    CHECK(seal_key_read(str_of(text), &k) == OK);
    return k;
}

static enum err open_it(const struct seal_key *k, const char *about,
                        struct str sealed, struct buf *out)
{
    char id[SEAL_ID_CHARS + 1];

    buf_init(out, 2 * SEAL_PLAIN_MAX);
    return seal_open(k, str_of(about), sealed, out, id);
}

TEST(a_key_is_64_hexadecimal_digits)
{
    static const char *const bad[] = {
        "", "00", KEY "0", KEY "00",
        "g0112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF"};
    struct seal_key a = key_of(KEY), b = key_of("  " KEY "\n"), k;

    CHECK(memcmp(&a, &b, sizeof(a)) == 0);
    CHECK_INT(strlen(a.id), SEAL_ID_CHARS);
    CHECK(strcmp(a.id, key_of(OTHER).id) != 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK(seal_key_read(str_of(bad[i]), &k) == ERR_SYNTAX);
}

TEST(what_was_sealed_comes_back_and_never_looks_the_same)
{
    struct seal_key k = key_of(KEY);
    static const char *const texts[] = {"", "x", "s3cret \n\"…\""};

    for (size_t i = 0; i < 3; i++) {
        struct buf a, b, back;

        buf_init(&a, 4096);
        buf_init(&b, 4096);
        CHECK(seal_close(&k, STR("z"), str_of(texts[i]), &a) == OK);
        CHECK(seal_close(&k, STR("z"), str_of(texts[i]), &b) == OK);
        CHECK(!str_eq(buf_str(&a), buf_str(&b)));
        CHECK(open_it(&k, "z", buf_str(&a), &back) == OK);
        CHECK_STR(buf_str(&back), texts[i]);
        buf_fini(&back);
        buf_fini(&a);
        buf_fini(&b);
    }
}

TEST(another_key_is_named_and_anothers_seal_is_not_opened)
{
    struct seal_key k = key_of(KEY), other = key_of(OTHER);
    char id[SEAL_ID_CHARS + 1];
    struct buf sealed, out;

    buf_init(&sealed, 4096);
    buf_init(&out, 4096);
    CHECK(seal_close(&k, STR("z"), STR("s3cret"), &sealed) == OK);
    CHECK(seal_open(&other, STR("z"), buf_str(&sealed), &out, id) ==
          ERR_NOT_ALLOWED);
    CHECK(strcmp(id, k.id) == 0);
    CHECK(seal_open(&k, STR("y"), buf_str(&sealed), &out, id) == ERR_SYNTAX);
    CHECK(out.n == 0);
    buf_fini(&sealed);
    buf_fini(&out);
}

TEST(every_changed_or_missing_byte_is_noticed)
{
    struct seal_key k = key_of(KEY);
    struct buf sealed, out;

    buf_init(&sealed, 4096);
    CHECK(seal_close(&k, STR("z"), STR("s3cret"), &sealed) == OK);
    for (size_t i = 0; i < sealed.n; i++) {
        char was = sealed.p[i];

        sealed.p[i] = was == '0' ? '1' : '0';
        CHECK(open_it(&k, "z", buf_str(&sealed), &out) != OK && out.n == 0);
        buf_fini(&out);
        sealed.p[i] = was;
        CHECK(open_it(&k, "z", str_sub(buf_str(&sealed), 0, i), &out) != OK);
        buf_fini(&out);
    }
    CHECK(open_it(&k, "z", buf_str(&sealed), &out) == OK);
    buf_fini(&out);
    buf_fini(&sealed);
}

TEST(so_much_is_sealed_and_no_more)
{
    static char text[SEAL_PLAIN_MAX + 1];
    struct seal_key k = key_of(KEY);
    struct buf sealed, out;

    memset(text, 'x', sizeof(text));
    buf_init(&sealed, 4 * SEAL_PLAIN_MAX);
    CHECK(seal_close(&k, STR("z"), (struct str){text, SEAL_PLAIN_MAX},
                     &sealed) == OK);
    CHECK(open_it(&k, "z", buf_str(&sealed), &out) == OK);
    CHECK_INT(out.n, SEAL_PLAIN_MAX);
    buf_fini(&out);
    CHECK(seal_close(&k, STR("z"), (struct str){text, sizeof(text)}, &sealed) ==
          ERR_LIMIT);
    buf_fini(&sealed);
}
