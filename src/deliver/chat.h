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
};

struct chat_request {
    struct str model;
    struct str system; /* empty: none */
    const struct task_said *history;
    size_t n_history;
    struct str message;
    int64_t max_tokens; /* zero: not said */
    double temperature; /* below zero: not said */
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
    struct str usage; /* a JSON object, compact */
    bool is_error; /* it says that it failed; fetch_complaint has its words */
    int64_t error_code; /* as a status of HTTP; zero: it does not say */
};

/* ERR_BAD_REQUEST with words, ERR_NOMEM. */
MUST_USE enum err chat_read(struct arena *a, struct str text,
                            struct chat_word *out, struct why *why);

#endif
