#ifndef CHAT_H
#define CHAT_H

/* chat: what is said to an endpoint of models, and what it answers, in the
 * dialect that it speaks.
 *
 *     openai.c      /chat/completions: OpenAI, Gemini, vLLM, Ollama, llama.cpp
 *                   and many more, as far as it is common to them
 *     anthropic.c   /messages: Anthropic, and whoever does as they do
 *
 * Whoever asks (deliver: agents that are models; choose and route: the
 * classifier) says what it wants once, and reads one kind of answer. Finish
 * reasons and counts of tokens have OpenAI's names whoever said them. Pure;
 * what it reads was written by somebody else. */

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "model/roads.h"
#include "model/task.h"

enum {
    CHAT_USAGE_MAX = 4096, /* bytes kept of "usage" */
    CHAT_NAME_MAX = 256,   /* of "model" */
    CHAT_FINISH_MAX = 32,  /* of "finish_reason" */

    CHAT_CALLS_MAX = 16,   /* of tools, in one answer; more are not made */
    CHAT_CALL_ID_MAX = 64, /* bytes; of a longer one is made another */
    CHAT_CALL_NAME_MAX = 64,
    CHAT_CALLS_BYTES = 2 * 1024 * 1024, /* of all their arguments together */

    CHAT_HEADERS_MAX = 4,
    CHAT_MAX_TOKENS = 4096, /* where nobody says how many, and one must */
};

/* The tokens that an answer took. */
enum chat_used { CHAT_PROMPT, CHAT_COMPLETION, CHAT_TOTAL, CHAT_USED };
#define CHAT_USED_MAX (1LL << 40) /* no answer takes more of any */
extern const char *const chat_used_names[CHAT_USED];

/* How to reach an endpoint. In the arena, but for what is constant. */
struct chat_header {
    struct str name, value;
};
struct chat_reach {
    struct str url;
    struct chat_header headers[CHAT_HEADERS_MAX];
    size_t n_headers;
};

/* `endpoint` is "https://…/v1", with or without the dialect's path behind it; a
 * query stays at the end. key: empty: none. ERR_NOMEM. */
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
    int64_t max_tokens; /* zero: not said */
    double temperature; /* below zero: not said */
    bool streams;
    bool has_tools;    /* they are offered; */
    bool is_last;      /* but it is to use them no more */
    struct str rounds; /* what was called and answered before: messages as
                        * they stand, with commas between; empty: none */
    struct str schema; /* of the one object that it is to answer with; empty:
                        * it answers in words. Not with tools */
    /* What not everybody who speaks OpenAI's knows: */
    bool wants_usage;         /* stream_options */
    bool has_long_max_tokens; /* it is called max_completion_tokens */
};

void chat_write(struct buf *out, const struct chat_request *rq);

/* A piece of a call of a tool, or all of one. */
struct chat_piece {
    int64_t index; /* of the call; -1: not said */
    struct str id, name;
    struct str arguments;      /* text of JSON; */
    const struct json *object; /* or the object itself; NULL: not */
    bool is_more;              /* it never begins a call */
};

/* One event's data, or a whole answer. Strings are in the arena or the text,
 * empty where nothing was said. */
struct chat_word {
    bool is_done; /* nothing comes behind it */
    struct str text;
    bool has_choice;   /* it is an answer, if only an empty piece of one */
    struct str finish; /* "stop", "length", "tool_calls", … */
    struct str model;
    struct str usage;                /* a JSON object, compact */
    int64_t used[CHAT_USED];         /* -1: not said */
    const struct chat_piece *pieces; /* of calls of tools */
    size_t n_pieces;
    bool is_whole; /* each of them is a call */
    bool is_error; /* it says that it failed; fetch_complaint has its words */
    int64_t error_code; /* as a status of HTTP; zero: it does not say */
};

/* ERR_BAD_REQUEST with words, ERR_NOMEM. */
MUST_USE enum err chat_read(struct arena *a, enum model_kind kind,
                            struct str text, struct chat_word *out,
                            struct why *why);

/* The member that every whole answer has. */
const char *chat_answer_member(enum model_kind kind);

/* The object that chat_request.schema asked for; NULL: it is in the words. */
const struct json *chat_object(const struct chat_word *w);

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

/* The messages of one round, behind a comma where there is something already:
 * the assistant's with these calls (text empty: it said none), and what came of
 * each of them, c->n answers. Each call has an id of its own in it, one made of
 * the round where what it said is none or not its own. */
void chat_write_round(struct buf *out, enum model_kind kind,
                      struct chat_calls *c, struct str text,
                      const struct str *answers, size_t round);

#endif
