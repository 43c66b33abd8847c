#ifndef TRAIN_MAKE_H
#define TRAIN_MAKE_H

/* make: all of it in order. */

#include "train/samples.h"

struct train_job {
    struct recipe recipe;
    const struct teacher *teacher;
    const struct grammar *grammar;
    const struct lexicon *lexicon;
    const char *cache; /* folder of what the teacher has said; NULL: none */
    unsigned n_threads;
    bool is_quiet;
};

struct train_result {
    struct buf table;                /* the file */
    char hash[HASH_CHARS + 1];       /* of the file */
    char inner_hash[HASH_CHARS + 1]; /* that stands in it */
    char texts_hash[HASH_CHARS + 1]; /* of what was trained on */
    size_t n_trained, n_pairs;       /* texts and pairs learnt from */
    size_t n_pieces, n_words, n_phrases, n_seen; /* rows */
    double kept; /* of the variance, by fewer numbers */
    struct figures first, floats, bytes;
};

void train_result_fini(struct train_result *r);

/* The corpus is settled; texts are added to it. */
MUST_USE enum err train_make(struct train_result *out, struct corpus *c,
                             const struct train_job *job, struct why *why);

/* What there is to say about a table, in Markdown. */
struct card {
    const struct train_job *job;
    const struct train_result *result;
    const struct corpus *corpus;
    const char *files_hash;
    const char *command;
};
void card_write(const struct card *c, struct buf *out);

/* The teacher that is used: our own MiniLM. */
MUST_USE enum err teacher_open(struct teacher *t, const char *path,
                               struct why *why);
void teacher_close(struct teacher *t);

#endif
