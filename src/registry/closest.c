/* The card closest to another one, for warnings.
 *
 * The index guesses the similarity of every profile, never too low, in one
 * pass; only candidates are then compared profile by profile. Visibility is
 * applied first: an agent that the requester cannot see is never named. */
#include "registry/internal.h"

#include "base/vec.h"
#include "model/advice.h"

enum { PROFILE_BYTES_MAX = 64 * 1024 };

static bool closest_may_name(const struct entry *e, const struct entry *self,
                             const struct eyes *eyes)
{
    return e && e != self && !e->is_unroutable &&
           agent_is_visible(&e->agent, eyes);
}

static const struct agent *closest_same_description(const struct registry *r,
                                                    const struct entry *self,
                                                    const struct eyes *eyes)
{
    for (size_t i = 0; i < r->n; i++)
        if (advice_is_same_description(r->list[i], &self->agent) &&
            closest_may_name(agent_entry(r->list[i]), self, eyes))
            return r->list[i];
    return NULL;
}

/* The cosine of both profiles; negative: one of them has none. */
static double closest_likeness(const struct registry *r, struct str mine,
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

static const struct agent *closest_by_profile(struct registry *r,
                                              const struct entry *self,
                                              const struct eyes *eyes,
                                              double least, double *likeness)
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
            !closest_may_name(r->by_number[i], self, eyes))
            continue;
        cosine = closest_likeness(r, q.vector, i);
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
    found = closest_same_description(r, self, eyes);
    return found ? found : closest_by_profile(r, self, eyes, least, likeness);
}
