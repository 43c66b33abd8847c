/* Consistency checks of the word lists, for tests. */
#include "registry/index/text.h"

static bool term_is_right(const struct text *t, const struct text_term *m)
{
    uint64_t in_classes = 0;

    for (uint32_t i = 0; i < m->n; i++) {
        const struct text_posting *p = &m->postings[i];
        struct text_doc *d = p->doc < t->docs_cap ? t->docs[p->doc] : NULL;
        const struct text_entry *e = d ? text_entry(d, m->number) : NULL;

        if (!e || e->at != i ||
            t->classes[d->cls].is_aside != (i >= m->n_front) ||
            e->count != p->count || d->length != p->length)
            return false;
    }
    for (uint32_t i = 0; i < m->n_classes; i++) {
        in_classes += m->classes[i].n_docs;
        if (!m->classes[i].n_docs ||
            (i && m->classes[i].cls <= m->classes[i - 1].cls))
            return false;
    }
    return in_classes == m->n && m->n_front <= m->n && (m->n || m->promised) &&
           m->n + m->promised <= m->cap &&
           m->n_classes + m->promised <= m->classes_cap &&
           map_get(&t->by_stem, (struct str){m->stem, m->stem_n}) == m;
}

static bool class_is_right(const struct text *t, uint32_t cls)
{
    struct text_class sum = {0, 0, false};

    for (uint32_t i = 0; i < t->docs_cap; i++)
        if (t->docs[i] && t->docs[i]->cls == cls) {
            sum.n_docs++;
            sum.length += t->docs[i]->length;
        }
    return sum.n_docs == t->classes[cls].n_docs &&
           sum.length == t->classes[cls].length;
}

bool text_check(const struct text *t)
{
    size_t n_entries = 0, n_postings = 0, n_terms = 0, n_free = 0;

    for (uint32_t i = 0; i < t->n_terms; i++) {
        const struct text_term *m = t->terms[i].term;

        if (m && (m->number != i || !term_is_right(t, m)))
            return false;
        n_terms += m != NULL;
        n_postings += m ? m->n : 0;
    }
    if (t->n_terms > 0 && !t->terms[t->n_terms - 1].term)
        return false;
    for (uint32_t i = t->first_free; i != TEXT_NONE; i = t->terms[i].next_free)
        if (i >= t->n_terms || t->terms[i].term || n_free++ > t->n_terms)
            return false;
    for (uint32_t i = 0; i < t->docs_cap; i++)
        n_entries += t->docs[i] ? t->docs[i]->n : 0;
    for (uint32_t i = 0; i < t->classes_cap; i++)
        if (!class_is_right(t, i))
            return false;
    return n_terms == t->by_stem.n && n_terms + n_free == t->n_terms &&
           n_entries == n_postings && map_check(&t->by_stem);
}
