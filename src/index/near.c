/* How near a text is to every agent at once, for routing: there, everyone who
 * could get a message has a score, and nobody is left out for want of words.
 *
 * Words come from the postings, as in a search; every document's likeness is
 * the fine value, since what is said of an agent goes into a record. */
#include "index/data.h"

#include "base/fault.h"

static enum err near_room(struct index *x)
{
    struct index_search *s = &x->search;
    size_t n = x->agents_end;
    void *p;

    if (n > s->near_cap) {
        p = index_grow(s->near, n + n / 4 + 16, sizeof(*s->near));
        if (!p)
            return ERR_NOMEM;
        s->near = p;
        s->near_cap = n + n / 4 + 16;
    }
    return OK;
}

static bool is_visible(const struct index_search *s, uint32_t doc)
{
    return s->visible[doc / 64] >> doc % 64 & 1;
}

static void look_at(struct index *x, const struct index_entry *e,
                    struct index_near *out)
{
    struct index_search *s = &x->search;
    const struct weights w = search_weights(s->q, s->by_meaning);
    float best = -1;

    out->is_seen = is_visible(s, e->docs[0]);
    for (size_t i = 0; out->is_seen && i < e->n_docs; i++) {
        uint32_t doc = e->docs[i];
        float cosine = s->by_meaning
                           ? index_vecs_likeness(&x->vectors, &s->vector, doc)
                           : 0;
        float score = score_of(w, cosine, s->texts[doc]);

        if (score > best)
            out->skill = x->docs[doc].skill;
        best = score > best ? score : best;
        out->cosine = cosine > out->cosine ? cosine : out->cosine;
        out->text = s->texts[doc] > out->text ? s->texts[doc] : out->text;
    }
}

enum err index_near(struct index *x, const struct index_query *q,
                    struct str vector, const struct index_near **out, size_t *n)
{
    struct index_search *s = &x->search;
    enum err e = search_see(x, q);

    if (!e)
        e = near_room(x);
    if (e)
        return e;
    s->is_open = true;
    s->by_meaning = search_take_packed(x, (const uint8_t *)vector.p, vector.n);
    text_query(x->text, q->text, s->seen, x->n_classes, &s->words);
    s->n_touched =
        text_score_all(x->text, &s->words, s->visible, s->texts, s->touched);
    for (size_t i = 0; i < x->agents_end; i++) {
        s->near[i] = (struct index_near){.skill = INDEX_AGENT};
        if (x->agents[i])
            look_at(x, x->agents[i], &s->near[i]);
    }
    *out = s->near;
    *n = x->agents_end;
    index_search_end(x);
    return OK;
}
