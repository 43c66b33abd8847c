#ifndef CALLS_SHARE_H
#define CALLS_SHARE_H

/* share: what is read and said in the same way whether it is asked by HTTP or
 * on the hub. Threads: the loop's. */

#include "access/access.h"
#include "deliver/deliver.h"
#include "gate/gate.h"
#include "ledger/ledger.h"
#include "model/advice.h"
#include "model/msg.h"
#include "registry/registry.h"
#include "route/route.h"
#include "speak/speak.h"
#include "task/task.h"

/* Read a message: POST /api/messages' body, and a key that came beside it
 * (empty: none). As speak_message, and what a key stands for is in it. */
MUST_USE enum err share_message(struct msg *m, struct str body, struct str key);

/* What a key of m stands for: the hash of these bytes. ERR_NOMEM. */
MUST_USE enum err share_hash(struct msg *m, struct str meaning);

/* Read an envelope, and find out whether who calls may send it. `self` is the
 * agent that the connection is; empty: none. ERR_FROM: it says it is from
 * somebody else. */
struct share_sender {
    const struct registry *registry;
    const struct access *access;
    struct gate_limits limits; /* broker_limits */
    struct str self;
};
MUST_USE enum err share_envelope(struct msg *m, struct str body,
                                 const struct share_sender *by);

/* What was decided of an envelope that was taken: the members of the answer.
 * One that came before, by its sender's own id, is dropped, and the answer
 * names the task of then. */
void share_passed(struct json_out *o, const struct msg *m);

/* The details of the error that m was refused with; may be nothing. */
void share_message_details(struct buf *out, const struct msg *m);

enum { SHARE_DETAILS_MAX = 8 * 1024 }; /* of these */

/* How m was decided, as JSON for speak_answer, to be freed; NULL: no memory.
 * The same of one that is in the store: the query is begun anew where it was
 * used before, and its row read with a scratch that nothing else is in. NULL:
 * also where it cannot be read. */
MUST_USE char *share_decision_keep(const struct router *r, const struct msg *m);
/* Without what depends on what others do: the numbers of the registry's and of
 * learning's states, which count everybody's changes, and types of query that
 * all orgs shared. Admins are told all. */
void share_decision_for(struct decision *d, const struct caller *c);
void share_decision_ask(struct query *q, bool *is_used, const struct id *id);
MUST_USE char *share_decision_of(const struct row *row, struct arena *scratch);

/* What a task's tree and its conversation have cost: for the payer and admins,
 * where anything has ever cost anything. Two look-ups of one row each;
 * share_cost is what they found, and it is said where that is not nothing. */
struct share_cost {
    int64_t tree, conversation; /* micro-units */
};
bool share_cost_is_for(const struct ledger *l, const struct task *t,
                       const struct caller *c);
void share_cost_ask(const struct task *t, struct query *tree,
                    struct query *conversation);
struct share_cost share_cost(const struct query *tree,
                             const struct query *conversation);
void share_cost_say(struct json_out *o, const struct share_cost *cost,
                    const struct task *t);

/* The member "budget_warnings" of an answer about t, where there are any that c
 * may hear of. */
void share_budget_warnings(struct json_out *o, const struct ledger *l,
                           const struct task *t, const struct caller *c,
                           int64_t now_ms);

#define SHARE_KEY_IS_OLD                                                  \
    STR("this idempotency key was used, and its task is no longer kept; " \
        "to send the message again take a new key")

/* A delegation that is not in memory any more. */
void share_delegation_ask(struct query *q, bool *is_used, struct str key);

/* A task, wherever it is. The query is begun anew where it was used before. */
void share_look_ask(struct query *q, bool *is_used, struct str task_id);

/* The query is back. OK: *out is the task, from memory or else as `row`; NULL:
 * it moved meanwhile, look again (n_looks begins at zero). What the query
 * failed with, or ERR_NOT_FOUND. */
MUST_USE enum err share_look_row(const struct tasks *tasks,
                                 const struct query *q, struct str task_id,
                                 unsigned *n_looks, struct task *row,
                                 const struct task **out);

/* Whether the turn of that message (empty: any) is the one that t is at; and
 * if not, that turn, and the task as it was in it. */
bool share_look_is_current(const struct id *message_id, const struct task *t);
void share_turn_ask(struct query *q, bool *is_used, const struct task *t,
                    const struct id *message_id);
void share_number_ask(struct query *q, bool *is_used, const struct task *t,
                      int64_t turn); /* the same by its number */
struct task share_turn(const struct task *t, const struct query *turn,
                       const struct id *message_id);

enum { SHARE_HITS_BYTES = 4 * 1024 * 1024 }; /* no further agent after this */

/* A search as it was asked for, through these eyes. */
struct search share_search(const struct speak_search_call *s,
                           const struct eyes *eyes);

/* A copy of its strings, to be freed. NULL: no memory. */
MUST_USE char *share_search_keep(struct speak_search_call *kept,
                                 const struct speak_search_call *s);

/* The answer to it. */
void share_hits(struct json_out *out, struct registry *registry,
                const struct speak_search_call *s,
                const struct search_result *r);

/* What is wrong with a card, as details. */
void share_problems(struct buf *out, const struct card_problems *p);

/* Warnings about a's card, which name no agent that these eyes do not see. Only
 * for those who may see all of the card. */
void share_advice(struct registry *r, const struct deliver *d,
                  const struct agent *a, const struct eyes *eyes,
                  struct advice *out);

#endif
