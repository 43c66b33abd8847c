#ifndef GATE_ESCALATIONS_H
#define GATE_ESCALATIONS_H

/* Shared by the files about escalations, answers that are due, and agents that
 * are out:
 *
 *     escalations.c           making and ending escalations
 *     escalation.c            a single escalation: its row, its place in memory
 *     escalation_reminders.c  reminders, offers, expiry
 *     escalation_replies.c    people's replies, and their effect
 *     sla.c                   answers that are due
 *     outage.c                agents that are out: detection, rows
 *     revive.c                restarts, and backups that take over
 *     paused_agents.c         agents that a person has paused
 *
 * Open escalations are in memory; the row is the truth. An escalation is
 * decided by an update that only succeeds while it is open, in the tx of the
 * effect, so that exactly one of several concurrent replies wins. */

#include "gate/internal.h"

enum {
    ESCALATIONS_OPEN_MAX =
        10 * 1000, /* beyond this, a message to be escalated is rejected */
    ESCALATION_REPLIES_MAX = 16,     /* pending replies to one escalation */
    ESCALATION_RETRY_MS = 10 * 1000, /* after a failed write */
    ESCALATIONS_PER_TURN = 64,
    DUE_MAX = 1000 * 1000, /* answers that are due */
    OUTAGES_MAX = 10 * 1000,
    RESTART_PAUSE_MAX_MS = 3600 * 1000,
};

#define ESCALATION_SELF                                   \
    STR("signalbox") /* decides in the name of the server \
                      */

/* The message that an escalation, a due answer or an outage is about. */
struct subject {
    struct id task_id;
    int64_t turn;
    enum task_priority priority;
    struct str agent, requester, root_user, from, type, reference;
};

/* The subject of a message, or of a task with its envelope (may be NULL).
 * Borrows their strings. */
struct subject subject_of_msg(const struct msg *m);
struct subject subject_of_task(const struct task *t, const struct envelope *e,
                               const struct gate_result *p);

/* Copy its strings to *at, which has room for subject_bytes. */
size_t subject_bytes(const struct subject *a);
struct subject subject_pack(char **at, const struct subject *a);

/* A pending reply to an escalation. */
struct reply {
    struct gatekeeper *gatekeeper;
    struct list_node node;         /* in escalation->replies */
    struct escalation *escalation; /* NULL: it is no longer open */
    struct id id;                  /* of the escalation */
    enum escalation_status status;
    bool is_expiry; /* by expiry, not by a person */
    bool is_out;    /* a callback is pending */
    bool is_own;    /* it has a tx of its own */
    bool is_late;   /* another reply is known to have won */
    struct tx tx;
    struct query query;
    struct str agent, comment, by;
    void (*done)(void *ctx, enum err e, const struct why *why);
    void *ctx;
    char strings[];
};

/* An escalation that is open, or not committed yet. */
struct escalation {
    struct gatekeeper *gatekeeper;
    struct list_node node; /* in escalations.open, oldest first */
    struct id id;
    struct subject subject;
    enum escalation_kind kind;
    bool is_coming; /* not committed yet */
    bool is_moving; /* revive.c: its task is being decided again */
    bool is_ending; /* decided in the tx that ends its task */
    bool is_noting; /* a reminder or an offer is being written */
    /* The kind after the pending commit; zero: unchanged. */
    enum escalation_kind becomes;
    int64_t at_ms, remind_ms, expires_ms; /* Unix time; zero: never */
    /* The same on the monotonic clock: setting the wall clock moves no
     * deadline. */
    int64_t remind_mono_ms, expires_mono_ms;
    int64_t reminded;
    char offer[AGENT_NAME_MAX + 1];
    struct timer timer;
    struct list replies; /* struct reply; the first is being carried out if
                            has_current_reply */
    size_t n_replies;
    bool has_current_reply, is_recorded;
    char strings[];
};

struct escalations {
    struct list open; /* struct escalation */
    struct map by_id, by_task, late_by_task;
    size_t n_noting;
    bool is_stopped;
    bool is_ending; /* closing: no callback is called any more */
};

/* In escalation.c. */
struct escalation *escalation_make(struct gatekeeper *b,
                                   const struct subject *a);
void escalation_enter(struct escalation *x);
/* The map by task for its kind. */
struct map *escalation_map(const struct escalation *x);
struct tx_op *escalation_update(const struct escalation *x, struct tx *tx);
const struct gate_people *escalation_rules(const struct gatekeeper *b);
struct escalation *escalation_by_id(const struct gatekeeper *b, struct str id);
/* The escalation that keeps a task; the one of kind late. */
struct escalation *escalation_of(const struct gatekeeper *b,
                                 struct str task_id);
struct escalation *escalation_late_of(const struct gatekeeper *b,
                                      struct str task_id);
/* Make an escalation and write it into tx. NULL: tx->build_error has the
 * reason. After the commit call escalation_open, otherwise escalation_undo. */
struct escalation *escalation_new(struct gatekeeper *b,
                                  const struct subject *subject,
                                  enum escalation_kind kind, struct str rule,
                                  struct str reason, struct tx *tx);
void escalation_open(struct escalation *x);
void escalation_undo(struct escalation *x);
/* Write the decision into tx. */
void escalation_decide(const struct escalation *x,
                       enum escalation_status status, struct str by,
                       struct str comment, struct str to, struct tx *tx);
/* Write another kind and reason into tx; it stays open. */
void escalation_rewrite(struct escalation *x, enum escalation_kind kind,
                        struct str rule, struct str reason, struct tx *tx);
/* Remove a decided escalation. Pending replies are told which reply won, except
 * `own`, which did. */
void escalation_close(struct escalation *x, struct reply *own);

/* In escalation_reminders.c. */
/* Write an offer of another backup. */
void escalation_offer(struct escalation *x, struct str backup);
/* Start the deadlines of an open escalation. */
void escalation_start(struct escalation *x);
/* Resolve an escalation whose task, or that turn of it, is over. */
void escalation_abandon(struct escalation *x);
void escalation_on_timer(struct timer *t);

/* In escalation_replies.c. */
void reply_next(struct escalation *x);
/* Another reply won: finish this one with the winner. */
void reply_too_late(struct reply *w);
void reply_finish(struct reply *w, enum err e, const struct why *why);
struct reply *reply_current(const struct escalation *x);
/* The current reply about a task, and its escalation. */
const struct reply *reply_for_task(const struct gatekeeper *b,
                                   struct str task_id,
                                   const struct escalation **x);
/* The tx that carried out the current reply was not committed. */
void reply_failed(struct escalation *x);
/* Reply in the name of the server. */
void reply_self(struct escalation *x, enum escalation_status status,
                struct str agent, struct str comment, bool is_expiry);

/* The data of a feed entry about a task, built member by member. */
struct note_data {
    struct buf buf;
    struct json_out out;
    bool is_for_seers; /* as feed_entry's */
};
void note_open(struct note_data *n);
void note_escalation(struct note_data *n, const struct escalation *x);
void note_str(struct note_data *n, const char *key, struct str s);
void note_int(struct note_data *n, const char *key, int64_t v);
void note_close(struct note_data *n, struct gatekeeper *b, struct str type,
                const struct subject *subject, struct tx *tx);

/* In sla.c: how late an answer would be now; zero: not late. */
int64_t sla_late_ms(const struct gatekeeper *b, struct str task_id);
/* For tests. */
struct timer *sla_timer(const struct gatekeeper *b, struct str task_id);

/* In outage.c: an escalation of kind dead has opened. */
void revive_escalation(struct escalation *x);

/* In outage.c, revive.c: an agent that is out. */
struct outage {
    struct gatekeeper *gatekeeper;
    int64_t since_ms;     /* Unix time; zero: not out */
    int64_t next_mono_ms; /* earliest time of the next restart */
    int64_t calm_mono_ms; /* attempts are remembered until then */
    int64_t attempts;     /* made so far */
    bool is_gate;         /* a safety gate holds messages because of it */
    bool is_told;         /* announced in the feed, by the task told_by */
    struct id told_by;
    enum agent_state paused_by; /* the state for which its gate shut */
    bool is_restarting;         /* the callback of a restart is pending */
    bool has_given_up;
    struct timer timer;
    char name[AGENT_NAME_MAX + 1]; /* lower case */
    char shown[AGENT_NAME_MAX + 1];
};

struct revive {
    struct map outages; /* struct outage */
    bool is_stopped;
};

struct gate_agent outage_agent(const struct outage *o); /* its state now */
void outage_arm(struct outage *o, int64_t delay_ms);
void outage_free(struct outage *o);
/* Write its row, and a feed entry of the given type (NULL: none). `more` goes
 * into the member `key`. */
void outage_write(struct outage *o, bool is_over, const char *type,
                  const char *because, const char *key, struct str more);
/* Take the next step. May free o. */
void outage_look(struct outage *o);
/* The backup of an agent by the rules, else by its card; empty: none. And
 * whether the backup may have this message: the requester sees it, it is not
 * the sender, and it is not above it in the delegation chain. */
struct str revive_backup(const struct gatekeeper *b, struct str agent,
                         bool *is_auto);
bool revive_may_have(const struct escalation *x, struct str backup);

/* In paused_agents.c. */
MUST_USE enum err pauses_load(struct gatekeeper *b);

/* The tables of outages and of paused agents. */
extern const struct table outage_table, pause_table;
#define OUTAGE_COLUMNS(C)                                         \
    C(OUTAGE_AGENT, "agent", 1, COLUMN_TEXT) /* lower case */     \
    C(OUTAGE_SHOWN, "shown", 1, COLUMN_TEXT)                      \
    C(OUTAGE_SINCE_MS, "since_ms", 1, BOTH(since_ms))             \
    C(OUTAGE_ATTEMPTS, "attempts", 1, BOTH(attempts))             \
    C(OUTAGE_NEXT_MS, "next_ms", 1, COLUMN_INT)                   \
    C(OUTAGE_HAS_GIVEN_UP, "has_given_up", 1, BOTH(has_given_up)) \
    C(OUTAGE_IS_GATE, "is_gate", 1, BOTH(is_gate))

enum outage_column { OUTAGE_COLUMNS(COLUMN_NUMBER) N_OUTAGE_COLUMNS };
#define PAUSE_COLUMNS(C)                                     \
    C(PAUSE_AGENT, "agent", 1, COLUMN_TEXT) /* lower case */ \
    C(PAUSE_BY, "paused_by", 1, COLUMN_TEXT)                 \
    C(PAUSE_AT_MS, "at_ms", 1, COLUMN_INT)

enum pause_column { PAUSE_COLUMNS(COLUMN_NUMBER) N_PAUSE_COLUMNS };

#endif
