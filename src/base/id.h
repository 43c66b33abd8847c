#ifndef BASE_ID_H
#define BASE_ID_H

/* id: names for records, `task_01j…`: a prefix and a ULID in lower case.
 *
 * 48 bits of time and 80 random bits in Crockford's base 32. Ids that one maker
 * makes within one millisecond count up, so ids sort in the order in which they
 * were made, even if the clock goes back. */

#include "base/clock.h"
#include "base/str.h"

enum {
    ID_ULID_CHARS = 26,
    ID_PREFIX_MAX = 8, /* "task", without the underscore */
    ID_BYTES = ID_PREFIX_MAX + 1 + ID_ULID_CHARS + 1,
};

struct id {
    char text[ID_BYTES]; /* NUL-terminated */
};

struct id_maker {
    struct rand rand;
    int64_t last_ms;
    uint8_t last[10];
};

void id_maker_init(struct id_maker *m, struct rand rand);
struct id id_make(struct id_maker *m, const char *prefix, int64_t now_ms);

/* A lower bound: every id with that prefix made at at_ms or later sorts after
 * it. */
struct id id_first(const char *prefix, int64_t at_ms);

/* Whether s has the form of an id with that prefix. It need not exist. */
bool id_is_valid(struct str s, const char *prefix);

/* The creation time in Unix milliseconds, for any prefix; zero if it is not an
 * id. Times of ids from one maker never decrease. */
int64_t id_time_ms(const struct id *id);

/* An id from its stored text; empty if the text is too long. */
struct id id_from(struct str s);

#endif
