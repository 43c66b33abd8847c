#ifndef WIRE_CHAT_CHAT_H
#define WIRE_CHAT_CHAT_H

/* chat: requests to the chat endpoint of a model, and its answers.
 *
 *     openai.c      /chat/completions: OpenAI, Gemini, vLLM, Ollama, llama.cpp
 *                   and many more, as far as they have it in common
 *     anthropic.c   /messages: Anthropic and compatible servers
 *
 * The callers (deliver: agents that are models; choose and route: the
 * classifier) build one kind of request and read one kind of answer. Finish
 * reasons and token counts have OpenAI's names in every dialect. Pure; answers
 * are untrusted input. */

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "model/task.h"
#include "model/transports.h"

enum {
    CHAT_USAGE_MAX = 4096, /* bytes kept of "usage" */
    CHAT_NAME_MAX = 256,   /* of "model" */
    CHAT_FINISH_MAX = 32,  /* of "finish_reason" */

    CHAT_CALLS_MAX = 16,   /* tool calls in one answer; more are not made */
    CHAT_CALL_ID_MAX = 64, /* bytes; a longer id is replaced */
    CHAT_CALL_NAME_MAX = 64,
    CHAT_CALLS_BYTES = 2 * 1024 * 1024, /* all their arguments together */

    CHAT_HEADERS_MAX = 4,
    CHAT_MAX_TOKENS = 4096, /* default, where the dialect needs one */
};

/* The tokens that an answer used. */
enum chat_used { CHAT_PROMPT, CHAT_COMPLETION, CHAT_TOTAL, CHAT_USED };
#define CHAT_USED_MAX (1LL << 40) /* larger counts are cut to it */
extern const char *const chat_used_names[CHAT_USED];

/* How to reach an endpoint. Strings are in the arena or constant. */
struct chat_header {
    struct str name, value;
};
struct chat_reach {
    struct str url;
    struct chat_header headers[CHAT_HEADERS_MAX];
    size_t n_headers;
};

/* Fill in *out for `endpoint`, "https://…/v1" with or without the dialect's
 * path behind it; a query stays at the end. An empty key sends no credentials.
 * ERR_NOMEM: the arena's cap. */
MUST_USE enum err chat_reach(struct arena *a, enum model_kind kind,
                             struct str endpoint, struct str key, bool streams,
                             struct chat_reach *out);

struct chat_request {
    enum model_kind kind;
    struct str model;
    struct str system; /* empty: none */
    const struct task_said *history;
    size_t n_history;
    struct str message;
    int64_t max_tokens; /* zero: not sent */
    double temperature; /* below zero: not sent */
    bool streams;
    bool has_tools;    /* tools are offered */
    bool is_last;      /* but must not be called any more */
    struct str rounds; /* earlier tool calls and their answers: messages from
                        * chat_write_round; empty: none */
    struct str schema; /* JSON schema of the object to answer with; empty: an
                        * answer in words. Not together with tools */
    /* Options that not every server of OpenAI's dialect knows: */
    bool wants_usage;         /* stream_options */
    bool has_long_max_tokens; /* send max_completion_tokens */
};

/* Append the request's body to out. */
void chat_write(struct buf *out, const struct chat_request *rq);

/* A piece of a tool call, or a whole one. */
struct chat_piece {
    int64_t index; /* of the call; -1: absent */
    struct str id, name;
    struct str arguments;      /* JSON text, */
    const struct json *object; /* or the object itself; NULL: text */
    bool is_more;              /* it continues a call and never begins one */
};

/* One event's data, or a whole answer. Strings point into the arena or the text
 * and are empty if absent. */
struct chat_word {
    bool is_done; /* the stream ends here */
    struct str text;
    bool has_choice;   /* it is part of an answer, even if empty */
    struct str finish; /* "stop", "length", "tool_calls", … */
    struct str model;
    struct str usage;                /* a JSON object, compact */
    int64_t used[CHAT_USED];         /* -1: absent */
    const struct chat_piece *pieces; /* of tool calls */
    size_t n_pieces;
    bool is_whole; /* each piece is a whole call */
    bool is_error; /* it reports a failure; fetch_complaint reads its words */
    int64_t error_code; /* as an HTTP status; zero: unknown */
};

/* Read one event's data or a whole answer. ERR_BAD_REQUEST or ERR_NOMEM (the
 * arena's cap), with words. */
MUST_USE enum err chat_read(struct arena *a, enum model_kind kind,
                            struct str text, struct chat_word *out,
                            struct why *why);

/* The member that is in every whole answer. */
const char *chat_answer_member(enum model_kind kind);

/* The object that chat_request.schema asked for; NULL if it is in the text. */
const struct json *chat_object(const struct chat_word *w);

/* Tool calls, put together from their pieces. A piece belongs to a call by its
 * index; without one, or if one index is used for several calls, by its id and
 * by whether a name begins a new call. */
struct chat_call {
    int64_t index; /* -1: absent */
    char id[CHAT_CALL_ID_MAX + 1];
    char name[CHAT_CALL_NAME_MAX + 1];
    bool has_bad_name; /* longer than CHAT_CALL_NAME_MAX */
    bool is_cut;       /* its arguments were too long and are dropped */
    struct buf arguments;
};

/* All zero: no calls. */
struct chat_calls {
    struct chat_call list[CHAT_CALLS_MAX];
    size_t n;
    size_t n_more; /* calls beyond CHAT_CALLS_MAX */
    size_t bytes;  /* of all arguments */
};

/* Add the pieces of w. ERR_NOMEM. */
MUST_USE enum err chat_calls_add(struct chat_calls *c,
                                 const struct chat_word *w);
void chat_calls_clear(struct chat_calls *c);

/* The arguments of a call, a JSON object; "{}" if the model gave none. Empty:
 * they are not an object. */
struct str chat_arguments(const struct chat_call *k);

/* Append the messages of one round, after a comma if out is not empty: the
 * assistant's message with the calls in c (and its text, if any), and the
 * result of each call, answers[0] to answers[c->n - 1]. A call whose id is
 * empty or not unique gets an id that is derived from the round. */
void chat_write_round(struct buf *out, enum model_kind kind,
                      struct chat_calls *c, struct str text,
                      const struct str *answers, size_t round);

#endif
