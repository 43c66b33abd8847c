#ifndef INDEX_TEXT_H
#define INDEX_TEXT_H

/* What the files of struct text share.
 *
 *   terms[]   a word: the documents that have it, and how many in each class
 *   docs[]    a document: its words, and where it stands in their lists
 *   classes[] how many documents, and how long they are together
 *
 * A document that is prepared has a promise of each of its terms: room for one
 * more document and one more class. */

#include "base/map.h"
#include "index/internal.h"

#define TEXT_NONE UINT32_MAX

/* Of a document in a term's list. The length is the document's: it is here so
 * that a walk over the list looks nowhere else. */
struct text_posting {
    uint32_t doc;
    uint16_t count, length;
};

_Static_assert(TEXT_LENGTH_MAX <= UINT16_MAX, "lengths are 16 bits");

struct text_class_count {
    uint32_t cls, n_docs;
};

struct text_term {
    struct text_posting *postings;    /* in no order */
    struct text_class_count *classes; /* by cls, none of them with no docs */
    uint32_t n, cap, n_classes, classes_cap;
    uint32_t promised;
    uint32_t number;
    /* Where the lists are as long as they are one long: most words are said
     * once, and a list of its own for each would be most of the memory. */
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
        uint32_t at; /* in its postings */
        uint16_t count;
    } entries[]; /* by term */
};

/* A place for a term; free ones are a list. The last place is never free. */
struct text_slot {
    struct text_term *term;
    uint32_t next_free, prev_free;
};

struct text_class {
    uint64_t n_docs, length;
};

/* Of the document that is being prepared: word by word. */
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

/* The term of a stem, made if there is none; ERR_LIMIT, ERR_NOMEM. One that is
 * made and not promised must be let go. */
MUST_USE enum err text_intern(struct text *t, struct str stem, uint32_t *out);
/* Free it if nobody has it. */
void text_let_go(struct text *t, uint32_t term);

/* What t->counts hold as a document, with the promises of its terms. Whatever
 * comes of it, counts are then empty and their terms let go. */
MUST_USE enum err text_doc_make(struct text *t, struct text_doc **out);

/* How many documents of a class have the term. */
uint32_t text_class_docs(const struct text_term *m, uint32_t cls);

/* NULL: it has not got this term. */
struct text_entry *text_entry(struct text_doc *d, uint32_t term);

#endif
