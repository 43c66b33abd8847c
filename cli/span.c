/* One table of units for reading and writing. It has no months and years,
 * because their length varies. */
#include "cli/span.h"

#include <inttypes.h>
#include <stdio.h>

static const struct {
    char letter;
    int64_t ms;
} units[] = {
    {'w', 7 * 24 * 3600 * 1000LL},
    {'d', 24 * 3600 * 1000LL},
    {'h', 3600 * 1000LL},
    {'m', 60 * 1000LL},
    {'s', 1000LL},
};

enum { N_UNITS = sizeof(units) / sizeof(units[0]), DIGITS_MAX = 4 };

enum err span_read(struct str text, int64_t *out_ms)
{
    int64_t n;

    if (text.n < 2 || text.n > DIGITS_MAX + 1 ||
        str_to_i64(str_sub(text, 0, text.n - 1), &n) || n < 1)
        return ERR_SYNTAX;
    for (size_t i = 0; i < N_UNITS; i++)
        if (units[i].letter == text.p[text.n - 1]) {
            *out_ms = n * units[i].ms;
            return OK;
        }
    return ERR_SYNTAX;
}

static struct span_text write_rounded(int64_t ms, bool is_up)
{
    struct span_text out = {"0s"};

    /* "30d" is easier to compare with the user's input than "4w". */
    for (size_t i = 1; i < N_UNITS; i++)
        if (ms >= units[i].ms) {
            int64_t more = is_up && ms % units[i].ms;

            snprintf(out.text, sizeof(out.text), "%" PRId64 "%c",
                     ms / units[i].ms + more, units[i].letter);
            return out;
        }
    return out;
}

struct span_text span_write(int64_t ms)
{
    return write_rounded(ms, false);
}

struct span_text span_left(int64_t ms)
{
    return write_rounded(ms, true);
}
