#ifndef WALK_INTERNAL_H
#define WALK_INTERNAL_H

/* What the files of the walk share: walk.c is the story of one message,
 * walk_gate.c the part of it that begins when what waits may go, walk_people.c
 * what the broker does to agents and tasks for a person, walk_tools.c what
 * agents that are models use, walk_hire.c what agents give to agents,
 * walk_parent.c for which of their tasks that is, walk_notes.c what came of it
 * for agents without a line, walk_input.c what agents ask of people,
 * walk_stray.c results that nobody waits for, walk_repeat.c messages that were
 * there before, walk_again.c ends that are tried again, walk_budgets.c warns of
 * budgets, walk_open.c builds the rooms and changes their settings. */

#include "pulse.h"
#include "stray.h"
#include "tidy.h"
#include "unwritten.h"
#include "walk.h"

struct walk {
    struct walk_opts opts;
    struct tasks *tasks;
    struct deliver *deliver;
    struct broker *broker;
    struct hires *hires;
    struct ledger *ledger;
    struct strays *strays;
    struct pulse *pulse;
    struct walk_hub hub;

    /* Of models: what they use, and what they have others do. */
    struct list tool_uses, tool_commissions;

    struct map recalls; /* task id -> struct recall: what a turn begins with */

    struct list budget_looks; /* struct budget_look */
    size_t n_budget_looks;

    struct list refused; /* struct msg, to be told at the end of the turn */
    struct loop_job refuse_job;

    struct unwritten unwritten;

    struct tidy tidy;
};

/* Who is called by the rooms: the story's own, as a start of their options. */
extern const struct tasks_opts walk_calls_of_tasks;
extern const struct deliver_opts walk_calls_of_deliver;
extern const struct strays_opts walk_calls_of_strays;
extern const struct broker_opts walk_calls_of_broker;
extern const struct hire_opts walk_calls_of_hire;

/* walk.c */

/* A message was refused while whoever sent it was still in walk_message. */
void walk_on_refused(struct loop_job *job);

/* The message from the beginning, perhaps not for the first time. */
void walk_begin(struct msg *m);

/* Its answer, which m->err is; and the same with an error, which is told at the
 * end of the turn to whoever is still inside walk_message. */
void walk_finish(struct msg *m);
void walk_refuse(struct msg *m, enum err e);

/* As walk_message, of one that cannot be begun for that reason, with words in
 * m->why: it may be a repeat all the same. */
void walk_refused(struct walk *w, struct msg *m, enum err e,
                  void (*done)(struct msg *m, void *ctx), void *ctx);

/* An end on its way to the disk. */
void walk_submit(struct walk *w, struct task_change *c);

/* The agent hears what became of its result. */
void walk_tell_agent(struct walk *w, const struct task_change *c, enum err e);

/* The agent of that name as it is now; NULL: there is none. */
const struct agent *walk_agent_of(void *ctx, struct str name);

/* The agent that is to do t now; NULL: nobody is there. */
const struct agent *walk_agent_for(const struct walk *w, const struct task *t);

/* An agent's last word on its way to the disk; one that is late says so. */
MUST_USE enum err walk_take_result(struct walk *w, struct str task_id,
                                   const struct task_result *r, bool is_stray,
                                   uint64_t receipt);

/* One that came after the end, of the task's own agent. */
void walk_too_late(struct walk *w, const struct task *t, int64_t turn,
                   int64_t attempt, uint64_t receipt);

/* Told by hire: what m waited for, the same request before it, is durable, or
 * is not. */
void walk_on_original_known(struct msg *m);

/* walk_repeat.c */

/* A message that cannot be accepted may yet be the repeat of one that was:
 * then the answer is that task, whatever has changed since. `refused` is what
 * to say if it is not; OK when it was the key that stood in the way. */
void walk_ask_for_key(struct msg *m, enum err refused);

/* Refused for want of money: how much there is belongs to the answer. */
void walk_ask_what_is_left(struct msg *m);

/* walk_budgets.c */

/* At start. */
MUST_USE enum err walk_load_budgets(struct walk *w, struct why *why);

/* The payer's org into m->ledger, where m costs something. ERR_NOMEM. */
MUST_USE enum err walk_find_org(struct walk *w, struct msg *m);

/* m was accepted: whoever must know hears of budgets that are nearly used. */
void walk_look_at_budgets(struct walk *w, const struct msg *m);

/* walk_again.c */

/* An end that was refused may count for what its task is now, or without its
 * money: true when it is on its way again. */
bool walk_ends_anew(struct walk *w, struct task_change *c);

/* Its time was over, or it was held for as long as it may be; but it went on
 * first, and has its time anew. */
bool walk_is_outrun(const struct walk *w, const struct task_change *c);

/* Until it can be written. What is kept has a limit too; beyond it the agent
 * will be asked again, which is worse, but not a loss. Takes c. */
void walk_keep_unwritten(struct walk *w, struct task_change *c);

/* What could not be written is tried again. */
void walk_on_again(void *ctx, struct task_change *c);

/* A result that cannot even be kept: the task is carried once more. */
void walk_forget_attempt(struct walk *w, struct str task_id, enum err e);

/* walk_stray.c: told by deliver. */
void walk_on_stray(void *ctx, struct str agent, const struct wire_word *word,
                   uint64_t receipt);

/* walk_hire.c */

/* What t's agent says as it works, to all above it who want to hear. */
void walk_chunk_up(struct walk *w, const struct task *t, struct str text);

/* What hangs on an attempt that nobody goes on with goes with it: the next one
 * begins from the beginning. */
void walk_give_up_attempt(struct walk *w, struct str task_id);

/* walk_hire.c: a turn is over, durably, and its task not told yet. */
void walk_watch_end(struct walk *w, const struct task_change *c);

/* walk_parent.c */

/* m is part of one of these, of which the parent is chosen before it is routed.
 * False: memory is gone. */
MUST_USE bool walk_keep_parents(struct msg *m, const struct hire_parents *p);
void walk_choose_parent(struct msg *m); /* walk_begin, once it is */

/* m names a session that nothing in hand is of: walk_begin, unless it was that
 * of another payer's. */
void walk_check_session(struct msg *m);

/* walk_gate.c: told by the broker. */
void walk_see_agent(void *ctx, struct str name, struct gate_agent *out);
void walk_on_ripe(void *ctx, struct str task_id);
const struct task *walk_task_of(void *ctx, struct str id);
void walk_carry(void *ctx, struct str id, enum task_status as);
void walk_on_moved(void *ctx, const struct task *t);
bool walk_caller_of(void *ctx, struct str name, struct caller *out);
struct str walk_org_of(void *ctx, struct str name);
void walk_send(void *ctx, struct msg *m, void (*done)(struct msg *m, void *ctx),
               void *done_ctx);

/* walk_hire.c */

/* Whether a has the skill that an agent asks for; with words in m->why. */
MUST_USE enum err walk_check_skill(struct msg *m, const struct agent *a);

/* walk_tools.c: told by deliver. */
bool walk_has_tools(void *ctx, const struct task *t, const struct agent *a);
bool walk_on_tool(void *ctx, const struct delivery_id *d, struct str agent,
                  enum wire_tool tool, struct str arguments,
                  deliver_tool_done *done, void *done_ctx, void **handle);
void walk_tool_cancel(void *ctx, void *handle);
void walk_tools_free(struct walk *w); /* after deliver is */

/* walk_notes.c */

/* Whether that agent has no line, and hears with its next turn of what it gave
 * to others and did not wait for. */
bool walk_hears_by_note(void *ctx, struct str agent);

/* Such a one is over: the user is told, and who asked will be. False: who asked
 * has a line. */
bool walk_note(struct walk *w, const struct delegation *d,
               const struct task *t);

/* Told by hire: that is durable. Turns that have not begun have it too. */
void walk_on_noted(void *ctx, const struct delegation *d, struct str note);

/* What t's turn begins with is there. False: not yet, and t is offered again
 * by itself. */
bool walk_recall(struct walk *w, const struct task *t, enum ready *not_yet);

/* t as its agent is to have it: lent until its turn is over. */
const struct task *walk_with_notes(struct walk *w, const struct task *t);

/* Into the tx that ends t's turn; and once that is over, after deliver has
 * heard of it. */
void walk_record_told(struct walk *w, const struct task *t,
                      enum task_status status, struct tx *tx);
void walk_recall_over(struct walk *w, struct str task_id);
void walk_notes_free(struct walk *w); /* after deliver is */

/* walk_notes.c: told by deliver. */
bool walk_history(void *ctx, const struct task *t, size_t max_n,
                  size_t max_bytes, deliver_heard_history *done, void *done_ctx,
                  void **handle);
void walk_history_cancel(void *ctx, void *handle);

/* walk_input.c: told by deliver and by the tasks. */
bool walk_on_ask(void *ctx, const struct delivery_id *d,
                 const struct input_ask *q);
void walk_on_input_over(void *ctx, const struct input *in);

/* walk_people.c */

/* Whom an admin says that m is for (metadata.user_id): they pay, and it is
 * theirs to see. Empty: nobody else. ERR_BAD_REQUEST with words, ERR_NOMEM. */
MUST_USE enum err walk_for_user(struct walk *w, struct msg *m, struct str *out);

/* walk_people.c: likewise. */
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
