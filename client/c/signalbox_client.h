#ifndef SIGNALBOX_CLIENT_H
#define SIGNALBOX_CLIENT_H

/* signalbox_client: an agent, or a program that sends messages to agents, in C.
 *
 *     static void on_task(void *ctx, struct sbc_task *t)
 *     {
 *         sbc_chunk(t, "You said: ");
 *         sbc_chunk(t, t->text);
 *     }
 *
 *     const char *card = "{\"name\":\"parrot\",\"description\":\"Echoes\"}";
 *     struct sbc *s = sbc_open("http://127.0.0.1:8787", token);
 *     int failed;
 *
 *     sbc_log(s, sbc_print, NULL);
 *     failed = !s || sbc_register(s, card, on_task, NULL) || sbc_run(s);
 *     sbc_close(s);
 *
 * One `struct sbc` is one connection to one hub. It is opened when there is
 * something to say and opened again whenever it is lost, after a pause that
 * grows from a quarter of a second to half a minute and differs a little each
 * time. Then the agent is registered again, and whatever the hub has not
 * answered is said again: a result is kept until the hub has it on its disk. A
 * task that is delivered again while it is worked on, or while its result is on
 * the way, is not run a second time.
 *
 * Nothing happens by itself: the connection lives while one of the functions
 * below that `wait` runs, and callbacks come from within those. A handler that
 * computes for long calls sbc_is_cancelled now and then, at least every twenty
 * seconds or so; else the hub takes the agent for dead, and gives its task
 * away again.
 *
 * Threads: one at a time for each `struct sbc`, but for sbc_stop. Signals:
 * SIGPIPE is never caused; sbc_stop may be called from a handler. Looking up a
 * host's name is the system's and blocks. All texts are UTF-8.
 *
 * Link with -lsignalbox_client -lssl -lcrypto (pkg-config signalbox_client). */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SBC_API __attribute__((visibility("default")))

struct sbc;

/* What a function returns; sbc_why says it in words. */
enum sbc_err {
    SBC_OK = 0,
    SBC_NOMEM,      /* no memory */
    SBC_USAGE,      /* the call makes no sense: a card that is no JSON, … */
    SBC_LIMIT,      /* too long, or too many at once */
    SBC_OFFLINE,    /* no connection, and it was not waited for any longer */
    SBC_REFUSED,    /* the hub does not take this token, or this card */
    SBC_TAKEN_OVER, /* another connection is this agent now */
    SBC_ANSWER,     /* the hub answered with an error: sbc_code names it */
    SBC_CANCELLED,  /* the task is over: its result is not needed any more */
    SBC_STOPPED,    /* by sbc_stop */
};

enum {
    SBC_TASKS_MAX = 1024,              /* that an agent has at once */
    SBC_SENDS_MAX = 1024,              /* messages that wait for their result */
    SBC_TEXT_MAX = 1024 * 1024,        /* bytes of a text that is said */
    SBC_MESSAGE_MAX = 8 * 1024 * 1024, /* of a message of the hub */
    SBC_KEPT_MAX = 64 * 1024 * 1024, /* of results that are not answered yet */
    SBC_CALL_MS = 30000,             /* how long an answer is waited for */
    SBC_LINGER_MS = 2000, /* how long sbc_close waits for those of results */
};

/* Life. */

/* The url of the server: http, https, ws or wss; the path is /hub if there is
 * none. NULL takes it from SIGNALBOX_URL, else http://127.0.0.1:8787, and a
 * NULL token from SIGNALBOX_TOKEN; SIGNALBOX_CA names a file as sbc_trust takes
 * it. Does not connect yet. NULL: no memory, or no such url or file. */
SBC_API struct sbc *sbc_open(const char *url, const char *token);

/* Says goodbye, once what was said has been answered or after SBC_LINGER_MS.
 * NULL is fine. Not from a callback. */
SBC_API void sbc_close(struct sbc *s);

/* Trust the certificates of that file, in PEM, instead of the system's. */
SBC_API enum sbc_err sbc_trust(struct sbc *s, const char *ca_file);

/* What went wrong last, in words, and its code: one of docs/protocol.md's when
 * the hub said so ("not_allowed"), or "unauthenticated", "unreachable",
 * "taken_over", "timeout", "disconnected", "failed" (a delegation was); else it
 * is empty. Valid until the next call. */
SBC_API const char *sbc_why(const struct sbc *s);
SBC_API const char *sbc_code(const struct sbc *s);

/* Whether the connection is there, and the agent registered if there is one. */
SBC_API int sbc_is_connected(const struct sbc *s);

/* Hear what happens to the connection, in words for a person: that the agent is
 * there, that it was lost, is tried again, has ended for good. Nothing is
 * printed but by sbc_print, which writes a line on stderr. A NULL that sbc_open
 * returned is told of at once. */
typedef void sbc_logger(void *ctx, const char *line);
SBC_API void sbc_log(struct sbc *s, sbc_logger *log, void *ctx);
SBC_API void sbc_print(void *ctx, const char *line);

/* Being an agent. */

/* A task to work on. The fields are there to be read, as long as the task is
 * the handler's: until the handler returns, or with sbc_keep until it was told
 * done or failed. */
struct sbc_task {
    const char *id;
    const char *text; /* what is asked; a NUL stands behind it */
    size_t text_bytes;
    const char *skill;        /* NULL: none was named */
    const char *conversation; /* NULL: it is in none */
    const char *metadata;     /* a JSON object: requester, depth, … */
    const char *envelope;     /* a JSON object, as it was sent; NULL: it was not
                               * sent as an envelope */
    int64_t turn;             /* 1, and more when it was gone on with */
    int64_t attempt;          /* 1, and more when it was delivered again */
    int64_t deadline_ms;      /* Unix time; zero: none */
    void *user;               /* the handler's own */
};

/* Works on t. Returning without having told done or failed means done, and the
 * chunks are the answer. Only one runs at a time; tasks that come meanwhile
 * wait their turn. */
typedef void sbc_handler(void *ctx, struct sbc_task *t);

/* Become that agent. The card is a JSON object with a "name" and a
 * "description" at least: without a name it is SBC_USAGE here; what else is
 * wrong with it the server says, and then it is SBC_REFUSED from whatever
 * waits. It is copied, and takes effect when the connection is there. After
 * SBC_REFUSED another card may be tried. */
SBC_API enum sbc_err sbc_register(struct sbc *s, const char *card,
                                  sbc_handler *on_task, void *ctx);

/* Work until sbc_stop. Waits. SBC_OK: it was stopped. SBC_REFUSED,
 * SBC_TAKEN_OVER: trying again would not help, and all tasks count as
 * cancelled. */
SBC_API enum sbc_err sbc_run(struct sbc *s);

/* The same for who has a loop of their own: handle what there is, and wait up
 * to so long if there is nothing (-1: however long). Results as sbc_run's;
 * SBC_STOPPED when it was stopped. sbc_fd may be polled for reading: when it
 * is ready, or after a second, call sbc_turn(s, 0). */
SBC_API enum sbc_err sbc_turn(struct sbc *s, int timeout_ms);
SBC_API int sbc_fd(struct sbc *s);

/* Make sbc_run return soon, and everything else that waits. From anywhere, a
 * signal handler or another thread too. It stays stopped. */
SBC_API void sbc_stop(struct sbc *s);

/* A part of the answer. Waits while the hub does not take any more. Of use as
 * long as SBC_OK comes back; SBC_CANCELLED: stop working. What is said while
 * the connection is lost is not shown to who watches, but is part of the
 * answer. */
SBC_API enum sbc_err sbc_chunk(struct sbc_task *t, const char *text);
SBC_API enum sbc_err sbc_chunk_bytes(struct sbc_task *t, const char *p,
                                     size_t n);

/* The end. text NULL: the chunks are the answer. metadata: a JSON object, or
 * NULL. The task is not the caller's any more, unless SBC_USAGE or SBC_LIMIT
 * says that nothing was done; it is ended once, what comes later is ignored
 * until the handler returns. Waits only when SBC_KEPT_MAX bytes of results
 * wait for their answers. */
SBC_API enum sbc_err sbc_done(struct sbc_task *t, const char *text,
                              const char *metadata);

/* It did not work: a short code of your own ("no_such_city") or NULL, and
 * words for the requester. */
SBC_API enum sbc_err sbc_fail(struct sbc_task *t, const char *code,
                              const char *words);

/* Whether its result is not needed any more: it was cancelled, or is over
 * otherwise. Also looks after the connection. */
SBC_API int sbc_is_cancelled(struct sbc_task *t);

/* Go on with it after the handler has returned: it lives until sbc_done or
 * sbc_fail, which is to follow also when it is cancelled. */
SBC_API void sbc_keep(struct sbc_task *t);

/* Asking. */

/* Which agents could do that: the hub's answer, {"agents":[…]}, to be given to
 * free(). limit 0: the hub's own. Waits up to SBC_CALL_MS. NULL: sbc_why. */
SBC_API char *sbc_search(struct sbc *s, const char *query, int limit);

/* Any method of the hub: its result as JSON, to be given to free(). params:
 * JSON, or NULL. Waits up to SBC_CALL_MS. NULL: sbc_why, sbc_code. */
SBC_API char *sbc_call(struct sbc *s, const char *method, const char *params);

/* Of max_cost_micros. */
enum { SBC_COSTS_NOTHING = -1 };

struct sbc_message {
    const char *text;
    size_t text_bytes;        /* zero: up to its NUL */
    const char *to;           /* an agent; NULL: the one that fits best */
    const char *skill;        /* the others may be NULL */
    const char *conversation; /* … */
    const char *priority;     /* URGENT, HIGH, NORMAL, LOW */
    const char *metadata;     /* a JSON object */
    const char *key; /* idempotency: said twice it is one task. NULL: a fresh
                      * one is made, so that nothing is sent twice when the
                      * connection is lost */
    const char *parent_task; /* that it is part of, of an agent: the id of one
                              * that it works on */
    int64_t max_cost_micros; /* what it and all that is delegated because of it
                              * may cost; zero: its price and the server's
                              * allowance, or SBC_COSTS_NOTHING */
};

enum sbc_news_kind {
    SBC_ACCEPTED, /* it is a task now, and will not be lost */
    SBC_CHUNK,    /* a part of the answer */
    SBC_GAP,      /* parts are missing here; the result will be whole */
    SBC_RESULT,   /* the end: status says how. Nothing follows */
    SBC_FAILED,   /* it was not accepted, or is not heard of any more: code and
                   * error say why. Nothing follows */
    SBC_ASIDE,    /* words of another agent, which this one has asked and shows:
                   * `agent` says whose. No part of the answer */
};

/* What becomes of a message. Strings live for the call; those that do not
 * apply are empty. */
struct sbc_news {
    enum sbc_news_kind kind;
    const char *task_id, *agent;
    const char *status; /* completed, failed, cancelled, expired, … */
    const char *text;   /* of a chunk; of a result, the whole */
    size_t text_bytes;
    const char *code, *error;
    const char *json; /* as the hub said it */
};

typedef void sbc_hears(void *ctx, const struct sbc_news *n);

/* Send a message; hear what becomes of it, from within whatever waits. Returns
 * at once. hears may be NULL. When the connection is lost it is sent again
 * with the same key, and the result comes all the same; who has heard parts of
 * the answer before that hears of no more parts. */
SBC_API enum sbc_err sbc_send(struct sbc *s, const struct sbc_message *m,
                              sbc_hears *hears, void *ctx);

/* Send a message from an agent to another: an envelope, a JSON object of "to",
 * "type" and more (docs/protocol.md). What was decided of it is "routing" in
 * the json of SBC_ACCEPTED; then as sbc_send. One without a message_id gets a
 * fresh one, so that nothing is sent twice. */
SBC_API enum sbc_err sbc_send_envelope(struct sbc *s, const char *envelope,
                                       sbc_hears *hears, void *ctx);

/* How many messages that were sent, and delegations, wait for their end: to
 * turn until it is zero. */
SBC_API int sbc_waiting(const struct sbc *s);

/* Giving work to others, as the agent that this is. */

struct sbc_delegation {
    const char *agent, *skill, *message; /* all three are needed */
    size_t message_bytes;                /* zero: up to its NUL */
    const char *session;       /* NULL: that of the task whose handler runs,
                                * unless it has one going on; "": none. The
                                * others may be NULL too */
    const char *task;          /* a further turn of that one */
    const char *parent_task;   /* on whose behalf; NULL: the task whose handler
                                * runs, if one does */
    int64_t timeout_ms;        /* zero: SBC_DELEGATION_MS; below: none */
    int stream;                /* its words are to come as SBC_CHUNK */
    const char *on_disconnect; /* "keep", "cancel" */
    const char *metadata;      /* a JSON object */
    int64_t max_cost_micros;   /* its price at most; zero: not said, or
                                * SBC_COSTS_NOTHING */
};

enum { SBC_DELEGATION_MS = 180000 };

/* Give work to another agent; hear what becomes of it, from within whatever
 * waits: SBC_ACCEPTED, SBC_CHUNK, and at the end SBC_RESULT (status is
 * "completed", or "failed" with the error) or SBC_FAILED. Returns at once.
 * However often the connection is lost, it is one task, and the result comes
 * once; the hub is told that it was had when `hears` has returned. */
SBC_API enum sbc_err sbc_delegate(struct sbc *s, const struct sbc_delegation *d,
                                  sbc_hears *hears, void *ctx);

/* The same, waited for: the text, and unless json is NULL in *json all of it,
 * {"text","metadata","task_id",…}; each to be given to free(). NULL: sbc_why,
 * sbc_code. Other callbacks are called meanwhile, but no handler of a task. */
SBC_API char *sbc_delegate_wait(struct sbc *s, const struct sbc_delegation *d,
                                char **json);

/* The results of delegations without a waiting caller, those with mode
 * "async" and those of a process that was here before (SBC_RESULT), and their
 * words (SBC_CHUNK). Zero means that it was had; else the hub keeps it and
 * tells it again on the next connection. Without one of these it does so too.
 * To be set before the connection is there. */
typedef int sbc_takes(void *ctx, const struct sbc_news *n);
SBC_API void sbc_on_delegation(struct sbc *s, sbc_takes *takes, void *ctx);

/* The tool delegate_to_agent: {"agentId","task","mode","timeoutMs","stream",…}
 * or a list of up to 16, as JSON. The answer, {"status","response",
 * "sessionKey","task_id"}, or a list of those; to be given to free(). Waits as
 * long as they may take. Is not said again when the connection is lost: that
 * is "disconnected". What streams goes to sbc_on_delegation meanwhile. */
SBC_API char *sbc_delegate_to_agent(struct sbc *s, const char *what);

/* How that delegation is now, as JSON. Waits up to SBC_CALL_MS. */
SBC_API char *sbc_delegation_get(struct sbc *s, const char *session_key);

/* The tools as JSON Schemas, for those who have a model of their own, as
 * "openai" or as "anthropic" takes them; NULL: both, by these names. To be
 * given to free(). Waits up to SBC_CALL_MS, on a connection of its own. */
SBC_API char *sbc_tools(struct sbc *s, const char *format);

#ifdef __cplusplus
}
#endif
#endif
