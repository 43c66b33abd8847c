#ifndef WALK_INTERNAL_H
#define WALK_INTERNAL_H

/* Declarations shared by the files of the walk.
 *
 *   walk.c              the story of one message; the table of stages, and the
 *                       table of results that come up
 *   walk_new.c          builds the modules and applies settings
 *   rejection.c         rejected messages, which may be repeats
 *   resume.c            released and reassigned tasks
 *   delegate.c          delegation requests as messages
 *   parent_task.c       chooses the parent task of a delegation
 *   delegation_notes.c  results for agents without a connection
 *   model_tools.c       tools of models
 *   input.c             questions of agents to people
 *   budgets.c           budget warnings
 *   late_result.c       results that no delivery waits for
 *   retry_commit.c      ends that are tried again
 *   tidy.c              expired rows */

#include "learn/learning.h"
#include "walk/late_result.h"
#include "walk/presence.h"
#include "walk/walk.h"

/* One stage's part in each phase; NULL: it has none. The walk calls the phases
 * of all stages, so that none is forgotten. accept_message has the questions
 * that come before (delegation_ask, gatekeeper_ask, ...). */
struct stage {
    void *module; /* first argument of its functions */

    /* A message is accepted: add to m->tx, after task_create. */
    void (*record)(void *module, struct msg *m);
    /* If m->tx was not committed because of this stage: the error, with words
     * in m->why. Else OK. Called before settle. */
    enum err (*refused)(void *module, struct msg *m);
    /* m->tx has its result. */
    void (*settle)(void *module, struct msg *m);
    /* m->tx was not submitted: give back what was claimed. In reverse order. */
    void (*leave)(void *module, struct msg *m);

    /* A turn ends: add to its tx; settle once that is committed. */
    void (*record_end)(void *module, const struct turn_end *end, struct tx *tx);
    void (*settle_end)(void *module, const struct turn_end *end);

    /* A waiting task is released, held or escalated: add to its tx; settle with
     * the result of that. */
    void (*record_pass)(void *module, const struct task *t,
                        const struct gate_result *p, struct tx *tx);
    void (*settle_pass)(void *module, const struct task *t,
                        const struct gate_result *p, bool is_committed);
};

enum { STAGES_MAX = 16 };

#define STAGES_EACH(s, w)                                                      \
    for (const struct stage *s = (w)->stages; s < (w)->stages + (w)->n_stages; \
         s++)

/* Ends of tasks that the store rejected for now. */
struct retry_commit {
    struct list held; /* struct task_change */
    int64_t n;
    size_t bytes; /* of their results */
    struct timer timer;
    bool is_full;       /* by the last result of a tx */
    int64_t full_at_ms; /* when that was logged */
};

/* The removal of expired rows under way. */
struct tidy {
    struct timer timer;
    int64_t at_ms; /* Unix time of the last start */
    struct query oldest;
    struct tasks_keep keep;
    struct learning_keep learning_keep;
    struct tx tx;
};

struct walk {
    struct walk_opts opts;
    struct tasks *tasks;
    struct deliver *deliver;
    struct gatekeeper *gatekeeper;
    struct delegations *delegations;
    struct ledger *ledger;
    struct late_results *late_results;
    struct presence *presence;
    struct walk_hub hub;
    struct stage stages[STAGES_MAX];
    size_t n_stages;

    struct list tool_uses; /* tool calls of models */
    struct list delegation_requests;

    struct map recalls; /* task id -> struct recall: the notes of a turn */

    struct list budget_looks; /* struct budget_look */
    size_t n_budget_looks;

    struct list refused; /* struct msg, to finish at the end of the turn */
    struct loop_job refuse_job;

    struct retry_commit retry_commit;

    struct tidy tidy;
};

/* Callbacks of the modules, as a start for their options. */
struct walk_results {
    struct tasks_opts tasks;
    struct deliver_opts deliver;
    struct gatekeeper_opts gatekeeper;
    struct delegation_opts delegation;
};
extern const struct walk_results walk_results;

/* walk.c */

/* Fill in the stages, once the modules are there. */
void walk_line_up(struct walk *w);

/* Finish the messages that were rejected inside walk_message. */
void walk_on_refused(struct loop_job *job);

/* Start m, perhaps not for the first time. */
void walk_begin(struct msg *m);

/* walk_finish: answer m with m->err. walk_refuse: answer with e; inside
 * walk_message the answer waits until the end of the turn. */
void walk_finish(struct msg *m);
void walk_refuse(struct msg *m, enum err e);

/* As walk_message, for a message that cannot be accepted because of e, with
 * words in m->why: it may still be a repeat. */
void walk_refused(struct walk *w, struct msg *m, enum err e,
                  void (*done)(struct msg *m, void *ctx), void *ctx);

/* Submit the end of a task. */
void walk_submit(struct walk *w, struct task_change *c);

/* Submit an agent's result; gatekeeper_late marks a late one in its
 * metadata. */
MUST_USE enum err walk_take_result(struct walk *w, struct str task_id,
                                   const struct task_result *r,
                                   bool is_unmatched, uint64_t receipt);

/* The user an admin sends m for (metadata.user_id): they pay and see it. Empty:
 * not given. ERR_BAD_REQUEST with words, ERR_NOMEM. */
MUST_USE enum err walk_for_user(struct walk *w, struct msg *m, struct str *out);

/* Called by delegation: the original request that m repeats is durable or has
 * failed. */
void walk_on_original_known(struct msg *m);

/* rejection.c */

/* A rejected message may be the repeat of an accepted one: then that task is
 * the answer, whatever has changed since. `refused` is the error if it is not;
 * OK when the idempotency key itself caused the rejection. */
void walk_ask_for_key(struct msg *m, enum err refused);

/* Rejected for lack of money: add the remaining amount to the answer. */
void walk_ask_what_is_left(struct msg *m);

/* budgets.c */

/* Load the budgets at a start. */
MUST_USE enum err walk_load_budgets(struct walk *w, struct why *why);

/* Set the payer's org in m->ledger if m costs something. ERR_NOMEM. */
MUST_USE enum err walk_find_org(struct walk *w, struct msg *m);

/* m was accepted: warn about budgets that are nearly used up. */
void walk_look_at_budgets(struct walk *w, const struct msg *m);

/* retry_commit.c */

/* Note the result of any tx: logs a full disk, and tries held ends at once when
 * there is space. */
void retry_commit_note(struct walk *w, const struct tx *tx);

/* Retry an end that was rejected, for the task as it is now or without its
 * money. True: it is on its way again. */
bool retry_commit_at_once(struct walk *w, struct task_change *c);

/* Hold an end that was rejected with c->err until it can be written. The held
 * bytes are limited; beyond that the task is delivered again, which is worse
 * but loses nothing. False: it will not be possible later either; else takes
 * c. */
bool retry_commit_later(struct walk *w, struct task_change *c);

void retry_commit_on_timer(struct timer *t);
void retry_commit_fini(struct walk *w);

/* The result cannot even be held: deliver the task once more. */
void walk_forget_attempt(struct walk *w, struct str task_id, enum err e);

/* late_result.c */

/* Called by deliver. */
void walk_on_unmatched_result(void *ctx, struct str agent,
                              const struct wire_word *word, uint64_t receipt);

/* Report a result that came after the end, from the task's own agent. */
void walk_too_late(struct walk *w, const struct task *t, int64_t turn,
                   int64_t attempt, uint64_t receipt);

/* tidy.c: starts, and runs by itself from then on. */
void tidy_start(struct walk *w);

/* delegate.c */

/* Pass a chunk of t's agent to all tasks above it that stream. */
void walk_chunk_up(struct walk *w, const struct task *t, struct str text);

/* delegate.c: a turn is over, durably, and task_changed comes next. */
void walk_watch_end(struct walk *w, const struct task_change *c);

/* parent_task.c */

/* Keep the candidates for the parent of m; one is chosen before routing. False:
 * the cap of the arena. */
MUST_USE bool walk_keep_parents(struct msg *m,
                                const struct delegation_parents *p);
void walk_choose_parent(struct msg *m); /* then walk_begin */

/* m names a session without a current task: call walk_begin, unless the session
 * belongs to another payer. */
void walk_check_session(struct msg *m);

/* resume.c: called by the gatekeeper. */
void walk_see_agent(void *ctx, struct str name, struct gate_agent *out);
void walk_on_ripe(void *ctx, struct str task_id);
void walk_send(void *ctx, struct msg *m, void (*done)(struct msg *m, void *ctx),
               void *done_ctx);

void walk_restart_agent(void *ctx, struct str name,
                        void (*done)(void *ctx, enum err e,
                                     const struct why *why),
                        void *done_ctx);
enum err walk_pause_agent(void *ctx, struct str agent, bool is_paused,
                          struct str by, int64_t at_ms);

/* delegate.c */

/* The requested skill is one of a's, if a lists any; with words in m->why. */
MUST_USE enum err walk_check_skill(struct msg *m, const struct agent *a);

/* model_tools.c: called by deliver. */
bool walk_has_tools(void *ctx, const struct task *t, const struct agent *a);
void walk_on_tool(void *ctx, const struct delivery_id *d, struct str agent,
                  enum wire_tool tool, struct str arguments,
                  deliver_tool_done *done, void *done_ctx, void **handle);
void walk_tool_cancel(void *ctx, void *handle);
void walk_tools_free(struct walk *w); /* after deliver_free */

/* delegation_request.c: nothing will call back any more. */
void walk_delegation_requests_free(struct walk *w);

/* delegation_notes.c */

/* The agent has no connection and reads results of its delegations in its next
 * turn. */
bool walk_hears_by_note(void *ctx, struct str agent);

/* Called by delegation: one is over. The hub is told; or, for an agent without
 * a connection, the user is, and a note is stored. */
void walk_on_delegation_ready(void *ctx, const struct delegation *d,
                              const struct task *t);

/* Called by delegation: the note is durable. Turns that have not started take
 * it along. */
void walk_on_noted(void *ctx, const struct delegation *d, struct str note);

/* The notes for t's turn are read. False: not yet, and t is offered again by
 * itself. */
bool walk_recall(struct walk *w, const struct task *t, enum ready *not_yet);

/* t with its notes, as the agent is given it. Valid until its turn is over. */
const struct task *walk_with_notes(struct walk *w, const struct task *t);

/* walk_record_told: add to the tx that ends a turn that its notes were given.
 * walk_recall_over: the turn is over, and deliver knows. */
void walk_record_told(void *walk, const struct turn_end *end, struct tx *tx);
void walk_recall_over(struct walk *w, struct str task_id);
void walk_notes_free(struct walk *w); /* after deliver_free */

/* delegation_notes.c: called by deliver. */
void walk_history(void *ctx, const struct task *t, size_t max_n,
                  size_t max_bytes, deliver_heard_history *done, void *done_ctx,
                  void **handle);
void walk_history_cancel(void *ctx, void *handle);

/* input.c: called by deliver and by task. */
bool walk_on_ask(void *ctx, const struct delivery_id *d,
                 const struct input_ask *q);
void walk_on_input_over(void *ctx, const struct input *in);

#endif
