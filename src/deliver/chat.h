#ifndef DELIVER_CHAT_H
#define DELIVER_CHAT_H

/* chat: the words of OpenAI's /v1/chat/completions, as far as they are common
 * to those who speak it: OpenAI, vLLM, Ollama, llama.cpp, and the many behind
 * them. Pure; what it reads was written by somebody else. */

#include "base/arena.h"
#include "base/buf.h"
#include "model/task.h"

enum {
    CHAT_USAGE_MAX = 4096, /* bytes kept of "usage" */
    CHAT_NAME_MAX = 256,   /* of "model" */
    CHAT_FINISH_MAX = 32,  /* of "finish_reason" */

    CHAT_CALLS_MAX = 16,   /* of tools, in one answer; more are not made */
    CHAT_CALL_ID_MAX = 64, /* bytes; of a longer one is made another */
    CHAT_CALL_NAME_MAX = 64,
    CHAT_CALLS_BYTES = 2 * 1024 * 1024, /* of all their arguments together */
    CHAT_USED = 3, /* figures: prompt, completion and total tokens */
};

struct chat_request {
    struct str model;
    struct str system; /* empty: none */
    const struct task_said *history;
    size_t n_history;
    struct str message;
    int64_t max_tokens; /* zero: not said */
    double temperature; /* below zero: not said */
    bool has_tools;     /* they are offered; */
    bool is_last;       /* but it is to use them no more */
    struct str rounds;  /* what was called and answered before: messages as
                         * they stand, with commas between; empty: none */
    /* What not everybody knows: */
    bool wants_usage;         /* stream_options */
    bool has_long_max_tokens; /* it is called max_completion_tokens */
};

void chat_write(struct buf *out, const struct chat_request *rq);

/* One event's data, or a whole answer. Strings are in the arena or the text,
 * empty where nothing was said. */
struct chat_word {
    bool is_done; /* "[DONE]" */
    struct str text;
    bool has_choice;   /* it is an answer, if only an empty piece of one */
    struct str finish; /* "stop", "length", … */
    struct str model;
    struct str usage;         /* a JSON object, compact */
    int64_t used[CHAT_USED];  /* of it; -1: not said */
    const struct json *calls; /* pieces of calls of tools; NULL: none */
    bool is_whole;            /* and each of them is one */
    bool is_error; /* it says that it failed; fetch_complaint has its words */
    int64_t error_code; /* as a status of HTTP; zero: it does not say */
};

/* ERR_BAD_REQUEST with words, ERR_NOMEM. */
MUST_USE enum err chat_read(struct arena *a, struct str text,
                            struct chat_word *out, struct why *why);

extern const char *const chat_used_names[CHAT_USED];

/* Calls of tools, gathered from their pieces. A piece belongs to a call by its
 * index; where that is not said, or one index is used for several, by its id
 * and by whether a name begins it. */
struct chat_call {
    int64_t index; /* -1: not said */
    char id[CHAT_CALL_ID_MAX + 1];
    char name[CHAT_CALL_NAME_MAX + 1];
    bool has_bad_name; /* longer than one can be */
    bool is_cut;       /* its arguments were too long: they are gone */
    struct buf arguments;
};

/* Zero is none. */
struct chat_calls {
    struct chat_call list[CHAT_CALLS_MAX];
    size_t n;
    size_t n_more; /* that there was no room for */
    size_t bytes;  /* of all arguments */
};

/* ERR_NOMEM. */
MUST_USE enum err chat_calls_add(struct chat_calls *c,
                                 const struct chat_word *w);
void chat_calls_clear(struct chat_calls *c);

/* What a call was given, as an object; empty where it gave nothing: "{}". An
 * empty str: it is no JSON object. */
struct str chat_arguments(const struct chat_call *k);

/* The assistant's message with these calls, behind a comma where there is
 * something already; text empty: it said none. Each has an id of its own in it,
 * one made of the round where what it said is none or not its own. */
void chat_write_calls(struct buf *out, struct chat_calls *c, struct str text,
                      size_t round);
void chat_write_answer(struct buf *out, const struct chat_call *k,
                       struct str text);

#endif
