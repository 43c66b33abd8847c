#include "base/id.h"

#include <assert.h>

static const char alphabet[] = "0123456789abcdefghjkmnpqrstvwxyz";

void id_maker_init(struct id_maker *m, struct rand rand)
{
    *m = (struct id_maker){.rand = rand, .last_ms = -1};
}

static struct id id_write(const char *prefix, int64_t at_ms,
                          const uint8_t chance[10])
{
    struct id id;
    uint8_t raw[16];
    size_t n = strlen(prefix);
    char *to;

    assert(n <= ID_PREFIX_MAX && at_ms >= 0);
    for (int i = 0; i < 6; i++)
        raw[i] = (uint8_t)(at_ms >> (8 * (5 - i)));
    memcpy(raw + 6, chance, 10);

    memcpy(id.text, prefix, n);
    id.text[n] = '_';
    to = id.text + n + 1;
    /* 128 bits in 26 characters of 5: two zero bits come first. */
    for (int i = 0; i < ID_ULID_CHARS; i++) {
        int bit = i * 5 - 2;
        unsigned v = 0;

        for (int k = 0; k < 5; k++) {
            int b = bit + k;

            v = v << 1 | (b < 0 ? 0 : raw[b / 8] >> (7 - b % 8) & 1u);
        }
        to[i] = alphabet[v];
    }
    to[ID_ULID_CHARS] = '\0';
    return id;
}

struct id id_make(struct id_maker *m, const char *prefix, int64_t now_ms)
{
    if (now_ms > m->last_ms) {
        m->last_ms = now_ms;
        m->rand.fill(m->rand.ctx, m->last, sizeof(m->last));
        m->last[0] &= 0x7f;
    } else {
        /* Add one. The top bit starts clear, so the bits overflow after at
         * least 2^79 ids within one millisecond. */
        for (int i = 9; i >= 0 && ++m->last[i] == 0; i--)
            ;
    }
    return id_write(prefix, m->last_ms, m->last);
}

struct id id_first(const char *prefix, int64_t at_ms)
{
    static const uint8_t none[10];
    int64_t last_ms = (INT64_C(1) << 48) - 1;

    return id_write(prefix, at_ms < last_ms ? at_ms : last_ms, none);
}

bool id_is_valid(struct str s, const char *prefix)
{
    size_t n = strlen(prefix);

    if (s.n != n + 1 + ID_ULID_CHARS || memcmp(s.p, prefix, n) != 0 ||
        s.p[n] != '_' || s.p[n + 1] > '7')
        return false;
    for (size_t i = n + 1; i < s.n; i++)
        if (!s.p[i] || !strchr(alphabet, s.p[i]))
            return false;
    return true;
}

struct id id_from(struct str s)
{
    struct id id = {""};

    if (s.n < sizeof(id.text) && s.n)
        memcpy(id.text, s.p, s.n);
    return id;
}

int64_t id_time_ms(const struct id *id)
{
    const char *at = strchr(id->text, '_');
    int64_t ms = 0;

    if (!at || strlen(at + 1) != ID_ULID_CHARS)
        return 0;
    for (int i = 1; i <= 10; i++) { /* 50 bits, the first two zero */
        const char *digit = strchr(alphabet, at[i]);

        if (!digit || (i == 1 && digit - alphabet > 7))
            return 0;
        ms = ms << 5 | (digit - alphabet);
    }
    return ms;
}
