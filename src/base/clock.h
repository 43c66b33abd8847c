#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

/* clock: time and randomness as arguments.
 *
 * `wall` is Unix time and may jump; `mono` never goes back and measures waits.
 * Tests pass a fake and advance it by hand. */

#include <stddef.h>
#include <stdint.h>

struct clock {
    int64_t (*wall_ms)(void *ctx);
    int64_t (*mono_ms)(void *ctx);
    int64_t (*mono_us)(
        void *ctx); /* the same clock, to measure the duration of work */
    void *ctx;
};

struct clock clock_system(void);

struct clock_fake {
    int64_t wall_ms;
    int64_t mono_ms;
    int64_t tick_us; /* added by every reading of mono_us */
    int64_t ticked_us;
};

/* A clock that shows the values of f. Borrows f. */
struct clock clock_fake(struct clock_fake *f);

struct rand {
    void (*fill)(void *ctx, void *p, size_t n);
    void *ctx;
};

/* The kernel's randomness, fit for tokens. */
struct rand rand_system(void);

struct rand_seeded {
    uint64_t state;
};

/* The same sequence every time, for tests only. Borrows r. */
struct rand rand_seeded(struct rand_seeded *r);

uint64_t rand_u64(struct rand r);

/* The pause before another attempt: from_ms after the first failure, doubled
 * with each further one up to to_ms, and up to a fifth more at random. */
int64_t rand_backoff_ms(struct rand r, int n_failures, int64_t from_ms,
                        int64_t to_ms);

#endif
