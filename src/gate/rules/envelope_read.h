#ifndef GATE_RULES_ENVELOPE_READ_H
#define GATE_RULES_ENVELOPE_READ_H

/* Envelopes in documents: a single one, and the entries of a history. */

#include "gate/rules/rules.h"

/* An envelope with the fields that only a history has. */
struct envelope_entry {
    struct envelope e;
    enum approval approved;
    enum gate_answer answer; /* zero: not given */
};

/* Where the envelope stands, for messages: "the envelope", "history[3]". */
struct envelope_place {
    const char *list; /* NULL: a single envelope */
    size_t i;
};

/* A member's name, shortened and without control characters. */
enum { QUOTED_KEY_BYTES = 64 };
struct str quote_key(struct str key, char to[QUOTED_KEY_BYTES]);

/* Read an envelope; *out borrows strings from v's text. An entry of a history
 * needs a timestamp and may lack `to`. */
MUST_USE enum err envelope_entry_read(const struct json *v,
                                      struct envelope_place place,
                                      int64_t now_ms,
                                      struct envelope_entry *out,
                                      struct why *why);

#endif
