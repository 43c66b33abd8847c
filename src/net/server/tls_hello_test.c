/* What a client's handshake announces, whole and in crumbs. */
#include "test/t.h"
#include "net/server/internal.h"

/* A message of n bytes in records of `each`, from its header on. */
static size_t put_message(char *to, int type, size_t n, size_t each)
{
    size_t at = 0, n_all = n + 4, out = 0;

    while (at < n_all) {
        size_t len = n_all - at < each ? n_all - at : each;

        memcpy(to + out, "\x16\x03\x01", 3);
        to[out + 3] = (char)(len >> 8);
        to[out + 4] = (char)len;
        for (size_t i = 0; i < len; i++, at++) {
            size_t head[] = {(size_t)type, n >> 16, n >> 8, n};

            to[out + 5 + i] = at < 4 ? (char)head[at] : (char)0xff;
        }
        out += 5 + len;
    }
    return out;
}

/* Where it was refused, in pieces of `step`; n: nowhere. */
static size_t follow(struct tls_hello *h, const char *p, size_t n, size_t step)
{
    for (size_t at = 0; at < n; at += step)
        if (!tls_hello_is_short(h, p + at, n - at < step ? n - at : step))
            return at;
    return n;
}

static const size_t sizes[] = {1, 2, 3, 4, 5, 7, 100, 16384};
enum { N_SIZES = sizeof(sizes) / sizeof(*sizes) };

TEST(a_hello_at_the_limit_is_fine_and_one_beyond_is_not)
{
    static char text[16 * TLS_HELLO_BYTES];

    for (size_t each = 0; each < N_SIZES; each++)
        for (size_t step = 0; step < N_SIZES; step++) {
            struct tls_hello h = {0};
            size_t n = put_message(text, 1, TLS_HELLO_BYTES, sizes[each]);
            size_t crumbs = (4 + sizes[each] - 1) / sizes[each];

            CHECK(follow(&h, text, n, sizes[step]) == n);
            CHECK(follow(&h, text, n, sizes[step]) == n); /* and another */
            h = (struct tls_hello){0};
            n = put_message(text, 1, TLS_HELLO_BYTES + 1, sizes[each]);
            CHECK(follow(&h, text, n, sizes[step]) < crumbs * 5 + 4);
        }
}

TEST(a_second_hello_is_followed_too)
{
    static char text[16 * TLS_HELLO_BYTES];
    static const char between[] = "\x14\x03\x03\x00\x01\x01"
                                  "\x17\x03\x03\x00\x05\x01\x7f\xff\xff\xff";

    for (size_t each = 0; each < N_SIZES; each++)
        for (size_t step = 0; step < N_SIZES; step++) {
            struct tls_hello h = {0};
            size_t first = put_message(text, 1, 300, sizes[each]), n = first;

            memcpy(text + n, between, sizeof(between) - 1);
            n += sizeof(between) - 1;
            CHECK(follow(&h, text, n, sizes[step]) == n);
            n += put_message(text + n, 1, 127 * 1024, sizes[each] | 64);
            h = (struct tls_hello){0};
            CHECK(follow(&h, text, n, sizes[step]) < n);
        }
}

TEST(messages_in_one_record_are_told_apart)
{
    char text[] = "\x16\x03\x03\x00\x0f"
                  "\x01\x00\x00\x02zz"
                  "\x00\x00\x00\x00"
                  "\x01\x00\x00\x01z";
    struct tls_hello h = {0};

    CHECK(follow(&h, text, sizeof(text) - 1, 1) == sizeof(text) - 1);
    CHECK(h.n_record_head == 0 && h.n_message_head == 0);
    text[16] = 1; /* the length of the last */
    h = (struct tls_hello){0};
    CHECK(follow(&h, text, sizeof(text) - 1, 1) < sizeof(text) - 1);
}

TEST(what_is_no_handshake_announces_nothing)
{
    struct tls_hello h = {0};
    const char get[] = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    char zero[64] = "\x16\x03\x01"; /* and then an empty record, and others */

    CHECK(follow(&h, get, sizeof(get) - 1, 3) == sizeof(get) - 1);
    h = (struct tls_hello){0};
    CHECK(follow(&h, zero, sizeof(zero), 64) == sizeof(zero));
}
