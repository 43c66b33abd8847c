#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

/* clock: the time and chance, as things one can hand in.
 *
 * `wall` is Unix time and may jump; `mono` only goes forward and is what waits
 * are measured with. Tests hand in a fake and turn it by hand. */

#include <stddef.h>
#include <stdint.h>

struct clock {
    int64_t (*wall_ms)(void *ctx);
    int64_t (*mono_ms)(void *ctx);
    int64_t (*mono_us)(void *ctx); /* the same clock, for how long work takes */
    void *ctx;
};

struct clock clock_system(void);

struct clock_fake {
    int64_t wall_ms;
    int64_t mono_ms;
    int64_t tick_us; /* that pass with each look at mono_us */
    int64_t ticked_us;
};

/* A clock that shows what f holds. Borrows f. */
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

/* The same numbers every time, fit for tests only. Borrows r. */
struct rand rand_seeded(struct rand_seeded *r);

uint64_t rand_u64(struct rand r);

#endif
