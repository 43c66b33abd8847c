#ifndef MODEL_INPUT_H
#define MODEL_INPUT_H

/* input: a question that an agent asks people while it works on a task, and
 * their answer.
 *
 * An agent's program shows a dialog. It is sent to the listeners of its task
 * and of the root task, one of them answers, and the program continues. An
 * input lives only in memory: the program that asks does not survive the server
 * either. Threads: any; constants and the caller's data only. */

#include "base/err.h"
#include "base/id.h"
#include "base/json.h"
#include "model/agent.h"
#include "model/caller.h"

enum input_kind {
    INPUT_SELECT = 1, /* one of the options */
    INPUT_CONFIRM,    /* yes or no */
    INPUT_TEXT,       /* a line */
    INPUT_EDITOR,     /* several lines, possibly prefilled */
};

enum {
    INPUT_OPTIONS_MAX = 100,
    INPUT_BYTES_MAX = 64 * 1024, /* of all its texts together */
    INPUT_VALUE_MAX = 64 * 1024, /* of an answer */
};

/* The question. Strings are borrowed, and empty if not given. */
struct input_ask {
    enum input_kind kind;
    struct str title, message, placeholder, prefill;
    const struct str *options;
    size_t n_options;
    int64_t timeout_ms; /* how long the agent waits; zero: as long as it can */
    struct str handle;  /* identifies it on the agent's transport; never sent
                         * to clients */
};

struct input_answer {
    bool is_cancelled; /* the dialog was closed without an answer */
    bool has_value, has_confirmed;
    struct str value;
    bool confirmed;
};

enum input_outcome {
    INPUT_OPEN,
    INPUT_ANSWERED,
    INPUT_CANCELLED, /* by a person */
    INPUT_UNHEARD,   /* there was no listener for too long */
    INPUT_EXPIRED,   /* the agent stopped waiting */
    INPUT_WITHDRAWN, /* its attempt, its task or the root task ended */
};

struct input {
    struct id id;      /* input_… */
    struct id task_id; /* the task that the agent works on */
    struct id root_id;
    int64_t turn, attempt; /* of task_id */
    char agent[AGENT_NAME_MAX + 1];
    struct input_ask ask;    /* only its kind is kept once it has ended */
    int64_t at_ms, until_ms; /* Unix time; limited by its task's deadline */
    int64_t number;          /* of its event on the root task's stream */
    int64_t own_number;      /* and on task_id's stream, if that is another */
    size_t nth; /* position among its attempt's questions, from 1 */
    enum input_outcome outcome;
    char by[PRINCIPAL_NAME_MAX + 1]; /* the user who answered or cancelled it */
};

/* "select"; "answered". */
struct str input_kind_name(enum input_kind k);
struct str input_outcome_name(enum input_outcome o);

/* Whether the question is acceptable. ERR_LIMIT, ERR_BAD_REQUEST. */
MUST_USE enum err input_may_be_asked(const struct input_ask *q);

/* Whether a answers q: exactly the expected member, one of the options, short
 * enough, one line. ERR_BAD_REQUEST, ERR_LIMIT, with a message. */
MUST_USE enum err input_may_be_answered(const struct input_ask *q,
                                        const struct input_answer *a,
                                        struct why *why);

/* The number of its event on the stream of that task; zero if the task is
 * neither the asking one nor the root. */
int64_t input_number(const struct input *in, const struct id *task_id);

/* As an object: the open question, or its outcome. */
void input_write(struct json_out *o, const struct input *in);

#endif
