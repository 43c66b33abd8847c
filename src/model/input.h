#ifndef MODEL_INPUT_H
#define MODEL_INPUT_H

/* input: what an agent asks of people while it works on a task, and what they
 * say to it.
 *
 * An agent's program shows a dialog; it is told to whoever listens to its task
 * or to the root of it, one of them answers, and the program goes on. It lives
 * in memory alone: the program that asks does not survive the server either.
 * Threads: any; everything here is constant or the caller's. */

#include "base/err.h"
#include "base/id.h"
#include "base/json.h"
#include "model/agent.h"
#include "model/caller.h"

enum input_kind {
    INPUT_SELECT = 1, /* one of the options */
    INPUT_CONFIRM,    /* yes or no */
    INPUT_TEXT,       /* a line */
    INPUT_EDITOR,     /* a text of several lines, which may be there already */
};

enum {
    INPUT_OPTIONS_MAX = 100,
    INPUT_BYTES_MAX = 64 * 1024, /* of all that is asked, together */
    INPUT_VALUE_MAX = 64 * 1024, /* of what is answered */
};

/* What is asked. Strings are borrowed, and empty where they were not given. */
struct input_ask {
    enum input_kind kind;
    struct str title, message, placeholder, prefill;
    const struct str *options;
    size_t n_options;
    int64_t timeout_ms; /* that the agent waits; zero: as long as it has */
    struct str handle;  /* by which the agent's road knows it; told nobody */
};

struct input_answer {
    bool is_cancelled; /* the dialog was closed: neither of these */
    bool has_value, has_confirmed;
    struct str value;
    bool confirmed;
};

enum input_outcome {
    INPUT_OPEN,
    INPUT_ANSWERED,
    INPUT_CANCELLED, /* by somebody */
    INPUT_UNHEARD,   /* nobody listened for too long */
    INPUT_EXPIRED,   /* the agent does not wait any more */
    INPUT_WITHDRAWN, /* its attempt, its task or the root's is over */
};

struct input {
    struct id id;      /* input_… */
    struct id task_id; /* that the agent works on */
    struct id root_id;
    int64_t turn, attempt; /* of task_id */
    char agent[AGENT_NAME_MAX + 1];
    struct input_ask ask;    /* empty but for its kind once it is over */
    int64_t at_ms, until_ms; /* Unix time; no longer than its task has */
    int64_t number;          /* of the event that told it to the root's */
    int64_t own_number;      /* and to task_id's, where that is another */
    size_t nth;              /* that its attempt asks, from 1 */
    enum input_outcome outcome;
    char by[PRINCIPAL_NAME_MAX + 1]; /* who answered or cancelled it */
};

/* "select"; "answered". */
struct str input_kind_name(enum input_kind k);
struct str input_outcome_name(enum input_outcome o);

/* Whether it can be asked. ERR_LIMIT, ERR_BAD_REQUEST. */
MUST_USE enum err input_may_be_asked(const struct input_ask *q);

/* Whether a answers q: that and nothing else is said, it is one of the options,
 * short enough, one line. ERR_BAD_REQUEST, ERR_LIMIT, with words. */
MUST_USE enum err input_may_be_answered(const struct input_ask *q,
                                        const struct input_answer *a,
                                        struct why *why);

/* The number of the event that told it on the stream of that task; zero: that
 * is neither who asks nor the root. */
int64_t input_number(const struct input *in, const struct id *task_id);

/* As an object: what is asked, or what came of it. */
void input_write(struct json_out *o, const struct input *in);

#endif
