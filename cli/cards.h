#ifndef CLI_CARDS_H
#define CLI_CARDS_H

/* cards: the input of `agents register`, from files, a folder or stdin.
 *
 * A file is one card, a list of cards, or one card per line; comments are
 * allowed as in the configuration. Unreadable parts are kept in the list with
 * their position, so that one bad file or line does not affect the others.
 * card.h or the server validates the cards.
 *
 * Owns all texts, trees and messages. Threads: one at a time. */

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/map.h"

enum {
    CARDS_MAX = 100 * 1000,              /* in all files together */
    CARDS_FILES_MAX = 100 * 1000,        /* of a folder */
    CARDS_FILE_BYTES = 64 * 1024 * 1024, /* of one file */
};

/* A card, or an error in its place. */
struct card_in {
    struct str file;         /* as the user named it; "stdin" */
    struct str name;         /* from the card; empty: no name, or not text */
    const struct json *json; /* NULL: `why` has the error */
    enum err err;            /* OK with json */
    struct str why;
    unsigned line, col; /* the start of the card, or the mistake; zero: the
                         * whole file */

    /* To find positions in it. */
    struct str text; /* from the line of the card to the end */
    size_t base;     /* the offset of `at` of its values in text; may be
                      * "negative": added modulo */
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

/* Add the cards of a text, a file, or all *.json and *.jsonc of a folder
 * (sorted, without subfolders and hidden files). "-" is stdin. If two cards
 * have the same name in any case, the later one is an error. ERR_NOMEM,
 * ERR_LIMIT: too large; cards from before are still valid, and all other errors
 * are in the list. */
MUST_USE enum err cards_add_text(struct cards *s, struct str file,
                                 struct str text);
MUST_USE enum err cards_add_path(struct cards *s, const char *path);

/* The position of the value that a JSON pointer names, or of its nearest
 * parent if it is missing. */
void cards_place(const struct card_in *c, struct str pointer, unsigned *line,
                 unsigned *col);

#endif
