/* How near a text is to every agent at once, for routing: there, everyone who
 * could get a message has a score, and nobody is left out for want of words.
 *
 *     profiles   guessed, 64 at a time, one walk over memory (rank.c does so)
 *     skills     likewise
 *     words      from the postings: who has none of them is not looked at
 *
 * A guess is never less than what it stands for; so whoever looks for the best
 * asks for the fine value of those that may be among them (index_near_fine),
 * and what comes out is what computing everything would give. */
#include "index/data.h"

#include <assert.h>

#include "base/fault.h"
#include "index/text.h"

/* What an agent is as a whole, p, and how much nearer one of its skills is, s:
 *
 *     cosine = p + part * (s - p)        part = n / (n + 1)
 *
 * where n are the words that the skill says itself, in its name, description,
 * tags and examples. One that is described or has examples counts nearly whole;
 * but a word or two are like many texts, and what is meant by them is said by
 * the rest of the card. docs/architecture.md has what else was measured.
 *
 * An agent's own words stand in its skills' documents too, with less weight;
 * what is over is the skill's. */
float near_part(const struct text_doc *agent, const struct text_doc *skill)
{
    uint32_t theirs = agent->length / TEXT_OWN * TEXT_AGENT;
    uint32_t own =
        skill->length > theirs ? (skill->length - theirs) / TEXT_OWN : 0;

    return own > 1 ? (float)own / (float)(own + 1) : 0.5F;
}

/* A plain query wants the larger of the two. */
static float lean(const struct index_search *q, float p, float part, float s)
{
    if (q->near_is_plain)
        return s > p ? s : p;
    return near_lean(p, part, s);
}

static enum err near_room(struct index *x)
{
    struct index_search *s = &x->search;
    size_t n = x->agents_end, more = n + n / 4 + 16;
    void *p;

    if (n <= s->near_cap)
        return OK;
    p = index_grow(s->near, more, sizeof(*s->near));
    if (!p)
        return ERR_NOMEM;
    s->near = p;
    p = index_grow(s->near_profile, more, sizeof(*s->near_profile));
    if (!p)
        return ERR_NOMEM;
    s->near_profile = p;
    p = index_grow(s->near_fine, more, sizeof(*s->near_fine));
    if (!p)
        return ERR_NOMEM;
    s->near_fine = p;
    s->near_cap = more;
    return OK;
}

/* Of that and what it stands for in half a dozen steps. */
static const float ROUNDING = 2e-6F;

/* Everyone, by what they are as a whole. */
static void guess_profiles(struct index *x)
{
    struct index_search *s = &x->search;
    const struct index_profiles *p = &x->profiles;
    float bounds[64];

    for (size_t i = 0; i < x->agents_end; i++)
        s->near[i] = (struct index_near){.skill = INDEX_AGENT, .cosine = -1};
    for (size_t i = 0; i < p->n; i += 64) {
        size_t n = p->n - i < 64 ? p->n - i : 64;

        if (s->by_meaning)
            index_vecs_bound_64(&p->vecs, &s->vector, (uint32_t)i, bounds);
        for (size_t k = 0; k < n; k++) {
            struct index_near *near;

            if (p->agent[i + k] == NO_AGENT)
                continue;
            near = &s->near[p->agent[i + k]];
            near->generic = p->generic[i + k];
            near->level = p->level[i + k].of[level_tier(
                x, (uint32_t)(i + k), s->by_meaning && s->vector.is_quick)];
            if (s->by_meaning && p->has_vector[i + k])
                near->cosine = s->near_profile[p->agent[i + k]] = bounds[k];
        }
    }
}

static void guess_doc(struct index *x, uint32_t doc, float bound)
{
    struct index_search *s = &x->search;
    struct doc d = x->docs[doc];
    struct index_near *near = &s->near[d.number];
    float text = s->texts[doc];

    near->is_seen = true;
    if (near->text < text)
        near->text = text;
    if (d.skill != INDEX_AGENT && near->cosine >= 0) {
        float most =
            lean(s, s->near_profile[d.number], d.part, bound) + ROUNDING;

        if (near->cosine < most)
            near->cosine = most < 1 ? most : 1;
    }
}

static void guess_docs(struct index *x)
{
    struct index_search *s = &x->search;
    float bounds[64] = {0};

    for (size_t i = 0; i < x->n_docs; i += 64) {
        uint64_t seen = s->visible[i / 64];

        if (seen && s->by_meaning)
            index_vecs_bound_64(&x->vectors, &s->vector, (uint32_t)i, bounds);
        for (; seen; seen &= seen - 1) {
            size_t k = (size_t)__builtin_ctzll(seen);

            guess_doc(x, (uint32_t)(i + k), bounds[k]);
        }
    }
}

/* The words, from then on in s->texts. */
static void look_for_words(struct index *x)
{
    struct index_search *s = &x->search;

    text_query(x->text, s->q->text, s->seen, x->n_classes, &s->words);
    s->n_touched =
        text_score_all(x->text, &s->words, s->visible, s->texts, s->touched);
}

static enum err near_begin(struct index *x, const struct index_query *q,
                           struct str vector)
{
    struct index_search *s = &x->search;
    enum err e = profiles_judge(x);

    if (!e)
        e = search_see(x, q);
    if (!e)
        e = near_room(x);
    if (e)
        return e;
    s->is_open = true;
    s->by_meaning = search_take_packed(x, (const uint8_t *)vector.p, vector.n);
    look_for_words(x);
    return OK;
}

enum err index_near_guess(struct index *x, const struct index_query *q,
                          struct str vector, const struct index_near **out,
                          size_t *n)
{
    enum err e = near_begin(x, q, vector);

    if (e)
        return e;
    x->search.near_weights = search_weights(q, x->search.by_meaning);
    x->search.near_is_plain = q->is_plain;
    guess_profiles(x);
    guess_docs(x);
    *out = x->search.near;
    *n = x->agents_end;
    index_search_end(x);
    return OK;
}

static void look_finely(const struct index *x, const struct index_entry *e,
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
        float cosine = lean(s, profile, x->docs[doc].part, likeness);
        float score = score_of(s->near_weights, likeness, text);

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
        look_finely(x, x->agents[number], near, fine);
        x->stats.refined_total += (int64_t)x->agents[number]->n_docs;
    }
    near->is_fine = true;
    return fine;
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
                    const struct str *words, size_t n, bool *is_said)
{
    struct index_search *s = &x->search;
    enum err e = search_see(x, q);

    for (size_t i = 0; i < n; i++)
        is_said[i] = !e && text_says(x->text, words[i], s->seen, x->n_classes,
                                     q->n_granted ? s->visible : NULL);
    s->q = NULL;
    return e;
}
