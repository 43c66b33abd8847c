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
#include "model/decision.h"
#include "model/delegation.h"
#include "model/envelope.h"
#include "model/pass.h"
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

/* What choosing waits for. */
enum choose_need {
    NEEDS_NOTHING,
    NEEDS_CONVERSATION, /* which agent the conversation has: known.has_… */
    NEEDS_CANDIDATES,   /* the signals of every agent */
    NEEDS_FULL_VECTOR,  /* the candidates by the transformer: the table is not
                         * sure */
    NEEDS_INTENT,       /* the classifier's answer */
};

struct hire_possible {
    struct id id, root_id;
    int64_t used; /* by its tree */
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
        struct str trace;            /* struct task's */
        struct str metadata, source; /* JSON objects as they stand */
        enum task_priority priority;
        int64_t wait_ms;    /* how long the caller waits for the result */
        int64_t timeout_ms; /* how long the task may take; 0: the default */
        bool is_stream;     /* the caller wants events */
        bool has_max_cost;  /* they said what it may cost: */
        int64_t max_cost_micros;
        struct str quote; /* dec_…, as POST /api/route gave it */
        const struct envelope *envelope; /* it came as one; NULL: a person's
                                          * message, or like one */
        bool has_timestamp;              /* the envelope said when */
        uint8_t body_hash[MSG_BODY_HASH_BYTES]; /* what the key stands for */
    } call;

    /* route: what was fetched so that choose can decide. */
    struct {
        bool has_conversation;
        struct str had;      /* the name that the conversation's agent went by;
                              * empty: it has none */
        struct str stuck_to; /* the same, but empty where somebody else's agent
                              * goes by that name now */
        struct id decision;  /* that had put it there; empty: none */
        bool has_had_price; /* what the last message there has cost is known: */
        int64_t had_price;  /* micro-units */
        const struct decision *earlier; /* the same in full, where this one
                                         * takes the conversation from it */

        bool has_candidates;
        struct candidate *candidates; /* everyone that could get it, in the
                                       * order of the names; borrowed until the
                                       * answer, not in the arena */
        size_t n_candidates;
        /* Whether an agent can be sent anything just now: asked of those alone
         * that would be among the best. NULL: all can. */
        bool (*is_there)(void *ctx, const struct agent *a);
        void *is_there_ctx;
        bool is_share_spent;  /* strangers have had their share of this org's
                               * messages (choose/share.c) */
        bool is_small_talk;   /* choose/small_talk.c */
        int64_t n_seen;       /* agents that the requester sees, also those that
                               * cannot be sent anything just now */
        bool is_recorded;     /* they are those of a decision that was made
                               * before: what is known of them stays */
        int64_t n_unrecorded; /* and there were so many more, none of them among
                               * the best DECISION_CANDIDATES_MAX */
        struct str vector;    /* of the text, packed; empty: there is none */
        struct str model, model_hash;
        struct why no_vector; /* why there is none; else empty */
        enum tier tier;       /* that made it */
        bool may_ask_full;    /* it is the table's, and the transformer was not
                               * asked yet */
        struct why no_full;   /* why the transformer was not heard, where it was
                               * to be; else empty */
        int64_t type;         /* of query; zero: none */
        int64_t registry_version, learn_version;

        bool has_intent;
        struct intent_answer intent;
        double chance;           /* 0 to 1, for exploring */
        int64_t decide_us;       /* spent choosing so far */
        struct routing *routing; /* route's own, from its answer to its end */
    } known;

    /* choose: who gets it. */
    struct {
        enum choose_need needs;
        enum layer layer;
        struct str agent;
        struct str skill;  /* the nearest one of a semantic choice */
        struct str text;   /* what the agent is told: without its prefix; empty:
                            * the text as it is */
        struct str reason; /* a sentence */
        double score, margin;
        double threshold; /* that the score was held against */
        enum band band;
        bool is_by_example; /* as in struct decision */
        bool is_unsure;
        /* The best of those that fit and cost more than the sender has agreed
         * to; NULL: none, or the chosen one was better all the same. */
        const struct candidate *unpaid;
        enum unsure_policy unsure; /* that a refused message was subject to */
        bool is_explored;
        bool is_switch; /* of a conversation that had another agent */
        const struct candidate *candidates; /* the best, best first */
        size_t n_candidates;
        int64_t n_considered;
        struct id id; /* dec_…, given by route */
        /* Nobody goes by the name that was asked for: those that were
         * probably meant, the likeliest first. */
        const struct str *nearest;
        size_t n_nearest;
    } choice;

    /* hire: on whose behalf, where an agent asks and not a person. */
    struct {
        struct str agent; /* who delegates: who the line is of, never who the
                           * words say; empty: a person asks */
        struct str parent_id; /* the work of theirs that this is part of */
        /* Or one of these, of one payer, where it was not said which: the
         * parent once it is known which has the least left. */
        struct hire_possible *parents;
        size_t n_parents; /* zero: it was said, or there is but one */
        size_t at;        /* those looked at so far */
        /* What it calls the work it is part of, where nothing that they work on
         * is called so, and who would pay: it must not be another's. Empty: it
         * is in hand, or known not to be. */
        struct str session, payer;
        struct delegation_wish wish;
        struct str for_user; /* whom an admin's agent that works on nothing says
                              * it is for; empty: its creator */
        /* Filled by hire_ask; of a person's, root_user by walk. */
        struct str root_id, root_user; /* root_id empty: this is the root */
        struct str chain;              /* JSON, as the task's */
        int64_t depth;
        struct id tree;         /* as the parent's; empty: there is none, or it
                                 * is from before trees had ceilings */
        int64_t ceiling_micros; /* of that tree */
        struct id key;          /* del_…, the sessionKey */
        bool is_repeat;         /* the same request while it is kept: task.id
                                 * and key are those of then */
        bool is_behind;         /* and that is not known to be durable yet */
        struct list_node node;  /* the room's: behind that one */
        struct hire *claim;     /* the room's, from ask to settle */
    } hire;

    /* ledger: what it costs. */
    struct {
        struct str skill; /* that is run; empty: none in particular */
        int64_t price_micros;
        struct str payer, payee; /* names of users; no payee: the house */
        struct str root;         /* whose budget it is of; empty: its own */
        struct str org;          /* the payer's, where it costs something;
                                  * empty: none */
        struct id tree;          /* whose ceiling; empty: its own */
        int64_t ceiling_micros;  /* of all that comes of the message that the
                                  * tree began with */
        struct {
            bool is_given;
            int64_t micros; /* the price that was promised */
            struct str creator;
            int64_t created_ms; /* of the agent that was meant */
        } quote;
        int64_t needed_micros; /* the ceiling that would be enough, where it
                                * was not and this is known; else zero */
    } ledger;

    /* broker: whether it may go now. */
    struct {
        struct pass pass;
        struct envelope envelope;   /* the message as the gate saw it */
        struct id escalation_id;    /* esc_…; empty: nobody was asked */
        bool is_untold;             /* it is not in the feed */
        struct broker_claim *claim; /* the room's, from ask to settle */
        struct batch *batch; /* likewise: what it is made of; NULL: a message
                              * that somebody sent */
    } gate;

    /* task: what it became. */
    struct {
        struct id id; /* task_… */
        struct id message_id;
        int64_t turn;
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
        unsigned route_tries; /* somebody else changed the conversation */
        bool is_beginning;    /* whoever sent it is still in walk_message */
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
