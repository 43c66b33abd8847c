#ifndef WALK_INTERNAL_H
#define WALK_INTERNAL_H

/* Declarations shared by the files of the walk.
 *
 *   walk.c              the story of one message
 *   open.c              builds the stages and applies settings
 *   repeat.c            messages that came before
 *   resume.c            released and reassigned tasks
 *   delegate.c          delegation requests as messages
 *   parent_task.c       chooses the parent task of a delegation
 *   delegation_notes.c  results for agents without a connection
 *   model_tools.c       tools of models
 *   input.c             questions of agents to people
 *   people.c            what the gatekeeper does to agents and tasks for people
 *   budgets.c           budget warnings
 *   unmatched_result.c  results that no delivery waits for
 *   end_again.c         ends that are tried again */

#include "walk/late_result.h"
#include "walk/presence.h"
#include "walk/retry_commit.h"
#include "walk/tidy.h"
#include "walk/walk.h"

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

    /* Tool calls of models, and their delegation requests. */
    struct list tool_uses, tool_delegations;

    struct map recalls; /* task id -> struct recall: the notes of a turn */

    struct list budget_looks; /* struct budget_look */
    size_t n_budget_looks;

    struct list refused; /* struct msg, to finish at the end of the turn */
    struct loop_job refuse_job;

    struct retry_commit retry_commit;

    struct tidy tidy;
};

/* Callbacks of the stages, as a start for their options. */
extern const struct tasks_opts walk_calls_of_tasks;
extern const struct deliver_opts walk_calls_of_deliver;
extern const struct late_results_opts walk_calls_of_late_results;
extern const struct gatekeeper_opts walk_calls_of_gatekeeper;
extern const struct delegation_opts walk_calls_of_delegation;

/* walk.c */

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

/* Tell the agent the outcome of its result. */
void walk_tell_agent(struct walk *w, const struct task_change *c, enum err e);

/* The current agent of that name, or NULL. */
const struct agent *walk_agent_of(void *ctx, struct str name);

/* The agent that carries t now, or NULL. */
const struct agent *walk_agent_for(const struct walk *w, const struct task *t);

/* Submit an agent's result; gatekeeper_late marks a late one in its
 * metadata. */
MUST_USE enum err walk_take_result(struct walk *w, struct str task_id,
                                   const struct task_result *r,
                                   bool is_unmatched, uint64_t receipt);

/* Report a result that came after the end, from the task's own agent. */
void walk_too_late(struct walk *w, const struct task *t, int64_t turn,
                   int64_t attempt, uint64_t receipt);

/* Called by delegation: the original request that m repeats is durable or has
 * failed. */
void walk_on_original_known(struct msg *m);

/* repeat.c */

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

/* end_again.c */

/* Retry an end that was rejected, for the task as it is now or without its
 * money. True: it is on its way again. */
bool walk_ends_anew(struct walk *w, struct task_change *c);

/* The task expired or was held too long, but it moved on first and has a new
 * deadline. */
bool walk_is_outrun(const struct walk *w, const struct task_change *c);

/* Hold an end until it can be written. The held bytes are limited; beyond that
 * the task is delivered again, which is worse but loses nothing. Takes c. */
void walk_keep_unwritten(struct walk *w, struct task_change *c);

/* Try a held end again. Takes c. */
void walk_on_again(void *ctx, struct task_change *c);

/* The result cannot even be held: deliver the task once more. */
void walk_forget_attempt(struct walk *w, struct str task_id, enum err e);

/* unmatched_result.c: called by deliver. */
void walk_on_unmatched_result(void *ctx, struct str agent,
                              const struct wire_word *word, uint64_t receipt);

/* delegate.c */

/* Pass a chunk of t's agent to all tasks above it that stream. */
void walk_chunk_up(struct walk *w, const struct task *t, struct str text);

/* If the attempt will not be continued, end its children: the next attempt
 * starts from the beginning. */
void walk_give_up_attempt(struct walk *w, struct str task_id);

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
const struct task *walk_task_of(void *ctx, struct str id);
void walk_carry(void *ctx, struct str id, enum task_status as);
void walk_on_moved(void *ctx, const struct task *t);
bool walk_caller_of(void *ctx, struct str name, struct caller *out);
struct str walk_org_of(void *ctx, struct str name);
void walk_send(void *ctx, struct msg *m, void (*done)(struct msg *m, void *ctx),
               void *done_ctx);

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

/* delegation_notes.c */

/* The agent has no connection and reads results of its delegations in its next
 * turn. */
bool walk_hears_by_note(void *ctx, struct str agent);

/* A delegation is over: tell the user, and store a note for the agent. False:
 * the agent has a connection. */
bool walk_note(struct walk *w, const struct delegation *d,
               const struct task *t);

/* Called by delegation: the note is durable. Turns that have not started take
 * it along. */
void walk_on_noted(void *ctx, const struct delegation *d, struct str note);

/* The notes for t's turn are read. False: not yet, and t is offered again by
 * itself. */
bool walk_recall(struct walk *w, const struct task *t, enum ready *not_yet);

/* t with its notes, as the agent is given it. Valid until its turn is over. */
const struct task *walk_with_notes(struct walk *w, const struct task *t);

/* walk_record_told: add to the tx that ends t's turn that its notes were given.
 * walk_recall_over: the turn is over, and deliver knows. */
void walk_record_told(struct walk *w, const struct task *t,
                      enum task_status status, struct tx *tx);
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

/* people.c */

/* The user an admin sends m for (metadata.user_id): they pay and see it. Empty:
 * not given. ERR_BAD_REQUEST with words, ERR_NOMEM. */
MUST_USE enum err walk_for_user(struct walk *w, struct msg *m, struct str *out);

/* people.c: called by the gatekeeper. */
void walk_restart_agent(void *ctx, struct str name,
                        void (*done)(void *ctx, enum err e,
                                     const struct why *why),
                        void *done_ctx);
enum err walk_end_for(void *ctx, struct str task_id,
                      const struct task_result *result,
                      void (*done)(void *ctx, struct str task_id, enum err e),
                      void *done_ctx);
bool walk_sees_agent(void *ctx, struct str requester, struct str agent);
bool walk_is_above(void *ctx, struct str task_id, struct str agent);
bool walk_may_back(void *ctx, struct str agent, struct str backup);
enum err walk_pause_agent(void *ctx, struct str agent, bool is_paused,
                          struct str by, int64_t at_ms);

#endif
