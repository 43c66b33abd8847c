#ifndef MODEL_MSG_H
#define MODEL_MSG_H

/* msg: one message on its walk, from the bytes it came as to the commit that
 * accepts it.
 *
 * One section per room; a room writes its own and only reads the others, so
 * that a dump shows how far it came and who decided what. It lives until the
 * acceptance is committed or refused; after that the task's row is the truth.
 * Everything in it lies in its arena. */

#include "base/arena.h"
#include "base/err.h"
#include "model/agent.h"
#include "model/caller.h"
#include "model/query.h"
#include "model/task.h"
#include "model/tx.h"

enum {
    MSG_TEXT_MAX = 1024 * 1024, /* bytes of `text` */
    MSG_KEY_MAX = 255,          /* idempotency key */
    MSG_CONVERSATION_MAX = 128, /* conversation_id */
    MSG_SKILL_MAX = 128,
    MSG_METADATA_MAX = 64 * 1024, /* bytes of JSON, also of `source` */
    MSG_BODY_HASH_BYTES = 32,
};

struct msg {
    struct arena arena;

    /* Who brought it. */
    struct {
        struct caller caller;
        int64_t at_ms; /* Unix time */
    } in;

    /* speak: what was asked. Empty strings: not given. */
    struct {
        struct str text;
        struct str conversation_id;
        struct str executor; /* the agent's name */
        struct str skill;
        struct str task_id; /* a further turn of this task */
        struct str idempotency_key;
        struct str metadata, source; /* JSON objects as they stand */
        enum task_priority priority;
        int64_t wait_ms;    /* how long the caller waits for the result */
        int64_t timeout_ms; /* how long the task may take; 0: the default */
        bool is_stream;     /* the caller wants events */
        uint8_t body_hash[MSG_BODY_HASH_BYTES]; /* what the key stands for */
    } call;

    /* choose: who gets it. */
    struct {
        struct str agent;
        struct str layer;  /* "explicit" */
        struct str reason; /* a sentence */
        /* Nobody goes by the name that was asked for: those that were
         * probably meant, the likeliest first. */
        const struct str *nearest;
        size_t n_nearest;
    } choice;

    /* task: what it became. */
    struct {
        struct id id; /* task_… */
        struct id message_id;
        struct str conversation_id;
        bool is_repeat; /* the key was known: id is the task of then */
        struct task_entry *claim; /* the room's, from create to settle */
    } task;

    struct tx tx;

    /* walk: where it is on its way. */
    struct {
        struct walk *walk;
        struct query query; /* for a task or a key */
        enum err refused;   /* what to say if the key is nobody's */
        unsigned key_tries;
        bool is_beginning; /* whoever sent it is still in walk_message */
        struct list_node node;
        void (*done)(struct msg *m, void *ctx);
        void *ctx;
    } way;

    /* The outcome in words, where it was refused. */
    enum err err;
    struct why why;
};

/* NULL: memory is gone. */
MUST_USE struct msg *msg_new(const struct caller *caller, int64_t at_ms);
void msg_free(struct msg *m);

#endif
