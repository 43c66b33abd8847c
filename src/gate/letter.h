#ifndef GATE_LETTER_H
#define GATE_LETTER_H

/* Envelopes in documents: one alone, and those of a history. */

#include "gate/gate.h"

/* What a history says besides. */
struct letter {
    struct envelope e;
    enum approval approved;
    enum gate_answer answer; /* zero: it does not say */
};

/* Where it stands, for words: "the envelope", "history[3]". */
struct letter_place {
    const char *list; /* NULL: it is alone */
    size_t i;
};

/* Into *out, with strings of v's text. An entry of a history needs a time, and
 * no `to`. */
MUST_USE enum err letter_read(const struct json *v, struct letter_place place,
                              int64_t now_ms, struct letter *out,
                              struct why *why);

#endif
