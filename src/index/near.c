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

/* Never less where s is more, also in floats: so a bound of s gives one. */
static float lean(float p, float part, float s)
{
    return s > p ? p + part * (s - p) : p;
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
    p = index_grow(s->near_work, more, sizeof(*s->near_work));
    if (!p)
        return ERR_NOMEM;
    s->near_work = p;
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

    for (size_t i = 0; i < x->agents_end; i++) {
        s->near[i] = (struct index_near){.skill = INDEX_AGENT, .cosine = -1};
        s->near_work[i] = (struct near_work){.profile = -1};
    }
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
                s->near[number].cosine = s->near_work[number].profile =
                    likeness[k];
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
    struct near_work *work = &s->near_work[d.number];
    float score = score_of(w, bound, s->texts[doc]);

    if (score > work->best ||
        (score >= work->best && score > 0 && d.skill < near->skill)) {
        work->best = score;
        near->skill = d.skill;
    }
    if (near->text < s->texts[doc])
        near->text = s->texts[doc];
    if (d.skill != INDEX_AGENT && work->profile >= 0 &&
        lean(work->profile, d.part, bound) > near->cosine) {
        float fine = lean(work->profile, d.part,
                          index_vecs_likeness(&x->vectors, &s->vector, doc));

        if (fine > near->cosine)
            near->cosine = fine;
    }
}

static void look_at_docs(struct index *x)
{
    struct index_search *s = &x->search;
    const struct weights w = search_weights(s->q, s->by_meaning);
    float bounds[64] = {0};

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
    float profile = -1;

    *out = (struct index_near){.skill = INDEX_AGENT, .cosine = -1};
    out->is_seen = is_visible(s, e->docs[0]);
    if (!out->is_seen)
        return;
    out->generic = x->profiles.generic[e->slot];
    if (s->by_meaning && e->has_vectors)
        out->cosine = profile =
            index_vecs_likeness(&x->profiles.vecs, &s->vector, e->slot);
    for (size_t i = 0; i < e->n_docs; i++) {
        uint32_t doc = e->docs[i];
        float text = text_score_one(x->text, &s->words, doc);
        float fine =
            i && profile >= 0
                ? lean(profile, x->docs[doc].part,
                       index_vecs_likeness(&x->vectors, &s->vector, doc))
                : -1;

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
