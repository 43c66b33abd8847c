#ifndef TRAIN_VOCABULARY_H
#define TRAIN_VOCABULARY_H

/* vocabulary: what gets a row of its own. Words and their pieces first, then
 * phrases of two of them; the number of each is that of its row. */

#include "embed/internal.h"
#include "train/train.h"

struct vocabulary {
    struct str *words;
    size_t n_words, cap_words;
    size_t n_pieces; /* of the words: the teacher's, the first ones */
    struct table_phrase *phrases;
    size_t n_phrases, cap_phrases;

    /* The table without anything in its rows: it cuts texts as the real one
     * will. */
    struct embed_table table;
    char *bytes;
};

/* Borrows the texts and the teacher's pieces for as long as it lives. */
MUST_USE enum err vocabulary_make(struct vocabulary *v, const struct corpus *c,
                                  const struct vocab *teacher,
                                  const struct recipe *r, struct why *why);
void vocabulary_fini(struct vocabulary *v);

/* What the teacher is asked for a word. */
struct str vocabulary_text(const struct vocabulary *v, size_t word);

#endif
