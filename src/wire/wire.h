#ifndef WIRE_WIRE_H
#define WIRE_WIRE_H

/* wire: the words that agents and we exchange, whatever the road: JSON-RPC 2.0
 * messages, and what is said in them about a task. Over the hub and over a
 * child's pipes they are these messages; over HTTP the body is task.execute's
 * params and the answer task.result's.
 *
 * Reading is strict where it protects us and helpful where it does not: a
 * member that is not known is passed over, since others may know more than we
 * do; one of the wrong type is an error that names it. Pure. Threads: any;
 * nothing here keeps state. */

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "model/delegation.h"
#include "model/task.h"

enum {
    WIRE_BATCH_MAX = 64,                   /* messages in one */
    WIRE_ID_MAX = 128,                     /* bytes of an id, as what it says */
    WIRE_ID_RAW_MAX = 6 * WIRE_ID_MAX + 2, /* and as it stands: "\\u0041…" */
    WIRE_METHOD_MAX = 64,
    WIRE_DEPTH_MAX = 32,      /* of nesting */
    WIRE_ERROR_CODE_MAX = 64, /* of a task that failed, as the agent says */
    WIRE_ERROR_MAX = 2048,    /* in words; what is longer is cut */
};

/* What the specification calls them. */
enum wire_code {
    WIRE_PARSE_ERROR = -32700,
    WIRE_INVALID_REQUEST = -32600,
    WIRE_METHOD_NOT_FOUND = -32601,
    WIRE_INVALID_PARAMS = -32602,
    WIRE_INTERNAL_ERROR = -32603,
    WIRE_OUR_ERROR = -32000, /* data.code says which */
};

/* Of a request. Numbers and strings are compared as strings, and given back as
 * they came. */
struct wire_id {
    struct str raw;  /* JSON as it stands; empty: there is none */
    struct str text; /* "7" for 7 and for "7" */
};

enum wire_kind {
    WIRE_REQUEST,
    WIRE_NOTIFICATION,
    WIRE_RESULT, /* an answer to a request of ours */
    WIRE_ERROR,  /* one that is an error */
    WIRE_BAD,    /* none of them: `why` says what is wrong */
};

struct wire_message {
    enum wire_kind kind;
    struct wire_id id;
    struct str method;
    const struct json *params; /* NULL: none */
    const struct json *result; /* WIRE_RESULT */
    int64_t code;              /* WIRE_ERROR */
    struct str error;          /* WIRE_ERROR: its message */
    const struct json *data;   /* WIRE_ERROR: more about it; NULL: none */
    struct why why;            /* WIRE_BAD */
};

struct wire_batch {
    struct wire_message *list;
    size_t n;
    bool is_array; /* and so is the answer */
};

/* Read one message or a batch. The text must outlive the batch. An id is a
 * string or a whole number; null only of an error that answers what could not
 * be read. One that is not whole enough to be answered (WIRE_BAD) has its id
 * if that could be read. ERR_SYNTAX,
 * ERR_LIMIT (too many, too deep), ERR_BAD_REQUEST (an empty batch, a number
 * that does not fit), ERR_NOMEM,
 * with words in why: then nothing of it was read. What is wrong with one
 * message of a batch is that message's own: WIRE_BAD. */
MUST_USE enum err wire_read(struct arena *a, struct str text,
                            struct wire_batch *out, struct why *why);

/* Writing. Each appends one whole message; an answer to nobody (a NULL or
 * empty id) has id null. `out` may be over afterwards: who sends looks. */

/* {"jsonrpc":"2.0","id":…,"result": … }: write one value in between. */
struct json_out wire_result_open(struct buf *out, const struct wire_id *id);
void wire_close(struct json_out *o);

/* {"jsonrpc":"2.0","method":…,"params": … }; `id` is text of our own, empty:
 * a notification. Write one value in between. */
struct json_out wire_call_open(struct buf *out, struct str id,
                               struct str method);

/* The error of the table: its JSON-RPC code, the words or else the table's,
 * data {"code":"agent_offline", …details' members}. */
void wire_error(struct buf *out, const struct wire_id *id, enum err e,
                struct str words, struct str details);

/* The same with the standard's own code for what is wrong with params. */
void wire_invalid_params(struct buf *out, const struct wire_id *id,
                         struct str words, struct str details);

/* One of the standard's own; `data` is JSON, empty: none. */
void wire_error_of(struct buf *out, const struct wire_id *id,
                   enum wire_code code, struct str words, struct str data);

/* A task, as it is given to its agent: the params of task.execute.
 *
 *   {"task_id","turn","attempt","message","skill_id","session_id",
 *    "deadline_ms","metadata":{"requester","root_user","depth","chain",…}}
 *
 * An envelope is there as it was sent, "envelope":{…}, and the message says the
 * same in words: its context, or "TYPE from FROM about REFERENCE".
 * The sender's own metadata are under metadata.user, so that nobody takes them
 * for ours. skill_id and session_id are null where there is none. */
void wire_execute(struct json_out *o, const struct task *t);

/* "task_…:1", the id of the call that gives it: the attempt, and from the
 * second turn on the turn before it, "task_…:2.1". */
enum { WIRE_EXECUTE_ID_BYTES = ID_BYTES + 24 };
struct str wire_execute_id(const struct task *t,
                           char out[WIRE_EXECUTE_ID_BYTES]);

/* What an agent says of its task. */
struct wire_word {
    struct str task_id;        /* empty where the road says which */
    int64_t turn, attempt;     /* zero: not said */
    struct str text;           /* of a chunk, or the whole answer */
    bool has_text;             /* a result said one, if only an empty one */
    struct task_result result; /* of a result: completed, failed or cancelled;
                                * text and metadata are in it too */
};

/* Which turn it is about: who does not say means the first. */
static inline int64_t wire_turn(const struct wire_word *w)
{
    return w->turn ? w->turn : 1;
}

/* The code that an agent gave its failure, or "agent_failed" where that is
 * none: empty, too long, or with control characters. */
struct str wire_error_code(struct str said);

/* The params of task.chunk: {"task_id","text","turn"?,"attempt"?}. */
MUST_USE enum err wire_chunk_read(const struct json *params,
                                  struct wire_word *out, struct why *why);

/* The params of task.result, or the answer over HTTP: {"task_id","status",
 * "text"?,"error"?,"error_code"?,"metadata"?,"turn"?,"attempt"?}. `error` may
 * be text or {"code","message"}. Strings lie in the tree; metadata are copied
 * into the arena, compact. ERR_BAD_REQUEST with words, ERR_LIMIT, ERR_NOMEM. */
MUST_USE enum err wire_result_read(struct arena *a, const struct json *params,
                                   struct wire_word *out, struct why *why);

/* Tools: what a model may be offered so that it gives work to other agents. The
 * same for those that are models here and for whoever runs their own.
 *
 *   delegate_to_agent  {"agentId","task","mode"?,"timeoutMs"?,"stream"?,
 *                      "skill"?} or {"tasks":[up to 16 of those]}
 *   search_agents      {"query","limit"?}; pi knows it as agent_search, and
 *                      both names are understood of all */

enum wire_tool { WIRE_NO_TOOL, WIRE_DELEGATE, WIRE_SEARCH };
enum wire_form { WIRE_OPENAI, WIRE_ANTHROPIC, WIRE_PI };

enum {
    WIRE_HITS = 5, /* of search_agents, where it does not say */
    WIRE_HITS_MAX = 20,
    WIRE_QUERY_MAX = 1000,                    /* bytes of its query */
    WIRE_TOOL_WAIT_MAX_MS = 24 * 3600 * 1000, /* of timeoutMs */
};

enum wire_tool wire_tool_of(struct str name);

/* All of them as a list, as OpenAI's "tools" has them ({"type":"function",
 * "function":{"name","description","parameters"}}) or Anthropic's ({"name",
 * "description","input_schema"}); pi's is Anthropic's with its own names. */
void wire_tools(struct json_out *o, enum wire_form form);

/* What search_agents asks for: what delegate_to_agent does is read by speak, as
 * agent.delegate. A member that is null counts as not there: models fill in
 * what they do not want to say. ERR_BAD_REQUEST, ERR_LIMIT with words that say
 * what would be right. The query lies in the tree. */
struct wire_search {
    struct str query;
    int64_t limit;
};
MUST_USE enum err wire_search_read(const struct json *arguments,
                                   struct wire_search *out, struct why *why);

/* What a model is told of a call that came to nothing: {"status":"error",
 * "error":words}. */
void wire_tool_error(struct buf *out, struct str words);

#endif
