/* The card that is closest to another one, for warnings.
 *
 * The index guesses how near every profile is, never too little, in one walk;
 * only those that could be close enough are then compared profile by profile.
 * Visibility is applied before anything is compared: an agent that the
 * requester does not see is not there. */
#include "registry/internal.h"

#include "base/vec.h"
#include "model/advice.h"

enum { PROFILE_BYTES_MAX = 64 * 1024 };

static bool may_be_named(const struct entry *e, const struct entry *self,
                         const struct eyes *eyes)
{
    return e && e != self && !e->is_unroutable &&
           agent_is_visible(&e->agent, eyes);
}

static const struct agent *same_description(const struct registry *r,
                                            const struct entry *self,
                                            const struct eyes *eyes)
{
    for (size_t i = 0; i < r->n; i++)
        if (advice_is_same_description(r->list[i], &self->agent) &&
            may_be_named(entry_of(r->list[i]), self, eyes))
            return r->list[i];
    return NULL;
}

/* The cosine of both profiles; below zero: one of them has none. */
static double likeness_of(const struct registry *r, struct str mine,
                          uint32_t number)
{
    uint32_t dims = index_dims(r->index);
    struct vec_packed a, b;
    double cosine = -1;
    struct buf other;

    buf_init(&other, PROFILE_BYTES_MAX);
    if (index_profile(r->index, number, &other) &&
        vec_packed_open(&a, (const uint8_t *)mine.p, mine.n, dims) &&
        vec_packed_open(&b, (const uint8_t *)other.p, other.n, dims))
        cosine = vec_likeness(&a, &b, index_quick(r->index));
    buf_fini(&other);
    return cosine;
}

static const struct agent *by_profile(struct registry *r,
                                      const struct entry *self,
                                      const struct eyes *eyes, double least,
                                      double *likeness)
{
    struct registry_near_query q = {.eyes = *eyes, .text = STR("")};
    const struct index_near *near;
    const struct agent *best = NULL;
    struct buf mine;
    size_t n = 0;

    buf_init(&mine, PROFILE_BYTES_MAX);
    if (index_profile(r->index, self->number, &mine)) {
        q.vector = buf_str(&mine);
        if (ranked_near(r, &q, &near, &n) != OK)
            n = 0;
    }
    for (uint32_t i = 0; i < n && i < r->n_numbers; i++) {
        double cosine;

        if (!near[i].is_seen || (double)near[i].cosine < least ||
            !may_be_named(r->by_number[i], self, eyes))
            continue;
        cosine = likeness_of(r, q.vector, i);
        if (cosine < least || (best && cosine <= *likeness))
            continue;
        best = &r->by_number[i]->agent;
        *likeness = cosine;
    }
    buf_fini(&mine);
    return best;
}

const struct agent *registry_closest(struct registry *r, const struct agent *a,
                                     const struct eyes *eyes, double *likeness)
{
    bool is_http =
        r->opts.embed && embed_stats(r->opts.embed).kind == EMBED_HTTP;
    double least = is_http ? ADVICE_CLOSE_HTTP : ADVICE_CLOSE;
    const struct entry *self = entry_find(r, a->name);
    const struct agent *found;

    *likeness = 0;
    if (!self || self->is_unroutable)
        return NULL;
    found = same_description(r, self, eyes);
    return found ? found : by_profile(r, self, eyes, least, likeness);
}
