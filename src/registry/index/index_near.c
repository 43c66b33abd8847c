/* How near a text is to every agent at once, for routing: every agent that
 * could get the message has a score, even one without a matching word.
 *
 *     profiles   guessed, 64 at a time, in one pass over memory (index_rank.c
 *                does the same)
 *     skills     likewise
 *     words      from the postings: documents without any of them are not read
 *
 * A guess is never below the value it stands for. A caller that looks for the
 * best asks for the exact value of the candidates (index_near_fine), and the
 * result is the same as computing everything. */
#include "registry/index/data.h"

#include <assert.h>

#include "base/fault.h"
#include "registry/index/text.h"

/* The cosine of an agent, from p, that of its profile, and s, that of a skill
 * which is nearer:
 *
 *     cosine = p + part * (s - p)        part = n / (n + 1)
 *
 * n is the number of words of the skill itself, in its name, description, tags
 * and examples. A skill with a description or examples counts nearly in full.
 * A word or two resemble many texts, and the rest of the card says what they
 * mean. docs/architecture.md has what else was measured.
 *
 * The words of the agent are in the documents of its skills too, with less
 * weight; the rest is the skill's own. */
float near_part(const struct text_doc *agent, const struct text_doc *skill)
{
    uint32_t theirs = agent->length / TEXT_OWN * TEXT_AGENT;
    uint32_t own =
        skill->length > theirs ? (skill->length - theirs) / TEXT_OWN : 0;

    return own > 1 ? (float)own / (float)(own + 1) : 0.5F;
}

/* A plain query takes the larger of the two. */
static float near_cosine(const struct index_search *q, float p, float part,
                         float s)
{
    if (q->near_is_plain)
        return s > p ? s : p;
    return near_lean(p, part, s);
}

static const struct index_near NOT_SEEN = {.skill = INDEX_AGENT, .cosine = -1};

static enum err near_search_room(struct index *x)
{
    struct index_search *s = &x->search;
    size_t n = x->agents_end, more = n + n / 4 + 16;

    if (n <= s->near_cap)
        return OK;
    if (!INDEX_GROW(s->near, more) ||
        !INDEX_GROW(s->near_seen, more / 64 + 1) ||
        !INDEX_GROW(s->near_profile, more) || !INDEX_GROW(s->near_fine, more))
        return ERR_NOMEM;
    for (size_t i = 0; i < more; i++)
        s->near[i] = NOT_SEEN;
    memset(s->near_seen, 0, (more / 64 + 1) * sizeof(*s->near_seen));
    s->near_cap = more;
    return OK;
}

/* Rounding of near_cosine, in half a dozen steps. */
static const float ROUNDING = 2e-6F;

/* All agents, by their profiles. */
static void near_guess_profiles(struct index *x)
{
    struct index_search *s = &x->search;
    const struct index_profiles *p = &x->profiles;
    float bounds[64];

    for (size_t i = 0; i < p->n; i += 64) {
        uint64_t wanted = search_sees_aside(s->q) ? profiles_used(p, i)
                                                  : profiles_in_front(p, i);

        if (wanted && s->by_meaning)
            index_vecs_bound_some(&p->vecs, &s->vector, (uint32_t)i, wanted,
                                  bounds);
        for (; wanted; wanted &= wanted - 1) {
            size_t k = (size_t)__builtin_ctzll(wanted);
            struct index_near *near = &s->near[p->agent[i + k]];

            *near = NOT_SEEN;
            near->generic = p->generic[i + k];
            near->level = p->level[i + k].of[level_tier(
                x, (uint32_t)(i + k), s->by_meaning && s->vector.is_quick)];
            if (s->by_meaning && p->has_vector[i + k])
                near->cosine = s->near_profile[p->agent[i + k]] = bounds[k];
        }
    }
}

static void near_guess_doc(struct index *x, uint32_t doc, float bound)
{
    struct index_search *s = &x->search;
    struct doc d = x->docs[doc];
    struct index_near *near = &s->near[d.number];
    float text = s->texts[doc];

    near->is_seen = true;
    s->near_seen[d.number / 64] |= UINT64_C(1) << d.number % 64;
    if (near->text < text)
        near->text = text;
    if (d.skill != INDEX_AGENT && near->cosine >= 0) {
        float most =
            near_cosine(s, s->near_profile[d.number], d.part, bound) + ROUNDING;

        if (near->cosine < most)
            near->cosine = most < 1 ? most : 1;
    }
}

static void near_guess_docs(struct index *x)
{
    struct index_search *s = &x->search;
    float bounds[64] = {0};

    for (size_t i = 0; i < x->n_docs; i += 64) {
        uint64_t seen = s->visible[i / 64];

        if (seen && s->by_meaning)
            index_vecs_bound_some(&x->vectors, &s->vector, (uint32_t)i, seen,
                                  bounds);
        for (; seen; seen &= seen - 1) {
            size_t k = (size_t)__builtin_ctzll(seen);

            near_guess_doc(x, (uint32_t)(i + k), bounds[k]);
        }
    }
}

static enum err near_search_begin(struct index *x, const struct index_query *q,
                                  struct str vector)
{
    struct index_search *s = &x->search;
    enum err e = profiles_judge(x);

    if (!e)
        e = search_see(x, q);
    if (!e)
        e = near_search_room(x);
    if (e)
        return e;
    s->is_open = true;
    s->by_meaning = search_take_packed(x, (const uint8_t *)vector.p, vector.n);
    text_query(x->text, s->q->text, s->seen, x->n_classes, &s->words);
    s->n_touched =
        text_score_all(x->text, &s->words, s->visible, search_sees_aside(s->q),
                       s->texts, s->touched);
    return OK;
}

enum err index_near_guess(struct index *x, const struct index_query *q,
                          struct str vector, const struct index_near **out,
                          size_t *n)
{
    struct index_search *s = &x->search;
    enum err e = near_search_begin(x, q, vector);

    if (e)
        return e;
    s->near_weights = search_weights(q, s->by_meaning);
    s->near_is_plain = q->is_plain;
    /* Clear what the previous requester saw. Agents that are visible now are
     * set from their profile anyway. */
    for (size_t i = 0; s->near_cap && i < s->near_cap / 64 + 1; i++) {
        for (uint64_t bits = s->near_seen[i]; bits; bits &= bits - 1)
            s->near[i * 64 + (size_t)__builtin_ctzll(bits)] = NOT_SEEN;
        s->near_seen[i] = 0;
    }
    near_guess_profiles(x);
    near_guess_docs(x);
    *out = s->near;
    *n = x->agents_end;
    index_search_end(x);
    return OK;
}

static void near_compute(const struct index *x, const struct index_entry *e,
                         struct index_near *near, struct index_fine *fine)
{
    const struct index_search *s = &x->search;
    bool has_vector = s->by_meaning && e->has_vectors;
    size_t n_cards = e->owner == NO_CLASS ? 1 : x->classes[e->owner]->n_public;
    enum query_kind tier =
        level_tier(x, e->slot, s->by_meaning && s->vector.is_quick);
    float best = -1, profile = -1;

    near->skill = INDEX_AGENT;
    near->text = 0;
    if (has_vector)
        profile = index_vecs_likeness(&x->profiles.vecs, &s->vector, e->slot);
    near->cosine = profile;
    *fine = (struct index_fine){.profile = profile,
                                .n_skills = (uint32_t)(e->n_docs - 1),
                                .n_cards = n_cards > 1 ? (uint32_t)n_cards : 1};
    if (x->profiles.common[tier] > 0 &&
        near->level.high > x->profiles.common[tier])
        fine->over = near->level.high - x->profiles.common[tier];
    for (size_t i = 0; i < e->n_docs; i++) {
        uint32_t doc = e->docs[i];
        float text = text_score_one(x->text, &s->words, doc);
        float likeness =
            has_vector ? index_vecs_likeness(&x->vectors, &s->vector, doc) : 0;
        float cosine = near_cosine(s, profile, x->docs[doc].part, likeness);
        float score = weighted_score(s->near_weights, likeness, text);

        if (i && score > best) { /* of equals the earlier in the card */
            best = score;
            near->skill = x->docs[doc].skill;
        }
        if (i == 0)
            fine->own_text = text;
        if (near->text < text)
            near->text = text;
        if (i && has_vector && near->cosine < cosine)
            near->cosine = cosine;
    }
}

const struct index_fine *index_near_fine(struct index *x, uint32_t number)
{
    struct index_near *near = &x->search.near[number];
    struct index_fine *fine = &x->search.near_fine[number];

    assert(!x->search.is_open && number < x->agents_end);
    if (near->is_seen && !near->is_fine) {
        near_compute(x, x->agents[number], near, fine);
        x->stats.refined_total += (int64_t)x->agents[number]->n_docs;
        near->is_fine = true;
    }
    return fine;
}

const uint64_t *index_near_seen(const struct index *x)
{
    return x->search.near_seen;
}

enum err index_near(struct index *x, const struct index_query *q,
                    struct str vector, const struct index_near **out, size_t *n)
{
    enum err e = index_near_guess(x, q, vector, out, n);

    for (uint32_t i = 0; !e && i < *n; i++)
        (void)index_near_fine(x, i);
    return e;
}

enum err index_says(struct index *x, const struct index_query *q,
                    const struct str *words, size_t n, bool *has_word)
{
    struct index_search *s = &x->search;
    enum err e = search_see(x, q);

    for (size_t i = 0; i < n; i++)
        has_word[i] = !e && text_says(x->text, words[i], s->seen, x->n_classes,
                                      q->n_granted ? s->visible : NULL);
    s->q = NULL;
    return e;
}
