/* Postings lie in no order, so a document joins a list at its end and leaves it
 * by giving its place to the last one; each document knows its places. All of
 * that is as cheap for a word that everybody uses as for a rare one. Lists in
 * order could be skipped through, but a search adds up what all words give and
 * skips nothing.
 *
 * How many documents of a class have a word stands in a short list of the word,
 * in order of classes: most words are used by few classes, and who searches
 * sees a few.
 *
 * Memory is only asked for while a document is prepared. Lists of a term do not
 * shrink; a term that no document has is gone, and when most of them have gone
 * so does the room they had. */
#include "index/text.h"

#include <assert.h>
#include <stdlib.h>

#include "base/fault.h"

/* Room for `need` of them in a list; `one` is where the first list is that has
 * no memory of its own, or NULL. */
static bool grow(struct text *t, void **list, void *one, size_t size,
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

#define GROW(t, what, cap, need, where) \
    grow(t, (void **)&(what), NULL, sizeof(*(what)), &(cap), need, where)
#define GROW_FROM(t, what, one, cap, need, where) \
    grow(t, (void **)&(what), &(one), sizeof(one), &(cap), need, where)

struct text *text_new(size_t max_docs, const uint64_t seed[2])
{
    struct text *t = FAULT("index.text") ? NULL : calloc(1, sizeof(*t));
    size_t limit = (max_docs + 1) * TEXT_TERMS_PER_DOC;

    if (!t)
        return NULL;
    t->stemmer = stemmer_new();
    if (!t->stemmer) {
        free(t);
        return NULL;
    }
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

static size_t doc_bytes(uint32_t n)
{
    return sizeof(struct text_doc) + n * sizeof(struct text_entry);
}

static void doc_free(struct text *t, struct text_doc *d)
{
    t->bytes -= doc_bytes(d->n);
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
        t->classes[classes] = (struct text_class){0, 0};
    return OK;
}

/* Terms. */

static void place_free(struct text *t, uint32_t term)
{
    if (t->first_free != TEXT_NONE)
        t->terms[t->first_free].prev_free = term;
    t->terms[term] = (struct text_slot){NULL, t->first_free, TEXT_NONE};
    t->first_free = term;
}

/* It is free no more. */
static void place_take(struct text *t, uint32_t term)
{
    struct text_slot *s = &t->terms[term];

    if (s->prev_free != TEXT_NONE)
        t->terms[s->prev_free].next_free = s->next_free;
    else
        t->first_free = s->next_free;
    if (s->next_free != TEXT_NONE)
        t->terms[s->next_free].prev_free = s->prev_free;
}

static enum err term_make(struct text *t, struct str stem, uint32_t *out)
{
    struct text_term *m;
    uint32_t number = t->first_free;
    enum err e;

    if (number == TEXT_NONE) {
        number = t->n_terms;
        if (!GROW(t, t->terms, t->terms_cap, (size_t)number + 1, "index.terms"))
            return ERR_NOMEM;
        t->terms[number] = (struct text_slot){NULL, TEXT_NONE, TEXT_NONE};
    }
    m = FAULT("index.term") ? NULL : calloc(1, sizeof(*m) + stem.n);
    if (!m)
        return ERR_NOMEM;
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
        place_take(t, number);
    t->terms[number].term = m;
    *out = number;
    return OK;
}

enum err text_intern(struct text *t, struct str stem, uint32_t *out)
{
    const struct text_term *m = map_get(&t->by_stem, stem);

    if (!m)
        return term_make(t, stem, out);
    *out = m->number;
    return OK;
}

void text_let_go(struct text *t, uint32_t term)
{
    struct text_term *m = t->terms[term].term;

    if (!m || m->n || m->promised)
        return;
    map_take(&t->by_stem, (struct str){m->stem, m->stem_n});
    term_free(t, m);
    place_free(t, term);
    while (t->n_terms > 0 && !t->terms[t->n_terms - 1].term)
        place_take(t, --t->n_terms);
}

/* Terms keep their numbers, so places go from the end only. */
static void shrink_places(struct text *t)
{
    uint32_t cap = t->terms_cap / 2;
    void *p = realloc(t->terms, cap * sizeof(*t->terms));

    if (!p)
        return;
    t->bytes -= (t->terms_cap - cap) * sizeof(*t->terms);
    t->terms = p;
    t->terms_cap = cap;
}

static void shrink_stems(struct text *t)
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
    if (e) { /* it stays as large as it was */
        map_fini(&less);
        return;
    }
    map_fini(&t->by_stem);
    t->by_stem = less;
}

enum { FEW_TERMS = 1024 };

/* When so many have gone that it costs no more than letting go of them did. */
static void shrink(struct text *t)
{
    while (t->terms_cap > FEW_TERMS && t->n_terms < t->terms_cap / 4) {
        uint32_t cap = t->terms_cap;

        shrink_places(t);
        if (t->terms_cap == cap)
            break;
    }
    if (t->by_stem.cap > FEW_TERMS && t->by_stem.n < t->by_stem.cap / 8)
        shrink_stems(t);
}

static enum err promise(struct text *t, struct text_term *m)
{
    if (!GROW_FROM(t, m->postings, m->one_posting, m->cap,
                   (size_t)m->n + m->promised + 1, "index.postings") ||
        !GROW_FROM(t, m->classes, m->one_class, m->classes_cap,
                   (size_t)m->n_classes + m->promised + 1, "index.counts"))
        return ERR_NOMEM;
    m->promised++;
    return OK;
}

/* The first whose class is cls or behind it. */
static uint32_t class_place(const struct text_term *m, uint32_t cls)
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
    uint32_t at = class_place(m, cls);

    return at < m->n_classes && m->classes[at].cls == cls
               ? m->classes[at].n_docs
               : 0;
}

static void class_add(struct text_term *m, uint32_t cls)
{
    uint32_t at = class_place(m, cls);

    if (at == m->n_classes || m->classes[at].cls != cls) {
        assert(m->n_classes < m->classes_cap);
        memmove(m->classes + at + 1, m->classes + at,
                (m->n_classes - at) * sizeof(*m->classes));
        m->classes[at] = (struct text_class_count){cls, 0};
        m->n_classes++;
    }
    m->classes[at].n_docs++;
}

static void class_take(struct text_term *m, uint32_t cls)
{
    uint32_t at = class_place(m, cls);

    if (--m->classes[at].n_docs)
        return;
    m->n_classes--;
    memmove(m->classes + at, m->classes + at + 1,
            (m->n_classes - at) * sizeof(*m->classes));
}

/* Documents. */

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

static int by_term(const void *a, const void *b)
{
    const struct text_count *x = a, *y = b;

    return x->term < y->term ? -1 : x->term > y->term;
}

/* One count a term; how many. */
static uint32_t merge_counts(struct text *t)
{
    uint32_t n = 0;

    qsort(t->counts, t->n_counts, sizeof(t->counts[0]), by_term);
    for (size_t i = 0; i < t->n_counts; i++)
        if (n && t->counts[n - 1].term == t->counts[i].term)
            t->counts[n - 1].count += t->counts[i].count;
        else
            t->counts[n++] = t->counts[i];
    return n;
}

enum err text_doc_make(struct text *t, struct text_doc **out)
{
    uint32_t n = merge_counts(t), done = 0;
    struct text_doc *d = FAULT("index.doc") ? NULL : malloc(doc_bytes(n));
    enum err e = d ? OK : ERR_NOMEM;

    if (d) {
        t->bytes += doc_bytes(n);
        *d = (struct text_doc){.n = n};
    }
    for (; !e && done < n; done++) {
        const struct text_count *c = &t->counts[done];

        e = promise(t, t->terms[c->term].term);
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
    else if (d)
        doc_free(t, d);
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
    doc_free(t, d);
    shrink(t);
}

void text_put(struct text *t, uint32_t doc, uint32_t cls, struct text_doc *d)
{
    assert(doc < t->docs_cap && !t->docs[doc] && cls < t->classes_cap);
    for (uint32_t i = 0; i < d->n; i++) {
        struct text_entry *e = &d->entries[i];
        struct text_term *m = t->terms[e->term].term;

        m->promised--;
        e->at = m->n;
        m->postings[m->n++] =
            (struct text_posting){doc, e->count, (uint16_t)d->length};
        class_add(m, cls);
    }
    d->cls = cls;
    t->docs[doc] = d;
    t->classes[cls].n_docs++;
    t->classes[cls].length += d->length;
}

/* The last one of the list takes its place. */
static void posting_take(struct text *t, struct text_term *m, uint32_t at)
{
    struct text_posting last = m->postings[--m->n];

    if (at == m->n)
        return;
    m->postings[at] = last;
    text_entry(t->docs[last.doc], m->number)->at = at;
}

void text_drop(struct text *t, uint32_t doc)
{
    struct text_doc *d = doc < t->docs_cap ? t->docs[doc] : NULL;

    if (!d)
        return;
    for (uint32_t i = 0; i < d->n; i++) {
        struct text_term *m = t->terms[d->entries[i].term].term;

        posting_take(t, m, d->entries[i].at);
        class_take(m, d->cls);
        text_let_go(t, d->entries[i].term);
    }
    t->classes[d->cls].n_docs--;
    t->classes[d->cls].length -= d->length;
    t->docs[doc] = NULL;
    doc_free(t, d);
    shrink(t);
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

    assert(cls < t->classes_cap);
    for (uint32_t i = 0; i < d->n; i++) {
        struct text_term *m = t->terms[d->entries[i].term].term;

        class_take(m, d->cls);
        class_add(m, cls);
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
