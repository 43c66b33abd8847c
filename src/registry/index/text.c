/* Inverted lists of the words.
 *
 * Postings are unordered: a document is appended to a list, and on removal the
 * last posting takes its slot. Each document knows its positions. So a common
 * word is as cheap to maintain as a rare one. Rejected: ordered lists, which
 * can be skipped through; a search adds up the scores of all words and skips
 * nothing.
 *
 * The number of documents per class is a short list of each word, ordered by
 * class: most words occur in few classes, and a requester sees only a few.
 *
 * Memory is allocated only while a document is prepared. The lists of a term do
 * not shrink. A term without documents is removed, and once most terms are
 * gone, their array shrinks too. */
#include "registry/index/text.h"

#include <assert.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/mem.h"

/* Room for `need` elements in a list. `one` is the inline element that the list
 * starts with, or NULL. False: no memory, since the list of a common word may
 * be large. */
static bool text_grow_list(struct text *t, void **list, void *one, size_t size,
                           uint32_t *cap, size_t need, const char *where)
{
    size_t more = *cap ? *cap : 1;
    bool is_own = *list != one;
    void *p;

    (void)where;
    if (need <= *cap)
        return true;
    while (more < need)
        more *= 2;
    if (more > UINT32_MAX)
        return false;
    p = FAULT(where) ? NULL : realloc(is_own ? *list : NULL, more * size);
    if (!p)
        return false;
    if (!is_own && one)
        memcpy(p, one, size);
    t->bytes += (more - (is_own ? *cap : 0)) * size;
    *list = p;
    *cap = (uint32_t)more;
    return true;
}

#define GROW(t, what, cap, need, where)                                      \
    text_grow_list(t, (void **)&(what), NULL, sizeof(*(what)), &(cap), need, \
                   where)
#define GROW_FROM(t, what, one, cap, need, where)                          \
    text_grow_list(t, (void **)&(what), &(one), sizeof(one), &(cap), need, \
                   where)

struct text *text_new(size_t max_docs, const uint64_t seed[2])
{
    struct text *t = mem_new(sizeof(*t));
    size_t limit = (max_docs + 1) * TEXT_TERMS_PER_DOC;

    t->stemmer = stemmer_new();
    map_init(&t->by_stem, limit < TEXT_NONE ? limit : TEXT_NONE - 1, seed);
    t->first_free = TEXT_NONE;
    return t;
}

static void term_free(struct text *t, struct text_term *m)
{
    t->bytes -= sizeof(*m) + m->stem_n;
    if (m->postings != &m->one_posting) {
        t->bytes -= m->cap * sizeof(*m->postings);
        free(m->postings);
    }
    if (m->classes != &m->one_class) {
        t->bytes -= m->classes_cap * sizeof(*m->classes);
        free(m->classes);
    }
    free(m);
}

static size_t text_doc_bytes(uint32_t n)
{
    return sizeof(struct text_doc) + n * sizeof(struct text_entry);
}

static void text_doc_free(struct text *t, struct text_doc *d)
{
    t->bytes -= text_doc_bytes(d->n);
    free(d);
}

void text_free(struct text *t)
{
    if (!t)
        return;
    for (uint32_t i = 0; i < t->n_terms; i++)
        if (t->terms[i].term)
            term_free(t, t->terms[i].term);
    for (uint32_t i = 0; i < t->docs_cap; i++)
        free(t->docs[i]);
    free(t->terms);
    free(t->docs);
    free(t->classes);
    map_fini(&t->by_stem);
    stemmer_free(t->stemmer);
    free(t);
}

enum err text_room(struct text *t, uint32_t n_docs, uint32_t n_classes)
{
    uint32_t docs = t->docs_cap, classes = t->classes_cap;

    if (!GROW(t, t->docs, t->docs_cap, n_docs, "index.docs"))
        return ERR_NOMEM;
    for (; docs < t->docs_cap; docs++)
        t->docs[docs] = NULL;
    if (!GROW(t, t->classes, t->classes_cap, n_classes, "index.classes"))
        return ERR_NOMEM;
    for (; classes < t->classes_cap; classes++)
        t->classes[classes] = (struct text_class){0, 0, false};
    return OK;
}

/* Take a slot off the free list. */
static void term_slot_take(struct text *t, uint32_t term)
{
    struct text_slot *s = &t->terms[term];

    if (s->prev_free != TEXT_NONE)
        t->terms[s->prev_free].next_free = s->next_free;
    else
        t->first_free = s->next_free;
    if (s->next_free != TEXT_NONE)
        t->terms[s->next_free].prev_free = s->prev_free;
}

enum err text_intern(struct text *t, struct str stem, uint32_t *out)
{
    struct text_term *m = map_get(&t->by_stem, stem);
    uint32_t number = m ? m->number : t->first_free;
    enum err e;

    *out = number;
    if (m)
        return OK;
    if (number == TEXT_NONE) {
        *out = number = t->n_terms;
        if (!GROW(t, t->terms, t->terms_cap, (size_t)number + 1, "index.terms"))
            return ERR_NOMEM;
        t->terms[number] = (struct text_slot){NULL, TEXT_NONE, TEXT_NONE};
    }
    m = mem_new(sizeof(*m) + stem.n);
    memcpy(m->stem, stem.p, stem.n);
    m->stem_n = (uint8_t)stem.n;
    m->number = number;
    m->postings = &m->one_posting;
    m->classes = &m->one_class;
    m->cap = m->classes_cap = 1;
    e = map_put(&t->by_stem, (struct str){m->stem, stem.n}, m);
    if (e) {
        free(m);
        return e;
    }
    t->bytes += sizeof(*m) + stem.n;
    if (number == t->n_terms)
        t->n_terms++;
    else
        term_slot_take(t, number);
    t->terms[number].term = m;
    return OK;
}

void text_let_go(struct text *t, uint32_t term)
{
    struct text_term *m = t->terms[term].term;

    if (!m || m->n || m->promised)
        return;
    map_take(&t->by_stem, (struct str){m->stem, m->stem_n});
    term_free(t, m);
    if (t->first_free != TEXT_NONE)
        t->terms[t->first_free].prev_free = term;
    t->terms[term] = (struct text_slot){NULL, t->first_free, TEXT_NONE};
    t->first_free = term;
    while (t->n_terms > 0 && !t->terms[t->n_terms - 1].term)
        term_slot_take(t, --t->n_terms);
}

static void text_shrink_stems(struct text *t)
{
    struct map less;
    enum err e;

    map_init(&less, t->by_stem.limit, t->by_stem.seed);
    e = map_reserve(&less, t->by_stem.n);
    for (uint32_t i = 0; i < t->n_terms && !e; i++) {
        struct text_term *m = t->terms[i].term;

        if (m)
            e = map_put(&less, (struct str){m->stem, m->stem_n}, m);
    }
    if (e) { /* the map keeps its size */
        map_fini(&less);
        return;
    }
    map_fini(&t->by_stem);
    t->by_stem = less;
}

enum { FEW_TERMS = 1024 };

/* Shrink once so many terms have gone that it costs no more than removing them
 * did. Terms keep their numbers, so only slots at the end can go. */
static void text_shrink(struct text *t)
{
    while (t->terms_cap > FEW_TERMS && t->n_terms < t->terms_cap / 4) {
        uint32_t cap = t->terms_cap / 2;
        void *p = realloc(t->terms, cap * sizeof(*t->terms));

        if (!p)
            break;
        t->bytes -= (t->terms_cap - cap) * sizeof(*t->terms);
        t->terms = p;
        t->terms_cap = cap;
    }
    if (t->by_stem.cap > FEW_TERMS && t->by_stem.n < t->by_stem.cap / 8)
        text_shrink_stems(t);
}

static enum err term_promise(struct text *t, struct text_term *m)
{
    if (!GROW_FROM(t, m->postings, m->one_posting, m->cap,
                   (size_t)m->n + m->promised + 1, "index.postings") ||
        !GROW_FROM(t, m->classes, m->one_class, m->classes_cap,
                   (size_t)m->n_classes + m->promised + 1, "index.counts"))
        return ERR_NOMEM;
    m->promised++;
    return OK;
}

/* Index of the first class that is not below cls. */
static uint32_t term_class_index(const struct text_term *m, uint32_t cls)
{
    uint32_t from = 0, to = m->n_classes;

    while (from < to) {
        uint32_t middle = from + (to - from) / 2;

        if (m->classes[middle].cls < cls)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

uint32_t text_class_docs(const struct text_term *m, uint32_t cls)
{
    uint32_t at = term_class_index(m, cls);

    return at < m->n_classes && m->classes[at].cls == cls
               ? m->classes[at].n_docs
               : 0;
}

static void term_class_add(struct text_term *m, uint32_t cls)
{
    uint32_t at = term_class_index(m, cls);

    if (at == m->n_classes || m->classes[at].cls != cls) {
        assert(m->n_classes < m->classes_cap);
        memmove(m->classes + at + 1, m->classes + at,
                (m->n_classes - at) * sizeof(*m->classes));
        m->classes[at] = (struct text_class_count){cls, 0};
        m->n_classes++;
    }
    m->classes[at].n_docs++;
}

static void term_class_take(struct text_term *m, uint32_t cls)
{
    uint32_t at = term_class_index(m, cls);

    if (--m->classes[at].n_docs)
        return;
    m->n_classes--;
    memmove(m->classes + at, m->classes + at + 1,
            (m->n_classes - at) * sizeof(*m->classes));
}

struct text_entry *text_entry(struct text_doc *d, uint32_t term)
{
    uint32_t from = 0, to = d->n;

    while (from < to) {
        uint32_t middle = from + (to - from) / 2;

        if (d->entries[middle].term == term)
            return &d->entries[middle];
        if (d->entries[middle].term < term)
            from = middle + 1;
        else
            to = middle;
    }
    return NULL;
}

static int count_by_term(const void *a, const void *b)
{
    const struct text_count *x = a, *y = b;

    return x->term < y->term ? -1 : x->term > y->term;
}

/* Merge the counts of equal terms; returns how many remain. */
static uint32_t text_merge_counts(struct text *t)
{
    uint32_t n = 0;

    qsort(t->counts, t->n_counts, sizeof(t->counts[0]), count_by_term);
    for (size_t i = 0; i < t->n_counts; i++)
        if (n && t->counts[n - 1].term == t->counts[i].term)
            t->counts[n - 1].count += t->counts[i].count;
        else
            t->counts[n++] = t->counts[i];
    return n;
}

enum err text_doc_make(struct text *t, struct text_doc **out)
{
    uint32_t n = text_merge_counts(t), done = 0;
    struct text_doc *d = mem_new(text_doc_bytes(n));
    enum err e = OK;

    t->bytes += text_doc_bytes(n);
    d->n = n;
    for (; !e && done < n; done++) {
        const struct text_count *c = &t->counts[done];

        e = term_promise(t, t->terms[c->term].term);
        if (e)
            break;
        d->entries[done] = (struct text_entry){c->term, 0, (uint16_t)c->count};
        d->length += c->count;
    }
    for (uint32_t i = 0; e && i < n; i++) {
        if (i < done)
            t->terms[t->counts[i].term].term->promised--;
        text_let_go(t, t->counts[i].term);
    }
    t->n_counts = 0;
    if (!e)
        *out = d;
    else
        text_doc_free(t, d);
    return e;
}

void text_forget(struct text *t, struct text_doc *d)
{
    if (!d)
        return;
    for (uint32_t i = 0; i < d->n; i++) {
        t->terms[d->entries[i].term].term->promised--;
        text_let_go(t, d->entries[i].term);
    }
    text_doc_free(t, d);
    text_shrink(t);
}

/* Postings of classes that are put aside follow the others, so that requesters
 * who cannot see them skip them. */

static void posting_set(struct text *t, struct text_term *m, uint32_t at,
                        struct text_posting p)
{
    m->postings[at] = p;
    text_entry(t->docs[p.doc], m->number)->at = at;
}

/* There is room, and t->docs has the document. */
static void posting_put(struct text *t, struct text_term *m,
                        struct text_posting p, bool is_aside)
{
    uint32_t at = m->n++;

    if (!is_aside) {
        if (m->n_front < at)
            posting_set(t, m, at, m->postings[m->n_front]);
        at = m->n_front++;
    }
    posting_set(t, m, at, p);
}

/* The last posting of its part of the list takes its slot, and the very last
 * one takes that slot. */
static void posting_take(struct text *t, struct text_term *m, uint32_t at)
{
    uint32_t last = --m->n;

    if (at < m->n_front) {
        if (at != --m->n_front)
            posting_set(t, m, at, m->postings[m->n_front]);
        at = m->n_front;
    }
    if (at != last)
        posting_set(t, m, at, m->postings[last]);
}

void text_class_is_aside(struct text *t, uint32_t cls, bool is_aside)
{
    assert(cls < t->classes_cap && !t->classes[cls].n_docs);
    t->classes[cls].is_aside = is_aside;
}

void text_put(struct text *t, uint32_t doc, uint32_t cls, struct text_doc *d)
{
    assert(doc < t->docs_cap && !t->docs[doc] && cls < t->classes_cap);
    d->cls = cls;
    t->docs[doc] = d;
    for (uint32_t i = 0; i < d->n; i++) {
        const struct text_entry *e = &d->entries[i];
        struct text_term *m = t->terms[e->term].term;

        m->promised--;
        posting_put(t, m,
                    (struct text_posting){doc, e->count, (uint16_t)d->length},
                    t->classes[cls].is_aside);
        term_class_add(m, cls);
    }
    t->classes[cls].n_docs++;
    t->classes[cls].length += d->length;
}

void text_drop(struct text *t, uint32_t doc)
{
    struct text_doc *d = doc < t->docs_cap ? t->docs[doc] : NULL;

    if (!d)
        return;
    for (uint32_t i = 0; i < d->n; i++) {
        struct text_term *m = t->terms[d->entries[i].term].term;

        posting_take(t, m, d->entries[i].at);
        term_class_take(m, d->cls);
        text_let_go(t, d->entries[i].term);
    }
    t->classes[d->cls].n_docs--;
    t->classes[d->cls].length -= d->length;
    t->docs[doc] = NULL;
    text_doc_free(t, d);
    text_shrink(t);
}

enum err text_move_room(struct text *t, uint32_t doc)
{
    struct text_doc *d = t->docs[doc];

    for (uint32_t i = 0; i < d->n; i++) {
        struct text_term *m = t->terms[d->entries[i].term].term;

        if (!GROW_FROM(t, m->classes, m->one_class, m->classes_cap,
                       (size_t)m->n_classes + m->promised + 1, "index.counts"))
            return ERR_NOMEM;
    }
    return OK;
}

void text_move(struct text *t, uint32_t doc, uint32_t cls)
{
    struct text_doc *d = t->docs[doc];

    bool is_aside = t->classes[cls].is_aside;
    bool is_other = is_aside != t->classes[d->cls].is_aside;

    assert(cls < t->classes_cap);
    for (uint32_t i = 0; i < d->n; i++) {
        const struct text_entry *e = &d->entries[i];
        struct text_term *m = t->terms[e->term].term;
        struct text_posting p = m->postings[e->at];

        term_class_take(m, d->cls);
        term_class_add(m, cls);
        if (is_other) {
            posting_take(t, m, e->at);
            posting_put(t, m, p, is_aside);
        }
    }
    t->classes[d->cls].n_docs--;
    t->classes[d->cls].length -= d->length;
    t->classes[cls].n_docs++;
    t->classes[cls].length += d->length;
    d->cls = cls;
}

size_t text_bytes(const struct text *t)
{
    return sizeof(*t) + t->bytes + t->by_stem.cap * sizeof(*t->by_stem.slots);
}

size_t text_n_terms(const struct text *t)
{
    return t->by_stem.n;
}
