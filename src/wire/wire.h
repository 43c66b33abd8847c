#ifndef WIRE_WIRE_H
#define WIRE_WIRE_H

/* wire: the messages that agents and the server exchange on every transport:
 * JSON-RPC 2.0, and the parameters that describe a task. The hub and a child's
 * pipes carry these messages as they are; over HTTP the body is the params of
 * task.execute, and the answer is the params of task.result.
 *
 * Unknown members are ignored, so that a newer peer can send more. A member of
 * the wrong type is an error that names the member. Pure. Threads: any; there
 * is no state. */

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "model/delegation.h"
#include "model/task.h"

enum {
    WIRE_BATCH_MAX = 64,                   /* messages in a batch */
    WIRE_ID_MAX = 128,                     /* bytes of an id after unescaping */
    WIRE_ID_RAW_MAX = 6 * WIRE_ID_MAX + 2, /* and as it was sent: "\\u0041…" */
    WIRE_METHOD_MAX = 64,
    WIRE_DEPTH_MAX = 32,      /* of nesting */
    WIRE_ERROR_CODE_MAX = 64, /* bytes of a failed task's code */
    WIRE_ERROR_MAX = 2048,    /* bytes of its text; a longer one is cut */
};

/* JSON-RPC's error codes. */
enum wire_code {
    WIRE_PARSE_ERROR = -32700,
    WIRE_INVALID_REQUEST = -32600,
    WIRE_METHOD_NOT_FOUND = -32601,
    WIRE_INVALID_PARAMS = -32602,
    WIRE_INTERNAL_ERROR = -32603,
    WIRE_OUR_ERROR = -32000, /* data.code has our own code */
};

/* A request's id. Ids are compared by text and sent back as raw. */
struct wire_id {
    struct str raw;  /* the JSON as it was sent; empty: no id */
    struct str text; /* "7" for 7 and for "7" */
};

enum wire_kind {
    WIRE_REQUEST,
    WIRE_NOTIFICATION,
    WIRE_RESULT, /* the answer to a request of ours */
    WIRE_ERROR,  /* the same, with an error */
    WIRE_BAD,    /* not a valid message: `why` says what is wrong */
};

struct wire_message {
    enum wire_kind kind;
    struct wire_id id;
    struct str method;
    const struct json *params; /* NULL: none */
    const struct json *result; /* NULL: absent */
    int64_t code;              /* WIRE_ERROR */
    struct str error;          /* WIRE_ERROR: its message */
    const struct json *data;   /* WIRE_ERROR: its data; NULL: absent */
    struct why why;            /* WIRE_BAD */
};

struct wire_batch {
    struct wire_message *list;
    size_t n;
    bool is_array; /* then the answer is an array too */
};

/* Read one message or a batch. The text must outlive the batch. An id is a
 * string or a whole number, or null in an error that answers an unreadable
 * request.
 *
 * An invalid message is WIRE_BAD, with its id if that was readable; the other
 * messages of a batch stay valid. On error `out` is empty and why has words:
 * ERR_SYNTAX, ERR_LIMIT (too many messages, nested too deep), ERR_BAD_REQUEST
 * (an empty batch, a number that does not fit), ERR_NOMEM (the arena's cap). */
MUST_USE enum err wire_read(struct arena *a, struct str text,
                            struct wire_batch *out, struct why *why);

/* Writing. Each function appends one whole message. A NULL or empty id is
 * written as null. The caller checks out->over afterwards. */

/* {"jsonrpc":"2.0","id":…,"result": … }: write one value, then wire_close. */
struct json_out wire_result_open(struct buf *out, const struct wire_id *id);
void wire_close(struct json_out *o);

/* {"jsonrpc":"2.0","method":…,"params": … }: write one value, then wire_close.
 * `id` is our own text; empty makes a notification. */
struct json_out wire_call_open(struct buf *out, struct str id,
                               struct str method);

/* An error of the table: its JSON-RPC code, `words` (empty: the table's), and
 * data {"code":"agent_offline", …members of details}. `details` is a JSON
 * object or empty. */
void wire_error(struct buf *out, const struct wire_id *id, enum err e,
                struct str words, struct str details);

/* ERR_BAD_REQUEST with JSON-RPC's own code for invalid params. */
void wire_invalid_params(struct buf *out, const struct wire_id *id,
                         struct str words, struct str details);

/* An error with one of JSON-RPC's own codes. `data` is JSON; empty: none. */
void wire_error_of(struct buf *out, const struct wire_id *id,
                   enum wire_code code, struct str words, struct str data);

/* Write a task for its agent: the params of task.execute.
 *
 *   {"task_id","turn","attempt","message","skill_id","session_id",
 *    "deadline_ms","metadata":{"requester","root_user","depth","chain",…}}
 *
 * An envelope is passed on unchanged as "envelope":{…}; then the message says
 * the same in words: the envelope's context, or "TYPE from FROM about
 * REFERENCE". The sender's own metadata are in metadata.user, so that they
 * cannot be mistaken for the server's. skill_id and session_id are null if
 * there is none. */
void wire_execute(struct json_out *o, const struct task *t);

/* The id of the task.execute call: "task_…:1", the attempt, and from the second
 * turn on "task_…:2.1", the turn and the attempt. */
enum { WIRE_EXECUTE_ID_BYTES = ID_BYTES + 24 };
struct str wire_execute_id(const struct task *t,
                           char out[WIRE_EXECUTE_ID_BYTES]);

/* A message from an agent about its task. */
struct wire_word {
    struct str task_id;        /* empty if the transport implies it */
    int64_t turn, attempt;     /* zero: absent */
    struct str text;           /* of a chunk, or the whole answer */
    bool has_text;             /* text was present, perhaps empty */
    struct task_result result; /* of task.result: completed, failed or
                                * cancelled, with text and metadata */
};

/* The turn that the message is about; the first if it does not say. */
static inline int64_t wire_turn(const struct wire_word *w)
{
    return w->turn ? w->turn : 1;
}

/* The code that an agent gave its failure; "agent_failed" if that is empty, too
 * long or has control characters. */
struct str wire_error_code(struct str said);

/* Read the params of task.chunk: {"task_id","text","turn"?,"attempt"?}. Strings
 * point into the tree. ERR_BAD_REQUEST or ERR_LIMIT, with words. */
MUST_USE enum err wire_chunk_read(const struct json *params,
                                  struct wire_word *out, struct why *why);

/* Read the params of task.result, or the answer over HTTP: {"task_id","status",
 * "text"?,"error"?,"error_code"?,"metadata"?,"turn"?,"attempt"?}. `error` is
 * text or {"code","message"}. Strings point into the tree; metadata are copied
 * into the arena as compact JSON. ERR_BAD_REQUEST, ERR_LIMIT or ERR_NOMEM (the
 * arena's cap), with words. */
MUST_USE enum err wire_result_read(struct arena *a, const struct json *params,
                                   struct wire_word *out, struct why *why);

/* The tools that let a model delegate to other agents. Models that are agents
 * here get the same tools as models that their owners run elsewhere.
 *
 *   delegate_to_agent  {"agentId","task","mode"?,"timeoutMs"?,"stream"?,
 *                      "skill"?} or {"tasks":[up to 16 of those]}
 *   search_agents      {"query","limit"?}; pi calls it agent_search, and both
 *                      names are understood from every model */

enum wire_tool { WIRE_NO_TOOL, WIRE_DELEGATE, WIRE_SEARCH };
enum wire_form { WIRE_OPENAI, WIRE_ANTHROPIC, WIRE_PI };

enum {
    WIRE_HITS = 5, /* of search_agents, by default */
    WIRE_HITS_MAX = 20,
    WIRE_QUERY_MAX = 1000,                    /* bytes of its query */
    WIRE_TOOL_WAIT_MAX_MS = 24 * 3600 * 1000, /* of timeoutMs */
};

enum wire_tool wire_tool_of(struct str name);

/* Write all tools as a list: in OpenAI's form ({"type":"function",
 * "function":{"name","description","parameters"}}), in Anthropic's ({"name",
 * "description","input_schema"}), or in pi's, which is Anthropic's with pi's
 * names. */
void wire_tools(struct json_out *o, enum wire_form form);

/* Read the arguments of search_agents. (speak reads those of delegate_to_agent,
 * as agent.delegate.) A member that is null counts as absent, because models
 * fill in every member. The query points into the tree. ERR_BAD_REQUEST or
 * ERR_LIMIT, with words that say what would be right. */
struct wire_search {
    struct str query;
    int64_t limit;
};
MUST_USE enum err wire_search_read(const struct json *arguments,
                                   struct wire_search *out, struct why *why);

/* Write the result of a failed tool call for the model: {"status":"error",
 * "error":words}. */
void wire_tool_error(struct buf *out, struct str words);

#endif
