#ifndef MODEL_ENVELOPE_H
#define MODEL_ENVELOPE_H

/* envelope: a message between agents as the gate sees it: sender, recipient,
 * type, subject. A person's message becomes one too, of the type "MESSAGE", so
 * that the gate judges only one form. Borrowed strings. */

#include "base/json.h"
#include "model/task.h"

#define ENVELOPE_COST_MAX \
    INT64_C(1000000000000000000) /* of max_cost_micros, as in messages */

enum {
    ENVELOPE_NAME_MAX = 128,            /* bytes of from, to and type, each */
    ENVELOPE_ID_MAX = 200,              /* of message_id */
    ENVELOPE_REFERENCE_MAX = 200,       /* of reference */
    ENVELOPE_CONTEXT_MAX = 16 * 1024,   /* of context */
    ENVELOPE_PAYLOAD_MAX = 1000 * 1000, /* of payload; the whole is the text
                                         * of a task */
};

/* The types of a person's message as an envelope, and of its answer. */
#define ENVELOPE_MESSAGE STR("MESSAGE")
#define ENVELOPE_RESULT  STR("RESULT")
#define ENVELOPE_BATCH   STR("BATCH")

struct envelope {
    struct str message_id; /* assigned by the sender; may be empty */
    struct str from, to, type;
    struct str reference; /* the subject; may be empty */
    struct str context;   /* a sentence for people */
    enum task_priority priority;
    int64_t at_ms;             /* sending time according to the sender */
    struct str payload;        /* a raw JSON object; may be empty */
    const struct json *fields; /* the same, parsed; NULL: not yet */
    struct str scope;          /* "org:acme", "user:ann": the owner */
    bool is_message;           /* from a person */
    bool has_entered;          /* judged before, and held */
    bool is_approved;          /* a person released it */
};

/* Rebuild the envelope that the gate judged from the row of its task. The
 * strings belong to the task and the arena. `scope` and `is_approved` are not
 * in the row, and `fields` are not parsed. ERR_SYNTAX: it is marked as an
 * envelope and is not one; ERR_NOMEM. */
MUST_USE enum err envelope_of_task(const struct task *t, struct arena *a,
                                   struct envelope *out);

/* Append it as text for agents that read "message": its context, or "TYPE from
 * FROM about REFERENCE". */
void envelope_words(const struct envelope *e, struct buf *out);

#endif
