#ifndef BASE_ID_H
#define BASE_ID_H

/* id: names for records, `task_01j…`: a prefix and a ULID in lower case.
 *
 * 48 bits of time and 80 of chance, in Crockford's base 32. Ids made by one
 * maker within one millisecond count up, so they sort in the order they were
 * made, also when the clock goes backwards. */

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

/* No id of that prefix that was made then or later sorts before it. */
struct id id_first(const char *prefix, int64_t at_ms);

/* Whether s is such an id with that prefix; nothing about whether it exists. */
bool id_is_valid(struct str s, const char *prefix);

/* When it was made, Unix milliseconds, whatever its prefix; zero: it is none.
 * Of those that one maker makes the later is never earlier. */
int64_t id_time_ms(const struct id *id);

/* From where it was kept; what cannot be one is empty. */
struct id id_from(struct str s);

#endif
