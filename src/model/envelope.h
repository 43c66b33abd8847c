#ifndef MODEL_ENVELOPE_H
#define MODEL_ENVELOPE_H

/* envelope: a message between agents, as the broker sees it: who to whom, what
 * kind, about what. What a person says is made into one too, of the kind
 * "MESSAGE", so that the gate has one form to judge. Borrowed strings. */

#include "base/json.h"
#include "model/task.h"

enum {
    ENVELOPE_NAME_MAX = 128,            /* bytes of from, to and type, each */
    ENVELOPE_ID_MAX = 200,              /* of message_id */
    ENVELOPE_REFERENCE_MAX = 200,       /* of reference */
    ENVELOPE_CONTEXT_MAX = 16 * 1024,   /* of context */
    ENVELOPE_PAYLOAD_MAX = 1000 * 1000, /* of payload; and the whole is a
                                         * task's text */
};

/* What a person's message is called as an envelope, and the answer to one. */
#define ENVELOPE_MESSAGE STR("MESSAGE")
#define ENVELOPE_RESULT  STR("RESULT")
#define ENVELOPE_BATCH   STR("BATCH")

struct envelope {
    struct str message_id; /* the sender's own; empty: none */
    struct str from, to, type;
    struct str reference; /* what it is about; empty: nothing in particular */
    struct str context;   /* a sentence for people */
    enum task_priority priority;
    int64_t at_ms;             /* when its sender says it was sent */
    struct str payload;        /* a JSON object as it stands; may be empty */
    const struct json *fields; /* the same, read; NULL: nobody has yet */
    struct str scope;          /* "org:acme", "user:ann": whose it is */
    bool is_message;           /* a person's */
    bool has_entered;          /* it was judged before, and waited */
    bool is_approved;          /* a person let it go */
};

/* What the gate judged, from the row of the task that it became; the strings
 * are the task's and the arena's. `scope` and `is_approved` are not in the row,
 * and `fields` are not read.
 * ERR_SYNTAX: it is said to be one, and is not; ERR_NOMEM. */
MUST_USE enum err envelope_of_task(const struct task *t, struct arena *a,
                                   struct envelope *out);

/* The same in words, for agents that read "message": its context, or "TYPE from
 * FROM about REFERENCE". Appended. */
void envelope_words(const struct envelope *e, struct buf *out);

#endif
