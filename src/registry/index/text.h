#ifndef REGISTRY_INDEX_TEXT_H
#define REGISTRY_INDEX_TEXT_H

/* Shared by the files of struct text.
 *
 *   terms[]   a word: its documents, and their number per class
 *   docs[]    a document: its words, and its positions in their lists
 *   classes[] the number of documents and their total length
 *
 * A prepared document holds a promise of each of its terms: room for one more
 * document and one more class. */

#include "base/map.h"
#include "registry/index/internal.h"

#define TEXT_NONE UINT32_MAX

/* A document in a term's list. The length is that of the document, so that a
 * pass over the list reads nothing else. */
struct text_posting {
    uint32_t doc;
    uint16_t count, length;
};

_Static_assert(TEXT_LENGTH_MAX <= UINT16_MAX, "lengths are 16 bits");

struct text_class_count {
    uint32_t cls, n_docs;
};

struct text_term {
    struct text_posting *postings;    /* put aside ones last, else unordered */
    struct text_class_count *classes; /* by cls, each with documents */
    uint32_t n, cap, n_classes, classes_cap;
    uint32_t n_front; /* of n: those not put aside */
    uint32_t promised;
    uint32_t number;
    /* The first element of each list. Most words occur once, and a separate
     * list for each would take most of the memory. */
    struct text_posting one_posting;
    struct text_class_count one_class;
    uint8_t stem_n;
    char stem[];
};

_Static_assert(INDEX_TERM_MAX <= UINT8_MAX, "stems have 8 bits of length");

struct text_doc {
    uint32_t n, length, cls;
    struct text_entry {
        uint32_t term;
        uint32_t at; /* index in its postings */
        uint16_t count;
    } entries[]; /* by term */
};

/* A slot of a term. Free slots are a list. The last slot is never free. */
struct text_slot {
    struct text_term *term;
    uint32_t next_free, prev_free;
};

struct text_class {
    uint64_t n_docs, length;
    bool is_aside;
};

/* A word of the document that is being prepared. */
struct text_count {
    uint32_t term, count;
};

struct text {
    struct sb_stemmer *stemmer;
    struct map by_stem;
    struct text_slot *terms;
    uint32_t n_terms, terms_cap, first_free;
    struct text_doc **docs;
    uint32_t docs_cap;
    struct text_class *classes;
    uint32_t classes_cap;
    size_t bytes;
    struct text_count counts[INDEX_DOC_TERMS_MAX];
    size_t n_counts;
};

/* The term of a stem, created if needed; ERR_LIMIT, ERR_NOMEM. Drop a created
 * term that is not promised with text_let_go. */
MUST_USE enum err text_intern(struct text *t, struct str stem, uint32_t *out);
/* Free the term if it has no documents and no promises. */
void text_let_go(struct text *t, uint32_t term);

/* Make a document of t->counts, with the promises of its terms. In any case the
 * counts are empty afterwards; on error their terms are dropped. */
MUST_USE enum err text_doc_make(struct text *t, struct text_doc **out);

/* The number of documents of a class that contain the term. */
uint32_t text_class_docs(const struct text_term *m, uint32_t cls);

/* NULL: the document lacks the term. */
struct text_entry *text_entry(struct text_doc *d, uint32_t term);

#endif
