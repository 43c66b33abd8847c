/* How fast one user may register: counted in documents, one for each skill and
 * one for the agent.
 *
 * A card of 256 skills takes the loop two to three milliseconds: its words, its
 * quick vectors, its level, and those of the card it replaces. Two users who
 * kept changing such cards, far below rate.perUser, left others a tenth of the
 * loop. The limits of holding.c do not prevent that, because what they hold
 * stays the same.
 *
 * Cards rejected for another reason count too, because they were read. An
 * unchanged card costs a quarter, so that agents may register themselves with
 * each connection. */
#include "base/fault.h"
#include "registry/internal.h"

enum {
    USERS_MAX = 32 * 1024, /* users with a non-full bucket at the same time */
    AT_ONCE = 2,           /* minutes */
    SAME_COSTS = 4,        /* one part in so many */
};

void pace_open(struct registry *r)
{
    r->paces = rates_new(USERS_MAX, r->opts.seed);
}

void pace_close(struct registry *r)
{
    rates_free(r->paces);
}

/* The caller, if the limit applies, else NULL. */
static const struct caller *pace_limited_caller(const struct registry *r,
                                                const struct registry_by *by)
{
    return by->caller && !caller_is_admin(by->caller) &&
                   r->opts.limits.skills_per_minute &&
                   !PLANTED("registry.no_pace")
               ? by->caller
               : NULL;
}

enum err pace_take(struct registry *r, const struct registry_by *by,
                   size_t n_skills, struct why *why)
{
    int64_t per_minute = (int64_t)r->opts.limits.skills_per_minute, wait_ms;
    struct rate_limit limit = {per_minute, AT_ONCE * per_minute};
    const struct caller *caller = pace_limited_caller(r, by);

    if (!caller)
        return OK;
    wait_ms = rates_take_many(r->paces, caller_name(caller),
                              (int64_t)n_skills + 1, &limit, by->now_ms);
    if (!wait_ms)
        return OK;
    return why_err(why, ERR_RATE_LIMITED,
                   "one user may register %lld agents and skills a minute "
                   "(registry.skillsPerMinute); try again in %lld s",
                   (long long)per_minute, (long long)wait_ms / 1000 + 1);
}

void pace_was_same(struct registry *r, const struct registry_by *by,
                   size_t n_skills)
{
    const struct caller *caller = pace_limited_caller(r, by);
    size_t n = n_skills + 1;

    if (caller)
        rates_give_back_many(r->paces, caller_name(caller),
                             (int64_t)(n - (n + SAME_COSTS - 1) / SAME_COSTS));
}
