#ifndef MODEL_MSG_H
#define MODEL_MSG_H

/* msg: one message on its walk, from its bytes to the commit that accepts it.
 *
 * Each module of the walk has one section, which it writes; it reads the
 * others. Exceptions are noted at the member. So a dump shows how far the
 * message came and which module decided what. The message lives until its
 * acceptance is committed or rejected; after that the task's row is the truth.
 * Everything in it is allocated from its arena. */

#include "base/arena.h"
#include "base/err.h"
#include "model/agent.h"
#include "model/caller.h"
#include "model/decision.h"
#include "model/delegation.h"
#include "model/envelope.h"
#include "model/gate_result.h"
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

/* The input that choose needs next. */
enum choose_need {
    NEEDS_NOTHING,
    NEEDS_CONVERSATION, /* the agent of the conversation: known.has_… */
    NEEDS_CANDIDATES,   /* the signals of every agent */
    NEEDS_FULL_VECTOR,  /* the candidates by the transformer: the table is
                         * unsure */
    NEEDS_INTENT,       /* the classifier's answer */
};

struct delegation_possible {
    struct id id, root_id;
    int64_t used; /* by its tree */
};

struct msg {
    struct arena arena;

    /* The origin. */
    struct {
        struct caller caller;
        int64_t at_ms; /* Unix time */
    } in;

    /* speak: the request. Empty strings: not given. */
    struct {
        struct str text;
        struct str conversation_id;
        struct str executor; /* the agent's name */
        struct str skill;
        struct str task_id; /* a further turn of this task */
        struct str idempotency_key;
        struct str trace;            /* as in struct task */
        struct str metadata, source; /* raw JSON objects */
        enum task_priority priority;
        int64_t wait_ms;    /* how long the caller waits for the result */
        int64_t timeout_ms; /* time limit of the task; 0: the default */
        bool is_stream;     /* the caller wants events */
        bool has_max_cost;  /* a cost limit was given: */
        int64_t max_cost_micros;
        struct str quote;                /* dec_…, from POST /api/route */
        const struct envelope *envelope; /* NULL: a person's message, or like
                                          * one */
        bool has_timestamp;              /* the envelope has a timestamp */
        uint8_t body_hash[MSG_BODY_HASH_BYTES]; /* identifies the request
                                                 * body for an idempotency
                                                 * key */
    } call;

    /* route: inputs that were fetched for choose. */
    struct {
        bool has_conversation;
        struct str had;      /* name of the conversation's agent; empty: it
                              * has none */
        struct str stuck_to; /* the same, but empty if the name belongs to
                              * another user's agent by now */
        struct id decision;  /* the one that chose it; may be empty */
        bool has_had_price;  /* the cost of the conversation's last message is
                              * known: */
        int64_t had_price;   /* micro-units */
        const struct decision *earlier; /* that decision in full, if this one
                                         * takes the conversation away from
                                         * it */

        bool has_candidates;
        struct candidate *candidates; /* all agents that could get it, sorted
                                       * by name; borrowed until the answer,
                                       * not in the arena */
        size_t n_candidates;
        /* Whether an agent can be sent anything now; called only for those that
         * would be among the best. NULL: all can. */
        bool (*is_there)(void *ctx, const struct agent *a);
        void *is_there_ctx;
        bool is_share_spent;  /* outsiders have had their share of this org's
                               * messages (choose/layers/choose_share.c) */
        bool is_small_talk;   /* choose/layers/small_talk.c */
        int64_t n_seen;       /* agents that the requester sees, including
                               * those that cannot be sent anything now */
        bool is_recorded;     /* the candidates are those of an earlier
                               * decision and keep their recorded data */
        int64_t n_unrecorded; /* further ones that were not recorded, none
                               * among the best DECISION_CANDIDATES_MAX */
        struct str vector;    /* of the text, packed; may be empty */
        struct str model, model_hash;
        struct why no_vector; /* why there is no vector; otherwise empty */
        enum tier tier;       /* of the vector */
        bool may_ask_full;    /* the vector is the table's, and the
                               * transformer was not asked yet */
        struct why no_full;   /* why the transformer was not used although it
                               * was wanted; otherwise empty */
        int64_t type;         /* of the query; zero: none */
        int64_t registry_version, learn_version;

        bool has_intent;
        struct intent_answer intent;
        double chance;           /* 0 to 1, for exploring */
        int64_t decide_us;       /* spent choosing so far */
        struct routing *routing; /* route's own state, from its start to its
                                  * end */
    } known;

    /* choose: the chosen agent. */
    struct {
        enum choose_need needs;
        enum layer layer;
        struct str agent;
        struct str skill;  /* the nearest one of a semantic choice */
        struct str text;   /* the text for the agent, without its prefix;
                            * empty: unchanged */
        struct str reason; /* a sentence */
        double score, margin;
        double threshold; /* that the score was compared with */
        enum band band;
        bool is_by_example; /* as in struct decision */
        bool is_unsure;
        /* The best of the fitting agents that cost more than the sender has
         * agreed to. NULL: none, or the chosen one was better anyway. */
        const struct candidate *unpaid;
        enum unsure_policy unsure; /* that a rejected message was subject to */
        bool is_explored;
        bool is_switch; /* the conversation had another agent */
        const struct candidate *candidates; /* the best, best first */
        size_t n_candidates;
        int64_t n_considered;
        struct id id; /* dec_…, given by route */
        /* The requested name is unknown: the names that were probably meant,
         * the likeliest first. */
        const struct str *nearest;
        size_t n_nearest;
    } choice;

    /* delegation: for an agent's request. */
    struct {
        struct str agent;     /* the delegating agent: the owner of the
                               * connection, never a name in the text; empty: a
                               * person asks */
        struct str parent_id; /* the delegating task */
        /* Or one of these, all with one payer, if the request does not name it:
         * the parent becomes the one with the least left. */
        struct delegation_possible *parents;
        size_t n_parents; /* zero: it was named, or there is only one */
        size_t at;        /* number checked so far */
        /* The session that the request names as its parent, if none of the
         * agent's tasks has that name, and the user who would pay: it must not
         * belong to another user. Empty: it was found, or is known not to
         * exist. */
        struct str session, payer;
        struct delegation_wish wish;
        struct str for_user; /* for a delegation of an admin's agent without
                              * a task: the user it is for; empty: its
                              * creator */
        /* Filled by delegation_ask; for a person's message walk fills
         * root_user. */
        struct str root_id, root_user; /* root_id empty: this is the root */
        struct str chain;              /* JSON, as in struct task */
        int64_t depth;
        struct id tree;         /* of the parent; empty: there is none, or it
                                 * is older than cost limits of trees */
        int64_t ceiling_micros; /* of that tree */
        struct str talk;        /* the conversation that it began in; empty:
                                 * there is no parent */
        struct id key;          /* del_…, the sessionKey */
        bool is_repeat;         /* repeated while the first is kept: task.id
                                 * and key are those of the first */
        bool is_behind;         /* the first may not be durable yet */
        struct list_node node;  /* delegation's: waits for the first */
        struct live_delegation *claim; /* delegation's, from ask to settle */
    } delegation;

    /* ledger: the cost. */
    struct {
        struct str skill; /* the skill that is run; may be empty */
        int64_t price_micros;
        struct str payer, payee; /* user names; no payee: the platform */
        struct str root;         /* owner of its budget; empty: its own */
        struct str org; /* the payer's, if it costs something; may be empty */
        struct id tree; /* owner of its cost limit; empty: its own */
        int64_t ceiling_micros; /* for all that results from the message at
                                 * the top of the tree */
        struct {
            bool is_given;
            int64_t micros; /* the promised price */
            struct str creator;
            int64_t created_ms; /* of the intended agent */
        } quote;
        int64_t needed_micros; /* the limit that would suffice, if it did not
                                * and this is known; otherwise zero */
    } ledger;

    /* gate: whether it may go now. */
    struct {
        struct gate_result gate_result;
        struct envelope envelope; /* the message as the gate saw it */
        struct id escalation_id;  /* esc_…; empty: no person was asked */
        bool is_untold;           /* not reported in the feed */
        struct gatekeeper_claim *claim; /* gate's, from ask to settle */
        struct batch *batch; /* likewise: the batch it consists of; NULL: an
                              * ordinary message */
    } gate;

    /* task: the task that it became. */
    struct {
        struct id id; /* task_… */
        struct id message_id;
        int64_t turn;
        struct str conversation_id;
        bool is_repeat; /* the key was known: id is the earlier task */
        struct task_entry *claim; /* task's, from create to settle */
    } task;

    struct tx tx;

    /* walk: its progress. */
    struct {
        struct walk *walk;
        struct query query; /* for a task or an idempotency key */
        enum err refused;   /* the error if the key is unknown */
        unsigned key_tries;
        unsigned route_tries; /* retries after another message changed the
                               * conversation */
        bool is_beginning;    /* the sender is still inside walk_message */
        struct list_node node;
        void (*done)(struct msg *m, void *ctx);
        void *ctx;
    } way;

    /* The error and its message, if it was rejected. */
    enum err err;
    struct why why;
};

/* NULL: no memory. */
MUST_USE struct msg *msg_new(const struct caller *caller, int64_t at_ms);
void msg_free(struct msg *m);

#endif
