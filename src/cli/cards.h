#ifndef CLI_CARDS_H
#define CLI_CARDS_H

/* cards: what `agents register` finds in files, a folder or on stdin.
 *
 * A file is one card, a list of cards, or a card on each line; comments may
 * stand in it as in the configuration. What cannot be read is kept beside what
 * can, with its place, so that one bad file or line is in nobody's way. Whether
 * a card is a good one is for card.h, or for the server, to say.
 *
 * Owns all of it: texts, trees and words. Threads: one at a time. */

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/map.h"

enum {
    CARDS_MAX = 100 * 1000,              /* in all files together */
    CARDS_FILES_MAX = 100 * 1000,        /* of a folder */
    CARDS_FILE_BYTES = 64 * 1024 * 1024, /* of one file */
};

/* A card, or what stands in its place. */
struct card_in {
    struct str file; /* as it was named; "stdin" */
    struct str name; /* that the card gives itself; empty: none that is text */
    const struct json *json; /* NULL: there is none, and `why` says why */
    enum err err;            /* OK while there is one */
    struct str why;
    unsigned line, col; /* where it begins, or where the mistake is; zero: the
                         * whole file is meant */

    /* To find places in it. */
    struct str text; /* the line that it begins in, and what follows */
    size_t base;     /* what `at` of its values counts from, in text; may be
                      * "negative": it is added modulo */
    unsigned first_line;
};

struct cards {
    struct card_in **list;
    size_t n, cap;
    struct map by_name; /* in lower case -> struct card_in */
    struct arena arena;
};

void cards_init(struct cards *s);
void cards_fini(struct cards *s);

/* What is in a text, a file, or in all *.json and *.jsonc of a folder (sorted;
 * folders within it and hidden files are passed over). "-" is stdin. A name
 * that an earlier card has, whatever the case, is a mistake of the later.
 * ERR_NOMEM, ERR_LIMIT: it did not fit; what was there before is still good,
 * and all else is in the list. */
MUST_USE enum err cards_add_text(struct cards *s, struct str file,
                                 struct str text);
MUST_USE enum err cards_add_path(struct cards *s, const char *path);

/* Where the value is that a JSON pointer names, or where what holds it begins
 * if it is not there. */
void cards_place(const struct card_in *c, struct str pointer, unsigned *line,
                 unsigned *col);

#endif
