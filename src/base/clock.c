#include "base/clock.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

static int64_t read_ms(clockid_t which)
{
    struct timespec t;

    clock_gettime(which, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int64_t system_wall(void *ctx)
{
    (void)ctx;
    return read_ms(CLOCK_REALTIME);
}

static int64_t system_mono(void *ctx)
{
    (void)ctx;
    return read_ms(CLOCK_MONOTONIC);
}

static int64_t system_mono_us(void *ctx)
{
    struct timespec t;

    (void)ctx;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

struct clock clock_system(void)
{
    return (struct clock){system_wall, system_mono, system_mono_us, NULL};
}

static int64_t fake_wall(void *ctx)
{
    return ((struct clock_fake *)ctx)->wall_ms;
}

static int64_t fake_mono(void *ctx)
{
    return ((struct clock_fake *)ctx)->mono_ms;
}

static int64_t fake_mono_us(void *ctx)
{
    struct clock_fake *f = ctx;

    f->ticked_us += f->tick_us;
    return f->mono_ms * 1000 + f->ticked_us;
}

struct clock clock_fake(struct clock_fake *f)
{
    return (struct clock){fake_wall, fake_mono, fake_mono_us, f};
}

static void system_fill(void *ctx, void *p, size_t n)
{
    (void)ctx;
    while (n) {
        ssize_t got = getrandom(p, n, 0);

        if (got < 0) {
            assert(errno == EINTR);
            continue;
        }
        p = (char *)p + got;
        n -= (size_t)got;
    }
}

struct rand rand_system(void)
{
    return (struct rand){system_fill, NULL};
}

/* splitmix64: tests need no more, and no seed can spoil its state. */
static void seeded_fill(void *ctx, void *p, size_t n)
{
    struct rand_seeded *r = ctx;

    while (n) {
        uint64_t z = (r->state += 0x9e3779b97f4a7c15);
        size_t part = n < sizeof(z) ? n : sizeof(z);

        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        z ^= z >> 31;
        memcpy(p, &z, part);
        p = (char *)p + part;
        n -= part;
    }
}

struct rand rand_seeded(struct rand_seeded *r)
{
    return (struct rand){seeded_fill, r};
}

uint64_t rand_u64(struct rand r)
{
    uint64_t v;

    r.fill(r.ctx, &v, sizeof(v));
    return v;
}

int64_t rand_backoff_ms(struct rand r, int n_failures, int64_t from_ms,
                        int64_t to_ms)
{
    int64_t ms = from_ms;

    for (int i = 1; i < n_failures && ms < to_ms; i++)
        ms *= 2;
    ms = ms < to_ms ? ms : to_ms;
    return ms < 5 ? ms : ms + (int64_t)(rand_u64(r) % (uint64_t)(ms / 5));
}
