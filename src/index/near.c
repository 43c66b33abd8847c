/* How near a text is to every agent at once, for routing: there, everyone who
 * could get a message has a score, and nobody is left out for want of words.
 *
 *     profiles   all of them finely, 64 at a time, one walk over memory
 *     skills     guessed (rank.c does the same); finely only those that may be
 *                nearer than their agent's profile and the skills before
 *     words      from the postings: who has none of them is not looked at
 *
 * So what it costs is a walk over the vectors, and what comes out is what
 * computing everything finely would give: index_near_slow. */
#include "index/data.h"

#include "base/fault.h"

/* What the likeness to one skill is worth beside that to the whole: whoever has
 * one skill that fits is not passed over, but a word or two of a skill are like
 * many texts. (Own set of test/quality, 30 agents of four skills: first places
 * with 1, 0.9, 0.8, 0.7, 0.6 and 0: 47.0, 48.4, 50.0, 51.4, 51.0, 51.2 %.) */
#define SKILL_PART 0.7F

static float of_skill(const struct index *x, uint32_t doc)
{
    return SKILL_PART *
           index_vecs_likeness(&x->vectors, &x->search.vector, doc);
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
    p = index_grow(s->near_best, more, sizeof(*s->near_best));
    if (!p)
        return ERR_NOMEM;
    s->near_best = p;
    s->near_cap = more;
    return OK;
}

static bool is_visible(const struct index_search *s, uint32_t doc)
{
    return s->visible[doc / 64] >> doc % 64 & 1;
}

/* Everyone, by what they are as a whole. */
static void look_at_profiles(struct index *x)
{
    struct index_search *s = &x->search;
    const struct index_profiles *p = &x->profiles;
    float likeness[64];

    for (size_t i = 0; i < x->agents_end; i++)
        s->near[i] = (struct index_near){.skill = INDEX_AGENT, .cosine = -1};
    for (size_t i = 0; i < p->n; i += 64) {
        size_t n = p->n - i < 64 ? p->n - i : 64;

        if (s->by_meaning)
            index_vecs_likeness_64(&p->vecs, &s->vector, (uint32_t)i, likeness);
        for (size_t k = 0; k < n; k++) {
            uint32_t number = p->agent[i + k];
            const struct index_entry *e =
                number == NO_AGENT ? NULL : x->agents[number];

            if (!e || !is_visible(s, e->docs[0]))
                continue;
            s->near[number].is_seen = true;
            s->near[number].generic = p->generic[i + k];
            if (s->by_meaning && e->has_vectors)
                s->near[number].cosine = likeness[k];
        }
    }
}

/* Which document is the best goes by the guess: it names a skill, and is no
 * figure. Of equals the earlier in the card, the agent itself last. */
static void weigh(struct index *x, uint32_t doc, float bound, struct weights w)
{
    struct index_search *s = &x->search;
    struct doc d = x->docs[doc];
    struct index_near *near = &s->near[d.number];
    float score = score_of(w, bound, s->texts[doc]);
    float best = s->near_best[d.number];

    if (score > best || (score >= best && score > 0 && d.skill < near->skill)) {
        s->near_best[d.number] = score;
        near->skill = d.skill;
    }
    if (near->text < s->texts[doc])
        near->text = s->texts[doc];
    if (d.skill != INDEX_AGENT && SKILL_PART * bound > near->cosine &&
        bound > 0) {
        float fine = of_skill(x, doc);

        if (fine > near->cosine)
            near->cosine = fine;
    }
}

static void look_at_docs(struct index *x)
{
    struct index_search *s = &x->search;
    const struct weights w = search_weights(s->q, s->by_meaning);
    float bounds[64] = {0};

    for (size_t i = 0; i < x->agents_end; i++)
        s->near_best[i] = 0;
    for (size_t i = 0; i < x->n_docs; i += 64) {
        uint64_t seen = s->visible[i / 64];

        if (seen && s->by_meaning)
            index_vecs_bound_64(&x->vectors, &s->vector, (uint32_t)i, bounds);
        for (; seen; seen &= seen - 1) {
            size_t k = (size_t)__builtin_ctzll(seen);

            weigh(x, (uint32_t)(i + k), bounds[k], w);
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

enum err index_near(struct index *x, const struct index_query *q,
                    struct str vector, const struct index_near **out, size_t *n)
{
    enum err e = near_begin(x, q, vector);

    if (e)
        return e;
    look_at_profiles(x);
    look_at_docs(x);
    *out = x->search.near;
    *n = x->agents_end;
    index_search_end(x);
    return OK;
}

/* Plainly, agent by agent. */

static void look_slowly(struct index *x, const struct index_entry *e,
                        struct index_near *out)
{
    struct index_search *s = &x->search;

    *out = (struct index_near){.skill = INDEX_AGENT, .cosine = -1};
    out->is_seen = is_visible(s, e->docs[0]);
    if (!out->is_seen)
        return;
    out->generic = x->profiles.generic[e->slot];
    if (s->by_meaning && e->has_vectors)
        out->cosine =
            index_vecs_likeness(&x->profiles.vecs, &s->vector, e->slot);
    for (size_t i = 0; i < e->n_docs; i++) {
        uint32_t doc = e->docs[i];
        float text = text_score_one(x->text, &s->words, doc);
        float fine = i && out->cosine >= 0 ? of_skill(x, doc) : -1;

        out->cosine = fine > out->cosine ? fine : out->cosine;
        out->text = text > out->text ? text : out->text;
    }
}

enum err index_near_slow(struct index *x, const struct index_query *q,
                         struct str vector, struct index_near *out, size_t max)
{
    enum err e = near_begin(x, q, vector);

    if (e)
        return e;
    for (size_t i = 0; i < x->agents_end && i < max; i++) {
        out[i] = (struct index_near){.skill = INDEX_AGENT, .cosine = -1};
        if (x->agents[i])
            look_slowly(x, x->agents[i], &out[i]);
    }
    index_search_end(x);
    return OK;
}
