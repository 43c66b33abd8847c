#ifndef API_SHARE_H
#define API_SHARE_H

/* share: functions that HTTP and the hub have in common. Threads: loop thread
 * only. */

#include "access/access.h"
#include "choose/route.h"
#include "deliver/deliver.h"
#include "gate/rules/rules.h"
#include "ledger/ledger.h"
#include "model/advice.h"
#include "model/msg.h"
#include "registry/registry.h"
#include "speak/speak.h"
#include "task/task.h"

/* Read a message: the body of POST /api/messages, and the idempotency key
 * beside it (empty: none). As speak_message; also sets the hash that the key
 * identifies. */
MUST_USE enum err share_message(struct msg *m, struct str body, struct str key);

/* Set the hash that the idempotency key of m identifies. */
void share_hash(struct msg *m, struct str meaning);

/* Read an envelope, and check that the caller may send it. `self` is the agent
 * of the connection; empty: none. ERR_FROM: `from` is another sender. */
struct share_sender {
    const struct registry *registry;
    const struct access *access;
    struct gate_limits limits; /* gatekeeper_limits */
    struct str self;
};
MUST_USE enum err share_envelope(struct msg *m, struct str body,
                                 const struct share_sender *by);

/* Write the members of the answer to an accepted envelope: the result of the
 * gate. One that came before, by its sender's own id, is dropped, and the
 * answer names the original task. */
void share_gate_result(struct json_out *o, const struct msg *m);

/* share_decision_keep: the decision of m, as JSON for speak_answer, in the
 * arena. Empty: it does not fit. share_decision_ask and share_decision_of: the
 * same from the store. The query replaces an earlier one; its row is read with
 * an otherwise empty scratch. */
struct str share_decision_keep(struct arena *a, const struct router *r,
                               const struct msg *m);
/* Remove everything that depends on others: the version numbers of the registry
 * and of learning, which count all changes, and query types that are shared by
 * all orgs. Admins see everything. */
void share_decision_for(struct decision *d, const struct caller *c);
void share_decision_ask(struct query *q, bool *is_used, const struct id *id);
struct str share_decision_of(struct arena *a, const struct row *row,
                             struct arena *scratch);

/* The cost of a task's tree and of its conversation, the latter with all
 * delegations below: for the payer and admins, if anything ever cost anything.
 * Three reads of one row each: share_cost takes the results of the first two,
 * share_cost_below starts the third in the place of the tree's, and
 * share_cost_add takes it. share_cost_say writes a member if there is a
 * cost. */
struct share_cost {
    int64_t tree, conversation; /* micro-units */
};
bool share_cost_is_for(const struct ledger *l, const struct task *t,
                       const struct caller *c);
void share_cost_ask(const struct task *t, struct query *tree,
                    struct query *conversation);
struct share_cost share_cost(const struct query *tree,
                             const struct query *conversation);
void share_cost_below(struct query *tree, const struct query *conversation);
void share_cost_add(struct share_cost *cost, const struct query *below);
void share_cost_say(struct json_out *o, const struct share_cost *cost,
                    const struct task *t);

/* Write the member "budget_warnings" about t, if there are any that c may
 * see. */
void share_budget_warnings(struct json_out *o, const struct ledger *l,
                           const struct task *t, const struct caller *c,
                           int64_t now_ms);

#define SHARE_KEY_IS_OLD                                                  \
    STR("this idempotency key was used, and its task is no longer kept; " \
        "to send the message again take a new key")

/* Query a delegation that is not in memory. */
void share_delegation_ask(struct query *q, bool *is_used, struct str key);

/* Query the row of a task. Replaces an earlier query. */
void share_look_ask(struct query *q, bool *is_used, struct str task_id);

/* The query is back. OK: *out is the task, from memory or as *row; NULL: it
 * moved meanwhile, look again (n_looks starts at zero). Otherwise the error of
 * the query, or ERR_NOT_FOUND. */
MUST_USE enum err share_look_row(const struct tasks *tasks,
                                 const struct query *q, struct str task_id,
                                 unsigned *n_looks, struct task *row,
                                 const struct task **out);

/* share_look_is_current: t is at the turn of that message (empty: any).
 * Otherwise query that turn, and get the task as it was in it. */
bool share_look_is_current(const struct id *message_id, const struct task *t);
void share_turn_ask(struct query *q, bool *is_used, const struct task *t,
                    const struct id *message_id);
void share_number_ask(struct query *q, bool *is_used, const struct task *t,
                      int64_t turn); /* by its number */
struct task share_turn(const struct task *t, const struct query *turn,
                       const struct id *message_id);

enum { SHARE_HITS_BYTES = 4 * 1024 * 1024 }; /* no further agent after this */

/* Write the answer. */
void share_hits(struct json_out *out, struct registry *registry,
                const struct speak_search_call *s,
                const struct search_result *r);

/* Write the problems of a card, as details. */
void share_problems(struct buf *out, const struct card_problems *p);

/* Warnings about a's card; they name only agents that the viewer sees. Only for
 * viewers who may see the whole card. */
void share_advice(struct registry *r, const struct deliver *d,
                  const struct agent *a, const struct eyes *eyes,
                  struct advice *out);

#endif
