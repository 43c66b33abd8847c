#include "net/child/internal.h"

#include "base/clock.h"
#include "base/fault.h"
#include "test/t.h"

static struct str text_of(const struct tail *t, struct buf *b)
{
    buf_fini(b);
    buf_init(b, t->n * 3);
    tail_text(t, b);
    return buf_str(b);
}

/* Against a plain copy of everything that ever came. */
TEST(the_last_bytes_are_kept_however_they_come)
{
    static char all[20000];
    struct rand_seeded seed = {7};
    struct rand r = rand_seeded(&seed);

    for (size_t cap = 0; cap < 40; cap++) {
        struct tail t;
        struct buf b;
        size_t n = 0;

        buf_init(&b, 0);
        tail_init(&t, cap);
        for (int i = 0; i < 100; i++) {
            size_t more = rand_u64(r) % 60, kept;
            struct str s;

            for (size_t k = 0; k < more; k++)
                all[n + k] = (char)('a' + rand_u64(r) % 26);
            tail_add(&t, all + n, more);
            n += more;
            kept = n < cap ? n : cap;
            s = text_of(&t, &b);
            CHECK(s.n == kept);
            CHECK(kept == 0 || memcmp(s.p, all + n - kept, kept) == 0);
        }
        tail_fini(&t);
        buf_fini(&b);
    }
}

TEST(what_is_not_utf8_is_replaced)
{
    static const struct {
        struct str in;
        const char *out;
    } cases[] = {
        {STR("plain"), "plain"},
        {STR("\xe2\x82\xac \xf0\x9f\x98\x80"), "\xe2\x82\xac \xf0\x9f\x98\x80"},
        {STR("a\xff"), "a\xef\xbf\xbd"},
        {STR("\x80 at the front"), "\xef\xbf\xbd at the front"},
        {STR("cut \xe2\x82"), "cut \xef\xbf\xbd\xef\xbf\xbd"},
        {STR("\xc0\xaf"), "\xef\xbf\xbd\xef\xbf\xbd"},
        {STR("\xed\xa0\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tail t;
        struct buf b;

        buf_init(&b, 0);
        tail_init(&t, 100);
        tail_add(&t, cases[i].in.p, cases[i].in.n);
        CHECK_STR(text_of(&t, &b), cases[i].out);
        tail_fini(&t);
        buf_fini(&b);
    }
}

TEST(a_character_cut_in_two_by_the_limit_is_left_out)
{
    struct tail t;
    struct buf b;

    buf_init(&b, 0);
    for (size_t cap = 1; cap <= 8; cap++) {
        tail_init(&t, cap);
        tail_add(&t, "\xf0\x9f\x98\x80\xf0\x9f\x98\x80", 8);
        CHECK_INT(text_of(&t, &b).n, cap / 4 * 4);
        tail_fini(&t);
    }
    buf_fini(&b);
}
